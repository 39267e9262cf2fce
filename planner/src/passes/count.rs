//! Counts the messages, bytes and operations that each rank sends and must expect.
//!
//! ```text
//! c0: -1 receives 1 message 8 B;    c0: out 1 message 8 B, in 1 message 8 B, h 1
//!     +1 sends 1 message 8 B
//! ```
//!
//! **Requires** routes, since it counts what will actually be sent.
//! **Ensures** exact numbers, and `h`, the largest number of messages that a rank sends or
//! receives. What a rank sends to itself is not counted. All direct copies between two ranks count
//! as one message. At run time this pass is a reduction over all ranks.
//! **Cost** proportional to the number of classes.

use crate::ids::{LinkId, OperationId};
use crate::ir::demand::{Demand, Load};
use crate::ir::routed::{Route, Routed};
use crate::table::Table;
use crate::units::Bytes;
use smallvec::SmallVec;

/// See the [module](self).
pub fn count(routed: &Routed<'_>) -> Demand {
    let links: Table<LinkId, Row> = routed.links.values().map(Row::of).collect();
    let classes: Table<_, Load> = routed
        .peers
        .classes
        .values()
        .map(|class| {
            let mut load = Load::default();
            for (_, link) in class.out() {
                load.messages_out += links[link].messages;
                load.bytes_out += links[link].bytes;
            }
            for (_, link) in class.into() {
                load.messages_in += links[link].messages;
                load.bytes_in += links[link].bytes;
                load.operations_in += links[link].operations;
            }
            load
        })
        .collect();
    let h = classes.values().map(|load| load.messages_out.max(load.messages_in)).max().unwrap_or(0);
    Demand { classes, h }
}

struct Row {
    messages: u32,
    bytes: Bytes,
    operations: u32,
}

impl Row {
    fn of(route: &Route) -> Self {
        // Each rank numbers its own operations. So an operation of the sender, and a get of the
        // receiver that this link answers, may have the same id.
        let mut operations: SmallVec<[(bool, OperationId); 4]> = route
            .transfers()
            .flat_map(|(_, _, transfer)| transfer.operations.iter().map(|&id| (transfer.is_answer(), id)))
            .collect();
        operations.sort_unstable();
        operations.dedup();
        Self {
            messages: route.rounds() as u32,
            bytes: Bytes(route.transfers().map(|(_, _, transfer)| transfer.bytes()).sum()),
            operations: operations.len() as u32,
        }
    }
}
