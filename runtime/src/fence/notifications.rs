//! The combined contents of the notifications of one exchange.

use crate::census::flags::{LISTED, READS};
use crate::fence::disagree::Disagreement;
use std::ops::Range;

/// The contents of all notifications together.
#[derive(Default)]
pub(super) struct Notifications {
    pub(super) flags: u32,
    /// The range from the first to the last rank that sent this rank anything. Empty if no rank
    /// did.
    pub(super) senders: Range<usize>,
    /// Whether some rank reads this rank's memory without a list of the elements that it reads.
    pub(super) unlisted: bool,
    pub(super) disagreement: Disagreement,
}

impl Notifications {
    /// Adds the notification of rank `from`.
    #[inline(always)]
    pub(super) fn add(&mut self, from: usize, flags: u32, count: u32) {
        self.flags |= flags;
        self.unlisted |= flags & (READS | LISTED) == READS;
        if count > 0 {
            let Range { start, end } = &mut self.senders;
            *start = if start == end { from } else { from.min(*start) };
            *end = (from + 1).max(*end);
        }
    }

    /// Returns whether no rank sent this rank anything.
    pub(super) fn quiet(&self) -> bool {
        self.senders.is_empty()
    }

    /// Returns a range that contains this rank and all ranks that sent something.
    #[inline(always)]
    pub(super) fn origins(&self, me: usize) -> Range<usize> {
        if self.quiet() { me..me + 1 } else { me.min(self.senders.start)..self.senders.end.max(me + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_from_the_first_sender_to_the_last_and_have_oneself() {
        for (senders, me, expected) in
            [(&[][..], 3, 3..4), (&[5], 3, 3..6), (&[5, 2], 3, 2..6), (&[1], 3, 1..4), (&[0, 1], 0, 0..2)]
        {
            let mut all = Notifications::default();
            (0..8).for_each(|from| all.add(from, 0, 0));
            senders.iter().for_each(|&from| all.add(from, 0, 1));
            assert_eq!(all.origins(me), expected);
            assert_eq!(all.quiet(), senders.is_empty());
        }
    }
}
