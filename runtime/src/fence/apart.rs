//! Ranks that are in different calls of their world. A rank that is behind returns, and a rank that
//! is ahead exchanges notifications again.
//!
//! A rank is behind another rank if that other rank left an earlier call without taking part in the
//! exchange of the call, or failed in an earlier call after the exchanges of the call. All ranks
//! see which ranks are behind, since every rank reads every notification. All ranks drop the frames
//! of the exchange, and no rank has applied anything. A rank that is behind returns its own error,
//! if it has one. If not, it returns an error that names the rank that is ahead. The next call of a
//! rank that is behind has the next number. A rank that is ahead keeps its collected operations,
//! and exchanges notifications again until all ranks are in its call.

use crate::census::flags::{CALL, RUNS};
use crate::census::messages::has_something;
use crate::census::riding::are_riding;
use crate::fence::remote;
use crate::fence::{Disagreement, Fence, Notifications};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::calls;
use crate::state::world::WorldCore;
use fencepost_planner::census::Census;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Cause, Lost, Notify};

/// The ranks that are ahead of this rank, or behind it.
#[derive(Default)]
struct Apart {
    /// The rank that is furthest ahead of this rank: the number of calls by which it is ahead, and
    /// its rank number.
    ahead: Option<(i32, usize)>,
    /// A rank that is behind this rank.
    behind: Option<usize>,
    /// A rank that has run other prepared supersteps than this rank since all ranks last agreed.
    strayed: Option<usize>,
}

impl WorldCore {
    /// Returns the number of this rank's call and a digest of its prepared runs, in the form that
    /// its notifications carry.
    #[inline]
    pub(super) fn behind_it(&self) -> u32 {
        let runs = (self.fence.ran.get() & 0xff) as u32;
        self.calls.tag(CALL) | runs << RUNS
    }
}

impl Fence<'_> {
    /// Handles the notifications of an exchange if they do not agree. If other ranks are behind,
    /// exchanges again until the notifications agree. Otherwise fails.
    #[cold]
    pub(super) fn disagreed(
        &mut self,
        hash: u64,
        mut failed: Option<Error>,
        (mut word, mut all): (u64, Notifications),
    ) -> Result<(u64, Notifications)> {
        let mut waits = None;
        loop {
            let apart = match all.disagreement {
                Disagreement::No => return Ok((word, all)),
                Disagreement::Failed => Apart::default(),
                Disagreement::Words | Disagreement::Calls => self.compare()?,
            };
            if let Some(rank) = apart.strayed {
                return Err(self.strayed(rank));
            }
            if all.disagreement != Disagreement::Calls {
                let error = self.explain(word, failed, &all);
                self.world.fence.ran.set(0);
                return Err(error);
            }
            failed = self.apart(failed, &apart)?;
            // The ranks that are behind make calls until they reach this call. This rank waits for
            // them, and its wait is reported like any other wait.
            let awaited = apart.behind.unwrap_or(self.world.rank);
            let watch =
                || Watch::new(self.world, self.call, self.windows, awaited, Awaited::Notifications).of_all();
            waits.get_or_insert_with(watch).woke(self.endpoint);
            (word, all) = self.exchange_notifications(hash, failed.is_some())?;
        }
    }

    /// Returns [`WorldCore::behind_it`].
    #[inline]
    pub(super) fn behind_it(&self) -> u32 {
        self.world.behind_it()
    }

    /// Compares the numbers in every other rank's notification with this rank's own numbers.
    fn compare(&mut self) -> Result<Apart> {
        let mut apart = Apart::default();
        let mine = self.behind_it();
        for from in (0..self.world.size).filter(|&from| from != self.world.rank) {
            let notification = self
                .endpoint
                .read(from)
                .map(|notification| notification.map(|notification| notification.flags));
            let Some(theirs) = notification.map_err(|lost| self.quit(&lost))? else { continue };
            if (theirs ^ mine) >> RUNS & 0xff != 0 {
                apart.strayed = Some(from);
            }
            match calls::ahead(theirs, mine) {
                0 => (),
                ahead if ahead > 0 => apart.ahead = apart.ahead.max(Some((ahead, from))),
                _ => apart.behind = Some(from),
            }
        }
        Ok(apart)
    }

    /// Returns an error if this rank is behind. Otherwise returns `failed`, the error with which
    /// this rank exchanges notifications again.
    fn apart(&mut self, failed: Option<Error>, apart: &Apart) -> Result<Option<Error>> {
        let mut others = (0..self.world.size).filter(|&from| from != self.world.rank);
        if let Err(lost) = others.try_for_each(|from| self.drop_frames(from)) {
            let lost = self.world.end_for(self.endpoint, lost);
            let lost = self.world.lost(&lost, self.call);
            return Err(failed.map_or(lost, Error::ending_world));
        }
        let Some((calls, rank)) = apart.ahead else {
            // Descriptions are sent again, since no rank has kept the descriptions of this
            // exchange.
            self.windows.iter().for_each(|window| window.fence.remembered.borrow_mut().forget_descriptions());
            return Ok(failed);
        };
        Err(failed.unwrap_or_else(|| {
            let own = self.call.describe(self.windows);
            let theirs = self.world.calls.sites.entered(rank).unwrap_or_else(|| "a later call".into());
            let message = format!(
                "this rank is in {own}, its call number {} of the world, and rank {rank} is {calls} ahead, in {theirs}: one of the two failed in an earlier call, or left it without the others; nothing was applied",
                self.world.calls.number()
            );
            self.call.error(self.world, ErrorClass::RmaSync, message)
        }))
    }

    /// Ends the world, because ranks have run different prepared supersteps: the channels contain
    /// frames that no rank awaits.
    pub(super) fn strayed(&mut self, rank: usize) -> Error {
        let world = self.world;
        let what = format!(
            "rank {} and rank {rank} have run different prepared supersteps before {}",
            world.rank,
            self.call.describe(self.windows)
        );
        world.calls.sites.end(ErrorClass::RmaSync);
        world.die_of(self.endpoint, Cause { rank, what: what.clone() });
        let message = format!("{what}: all ranks must run the same ones, in the same order");
        self.call.error(world, ErrorClass::RmaSync, message).ending_world()
    }

    /// Drops the frames that `from` sent for this exchange. Frames that `from` sent earlier are
    /// staged.
    pub(super) fn drop_frames(&mut self, from: usize) -> Result<(), Lost> {
        let reduced = self.world.census.taken.get() == Census::Reduced;
        let frames = self.endpoint.read(from)?.map_or(0, |said| {
            let frames = if are_riding(said.address) { 0 } else { said.address };
            frames + usize::from(reduced && has_something(said))
        });
        // This rank may have taken in some of the frames before it knew that it has to drop them.
        let dropped = self.items.as_ref().map_or(0, |items| {
            let notes = items.noted().filter(|&noted| reduced && noted == from).count();
            notes + items.aside.of(from)
        });
        remote::discard(self.world, self.endpoint, from, frames.saturating_sub(dropped), self.call)
    }
}
