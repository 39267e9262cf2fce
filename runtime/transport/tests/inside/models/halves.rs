//! Models of a superstep in two halves, and of the elements that a rank keeps between the halves.
//! The models execute schedules that the planner has compiled. Two ranks execute a schedule over
//! the queues of frames, in every order of their steps.
//!
//! A rank runs its program up to the first step that would wait. It then reads and writes all
//! elements that it keeps according to the planner's [`Kept`], and runs the rest of the program.
//! Every element is a cell of loom. So if the other rank touches an element that is kept, loom
//! reports a causality violation. To show this, further models also let the rank use one element
//! that the other rank touches.
//!
//! If ranks exchange messages, each rank touches only its own window, in the order of its own
//! program. In this case the use of an element that is not kept is not a race, but the value of
//! that element depends on the order of the ranks.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Patterns};
use fencepost_planner::ir::schedule::{self, Instruction, Part, Placement, Program};
use fencepost_planner::kept::Kept;
use fencepost_planner::{Machine, Options, compile};
use loom::cell::UnsafeCell;
use loom::thread;

use super::{load, model, pair, rejected, store};
use crate::sync::Arc;
use crate::{Channels, Frame, Header, LocalEnd, Port, Topology};

/// The number of elements of each rank's window.
const LEN: usize = 6;
const WINDOW: WindowId = WindowId(0);

const ENTRY: u32 = 1;
const DATA: u32 = 2;
const DONE: u32 = 3;

/// The calls of two ranks. No call names elements 4 and 5.
const PUT: &str = "class c0\n put w0 0..1 -> +1 w0 1..2\nclass c1\n put w0 0..1 -> -1 w0 1..2";
const GET: &str = "class c0\n get +1 w0 2..3 -> w0 3..4\nclass c1\n get -1 w0 2..3 -> w0 3..4";
const BOTH: &str = "class c0\n put w0 0..1 -> +1 w0 1..2\n get +1 w0 2..3 -> w0 3..4\nclass c1";
const CROSSED: &str = "class c0\n put w0 0..2 -> +1 w0 2..4\nclass c1\n get -1 w0 0..1 -> w0 0..1";

/// A superstep of two ranks: the program of each rank, and the elements that each rank keeps.
struct Superstep {
    programs: [Program; 2],
    kept: [Kept; 2],
}

impl Superstep {
    fn new(calls: &str, mode: Mode) -> Self {
        let text = format!("superstep halves\nwindow w0 u64\nshape 2\n{calls}\nranks c0 c1\n");
        let patterns: Patterns = text.parse().expect("patterns");
        let options = Options { mode, ..Options::default() };
        let schedule = compile(&patterns, Placement::Together, &Machine::default(), &options);
        let schedule = schedule.expect("a schedule");
        let program = |rank: usize| schedule.classes[schedule.class_of[rank]].clone();
        Self { programs: [0, 1].map(program), kept: [0, 1].map(|rank| Kept::of(&schedule, Rank::new(rank))) }
    }

    /// Returns whether the rank keeps this element, for writing if `writes` and otherwise for
    /// reading.
    fn keeps(&self, rank: usize, element: usize, writes: bool) -> bool {
        self.kept[rank].conflict(WINDOW, &Datatype::run(element..element + 1), writes).is_none()
    }

    /// Returns whether the other rank touches the element with an access that conflicts with this
    /// use.
    fn races(&self, TooMany { rank, element, writes }: TooMany) -> bool {
        self.kept[rank].accesses.iter().any(|access| {
            access.origin != Rank::new(rank)
                && (access.writes || writes)
                && access.elements.overlaps(&Datatype::run(element..element + 1))
        })
    }

    /// Returns the final value of each element of both ranks, if ranks store to kept elements only.
    fn expected(&self) -> [[u64; LEN]; 2] {
        let first = [0, 1].map(|rank| std::array::from_fn(|element| stored(rank, element)));
        let mut last: [[u64; LEN]; 2] = first;
        for (rank, program) in self.programs.iter().enumerate() {
            for call in program.pattern.operations.values() {
                let Some(target) = call.target else { continue };
                let Local::Section { datatype, .. } = &call.local else {
                    continue;
                };
                let peer = peer(rank, target);
                for (mine, theirs) in datatype.element_iter().zip(call.remote.element_iter()) {
                    let (mine, theirs) = ((rank, mine as usize), (peer, theirs as usize));
                    let is_get = call.kind == Kind::Get;
                    let (from, to) = if is_get { (theirs, mine) } else { (mine, theirs) };
                    last[to.0][to.1] = first[from.0][from.1];
                }
            }
        }
        for (rank, window) in last.iter_mut().enumerate() {
            for (element, value) in window.iter_mut().enumerate() {
                *value += u64::from(self.keeps(rank, element, true));
            }
        }
        last
    }
}

