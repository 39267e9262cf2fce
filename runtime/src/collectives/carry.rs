//! [`Carry`]: how the elements of a call are written to a window, and how the result is read from
//! the window.

use crate::kernel::element::Element;

/// Moves elements between the caller and the window.
pub(super) trait Carry<T, R> {
    /// Writes this rank's elements. Not called, or called with an empty slice, if the rank brings
    /// none.
    fn bring(&mut self, to: &mut [T]);

    /// Reads the result of this rank, which consists of these parts, one after the other.
    fn take(self, found: &mut Parts<'_, T>) -> R;
}

/// Parts of a result, in order.
pub(super) type Parts<'a, T> = dyn Iterator<Item = &'a [T]> + 'a;

/// The result replaces the elements.
impl<T: Element> Carry<T, ()> for &mut [T] {
    fn bring(&mut self, to: &mut [T]) {
        // A rank that brings no elements gets an empty slice.
        let count = to.len();
        to.copy_from_slice(&self[..count]);
    }

    fn take(self, found: &mut Parts<'_, T>) {
        // A root that brought its elements gets no other elements.
        fill(self, found);
    }
}

/// One function writes the elements, and another one reads the result.
impl<T, R, B: FnMut(&mut [T]), C: FnOnce(&mut Parts<'_, T>) -> R> Carry<T, R> for (B, C) {
    fn bring(&mut self, to: &mut [T]) {
        (self.0)(to);
    }

    fn take(self, found: &mut Parts<'_, T>) -> R {
        (self.1)(found)
    }
}

/// Copies the parts of the result to `all`, one after another.
pub(super) fn fill<T: Element>(all: &mut [T], found: &mut Parts<'_, T>) {
    let mut at = 0;
    for part in found {
        all[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}
