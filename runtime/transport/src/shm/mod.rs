//! Processes of one machine that share a memory file. All of them map the file at the same address.
//!
//! An address refers to the same memory in all these processes, so ranks access one another's
//! memory as threads do. The code of notifications, queues, the membership table and wakers is the
//! same as for threads, but their memory is in the segment. There are three differences. No rank
//! may read another rank's value of a Rust type that points to a heap. A payload outside the
//! segment is copied into the segment. Memory is freed when other ranks cannot read it any more,
//! and no rank waits for this.

mod arena;
mod block;
mod extents;
mod mapping;
mod segment;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use crate::deadlock::Waits;
use crate::shared::end::{Backend, SharedEnd, WorldTables};
use crate::shared::members::Membership;
use crate::shared::slice::{KeepAlive, Placement};
use crate::shared::waker::Wakers;
use crate::{Bytes, Created, Done, Endpoint, Memory, Number, Port};
use arena::ArenaPlacement;
pub(super) use arena::{Allocation, Arena};
use block::Block;
use segment::Located;
pub use segment::Segment;

/// One rank's end of a world in a segment.
pub type ShmEnd = SharedEnd<Processes>;

/// The use of a segment by one rank of one world.
pub struct Processes {
    segment: Arc<Segment>,
    /// The number of this rank in the world.
    rank: usize,
    /// The rank in the job of each rank of the world.
    members: Arc<[u32]>,
    arena: ArenaPlacement,
    /// Copies of payloads, for each rank and port, with the numbers of their frames.
    copies: BTreeMap<(usize, Port), VecDeque<(u64, Allocation)>>,
    /// Memory that other ranks may still read.
    kept: Vec<(Vec<Bytes>, Done)>,
}

/// Creates a segment, and returns the ends of a world of `size` threads of this process in that
/// segment. For tests.
///
/// # Errors
/// As for [`Segment::create`].
pub fn shm(size: usize) -> io::Result<Vec<ShmEnd>> {
    let segment = Arc::new(Segment::create(size)?);
    (0..size).map(|rank| ShmEnd::of_job(&segment, 0, rank, size)).collect()
}

impl ShmEnd {
    /// Returns the end of `rank` in world number `world` of the job. That world has all `size`
    /// ranks of the job. A rank takes its end of each world once, and the first rank that does so
    /// creates the world.
    ///
    /// # Errors
    /// Fails if the job does not have `size` ranks, if this rank is too many worlds ahead of
    /// another rank, or if there is no room.
    pub fn of_job(segment: &Arc<Segment>, world: u32, rank: usize, size: usize) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if size != segment.ranks() || rank >= size {
            let ranks = segment.ranks();
            return Err(invalid(format!("rank {rank} of {size} does not exist: the job has {ranks} ranks")));
        }
        let members: Arc<[u32]> = (0..size as u32).collect();
        let mut created = None;
        let failed = segment.failed();
        let located = segment.worlds().take(world, rank, failed, || {
            let (address, kept, tables) = create_world(segment, rank, &members)?;
            created = Some((kept, tables));
            Ok(address)
        })?;
        let address = match (located, created) {
            (Located::Here(address), Some((kept, tables))) => {
                segment.keep(Box::new(move || tables.membership.all_swept()), vec![kept]);
                address
            }
            (Located::Here(address) | Located::There(address), _) => address,
        };
        end(segment, address, rank, members)
    }
}

/// Creates a world of these ranks of the job, in the arena of `me`. Returns its address, its
/// memory, and its tables.
fn create_world(
    segment: &Arc<Segment>,
    me: usize,
    members: &[u32],
) -> io::Result<(u64, KeepAlive, WorldTables)> {
    let dead = segment.failed().of(members);
    let place = |block: &mut Block| WorldTables::place(members.len(), Some(dead.clone()), block);
    let bytes = Block::measure(place)?;
    let allocation = segment.arena(me).allocate(bytes, false)?;
    let base = allocation.base();
    // SAFETY: this rank has just allocated the bytes, and no other rank knows them yet. The owner
    // of the returned tables keeps the allocation.
    let mut block = unsafe { Block::fresh(base, bytes, Arc::clone(segment.mapping()) as KeepAlive) };
    let tables = place(&mut block)?;
    Ok((base as u64, Arc::new(allocation), tables))
}

