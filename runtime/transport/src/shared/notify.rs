//! The exchange of notifications through shared memory: cells, each a cache line that one rank writes and one rank reads.
//!
//! A rank has a *row* of cells, one for each target, from the first exchange on that it publishes: in a world whose ranks
//! never notify each other there are none.
//!
//! A cell holds the number of the exchange that its notification belongs to, stored after the notification; the reader
//! waits for the number of its own exchange. There are two sets of cells, used in turn. A rank writes its cells of
//! exchange `e + 2` over those of `e`. It has then read every other rank's notification of `e + 1`, which each
//! published after reading those of `e`: nobody reads a cell that is written (W4, W5). One set would not suffice, as
//! the rank that is first to read all notifications of `e` shows.

use std::io;
use std::ptr::NonNull;

use crate::Notification;
use crate::shared::slice::{KeepAlive, Placement, SharedSlice};
use crate::sync::{AtomicU64, Line, Ordering, UnsafeCell};

/// A notification and the number of its exchange: a cache line.
#[repr(C, align(64))]
struct Cell {
    notification: UnsafeCell<Notification>,
    /// The exchange of the notification, from 1 on.
    exchange: AtomicU64,
}

// SAFETY: only its origin's board writes a cell's notification, in `publish`, and only its target's board reads it, in
// `read`. The read follows the Acquire load of the number that `publish` stored with Release after the notification.
// The next write follows, by the argument at the top, the publishing of a later notification by the target, whose board
// had then got back the reference that `read` returned, since `publish` takes it by `&mut`.
unsafe impl Sync for Cell {}
// SAFETY: notifications are plain data.
unsafe impl Send for Cell {}

/// What the ranks of one world share of their exchange, apart from rows.
#[derive(Clone)]
pub(crate) struct NotificationTables {
    /// The address of the row of each rank; 0 while it has none.
    rows: SharedSlice<AtomicU64>,
    /// The exchange that each rank settled last.
    settled: SharedSlice<Line<AtomicU64>>,
}

impl NotificationTables {
    pub(crate) fn place(size: usize, placement: &mut impl Placement) -> io::Result<Self> {
        Ok(Self {
            rows: placement.place(size, || AtomicU64::new(0))?,
            settled: placement.place(size, || Line(AtomicU64::new(0)))?,
        })
    }
}

/// What a board knows of one origin.
#[derive(Clone, Copy)]
struct Origin {
    /// The exchange whose notification was read last.
    read: u64,
    /// The first cell of its row, once it was found.
    row: Option<NonNull<Cell>>,
}

/// One rank's side of the exchange. A world has one board for each rank, all created together.
pub(crate) struct NotificationBoard<const SETS: usize = 2> {
    rank: usize,
    size: usize,
    /// The exchange published last; 0 before the first.
    exchange: u64,
    /// Notifications of that exchange that this rank has not read.
    unread: usize,
    origins: Vec<Origin>,
    drafts: Vec<Notification>,
    /// The cells of this rank, `[set][target]`, once it has published.
    row: Option<SharedSlice<Cell>>,
    tables: NotificationTables,
}

// SAFETY: rows belong to their ranks, which keep them alive until all boards are gone, and are bound to no thread.
unsafe impl<const SETS: usize> Send for NotificationBoard<SETS> {}

impl<const SETS: usize> NotificationBoard<SETS> {
    /// Creates the board of `rank`; a rank has one.
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
    /// There is no room for the cells of this rank: nothing was published.
    #[inline(always)]
    pub(crate) fn publish(&mut self, word: u64, placement: &mut impl Placement) -> io::Result<()> {
        assert!(self.unread == 0, "published before every notification of the previous exchange was read");
        if self.row.is_none() {
            self.make_row(placement)?;
        }
        let cells = self.row.as_ref().expect("`make_row` has made one");
        self.exchange += 1;
        self.unread = self.size - 1;
        self.origins[self.rank].read = self.exchange;
        let first = Self::set(self.exchange) * self.size;
        // The other ranks first: they may be waiting.
        for to in (self.rank + 1..self.size).chain(0..=self.rank) {
            let cell = &cells[first + to];
            let Notification { flags, count, address, inline, .. } = self.drafts[to];
            // SAFETY: only this board writes this cell, and its target has finished with it (see `Cell`).
            cell.notification.with_mut(|notification| unsafe {
                *notification = Notification { word, flags, count, address, inline }
            });
            cell.exchange.store(self.exchange, Ordering::Release); // the load in `arrived`
        }
        Ok(())
    }

    #[cold]
    fn make_row(&mut self, placement: &mut impl Placement) -> io::Result<()> {
        let cell =
            || Cell { notification: UnsafeCell::new(Notification::default()), exchange: AtomicU64::new(0) };
        let row = placement.place(SETS * self.size, cell)?;
        self.origins[self.rank].row = NonNull::new(row.address() as *mut Cell);
        self.tables.rows[self.rank].store(row.address(), Ordering::Release); // the load in `find_row`
        self.row = Some(row);
        Ok(())
    }

    /// Returns what other ranks may still read when this board is gone.
    pub(crate) fn take_kept(&mut self) -> Option<KeepAlive> {
        self.row.take().map(SharedSlice::into_kept)
    }

    /// Returns whether the notification of `from` of this exchange has arrived.
    #[inline]
    pub(crate) fn arrived(&mut self, from: usize) -> bool {
        if self.origins[from].read == self.exchange {
            return self.exchange != 0;
        }
        let Some(cell) = self.cell(from) else { return self.find_row(from) && self.arrived(from) };
        let arrived = cell.exchange.load(Ordering::Acquire) == self.exchange; // the store in `publish`
        if arrived {
            self.origins[from].read = self.exchange;
            self.unread -= 1;
        }
        arrived
    }

    /// Returns the notification of `from`, if it has arrived.
    #[inline]
    pub(crate) fn read(&mut self, from: usize) -> Option<&Notification> {
        if !self.arrived(from) {
            return None;
        }
        // SAFETY: the notification has arrived, and `from` does not write the cell before this board publishes again,
        // which the reference does not outlive (see `Cell`).
        self.cell(from)?.notification.with(|notification| Some(unsafe { &*notification }))
    }

    /// Returns whether `from` has a row now; it was not known to have one.
    #[cold]
    fn find_row(&mut self, from: usize) -> bool {
        let row = self.tables.rows[from].load(Ordering::Acquire) as *mut Cell; // the store in `make_row`
        self.origins[from].row = NonNull::new(row);
        self.origins[from].row.is_some()
    }

    #[inline]
    pub(crate) fn settle(&mut self) {
        self.tables.settled[self.rank].0.store(self.exchange, Ordering::Release); // the load in `settled`
    }

    #[inline]
    pub(crate) fn settled(&self, from: usize) -> bool {
        self.tables.settled[from].0.load(Ordering::Acquire) >= self.exchange // the store in `settle`
    }

    /// Returns the cell in which `origin` notifies this rank of this exchange, once the row of `origin` was found.
    #[inline]
    fn cell(&self, origin: usize) -> Option<&Cell> {
        let at = Self::set(self.exchange) * self.size + self.rank;
        // SAFETY: a row has `SETS * size` cells, written before `origin` reported the row's address; it is kept until all
        // boards are gone.
        self.origins[origin].row.map(|row| unsafe { row.add(at).as_ref() })
    }

    #[inline]
    fn set(exchange: u64) -> usize {
        (exchange % SETS as u64) as usize
    }
}
