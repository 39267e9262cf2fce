//! [`Arena`]: one rank's part of the segment, from which only that rank allocates.
//!
//! What is free is known to the owner alone, outside of the segment, so a rank that dies leaves nothing half changed.
//! Pages are asked of the machine before they are used, and given back when they are free; some of them are kept, since
//! a fresh page costs ten times its copy. Small pieces come in sizes that are powers of two, from shelves that stay.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::shared::slice::{Placed, Places};
use crate::shm::budget::Refusal;
use crate::shm::extents::Extents;
use crate::shm::mapping::{Mapping, PAGE};

/// Sizes of small pieces: `SMALLEST << class`.
const SMALLEST: u64 = 128;
const CLASSES: usize = 8;
const LARGEST: u64 = SMALLEST << (CLASSES - 1);

/// How much a shelf of small pieces holds.
const SHELF: u64 = 4 * LARGEST;

/// Free pages that are kept at most.
const KEEP: u64 = 64 << 20;

/// One rank's part of the segment.
pub struct Arena {
    mapping: Arc<Mapping>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free pages that the machine has not given, or has back: they are zero when they come.
    clean: Extents,
    /// Free pages that are kept.
    dirty: Extents,
    /// Free small pieces, by class.
    small: [Vec<u64>; CLASSES],
}

/// Bytes of an arena, given back when dropped: by then nobody else reads them.
pub struct Piece {
    arena: Arc<Arena>,
    /// From the beginning of the segment.
    offset: u64,
    bytes: u64,
}

impl Arena {
    /// The arena over these bytes of the segment.
    pub(super) fn new(mapping: Arc<Mapping>, offset: u64, bytes: u64) -> Self {
        let mut state = State::default();
        state.clean.give(offset, bytes);
        Self { mapping, state: Mutex::new(state) }
    }

    /// `bytes` bytes on a multiple of 128.
    ///
    /// # Errors
    /// What was asked for, and what there is.
    pub(crate) fn piece(self: &Arc<Self>, bytes: u64, zeroed: bool) -> Result<Piece, Refusal> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, zero) = match class(bytes) {
            Some(class) => (state.small(class, &self.mapping)?, false),
            None => state.pages(pages(bytes), &self.mapping)?,
        };
        drop(state);
        let piece = Piece { arena: Arc::clone(self), offset, bytes };
        if zeroed && !zero {
            // SAFETY: `bytes` bytes that were just allocated.
            unsafe { piece.base().write_bytes(0, bytes as usize) };
        }
        Ok(piece)
    }

    /// How much is free that the machine has, and how much that it has not.
    #[cfg(test)]
    fn free(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.clean.total(), state.dirty.total())
    }
}

/// Which small pieces hold `bytes`, if any do.
fn class(bytes: u64) -> Option<usize> {
    // Not before the bound was looked at: above 2^63 there is no next power of two.
    (bytes <= LARGEST).then(|| (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).trailing_zeros() as usize)
}

fn pages(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE - 1) / PAGE * PAGE
}

impl State {
    fn small(&mut self, class: usize, mapping: &Mapping) -> Result<u64, Refusal> {
        if let Some(offset) = self.small[class].pop() {
            return Ok(offset);
        }
        let (shelf, _) = self.pages(SHELF, mapping)?;
        let size = SMALLEST << class;
        self.small[class].extend((1..SHELF / size).rev().map(|i| shelf + i * size));
        Ok(shelf)
    }

    /// Whole pages that the machine has given; and whether they are zero.
    fn pages(&mut self, bytes: u64, mapping: &Mapping) -> Result<(u64, bool), Refusal> {
        if let Some(offset) = self.dirty.take(bytes) {
            return Ok((offset, false));
        }
        let granted = self.clean.take(bytes).map(|offset| (offset, mapping.reserve(offset, bytes)));
        match granted {
            Some((offset, Ok(()))) => return Ok((offset, true)),
            Some((offset, Err(refusal))) => {
                self.clean.give(offset, bytes);
                if self.dirty.total() == 0 {
                    return Err(refusal);
                }
            }
            None => {}
        }
        // What is kept is room for it, or stands between it and room.
        self.give_back(mapping);
        let left = self.clean.total();
        let by = "of what was reserved for this rank";
        let offset = self.clean.take(bytes).ok_or(Refusal { asked: bytes, there_is: left, by })?;
        match mapping.reserve(offset, bytes) {
            Ok(()) => Ok((offset, true)),
            Err(refusal) => {
                self.clean.give(offset, bytes);
                Err(refusal)
            }
        }
    }

