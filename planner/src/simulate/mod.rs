//! [`simulate`]: the time that many steps of a superstep take on all ranks, with uneven work and
//! noise.
//!
//! Each rank executes its program on a clock of its own. To send a frame, a rank is busy for the
//! overhead `o`, or for `g` if the frame shares a packet with the frame before it. The frame then
//! occupies the rank's link for `G` a byte, after earlier frames, and arrives after the latency
//! `L`. The receiver waits for the arrival and is also busy for `o` or `g`, plus the time for the
//! first lines of a long payload. All times are whole nanoseconds, so that a sum does not depend on
//! the order of its terms.
//!
//! There is no event queue. Steps are simulated one by one, because no rank needs anything from a
//! later step. Within a step, each rank runs until it waits for a frame that has not been sent. The
//! waiting ranks are then visited again, until all have finished. A halo exchange takes two passes
//! over the ranks. Once one or two successive steps move all times by the same amount, the rest is
//! extrapolated.
//!
//! **Source** A. Alexandrov et al., SPAA 1995 (LogGP). T. Hoefler, T. Schneider and A. Lumsdaine,
//! HPDC 2010, for simulating whole applications in this model. Unlike in that work, programs are
//! verified, so the order of frames between two ranks is known, and no queue is needed.

mod goal;
mod path;

pub use goal::goal;

use crate::error::{Error, ErrorClass, Result};
use crate::explain::{machine_of, moving};
use crate::ids::{ClassId, Delta, Id};
use crate::ir::schedule::{Frame, Instruction, Placement, Program, Schedule};
use crate::machine::{Link, Machine, Moving, SHORT};
use crate::packets::Packets;
use crate::table::Table;
use crate::trace::{self, What};
use std::collections::{HashMap, VecDeque};

/// Marks a frame that has not been sent yet, in place of the time of its arrival.
const NOT_SENT: u64 = u64::MAX;

/// The input of a simulation. Each step consists of work, followed by the epochs of a superstep.
pub struct Run<'r> {
    /// The number of steps.
    pub steps: u64,
    /// The work of a rank in each step, in nanoseconds.
    pub work: &'r dyn Fn(u32) -> u64,
    /// The largest random delay of a rank in one step, as a fraction of its work.
    pub noise: f64,
    /// The seed of the noise; equal seeds give equal runs.
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// The time at which the last rank ends, in nanoseconds.
    pub end: u64,
    /// The rank that ends last.
    pub last: u32,
    /// The number of steps that were followed one by one. The other steps repeat the last of the
    /// followed steps.
    pub followed: u64,
    /// The waits of each rank.
    pub waits: Vec<Waits>,
    /// The critical path through the last steps of the run.
    pub path: Path,
}

/// The waits of a rank in the steps that were followed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Waits {
    /// The time that the rank waits, in nanoseconds.
    pub total: u64,
    /// The longest wait.
    pub longest: u64,
    /// The rank that is awaited in the longest wait.
    pub awaited: u32,
    /// The step of the longest wait.
    pub step: u64,
    /// The epoch of the longest wait, within the step.
    pub epoch: u32,
}

/// The critical path of a run: the work and the frames that determine when it ends. The counts are
/// derivatives: while the path stays the same, 1 ns more of latency delays the end by `latencies`
/// ns, and likewise for overheads and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Path {
    /// The number of steps that the path covers, up to the end of the run.
    pub steps: u64,
    /// Work, in nanoseconds.
    pub work: u64,
    /// Packing, unpacking and copying, in nanoseconds.
    pub moving: u64,
    /// Overheads of frames, in nanoseconds, by kind of link: in shared memory, and between hosts.
    pub overhead: [u64; 2],
    /// The time for bytes on the wire, in nanoseconds, by kind of link.
    pub wire: [u64; 2],
    /// Latencies, in nanoseconds, by kind of link.
    pub latency: [u64; 2],
    /// The number of latencies, by kind of link.
    pub latencies: [u64; 2],
    /// The number of overheads, by kind of link.
    pub overheads: [u64; 2],
    /// The bytes on the wire, by kind of link.
    pub bytes: [u64; 2],
}

