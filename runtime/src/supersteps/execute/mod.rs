//! [`Executable`]: one rank's program of a verified schedule, bound to its place in a world, and
//! the loop that runs it.
//!
//! The loop decides nothing and allocates nothing: peers, buffers and parts were resolved when the
//! program was bound. The schedule contains the waits that make it sound to touch the memory of
//! other ranks, and the verifier has shown that these waits suffice (W1 to W4). This loop handles
//! only what no schedule can know: a rank that is in another superstep, has failed or has left.
//!
//! Every frame carries the word of the superstep and the rest of its hash, and every await compares
//! both (W1). A run that fails ends the world, because ranks further away may have gone on. Such a
//! run returns only when no other rank can touch this rank's windows any more.
//!
//! # Posts and starts
//!
//! A schedule that synchronises by posts and starts is run only by the ranks that take part in it.
//! The frames of such a schedule have a separate port. The word in these frames contains the number
//! of the run, which the plan counts, instead of the number of the superstep in the world. A rank
//! waits only where the schedule does. These waits suffice for the following reasons:
//! - W1: an entry's word contains the plan, the run and the windows, and is compared before memory
//!   is touched. The frames of the n-th run of one rank meet those of the n-th run of its peer,
//!   since frames are first in, first out, and a run takes all its frames. If a rank executes
//!   something other than this run, frames on other ports cannot reveal this. Waiting for such a
//!   rank is therefore a stall, and not an error.
//! - W2, W3: these concern only steps of this rank, and frames that report that a rank is done. A
//!   run of another plan in between does not affect them, since it has none of the windows that
//!   this run owns.
//! - W4, W5: releases and frames are counted on the port, so frames of other plans and fences do
//!   not count.
//! - W6: a run leaves no frame on its port, and does not touch other ports. A rank without steps
//!   has no frames to leave.
//!
//! Runs that were begun make progress while the rank waits in any call of the world
//! ([`Opened`](crate::state::life::Opened)). Each run advances in the order of its program, without
//! waiting. So two ranks may finish two runs in opposite orders, even if each rank has sends and
//! dones left in both runs.
//!
//! # Payloads that stay where they are
//!
//! Over MPI a long payload is sent from the window or the buffer that has it, and received at its
//! destination, while the run goes on. The frame itself is copied to its reader as before. So
//! releases and frames count as before (W4, W5), and the word is compared before the payload is
//! unpacked (W1). W2 must then hold for a payload until MPI has sent it, so [`loans`] leaves a
//! payload in place only if nothing in the run writes it afterwards. Places for payloads are
//! offered in the same way as over TCP ([`preposts`]). The run returns when all payloads are [taken
//! back](Executable::take_back). From then on, only this rank uses its windows and buffers.

mod bind;
mod loans;
mod preposts;
mod step;
mod steps;

#[cfg(test)]
pub(crate) use bind::lead;
pub(crate) use bind::{Executable, takes_slice};

use crate::protocol::call::hash;
use crate::protocol::exchange::untouched_by;
use crate::protocol::stall::elsewhere;
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::environment;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use bind::{Progress, Stop};
use fencepost_planner::{Error, ErrorClass, Result, State};
use fencepost_transport::{Cause, Channels, Endpoint, Lent, Liveness, Loss, Lost, Pause, Port};

impl Executable {
    /// Runs the program once. The caller has checked `windows`.
    pub(crate) fn run(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let began = world.begin_record(call);
        let guard = AbortOnUnwind("a prepared superstep");
        let result = {
            let endpoint = &mut *world.endpoint.borrow_mut();
            self.enter(world, endpoint, windows, call);
            let went = self.go::<true>(world, endpoint, (windows, call));
            self.over(world, endpoint, (windows, call), went)
        };
        guard.over();
        world.end_run_record(began, false, &self.share);
        result
    }

    /// Runs the program up to the first step that has to wait.
    ///
    /// [`finish`](Self::finish) runs the rest, with the same windows. Until then this rank neither
    /// reads nor writes the elements that its program or the program of a peer touches.
    pub(crate) fn begin(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let began = world.begin_record(call);
        let guard = AbortOnUnwind("a prepared superstep");
        let result = {
            let endpoint = &mut *world.endpoint.borrow_mut();
            self.enter(world, endpoint, windows, call);
            match self.go::<false>(world, endpoint, (windows, call)) {
                Ok(()) => Ok(()),
                went => self.over(world, endpoint, (windows, call), went),
            }
        };
        guard.over();
        world.end_run_record(began, result.is_ok(), &self.share);
        result
    }