    /// Give the machine back all pages that are kept.
    fn give_back(&mut self, mapping: &Mapping) {
        for (offset, bytes) in self.dirty.drain() {
            if mapping.give_back(offset, bytes) {
                self.clean.give(offset, bytes);
            } else {
                self.dirty.give(offset, bytes);
            }
        }
    }
}

impl Piece {
    /// The first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.arena.mapping.at(self.offset)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut state = self.arena.state.lock().unwrap_or_else(PoisonError::into_inner);
        match class(self.bytes) {
            Some(class) => state.small[class].push(self.offset),
            None => {
                state.dirty.give(self.offset, pages(self.bytes));
                if state.dirty.total() > KEEP {
                    state.give_back(&self.arena.mapping);
                }
            }
        }
    }
}

/// Places values in an arena, a piece each.
pub(super) struct Pieces(pub(super) Arc<Arena>);

impl Places for Pieces {
    fn place<T: Send + Sync + 'static>(
        &mut self,
        len: usize,
        mut make: impl FnMut() -> T,
    ) -> io::Result<Placed<T>> {
        const { assert!(align_of::<T>() <= SMALLEST as usize && !std::mem::needs_drop::<T>()) };
        let piece = self.0.piece((len * size_of::<T>()) as u64, false)?;
        let first = NonNull::new(piece.base().cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        for i in 0..len {
            // SAFETY: the piece has room for `len` values, on a multiple of 128.
            unsafe { first.add(i).write(make()) };
        }
        // SAFETY: they were just written, and stay while the piece does.
        Ok(unsafe { Placed::new(first, len, Arc::new(piece)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::Segment;
    use proptest::prelude::*;

    fn arena() -> Arc<Arena> {
        Segment::create(1).unwrap().arena(0)
    }

    fn fill(piece: &Piece, value: u8) {
        // SAFETY: the piece's own bytes.
        unsafe { piece.base().write_bytes(value, piece.bytes as usize) };
    }

    fn holds(piece: &Piece, value: u8) -> bool {
        // SAFETY: the piece's own bytes, written or zero.
        let bytes = unsafe { std::slice::from_raw_parts(piece.base(), piece.bytes as usize) };
        bytes.iter().all(|&byte| byte == value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pieces_are_apart_keep_what_is_in_them_and_begin_zeroed_where_asked(
            steps in prop::collection::vec((0u64..100_000, any::<prop::sample::Index>(), 0..3), 1..60),
        ) {
            let arena = arena();
            let mut pieces: Vec<(Piece, u8)> = Vec::new();
            for (n, (bytes, which, step)) in steps.into_iter().enumerate() {
                if step == 0 && !pieces.is_empty() {
                    let (piece, value) = pieces.swap_remove(which.index(pieces.len()));
                    prop_assert!(holds(&piece, value));
                    continue;
                }
                let piece = arena.piece(bytes >> (n % 8), step == 1).unwrap();
                prop_assert!((piece.base() as usize).is_multiple_of(128));
                prop_assert!(step != 1 || holds(&piece, 0));
                fill(&piece, n as u8 + 1);
                pieces.push((piece, n as u8 + 1));
            }
            for (piece, value) in &pieces {
                prop_assert!(holds(piece, *value));
            }
        }
    }

    #[test]
    fn what_is_free_goes_back_to_the_machine_beyond_what_is_kept() {
        let arena = arena();
        let (all, _) = arena.free();
        let pieces: Vec<Piece> = (0..5).map(|_| arena.piece(KEEP / 4, false).unwrap()).collect();
        pieces.iter().for_each(|piece| fill(piece, 7));
        assert_eq!(arena.free(), (all - 5 * KEEP / 4, 0));
        drop(pieces);
        assert_eq!(arena.free(), (all, 0));
        let piece = arena.piece(KEEP / 4, true).unwrap();
        assert!(holds(&piece, 0));
        drop(piece);
        assert_eq!(arena.free(), (all - KEEP / 4, KEEP / 4));
    }

    #[test]
    fn more_than_there_is_is_refused_with_what_there_is_and_costs_nothing() {
        let arena = arena();
        let before = arena.free();
        for bytes in [u64::MAX, (1 << 63) + 63, (1 << 63) - 1, 1 << 62, 1 << 45, before.0 + PAGE] {
            let refusal = arena.piece(bytes, true).err().unwrap();
            assert_eq!(refusal.asked, pages(bytes));
            assert!(refusal.there_is < bytes && !refusal.by.is_empty(), "{refusal}");
        }
        let refusal = arena.piece(before.0, false).err().unwrap(); // all of the machine's memory
        assert!(refusal.there_is < before.0, "{refusal}");
        assert_eq!(arena.free(), before);
        drop(arena.piece(100_000, false).unwrap());
    }
}
