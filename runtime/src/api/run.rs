//! [`run()`], [`collect`] and [`ranks`]: how a program enters a world.

use crate::api::answer::answer_if_asked;
use crate::api::launch::{launch, process};
use crate::check::state::checks::{Check, Checking, Report};
use crate::messages::state::limits::Limits;
use crate::protocol::state::stalls::{OnStall, Settings, Stall};
use crate::record::{ProfileTo, Recording, Records, next_run};
use crate::state::environment;
use crate::state::handler::is_secondary_failure;
use crate::state::registry::{Registry, new_world};
use crate::state::transport_kind::TransportKind;
use crate::state::window_core::WindowCore;
use crate::state::world::World;
use fencepost_planner::census::Census;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Endpoint, Leave};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a world, before the world is entered; see [`ranks`].
///
/// A setting that the program leaves open is read from the environment when the world is entered.
/// Without a variable, the setting has its default. If a variable contradicts a setting of the
/// program, the contradiction is reported once, on standard error.
///
/// ```
/// # use fencepost_runtime as fencepost;
/// use fencepost::Check;
/// use std::time::Duration;
///
/// # let file = std::env::temp_dir().join("fencepost-conflicts.jsonl");
/// # let file = &file;
/// # #[cfg(any())]
/// let file = "conflicts.jsonl";
/// let world = fencepost::ranks(4)
///     .check(Check::Mpi) // refuse what another MPI might not do
///     .check_memory(1 << 22)
///     .check_report(file)
///     .stall(Some(Duration::from_secs(60)))
///     .on_stall(|stall| match &stall.deadlock {
///         Some(cycle) => eprintln!("in {}: {cycle}", stall.call),
///         None => eprintln!(
///             "rank {} waits for {:?}, {:?}",
///             stall.rank, stall.missing, stall.waited
///         ),
///     })
///     .eager(1 << 10) // longer messages wait for their receives
///     .unexpected(1 << 20);
/// world.run(|world| world.barrier())?;
/// # Ok::<(), fencepost_planner::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing runs until `.run(..)` or `.collect(..)`"]
pub struct Ranks {
    size: Option<usize>,
    transport: Option<TransportKind>,
    mode: Option<Mode>,
    machine: Option<Machine>,
    census: Option<Census>,
    check: Option<Check>,
    check_memory: Option<usize>,
    check_loads: Option<bool>,
    check_report: Option<PathBuf>,
    plan: Option<bool>,
    explain: Option<bool>,
    profile: Option<ProfileTo>,
    trace: Option<PathBuf>,
    stall: Option<Option<Duration>>,
    on_stall: Option<OnStall>,
    end_deadlocks: Option<bool>,
    eager: Option<usize>,
    unexpected: Option<usize>,
    /// The numbers at which each world starts its counters of supersteps and of windows.
    before: (u32, u32),
}

/// The complete settings of a world.
struct Entry {
    size: usize,
    transport: TransportKind,
    mode: Mode,
    machine: Machine,
    census: Option<Census>,
    checking: Checking,
    plan: bool,
    explain: bool,
    /// Whether rank 0 prints the records of its epochs when its program ends.
    explain_all: bool,
    records: Records,
    stalls: Arc<Settings>,
    limits: Limits,
    before: (u32, u32),
}

/// The default level of checking.
const DEFAULT: Check = if cfg!(debug_assertions) { Check::Calls } else { Check::Off };

/// Returns the settings of a world of `size` ranks.
///
/// `ranks(5).run(|world| ..)?` runs a program on each rank. `ranks(5).collect(|world| ..)?` also
/// returns the values of the programs.
///
/// In a job of processes, the world consists of the ranks of the job, which must have exactly
/// `size` ranks. Otherwise the ranks are threads (at most 2048), unless `FENCEPOST_TRANSPORT`
/// selects something else. A program that wants threads in every case requests them:
/// `ranks(5).transport(TransportKind::Local)`.
pub fn ranks(size: usize) -> Ranks {
    Ranks { size: Some(size), ..Ranks::default() }
}

