//! Faults on purpose: what becomes of one item that one simulated rank sends to another.
//!
//! A *point* is an item that a rank sends to another rank: a letter, a settled line, a frame, a release, counted for each
//! sender from 0 in the order in which it says them. So whoever goes through all points has met every step at which the
//! protocols can be torn.
//!
//! While there is a fault, every item travels under a seal: its length, its number on the link, and two checks, of
//! the item and of this head. What a receiver is promised, then:
//!
//! - no item out of its turn is taken, nor one of which any one byte is wrong: the world ends, naming the sender.
//! - an item that is missing, and a link gone silent, are noticed after [`PATIENCE`] looks that find nothing, as
//!   beats would tell it; or sooner, by the next item's number. The world ends, naming the sender.
//! - what is late is waited for.

use std::collections::VecDeque;

use crate::sim::random::Random;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Looks in vain after which a link that is silent, or owes an item, is given up.
const PATIENCE: u32 = 64;

/// Looks at most that a late link stands still.
const LATE: u64 = 2 * PATIENCE as u64;

/// Length and number (`u32` each), check of the item, check of all that (`u64` each), little endian.
const HEAD: usize = 24;

/// What happens to an item, or with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mishap {
    /// It is lost, and what follows comes.
    Drop,
    /// It comes twice.
    Duplicate,
    /// One bit of it is turned.
    Corrupt,
    /// It and all that follows it is late by many looks.
    Delay,
    /// It is lost, and all that would follow from its sender to its receiver. The other direction goes on.
    HalfOpen,
    /// Its sender is cut off: of what has not left yet, some still does.
    Crash,
}

impl Mishap {
    /// All of them.
    pub const ALL: [Mishap; 6] = {
        use Mishap::{Corrupt, Crash, Delay, Drop, Duplicate, HalfOpen};
        [Drop, Duplicate, Corrupt, Delay, HalfOpen, Crash]
    };
}

/// One mishap at one point. Copies of it are the same fault.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Who sends.
    pub rank: usize,
    /// The number of the item, among all that this rank sends to others.
    pub point: u64,
    /// What happens.
    pub mishap: Mishap,
    happened: Arc<AtomicBool>,
}

impl Fault {
    /// This happens when `rank` sends the item of number `point`.
    pub fn new(rank: usize, point: u64, mishap: Mishap) -> Self {
        Self { rank, point, mishap, happened: Arc::new(AtomicBool::new(false)) }
    }

    /// Whether the point was reached.
    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// What happens with this item.
    pub(crate) fn at(&self, rank: usize, point: u64) -> Option<Mishap> {
        let here = (self.rank, self.point) == (rank, point);
        if here {
            self.happened.store(true, Ordering::Relaxed);
        }
        here.then_some(self.mishap)
    }
}

