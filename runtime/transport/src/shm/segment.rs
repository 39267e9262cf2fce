//! [`Segment`]: the memory of a job on one machine: one memory file that all its processes map at the same address.
//!
//! Whoever starts the job makes it and hands its descriptor on; it has no name, so nothing of it outlives the last
//! process that maps it. Its size is an upper bound, reserved in addresses only, and sealed: nobody can shrink it below
//! what others map. In it lie a head, what concerns ranks of the job in all their worlds, and an arena for each rank.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Resource, getrlimit};

use crate::deadlock::{self, Entry};
use crate::shared::members::Dead;
use crate::shared::slice::{Kept, Placed, Places};
use crate::shared::waker::{Bell, Bells};
use crate::shm::arena::Arena;
use crate::shm::block::Block;
use crate::shm::budget::{self, Refusal};
use crate::shm::mapping::{Head, Mapping, PAGE};
use crate::sync::Line;

/// Addresses, and how many, that are far from where programs, heaps, libraries and stacks lie. The first are many; the
/// others are those that the thread sanitizer leaves free.
const ADDRESSES: [(u64, u64); 2] =
    [(0x2000_0000_0000, 0x2000_0000_0000), (0x0100_0000_0000, 0x0100_0000_0000)];

/// Arenas begin on multiples of this.
const ALIGN: u64 = 1 << 21;

/// So many worlds of the whole job a rank may be ahead of another one: the place of each is used again.
pub(super) const AHEAD: usize = 16_384;

/// What the first bytes of a segment are.
const MAGIC: u64 = u64::from_le_bytes(*b"fencepst");
const VERSION: u64 = 4;

/// Memory that waits for the last who may read it; and how to see that nobody may.
type Waiting = (Box<dyn Fn() -> bool + Send>, Vec<Kept>);

/// The memory of a job on one machine.
pub struct Segment {
    mapping: Arc<Mapping>,
    ranks: usize,
    bells: Placed<Line<Bell>>,
    dead: Dead,
    waits: Placed<Line<Entry>>,
    worlds: Worlds,
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

