//! [`Watched`] in a build for checking: compiled-in calls mark the bytes that the program loads
//! from the second mapping (`hooks`).
//!
//! All second mappings are in one area, so that a hook finds the mark of an address with two
//! additions.

use super::hooks::{FIRST, LEN, NOWHERE};
use super::pages::Pages;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Elements that are mapped a second time, at [`base`](Self::base). Only the program of their owner
/// uses this mapping.
pub struct Watched {
    room: Room,
    /// The offset of the elements in the room.
    from: usize,
    /// The number of bytes of all elements. `size` is the number of bytes of one element.
    bytes: usize,
    size: usize,
}

impl Watched {
    /// Returns elements of `size` bytes each. They fill `bytes` bytes of these pages, beginning at
    /// offset `from`. Returns `None` if they cannot be watched.
    pub(crate) fn new(pages: Pages, from: usize, bytes: usize, size: usize) -> Option<Self> {
        if bytes == 0 || size == 0 {
            return None;
        }
        let watched = Self { room: Room::of(pages)?, from, bytes, size };
        // SAFETY: there is at least one element, and no reference to the elements exists yet.
        unsafe { watched.base().read_volatile() };
        let is_seen = !watched.loaded().is_empty(); // else no hook is called
        (watched.begin() && is_seen).then_some(watched)
    }

    /// Returns a pointer to the elements in the second mapping, which the program uses.
    pub fn base(&self) -> *mut u8 {
        with_exposed_provenance_mut(self.room.0.start + self.from)
    }

    /// Begins to watch: loads by the program are seen from now on. The program accesses nothing
    /// during this call. Returns whether loads are seen.
    pub fn begin(&self) -> bool {
        // SAFETY: the room has a mark for each byte. The program accesses no element during this
        // call, so no hook accesses the marks.
        unsafe { self.marks().cast::<u8>().write_bytes(0, self.bytes) };
        true
    }

    /// Ends watching. Loads are still marked, but the marks are not read, and
    /// [`begin`](Self::begin) clears them.
    pub fn open(&self) {}

    /// Returns the elements that were loaded since [`begin`](Self::begin), as ascending runs. The
    /// program accesses no element during this call.
    pub fn loaded(&self) -> Vec<Range<usize>> {
        // SAFETY: as in `begin`; marks are mapped in whole pages.
        let words = unsafe { std::slice::from_raw_parts(self.marks(), self.bytes.div_ceil(8)) };
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let mut marked = u64::from_le(*word);
            while marked != 0 {
                let bit = marked.trailing_zeros() as usize;
                marked &= !(0xff << (bit / 8 * 8));
                let element = (at * 8 + bit / 8) / self.size;
                match runs.last_mut() {
                    Some(run) if run.end > element => {}
                    Some(run) if run.end == element => run.end += 1,
                    _ => runs.push(element..element + 1),
                }
            }
        }
        runs
    }

    /// Returns the marks of the elements, one byte for each byte of an element. The elements and
    /// the marks are aligned to 64 bytes.
    fn marks(&self) -> *mut u64 {
        with_exposed_provenance_mut(self.room.0.start + self.from + LEN)
    }
}

/// Returns whether protected memory was opened. This build protects no memory.
pub(crate) fn open(_first: *const u8, _len: usize) -> bool {
    false
}

/// The ranges of addresses in the area that are in use, in ascending order.
static TAKEN: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// A range of addresses in the area where pages are mapped. It becomes free when this is dropped.
struct Room(Range<usize>);

impl Room {
    /// Moves these pages to the area. Returns `None` if that is not possible.
    fn of(pages: Pages) -> Option<Self> {
        let from = pages.addresses();
        let taken = &mut *TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let area = area()?;
        let ends = std::iter::once(area.start).chain(taken.iter().map(|room| room.end));
        let next = taken.iter().map(|room| room.start).chain([area.end]);
        let (at, start) = ends
            .zip(next)
            .enumerate()
            .find(|(_, (end, next))| next - end >= from.len())
            .map(|(at, gap)| (at, gap.0))?;
        // SAFETY: the pages are mapped, and nobody has a pointer into them yet. All used addresses
        // of the area are in rooms, and this range is in none of them.
        unsafe {
            let to = with_exposed_provenance_mut(start);
            let old = with_exposed_provenance_mut(from.start);
            mm::mremap_fixed(old, from.len(), from.len(), MremapFlags::MAYMOVE, to).ok()?;
        }
        std::mem::forget(pages); // they were moved
        let room = start..start + from.len();
        taken.insert(at, room.clone());
        Some(Self(room))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let taken = &mut *TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let len = self.0.len();
        // SAFETY: the room was mapped in `of`, and every value with a pointer into the room keeps
        // it alive. The first call returns the marks to the system, so they are zero when they are
        // used again.
        let is_free = unsafe {
            let marks = with_exposed_provenance_mut(self.0.start + LEN);
            mm::madvise(marks, len, Advice::LinuxDontNeed).is_ok()
                && reserve(with_exposed_provenance_mut(self.0.start), len, MapFlags::FIXED).is_ok()
        };
        taken.retain(|room| !is_free || *room != self.0);
    }
}

