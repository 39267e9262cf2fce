//! [`Cost`]: the predicted time of a schedule, and a lower bound for every schedule of its
//! messages. [`cost_at_fence`]: the predicted time of its messages in an epoch that was not
//! prepared. [`explain`]: how each operation travels, and why.

use crate::census::{self, Census, Places};
use crate::element::ElementType;
use crate::ids::{ClassId, Delta, Id, OperationId, Rank};
use crate::ir::pattern::{Kind, Local, Mode, Operation, Sync};
use crate::ir::schedule::{Frame, Instruction, Part, Placement, Program, Routing, Schedule};
use crate::ir::transfers::Side;
use crate::machine::Machine;
use crate::table::Table;
use crate::units::{Bytes, Nanos};
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// The predicted time and the memory of a schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// The time of the slowest rank: all its instructions, and the travel time of its last frame.
    pub predicted: Nanos,
    /// A lower bound: the overheads and bytes of the rank that has most of them, plus one latency.
    pub bound: Nanos,
    /// The slowest rank.
    pub slowest: u32,
    /// The largest staging memory of a rank: all copies of all buffers.
    pub peak: Bytes,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { predicted, bound, slowest, peak } = self;
        write!(
            f,
            "predicted {:.2} us (rank {slowest}), at least {:.2} us; at most {peak} of staging a rank",
            predicted.0 / 1e3,
            bound.0 / 1e3
        )
    }
}

/// Returns a number with the word for what is counted: `1 round`, `2 rounds`.
pub fn number_of(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Returns the predicted cost of `schedule` on `machine`.
///
/// # Cost
/// Grows with the classes; with hosts of several ranks, with the ranks.
pub fn cost(schedule: &Schedule, machine: &Machine) -> Cost {
    let mut cost = Cost { predicted: Nanos(0.0), bound: Nanos(0.0), slowest: 0, peak: schedule.peak() };
    for (rank, program) in unlike(schedule) {
        let terms = Terms::of(schedule, program, rank, machine);
        if terms.predicted().0 > cost.predicted.0 {
            (cost.predicted, cost.slowest) = (terms.predicted(), rank);
        }
        cost.bound = cost.bound.max(terms.bound());
    }
    cost
}

/// Returns the predicted time on `machine` of an epoch that has the messages of `schedule` and was
/// not prepared, and the census that its fence takes.
///
/// The messages are packed, sent, received and unpacked as in the schedule. They leave before the
/// census begins, so the epoch takes the longer of the latency of the slowest message and the time
/// of the census: moving + frames + wire + max(latency, census). Descriptions of operations are
/// left out, because an epoch that repeats the last one sends none.
pub fn cost_at_fence(schedule: &Schedule, machine: &Machine) -> (Nanos, Census) {
    let places = Places::new(schedule.class_of.len() as u32, schedule.placement);
    let way = census::choose(&places, machine);
    let census = census::cost(way, &places, machine);
    let slowest = unlike(schedule)
        .into_iter()
        .map(|(rank, program)| {
            let terms = Terms::of(schedule, program, rank, machine);
            (terms.moving + terms.overhead + terms.wire).0 + terms.latency.0.max(census)
        })
        .fold(0.0, f64::max);
    (Nanos(slowest), way)
}

/// Returns the first rank of each class. With hosts of several ranks, returns the first one for
/// each set of peers that it shares memory with, since these peers cost less than the others do.
fn unlike(schedule: &Schedule) -> Vec<(u32, &Program)> {
    if !matches!(schedule.placement, Placement::Hosts { .. }) {
        return firsts(schedule).collect();
    }
    let ranks = schedule.class_of.len() as u32;
    let peers = |program: &Program| -> BTreeSet<Delta> {
        let awaited = program.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Await { peer, .. } => Some(*peer),
            _ => None,
        });
        program.buffers.iter().map(|(_, buffer)| buffer.peer).chain(awaited).collect()
    };
    let peers: Table<ClassId, _> = schedule.classes.iter().map(|(_, program)| peers(program)).collect();
    let mut met = BTreeSet::new();
    let all = schedule.class_of.iter().zip(0..).filter_map(|(&class, rank)| {
        let near = |peer: &Delta| {
            peer.from(Rank(rank), ranks).is_some_and(|other| schedule.placement.share(rank, other.0))
        };
        met.insert((class, peers[class].iter().map(near).collect::<Vec<_>>()))
            .then(|| (rank, &schedule.classes[class]))
    });
    all.collect()
}

