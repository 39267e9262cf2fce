//! [`run`] and [`ranks`]: enter a world.

use crate::registry::{Registry, new_world};
use crate::transport::{Endpoint, Leave, SimConfig, local, sim};
use crate::world::World;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Class, Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How the ranks of a world reach each other.
#[derive(Clone, Debug, Default)]
pub enum TransportKind {
    /// Threads that reach each other's memory.
    #[default]
    Local,
    /// Threads that only exchange messages, with seeded delays, reordering between pairs and short reads.
    Sim(SimConfig),
    /// Threads that reach each other's memory as processes do: for tests.
    #[cfg(all(target_os = "linux", feature = "processes"))]
    #[doc(hidden)]
    ShmThreads,
    /// Threads that exchange bytes over TCP on loopback: for tests.
    #[cfg(all(target_os = "linux", feature = "processes"))]
    #[doc(hidden)]
    TcpThreads,
}

impl TransportKind {
    /// Ends of a world whose ranks are threads of this process.
    pub(crate) fn ends(&self, size: usize) -> Result<Vec<Endpoint>> {
        Ok(match self {
            TransportKind::Local => local(size).into_iter().map(Endpoint::Local).collect(),
            TransportKind::Sim(config) => sim(size, config.clone()).into_iter().map(Endpoint::Sim).collect(),
            #[cfg(all(target_os = "linux", feature = "processes"))]
            TransportKind::ShmThreads => {
                crate::transport::shm(size)?.into_iter().map(Endpoint::Shm).collect()
            }
            #[cfg(all(target_os = "linux", feature = "processes"))]
            TransportKind::TcpThreads => {
                crate::transport::tcp(size)?.into_iter().map(Endpoint::Tcp).collect()
            }
        })
    }
}

/// A world to be entered; see [`ranks`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs until `.run(..)`"]
pub struct Ranks {
    size: usize,
    transport: TransportKind,
    mode: Mode,
    check: bool,
    plan: bool,
    explain: bool,
}

/// A world of `size` ranks: `ranks(5).run(|world| ..)`.
///
/// It reads no environment: threads that share memory, mode auto, calls compared in debug builds, unless set here.
pub fn ranks(size: usize) -> Ranks {
    Ranks {
        size,
        transport: TransportKind::Local,
        mode: Mode::Auto,
        check: cfg!(debug_assertions),
        plan: true,
        explain: false,
    }
}

