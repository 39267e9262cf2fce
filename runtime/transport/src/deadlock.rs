//! [`Waits`]: the wait-for table of a job. For each rank of the job, the table records which rank
//! that rank waits for, in any world of the job. With the table, ranks find waits that cannot end.
//!
//! If a wait lasts, the waiting rank writes into its entry which rank it waits for, and a number
//! for the wait, which it never uses again. After the wait, it clears the entry before it does
//! anything else. Ranks that wait for one another in a cycle never continue if nothing is in flight
//! between them. To exclude that something is in flight, each rank also writes into its entry which
//! wait of the awaited rank it has *seen*.
//!
//! Ranks of one host read each other's entries. Between hosts, or if ranks only exchange messages,
//! they ask each other (`RemoteWaits`). A rank sends everything else that it has to send before it
//! answers. So when the answer arrives, everything that the rank sent before its wait has arrived.
//! A rank follows a cycle entry by entry as far as it can read the entries. It then passes on the
//! waits that it has read, as a list (a `Probe`), to the first rank whose entry it cannot read. The
//! list is complete when it returns to the rank that it began with.
//!
//! # Why a cycle is never reported by mistake
//!
//! Let rank `r` wait for rank `p` in its wait `n`. `r` has *seen* wait `m` of `p` if all of this is
//! true: `r` has read the number `m` that `p` wrote; it has found that nothing that `p` had sent is
//! still in flight ([`Channels::nothing_in_flight`](crate::Channels::nothing_in_flight)); it has
//! then polled and found nothing; and it has sent nothing since it began `n`, not even in that
//! poll. A cycle is a list of ranks, each with the wait that was read in its entry. Each rank has
//! seen the wait of the next rank, and the last rank has seen the wait of the first.
//!
//! A rank of the cycle has an *event* when it sends something or finds what it waits for, if it is
//! in its wait of the cycle and has already made the poll by which it has seen the next rank.
//! Suppose there are events. In the first event, a poll of `r` found something from `p` that an
//! earlier poll of `r` had not found, namely the poll by which `r` has seen `p`. `p` sent it after
//! `p` had begun `m`, since the earlier poll would have found anything older. Nor did `p` send it
//! between the beginning of `m` and the poll in which `p` found nothing in `m`: otherwise `p` would
//! not have *seen* any wait in `m`, by the last condition above. So `p` sent it in `m` after that
//! poll of `p`, or after `p` had left `m`. In both cases there was an event before the first event,
//! which is impossible. Hence there are no events: no rank of the cycle ever finds what it waits
//! for, no matter when and in which order the entries were read. Only a failure from outside can
//! end these waits: a rank is marked failed, or a world is ended. Such a failure is an error as
//! well.
//!
//! # Why a knot is never reported by mistake
//!
//! A rank may wait for *any* of several ranks: for a message from any, or for one of several
//! requests. The rank may also answer ranks that it does not wait for: a receive that it has begun
//! may take their messages. The waiting rank sees the wait of each of these ranks, as above, or
//! sees that the rank has left and that nothing more can arrive from it. A *knot* is a set of
//! ranks, each in one wait, with two properties. Each rank that a member waits for is a member too,
//! or has left. And each member has seen the wait of each other member that it waits for or may
//! answer.
//!
//! The argument is the same. A rank of the knot now has an event when it finds what it waits for or
//! sends something to a rank of the knot, if it is in its wait and has already made the last of the
//! polls by which it has seen others. In the first event, a poll of `r` found something that was
//! sent by a rank `p` of the knot. `r` waits for `p` or may answer `p`. Other senders do not
//! matter. If another rank of the knot sends something, `r` does not look for it, or only keeps it.
//! If `r` answers a rank outside the knot, it sends to that rank alone. The poll by which `r` had
//! seen `p` did not find what `p` sent, so `p` sent it after `p` had begun its wait. As above, `p`
//! sent nothing in that wait before the last poll by which `p` has seen others. So `p` sent it
//! after that poll. But then this send of `p` is an event before the first event, which is
//! impossible.
//!
//! A rank looks for its knot without help from other ranks. It takes all ranks to which its wait
//! leads, in any number of steps, and checks whether the two properties are known to hold for them.
//!
//! The arguments do not depend on when an entry was read. So a list may be old when it is passed
//! on: each of its statements about a rank was true once, and that is enough. Each rank adds only
//! what it knows of itself, or of the ranks whose entries it reads.

