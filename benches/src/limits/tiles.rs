//! A five-point stencil on a square that is divided between threads. The stencil is computed step
//! by step on a grid that the threads share, or is tiled in time by hand.

use super::team::{Beat, Words, team};
use std::ops::Range;
use std::time::Duration;

/// Two fields of the square. Cells at its edges are zeros.
pub struct Square {
    cells: usize,
    threads: usize,
    /// The number of steps between two exchanges, or 0 if all threads share the fields.
    group: usize,
    /// The two fields that all threads share, or two fields for each thread. The fields of a thread
    /// have `group` rows of each neighbour, above and below its own rows.
    fields: Vec<[Words; 2]>,
}

impl Square {
    /// Creates a square with `cells` cells on each side, which all threads share.
    pub fn shared(cells: usize, threads: usize) -> Self {
        let field = || Words::new((cells + 2) * (cells + 2));
        Self { cells, threads, group: 0, fields: vec![[field(), field()]] }
    }

    /// Creates a square with `cells` cells on each side. Each thread has a part of the rows, and
    /// the threads exchange rows every `group` steps.
    pub fn cut(cells: usize, threads: usize, group: usize) -> Self {
        let rows = cells / threads;
        assert!(
            cells.is_multiple_of(threads) && group <= rows,
            "threads have as many rows, and at least as many as steps"
        );
        let field = || Words::new((rows + 2 * group) * (cells + 2));
        Self { cells, threads, group, fields: (0..threads).map(|_| [field(), field()]).collect() }
    }

    /// Sets each cell of the field that the first step reads. `value` gets the row and the column
    /// of the cell, both counted from 0.
    pub fn fill(&mut self, value: impl Fn(usize, usize) -> f64) {
        for row in 0..self.cells {
            let (field, at) = self.place(row);
            for column in 0..self.cells {
                // SAFETY: inside the field, and no team runs.
                unsafe {
                    self.fields[field][0].start().cast::<f64>().add(at + column).write(value(row, column))
                };
            }
        }
    }

    /// Returns the bits of the field after `steps` steps, row by row.
    pub fn bits(&mut self, steps: usize) -> Vec<u64> {
        let mut bits = Vec::new();
        for row in 0..self.cells {
            let (field, at) = self.place(row);
            let words = self.fields[field][steps % 2].start();
            // SAFETY: inside the field, and no team runs.
            bits.extend((0..self.cells).map(|column| unsafe { words.add(at + column).read() }));
        }
        bits
    }

    /// Returns the fields that contain a row, and the position of the row's first cell.
    fn place(&self, row: usize) -> (usize, usize) {
        let wide = self.cells + 2;
        match self.group {
            0 => (0, (row + 1) * wide + 1),
            group => {
                let rows = self.cells / self.threads;
                (row / rows, (row % rows + group) * wide + 1)
            }
        }
    }

    /// Runs `steps` steps on threads that share the square. Each thread computes some of the rows,
    /// and all threads meet at a barrier after each step.
    ///
    /// Each call first reads the first field. So a second call continues the first call only if the
    /// first call made an even number of steps.
    pub fn sweep(&self, steps: u64) -> Duration {
        let rows = |thread: usize| 1 + self.cells * thread / self.threads;
        team(self.threads, steps, |beat, steps| {
            for step in 0..steps as usize {
                for row in rows(beat.me)..rows(beat.me + 1) {
                    // SAFETY: in this step, all threads only read one field, and each thread writes
                    // rows of its own in the other field.
                    unsafe { self.relax(0, step, row) };
                }
                beat.wait();
            }
        })
    }

    /// Runs `steps` steps on threads that have blocks of their own. Before each group of steps, a
    /// thread copies rows of its neighbours.
    ///
    /// The steps of a group move over the rows together: after row `r` of one step comes row
    /// `r - 1` of the next step. `steps` is a multiple of the number of steps of a group.
    pub fn tile(&self, steps: u64) -> Duration {
        let groups = steps / self.group as u64;
        team(self.threads, groups, |beat, groups| {
            for group in 0..groups as usize {
                let first = group * self.group;
                self.exchange(beat, first);
                for front in self.rows(beat.me, 0).start..self.rows(beat.me, 0).end + self.group - 1 {
                    for step in 0..self.group {
                        let Some(row) = front.checked_sub(step) else { break };
                        if self.rows(beat.me, step).contains(&row) {
                            // SAFETY: both fields belong to this thread. Other threads read its
                            // rows only in `exchange`, between two barriers.
                            unsafe { self.relax(beat.me, first + step, row) };
                        }
                    }
                }
            }
            beat.wait();
        })
    }

