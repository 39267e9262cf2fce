//! How long does a kernel over the rows of a block take, compared with the same loop over slices
//! that are cut by hand?

use fencepost::grid::Block;
use fencepost_benches::Contest;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs a sweep repeatedly over two fields of `len` elements, and returns the time. The fields
/// change roles after each sweep.
fn timed<T: Copy + From<u8>>(len: usize, iterations: u64, sweep: impl Fn(&[T], &mut [T])) -> Duration {
    let mut u: Vec<T> = (0..len).map(|i| T::from((i * 7 % 251) as u8)).collect();
    let mut v = u.clone();
    let clock = Instant::now();
    for _ in 0..iterations {
        sweep(black_box(&u), black_box(&mut v));
        std::mem::swap(&mut u, &mut v);
    }
    black_box(u);
    clock.elapsed()
}

fn block<const D: usize>(cells: [usize; D]) -> Block<D> {
    Block::at(0, 1, cells).and_then(|block| block.halo(1)).expect("a block of one rank")
}

/// The offsets of the 9 cells of a square and of the 27 cells of a cube.
const CUBE_2: [[isize; 2]; 9] = {
    let mut offsets = [[0; 2]; 9];
    let mut n = 0;
    while n < 9 {
        offsets[n] = [n as isize / 3 - 1, n as isize % 3 - 1];
        n += 1;
    }
    offsets
};
const CUBE_3: [[[isize; 3]; 9]; 3] = {
    let mut offsets = [[[0; 3]; 9]; 3];
    let mut n = 0;
    while n < 27 {
        offsets[n / 9][n % 9] = [n as isize / 9 - 1, n as isize / 3 % 3 - 1, n as isize % 3 - 1];
        n += 1;
    }
    offsets
};

/// Defines the kernels for elements of one type.
macro_rules! kernels {
    ($name:ident, $t:ty) => {
        mod $name {
            use super::{Block, black_box};

            const WEIGHTS: [[[$t; 3]; 3]; 3] = [
                [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06], [0.01, 0.02, 0.03]],
                [[0.04, 0.05, 0.01], [0.04, 0.05, 0.06], [0.01, 0.02, 0.03]],
                [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06], [0.04, 0.06, 0.05]],
            ];

            /// The weights have a sum of nearly 1. With a smaller sum, cells far from the edge
            /// would become so small that arithmetic takes ten times as long.
            const NINE: [[$t; 3]; 3] = [[0.11, 0.12, 0.13], [0.14, 0.05, 0.06], [0.11, 0.12, 0.13]];

            /// Returns the weighted sum of nine points of a plane.
            #[inline(always)]
            fn nine(w: &[[$t; 3]; 3], near: [&[$t]; 9], k: usize) -> $t {
                let [a, b, c, d, e, f, g, h, i] = near;
                (w[0][0] * a[k] + w[0][1] * b[k] + w[0][2] * c[k])
                    + (w[1][0] * d[k] + w[1][1] * e[k] + w[1][2] * f[k])
                    + (w[2][0] * g[k] + w[2][1] * h[k] + w[2][2] * i[k])
            }

            #[inline(always)]
            fn cube(u: &[$t], at: usize, line: usize, n: usize) -> [&[$t]; 9] {
                let cut = |from: usize| &u[from..][..n];
                let (a, b, c) = (cut(at - line - 1), cut(at - line), cut(at - line + 1));
                let (d, e, f) = (cut(at - 1), cut(at), cut(at + 1));
                let (g, h, i) = (cut(at + line - 1), cut(at + line), cut(at + line + 1));
                [a, b, c, d, e, f, g, h, i]
            }

            #[inline(never)]
            pub fn five_by_rows(block: &Block<2>, u: &[$t], v: &mut [$t]) {
                for row in block.rows() {
                    let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
                    let mean = row.of_mut(v);
                    for j in 0..row.len() {
                        mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
                    }
                }
            }

            #[inline(never)]
            pub fn five_by_hand([rows, columns]: [usize; 2], stride: usize, u: &[$t], v: &mut [$t]) {
                for i in 1..=rows {
                    let at = i * stride + 1;
                    let (up, down) = (&u[at - stride..][..columns], &u[at + stride..][..columns]);
                    let (left, right) = (&u[at - 1..][..columns], &u[at + 1..][..columns]);
                    let mean = &mut v[at..][..columns];
                    for j in 0..columns {
                        mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
                    }
                }
            }

            #[inline(never)]
            pub fn nine_by_rows(block: &Block<2>, u: &[$t], v: &mut [$t]) {
                for row in block.rows() {
                    let [a, b, c, d, e, f, g, h, i] = row.each(u, super::CUBE_2);
                    let w = black_box(&NINE);
                    let w = [w[0], w[1], w[2]];
                    let sum = row.of_mut(v);
                    for j in 0..row.len() {
                        sum[j] = (w[0][0] * a[j] + w[0][1] * b[j] + w[0][2] * c[j])
                            + (w[1][0] * d[j] + w[1][1] * e[j] + w[1][2] * f[j])
                            + (w[2][0] * g[j] + w[2][1] * h[j] + w[2][2] * i[j]);
                    }
                }
            }

            #[inline(never)]
            pub fn nine_by_hand([rows, columns]: [usize; 2], stride: usize, u: &[$t], v: &mut [$t]) {
                for i in 1..=rows {
                    let at = i * stride + 1;
                    let cut = |from: usize| &u[from..][..columns];
                    let (a, b, c) = (cut(at - stride - 1), cut(at - stride), cut(at - stride + 1));
                    let (d, e, f) = (cut(at - 1), cut(at), cut(at + 1));
                    let (g, h, i) = (cut(at + stride - 1), cut(at + stride), cut(at + stride + 1));
                    let w = black_box(&NINE);
                    let w = [w[0], w[1], w[2]];
                    let sum = &mut v[at..][..columns];
                    for j in 0..columns {
                        sum[j] = (w[0][0] * a[j] + w[0][1] * b[j] + w[0][2] * c[j])
                            + (w[1][0] * d[j] + w[1][1] * e[j] + w[1][2] * f[j])
                            + (w[2][0] * g[j] + w[2][1] * h[j] + w[2][2] * i[j]);
                    }
                }
            }

            #[inline(never)]
            pub fn seven_by_rows(block: &Block<3>, u: &[$t], v: &mut [$t]) {
                for row in block.rows() {
                    let (front, back) = (row.at(u, [-1, 0, 0]), row.at(u, [1, 0, 0]));
                    let (up, down, left, right) = (row.up(u), row.down(u), row.left(u), row.right(u));
                    let (here, next) = (row.of(u), row.of_mut(v));
                    for k in 0..row.len() {
                        let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
                        next[k] = 0.4 * here[k] + 0.1 * around;
                    }
                }
            }

            #[inline(never)]
            pub fn seven_by_hand(n: [usize; 3], [plane, line]: [usize; 2], u: &[$t], v: &mut [$t]) {
                for i in 1..=n[0] {
                    for j in 1..=n[1] {
                        let at = i * plane + j * line + 1;
                        let cut = |from: usize| &u[from..][..n[2]];
                        let (front, back) = (cut(at - plane), cut(at + plane));
                        let (up, down, left, right) =
                            (cut(at - line), cut(at + line), cut(at - 1), cut(at + 1));
                        let (here, next) = (cut(at), &mut v[at..][..n[2]]);
                        for k in 0..n[2] {
                            let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
                            next[k] = 0.4 * here[k] + 0.1 * around;
                        }
                    }
                }
            }

            #[inline(never)]
            pub fn all_by_rows(block: &Block<3>, u: &[$t], v: &mut [$t]) {
                for row in block.rows() {
                    let front = row.each(u, super::CUBE_3[0]);
                    let here = row.each(u, super::CUBE_3[1]);
                    let back = row.each(u, super::CUBE_3[2]);
                    let next = row.of_mut(v);
                    for k in 0..row.len() {
                        next[k] = (nine(&WEIGHTS[0], front, k) + nine(&WEIGHTS[1], here, k))
                            + nine(&WEIGHTS[2], back, k);
                    }
                }
            }

            #[inline(never)]
            pub fn all_by_hand([n0, n1, n2]: [usize; 3], [plane, line]: [usize; 2], u: &[$t], v: &mut [$t]) {
                for i in 1..=n0 {
                    for j in 1..=n1 {
                        let at = i * plane + j * line + 1;
                        let (front, here, back) = (
                            cube(u, at - plane, line, n2),
                            cube(u, at, line, n2),
                            cube(u, at + plane, line, n2),
                        );
                        let next = &mut v[at..][..n2];
                        for k in 0..n2 {
                            next[k] = (nine(&WEIGHTS[0], front, k) + nine(&WEIGHTS[1], here, k))
                                + nine(&WEIGHTS[2], back, k);
                        }
                    }
                }
            }
        }
    };
}