/// Returns the first rank of each class.
fn firsts(schedule: &Schedule) -> impl Iterator<Item = (u32, &Program)> {
    let mut met = vec![false; schedule.classes.len()];
    schedule.class_of.iter().enumerate().filter_map(move |(rank, class)| {
        let new = !std::mem::replace(met.get_mut(class.index())?, true);
        new.then(|| (rank as u32, &schedule.classes[*class]))
    })
}

/// The predicted time of one program, by cause.
#[derive(Clone, Copy, Default, Debug)]
struct Terms {
    /// Packing, unpacking and copying.
    moving: Nanos,
    /// Frames that are sent and received.
    overhead: Nanos,
    /// Bytes on the wire, in the direction that has more.
    wire: Nanos,
    /// The latency of the slowest frame that is awaited, and of the entry before a direct copy.
    latency: Nanos,
}

impl Terms {
    fn of(schedule: &Schedule, program: &Program, rank: u32, machine: &Machine) -> Self {
        let mut terms = Self::default();
        let (mut out, mut into, mut farthest) = (0.0, 0.0, 0.0_f64);
        let mut direct = false;
        let link = |peer: Delta| {
            let other = peer.from(Rank(rank), schedule.class_of.len() as u32);
            machine.link(other.is_some_and(|other| schedule.placement.share(rank, other.0)))
        };
        for instruction in &program.instructions {
            terms.moving += moving(instruction, machine);
            match instruction {
                Instruction::Expose { peer } | Instruction::Done { peer } => {
                    terms.overhead += Nanos(link(*peer).overhead)
                }
                Instruction::Send { buffer, bytes, .. } => {
                    let Some(buffer) = program.buffers.get(*buffer) else { continue };
                    terms.overhead += Nanos(link(buffer.peer).overhead);
                    out += link(buffer.peer).per_byte * *bytes as f64;
                }
                Instruction::Await { peer, frame } => {
                    terms.overhead += Nanos(link(*peer).overhead);
                    farthest = farthest.max(if *peer == Delta::SELF { 0.0 } else { link(*peer).latency });
                    direct |= *frame == Frame::Done;
                    if let Frame::Data { bytes } = frame {
                        terms.overhead += Nanos(link(*peer).payload);
                        into += link(*peer).per_byte * *bytes as f64;
                    }
                }
                _ => {}
            }
        }
        terms.wire = Nanos(f64::max(out, into));
        // A direct copy waits for an entry before it, and the peer for a done after it.
        terms.latency = Nanos(farthest + if direct { machine.shared.latency } else { 0.0 });
        terms
    }

    fn predicted(&self) -> Nanos {
        self.moving + self.overhead + self.wire + self.latency
    }

    fn bound(&self) -> Nanos {
        self.overhead + self.wire + self.latency
    }
}

fn moving(instruction: &Instruction, machine: &Machine) -> Nanos {
    match instruction {
        Instruction::Pack { from, element, .. } => machine.pack(&side(from), *element),
        Instruction::Unpack { to, element, .. } => machine.unpack(&side(to), element.size),
        Instruction::Combine { from, element, .. } => machine.unpack(&side(from), element.size),
        Instruction::Copy { from, to, element, .. } => match (owner(from), owner(to)) {
            (Delta::SELF, Delta::SELF) => machine.pack(&side(to), element.size),
            (Delta::SELF, _) => machine.copy(&side(to), &side(from), element.size),
            _ => machine.copy(&side(from), &side(to), element.size),
        },
        _ => Nanos(0.0),
    }
}

fn owner(part: &Part) -> Delta {
    match part {
        Part::Window { owner, .. } => *owner,
        Part::Operation { .. } => Delta::SELF,
    }
}

fn side(part: &Part) -> Side {
    match part {
        Part::Window { window, datatype, .. } => Side::Window { window: *window, datatype: datatype.clone() },
        Part::Operation { operation, first, count } => {
            Side::Operation { operation: *operation, first: *first, count: *count }
        }
    }
}