/// Reserves `len` bytes of addresses, which cannot be accessed. They begin at `first` if `fixed` is
/// `FIXED`; otherwise the kernel chooses them.
///
/// # Safety
/// If the addresses are fixed, the mapping replaces existing mappings there, so these must be
/// unused.
unsafe fn reserve(first: *mut c_void, len: usize, fixed: MapFlags) -> rustix::io::Result<*mut c_void> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | fixed;
    // SAFETY: the caller's promise.
    unsafe { mm::mmap_anonymous(first, len, ProtFlags::empty(), flags) }
}

/// Returns the addresses of the area. The first call reserves them. Returns `None` if they cannot
/// be reserved. The caller holds `TAKEN`.
fn area() -> Option<Range<usize>> {
    let known = FIRST.load(Ordering::Relaxed);
    if known != NOWHERE {
        return Some(known..known + LEN);
    }
    // SAFETY: the kernel chooses an address where nothing is mapped, for the area and its marks.
    let first = unsafe {
        let first = reserve(std::ptr::null_mut(), 2 * LEN, MapFlags::empty()).ok()?;
        mm::mprotect(first.byte_add(LEN), LEN, MprotectFlags::READ | MprotectFlags::WRITE).ok()?;
        first.expose_provenance()
    };
    FIRST.store(first, Ordering::Relaxed);
    Some(first..first + LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn each_element_that_is_loaded_copied_or_compared_is_seen_and_no_store_is() {
        const COUNT: usize = 1000;
        let (bytes, watched) = Memory::heap().watched(64 + 4 * COUNT, 64, 4).expect("it is mapped");
        let (own, first) = (bytes.at(64, 4 * COUNT).cast::<u32>(), watched.base().cast::<u32>());
        assert!(watched.begin());
        let own = |at: usize| {
            // SAFETY: the element exists, and only this thread accesses the elements.
            unsafe { own.add(at).read_volatile() }
        };
        // SAFETY: as above.
        let seen = unsafe { std::slice::from_raw_parts_mut(first, COUNT) };
        let seen = std::hint::black_box(seen);
        seen[7] = 5;
        assert_eq!((own(7), watched.loaded()), (5, vec![]), "both are one memory");
        assert_eq!(seen[3], 0);
        seen[7] += 1;
        assert_eq!(seen[100..200].to_vec(), [0; 100]);
        let four: [u32; 4] = seen[300..304].try_into().expect("four");
        assert_eq!(std::hint::black_box(four), [0; 4]);
        assert_eq!(seen[400..405], [0; 5]);
        assert_eq!(seen[500..700].iter().sum::<u32>(), 0);
        assert_eq!(watched.loaded(), [3..4, 7..8, 100..200, 300..304, 400..405, 500..700]);
        watched.begin();
        assert_eq!((watched.loaded(), own(7)), (vec![], 6));
        let other = &[1; 100][..];
        assert!(seen[20..120] != *other);
        assert_eq!(watched.loaded(), std::slice::from_ref(&(20..21)), "the first one differs");
    }

    #[test]
    fn rooms_are_used_again_without_what_was_marked() {
        let make = || Memory::heap().watched(64 + 8 * 600, 64, 8).expect("it is mapped").1;
        let load = |watched: &Watched, at: usize| {
            // SAFETY: the element exists, and only this thread accesses the elements.
            unsafe { watched.base().cast::<u64>().add(at).read_volatile() }
        };
        let made: Vec<Watched> = (0..4).map(|_| make()).collect();
        made.iter().enumerate().for_each(|(at, watched)| {
            watched.begin();
            load(watched, at);
        });
        for (at, watched) in made.iter().enumerate() {
            assert_eq!(watched.loaded(), std::slice::from_ref(&(at..at + 1)));
        }
        drop(made);
        assert_eq!(make().loaded(), []);
    }
}
