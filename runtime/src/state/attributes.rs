//! [`Attributes`]: values that a program keeps with a window, by their type.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Attributes, with at most one value of each type.
#[derive(Default)]
pub(crate) struct Attributes(RefCell<BTreeMap<TypeId, Rc<dyn Any>>>);

/// Returns the value as an `A`, or `None` if it has another type.
fn typed<A: 'static>(value: Rc<dyn Any>) -> Option<Rc<A>> {
    value.downcast().ok()
}

impl Attributes {
    /// Stores a value. Returns the earlier value of the same type.
    pub(crate) fn set<A: 'static>(&self, value: A) -> Option<Rc<A>> {
        let before = self.0.borrow_mut().insert(TypeId::of::<A>(), Rc::new(value));
        before.and_then(typed)
    }

    /// Returns the value of a type.
    pub(crate) fn get<A: 'static>(&self) -> Option<Rc<A>> {
        self.0.borrow().get(&TypeId::of::<A>()).cloned().and_then(typed)
    }

    /// Takes the value of a type.
    pub(crate) fn take<A: 'static>(&self) -> Option<Rc<A>> {
        let value = self.0.borrow_mut().remove(&TypeId::of::<A>());
        value.and_then(typed)
    }

    /// Drops all values. Their destructors may do anything, so nothing is borrowed meanwhile.
    pub(crate) fn drop_all(&self) {
        drop(self.0.take());
    }
}
