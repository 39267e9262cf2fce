//! [`Queue`]: the frames of one port between this rank and another rank, in both directions.
//!
//! A frame is sent when there is enough credit. Credit is the total number of bytes that the
//! receiver has granted. It always exceeds the total number of released bytes by at least a
//! constant. When the receiver polls the port and the sender has reported how much it wants to
//! send, the receiver grants more. So a waiting receiver gets all frames that it waits for, and a
//! receiver that does not poll holds at most that constant for each port. Each port has its own
//! credit, so its frames never wait for those of another port.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::stream::{Body, CLOSED, HEAD, ItemWriter, ReceiveBuffer};
use crate::{Header, Port, UNREPORTED, UNREPORTED_BYTES};

/// How many bytes of frames of [`Port::FENCE`] may be in flight to a receiver that does not poll,
/// for each pair of ranks.
pub(super) const CREDIT: u64 = 16 << 20;

/// How many bytes of frames of each other port may be in flight to a receiver that does not poll,
/// for each pair of ranks.
pub(super) const PORT_CREDIT: u64 = 4 << 20;

/// Returns the credit that a frame costs, in bytes.
pub(super) fn cost(len: usize) -> u64 {
    (len + HEAD) as u64
}

/// The frames of one port, between this rank and another rank.
pub(super) struct Queue {
    pub(super) inbound: InboundQueue,
    pub(super) outbound: OutboundQueue,
    /// Whether the other rank was the first to use the port.
    pub(super) opened_there: bool,
}

/// When a release is to be reported to the sender of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// With the next write, because at least [`UNREPORTED`] released frames are unreported, or at
    /// least [`UNREPORTED_BYTES`] bytes of such frames.
    Now,
    /// After a short wait, because this rank may send something else first.
    Soon,
    /// With the next item that is sent.
    Later,
}

/// The frames that have arrived.
pub(super) struct InboundQueue {
    pub(super) frames: VecDeque<(Header, Body)>,
    /// The pre-posted receive buffers, each with the number of its frame and the header that the
    /// frame must have.
    preposted: VecDeque<(u64, Header, ReceiveBuffer)>,
    /// The number of frames that have arrived.
    pub(super) arrived: u64,
    /// The granted bytes always exceed the released bytes by at least this number.
    credit: u64,
    /// How many bytes of frames this rank has released.
    taken: u64,
    /// How many bytes of frames the sender may send.
    granted: u64,
    /// How many bytes the sender has reported that it wants to send.
    wanted: u64,
    /// The number of frames that this rank has released.
    releases: u64,
    /// The number of releases that were reported to the sender, and their bytes.
    reported: u64,
    reported_bytes: u64,
}

/// The frames that this rank posts.
pub(super) struct OutboundQueue {
    /// The number of frames that were posted.
    pub(super) posted: u64,
    /// How many bytes of frames were posted.
    bytes: u64,
    /// How many bytes of frames were sent.
    sent: u64,
    /// How many bytes of frames may be sent.
    granted: u64,
    /// How many bytes this rank has reported that it wants to send.
    wanted: u64,
    /// The frames that wait for credit.
    waiting: VecDeque<Vec<u8>>,
    /// The number of frames that the receiver has released.
    released: u64,
    /// Whether the receiver has closed the port. If so, all frames count as released.
    closed: bool,
}

impl Queue {
    /// Creates the queue of a port between two ranks that have not used it yet.
    pub(super) fn new(credit: u64) -> Self {
        Self {
            inbound: InboundQueue {
                frames: VecDeque::new(),
                preposted: VecDeque::new(),
                arrived: 0,
                credit,
                taken: 0,
                granted: credit,
                wanted: 0,
                releases: 0,
                reported: 0,
                reported_bytes: 0,
            },
            outbound: OutboundQueue {
                posted: 0,
                bytes: 0,
                sent: 0,
                granted: credit,
                wanted: 0,
                waiting: VecDeque::new(),
                released: 0,
                closed: false,
            },
            opened_there: false,
        }
    }
}

