//! [`Share`]: the part of a schedule that one rank needs.
//!
//! If the ranks make many calls and each rank makes different ones, one rank plans for all, because
//! the schedule of 1,024 such ranks takes too much memory to be stored on every rank. A rank needs
//! its own program and, of every other program, the frames to and from this rank, the copies into
//! and out of its windows, and the calls that target it. These form a schedule too, in which ranks
//! that have nothing to do with this rank have empty programs. The code that writes, reads,
//! explains and binds whole schedules therefore also handles shares.
//!
//! ```text
//! whole                                 the share of rank 1
//! r0: send b0 to +1; send b1 to +2      r0: send b0 to +1
//! r1: await -1; await +1                r1: await -1; await +1
//! r2: await -2; send b0 to -1           r2: send b0 to -1
//! ```
//!
//! [`verify_share`](crate::verify::verify_share) checks everything that is done to the memory of
//! the share's rank, and each channel that ends at that rank. [`verify`](crate::verify::verify)
//! checks the same for each rank of the whole schedule. Together the shares of all ranks cover the
//! whole schedule, except for cycles of waits, which no single rank could see.

use crate::error::{Error, ErrorClass, Result};
use crate::ids::{BufferId, ClassId, Delta, Id, OperationId, Rank, WindowId};
use crate::intern::Interner;
use crate::ir::pattern::{Local, Pattern};
use crate::ir::schedule::{Buffer, Instruction, Part, Program, Schedule};
use crate::plan::{self, Digest};
use crate::table::Table;
use crate::verify::Verified;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part of a schedule that one rank needs: either the whole schedule, or only what concerns
/// this rank.
#[derive(Clone, Debug)]
pub struct Share {
    source: Source,
    rank: Rank,
    digest: Digest,
}

#[derive(Clone, Debug)]
enum Source {
    Whole(Arc<Verified<Schedule>>),
    Part {
        schedule: Schedule,
        /// Whether any operation of any rank targets the window, or has a section of the window as
        /// its local side.
        named: Table<WindowId, bool>,
    },
}

impl std::ops::Deref for Share {
    type Target = Schedule;
    fn deref(&self) -> &Schedule {
        match &self.source {
            Source::Whole(schedule) => schedule,
            Source::Part { schedule, .. } => schedule,
        }
    }
}

impl AsRef<Schedule> for Share {
    fn as_ref(&self) -> &Schedule {
        self
    }
}

impl Share {
    pub(crate) fn whole(schedule: Arc<Verified<Schedule>>, rank: Rank) -> Self {
        let digest = schedule.digest();
        Self { source: Source::Whole(schedule), rank, digest }
    }

    /// Reads the share of `rank` from the bytes that [`Shares::bytes`] returned.
    ///
    /// # Errors
    /// FILE if the bytes are not a share of a world that has this rank.
    pub fn from_bytes(bytes: &[u8], rank: Rank) -> Result<Self> {
        let bad = |what: &str| Error::new(ErrorClass::File, format!("a share of a plan {what}"));
        let (digest, rest) = bytes.split_first_chunk::<32>().ok_or_else(|| bad("is cut short"))?;
        let (named, rest) = rest.split_first_chunk::<8>().ok_or_else(|| bad("is cut short"))?;
        let schedule = plan::from_bytes(rest)?.schedule;
        if schedule.class_of.len() <= rank.index() || schedule.windows.len() > 64 {
            return Err(bad("is for other ranks or windows"));
        }
        let named = u64::from_le_bytes(*named);
        let named = schedule.windows.ids().map(|window| named >> window.0 & 1 == 1).collect();
        Ok(Self { source: Source::Part { schedule, named }, rank, digest: Digest(*digest) })
    }

    /// Returns the rank whose share this is.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the digest of the whole schedule.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns whether the share is the whole schedule.
    pub fn is_whole(&self) -> bool {
        matches!(self.source, Source::Whole(_))
    }

