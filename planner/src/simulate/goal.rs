//! [`goal`]: a simulated run as a GOAL file, the input of LogGOPSim.
//!
//! The file has, for each rank, the operations that [`simulate`](super::simulate) follows, in the
//! same order.
//! - Work, moving and overheads are `calc`s, so LogGOPSim has to use an overhead `o` of 0.
//! - A frame is a `send` and a `recv`. LogGOPSim charges a whole number of nanoseconds for each
//!   byte after the first. The file asks for 1 ns (`-G 1`), and a frame of `n` ns on the wire has
//!   the size `n + 1`. The size of a frame therefore expresses a time, and the times on both kinds
//!   of links are exact, including their rounding.
//! - A release for which the sender of the frame waits is a message of size 1. It leaves by the
//!   second `nic`, because the link may be busy with frames.
//!
//! Operations on a rank's clock form a chain of `requires`. A `send` is not in this chain: it waits
//! for the link while the rank continues. A tag modulo 3 is the kind of link: 0 between hosts, 1 in
//! shared memory, and 2 for a frame of a rank to itself, which has no latency.
//!
//! LogGOPSim differs from this model in two rules. First, it has only one latency, which also
//! applies to a frame of a rank to itself. The file names the latency between hosts if there are
//! several hosts. Second, it also charges the receiver's processor for the bytes.
//!
//! **Source** T. Hoefler, C. Siebert and A. Lumsdaine, ICPP 2009 (GOAL). T. Hoefler, T. Schneider
//! and A. Lumsdaine, HPDC 2010 (LogGOPSim).

use super::{Costs, Epoch, Event, Run, link_of, refuse, refuse_many, work};
use crate::error::Result;
use crate::ids::{ClassId, Delta};
use crate::ir::schedule::{Placement, Schedule};
use crate::machine::Machine;
use crate::table::Table;
use std::collections::{HashMap, HashSet};
use std::fmt::Arguments;
use std::io::Write;

/// Writes the steps of a run as a GOAL file, with `title` in its header. Nothing is simulated: each
/// rank's part follows from its programs.
///
/// A simulator that gives each message the latency of its kind of link ends the run at the same
/// nanosecond as [`simulate`](super::simulate).
///
/// # Cost
/// Linear in ranks, frames and steps. A frame takes some 100 bytes of the file. The memory is
/// linear in the schedules' programs.
///
/// # Errors
/// As [`simulate`](super::simulate); `NO_MEM` if there are more than 2^24 events; `IO` if the file
/// cannot be written.
#[track_caller]
pub fn goal(
    schedules: &[&Schedule],
    machine: &Machine,
    run: &Run<'_>,
    title: &str,
    to: &mut dyn Write,
) -> Result<()> {
    refuse(schedules, machine, run)?;
    refuse_many(schedules, run, "written")?;
    let parts: Vec<Part<'_>> = schedules.iter().map(|schedule| Part::new(schedule, machine)).collect();
    let links = [Costs::of(&machine.shared), Costs::of(&machine.network)];
    let (ranks, placement) = match schedules.first() {
        Some(schedule) => (schedule.class_of.len() as u32, schedule.placement),
        None => (0, Placement::Together),
    };
    header(to, title, (ranks, placement), &links)?;
    for rank in 0..ranks {
        writeln!(to, "rank {rank} {{")?;
        let mut chain = Chain { to, labels: 0, last: None, sent: None, calc: 0 };
        for step in 0..run.steps {
            chain.calc += work(run, step, rank);
            let mut before = 0;
            for part in &parts {
                part.write(&mut chain, &links, (rank, step, run.steps), before, &parts)?;
                before += part.frames_of(rank).len() as u32;
            }
        }
        chain.end()?;
        writeln!(to, "}}")?;
    }
    Ok(to.flush()?)
}

