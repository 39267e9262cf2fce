//! [`Executable`]: one rank's program of a verified schedule, bound to its place in a world, and the loop that runs it.
//!
//! The loop decides nothing and allocates nothing: peers, buffers and parts were resolved when the program was bound.
//! What makes it sound to touch others' memory is in the schedule and was shown by the verifier (W1 to W4); what no
//! schedule can know is handled here: a rank that is in another superstep, failed or gone.
//!
//! Every frame carries the word of the superstep, and every await compares it (W1). A run that fails ends the world,
//! because ranks further away may have gone on; it returns only when no other rank can touch this rank's windows any more.

use crate::fence::{Call, hash, header, kind};
use crate::kernel;
use crate::transport::{Cause, Endpoint, Frame as Arrival, Lost, Pause, Transport};
use crate::waits::{Wait, without};
use crate::window::WindowCore;
use crate::world::WorldCore;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Pattern};
use fencepost_planner::ir::schedule::{Buffer, Frame, Instruction, Part, Program, Schedule};
use fencepost_planner::plan::Digest;
use fencepost_planner::verify::Verified;
use fencepost_planner::{Class, Error, Result, State};
use std::sync::Arc;

/// A program, bound.
pub(crate) struct Executable {
    schedule: Arc<Verified<Schedule>>,
    rank: usize,
    /// What instructions refer to by number.
    buffers: Vec<Bound>,
    steps: Vec<Step>,
    /// The open data frame of each rank.
    open: Vec<Option<Arrival>>,
    /// Ranks that may touch this rank's windows in this run and have not said that they are done.
    exposed: Vec<usize>,
    /// Whether this program touches memory of others.
    touches: bool,
    runs: u64,
    /// Of the schedule: part of every word.
    digest: Digest,
    /// For each operation, where its own elements begin in `locals`.
    starts: Vec<usize>,
    /// Own buffers of operations: slices given, and elements that gets brought.
    locals: Vec<u8>,
}

/// A send buffer: its copies side by side, and the frame that each was last sent in.
struct Bound {
    peer: usize,
    bytes: usize,
    copies: usize,
    memory: Vec<u8>,
    last: Vec<Option<u64>>,
}

/// An instruction with its peers and parts resolved.
enum Step {
    Expose(usize),
    Reclaim(usize),
    Pack { from: Where, count: usize, size: usize, buffer: usize, at: usize },
    Send { buffer: usize, at: usize, bytes: usize },
    Await(usize, Frame),
    Copy { from: Where, to: Where, op: Option<Op>, element: ElementType },
    Unpack { peer: usize, at: usize, to: Where, op: Option<Op>, element: ElementType },
    Release(usize),
    Done(usize),
}

/// A part, resolved.
enum Where {
    /// Elements of a rank's window.
    Window(usize, usize, fencepost_planner::datatype::Datatype),
    /// Bytes of this rank's `locals`.
    Local { start: usize, bytes: usize },
}

/// A run that can't go on.
enum Stop {
    Lost(Lost),
    /// From this rank came something else than the program awaits.
    Other(usize),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Stop::Lost(lost)
    }
}

impl Executable {
    /// Bind `rank`'s program of `schedule`.
    ///
    /// # Errors
    /// `PLAN` where the schedule is for another number of ranks.
    pub(crate) fn bind(schedule: Arc<Verified<Schedule>>, world: &WorldCore) -> Result<Self> {
        let rank = world.rank;
        if schedule.class_of.len() != world.size {
            return Err(Error::new(
                Class::Plan,
                format!(
                    "the plan is for {} ranks and this world has {}: compile it for {} ranks",
                    schedule.class_of.len(),
                    world.size,
                    world.size
                ),
            )
            .on_rank(rank as u32));
        }
        let program = &schedule.classes[schedule.class_of[rank]];
        let resolve = Resolve { rank, ranks: world.size as u32, schedule: &schedule, program };
        let (starts, locals) = resolve.locals()?;
        let (buffers, steps) = (resolve.buffers()?, resolve.steps(&starts)?);
        let touches = steps.iter().any(|step| match step {
            Step::Copy { from, to, .. } => {
                [from, to].iter().any(|part| matches!(part, Where::Window(owner, ..) if *owner != rank))
            }
            _ => false,
        });
        let exposed = Vec::with_capacity(steps.iter().filter(|step| matches!(step, Step::Expose(_))).count());
        let digest = schedule.digest();
        Ok(Self {
            rank,
            buffers,
            steps,
            open: (0..world.size).map(|_| None).collect(),
            exposed,
            touches,
            runs: 0,
            digest,
            starts,
            locals: vec![0; locals],
            schedule,
        })
    }

