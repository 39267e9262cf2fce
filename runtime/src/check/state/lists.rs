//! [`List`]: the calls of a rank for one target since the last fence, each with its source line.
//! The search for conflicts reads these lists.
//!
//! Lists are kept only while epochs are checked. An access is an entry of one or two words:
//!
//! ```text
//! bits  0..40  displacement of the first element, or the first byte of the datatype among the
//!              bytes of all datatypes, or the first record
//! bits 40..45  0 read, 1 written, 2 + operator; 0 for records
//! bits 45..47  0 one element, 1 a run, 2 a datatype, 3 records; the second word is the number of
//!              elements of the run, of bytes of the datatype, or of records
//! bit  47      set if the access belongs to the same operation as the entry before
//! bits 48..64  the index of the source line
//! ```
//!
//! Suppose that the target reads the records in place, and that the
//! [record](crate::collect::outbox) of an operation contains everything but the source line. Then
//! the operation has no entry of its own. One entry represents all such records that were written
//! since the previous entry. For a rank that does not read the records in place, these entries are
//! [spelt out](List::spell) before the list is sent. A record contains some bits of its source
//! line. These bits identify the line, so each line of records is kept only once.

use crate::check::state::kinds::{code, kind};
use crate::check::state::marks::Marks;
use crate::check::state::records::{kind_of, line_of, plain};
use crate::check::state::sections::Sections;
use crate::check::state::touched::Touched;
use crate::collect::outbox::{DISPLACEMENTS, Head};
use fencepost_planner::conflicts::access_to_section;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Kind;
use fencepost_transport::Record;
use fencepost_transport::bytes::{Reader, Writer};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::Location;

/// A source line of this rank's program.
pub(crate) type Line = &'static Location<'static>;

const RUN: u64 = 1 << 45;
const OF_TYPE: u64 = 2 << 45;
const FORM: u64 = 3 << 45;
const SAME: u64 = 1 << 47;
const SITE: u32 = 48;
/// The number of lines that a list can distinguish. The last line represents all further lines.
const SITES: usize = 1 << (64 - SITE);

/// The accesses of one rank to another rank, in the order of its calls.
#[derive(Default)]
pub(crate) struct List {
    entries: Vec<u64>,
    sites: Vec<Line>,
    /// The place of the source line that was added last. The next call usually has the same line.
    last: usize,
    /// The wire forms of datatypes.
    types: Vec<u8>,
    /// The number of records at the beginning that need no further entry. For each of them, an
    /// entry represents the record, or the operation of the record has an entry.
    records: usize,
}

impl List {
    /// Adds an entry for all records that are not represented yet, up to record `to`.
    fn add_records(&mut self, to: usize) {
        if to > self.records {
            self.entries.extend([FORM | self.records as u64, (to - self.records) as u64]);
            self.records = to;
        }
    }

    /// Replaces each entry that represents records by one entry for each operation that is kept
    /// only as a record. `records` are all records, of elements of `size` bytes, and `lines` are
    /// their source lines.
    pub(crate) fn spell(&mut self, records: &[Record], size: usize, lines: &[(u64, Line)]) {
        let before = std::mem::take(&mut self.entries);
        let mut left = &before[..];
        while let [head, rest @ ..] = left {
            let two = head & FORM != 0;
            left = rest.get(usize::from(two)..).unwrap_or_default();
            if head & FORM != FORM {
                self.entries.push(*head);
                self.entries.extend(rest.first().filter(|_| two));
                continue;
            }
            let first = (head & (DISPLACEMENTS - 1)) as usize;
            let all = records.get(first..first + rest.first().map_or(0, |count| *count as usize));
            for (_, head) in plain(all.unwrap_or_default(), size) {
                let line = lines.iter().find(|(bits, _)| *bits == line_of(head));
                if let (Some(kind), Some((_, site))) = (kind_of(head.code()), line) {
                    self.add(kind, Touched::Run(head.at(), 1), false, site);
                }
            }
        }
    }