/// Runs `program` on every rank of a world.
///
/// In a job of processes, the world consists of the ranks of the job. Otherwise it has
/// `FENCEPOST_RANKS` ranks, or one rank for each core.
///
/// The program returns only success or an error; [`collect`] takes a program that returns a value.
///
/// ```
/// # mod fencepost {
/// #     pub use {fencepost_planner::Result, fencepost_runtime::run};
/// # }
/// use fencepost::Result;
///
/// fn main() -> Result<()> {
///     fencepost::run(|world| {
///         let mut u = world.window::<u8>(1)?;
///         u.fence()
///     })
/// }
/// ```
///
/// All other settings come from environment variables whose names begin with `FENCEPOST_`. The
/// methods of [`Ranks`] make the same settings for one world. `fencepost env` lists these
/// variables. With `FENCEPOST_TRANSPORT=shm` or `tcp` the program starts processes: see
/// [`launch`](crate::launch()). A variable with an unknown name is reported on standard error, once
/// in a process and together with the nearest known name. In a job, rank 0 reports it.
///
/// A program may run several worlds one after another, and one inside another on the same thread.
/// In a job of processes, the worlds of the processes are paired by the order in which each process
/// enters them. So only one thread of a process may be in `run` at a time. A second thread's `run`
/// is refused with `ARG`. The first thread's `run` returns `ARG` as well, since its world may have
/// been paired with a wrong world of another process. A job may enter any number of worlds in a
/// row. If ranks share memory, a rank may be up to 16,384 worlds ahead of another rank. Going
/// further ahead is refused with `IO`.
///
/// # Errors
/// Returns the error of the lowest rank whose failure was not caused by another rank. Returns `ARG`
/// if an environment variable has a value that is not allowed, or if the file of a machine model
/// cannot be read. Returns `FILE`, with the line, if the content of the file is not a machine
/// model.
#[doc(alias = "MPI_Init")]
#[doc(alias = "MPI_Finalize")]
pub fn run(program: impl Fn(&World) -> Result<()> + Sync) -> Result<()> {
    Ranks::default().run(program)
}

/// Runs `program` like [`run()`], and returns the values of this process's ranks, in the order of
/// ranks.
///
/// If ranks are threads, returns the values of all ranks. If ranks are processes, returns only the
/// value of this rank.
///
/// # Errors
/// As [`run()`].
pub fn collect<R: Send>(program: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    Ranks::default().collect(program)
}

/// The maximum number of ranks that are threads of one process. The number is limited because each
/// pair of these ranks shares about 2 KiB of memory.
const THREADS: usize = 2048;

thread_local! {
    /// Whether this thread runs the program of a rank.
    static IN_PROGRAM: Cell<bool> = const { Cell::new(false) };
}

/// The way in which one rank ended.
enum End<R> {
    Value(R),
    Error(Error),
    /// The message of a panic, and its payload.
    Panic(String, Box<dyn Any + Send>),
}

impl<R> End<R> {
    fn value(self, rank: usize) -> Result<R> {
        match self {
            End::Value(value) => Ok(value),
            End::Error(error) => Err(error.on_rank(rank)),
            End::Panic(why, _) => Err(panicked(rank, &why)),
        }
    }
}

fn panicked(rank: usize, why: &str) -> Error {
    Error::new(ErrorClass::Other, format!("rank {rank} panicked: {why}")).on_rank(rank)
}

impl Ranks {
    /// Sets how the ranks reach each other.
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Sets the preferred mode of operations that do not name a mode.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the model of the costs of communication.
    ///
    /// Every prediction and every choice of this world, and of worlds that are split from it,
    /// follows the model. The default of [`Machine`] is the model of a two-core server. The
    /// variable is `FENCEPOST_MACHINE`.
    ///
    /// All ranks must give the same model: if the models differ, the first call that all ranks make
    /// returns `RMA_SYNC` on all ranks.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// Sets the census. The census is the algorithm by which ranks find out, at fences, barriers
    /// and short collectives, which ranks have entered the call, and for which other ranks each of
    /// them has data.
    ///
    /// The setting holds for this world and for worlds that are split from it. By default the
    /// machine model decides. Each census gives the same results, to the bit, and errors with the
    /// same names. In a sparse census, one rank represents its host if only some ranks share
    /// memory. If no ranks share memory, one rank represents up to eight ranks of a machine. A
    /// world whose census is sparse by default may take the reduced census for a fence. It does so
    /// if each rank had data for most other ranks in the fence before, and if the model predicts
    /// that the reduced census is faster. This setting is for measurements. The variable is
    /// `FENCEPOST_CENSUS=direct|sparse|reduced`.
    ///
    /// All ranks must choose the same census: if the choices differ, the first call that all ranks
    /// make ends the world with `RMA_SYNC`.
    pub fn census(mut self, census: Census) -> Self {
        self.census = Some(census);
        self
    }

