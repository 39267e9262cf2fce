//! The same simulation by hand, for comparison. Threads share the grid, and each thread computes
//! some of the rows. After each step, they meet at a barrier. No program that divides the terrain
//! among cores can be much faster than this one. It runs in one process only.

use super::serial::Steps;
use fencepost_examples_support::pin;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Two grids that alternate: each step reads one of them and writes the other.
struct Grids {
    cells: [*mut f64; 2],
    len: usize,
    columns: usize,
}

// SAFETY: a thread writes only its own rows of one grid. It reads rows of other threads only in the
// other grid, which no thread writes in the same step: see `run`.
unsafe impl Sync for Grids {}

impl Grids {
    /// # Safety
    /// No thread writes these rows while the slice lives.
    unsafe fn rows(&self, grid: usize, rows: Range<usize>) -> &[f64] {
        assert!(rows.end * self.columns <= self.len);
        // SAFETY: the rows are in the grid, and the caller guarantees that no thread writes them.
        unsafe {
            let first = self.cells[grid].add(rows.start * self.columns);
            std::slice::from_raw_parts(first, rows.len() * self.columns)
        }
    }

    /// # Safety
    /// No other code reads or writes this row while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "threads share the grids; each writes rows of its own")]
    unsafe fn row_mut(&self, grid: usize, row: usize) -> &mut [f64] {
        assert!((row + 1) * self.columns <= self.len);
        // SAFETY: the row is in the grid, and the caller guarantees that only this thread uses it.
        unsafe {
            let first = self.cells[grid].add(row * self.columns);
            std::slice::from_raw_parts_mut(first, self.columns)
        }
    }
}

/// A barrier for threads. A thread that waits spins for a moment and then yields, because the other
/// threads need its core if there are more threads than cores.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
}

impl Barrier {
    /// Waits until all threads have arrived. `round` is the number of the wait, counted from 1.
    fn wait(&self, round: usize) {
        // Everything that a thread wrote before it arrived is visible to all threads after they
        // leave (AcqRel, Acquire).
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < round * self.threads {
            spins += 1;
            if spins < 200 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// Runs all steps over a grid of `rows` by `columns` cells, on `threads` threads. `rows` and
/// `columns` must be at least 2. Returns the time of the slowest thread.
pub fn run(steps: &Steps, heights: &mut Vec<f64>, rows: usize, columns: usize, threads: usize) -> Duration {
    let mut next = heights.clone();
    let grids = Grids { cells: [heights.as_mut_ptr(), next.as_mut_ptr()], len: heights.len(), columns };
    let barrier = Barrier { threads, arrived: AtomicUsize::new(0) };
    // Thread t computes rows first(t)..first(t + 1). No thread computes the edge of the terrain.
    let first = |thread: usize| 1 + (rows - 2) * thread / threads;
    let work = |thread: usize| {
        pin(thread);
        barrier.wait(1);
        let clock = Instant::now();
        for step in 0..steps.count as usize {
            let (from, to) = (step % 2, (step + 1) % 2);
            for row in first(thread)..first(thread + 1) {
                // SAFETY: in this step all threads only read grid `from`, and only this thread uses
                // this row of grid `to`. The barrier separates this step from the others.
                unsafe {
                    let near = [row - 1, row, row + 1].map(|row| grids.rows(from, row..row + 1));
                    super::serial::row(steps, near, grids.row_mut(to, row));
                }
            }
            barrier.wait(step + 2);
        }
        clock.elapsed()
    };
    let work = &work;
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    if steps.count % 2 == 1 {
        std::mem::swap(heights, &mut next);
    }
    times.into_iter().max().unwrap_or_default()
}
