//! [`Census`]: how ranks find out at a fence which ranks have entered it, and in which call these
//! ranks are. Ranks also find out which ranks have something for them.
//!
//! *Direct*: each rank sends every other rank one notification. That is one round of p - 1 messages
//! for each rank.
//!
//! *Sparse*: in each of the rounds 0, 1, 2, ... each rank sends one message. In round k, rank r
//! sends to rank r + 2^k and receives from rank r - 2^k, modulo p, until 2^k reaches p. A message
//! reports facts about *all* ranks (the call, whether some rank has failed). After round k these
//! facts cover the 2^(k + 1) ranks that end with this rank, so after the last round they cover all
//! ranks. Items for one rank travel in these messages: an item whose target is d ranks away is sent
//! on in each round k for which bit k of d is set. An item for all ranks is passed on by each rank
//! that has it, and every rank receives it once. A rank that has nothing for another rank sends no
//! item for it.
//!
//! *Reduced*: each rank that has something for another rank sends that rank a *note*, which is a
//! separate message. Then the ranks add up, by recursive halving, how many notes each of them must
//! expect. Let m be the largest power of two that is not above the number of ranks. Rank r below m
//! first exchanges counts with rank r xor m / 2. Each of these two ranks belongs to one half of all
//! ranks, and receives the counts of its own half. Then rank r exchanges the counts of quarters
//! with rank r xor m / 4, and so on, until it has its own count. Each rank from m on sends its
//! counts to one of the ranks below m before the rounds, and receives its own count from that rank
//! after the rounds. A message has a count for each rank of the part that it covers, so its length
//! does not depend on the number of notes. Items for all ranks follow the counts. Each of these
//! items is sent once to each rank. After the last round each rank has information from every rank,
//! as above.
//!
//! *Groups first*: if some ranks share memory, but not all of them, the rounds above take place
//! between hosts. The first rank of each host is its leader. The other ranks of the host send the
//! leader their items. Then the leaders exchange messages as the ranks do above, and each leader
//! sends the result to the other ranks of its host. Items between ranks of one host do not leave
//! the host. If no ranks share memory, but some share a machine, the ranks of a machine are cut
//! into groups of at most eight, and the groups act like hosts. If ranks also share cores, each
//! wake-up of a rank takes time from all of these ranks. In groups of r, p ranks are woken
//! `2 (p - p / r) + p / r log2 (p / r)` times instead of `p log2 p` times.
//!
//! **Cost** in rounds, messages and bytes for each of p ranks, in h groups of at most r ranks:
//!
//! - direct: 1 round, p - 1 messages, and a notification for each other rank.
//! - reduced: log2 p rounds, rounded down, and 2 more if p is no power of two. One message a round,
//!   and one message for each rank that gets items. Each rank sends eight bytes for each other
//!   rank, and each item for one rank once.
//! - sparse: log2 p rounds, rounded up, and one message a round. An item for one rank travels once
//!   for each set bit of its distance; items for all ranks travel p - 1 times.
//! - groups first: log2 h rounds, rounded up, and 2 within groups. One message a round. A leader
//!   also exchanges r - 1 messages with its group, before and after the rounds. The bytes are those
//!   of a sparse census in which distances are counted in groups, plus the bytes to and from the
//!   leaders.
//!
//! In a sparse census, an item for a rank that is d ranks away is copied once for each set bit of
//! d. In a reduced census, the item is sent once, in a message of its own. A message costs a core
//! far more time than a copy of 32 bytes. So a reduced census pays only if ranks have something for
//! most other ranks and bytes are expensive ([`dense`], `benches/log/many_ranks.md`).
//!
//! **Source** Dissemination: D. Hensgen, R. Finkel, U. Manber, *Two algorithms for barrier
//! synchronization*, International Journal of Parallel Programming 17, 1988. Items by the bits of
//! their distance: J. Bruck et al., *Efficient algorithms for all-to-all communications in
//! multiport message-passing systems*, IEEE TPDS 1997. Different here: only items that exist
//! travel. Counts by recursive halving: R. Thakur, R. Rabenseifner, W. Gropp, *Optimization of
//! collective communication operations in MPICH*, IJHPCA 2005, 4.2. Different here: each count of
//! notes comes with the sum of the numbers of the ranks that have sent them. So a rank that lacks
//! one note can compute which rank has sent this note.

