//! [`Outbox`]: the operations that one rank has collected for one target since the last fence of a
//! window, in program order.
//!
//! An operation on one element of at most eight bytes is only a [`Record`]: no datatype is built
//! and nothing is allocated. If the target reads records in place, a few adjacent elements form a
//! run: one record, and after it the elements, in the room of the next records. Every other
//! operation is a [`DatatypeOperation`] that a record refers to, so that one list keeps the order.

use crate::collect::log::Log;
use crate::collect::operation::WindowKey;
use crate::kernel::copies::count_copied;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_transport::{Memory, Record};
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;
use std::panic::Location;

/// The head of a record.
///
/// ```text
/// bits  0..40  displacement in elements, or the index of the datatype operation
/// bits 40..46  code: 0 put, 1 + operator, 30 run, 63 datatype operation; until the fence is
///              entered, 32 more for a section
/// bits 46..64  the call's location: low bits of its address in units of eight bytes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub(crate) u64);

/// The code of a put.
pub(crate) const PUT: u64 = 0;
/// The bit that is added to the code of a record whose element is still to be read. The value of
/// the record is then the element's displacement in this rank's window.
pub(crate) const ELEMENT: u64 = 32;
/// The code of a record that a run of elements follows. The elements take the room of the next
/// records. The value of the record is a [`Run`]. If the elements are a section, they are read when
/// the fence is entered. Until then, the first word of their room is the displacement from which
/// they are read.
pub(crate) const RUN: u64 = 30;
/// The code of a record that refers to a datatype operation.
pub(crate) const DATATYPE: u64 = 63;
/// The upper bound of displacements: each displacement is below this number.
pub(crate) const DISPLACEMENTS: u64 = 1 << 40;

impl Head {
    #[inline]
    pub(crate) fn new(at: u64, code: u64, site: &'static Location<'static>) -> Self {
        Self(at | code << 40 | site_bits(site) << 46)
    }

    /// Returns the displacement if the head has this code; otherwise a number above all
    /// displacements.
    #[inline]
    pub(crate) fn at_of(self, code: u64) -> usize {
        // If the head has another code, bits above the displacement are set.
        ((self.0 ^ code << 40) & ((1 << 46) - 1)) as usize
    }

    #[inline]
    pub(crate) fn at(self) -> usize {
        (self.0 & (DISPLACEMENTS - 1)) as usize
    }

    #[inline]
    pub(crate) fn code(self) -> u64 {
        self.0 >> 40 & 63
    }

    /// Returns the head of an operation at the same line, with this displacement and this code.
    fn to(self, at: u64, code: u64) -> Self {
        Self(self.0 >> 46 << 46 | at | code << 40)
    }

    /// If the element of the operation is still to be read ([`ELEMENT`]), returns the head that the
    /// operation has once its record holds the value.
    pub(crate) fn of_value(self) -> Option<Self> {
        let code = self.code();
        (code != DATATYPE && code & ELEMENT != 0).then_some(Self(self.0 & !(ELEMENT << 40)))
    }
}

/// The value of a record of a run: the number of elements, and from bit 40 on the code of the
/// operation.
#[derive(Clone, Copy)]
pub(crate) struct Run(pub(crate) u64);

impl Run {
    pub(crate) fn count(self) -> usize {
        (self.0 & (DISPLACEMENTS - 1)) as usize
    }

    pub(crate) fn code(self) -> u64 {
        self.0 >> 40
    }

    /// Returns the number of records whose room the run's elements take. Each element has `size`
    /// bytes.
    pub(crate) fn records(self, size: usize) -> usize {
        (self.count() * size).div_ceil(size_of::<Record>())
    }
}

