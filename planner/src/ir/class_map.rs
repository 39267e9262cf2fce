//! The map from ranks to classes as nested runs: row, plane, volume.
//!
//! A 2D grid of 316 x 317 ranks has three distinct rows of three runs each, and three runs of rows.
//! So the size of the map grows with the classes and not with the number of ranks.

use crate::ids::ClassId;
use indexmap::IndexSet;

/// A number of repetitions of the same class, or of the same line of the level below.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// The number of repetitions; at least 1.
    pub count: u32,
    /// The class, or the line of the level below.
    pub of: u32,
}

/// A line of one dimension of the grid, as runs. In canonical form, neighbouring runs differ.
pub type Line = Vec<Run>;

/// The map from ranks to classes, with a level for each dimension of the grid, fastest first. A
/// level has the distinct lines of that dimension in order of appearance. A run of the first level
/// repeats a class. A run of any other level repeats a line of the level before. The last level has
/// one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestedRuns {
    /// Fastest dimension first.
    pub levels: Vec<Vec<Line>>,
}

impl NestedRuns {
    /// Compresses `class_of` over a grid of `shape`, slowest dimension first. If `shape` does not
    /// have exactly as many places as there are ranks, compresses `class_of` as a single line.
    pub fn compress(class_of: &[ClassId], shape: &[u32]) -> Self {
        let places = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent as usize));
        let line = [class_of.len() as u32];
        let fits = !shape.is_empty() && places == Some(class_of.len());
        let shape = if fits { shape } else { &line };
        let mut items: Vec<u32> = class_of.iter().map(|class| class.0).collect();
        let mut levels = Vec::with_capacity(shape.len());
        for &extent in shape.iter().rev() {
            let mut lines: IndexSet<Line> = IndexSet::new();
            let chunks = items.chunks((extent as usize).max(1));
            items = chunks.map(|chunk| lines.insert_full(runs(chunk)).0 as u32).collect();
            levels.push(lines.into_iter().collect());
        }
        Self { levels }
    }

    /// Returns the class of each rank of a grid of `shape` with `classes` classes. If the map does
    /// not fit such a grid, returns a description of what is wrong.
    ///
    /// # Cost
    /// Grows with the number of places of `shape`, which the caller bounds.
    pub fn expand(&self, shape: &[u32], classes: usize) -> Result<Vec<ClassId>, String> {
        if self.levels.len() != shape.len() {
            return Err(format!("{} levels of runs for {} dimensions", self.levels.len(), shape.len()));
        }
        let mut below = classes;
        for (level, &extent) in self.levels.iter().zip(shape.iter().rev()) {
            for line in level {
                let total: u64 = line.iter().map(|run| u64::from(run.count)).sum();
                if total != u64::from(extent) {
                    return Err(format!("a line of {total} places in a dimension of {extent}"));
                }
                if let Some(run) = line.iter().find(|run| run.count == 0 || run.of as usize >= below) {
                    return Err(format!(
                        "a run of {} times item {}, where items are below {below}",
                        run.count, run.of
                    ));
                }
            }
            below = level.len();
        }
        if below != 1 {
            return Err(format!("{below} outermost lines where one is expected"));
        }
        let mut all = Vec::new();
        self.unroll(self.levels.len() - 1, 0, &mut all);
        Ok(all)
    }

    fn unroll(&self, level: usize, line: u32, all: &mut Vec<ClassId>) {
        for run in &self.levels[level][line as usize] {
            if level == 0 {
                all.extend(std::iter::repeat_n(ClassId(run.of), run.count as usize));
            } else {
                (0..run.count).for_each(|_| self.unroll(level - 1, run.of, all));
            }
        }
    }
}

fn runs(items: &[u32]) -> Line {
    items.chunk_by(|a, b| a == b).map(|run| Run { count: run.len() as u32, of: run[0] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_even_2d_grid_has_three_rows_of_three_runs() {
        let kind = |at: u32, n: u32| if at == 0 { 0 } else { 1 + u32::from(at == n - 1) };
        let class_of: Vec<ClassId> =
            (0..316 * 317).map(|rank| ClassId(3 * kind(rank / 317, 316) + kind(rank % 317, 317))).collect();
        let map = NestedRuns::compress(&class_of, &[316, 317]);
        assert_eq!(map.levels[0].iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!(map.levels[1].iter().map(Vec::len).collect::<Vec<_>>(), [3]);
        assert_eq!(map.expand(&[316, 317], 9), Ok(class_of));
    }

    proptest! {
        #[test]
        fn what_was_compressed_expands_again(
            shape in prop::collection::vec(1u32..5, 1..5), fits: bool, seed in prop::collection::vec(0u32..3, 700)
        ) {
            let ranks: u32 = shape.iter().product();
            let class_of: Vec<ClassId> = seed[..ranks as usize].iter().map(|&class| ClassId(class)).collect();
            let over = if fits { shape } else { vec![ranks] };
            let hint: &[u32] = if fits { &over } else { &[2, 1000] };
            prop_assert_eq!(NestedRuns::compress(&class_of, hint).expand(&over, 3), Ok(class_of));
        }

        #[test]
        fn a_damaged_map_is_refused_or_has_the_right_size(
            levels in prop::collection::vec(prop::collection::vec(prop::collection::vec((0u32..4, 0u32..4), 0..3), 0..3), 0..4),
            shape in prop::collection::vec(0u32..5, 0..4),
        ) {
            let line = |line: Vec<(u32, u32)>| line.into_iter().map(|(count, of)| Run { count, of }).collect();
            let levels = levels.into_iter().map(|lines| lines.into_iter().map(line).collect()).collect();
            if let Ok(all) = (NestedRuns { levels }).expand(&shape, 2) {
                prop_assert_eq!(all.len() as u32, shape.iter().product::<u32>());
                prop_assert!(all.iter().all(|class| class.0 < 2));
            }
        }
    }
}
