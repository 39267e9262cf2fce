//! [`Rides`]: short frames of operations that travel in a census, in the item for their target.
//!
//! Messages of a census travel to the target in any case, through other ranks. Sending a frame by
//! itself costs more than copying a few bytes on that path. So short frames are piggybacked, up to
//! the length that the machine model gives ([`short`](fencepost_planner::census::short)). The
//! number of bytes from each rank is limited too, which bounds the bytes that a rank on a path
//! copies. Piggybacked frames are checked on arrival like any other frame. A frame is not
//! piggybacked if operations of its epoch were sent early to its target. Such a frame counts those
//! operations, and could arrive before them if it travelled through other ranks.

use bytemuck::{Pod, Zeroable};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Frame, Header};

/// The maximum number of bytes of all frames that a rank piggybacks on one census.
const ALL: usize = 4096;

/// The fields before each frame's own bytes: its word, its window and its length.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    word: u64,
    extra: u32,
    len: u32,
}

/// The frames of one rank that are piggybacked on a census.
#[derive(Default)]
pub(crate) struct Rides {
    bytes: Vec<u8>,
    /// The targets in ascending order, each with the end of the bytes of its frames.
    ends: Vec<(u32, usize)>,
}

impl Rides {
    /// Begins an exchange, without any frame.
    pub(crate) fn begin(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a frame for `to`, unless the frame is longer than `most` or all frames would be too
    /// long together. Returns whether the frame was added. Callers add frames in ascending order of
    /// `to`.
    pub(crate) fn add(&mut self, to: usize, header: Header, frame: &[u8], most: usize) -> bool {
        if frame.len() > most || self.bytes.len() + size_of::<Head>() + frame.len() > ALL {
            return false;
        }
        self.bytes.put(Head { word: header.word, extra: header.extra, len: frame.len() as u32 });
        self.bytes.extend_from_slice(frame);
        match self.ends.last_mut().filter(|(last, _)| *last as usize == to) {
            Some((_, end)) => *end = self.bytes.len(),
            None => self.ends.push((to as u32, self.bytes.len())),
        }
        true
    }

    /// Returns the encoded frames for `to`.
    pub(crate) fn to(&self, to: usize) -> &[u8] {
        let Ok(at) = self.ends.binary_search_by_key(&to, |(to, _)| *to as usize) else { return &[] };
        let begin = if at == 0 { 0 } else { self.ends[at - 1].1 };
        &self.bytes[begin..self.ends[at].1]
    }
}

/// Returns the frames in `came`, as frames of this kind. Their payloads stay in `came`. The last
/// item is `None` if no correct rank sends the rest of `came`.
pub(crate) fn frames(kind: u32, came: &[u8]) -> impl Iterator<Item = Option<Frame>> {
    let mut came = Reader(came);
    std::iter::from_fn(move || {
        if came.is_empty() {
            return None;
        }
        let frame = first(kind, &mut came);
        if frame.is_none() {
            came = Reader(&[]);
        }
        Some(frame)
    })
}

/// Takes the first frame off the front of `came`.
fn first(kind: u32, came: &mut Reader<'_>) -> Option<Frame> {
    let Head { word, extra, len } = came.take()?;
    let payload = came.bytes(len)?;
    Some(Frame { header: Header { word, kind, extra }, payload: payload.as_ptr(), len: payload.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 256;

    fn head(word: u64, extra: u32) -> Header {
        Header { word, kind: 3, extra }
    }

    #[test]
    fn frames_come_as_they_were_sent_to_whom_they_were_sent() {
        let mut rides = Rides::default();
        let sent = [(1, 7 << 32, 5, &b"one"[..]), (1, 7 << 32, 6, b""), (4, 7 << 32, 5, &[9; MOST])];
        for (to, word, window, bytes) in sent {
            assert!(rides.add(to, head(word, window), bytes, MOST));
        }
        for to in 0..6 {
            let came: Vec<_> = frames(3, rides.to(to)).map(|frame| frame.expect("all are whole")).collect();
            let expected: Vec<_> = sent.iter().filter(|sent| sent.0 == to).collect();
            assert_eq!(came.len(), expected.len(), "to {to}");
            for (frame, (_, word, window, bytes)) in came.iter().zip(expected) {
                // SAFETY: the payload is in the bytes of `rides`, which still exist.
                let payload = unsafe { frame.bytes() };
                assert_eq!((frame.header, payload), (head(*word, *window), *bytes));
            }
        }
        rides.begin();
        assert!(rides.to(1).is_empty());
    }

    #[test]
    fn long_frames_and_too_many_do_not_ride() {
        let mut rides = Rides::default();
        assert!(!rides.add(0, head(1, 0), &[0; MOST + 1], MOST));
        let ridden = (0..100).filter(|&to| rides.add(to, head(1, 0), &[0; MOST], MOST)).count();
        assert_eq!(ridden, ALL / (MOST + size_of::<Head>()));
    }

    #[test]
    fn what_was_cut_is_not_believed() {
        let mut rides = Rides::default();
        assert!(rides.add(2, head(1, 0), b"all of it", MOST));
        let whole = rides.to(2).to_vec();
        for cut in 1..whole.len() {
            assert!(frames(3, &whole[..cut]).any(|frame| frame.is_none()), "{cut} bytes");
        }
        let mut long = whole;
        long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(frames(3, &long).all(|frame| frame.is_none()));
    }
}
