//! [`Writer`]: the thread of a rank. It writes the rank's part of a snapshot while the rank
//! continues.

use crate::agreement::print;
use crate::cells::file_runs;
use crate::folder::{self, Folder, named, writing};
use crate::header;
use crate::items::{Item, Items, Shape};
use crate::manifest::{Manifest, file_of_block, file_of_rank, to_hex};
use crate::record::{self, Recorded, Report};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A value for each file that this rank copies, with the rank that owns the file.
pub(crate) type Copies<T> = Vec<(usize, T)>;

/// A copy of this rank's state.
#[derive(Default)]
pub(crate) struct Copied {
    /// The elements of all items except values, one item after another.
    bytes: Vec<u8>,
    /// Each item, with the number of its bytes in the copy.
    items: Vec<(Recorded, usize)>,
}

impl Copied {
    /// Copies the state into the memory of the previous copy.
    ///
    /// # Errors
    /// Fails if there is no memory for the copy.
    pub(crate) fn copy(&mut self, items: &Items<'_>) -> Result<(), String> {
        self.bytes.clear();
        self.items.clear();
        let is_value = |item: &Item<'_>| item.shape == Shape::Value;
        let all: usize = items.all().iter().filter(|item| !is_value(item)).map(Item::len).sum();
        self.bytes
            .try_reserve_exact(all)
            .map_err(|_| format!("there is no memory for a copy of its state of {all} bytes"))?;
        for item in items.all() {
            let (mut recorded, mut len) = (Recorded::of(item), item.len());
            if is_value(item) {
                let mut value = Vec::new();
                item.pack(&mut value);
                (recorded.value, len) = (Some(to_hex(&value)), 0);
            } else {
                item.pack(&mut self.bytes);
            }
            self.items.push((recorded, len));
        }
        Ok(())
    }

    /// Returns the report of this rank, with the checksum of each item and of each copy.
    fn report(
        &self,
        step: u64,
        (sums, copies): (Vec<u32>, Copies<u32>),
        (held, wrote): (Duration, Duration),
    ) -> Report {
        let written = self.items.iter().zip(&sums);
        let items = written.map(|((item, _), &crc32)| Recorded { crc32, ..item.clone() }).collect();
        Report { step, items, copies, taken: folder::now(), held, wrote }
    }
}

/// An order for the thread.
enum Order {
    /// Write this rank's part of the snapshot of `step` from `copied`. If `copied` is an error,
    /// report the error.
    Write { step: u64, copied: Result<Copied, String>, copies: Copies<Vec<u8>>, held: Duration },
    /// Make a snapshot of the folder to which the ranks have written.
    Publish { program: String, step: u64, reports: Vec<Vec<u8>> },
    /// Remove the `damaged` snapshots, and then all but the latest `keep`.
    Prune { damaged: Vec<u64>, keep: usize },
}

/// The result of an order.
pub(crate) enum Outcome {
    /// This rank's report, for the first rank of each store.
    Written(Result<Report, String>),
    Published(Result<Published, String>),
}

/// A snapshot that is complete.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The number of bytes of all items on all ranks.
    pub(crate) bytes: u64,
    /// The longest time for which copying the state delayed a rank. `wrote` is the longest time for
    /// which a thread wrote.
    pub(crate) held: Duration,
    pub(crate) wrote: Duration,
}

impl Outcome {
    /// Returns why the order could not be carried out.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Outcome::Written(Err(why)) | Outcome::Published(Err(why)) => Some(why),
            _ => None,
        }
    }
}

