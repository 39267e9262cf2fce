//! Locks: what ranks do to windows of others that call nothing.

mod contention;
mod datatypes;
mod misuse;
mod programs;
mod waiting;
