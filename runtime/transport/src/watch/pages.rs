//! [`Pages`] of a file that are mapped.

use crate::system::unmap;
use rustix::mm::{MapFlags, ProtFlags};
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// The number of bytes of a page.
pub(super) const PAGE: usize = 4096;

/// Pages of a file that are mapped in this process. They are unmapped when this is dropped.
pub(crate) struct Pages {
    first: NonNull<u8>,
    len: usize,
}

impl Pages {
    /// Maps `len` bytes of a file, starting at `offset`, a multiple of the page size.
    pub(crate) fn of(file: impl AsFd, offset: u64, len: usize) -> rustix::io::Result<Self> {
        let len = len.next_multiple_of(PAGE);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let first = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset)
        }?;
        let first = NonNull::new(first.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { first, len })
    }

    /// Maps a file of `len` zeroed bytes twice.
    pub(crate) fn twice(len: usize) -> rustix::io::Result<(Self, Self)> {
        let file = rustix::fs::memfd_create("fencepost-window", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, len.next_multiple_of(PAGE) as u64)?;
        Ok((Self::of(&file, 0, len)?, Self::of(&file, 0, len)?))
    }

    pub(crate) fn first(&self) -> NonNull<u8> {
        self.first
    }

    pub(super) fn addresses(&self) -> Range<usize> {
        let first = self.first.as_ptr().expose_provenance();
        first..first + self.len
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped in `of`, and every value with a pointer into the pages
        // keeps them.
        unsafe { unmap(self.first.as_ptr().cast(), self.len) };
    }
}

// SAFETY: memory is bound to no thread. The owner of the pages ensures that accesses do not race.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}
