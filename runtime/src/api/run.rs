//! [`run()`], [`collect`] and [`ranks`]: enter a world.

use crate::api::launch::{launch, process};
use crate::state::check::{Check, Checking, Report};
use crate::state::environment;
use crate::state::handler::is_secondary_failure;
use crate::state::messages::limits::Limits;
use crate::state::registry::{Registry, new_world};
use crate::state::stalls::{OnStall, Settings, Stall};
use crate::state::transport_kind::TransportKind;
use crate::state::window::WindowCore;
use crate::state::world::World;
use fencepost_planner::census::Census;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Endpoint, Leave};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A world to be entered; see [`ranks`].
///
/// A setting that the program leaves open is read from the environment when the world is entered,
/// and has its default where no variable is set.
/// A variable that says something else than what is set here is reported once, on standard error.
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
    stall: Option<Option<Duration>>,
    on_stall: Option<OnStall>,
    end_deadlocks: Option<bool>,
    eager: Option<usize>,
    unexpected: Option<usize>,
    /// How many supersteps and windows each world of it has had before the first.
    before: (u32, u32),
}

/// The settings of a world, complete.
struct Entry {
    size: usize,
    transport: TransportKind,
    mode: Mode,
    machine: Machine,
    census: Option<Census>,
    checking: Checking,
    plan: bool,
    explain: bool,
    /// Whether rank 0 prints what it has done when its program ends.
    explain_all: bool,
    stalls: Arc<Settings>,
    limits: Limits,
    before: (u32, u32),
}

/// How far worlds are checked unless something else is asked for.
const DEFAULT: Check = if cfg!(debug_assertions) { Check::Calls } else { Check::Off };

/// A world of `size` ranks: `ranks(5).run(|world| ..)?`, or `ranks(5).collect(|world| ..)?` for a value of each rank.
///
/// In a job of processes these are the ranks of the job, which has to have as many; else they are threads, of which there
/// are at most 2048, or what `FENCEPOST_TRANSPORT` says. A program that wants threads wherever it is started says so:
/// `ranks(5).transport(TransportKind::Local)`.
pub fn ranks(size: usize) -> Ranks {
    Ranks { size: Some(size), ..Ranks::default() }
}

/// Run `program` on every rank of a world: in a job of processes, the ranks of the job; else as many ranks as
/// `FENCEPOST_RANKS` says, or as there are cores.
///
/// The program returns nothing but success or an error; [`collect`] is the same for one that returns a value.
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
/// Environment variables whose names begin with `FENCEPOST_` set the rest, as the methods of [`Ranks`]
/// do for one world: `fencepost env` lists them. With `FENCEPOST_TRANSPORT=shm` or `tcp` the program
/// starts processes: see [`launch`](crate::launch()). A name that nothing reads is reported on
/// standard error with the nearest name, once in a process; in a job, rank 0 reports it.
///
/// A program may run several worlds one after another, and one in another by the same thread. In a job of processes the
/// worlds of the processes are paired by the order in which each process enters them. So one thread of a process may be in
/// `run` at a time: a second thread's `run` is refused with `ARG`, and the first one's returns `ARG` as well, since its
/// world may have been paired with another one. A job has as many worlds in a row as it likes; where ranks share memory, a
/// rank may be 16,384 of them ahead of another one, and is refused with `IO` when it would be further ahead.
///
/// # Errors
/// That of the lowest rank that failed by itself; `ARG` for an environment value that is not one of those allowed,
/// and for a machine model that cannot be read; `FILE` for a file that is not a machine model, naming its line.
#[doc(alias = "MPI_Init")]
#[doc(alias = "MPI_Finalize")]
pub fn run(program: impl Fn(&World) -> Result<()> + Sync) -> Result<()> {
    Ranks::default().run(program)
}

/// As [`run()`], for a program that returns a value: returns those of this process's ranks, in the order of ranks. Where ranks
/// are threads, these are all of them; where ranks are processes, it is the one of this process.
///
/// # Errors
/// As [`run()`].
pub fn collect<R: Send>(program: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
    Ranks::default().collect(program)
}

/// Ranks that are threads of one process, at most: each two of them have some memory together, 2 KiB or so.
const THREADS: usize = 2048;

