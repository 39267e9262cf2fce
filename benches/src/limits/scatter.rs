//! Scattered operations of two threads, each on the table of the other thread.

use super::team::{Words, team};
use crate::draws::{Set, TABLE};
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Duration;

/// The way in which the owner of a table applies a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apply {
    /// Stores the value of the record.
    Store,
    /// Adds the value of the record as `f64`.
    AddF64,
}

/// Two tables, and for each thread two logs that take turns.
pub struct Tables {
    tables: [Words; 2],
    logs: [Words; 2],
    draws: Vec<Vec<Set>>,
}

impl Tables {
    /// Creates the tables of two threads with these draws, `[thread][set]`.
    pub fn new(draws: Vec<Vec<Set>>) -> Self {
        let n = draws[0][0].indices.len();
        Self {
            tables: [Words::new(TABLE), Words::new(TABLE)],
            logs: [Words::new(2 * n), Words::new(2 * n)],
            draws,
        }
    }

    /// Stores each value directly into the other thread's table. A barrier ends the epoch.
    pub fn store(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let table = self.tables[1 - beat.me].start();
            let mut sets = self.draws[beat.me].iter().cycle();
            for set in sets.by_ref().take(iterations as usize) {
                for (&index, &value) in set.indices.iter().zip(&set.values) {
                    // SAFETY: `draw` gives indices below TABLE. Here each table is written by one
                    // thread and read by no thread.
                    unsafe { table.add(index as usize).write(value) };
                }
                beat.wait();
            }
        })
    }

    /// Logs each operation as index and value. The owner of the table applies them.
    ///
    /// After a barrier, the owner of a table applies the other thread's log. Another barrier
    /// follows.
    pub fn log_exchange_apply(&self, apply: Apply, iterations: u64) -> Duration {
        match apply {
            Apply::Store => self.log::<false>(iterations),
            Apply::AddF64 => self.log::<true>(iterations),
        }
    }

    fn log<const ADD: bool>(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let (log, other) = (self.logs[beat.me].start(), self.logs[1 - beat.me].start());
            let table = self.tables[beat.me].start();
            for set in self.draws[beat.me].iter().cycle().take(iterations as usize) {
                for (i, (&index, &value)) in set.indices.iter().zip(&set.values).enumerate() {
                    // SAFETY: the log holds two words for each operation. Before the barrier, only
                    // this thread accesses it, and the other thread reads it only between this
                    // barrier and the next.
                    unsafe {
                        log.add(2 * i).write(u64::from(index));
                        log.add(2 * i + 1).write(value);
                    }
                }
                beat.wait();
                for i in 0..set.indices.len() {
                    // SAFETY: as above, in the opposite direction. Both logs have the same length,
                    // their indices are below TABLE, and only this thread accesses its table.
                    unsafe {
                        let (index, value) = (other.add(2 * i).read(), other.add(2 * i + 1).read());
                        let cell = table.add(index as usize);
                        if ADD {
                            let sum = f64::from_bits(cell.read()) + f64::from_bits(value);
                            cell.write(sum.to_bits());
                        } else {
                            cell.write(value);
                        }
                    }
                }
                beat.wait();
            }
        })
    }

    /// Logs the index of each get, and takes the values with which the owner of the table answers.
    ///
    /// After a barrier, the owner of a table writes the answers into the log. After another
    /// barrier, the thread that logged the gets takes them.
    pub fn log_answer_take(&self, iterations: u64) -> Duration {
        let results = [Words::new(TABLE), Words::new(TABLE)];
        team(2, iterations, |beat, iterations| {
            let (log, other) = (self.logs[beat.me].start(), self.logs[1 - beat.me].start());
            let (table, result) = (self.tables[beat.me].start(), results[beat.me].start());
            for set in self.draws[beat.me].iter().cycle().take(iterations as usize) {
                let n = set.indices.len();
                for (i, &index) in set.indices.iter().enumerate() {
                    // SAFETY: before the first barrier each log belongs to its own thread.
                    unsafe { log.add(i).write(u64::from(index)) };
                }
                beat.wait();
                for i in 0..n {
                    // SAFETY: between the barriers, the other thread's log belongs to this thread,
                    // including the space for answers behind the indices. Tables are only read.
                    unsafe { other.add(n + i).write(table.add(other.add(i).read() as usize).read()) };
                }
                beat.wait();
                for i in 0..n {
                    // SAFETY: after the second barrier the log belongs to its own thread again.
                    unsafe { result.add(i).write(log.add(n + i).read()) };
                }
                compiler_fence(Ordering::SeqCst);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::draw;

    #[test]
    fn what_one_thread_draws_ends_in_the_table_of_the_other() {
        for apply in [None, Some(Apply::Store), Some(Apply::AddF64)] {
            let draws = draw(2, 1, 100);
            let mut tables = Tables::new(draws.clone());
            // One iteration is the warm-up, and one is timed. The sums contain both.
            match apply {
                None => tables.store(1),
                Some(apply) => tables.log_exchange_apply(apply, 1),
            };
            for me in 0..2 {
                let mut expected = vec![0; TABLE];
                for (&index, &value) in draws[1 - me][0].indices.iter().zip(&draws[1 - me][0].values) {
                    let twice = (2.0 * f64::from_bits(value)).to_bits();
                    expected[index as usize] = if apply == Some(Apply::AddF64) { twice } else { value };
                }
                assert!(tables.tables[me].to_vec() == expected, "{apply:?}, thread {me}");
            }
        }
    }
}
