//! Messages between two ranks, on every transport.

mod differential;
mod knots;
mod meaning;
mod misuse;
mod programs;
mod waiting;
