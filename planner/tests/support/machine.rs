//! Runs the programs of a schedule on byte windows, one instruction of some rank at a time, in an order drawn from a
//! seed. It panics where a program breaks a rule of the schedule: a frame that is not what was awaited, a buffer that is
//! written before it was released, an element out of the length asked for, ranks that wait for each other.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{BufferId, Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::Kind;
use fencepost_planner::ir::schedule::{Frame, Instruction, Part, Schedule};
use fencepost_planner::reference::{Buffers, apply};
use fencepost_planner::table::Table;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A frame on its way, or open. Data stays in the sender's buffer until it is released.
#[derive(Clone, Debug)]
enum Flying {
    Entry(u64),
    Done(u64),
    Data { run: u64, buffer: BufferId, copy: usize, at: u64, bytes: u64 },
}

struct RankState {
    next: usize,
    run: u64,
    /// Each copy of each buffer, and the runs of the frames of it that are not released.
    buffers: Table<BufferId, Vec<(Vec<u8>, Vec<u64>)>>,
    open: HashMap<i64, Flying>,
}

/// All ranks, running.
pub struct Machine<'a> {
    schedule: &'a Schedule,
    pub memory: Vec<Table<WindowId, Vec<u8>>>,
    /// The slices given to puts, and the buffers that gets fill.
    pub operations: Vec<Buffers>,
    ranks: Vec<RankState>,
    channels: HashMap<(u32, u32), VecDeque<Flying>>,
    seed: u64,
}

impl<'a> Machine<'a> {
    pub fn new(
        schedule: &'a Schedule,
        memory: Vec<Table<WindowId, Vec<u8>>>,
        sources: &[Buffers],
        seed: u64,
    ) -> Self {
        let mut operations = sources.to_vec();
        let mut ranks = Vec::new();
        for (rank, class) in schedule.class_of.iter().enumerate() {
            let program = &schedule.classes[*class];
            for (id, operation) in program.pattern.operations.iter() {
                if operation.kind == Kind::Get {
                    let bytes = operation.remote.size() * schedule.windows[operation.window].size as usize;
                    operations[rank].entry(id).or_insert_with(|| vec![0xEE; bytes]);
                }
            }
            let buffers = program
                .buffers
                .values()
                .map(|buffer| vec![(vec![0xDD; buffer.bytes as usize], Vec::new()); buffer.copies as usize])
                .collect();
            ranks.push(RankState { next: 0, run: 0, buffers, open: HashMap::new() });
        }
        Self { schedule, memory, operations, ranks, channels: HashMap::new(), seed }
    }

    /// Run every program `runs` times; ranks may be in different runs.
    pub fn run(&mut self, runs: u64) {
        loop {
            let mut able: Vec<usize> =
                (0..self.ranks.len()).filter(|&rank| self.ranks[rank].run < runs).collect();
            if able.is_empty() {
                break;
            }
            while !able.is_empty() {
                self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let rank = able.swap_remove((self.seed >> 33) as usize % able.len());
                // A burst of a drawn length, so that some ranks run far ahead.
                let mut burst = 1 + (self.seed >> 20) % 13;
                let mut moved = false;
                while burst > 0 && self.ranks[rank].run < runs && self.step(rank) {
                    burst -= 1;
                    moved = true;
                }
                if moved {
                    able.clear();
                    able.push(usize::MAX);
                    break;
                }
            }
            let stuck = able.is_empty();
            assert!(
                !stuck,
                "ranks wait for each other at {:?}",
                self.ranks.iter().map(|r| (r.run, r.next)).collect::<Vec<_>>()
            );
        }
        let left: Vec<_> = self.channels.iter().filter(|(_, channel)| !channel.is_empty()).collect();
        assert!(left.is_empty(), "frames nobody takes: {left:?}");
        assert!(self.ranks.iter().all(|rank| rank.open.is_empty()), "a frame was never released");
    }