/// Returns the elements that each of these records touches. Leaves out records of operations on
/// datatypes. Elements have `size` bytes.
pub(crate) fn touched(mut records: &[Record], size: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        loop {
            let (first, rest) = records.split_first()?;
            let (head, mut count) = (Head(first.head), 1);
            records = rest;
            if head.code() == RUN {
                let run = Run(first.value);
                (records, count) = (rest.get(run.records(size)..).unwrap_or_default(), run.count());
            }
            if head.code() != DATATYPE {
                return Some(head.at()..head.at() + count);
            }
        }
    })
}

/// Returns the low bits of the location's address in units of eight bytes. They distinguish the
/// lines of any program with less than 2 MiB of locations.
#[inline]
fn site_bits(site: &'static Location<'static>) -> u64 {
    std::ptr::from_ref(site) as u64 >> 3 & 0x3_ffff
}

/// Returns the code of a put or an accumulate. Gets have no code of their own: for a get, returns
/// `PUT`.
#[inline]
pub(crate) fn code_of(kind: Kind) -> u64 {
    match kind {
        Kind::Put | Kind::Get => PUT,
        Kind::Accumulate(op) => 1 + op as u64,
    }
}

/// Returns the operator of a code: `None` for a put.
#[inline]
pub(crate) fn op_of(code: u64) -> Option<Op> {
    if code == PUT { None } else { Op::ALL.get(code as usize - 1).copied() }
}

/// An operation on a datatype.
#[derive(Clone, Debug)]
pub(crate) struct DatatypeOperation {
    /// `PUT` or an operator's code.
    pub(crate) code: u64,
    /// The elements of the target.
    pub(crate) remote: Datatype,
    /// The source of its elements.
    pub(crate) source: DatatypeSource,
    /// The mode that the call or its window requested.
    pub(crate) mode: Mode,
}

/// The source of a datatype operation's elements.
#[derive(Clone, Debug)]
pub(crate) enum DatatypeSource {
    /// In the outbox, one after another from this byte on.
    Bytes(usize),
    /// A section of a window in the same fence, named at this line. When the fence is entered, the
    /// section is read and becomes `Bytes`, or it is exposed.
    Section(WindowKey, Datatype, &'static Location<'static>),
    /// A section of the origin's part of a window, which has this number in the world. The target
    /// reads the section in place.
    Exposed(u32, Datatype),
}

/// The operations that one rank has collected for one target. An outbox has separate cache lines,
/// since the target reads one outbox while the next is filled. The fields that each fence reads
/// come first.
#[repr(C, align(128))]
pub(crate) struct Outbox {
    /// The operations, in program order. While a [writer](crate::collect::log::LogWriter) fills
    /// this log, some records are not counted yet.
    pub(crate) records: Log<Record>,
    /// The operations that need more than a record.
    pub(crate) wide: Vec<DatatypeOperation>,
    /// The elements that this rank's gets read in the target's window, if all of them are listed.
    /// The target compares these elements with the elements that it writes.
    pub(crate) looks: Vec<Datatype>,
    /// The number of datatype operations whose section is still to be read. In the fence, the
    /// number of operations whose section is exposed.
    pub(crate) sections: usize,
    /// The elements of datatype operations. The elements of each operation are aligned to eight
    /// bytes.
    pub(crate) bytes: Log<u8>,
    /// The address and the length of the elements, if they are not in `bytes`. In that case they
    /// are a section of this rank's memory, and go to a rank that does not reach this memory.
    section: Option<(*const u8, usize)>,
    /// An empty list that keeps memory for `wide`. [`describe_runs`](Self::describe_runs) swaps the
    /// two lists when it builds `wide` again.
    spare: Vec<DatatypeOperation>,
}