use std::collections::BTreeMap;
use std::io;

use crate::shared::slice::{Heap, Placement, SharedSlice};
use crate::sync::{Arc, AtomicU64, Line, Ordering, fence};

/// The longest text, in words of eight bytes. A longer one is cut.
const TEXT: usize = 48;

/// The maximum number of ranks, other than the awaited rank, that a wait may be about. A wait about
/// more ranks is not written down.
pub const OTHERS: usize = 63;

/// The number used for the wait of a rank that sends nothing more, because it has left.
pub const GONE: u64 = u64::MAX;

/// One rank's entry: the description of its wait. No other rank writes to the entry.
#[repr(C)]
pub struct Entry {
    /// The number of the wait that the rank is in, or 0 while it does not wait.
    wait: AtomicU64,
    /// The wait number that the rank used last.
    last: AtomicU64,
    /// The rank that this rank waits for, as a rank of the job.
    awaited: AtomicU64,
    /// The number of the awaited rank's wait that this rank has seen, or 0 for none.
    seen: AtomicU64,
    /// The number of the last wait in which the rank knew that it was in a cycle.
    agreed: AtomicU64,
    /// The call in which the rank waits.
    text: [AtomicU64; TEXT],
    /// The number of other ranks that the wait is about.
    count: AtomicU64,
    /// The other ranks, two words each. The first word is twice the number of the other rank in the
    /// job, plus one if something that the other rank sends ends the wait. The second word is the
    /// number of the wait of the other rank that this rank has seen.
    others: [[AtomicU64; 2]; OTHERS],
}

impl Entry {
    fn new() -> Line<Self> {
        let zero = || AtomicU64::new(0);
        let text = std::array::from_fn(|_| zero());
        let others = std::array::from_fn(|_| [zero(), zero()]);
        let count = zero();
        Line(Self {
            wait: zero(),
            last: zero(),
            awaited: zero(),
            seen: zero(),
            agreed: zero(),
            text,
            count,
            others,
        })
    }
}

/// The entries that can be read here, by rank of the job.
#[derive(Clone)]
pub(crate) struct Table {
    entries: SharedSlice<Line<Entry>>,
    /// The index in `entries` of each rank's entry, by rank of the job, if the entry is here.
    slots: Arc<[Option<u32>]>,
}

/// A way to communicate with ranks whose entries are not here. Ranks are numbered as in the job.
pub(crate) trait RemoteWaits: Send + Sync {
    /// Returns the wait that `rank` has reported last. Everything that `rank` had sent before that
    /// wait has arrived here. If `ask` is set, asks `rank` again, unless it was asked just before.
    fn waiting(&self, rank: usize, ask: bool) -> Option<Waiting>;

    /// Passes on a list, unless it was passed on just before.
    fn probe(&self, probe: Probe);

    /// Returns the list that has returned to this rank in its wait of this number.
    fn cycle(&self, number: u64) -> Option<Vec<Waiting>>;

    /// Notifies `rank` once that this rank's own wait of this number is in a cycle.
    fn agree(&self, rank: usize, number: u64);

    /// Returns the number of the last wait of `rank` that `rank` has reported to be in a cycle.
    fn agreed(&self, rank: usize) -> u64;
}

/// A list of waits. The rank of each wait has seen the next wait. The last rank of the list waits
/// for rank `to`, whose entry is not here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// The rank that the last of `waits` waits for.
    pub(crate) to: usize,
    /// The wait of that rank that the last of `waits` has seen.
    pub seen: u64,
    pub waits: Vec<Waiting>,
}

/// The result of following a list of waits. The rank of each wait of the list has seen the next
/// wait.
pub(crate) enum Walk {
    /// Nothing is known yet. A rank of the list has not seen the next wait, or the next wait is
    /// over, or a wait is about several ranks and may be part of a knot.
    Open,
    /// The list leads back to the first wait.
    Cycle(Vec<Waiting>),
    /// The list leads to a rank whose entry is not here.
    Remote(Probe),
}

