//! The census of an exchange: the contents of notifications, in log2 p rounds of one message for
//! each rank. Where some ranks share memory and not all do, the rounds are between hosts: the first
//! rank of a host leads, collects from the others before the rounds and passes the result to them
//! afterwards.
//!
//! A message has the sender's word and flags in its header. Its flags that
//! [concern all](flags::OF_ALL) combine those of every rank whose contribution has reached the
//! sender. A rank that receives another word than its own, or another number of calls, reports so
//! in all its later messages. The path from any rank to any other goes through ranks that each
//! compare what they receive with their own. So if two ranks of the world are in different calls,
//! all ranks find out that some are, and then exchange notifications, by which each finds out
//! which. A rank that has completed the census has received, through messages that were each sent
//! after the one before had come, the contribution of every rank: every rank was in the exchange.
//!
//! The digest of a message includes the number of its census, which is the same on all ranks since
//! they exchange in turn. So a message of another census, which can come because one was lost,
//! doubled or early, is not taken for one of this.
//!
//! Frames of operations go to their targets directly, and are posted before the first message. They
//! may arrive before the census has counted them, and are then set aside; or later, and are
//! awaited.

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

/// Bytes for one other rank, or for all.
pub(crate) type Give<'a> = (Option<usize>, &'a [u8]);

/// An exchange that this rank is in: of a fence of these windows, or of a call that fences none.
pub(crate) struct Exchange<'a> {
    pub(crate) world: &'a WorldCore,
    pub(crate) windows: &'a [&'a WindowCore],
    pub(crate) call: &'a Call,
    pub(crate) endpoint: &'a mut Endpoint,
}

impl Exchange<'_> {
    /// Ends the world, since this rank cannot go on because of `lost` before all notifications are
    /// in. Others may have them all and touch its memory, so this returns when nobody does.
    #[cold]
    pub(crate) fn quit(&mut self, lost: &Lost) -> Error {
        let (world, rank) = (self.world, self.world.rank);
        // Others need not wait for the rank that is lost, only for this one.
        let lost = world.end_for(self.endpoint, lost.clone());
        if world.reach.is_some && !self.windows.is_empty() {
            for peer in (0..world.size).filter(|&peer| peer != rank) {
                untouched_by(world, self.endpoint, self.windows, self.call, peer);
            }
        }
        world.lost(&lost, self.call)
    }
}
