//! Simulated links: what is under way between two ranks, and what has come of it.

use std::collections::VecDeque;

use crate::sim::config::{Altered, SimConfig};
use crate::sim::fault::Inlet;
use crate::sim::random::Random;
use crate::stream::{Body, Decoder, Item};
use crate::{Header, Letter};

/// What one rank has sent another.
#[derive(Default)]
pub(crate) struct Link {
    /// What is under way, and what follows.
    pub bytes: VecDeque<u8>,
    /// Under a fault: items that the sender has said, lost ones too; whether it is heard no more; and looks for which
    /// nothing moves.
    pub said: u64,
    pub mute: bool,
    pub hold: u32,
}

impl Link {
    /// Whether what would come next, after so many items, was lost.
    pub(crate) fn owes(&self, opened: u64) -> bool {
        self.bytes.is_empty() && (self.mute || self.said > opened)
    }
}

/// What has come from one rank.
pub(crate) struct Inbound {
    random: Random,
    /// Looks until the bytes on the link show; none while there are no bytes.
    delay: Option<u32>,
    /// It was looked at since the last `idle`.
    pub looked: bool,
    pub inlet: Inlet,
    pub decoder: Decoder,
    pub frames: VecDeque<(Header, Body)>,
    /// The last two letters, by exchange.
    pub letters: [Letter; 2],
    /// How many letters have come, ever.
    pub arrived: u64,
    /// The exchange whose letter was read last.
    pub read: u64,
    pub settled: u64,
    /// How many of my frames it has released, ever.
    pub released: u64,
}

impl Inbound {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random,
            delay: None,
            looked: false,
            inlet: Inlet::default(),
            decoder: Decoder::default(),
            frames: VecDeque::new(),
            letters: [Letter::default(); 2],
            arrived: 0,
            read: 0,
            settled: 0,
            released: 0,
        }
    }

    /// How many of `available` bytes show at this look.
    pub(crate) fn piece(&mut self, available: usize, config: &SimConfig) -> usize {
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

    /// Read the first `n` bytes of the link.
    pub(crate) fn take(
        &mut self,
        bytes: &mut VecDeque<u8>,
        n: usize,
        config: &SimConfig,
    ) -> Result<(), String> {
        let (front, back) = bytes.as_slices();
        let (front, back) = (&front[..n.min(front.len())], &back[..n.saturating_sub(front.len())]);
        for piece in [front, back] {
            if config.fault.is_none() {
                self.feed(piece, config.altered())?;
                continue;
            }
            self.inlet.take(piece);
            while let Some(item) = self.inlet.open()? {
                self.feed(&item, config.altered())?;
            }
        }
        bytes.drain(..n);
        Ok(())
    }

    fn feed(&mut self, piece: &[u8], altered: Altered) -> Result<(), String> {
        let mut wrong = None;
        let Self { decoder, frames, letters, arrived, read, settled, released, .. } = self;
        let fed = decoder.feed(piece, |_, item| match item {
            Item::Frame(header, body) => frames.push_back((header, body)),
            Item::Letter(letter, _) => {
                *arrived += 1;
                letters[slot(*arrived, altered)] = letter;
                if *arrived > *read + 2 {
                    wrong = Some("it sent a letter too early".to_owned());
                }
            }
            Item::Settle(exchange) => *settled = exchange,
            Item::Release { frames, .. } => *released = frames,
            // Whatever else ranks have to say, threads say by their roll.
            _ => wrong = Some("it sent what no simulated rank sends".to_owned()),
        });
        fed.map_err(|garbled| garbled.to_string())?;
        wrong.map_or(Ok(()), Err)
    }
}

/// Where the letter of an exchange is kept.
pub(crate) fn slot(exchange: u64, altered: Altered) -> usize {
    if altered.one_letter { 0 } else { (exchange % 2) as usize }
}
