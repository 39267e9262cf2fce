//! [`Profile`]: how long the calls of a program took, over all ranks. [`Row`]: the record of one
//! rank about one call.

use std::fmt::{self, Write};
use std::str::FromStr;

/// The number that represents any of several ranks.
pub const ANY: u32 = u32::MAX;

/// The record of one rank about one call. Times are in nanoseconds.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Row {
    /// The call, with its line.
    pub call: String,
    /// The number of runs of the call.
    pub runs: u64,
    /// The time of the slowest run.
    pub most: u64,
    /// The time of all runs.
    pub total: u64,
    /// The times that the rank waited in the call, by the awaited rank. [`ANY`] represents any of
    /// several ranks.
    pub waits: Vec<(u32, u64)>,
    /// The number of frames that the rank posted.
    pub messages: u64,
    /// The number of bytes in these frames.
    pub bytes: u64,
    /// The time that is predicted for all runs, if all of them were prepared.
    pub predicted: Option<f64>,
}

impl Row {
    /// Returns the time that the rank waited.
    pub fn waited(&self) -> u64 {
        self.waits.iter().fold(0, |sum, (_, time)| sum.saturating_add(*time))
    }
}

/// Writes a row as the line of text that a rank sends to rank 0.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, runs, most, total, waits, messages, bytes, predicted } = self;
        write!(f, "{runs} {most} {total} {messages} {bytes} ")?;
        match predicted {
            Some(time) => write!(f, "{time} ")?,
            None => f.write_str("- ")?,
        }
        for (number, (rank, time)) in waits.iter().enumerate() {
            write!(f, "{}{rank}:{time}", if number > 0 { "," } else { "" })?;
        }
        write!(f, " {}", call.replace(['\n', '\r'], " "))
    }
}

impl FromStr for Row {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut words = line.splitn(8, ' ');
        let mut word = || words.next().ok_or(());
        let number = |word: &str| word.parse::<u64>().map_err(drop);
        Ok(Self {
            runs: number(word()?)?,
            most: number(word()?)?,
            total: number(word()?)?,
            messages: number(word()?)?,
            bytes: number(word()?)?,
            predicted: match word()? {
                "-" => None,
                time => Some(time.parse().ok().filter(|time: &f64| time.is_finite()).ok_or(())?),
            },
            waits: {
                let wait = |wait: &str| {
                    let (rank, time) = wait.split_once(':').ok_or(())?;
                    Ok((rank.parse().map_err(drop)?, number(time)?))
                };
                let waits = word()?.split(',').filter(|wait| !wait.is_empty());
                waits.map(wait).collect::<Result<_, ()>>()?
            },
            call: word()?.into(),
        })
    }
}

/// How long calls took, over all ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// The number of ranks.
    pub ranks: usize,
    /// The time from the beginning of the program on rank 0 to its end, in nanoseconds.
    pub took: u64,
    /// The ranks that have not sent their rows.
    pub missing: Vec<usize>,
    /// Whether the program of rank 0 has failed. Rank 0 then did not wait for the rows of other
    /// ranks.
    pub has_failed: bool,
    /// The calls, in descending order of the total time on all ranks or the total time of waits,
    /// whichever is longer.
    pub calls: Vec<OfCall>,
}

/// How long a call took, over all ranks that made it. Times are in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct OfCall {
    /// The call, with its line.
    pub call: String,
    /// The number of runs of the call on the rank that ran it most often.
    pub runs: u64,
    /// The least mean time of a run on one rank, and that rank.
    pub least: (f64, usize),
    /// The mean time of a run over all ranks.
    pub mean: f64,
    /// The greatest mean time of a run on one rank, and that rank.
    pub most: (f64, usize),
    /// The time of the slowest run, and its rank.
    pub slowest: (u64, usize),
    /// The time of all runs on all ranks.
    pub total: u64,
    /// The time that all ranks waited.
    pub waited: u64,
    /// The largest sum of the waits of one rank for another rank: the time, the rank that waited,
    /// and the awaited rank.
    pub longest: Option<(u64, usize, u32)>,
    /// The number of frames that all ranks posted.
    pub messages: u64,
    /// The number of bytes in these frames.
    pub bytes: u64,
    /// The greatest predicted time of a run on one rank, if all runs were prepared.
    pub predicted: Option<f64>,
}