/// What a rank does next.
#[derive(Clone, Copy)]
enum Event {
    /// Moves elements.
    Move(u64),
    /// Sends a frame to a rank. `is_further` is set if the frame shares a packet with the frame
    /// before it.
    Send { to: Delta, bytes: u64, is_further: bool },
    /// Waits for the next frame of a rank. `number` counts the frames of that rank in the epoch.
    Await { from: Delta, number: u32, is_long: bool, is_further: bool },
    /// Releases the last frame that came from a rank, so that this sender may write its buffer
    /// again.
    Release { from: Delta, number: u32 },
    /// Waits until the frames that this buffer sent `copies` runs ago have been released.
    Reclaim { buffer: u32, copies: u32 },
}

/// The frames that a program sends to each rank, by their numbers.
type Sends = HashMap<Delta, Vec<u32>>;

/// The programs of an epoch as events, and tables that number the frames.
struct Epoch<'s> {
    schedule: &'s Schedule,
    events: Table<ClassId, Vec<Event>>,
    /// The frames that each class sends, by receiver, in the order in which it sends them.
    sends: Table<ClassId, Sends>,
    /// The frames that each class sends from each buffer.
    buffers: Table<ClassId, Vec<Vec<u32>>>,
    /// The number of the first frame that each rank sends. Frames are numbered across all ranks.
    first: Vec<u32>,
    /// The numbers of the frames that ranks await, rank by rank, and in program order for each
    /// rank. Those of rank `r` begin at `awaited_from[r]`.
    awaited: Vec<u32>,
    awaited_from: Vec<u32>,
    /// Whether any rank waits for releases.
    reclaims: bool,
}

/// The costs of a kind of link, in whole nanoseconds except for the costs of bytes.
#[derive(Clone, Copy)]
struct Costs {
    overhead: u64,
    further: u64,
    payload: u64,
    latency: u64,
    per_byte: f64,
}

impl Costs {
    fn of(link: &Link) -> Self {
        let Link { latency, overhead, further, payload, per_byte } = *link;
        let whole = |time: f64| time.round() as u64;
        let [overhead, further, payload, latency] = [overhead, further, payload, latency].map(whole);
        Self { overhead, further, payload, latency, per_byte }
    }

    /// Returns how long a rank is busy with a frame.
    fn frame(&self, is_further: bool, is_long: bool) -> u64 {
        let overhead = if is_further { self.further } else { self.overhead };
        overhead + if is_long { self.payload } else { 0 }
    }

    fn wire(&self, bytes: u64) -> u64 {
        (self.per_byte * bytes as f64).round() as u64
    }
}

impl<'s> Epoch<'s> {
    fn new(schedule: &'s Schedule, machine: &Machine) -> Self {
        let (mut events, mut sends, mut buffers) = (Table::new(), Table::new(), Table::new());
        for program in schedule.classes.values() {
            let (all, sent, lent) = self::events(program, machine);
            events.push(all);
            sends.push(sent);
            buffers.push(lent);
        }
        let frames: Table<ClassId, u32> =
            sends.values().map(|sends: &Sends| sends.values().map(|list| list.len() as u32).sum()).collect();
        let mut total = 0;
        let first = schedule.class_of.iter().map(|class| {
            total += frames[*class];
            total - frames[*class]
        });
        let first: Vec<u32> = first.collect();
        let reclaims = events.values().flatten().any(|event: &Event| matches!(event, Event::Reclaim { .. }));
        let (mut awaited, mut awaited_from) = (Vec::new(), Vec::with_capacity(first.len()));
        // Ranks of the same two classes at the same distance exchange the same frames.
        let mut known: HashMap<(ClassId, ClassId, Delta, u32), u32> = HashMap::new();
        for (rank, class) in schedule.class_of.iter().enumerate() {
            awaited_from.push(awaited.len() as u32);
            for event in &events[*class] {
                if let Event::Await { from, number, .. } = event {
                    let peer = (rank as i64 + from.0) as usize;
                    let other = schedule.class_of[peer];
                    let frame = *known
                        .entry((*class, other, *from, *number))
                        .or_insert_with(|| sends[other][&from.back()][*number as usize]);
                    awaited.push(first[peer] + frame);
                }
            }
        }
        Self { schedule, events, sends, buffers, first, awaited, awaited_from, reclaims }
    }

