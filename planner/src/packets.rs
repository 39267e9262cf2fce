//! [`Packets`]: which frames are sent together, and therefore cost less than frames that are sent
//! alone.
//!
//! Frames of the same two ranks that follow one another are written to a connection together, in a
//! packet. A long payload is written by itself. A frame that does not fit into the packet begins
//! another packet. A rank that takes many frames reports to their sender that it has released them,
//! and this report is a packet as well. In shared memory, frames that follow one another also cost
//! less. The difference is small, so the same rules serve both kinds of links.

use crate::ids::Delta;

/// The bytes that a frame adds to its payload in a packet.
const HEAD: u64 = 48;

/// The maximum number of bytes of the frames of one packet.
const PACKET: u64 = 32 << 10;

/// The longest payload that is not written by itself.
const PACKED: u64 = PACKET / 4;

/// After this many frames in a series, a receiver reports its releases.
const REPORTED: u32 = 8;

/// The frames that a rank sends in an epoch, or those that it awaits, in program order.
#[derive(Default)]
pub(crate) struct Packets {
    /// The peer of the last frame.
    peer: Option<Delta>,
    /// The number of consecutive frames of that peer so far.
    frames: u32,
    /// The bytes in the packet of the last frame.
    bytes: u64,
}

impl Packets {
    /// Adds a frame of `peer` with a payload of this many bytes. Returns whether it shares a packet
    /// with the frame before it.
    pub(crate) fn add(&mut self, peer: Delta, payload: u64) -> bool {
        let follows = self.peer.replace(peer) == Some(peer);
        (self.frames, self.bytes) = if follows { (self.frames + 1, self.bytes) } else { (1, 0) };
        let is_full = payload > PACKED || self.bytes + HEAD + payload > PACKET;
        self.bytes = if payload > PACKED {
            PACKET // no frame is added after a long payload
        } else if is_full {
            HEAD + payload
        } else {
            self.bytes + HEAD + payload
        };
        follows && !is_full && self.frames != REPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether each of these frames shares a packet with the one before it.
    fn shared(frames: impl IntoIterator<Item = (i64, u64)>) -> Vec<bool> {
        let mut packets = Packets::default();
        frames.into_iter().map(|(peer, payload)| packets.add(Delta(peer), payload)).collect()
    }

    #[test]
    fn short_frames_of_one_rank_share_packets() {
        assert_eq!(shared([(1, 8), (1, 8), (2, 8), (1, 8), (1, 8)]), [false, true, false, false, true]);
    }

    #[test]
    fn a_long_payload_and_a_full_packet_begin_another_one() {
        assert_eq!(shared([(1, 8), (1, PACKED), (1, PACKED + 1), (1, 8)]), [false, true, false, false]);
        let all = shared([(1, PACKED); 7]);
        assert_eq!(all, [false, true, true, false, true, true, false]);
    }

    #[test]
    fn the_report_of_many_frames_is_a_packet() {
        let all = shared([(1, 8); 30]);
        let alone: Vec<usize> = (0..30).filter(|&frame| !all[frame]).collect();
        assert_eq!(alone, [0, REPORTED as usize - 1]);
    }
}
