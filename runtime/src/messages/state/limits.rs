//! [`Limits`]: how many bytes of messages are sent and kept before they are received.

/// The limits of a world for messages that no receive has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// The maximum number of bytes of a message that carries its elements, if the program has set
    /// this maximum.
    pub(crate) eager: Option<usize>,
    /// The maximum number of bytes of messages that a rank keeps for later receives.
    pub(crate) unexpected: usize,
}

/// The default of `Limits::eager`. The first number is for receivers that reach the sender's
/// memory, the second for other receivers.
///
/// The second number is larger, because other receivers would have to request the elements. If a
/// receive waits for the message, long elements land in their destination. Otherwise they are
/// copied once more, and beyond this number of bytes the copy takes more time than a request
/// (benches/log/messages_and_collectives.md).
const EAGER: (usize, usize) = (16 << 10, 1 << 20);

/// The number of bytes of [`Limits::unexpected`] that a message takes in addition to its elements.
pub(crate) const OVERHEAD: usize = 64;

/// The number of messages that may be in the buffer of buffered sends at a time.
pub(crate) const BUFFERED: usize = 1 << 16;

impl Default for Limits {
    fn default() -> Self {
        Self { eager: None, unexpected: 16 << 20 }
    }
}

impl Limits {
    /// Returns the maximum number of bytes of a message that carries its elements. `reached` is
    /// whether the receiver reaches the sender's memory.
    #[inline]
    pub(crate) fn eager(&self, reached: bool) -> usize {
        self.eager.unwrap_or(if reached { EAGER.0 } else { EAGER.1 })
    }
}
