//! `fencepost run`: the command line of a job.

use crate::hosts::{self, Named};
use crate::{count, fail, print};
use clap::{Args, ValueHint};
use fencepost_job::{Host, Reach, Settings, Start};
use fencepost_planner::explain::number_of;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The options and arguments of `fencepost run`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Run {
    /// The number of ranks [default: one for each core, or as many as the hosts take]
    #[arg(short = 'n', long, visible_alias = "np", value_name = "RANKS", value_parser = count::<NonZeroU32>)]
    ranks: Option<NonZeroU32>,
    /// The hosts to run on, comma-separated: NAME, NAME:RANKS, NAME=ADDRESS or NAME=ADDRESS:RANKS
    #[arg(short = 'H', long, visible_alias = "host", value_name = "HOSTS", value_hint = ValueHint::Hostname, conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// A file that lists the hosts, one a line: NAME [slots=RANKS] [address=ADDRESS]
    #[arg(short = 'f', long, visible_alias = "machinefile", value_name = "FILE", value_hint = ValueHint::FilePath)]
    hostfile: Option<PathBuf>,
    /// Try a job of several hosts on this machine: COUNT pretended hosts share the ranks evenly.
    /// Each has a loopback address of its own; ranks of different hosts share no memory
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["hosts", "hostfile", "bind"], value_parser = clap::value_parser!(u32).range(2..=PRETENDED_MAX))]
    pretend_hosts: Option<u32>,
    /// How ranks communicate: shm or tcp [default: shm within a host, tcp between hosts]
    #[arg(long, value_name = "TRANSPORT", env = "FENCEPOST_TRANSPORT", value_parser = reach, hide_env_values = true)]
    transport: Option<Reach>,
    /// The address or network interface at which ranks listen [default: loopback; with --hosts, the
    /// address of the host's name]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// A file with the machine model by which ranks choose modes; its text is given to all ranks
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    machine: Option<PathBuf>,
    /// The time limit, such as 90s, 15m, 2h or off; a job that exceeds it is ended with exit code
    /// 124
    #[arg(long, value_name = "TIME", value_parser = fencepost_job::duration)]
    timeout: Option<Duration>,
    /// How many times to start the job again after a failure that the program has not caused: a
    /// rank that a signal has killed or that sends no heartbeats, or a host that was lost
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    restarts: u32,
    /// Leave out lost hosts when the job is started again; the job then has fewer ranks
    #[arg(long, requires = "restarts")]
    shrink: bool,
    /// Give the ranks the time that they need to save a snapshot at the first SIGTERM; also
    /// FENCEPOST_SNAPSHOT_ON_TERM=on
    #[arg(long)]
    snapshot_on_term: bool,
    /// Set an environment variable for the ranks: NAME=VALUE, or NAME to pass on its value here
    #[arg(short = 'x', long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// The working directory of the ranks, which does not affect the search for the program
    /// [default: the current one]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    wdir: Option<PathBuf>,
    /// Write the rank in front of each line of its output
    #[arg(short = 'l', long)]
    tag_output: bool,
    /// The standard input of rank 0: that of this command (rank0), or none
    #[arg(long, value_name = "WHO", value_parser = ["rank0", "none"], default_value = "rank0")]
    stdin: String,
    /// Pin each rank to a core of its own; ranks share cores if there are not enough
    #[arg(long)]
    pin: bool,
    /// Pin ranks as --pin does (core), or leave them unpinned (none), which is the default
    #[arg(long, value_name = "WHAT", value_parser = ["core", "none"], conflicts_with = "pin")]
    bind_to: Option<String>,
    /// The command that runs a program on a host, without ever asking for a password; {host} in the
    /// command is replaced by the host's name; without {host}, the name is appended [default: ssh
    /// with BatchMode]
    #[arg(long, value_name = "COMMAND", env = "FENCEPOST_SSH", hide_env_values = true, value_hint = ValueHint::CommandString)]
    remote_command: Option<String>,
    /// The path of fencepost on the other hosts [default: its path here]
    #[arg(long, value_name = "PATH")]
    remote_fencepost: Option<PathBuf>,
    /// Print what would be started on which host, and start nothing
    #[arg(long)]
    show: bool,
    /// Report what is started, which signals are forwarded, and how each rank ends
    #[arg(short, long)]
    verbose: bool,
    /// The program
    #[arg(value_name = "PROGRAM", value_hint = ValueHint::CommandName)]
    program: OsString,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