/// Writes the header, which explains how to run the file.
fn header(
    to: &mut dyn Write,
    title: &str,
    (ranks, placement): (u32, Placement),
    [shared, network]: &[Costs; 2],
) -> Result<()> {
    let of_host = placement.ranks_of_a_host(ranks as usize) as u32;
    let latency = if of_host < ranks { network.latency } else { shared.latency };
    // A line break in the title would end the comment.
    let title = title.replace(char::is_control, " ");
    writeln!(to, "// {title}")?;
    writeln!(to, "// txt2bin -i FILE -o FILE.bin")?;
    writeln!(to, "// LogGOPSim -f FILE.bin -L {latency} -o 0 -g 0 -G 1 -O 0 -S {}", i32::MAX)?;
    writeln!(to, "// Times are in ns. A size is the time on the wire and 1; nic 1 is never busy.")?;
    let latencies = format!("{} {} 0", network.latency, shared.latency);
    writeln!(to, "// Latencies of tags by their remainders of 3 (hosts, memory, self): {latencies}")?;
    Ok(writeln!(to, "num_ranks {ranks}")?)
}

/// A frame that a program sends.
struct Sent {
    to: Delta,
    /// The number of the frame among the frames of this program to the rank `to`.
    number: u32,
    bytes: u64,
    /// The number of runs after which the frame's buffer is reclaimed, or `None` if the buffer is
    /// not reclaimed.
    copies: Option<u32>,
}

/// An epoch, with the frames of each class.
struct Part<'s> {
    epoch: Epoch<'s>,
    frames: Table<ClassId, Vec<Sent>>,
    /// For each frame that a class releases, the sender, and the number of the frame among the
    /// frames from that sender.
    releases: Table<ClassId, HashSet<(Delta, u32)>>,
}

impl<'s> Part<'s> {
    fn new(schedule: &'s Schedule, machine: &Machine) -> Self {
        let epoch = Epoch::new(schedule, machine);
        let (mut frames, mut releases) = (Table::new(), Table::new());
        for (class, events) in epoch.events.iter() {
            let (mut of_class, mut counts): (Vec<Sent>, HashMap<Delta, u32>) = Default::default();
            for event in events {
                if let Event::Send { to, bytes, .. } = *event {
                    let count = counts.entry(to).or_default();
                    of_class.push(Sent { to, number: *count, bytes, copies: None });
                    *count += 1;
                }
            }
            for event in events {
                if let Event::Reclaim { buffer, copies } = *event {
                    for frame in &epoch.buffers[class][buffer as usize] {
                        of_class[*frame as usize].copies = Some(copies);
                    }
                }
            }
            frames.push(of_class);
            let released = events.iter().filter_map(|event| match *event {
                Event::Release { from, number } => Some((from, number)),
                _ => None,
            });
            releases.push(released.collect());
        }
        Self { epoch, frames, releases }
    }

    fn class(&self, rank: u32) -> ClassId {
        self.epoch.schedule.class_of[rank as usize]
    }

    fn frames_of(&self, rank: u32) -> &[Sent] {
        &self.frames[self.class(rank)]
    }

    /// Returns the place of a frame among all frames of its sender.
    fn place(&self, sender: u32, receiver: u32, number: u32) -> usize {
        let to = Delta(i64::from(receiver) - i64::from(sender));
        self.epoch.sends[self.class(sender)][&to][number as usize] as usize
    }

