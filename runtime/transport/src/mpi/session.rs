//! [`Session`]: the ranks of an MPI between `MPI_Init_thread` and `MPI_Finalize`.

use super::messages::{Message, Messages, Request};
use super::table::{Calls, Group, Mpi};
use std::ffi::c_int;

/// The exit code of a job that is aborted.
const ABORTED: c_int = 125;

/// The ranks that a launcher of MPI has started. Every rank makes the same calls in the same order,
/// as for each collective of MPI.
///
/// Errors of MPI are returned. A session that is dropped without being [ended](Self::end) is not
/// finalised, and its launcher then counts the end of this process as a failure.
pub struct Session {
    calls: Box<dyn Calls>,
    /// Whether this session, and not the program, has initialised MPI.
    is_own: bool,
    rank: usize,
    size: usize,
    host_size: usize,
}

impl Mpi {
    /// Initialises MPI, unless the program has done so. The library stays loaded from now on.
    ///
    /// # Errors
    /// Fails if MPI can't be initialised, or if the program has finalised it.
    pub fn begin(self) -> Result<Session, String> {
        let Self { mut calls, library, .. } = self;
        // Threads and handlers of a library that was initialised may outlive MPI_Finalize.
        std::mem::forget(library);
        let (initialized, finalized) = calls.state();
        if finalized {
            return Err(
                "this program has finalised MPI: it has to enter its first world before it does so".into()
            );
        }
        if !initialized {
            calls.init()?;
        }
        let (rank, size) = calls.place()?;
        let host_size = calls.create_groups()?;
        Ok(Session { calls, is_own: !initialized, rank, size, host_size })
    }
}

impl Session {
    /// Returns this rank's number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Gathers the bytes that each rank of a group contributes, and returns them in the order of
    /// the ranks. Each rank may contribute a different number of bytes.
    ///
    /// # Errors
    /// Fails if MPI fails.
    pub fn gather(&self, group: Group, part: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let ranks = if group == Group::All { self.size } else { self.host_size };
        let equal = |part: &[u8]| {
            let mut all = vec![0; part.len() * ranks];
            self.calls.all_gather(group, part, &mut all).map(|()| all)
        };
        let lengths: Vec<usize> = equal(&(part.len() as u64).to_le_bytes())?
            .chunks_exact(8)
            .map(|bytes| bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)))
            .collect();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        if longest == 0 {
            return Ok(vec![Vec::new(); ranks]);
        }
        let mut padded = part.to_vec();
        padded.resize(longest, 0);
        let all = equal(&padded)?;
        Ok(all.chunks_exact(longest).zip(lengths).map(|(part, length)| part[..length].to_vec()).collect())
    }

    /// Sends a message to another rank, and waits until MPI no longer needs its bytes.
    ///
    /// # Errors
    /// Fails if MPI fails. The memory is leaked then.
    pub fn send(&self, to: usize, bytes: &mut Vec<u8>) -> Result<(), String> {
        // SAFETY: the bytes are borrowed until the request is complete, and leaked if MPI fails.
        let request = unsafe { self.calls.send(to, bytes) };
        self.complete(request, bytes)
    }

    /// Waits for a message of `from`, which has to be as long as `room`.
    ///
    /// # Errors
    /// Fails if MPI fails, and then leaks the memory. Fails if the message has another length.
    pub fn receive(&self, from: usize, room: &mut Vec<u8>) -> Result<(), String> {
        let message = loop {
            if let Some(message) = self.calls.probe(Some(from))? {
                break message;
            }
        };
        if message.len != room.len() {
            return Err(format!(
                "rank {from} has sent {} bytes, and {} are awaited",
                message.len,
                room.len()
            ));
        }
        // SAFETY: as above.
        let request = unsafe { self.calls.receive(message, room) };
        self.complete(request, room)
    }

    /// Waits until a request that uses this memory is complete.
    fn complete(&self, request: Result<Request, String>, memory: &mut Vec<u8>) -> Result<(), String> {
        let waited = request.and_then(|mut request| {
            while !self.calls.is_complete(&mut request)? {}
            Ok(())
        });
        waited.inspect_err(|_| std::mem::forget(std::mem::take(memory)))
    }

    /// Finalises MPI, unless the program has initialised it. All ranks call this.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        if self.calls.state().1 {
            return;
        }
        self.calls.free_groups();
        if self.is_own {
            self.calls.finalize();
        }
    }

    /// Returns whether any thread may call MPI, one at a time. Returns `false` if the program has
    /// initialised MPI, because the program could then call MPI at the same time as the fabric's
    /// thread.
    pub fn is_serialized(&self) -> bool {
        self.is_own && self.calls.is_serialized()
    }

    /// Turns this session into one whose calls any thread may make, if any thread may call MPI.
    /// Otherwise returns the session as the error.
    pub fn serialized(self) -> Result<Serialized, Self> {
        if self.is_serialized() { Ok(Serialized(self)) } else { Err(self) }
    }
}

/// A session whose calls any thread may make, one at a time: MPI has granted MPI_THREAD_SERIALIZED.
pub struct Serialized(Session);

// SAFETY: the handles name objects of the library, which belong to no thread; and the library
// grants calls by any thread.
unsafe impl Send for Serialized {}

impl Serialized {
    /// Returns this rank's number.
    pub fn rank(&self) -> usize {
        self.0.rank
    }
}

impl Messages for Serialized {
    unsafe fn send(&mut self, to: usize, bytes: &[u8]) -> Result<Request, String> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.calls.send(to, bytes) }
    }

    fn probe(&mut self, from: Option<usize>) -> Result<Option<Message>, String> {
        self.0.calls.probe(from)
    }

    unsafe fn receive(&mut self, message: Message, room: &mut [u8]) -> Result<Request, String> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.calls.receive(message, room) }
    }

    fn is_complete(&mut self, request: &mut Request) -> Result<bool, String> {
        self.0.calls.is_complete(request)
    }

    /// Finalises MPI, or aborts the job if a rank has failed. MPI_Finalize would wait for that
    /// rank, and some launchers give the job the exit code of the rank that ended first.
    fn end(&mut self, in_order: bool) {
        if in_order {
            self.0.finish();
        } else {
            self.0.calls.abort(ABORTED);
        }
    }
}