impl Outbox {
    /// Returns an empty outbox. Its records and elements go to this memory while the memory has
    /// room.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self {
            records: Log::on(memory.clone()),
            wide: Vec::new(),
            bytes: Log::on(memory.clone()),
            sections: 0,
            looks: Vec::new(),
            section: None,
            spare: Vec::new(),
        }
    }

    /// Adds an operation on one element of at most eight bytes.
    pub(crate) fn push(&mut self, head: Head, value: u64) {
        self.records.push(Record { head: head.0, value });
    }

    pub(crate) fn push_datatype(&mut self, wide: DatatypeOperation, site: &'static Location<'static>) {
        if matches!(wide.source, DatatypeSource::Section(..)) {
            self.sections += 1;
        }
        let index = self.wide.len();
        self.wide.push(wide);
        self.push(Head::new(index as u64, DATATYPE, site), 0);
    }

    /// Adds a run of `count` elements of `size` bytes. `elements` are their bytes, or the
    /// displacement from which they are [read](Self::read_elements) later. `head` has the code of a
    /// run.
    #[inline]
    pub(crate) fn push_run(
        &mut self,
        head: Head,
        code: u64,
        (count, size): (usize, usize),
        elements: Result<&[u8], usize>,
    ) {
        let run = Run(count as u64 | code << 40);
        let records = run.records(size);
        if !self.records.reserve(1 + records) {
            handle_alloc_error(Layout::new::<Record>());
        }
        self.push(head, run.0);
        let room: &mut [u8] = bytemuck::cast_slice_mut(self.records.append(records));
        room[count * size..].fill(0);
        match elements {
            Ok(bytes) => room[..count * size].copy_from_slice(bytes),
            Err(from) => room[..8].copy_from_slice(&from.to_ne_bytes()),
        }
    }

    /// Turns all runs into operations on datatypes. The elements of runs are then described like
    /// those of other operations, in the order of the records.
    pub(crate) fn describe_runs(&mut self, size: usize) {
        let (mut log, mut before) = (std::mem::take(&mut self.records), std::mem::take(&mut self.wide));
        std::mem::swap(&mut self.wide, &mut self.spare);
        let mut described = before.drain(..);
        let records = log.as_mut_slice();
        let (mut from, mut to) = (0, 0);
        while let Some(&record) = records.get(from) {
            let (head, run) = (Head(record.head), Run(record.value));
            from += 1;
            let operation = match head.code() {
                DATATYPE => described.next(),
                RUN => {
                    let elements = &records[from..from + run.records(size)];
                    from += elements.len();
                    let at = self.keep(&bytemuck::cast_slice(elements)[..run.count() * size]);
                    let remote = Datatype::run(head.at()..head.at() + run.count());
                    let source = DatatypeSource::Bytes(at);
                    Some(DatatypeOperation { code: run.code(), remote, source, mode: Mode::Auto })
                }
                _ => None,
            };
            records[to] = record;
            if let Some(operation) = operation {
                records[to].head = head.to(self.wide.len() as u64, DATATYPE).0;
                records[to].value = 0;
                self.wide.push(operation);
            }
            to += 1;
        }
        drop(described);
        log.truncate(to);
        (self.records, self.spare) = (log, before);
    }

    /// Appends `len` bytes of elements, which the caller must write, and returns where they begin.
    /// Returns `None` if there is no memory for them.
    pub(crate) fn append(&mut self, len: usize) -> Option<(usize, &mut [u8])> {
        let at = self.bytes.len().next_multiple_of(8);
        let gap = at - self.bytes.len();
        let more = len.checked_add(gap).filter(|&more| self.bytes.reserve(more))?;
        let (before, elements) = self.bytes.append(more).split_at_mut(gap);
        before.fill(0);
        count_copied(len);
        Some((at, elements))
    }

    /// Leaves the elements of the only datatype operation in place: `len` bytes at `first`.
    pub(crate) fn leave_section(&mut self, first: *const u8, len: usize) {
        debug_assert!(self.wide.len() == 1 && self.bytes.is_empty(), "all elements are in one place");
        self.section = Some((first, len));
    }

    /// Returns the elements of datatype operations.
    ///
    /// # Safety
    /// A section that was [left](Self::leave_section) is still readable, and no rank writes it
    /// meanwhile.
    pub(crate) unsafe fn elements(&self) -> &[u8] {
        // SAFETY: the caller guarantees that such a section is readable, and that no rank writes
        // it.
        self.section.map_or(&self.bytes, |(first, len)| unsafe { std::slice::from_raw_parts(first, len) })
    }

    /// Returns the outbox's size in bytes: records, and elements that were copied.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&self.records[..]) + self.bytes.len()) as u64
    }

    /// Copies `bytes` to the end of the elements of datatype operations, aligned to eight, and
    /// returns where they begin.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> usize {
        let Some((at, to)) = self.append(bytes.len()) else { handle_alloc_error(Layout::for_value(bytes)) };
        to.copy_from_slice(bytes);
        at
    }

    /// Reads, from the window at `base`, the elements that are sources of records. Each element has
    /// `size` bytes.
    ///
    /// # Safety
    /// The displacements of the elements were checked against the window's length, and no rank
    /// writes the window now.
    pub(crate) unsafe fn read_elements(&mut self, base: *const u8, size: usize) {
        let mut records = self.records.as_mut_slice();
        while let Some((record, rest)) = std::mem::take(&mut records).split_first_mut() {
            let (head, run) = (Head(record.head), Run(record.value));
            let of_run = head.code() & !ELEMENT == RUN;
            let elements;
            (elements, records) = rest.split_at_mut(if of_run { run.records(size) } else { 0 });
            let Some(head) = head.of_value() else { continue };
            if of_run {
                record.head = head.0;
                let from = elements[0].head as usize;
                let to: &mut [u8] = bytemuck::cast_slice_mut(elements);
                // SAFETY: the caller has checked the displacements, and there is room for this
                // number of elements.
                unsafe {
                    base.add(from * size).copy_to_nonoverlapping(to.as_mut_ptr(), run.count() * size);
                }
                continue;
            }
            let mut bits = [0u8; 8];
            // SAFETY: the caller has checked the displacement. A record's element has at most eight
            // bytes.
            unsafe {
                base.add(record.value as usize * size).copy_to_nonoverlapping(bits.as_mut_ptr(), size);
            }
            *record = Record { head: head.0, value: u64::from_ne_bytes(bits) };
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets everything; the memory is kept for the next epoch.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        if !self.looks.is_empty() {
            self.looks.clear();
        }
        if !self.wide.is_empty() {
            self.wide.clear();
            self.bytes.clear();
            (self.sections, self.section) = (0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_on_an_element_is_one_on_its_value_once_that_is_read() {
        let (site, mut outbox) = (Location::caller(), Outbox::new(&Memory::heap()));
        assert!((Op::ALL.len() as u64) < RUN && RUN + ELEMENT < DATATYPE);
        let all: Vec<u64> = (0..=Op::ALL.len() as u64).collect();
        for &code in &all {
            outbox.push(Head::new(7, code, site), 1);
            outbox.push(Head::new(7, code | ELEMENT, site), 1);
            outbox.push(Head::new(7, DATATYPE, site), 1);
        }
        // SAFETY: there is an element 1.
        unsafe { outbox.read_elements([40_u16, 50].as_ptr().cast(), 2) };
        for (records, &code) in outbox.records.chunks(3).zip(&all) {
            let expected = [(code, 1), (code, 50), (DATATYPE, 1)];
            let expected = expected.map(|(code, value)| Record { head: Head::new(7, code, site).0, value });
            assert_eq!(records, expected);
        }
    }

    #[test]
    fn a_displacement_is_told_for_its_own_code_and_out_of_every_window_for_another() {
        let site = Location::caller();
        for at in [0, 1, 77, DISPLACEMENTS - 1] {
            for code in (0..=Op::ALL.len() as u64).chain([DATATYPE]) {
                let head = Head::new(at, code, site);
                assert_eq!((head.at() as u64, head.code()), (at, code));
                for other in 0..64 {
                    let told = head.at_of(other) as u64;
                    assert!(if other == code { told == at } else { told >= DISPLACEMENTS });
                }
            }
        }
    }
}