    /// Writes what a rank does in a step. `parts` are all epochs, and `before` counts the frames
    /// that the rank sends in the epochs before this one.
    fn write(
        &self,
        chain: &mut Chain<'_>,
        links: &[Costs; 2],
        (rank, step, steps): (u32, u64, u64),
        before: u32,
        parts: &[Part<'_>],
    ) -> Result<()> {
        let class = self.class(rank);
        let peer = |delta: Delta| (i64::from(rank) + delta.0) as u32;
        // The tag of a release also contains the number of the released frame.
        let link = |delta: Delta| {
            let (costs, kind) = link_of(self.epoch.schedule.placement, links, rank, delta);
            (costs, 1 - kind)
        };
        let tag = |delta: Delta, before: u32, frame: usize| {
            3 * (1 + u64::from(before) + frame as u64) + link(delta).1 as u64
        };
        for event in &self.epoch.events[class] {
            match *event {
                Event::Move(time) => chain.calc += time,
                Event::Send { to, bytes, is_further } => {
                    let (costs, kind) = link(to);
                    let tag = if to == Delta::SELF { 2 } else { kind };
                    chain.calc += costs.frame(is_further, false);
                    let size = 1 + costs.wire(bytes);
                    chain.frame(format_args!("send {size}b to {} tag {tag}", peer(to)))?;
                }
                Event::Await { from, number, is_long, is_further } => {
                    let (costs, kind) = link(from);
                    let tag = if from == Delta::SELF { 2 } else { kind };
                    let sent = &self.frames_of(peer(from))[self.place(peer(from), rank, number)];
                    let size = 1 + costs.wire(sent.bytes);
                    chain.clock(format_args!("recv {size}b from {} tag {tag}", peer(from)))?;
                    chain.calc += costs.frame(is_further, is_long);
                }
                Event::Release { from, number } => {
                    let frame = self.place(peer(from), rank, number);
                    // LogGOPSim refuses a file with a message that is never received.
                    let copies = self.frames_of(peer(from))[frame].copies;
                    if copies.is_some_and(|copies| step + u64::from(copies) < steps) {
                        let earlier = parts.iter().take_while(|part| !std::ptr::eq(*part, self));
                        let before = earlier.map(|part| part.frames_of(peer(from)).len() as u32).sum();
                        let tag = tag(from, before, frame);
                        chain.release(format_args!("send 1b to {} tag {tag} nic 1", peer(from)))?;
                    }
                }
                Event::Reclaim { buffer, copies } if step >= u64::from(copies) => {
                    for &frame in &self.epoch.buffers[class][buffer as usize] {
                        let Sent { to, number, .. } = self.frames[class][frame as usize];
                        if self.releases[self.class(peer(to))].contains(&(to.back(), number)) {
                            let tag = tag(to, before, frame as usize);
                            chain.clock(format_args!("recv 1b from {} tag {tag} nic 1", peer(to)))?;
                        }
                    }
                }
                Event::Reclaim { .. } => {}
            }
        }
        Ok(())
    }
}

/// The operations of a rank that have been written.
struct Chain<'t> {
    to: &'t mut dyn Write,
    /// The number of operations.
    labels: u64,
    /// The operation that ends last on the rank's clock.
    last: Option<u64>,
    /// The frame that was sent last, if no time has passed since.
    sent: Option<u64>,
    /// The time of the next `calc`.
    calc: u64,
}

impl Chain<'_> {
    /// Writes an operation that follows the last operation on the rank's clock. Returns the label
    /// of the new operation.
    fn operation(&mut self, what: Arguments<'_>) -> Result<u64> {
        self.labels += 1;
        let label = self.labels;
        writeln!(self.to, "l{label}: {what}")?;
        if let Some(last) = self.last {
            writeln!(self.to, "l{label} requires l{last}")?;
        }
        Ok(label)
    }

    /// Writes a `calc` of the time that has been added up, if that time is not 0.
    fn pass(&mut self) -> Result<()> {
        let time = std::mem::take(&mut self.calc);
        if time > 0 {
            self.last = Some(self.operation(format_args!("calc {time}"))?);
            self.sent = None;
        }
        Ok(())
    }

    /// Writes an operation that the next operations on the rank's clock require.
    fn clock(&mut self, what: Arguments<'_>) -> Result<()> {
        self.pass()?;
        self.last = Some(self.operation(what)?);
        Ok(())
    }

    /// Writes the `send` of a frame, which follows the `send` of the frame before it.
    fn frame(&mut self, what: Arguments<'_>) -> Result<()> {
        self.pass()?;
        let label = self.operation(what)?;
        if let Some(before) = self.sent.replace(label) {
            writeln!(self.to, "l{label} irequires l{before}")?;
        }
        Ok(())
    }

    /// Writes the `send` of a release.
    fn release(&mut self, what: Arguments<'_>) -> Result<()> {
        self.pass()?;
        self.operation(what).map(drop)
    }

    /// Writes the time after the last frame. A rank without any operation gets a `calc` of 0.
    fn end(mut self) -> Result<()> {
        self.pass()?;
        if self.labels == 0 { self.clock(format_args!("calc 0")) } else { Ok(()) }
    }
}
