//! The loop over the steps of a program, and the effect of each kind of step.

use super::bind::{Executable, Progress, Stop};
use super::preposts::Prepost;
use super::step::{Step, Where};
use crate::collect::limits::earlier;
use crate::kernel;
use crate::kernel::waits::{Wait, without};
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ir::schedule;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Liveness, Lost, Pause, Port};

/// The run that steps belong to.
#[derive(Clone, Copy)]
struct Run<'a> {
    world: &'a WorldCore,
    windows: &'a [&'a WindowCore],
    call: &'a Call,
    port: Port,
    /// The word of the superstep, and the rest of its hash.
    word: u64,
    rest: u32,
    /// The number of the run. `None` if the plan does not count its runs.
    number: Option<u32>,
}

impl<'a> Run<'a> {
    #[inline(always)]
    fn head(&self, kind: u32) -> Header {
        header(self.word, kind, self.rest)
    }

    #[inline(always)]
    fn watch(&self, peer: usize, awaited: Awaited<'a>) -> Watch<'a> {
        Watch::new(self.world, self.call, self.windows, peer, awaited).of_run(self.number)
    }
}

impl Executable {
    /// Runs the steps that are left. If `WAITS` is false, stops before the first step that has to
    /// wait.
    pub(super) fn steps<const WAITS: bool, const APART: bool>(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        (windows, call): (&[&WindowCore], &Call),
    ) -> Result<(), Stop> {
        let Progress { word, rest, at: first, .. } = self.progress;
        let port = if APART { self.port } else { Port::FENCE };
        let number = APART.then(|| self.number());
        let run = Run { world, windows, call, port, word, rest, number };
        for at in first..self.steps.len() {
            self.offer_places(run, endpoint, at);
            match &self.steps[at] {
                &Step::Expose(peer) => {
                    self.exposed.push(peer);
                    self.note::<APART>(run, endpoint, peer, kind::ENTRY)?;
                }
                &Step::Reclaim(buffer) => {
                    if !self.reclaim::<WAITS, APART>(run, endpoint, buffer)? {
                        self.stay(endpoint, at);
                        return Ok(());
                    }
                }
                Step::Pack { from, count, size, buffer, at } => {
                    let to = self.buffers[*buffer].room(self.runs, *at, count * size);
                    // SAFETY: the buffer is this rank's and was released by its last reader (W4).
                    // No rank writes the packed elements before this step (W2).
                    unsafe { pack(&self.locals, windows, from, *count, *size, to) };
                }
                Step::Combine { from, into, op, element, buffer, at } => {
                    let bound = &self.buffers[*buffer];
                    let to = bound.room(self.runs, *at, bound.bytes - at);
                    // SAFETY: as for `Pack`. The verifier has also shown that `into` is within the
                    // elements that were packed into the buffer in this run, and that the operator
                    // takes the element.
                    unsafe { combine(&self.locals, windows, from, *op, *element, into, to) };
                }
                &Step::Send { buffer, at, bytes, stays } => {
                    self.send::<APART>(run, endpoint, (buffer, at), bytes, stays)?;
                }
                &Step::SendInPlace { window, first, buffer, bytes, stays } => {
                    self.send_in_place::<APART>(run, endpoint, (window, first), buffer, bytes, stays)?;
                }
                &Step::Await(peer, frame) => {
                    if !self.receive::<WAITS, APART>(run, endpoint, peer, frame, at)? {
                        self.stay(endpoint, at);
                        return Ok(());
                    }
                }
                // SAFETY: the verifier has shown that both parts are in their windows. It has also
                // shown that the owner has exposed itself and waits until this rank is done (W1,
                // W3), and that every read of the written elements is over (W2).
                Step::Copy { from, to, op, element } => unsafe {
                    copy(&mut self.locals, windows, from, to, *op, *element)
                },
                Step::Unpack { peer, at, to, op, element } => {
                    let Some(arrival) = self.open[*peer] else { return Err(Stop::Other(*peer)) };
                    // SAFETY: the frame is open and has the length that the await requires. The
                    // verifier has compared that length with the elements that are unpacked from
                    // the frame. The rest is as for `Copy`.
                    unsafe { unpack(&mut self.locals, windows, arrival.payload.add(*at), to, *op, *element) };
                }
                &Step::Release(peer) => {
                    self.open[peer] = None;
                    endpoint.release(peer, port);
                }
                &Step::Done(peer) => self.note::<APART>(run, endpoint, peer, kind::DONE)?,
            }
        }
        self.stay(endpoint, self.steps.len());
        Ok(())
    }

