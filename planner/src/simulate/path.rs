//! [`critical`]: the path of work and frames that determines the end of a run.

use super::{Clock, Costs, Epoch, Event, History, Path, Run, link_of, send, work};
use crate::ids::Delta;
use std::collections::HashMap;

/// Returns the critical path that leads to the end of a rank's step.
pub(super) fn critical<'w>(
    epochs: &'w [Epoch<'w>],
    links: [Costs; 2],
    run: &'w Run<'w>,
    history: &'w History,
    (step, rank): (u64, u32),
) -> Path {
    Walk { epochs, links, run, history, traced: HashMap::new() }.back(step, rank)
}

/// The walk from the end of a run back along its critical path. It simulates the last steps again,
/// but only the ranks on the path and the ranks for which these wait.
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
    /// For a sent frame: the time from which the link is free again.
    free: u64,
    cause: Cause,
}

/// What an event had to wait for.
#[derive(Clone, Copy)]
enum Cause {
    /// Nothing but the previous event.
    Before,
    /// The arrival of a frame: its sender, and its number in the epoch.
    Frame { epoch: usize, from: u32, frame: usize },
    /// The link, which was busy with the previous frame.
    Link,
    /// A release in an earlier step: the rank that releases the frame, the step, the sender
    /// relative to that rank, and the number of the frame.
    Release { epoch: usize, by: u32, step: u64, sender: Delta, number: u32 },
}

/// The position of the walk.
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
                        Event::Send { to, is_further, .. } => {
                            self.overhead(&mut path, (rank, to), is_further, false);
                            before
                        }
                        Event::Await { from, is_long, is_further, .. } => {
                            self.overhead(&mut path, (rank, from), is_further, is_long);
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
                    if let Event::Send { to, bytes, .. } = event {
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

    /// Returns the frame that was on the rank's link before the event at `place` in the log of a
    /// step.
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

    fn overhead(&self, path: &mut Path, (rank, to): (u32, Delta), is_further: bool, is_long: bool) {
        let (link, kind) = self.link(rank, to);
        path.overhead[kind] += link.frame(is_further, is_long);
        path.overheads[kind] += u64::from(!is_further);
    }

    fn latency(&self, path: &mut Path, rank: u32, to: Delta) {
        let (link, kind) = self.link(rank, to);
        path.latency[kind] += link.latency;
        path.latencies[kind] += 1;
    }

    /// Follows a rank in a step until it has sent `frame`, or to the end of the step. Returns the
    /// number of the rank's events so far.
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
                Event::Send { to, bytes, is_further } => {
                    let (link, _) = self.link(rank, to);
                    if trace.clock.free > trace.clock.now + link.frame(is_further, false) {
                        cause = Cause::Link;
                    }
                    send(&mut trace.clock, &link, to, bytes, is_further);
                    trace.sent[trace.epoch].push(trace.log.len());
                }
                Event::Await { from, is_long, is_further, .. } => {
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
                    trace.clock.now += link.frame(is_further, is_long);
                    trace.awaited += 1;
                }
                Event::Release { from, number } => {
                    trace.released.insert((trace.epoch, from, number), trace.log.len());
                }
                Event::Reclaim { buffer, copies } => {
                    if let Some(earlier) = step.checked_sub(u64::from(copies)) {
                        let all = &self.history.released[(step - self.history.first) as usize][trace.epoch];
                        for own in &epoch.buffers[class][buffer as usize] {
                            let frame = epoch.first[rank as usize] + own;
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
