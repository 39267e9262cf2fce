//! Locks: accesses to windows of ranks that make no calls.

mod contention;
mod datatypes;
mod misuse;
mod programs;
mod waiting;
