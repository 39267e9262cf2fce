//! A rank needs little memory for its part of a field, however large the file is.

use fencepost::Result;
use fencepost::grid::Block;
use fencepost::snapshots::Field;
use fencepost_tests_support::counting::peak;

/// The most bytes that a rank allocates while it saves or loads.
const MOST: isize = 8 << 20;

#[test]
fn a_field_of_64_mib_is_saved_and_loaded_with_little_memory() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let path = folder.path().join("field.npy");
    // Long rows, rows that are joined, and short rows.
    round_trip(&path, [2048, 4096])?;
    round_trip(&path, [1 << 18, 32])?;
    round_trip(&path, [1 << 23])
}

fn round_trip<const D: usize>(path: &std::path::Path, global: [usize; D]) -> Result<()> {
    fencepost::ranks(4).run(|world| {
        let block = Block::new(world, global)?.halo(1)?;
        let mut cells = vec![0.5; block.len()];
        block.fill(&mut cells, |cell| cell.iter().sum::<usize>() as f64);
        let (saved, most) = peak(|| Field::save(world, &block, &cells, path));
        saved?;
        assert!(most <= MOST, "{most} bytes to save {global:?}");
        let mut loaded = vec![0.5_f64; block.len()];
        let (read, most) = peak(|| Field::open(path)?.load(&block, &mut loaded));
        read?;
        assert!(most <= MOST, "{most} bytes to load {global:?}");
        let same = block.rows().all(|row| row.of(&cells) == row.of(&loaded));
        assert!(same, "{global:?}");
        Ok(())
    })
}
