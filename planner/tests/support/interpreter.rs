//! An interpreter of schedules. It runs the programs of all ranks, one instruction at a time, in an
//! order that a seed determines and the schedule permits.

use super::{by_rank, sources, store};
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::{BufferId, Delta, Id, Rank};
use fencepost_planner::ir::pattern::{Order, Patterns};
use fencepost_planner::ir::schedule::{Frame, Instruction, Part, Schedule};
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Buffers, Epoch, World, apply};
use fencepost_tests_support::random::Random;
use std::collections::{BTreeMap, VecDeque};

/// A frame in transit.
#[derive(Clone, Copy)]
struct Sent {
    run: usize,
    frame: Frame,
    buffer: BufferId,
    copy: usize,
    at: u64,
}

struct Machine<'a> {
    schedule: &'a Schedule,
    patterns: &'a Patterns,
    world: World,
    ranks: Vec<State>,
    channels: BTreeMap<(usize, usize), VecDeque<Sent>>,
}

struct State {
    run: usize,
    at: usize,
    /// The bytes of each buffer, at `[buffer][copy]`.
    buffers: Vec<Vec<Vec<u8>>>,
    /// The number of frames that were sent and not released, at `[buffer][copy]`.
    unreleased: Vec<Vec<usize>>,
    open: BTreeMap<usize, Sent>,
    /// The ranks to which this rank is exposed.
    exposed: Vec<usize>,
    sources: Buffers,
    landed: Buffers,
}

/// Runs `schedule` `runs` times in a row from `world`. After each run, compares the memory of each
/// rank with that of the reference.
pub fn differs(
    patterns: &Patterns,
    schedule: &Schedule,
    world: &World,
    runs: usize,
    seed: u64,
) -> Result<(), String> {
    let mut machine = Machine::new(patterns, schedule, world.clone());
    let mut dice = Random::new(seed);
    let mut left: Vec<Vec<(World, Buffers)>> = vec![Vec::new(); machine.ranks.len()];
    for rank in 0..machine.ranks.len() {
        machine.enter(rank, 0);
    }
    loop {
        let unfinished: Vec<usize> =
            (0..machine.ranks.len()).filter(|rank| left[*rank].len() < runs).collect();
        if unfinished.is_empty() {
            break;
        }
        let movable: Vec<usize> = unfinished.iter().copied().filter(|rank| machine.can_move(*rank)).collect();
        if movable.is_empty() {
            return Err(format!("ranks {unfinished:?} wait forever"));
        }
        let rank = dice.one_of(&movable);
        for _ in 0..1 + dice.below(6) {
            if left[rank].len() == runs || !machine.can_move(rank) {
                break;
            }
            if machine.step(rank)? {
                left[rank].push((machine.only(rank), std::mem::take(&mut machine.ranks[rank].landed)));
                let run = machine.ranks[rank].run + 1;
                if run < runs {
                    machine.enter(rank, run);
                }
            }
        }
    }
    if machine.channels.values().any(|channel| !channel.is_empty()) {
        return Err("frames are left in a channel".into());
    }
    // The reference makes the same runs. Each run begins with the values that the schedule left, so
    // the schedule may use any order in a relaxed epoch.
    let mut before = world.clone();
    for run in 0..runs {
        for rank in 0..machine.ranks.len() {
            store(&mut before, rank, run);
        }
        let sources = (0..machine.ranks.len()).map(|rank| sources(patterns, rank, run)).collect();
        let epoch = Epoch { patterns: by_rank(patterns), sources };
        let memory = left.iter().map(|runs| runs[run].0.memory[0].clone()).collect();
        let after = World { element: world.element.clone(), memory };
        let landed: Vec<Buffers> = left.iter().map(|runs| filled(&runs[run].1)).collect();
        match patterns.order {
            Order::Canonical => {
                let mut expected = before.clone();
                let expected_landed = reference::run(&mut expected, &epoch).map_err(|e| e.to_string())?;
                for rank in 0..machine.ranks.len() {
                    if after.memory[rank] != expected.memory[rank] {
                        let (is, be) = (&after.memory[rank], &expected.memory[rank]);
                        return Err(format!("run {run}, rank {rank}: {is:?} is not {be:?}"));
                    }
                    if landed[rank] != filled(&expected_landed[rank]) {
                        return Err(format!("run {run}, rank {rank}: a get has other elements"));
                    }
                }
            }
            Order::Relaxed => {
                let mut landed = landed;
                // A get of no elements stores nothing, so its empty result is added here.
                for (rank, pattern) in epoch.patterns.iter().enumerate() {
                    for (id, operation) in pattern.operations.iter() {
                        if operation.remote.is_empty() {
                            landed[rank].entry(id).or_default();
                        }
                    }
                }
                let found = reference::allows(&before, &epoch, &after, &landed).map_err(|e| e.to_string())?;
                if let Some(difference) = found {
                    return Err(format!("run {run}: {difference:?}"));
                }
            }
        }
        before = after;
    }
    Ok(())
}

