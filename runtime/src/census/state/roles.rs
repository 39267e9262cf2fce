//! [`Roles`]: the roles of the ranks of a world in a [census](fencepost_planner::census); and
//! [`Leg`]: a part of a census.

use fencepost_planner::census::{Places, groups, partners};
use std::collections::{BTreeMap, BTreeSet};

/// The roles of the ranks of a world in a census. Each rank acts for itself, or the ranks are in
/// [groups](fencepost_planner::census::Places), and the first rank of a group leads the group.
#[derive(Clone)]
pub(crate) struct Roles {
    pub(super) me: usize,
    pub(super) ranks: usize,
    /// The group of each rank, and the first rank of each group. Groups are numbered in the order
    /// of their first ranks. `None` if each rank acts for itself.
    pub(super) groups: Option<(Vec<u32>, Vec<usize>)>,
    pub(super) places: Places,
}

/// A part of a census.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leg {
    /// A rank sends its items to the leader of its group.
    ToLeader,
    /// A round of the leaders.
    Round(u32),
    /// A leader sends a rank of its group the result.
    FromLeader,
}

impl Roles {
    /// Returns the roles of ranks on these hosts and machines, for this rank, `me`.
    pub(crate) fn new(me: usize, hosts: Vec<usize>, machines: &[usize]) -> Self {
        let ranks = hosts.len();
        let memory = ranks > hosts.iter().collect::<BTreeSet<_>>().len();
        let groups = if memory { hosts } else { groups(machines) };
        let mut firsts: Vec<usize> = Vec::new();
        let mut number = BTreeMap::new();
        let place = |(rank, group): (usize, usize)| {
            *number.entry(group).or_insert_with(|| {
                firsts.push(rank);
                firsts.len() as u32 - 1
            })
        };
        let groups: Vec<u32> = groups.into_iter().enumerate().map(place).collect();
        let mut each = vec![0; firsts.len()];
        groups.iter().for_each(|&group| each[group as usize] += 1);
        let most = each.into_iter().max().unwrap_or(0);
        let places = Places { ranks: ranks as u32, groups: firsts.len() as u32, most, memory };
        Self { me, ranks, groups: places.have_leaders().then_some((groups, firsts)), places }
    }

    /// Returns how many ranks there are, and in how many groups.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Returns how many ranks act for themselves or lead a group.
    pub(crate) fn leaders(&self) -> u32 {
        self.groups.as_ref().map_or(self.ranks, |(_, firsts)| firsts.len()) as u32
    }

    /// Returns the leader of this rank, which may be the rank itself.
    pub(crate) fn leader(&self) -> usize {
        self.groups.as_ref().map_or(self.me, |(groups, firsts)| firsts[groups[self.me] as usize])
    }

    /// Returns the other ranks of the group that this rank leads, if it leads one.
    pub(crate) fn led(&self) -> impl Iterator<Item = usize> {
        let groups = self.groups.as_ref().filter(|_| self.leader() == self.me).map(|(groups, _)| groups);
        let ranks = groups.into_iter().flat_map(|groups| groups.iter().enumerate());
        ranks
            .filter(|&(rank, _)| self.place(rank) == self.place(self.me))
            .map(|(rank, _)| rank)
            .filter(|&rank| rank != self.me)
    }

    /// Returns the rank to which this rank sends in a round, and the rank from which it receives.
    /// This rank leads a group or acts for itself.
    pub(crate) fn partners(&self, round: u32) -> (usize, usize) {
        let (to, from) = partners(self.place(self.me), self.leaders(), round);
        (self.leader_of(to), self.leader_of(from))
    }

    /// Returns the leader of a group.
    pub(super) fn leader_of(&self, group: u32) -> usize {
        self.groups.as_ref().map_or(group as usize, |(_, firsts)| firsts[group as usize])
    }

    /// Returns the roles of the same ranks in this number of groups. Each further group is merged
    /// into one of the first groups.
    pub(super) fn merged(&self, groups: u32) -> Self {
        let group = (0..self.ranks).map(|rank| self.place(rank) % groups).collect();
        let firsts = (0..groups).map(|group| self.leader_of(group)).collect();
        Self { groups: Some((group, firsts)), ..self.clone() }
    }

    /// Returns the number of the group of a rank, or the number of the rank if each rank acts for
    /// itself.
    pub(super) fn place(&self, rank: usize) -> u32 {
        self.groups.as_ref().map_or(rank as u32, |(groups, _)| groups[rank])
    }

    /// Returns how many places `to` is above `from`, with wraparound after the last place.
    pub(super) fn distance(&self, from: u32, to: u32) -> u32 {
        let (from, to, places) = (self.place(from as usize), self.place(to as usize), self.leaders());
        (to + places - from) % places
    }
}
