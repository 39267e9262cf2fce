//! [`Logs`]: the operations of ranks on one part under shared locks, kept if conflicts are checked
//! (planner/README.md, 32).
//!
//! The logs follow the words of the part's locks in memory of the part's owner. Each rank has a log
//! there. Only that rank writes the log, so the log needs no lock. (For a rank that does not reach
//! the part, the attendant of the part writes the log.) A rank first writes the operations that it
//! is about to carry out, then reads the other logs. Of two ranks that do so at the same time, at
//! least one finds the operations of the other. If both find each other, they find the same
//! conflict. An entry may be reused while another rank reads it. The reading rank detects the reuse
//! afterwards, and does not use the entry.
//!
//! Exclusive epochs are not logged, because two clocks show their order relative to all other
//! epochs of the part. A rank that acquires a lock takes over the times that earlier exclusive
//! epochs knew when they released the lock. An exclusive epoch also takes over the times that
//! shared epochs knew.
//!
//! In the logs, a fetch finds the accumulates of other ranks into its elements, whether they are
//! over or still being carried out. Everything that was over when these accumulates were called is
//! over for calls after the fetch. An accumulate is logged before it is carried out, and the logs
//! are read after the fetch was carried out, so no order is missed. A log may name an accumulate
//! whose effect the fetch did not find in its element. In that case a conflict can be missed. The
//! origins of accumulates also know times of third ranks. One clock of the part keeps these times.
//!
//! ```text
//! three clocks, with a word for each rank: of exclusive epochs, of shared epochs, and of the times
//!     that origins of accumulates knew
//! then the log of each rank:
//!     a cache line of words: the number of entries so far; the first entry that is left; the time
//!     of the forgotten entries; the time that was over when an accumulate was called for which
//!     there was no room; the rank's time when it last released locks
//!     the names of files
//!     the entries, used in turn
//! entry  0 kind (8 bits), name (8), column (16), line (32); 1 time; 2 first element, 3 run,
//!        4 runs, 5 from run to run
//!        6 number of the operation; 7 the time of its origin when it was called
//! ```

use crate::check::state::conflicts::MOST;
use crate::check::state::entering::{Called, Entering, ShortCall};
use crate::check::state::kinds::{code, kind};
use fencepost_planner::conflicts::{Conflict, Touch, breaks_disjoint, conflict};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_transport::Hold;
use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The number of words in a cache line, and in an entry.
const LINE: usize = 8;
/// The number of file names in a log. `NAME` is the number of words of each name: its length and
/// its last bytes.
const NAMES: usize = 8;
const NAME: usize = 16;
/// The number of words of a log before its entries.
const HEAD: usize = LINE + NAMES * NAME;
/// The indices of the words in the first cache line of a log.
const COUNT: usize = 0;
const FIRST: usize = 1;
const FORGOTTEN: usize = 2;
const UNLOGGED: usize = 3;
const RELEASED: usize = 4;
/// The index of the word of an entry that contains its time.
const TIME: usize = 1;
/// The number of clocks of a part.
const CLOCKS: usize = 3;

/// The logs and clocks of one part.
#[derive(Clone, Copy)]
pub(crate) struct Logs {
    first: *const u64,
    ranks: usize,
    /// The number of entries of each log.
    entries: usize,
    /// Whether the program promises that shared epochs visit different elements.
    is_disjoint: bool,
}

/// The elements of an entry: runs of equal length at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Runs {
    low: u64,
    run: u64,
    count: u64,
    step: u64,
}

/// The contents of an entry.
struct Entry {
    kind: Kind,
    name: usize,
    line: u32,
    column: u32,
    time: u64,
    runs: Runs,
    number: usize,
    called: u64,
}

/// Returns the first word of an entry.
#[inline]
fn head_of(kind: Kind, name: usize, line: u32, column: u32) -> u64 {
    let column = u64::from(column.min(0xffff));
    code(kind) | (name as u64) << 8 | column << 16 | u64::from(line) << 32
}

/// Returns whether an access is an atomic update, which may change the value that a fetch finds.
fn is_update(kind: Kind) -> bool {
    matches!(kind, Kind::Accumulate(op) if op != Op::NoOp)
}

/// The findings of a rank in the logs of other ranks.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) conflicts: Vec<Conflict>,
    /// Whether there may be more conflicts, because this rank's log is full, or because another log
    /// has forgotten operations that are not known to be over.
    pub(crate) is_blind: bool,
}

impl Runs {
    fn high(&self) -> u64 {
        self.low + (self.count - 1) * self.step + self.run
    }

    fn one(run: Range<u64>) -> Self {
        Self { low: run.start, run: run.end - run.start, count: 1, step: 0 }
    }

    /// Returns the run with this number.
    fn nth(&self, number: u64) -> Range<u64> {
        let first = self.low + number * self.step;
        first..first + self.run
    }

    /// Returns the range from the lowest to past the highest element that both `range` and these
    /// runs contain.
    fn within(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let (first, last) = match self.step {
            0 => (0, 0),
            // The first run that ends after the start of `range`, and the last run that begins
            // before the end of `range`.
            step => (
                (range.start + 1).saturating_sub(self.low + self.run).div_ceil(step),
                (range.end - 1).checked_sub(self.low)? / step,
            ),
        };
        let last = last.min(self.count - 1);
        if first > last {
            return None;
        }
        let both = self.nth(first).start.max(range.start)..self.nth(last).end.min(range.end);
        (both.start < both.end).then_some(both)
    }