    /// Offers the places for payloads that may arrive from step `at` on.
    #[inline(always)]
    fn offer_places(&mut self, run: Run<'_>, endpoint: &mut Endpoint, at: usize) {
        while let Some(Prepost { peer, ahead, window, bytes, .. }) =
            self.preposts.get(self.progress.offered).filter(|prepost| prepost.before == at)
        {
            // SAFETY: the place has the number of bytes of the frame, as for unpacking. This
            // program does not touch these bytes before it unpacks this frame. No other rank
            // touches them, since the program exposes nothing. Until a run that was begun is
            // finished, other code of this rank gets no elements that the program of the run
            // writes. The bytes exist until the offer is withdrawn, which happens before the
            // windows of this run are dropped.
            unsafe {
                let to = run.windows[*window].region.base().add(bytes.start);
                let to = std::ptr::slice_from_raw_parts_mut(to, bytes.len());
                endpoint.prepost(*peer, Port::FENCE, *ahead, run.head(kind::PAYLOAD), to);
            }
            self.progress.offered += 1;
        }
    }

    /// Waits until the reader of a buffer has released the frame that was last sent from that
    /// buffer. Returns whether the frame is released.
    #[inline(always)]
    fn reclaim<const WAITS: bool, const APART: bool>(
        &mut self,
        run: Run<'_>,
        endpoint: &mut Endpoint,
        buffer: usize,
    ) -> Result<bool, Stop> {
        let bound = &mut self.buffers[buffer];
        let Some(frame) = *bound.last(self.runs) else { return Ok(true) };
        if bound.released > frame {
            return Ok(true);
        }
        let peer = bound.peer;
        let watch = || run.watch(peer, Awaited::One("releases of a buffer"));
        let look = |endpoint: &mut Endpoint| {
            bound.released = endpoint.released(peer, run.port);
            if bound.released > frame { Ok(Some(())) } else { endpoint.lost(peer).map_or(Ok(None), Err) }
        };
        let released = look_for::<WAITS, APART, _>(endpoint, run, peer, watch, look)?;
        Ok(released.is_some())
    }

    /// Sends bytes of a buffer.
    ///
    /// A payload that is not copied by its post stays unchanged until `released` counts this frame.
    /// The verifier has shown (W4) that a `Reclaim`, or a frame that the peer sent after it had
    /// released this frame, comes before the buffer is packed again. If the executable is dropped
    /// earlier, the endpoint keeps the memory until the frame is released. A payload that `stays`
    /// is not packed again in this run. At the end of the run, the payload's memory is taken back
    /// from the endpoint.
    #[inline(always)]
    fn send<const APART: bool>(
        &mut self,
        run: Run<'_>,
        endpoint: &mut Endpoint,
        (buffer, at): (usize, usize),
        bytes: usize,
        stays: bool,
    ) -> Result<(), Lost> {
        let bound = &self.buffers[buffer];
        let (peer, payload) = (bound.peer, bound.room(self.runs, at, bytes));
        let frame = Frame { header: run.head(kind::PAYLOAD), payload, len: bytes };
        // SAFETY: the payload is readable, and stays unchanged while it may be read, as the comment
        // on this function shows.
        unsafe {
            if stays {
                endpoint.post_in_place(peer, run.port, frame)
            } else {
                endpoint.post_copy(peer, run.port, frame)
            }
        }?;
        self.sent::<APART>(run, buffer, bytes);
        Ok(())
    }

    /// Sends bytes of this rank's part of a window, beginning with byte `first` of the part.
    #[inline(always)]
    fn send_in_place<const APART: bool>(
        &mut self,
        run: Run<'_>,
        endpoint: &mut Endpoint,
        (window, first): (usize, usize),
        buffer: usize,
        bytes: usize,
        stays: bool,
    ) -> Result<(), Lost> {
        let peer = self.buffers[buffer].peer;
        // SAFETY: as for packing.
        let payload = unsafe { run.windows[window].region.base().add(first) };
        let frame = Frame { header: run.head(kind::PAYLOAD), payload, len: bytes };
        // SAFETY: the place has this number of bytes. The bytes are copied, or stay unchanged until
        // they are taken back.
        unsafe {
            if stays {
                endpoint.post_in_place(peer, run.port, frame)
            } else {
                endpoint.post(peer, run.port, frame)
            }
        }?;
        self.sent::<APART>(run, buffer, bytes);
        Ok(())
    }

