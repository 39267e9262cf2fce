//! [`Trace`]: the events of one rank, as a run or a simulation has recorded them, and the text of a
//! trace file.
//!
//! A file is text, with a line for each event, so that any program can read it:
//!
//! ```text
//! fencepost trace 1
//! run 9f3c41 1                  the identity of the program's execution, and the run in it
//! rank 3 of 8 on host 1 beta    names of hosts may be empty
//! clock 81234567 4321           a time in ticks, and the same time in ns of rank 0's clock
//! sent 12 480                   frames and bytes that the rank has posted
//! lost 0                        events that were written over
//! call 0 a fence at heat.rs:7   the calls, by number
//! c 81234600 950 0              a call: when it began, how long it took, its number
//! w 81234700 800 2              a wait for a rank, or for any: when it began, how long it took
//! s 81234650 2 0 0 5 64         a frame to a rank: world, port, number, bytes
//! r 81235600 2 0 0 5            a frame from a rank, when this rank had finished with it
//! end
//! ```

use crate::error::{Error, ErrorClass, Result};
use crate::plan::RANKS_MAX;
use std::fmt;
use std::str::FromStr;

/// The first line of a file.
const FIRST: &str = "fencepost trace 1";

/// The events of one rank. Times are in ticks of the clock of the rank's host.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Trace {
    /// The identity of the program's execution, which is the same on all ranks.
    pub run: u64,
    /// The number of the run among the runs of the program, from 1.
    pub number: u32,
    /// The rank.
    pub rank: u32,
    /// The number of ranks.
    pub ranks: u32,
    /// The number of the rank's host. Ranks of one host have the same clock.
    pub host: u32,
    /// The name of the rank's host, if it is known.
    pub host_name: String,
    /// At most two moments, each in ticks and in nanoseconds of rank 0's clock. The list is empty
    /// on all ranks but the first of each host.
    pub clock: Vec<(u64, u64)>,
    /// The numbers of frames and of bytes that the rank has posted.
    pub sent: (u64, u64),
    /// The number of events that were overwritten.
    pub lost: u64,
    /// The calls, by number.
    pub calls: Vec<String>,
    /// The events, in the order in which they ended.
    pub events: Vec<Event>,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time at which the event began, in ticks.
    pub at: u64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The rank was in a call.
    Call {
        /// The duration, in ticks.
        took: u64,
        /// The number of the call in [`Trace::calls`].
        call: u32,
    },
    /// The rank waited for another rank.
    Wait {
        /// The duration, in ticks.
        took: u64,
        /// The awaited rank. `None` if the rank waited for any of several ranks.
        rank: Option<u32>,
    },
    /// The rank posted a frame.
    Sent {
        /// The receiver.
        to: u32,
        /// The frame.
        frame: Frame,
        /// The bytes of its payload.
        bytes: u64,
    },
    /// The rank finished with a frame.
    Received {
        /// The sender.
        from: u32,
        /// The frame.
        frame: Frame,
    },
}

/// The identity of a frame among the frames from its sender to its receiver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame {
    /// The world in which the frame was sent; 0 is the world of all ranks.
    pub world: u32,
    /// The port.
    pub port: u32,
    /// The number of the frame on that port, from 0.
    pub number: u32,
}

/// The clock of a host, as a linear function from its ticks to nanoseconds of rank 0's clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    at: (u64, u64),
    per_tick: f64,
    /// The nanoseconds by which the clock was set forward.
    forward: f64,
}

impl Clock {
    /// Returns the clock with these times, in ticks and in nanoseconds of rank 0's clock. Returns
    /// `None` if there are no times. With a single time, a tick is a nanosecond.
    pub fn of(times: &[(u64, u64)]) -> Option<Self> {
        let at = *times.first()?;
        let per_tick = times.get(1).map_or(1.0, |last| {
            let (ticks, nanos) = (last.0.wrapping_sub(at.0) as i64, last.1.wrapping_sub(at.1) as i64);
            nanos.max(0) as f64 / ticks.max(1) as f64
        });
        Some(Self { at, per_tick, forward: 0.0 })
    }

