//! [`Filling`]: the operations that a window has collected for its next fence, in addition to the
//! records in its outboxes.

use crate::collect::log::LogWriter;
use crate::collect::operands::Apply;
use crate::collect::operation::WindowKey;
use crate::collect::pending::{Asking, Get, Pending};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// The operations that a window has collected for its next fence, in addition to the records in its
/// outboxes, and how the window collects.
pub(crate) struct Filling {
    /// Which of the two sets of outboxes is being filled.
    pub(crate) set: Cell<usize>,
    /// The elements that records have as sources. They are read when the fence is entered.
    pub(crate) sources: Cell<RecordSources>,
    /// Whether only records and gets of the fast path wait for the fence, and no operation on a
    /// datatype.
    pub(crate) plain: Cell<bool>,
    /// The maximum number of elements of one operation that are kept among the records, if the
    /// target's memory is reached.
    pub(crate) few: usize,
    /// A buffer in which parts of slices are packed.
    pub(crate) packed: Cell<Vec<u8>>,
    /// Gets, and everything else that is not in an outbox.
    pub(crate) pending: RefCell<Pending>,
    /// The writer of the list of gets.
    pub(crate) getting: LogWriter<Get>,
    /// This window, in the form in which [`Streaks`](crate::collect::pending::Streaks) keeps the
    /// window of the last get.
    pub(crate) asking: Asking,
    /// The function that applies records to a window of this element type.
    pub(crate) apply: Apply,
}

/// The elements that records have as sources instead of values.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RecordSources {
    #[default]
    None,
    /// Elements of the window of the records.
    Own,
    /// Elements of this other window. The line is that of the first record with such a source.
    Of(WindowKey, &'static Location<'static>),
}

impl Filling {
    /// Begins with the first set of outboxes.
    pub(crate) fn new(window: u32, few: usize, apply: Apply) -> Self {
        Self {
            set: Cell::new(0),
            sources: Cell::default(),
            plain: Cell::new(true),
            few,
            packed: Cell::default(),
            pending: RefCell::default(),
            getting: LogWriter::default(),
            asking: Asking::nobody(window),
            apply,
        }
    }

    /// Notes that a record has an element of this other window as its source.
    pub(crate) fn names_source(&self, window: WindowKey, site: &'static Location<'static>) {
        if self.sources.get() == RecordSources::None {
            self.sources.set(RecordSources::Of(window, site));
        }
    }
}
