//! Traces of ranks as one picture, in the trace-event format that Perfetto, `chrome://tracing` and
//! speedscope open: a rank is a process, calls and waits are slices, and frames are arrows.
//!
//! **Source** Google, Trace Event Format, 2016.

use crate::files;
use fencepost_planner::trace::{Clock, Event, Frame, Trace, What};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

/// The longest file of a rank's trace.
const FILE_MAX: u64 = 256 << 20;

/// The traces of one run, in the order of ranks.
pub struct OfRun {
    /// The number of the run among those of its program.
    pub number: u32,
    /// The trace of each rank that there is.
    pub ranks: Vec<Trace>,
}

/// Reads the traces in a folder, or those of one run of its program. If ranks may be `partial`,
/// those of which there is no trace are left out.
///
/// # Errors
/// Names the file, and states what is wrong with it: one that is no trace or cut off, ranks of
/// different runs, ranks that are missing.
pub fn read(folder: &Path, run: Option<u32>, partial: bool) -> Result<Vec<OfRun>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", folder.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|error| wrong(&error))? {
        let path = entry.map_err(|error| wrong(&error))?.path();
        if let Some(number) = number_of(&path)
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
    let mut runs = vec![OfRun { number: first, ranks: Vec::new() }];
    for ((number, _), path) in &files {
        let text = files::text_of(path, FILE_MAX)?;
        let trace: Trace = text
            .parse()
            .map_err(|error: fencepost_planner::Error| format!("{}: {}", path.display(), error.message()))?;
        let posted = trace.events.iter().fold((0, 0), |sum, event| match event.what {
            What::Sent { bytes, .. } => (sum.0 + 1, sum.1 + bytes),
            _ => sum,
        });
        if trace.lost == 0 && posted != trace.sent {
            let ((frames, bytes), (all, all_bytes)) = (posted, trace.sent);
            return Err(format!(
                "{}: there are {frames} frames with {bytes} bytes in it, and the rank posted {all} with {all_bytes}: the file was changed",
                path.display()
            ));
        }
        if runs.last().is_none_or(|last| last.number != *number) {
            runs.push(OfRun { number: *number, ranks: Vec::new() });
        }
        let ranks = &mut runs.last_mut().expect("there is a run").ranks;
        if let Some(other) =
            ranks.first().filter(|other| (other.run, other.ranks) != (trace.run, trace.ranks))
        {
            return Err(wrong(&format!(
                "the traces are of two runs: {} is not of the run of rank {}; empty the folder, and run the program again",
                path.display(),
                other.rank
            )));
        }
        ranks.push(trace);
    }
    for run in &mut runs {
        run.ranks.sort_by_key(|trace| trace.rank);
        let known: Vec<u32> = run.ranks.iter().map(|trace| trace.rank).collect();
        if let Some(twice) = known.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(&format!("there are two traces of rank {} in run {}", twice[0], run.number)));
        }
        let ranks = run.ranks[0].ranks;
        let missing: Vec<u32> = (0..ranks).filter(|rank| known.binary_search(rank).is_err()).collect();
        if let [first, ..] = missing[..]
            && !partial
        {
            return Err(wrong(&format!(
                "run {} has no trace of {} of {ranks} ranks, such as rank {first}: copy the files of all hosts to one folder, or leave these ranks out with --partial",
                run.number,
                missing.len()
            )));
        }
    }
    Ok(runs)
}

/// Returns the run and the rank in the name of a file, if it is one of a trace.
fn number_of(path: &Path) -> Option<(u32, u32)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".trace")?;
    let (run, rank) = name.strip_prefix("run")?.split_once("-rank")?;
    Some((run.parse().ok()?, rank.parse().ok()?))
}

/// What a picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of calls.
    pub calls: u64,
    /// The number of waits.
    pub waits: u64,
    /// The number of frames of which both ends are known.
    pub frames: u64,
    /// The number of those that ended before they began, since clocks of hosts were compared too
    /// coarsely. The picture has them end when they began.
    pub early: u64,
    /// The number of events that ranks had written over.
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

/// The width of a frame at either end, so that it can be selected: a nanosecond.
const WIDTH: f64 = 0.001;

