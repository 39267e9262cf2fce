//! [`Executable`]: one rank's program of a verified schedule, bound to its place in a world, and
//! the loop that runs it.
//!
//! The loop decides nothing and allocates nothing: peers, buffers and parts were resolved when the
//! program was bound. The schedule contains what makes it sound to touch others' memory, and the
//! verifier has shown it (W1 to W4). Only what no schedule can know is handled here: a rank that is
//! in another superstep, failed or gone.
//!
//! Every frame carries the word of the superstep and the rest of its hash, and every await compares
//! both (W1). A run that fails ends the world, because ranks further away may have gone on. It
//! returns only when no other rank can touch this rank's windows any more.
//!
//! # Posts and starts
//!
//! A schedule that synchronises by posts and starts is run by its partners alone. Its frames go by
//! a port of its own. Its word contains the number of the run, counted by the plan, where that of
//! other schedules contains the number of the superstep in the world. The waits are those of the
//! schedule, and hold for these reasons:
//! - W1: an entry's word contains the plan, the run and the windows, and is compared before memory
//!   is touched. The n-th frames of a pair on the port are those of the n-th run of each, since
//!   frames are first in, first out and a run takes all of its own. If a rank does something else,
//!   its other frames cannot reveal that: the wait for it is a stall, and not an error.
//! - W2, W3: these concern steps of this rank alone, and dones. A run of another plan in between
//!   changes neither, since it has no window of this one (the windows are owned by the run).
//! - W4, W5: releases and frames are counted on the port, so frames of other plans and fences do
//!   not count.
//! - W6: a run leaves no frame on its port, and touches no other port; a rank without steps has no
//!   frames to leave.
//!
//! Runs that were begun make progress while the rank waits in any call of the world
//! ([`InFlight`](crate::state::supersteps::InFlight)): in the order of their programs, as far as
//! that is possible without waiting. So two ranks may finish two runs in opposite orders, even if
//! each has sends and dones left in both.

//!
//! # Payloads that stay where they are
//!
//! Over MPI a long payload is sent from the window or the buffer that has it, and received at its
//! destination, while the run goes on. A frame is copied to its reader nevertheless, so releases
//! and frames count as before (W4, W5), and the word is compared before its payload is unpacked
//! (W1). What W2 requires of a copied payload must hold until MPI has sent it: [`loans`] leaves
//! those payloads in place that nothing of the run writes afterwards. Places for payloads are
//! offered as over TCP ([`preposts`]). The run returns when all is [taken
//! back](Executable::take_back), so its windows and buffers are then the rank's own again.

mod bind;
mod loans;
mod preposts;
mod step;

#[cfg(test)]
pub(crate) use bind::lead;
pub(crate) use bind::{Executable, takes_slice};

use crate::collect::limits::earlier;
use crate::kernel;
use crate::kernel::waits::{Wait, without};
use crate::protocol::call::hash;
use crate::protocol::exchange::untouched_by;
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, Watch, elsewhere};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::environment;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use bind::{Progress, Stop};
use fencepost_planner::Result;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ir::schedule::Frame;
use fencepost_planner::{Error, ErrorClass, State};
use fencepost_transport::{Cause, Channels, Endpoint, Header, Lent, Liveness, Loss, Lost, Pause, Port};
use preposts::Prepost;
use step::{Step, Where};

impl Executable {
    /// Runs the program once. `windows` were checked.
    pub(crate) fn run(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let guard = AbortOnUnwind("a prepared superstep");
        let endpoint = &mut *world.endpoint.borrow_mut();
        self.enter(world, endpoint, windows, call);
        let went = self.go::<true>(world, endpoint, (windows, call));
        let result = self.over(world, endpoint, (windows, call), went);
        guard.over();
        result
    }

    /// Runs the program up to the first step that would have to wait.
    ///
    /// [`finish`](Self::finish) runs the rest, with the same windows. Until then this rank neither
    /// reads nor writes the elements that its program, or a peer's, touches.
    pub(crate) fn begin(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let guard = AbortOnUnwind("a prepared superstep");
        let endpoint = &mut *world.endpoint.borrow_mut();
        self.enter(world, endpoint, windows, call);
        let result = match self.go::<false>(world, endpoint, (windows, call)) {
            Ok(()) => Ok(()),
            went => self.over(world, endpoint, (windows, call), went),
        };
        guard.over();
        result
    }

    /// Runs what [`begin`](Self::begin) has left.
    pub(crate) fn finish(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let guard = AbortOnUnwind("a prepared superstep");
        let endpoint = &mut *world.endpoint.borrow_mut();
        let went = match self.stopped.take() {
            Some(stop) => Err(stop),
            None => self.go::<true>(world, endpoint, (windows, call)),
        };
        let result = self.over(world, endpoint, (windows, call), went);
        guard.over();
        result
    }

