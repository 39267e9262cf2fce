//! Whatever happens to the bytes of a snapshot, the previous snapshot is restored.

use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::fs;
use std::path::{Path, PathBuf};

/// A small state with an item of each kind.
#[derive(Clone, PartialEq, Debug)]
struct Small {
    cells: Vec<f32>,
    seeds: [u64; 2],
    queue: Vec<u16>,
    time: f64,
}

fn block(world: &World) -> Result<Block<2>> {
    Block::new(world, [4, 3])?.halo(1)
}

impl Small {
    /// Returns the state of a rank after a step.
    fn after(step: u64, block: &Block<2>) -> Self {
        let rank = block.rank() as u64;
        // Every cell of the halo is outside of the array, or belongs to the other rank.
        let mut cells = vec![-1.0; block.len()];
        block.fill(&mut cells, |[i, j]| (i * 3 + j) as f32 + step as f32 / 8.0);
        let queue = (0..3 * rank + step).map(|item| item as u16 + 7).collect();
        Self { cells, seeds: [step + rank, 1 << 40], queue, time: step as f64 }
    }

    fn items<'a>(&'a mut self, block: &'a Block<2>) -> Items<'a> {
        Items::new()
            .block("cells", block, &mut self.cells)
            .part("seeds", &mut self.seeds)
            .part("queue", &mut self.queue)
            .value("time", &mut self.time)
    }
}

fn save(folder: &Path, steps: &[u64]) -> Result<()> {
    fencepost::ranks(2).run(|world| {
        let block = block(world)?;
        let mut snapshots = Snapshots::new(world, folder)?.every(1).must_succeed();
        for &step in steps {
            let mut small = Small::after(step, &block);
            snapshots.offer(step, || small.items(&block))?;
            snapshots.finish()?;
        }
        Ok(())
    })
}

/// Restores the latest snapshot that is intact, checks every bit of it, and returns its step.
fn restore(folder: &Path) -> Result<Option<u64>> {
    let steps = fencepost::ranks(2).collect(|world| {
        let block = block(world)?;
        let mut small = Small { cells: vec![-1.0; block.len()], seeds: [0; 2], queue: vec![9; 9], time: 0.0 };
        let step = Snapshots::new(world, folder)?.restore(small.items(&block))?;
        if let Some(step) = step {
            let mut expected = Small::after(step, &block);
            block.rows().for_each(|row| assert_eq!(row.of(&small.cells), row.of(&expected.cells)));
            expected.cells.clone_from(&small.cells);
            assert_eq!(small, expected);
        }
        Ok(step)
    })?;
    assert_eq!(steps[0], steps[1]);
    Ok(steps[0])
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

#[test]
fn a_flipped_byte_anywhere_leads_to_the_snapshot_before() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path(), &[1, 2])?;
    assert_eq!(restore(folder.path())?, Some(2));
    let mut bits = (0..8).cycle().map(|bit| 1_u8 << bit);
    for path in files(&folder.path().join("step-2"))? {
        let bytes = fs::read(&path)?;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= bits.next().unwrap_or(1);
            fs::write(&path, damaged)?;
            assert_eq!(restore(folder.path())?, Some(1), "{}: byte {at}", path.display());
        }
        fs::write(&path, bytes)?;
    }
    assert_eq!(restore(folder.path())?, Some(2));
    Ok(())
}

#[test]
fn a_file_that_is_cut_off_or_missing_or_longer_leads_to_the_snapshot_before() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path(), &[1, 2])?;
    let names: Vec<_> = files(&folder.path().join("step-2"))?;
    assert_eq!(names.len(), 4, "{names:?}");
    for path in names {
        let bytes = fs::read(&path)?;
        for len in 0..bytes.len() {
            fs::write(&path, &bytes[..len])?;
            assert_eq!(restore(folder.path())?, Some(1), "{}: {len} bytes", path.display());
        }
        fs::write(&path, [&bytes[..], &[0]].concat())?;
        assert_eq!(restore(folder.path())?, Some(1), "{}: a byte more", path.display());
        fs::remove_file(&path)?;
        assert_eq!(restore(folder.path())?, Some(1), "{} is missing", path.display());
        fs::write(&path, bytes)?;
    }
    Ok(())
}

