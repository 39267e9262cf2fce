//! Failures. Each is an error of MPI's class on the ranks that must see it, and no rank waits
//! forever.

mod differing;
mod errors;
mod faults;
mod handlers;
mod misuse;
mod noticed;
mod partial;
mod split;
mod stalls;