    fn frames(&self) -> usize {
        let last = self
            .schedule
            .class_of
            .last()
            .map_or(0, |class| self.sends[*class].values().map(Vec::len).sum::<usize>());
        self.first.last().map_or(0, |first| *first as usize + last)
    }
}

/// Returns the events of a program, the frames that it sends to each rank, and the frames that it
/// sends from each buffer.
fn events(program: &Program, machine: &Machine) -> (Vec<Event>, Sends, Vec<Vec<u32>>) {
    let mut all = Vec::new();
    let (mut sends, mut taken): (Sends, HashMap<Delta, u32>) = Default::default();
    let mut buffers: Vec<Vec<u32>> = program.buffers.values().map(|_| Vec::new()).collect();
    let (mut count, mut sent, mut awaited) = (0, Packets::default(), Packets::default());
    let machine = &machine_of(program, machine);
    let mut send = |to: Delta, bytes, all: &mut Vec<Event>| {
        sends.entry(to).or_default().push(count);
        count += 1;
        let is_further = sent.add(to, bytes);
        all.push(Event::Send { to, bytes, is_further });
        count - 1
    };
    for instruction in &program.instructions {
        match instruction {
            Instruction::Expose { peer } | Instruction::Done { peer } => {
                send(*peer, 0, &mut all);
            }
            Instruction::Send { buffer, bytes, .. } => {
                let frame = send(program.buffers[*buffer].peer, *bytes, &mut all);
                buffers[buffer.index()].push(frame);
            }
            Instruction::Await { peer, frame } => {
                let number = taken.entry(*peer).or_default();
                let bytes = if let Frame::Data { bytes } = frame { *bytes } else { 0 };
                let (is_long, is_further) = (bytes > SHORT, awaited.add(*peer, bytes));
                all.push(Event::Await { from: *peer, number: *number, is_long, is_further });
                *number += 1;
            }
            Instruction::Release { peer } => {
                let number = taken.get(peer).copied().unwrap_or(1) - 1;
                all.push(Event::Release { from: *peer, number });
            }
            Instruction::Reclaim { buffer } => {
                let copies = program.buffers[*buffer].copies;
                all.push(Event::Reclaim { buffer: buffer.index() as u32, copies });
            }
            _ => {
                let time = moving(instruction, machine).0.round() as u64;
                match all.last_mut() {
                    Some(Event::Move(before)) => *before += time,
                    _ => all.push(Event::Move(time)),
                }
            }
        }
    }
    (all, sends, buffers)
}

/// The times of a rank in the run.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Clock {
    now: u64,
    /// The time from which the rank's link is free.
    free: u64,
}

/// All ranks, between two steps.
struct State {
    clocks: Vec<Clock>,
    waits: Vec<Waits>,
    /// For each epoch, the times at which frames were released in the last two runs.
    released: Vec<[Vec<u64>; 2]>,
}

/// Follows many steps of a superstep whose epochs have these schedules.
///
/// # Cost
/// Linear in ranks, in the frames of each rank, and in the steps that are followed. With noise, all
/// steps are followed. Without noise, steps are followed until one or two of them move all times by
/// the same amount. The path needs the state before each of the last 64 steps, or before fewer
/// steps if there are many ranks. Each state takes 16 bytes a rank, and 16 bytes a frame in epochs
/// that reclaim buffers.
///
/// # Errors
/// `ARG` for figures of more than a second, or a run of more than 36 years; `NO_MEM` for more than
/// 2^28 frames in an epoch; `PLAN` for buffers with more than two copies.
///
/// # Panics
/// Panics if a rank waits for a frame that is never sent, which is possible only if a schedule was
/// not verified.
#[track_caller]
pub fn simulate(schedules: &[&Schedule], machine: &Machine, run: &Run<'_>) -> Result<Simulation> {
    follow(schedules, machine, run, &mut None)
}

/// The most events of a simulation that is traced or written.
const EVENTS_MAX: u64 = 1 << 24;

/// Refuses a run with too many events to be traced or written.
fn refuse_many(schedules: &[&Schedule], run: &Run<'_>, what: &str) -> Result<()> {
    let instructions = |schedule: &&Schedule| -> u64 {
        schedule.class_of.iter().map(|class| schedule.classes[*class].instructions.len() as u64 + 2).sum()
    };
    let events = schedules.iter().map(instructions).sum::<u64>().saturating_mul(run.steps);
    if events <= EVENTS_MAX {
        return Ok(());
    }
    let message =
        format!("some {events} events: at most {EVENTS_MAX} are {what}; simulate fewer steps or ranks");
    Err(Error::new(ErrorClass::NoMem, message))
}

