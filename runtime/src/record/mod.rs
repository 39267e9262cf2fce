//! [`Recording`]: the profile of a run, and its trace.
//!
//! While the program runs, each rank records its own calls, and nothing is sent. Afterwards each
//! rank posts its part of the profile to rank 0. Rank 0 waits for these parts, for at most ten
//! seconds or the duration of the program, whichever is longer. During that time rank 0 has not
//! left the world. If a rank waits for rank 0 in a call, the call fails only afterwards, and thus
//! later than without a recording. Each rank writes its files after it has left the world.
//!
//! # Clocks
//! The times of a trace are read from the clock of each host. Rank 0 compares its clock with that
//! of the first rank of each other host, before the program and after it. Rank 0 assumes that the
//! other rank read its clock in the middle of the quickest of 20 round trips.

use crate::protocol::state::recorder::{ANY, CALL, Entry, Recorder, SENT, WAIT};
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::environment;
use crate::state::world::{World, WorldCore};
use fencepost_planner::plan::{open_regular, replace};
use fencepost_planner::profile::{Profile, Row};
use fencepost_planner::trace::{Event, Frame as TracedFrame, Trace, What, file_name, of_file_name};
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Channels, Count, Frame, Header, Liveness, Pause, Port, Topology, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The destination of the profile of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProfileTo {
    /// There is no profile.
    Nowhere,
    /// Rank 0 prints the profile on standard error.
    Printed,
    /// Rank 0 writes the profile to a file, as lines of JSON.
    File(PathBuf),
}

impl ProfileTo {
    /// Returns the value of the environment variable `name`, if it is set.
    ///
    /// # Errors
    /// `ARG` if the value is not text. Also if it is a word such as `yes`, which is probably meant
    /// as `on` or `off` and not as the name of a file.
    pub(crate) fn given(name: &'static str) -> Result<Option<Self>> {
        let Some(text) = environment::text(name)? else { return Ok(None) };
        Ok(Some(match &*text {
            "off" | "" => Self::Nowhere,
            "on" => Self::Printed,
            "yes" | "true" | "1" | "no" | "false" | "0" => {
                let message =
                    format!("{name} is `{text}`: it may be on, off or the path of a file, such as ./{text}");
                return Err(Error::new(ErrorClass::Arg, message));
            }
            file => Self::File(file.into()),
        }))
    }
}

/// The settings of the recordings of a run.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) profile: ProfileTo,
    /// The folder for the traces of all ranks.
    pub(crate) trace: Option<PathBuf>,
}

/// Returns the number of the next run of this process, from 1.
pub(crate) fn next_run() -> u32 {
    static RUNS: AtomicU32 = AtomicU32::new(1);
    RUNS.fetch_add(1, Ordering::Relaxed) // it only has to differ from the numbers of other runs
}

/// A run that is being recorded.
pub(crate) struct Recording<'r> {
    records: &'r Records,
    recorder: Rc<Recorder>,
    /// A number that identifies this execution of the program. It is the same on all ranks.
    execution: u64,
    /// The number of the run among the runs of rank 0's process.
    number: u32,
    /// The time at which the recording began, by this rank's clock, in ticks and in nanoseconds.
    began: (u64, u64),
    /// The time of one moment, in ticks of this rank and in nanoseconds of rank 0's clock. `None`
    /// if the clocks were not compared.
    aligned: Option<(u64, u64)>,
}

/// The duration of a run, in nanoseconds, above which clocks may drift by more than a microsecond
/// or two.
const LONG: u64 = 1_000_000_000;

/// The number of round trips in a comparison of two clocks.
const TRIPS: usize = 20;

/// The minimum time limit of a wait for the records of another rank.
const PATIENCE: Duration = Duration::from_secs(10);

impl<'r> Recording<'r> {
    /// Begins to record a run of a world, if a recording is requested. `number` is the number of
    /// the run.
    ///
    /// # Errors
    /// The error of the collective call that begins a trace.
    #[track_caller]
    pub(crate) fn begin(world: &World, records: &'r Records, number: u32) -> Result<Option<Self>> {
        if records.profile == ProfileTo::Nowhere && records.trace.is_none() {
            return Ok(None);
        }
        let core = world.core();
        let recorder = Rc::new(Recorder::new(records.trace.is_some(), core.size));
        let (execution, began) = (0, clock::both());
        let mut recording = Self { records, recorder, execution, number, began, aligned: None };
        if let Some(folder) = &records.trace
            && let Some(log) = recording.recorder.frames(0, (0..core.size as u32).collect())
        {
            core.endpoint.borrow_mut().record(log);
            if is_first(core) && begins(folder) {
                remove_traces(folder);
            }
            // No rank writes its trace before all ranks have reached this call.
            let mut of_rank_0 = if core.rank == 0 { [identity(), u64::from(number)] } else { [0; 2] };
            world.begin_trace(&mut of_rank_0)?;
            (recording.execution, recording.number) = (of_rank_0[0], of_rank_0[1] as u32);
            recording.aligned = recording.align(core, Instant::now() + PATIENCE);
        }
        drop(core.reports.recorder.set(recording.recorder.clone()));
        Ok(Some(recording))
    }

