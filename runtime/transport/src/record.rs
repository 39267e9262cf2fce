//! [`Ring`]: the last events of a rank. The posts and releases of frames may be among these events.

use crate::{Frame, Port, clock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of words of an event.
const WORDS: usize = 4;

/// The last events of one rank. Each event is four words, whose meaning the writer decides. Only
/// one thread writes at a time.
pub struct Ring {
    /// The number of events that were written.
    written: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Ring {
    /// Returns an empty ring for this number of events, rounded up to a power of two.
    pub fn new(events: usize) -> Self {
        let words = (0..events.next_power_of_two() * WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { written: AtomicU64::new(0), words }
    }

    /// Writes an event, in place of the oldest one if the ring is full.
    #[inline]
    pub fn write(&self, event: [u64; WORDS]) {
        // Relaxed: one thread writes, and reads what it has written.
        let written = self.written.load(Ordering::Relaxed);
        let mask = self.words.len() - 1;
        let first = written as usize * WORDS;
        for (word, value) in event.into_iter().enumerate() {
            self.words[(first + word) & mask].store(value, Ordering::Relaxed);
        }
        self.written.store(written + 1, Ordering::Relaxed);
    }

    /// Returns the number of events that were overwritten.
    pub fn lost(&self) -> u64 {
        self.written.load(Ordering::Relaxed).saturating_sub((self.words.len() / WORDS) as u64)
    }

    /// Returns the events in the ring, in the order in which they were written.
    pub fn events(&self) -> impl Iterator<Item = [u64; WORDS]> {
        let mask = self.words.len() - 1;
        (self.lost()..self.written.load(Ordering::Relaxed)).map(move |number| {
            let at = (number as usize * WORDS) & mask;
            std::array::from_fn(|word| self.words[at + word].load(Ordering::Relaxed))
        })
    }
}

/// How the frames of an end are recorded: the ring, the kinds of their events, and the number of
/// the world.
pub struct FrameLog {
    /// The ring to which the events are written.
    pub ring: Arc<Ring>,
    /// The kind of the event of a posted frame, and the kind of the event of a released frame.
    pub kinds: [u8; 2],
    /// The number of the world, in 24 bits. Each event contains it.
    pub world: u32,
    /// The number of each rank of this world among all ranks that were started.
    pub ranks: Vec<u32>,
}

/// Returns the second word of an event: its kind, and numbers of 24 and of 32 bits.
#[inline]
pub fn head(kind: u8, world: u32, number: u32) -> u64 {
    u64::from(kind) << 56 | u64::from(world & 0xff_ffff) << 32 | u64::from(number)
}

/// Records the frames of an end.
pub(crate) struct FrameRecorder {
    log: FrameLog,
    /// The number of frames posted to and released from each rank on [`Port::FENCE`].
    fences: Vec<[u32; 2]>,
    others: HashMap<(usize, Port), [u32; 2]>,
}

impl FrameRecorder {
    pub(crate) fn new(log: FrameLog) -> Self {
        Self { fences: vec![[0; 2]; log.ranks.len()], log, others: HashMap::new() }
    }

    #[cold]
    fn numbers_of(&mut self, peer: usize, port: Port) -> &mut [u32; 2] {
        self.others.entry((peer, port)).or_default()
    }

    /// Records that a frame was posted (`which` is 0) or released (`which` is 1) at this time.
    #[inline]
    pub(crate) fn record(&mut self, which: usize, at: u64, (peer, port): (usize, Port), bytes: usize) {
        let numbers = match port {
            Port::FENCE => &mut self.fences[peer],
            _ => self.numbers_of(peer, port),
        };
        let number = numbers[which];
        numbers[which] = number.wrapping_add(1);
        let FrameLog { ring, kinds, world, ranks } = &self.log;
        let head = head(kinds[which], *world, ranks[peer]);
        ring.write([at, head, u64::from(port.0) << 32 | u64::from(number), bytes as u64]);
    }
}

/// The counts of an end and, on request, the recorder of its frames.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) meter: crate::Meter,
    recorder: Option<Box<FrameRecorder>>,
}

impl Counts {
    pub(crate) fn record(&mut self, log: FrameLog) {
        self.recorder = Some(Box::new(FrameRecorder::new(log)));
    }

    /// Called before a frame is posted. Returns the current time, if frames are recorded.
    #[inline]
    pub(crate) fn before_post(&self) -> Option<u64> {
        self.recorder.as_ref().map(|_| clock::ticks_before())
    }

    /// Counts a frame that was posted.
    #[inline]
    pub(crate) fn posted(&mut self, before: Option<u64>, to: usize, port: Port, frame: &Frame) {
        self.meter.count(frame);
        if let (Some(recorder), Some(at)) = (&mut self.recorder, before) {
            recorder.record(0, at, (to, port), frame.len);
        }
    }

    /// Forgets a port that is closed.
    pub(crate) fn closed(&mut self, port: Port) {
        if let Some(recorder) = &mut self.recorder {
            recorder.others.retain(|(_, other), _| *other != port);
        }
    }

    /// Counts a frame that was released.
    #[inline]
    pub(crate) fn released(&mut self, from: usize, port: Port) {
        self.meter.releases += 1;
        // Some frames of these ports are posted by attendants, and these posts are not recorded.
        let is_answered = matches!(port, Port::SERVICE | Port::ELEMENTS);
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !is_answered) {
            recorder.record(1, clock::ticks(), (from, port), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_last_events_in_order() {
        let ring = Ring::new(4);
        assert_eq!((ring.events().count(), ring.lost()), (0, 0));
        for number in 0..6 {
            ring.write([number, 10 * number, 0, 0]);
        }
        let events: Vec<_> = ring.events().map(|[first, second, ..]| (first, second)).collect();
        assert_eq!((events, ring.lost()), (vec![(2, 20), (3, 30), (4, 40), (5, 50)], 2));
    }

    #[test]
    fn frames_are_numbered_by_rank_port_and_direction() {
        let ring = Arc::new(Ring::new(9));
        let log = FrameLog { ring: ring.clone(), kinds: [7, 8], world: 3, ranks: vec![4, 6] };
        let mut recorder = FrameRecorder::new(log);
        for (which, peer, port) in [
            (0, 1, Port::FENCE),
            (0, 1, Port(9)),
            (1, 1, Port::FENCE),
            (0, 1, Port::FENCE),
            (0, 0, Port::FENCE),
        ] {
            recorder.record(which, 5, (peer, port), 64);
        }
        let events: Vec<_> = ring.events().map(|[at, who, number, bytes]| (at, who, number, bytes)).collect();
        let of =
            |kind: u8, rank: u32, port: u64, number: u64| (5, head(kind, 3, rank), port << 32 | number, 64);
        assert_eq!(events, [of(7, 6, 0, 0), of(7, 6, 9, 0), of(8, 6, 0, 0), of(7, 6, 0, 1), of(7, 4, 0, 0)]);
    }
}