/// Follows all steps as [`simulate`] does, and also returns a trace of each rank, in nanoseconds.
/// In a trace, call 0 is the rank's work, and the next calls are the epochs, with the names in
/// `names`.
///
/// # Cost
/// Linear in ranks, frames and steps; some 60 bytes an event.
///
/// # Errors
/// As [`simulate`]; `NO_MEM` if there are more than 2^24 events.
///
/// # Panics
/// As [`simulate`].
#[track_caller]
pub fn traced(
    schedules: &[&Schedule],
    machine: &Machine,
    run: &Run<'_>,
    names: &[String],
) -> Result<(Simulation, Vec<trace::Trace>)> {
    refuse_many(schedules, run, "traced")?;
    let mut tracer = Some(Tracer::new(schedules, names));
    let simulation = follow(schedules, machine, run, &mut tracer)?;
    Ok((simulation, tracer.map(|tracer| tracer.traces).unwrap_or_default()))
}

/// The events of all ranks.
struct Tracer {
    traces: Vec<trace::Trace>,
    /// The numbers of frames that were sent and received so far, by sender and receiver.
    sent: HashMap<(u32, u32), u32>,
    received: HashMap<(u32, u32), u32>,
}

impl Tracer {
    fn new(schedules: &[&Schedule], names: &[String]) -> Self {
        let ranks = schedules.first().map_or(0, |schedule| schedule.class_of.len()) as u32;
        let of_rank = |rank: u32| trace::Trace {
            number: 1,
            rank,
            ranks,
            clock: vec![(0, 0)],
            calls: std::iter::once("work".to_owned()).chain(names.iter().cloned()).collect(),
            ..trace::Trace::default()
        };
        Self { traces: (0..ranks).map(of_rank).collect(), sent: HashMap::new(), received: HashMap::new() }
    }

    fn add(&mut self, rank: u32, at: u64, what: What) {
        self.traces[rank as usize].events.push(trace::Event { at, what });
    }

    fn frame(count: &mut HashMap<(u32, u32), u32>, from: u32, to: u32) -> trace::Frame {
        let number = count.entry((from, to)).or_default();
        *number += 1;
        trace::Frame { world: 0, port: 0, number: *number - 1 }
    }

    fn sent(&mut self, from: u32, to: u32, at: u64, bytes: u64) {
        let frame = Self::frame(&mut self.sent, from, to);
        self.add(from, at, What::Sent { to, frame, bytes });
        let sent = &mut self.traces[from as usize].sent;
        *sent = (sent.0 + 1, sent.1 + bytes);
    }

    fn received(&mut self, from: u32, to: u32, at: u64) {
        let frame = Self::frame(&mut self.received, from, to);
        self.add(to, at, What::Received { from, frame });
    }
}

