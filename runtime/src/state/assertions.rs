//! [`Assertions`]: the promises of a program at a fence.

use std::fmt;
use std::ops::BitOr;

/// The promises of a program at a fence:
/// `u.fence_with(Assertions::NOPRECEDE | Assertions::NOSTORE)?`.
///
/// A false assertion is an error or has no effect; it never costs memory safety, and never leaves
/// wrong bits. NOPRECEDE and NOSUCCEED are always checked. NOSTORE and NOPUT are checked if
/// conflicts are checked ([`Ranks::check`](crate::Ranks::check)). If an assertion is found to be
/// false, the fence returns `ASSERT` on the rank that made the assertion and `RMA_SYNC` on the
/// others, and applies nothing.
///
/// ```
/// # use fencepost_runtime::Assertions;
/// let promised = Assertions::NOSUCCEED | Assertions::NOPUT;
/// assert_eq!(promised.to_string(), "NOPUT | NOSUCCEED");
/// assert_eq!(Assertions::NONE.to_string(), "NONE");
/// ```
///
/// # Source
/// MPI 4.1, section 12.5.5 (Assertions).
// Written by hand: a type of the crate `bitflags` would have two dozen public methods, and one of
// these accepts any bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Assertions(u8);

impl Assertions {
    /// Nothing is promised.
    pub const NONE: Self = Self(0);
    /// This rank did not store to its part since the last fence. No behaviour depends on this
    /// promise. After the first fence that asserts this, the check keeps a digest of the part
    /// whenever a fence, a prepared superstep or a `wait` returns the window. A fence that asserts
    /// this compares the part with the last digest.
    pub const NOSTORE: Self = Self(1);
    /// No other rank puts to this rank's part or accumulates into it in the epoch that follows. No
    /// behaviour depends on this promise.
    pub const NOPUT: Self = Self(2);
    /// No operation waits for this fence on any rank. All ranks must assert this. If an operation
    /// waits, the fence returns `ASSERT`.
    pub const NOPRECEDE: Self = Self(4);
    /// No rank puts, gets or accumulates in the epoch that follows. All ranks must assert this. A
    /// call that does so returns `ASSERT`.
    pub const NOSUCCEED: Self = Self(8);

    /// Returns whether these assertions include all assertions of `other`.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the assertions in this set that all ranks must make together.
    pub(crate) fn collective(self) -> Self {
        Self(self.0 & (Self::NOPRECEDE.0 | Self::NOSUCCEED.0))
    }

    /// Returns the bits that the assertions add to the word of a fence.
    pub(crate) fn word(self) -> u64 {
        u64::from(self.0) << 56
    }
}

/// Formats the assertions as they are written in code, such as `NOSTORE | NOPRECEDE` or `NONE`.
impl fmt::Display for Assertions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (Self::NOSTORE, "NOSTORE"),
            (Self::NOPUT, "NOPUT"),
            (Self::NOPRECEDE, "NOPRECEDE"),
            (Self::NOSUCCEED, "NOSUCCEED"),
        ];
        let names: Vec<_> =
            all.iter().filter(|(one, _)| self.contains(*one)).map(|(_, name)| *name).collect();
        if names.is_empty() {
            return f.write_str("NONE");
        }
        f.write_str(&names.join(" | "))
    }
}

impl BitOr for Assertions {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