// `\` joins the lines of a paragraph, since clap wraps text but keeps line breaks. The lines of
// lists fit into 80 columns.
const AFTER: &str = "\
The hosts get consecutive ranks, in the order given. The program and fencepost must have the same path on each host as \
here. The ranks get all environment variables whose names begin with FENCEPOST_. The launcher forwards the output of \
ranks on other hosts, what ranks write to standard error, and all output with --tag-output, in whole lines; without \
tags a line whose end takes longer than 0.2 s is forwarded in parts. Standard error is a pipe for a rank, and no terminal.

Environment variables, each a time such as 250ms, 30s, 1.5m or 2h, or a number of seconds:
  FENCEPOST_HEARTBEAT  the time between two heartbeats [default: 500ms]
  FENCEPOST_SILENCE    the longest time without one, or off [default: 10s]
  FENCEPOST_GRACE      the time to end after a rank has failed [default: 10s]
  FENCEPOST_TIMEOUT    the time limit if --timeout is not given [default: off]

A rank or host that sends no heartbeat for FENCEPOST_SILENCE counts as dead and is killed; a wrapper around a rank may \
work on after the rank's program has ended. A connection between ranks on \
which nothing arrives for this time and one heartbeat more is given up; the ranks that wait for it get an error at most \
two seconds later.

Exit codes:
  0    every rank succeeded
  2    the command line or a setting is not valid
  75   the job ended on request after it had saved a snapshot; start it again to
       continue
  124  the job exceeded its time limit
  125  the job could not run, such as for lack of a host, memory or descriptors
  126  the program can't be executed, or it ended without joining the job
  127  the program does not exist

Otherwise the exit code is that of the lowest rank that failed independently of other ranks: the code with which it exited \
(101 after a panic), or 128 plus the number of the signal that killed it.

With --restarts, a job is started again, with the same arguments, after a failure that its program has not caused: a signal kills a rank, a rank sends no heartbeat or vanishes inside a wrapper, or a host is lost. An error, a panic or an exit code of the program, the time limit and signals to the launcher end the job. An attempt that follows one without a new snapshot begins after 1 s, then 2 s, 4 s and so on, up to 60 s. --timeout limits all attempts together, and rank 0 reads what is left of standard input.

Options of mpirun are accepted where they mean the same: -np, --host, --hostfile, --machinefile, -x, -wdir, --bind-to core, \
--timeout, --tag-output and -l; long ones also with a single dash.

Standard input goes to rank 0, as far as it reads; --stdin none leaves it to the commands that follow, as in \
a loop over the lines of a file. Ctrl-Z suspends the ranks as well.

Examples:
  fencepost run -n 8 ./heat2d
  fencepost run -n 4 --transport tcp --tag-output ./hillslope --years 2e6
  fencepost run --pretend-hosts 2 -n 4 ./heat2d
  fencepost run --hosts a:4,b:4 --bind ib0 --timeout 2h ./hillslope
  fencepost run --hosts a:4,b:4 --restarts 5 --shrink ./heat2d
  fencepost run --hosts a,b --remote-command 'ip netns exec {host}' ./heat2d";

/// The default remote command. It detects broken connections, and never asks for a password.
const SSH: &str =
    "ssh -o BatchMode=yes -o ControlMaster=no -o ServerAliveInterval=5 -o ServerAliveCountMax=2";

/// The maximum number of pretended hosts. Their addresses begin with 127.0.0.2.
const PRETENDED_MAX: i64 = 250;

/// The remote command of a pretended host. It only runs its arguments.
const ENV: &str = "env";

/// The variable that makes ranks take a snapshot at SIGTERM.
const SNAPSHOT_ON_TERM: &str = "FENCEPOST_SNAPSHOT_ON_TERM";

/// The reason why no job is started, and the exit code in this case.
struct NotStarted {
    code: u8,
    why: String,
}

