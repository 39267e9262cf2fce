//! [`Collective`]: an operation of all ranks on arrays of one length, planned as epochs of puts and
//! accumulates.
//!
//! A collective has several [`Algorithm`]s, whose results have the same bits. A reduction combines
//! elements over a balanced tree: it first reduces each half of the ranks, and then combines the
//! result of the right half into that of the left half. The left half of `n` ranks has `n / 2`
//! ranks, rounded up. Scans go left to right. [`Collective::algorithm`] chooses by the machine
//! model. [`Collective::plan`] returns the [`Step`]s of an algorithm, which work on a window that
//! belongs to the plan. Each step is an epoch of all ranks, or a combination that each rank does by
//! itself.
//!
//! | | direct | tree | blocks |
//! |---|---|---|---|
//! | broadcast | root puts to all | binomial, from root | root deals blocks, ranks put to all |
//! | reduce | all put to root, it combines | halves up the tree | each combines a block for root |
//! | allreduce | all put to all | halves trade up the tree | each combines a block for all |
//! | scan | put to later ranks | distances double, if no order shows | each scans, deals a block |
//! | gather | all put to the root | | |
//! | allgather | all put to all | distances and blocks double | |
//! | all-to-all | all put to all | | |
//!
//! In the direct algorithm of a reduction or scan, each rank combines the elements that it
//! receives.
//!
//! **Cost** for p ranks that bring n bytes each (in an all-to-all, n bytes for each rank). Each
//! figure counts a rank's sends or its receives, whichever is larger, and is the maximum over all
//! ranks.
//!
//! | | rounds | messages | bytes |
//! |---|---|---|---|
//! | direct | 1 | p - 1 | (p - 1) n |
//! | tree | ⌈log2 p⌉ | 1 a round; 2 at most in allreduce | n a round; allgather (p - 1) n in all |
//! | blocks | 2 | p - 1 a round | about n a round |
//!
//! If ranks share memory, most collectives need no epoch. The elements that each rank brings are
//! [shown](Delivery::InPlace) to the other ranks. These ranks read the elements after the exchange
//! that begins every collective. In a large allreduce, ranks show elements twice: first their own,
//! then the block that each rank has combined.
//!
//! **Source** The trees and the two rounds of blocks: R. Thakur, R. Rabenseifner, W. Gropp,
//! *Optimization of collective communication operations in MPICH*, IJHPCA 2005, sections 4 and 5;
//! doubled distances: J. Bruck et al., *Efficient algorithms for all-to-all communications*, IEEE
//! TPDS 1997. Unlike in these papers, the shape of the tree is fixed. So the exchange of halves
//! works for any number of ranks, and every rank sums in the same order.

mod algorithms;

use crate::census::{Census, Places, cost};
use crate::element::{ElementType, Op};
use crate::ir::pattern::Patterns;
use crate::machine::Machine;
use std::ops::Range;

/// The operation of a collective.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// All ranks receive the root's elements.
    Broadcast {
        /// The rank that has the elements.
        root: u32,
    },
    /// The root receives the combination of all elements.
    Reduce {
        /// The rank that receives the result.
        root: u32,
        /// The operator that combines the elements.
        op: Op,
    },
    /// All ranks receive the combination of all elements.
    Allreduce {
        /// The operator that combines the elements.
        op: Op,
    },
    /// Each rank receives the combination of the elements of all ranks from 0 up to itself.
    Scan {
        /// The operator that combines the elements.
        op: Op,
    },
    /// The root receives all elements, in the order of ranks.
    Gather {
        /// The rank that receives the result.
        root: u32,
    },
    /// All ranks receive all elements, in the order of ranks.
    Allgather,
    /// Each rank receives, from every rank, the elements that are for it, in the order of ranks.
    AllToAll,
}

/// The properties of a collective call that determine its plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    /// The operation.
    pub operation: Operation,
    /// The number of ranks that call it.
    pub ranks: u32,
    /// The number of elements that each rank brings. In an all-to-all, the number of elements that
    /// it brings for each rank, including itself.
    pub len: usize,
    /// The type of the elements.
    pub element: ElementType,
}