fn follow(
    schedules: &[&Schedule],
    machine: &Machine,
    run: &Run<'_>,
    tracer: &mut Option<Tracer>,
) -> Result<Simulation> {
    refuse(schedules, machine, run)?;
    let epochs: Vec<Epoch<'_>> = schedules.iter().map(|schedule| Epoch::new(schedule, machine)).collect();
    let links = [Costs::of(&machine.shared), Costs::of(&machine.network)];
    let ranks = schedules.first().map_or(0, |schedule| schedule.class_of.len());
    let released = epochs.iter().map(|epoch| {
        let frames = if epoch.reclaims { epoch.frames() } else { 0 };
        [vec![0; frames], vec![0; frames]]
    });
    let released: Vec<[Vec<u64>; 2]> = released.collect();
    let kept = released.iter().map(|runs| 2 * runs[0].len()).sum::<usize>();
    let mut state =
        State { clocks: vec![Clock::default(); ranks], waits: vec![Waits::default(); ranks], released };
    let mut arrivals: Vec<Vec<u64>> = epochs.iter().map(|epoch| vec![NOT_SENT; epoch.frames()]).collect();
    let mut history =
        History { most: (CLOCKS_MAX / (ranks + kept).max(1)).clamp(1, PATH_STEPS), ..History::default() };
    let (mut step, mut skipped) = (0, 0);
    while step + skipped < run.steps {
        history.keep(step, &state);
        for (rank, clock) in state.clocks.iter_mut().enumerate() {
            let (took, rank) = (work(run, step, rank as u32), rank as u32);
            if let Some(tracer) = tracer {
                tracer.add(rank, clock.now, What::Call { took, call: 0 });
            }
            clock.now += took;
        }
        for (number, (epoch, arrivals)) in epochs.iter().zip(&mut arrivals).enumerate() {
            arrivals.fill(NOT_SENT);
            advance(epoch, &links, (step, number), arrivals, &mut state, tracer);
        }
        if state.clocks.iter().any(|clock| clock.now.max(clock.free) > TIME_MAX) {
            return Err(too_long());
        }
        step += 1;
        let is_open = run.noise == 0.0 && skipped == 0 && step > 3 && tracer.is_none();
        let found = (1..=2)
            .filter(|_| is_open)
            .find_map(|period| Some((period, history.moved(period, step, &state)?)));
        if let Some((period, moved)) = found {
            let times = (run.steps - step) / period;
            let more = times.checked_mul(moved).filter(|more| *more <= TIME_MAX).ok_or_else(too_long)?;
            skipped = times * period;
            for clock in &mut state.clocks {
                (clock.now, clock.free) = (clock.now + more, clock.free + more);
            }
            let released = state.released.iter_mut().flatten().flatten();
            released.filter(|time| **time > 0).for_each(|time| *time += more);
        }
    }
    let last = (0..ranks).rev().max_by_key(|&rank| state.clocks[rank].now).unwrap_or(0) as u32;
    let end = state.clocks.get(last as usize).map_or(0, |clock| clock.now);
    let path = match step.checked_sub(1) {
        Some(step) if ranks > 0 => path::critical(&epochs, links, run, &history, (step, last)),
        _ => Path::default(),
    };
    Ok(Simulation { end, last, followed: run.steps - skipped, waits: state.waits, path })
}

/// The longest run, in nanoseconds: 36 years. A single wait, overhead or step of work is at most a
/// thousandth of that.
const TIME_MAX: u64 = 1 << 60;
const PART_MAX: f64 = (TIME_MAX >> 10) as f64;

/// The most frames of an epoch.
const FRAMES_MAX: u64 = 1 << 28;

fn too_long() -> Error {
    Error::new(ErrorClass::Arg, "the steps take longer than 36 years: simulate fewer, or less work in each")
}

/// Refuses a run whose times could overflow, or that has too many frames or copies of a buffer.
fn refuse(schedules: &[&Schedule], machine: &Machine, run: &Run<'_>) -> Result<()> {
    let Machine { shared, network, moving, .. } = machine;
    let Moving { per_run, listed, pack, unpack, short, long, remote_run, remote, remote_rows } = *moving;
    let factor = 1.0_f64.max(short).max(long);
    let bytes = [pack, unpack, remote, remote_rows].map(|figure| figure * factor);
    let moving = [per_run, listed, short, long, remote_run].into_iter().chain(bytes);
    let of_link = |link: &Link| [link.latency, link.overhead, link.further, link.payload, link.per_byte];
    let figures = of_link(shared).into_iter().chain(of_link(network)).chain(moving);
    for figure in figures {
        if !(0.0..=1e9).contains(&figure) {
            let message =
                format!("a machine model with a figure of {figure} ns: at most a second is simulated");
            return Err(Error::new(ErrorClass::Arg, message));
        }
    }
    if !(0.0..=100.0).contains(&run.noise) {
        return Err(Error::new(
            ErrorClass::Arg,
            format!("noise of {} times the work: give 0 to 100", run.noise),
        ));
    }
    for schedule in schedules {
        let ranks = schedule.class_of.len() as u32;
        if (0..ranks).any(|rank| (run.work)(rank) as f64 * (1.0 + run.noise) > PART_MAX) {
            return Err(too_long());
        }
        let frames = |program: &Program| {
            let sends = |instruction: &&Instruction| {
                matches!(
                    instruction,
                    Instruction::Send { .. } | Instruction::Expose { .. } | Instruction::Done { .. }
                )
            };
            program.instructions.iter().filter(sends).count() as u64
        };
        let of_class: Table<ClassId, u64> = schedule.classes.values().map(frames).collect();
        let all: u64 = schedule.class_of.iter().map(|class| of_class[*class]).sum();
        if all > FRAMES_MAX {
            let message = format!("{all} frames in an epoch: at most {FRAMES_MAX} are simulated");
            return Err(Error::new(ErrorClass::NoMem, message));
        }
        let mut buffers = schedule.classes.values().flat_map(|program| program.buffers.values());
        if let Some(buffer) = buffers.find(|buffer| buffer.copies > 2) {
            let message = format!("a buffer with {} copies: at most two are simulated", buffer.copies);
            return Err(Error::new(ErrorClass::Plan, message));
        }
    }
    Ok(())
}

