//! [`Zeros`]: zeroed memory whose pages take no memory of the machine until they are touched.

use crate::budget::Promise;
use crate::system::unmap;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;
use std::ptr::NonNull;

/// Anonymous pages, which are unmapped when this is dropped.
pub(crate) struct Zeros {
    first: NonNull<u8>,
    len: usize,
    _promise: Promise,
}

impl Zeros {
    /// Maps `len` bytes of zeros at a multiple of `align`. `align` is a multiple of the page size.
    ///
    /// # Errors
    /// Fails if the machine does not have enough memory to touch all pages.
    pub(crate) fn new(len: usize, align: usize) -> io::Result<Self> {
        let promise = Promise::new(len as u64)?;
        let page = rustix::param::page_size();
        let len = len.checked_next_multiple_of(page).ok_or(Errno::NOMEM)?;
        let mapped = len.checked_add(align - page).ok_or(Errno::NOMEM)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let from = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, protection, MapFlags::PRIVATE) }?;
        let from = NonNull::new(from.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let before = from.as_ptr().align_offset(align);
        for (offset, len) in [(0, before), (before + len, mapped - before - len)] {
            if len > 0 {
                // SAFETY: this part of the mapping is not used, and is not in the returned pages.
                unsafe { unmap(from.as_ptr().add(offset).cast(), len) };
            }
        }
        // SAFETY: within the mapping.
        Ok(Self { first: unsafe { from.add(before) }, len, _promise: promise })
    }

    pub(crate) fn first(&self) -> NonNull<u8> {
        self.first
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped in `new`, and every value with a pointer into the pages
        // keeps them.
        unsafe { unmap(self.first.as_ptr().cast(), self.len) };
    }
}
