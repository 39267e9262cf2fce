//! Runs every program of a small space, and compares its results with those of the reference
//! interpreter bit for bit.
//!
//! A *space* fixes the ranks, the windows, and for each rank an alphabet of operations, which are
//! called letters. The programs of a space are all ways to give each rank a list of letters, up to
//! a total number of letters. Two programs differ in the length of a list or in a letter at one
//! position. The letters of an alphabet differ (which is asserted), so no program comes twice.
//!
//! One world runs a whole space, with one epoch for each program. So each epoch also follows an
//! epoch with other neighbours, windows and kinds of operations. Every rank enumerates the same
//! programs. For each program, a rank stores the first values, calls its own operations, fences,
//! and compares its windows with the windows of the reference.

#![expect(clippy::print_stdout, reason = "the number of programs is part of the result")]

use fencepost::transport::SimConfig;
use fencepost::{
    __private::element_type, Census, Datatype, Element, Op, TransportKind, ValueAt, Window, World, ranks,
};
use fencepost_planner::ids::{Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use fencepost_tests_reference as reference;
use fencepost_tests_support::cases::every_case;
use fencepost_tests_worlds::play::issue;
use fencepost_tests_worlds::program::{first_bytes, slice_of};
use std::collections::{BTreeMap, HashSet};

/// All programs of up to `operations` operations.
struct Space {
    ranks: usize,
    windows: usize,
    len: usize,
    operations: usize,
    /// The operations that each rank may call, `[rank]`.
    alphabet: Vec<Vec<Operation>>,
}

/// The choices from which letters are made.
struct Letters<'a> {
    kinds: &'a [Kind],
    remotes: &'a [Datatype],
    sections: &'a [Datatype],
    nobody: bool,
}

impl Space {
    fn new(ranks: usize, windows: usize, len: usize, operations: usize, letters: &Letters<'_>) -> Self {
        let alphabet: Vec<Vec<Operation>> =
            (0..ranks).map(|rank| letters.alphabet(rank, ranks, windows)).collect();
        for letters in &alphabet {
            assert_eq!(letters.iter().collect::<HashSet<_>>().len(), letters.len(), "a letter comes twice");
        }
        Self { ranks, windows, len, operations, alphabet }
    }

    /// Calls `visit` with every program. A program has a list of letters for each rank.
    fn walk(&self, mut visit: impl FnMut(&[Vec<usize>])) {
        for total in 0..=self.operations {
            self.lengths(total, &mut vec![0; self.ranks], 0, &mut |lengths| {
                let mut program: Vec<Vec<usize>> = lengths.iter().map(|&length| vec![0; length]).collect();
                loop {
                    visit(&program);
                    // Increments the first letter that is not the last of its alphabet, and resets
                    // the letters before it.
                    let next = program
                        .iter_mut()
                        .enumerate()
                        .flat_map(|(rank, list)| list.iter_mut().map(move |letter| (rank, letter)));
                    let mut counted = false;
                    for (rank, letter) in next {
                        *letter += 1;
                        if *letter < self.alphabet[rank].len() {
                            counted = true;
                            break;
                        }
                        *letter = 0;
                    }
                    if !counted {
                        return;
                    }
                }
            });
        }
    }

    /// Enumerates the ways to distribute `left` operations over the ranks from `rank` on.
    fn lengths(&self, left: usize, lengths: &mut Vec<usize>, rank: usize, visit: &mut impl FnMut(&[usize])) {
        if rank + 1 == self.ranks {
            lengths[rank] = left;
            visit(lengths);
            return;
        }
        for here in 0..=left {
            lengths[rank] = here;
            self.lengths(left - here, lengths, rank + 1, visit);
        }
    }
}

impl Letters<'_> {
    fn alphabet(&self, rank: usize, ranks: usize, windows: usize) -> Vec<Operation> {
        let mut letters = Vec::new();
        let targets = (0..ranks).map(Some).chain(self.nobody.then_some(None));
        for target in targets {
            for (&kind, window) in self.kinds.iter().flat_map(|kind| (0..windows).map(move |w| (kind, w))) {
                for remote in self.remotes {
                    let fitting = self.sections.iter().filter(|section| section.size() == remote.size());
                    let locals = fitting.flat_map(|section| {
                        (0..windows)
                            .map(|w| Local::Section { window: WindowId::new(w), datatype: section.clone() })
                    });
                    for local in std::iter::once(Local::Buffer).chain(locals) {
                        letters.push(Operation {
                            kind,
                            window: WindowId::new(window),
                            target: target.map(|target| Delta::between(Rank::new(rank), Rank::new(target))),
                            remote: remote.clone(),
                            local,
                            mode: Mode::Auto,
                            site: Site::default(),
                        });
                    }
                }
            }
        }
        letters
    }
}

