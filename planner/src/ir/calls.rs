//! The kinds of calls that no schedule replaces: locks and messages.

/// The type of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockType {
    /// Any number of epochs may hold the lock at a time. Each element is accessed atomically.
    Shared,
    /// One epoch holds the lock at a time, and is atomic.
    Exclusive,
}

/// The time at which a send is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// At some time between its call and its match.
    Standard,
    /// At its match.
    Synchronous,
    /// At its call, which fails if the buffer has no room.
    Buffered,
    /// Like a standard send. The caller promises that a receive is already waiting for the message.
    Ready,
}
