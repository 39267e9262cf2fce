//! A stand-in for the messages of MPI, for tests. Its ranks are threads of this process.
//!
//! Messages are matched by their sender, in order. A message of at most [`EAGER`] bytes is complete
//! at once. A longer message moves only after its receiver has begun to receive it. From then on,
//! each call of its sender moves one piece of the message.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::HybridEnd;
use crate::fabric::Limits;
use crate::mpi::carrier::{MpiEnd, MpiFabric, OverMpi};
use crate::mpi::messages::{Message, Messages, Request};

/// The longest message that is complete when the call that sends it returns, in bytes.
const EAGER: usize = 4 << 10;

/// How many bytes of a longer message move in one call of its sender.
const PIECE: usize = 16 << 10;

/// Returns the ends of a world of `size` ranks in this process, one end for each rank. The ranks
/// exchange messages of a stand-in for MPI.
///
/// # Errors
/// Fails if there are not enough descriptors or threads.
pub fn mpi_stand_in(size: usize) -> io::Result<Vec<MpiEnd>> {
    let end = |(me, fabric): (usize, MpiFabric)| MpiEnd::of_job(&fabric.into(), 0, me, size);
    fabrics(size, Limits::default(), |messages| messages)?.into_iter().enumerate().map(end).collect()
}

/// Returns the ends of a world like that of [`mpi_stand_in`]. Each rank acts as if it ran on its
/// host in `hosts`. Ranks of one host share memory.
///
/// # Errors
/// As for [`mpi_stand_in`]. Also fails if there is no memory.
pub fn hybrid_stand_in(hosts: &[u32]) -> io::Result<Vec<HybridEnd<OverMpi>>> {
    crate::hybrid::threads(hosts, fabrics(hosts.len(), Limits::default(), |messages| messages)?)
}

/// Returns the fabrics of the ranks. Each fabric makes its calls through the [`Messages`] that
/// `wrap` returns.
pub(super) fn fabrics(
    size: usize,
    limits: Limits,
    wrap: impl Fn(Box<dyn Messages>) -> Box<dyn Messages>,
) -> io::Result<Vec<MpiFabric>> {
    let inboxes = (0..size).map(|_| VecDeque::new()).collect();
    let job = Arc::new(Mutex::new(Job { inboxes, ..Job::default() }));
    let fabric = |me| {
        let rank = Box::new(Rank { me, job: job.clone() });
        MpiFabric::over_messages(wrap(rank), me, vec![0; size], limits)
    };
    (0..size).map(fabric).collect()
}

/// The messages between all ranks.
#[derive(Default)]
struct Job {
    /// For each receiver, the messages that were sent and not matched, in order.
    inboxes: Vec<VecDeque<Sent>>,
    matched: Slots<Sent>,
    /// Long messages that are being received, with their sender.
    moving: Vec<(usize, Moving)>,
    /// Whether each request is complete.
    requests: Slots<bool>,
    /// Memory for short messages.
    spare: Vec<Vec<u8>>,
}

/// Values that are found by handles. Handles are reused.
struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, value: T) -> usize {
        let handle = self.free.pop().unwrap_or(self.values.len());
        if handle == self.values.len() {
            self.values.push(None);
        }
        self.values[handle] = Some(value);
        handle
    }

    fn remove(&mut self, handle: usize) -> Option<T> {
        let value = self.values.get_mut(handle)?.take();
        self.free.extend(value.is_some().then_some(handle));
        value
    }
}

/// A message that was sent.
struct Sent {
    from: usize,
    len: usize,
    content: Content,
}

enum Content {
    /// A copy of the message.
    Eager(Vec<u8>),
    /// A message in its sender's memory, and the sender's request.
    Long { at: Address, request: usize },
}

/// The address of bytes that a request keeps in place.
struct Address(*mut u8);

// SAFETY: the caller of `send` or `receive` has promised that the bytes stay, and that nobody else
// uses them, until the request is complete. All ranks use them under one lock.
unsafe impl Send for Address {}

