//! Shared by the two stencil programs: as `../halo.h`. Two windows, old and new, that change places after each step.

use crate::{bench, emit, require, rng_next};
use fencepost::prelude::*;

/// A sweep over the own cells: from `u` to `v`.
pub type Sweep<const D: usize> = fn(u: &[f64], v: &mut [f64], block: &Block<D>);

/// A case: checksum after 10 steps, then full steps, exchanges alone and sweeps alone are timed. `exchange` fills the halo of a window.
#[expect(clippy::too_many_arguments, reason = "one place each")]
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

/// Calls the body compiled for the widest vectors that this processor has, as `-march=native` does for C.
#[macro_export]
macro_rules! widest {
    ($name:ident, $body:ident, $d:literal) => {
        fn $name(u: &[f64], v: &mut [f64], block: &Block<$d>) {
            #[target_feature(enable = "avx512f,avx512vl,fma")]
            fn wide(u: &[f64], v: &mut [f64], block: &Block<$d>) {
                $body::<true>(u, v, block);
            }
            #[target_feature(enable = "avx2,fma")]
            fn middle(u: &[f64], v: &mut [f64], block: &Block<$d>) {
                $body::<true>(u, v, block);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                // SAFETY: the processor has what it is compiled for.
                unsafe { wide(u, v, block) }
            } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: as above.
                unsafe { middle(u, v, block) }
            } else {
                $body::<false>(u, v, block);
            }
        }
    };
}
