//! Simulated links: the bytes in flight from one rank to another, and the items that have arrived.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::ports::ClosedPorts;
use crate::sim::config::{Altered, SimConfig};
use crate::sim::fault::Inlet;
use crate::sim::random::Random;
use crate::stream::{Body, CLOSED, Decoder, Item};
use crate::{Header, Notification, Port};

/// The bytes that one rank has sent to another and that this other rank has not read yet.
#[derive(Default)]
pub(crate) struct SimLink {
    /// The bytes in flight, and the bytes that follow when there is room.
    pub bytes: VecDeque<u8>,
    /// If there is a latency: how many bytes at the front have arrived. `due` holds when the
    /// following bytes arrive, as pairs of a time and a number of bytes.
    arrived: usize,
    due: VecDeque<(Instant, usize)>,
    /// If there is a fault: the number of items that the sender has sent, including lost items.
    /// `mute` is set if all further items are lost. `hold` is the number of further polls that find
    /// nothing.
    pub sent: u64,
    pub mute: bool,
    pub hold: u32,
}

impl SimLink {
    /// Puts bytes on the link.
    pub(crate) fn append(&mut self, bytes: &mut VecDeque<u8>, latency: Duration) {
        if !latency.is_zero() && !bytes.is_empty() {
            self.due.push_back((Instant::now() + latency, bytes.len()));
        }
        self.bytes.append(bytes);
    }

    /// Returns how many bytes have arrived.
    pub(crate) fn arrived(&mut self, latency: Duration) -> usize {
        if latency.is_zero() {
            return self.bytes.len();
        }
        while let Some(&(due, bytes)) = self.due.front()
            && due <= Instant::now()
        {
            self.arrived += bytes;
            self.due.pop_front();
        }
        self.arrived.min(self.bytes.len())
    }

    /// Counts the first `n` bytes as taken off the link.
    pub(crate) fn taken(&mut self, n: usize) {
        self.arrived = self.arrived.saturating_sub(n);
    }

    /// Returns whether the item after the first `opened` items was lost.
    pub(crate) fn item_lost(&self, opened: u64) -> bool {
        self.bytes.is_empty() && (self.mute || self.sent > opened)
    }
}

/// The frames of one port between this rank and another one.
#[derive(Default)]
pub(crate) struct SimPort {
    /// Frames that have arrived and were not released.
    pub frames: VecDeque<(Header, Body)>,
    /// The number of frames that this rank has released.
    pub releases: u64,
    /// The number of frames that this rank has posted.
    pub posted: u64,
    /// The number of posted frames that the other rank has released, or [`CLOSED`] once it has
    /// closed the port.
    pub released: u64,
}

/// The receiving side of the link from one rank.
pub(crate) struct LinkReader {
    random: Random,
    /// The number of polls until the bytes on the link become visible, or `None` while there are no
    /// bytes.
    delay: Option<u32>,
    /// Whether this link was polled since the last `idle`.
    pub polled: bool,
    pub inlet: Inlet,
    pub decoder: Decoder,
    /// The frames in both directions, by port.
    pub ports: BTreeMap<Port, SimPort>,
    /// Closed ports on which a frame has arrived. The sender is to be notified that they are
    /// closed.
    pub refused: Vec<Port>,
    /// The last two notifications, by exchange.
    pub notifications: [Notification; 2],
    /// The number of notifications that have arrived, in total.
    pub arrived: u64,
    /// The exchange whose notification was read last.
    pub read: u64,
    pub settled: u64,
}

impl SimPort {
    /// Returns how many frames this rank has posted, and how many of them were released.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.posted, if self.released == CLOSED { self.posted } else { self.released })
    }
}

impl LinkReader {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random,
            delay: None,
            polled: false,
            inlet: Inlet::default(),
            decoder: Decoder::default(),
            ports: BTreeMap::new(),
            refused: Vec::new(),
            notifications: [Notification::default(); 2],
            arrived: 0,
            read: 0,
            settled: 0,
        }
    }

    /// Returns how many of `available` bytes are visible in this poll.
    pub(crate) fn visible(&mut self, available: usize, config: &SimConfig) -> usize {
        if available == 0 {
            return 0;
        }
        let random = &mut self.random;
        let delay = self.delay.get_or_insert_with(|| random.below(u64::from(config.max_delay) + 1) as u32);
        if *delay > 0 {
            *delay -= 1;
            return 0;
        }
        self.delay = None;
        if config.short_reads { available.min(1 << random.below(18)) } else { available }
    }

    /// Reads the first `n` bytes of the link.
    pub(crate) fn take(
        &mut self,
        bytes: &mut VecDeque<u8>,
        n: usize,
        config: &SimConfig,
        closed: &ClosedPorts,
    ) -> Result<(), String> {
        let (front, back) = bytes.as_slices();
        let (front, back) = (&front[..n.min(front.len())], &back[..n.saturating_sub(front.len())]);
        for piece in [front, back] {
            if config.fault.is_none() {
                self.feed(piece, config.altered(), closed)?;
                continue;
            }
            self.inlet.take(piece);
            while let Some(item) = self.inlet.open()? {
                self.feed(&item, config.altered(), closed)?;
            }
        }
        bytes.drain(..n);
        Ok(())
    }

    fn feed(&mut self, piece: &[u8], altered: Altered, closed: &ClosedPorts) -> Result<(), String> {
        let mut wrong = None;
        let Self { decoder, ports, refused, notifications, arrived, read, settled, .. } = self;
        let fed = decoder.feed(piece, |_, item| match item {
            Item::Frame(port, ..) if closed.contains(port) => refused.push(port),
            Item::Frame(port, header, body) => ports.entry(port).or_default().frames.push_back((header, body)),
            Item::Notification(notification, _) => {
                *arrived += 1;
                notifications[slot(*arrived, altered)] = notification;
                if *arrived > *read + 2 {
                    wrong = Some("it sent a notification too early: it may be at most two exchanges ahead of the last one read".to_owned());
                }
            }
            Item::Settle(exchange) => *settled = exchange,
            Item::Release { port, frames, .. } => {
                if let Some(port) = ports.get_mut(&port) {
                    port.released = frames;
                }
            }
            // Simulated ranks send no other items. They are threads, and communicate everything
            // else through the membership table.
            _ => wrong = Some("it sent an item that no simulated rank sends".to_owned()),
        });
        fed.map_err(|garbled| garbled.to_string())?;
        wrong.map_or(Ok(()), Err)
    }
}

/// Returns the index in `notifications` of the notification of an exchange.
pub(crate) fn slot(exchange: u64, altered: Altered) -> usize {
    if altered.one_notification_set { 0 } else { (exchange % 2) as usize }
}
