//! [`Snapshots`]: takes snapshots of a program at its fences.
//!
//! # Protocol
//! At a fence no operation is in flight, so the memory of all ranks after the fence is a consistent
//! state of the whole job. After the fence all ranks call [`offer`](Snapshots::offer), which copies
//! each rank's part.
//!
//! 1. The ranks agree only at some offers; the other offers do nothing. To agree, the ranks reduce
//!    one word. Its bits state whether a rank is still writing, whether a rank has failed, and
//!    whether a signal has arrived. Rank 0 adds whether a snapshot is due, and the number of offers
//!    until the ranks agree again.
//! 2. If a snapshot is due and none is being written, each rank copies its state, and its
//!    [thread](Writer) writes the copy to the folder `writing-STEP`.
//! 3. At the first agreement at which no rank is writing any more, rank 0 gathers the checksums,
//!    and its thread writes the manifest and renames the folder to `step-STEP`. When the ranks
//!    notice at a later agreement that the folder is renamed, the next snapshot may begin.
//!
//! If each host has a folder of its own, the lowest rank of each host does the work of rank 0 for
//! the folder of its host, in the same phases. In step 2 ranks also send their copies to ranks of
//! other hosts, whose threads write these copies. If one of the folders cannot be published, the
//! snapshot is removed from the others.
//!
//! No rank waits for a disk, except when the program is about to end ([`Snapshots::finish`], or a
//! signal). All files of a snapshot, its manifest and its folder are on the disk before the folder
//! gets its final name, and older snapshots are removed only afterwards. So there is a complete
//! snapshot at any time after the first one.

use crate::agreement::{agreed, agreed_as, first_reason, print};
use crate::folder::{self, Folder};
use crate::items::Items;
use crate::pace::{Every, Pace};
use crate::record;
use crate::signals;
use crate::stores::Stores;
use crate::writer::{Outcome, Published, Writer};
use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::World;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A rank is still writing.
const BUSY: u64 = 1;
/// A rank has failed to do its part.
const FAILED: u64 = 2;
/// A rank was asked to end by a signal.
const ASKED: u64 = 4;
/// From rank 0: a snapshot is due.
const DUE: u64 = 8;
/// From rank 0: a snapshot that cannot be written is an error.
const MUST_SUCCEED: u64 = 16;
/// The lowest of the bits in which rank 0 sends the number of offers until the next agreement.
const OFFERS: u32 = 8;
const OFFERS_MAX: u64 = u64::MAX >> OFFERS;

/// The default interval.
const INTERVAL: Duration = Duration::from_secs(600);

/// The state of the work on a snapshot while the program runs. All ranks are in the same phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// Each rank writes its part of the snapshot of this step.
    Writing(u64),
    /// The first rank of each store writes its manifest.
    Publishing(u64),
}

/// The numbers that rank 0 keeps for the summary.
#[derive(Clone, Debug, Default)]
struct Tally {
    taken: u32,
    skipped: u32,
    failed: u32,
    /// The bytes of the last snapshot.
    bytes: u64,
    /// The sum, over all snapshots, of the longest time for which the snapshot delayed a rank.
    /// `wrote` is the sum of the longest time for which a rank wrote each snapshot.
    held: Duration,
    wrote: Duration,
}

