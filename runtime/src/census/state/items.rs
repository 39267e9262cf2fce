//! [`Items`]: the data that travel in a [census](fencepost_planner::census) in addition to the call
//! that each rank is in.
//!
//! An item is the data that one rank has for one other rank, or for all others. It is a
//! notification if windows are fenced. In a call that fences no window, it is bytes of the call. In
//! a message each item consists of its origin and its target, its length, and its bytes.
//!
//! A rank holds its own items first, then the items of round 0, and so on. The items of one message
//! keep the order in which their sender held them. Received items are checked as far as possible.
//! An item must be on the only path from its origin to its target, and the items of a message must
//! be in order. A path passes each rank once. So the first rank that receives an item off its path,
//! or twice, notices the error of the sender. Items between ranks of one host are accepted from
//! ranks of that host only.

use crate::census::state::aside::Aside;
use crate::census::state::counts::{Counts, Halving};
use crate::census::state::rides::{self, Rides};
use crate::census::state::roles::{Leg, Roles};
use bytemuck::{Pod, Zeroable};
use fencepost_planner::census::{leaves, spreads};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Frame, Notification, Record};
use std::ops::Range;

/// The target of an item for all other ranks.
const ALL: u32 = u32::MAX;

/// The value of [`Notification::address`] if the notification carries records. One or two records
/// are inline. For more records, the value of the first inline record is their address. In a direct
/// census, a few numbers below `INLINE` have the same meaning for windows other than the first. Any
/// other number is the number of frames that came before the notification.
pub(crate) const INLINE: usize = usize::MAX;

/// The fields before each item's own bytes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    origin: u32,
    target: u32,
    len: u64,
}

/// The fields of a notification that precede its records, or the frames that are sent with it.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Notified {
    flags: u32,
    count: u32,
    address: u64,
}

/// The items of a census that a rank holds, and the items that came for it.
#[derive(Default)]
pub(crate) struct Items {
    /// The number of censuses that this rank has begun. It is the same on all ranks of a census.
    number: u64,
    items: Vec<Item>,
    bytes: Vec<u8>,
    /// The notifications that came for this rank if windows are fenced, sorted by origin. Each has
    /// the range of the bytes that came with it.
    notifications: Vec<(u32, Notification, Range<usize>)>,
    /// Frames of this rank that are sent with its notifications.
    pub(crate) rides: Rides,
    /// In a reduced census, this rank's knowledge of how many notes each rank is to expect.
    pub(crate) counts: Counts,
    /// Frames that came before the census had ended.
    pub(crate) aside: Aside,
    /// The buffer of a message.
    pub(crate) message: Vec<u8>,
}

struct Item {
    origin: u32,
    target: u32,
    bytes: Range<usize>,
}

impl Items {
    /// Begins a census.
    pub(crate) fn begin(&mut self) {
        self.number += 1;
        self.items.clear();
        self.bytes.clear();
        self.notifications.clear();
        self.aside = Aside::default();
    }

    /// Adds bytes that this rank, `me`, has for rank `to`, or for all others. Callers give targets
    /// in ascending order, and the bytes for all others last.
    pub(crate) fn give(&mut self, me: usize, to: Option<usize>, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let target = to.map_or(ALL, |to| to as u32);
        self.items.push(Item { origin: me as u32, target, bytes: from..self.bytes.len() });
    }

    /// Adds this rank's notification for `to`, with the frames for `to` that are sent in the same
    /// item.
    pub(crate) fn notify(&mut self, me: usize, to: usize, notification: &Notification) {
        let Notification { flags, count, address, inline, .. } = *notification;
        let from = self.bytes.len();
        self.bytes.put(Notified { flags, count, address: address as u64 });
        if address == INLINE {
            self.bytes.put(inline);
        } else {
            self.bytes.extend_from_slice(self.rides.to(to));
        }
        self.items.push(Item { origin: me as u32, target: to as u32, bytes: from..self.bytes.len() });
    }

    /// In a reduced census, calls `send` for each item of this rank that is for one other rank, and
    /// then drops the item. Items for all other ranks are sent with the counts.
    pub(crate) fn send_notes<E>(
        &mut self,
        mut send: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { items, bytes, .. } = self;
        let of_one = items.iter().filter(|item| item.target != ALL);
        let sent = of_one.map(|item| (item.target as usize, &bytes[item.bytes.clone()]));
        let sent = { sent }.try_for_each(|(to, bytes)| send(to, bytes));
        items.retain(|item| item.target == ALL);
        sent
    }

