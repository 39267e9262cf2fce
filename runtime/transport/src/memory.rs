//! [`Memory`]: where memory that other ranks are to reach is to be had, and [`Bytes`] of it.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

#[cfg(not(loom))]
use crate::shm::{Arena, Piece};

/// Where memory is to be had. The memory of a rank is reached by the others if it is from its transport's.
#[derive(Clone)]
pub struct Memory(Place);

#[derive(Clone)]
enum Place {
    Heap,
    #[cfg(not(loom))]
    Arena(std::sync::Arc<Arena>),
}

/// Raw memory of one owner, which others may reach; given back when dropped.
pub struct Bytes {
    first: NonNull<u8>,
    len: usize,
    held: Held,
}

enum Held {
    Heap(Layout),
    Nothing,
    #[cfg(not(loom))]
    Piece(#[expect(dead_code, reason = "what it does is to be dropped")] Piece),
}

/// Whether nobody can read some memory any more.
pub type Done = Box<dyn Fn() -> bool + Send>;

/// When nobody can read some memory any more.
pub enum Until {
    /// Once this returns true.
    Done(Done),
    /// Once [`released(to)`](crate::Transport::released) counts the frame of this number, from 0: the last one posted to
    /// that rank whose payload lies there.
    Released {
        /// The rank that reads the payload.
        to: usize,
        /// The number of the frame among all posted to it.
        frame: u64,
    },
}

/// Memory is aligned to a cache line.
const ALIGN: usize = 64;

// SAFETY: plain memory is bound to no thread; who touches it when is argued by who has it.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Memory {
    /// The heap of this process.
    pub fn heap() -> Self {
        Self(Place::Heap)
    }

    #[cfg(not(loom))]
    pub(crate) fn arena(arena: std::sync::Arc<Arena>) -> Self {
        Self(Place::Arena(arena))
    }

    /// `len` zeroed bytes, on a multiple of 64.
    ///
    /// # Errors
    /// There are not so many: the error says how many there are, where that is known.
    pub fn zeroed(&self, len: usize) -> io::Result<Bytes> {
        self.bytes(len, true)
    }

    /// `len` bytes that hold anything, on a multiple of 64.
    ///
    /// # Errors
    /// As [`zeroed`](Self::zeroed).
    pub fn any(&self, len: usize) -> io::Result<Bytes> {
        self.bytes(len, false)
    }

    fn bytes(&self, len: usize, zeroed: bool) -> io::Result<Bytes> {
        if len == 0 {
            return Ok(Bytes { first: NonNull::<Nothing>::dangling().cast(), len, held: Held::Nothing });
        }
        match &self.0 {
            Place::Heap => {
                let none = || io::Error::from(io::ErrorKind::OutOfMemory);
                let layout = Layout::from_size_align(len, ALIGN).map_err(|_| none())?;
                // SAFETY: the layout has a size that is not zero.
                let first = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
                let first = NonNull::new(first).ok_or_else(none)?;
                Ok(Bytes { first, len, held: Held::Heap(layout) })
            }
            #[cfg(not(loom))]
            Place::Arena(arena) => {
                let piece = arena.piece(len as u64, zeroed)?;
                let first = NonNull::new(piece.base()).ok_or(io::ErrorKind::OutOfMemory)?;
                Ok(Bytes { first, len, held: Held::Piece(piece) })
            }
        }
    }
}

/// What an address of no bytes is aligned like.
#[repr(align(64))]
struct Nothing;

impl Bytes {
    /// The first byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.first.as_ptr()
    }

    /// The first of `len` bytes from `from` on.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn at(&self, from: usize, len: usize) -> *mut u8 {
        assert!(from <= self.len && len <= self.len - from, "bytes beyond the end");
        // SAFETY: within the allocation, or just behind it.
        unsafe { self.first.as_ptr().add(from) }
    }

    /// Whether ranks that do not share values with the owner may reach them.
    pub fn are_reached(&self) -> bool {
        !matches!(self.held, Held::Heap(_) | Held::Nothing)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Held::Heap(layout) = self.held {
            // SAFETY: allocated with this layout, and given back once.
            unsafe { dealloc(self.first.as_ptr(), layout) };
        }
    }
}
