//! Binding: resolves the names in a program to this rank's peers, buffers and parts, once.

use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use crate::supersteps::execute::loans::loans;
use crate::supersteps::execute::preposts::{Prepost, preposts};
use crate::supersteps::execute::step::{Step, Where};
use fencepost_planner::ids::{Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Pattern};
use fencepost_planner::ir::schedule::{Buffer, Instruction, Part, Program, Schedule};
use fencepost_planner::plan::Digest;
use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{
    Bytes, Channels, Frame as Arrival, Lost, Port, Topology, UNREPORTED, UNREPORTED_BYTES, Until,
};
use std::io::ErrorKind;
use std::sync::Arc;

/// Returns how many runs a sender may be ahead of a reader, if the sender sends `bytes` bytes in
/// messages in each run and nothing flows back.
///
/// The reader reports its releases, without a request, after half of this number of runs. So a
/// sender never waits for a reader that has made as many runs as the sender, and the amount of
/// unread data is bounded. The number is at least 2, even if a cap on staging memory leaves the
/// sender one copy of the data. In that case the transport holds the second copy.
pub(crate) fn lead(bytes: usize) -> usize {
    let runs = 2 * UNREPORTED_BYTES / (bytes as u64).max(1);
    runs.clamp(2, 2 * UNREPORTED) as usize
}

/// A bound program.
pub(crate) struct Executable {
    pub(super) share: Arc<Verified<Share>>,
    pub(super) rank: usize,
    /// The buffers that instructions refer to by number.
    pub(super) buffers: Vec<Bound>,
    pub(super) steps: Vec<Step>,
    /// The places where payloads may be put as they arrive.
    pub(super) preposts: Vec<Prepost>,
    /// The ranks for which a transport may use memory of this run after a call.
    pub(super) borrowers: Vec<usize>,
    /// Whether memory of a run was given to a transport for good.
    pub(super) has_given: bool,
    /// The open data frame of each rank.
    pub(super) open: Vec<Option<Arrival>>,
    /// The ranks that may touch this rank's windows in this run, and have not yet reported that
    /// they are finished.
    pub(super) exposed: Vec<usize>,
    /// Whether this program touches memory of others.
    pub(super) touches: bool,
    /// Whether this program sends messages. A transport may keep messages for a while to send them
    /// together.
    pub(super) gathers: bool,
    pub(super) runs: u64,
    /// The port of the program's frames: the port of all fences, or a separate port.
    pub(super) port: Port,
    /// The number of frames that this program has posted to each rank, if it has a separate port.
    pub(super) posts: Vec<u64>,
    /// The reason why the run cannot continue, if this rank found it while waiting for something
    /// else.
    pub(super) stopped: Option<Stop>,
    /// The progress of this run.
    pub(super) progress: Progress,
    /// The digest of the schedule.
    digest: Digest,
    /// The word of the digest, made with the world's key.
    pub(super) keyed: u64,
    /// For each operation, the index in `locals` at which its elements begin.
    pub(super) starts: Vec<usize>,
    /// The buffers of operations. They contain copies of slices that were passed in, and elements
    /// that were fetched by gets.
    pub(super) locals: Vec<u8>,
}

/// The progress of a run.
#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    /// The word of the superstep, and the rest of its hash.
    pub(super) word: u64,
    pub(super) rest: u32,
    /// The next step.
    pub(super) at: usize,
    /// The number of places that were offered for payloads.
    pub(super) offered: usize,
}

/// A send buffer, with its copies one after another.
///
/// If frames are copied when they are posted, one copy of the buffer is enough. The schedule's
/// waits for the reader then only limit the [`lead`] of the sender (W5), as if the buffer had
/// `lead` copies.
pub(super) struct Bound {
    pub(super) peer: usize,
    pub(super) bytes: usize,
    pub(super) copies: usize,
    pub(super) memory: Bytes,
    /// The number of the last frame of each recent run. The list has one entry for each run that
    /// the reader may be behind.
    pub(super) last: Vec<Option<u64>>,
    /// The number of frames that the reader has released, as of this rank's last query.
    pub(super) released: u64,
}