    /// Returns, in a reduced census, the ranks from which notes have come.
    pub(crate) fn noted(&self) -> impl Iterator<Item = usize> {
        self.items.iter().filter(|item| item.target != ALL).map(|item| item.origin as usize)
    }

    /// Appends to `out` the items that are sent to rank `to` on this leg. In a reduced census,
    /// counts come first.
    pub(crate) fn pass(
        &mut self,
        roles: &Roles,
        halving: Option<&Halving>,
        leg: Leg,
        to: usize,
        out: &mut Vec<u8>,
    ) {
        let Self { items, bytes, counts, .. } = self;
        if let Some(halving) = halving {
            counts.pass(halving, leg, to, out);
            items.sort_by_key(|item| halving.position(item.origin));
        }
        items.retain(|item| {
            let (all, me) = (item.target == ALL, roles.me as u32);
            let goes = match leg {
                Leg::ToLeader => true,
                Leg::Round(_) if all && halving.is_some() => true,
                Leg::Round(round) if all => spreads(roles.distance(item.origin, me), roles.leaders(), round),
                Leg::Round(round) => leaves(roles.distance(me, item.target), round),
                Leg::FromLeader => item.target as usize == to || all && item.origin as usize != to,
            };
            if goes {
                let Item { origin, target, .. } = *item;
                out.put(Head { origin, target, len: item.bytes.len() as u64 });
                out.extend_from_slice(&bytes[item.bytes.clone()]);
            }
            !goes || all && leg != Leg::ToLeader
        });
    }

    /// Takes in the message that came from rank `from` on this leg. Returns `None` if no correct
    /// rank sends this message on this leg.
    pub(crate) fn take(
        &mut self,
        roles: &Roles,
        halving: Option<&Halving>,
        leg: Leg,
        from: usize,
        mut came: &[u8],
    ) -> Option<()> {
        if let Some(halving) = halving {
            came = self.counts.take(halving, leg, from, came)?;
        }
        let (me, ranks) = (roles.me as u32, roles.ranks as u32);
        let (mut came, mut last) = (Reader(came), None);
        while !came.is_empty() {
            let Head { origin, target, len } = came.take()?;
            let own = came.bytes(len)?;
            let all = target == ALL;
            if origin >= ranks || target >= ranks && !all || origin == target {
                return None;
            }
            let far = roles.distance(origin, me);
            let on_its_way = match leg {
                _ if halving.is_some() && !all => false,
                Leg::ToLeader => origin as usize == from,
                Leg::Round(round) if halving.is_some() => {
                    halving.is_some_and(|halving| halving.is_heard_of(round, origin))
                }
                Leg::Round(round) => {
                    let (step, far) = (1u64 << round, u64::from(far));
                    // If an item is for one rank, it has come to this rank by the steps of its path
                    // up to and including the step of this round.
                    let way = || u64::from(roles.distance(origin, target)) % (2 * step);
                    (step..2 * step).contains(&far) && (all || way() == far)
                }
                Leg::FromLeader => target == me || all && origin != me,
            };
            let far = halving.map_or(far, |halving| halving.position(origin));
            let after = last.replace((far, origin, target)).is_none_or(|last| last < (far, origin, target));
            if !(on_its_way && after) {
                return None;
            }
            let from = self.bytes.len();
            self.bytes.extend_from_slice(own);
            self.items.push(Item { origin, target, bytes: from..self.bytes.len() });
        }
        Some(())
    }

    /// Sorts the received items by their origins, when all legs are over.
    pub(crate) fn end(&mut self) {
        self.items.sort_unstable_by_key(|item| (item.origin, item.target));
    }

    /// Reads the items for rank `me` as notifications, when the census has [ended](Self::end) and
    /// windows are fenced.
    ///
    /// # Errors
    /// Returns the rank that did not send exactly one notification, or whose notification is
    /// followed by bytes that are not frames.
    pub(crate) fn read_notifications(&mut self, me: usize) -> Result<(), usize> {
        if let Some(twice) = self.items.windows(2).find(|two| two[0].origin == two[1].origin) {
            return Err(twice[0].origin as usize);
        }
        for Item { origin, target, bytes } in &self.items {
            let came = &self.bytes[bytes.clone()];
            let said = (*target as usize == me).then(|| notification(came)).flatten();
            let whole = said.filter(|(_, ridden)| rides::frames(0, ridden).all(|frame| frame.is_some()));
            let (notification, ridden) = whole.ok_or(*origin as usize)?;
            self.notifications.push((*origin, notification, bytes.end - ridden.len()..bytes.end));
        }
        Ok(())
    }