    /// Adds an access. `same` is whether the access belongs to the same operation as the previous
    /// access.
    #[inline]
    pub(crate) fn add(&mut self, kind: Kind, touched: Touched<'_>, same: bool, site: Line) {
        if !self.sites.get(self.last).is_some_and(|last| std::ptr::eq(*last, site)) {
            self.last = self.place(site);
        }
        let head = code(kind) << 40 | if same { SAME } else { 0 } | (self.last as u64) << SITE;
        let run = match touched {
            Touched::Run(at, count) => Some((at, count)),
            Touched::Type(elements) => {
                elements.as_run().map(|run| (run.start as usize, (run.end - run.start) as usize))
            }
        };
        match (run, touched) {
            (Some((at, 1)), _) if (at as u64) < DISPLACEMENTS => self.entries.push(head | at as u64),
            (Some((at, count)), _) if (at as u64) < DISPLACEMENTS => {
                self.entries.extend([head | RUN | at as u64, count as u64]);
            }
            (_, Touched::Run(at, count)) => self.add_type(head, &Datatype::run(at..at + count)),
            (_, Touched::Type(elements)) => self.add_type(head, elements),
        }
    }

    #[cold]
    fn place(&mut self, site: Line) -> usize {
        let known = self.sites.iter().position(|known| std::ptr::eq(*known, site));
        known.unwrap_or_else(|| {
            if self.sites.len() < SITES {
                self.sites.push(site);
            }
            self.sites.len() - 1
        })
    }

    fn add_type(&mut self, head: u64, elements: &Datatype) {
        let at = self.types.len();
        elements.encode(&mut self.types);
        self.entries.extend([head | OF_TYPE | at as u64, (self.types.len() - at) as u64]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the source lines of the entries.
    pub(crate) fn sites(&self) -> &[Line] {
        &self.sites
    }

    /// Appends the number of words, the number of bytes of datatypes, then the entries and the
    /// datatypes to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put([self.entries.len() as u64, self.types.len() as u64]);
        out.put_all(&self.entries);
        out.put_all(&self.types);
    }

    /// Forgets all accesses. Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.sites.clear();
        self.types.clear();
        (self.last, self.records) = (0, 0);
    }
}

/// The calls on a window and the marks of its elements, kept if conflicts are checked.
#[derive(Default)]
pub(crate) struct Checked {
    on: Cell<bool>,
    lists: RefCell<Lists>,
    /// The marks of each target's part, made when an operation is first called on the part.
    marks: OnceCell<Box<[OnceCell<Marks>]>>,
    /// The line at which NOPUT was asserted for this epoch.
    pub(crate) no_put: Cell<Option<&'static Location<'static>>>,
    /// Whether NOSTORE was asserted at some fence.
    pub(crate) stores: Cell<bool>,
    /// A digest of this rank's part at the time when the program got the window back.
    pub(crate) before: Cell<Option<[u8; 32]>>,
    /// The source line of a call. The stores of this rank since that call are found by a comparison
    /// with `part`.
    pub(crate) since: Cell<Option<&'static Location<'static>>>,
    /// The bytes of this rank's part after the call at the line `since`.
    pub(crate) part: RefCell<Vec<u8>>,
    /// The elements that this rank has loaded since the call at the line `since`, in runs. Does not
    /// include the most recent loads, which the [region](crate::collect::region) still records.
    pub(crate) loaded: RefCell<Vec<Range<usize>>>,
    /// The sections of operations in this epoch, if stores into sections and loads of sections are
    /// checked.
    pub(crate) sections: RefCell<Sections>,
}

/// The lists of one window.
#[derive(Default)]
pub(crate) struct Lists {
    /// The lists that were made, by target.
    targets: Vec<List>,
    /// This rank's accesses to sections in its own parts of other windows, by the numbers of these
    /// windows.
    sections: BTreeMap<u32, List>,
    /// The source lines of records, each with the bits of the line that records contain.
    lines: Vec<(u64, Line)>,
}

