//! [`Waits`]: whom each rank of a job waits for, in whichever of its worlds, and when that can never end.
//!
//! A rank whose wait lasts writes down whom it waits for, under a number that it never uses again, and strikes it out
//! before it does anything else. Ranks that wait for one another in a ring never go on, if it is sure that nothing is under
//! way between them; so each adds which wait of the awaited rank it has *seen*.
//!
//! Ranks of one host read each other's entries. Between hosts, or where ranks only exchange messages, they ask
//! ([`Afar`]): who answers has first sent all that it has to say, so what it sent before its wait has come before the
//! answer. A ring is then gone through entry by entry as far as they are here, and handed on as a list, a [`Probe`], to the
//! rank whose entry is not; it ends with the rank that it began with.
//!
//! # Why a ring is never one by mistake
//!
//! In wait `n`, rank `r` has seen wait `m` of rank `p`, which it awaits, if it has read `m` from what `p` wrote, found that
//! nothing which `p` had sent is still on its way ([`Transport::quiet`](crate::Transport::quiet)), then looked in vain, and
//! has sent nothing since it began `n`, not even in that look. A ring is a list of ranks, each read in a wait that the one
//! before it has seen, the first by the last.
//!
//! Call *event* what happens when a rank of the ring, in that wait and after that look, sends something or finds what it
//! waits for. Say there are events, and take one before which there is none: a look of `r` found something that `p` had
//! sent, and that its look in vain had not. `p` sent it after it had begun `m`, since all from before was there to be found.
//! It did not send it in `m` up to its own look in vain, or it would have seen nothing in `m`. So it sent it in `m` after that
//! look, or after it had left `m`; either is an event before this one. Hence there are none: nobody in the ring ever finds
//! what it waits for, whenever the entries were read and in whatever order. Only an end from outside can end these waits: a
//! rank that is struck off, or a world that is ended; and that is an error as well.
//!
//! The list may therefore be old where it is handed on: what it says of a rank was so once, and that is enough. It needs
//! only be true, so each rank adds what it says of itself, or of those whose entries it reads.

use std::io;

use crate::shared::slice::{Heap, Placed, Places};
use crate::sync::{Arc, AtomicU64, Line, Ordering, fence};

/// Bytes of a text at most, in words of eight; what is longer is cut.
const TEXT: usize = 48;

/// What one rank writes down of its wait; only that rank writes here.
#[repr(C)]
pub struct Entry {
    /// The number of the wait that it is in; 0 while it is in none.
    wait: AtomicU64,
    /// The number that it used last.
    last: AtomicU64,
    /// Whom it waits for, as a rank of the job.
    awaited: AtomicU64,
    /// Which wait of that rank it has seen; 0 for none.
    seen: AtomicU64,
    /// The last of its waits that it knows to be in a ring.
    agreed: AtomicU64,
    /// In which call it waits.
    text: [AtomicU64; TEXT],
}

impl Entry {
    fn new() -> Line<Self> {
        let zero = || AtomicU64::new(0);
        let text = std::array::from_fn(|_| zero());
        Line(Self { wait: zero(), last: zero(), awaited: zero(), seen: zero(), agreed: zero(), text })
    }
}

/// The entries that can be read here, by rank of the job.
#[derive(Clone)]
pub(crate) struct Table {
    entries: Placed<Line<Entry>>,
    /// Which entry is that of each rank of the job, if it is here.
    seats: Arc<[Option<u32>]>,
}

/// How ranks are asked, and told, whose entries are not here. They are named as ranks of the job.
pub(crate) trait Afar: Send + Sync {
    /// The wait that `rank` has last said it is in; all that it had sent before is here. It is asked anew, if `ask`ed for and
    /// not just done.
    fn waiting(&self, rank: usize, ask: bool) -> Option<Waiting>;

    /// Hand on a list, if that was not just done.
    fn probe(&self, probe: Probe);

    /// The list that has come back to this rank in this wait.
    fn ring(&self, number: u64) -> Option<Vec<Waiting>>;

    /// Tell `rank` that this one knows to be in a ring in this wait, once.
    fn agree(&self, rank: usize, number: u64);

    /// The last of its waits that `rank` said it knows to be in a ring.
    fn agreed(&self, rank: usize) -> u64;
}

/// Waits of which each has seen the next, which go on with that of a rank that must be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// Whom the last of them waits for.
    pub(crate) to: usize,
    /// Which wait of that rank it has seen.
    pub seen: u64,
    pub waits: Vec<Waiting>,
}

/// How far waits that have seen one another go.
pub(crate) enum Walk {
    /// To one that has not seen the next, or not for good.
    Nowhere,
    /// Back to the first.
    Round(Vec<Waiting>),
    /// To a rank whose entry is not here.
    Away(Probe),
}