/// Returns the initial value of an element.
fn stored(rank: usize, element: usize) -> u64 {
    100 * (rank as u64 + 1) + 10 * element as u64
}

fn peer(rank: usize, by: Delta) -> usize {
    (rank as i64 + by.0) as usize
}

/// The use of an element that the rank does not keep.
#[derive(Clone, Copy, Debug)]
struct TooMany {
    rank: usize,
    element: usize,
    writes: bool,
}

/// Returns all possible uses of elements that are not kept.
fn too_many(superstep: &Superstep) -> impl Iterator<Item = TooMany> + '_ {
    let each = |rank| (0..LEN).flat_map(move |element| [(rank, element, false), (rank, element, true)]);
    (0..2)
        .flat_map(each)
        .filter(|&(rank, element, writes)| !superstep.keeps(rank, element, writes))
        .map(|(rank, element, writes)| TooMany { rank, element, writes })
}

type Cells = Vec<UnsafeCell<u64>>;

struct Memory {
    windows: [Cells; 2],
    /// The buffers, by `[rank][buffer]`.
    buffers: [Vec<Cells>; 2],
}

/// A rank that executes its program.
struct Run<'m> {
    rank: usize,
    program: &'m Program,
    memory: &'m Memory,
    end: &'m mut LocalEnd,
    at: usize,
    open: Option<Frame>,
}

impl Run<'_> {
    /// Runs the rest of the program. Stops before the first step that would wait, unless `waits`.
    fn go(&mut self, waits: bool) {
        while let Some(instruction) = self.program.instructions.get(self.at) {
            if !self.step(instruction) {
                if !waits {
                    return;
                }
                thread::yield_now();
                continue;
            }
            self.at += 1;
        }
    }

    /// Runs one step. Returns `false` if the step has to wait.
    fn step(&mut self, instruction: &Instruction) -> bool {
        match instruction {
            Instruction::Expose { peer } => self.post(*peer, ENTRY, &[]),
            Instruction::Done { peer } => self.post(*peer, DONE, &[]),
            Instruction::Await { peer, frame } => return self.awaits(*peer, frame),
            Instruction::Reclaim { .. } => {} // the first run
            Instruction::Copy { from, to, op: None, .. } => {
                for (from, to) in self.cells(from).into_iter().zip(self.cells(to)) {
                    store(to, load(from));
                }
            }
            Instruction::Pack { from, buffer, at, .. } => {
                let to = &self.memory.buffers[self.rank][buffer.index()][*at as usize / 8..];
                for (from, to) in self.cells(from).into_iter().zip(to) {
                    store(to, load(from));
                }
            }
            Instruction::Send { buffer, at, bytes, .. } => {
                let first = *at as usize / 8;
                let cells = &self.memory.buffers[self.rank][buffer.index()];
                let peer = self.program.buffers[*buffer].peer;
                self.post(peer, DATA, &cells[first..first + *bytes as usize / 8]);
            }
            Instruction::Unpack { at, to, op: None, .. } => {
                let frame = self.open.expect("an open frame");
                // SAFETY: the payload consists of cells of buffers, which live as long as the
                // model.
                let from = unsafe {
                    std::slice::from_raw_parts(
                        frame.payload.cast::<UnsafeCell<u64>>(),
                        frame.len / size_of::<UnsafeCell<u64>>(),
                    )
                };
                for (from, to) in from[*at as usize / 8..].iter().zip(self.cells(to)) {
                    store(to, load(from));
                }
            }
            Instruction::Release { peer } => {
                self.open = None;
                self.end.release(self.peer(*peer), Port::FENCE);
            }
            other => panic!("no schedule of these has {other:?}"),
        }
        true
    }

    fn peer(&self, by: Delta) -> usize {
        peer(self.rank, by)
    }

    fn post(&mut self, to: Delta, kind: u32, payload: &[UnsafeCell<u64>]) {
        let header = Header { word: 1, kind, extra: 0 };
        let to = self.peer(to);
        // SAFETY: the payload lives as long as the model. The model tests whether it stays
        // unchanged.
        unsafe {
            self.end.post(
                to,
                Port::FENCE,
                Frame { header, payload: payload.as_ptr().cast(), len: size_of_val(payload) },
            )
        }
        .expect("the reader is here");
    }

    fn awaits(&mut self, from: Delta, frame: &schedule::Frame) -> bool {
        let from = self.peer(from);
        let Some(arrived) = self.end.poll(from, Port::FENCE).expect("the sender is here") else {
            return false;
        };
        let kind = match frame {
            schedule::Frame::Entry => ENTRY,
            schedule::Frame::Data { .. } => DATA,
            schedule::Frame::Done => DONE,
        };
        assert_eq!(arrived.header.kind, kind);
        if kind == DATA {
            self.open = Some(arrived);
        } else {
            self.end.release(from, Port::FENCE);
        }
        true
    }

    /// Returns the cells of a part.
    fn cells(&self, part: &Part) -> Vec<&UnsafeCell<u64>> {
        let Part::Window { owner, datatype, .. } = part else { panic!("all is in windows") };
        let window = &self.memory.windows[peer(self.rank, *owner)];
        datatype.element_iter().map(|element| &window[element as usize]).collect()
    }
}

