//! The exchange of letters where memory is shared: a matrix of cells, each a cache line that one rank writes and one reads.
//!
//! A cell carries the number of the exchange that its letter belongs to, stored after the letter; the reader waits for
//! the number it is at. There are two sets of cells, used in turn. A rank writes its cells of exchange `e + 2` over those
//! of `e`. It has then read everybody's letter of `e + 1`, which each published after reading those of `e`: nobody reads
//! what is written (W4, W5). One set would not do, as a rank that is first to read all letters of `e` shows.

use std::io;

use crate::Letter;
use crate::shared::slice::{Placed, Places};
use crate::sync::{AtomicU64, Line, Ordering, UnsafeCell};

/// A letter and the number of its exchange: a cache line.
#[repr(C, align(64))]
struct Cell {
    letter: UnsafeCell<Letter>,
    /// The exchange of the letter, from 1 on.
    exchange: AtomicU64,
}

// SAFETY: a cell's letter is written by its origin's desk alone, in `publish`, and read by its target's desk alone, in
// `read`. The read follows the Acquire load of the number that `publish` stored with Release after the letter. The next
// write follows, by the argument at the top, the publishing of a later letter by the target, whose desk had then given
// back the reference that `read` returned, since `publish` takes it by `&mut`.
unsafe impl Sync for Cell {}
// SAFETY: letters are plain data.
unsafe impl Send for Cell {}

/// The cells of one world.
#[derive(Clone)]
pub(crate) struct Matrix {
    /// `[set][origin][target]`.
    cells: Placed<Cell>,
    /// The exchange that each rank has settled last.
    settled: Placed<Line<AtomicU64>>,
}

impl Matrix {
    pub(crate) fn place(size: usize, sets: usize, places: &mut impl Places) -> io::Result<Self> {
        let cell = || Cell { letter: UnsafeCell::new(Letter::default()), exchange: AtomicU64::new(0) };
        Ok(Self {
            cells: places.place(sets * size * size, cell)?,
            settled: places.place(size, || Line(AtomicU64::new(0)))?,
        })
    }
}

/// One rank's side of the exchange. The world has one desk a rank, made together.
pub(crate) struct Desk<const SETS: usize = 2> {
    rank: usize,
    size: usize,
    /// The exchange published last; 0 before the first.
    exchange: u64,
    /// Letters of it that were not read.
    unread: usize,
    /// The exchange that was last read of each rank.
    read: Vec<u64>,
    drafts: Vec<Letter>,
    matrix: Matrix,
}

impl<const SETS: usize> Desk<SETS> {
    /// The desk of `rank`, which has only one.
    pub(crate) fn new(rank: usize, size: usize, matrix: Matrix) -> Self {
        Self {
            rank,
            size,
            exchange: 0,
            unread: 0,
            read: vec![0; size],
            drafts: vec![Letter::default(); size],
            matrix,
        }
    }

    #[inline]
    pub(crate) fn draft(&mut self, to: usize) -> &mut Letter {
        &mut self.drafts[to]
    }

    /// Give every target its letter, with this word.
    #[inline(always)]
    pub(crate) fn publish(&mut self, word: u64) {
        assert!(self.unread == 0, "a letter of the exchange before was not read");
        self.exchange += 1;
        self.unread = self.size - 1;
        self.read[self.rank] = self.exchange;
        let row = self.cell(self.rank, 0);
        // The others first: they may be waiting.
        for to in (self.rank + 1..self.size).chain(0..=self.rank) {
            let cell = &self.matrix.cells[row + to];
            let Letter { flags, count, address, inline, .. } = self.drafts[to];
            // SAFETY: only this desk writes this cell, and its target has done with it (see `Cell`).
            cell.letter
                .with_mut(|letter| unsafe { *letter = Letter { word, flags, count, address, inline } });
            cell.exchange.store(self.exchange, Ordering::Release); // the load in `arrived`
        }
    }

    /// Whether the letter of `from` of this exchange has come.
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

    /// The letter of `from`, if it has come.
    #[inline]
    pub(crate) fn read(&mut self, from: usize) -> Option<&Letter> {
        if !self.arrived(from) {
            return None;
        }
        let cell = &self.matrix.cells[self.cell(from, self.rank)];
        // SAFETY: the letter has come, and `from` does not write the cell before this desk publishes again, which the
        // reference does not outlive (see `Cell`).
        cell.letter.with(|letter| Some(unsafe { &*letter }))
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