/// The snapshots of a program in one folder.
///
/// A program lists its [`Items`] in a function, [restores](Self::restore) the latest snapshot when
/// it starts, and [offers](Self::offer) its state at the end of each step. An offer is cheap; a
/// snapshot is taken only when one is due.
///
/// ```
/// # mod fencepost {
/// #     pub use fencepost_planner::{Error, Result, grid};
/// #     pub use fencepost_runtime::*;
/// #     pub use fencepost_snapshots as snapshots;
/// #     pub mod prelude {
/// #         pub use super::{Result, World, grid::Block};
/// #     }
/// # }
/// use fencepost::prelude::*;
/// use fencepost::snapshots::{Items, Snapshots};
/// use std::time::Duration;
///
/// fn state<'a>(block: &'a Block<1>, u: &'a mut [f64]) -> Items<'a> {
///     Items::new().block("u", block, u)
/// }
///
/// # let temporary = tempfile::tempdir().unwrap();
/// # let folder = temporary.path();
/// # #[cfg(any())]
/// let folder = "out/snapshots";
/// fencepost::ranks(2).run(|world| {
///     let block = Block::new(world, [1000])?.halo(1)?;
///     let mut u = world.window::<f64>(block.len())?;
///     block.fill(&mut u, |[i]| i as f64);
///
///     let mut snapshots = Snapshots::new(world, folder)?.every(Duration::from_secs(600)).keep(2);
///     let first = snapshots.restore(state(&block, &mut u))?.map_or(0, |step| step + 1);
///     for step in first..100 {
///         // supersteps and work
///         snapshots.offer(step, || state(&block, &mut u))?;
///     }
///     snapshots.finish()
/// })?;
/// # Ok::<(), fencepost::Error>(())
/// ```
///
/// A job that was killed continues when it is started again: it repeats at most the work since its
/// last complete snapshot, and its results have the same bits as without the interruption.
/// `fencepost run --restarts 3` restarts the job automatically. `fencepost snapshots FOLDER` lists
/// and verifies the contents of a folder.
///
/// # Signals
/// When SIGUSR1 arrives at a rank or at the launcher, a snapshot is taken at one of the following
/// offers, after at most 1024 offers and at most about a second. All ranks wait until the snapshot
/// is complete, and the offer returns an error. The process then ends with exit code 75. SIGTERM
/// has the same effect if `FENCEPOST_SNAPSHOT_ON_TERM` is `on` (`fencepost run
/// --snapshot-on-term`).
///
/// # Failures
/// If a snapshot cannot be written, older snapshots are left as they are. Rank 0 reports the
/// failure on standard error, and the program goes on, unless [`must_succeed`](Self::must_succeed)
/// was called.
///
/// # Folder
/// All ranks must see the folder under its path. So if there are several hosts, the folder must be
/// on a file system that they share. Only one job at a time may use it. A snapshot of step 40 is a
/// folder `step-40`, with the global array of each [block](Items::block) as a `.npy` file. With
/// [`on_hosts`](Self::on_hosts), each host has a folder of its own instead.
///
/// # Cost
/// Most offers take some nanoseconds and send nothing. About once a second, or at each offer if
/// offers are rarer, the ranks agree with one [`World::allreduce_one`] of eight bytes. A snapshot
/// also copies the state, to memory that later snapshots reuse. So each rank needs additional
/// memory of the size of its state. A thread of each rank writes the copy. See
/// [`on_hosts`](Self::on_hosts) for copies on other hosts.
pub struct Snapshots<'w> {
    world: &'w World,
    path: PathBuf,
    stores: Stores,
    program: String,
    keep: usize,
    /// Whether a snapshot that cannot be written is an error. The setting of rank 0 counts.
    must_succeed: bool,
    /// The steps of damaged snapshots, which are removed after the next snapshot.
    damaged: Vec<u64>,
    /// The number of offers until the ranks agree. `last` is the step of the last offer or
    /// snapshot.
    left: u64,
    last: Option<u64>,
    /// Whether the items of all ranks were compared.
    is_compared: bool,
    phase: Phase,
    writer: Writer,
    pace: Pace,
    tally: Tally,
    /// Whether the last snapshot could not be written. A failure is reported only once.
    has_failed: bool,
}

impl<'w> Snapshots<'w> {
    /// Opens the folder of snapshots at `folder`, and creates it if it does not exist. All ranks
    /// call this.
    ///
    /// Unfinished snapshots of an interrupted job are removed. From now on this process catches
    /// SIGUSR1 (see [Signals](Self#signals)).
    ///
    /// # Errors
    /// IO on all ranks if the folder cannot be created or written, if another job uses it, or if a
    /// rank does not see the folder of rank 0.
    #[track_caller]
    pub fn new(world: &'w World, folder: impl AsRef<Path>) -> Result<Self> {
        Self::open(world, folder.as_ref(), None)
    }

    /// Opens a folder of snapshots on each host, such as one on the host's own disk, and creates
    /// the folder if it does not exist. All ranks call this. `folder` is the path for the host of
    /// this rank.
    ///
    /// The state of each rank is written to `copies` folders: the folder of its host, and those of
    /// the next hosts. With two copies, a snapshot is still complete after the loss of any one
    /// folder. There are at most as many copies as folders. [`restore`](Self::restore) finds the
    /// state of each rank in the folders that the ranks see at that time. A folder that is empty,
    /// such as one on a new disk, gets the next snapshots.
    ///
    /// Ranks share a folder if they are on one host and their paths lead to the same folder. A
    /// folder has a file for each rank, and no `.npy` files.
    ///
    /// # Errors
    /// IO on all ranks if a folder cannot be created or written, if another job uses one, or if
    /// several hosts see the same folder.
    ///
    /// # Cost
    /// A snapshot also delays each rank until it has sent its state `copies - 1` times. In addition
    /// to its own state, each rank needs memory for `copies` copies of a state. To restore a
    /// snapshot, the ranks read each file once and compare its checksums. Each rank then gets the
    /// cells and halos that it needs. The rank needs memory for these cells, and for the cells that
    /// other ranks get from it.
    #[track_caller]
    pub fn on_hosts(world: &'w World, folder: impl AsRef<Path>, copies: usize) -> Result<Self> {
        Self::open(world, folder.as_ref(), Some(copies))
    }

