//! [`Options`]: what is left to choice when patterns are compiled.

use crate::ir::pattern::Mode;
use crate::units::Bytes;

/// What is left to choice. Any choice gives the same contents of windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// A mode for all operations, whatever each asks for; [`Mode::Auto`] leaves it to them.
    pub mode: Mode,
    /// Whether transfers are joined, and what is replaced is left out.
    pub coalesce: bool,
    /// The chunk of pipelined messages; the machine model's if there is none.
    pub chunk: Option<Bytes>,
    /// The most bytes of staging that a rank may have: all copies of all buffers that its messages are sent from. Where
    /// it would have more, buffers have one copy instead of two; then what can be copied directly is; and if that is not
    /// enough, there is no schedule.
    pub cap: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::Auto, coalesce: true, chunk: None, cap: None }
    }
}

impl Options {
    /// The mode asked for by an operation that asks for `mode`.
    pub fn asked(&self, mode: Mode) -> Mode {
        if self.mode == Mode::Auto { mode } else { self.mode }
    }
}
