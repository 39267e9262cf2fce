//! Models of the transports' protocols. The transports are compiled with loom's atomics, and loom
//! executes the protocols in every order of steps, with a bound on preemptions. The command is
//! `RUSTFLAGS="--cfg loom" cargo test -p fencepost-transport --lib models::`.
//!
//! A model that accepts the correct protocol proves little unless it would reject a wrong one. So
//! each of the six waits also has a model of the same protocol without that wait, which loom must
//! reject. Another model has the handshake of sleeping without its fences.

mod census;
mod direct;
mod epochs;
mod following;
mod frames;
mod halves;
mod locks;
mod pairs;
mod sleeping;

use crate::explore::{model, rejected};
use crate::{LocalEnd, local};
use loom::cell::UnsafeCell;
use loom::thread;

fn load(cell: &UnsafeCell<u64>) -> u64 {
    // SAFETY: loom checks that no rank writes meanwhile; this is what the model tests.
    cell.with(|value| unsafe { *value })
}

fn store(cell: &UnsafeCell<u64>, value: u64) {
    // SAFETY: loom checks that no other rank accesses the cell meanwhile; this is what the model
    // tests.
    cell.with_mut(|place| unsafe { *place = value });
}

fn until(mut look: impl FnMut() -> bool) {
    while !look() {
        thread::yield_now();
    }
}

fn pair() -> (LocalEnd, LocalEnd) {
    let mut ends = local(2);
    let second = ends.pop().expect("two ends");
    (ends.pop().expect("two ends"), second)
}

/// Returns the value that rank `from` stores in epoch `e`. [`sent`] returns the value that the rank
/// sends.
fn stored(from: usize, e: u64) -> u64 {
    100 * (from as u64 + 1) + e
}

fn sent(from: usize, e: u64) -> u64 {
    stored(from, e) + 1000
}