    /// Sets whether the world plans its communication.
    ///
    /// Without planning, every operation is a message of its own. Supersteps that this world
    /// prepares are then compiled in the aggressive mode, and no messages are joined. In epochs
    /// that are not compiled, every operation is aggressive, even if it requests another mode.
    /// Loaded plans stay unchanged if they fit the placement of the ranks. Where ranks reach each
    /// other's memory, epochs that are not compiled have no messages. This setting is for
    /// measurements. The variable is `FENCEPOST_PLAN=on|off`.
    #[doc(hidden)]
    pub fn plan(mut self, plan: bool) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Sets which mistakes this world, and worlds that are split from it, look for while they run.
    ///
    /// The default is `Calls` in debug builds and `Off` in others. The variable is
    /// `FENCEPOST_CHECK=off|calls|conflicts|mpi`.
    ///
    /// At each level but `Off`, `run` returns `RMA_SYNC` if a rank has dropped a window with
    /// operations that no fence has carried out ([`Window::discard`](crate::Window::discard)).
    ///
    /// With `Conflicts`, these are errors:
    ///
    /// - **A fence** of an epoch in which two operations conflict applies nothing. It returns
    ///   `RMA_CONFLICT`, with the lines of both operations, on the rank that owns the elements and
    ///   on both origins. It returns `RMA_SYNC` on the other ranks.
    /// - **The wait of an exposure** returns `RMA_CONFLICT` if two operations of its accesses
    ///   conflict. **The unlock, flush or load of a shared epoch** returns `RMA_CONFLICT` if the
    ///   epoch conflicts with another epoch and nothing orders the two epochs. After either error,
    ///   the next [`barrier`](crate::World::barrier) returns errors on all ranks, as a fence does.
    ///   So does the next call that changes a window over to locks or back.
    /// - **A put that writes an element twice** returns `RMA_CONFLICT` at its call, with its line,
    ///   and is not part of the epoch. The same holds for an operation that conflicts with an
    ///   earlier operation of the same rank, in the epoch of a fence or in an access. Its error has
    ///   the lines of both operations.
    ///
    /// An epoch without such a conflict has the same results, to the bit, as an epoch that is not
    /// checked.
    ///
    /// With `Mpi`, a fence returns `RMA_CONFLICT` in two more cases. In the first, a rank has
    /// stored into its part since the window was made or last fenced, and another rank accesses the
    /// part in a way that MPI then leaves undefined. In the second, a rank has called an operation
    /// that uses a section of its part, and has then stored into that section. In addition, a
    /// broadcast, a scatter, a reduction to one rank, a gather and a scan order epochs of locks
    /// only as far as MPI requires.
    ///
    /// A superstep with a conflict is not prepared or loaded: the call returns `RMA_CONFLICT` on
    /// the ranks that know the conflict. A superstep is not checked while it runs.
    ///
    /// All ranks must choose the same level: if the levels differ, the first fence of windows or
    /// barrier returns `RMA_SYNC`. Without the feature `check`, no conflicts are checked.
    ///
    /// # Cost
    /// Nothing, unless conflicts are checked. In that case:
    ///
    /// - The record of an operation on one element takes 8 bytes. Records of other operations take
    ///   more.
    /// - Each fence of windows has one more exchange, in which these records, with the lines of the
    ///   calls, are sent to the targets of the operations. Each origin marks the elements that it
    ///   touches, with one bit for each kind of operation. If several ranks touch the elements of a
    ///   target, the target marks its elements as well.
    /// - A barrier has one more exchange. Each post, access and message has one more frame, with a
    ///   word for each rank.
    /// - Each epoch of a lock is compared with the epochs on the same part that are not known to be
    ///   over.
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Sets the memory, in bytes for each part of a window, in which the search for conflicts
    /// records the operations under locks.
    ///
    /// The default is 1 MiB. The variable is `FENCEPOST_CHECK_MEMORY`. Each rank has an equal share
    /// of this memory at each part. An operation on one run of elements takes 64 bytes of the
    /// share, and a repetition of an operation takes none. A share is reused when all ranks have
    /// met. A rank whose share is full may miss conflicts. It reports this once, with the line of
    /// the first call concerned, on standard error and in the [report](Self::check_report). All
    /// conflicts that are reported are real nevertheless. Ranks may choose different values.
    pub fn check_memory(mut self, bytes: usize) -> Self {
        self.check_memory = Some(bytes);
        self
    }

