//! [`Segment`]: the memory of a job on one machine. It is one memory file that all processes of the
//! job map at the same address.
//!
//! The launcher creates the segment and passes its descriptor to the ranks. The file has no name,
//! so it is gone when the last process that maps it has ended. Its size is an upper bound: it takes
//! addresses at first, and memory only as pages are reserved. The size is sealed, so no process can
//! shrink the file below the mappings of other processes. The segment contains a head, the tables
//! of the job that all worlds use, and an arena for each rank.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};

use crate::budget::MemoryShortage;
use crate::deadlock::{self, Entry};
use crate::shared::members::FailedRanks;
use crate::shared::slice::{KeepAlive, Placement, SharedSlice};
use crate::shared::waker::{Waker, Wakers};
use crate::shm::arena::Arena;
use crate::shm::block::Block;
use crate::shm::mapping::{ADDRESSES, Mapping, PAGE, SegmentHead, SizeLimit, largest_arena};
use crate::sync::Line;
use crate::system::call_failed;

/// The alignment of arenas.
const ALIGN: u64 = 1 << 21;

/// The largest number of worlds of the whole job by which a rank may be ahead of another rank. A
/// slot of the directory is reused after this number of worlds.
pub(super) const MAX_AHEAD: usize = 16_384;

/// The first bytes of a segment.
const MAGIC: u64 = u64::from_le_bytes(*b"fencepst");
const VERSION: u64 = 5;

/// Memory that is retained for its last readers, and a function that returns whether the readers
/// have finished.
type Retained = (Box<dyn Fn() -> bool + Send>, Vec<KeepAlive>);

/// The memory of a job on one machine.
pub struct Segment {
    mapping: Arc<Mapping>,
    ranks: usize,
    wakers: SharedSlice<Line<Waker>>,
    failed: FailedRanks,
    waits: SharedSlice<Line<Entry>>,
    worlds: WorldDirectory,
    /// The arenas of the ranks of this process.
    arenas: Vec<OnceLock<Arc<Arena>>>,
    retained: Mutex<Vec<Retained>>,
}

