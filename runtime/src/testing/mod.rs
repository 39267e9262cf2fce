//! The changes that tests and fuzzers make to this package from within: waits that are taken away,
//! and frames that are changed on their way.

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
mod requests;
#[cfg(all(test, not(loom)))]
mod schedules;
#[cfg(all(test, not(loom)))]
mod support;
#[cfg(all(test, not(loom)))]
mod tampered;