    /// Copies rows of the neighbours next to the rows of this thread, in the field that `step`
    /// reads.
    fn exchange(&self, beat: &mut Beat<'_>, step: usize) {
        let (wide, rows, group) = (self.cells + 2, self.cells / self.threads, self.group);
        beat.wait();
        let copy = |from: usize, row: usize, to: usize| {
            let there = self.fields[from][step % 2].start().wrapping_add(row * wide);
            let here = self.fields[beat.me][step % 2].start().wrapping_add(to * wide);
            // SAFETY: the rows are inside both fields, and no thread writes its own rows between
            // the two barriers.
            unsafe { there.copy_to_nonoverlapping(here, group * wide) };
        };
        if beat.me > 0 {
            copy(beat.me - 1, rows, 0);
        }
        if beat.me + 1 < self.threads {
            copy(beat.me + 1, group, group + rows);
        }
        beat.wait();
    }

    /// Returns the rows that a thread computes in a step of a group. The numbers of the rows are
    /// those in the thread's own fields.
    fn rows(&self, thread: usize, step: usize) -> Range<usize> {
        let (own, group) = (self.cells / self.threads, self.group);
        let first = if thread > 0 { 1 + step } else { group };
        let end = if thread + 1 < self.threads { own + 2 * group - 1 - step } else { group + own };
        // The row above the square is an edge of zeros, so it is not computed even if it is in the
        // halo.
        first.max(1)..end
    }

    /// Computes a step of one row. `fields` is the index of the pair of fields.
    ///
    /// # Safety
    /// In the field that the step reads, no other thread writes this row or the rows next to it. In
    /// the other field, no other thread accesses this row.
    #[inline(always)]
    unsafe fn relax(&self, fields: usize, step: usize, row: usize) {
        let (wide, cells) = (self.cells + 2, self.cells);
        let [from, to] =
            [step % 2, (step + 1) % 2].map(|field| self.fields[fields][field].start().cast::<f64>());
        let at = row * wide + 1;
        // SAFETY: rows `row - 1` to `row + 1` are inside the fields, and the caller promises that
        // no other thread interferes.
        let (near, next) = unsafe {
            let cut = |at: usize| std::slice::from_raw_parts(from.add(at), cells);
            (
                [at - wide, at + wide, at - 1, at, at + 1].map(cut),
                std::slice::from_raw_parts_mut(to.add(at), cells),
            )
        };
        let [up, down, left, here, right] = near;
        for j in 0..cells {
            next[j] = five([up[j], down[j], left[j], here[j], right[j]]);
        }
    }
}

/// Returns the next value of a cell. It follows from the values of the cells above, below and to
/// the left, of the cell itself, and of the cell to the right.
#[inline(always)]
pub fn five([up, down, left, here, right]: [f64; 5]) -> f64 {
    0.6 * here + 0.1 * ((up + down) + (left + right))
}

#[cfg(test)]
mod tests {
    use super::Square;

    #[test]
    fn both_ways_leave_the_bits_of_a_serial_program() {
        let value = |row: usize, column: usize| ((row * 31 + column * 17) % 101) as f64;
        for (threads, group) in [(1, 1), (1, 4), (2, 3), (3, 4), (3, 2)] {
            let (mut swept, mut tiled) = (Square::shared(24, threads), Square::cut(24, threads, group));
            swept.fill(value);
            tiled.fill(value);
            let start = swept.bits(0);
            assert!(tiled.bits(0) == start);
            let known = (0..60).fold(start, |bits, _| step(&bits));
            // A team first warms up with a quarter of its iterations. So 48 steps become 60.
            swept.sweep(48);
            tiled.tile(48);
            assert!(swept.bits(60) == known, "{threads} threads");
            assert!(tiled.bits(60) == known, "{threads} threads, {group} steps");
        }
    }

    fn step(bits: &[u64]) -> Vec<u64> {
        let cell = |row: isize, column: isize| match (row, column) {
            (0..24, 0..24) => f64::from_bits(bits[(row * 24 + column) as usize]),
            _ => 0.0,
        };
        let next = |at: isize| {
            let (i, j) = (at / 24, at % 24);
            super::five([cell(i - 1, j), cell(i + 1, j), cell(i, j - 1), cell(i, j), cell(i, j + 1)])
                .to_bits()
        };
        (0..24 * 24).map(next).collect()
    }
}
