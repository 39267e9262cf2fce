//! [`Executable`]: one rank's program of a verified schedule, bound to its place in a world, and the loop that runs it.
//!
//! The loop decides nothing and allocates nothing: peers, buffers and parts were resolved when the program was bound.
//! What makes it sound to touch others' memory is in the schedule and was shown by the verifier (W1 to W4); what no
//! schedule can know is handled here: a rank that is in another superstep, failed or gone.
//!
//! Every frame carries the word of the superstep and the rest of its hash, and every await compares both (W1). A run that fails ends the world,
//! because ranks further away may have gone on; it returns only when no other rank can touch this rank's windows any more.

mod bind;
mod preposts;

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
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use bind::{Progress, Step, Where};
use fencepost_planner::Result;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ir::schedule::Frame;
use fencepost_planner::{Error, ErrorClass, State};
use fencepost_transport::{Cause, Channels, Endpoint, Header, Liveness, Lost, Pause, Port};
use preposts::Prepost;

/// A run that can't go on.
enum Stop {
    Lost(Lost),
    /// This rank sent something else than the program awaits.
    Other(usize),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Stop::Lost(lost)
    }
}

impl Executable {
    /// Run the program once. `windows` were checked.
    pub(crate) fn run(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let guard = AbortOnUnwind("a prepared superstep");
        let endpoint = &mut *world.endpoint.borrow_mut();
        self.enter(world, endpoint, windows, call);
        let went = self.go::<true>(world, endpoint, (windows, call));
        let result = self.over(world, endpoint, (windows, call), went);
        guard.over();
        result
    }

    /// Run the program up to the first step that would have to wait. [`finish`](Self::finish) runs the rest, with the
    /// same windows; until then this rank neither reads nor writes what its program, or a peer's, touches of them.
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

    /// Run what [`begin`](Self::begin) has left.
    pub(crate) fn finish(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let guard = AbortOnUnwind("a prepared superstep");
        let endpoint = &mut *world.endpoint.borrow_mut();
        let went = self.go::<true>(world, endpoint, (windows, call));
        let result = self.over(world, endpoint, (windows, call), went);
        guard.over();
        result
    }

    /// A run that was begun is given up: nothing is written to the windows for this rank any more.
    pub(crate) fn give_up(&mut self, endpoint: &mut Endpoint) {
        self.preposts[..self.progress.offered].iter().for_each(|prepost| endpoint.cancel(prepost.peer));
    }

    /// This rank is in the superstep from here on.
    #[inline(always)]
    fn enter(&mut self, world: &WorldCore, endpoint: &mut Endpoint, windows: &[&WindowCore], call: &Call) {
        let hash = world.key.with(hash(world, call, windows), self.keyed);
        world.ran.set(world.ran.get().rotate_left(7) ^ hash);
        let (word, rest) = (world.next_word(hash as u32), (hash >> 32) as u32);
        world.call_sites.enter(self.rank, call.site, windows.iter().map(|window| window.key.window));
        endpoint.announce(word);
        self.exposed.clear();
        self.progress = Progress { word, rest, at: 0, offered: 0 };
    }

    /// Run the steps that are left: all, or where it never `WAITS` those before the first that would have to.
    #[inline(always)]
    fn go<const WAITS: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        about: (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        if self.touches && !endpoint.touching(true) {
            return Err(endpoint.lost(self.rank).map_or(Stop::Other(self.rank), Stop::Lost));
        }
        let went = self.steps::<WAITS>(world, endpoint, about);
        if self.touches {
            endpoint.touching(false);
        }
        went
    }

    /// The run is over: it `went` through, or can't go on.
    #[inline(always)]
    fn over(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
        went: Result<(), Stop>,
    ) -> Result<()> {
        self.give_up(endpoint);
        self.runs += 1;
        match went {
            Ok(()) => {
                world.note_run(windows, call, &self.share);
                Ok(())
            }
            Err(stop) => Err(self.fail(world, endpoint, windows, call, stop)),
        }
    }