fn filled(buffers: &Buffers) -> Buffers {
    buffers.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(id, bytes)| (*id, bytes.clone())).collect()
}

impl<'a> Machine<'a> {
    fn new(patterns: &'a Patterns, schedule: &'a Schedule, world: World) -> Self {
        let state = |class: &fencepost_planner::ids::ClassId| {
            let program = &schedule.classes[*class];
            let buffers = program.buffers.values();
            State {
                run: 0,
                at: 0,
                buffers: buffers
                    .clone()
                    .map(|b| vec![vec![0xee; b.bytes as usize]; b.copies as usize])
                    .collect(),
                unreleased: buffers.map(|b| vec![0; b.copies as usize]).collect(),
                open: BTreeMap::new(),
                exposed: Vec::new(),
                sources: Buffers::new(),
                landed: Buffers::new(),
            }
        };
        let ranks = schedule.class_of.iter().map(state).collect();
        Self { schedule, patterns, world, ranks, channels: BTreeMap::new() }
    }

    fn enter(&mut self, rank: usize, run: usize) {
        store(&mut self.world, rank, run);
        let state = &mut self.ranks[rank];
        (state.run, state.at) = (run, 0);
        state.sources = sources(self.patterns, rank, run);
        state.exposed.clear();
    }

    /// Returns the windows of one rank.
    fn only(&self, rank: usize) -> World {
        World { element: self.world.element.clone(), memory: vec![self.world.memory[rank].clone()] }
    }

