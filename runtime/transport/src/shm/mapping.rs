//! [`Mapping`]: the mapping of a segment's file in one process. Pages of the file are reserved from
//! the machine before they are used.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::FallocateFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::budget::{self, MemoryShortage};
use crate::large_pages;
use crate::system::unmap;

/// The machine grants multiples of this number of bytes.
pub(super) const PAGE: u64 = 4096;

/// The size of a large page on most machines.
pub(super) const LARGE_PAGE: u64 = large_pages::LARGE_PAGE as u64;

/// Ranges of addresses (first address, length) that are far from the addresses of programs, heaps,
/// libraries and stacks. The first range is large. The thread sanitizer leaves the second range
/// free.
pub(super) const ADDRESSES: [(u64, u64); 2] =
    [(0x2000_0000_0000, 0x2000_0000_0000), (0x0100_0000_0000, 0x0100_0000_0000)];

/// The head of a segment, which a process must know before it maps the rest.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct SegmentHead {
    pub magic: u64,
    pub version: u64,
    pub ranks: u64,
    pub bytes: u64,
    pub address: u64,
    /// The offset of the first arena. `arena` is the size of each arena.
    pub arenas: u64,
    pub arena: u64,
    /// The size of the tables of the job, in bytes. All processes find them at the same address.
    pub tables: u64,
}

/// A limit on the size of a memory file.
pub(super) struct SizeLimit {
    pub(super) bytes: u64,
    pub(super) name: &'static str,
    /// The name, for errors, of the part of the limit that one rank may use.
    pub(super) of_a_rank: &'static str,
}

impl SizeLimit {
    /// Returns the tightest limit of this process.
    pub(super) fn of_process() -> Self {
        let used = budget::read("/proc/self/statm")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .map_or(0, |pages| pages.saturating_mul(rustix::param::page_size() as u64));
        let files = getrlimit(Resource::Fsize).current.map(|bytes| Self {
            bytes,
            name: "of the limit on the size of files, `ulimit -f`",
            of_a_rank: "of this rank's part of the limit on the size of files, `ulimit -f`",
        });
        let addresses = getrlimit(Resource::As).current.map(|bytes| Self {
            bytes: bytes.saturating_sub(used) / 2,
            name: "half of the limit on addresses, `ulimit -v`",
            of_a_rank: "of this rank's part of half the limit on addresses, `ulimit -v`",
        });
        let shared = Self {
            bytes: ADDRESSES[0].1 / 4,
            name: "of the addresses that ranks share",
            of_a_rank: "of the part reserved for this rank",
        };
        [Some(shared), files, addresses]
            .into_iter()
            .flatten()
            .min_by_key(|limit| limit.bytes)
            .expect("one of them")
    }
}

/// Returns the size of an arena if no limit makes it smaller. It is the memory of the whole
/// machine, because one rank may use all of it.
pub(super) fn largest_arena() -> u64 {
    budget::whole(&budget::read).next_multiple_of(LARGE_PAGE)
}

/// Returns the name of the limit that restricts an arena to this number of bytes. This process has
/// the same limits as the process that created the segment.
pub(super) fn limit_of_arena(bytes: u64) -> &'static str {
    if bytes < largest_arena() { SizeLimit::of_process().of_a_rank } else { budget::OF_MACHINE }
}

/// The mapping of a segment in this process.
pub(super) struct Mapping {
    pub(super) file: File,
    pub(super) head: SegmentHead,
    /// Whether this process keeps all pages that it has used, and returns none.
    keeps_pages: AtomicBool,
}

impl Mapping {
    /// Maps the file that begins with `head` at the address in `head`.
    pub(super) fn new(file: File, head: SegmentHead) -> io::Result<Self> {
        Self::map(&file, head)?;
        Ok(Self::mapped(file, head))
    }

    /// Returns the mapping of a file that is already mapped at the address in `head`.
    pub(super) fn mapped(file: File, head: SegmentHead) -> Self {
        Self { file, head, keeps_pages: AtomicBool::new(false) }
    }

