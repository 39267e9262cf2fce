//! [`Watched`]: memory mapped a second time for its owner's program alone, so that the loads of it
//! can be seen.
//!
//! The runtime and other ranks use the first mapping, where nothing is seen. Loads of the second
//! mapping are seen in one of two ways:
//!
//! - In a build for checking (`--cfg fencepost_loads`), the compiler puts a call before each load
//!   of the program, and `hooks` marks what is loaded from the `compiled` windows.
//! - In any other build, the second mapping is `protected` while loads are watched. Each access
//!   raises SIGSEGV and is noted if it is a load. The access is then executed in a single step,
//!   with the pages open ([`signals`]). The handlers read a [`table`] of fixed size.
//!
//! Protected memory has these limits:
//!
//! - A system call that is given such memory fails with EFAULT, and raises no signal. System calls
//!   of this crate that may be given such memory are repeated after [`open`].
//! - If an instruction repeats itself, such as one of a long copy, all its loads are noted, and its
//!   pages stay open.
//! - While a thread makes its access alone, other threads access the same two pages unseen.
//! - The handlers belong to the whole process. A signal that concerns no watched memory goes to the
//!   handler that was there before.
//!
//! Nothing is watched except on x86-64, whose page faults distinguish loads from stores and which
//! can step by one instruction.

#[cfg(all(not(loom), target_arch = "x86_64", fencepost_loads))]
mod compiled;
#[cfg(all(not(loom), target_arch = "x86_64", fencepost_loads))]
mod hooks;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod pages;
#[cfg(all(not(loom), target_arch = "x86_64", not(fencepost_loads)))]
mod protected;
#[cfg(all(not(loom), target_arch = "x86_64", not(fencepost_loads)))]
mod signals;
#[cfg(all(not(loom), target_arch = "x86_64", not(fencepost_loads)))]
mod table;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
mod unwatched;

#[cfg(all(not(loom), target_arch = "x86_64", fencepost_loads))]
pub use compiled::Watched;
#[cfg(all(not(loom), target_arch = "x86_64", fencepost_loads))]
pub(crate) use compiled::open;
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub(crate) use pages::Pages;
#[cfg(all(not(loom), target_arch = "x86_64", not(fencepost_loads)))]
pub use protected::Watched;
#[cfg(all(not(loom), target_arch = "x86_64", not(fencepost_loads)))]
pub(crate) use table::open;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
pub use unwatched::Watched;
#[cfg(not(all(not(loom), target_arch = "x86_64")))]
#[cfg_attr(loom, allow(unused_imports, reason = "sockets alone open memory"))]
pub(crate) use unwatched::open;
