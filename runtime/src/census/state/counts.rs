//! [`Counts`]: the sums of a reduced [census](fencepost_planner::census); and [`Halving`]: the
//! positions of the ranks in such a census.
//!
//! A rank that has something for another rank sends a note directly to that rank. For each rank,
//! the census adds up how many notes the rank is to expect, and the numbers of the ranks that send
//! these notes. So a rank that lacks only one of its notes knows which rank sends that note.
//!
//! In a message a count is two words of four bytes: the number of notes, and the sum of the ranks
//! that send them. The ranks of a group have neighbouring positions, and groups are in the order of
//! their numbers. So the counts for one half of the groups are adjacent.
//!
//! The bytes that ranks have for all others follow the counts, in the order of the ranks'
//! positions. Each rank passes on everything that has reached it. A message contains the
//! contribution of a rank once, and only contributions that its receiver does not have yet.
//!
//! Received counts are checked as far as possible. A message has one count for each rank that its
//! leg concerns. A count is at most the number of ranks whose contributions the message can
//! contain. A count of one note names a sender that is one of those ranks.

use crate::census::state::roles::{Leg, Roles};
use bytemuck::{Pod, Zeroable};
use fencepost_planner::census::halvings;
use fencepost_transport::bytes::{Reader, Writer};
use std::ops::Range;

/// The positions of the ranks in a reduced census. The ranks are in groups, and the number of
/// groups is a power of two. Further groups are merged into the first groups.
pub(crate) struct Halving {
    pub(crate) roles: Roles,
    /// The position of the count of each rank.
    position: Vec<u32>,
    /// The rank at each position.
    ranks: Vec<u32>,
    /// The position at which each group begins, and the position at which the last group ends.
    begins: Vec<u32>,
}

impl Halving {
    /// Returns the positions for a reduced census of ranks that have these `roles` in a sparse
    /// census.
    pub(crate) fn new(roles: &Roles) -> Self {
        let groups = 1 << halvings(roles.leaders());
        let place = |rank: usize| roles.place(rank) % groups;
        let mut ranks: Vec<u32> = (0..roles.ranks as u32).collect();
        ranks.sort_by_key(|&rank| place(rank as usize));
        let mut position = vec![0; ranks.len()];
        ranks.iter().zip(0..).for_each(|(&rank, at)| position[rank as usize] = at);
        let mut begins = vec![0; groups as usize + 1];
        ranks.iter().for_each(|&rank| begins[place(rank as usize) as usize + 1] += 1);
        for group in 0..groups as usize {
            begins[group + 1] += begins[group];
        }
        Self { roles: roles.merged(groups), position, ranks, begins }
    }

    /// Returns the position of `rank`.
    pub(super) fn position(&self, rank: u32) -> u32 {
        self.position[rank as usize]
    }

    /// Returns the rank with which this rank, a leader, exchanges messages in a round.
    pub(crate) fn partner(&self, round: u32) -> usize {
        self.roles.leader_of(self.me() ^ self.half(round))
    }

    /// Returns the rank from which this rank receives the final count of the notes for it, or
    /// `None` if this rank is alone.
    pub(crate) fn counter(&self) -> Option<usize> {
        let rounds = halvings(self.groups());
        let (me, leader) = (self.roles.me, self.roles.leader());
        if leader != me { Some(leader) } else { rounds.checked_sub(1).map(|round| self.partner(round)) }
    }

    fn me(&self) -> u32 {
        self.roles.place(self.roles.me)
    }

    fn groups(&self) -> u32 {
        self.begins.len() as u32 - 1
    }

    /// Returns the number of groups whose counts a rank still holds after a round.
    fn half(&self, round: u32) -> u32 {
        self.groups() >> (round + 1)
    }

    /// Returns the positions of the ranks in one half of the groups of this round: the half that
    /// contains `group`.
    fn block(&self, group: u32, round: u32) -> Range<usize> {
        let first = group & !(self.half(round) - 1);
        let at = |group: u32| self.begins[group as usize] as usize;
        at(first)..at(first + self.half(round))
    }

    /// Returns whether a message of the partner in a round can contain the contribution of `rank`.
    pub(super) fn is_heard_of(&self, round: u32, rank: u32) -> bool {
        let partner = self.me() ^ self.half(round);
        (self.roles.place(rank as usize) ^ partner) & (2 * self.half(round) - 1) == 0
    }

    /// Returns the number of ranks whose contribution a message of the partner can contain.
    fn heard_of(&self, round: u32) -> u32 {
        let step = 2 * self.half(round);
        let partner = (self.me() ^ self.half(round)) & (step - 1);
        let groups = (partner..self.groups()).step_by(step as usize);
        groups.map(|group| self.begins[group as usize + 1] - self.begins[group as usize]).sum()
    }
}

