//! Sends, receives, accesses and exposures in two steps: one call begins the request, and another
//! completes it. The tests run on every transport.

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