    /// Continues a run that was begun, up to the first step that would have to wait, while this
    /// rank waits for something else.
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

    /// Gives up a run that was begun: nothing is written to its windows for this rank any more,
    /// except to windows that are [lent](Self::leave_lent) in part.
    pub(crate) fn give_up(&mut self, endpoint: &mut Endpoint) {
        self.preposts[..self.progress.offered]
            .iter()
            .for_each(|prepost| endpoint.cancel(prepost.peer, Port::FENCE));
    }

    /// Leaves a run that will not end. Returns whether a transport still reads or writes memory of
    /// it: in that case the buffers stay for good, and so must the windows.
    pub(crate) fn leave_lent(&mut self, endpoint: &mut Endpoint) -> bool {
        let is_lent = self.borrowers.iter().any(|&peer| endpoint.lent(peer) != Lent::Nothing);
        self.has_given |= is_lent;
        is_lent
    }

    /// Waits until no transport reads or writes memory of this run. If a rank's process has ended,
    /// nobody does any more, but the transport was not notified: the memory then stays where it is
    /// for good.
    ///
    /// # Errors
    /// A rank that borrowed some of it was lost.
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
                // A rank that has left still receives what was sent to it; one that is silent may
                // be alive.
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
        world.call_sites.enter(self.rank, call.site, windows.iter().map(|window| window.key.window));
        self.exposed.clear();
        self.stopped = None;
        if self.is_apart() {
            // Other ranks of the world are elsewhere; they neither count this run nor are notified
            // of it.
            let windows = windows.iter().map(|window| window.key.window);
            let hash = world.key.with(world.key.word_of(call.hash, windows, 0), self.keyed);
            let (number, rest) = (u64::from(self.number()), (hash >> 32) as u32);
            self.progress = Progress { word: number << 32 | hash & 0xffff_ffff, rest, at: 0, offered: 0 };
            return;
        }
        let hash = world.key.with(hash(world, call, windows), self.keyed);
        world.ran.set(world.ran.get().rotate_left(7) ^ hash);
        let (word, rest) = (world.next_word(hash as u32), (hash >> 32) as u32);
        endpoint.announce(word);
        self.progress = Progress { word, rest, at: 0, offered: 0 };
    }

    /// Returns the number of this run, counted from 1 by the plan.
    fn number(&self) -> u32 {
        self.runs.wrapping_add(1) as u32
    }

    /// Counts a frame that was posted to `to`, and returns its number on the port.
    #[inline(always)]
    fn posted<const APART: bool>(&mut self, world: &WorldCore, to: usize) -> u64 {
        if !APART {
            return world.posted(to);
        }
        self.posts[to] += 1;
        self.posts[to] - 1
    }

    /// Runs the steps that are left: all of them, or if it never `WAITS`, those before the first
    /// that would have to.
    #[inline(always)]
    fn go<const WAITS: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        about: (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        // An outer run that is waiting may already have declared it and will still touch memory
        // after this run.
        let declared = self.touches.then(|| world.touching(endpoint, true)).flatten();
        if declared == Some(false) {
            return Err(endpoint.lost(self.rank).map_or(Stop::Other(self.rank), Stop::Lost));
        }
        // The port of fences is a constant for the compiler, since a frame by it costs no look-up.
        let went = if self.is_apart() {
            self.steps::<WAITS, true>(world, endpoint, about)
        } else {
            self.steps::<WAITS, false>(world, endpoint, about)
        };
        if declared.is_some() {
            world.touching(endpoint, false);
        }
        went
    }

    /// Ends the run, which `went` through or cannot continue.
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

    fn steps<const WAITS: bool, const APART: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        let Progress { word, rest, at: first, .. } = self.progress;
        let port = if APART { self.port } else { Port::FENCE };
        let number = APART.then(|| self.number());
        let head = |kind: u32| header(word, kind, rest);
        for at in first..self.steps.len() {
            while let Some(Prepost { peer, ahead, window, bytes, .. }) =
                self.preposts.get(self.progress.offered).filter(|prepost| prepost.before == at)
            {
                // SAFETY: there are as many bytes at that place, as for unpacking. Neither this
                // program touches them before it unpacks this frame, nor anybody else, as it
                // exposes nothing, and this rank lends nobody what its program writes while a run
                // is begun; and they are there until the offer is withdrawn, which it is before the
                // windows of this run are dropped.
                unsafe {
                    let to = windows[*window].region.base().add(bytes.start);
                    endpoint.prepost(*peer, Port::FENCE, *ahead, head(kind::PAYLOAD), to, bytes.len());
                }
                self.progress.offered += 1;
            }
            match &self.steps[at] {
                Step::Expose(peer) => {
                    self.exposed.push(*peer);
                    let peer = *peer;
                    self.note::<APART>(world, endpoint, peer, head(kind::ENTRY))?;
                }
                Step::Reclaim(buffer) => {
                    let bound = &mut self.buffers[*buffer];
                    if let Some(frame) = *bound.last(self.runs)
                        && bound.released <= frame
                    {
                        let peer = bound.peer;
                        let awaited = Awaited::One("releases of a buffer");
                        let watch = || Watch::new(world, call, windows, peer, awaited).of_run(number);
                        let about = (world, word);
                        let released =
                            look_for::<WAITS, APART, _>(endpoint, about, peer, watch, |endpoint| {
                                bound.released = endpoint.released(peer, port);
                                if bound.released > frame {
                                    Ok(Some(()))
                                } else {
                                    endpoint.lost(peer).map_or(Ok(None), Err)
                                }
                            })?;
                        if released.is_none() {
                            self.stay(endpoint, at);
                            return Ok(());
                        }
                    }
                }
                Step::Pack { from, count, size, buffer, at } => {
                    let bound = &mut self.buffers[*buffer];
                    let to = bound.memory.at(bound.copy(self.runs) + at, count * size);
                    match from {
                        // SAFETY: the verifier has shown that the datatype needs no more than
                        // `least_len` elements, which the window has, and that nobody writes them
                        // before this step (W2); the buffer is this rank's and was released by its
                        // last reader (W4).
                        Where::Window(_, window, datatype) => unsafe {
                            kernel::pack(windows[*window].region.base(), datatype, *size, to)
                        },
                        Where::Local { start, .. } => {
                            let bytes = &self.locals[*start..*start + count * size];
                            // SAFETY: `to` is room for as many bytes, of another allocation.
                            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
                        }
                    }
                }
                Step::Combine { from, into, op, element, buffer, at } => {
                    let bound = &mut self.buffers[*buffer];
                    let to = bound.memory.at(bound.copy(self.runs) + at, bound.bytes - at);
                    match from {
                        // SAFETY: as for `Pack`; the verifier has shown that `into` is within what
                        // was packed into the buffer in this run, and that the operator takes the
                        // element.
                        Where::Window(_, window, datatype) => unsafe {
                            let from = windows[*window].region.base();
                            kernel::combine_copy(*op, *element, from, datatype, to, into)
                        },
                        Where::Local { start, .. } => {
                            let from = self.locals[*start..].as_ptr();
                            // SAFETY: the part is in `locals`, of another allocation; the rest as
                            // above.
                            unsafe { kernel::combine(*op, *element, to, into, from) };
                        }
                    }
                }
                Step::Send { buffer, at, bytes, stays } => {
                    let bound = &mut self.buffers[*buffer];
                    let payload = bound.memory.at(bound.copy(self.runs) + at, *bytes);
                    // A payload that is not copied by its post stays unchanged until `released`
                    // counts this frame: a `Reclaim`, or a frame of the peer that it sent after
                    // releasing, comes before the buffer is packed again, as the verifier has shown
                    // (W4). When the executable is dropped the endpoint keeps the memory until
                    // then. A payload that `stays` is not packed again in this run, which takes it
                    // back at its end.
                    // SAFETY: as argued above, the payload is readable and unchanged for as long as
                    // it may be read.
                    unsafe {
                        if *stays {
                            endpoint.post_in_place(bound.peer, port, head(kind::PAYLOAD), payload, *bytes)
                        } else {
                            endpoint.post_copy(bound.peer, port, head(kind::PAYLOAD), payload, *bytes)
                        }
                    }?;
                    let (buffer, bytes, peer) = (*buffer, *bytes, bound.peer);
                    let frame = self.posted::<APART>(world, peer);
                    *self.buffers[buffer].last(self.runs) = Some(frame);
                    world.count_sent(bytes, 0);
                }
                Step::SendInPlace { window, first, buffer, bytes, stays } => {
                    let bound = &mut self.buffers[*buffer];
                    // SAFETY: as for packing.
                    let payload = unsafe { windows[*window].region.base().add(*first) };
                    // SAFETY: there are as many elements at that place; they are copied, or stay
                    // unchanged until they are taken back.
                    unsafe {
                        if *stays {
                            endpoint.post_in_place(bound.peer, port, head(kind::PAYLOAD), payload, *bytes)
                        } else {
                            endpoint.post(bound.peer, port, head(kind::PAYLOAD), payload, *bytes)
                        }
                    }?;
                    let (buffer, bytes, peer) = (*buffer, *bytes, bound.peer);
                    let frame = self.posted::<APART>(world, peer);
                    *self.buffers[buffer].last(self.runs) = Some(frame);
                    world.count_sent(bytes, 0);
                }
                Step::Await(peer, frame) => {
                    let steps = &self.steps;
                    let counts = || (awaits(&steps[..at]), awaits(steps));
                    let awaited = Awaited::Frames(&counts);
                    let watch = || Watch::new(world, call, windows, *peer, awaited).of_run(number);
                    let look = |endpoint: &mut Endpoint| {
                        if APART { endpoint.poll(*peer, port) } else { world.poll(endpoint, *peer) }
                    };
                    let about = (world, word);
                    if WAITS {
                        endpoint.look_for_frame(*peer, if APART { port } else { Port::FENCE });
                    }
                    let Some(arrival) = look_for::<WAITS, APART, _>(endpoint, about, *peer, watch, look)?
                    else {
                        self.stay(endpoint, at);
                        return Ok(());
                    };
                    let (said, word_kept) = (arrival.header, !without(Wait::Word));
                    let is = |kind| if word_kept { said == head(kind) } else { said.kind == kind };
                    let good = match frame {
                        Frame::Entry => is(kind::ENTRY) && arrival.len == 0,
                        Frame::Done => is(kind::DONE) && arrival.len == 0,
                        Frame::Data { bytes } => is(kind::PAYLOAD) && arrival.len as u64 == *bytes,
                    };
                    if !good {
                        return Err(Stop::Other(*peer));
                    }
                    match frame {
                        Frame::Data { .. } => self.open[*peer] = Some(arrival),
                        Frame::Entry => endpoint.release(*peer, port),
                        Frame::Done => {
                            endpoint.release(*peer, port);
                            self.exposed.retain(|other| other != peer);
                        }
                    }
                }
                // SAFETY: as the verifier has shown: both parts are in their windows, the owner has
                // exposed itself and waits until this rank is done (W1, W3), and every read of what
                // is written is over (W2).
                Step::Copy { from, to, op, element } => unsafe {
                    copy(&mut self.locals, windows, from, to, *op, *element)
                },
                Step::Unpack { peer, at, to, op, element } => {
                    let Some(arrival) = self.open[*peer] else { return Err(Stop::Other(*peer)) };
                    // SAFETY: the frame is open and as long as the await requires, which the
                    // verifier has compared with what is unpacked from it; the rest as above.
                    unsafe { unpack(&mut self.locals, windows, arrival.payload.add(*at), to, *op, *element) };
                }
                Step::Release(peer) => {
                    self.open[*peer] = None;
                    endpoint.release(*peer, port);
                }
                Step::Done(peer) => {
                    let peer = *peer;
                    self.note::<APART>(world, endpoint, peer, head(kind::DONE))?;
                }
            }
        }
        self.stay(endpoint, self.steps.len());
        Ok(())
    }

    /// Stops before step `at`, since this rank does something else first.
    #[inline(always)]
    fn stay(&mut self, endpoint: &mut Endpoint, at: usize) {
        let went_on = std::mem::replace(&mut self.progress.at, at) != at;
        if self.gathers && went_on {
            endpoint.flush(); // other ranks need not wait until this one has done what it does next
        }
    }

    /// Posts a frame without a payload.
    #[inline(always)]
    fn note<const APART: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        peer: usize,
        head: Header,
    ) -> Result<(), Lost> {
        let port = if APART { self.port } else { Port::FENCE };
        // SAFETY: there is no payload.
        unsafe { endpoint.post(peer, port, head, std::ptr::NonNull::<u8>::dangling().as_ptr(), 0) }?;
        self.posted::<APART>(world, peer);
        Ok(())
    }

    /// Ends the world, since the run cannot continue, and waits until nobody touches this rank's
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
                world.call_sites.end(ErrorClass::RmaSync);
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

    /// Gives up this superstep before it moved anything, because of `error`, and with it the world.
    pub(crate) fn abandon(&mut self, world: &WorldCore, error: &Error) {
        let what = format!("rank {} left a prepared superstep: {error}", self.rank);
        world.die_of(&mut world.endpoint.borrow_mut(), Cause { rank: self.rank, what });
    }
}

