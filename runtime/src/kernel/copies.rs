//! How many bytes of elements a rank copies between calls and windows, beyond what a transport
//! copies. Only tests of this package count them.

/// Counts `bytes` bytes that this rank has copied.
#[inline(always)]
pub(crate) fn count_copied(bytes: usize) {
    #[cfg(test)]
    COPIED.set(COPIED.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

#[cfg(test)]
thread_local! {
    static COPIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns how many bytes this rank, which is a separate thread, has copied since the last call.
#[cfg(test)]
pub(crate) fn take_copied() -> usize {
    COPIED.take()
}