    /// Ends the recording: each other rank sends its part of the profile to rank 0, which waits for
    /// the parts of all ranks. This rank sends its part, and waits for others, only if its program
    /// `succeeded`. Returns the records that must be written after this rank has left the world.
    pub(crate) fn end(self, world: &World, succeeded: bool) -> Recorded {
        let core = world.core();
        let ended = clock::both();
        let took = ended.1.saturating_sub(self.began.1);
        let per_tick = took as f64 / (ended.0.wrapping_sub(self.began.0)).max(1) as f64;
        let until = Instant::now() + PATIENCE.max(Duration::from_nanos(took));
        let mut profile = None;
        if self.records.profile != ProfileTo::Nowhere {
            let own = rows(core, &self.recorder, per_tick);
            if core.rank > 0 && succeeded {
                send(core, &own);
            } else if core.rank == 0 {
                let others = if succeeded { 1..core.size } else { 1..1 };
                let others = others.filter_map(|rank| Some((rank, received(core, rank, until)?)));
                let rows = std::iter::once((0, own)).chain(others);
                profile = Some(Profile { has_failed: !succeeded, ..Profile::of(core.size, took, rows) });
            }
        }
        let trace = self.records.trace.as_ref().map(|_| {
            let last = if succeeded { self.align(core, until) } else { None };
            // In a short run, the drift of clocks is smaller than the error of a comparison.
            let last = last.filter(|_| took > LONG);
            // Without a second comparison, the clocks are taken to run equally fast.
            let extrapolated = self.aligned.map(|(ticks, nanos)| {
                let since = (ended.0.wrapping_sub(ticks)) as f64 * per_tick;
                (ended.0, nanos + since as u64)
            });
            self.trace(core, self.aligned.into_iter().chain(last.or(extrapolated)).collect())
        });
        Recorded { records: self.records.clone(), number: self.number, profile, trace }
    }

    /// Compares the clock of rank 0 with those of the first ranks of other hosts. Returns the time
    /// of one moment by this rank's clock and by rank 0's clock. Returns `None` unless this rank is
    /// on the host of rank 0, or is the first rank of its host and the comparison succeeds.
    fn align(&self, core: &WorldCore, until: Instant) -> Option<(u64, u64)> {
        let host = |rank: usize| core.endpoint.borrow().host(rank);
        if core.rank == 0 {
            let mut hosts = BTreeSet::from([host(0)]);
            for rank in (1..core.size).filter(|&rank| hosts.insert(host(rank))) {
                let _: Option<()> = ask(core, rank, until);
            }
        } else if host(core.rank) != host(0) {
            return if is_first(core) { answer(core, until) } else { None };
        }
        Some(clock::both())
    }

    /// Returns this rank's trace.
    fn trace(&self, core: &WorldCore, clock: Vec<(u64, u64)>) -> Trace {
        let sent = total(core, &self.recorder);
        let ring = self.recorder.ring();
        let events = ring.into_iter().flat_map(|ring| ring.events()).map(|[at, head, third, fourth]| {
            let (kind, world, number) = ((head >> 56) as u8, (head >> 32) as u32 & 0xff_ffff, head as u32);
            let frame = TracedFrame { world, port: (third >> 32) as u32, number: third as u32 };
            let what = match kind {
                CALL => What::Call { took: third, call: number },
                WAIT => What::Wait { took: third, rank: (number != ANY).then_some(number) },
                SENT => What::Sent { to: number, frame, bytes: fourth },
                _ => What::Received { from: number, frame },
            };
            Event { at, what }
        });
        Trace {
            run: self.execution,
            number: self.number,
            rank: core.rank as u32,
            ranks: core.size as u32,
            host: core.endpoint.borrow().host(core.rank) as u32,
            host_name: core.reach.host_of(core.rank).map(|name| name.to_string()).unwrap_or_default(),
            clock,
            sent: (sent.frames, sent.bytes),
            lost: ring.map_or(0, |ring| ring.lost()),
            calls: self.recorder.entries().iter().map(|entry| call_of(entry).describe(&[])).collect(),
            events: events.collect(),
        }
    }
}