    /// Sets whether [`Check::Mpi`] also looks for conflicts of loads.
    ///
    /// If a rank has loaded an element of its part since the window was made or last fenced, and
    /// another rank puts or accumulates into that element in the epoch, the fence returns
    /// `RMA_CONFLICT`, as for a store. The default is off. The variable is
    /// `FENCEPOST_CHECK_LOADS=on|off`. Ranks may choose differently.
    ///
    /// With this setting, the elements of a window that is not made for locks are mapped a second
    /// time, for the program alone. A window of a [vector](crate::World::window_from) copies the
    /// vector. How loads from that mapping are seen depends on the build.
    ///
    /// **In a build for checking** the compiler inserts a call before each load:
    ///
    /// ```text
    /// export RUSTFLAGS="--cfg fencepost_loads -Cpasses=memprof \
    ///     -Cllvm-args=-memprof-use-callbacks -Cllvm-args=-memprof-instrument-writes=false \
    ///     -Cllvm-args=-max-loads-per-memcmp=0 -Cno-vectorize-loops -Cno-vectorize-slp"
    /// cargo run --release --target x86_64-unknown-linux-gnu
    /// ```
    ///
    /// With `--target`, these flags do not apply to build scripts and macros. Copies and
    /// comparisons of slices are seen as well, and elements may be passed to system calls. Loads by
    /// code that was compiled differently are not seen: code that the standard library compiles
    /// once for all programs (such as the formatting of a number, as in `println!("{}", u[3])`),
    /// other languages, assembly, and the system. In an ordinary build, the loads of all code
    /// except the system's are seen.
    ///
    /// **In an ordinary build** the second mapping is protected from the moment when the window is
    /// made. Each access raises a signal, is recorded, and is then executed as a single
    /// instruction. This has consequences:
    ///
    /// - **A system call that the program passes elements to** (`file.write_all(bytes_of(&u[..]))`,
    ///   a read into the window) fails with EFAULT between two fences, since a system call raises
    ///   no signal. Copy the elements first. Elements may be passed to calls of this crate
    ///   directly.
    /// - A load that also stores, as in `u[i] += 1`, may be seen only as a store. The pages of a
    ///   long copy stay open after it, so later loads from these pages are not seen. If several
    ///   threads of the program access elements at the same time, some loads may not be seen.
    /// - At most 1024 windows of a process are watched. No window is watched while SIGSEGV or
    ///   SIGTRAP is blocked, or has a handler that was installed after the handler of this crate.
    ///   Signals that belong to no window go to the handlers that were installed before.
    ///
    /// In both kinds of build:
    ///
    /// - The loads that count are those that the processor executes. An optimised build may load
    ///   the target of a reference, or an element of an array whose length is part of its type,
    ///   before it checks the condition under which the source code reads that value. Such a load
    ///   is reported.
    /// - If one instruction loads several elements, only the first is seen.
    /// - If the program passes elements to a call of this crate, the loads of that call may not be
    ///   seen.
    /// - A window that was made for locks is not watched. No window is watched on a processor other
    ///   than x86-64, or if memory cannot be mapped twice. A rank reports the first of its own
    ///   windows that is not watched.
    ///
    /// # Cost
    /// In a build for checking, some nanoseconds for each load, of any memory: an epoch of a
    /// stencil takes about ten times as long. In an ordinary build, tens of microseconds for each
    /// instruction that accesses the window, so only small problems are practical.
    pub fn check_loads(mut self, loads: bool) -> Self {
        self.check_loads = Some(loads);
        self
    }

    /// Sets the file to which conflicts are appended, each as a line of JSON.
    ///
    /// The rank that owns the elements of a conflict writes the line. Under locks, the rank that
    /// finds the conflict writes it. The line contains the window, the owner and the elements, and
    /// for each of the two operations its rank, kind, file, line and column. It also contains
    /// `refused` if the later operation was refused at its call. By default there is no file;
    /// [`run()`] reads `FENCEPOST_CHECK_REPORT`. The file must be a regular file: nothing is
    /// written to a device or a named pipe. If the file cannot be written, each process reports the
    /// failure once, on standard error.
    pub fn check_report(mut self, file: impl Into<PathBuf>) -> Self {
        self.check_report = Some(file.into());
        self
    }

    /// Sets whether a record of each epoch, with its actions and their reasons, is kept for
    /// [`World::explain_last`](crate::World::explain_last).
    ///
    /// The variable is `FENCEPOST_EXPLAIN=on|off`. If the variable enables the records, rank 0 also
    /// prints all of its records on standard error when its program ends, grouped by the calls that
    /// ended the epochs.
    pub fn explain(mut self, explain: bool) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Starts the counters of supersteps and windows at these values, to test overflow. All ranks
    /// must give the same values.
    #[doc(hidden)]
    pub fn beginning_at(mut self, supersteps: u32, windows: u32) -> Self {
        self.before = (supersteps, windows);
        self
    }

    /// Sets how long a wait lasts before it is reported.
    ///
    /// The wait is reported again each time that its duration has doubled. `None` disables the
    /// reports, and the default is 10 seconds. With a duration of zero, a wait is reported as soon
    /// as the rank would sleep. The report names the waiting rank, its call, and the ranks that it
    /// waits for. It also contains how many of the awaited things have arrived, and where the
    /// awaited rank is, if that is known. The variable is `FENCEPOST_STALL`.
    ///
    /// # Cost
    /// Nothing until a waiting rank would sleep; from then on, one reading of the clock each time
    /// that it wakes.
    pub fn stall(mut self, after: Option<Duration>) -> Self {
        self.stall = Some(after);
        self
    }

