//! The exchange of notifications through shared memory, in [cells](NumberedCell), each in a cache
//! line that one rank writes.
//!
//! A *row* of cells has a cell for each target. A rank gets its row when it first needs the row. In
//! a world whose ranks never notify each other there are no rows.
//!
//! In a world of more than a few ranks, most notifications of an exchange are equal, since a rank
//! has something to report to only a few others. So in such a world each rank has one cell for all
//! targets. This cell also records which targets have a notification of their own in the rank's
//! row. The rank writes the line of this cell and the lines of these targets, instead of one line
//! for each other rank. The cells for all targets are in one table, so ranks that share a core read
//! the same lines, and few pages.
//!
//! The number of a cell is the number of the exchange to which its notification belongs. It starts
//! at 1. The reader waits for the number of its own exchange. If a rank has a cell for all targets,
//! the number of that cell publishes the cells in the rank's row as well, and these have no numbers
//! of their own. So the rank stores that number after it has written the cells in its row. There
//! are two sets of cells, used in turn. A rank writes its cells of exchange `e + 2` over those of
//! `e`. Before that, it has read every other rank's notification of `e + 1`, and each rank
//! publishes its notification of `e + 1` after it has read all notifications of `e`. So nobody
//! reads a cell that is being written (W4, W5). One set would not suffice: the first rank that has
//! read all notifications of `e` would write over cells that other ranks still read.

use std::io;
use std::ptr::NonNull;

use crate::shared::cell::NumberedCell;
use crate::shared::slice::{KeepAlive, Placement, SharedSlice};
use crate::shared::waker::Backoff;
use crate::sync::{AtomicU64, Line, Ordering};
use crate::{Notification, Record};

/// The maximum number of ranks of a world in which each rank has a cell for each target, and no
/// cell for all targets.
const FEW: usize = if cfg!(loom) { 2 } else { 8 };

/// A cell of the exchange.
type Cell = NumberedCell<Notification>;

/// The tables of the exchange of one world, which all its ranks share. Each row belongs to one
/// rank, and only its address is here.
#[derive(Clone)]
pub(crate) struct NotificationTables {
    /// The address of the row of each rank, or 0 while it has none.
    rows: SharedSlice<AtomicU64>,
    /// The exchange that each rank settled last.
    settled: SharedSlice<Line<AtomicU64>>,
    /// The cells for all targets, `[set][rank]`, if there are more than a few ranks.
    for_all: SharedSlice<Cell>,
}

impl NotificationTables {
    pub(crate) fn place(size: usize, placement: &mut impl Placement) -> io::Result<Self> {
        Ok(Self {
            rows: placement.place(size, || AtomicU64::new(0))?,
            settled: placement.place(size, || Line(AtomicU64::new(0)))?,
            for_all: placement.place(if size > FEW { 2 * size } else { 0 }, new_cell)?,
        })
    }
}

/// What a board knows of one origin.
#[derive(Clone, Copy)]
struct Origin {
    /// The exchange whose notification was read last.
    read: u64,
    /// The first cell of the origin's row, once the row was found.
    row: Option<NonNull<Cell>>,
}

/// One rank's side of the exchange. A world has one board for each rank, all created together.
pub(crate) struct NotificationBoard<const SETS: usize = 2> {
    rank: usize,
    size: usize,
    /// The exchange published last, or 0 before the first.
    exchange: u64,
    /// The number of notifications of that exchange that this rank has not read.
    unread: usize,
    origins: Vec<Origin>,
    drafts: Vec<Notification>,
    /// The cells of this rank, `[set][target]`, once it has published a notification for a single
    /// target.
    row: Option<SharedSlice<Cell>>,
    tables: NotificationTables,
}

// SAFETY: each rank keeps its row alive until all boards are gone, and rows are bound to no thread.
unsafe impl<const SETS: usize> Send for NotificationBoard<SETS> {}

