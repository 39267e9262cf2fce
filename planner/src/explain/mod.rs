//! [`Cost`]: the predicted time of a schedule, and a lower bound for all schedules with the same
//! messages. [`cost_at_fence`]: the predicted time of these messages in an epoch that was not
//! prepared. [`explain`]: how each operation travels, and why, as values that can be printed.

mod rows;

pub use rows::{Costs, ExplainedPlan, Member, Route, Row, Sent, Staging, explain, explain_rank};

use crate::census::{self, Census, Places};
use crate::ids::{ClassId, Delta, Id, Rank};
use crate::ir::schedule::{Frame, Instruction, Part, Placement, Program, Schedule};
use crate::ir::transfers::Side;
use crate::machine::{Link, Machine};
use crate::packets::Packets;
use crate::table::Table;
use crate::units::{Bytes, Nanos};
use std::collections::BTreeSet;
use std::fmt;

/// The predicted time and the memory of a schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// The time of the slowest rank: all its instructions, and the travel time of its last frame.
    pub predicted: Nanos,
    /// A lower bound: the largest time that a rank needs for overheads, bytes and one latency.
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

/// Returns a count with its noun in the singular or plural: `1 round`, `2 rounds`.
pub fn number_of(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Returns the predicted cost of `schedule` on `machine`.
///
/// # Cost
/// Grows with the number of classes or, with hosts of several ranks, with the number of ranks.
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

/// Returns the predicted time on `machine` of an unprepared epoch with the messages of `schedule`,
/// and the census of its fence.
///
/// The messages are packed, sent, received and unpacked as in the schedule. They are sent before
/// the census begins, so the latency of the slowest message overlaps with the census. The epoch
/// takes moving + frames + wire + max(latency, census). Descriptions of operations are left out,
/// because an epoch that repeats the last one sends none.
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

/// Returns the first rank of each class. With hosts of several ranks, also distinguishes the ranks
/// of a class by the peers that share memory with them, since messages to these peers cost less.
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
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Terms {
    /// Packing, unpacking and copying.
    pub moving: Nanos,
    /// Frames that are sent and received.
    pub overhead: Nanos,
    /// The overhead that would remain if all frames to a rank left together, and all frames from a
    /// rank were awaited together.
    least_overhead: Nanos,
    /// Bytes on the wire, in the direction that has more.
    pub wire: Nanos,
    /// The latency of the slowest frame that is awaited, and of the entry before a direct copy.
    pub latency: Nanos,
}

impl Terms {
    fn of(schedule: &Schedule, program: &Program, rank: u32, machine: &Machine) -> Self {
        let mut terms = Self::default();
        let (mut out, mut into, mut farthest) = (0.0, 0.0, 0.0_f64);
        let (mut sent, mut awaited) = (Packets::default(), Packets::default());
        // The peers so far, each with a direction: true if frames are sent to the peer.
        let mut met = BTreeSet::new();
        let mut direct = false;
        let link = |peer: Delta| {
            let other = peer.from(Rank(rank), schedule.class_of.len() as u32);
            machine.link(other.is_some_and(|other| schedule.placement.share(rank, other.0)))
        };
        let mut least = |is_sent: bool, peer: Delta| {
            let Link { overhead, further, .. } = *link(peer);
            Nanos(if met.insert((is_sent, peer)) { overhead } else { overhead.min(further) })
        };
        let of_program = &machine_of(program, machine);
        for instruction in &program.instructions {
            terms.moving += moving(instruction, of_program);
            match instruction {
                Instruction::Expose { peer } | Instruction::Done { peer } => {
                    terms.overhead += Nanos(link(*peer).overhead(sent.add(*peer, 0)));
                    terms.least_overhead += least(true, *peer);
                }
                Instruction::Send { buffer, bytes, .. } => {
                    let Some(buffer) = program.buffers.get(*buffer) else { continue };
                    terms.overhead += Nanos(link(buffer.peer).overhead(sent.add(buffer.peer, *bytes)));
                    terms.least_overhead += least(true, buffer.peer);
                    out += link(buffer.peer).per_byte * *bytes as f64;
                }
                Instruction::Await { peer, frame } => {
                    let payload = if let Frame::Data { bytes } = frame { *bytes } else { 0 };
                    terms.overhead += Nanos(link(*peer).overhead(awaited.add(*peer, payload)));
                    terms.least_overhead += least(false, *peer);
                    farthest = farthest.max(if *peer == Delta::SELF { 0.0 } else { link(*peer).latency });
                    direct |= *frame == Frame::Done;
                    if let Frame::Data { bytes } = frame {
                        let payload = Nanos(link(*peer).payload(*bytes));
                        terms.overhead += payload;
                        terms.least_overhead += payload;
                        into += link(*peer).per_byte * *bytes as f64;
                    }
                }
                _ => {}
            }
        }
        terms.wire = Nanos(f64::max(out, into));
        // Before a direct copy this rank waits for an entry, and after the copy the peer waits for
        // a done.
        terms.latency = Nanos(farthest + if direct { machine.shared.latency } else { 0.0 });
        terms
    }

    /// Returns the sum of all terms.
    pub fn predicted(&self) -> Nanos {
        self.moving + self.overhead + self.wire + self.latency
    }

    fn bound(&self) -> Nanos {
        self.least_overhead + self.wire + self.latency
    }
}

/// Returns the machine for [`moving`], with the time that moving a byte takes in this program. A
/// direct copy counts as a section that is packed and one that is unpacked.
#[doc(hidden)]
pub fn machine_of(program: &Program, machine: &Machine) -> Machine {
    let bytes = |instruction: &Instruction| match instruction {
        Instruction::Pack { from, element, .. } => bytes(from, *element),
        Instruction::Unpack { to: part, element, .. } | Instruction::Combine { from: part, element, .. } => {
            bytes(part, element.size)
        }
        Instruction::Copy { to, element, .. } => 2.0 * bytes(to, element.size),
        _ => 0.0,
    };
    machine.while_moving(program.instructions.iter().map(bytes).sum())
}

fn bytes(part: &Part, size: u32) -> f64 {
    let elements = match part {
        Part::Window { datatype, .. } => datatype.size(),
        Part::Operation { count, .. } => *count,
    };
    elements as f64 * f64::from(size)
}

/// Returns the time of an instruction that packs, unpacks or copies, and zero for any other.
/// `machine` is the result of [`machine_of`] for the instruction's program.
#[doc(hidden)]
pub fn moving(instruction: &Instruction, machine: &Machine) -> Nanos {
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