    /// Sets the function that a waiting rank calls, within the wait, with each
    /// [report](Self::stall) of the wait.
    ///
    /// Without such a function, the reports are lines on standard error. The function must not call
    /// methods of a world. A panic in it is caught: the wait continues, and the function is not
    /// called for that wait again.
    pub fn on_stall(mut self, told: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(OnStall(Arc::new(told)));
        self
    }

    /// Sets whether a cycle of waits ends the worlds of its ranks. In a cycle, each rank waits for
    /// another rank of the cycle, or for any of several ranks that are all in the cycle.
    ///
    /// If `ends`, each rank of the cycle returns an error that names which rank waits for which
    /// other rank, and in which call. Otherwise the cycle is only reported.
    ///
    /// Ranks of one world that are in different collective calls are notified at once. A cycle is
    /// recognised within some seconds, and never by mistake. Two kinds of ranks are never part of a
    /// recognised cycle: a rank that waits for any of more than 64 ranks, and a rank that has begun
    /// to receive in another world, where an arriving message may let other ranks continue. The
    /// variable is `FENCEPOST_DEADLOCK`.
    pub fn end_deadlocks(mut self, ends: bool) -> Self {
        self.end_deadlocks = Some(ends);
        self
    }

    /// Sets the size in bytes of the longest message that is sent together with its elements.
    ///
    /// The default is 16,384. For messages to a rank of another host, or by TCP, it is 1,048,576.
    /// The size is at most one rank's equal share of [`unexpected`](Self::unexpected), less 64
    /// bytes. If the size is 0, only empty messages are sent at once. Of a longer message, only the
    /// envelope is sent at first, and the elements follow when a receive has taken the message. So
    /// a [send](crate::Message::send) of a longer message waits for its receive. [`run()`] reads
    /// `FENCEPOST_EAGER`.
    pub fn eager(mut self, bytes: usize) -> Self {
        self.eager = Some(bytes);
        self
    }

    /// Records how long the calls of the program take: each superstep, fence and collective, by its
    /// line.
    ///
    /// When [`run`](Self::run) ends, rank 0 prints the profile on standard error, or writes it to
    /// `file`, with one line of JSON for the run and one for each call. Later runs of the program
    /// append to the file.
    ///
    /// For each call, the profile has the number of its runs; the time of a run on the fastest rank
    /// and on the slowest rank; how long ranks waited in it, and for which rank; the frames and
    /// bytes that were posted; and, if it was prepared, the predicted time. A call inside another
    /// call, such as the exchange of a collective, is a part of the outer call. Where ranks share
    /// memory, waits of less than a microsecond are not seen. The variable is
    /// `FENCEPOST_PROFILE=on|off`, or the path of a file.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// let file = std::env::temp_dir().join("fencepost-profile.jsonl");
    /// fencepost::ranks(2).profile(Some(file.clone())).run(|world| world.barrier())?;
    /// assert!(std::fs::read_to_string(&file)?.contains("\"runs\":1"));
    /// # std::fs::remove_file(&file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cost
    /// Some 60 ns for each call. At the end, rank 0 waits for the records of the other ranks, but
    /// at most as long as its own program took, or ten seconds if that is longer. The profile names
    /// the ranks that have failed or whose records arrive later.
    pub fn profile(mut self, file: Option<PathBuf>) -> Self {
        self.profile = Some(file.map_or(ProfileTo::Printed, ProfileTo::File));
        self
    }

    /// Sets the folder to which each rank writes its trace, as `FENCEPOST_TRACE` does.
    #[doc(hidden)]
    pub fn trace(mut self, folder: PathBuf) -> Self {
        self.trace = Some(folder);
        self
    }

    /// Sets how many bytes of messages a rank keeps for later receives.
    ///
    /// The default is 16 MiB. Each sender may fill an equal share of this memory, and a message
    /// takes 64 bytes in addition to its elements. A [send](crate::Message::send) that finds no
    /// room waits for its receive, and its elements stay with the sender; nothing is dropped. The
    /// variable is `FENCEPOST_UNEXPECTED`.
    ///
    /// All ranks must give the same value: if a rank is sent more bytes than it keeps, the world
    /// ends.
    pub fn unexpected(mut self, bytes: usize) -> Self {
        self.unexpected = Some(bytes);
        self
    }

