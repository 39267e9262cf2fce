//! Orders the messages into rounds: in each round a rank sends at most one message and receives at
//! most one.
//!
//! ```text
//! c0: sends +1, +2; receives -2, -1  c0: sends +1 round0, +2 round1; receives -1 round0, -2 round1
//! ```
//!
//! If the layout of the ranks has no more directions than the busiest rank has messages, the
//! direction of a message is its round. All pairs of peers in one direction form a permutation: a
//! shift of the wrapped grid. Ranks that differ only by their position then stay in one class. A
//! grid's halo and a total exchange (whose order is the Latin square) are ordered in this way.
//! Otherwise the messages are coloured, rank by rank. Rounds are an order in which messages are
//! issued, not a barrier. If the order of writes can be observed, the target applies messages by
//! origin, whichever round they came in.
//!
//! In a *skewed* order, target `t` receives origin `o` in round `o + t`, so the target could apply
//! each message when it arrives, even if the order of writes can be observed. This order was
//! rejected because it needs `2p - 1` rounds instead of `p`. It would save the target the memory
//! for messages that must wait. But the target needs no such memory in any case, since a frame
//! waits in its sender's buffer until its turn.
//!
//! **Requires** the demand of these routes.
//! **Ensures** at most [`Demand::h`] rounds. Messages of one link have ascending rounds.
//! **Cost** ranks x peers small steps and, if there are too many directions, the cost of
//! [`colour`].
//! **Source** König's theorem: the chromatic index of a bipartite multigraph is its greatest
//! degree.

use super::classes::Classes;
use crate::ids::{ClassId, Delta, LinkId, RoundId};
use crate::ir::demand::Demand;
use crate::ir::pattern::Mode;
use crate::ir::peers::{Peer, Peers};
use crate::ir::rounds::{RoundAssignment, Rounds};
use crate::ir::routed::Routed;
use crate::table::Table;

/// See the [module](self).
pub fn order<'p>(routed: Routed<'p>, demand: Demand) -> Rounds<'p> {
    let assigned = by_direction(&routed, demand.h).unwrap_or_else(|| by_colour(&routed));
    let Routed { peers, links, .. } = &routed;
    // Rounds may split the classes of ranks.
    let (mut rows, mut row) = (Classes::default(), Vec::new());
    let (mut classes, mut kept) = (Table::new(), Table::new());
    let class_of = peers
        .class_of
        .iter()
        .enumerate()
        .map(|(rank, &class)| {
            row.clear();
            row.push(class.0);
            row.extend_from_slice(assigned.of(rank));
            let (id, new) = rows.intern(&row);
            if new {
                classes.push(peers.classes[class].clone());
                let mut rest = assigned.of(rank);
                let mut take = |link: Option<LinkId>| {
                    let (now, later) = rest.split_at(link.map_or(0, |link| links[link].rounds()));
                    rest = later;
                    now.iter().map(|&round| RoundId(round)).collect()
                };
                let assignment = |peer: &Peer| match peer.delta {
                    Delta::SELF => RoundAssignment::default(),
                    _ => RoundAssignment { sends: take(peer.sends), receives: take(peer.receives) },
                };
                kept.push(peers.classes[class].peers.iter().map(assignment).collect());
            }
            ClassId(id)
        })
        .collect();
    let peers = Peers { classes, class_of };
    Rounds { routed: Routed { peers, ..routed }, assignments: kept, rounds: assigned.rounds, h: demand.h }
}

/// For each rank and each of its peers except itself, the rounds of the messages that the rank
/// sends and receives.
struct Assignments {
    rounds: u32,
    starts: Vec<usize>,
    rounds_of_links: Vec<u32>,
}

impl Assignments {
    fn of(&self, rank: usize) -> &[u32] {
        &self.rounds_of_links[self.starts[rank]..self.starts[rank + 1]]
    }
}

