//! [`Channel`]: one world as one rank knows it: what has arrived from each member, and what goes to it.
//!
//! A frame is sent when there is credit: a number of bytes, granted by the receiver, counted from the beginning. A
//! grant is always at least `CREDIT` beyond what was released, and the receiver grants more when it polls for something
//! of a sender that has reported how much it has: a receiver that waits takes all that it waits for, and one that does
//! not holds at most `CREDIT` bytes a pair. Everything else is sent at once, overtaking frames that wait; an item that
//! must not be seen before them carries their number.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::stream::{Body, HEAD, Item, ItemWriter, ReceiveBuffer};
use crate::{Cause, Header, Leave, Loss, Lost, Notification, UNREPORTED, UNREPORTED_BYTES};

/// Bytes of frames that may be in flight to a receiver that does not poll, for each pair of ranks.
pub(super) const CREDIT: u64 = 16 << 20;

/// Returns the credit that a frame costs, in bytes.
pub(super) fn cost(len: usize) -> u64 {
    (len + HEAD) as u64
}

/// One world, as one rank knows it.
pub(super) struct Channel {
    /// Its members, as ranks of the job; empty before this rank joins it.
    pub(super) members: Vec<u32>,
    /// By rank of the job.
    pub(super) pairs: Vec<Pair>,
    /// Why it ended.
    pub(super) ended: Option<Cause>,
    /// How this rank left it.
    pub(super) left: Option<Leave>,
    /// This rank's end of it was dropped: whatever still arrives is ignored.
    pub(super) closed: bool,
    /// The superstep that this rank entered last.
    pub(super) word: u64,
    pub(super) exchange: u64,
}

/// What this rank knows of one other rank.
#[derive(Default)]
pub(super) struct Pair {
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
}

/// When the sender of a frame should learn that it was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// With the next write: there are [`UNREPORTED`] of them, or as many bytes as [`UNREPORTED_BYTES`](crate::UNREPORTED_BYTES).
    Now,
    /// When this rank has waited a little: it may send something else first.
    Soon,
    /// With the next item that is sent.
    Later,
}

/// What has arrived from one rank.
#[derive(Default)]
pub(super) struct Inbound {
    pub(super) frames: VecDeque<(Header, Body)>,
    /// Pre-posted receive buffers: the number of the frame, and the header that it must have.
    preposted: VecDeque<(u64, Header, ReceiveBuffer)>,
    /// The number of frames that have arrived.
    pub(super) arrived: u64,
    /// The number of frames that it has posted, as far as it reported.
    posted: u64,
    /// The last two notifications, by exchange, and how many frames precede each.
    notifications: [(Notification, u64); 2],
    written: u64,
    /// The exchange whose notification was read last.
    pub(super) read: u64,
    pub(super) settled: u64,
    /// The superstep that it entered last.
    pub(super) announced: u64,
    /// How it left, and after how many frames.
    left: Option<(Leave, u64)>,
    /// Bytes of its frames that this rank has released.
    taken: u64,
    /// Bytes of frames that it may send.
    granted: u64,
    /// Bytes that it has reported it would send.
    wanted: u64,
    /// The number of its frames that this rank has released.
    releases: u64,
    /// The number of releases that it knows of, and their bytes.
    reported: u64,
    reported_bytes: u64,
}

/// What goes to one rank.
#[derive(Default)]
pub(super) struct Outbound {
    /// The number of frames that were posted.
    pub(super) posted: u64,
    /// Bytes of frames that were posted.
    bytes: u64,
    /// Bytes of frames that were sent.
    sent: u64,
    /// Bytes of frames that may be sent.
    granted: u64,
    /// Bytes of frames that the receiver knows are to be sent.
    wanted: u64,
    /// Frames without credit.
    waiting: VecDeque<Vec<u8>>,
    /// The number of frames that it has released.
    pub(super) released: u64,
    /// The word of the superstep that was last reported to it.
    reported: u64,
    /// Nothing was sent to it since releases were last reported.
    silent: bool,
}