/// Runs each `every`th program of `space` in one world. Returns the number of programs that ran.
fn run<T: Element>(space: &Space, transport: TransportKind, every: usize) -> usize {
    Census::ALL.map(|census| run_with::<T>(space, transport.clone(), census, every))[0]
}

fn run_with<T: Element>(space: &Space, transport: TransportKind, census: Census, every: usize) -> usize {
    let done: Vec<usize> = ranks(space.ranks)
        .transport(transport)
        .census(census)
        .collect(|world| {
            if space.windows == 1 { one::<T>(space, world, every) } else { two::<T>(space, world, every) }
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(done.iter().all(|&count| count == done[0]), "{done:?}");
    done[0]
}

fn one<T: Element>(space: &Space, world: &World, every: usize) -> fencepost::Result<usize> {
    let mut windows = [world.window::<T>(space.len)?];
    each(space, world, every, &mut windows, |_, [u]| u.fence())
}

fn two<T: Element>(space: &Space, world: &World, every: usize) -> fencepost::Result<usize> {
    let mut windows = [world.window::<T>(space.len)?, world.window::<T>(space.len)?];
    each(space, world, every, &mut windows, |world, [u, v]| world.fence((u, v)))
}

fn each<T: Element, const N: usize>(
    space: &Space,
    world: &World,
    every: usize,
    windows: &mut [Window<T>; N],
    mut fence: impl FnMut(&World, &mut [Window<T>; N]) -> fencepost::Result<()>,
) -> fencepost::Result<usize> {
    let me = world.rank();
    let element = element_type::<T>();
    let memory = (0..space.ranks)
        .map(|rank| (0..N).map(|w| first_bytes(rank, w, element, space.len)).collect())
        .collect();
    let first = reference::World { element: (0..N).map(|_| element).collect(), memory };
    let (mut seen, mut done) = (0, 0);
    let mut result = Ok(());
    space.walk(|program| {
        seen += 1;
        if seen % every != 0 || result.is_err() {
            return;
        }
        let asked = |rank: usize, i: usize| &space.alphabet[rank][program[rank][i]];
        // The result according to the reference.
        let mut law = reference::Epoch::default();
        for (rank, list) in program.iter().enumerate() {
            let operations = (0..list.len()).map(|i| asked(rank, i).clone()).collect();
            let sources = (0..list.len())
                .filter(|&i| slices(asked(rank, i)))
                .map(|i| (OperationId::new(i), slice_of(0, rank, i, element, asked(rank, i).remote.size())));
            law.sources.push(sources.collect());
            law.patterns.push(Pattern { operations });
        }
        let mut expected = first.clone();
        let landed = reference::run(&mut expected, &law).expect("the alphabet fits");
        // The result of the epoch.
        for (w, window) in windows.iter_mut().enumerate() {
            bytes_mut(window).copy_from_slice(&first.memory[me][WindowId::new(w)]);
        }
        let mut tickets = BTreeMap::new();
        for i in 0..program[me].len() {
            let operation = asked(me, i);
            let target = operation.target.map(|delta| (me as i64 + delta.0) as usize);
            let window = &windows[operation.window.index()];
            let section = match &operation.local {
                Local::Buffer => None,
                Local::Section { window, datatype } => Some(windows[window.index()].section(datatype)),
            };
            let slice = slice_of(0, me, i, element, operation.remote.size());
            match issue(window, section, operation, target, &slice) {
                Ok(Some(ticket)) if target.is_some() => drop(tickets.insert(OperationId::new(i), ticket)),
                Ok(_) => {}
                Err(error) => return result = Err(error),
            }
        }
        result = fence(world, windows);
        if result.is_err() {
            return;
        }
        for (w, window) in windows.iter_mut().enumerate() {
            let (found, expected) = (&*bytes_mut(window), &expected.memory[me][WindowId::new(w)]);
            assert!(
                found == expected,
                "rank {me}, window {w}: {found:?}, not {expected:?}, of {}",
                text(space, program)
            );
        }
        for (operation, bytes) in &landed[me] {
            let Some(ticket) = tickets.remove(operation) else { continue };
            let found = ticket.take().expect("a ticket is full after its fence");
            let found: &[u8] = bytemuck::cast_slice(&found);
            assert!(
                found == bytes,
                "rank {me}, {operation}: {found:?}, not {bytes:?}, of {}",
                text(space, program)
            );
        }
        assert!(tickets.is_empty(), "the reference has no answer to a get of {}", text(space, program));
        done += 1;
    });
    result.map(|()| done)
}

/// Returns whether the source is a slice.
fn slices(operation: &Operation) -> bool {
    operation.local == Local::Buffer && operation.kind != Kind::Get
}

fn bytes_mut<T: Element>(window: &mut Window<T>) -> &mut [u8] {
    bytemuck::cast_slice_mut(window)
}

fn text(space: &Space, program: &[Vec<usize>]) -> String {
    use std::fmt::Write;
    let mut text = format!("{} ranks, {} windows of {}:", space.ranks, space.windows, space.len);
    for (rank, list) in program.iter().enumerate() {
        for &letter in list {
            let operation = &space.alphabet[rank][letter];
            let _ = write!(
                text,
                "\n  rank {rank}: {:?} on window {} of {:?}, elements {}, from or into {:?}",
                operation.kind, operation.window, operation.target, operation.remote, operation.local
            );
        }
    }
    text
}

fn acc(op: Op) -> Kind {
    Kind::Accumulate(op)
}

fn runs(len: usize) -> Vec<Datatype> {
    (0..len).flat_map(|low| (low + 1..=len).map(move |high| Datatype::run(low..high))).collect()
}

/// Runs every n-th program of a space. Returns and prints the number of programs.
type Run = fn(&Space, TransportKind, usize) -> usize;

#[test]
fn every_program_of_a_small_space_does_what_the_reference_does() {
    let one = [Datatype::run(0..1)];
    let pair =
        [Datatype::run(0..1), Datatype::run(1..2), Datatype::run(0..2), Datatype::elements([1, 0]).unwrap()];
    let mut triple = runs(3);
    triple.extend([
        Datatype::elements([2, 1, 0]).unwrap(),
        Datatype::elements([0, 2]).unwrap(),
        Datatype::elements([1, 1]).unwrap(),
    ]);
    let sections = [
        Datatype::run(0..1),
        Datatype::run(2..3),
        Datatype::run(0..2),
        Datatype::run(1..3),
        Datatype::run(0..3),
    ];
    let moves = [Kind::Put, Kind::Get, acc(Op::Sum)];
    let mut every_kind = vec![Kind::Put, Kind::Get];
    every_kind.extend(Op::ALL.into_iter().filter(|op| op.takes(element_type::<i32>())).map(acc));
    let near = [Kind::Put, Kind::Get, acc(Op::Sum), acc(Op::Max)];
    let located = [Kind::Put, Kind::Get, acc(Op::MinLoc), acc(Op::MaxLoc), acc(Op::Replace)];

    let letters = |kinds, remotes, sections| Letters { kinds, remotes, sections, nobody: true };
    let spaces: [(&str, Space, Run); 6] = [
        ("sections and overlaps, f64", Space::new(2, 1, 2, 2, &letters(&near, &pair, &pair)), run::<f64>),
        ("every operator, i32", Space::new(3, 1, 1, 2, &letters(&every_kind, &one, &one)), run::<i32>),
        ("two windows, f32", Space::new(2, 2, 1, 2, &letters(&near, &one, &one)), run::<f32>),
        (
            "three in a row, f64",
            Space::new(3, 1, 1, 3, &Letters { nobody: false, ..letters(&moves, &one, &one) }),
            run::<f64>,
        ),
        (
            "elements of sixteen bytes",
            Space::new(2, 1, 1, 2, &letters(&located, &one, &one)),
            run::<ValueAt<f64, i64>>,
        ),
        (
            "three elements, u8",
            Space::new(2, 1, 3, 2, &Letters { nobody: false, ..letters(&moves, &triple, &sections) }),
            run::<u8>,
        ),
    ];
    // For `local`, `shm` and `sim`: one program in this number of programs is run.
    let every = if every_case() { [1, 13, 17] } else { [11, 127, 173] };
    let mut total = [0; 2];
    for (seed, (name, space, run)) in spaces.iter().enumerate() {
        let sim = SimConfig { seed: seed as u64, ..SimConfig::default() };
        run(space, TransportKind::ShmThreads, every[1]);
        let counts =
            [run(space, TransportKind::Local, every[0]), run(space, TransportKind::Sim(sim), every[2])];
        println!("{name}: {} programs, {} of them on sim too", counts[0], counts[1]);
        total = [total[0] + counts[0], total[1] + counts[1]];
    }
    println!("{} distinct programs on local, {} of them on sim too", total[0], total[1]);
    assert!(total[0] * every[0] >= 100_000 && total[1] * every[2] >= 160_000, "{total:?}");
}
