//! Taking and leaving the locks of a part.

use crate::locks::remote::{await_loss, dropped, not_sole};
use crate::locks::state::words::{Presence, Words, site_text};
use crate::protocol::exchange::wait;
use crate::protocol::stall::{Awaited, LockQueue, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use fencepost_planner::{Error, Result, State};
use fencepost_transport::{Endpoint, FairLock, Hold, Liveness, Loss, Lost, Next, Position};
use std::panic::Location;

/// The locks of a part that this rank reaches, and the call that takes or leaves them.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) window: &'a WindowCore,
    pub(super) target: usize,
    pub(super) words: &'a Words,
    pub(super) call: &'a Call,
}

/// The number of polls of a lock after which a waiting rank also looks for lost ranks. These polls
/// take some microseconds.
const LOOKS: u32 = 64;

/// The queue in which this rank waits for a lock that it reaches.
struct Queue<'a> {
    words: &'a Words,
    me: usize,
    second: bool,
    lock: FairLock<'a>,
    turn: Position,
}

impl LockQueue for Queue<'_> {
    fn holder(&self) -> Option<usize> {
        // Second locks are held for a moment only.
        self.words.holder(self.me).filter(|_| !self.second)
    }

    fn since(&self, rank: usize) -> Option<String> {
        self.words.held_since(rank)?;
        Some(self.words.queue(rank, (self.me, self.lock, self.turn)))
    }
}

/// Returns the numbers of the bits that are set, ascending.
fn each(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (next < u32::BITS).then_some(next as usize)
    })
}

/// Wakes the waiter with this number in the queue of a lock of this part. The waiter is a rank or
/// the attendant of the part.
#[cold]
pub(super) fn wake(window: &WindowCore, target: usize, words: &Words, number: usize) {
    let world = &*window.world;
    if number != words.attendant() {
        world.endpoint.borrow_mut().wake(number);
    } else if target != world.rank {
        world.endpoint.borrow_mut().nudge(target);
    } else if let Some(service) = world.locks.service.get() {
        world.send_answers(service.advance());
    }
}