/// The most steps that a path covers, and the most clocks that are kept for the path.
const PATH_STEPS: usize = 64;
const CLOCKS_MAX: usize = 1 << 24;

/// The state of all ranks before each of the last steps.
#[derive(Default)]
struct History {
    /// The most steps that are kept.
    most: usize,
    /// The first step that is kept.
    first: u64,
    clocks: VecDeque<Vec<Clock>>,
    /// The release times of the last two runs before each step, by epoch.
    released: VecDeque<Vec<[Vec<u64>; 2]>>,
}

impl History {
    fn keep(&mut self, step: u64, state: &State) {
        if self.clocks.len() == self.most {
            self.clocks.pop_front();
            self.released.pop_front();
        }
        self.clocks.push_back(state.clocks.clone());
        self.released.push_back(state.released.clone());
        self.first = step + 1 - self.clocks.len() as u64;
    }

    /// Returns the time by which the whole state has moved in the last `period` steps up to `step`,
    /// or `None` if its parts have moved by different times. `period` is 1 or 2, since with two
    /// copies of a buffer only every other step may be the same.
    fn moved(&self, period: u64, step: u64, state: &State) -> Option<u64> {
        let at = self.clocks.len().checked_sub(period as usize)?;
        let (before, releases) = (&self.clocks[at], &self.released[at]);
        let moved = state.clocks.first()?.now - before.first()?.now;
        let left = |clock: &Clock| clock.free.saturating_sub(clock.now);
        let has_moved =
            |(now, before): (&Clock, &Clock)| now.now - before.now == moved && left(now) == left(before);
        // Release times are kept for two runs only: run `n` has the index `n % 2`.
        let run = |step: u64| (step % 2) as usize;
        let is_released_later = |(now, before): (&[Vec<u64>; 2], &[Vec<u64>; 2])| {
            (step..step + 2).all(|step| {
                // A frame that no rank releases, such as an entry, has the time 0.
                let mut times = now[run(step)].iter().zip(&before[run(step + period)]);
                times.all(|(&now, &before)| (now, before) == (0, 0) || now == before + moved)
            })
        };
        let is_steady = state.clocks.iter().zip(before).all(has_moved)
            && state.released.iter().zip(releases).all(is_released_later);
        is_steady.then_some(moved)
    }

    fn clock(&self, step: u64, rank: u32) -> Clock {
        self.clocks[(step - self.first) as usize][rank as usize]
    }
}