impl<const SETS: usize> NotificationBoard<SETS> {
    /// Creates the board of `rank`. A rank has one board in each world.
    pub(crate) fn new(rank: usize, size: usize, tables: NotificationTables) -> Self {
        Self {
            rank,
            size,
            exchange: 0,
            unread: 0,
            origins: vec![Origin { read: 0, row: None }; size],
            drafts: vec![Notification::default(); size],
            row: None,
            tables,
        }
    }

    #[inline]
    pub(crate) fn draft(&mut self, to: usize) -> &mut Notification {
        &mut self.drafts[to]
    }

    /// Publishes every target's notification, with this word.
    ///
    /// # Errors
    /// Fails if there is no room for the row of this rank. In that case nothing was published.
    #[inline(always)]
    pub(crate) fn publish(&mut self, word: u64, placement: &mut impl Placement) -> io::Result<()> {
        assert!(self.unread == 0, "published before every notification of the previous exchange was read");
        if self.size > FEW {
            return self.publish_to_many(word, placement);
        }
        if self.row.is_none() {
            self.make_row(placement)?;
        }
        self.begin(word);
        let first = self.at(0);
        let cells = self.row.as_ref().expect("`make_row` has made one");
        // The cell for this rank itself is not written: no other rank reads it, and the lines next
        // to it are read by other ranks.
        let (cells, drafts) = (&cells[first..first + self.size], &self.drafts[..self.size]);
        let mut to = self.rank;
        for _ in 1..self.size {
            to = if to + 1 == self.size { 0 } else { to + 1 };
            let cell = &cells[to];
            // SAFETY: a board writes only its own cells. By the argument at the top, the readers of
            // these cells have finished with the exchange before the last.
            unsafe { write(cell, word, &drafts[to]) };
            cell.publish(self.exchange);
        }
        Ok(())
    }

    /// Begins the next exchange, with this word. This rank reads its own notification from the
    /// draft.
    #[inline(always)]
    fn begin(&mut self, word: u64) {
        self.exchange += 1;
        self.unread = self.size - 1;
        self.origins[self.rank].read = self.exchange;
        self.drafts[self.rank].word = word;
    }

    /// Publishes among more than a few ranks. This is a function of its own, so that it costs
    /// nothing in a world of few ranks.
    #[inline(never)]
    fn publish_to_many(&mut self, word: u64, placement: &mut impl Placement) -> io::Result<()> {
        let (all, own) = self.for_all();
        if self.row.is_none() && own.is_any() {
            self.make_row(placement)?;
        }
        self.begin(word);
        let cells = self.row.as_deref().unwrap_or_default();
        for to in (0..self.size).filter(|&to| own.has(to)) {
            // SAFETY: as in `publish`.
            unsafe { write(&cells[self.at(to)], word, &self.drafts[to]) };
        }
        let cell = &self.tables.for_all[self.at(self.rank)];
        // SAFETY: as in `publish`.
        unsafe { write(cell, word, &all) };
        cell.publish(self.exchange);
        Ok(())
    }

    /// Returns the notification for all targets that have no notification of their own, and the set
    /// of the targets that have one.
    fn for_all(&self) -> (Notification, Targets) {
        let said = |draft: &Notification| (draft.flags, draft.address);
        let (before, after) = (&self.drafts[..self.rank], &self.drafts[self.rank + 1..]);
        let first = after.iter().chain(before).find(|draft| draft.count == 0);
        let mut own = Targets::default();
        for (to, draft) in self.drafts.iter().enumerate().filter(|&(to, _)| to != self.rank) {
            if draft.count != 0 || first.is_some_and(|first| said(first) != said(draft)) {
                own.insert(to);
            }
        }
        // A notification for all has no records, so the room of the records holds the set of
        // targets.
        (Notification { count: 0, inline: own.0, ..first.copied().unwrap_or_default() }, own)
    }

    #[cold]
    fn make_row(&mut self, placement: &mut impl Placement) -> io::Result<()> {
        let row = placement.place(SETS * self.size, new_cell)?;
        self.origins[self.rank].row = NonNull::new(row.address() as *mut Cell);
        // Pairs with the load in `find_row`.
        self.tables.rows[self.rank].store(row.address(), Ordering::Release);
        self.row = Some(row);
        Ok(())
    }