    /// Run the program of another schedule for the same calls from here on, which nobody has verified.
    #[cfg(test)]
    pub(crate) fn damage(&mut self, schedule: &Schedule) -> Result<()> {
        let program = &schedule.classes[schedule.class_of[self.rank]];
        assert_eq!(program.pattern, *self.pattern(), "other calls");
        let resolve = Resolve { rank: self.rank, ranks: schedule.class_of.len() as u32, schedule, program };
        (self.buffers, self.steps) = (resolve.buffers()?, resolve.steps(&self.starts)?);
        Ok(())
    }

    /// What the rank's calls ask for.
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.program().pattern
    }

    pub(crate) fn program(&self) -> &Program {
        &self.schedule.classes[self.schedule.class_of[self.rank]]
    }

    pub(crate) fn schedule(&self) -> &Verified<Schedule> {
        &self.schedule
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// The own buffer of an operation.
    pub(crate) fn local_mut(&mut self, operation: OperationId, bytes: usize) -> &mut [u8] {
        let start = self.starts[operation.index()];
        &mut self.locals[start..start + bytes]
    }

    /// Whether these windows are what the program needs.
    pub(crate) fn check(&self, windows: &[&WindowCore], call: &Call, world: &WorldCore) -> Result<()> {
        let program = self.program();
        if windows.len() != self.schedule.windows.len() {
            let message = format!(
                "the plan is for {} windows, and {} are given",
                self.schedule.windows.len(),
                windows.len()
            );
            return Err(call.error(world, Class::Win, message));
        }
        for (i, window) in windows.iter().enumerate() {
            let id = WindowId::new(i);
            let error = |class, message: String| Err(call.error(world, class, message));
            if window.key.world != world.id {
                return error(Class::Win, format!("window {i} is of another world"));
            }
            if windows[..i].iter().any(|other| other.key == window.key) {
                return error(Class::Win, "a window is given twice".into());
            }
            if window.element != self.schedule.windows[id] {
                return error(
                    Class::Type,
                    format!(
                        "window {i} has elements of {:?}, and the plan is for {:?}",
                        window.element, self.schedule.windows[id]
                    ),
                );
            }
            let len = window.peers[world.rank].len;
            if len < program.least_len[id] {
                return error(
                    Class::Size,
                    format!(
                        "window {i} has {len} elements on this rank, and the plan needs at least {}",
                        program.least_len[id]
                    ),
                );
            }
            if window.is_pending() {
                return error(
                    Class::RmaSync,
                    format!(
                        "operations wait for the fence of window {i}: fence it before the superstep begins"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Run the program once. `windows` were checked.
    pub(crate) fn run(&mut self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let word = world.next_word(hash(call, windows) ^ self.digest.short() as u32);
        let endpoint = &mut *world.endpoint.borrow_mut();
        world.board.enter(self.rank, call.site, windows);
        endpoint.announce(word);
        let result = if self.touches && !endpoint.touching(true) {
            Err(endpoint.lost(self.rank).map_or(Stop::Other(self.rank), Stop::Lost))
        } else {
            self.steps(world, endpoint, windows, word)
        };
        if self.touches {
            endpoint.touching(false);
        }
        self.runs += 1;
        match result {
            Ok(()) => Ok(()),
            Err(stop) => Err(self.fail(world, endpoint, windows, call, stop)),
        }
    }

    fn steps(
        &mut self,
        world: &WorldCore,
        endpoint: &mut Endpoint,
        windows: &[&WindowCore],
        word: u64,
    ) -> Result<(), Stop> {
        self.exposed.clear();
        for at in 0..self.steps.len() {
            match &self.steps[at] {
                Step::Expose(peer) => {
                    self.exposed.push(*peer);
                    note(world, endpoint, *peer, word, kind::ENTRY)?;
                }
                Step::Reclaim(buffer) => {
                    let bound = &self.buffers[*buffer];
                    if let Some(frame) = bound.last[(self.runs % bound.copies as u64) as usize] {
                        let peer = bound.peer;
                        wait_for(endpoint, word, peer, |endpoint| {
                            if endpoint.released(peer) > frame {
                                Ok(Some(()))
                            } else {
                                endpoint.lost(peer).map_or(Ok(None), Err)
                            }
                        })?;
                    }
                }
                Step::Pack { from, count, size, buffer, at } => {
                    let bound = &mut self.buffers[*buffer];
                    let copy = (self.runs % bound.copies as u64) as usize * bound.bytes;
                    let to = bound.memory[copy + at..copy + at + count * size].as_mut_ptr();
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
                Step::Send { buffer, at, bytes } => {
                    let bound = &mut self.buffers[*buffer];
                    let copy = (self.runs % bound.copies as u64) as usize;
                    let payload =
                        bound.memory[copy * bound.bytes + at..copy * bound.bytes + at + bytes].as_ptr();
                    // SAFETY: the buffer stays as it is until `released` counts this frame: `Reclaim`, or a frame of
                    // the peer that it sent after releasing, comes before it is packed again, as the verifier has
                    // shown (W4); when the executable is dropped the memory is kept for as long as the run lasts.
                    unsafe { endpoint.post(bound.peer, header(word, kind::PAYLOAD, 0), payload, *bytes) }?;
                    bound.last[copy] = Some(world.posted(bound.peer));
                    world.count_sent(*bytes, 0);
                }
                Step::Await(peer, frame) => {
                    let arrival = wait_for(endpoint, word, *peer, |endpoint| world.poll(endpoint, *peer))?;
                    let good = (arrival.header.word == word || without(Wait::Word))
                        && match frame {
                            Frame::Entry => arrival.header.kind == kind::ENTRY,
                            Frame::Done => arrival.header.kind == kind::DONE,
                            Frame::Data { bytes } => {
                                arrival.header.kind == kind::PAYLOAD && arrival.len as u64 == *bytes
                            }
                        };
                    if !good {
                        return Err(Stop::Other(*peer));
                    }
                    match frame {
                        Frame::Data { .. } => self.open[*peer] = Some(arrival),
                        Frame::Entry => endpoint.release(*peer),
                        Frame::Done => {
                            endpoint.release(*peer);
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
                    endpoint.release(*peer);
                }
                Step::Done(peer) => note(world, endpoint, *peer, word, kind::DONE)?,
            }
        }
        Ok(())
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
                let theirs = world.board.describe(peer);
                let what = format!("rank {} is in {own}, and rank {peer} is in {theirs}", self.rank);
                world.board.end(Class::RmaSync);
                endpoint.end(Cause { rank: peer, what: what.clone() });
                world.ended(&what);
                call.error(world, Class::RmaSync, format!("{what}: all ranks must enter the same supersteps with the same windows in the same order"))
                    .ending_world()
            }
        };
        for peer in self.exposed.drain(..) {
            let mut pause = Pause::new();
            while endpoint.is_touching(peer) {
                endpoint.idle(&mut pause);
            }
        }
        error.leaving(State::Mixed)
    }

    /// Give up this superstep before it moved anything, because of `error`, and with it the world.
    pub(crate) fn abandon(&mut self, world: &WorldCore, error: &Error) {
        let what = format!("rank {} left a prepared superstep: {error}", self.rank);
        world.endpoint.borrow_mut().end(Cause { rank: self.rank, what: what.clone() });
        world.ended(&what);
    }

    /// Memory that others may still read.
    pub(crate) fn into_kept(self) -> impl Iterator<Item = Vec<u8>> {
        self.buffers.into_iter().map(|bound| bound.memory)
    }
}

/// Wait for something of `peer`, and notice when it is elsewhere and will not send it.
fn wait_for<R>(
    endpoint: &mut Endpoint,
    word: u64,
    peer: usize,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Stop> {
    if let Some(found) = look(endpoint)? {
        return Ok(found);
    }
    let mut pause = Pause::new();
    loop {
        // A peer that has entered a later superstep, or another one in this one's place, has posted all that it ever will for this one.
        let at = endpoint.announced(peer);
        let elsewhere = at != word && at >> 32 >= word >> 32;
        if let Some(found) = look(endpoint)? {
            return Ok(found);
        }
        if elsewhere && endpoint.drained(peer) && !without(Wait::Word) {
            return Err(Stop::Other(peer));
        }
        endpoint.idle(&mut pause);
    }
}

/// Post a frame without a payload.
fn note(world: &WorldCore, endpoint: &mut Endpoint, peer: usize, word: u64, kind: u32) -> Result<(), Lost> {
    // SAFETY: there is no payload.
    unsafe { endpoint.post(peer, header(word, kind, 0), std::ptr::NonNull::<u8>::dangling().as_ptr(), 0) }?;
    world.posted(peer);
    Ok(())
}

/// The first byte of an owner's part of a window.
fn base(windows: &[&WindowCore], owner: usize, window: usize) -> *mut u8 {
    windows[window].peers[owner].region.as_ref().map_or(std::ptr::null_mut(), |region| region.base())
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
            match op {
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

/// Turns a program's words into places.
struct Resolve<'a> {
    rank: usize,
    ranks: u32,
    schedule: &'a Schedule,
    program: &'a Program,
}

impl Resolve<'_> {
    fn peer(&self, delta: Delta) -> Result<usize> {
        let peer = delta.from(Rank::new(self.rank), self.ranks);
        peer.map(Id::index).ok_or_else(|| {
            Error::new(Class::Intern, format!("a program names rank {} {delta}, which is none", self.rank))
        })
    }

    /// Where each operation's own elements begin, and how many bytes they are together.
    fn locals(&self) -> Result<(Vec<usize>, usize)> {
        let mut at = 0usize;
        let starts = self.program.pattern.operations.values().map(|operation| {
            let start = at;
            if operation.local == Local::Buffer {
                let size = self.schedule.windows[operation.window].size as usize;
                let bytes = operation.remote.size().checked_mul(size);
                at = bytes
                    .and_then(|bytes| at.checked_add(bytes)?.checked_next_multiple_of(16))
                    .filter(|&end| isize::try_from(end).is_ok())
                    .ok_or_else(|| Error::new(Class::Size, "the calls bring more than any memory holds"))?;
            }
            Ok(start)
        });
        let starts = starts.collect::<Result<_>>()?;
        Ok((starts, at))
    }

    fn buffers(&self) -> Result<Vec<Bound>> {
        let bound = |buffer: &Buffer| {
            let (bytes, copies) = ((buffer.bytes as usize).next_multiple_of(16), buffer.copies as usize);
            let (memory, last) = (vec![0; bytes * copies], vec![None; copies]);
            Ok(Bound { peer: self.peer(buffer.peer)?, bytes, copies, memory, last })
        };
        self.program.buffers.values().map(bound).collect()
    }

    fn steps(&self, starts: &[usize]) -> Result<Vec<Step>> {
        self.program.instructions.iter().map(|instruction| self.step(instruction, starts)).collect()
    }

    fn part(&self, part: &Part, starts: &[usize]) -> Result<Where> {
        Ok(match part {
            Part::Window { owner, window, datatype } => {
                Where::Window(self.peer(*owner)?, window.index(), datatype.clone())
            }
            Part::Operation { operation, first, count } => {
                let asked = &self.program.pattern.operations[*operation];
                let size = self.schedule.windows[asked.window].size as usize;
                Where::Local { start: starts[operation.index()] + first * size, bytes: count * size }
            }
        })
    }

    fn step(&self, instruction: &Instruction, starts: &[usize]) -> Result<Step> {
        Ok(match instruction {
            Instruction::Expose { peer } => Step::Expose(self.peer(*peer)?),
            Instruction::Reclaim { buffer } => Step::Reclaim(buffer.index()),
            Instruction::Pack { from, element, buffer, at } => Step::Pack {
                count: from.len(),
                from: self.part(from, starts)?,
                size: *element as usize,
                buffer: buffer.index(),
                at: *at as usize,
            },
            Instruction::Send { buffer, at, bytes, .. } => {
                Step::Send { buffer: buffer.index(), at: *at as usize, bytes: *bytes as usize }
            }
            Instruction::Await { peer, frame } => Step::Await(self.peer(*peer)?, *frame),
            Instruction::Copy { from, to, op, element } => Step::Copy {
                from: self.part(from, starts)?,
                to: self.part(to, starts)?,
                op: *op,
                element: *element,
            },
            Instruction::Unpack { peer, at, to, op, element } => Step::Unpack {
                peer: self.peer(*peer)?,
                at: *at as usize,
                to: self.part(to, starts)?,
                op: *op,
                element: *element,
            },
            Instruction::Release { peer } => Step::Release(self.peer(*peer)?),
            Instruction::Done { peer } => Step::Done(self.peer(*peer)?),
        })
    }
}

/// Whether an operation has a buffer of its own that the caller fills.
pub(crate) fn takes_slice(kind: Kind, local: &Local) -> bool {
    *local == Local::Buffer && kind != Kind::Get
}