    /// Returns the first time of this clock, in nanoseconds of rank 0's clock.
    pub fn first(&self) -> u64 {
        self.at.1
    }

    /// Makes `nanos`, a time of rank 0's clock, the origin from which nanoseconds are counted.
    /// Results are exact to a nanosecond for 100 days after the origin.
    pub fn count_from(&mut self, nanos: u64) {
        self.at.1 = self.at.1.wrapping_sub(nanos);
    }

    /// Converts a time in ticks to nanoseconds of rank 0's clock.
    pub fn nanos(&self, ticks: u64) -> f64 {
        self.at.1 as i64 as f64 + ticks.wrapping_sub(self.at.0) as i64 as f64 * self.per_tick + self.forward
    }

    /// Sets the clock forward by this number of nanoseconds.
    pub fn forward(&mut self, by: f64) {
        self.forward += by;
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        writeln!(f, "{FIRST}\nrun {:x} {}", self.run, self.number)?;
        let (rank, ranks, host) = (self.rank, self.ranks, self.host);
        writeln!(f, "rank {rank} of {ranks} on host {host} {}", line(&self.host_name))?;
        for (ticks, nanos) in &self.clock {
            writeln!(f, "clock {ticks} {nanos}")?;
        }
        writeln!(f, "sent {} {}\nlost {}", self.sent.0, self.sent.1, self.lost)?;
        for (number, call) in self.calls.iter().enumerate() {
            writeln!(f, "call {number} {}", line(call))?;
        }
        for Event { at, what } in &self.events {
            match what {
                What::Call { took, call } => writeln!(f, "c {at} {took} {call}")?,
                What::Wait { took, rank: Some(rank) } => writeln!(f, "w {at} {took} {rank}")?,
                What::Wait { took, rank: None } => writeln!(f, "w {at} {took}")?,
                What::Sent { to, frame: Frame { world, port, number }, bytes } => {
                    writeln!(f, "s {at} {to} {world} {port} {number} {bytes}")?;
                }
                What::Received { from, frame: Frame { world, port, number } } => {
                    writeln!(f, "r {at} {from} {world} {port} {number}")?;
                }
            }
        }
        writeln!(f, "end")
    }
}

impl FromStr for Trace {
    type Err = Error;

    /// Reads the text of a file.
    ///
    /// # Errors
    /// `FILE`, with the line, if the text is not a complete trace.
    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            |line: usize, what: &str| Error::new(ErrorClass::File, format!("line {}: {what}", line + 1));
        let mut trace = Self::default();
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, FIRST)) => {}
            Some((_, other)) if other.starts_with("fencepost trace ") => {
                return Err(wrong(0, "a trace of a newer release: read it with that release"));
            }
            _ => return Err(wrong(0, "this is not a trace: the first line is not `fencepost trace 1`")),
        }
        let mut is_complete = false;
        for (number, line) in lines {
            if is_complete {
                return Err(wrong(number, "there is more after the end"));
            }
            is_complete = line == "end";
            if !is_complete {
                trace.read(line).map_err(|what| wrong(number, &what))?;
            }
        }
        let refused = |what: &str| Err(Error::new(ErrorClass::File, what));
        if !is_complete {
            return refused("the trace is cut off: the last line is not `end`");
        }
        if trace.rank >= trace.ranks {
            return refused("the trace does not name its rank");
        }
        Ok(trace)
    }
}

/// Returns the name of the file of a rank's trace.
pub fn file_name(run: u32, rank: u32) -> String {
    format!("run{run}-rank{rank}.trace")
}