    /// Notes that a frame with `bytes` of `buffer` was posted.
    #[inline(always)]
    fn sent<const APART: bool>(&mut self, run: Run<'_>, buffer: usize, bytes: usize) {
        let frame = self.posted::<APART>(run.world, self.buffers[buffer].peer);
        *self.buffers[buffer].last(self.runs) = Some(frame);
        run.world.reports.count_sent(bytes, 0);
    }

    /// Waits for the frame of `peer` that step `at` awaits, and compares its word and its length
    /// with what the step expects. Returns whether the frame has come.
    #[inline(always)]
    fn receive<const WAITS: bool, const APART: bool>(
        &mut self,
        run: Run<'_>,
        endpoint: &mut Endpoint,
        peer: usize,
        frame: schedule::Frame,
        at: usize,
    ) -> Result<bool, Stop> {
        let steps = &self.steps;
        let counts = || (awaits(&steps[..at]), awaits(steps));
        let watch = || run.watch(peer, Awaited::Frames(&counts));
        let look = |endpoint: &mut Endpoint| {
            if APART { endpoint.poll(peer, run.port) } else { run.world.poll(endpoint, peer) }
        };
        if WAITS {
            endpoint.look_for_frame(peer, run.port);
        }
        let Some(arrival) = look_for::<WAITS, APART, _>(endpoint, run, peer, watch, look)? else {
            return Ok(false);
        };
        let (theirs, word_kept) = (arrival.header, !without(Wait::Word));
        let is = |kind| if word_kept { theirs == run.head(kind) } else { theirs.kind == kind };
        let good = match frame {
            schedule::Frame::Entry => is(kind::ENTRY) && arrival.len == 0,
            schedule::Frame::Done => is(kind::DONE) && arrival.len == 0,
            schedule::Frame::Data { bytes } => is(kind::PAYLOAD) && arrival.len as u64 == bytes,
        };
        if !good {
            return Err(Stop::Other(peer));
        }
        match frame {
            schedule::Frame::Data { .. } => self.open[peer] = Some(arrival),
            schedule::Frame::Entry => endpoint.release(peer, run.port),
            schedule::Frame::Done => {
                endpoint.release(peer, run.port);
                self.exposed.retain(|&other| other != peer);
            }
        }
        Ok(true)
    }

    /// Stops before step `at`, so that this rank can do something else first.
    #[inline(always)]
    fn stay(&mut self, endpoint: &mut Endpoint, at: usize) {
        let went_on = std::mem::replace(&mut self.progress.at, at) != at;
        if self.gathers && went_on {
            endpoint.flush(); // other ranks need not wait for this rank's next work
        }
    }

    /// Posts a frame without a payload.
    #[inline(always)]
    fn note<const APART: bool>(
        &mut self,
        run: Run<'_>,
        endpoint: &mut Endpoint,
        peer: usize,
        kind: u32,
    ) -> Result<(), Lost> {
        // SAFETY: there is no payload.
        unsafe { endpoint.post(peer, run.port, Frame::bare(run.head(kind))) }?;
        self.posted::<APART>(run.world, peer);
        Ok(())
    }

