//! [`Plain`]: the lines of operations that are kept only as records, if conflicts are looked for.
//!
//! A record contains some bits of its line's address, but not the line. So each line is kept once.
//! A call is compared with the previous one that had the same few bits: usually it is of a known
//! line, and only its record is written.

use crate::collect::outbox::{DATATYPE, ELEMENT, Head, PUT, RUN, Run, op_of};
use fencepost_planner::ir::pattern::Kind;
use fencepost_transport::Record;
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The number of calls to compare with: a place for each value of some bits.
const PLACES: usize = 64;
/// The number of bits of a record's head below its code.
const CODE: u32 = 40;
/// The number of bits of a record's head below those of its line.
const LINE: u32 = 46;
/// The value of a place without a call: no head has these bits above its displacement.
const NONE: u64 = u64::MAX;
/// The code that represents several codes.
pub(crate) const MIXED: u64 = 31;

/// The lines of one rank's records for one window.
pub(crate) struct Plain {
    /// The bits above the displacement of a record's head, at the place that some of them select.
    known: [Cell<u64>; PLACES],
    /// The code of all records of this epoch: [`MIXED`] if they have several, `None` before the
    /// first.
    code: Cell<Option<u64>>,
    /// The bits of a line, and the line.
    lines: RefCell<Vec<(u64, &'static Location<'static>)>>,
}

impl Default for Plain {
    fn default() -> Self {
        let known = [const { Cell::new(NONE) }; PLACES];
        Self { known, code: Cell::default(), lines: RefCell::default() }
    }
}

impl Plain {
    #[inline(always)]
    fn place(&self, head: u64) -> &Cell<u64> {
        &self.known[((head >> LINE ^ head >> CODE) % PLACES as u64) as usize]
    }

    /// Returns whether the line of this head is known, and its code is among those of this epoch.
    #[inline(always)]
    pub(crate) fn knows(&self, head: Head) -> bool {
        self.place(head.0).get() == head.0 >> CODE
    }

    /// Notes that a record with this head is written, at this line. If `known`, other calls like it
    /// are known from here on, until [`forget`](Self::forget).
    pub(crate) fn add(&self, head: Head, site: &'static Location<'static>, known: bool) {
        let code = head.code();
        self.code.set(Some(self.code.get().map_or(code, |all| if all == code { code } else { MIXED })));
        let lines = &mut *self.lines.borrow_mut();
        if lines.iter().all(|(bits, _)| *bits != head.0 >> LINE) {
            lines.push((head.0 >> LINE, site));
        }
        if known {
            self.place(head.0).set(head.0 >> CODE);
        }
    }

    /// Forgets all known calls.
    pub(crate) fn forget(&self) {
        self.known.iter().for_each(|place| place.set(NONE));
    }

    /// Returns the code of all records, or [`MIXED`].
    pub(crate) fn code(&self) -> u64 {
        self.code.get().unwrap_or(MIXED)
    }

    /// Returns the lines, each with the bits of it that records contain.
    pub(crate) fn lines(&self) -> Vec<(u64, &'static Location<'static>)> {
        self.lines.borrow().clone()
    }

    /// Begins another epoch.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.code.take().is_some() {
            self.forget();
            self.lines.borrow_mut().clear();
        }
    }
}

/// Returns the kind of an operation whose record has this code.
#[inline]
pub(crate) fn kind_of(code: u64) -> Option<Kind> {
    if code == PUT { Some(Kind::Put) } else { op_of(code).map(Kind::Accumulate) }
}

/// Returns the bits of its line that a record with this head contains.
pub(crate) fn line_of(head: Head) -> u64 {
    head.0 >> LINE
}

