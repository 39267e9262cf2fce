//! [`Status`] describes the message that a receive or a probe has found. [`Sources`] and [`Tags`]
//! select the messages that a receive or a probe may find.

/// Any rank as the source of a message, or any tag: `world.recv(Any, 7)?`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Any;

/// The ranks from which a receive or a probe takes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sources {
    /// The rank of this number.
    #[doc(hidden)]
    Rank(usize),
    /// Every rank, this one included.
    #[doc(hidden)]
    Any,
    /// No rank (MPI_PROC_NULL): the call returns at once, without a message.
    #[doc(hidden)]
    Nobody,
}

/// The tags of the messages that a receive or a probe takes.
#[expect(clippy::manual_non_exhaustive, reason = "both variants are hidden: values become them")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tags {
    /// This tag.
    #[doc(hidden)]
    Tag(u32),
    /// Every tag.
    #[doc(hidden)]
    Any,
}

impl From<usize> for Sources {
    #[inline]
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

impl From<Option<usize>> for Sources {
    fn from(rank: Option<usize>) -> Self {
        rank.map_or(Self::Nobody, Self::Rank)
    }
}

impl From<Any> for Sources {
    fn from(_: Any) -> Self {
        Self::Any
    }
}

impl From<u32> for Tags {
    #[inline]
    fn from(tag: u32) -> Self {
        Self::Tag(tag)
    }
}

impl From<Any> for Tags {
    fn from(_: Any) -> Self {
        Self::Any
    }
}

/// The sender, the tag and the length of a message. All three are empty if a call has received no
/// message because its source was nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// The sender.
    pub source: Option<usize>,
    /// The tag.
    pub tag: Option<u32>,
    /// The number of elements.
    pub len: usize,
}
