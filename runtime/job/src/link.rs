//! The transports of a job: [`HostMemory`] in the process that starts ranks, and [`Link`] in each
//! rank.

use crate::description::{Description, Limits, Reach};
use fencepost_transport::{
    Endpoint, HybridEnd, MpiEnd, MpiFabric, Segment, Settings, ShmEnd, TcpEnd, TcpFabric, TcpReports, listen,
};
use rustix::fd::BorrowedFd;
use rustix::process::{Resource, getrlimit};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The memory file that the ranks of one host share, in the process that starts these ranks.
pub(crate) struct HostMemory {
    segment: Segment,
    ranks: Range<u32>,
}

impl HostMemory {
    /// Creates the memory file for `ranks`.
    pub(crate) fn create(ranks: Range<u32>) -> std::io::Result<Self> {
        Ok(Self { segment: Segment::create(ranks.len())?, ranks })
    }

    pub(crate) fn holds(&self, rank: u32) -> bool {
        self.ranks.contains(&rank)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Marks a rank of the host as failed, since the rank's process has ended.
    pub(crate) fn mark_failed(&self, rank: u32, how: &str) {
        self.segment.mark_failed((rank - self.ranks.start) as usize, how);
    }
}

/// The transports through which this rank's process reaches the other ranks.
pub(crate) struct Link {
    /// The memory that this rank shares with the ranks of its host, or with all ranks.
    memory: Option<Arc<Segment>>,
    /// The connections to the ranks of other hosts, or to all ranks.
    connections: Option<Connections>,
}

/// The connections of this process. They start when the addresses of the other ranks are known.
pub(crate) struct Connections(Mutex<ConnectionState>);

enum ConnectionState {
    /// This rank listens, and the addresses of the other ranks have not arrived.
    Listening(TcpFabric),
    /// The connections, until they close. Over TCP, also the handle for the launcher's reports,
    /// which the connections still need while they close.
    Started(Option<Fabric>, Option<TcpReports>),
    Failed,
}

/// The connections of this process to other ranks, over TCP or over MPI.
#[derive(Clone)]
enum Fabric {
    Tcp(Arc<TcpFabric>),
    Mpi(Arc<MpiFabric>),
}

impl Link {
    /// Prepares the transports of the job. Returns the transports, and the address at which this
    /// rank listens if it uses connections. `deaths_reported` is whether a launcher will report how
    /// other ranks have died.
    pub(crate) fn join(
        job: &Description,
        memory: Option<Arc<Segment>>,
        deaths_reported: bool,
    ) -> Result<(Self, Option<SocketAddr>), String> {
        if job.reach != Reach::Tcp && memory.is_none() {
            return Err("no memory file arrived with the description of the job".into());
        }
        // All ranks of a job have the same kind of transport.
        let mut link = Self { memory: memory.filter(|_| job.reach != Reach::Tcp), connections: None };
        if job.reach == Reach::Shm {
            return Ok((link, None));
        }
        let fabric = fabric(job, deaths_reported)
            .map_err(|error| format!("this rank can't listen at {}: {error}", job.bind))?;
        let address = fabric.address().map_err(|error| error.to_string())?;
        link.connections = Some(Connections(Mutex::new(ConnectionState::Listening(fabric))));
        Ok((link, Some(address)))
    }

    /// Returns the transports of a job whose ranks use MPI to reach ranks with which they share no
    /// memory.
    pub(crate) fn over_mpi(memory: Option<Arc<Segment>>, fabric: MpiFabric) -> Self {
        let started = ConnectionState::Started(Some(Fabric::Mpi(fabric.into())), None);
        Self { memory, connections: Some(Connections(Mutex::new(started))) }
    }

    /// Starts the connections, with the address at which each rank listens.
    pub(crate) fn connect(&self, addresses: &[SocketAddr]) -> std::io::Result<()> {
        self.connections.as_ref().map_or(Ok(()), |connections| connections.connect(addresses))
    }

    /// Marks a rank as failed, as `how` describes. Changes only the connections: the process that
    /// started the rank has already marked the rank in the shared memory.
    pub(crate) fn mark_failed(&self, rank: u32, how: &str) {
        if let Some(connections) = &self.connections {
            connections.report(|reports| reports.mark_failed(rank as usize, how));
        }
    }

    /// Marks a rank as having left all its worlds and ended in order.
    pub(crate) fn mark_finished(&self, rank: u32) {
        if let Some(connections) = &self.connections {
            connections.report(|reports| reports.mark_finished(rank as usize));
        }
    }

    /// Returns this rank's endpoint of the job's world number `world`.
    pub(crate) fn endpoint(&self, job: &Description, world: u32) -> std::io::Result<Endpoint> {
        let (rank, size) = (job.rank as usize, job.size as usize);
        let Some(connections) = &self.connections else {
            let Some(segment) = &self.memory else {
                return Err(std::io::Error::other("internal error: a rank without a transport"));
            };
            return Ok(Endpoint::Shm(ShmEnd::of_job(segment, world, rank, size)?));
        };
        let Some(fabric) = connections.fabric() else {
            return Err(std::io::Error::other(
                "the connections of this rank are closed or were never started",
            ));
        };
        let hosts: Vec<u32> = job.host_of_each().collect();
        Ok(match (&self.memory, fabric) {
            (Some(segment), Fabric::Tcp(fabric)) => {
                HybridEnd::of_job(segment, &fabric, &hosts, world, rank)?.into()
            }
            (Some(segment), Fabric::Mpi(fabric)) => {
                HybridEnd::of_job(segment, &fabric, &hosts, world, rank)?.into()
            }
            (None, Fabric::Tcp(fabric)) => TcpEnd::of_job(&fabric, world, rank, size)?.into(),
            (None, Fabric::Mpi(fabric)) => MpiEnd::of_job(&fabric, world, rank, size)?.into(),
        })
    }

