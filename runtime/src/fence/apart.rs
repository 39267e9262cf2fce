//! Ranks that are in different calls of their world: who is behind returns, who is ahead exchanges letters again.
//!
//! A rank is behind where another left an earlier call without its exchange, or failed after the exchanges of one; all
//! ranks see who is behind, since every rank reads every letter. What was sent for the exchange is dropped on all sides,
//! and nothing was applied. A rank that is behind returns its own error, where it has one, else it is told; its next call
//! is the next one in number. A rank that is ahead keeps what it has collected, and exchanges letters again until all
//! are in its call.

use super::{Fence, INLINE, Letters};
use crate::transport::{Cause, Lost, Transport};
use crate::wire;
use fencepost_planner::{Class, Error, Result};

impl Fence<'_> {
    /// The error of a rank that is behind; otherwise this rank exchanges again, with `failed` as before.
    #[cold]
    pub(super) fn apart(&mut self, failed: Option<Error>, all: &Letters) -> Result<Option<Error>> {
        let mut others = (0..self.world.size).filter(|&from| from != self.world.rank);
        if let Err(lost) = others.try_for_each(|from| self.drop_frames(from)) {
            self.endpoint.end(Cause { rank: lost.rank, what: lost.to_string() });
            let lost = self.world.lost(&lost, self.call);
            return Err(failed.map_or(lost, Error::ending_world));
        }
        let Some((calls, rank)) = all.ahead else {
            // What was described is described again: nobody remembers it.
            self.windows.iter().for_each(|window| window.wire.borrow_mut().forget_descriptions());
            return Ok(failed);
        };
        Err(failed.unwrap_or_else(|| {
            let own = self.call.describe(self.windows);
            let theirs = self.world.board.entered(rank).unwrap_or_else(|| "a later call".into());
            let message = format!(
                "this rank is in {own}, its call number {} of the world, and rank {rank} is {calls} ahead, in {theirs}: one of the two failed in an earlier call, or left it without the others; nothing was applied",
                self.world.calls.number()
            );
            self.call.error(self.world, Class::RmaSync, message)
        }))
    }

    /// Ranks have run different prepared supersteps: frames that nobody awaits are in the channels, so the world ends.
    #[cold]
    pub(super) fn strayed(&mut self, all: &Letters) -> Error {
        let (world, rank) = (self.world, all.strayed.unwrap_or(self.world.rank));
        let what = format!(
            "rank {} and rank {rank} have run different prepared supersteps before {}",
            world.rank,
            self.call.describe(self.windows)
        );
        world.board.end(Class::RmaSync);
        self.endpoint.end(Cause { rank, what: what.clone() });
        world.ended(&what);
        let message = format!("{what}: all ranks must run the same ones, in the same order");
        self.call.error(world, Class::RmaSync, message).ending_world()
    }

    /// Drop the frames that `from` sent for this exchange; what left before it is staged.
    pub(super) fn drop_frames(&mut self, from: usize) -> Result<(), Lost> {
        let frames = self.endpoint.read(from)?.map_or(0, |letter| letter.address);
        if frames == INLINE {
            return Ok(());
        }
        wire::discard(self.world, self.endpoint, from, frames, self.call)
    }
}
