//! [`Watched`] by protection: the program's accesses to the pages fault, and the handlers record
//! the loads.

use super::pages::Pages;
use super::{signals, table};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements that are mapped a second time, at [`base`](Self::base). Only the program of their owner
/// uses this mapping.
pub struct Watched {
    /// Declared before `pages`, so that the slot is freed before the pages are unmapped.
    slot: table::Taken,
    pages: Pages,
    /// The offset of the elements in the pages.
    from: usize,
    /// A bit for each element, which is set when the element is loaded.
    loaded: Vec<AtomicU64>,
}

impl Watched {
    /// Returns elements of `size` bytes each. They fill `bytes` bytes of these pages, beginning at
    /// offset `from`. Returns `None` if they cannot be watched.
    pub(crate) fn new(pages: Pages, from: usize, bytes: usize, size: usize) -> Option<Self> {
        if bytes == 0 || size == 0 || !signals::are_ours() {
            return None;
        }
        let loaded: Vec<AtomicU64> =
            (0..bytes.div_ceil(size).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let first = pages.addresses().start + from;
        // SAFETY: the slot is dropped before the bits and the pages, and there is a bit for each
        // element.
        let slot = unsafe { table::take(pages.addresses(), first..first + bytes, size, loaded.as_ptr()) }?;
        Some(Self { slot, pages, from, loaded })
    }

    /// Returns a pointer to the elements in the second mapping, which the program uses.
    pub fn base(&self) -> *mut u8 {
        // SAFETY: the elements begin at this offset within the pages.
        unsafe { self.pages.first().as_ptr().add(self.from) }
    }

    /// Begins to watch: loads by the program are seen from now on, unless the signals no longer
    /// reach the handlers. The program accesses nothing during this call. Returns whether loads are
    /// seen.
    pub fn begin(&self) -> bool {
        self.loaded.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
        let are_ours = signals::are_ours();
        match are_ours {
            true => self.slot.arm(),
            false => self.open(),
        }
        are_ours
    }

    /// Ends watching: no more loads are seen.
    pub fn open(&self) {
        if self.slot.is_armed() {
            self.slot.open();
        }
    }

    /// Returns the elements that were loaded since [`begin`](Self::begin), as ascending runs. The
    /// program accesses no element during this call.
    pub fn loaded(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (at, bits) in self.loaded.iter().enumerate() {
            let mut bits = bits.load(Ordering::Relaxed);
            while bits != 0 {
                let element = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                match runs.last_mut() {
                    Some(run) if run.end == element => run.end += 1,
                    _ => runs.push(element..element + 1),
                }
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn loads_are_seen_and_stores_are_not_and_both_mappings_are_one_memory() {
        let (bytes, watched) = Memory::heap().watched(64 + 8 * 2000, 64, 8).expect("it is mapped");
        let (own, seen) = (bytes.at(64, 8 * 2000).cast::<u64>(), watched.base().cast::<u64>());
        let load = |at: usize| {
            // SAFETY: the element exists, and only this thread accesses the elements.
            unsafe { seen.add(at).read_volatile() }
        };
        for _ in 0..2 {
            watched.begin();
            assert_eq!(watched.loaded(), []);
            // SAFETY: as above.
            unsafe { seen.add(9).write_volatile(5) };
            // SAFETY: as above.
            unsafe { own.add(1000).write_volatile(7) };
            assert_eq!((load(3), load(1000), load(1001), load(3)), (0, 7, 0, 0));
            // SAFETY: as above.
            assert_eq!(unsafe { own.add(9).read_volatile() }, 5);
            assert_eq!(watched.loaded(), [3..4, 1000..1002]);
            watched.open();
            load(4);
            assert_eq!(watched.loaded(), [3..4, 1000..1002], "it is open");
        }
    }

    #[test]
    fn loads_of_threads_and_copies_between_watched_memory_are_seen() {
        const LEN: usize = 600;
        let made: Vec<_> =
            (0..2).map(|_| Memory::heap().watched(64 + 8 * LEN, 64, 8).expect("mapped")).collect();
        assert!(made.iter().all(|(_, watched)| watched.begin()));
        let [from, to] = [0, 1].map(|which| made[which].1.base().cast::<u64>());
        // SAFETY: there are `LEN` elements, and nobody writes them.
        let all = unsafe { std::slice::from_raw_parts(from.cast_const(), LEN) };
        // The threads run one after the other, because not all loads are seen if two threads load
        // from one page at the same time.
        for part in all.chunks(LEN / 4) {
            std::thread::scope(|scope| {
                scope.spawn(move || assert!(part.iter().step_by(2).all(|value| *value == 0)));
            });
        }
        // Threads that load at the same time are not stopped, and read the correct values.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(all.iter().step_by(2).sum::<u64>(), 0));
            }
        });
        let loaded = made[0].1.loaded();
        assert_eq!((loaded.first(), loaded.last()), (Some(&(0..1)), Some(&(LEN - 2..LEN - 1))));
        assert!(loaded.iter().flat_map(Clone::clone).count() == LEN / 2, "{loaded:?}");
        made[0].1.begin();
        // SAFETY: both have at least 10 elements, and only this thread accesses them.
        unsafe { to.copy_from_nonoverlapping(from, 10) };
        assert_eq!(made[1].1.loaded(), [], "they are stored");
        assert!(made[0].1.loaded().contains(&(0..1)));
    }

    #[test]
    fn long_copies_are_seen_whole() {
        const LEN: usize = 100_000;
        let (_bytes, watched) = Memory::heap().watched(64 + LEN, 64, 1).expect("it is mapped");
        watched.begin();
        let (first, count, mut to) = (5_000, 80_000_usize, vec![1_u8; LEN]);
        // SAFETY: both have at least `count` bytes from these pointers on.
        unsafe {
            std::arch::asm!("rep movsb", inout("rsi") watched.base().add(first) => _, inout("rdi") to.as_mut_ptr() => _,
                inout("rcx") count => _, options(nostack, preserves_flags));
        }
        assert!(to[..count].iter().all(|&byte| byte == 0) && to[count] == 1);
        assert_eq!(watched.loaded().first(), Some(&(first..first + count)));
        assert_eq!(watched.loaded().len(), 1);
    }

    #[test]
    fn a_system_call_fails_where_memory_is_protected_until_it_is_open() {
        let (_bytes, watched) = Memory::heap().watched(64 + 100, 64, 1).expect("it is mapped");
        watched.begin();
        // SAFETY: there are 100 bytes, and nobody writes them.
        let all = unsafe { std::slice::from_raw_parts(watched.base().cast_const(), 100) };
        let (_read, write) = rustix::pipe::pipe().expect("a pipe");
        assert_eq!(rustix::io::write(&write, all), Err(rustix::io::Errno::FAULT));
        assert!(table::open(all[50..].as_ptr(), 10));
        assert_eq!(rustix::io::write(&write, all), Ok(100));
    }
}
