//! Traces of ranks as one picture, in the trace-event format that Perfetto, `chrome://tracing` and
//! speedscope open: a rank is a process, calls and waits are slices, and frames are arrows.
//!
//! **Source** Google, Trace Event Format, 2016.

use crate::files;
use fencepost_planner::trace::{Clock, Event, Frame, Trace, What, of_file_name};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::Path;

/// The longest file of a rank's trace.
const FILE_MAX: u64 = 256 << 20;

/// The traces of one run, in the order of ranks.
pub struct OfRun {
    /// The number of the run among the runs of its program.
    pub number: u32,
    /// The traces of the ranks that have one.
    pub ranks: Vec<Trace>,
}

/// Reads the traces in a folder: of all runs of the program, or of one run if `run` is given. If
/// `partial`, ranks may lack a trace.
///
/// # Errors
/// If a file is not a trace or is cut off, if traces are of different runs, or if traces of ranks
/// are missing. The error names the file or the folder, and the reason.
pub fn read(folder: &Path, run: Option<u32>, partial: bool) -> Result<Vec<OfRun>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", folder.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|error| wrong(&error))? {
        let path = entry.map_err(|error| wrong(&error))?.path();
        if let Some(number) = path.file_name().and_then(|name| of_file_name(name.to_str()?))
            && run.is_none_or(|run| run == number.0)
        {
            files.insert(number, path);
        }
    }
    let Some(&(first, _)) = files.keys().next() else {
        return Err(wrong(&match run {
            Some(run) => format!("there is no trace of run {run} of a program"),
            None => "there are no traces: run a program with FENCEPOST_TRACE set to this folder".into(),
        }));
    };
    let mut runs: Vec<OfRun> = vec![OfRun { number: first, ranks: Vec::new() }];
    for ((number, rank), path) in &files {
        let trace = of_rank(path)?;
        if (trace.number, trace.rank) != (*number, *rank) {
            return Err(format!(
                "{}: this is the trace of rank {} in run {}: give it back its name",
                path.display(),
                trace.rank,
                trace.number
            ));
        }
        let met = runs.iter().flat_map(|run| &run.ranks).next();
        if let Some(other) = met.filter(|other| other.run != trace.run) {
            return Err(wrong(&format!(
                "the traces are of two executions of a program: {} is not of that of rank {} in run {}; empty the folder, and run the program again",
                path.display(),
                other.rank,
                other.number
            )));
        }
        if runs.last().is_none_or(|last| last.number != *number) {
            runs.push(OfRun { number: *number, ranks: Vec::new() });
        }
        runs.last_mut().expect("there is a run").ranks.push(trace);
    }
    runs.iter_mut().try_for_each(|run| run.complete(partial)).map_err(|why| wrong(&why))?;
    Ok(runs)
}

/// Reads the trace of a rank. The trace must contain all frames that the rank has posted.
fn of_rank(path: &Path) -> Result<Trace, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = files::text_of(path, FILE_MAX)?;
    let trace: Trace = text.parse().map_err(|error: fencepost_planner::Error| wrong(&error.message()))?;
    let posted = trace.events.iter().fold((0, 0_u64), |sum, event| match event.what {
        What::Sent { bytes, .. } => (sum.0 + 1, sum.1.saturating_add(bytes)),
        _ => sum,
    });
    if trace.lost == 0 && posted != trace.sent {
        let ((frames, bytes), (all, all_bytes)) = (posted, trace.sent);
        return Err(wrong(&format!(
            "there are {frames} frames with {bytes} bytes in it, and the rank posted {all} with {all_bytes}: the file was changed"
        )));
    }
    Ok(trace)
}

impl OfRun {
    /// Sorts the traces by rank, and checks that they belong to one run. Unless `partial`, no rank
    /// may be missing.
    fn complete(&mut self, partial: bool) -> Result<(), String> {
        self.ranks.sort_by_key(|trace| trace.rank);
        let known: Vec<u32> = self.ranks.iter().map(|trace| trace.rank).collect();
        let ranks = self.ranks[0].ranks;
        if let Some(other) = self.ranks.iter().find(|trace| trace.ranks != ranks) {
            let (first, number) = (&self.ranks[0], self.number);
            return Err(format!(
                "in run {number}, rank {} is of {ranks} ranks, and rank {} is of {}: empty the folder, and run the program again",
                first.rank, other.rank, other.ranks
            ));
        }
        let missing: Vec<u32> = (0..ranks).filter(|rank| known.binary_search(rank).is_err()).collect();
        match missing[..] {
            [first, ..] if !partial => Err(format!(
                "run {} has no trace of {} of {ranks} ranks, such as rank {first}: copy the files of all hosts to one folder, or leave out ranks that have died with --partial",
                self.number,
                missing.len()
            )),
            _ => Ok(()),
        }
    }

