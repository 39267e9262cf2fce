//! [`Recording`]: the profile of a run, and its trace.
//!
//! While the program runs, each rank records its own calls, and nothing is sent. Afterwards each
//! rank posts its part of the profile to rank 0 and leaves. Rank 0 waits for these parts, but not
//! for a rank that waits for rank 0.
//!
//! # Clocks
//! The times of a trace are those of each host's clock. Rank 0 compares its clock with that of the
//! first rank of each other host, before the program and after it: in the quickest of 20 round
//! trips, the other rank read its clock in the middle.

use crate::protocol::stall::{Awaited, Watch};
use crate::protocol::state::recorder::{CALL, Recorder, SENT, WAIT};
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::environment;
use crate::state::world::{World, WorldCore};
use fencepost_planner::Result;
use fencepost_planner::explain::explain_rank;
use fencepost_planner::plan::{open_regular, replace};
use fencepost_planner::profile::{Profile, Row};
use fencepost_planner::trace::{Event, Frame as TracedFrame, Trace, What};
use fencepost_transport::{Channels, Count, Frame, Header, Liveness, Pause, Port, Topology, clock};
use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is done with the profile of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProfileTo {
    /// There is none.
    Nowhere,
    /// Rank 0 prints it on standard error.
    Printed,
    /// Rank 0 writes it to a file, as lines of JSON.
    File(PathBuf),
}

impl ProfileTo {
    /// Returns the value of the variable, if it is set.
    ///
    /// # Errors
    /// `ARG` for a value that is not text.
    pub(crate) fn given(name: &'static str) -> Result<Option<Self>> {
        Ok(environment::text(name)?.map(|text| match &*text {
            "off" | "" => Self::Nowhere,
            "on" => Self::Printed,
            file => Self::File(file.into()),
        }))
    }
}

/// The settings of what is recorded of a run.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) profile: ProfileTo,
    /// The folder for the traces of all ranks.
    pub(crate) trace: Option<PathBuf>,
    /// The number of the run among those of this process.
    pub(crate) number: u32,
}

impl Records {
    pub(crate) fn new(profile: ProfileTo, trace: Option<PathBuf>) -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        Self { profile, trace, number }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.profile != ProfileTo::Nowhere || self.trace.is_some()
    }
}

/// A run that is being recorded.
pub(crate) struct Recording<'r> {
    records: &'r Records,
    recorder: Rc<Recorder>,
    /// The identity of the run, which all ranks have in common.
    run: u64,
    /// Times of this rank, in ticks and in nanoseconds.
    began: (u64, u64),
    /// The same time in ticks and in nanoseconds of rank 0's clock, if this is the first rank of
    /// its host.
    aligned: Option<(u64, u64)>,
}

/// The time, in nanoseconds, from which on clocks may drift by more than a microsecond or two.
const LONG: u64 = 1_000_000_000;

/// The number of round trips by which clocks are compared.
const TRIPS: usize = 20;

impl<'r> Recording<'r> {
    /// Begins to record the run of a world, if that is requested.
    ///
    /// # Errors
    /// The error of the broadcast with which a trace begins.
    pub(crate) fn begin(world: &World, records: &'r Records) -> Result<Option<Self>> {
        if !records.is_any() {
            return Ok(None);
        }
        let core = world.core();
        let recorder = Rc::new(Recorder::new(records.trace.is_some()));
        let mut recording = Self { records, recorder, run: 0, began: clock::both(), aligned: None };
        if let Some(log) = recording.recorder.frames(0, (0..core.size as u32).collect()) {
            core.endpoint.borrow_mut().record(log);
            let mut run = [RandomState::new().build_hasher().finish()];
            world.broadcast_as("the beginning of a trace (FENCEPOST_TRACE)", &mut run)?;
            [recording.run] = run;
            recording.aligned = recording.align(core);
        }
        drop(core.reports.recorder.set(recording.recorder.clone()));
        Ok(Some(recording))
    }

