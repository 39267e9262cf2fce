//! [`Call`]: the call that ends an epoch, what its word hashes and what messages name.

use crate::assertions::Assertions;
use crate::call::WindowKey;
use crate::window::WindowCore;
use crate::world::WorldCore;
use fencepost_planner::{Class, Error};
use std::panic::Location;

/// Which call ends the epoch: what its word hashes, and what messages name.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Of the superstep and its uniform arguments; 0 for a fence outside one.
    pub(crate) hash: u64,
    /// The superstep's name.
    pub(crate) name: Option<&'static str>,
    /// What all ranks assert alike; it is in the hash.
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
    pub(super) fn asserting(self, assertions: Assertions) -> Self {
        let asserted = assertions.collective();
        Self { hash: self.hash ^ asserted.word(), asserted, ..self }
    }

    pub(crate) fn describe(&self, windows: &[&WindowCore]) -> String {
        use std::fmt::Write;
        let mut text = match self.name {
            Some(name) => format!("superstep {name} ({}:{})", self.site.file(), self.site.line()),
            None => format!("a fence at {}:{}", self.site.file(), self.site.line()),
        };
        for (i, window) in windows.iter().enumerate() {
            let _ = write!(text, "{} {}", if i == 0 { " of window" } else { "," }, window.key.window);
        }
        if self.asserted != Assertions::NONE {
            let _ = write!(text, " asserting {}", self.asserted);
        }
        text
    }

    pub(crate) fn error(&self, world: &WorldCore, class: Class, message: impl Into<String>) -> Error {
        let error = Error::new(class, message).on_rank(world.rank as u32).at(self.site);
        match self.name {
            Some(name) => error.in_superstep(name),
            None => error,
        }
    }

    pub(super) fn not_in_fence(
        &self,
        world: &WorldCore,
        key: WindowKey,
        site: &'static Location<'static>,
    ) -> Error {
        let message = format!(
            "window {} has a section in this epoch but is not in its fence: fence all of them together, `world.fence((&mut u, &mut v))?`",
            key.window
        );
        Error::new(Class::RmaSync, message).on_rank(world.rank as u32).at(site)
    }
}

/// A hash of superstep and windows: all of it is compared wherever ranks meet, in letters with the epoch's number mixed in
/// ([`letter_word`]), in frames beside it.
#[inline]
pub(crate) fn hash(world: &WorldCore, call: &Call, windows: &[&WindowCore]) -> u64 {
    let windows = windows.iter().map(|window| window.key.window);
    world.key.word_of(call.hash, windows, world.calls.position())
}

/// What letters of the epoch of this word carry: with equal hashes they differ wherever the epochs' numbers do. The number
/// takes the place of the last coefficient of [`hash`], which is 0.
pub(super) fn letter_word(word: u64, hash: u64) -> u64 {
    hash + (word >> 32)
}
