//! [`Outbox`]: what one rank has collected for one target since the last fence of a window, in program order.
//!
//! An operation on one element of at most eight bytes is a [`Record`] and nothing else: no datatype is built and nothing
//! is allocated; so is each of a few elements next to each other, where the target reads records in place. Everything else is a [`DatatypeOperation`] that a record refers to, so that one list keeps the order.

use crate::collect::log::Log;
use crate::collect::operation::WindowKey;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_transport::{Memory, Record};
use std::alloc::{Layout, handle_alloc_error};
use std::panic::Location;

/// The head of a record.
///
/// ```text
/// bits  0..40  displacement in elements, or the index of the datatype operation
/// bits 40..46  code: 0 put, 1 + operator, 63 datatype operation; until the fence is entered, 32 more for a section of one
/// bits 46..64  the call's location: low bits of its address in units of eight bytes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub(crate) u64);

/// The code of a put.
pub(crate) const PUT: u64 = 0;
/// Added to the code of a record whose value is an element of this rank's window, still to be read: its displacement.
pub(crate) const ELEMENT: u64 = 32;
/// The code of a record that refers to a datatype operation.
pub(crate) const DATATYPE: u64 = 63;
/// Displacements are below this.
pub(crate) const DISPLACEMENTS: u64 = 1 << 40;

impl Head {
    #[inline]
    pub(crate) fn new(at: u64, code: u64, site: &'static Location<'static>) -> Self {
        Self(at | code << 40 | site_bits(site) << 46)
    }

    /// The displacement, if this is the code; else more than any displacement.
    #[inline]
    pub(crate) fn at_of(self, code: u64) -> usize {
        // Another code leaves bits above those of the displacement.
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

    /// The head of the same operation on a value, where it is one on an [`ELEMENT`].
    pub(crate) fn of_value(self) -> Option<Self> {
        let code = self.code();
        (code != DATATYPE && code & ELEMENT != 0).then_some(Self(self.0 & !(ELEMENT << 40)))
    }
}

/// The low bits of the location's address in units of eight bytes: they tell apart the lines of any program of less
/// than 2 MiB of locations.
#[inline]
fn site_bits(site: &'static Location<'static>) -> u64 {
    std::ptr::from_ref(site) as u64 >> 3 & 0x3_ffff
}

/// The code of an operation's kind; gets have none.
#[inline]
pub(crate) fn code_of(kind: Kind) -> u64 {
    match kind {
        Kind::Put | Kind::Get => PUT,
        Kind::Accumulate(op) => 1 + op as u64,
    }
}

/// The operator of a code: `None` for a put.
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
    /// Where its elements come from.
    pub(crate) source: DatatypeSource,
    /// The mode asked for, by the call or by its window.
    pub(crate) mode: Mode,
}

/// Where a datatype operation's elements come from.
#[derive(Clone, Debug)]
pub(crate) enum DatatypeSource {
    /// From this byte of the outbox on, one after another.
    Bytes(usize),
    /// A section of a window in the same fence, named at this line. As the fence is entered it is read, and becomes `Bytes`; or it is exposed.
    Section(WindowKey, Datatype, &'static Location<'static>),
    /// A section of the origin's part of the world's window of this number: the target reads it in place.
    Exposed(u32, Datatype),
}

/// What one rank has collected for one target, on cache lines of its own: its target reads one while the next is
/// filled. The fields that each fence reads come first.
#[repr(C, align(128))]
pub(crate) struct Outbox {
    /// The operations, in program order; while a [writer](crate::collect::log::LogWriter) is on them, some are not counted yet.
    pub(crate) records: Log<Record>,
    /// The operations that need more than a record.
    pub(crate) wide: Vec<DatatypeOperation>,
    /// How many datatype operations still wait for a section to be read; in the fence, how many are exposed.
    pub(crate) sections: usize,
    /// The elements of datatype operations, each operation's aligned to eight.
    pub(crate) bytes: Log<u8>,
    /// The elements that this rank's gets read in the target's window, if all of them are listed: the target compares
    /// them with what it writes.
    pub(crate) looks: Vec<Datatype>,
}

impl Outbox {
    /// Nothing yet; records and elements go to this memory while it has room.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self {
            records: Log::on(memory.clone()),
            wide: Vec::new(),
            bytes: Log::on(memory.clone()),
            sections: 0,
            looks: Vec::new(),
        }
    }

    /// One element of at most eight bytes.
    pub(crate) fn push(&mut self, head: Head, value: u64) {
        self.records.push(Record { head: head.0, value });
    }

    /// A datatype operation.
    pub(crate) fn push_datatype(&mut self, wide: DatatypeOperation, site: &'static Location<'static>) {
        if matches!(wide.source, DatatypeSource::Section(..)) {
            self.sections += 1;
        }
        let index = self.wide.len();
        self.wide.push(wide);
        self.push(Head::new(index as u64, DATATYPE, site), 0);
    }

    /// `len` more bytes of elements, which `write` puts where it is told; returns where they begin. `None` where there is no
    /// memory for them.
    ///
    /// # Safety
    /// It writes all of them.
    pub(crate) unsafe fn append(&mut self, len: usize, write: impl FnOnce(*mut u8)) -> Option<usize> {
        let at = self.bytes.len().next_multiple_of(8);
        let gap = at - self.bytes.len();
        let more = len.checked_add(gap).filter(|&more| self.bytes.reserve(more))?;
        // SAFETY: the gap is filled, and what follows by the caller's promise.
        unsafe {
            self.bytes.append(more, |to| {
                to.write_bytes(0, gap);
                write(to.add(gap));
            });
        }
        Some(at)
    }

    /// How many bytes it has: those of heads, and of elements that were copied.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&self.records[..]) + self.bytes.len()) as u64
    }

    /// Copy `bytes` to the end of the arena, aligned to eight; returns where they begin.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> usize {
        // SAFETY: all of them are written.
        let at = unsafe {
            self.append(bytes.len(), |to| to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()))
        };
        at.unwrap_or_else(|| handle_alloc_error(Layout::for_value(bytes)))
    }

    /// Read the elements that are sources of records, of `size` bytes each, from the window at `base`.
    ///
    /// # Safety
    /// Their displacements were checked against the window's length, and nobody writes it now.
    pub(crate) unsafe fn read_elements(&mut self, base: *const u8, size: usize) {
        for record in self.records.as_mut_slice() {
            let Some(head) = Head(record.head).of_value() else { continue };
            let mut bits = [0u8; 8];
            // SAFETY: the caller's; a record's element has at most eight bytes.
            unsafe {
                base.add(record.value as usize * size).copy_to_nonoverlapping(bits.as_mut_ptr(), size);
            }
            *record = Record { head: head.0, value: u64::from_ne_bytes(bits) };
        }
    }

    /// Whether there is nothing in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forget everything; memory is kept for the next epoch.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        if !self.looks.is_empty() {
            self.looks.clear();
        }
        if !self.wide.is_empty() {
            self.wide.clear();
            self.bytes.clear();
            self.sections = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_on_an_element_is_one_on_its_value_once_that_is_read() {
        let (site, mut outbox) = (Location::caller(), Outbox::new(&Memory::heap()));
        assert!(Op::ALL.len() as u64 + ELEMENT < DATATYPE);
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