    /// Runs `program` on every rank of this process.
    ///
    /// If ranks are threads, this process runs all ranks, each on its own thread. With a transport
    /// of processes, this process runs one rank. A process that is not in a job first launches one:
    /// see [`launch`](crate::launch()). In a job, every setting that selects a transport of
    /// processes selects the transport of the job.
    ///
    /// # Errors
    /// As [`run()`]. If ranks are threads, a rank that panicked becomes an error that reports the
    /// panic. A rank that is a process resumes its panic after it has left the world, so the
    /// process exits with code 101 unless the panic is caught. Every other rank gets an error that
    /// names the rank that panicked.
    ///
    /// Returns `ARG` if a thread of a rank's process calls this while another thread of the process
    /// is in such a call: see [`run()`].
    pub fn run(&self, program: impl Fn(&World) -> Result<()> + Sync) -> Result<()> {
        self.collect(program).map(drop)
    }

    /// Runs `program` as [`run`](Self::run) does, and returns the values of this process's ranks,
    /// in the order of ranks.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// let squares = fencepost::ranks(3).collect(|world| Ok(world.rank() * world.rank()))?;
    /// assert_eq!(squares, [0, 1, 4]);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn collect<R: Send>(&self, program: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
        answer_if_asked();
        let entry = self.resolved()?;
        if entry.size == 0 {
            return Err(Error::new(ErrorClass::Arg, "a world has at least one rank"));
        }
        if entry.transport.is_of_processes() {
            launch(entry.size, &entry.transport)?;
        }
        environment::report_unknown();
        let ended = if entry.transport.is_of_processes() {
            entry.run_as_process(program).map(|value| vec![value])
        } else if entry.size > THREADS {
            let message = format!(
                "{} ranks as threads of one process: there are at most {THREADS}; use processes, or fewer ranks",
                entry.size
            );
            Err(Error::new(ErrorClass::Arg, message))
        } else {
            entry.run_as_threads(program)
        };
        match ended {
            // If the ranks were asked to end and have saved their state, the process exits. A `run`
            // inside another `run` returns the error instead, since the outer world has to be left
            // first.
            Err(error) if error.is_stopping() && !IN_PROGRAM.get() => {
                std::process::exit(fencepost_job::STOPPED.into())
            }
            ended => ended,
        }
    }

    /// Returns these settings. Those that the program left open are read from the environment, or
    /// have their defaults.
    fn resolved(&self) -> Result<Entry> {
        use environment::{bytes, either, machine, read, size, text, word};
        const ON: [(&str, bool); 2] = [("on", true), ("off", false)];
        let given = TransportKind::from_environment()?;
        // A program that requests threads gets threads, even in a job.
        let asked = self.transport.as_ref().or(given.as_ref());
        let threads = asked.is_some_and(|transport| !transport.is_of_processes());
        match asked {
            Some(TransportKind::Mpi) => fencepost_job::ask_for(fencepost_job::Wire::Mpi),
            Some(TransportKind::Tcp) => fencepost_job::ask_for(fencepost_job::Wire::Tcp),
            _ => {}
        }
        let process = if threads { None } else { process()? };
        if let (Some(set), Some(given)) = (&self.transport, &given)
            && !(set.is_like(given) || process.is_some() && set.is_of_processes() && given.is_of_processes())
        {
            environment::report_overridden("FENCEPOST_TRANSPORT");
        }
        let asked_size = either(self.size, "FENCEPOST_RANKS", size)?;
        let (size, transport) = match process {
            // The launcher decides the transport. It also decides the size, unless the program or
            // the environment gives another one.
            Some(process) => {
                let size = asked_size.unwrap_or(process.ranks);
                process.agrees(size, self.size.is_some())?;
                (size, TransportKind::Tcp)
            }
            // A launcher of MPI has started a single rank, which exchanges no messages.
            None if matches!(asked, Some(TransportKind::Mpi)) && fencepost_job::is_only_rank() => {
                (asked_size.unwrap_or(1), TransportKind::Local)
            }
            None => {
                let cores = || std::thread::available_parallelism().map_or(1, usize::from);
                (asked_size.unwrap_or_else(cores), asked.cloned().unwrap_or_default())
            }
        };
        let report = either(self.check_report.clone(), "FENCEPOST_CHECK_REPORT", |name| {
            Ok(text(name)?.map(PathBuf::from))
        })?;
        let checking = Checking {
            check: either(self.check, "FENCEPOST_CHECK", read)?.unwrap_or(DEFAULT),
            report: report.map(Report::at),
            memory: either(self.check_memory, "FENCEPOST_CHECK_MEMORY", bytes)?
                .unwrap_or(Checking::default().memory),
            loads: either(self.check_loads, "FENCEPOST_CHECK_LOADS", |name| word(name, &ON))?
                .unwrap_or(false),
        };
        let default = Limits::default();
        let limits = Limits {
            eager: either(self.eager, "FENCEPOST_EAGER", bytes)?.or(default.eager),
            unexpected: either(self.unexpected, "FENCEPOST_UNEXPECTED", bytes)?.unwrap_or(default.unexpected),
        };
        // In a job, environment variables request recordings of the job's worlds only, and not of
        // worlds of threads.
        let is_in_job = fencepost_job::joined().is_some() || std::env::var_os("FENCEPOST_JOB").is_some();
        let is_recorded = !(threads && is_in_job);
        let profile = either(self.profile.clone(), "FENCEPOST_PROFILE", ProfileTo::given)?;
        let trace = either(self.trace.clone(), "FENCEPOST_TRACE", |name| {
            Ok(text(name)?.filter(|folder| !folder.is_empty()).map(PathBuf::from))
        })?;
        let records = Records {
            profile: profile.filter(|_| is_recorded || self.profile.is_some()).unwrap_or(ProfileTo::Nowhere),
            trace: trace.filter(|_| is_recorded || self.trace.is_some()),
        };
        let stalls = Settings::default();
        let ends = |name: &'static str| word(name, &[("report", false), ("end", true)]);
        let stalls = Settings {
            after: either(self.stall, "FENCEPOST_STALL", environment::limit)?.unwrap_or(stalls.after),
            ends: either(self.end_deadlocks, "FENCEPOST_DEADLOCK", ends)?.unwrap_or(stalls.ends),
            told: self.on_stall.as_ref().map_or(stalls.told, |told| told.0.clone()),
        };
        let explained = word("FENCEPOST_EXPLAIN", &ON)?;
        let explain = either(self.explain, "FENCEPOST_EXPLAIN", |_| Ok(explained))?.unwrap_or(false);
        Ok(Entry {
            size,
            transport,
            mode: either(self.mode, "FENCEPOST_MODE", read)?.unwrap_or_default(),
            machine: either(self.machine, "FENCEPOST_MACHINE", machine)?.unwrap_or_default(),
            census: either(self.census, "FENCEPOST_CENSUS", read)?,
            checking,
            plan: either(self.plan, "FENCEPOST_PLAN", |name| word(name, &ON))?.unwrap_or(true),
            explain,
            explain_all: explain && explained == Some(true),
            records,
            stalls: Arc::new(stalls),
            limits,
            before: self.before,
        })
    }
}