/// The algorithm that carries out a collective.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// One round, in which every element is sent to the ranks that need it.
    Direct,
    /// A round for each level of the tree of ranks.
    Tree,
    /// Two rounds. Between them, each rank works on a block of its own.
    Blocks,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 3] = [Algorithm::Direct, Algorithm::Tree, Algorithm::Blocks];
}

/// A step of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// An epoch of all ranks over the plan's window.
    Epoch(Patterns),
    /// Each rank that [takes part](Slots::root) combines slots by itself.
    Combine(Slots),
}

/// The slots of one rank's window, one for each rank. The operator combines their contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots {
    /// The operator that combines the slots.
    pub op: Op,
    /// The rank that has slots, or `None` if every rank has slots.
    pub root: Option<u32>,
    /// The displacement of slot 0.
    pub first: usize,
    /// The number of elements from the beginning of one slot to the beginning of the next.
    pub stride: usize,
    /// The number of elements of a slot.
    pub len: SlotLen,
    /// The shape of the reduction.
    pub fold: Fold,
}

/// The number of elements of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotLen {
    /// A fixed number.
    Of(usize),
    /// This number of elements is divided among the ranks, and the slot has the size of the rank's
    /// own block.
    BlockOf(usize),
}

/// The contents of the slots after they are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Slot 0 holds the combination of all slots over the balanced tree. The contents of the other
    /// slots are lost.
    Tree,
    /// Each slot holds the combination of all slots up to itself, from left to right.
    Prefixes,
    /// Slot 0 holds the combination of all slots up to this rank's slot, from left to right. The
    /// other slots are unchanged.
    Prefix,
}

/// The way in which the elements of a collective reach the ranks that need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// Elements travel with the exchange of words that begins each collective.
    Ride,
    /// Elements are read after the exchange, in the memory of the ranks that show them. With
    /// [`Algorithm::Blocks`], ranks show blocks that they have combined.
    InPlace(Algorithm),
    /// Elements are sent after the exchange, by the plan of this algorithm.
    Plan(Algorithm),
}

/// The maximum number of bytes of elements that a rank shows. There is room for twice as many
/// bytes.
const SHOWN: f64 = (8 << 20) as f64;

/// The same limit for operations in which all ranks bring elements that other ranks receive
/// unchanged. For more bytes, storing into the memory of the receivers is faster than letting the
/// receivers read, as measured (`benches/log/messages_and_collectives.md`).
const SHOWN_BY_ALL: f64 = (16 << 10) as f64;

/// The number of bytes of elements that fit into the words that a rank sends each other rank in a
/// direct exchange.
const TOLD: f64 = 32.0;

/// The smallest number of bytes of elements that are read in place although they could travel with
/// the exchange (`benches/log/messages_and_collectives.md`).
const LINE: f64 = 32.0;

/// The time in ns that a record and its application take, if memory is shared (`benches/log`).
const RECORD: f64 = 7.0;