impl Bound {
    /// Returns where the copy of this run begins.
    pub(super) fn copy(&self, run: u64) -> usize {
        (run % self.copies as u64) as usize * self.bytes
    }

    /// Returns the address of `bytes` bytes of the copy of this run, beginning with byte `at`.
    #[inline(always)]
    pub(super) fn room(&self, run: u64, at: usize, bytes: usize) -> *mut u8 {
        self.memory.at(self.copy(run) + at, bytes)
    }

    /// Returns the entry for the last frame of this run. Entries are reused: before this run has
    /// sent a frame, the entry still has the last frame of the run that was `last.len()` runs
    /// earlier.
    pub(super) fn last(&mut self, run: u64) -> &mut Option<u64> {
        let runs = self.last.len() as u64;
        &mut self.last[(run % runs) as usize]
    }
}

/// The reason why a run cannot continue.
pub(super) enum Stop {
    Lost(Lost),
    /// The rank with this number sent something other than what the program awaits.
    Other(usize),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Stop::Lost(lost)
    }
}

impl Executable {
    /// Binds a rank's share of a schedule whose frames use `port`.
    ///
    /// # Errors
    /// `PLAN` if the schedule is for another number of ranks.
    pub(crate) fn bind(schedule: Verified<Share>, world: &WorldCore, port: Port) -> Result<Self> {
        let rank = world.rank;
        if schedule.class_of.len() != world.size {
            return Err(Error::new(
                ErrorClass::Plan,
                format!(
                    "the plan is for {} ranks and this world has {}: compile it for {} ranks",
                    schedule.class_of.len(),
                    world.size,
                    world.size
                ),
            )
            .on_rank(rank));
        }
        let program = schedule.program();
        let resolve = Resolve { rank, ranks: world.size as u32, schedule: &schedule, program };
        let (starts, locals) = resolve.locals()?;
        let far = |peer: usize| peer != rank && !world.endpoint.borrow().reaches(peer);
        let (buffers, steps) = (resolve.buffers(world, far)?, resolve.steps(&starts)?);
        let mut steps = unpacked(steps, |buffer: usize| far(buffers[buffer].peer));
        let is_apart = port != Port::FENCE;
        // Only on the port of fences is the place of a payload known before its frame arrives.
        let preposts = if is_apart { Vec::new() } else { preposts(rank, &steps, far) };
        let lends_to = |peer: usize| world.endpoint.borrow().lends_to(peer);
        let borrowers = loans(rank, &mut steps, &preposts, |buffer: usize| buffers[buffer].peer, lends_to);
        let touches = steps.iter().any(|step| match step {
            Step::Copy { from, to, .. } => {
                [from, to].iter().any(|part| matches!(part, Where::Window(owner, ..) if *owner != rank))
            }
            _ => false,
        });
        let gathers = steps.iter().any(|step| match step {
            Step::Expose(peer) | Step::Done(peer) | Step::Release(peer) => far(*peer),
            Step::Send { buffer, .. } | Step::SendInPlace { buffer, .. } => far(buffers[*buffer].peer),
            _ => false,
        });
        let exposed = Vec::with_capacity(steps.iter().filter(|step| matches!(step, Step::Expose(_))).count());
        let digest = schedule.digest();
        let quarters = digest
            .0
            .chunks_exact(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let keyed =
            quarters.fold(world.calls.key.word(0), |word, bits| world.calls.key.with(word, u64::from(bits)));
        Ok(Self {
            rank,
            buffers,
            steps,
            preposts,
            borrowers,
            has_given: false,
            open: (0..world.size).map(|_| None).collect(),
            exposed,
            touches,
            gathers,
            runs: 0,
            port,
            posts: if is_apart { vec![0; world.size] } else { Vec::new() },
            stopped: None,
            progress: Progress::default(),
            digest,
            keyed,
            starts,
            locals,
            share: Arc::new(schedule),
        })
    }

    /// Replaces the program by the program of another, unverified schedule for the same calls.
    #[cfg(test)]
    pub(crate) fn damage(&mut self, schedule: &Schedule, world: &WorldCore) -> Result<()> {
        let program = &schedule.classes[schedule.class_of[self.rank]];
        assert_eq!(program.pattern, *self.pattern(), "other calls");
        let resolve = Resolve { rank: self.rank, ranks: world.size as u32, schedule, program };
        let far = |peer: usize| peer != self.rank && !world.endpoint.borrow().reaches(peer);
        (self.buffers, self.steps) = (resolve.buffers(world, far)?, resolve.steps(&self.starts)?);
        self.preposts = Vec::new();
        Ok(())
    }

    /// Returns whether the plan counts its runs separately from the world. Such a plan has a
    /// separate port.
    #[inline(always)]
    pub(crate) fn is_apart(&self) -> bool {
        self.port != Port::FENCE
    }

    pub(crate) fn port(&self) -> Port {
        self.port
    }

    /// Returns the operations of the rank's calls.
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.program().pattern
    }

