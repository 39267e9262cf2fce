//! The exchange of notifications through shared memory: a matrix of cells, each a cache line that one rank writes and
//! one rank reads.
//!
//! A cell holds the number of the exchange that its notification belongs to, stored after the notification; the reader
//! waits for the number of its own exchange. There are two sets of cells, used in turn. A rank writes its cells of
//! exchange `e + 2` over those of `e`. It has then read every other rank's notification of `e + 1`, which each
//! published after reading those of `e`: nobody reads a cell that is written (W4, W5). One set would not suffice, as
//! the rank that is first to read all notifications of `e` shows.

use std::io;

use crate::Notification;
use crate::shared::slice::{Placement, SharedSlice};
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

/// The cells of one world.
#[derive(Clone)]
pub(crate) struct NotificationMatrix {
    /// `[set][origin][target]`.
    cells: SharedSlice<Cell>,
    /// The exchange that each rank settled last.
    settled: SharedSlice<Line<AtomicU64>>,
}

impl NotificationMatrix {
    pub(crate) fn place(size: usize, sets: usize, placement: &mut impl Placement) -> io::Result<Self> {
        let cell =
            || Cell { notification: UnsafeCell::new(Notification::default()), exchange: AtomicU64::new(0) };
        Ok(Self {
            cells: placement.place(sets * size * size, cell)?,
            settled: placement.place(size, || Line(AtomicU64::new(0)))?,
        })
    }
}

/// One rank's side of the exchange. A world has one board for each rank, all created together.
pub(crate) struct NotificationBoard<const SETS: usize = 2> {
    rank: usize,
    size: usize,
    /// The exchange published last; 0 before the first.
    exchange: u64,
    /// Notifications of that exchange that this rank has not read.
    unread: usize,
    /// The exchange whose notification was read last, by origin.
    read: Vec<u64>,
    drafts: Vec<Notification>,
    matrix: NotificationMatrix,
}

impl<const SETS: usize> NotificationBoard<SETS> {
    /// Creates the board of `rank`; a rank has one.
    pub(crate) fn new(rank: usize, size: usize, matrix: NotificationMatrix) -> Self {
        Self {
            rank,
            size,
            exchange: 0,
            unread: 0,
            read: vec![0; size],
            drafts: vec![Notification::default(); size],
            matrix,
        }
    }

    #[inline]
    pub(crate) fn draft(&mut self, to: usize) -> &mut Notification {
        &mut self.drafts[to]
    }

    /// Publishes every target's notification, with this word.
    #[inline(always)]
    pub(crate) fn publish(&mut self, word: u64) {
        assert!(self.unread == 0, "published before every notification of the previous exchange was read");
        self.exchange += 1;
        self.unread = self.size - 1;
        self.read[self.rank] = self.exchange;
        let row = self.cell(self.rank, 0);
        // The other ranks first: they may be waiting.
        for to in (self.rank + 1..self.size).chain(0..=self.rank) {
            let cell = &self.matrix.cells[row + to];
            let Notification { flags, count, address, inline, .. } = self.drafts[to];
            // SAFETY: only this board writes this cell, and its target has finished with it (see `Cell`).
            cell.notification.with_mut(|notification| unsafe {
                *notification = Notification { word, flags, count, address, inline }
            });
            cell.exchange.store(self.exchange, Ordering::Release); // the load in `arrived`
        }
    }

    /// Returns whether the notification of `from` of this exchange has arrived.
    #[inline]
    pub(crate) fn arrived(&mut self, from: usize) -> bool {
        if self.read[from] == self.exchange {
            return self.exchange != 0;
        }
        let cell = &self.matrix.cells[self.cell(from, self.rank)];
        let arrived = cell.exchange.load(Ordering::Acquire) == self.exchange; // the store in `publish`
        if arrived {
            self.read[from] = self.exchange;
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
        let cell = &self.matrix.cells[self.cell(from, self.rank)];
        // SAFETY: the notification has arrived, and `from` does not write the cell before this board publishes again,
        // which the reference does not outlive (see `Cell`).
        cell.notification.with(|notification| Some(unsafe { &*notification }))
    }

    #[inline]
    pub(crate) fn settle(&mut self) {
        self.matrix.settled[self.rank].0.store(self.exchange, Ordering::Release); // the load in `settled`
    }

    #[inline]
    pub(crate) fn settled(&self, from: usize) -> bool {
        self.matrix.settled[from].0.load(Ordering::Acquire) >= self.exchange // the store in `settle`
    }

    fn cell(&self, origin: usize, target: usize) -> usize {
        let set = (self.exchange % SETS as u64) as usize;
        (set * self.size + origin) * self.size + target
    }
}
