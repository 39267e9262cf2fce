//! Helpers of the tests that take waits away: links that depend on a seed, ranks that linger, and
//! the search for a seed.

use crate::state::transport_kind::TransportKind;
use fencepost_planner::census::Census;
use fencepost_tests_support::random::Random;
use fencepost_transport::{InFlight, SimConfig, Tamper};
use std::sync::Arc;

/// How ranks reach each other over the links of `sim`, and which census they take. The census is
/// direct unless the name of the variant contains another census.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// By messages only.
    Messages,
    /// By messages and by memory: payloads, windows and outboxes are read in the memory of their
    /// owners, and all words travel over the links.
    Memory,
    /// By messages only, with a sparse census.
    SparseMessages,
    /// By messages and by memory, with a sparse census.
    SparseMemory,
    /// By messages only, with a reduced census.
    ReducedMessages,
    /// By messages and by memory, with a reduced census.
    ReducedMemory,
}

impl Reach {
    /// All variants.
    pub(super) const ALL: [Reach; 6] = [
        Reach::Messages,
        Reach::Memory,
        Reach::SparseMessages,
        Reach::SparseMemory,
        Reach::ReducedMessages,
        Reach::ReducedMemory,
    ];
    /// The variants in which ranks exchange messages only.
    pub(super) const MESSAGES: [Reach; 3] = [Reach::Messages, Reach::SparseMessages, Reach::ReducedMessages];
    /// The variants in which ranks reach each other's memory.
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

/// Returns a transport of ranks that reach each other's memory. Frames of kind `of` arrive as if
/// they had one byte more.
///
/// Such a frame refers to its payload by address and length.
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

/// The random choices of a rank, which a seed determines.
pub(super) struct Dice(Random);

impl Dice {
    pub(super) fn new(seed: u64, rank: usize) -> Self {
        Self(Random::new(seed << 8 | rank as u64))
    }

    /// Lets other ranks continue first, usually for a short time and sometimes for a long time.
    pub(super) fn linger(&mut self) {
        let looks = if self.0.once_in(3) { self.0.below(200) } else { self.0.below(3) };
        (0..looks).for_each(|_| std::thread::yield_now());
    }
}

/// Returns the value that rank `rank` stores to element `at` before it enters epoch `epoch`.
pub(super) fn stored(rank: usize, epoch: usize, at: usize) -> u64 {
    (epoch as u64 + 1) * 1_000_000 + rank as u64 * 1000 + at as u64
}

/// The maximum number of seeds that are tried until one shows the fault.
const SEEDS: u64 = 300;
/// The minimum number of seeds with which the undamaged run must succeed.
const GOOD: u64 = 20;

/// Finds the first seed with which `damaged` fails, and returns the failure.
///
/// Checks that `good` succeeds with that seed and with all seeds before it.
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
