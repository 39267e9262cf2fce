//! Injected faults of one item that one simulated rank sends to another.
//!
//! A *point* is an item that a rank sends to another rank: a notification, a settlement, a frame or
//! a release. Points are counted for each sender from 0 in the order of sending. A test that
//! injects a fault at each point in turn covers every step at which a protocol can be interrupted.
//!
//! If a world has a fault, every item is sealed with a head. The head contains the length of the
//! item, its number on the link, a checksum of the item, and a checksum of the head. A receiver has
//! these guarantees:
//!
//! - It never takes an item out of order, or an item with one byte changed. Instead the world ends,
//!   with an error that names the sender.
//! - It detects a missing item by the number of the next item. If no item arrives, it detects a
//!   missing item or a silent link after [`PATIENCE`] polls that find nothing, as heartbeats would.
//!   In each case the world ends, with an error that names the sender.
//! - It waits for a late item.

use std::collections::VecDeque;

use crate::sim::random::Random;
use crate::sync::{Arc, AtomicBool, Ordering};

/// A receiver gives up a silent link, or a link that has lost an item, after this number of
/// fruitless polls.
const PATIENCE: u32 = 64;

/// The largest number of polls for which a late link delivers nothing.
const LATE: u64 = 2 * PATIENCE as u64;

/// The head of an item. The first word has the number of the item in its high half, and the length
/// of the item in its low half. The second word is the checksum of the item, and the third is the
/// checksum of the first two words.
type Head = [u64; 3];
const HEAD: usize = size_of::<Head>();

/// What happens to an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The item is lost, and the next items arrive.
    Drop,
    /// The item arrives twice.
    Duplicate,
    /// A bit of the item is flipped.
    Corrupt,
    /// The item and all following items are late by many polls.
    Delay,
    /// The item and all following items from its sender to its receiver are lost. Items in the
    /// other direction still arrive.
    HalfOpen,
    /// The sender of the item is cut off. A part of its unsent bytes still arrives.
    Crash,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 6] = {
        use FaultKind::{Corrupt, Crash, Delay, Drop, Duplicate, HalfOpen};
        [Drop, Duplicate, Corrupt, Delay, HalfOpen, Crash]
    };
}

/// One fault at one point. Clones share the record of whether the fault has happened.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The sender.
    pub rank: usize,
    /// The number of the item, among all items that this rank sends to other ranks.
    pub point: u64,
    /// What happens to the item.
    pub kind: FaultKind,
    happened: Arc<AtomicBool>,
}

impl Fault {
    /// Creates a fault of item `point`, counted among the items that `rank` sends to other ranks.
    pub fn new(rank: usize, point: u64, kind: FaultKind) -> Self {
        Self { rank, point, kind, happened: Arc::new(AtomicBool::new(false)) }
    }

    /// Returns whether the point was reached.
    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Returns the kind of the fault if this item is the faulty one.
    pub(crate) fn at(&self, rank: usize, point: u64) -> Option<FaultKind> {
        let here = (self.rank, self.point) == (rank, point);
        if here {
            self.happened.store(true, Ordering::Relaxed);
        }
        here.then_some(self.kind)
    }
}

