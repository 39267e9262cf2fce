//! Steps visited band by band, on any number of ranks: the bits of a serial program that sweeps step by step.

use fencepost::prelude::*;
use fencepost::{TransportKind, ranks};

#[superstep]
fn exchange2(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

#[superstep]
fn exchange3(u: &mut Window<f64>, block: &Block<3>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// The offsets of a stencil that reads as far as `reach`, along one dimension at a time or in all at once.
fn stencil<const D: usize>(reach: isize, star: bool) -> Vec<[isize; D]> {
    let width = 2 * reach as usize + 1;
    let all = (0..width.pow(D as u32))
        .map(|code| std::array::from_fn(|d| (code / width.pow(d as u32) % width) as isize - reach));
    all.filter(|offset: &[isize; D]| !star || offset.iter().filter(|step| **step != 0).count() <= 1).collect()
}

/// The next value of a cell, from the cells at the offsets in their order.
fn next(near: impl Iterator<Item = f64>) -> f64 {
    near.enumerate().fold(0.1, |sum, (n, cell)| sum * 0.7 + cell / (n + 3) as f64)
}

fn value<const D: usize>(cell: [usize; D]) -> f64 {
    cell.iter().fold(1.0, |sum, &at| (sum * 31.0 + at as f64 * 7.3) % 1.7)
}

/// The array after some steps, computed cell by cell.
fn swept<const D: usize>(
    cells: [usize; D],
    wraps: bool,
    reach: usize,
    offsets: &[[isize; D]],
    steps: usize,
) -> Vec<u64> {
    let count = cells.iter().product::<usize>();
    let cell = |at: usize| -> [usize; D] {
        std::array::from_fn(|d| at / cells[d + 1..].iter().product::<usize>() % cells[d])
    };
    let mut now: Vec<f64> = (0..count).map(|at| value(cell(at))).collect();
    for _ in 0..steps {
        let after = (0..count).map(|at| {
            let here = cell(at);
            if !wraps && (0..D).any(|d| here[d] < reach || here[d] + reach >= cells[d]) {
                return now[at];
            }
            next(offsets.iter().map(|offset| {
                now[(0..D).fold(0, |sum, d| {
                    let there = (here[d] as isize + offset[d]).rem_euclid(cells[d] as isize);
                    sum * cells[d] + there as usize
                })]
            }))
        });
        now = after.collect();
    }
    now.into_iter().map(f64::to_bits).collect()
}

/// The bits of one rank's cells, with the place of each in the whole array.
type Cells = Vec<(usize, u64)>;

/// The cells of this rank after some steps, `group` of them to an exchange.
fn tiled<const D: usize>(
    block: &Block<D>,
    offsets: &[[isize; D]],
    (group, bands, steps): (usize, [usize; D], usize),
    reach: usize,
    [mut u, mut v]: [Window<f64>; 2],
    mut exchange: impl FnMut(&mut Window<f64>) -> Result<()>,
) -> Result<Cells> {
    for field in [&mut u, &mut v] {
        block.fill(field, value);
    }
    exchange(&mut v)?;
    let mut left = steps;
    while left > 0 {
        let tiles = block.tiles(group)?.bands(bands)?.at_most(left);
        exchange(&mut u)?;
        for row in tiles.rows_inside(reach) {
            let [now, after] = row.turn([&mut *u, &mut *v]);
            let near: Vec<&[f64]> = offsets.iter().map(|&offset| row.at(now, offset)).collect();
            for (j, cell) in row.of_mut(after).iter_mut().enumerate() {
                *cell = next(near.iter().map(|near| near[j]));
            }
        }
        [u, v] = tiles.turn([u, v]);
        left -= tiles.steps();
    }
    let (global, origin) = (block.global(), block.origin());
    let mut cells = Vec::new();
    for row in block.rows() {
        let first = row.first();
        for (j, cell) in row.of(&u).iter().enumerate() {
            let place = (0..D).fold(0, |sum, d| {
                let step = if d == D - 1 { j } else { 0 };
                sum * global[d] + origin[d] + first[d] as usize + step
            });
            cells.push((place, cell.to_bits()));
        }
    }
    Ok(cells)
}

fn assert_equal(cells: Vec<Cells>, expected: &[u64], what: &str) {
    let mut cells: Cells = cells.into_iter().flatten().collect();
    cells.sort_unstable();
    let places = cells.iter().map(|cell| cell.0);
    assert!(places.eq(0..expected.len()), "{what}: each cell has one owner");
    let different = cells.iter().zip(expected).filter(|((_, bits), expected)| bits != *expected).count();
    assert_eq!(different, 0, "{what}: cells that differ");
}

#[test]
fn planes_have_the_bits_of_the_serial_program() {
    const STEPS: usize = 11;
    for (reach, star, wraps) in [(1, true, false), (1, false, true), (2, true, true), (2, false, false)] {
        let offsets = stencil::<2>(reach as isize, star);
        let cells = [83, 79];
        let expected = swept(cells, wraps, reach, &offsets, STEPS);
        for (group, bands) in [(1, [1, usize::MAX]), (2, [3, usize::MAX]), (4, [1, 7]), (5, [1, usize::MAX])]
        {
            for size in [1, 2, 4, 7, 9] {
                let run = ranks(size).collect(|world| {
                    let block = Block::new(world, cells)?.halo(reach * group)?.periodic([wraps; 2]);
                    let fields = [world.window(block.len())?, world.window(block.len())?];
                    let exchange = |u: &mut Window<f64>| exchange2(u, &block);
                    tiled(&block, &offsets, (group, bands, STEPS), reach, fields, exchange)
                });
                let what = format!("reach {reach}, star {star}, wraps {wraps}, {group} steps, {size} ranks");
                assert_equal(run.expect(&what), &expected, &what);
            }
        }
    }
}

#[test]
fn space_has_the_bits_of_the_serial_program() {
    const STEPS: usize = 7;
    for (reach, star, wraps) in [(1, true, false), (1, false, true), (2, true, true)] {
        let offsets = stencil::<3>(reach as isize, star);
        let cells = [17, 19, 16];
        let expected = swept(cells, wraps, reach, &offsets, STEPS);
        for (group, bands) in [(1, [1, 1, usize::MAX]), (3, [1, usize::MAX, usize::MAX]), (4, [2, 3, 5])] {
            for size in [1, 2, 4, 8] {
                let run = ranks(size).collect(|world| {
                    let block = Block::new(world, cells)?.halo(reach * group)?.periodic([wraps; 3]);
                    let fields = [world.window(block.len())?, world.window(block.len())?];
                    let exchange = |u: &mut Window<f64>| exchange3(u, &block);
                    tiled(&block, &offsets, (group, bands, STEPS), reach, fields, exchange)
                });
                let what = format!("reach {reach}, star {star}, wraps {wraps}, {group} steps, {size} ranks");
                assert_equal(run.expect(&what), &expected, &what);
            }
        }
    }
}

/// A kernel that panics in the middle of a group leaves the windows usable, and the others are told.
#[test]
fn a_panic_in_the_middle_of_a_group_leaves_the_windows_usable() {
    for transport in [TransportKind::Local, TransportKind::ShmThreads, TransportKind::TcpThreads] {
        let kind = format!("{transport:?}");
        let run = ranks(2).transport(transport).run(|world| {
            let block = Block::new(world, [40, 40])?.halo(4)?;
            let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
            exchange2(&mut u, &block)?;
            let tiles = block.tiles(4)?;
            let group = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for (visit, row) in tiles.rows().enumerate() {
                    assert!(visit < 30, "in the middle");
                    let [now, after] = row.turn([&mut *u, &mut *v]);
                    row.of_mut(after).copy_from_slice(row.of(now));
                }
            }));
            assert!(group.is_err());
            u.fill(world.rank() as f64);
            exchange2(&mut u, &block)?;
            let other = block.neighbours().next().expect("there are two ranks");
            assert_eq!(u.iter().filter(|cell| **cell == other.rank as f64).count(), 4 * 40, "{kind}");
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}