    pub(crate) fn program(&self) -> &Program {
        self.share.program()
    }

    pub(crate) fn share(&self) -> &Verified<Share> {
        &self.share
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the buffer that belongs to an operation.
    pub(crate) fn local_mut(&mut self, operation: OperationId, bytes: usize) -> &mut [u8] {
        let start = self.starts[operation.index()];
        &mut self.locals[start..start + bytes]
    }

    /// Checks that these windows fit the program.
    pub(crate) fn check(&self, windows: &[&WindowCore], call: &Call, world: &WorldCore) -> Result<()> {
        let program = self.program();
        if windows.len() != self.share.windows.len() {
            let message = format!(
                "the plan is for {} windows, and {} are given",
                self.share.windows.len(),
                windows.len()
            );
            return Err(call.error(world, ErrorClass::Win, message));
        }
        for (i, window) in windows.iter().enumerate() {
            let (id, number) = (WindowId::new(i), window.key.window);
            let error = |class, message: String| Err(call.error(world, class, message));
            if window.key.world != world.id {
                return error(
                    ErrorClass::Win,
                    format!("window {number} of another world is given as window {i} of the plan"),
                );
            }
            if windows[..i].iter().any(|other| other.key == window.key) {
                return error(ErrorClass::Win, format!("window {number} is given twice"));
            }
            if window.element != self.share.windows[id] {
                return error(
                    ErrorClass::Type,
                    format!(
                        "window {number} has elements of {}, and the plan is for {}",
                        window.element, self.share.windows[id]
                    ),
                );
            }
            let len = window.peers[world.rank].len;
            if len < program.least_len[id] {
                return error(
                    ErrorClass::Size,
                    format!(
                        "window {number} has {len} elements on this rank, and the plan needs at least {}: a window for a block has `block.len()` elements, which counts its halo",
                        program.least_len[id]
                    ),
                );
            }
            if window.collecting.is_closed() && self.share.names_window(id) {
                let message = format!(
                    "NOSUCCEED was asserted at the last fence of window {number}: no operation may follow it before the next one"
                );
                return error(ErrorClass::Assert, message);
            }
            if let Some(open) = window.open_since() {
                let message = format!(
                    "{open}: complete the access, or wait for the exposure, before the superstep begins"
                );
                return error(ErrorClass::RmaSync, message);
            }
            if window.is_pending() {
                return error(
                    ErrorClass::RmaSync,
                    format!(
                        "operations wait for the fence of window {number}: fence it before the superstep begins"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Returns the memory that other ranks may still read, and until when it must be kept. The
    /// memory must be kept until its last frame is released, since frames are released in the order
    /// in which they were posted.
    pub(crate) fn into_kept(mut self) -> impl Iterator<Item = (Bytes, Until)> {
        let port = self.port;
        if self.has_given {
            std::mem::forget(self.buffers);
            self.buffers = Vec::new();
        }
        self.buffers.into_iter().filter_map(move |bound| {
            let frame = bound.last.into_iter().flatten().max()?;
            Some((bound.memory, Until::Released { to: bound.peer, port, frame }))
        })
    }
}

/// Merges a step that packs and a step that sends into one step that sends without packing. Does so
/// if the whole frame is a single run of elements and the post copies the frame. A post copies its
/// frame if the peer does not reach this rank's memory.
fn unpacked(steps: Vec<Step>, copied: impl Fn(usize) -> bool) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let in_place = match (all.last(), &step) {
            (
                Some(Step::Pack {
                    from: Where::Window(_, window, datatype),
                    count,
                    size,
                    buffer,
                    at: packed,
                }),
                Step::Send { buffer: sent, at, bytes, .. },
            ) if buffer == sent && packed == at && count * size == *bytes && copied(*buffer) => {
                let run = datatype.as_run().and_then(|run| usize::try_from(run.start).ok());
                run.map(|first| Step::SendInPlace {
                    window: *window,
                    first: first * size,
                    buffer: *buffer,
                    bytes: *bytes,
                    stays: false,
                })
            }
            _ => None,
        };
        match in_place {
            Some(step) => *all.last_mut().expect("a step that packs") = step,
            None => all.push(step),
        }
    }
    all
}

/// Resolves the names in a program.
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
            Error::new(
                ErrorClass::Intern,
                format!("a program names rank {} {delta}, which is outside the world", self.rank),
            )
        })
    }

