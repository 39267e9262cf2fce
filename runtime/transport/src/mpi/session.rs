//! [`Session`]: the ranks of an MPI between `MPI_Init_thread` and `MPI_Finalize`.

use super::table::{Calls, Group, Mpi};

/// The ranks that a launcher of MPI has started. Every rank makes the same calls in the same order,
/// as for each collective of MPI.
///
/// With MPI's own handler of errors an error ends the job. A session that is dropped and not
/// [ended](Self::end) is not finalised: its launcher then takes the end of this process for a
/// failure.
pub struct Session {
    calls: Box<dyn Calls>,
    /// Whether this session has initialised MPI, and not the program.
    is_own: bool,
    rank: usize,
    size: usize,
    host_size: usize,
}

impl Mpi {
    /// Initialises MPI, unless the program has done so. The library stays loaded from here on.
    ///
    /// # Errors
    /// MPI can't be initialised; or the program has finalised it.
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
    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns what each rank of a group has given, in the order of the ranks. Each may give
    /// another number of bytes.
    ///
    /// # Errors
    /// MPI has failed.
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

    /// Finalises MPI, unless the program has initialised it. Every rank does so.
    pub fn end(mut self) {
        self.calls.free_groups();
        if self.is_own {
            self.calls.finalize();
        }
    }
}