    /// Returns whether these are elements that a window can have.
    fn is_sound(&self) -> bool {
        const MOST: u64 = 1 << 48;
        let span = self.count.checked_sub(1).and_then(|steps| steps.checked_mul(self.step));
        let small = self.low < MOST && self.run < MOST;
        self.run > 0 && small && span.is_some_and(|span| span < MOST)
    }

    /// Converts runs to this form. The runs ascend and do not meet.
    fn of(elements: &[Range<u64>]) -> Vec<Runs> {
        let mut all: Vec<Runs> = Vec::new();
        for Range { start: low, end } in elements.iter().cloned() {
            let run = end - low;
            match all.last_mut() {
                Some(last) if last.run == run && last.count == 1 => {
                    (last.step, last.count) = (low - last.low, 2);
                }
                Some(last) if last.run == run && low == last.low + last.count * last.step => last.count += 1,
                _ => all.push(Runs { low, run, count: 1, step: 0 }),
            }
        }
        all
    }
}

/// Returns the elements of a datatype as ascending runs that do not meet. No element may be
/// negative.
fn ascending(elements: &Datatype) -> Vec<Range<u64>> {
    if let Some(run) = elements.as_run() {
        return std::iter::once(run.start as u64..run.end as u64).collect();
    }
    let runs = elements.ascending_runs().expect("there is memory for the runs of a typemap");
    runs.into_iter().map(|run| run.start as u64..run.end as u64).collect()
}

/// The elements of operations of one kind, indexed to find the elements that other ranks touch.
struct Index {
    kind: Kind,
    /// The runs, sorted by their first elements. Each run has the number of its operation, and the
    /// highest end of all runs up to this run.
    runs: Vec<(Range<u64>, usize, u64)>,
}

impl Index {
    /// Returns an index for each kind of these operations.
    fn of(calls: &[Called], elements: &[Vec<Range<u64>>]) -> Vec<Index> {
        let mut all: Vec<Index> = Vec::new();
        for (number, (call, elements)) in calls.iter().zip(elements).enumerate() {
            let at = all.iter().position(|index| index.kind == call.kind).unwrap_or_else(|| {
                all.push(Index { kind: call.kind, runs: Vec::new() });
                all.len() - 1
            });
            all[at].runs.extend(elements.iter().map(|run| (run.clone(), number, run.end)));
        }
        for Index { runs, .. } in &mut all {
            runs.sort_unstable_by_key(|(run, ..)| run.start);
            let mut highest = 0;
            for (.., most) in runs {
                highest = highest.max(*most);
                *most = highest;
            }
        }
        all
    }

    /// Calls `hit` for each operation that touches some elements of `theirs`, with the number of
    /// the operation and a range from the lowest to past the highest element that both touch. May
    /// call `hit` several times for one operation, each time with some of these elements.
    ///
    /// # Cost
    /// Proportional to the number of hits, plus `n * log(m)`. Here `n` is the number of runs on the
    /// side with fewer runs, and `m` the number on the other side.
    fn meets(&self, theirs: &Runs, mut hit: impl FnMut(usize, Range<u64>)) {
        if theirs.count > self.runs.len() as u64 {
            for (run, number, _) in &self.runs {
                if let Some(both) = theirs.within(run) {
                    hit(*number, both);
                }
            }
            return;
        }
        for run in (0..theirs.count).map(|number| theirs.nth(number)) {
            let end = self.runs.partition_point(|(own, ..)| own.start < run.end);
            for (own, number, _) in self.runs[..end].iter().rev().take_while(|(.., most)| *most > run.start) {
                let both = own.start.max(run.start)..own.end.min(run.end);
                if both.start < both.end {
                    hit(*number, both);
                }
            }
        }
    }
}

impl Logs {
    /// Returns the number of entries of each log, if all clocks and logs have `words` words.
    pub(crate) fn entries(ranks: usize, words: usize) -> usize {
        let log = words.saturating_sub(CLOCKS * ranks.next_multiple_of(LINE)) / ranks;
        log.saturating_sub(HEAD) / LINE
    }

    /// Returns the minimum number of words of logs: the words of the clocks and of the heads of the
    /// logs.
    pub(crate) fn least(ranks: usize) -> usize {
        CLOCKS * ranks.next_multiple_of(LINE) + ranks * HEAD
    }

    /// Returns the logs at `first`.
    ///
    /// # Safety
    /// The words of logs with this number of entries begin at `first`. The words are zero at first,
    /// and only this module touches the words, as long as this value or a copy of it is used.
    pub(crate) unsafe fn new(first: *const u64, ranks: usize, entries: usize) -> Self {
        Self { first, ranks, entries, is_disjoint: false }
    }

    /// Returns the same logs. `is_disjoint` is whether the program promises that shared epochs of
    /// the window visit different elements.
    pub(crate) fn promised(self, is_disjoint: bool) -> Self {
        Self { is_disjoint, ..self }
    }