impl Channel {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            members: Vec::new(),
            pairs: (0..ranks).map(|_| Pair::default()).collect(),
            ended: None,
            left: None,
            closed: false,
            word: 0,
            exchange: 0,
        }
    }

    /// Takes in an item that arrived from `from`.
    ///
    /// # Errors
    /// No rank would send the item now, for this reason.
    pub(super) fn take(&mut self, from: usize, item: Item) -> Result<(), &'static str> {
        let Pair { inbound, outbound } = &mut self.pairs[from];
        match item {
            Item::Frame(header, body) => {
                inbound.arrived += 1;
                if self.closed {
                    return Ok(());
                }
                inbound.frames.push_back((header, body));
            }
            Item::Notification(notification, frames) => {
                inbound.written += 1;
                inbound.posted = inbound.posted.max(frames);
                inbound.notifications[(inbound.written % 2) as usize] = (notification, frames);
                if inbound.written > inbound.read + 2 && !self.closed {
                    return Err(
                        "it sent a notification too early: it may be at most two exchanges ahead of the last one read",
                    );
                }
            }
            Item::Settle(exchange) => inbound.settled = exchange,
            Item::Release { frames, granted } => {
                if frames > outbound.posted || frames < outbound.released {
                    return Err("it released frames that it did not receive");
                }
                outbound.released = frames;
                outbound.granted = outbound.granted.max(granted);
            }
            Item::Want(bytes) => inbound.wanted = inbound.wanted.max(bytes),
            Item::Announce { word, frames } => {
                inbound.announced = word;
                inbound.posted = inbound.posted.max(frames);
            }
            Item::Left { how, frames } => {
                inbound.left.get_or_insert((how, frames));
                outbound.waiting.clear();
            }
            Item::End { rank, what } => {
                if rank as usize >= self.pairs.len() {
                    return Err("it ended a world because of a rank that does not exist");
                }
                self.ended.get_or_insert(Cause { rank: rank as usize, what });
            }
            // These belong to no world.
            Item::Beat | Item::Goodbye | Item::Farewell | Item::Rest => {}
            Item::Ask | Item::Waits { .. } | Item::Probe { .. } | Item::Agree(_) => {}
        }
        Ok(())
    }

    /// Returns the notification of `from` of the exchange that this rank published last, if it and all frames before it
    /// have arrived.
    #[inline]
    pub(super) fn notification(&self, from: usize) -> Option<&Notification> {
        let inbound = &self.pairs[from].inbound;
        let (notification, frames) = &inbound.notifications[(self.exchange % 2) as usize];
        let come = self.exchange != 0 && inbound.written >= self.exchange && inbound.arrived >= *frames;
        come.then_some(notification)
    }

    /// Returns why nothing more can arrive from `from`, as far as the world's members have reported.
    pub(super) fn gone(&self, from: usize) -> Option<Loss> {
        let (how, frames) = self.pairs[from].inbound.left.as_ref()?;
        (self.pairs[from].inbound.arrived >= *frames).then(|| Loss::Left(how.clone()))
    }

    /// Returns how `from` left, if it has reported so.
    pub(super) fn leaving(&self, from: usize) -> Option<Loss> {
        self.pairs[from].inbound.left.as_ref().map(|(how, _)| Loss::Left(how.clone()))
    }

    /// Returns whether `from` has reported that it left.
    pub(super) fn has_left(&self, from: usize) -> bool {
        self.pairs[from].inbound.left.is_some()
    }

    /// Returns why the world is over for this rank, `rank` of the job, if it is.
    pub(super) fn mine(&self, rank: usize) -> Option<Lost> {
        if let Some(Cause { rank, what }) = &self.ended {
            return Some(Lost { rank: *rank, how: Loss::Ended(what.clone()) });
        }
        self.left.clone().map(|how| Lost { rank, how: Loss::Left(how) })
    }

    /// Returns whether all frames that `from` posted, as far as it reported, have arrived and were released.
    pub(super) fn drained(&self, from: usize) -> bool {
        let inbound = &self.pairs[from].inbound;
        inbound.frames.is_empty() && inbound.arrived >= inbound.posted
    }

    /// Writes what piggybacks on the next item to `to`: releases and the superstep.
    #[inline]
    pub(super) fn piggyback(&mut self, number: u64, to: usize, out: &mut Vec<u8>) {
        let Pair { inbound, outbound } = &mut self.pairs[to];
        inbound.report_releases(number, out);
        outbound.silent = false;
        if outbound.reported != self.word {
            outbound.reported = self.word;
            ItemWriter(out, number).announce(self.word, outbound.posted);
        }
    }
}

impl Inbound {
    /// Releases the oldest frame: returns its body, and when the sender should learn of it.
    pub(super) fn release(&mut self, outbound: &mut Outbound) -> Option<(Body, Due)> {
        let (_, body) = self.frames.pop_front()?;
        self.releases += 1;
        self.drop_preposted(self.releases);
        self.taken += cost(body.len());
        let silent = std::mem::replace(&mut outbound.silent, true);
        let many = self.releases - self.reported >= UNREPORTED;
        let due = if many || self.taken - self.reported_bytes >= UNREPORTED_BYTES {
            Due::Now
        } else if silent {
            Due::Soon
        } else {
            Due::Later
        };
        Some((body, due))
    }

