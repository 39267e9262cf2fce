//! [`Mapping`]: a segment's file as one process maps it, and its pages, which are asked of the machine before they are used.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FallocateFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::shm::budget::{self, Refusal};

/// What the machine gives is a multiple of this.
pub(super) const PAGE: u64 = 4096;

/// What a process must know before it maps the rest.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Head {
    pub magic: u64,
    pub version: u64,
    pub ranks: u64,
    pub bytes: u64,
    pub address: u64,
    /// Where the arenas begin, and how long each is.
    pub arenas: u64,
    pub arena: u64,
}

/// The segment as this process maps it.
pub(super) struct Mapping {
    pub(super) file: File,
    pub(super) head: Head,
}

impl Mapping {
    /// Map the file that begins with `head`, at its address.
    pub(super) fn new(file: File, head: Head) -> io::Result<Self> {
        Self::map(&file, head)?;
        Ok(Self { file, head })
    }

    /// Map so many bytes of the file at the address in `head`, and nowhere else.
    pub(super) fn map(file: &File, head: Head) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let wanted = head.address as *mut std::ffi::c_void;
        // SAFETY: `FIXED_NOREPLACE` maps nothing over what is there; a kernel that does not know it may map elsewhere.
        let got = unsafe { rustix::mm::mmap(wanted, head.bytes as usize, protection, flags, file, 0) }?;
        if got != wanted {
            // SAFETY: it was just mapped, and nobody knows it.
            unsafe { rustix::mm::munmap(got, head.bytes as usize) }?;
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // A dump of a process that has crashed would go through all addresses.
        // SAFETY: it was just mapped, and the advice changes nothing but dumps.
        let _ = unsafe { rustix::mm::madvise(got, head.bytes as usize, Advice::LinuxDontDump) };
        Ok(())
    }

    /// The byte at `offset`.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        (self.head.address + offset) as *mut u8
    }

    /// Whether these bytes lie in the segment.
    pub(super) fn holds(&self, first: *const u8, len: usize) -> bool {
        let offset = (first as u64).wrapping_sub(self.head.address);
        offset < self.head.bytes && len as u64 <= self.head.bytes - offset
    }

    /// Bytes that are being asked for by all processes together.
    fn asking(&self) -> &AtomicU64 {
        // SAFETY: behind the head, on the first page, which was reserved when the segment was made; zero at first.
        unsafe { &*self.at(size_of::<Head>() as u64).cast() }
    }

    /// Reserve the first bytes, before there is anything in them.
    pub(super) fn reserve_first(&self, bytes: u64) -> io::Result<()> {
        let (there_is, by) = budget::there_is(&budget::read);
        if bytes > there_is {
            return Err(Refusal { asked: bytes, there_is, by }.into());
        }
        allocate(&self.file, 0, bytes)
    }

    /// Have the machine give these pages.
    pub(super) fn reserve(&self, offset: u64, bytes: u64) -> Result<(), Refusal> {
        // What others are about to take counts as taken.
        let asking = self.asking().fetch_add(bytes, Ordering::SeqCst) + bytes;
        let (there_is, by) = budget::there_is(&budget::read);
        let there_is = there_is.saturating_sub(asking - bytes);
        let given = if bytes <= there_is {
            allocate(&self.file, offset, bytes).map_err(|_| {
                let _ = self.give_back(offset, bytes);
                Refusal { asked: bytes, there_is: 0, by: "as much was free, but the system did not give it" }
            })
        } else {
            Err(Refusal { asked: bytes, there_is, by })
        };
        self.asking().fetch_sub(bytes, Ordering::SeqCst);
        given
    }

    /// Give the machine these pages back. Gives whether it took them: they are zero then.
    pub(super) fn give_back(&self, offset: u64, bytes: u64) -> bool {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        again(|| rustix::fs::fallocate(&self.file, mode, offset, bytes)).is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let base = self.head.address as *mut std::ffi::c_void;
        // SAFETY: mapped in `new`; all that points into it keeps this alive.
        let _ = unsafe { rustix::mm::munmap(base, self.head.bytes as usize) };
    }
}

/// Allocate in steps, since a signal takes back the whole of one.
fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let step = (end - at).min(64 << 20);
        again(|| rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, at, step))?;
        at += step;
    }
    Ok(())
}

fn again(mut call: impl FnMut() -> rustix::io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