/// Returns the work of a rank in a step, with its noise.
fn work(run: &Run<'_>, step: u64, rank: u32) -> u64 {
    let work = (run.work)(rank);
    if run.noise == 0.0 {
        return work;
    }
    // SplitMix64 of the seed, the step and the rank.
    let mut bits = run.seed ^ (step << 32 | u64::from(rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let chance = (bits ^ (bits >> 31)) as f64 / u64::MAX as f64;
    work + (work as f64 * run.noise * chance).round() as u64
}

/// Follows one epoch of all ranks.
fn advance(
    epoch: &Epoch<'_>,
    links: &[Costs; 2],
    (step, number): (u64, usize),
    arrivals: &mut [u64],
    state: &mut State,
    tracer: &mut Option<Tracer>,
) {
    let schedule = epoch.schedule;
    let mut places = vec![(0_u32, 0_u32, 0_u32); schedule.class_of.len()]; // event, frames sent, frames awaited
    let mut left: Vec<u32> = (0..schedule.class_of.len() as u32).collect();
    let began = tracer.as_ref().map(|_| state.clocks.clone());
    while !left.is_empty() {
        let before = left.len();
        let mut has_moved = false;
        left.retain(|&rank| {
            let at = rank as usize;
            let events = &epoch.events[schedule.class_of[at]];
            let (mut event, mut sent, mut awaited) = places[at];
            let began = event;
            let mut clock = state.clocks[at];
            while let Some(next) = events.get(event as usize) {
                match *next {
                    Event::Move(time) => clock.now += time,
                    Event::Send { to, bytes, is_further } => {
                        let (link, _) = link_of(schedule.placement, links, rank, to);
                        let frame = (epoch.first[at] + sent) as usize;
                        if let Some(tracer) = tracer {
                            tracer.sent(rank, (i64::from(rank) + to.0) as u32, clock.now, bytes);
                        }
                        arrivals[frame] = send(&mut clock, link, to, bytes, is_further);
                        sent += 1;
                    }
                    Event::Await { from, is_long, is_further, .. } => {
                        let frame = epoch.awaited[(epoch.awaited_from[at] + awaited) as usize];
                        let arrival = arrivals[frame as usize];
                        if arrival == NOT_SENT {
                            break;
                        }
                        let (link, _) = link_of(schedule.placement, links, rank, from);
                        let peer = (i64::from(rank) + from.0) as u32;
                        if arrival > clock.now {
                            if let Some(tracer) = tracer {
                                let took = arrival - clock.now;
                                tracer.add(rank, clock.now, What::Wait { took, rank: Some(peer) });
                            }
                            let waits = &mut state.waits[at];
                            waits.total += arrival - clock.now;
                            if arrival - clock.now > waits.longest {
                                waits.longest = arrival - clock.now;
                                waits.awaited = peer;
                                (waits.step, waits.epoch) = (step, number as u32);
                            }
                            clock.now = arrival;
                        }
                        clock.now += link.frame(is_further, is_long);
                        awaited += 1;
                        if let Some(tracer) = tracer {
                            tracer.received(peer, rank, clock.now);
                        }
                    }
                    Event::Release { .. } if !epoch.reclaims => {}
                    Event::Release { from, number: of_rank } => {
                        let peer = (i64::from(rank) + from.0) as usize;
                        let frames = &epoch.sends[schedule.class_of[peer]][&from.back()];
                        let frame = epoch.first[peer] + frames[of_rank as usize];
                        let (link, _) = link_of(schedule.placement, links, rank, from);
                        state.released[number][(step % 2) as usize][frame as usize] =
                            clock.now + link.latency;
                    }
                    Event::Reclaim { buffer, copies } => {
                        if step >= u64::from(copies) {
                            let run = ((step - u64::from(copies)) % 2) as usize;
                            let frames = &epoch.buffers[schedule.class_of[at]][buffer as usize];
                            let released = &state.released[number][run];
                            let released =
                                frames.iter().map(|frame| released[(epoch.first[at] + frame) as usize]);
                            clock.now = released.fold(clock.now, u64::max);
                        }
                    }
                }
                event += 1;
            }
            has_moved |= event > began;
            places[at] = (event, sent, awaited);
            state.clocks[at] = clock;
            (event as usize) < events.len()
        });
        assert!(has_moved || left.len() < before, "a schedule that was not verified: ranks wait for ever");
    }
    if let (Some(tracer), Some(began)) = (tracer, began) {
        for (rank, (began, ended)) in (0..).zip(began.iter().zip(&state.clocks)) {
            let took = ended.now - began.now;
            tracer.add(rank, began.now, What::Call { took, call: 1 + number as u32 });
        }
    }
}

/// Sends a frame, and returns when it arrives.
fn send(clock: &mut Clock, link: &Costs, to: Delta, bytes: u64, is_further: bool) -> u64 {
    clock.now += link.frame(is_further, false);
    clock.free = clock.free.max(clock.now) + link.wire(bytes);
    clock.free + if to == Delta::SELF { 0 } else { link.latency }
}

/// Returns the costs of the link between a rank and another one, and the number of the link's kind.
fn link_of(placement: Placement, links: &[Costs; 2], rank: u32, to: Delta) -> (&Costs, usize) {
    let other = (i64::from(rank) + to.0) as u32;
    let kind = usize::from(!placement.share(rank, other));
    (&links[kind], kind)
}