impl Segment {
    /// Creates the segment of a job of `ranks` ranks.
    ///
    /// # Errors
    /// Fails if the system refuses a call, or if there are too few addresses or bytes. In the
    /// latter case the error names the requested size.
    pub fn create(ranks: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("fencepost", flags)
            .map_err(|errno| call_failed("memfd_create", errno))?;
        let shared = JobTables::bytes(ranks)?;
        let arenas = (PAGE + shared).next_multiple_of(ALIGN);
        let arena = arena_bytes(ranks as u64, arenas)?;
        let bytes = arenas + ranks as u64 * arena;
        rustix::fs::ftruncate(&fd, bytes)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let file = File::from(fd);
        let mut head = SegmentHead {
            magic: MAGIC,
            version: VERSION,
            ranks: ranks as u64,
            bytes,
            address: 0,
            arenas,
            arena,
            tables: shared,
        };
        // There may be other segments in these ranges, so the first free address is used.
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
            let message = format!(
                "cannot map the job's shared memory: no free range of {bytes} bytes of addresses: {error}"
            );
            io::Error::new(error.kind(), message)
        })?;
        let mapping = Mapping::mapped(file, head);
        mapping.reserve_first(PAGE + shared)?;
        let mapping = Arc::new(mapping);
        let base = mapping.at(PAGE);
        // SAFETY: the bytes are reserved, and no other process knows the segment yet.
        let mut block = unsafe { Block::fresh(base, shared, Arc::clone(&mapping) as KeepAlive) };
        let shared = JobTables::place(ranks, &mut block)?;
        mapping.file.write_all_at(bytemuck::bytes_of(&head), 0)?;
        Ok(Self::over(mapping, shared))
    }

    /// Maps the segment of a job that was passed to this process.
    ///
    /// # Errors
    /// Fails if the file is not a segment, if it was created by another version or build, or if its
    /// addresses are in use in this process.
    pub fn join(fd: OwnedFd) -> io::Result<Arc<Self>> {
        let file = File::from(fd);
        let mut head: SegmentHead = bytemuck::Zeroable::zeroed();
        file.read_exact_at(bytemuck::bytes_of_mut(&mut head), 0)?;
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        if head.magic != MAGIC || head.version != VERSION {
            let message = "cannot join the job's shared memory: the file is not a segment of this version";
            return Err(invalid(message.into()));
        }
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        let fits = head.arena.checked_mul(head.ranks).and_then(|all| all.checked_add(head.arenas));
        let sealed = seals.contains(SealFlags::SHRINK);
        if !sealed || fits != Some(head.bytes) || file.metadata()?.len() != head.bytes {
            return Err(invalid("cannot join the job's shared memory: the file is not sealed, or its size differs from its head".into()));
        }
        // The launcher and the ranks may be different builds of one release, whose tables may
        // differ.
        let tables = JobTables::bytes(head.ranks as usize)?;
        if head.tables != tables {
            return Err(invalid(format!(
                "cannot join the job's shared memory: another build of Fencepost has created it, whose tables take {} bytes where this build's take {tables}: build the program and the command that starts it from one source",
                head.tables
            )));
        }
        let mapping = Mapping::new(file, head).map_err(|error| {
            let (from, bytes) = (head.address, head.bytes);
            let why = "cannot map the job's shared memory, which all ranks map at the same address";
            io::Error::new(error.kind(), format!("{why}: {bytes} bytes at {from:#x}: {error}"))
        })?;
        let mapping = Arc::new(mapping);
        let base = mapping.at(PAGE);
        // SAFETY: the creator of the segment has placed the same values there.
        let mut block = unsafe { Block::again(base, head.arenas - PAGE, Arc::clone(&mapping) as KeepAlive) };
        let shared = JobTables::place(head.ranks as usize, &mut block)?;
        Ok(Arc::new(Self::over(mapping, shared)))
    }

    fn over(mapping: Arc<Mapping>, shared: JobTables) -> Self {
        let ranks = mapping.head.ranks as usize;
        Self {
            ranks,
            wakers: shared.wakers,
            failed: shared.failed,
            waits: shared.waits,
            worlds: shared.worlds,
            arenas: (0..ranks).map(|_| OnceLock::new()).collect(),
            retained: Mutex::default(),
            mapping,
        }
    }

    /// Makes this process keep all pages of the segment that it has used. Networks that cache
    /// registered addresses need this, because they would continue to use pages that were returned
    /// to the machine. Freed memory is then reused by this rank only.
    pub fn keep_pages(&self) {
        self.mapping.keep_pages();
    }

    /// Returns the descriptor, which the launcher passes to the ranks.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.mapping.file.as_fd()
    }

    /// Returns the number of ranks of the job.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Records that `rank`, a rank of this process, exits by itself after it has left its last
    /// world with this error. Once `rank` has died, ranks that wait for it in worlds that it never
    /// joined receive this error as the reason.
    pub fn record_exit(&self, rank: usize, why: &str) {
        self.failed.record_exit(rank, why);
    }

    /// Marks `rank` failed, with the reason `how`. In every world, each wait for the rank ends with
    /// this reason.
    ///
    /// The process of the rank must have ended, because memory that it could write to is reused.
    /// Returns whether `rank` was not marked before.
    pub fn mark_failed(&self, rank: usize, how: &str) -> bool {
        let news = self.failed.mark_failed(rank, how);
        if news {
            let all = Wakers::over(self.wakers.clone(), (0..self.ranks as u32).collect(), self.ranks);
            all.wake(0..self.ranks);
        }
        news
    }

    /// Returns the arena of `rank`, which is a rank of this process.
    pub(super) fn arena(&self, rank: usize) -> Arc<Arena> {
        let head = self.mapping.head;
        let offset = head.arenas + rank as u64 * head.arena;
        let arena = || Arc::new(Arena::new(Arc::clone(&self.mapping), offset, head.arena));
        Arc::clone(self.arenas[rank].get_or_init(arena))
    }

    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    pub(super) fn wakers(&self) -> &SharedSlice<Line<Waker>> {
        &self.wakers
    }

    pub(crate) fn waits(&self) -> &SharedSlice<Line<Entry>> {
        &self.waits
    }

    pub(super) fn failed(&self) -> &FailedRanks {
        &self.failed
    }

    /// Returns the directory of the worlds of the whole job.
    pub(super) fn worlds(&self) -> &WorldDirectory {
        &self.worlds
    }

    /// Keeps memory until `done` returns `true`.
    pub(super) fn keep(&self, done: Box<dyn Fn() -> bool + Send>, kept: Vec<KeepAlive>) {
        self.sweep().push((done, kept));
    }

    /// Frees the memory whose readers have finished.
    pub(super) fn sweep(&self) -> MutexGuard<'_, Vec<Retained>> {
        let mut retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
        retained.retain(|(done, _)| !done());
        retained
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Other ranks may still read the remaining memory. It is freed when the last process has
        // unmapped the segment.
        std::mem::take(&mut *self.sweep()).into_iter().for_each(std::mem::forget);
    }
}