    /// Returns the memory that other ranks may still read when this board is gone.
    pub(crate) fn take_kept(&mut self) -> Option<KeepAlive> {
        self.row.take().map(SharedSlice::into_kept)
    }

    /// Returns whether the notification of `from` has arrived in this exchange.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, from: usize) -> bool {
        self.is_known(from) || self.look(from)
    }

    /// Returns whether an earlier look has found the notification of `from` in this exchange.
    #[inline(always)]
    fn is_known(&self, from: usize) -> bool {
        self.origins[from].read == self.exchange && self.exchange != 0
    }

    /// Looks for the notification of `from` in this exchange, and for nothing else, as often as
    /// `backoff` allows. Returns the notification if it has arrived.
    #[inline(always)]
    pub(crate) fn await_briefly(&mut self, from: usize, backoff: Backoff) -> Option<&Notification> {
        if self.exchange == 0 || from == self.rank {
            return self.read(from);
        }
        let cell = self.awaited(from)?;
        if !backoff.look_out(|| cell.has(self.exchange)) {
            return None;
        }
        let origin = &mut self.origins[from];
        if origin.read != self.exchange {
            origin.read = self.exchange;
            self.unread -= 1;
        }
        self.read(from)
    }

    /// Returns the cell in which the notification of `from` arrives in this exchange, or `None` if
    /// the row of `from` was not found yet.
    #[inline(always)]
    fn awaited(&self, from: usize) -> Option<&Cell> {
        if self.size > FEW { Some(&self.tables.for_all[self.at(from)]) } else { self.cell(from) }
    }

    /// Looks for the notification of `from`, which was not found before. Returns whether it has
    /// arrived.
    #[inline]
    fn look(&mut self, from: usize) -> bool {
        if self.exchange == 0 {
            return false;
        }
        let Some(cell) = self.awaited(from) else { return self.find_row(from) && self.look(from) };
        let arrived = cell.has(self.exchange);
        if arrived {
            self.origins[from].read = self.exchange;
            self.unread -= 1;
        }
        arrived
    }

    /// Returns the notification of `from`, if it was found to have [`arrived`](Self::arrived).
    #[inline(always)]
    pub(crate) fn read(&mut self, from: usize) -> Option<&Notification> {
        if !self.is_known(from) {
            return None;
        }
        if self.size > FEW || from == self.rank {
            return self.read_of_many(from);
        }
        // SAFETY: the notification has arrived. `from` does not write its cells before this board
        // publishes again, and the reference does not live that long: `publish` takes this board by
        // `&mut`.
        unsafe { self.cell(from)?.read(|notification| Some(&*notification)) }
    }

    /// Returns the notification of `from` in a world of more than a few ranks, or the notification
    /// of this rank itself. The notification must have arrived.
    #[inline(never)]
    fn read_of_many(&mut self, from: usize) -> Option<&Notification> {
        // SAFETY: as in `read`.
        let read = |cell: &Cell| unsafe { cell.read(|notification| &*notification) };
        if from == self.rank {
            return Some(&self.drafts[from]);
        }
        let all = read(&self.tables.for_all[self.at(from)]);
        if !Targets(all.inline).has(self.rank) {
            return Some(all);
        }
        if self.origins[from].row.is_none() {
            self.find_row(from);
        }
        Some(read(self.cell(from)?))
    }

    /// Looks for the row of `from`, which was not found before. Returns whether it exists now.
    #[cold]
    fn find_row(&mut self, from: usize) -> bool {
        // Pairs with the store in `make_row`.
        let row = self.tables.rows[from].load(Ordering::Acquire) as *mut Cell;
        self.origins[from].row = NonNull::new(row);
        self.origins[from].row.is_some()
    }

    #[inline]
    pub(crate) fn settle(&mut self) {
        // Pairs with the load in `settled`.
        self.tables.settled[self.rank].0.store(self.exchange, Ordering::Release);
    }

    #[inline]
    pub(crate) fn settled(&self, from: usize) -> bool {
        // Pairs with the store in `settle`.
        self.tables.settled[from].0.load(Ordering::Acquire) >= self.exchange
    }

    /// Returns the cell of this exchange that `origin` has for this rank alone, if the row of
    /// `origin` was found.
    #[inline]
    fn cell(&self, origin: usize) -> Option<&Cell> {
        let at = self.at(self.rank);
        // SAFETY: a row has `SETS * size` cells, written before `origin` reported the row's
        // address. It is kept until all boards are gone.
        self.origins[origin].row.map(|row| unsafe { row.add(at).as_ref() })
    }

    /// Returns the index of the cell of this exchange for `rank`, in a row or in the table.
    #[inline]
    fn at(&self, rank: usize) -> usize {
        Self::set(self.exchange) * self.size + rank
    }

    #[inline]
    fn set(exchange: u64) -> usize {
        (exchange % SETS as u64) as usize
    }
}

