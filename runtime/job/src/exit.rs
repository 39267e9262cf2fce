//! [`Exit`]: how a rank's process ended, in words and as an exit code.

use crate::codec::{In, Malformed, Out};
use crate::control::cut;
use std::fmt;
use std::time::Duration;

/// Exit code of a job that took longer than it was given.
pub const TIMED_OUT: u8 = 124;
/// Exit code where the job could not be carried out: no memory, no descriptors, a host that is not reached.
pub const FAILED: u8 = 125;
/// Exit code of a program that can't be run, or is not one of Fencepost's.
pub const NOT_RUN: u8 = 126;
/// Exit code of a program that is not there.
pub const NOT_FOUND: u8 = 127;
/// Exit code of a command line, or a setting, that is not understood.
pub const USAGE: u8 = 2;

/// How a rank's process ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this code.
    Code(u8),
    /// By a signal.
    Signal(u8),
    /// It gave no sign of life for so long, and was killed.
    Silent(Duration),
    /// It was never there: with this exit code for the job, and why.
    NotStarted {
        /// One of this file's.
        code: u8,
        /// The reason, without naming rank and host.
        why: String,
    },
    /// The way to its host is lost: how.
    Lost(String),
}

impl Exit {
    /// The exit code that it comes to.
    pub fn code(&self) -> u8 {
        match self {
            Exit::Code(code) => *code,
            Exit::Signal(signal) => 128_u8.saturating_add(*signal),
            Exit::Silent(_) => 128 + 9,
            Exit::NotStarted { code, .. } => *code,
            Exit::Lost(_) => FAILED,
        }
    }

    /// What became of this rank, for ranks that may know it by another number in a world of some of them.
    pub(crate) fn of(&self, rank: u32) -> String {
        format!("rank {rank} of the job {self}")
    }

    pub(crate) fn write(&self, out: &mut Out) {
        match self {
            Exit::Code(code) => out.0.extend([0, *code]),
            Exit::Signal(signal) => out.0.extend([1, *signal]),
            Exit::Silent(time) => {
                out.u8(2);
                out.duration(*time);
            }
            Exit::NotStarted { code, why } => {
                out.0.extend([3, *code]);
                out.bytes(cut(why).as_bytes());
            }
            Exit::Lost(how) => {
                out.u8(4);
                out.bytes(cut(how).as_bytes());
            }
        }
    }

    pub(crate) fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        Ok(match bytes.u8()? {
            0 => Exit::Code(bytes.u8()?),
            1 => Exit::Signal(bytes.u8()?),
            2 => Exit::Silent(bytes.duration()?),
            3 => Exit::NotStarted { code: bytes.u8()?, why: bytes.text()? },
            4 => Exit::Lost(bytes.text()?),
            _ => return Err(Malformed("an exit of no known kind")),
        })
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with code {code}"),
            Exit::Signal(signal) => {
                write!(f, "was killed by signal {signal}")?;
                signal_name(i32::from(*signal)).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            Exit::Silent(time) => {
                write!(f, "gave no sign of life for {:.1} s and was killed", time.as_secs_f64())
            }
            Exit::NotStarted { why, .. } => write!(f, "was not started: {why}"),
            Exit::Lost(how) => write!(f, "was lost with its host: {how}"),
        }
    }
}

/// The name of a signal that ends processes.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_says_how_and_has_the_code_of_a_shell() {
        let cases = [
            (Exit::Code(3), "exited with code 3", 3),
            (Exit::Signal(9), "was killed by signal 9 (SIGKILL)", 137),
            (Exit::Signal(40), "was killed by signal 40", 168),
            (Exit::Silent(Duration::from_millis(2500)), "gave no sign of life for 2.5 s and was killed", 137),
            (
                Exit::NotStarted { code: NOT_FOUND, why: "no such file".into() },
                "was not started: no such file",
                127,
            ),
            (Exit::Lost("the connection ended".into()), "was lost with its host: the connection ended", 125),
        ];
        for (exit, words, code) in cases {
            assert_eq!((exit.to_string().as_str(), exit.code()), (words, code));
        }
    }
}