/// Returns rounds by direction, or `None` if that takes more than `h` rounds.
fn by_direction(routed: &Routed<'_>, h: u32) -> Option<Assignments> {
    let peers = &routed.peers;
    let grid = Grid::of(&routed.patterns.shape, peers.class_of.len());
    // For each direction, the number of rounds that it takes, and whether it has an aggressive
    // message.
    let mut taken = vec![(0_u32, false); peers.class_of.len()];
    let mut total = 0;
    for (rank, &class) in peers.class_of.iter().enumerate() {
        let here = grid.coordinates(rank);
        for (delta, link) in peers.classes[class].out() {
            let (most, aggressive) = &mut taken[grid.toward(here, (rank as i64 + delta.0) as usize)];
            let route = &routed.links[link];
            let rounds = route.rounds() as u32;
            if rounds > *most {
                total += rounds - *most;
                *most = rounds;
            }
            *aggressive |= route.messages.iter().any(|message| message.mode == Mode::Aggressive);
        }
        if total > h {
            return None;
        }
    }
    let mut base = vec![0; taken.len()];
    let mut next = 0;
    for first in [true, false] {
        for (direction, &(rounds, aggressive)) in taken.iter().enumerate() {
            if aggressive == first {
                base[direction] = next;
                next += rounds;
            }
        }
    }
    let mut assigned = Assignments { rounds: total, starts: vec![0], rounds_of_links: Vec::new() };
    for (rank, &class) in peers.class_of.iter().enumerate() {
        let here = grid.coordinates(rank);
        for peer in peers.classes[class].peers.iter().filter(|peer| peer.delta != Delta::SELF) {
            let there = (rank as i64 + peer.delta.0) as usize;
            let mut take = |link: Option<_>, direction: usize| {
                let rounds = link.map_or(0, |link| routed.links[link].rounds() as u32);
                assigned.rounds_of_links.extend(base[direction]..base[direction] + rounds);
            };
            take(peer.sends, grid.toward(here, there));
            take(peer.receives, grid.toward(grid.coordinates(there), rank));
        }
        assigned.starts.push(assigned.rounds_of_links.len());
    }
    Some(assigned)
}

/// The layout of the ranks as a grid that wraps around.
struct Grid {
    shape: Vec<u32>,
}

/// The coordinates of a rank in the grid. A grid of more than three dimensions is treated as a
/// single row.
type Coordinates = [u32; 3];

impl Grid {
    fn of(shape: &[u32], ranks: usize) -> Self {
        let fits = shape.len() <= 3 && shape.iter().map(|&n| n as usize).product::<usize>() == ranks;
        let mut shape = if fits { shape.to_vec() } else { vec![ranks as u32] };
        while shape.len() < 3 {
            shape.insert(0, 1);
        }
        Self { shape }
    }

    fn coordinates(&self, rank: usize) -> Coordinates {
        let (rank, inner, middle) = (rank as u32, self.shape[2], self.shape[1]);
        let row = rank / inner;
        [row / middle, row % middle, rank % inner]
    }

    /// Returns the direction from `here` to `rank`. A direction is a shift of the wrapped grid,
    /// represented by the rank to which it moves rank 0.
    fn toward(&self, here: Coordinates, rank: usize) -> usize {
        let there = self.coordinates(rank);
        let mut direction = 0;
        for dim in 0..3 {
            let n = self.shape[dim];
            let shift =
                if there[dim] >= here[dim] { there[dim] - here[dim] } else { there[dim] + n - here[dim] };
            direction = direction * n as usize + shift as usize;
        }
        direction
    }
}

/// Assigns the smallest possible number of rounds, for any set of messages.
fn by_colour(routed: &Routed<'_>) -> Assignments {
    let peers = &routed.peers;
    let (mut edges, mut firsts, mut first_of_rank) = (Vec::new(), Vec::new(), Vec::new());
    for (rank, &class) in peers.class_of.iter().enumerate() {
        first_of_rank.push(firsts.len());
        for peer in &peers.classes[class].peers {
            firsts.push(edges.len());
            if let (true, Some(link)) = (peer.delta != Delta::SELF, peer.sends) {
                let edge = (rank as u32, (rank as i64 + peer.delta.0) as u32);
                edges.extend(std::iter::repeat_n(edge, routed.links[link].rounds()));
            }
        }
    }
    firsts.push(edges.len());
    let mut rounds: Vec<u32> = colour(&edges).into_iter().map(|round| round.0).collect();
    for link in firsts.windows(2) {
        rounds[link[0]..link[1]].sort_unstable();
    }
    let sent = |place: usize| rounds[firsts[place]..firsts[place + 1]].iter();
    let mut assigned = Assignments { rounds: 0, starts: vec![0], rounds_of_links: Vec::new() };
    for (rank, &class) in peers.class_of.iter().enumerate() {
        for (place, peer) in peers.classes[class].peers.iter().enumerate() {
            if peer.delta == Delta::SELF {
                continue;
            }
            assigned.rounds_of_links.extend(sent(first_of_rank[rank] + place));
            let other = (rank as i64 + peer.delta.0) as usize;
            if let Some(place) = peers.classes[peers.class_of[other]].place(peer.delta.back()) {
                assigned.rounds_of_links.extend(sent(first_of_rank[other] + place));
            }
        }
        assigned.starts.push(assigned.rounds_of_links.len());
    }
    assigned.rounds = rounds.iter().map(|round| round + 1).max().unwrap_or(0);
    assigned
}

