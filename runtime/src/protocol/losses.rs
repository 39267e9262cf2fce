//! The end of a world in which a rank is lost, or sends an invalid frame.
//!
//! A world ends once, with one cause, and all its ranks return that cause. A rank that finds a
//! failure ends the world for all ranks in three situations: while it waits for any rank
//! ([`notice`](WorldCore::notice)), when it cannot go on because another rank is lost, and when it
//! leaves afterwards. So all ranks report the failure itself, and not one of its consequences. The
//! exception is TCP: two failures that different ranks find at the same moment may give these ranks
//! different causes.
//!
//! A rank that left with an error may have completed the call that others are still in. In that
//! case the call completes on all ranks. Only calls that the rank has not completed fail. If a rank
//! died, all calls fail, since no other rank knows which calls the dead rank has completed.

use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, FailedRank, Result, State};
use fencepost_transport::{Cause, Endpoint, Leave, Liveness, Loss, Lost};
use std::rc::Weak;

impl WorldCore {
    /// Ends the world if one of its ranks has failed since this rank last looked.
    ///
    /// Each poll that finds nothing then returns the cause. `exchange` is the number of the
    /// exchange that this rank is in, if it waits in a call of all ranks.
    #[inline]
    pub(crate) fn notice(&self, endpoint: &mut Endpoint, exchange: Option<u32>) {
        if !self.is_quiet() {
            self.find_failed(endpoint, exchange);
        }
    }

