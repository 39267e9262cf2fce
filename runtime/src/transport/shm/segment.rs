//! [`Segment`]: the memory of a job on one machine: one memory file that all its processes map at the same address.
//!
//! Whoever starts the job makes it and hands its descriptor on; it has no name, so nothing of it outlives the last
//! process that maps it. Its size is an upper bound, reserved in addresses only, and sealed: nobody can shrink it below
//! what others map. In it lie a head, what concerns ranks of the job in all their worlds, and an arena for each rank.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Resource, getrlimit};

use super::arena::Arena;
use super::block::Block;
use super::budget::{self, Refusal};
use super::mapping::{Head, Mapping, PAGE};
use crate::sync::Line;
use crate::transport::bell::{Bell, Bells};
use crate::transport::placed::{Kept, Placed, Places};
use crate::transport::roll::Dead;
use crate::transport::waiting::{self, Entry};

/// Addresses, and how many, that are far from where programs, heaps, libraries and stacks lie. The first are many; the
/// others are those that the thread sanitizer leaves free.
const ADDRESSES: [(u64, u64); 2] =
    [(0x2000_0000_0000, 0x2000_0000_0000), (0x0100_0000_0000, 0x0100_0000_0000)];

/// Arenas begin on multiples of this.
const ALIGN: u64 = 1 << 21;

/// Worlds of the whole job at most, over its time.
const WORLDS: usize = 16_384;

/// What the first bytes of a segment are.
const MAGIC: u64 = u64::from_le_bytes(*b"fencepst");
const VERSION: u64 = 2;

/// Memory that waits for the last who may read it; and how to see that nobody may.
type Waiting = (Box<dyn Fn() -> bool + Send>, Vec<Kept>);

/// The memory of a job on one machine.
pub struct Segment {
    mapping: Arc<Mapping>,
    ranks: usize,
    bells: Placed<Line<Bell>>,
    dead: Dead,
    waits: Placed<Line<Entry>>,
    /// The address of each world's block, once there is one.
    worlds: Placed<AtomicU64>,
    /// Of the ranks of this process.
    arenas: Vec<OnceLock<Arc<Arena>>>,
    waiting: Mutex<Vec<Waiting>>,
}

impl Segment {
    /// Make the segment of a job of so many ranks.
    ///
    /// # Errors
    /// The system refuses it, or leaves too few addresses or bytes: then the error says what was asked for.
    pub fn create(ranks: usize) -> io::Result<Self> {
        let fd = rustix::fs::memfd_create("fencepost", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let shared = Block::measure(|places| Shared::place(ranks, places))?;
        let arenas = (PAGE + shared).next_multiple_of(ALIGN);
        let arena = arena_bytes(ranks as u64, arenas)?;
        let bytes = arenas + ranks as u64 * arena;
        rustix::fs::ftruncate(&fd, bytes)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = File::from(fd);
        let mut head =
            Head { magic: MAGIC, version: VERSION, ranks: ranks as u64, bytes, address: 0, arenas, arena };
        // Several segments of one process, and those of others whose ranks map theirs here, lie side by side.
        let step = bytes.next_power_of_two();
        let mut free =
            ADDRESSES.iter().flat_map(|(first, len)| (0..len / step).map(move |k| first + k * step));
        let mapped = free.find_map(|address| {
            head.address = address;
            match Mapping::map(&file, head) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                other => Some(other),
            }
        });
        mapped.unwrap_or(Err(io::ErrorKind::AlreadyExists.into())).map_err(|error| {
            let message = format!("there are no addresses for {bytes} bytes that ranks share: {error}");
            io::Error::new(error.kind(), message)
        })?;
        let mapping = Mapping { file, head };
        mapping.reserve_first(PAGE + shared)?;
        let mapping = Arc::new(mapping);
        let base = mapping.at(PAGE);
        // SAFETY: reserved, and nobody knows the segment yet.
        let mut block = unsafe { Block::fresh(base, shared, Arc::clone(&mapping) as Kept) };
        let shared = Shared::place(ranks, &mut block)?;
        mapping.file.write_all_at(bytemuck::bytes_of(&head), 0)?;
        Ok(Self::over(mapping, shared))
    }

    /// Map the segment of a job that this process has been handed.
    ///
    /// # Errors
    /// It is no segment, or of another version, or something lies where it must be mapped.
    pub fn join(fd: OwnedFd) -> io::Result<Arc<Self>> {
        let file = File::from(fd);
        let mut head: Head = bytemuck::Zeroable::zeroed();
        file.read_exact_at(bytemuck::bytes_of_mut(&mut head), 0)?;
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        if head.magic != MAGIC || head.version != VERSION {
            let message = "what was handed over as the job's memory is not a segment of this version";
            return Err(invalid(message.into()));
        }
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        let fits = head.arena.checked_mul(head.ranks).and_then(|all| all.checked_add(head.arenas));
        let sealed = seals.contains(SealFlags::SHRINK);
        if !sealed || fits != Some(head.bytes) || file.metadata()?.len() != head.bytes {
            return Err(invalid("the job's memory is not of the size that it says, or not sealed".into()));
        }
        let mapping = Mapping::new(file, head).map_err(|error| {
            let (from, bytes) = (head.address, head.bytes);
            let why = "the job's memory must be mapped at the same address by all";
            io::Error::new(
                error.kind(),
                format!("{why}, and {bytes} bytes at {from:#x} are not to be had: {error}"),
            )
        })?;
        let mapping = Arc::new(mapping);
        let base = mapping.at(PAGE);
        // SAFETY: whoever made the segment has placed the same things there.
        let mut block = unsafe { Block::again(base, head.arenas - PAGE, Arc::clone(&mapping) as Kept) };
        let shared = Shared::place(head.ranks as usize, &mut block)?;
        Ok(Arc::new(Self::over(mapping, shared)))
    }

