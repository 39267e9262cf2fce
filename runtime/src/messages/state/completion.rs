//! [`Completion`]: whether a started operation is complete, and the queue to notify.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The completed requests of a set that were not returned yet, as their places in the set, in the
/// order of completion.
#[derive(Default)]
pub(crate) struct Queue {
    complete: RefCell<VecDeque<usize>>,
    /// Whether one of the requests has failed because a rank was lost.
    has_lost: Cell<bool>,
}

/// Whether an operation is complete. The code that completes an operation adds it to the queue of
/// its set, so no code has to search for complete operations.
#[derive(Default)]
pub(crate) struct Completion {
    is_complete: Cell<bool>,
    is_lost: Cell<bool>,
    /// Whether the error of the operation was returned. From then on no rank accesses its elements.
    is_returned: Cell<bool>,
    told: RefCell<Option<(Rc<Queue>, usize)>>,
}

impl Queue {
    pub(crate) fn push(&self, place: usize) {
        self.complete.borrow_mut().push_back(place);
    }

    /// Adds a request before all others. This request was taken from the queue earlier, and was
    /// completed before the others.
    pub(crate) fn push_first(&self, place: usize) {
        self.complete.borrow_mut().push_front(place);
    }

    pub(crate) fn pop(&self) -> Option<usize> {
        self.complete.borrow_mut().pop_front()
    }

    /// Takes all requests.
    pub(crate) fn take(&self) -> VecDeque<usize> {
        self.complete.take()
    }

    pub(crate) fn len(&self) -> usize {
        self.complete.borrow().len()
    }

    /// Returns whether a request has failed because a rank was lost. From then on the result is
    /// always `true`, since the world ends for this rank.
    pub(crate) fn has_lost(&self) -> bool {
        self.has_lost.get()
    }
}

impl Completion {
    /// Returns whether the operation is complete, successfully or not.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.get()
    }

    /// Completes the operation.
    pub(crate) fn complete(&self) {
        self.end(false);
    }

    /// Completes the operation with a failure, because a rank was lost.
    pub(crate) fn lose(&self) {
        self.end(true);
    }

    /// Notes that the error of the operation is returned.
    pub(crate) fn note_returned(&self) {
        self.is_returned.set(true);
    }

    /// Returns whether the error of the operation was returned.
    pub(crate) fn is_returned(&self) -> bool {
        self.is_returned.get()
    }

    /// Completes an operation that the owner of its request has cancelled. No queue is notified.
    pub(crate) fn cancel(&self) {
        drop(self.told.take());
        self.note_returned();
        self.complete();
    }

    fn end(&self, lost: bool) {
        if !self.is_complete.replace(true) {
            self.is_lost.set(lost);
            if let Some((queue, place)) = self.told.take() {
                self.tell(&queue, place);
            }
        }
    }

    /// Adds `place` to this queue as soon as the operation is complete, which may be immediately.
    pub(crate) fn tell(&self, queue: &Rc<Queue>, place: usize) {
        if self.is_complete() {
            queue.push(place);
            queue.has_lost.set(queue.has_lost() || self.is_lost.get());
        } else {
            *self.told.borrow_mut() = Some((queue.clone(), place));
        }
    }
}
