//! The parts of windows that are locked: their words, the operations on them, and the service for
//! ranks that do not reach them.

pub(crate) mod hints;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod visit;
pub(crate) mod words;

use crate::locks::state::service::Service;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

/// The data that a rank of a world keeps for its locks.
#[derive(Default)]
pub(crate) struct LocksState {
    /// The number of parts of windows that this rank holds. It is set when the rank first holds a
    /// part.
    pub(crate) held: OnceCell<Rc<HeldParts>>,
    /// The service that accesses this rank's parts of windows on behalf of ranks that do not reach
    /// these parts.
    pub(crate) service: OnceCell<Arc<Service>>,
}

/// The number of parts of windows that a rank holds because it has flushed epochs of locks.
#[derive(Default)]
pub(crate) struct HeldParts(pub(crate) Cell<usize>);