/// Returns the run and the rank in the name of a trace file, or `None` if `name` is not such a
/// name.
pub fn of_file_name(name: &str) -> Option<(u32, u32)> {
    let (run, rank) = name.strip_suffix(".trace")?.strip_prefix("run")?.split_once("-rank")?;
    let numbers = (run.parse().ok()?, rank.parse().ok()?);
    (file_name(numbers.0, numbers.1) == name).then_some(numbers)
}

impl Trace {
    /// Reads a line between the first and the last.
    fn read(&mut self, line: &str) -> Result<(), String> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "run" => {
                let (run, number) = rest.split_once(' ').ok_or("a run has an identity and a number")?;
                self.run = u64::from_str_radix(run, 16).map_err(|_| format!("`{run}` names no run"))?;
                let [number] = numbers(number)?;
                self.number = u32::try_from(number).map_err(|_| format!("`{number}` is too large"))?;
            }
            "rank" => {
                let mut words = rest.splitn(7, ' ');
                let mut number = |before: usize| words.nth(before).and_then(|word| word.parse().ok());
                let (Some(rank), Some(ranks), Some(host)) = (number(0), number(1), number(2)) else {
                    return Err("a rank is `rank 0 of 4 on host 0`".into());
                };
                if ranks > RANKS_MAX {
                    return Err(format!("{ranks} ranks: at most {RANKS_MAX} run"));
                }
                (self.rank, self.ranks, self.host) = (rank, ranks, host);
                self.host_name = words.next().unwrap_or_default().into();
            }
            "clock" => {
                if self.clock.len() == 2 {
                    return Err("a third time of the clock: there are two at most".into());
                }
                let [ticks, nanos] = numbers(rest)?;
                self.clock.push((ticks, nanos));
            }
            "sent" => self.sent = numbers(rest)?.into(),
            "lost" => [self.lost] = numbers(rest)?,
            "call" => {
                let (number, call) = rest.split_once(' ').ok_or("a call has a number and a text")?;
                if number.parse() != Ok(self.calls.len()) {
                    return Err(format!("this is call {}, not `{number}`", self.calls.len()));
                }
                self.calls.push(call.into());
            }
            "c" | "w" | "s" | "r" => {
                let event = self.event(kind, rest)?;
                self.events.push(event);
            }
            other => return Err(format!("no line of a trace begins with `{other}`")),
        }
        Ok(())
    }

    fn event(&self, kind: &str, rest: &str) -> Result<Event, String> {
        let rank = |rank: u64| {
            let known = u32::try_from(rank).ok().filter(|rank| *rank < self.ranks);
            known.ok_or_else(|| format!("there is no rank {rank} of {}", self.ranks))
        };
        let frame = |[world, port, number]: [u64; 3]| -> Result<Frame, String> {
            let small = |number: u64| u32::try_from(number).map_err(|_| format!("`{number}` is too large"));
            Ok(Frame { world: small(world)?, port: small(port)?, number: small(number)? })
        };
        Ok(match kind {
            "c" => {
                let [at, took, call] = numbers(rest)?;
                if call >= self.calls.len() as u64 {
                    return Err(format!("there is no call {call}"));
                }
                Event { at, what: What::Call { took, call: call as u32 } }
            }
            "w" => {
                if let Ok([at, took]) = numbers(rest) {
                    return Ok(Event { at, what: What::Wait { took, rank: None } });
                }
                let [at, took, awaited] = numbers(rest)?;
                Event { at, what: What::Wait { took, rank: Some(rank(awaited)?) } }
            }
            "s" => {
                let [at, to, world, port, number, bytes] = numbers(rest)?;
                let frame = frame([world, port, number])?;
                Event { at, what: What::Sent { to: rank(to)?, frame, bytes } }
            }
            _ => {
                let [at, from, world, port, number] = numbers(rest)?;
                Event { at, what: What::Received { from: rank(from)?, frame: frame([world, port, number])? } }
            }
        })
    }
}

