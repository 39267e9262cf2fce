//! Panics: no panic of a user's function unwinds through a protocol.
//!
//! While a rank is in a fence or a run, other ranks may touch its memory, so the rank must not
//! leave by unwinding. Functions of the user are called, and values of the user are dropped, before
//! or after the protocol or through [`contained`](crate::kernel::contained). If a panic unwinds
//! nevertheless, this library has a defect, and [`AbortOnUnwind`] ends the process.

/// A guard that ends the process if it is dropped before it is [over](Self::over). Only a panic
/// that unwinds out of the protocol drops the guard too early.
pub(crate) struct AbortOnUnwind(pub(crate) &'static str);

impl AbortOnUnwind {
    #[inline]
    pub(crate) fn over(self) {
        std::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    #[cold]
    #[expect(clippy::print_stderr, reason = "the process ends")]
    fn drop(&mut self) {
        if cfg!(loom) {
            return; // a rejected model unwinds, and that ends all its ranks
        }
        eprintln!(
            "fencepost: internal error: {} was left by a panic; the process ends, since other ranks may be using this rank's memory",
            self.0
        );
        std::process::abort();
    }
}
