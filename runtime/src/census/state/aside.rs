//! [`Aside`]: frames of operations that arrive before the census has counted them.
//!
//! These frames belong to the present exchange. The rank takes in all frames of one sender before
//! the frames of the next sender. An exchange that fails drops all of them. Operations of later
//! fences are in [`Staged`](super::staged::Staged) instead, and are taken in for one window at a
//! time.

use fencepost_transport::{Frame, Header};
use std::collections::VecDeque;

/// Frames in the order in which they came, and the rank that sent each.
#[derive(Default)]
pub(crate) struct Aside(VecDeque<(usize, Kept)>);

enum Kept {
    /// A frame that this rank takes in when all ranks agree.
    Copied(Header, Vec<u8>),
    /// A frame whose payload is read in place.
    InPlace(Frame),
}

impl Aside {
    /// Sets a frame of `from` aside until the census has ended. If `in_place`, the payload is read
    /// from the frame later. Otherwise `bytes` is the payload.
    pub(crate) fn add(&mut self, from: usize, frame: Frame, bytes: &[u8], in_place: bool) {
        let aside = if in_place { Kept::InPlace(frame) } else { Kept::Copied(frame.header, bytes.to_vec()) };
        self.0.push_back((from, aside));
    }

    /// Returns how many frames of `from` are set aside.
    pub(crate) fn of(&self, from: usize) -> usize {
        self.0.iter().filter(|(sender, _)| *sender == from).count()
    }

    /// Sorts the frames that are set aside by their senders. The frames of one sender stay in the
    /// order of arrival.
    pub(crate) fn order(&mut self) {
        self.0.make_contiguous().sort_by_key(|(sender, _)| *sender);
    }

    /// Returns the sender of the first frame that is set aside.
    pub(crate) fn first(&self) -> Option<usize> {
        self.0.front().map(|(sender, _)| *sender)
    }

    /// If `from` has sent the first frame that is set aside, removes the frame, calls `act` with
    /// it, and returns the result of `act`.
    pub(crate) fn take<R>(&mut self, from: usize, act: impl FnOnce(&Frame) -> R) -> Option<R> {
        self.first().filter(|&sender| sender == from)?;
        self.0.pop_front().map(|(_, aside)| match aside {
            Kept::InPlace(frame) => act(&frame),
            Kept::Copied(header, bytes) => act(&Frame { header, payload: bytes.as_ptr(), len: bytes.len() }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_taken_by_sender_in_the_order_in_which_it_came() {
        let mut aside = Aside::default();
        let frame = |word| Frame { header: Header { word, kind: 0, extra: 0 }, payload: [].as_ptr(), len: 0 };
        for (word, from) in (0..).zip([4, 1, 4, 0, 1]) {
            aside.add(from, frame(word), b"", word % 2 == 0);
        }
        assert_eq!((aside.of(4), aside.of(2)), (2, 0));
        aside.order();
        let mut taken = Vec::new();
        while let Some(from) = aside.first() {
            assert!(aside.take(from + 1, |_| ()).is_none(), "those of lower ranks are first");
            taken.extend(aside.take(from, |frame| (from, frame.header.word)));
        }
        assert_eq!(taken, [(0, 3), (1, 1), (1, 4), (4, 0), (4, 2)]);
    }
}