impl Profile {
    /// Returns the profile of these rows. `rows` has an entry for each rank that has sent its rows.
    pub fn of(ranks: usize, took: u64, rows: impl IntoIterator<Item = (usize, Vec<Row>)>) -> Self {
        let mut calls: Vec<OfCall> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let mut means: Vec<(f64, u64)> = Vec::new();
        let mut is_there = vec![false; ranks];
        for (rank, rows) in rows {
            is_there[rank] = true;
            for row in rows {
                let run = if row.runs > 0 { row.total as f64 / row.runs as f64 } else { 0.0 };
                let predicted = row.predicted.map(|time| time / row.runs.max(1) as f64);
                let place = *places.entry(row.call.clone()).or_insert_with(|| {
                    let (least, slowest) = ((f64::INFINITY, rank), (0, rank));
                    let (call, most, longest) = (row.call.clone(), (0.0, rank), None);
                    let (runs, mean, total, waited, messages, bytes) = (0, 0.0, 0, 0, 0, 0);
                    calls.push(OfCall {
                        call,
                        runs,
                        least,
                        mean,
                        most,
                        slowest,
                        total,
                        waited,
                        longest,
                        messages,
                        bytes,
                        predicted,
                    });
                    means.push((0.0, 0));
                    calls.len() - 1
                });
                let call = &mut calls[place];
                call.runs = call.runs.max(row.runs);
                if row.runs > 0 && run < call.least.0 {
                    call.least = (run, rank);
                }
                if run > call.most.0 {
                    call.most = (run, rank);
                }
                call.slowest = call.slowest.max((row.most, rank));
                means[place].0 += row.total as f64;
                means[place].1 = means[place].1.saturating_add(row.runs);
                call.total = call.total.saturating_add(row.total);
                call.waited = call.waited.saturating_add(row.waited());
                for (awaited, time) in &row.waits {
                    if call.longest.is_none_or(|(longest, ..)| *time > longest) {
                        call.longest = Some((*time, rank, *awaited));
                    }
                }
                call.messages = call.messages.saturating_add(row.messages);
                call.bytes = call.bytes.saturating_add(row.bytes);
                call.predicted = call.predicted.zip(predicted).map(|(a, b)| a.max(b));
            }
        }
        for (call, (total, runs)) in calls.iter_mut().zip(means) {
            call.mean = if runs > 0 { total / runs as f64 } else { 0.0 };
            if call.least.0.is_infinite() {
                call.least.0 = 0.0;
            }
        }
        calls.sort_by(|a, b| (b.total.max(b.waited), &a.call).cmp(&(a.total.max(a.waited), &b.call)));
        let missing = (0..ranks).filter(|rank| !is_there[*rank]).collect();
        Self { ranks, took, missing, has_failed: false, calls }
    }