    /// Returns the program of the rank.
    pub fn program(&self) -> &Program {
        &self.classes[self.class_of[self.rank.index()]]
    }

    /// Returns whether any operation of any rank of the world targets this window, or has a section
    /// of the window as its local side.
    pub fn names_window(&self, window: WindowId) -> bool {
        match &self.source {
            Source::Whole(schedule) => names(schedule, window),
            Source::Part { named, .. } => named[window],
        }
    }
}

fn names(schedule: &Schedule, window: WindowId) -> bool {
    let calls = schedule.classes.values().flat_map(|program| program.pattern.operations.values());
    let section = |local: &Local| matches!(local, Local::Section { window: of, .. } if *of == window);
    calls.into_iter().any(|call| call.window == window || section(&call.local))
}

/// The shares of all ranks of a schedule.
pub struct Shares<'s> {
    schedule: &'s Schedule,
    digest: Digest,
    named: u64,
    /// For each class, the parts of its program that concern other ranks. The key of a part is the
    /// delta of the rank that it concerns.
    parts: Table<ClassId, BTreeMap<Delta, Program>>,
    /// For each rank, the other ranks whose programs concern it, ascending.
    around: Vec<Vec<u32>>,
}

impl<'s> Shares<'s> {
    /// Divides a schedule into shares.
    ///
    /// # Cost
    /// Grows with the size of the schedule and the peers of all ranks.
    pub fn of(schedule: &'s Schedule) -> Self {
        let parts: Table<ClassId, BTreeMap<Delta, Program>> = schedule.classes.values().map(parts).collect();
        let mut around: Vec<Vec<u32>> = schedule.class_of.iter().map(|_| Vec::new()).collect();
        for (rank, class) in schedule.class_of.iter().enumerate() {
            for delta in parts[*class].keys() {
                let to = usize::try_from(rank as i64 + delta.0).ok();
                if let Some(list) = to.and_then(|to| around.get_mut(to)) {
                    list.push(rank as u32);
                }
            }
        }
        let named = schedule.windows.ids().filter(|window| window.0 < 64 && names(schedule, *window));
        let named = named.fold(0, |bits, window| bits | 1 << window.0);
        Self { schedule, digest: schedule.digest(), named, parts, around }
    }

    /// Returns everything that concerns `rank`, as a schedule.
    pub fn schedule(&self, rank: Rank) -> Schedule {
        let own = self.schedule.class_of[rank.index()];
        let mut classes: Interner<ClassId, Program> = Interner::default();
        let own = classes.intern_ref(&self.schedule.classes[own]);
        let nothing = Program {
            pattern: Pattern::default(),
            routes: Table::new(),
            least_len: self.schedule.windows.ids().map(|_| 0).collect(),
            buffers: Table::new(),
            instructions: Vec::new(),
        };
        let around = &self.around[rank.index()];
        let all = around.len() + 1 == self.schedule.class_of.len();
        let nothing = if all { own } else { classes.intern(nothing) };
        let mut class_of = vec![nothing; self.schedule.class_of.len()];
        class_of[rank.index()] = own;
        for &peer in around {
            let there = Rank(peer);
            let part = &self.parts[self.schedule.class_of[there.index()]][&Delta::between(there, rank)];
            class_of[there.index()] = classes.intern_ref(part);
        }
        Schedule { classes: classes.into_table(), class_of, ..self.head() }
    }

    /// Returns the bytes of the share of `rank`, which [`Share::from_bytes`] reads.
    ///
    /// # Errors
    /// FILE under the same conditions as [`plan::to_bytes`].
    pub fn bytes(&self, rank: Rank) -> Result<Vec<u8>> {
        let plan = plan::to_bytes(&self.schedule(rank))?;
        Ok([&self.digest.0[..], &self.named.to_le_bytes(), &plan].concat())
    }