/// The waits of all ranks of a job, as the ranks of one of its worlds know them.
#[derive(Clone)]
pub struct Waits {
    table: Table,
    afar: Option<Arc<dyn Afar>>,
    /// Which rank of the job each rank of the world is.
    of: Arc<[u32]>,
}

/// A rank's wait, as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// As a rank of the job, as all ranks here.
    pub rank: usize,
    /// The rank that it waits for.
    pub awaited: usize,
    /// In which call.
    pub text: String,
    /// The number of the wait.
    pub number: u64,
    /// Which wait of the awaited rank it has seen; 0 for none.
    pub seen: u64,
}

/// Entries for so many ranks, all of which wait for nobody.
pub(crate) fn place(ranks: usize, places: &mut impl Places) -> io::Result<Placed<Line<Entry>>> {
    places.place(ranks, Entry::new)
}

/// A ring, from its lowest rank on.
pub fn in_order(mut ring: Vec<Waiting>) -> Vec<Waiting> {
    let lowest = (0..ring.len()).min_by_key(|&i| ring[i].rank).unwrap_or(0);
    ring.rotate_left(lowest);
    ring
}

/// As much of a text as fits into so many bytes.
pub fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=text.len().min(bytes)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

impl Table {
    /// Entries of these ranks of a job, in this order.
    pub(crate) fn of(entries: Placed<Line<Entry>>, ranks: usize, here: &[usize]) -> Self {
        let mut seats = vec![None; ranks];
        here.iter().zip(0..).for_each(|(&rank, seat)| seats[rank] = Some(seat));
        Self { entries, seats: seats.into() }
    }

    /// None, of a job without ranks.
    pub(crate) fn none() -> Self {
        Self::of(Heap::list(0, Entry::new), 0, &[])
    }

    /// That of `rank` alone, of so many.
    pub(crate) fn alone(rank: usize, ranks: usize) -> Self {
        Self::of(Heap::list(1, Entry::new), ranks, &[rank])
    }

    fn entry(&self, rank: usize) -> Option<&Entry> {
        let seat = (*self.seats.get(rank)?)?;
        Some(&self.entries[seat as usize].0)
    }

    /// The wait that `rank` is in, if its entry is here and it is in one.
    pub(crate) fn read(&self, rank: usize) -> Option<Waiting> {
        let entry = self.entry(rank)?;
        let number = entry.wait.load(Ordering::Acquire);
        if number == 0 {
            return None;
        }
        let seen = entry.seen.load(Ordering::Acquire);
        let awaited = entry.awaited.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> =
            entry.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        fence(Ordering::Acquire); // pairs with the one in `begin`
        if entry.wait.load(Ordering::Relaxed) != number {
            return None; // it has gone on meanwhile
        }
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
        Some(Waiting { rank, awaited, text, number, seen })
    }

    /// Go on from these waits, of which each has seen the next, and which are one at least.
    pub(crate) fn walk(&self, mut waits: Vec<Waiting>) -> Walk {
        loop {
            let [first, ..] = &waits[..] else { return Walk::Nowhere };
            let last = &waits[waits.len() - 1];
            let (to, seen) = (last.awaited, last.seen);
            if to == first.rank {
                return if seen == first.number { Walk::Round(waits) } else { Walk::Nowhere };
            }
            // A rank that comes again before the first is in a ring without it.
            if seen == 0 || waits.iter().any(|other| other.rank == to) {
                return Walk::Nowhere;
            }
            if self.entry(to).is_none() {
                return Walk::Away(Probe { to, seen, waits });
            }
            match self.read(to) {
                Some(next) if next.number == seen => waits.push(next),
                _ => return Walk::Nowhere,
            }
        }
    }
}

impl Waits {
    /// Those of a world of all ranks of a job, which lie elsewhere.
    pub(crate) fn over(entries: Placed<Line<Entry>>) -> Self {
        let ranks: Vec<usize> = (0..entries.len()).collect();
        let of = (0..entries.len() as u32).collect();
        Self { table: Table::of(entries, ranks.len(), &ranks), afar: None, of }
    }

    /// Those of a world of these ranks of a job, of which some are asked.
    pub(crate) fn afar(table: Table, afar: Arc<dyn Afar>, of: Arc<[u32]>) -> Self {
        Self { table, afar: Some(afar), of }
    }

    /// The same entries, for a world of all ranks of a job of which only some have one: who has which.
    #[cfg(feature = "testing")]
    pub fn seated(&self, seats: impl Iterator<Item = Option<u32>>) -> Self {
        let seats: Arc<[_]> = seats.collect();
        let of = (0..seats.len() as u32).collect();
        Self { table: Table { seats, ..self.table.clone() }, afar: None, of }
    }