/// A long message that is being received.
struct Moving {
    from: Address,
    to: Address,
    len: usize,
    moved: usize,
    requests: [usize; 2],
}

impl Job {
    /// Moves a piece of each long message that this rank sends.
    fn advance(&mut self, sender: usize) {
        let Self { moving, requests, .. } = self;
        moving.retain_mut(|(from, message)| {
            if *from != sender {
                return true;
            }
            let piece = PIECE.min(message.len - message.moved);
            // SAFETY: neither request is complete, so both the sender's bytes and the receiver's
            // room are in place, and the piece ends within both.
            unsafe {
                let (from, to) = (message.from.0.add(message.moved), message.to.0.add(message.moved));
                std::ptr::copy_nonoverlapping(from, to, piece);
            }
            message.moved += piece;
            let is_complete = message.moved == message.len;
            if is_complete {
                for request in message.requests {
                    requests.values[request] = Some(true);
                }
            }
            !is_complete
        });
    }
}

/// One rank.
struct Rank {
    me: usize,
    job: Arc<Mutex<Job>>,
}

impl Rank {
    /// Locks the job for a call of this rank, and moves a piece of each long message that the rank
    /// sends.
    fn job(&self) -> MutexGuard<'_, Job> {
        let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        job.advance(self.me);
        job
    }
}

impl Messages for Rank {
    unsafe fn send(&mut self, to: usize, bytes: &[u8]) -> Result<Request, String> {
        let mut job = self.job();
        let is_eager = bytes.len() <= EAGER;
        let request = job.requests.insert(is_eager);
        let content = if is_eager {
            let mut copy = job.spare.pop().unwrap_or_else(|| Vec::with_capacity(EAGER));
            copy.extend_from_slice(bytes);
            Content::Eager(copy)
        } else {
            Content::Long { at: Address(bytes.as_ptr().cast_mut()), request }
        };
        job.inboxes[to].push_back(Sent { from: self.me, len: bytes.len(), content });
        Ok(Request(request))
    }

    fn probe(&mut self, from: Option<usize>) -> Result<Option<Message>, String> {
        let mut job = self.job();
        let is_it = |sent: &Sent| from.is_none_or(|from| sent.from == from);
        let Some(at) = job.inboxes[self.me].iter().position(is_it) else { return Ok(None) };
        let Some(sent) = job.inboxes[self.me].remove(at) else { return Ok(None) };
        let (from, len) = (sent.from, sent.len);
        Ok(Some(Message { from, len, handle: job.matched.insert(sent) }))
    }

    unsafe fn receive(&mut self, message: Message, room: &mut [u8]) -> Result<Request, String> {
        let mut job = self.job();
        let Some(Sent { from, len, content }) = job.matched.remove(message.handle) else {
            return Err("there is no such message".into());
        };
        if room.len() != len {
            return Err(format!("a message of {len} bytes is received to {}", room.len()));
        }
        match content {
            Content::Eager(mut bytes) => {
                room.copy_from_slice(&bytes);
                bytes.clear();
                job.spare.push(bytes);
                Ok(Request(job.requests.insert(true)))
            }
            Content::Long { at, request } => {
                let own = job.requests.insert(false);
                let to = Address(room.as_mut_ptr());
                job.moving.push((from, Moving { from: at, to, len, moved: 0, requests: [request, own] }));
                Ok(Request(own))
            }
        }
    }

    fn is_complete(&mut self, request: &mut Request) -> Result<bool, String> {
        let mut job = self.job();
        let is_complete = job.requests.values.get(request.0).copied().flatten();
        if is_complete == Some(true) {
            job.requests.remove(request.0);
        }
        is_complete.ok_or_else(|| "there is no such request".into())
    }

    fn end(&mut self, _: bool) {}

    /// Returns `true`, because one thread may drop the ends of all ranks, one after the other.
    fn end_in_background(&self) -> bool {
        true
    }
}