impl From<String> for NotStarted {
    fn from(why: String) -> Self {
        Self { code: fencepost_job::USAGE, why }
    }
}

pub(crate) fn reach(text: &str) -> Result<Reach, String> {
    match text {
        "shm" => Ok(Reach::Shm),
        "tcp" => Ok(Reach::Tcp),
        "mpi" => Err(
            "this command starts ranks that communicate over `shm` or `tcp`: for `mpi` start the program with mpirun, mpiexec or srun"
                .into(),
        ),
        _ => Err("processes communicate over `shm` or `tcp`".into()),
    }
}

impl Run {
    /// Runs the job, or prints it for `--show`.
    pub fn run(&self) -> ExitCode {
        let start = match self.start() {
            Ok(start) => start,
            Err(error) => return fail(error.code, &error.why),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if (self.hosts.is_none() && self.hostfile.is_none())
            && let Some(warning) = crowded(start.size() as usize, cores)
        {
            fail(0, &warning);
        }
        if self.show {
            return print(show(&start).as_bytes());
        }
        ExitCode::from(start.run())
    }

    fn start(&self) -> Result<Start, NotStarted> {
        let settings = Settings::from_environment()?;
        let here = |error: std::io::Error| error.to_string();
        let program = find(Path::new(&self.program))
            .map_err(|why| NotStarted { code: fencepost_job::NOT_FOUND, why })?;
        let hosts = self.hosts_with_ranks()?;
        let ranks: u64 = hosts.iter().map(|host| u64::from(host.ranks)).sum();
        if ranks > u64::from(fencepost_job::RANKS_MAX) {
            return Err(format!(
                "the job would have {ranks} ranks; a job has at most {}",
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
            let why = format!("{} hosts share no memory: omit --transport shm, or use one host", hosts.len());
            return Err(why.into());
        }
        let fencepost = match &self.remote_fencepost {
            Some(path) => path.clone(),
            None => std::env::current_exe().map_err(here)?,
        };
        let environment = self.environment()?;
        let snapshot_on_term = environment.iter().rfind(|(name, _)| name == SNAPSHOT_ON_TERM);
        Ok(Start {
            program,
            arguments: self.arguments.clone(),
            folder: match &self.wdir {
                Some(folder) => std::path::absolute(folder).map_err(here)?,
                None => std::env::current_dir().map_err(here)?,
            },
            snapshot_on_term: snapshot_on_term.is_some_and(|(_, value)| value == "on"),
            environment,
            reach,
            hosts,
            fencepost,
            timeout: self.timeout.or(settings.timeout).filter(|time| !time.is_zero()),
            grace: settings.grace,
            limits: settings.limits,
            sealed: settings.sealed,
            tag_output: self.tag_output,
            input: self.stdin != "none",
            pin: self.pin || self.bind_to.as_deref() == Some("core"),
            verbose: self.verbose,
            restarts: self.restarts,
            shrink: self.shrink,
        })
    }

    fn named(&self) -> Result<Option<Vec<Named>>, String> {
        if let Some(count) = self.pretend_hosts {
            let pretended = |number: u32| Named {
                name: format!("host{number}"),
                address: Some(format!("127.0.0.{}", number + 1)),
                ranks: None,
            };
            return Ok(Some((1..=count).map(pretended).collect()));
        }
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

    /// Returns the hosts, the number of ranks of each, and how each is reached.
    fn hosts_with_ranks(&self) -> Result<Vec<Host>, NotStarted> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let mut ranks = self.ranks.map(NonZeroU32::get);
        if let Some(hosts) = self.pretend_hosts {
            let given = *ranks.get_or_insert(cores.max(hosts));
            if given < hosts {
                let why =
                    format!("{given} ranks are too few for {hosts} pretended hosts: give at least {hosts}");
                return Err(why.into());
            }
        }
        let Some(named) = self.named()? else {
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
                // No rank listens for other hosts, so the name need not be resolved.
                None if alone => "127.0.0.1".into(),
                None => {
                    let unknown = |why| NotStarted { code: fencepost_job::FAILED, why };
                    fencepost_job::resolve(&host.name).map_err(unknown)?.to_string()
                }
            };
            let remote = self.remote(&host.name);
            let pretended = self.pretend_hosts.is_some();
            hosts.push(Host { name: host.name, ranks, bind, remote, pretended });
        }
        let loopback = |host: &&Host| host.bind.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if let (Some(host), false) = (hosts.iter().find(loopback), hosts.iter().all(|host| loopback(&host))) {
            let why = format!(
                "host {} would listen at {}, which other hosts cannot reach: give its address as {}=ADDRESS, or use --bind",
                host.name, host.bind, host.name
            );
            return Err(why.into());
        }
        Ok(hosts)
    }

    /// Returns the words to put before a command, so that the command runs on a host. If the host
    /// is this machine, no words are needed.
    fn remote(&self, host: &str) -> Vec<OsString> {
        if self.pretend_hosts.is_some() {
            return vec![ENV.into()];
        }
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
        let passed_on = |name: &str| name.starts_with("FENCEPOST_") && name != "FENCEPOST_JOB";
        let mut all: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passed_on)).collect();
        for variable in &self.env {
            let (name, value) = match variable.split_once('=') {
                Some((name, value)) => (name, OsString::from(value)),
                None => {
                    let value = std::env::var_os(variable);
                    (
                        variable.as_str(),
                        value.ok_or_else(|| {
                            format!("--env {variable}: the variable has no value here; give {variable}=VALUE")
                        })?,
                    )
                }
            };
            if name.is_empty() || name == "FENCEPOST_JOB" {
                return Err(format!("--env {variable}: this variable cannot be set"));
            }
            all.push((name.into(), value));
        }
        if self.snapshot_on_term {
            all.push((SNAPSHOT_ON_TERM.into(), "on".into()));
        }
        if let Some(path) = &self.machine {
            all.push(("FENCEPOST_MACHINE".into(), fencepost_tool::files::machine(path)?.to_string().into()));
        }
        Ok(all)
    }
}