    /// Returns whether the world goes on, and nothing has failed since this rank last looked.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.life.alarms.count() == self.life.heeded.get()
    }

    #[cold]
    #[inline(never)]
    fn find_failed(&self, endpoint: &mut Endpoint, exchange: Option<u32>) {
        let count = self.life.alarms.count();
        let mut heeded = true;
        for peer in (0..self.size).filter(|&peer| peer != self.rank) {
            let Some(lost) = endpoint.lost(peer) else { continue };
            match lost.how {
                Loss::Left(Leave::Finished) => {}
                Loss::Left(_) if is_past(endpoint, peer, exchange) => heeded = false,
                // The next poll finds this loss. A rank that is cut off cannot end the world.
                _ if lost.rank == self.rank => return,
                Loss::Ended(_) => return,
                _ => return drop(self.end_for(endpoint, lost)),
            }
        }
        if heeded && self.life.goes_on() {
            self.life.heeded.set(count);
        }
    }

    /// Like [`alive`](Self::alive), checks that the world goes on. Also checks that no other rank
    /// has failed.
    ///
    /// This is for calls under locks, which may go on without waiting. A rank that has failed may
    /// have done only a part of its operations under a lock.
    ///
    /// # Errors
    /// `PROC_FAILED`, or the error that ended the world. The state is `Mixed`.
    #[inline]
    pub(crate) fn well(&self, call: &Call) -> Result<()> {
        if self.is_quiet() { Ok(()) } else { self.still_well(call) }
    }

    #[cold]
    #[inline(never)]
    fn still_well(&self, call: &Call) -> Result<()> {
        self.alive().map_err(|error| error.leaving(State::Mixed))?;
        let endpoint = &mut *self.endpoint.borrow_mut();
        self.notice(endpoint, None);
        match endpoint.lost(self.rank) {
            Some(lost) => Err(self.lost(&lost, call).leaving(State::Mixed)),
            None => Ok(()),
        }
    }

    /// Ends the world because `lost` prevents this rank from going on. Returns the loss in the form
    /// that all ranks see.
    #[cold]
    pub(crate) fn end_for(&self, endpoint: &mut Endpoint, lost: Lost) -> Lost {
        let what = match lost.how {
            Loss::Ended(what) => what,
            Loss::Left(Leave::Finished) => format!("{lost}{}", self.waits()),
            _ => lost.to_string(),
        };
        self.end(endpoint, Cause { rank: lost.rank, what: what.clone() });
        let first = endpoint.lost(self.rank).filter(|first| matches!(first.how, Loss::Ended(_)));
        first.unwrap_or(Lost { rank: lost.rank, how: Loss::Ended(what) })
    }

    /// Returns the text that ends the error message if this rank waits for a rank that has
    /// finished.
    fn waits(&self) -> String {
        format!(", and rank {} waits for it: each rank has to make the calls that others wait for", self.rank)
    }

    /// Ends the world for all ranks. If the world has already ended for this rank, the earlier
    /// cause is kept.
    #[cold]
    pub(crate) fn end(&self, endpoint: &mut Endpoint, cause: Cause) {
        let first = self.life.dead.borrow().clone();
        endpoint.end(first.unwrap_or(cause));
    }

    /// Ends the world for all ranks, including this rank.
    #[cold]
    pub(crate) fn die_of(&self, endpoint: &mut Endpoint, cause: Cause) {
        self.end(endpoint, cause.clone());
        self.die(cause);
    }

    /// Ends this world if `error` was caused by another rank in a part of this world. Called when
    /// the program of this rank returns `error`.
    ///
    /// The world then ends because of that rank's failure. Without this call, this rank would leave
    /// as if it had failed itself.
    pub(crate) fn end_for_part(&self, error: &Error) {
        let of_this = |failed: &&FailedRank| failed.program == self.id && self.life.goes_on();
        let Some(failed) = error.failed_rank().filter(of_this) else { return };
        let is_it = |rank: &usize| self.stalls.borrow().waits.rank(*rank) == failed.of_all;
        let Some(rank) = (0..self.size).find(is_it) else { return };
        let what = format!(
            "rank {rank} failed in a part of the world, as rank {} of it: {}",
            failed.of_world, failed.what
        );
        let cause = Cause { rank, what };
        let endpoint = &mut *self.endpoint.borrow_mut();
        // The failed rank may have left this world as well. In that case its own reason is better
        // than the reason from the part.
        self.find_failed(endpoint, None);
        if endpoint.lost(self.rank).is_none() {
            self.end(endpoint, cause);
        }
    }

    /// Ends the world for this rank because of `lost`, and returns the error.
    pub(crate) fn lost(&self, lost: &Lost, call: &Call) -> Error {
        let host = self.reach.host_of(lost.rank);
        let host = host.map_or(String::new(), |host| format!("; rank {} is on host {host}", lost.rank));
        let waits = match &lost.how {
            Loss::Left(Leave::Finished) => self.waits(),
            _ => String::new(),
        };
        let why = format!("{lost}{waits}{host}");
        self.die(Cause { rank: lost.rank, what: why.clone() });
        let class = match &lost.how {
            Loss::Ended(_) => self.calls.sites.ended().unwrap_or(ErrorClass::ProcFailed),
            _ => ErrorClass::ProcFailed,
        };
        let failed = self.failed_rank(lost.rank, &why);
        call.error(self, class, why).ending_world().passing_on(failed)
    }

    /// Describes `rank`, whose failure has ended this world, for an error that only reports this
    /// failure. Returns `None` if `rank` is this rank.
    pub(crate) fn failed_rank(&self, rank: usize, what: &str) -> Option<FailedRank> {
        (rank != self.rank).then(|| {
            let of_all = self.stalls.borrow().waits.rank(rank);
            let program =
                self.life.above.borrow().first().and_then(Weak::upgrade).map_or(self.id, |first| first.id);
            FailedRank { program, of_all, of_world: rank, what: what.to_owned() }
        })
    }

    /// Ends the world because `error` prevents this rank from taking part in a call that others are
    /// in.
    #[cold]
    pub(crate) fn give_up(&self, endpoint: &mut Endpoint, error: Error) -> Error {
        if self.alive().is_ok() {
            let what = format!("rank {} could not take part in a call: {error}", self.rank);
            self.die_of(endpoint, Cause { rank: self.rank, what });
        }
        error.ending_world()
    }

    /// Ends the world because `from` sent an invalid frame, which `what` describes.
    #[cold]
    pub(crate) fn refuse(&self, endpoint: &mut Endpoint, from: usize, what: &str) -> Lost {
        self.calls.sites.end(ErrorClass::ProcFailed);
        self.end_for(endpoint, Lost { rank: from, how: Loss::Ended(format!("rank {from}: {what}")) })
    }

    /// Ends the world because `from` sent an invalid frame, and returns the error.
    pub(crate) fn corrupt(&self, endpoint: &mut Endpoint, from: usize, call: &Call) -> Error {
        let what =
            format!("rank {from} sent a frame that does not belong to this epoch or is outside the window");
        self.die_of(endpoint, Cause { rank: from, what: what.clone() });
        let failed = self.failed_rank(from, &what);
        call.error(self, ErrorClass::ProcFailed, what).ending_world().passing_on(failed)
    }
}

/// Returns whether `peer` has left after it had entered this exchange. If so, `peer` has completed
/// the exchange, since a rank that leaves in the middle of an exchange ends the world.
fn is_past(endpoint: &Endpoint, peer: usize, exchange: Option<u32>) -> bool {
    let entered = (endpoint.announced(peer) >> 32) as u32;
    exchange.is_some_and(|exchange| entered.wrapping_sub(exchange) as i32 >= 0)
}
