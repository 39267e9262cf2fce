//! What several test programs share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod play;
pub mod program;
