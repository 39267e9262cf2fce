//! The number of bytes of elements that a rank copies between calls and windows, in addition to the
//! copies of a transport. Only tests of this package count them.

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

/// Returns how many bytes this rank has copied since the last call of this function. Each rank is a
/// separate thread.
#[cfg(test)]
pub(crate) fn take_copied() -> usize {
    COPIED.take()
}