    /// Returns the events of all ranks.
    fn events(&self) -> impl Iterator<Item = (&Trace, &Event)> {
        self.ranks.iter().flat_map(|trace| trace.events.iter().map(move |event| (trace, event)))
    }

    /// Returns the frames with two known ends. The ends are the sender and the time of sending, and
    /// the receiver and the time of receipt. Each time is in ticks of the rank's own clock. Frames
    /// that cannot be distinguished are left out.
    fn frames(&self) -> Vec<[(usize, u64); 2]> {
        let places: HashMap<u32, usize> =
            self.ranks.iter().enumerate().map(|(place, trace)| (trace.rank, place)).collect();
        let mut ends: BTreeMap<(u32, u32, Frame), [Vec<u64>; 2]> = BTreeMap::new();
        for (trace, Event { at, what }) in self.events() {
            match *what {
                What::Sent { to, frame, .. } => {
                    ends.entry((trace.rank, to, frame)).or_default()[0].push(*at);
                }
                What::Received { from, frame } => {
                    ends.entry((from, trace.rank, frame)).or_default()[1].push(*at);
                }
                _ => {}
            }
        }
        let frame = |((from, to, _), ends): (&(u32, u32, Frame), &[Vec<u64>; 2])| match ends {
            [sent, received] if sent.len() == 1 && received.len() == 1 => {
                Some([(*places.get(from)?, sent[0]), (*places.get(to)?, received[0])])
            }
            _ => None,
        };
        ends.iter().filter_map(frame).collect()
    }
}

/// The numbers of ranks, calls, waits, frames and events in a picture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of calls.
    pub calls: u64,
    /// The number of waits.
    pub waits: u64,
    /// The number of frames with two known ends.
    pub frames: u64,
    /// The number of these frames that seem to arrive before they are sent, because clocks of hosts
    /// were compared too coarsely. The arrows of these frames have no length.
    pub early: u64,
    /// The number of events that are missing, because ranks overwrote them.
    pub lost: u64,
}

/// One element of the picture. Times are in microseconds.
#[derive(Serialize)]
struct Element<'t> {
    name: &'t str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'t str,
    ph: &'t str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<serde_json::Value>,
}

impl<'t> Element<'t> {
    fn new(name: &'t str, ph: &'t str, ts: f64, pid: u32) -> Self {
        Self { name, cat: "", ph, ts, dur: None, pid, tid: 0, id: None, bp: None, args: None }
    }
}

/// Writes traces as one picture.
///
/// # Errors
/// If a trace has no clock, or if writing to `to` fails.
pub fn write(runs: &[OfRun], to: &mut dyn Write) -> io::Result<Summary> {
    let mut summary = Summary::default();
    let clocks: Vec<BTreeMap<u32, Clock>> = clocks_of(runs);
    let clock_of = |run: usize, trace: &Trace| -> io::Result<&Clock> {
        clocks[run].get(&trace.host).ok_or_else(|| {
            io::Error::other(format!(
                "nothing relates the clock of rank {} to that of rank 0: the first rank of its host has no trace",
                trace.rank
            ))
        })
    };
    let mut start = f64::INFINITY;
    for (run, of_run) in runs.iter().enumerate() {
        for trace in &of_run.ranks {
            let clock = clock_of(run, trace)?;
            start = trace.events.iter().map(|event| clock.nanos(event.at)).fold(start, f64::min);
        }
    }
    let mut picture = Picture { to, is_first: true, start };
    picture.to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut named = BTreeSet::new();
    for trace in runs.iter().flat_map(|run| &run.ranks) {
        if named.insert(trace.rank) {
            let host =
                if trace.host_name.is_empty() { String::new() } else { format!(" on {}", trace.host_name) };
            let mut element = Element::new("process_name", "M", 0.0, trace.rank);
            element.args = Some(serde_json::json!({ "name": format!("rank {}{host}", trace.rank) }));
            picture.add(&element)?;
            let mut element = Element::new("process_sort_index", "M", 0.0, trace.rank);
            element.args = Some(serde_json::json!({ "sort_index": trace.rank }));
            picture.add(&element)?;
        }
    }
    summary.ranks = named.len();
    let mut flows = 0;
    for (run, of_run) in runs.iter().enumerate() {
        for trace in &of_run.ranks {
            summary.lost = summary.lost.saturating_add(trace.lost);
            let clock = clock_of(run, trace)?;
            trace.events.iter().try_for_each(|event| picture.event(trace, event, clock, &mut summary))?;
        }
        for [(from, sent), (to, received)] in of_run.frames() {
            let [from, to] = [from, to].map(|place| &of_run.ranks[place]);
            let at = clock_of(run, from)?.nanos(sent);
            let arrived = clock_of(run, to)?.nanos(received);
            flows += 1;
            summary.frames += 1;
            summary.early += u64::from(arrived < at);
            for (phase, at, rank) in [("s", at, from.rank), ("f", arrived.max(at), to.rank)] {
                let mut element = Element::new("frame", phase, picture.micros(at), rank);
                (element.cat, element.id) = ("frame", Some(flows));
                element.bp = (phase == "f").then_some("e");
                picture.add(&element)?;
            }
        }
    }
    picture.to.write_all(b"\n]}\n")?;
    picture.to.flush()?;
    Ok(summary)
}

