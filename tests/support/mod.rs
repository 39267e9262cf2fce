//! What several test programs share.

pub mod play;
pub mod program;
