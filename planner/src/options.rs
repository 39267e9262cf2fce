//! [`Options`]: the choices of the caller when patterns are compiled.

use crate::ir::pattern::Mode;
use crate::units::Bytes;

/// The choices of the caller. The contents of windows do not depend on them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// A mode for all operations, which overrides their own modes. With [`Mode::Auto`], each
    /// operation keeps its own.
    pub mode: Mode,
    /// Whether transfers are joined, and elements that are overwritten later are not sent.
    #[doc(hidden)]
    pub coalesce: bool,
    /// The chunk of pipelined messages. With `None`, it is the chunk of the machine model.
    #[doc(hidden)]
    pub chunk: Option<Bytes>,
    /// The largest staging memory of a rank in bytes: all copies of all buffers that its messages
    /// are sent from. If a rank would need more, its buffers have one copy instead of two. If that
    /// is not enough, messages that can be copied directly are not packed but copied. If that is
    /// not enough either, there is no schedule.
    pub cap: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::Auto, coalesce: true, chunk: None, cap: None }
    }
}

impl Options {
    /// Returns the mode that applies to an operation that requests `mode`.
    #[doc(hidden)]
    pub fn asked(&self, mode: Mode) -> Mode {
        if self.mode == Mode::Auto { mode } else { self.mode }
    }
}