/// How one rank ended.
enum End<R> {
    Value(R),
    Error(Error),
    /// It said this, and panicked with that.
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
    /// How the ranks reach each other.
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The mode that operations without one of their own prefer.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the model of what communication costs, which every prediction and every choice of this
    /// world and its parts follows. The default is that of [`Machine`], a two-core server. The variable is
    /// `FENCEPOST_MACHINE`.
    ///
    /// All ranks must give the same one: where they differ, the first call that all ranks make is `RMA_SYNC` on all.
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// How ranks learn at fences, barriers and short collectives who has entered them, and who has
    /// something for whom, in this world and its parts; by the machine model, unless set. Results
    /// have the same bits and errors the same names in each. Where some ranks share memory and not
    /// all, one rank speaks for its host in a sparse one; where none do, one of up to eight ranks
    /// of a machine. A world that takes the sparse one takes the reduced one in the fence after one
    /// in which each rank had something for most others, where the model has that faster. It is
    /// there to compare with. The variable is `FENCEPOST_CENSUS=direct|sparse|reduced`.
    ///
    /// All ranks must choose the same: where they differ, the first call that all ranks make ends the world with `RMA_SYNC`.
    pub fn census(mut self, census: Census) -> Self {
        self.census = Some(census);
        self
    }

    /// Whether anything is planned. Without, every operation is a message of its own: supersteps
    /// that are prepared here are compiled aggressive and nothing is joined, and in epochs that are
    /// not compiled every operation is aggressive whatever it asks for. Plans that are loaded stay
    /// what they are, unless they do not fit the placement of the ranks. Where memory is reached,
    /// epochs that are not compiled have no messages.
    /// It is there to compare with. The variable is `FENCEPOST_PLAN=on|off`.
    pub fn plan(mut self, plan: bool) -> Self {
        self.plan = Some(plan);
        self
    }

    /// How far this world and its parts look for mistakes while they run. `Calls` in debug builds,
    /// `Off` in others, unless set. The variable is `FENCEPOST_CHECK=off|calls|mark|log|mpi`.
    ///
    /// With each but `Off`, `run` returns `RMA_SYNC` where a rank has dropped a window with operations
    /// that no fence has carried out ([`Window::discard`](crate::Window::discard)).
    ///
    /// With `Mark` and `Log`, the fence of an epoch in which two operations conflict applies nothing: it is `RMA_CONFLICT` on
    /// the rank that owns the elements and on both origins, with both lines, and `RMA_SYNC` on the others. So is the wait of an
    /// exposure, and the unlock, flush or load of a shared epoch that conflicts with one that nothing orders with it; all ranks
    /// then learn of it by their next [`barrier`](crate::World::barrier), or as they change a window over to locks or back, in
    /// the same way. A put that writes an element twice is `RMA_CONFLICT` at its call, and so is
    /// an operation that conflicts with one before it of the same rank in the epoch of a fence or in an access: with both lines, and no part of the epoch. Epochs without such a conflict leave the same bits as unchecked ones.
    /// With `Mpi`, so is a fence where a rank has stored into its part since the window was made or fenced last, and another rank accesses
    /// the part in a way that MPI does not define then; and where it has stored into the section of an operation of its own after the
    /// call. And a broadcast, a scatter, a reduction to one rank, a gather or a scan
    /// orders epochs of locks only as far as it does in MPI.
    /// A superstep that has one is not prepared and not loaded: `RMA_CONFLICT`, on the ranks that know of it. While it runs it
    /// is not looked at.
    ///
    /// All ranks must choose the same: where they differ, the first fence of windows or barrier is `RMA_SYNC`. Without the feature `check`,
    /// no conflict is looked for.
    ///
    /// # Cost
    /// Nothing, unless conflicts are looked for. Then 8 bytes are kept of an operation on one element, and more of another; each fence
    /// of windows has one exchange more, in which they travel to their targets, and each target marks the elements, a quarter of a
    /// byte for each of the window. Each origin marks what it calls, as much for the elements that it touches. A barrier has one exchange more; each post, access and message a frame with a word for each rank;
    /// and each epoch of a lock is compared with those of its part that are not known to be over.
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// The bytes in which operations under locks are kept to look for conflicts, for each part of a
    /// window: 1 MiB unless set. The variable is `FENCEPOST_CHECK_MEMORY`. Each rank has an equal
    /// share of it at each part, of which an operation on one run of elements takes 64 bytes, and
    /// one that is repeated takes none. A share is used again when all ranks have met. A rank whose
    /// share is full says once, on standard error and in the [report](Self::check_report), from
    /// which line on conflicts may be missed. What is found is right all the same. All ranks may
    /// choose otherwise.
    pub fn check_memory(mut self, bytes: usize) -> Self {
        self.check_memory = Some(bytes);
        self
    }

