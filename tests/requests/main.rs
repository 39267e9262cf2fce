//! Sends, receives, accesses and exposures that one call begins and another one completes, on every
//! transport.

mod differential;
mod epochs;
mod futures;
mod leaks;
mod meaning;
mod misuse;
mod programs;
mod scopes;
mod sets;
mod waiting;
