//! [`Ticket`]: the elements that a get fetches, which can be taken after the fence.

use crate::kernel::element::Element;
use fencepost_planner::{Error, ErrorClass, Result};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

/// Elements of another rank, which can be taken after the fence.
///
/// ```
/// # fencepost_runtime::ranks(2).run(|world| {
/// let mut u = world.window::<u32>(4)?;
/// u[0] = world.rank() as u32 + 7;
/// let ticket = u.fetch(1 - world.rank(), 0)?;
/// u.fence()?;
/// assert_eq!(ticket.take()?, [8 - world.rank() as u32]);
/// # Ok(()) }).unwrap();
/// ```
#[must_use = "a ticket holds what was fetched: `take` it after the fence"]
#[derive(Debug)]
pub struct Ticket<T> {
    slot: Slot,
    len: usize,
    /// The line that requested the elements.
    asked: &'static Location<'static>,
    element: PhantomData<T>,
}

/// The place where the bytes of a ticket arrive. Room for the bytes is reserved before the fence
/// begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot(Rc<RefCell<Arrival>>);

#[derive(Debug, Default)]
struct Arrival {
    bytes: Vec<u8>,
    progress: Progress,
}

#[derive(Debug, Default)]
enum Progress {
    #[default]
    Awaited,
    Arrived,
    Taken,
    /// The get failed, with an error of this class and message.
    Failed(ErrorClass, String),
}

impl Slot {
    /// Makes room for `len` bytes, and returns whether there is room.
    #[must_use]
    pub(crate) fn reserve(&self, len: usize) -> bool {
        self.0.borrow_mut().bytes.try_reserve_exact(len).is_ok()
    }

    /// Fills the slot with these bytes, for which there is room.
    pub(crate) fn fill(&self, bytes: &[u8]) {
        let slot = &mut *self.0.borrow_mut();
        slot.bytes.extend_from_slice(bytes);
        slot.progress = Progress::Arrived;
    }

    /// Fills the slot with `len` bytes, for which there is room. `write` is called with their
    /// address, and must write them.
    pub(crate) fn fill_with(&self, len: usize, write: impl FnOnce(*mut u8)) {
        let slot = &mut *self.0.borrow_mut();
        slot.bytes.resize(len, 0);
        write(slot.bytes.as_mut_ptr());
        slot.progress = Progress::Arrived;
    }
}

impl Slot {
    /// Marks the get as failed: nothing arrives.
    pub(crate) fn fail(&self, class: ErrorClass, why: String) {
        self.0.borrow_mut().progress = Progress::Failed(class, why);
    }
}

impl<T: Element> Ticket<T> {
    pub(crate) fn new(slot: Slot, len: usize, asked: &'static Location<'static>) -> Self {
        Self { slot, len, asked, element: PhantomData }
    }

    /// Returns the number of requested elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no elements were requested.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements. They can be taken only once.
    ///
    /// They can be taken after the fence of the window or
    /// [`Access::complete`](crate::Access::complete) has returned. Under a lock they can be taken
    /// after the flush or the unlock has returned.
    ///
    /// # Errors
    /// - `RMA_SYNC` before such a call has returned, and if that call has failed. After a failure
    ///   the ticket stays empty, and the elements have to be fetched again.
    /// - The error of the get, if its target had not exposed the requested elements (`DISP`), or if
    ///   its access was dropped (`RMA_SYNC`).
    /// - `NO_MEM` if there is no memory for the elements: they stay in the ticket, and may be taken
    ///   later.
    /// - `ARG` if they were taken before.
    ///
    /// A ticket for no elements returns an empty list at any time.
    #[track_caller]
    pub fn take(&self) -> Result<Vec<T>> {
        let site = Location::caller();
        let error = |class, message: String| Err(Error::new(class, message).at(site));
        let mut elements = Vec::new();
        if self.len == 0 {
            return Ok(elements);
        }
        let arrival = &mut *self.slot.0.borrow_mut();
        match &arrival.progress {
            Progress::Failed(class, why) => return error(*class, why.clone()),
            Progress::Awaited => {
                let (file, line) = (self.asked.file(), self.asked.line());
                let message = format!(
                    "the elements that were asked for at {file}:{line} have not arrived: take them after the fence of their window (of an access: `complete`; under a lock: the flush or the unlock) has returned `Ok`, and fetch them again after one that failed"
                );
                return error(ErrorClass::RmaSync, message);
            }
            Progress::Taken => {
                let (file, line) = (self.asked.file(), self.asked.line());
                return error(
                    ErrorClass::Arg,
                    format!(
                        "the elements that were asked for at {file}:{line} were taken before: keep what `take` returned"
                    ),
                );
            }
            Progress::Arrived => {}
        }
        if elements.try_reserve_exact(self.len).is_err() {
            return error(
                ErrorClass::NoMem,
                format!("there is no memory for the {} elements of this ticket", self.len),
            );
        }
        elements.resize(self.len, T::zeroed());
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&arrival.bytes);
        *arrival = Arrival { bytes: Vec::new(), progress: Progress::Taken };
        Ok(elements)
    }
}
