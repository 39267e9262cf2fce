//! A run that is resumed has the same result, bit for bit, as a run that is not interrupted.

use fencepost::{Result, ranks};
use std::time::Duration;

const CELLS: [usize; 2] = [512, 512];

#[test]
fn a_resumed_run_has_the_bits_of_an_undisturbed_one() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let saved = (folder.path(), Duration::ZERO);
    // Each offer is due. An offer is skipped if a snapshot is still being written.
    ranks(4).run(|world| heat::resume(world, CELLS, 9, saved).map(drop))?;
    let saved_steps = std::fs::read_dir(folder.path())?.flatten().filter(|entry| entry.path().is_dir());
    assert!((1..=2).contains(&saved_steps.count()), "two are kept");
    let resumed = ranks(4).collect(|world| heat::resume(world, CELLS, 20, saved))?;
    assert_eq!(ranks(4).collect(|world| heat::run(world, CELLS, 20))?, resumed);
    Ok(())
}