/// Returns a checksum. A change of only one byte always changes the checksum, because each step is
/// a bijection of the previous result.
fn check(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The sender's end of a link whose items are sealed.
#[derive(Default)]
pub(crate) struct Outlet {
    /// The number of items sent, including lost ones.
    pub(crate) sent: u64,
    /// Whether all further items are lost.
    pub(crate) mute: bool,
    /// The number of polls for which the link delivers nothing.
    pub(crate) hold: u32,
    /// Whether one of these fields has changed since they were copied to the link.
    pub(crate) changed: bool,
}

impl Outlet {
    /// Sends an item, applying the fault to it.
    pub(crate) fn write(
        &mut self,
        item: &[u8],
        kind: Option<FaultKind>,
        random: &mut Random,
        out: &mut VecDeque<u8>,
    ) {
        let mut head: Head = [self.sent << 32 | item.len() as u64, check(item), 0];
        head[2] = check(bytemuck::bytes_of(&[head[0], head[1]]));
        let mut sealed = [bytemuck::bytes_of(&head), item].concat();
        self.sent += 1;
        self.changed = true;
        let mut times = 1;
        match kind {
            Some(FaultKind::Drop) => times = 0,
            Some(FaultKind::Duplicate) => times = 2,
            Some(FaultKind::Corrupt) => {
                let bit = random.below(8 * sealed.len() as u64) as usize;
                sealed[bit / 8] ^= 1 << (bit % 8);
            }
            Some(FaultKind::Delay) => self.hold = 1 + random.below(LATE) as u32,
            Some(FaultKind::HalfOpen) => self.mute = true,
            Some(FaultKind::Crash) | None => {}
        }
        for _ in 0..if self.mute { 0 } else { times } {
            out.extend(&sealed);
        }
    }
}

/// The receiver's end of a link whose items are sealed.
#[derive(Default)]
pub(crate) struct Inlet {
    received: VecDeque<u8>,
    /// The number of items taken.
    pub(crate) opened: u64,
    /// The number of consecutive polls in which something was missing.
    fruitless: u32,
}

impl Inlet {
    /// Appends a piece that has arrived.
    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.received.extend(piece);
    }

    /// Returns the next item, or `None` until all of it has arrived.
    ///
    /// # Errors
    /// Fails if the item is corrupted, or is not the next item of the link.
    pub(crate) fn open(&mut self) -> Result<Option<Vec<u8>>, String> {
        let received = self.received.make_contiguous();
        let Some((head, rest)) = received.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [place, of_item, of_head]: Head = bytemuck::pod_read_unaligned(head);
        let (number, len) = ((place >> 32) as u32, place as u32 as usize);
        if check(&head[..16]) != of_head {
            return Err("it sent an item whose head was corrupted".into());
        }
        if number != self.opened as u32 {
            return Err(format!("it sent item {number} where item {} was due", self.opened));
        }
        let Some(item) = rest.get(..len) else { return Ok(None) };
        if check(item) != of_item {
            return Err(format!("it sent item {}, which was corrupted", self.opened));
        }
        let item = item.to_vec();
        self.received.drain(..HEAD + item.len());
        self.opened += 1;
        Ok(Some(item))
    }

    /// Counts a poll. Returns an error if something was missing for too many polls.
    pub(crate) fn polled(&mut self, missing: bool) -> Option<String> {
        self.fruitless = if missing { self.fruitless + 1 } else { 0 };
        let opened = self.opened;
        (self.fruitless > PATIENCE)
            .then(|| format!("nothing arrived from it in {PATIENCE} polls, and its item {opened} is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(inlet: &mut Inlet) -> Result<Vec<Vec<u8>>, String> {
        let mut items = Vec::new();
        while let Some(item) = inlet.open()? {
            items.push(item);
        }
        Ok(items)
    }

    #[test]
    fn no_item_with_a_flipped_bit_is_taken_and_every_flipped_bit_is_an_error() {
        let (first, second) = ([1, 2, 3, 4, 5], [9; 40]);
        let mut random = Random::new(1, 0);
        let mut sealed = VecDeque::new();
        let mut outlet = Outlet::default();
        outlet.write(&first, None, &mut random, &mut sealed);
        outlet.write(&second, None, &mut random, &mut sealed);
        let sealed: Vec<u8> = sealed.into();
        let mut inlet = Inlet::default();
        inlet.take(&sealed);
        assert_eq!(all(&mut inlet), Ok(vec![first.to_vec(), second.to_vec()]));
        for bit in 0..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (mut inlet, mut taken) = (Inlet::default(), Vec::new());
            let wrong = flipped.iter().find_map(|byte| {
                inlet.take(&[*byte]);
                match inlet.open() {
                    Ok(item) => {
                        taken.extend(item);
                        None
                    }
                    Err(wrong) => Some(wrong),
                }
            });
            assert!(wrong.is_some(), "bit {bit}");
            assert_eq!(taken.len(), usize::from(bit >= 8 * (HEAD + first.len())), "bit {bit}");
            assert!(taken.iter().all(|item| item[..] == first));
        }
    }

    #[test]
    fn a_missing_or_repeated_item_is_out_of_its_turn() {
        for kind in [FaultKind::Drop, FaultKind::Duplicate] {
            let (mut outlet, mut random, mut sealed) =
                (Outlet::default(), Random::new(1, 0), VecDeque::new());
            outlet.write(&[1], None, &mut random, &mut sealed);
            outlet.write(&[2], Some(kind), &mut random, &mut sealed);
            outlet.write(&[3], None, &mut random, &mut sealed);
            let mut inlet = Inlet::default();
            inlet.take(sealed.make_contiguous());
            assert_eq!(inlet.open(), Ok(Some(vec![1])));
            assert!(all(&mut inlet).is_err());
            assert_eq!(inlet.opened, if kind == FaultKind::Drop { 1 } else { 2 });
        }
    }
}
