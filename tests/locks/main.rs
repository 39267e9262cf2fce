//! Locks: what ranks do to windows of others that call nothing.

mod contention;
mod misuse;
mod programs;
mod waiting;