/// Changes with every change that is confined to one byte: each step is a bijection of what the steps before gave.
fn check(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The sender's end of a link that seals.
#[derive(Default)]
pub(crate) struct Outlet {
    /// Items said, lost ones too.
    pub(crate) said: u64,
    /// All that follows is lost.
    pub(crate) mute: bool,
    /// Looks for which the link is to stand still.
    pub(crate) hold: u32,
    /// Something of this has changed that the link does not know.
    pub(crate) news: bool,
}

impl Outlet {
    /// Say an item, with what happens to it.
    pub(crate) fn say(
        &mut self,
        item: &[u8],
        mishap: Option<Mishap>,
        random: &mut Random,
        out: &mut VecDeque<u8>,
    ) {
        let mut sealed = [0; HEAD];
        sealed[..4].copy_from_slice(&(item.len() as u32).to_le_bytes());
        sealed[4..8].copy_from_slice(&(self.said as u32).to_le_bytes());
        sealed[8..16].copy_from_slice(&check(item).to_le_bytes());
        let of_head = check(&sealed[..16]);
        sealed[16..].copy_from_slice(&of_head.to_le_bytes());
        let mut sealed = [&sealed, item].concat();
        self.said += 1;
        self.news = true;
        let mut times = 1;
        match mishap {
            Some(Mishap::Drop) => times = 0,
            Some(Mishap::Duplicate) => times = 2,
            Some(Mishap::Corrupt) => {
                let bit = random.below(8 * sealed.len() as u64) as usize;
                sealed[bit / 8] ^= 1 << (bit % 8);
            }
            Some(Mishap::Delay) => self.hold = 1 + random.below(LATE) as u32,
            Some(Mishap::HalfOpen) => self.mute = true,
            Some(Mishap::Crash) | None => {}
        }
        for _ in 0..if self.mute { 0 } else { times } {
            out.extend(&sealed);
        }
    }
}

/// The receiver's end of a link that seals.
#[derive(Default)]
pub(crate) struct Inlet {
    got: VecDeque<u8>,
    /// Items taken.
    pub(crate) opened: u64,
    /// Looks in vain while something is missing.
    in_vain: u32,
}

impl Inlet {
    /// Take in a piece.
    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.got.extend(piece);
    }

    /// The next item, once it has come whole.
    ///
    /// # Errors
    /// It is not what was sent, or not the one that is due.
    pub(crate) fn open(&mut self) -> Result<Option<Vec<u8>>, String> {
        let got = self.got.make_contiguous();
        let Some((head, rest)) = got.split_first_chunk::<HEAD>() else { return Ok(None) };
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let sum = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if check(&head[..16]) != sum(16) {
            return Err("the head of an item came corrupted".into());
        }
        if number(4) != self.opened as u32 {
            return Err(format!("its item {} came where item {} was due", number(4), self.opened));
        }
        let Some(item) = rest.get(..number(0) as usize) else { return Ok(None) };
        if check(item) != sum(8) {
            return Err(format!("its item {} came corrupted", self.opened));
        }
        let item = item.to_vec();
        self.got.drain(..HEAD + item.len());
        self.opened += 1;
        Ok(Some(item))
    }

    /// One more look; gives what is wrong if something was missing for too many.
    pub(crate) fn looked(&mut self, missing: bool) -> Option<String> {
        self.in_vain = if missing { self.in_vain + 1 } else { 0 };
        let opened = self.opened;
        (self.in_vain > PATIENCE)
            .then(|| format!("nothing was heard of it in {PATIENCE} looks, and its item {opened} never came"))
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
    fn no_item_with_any_bit_turned_is_taken_and_every_turned_bit_is_an_error() {
        let (first, second) = ([1, 2, 3, 4, 5], [9; 40]);
        let mut random = Random::new(1, 0);
        let mut sealed = VecDeque::new();
        let mut outlet = Outlet::default();
        outlet.say(&first, None, &mut random, &mut sealed);
        outlet.say(&second, None, &mut random, &mut sealed);
        let sealed: Vec<u8> = sealed.into();
        let mut inlet = Inlet::default();
        inlet.take(&sealed);
        assert_eq!(all(&mut inlet), Ok(vec![first.to_vec(), second.to_vec()]));
        for bit in 0..8 * sealed.len() {
            let mut turned = sealed.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            let (mut inlet, mut taken) = (Inlet::default(), Vec::new());
            let wrong = turned.iter().find_map(|byte| {
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
    fn an_item_that_is_missing_or_comes_again_is_out_of_its_turn() {
        for mishap in [Mishap::Drop, Mishap::Duplicate] {
            let (mut outlet, mut random, mut sealed) =
                (Outlet::default(), Random::new(1, 0), VecDeque::new());
            outlet.say(&[1], None, &mut random, &mut sealed);
            outlet.say(&[2], Some(mishap), &mut random, &mut sealed);
            outlet.say(&[3], None, &mut random, &mut sealed);
            let mut inlet = Inlet::default();
            inlet.take(sealed.make_contiguous());
            assert_eq!(inlet.open(), Ok(Some(vec![1])));
            assert!(all(&mut inlet).is_err());
            assert_eq!(inlet.opened, if mishap == Mishap::Drop { 1 } else { 2 });
        }
    }
}