impl At<'_> {
    /// Takes all regions for the epoch that was opened at this line, and holds them until
    /// [`leave_all`](Self::leave_all).
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(super) fn take_all(&self, hold: Hold, site: &Location<'_>) -> Result<()> {
        self.begin(self.words.layout.all(), hold)?;
        if self.words.layout.is_sole {
            return Ok(()); // no rank waits for this part
        }
        self.words.note_holding(self.window.world.rank, &site_text(site));
        Ok(())
    }

    /// Leaves all regions, which [`take_all`](Self::take_all) has taken.
    pub(super) fn leave_all(&self, hold: Hold) {
        if self.words.layout.is_sole {
            return;
        }
        self.words.note(self.window.world.rank, Presence::Passing);
        self.end(self.words.layout.all(), hold);
    }

    /// Takes the locks of these regions, and holds them until [`end`](Self::end).
    ///
    /// # Errors
    /// As for [`take`](Self::take). Also if the world has ended, or the owner has dropped the part.
    #[inline]
    pub(super) fn begin(&self, regions: u32, hold: Hold) -> Result<()> {
        let me = self.window.world.rank;
        self.window.world.well(self.call)?;
        if self.words.layout.is_sole {
            return self.begin_alone();
        }
        self.words.note(me, Presence::Passing);
        self.take(regions, hold, false).inspect_err(|_| self.words.note(me, Presence::Absent))?;
        if self.words.is_open() {
            return Ok(());
        }
        self.await_opening().inspect_err(|_| self.end(regions, hold))
    }

    /// Begins an access to a part that only one rank accesses.
    ///
    /// # Errors
    /// `ASSERT` if another rank is the only rank that accesses the part. Also if the owner has
    /// dropped the part, or was lost.
    fn begin_alone(&self) -> Result<()> {
        if !self.words.is_of(self.window.world.rank) {
            return Err(not_sole(self.window, self.target, self.words.sole_rank(), self.call));
        }
        if self.words.is_open() { Ok(()) } else { self.await_opening() }
    }

    /// Waits until the owner has opened the part. The owner is about to do so, or to give up.
    ///
    /// # Errors
    /// If the owner was lost, the world has ended, or the owner has dropped the part.
    #[cold]
    fn await_opening(&self) -> Result<()> {
        let world = &*self.window.world;
        let windows = [self.window];
        let watch =
            || Watch::new(world, self.call, &windows, self.target, Awaited::One("parts that are opened"));
        let opened = wait(&mut world.endpoint.borrow_mut(), watch, |endpoint| {
            match (self.words.is_open(), self.words.is_closed()) {
                (false, false) => {
                    let lost = self.any_lost(endpoint).or_else(|| endpoint.lost(self.target));
                    lost.map_or(Ok(None), Err)
                }
                (is_open, _) => Ok(Some(is_open)),
            }
        });
        match opened {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.closed()),
            Err(lost) => Err(self.lost(&lost)),
        }
    }

    /// Leaves the regions that [`begin`](Self::begin) has taken.
    #[inline]
    pub(super) fn end(&self, regions: u32, hold: Hold) {
        if self.words.layout.is_sole {
            return;
        }
        self.leave(regions, hold, false);
        self.words.note(self.window.world.rank, Presence::Absent);
    }

    /// Returns the error of an epoch on a part that its owner has dropped. If the owner dropped it
    /// because a rank was lost, the error reports that loss.
    #[cold]
    fn closed(&self) -> Error {
        let endpoint = &mut *self.window.world.endpoint.borrow_mut();
        let lost = if self.words.is_over() {
            Some(await_loss(self.window, self.target, self.call, endpoint))
        } else {
            self.any_lost(endpoint)
        };
        lost.map_or_else(|| dropped(self.window, self.target, self.call), |lost| self.lost(&lost))
    }

    /// Takes the locks of these regions, in ascending order.
    ///
    /// # Errors
    /// If a rank that takes or holds locks of this part was lost, the world has ended, or the owner
    /// has dropped the part. In these cases this rank holds none of the locks.
    #[inline]
    pub(super) fn take(&self, regions: u32, hold: Hold, second: bool) -> Result<()> {
        let me = self.window.world.rank;
        for region in each(regions) {
            let lock = self.words.lock(region, second);
            if let Err(turn) = lock.take(hold, me) {
                let error = match self.wait(lock, turn, hold, second) {
                    Ok(Some(Next(next))) => {
                        next.into_iter().for_each(|next| wake(self.window, self.target, self.words, next));
                        continue;
                    }
                    Ok(None) => self.closed(),
                    Err(lost) => self.lost(&lost),
                };
                self.leave(regions & ((1 << region) - 1), hold, second);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Leaves the locks of these regions.
    #[inline]
    pub(super) fn leave(&self, regions: u32, hold: Hold, second: bool) {
        for region in each(regions) {
            let Next(next) = self.words.lock(region, second).leave(hold);
            if let Some(next) = next {
                wake(self.window, self.target, self.words, next);
            }
        }
    }

    /// Waits until this rank has entered the lock, and returns the waiter to wake next. Returns
    /// `None` if the part is dropped.
    #[cold]
    fn wait(
        &self,
        lock: FairLock<'_>,
        turn: Position,
        hold: Hold,
        second: bool,
    ) -> Result<Option<Next>, Lost> {
        let world = &*self.window.world;
        let windows = [self.window];
        let queue = Queue { words: self.words, me: world.rank, second, lock, turn };
        // A rank that waits for a second lock may hold all first locks, and its note must keep
        // stating that.
        let is_noted = !second && self.words.presence(world.rank) == Presence::Passing;
        if is_noted {
            self.words.note_waiting(world.rank, hold, &site_text(self.call.site));
        }
        let watch = || Watch::new(world, self.call, &windows, self.target, Awaited::Lock(&queue));
        let mut looks = 0;
        let entered = wait(&mut world.endpoint.borrow_mut(), watch, |endpoint| {
            if let Some(next) = lock.enter(turn, hold) {
                return Ok(Some(Some(next)));
            }
            looks += 1;
            let is_closed = self.words.is_closed();
            if (is_closed || looks > LOOKS || !world.is_quiet())
                && let Some(lost) = self.any_lost(endpoint)
            {
                return Err(lost);
            }
            // The owner no longer serves a part that it has dropped, so it does not answer the
            // ranks that wait for the part.
            Ok(is_closed.then_some(None))
        });
        if is_noted {
            self.words.note(world.rank, Presence::Passing);
        }
        entered
    }

    /// Returns the loss of a rank that takes or holds locks of this part, or the end of the world.
    fn any_lost(&self, endpoint: &mut Endpoint) -> Option<Lost> {
        let world = &*self.window.world;
        let others = (0..world.size).filter(|&rank| rank != world.rank);
        let mut lost = others.filter_map(|rank| Some((rank, endpoint.lost(rank)?)));
        lost.find(|(rank, lost)| {
            matches!(lost.how, Loss::Ended(_)) || self.words.presence(*rank) != Presence::Absent
        })
        .map(|(_, lost)| lost)
    }

    /// Returns the error of a call that cannot go on because of `lost`. The epoch of this rank may
    /// have been carried out in part.
    fn lost(&self, lost: &Lost) -> Error {
        self.window.world.lost(lost, self.call).leaving(State::Mixed)
    }
}
