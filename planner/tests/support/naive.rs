//! A plain lowering. Each rank is a class of its own, sends one message to each peer, and packs
//! everything. With `direct`, gets into buffers, and puts where no other rank puts, are direct
//! copies.

use super::by_rank;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ids::{BufferId, ClassId, Delta, Id, OperationId, Rank, RoundId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Patterns};
use fencepost_planner::ir::schedule::{
    Buffer, Frame, Instruction, Part, Placement, Program, Routing, Schedule,
};
use std::collections::{BTreeMap, BTreeSet};

/// An operation, and the rank that calls it.
#[derive(Clone)]
struct Asked {
    origin: usize,
    id: OperationId,
    operation: Operation,
    target: usize,
}

impl Asked {
    fn is_get(&self) -> bool {
        self.operation.kind == Kind::Get
    }
    fn from(&self) -> usize {
        if self.is_get() { self.target } else { self.origin }
    }
    fn to(&self) -> usize {
        if self.is_get() { self.origin } else { self.target }
    }
    fn op(&self) -> Option<Op> {
        match self.operation.kind {
            Kind::Accumulate(op) => Some(op),
            _ => None,
        }
    }
    fn remote(&self, owner: Delta) -> Part {
        Part::Window { owner, window: self.operation.window, datatype: self.operation.remote.clone() }
    }
    fn local(&self) -> Part {
        match &self.operation.local {
            Local::Buffer => {
                Part::Operation { operation: self.id, first: 0, count: self.operation.remote.size() }
            }
            Local::Section { window, datatype } => {
                Part::Window { owner: Delta::SELF, window: *window, datatype: datatype.clone() }
            }
        }
    }
    /// Returns the parts of windows that the operation touches: the owner, the window, and the
    /// elements.
    fn touches(&self) -> Vec<(usize, WindowId, Datatype)> {
        let mut all = vec![(self.target, self.operation.window, self.operation.remote.clone())];
        if let Local::Section { window, datatype } = &self.operation.local {
            all.push((self.origin, *window, datatype.clone()));
        }
        all
    }
}

/// Lowers `patterns`. With `direct`, some operations become copies.
pub fn lower(patterns: &Patterns, direct: bool) -> Schedule {
    let ranks = patterns.class_of.len();
    let mut asked = Vec::new();
    for (origin, pattern) in by_rank(patterns).into_iter().enumerate() {
        for (id, operation) in pattern.operations.iter() {
            let Some(target) = operation.target.filter(|_| operation.remote.size() > 0) else { continue };
            let target =
                target.from(Rank::new(origin), ranks as u32).expect("a target that is there").index();
            asked.push(Asked { origin, id, operation: operation.clone(), target });
        }
    }
    let alone = |one: &Asked| {
        let others = asked.iter().filter(|other| (other.origin, other.id) != (one.origin, one.id));
        let touched: Vec<_> = others.flat_map(Asked::touches).collect();
        let mine = one.touches();
        let clash = |a: &(usize, WindowId, Datatype), b: &(usize, WindowId, Datatype)| {
            a.0 == b.0 && a.1 == b.1 && a.2.overlaps(&b.2)
        };
        let meets_itself = mine.len() == 2 && clash(&mine[0], &mine[1]);
        !meets_itself && mine.iter().all(|a| !touched.iter().any(|b| clash(a, b)))
    };
    let copied: BTreeSet<(usize, OperationId)> = asked
        .iter()
        .filter(|one| {
            let quiet_get = one.is_get() && one.operation.local == Local::Buffer;
            direct && (quiet_get || alone(one)) && (one.origin != one.target || alone(one))
        })
        .map(|one| (one.origin, one.id))
        .collect();
    let (direct, packed): (Vec<Asked>, Vec<Asked>) =
        asked.into_iter().partition(|one| copied.contains(&(one.origin, one.id)));
    let classes = (0..ranks).map(|rank| program(patterns, rank, &packed, &direct)).collect();
    Schedule {
        name: patterns.name.clone(),
        windows: patterns.windows.clone(),
        shape: patterns.shape.clone(),
        classes,
        class_of: (0..ranks).map(ClassId::new).collect(),
        order: patterns.order,
        sync: patterns.sync,
        placement: Placement::Together,
    }
}