/// The number of notes that one rank is to expect.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Pod, Zeroable)]
pub(crate) struct Count {
    pub(crate) notes: u32,
    /// The sum of the numbers of the ranks that send the counted notes, modulo 2^32.
    pub(crate) from: u32,
}

impl Count {
    /// Returns the count without the note of `rank`, or `None` if no note is counted.
    pub(crate) fn without(self, rank: usize) -> Option<Self> {
        let notes = self.notes.checked_sub(1)?;
        Some(Self { notes, from: self.from.wrapping_sub(rank as u32) })
    }
}

/// The sum of the counts for each rank, by position, as far as this rank knows them.
#[derive(Default)]
pub(crate) struct Counts(Vec<Count>);

impl Counts {
    /// Begins a census.
    pub(crate) fn begin(&mut self, halving: &Halving) {
        self.0.clear();
        self.0.resize(halving.ranks.len(), Count::default());
    }

    /// Counts a note that this rank has sent to `to`.
    pub(crate) fn add(&mut self, halving: &Halving, to: usize) {
        let count = &mut self.0[halving.position[to] as usize];
        count.notes += 1;
        count.from = count.from.wrapping_add(halving.roles.me as u32);
    }

    /// Returns how many notes this rank is to expect, when the contributions of all ranks have
    /// arrived.
    pub(crate) fn own(&self, halving: &Halving) -> Count {
        self.0[halving.position[halving.roles.me] as usize]
    }

    /// Appends to `out` the counts for rank `to` on this leg.
    pub(crate) fn pass(&self, halving: &Halving, leg: Leg, to: usize, out: &mut Vec<u8>) {
        let at = match leg {
            Leg::ToLeader => 0..self.0.len(),
            Leg::Round(round) => halving.block(halving.roles.place(to), round),
            Leg::FromLeader => halving.position[to] as usize..halving.position[to] as usize + 1,
        };
        out.put_all(&self.0[at]);
    }