    /// Returns the schedule without its programs.
    fn head(&self) -> Schedule {
        let Schedule { name, windows, shape, order, sync, placement, .. } = self.schedule;
        Schedule {
            name: name.clone(),
            windows: windows.clone(),
            shape: shape.clone(),
            classes: Table::new(),
            class_of: Vec::new(),
            order: *order,
            sync: *sync,
            placement: *placement,
        }
    }
}

/// Returns the parts of a program that concern other ranks. The key of a part is the delta of the
/// rank that it concerns.
fn parts(program: &Program) -> BTreeMap<Delta, Program> {
    let empty = || Program {
        pattern: Pattern::default(),
        routes: Table::new(),
        least_len: program.least_len.clone(),
        buffers: Table::new(),
        instructions: Vec::new(),
    };
    let mut parts: BTreeMap<Delta, Program> = BTreeMap::new();
    let mut operations: Table<OperationId, OperationId> = Table::new();
    for (id, call) in program.pattern.operations.iter() {
        let other = call.target.filter(|&target| target != Delta::SELF && call.remote.size() > 0);
        operations.push(other.map_or(id, |target| {
            let part = parts.entry(target).or_insert_with(empty);
            part.routes.push(program.routes.get(id).copied().flatten());
            part.pattern.operations.push(call.clone())
        }));
    }
    let mut buffers: Table<BufferId, BufferId> = Table::new();
    for buffer in program.buffers.values() {
        let Buffer { peer, .. } = *buffer;
        buffers.push(if peer == Delta::SELF {
            BufferId(0)
        } else {
            parts.entry(peer).or_insert_with(empty).buffers.push(buffer.clone())
        });
    }
    for instruction in &program.instructions {
        if let Some(other) = concerns(program, instruction).filter(|&other| other != Delta::SELF) {
            let instruction = renumbered(instruction, &operations, &buffers);
            parts.entry(other).or_insert_with(empty).instructions.push(instruction);
        }
    }
    parts
}

/// Returns the rank that an instruction concerns.
fn concerns(program: &Program, instruction: &Instruction) -> Option<Delta> {
    let owner = |part: &Part| match part {
        Part::Window { owner, .. } => *owner,
        Part::Operation { .. } => Delta::SELF,
    };
    match instruction {
        Instruction::Expose { peer }
        | Instruction::Await { peer, .. }
        | Instruction::Unpack { peer, .. }
        | Instruction::Release { peer }
        | Instruction::Done { peer } => Some(*peer),
        Instruction::Reclaim { buffer }
        | Instruction::Pack { buffer, .. }
        | Instruction::Combine { buffer, .. }
        | Instruction::Send { buffer, .. } => Some(program.buffers.get(*buffer)?.peer),
        Instruction::Copy { from, to, .. } => {
            Some(if owner(from) == Delta::SELF { owner(to) } else { owner(from) })
        }
    }
}

/// Returns the instruction with new ids of its operations and buffers: their ids in the part for
/// one rank.
fn renumbered(
    instruction: &Instruction,
    operations: &Table<OperationId, OperationId>,
    buffers: &Table<BufferId, BufferId>,
) -> Instruction {
    let mut instruction = instruction.clone();
    let part = |part: &mut Part| {
        if let Part::Operation { operation, .. } = part
            && let Some(now) = operations.get(*operation)
        {
            *operation = *now;
        }
    };
    match &mut instruction {
        Instruction::Pack { from, buffer, .. } | Instruction::Combine { from, buffer, .. } => {
            part(from);
            *buffer = buffers[*buffer];
        }
        Instruction::Reclaim { buffer } | Instruction::Send { buffer, .. } => *buffer = buffers[*buffer],
        Instruction::Unpack { to, .. } => part(to),
        Instruction::Copy { from, to, .. } => {
            part(from);
            part(to);
        }
        Instruction::Expose { .. }
        | Instruction::Await { .. }
        | Instruction::Release { .. }
        | Instruction::Done { .. } => {}
    }
    instruction
}