    /// Returns the notification that came from `origin`, if that rank had anything for this rank.
    #[inline]
    pub(crate) fn notification(&self, origin: usize) -> Option<&Notification> {
        self.said(origin).map(|(_, notification, _)| notification)
    }

    /// Returns the frames of this kind that came with the notification of `origin`.
    pub(crate) fn ridden(&self, origin: usize, kind: u32) -> impl Iterator<Item = Frame> {
        let bytes = self.said(origin).map_or(0..0, |(_, _, ridden)| ridden.clone());
        rides::frames(kind, &self.bytes[bytes]).flatten()
    }

    #[inline]
    fn said(&self, origin: usize) -> Option<&(u32, Notification, Range<usize>)> {
        let at = self.notifications.binary_search_by_key(&(origin as u32), |(origin, ..)| *origin).ok()?;
        Some(&self.notifications[at])
    }

    /// Returns all notifications that came, and the rank that each is from.
    pub(crate) fn notifications(&self) -> impl Iterator<Item = (usize, &Notification)> {
        self.notifications.iter().map(|(origin, notification, _)| (*origin as usize, notification))
    }

    /// Returns the bytes that ranks other than `me` gave to this rank alone or to all, by rank,
    /// once the census has [ended](Self::end). Each entry is the rank, whether its bytes are for
    /// all, and the bytes.
    pub(crate) fn given(&self, me: usize) -> impl Iterator<Item = (usize, bool, &[u8])> {
        let others = self.items.iter().filter(move |item| item.origin as usize != me);
        others.map(|item| (item.origin as usize, item.target == ALL, &self.bytes[item.bytes.clone()]))
    }