/// Returns the end of `members[index]` of the world at `address`.
fn end(segment: &Arc<Segment>, address: u64, index: usize, members: Arc<[u32]>) -> io::Result<ShmEnd> {
    let dead = segment.failed().of(&members);
    let place = |block: &mut Block| WorldTables::place(members.len(), Some(dead.clone()), block);
    let bytes = Block::measure(place)?;
    let base = address as *mut u8;
    if !address.is_multiple_of(128) || !segment.mapping().holds(base, bytes as usize) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no world at address {address:#x}: join with the number that its creator returned"),
        ));
    }
    let kept = Arc::clone(segment.mapping()) as KeepAlive;
    // SAFETY: this rank got the number of the world from the rank that created it. So a world of
    // `members.len()` ranks was created at this address, and it exists until all its ranks have
    // dropped their ends.
    let tables = place(&mut unsafe { Block::again(base, bytes, kept) })?;
    let me = members[index] as usize;
    let wakers = Wakers::over(segment.wakers().clone(), Arc::clone(&members), segment.ranks());
    let backend = Processes {
        segment: Arc::clone(segment),
        rank: index,
        arena: ArenaPlacement(segment.arena(me)),
        copies: BTreeMap::new(),
        members,
        kept: Vec::new(),
    };
    Ok(SharedEnd::new(index, backend.members.len(), &tables, wakers, backend))
}

impl Processes {
    fn of_job(&self, members: &[usize]) -> io::Result<Arc<[u32]>> {
        let none = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "every member of the new world must be a rank of this one",
            )
        };
        members.iter().map(|&member| self.members.get(member).copied().ok_or_else(none)).collect()
    }
}

impl Backend for Processes {
    const SHARES: bool = false;

    #[inline]
    fn placement(&mut self) -> &mut impl Placement {
        &mut self.arena
    }

    #[inline]
    unsafe fn make_readable(
        &mut self,
        to: (usize, Port),
        number: u64,
        released: u64,
        payload: *const u8,
        len: usize,
    ) -> io::Result<*const u8> {
        if self.segment.mapping().holds(payload, len) {
            return Ok(payload);
        }
        let copies = self.copies.entry(to).or_default();
        while copies.front().is_some_and(|(frame, _)| *frame < released) {
            copies.pop_front();
        }
        let allocation = self.arena.0.allocate(len as u64, false)?;
        // SAFETY: the caller's payload has `len` bytes, and the allocation has room for them and is
        // not used by any other rank.
        unsafe { allocation.base().copy_from_nonoverlapping(payload, len) };
        let carried = allocation.base();
        copies.push_back((number, allocation));
        Ok(carried)
    }

    fn free_copies(&mut self, mut released: impl FnMut(usize, Port, u64) -> bool) {
        self.copies.retain(|(to, port), copies| {
            copies.retain(|(frame, _)| !released(*to, *port, *frame));
            !copies.is_empty()
        });
    }

    fn memory(&self) -> Memory {
        Memory::arena(Arc::clone(&self.arena.0))
    }

    fn keep(&mut self, memory: Vec<Bytes>, done: Done) {
        self.kept.retain(|(_, done)| !done());
        self.kept.push((memory, done));
    }

    fn retain_after_drop(&mut self, membership: &Membership, mut kept: Vec<KeepAlive>) {
        kept.extend(self.kept.drain(..).map(|(memory, _)| Arc::new(memory) as KeepAlive));
        let copies = std::mem::take(&mut self.copies).into_values().flatten();
        kept.extend(copies.map(|(_, allocation)| Arc::new(allocation) as KeepAlive));
        let (membership, rank) = (membership.clone(), self.rank);
        // `sweep` declares that this rank no longer reads the membership table. The rank that
        // created the world waits until all ranks have declared this.
        let done = move || membership.all_detached() && membership.sweep(rank);
        self.segment.keep(Box::new(done), kept);
        drop(self.segment.sweep());
    }

    fn waits(&self) -> Option<Waits> {
        Some(Waits::over(self.segment.waits().clone()))
    }

    fn create(&mut self, members: &[usize]) -> io::Result<Created> {
        let members = self.of_job(members)?;
        let me = self.members[self.rank] as usize;
        let (address, kept, tables) = create_world(&self.segment, me, &members)?;
        self.segment.keep(Box::new(move || tables.membership.all_swept()), vec![kept]);
        Ok(Created::Number(Number { world: address, part: address }))
    }

    fn join(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let members = self.of_job(members)?;
        end(&self.segment, number.part, index, members).map(Endpoint::Shm)
    }
}
