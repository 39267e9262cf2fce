//! Messages between two ranks, on every transport.

mod differential;
mod meaning;
mod misuse;
mod programs;
mod waiting;