    /// Maps the bytes of the file at the address in `head`, and nowhere else.
    pub(super) fn map(file: &File, head: SegmentHead) -> io::Result<()> {
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let wanted = head.address as *mut std::ffi::c_void;
        // SAFETY: `FIXED_NOREPLACE` replaces no mapping. A kernel that does not know this flag may
        // map the file at another address, which is checked below.
        let got = unsafe { rustix::mm::mmap(wanted, head.bytes as usize, protection, flags, file, 0) }?;
        if got != wanted {
            // SAFETY: these bytes were just mapped, and are not used yet.
            unsafe { unmap(got, head.bytes as usize) };
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // A core dump of a crashed process would otherwise walk through all addresses.
        // SAFETY: these bytes were just mapped, and the advice affects core dumps only.
        let _ = unsafe { rustix::mm::madvise(got, head.bytes as usize, Advice::LinuxDontDump) };
        Ok(())
    }

    /// Returns the byte at `offset`.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        (self.head.address + offset) as *mut u8
    }

    /// Returns whether these bytes are in the segment.
    pub(super) fn holds(&self, first: *const u8, len: usize) -> bool {
        let offset = (first as u64).wrapping_sub(self.head.address);
        offset < self.head.bytes && len as u64 <= self.head.bytes - offset
    }

    /// Returns how many bytes all processes together are requesting at the moment.
    fn pending_requests(&self) -> &AtomicU64 {
        // SAFETY: the counter follows the head, on the first page. That page was reserved when the
        // segment was created, and the counter was zero then.
        unsafe { &*self.at(size_of::<SegmentHead>() as u64).cast() }
    }

    /// Reserves the first `bytes` bytes of the file. Called before they are written.
    pub(super) fn reserve_first(&self, bytes: u64) -> io::Result<()> {
        let (available, limit) = budget::available(&budget::read);
        if bytes > available {
            return Err(MemoryShortage { requested: bytes, available, limit }.into());
        }
        allocate(&self.file, 0, bytes)
    }

    /// Reserves these pages from the machine.
    pub(super) fn reserve(&self, offset: u64, bytes: u64) -> Result<(), MemoryShortage> {
        if bytes >= LARGE_PAGE {
            let (available, limit) = budget::available(&budget::read);
            if bytes > available {
                // Return before this request is counted, since smaller requests of other processes
                // may fit.
                return Err(MemoryShortage { requested: bytes, available, limit });
            }
        }
        // Memory that other processes are about to reserve counts as taken.
        let asking = self.pending_requests().fetch_add(bytes, Ordering::SeqCst) + bytes;
        let (available, limit) = budget::available(&budget::read);
        let available = available.saturating_sub(asking - bytes);
        let given = if bytes <= available {
            allocate(&self.file, offset, bytes).map_err(|_| {
                self.punch(offset, bytes); // no rank has used them yet
                MemoryShortage {
                    requested: bytes,
                    available: 0,
                    limit: "the system refused it although enough was free",
                }
            })
        } else {
            Err(MemoryShortage { requested: bytes, available, limit })
        };
        self.pending_requests().fetch_sub(bytes, Ordering::SeqCst);
        given
    }

    /// Replaces these reserved pages by large pages, where they fill a whole large page. If
    /// `shmem_enabled` is `never`, which is the default, the kernel backs shared memory with large
    /// pages only on this advice. If `shmem_enabled` is `deny`, the pages remain unchanged.
    pub(super) fn back_with_large_pages(&self, offset: u64, bytes: u64) {
        let (first, end) = (offset.next_multiple_of(LARGE_PAGE), offset + bytes);
        if let Some(place) = NonNull::new(self.at(first)).filter(|_| first < end) {
            large_pages::collapse(place, (end - first) as usize);
        }
    }

    /// Makes this process keep, from now on, all pages that it has used.
    pub(super) fn keep_pages(&self) {
        self.keeps_pages.store(true, Ordering::Relaxed);
    }

    /// Returns these pages to the machine, unless this process keeps all pages. The result is
    /// whether they were returned. If so, they are zero when they are reserved again.
    pub(super) fn return_pages(&self, offset: u64, bytes: u64) -> bool {
        !self.keeps_pages() && self.punch(offset, bytes)
    }

    /// Returns whether this process returns no pages.
    pub(super) fn keeps_pages(&self) -> bool {
        self.keeps_pages.load(Ordering::Relaxed)
    }

    fn punch(&self, offset: u64, bytes: u64) -> bool {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        again(|| rustix::fs::fallocate(&self.file, mode, offset, bytes)).is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let base = self.head.address as *mut std::ffi::c_void;
        // SAFETY: mapped in `new`; everything that points into the mapping keeps it alive.
        unsafe { unmap(base, self.head.bytes as usize) };
    }
}

/// Allocates in steps, since a signal undoes the whole call that it interrupts.
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