    /// Returns the index at which each operation's own elements begin, and a buffer with room for
    /// the elements of all operations.
    fn locals(&self) -> Result<(Vec<usize>, Vec<u8>)> {
        let mut at = 0usize;
        let starts = self.program.pattern.operations.values().map(|operation| {
            let start = at;
            if operation.local == Local::Buffer {
                let size = self.schedule.windows[operation.window].size as usize;
                let bytes = operation.remote.size().checked_mul(size);
                at = bytes
                    .and_then(|bytes| at.checked_add(bytes)?.checked_next_multiple_of(16))
                    .filter(|&end| isize::try_from(end).is_ok())
                    .ok_or_else(|| {
                        Error::new(ErrorClass::NoMem, "the calls supply more elements than any memory holds")
                    })?;
            }
            Ok(start)
        });
        let starts = starts.collect::<Result<_>>()?;
        let mut locals = Vec::new();
        if locals.try_reserve_exact(at).is_err() {
            let message = format!("there is no memory for the {at} bytes that the calls of this plan bring");
            return Err(Error::new(ErrorClass::NoMem, message));
        }
        locals.resize(at, 0);
        Ok((starts, locals))
    }

    fn buffers(&self, world: &WorldCore, copied: impl Fn(usize) -> bool) -> Result<Vec<Bound>> {
        let place = world.endpoint.borrow().memory();
        let bound = |buffer: &Buffer| {
            let (peer, bytes) = (self.peer(buffer.peer)?, buffer.bytes as usize);
            let copies = buffer.copies as usize;
            let (copies, runs) = if copied(peer) { (1, lead(bytes)) } else { (copies, copies) };
            let memory = bytes.checked_next_multiple_of(16).and_then(|bytes| bytes.checked_mul(copies));
            let memory = memory.map_or(Err(ErrorKind::OutOfMemory.into()), |bytes| place.zeroed(bytes));
            let memory = memory.map_err(|why| {
                let what = format!("this plan needs {copies} times {bytes} bytes for rank {peer}");
                Error::new(ErrorClass::NoMem, format!("there is no memory for its buffers: {what}: {why}"))
            })?;
            let bytes = bytes.next_multiple_of(16);
            Ok(Bound { peer, bytes, copies, memory, last: vec![None; runs], released: 0 })
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
            Instruction::Combine { from, into, op, element, buffer, at } => Step::Combine {
                from: self.part(from, starts)?,
                into: into.clone(),
                op: *op,
                element: *element,
                buffer: buffer.index(),
                at: *at as usize,
            },
            Instruction::Send { buffer, at, bytes, .. } => {
                Step::Send { buffer: buffer.index(), at: *at as usize, bytes: *bytes as usize, stays: false }
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

/// Returns whether an operation has its own buffer, which the caller fills.
pub(crate) fn takes_slice(kind: Kind, local: &Local) -> bool {
    *local == Local::Buffer && kind != Kind::Get
}
