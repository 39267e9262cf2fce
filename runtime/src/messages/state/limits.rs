//! [`Limits`]: how many bytes of messages are sent and kept before they are received.

/// The limits of a world for messages that no receive has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// The number of bytes of the longest message whose elements are sent with it, if the program
    /// has set one.
    pub(crate) eager: Option<usize>,
    /// The bytes of messages that a rank keeps for later receives.
    pub(crate) unexpected: usize,
}

/// The number of bytes of the longest message whose elements are sent with it, if the program has
/// not set one. The first number is for receivers that read memory of the sender, the second for
/// others.
///
/// A rank that does not read that memory would have to make a request. Long elements land in their
/// destination if a receive waits for them, and otherwise they are copied once more. For even
/// longer elements that copy takes more time than a request
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
    /// Returns the number of bytes of the longest message whose elements are sent with it.
    /// `reached` is whether the receiver is reached.
    #[inline]
    pub(crate) fn eager(&self, reached: bool) -> usize {
        self.eager.unwrap_or(if reached { EAGER.0 } else { EAGER.1 })
    }
}
