//! [`Stands`]: where the ranks of a world stand in a [census](fencepost_planner::census), and [`Leg`], the parts of one.

use fencepost_planner::census::{Places, groups, partners};
use std::collections::{BTreeMap, BTreeSet};

/// Where the ranks of a world stand in a census: each by itself, or in [groups](fencepost_planner::census::Places), of which
/// the first rank speaks for the others.
#[derive(Clone)]
pub(crate) struct Stands {
    pub(super) me: usize,
    pub(super) ranks: usize,
    /// The group of each rank, numbered by first ranks, and the first rank of each; none where each stands by itself.
    pub(super) groups: Option<(Vec<u32>, Vec<usize>)>,
    pub(super) places: Places,
}

/// A part of a census.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leg {
    /// A rank gives what it has to the one that speaks for it.
    ToSpeaker,
    /// A round of those that speak.
    Round(u32),
    /// One that speaks tells another for which it does.
    FromSpeaker,
}

impl Stands {
    /// Where ranks of these hosts and machines stand, on this rank, `me`.
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
        Self { me, ranks, groups: places.have_speakers().then_some((groups, firsts)), places }
    }

    /// How many ranks there are, and in how many groups.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// How many stand by themselves or speak for others.
    pub(crate) fn speakers(&self) -> u32 {
        self.groups.as_ref().map_or(self.ranks, |(_, firsts)| firsts.len()) as u32
    }

    /// The rank that speaks for this one: itself, where it speaks.
    pub(crate) fn speaker(&self) -> usize {
        self.groups.as_ref().map_or(self.me, |(groups, firsts)| firsts[groups[self.me] as usize])
    }

    /// The ranks that this one speaks for, if it speaks; without itself.
    pub(crate) fn spoken_for(&self) -> impl Iterator<Item = usize> {
        let groups = self.groups.as_ref().filter(|_| self.speaker() == self.me).map(|(groups, _)| groups);
        let ranks = groups.into_iter().flat_map(|groups| groups.iter().enumerate());
        ranks
            .filter(|&(rank, _)| self.place(rank) == self.place(self.me))
            .map(|(rank, _)| rank)
            .filter(|&rank| rank != self.me)
    }

    /// The rank that this one, which speaks, sends to in a round, and the one that it receives from.
    pub(crate) fn partners(&self, round: u32) -> (usize, usize) {
        let (to, from) = partners(self.place(self.me), self.speakers(), round);
        (self.speaker_of(to), self.speaker_of(from))
    }

    /// The rank that speaks for a group.
    pub(super) fn speaker_of(&self, group: u32) -> usize {
        self.groups.as_ref().map_or(group as usize, |(_, firsts)| firsts[group as usize])
    }

    /// The same ranks in this number of groups: each group beyond them is added to one of those.
    pub(super) fn merged(&self, groups: u32) -> Self {
        let group = (0..self.ranks).map(|rank| self.place(rank) % groups).collect();
        let firsts = (0..groups).map(|group| self.speaker_of(group)).collect();
        Self { groups: Some((group, firsts)), ..self.clone() }
    }

    /// The number of the group of a rank, or of a rank that stands by itself.
    pub(super) fn place(&self, rank: usize) -> u32 {
        self.groups.as_ref().map_or(rank as u32, |(groups, _)| groups[rank])
    }

    /// How many places further `to` is than `from`, counted upward and round.
    pub(super) fn distance(&self, from: u32, to: u32) -> u32 {
        let (from, to, places) = (self.place(from as usize), self.place(to as usize), self.speakers());
        (to + places - from) % places
    }
}