    #[inline]
    fn at(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < CLOCKS * self.ranks.next_multiple_of(LINE) + self.ranks * self.log_words());
        // SAFETY: this is one of the words, and all accesses to them are atomic.
        unsafe { AtomicU64::from_ptr(self.first.add(word).cast_mut()) }
    }

    fn log_words(&self) -> usize {
        HEAD + self.entries * LINE
    }

    /// Returns the index of the first word of a clock: the clock of exclusive epochs, or the clock
    /// of shared epochs.
    fn clock(&self, hold: Hold) -> usize {
        if hold == Hold::Exclusive { 0 } else { self.ranks.next_multiple_of(LINE) }
    }

    /// Returns the index of the first word of the clock with the times that origins of accumulates
    /// knew.
    fn heard(&self) -> usize {
        2 * self.ranks.next_multiple_of(LINE)
    }

    /// Returns a word of the log of a rank.
    #[inline]
    fn of(&self, rank: usize, word: usize) -> &AtomicU64 {
        self.at(CLOCKS * self.ranks.next_multiple_of(LINE) + rank * self.log_words() + word)
    }

    /// Returns the words of an entry. Entries are used in turn.
    #[inline]
    fn entry(&self, rank: usize, entry: u64) -> [&AtomicU64; LINE] {
        let first = HEAD + (entry % self.entries as u64) as usize * LINE;
        std::array::from_fn(|word| self.of(rank, first + word))
    }

    /// [Enters](Self::enter) these operations of the rank `from` on the part of `target` in a
    /// window. Meanwhile the locks of the part are held for the operations. Raises each time that
    /// the origin knows, if the locks show that a later time is over. Returns the findings, and
    /// whether the origin knows more than before.
    pub(crate) fn meet(
        &self,
        hold: Hold,
        entering: &mut Entering,
        (from, window, target): (usize, u32, usize),
    ) -> (Findings, bool) {
        let mut knows_more = false;
        for rank in 0..self.ranks {
            let time = self.acquired(hold, rank);
            if time > entering.knows[rank] {
                knows_more = true;
                entering.knows[rank] = time;
            }
            for known in entering.known.chunks_exact_mut(self.ranks) {
                known[rank] = known[rank].max(time);
            }
        }
        // The locks order exclusive epochs relative to all other epochs of the part.
        let findings = match hold {
            Hold::Shared => self.enter(from, entering, (window, target)),
            Hold::Exclusive => Findings::default(),
        };
        self.release(hold, from, &entering.knows);
        (findings, knows_more)
    }

    /// Does the same as [`meet`](Self::meet) for one short call of the rank `from` under shared
    /// locks. `name` is the place of the file's name in the log of `from`, and `after` is the time
    /// of `from` when the call has ended.
    ///
    /// Returns `true` if there was nothing to find and there were no new times. Otherwise the call
    /// may already have been logged. Logging it again has no effect.
    #[inline]
    pub(crate) fn meet_short(
        &self,
        from: usize,
        Entering { time, met, known, .. }: &Entering,
        call: &ShortCall,
        name: usize,
        after: u64,
    ) -> bool {
        let is_new = |rank| self.acquired(Hold::Shared, rank) > known[rank];
        if (0..self.ranks).any(is_new) {
            return false;
        }
        let others = || (0..self.ranks).filter(|&other| other != from);
        if is_update(call.kind) {
            others().for_each(|other| self.raise(self.heard() + other, known[other]));
        }
        let mut count = self.of(from, COUNT).load(Ordering::Relaxed);
        let head = head_of(call.kind, name, call.site.line(), call.site.column());
        let words = [head, *time, call.at as u64, 1, 1, 0, call.number as u64, known[from]];
        if !self.append(from, &mut count, words, *met) {
            return false;
        }
        self.of(from, COUNT).store(count, Ordering::Release);
        // As in `enter`.
        fence(Ordering::SeqCst);
        let may_meet = |other| {
            self.of(other, FORGOTTEN).load(Ordering::Acquire) > known[other]
                || !self.since(other, known[other]).is_empty()
        };
        if others().any(may_meet) {
            return false;
        }
        self.of(from, RELEASED).store(after, Ordering::Release);
        let first = self.clock(Hold::Shared);
        others().for_each(|other| self.raise(first + other, known[other]));
        true
    }

    /// Returns a time of `rank`: everything that `rank` did before that time is over for each rank
    /// that has acquired locks of the part.
    #[inline]
    fn acquired(&self, hold: Hold, rank: usize) -> u64 {
        let read = |hold| self.at(self.clock(hold) + rank).load(Ordering::Acquire);
        let exclusive = read(Hold::Exclusive);
        if hold == Hold::Shared {
            return exclusive;
        }
        exclusive.max(read(Hold::Shared)).max(self.of(rank, RELEASED).load(Ordering::Acquire))
    }

    /// Publishes the times that the rank `from` knows, before this rank releases locks of the part.
    pub(crate) fn release(&self, hold: Hold, from: usize, knows: &[u64]) {
        let first = self.clock(hold);
        for (rank, time) in knows.iter().enumerate().take(self.ranks) {
            // The rank's own time grows with each call, and only that rank writes its word.
            if rank == from && hold == Hold::Shared {
                self.of(rank, RELEASED).store(*time, Ordering::Release);
            } else {
                self.raise(first + rank, *time);
            }
        }
    }

    /// Raises a word of a clock to this time, unless the word is already higher.
    #[inline]
    fn raise(&self, word: usize, time: u64) {
        // If other ranks have raised the word to this time or further, reading that value makes
        // their released writes visible.
        if self.at(word).load(Ordering::Acquire) < time {
            self.at(word).fetch_max(time, Ordering::AcqRel);
        }
    }

    /// Logs the operations of a shared epoch that `rank` is about to carry out on the part of
    /// `target` in this window. `rank` holds the locks. Compares these operations with the
    /// operations of other ranks that are not known to be over.
    ///
    /// # Cost
    /// Reads each entry of each log that is not known to be over. For each entry whose bounds
    /// overlap the entered operations, searches these operations.
    pub(crate) fn enter(&self, rank: usize, entering: &Entering, (window, target): (u32, usize)) -> Findings {
        let mut found = Findings::default();
        let mut count = self.of(rank, COUNT).load(Ordering::Relaxed);
        let elements: LazyCell<Vec<_>, _> =
            LazyCell::new(|| entering.calls.iter().map(|call| ascending(&call.elements)).collect());
        for (number, call) in entering.calls.iter().enumerate() {
            let known = entering.known_at(call);
            if is_update(call.kind) {
                for (other, time) in known.iter().enumerate().filter(|(other, _)| *other != rank) {
                    self.raise(self.heard() + other, *time);
                }
            }
            let mut log = |runs| {
                if !self.write(rank, &mut count, entering, call, runs) {
                    found.is_blind = true;
                    if is_update(call.kind) {
                        self.of(rank, UNLOGGED).fetch_max(known[rank], Ordering::AcqRel);
                    }
                }
            };
            match call.elements.as_run() {
                Some(run) => log(Runs::one(run.start as u64..run.end as u64)),
                None => Runs::of(&elements[number]).into_iter().for_each(log),
            }
        }
        // The entries are published all at once, since a rank that found only some runs of an
        // operation would report a different conflict than a rank that finds all runs. This store
        // pairs with the load in `since`.
        self.of(rank, COUNT).store(count, Ordering::Release);
        // If this rank and another rank enter operations at the same time, at least one of them
        // sees the entries of the other. Either the other rank sees the entries written above, or
        // the reads below see the entries of the other rank.
        fence(Ordering::SeqCst);
        let low = entering.calls.iter().map(|call| call.elements.low() as u64).min().unwrap_or(0);
        let high = entering.calls.iter().map(|call| call.elements.high() as u64).max().unwrap_or(0);
        let indices = LazyCell::new(|| Index::of(&entering.calls, &elements));
        for other in (0..self.ranks).filter(|&other| other != rank) {
            // Everything that was over when the first operation was called is over for all of the
            // operations.
            let over = entering.known_first(other);
            if self.entries > 0 && self.of(other, FORGOTTEN).load(Ordering::Acquire) > over {
                found.is_blind = true;
            }
            for number in self.since(other, over) {
                let Some(entry) = self.read(other, number) else { continue };
                if entry.runs.low >= high || entry.runs.high() <= low {
                    continue;
                }
                let theirs = |touch: &Touch| (touch.origin, touch.operation) == (other, entry.number);
                let is_found = |conflict: &Conflict| conflict.between.iter().any(theirs);
                if found.conflicts.len() == MOST && !found.conflicts.iter().any(is_found) {
                    continue;
                }
                let rule = if self.is_disjoint { breaks_disjoint } else { conflict };
                for index in indices.iter().filter(|index| rule(entry.kind, index.kind)) {
                    index.meets(&entry.runs, |call, both| {
                        let call = &entering.calls[call];
                        if entry.time < entering.known_at(call)[other] {
                            return;
                        }
                        let touches = || {
                            let file = self.name(other, entry.name);
                            let site = Site { file, line: entry.line, column: entry.column };
                            let (operation, kind) = (entry.number, entry.kind);
                            let theirs = Touch { origin: other, operation, kind, site };
                            let (operation, kind, site) = (call.number, call.kind, call.site.clone());
                            [theirs, Touch { origin: rank, operation, kind, site }]
                        };
                        let by = [(other, entry.number), (rank, call.number)];
                        add(&mut found.conflicts, window, target, both, by, touches);
                    });
                }
            }
        }
        found
    }

    /// Returns the times that are over because these operations found accumulates of other ranks.
    /// The operations belong to a shared epoch of `rank`, and have been carried out. Returns an
    /// empty list if no operation fetches.
    ///
    /// # Cost
    /// As [`enter`](Self::enter), if an operation fetches.
    pub(crate) fn observed(&self, rank: usize, entering: &Entering) -> Vec<u64> {
        let mut over = Vec::new();
        let fetches = || entering.calls.iter().filter(|call| call.fetches);
        if fetches().next().is_none() {
            return over;
        }
        over.resize(self.ranks, 0);
        let calls: Vec<Called> = fetches().cloned().collect();
        let elements: Vec<_> = calls.iter().map(|call| ascending(&call.elements)).collect();
        let indices = Index::of(&calls, &elements);
        for other in (0..self.ranks).filter(|&other| other != rank) {
            let known = entering.known_first(other);
            // These times cover the operations that are not in the log, whichever elements they
            // touch.
            let unlogged = [UNLOGGED, FORGOTTEN].map(|word| self.of(other, word).load(Ordering::Acquire));
            over[other] = unlogged[0].max(unlogged[1]);
            for number in self.since(other, known) {
                let Some(entry) = self.read(other, number).filter(|entry| is_update(entry.kind)) else {
                    continue;
                };
                if entry.called > over[other] {
                    let mut is_found = false;
                    indices.iter().for_each(|index| index.meets(&entry.runs, |_, _| is_found = true));
                    if is_found {
                        over[other] = entry.called;
                    }
                }
            }
        }
        if over.iter().any(|&time| time > 0) {
            let first = self.heard();
            for (other, time) in over.iter_mut().enumerate() {
                *time = (*time).max(self.at(first + other).load(Ordering::Acquire));
            }
        }
        over
    }

    /// Returns the numbers of the entries of a rank that are not known to be over: the entries
    /// whose times are not before `over`.
    fn since(&self, rank: usize, over: u64) -> Range<u64> {
        if self.entries == 0 {
            return 0..0;
        }
        let count = self.of(rank, COUNT).load(Ordering::Acquire);
        let first = self.of(rank, FIRST).load(Ordering::Acquire);
        let mut range = first.max(count.saturating_sub(self.entries as u64))..count;
        // Times ascend.
        while range.start < range.end {
            let middle = range.start + (range.end - range.start) / 2;
            if self.entry(rank, middle)[TIME].load(Ordering::Relaxed) < over {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        range.start..count
    }

    /// Reads an entry. Returns `None` if it was forgotten or is not valid.
    fn read(&self, rank: usize, entry: u64) -> Option<Entry> {
        let words = self.entry(rank, entry).map(|word| word.load(Ordering::Relaxed));
        // Pairs with the fence in `write`: a rank that has read a word of a later entry sees that
        // this entry is forgotten.
        fence(Ordering::Acquire);
        if self.of(rank, FIRST).load(Ordering::Relaxed) > entry {
            return None;
        }
        let [head, time, low, run, count, step, number, called] = words;
        let runs = Runs { low, run, count, step };
        runs.is_sound().then_some(Entry {
            kind: kind(head & 0xff)?,
            name: (head >> 8 & 0xff) as usize,
            column: (head >> 16 & 0xffff) as u32,
            line: (head >> 32) as u32,
            time,
            runs,
            number: number as usize,
            called,
        })
    }

    /// Logs these elements of an operation of a rank. `number` is the number of entries in the
    /// rank's log, and is updated. Returns whether there is room.
    fn write(&self, rank: usize, number: &mut u64, entering: &Entering, call: &Called, runs: Runs) -> bool {
        let file = &call.site.file;
        let made = || (file.clone(), self.keep(rank, file));
        let name = entering.files.borrow_mut().find(|known| Arc::ptr_eq(known, file), made);
        let head = head_of(call.kind, name, call.site.line, call.site.column);
        let Runs { low, run, count, step } = runs;
        let called = entering.known_at(call)[rank];
        let words = [head, entering.time, low, run, count, step, call.number as u64, called];
        self.append(rank, number, words, entering.met)
    }

    /// Appends an entry to the log of a rank. `number` is the number of entries in the log, and is
    /// updated. Returns whether there is room. `met` is the rank's time when all ranks met last.
    #[inline]
    fn append(&self, rank: usize, number: &mut u64, words: [u64; LINE], met: u64) -> bool {
        if self.entries == 0 {
            return false;
        }
        let count = *number;
        let oldest = count.saturating_sub(self.entries as u64);
        let mut first = self.of(rank, FIRST).load(Ordering::Relaxed).clamp(oldest, count);
        // If an operation is repeated, as in a loop, its entry is reused: everything that is not
        // over now was not over at the earlier call either.
        if count > first {
            let last = self.entry(rank, count - 1);
            if [0, 2, 3, 4, 5].iter().all(|&word| last[word].load(Ordering::Relaxed) == words[word]) {
                [TIME, 6, 7].iter().for_each(|&word| last[word].store(words[word], Ordering::Relaxed));
                return true;
            }
        }
        if count - first == self.entries as u64 {
            let mut forgotten = 0;
            while first < count {
                let before = self.entry(rank, first)[TIME].load(Ordering::Relaxed);
                if before >= met {
                    break;
                }
                (forgotten, first) = (before.saturating_add(1), first + 1);
            }
            if count - first == self.entries as u64 {
                return false;
            }
            self.of(rank, FORGOTTEN).fetch_max(forgotten, Ordering::AcqRel);
            self.of(rank, FIRST).store(first, Ordering::Relaxed);
            fence(Ordering::Release);
        }
        for (word, value) in self.entry(rank, count).iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        *number = count.wrapping_add(1);
        true
    }

    /// Returns the place of a file's name in the log of a rank, from 1 on, or 0 if the log has too
    /// many names.
    pub(crate) fn keep(&self, rank: usize, file: &str) -> usize {
        let tail = &file.as_bytes()[file.len().saturating_sub((NAME - 1) * 8)..];
        let words = || {
            tail.chunks(8).enumerate().map(|(at, bytes)| {
                let mut all = [0; 8];
                all[..bytes.len()].copy_from_slice(bytes);
                (1 + at, u64::from_le_bytes(all))
            })
        };
        for name in 0..NAMES {
            let word = |word: usize| self.of(rank, LINE + name * NAME + word);
            if word(0).load(Ordering::Relaxed) == 0 {
                words().for_each(|(at, bytes)| word(at).store(bytes, Ordering::Relaxed));
                word(0).store(tail.len() as u64, Ordering::Release);
            }
            let is_it = |(at, bytes): (usize, u64)| word(at).load(Ordering::Relaxed) == bytes;
            if word(0).load(Ordering::Relaxed) == tail.len() as u64 && words().all(is_it) {
                return name + 1;
            }
        }
        0
    }

    /// Returns the name of a file in the log of a rank.
    fn name(&self, rank: usize, place: usize) -> Arc<str> {
        if !(1..=NAMES).contains(&place) {
            return Arc::from("a file that is not known");
        }
        let word = |word: usize| self.of(rank, LINE + (place - 1) * NAME + word).load(Ordering::Acquire);
        let len = word(0) as usize;
        let bytes: Vec<u8> = (1..NAME).flat_map(|at| word(at).to_le_bytes()).take(len).collect();
        Arc::from(String::from_utf8_lossy(&bytes))
    }
}

/// Adds a conflict of these two operations to `found`. If `found` already has a conflict of these
/// operations, adds the elements to that conflict.
fn add(
    found: &mut Vec<Conflict>,
    window: u32,
    rank: usize,
    elements: Range<u64>,
    mut by: [(usize, usize); 2],
    touches: impl FnOnce() -> [Touch; 2],
) {
    by.sort_unstable();
    let elements = elements.start as i64..elements.end as i64;
    let same = |other: &&mut Conflict| {
        other.between.iter().zip(by).all(|(touch, by)| (touch.origin, touch.operation) == by)
    };
    if let Some(Conflict { elements: both, .. }) = found.iter_mut().find(same) {
        *both = both.start.min(elements.start)..both.end.max(elements.end);
    } else if found.len() < MOST {
        let mut between = touches();
        between.sort_by_key(|touch| (touch.origin, touch.operation));
        found.push(Conflict { rank, ranks: 1, window: window as usize, elements, between });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::state::clock::after_exchange;
    use fencepost_tests_support::random::Random;
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::panic::Location;
    use std::sync::Barrier;

    /// Returns logs of three ranks with room for this number of entries each, and their memory.
    fn logs(entries: usize) -> (Logs, Vec<AtomicU64>) {
        let words = Logs::least(3) + 3 * entries * LINE;
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: `memory` has this number of words, and the caller keeps it as long as the logs.
        let logs = unsafe { Logs::new(memory.as_ptr().cast(), 3, Logs::entries(3, words)) };
        assert_eq!(logs.entries, entries);
        (logs, memory)
    }

    fn site(line: u32) -> Site {
        Site { file: "src/main.rs".into(), line, column: 5 }
    }

    /// Returns the announcement of a call that ends at `time`. The rank of the call knows the times
    /// `known`.
    fn one(kind: Kind, elements: Datatype, line: u32, time: u64, known: [u64; 3]) -> Entering {
        let fetches = matches!(kind, Kind::Accumulate(_));
        let call = Called { kind, elements, site: site(line), number: line as usize, known: 0, fetches };
        let met = after_exchange((time >> 32) as u32);
        Entering {
            time,
            met,
            knows: known.to_vec(),
            known: known.to_vec(),
            calls: vec![call],
            files: RefCell::default(),
        }
    }

    #[test]
    fn elements_that_others_touch_are_found_as_one_by_one() {
        let mut random = Random::new(7);
        for _ in 0..2000 {
            let mut some = |most: usize| {
                let runs = 1 + random.below(most);
                Datatype::elements((0..runs).map(|_| random.below(40) as i64).collect::<Vec<_>>()).unwrap()
            };
            let theirs = match some(12) {
                list if list.low() % 2 == 0 => list,
                list => Datatype::nest(list.low(), &[(list.size(), 3)], 2).unwrap(),
            };
            let call = |kind, elements| Called {
                kind,
                elements,
                site: site(1),
                number: 0,
                known: 0,
                fetches: false,
            };
            let kinds = [Kind::Put, Kind::Get, Kind::Put];
            let calls = kinds.map(|kind| call(kind, some(9)));
            let elements = calls.each_ref().map(|call| ascending(&call.elements));
            let mut found = [const { None::<Range<u64>> }; 3];
            let indices = Index::of(&calls, &elements);
            assert_eq!(indices.len(), 2);
            for index in &indices {
                for runs in Runs::of(&ascending(&theirs)) {
                    index.meets(&runs, |call, both| {
                        let all = found[call].get_or_insert(both.clone());
                        *all = all.start.min(both.start)..all.end.max(both.end);
                    });
                }
            }
            for (call, found) in calls.iter().zip(found) {
                let of = |elements: &Datatype| elements.element_iter().collect::<BTreeSet<_>>();
                let both = &of(&call.elements) & &of(&theirs);
                let bounds =
                    both.first().zip(both.last()).map(|(first, last)| *first as u64..*last as u64 + 1);
                assert_eq!(found, bounds, "{call:?} {theirs:?}");
            }
        }
    }

    #[test]
    fn an_element_that_is_named_many_times_takes_one_place() {
        let (logs, _memory) = logs(2);
        let often = || Datatype::nest(3, &[(1 << 40, 0)], 1).unwrap();
        let first = logs.enter(0, &one(Kind::Get, often(), 7, 4, [5, 0, 0]), (3, 1));
        assert!(first.conflicts.is_empty() && !first.is_blind);
        let second = logs.enter(1, &one(Kind::Put, Datatype::run(2..5), 8, 4, [0, 5, 0]), (3, 1));
        assert_eq!(second.conflicts.len(), 1);
        assert_eq!(second.conflicts[0].elements, 3..4);
        assert!(!second.is_blind);
    }

    #[test]
    fn what_is_not_over_conflicts_where_it_overlaps_and_both_lines_are_named() {
        let (logs, _memory) = logs(8);
        let column = || Datatype::nest(1, &[(3, 4)], 2).unwrap();
        let first = logs.enter(0, &one(Kind::Put, column(), 7, 4, [5, 0, 0]), (3, 1));
        assert!(first.conflicts.is_empty() && !first.is_blind);
        let between = logs.enter(1, &one(Kind::Put, Datatype::run(3..5), 8, 0, [0; 3]), (3, 1));
        assert!(between.conflicts.is_empty(), "{:?}", between.conflicts);
        let found = logs.enter(2, &one(Kind::Get, Datatype::run(4..6), 9, 0, [0; 3]), (3, 1)).conflicts;
        assert_eq!(found.len(), 2);
        let [a, b] = &found[0].between;
        assert_eq!((a.origin, &a.site, b.origin, &b.site), (0, &site(7), 2, &site(9)));
        assert_eq!((found[0].elements.clone(), found[0].window, found[0].rank), (5..6, 3, 1));
        assert_eq!(found[1].elements, 4..5);
        // A rank that knows that the first operation is over finds only the other operation.
        let later = logs.enter(2, &one(Kind::Get, Datatype::run(4..6), 9, 0, [5, 0, 0]), (3, 1)).conflicts;
        assert_eq!(later.len(), 1);
        assert_eq!(later[0].between[0].origin, 1);
    }

    #[test]
    fn a_log_that_is_full_is_blind_until_all_ranks_have_met() {
        let (logs, _memory) = logs(4);
        let put = |at: usize, exchange: u32, known: [u64; 3]| {
            let time = after_exchange(exchange) + at as u64;
            logs.enter(0, &one(Kind::Put, Datatype::run(2 * at..2 * at + 1), 7, time, known), (0, 0)).is_blind
        };
        assert_eq!([0, 1, 2, 3, 4].map(|at| put(at, 1, [0; 3])), [false, false, false, false, true]);
        assert!(!put(3, 1, [0; 3]), "the same once more takes no room");
        assert!(!put(9, 2, [after_exchange(2); 3]), "what was before the exchange is forgotten");
        let [before, after] = [1, 2].map(|exchange| {
            let get = one(Kind::Get, Datatype::run(0..40), 9, 0, [after_exchange(exchange); 3]);
            logs.enter(1, &get, (0, 0))
        });
        assert!(before.is_blind, "what was forgotten was not over for it");
        assert!(!after.is_blind && after.conflicts.len() == 1);
        assert_eq!(after.conflicts[0].elements, 18..19);
    }

    #[test]
    fn a_short_call_leaves_what_any_call_leaves_unless_something_is_found() {
        let mut random = Random::new(11);
        let line = Location::caller();
        let place = Site { file: line.file().into(), line: line.line(), column: line.column() };
        let mut passed = [0; 2];
        for _ in 0..200 {
            let ((short, short_words), (long, long_words)) = (logs(4), logs(4));
            let (mut exchange, mut ended, mut heard) = (0, [0; 3], [[0; 3]; 3]);
            for number in 0..60 {
                let rank = random.below(3);
                if random.once_in(8) {
                    exchange += 1;
                    (ended, heard) = ([0; 3], [[after_exchange(exchange); 3]; 3]);
                }
                let met = after_exchange(exchange);
                let time = met + ended[rank];
                heard[rank][rank] = time;
                if random.once_in(8) {
                    for logs in [short, long] {
                        logs.release(Hold::Exclusive, rank, &heard[rank]);
                    }
                }
                let (at, kind) = (random.below(3), random.one_of(&[Kind::Put, Kind::Accumulate(Op::Sum)]));
                let call = Called {
                    kind,
                    elements: Datatype::run(at..at + 1),
                    site: place.clone(),
                    number,
                    known: 0,
                    fetches: false,
                };
                ended[rank] += 1;
                let mut knows = heard[rank].to_vec();
                knows[rank] = time + 1;
                let (known, files) = (heard[rank].to_vec(), RefCell::default());
                let entering = Entering { time, met, knows, known, calls: vec![call], files };
                let mut all = [entering.clone(), entering.clone()];
                let by = (rank, 0, 1);
                let (found, knows_more) = long.meet(Hold::Shared, &mut all[0], by);
                let call = ShortCall { kind, at, site: line, number };
                let passes =
                    short.meet_short(rank, &entering, &call, short.keep(rank, line.file()), time + 1);
                passed[usize::from(passes)] += 1;
                if passes {
                    assert!(found.conflicts.is_empty() && !found.is_blind && !knows_more);
                } else {
                    let (again, more) = short.meet(Hold::Shared, &mut all[1], by);
                    assert_eq!((again.conflicts, again.is_blind), (found.conflicts, found.is_blind));
                    assert_eq!((more, &all[0].knows), (knows_more, &all[1].knows));
                }
                heard[rank].copy_from_slice(&all[0].knows);
                let words = |memory: &[AtomicU64]| -> Vec<u64> {
                    memory.iter().map(|word| word.load(Ordering::Relaxed)).collect()
                };
                assert_eq!(words(&short_words), words(&long_words));
            }
        }
        assert!(passed.iter().all(|&times| times > 500), "{passed:?}");
    }

    #[test]
    fn a_fetch_learns_what_was_over_when_accumulates_that_it_may_find_were_called() {
        let (logs, _memory) = logs(4);
        let (sum, read) = (Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::NoOp));
        let enter = |rank: usize, kind, at: usize, known: [u64; 3]| {
            let entering = one(kind, Datatype::run(at..at + 1), 7, known[rank], known);
            assert!(logs.enter(rank, &entering, (0, 1)).conflicts.is_empty());
            logs.observed(rank, &entering)
        };
        enter(0, sum, 3, [6, 0, 4]);
        assert_eq!(enter(1, read, 2, [0, 1, 0]), [0, 0, 0], "of another element");
        assert_eq!(enter(1, read, 3, [0, 1, 0]), [6, 0, 4], "and of what its origin had heard");
        assert_eq!(enter(1, Kind::Get, 7, [0, 1, 0]), [0; 0], "a get fetches nothing");
        enter(1, read, 3, [0, 9, 0]);
        assert_eq!(enter(2, read, 3, [0, 0, 1])[1], 0, "what only reads orders nothing");
        (0..5).for_each(|at| drop(enter(0, sum, 10 + 2 * at, [8 + at as u64, 0, 4])));
        assert_eq!(enter(2, read, 100, [0, 0, 1])[0], 12, "where there was no room, whatever the element");
    }

    #[test]
    fn clocks_order_exclusive_epochs_with_all_and_shared_ones_with_those() {
        let (logs, _memory) = logs(0);
        logs.release(Hold::Shared, 0, &[3, 0, 0]);
        let acquired = |hold| [0, 1, 2].map(|rank| logs.acquired(hold, rank));
        assert_eq!(acquired(Hold::Shared), [0, 0, 0]);
        assert_eq!(acquired(Hold::Exclusive), [3, 0, 0]);
        logs.release(Hold::Exclusive, 0, &[3, 5, 0]);
        logs.release(Hold::Exclusive, 1, &[1, 6, 0]);
        assert_eq!(acquired(Hold::Shared), [3, 6, 0]);
    }

    #[test]
    fn of_two_ranks_that_enter_at_once_one_finds_the_other() {
        let (logs, memory) = logs(64);
        let start = Barrier::new(2);
        let memory = &memory;
        let rounds = 300_u32;
        let found: Vec<Vec<bool>> = std::thread::scope(|threads| {
            let start = &start;
            let each = [0, 1].map(|rank| {
                threads.spawn(move || {
                    let words = memory.len();
                    // SAFETY: as above; the memory is kept until all threads have ended.
                    let logs = unsafe { Logs::new(memory.as_ptr().cast(), 3, Logs::entries(3, words)) };
                    (1..=rounds)
                        .map(|round| {
                            let known = [after_exchange(round); 3];
                            let put = one(Kind::Put, Datatype::run(3..4), 1 + rank as u32, known[0], known);
                            start.wait();
                            let found = logs.enter(rank, &put, (0, 2));
                            assert!(!found.is_blind);
                            !found.conflicts.is_empty()
                        })
                        .collect()
                })
            });
            each.map(|thread| thread.join().expect("it does not panic")).into()
        });
        let _ = logs;
        assert!((0..rounds as usize).all(|round| found[0][round] || found[1][round]));
    }

    #[test]
    fn words_that_nobody_has_written_are_read_without_harm() {
        let (logs, memory) = logs(4);
        let mut bits = 1_u64;
        for _ in 0..2000 {
            for word in &memory {
                bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                word.store(if bits >> 60 == 0 { bits >> (bits % 64) } else { bits % 70 }, Ordering::Relaxed);
            }
            let get = one(Kind::Get, Datatype::run(0..40), 9, 0, [0; 3]);
            assert!(logs.enter(1, &get, (0, 0)).conflicts.len() <= MOST);
        }
    }
}
