//! Collectives by hand: pinned threads, one barrier, and arrays that all threads reach.
//!
//! Each thread has two copies of an array for its own elements, and the two copies take turns. So
//! one barrier after each write is enough: before a thread writes a copy again, it has passed a
//! barrier that follows all reads of that copy. The elements are `f64`, and sums follow a balanced
//! tree.

use super::team::{Beat, Words, team};
use std::time::Duration;

/// The arrays of the threads' own elements, `[copy][thread][element]`, and the common array to
/// which all threads contribute, `[copy][element]`.
struct Arrays {
    words: Words,
    ranks: usize,
    len: usize,
}

impl Arrays {
    fn new(ranks: usize, len: usize) -> Self {
        Self { words: Words::new(2 * (ranks + 1) * len), ranks, len }
    }

    /// Returns copy `copy` of the array of thread `rank`. If `rank` is the number of threads, this
    /// is the common array.
    fn of(&self, copy: u64, rank: usize) -> *mut f64 {
        let at = (copy as usize % 2 * (self.ranks + 1) + rank) * self.len;
        // SAFETY: the element is inside the allocation, which has two copies of the array of each
        // thread and of the common array.
        unsafe { self.words.start().add(at).cast() }
    }

    /// Writes this thread's elements.
    fn write(&self, copy: u64, rank: usize, mine: &[f64]) {
        // SAFETY: `mine` is as long as the array. Only this thread writes the array, and no thread
        // reads it before the next barrier.
        unsafe { std::ptr::copy_nonoverlapping(mine.as_ptr(), self.of(copy, rank), mine.len()) };
    }

    /// Returns the elements that `rank` wrote before the last barrier.
    fn read(&self, copy: u64, rank: usize) -> &[f64] {
        // SAFETY: the array was written before the last barrier, and no thread writes it again
        // before the next barrier.
        unsafe { std::slice::from_raw_parts(self.of(copy, rank), self.len) }
    }

    /// Sums elements `first..` of all threads, in the order of the tree, into `into`.
    fn sum(&self, copy: u64, first: usize, into: &mut [f64]) {
        match self.ranks {
            2 => {
                let (a, b) = (&self.read(copy, 0)[first..], &self.read(copy, 1)[first..]);
                into.iter_mut().zip(a.iter().zip(b)).for_each(|(into, (a, b))| *into = a + b);
            }
            _ => {
                let [a, b, c, d] = [0, 1, 2, 3].map(|rank| &self.read(copy, rank)[first..][..into.len()]);
                for (i, into) in into.iter_mut().enumerate() {
                    *into = (a[i] + b[i]) + (c[i] + d[i]);
                }
            }
        }
    }
}

fn run(
    ranks: usize,
    len: usize,
    n: u64,
    call: impl Fn(&mut Beat<'_>, &Arrays, &mut [f64]) + Sync,
) -> Duration {
    let arrays = Arrays::new(ranks, len);
    team(ranks, n, |beat, iterations| {
        let mut mine = vec![beat.me as f64; len];
        (0..iterations).for_each(|_| call(beat, &arrays, &mut mine));
        std::hint::black_box(&mine);
    })
}

/// Sums the elements of all threads. If there are few elements, each thread sums all of them.
/// Otherwise each thread sums one block, and then reads the blocks of all threads.
pub fn allreduce(ranks: usize, len: usize, iterations: u64) -> Duration {
    run(ranks, len, iterations, |beat, arrays, mine| {
        let copy = beat.beats();
        if len * 8 <= 4096 {
            arrays.write(copy, beat.me, mine);
            beat.wait();
            arrays.sum(copy, 0, mine);
            return;
        }
        // This call has two barriers, so half the number of barriers passed chooses the copy.
        let copy = copy / 2;
        arrays.write(copy, beat.me, mine);
        beat.wait();
        let (from, to) = (len * beat.me / ranks, len * (beat.me + 1) / ranks);
        // SAFETY: this is this thread's block of the common array, which no other thread reads
        // before the next barrier.
        let block = unsafe { std::slice::from_raw_parts_mut(arrays.of(copy, ranks).add(from), to - from) };
        arrays.sum(copy, from, block);
        beat.wait();
        mine.copy_from_slice(arrays.read(copy, ranks));
    })
}

/// Gives all threads the elements of thread 0.
pub fn broadcast(ranks: usize, len: usize, iterations: u64) -> Duration {
    run(ranks, len, iterations, |beat, arrays, mine| {
        let copy = beat.beats();
        if beat.me == 0 {
            arrays.write(copy, 0, mine);
        }
        beat.wait();
        if beat.me != 0 {
            mine.copy_from_slice(arrays.read(copy, 0));
        }
    })
}

/// Gives all threads the elements of all threads, `len` elements of each.
pub fn allgather(ranks: usize, len: usize, iterations: u64) -> Duration {
    let arrays = Arrays::new(ranks, len);
    team(ranks, iterations, |beat, iterations| {
        let mine = vec![beat.me as f64; len];
        let mut all = vec![0.0; ranks * len];
        for _ in 0..iterations {
            let copy = beat.beats();
            arrays.write(copy, beat.me, &mine);
            beat.wait();
            all.chunks_exact_mut(len)
                .enumerate()
                .for_each(|(rank, all)| all.copy_from_slice(arrays.read(copy, rank)));
        }
        std::hint::black_box(&all);
    })
}