    fn steps<const WAITS: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        let Progress { word, rest, at: first, .. } = self.progress;
        let head = |kind: u32| header(word, kind, rest);
        for at in first..self.steps.len() {
            while let Some(Prepost { peer, ahead, window, bytes, .. }) =
                self.preposts.get(self.progress.offered).filter(|prepost| prepost.before == at)
            {
                // SAFETY: as many bytes lie there, as for unpacking. Neither this program touches them before it unpacks
                // this frame, nor anybody else, as it exposes nothing, and this rank lends nobody what its program writes
                // while a run is begun; and they are there until the offer is withdrawn, which it is before the windows
                // of this run are dropped.
                unsafe {
                    let to = windows[*window].region.base().add(bytes.start);
                    endpoint.prepost(*peer, *ahead, head(kind::PAYLOAD), to, bytes.len());
                }
                self.progress.offered += 1;
            }
            match &self.steps[at] {
                Step::Expose(peer) => {
                    self.exposed.push(*peer);
                    note(world, endpoint, *peer, head(kind::ENTRY))?;
                }
                Step::Reclaim(buffer) => {
                    let bound = &mut self.buffers[*buffer];
                    if let Some(frame) = *bound.last(self.runs)
                        && bound.released <= frame
                    {
                        let peer = bound.peer;
                        let awaited = Awaited::One("releases of a buffer");
                        let watch = || Watch::new(world, call, windows, peer, awaited);
                        let released = look_for::<WAITS, _>(endpoint, word, peer, watch, |endpoint| {
                            bound.released = endpoint.released(peer, Port::FENCE);
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
                        // SAFETY: the verifier has shown that the datatype needs no more than `least_len` elements,
                        // which the window has, and that nobody writes them before this step (W2); the buffer is this
                        // rank's and was released by its last reader (W4).
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
                        // SAFETY: as for `Pack`; the verifier has shown that `into` is within what was packed into the
                        // buffer in this run, and that the operator takes the element.
                        Where::Window(_, window, datatype) => unsafe {
                            let from = windows[*window].region.base();
                            kernel::combine_copy(*op, *element, from, datatype, to, into)
                        },
                        Where::Local { start, .. } => {
                            let from = self.locals[*start..].as_ptr();
                            // SAFETY: the part is in `locals`, of another allocation; the rest as above.
                            unsafe { kernel::combine(*op, *element, to, into, from) };
                        }
                    }
                }
                Step::Send { buffer, at, bytes } => {
                    let bound = &mut self.buffers[*buffer];
                    let payload = bound.memory.at(bound.copy(self.runs) + at, *bytes);
                    // SAFETY: the payload is copied as it is posted, or the buffer has the copies of the schedule and
                    // stays as it is until `released` counts this frame: `Reclaim`, or a frame of the peer that it
                    // sent after releasing, comes before it is packed again, as the verifier has shown (W4); when the
                    // executable is dropped the endpoint keeps the memory until then.
                    unsafe {
                        endpoint.post_copy(bound.peer, Port::FENCE, head(kind::PAYLOAD), payload, *bytes)
                    }?;
                    *bound.last(self.runs) = Some(world.posted(bound.peer));
                    world.count_sent(*bytes, 0);
                }
                Step::SendInPlace { window, first, buffer, bytes } => {
                    let bound = &mut self.buffers[*buffer];
                    // SAFETY: as for packing; and the payload is copied as it is posted.
                    let payload = unsafe { windows[*window].region.base().add(*first) };
                    // SAFETY: as many elements lie there.
                    unsafe { endpoint.post(bound.peer, Port::FENCE, head(kind::PAYLOAD), payload, *bytes) }?;
                    *bound.last(self.runs) = Some(world.posted(bound.peer));
                    world.count_sent(*bytes, 0);
                }
                Step::Await(peer, frame) => {
                    let steps = &self.steps;
                    let counts = || (awaits(&steps[..at]), awaits(steps));
                    let watch = || Watch::new(world, call, windows, *peer, Awaited::Frames(&counts));
                    let look = |endpoint: &mut Endpoint| world.poll(endpoint, *peer);
                    let Some(arrival) = look_for::<WAITS, _>(endpoint, word, *peer, watch, look)? else {
                        self.stay(endpoint, at);
                        return Ok(());
                    };
                    let (said, word_kept) = (arrival.header, !without(Wait::Word));
                    let is = |kind| if word_kept { said == head(kind) } else { said.kind == kind };
                    let good = match frame {
                        Frame::Entry => is(kind::ENTRY),
                        Frame::Done => is(kind::DONE),
                        Frame::Data { bytes } => is(kind::PAYLOAD) && arrival.len as u64 == *bytes,
                    };
                    if !good {
                        return Err(Stop::Other(*peer));
                    }
                    match frame {
                        Frame::Data { .. } => self.open[*peer] = Some(arrival),
                        Frame::Entry => endpoint.release(*peer, Port::FENCE),
                        Frame::Done => {
                            endpoint.release(*peer, Port::FENCE);
                            self.exposed.retain(|other| other != peer);
                        }
                    }
                }
                // SAFETY: as the verifier has shown: both parts lie in their windows, the owner has exposed itself and
                // waits until this rank is done (W1, W3), every read of what is written is over (W2).
                Step::Copy { from, to, op, element } => unsafe {
                    copy(&mut self.locals, windows, from, to, *op, *element)
                },
                Step::Unpack { peer, at, to, op, element } => {
                    let Some(arrival) = self.open[*peer] else { return Err(Stop::Other(*peer)) };
                    // SAFETY: the frame is open and as long as the await said, which the verifier has compared with
                    // what is unpacked from it; the rest as above.
                    unsafe { unpack(&mut self.locals, windows, arrival.payload.add(*at), to, *op, *element) };
                }
                Step::Release(peer) => {
                    self.open[*peer] = None;
                    endpoint.release(*peer, Port::FENCE);
                }
                Step::Done(peer) => note(world, endpoint, *peer, head(kind::DONE))?,
            }
        }
        self.stay(endpoint, self.steps.len());
        Ok(())
    }

    /// The next step is this one, and this rank does something else first.
    #[inline(always)]
    fn stay(&mut self, endpoint: &mut Endpoint, at: usize) {
        self.progress.at = at;
        if self.gathers {
            endpoint.flush(); // other ranks need not wait until this one has done what it does next
        }
    }

    /// The run can't go on: end the world, and wait until nobody touches this rank's windows.
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
                endpoint.end(Cause { rank: lost.rank, what: lost.to_string() });
                world.lost(&lost, call)
            }
            Stop::Other(peer) => {
                let theirs = elsewhere(world, endpoint, windows, call, peer);
                let what = format!("rank {} is in {own}, and rank {peer} is in {theirs}", self.rank);
                world.call_sites.end(ErrorClass::RmaSync);
                endpoint.end(Cause { rank: peer, what: what.clone() });
                world.ended(&what);
                call.error(world, ErrorClass::RmaSync, format!("{what}: all ranks must enter the same supersteps with the same windows in the same order"))
                    .ending_world()
            }
        };
        for peer in self.exposed.drain(..) {
            untouched_by(world, endpoint, windows, call, peer);
        }
        error.leaving(State::Mixed)
    }

    /// Give up this superstep before it moved anything, because of `error`, and with it the world.
    pub(crate) fn abandon(&mut self, world: &WorldCore, error: &Error) {
        let what = format!("rank {} left a prepared superstep: {error}", self.rank);
        world.endpoint.borrow_mut().end(Cause { rank: self.rank, what: what.clone() });
        world.ended(&what);
    }
}

