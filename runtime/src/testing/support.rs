//! The common parts of the tests of the waits: links that a seed decides, ranks that linger, and the search for a seed.

use crate::state::transport_kind::TransportKind;
use fencepost_planner::census::Census;
use fencepost_tests_support::random::Random;
use fencepost_transport::{InFlight, SimConfig, Tamper};
use std::sync::Arc;

/// The way in which ranks reach each other over the links of `sim`, and their census, where it is not direct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// By messages only.
    Messages,
    /// Memory too: payloads, windows and outboxes lie with their owners, while all words travel over the links.
    Memory,
    /// By messages only, with a sparse census.
    SparseMessages,
    /// Memory too, with a sparse census.
    SparseMemory,
    /// By messages only, with a reduced census.
    ReducedMessages,
    /// Memory too, with a reduced census.
    ReducedMemory,
}

impl Reach {
    /// All of them.
    pub(super) const ALL: [Reach; 6] = [
        Reach::Messages,
        Reach::Memory,
        Reach::SparseMessages,
        Reach::SparseMemory,
        Reach::ReducedMessages,
        Reach::ReducedMemory,
    ];
    /// Those by messages only.
    pub(super) const MESSAGES: [Reach; 3] = [Reach::Messages, Reach::SparseMessages, Reach::ReducedMessages];
    /// Those that reach memory.
    pub(super) const MEMORY: [Reach; 3] = [Reach::Memory, Reach::SparseMemory, Reach::ReducedMemory];

    pub(super) fn census(self) -> Census {
        match self {
            Reach::Messages | Reach::Memory => Census::Direct,
            Reach::SparseMessages | Reach::SparseMemory => Census::Sparse,
            Reach::ReducedMessages | Reach::ReducedMemory => Census::Reduced,
        }
    }

    pub(super) fn config(self, seed: u64) -> SimConfig {
        let mut config = SimConfig { seed, ..SimConfig::default() };
        config.altered.reach = Reach::MEMORY.contains(&self);
        config
    }

    pub(super) fn transport(self, seed: u64) -> TransportKind {
        TransportKind::Sim(self.config(seed))
    }
}

/// Ranks that reach each other's memory, where frames of kind `of` come as if they had one byte
/// more. A frame refers to its payload there: by its address, and by its length.
pub(super) fn with_a_byte(of: u32, reach: Reach) -> TransportKind {
    let longer = move |_, item: InFlight<'_>| {
        if let InFlight::Frame(header, reference) = item
            && header.kind == of
        {
            reference[8] += 1;
        }
    };
    TransportKind::Sim(SimConfig { tamper: Some(Tamper(Arc::new(longer))), ..reach.config(1) })
}

/// The choices of a rank, as a seed decides.
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64, rank: usize) -> Self {
        Self(Random::new(seed << 8 | rank as u64))
    }

    /// Lets other ranks go first, usually briefly, sometimes for long.
    pub(super) fn linger(&mut self) {
        let looks = if self.0.once_in(3) { self.0.below(200) } else { self.0.below(3) };
        (0..looks).for_each(|_| std::thread::yield_now());
    }
}

/// Returns the value that rank `rank` stores to element `at` before it enters epoch `epoch`.
pub(super) fn stored(rank: usize, epoch: usize, at: usize) -> u64 {
    (epoch as u64 + 1) * 1_000_000 + rank as u64 * 1000 + at as u64
}

/// Seeds at most until one shows what is wrong.
const SEEDS: u64 = 300;
/// Seeds at least for which what is right is right.
const GOOD: u64 = 20;

/// Find the seed with which `damaged` goes wrong, where `good` goes right with that one and all before it. Returns what
/// went wrong.
#[track_caller]
pub(super) fn shown(
    good: impl Fn(u64) -> Result<(), String>,
    damaged: impl Fn(u64) -> Result<(), String>,
) -> String {
    let wrong = (0..SEEDS).find_map(|seed| Some((seed, damaged(seed).err()?)));
    let Some((seed, wrong)) = wrong else { panic!("no seed of {SEEDS} shows that a wait is missing") };
    for seed in 0..GOOD.max(seed + 1) {
        assert_eq!(good(seed), Ok(()), "seed {seed}, with all waits");
    }
    wrong
}
