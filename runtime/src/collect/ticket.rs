//! [`Ticket`]: elements that a get will have brought when its fence is over.

use crate::kernel::element::Element;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// Elements of another rank, redeemed after the fence.
#[must_use = "a ticket holds what was fetched: `take` it after the fence"]
#[derive(Debug)]
pub struct Ticket<T> {
    slot: Slot,
    len: usize,
    element: PhantomData<T>,
}

/// Where the bytes of a ticket arrive. It has room for them before its fence begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot(Rc<RefCell<Arrival>>);

#[derive(Debug, Default)]
struct Arrival {
    bytes: Vec<u8>,
    arrived: bool,
}

impl Slot {
    /// Make room for `len` bytes; whether there is.
    #[must_use]
    pub(crate) fn reserve(&self, len: usize) -> bool {
        self.0.borrow_mut().bytes.try_reserve_exact(len).is_ok()
    }

    /// Fill it with these, for which there is room.
    pub(crate) fn fill(&self, bytes: &[u8]) {
        let slot = &mut *self.0.borrow_mut();
        slot.bytes.extend_from_slice(bytes);
        slot.arrived = true;
    }

    /// Fill it with `len` bytes, for which there is room, that `write` puts where it is told.
    pub(crate) fn fill_with(&self, len: usize, write: impl FnOnce(*mut u8)) {
        let slot = &mut *self.0.borrow_mut();
        slot.bytes.resize(len, 0);
        write(slot.bytes.as_mut_ptr());
        slot.arrived = true;
    }
}

impl<T: Element> Ticket<T> {
    pub(crate) fn new(len: usize) -> Self {
        Self { slot: Slot::default(), len, element: PhantomData }
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot.clone()
    }

    /// How many elements were asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no elements were asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, once the fence of the window has returned `Ok`; the ticket itself before that, or where the
    /// epoch failed, or where there is no memory for them.
    pub fn take(self) -> Result<Vec<T>, Self> {
        if self.len == 0 {
            return Ok(Vec::new());
        }
        let mut elements = Vec::new();
        if !self.slot.0.borrow().arrived || elements.try_reserve_exact(self.len).is_err() {
            return Err(self);
        }
        elements.resize(self.len, T::zeroed());
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&self.slot.0.borrow().bytes);
        Ok(elements)
    }
}
