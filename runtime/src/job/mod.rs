//! Jobs of processes: what starts them, watches them and ends them, and what each of them knows.
//!
//! Whoever starts a job (`fencepost run`, or a program that [launches](crate::launch) itself) is its *starter*. A rank's
//! process finds `FENCEPOST_JOB` in its environment, which names a descriptor that it inherited: its *control channel*.
//! The first message on it is the [`Description`] of the job, secret included, and with it comes the memory file where
//! there is one. So nothing of a job has a name that others could use, or that could be left behind.
//!
//! | file | idea |
//! |---|---|
//! | `control`, `codec`, `channel` | the messages, and how they travel |
//! | `description` | what a rank knows of its job |
//! | `exit` | how a process ended, in words and as an exit code |

mod channel;
mod codec;
pub mod control;
mod description;
mod exit;

pub use channel::{Broken, Channel};
pub use description::{Description, HostRanks, Limits, Reach, Secret};
pub use exit::{Exit, FAILED, NOT_FOUND, NOT_RUN, TIMED_OUT, USAGE, signal_name};