/// Assigns a round to each edge of a bipartite multigraph, such that edges with a common sender or
/// receiver have different rounds. The number of rounds is the largest number of edges of one
/// sender or receiver.
///
/// Edges are added one by one. If the sender and the receiver have no free round in common, two
/// rounds are exchanged along a path. The path begins at the receiver, and its edges have the two
/// rounds in turn. The path cannot return to the sender. Senders with few edges are first merged
/// into groups, and so are receivers. No group has more edges than the largest degree. Edges of one
/// group get different rounds, which is more than necessary, but never costs a round. With these
/// groups, the tables hold about two entries per edge, however uneven the degrees are.
///
/// # Cost
/// Memory is proportional to the edges. Time is edges x vertices at worst; in measured cases it was
/// about edges x log edges.
pub fn colour(edges: &[(u32, u32)]) -> Vec<RoundId> {
    let (senders, sent) = degrees(edges.iter().map(|edge| edge.0));
    let (receivers, received) = degrees(edges.iter().map(|edge| edge.1));
    let rounds = sent.max(received);
    let mut colouring = Colouring {
        rounds,
        edges: Vec::with_capacity(edges.len()),
        of: Vec::with_capacity(edges.len()),
        sides: [Vertices::new(&senders, rounds), Vertices::new(&receivers, rounds)],
    };
    let mut path = Vec::new();
    for &(sender, receiver) in edges {
        let ends = [colouring.sides[0].group[sender as usize], colouring.sides[1].group[receiver as usize]];
        colouring.add(ends, &mut path);
    }
    colouring.of.into_iter().map(RoundId).collect()
}

/// Returns the number of edges of each vertex, and the largest of these numbers.
fn degrees(ends: impl Iterator<Item = u32>) -> (Vec<u32>, u32) {
    let mut degrees = Vec::new();
    for end in ends {
        if degrees.len() <= end as usize {
            degrees.resize(end as usize + 1, 0);
        }
        degrees[end as usize] += 1;
    }
    let most = degrees.iter().copied().max().unwrap_or(0);
    (degrees, most)
}

/// Senders or receivers, in groups that have at most as many edges as there are rounds.
struct Vertices {
    group: Vec<u32>,
    /// For each group and round, the number of the edge plus one, or 0 if there is no edge.
    edge: Vec<u32>,
    /// The same information as bits that mark the free rounds.
    free: Vec<u64>,
}

impl Vertices {
    fn new(degrees: &[u32], rounds: u32) -> Self {
        let (mut groups, mut filled) = (0_u32, 0);
        let group = degrees
            .iter()
            .map(|&degree| {
                if filled + degree > rounds {
                    (groups, filled) = (groups + 1, 0);
                }
                filled += degree;
                groups
            })
            .collect();
        let groups = groups as usize + 1;
        let words = (rounds as usize).div_ceil(64);
        let mut free = vec![u64::MAX; groups * words];
        if !rounds.is_multiple_of(64) {
            free.iter_mut().skip(words - 1).step_by(words).for_each(|word| *word = (1 << (rounds % 64)) - 1);
        }
        Self { group, edge: vec![0; groups * rounds as usize], free }
    }
}

struct Colouring {
    rounds: u32,
    edges: Vec<[u32; 2]>,
    of: Vec<u32>,
    sides: [Vertices; 2],
}