/// Looks once for something from `peer`, or, if this rank `WAITS`, until it is there.
#[inline(always)]
fn look_for<'w, const WAITS: bool, const APART: bool, R>(
    endpoint: &mut Endpoint,
    about: (&WorldCore, u64),
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<Option<R>, Stop> {
    if WAITS {
        wait_for::<APART, _>(endpoint, about, peer, watch, look).map(Some)
    } else {
        Ok(look(endpoint)?)
    }
}

/// Waits for something from `peer`, in the superstep of this word. Notices when the peer is
/// elsewhere and will not send it, unless the superstep is `APART` from those that ranks announce.
/// All that this rank has begun makes progress meanwhile. Inlined: as a function of its own it
/// costs a twentieth of a small halo.
#[inline(always)]
fn wait_for<'w, const APART: bool, R>(
    endpoint: &mut Endpoint,
    about: (&WorldCore, u64),
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Stop> {
    if let Some(found) = look(endpoint)? {
        return Ok(found);
    }
    let (world, word) = about;
    let (mut pause, mut watch) = (Pause::new(), watch());
    loop {
        let lasts = pause.lasts();
        if lasts {
            watch.woke(endpoint);
        }
        if pause.is_due(lasts) {
            world.notice(endpoint, (!APART).then_some((word >> 32) as u32));
        }
        world.advance(endpoint);
        // A peer that has entered a later superstep, or another one in place of this one, has
        // posted all that it ever will for this one.
        let at = endpoint.announced(peer);
        let elsewhere = !APART && at != word && !earlier(at, word);
        if let Some(found) = look(endpoint).map_err(|lost| watch.blame(endpoint, lost))? {
            return Ok(found);
        }
        if elsewhere && endpoint.drained(peer) && !without(Wait::Word) {
            return Err(Stop::Other(peer));
        }
        if lasts {
            watch.missed(endpoint);
        }
        endpoint.idle(&mut pause);
    }
}