    /// Those of `ranks` threads of this process.
    pub fn new(ranks: usize) -> Self {
        Self::over(Heap::list(ranks, Entry::new))
    }

    /// The same, for a world of some of them.
    pub fn of(&self, members: &[usize]) -> Self {
        Self { of: members.iter().map(|&member| self.of[member]).collect(), ..self.clone() }
    }

    /// Which rank of the job `rank` of this world is.
    pub fn rank(&self, rank: usize) -> usize {
        self.of[rank] as usize
    }

    /// Whether this world has all ranks of its job.
    pub fn is_whole(&self) -> bool {
        self.of.len() == self.table.seats.len()
    }

    /// That of the caller, which is here.
    fn own(&self, rank: usize) -> &Entry {
        self.table.entry(self.rank(rank)).expect("a rank reads its own entry")
    }

    /// `rank` of this world, the caller, waits for `awaited`: gives the wait's number.
    pub fn begin(&self, rank: usize, awaited: usize, text: &str) -> u64 {
        let entry = self.own(rank);
        self.end(rank);
        fence(Ordering::Release); // pairs with the one in `read`: who sees what follows sees that the last wait is over
        let number = entry.last.load(Ordering::Relaxed) + 1;
        entry.last.store(number, Ordering::Relaxed);
        entry.awaited.store(self.rank(awaited) as u64, Ordering::Relaxed);
        entry.seen.store(0, Ordering::Relaxed);
        let mut chunks = cut(text, TEXT * 8).as_bytes().chunks(8);
        for word in &entry.text {
            let mut bytes = [0; 8];
            let chunk = chunks.next().unwrap_or_default();
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        // Release: who reads the number finds all that this rank sent before.
        entry.wait.store(number, Ordering::Release);
        number
    }

    /// `rank`, the caller, waits no more.
    pub fn end(&self, rank: usize) {
        self.own(rank).wait.store(0, Ordering::Release);
    }

    /// The number of the wait that `rank` is in, or 0. Acquire: what it sent before can be found if it is here.
    pub fn number(&self, rank: usize) -> u64 {
        let rank = self.rank(rank);
        match (self.table.entry(rank), &self.afar) {
            (Some(entry), _) => entry.wait.load(Ordering::Acquire),
            (None, Some(afar)) => afar.waiting(rank, true).map_or(0, |waiting| waiting.number),
            (None, None) => 0,
        }
    }

    /// `rank`, the caller, has seen this wait of the one that it waits for.
    pub fn see(&self, rank: usize, number: u64) {
        self.own(rank).seen.store(number, Ordering::Release);
    }

    /// The wait that `rank` of this world is in.
    pub fn waiting(&self, rank: usize) -> Option<Waiting> {
        let rank = self.rank(rank);
        match (self.table.entry(rank), &self.afar) {
            (None, Some(afar)) => afar.waiting(rank, false),
            _ => self.table.read(rank),
        }
    }

    /// The ring that `rank` of this world, the caller, is in, from the lowest rank on, if it is known to be in one. Where
    /// that takes others to find out, they are asked, and it is known some time later.
    pub fn ring(&self, rank: usize) -> Option<Vec<Waiting>> {
        let first = self.waiting(rank)?;
        let known = self.afar.as_ref().and_then(|afar| afar.ring(first.number));
        known.or_else(|| match self.table.walk(vec![first]) {
            Walk::Round(ring) => Some(in_order(ring)),
            Walk::Nowhere => None,
            Walk::Away(probe) => {
                self.afar.as_ref()?.probe(probe);
                None
            }
        })
    }

    /// `rank`, the caller, knows that it is in this ring. Gives whether all the others do, so that it may strike out its own
    /// wait.
    pub fn agree(&self, rank: usize, ring: &[Waiting]) -> bool {
        let own = self.own(rank);
        let number = own.wait.load(Ordering::Relaxed);
        own.agreed.store(number, Ordering::Release);
        let mut all = true;
        for waiting in ring {
            all &= match (self.table.entry(waiting.rank), &self.afar) {
                (Some(entry), _) => {
                    let wait = entry.wait.load(Ordering::Acquire);
                    // One that is in another wait, or none, has been ended.
                    wait != waiting.number || entry.agreed.load(Ordering::Acquire) == waiting.number
                }
                (None, Some(afar)) => {
                    afar.agree(waiting.rank, number);
                    afar.agreed(waiting.rank) >= waiting.number
                }
                (None, None) => true,
            };
        }
        all
    }
}
