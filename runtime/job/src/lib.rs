//! Jobs of processes: starting, watching and ending them, and what each process knows of its job.
//!
//! The process that starts a job (`fencepost run`, or a program that launches itself) is its *launcher*. A rank's
//! process finds `FENCEPOST_JOB` in its environment, which names a descriptor that it inherited: its *control
//! channel*. The first message on that channel is the [`Description`] of the job, including the secret; the memory
//! file, if the job has one, arrives with it. So no resource of a job has a name that other processes could use, or
//! that could be left behind.
//!
//! | file | idea |
//! |---|---|
//! | `control`, `codec`, `channel` | the messages, their encoding, and the connection that carries them |
//! | `description` | what a rank knows of its job |
//! | `member` | what a rank's process does: join, listen, send heartbeats |
//! | `membership` | the state of a rank's process, which its threads share under one lock |
//! | `link` | the transports of a job: the memory file and the connections |
//! | `children` | the ranks that are child processes of this process |
//! | `state_machine` | the job state machine: what the launcher does when a rank reports or ends; pure |
//! | `start`, `host` | the launcher, and its agent on another host |
//! | `environment` | jobs of external launchers (Slurm, MPI) |
//! | `over_mpi`, `rendezvous` | how their ranks find each other: over the launcher's MPI, or at an address |
//! | `wire` | what is quicker between hosts: messages of that MPI, or connections |
//! | `sharing` | how ranks share memory that meet over MPI, and notice that one has ended |
//! | `needs` | what ranks need of a machine at the least |
//! | `exit`, `input`, `relay`, `signals`, `bind`, `pin`, `settings` | how a process ended; input; output; signals; addresses; cores; times |
//! | `variables` | every environment variable that is read |
//!
//! The launcher notices a death because the descriptor of the process becomes readable. It reaps the process, marks the
//! rank as failed in the shared memory, and notifies all other ranks. The launcher kills a rank that sends no heartbeat
//! for `FENCEPOST_SILENCE`; from then on this is a death like any other. Ranks die with the launcher: the system kills
//! them, and where it does not, the end of their control channel does.

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
mod link;
mod member;
mod membership;
mod needs;
mod over_mpi;
mod pin;
mod relay;
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
pub use exit::{Exit, FAILED, NOT_FOUND, NOT_RUN, TIMED_OUT, USAGE, signal_name};
pub use host::host;
pub use member::{Member, joined, member};
pub use over_mpi::ask_for;
pub use settings::{Settings, duration};
pub use start::{Host, RANKS_MAX, Start};
pub use wire::Wire;

/// The version of this build of Fencepost; the launcher, its hosts and the ranks must have the same.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Returns the interfaces of MPI that the launcher of this process may have, if another launcher has started it; any if there are
/// none.
pub fn interfaces_of_launcher() -> &'static [fencepost_transport::mpi::Family] {
    let external = environment::external_rank(environment::variable);
    external.ok().flatten().map_or(&[], |external| external.families)
}

/// Returns whether another launcher has started this process as the only rank of its job: it needs
/// no transport.
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