    /// Ends the recording: sends what this rank has recorded to rank 0, which prints or writes the
    /// profile, and writes this rank's trace. Other ranks are waited for only if the program of
    /// this one `succeeded`.
    pub(crate) fn end(self, world: &World, succeeded: bool) {
        let core = world.core();
        let ended = clock::both();
        let per_tick = (ended.1 - self.began.1) as f64 / (ended.0.wrapping_sub(self.began.0)).max(1) as f64;
        if self.records.profile != ProfileTo::Nowhere {
            let rows = rows(core, &self.recorder, per_tick);
            match core.rank {
                0 => self.report(core, rows, ended.1 - self.began.1, succeeded),
                _ if succeeded => send(core, &rows),
                _ => {}
            }
        }
        let Some(folder) = &self.records.trace else { return };
        let last = if succeeded { self.align(core) } else { None };
        // In a short run, clocks drift less than a comparison is wrong by.
        let last = last.filter(|_| ended.1 - self.began.1 > LONG);
        // Without a second comparison, the clocks are taken to run equally fast.
        let extrapolated = self.aligned.map(|(ticks, nanos)| {
            let since = (ended.0.wrapping_sub(ticks)) as f64 * per_tick;
            (ended.0, nanos + since as u64)
        });
        let clock = self.aligned.into_iter().chain(last.or(extrapolated)).collect();
        let trace = self.trace(core, clock);
        let file = folder.join(format!("run{}-rank{}.trace", self.records.number, core.rank));
        let written = std::fs::create_dir_all(folder).and_then(|()| replace(&file, trace.as_bytes()));
        if let Err(error) = written {
            environment::print(&format!(
                "rank {} cannot write its trace to {}: {error}; set FENCEPOST_TRACE to a folder that can be written",
                core.rank,
                file.display()
            ));
        }
    }

    /// Compares the clock of rank 0 with those of the first ranks of other hosts. Returns a time of
    /// this rank's clock, and the same time of rank 0's, if this is the first rank of its host and
    /// the others take part.
    fn align(&self, core: &WorldCore) -> Option<(u64, u64)> {
        let first = |host: usize| {
            let endpoint = core.endpoint.borrow();
            (0..core.size).find(|&rank| endpoint.host(rank) == host).unwrap_or(0)
        };
        let host = |rank: usize| core.endpoint.borrow().host(rank);
        if core.rank != 0 {
            return if first(host(core.rank)) == core.rank { answer(core) } else { None };
        }
        let leaders: Vec<usize> =
            (1..core.size).filter(|&rank| host(rank) != host(0) && first(host(rank)) == rank).collect();
        for rank in leaders {
            let _: Option<()> = ask(core, rank);
        }
        Some(clock::both())
    }

    /// Prints or writes the profile, with the rows of the other ranks if there are any to come.
    fn report(&self, core: &WorldCore, own: Vec<Row>, took: u64, succeeded: bool) {
        let others = if succeeded { 1..core.size } else { 1..1 };
        let mut rows = vec![(0, own)];
        rows.extend(others.filter_map(|rank| Some((rank, received(core, rank)?))));
        let profile = Profile::of(core.size, took, rows);
        match &self.records.profile {
            ProfileTo::File(file) => {
                let lines = profile.json_lines(self.records.number);
                let written = match self.records.number {
                    1 => replace(file, lines.as_bytes()),
                    _ => open_regular(OpenOptions::new().create(true).append(true), file)
                        .and_then(|mut file| file.write_all(lines.as_bytes())),
                };
                if let Err(error) = written {
                    environment::print(&format!(
                        "the profile cannot be written to {}: {error}; set FENCEPOST_PROFILE, or call `Ranks::profile`, with a file that can be written",
                        file.display()
                    ));
                }
            }
            _ => environment::print(&profile.to_string()),
        }
    }

    /// Returns the text of this rank's trace.
    fn trace(&self, core: &WorldCore, clock: Vec<(u64, u64)>) -> String {
        let sent = total(core, &self.recorder);
        let ring = self.recorder.ring();
        let events = ring.into_iter().flat_map(|ring| ring.events()).map(|[at, head, third, fourth]| {
            let (kind, world, number) = ((head >> 56) as u8, (head >> 32) as u32 & 0xff_ffff, head as u32);
            let frame = TracedFrame { world, port: (third >> 32) as u32, number: third as u32 };
            let what = match kind {
                CALL => What::Call { took: third, call: number },
                WAIT => What::Wait { took: third, rank: number },
                SENT => What::Sent { to: number, frame, bytes: fourth },
                _ => What::Received { from: number, frame },
            };
            Event { at, what }
        });
        let trace = Trace {
            run: self.run,
            number: self.records.number,
            rank: core.rank as u32,
            ranks: core.size as u32,
            host: core.endpoint.borrow().host(core.rank) as u32,
            host_name: core.reach.host_of(core.rank).map(|name| name.to_string()).unwrap_or_default(),
            clock,
            sent: (sent.frames, sent.bytes),
            lost: ring.map_or(0, |ring| ring.lost()),
            calls: self.recorder.entries().iter().map(|entry| described(entry.name, entry.site)).collect(),
            events: events.collect(),
        };
        trace.to_string()
    }
}

/// Returns what this rank has posted in all worlds that had all ranks, or are gone.
fn total(core: &WorldCore, recorder: &Recorder) -> Count {
    let (own, parts) = (core.endpoint.borrow().meter().total(), recorder.of_parts());
    Count { frames: own.frames + parts.frames, bytes: own.bytes + parts.bytes }
}

