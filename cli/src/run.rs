//! `fencepost run`: the command line of a job.

use crate::hosts::{self, Named};
use crate::{print, refused};
use clap::{Args, ValueHint};
use fencepost_job::{Host, Reach, Settings, Start};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What `fencepost run` takes.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Run {
    /// How many ranks [default: one for each core, or as many as the hosts take]
    #[arg(short = 'n', long, value_name = "RANKS")]
    ranks: Option<NonZeroU32>,
    /// The hosts that ranks run on: NAME, NAME:RANKS or NAME=ADDRESS:RANKS, with commas between them
    #[arg(long, value_name = "HOSTS", value_hint = ValueHint::Hostname, conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// A file of hosts, a line each: NAME, then perhaps slots=RANKS and address=ADDRESS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hostfile: Option<PathBuf>,
    /// How ranks reach each other: shm or tcp [default: shm within a host, tcp between hosts]
    #[arg(long, value_name = "TRANSPORT", env = "FENCEPOST_TRANSPORT", value_parser = reach, hide_env_values = true)]
    transport: Option<Reach>,
    /// The address or interface to listen at [default: loopback; on hosts, the address of the host's name]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// End the job, with exit code 124, when it takes longer: 90s, 15m, 2h (off: never)
    #[arg(long, value_name = "TIME", value_parser = fencepost_job::duration)]
    timeout: Option<Duration>,
    /// A variable for the ranks: NAME=VALUE, or NAME for the value it has here
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Put the rank before each line that it writes
    #[arg(long)]
    tag_output: bool,
    /// Keep each rank on a core of its own, as long as there are enough
    #[arg(long)]
    pin: bool,
    /// The command that runs another one on a host; {host} stands for its name, which else comes last
    #[arg(long, value_name = "COMMAND", env = "FENCEPOST_SSH", hide_env_values = true, value_hint = ValueHint::CommandString)]
    remote_command: Option<String>,
    /// Where this command is on the other hosts [default: where it is here]
    #[arg(long, value_name = "PATH")]
    remote_fencepost: Option<PathBuf>,
    /// Print what would be started where, and start nothing
    #[arg(long)]
    show: bool,
    /// Say what is started, which signals are handed on, and how each rank ends
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

const AFTER: &str = "\
Ranks go to the hosts in order, as many in a row as each takes. On each host the program and this command are where they
are here. Variables whose names begin with FENCEPOST_ go along.

Times, from the environment, such as 250ms, 30s, 1.5m or 2h, in seconds without a unit:
  FENCEPOST_HEARTBEAT (500ms) and FENCEPOST_SILENCE (10s; off: never): a rank or host that gives no sign of life for that
  long is taken for dead. A connection between ranks on which nothing arrives for that long and one heartbeat more is
  given up; the ranks that wait for it are told at most two seconds later, in which the launcher may say how the other
  rank died.
  FENCEPOST_GRACE (10s): how long the other ranks may go on after one has failed.

What ranks write through the launcher (--tag-output, other hosts) is handed on in whole lines.

Exit codes: that of the lowest rank that failed by itself, 128 plus the signal that killed it, 101 if it panicked, or
  2    the command line or a setting is not understood
  124  the job took longer than --timeout
  125  the job could not be carried out: a host that is not reached, no memory, no descriptors
  126  the program can't be run, or is not one of Fencepost's
  127  the program is not there

Examples:
  fencepost run -n 8 ./heat2d
  fencepost run -n 4 --transport tcp --tag-output ./hillslope --years 2e6
  fencepost run --hosts a:4,b:4 --bind ib0 --timeout 2h ./hillslope
  fencepost run --hosts a,b --remote-command 'ip netns exec {host}' ./heat2d";

/// Keeps connections that carry nothing from being cut unnoticed, and never asks for a password.
const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=2";

/// Why nothing is started, and the exit code that says so.
struct Refusal {
    code: u8,
    why: String,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { code: fencepost_job::USAGE, why }
    }
}

fn reach(text: &str) -> Result<Reach, String> {
    match text {
        "shm" => Ok(Reach::Shm),
        "tcp" => Ok(Reach::Tcp),
        _ => Err("processes reach each other by `shm` or `tcp`".into()),
    }
}

impl Run {
    /// Carry it out.
    pub fn run(&self) -> ExitCode {
        let start = match self.start() {
            Ok(start) => start,
            Err(refusal) => return refused(refusal.code, &refusal.why),
        };
        if self.show {
            return print(show(&start).as_bytes());
        }
        ExitCode::from(start.run())
    }

    fn start(&self) -> Result<Start, Refusal> {
        let settings = Settings::from_environment()?;
        let here = |error: std::io::Error| error.to_string();
        let (program, arguments) =
            self.program.split_first().ok_or_else(|| "a program is missing".to_owned())?;
        let hosts = self.placed()?;
        let ranks: u64 = hosts.iter().map(|host| u64::from(host.ranks)).sum();
        if ranks > u64::from(fencepost_job::RANKS_MAX) {
            return Err(format!(
                "{ranks} ranks are asked for, and a job has {} at most",
                fencepost_job::RANKS_MAX
            )
            .into());
        }
        let several = hosts.len() > 1;
        let chosen = match (several, hosts.iter().any(|host| host.ranks > 1)) {
            (false, _) => Reach::Shm,
            (true, true) => Reach::Mixed,
            (true, false) => Reach::Tcp,
        };
        let reach = self.transport.unwrap_or(chosen);
        if several && reach == Reach::Shm {
            let why = format!("{} hosts do not share memory: leave --transport shm out", hosts.len());
            return Err(why.into());
        }
        let fencepost = match &self.remote_fencepost {
            Some(path) => path.clone(),
            None => std::env::current_exe().map_err(here)?,
        };
        Ok(Start {
            program: find(Path::new(program)),
            arguments: arguments.to_vec(),
            folder: std::env::current_dir().map_err(here)?,
            environment: self.environment()?,
            reach,
            hosts,
            fencepost,
            timeout: self.timeout.or(settings.timeout).filter(|time| !time.is_zero()),
            grace: settings.grace,
            limits: settings.limits,
            sealed: settings.sealed,
            tag_output: self.tag_output,
            pin: self.pin,
            verbose: self.verbose,
        })
    }