fn program(patterns: &Patterns, rank: usize, packed: &[Asked], direct: &[Asked]) -> Program {
    let delta = |to: usize| Delta(to as i64 - rank as i64);
    let element = |one: &Asked| patterns.windows[one.operation.window];
    let bytes = |one: &Asked| one.operation.remote.size() as u64 * u64::from(element(one).size);
    // The length of the frame between each pair of ranks, and the position of each operation in its
    // frame.
    let mut frames: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut at = Vec::new();
    for one in packed {
        let end = frames.entry((one.from(), one.to())).or_default();
        at.push(*end);
        *end += bytes(one);
    }
    let touchers: BTreeSet<(usize, usize)> =
        direct.iter().filter(|one| one.origin != one.target).map(|one| (one.origin, one.target)).collect();

    let mut program = Program {
        pattern: by_rank(patterns)[rank].clone(),
        routes: patterns.classes[patterns.class_of[rank]]
            .operations
            .values()
            .map(|_| Some(Routing { mode: Mode::Aggregated, instead: false, round: RoundId(0) }))
            .collect(),
        least_len: patterns.windows.ids().map(|_| 0).collect(),
        buffers: Default::default(),
        instructions: Vec::new(),
    };
    for (owner, window, datatype) in packed.iter().chain(direct).flat_map(Asked::touches) {
        if owner == rank {
            let len = &mut program.least_len[window];
            *len = (*len).max(datatype.high() as usize);
        }
    }
    let code = &mut program.instructions;
    for (origin, _) in touchers.iter().filter(|(_, target)| *target == rank) {
        code.push(Instruction::Expose { peer: delta(*origin) });
    }
    for (&(_, to), &size) in frames.iter().filter(|((from, _), _)| *from == rank) {
        let answered = to == rank || frames.contains_key(&(to, rank));
        let copies = if answered { 2 } else { 1 };
        let buffer: BufferId = program.buffers.push(Buffer { peer: delta(to), bytes: size, copies });
        if !answered {
            code.push(Instruction::Reclaim { buffer });
        }
        for (one, at) in packed.iter().zip(&at).filter(|(one, _)| (one.from(), one.to()) == (rank, to)) {
            let from = if one.is_get() { one.remote(Delta::SELF) } else { one.local() };
            code.push(Instruction::Pack { from, element: element(one).size, buffer, at: *at });
        }
        code.push(Instruction::Send { buffer, at: 0, bytes: size, round: RoundId(0) });
    }
    for (_, target) in touchers.iter().filter(|(origin, _)| *origin == rank) {
        code.push(Instruction::Await { peer: delta(*target), frame: Frame::Entry });
    }
    for one in direct.iter().filter(|one| one.origin == rank) {
        let (here, there) = (one.local(), one.remote(delta(one.target)));
        let (from, to) = if one.is_get() { (there, here) } else { (here, there) };
        code.push(Instruction::Copy { from, to, op: one.op(), element: element(one) });
    }
    for (_, target) in touchers.iter().filter(|(origin, _)| *origin == rank) {
        code.push(Instruction::Done { peer: delta(*target) });
    }
    for (&(from, _), &size) in frames.iter().filter(|((_, to), _)| *to == rank) {
        code.push(Instruction::Await { peer: delta(from), frame: Frame::Data { bytes: size } });
    }
    for (origin, _) in touchers.iter().filter(|(_, target)| *target == rank) {
        code.push(Instruction::Await { peer: delta(*origin), frame: Frame::Done });
    }
    for gets in [true, false] {
        for (one, at) in packed.iter().zip(&at).filter(|(one, _)| one.to() == rank && one.is_get() == gets) {
            let to = if gets { one.local() } else { one.remote(Delta::SELF) };
            let (peer, op, element) = (delta(one.from()), one.op(), element(one));
            code.push(Instruction::Unpack { peer, at: *at, to, op, element });
        }
    }
    for (from, _) in frames.keys().filter(|(_, to)| *to == rank) {
        code.push(Instruction::Release { peer: delta(*from) });
    }
    program
}
