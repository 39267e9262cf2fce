//! [`Kept`]: the elements of one rank's windows that an epoch leaves to that rank, from the entry
//! of the rank to the end of the epoch.
//!
//! A rank that has entered an epoch may compute before it waits for the others, on elements that
//! nothing else touches during this time. These are all elements that no operation names. They
//! depend only on the calls of all ranks, and not on the modes in which the operations travel. So a
//! program that runs with one schedule runs with every other schedule of the same calls, and an
//! error names the line of a call. [`verify_kept`](crate::verify::verify_kept) shows that a
//! schedule does not touch these elements.

use crate::datatype::Datatype;
use crate::ids::{Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Site};
use crate::ir::schedule::Schedule;

/// The elements of one rank's windows that an epoch leaves to that rank: all elements that are in
/// none of these accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The rank.
    pub rank: Rank,
    /// All accesses to the windows of this rank.
    pub accesses: Vec<Access>,
}

/// The access of one operation to a window of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The window.
    pub window: WindowId,
    /// The elements.
    pub elements: Datatype,
    /// Whether the access writes the elements; otherwise it reads them.
    pub writes: bool,
    /// The rank that calls the operation.
    pub origin: Rank,
    /// The kind of the operation.
    pub kind: Kind,
    /// The line of the call.
    pub site: Site,
}

impl Kept {
    /// Returns the elements that the epoch of a schedule leaves to `rank`. An operation that moves
    /// nothing touches nothing. An operation whose elements a later operation replaces still
    /// counts, although these elements may never move.
    ///
    /// # Cost
    /// Grows with the operations of all classes of ranks.
    pub fn of(schedule: &Schedule, rank: Rank) -> Self {
        let ranks = schedule.class_of.len() as u32;
        let mut accesses = Vec::new();
        for (class, program) in schedule.classes.iter() {
            for call in program.pattern.operations.values().filter(|call| call.remote.size() > 0) {
                // The rank whose call of this operation targets `rank`, if there is such a rank in
                // this class.
                let origin = call.target.and_then(|target| target.back().from(rank, ranks));
                let origin = origin.filter(|origin| schedule.class_of[origin.0 as usize] == class);
                if let Some(origin) = origin {
                    accesses.push(access(call, origin, call.window, &call.remote, call.kind != Kind::Get));
                }
            }
        }
        let own = &schedule.classes[schedule.class_of[rank.0 as usize]].pattern;
        for call in own.operations.values().filter(|call| call.target.is_some() && call.remote.size() > 0) {
            if let Local::Section { window, datatype } = &call.local {
                accesses.push(access(call, rank, *window, datatype, call.kind == Kind::Get));
            }
        }
        Self { rank, accesses }
    }

    /// Returns an access that would conflict if this rank read these elements (or, if `writes`,
    /// wrote them) while the epoch runs. Returns `None` if there is no such access.
    ///
    /// # Cost
    /// Grows with the accesses.
    pub fn conflict(&self, window: WindowId, elements: &Datatype, writes: bool) -> Option<&Access> {
        self.accesses.iter().find(|access| {
            access.window == window && (access.writes || writes) && access.elements.overlaps(elements)
        })
    }
}

fn access(call: &Operation, origin: Rank, window: WindowId, elements: &Datatype, writes: bool) -> Access {
    let (elements, site) = (elements.clone(), call.site.clone());
    Access { window, elements, writes, origin, kind: call.kind, site }
}