impl Checked {
    /// Begins to look for conflicts of the window, which has parts on `ranks` ranks.
    pub(crate) fn begin(&self, ranks: usize) {
        self.on.set(true);
        self.marks.get_or_init(|| (0..ranks).map(|_| OnceCell::new()).collect());
    }

    /// Returns the marks of this rank in this epoch on the part of `target`. Returns `None` if this
    /// rank has called no operation on the part, in this epoch or before.
    #[inline(always)]
    pub(crate) fn marks(&self, target: usize) -> Option<&Marks> {
        if !cfg!(feature = "check") {
            return None;
        }
        self.marks.get()?.get(target)?.get()
    }

    /// Returns the marks of this rank on the part of `target`, and makes them if needed. The part
    /// has `len` elements.
    pub(crate) fn marks_on(&self, target: usize, len: usize) -> Option<&Marks> {
        let marks = self.marks.get()?.get(target)?;
        Some(marks.get_or_init(|| Marks::new(len.min(DISPLACEMENTS as usize))))
    }

    /// Calls `act` with all calls for `target` and with the source lines of the records for
    /// `target`. `records` is the number of records for `target`, or `None` if these records may
    /// still change.
    pub(crate) fn with_list<R>(
        &self,
        target: usize,
        records: Option<usize>,
        act: impl FnOnce(&List, &[(u64, Line)]) -> R,
    ) -> R {
        let lists = &mut *self.lists.borrow_mut();
        let list = lists.target(target);
        if let Some(all) = records {
            list.add_records(all);
        }
        act(&lists.targets[target], &lists.lines)
    }

    /// Calls `act` for each target that has calls, with the target, its calls, and the source lines
    /// of records. `records` returns the number of records for one of the `targets`, or `None` if
    /// these records may still change. No call may follow in this epoch.
    pub(crate) fn with_lists(
        &self,
        targets: usize,
        records: impl Fn(usize) -> Option<usize>,
        mut act: impl FnMut(usize, &mut List, &[(u64, Line)]),
    ) {
        let lists = &mut *self.lists.borrow_mut();
        for target in 0..targets {
            // Without lines, no entry represents records.
            if let Some(all) = records(target).filter(|&all| all > 0 && !lists.lines.is_empty()) {
                lists.target(target).add_records(all);
            }
            if let Some(list) = lists.targets.get_mut(target).filter(|list| !list.entries.is_empty()) {
                act(target, list, &lists.lines);
            }
        }
    }

    /// Calls `act` with the accesses to sections of the window with this number, if there are any.
    pub(crate) fn with_section(&self, window: u32, act: impl FnOnce(&List)) {
        self.lists.borrow().sections.get(&window).map(act);
    }

    /// Calls `act` for each other window that has sections, with the number of the window and the
    /// accesses to its sections.
    pub(crate) fn each_section(&self, mut act: impl FnMut(u32, &List)) {
        self.lists.borrow().sections.iter().for_each(|(window, list)| act(*window, list));
    }

