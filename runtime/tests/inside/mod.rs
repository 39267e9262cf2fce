//! Tests that use private items of this package, and the functions that fuzzers call. They are a
//! module of the crate only in tests and fuzzers, and are not part of the published package.

#[cfg(all(test, not(loom)))]
mod fences;
#[cfg(all(test, not(loom)))]
mod forged;
#[cfg(not(loom))]
pub mod fuzzing;
#[cfg(all(test, not(loom)))]
mod garbled;
#[cfg(all(test, not(loom)))]
mod messages;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod recorded;
#[cfg(all(test, not(loom)))]
mod requests;
#[cfg(all(test, not(loom)))]
mod schedules;
#[cfg(all(test, not(loom)))]
mod support;
#[cfg(all(test, not(loom)))]
mod tampered;