#[test]
fn if_no_snapshot_is_intact_the_program_does_not_start_from_the_beginning() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path(), &[1, 2])?;
    for step in ["step-1", "step-2"] {
        fs::write(folder.path().join(step).join("cells.npy"), "no array")?;
    }
    let error = restore(folder.path()).expect_err("nothing is intact");
    assert_eq!(error.class(), ErrorClass::File);
    assert!(error.message().contains("no snapshot in it is intact"), "{error}");
    // Folders without a manifest are no snapshots.
    for step in ["step-1", "step-2"] {
        fs::remove_file(folder.path().join(step).join("manifest.json"))?;
    }
    assert_eq!(restore(folder.path())?, None);
    Ok(())
}

#[test]
fn what_an_interrupted_job_has_left_is_removed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path(), &[1])?;
    for name in ["writing-2", "removing-0"] {
        fs::create_dir(folder.path().join(name))?;
        fs::write(folder.path().join(name).join("cells.npy"), "in part")?;
    }
    fs::write(folder.path().join("notes.txt"), "of the user")?;
    assert_eq!(restore(folder.path())?, Some(1));
    let names: Vec<_> = files(folder.path())?;
    let names: Vec<_> = names.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["lock", "notes.txt", "step-1"]);
    Ok(())
}

/// Returns the state after a step of a program whose state is only a block.
fn heights(step: u64, block: &Block<2>) -> Vec<f32> {
    let mut cells = vec![-1.0; block.len()];
    block.fill(&mut cells, |[i, j]| (i * 3 + j) as f32 + step as f32 / 8.0);
    cells
}

fn save_blocks(folder: &Path, steps: &[u64], keep: usize) -> Result<()> {
    fencepost::ranks(2).run(|world| {
        let block = block(world)?;
        let mut snapshots = Snapshots::new(world, folder)?.every(1).keep(keep).must_succeed();
        let mut cells = heights(0, &block);
        snapshots.restore(Items::new().block("cells", &block, &mut cells))?;
        for &step in steps {
            cells = heights(step, &block);
            snapshots.offer(step, || Items::new().block("cells", &block, &mut cells))?;
            snapshots.finish()?;
        }
        Ok(())
    })
}

/// Restores with another number of ranks. These ranks compare boxes that they do not own.
fn restore_blocks(folder: &Path, ranks: usize) -> Result<Option<u64>> {
    let steps = fencepost::ranks(ranks).collect(|world| {
        let block = Block::new(world, [4, 3])?;
        let mut cells = vec![-1.0; block.len()];
        let step = Snapshots::new(world, folder)?.restore(Items::new().block("cells", &block, &mut cells))?;
        assert!(step.is_none_or(|step| cells == heights(step, &block)));
        Ok(step)
    })?;
    Ok(steps[0])
}

#[test]
fn a_flipped_byte_is_noticed_by_another_number_of_ranks() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save_blocks(folder.path(), &[1, 2], 2)?;
    let path = folder.path().join("step-2/cells.npy");
    let bytes = fs::read(&path)?;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 16;
        fs::write(&path, damaged)?;
        assert_eq!(restore_blocks(folder.path(), 1 + 2 * (at % 2))?, Some(1), "byte {at}");
    }
    fs::write(&path, bytes)?;
    assert_eq!(restore_blocks(folder.path(), 3)?, Some(2));
    Ok(())
}

/// A damaged snapshot is later than the restored snapshot. The damaged snapshot does not count as
/// one of the snapshots to keep.
#[test]
fn a_damaged_snapshot_is_removed_after_the_next_one_and_no_intact_one_for_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save_blocks(folder.path(), &[40, 50], 2)?;
    let damaged = folder.path().join("step-50/cells.npy");
    fs::write(&damaged, "damaged")?;
    save_blocks(folder.path(), &[42], 1)?;
    assert_eq!(restore_blocks(folder.path(), 2)?, Some(42));
    assert!(!folder.path().join("step-50").exists() && !folder.path().join("step-40").exists());
    Ok(())
}

#[test]
fn only_folders_that_a_job_has_left_are_removed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for name in ["writing-notes", "removing-old-data", "writing-7", "removing-007"] {
        fs::create_dir(folder.path().join(name))?;
    }
    fs::write(folder.path().join("writing-8"), "a file")?;
    assert_eq!(restore_blocks(folder.path(), 1)?, None);
    let names: Vec<_> = files(folder.path())?;
    let names: Vec<_> = names.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["lock", "removing-007", "removing-old-data", "writing-8", "writing-notes"]);
    Ok(())
}