/// The records of a run.
pub(crate) struct Recorded {
    records: Records,
    number: u32,
    profile: Option<Profile>,
    trace: Option<Trace>,
}

impl Recorded {
    /// Prints or writes the profile, and writes the trace.
    pub(crate) fn write(&self) {
        if let Some(profile) = &self.profile {
            self.write_profile(profile);
        }
        if let (Some(trace), Some(folder)) = (&self.trace, &self.records.trace) {
            let file = folder.join(file_name(trace.number, trace.rank));
            let written =
                std::fs::create_dir_all(folder).and_then(|()| replace(&file, trace.to_string().as_bytes()));
            if let Err(error) = written {
                environment::print(&format!(
                    "rank {} cannot write its trace to {}: {error}; set FENCEPOST_TRACE to a folder that can be written to",
                    trace.rank,
                    file.display()
                ));
            }
        }
    }

    fn write_profile(&self, profile: &Profile) {
        let ProfileTo::File(file) = &self.records.profile else {
            return environment::print(&profile.to_string());
        };
        let lines = profile.json_lines(self.number);
        let written = if begins(file) {
            replace(file, lines.as_bytes())
        } else {
            open_regular(OpenOptions::new().create(true).append(true), file)
                .and_then(|mut file| file.write_all(lines.as_bytes()))
        };
        if let Err(error) = written {
            environment::print(&format!(
                "the profile cannot be written to {}: {error}; set FENCEPOST_PROFILE, or call `Ranks::profile`, with a file that can be written",
                file.display()
            ));
        }
    }
}

/// Returns whether this is the first call with this path in this process.
fn begins(path: &Path) -> bool {
    static NAMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf())
}

/// Returns a random number that identifies this process.
fn identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| RandomState::new().build_hasher().finish() | 1)
}

/// Returns whether this is the first rank of its host.
fn is_first(core: &WorldCore) -> bool {
    let endpoint = core.endpoint.borrow();
    (0..core.rank).all(|other| endpoint.host(other) != endpoint.host(core.rank))
}

/// Removes traces of earlier programs from a folder.
fn remove_traces(folder: &Path) {
    let is_trace = |path: &PathBuf| path.file_name().and_then(|name| of_file_name(name.to_str()?)).is_some();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(is_trace) {
        // A file that cannot be removed is refused when the traces are read.
        let _: std::io::Result<()> = std::fs::remove_file(path);
    }
}

/// Returns the counts of frames and bytes that this rank has posted in this world and in the worlds
/// that were split from it.
fn total(core: &WorldCore, recorder: &Recorder) -> Count {
    let gone = recorder.of_parts();
    let own = core.endpoint.borrow().meter().total();
    let parts = core.life.parts.borrow();
    let parts = parts.borrow();
    let parts =
        parts.iter().filter_map(std::rc::Weak::upgrade).map(|part| part.endpoint.borrow().meter().total());
    parts.chain([own, gone]).fold(Count::default(), |sum, one| Count {
        frames: sum.frames + one.frames,
        bytes: sum.bytes + one.bytes,
    })
}

/// Returns the call of an entry.
fn call_of(entry: &Entry) -> Call {
    let &Entry { name, site, .. } = entry;
    Call { hash: 0, name, asserted: Assertions::NONE, arguments: None, site }
}