kernels!(single, f32);
kernels!(double, f64);

/// Makes the contest of one kernel and one size. The first side uses slices that are cut by hand,
/// the second side uses rows.
macro_rules! contest {
    ($kind:ident, $t:ty, $cells:expr, $name:literal, $by_hand:ident, $by_rows:ident, $strides:expr) => {{
        let (cells, block) = ($cells, block($cells));
        let (len, strides) = (block.len(), ($strides)(&block));
        let question = format!("{} points, {}, {:?} cells", $name, stringify!($t), cells);
        Contest::new(question, cells.iter().product())
            .side("slices cut by hand", move |n| {
                timed(len, n, |u: &[$t], v| $kind::$by_hand(cells, strides, u, v))
            })
            .held("rows of the block", 1.03, move |n| {
                timed(len, n, |u: &[$t], v| $kind::$by_rows(&block, u, v))
            })
    }};
}

fn main() {
    let line = |block: &Block<2>| block.strides()[0];
    let plane = |block: &Block<3>| [block.strides()[0], block.strides()[1]];
    let mut contests = Vec::new();
    for cells in [[344, 403], [1024, 1024], [65, 63]] {
        contests.push(contest!(double, f64, cells, "5", five_by_hand, five_by_rows, line));
        contests.push(contest!(single, f32, cells, "5", five_by_hand, five_by_rows, line));
        contests.push(contest!(double, f64, cells, "9", nine_by_hand, nine_by_rows, line));
        contests.push(contest!(single, f32, cells, "9", nine_by_hand, nine_by_rows, line));
    }
    for cells in [[64, 64, 64], [33, 35, 37], [128, 128, 128]] {
        contests.push(contest!(double, f64, cells, "7", seven_by_hand, seven_by_rows, plane));
        contests.push(contest!(single, f32, cells, "7", seven_by_hand, seven_by_rows, plane));
        contests.push(contest!(double, f64, cells, "27", all_by_hand, all_by_rows, plane));
        contests.push(contest!(single, f32, cells, "27", all_by_hand, all_by_rows, plane));
    }
    fencepost_benches::main(contests);
}
