//! Starts, watches and ends jobs of processes, and describes the job to each process.
//!
//! The process that starts a job is its *launcher*: `fencepost run`, or a program that launches
//! itself. A rank's process finds `FENCEPOST_JOB` in its environment. The variable names a
//! descriptor that the process inherited, its *control channel*. The first message on that channel
//! is the [`Description`] of the job, including the secret. If the job has a memory file, the file
//! arrives with this message. So no resource of a job has a name by which another process could
//! open it, and no resource is left behind.
//!
//! | file | idea |
//! |---|---|
//! | `control`, `codec`, `channel` | the messages, their encoding, and their connection |
//! | `description` | the description of a job that each rank receives |
//! | `member` | what a rank's process does: join, listen, send heartbeats |
//! | `membership` | the state of a rank's process, which its threads share under one lock |
//! | `link` | the transports of a job: the memory file and the connections |
//! | `children` | the ranks that are child processes of this process |
//! | `state_machine` | what the launcher does when a rank reports or ends; a pure state machine |
//! | `start`, `launcher` | a job to start, and the launcher that watches it |
//! | `attempts`, `orphans` | start a failed job again, once none of its processes is left |
//! | `remote_host`, `host` | another host as the launcher sees it, and the launcher's agent there |
//! | `environment` | jobs of external launchers (Slurm, MPI) |
//! | `over_mpi`, `rendezvous` | how such ranks meet: over the launcher's MPI, or at an address |
//! | `wire` | whether messages of that MPI or connections are faster between hosts |
//! | `sharing` | how ranks that meet over MPI share memory, and notice that one has ended |
//! | `needs` | the least that ranks need of a machine |
//! | `exit` | how a process ended |
//! | `input`, `relay` | standard input, and the output of the ranks |
//! | `signals` | signals to the launcher |
//! | `bind`, `pin`, `settings` | addresses to listen at; cores; the settings of a job |
//! | `variables` | every environment variable that is read |
//!
//! The launcher notices a death because the descriptor of the process becomes readable. It reaps
//! the process, marks the rank as failed in the shared memory, and notifies all other ranks. The
//! launcher kills a rank that sends no heartbeat for `FENCEPOST_SILENCE`, and then treats this
//! death like any other. Ranks die with the launcher: the system kills them. If the system does
//! not, they end when their control channel ends.

mod attempts;
mod bind;
mod cgroup;
mod channel;
mod children;
mod codec;
pub mod control;
mod description;
mod environment;
mod exit;
mod host;
mod input;
mod launcher;
mod link;
mod member;
mod membership;
mod needs;
mod orphans;
mod over_mpi;
mod pin;
mod relay;
mod remote_host;
mod rendezvous;
mod settings;
mod sharing;
mod signals;
mod start;
mod state_machine;
mod turns;
pub mod variables;
mod wire;

pub use bind::resolve;
pub use channel::{Channel, ChannelError};
pub use description::{Description, HostRanks, Limits, Reach};
pub use exit::{Exit, FAILED, NOT_FOUND, NOT_RUN, STOPPED, TIMED_OUT, USAGE, signal_name};
pub use host::host;
pub use member::{Member, joined, member};
pub use over_mpi::ask_for;
pub use pin::pin_thread;
pub use settings::{Settings, duration};
pub use start::{Host, RANKS_MAX, Start};
pub use wire::Wire;

/// The version of this build of Fencepost, which the launcher, its hosts and the ranks must share.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Returns the interfaces that the MPI of this process's launcher may have. The slice is empty if
/// any interface is possible, and also if no external launcher has started this process.
pub fn interfaces_of_launcher() -> &'static [fencepost_transport::mpi::Family] {
    let external = environment::external_rank(environment::variable);
    external.ok().flatten().map_or(&[], |external| external.families)
}

/// Returns whether an external launcher has started this process as the only rank of its job. Such
/// a rank needs no transport.
pub fn is_only_rank() -> bool {
    let external = environment::external_rank(environment::variable);
    external.ok().flatten().is_some_and(|external| external.size == 1)
}

/// Returns the BLAKE3 digest of a file.
///
/// # Errors
/// The file can't be read.
pub fn digest(path: &std::path::Path) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}