/// The wait-for table of a job, as the ranks of one of its worlds know it.
#[derive(Clone)]
pub struct Waits {
    table: Table,
    remote: Option<Arc<dyn RemoteWaits>>,
    /// For each rank of the world, its rank in the job.
    of: Arc<[u32]>,
}

/// A rank that a wait is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// The rank, as a rank of the job.
    pub rank: usize,
    /// Whether something that `rank` sends ends the wait. Otherwise the waiting rank may answer
    /// `rank`.
    pub ends: bool,
    /// The number of the wait of `rank` that was seen, or 0 for none, or [`GONE`] if nothing more
    /// can arrive from `rank`.
    pub seen: u64,
}

/// A rank's wait, at the time when it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The waiting rank. All ranks in this struct are ranks of the job.
    pub rank: usize,
    /// The rank that the waiting rank waits for.
    pub awaited: usize,
    /// The call in which the rank waits.
    pub text: String,
    /// The number of the wait.
    pub number: u64,
    /// The number of the awaited rank's wait that the waiting rank has seen, or 0 for none.
    pub seen: u64,
    /// The other ranks that the wait is about.
    pub others: Vec<About>,
}

impl Waiting {
    /// Returns all ranks that the wait is about, beginning with the awaited rank.
    pub fn about(&self) -> impl Iterator<Item = About> {
        let awaited = About { rank: self.awaited, ends: true, seen: self.seen };
        std::iter::once(awaited).chain(self.others.iter().copied())
    }
}

/// Places entries for `ranks` ranks that do not wait.
pub(crate) fn place(ranks: usize, placement: &mut impl Placement) -> io::Result<SharedSlice<Line<Entry>>> {
    placement.place(ranks, Entry::new)
}

/// Rotates a cycle to begin with its lowest rank.
pub fn in_order(mut cycle: Vec<Waiting>) -> Vec<Waiting> {
    let lowest = (0..cycle.len()).min_by_key(|&i| cycle[i].rank).unwrap_or(0);
    cycle.rotate_left(lowest);
    cycle
}

/// Returns the longest prefix of a text that has at most `bytes` bytes.
pub fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=text.len().min(bytes)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

impl Table {
    /// Returns a table of the entries of these ranks of a job, in this order.
    pub(crate) fn of(entries: SharedSlice<Line<Entry>>, ranks: usize, here: &[usize]) -> Self {
        let mut slots = vec![None; ranks];
        here.iter().zip(0..).for_each(|(&rank, slot)| slots[rank] = Some(slot));
        Self { entries, slots: slots.into() }
    }

    /// Returns the table of a job without ranks.
    pub(crate) fn none() -> Self {
        Self::of(Heap::list(0, Entry::new), 0, &[])
    }

    /// Returns a table of the entry of `rank` alone, in a job of `ranks` ranks.
    pub(crate) fn alone(rank: usize, ranks: usize) -> Self {
        Self::of(Heap::list(1, Entry::new), ranks, &[rank])
    }

    fn entry(&self, rank: usize) -> Option<&Entry> {
        let slot = (*self.slots.get(rank)?)?;
        Some(&self.entries[slot as usize].0)
    }

    /// Returns the wait that `rank` is in. `None` if the rank does not wait, or if its entry is not
    /// here.
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
        let count = (entry.count.load(Ordering::Relaxed) as usize).min(OTHERS);
        let other = |[of, seen]: &[AtomicU64; 2]| {
            let of = of.load(Ordering::Relaxed);
            About { rank: of as usize / 2, ends: of % 2 == 1, seen: seen.load(Ordering::Acquire) }
        };
        let others = entry.others[..count].iter().map(other).collect();
        fence(Ordering::Acquire); // pairs with the one in `begin_about`
        if entry.wait.load(Ordering::Relaxed) != number {
            return None; // the rank has continued meanwhile
        }
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
        Some(Waiting { rank, awaited, text, number, seen, others })
    }

    /// Continues the list `waits`, which is not empty, as far as entries can be read. The rank of
    /// each wait has seen the next wait.
    pub(crate) fn walk(&self, mut waits: Vec<Waiting>) -> Walk {
        loop {
            let [first, ..] = &waits[..] else { return Walk::Open };
            let last = &waits[waits.len() - 1];
            if !last.others.is_empty() {
                return Walk::Open; // the wait may be part of a knot
            }
            let (to, seen) = (last.awaited, last.seen);
            if to == first.rank {
                return if seen == first.number { Walk::Cycle(waits) } else { Walk::Open };
            }
            // If the list leads back to a rank other than the first, the first rank is not in that
            // cycle.
            if seen == 0 || waits.iter().any(|other| other.rank == to) {
                return Walk::Open;
            }
            if self.entry(to).is_none() {
                return Walk::Remote(Probe { to, seen, waits });
            }
            match self.read(to) {
                Some(next) if next.number == seen => waits.push(next),
                _ => return Walk::Open,
            }
        }
    }
}

