//! [`Collected`]: the operations that an access has collected for one target, in program order.

use crate::check::state::marks::Marks;
use crate::collect::lent::Lent;
use crate::collect::operation::Site;
use crate::collect::outbox::{DATATYPE, DatatypeOperation, Head, Outbox};
use crate::collect::ticket::Slot;
use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_transport::Memory;
use std::cell::OnceCell;

/// The collected operations of an access for one target. The list is boxed because each step of the
/// access moves it.
pub(crate) type Batch = Box<Collected>;

/// The operations that an access has collected for one target.
pub(crate) struct Collected {
    pub(crate) target: usize,
    /// The number of this access among the accesses of this rank to the target, counted from 0.
    pub(crate) number: u64,
    /// The puts and accumulates. Each has one record, on an element or a datatype.
    pub(crate) outbox: Outbox,
    /// The source lines of the records, each with the number of successive records from that line.
    pub(crate) lines: Vec<(u32, Site)>,
    pub(crate) gets: Vec<Get>,
    /// The marks of the elements of the target's part that the operations touch, if conflicts are
    /// checked.
    pub(crate) marks: OnceCell<Box<Marks>>,
}

/// A get of an access.
pub(crate) struct Get {
    /// The number of records before the get in program order.
    pub(crate) before: usize,
    pub(crate) remote: Datatype,
    pub(crate) slot: Slot,
    pub(crate) site: Site,
}

impl Collected {
    /// Returns an empty list, which stores its records and elements in `memory` while there is
    /// room.
    pub(crate) fn new(memory: &Memory) -> Box<Self> {
        let (lines, gets) = (Vec::new(), Vec::new());
        Box::new(Self {
            target: 0,
            number: 0,
            outbox: Outbox::new(memory),
            lines,
            gets,
            marks: OnceCell::new(),
        })
    }

    /// Empties the list and reuses it for this access to this target. Keeps the memory of the list.
    pub(crate) fn renew(&mut self, target: usize, number: u64) {
        (self.target, self.number) = (target, number);
        self.outbox.clear();
        self.outbox.bytes.clear(); // may contain a description even if there is no datatype
        self.lines.clear();
        self.gets.clear();
        self.marks.take();
    }

    /// Counts one more record of this line.
    #[inline]
    pub(crate) fn line(&mut self, site: Site) {
        match self.lines.last_mut() {
            Some((count, last)) if std::ptr::eq(*last, site) => *count += 1,
            _ => self.lines.push((1, site)),
        }
    }

    /// Adds a get of at least one element.
    pub(crate) fn get(&mut self, remote: Datatype, slot: Slot, site: Site) {
        self.gets.push(Get { before: self.outbox.records.len(), remote, slot, site });
    }

    /// Returns the error class and the line of the first operation, in program order, that does not
    /// fit the exposed elements.
    pub(crate) fn misfit(&self, lent: &Lent) -> Option<(ErrorClass, Site)> {
        if matches!(lent, Lent::Whole) {
            return None;
        }
        let mut gets = self.gets.iter().peekable();
        let mut lines = self.lines.iter().flat_map(|(count, site)| (0..*count).map(move |_| *site));
        for (at, record) in self.outbox.records.iter().enumerate() {
            while let Some(get) = gets.next_if(|get| get.before <= at) {
                if let Some(class) = lent.misfit(&get.remote, true) {
                    return Some((class, get.site));
                }
            }
            let (head, site) = (Head(record.head), lines.next().expect("each record has a line"));
            if let Some(class) = misfit_record(lent, head, &self.outbox.wide) {
                return Some((class, site));
            }
        }
        gets.find_map(|get| Some((lent.misfit(&get.remote, true)?, get.site)))
    }
}

/// Returns the error class of the put or accumulate of this record, if it does not fit the exposed
/// elements.
pub(crate) fn misfit_record(lent: &Lent, head: Head, wide: &[DatatypeOperation]) -> Option<ErrorClass> {
    match head.code() {
        DATATYPE => lent.misfit(&wide[head.at()].remote, false),
        _ => lent.misfit_of(std::iter::once(head.at() as i64..head.at() as i64 + 1), false),
    }
}