    #[track_caller]
    fn open(world: &'w World, folder: &Path, copies: Option<usize>) -> Result<Self> {
        signals::watch();
        // `absolute` fails if the current directory was removed. The rank then sees no folder.
        let path = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        let program = program();
        let rank = world.rank();
        let stores = match copies {
            None => Stores::shared(world.size()),
            Some(copies) => Stores::of_hosts(world, &path, copies)?,
        };
        // The words of a token, and the latest step if there is one.
        let mut taken = Ok((None, Vec::new()));
        if stores.leader(rank) == rank {
            let (process, time) = (u64::from(std::process::id()), nanoseconds());
            let begun = Folder::take(&path, &program, &token(process, time))
                .and_then(|folder| Ok((folder, folder::steps(&path)?.first().copied())));
            let opened =
                |(folder, latest)| (Some(folder), [process, time].into_iter().chain(latest).collect());
            let hint = if stores.len() == 1 { "" } else { "; if all hosts see it, use `Snapshots::new`" };
            taken = begun.map(opened).map_err(|error| format!("{error}{hint}"));
        }
        let (taken, opened) = agreed(world, taken)?;
        let opened: Vec<Vec<u64>> = world.allgather(&opened)?;
        let leader = stores.leader(rank);
        let writer = if folder::is_taken_with(&path, &token(opened[leader][0], opened[leader][1])) {
            Writer::start(&path, rank, taken, stores.copies()).map_err(|error| error.to_string())
        } else if stores.copies().is_none() {
            Err(format!(
                "does not see the folder {} of rank 0: give an absolute path on a file system that all hosts share",
                path.display()
            ))
        } else {
            Err(format!(
                "the folder {} is not the one that rank {leader} has taken: give a folder that only the ranks of one host see, or use `Snapshots::new` for one that all share",
                path.display()
            ))
        };
        let writer = agreed(world, writer)?;
        Ok(Self {
            world,
            path,
            stores,
            program,
            keep: 2,
            must_succeed: false,
            damaged: Vec::new(),
            left: 1,
            last: opened.iter().filter_map(|opened| opened.get(2).copied()).max(),
            is_compared: false,
            phase: Phase::Idle,
            writer,
            pace: Pace::new(Every::Time(INTERVAL), Instant::now()),
            tally: Tally::default(),
            has_failed: false,
        })
    }

    /// Sets how often a snapshot is due: after a time ([`Duration`]), by the clock of rank 0, or
    /// after a number of offers (`u64`). The default is ten minutes.
    #[must_use]
    pub fn every(mut self, interval: impl Into<Every>) -> Self {
        self.pace.every = interval.into();
        self
    }

    /// Sets how many complete snapshots are kept, at least one. The default is two.
    #[must_use]
    pub fn keep(mut self, snapshots: usize) -> Self {
        self.keep = snapshots.max(1);
        self
    }

    /// Makes [`offer`](Self::offer) return an error when a snapshot cannot be written. By default
    /// the program goes on.
    #[must_use]
    pub fn must_succeed(mut self) -> Self {
        self.must_succeed = true;
        self
    }

    /// Restores the latest snapshot that is intact, and returns its step. Returns `None` if there
    /// are no snapshots; `items` are then left as they were. All ranks call this.
    ///
    /// A snapshot that is damaged is reported on standard error, with file and offset, and the
    /// snapshot before it is used. If the state consists of blocks and values only, the number of
    /// ranks, their grid, halos and placement may differ from those of the run that saved the
    /// snapshot.
    ///
    /// # Errors
    /// All ranks return the error, and the items may then be restored in part. FILE if there are
    /// snapshots and all are damaged, or if they are of another program or of a newer release. FILE
    /// also if their items differ from `items` in name, type, kind or shape, or if they have parts
    /// that another number of ranks saved. Types that are not numbers are compared by size only. IO
    /// if a file cannot be read. ARG for a name that is not allowed.
    ///
    /// # Cost
    /// Each rank reads its cells and their halos once. If the ranks or their grid differ from those
    /// of the snapshot, each rank also reads a share of the files for their checksums.
    #[track_caller]
    pub fn restore(&mut self, mut items: Items<'_>) -> Result<Option<u64>> {
        self.compare(&items)?;
        let folders = (self.path.as_path(), &self.stores);
        let (restored, damaged) = crate::restore::latest(self.world, folders, &self.program, &mut items)?;
        if restored.is_some() {
            (self.last, self.damaged) = (restored, damaged);
        }
        Ok(restored)
    }