use crate::error::{Error, ErrorClass};
use crate::ir::schedule::Placement;
use crate::machine::Machine;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How ranks find out at a fence which ranks have entered it, and which ranks have something for
/// which other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Census {
    /// Each rank notifies every other rank.
    #[default]
    Direct,
    /// log2 p rounds, in which only the items that ranks have for other ranks travel.
    Sparse,
    /// log2 p rounds, in which counts are added up. Items are sent directly to their targets.
    Reduced,
}

impl Census {
    /// All kinds of census.
    #[doc(hidden)]
    pub const ALL: [Census; 3] = [Census::Direct, Census::Sparse, Census::Reduced];

    const fn name(self) -> &'static str {
        match self {
            Census::Direct => "direct",
            Census::Sparse => "sparse",
            Census::Reduced => "reduced",
        }
    }
}

/// The number of ranks and the number of their groups. A group is a host, whose ranks share memory;
/// a part of a machine, if no ranks share memory; or a single rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// The number of ranks.
    pub ranks: u32,
    /// The number of groups of ranks.
    pub groups: u32,
    /// The maximum number of ranks in one group.
    pub most: u32,
    /// Whether the ranks of a group share memory.
    pub memory: bool,
}

impl Places {
    /// Returns the places of this number of ranks, assuming that ranks of one machine share its
    /// memory.
    pub fn new(ranks: u32, placement: Placement) -> Self {
        match placement {
            Placement::Together => Self::of(ranks, true),
            Placement::Apart => Self::of(ranks, false),
            Placement::Hosts { ranks_each } => {
                let most = (ranks_each as u32).clamp(1, ranks.max(1));
                Self { ranks, groups: ranks.div_ceil(most), most, memory: true }
            }
        }
    }

    /// Returns the places of ranks that either all share memory or share none.
    pub fn of(ranks: u32, memory: bool) -> Self {
        let (groups, most) = if memory { (1, ranks) } else { (ranks, 1) };
        Self { ranks, groups, most, memory }
    }

    /// Returns whether all ranks share memory.
    pub fn share(&self) -> bool {
        self.memory && self.groups <= 1
    }

    /// Returns whether each group has a leader in a sparse census. A group has a leader if there
    /// are several groups, and not every rank is a group of its own.
    pub fn have_leaders(&self) -> bool {
        1 < self.groups && self.groups < self.ranks
    }
}

/// Returns the group of each rank, for ranks that share no memory. `machines` has the machine of
/// each rank. A group has at most eight successive ranks of one machine. If all ranks are on one
/// machine, a group also has at most half of the ranks, since a census between a few leaders
/// finishes sooner than a round in which many ranks send to one leader. The number of a group is
/// its first rank.
pub fn groups(machines: &[usize]) -> Vec<usize> {
    let alone = machines.iter().all(|machine| *machine == machines[0]);
    let most = if alone { (machines.len() / 2).clamp(1, GROUP) } else { GROUP };
    // For each machine, the group that is being filled, and the number of ranks in it.
    let mut open = BTreeMap::new();
    let group = |(rank, machine)| {
        let (first, size) = open.entry(machine).or_insert((rank, 0));
        if *size == most {
            (*first, *size) = (rank, 0);
        }
        *size += 1;
        *first
    };
    machines.iter().enumerate().map(group).collect()
}

/// The maximum number of ranks in a group of ranks that share no memory: 16 to 64 ranks on two
/// cores were fastest in groups of four and of eight (`benches/log/many_ranks.md`).
const GROUP: usize = 8;