    /// Returns whether conflicts are checked.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        cfg!(feature = "check") && self.on.get()
    }

    /// Adds an operation's access to `target` and, if the operation has a section, its access to
    /// the section.
    ///
    /// The section is in the window itself, on rank `me`, or in another window with the given
    /// number. The operation has `own` records, which are still to be written. `records` returns
    /// the number of records for a target that precede the `own` records, or `None` if the records
    /// may still change.
    pub(crate) fn add(
        &self,
        (kind, target, touched): (Kind, usize, Touched<'_>),
        section: Option<(Option<u32>, Touched<'_>)>,
        (me, own): (usize, usize),
        records: impl Fn(usize) -> Option<usize>,
        site: Line,
    ) {
        if touched.is_empty() {
            return;
        }
        let lists = &mut *self.lists.borrow_mut();
        let list = lists.target(target);
        if let Some(before) = records(target) {
            list.add_records(before);
            list.records = before + own;
        }
        list.add(kind, touched, false, site);
        if let Some((window, section)) = section {
            let kind = access_to_section(kind);
            match window {
                None => {
                    let list = lists.target(me);
                    if let Some(before) = records(me).filter(|_| target != me) {
                        list.add_records(before);
                    }
                    list.add(kind, section, target == me, site);
                }
                Some(other) => lists.sections.entry(other).or_default().add(kind, section, false, site),
            }
        }
    }

    /// Keeps the source line of an operation whose record contains everything else.
    pub(crate) fn add_line(&self, head: Head, site: Line) {
        let lines = &mut self.lists.borrow_mut().lines;
        if lines.iter().all(|(bits, _)| *bits != line_of(head)) {
            lines.push((line_of(head), site));
        }
    }

    /// Forgets the copy of this rank's elements. Without the copy, later stores are not found.
    #[inline]
    pub(crate) fn forget_part(&self) {
        self.before.set(None);
        self.since.set(None);
    }

    /// Makes the next operation for each target take the slow path.
    #[inline]
    pub(crate) fn forget_last(&self) {
        if self.is_on() {
            self.all_marks().for_each(Marks::forget_last);
        }
    }

    /// Forgets the calls.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.is_on() {
            let lists = &mut *self.lists.borrow_mut();
            lists.targets.iter_mut().for_each(List::clear);
            lists.sections.clear();
            lists.lines.clear();
            self.sections.borrow_mut().clear();
            self.all_marks().for_each(Marks::begin);
        }
    }

    fn all_marks(&self) -> impl Iterator<Item = &Marks> {
        self.marks.get().into_iter().flatten().filter_map(OnceCell::get)
    }
}

impl Lists {
    #[inline]
    fn target(&mut self, target: usize) -> &mut List {
        if target >= self.targets.len() {
            self.grow(target);
        }
        &mut self.targets[target]
    }

    #[cold]
    fn grow(&mut self, target: usize) {
        self.targets.resize_with(target + 1, List::default);
    }
}

/// A list that was sent.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'b> {
    entries: Reader<'b>,
    types: &'b [u8],
}

/// An entry of a list that was sent.
pub(crate) struct Entry<'b> {
    /// The kind of the access. Has no meaning for records.
    pub(crate) kind: Kind,
    /// Whether the entry belongs to the same operation as the previous entry.
    pub(crate) same: bool,
    /// The index of the entry's source line.
    pub(crate) site: usize,
    pub(crate) what: What<'b>,
}

/// The elements of an entry.
#[derive(Clone, Copy)]
pub(crate) enum What<'b> {
    /// The first element, and the number of elements.
    Run(usize, usize),
    /// The elements of a datatype, which [`Entry::elements`] decodes.
    Type(&'b [u8]),
    /// The elements of records: the first record, and their number.
    Records(usize, usize),
}

impl<'b> Sent<'b> {
    /// Takes a list off the front of `bytes`. Returns `None` if the bytes are not a list.
    pub(crate) fn decode(bytes: &mut Reader<'b>) -> Option<Self> {
        let [entries, types]: [u64; 2] = bytes.take()?;
        let entries = Reader(bytes.bytes(entries.checked_mul(8)?)?);
        Some(Self { entries, types: bytes.bytes(types)? })
    }

    /// Returns the entries of the list. For an invalid entry, the iterator yields `None`, and then
    /// ends.
    #[inline]
    pub(crate) fn entries(self) -> impl Iterator<Item = Option<Entry<'b>>> {
        let mut left = self.entries;
        std::iter::from_fn(move || {
            let entry = self.entry(left.take()?, &mut left);
            if entry.is_none() {
                left = Reader(&[]);
            }
            Some(entry)
        })
    }

    /// Decodes the entry with this first word, and takes its second word, if it has one, off the
    /// front of `left`.
    #[inline(always)]
    fn entry(self, head: u64, left: &mut Reader<'b>) -> Option<Entry<'b>> {
        let at = (head & (DISPLACEMENTS - 1)) as usize;
        let what = if head & FORM == 0 {
            What::Run(at, 1)
        } else {
            let count = usize::try_from(left.take::<u64>()?).ok()?;
            let end = at.checked_add(count)?;
            match head & FORM {
                RUN => What::Run(at, count),
                OF_TYPE => What::Type(self.types.get(at..end)?),
                // No rank has more records than a count of 32 bits can express.
                _ if count <= u32::MAX as usize => What::Records(at, count),
                _ => return None,
            }
        };
        Some(Entry {
            kind: kind(head >> 40 & 31)?,
            same: head & SAME != 0,
            site: (head >> SITE) as usize,
            what,
        })
    }
}