    /// Offers the state after step `step`, and takes a snapshot of it if one is due. All ranks
    /// call this, at a point where no operations are collected or in flight, such as after a fence.
    /// `items` is called only if a snapshot is taken.
    ///
    /// # Errors
    /// ARG if the step is not after the step of the previous offer, or not after the latest
    /// snapshot of the folder. After a [signal](Self#signals), OTHER on all ranks once the snapshot
    /// is complete. With [`must_succeed`](Self::must_succeed), IO on all ranks if a snapshot could
    /// not be written. Otherwise as [`World::allreduce`].
    ///
    /// # Cost
    /// See [`Snapshots`](Self#cost).
    #[inline]
    #[track_caller]
    pub fn offer<'a>(&mut self, step: u64, items: impl FnOnce() -> Items<'a>) -> Result<()> {
        if self.last.is_some_and(|last| step <= last) {
            return Err(self.backwards(step));
        }
        self.last = Some(step);
        self.left -= 1;
        if self.left > 0 { Ok(()) } else { self.agree(step, items) }
    }

    /// Waits until the snapshot that is being written is complete. All ranks call this when the
    /// program ends; otherwise the last snapshot may be lost.
    ///
    /// # Errors
    /// With [`must_succeed`](Self::must_succeed), IO on all ranks if the snapshot could not be
    /// written. Otherwise as [`World::allreduce`].
    #[track_caller]
    pub fn finish(&mut self) -> Result<()> {
        while self.phase != Phase::Idle {
            self.writer.wait();
            let word = self.word();
            let all = self.world.allreduce_one(word, Op::Bor)?;
            self.advance(all)?;
        }
        Ok(())
    }

    #[cold]
    #[track_caller]
    fn backwards(&self, step: u64) -> Error {
        let last = self.last.unwrap_or_default();
        let message = format!(
            "step {step} is offered after step {last}, and steps only increase; if step {last} is that of a snapshot in {}, restore it first, or use another folder",
            self.path.display()
        );
        Error::new(ErrorClass::Arg, message)
    }

    /// Agrees with the other ranks on what to do at this offer.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn agree<'a>(&mut self, step: u64, items: impl FnOnce() -> Items<'a>) -> Result<()> {
        self.left = 1; // if this call fails, the next offer agrees again
        let mut word = self.word();
        if signals::requested().is_some() {
            word |= ASKED;
        }
        if self.world.rank() == 0 {
            let (is_due, offers) = self.pace.agree(Instant::now, self.phase != Phase::Idle);
            word |= if is_due { DUE } else { 0 } | offers.min(OFFERS_MAX) << OFFERS;
        }
        let all = self.world.allreduce_one(word, Op::Bor)?;
        self.left = all >> OFFERS;
        self.advance(all)?;
        if all & ASKED != 0 {
            return self.end(step, items());
        }
        if all & DUE != 0 {
            match self.phase {
                Phase::Idle => self.begin(step, &items())?,
                _ => self.tally.skipped += 1,
            }
        }
        Ok(())
    }

    /// Copies the state, and begins to write it.
    fn begin(&mut self, step: u64, items: &Items<'_>) -> Result<()> {
        self.compare(items)?;
        self.writer.begin(step, items, |bytes| self.stores.exchange(self.world, bytes))?;
        self.pace.begin(Instant::now());
        self.phase = Phase::Writing(step);
        Ok(())
    }

    /// Returns the word that this rank contributes to an agreement: the state of its thread and, on
    /// rank 0, whether a snapshot must succeed.
    fn word(&mut self) -> u64 {
        let must_succeed = self.must_succeed && self.world.rank() == 0;
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        bit(self.writer.is_busy(), BUSY)
            | bit(self.writer.has_failed(), FAILED)
            | bit(must_succeed, MUST_SUCCEED)
    }

    /// Enters the next phase if all ranks have finished this one. `all` combines the words of all
    /// ranks.
    fn advance(&mut self, all: u64) -> Result<()> {
        let (Phase::Writing(step) | Phase::Publishing(step)) = self.phase else { return Ok(()) };
        if all & BUSY != 0 {
            return Ok(());
        }
        if all & FAILED != 0 {
            self.phase = Phase::Idle;
            return self.failed(step, all & MUST_SUCCEED != 0);
        }
        let outcome = self.writer.outcome();
        if let Phase::Publishing(_) = self.phase {
            self.phase = Phase::Idle;
            if let Some(Outcome::Published(Ok(published))) = outcome {
                self.tally.add(&published);
                self.has_failed = false;
                let damaged = std::mem::take(&mut self.damaged);
                self.writer.prune(damaged.into_iter().filter(|&other| other != step).collect(), self.keep);
                if self.world.rank() == 0
                    && let Some(member) = fencepost_job::joined()
                {
                    member.report_snapshot(step, &self.path);
                }
            }
            return Ok(());
        }
        let report = match outcome {
            Some(Outcome::Written(Ok(report))) => report.to_bytes(),
            _ => Vec::new(),
        };
        if let Some(reports) = self.stores.gather(self.world, &report)? {
            self.writer.publish(&self.program, step, reports);
        }
        self.phase = Phase::Publishing(step);
        Ok(())
    }

    /// Reports why the snapshot of `step` failed, and removes its files.
    fn failed(&mut self, step: u64, must_succeed: bool) -> Result<()> {
        let outcome = self.writer.outcome();
        let why = outcome.as_ref().and_then(Outcome::error).unwrap_or_default();
        let first = first_reason(self.world, why)?;
        let message = format!("the snapshot of step {step} could not be written: {first}");
        if self.stores.leader(self.world.rank()) == self.world.rank() {
            let is_published = matches!(outcome, Some(Outcome::Published(Ok(_))));
            folder::discard(&self.path, step, is_published);
        }
        if self.world.rank() == 0 {
            self.tally.failed += 1;
            if !must_succeed && !self.has_failed {
                print(&format!(
                    "{message}; the program goes on, older snapshots are left as they are, and further failures are \
                     not reported until one has succeeded"
                ));
            }
        }
        self.has_failed = true;
        if must_succeed { Err(Error::new(ErrorClass::Io, message)) } else { Ok(()) }
    }

    /// Takes a snapshot, and returns the error that ends the program.
    fn end(&mut self, step: u64, items: Items<'_>) -> Result<()> {
        self.finish()?;
        self.must_succeed = true;
        self.begin(step, &items)?;
        self.finish()?;
        let signal = signals::requested().unwrap_or("a signal at another rank");
        let message = format!(
            "the program was asked to end by {signal}; its state after step {step} is saved in {}",
            self.path.display()
        );
        Err(Error::new(ErrorClass::Other, message).stopping())
    }

    /// Checks the items of this rank. At the first call, rank 0 also compares the items of all
    /// ranks.
    fn compare(&mut self, items: &Items<'_>) -> Result<()> {
        agreed_as(self.world, ErrorClass::Arg, items.check(self.world))?;
        if self.is_compared {
            return Ok(());
        }
        let reports = self.world.gather(0, &record::described(items))?;
        let compared = reports.map_or(Ok(()), |reports| record::all(&reports).map(drop));
        agreed_as(self.world, ErrorClass::Arg, compared)?;
        self.is_compared = true;
        Ok(())
    }
}