impl Entry {
    /// Runs the ranks as threads of this process.
    fn run_as_threads<R: Send>(&self, program: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
        let registry = Arc::new(Registry::default());
        let (id, run) = (new_world(), next_run());
        let program = &program;
        let endpoints = self.transport.ends(self.size)?;
        let ends: Vec<End<R>> = std::thread::scope(|scope| {
            let threads: Vec<_> = endpoints
                .into_iter()
                .enumerate()
                .map(|(rank, endpoint)| {
                    let registry = registry.clone();
                    let name = format!("rank {rank}");
                    let about = (registry, Vec::new(), Some(run));
                    let body = move || self.one((id, self.size), endpoint, about, program);
                    std::thread::Builder::new().name(name).spawn_scoped(scope, body)
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => {
                        thread.join().unwrap_or_else(|payload| End::Panic("while leaving".into(), payload))
                    }
                    Err(error) => End::Error(Error::from(error)),
                })
                .collect()
        });
        let mut values = Vec::with_capacity(ends.len());
        let mut first: Option<Error> = None;
        for (rank, end) in ends.into_iter().enumerate() {
            let error = match end.value(rank) {
                Ok(value) => {
                    values.push(value);
                    continue;
                }
                Err(error) => error,
            };
            // A rank's own failure explains more than an error that another rank is gone. The ranks
            // have stopped only if none of them has failed.
            let weight = |error: &Error| match error {
                error if error.is_stopping() => 0,
                error if is_secondary_failure(error) => 1,
                _ => 2,
            };
            if first.as_ref().is_none_or(|first| weight(&error) > weight(first)) {
                first = Some(error);
            }
        }
        match first {
            Some(error) => Err(error),
            None => Ok(values),
        }
    }

