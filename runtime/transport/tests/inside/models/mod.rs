//! The transports, compiled against loom's atomics, and their protocols executed in every order of
//! steps (with a bound on preemptions). They are run by
//! `RUSTFLAGS="--cfg loom" cargo test -p fencepost-transport --lib models::`.
//!
//! A correct protocol proves little unless the model would detect a wrong one. So for each of the
//! six waits there is the same protocol without that wait, which loom must reject. There is also
//! the handshake of sleeping without its fences.

mod census;
mod direct;
mod epochs;
mod frames;
mod halves;
mod locks;
mod pairs;
mod sleeping;

use crate::explore::{model, rejected};