/// Reads `N` numbers, separated by single spaces.
fn numbers<const N: usize>(text: &str) -> Result<[u64; N], String> {
    let mut numbers = [0; N];
    let mut words = text.split(' ');
    for number in &mut numbers {
        let word = words.next().ok_or_else(|| format!("there are fewer than {N} numbers"))?;
        *number = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
    }
    match words.next() {
        None => Ok(numbers),
        Some(more) => Err(format!("`{more}` is one too many: there are {N} numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace() -> Trace {
        let frame = Frame { world: 3, port: 0, number: 7 };
        let event = |at: u64, what: What| Event { at, what };
        Trace {
            run: 0x9f3c,
            number: 2,
            rank: 1,
            ranks: 3,
            host: 1,
            host_name: "beta".into(),
            clock: vec![(100, 4000), (u64::MAX, 9000)],
            sent: (1, 64),
            lost: 5,
            calls: vec!["superstep exchange (a b.rs:7)".into(), String::new()],
            events: vec![
                event(10, What::Sent { to: 2, frame, bytes: 64 }),
                event(12, What::Wait { took: 30, rank: Some(0) }),
                event(44, What::Received { from: 0, frame }),
                event(9, What::Call { took: 40, call: 1 }),
            ],
        }
    }

    #[test]
    fn a_trace_is_read_as_it_was_written() {
        let trace = trace();
        assert_eq!(trace.to_string().parse::<Trace>().unwrap(), trace);
        let nameless = Trace { ranks: 1, ..Trace::default() };
        assert_eq!(nameless.to_string().parse::<Trace>().unwrap(), nameless);
    }

    #[test]
    fn a_trace_that_is_cut_off_anywhere_is_refused() {
        let text = trace().to_string();
        for end in 0..text.len() - 1 {
            assert!(text[..end].parse::<Trace>().is_err(), "{end}: {}", &text[..end]);
        }
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = |from: &str, to: &str| {
            let text = trace().to_string();
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1).parse::<Trace>().unwrap_err().message().to_owned()
        };
        assert_eq!(
            wrong("trace 1", "trace 2"),
            "line 1: a trace of a newer release: read it with that release"
        );
        assert_eq!(wrong("w 12 30 0", "w 12 30 3"), "line 11: there is no rank 3 of 3");
        assert_eq!(wrong("c 9 40 1", "c 9 40 2"), "line 13: there is no call 2");
        assert_eq!(wrong("r 44", "q 44"), "line 12: no line of a trace begins with `q`");
        assert_eq!(wrong("s 10 2 3 0 7 64", "s 10 2 3 0 7"), "line 10: there are fewer than 6 numbers");
        assert_eq!(wrong("s 10 2 3", "s 10 2 4294967296"), "line 10: `4294967296` is too large");
        assert_eq!(wrong("of 3 on", "of 99999999 on"), "line 3: 99999999 ranks: at most 16777216 run");
        assert_eq!(wrong("end\n", "end\nend\n"), "line 15: there is more after the end");
        assert_eq!(wrong("lost 5", "clock 1 2"), "line 7: a third time of the clock: there are two at most");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(at in 0..400_usize, byte in any::<u8>(), more in ".{0,20}") {
            let mut bytes = trace().to_string().into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let _: Result<Trace> = text.parse();
            let _: Result<Trace> = format!("{}{more}{}", &trace().to_string()[..at], &trace().to_string()[at..]).parse();
        }
    }

    #[test]
    fn clocks_that_have_passed_zero_are_read_forwards() {
        let clock = Clock::of(&[(u64::MAX - 9, 1000), (90, 1200)]).unwrap();
        assert_eq!((clock.nanos(u64::MAX - 9), clock.nanos(40), clock.nanos(90)), (1000.0, 1100.0, 1200.0));
        assert_eq!(clock.nanos(u64::MAX - 59), 900.0);
        let mut later = clock;
        later.count_from(1100);
        assert_eq!((later.first(), later.nanos(40)), (1000_u64.wrapping_sub(1100), 0.0));
    }
}
