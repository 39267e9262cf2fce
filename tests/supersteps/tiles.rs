//! Steps that are computed band by band, on any number of ranks. Their results have the same bits
//! as those of a serial program that sweeps the array step by step.

use fencepost::prelude::*;
use fencepost::{TransportKind, ranks};
use fencepost_tests_support::cases::cases as number_of;
use proptest::prelude::*;

#[superstep]
fn exchange<const D: usize>(u: &mut Window<f64>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// The fields of a program, and the fields that a step reads.
#[derive(Clone, Copy, Debug)]
enum Fields {
    /// Two fields that take turns.
    Two,
    /// Three fields that take turns. A step reads the cells around a cell in the present field, and
    /// the cell itself in the previous field.
    ThreeLevels,
    /// Two pairs of fields, and coefficients that no step writes. The fields of a pair take turns,
    /// and the pairs read each other.
    Coupled,
}

/// Returns the values of a cell in the next step: the value of the first field, and the value of
/// the second field if there are two. `near` are the values at the offsets, for each field that is
/// read. `own` is the value of the cell itself.
fn next(fields: Fields, near: [&mut dyn Iterator<Item = f64>; 2], own: f64) -> [f64; 2] {
    let [first, second] =
        near.map(|near| near.enumerate().fold(0.1, |sum, (n, cell)| sum * 0.7 + cell / (n + 3) as f64));
    match fields {
        Fields::Two => [first, 0.0],
        Fields::ThreeLevels => [first - 0.3 * own, 0.0],
        Fields::Coupled => [first + 0.2 * own * second, second - 0.1 * own * first],
    }
}

/// The choices that one test draws.
#[derive(Clone, Debug)]
struct Case<const D: usize> {
    ranks: usize,
    /// The number of cells in addition to those of the smallest array whose blocks are as wide as
    /// the halo.
    extra: [usize; D],
    reach: usize,
    star: bool,
    wraps: [bool; D],
    group: usize,
    bands: [usize; D],
    steps: usize,
    fields: Fields,
}

impl<const D: usize> Case<D> {
    /// Returns the number of cells in each dimension.
    fn cells(&self) -> [usize; D] {
        let grid = Block::at(0, self.ranks, [1000; D]).expect("few ranks").dims();
        std::array::from_fn(|d| grid[d] * self.reach * self.group + 2 * self.reach + self.extra[d])
    }

    /// Returns the offsets of the stencil: along one dimension at a time, or along all dimensions
    /// at once.
    fn offsets(&self) -> Vec<[isize; D]> {
        let (reach, width) = (self.reach as isize, 2 * self.reach + 1);
        let all = (0..width.pow(D as u32))
            .map(|code| std::array::from_fn(|d| (code / width.pow(d as u32) % width) as isize - reach));
        all.filter(|offset: &[isize; D]| !self.star || offset.iter().filter(|step| **step != 0).count() <= 1)
            .collect()
    }

    /// Returns the initial value of a cell in a field.
    fn value(field: usize, cell: [usize; D]) -> f64 {
        cell.iter().fold(1.0 + field as f64, |sum, &at| (sum * 31.0 + at as f64 * 7.3) % 1.7)
    }

    /// Returns the array after all steps, computed cell by cell: one field, or the first fields of
    /// both pairs.
    fn swept(&self) -> [Vec<u64>; 2] {
        let (cells, offsets, reach) = (self.cells(), self.offsets(), self.reach);
        let count = cells.iter().product::<usize>();
        let place = |at: usize| -> [usize; D] {
            std::array::from_fn(|d| at / cells[d + 1..].iter().product::<usize>() % cells[d])
        };
        let start =
            |field: usize| -> Vec<f64> { (0..count).map(|at| Self::value(field, place(at))).collect() };
        let (mut now, mut other) = (start(0), start(1));
        let mut before = if let Fields::Coupled = self.fields { start(2) } else { other.clone() };
        for _ in 0..self.steps {
            let (mut nexts, mut others) = (now.clone(), other.clone());
            for at in 0..count {
                let here = place(at);
                let is_edge = |d: usize| here[d] < reach || here[d] + reach >= cells[d];
                if (0..D).any(|d| !self.wraps[d] && is_edge(d)) {
                    continue;
                }
                let near = |field: &[f64]| -> Vec<f64> {
                    let there = |offset: &[isize; D]| {
                        (0..D).fold(0, |sum, d| {
                            let there = (here[d] as isize + offset[d]).rem_euclid(cells[d] as isize);
                            sum * cells[d] + there as usize
                        })
                    };
                    offsets.iter().map(|offset| field[there(offset)]).collect()
                };
                let near = [
                    &mut near(&now).into_iter() as &mut dyn Iterator<Item = f64>,
                    &mut near(&other).into_iter(),
                ];
                [nexts[at], others[at]] = next(self.fields, near, before[at]);
            }
            match self.fields {
                Fields::Two => now = nexts,
                Fields::ThreeLevels => {
                    // Cells at an edge have their present values in all three fields.
                    before = now;
                    now = nexts;
                }
                Fields::Coupled => (now, other) = (nexts, others),
            }
        }
        let bits = |field: Vec<f64>| field.into_iter().map(f64::to_bits).collect();
        [bits(now), bits(other)]
    }

    /// Returns the bits of this rank's cells after all steps, with the position of each in the
    /// whole array.
    fn tiled(&self, world: &World) -> Result<[Cells; 2]> {
        let block = Block::new(world, self.cells())?.halo(self.reach * self.group)?.periodic(self.wraps);
        let offsets = self.offsets();
        let field = |number: usize| -> Result<Window<f64>> {
            let mut field = world.window::<f64>(block.len())?;
            block.fill(&mut field, |cell| Self::value(number, cell));
            // This exchange brings the cells at an edge of the array, which no step computes.
            exchange(&mut field, &block)?;
            Ok(field)
        };
        let [mut a, mut b] = [field(0)?, field(0)?];
        let [mut c, mut d, own] = [field(1)?, field(1)?, field(2)?];
        if let Fields::ThreeLevels = self.fields {
            // At the edges, all three fields have the same values.
            let before: Vec<f64> = c.to_vec();
            c.copy_from_slice(&a);
            for row in block.rows_inside(self.reach) {
                row.of_mut(&mut c).copy_from_slice(row.of(&before));
            }
        }
        let mut left = self.steps;
        while left > 0 {
            let tiles = block.tiles(self.group)?.bands(self.bands)?.at_most(left);
            exchange(&mut a, &block)?;
            exchange(&mut c, &block)?;
            for row in tiles.rows_inside(self.reach) {
                let near = |field: &[f64]| -> Vec<Vec<f64>> {
                    let at = |offset: &[isize; D]| row.at(field, *offset).to_vec();
                    offsets.iter().map(at).collect()
                };
                let kernel = |j: usize, now: &[Vec<f64>], other: &[Vec<f64>], own: f64| {
                    let near: [&mut dyn Iterator<Item = f64>; 2] =
                        [&mut now.iter().map(|near| near[j]), &mut other.iter().map(|near| near[j])];
                    next(self.fields, near, own)
                };
                match self.fields {
                    Fields::Two => {
                        let [now, after] = row.turn([&mut *a, &mut *b]);
                        let near = near(now);
                        for (j, cell) in row.of_mut(after).iter_mut().enumerate() {
                            [*cell, _] = kernel(j, &near, &[], 0.0);
                        }
                    }
                    Fields::ThreeLevels => {
                        let [before, now, after] = row.turn([&mut *c, &mut *a, &mut *b]);
                        let (near, before) = (near(now), row.of(before));
                        for (j, cell) in row.of_mut(after).iter_mut().enumerate() {
                            [*cell, _] = kernel(j, &near, &[], before[j]);
                        }
                    }
                    Fields::Coupled => {
                        let ([now, after], [other, others]) =
                            (row.turn([&mut *a, &mut *b]), row.turn([&mut *c, &mut *d]));
                        let (near, nears, own) = (near(now), near(other), row.of(&own));
                        for (j, cell) in row.of_mut(after).iter_mut().enumerate() {
                            [*cell, row.of_mut(others)[j]] = kernel(j, &near, &nears, own[j]);
                        }
                    }
                }
            }
            match self.fields {
                Fields::Two => [a, b] = tiles.turn([a, b]),
                Fields::ThreeLevels => [c, a, b] = tiles.turn([c, a, b]),
                Fields::Coupled => {
                    [a, b] = tiles.turn([a, b]);
                    [c, d] = tiles.turn([c, d]);
                }
            }
            left -= tiles.steps();
        }
        let (global, origin) = (block.global(), block.origin());
        let cells = |field: &[f64]| {
            let mut cells = Vec::new();
            for row in block.rows() {
                let first = row.first();
                for (j, cell) in row.of(field).iter().enumerate() {
                    let place = (0..D).fold(0, |sum, d| {
                        let step = if d == D - 1 { j } else { 0 };
                        sum * global[d] + origin[d] + first[d] as usize + step
                    });
                    cells.push((place, cell.to_bits()));
                }
            }
            cells
        };
        Ok([cells(&a), cells(&c)])
    }

    /// Compares the cells of all ranks with those of the serial program.
    fn test(&self) {
        let [first, second] = self.swept();
        let run = ranks(self.ranks).collect(|world| self.tiled(world)).expect("the world goes on");
        let (firsts, seconds): (Vec<Cells>, Vec<Cells>) = run.into_iter().map(|[a, c]| (a, c)).unzip();
        assert_equal(firsts, &first);
        if let Fields::Coupled = self.fields {
            assert_equal(seconds, &second);
        }
    }
}

/// The bits of one rank's cells, with the position of each in the whole array.
type Cells = Vec<(usize, u64)>;

fn assert_equal(cells: Vec<Cells>, expected: &[u64]) {
    let mut cells: Cells = cells.into_iter().flatten().collect();
    cells.sort_unstable();
    assert!(cells.iter().map(|cell| cell.0).eq(0..expected.len()), "each cell has one owner");
    let different = cells.iter().zip(expected).filter(|((_, bits), expected)| bits != *expected).count();
    assert_eq!(different, 0, "the number of cells that differ");
}

/// Draws cases whose halos are at most `widest` cells wide.
fn cases<const D: usize>(widest: usize) -> impl Strategy<Value = Case<D>> {
    let fields = prop_oneof![Just(Fields::Two), Just(Fields::ThreeLevels), Just(Fields::Coupled)];
    let bands = prop::array::uniform(prop_oneof![1..6_usize, Just(1), Just(usize::MAX), Just(1000)]);
    let flags = (any::<bool>(), prop::array::uniform(any::<bool>()));
    let sizes = (1..=9_usize, prop::array::uniform(0..5_usize), 1..=4_usize, 1..=16_usize);
    (sizes, flags, bands, 1..=20_usize, fields).prop_map(
        move |((ranks, extra, reach, group), (star, wraps), bands, steps, fields)| {
            let reach = reach.min(widest);
            let group = group.min(widest / reach);
            Case { ranks, extra, reach, star, wraps, group, bands, steps, fields }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(number_of(16, 32) as u32))]

    #[test]
    fn lines_have_the_bits_of_the_serial_program(case in cases::<1>(64)) {
        case.test();
    }

    #[test]
    fn planes_have_the_bits_of_the_serial_program(case in cases::<2>(16)) {
        case.test();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(number_of(3, 8) as u32))]

    #[test]
    fn space_has_the_bits_of_the_serial_program(case in cases::<3>(4)) {
        case.test();
    }
}

/// A kernel that panics in the middle of a group leaves the windows usable, and the other ranks get
/// an error.
#[test]
fn a_panic_in_the_middle_of_a_group_leaves_the_windows_usable() {
    for transport in [TransportKind::Local, TransportKind::ShmThreads, TransportKind::TcpThreads] {
        let kind = format!("{transport:?}");
        let run = ranks(2).transport(transport).run(|world| {
            let block = Block::new(world, [40, 40])?.halo(4)?;
            let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
            exchange(&mut u, &block)?;
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
            exchange(&mut u, &block)?;
            let other = block.neighbours().next().expect("there are two ranks");
            assert_eq!(u.iter().filter(|cell| **cell == other.rank as f64).count(), 4 * 40, "{kind}");
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}
