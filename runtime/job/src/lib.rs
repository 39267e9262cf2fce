//! Jobs of processes: what starts them, watches them and ends them, and what each of them knows.
//!
//! Whoever starts a job (`fencepost run`, or a program that launches itself) is its *starter*. A rank's
//! process finds `FENCEPOST_JOB` in its environment, which names a descriptor that it inherited: its *control channel*.
//! The first message on it is the [`Description`] of the job, secret included, and with it comes the memory file where
//! there is one. So nothing of a job has a name that others could use, or that could be left behind.
//!
//! | file | idea |
//! |---|---|
//! | `control`, `codec`, `channel` | the messages, and how they travel |
//! | `description` | what a rank knows of its job |
//! | `member` | what a rank's process does: join, listen, give signs of life |
//! | `group` | the ranks that are children of this process |
//! | `course` | what is done when a rank says something or ends; pure |
//! | `start`, `host` | the starter, and its part on another host |
//! | `environment`, `rendezvous` | jobs that other launchers have started, and how their ranks meet |
//! | `exit`, `relay`, `signals`, `bind`, `settings` | how a process ended; output; signals; addresses; times |
//!
//! A death is noticed by the starter, since a process's descriptor becomes readable. It reaps the process, writes into
//! the shared memory that the rank is gone, and tells all the others. A rank that gives no sign of life for
//! `FENCEPOST_SILENCE` is killed and then dies like any other. Ranks die with the starter: the system kills them, and
//! where it does not, the end of their control channel does.

mod bind;
mod channel;
mod codec;
pub mod control;
mod course;
mod description;
mod environment;
mod exit;
mod group;
mod host;
mod link;
mod member;
mod relay;
mod rendezvous;
mod settings;
mod signals;
mod start;

pub use bind::resolve;
pub use channel::{Broken, Channel};
pub use description::{Description, HostRanks, Limits, Reach};
pub use exit::{Exit, FAILED, NOT_FOUND, NOT_RUN, TIMED_OUT, USAGE, signal_name};
pub use host::host;
pub use member::{Member, joined, member};
pub use settings::{Settings, duration};
pub use start::{Host, RANKS_MAX, Start};

/// The version of Fencepost that this is.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// BLAKE3 of a file.
///
/// # Errors
/// It can't be read.
pub fn digest(path: &std::path::Path) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}
