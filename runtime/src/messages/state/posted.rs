//! [`Posted`]: the receives that have taken nothing, by the rank and tag that they name.
//!
//! The first receive that matches a message takes it. The first few receives are in one list, which
//! is searched. The other receives are in lists by the rank and the tag that they name. Only four
//! of these lists can contain receives that match a message: those for its rank or any rank,
//! combined with its tag or any tag. The earliest of the first receives of these four lists takes
//! the message. So the cost of a message does not grow with the number of receives.

use crate::messages::state::receive::Receive;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// Receives with their numbers, ascending.
type List = VecDeque<(u64, Rc<Receive>)>;

/// Receives that have taken nothing.
#[derive(Default)]
pub(crate) struct Posted {
    /// The first receives, at most [`FEW`].
    few: List,
    /// The other receives, by the rank and tag that they name. Code that iterates over the map
    /// sorts the result, so the order of the map has no effect.
    lists: HashMap<Names, List, BuildHasherDefault<Mix>>,
    /// Counts the receives in `lists` that name a rank and a tag, a rank and any tag, any rank and
    /// a tag, and any rank and any tag.
    counts: [usize; 4],
    /// The number of receives so far.
    number: u64,
}

/// The maximum number of receives in the first list.
const FEW: usize = 8;

/// A rank or any rank, and a tag or any tag, as one number. The rank begins at bit 33. Both are
/// stored plus one, and 0 means any.
type Names = u64;

fn names(source: Option<usize>, tag: Option<u32>) -> Names {
    source.map_or(0, |source| source as u64 + 1) << 33 | tag.map_or(0, |tag| u64::from(tag) + 1)
}

fn kind(names: Names) -> usize {
    2 * usize::from(names >> 33 == 0) + usize::from(names.trailing_zeros() >= 33)
}

