//! [`simulate`]: the time that many steps of a superstep take on all ranks, with uneven work and
//! noise.
//!
//! Each rank executes its program on a clock of its own. To send a frame, a rank is busy for the
//! overhead `o`. The frame then occupies the rank's link for `G` a byte, after earlier frames, and
//! arrives after the latency `L`. The receiver waits for the arrival and is busy for `o`, and for
//! frames with data also for the payload's cost. All times are whole nanoseconds, so that sums do
//! not depend on their order.
//!
//! There is no event queue. Steps are simulated one by one, because no rank needs anything from a
//! later step. Within a step, each rank runs until it waits for a frame that has not been sent.
//! The waiting ranks are then visited again, until all have finished: two passes for a halo. Once
//! two steps in a row advance all ranks by the same time, the other steps are extrapolated.
//!
//! **Source** A. Alexandrov et al., SPAA 1995 (LogGP). T. Hoefler, T. Schneider and A. Lumsdaine,
//! HPDC 2010, for simulating whole applications in this model. Different here: programs are
//! verified, so the order of frames between two ranks is known, and no queue is needed.

use crate::explain::moving;
use crate::ids::{ClassId, Delta, Id};
use crate::ir::schedule::{Frame, Instruction, Placement, Program, Schedule};
use crate::machine::{Link, Machine};
use crate::table::Table;
use std::collections::{HashMap, VecDeque};

/// The arrival of a frame that has not been sent yet.
const NOT_SENT: u64 = u64::MAX;

/// What is simulated: steps, each of which is work and then the epochs of a superstep.
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

/// What a run takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// The time at which the last rank ends, in nanoseconds.
    pub end: u64,
    /// The rank that ends last.
    pub last: u32,
    /// The number of steps that were followed; the others are equal to the last of these.
    pub followed: u64,
    /// The waits of each rank.
    pub waits: Vec<Waits>,
    /// The last steps of the run, on the path that determines its end.
    pub path: Path,
}

/// The waits of a rank in the steps that were followed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Waits {
    /// The time that it waits, in nanoseconds.
    pub total: u64,
    /// The longest wait.
    pub longest: u64,
    /// The rank that it waits for longest.
    pub awaited: u32,
    /// The step of that wait.
    pub step: u64,
    /// The epoch of that wait, within the step.
    pub epoch: u32,
}

/// The critical path of a run: the work and the frames that determine when it ends. The counts are
/// derivatives: while the path stays the same, 1 ns more of latency delays the end by `latencies`
/// ns, and likewise for overheads and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Path {
    /// The number of steps that it goes back.
    pub steps: u64,
    /// Work, in nanoseconds.
    pub work: u64,
    /// Packing, unpacking and copying, in nanoseconds.
    pub moving: u64,
    /// Overheads of frames, in nanoseconds, by kind of link: in shared memory, and between hosts.
    pub overhead: [u64; 2],
    /// Bytes on the wire, in nanoseconds, by kind of link.
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
    /// Sends a frame to a rank.
    Send { to: Delta, bytes: u64 },
    /// Waits for the next frame of a rank. `number` counts the frames of that rank in the epoch.
    Await { from: Delta, number: u32, is_data: bool },
    /// Releases the frame that came last from a rank, so that its buffer may be written.
    Release { from: Delta, number: u32 },
    /// Waits until the frames that this buffer sent `copies` runs ago have been released.
    Reclaim { first: u32, count: u32, copies: u32 },
}

/// The frames that a program sends to each rank, by their numbers.
type Sends = HashMap<Delta, Vec<u32>>;

/// The programs of an epoch, as events, and where frames are found.
struct Epoch<'s> {
    schedule: &'s Schedule,
    events: Table<ClassId, Vec<Event>>,
    /// The frames that each class sends, by receiver, in the order in which it sends them.
    sends: Table<ClassId, Sends>,
    /// The number of the first frame of each rank, among those of all ranks.
    first: Vec<u32>,
    /// The frames that ranks await, by their numbers among those of all ranks: rank by rank, each
    /// in program order. Those of rank `r` begin at `awaited_from[r]`.
    awaited: Vec<u32>,
    awaited_from: Vec<u32>,
    /// Whether any rank waits for releases.
    reclaims: bool,
}