/// Look once for something of `peer`, and where this rank `WAITS` until it is there.
#[inline(always)]
fn look_for<'w, const WAITS: bool, R>(
    endpoint: &mut Endpoint,
    word: u64,
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<Option<R>, Stop> {
    if WAITS { wait_for(endpoint, word, peer, watch, look).map(Some) } else { Ok(look(endpoint)?) }
}

/// Wait for something of `peer`, and notice when it is elsewhere and will not send it. In line: as a function of its own it costs a
/// twentieth of a small halo.
#[inline(always)]
fn wait_for<'w, R>(
    endpoint: &mut Endpoint,
    word: u64,
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Stop> {
    if let Some(found) = look(endpoint)? {
        return Ok(found);
    }
    let (mut pause, mut watch) = (Pause::new(), watch());
    loop {
        let lasts = pause.lasts();
        if lasts {
            watch.woke(endpoint);
        }
        // A peer that has entered a later superstep, or another one in this one's place, has posted all that it ever will for this one.
        let at = endpoint.announced(peer);
        let elsewhere = at != word && !earlier(at, word);
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

/// How many frames these steps await.
fn awaits(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Await(..))).count()
}

/// Post a frame without a payload.
fn note(world: &WorldCore, endpoint: &mut Endpoint, peer: usize, head: Header) -> Result<(), Lost> {
    // SAFETY: there is no payload.
    unsafe { endpoint.post(peer, Port::FENCE, head, std::ptr::NonNull::<u8>::dangling().as_ptr(), 0) }?;
    world.posted(peer);
    Ok(())
}

/// The first byte of an owner's part of a window.
fn base(windows: &[&WindowCore], owner: usize, window: usize) -> *mut u8 {
    windows[window].peers[owner].base
}

/// # Safety
/// Both parts lie in memory that may be touched now; the destination is not read by others.
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
                // SAFETY: the caller's.
                None => unsafe { kernel::copy(from, source, to, target, size) },
                // SAFETY: the caller's, and the operator takes the element, as the verifier has seen.
                Some(op) => unsafe { kernel::combine_copy(op, element, from, source, to, target) },
            }
        }
        (Where::Local { start, .. }, to) => {
            let from = locals[*start..].as_ptr();
            // SAFETY: the caller's; the part is in `locals`.
            unsafe { unpack(locals, windows, from, to, op, element) };
        }
        (Where::Window(owner, window, source), Where::Local { start, bytes }) => {
            let to = &mut locals[*start..*start + *bytes];
            // SAFETY: the caller's.
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
                // SAFETY: the caller's.
                None => unsafe { kernel::unpack(from, base, datatype, size) },
                // SAFETY: the caller's, and the operator takes the element, as the verifier has seen.
                Some(op) => unsafe { kernel::combine(op, element, base, datatype, from) },
            }
        }
        // SAFETY: the part is in `locals`: its length was laid out for the operation.
        Where::Local { start, bytes } => unsafe {
            std::ptr::copy(from, locals[*start..*start + *bytes].as_mut_ptr(), *bytes)
        },
    }
}