/// Chooses the census of ranks in these places.
///
/// If all ranks share memory, a notification is not a message but a store into a line that its
/// reader polls. So the census is direct for up to 128 ranks, and sparse for more. If not all ranks
/// share memory, the census is sparse if the model predicts that, without groups, a sparse census
/// of this number of ranks is 1.25 times as fast as a direct one. If the ranks of a host share
/// memory, the model must also predict this for a census with leaders. If only the prediction with
/// leaders counted, a sparse census would also be chosen for fewer ranks than were measured.
pub fn choose(places: &Places, machine: &Machine) -> Census {
    let pays = |places: &Places| {
        cost(Census::Direct, places, machine) > MARGIN * cost(Census::Sparse, places, machine)
    };
    let sparse = if places.share() {
        places.ranks > LINES
    } else {
        (!places.memory || pays(places)) && pays(&Places::of(places.ranks, false))
    };
    if sparse { Census::Sparse } else { Census::Direct }
}

/// Returns the predicted time in ns of a census in which no rank has anything for another rank. The
/// prediction assumes that each rank has a core of its own.
pub fn cost(census: Census, places: &Places, machine: &Machine) -> f64 {
    let (rounds, messages) = messages(census, places);
    let (link, within) = (machine.link(places.share()), machine.link(places.memory));
    if !places.have_leaders() {
        return f64::from(rounds) * (link.latency + 2.0 * link.overhead * f64::from(messages));
    }
    match census {
        Census::Direct => {
            let near = f64::from(places.ranks / places.groups) - 1.0;
            let far = f64::from(messages) - near;
            link.latency + 2.0 * link.overhead * far + 2.0 * within.overhead * near
        }
        Census::Sparse | Census::Reduced => {
            let between = f64::from(rounds) * (link.latency + 2.0 * link.overhead);
            between + 2.0 * (within.latency + within.overhead * f64::from(places.most))
        }
    }
}

/// Returns the smallest number of targets per rank for which a reduced census is predicted to
/// finish sooner than a sparse one. With fewer targets, it costs less to forward the items through
/// other ranks than to send the notes and the counts. If a reduced census is never faster, the
/// result exceeds the number of ranks.
pub fn dense(places: &Places, machine: &Machine) -> u32 {
    let (rounds, _) = messages(Census::Sparse, places);
    let link = machine.link(places.share());
    let each = machine.moving.pack + machine.moving.unpack + link.per_byte;
    // On average, half of the bits of a distance are set.
    let item = f64::from(rounds) / 2.0 * (ITEM + ITEM_BYTES * each);
    let counts = cost(Census::Reduced, places, machine) - cost(Census::Sparse, places, machine)
        + f64::from(places.ranks) * COUNT_BYTES * each;
    let saved = item - NOTE - ITEM_BYTES * each;
    let targets = (counts.max(0.0) / saved).ceil().max(1.0);
    if saved > 0.0 && targets < f64::from(u32::MAX) { targets as u32 } else { u32::MAX }
}

/// Returns the maximum size in bytes of a frame of operations that is sent within a census, with
/// the item for its target, instead of in a separate message. Up to this size, the copies of the
/// frame on the ranks that forward it are predicted to take less time than a separate message would
/// take on its sender and its receiver.
pub fn short(places: &Places, machine: &Machine) -> usize {
    let (rounds, _) = messages(Census::Sparse, places);
    let link = machine.link(places.share());
    let each = machine.moving.pack + machine.moving.unpack + link.per_byte;
    // On average, half of the bits of a distance are set. One of the copies is not counted, since a
    // separate message would need it too.
    let within = if places.have_leaders() { 2.0 } else { 0.0 };
    let copies = (f64::from(rounds) / 2.0 + within - 1.0).max(0.0);
    (2.0 * link.overhead / (copies * each)).min(SHORT) as usize
}

/// The largest size of a frame that was measured within a census (`benches/log/many_ranks.md`).
const SHORT: f64 = 256.0;

/// The time in ns that an item of a sparse census takes on each rank that it passes, not counting
/// its bytes.
const ITEM: f64 = 60.0;
/// The bytes of an item in a fence of windows.
const ITEM_BYTES: f64 = 32.0;
/// The time in ns that a note takes on its sender and its receiver together, not counting its
/// bytes. Although a note follows frames of operations, it was measured to take 500 to 1,800 ns
/// more than an item, with 16 to 64 ranks over TCP and with 160 ranks that share memory
/// (`benches/log/many_ranks.md`).
const NOTE: f64 = 1_000.0;
/// The bytes of a count.
const COUNT_BYTES: f64 = 8.0;

