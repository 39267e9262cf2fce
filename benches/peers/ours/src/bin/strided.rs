//! Measures the same as `../../mpi_strided.c`: puts of a column of an n x n array into a column of
//! the next rank's array, and puts of the three faces of a block. Each epoch has new values.
//!
//! `type` makes one put from a datatype of a second window to a datatype of the target. The second
//! window is read at the fence. `pack` packs by hand, puts, and unpacks by hand. `separate` puts 8
//! bytes for each cell (columns only).

use fencepost::prelude::*;
use ours::{bench, emit, require};
use std::hint::black_box;

#[superstep]
fn face(a: &mut Window<f64>, src: &mut Window<f64>, from: &Datatype, at: &Datatype, to: usize) -> Result<()> {
    a.put(src.section(from)).to(to, at)
}

/// Puts each cell of a column separately.
#[superstep]
fn cells(
    a: &mut Window<f64>,
    src: &mut Window<f64>,
    n: usize,
    from: usize,
    at: usize,
    to: usize,
) -> Result<()> {
    for i in 0..n {
        a.put(src.section(from + i * n..from + i * n + 1)).to(to, at + i * n)?;
    }
    Ok(())
}

/// The extents of the array, the extents of the part that moves, and the beginning of the part in
/// the source. In the target the part begins at 0.
struct Family {
    what: &'static str,
    n: usize,
    full: [usize; 3],
    part: [usize; 3],
    from: usize,
}

impl Family {
    /// Returns the beginning of each row of the part in an array.
    fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        let ([_, n1, n2], [e0, e1, _]) = (self.full, self.part);
        (0..e0).flat_map(move |i| (0..e1).map(move |j| (i * n1 + j) * n2))
    }

    fn run(&self, world: &World) -> Result<()> {
        let (rank, size) = (world.rank(), world.size());
        let (to, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let words: usize = self.full.iter().product();
        let [_, e1, run] = self.part;
        let count: usize = self.part.iter().product();
        let value = |of: usize, cell: usize| {
            let (i, j, k) = (cell / (e1 * run), cell / run % e1, cell % run);
            (of + 1) as f64 * 0.5 + (i + j + k) as f64
        };
        let mut src = world.window::<f64>(words)?;
        let mut buf = vec![0.0; count];
        for (row, at) in self.rows().enumerate() {
            for k in 0..run {
                src[self.from + at + k] = value(rank, row * run + k);
            }
        }
        let mut a = world.window::<f64>(words + count)?;
        let at = Datatype::subarray(&self.full, &[0; 3], &self.part)?;
        let from = at.shift(self.from as i64)?;
        let mut turn = 0.0;
        let ways = [
            ("type", "dynamic"),
            ("type", "superstep"),
            ("type", "prepared"),
            ("pack", "dynamic"),
            ("separate", "dynamic"),
            ("separate", "superstep"),
            ("separate", "prepared"),
        ];
        for (method, variant) in ways {
            if method == "separate" && self.what != "column" {
                continue;
            }
            a.fill(0.0);
            world.barrier()?;
            let lines = || self.rows().flat_map(move |row| (0..run).step_by(8).map(move |k| row + k));
            let (mut whole, mut each) = match (method, variant) {
                ("type", "prepared") => (Some(face::prepare(world, &from, &at, to)?), None),
                ("separate", "prepared") => (None, Some(cells::prepare(world, self.n, self.from, 0, to)?)),
                _ => (None, None),
            };
            let mut epoch = || {
                turn += 1.0;
                lines().for_each(|at| src[self.from + at] = turn);
                match (method, variant) {
                    ("type", "dynamic") => {
                        a.put(src.section(&from)).to(to, &at)?;
                        world.fence((&mut a, &mut src))?;
                    }
                    ("type", "superstep") => face(&mut a, &mut src, &from, &at, to)?,
                    ("separate", "dynamic") => {
                        for i in 0..self.n {
                            a.put([src[self.from + i * self.n]]).to(to, i * self.n)?;
                        }
                        a.fence()?;
                    }
                    ("separate", "superstep") => cells(&mut a, &mut src, self.n, self.from, 0, to)?,
                    ("pack", _) => {
                        if run == 1 {
                            for (cell, row) in buf.iter_mut().zip(self.rows()) {
                                *cell = src[self.from + row];
                            }
                        } else {
                            for (cells, row) in buf.chunks_exact_mut(run).zip(self.rows()) {
                                cells.copy_from_slice(&src[self.from + row..][..run]);
                            }
                        }
                        a.put(&buf).to(to, words)?;
                        a.fence()?;
                        let (a, stage) = a.split_at_mut(words);
                        if run == 1 {
                            for (cell, row) in stage.iter().zip(self.rows()) {
                                a[row] = *cell;
                            }
                        } else {
                            for (cells, row) in stage.chunks_exact(run).zip(self.rows()) {
                                a[row..][..run].copy_from_slice(cells);
                            }
                        }
                    }
                    _ => match (&mut whole, &mut each) {
                        (Some(whole), _) => whole.replay(&mut a, &mut src)?,
                        (_, Some(each)) => each.replay(&mut a, &mut src)?,
                        _ => (),
                    },
                }
                black_box(lines().fold(0.0, |sum, at| sum + a[at]));
                Ok(())
            };
            epoch()?;
            let s = bench(world, &mut epoch)?;
            let ok = self.rows().enumerate().all(|(row, at)| {
                (0..run).all(|k| a[at + k] == if k % 8 == 0 { turn } else { value(left, row * run + k) })
            });
            require(world, ok, method)?;
            let more = format!(
                "\"n\":{},\"cells\":{count},\"ns_per_cell\":{:.6},\"GBps\":{:.6}",
                self.n,
                s.med * 1e9 / count as f64,
                8e-9 * count as f64 / s.med
            );
            emit(world, "strided", &format!("{}/{method}", self.what), variant, s, "us", &more);
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    ours::main(|world| {
        for n in [64, 256, 1024, 4096] {
            Family { what: "column", n, full: [n, 1, n], part: [n, 1, 1], from: n - 2 }.run(world)?;
        }
        for n in [128, 256] {
            let full = [n; 3];
            Family { what: "face_i", n, full, part: [1, n, n], from: (n - 2) * n * n }.run(world)?;
            Family { what: "face_j", n, full, part: [n, 1, n], from: (n - 2) * n }.run(world)?;
            Family { what: "face_k", n, full, part: [n, n, 1], from: n - 2 }.run(world)?;
        }
        Ok(())
    })
}
