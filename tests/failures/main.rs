//! Failures. Each is an error with MPI's error class on the ranks that must get it, and no rank
//! waits forever.

mod differing;
mod errors;
mod faults;
mod handlers;
mod misuse;
mod noticed;
mod partial;
mod split;
mod stalls;
