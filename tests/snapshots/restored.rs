//! Snapshots that are taken by some ranks and restored by others.

use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::path::Path;

/// The state of a program: a block, a value, and elements of each rank.
struct Run {
    block: Block<2>,
    heights: Vec<f64>,
    time: [f64; 2],
}

const CELLS: [usize; 2] = [19, 12];

impl Run {
    fn new(world: &World, halo: usize) -> Result<Self> {
        let block = Block::new(world, CELLS)?.halo(halo)?;
        Ok(Self { heights: vec![-1.0; block.len()], block, time: [0.0; 2] })
    }

    /// Sets the state to the state after `step`.
    fn step(&mut self, step: u64) {
        self.block.fill(&mut self.heights, |[i, j]| (100 * i + j) as f64 + step as f64 / 1024.0);
        self.time = [step as f64, 0.5];
    }

    fn items(&mut self) -> Items<'_> {
        Items::new().block("heights", &self.block, &mut self.heights).value("time", &mut self.time)
    }

    /// Checks that the state, including the halo, is the state after `step`.
    fn check(&self, step: u64) {
        assert_eq!(self.time, [step as f64, 0.5]);
        let ([rows, columns], widths) = (self.block.shape(), self.block.widths());
        let origin = self.block.origin();
        for i in 0..rows {
            for j in 0..columns {
                let place =
                    |d: usize, at: usize| (origin[d] + at).checked_sub(widths[d]).filter(|&at| at < CELLS[d]);
                let expected = match (place(0, i), place(1, j)) {
                    (Some(i), Some(j)) => (100 * i + j) as f64 + step as f64 / 1024.0,
                    _ => -1.0,
                };
                let found = self.heights[i * self.block.strides()[0] + j];
                assert_eq!(found, expected, "rank {}: {i}, {j}", self.block.rank());
            }
        }
    }
}

/// Takes a snapshot of each of these steps.
fn save(folder: &Path, ranks: usize, steps: impl IntoIterator<Item = u64> + Clone + Sync) -> Result<()> {
    fencepost::ranks(ranks).run(|world| {
        let mut run = Run::new(world, 1)?;
        let mut snapshots = Snapshots::new(world, folder)?.every(1).must_succeed();
        for step in steps.clone() {
            run.step(step);
            snapshots.offer(step, || run.items())?;
            snapshots.finish()?;
        }
        Ok(())
    })
}

/// Restores the latest snapshot, and returns its step.
fn restore(folder: &Path, ranks: usize, halo: usize) -> Result<Option<u64>> {
    let steps = fencepost::ranks(ranks).collect(|world| {
        let mut run = Run::new(world, halo)?;
        let step = Snapshots::new(world, folder)?.restore(run.items())?;
        if let Some(step) = step {
            run.check(step);
        }
        Ok(step)
    })?;
    assert!(steps.iter().all(|step| *step == steps[0]), "{steps:?}");
    Ok(steps[0])
}

#[test]
fn a_snapshot_of_4_ranks_is_restored_by_any_number_with_other_halos() -> Result<()> {
    let folder = tempfile::tempdir()?;
    assert_eq!(restore(folder.path(), 2, 1)?, None);
    save(folder.path(), 4, [3, 7, 8])?;
    for ranks in [1, 3, 4, 6, 9] {
        for halo in 0..=3 {
            assert_eq!(restore(folder.path(), ranks, halo)?, Some(8), "{ranks} ranks, halo of {halo}");
        }
    }
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path())?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    names.sort();
    assert_eq!(names, ["lock", "step-7", "step-8"], "two are kept");
    Ok(())
}