    /// Returns a line of JSON for the run with the number `run`, and a line for each call.
    pub fn json_lines(&self, run: u32) -> String {
        let missing: Vec<String> = self.missing.iter().map(usize::to_string).collect();
        let (ranks, took, missing) = (self.ranks, self.took, missing.join(","));
        let mut text =
            format!("{{\"run\":{run},\"ranks\":{ranks},\"took\":{took},\"missing\":[{missing}]}}\n");
        for call in &self.calls {
            let _ = write!(
                text,
                "{{\"run\":{run},\"call\":{},\"runs\":{},\"least\":{{\"ns\":{:.1},\"rank\":{}}},\"mean\":{:.1},\"most\":{{\"ns\":{:.1},\"rank\":{}}},\"slowest\":{{\"ns\":{},\"rank\":{}}},\"total\":{},\"waited\":{},",
                quoted(&call.call),
                call.runs,
                call.least.0,
                call.least.1,
                call.mean,
                call.most.0,
                call.most.1,
                call.slowest.0,
                call.slowest.1,
                call.total,
                call.waited,
            );
            if let Some((time, rank, awaited)) = call.longest {
                let awaited = if awaited == ANY { "\"any\"".into() } else { awaited.to_string() };
                let _ = write!(text, "\"longest\":{{\"ns\":{time},\"rank\":{rank},\"for\":{awaited}}},");
            }
            if let Some(time) = call.predicted {
                let _ = write!(text, "\"predicted\":{time:.1},");
            }
            let _ = writeln!(text, "\"messages\":{},\"bytes\":{}}}", call.messages, call.bytes);
        }
        text
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile of {} ranks over {}", self.ranks, time(self.took as f64))?;
        if let Some((last, others)) = self.missing.split_last() {
            let others: String = others.iter().take(8).map(|rank| format!("{rank}, ")).collect();
            let more = if self.missing.len() > 9 { "..., " } else { "" };
            let why = if self.has_failed {
                "whose records are not awaited, since the program of rank 0 has failed"
            } else {
                "which have failed, or sent no records in time"
            };
            write!(f, "; without ranks {others}{more}{last}, {why}")?;
        }
        f.write_str(". Times of a run: least, mean and most over the ranks")?;
        for call in &self.calls {
            write!(f, "\n  {}\n    ", call.call)?;
            if call.runs > 0 {
                let ((least, on), (most, at)) = (call.least, call.most);
                let (least, mean, most) = (time(least), time(call.mean), time(most));
                write!(f, "runs {}: {least} (rank {on}), {mean}, {most} (rank {at})", call.runs)?;
                write!(f, "; slowest {} (rank {})", time(call.slowest.0 as f64), call.slowest.1)?;
                if let Some(predicted) = call.predicted {
                    write!(f, "; predicted {}", time(predicted))?;
                }
                f.write_str("\n    ")?;
            }
            write!(f, "messages {}, bytes {}", call.messages, call.bytes)?;
            if let Some((longest, rank, awaited)) = call.longest {
                let share = 100.0 * call.waited as f64 / call.total.max(call.waited).max(1) as f64;
                write!(f, "; {share:.0} percent of the time are waits")?;
                write!(f, ", at most {} of rank {rank} for ", time(longest as f64))?;
                if awaited == ANY { f.write_str("any rank")? } else { write!(f, "rank {awaited}")? }
            }
        }
        Ok(())
    }
}

/// Returns a time with a unit.
fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// Returns `text` as a string of JSON.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(call: &str, runs: u64, total: u64, waits: &[(u32, u64)]) -> Row {
        let most = total / runs.max(1);
        Row {
            call: call.into(),
            runs,
            most,
            total,
            waits: waits.to_vec(),
            messages: runs,
            bytes: 8 * runs,
            predicted: (runs == 2).then_some(30.0),
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        for row in [row("a fence at \"x y\":3", 2, 41, &[(3, 7), (1, 2)]), row("", 0, 0, &[])] {
            assert_eq!(row.to_string().parse(), Ok(row));
        }
        for wrong in ["", "1 2 3", "1 2 3 4 5 - 3 x", "1 2 3 4 5 ? 3:4 x", "1 2 3 4 5 NaN 3:4 x"] {
            assert_eq!(wrong.parse::<Row>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn ranks_are_compared_by_their_mean_runs() {
        let rows = [
            (0, vec![row("a", 2, 100, &[(1, 40)]), row("c", 1, 5, &[])]),
            (2, vec![row("a", 2, 60, &[]), row("b", 4, 400, &[(0, 90), (3, 91)])]),
        ];
        let profile = Profile::of(4, 1000, rows);
        assert_eq!(profile.missing, [1, 3]);
        assert_eq!(profile.calls.iter().map(|call| &*call.call).collect::<Vec<_>>(), ["b", "a", "c"]);
        let a = &profile.calls[1];
        assert_eq!((a.least, a.mean, a.most, a.slowest), ((30.0, 2), 40.0, (50.0, 0), (50, 0)));
        assert_eq!((a.waited, a.longest, a.messages, a.bytes), (40, Some((40, 0, 1)), 4, 32));
        assert_eq!((a.predicted, profile.calls[0].predicted), (Some(15.0), None));
        assert_eq!(profile.calls[0].longest, Some((91, 2, 3)));
        let text = profile.to_string();
        assert!(text.contains("runs 2: 30 ns (rank 2), 40 ns, 50 ns (rank 0)"), "{text}");
        assert!(
            text.contains("25 percent of the time are waits, at most 40 ns of rank 0 for rank 1"),
            "{text}"
        );
        assert!(text.contains("without ranks 1, 3, which have failed, or sent no records in time"), "{text}");
    }
}
