//! [`Description`]: what a rank's process knows of its job.

use crate::codec::{In, Malformed, Out};
use fencepost_transport::auth::Secret;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How the processes of a job reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// All on one machine, by one memory file.
    Shm,
    /// By connections.
    Tcp,
    /// By a memory file on each host, and by connections between hosts.
    Mixed,
}

impl Reach {
    /// Its name in options and variables.
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

/// A host's name, and how many ranks in a row are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRanks {
    /// As the user named it; `localhost` where nobody did.
    pub name: String,
    /// How many ranks, from where the host before it ended.
    pub ranks: u32,
}

/// When a rank that says nothing is taken for dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// From one sign of life to the next.
    pub heartbeat: Duration,
    /// A rank that gave none for so long is killed. Zero: never.
    pub silence: Duration,
}

/// The first message to a rank's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// A name that no other job has, and no secret.
    pub job: [u8; 16],
    /// What proves to one rank that another is of the same job: handed on by descriptor, never by an argument or a
    /// variable, and not printed.
    pub secret: Secret,
    /// This rank.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// How they reach each other.
    pub reach: Reach,
    /// All hosts, by rank.
    pub hosts: Vec<HostRanks>,
    /// The address that this rank listens at, where it does.
    pub bind: IpAddr,
    /// Whether every record between ranks carries a tag.
    pub sealed: bool,
    /// See [`Limits`].
    pub limits: Limits,
}

impl Description {
    /// The host of a rank: its place among the hosts, and its name.
    pub fn host_of(&self, rank: u32) -> (usize, &str) {
        let mut end = 0;
        for (at, host) in self.hosts.iter().enumerate() {
            end += host.ranks;
            if rank < end {
                return (at, &host.name);
            }
        }
        (0, "localhost")
    }

    /// The host of each rank, as its place among the hosts.
    pub fn host_of_each(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.hosts).flat_map(|(at, host)| (0..host.ranks).map(move |_| at))
    }

    /// The name of each rank's host, where there are several.
    pub fn host_names(&self) -> Vec<Arc<str>> {
        if self.hosts.len() < 2 {
            return Vec::new();
        }
        let of_host = |host: &HostRanks| std::iter::repeat_n(Arc::from(&*host.name), host.ranks as usize);
        self.hosts.iter().flat_map(of_host).collect()
    }

    pub(crate) fn write(&self, out: &mut Out) {
        out.0.extend(self.job);
        out.0.extend(self.secret.as_bytes());
        out.u32(self.rank);
        out.u32(self.size);
        out.u8(self.reach as u8);
        out.list(&self.hosts, |out, host| {
            out.bytes(host.name.as_bytes());
            out.u32(host.ranks);
        });
        out.ip(self.bind);
        out.u8(u8::from(self.sealed));
        out.duration(self.limits.heartbeat);
        out.duration(self.limits.silence);
    }

    pub(crate) fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        let (job, secret) = (bytes.array()?, Secret::from_bytes(bytes.array()?));
        let (rank, size) = (bytes.u32()?, bytes.u32()?);
        let reach = match bytes.u8()? {
            0 => Reach::Shm,
            1 => Reach::Tcp,
            2 => Reach::Mixed,
            _ => return Err(Malformed("a transport of no known kind")),
        };
        let hosts = bytes.list(8, |bytes| Ok(HostRanks { name: bytes.text()?, ranks: bytes.u32()? }))?;
        let (bind, sealed) = (bytes.ip()?, bytes.bool()?);
        let limits = Limits { heartbeat: bytes.duration()?, silence: bytes.duration()? };
        let placed = hosts.iter().try_fold(0_u32, |sum, host| sum.checked_add(host.ranks));
        if rank >= size || placed != Some(size) {
            return Err(Malformed("ranks that are on no host"));
        }
        Ok(Self { job, secret, rank, size, reach, hosts, bind, sealed, limits })
    }
}
