//! [`Carry`]: how the elements of a call get into a window and its result out of it.

use crate::kernel::element::Element;

/// Between the caller's elements and the window.
pub(super) trait Carry<T, R> {
    /// Write this rank's elements. Not called, or with no room, where it brings none.
    fn bring(&mut self, to: &mut [T]);

    /// Read its result, which is these parts, one after the other.
    fn take(self, found: &mut Parts<'_, T>) -> R;
}

/// Parts of a result, in order.
pub(super) type Parts<'a, T> = dyn Iterator<Item = &'a [T]> + 'a;

/// The result takes the elements' place.
impl<T: Element> Carry<T, ()> for &mut [T] {
    fn bring(&mut self, to: &mut [T]) {
        // A rank that brings none has no room.
        let count = to.len();
        to.copy_from_slice(&self[..count]);
    }

    fn take(self, found: &mut Parts<'_, T>) {
        // A root that gave its elements finds nothing else.
        fill(self, found);
    }
}

/// Something writes them, and something else reads them.
impl<T, R, B: FnMut(&mut [T]), C: FnOnce(&mut Parts<'_, T>) -> R> Carry<T, R> for (B, C) {
    fn bring(&mut self, to: &mut [T]) {
        (self.0)(to);
    }

    fn take(self, found: &mut Parts<'_, T>) -> R {
        (self.1)(found)
    }
}

/// `all` becomes what was found, as far as that goes.
pub(super) fn fill<T: Element>(all: &mut [T], found: &mut Parts<'_, T>) {
    let mut at = 0;
    for part in found {
        all[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}