fn described(name: Option<&'static str>, site: &'static std::panic::Location<'static>) -> String {
    Call { hash: 0, name, asserted: Assertions::NONE, arguments: None, site }.describe(&[])
}

/// Returns what this rank has recorded, by calls; last what it posted outside of them.
fn rows(core: &WorldCore, recorder: &Recorder, per_tick: f64) -> Vec<Row> {
    let nanos = |ticks: u64| (ticks as f64 * per_tick) as u64;
    let mut rows = Vec::new();
    let mut left = total(core, recorder);
    for entry in recorder.entries().iter() {
        left.frames = left.frames.saturating_sub(entry.sent.frames);
        left.bytes = left.bytes.saturating_sub(entry.sent.bytes);
        let prepared: u64 = entry.prepared.iter().map(|(_, runs)| runs).sum();
        let predicted = entry.prepared.iter().map(|(share, runs)| {
            explain_rank(share, share.rank(), &core.machine).terms.predicted().0 * *runs as f64
        });
        rows.push(Row {
            call: described(entry.name, entry.site),
            runs: entry.runs,
            least: if entry.runs > 0 { nanos(entry.least) } else { 0 },
            most: nanos(entry.most),
            total: nanos(entry.total),
            waits: entry.waits.iter().map(|(rank, ticks)| (*rank, nanos(*ticks))).collect(),
            messages: entry.sent.frames,
            bytes: entry.sent.bytes,
            predicted: (prepared == entry.runs && prepared > 0).then(|| predicted.sum()),
        });
    }
    if left.frames > 0 {
        let Count { frames: messages, bytes } = left;
        rows.push(Row { call: "other calls".into(), messages, bytes, ..Row::default() });
    }
    rows
}

/// Posts what this rank has recorded to rank 0.
fn send(core: &WorldCore, rows: &[Row]) {
    let bytes: Vec<u8> = rows.iter().flat_map(|row| format!("{row}\n").into_bytes()).collect();
    // SAFETY: the bytes are not moved or freed before the whole run is over.
    let posted =
        unsafe { core.endpoint.borrow_mut().post(0, Port::RECORDS, Frame::of(Header::default(), &bytes)) };
    core.registry.keep(bytes);
    drop(posted); // if rank 0 has left, it reports that this rank is missing
}

/// Returns what `rank` has recorded, unless it has left without sending that, or waits for rank 0.
fn received(core: &WorldCore, rank: usize) -> Option<Vec<Row>> {
    next(core, rank, |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(str::parse).collect::<Result<Vec<Row>, ()>>().ok()
    })
    .flatten()
}

/// Compares the clock of this rank, which is rank 0, with that of `rank`.
fn ask(core: &WorldCore, rank: usize) -> Option<()> {
    let mut quickest = (u64::MAX, 0, 0);
    for trip in 0..TRIPS {
        let before = clock::nanos();
        post(core, rank, trip as u64)?;
        next(core, rank, |_, _| ())?;
        let took = clock::nanos() - before;
        quickest = quickest.min((took, trip, before + took / 2));
    }
    let (_, trip, at) = quickest;
    post(core, rank, trip as u64)?;
    post(core, rank, at)
}

/// Answers rank 0. Returns a time of this rank, and the same time of rank 0.
fn answer(core: &WorldCore) -> Option<(u64, u64)> {
    let mut read = [0; TRIPS];
    for at in &mut read {
        next(core, 0, |_, _| ())?;
        *at = clock::ticks();
        post(core, 0, 0)?;
    }
    let trip = next(core, 0, |_, word| word)?;
    let at = next(core, 0, |_, word| word)?;
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

/// Waits for the next frame from `from`, and returns what `read` makes of its payload and its word.
/// Returns `None` if none comes because that rank has left, or waits for this one.
#[track_caller]
fn next<R>(core: &WorldCore, from: usize, read: impl FnOnce(&[u8], u64) -> R) -> Option<R> {
    let call = Call::named(0, "the end of a recorded run");
    let endpoint = &mut *core.endpoint.borrow_mut();
    let (mut pause, mut watch) =
        (Pause::new(), Watch::new(core, &call, &[], from, Awaited::One("records of the run")));
    loop {
        if let Some(frame) = endpoint.poll(from, Port::RECORDS).ok()? {
            // SAFETY: the payload is readable until it is released.
            let found = read(unsafe { frame.bytes() }, frame.header.word);
            endpoint.release(from, Port::RECORDS);
            return Some(found);
        }
        if watch.is_in_cycle() {
            return None;
        }
        endpoint.idle(&mut pause);
        let lasts = pause.lasts();
        if lasts {
            watch.woke(endpoint);
        }
        if pause.is_due(lasts) {
            core.notice(endpoint, None);
        }
        core.advance(endpoint);
        if lasts {
            watch.missed(endpoint);
        }
    }
}