    /// `rank`, whose process this is, ends by itself and in no world; it left the last one with this error. Once it has died,
    /// those who wait for it in worlds that it never came into are told so.
    pub fn part(&self, rank: usize, why: &str) {
        self.dead.part(rank, why);
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

    pub(crate) fn waits(&self) -> &Placed<Line<Entry>> {
        &self.waits
    }

    pub(super) fn dead(&self) -> &Dead {
        &self.dead
    }

    /// Where the worlds of the whole job are found.
    pub(super) fn worlds(&self) -> &Worlds {
        &self.worlds
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
    worlds: Worlds,
}

impl Shared {
    fn place(ranks: usize, places: &mut Block) -> io::Result<Self> {
        Ok(Self {
            bells: places.place(ranks, Bell::new)?,
            dead: Dead::place(ranks, places)?,
            waits: deadlock::place(ranks, places)?,
            worlds: Worlds::place(AHEAD, ranks, places)?,
        })
    }
}

/// Where the worlds of the whole job are found: the place of a world is that of the one so many worlds before it, once all
/// ranks have taken that one's address.
pub(super) struct Worlds {
    /// The address of the block of a world, a multiple of 128, and in the lowest bit how often the place was used: even or
    /// odd. A rank finds a world of its own round or of the one before, since none is further ahead.
    places: Placed<AtomicU64>,
    /// How many worlds each rank has taken, modulo 2^32. Only that rank writes here.
    taken: Placed<AtomicU32>,
}

/// Who has laid out a world.
pub(super) enum Laid {
    /// The caller, just now.
    Here(u64),
    /// Another rank, there.
    There(u64),
}

impl Worlds {
    fn place(ahead: usize, ranks: usize, places: &mut impl Places) -> io::Result<Self> {
        Ok(Self {
            places: places.place(ahead, || AtomicU64::new(0))?,
            taken: places.place(ranks, || AtomicU32::new(0))?,
        })
    }

    /// `rank`, the caller, takes world number `world`, which must be the next one for it: its address, or that of the one
    /// that it lays out by `lay_out` if nobody has. Where that fails it has taken the world all the same, and goes on with
    /// the next one.
    ///
    /// # Errors
    /// It has taken the world before or is not there yet, it is too far ahead of another rank, or there is no room.
    pub(super) fn take(
        &self,
        world: u32,
        rank: usize,
        lay_out: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Laid> {
        let next = self.taken[rank].load(Ordering::Relaxed);
        if world != next {
            let message = format!("world {world} is not the next one of rank {rank}, which is {next}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let laid = self.find(world, lay_out);
        // Release: pairs with the load in `find`, so that what was read in the place was read before.
        self.taken[rank].store(world.wrapping_add(1), Ordering::Release);
        laid
    }

    fn find(&self, world: u32, lay_out: impl FnOnce() -> io::Result<u64>) -> io::Result<Laid> {
        let ahead = self.places.len() as u32;
        let place = &self.places[(world % ahead) as usize];
        let round = u64::from((world / ahead) & 1);
        let found = place.load(Ordering::Acquire);
        if found != 0 && found & 1 == round {
            return Ok(Laid::There(found & !1));
        }
        // A rank that has taken the world before this one in the place has read its address.
        let late =
            |other: &AtomicU32| world.wrapping_sub(other.load(Ordering::Acquire)) as i32 >= ahead as i32;
        if let Some(late) = self.taken.iter().position(late) {
            let message = format!(
                "this rank has called `run` {ahead} times more than rank {late}, and may be {ahead} calls ahead at most: let the ranks wait for one another now and then, as by `World::barrier`"
            );
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
        }
        let address = lay_out()?;
        // Acquire and Release: who finds it finds what was placed. What was loaded above does not come back: nobody uses the
        // place twice more before this rank has taken this world.
        Ok(match place.compare_exchange(found, address | round, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Laid::Here(address),
            Err(other) => Laid::There(other & !1),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::slice::Heap;

    fn address(laid: Laid) -> (bool, u64) {
        match laid {
            Laid::Here(address) => (true, address),
            Laid::There(address) => (false, address),
        }
    }

    #[test]
    fn places_of_worlds_are_used_again_once_all_ranks_have_taken_them() {
        let worlds = Worlds::place(4, 2, &mut Heap).expect("a heap has room");
        let laid_out = |world: u32| u64::from(world + 1) * 256;
        let take = |world, rank| worlds.take(world, rank, || Ok(laid_out(world) + rank as u64 * 128));
        let found = |world, rank| take(world, rank).map(address).expect("there is a place");
        assert!(take(1, 0).is_err(), "not yet");
        for world in 0..4 {
            assert_eq!(found(world, 0), (true, laid_out(world)));
        }
        assert!(take(3, 0).is_err(), "it has taken it");
        for world in 0..100 {
            // Rank 1 is four worlds behind, and finds what rank 0 has laid out.
            assert_eq!(found(world, 1), (false, laid_out(world)));
            assert_eq!(found(world + 4, 0), (true, laid_out(world + 4)));
        }
        let refused = take(104, 0).map(address).expect_err("rank 1 has not taken world 100");
        assert!(refused.to_string().contains("4 times more than rank 1"), "{refused}");
        // It has taken it all the same: that number stays one world for both.
        assert_eq!(found(100, 1), (false, laid_out(100)));
        assert_eq!(found(101, 1), (false, laid_out(101)));
        assert_eq!(found(105, 0), (true, laid_out(105)));
    }

    #[test]
    fn numbers_of_worlds_begin_again_after_the_last() {
        let worlds = Worlds::place(4, 2, &mut Heap).expect("a heap has room");
        worlds.taken.iter().for_each(|taken| taken.store(u32::MAX - 1, Ordering::Relaxed));
        for step in 0..8_u32 {
            let world = (u32::MAX - 1).wrapping_add(step);
            for rank in 0..2 {
                let laid = worlds.take(world, rank, || Ok(u64::from(step + 1) * 128)).expect("in step");
                assert_eq!(address(laid), (rank == 0, u64::from(step + 1) * 128), "{step}");
            }
        }
    }
}