impl Waits {
    /// Returns the table of a world of all ranks of a job, over these entries.
    pub(crate) fn over(entries: SharedSlice<Line<Entry>>) -> Self {
        let ranks: Vec<usize> = (0..entries.len()).collect();
        let of = (0..entries.len() as u32).collect();
        Self { table: Table::of(entries, ranks.len(), &ranks), remote: None, of }
    }

    /// Returns the table of a world of these ranks of a job. `remote` asks the ranks whose entries
    /// are not here.
    pub(crate) fn remote(table: Table, remote: Arc<dyn RemoteWaits>, of: Arc<[u32]>) -> Self {
        Self { table, remote: Some(remote), of }
    }

    /// Returns a table over the same entries, for a world of all ranks of a job in which only some
    /// ranks have an entry. `slots` has the index of each rank's entry, if the rank has one.
    #[cfg(feature = "testing")]
    pub fn with_slots(&self, slots: impl Iterator<Item = Option<u32>>) -> Self {
        let slots: Arc<[_]> = slots.collect();
        let of = (0..slots.len() as u32).collect();
        Self { table: Table { slots, ..self.table.clone() }, remote: None, of }
    }

    /// Returns the table of `ranks` threads of this process.
    pub fn new(ranks: usize) -> Self {
        Self::over(Heap::list(ranks, Entry::new))
    }

    /// Returns the same table, for a world of some of its ranks.
    pub fn of(&self, members: &[usize]) -> Self {
        Self { of: members.iter().map(|&member| self.of[member]).collect(), ..self.clone() }
    }

    /// Returns the rank in the job of `rank`, a rank of this world.
    pub fn rank(&self, rank: usize) -> usize {
        self.of[rank] as usize
    }

    /// Returns whether this world has all ranks of its job.
    pub fn is_whole(&self) -> bool {
        self.of.len() == self.table.slots.len()
    }

    /// Returns the entry of the caller, which is always here.
    fn own(&self, rank: usize) -> &Entry {
        self.table.entry(self.rank(rank)).expect("a rank reads its own entry")
    }

    /// Records that `rank` of this world, the caller, waits for `awaited`. Returns the wait's
    /// number.
    pub fn begin(&self, rank: usize, awaited: usize, text: &str) -> u64 {
        self.begin_about(rank, awaited, &[], text)
    }

    /// Records a wait that is also about other ranks, at most [`OTHERS`]. Each of them is given as
    /// a rank of this world, with a flag that is true if something that the rank sends ends the
    /// wait.
    pub fn begin_about(&self, rank: usize, awaited: usize, others: &[(usize, bool)], text: &str) -> u64 {
        let entry = self.own(rank);
        self.end(rank);
        // Pairs with the fence in `read`: a rank that reads one of the following stores also finds
        // that the previous wait is over.
        fence(Ordering::Release);
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
        entry.count.store(others.len().min(OTHERS) as u64, Ordering::Relaxed);
        for ([of, seen], (rank, ends)) in entry.others.iter().zip(others) {
            of.store(2 * self.rank(*rank) as u64 + u64::from(*ends), Ordering::Relaxed);
            seen.store(0, Ordering::Relaxed);
        }
        // Release: a rank that reads the number finds everything that this rank sent before.
        entry.wait.store(number, Ordering::Release);
        number
    }

    /// Records that `rank`, the caller, no longer waits.
    pub fn end(&self, rank: usize) {
        self.own(rank).wait.store(0, Ordering::Release);
    }

