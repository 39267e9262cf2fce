//! [`Options`]: the choices of the caller when patterns are compiled.

use crate::ir::pattern::Mode;
use crate::units::Bytes;

/// The choices of the caller. All of them leave the same contents of windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// A mode for all operations, which overrides those of the operations; with [`Mode::Auto`] each operation's own
    /// mode counts.
    pub mode: Mode,
    /// Whether transfers are joined, and elements that are overwritten later are not sent.
    pub coalesce: bool,
    /// The chunk of pipelined messages; `None` takes that of the machine model.
    pub chunk: Option<Bytes>,
    /// The largest staging memory of a rank in bytes: all copies of all buffers that its messages are sent from.
    /// Where a rank would need more, its buffers have one copy instead of two; if that is not enough, messages that
    /// can be copied directly are; if that is not enough either, there is no schedule.
    pub cap: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::Auto, coalesce: true, chunk: None, cap: None }
    }
}

impl Options {
    /// The mode asked for by an operation that asks for `mode`.
    #[doc(hidden)]
    pub fn asked(&self, mode: Mode) -> Mode {
        if self.mode == Mode::Auto { mode } else { self.mode }
    }
}