/// Explains how each operation of each class travels, and why: its mode, message, round, cost terms
/// and line in the user's program. Also returns the predicted cost with its lower bound. A
/// superstep that could not be compiled has no schedule to explain: its error was returned earlier.
pub fn explain(schedule: &Schedule, machine: &Machine) -> String {
    let mut text = String::new();
    let ranks = schedule.class_of.len();
    let classes = schedule.classes.len();
    let _ = writeln!(text, "{}: {ranks} ranks in {classes} classes", schedule.name);
    if schedule.sync == Sync::Pscw {
        let is_idle = |class: &&ClassId| schedule.classes[**class].instructions.is_empty();
        let idle = schedule.class_of.iter().filter(is_idle).count();
        let _ = writeln!(text, "posts and starts between partners; {idle} ranks need not run it");
    }
    let _ = writeln!(text, "{}", cost(schedule, machine));
    let (at_fence, census) = cost_at_fence(schedule, machine);
    let _ = writeln!(text, "not prepared: {:.2} us, with a {census} census", at_fence.0 / 1e3);
    for (rank, program) in firsts(schedule) {
        let class = schedule.class_of[rank as usize];
        let terms = Terms::of(schedule, program, rank, machine);
        let count = schedule.class_of.iter().filter(|&&other| other == class).count();
        let _ = writeln!(text, "\n{}", headline(class, rank, count, &terms));
        let _ = writeln!(text, "  {}", staging(program));
        for (id, operation) in program.pattern.operations.iter() {
            let _ = writeln!(text, "  {}", line(schedule, program, rank, id, operation, machine));
        }
    }
    text
}

/// Returns the part of [`explain`] for one rank: what it sends in how many rounds, and where each
/// of its operations goes.
pub fn explain_rank(schedule: &Schedule, rank: Rank, machine: &Machine) -> String {
    let class = schedule.class_of[rank.0 as usize];
    let program = &schedule.classes[class];
    let (mut messages, mut bytes) = (0u64, 0u64);
    let mut last = None;
    for instruction in &program.instructions {
        if let Instruction::Send { bytes: sent, round, .. } = instruction {
            (messages, bytes) = (messages + 1, bytes + sent);
            last = last.max(Some(round.0));
        }
    }
    let rounds = last.map_or(0, |round| round + 1);
    let (messages, rounds) = (number_of(messages, "message"), number_of(rounds.into(), "round"));
    let mut text = format!("  sends {messages}, {bytes} bytes, in {rounds}\n");
    let _ =
        writeln!(text, "  {}", headline(class, rank.0, 1, &Terms::of(schedule, program, rank.0, machine)));
    for (id, operation) in program.pattern.operations.iter() {
        let _ = writeln!(text, "  {}", line(schedule, program, rank.0, id, operation, machine));
    }
    text
}

fn headline(class: ClassId, rank: u32, count: usize, terms: &Terms) -> String {
    let others = if count > 1 { format!(" and {} like it", count - 1) } else { String::new() };
    let us = |nanos: Nanos| format!("{:.2}", nanos.0 / 1e3);
    format!(
        "class {class}: rank {rank}{others}: {} us = moving {} + frames {} + wire {} + latency {}",
        us(terms.predicted()),
        us(terms.moving),
        us(terms.overhead),
        us(terms.wire),
        us(terms.latency),
    )
}

fn staging(program: &Program) -> String {
    let buffers = program.buffers.values();
    let total: u64 = buffers.clone().map(|buffer| buffer.bytes * u64::from(buffer.copies)).sum();
    let each: Vec<String> =
        buffers.map(|buffer| format!("{} B x{} to {}", buffer.bytes, buffer.copies, buffer.peer)).collect();
    if each.is_empty() { "no staging".into() } else { format!("staging {total} B: {}", each.join(", ")) }
}