    /// Whether [`Check::Mpi`] also looks for loads: a fence where a rank has loaded an element of
    /// its part since the window was made or fenced last, and another rank puts or accumulates into
    /// that element in the epoch, is `RMA_CONFLICT` as one with a store is. Not, unless set. The variable is
    /// `FENCEPOST_CHECK_LOADS=on|off`. All ranks may choose otherwise.
    ///
    /// The elements of a window that is not made for locks are mapped a second time then, for the
    /// program alone. A window of a [vector](crate::World::window_from) copies the vector. How
    /// loads from that mapping are seen depends on the build.
    ///
    /// **In a build for checking** the compiler puts a call before each load:
    ///
    /// ```text
    /// export RUSTFLAGS="--cfg fencepost_loads -Cpasses=memprof -Cllvm-args=-memprof-use-callbacks \
    ///     -Cllvm-args=-memprof-instrument-writes=false -Cllvm-args=-max-loads-per-memcmp=0 \
    ///     -Cno-vectorize-loops -Cno-vectorize-slp"
    /// cargo run --release --target x86_64-unknown-linux-gnu
    /// ```
    ///
    /// `--target` keeps build scripts and macros out of it. Copies and comparisons of slices are
    /// seen as well, and system calls may be handed elements. Unseen are loads by code that was
    /// compiled otherwise: by what the standard library compiles once for all programs (such as the
    /// formatting of a number, as in `println!("{}", u[3])`), by other languages, by assembly, and
    /// by the system. An ordinary build sees the loads of all code but the system's.
    ///
    /// **In an ordinary build** the second mapping is protected from the call that makes the window
    /// on: each access raises a signal, is noted, and is made by itself. What that means:
    ///
    /// - **A system call that the program hands elements to** (`file.write_all(bytes_of(&u[..]))`,
    ///   a read into the window) fails with EFAULT between two fences, since no signal is raised
    ///   there: copy the elements first. Calls of this crate may be handed them.
    /// - A load that also stores, as of `u[i] += 1`, may be seen as a store alone. After a long
    ///   copy the rest of its pages is not seen. Of threads that the program hands elements one may
    ///   load unseen while another one does.
    /// - No window is watched beyond 1024 windows of a process, or while SIGSEGV or SIGTRAP is
    ///   blocked or has a handler that was installed after that of this crate. Signals that are of
    ///   no window go to the handlers that were installed before.
    ///
    /// In both:
    ///
    /// - A load is what the processor executes. An optimised build may load what a reference points
    ///   to, or an element of an array whose length is a part of its type, before the condition
    ///   under which the source reads it; such a load is reported.
    /// - Of a load of several elements by one instruction the first is seen.
    /// - What the program hands to calls of this crate may be read unseen.
    /// - A window that was made for locks is not watched; nor any window on a processor other than
    ///   x86-64, or where memory cannot be mapped twice. A rank reports the first window of its own
    ///   that is not watched.
    ///
    /// # Cost
    /// In a build for checking some nanoseconds for each load, of any memory: an epoch of a stencil
    /// takes about ten times as long. In an ordinary build tens of microseconds for each
    /// instruction that accesses the window: only small problems can be run so.
    pub fn check_loads(mut self, loads: bool) -> Self {
        self.check_loads = Some(loads);
        self
    }

    /// The file that the rank which owns the elements of a conflict, or under locks the rank that
    /// finds it, appends a line of JSON to: the window, the rank, the elements, and of both
    /// operations the rank, the kind, the file, the line and the column; and `refused` where the
    /// later operation was refused at its call. None, unless set; [`run()`] asks
    /// `FENCEPOST_CHECK_REPORT`. It has to be a regular file: nothing is written to a device or a
    /// named pipe. Where it cannot be written, each process prints so once, on standard error.
    pub fn check_report(mut self, file: impl Into<PathBuf>) -> Self {
        self.check_report = Some(file.into());
        self
    }