/// The steps of an algorithm, and the size of the window that the steps need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The number of elements of the window, on every rank.
    pub window: usize,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Collective {
    /// Returns the plan of `algorithm`. The collective must [have](Self::has) this algorithm.
    ///
    /// # Cost
    /// For each rank, a small step for each message that it sends.
    pub fn plan(&self, algorithm: Algorithm) -> Plan {
        algorithms::plan(self, algorithm)
    }

    /// Returns whether the collective has this algorithm.
    pub fn has(&self, algorithm: Algorithm) -> bool {
        match (algorithm, self.operation) {
            (Algorithm::Direct, _) => true,
            (Algorithm::Tree, Operation::Scan { op }) => !op.order_shows(self.element),
            (_, Operation::Gather { .. } | Operation::AllToAll)
            | (Algorithm::Blocks, Operation::Allgather) => false,
            _ => true,
        }
    }

    /// Returns the moves of `rank` in the direct algorithm, by ascending target. Each move has the
    /// target rank, the elements, and the index at which the first of these elements is stored at
    /// the target.
    pub fn direct(&self, rank: u32) -> impl Iterator<Item = (u32, Range<usize>, usize)> + use<> {
        let what = *self;
        let to = match self.operation {
            Operation::Broadcast { root } if rank != root => 0..0,
            Operation::Reduce { root, .. } | Operation::Gather { root } => root..root + 1,
            Operation::Scan { .. } => rank + 1..self.ranks,
            _ => 0..self.ranks,
        };
        to.filter_map(move |to| what.direct_to(rank, to).map(|(from, at)| (to, from, at)))
    }

    /// Returns the move from `rank` to the rank `to` in the [direct](Self::direct) algorithm, if
    /// there is one. The move has the elements, and the index at which the first of them is stored
    /// at the target.
    pub fn direct_to(&self, rank: u32, to: u32) -> Option<(Range<usize>, usize)> {
        let Self { operation, ranks, len, .. } = *self;
        let moves = match operation {
            Operation::Broadcast { root } => rank == root && to != rank,
            Operation::Reduce { root, .. } | Operation::Gather { root } => to == root && to != rank,
            Operation::Scan { .. } => to > rank,
            Operation::Allreduce { .. } | Operation::Allgather => to != rank,
            Operation::AllToAll => true,
        };
        moves.then(|| match operation {
            Operation::AllToAll => {
                let from = to as usize * len;
                (from..from + len, (ranks + rank) as usize * len)
            }
            _ => {
                let own = self.input(Algorithm::Direct, rank);
                (own.clone(), own.start)
            }
        })
    }

    /// Returns whether each rank sends the same elements to all its targets in the direct
    /// algorithm.
    pub fn is_for_all(&self) -> bool {
        !matches!(self.operation, Operation::Reduce { .. } | Operation::Gather { .. } | Operation::AllToAll)
    }

    /// Returns the slots that remain to be combined after the moves of the direct algorithm, if
    /// any.
    pub fn direct_slots(&self) -> Option<Slots> {
        let slots =
            |op, root, fold| Slots { op, root, first: 0, stride: self.len, len: SlotLen::Of(self.len), fold };
        match self.operation {
            Operation::Reduce { root, op } => Some(slots(op, Some(root), Fold::Tree)),
            Operation::Allreduce { op } => Some(slots(op, None, Fold::Tree)),
            Operation::Scan { op } => Some(slots(op, None, Fold::Prefix)),
            _ => None,
        }
    }

    /// Returns the number of elements of the window in the direct algorithm.
    pub fn direct_window(&self) -> usize {
        let slots = (self.ranks as usize).saturating_mul(self.len);
        match self.operation {
            Operation::Broadcast { .. } => self.len,
            Operation::AllToAll => slots.saturating_mul(2),
            _ => slots,
        }
    }

    /// Returns the range of the window where this rank's elements must be before the first step. It
    /// is empty if the rank brings no elements.
    pub fn input(&self, algorithm: Algorithm, rank: u32) -> Range<usize> {
        let (me, len) = (rank as usize, self.len);
        let slots = match self.operation {
            Operation::Broadcast { root } if rank != root => return 0..0,
            Operation::AllToAll => return 0..self.ranks as usize * len,
            Operation::Gather { .. } => true,
            Operation::Broadcast { .. } => false,
            _ => algorithm == Algorithm::Direct,
        };
        let at = if slots { me * len } else { 0 };
        at..at + len
    }

    /// Returns the ranges of the window that hold this rank's result after the last step, one after
    /// the other. They are empty if the rank receives no elements.
    pub fn output(&self, algorithm: Algorithm, rank: u32) -> [Range<usize>; 2] {
        let (ranks, me, len) = (self.ranks as usize, rank as usize, self.len);
        match self.operation {
            Operation::Reduce { root, .. } | Operation::Gather { root } if rank != root => [0..0, 0..0],
            Operation::Gather { .. } => [0..ranks * len, 0..0],
            Operation::Allgather if algorithm == Algorithm::Tree => {
                [(ranks - me) % ranks * len..ranks * len, 0..(ranks - me) % ranks * len]
            }
            Operation::Allgather => [0..ranks * len, 0..0],
            Operation::AllToAll => [ranks * len..2 * ranks * len, 0..0],
            _ => [0..len, 0..0],
        }
    }

    /// Returns the algorithm that is predicted to finish first.
    ///
    /// `share` is whether the ranks share memory, and `census` is the exchange that precedes the
    /// algorithm.
    pub fn algorithm(&self, machine: &Machine, share: bool, census: Census) -> Algorithm {
        let algorithms = Algorithm::ALL.into_iter().filter(|&algorithm| self.has(algorithm));
        let cost = |algorithm| self.cost(algorithm, machine, share, census);
        algorithms.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(Algorithm::Direct)
    }

    /// Returns the delivery that is predicted to be fastest. `share` is whether the ranks share
    /// memory.
    pub fn delivery(&self, machine: &Machine, share: bool, census: Census) -> Delivery {
        let algorithm = self.algorithm(machine, share, census);
        let rides = self.rides(algorithm, machine, share, census);
        let planned = if rides { Delivery::Ride } else { Delivery::Plan(algorithm) };
        let shown = self.brings() as f64 * f64::from(self.element.size);
        if share && census == Census::Direct && shown <= TOLD {
            return Delivery::Ride;
        }
        if !share || shown > self.most_shown() || rides && self.bytes() < LINE {
            return planned;
        }
        // If elements travel with the exchange, their predicted time can be compared with that of a
        // plan, but not with that of reading in place. But here the elements fill half a cache line
        // or more. An exchange that carries half a cache line is slower than reading in place, so
        // its cost counts as infinite.
        let cost = if rides { f64::INFINITY } else { self.cost(algorithm, machine, share, census) };
        let in_place = [Algorithm::Direct, Algorithm::Blocks]
            .map(|algorithm| (Delivery::InPlace(algorithm), self.in_place(algorithm, machine, census)));
        let ways = in_place.into_iter().chain([(planned, cost)]);
        ways.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(planned, |(way, _)| way)
    }

    /// Returns the maximum number of bytes of elements that a rank shows.
    fn most_shown(&self) -> f64 {
        match self.operation {
            Operation::Broadcast { .. } | Operation::Allreduce { .. } => SHOWN,
            _ => SHOWN_BY_ALL,
        }
    }

    /// Returns the predicted time in ns, without the exchange of words, if elements are read in the
    /// memory of the ranks that bring them. With [`Algorithm::Blocks`], which only an allreduce
    /// has, each rank combines one block and then shows it.
    fn in_place(&self, algorithm: Algorithm, machine: &Machine, census: Census) -> f64 {
        use Operation::{AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, Scan};
        let (bytes, peers, each) = (self.bytes(), f64::from(self.ranks - 1), &machine.moving);
        let read =
            |from: f64, bytes: f64| machine.shared.latency + from * (each.remote_run + bytes * each.remote);
        match (algorithm, self.operation) {
            (Algorithm::Direct, Broadcast { .. }) => read(1.0, bytes),
            (Algorithm::Direct, Gather { .. } | Allgather | AllToAll) => read(peers, bytes),
            (Algorithm::Direct, Reduce { .. } | Allreduce { .. } | Scan { .. }) => {
                read(peers, bytes) + peers * bytes * each.pack
            }
            (Algorithm::Blocks, Allreduce { .. }) => {
                let block = bytes / f64::from(self.ranks);
                let exchange = cost(census, &Places::of(self.ranks, true), machine);
                exchange + 2.0 * read(peers, block) + peers * block * each.pack
            }
            _ => f64::INFINITY,
        }
    }

    /// Returns the number of elements that a rank brings.
    pub fn brings(&self) -> usize {
        let lists = if self.operation == Operation::AllToAll { self.ranks as usize } else { 1 };
        self.len.saturating_mul(lists)
    }

    /// Returns the range of the elements of `from` that `rank` receives unchanged. It is empty if
    /// there are no such elements.
    pub fn reads(&self, rank: u32, from: u32) -> Range<usize> {
        match self.operation {
            Operation::Broadcast { root } if from == root && rank != root => 0..self.len,
            Operation::Gather { root } if rank == root => 0..self.len,
            Operation::Allgather => 0..self.len,
            Operation::AllToAll => rank as usize * self.len..(rank as usize + 1) * self.len,
            _ => 0..0,
        }
    }

    /// Returns whether the elements should travel with the exchange of words that begins each
    /// collective. They should if another exchange and separate messages would cost more.
    ///
    /// In shared memory, elements in the exchange cost a record for each rank, and are stored among
    /// the records. Without shared memory, and in a sparse census, they cost one more copy for each
    /// rank.
    pub fn rides(&self, algorithm: Algorithm, machine: &Machine, share: bool, census: Census) -> bool {
        let exchange = cost(census, &Places::of(self.ranks, share), machine);
        algorithm == Algorithm::Direct && self.ride(machine, share, census) <= exchange
    }

    /// Returns the predicted time in ns of the elements that travel with the exchange, without the
    /// exchange itself.
    fn ride(&self, machine: &Machine, share: bool, census: Census) -> f64 {
        let (each, link) = (&machine.moving, machine.link(share));
        let record = if share && census == Census::Direct { RECORD } else { 0.0 };
        let one = record + self.bytes() * (each.pack + each.unpack + link.per_byte);
        f64::from(self.ranks - 1) * one
    }

    /// Returns the predicted time in ns of an algorithm, without the exchange of words.
    fn cost(&self, algorithm: Algorithm, machine: &Machine, share: bool, census: Census) -> f64 {
        let (bytes, peers) = (self.bytes(), f64::from(self.ranks - 1));
        let depth = f64::from(self.ranks.next_power_of_two().trailing_zeros());
        let round = |messages, bytes| self.round(machine, share, messages, bytes);
        let combined = match self.operation {
            Operation::Reduce { .. } | Operation::Allreduce { .. } | Operation::Scan { .. } => {
                machine.moving.pack
            }
            _ => 0.0,
        };
        let block = bytes * peers / f64::from(self.ranks);
        match algorithm {
            Algorithm::Direct if self.rides(algorithm, machine, share, census) => {
                self.ride(machine, share, census) + peers * bytes * combined
            }
            Algorithm::Direct => round(peers, peers * bytes) + peers * bytes * combined,
            Algorithm::Tree if self.operation == Operation::Allgather => {
                depth * round(1.0, peers * bytes / depth.max(1.0))
            }
            Algorithm::Tree => depth * (round(1.0, bytes) + bytes * combined),
            Algorithm::Blocks => 2.0 * round(peers, block) + block * combined,
        }
    }

    /// Returns the predicted time of one round, in which a rank sends and receives `bytes` bytes.
    /// The bytes are packed, or copied directly if memory is shared and a direct copy is faster.
    fn round(&self, machine: &Machine, share: bool, messages: f64, bytes: f64) -> f64 {
        let (link, moving) = (machine.link(share), &machine.moving);
        let frames = link.latency + 2.0 * link.overhead * messages;
        if bytes == 0.0 {
            return frames;
        }
        let each = (bytes / messages.max(1.0)) as u64;
        let packed =
            frames + link.payload(each) * messages + (link.per_byte + moving.pack + moving.unpack) * bytes;
        if share { packed.min(2.0 * frames + moving.remote * bytes) } else { packed }
    }

    fn bytes(&self) -> f64 {
        self.len as f64 * f64::from(self.element.size)
    }
}

/// Returns block `rank` of `len` elements that `ranks` ranks divide among themselves.
pub fn block(rank: u32, ranks: u32, len: usize) -> Range<usize> {
    let cut = |rank: u32| (len as u128 * u128::from(rank) / u128::from(ranks)) as usize;
    cut(rank)..cut(rank + 1)
}

/// Returns the ranges of ranks that the balanced tree divides, grouped by depth, the deepest first.
///
/// Each entry is the first rank of the range, the first rank of its right half, and the end of the
/// range.
pub fn halves(ranks: u32) -> Vec<Vec<[u32; 3]>> {
    let mut depths = Vec::new();
    let mut whole = vec![[0, ranks]];
    loop {
        let divided: Vec<[u32; 3]> = whole
            .iter()
            .filter(|[low, high]| high - low > 1)
            .map(|&[low, high]| [low, low + (high - low).div_ceil(2), high])
            .collect();
        if divided.is_empty() {
            depths.reverse();
            return depths;
        }
        whole = divided.iter().flat_map(|&[low, middle, high]| [[low, middle], [middle, high]]).collect();
        depths.push(divided);
    }
}
