//! [`Memory`]: an allocator of memory that other ranks may reach, and [`Bytes`] allocated from it.

use crate::Port;
use crate::large_pages::{self, LARGE_PAGE};
#[cfg(all(not(loom), target_arch = "x86_64"))]
use crate::watch::Pages;
use crate::watch::Watched;
use crate::zeros::Zeros;
use bytemuck::Pod;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

#[cfg(not(loom))]
use crate::shm::{Allocation, Arena};

/// An allocator. If it belongs to the transport of a rank, other ranks reach the memory that it
/// returns.
#[derive(Clone)]
pub struct Memory(Backing);

#[derive(Clone)]
enum Backing {
    Heap,
    #[cfg(not(loom))]
    Arena(std::sync::Arc<Arena>),
}

/// Raw memory of one owner, which other ranks may reach. Freed when dropped.
pub struct Bytes {
    first: NonNull<u8>,
    len: usize,
    storage: Storage,
}

enum Storage {
    Heap(Layout),
    /// The allocation of a vector.
    Vector(Layout),
    Nothing,
    /// Pages mapped for these bytes alone.
    Zeros(#[expect(dead_code, reason = "held for its drop")] Zeros),
    /// Pages mapped for these bytes, to be watched.
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    Pages(#[expect(dead_code, reason = "held for its drop")] Pages),
    #[cfg(not(loom))]
    Allocation(#[expect(dead_code, reason = "held for its drop")] Allocation),
}

/// A function that returns `true` once no rank can read a given piece of memory any more.
pub type Done = Box<dyn Fn() -> bool + Send>;

/// The time after which no rank can read a given piece of memory any more.
pub enum Until {
    /// Once this function returns `true`.
    Done(Done),
    /// Once [`released(to, port)`](crate::Channels::released) counts the frame of this number. No
    /// later frame to that rank on that port has its payload in this memory.
    Released {
        /// The rank that reads the payload.
        to: usize,
        /// The port.
        port: Port,
        /// The number of the frame among all frames posted to the rank on the port, counted from 0.
        frame: u64,
    },
}

/// The alignment of memory: a cache line.
const ALIGN: usize = 64;
/// The alignment that the elements of a vector must have to be [adopted](Memory::adopt). With this
/// alignment, elements of 1, 2, 4 and 8 bytes are aligned to their size.
const ADOPTED_ALIGN: usize = 16;

// SAFETY: plain memory is bound to no thread. The code that owns it argues which thread accesses it
// when.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Memory {
    /// Returns the allocator over the heap of this process.
    pub fn heap() -> Self {
        Self(Backing::Heap)
    }

    #[cfg(not(loom))]
    pub(crate) fn arena(arena: std::sync::Arc<Arena>) -> Self {
        Self(Backing::Arena(arena))
    }

    /// Returns `len` zeroed bytes, aligned to 64. From 2 MiB on, zeroed bytes of the heap take no
    /// memory until they are touched.
    ///
    /// # Errors
    /// Fails if there is not enough memory. The error names the available amount, if it is known.
    /// Requests for 2 MiB or more from the heap fail in this way as well. Otherwise the system
    /// would grant the memory, and end the process when the memory is touched.
    pub fn zeroed(&self, len: usize) -> io::Result<Bytes> {
        self.bytes(len, true)
    }

    /// Returns `len` bytes, which may be uninitialised, aligned to 64.
    ///
    /// # Errors
    /// As for [`zeroed`](Self::zeroed).
    pub fn any(&self, len: usize) -> io::Result<Bytes> {
        self.bytes(len, false)
    }

    /// Returns `len` zeroed bytes that are mapped a second time, so that loads of elements of
    /// `size` bytes, starting at `from`, can be [watched](Watched). Returns `None` if that is not
    /// possible.
    pub fn watched(&self, len: usize, from: usize, size: usize) -> Option<(Bytes, Watched)> {
        #[cfg(all(not(loom), target_arch = "x86_64"))]
        {
            let (storage, first, pages, before) = match &self.0 {
                Backing::Heap => {
                    let (own, again) = Pages::twice(len).ok()?;
                    let first = own.first();
                    (Storage::Pages(own), first, again, 0)
                }
                Backing::Arena(arena) => {
                    let allocation = arena.allocate(len as u64, true).ok()?;
                    let (again, before) = allocation.map_again().ok()?;
                    let first = NonNull::new(allocation.base())?;
                    (Storage::Allocation(allocation), first, again, before)
                }
            };
            let watched = Watched::new(pages, before + from, len - from, size)?;
            Some((Bytes { first, len, storage }, watched))
        }
        #[cfg(not(all(not(loom), target_arch = "x86_64")))]
        {
            let _ = (len, from, size);
            None
        }
    }

    /// Returns whether these bytes are in the segment of this allocator, where other ranks reach
    /// them.
    #[cfg_attr(loom, expect(unused_variables, reason = "an arena alone is looked into"))]
    pub fn has(&self, bytes: &[u8]) -> bool {
        match &self.0 {
            Backing::Heap => false,
            #[cfg(not(loom))]
            Backing::Arena(arena) => arena.has(bytes),
        }
    }

    /// Takes over the elements of a vector without copying them. This is possible only on a heap,
    /// and only if there are elements and they are aligned to 16 bytes.
    ///
    /// # Errors
    /// Returns the vector if its elements have to be copied.
    pub fn adopt<T: Pod>(&self, mut vec: Vec<T>) -> Result<Bytes, Vec<T>> {
        let is_heap = matches!(self.0, Backing::Heap);
        let len = size_of_val(&vec[..]);
        let Some(first) = NonNull::new(vec.as_mut_ptr().cast::<u8>()) else { return Err(vec) };
        let layout = Layout::array::<T>(vec.capacity());
        let fits = is_heap && len > 0 && first.as_ptr().addr().is_multiple_of(ADOPTED_ALIGN);
        let (true, Ok(layout)) = (fits, layout) else { return Err(vec) };
        std::mem::forget(vec);
        Ok(Bytes { first, len, storage: Storage::Vector(layout) })
    }

    fn bytes(&self, len: usize, zeroed: bool) -> io::Result<Bytes> {
        if len == 0 {
            return Ok(Bytes {
                first: NonNull::<Nothing>::dangling().cast(),
                len,
                storage: Storage::Nothing,
            });
        }
        match &self.0 {
            Backing::Heap => {
                if zeroed && len >= LARGE_PAGE {
                    let zeros = Zeros::new(len, LARGE_PAGE)?;
                    let first = zeros.first();
                    large_pages::prefer(first, len);
                    return Ok(Bytes { first, len, storage: Storage::Zeros(zeros) });
                }
                let none = || io::Error::from(io::ErrorKind::OutOfMemory);
                let layout = Layout::from_size_align(len, ALIGN).map_err(|_| none())?;
                // SAFETY: the layout's size is not zero.
                let first = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
                let first = NonNull::new(first).ok_or_else(none)?;
                Ok(Bytes { first, len, storage: Storage::Heap(layout) })
            }
            #[cfg(not(loom))]
            Backing::Arena(arena) => {
                let allocation = arena.allocate(len as u64, zeroed)?;
                let first = NonNull::new(allocation.base()).ok_or(io::ErrorKind::OutOfMemory)?;
                Ok(Bytes { first, len, storage: Storage::Allocation(allocation) })
            }
        }
    }
}

/// A type with the alignment that the address of an empty allocation must have.
#[repr(align(64))]
struct Nothing;

impl Bytes {
    /// Returns the address of the first byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.first.as_ptr()
    }

    /// Returns the address of the first of the `len` bytes that start at `from`.
    ///
    /// # Panics
    /// Panics if the range exceeds the allocation.
    #[inline]
    pub fn at(&self, from: usize, len: usize) -> *mut u8 {
        assert!(from <= self.len && len <= self.len - from, "range exceeds the allocation");
        // SAFETY: within the allocation, or just behind it.
        unsafe { self.first.as_ptr().add(from) }
    }

    /// Returns whether these bytes may be reached even by ranks that
    /// [share](crate::Topology::shares) no values of Rust types with the owner.
    pub fn are_reached(&self) -> bool {
        match self.storage {
            #[cfg(not(loom))]
            Storage::Allocation(_) => true,
            _ => false,
        }
    }

    /// Returns the vector that was [adopted](Memory::adopt), with the present values of its
    /// elements.
    ///
    /// # Errors
    /// Returns the bytes if they were not adopted from a vector of such elements.
    pub fn into_vec<T: Pod>(self) -> Result<Vec<T>, Self> {
        let Storage::Vector(layout) = self.storage else { return Err(self) };
        let (size, first, len) = (size_of::<T>(), self.first, self.len);
        if size == 0 || layout.align() != align_of::<T>() || !layout.size().is_multiple_of(size) {
            return Err(self);
        }
        std::mem::forget(self);
        // SAFETY: the memory was allocated for a vector, and its layout holds a whole number of
        // elements. The first `len` bytes are whole elements of a type of that layout, and any
        // bytes are valid for `T`.
        Ok(unsafe { Vec::from_raw_parts(first.as_ptr().cast::<T>(), len / size, layout.size() / size) })
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Storage::Heap(layout) | Storage::Vector(layout) = self.storage {
            // SAFETY: allocated with this layout, and freed once.
            unsafe { dealloc(self.first.as_ptr(), layout) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn zeroed_memory_of_large_pages_is_zero_and_aligned_also_where_it_was_used_before() {
        for len in [LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 3 * LARGE_PAGE + 100] {
            for _ in 0..3 {
                let bytes = Memory::heap().zeroed(len).expect("some memory");
                let align = if len < LARGE_PAGE { ALIGN } else { LARGE_PAGE };
                assert!(bytes.base().addr().is_multiple_of(align));
                // SAFETY: nobody else knows these bytes, which are initialised.
                let all = unsafe { std::slice::from_raw_parts_mut(bytes.base(), len) };
                assert!(all.iter().all(|&byte| byte == 0), "{len} bytes");
                all.fill(0xa5);
            }
        }
    }
}