    /// Returns how many items this rank holds.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the number of this census.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Reads the bytes of an item as a notification, and returns it with the bytes of the frames that
/// came with it. Returns `None` if the bytes are too short, or if bytes follow a notification that
/// contains its records.
fn notification(bytes: &[u8]) -> Option<(Notification, &[u8])> {
    let mut bytes = Reader(bytes);
    let Notified { flags, count, address } = bytes.take()?;
    let is_inline = address == INLINE as u64;
    let inline = if is_inline { bytes.take()? } else { [Record::default(); 2] };
    let notification = Notification { word: 0, flags, count, address: address as usize, inline };
    (!is_inline || bytes.is_empty()).then_some((notification, bytes.0))
}

/// Returns a digest of a message of census `number`. The digest covers the number, the word, the
/// flags and the bytes of the items. It detects accidents, not ranks with bad intent.
pub(crate) fn digest(number: u64, word: u64, flags: u32, bytes: &[u8]) -> u64 {
    let mix = |digest: u64, part: u64| {
        let mixed = (digest ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    let begin = mix(mix(mix(number, word), u64::from(flags)), bytes.len() as u64);
    bytes.chunks(8).fold(begin, |digest, chunk| {
        let mut part = [0; 8];
        part[..chunk.len()].copy_from_slice(chunk);
        mix(digest, u64::from_le_bytes(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::census::{Places, rounds};
    use std::collections::BTreeMap;

    fn roles(hosts: &[usize], me: usize) -> Roles {
        Roles::new(me, hosts.to_vec(), hosts)
    }

    /// Returns the [`Roles`] for rank `me` of ranks that are all on different hosts.
    fn apart(ranks: usize, me: usize) -> Roles {
        roles(&(0..ranks).collect::<Vec<_>>(), me)
    }

    /// Runs a census of ranks on these hosts. Each rank gives two bytes to the ranks at the
    /// distances that `gives` accepts, and one byte to all. Returns the items that each rank holds
    /// afterwards, and how many messages went from each rank to each other rank.
    fn run(hosts: &[usize], gives: impl Fn(usize) -> bool) -> (Vec<Items>, BTreeMap<(usize, usize), u32>) {
        let ranks = hosts.len();
        let each: Vec<Roles> = (0..ranks).map(|me| roles(hosts, me)).collect();
        let mut all: Vec<Items> = (0..ranks).map(|_| Items::default()).collect();
        let mut sent = BTreeMap::new();
        for (me, items) in all.iter_mut().enumerate() {
            for to in (0..ranks).filter(|&to| to != me && gives((to + ranks - me) % ranks)) {
                items.give(me, Some(to), &[me as u8, to as u8]);
            }
            items.give(me, None, &[me as u8]);
        }
        let mut send = |all: &mut [Items], leg, ways: Vec<(usize, usize)>| {
            let messages: Vec<_> = ways
                .into_iter()
                .map(|(from, to)| {
                    let mut out = Vec::new();
                    all[from].pass(&each[from], None, leg, to, &mut out);
                    *sent.entry((from, to)).or_default() += 1;
                    (from, to, out)
                })
                .collect();
            for (from, to, out) in messages {
                all[to].take(&each[to], None, leg, from, &out).expect("what was passed on is taken");
            }
        };
        let leaders: Vec<usize> = (0..ranks).filter(|&me| each[me].leader() == me).collect();
        let within = || leaders.iter().flat_map(|&leader| each[leader].led().map(move |rank| (leader, rank)));
        send(&mut all, Leg::ToLeader, within().map(|(leader, rank)| (rank, leader)).collect());
        for round in 0..rounds(leaders.len() as u32) {
            let ways = leaders.iter().map(|&from| (from, each[from].partners(round).0)).collect();
            send(&mut all, Leg::Round(round), ways);
        }
        send(&mut all, Leg::FromLeader, within().collect());
        all.iter_mut().for_each(Items::end);
        (all, sent)
    }

    #[test]
    fn what_is_given_comes() {
        let mixed =
            [&[0, 0, 1][..], &[0, 1, 0, 1, 1], &[2, 0, 0, 0, 1, 1, 2, 5], &[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]];
        let alone = (1..20).map(|ranks| (0..ranks).collect()).chain([vec![0; 6]]);
        for hosts in mixed.into_iter().map(<[usize]>::to_vec).chain(alone) {
            let ranks = hosts.len();
            for gives in [|_: usize| true, |distance: usize| distance == 1, |distance| distance % 3 == 2] {
                let (all, sent) = run(&hosts, gives);
                for (me, items) in all.iter().enumerate() {
                    let others = (0..ranks).filter(|&from| from != me);
                    let expected: Vec<(usize, bool, Vec<u8>)> = others
                        .flat_map(|from| {
                            let one = gives((me + ranks - from) % ranks)
                                .then(|| (from, false, vec![from as u8, me as u8]));
                            one.into_iter().chain([(from, true, vec![from as u8])])
                        })
                        .collect();
                    let given = items.given(me).map(|(from, to_all, bytes)| (from, to_all, bytes.to_vec()));
                    assert_eq!(given.collect::<Vec<_>>(), expected, "{me} of {hosts:?}");
                }
                assert!(sent.values().all(|&messages| messages == 1), "one message a way (W5): {sent:?}");
            }
        }
    }

    #[test]
    fn the_first_rank_of_each_host_speaks_where_some_share_memory_and_not_all() {
        let leaders = |hosts: &[usize]| -> Vec<usize> {
            (0..hosts.len()).map(|me| roles(hosts, me).leader()).collect()
        };
        assert_eq!(leaders(&[7, 3, 7, 3, 5]), [0, 1, 0, 1, 4]);
        assert_eq!(leaders(&[7, 3, 5]), [0, 1, 2]);
        assert_eq!(leaders(&[0; 4]), [0, 1, 2, 3]);
        let roles = roles(&[7, 3, 7, 7, 5], 0);
        assert_eq!(roles.led().collect::<Vec<_>>(), [2, 3]);
        assert_eq!((roles.partners(0), roles.partners(1)), ((1, 4), (4, 1)));
        assert_eq!(*roles.places(), Places { ranks: 5, groups: 3, most: 3, memory: true });
    }

    /// Ranks 0, 1 and 2 are on one host, 3 and 4 on another, 5 on a third.
    #[test]
    fn what_ranks_of_one_host_have_for_each_other_comes_from_that_host_only() {
        let item = |origin: u32, target: u32| {
            let mut bytes = [origin.to_le_bytes(), target.to_le_bytes()].concat();
            bytes.extend(0u64.to_le_bytes());
            bytes
        };
        let taken = |me: usize, leg, from: usize| -> Vec<(u32, u32)> {
            let roles = roles(&[0, 0, 0, 1, 1, 2], me);
            let all = (0..7).flat_map(|origin| (0..7).chain([ALL]).map(move |target| (origin, target)));
            all.filter(|&(origin, target)| {
                Items::default().take(&roles, None, leg, from, &item(origin, target)).is_some()
            })
            .collect()
        };
        let to_speaker = [0, 2, 3, 4, 5, ALL].map(|target| (1, target));
        assert_eq!(taken(0, Leg::ToLeader, 1), to_speaker);
        // The third host sends its items for the first host and for all. Its items for the second
        // host do not pass through rank 0 in this round.
        assert_eq!(
            taken(0, Leg::Round(0), 5),
            [(5, 0), (5, 1), (5, 2), (5, 3), (5, 4), (5, ALL)]
                .into_iter()
                .filter(|&(_, target)| ![3, 4].contains(&target))
                .collect::<Vec<_>>()
        );
        let from_speaker = taken(2, Leg::FromLeader, 0);
        assert!(from_speaker.iter().all(|&(origin, target)| origin != 2 && (target == 2 || target == ALL)));
        assert_eq!(from_speaker.len(), 10);
    }

    #[test]
    fn notifications_come_as_they_were_sent() {
        let sent = Notification {
            word: 0,
            flags: 10,
            count: 2,
            address: INLINE,
            inline: [Record { head: 1, value: 2 }, Record { head: 3, value: 4 }],
        };
        let mut from = Items::default();
        from.notify(0, 1, &sent);
        let mut out = Vec::new();
        from.pass(&apart(2, 0), None, Leg::Round(0), 1, &mut out);
        let mut to = Items::default();
        to.take(&apart(2, 1), None, Leg::Round(0), 0, &out).expect("it is for rank 1");
        to.read_notifications(1).expect("it is a notification");
        assert_eq!((to.notification(0), to.notification(1)), (Some(&sent), None));
    }

    #[test]
    fn what_cannot_come_is_not_taken() {
        let mut from = Items::default();
        from.give(0, Some(1), b"abc");
        let mut out = Vec::new();
        from.pass(&apart(4, 0), None, Leg::Round(0), 1, &mut out);
        let take = |me, round, bytes: &[u8]| {
            Items::default().take(&apart(4, me), None, Leg::Round(round), (me + 4 - (1 << round)) % 4, bytes)
        };
        assert!(take(1, 0, &out).is_some());
        assert!(take(2, 0, &out).is_none(), "it is elsewhere");
        assert!(take(1, 1, &out).is_none(), "it should have come in the round before");
        (0..out.len()).filter(|&cut| cut > 0).for_each(|cut| assert!(take(1, 0, &out[..cut]).is_none()));
        for (at, value) in [(0, 9), (4, 9), (4, 2), (8, 2), (8, 9), (15, 0xff)] {
            let mut other = out.clone();
            other[at] = value;
            assert!(take(1, 0, &other).is_none(), "byte {at} is {value}");
        }
        assert!(take(1, 0, &[&out[..], &out[..]].concat()).is_none(), "twice");
        let mut to = Items::default();
        to.take(&apart(4, 1), None, Leg::Round(0), 0, &out).expect("it could come");
        assert_eq!(to.read_notifications(1), Err(0), "three bytes are no notification");
    }

    /// In round 1, rank 5 of 7 receives items of ranks 3 and 2 from rank 3. Rank 5 takes exactly
    /// the items whose path has these steps, each once.
    #[test]
    fn what_is_not_on_its_way_is_not_taken() {
        let item = |origin: u32, target: u32| {
            let mut bytes = [origin.to_le_bytes(), target.to_le_bytes()].concat();
            bytes.extend(0u64.to_le_bytes());
            bytes
        };
        let take =
            |bytes: &[u8]| Items::default().take(&apart(7, 5), None, Leg::Round(1), 3, bytes).is_some();
        for origin in 0..7 {
            for target in (0..7).chain([ALL]) {
                let all = target == ALL && [2, 3].contains(&origin);
                let one = [(3, 5), (3, 2), (2, 5)].contains(&(origin, target));
                assert_eq!(take(&item(origin, target)), all || one, "from {origin} for {target}");
            }
        }
        assert!(take(&[item(3, 2), item(3, 5), item(3, ALL), item(2, 5), item(2, ALL)].concat()));
        for (first, second) in [((3, 5), (3, 5)), ((3, 5), (3, 2)), ((3, ALL), (3, 5)), ((2, 5), (3, 5))] {
            let two = [item(first.0, first.1), item(second.0, second.1)].concat();
            assert!(!take(&two), "{first:?} before {second:?}");
        }
    }

    #[test]
    fn a_digest_shows_each_byte_the_flags_and_the_census() {
        let bytes: Vec<u8> = (0..29).collect();
        let whole = digest(1, 7, 3, &bytes);
        assert_ne!(whole, digest(2, 7, 3, &bytes));
        assert_ne!(whole, digest(1, 7, 2, &bytes));
        assert_ne!(whole, digest(1, 6, 3, &bytes));
        (0..bytes.len()).for_each(|len| assert_ne!(whole, digest(1, 7, 3, &bytes[..len])));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 4;
            assert_ne!(whole, digest(1, 7, 3, &other), "byte {at}");
        }
    }
}