    /// One instruction, if it can be done now.
    fn step(&mut self, rank: usize) -> bool {
        let program = &self.schedule.classes[self.schedule.class_of[rank]];
        let Some(instruction) = program.instructions.get(self.ranks[rank].next) else {
            self.ranks[rank].next = 0;
            self.ranks[rank].run += 1;
            return true;
        };
        let run = self.ranks[rank].run;
        match instruction {
            Instruction::Expose { peer } => self.send(rank, *peer, Flying::Entry(run)),
            Instruction::Done { peer } => self.send(rank, *peer, Flying::Done(run)),
            Instruction::Reclaim { buffer } => {
                let copies = &self.ranks[rank].buffers[*buffer];
                if !copies[run as usize % copies.len()].1.is_empty() {
                    return false;
                }
            }
            Instruction::Pack { from, element, buffer, at } => {
                let bytes = self.read(rank, from, *element);
                let copies = &mut self.ranks[rank].buffers[*buffer];
                let which = run as usize % copies.len();
                let (copy, unreleased) = &mut copies[which];
                assert!(
                    unreleased.iter().all(|&sent| sent == run),
                    "a buffer is written before it is released"
                );
                copy[*at as usize..*at as usize + bytes.len()].copy_from_slice(&bytes);
            }
            Instruction::Send { buffer, at, bytes, .. } => {
                let peer = program.buffers[*buffer].peer;
                let copies = &mut self.ranks[rank].buffers[*buffer];
                let copy = run as usize % copies.len();
                copies[copy].1.push(run);
                let frame = Flying::Data { run, buffer: *buffer, copy, at: *at, bytes: *bytes };
                self.send(rank, peer, frame);
            }
            Instruction::Await { peer, frame } => {
                let from =
                    peer.from(Rank(rank as u32), self.ranks.len() as u32).expect("a peer of this world");
                let channel = self.channels.entry((from.0, rank as u32)).or_default();
                let Some(flying) = channel.pop_front() else { return false };
                match (frame, &flying) {
                    (Frame::Entry, Flying::Entry(sent)) | (Frame::Done, Flying::Done(sent)) => {
                        assert_eq!(*sent, run)
                    }
                    (Frame::Data { bytes }, Flying::Data { run: sent, bytes: came, .. }) => {
                        assert_eq!((*sent, came), (run, bytes));
                        let before = self.ranks[rank].open.insert(peer.0, flying);
                        assert!(before.is_none(), "two frames of one peer are open");
                    }
                    _ => panic!("rank {rank} awaits {frame:?} from {from}, and there is {flying:?}"),
                }
            }
            Instruction::Copy { from, to, op, element } => {
                let bytes = self.read(rank, from, element.size);
                self.write(rank, to, *op, *element, &bytes);
            }
            Instruction::Unpack { peer, at, to, op, element } => {
                let from =
                    peer.from(Rank(rank as u32), self.ranks.len() as u32).expect("a peer of this world");
                let Some(Flying::Data { buffer, copy, at: start, bytes, .. }) =
                    self.ranks[rank].open.get(&peer.0).cloned()
                else {
                    panic!("no frame of {from} is open")
                };
                let len = to.len() as u64 * u64::from(element.size);
                assert!(at + len <= bytes, "past the end of the frame");
                let first = (start + at) as usize;
                let bytes =
                    self.ranks[from.index()].buffers[buffer][copy].0[first..first + len as usize].to_vec();
                self.write(rank, to, *op, *element, &bytes);
            }
            Instruction::Release { peer } => {
                let from =
                    peer.from(Rank(rank as u32), self.ranks.len() as u32).expect("a peer of this world");
                let Some(Flying::Data { buffer, copy, .. }) = self.ranks[rank].open.remove(&peer.0) else {
                    panic!("no frame of {from} is open")
                };
                self.ranks[from.index()].buffers[buffer][copy].1.remove(0);
            }
        }
        self.ranks[rank].next += 1;
        true
    }

    fn send(&mut self, rank: usize, peer: Delta, frame: Flying) {
        let to = peer.from(Rank(rank as u32), self.ranks.len() as u32).expect("a peer of this world");
        self.channels.entry((rank as u32, to.0)).or_default().push_back(frame);
    }

    fn owner(&self, rank: usize, owner: Delta, window: WindowId, datatype: &Datatype) -> usize {
        let owner =
            owner.from(Rank(rank as u32), self.ranks.len() as u32).expect("a peer of this world").index();
        let asked = self.schedule.classes[self.schedule.class_of[owner]].least_len[window];
        assert!(
            datatype.low() >= 0 && datatype.high() as usize <= asked,
            "beyond the length that the program asks for"
        );
        owner
    }

    fn read(&self, rank: usize, part: &Part, size: u32) -> Vec<u8> {
        let size = size as usize;
        match part {
            Part::Window { owner, window, datatype } => {
                let owner = self.owner(rank, *owner, *window, datatype);
                let memory = &self.memory[owner][*window];
                datatype
                    .run_iter()
                    .flat_map(|(low, run)| memory[low as usize * size..(low as usize + run) * size].to_vec())
                    .collect()
            }
            Part::Operation { operation, first, count } => {
                self.operations[rank][operation][first * size..(first + count) * size].to_vec()
            }
        }
    }

    fn write(&mut self, rank: usize, part: &Part, op: Option<Op>, element: ElementType, bytes: &[u8]) {
        let size = element.size as usize;
        let mut values = bytes.chunks_exact(size);
        match part {
            Part::Window { owner, window, datatype } => {
                let owner = self.owner(rank, *owner, *window, datatype);
                let memory = &mut self.memory[owner][*window];
                for at in datatype.run_iter().flat_map(|(low, run)| low as usize..low as usize + run) {
                    let value = values.next().expect("as many elements on both sides");
                    apply(op, element, &mut memory[at * size..(at + 1) * size], value);
                }
                assert!(values.next().is_none(), "as many elements on both sides");
            }
            Part::Operation { operation, first, count } => {
                let buffer = self.operations[rank].get_mut(operation).expect("an operation with a buffer");
                buffer[first * size..(first + count) * size].copy_from_slice(bytes);
            }
        }
    }

    /// What landed in the buffers of gets.
    pub fn landed(&self) -> Vec<BTreeMap<OperationId, Vec<u8>>> {
        let is_get = |rank: usize, id: &OperationId| {
            let program = &self.schedule.classes[self.schedule.class_of[rank]];
            program.pattern.operations[*id].kind == Kind::Get
        };
        let of = |(rank, buffers): (usize, &Buffers)| {
            buffers
                .iter()
                .filter(|(id, _)| is_get(rank, id))
                .map(|(id, bytes)| (*id, bytes.clone()))
                .collect()
        };
        self.operations.iter().enumerate().map(of).collect()
    }
}