    /// Ends the job because this process ends inside a world. First reports the end of the process
    /// to the other ranks, which would not notice it over MPI.
    pub(crate) fn abandon(&self) {
        let fabric = self.connections.as_ref().and_then(Connections::fabric);
        if let Some(Fabric::Mpi(fabric)) = fabric {
            fabric.abandon("its process exited inside a world");
        }
    }

    /// Closes the transports, and waits until the other ranks have received everything that was
    /// sent to them. The caller must not be in a world; `last_error` is the error with which the
    /// rank left its last world.
    pub(crate) fn close(&self, job: &Description, last_error: Option<&str>) {
        if let (Some(segment), Some(why)) = (&self.memory, last_error) {
            let hosts: Vec<u32> = job.host_of_each().collect();
            let before = &hosts[..job.rank as usize];
            let local_index = before.iter().filter(|&&host| host == hosts[job.rank as usize]).count();
            segment.record_exit(local_index, why);
        }
        if let Some(connections) = &self.connections {
            connections.close();
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the connections, unless they were started before.
    fn connect(&self, addresses: &[SocketAddr]) -> std::io::Result<()> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, ConnectionState::Failed) {
            ConnectionState::Listening(mut fabric) => {
                fabric.table(addresses)?;
                let reports = fabric.reports();
                *state = ConnectionState::Started(Some(Fabric::Tcp(fabric.into())), Some(reports));
            }
            started => *state = started,
        }
        Ok(())
    }

    fn fabric(&self) -> Option<Fabric> {
        match &*self.lock() {
            ConnectionState::Started(fabric, _) => fabric.clone(),
            ConnectionState::Listening(_) | ConnectionState::Failed => None,
        }
    }

    /// Passes a report of the launcher to the connections, if they have started.
    fn report(&self, report: impl FnOnce(&TcpReports)) {
        if let ConnectionState::Started(_, Some(reports)) = &*self.lock() {
            report(reports);
        }
    }

    /// Waits, without the lock, until the other ranks have received everything that was sent to
    /// them.
    fn close(&self) {
        let last = match &mut *self.lock() {
            ConnectionState::Started(fabric, _) => fabric.take(),
            ConnectionState::Listening(_) | ConnectionState::Failed => None,
        };
        drop(last);
    }
}

/// How long a rank waits for the launcher's report when a connection ends, since only the launcher
/// knows how the other rank died.
const REPORT_WAIT: Duration = Duration::from_secs(2);

/// The number of a rank's descriptors that are not connections: 12 of its own, and some that its
/// program opens.
const OTHERS: u64 = 16;

/// The time that replaces a limit that is switched off.
pub(crate) const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The shortest time after which a connection is given up, since connections check the time ten
/// times a second.
pub(crate) const LIMIT_MIN: Duration = Duration::from_millis(500);

fn fabric(job: &Description, deaths_reported: bool) -> std::io::Result<TcpFabric> {
    let Limits { heartbeat, silence } = job.limits;
    let settings = Settings::default();
    // If a job has at most twice as many ranks as `connections`, each rank keeps its connections to
    // all of them open. So `connections` is at most half of the descriptors that are left.
    let open = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(open.saturating_sub(OTHERS) / 2).unwrap_or(usize::MAX);
    let settings = Settings {
        beat: heartbeat,
        // The launcher applies `silence` itself and kills a silent rank; other ranks wait for the
        // launcher's report of that death as for any other report. If only the connection between
        // two ranks is cut, no report arrives, and the ranks fail when this limit has passed.
        limit: if silence.is_zero() { NEVER } else { (silence + heartbeat).max(LIMIT_MIN) },
        obituary: if deaths_reported { REPORT_WAIT } else { Duration::ZERO },
        sealed: job.sealed,
        connections: settings.connections.min(most).max(2),
        ..settings
    };
    TcpFabric::new(listen(Some(job.bind))?, job.secret.clone(), job.job, job.rank as usize, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::HostRanks;
    use fencepost_transport::Notify;
    use fencepost_transport::auth::Secret;
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// Rank 1 never answers, so rank 0 cannot deliver its messages, and waits. Then the launcher
    /// reports the death of rank 1.
    #[test]
    fn a_report_ends_the_wait_of_a_rank_that_closes_its_connections() {
        let job = Description {
            job: [1; 16],
            secret: Secret::new().expect("chance"),
            rank: 0,
            size: 2,
            reach: Reach::Tcp,
            hosts: vec![HostRanks { host: 0, name: "localhost".into(), ranks: 2 }],
            cores: 1,
            bind: [127, 0, 0, 1].into(),
            sealed: false,
            limits: Limits { heartbeat: Duration::from_secs(3600), silence: Duration::ZERO },
        };
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (link, address) = Link::join(&job, None, true).expect("a listener");
        let addresses = [address.expect("an address"), silent.local_addr().expect("an address")];
        link.connect(&addresses).expect("a thread");
        let mut endpoint = link.endpoint(&job, 0).expect("the first world");
        endpoint.publish(1).expect("the world goes on");
        drop(endpoint);
        let (sender, closed) = mpsc::channel();
        let link = Arc::new(link);
        let closing = Arc::clone(&link);
        std::thread::spawn(move || {
            closing.close(&job, None);
            sender.send(())
        });
        while link.connections.as_ref().is_some_and(|connections| connections.fabric().is_some()) {
            std::thread::yield_now();
        }
        link.mark_failed(1, "rank 1 of the job was killed by signal 9 (SIGKILL)");
        // Without the report, the attempt to connect would be given up only after 10 s.
        assert_eq!(closed.recv_timeout(Duration::from_secs(5)), Ok(()));
    }
}