impl InboundQueue {
    /// Releases the oldest frame. Returns its header and body, and when to report the release to
    /// the sender of the frame. `silent` is set if this rank has sent nothing to that sender since
    /// the last release.
    pub(super) fn release(&mut self, silent: &mut bool) -> Option<(Header, Body, Due)> {
        let (header, body) = self.frames.pop_front()?;
        self.releases += 1;
        self.drop_preposted(self.releases);
        self.taken += cost(body.len());
        let silent = std::mem::replace(silent, true);
        let many = self.releases - self.reported >= UNREPORTED;
        let due = if many || self.taken - self.reported_bytes >= UNREPORTED_BYTES {
            Due::Now
        } else if silent {
            Due::Soon
        } else {
            Due::Later
        };
        Some((header, body, due))
    }

    /// Pre-posts a buffer for the payload of the frame that follows `ahead` unreleased frames, if
    /// that frame has this header. If the frame is the next one to arrive, a part of its payload
    /// may have arrived already, so this calls `adopt`. `adopt` takes the buffer or returns it.
    pub(super) fn prepost(
        &mut self,
        ahead: u64,
        header: Header,
        buffer: ReceiveBuffer,
        adopt: impl FnOnce(ReceiveBuffer) -> Option<ReceiveBuffer>,
    ) {
        let frame = self.releases + ahead;
        let buffer = match frame.cmp(&self.arrived) {
            Ordering::Less => None,
            Ordering::Equal => adopt(buffer),
            Ordering::Greater => Some(buffer),
        };
        if let Some(buffer) = buffer {
            let at = self.preposted.partition_point(|(other, ..)| *other < frame);
            self.preposted.insert(at, (frame, header, buffer));
        }
    }

    /// Takes the buffer that is pre-posted for the frame that is arriving now.
    pub(super) fn buffer(&mut self, header: Header, len: usize) -> Option<ReceiveBuffer> {
        self.drop_preposted(self.arrived);
        let (frame, expected, buffer) = self.preposted.front()?;
        let fits = *frame == self.arrived && *expected == header && buffer.len() == len;
        if fits { self.preposted.pop_front().map(|(.., buffer)| buffer) } else { None }
    }

    #[inline]
    fn drop_preposted(&mut self, before: u64) {
        while self.preposted.front().is_some_and(|(frame, ..)| *frame < before) {
            self.preposted.pop_front();
        }
    }

    /// Cancels all pre-posted buffers. Payloads that have arrived in a pre-posted buffer are moved
    /// to other memory.
    pub(super) fn cancel(&mut self) {
        self.preposted.clear();
        self.frames.iter_mut().for_each(|(_, body)| body.move_out());
    }

    /// Drops all frames that have arrived, and all pre-posted buffers.
    pub(super) fn clear(&mut self) {
        self.preposted.clear();
        self.frames.clear();
    }

    /// Records that the sender wants to send this number of bytes.
    pub(super) fn want(&mut self, bytes: u64) {
        self.wanted = self.wanted.max(bytes);
    }

    /// Returns whether there are releases that the sender does not know of.
    #[inline]
    pub(super) fn has_pending_release(&self) -> bool {
        self.reported != self.releases
    }

    /// Writes how many frames were released, if that was not reported yet.
    #[inline]
    pub(super) fn report_releases(&mut self, number: u64, port: Port, out: &mut Vec<u8>) {
        if self.has_pending_release() {
            (self.reported, self.reported_bytes) = (self.releases, self.taken);
            self.granted = self.granted.max(self.taken + self.credit);
            ItemWriter(out, number).release(port, self.releases, self.granted);
        }
    }

    /// Called when a poll finds nothing from the sender. If the sender has reported frames that
    /// lack credit, grants the credit. Returns whether it has granted credit.
    #[inline]
    pub(super) fn grant_wanted(&mut self, number: u64, port: Port, out: &mut Vec<u8>) -> bool {
        if self.wanted <= self.granted {
            return false;
        }
        self.granted = self.wanted;
        (self.reported, self.reported_bytes) = (self.releases, self.taken);
        ItemWriter(out, number).release(port, self.releases, self.granted);
        true
    }
}

impl OutboundQueue {
    /// Counts a posted frame. Returns whether it may be sent now.
    #[inline]
    pub(super) fn post(&mut self, len: usize) -> bool {
        self.posted += 1;
        self.bytes += cost(len);
        let fits = self.waiting.is_empty() && self.bytes <= self.granted;
        if fits {
            self.sent = self.bytes;
        }
        fits
    }

