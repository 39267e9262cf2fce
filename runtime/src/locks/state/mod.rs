//! The parts of windows that are locked: their words, the operations on them, and the service for
//! ranks that do not reach them.

pub(crate) mod hints;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod visit;
pub(crate) mod words;
