//! [`Meter`]: what a rank has sent, counted where it is handed over.

use crate::Header;

/// Frames and their payload.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Count {
    /// How many frames.
    pub frames: u64,
    /// Bytes of payload, headers not counted.
    pub bytes: u64,
}

/// What one rank has sent since its world began. A test takes two and compares.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Meter {
    kinds: [Count; Meter::KINDS],
    /// Exchanges of letters that were published.
    pub exchanges: u64,
    /// Exchanges that were settled.
    pub settles: u64,
    /// Frames of others that were released.
    pub releases: u64,
}

impl Meter {
    /// Kinds that are counted apart; all higher ones count as the last.
    pub const KINDS: usize = 16;

    /// Frames of this kind.
    pub fn of(&self, kind: u32) -> Count {
        self.kinds[Self::row(kind)]
    }

    /// Frames of every kind.
    pub fn total(&self) -> Count {
        self.kinds.iter().fold(Count::default(), |sum, one| Count {
            frames: sum.frames + one.frames,
            bytes: sum.bytes + one.bytes,
        })
    }

    #[inline]
    pub(crate) fn count(&mut self, header: Header, len: usize) {
        let count = &mut self.kinds[Self::row(header.kind)];
        count.frames += 1;
        count.bytes += len as u64;
    }

    fn row(kind: u32) -> usize {
        (kind as usize).min(Self::KINDS - 1)
    }
}