/// The thread that writes for one rank.
pub(crate) struct Writer {
    /// `None` only while the writer is dropped.
    orders: Option<Sender<Order>>,
    results: Receiver<(Outcome, Option<Copied>)>,
    /// Set after a result was sent, and when the thread has ended.
    is_ready: Arc<AtomicBool>,
    /// Whether the result of an order is outstanding.
    is_busy: bool,
    outcome: Option<Outcome>,
    /// Memory for the next copy.
    copied: Copied,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread of `rank`. A rank that leads a store passes its `folder`. `copies` is the
    /// number of folders that get each file, or `None` if all ranks share one folder. If `copies`
    /// is not `None`, the file of a rank also contains the rank's boxes of blocks.
    ///
    /// # Errors
    /// Fails if the system cannot start another thread.
    pub(crate) fn start(
        path: &Path,
        rank: usize,
        folder: Option<Folder>,
        copies: Option<usize>,
    ) -> io::Result<Self> {
        let (orders, taken) = channel::<Order>();
        let (sender, results) = channel();
        let is_ready = Arc::new(AtomicBool::new(false));
        let destination = Destination { path: path.to_owned(), rank, folder, copies };
        let ready = SetOnDrop(is_ready.clone());
        let body = move || {
            run_on_all_cores();
            for order in taken {
                if let Some(result) = destination.carry_out(order) {
                    // The receiver exists as long as the sender of orders.
                    let _ = sender.send(result);
                    ready.0.store(true, Ordering::Release);
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("snapshots of rank {rank}")).spawn(body)?;
        Ok(Self {
            orders: Some(orders),
            results,
            is_ready,
            is_busy: false,
            outcome: None,
            copied: Copied::default(),
            thread: Some(thread),
        })
    }

    /// Copies the state, and begins to write the copy as this rank's part of the snapshot of
    /// `step`. `exchange` sends the bytes of the copy to other ranks, and returns the bytes of the
    /// files that this rank copies.
    ///
    /// # Errors
    /// Returns the error of `exchange`.
    pub(crate) fn begin(
        &mut self,
        step: u64,
        items: &Items<'_>,
        exchange: impl FnOnce(&mut Vec<u8>) -> fencepost_planner::Result<Copies<Vec<u8>>>,
    ) -> fencepost_planner::Result<()> {
        let began = Instant::now();
        let mut copied = std::mem::take(&mut self.copied);
        let result = copied.copy(items);
        // A rank that could not copy its state also takes part in the exchange, without bytes,
        // because the other ranks wait for it.
        let copies = exchange(&mut copied.bytes)?;
        self.order(Order::Write { step, copied: result.map(|()| copied), copies, held: began.elapsed() });
        Ok(())
    }

    /// Begins to turn the folder of `step` into a snapshot, after all ranks have written to it.
    /// `reports` has the report of each rank.
    pub(crate) fn publish(&mut self, program: &str, step: u64, reports: Vec<Vec<u8>>) {
        self.order(Order::Publish { program: program.into(), step, reports });
    }

    /// Orders the thread to remove the `damaged` snapshots, and then all but the latest `keep`. The
    /// thread does this before later orders, and sends no result.
    pub(crate) fn prune(&self, damaged: Vec<u64>, keep: usize) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(Order::Prune { damaged, keep });
        }
    }

    fn order(&mut self, order: Order) {
        self.is_busy = true;
        self.is_ready.store(false, Ordering::Relaxed);
        if self.orders.as_ref().is_none_or(|orders| orders.send(order).is_err()) {
            // The thread has panicked. `wait` finds that there is no result.
            self.is_ready.store(true, Ordering::Release);
        }
    }

    /// Returns whether the thread is still carrying out an order.
    pub(crate) fn is_busy(&mut self) -> bool {
        if self.is_busy && self.is_ready.load(Ordering::Acquire) {
            self.wait(); // only takes the result
        }
        self.is_busy
    }

    /// Returns whether the last order could not be carried out.
    pub(crate) fn has_failed(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.error().is_some())
    }

    /// Waits until the thread has carried out its order, if it has one.
    pub(crate) fn wait(&mut self) {
        if self.is_busy {
            match self.results.recv() {
                Ok(result) => self.arrived(result),
                Err(_) => {
                    self.is_busy = false;
                    let why = "internal error: the thread that writes has panicked".to_owned();
                    self.outcome = Some(Outcome::Written(Err(why)));
                }
            }
        }
    }

    /// Takes the outcome of the last order.
    pub(crate) fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn arrived(&mut self, (outcome, copied): (Outcome, Option<Copied>)) {
        (self.is_busy, self.outcome) = (false, Some(outcome));
        if let Some(copied) = copied {
            self.copied = copied;
        }
    }
}

/// A guard that sets a flag when it is dropped, also during a panic.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until the thread has written everything.
impl Drop for Writer {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// The folder and files to which the thread of a rank writes.
struct Destination {
    path: PathBuf,
    rank: usize,
    folder: Option<Folder>,
    copies: Option<usize>,
}

impl Destination {
    /// Carries out an order, and returns its outcome if it has one.
    fn carry_out(&self, order: Order) -> Option<(Outcome, Option<Copied>)> {
        Some(match order {
            Order::Write { copied: Err(why), .. } => (Outcome::Written(Err(why)), None),
            Order::Write { step, copied: Ok(copied), copies, held } => {
                let began = Instant::now();
                let written = self.write(&writing(&self.path, step), &copied, copies);
                let report = written.map(|sums| copied.report(step, sums, (held, began.elapsed())));
                (Outcome::Written(report.map_err(|error| error.to_string())), Some(copied))
            }
            Order::Publish { program, step, reports } => {
                (Outcome::Published(self.publish(program, step, &reports)), None)
            }
            Order::Prune { damaged, keep } => {
                if let Err(error) = folder::prune(&self.path, &damaged, keep) {
                    print(&format!("an old snapshot could not be removed: {error}"));
                }
                return None;
            }
        })
    }