/// The tables of the job that all worlds use.
struct JobTables {
    wakers: SharedSlice<Line<Waker>>,
    failed: FailedRanks,
    waits: SharedSlice<Line<Entry>>,
    worlds: WorldDirectory,
}

impl JobTables {
    /// Returns how many bytes the tables of a job of `ranks` ranks take.
    fn bytes(ranks: usize) -> io::Result<u64> {
        Block::measure(|placement| Self::place(ranks, placement))
    }

    fn place(ranks: usize, placement: &mut Block) -> io::Result<Self> {
        Ok(Self {
            wakers: placement.place(ranks, Waker::new)?,
            failed: FailedRanks::place(ranks, placement)?,
            waits: deadlock::place(ranks, placement)?,
            worlds: WorldDirectory::place(MAX_AHEAD, ranks, placement)?,
        })
    }
}

/// The directory of the worlds of the whole job. A world reuses the slot of the world that came
/// `MAX_AHEAD` worlds earlier, once all ranks have taken the address of that earlier world. The
/// first rank to take a world claims its slot and creates the world, while the others wait. Only
/// one rank creates a world, because this takes memory, and some microseconds for each rank of the
/// world. Thousands of ranks could not all create a world at the same time.
pub(super) struct WorldDirectory {
    /// The address of the block of a world, which is a multiple of 128. The lowest bit is the
    /// parity of the round. The round is the number of times that the slot was used. A rank finds
    /// the world of its own round or of the round before, since no rank is further ahead. If
    /// `CLAIMED` is set, the bits above the lowest `SLOT_BITS` are the rank that is creating the
    /// world.
    slots: SharedSlice<AtomicU64>,
    /// The number of worlds that each rank has taken, modulo 2^32. Only that rank writes here.
    taken: SharedSlice<AtomicU32>,
}

/// This flag is set in a slot while a rank is creating the world.
const CLAIMED: u64 = 2;
/// The number of bits of a slot that are not part of an address.
const SLOT_BITS: u32 = 7;

/// Which rank created a world.
pub(super) enum Located {
    /// The caller, just now.
    Here(u64),
    /// Another rank, at this address.
    There(u64),
}

impl WorldDirectory {
    fn place(ahead: usize, ranks: usize, placement: &mut impl Placement) -> io::Result<Self> {
        Ok(Self {
            slots: placement.place(ahead, || AtomicU64::new(0))?,
            taken: placement.place(ranks, || AtomicU32::new(0))?,
        })
    }