/// Writes traces as one picture.
///
/// # Errors
/// A trace without a clock, or an error of `to`.
pub fn write(runs: &[OfRun], to: &mut dyn Write) -> io::Result<Summary> {
    let mut summary = Summary::default();
    let mut picture = Picture { to, is_first: true, start: f64::INFINITY };
    picture.to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let mut named = 0;
    for run in runs {
        summary.ranks = summary.ranks.max(run.ranks.len());
        for trace in run.ranks.iter().filter(|trace| trace.rank >= named) {
            let host =
                if trace.host_name.is_empty() { String::new() } else { format!(" on {}", trace.host_name) };
            let name = format!("rank {}{host}", trace.rank);
            let mut element = Element::new("process_name", "M", 0.0, trace.rank);
            element.args = Some(serde_json::json!({ "name": name }));
            picture.add(&element)?;
            let mut element = Element::new("process_sort_index", "M", 0.0, trace.rank);
            element.args = Some(serde_json::json!({ "sort_index": trace.rank }));
            picture.add(&element)?;
        }
        named = named.max(run.ranks.last().map_or(0, |trace| trace.rank + 1));
    }
    let clocks: Vec<BTreeMap<u32, Clock>> = runs.iter().map(clocks_of).collect();
    let clock_of = |run: usize, trace: &Trace| -> io::Result<&Clock> {
        clocks[run].get(&trace.host).ok_or_else(|| {
            io::Error::other(format!(
                "nothing relates the clock of rank {} to that of rank 0: the first rank of its host has no trace",
                trace.rank
            ))
        })
    };
    for (run, of_run) in runs.iter().enumerate() {
        for trace in &of_run.ranks {
            let clock = clock_of(run, trace)?;
            let began = trace.events.iter().map(|event| clock.nanos(event.at));
            picture.start = began.fold(picture.start, f64::min);
        }
    }
    let mut flows = 0;
    for (run, of_run) in runs.iter().enumerate() {
        // When each frame was sent, until its other end is found.
        let mut sent: HashMap<(u32, u32, Frame), f64> = HashMap::new();
        let mut received: HashMap<(u32, u32, Frame), f64> = HashMap::new();
        for trace in &of_run.ranks {
            let clock = clock_of(run, trace)?;
            summary.lost += trace.lost;
            for Event { at, what } in &trace.events {
                let at = clock.nanos(*at);
                match *what {
                    What::Call { took, call } => {
                        summary.calls += 1;
                        let name = trace.calls.get(call as usize).map_or("?", String::as_str);
                        picture.slice(name, "call", at, clock.span(took), trace.rank, None)?;
                    }
                    What::Wait { took, rank } => {
                        summary.waits += 1;
                        let name = format!("wait for rank {rank}");
                        picture.slice(&name, "wait", at, clock.span(took), trace.rank, None)?;
                    }
                    What::Sent { to, frame, bytes } => {
                        sent.insert((trace.rank, to, frame), at);
                        let name = format!("send to rank {to}");
                        let about = described(frame, Some(bytes));
                        picture.slice(&name, "frame", at, 0.0, trace.rank, Some(about))?;
                    }
                    What::Received { from, frame } => {
                        received.insert((from, trace.rank, frame), at);
                        let name = format!("from rank {from}");
                        picture.slice(&name, "frame", at, 0.0, trace.rank, Some(described(frame, None)))?;
                    }
                }
            }
        }
        let mut both: Vec<_> =
            sent.iter().filter_map(|(frame, at)| Some((*at, *received.get(frame)?, frame))).collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(b.2)));
        for (at, arrived, (from, to, _)) in both {
            flows += 1;
            summary.frames += 1;
            summary.early += u64::from(arrived < at);
            for (phase, at, rank) in [("s", at, *from), ("f", arrived.max(at), *to)] {
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

/// Returns the clocks of the hosts of a run. Where frames between hosts show that a clock is wrong,
/// because they would end before they begin, it is set so that they do not.
fn clocks_of(run: &OfRun) -> BTreeMap<u32, Clock> {
    let mut clocks = BTreeMap::new();
    for trace in &run.ranks {
        if let Some(clock) = Clock::of(&trace.clock) {
            clocks.entry(trace.host).or_insert(clock);
        }
    }
    let hosts: HashMap<u32, u32> = run.ranks.iter().map(|trace| (trace.rank, trace.host)).collect();
    let mut sent: HashMap<(u32, u32, Frame), u64> = HashMap::new();
    for (trace, Event { at, what }) in events(run) {
        if let What::Sent { to, frame, .. } = *what
            && hosts.get(&to).is_some_and(|host| *host != trace.host)
        {
            sent.insert((trace.rank, to, frame), *at);
        }
    }
    // For each pair of hosts, by how much the second one's clock has to be set forward at least.
    let mut behind: HashMap<(u32, u32), f64> = HashMap::new();
    for (trace, Event { at, what }) in events(run) {
        if let What::Received { from, frame } = *what
            && let Some(began) = sent.get(&(from, trace.rank, frame))
            && let (Some(theirs), Some(own)) = (clocks.get(&hosts[&from]), clocks.get(&trace.host))
        {
            let by = theirs.nanos(*began) - own.nanos(*at);
            let most = behind.entry((hosts[&from], trace.host)).or_insert(f64::NEG_INFINITY);
            *most = most.max(by);
        }
    }
    let mut set: BTreeMap<u32, f64> = BTreeMap::new();
    for (&host, clock) in &mut clocks {
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for (&other, by) in &set {
            least = least.max(behind.get(&(other, host)).map_or(f64::NEG_INFINITY, |behind| behind + by));
            most = most.min(behind.get(&(host, other)).map_or(f64::INFINITY, |behind| by - behind));
        }
        let by = if least > most { 0.0 } else { 0.0_f64.clamp(least, most) };
        clock.forward(by);
        set.insert(host, by);
    }
    clocks
}

/// Returns the events of all ranks of a run.
fn events(run: &OfRun) -> impl Iterator<Item = (&Trace, &Event)> {
    run.ranks.iter().flat_map(|trace| trace.events.iter().map(move |event| (trace, event)))
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

    fn slice(
        &mut self,
        name: &str,
        category: &str,
        at: f64,
        took: f64,
        rank: u32,
        about: Option<serde_json::Value>,
    ) -> io::Result<()> {
        let (begin, end) = (self.micros(at), self.micros(at + took));
        let mut element = Element::new(name, "X", begin, rank);
        element.cat = category;
        element.dur = Some(if about.is_some() { WIDTH } else { ((end - begin) * 1e3).round() / 1e3 });
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
