//! Pinned threads, their barrier, and the memory that they share.

use fencepost_examples_support::pin;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A value in cache lines of its own. A thread that writes the value slows down only threads that
/// read it.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// One thread's part of the barrier of its team.
pub struct Beat<'a> {
    /// The number of this thread.
    pub me: usize,
    lines: &'a [Line],
    beats: u64,
}

impl Beat<'_> {
    /// Waits for all threads of the team.
    #[inline(always)]
    pub fn wait(&mut self) {
        self.beats += 1;
        // The Release pairs with the Acquire below: a thread that has read this beat sees
        // everything that this thread wrote before.
        self.lines[self.me].0.store(self.beats, Ordering::Release);
        for line in self.lines {
            while line.0.load(Ordering::Acquire) < self.beats {
                std::hint::spin_loop();
            }
        }
    }

    /// Returns the number of barriers that this thread has passed.
    pub fn beats(&self) -> u64 {
        self.beats
    }
}

/// Runs `body` on `ranks` pinned threads, and returns the time of the slowest.
///
/// Warms up with a quarter of the iterations, and then times all of them.
pub fn team(ranks: usize, iterations: u64, body: impl Fn(&mut Beat<'_>, u64) + Sync) -> Duration {
    let lines: Vec<Line> = (0..ranks).map(|_| Line::default()).collect();
    let start = Barrier::new(ranks);
    let (lines, start, body) = (&lines[..], &start, &body);
    std::thread::scope(|scope| {
        let work = |me| {
            move || {
                pin(me);
                let mut beat = Beat { me, lines, beats: 0 };
                body(&mut beat, iterations.div_ceil(4));
                start.wait();
                let clock = Instant::now();
                body(&mut beat, iterations);
                clock.elapsed()
            }
        };
        let threads: Vec<_> = (0..ranks).map(|me| scope.spawn(work(me))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("limits do not panic"))
            .max()
            .unwrap_or_default()
    })
}

/// Memory that several threads read and write through raw pointers. A barrier separates the
/// accesses of different threads.
pub struct Words {
    start: *mut u64,
    layout: Layout,
}

// SAFETY: `Words` only returns an address. Code that reads or writes through the address has its
// own argument why no two threads access a word at once.
unsafe impl Sync for Words {}
// SAFETY: as above, and the allocation is not tied to a thread.
unsafe impl Send for Words {}

impl Words {
    /// Creates `len` zeros, on pages of their own. The pages have been written once, so that they
    /// exist.
    pub fn new(len: usize) -> Self {
        let layout = Layout::array::<u64>(len.max(1)).and_then(|array| array.align_to(4096));
        let layout = layout.expect("fits memory");
        // SAFETY: the layout is not of size zero.
        let start = unsafe { alloc_zeroed(layout) }.cast::<u64>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        for at in (0..len).step_by(512) {
            // SAFETY: the word is inside the allocation, which no other thread can access yet.
            unsafe { start.add(at).write_volatile(0) };
        }
        Self { start, layout }
    }

    /// Returns the address of the first word.
    #[inline(always)]
    pub fn start(&self) -> *mut u64 {
        self.start
    }

    /// Returns the words as numbers, for tests.
    pub fn to_vec(&mut self) -> Vec<u64> {
        // SAFETY: all words are initialised, and `&mut self` proves that no team works on them.
        unsafe { std::slice::from_raw_parts(self.start, self.layout.size() / 8) }.to_vec()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.start.cast(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_the_beat_before_all_have_reached_it() {
        let reached: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        team(3, 40, |beat, iterations| {
            for _ in 0..iterations {
                reached[beat.me].fetch_add(1, Ordering::Relaxed);
                beat.wait();
                assert!(reached.iter().all(|count| count.load(Ordering::Relaxed) > beat.beats() - 1));
            }
        });
        assert!(reached.iter().all(|count| count.load(Ordering::Relaxed) == 50));
    }
}