/// Runs both halves of the superstep on one rank. Between the halves the rank uses the elements
/// that it keeps, and the element `too_many`.
fn rank(end: &mut LocalEnd, superstep: &Superstep, memory: &Memory, too_many: Option<TooMany>) {
    let rank = end.rank();
    let mut run = Run { rank, program: &superstep.programs[rank], memory, end, at: 0, open: None };
    run.go(false);
    for (element, cell) in memory.windows[rank].iter().enumerate() {
        let more = too_many.filter(|more| more.rank == rank && more.element == element);
        let keeps =
            |writes| superstep.keeps(rank, element, writes) || more.is_some_and(|m| m.writes == writes);
        if keeps(true) {
            store(cell, stored(rank, element) + 1);
        } else if keeps(false) {
            let value = load(cell);
            assert!(
                more.is_some() || value == stored(rank, element),
                "element {element} of rank {rank}: {value}"
            );
        }
    }
    run.go(true);
    if too_many.is_some() {
        return; // the value of that element depends on the order
    }
    // The window belongs to the rank again.
    let expected = superstep.expected();
    for (element, cell) in memory.windows[rank].iter().enumerate() {
        assert_eq!(load(cell), expected[rank][element], "element {element} of rank {rank}");
    }
}

fn halves(superstep: &Arc<Superstep>, too_many: Option<TooMany>) {
    let cells = |rank: usize| (0..LEN).map(|element| UnsafeCell::new(stored(rank, element))).collect();
    let buffers = |program: &Program| {
        let cells = |bytes: u64| (0..bytes / 8).map(|_| UnsafeCell::new(0)).collect();
        program.buffers.values().map(|buffer| cells(buffer.bytes)).collect()
    };
    let buffers = superstep.programs.each_ref().map(buffers);
    let memory = Arc::new(Memory { windows: [0, 1].map(cells), buffers });
    let (mut first, mut second) = pair();
    let (others, same) = (Arc::clone(&memory), superstep.clone());
    let other = thread::spawn(move || {
        rank(&mut second, &same, &others, too_many);
        drop(others);
        second
    });
    rank(&mut first, superstep, &memory, too_many);
    drop((first, other.join().expect("a panic ends the model")));
}

const ALL: [&str; 4] = [PUT, GET, BOTH, CROSSED];

#[test]
fn what_is_kept_is_used_between_the_halves_in_every_mode() {
    for calls in ALL {
        for mode in [Mode::Direct, Mode::Aggregated] {
            let superstep = Arc::new(Superstep::new(calls, mode));
            model(2, move || halves(&superstep, None));
        }
    }
}

/// A rank's own copies do not conflict with its uses, because the rank makes them in the order of
/// its program.
#[test]
fn one_element_too_many_is_caught_at_every_element_that_the_other_rank_touches() {
    let (mut caught, mut own) = (0, 0);
    for calls in ALL {
        let superstep = Arc::new(Superstep::new(calls, Mode::Direct));
        for too_many in too_many(&superstep) {
            let (races, superstep) = (superstep.races(too_many), superstep.clone());
            let run = move || halves(&superstep, Some(too_many));
            if races {
                let complaint = rejected(3, run);
                assert!(complaint.contains("Causality violation"), "{calls}, {too_many:?}: {complaint}");
                caught += 1;
            } else {
                model(1, run);
                own += 1;
            }
        }
    }
    assert_eq!((caught, own), (14, 12));
}

#[test]
fn of_messages_an_element_too_many_is_no_race() {
    for calls in [PUT, GET] {
        let superstep = Arc::new(Superstep::new(calls, Mode::Aggregated));
        for too_many in too_many(&superstep) {
            let superstep = superstep.clone();
            model(1, move || halves(&superstep, Some(too_many)));
        }
    }
}
