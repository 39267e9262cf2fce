//! The waits, by the places that keep them: each can be taken away in tests of this package, and nowhere else.
//!
//! Elsewhere [`without`] is the constant `false`, and costs nothing.

/// A wait that can be taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// W1: words are compared, of notifications and of frames.
    Word,
    /// W1: all notifications are in before memory of others is read.
    Entry,
    /// W2: gets are read before this rank's own operations on itself are applied.
    ReadsFirst,
    /// W3: a rank leaves when all have read from it: a fence, or the call that sends a message.
    Leaving,
    /// W3: a rank leaves when its own gets have come.
    Landing,
    /// W4: outboxes are used in turn, and memory of messages when they were read.
    Reuse,
    /// W5: all notifications of an exchange are in before the next is published.
    Skew,
    /// W6: every fence is complete, whatever went before it.
    Composition,
}

/// Whether this wait is taken away.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn without(_: Wait) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<Option<Wait>> = const { std::cell::Cell::new(None) };
}

/// Whether this wait is taken away from this rank.
#[cfg(test)]
pub(crate) fn without(wait: Wait) -> bool {
    TAKEN.get() == Some(wait)
}

/// From here on this rank, which is a thread of its own, does without this wait.
#[cfg(test)]
pub(crate) fn take_away(wait: Option<Wait>) {
    TAKEN.set(wait);
}
