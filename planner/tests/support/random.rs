//! Random epochs of small worlds, and halos of large ones.

use super::{intern, operation, patterns};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{Delta, Id, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Order, Patterns};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::units::Bytes;
use fencepost_planner::{Options, compile};
use fencepost_tests_reference::World;
use fencepost_tests_support::random::Random;

/// Returns one of a few values that make differences between operators visible.
pub fn value(element: ElementType, dice: &mut Random) -> Vec<u8> {
    let number = dice.below(9) as i64 - 3;
    let odd = [f64::NAN, -0.0, f64::INFINITY, 1e300, 0.1, 1e-9];
    let scalar = |scalar: Scalar, dice: &mut Random| match scalar {
        Scalar::F64 => {
            let number = if dice.once_in(4) { dice.one_of(&odd) } else { number as f64 * 0.3 };
            number.to_ne_bytes().to_vec()
        }
        Scalar::F32 => {
            let number = if dice.once_in(4) { dice.one_of(&odd) as f32 } else { number as f32 * 0.3 };
            number.to_ne_bytes().to_vec()
        }
        scalar => number.to_ne_bytes()[..scalar.size() as usize].to_vec(),
    };
    match element.kind {
        ElementKind::Scalar(kind) => scalar(kind, dice),
        ElementKind::ValueAt(value, at) => [scalar(value, dice), scalar(at, dice)].concat(),
        ElementKind::Opaque => (0..element.size).map(|_| dice.below(256) as u8).collect(),
    }
}

/// Returns filled windows of `ranks` ranks, all of one length.
pub fn world(windows: &[ElementType], ranks: usize, len: usize, seed: u64) -> World {
    let mut dice = Random::new(seed);
    let fill =
        |element: &ElementType, dice: &mut Random| (0..len).flat_map(|_| value(*element, dice)).collect();
    let memory =
        (0..ranks).map(|_| windows.iter().map(|element| fill(element, &mut dice)).collect()).collect();
    World { element: windows.iter().copied().collect(), memory }
}

/// Draws `count` elements of `0..len` in some order, some of them twice.
fn datatype(dice: &mut Random, len: usize, count: usize) -> Datatype {
    let any = |dice: &mut Random| {
        Datatype::elements((0..count).map(|_| dice.below(len) as i64).collect::<Vec<_>>()).unwrap()
    };
    match dice.below(4) {
        0 if count <= len => {
            let first = dice.below(len - count + 1);
            Datatype::run(first..first + count)
        }
        1 if count > 0 && 2 * count <= len => {
            let first = dice.below(len - 2 * count + 1) as i64;
            Datatype::nest(first, &[(count, 2)], 1).unwrap()
        }
        2 if count > 0 && count <= len => {
            let last = count - 1 + dice.below(len - count + 1);
            Datatype::nest(last as i64, &[(count, -1)], 1).unwrap()
        }
        _ => any(dice),
    }
}

/// The length of every window of [`epoch`].
pub const LEN: usize = 12;

/// Draws an epoch of at most 5 ranks, whose windows hold [`LEN`] elements.
pub fn epoch(seed: u64) -> Patterns {
    let mut dice = Random::new(seed);
    let types = [
        ElementType::scalar(Scalar::I32),
        ElementType::scalar(Scalar::F64),
        ElementType::scalar(Scalar::U8),
        ElementType { size: 12, kind: ElementKind::ValueAt(Scalar::F64, Scalar::I32) },
        ElementType::opaque(3),
    ];
    let windows: Vec<ElementType> = (0..1 + dice.below(3)).map(|_| dice.one_of(&types)).collect();
    let ranks = 1 + dice.below(5);
    let order = if dice.once_in(4) { Order::Relaxed } else { Order::Canonical };
    let most = 1 + dice.below(4);
    let all = (0..ranks)
        .map(|rank| (0..dice.below(most + 1)).map(|_| one(&mut dice, &windows, ranks, rank)).collect())
        .collect();
    intern(patterns(&windows, order, all))
}