/// Returns the number of rounds between ranks, or between groups if these have leaders. Also
/// returns the number of messages that each rank or leader sends and receives in each round.
pub fn messages(census: Census, places: &Places) -> (u32, u32) {
    match census {
        Census::Direct => (u32::from(places.ranks > 1), places.ranks.saturating_sub(1)),
        Census::Sparse if places.have_leaders() => (rounds(places.groups), 1),
        Census::Sparse => (rounds(places.ranks), 1),
        Census::Reduced => {
            let groups = if places.have_leaders() { places.groups } else { places.ranks };
            let halvings = halvings(groups);
            (halvings + if groups > 1 << halvings { 2 } else { 0 }, 1)
        }
    }
}

/// A sparse census is chosen only if it is predicted to be faster than a direct one by this factor.
/// A rank waits in every round, and may lose its core while it waits. The model leaves out the time
/// to get the core back. Measured over TCP, a sparse census is no slower from 3 ranks on, and
/// faster from 8 ranks on (`benches/log/many_ranks.md`).
const MARGIN: f64 = 1.25;

/// The maximum number of ranks in shared memory for which there is a cache line for each pair of
/// ranks. With more ranks, these lines would take more memory than everything else that a rank has.
/// Items for all ranks, as in a collective, would take four times as long as in a sparse census
/// (`benches/log/many_ranks.md`).
const LINES: u32 = 128;

/// Returns the number of rounds of a sparse census of this number of ranks.
pub fn rounds(ranks: u32) -> u32 {
    ranks.max(1).next_power_of_two().trailing_zeros()
}

/// Returns the number of halving rounds of a reduced census of this number of ranks. They are the
/// rounds of the largest power of two that is not above `ranks`.
pub fn halvings(ranks: u32) -> u32 {
    ranks.max(1).ilog2()
}

/// Returns the rank that `rank` sends to in a round, and the rank that it receives from.
pub fn partners(rank: u32, ranks: u32, round: u32) -> (u32, u32) {
    let (rank, ranks, step) = (u64::from(rank), u64::from(ranks), 1u64 << round);
    (((rank + step) % ranks) as u32, ((rank + ranks - step) % ranks) as u32)
}

/// Returns whether an item is sent on in a round. Its target is `distance` ranks away.
pub fn leaves(distance: u32, round: u32) -> bool {
    distance >> round & 1 == 1
}