    fn over(mapping: Arc<Mapping>, shared: Shared) -> Self {
        let ranks = mapping.head.ranks as usize;
        Self {
            ranks,
            bells: shared.bells,
            dead: shared.dead,
            waits: shared.waits,
            worlds: shared.worlds,
            arenas: (0..ranks).map(|_| OnceLock::new()).collect(),
            waiting: Mutex::default(),
            mapping,
        }
    }

    /// The descriptor that is handed on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }

    /// How many ranks the job has.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// `rank` has died, so: every wait for it, in every world, ends and says so.
    ///
    /// It must have ended for good: what it could still write to is used again. Gives whether this is news.
    pub fn strike(&self, rank: usize, how: &str) -> bool {
        let news = self.dead.strike(rank, how);
        if news {
            let all = Bells::over(self.bells.clone(), (0..self.ranks as u32).collect(), self.ranks);
            all.ring(0..self.ranks);
        }
        news
    }

    /// The arena of a rank of this process.
    pub(super) fn arena(&self, rank: usize) -> Arc<Arena> {
        let head = self.mapping.head;
        let offset = head.arenas + rank as u64 * head.arena;
        let arena = || Arc::new(Arena::new(Arc::clone(&self.mapping), offset, head.arena));
        Arc::clone(self.arenas[rank].get_or_init(arena))
    }

    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    pub(super) fn bells(&self) -> &Placed<Line<Bell>> {
        &self.bells
    }

    pub(super) fn waits(&self) -> &Placed<Line<Entry>> {
        &self.waits
    }

    pub(super) fn dead(&self) -> &Dead {
        &self.dead
    }

    /// The address of the block of a world of the whole job: 0 while there is none.
    pub(super) fn world(&self, world: u32) -> Option<&AtomicU64> {
        self.worlds.get(world as usize)
    }

    /// Keep memory until `done`.
    pub(super) fn keep(&self, done: Box<dyn Fn() -> bool + Send>, kept: Vec<Kept>) {
        self.sweep().push((done, kept));
    }

    /// Give back what nobody waits for any more.
    pub(super) fn sweep(&self) -> MutexGuard<'_, Vec<Waiting>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(done, _)| !done());
        waiting
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Others may still read the rest: it goes when the last process has unmapped the segment.
        std::mem::take(&mut *self.sweep()).into_iter().for_each(std::mem::forget);
    }
}

/// What concerns ranks of the job in all their worlds.
struct Shared {
    bells: Placed<Line<Bell>>,
    dead: Dead,
    waits: Placed<Line<Entry>>,
    worlds: Placed<AtomicU64>,
}

impl Shared {
    fn place(ranks: usize, places: &mut Block) -> io::Result<Self> {
        Ok(Self {
            bells: places.place(ranks, Bell::new)?,
            dead: Dead::place(ranks, places)?,
            waits: waiting::place(ranks, places)?,
            worlds: places.place(WORLDS, || AtomicU64::new(0))?,
        })
    }
}

/// How long an arena may be: any rank may come to have all memory of the machine, as far as addresses and limits reach.
fn arena_bytes(ranks: u64, before: u64) -> io::Result<u64> {
    let wanted = budget::whole(&budget::read).next_multiple_of(ALIGN);
    let mut most = (ADDRESSES[0].1 / 4, "of the addresses that ranks share");
    let mut limit = |bytes: Option<u64>, by| {
        if let Some(bytes) = bytes.filter(|&bytes| bytes < most.0) {
            most = (bytes, by);
        }
    };
    limit(getrlimit(Resource::Fsize).current, "of the limit on the size of files, `ulimit -f`");
    let used = budget::read("/proc/self/statm")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |pages| pages.saturating_mul(rustix::param::page_size() as u64));
    let addresses = getrlimit(Resource::As).current.map(|bytes| bytes.saturating_sub(used) / 2);
    limit(addresses, "half of the limit on addresses, `ulimit -v`");
    let arena = (most.0.saturating_sub(before) / ranks.max(1)).min(wanted) / ALIGN * ALIGN;
    if arena == 0 {
        return Err(Refusal { asked: before + ranks * ALIGN, there_is: most.0, by: most.1 }.into());
    }
    Ok(arena)
}
