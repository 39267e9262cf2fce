//! What a job's transports need of whoever starts it, and of each rank: [`Memory`] and [`Link`].

use crate::description::{Description, Limits, Reach};
use fencepost_transport::{Endpoint, Fabric, HybridEnd, Segment, Settings, ShmEnd, TcpEnd, listen};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The memory file that ranks of one host share, as whoever starts them has it.
pub(crate) struct Memory {
    segment: Segment,
    ranks: Range<u32>,
}

impl Memory {
    /// For these ranks.
    pub(crate) fn create(ranks: Range<u32>) -> std::io::Result<Self> {
        Ok(Self { segment: Segment::create(ranks.len())?, ranks })
    }

    pub(crate) fn holds(&self, rank: u32) -> bool {
        self.ranks.contains(&rank)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// One of its ranks has ended for good.
    pub(crate) fn strike(&self, rank: u32, how: &str) {
        self.segment.mark_failed((rank - self.ranks.start) as usize, how);
    }
}

/// How this rank's process reaches the others.
pub(crate) struct Link {
    /// Those of its host, or all.
    memory: Option<Arc<Segment>>,
    /// Those of other hosts, or all.
    connections: Option<Connections>,
}

/// The connections of this process: they begin when it is known where the others are.
pub(crate) struct Connections {
    waiting: Mutex<Option<Fabric>>,
    begun: OnceLock<Mutex<Option<Arc<Fabric>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Get ready; for connections, also the address that this rank is reached at. `told`: whether somebody will say how
    /// others have died.
    pub(crate) fn join(
        job: &Description,
        memory: Option<OwnedFd>,
        told: bool,
    ) -> Result<(Self, Option<SocketAddr>), String> {
        let mut link = Self { memory: None, connections: None };
        if job.reach != Reach::Tcp {
            let memory = memory.ok_or("no memory file came with the job")?;
            link.memory = Some(Segment::join(memory).map_err(|error| error.to_string())?);
        }
        if job.reach == Reach::Shm {
            return Ok((link, None));
        }
        let fabric =
            fabric(job, told).map_err(|error| format!("it can't listen at {}: {error}", job.bind))?;
        let address = fabric.address().map_err(|error| error.to_string())?;
        link.connections = Some(Connections { waiting: Mutex::new(Some(fabric)), begun: OnceLock::new() });
        Ok((link, Some(address)))
    }

    /// Where all ranks listen.
    pub(crate) fn table(&self, addresses: &[SocketAddr]) -> std::io::Result<()> {
        let Some(connections) = &self.connections else { return Ok(()) };
        let Some(mut fabric) = lock(&connections.waiting).take() else { return Ok(()) };
        fabric.table(addresses)?;
        connections.begun.get_or_init(|| Mutex::new(Some(Arc::new(fabric))));
        Ok(())
    }

    /// A rank has ended, as this says. In the memory it is written already, by whoever has started it.
    pub(crate) fn strike(&self, rank: u32, how: &str) {
        if let Some(fabric) = self.connections.as_ref().and_then(Connections::fabric) {
            fabric.mark_failed(rank as usize, how);
        }
    }

    /// This rank's end of the job's world of this number.
    pub(crate) fn end(&self, job: &Description, world: u32) -> std::io::Result<Endpoint> {
        let (rank, size) = (job.rank as usize, job.size as usize);
        let Some(connections) = &self.connections else {
            let Some(segment) = &self.memory else {
                return Err(std::io::Error::other("a rank that reaches nobody"));
            };
            return Ok(Endpoint::Shm(ShmEnd::of_job(segment, world, rank, size)?));
        };
        let Some(fabric) = connections.fabric() else {
            return Err(std::io::Error::other("the connections of this rank have ended"));
        };
        Ok(match &self.memory {
            Some(segment) => {
                let hosts: Vec<u32> = job.host_of_each().collect();
                Endpoint::Hybrid(HybridEnd::of_job(segment, &fabric, &hosts, world, rank)?)
            }
            None => Endpoint::Tcp(TcpEnd::of_job(&fabric, world, rank, size)?),
        })
    }

    /// Say goodbye to the others, and wait until they have heard all that was said to them: this rank is in no world, and
    /// left the last with an error, if this says so.
    pub(crate) fn part(&self, job: &Description, why: Option<&str>) {
        if let (Some(segment), Some(why)) = (&self.memory, why) {
            let hosts: Vec<u32> = job.host_of_each().collect();
            let before = &hosts[..job.rank as usize];
            let seat = before.iter().filter(|&&host| host == hosts[job.rank as usize]).count();
            segment.record_exit(seat, why);
        }
        if let Some(fabric) = self.connections.as_ref().and_then(|connections| connections.begun.get()) {
            let last = lock(fabric).take();
            drop(last);
        }
    }
}

impl Connections {
    fn fabric(&self) -> Option<Arc<Fabric>> {
        lock(self.begun.get()?).clone()
    }
}

/// So long a rank waits for the starter's word when a connection ends: it knows better how a rank died.
const OBITUARY: Duration = Duration::from_secs(2);

/// No limit.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The least time after which a connection is given up: connections look at the clock ten times a second.
const LEAST: Duration = Duration::from_millis(500);

fn fabric(job: &Description, told: bool) -> std::io::Result<Fabric> {
    let Limits { heartbeat, silence } = job.limits;
    let settings = Settings {
        beat: heartbeat,
        // The starter goes by `silence` itself, and kills a silent rank: a rank waits for that word as for any other. Where
        // only the way between ranks is cut, nobody says anything, and the ranks are told when that wait is over.
        limit: if silence.is_zero() { NEVER } else { (silence + heartbeat).max(LEAST) },
        obituary: if told { OBITUARY } else { Duration::ZERO },
        sealed: job.sealed,
        ..Settings::default()
    };
    Fabric::new(listen(Some(job.bind))?, job.secret.clone(), job.job, job.rank as usize, settings)
}