    fn named(&self) -> Result<Option<Vec<Named>>, String> {
        match (&self.hosts, &self.hostfile) {
            (Some(list), _) => hosts::list(list).map(Some),
            (None, Some(path)) => {
                let named = |why: String| format!("{}: {why}", path.display());
                let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
                hosts::file(&text).map(Some).map_err(named)
            }
            (None, None) => Ok(None),
        }
    }

    /// Which hosts take how many ranks, and how they are reached.
    fn placed(&self) -> Result<Vec<Host>, Refusal> {
        let ranks = self.ranks.map(NonZeroU32::get);
        let Some(named) = self.named()? else {
            let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
            let mut here = Host::here(ranks.unwrap_or(cores));
            here.bind = self.bind.clone().unwrap_or(here.bind);
            return Ok(vec![here]);
        };
        let shares = hosts::share(&named, ranks)?;
        let taken: Vec<(Named, u32)> =
            named.into_iter().zip(shares).filter(|(_, ranks)| *ranks > 0).collect();
        let alone = taken.len() == 1 && self.transport != Some(Reach::Tcp);
        let mut hosts = Vec::with_capacity(taken.len());
        for (host, ranks) in taken {
            let bind = match host.address.as_ref().or(self.bind.as_ref()) {
                Some(bind) => bind.clone(),
                // Nobody listens, so nothing need be known of the name.
                None if alone => "127.0.0.1".into(),
                None => {
                    let unknown = |why| Refusal { code: fencepost_job::FAILED, why };
                    fencepost_job::resolve(&host.name).map_err(unknown)?.to_string()
                }
            };
            let remote = self.remote(&host.name);
            hosts.push(Host { name: host.name, ranks, bind, remote });
        }
        let loopback = |host: &&Host| host.bind.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if let (Some(host), false) = (hosts.iter().find(loopback), hosts.iter().all(|host| loopback(&host))) {
            let why = format!(
                "host {} would listen at {}, where the others do not reach it: give {}=ADDRESS, or --bind",
                host.name, host.bind, host.name
            );
            return Err(why.into());
        }
        Ok(hosts)
    }

    /// The words before a command that is to run on a host: none, where that is this machine.
    fn remote(&self, host: &str) -> Vec<OsString> {
        let here = rustix::system::uname();
        if self.remote_command.is_none()
            && (host == "localhost" || here.nodename().to_bytes() == host.as_bytes())
        {
            return Vec::new();
        }
        let command = self.remote_command.as_deref().unwrap_or(SSH);
        let mut words: Vec<OsString> =
            command.split_whitespace().map(|word| word.replace("{host}", host).into()).collect();
        if !command.contains("{host}") {
            words.push(host.into());
        }
        words
    }

    fn environment(&self) -> Result<Vec<(OsString, OsString)>, String> {
        let ours = |name: &str| name.starts_with("FENCEPOST_") && name != "FENCEPOST_JOB";
        let mut all: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)).collect();
        for variable in &self.env {
            let (name, value) = match variable.split_once('=') {
                Some((name, value)) => (name, OsString::from(value)),
                None => {
                    let value = std::env::var_os(variable);
                    (
                        variable.as_str(),
                        value.ok_or_else(|| format!("--env {variable}: it has no value here"))?,
                    )
                }
            };
            if name.is_empty() || name == "FENCEPOST_JOB" {
                return Err(format!("--env {variable}: that is no variable to set"));
            }
            all.push((name.into(), value));
        }
        Ok(all)
    }
}

/// Where a program is: as given, where that has a slash, else in the folders of PATH.
fn find(program: &Path) -> PathBuf {
    let is_file = |path: &PathBuf| path.is_file();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    if program.components().count() > 1 || program.has_root() || program.starts_with(".") {
        return absolute(program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_file);
    found.map_or_else(|| program.to_owned(), absolute)
}

/// What is started where, a line each.
fn show(start: &Start) -> String {
    let mut text = format!("{} ranks by {}\n", start.size(), start.reach);
    let mut first = 0;
    for host in &start.hosts {
        let last = first + host.ranks - 1;
        text += &format!("ranks {first} to {last} on {}", host.name);
        if start.reach != Reach::Shm {
            text += &format!(", listening at {}", host.bind);
        }
        if !host.remote.is_empty() {
            let words: Vec<_> = host.remote.iter().map(|word| word.to_string_lossy()).collect();
            text += &format!(", started by `{} {} host`", words.join(" "), start.fencepost.display());
        }
        text.push('\n');
        first = last + 1;
    }
    text += &format!("each: {}", start.program.display());
    for argument in &start.arguments {
        text += &format!(" {}", argument.to_string_lossy());
    }
    text.push('\n');
    for (name, value) in &start.environment {
        text += &format!("with {}={}\n", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}