impl Colouring {
    fn add(&mut self, ends: [u32; 2], path: &mut Vec<u32>) {
        let words = (self.rounds as usize).div_ceil(64);
        let [sender, receiver] = [0, 1].map(|side| {
            let first = ends[side] as usize * words;
            &self.sides[side].free[first..first + words]
        });
        let lowest = |bits: &mut dyn Iterator<Item = u64>| {
            bits.enumerate()
                .find(|&(_, bits)| bits != 0)
                .map(|(word, bits)| word as u32 * 64 + bits.trailing_zeros())
        };
        let common = lowest(&mut sender.iter().zip(receiver).map(|(a, b)| a & b));
        let edge = self.edges.len() as u32;
        let round = match common {
            Some(round) => round,
            None => {
                let mine = lowest(&mut sender.iter().copied());
                let theirs = lowest(&mut receiver.iter().copied());
                let (Some(mine), Some(theirs)) = (mine, theirs) else {
                    unreachable!("no vertex has more edges than there are rounds")
                };
                self.exchange(ends[1], mine, theirs, path);
                mine
            }
        };
        self.edges.push(ends);
        self.of.push(round);
        self.set(edge, round);
    }

    /// Exchanges two rounds along a path. The path begins at `receiver`, and its edges have the two
    /// rounds in turn, beginning with `first`.
    fn exchange(&mut self, receiver: u32, first: u32, second: u32, path: &mut Vec<u32>) {
        path.clear();
        let (mut side, mut vertex, mut rounds) = (1, receiver, [first, second]);
        loop {
            let found = self.sides[side].edge[vertex as usize * self.rounds as usize + rounds[0] as usize];
            if found == 0 {
                break;
            }
            path.push(found - 1);
            side = 1 - side;
            vertex = self.edges[found as usize - 1][side];
            rounds.swap(0, 1);
        }
        for &edge in path.iter() {
            self.clear(edge, self.of[edge as usize]);
        }
        for &edge in path.iter() {
            let round = first + second - self.of[edge as usize];
            self.of[edge as usize] = round;
            self.set(edge, round);
        }
    }

    fn set(&mut self, edge: u32, round: u32) {
        self.write(edge, round, edge + 1);
    }

    fn clear(&mut self, edge: u32, round: u32) {
        self.write(edge, round, 0);
    }

    fn write(&mut self, edge: u32, round: u32, value: u32) {
        let words = (self.rounds as usize).div_ceil(64);
        for (side, vertex) in self.edges[edge as usize].into_iter().enumerate() {
            let vertices = &mut self.sides[side];
            vertices.edge[vertex as usize * self.rounds as usize + round as usize] = value;
            let word = &mut vertices.free[vertex as usize * words + round as usize / 64];
            let bit = 1 << (round % 64);
            *word = if value == 0 { *word | bit } else { *word & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::colour;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Checks that each round is a partial matching. Returns the number of rounds and the largest
    /// degree.
    fn check(edges: &[(u32, u32)]) -> (usize, usize) {
        let rounds = colour(edges);
        assert_eq!(rounds.len(), edges.len());
        let (mut senders, mut receivers) = (HashSet::new(), HashSet::new());
        let mut degrees = [[0; 64]; 2];
        for (&(from, to), round) in edges.iter().zip(&rounds) {
            assert!(senders.insert((from, round.0)), "{from} sends twice in {round}");
            assert!(receivers.insert((to, round.0)), "{to} receives twice in {round}");
            degrees[0][from as usize % 64] += usize::from(from < 64);
            degrees[1][to as usize % 64] += usize::from(to < 64);
        }
        let used = rounds.iter().map(|round| round.0 as usize + 1).max().unwrap_or(0);
        (used, degrees.into_iter().flatten().max().unwrap_or(0))
    }

    proptest! {
        #[test]
        fn the_coloured_order_needs_at_most_h_rounds_each_a_partial_matching(
            edges in prop::collection::vec((0_u32..14, 0_u32..14), 0..160),
        ) {
            let (used, h) = check(&edges);
            prop_assert_eq!(used, h);
        }

        #[test]
        fn one_busy_rank_among_many_idle_ones_needs_no_more(
            edges in prop::collection::vec((0_u32..64, 0_u32..64), 0..100), star in 0_u32..64,
        ) {
            let mut edges = edges;
            edges.extend((0..64).map(|to| (star, to)));
            let (used, h) = check(&edges);
            prop_assert_eq!(used, h);
        }
    }

    #[test]
    fn a_dense_regular_graph_is_coloured_exactly() {
        let edges: Vec<(u32, u32)> =
            (0..40).flat_map(|a| (0..40).map(move |b| (a, (a * 7 + b * b) % 40))).collect();
        let (used, h) = check(&edges);
        assert_eq!(used, h);
    }
}
