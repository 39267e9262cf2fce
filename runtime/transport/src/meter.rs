//! [`Meter`]: counts what a rank has sent. A frame is counted when it is posted.

use crate::Frame;

/// A number of frames and the size of their payloads.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Count {
    /// The number of frames.
    pub frames: u64,
    /// The number of bytes of payload, without headers.
    pub bytes: u64,
}

/// What one rank has sent since its world was created. A test reads the meter twice and compares.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Meter {
    kinds: [Count; Meter::KINDS],
    /// The number of exchanges of notifications that this rank published.
    #[doc(hidden)]
    pub exchanges: u64,
    /// The number of exchanges that this rank settled.
    #[doc(hidden)]
    pub settles: u64,
    /// The number of frames of other ranks that this rank released.
    #[doc(hidden)]
    pub releases: u64,
    /// The number of bytes of payloads that a fabric of this rank copied. A fabric copies bytes
    /// that it gathers, that it cannot send at once, or that arrive before their receive buffer.
    #[doc(hidden)]
    pub copied: u64,
}

impl Meter {
    /// The number of kinds that are counted separately. All higher kinds are counted as the last
    /// kind.
    #[doc(hidden)]
    pub const KINDS: usize = 16;

    /// Returns the count of frames of this kind.
    #[doc(hidden)]
    pub fn of(&self, kind: u32) -> Count {
        self.kinds[Self::row(kind)]
    }

    /// Returns the count of frames of every kind.
    pub fn total(&self) -> Count {
        self.kinds.iter().fold(Count::default(), |sum, one| Count {
            frames: sum.frames + one.frames,
            bytes: sum.bytes + one.bytes,
        })
    }

    #[inline]
    pub(crate) fn count(&mut self, frame: &Frame) {
        let count = &mut self.kinds[Self::row(frame.header.kind)];
        count.frames += 1;
        count.bytes += frame.len as u64;
    }

    fn row(kind: u32) -> usize {
        (kind as usize).min(Self::KINDS - 1)
    }
}
