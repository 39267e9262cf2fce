//! The changes that tests and fuzzers make to this package from within: waits taken away, frames changed on their way.

#[cfg(test)]
mod fences;
#[cfg(test)]
mod forged;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(test)]
mod garbled;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tampered;