    fn program(&self, rank: usize) -> &'a [Instruction] {
        &self.schedule.classes[self.schedule.class_of[rank]].instructions
    }

    fn peer(&self, rank: usize, delta: Delta) -> usize {
        delta.from(Rank::new(rank), self.ranks.len() as u32).expect("a peer that is there").index()
    }

    fn can_move(&self, rank: usize) -> bool {
        let state = &self.ranks[rank];
        match self.program(rank).get(state.at) {
            Some(Instruction::Await { peer, .. }) => {
                let from = self.peer(rank, *peer);
                self.channels.get(&(from, rank)).is_some_and(|channel| !channel.is_empty())
            }
            Some(Instruction::Reclaim { buffer }) => {
                let copies = &state.unreleased[buffer.index()];
                copies[state.run % copies.len()] == 0
            }
            _ => true,
        }
    }

    /// Runs one instruction. Returns whether the rank leaves.
    fn step(&mut self, rank: usize) -> Result<bool, String> {
        let (run, at) = (self.ranks[rank].run, self.ranks[rank].at);
        let Some(instruction) = self.program(rank).get(at) else { return Ok(true) };
        self.ranks[rank].at += 1;
        let program = &self.schedule.classes[self.schedule.class_of[rank]];
        match instruction {
            Instruction::Expose { peer } => {
                let to = self.peer(rank, *peer);
                self.ranks[rank].exposed.push(to);
                self.send(rank, to, Frame::Entry, BufferId(0), 0);
            }
            Instruction::Done { peer } => {
                let to = self.peer(rank, *peer);
                self.send(rank, to, Frame::Done, BufferId(0), 0);
            }
            Instruction::Reclaim { .. } => {}
            Instruction::Pack { from, element, buffer, at } => {
                let bytes = self.read(rank, from, *element)?;
                let copy = run % program.buffers[*buffer].copies as usize;
                let to = &mut self.ranks[rank].buffers[buffer.index()][copy];
                let to = to.get_mut(*at as usize..*at as usize + bytes.len()).ok_or("outside its buffer")?;
                to.copy_from_slice(&bytes);
            }
            Instruction::Combine { from, into, op, element, buffer, at } => {
                let bytes = self.read(rank, from, element.size)?;
                let copy = run % program.buffers[*buffer].copies as usize;
                let to = &mut self.ranks[rank].buffers[buffer.index()][copy];
                let size = element.size as usize;
                for (place, value) in into.element_iter().zip(bytes.chunks(size)) {
                    let first = *at as usize + place as usize * size;
                    let target = to.get_mut(first..first + size).ok_or("outside its buffer")?;
                    apply(Some(*op), *element, target, value);
                }
            }
            Instruction::Send { buffer, at, bytes, .. } => {
                let to = self.peer(rank, program.buffers[*buffer].peer);
                let copy = run % program.buffers[*buffer].copies as usize;
                self.ranks[rank].unreleased[buffer.index()][copy] += 1;
                self.send(rank, to, Frame::Data { bytes: *bytes }, *buffer, *at);
            }
            Instruction::Await { peer, frame } => {
                let from = self.peer(rank, *peer);
                let channel = self.channels.get_mut(&(from, rank)).expect("it can move");
                let sent = channel.pop_front().expect("it can move");
                if sent.frame != *frame || sent.run != run {
                    let (is, of) = (sent.frame, sent.run);
                    return Err(format!(
                        "rank {rank}, run {run}: {is:?} of run {of} where {frame:?} was awaited"
                    ));
                }
                if let Frame::Data { .. } = frame
                    && self.ranks[rank].open.insert(from, sent).is_some()
                {
                    return Err(format!("rank {rank}: two open frames of {from}"));
                }
                if *frame == Frame::Done {
                    self.ranks[rank].exposed.retain(|to| *to != from);
                }
            }
            Instruction::Copy { from, to, op, element } => {
                let bytes = self.read(rank, from, element.size)?;
                self.write(rank, to, *op, *element, &bytes)?;
            }
            Instruction::Unpack { peer, at, to, op, element } => {
                let from = self.peer(rank, *peer);
                let sent = *self.ranks[rank].open.get(&from).ok_or("no open frame")?;
                let first = (sent.at + at) as usize;
                let frame = &self.ranks[from].buffers[sent.buffer.index()][sent.copy];
                let bytes =
                    frame.get(first..first + to.len() * element.size as usize).ok_or("outside a frame")?;
                let bytes = bytes.to_vec();
                self.write(rank, to, *op, *element, &bytes)?;
            }
            Instruction::Release { peer } => {
                let from = self.peer(rank, *peer);
                let sent = self.ranks[rank].open.remove(&from).ok_or("no open frame")?;
                self.ranks[from].unreleased[sent.buffer.index()][sent.copy] -= 1;
            }
        }
        Ok(false)
    }

    fn send(&mut self, from: usize, to: usize, frame: Frame, buffer: BufferId, at: u64) {
        let run = self.ranks[from].run;
        let buffers = &self.schedule.classes[self.schedule.class_of[from]].buffers;
        let copy = buffers.get(buffer).map_or(0, |buffer| run % buffer.copies as usize);
        self.channels.entry((from, to)).or_default().push_back(Sent { run, frame, buffer, copy, at });
    }

    /// Returns the owner of the window. An owner that is another rank must be exposed to this rank.
    fn owner(&self, rank: usize, delta: Delta) -> Result<usize, String> {
        let owner = self.peer(rank, delta);
        let exposed =
            self.ranks[owner].exposed.contains(&rank) && self.ranks[owner].run == self.ranks[rank].run;
        if owner == rank || exposed {
            Ok(owner)
        } else {
            Err(format!("rank {rank} touches {owner} unexposed"))
        }
    }

    fn read(&self, rank: usize, part: &Part, size: u32) -> Result<Vec<u8>, String> {
        let size = size as usize;
        let (bytes, elements): (&[u8], Vec<i64>) = match part {
            Part::Window { owner, window, datatype } => {
                let owner = self.owner(rank, *owner)?;
                (&self.world.memory[owner][*window], datatype.element_iter().collect())
            }
            Part::Operation { operation, first, count } => {
                let bytes = self.ranks[rank].sources.get(operation).ok_or("no such source")?;
                (bytes, (*first as i64..(first + count) as i64).collect())
            }
        };
        let mut read = Vec::new();
        for element in elements {
            let at = element as usize * size;
            read.extend_from_slice(bytes.get(at..at + size).ok_or("a read outside")?);
        }
        Ok(read)
    }

    fn write(
        &mut self,
        rank: usize,
        part: &Part,
        op: Option<fencepost_planner::element::Op>,
        element: ElementType,
        values: &[u8],
    ) -> Result<(), String> {
        let size = element.size as usize;
        let (bytes, elements): (&mut [u8], Vec<i64>) = match part {
            Part::Window { owner, window, datatype } => {
                let owner = self.owner(rank, *owner)?;
                (&mut self.world.memory[owner][*window], datatype.element_iter().collect())
            }
            Part::Operation { operation, first, count } => {
                let class = self.patterns.class_of[rank];
                let len = self.patterns.classes[class].operations[*operation].remote.size();
                let buffer =
                    self.ranks[rank].landed.entry(*operation).or_insert_with(|| vec![0xdd; len * size]);
                (buffer, (*first as i64..(first + count) as i64).collect())
            }
        };
        for (element_at, value) in elements.into_iter().zip(values.chunks(size)) {
            let at = element_at as usize * size;
            apply(op, element, bytes.get_mut(at..at + size).ok_or("a write outside")?, value);
        }
        Ok(())
    }
}
