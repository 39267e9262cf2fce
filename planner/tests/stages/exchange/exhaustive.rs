//! All programs of two ranks with at most two operations, from a small alphabet of shapes.

use super::*;

/// The calls of one rank around its operations.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The ranks to which the rank posts, as bits.
    sources: u32,
    /// The ranks on which the rank starts an access, as bits.
    targets: u32,
    /// Whether the access comes before the post, and whether the access ends after the wait.
    first: bool,
    last: bool,
}

fn bits(mask: u32) -> Vec<u32> {
    (0..2).filter(|rank| mask >> rank & 1 == 1).collect()
}

fn shapes() -> Vec<Shape> {
    let mut all = Vec::new();
    for (sources, targets) in (0..4).flat_map(|sources| (0..4).map(move |targets| (sources, targets))) {
        for (first, last) in [(false, false), (true, false), (false, true), (true, true)] {
            all.push(Shape { sources, targets, first, last });
        }
    }
    all
}

/// Returns the lists of operations of a rank. Each operation is a put, a sum or a get at one of the
/// two ranks.
fn operations() -> Vec<Vec<(usize, u32)>> {
    let one: Vec<(usize, u32)> = (0..3).flat_map(|kind| (0..2).map(move |target| (kind, target))).collect();
    let two = one.iter().flat_map(|a| one.iter().map(|b| vec![*a, *b]));
    [vec![]].into_iter().chain(one.iter().map(|a| vec![*a])).chain(two).collect()
}

fn write(program: &mut Program, shape: Shape, operations: &[(usize, u32)], value: i32) {
    let mut start = None;
    if shape.first {
        start = Some(program.start(&bits(shape.targets)));
    }
    program.post(&bits(shape.sources));
    let start = start.unwrap_or_else(|| program.start(&bits(shape.targets)));
    for (at, &(kind, target)) in operations.iter().enumerate() {
        match kind {
            0 => program.put(start, target, 0, &[value + at as i32]),
            1 => program.add(start, target, 0, &[10 * (value + at as i32)]),
            _ => program.get(start, target, 0, 1),
        };
    }
    if shape.last {
        program.wait();
        program.complete(start);
    } else {
        program.complete(start);
        program.wait();
    }
    program.load(0);
}

#[test]
fn two_ranks_and_two_operations_in_all_shapes_do_what_small_steps_do() {
    let (mut all, mut stalls) = (0, 0);
    let operations = operations();
    for a in shapes() {
        for b in shapes() {
            // The pairs of lists that have at most two operations together.
            for (mine, theirs) in operations.iter().flat_map(|a| operations.iter().map(move |b| (a, b))) {
                // Only an eighth of these pairs of lists runs. The two shapes determine which
                // eighth.
                let number = all;
                if mine.len() + theirs.len() > 2 {
                    continue;
                }
                all += 1;
                if number % 8 != (a.sources + b.targets) as usize % 8 {
                    continue;
                }
                let mut ranks = programs::<2>();
                write(&mut ranks[0], a, mine, 3);
                write(&mut ranks[1], b, theirs, 5);
                let programs: Vec<Vec<Call>> = ranks.iter().map(|rank| rank.calls.clone()).collect();
                let (mut w, mut small) = (world(2, 1), world(2, 1));
                let outcomes = exchange(&mut w, &programs).unwrap();
                let found = small_steps::run(&mut small, &programs, number as u64);
                assert_eq!((&found, &small), (&outcomes, &w), "{a:?} {mine:?}, {b:?} {theirs:?}");
                stalls += usize::from(outcomes.iter().flatten().any(|o| matches!(o, Outcome::Stalled(_))));
            }
        }
    }
    assert!(all > 300_000 && stalls > 10_000, "{all} programs, {stalls} of those that were run stall");
}