/// Run `program` on every rank of a world: as many ranks as `FENCEPOST_RANKS` says, or as there are cores.
///
/// Gives the value of each rank of this process, collected as the caller likes: `Result<()>`, `Result<Vec<_>>`.
///
/// The rest is as the environment says, too: `FENCEPOST_TRANSPORT=local|sim`,
/// `FENCEPOST_MODE=auto|aggressive|aggregated|pipelined|direct` ([`Ranks::mode`]), `FENCEPOST_PLAN=on|off`
/// ([`Ranks::plan`]), `FENCEPOST_CHECK=off|mark|log|mpi` ([`Ranks::check`]), `FENCEPOST_EXPLAIN=on|off`
/// ([`Ranks::explain`]).
///
/// # Errors
/// That of the lowest rank that failed by itself; `ARG` for an environment value that is not one of those allowed.
pub fn run<R: Send, C: FromIterator<R>>(program: impl Fn(&World) -> Result<R> + Sync) -> Result<C> {
    let size = match std::env::var("FENCEPOST_RANKS") {
        Ok(text) => text.parse().ok().filter(|&size: &usize| size > 0).ok_or_else(|| {
            Error::new(Class::Arg, format!("FENCEPOST_RANKS is `{text}`: give a number of ranks from 1 on"))
        })?,
        Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let transport = match std::env::var("FENCEPOST_TRANSPORT").as_deref() {
        Err(_) | Ok("local") => TransportKind::Local,
        Ok("sim") => TransportKind::Sim(SimConfig::default()),
        Ok(other) => {
            return Err(Error::new(
                Class::Arg,
                format!("FENCEPOST_TRANSPORT is `{other}`: it may be `local` or `sim`"),
            ));
        }
    };
    let mode = match std::env::var("FENCEPOST_MODE") {
        Ok(text) => text.parse()?,
        Err(_) => Mode::Auto,
    };
    let check = match std::env::var("FENCEPOST_CHECK").as_deref() {
        Err(_) => cfg!(debug_assertions),
        Ok("off") => false,
        Ok("mark" | "log" | "mpi") => true,
        Ok(other) => {
            return Err(Error::new(
                Class::Arg,
                format!("FENCEPOST_CHECK is `{other}`: it may be `off`, `mark`, `log` or `mpi`"),
            ));
        }
    };
    let plan = match std::env::var("FENCEPOST_PLAN").as_deref() {
        Err(_) | Ok("on") => true,
        Ok("off") => false,
        Ok(other) => {
            return Err(Error::new(
                Class::Arg,
                format!("FENCEPOST_PLAN is `{other}`: it may be `on` or `off`"),
            ));
        }
    };
    let explain = match std::env::var("FENCEPOST_EXPLAIN").as_deref() {
        Err(_) | Ok("off") => false,
        Ok("on") => true,
        Ok(other) => {
            return Err(Error::new(
                Class::Arg,
                format!("FENCEPOST_EXPLAIN is `{other}`: it may be `on` or `off`"),
            ));
        }
    };
    ranks(size).transport(transport).mode(mode).plan(plan).check(check).explain(explain).run(program)
}

/// How one rank ended.
enum End<R> {
    Value(R),
    Error(Error),
    Panic(String),
}

impl Ranks {
    /// How the ranks reach each other.
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = transport;
        self
    }

    /// The mode that operations without one of their own prefer.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether anything is planned. Without, every operation is a message of its own: supersteps that are prepared here
    /// are compiled aggressive and nothing is joined, and in epochs that are not compiled every operation is aggressive
    /// whatever it asks for. Plans that are loaded stay what they are, and where memory is reached, epochs that are not
    /// compiled have no messages. It is there to compare with. [`run`] asks `FENCEPOST_PLAN=on|off`.
    pub fn plan(mut self, plan: bool) -> Self {
        self.plan = plan;
        self
    }

    /// Whether the calls of every superstep are compared with its pattern each time, not only the first time on each
    /// rank. On in debug builds; [`run`] asks `FENCEPOST_CHECK=off|mark|log|mpi`.
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Whether what epochs do and why is kept for [`World::explain_last`](crate::World::explain_last).
    /// [`run`] asks `FENCEPOST_EXPLAIN=on|off`.
    pub fn explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }

    /// Run `program` on every rank, a thread each.
    ///
    /// # Errors
    /// As [`run`]; a rank that panicked is an error that says so. Every other rank has got one that names it.
    pub fn run<R: Send, C: FromIterator<R>>(
        &self,
        program: impl Fn(&World) -> Result<R> + Sync,
    ) -> Result<C> {
        if self.size == 0 {
            return Err(Error::new(Class::Arg, "a world has at least one rank"));
        }
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
                    let body = move || self.one(id, endpoint, registry, program);
                    std::thread::Builder::new().name(name).spawn_scoped(scope, body)
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| End::Panic("while leaving".into())),
                    Err(error) => End::Error(Error::from(error)),
                })
                .collect()
        });
        let mut values = Vec::with_capacity(ends.len());
        let mut first: Option<Error> = None;
        for (rank, end) in ends.into_iter().enumerate() {
            let error = match end {
                End::Value(value) => {
                    values.push(value);
                    continue;
                }
                End::Error(error) => error.on_rank(rank as u32),
                End::Panic(why) => {
                    Error::new(Class::Other, format!("rank {rank} panicked: {why}")).on_rank(rank as u32)
                }
            };
            // What a rank did itself says more than that another missed it.
            let echo = |error: &Error| {
                matches!(error.class(), Class::ProcFailed)
                    || error.message().contains("did not complete this epoch")
            };
            if first.as_ref().is_none_or(|first| echo(first) && !echo(&error)) {
                first = Some(error);
            }
        }
        match first {
            Some(error) => Err(error),
            None => Ok(values.into_iter().collect()),
        }
    }

    fn one<R>(
        &self,
        id: u64,
        endpoint: Endpoint,
        registry: Arc<Registry>,
        program: &(impl Fn(&World) -> Result<R> + Sync),
    ) -> End<R> {
        let world = World::new(id, endpoint, registry, self.transport.clone(), self.mode);
        world.core().supersteps.check(self.check);
        world.core().plans.set(self.plan);
        world.core().explains.set(self.explain);
        match catch_unwind(AssertUnwindSafe(|| program(&world))) {
            Ok(Ok(value)) => {
                world.leave(Leave::Finished);
                End::Value(value)
            }
            Ok(Err(error)) => {
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
                End::Panic(why)
            }
        }
    }
}
