//! [`Zeros`]: zeroed memory that takes none of the machine's memory until it is touched.

use crate::budget::Promise;
use crate::system::unmap;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;
use std::ptr::NonNull;

/// Anonymous pages, unmapped when dropped.
pub(crate) struct Zeros {
    first: NonNull<u8>,
    len: usize,
    _promise: Promise,
}

impl Zeros {
    /// Maps `len` bytes of zeros at a multiple of `align`, which is a multiple of a page.
    ///
    /// # Errors
    /// Fails if there is not enough memory to touch all of it.
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
                // SAFETY: a part of the mapping that nobody knows, and that the value does not
                // contain.
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
        // SAFETY: mapped in `new`; everything that has a pointer into the pages keeps them.
        unsafe { unmap(self.first.as_ptr().cast(), self.len) };
    }
}