/// Returns the clocks of the hosts of each run. All clocks count from the earliest time of any
/// clock.
fn clocks_of(runs: &[OfRun]) -> Vec<BTreeMap<u32, Clock>> {
    let of_run = |run: &OfRun| {
        let mut clocks = BTreeMap::new();
        for trace in &run.ranks {
            if let Some(clock) = Clock::of(&trace.clock) {
                clocks.entry(trace.host).or_insert(clock);
            }
        }
        clocks
    };
    let mut all: Vec<BTreeMap<u32, Clock>> = runs.iter().map(of_run).collect();
    let first = all.iter().flat_map(BTreeMap::values).map(Clock::first).min().unwrap_or(0);
    for (run, clocks) in runs.iter().zip(&mut all) {
        clocks.values_mut().for_each(|clock| clock.count_from(first));
        set_by_frames(run, clocks);
    }
    all
}

/// Sets clocks forward or back if frames between hosts show that the clocks are wrong. A frame
/// cannot arrive before it is sent.
fn set_by_frames(run: &OfRun, clocks: &mut BTreeMap<u32, Clock>) {
    // For each pair of hosts, the least time by which the clock of the second host must be set
    // forward.
    let mut behind: HashMap<(u32, u32), f64> = HashMap::new();
    for [(from, sent), (to, received)] in run.frames() {
        let [from, to] = [from, to].map(|place| run.ranks[place].host);
        if let (Some(theirs), Some(own)) = (clocks.get(&from), clocks.get(&to))
            && from != to
        {
            let most = behind.entry((from, to)).or_insert(f64::NEG_INFINITY);
            *most = most.max(theirs.nanos(sent) - own.nanos(received));
        }
    }
    let mut set: BTreeMap<u32, f64> = BTreeMap::new();
    for (&host, clock) in clocks {
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for (&other, by) in &set {
            least = least.max(behind.get(&(other, host)).map_or(f64::NEG_INFINITY, |behind| behind + by));
            most = most.min(behind.get(&(host, other)).map_or(f64::INFINITY, |behind| by - behind));
        }
        let by = if least > most { 0.0 } else { 0.0_f64.clamp(least, most) };
        clock.forward(by);
        set.insert(host, by);
    }
}

fn described(frame: Frame, bytes: Option<u64>) -> serde_json::Value {
    let Frame { world, port, number } = frame;
    match bytes {
        Some(bytes) => serde_json::json!({ "bytes": bytes, "world": world, "port": port, "number": number }),
        None => serde_json::json!({ "world": world, "port": port, "number": number }),
    }
}

struct Picture<'w> {
    to: &'w mut dyn Write,
    is_first: bool,
    /// The earliest time, in nanoseconds.
    start: f64,
}

impl Picture<'_> {
    fn micros(&self, nanos: f64) -> f64 {
        (nanos - self.start).max(0.0).round() / 1e3
    }

    fn event(
        &mut self,
        trace: &Trace,
        Event { at, what }: &Event,
        clock: &Clock,
        summary: &mut Summary,
    ) -> io::Result<()> {
        let (name, category, took, about) = match *what {
            What::Call { took, call } => {
                summary.calls += 1;
                (trace.calls.get(call as usize).cloned().unwrap_or_default(), "call", took, None)
            }
            What::Wait { took, rank } => {
                summary.waits += 1;
                let rank = rank.map_or("any rank".into(), |rank| format!("rank {rank}"));
                (format!("wait for {rank}"), "wait", took, None)
            }
            What::Sent { to, frame, bytes } => {
                (format!("send to rank {to}"), "frame", 0, Some(described(frame, Some(bytes))))
            }
            What::Received { from, frame } => {
                (format!("from rank {from}"), "frame", 0, Some(described(frame, None)))
            }
        };
        let [begin, end] =
            [*at, at.wrapping_add(took)].map(|ticks| (clock.nanos(ticks) - self.start).max(0.0).round());
        let mut element = Element::new(&name, "X", begin / 1e3, trace.rank);
        element.cat = category;
        // A frame is drawn a nanosecond wide, so that it can be selected.
        element.dur = Some(if about.is_some() { 1.0 } else { (end - begin).max(0.0) } / 1e3);
        element.args = about;
        self.add(&element)
    }

    fn add(&mut self, element: &Element<'_>) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.to.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.to, element)?;
        Ok(())
    }
}