    /// Runs this process's rank of the job's next world.
    fn run_as_process<R>(&self, program: impl Fn(&World) -> Result<R> + Sync) -> Result<R> {
        use fencepost_job::control::Ending;
        let Some(member) = crate::api::launch::member()? else {
            return Err(Error::new(ErrorClass::Intern, "a process that was launched is in no job"));
        };
        let rank = member.job().rank as usize;
        // `enter` is called first, since worlds are counted in the order in which threads enter
        // them.
        let entered = member.enter();
        let registry = || Arc::new(Registry::of_job(&member.job().secret, &self.machine));
        let one = |endpoint, program: &(dyn Fn(&World) -> Result<R> + Sync)| {
            let (hosts, run) = (member.job().host_names(), entered.then(next_run));
            self.one((new_world(), 1), endpoint, (registry(), hosts, run), &program)
        };
        if !entered {
            // This rank enters the world and fails at once, so that the later worlds of all
            // processes stay paired.
            let refused = || {
                Error::new(
                    ErrorClass::Arg,
                    "this thread called `run` while another thread of the process was in a `run`: worlds of processes are paired by the order of calls, so one thread of a process may be in `run` at a time; call `run` from one thread, or start the ranks as threads",
                )
            };
            let end = one(member.endpoint()?, &|_| Err(refused()));
            return end.value(rank);
        }
        let end = match member.endpoint() {
            Ok(endpoint) => one(endpoint, &program),
            Err(error) => End::Error(error.into()),
        };
        let (value, panic) = match end {
            End::Panic(why, payload) => {
                environment::print(&format!("rank {rank} panicked: {why}"));
                (End::Error(panicked(rank, &why)).value(rank), Some(payload))
            }
            end => (end.value(rank), None),
        };
        let value = match value {
            Ok(_) if member.overlapped() => {
                let message = "another thread called `run` while this one was in a `run`: worlds of processes are paired by the order of calls, so this world may be of ranks in different calls; call `run` from one thread at a time";
                Err(Error::new(ErrorClass::Arg, message).on_rank(rank))
            }
            value => value,
        };
        let how = match &value {
            Ok(_) => Ending::Finished,
            Err(error) if error.is_stopping() => Ending::Stopped,
            Err(error) if is_secondary_failure(error) => Ending::SecondaryFailure,
            Err(_) => Ending::Failed,
        };
        let error = value.as_ref().err().filter(|error| !error.is_stopping());
        member.leave(how, error.map(ToString::to_string));
        match panic {
            Some(payload) => std::panic::resume_unwind(payload),
            None => value,
        }
    }

    fn one<R>(
        &self,
        id: (u64, usize),
        endpoint: Endpoint,
        (registry, hosts, run): (Arc<Registry>, Vec<Arc<str>>, Option<u32>),
        program: &(impl Fn(&World) -> Result<R> + Sync),
    ) -> End<R> {
        let world = World::new(
            id,
            endpoint,
            registry,
            self.transport.clone(),
            self.machine,
            (self.mode, self.census),
        );
        world.core().calls.begin_at(self.before.0, self.before.1);
        world.core().checks.set(self.checking.clone());
        world.core().supersteps.check(self.checking.check >= Check::Calls);
        world.core().choices.plans.set(self.plan);
        world.core().reports.explains.set(self.explain);
        world.core().messages.limits.set(self.limits);
        world.core().stalls.borrow_mut().settings = self.stalls.clone();
        *world.core().reach.hosts.borrow_mut() = hosts;
        let recording = run.map_or(Ok(None), |run| Recording::begin(&world, &self.records, run));
        let (recording, ended) = match recording {
            Ok(recording) => {
                let outer = IN_PROGRAM.replace(true);
                let ended = catch_unwind(AssertUnwindSafe(|| program(&world)));
                IN_PROGRAM.set(outer);
                (recording, ended)
            }
            Err(error) => (None, Ok(Err(error))),
        };
        let is_stopping = matches!(&ended, Ok(Err(error)) if error.is_stopping());
        let succeeded = is_stopping || matches!(ended, Ok(Ok(_)));
        let recorded = recording.map(|recording| recording.end(&world, succeeded));
        if self.explain_all && world.rank() == 0 && ended.is_ok() {
            environment::print(world.core().explain_all().trim_end());
        }
        let end = match ended {
            Ok(Ok(value)) => {
                world.core().windows.each_collecting(WindowCore::note_unfenced); // including those that were leaked
                let unfenced = world.core().windows.unfenced.borrow().take();
                world.leave(Leave::Finished);
                match unfenced {
                    Some((what, site)) if self.checking.check > Check::Off => {
                        End::Error(Error::new(ErrorClass::RmaSync, what).at(site))
                    }
                    Some((what, _)) => {
                        environment::print(&format!("rank {}: {what}", world.rank()));
                        End::Value(value)
                    }
                    None => End::Value(value),
                }
            }
            Ok(Err(error)) => {
                world.core().end_for_part(&error);
                // A rank that stops must not make the other ranks fail: they may still be in the
                // exchange after which they stop as well.
                let failed = || Leave::Failed(error.to_string());
                world.leave(if is_stopping { Leave::Finished } else { failed() });
                End::Error(error)
            }
            Err(payload) => {
                let why = payload
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_string())
                    .or_else(|| payload.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "with a value that is not a text".into());
                world.leave(Leave::Panicked(why.clone()));
                End::Panic(why, payload)
            }
        };
        if let Some(recorded) = recorded {
            recorded.write();
        }
        end
    }
}