fn line(
    schedule: &Schedule,
    program: &Program,
    rank: u32,
    id: OperationId,
    operation: &Operation,
    machine: &Machine,
) -> String {
    let target = operation.target.and_then(|delta| delta.from(Rank(rank), schedule.class_of.len() as u32));
    let element = schedule.windows[operation.window];
    let at = if operation.site.line > 0 { format!(", {}", operation.site) } else { String::new() };
    let to = target.map_or("no rank".to_string(), |target| format!("rank {}", target.0));
    let bytes = operation.remote.size() as u64 * u64::from(element.size);
    let what = format!("{id} {} of {bytes} B with {to}{at}", operation.kind);
    let Some(route) = program.routes.get(id).copied().flatten() else {
        return format!("{what}: moves nothing{}", nothing(operation));
    };
    let own = operation.target == Some(Delta::SELF);
    let how = match (route.mode, own) {
        (Mode::Direct, true) => "copied".to_string(),
        (_, true) => "through a buffer, since it reads what is written".to_string(),
        (mode, false) => format!("{}, round {}", crate::text::mode(mode), route.round.0),
    };
    let instead = if route.instead {
        " (another mode was asked for, which is not safe or not possible here)"
    } else {
        ""
    };
    let costs = match target {
        Some(target) if !own => {
            let together = together(program, operation, route);
            let shared = schedule.placement.share(rank, target.0);
            Costs::of(operation, element, machine).between_two(route.mode, shared, together, machine)
        }
        _ => Costs::of(operation, element, machine).packed(),
    };
    format!("{what}: {how}{instead}; {costs}")
}

/// Returns the number of operations that share the frames of this one.
fn together(program: &Program, operation: &Operation, route: Routing) -> usize {
    let shares_frames = |(id, other): (OperationId, &Operation)| {
        let same_way = program.routes[id].is_some_and(|other| {
            other.mode == route.mode && (other.round == route.round || route.mode == Mode::Direct)
        });
        same_way
            && other.target == operation.target
            && (other.kind == Kind::Get) == (operation.kind == Kind::Get)
    };
    program.pattern.operations.iter().filter(|&row| shares_frames(row)).count()
}

fn nothing(operation: &Operation) -> &'static str {
    match (operation.target, operation.remote.size()) {
        (None, _) => ", it has no target",
        (_, 0) => ", it has no elements",
        _ => ", later puts of this rank or another replace all of it",
    }
}

/// The terms by which the mode of an operation was chosen.
struct Costs {
    pack: Nanos,
    unpack: Nanos,
    copy: Nanos,
    bytes: u64,
}

impl Costs {
    fn of(operation: &Operation, element: ElementType, machine: &Machine) -> Self {
        let remote = Side::Window { window: operation.window, datatype: operation.remote.clone() };
        let count = operation.remote.size();
        let local = match &operation.local {
            Local::Section { window, datatype } => {
                Side::Window { window: *window, datatype: datatype.clone() }
            }
            Local::Buffer => Side::Operation { operation: OperationId(0), first: 0, count },
        };
        let (from, to) = if operation.kind == Kind::Get { (&remote, &local) } else { (&local, &remote) };
        Self {
            pack: machine.pack(from, element.size),
            unpack: machine.unpack(to, element.size),
            copy: machine.copy(&remote, &local, element.size),
            bytes: count as u64 * u64::from(element.size),
        }
    }

    fn packed(&self) -> String {
        format!("pack {:.0} + unpack {:.0} ns", self.pack.0, self.unpack.0)
    }

    /// Returns the terms of the chosen mode, then those of the other one where there was a choice.
    /// `together` operations share the frames.
    fn between_two(&self, mode: Mode, shared: bool, together: usize, machine: &Machine) -> String {
        let share = if together > 1 { format!(" (of {together} operations)") } else { String::new() };
        let (packed_share, direct_share) =
            if mode == Mode::Direct { ("", share.as_str()) } else { (share.as_str(), "") };
        let message = machine.message(shared, self.bytes);
        let packed = format!(
            "pack {:.0} + message {:.0}{packed_share} + unpack {:.0} ns",
            self.pack.0, message.0, self.unpack.0
        );
        let direct = format!(
            "copy {:.0} + entry and done {:.0}{direct_share} ns",
            self.copy.0,
            machine.entry_and_done().0
        );
        match (mode, shared) {
            (Mode::Direct, _) => format!("{direct}, against {packed}"),
            (_, true) => format!("{packed}, against {direct}"),
            (_, false) => packed,
        }
    }
}