/// Hashes one number, the same way in every run.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl Posted {
    /// Returns whether there are no receives.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.counts == [0; 4]
    }

    /// Returns the ranks that the receives name, each once and in ascending order, or `None` if a
    /// receive takes messages from any rank.
    pub(crate) fn sources(&self) -> Option<Vec<usize>> {
        let few = self.few.iter().map(|(_, receive)| receive.source);
        let lists = self.lists.iter().filter(|(_, list)| !list.is_empty());
        let many = lists.map(|(names, _)| (*names >> 33).checked_sub(1).map(|source| source as usize));
        let sources: Option<BTreeSet<usize>> = few.chain(many).collect();
        sources.map(|sources| sources.into_iter().collect())
    }

    /// Returns the first receive that takes a message with this sender and tag, if there are only a
    /// few receives.
    pub(crate) fn first(&self, from: usize, tag: u32) -> Option<&Rc<Receive>> {
        let few = self.counts == [0; 4];
        self.few.iter().filter(|_| few).map(|(_, receive)| receive).find(|receive| receive.takes(from, tag))
    }

    /// Adds a receive after all others.
    pub(crate) fn push(&mut self, receive: Rc<Receive>) {
        let numbered = (self.number, receive);
        self.number += 1;
        if self.few.len() < FEW {
            return self.few.push_back(numbered);
        }
        let names = names(numbered.1.source, numbered.1.tag);
        self.counts[kind(names)] += 1;
        self.lists.entry(names).or_default().push_back(numbered);
    }

    /// Removes and returns the first receive that takes a message with this sender and tag.
    pub(crate) fn take(&mut self, from: usize, tag: u32) -> Option<Rc<Receive>> {
        let at = self.few.iter().position(|(_, receive)| receive.takes(from, tag));
        let mut first = at.map_or(u64::MAX, |at| self.few[at].0);
        let mut of = None;
        if self.counts != [0; 4] {
            for (source, tag) in
                [(Some(from), Some(tag)), (Some(from), None), (None, Some(tag)), (None, None)]
            {
                let names = names(source, tag);
                if self.counts[kind(names)] > 0
                    && let Some((number, _)) = self.lists.get(&names).and_then(List::front)
                    && *number < first
                {
                    (first, of) = (*number, Some(names));
                }
            }
        }
        match of {
            None => self.few.remove(at?).map(|(_, receive)| receive),
            Some(names) => {
                let taken = self.lists.get_mut(&names)?.pop_front();
                self.counts[kind(names)] -= 1;
                self.tidy(names);
                taken.map(|(_, receive)| receive)
            }
        }
    }

    /// Removes this receive. Returns whether it was posted.
    pub(crate) fn remove(&mut self, receive: &Rc<Receive>) -> bool {
        let place = |list: &List| list.iter().position(|(_, posted)| Rc::ptr_eq(posted, receive));
        if let Some(at) = place(&self.few) {
            return self.few.remove(at).is_some();
        }
        let names = names(receive.source, receive.tag);
        let Some(list) = self.lists.get_mut(&names) else { return false };
        let Some(at) = place(list) else { return false };
        list.remove(at);
        self.counts[kind(names)] -= 1;
        self.tidy(names);
        true
    }

    /// Takes all receives whose source is `source`, in the order of their calls. `None` selects the
    /// receives that name any rank.
    pub(crate) fn take_of(&mut self, source: Option<usize>) -> Vec<Rc<Receive>> {
        let mut taken: Vec<(u64, Rc<Receive>)> = Vec::new();
        self.few.retain(|one| {
            let is_of = one.1.source == source;
            taken.extend(is_of.then(|| one.clone()));
            !is_of
        });
        let first = kind(names(source, Some(0)));
        if self.counts[first] + self.counts[first + 1] > 0 {
            let (counts, wanted) = (&mut self.counts, names(source, None) >> 33);
            self.lists.retain(|names, list| {
                let is_of = names >> 33 == wanted;
                if is_of {
                    counts[kind(*names)] -= list.len();
                    taken.extend(list.drain(..));
                }
                !is_of
            });
        }
        taken.sort_by_key(|(number, _)| *number);
        taken.into_iter().map(|(_, receive)| receive).collect()
    }

    /// Removes the list of `names` if it is empty and there are many lists. Some empty lists are
    /// kept, since programs name the same ranks and tags repeatedly.
    fn tidy(&mut self, names: Names) {
        const EMPTY: usize = 1 << 12;
        if self.lists.len() > EMPTY && self.lists.get(&names).is_some_and(VecDeque::is_empty) {
            self.lists.remove(&names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::state::receive::Room;
    use fencepost_planner::datatype::Datatype;
    use fencepost_tests_support::random::Random;
    use std::panic::Location;

    fn receive(source: Option<usize>, tag: Option<u32>) -> Rc<Receive> {
        let room = Room::Elements(std::ptr::NonNull::<u8>::dangling().as_ptr(), Datatype::empty());
        // SAFETY: the receive has room for no elements.
        Rc::new(unsafe { Receive::new::<u8>(source, tag, room, Location::caller()) })
    }

    #[test]
    fn the_first_receive_that_names_a_message_takes_it_however_many_there_are() {
        let random = &mut Random::new(7);
        for most in [3, 12, 200] {
            let (mut posted, mut list) = (Posted::default(), Vec::<Rc<Receive>>::new());
            for _ in 0..5000 {
                let (source, tag) = (random.below(3), [0, 1, u32::MAX][random.below(3)]);
                let any = |random: &mut Random| random.once_in(3);
                match random.below(16) {
                    0..8 if list.len() < most => {
                        let one = receive((!any(random)).then_some(source), (!any(random)).then_some(tag));
                        posted.push(one.clone());
                        list.push(one);
                    }
                    0..14 => {
                        let expected = list.iter().position(|one| one.takes(source, tag));
                        let expected = expected.map(|at| list.remove(at));
                        let taken = posted.take(source, tag);
                        assert_eq!(taken.as_ref().map(Rc::as_ptr), expected.as_ref().map(Rc::as_ptr));
                    }
                    14 if !list.is_empty() => {
                        let one = list.remove(random.below(list.len()));
                        assert!(posted.remove(&one) && !posted.remove(&one));
                    }
                    _ if random.once_in(50) => {
                        let of = (!any(random)).then_some(source);
                        let (expected, rest): (Vec<_>, Vec<_>) =
                            list.into_iter().partition(|one| one.source == of);
                        list = rest;
                        let taken = posted.take_of(of);
                        let same = |(a, b): (&Rc<Receive>, &Rc<Receive>)| Rc::ptr_eq(a, b);
                        assert!(taken.len() == expected.len() && taken.iter().zip(&expected).all(same));
                    }
                    _ => {}
                }
                assert_eq!(posted.is_empty(), list.is_empty());
            }
        }
    }
}
