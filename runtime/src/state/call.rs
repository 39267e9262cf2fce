//! [`Call`]: the call that ends an epoch, what its word hashes and what messages name.

use crate::state::assertions::Assertions;
use std::panic::Location;

/// Which call ends the epoch: what its word hashes, and what messages name.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Of the superstep and its uniform arguments; 0 for a fence outside one.
    pub(crate) hash: u64,
    /// The superstep's name.
    pub(crate) name: Option<&'static str>,
    /// The assertions that all ranks make; they are in the hash.
    pub(crate) asserted: Assertions,
    /// The user's line.
    pub(crate) site: &'static Location<'static>,
}

impl Call {
    pub(crate) fn fence(site: &'static Location<'static>) -> Self {
        Self { hash: 0, name: None, asserted: Assertions::NONE, site }
    }

    /// At the line of the caller.
    #[track_caller]
    pub(crate) fn named(hash: u64, name: &'static str) -> Self {
        Self { hash, name: Some(name), asserted: Assertions::NONE, site: Location::caller() }
    }

    /// The same, with what is asserted.
    pub(crate) fn asserting(self, assertions: Assertions) -> Self {
        let asserted = assertions.collective();
        Self { hash: self.hash ^ asserted.word(), asserted, ..self }
    }
}