    /// Whether what epochs do and why is kept for
    /// [`World::explain_last`](crate::World::explain_last). Where the variable says so, rank 0 also
    /// prints all of it on standard error when its program ends, by the calls that ended its
    /// epochs. The variable is `FENCEPOST_EXPLAIN=on|off`.
    pub fn explain(mut self, explain: bool) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Let the world be one that has had these numbers of supersteps and windows: what happens where their numbers end can be
    /// tested so. All ranks have to be given the same.
    #[doc(hidden)]
    pub fn beginning_at(mut self, supersteps: u32, windows: u32) -> Self {
        self.before = (supersteps, windows);
        self
    }

    /// After how long a wait is reported, and then whenever it has lasted twice as long; never, for
    /// `None`. 10 seconds unless set. With no time at all, it is as soon as the rank would sleep.
    /// The report says who waits for whom, in which call, how many of what came, and where the
    /// awaited rank is, as far as is known. The variable is `FENCEPOST_STALL`.
    ///
    /// # Cost
    /// Nothing, until a rank that waits would sleep; then a look at the clock each time that it wakes.
    pub fn stall(mut self, after: Option<Duration>) -> Self {
        self.stall = Some(after);
        self
    }

    /// Sets the function that is called with each wait that lasts, by the rank that waits, in the wait; without, they are lines on standard error. It
    /// must not call anything of a world. A panic in it ends there: the wait goes on, and it is not called for that wait again.
    pub fn on_stall(mut self, told: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(OnStall(Arc::new(told)));
        self
    }

    /// Whether ranks that wait for one another in a cycle, or for any of several that do so, end their worlds: each of them gets an error
    /// that names who waits for whom and in which call. Otherwise it is reported only.
    ///
    /// Ranks that are in different calls of all ranks of one world learn it at once. A cycle is
    /// recognised within some seconds, and never by mistake. A rank that waits for any of more than
    /// 64 is in none that is recognised, nor is one that has begun to receive in another world:
    /// what it takes there may let others go on. The variable is `FENCEPOST_DEADLOCK`.
    pub fn end_deadlocks(mut self, ends: bool) -> Self {
        self.end_deadlocks = Some(ends);
        self
    }

    /// The bytes of the longest message that is sent with its elements: 16,384 unless set, and 1,048,576 to a rank of another
    /// host or by TCP, and never more than an equal part of [`unexpected`](Self::unexpected), less 64; 0 allows empty ones only. Of longer messages the envelope alone is sent, and the elements when a
    /// receive has taken it; so a [send](crate::World::send) of a longer one waits for its receive. [`run()`] asks
    /// `FENCEPOST_EAGER`.
    pub fn eager(mut self, bytes: usize) -> Self {
        self.eager = Some(bytes);
        self
    }

    /// The bytes of messages that a rank keeps for receives to come: 16 MiB unless set. Each of the
    /// ranks may fill an equal part, and a message takes 64 bytes besides its elements. A
    /// [send](crate::World::send) that finds no room waits for its receive, and its elements stay
    /// with the sender; nothing is dropped. The variable is `FENCEPOST_UNEXPECTED`.
    ///
    /// All ranks must give the same: a rank that is sent more than it keeps ends the world.
    pub fn unexpected(mut self, bytes: usize) -> Self {
        self.unexpected = Some(bytes);
        self
    }

    /// Run `program` on every rank of this process: on each of all, a thread each; or, where the transport is one of
    /// processes, on this one's. A process that is in no job becomes one first: see [`launch`](crate::launch()). Both
    /// transports of processes mean that of the job where there is one.
    ///
    /// # Errors
    /// As [`run()`]. Where ranks are threads, a rank that panicked is an error that says so; a rank that is a process goes on
    /// panicking when it has left the world, so that the process exits with code 101 unless the panic is caught. Every other
    /// rank has got an error that names it.
    ///
    /// `ARG` where a thread of a rank's process calls this while another thread is in it: see [`run()`].
    pub fn run(&self, program: impl Fn(&World) -> Result<()> + Sync) -> Result<()> {
        self.collect(program).map(drop)
    }

