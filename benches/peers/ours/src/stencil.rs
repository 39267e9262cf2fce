//! The common parts of the two stencil programs, as in `../halo.h`. The old and the new window
//! change roles after each step.

use crate::{bench, emit, require, rng_next};
use fencepost::prelude::*;
use fencepost::grid::Tiles;
use fencepost::Nanos;
use std::hint::black_box;
use std::time::Instant;

/// A sweep over the own cells, which reads `u` and writes `v`.
pub type Sweep<const D: usize> = fn(u: &[f64], v: &mut [f64], block: &Block<D>);

/// Runs a case: takes the checksum after 10 steps, then times full steps, exchanges alone and
/// sweeps alone. `exchange` fills the halo of a window.
pub fn case<const D: usize>(
    world: &World,
    (bench_name, split, variant): (&str, &str, &str),
    n: usize,
    block: &Block<D>,
    sweep: Sweep<D>,
    reference: &mut Option<f64>,
    mut exchange: impl FnMut(&mut Window<f64>) -> Result<()>,
) -> Result<()> {
    let (own, strides, shape) = (block.extent(), block.strides(), block.shape());
    assert_eq!(strides[D - 1], 1);
    let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
    let is_own = |i: usize| (0..D).all(|d| (1..=own[d]).contains(&(i / strides[d] % shape[d])));
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(world.rank() as u64 + 1);
    for i in 0..block.len() {
        u[i] = if is_own(i) { (rng_next(&mut seed) >> 40) as f64 / f64::from(1 << 24) } else { 0.0 };
        v[i] = 0.0;
    }
    world.barrier()?;
    let mut step = |u: &mut Window<f64>, v: &mut Window<f64>, [exchanges, sweeps]: [bool; 2]| -> Result<()> {
        if exchanges {
            exchange(u)?;
        }
        if sweeps {
            sweep(u, v, block);
        }
        std::mem::swap(u, v);
        Ok(())
    };
    for _ in 0..10 {
        step(&mut u, &mut v, [true; 2])?;
    }
    let mut sum = [(0..block.len()).filter(|&i| is_own(i)).map(|i| u[i]).sum::<f64>()];
    world.allreduce(&mut sum, Op::Sum)?;
    let known = *reference.get_or_insert(sum[0]);
    require(world, sum[0].to_bits() == known.to_bits(), "stencil checksum")?;
    for (parts, what) in [([true, true], "step"), ([true, false], "comm"), ([false, true], "sweep")] {
        let s = bench(world, || step(&mut u, &mut v, parts))?;
        let more = format!("\"n\":{n},\"checksum\":{:.9}", sum[0]);
        emit(world, bench_name, &format!("put_fence/{split}/{what}"), variant, s, "us", &more);
    }
    Ok(())
}

/// Computes the steps of a group. The first step reads `u` and writes `v`, the next reads `v` and
/// writes `u`, and so on.
pub type Group<const D: usize> = fn(u: &mut [f64], v: &mut [f64], tiles: &Tiles<D>);

/// Times the same steps in groups. Each group is computed band by band. The number of steps of a
/// group and the bands are chosen so that they cost least with the links and the memory of this
/// machine. `block` has the halo of one step.
pub fn tiled<const D: usize>(
    world: &World,
    (bench_name, split): (&str, &str),
    n: usize,
    block: &Block<D>,
    group: Group<D>,
    reference: Option<f64>,
    exchange: impl Fn(&World, &Block<D>) -> Result<Exchange>,
) -> Result<()> {
    let machine = world.measure_machine()?;
    let cell = cell_in_cache(world, group)?;
    let advice = block.advise(cell, 8, 16, world.placement(), &machine)?;
    let steps = advice.steps();
    let block = block.clone().halo(steps)?;
    let mut exchange = exchange(world, &block)?;
    let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(world.rank() as u64 + 1);
    for row in block.rows() {
        row.of_mut(&mut u).fill_with(|| (rng_next(&mut seed) >> 40) as f64 / f64::from(1 << 24));
    }
    world.barrier()?;
    let mut run = |[mut u, mut v]: [Window<f64>; 2], most: usize| -> Result<[Window<f64>; 2]> {
        let tiles = block.tiles(steps)?.bands(advice.bands())?.at_most(most);
        exchange(&mut u)?;
        group(&mut u, &mut v, &tiles);
        Ok(tiles.turn([u, v]))
    };
    let mut left = 10;
    while left > 0 {
        [u, v] = run([u, v], left)?;
        left = left.saturating_sub(steps);
    }
    let mut sum = [block.rows().flat_map(|row| row.of(&u).to_vec()).sum::<f64>()];
    world.allreduce(&mut sum, Op::Sum)?;
    require(world, reference.is_none_or(|known| known.to_bits() == sum[0].to_bits()), "tiled checksum")?;
    let mut fields = Some([u, v]);
    let s = bench(world, || {
        fields = fields.take().map(|fields| run(fields, steps)).transpose()?;
        Ok(())
    })?;
    let more =
        format!("\"n\":{n},\"checksum\":{:.9},\"k\":{steps},\"bands\":\"{:?}\"", sum[0], advice.bands());
    emit(world, bench_name, &format!("put_fence/{split}/tiled"), "prepared", s.per(steps), "us", &more);
    Ok(())
}

/// Returns the time that a cell takes on the slowest rank if the fields are in its cache.
fn cell_in_cache<const D: usize>(world: &World, group: Group<D>) -> Result<Nanos> {
    const PASSES: usize = 200;
    let rows: [usize; D] = std::array::from_fn(|d| if d + 1 == D { 512 } else { 4 });
    let block = Block::at(0, 1, rows)?.halo(1)?;
    let tiles = block.tiles(1)?;
    let (mut u, mut v) = (vec![1.0; block.len()], vec![1.0; block.len()]);
    let mut pass = || {
        let clock = Instant::now();
        for _ in 0..PASSES {
            group(&mut u, &mut v, &tiles);
            black_box(&mut v);
        }
        clock.elapsed().as_nanos() as f64
    };
    let least = (0..5).map(|_| pass()).fold(f64::INFINITY, f64::min);
    let cells = PASSES * block.extent().iter().product::<usize>();
    Ok(Nanos(world.allreduce_one(least / cells as f64, Op::Max)?))
}

/// An exchange of the halo of one window.
pub type Exchange = Box<dyn FnMut(&mut Window<f64>) -> Result<()>>;

/// Defines a function that calls a version of the body for the widest vectors that this processor
/// has. In C, `-march=native` has this effect.
#[macro_export]
macro_rules! widest {
    (fn $name:ident = $body:ident($($arg:ident: $t:ty),*)) => {
        fn $name($($arg: $t),*) {
            #[target_feature(enable = "avx512f,avx512vl,fma")]
            fn wide($($arg: $t),*) {
                $body::<true>($($arg),*);
            }
            #[target_feature(enable = "avx2,fma")]
            fn middle($($arg: $t),*) {
                $body::<true>($($arg),*);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                // SAFETY: the processor has the features for which the function is compiled.
                unsafe { wide($($arg),*) }
            } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: as above.
                unsafe { middle($($arg),*) }
            } else {
                $body::<false>($($arg),*);
            }
        }
    };
}