/// Returns this rank's records, one row for each call. The last row counts the frames that were
/// posted outside calls.
fn rows(core: &WorldCore, recorder: &Recorder, per_tick: f64) -> Vec<Row> {
    let nanos = |ticks: u64| (ticks as f64 * per_tick) as u64;
    // Several entries may have the same line, for example those of the calls in a generic function.
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut left = total(core, recorder);
    for entry in recorder.entries().iter() {
        left.frames = left.frames.saturating_sub(entry.sent.frames);
        left.bytes = left.bytes.saturating_sub(entry.sent.bytes);
        let call = call_of(entry);
        let kept = entry.schedules.iter().map(|(share, runs)| core.predicted(share) * *runs as f64);
        let predicted = entry.predicted + kept.sum::<f64>();
        let text = call.describe(&[]);
        let row = rows.entry(text.clone()).or_insert_with(|| Row {
            call: text,
            predicted: call.is_superstep().then_some(0.0),
            ..Row::default()
        });
        row.runs += entry.runs;
        row.most = row.most.max(nanos(entry.most));
        row.total += nanos(entry.total);
        row.messages += entry.sent.frames;
        row.bytes += entry.sent.bytes;
        row.predicted = row.predicted.filter(|_| entry.prepared == entry.runs).map(|time| time + predicted);
        for (rank, ticks) in &entry.waits {
            match row.waits.iter_mut().find(|(known, _)| known == rank) {
                Some((_, time)) => *time += nanos(*ticks),
                None => row.waits.push((*rank, nanos(*ticks))),
            }
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    for row in &mut rows {
        row.predicted = row.predicted.filter(|_| row.runs > 0);
    }
    if left.frames > 0 {
        let Count { frames: messages, bytes } = left;
        rows.push(Row { call: "other calls".into(), messages, bytes, ..Row::default() });
    }
    rows
}

/// Posts the records of this rank to rank 0.
fn send(core: &WorldCore, rows: &[Row]) {
    let bytes: Vec<u8> = rows.iter().flat_map(|row| format!("{row}\n").into_bytes()).collect();
    let endpoint = &mut *core.endpoint.borrow_mut();
    // SAFETY: the bytes are not moved or freed before the whole run is over.
    let posted = unsafe { endpoint.post(0, Port::RECORDS, Frame::of(Header::default(), &bytes)) };
    endpoint.flush();
    core.registry.keep(bytes);
    drop(posted); // if rank 0 has left, it reports that this rank is missing
}

/// Returns the records of `rank`, or `None` if `rank` leaves without sending them, or sends them
/// too late.
fn received(core: &WorldCore, rank: usize, until: Instant) -> Option<Vec<Row>> {
    next(core, rank, until, |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(str::parse).collect::<Result<Vec<Row>, ()>>().ok()
    })
    .flatten()
}

/// Compares the clock of this rank, which is rank 0, with that of `rank`.
fn ask(core: &WorldCore, rank: usize, until: Instant) -> Option<()> {
    let mut quickest = (u64::MAX, 0, 0);
    for trip in 0..TRIPS {
        let before = clock::nanos();
        post(core, rank, trip as u64)?;
        next(core, rank, until, |_, _| ())?;
        let took = clock::nanos() - before;
        quickest = quickest.min((took, trip, before + took / 2));
    }
    let (_, trip, at) = quickest;
    post(core, rank, trip as u64)?;
    post(core, rank, at)
}

/// Answers the comparison of rank 0. Returns the time of one moment by this rank's clock and by
/// rank 0's clock.
fn answer(core: &WorldCore, until: Instant) -> Option<(u64, u64)> {
    let mut read = [0; TRIPS];
    for at in &mut read {
        next(core, 0, until, |_, _| ())?;
        *at = clock::ticks();
        post(core, 0, 0)?;
    }
    let trip = next(core, 0, until, |_, word| word)?;
    let at = next(core, 0, until, |_, word| word)?;
    Some((*read.get(trip as usize)?, at))
}

fn post(core: &WorldCore, to: usize, word: u64) -> Option<()> {
    let endpoint = &mut *core.endpoint.borrow_mut();
    let frame = Frame::bare(Header { word, ..Header::default() });
    // SAFETY: there is no payload.
    unsafe { endpoint.post(to, Port::RECORDS, frame) }.ok()?;
    endpoint.flush();
    Some(())
}

/// Waits for the next frame from `from`, and returns the result of `read` on the payload and the
/// word of the frame. Returns `None` if no frame comes before `until`, or if `from` leaves first.
fn next<R>(core: &WorldCore, from: usize, until: Instant, read: impl FnOnce(&[u8], u64) -> R) -> Option<R> {
    let endpoint = &mut *core.endpoint.borrow_mut();
    let mut pause = Pause::new();
    loop {
        if let Some(frame) = endpoint.poll(from, Port::RECORDS).ok()? {
            // SAFETY: the payload is readable until it is released.
            let found = read(unsafe { frame.bytes() }, frame.header.word);
            endpoint.release(from, Port::RECORDS);
            return Some(found);
        }
        endpoint.idle(&mut pause);
        let lasts = pause.lasts();
        if lasts && Instant::now() > until {
            return None;
        }
        if pause.is_due(lasts) {
            core.notice(endpoint, None);
        }
        core.advance(endpoint);
    }
}