    /// Runs the steps that remain after [`begin`](Self::begin).
    pub(crate) fn finish(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let began = world.begin_record(call);
        let guard = AbortOnUnwind("a prepared superstep");
        let result = {
            let endpoint = &mut *world.endpoint.borrow_mut();
            let went = match self.stopped.take() {
                Some(stop) => Err(stop),
                None => self.go::<true>(world, endpoint, (windows, call)),
            };
            self.over(world, endpoint, (windows, call), went)
        };
        guard.over();
        world.end_run_record(began, false, &self.share);
        result
    }

    /// Continues a run that was begun, up to the first step that has to wait, while this rank waits
    /// for something else.
    pub(crate) fn advance(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        windows: &[&WindowCore],
        call: &Call,
    ) {
        if self.is_open() {
            self.stopped = self.go::<false>(world, endpoint, (windows, call)).err();
        }
    }

    /// Returns whether a run that was begun has steps left, and may continue.
    pub(crate) fn is_open(&self) -> bool {
        self.stopped.is_none() && self.progress.at < self.steps.len()
    }

    /// Gives up a run that was begun. Afterwards no transport writes to its windows, except to
    /// windows that are [lent](Self::leave_lent) in part.
    pub(crate) fn give_up(&mut self, endpoint: &mut Endpoint) {
        self.preposts[..self.progress.offered]
            .iter()
            .for_each(|prepost| endpoint.cancel(prepost.peer, Port::FENCE));
    }

    /// Leaves a run that will not end. Returns whether a transport still reads or writes memory of
    /// the run. In that case the buffers are never freed, and the windows must not be freed either.
    pub(crate) fn leave_lent(&mut self, endpoint: &mut Endpoint) -> bool {
        let is_lent = self.borrowers.iter().any(|&peer| endpoint.lent(peer) != Lent::Nothing);
        self.has_given |= is_lent;
        is_lent
    }

    /// Waits until no transport reads or writes memory of this run. If the process of a rank has
    /// ended, it no longer uses the memory, but the transport cannot know that. The memory is then
    /// never freed.
    ///
    /// # Errors
    /// If a rank that borrowed some of the memory was lost.
    fn take_back(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
    ) -> Result<(), Lost> {
        if self.borrowers.is_empty() {
            return Ok(());
        }
        let (mut pause, mut lost, mut told) = (Pause::new(), None, false);
        for &peer in &self.borrowers {
            loop {
                match endpoint.lent(peer) {
                    Lent::Nothing => break,
                    Lent::ForGood => {
                        for window in windows {
                            window.region.stay_for_good();
                            std::mem::forget(window.region.clone());
                        }
                        self.has_given = true;
                        lost = lost.or_else(|| endpoint.lost(peer));
                        break;
                    }
                    Lent::InUse => {}
                }
                // A rank that has left still receives what was sent to it, and a silent rank may be
                // alive.
                let is_over = |lost: &Lost| matches!(lost.how, Loss::Died(_) | Loss::Ended(_));
                if lost.is_none()
                    && let Some(found) = endpoint.lost(peer).filter(is_over)
                {
                    told = !matches!(found.how, Loss::Died(_)); // the job goes on after an error
                    lost = Some(world.end_for(endpoint, found));
                }
                if let Some(lost) = lost.as_ref().filter(|_| pause.lasts() && !told) {
                    told = true;
                    environment::print(&format!(
                        "rank {}: {lost}: {} can't return as long as MPI uses its windows for rank {peer}, and the job ends after FENCEPOST_GRACE",
                        self.rank,
                        call.describe(windows)
                    ));
                }
                world.advance(endpoint);
                endpoint.idle(&mut pause);
            }
        }
        lost.map_or(Ok(()), Err)
    }

