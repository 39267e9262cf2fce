//! [`Description`]: the description of a job that each of its ranks receives.

use crate::codec::{Malformed, Reader, Writer};
use fencepost_transport::auth::Secret;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How the processes of a job reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Through shared memory: all ranks are on one machine and map one memory file.
    Shm,
    /// Through TCP connections.
    Tcp,
    /// Through one memory file on each host, and through TCP connections between hosts.
    Mixed,
}

impl Reach {
    /// Returns the name of this value in options and environment variables.
    pub fn name(self) -> &'static str {
        match self {
            Reach::Shm => "shm",
            Reach::Tcp => "tcp",
            Reach::Mixed => "mixed",
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Consecutive ranks on one host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRanks {
    /// The number of the host. All ranks with one number share memory, whether they are consecutive
    /// or not.
    pub host: u32,
    /// The name of the host: the one that the user gave, or `localhost` if the user named no host.
    pub name: String,
    /// The number of ranks. The first of these ranks follows the last rank of the previous element.
    pub ranks: u32,
}

/// How often ranks send heartbeats, and when a silent rank counts as dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The time from one heartbeat to the next.
    pub heartbeat: Duration,
    /// The time without a heartbeat after which the launcher kills a rank. If zero, the launcher
    /// kills no silent rank.
    pub silence: Duration,
}

/// The description of a job for one rank: the first message to the rank's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// A unique identifier of the job, which is not secret.
    pub job: [u8; 16],
    /// The secret with which ranks prove to each other that they belong to the same job. It travels
    /// through the inherited descriptor, or over the MPI of another launcher. It never appears in
    /// an argument or a variable, and it is never printed.
    pub secret: Secret,
    /// This rank.
    pub rank: u32,
    /// The number of ranks of the job.
    pub size: u32,
    /// How the ranks reach each other.
    pub reach: Reach,
    /// The hosts of all ranks, in the order of the ranks.
    pub hosts: Vec<HostRanks>,
    /// The number of cores that all ranks of this rank's host may use together, if each rank is
    /// bound to some of these cores; otherwise 0.
    pub cores: u32,
    /// The address at which this rank listens, if it listens.
    pub bind: IpAddr,
    /// Whether every record between ranks carries an authentication tag.
    pub sealed: bool,
    /// The heartbeat interval and the silence limit.
    pub limits: Limits,
}

impl Description {
    /// Returns the host number of each rank.
    pub fn host_of_each(&self) -> impl Iterator<Item = u32> {
        self.hosts.iter().flat_map(|host| (0..host.ranks).map(move |_| host.host))
    }

    /// Returns the name of each rank's host if the job has several hosts, and an empty vector
    /// otherwise.
    pub fn host_names(&self) -> Vec<Arc<str>> {
        if self.hosts.len() < 2 {
            return Vec::new();
        }
        let of_host = |host: &HostRanks| std::iter::repeat_n(Arc::from(&*host.name), host.ranks as usize);
        self.hosts.iter().flat_map(of_host).collect()
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.0.extend(self.job);
        out.0.extend(self.secret.as_bytes());
        out.u32(self.rank);
        out.u32(self.size);
        out.u8(self.reach as u8);
        out.list(&self.hosts, |out, host| {
            out.u32(host.host);
            out.bytes(host.name.as_bytes());
            out.u32(host.ranks);
        });
        out.u32(self.cores);
        out.ip(self.bind);
        out.u8(u8::from(self.sealed));
        out.duration(self.limits.heartbeat);
        out.duration(self.limits.silence);
    }

    pub(crate) fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (job, secret) = (bytes.array()?, Secret::from_bytes(bytes.array()?));
        let (rank, size) = (bytes.u32()?, bytes.u32()?);
        let reach = match bytes.u8()? {
            0 => Reach::Shm,
            1 => Reach::Tcp,
            2 => Reach::Mixed,
            _ => return Err(Malformed("unknown transport")),
        };
        let host = |bytes: &mut Reader<'_>| {
            Ok(HostRanks { host: bytes.u32()?, name: bytes.text()?, ranks: bytes.u32()? })
        };
        let hosts = bytes.list(12, host)?;
        let (cores, bind, sealed) = (bytes.u32()?, bytes.ip()?, bytes.bool()?);
        let limits = Limits { heartbeat: bytes.duration()?, silence: bytes.duration()? };
        let placed = hosts.iter().try_fold(0_u32, |sum, host| sum.checked_add(host.ranks));
        if rank >= size || placed != Some(size) {
            return Err(Malformed("the ranks of the hosts do not add up to the job's"));
        }
        Ok(Self { job, secret, rank, size, reach, hosts, cores, bind, sealed, limits })
    }
}