/// Rank 0 prints a summary if `FENCEPOST_EXPLAIN` is `on`.
impl Drop for Snapshots<'_> {
    fn drop(&mut self) {
        if self.world.rank() == 0 && std::env::var("FENCEPOST_EXPLAIN").is_ok_and(|value| value == "on") {
            print(&format!("snapshots in {}: {}", self.path.display(), self.tally));
        }
    }
}

impl Tally {
    fn add(&mut self, published: &Published) {
        self.taken += 1;
        self.bytes = published.bytes;
        self.held += published.held;
        self.wrote += published.wrote;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { taken, skipped, failed, bytes, held, wrote } = self;
        write!(f, "{taken} taken")?;
        if *taken > 0 {
            let (held, wrote) = (*held / *taken, *wrote / *taken);
            write!(
                f,
                ", the last of {bytes} bytes; each held up the ranks for {held:.1?}, and was written in {wrote:.1?}"
            )?;
        }
        if *skipped > 0 {
            write!(f, "; {skipped} skipped, since the one before was still being written")?;
        }
        if *failed > 0 {
            write!(f, "; {failed} could not be written")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Snapshots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("path", &self.path)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

/// Returns the name of this program as snapshots record it.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    // Cargo adds a hash to the names of tests.
    match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => name.into(),
        _ => name,
    }
}

/// Returns a text that no other job writes to the lock file of the same folder.
fn token(process: u64, time: u64) -> String {
    format!("{process:x}-{time:x}")
}

fn nanoseconds() -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    time.map_or(0, |time| time.as_nanos() as u64)
}
