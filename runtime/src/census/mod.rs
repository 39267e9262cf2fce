//! The census of an exchange. It distributes the contents of notifications in log2 p rounds. In
//! each round, each rank sends one message. If only some ranks share memory, the rounds are between
//! hosts: the first rank of a host leads, collects from the others before the rounds and passes the
//! result to them afterwards.
//!
//! A message has the sender's word and flags in its header. The flags that [concern all
//! ranks](flags::OF_ALL) combine the flags of every rank whose contribution has reached the sender.
//! A rank that receives another word than its own, or another number of calls, reports the
//! difference in all its later messages. Each rank on the path between any two ranks compares what
//! it receives with its own call. So if two ranks of the world are in different calls, all ranks
//! find that out. They then exchange notifications, from which each rank finds out which ranks
//! differ. A rank that has completed the census has received the contribution of every rank, along
//! chains of messages. Each message of a chain was sent after the message before it had arrived. So
//! every rank was in the exchange.
//!
//! The digest of a message includes the number of its census, which is the same on all ranks
//! because all ranks take the same exchanges in the same order. If a message was lost, duplicated
//! or sent early, a rank may receive a message of another census in place of the awaited one. The
//! digest shows that this message belongs to another census.
//!
//! Frames of operations go to their targets directly, and are posted before the first message.
//! Frames that arrive before the census has counted them are set aside. The rank waits for all
//! other frames after the census.

pub(crate) mod flags;
mod legs;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod riding;
pub(crate) mod state;

use crate::protocol::exchange::untouched_by;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Error;
use fencepost_transport::{Endpoint, Lost};

/// Bytes for one other rank, or for all others (`None`).
pub(crate) type Give<'a> = (Option<usize>, &'a [u8]);

/// An exchange that this rank is in. It belongs to a fence of `windows`, or to a call that fences
/// no window.
pub(crate) struct Exchange<'a> {
    pub(crate) world: &'a WorldCore,
    pub(crate) windows: &'a [&'a WindowCore],
    pub(crate) call: &'a Call,
    pub(crate) endpoint: &'a mut Endpoint,
}

impl Exchange<'_> {
    /// Ends the world, because `lost` prevents this rank from receiving all notifications. Other
    /// ranks may have received all notifications and touch this rank's memory, so the call returns
    /// only when no rank touches that memory any more.
    #[cold]
    pub(crate) fn quit(&mut self, lost: &Lost) -> Error {
        let (world, rank) = (self.world, self.world.rank);
        // Other ranks wait only for this rank, not for the lost rank.
        let lost = world.end_for(self.endpoint, lost.clone());
        if world.reach.is_some && !self.windows.is_empty() {
            for peer in (0..world.size).filter(|&peer| peer != rank) {
                untouched_by(world, self.endpoint, self.windows, self.call, peer);
            }
        }
        world.lost(&lost, self.call)
    }
}
