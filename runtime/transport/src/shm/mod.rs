//! Processes of one machine that share a memory file, mapped at the same address by all.
//!
//! So an address means the same to all of them, and the ranks reach one another's memory as threads do: letters, queues,
//! the roll and bells are the same code, placed in the segment. What differs: no value of a Rust type with a pointer of
//! its own to a heap may be read by another rank, a payload that does not lie in the segment is copied there, and memory
//! is given back when others can't read it any more, which nobody waits for.

mod arena;
mod block;
mod budget;
mod extents;
mod mapping;
mod segment;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::deadlock::Waits;
use crate::shared::end::{Common, Ground, SharedEnd};
use crate::shared::members::Roll;
use crate::shared::slice::{Kept, Places};
use crate::shared::waker::Bells;
use crate::{Bytes, Done, Endpoint, Memory, Number};
use arena::Pieces;
pub(super) use arena::{Arena, Piece};
use block::Block;
use segment::Laid;
pub use segment::Segment;

/// One rank's end of a world in a segment.
pub type ShmEnd = SharedEnd<Processes>;

/// A segment, as one rank of one world uses it.
pub struct Processes {
    segment: Arc<Segment>,
    /// This rank in the world.
    rank: usize,
    /// Which rank of the job each rank of the world is.
    members: Arc<[u32]>,
    pieces: Pieces,
    /// Payloads that were copied for each rank, by frame.
    copies: Vec<VecDeque<(u64, Piece)>>,
    /// What others may still read.
    kept: Vec<(Vec<Bytes>, Done)>,
}

/// A world of `size` ranks that are threads of this process, over a segment of their own: for tests.
///
/// # Errors
/// As [`Segment::create`].
pub fn shm(size: usize) -> io::Result<Vec<ShmEnd>> {
    let segment = Arc::new(Segment::create(size)?);
    (0..size).map(|rank| ShmEnd::of_job(&segment, 0, rank, size)).collect()
}

impl ShmEnd {
    /// The end of `rank` in the job's world of this number, which has all its ranks, `size` in number. Every rank takes
    /// each once; the first lays it out.
    ///
    /// # Errors
    /// `size` is not the job's, this rank is too many worlds ahead of another one, or there is no room.
    pub fn of_job(segment: &Arc<Segment>, world: u32, rank: usize, size: usize) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if size != segment.ranks() || rank >= size {
            let ranks = segment.ranks();
            return Err(invalid(format!(
                "the job has {ranks} ranks: there is no rank {rank} of {size} in it"
            )));
        }
        let members: Arc<[u32]> = (0..size as u32).collect();
        let mut founded = None;
        let laid = segment.worlds().take(world, rank, || {
            let (address, kept, common) = lay_out(segment, rank, &members)?;
            founded = Some((kept, common));
            Ok(address)
        })?;
        let address = match (laid, founded) {
            (Laid::Here(address), Some((kept, common))) => {
                segment.keep(Box::new(move || common.roll.all_swept()), vec![kept]);
                address
            }
            (Laid::Here(address) | Laid::There(address), _) => address,
        };
        end(segment, address, rank, members)
    }
}

/// Lay out a world of these ranks of the job, in the arena of `me`: its address, its memory, and how it looks.
fn lay_out(segment: &Arc<Segment>, me: usize, members: &[u32]) -> io::Result<(u64, Kept, Common)> {
    let dead = segment.dead().of(members);
    let place = |block: &mut Block| Common::place(members.len(), Some(dead.clone()), block);
    let bytes = Block::measure(place)?;
    let piece = segment.arena(me).piece(bytes, false)?;
    let base = piece.base();
    // SAFETY: the piece is this rank's, and nobody knows it yet; whoever keeps `Common` keeps the piece.
    let mut block = unsafe { Block::fresh(base, bytes, Arc::clone(segment.mapping()) as Kept) };
    let common = place(&mut block)?;
    Ok((base as u64, Arc::new(piece), common))
}