    /// As [`run`](Self::run), for a program that returns a value: returns those of this process's ranks, in the order of
    /// ranks.
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
        let entry = self.resolved()?;
        if entry.size == 0 {
            return Err(Error::new(ErrorClass::Arg, "a world has at least one rank"));
        }
        if entry.transport.is_of_processes() {
            launch(entry.size, &entry.transport)?;
        }
        environment::report_unknown();
        if entry.transport.is_of_processes() {
            return entry.run_as_process(program).map(|value| vec![value]);
        }
        if entry.size > THREADS {
            let message = format!(
                "{} ranks as threads of one process: there are at most {THREADS}; use processes, or fewer ranks",
                entry.size
            );
            return Err(Error::new(ErrorClass::Arg, message));
        }
        entry.run_as_threads(program)
    }

    /// What is set here, completed by the environment and the defaults.
    fn resolved(&self) -> Result<Entry> {
        use environment::{bytes, either, machine, read, size, text, word};
        const ON: [(&str, bool); 2] = [("on", true), ("off", false)];
        let given = TransportKind::from_environment()?;
        // Who asks for threads gets them, wherever it was started.
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
            // A launcher's word is the last one about how, and about how many unless the program or the environment says
            // otherwise.
            Some(process) => {
                let size = asked_size.unwrap_or(process.ranks);
                process.agrees(size, self.size.is_some())?;
                (size, TransportKind::Tcp)
            }
            // A launcher of MPI has started one rank, which exchanges no messages.
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
            stalls: Arc::new(stalls),
            limits,
            before: self.before,
        })
    }
}

impl Entry {
    /// The ranks are threads of this process.
    fn run_as_threads<R: Send>(&self, program: impl Fn(&World) -> Result<R> + Sync) -> Result<Vec<R>> {
        let registry = Arc::new(Registry::default());
        let id = new_world();
        let program = &program;
        let endpoints = self.transport.ends(self.size)?;
        let ends: Vec<End<R>> = std::thread::scope(|scope| {
            let threads: Vec<_> = endpoints
                .into_iter()
                .enumerate()
                .map(|(rank, endpoint)| {
                    let registry = registry.clone();
                    let name = format!("rank {rank}");
                    let body = move || self.one((id, self.size), endpoint, registry, Vec::new(), program);
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
            // What a rank did itself says more than that another missed it.
            if first.as_ref().is_none_or(|first| is_secondary_failure(first) && !is_secondary_failure(&error))
            {
                first = Some(error);
            }
        }
        match first {
            Some(error) => Err(error),
            None => Ok(values),
        }
    }

    /// This process's rank of the job's next world.
    fn run_as_process<R>(&self, program: impl Fn(&World) -> Result<R> + Sync) -> Result<R> {
        use fencepost_job::control::Ending;
        let Some(member) = crate::api::launch::member()? else {
            return Err(Error::new(ErrorClass::Intern, "a process that was launched is in no job"));
        };
        let rank = member.job().rank as usize;
        // Entered first: worlds are counted in the order in which threads enter them.
        let entered = member.enter();
        let registry = || Arc::new(Registry::of_job(&member.job().secret, &self.machine));
        let one = |endpoint, program: &(dyn Fn(&World) -> Result<R> + Sync)| {
            self.one((new_world(), 1), endpoint, registry(), member.job().host_names(), &program)
        };
        if !entered {
            // It takes part, and fails at once: the next worlds of all processes stay paired.
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
            Err(error) if is_secondary_failure(error) => Ending::SecondaryFailure,
            Err(_) => Ending::Failed,
        };
        member.leave(how, value.as_ref().err().map(ToString::to_string));
        match panic {
            Some(payload) => std::panic::resume_unwind(payload),
            None => value,
        }
    }

    fn one<R>(
        &self,
        id: (u64, usize),
        endpoint: Endpoint,
        registry: Arc<Registry>,
        hosts: Vec<Arc<str>>,
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
        world.core().begin_at(self.before.0, self.before.1);
        world.core().checks.set(self.checking.clone());
        world.core().supersteps.check(self.checking.check >= Check::Calls);
        world.core().plans.set(self.plan);
        world.core().explains.set(self.explain);
        world.core().limits.set(self.limits);
        world.core().stalls.borrow_mut().settings = self.stalls.clone();
        *world.core().hosts.borrow_mut() = hosts;
        let ended = catch_unwind(AssertUnwindSafe(|| program(&world)));
        if self.explain_all && world.rank() == 0 && ended.is_ok() {
            environment::print(world.core().explain_all().trim_end());
        }
        match ended {
            Ok(Ok(value)) => {
                world.core().each_collecting(WindowCore::note_unfenced); // those that were leaked
                let unfenced = world.core().unfenced.borrow().take();
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
                world.leave(Leave::Failed(error.to_string()));
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
        }
    }
}
