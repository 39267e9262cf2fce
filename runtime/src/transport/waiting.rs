//! [`Waits`]: whom each rank of a job waits for, in whichever of its worlds, and when that can never end. Ranks of several
//! hosts know it of those of their own.
//!
//! A rank whose wait lasts writes down whom it waits for, under a number that it never uses again, and strikes it out
//! before it does anything else. Ranks that wait for one another in a ring never go on, if it is sure that nothing is under
//! way between them; so each adds which wait of the awaited rank it has *seen*.
//!
//! # Why a ring is never one by mistake
//!
//! In wait `n`, rank `r` has seen wait `m` of rank `p`, which it awaits, if it has read `m` from what `p` wrote, found that
//! nothing which `p` had sent is still on its way ([`Transport::quiet`](super::Transport::quiet)), then looked in vain, and
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

use std::io;

use super::placed::{Heap, Placed, Places};
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

/// The entries of all ranks of a job, as the ranks of one of its worlds know them.
#[derive(Clone)]
pub struct Waits {
    entries: Placed<Line<Entry>>,
    /// Which rank of the job each rank of the world is.
    of: Arc<[u32]>,
    /// Which of the entries each rank of the job has: none where it shares no memory with this one.
    seats: Arc<[Option<u32>]>,
}

/// A rank's wait, as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    /// As a rank of the job, as all ranks here.
    pub(crate) rank: usize,
    pub(crate) awaited: usize,
    pub(crate) text: String,
    number: u64,
    seen: u64,
}

/// Entries for so many ranks, all of which wait for nobody.
pub(super) fn place(ranks: usize, places: &mut impl Places) -> io::Result<Placed<Line<Entry>>> {
    places.place(ranks, Entry::new)
}

impl Waits {
    /// Those of a world of all ranks of a job, which lie elsewhere.
    pub(super) fn over(entries: Placed<Line<Entry>>) -> Self {
        let ranks = 0..entries.len() as u32;
        Self { entries, of: ranks.clone().collect(), seats: ranks.map(Some).collect() }
    }

    /// The same entries, for a world of all ranks of a job of which only some have one: who has which. Of the others' waits
    /// nothing is known.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "hosts have several ranks on Linux only"))]
    pub(crate) fn seated(&self, seats: impl Iterator<Item = Option<usize>>) -> Self {
        let seats: Arc<[_]> = seats.map(|seat| seat.map(|seat| seat as u32)).collect();
        Self { entries: self.entries.clone(), of: (0..seats.len() as u32).collect(), seats }
    }

    /// Those of `ranks` threads of this process.
    pub(crate) fn new(ranks: usize) -> Self {
        Self::over(Heap::list(ranks, Entry::new))
    }

    /// The same, for a world of some of them.
    pub(crate) fn of(&self, members: &[usize]) -> Self {
        Self { of: members.iter().map(|&member| self.of[member]).collect(), ..self.clone() }
    }

    /// Which rank of the job `rank` of this world is.
    pub(crate) fn rank(&self, rank: usize) -> usize {
        self.of[rank] as usize
    }

    /// Whether this world has all ranks of its job.
    pub(crate) fn is_whole(&self) -> bool {
        self.of.len() == self.seats.len()
    }

    /// That of `rank` of the job.
    fn entry_of(&self, rank: usize) -> Option<&Entry> {
        let seat = (*self.seats.get(rank)?)?;
        self.entries.get(seat as usize).map(|entry| &entry.0)
    }

    /// That of `rank` of this world.
    fn entry(&self, rank: usize) -> Option<&Entry> {
        self.entry_of(self.rank(rank))
    }

    /// `rank` of this world, the caller, waits for `awaited`: gives the wait's number.
    pub(crate) fn begin(&self, rank: usize, awaited: usize, text: &str) -> u64 {
        let Some(entry) = self.entry(rank) else { return 0 };
        self.end(rank);
        fence(Ordering::Release); // pairs with the one in `read`: who sees what follows sees that the last wait is over
        let number = entry.last.load(Ordering::Relaxed) + 1;
        entry.last.store(number, Ordering::Relaxed);
        entry.awaited.store(self.rank(awaited) as u64, Ordering::Relaxed);
        entry.seen.store(0, Ordering::Relaxed);
        let cut = (0..=text.len().min(TEXT * 8)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let mut chunks = text.as_bytes()[..cut].chunks(8);
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
    pub(crate) fn end(&self, rank: usize) {
        if let Some(entry) = self.entry(rank) {
            entry.wait.store(0, Ordering::Release);
        }
    }

    /// The number of the wait that `rank` is in, or 0. Acquire: what it sent before can be found if it is here.
    pub(crate) fn number(&self, rank: usize) -> u64 {
        self.entry(rank).map_or(0, |entry| entry.wait.load(Ordering::Acquire))
    }

    /// `rank`, the caller, has seen this wait of the one that it waits for.
    pub(crate) fn see(&self, rank: usize, number: u64) {
        if let Some(entry) = self.entry(rank) {
            entry.seen.store(number, Ordering::Release);
        }
    }

    /// The wait that `rank` of this world is in.
    pub(crate) fn waiting(&self, rank: usize) -> Option<Waiting> {
        self.read(self.rank(rank))
    }

    /// The wait that `rank` of the job is in.
    fn read(&self, rank: usize) -> Option<Waiting> {
        let entry = self.entry_of(rank)?;
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

    /// The ring that `rank` of this world is in, from the lowest rank on, if it is in one.
    pub(crate) fn ring(&self, rank: usize) -> Option<Vec<Waiting>> {
        let first = self.waiting(rank)?;
        let mut ring = vec![first];
        loop {
            let (first, last) = (&ring[0], &ring[ring.len() - 1]);
            if last.awaited == first.rank {
                if last.seen != first.number {
                    return None;
                }
                break;
            }
            let next = self.read(last.awaited)?;
            // A rank that comes again before the first is in a ring without it.
            if next.number != last.seen || ring.iter().any(|other| other.rank == next.rank) {
                return None;
            }
            ring.push(next);
        }
        let lowest = (0..ring.len()).min_by_key(|&i| ring[i].rank).unwrap_or(0);
        ring.rotate_left(lowest);
        Some(ring)
    }

    /// `rank`, the caller, knows that it is in this ring. Gives whether all the others do, so that it may strike out its own
    /// wait.
    pub(crate) fn agree(&self, rank: usize, ring: &[Waiting]) -> bool {
        if let Some(own) = self.entry(rank) {
            own.agreed.store(own.wait.load(Ordering::Relaxed), Ordering::Release);
        }
        ring.iter().filter_map(|waiting| Some((waiting, self.entry_of(waiting.rank)?))).all(
            |(waiting, entry)| {
                let wait = entry.wait.load(Ordering::Acquire);
                // One that is in another wait, or none, has been ended.
                wait != waiting.number || entry.agreed.load(Ordering::Acquire) == waiting.number
            },
        )
    }
}