/// Returns whether, in a round, a rank passes on an item for all ranks. The rank is `distance`
/// ranks after the origin of the item.
pub fn spreads(distance: u32, ranks: u32, round: u32) -> bool {
    let step = 1u64 << round;
    u64::from(distance) < step && u64::from(distance) + step < u64::from(ranks)
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Census {
    type Err = Error;

    /// Parses the name of a census.
    ///
    /// # Errors
    /// Class `Arg` for any other text. The message lists the names.
    fn from_str(text: &str) -> Result<Self, Error> {
        Census::ALL.into_iter().find(|census| census.name() == text).ok_or_else(|| {
            Error::new(
                ErrorClass::Arg,
                format!("there is no census `{text}`: it is `direct`, `sparse` or `reduced`"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Link;

    /// Returns each rank's items after all rounds, as pairs of origin and target. An item for all
    /// ranks has the number of ranks as its target.
    fn run(ranks: u32) -> Vec<Vec<(u32, u32)>> {
        let own = |rank| (0..=ranks).filter(move |&to| to != rank).map(move |to| (rank, to)).collect();
        let mut held: Vec<Vec<(u32, u32)>> = (0..ranks).map(own).collect();
        for round in 0..rounds(ranks) {
            let mut moved = vec![Vec::new(); ranks as usize];
            for rank in 0..ranks {
                let (to, _) = partners(rank, ranks, round);
                assert_eq!(partners(to, ranks, round).1, rank);
                held[rank as usize].retain(|&(origin, target)| {
                    let all = target == ranks;
                    let goes = if all {
                        spreads((rank + ranks - origin) % ranks, ranks, round)
                    } else {
                        leaves((target + ranks - rank) % ranks, round)
                    };
                    if goes {
                        moved[to as usize].push((origin, target));
                    }
                    all || !goes
                });
            }
            held.iter_mut().zip(moved).for_each(|(held, moved)| held.extend(moved));
        }
        held
    }

    #[test]
    fn every_item_comes_to_its_target_once_for_any_number_of_ranks() {
        for ranks in 1..70 {
            for (rank, mut held) in (0..ranks).zip(run(ranks)) {
                held.sort_unstable();
                let from = |origin: u32| {
                    let own = (origin != rank).then_some((origin, rank));
                    own.into_iter().chain([(origin, ranks)])
                };
                let expected: Vec<_> = (0..ranks).flat_map(from).collect();
                assert_eq!(held, expected, "{ranks} ranks, at {rank}");
            }
        }
    }

    #[test]
    fn no_rank_sends_to_itself_or_twice_to_another() {
        for ranks in 2..300 {
            let mut to: Vec<u32> = (0..rounds(ranks)).map(|round| partners(0, ranks, round).0).collect();
            to.sort_unstable();
            to.dedup();
            assert!(to.len() == rounds(ranks) as usize && to[0] > 0, "{ranks}: {to:?}");
        }
    }

    #[test]
    fn few_ranks_are_direct_more_that_share_memory_than_that_exchange_messages() {
        let machine = Machine::default();
        let chosen = |share, machine: &Machine| -> Vec<u32> {
            (1..1100).filter(|&ranks| choose(&Places::of(ranks, share), machine) == Census::Sparse).collect()
        };
        assert_eq!(chosen(true, &machine), (129..1100).collect::<Vec<_>>());
        // With 9 ranks, a sparse census needs one more round than with 8. This round takes more
        // time than is saved by sending fewer messages.
        assert_eq!(chosen(false, &machine), (8..1100).filter(|&ranks| ranks != 9).collect::<Vec<_>>());
        // If messages cost nothing but their latency, only the number of rounds counts.
        let far = Machine { network: Link { latency: 1e6, overhead: 1.0, ..machine.network }, ..machine };
        assert_eq!(chosen(false, &far), []);
    }

    #[test]
    fn a_reduced_census_is_for_ranks_with_many_targets_where_bytes_are_dear() {
        let machine = Machine::default();
        let slow = |per_byte: f64| Machine { network: Link { per_byte, ..machine.network }, ..machine };
        let dense = |ranks: u32, machine: &Machine| dense(&Places::of(ranks, false), machine);
        for ranks in [1, 2, 16, 64, 1000, 100_000] {
            assert_eq!(dense(ranks, &machine), u32::MAX, "{ranks}");
        }
        assert_eq!(super::dense(&Places::of(1000, true), &machine), u32::MAX);
        // At 100 ns a byte, the counts for 64 ranks take 51 us, and each target saves 5.6 us. With
        // 65 ranks there is one more round, and each target saves 7.2 us.
        assert_eq!([16, 64, 65, 1024].map(|ranks| dense(ranks, &slow(100.0))), [6, 10, 8, 68]);
    }

    #[test]
    fn a_reduced_census_has_a_message_a_round_and_two_more_of_ranks_beyond_a_power_of_two() {
        for (ranks, expected) in [(1, 0), (2, 1), (3, 3), (4, 2), (16, 4), (17, 6), (64, 6), (100, 8)] {
            assert_eq!(messages(Census::Reduced, &Places::of(ranks, false)), (expected, 1), "{ranks}");
        }
    }

    #[test]
    fn where_ranks_share_hosts_the_rounds_are_of_hosts() {
        let machine = Machine::default();
        let places = |hosts, most| Places { ranks: hosts * most, groups: hosts, most, memory: true };
        for (hosts, most, rounds) in [(2, 2, 1), (2, 64, 1), (3, 4, 2), (16, 16, 4)] {
            let places = places(hosts, most);
            assert_eq!(messages(Census::Sparse, &places), (rounds, 1));
            let [hosts_first, flat] = [places, Places::of(places.ranks, false)]
                .map(|places| cost(Census::Sparse, &places, &machine));
            assert!(hosts_first < flat, "{places:?}: {hosts_first} and {flat}");
        }
        let chosen = [(2, 2), (2, 3), (2, 4), (4, 4), (64, 32)]
            .map(|(hosts, most)| choose(&places(hosts, most), &machine) == Census::Sparse);
        assert_eq!(chosen, [false, false, true, true, true]);
    }

    #[test]
    fn ranks_of_a_machine_that_share_no_memory_are_in_groups() {
        assert_eq!(groups(&[]), []);
        assert_eq!(groups(&[0]), [0]);
        assert_eq!(groups(&[0, 0, 0]), [0, 1, 2]);
        assert_eq!(groups(&[0; 5]), [0, 0, 2, 2, 4]);
        assert_eq!(groups(&[0; 8]), [0, 0, 0, 0, 4, 4, 4, 4]);
        assert_eq!(groups(&[0, 1, 0, 1, 2]), [0, 1, 0, 1, 4]);
        assert_eq!(groups(&[0, 0, 0, 0, 1]), [0, 0, 0, 0, 4], "one of several machines is not halved");
        assert_eq!(groups(&[1, 0, 0, 0, 0]), [0, 1, 1, 1, 1], "whichever is first");
        for (ranks, machines) in [(16, 1), (64, 1), (64, 4), (40, 4), (7, 7)] {
            let found = groups(&(0..ranks).map(|rank| rank % machines).collect::<Vec<_>>());
            let each: BTreeMap<_, Vec<usize>> =
                found.iter().enumerate().fold(BTreeMap::new(), |mut each, (rank, group)| {
                    each.entry(*group).or_insert_with(Vec::new).push(rank);
                    each
                });
            for (first, members) in &each {
                assert!(members.len() <= GROUP && members[0] == *first, "{ranks} on {machines}: {members:?}");
                assert!(members.iter().all(|rank| rank % machines == first % machines), "{members:?}");
            }
            assert_eq!(each.len(), (ranks / machines).div_ceil(GROUP) * machines, "{ranks} on {machines}");
        }
        let machine = Machine::default();
        let chosen = |ranks, most: u32| {
            choose(&Places { ranks, groups: ranks.div_ceil(most), most, memory: false }, &machine)
        };
        assert_eq!(
            [(4, 2), (8, 4), (64, 8)].map(|(ranks, most)| chosen(ranks, most)),
            [Census::Direct, Census::Sparse, Census::Sparse]
        );
    }

    #[test]
    fn short_frames_ride_where_bytes_are_cheap() {
        let machine = Machine::default();
        let many = [2, 8, 64, 100_000].map(|ranks| short(&Places::of(ranks, false), &machine));
        assert_eq!(many[..3], [256; 3]);
        assert!(many[3] > 0, "{many:?}");
        let mut dear = machine;
        dear.network.per_byte = 1_000.0;
        assert_eq!(short(&Places::of(64, false), &dear), 0);
    }

    #[test]
    fn a_sparse_census_has_a_message_a_round() {
        for (ranks, expected) in [(1, 0), (2, 1), (3, 2), (16, 4), (17, 5), (64, 6), (256, 8), (1000, 10)] {
            assert_eq!(messages(Census::Sparse, &Places::of(ranks, false)), (expected, 1), "{ranks}");
        }
        let direct = [1, 64].map(|ranks| messages(Census::Direct, &Places::of(ranks, false)));
        assert_eq!(direct, [(0, 0), (1, 63)]);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for census in Census::ALL {
            assert_eq!(census.to_string().parse::<Census>().unwrap(), census);
        }
        let refused = "dense".parse::<Census>().unwrap_err();
        assert!(refused.message().contains("`direct`, `sparse` or `reduced`"), "{refused}");
    }
}
