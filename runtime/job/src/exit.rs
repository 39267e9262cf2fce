//! [`Exit`]: how a rank's process ended, as a text and as an exit code.

use crate::codec::{Malformed, Reader, Writer};
use crate::control::truncate;
use signal_hook::consts::SIGKILL;
use std::fmt;
use std::time::Duration;

/// The exit code of a program that ended on request after it had saved a snapshot. The job of that
/// program has the same exit code. If the job is started again, it continues. The code is
/// EX_TEMPFAIL of `sysexits.h`.
pub const STOPPED: u8 = 75;
/// The exit code of a job that exceeded its time limit.
pub const TIMED_OUT: u8 = 124;
/// The exit code of a job that could not run: no memory, no descriptors, or a host that cannot be
/// reached.
pub const FAILED: u8 = 125;
/// The exit code for a program that can't be executed, or that ends without joining the job.
pub const NOT_RUN: u8 = 126;
/// The exit code for a program that does not exist.
pub const NOT_FOUND: u8 = 127;
/// The exit code for a command line or a setting that is not valid.
pub const USAGE: u8 = 2;

/// How a rank's process ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The process exited with this code.
    Code(u8),
    /// A signal killed the process.
    Signal(u8),
    /// The process sent no heartbeat for this time, and the launcher killed it.
    Silent(Duration),
    /// The process was not started.
    NotStarted {
        /// The exit code of the job, one of the constants of this file.
        code: u8,
        /// The reason, without rank and host.
        why: String,
    },
    /// The connection to the rank's host was lost, for this reason.
    Lost(String),
}

impl Exit {
    /// The exit of a process that was killed.
    pub(crate) const KILLED: Self = Self::Signal(SIGKILL as u8);

    /// Returns the exit code of a job that fails with this exit.
    pub fn code(&self) -> u8 {
        match self {
            Exit::Code(code) => *code,
            Exit::Signal(signal) => 128_u8.saturating_add(*signal),
            Exit::Silent(_) => 128 + SIGKILL as u8,
            Exit::NotStarted { code, .. } => *code,
            Exit::Lost(_) => FAILED,
        }
    }

    /// Describes the exit of `rank` to the other ranks. The text contains `of the job`, since the
    /// rank may have another number in a world that has only some of the ranks.
    pub(crate) fn describe(&self, rank: u32) -> String {
        format!("rank {rank} of the job {self}")
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        match self {
            Exit::Code(code) => out.0.extend([0, *code]),
            Exit::Signal(signal) => out.0.extend([1, *signal]),
            Exit::Silent(time) => {
                out.u8(2);
                out.duration(*time);
            }
            Exit::NotStarted { code, why } => {
                out.0.extend([3, *code]);
                out.bytes(truncate(why).as_bytes());
            }
            Exit::Lost(how) => {
                out.u8(4);
                out.bytes(truncate(how).as_bytes());
            }
        }
    }

    pub(crate) fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match bytes.u8()? {
            0 => Exit::Code(bytes.u8()?),
            1 => Exit::Signal(bytes.u8()?),
            2 => Exit::Silent(bytes.duration()?),
            3 => Exit::NotStarted { code: bytes.u8()?, why: bytes.text()? },
            4 => Exit::Lost(bytes.text()?),
            _ => return Err(Malformed("unknown kind of exit")),
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
                write!(f, "sent no heartbeat for {:.1} s and was killed", time.as_secs_f64())
            }
            Exit::NotStarted { why, .. } => write!(f, "was not started: {why}"),
            Exit::Lost(how) => write!(f, "was lost with its host: {how}"),
        }
    }
}

/// Returns the name of a signal that ends processes by default.
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
        SIGKILL => "SIGKILL",
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
    fn an_exit_has_a_description_and_the_code_that_a_shell_reports() {
        let cases = [
            (Exit::Code(3), "exited with code 3", 3),
            (Exit::Signal(9), "was killed by signal 9 (SIGKILL)", 137),
            (Exit::Signal(40), "was killed by signal 40", 168),
            (Exit::Silent(Duration::from_millis(2500)), "sent no heartbeat for 2.5 s and was killed", 137),
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