/// Returns the absolute path of a program. A path with a slash is made absolute. A name is searched
/// in the folders of PATH.
///
/// # Errors
/// If no folder of PATH has a program of this name, but the current folder has one.
pub(crate) fn find(program: &Path) -> Result<PathBuf, String> {
    let is_file = |path: &PathBuf| path.is_file();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    if program.components().count() > 1 || program.has_root() || program.starts_with(".") {
        return Ok(absolute(program.to_owned()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_file);
    if found.is_none() && program.is_file() {
        let name = program.display();
        return Err(format!("no folder of PATH has the program {name}: did you mean ./{name}?"));
    }
    Ok(found.map_or_else(|| program.to_owned(), absolute))
}

/// The maximum number of ranks that may share a core without a warning.
const RANKS_EACH: usize = 64;

/// Returns a warning if a machine with `cores` cores does not run `ranks` processes well.
fn crowded(ranks: usize, cores: usize) -> Option<String> {
    (ranks > RANKS_EACH * cores).then(|| {
        format!(
            "{ranks} ranks are {ranks} processes, and this machine has {}: most of them wait for a core; \
             for fewer, give -n, such as -n {cores}",
            number_of(cores as u64, "core")
        )
    })
}

/// Finds a program that must exist, even if no recipe needs it.
pub(crate) fn executable(program: &Path) -> Result<PathBuf, String> {
    let (path, shown) = (find(program)?, program.display());
    let of_folder = "give the folder of plans.toml with --folder";
    match path.metadata() {
        Ok(data) if data.is_dir() => {
            Err(format!("{shown} is a folder, not a program: if it has plans.toml, use --folder {shown}"))
        }
        Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => Ok(path),
        Ok(_) => Err(format!("{shown} is not a program, since it is not an executable file; {of_folder}")),
        Err(error) => Err(format!("the program {shown} cannot be found: {error}; {of_folder}")),
    }
}

/// Lists what would be started, with one line for each host.
fn show(start: &Start) -> String {
    let mut text = format!("{} ranks over {}\n", start.size(), start.reach);
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
    text += &format!("program: {}", start.program.display());
    for argument in &start.arguments {
        text += &format!(" {}", argument.to_string_lossy());
    }
    text.push('\n');
    for (name, value) in &start.environment {
        text += &format!("variable: {}={}\n", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}