/// Returns the heads, with their places, of those operations among these records, of elements of
/// `size` bytes, that are kept only as records.
pub(crate) fn plain(records: &[Record], size: usize) -> impl Iterator<Item = (usize, Head)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let (place, record) = (next, records.get(next)?);
            let head = Head(record.head);
            next += 1;
            match head.code() {
                DATATYPE => {}
                code if code & !ELEMENT == RUN => {
                    next = next.saturating_add(Run(record.value).records(size));
                }
                code if code & ELEMENT != 0 => {}
                _ => return Some((place, head)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::checked::{Checked, Sent};
    use crate::collect::outbox::Outbox;
    use crate::collect::touched::Touched;
    use fencepost_planner::element::Op;
    use fencepost_transport::Memory;

    #[test]
    fn a_call_is_known_after_the_first_of_its_line_and_code() {
        let (plain, sites) = (Plain::default(), [Location::caller(), Location::caller()]);
        let head = |site: usize, code: u64| Head::new(77, code, sites[site]);
        assert!(!plain.knows(head(0, PUT)));
        plain.add(head(0, PUT), sites[0], true);
        assert!(plain.knows(head(0, PUT)) && plain.code() == PUT);
        assert!(!plain.knows(head(1, PUT)) && !plain.knows(head(0, 3)));
        plain.add(head(1, PUT), sites[1], true);
        assert_eq!((plain.code(), plain.lines().len()), (PUT, 2));
        plain.add(head(0, 3), sites[0], false);
        assert!(!plain.knows(head(0, 3)));
        assert_eq!((plain.code(), plain.lines().len()), (MIXED, 2));
        plain.forget();
        assert!(!plain.knows(head(1, PUT)) && plain.lines().len() == 2);
        plain.clear();
        assert!(!plain.knows(head(0, PUT)) && plain.lines().is_empty());
    }

    #[test]
    fn what_is_kept_elsewhere_is_not_among_the_records_that_are() {
        let (site, mut outbox) = (Location::caller(), Outbox::new(&Memory::heap()));
        outbox.push(Head::new(5, PUT, site), 1);
        outbox.push_run(Head::new(0, RUN, site), PUT, (5, 8), Ok(&[255; 40]));
        outbox.push(Head::new(6, 2, site), 1);
        outbox.push(Head::new(7, PUT | ELEMENT, site), 1);
        outbox.push_run(Head::new(0, RUN | ELEMENT, site), PUT, (3, 8), Err(2));
        outbox.push(Head::new(0, DATATYPE, site), 1);
        outbox.push(Head::new(8, PUT, site), 1);
        let found: Vec<_> = plain(&outbox.records, 8).map(|(_, head)| (head.at(), head.code())).collect();
        assert_eq!(found, [(5, PUT), (6, 2), (8, PUT)]);
    }
    #[test]
    fn records_are_entries_once_they_are_spelt_out() {
        let here = [Location::caller(), Location::caller(), Location::caller()];
        let (checked, mut outbox) = (Checked::default(), Outbox::new(&Memory::heap()));
        checked.begin(2);
        let push = |at, code, site, outbox: &mut Outbox| {
            checked.plain.add(Head::new(at, code, site), site, true);
            outbox.push(Head::new(at, code, site), 0);
        };
        push(7, PUT, here[0], &mut outbox);
        push(8, PUT, here[1], &mut outbox);
        let so_far = outbox.records.len();
        checked.add((Kind::Get, 1, Touched::Run(3, 2)), None, (0, 0), |_| Some(so_far), here[2]);
        push(9, 1 + Op::Max as u64, here[1], &mut outbox);
        let mut lists = checked.take();
        lists.close(&checked.plain, 2, |target| (target == 1).then_some(outbox.records.len()));
        assert!(lists.for_target(0).is_none());
        let list = lists.for_target(1).expect("there is one");
        assert_eq!((list.numbers(), list.site_of(3)), (6, Some(here[2])), "3 numbers, 1 and 2");
        let mut out = Vec::new();
        list.encode(&mut out);
        let sent = Sent::decode(&mut &out[..]).expect("it is a list");
        let numbers: Vec<_> = sent.entries().flatten().map(|entry| (entry.number, entry.kind)).collect();
        assert_eq!(numbers, [(0, Some(Kind::Put)), (3, Some(Kind::Get)), (4, None)]);
        let (list, lines) = lists.spelling(1).expect("there is one");
        list.spell(&outbox.records, 8, lines);
        let sites: Vec<_> = (0..list.numbers()).filter_map(|number| list.site_of(number)).collect();
        assert!(sites == [here[0], here[1], here[2], here[1]]);
        out.clear();
        list.encode(&mut out);
        let sent = Sent::decode(&mut &out[..]).expect("it is a list");
        let kinds: Vec<_> = sent.entries().flatten().filter_map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::Put, Kind::Put, Kind::Get, Kind::Accumulate(Op::Max)]);
    }
}