    fn publish(&self, program: String, step: u64, reports: &[Vec<u8>]) -> Result<Published, String> {
        let folder =
            self.folder.as_ref().ok_or("internal error: only a rank that leads publishes a snapshot")?;
        let reports = record::all(reports)?;
        let manifest = Manifest::assemble(program, step, self.copies, &reports)?;
        folder.publish(&manifest).map_err(|error| error.to_string())?;
        let longest = |time: fn(&Report) -> Duration| reports.iter().map(time).max().unwrap_or_default();
        let (held, wrote) = (longest(|report| report.held), longest(|report| report.wrote));
        Ok(Published { bytes: manifest.bytes(), held, wrote })
    }

    /// Writes this rank's part, and its copies of other ranks' files, to `folder`. Waits until all
    /// these bytes are on the disk. Returns the checksum of each item, and of each copied file.
    fn write(
        &self,
        folder: &Path,
        copied: &Copied,
        copies: Copies<Vec<u8>>,
    ) -> io::Result<(Vec<u32>, Copies<u32>)> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(named(folder, error)),
            _ => {}
        }
        let mut rest = &copied.bytes[..];
        let mut sums = Vec::with_capacity(copied.items.len());
        let mut own: Option<OwnFile> = None;
        for (item, len) in &copied.items {
            let (bytes, others) = rest.split_at(*len);
            rest = others;
            sums.push(match &item.shape {
                Shape::Block { global, origin, extent, .. } if self.copies.is_none() => {
                    let path = folder.join(file_of_block(&item.name));
                    write_box(&path, item, (global, origin, extent), self.rank == 0, bytes)
                        .map_err(|error| named(&path, error))?
                }
                Shape::Value => 0,
                _ => {
                    if own.is_none() {
                        own = Some(OwnFile::create(folder, self.rank)?);
                    }
                    own.as_mut().expect("just made").append(bytes)?
                }
            });
        }
        let Some(own) = own else { return Ok((sums, Vec::new())) };
        own.finish()?;
        let write = |(rank, bytes): (usize, Vec<u8>)| {
            let mut file = OwnFile::create(folder, rank)?;
            let sum = file.append(&bytes)?;
            file.finish()?;
            Ok((rank, sum))
        };
        Ok((sums, copies.into_iter().map(write).collect::<io::Result<_>>()?))
    }
}

/// A rank's own file.
struct OwnFile {
    path: PathBuf,
    file: File,
}

impl OwnFile {
    fn create(folder: &Path, rank: usize) -> io::Result<Self> {
        let path = folder.join(file_of_rank(rank));
        let file = File::create(&path).map_err(|error| named(&path, error))?;
        Ok(Self { path, file })
    }

    /// Appends bytes, and returns their checksum.
    fn append(&mut self, bytes: &[u8]) -> io::Result<u32> {
        let written = pieces(bytes).map(|piece| self.file.write_all(piece).map(|()| piece));
        checksum(written).map_err(|error| named(&self.path, error))
    }

    /// Waits until the file is on the disk.
    fn finish(self) -> io::Result<()> {
        self.file.sync_all().map_err(|error| named(&self.path, error))
    }
}

/// Writes a box of cells to the file of the whole array. Rank 0 (`is_first`) also writes the header
/// and sets the length of the file.
fn write_box(
    path: &Path,
    item: &Recorded,
    (global, origin, extent): (&[usize], &[usize], &[usize]),
    is_first: bool,
    bytes: &[u8],
) -> io::Result<u32> {
    // The rank that arrives first creates the file. No rank truncates it, since other ranks may
    // have written to it.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let header = header::bytes(&item.element, global);
    if is_first {
        file.write_all_at(&header, 0)?;
        let cells: usize = global.iter().product();
        file.set_len(header.len() as u64 + cells as u64 * item.size as u64)?;
    }
    let mut rest = bytes;
    let mut hasher = crc32fast::Hasher::new();
    for (first, cells) in file_runs(global, origin, extent) {
        let (run, others) = rest.split_at(cells * item.size);
        rest = others;
        let mut at = header.len() as u64 + first * item.size as u64;
        for piece in pieces(run) {
            hasher.update(piece);
            file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
    }
    file.sync_all()?;
    Ok(hasher.finalize())
}

/// Lets this thread run on every core on which another thread of the process may run. Otherwise a
/// rank that is pinned to a core would share this core with its writer.
fn run_on_all_cores() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ids = threads.filter_map(|thread| Pid::from_raw(thread.file_name().to_str()?.parse().ok()?));
    let mut cores = CpuSet::new();
    for of_thread in ids.filter_map(|id| sched_getaffinity(Some(id)).ok()) {
        (0..CpuSet::MAX_CPU).filter(|&core| of_thread.is_set(core)).for_each(|core| cores.set(core));
    }
    // If the system does not allow this, the thread keeps its cores.
    let _ = sched_setaffinity(None, &cores);
}

/// Cuts bytes into pieces so small that they stay in the cache between the write and the checksum.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(1 << 20)
}

fn checksum<'a>(pieces: impl Iterator<Item = io::Result<&'a [u8]>>) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece?);
    }
    Ok(hasher.finalize())
}
