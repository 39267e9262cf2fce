//! [`Watched`]: memory mapped a second time for its owner's program alone, so that the loads of it can be seen.
//!
//! The runtime and other ranks use the first mapping, which is never protected: nothing that they do faults. The second one is protected while
//! loads are watched: each access raises SIGSEGV, is noted if it is a load, and is made by itself with the pages open
//! ([`signals`]). What the handlers know is in a [`table`] of fixed size.
//!
//! - A system call that is handed protected memory fails with EFAULT, and raises no signal. Those of this crate that may be are repeated
//!   after [`open`].
//! - Of an instruction that repeats itself, as one of a long copy does, all loads are noted, and its pages stay open.
//! - While a thread makes its access alone, other threads access the same two pages unseen.
//! - The handlers are the whole process's. A signal that is of no watched memory goes to the handler that was there before.
//! - Elsewhere than on x86-64, whose page faults say what is written and which steps by one instruction, nothing is watched.

#[cfg(all(not(loom), target_arch = "x86_64"))]
mod pages;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod signals;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod table;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
mod unwatched;

#[cfg(all(not(loom), target_arch = "x86_64"))]
pub(crate) use pages::Pages;
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub use pages::Watched;
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub(crate) use table::open;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
pub use unwatched::Watched;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
#[cfg_attr(loom, allow(unused_imports, reason = "sockets alone open memory"))]
pub(crate) use unwatched::open;
