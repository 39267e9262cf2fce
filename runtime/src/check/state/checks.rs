//! [`Check`]: the mistakes that a world looks for at run time, and the mistakes that its ranks have
//! reported to each other.

use crate::check::state::clock::Clock;
use fencepost_planner::conflicts::Conflict;
use fencepost_planner::ir::pattern::Site;
use fencepost_planner::{Error, ErrorClass};
use fencepost_transport::bytes::{Reader, Writer};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The mistakes of a program that its world looks for at run time; see
/// [`Ranks::check`](crate::Ranks::check).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Check {
    /// Nothing is checked.
    #[default]
    Off,
    /// The calls of each superstep are compared with the pattern of the superstep each time, and
    /// not only the first time on each rank.
    Calls,
    /// As `Calls`. In addition, conflicts of operations cause an error that names both source
    /// lines.
    Conflicts,
    /// As `Conflicts`. In addition, three kinds of stores cause the same error, because Fencepost
    /// defines their result and MPI does not:
    ///
    /// - stores into a part in an epoch of a fence in which other ranks access the part;
    /// - stores into elements that a post of the window does not expose;
    /// - stores into a part before a run of a prepared superstep in which other ranks access the
    ///   part.
    ///
    /// Each call that returns a window to the program, and each post of a part of a window, copies
    /// this rank's part. Stores into the section of an operation between its call and its fence
    /// also cause the error. Each call with such a section copies the section. Collectives with a
    /// root, and scans, have one more exchange. Between epochs of locks, they order only the calls
    /// that they order in MPI. A standard send waits until its message is taken, as a synchronous
    /// send does. So the checker finds ranks that would wait for each other if sends had no buffer.
    Mpi,
}

impl Check {
    /// All kinds of checks. Each kind finds more mistakes than the kind before.
    #[doc(hidden)]
    pub const ALL: [Check; 4] = [Check::Off, Check::Calls, Check::Conflicts, Check::Mpi];

    const fn name(self) -> &'static str {
        match self {
            Check::Off => "off",
            Check::Calls => "calls",
            Check::Conflicts => "conflicts",
            Check::Mpi => "mpi",
        }
    }

    /// Returns whether conflicts are checked.
    pub(crate) fn finds_conflicts(self) -> bool {
        cfg!(feature = "check") && self >= Check::Conflicts
    }

    /// Returns whether standard sends are complete only after their messages were taken.
    pub(crate) fn lets_sends_wait(self) -> bool {
        cfg!(feature = "check") && self == Check::Mpi
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Check {
    type Err = Error;

    /// Parses a name.
    ///
    /// # Errors
    /// Class `Arg` for a text that names no check. The message names the allowed texts. For `mark`
    /// and `log`, which were names of `conflicts`, the message names `conflicts`.
    fn from_str(text: &str) -> Result<Self, Error> {
        Check::ALL.into_iter().find(|check| check.name() == text).ok_or_else(|| {
            let message = match text {
                "mark" | "log" => {
                    format!("there is no check `{text}` any more: use `conflicts`, which finds the same")
                }
                _ => format!("there is no check `{text}`: it is `off`, `calls`, `conflicts` or `mpi`"),
            };
            Error::new(ErrorClass::Arg, message)
        })
    }
}

/// A file to which lines about conflicts are appended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) path: PathBuf,
    /// Whether a failure to write the file was printed.
    pub(crate) has_failed: AtomicBool,
}

impl Report {
    pub(crate) fn at(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, has_failed: AtomicBool::new(false) })
    }
}

/// How a world is checked.
#[derive(Clone, Debug)]
pub(crate) struct Checking {
    pub(crate) check: Check,
    /// The file to which a line is appended for each conflict, for all ranks of this process.
    pub(crate) report: Option<Arc<Report>>,
    /// The number of bytes in which operations under locks are kept, for each part of a window.
    pub(crate) memory: usize,
    /// Whether loads are checked in addition to stores.
    pub(crate) loads: bool,
}

impl Checking {
    /// Returns whether loads are checked.
    pub(crate) fn sees_loads(&self) -> bool {
        cfg!(feature = "check") && self.check == Check::Mpi && self.loads
    }
}

/// The default of [`Checking::memory`].
const MEMORY: usize = 1 << 20;

impl Default for Checking {
    fn default() -> Self {
        Self { check: Check::default(), report: None, memory: MEMORY, loads: false }
    }
}