    /// Takes world number `world`, which must be the next world of `rank`, the caller. Returns the
    /// address of the world. If no rank has created the world and no living rank is creating it,
    /// the caller creates it with `create`. Even if `create` fails, the rank counts the world as
    /// taken, and takes the next one afterwards.
    ///
    /// # Errors
    /// Fails if `world` is not the rank's next one, if the rank is too far ahead of another rank,
    /// or if there is no room.
    pub(super) fn take(
        &self,
        world: u32,
        rank: usize,
        failed: &FailedRanks,
        create: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Located> {
        let next = self.taken[rank].load(Ordering::Relaxed);
        if world != next {
            let message = format!("rank {rank} cannot take world {world}: its next world is {next}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let located = self.find(world, rank, failed, create);
        // Release: pairs with the load in `check_ahead`, so that this rank's read of the slot
        // happens before another rank reuses the slot.
        self.taken[rank].store(world.wrapping_add(1), Ordering::Release);
        located
    }

    fn find(
        &self,
        world: u32,
        rank: usize,
        failed: &FailedRanks,
        create: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Located> {
        let ahead = self.slots.len() as u32;
        let slot = &self.slots[(world % ahead) as usize];
        let round = u64::from((world / ahead) & 1);
        let claim = (rank as u64) << SLOT_BITS | CLAIMED | round;
        let mut looks = 0;
        let found = loop {
            let found = slot.load(Ordering::Acquire); // pairs with the store of an address, below
            let of_round = found != 0 && found & 1 == round;
            if of_round && found & CLAIMED == 0 {
                return Ok(Located::There(found & !1));
            }
            if of_round && !failed.has((found >> SLOT_BITS) as usize) {
                wait_for_claim(&mut looks);
                continue;
            }
            if !of_round {
                self.check_ahead(world)?;
            }
            // No ABA problem: the slot is not used twice more before this rank has taken this
            // world, so the value does not recur.
            if slot.compare_exchange(found, claim, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                break found;
            }
        };
        let created = create();
        // Release: a rank that reads the address also reads the values placed there. If `create`
        // has failed, another rank tries.
        slot.store(created.as_ref().map_or(found, |address| address | round), Ordering::Release);
        created.map(Located::Here)
    }

    /// Returns an error if a rank has not yet taken the previous world of this slot, because that
    /// rank still has to read the address of that world.
    fn check_ahead(&self, world: u32) -> io::Result<()> {
        let ahead = self.slots.len() as u32;
        let late =
            |other: &AtomicU32| world.wrapping_sub(other.load(Ordering::Acquire)) as i32 >= ahead as i32;
        let Some(late) = self.taken.iter().position(late) else { return Ok(()) };
        let message = format!(
            "this rank has called `run` {ahead} times more than rank {late}, and may be at most {ahead} calls ahead: let the ranks wait for one another now and then, as by `World::barrier`"
        );
        Err(io::Error::new(io::ErrorKind::OutOfMemory, message))
    }
}

/// Takes one step of waiting for a rank that is creating a world. Usually that rank runs next on
/// this core. If it was stopped while it created the world, the wait may take long.
fn wait_for_claim(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A rank polls this many times for a world that is being created. After that it sleeps between two
/// polls.
const LOOKS: u32 = 64;

/// Returns the size of an arena, which is the largest that addresses and limits allow.
fn arena_bytes(ranks: u64, before: u64) -> io::Result<u64> {
    let SizeLimit { bytes, name, .. } = SizeLimit::of_process();
    let arena = (bytes.saturating_sub(before) / ranks.max(1)).min(largest_arena()) / ALIGN * ALIGN;
    if arena == 0 {
        return Err(
            MemoryShortage { requested: before + ranks * ALIGN, available: bytes, limit: name }.into()
        );
    }
    Ok(arena)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::slice::Heap;

    fn address(located: Located) -> (bool, u64) {
        match located {
            Located::Here(address) => (true, address),
            Located::There(address) => (false, address),
        }
    }

    #[test]
    fn places_of_worlds_are_used_again_once_all_ranks_have_taken_them() {
        let worlds = WorldDirectory::place(4, 2, &mut Heap).expect("a heap has room");
        let failed = FailedRanks::place(2, &mut Heap).expect("a heap has room");
        let address_of = |world: u32| u64::from(world + 1) * 256;
        let take =
            |world, rank| worlds.take(world, rank, &failed, || Ok(address_of(world) + rank as u64 * 128));
        let found = |world, rank| take(world, rank).map(address).expect("there is a place");
        assert!(take(1, 0).is_err(), "not yet");
        for world in 0..4 {
            assert_eq!(found(world, 0), (true, address_of(world)));
        }
        assert!(take(3, 0).is_err(), "rank 0 has taken it");
        for world in 0..100 {
            // Rank 1 is four worlds behind, and finds the worlds that rank 0 has placed.
            assert_eq!(found(world, 1), (false, address_of(world)));
            assert_eq!(found(world + 4, 0), (true, address_of(world + 4)));
        }
        let refused = take(104, 0).map(address).expect_err("rank 1 has not taken world 100");
        assert!(refused.to_string().contains("4 times more than rank 1"), "{refused}");
        // Rank 0 has taken world 104 although that was an error. So a number refers to the same
        // world on both ranks.
        assert_eq!(found(100, 1), (false, address_of(100)));
        assert_eq!(found(101, 1), (false, address_of(101)));
        assert_eq!(found(105, 0), (true, address_of(105)));
    }

    #[test]
    fn numbers_of_worlds_begin_again_after_the_last() {
        let worlds = WorldDirectory::place(4, 2, &mut Heap).expect("a heap has room");
        let failed = FailedRanks::place(2, &mut Heap).expect("a heap has room");
        worlds.taken.iter().for_each(|taken| taken.store(u32::MAX - 1, Ordering::Relaxed));
        for step in 0..8_u32 {
            let world = (u32::MAX - 1).wrapping_add(step);
            for rank in 0..2 {
                let located =
                    worlds.take(world, rank, &failed, || Ok(u64::from(step + 1) * 128)).expect("in step");
                assert_eq!(address(located), (rank == 0, u64::from(step + 1) * 128), "{step}");
            }
        }
    }

    #[test]
    fn one_rank_creates_a_world_and_another_does_if_that_one_fails() {
        let worlds = WorldDirectory::place(4, 3, &mut Heap).expect("a heap has room");
        let failed = FailedRanks::place(3, &mut Heap).expect("a heap has room");
        // Rank 0 has no room. It counts the world as taken, and rank 1 creates the world.
        assert!(worlds.take(0, 0, &failed, || Err(io::ErrorKind::OutOfMemory.into())).is_err());
        assert_eq!(worlds.take(0, 1, &failed, || Ok(128)).map(address).expect("there is room"), (true, 128));
        assert_eq!(worlds.take(0, 2, &failed, || Ok(256)).map(address).expect("it is there"), (false, 128));
        // Rank 0 dies while it creates the next world.
        worlds.slots[1].store(CLAIMED, Ordering::Release);
        failed.mark_failed(0, "killed");
        assert_eq!(worlds.take(1, 2, &failed, || Ok(384)).map(address).expect("there is room"), (true, 384));
        assert_eq!(worlds.take(1, 1, &failed, || Ok(512)).map(address).expect("it is there"), (false, 384));
    }

    #[test]
    fn ranks_that_take_a_world_at_once_create_it_once() {
        let worlds = WorldDirectory::place(4, 8, &mut Heap).expect("a heap has room");
        let failed = FailedRanks::place(8, &mut Heap).expect("a heap has room");
        let created = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for rank in 0..8 {
                let (worlds, failed, created) = (&worlds, &failed, &created);
                scope.spawn(move || {
                    for world in 0..100 {
                        let create = || Ok(u64::from(created.fetch_add(1, Ordering::Relaxed) + 1) * 128);
                        let located = loop {
                            // `take` counts the world as taken even if the rank is too far ahead
                            // and gets an error. So each rank waits before the call until it is not
                            // too far ahead.
                            if worlds.check_ahead(world).is_ok() {
                                break worlds.take(world, rank, failed, create).map(address);
                            }
                            std::thread::yield_now();
                        };
                        assert_eq!(located.expect("there is room").1, u64::from(world + 1) * 128);
                    }
                });
            }
        });
        assert_eq!(created.into_inner(), 100);
    }
}