/// Writes a notification, with this word.
///
/// # Safety
/// Only the caller's board writes this cell, and its readers have finished with it.
#[inline(always)]
unsafe fn write(cell: &Cell, word: u64, draft: &Notification) {
    // SAFETY: the caller's promise. The pointer is valid.
    unsafe { cell.write(|notification| *notification = Notification { word, ..*draft }) };
}

fn new_cell() -> Cell {
    Cell::new(Notification::default())
}

/// The targets that have a notification of their own. Each has a bit, by its rank modulo the number
/// of bits.
#[derive(Clone, Copy, Default)]
struct Targets([Record; 2]);

impl Targets {
    #[inline]
    fn insert(&mut self, to: usize) {
        let Record { head, value } = &mut self.0[to / 128 % 2];
        *(if to.is_multiple_of(2) { head } else { value }) |= 1 << (to / 2 % 64);
    }

    fn is_any(self) -> bool {
        self.0.iter().any(|Record { head, value }| head | value != 0)
    }

    #[inline]
    fn has(self, to: usize) -> bool {
        let Record { head, value } = self.0[to / 128 % 2];
        (if to.is_multiple_of(2) { head } else { value }) >> (to / 2 % 64) & 1 != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shared::slice::Heap;

    /// Each rank notifies every other rank whether the exchange is odd. Its notifications to some
    /// of these ranks also have a count.
    #[test]
    fn each_rank_reads_what_was_said_to_it_or_to_all() {
        for size in [1, FEW, FEW + 1, 130, 300] {
            let tables = NotificationTables::place(size, &mut Heap).expect("a heap has room");
            let mut boards: Vec<NotificationBoard> =
                (0..size).map(|rank| NotificationBoard::new(rank, size, tables.clone())).collect();
            let flags = |to: usize, e: u64| if to == 3 { 8 + e as u32 % 2 } else { e as u32 % 2 };
            let count = |from: usize, to: usize, e: u64| {
                if (from + to + e as usize).is_multiple_of(5) { to as u32 } else { 0 }
            };
            for e in 1..5 {
                for (from, board) in boards.iter_mut().enumerate() {
                    for to in 0..size {
                        let draft = board.draft(to);
                        draft.flags = flags(to, e);
                        (draft.count, draft.address) = (count(from, to, e), 9);
                        draft.inline = [Record { head: to as u64, value: e }; 2];
                    }
                    board.publish(e, &mut Heap).expect("a heap has room");
                }
                for (to, board) in boards.iter_mut().enumerate() {
                    for from in 0..size {
                        assert!(board.arrived(from), "all have published");
                        let &Notification { word, flags: said, count: theirs, address, inline } =
                            board.read(from).expect("it has arrived");
                        let expected = (e, flags(to, e), count(from, to, e), 9);
                        assert_eq!((word, said, theirs, address), expected, "{from} to {to} of {size}");
                        assert!(theirs == 0 || inline == [Record { head: to as u64, value: e }; 2]);
                    }
                }
            }
        }
    }
}