/// The end of `members[index]` of the world that lies at `address`.
fn end(segment: &Arc<Segment>, address: u64, index: usize, members: Arc<[u32]>) -> io::Result<ShmEnd> {
    let dead = segment.dead().of(&members);
    let place = |block: &mut Block| Common::place(members.len(), Some(dead.clone()), block);
    let bytes = Block::measure(place)?;
    let base = address as *mut u8;
    if !address.is_multiple_of(128) || !segment.mapping().holds(base, bytes as usize) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no world lies at {address:#x}")));
    }
    let kept = Arc::clone(segment.mapping()) as Kept;
    // SAFETY: a world of as many ranks was laid out there, as its number says that was learnt from who did it, and it
    // stays until all its ranks have dropped their ends.
    let common = place(&mut unsafe { Block::again(base, bytes, kept) })?;
    let me = members[index] as usize;
    let bells = Bells::over(segment.bells().clone(), Arc::clone(&members), segment.ranks());
    let ground = Processes {
        segment: Arc::clone(segment),
        rank: index,
        pieces: Pieces(segment.arena(me)),
        copies: members.iter().map(|_| VecDeque::new()).collect(),
        members,
        kept: Vec::new(),
    };
    Ok(SharedEnd::new(index, ground.members.len(), &common, bells, ground))
}

impl Processes {
    fn of_job(&self, members: &[usize]) -> io::Result<Arc<[u32]>> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "a member is not of this world");
        members.iter().map(|&member| self.members.get(member).copied().ok_or_else(none)).collect()
    }
}

impl Ground for Processes {
    const SHARES: bool = false;

    #[inline]
    fn places(&mut self) -> &mut impl Places {
        &mut self.pieces
    }

    #[inline]
    unsafe fn carry(
        &mut self,
        to: usize,
        number: u64,
        released: u64,
        payload: *const u8,
        len: usize,
    ) -> io::Result<*const u8> {
        if self.segment.mapping().holds(payload, len) {
            return Ok(payload);
        }
        let copies = &mut self.copies[to];
        while copies.front().is_some_and(|(frame, _)| *frame < released) {
            copies.pop_front();
        }
        let piece = self.pieces.0.piece(len as u64, false)?;
        // SAFETY: the caller's payload has `len` bytes, and the piece has room for them and is nobody else's.
        unsafe { piece.base().copy_from_nonoverlapping(payload, len) };
        let carried = piece.base();
        copies.push_back((number, piece));
        Ok(carried)
    }

    fn memory(&self) -> Memory {
        Memory::arena(Arc::clone(&self.pieces.0))
    }

    fn keep(&mut self, memory: Vec<Bytes>, done: Done) {
        self.kept.retain(|(_, done)| !done());
        self.kept.push((memory, done));
    }

    fn leave_behind(&mut self, roll: &Roll, mut kept: Vec<Kept>) {
        kept.extend(self.kept.drain(..).map(|(memory, _)| Arc::new(memory) as Kept));
        let copies = self.copies.iter_mut().flat_map(|copies| copies.drain(..));
        kept.extend(copies.map(|(_, piece)| Arc::new(piece) as Kept));
        let (roll, rank) = (roll.clone(), self.rank);
        // This rank looks at the roll no more once it says so; who has laid it out waits for all to have said so.
        let done = move || roll.all_detached() && roll.sweep(rank);
        self.segment.keep(Box::new(done), kept);
        drop(self.segment.sweep());
    }

    fn waits(&self) -> Option<Waits> {
        Some(Waits::over(self.segment.waits().clone()))
    }

    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        let members = self.of_job(members)?;
        let me = self.members[self.rank] as usize;
        let (address, kept, common) = lay_out(&self.segment, me, &members)?;
        self.segment.keep(Box::new(move || common.roll.all_swept()), vec![kept]);
        Ok(Some(Number { world: address, part: address }))
    }

    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let members = self.of_job(members)?;
        end(&self.segment, number.part, index, members).map(Endpoint::Shm)
    }
}