    /// Counts a frame that was posted to `to`, and returns its number on the port.
    #[inline(always)]
    fn posted<const APART: bool>(&mut self, world: &WorldCore, to: usize) -> u64 {
        if !APART {
            return world.fence.posted(to);
        }
        self.posts[to] += 1;
        self.posts[to] - 1
    }
}

/// Calls `look` to find something from `peer`. If `WAITS` is true, calls it until it finds
/// something, and otherwise once.
#[inline(always)]
fn look_for<'w, const WAITS: bool, const APART: bool, R>(
    endpoint: &mut Endpoint,
    run: Run<'_>,
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<Option<R>, Stop> {
    if WAITS { wait_for::<APART, _>(endpoint, run, peer, watch, look).map(Some) } else { Ok(look(endpoint)?) }
}

/// Waits for something from `peer` in the superstep of `run`. Returns an error if the peer is in
/// another superstep and will not send anything for this superstep. A superstep that is `APART` is
/// not announced, so this error cannot be found for such a superstep. Meanwhile everything that
/// this rank has begun makes progress. This function is inlined, since calling it costs a twentieth
/// of the time of a small halo.
#[inline(always)]
fn wait_for<'w, const APART: bool, R>(
    endpoint: &mut Endpoint,
    run: Run<'_>,
    peer: usize,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Stop> {
    if let Some(found) = look(endpoint)? {
        return Ok(found);
    }
    let Run { world, word, .. } = run;
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
        // A peer that has entered a later superstep, or another superstep in place of this one,
        // posts nothing more for this superstep.
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

/// Packs a part into a buffer.
///
/// # Safety
/// The part is in its window, and no rank writes it now. `to` is room for the part, and no other
/// code touches that room.
#[inline(always)]
unsafe fn pack(locals: &[u8], windows: &[&WindowCore], from: &Where, count: usize, size: usize, to: *mut u8) {
    match from {
        // SAFETY: the verifier has shown that the datatype needs no more than `least_len` elements,
        // which the window has; the caller guarantees the rest.
        Where::Window(_, window, datatype) => unsafe {
            kernel::pack(windows[*window].region.base(), datatype, size, to)
        },
        Where::Local { start, .. } => {
            let bytes = &locals[*start..*start + count * size];
            // SAFETY: `to` is room for this number of bytes, in another allocation.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }
}

/// Combines a part with elements that are in a buffer.
///
/// # Safety
/// As [`pack`]. In addition, `into` is within the elements that were packed at `to`, and `op` is
/// defined for the element.
#[inline(always)]
unsafe fn combine(
    locals: &[u8],
    windows: &[&WindowCore],
    from: &Where,
    op: Op,
    element: ElementType,
    into: &Datatype,
    to: *mut u8,
) {
    match from {
        // SAFETY: the caller guarantees the conditions of this call.
        Where::Window(_, window, datatype) => unsafe {
            let from = windows[*window].region.base();
            kernel::combine_copy(op, element, from, datatype, to, into)
        },
        Where::Local { start, .. } => {
            let from = locals[*start..].as_ptr();
            // SAFETY: the caller guarantees the conditions of this call; the part is in `locals`,
            // which is another allocation.
            unsafe { kernel::combine(op, element, to, into, from) };
        }
    }
}

/// Copies the part `from` to the part `to`, or combines it with the elements of `to`.
///
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
                // SAFETY: the caller guarantees the conditions of this call.
                None => unsafe { kernel::copy(from, source, to, target, size) },
                // SAFETY: the caller guarantees the conditions of this call. The verifier has
                // checked that the operator takes the element.
                Some(op) => unsafe { kernel::combine_copy(op, element, from, source, to, target) },
            }
        }
        (Where::Local { start, .. }, to) => {
            let from = locals[*start..].as_ptr();
            // SAFETY: the caller guarantees the conditions of this call; the part is in `locals`.
            unsafe { unpack(locals, windows, from, to, op, element) };
        }
        (Where::Window(owner, window, source), Where::Local { start, bytes }) => {
            let to = &mut locals[*start..*start + *bytes];
            // SAFETY: the caller guarantees the conditions of this call.
            unsafe { kernel::pack(base(windows, *owner, *window), source, size, to.as_mut_ptr()) };
        }
    }
}

/// Copies the elements at `from` to a part, or combines them with the elements of the part.
///
/// # Safety
/// `from` has the number of elements of `to`. The rest is as for [`copy`].
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
            let is_in_place =
                |start: i64| base.wrapping_offset(start as isize * size as isize).cast_const() == from;
            match op {
                None if datatype.as_run().is_some_and(|run| is_in_place(run.start)) => {} // received in place
                // SAFETY: the caller guarantees the conditions of this call.
                None => unsafe { kernel::unpack(from, base, datatype, size) },
                // SAFETY: the caller guarantees the conditions of this call. The verifier has
                // checked that the operator takes the element.
                Some(op) => unsafe { kernel::combine(op, element, base, datatype, from) },
            }
        }
        // SAFETY: the part is in `locals`, which has room for the elements of the operation.
        Where::Local { start, bytes } => unsafe {
            std::ptr::copy(from, locals[*start..*start + *bytes].as_mut_ptr(), *bytes)
        },
    }
}