/// The costs of a kind of link, in whole nanoseconds but for bytes.
#[derive(Clone, Copy)]
struct Costs {
    overhead: u64,
    payload: u64,
    latency: u64,
    per_byte: f64,
}

impl Costs {
    fn of(link: &Link) -> Self {
        let Link { latency, overhead, payload, per_byte } = *link;
        let whole = |time: f64| time.round() as u64;
        Self { overhead: whole(overhead), payload: whole(payload), latency: whole(latency), per_byte }
    }

    fn wire(&self, bytes: u64) -> u64 {
        (self.per_byte * bytes as f64).round() as u64
    }
}

impl<'s> Epoch<'s> {
    fn new(schedule: &'s Schedule, machine: &Machine) -> Self {
        let parts = schedule.classes.values().map(|program| events(program, machine));
        let (events, sends): (Vec<_>, Vec<_>) = parts.unzip();
        let events: Table<ClassId, Vec<Event>> = events.into_iter().collect();
        let sends: Table<ClassId, Sends> = sends.into_iter().collect();
        let frames: Table<ClassId, u32> =
            sends.values().map(|sends| sends.values().map(|list| list.len() as u32).sum()).collect();
        let mut total = 0;
        let first = schedule.class_of.iter().map(|class| {
            total += frames[*class];
            total - frames[*class]
        });
        let first: Vec<u32> = first.collect();
        let reclaims = events.values().flatten().any(|event| matches!(event, Event::Reclaim { .. }));
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
        Self { schedule, events, sends, first, awaited, awaited_from, reclaims }
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

/// Returns the events of a program, and the frames that it sends to each rank.
fn events(program: &Program, machine: &Machine) -> (Vec<Event>, Sends) {
    let mut all = Vec::new();
    let (mut sends, mut taken): (Sends, HashMap<Delta, u32>) = Default::default();
    let mut of_buffer: Vec<(u32, u32)> = Vec::new(); // the first frame of each buffer, and their number
    let mut count = 0;
    // A buffer is reclaimed before it sends, so its frames are counted in a pass of their own.
    let mut ahead = 0;
    for instruction in &program.instructions {
        match instruction {
            Instruction::Send { buffer, .. } => {
                of_buffer.resize(of_buffer.len().max(buffer.index() + 1), (u32::MAX, 0));
                let (first, frames) = &mut of_buffer[buffer.index()];
                *first = (*first).min(ahead);
                *frames = ahead - *first + 1;
                ahead += 1;
            }
            Instruction::Expose { .. } | Instruction::Done { .. } => ahead += 1,
            _ => {}
        }
    }
    let mut send = |to: Delta, bytes, all: &mut Vec<Event>| {
        sends.entry(to).or_default().push(count);
        count += 1;
        all.push(Event::Send { to, bytes });
    };
    for instruction in &program.instructions {
        match instruction {
            Instruction::Expose { peer } | Instruction::Done { peer } => send(*peer, 0, &mut all),
            Instruction::Send { buffer, bytes, .. } => send(program.buffers[*buffer].peer, *bytes, &mut all),
            Instruction::Await { peer, frame } => {
                let number = taken.entry(*peer).or_default();
                let is_data = matches!(frame, Frame::Data { .. });
                all.push(Event::Await { from: *peer, number: *number, is_data });
                *number += 1;
            }
            Instruction::Release { peer } => {
                let number = taken.get(peer).copied().unwrap_or(1) - 1;
                all.push(Event::Release { from: *peer, number });
            }
            Instruction::Reclaim { buffer } => {
                let (first, frames) = of_buffer.get(buffer.index()).copied().unwrap_or((0, 0));
                let copies = program.buffers[*buffer].copies;
                all.push(Event::Reclaim { first, count: frames, copies });
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
    (all, sends)
}

/// The place of a rank in the run.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Clock {
    now: u64,
    /// The time from which on its link is free.
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
/// Linear in ranks, in the frames of each, and in the steps that are followed: all of them with
/// noise, otherwise until two steps in a row advance all ranks by the same time. The path needs
/// the state before each of the last 64 steps, or of fewer if there are many ranks: 16 bytes a
/// rank, and 16 a frame in epochs that reclaim buffers.
///
/// # Panics
/// If a schedule was not verified, so that a rank waits for a frame that is never sent.
#[track_caller]
pub fn simulate(schedules: &[&Schedule], machine: &Machine, run: &Run<'_>) -> Simulation {
    let epochs: Vec<Epoch<'_>> = schedules.iter().map(|schedule| Epoch::new(schedule, machine)).collect();
    let links = [Costs::of(&machine.shared), Costs::of(&machine.network)];
    let ranks = schedules.first().map_or(0, |schedule| schedule.class_of.len());
    let released = epochs.iter().map(|epoch| {
        let frames = if epoch.reclaims { epoch.frames() } else { 0 };
        [vec![0; frames], vec![0; frames]]
    });
    let mut state = State {
        clocks: vec![Clock::default(); ranks],
        waits: vec![Waits::default(); ranks],
        released: released.collect(),
    };
    let mut arrivals: Vec<Vec<u64>> = epochs.iter().map(|epoch| vec![NOT_SENT; epoch.frames()]).collect();
    let mut history =
        History { most: (CLOCKS_MAX / ranks.max(1)).clamp(1, PATH_STEPS), ..History::default() };
    let (mut step, mut skipped, mut steady) = (0, 0, 0);
    while step < run.steps {
        history.keep(step, &state);
        for (rank, clock) in state.clocks.iter_mut().enumerate() {
            clock.now += work(run, step, rank as u32);
        }
        for (number, (epoch, arrivals)) in epochs.iter().zip(&mut arrivals).enumerate() {
            arrivals.fill(NOT_SENT);
            advance(epoch, &links, (step, number), arrivals, &mut state);
        }
        step += 1;
        let advanced = if run.noise == 0.0 { history.advanced(step, &state) } else { None };
        steady = if advanced.is_some() { steady + 1 } else { 0 };
        // One such step is not enough: a buffer with two copies depends on the run before the last.
        if let (Some(advanced), 2..) = (advanced, steady) {
            skipped = run.steps - step;
            let more = skipped * advanced;
            for clock in &mut state.clocks {
                (clock.now, clock.free) = (clock.now + more, clock.free + more);
            }
            break;
        }
    }
    let last = (0..ranks).rev().max_by_key(|&rank| state.clocks[rank].now).unwrap_or(0) as u32;
    let end = state.clocks.get(last as usize).map_or(0, |clock| clock.now);
    let walk = Walk { epochs: &epochs, links, run, history: &history, traced: HashMap::new() };
    let path = if ranks == 0 || step == 0 { Path::default() } else { walk.back(step - 1, last) };
    Simulation { end, last, followed: run.steps - skipped, waits: state.waits, path }
}

/// The most steps over which the path goes back, and the most clocks that are kept for it.
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
    /// The times of releases before each step, by epoch, of the last two runs.
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

    /// Returns the time by which a step has moved the whole state, up to `step`; `None` if its
    /// parts have moved by different times.
    fn advanced(&self, step: u64, state: &State) -> Option<u64> {
        let (before, releases) = (self.clocks.back()?, self.released.back()?);
        let advanced = state.clocks.first()?.now - before.first()?.now;
        let left = |clock: &Clock| clock.free.saturating_sub(clock.now);
        let has_moved =
            |(now, before): (&Clock, &Clock)| now.now - before.now == advanced && left(now) == left(before);
        // The run of this step, and the one before it, whose times the step has left.
        let run = ((step - 1) % 2) as usize;
        let is_released_later = |(now, before): (&[Vec<u64>; 2], &[Vec<u64>; 2])| {
            now[run].iter().zip(&before[1 - run]).all(|(now, before)| *now == before + advanced)
        };
        let is_steady = state.clocks.iter().zip(before).all(has_moved)
            && state.released.iter().zip(releases).all(is_released_later);
        is_steady.then_some(advanced)
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
) {
    let schedule = epoch.schedule;
    let mut places = vec![(0_u32, 0_u32, 0_u32); schedule.class_of.len()]; // event, frames sent, frames awaited
    let mut left: Vec<u32> = (0..schedule.class_of.len() as u32).collect();
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
                    Event::Send { to, bytes } => {
                        let (link, _) = link_of(schedule.placement, links, rank, to);
                        let frame = (epoch.first[at] + sent) as usize;
                        arrivals[frame] = send(&mut clock, link, to, bytes);
                        sent += 1;
                    }
                    Event::Await { from, is_data, .. } => {
                        let frame = epoch.awaited[(epoch.awaited_from[at] + awaited) as usize];
                        let arrival = arrivals[frame as usize];
                        if arrival == NOT_SENT {
                            break;
                        }
                        let (link, _) = link_of(schedule.placement, links, rank, from);
                        if arrival > clock.now {
                            let waits = &mut state.waits[at];
                            waits.total += arrival - clock.now;
                            if arrival - clock.now > waits.longest {
                                waits.longest = arrival - clock.now;
                                waits.awaited = (i64::from(rank) + from.0) as u32;
                                (waits.step, waits.epoch) = (step, number as u32);
                            }
                            clock.now = arrival;
                        }
                        clock.now += link.overhead + if is_data { link.payload } else { 0 };
                        awaited += 1;
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
                    Event::Reclaim { first, count, copies } => {
                        if step >= u64::from(copies) {
                            let from = (epoch.first[at] + first) as usize;
                            let run = (step - u64::from(copies)) % 2;
                            let frames = &state.released[number][run as usize][from..from + count as usize];
                            clock.now = frames.iter().copied().fold(clock.now, u64::max);
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
}

/// Sends a frame, and returns when it arrives.
fn send(clock: &mut Clock, link: &Costs, to: Delta, bytes: u64) -> u64 {
    clock.now += link.overhead;
    clock.free = clock.free.max(clock.now) + link.wire(bytes);
    clock.free + if to == Delta::SELF { 0 } else { link.latency }
}

/// Returns the costs of the link between a rank and another one, and the number of its kind.
fn link_of(placement: Placement, links: &[Costs; 2], rank: u32, to: Delta) -> (&Costs, usize) {
    let other = (i64::from(rank) + to.0) as u32;
    let kind = usize::from(!placement.share(rank, other));
    (&links[kind], kind)
}

/// The walk from the end of a run back along its critical path. It simulates the last steps again,
/// but only those ranks that are on the path or that these wait for.
struct Walk<'w> {
    epochs: &'w [Epoch<'w>],
    links: [Costs; 2],
    run: &'w Run<'w>,
    history: &'w History,
    traced: HashMap<(u64, u32), Trace>,
}

/// The events of a rank in a step, as far as they were followed.
struct Trace {
    clock: Clock,
    epoch: usize,
    event: usize,
    awaited: usize,
    /// What happened, in order.
    log: Vec<Logged>,
    /// The places in `log` of the frames that were sent, by epoch.
    sent: Vec<Vec<usize>>,
    /// The places in `log` of the releases, by epoch, sender and number.
    released: HashMap<(usize, Delta, u32), usize>,
}

/// An event that happened.
#[derive(Clone, Copy)]
struct Logged {
    event: Event,
    /// The time when the link is free after a frame that was sent.
    free: u64,
    cause: Cause,
}

/// What an event had to wait for.
#[derive(Clone, Copy)]
enum Cause {
    /// Nothing but the event before it.
    Before,
    /// The arrival of a frame: its sender, and its number in the epoch.
    Frame { epoch: usize, from: u32, frame: usize },
    /// The link, which was busy with the frame before.
    Link,
    /// A release in an earlier step: the rank, the step, the sender as that rank sees it, and the
    /// number of the frame.
    Release { epoch: usize, by: u32, step: u64, sender: Delta, number: u32 },
}

/// Where the way back is.
enum At {
    /// On a rank's clock, after this many events of the step.
    Clock { step: u64, rank: u32, events: usize },
    /// At a frame on the link of a rank.
    Link { step: u64, rank: u32, place: usize },
}

impl Walk<'_> {
    fn back(mut self, step: u64, rank: u32) -> Path {
        let mut path = Path { steps: step + 1 - self.history.first, ..Path::default() };
        let all = self.trace(step, rank, None);
        let mut at = At::Clock { step, rank, events: all };
        loop {
            at = match at {
                At::Clock { step, rank, events: 0 } => {
                    path.work += work(self.run, step, rank);
                    if step == self.history.first {
                        return path;
                    }
                    let events = self.trace(step - 1, rank, None);
                    At::Clock { step: step - 1, rank, events }
                }
                At::Clock { step, rank, events } => {
                    let place = events - 1;
                    let logged = self.traced[&(step, rank)].log[place];
                    let before = At::Clock { step, rank, events: place };
                    match logged.event {
                        Event::Move(time) => {
                            path.moving += time;
                            before
                        }
                        Event::Send { to, .. } => {
                            self.overhead(&mut path, rank, to, false);
                            before
                        }
                        Event::Await { from, is_data, .. } => {
                            self.overhead(&mut path, rank, from, is_data);
                            match logged.cause {
                                Cause::Frame { epoch, from: sender, frame } => {
                                    if sender != rank {
                                        self.latency(&mut path, rank, from);
                                    }
                                    self.trace(step, sender, Some((epoch, frame)));
                                    let place = self.traced[&(step, sender)].sent[epoch][frame];
                                    At::Link { step, rank: sender, place }
                                }
                                _ => before,
                            }
                        }
                        Event::Release { .. } => before,
                        Event::Reclaim { .. } => match logged.cause {
                            Cause::Release { epoch, by, step: earlier, sender, number } => {
                                self.latency(&mut path, by, sender);
                                if earlier < self.history.first {
                                    return path;
                                }
                                self.trace(earlier, by, None);
                                let place = self.traced[&(earlier, by)].released[&(epoch, sender, number)];
                                At::Clock { step: earlier, rank: by, events: place }
                            }
                            _ => before,
                        },
                    }
                }
                At::Link { step, rank, place } => {
                    let Logged { event, cause, .. } = self.traced[&(step, rank)].log[place];
                    if let Event::Send { to, bytes } = event {
                        let (link, kind) = self.link(rank, to);
                        path.wire[kind] += link.wire(bytes);
                        path.bytes[kind] += bytes;
                    }
                    match cause {
                        Cause::Link => match self.frame_before(step, rank, place) {
                            Some(at) => at,
                            None => return path,
                        },
                        _ => At::Clock { step, rank, events: place + 1 },
                    }
                }
            };
        }
    }

    /// Returns the frame that was on the link before the one at a place of a log.
    fn frame_before(&mut self, mut step: u64, rank: u32, place: usize) -> Option<At> {
        let is_sent = |logged: &Logged| matches!(logged.event, Event::Send { .. });
        let mut end = place;
        loop {
            if let Some(place) = self.traced[&(step, rank)].log[..end].iter().rposition(is_sent) {
                return Some(At::Link { step, rank, place });
            }
            step = step.checked_sub(1).filter(|step| *step >= self.history.first)?;
            end = self.trace(step, rank, None);
        }
    }

    fn link(&self, rank: u32, to: Delta) -> (Costs, usize) {
        let (link, kind) = link_of(self.epochs[0].schedule.placement, &self.links, rank, to);
        (*link, kind)
    }

    fn overhead(&self, path: &mut Path, rank: u32, to: Delta, is_data: bool) {
        let (link, kind) = self.link(rank, to);
        path.overhead[kind] += link.overhead + if is_data { link.payload } else { 0 };
        path.overheads[kind] += 1;
    }

    fn latency(&self, path: &mut Path, rank: u32, to: Delta) {
        let (link, kind) = self.link(rank, to);
        path.latency[kind] += link.latency;
        path.latencies[kind] += 1;
    }

    /// Follows a rank in a step, to its end or until it has sent a frame of an epoch. Returns the
    /// number of its events so far.
    fn trace(&mut self, step: u64, rank: u32, frame: Option<(usize, usize)>) -> usize {
        // A stack of ranks to follow: each entry sends the frame that the entry below waits for.
        let mut wanted = vec![(rank, frame)];
        while let Some(&(rank, frame)) = wanted.last() {
            let start = || {
                let mut clock = self.history.clock(step, rank);
                clock.now += work(self.run, step, rank);
                let sent = vec![Vec::new(); self.epochs.len()];
                Trace {
                    clock,
                    epoch: 0,
                    event: 0,
                    awaited: 0,
                    log: Vec::new(),
                    sent,
                    released: HashMap::new(),
                }
            };
            let mut trace = self.traced.remove(&(step, rank)).unwrap_or_else(start);
            let needed = self.follow(step, rank, frame, &mut trace);
            self.traced.insert((step, rank), trace);
            match needed {
                Some(other) => wanted.push(other),
                None => drop(wanted.pop()),
            }
        }
        self.traced[&(step, rank)].log.len()
    }

    /// Follows a rank until it has sent the frame, or to the end of the step. If it waits for a
    /// frame that has not been sent, returns the sender and that frame.
    fn follow(
        &self,
        step: u64,
        rank: u32,
        wanted: Option<(usize, usize)>,
        trace: &mut Trace,
    ) -> Option<(u32, Option<(usize, usize)>)> {
        while let Some(epoch) = self.epochs.get(trace.epoch) {
            let class = epoch.schedule.class_of[rank as usize];
            let Some(&event) = epoch.events[class].get(trace.event) else {
                (trace.epoch, trace.event, trace.awaited) = (trace.epoch + 1, 0, 0);
                continue;
            };
            if wanted.is_some_and(|(epoch, frame)| trace.sent[epoch].len() > frame) {
                return None;
            }
            let mut cause = Cause::Before;
            match event {
                Event::Move(time) => trace.clock.now += time,
                Event::Send { to, bytes } => {
                    let (link, _) = self.link(rank, to);
                    if trace.clock.free > trace.clock.now + link.overhead {
                        cause = Cause::Link;
                    }
                    send(&mut trace.clock, &link, to, bytes);
                    trace.sent[trace.epoch].push(trace.log.len());
                }
                Event::Await { from, is_data, .. } => {
                    let number = epoch.awaited[epoch.awaited_from[rank as usize] as usize + trace.awaited];
                    let sender = (i64::from(rank) + from.0) as u32;
                    let frame = (number - epoch.first[sender as usize]) as usize;
                    let sends = if sender == rank { Some(&*trace) } else { self.traced.get(&(step, sender)) };
                    let Some(place) = sends.and_then(|sends| sends.sent[trace.epoch].get(frame)) else {
                        return Some((sender, Some((trace.epoch, frame))));
                    };
                    let (link, _) = self.link(rank, from);
                    let free = sends.map_or(0, |sends| sends.log[*place].free);
                    let arrival = free + if from == Delta::SELF { 0 } else { link.latency };
                    if arrival > trace.clock.now {
                        trace.clock.now = arrival;
                        cause = Cause::Frame { epoch: trace.epoch, from: sender, frame };
                    }
                    trace.clock.now += link.overhead + if is_data { link.payload } else { 0 };
                    trace.awaited += 1;
                }
                Event::Release { from, number } => {
                    trace.released.insert((trace.epoch, from, number), trace.log.len());
                }
                Event::Reclaim { first, count, copies } => {
                    if let Some(earlier) = step.checked_sub(u64::from(copies)) {
                        let all = &self.history.released[(step - self.history.first) as usize][trace.epoch];
                        let from = epoch.first[rank as usize] + first;
                        for frame in from..from + count {
                            let time = all[(earlier % 2) as usize][frame as usize];
                            if time > trace.clock.now {
                                trace.clock.now = time;
                                cause = released_by(epoch, trace.epoch, rank, frame, earlier);
                            }
                        }
                    }
                }
            }
            trace.log.push(Logged { event, free: trace.clock.free, cause });
            trace.event += 1;
        }
        None
    }
}

/// Returns the release of a frame that a rank has sent.
fn released_by(epoch: &Epoch<'_>, number: usize, rank: u32, frame: u32, step: u64) -> Cause {
    let own = frame - epoch.first[rank as usize];
    let sends = &epoch.sends[epoch.schedule.class_of[rank as usize]];
    let of = |(to, frames): (&Delta, &Vec<u32>)| Some((*to, frames.iter().position(|frame| *frame == own)?));
    match sends.iter().find_map(of) {
        Some((to, place)) => Cause::Release {
            epoch: number,
            by: (i64::from(rank) + to.0) as u32,
            step,
            sender: to.back(),
            number: place as u32,
        },
        None => Cause::Before,
    }
}
