//! [`Limits`]: how much of messages is sent and kept before their receives.

use crate::state::environment;
use fencepost_planner::Result;

/// The limits of a world for messages that no receive has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// The bytes of the longest message whose elements are sent with it.
    pub(crate) eager: usize,
    /// The bytes of messages that a rank keeps for receives to come.
    pub(crate) unexpected: usize,
}

/// The bytes that a message takes of [`Limits::unexpected`] besides its elements.
pub(crate) const OVERHEAD: usize = 64;

/// The number of messages that may be in the buffer of buffered sends at a time.
pub(crate) const BUFFERED: usize = 1 << 16;

impl Default for Limits {
    fn default() -> Self {
        Self { eager: 16 << 10, unexpected: 16 << 20 }
    }
}

impl Limits {
    /// Returns the defaults, changed by `FENCEPOST_EAGER` and `FENCEPOST_UNEXPECTED`.
    pub(crate) fn from_environment() -> Result<Self> {
        let mut limits = Self::default();
        for (name, value) in
            [("FENCEPOST_EAGER", &mut limits.eager), ("FENCEPOST_UNEXPECTED", &mut limits.unexpected)]
        {
            *value = environment::bytes(name)?.unwrap_or(*value);
        }
        Ok(limits)
    }
}
