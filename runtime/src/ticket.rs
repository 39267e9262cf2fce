//! [`Ticket`]: elements that a get will have brought when its fence is over.

use crate::element::Element;
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

/// Where the bytes of a ticket arrive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot(Rc<RefCell<Option<Vec<u8>>>>);

impl Slot {
    pub(crate) fn fill(&self, bytes: &[u8]) {
        *self.0.borrow_mut() = Some(bytes.to_vec());
    }

    /// Fill it with `len` bytes that `write` puts where it is told.
    pub(crate) fn fill_with(&self, len: usize, write: impl FnOnce(*mut u8)) {
        let mut bytes = vec![0; len];
        write(bytes.as_mut_ptr());
        *self.0.borrow_mut() = Some(bytes);
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
    /// epoch failed.
    pub fn take(self) -> Result<Vec<T>, Self> {
        if self.len == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.slot.0.borrow_mut().take();
        match bytes {
            Some(bytes) => {
                let mut elements = vec![T::zeroed(); self.len];
                bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes);
                Ok(elements)
            }
            None => Err(self),
        }
    }
}
