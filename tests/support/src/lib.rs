//! The common parts of test programs. [`random`], [`counting`], [`golden`], [`mod@line`],
//! [`mod@side_by_side`] and [`cases`] need nothing of ours, so that the tests of
//! every layer can use them; the feature `worlds` adds transports and programs.

pub mod cases;
pub mod counting;
#[cfg(feature = "worlds")]
pub mod delayed;
#[cfg(feature = "worlds")]
pub mod ends;
pub mod golden;
#[cfg(feature = "worlds")]
mod halves;
pub mod line;
#[cfg(feature = "worlds")]
pub mod messages;
#[cfg(feature = "worlds")]
pub mod play;
#[cfg(feature = "worlds")]
pub mod program;
pub mod random;
pub mod side_by_side;
#[cfg(feature = "worlds")]
pub mod transports;
#[cfg(feature = "worlds")]
pub mod waits;
