//! [`Neighbours`]: which ranks have operations on which others. Ranks with equal neighbourhoods are
//! grouped.

use crate::ids::{ClassId, Delta, Id, Rank};
use crate::ir::pattern::Patterns;
use crate::ir::schedule::Placement;

/// For each rank, the targets of its operations and the origins of operations on it. Operations
/// that move nothing do not count.
pub(crate) struct Neighbours<'p> {
    patterns: &'p Patterns,
    /// For each pattern, the deltas of its targets, ascending.
    targets: Vec<Vec<i64>>,
    /// The ranks that have operations on rank `r`, ascending: `origins[starts[r]..starts[r + 1]]`.
    starts: Vec<u32>,
    origins: Vec<u32>,
}

/// One peer of a rank.
#[derive(Clone, Copy)]
pub(crate) struct Neighbour {
    pub(crate) delta: Delta,
    pub(crate) pattern: ClassId,
    pub(crate) shared: bool,
}

impl<'p> Neighbours<'p> {
    /// Creates the table for patterns whose targets are all in the world.
    pub(crate) fn of(patterns: &'p Patterns) -> Self {
        let targets: Vec<Vec<i64>> = patterns
            .classes
            .values()
            .map(|pattern| {
                let moving = pattern.operations.values().filter(|operation| operation.remote.size() > 0);
                let mut targets: Vec<i64> =
                    moving.filter_map(|operation| Some(operation.target?.0)).collect();
                targets.sort_unstable();
                targets.dedup();
                targets
            })
            .collect();
        let edges = || {
            patterns.class_of.iter().enumerate().flat_map(|(rank, class)| {
                targets[class.index()].iter().map(move |delta| (rank as u32, (rank as i64 + delta) as usize))
            })
        };
        let mut starts = vec![0_u32; patterns.class_of.len() + 1];
        for (_, target) in edges() {
            starts[target + 1] += 1;
        }
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut next = starts.clone();
        let mut origins = vec![0; starts.last().map_or(0, |&end| end as usize)];
        for (origin, target) in edges() {
            origins[next[target] as usize] = origin;
            next[target] += 1;
        }
        Self { patterns, targets, starts, origins }
    }

    /// Writes a rank's neighbourhood to `row`, by ascending delta. Ranks with equal rows have equal
    /// neighbourhoods.
    pub(crate) fn write(&self, rank: Rank, placement: Placement, row: &mut Vec<u32>) {
        let class = self.patterns.class_of[rank.index()];
        row.clear();
        row.push(class.0);
        let mut push = |delta: i64| {
            let peer = (i64::from(rank.0) + delta) as u32;
            let shared = placement.share(rank.0, peer);
            let pattern = self.patterns.class_of[peer as usize].0;
            row.extend([delta as u32, (delta >> 32) as u32, pattern, u32::from(shared)]);
        };
        let mut targets = self.targets[class.index()].iter().copied().peekable();
        for &origin in
            &self.origins[self.starts[rank.index()] as usize..self.starts[rank.index() + 1] as usize]
        {
            let origin = i64::from(origin) - i64::from(rank.0);
            while let Some(target) = targets.next_if(|&target| target < origin) {
                push(target);
            }
            targets.next_if_eq(&origin);
            push(origin);
        }
        targets.for_each(push);
    }

    /// Returns the rank's pattern and its peers from a row that [`Neighbours::write`] wrote.
    pub(crate) fn read(row: &[u32]) -> (ClassId, impl Iterator<Item = Neighbour>) {
        let peers = row[1..].chunks_exact(4).map(|peer| Neighbour {
            delta: Delta((u64::from(peer[1]) << 32 | u64::from(peer[0])) as i64),
            pattern: ClassId(peer[2]),
            shared: peer[3] != 0,
        });
        (ClassId(row[0]), peers)
    }
}