    /// Takes in the counts that came from rank `from` on this leg, and returns the bytes that
    /// follow them. Returns `None` if no correct rank sends these counts on this leg.
    pub(crate) fn take<'c>(
        &mut self,
        halving: &Halving,
        leg: Leg,
        from: usize,
        came: &'c [u8],
    ) -> Option<&'c [u8]> {
        let (me, all) = (halving.roles.me, self.0.len() as u32);
        let own = halving.position[me] as usize;
        let (at, most) = match leg {
            Leg::ToLeader => (0..self.0.len(), 1),
            Leg::Round(round) => (halving.block(halving.me(), round), halving.heard_of(round)),
            Leg::FromLeader => (own..own + 1, all - 1),
        };
        let heard_of = |rank: u32| match leg {
            Leg::ToLeader => rank as usize == from,
            Leg::Round(round) => rank < all && halving.is_heard_of(round, rank),
            Leg::FromLeader => rank < all,
        };
        let mut came = Reader(came);
        for (at, came) in at.clone().zip(came.all::<Count>(at.len())?) {
            let possible = match came.notes {
                0 => came.from == 0,
                1 => heard_of(came.from) && came.from != halving.ranks[at],
                notes => notes <= most,
            };
            if !possible {
                return None;
            }
            let count = &mut self.0[at];
            if leg == Leg::FromLeader {
                *count = came;
            } else {
                count.notes += came.notes;
                count.from = count.from.wrapping_add(came.from);
            }
        }
        Some(came.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::state::items::Items;

    fn halving(hosts: &[usize], me: usize) -> Halving {
        Halving::new(&Roles::new(me, hosts.to_vec(), hosts))
    }

    /// Runs a census of ranks on these hosts, and returns the items of each rank. Each rank has a
    /// note for the ranks at the distances that `notes` accepts, and a byte for all ranks.
    fn run(hosts: &[usize], notes: impl Fn(usize) -> bool) -> Vec<Items> {
        let ranks = hosts.len();
        let each: Vec<Halving> = (0..ranks).map(|me| halving(hosts, me)).collect();
        let mut all: Vec<Items> = (0..ranks).map(|_| Items::default()).collect();
        for (me, items) in all.iter_mut().enumerate() {
            items.counts.begin(&each[me]);
            for to in (0..ranks).filter(|&to| to != me && notes((to + ranks - me) % ranks)) {
                items.counts.add(&each[me], to);
            }
            items.give(me, None, &[me as u8]);
        }
        let mut sent = std::collections::BTreeSet::new();
        let mut send = |all: &mut [Items], leg, ways: Vec<(usize, usize)>| {
            let messages: Vec<_> = ways
                .into_iter()
                .map(|(from, to)| {
                    let mut out = Vec::new();
                    all[from].pass(&each[from].roles, Some(&each[from]), leg, to, &mut out);
                    assert!(sent.insert((from, to)), "one message a way (W5)");
                    (from, to, out)
                })
                .collect();
            for (from, to, out) in messages {
                let taken = all[to].take(&each[to].roles, Some(&each[to]), leg, from, &out);
                taken.expect("what was passed on is taken");
            }
        };
        let leaders: Vec<usize> = (0..ranks).filter(|&me| each[me].roles.leader() == me).collect();
        assert!(leaders.len().is_power_of_two());
        let within = || {
            let led = |leader: usize| each[leader].roles.led().map(move |rank| (leader, rank));
            leaders.iter().copied().flat_map(led)
        };
        send(&mut all, Leg::ToLeader, within().map(|(leader, rank)| (rank, leader)).collect());
        for round in 0..halvings(leaders.len() as u32) {
            let ways = leaders.iter().map(|&from| (from, each[from].partner(round))).collect();
            send(&mut all, Leg::Round(round), ways);
        }
        send(&mut all, Leg::FromLeader, within().collect());
        all.iter_mut().for_each(Items::end);
        all
    }

    #[test]
    fn every_rank_learns_how_many_notes_come_and_the_sum_of_who_sent_them() {
        let mixed =
            [&[0, 0, 1][..], &[0, 1, 0, 1, 1], &[2, 0, 0, 0, 1, 1, 2, 5], &[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]];
        let alone = (1..20).map(|ranks| (0..ranks).collect()).chain([vec![0; 6], (0..67).collect()]);
        for hosts in mixed.into_iter().map(<[usize]>::to_vec).chain(alone) {
            let ranks = hosts.len();
            for notes in [|_: usize| true, |distance: usize| distance == 1, |distance| distance % 3 == 2] {
                for (me, items) in run(&hosts, notes).into_iter().enumerate() {
                    let count = items.counts.own(&halving(&hosts, me));
                    let from: Vec<usize> =
                        (0..ranks).filter(|&from| from != me && notes((me + ranks - from) % ranks)).collect();
                    let expected =
                        Count { notes: from.len() as u32, from: from.iter().sum::<usize>() as u32 };
                    assert_eq!(count, expected, "{me} of {hosts:?}");
                    let given: Vec<_> =
                        items.given(me).map(|(from, to_all, bytes)| (from, to_all, bytes.to_vec())).collect();
                    let others = (0..ranks).filter(|&from| from != me);
                    let expected: Vec<_> = others.map(|from| (from, true, vec![from as u8])).collect();
                    assert_eq!(given, expected, "{me} of {hosts:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_come_is_not_taken() {
        let all = |ranks: usize| (0..ranks).collect::<Vec<_>>();
        let take = |ranks: usize, me: usize, leg, from: usize, came: &[[u32; 2]]| {
            let halving = halving(&all(ranks), me);
            let mut counts = Counts::default();
            counts.begin(&halving);
            let bytes: Vec<u8> = came.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
            let good = counts.take(&halving, leg, from, &bytes).is_some_and(<[u8]>::is_empty);
            let cut = |cut: usize| counts.take(&halving, leg, from, &bytes[..cut]).is_some();
            assert!(!good || !(0..bytes.len()).any(cut), "cut short");
            good
        };
        // In the first round, rank 2 of 4 sends only its own contribution to rank 0. In the second
        // round, rank 1 sends rank 0 its own contribution and that of rank 3.
        let (first, second) = (Leg::Round(0), Leg::Round(1));
        for (count, good) in
            [([0, 0], true), ([0, 1], false), ([1, 2], true), ([1, 1], false), ([1, 9], false)]
        {
            assert_eq!(take(4, 0, first, 2, &[count, [0, 0]]), good, "{count:?}");
        }
        assert!(!take(4, 0, first, 2, &[[2, 4], [0, 0]]), "it has heard of one rank only");
        for (count, good) in
            [([2, 4], true), ([1, 1], true), ([1, 3], true), ([1, 2], false), ([3, 4], false)]
        {
            assert_eq!(take(4, 0, second, 1, &[count]), good, "{count:?}");
        }
        assert!(!take(4, 0, second, 1, &[[0, 0], [0, 0]]), "more than it is about");
        assert!(!take(4, 0, first, 2, &[[0, 0]]), "less than it is about");
        // Rank 4 of 5 sends its contribution to rank 0, which sends back the final counts.
        let told = |own: [u32; 2]| [own, [0, 0], [0, 0], [0, 0], [0, 0]];
        for (count, good) in [([1, 4], true), ([1, 3], false), ([2, 8], false)] {
            assert_eq!(take(5, 0, Leg::ToLeader, 4, &told(count)), good, "{count:?}");
        }
        for (count, good) in
            [([4, 6], true), ([5, 6], false), ([1, 4], false), ([1, 3], true), ([1, 5], false)]
        {
            assert_eq!(take(5, 4, Leg::FromLeader, 0, &[count]), good, "{count:?}");
        }
    }
}