    /// Takes in how many frames the receiver has released, and how many bytes may be sent.
    ///
    /// # Errors
    /// Fails if no correct rank would report this.
    pub(super) fn release(&mut self, frames: u64, granted: u64) -> Result<(), &'static str> {
        if frames == CLOSED {
            self.closed = true;
        } else if frames > self.posted || frames < self.released {
            return Err("it released frames that it did not receive");
        } else {
            self.released = frames;
        }
        self.granted = self.granted.max(granted);
        Ok(())
    }

    /// Returns the number of frames that were released.
    #[inline]
    pub(super) fn released(&self) -> u64 {
        if self.closed { self.posted } else { self.released }
    }

    /// Counts as released the oldest unreleased frame that this rank has posted to itself.
    pub(super) fn release_own(&mut self) {
        self.released += 1;
    }

    /// Keeps a frame that may not be sent yet.
    pub(super) fn keep(&mut self, frame: Vec<u8>) {
        self.waiting.push_back(frame);
    }

    /// Returns whether frames wait for credit.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the frames that may be sent, or all frames if `all` is set. If frames are left,
    /// reports how many bytes this rank wants to send, unless it has already asked for more than
    /// was granted. If the memory of a written frame is larger than `spare`, that memory replaces
    /// `spare`.
    pub(super) fn send_waiting(
        &mut self,
        number: u64,
        port: Port,
        out: &mut Vec<u8>,
        spare: &mut Vec<u8>,
        all: bool,
    ) {
        while let Some(mut frame) = self.waiting.pop_front() {
            let sent = self.sent + frame.len() as u64;
            if !all && sent > self.granted {
                self.waiting.push_front(frame);
                break;
            }
            self.sent = sent;
            if out.is_empty() {
                std::mem::swap(out, &mut frame);
            } else {
                out.extend_from_slice(&frame);
            }
            if frame.capacity() > spare.capacity() {
                *spare = frame;
            }
        }
        if let Some(frame) = self.waiting.front()
            && self.wanted <= self.granted
        {
            let least = self.sent + frame.len() as u64;
            self.wanted = self.bytes.min(self.granted.saturating_add(CREDIT)).max(least);
            ItemWriter(out, number).want(port, self.wanted);
        }
    }

    /// Drops all waiting frames, because the receiver will read nothing more.
    pub(super) fn forget(&mut self) {
        self.waiting = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of frames of `len` bytes after which a release is [`Due::Now`]. The
    /// receiver releases each frame when the frame arrives.
    fn released_until_reported(len: usize) -> u64 {
        let (mut queue, payload) = (Queue::new(CREDIT), vec![1; len]);
        for frames in 1..=2 * UNREPORTED {
            queue.inbound.frames.push_back((Header::default(), Body::of(&payload, Body::default())));
            let due = queue.inbound.release(&mut false).map(|(.., due)| due);
            if due == Some(Due::Now) {
                queue.inbound.report_releases(0, Port::FENCE, &mut Vec::new());
                assert_eq!(queue.inbound.reported, frames);
                return frames;
            }
        }
        panic!("frames of {len} bytes are never reported");
    }

    #[test]
    fn releases_are_reported_by_number_and_by_bytes() {
        assert_eq!(released_until_reported(8), UNREPORTED);
        assert_eq!(released_until_reported((1 << 20) - HEAD), 2);
        assert_eq!(released_until_reported(1 << 20), 2);
        assert_eq!(released_until_reported(2 << 20), 1);
        assert_eq!(released_until_reported(CREDIT as usize), 1);
    }

    #[test]
    fn a_frame_that_waited_is_sent_from_the_memory_that_it_waited_in_which_is_kept() {
        let mut outbound = Queue::new(CREDIT).outbound;
        let len = CREDIT as usize - HEAD;
        assert!(outbound.post(len), "there is credit for one");
        assert!(!outbound.post(len));
        let frame = vec![7; cost(len) as usize];
        let memory = frame.as_ptr();
        outbound.keep(frame);
        let (mut out, mut spare) = (Vec::with_capacity(100), Vec::new());
        outbound.granted = 2 * CREDIT;
        outbound.send_waiting(0, Port::FENCE, &mut out, &mut spare, false);
        assert_eq!((out.as_ptr(), out.len() as u64), (memory, cost(len)));
        assert_eq!(spare.capacity(), 100);
        assert!(!outbound.has_waiting());
    }
}