impl Entry<'_> {
    /// Returns the elements of the entry, or `None` if they are not a valid datatype or are the
    /// elements of records.
    pub(crate) fn elements(&self) -> Option<Datatype> {
        match self.what {
            What::Run(at, count) => Some(Datatype::run(at..at + count)),
            What::Type(mut bytes) => Datatype::decode(&mut bytes).ok().filter(|_| bytes.is_empty()),
            What::Records(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Op;

    #[test]
    fn entries_come_as_they_were_added() {
        let here = [Location::caller(), Location::caller()];
        let column = Datatype::nest(3, &[(4, 5)], 2).unwrap();
        let mut list = List::default();
        list.add(Kind::Put, Touched::Run(7, 9), false, here[0]);
        list.add(Kind::Get, Touched::Type(&column), true, here[0]);
        list.add(Kind::Get, Touched::Type(&Datatype::run(5..8)), false, here[1]);
        Op::ALL.into_iter().for_each(|op| {
            list.add(Kind::Accumulate(op), Touched::Run(DISPLACEMENTS as usize, 1), false, here[0]);
        });
        assert_eq!((list.sites().len(), list.is_empty()), (2, false));
        let mut out = Vec::new();
        list.encode(&mut out);
        out.push(77);
        let mut bytes = Reader(&out);
        let sent = Sent::decode(&mut bytes).expect("it is a list");
        assert_eq!(bytes.0, [77]);
        let found: Vec<_> = sent
            .entries()
            .map(|entry| entry.expect("an entry"))
            .map(|entry| (entry.kind, entry.same, entry.site, entry.elements().expect("a datatype")))
            .collect();
        let mut expected = vec![
            (Kind::Put, false, 0, Datatype::run(7..16)),
            (Kind::Get, true, 0, column),
            (Kind::Get, false, 1, Datatype::run(5..8)),
        ];
        let far = DISPLACEMENTS as usize;
        expected.extend(Op::ALL.map(|op| (Kind::Accumulate(op), false, 0, Datatype::run(far..far + 1))));
        assert_eq!(found, expected);
        (0..out.len() - 1).for_each(|len| assert!(Sent::decode(&mut Reader(&out[..len])).is_none()));
        list.clear();
        assert!(list.is_empty() && list.sites().is_empty());
    }

    #[test]
    fn entries_that_cannot_be_are_none() {
        let entry = |head: u64, count: u64| {
            let words = [2, 2, head, count].map(u64::to_ne_bytes).concat();
            let bytes = [&words[..], &[0, 0]].concat();
            let sent = Sent::decode(&mut Reader(&bytes)).expect("it is a list");
            sent.entries().next().flatten().map(|entry| entry.elements().is_some())
        };
        assert_eq!((entry(5, 1), entry(5 | RUN, 1)), (Some(true), Some(true)));
        assert_eq!(entry(5 | RUN, u64::MAX), None, "past all elements");
        assert_eq!(entry(31 << 40, 1), None, "no operator");
        assert_eq!(entry(FORM, 1), Some(false), "records");
        assert_eq!(entry(FORM, u64::MAX), None, "more records than there are");
        assert_eq!(entry(OF_TYPE, 3), None, "past the datatypes");
        assert_eq!(entry(OF_TYPE, 2), Some(false), "not a datatype");
    }
}