/// Returns the number of frames that these steps await.
fn awaits(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Await(..))).count()
}

/// Returns the first byte of an owner's part of a window.
fn base(windows: &[&WindowCore], owner: usize, window: usize) -> *mut u8 {
    windows[window].peers[owner].base
}

/// # Safety
/// Both parts are in memory that may be touched now; the destination is not read by others.
unsafe fn copy(
    locals: &mut [u8],
    windows: &[&WindowCore],
    from: &Where,
    to: &Where,
    op: Option<Op>,
    element: ElementType,
) {
    let size = element.size as usize;
    match (from, to) {
        (Where::Window(a, w, source), Where::Window(b, v, target)) => {
            let (from, to) = (base(windows, *a, *w), base(windows, *b, *v));
            match op {
                // SAFETY: the caller guarantees it.
                None => unsafe { kernel::copy(from, source, to, target, size) },
                // SAFETY: the caller guarantees it, and the operator takes the element, as the
                // verifier has checked.
                Some(op) => unsafe { kernel::combine_copy(op, element, from, source, to, target) },
            }
        }
        (Where::Local { start, .. }, to) => {
            let from = locals[*start..].as_ptr();
            // SAFETY: the caller guarantees it; the part is in `locals`.
            unsafe { unpack(locals, windows, from, to, op, element) };
        }
        (Where::Window(owner, window, source), Where::Local { start, bytes }) => {
            let to = &mut locals[*start..*start + *bytes];
            // SAFETY: the caller guarantees it.
            unsafe { kernel::pack(base(windows, *owner, *window), source, size, to.as_mut_ptr()) };
        }
    }
}

/// # Safety
/// `from` has as many elements as `to`; the rest as [`copy`].
unsafe fn unpack(
    locals: &mut [u8],
    windows: &[&WindowCore],
    from: *const u8,
    to: &Where,
    op: Option<Op>,
    element: ElementType,
) {
    let size = element.size as usize;
    match to {
        Where::Window(owner, window, datatype) => {
            let base = base(windows, *owner, *window);
            let holds_until_fence =
                |start: i64| base.wrapping_offset(start as isize * size as isize).cast_const() == from;
            match op {
                None if datatype.as_run().is_some_and(|run| holds_until_fence(run.start)) => {} // it was offered this place
                // SAFETY: the caller guarantees it.
                None => unsafe { kernel::unpack(from, base, datatype, size) },
                // SAFETY: the caller guarantees it, and the operator takes the element, as the
                // verifier has checked.
                Some(op) => unsafe { kernel::combine(op, element, base, datatype, from) },
            }
        }
        // SAFETY: the part is in `locals`: its length was laid out for the operation.
        Where::Local { start, bytes } => unsafe {
            std::ptr::copy(from, locals[*start..*start + *bytes].as_mut_ptr(), *bytes)
        },
    }
}