    /// Pre-posts a buffer for the payload of the frame that follows `ahead` unreleased ones, if it has this header. The
    /// next frame to be complete may be half received: then `adopt` takes the buffer, or returns it.
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

    /// Takes the buffer that is pre-posted for the frame that arrives now.
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

    /// Cancels all pre-posted buffers: a payload that has arrived in one is moved out.
    pub(super) fn cancel(&mut self) {
        self.preposted.clear();
        self.frames.iter_mut().for_each(|(_, body)| body.move_out());
    }

    fn limit(&self) -> u64 {
        self.granted.max(CREDIT)
    }

    /// Returns whether there are releases that it does not know of.
    pub(super) fn has_pending_release(&self) -> bool {
        self.reported != self.releases
    }

    /// Writes how many frames were released, if the sender does not know.
    #[inline]
    pub(super) fn report_releases(&mut self, number: u64, out: &mut Vec<u8>) {
        if self.has_pending_release() {
            (self.reported, self.reported_bytes) = (self.releases, self.taken);
            self.granted = self.limit().max(self.taken + CREDIT);
            ItemWriter(out, number).release(self.releases, self.granted);
        }
    }

    /// Called when a poll found nothing from the sender: if it has reported frames for which it has no credit, grants
    /// it. Returns whether it did.
    #[inline]
    pub(super) fn grant_wanted(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        if self.wanted <= self.limit() {
            return false;
        }
        self.granted = self.wanted;
        (self.reported, self.reported_bytes) = (self.releases, self.taken);
        ItemWriter(out, number).release(self.releases, self.granted);
        true
    }
}

impl Outbound {
    /// Counts a posted frame; returns whether it may be sent now.
    #[inline]
    pub(super) fn post(&mut self, len: usize) -> bool {
        self.posted += 1;
        self.bytes += cost(len);
        let fits = self.waiting.is_empty() && self.bytes <= self.limit();
        if fits {
            self.sent = self.bytes;
        }
        fits
    }

    fn limit(&self) -> u64 {
        self.granted.max(CREDIT)
    }

    /// Keeps a frame that may not be sent yet.
    pub(super) fn keep(&mut self, frame: Vec<u8>) {
        self.waiting.push_back(frame);
    }

    /// Returns whether frames wait for credit.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the frames that may be sent, or all; and how much more there is. Memory of a frame that is not needed any
    /// more goes to `spare`, if it is longer.
    pub(super) fn send_waiting(&mut self, number: u64, out: &mut Vec<u8>, spare: &mut Vec<u8>, all: bool) {
        while let Some(mut frame) = self.waiting.pop_front() {
            let sent = self.sent + frame.len() as u64;
            if !all && sent > self.limit() {
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
            && self.wanted <= self.limit()
        {
            let least = self.sent + frame.len() as u64;
            self.wanted = self.bytes.min(self.limit().saturating_add(CREDIT)).max(least);
            ItemWriter(out, number).want(self.wanted);
        }
    }

    /// Drops all waiting frames: the receiver will read nothing more.
    pub(super) fn forget(&mut self) {
        self.waiting = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many frames of `len` bytes the receiver releases, each as it arrives, before it reports them by itself.
    fn released_until_reported(len: usize) -> u64 {
        let (mut channel, payload) = (Channel::new(2), vec![1; len]);
        for frames in 1..=2 * UNREPORTED {
            let body = Body::of(&payload, Body::default());
            assert_eq!(channel.take(1, Item::Frame(Header::default(), body)), Ok(()));
            let Pair { inbound, outbound } = &mut channel.pairs[1];
            let due = inbound.release(outbound).map(|(_, due)| due);
            if due == Some(Due::Now) {
                inbound.report_releases(0, &mut Vec::new());
                assert_eq!(inbound.reported, frames);
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
        let mut outbound = Outbound::default();
        let len = CREDIT as usize - HEAD;
        assert!(outbound.post(len), "there is credit for one");
        assert!(!outbound.post(len));
        let frame = vec![7; cost(len) as usize];
        let memory = frame.as_ptr();
        outbound.keep(frame);
        let (mut out, mut spare) = (Vec::with_capacity(100), Vec::new());
        outbound.granted = 2 * CREDIT;
        outbound.send_waiting(0, &mut out, &mut spare, false);
        assert_eq!((out.as_ptr(), out.len() as u64), (memory, cost(len)));
        assert_eq!(spare.capacity(), 100);
        assert!(!outbound.has_waiting());
    }
}
