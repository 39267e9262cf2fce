//! [`Start`]: the description of a job, which the [launcher](crate::attempts) starts.

use crate::children::{Input, Program};
use crate::control::HostJob;
use crate::description::{Description, HostRanks, Limits, Reach};
use crate::input::is_terminal;
use fencepost_transport::auth::Secret;
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// The largest number of ranks of a job: the table of their addresses must fit into one message.
pub const RANKS_MAX: u32 = 1 << 18;

/// One of a job's hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name of the host, in messages and in the remote command.
    pub name: String,
    /// The number of ranks on this host; they are consecutive.
    pub ranks: u32,
    /// The address or interface at which the host's ranks listen.
    pub bind: String,
    /// The beginning of a command line that runs a program on the host. The program and its
    /// arguments follow. If this beginning is empty, the host is this machine.
    pub remote: Vec<OsString>,
    /// Whether the host is this machine although it has a remote command.
    pub pretended: bool,
}

/// A job to start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program that each rank runs: an absolute path.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// The working directory of the ranks.
    pub folder: PathBuf,
    /// Environment variables of the ranks, in addition to those of the launcher.
    pub environment: Vec<(OsString, OsString)>,
    /// How ranks reach each other.
    pub reach: Reach,
    /// The hosts of the job, at least one.
    pub hosts: Vec<Host>,
    /// The path of the `fencepost` command on other hosts.
    pub fencepost: PathBuf,
    /// The time limit of the job.
    pub timeout: Option<Duration>,
    /// The grace period: how long the other ranks may run after one has failed.
    pub grace: Duration,
    /// How often ranks send heartbeats, and the silence after which they count as dead.
    pub limits: Limits,
    /// Whether every record between ranks carries an authentication tag.
    pub sealed: bool,
    /// Whether the launcher writes the rank in front of each line of a rank's output.
    pub tag_output: bool,
    /// Whether each rank is pinned to a core.
    pub pin: bool,
    /// Whether rank 0 gets the standard input of the launcher; otherwise it has no input.
    pub input: bool,
    /// Whether the launcher reports what it starts, and how each rank ends.
    pub verbose: bool,
    /// How often the job is started again after a failure that the program has not caused. Such
    /// failures are a rank that a signal has killed, that fell silent or that vanished inside a
    /// wrapper, and a host that was lost.
    pub restarts: u32,
    /// Whether hosts that were lost are left out when the job is started again.
    pub shrink: bool,
    /// Whether the first SIGTERM to the launcher gives the ranks the time that they need to save a
    /// snapshot and to end.
    pub snapshot_on_term: bool,
}

impl Start {
    /// Returns a job that runs this program with the arguments of this process, on this machine.
    ///
    /// # Errors
    /// The system does not know the path of the program, or a setting in the environment is not
    /// valid.
    pub fn this_program(ranks: u32, reach: Reach) -> io::Result<Self> {
        let settings = crate::settings::Settings::from_environment().map_err(io::Error::other)?;
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: std::env::args_os().skip(1).collect(),
            folder: std::env::current_dir()?,
            environment: Vec::new(),
            reach,
            hosts: vec![Host::here(ranks)],
            fencepost: PathBuf::from("fencepost"),
            timeout: settings.timeout,
            grace: settings.grace,
            limits: settings.limits,
            sealed: settings.sealed,
            tag_output: false,
            pin: false,
            input: true,
            verbose: false,
            restarts: 0,
            shrink: false,
            snapshot_on_term: settings.snapshot_on_term,
        })
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.hosts.iter().map(|host| host.ranks).sum()
    }

    /// Returns the program of a rank on this machine.
    pub(crate) fn program(&self) -> Program {
        Program {
            path: self.program.clone(),
            arguments: self.arguments.clone(),
            folder: self.folder.clone(),
            environment: self.environment.clone(),
            capture: self.tag_output,
            input: match self.input {
                true if is_terminal() => Input::PassedOn,
                true => Input::Inherited,
                false => Input::None,
            },
            pin: self.pin,
        }
    }

    /// Returns the description of the job that each rank receives, before the rank and its address
    /// are set.
    pub(crate) fn description(&self, job: [u8; 16], secret: Secret, hosts: Vec<HostRanks>) -> Description {
        Description {
            job,
            secret,
            rank: 0,
            size: self.size(),
            reach: self.reach,
            hosts,
            cores: crate::pin::cores(),
            bind: Ipv4Addr::LOCALHOST.into(),
            sealed: self.sealed,
            limits: self.limits,
        }
    }

    /// Returns the part of the job that `host` should start. If ranks are pinned, the first core of
    /// the host's ranks is `first_core`.
    pub(crate) fn host_job(
        &self,
        host: &Host,
        job: &Description,
        digest: Option<[u8; 32]>,
        first_core: usize,
    ) -> HostJob {
        HostJob {
            job: job.clone(),
            ranks: host.ranks,
            bind: host.bind.clone(),
            release: crate::RELEASE.into(),
            program: self.program.clone().into(),
            digest,
            arguments: self.arguments.clone(),
            folder: self.folder.clone().into(),
            environment: self.environment.clone(),
            pin: self.pin,
            first_core: first_core as u32,
        }
    }
}

impl Host {
    /// Returns this machine as a host, with `ranks` ranks that listen at its loopback address.
    pub fn here(ranks: u32) -> Self {
        let bind = Ipv4Addr::LOCALHOST.to_string();
        Self { name: "localhost".into(), ranks, bind, remote: Vec::new(), pretended: false }
    }
}