    /// Returns the number of the wait that `rank` is in, or 0 if it does not wait. Acquire: if the
    /// entry is here, everything that `rank` sent before its wait can be found.
    pub fn number(&self, rank: usize) -> u64 {
        let rank = self.rank(rank);
        match (self.table.entry(rank), &self.remote) {
            (Some(entry), _) => entry.wait.load(Ordering::Acquire),
            (None, Some(remote)) => remote.waiting(rank, true).map_or(0, |waiting| waiting.number),
            (None, None) => 0,
        }
    }

    /// Records that `rank`, the caller, has seen the wait `number` of the rank that it waits for.
    pub fn see(&self, rank: usize, number: u64) {
        self.own(rank).seen.store(number, Ordering::Release);
    }

    /// Records that `rank`, the caller, has seen the wait `number` of another rank that its own
    /// wait is about.
    pub fn see_other(&self, rank: usize, other: usize, number: u64) {
        self.own(rank).others[other][1].store(number, Ordering::Release);
    }

    /// Returns the wait that `rank` of this world is in.
    pub fn waiting(&self, rank: usize) -> Option<Waiting> {
        let rank = self.rank(rank);
        match (self.table.entry(rank), &self.remote) {
            (None, Some(remote)) => remote.waiting(rank, false),
            _ => self.table.read(rank),
        }
    }

    /// Returns the cycle that `rank` of this world, the caller, is in, if one is known. The cycle
    /// begins with its lowest rank. If other ranks must be asked, asks them, and a later call
    /// returns the cycle.
    pub fn cycle(&self, rank: usize) -> Option<Vec<Waiting>> {
        let first = self.waiting(rank)?;
        let known = self.remote.as_ref().and_then(|remote| remote.cycle(first.number));
        known.or_else(|| match self.table.walk(vec![first]) {
            Walk::Cycle(cycle) => Some(in_order(cycle)),
            Walk::Open => None,
            Walk::Remote(probe) => {
                self.remote.as_ref()?.probe(probe);
                None
            }
        })
    }

    /// Returns the knot that `rank` of this world, the caller, is in, if a knot is known that is
    /// not a cycle. The knot is ordered by rank. If other ranks must be asked, asks them, and a
    /// later call returns the knot.
    pub fn knot(&self, rank: usize) -> Option<Vec<Waiting>> {
        let me = self.rank(rank);
        let mut all = BTreeMap::from([(me, self.table.read(me)?)]);
        let mut next = vec![me];
        while let Some(from) = next.pop() {
            let awaited: Vec<About> = all.get(&from)?.about().filter(|about| about.ends).collect();
            for About { rank, seen, .. } in awaited {
                if seen != GONE && !all.contains_key(&rank) {
                    let waiting = match (self.table.entry(rank), &self.remote) {
                        (None, Some(remote)) => remote.waiting(rank, true),
                        _ => self.table.read(rank),
                    };
                    all.insert(rank, waiting?);
                    next.push(rank);
                }
            }
        }
        let is_wide = all.values().any(|waiting| !waiting.others.is_empty());
        let has_seen = |waiting: &Waiting| {
            waiting.about().all(|About { rank, seen, .. }| {
                let of = all.get(&rank).filter(|of| of.rank != waiting.rank);
                of.is_none_or(|of| of.number == seen || seen == GONE)
            })
        };
        let is_knot = is_wide && all.len() > 1 && all.values().all(has_seen);
        is_knot.then(|| all.into_values().collect())
    }

    /// Records that `rank`, the caller, knows that it is in this cycle. Returns whether all other
    /// ranks of the cycle know that too, so that the caller may clear its own wait.
    pub fn agree(&self, rank: usize, cycle: &[Waiting]) -> bool {
        let own = self.own(rank);
        let number = own.wait.load(Ordering::Relaxed);
        own.agreed.store(number, Ordering::Release);
        let mut all = true;
        for waiting in cycle {
            all &= match (self.table.entry(waiting.rank), &self.remote) {
                (Some(entry), _) => {
                    let wait = entry.wait.load(Ordering::Acquire);
                    // If the rank is in another wait or in no wait, its wait in the cycle has
                    // ended.
                    wait != waiting.number || entry.agreed.load(Ordering::Acquire) == waiting.number
                }
                (None, Some(remote)) => {
                    remote.agree(waiting.rank, number);
                    remote.agreed(waiting.rank) >= waiting.number
                }
                (None, None) => true,
            };
        }
        all
    }
}
