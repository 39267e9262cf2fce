//! [`TransportKind`]: how the ranks of a world reach each other.

use crate::state::environment;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::SimConfig;
#[cfg(not(loom))]
use fencepost_transport::{Endpoint, Route, Settings, local, sim};
#[cfg(not(loom))]
use std::sync::Arc;

/// The way in which the ranks of a world reach each other.
#[derive(Clone, Debug, Default)]
pub enum TransportKind {
    /// Threads that reach each other's memory.
    #[default]
    Local,
    /// Threads that only exchange messages, with seeded delays, reordering between pairs and short
    /// reads.
    Sim(SimConfig),
    /// Processes of one machine that share memory; see [`launch`](crate::launch()).
    Shm,
    /// Processes of any machines, which exchange messages over connections; see
    /// [`launch`](crate::launch()).
    Tcp,
    /// Processes that `mpirun`, `mpiexec` or `srun` has started, and that exchange messages of that
    /// MPI. Ranks of one host share memory. If neither `Mpi` nor [`Tcp`](Self::Tcp) is requested,
    /// such processes use the faster of MPI and TCP between hosts.
    Mpi,
    /// Threads that share memory in the same way as processes do: for tests.
    #[doc(hidden)]
    ShmThreads,
    /// Threads that exchange bytes over TCP on loopback: for tests.
    #[doc(hidden)]
    TcpThreads,
    /// Same as `TcpThreads`, but with connections to the addresses of a route. For tests that
    /// intercept the connections between ranks.
    #[cfg(not(loom))]
    #[doc(hidden)]
    TcpThreadsBy(Arc<dyn Route>),
    /// Threads of made-up hosts: for tests. The list contains the host of each rank, and is
    /// repeated if there are more ranks.
    #[doc(hidden)]
    MixedThreads(Vec<u32>),
    /// Threads that exchange messages of a stand-in for MPI: for tests.
    #[doc(hidden)]
    MpiThreads,
    /// Threads of made-up hosts that exchange messages of a stand-in for MPI: for tests.
    #[doc(hidden)]
    MixedMpiThreads(Vec<u32>),
}

impl std::str::FromStr for TransportKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "local" => TransportKind::Local,
            "sim" => TransportKind::Sim(SimConfig::default()),
            "shm" => TransportKind::Shm,
            "tcp" => TransportKind::Tcp,
            "mpi" => TransportKind::Mpi,
            other => {
                let message =
                    format!("`{other}` is not a transport: use `local`, `sim`, `shm`, `tcp` or `mpi`");
                return Err(Error::new(ErrorClass::Arg, message));
            }
        })
    }
}

impl TransportKind {
    /// Returns the endpoints of a world whose ranks are threads of this process.
    #[cfg(not(loom))]
    pub(crate) fn ends(&self, size: usize) -> Result<Vec<Endpoint>> {
        Ok(match self {
            TransportKind::Local => local(size).into_iter().map(Endpoint::Local).collect(),
            TransportKind::Sim(config) => sim(size, config.clone()).into_iter().map(Endpoint::Sim).collect(),
            TransportKind::ShmThreads => {
                fencepost_transport::shm(size)?.into_iter().map(Endpoint::Shm).collect()
            }
            TransportKind::TcpThreads => {
                fencepost_transport::tcp(size)?.into_iter().map(Endpoint::Tcp).collect()
            }
            TransportKind::TcpThreadsBy(route) => {
                let ends = fencepost_transport::tcp_by(size, Settings::default(), &**route)?;
                ends.into_iter().map(Endpoint::Tcp).collect()
            }
            TransportKind::MixedThreads(hosts) => {
                let hosts: Vec<u32> = hosts.iter().copied().cycle().take(size).collect();
                fencepost_transport::hybrid(&hosts)?.into_iter().map(Endpoint::Hybrid).collect()
            }
            TransportKind::MpiThreads => {
                fencepost_transport::mpi::mpi_stand_in(size)?.into_iter().map(Endpoint::Mpi).collect()
            }
            TransportKind::MixedMpiThreads(hosts) => {
                let hosts: Vec<u32> = hosts.iter().copied().cycle().take(size).collect();
                let ends = fencepost_transport::mpi::hybrid_stand_in(&hosts)?;
                ends.into_iter().map(Endpoint::HybridMpi).collect()
            }
            // Each process makes its own endpoint.
            TransportKind::Shm | TransportKind::Tcp | TransportKind::Mpi => Vec::new(),
        })
    }

    /// Returns the value of `FENCEPOST_TRANSPORT`, if it is set.
    ///
    /// # Errors
    /// `ARG` for a value that does not name a transport.
    #[doc(hidden)]
    pub fn from_environment() -> Result<Option<Self>> {
        environment::read("FENCEPOST_TRANSPORT")
    }

    /// Returns whether `other` is the same kind of transport, whatever its settings are.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Returns whether ranks are processes.
    pub(crate) fn is_of_processes(&self) -> bool {
        matches!(self, TransportKind::Shm | TransportKind::Tcp | TransportKind::Mpi)
    }
}