fn one(
    dice: &mut Random,
    windows: &[ElementType],
    ranks: usize,
    rank: usize,
) -> fencepost_planner::ir::pattern::Operation {
    let window = dice.below(windows.len());
    let element = windows[window];
    let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(element)).collect();
    let kind = match dice.below(3) {
        0 => Kind::Get,
        1 => Kind::Put,
        _ => Kind::Accumulate(dice.one_of(&ops)),
    };
    let count = if dice.once_in(8) { 0 } else { 1 + dice.below(5) };
    let remote = datatype(dice, LEN, count);
    let like: Vec<usize> = (0..windows.len()).filter(|other| windows[*other] == element).collect();
    let local = if dice.once_in(2) {
        Local::Buffer
    } else {
        Local::Section { window: WindowId::new(dice.one_of(&like)), datatype: datatype(dice, LEN, count) }
    };
    let target = dice.below(ranks) as i64 - rank as i64;
    let mut made = operation(kind, target, remote, local);
    made.window = WindowId::new(window);
    made.target = if dice.once_in(12) { None } else { Some(Delta(target)) };
    made.site.line = 10 + dice.below(90) as u32;
    made
}

/// Returns a halo exchange on a grid of `rows` by `columns` ranks. Each rank has a block of
/// `height[row]` by `width[column]` elements within a border of width one. The exchange is with all
/// eight neighbours if `corners`, and otherwise with four. The grid wraps around if `wrap`.
pub fn halo(height: &[usize], width: &[usize], corners: bool, wrap: bool) -> Patterns {
    let (rows, columns) = (height.len() as i64, width.len() as i64);
    let block = |h: usize, w: usize, row: usize, column: usize, down: usize, across: usize| {
        Datatype::subarray(&[h + 2, w + 2], &[row, column], &[down, across]).expect("inside the block")
    };
    let one = |row: i64, column: i64| {
        let (h, w) = (height[row as usize], width[column as usize]);
        let mut all = Vec::new();
        for (down, across) in (-1..=1).flat_map(|down| (-1..=1).map(move |across| (down, across))) {
            let straight = i64::abs(down) + i64::abs(across);
            if straight == 0 || straight == 2 && !corners {
                continue;
            }
            let (mut there, mut across_there) = (row + down, column + across);
            if wrap {
                (there, across_there) = (there.rem_euclid(rows), across_there.rem_euclid(columns));
            } else if there < 0 || there >= rows || across_there < 0 || across_there >= columns {
                continue;
            }
            let (their_h, their_w) = (height[there as usize], width[across_there as usize]);
            // The first index and the length, in one dimension, of the edge towards a neighbour,
            // and of the part of the neighbour's border that this edge fills.
            let edge = |by: i64, len: usize| match by {
                -1 => (1, 1),
                0 => (1, len),
                _ => (len, 1),
            };
            let border = |by: i64, len: usize| match by {
                -1 => (len + 1, 1),
                0 => (1, len),
                _ => (0, 1),
            };
            let ((r, tall), (c, wide)) = (edge(down, h), edge(across, w));
            let local = block(h, w, r, c, tall, wide);
            let ((r, tall), (c, wide)) = (border(down, their_h), border(across, their_w));
            let remote = block(their_h, their_w, r, c, tall, wide);
            let target = there * columns + across_there - (row * columns + column);
            let section = Local::Section { window: WindowId(0), datatype: local };
            all.push(operation(Kind::Put, target, remote, section));
        }
        all
    };
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let mut made = patterns(
        &[ElementType::scalar(Scalar::F64)],
        Order::Canonical,
        all.map(|(r, c)| one(r, c)).collect(),
    );
    made.shape = vec![rows as u32, columns as u32];
    made
}

/// Returns the schedule of these choices. Every third seed permits only half of the staging that
/// the schedule would have otherwise.
pub fn compiled(patterns: &Patterns, placement: Placement, options: &Options, seed: u64) -> Schedule {
    let compiled = |options: &Options| {
        compile(patterns, placement, &Machine::default(), options)
            .unwrap_or_else(|error| panic!("seed {seed}, {placement:?}, {options:?}: {error}"))
            .into_inner()
    };
    let schedule = compiled(options);
    if !seed.is_multiple_of(3) {
        return schedule;
    }
    let cap = Bytes(schedule.peak().0.div_ceil(2));
    let within = compiled(&Options { cap: Some(cap), ..*options });
    assert!(within.peak() <= cap, "{} of {cap}", within.peak());
    within
}

/// Draws a placement and options among all possible ones.
pub fn choices(seed: u64) -> (Placement, Options) {
    let mut dice = Random::new(seed ^ 0x5555);
    let placement = match dice.below(4) {
        0 => Placement::Apart,
        1 => Placement::Hosts { ranks_each: 2 },
        _ => Placement::Together,
    };
    let chunk = dice.once_in(2).then(|| Bytes(8 + dice.below(40) as u64));
    let options = Options { mode: dice.one_of(&Mode::ALL), coalesce: !dice.once_in(4), chunk, cap: None };
    (placement, options)
}
