//! The waits of the protocols, by the places in the code that wait. Only tests of this package can
//! disable a wait.
//!
//! In other builds [`without`] is the constant `false`, and costs nothing.

/// A wait that a test can disable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// W1: the words of notifications and of frames are compared.
    Word,
    /// W1: all notifications have arrived before memory of others is read.
    Entry,
    /// W2: gets are read before this rank's own operations on itself are applied.
    ReadsFirst,
    /// W3: a rank leaves a fence, or the call that sends a message, only when all other ranks have
    /// finished reading from this rank.
    Leaving,
    /// W3: a rank leaves a fence only when its own gets have arrived.
    Landing,
    /// W4: outboxes are used in turn, and memory of messages is reused only after it was read.
    Reuse,
    /// W5: all notifications of an exchange have arrived before the next is published.
    Skew,
    /// W6: every fence makes all its waits, whichever calls came before.
    Composition,
}

/// Returns whether this wait is disabled.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn without(_: Wait) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<Option<Wait>> = const { std::cell::Cell::new(None) };
}

/// Returns whether this wait is disabled for this rank.
#[cfg(test)]
pub(crate) fn without(wait: Wait) -> bool {
    TAKEN.get() == Some(wait)
}

/// Disables this wait from here on for this rank, which is a separate thread.
#[cfg(test)]
pub(crate) fn take_away(wait: Option<Wait>) {
    TAKEN.set(wait);
}