/// A world's checks, and the conflicts of the epoch that is being ended.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) checking: RefCell<Checking>,
    /// Whether conflicts are checked.
    on: Cell<bool>,
    /// The conflicts on elements of this rank, encoded for other ranks.
    found: RefCell<Vec<u8>>,
    /// The ranks that have sent conflicts, and the bytes that they sent.
    heard: RefCell<Vec<(usize, Vec<u8>)>>,
    /// The times that this rank knows to be over.
    pub(crate) clock: Clock,
    /// The number of operations of epochs that no fence ends.
    operations: Cell<usize>,
    /// Conflicts of epochs that no fence ends. This rank has found them, and has not yet reported
    /// them to other ranks. Each conflict is kept with the kind of synchronisation of its
    /// operations.
    pub(crate) unannounced: RefCell<Vec<(Conflict, Under)>>,
    /// Source lines of this rank, in the form that is sent to other ranks.
    sites: RefCell<Vec<(&'static Location<'static>, Site)>>,
    /// The [bits](Blind::bit) of the causes for which this rank has reported that it may miss
    /// conflicts.
    pub(crate) blind: Cell<u8>,
}

/// The kind of synchronisation of the operations that conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Under {
    /// A fence of all ranks.
    Fence,
    /// Posts and starts.
    Posts,
    /// Locks.
    Locks,
    /// A run of a prepared superstep.
    Run,
}

/// The reason why a rank may miss conflicts that it was asked to find.
#[derive(Clone, Copy)]
pub(crate) enum Blind {
    /// The memory for operations under locks is full.
    Memory,
    /// The memory of a window cannot be watched for loads.
    Loads,
    /// The section of an operation is in another window than the operation.
    Sections,
}

impl Blind {
    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Checks {
    pub(crate) fn set(&self, checking: Checking) {
        self.on.set(checking.check.finds_conflicts());
        *self.checking.borrow_mut() = checking;
    }

    /// Returns whether conflicts are checked.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        cfg!(feature = "check") && self.on.get()
    }

    /// Returns the number of the next operation of an epoch that no fence ends.
    pub(crate) fn next_operation(&self) -> usize {
        self.operations.replace(self.operations.get() + 1)
    }

    /// Returns a source line of this rank, in the form that is sent to other ranks.
    pub(crate) fn site(&self, site: &'static Location<'static>) -> Site {
        /// The maximum number of lines that are kept for later calls.
        const LINES: usize = 64;
        let sites = &mut *self.sites.borrow_mut();
        if let Some((_, known)) = sites.iter().rev().find(|(known, _)| std::ptr::eq(*known, site)) {
            return known.clone();
        }
        let kept = Site { file: site.file().into(), line: site.line(), column: site.column() };
        if sites.len() == LINES {
            sites.clear();
        }
        sites.push((site, kept.clone()));
        kept
    }

    /// Prepares for the end of an epoch in which this rank has `found` these conflicts.
    pub(crate) fn begin(&self, found: Vec<u8>) {
        *self.found.borrow_mut() = found;
        self.heard.borrow_mut().clear();
    }

    /// Returns the bytes that this rank sends to other ranks about a call that failed: the
    /// conflicts that this rank has found, then `said`.
    pub(crate) fn say(&self, said: &[u8]) -> Vec<u8> {
        let found = self.found.borrow();
        let mut bytes = Vec::new();
        bytes.put_counted(&found);
        bytes.extend_from_slice(said);
        bytes
    }

    /// Takes in the bytes that rank `from` has sent about a call that failed. Keeps the conflicts
    /// that `from` has found, and returns the remaining bytes.
    pub(crate) fn hear<'s>(&self, from: usize, said: &'s [u8]) -> &'s [u8] {
        let mut said = Reader(said);
        if let Some(found) = said.counted().filter(|found| !found.is_empty() && self.is_on()) {
            self.heard.borrow_mut().push((from, found.to_vec()));
        }
        said.0
    }

    /// Takes the conflicts that each rank has found, `me` included, in the order of ranks.
    pub(crate) fn take(&self, me: usize) -> Vec<(usize, Vec<u8>)> {
        let (mut all, found) = (self.heard.take(), self.found.take());
        if !found.is_empty() {
            all.push((me, found));
        }
        all.sort();
        all
    }
}