    /// Enters the superstep on this rank.
    #[inline(always)]
    fn enter(&mut self, world: &WorldCore, endpoint: &mut Endpoint, windows: &[&WindowCore], call: &Call) {
        world.calls.sites.enter(self.rank, call.site, windows.iter().map(|window| window.key.window));
        self.exposed.clear();
        self.stopped = None;
        if self.is_apart() {
            // Other ranks of the world do not take part. They neither count this run nor are
            // notified of it.
            let windows = windows.iter().map(|window| window.key.window);
            let hash = world.calls.key.with(world.calls.key.word_of(call.hash, windows, 0), self.keyed);
            let (number, rest) = (u64::from(self.number()), (hash >> 32) as u32);
            self.progress = Progress { word: number << 32 | hash & 0xffff_ffff, rest, at: 0, offered: 0 };
            return;
        }
        let hash = world.calls.key.with(hash(world, call, windows), self.keyed);
        world.fence.ran.set(world.fence.ran.get().rotate_left(7) ^ hash);
        let (word, rest) = (world.calls.next_word(hash as u32), (hash >> 32) as u32);
        endpoint.announce(word);
        self.progress = Progress { word, rest, at: 0, offered: 0 };
    }

    /// Returns the number of this run, counted from 1 by the plan.
    fn number(&self) -> u32 {
        self.runs.wrapping_add(1) as u32
    }

    /// Runs the steps that are left. If `WAITS` is false, stops before the first step that has to
    /// wait.
    #[inline(always)]
    fn go<const WAITS: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        about: (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        // An outer run that is waiting may already have declared that this rank touches memory, and
        // will still touch memory after this run.
        let declared = self.touches.then(|| world.life.touching(endpoint, true)).flatten();
        if declared == Some(false) {
            return Err(endpoint.lost(self.rank).map_or(Stop::Other(self.rank), Stop::Lost));
        }
        // The port of fences is a compile-time constant, so that a frame on it costs no look-up.
        let went = if self.is_apart() {
            self.steps::<WAITS, true>(world, endpoint, about)
        } else {
            self.steps::<WAITS, false>(world, endpoint, about)
        };
        if declared.is_some() {
            world.life.touching(endpoint, false);
        }
        went
    }

    /// Ends the run, which is complete or cannot continue, depending on `went`.
    #[inline(always)]
    fn over(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
        went: Result<(), Stop>,
    ) -> Result<()> {
        self.give_up(endpoint);
        let went = went.and(self.take_back(world, endpoint, (windows, call)).map_err(Stop::Lost));
        self.runs += 1;
        match went {
            Ok(()) => {
                world.note_run(windows, call, &self.share);
                Ok(())
            }
            Err(stop) => Err(self.fail(world, endpoint, windows, call, stop)),
        }
    }

    /// Ends the world, since the run cannot continue, and waits until no rank touches this rank's
    /// windows.
    fn fail(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        windows: &[&WindowCore],
        call: &Call,
        stop: Stop,
    ) -> Error {
        let own = call.describe(windows);
        let error = match stop {
            Stop::Lost(lost) => {
                let lost = world.end_for(endpoint, lost);
                world.lost(&lost, call)
            }
            Stop::Other(peer) => {
                let theirs = elsewhere(world, endpoint, windows, call, peer);
                let what = format!("rank {} is in {own}, and rank {peer} is in {theirs}", self.rank);
                world.calls.sites.end(ErrorClass::RmaSync);
                world.die_of(endpoint, Cause { rank: peer, what: what.clone() });
                let must = if self.is_apart() {
                    "ranks that exchange something in a superstep must run it equally often, with the same windows"
                } else {
                    "all ranks must enter the same supersteps with the same windows in the same order"
                };
                call.error(world, ErrorClass::RmaSync, format!("{what}: {must}")).ending_world()
            }
        };
        for peer in self.exposed.drain(..) {
            untouched_by(world, endpoint, windows, call, peer);
        }
        error.leaving(State::Mixed)
    }

    /// Gives up this superstep because of `error`, before any element was moved, and ends the
    /// world.
    pub(crate) fn abandon(&mut self, world: &WorldCore, error: &Error) {
        let what = format!("rank {} left a prepared superstep: {error}", self.rank);
        world.die_of(&mut world.endpoint.borrow_mut(), Cause { rank: self.rank, what });
    }
}
