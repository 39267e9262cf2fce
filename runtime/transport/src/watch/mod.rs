//! [`Watched`]: memory with a second mapping for the program of its owner, so that the program's
//! loads are seen.
//!
//! The runtime and other ranks use the first mapping, and their loads are not seen. Loads from the
//! second mapping are seen in one of two ways:
//!
//! - In a build for checking (`--cfg fencepost_loads`), the compiler puts a call before each load
//!   of the program, and `hooks` marks the bytes that are loaded from a second mapping
//!   (`compiled`).
//! - In any other build, the second mapping is `protected` while loads are watched. Each access
//!   raises SIGSEGV, and the handler records it if it is a load. The access is then executed in a
//!   single step while the pages are open ([`signals`]). The handlers read a [`table`] of fixed
//!   size.
//!
//! Protected memory has these limits:
//!
//! - A system call that is given such memory fails with EFAULT, and raises no signal. System calls
//!   of this crate that may be given such memory are repeated after [`open`].
//! - If an instruction repeats itself, such as that of a long copy, all its loads are recorded at
//!   once, and its pages stay open.
//! - While one thread executes its access, accesses of other threads to the same two pages are not
//!   seen.
//! - The handlers belong to the whole process. A signal that does not concern watched memory is
//!   passed to the handler that was installed before.
//!
//! Loads are watched on x86-64 only. Its page faults distinguish loads from stores, and it can
//! execute a single instruction.

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
