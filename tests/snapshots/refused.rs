//! Programs, folders and states that do not fit a snapshot, and are refused.

use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::fs;
use std::path::Path;

/// Saves a snapshot of step 5 with a block of 8 cells, a part of 3 elements and a value on 2 ranks.
fn save(folder: &Path) -> Result<()> {
    fencepost::ranks(2).run(|world| {
        let block = Block::new(world, [8])?;
        let mut u = vec![1.0; block.len()];
        let (mut seeds, mut time) = ([7_u32; 3], 2.5);
        let mut snapshots = Snapshots::new(world, folder)?.every(1).must_succeed();
        let items =
            Items::new().block("u", &block, &mut u).part("seeds", &mut seeds).value("time", &mut time);
        snapshots.offer(5, || items)?;
        snapshots.finish()
    })
}

/// Calls `restored`, which must return an error with the same message on all ranks. Returns this
/// message.
fn refused(
    folder: &Path,
    ranks: usize,
    restored: impl Fn(&World, &mut Snapshots<'_>) -> Result<()> + Sync,
) -> Result<String> {
    let errors = fencepost::ranks(ranks).collect(|world| {
        let mut snapshots = Snapshots::new(world, folder)?;
        let error = restored(world, &mut snapshots).expect_err("it does not fit");
        Ok(error.message().to_owned())
    })?;
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:#?}");
    Ok(errors[0].clone())
}

#[test]
fn a_state_that_differs_from_the_snapshot_is_refused_with_the_item_and_both_descriptions() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path())?;
    type Restore = fn(&World, &mut Snapshots<'_>) -> Result<()>;
    let cases: [(usize, Restore, &[&str]); 7] = [
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [9])?;
                let mut u = vec![0.0; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .block("u", &block, &mut u)
                            .part("seeds", &mut [0_u32; 3])
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`u`", "[9] cells", "[8] cells"],
        ),
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0_f32; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .block("u", &block, &mut u)
                            .part("seeds", &mut [0_u32; 3])
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`u`", "<f4", "<f8"],
        ),
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0; block.len()];
                snapshots.restore(Items::new().block("u", &block, &mut u).value("time", &mut 0.0)).map(drop)
            },
            &["`seeds`", "does not list"],
        ),
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .block("u", &block, &mut u)
                            .part("seeds", &mut Vec::<u32>::new())
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`seeds`", "a vector", "a part"],
        ),
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .value("mass", &mut 1.0)
                            .block("u", &block, &mut u)
                            .part("seeds", &mut [0_u32; 3])
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`mass`", "does not have"],
        ),
        (
            2,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .block("u", &block, &mut u)
                            .part("seeds", &mut [0_u32; 4])
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`seeds`", "3 elements", "4"],
        ),
        (
            4,
            |world, snapshots| {
                let block = Block::new(world, [8])?;
                let mut u = vec![0.0; block.len()];
                snapshots
                    .restore(
                        Items::new()
                            .block("u", &block, &mut u)
                            .part("seeds", &mut [0_u32; 3])
                            .value("time", &mut 0.0),
                    )
                    .map(drop)
            },
            &["`seeds`", "2 ranks", "4"],
        ),
    ];
    for (ranks, restored, words) in cases {
        let message = refused(folder.path(), ranks, restored)?;
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }
    Ok(())
}

#[test]
fn ranks_that_list_different_items_get_both_descriptions() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let message = refused(folder.path(), 3, |world, snapshots| {
        let (mut one, mut other) = (1.0_f64, 1_i32);
        let items = Items::new();
        let items = if world.rank() == 2 { items.value("x", &mut other) } else { items.value("x", &mut one) };
        snapshots.restore(items).map(drop)
    })?;
    for word in ["`x`", "<f8 on rank 0", "<i4 on rank 2"] {
        assert!(message.contains(word), "{message}");
    }
    Ok(())
}

#[test]
fn a_value_that_differs_between_ranks_is_not_saved() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let error = fencepost::ranks(2).run(|world| {
        let mut time = world.rank() as f64;
        let mut snapshots = Snapshots::new(world, folder.path())?.every(1).must_succeed();
        snapshots.offer(1, || Items::new().value("time", &mut time))?;
        snapshots.finish()
    });
    let message = error.expect_err("the value differs").message().to_owned();
    assert!(message.contains("`time` differs between rank 0 and rank 1"), "{message}");
    Ok(())
}

#[test]
fn names_that_are_no_names_of_files_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a b", "-x", "über", &"x".repeat(65)] {
        let message = refused(folder.path(), 2, |_, snapshots| {
            snapshots.restore(Items::new().value(name, &mut 0.0)).map(drop)
        })?;
        assert!(
            message.contains("cannot become a file") && message.contains(&format!("{name:?}")),
            "{message}"
        );
    }
    let message = refused(folder.path(), 1, |_, snapshots| {
        snapshots.restore(Items::new().value("x", &mut 0.0).value("x", &mut 1.0)).map(drop)
    })?;
    assert!(message.contains("two items are named `x`"), "{message}");
    Ok(())
}

#[test]
fn a_block_of_another_rank_and_storage_of_another_length_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let message = refused(folder.path(), 2, |_, snapshots| {
        let block = Block::at(0, 2, [8])?;
        snapshots.restore(Items::new().block("u", &block, &mut vec![0.0; block.len()])).map(drop)
    })?;
    assert!(message.contains("rank 1: the item `u` is a block that is not the one of rank 1"), "{message}");
    let message = refused(folder.path(), 2, |world, snapshots| {
        let block = Block::new(world, [8])?.halo(1)?;
        snapshots.restore(Items::new().block("u", &block, &mut [0.0; 4])).map(drop)
    })?;
    assert!(message.contains("has 4 elements, where its block stores 6"), "{message}");
    Ok(())
}

#[test]
fn a_step_that_goes_backwards_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    save(folder.path())?;
    for (first, second) in [(5, 6), (4, 6), (9, 9), (9, 8)] {
        let message = refused(folder.path(), 2, |_, snapshots| {
            snapshots.offer(first, Items::new)?;
            snapshots.offer(second, Items::new)
        })?;
        assert!(message.contains("steps only increase"), "{message}");
    }
    Ok(())
}

#[test]
fn a_folder_that_another_job_uses_is_refused_with_its_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fencepost::ranks(1).run(|world| {
        let first = Snapshots::new(world, folder.path())?;
        let error = Snapshots::new(world, folder.path()).expect_err("it is in use");
        for word in ["snapshots (process ", "holds this folder"] {
            assert!(error.message().contains(word), "{error}");
        }
        drop(first);
        Snapshots::new(world, folder.path()).map(drop)
    })?;
    // The lock file of a job that was killed locks nothing.
    fs::write(folder.path().join("lock"), "hillslope (process 1 on host a)\nold\n")?;
    fencepost::ranks(1).run(|world| Snapshots::new(world, folder.path()).map(drop))
}

#[test]
fn ranks_that_offer_different_steps_get_an_error_with_both() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let error = fencepost::ranks(2).run(|world| {
        let mut snapshots = Snapshots::new(world, folder.path())?.every(1).must_succeed();
        let mut value = 1.0;
        snapshots.offer(7 + world.rank() as u64, || Items::new().value("x", &mut value))?;
        snapshots.finish()
    });
    let message = error.expect_err("the steps differ").message().to_owned();
    assert!(message.contains("rank 0 step 7, and rank 1 step 8"), "{message}");
    Ok(())
}

#[test]
fn blocks_of_different_grids_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let message = refused(folder.path(), 2, |world, snapshots| {
        let grid = if world.rank() == 0 { [2, 1] } else { [1, 2] };
        let block = Block::new(world, [4, 4])?.grid(grid)?;
        snapshots.restore(Items::new().block("u", &block, &mut vec![0.0; block.len()])).map(drop)
    })?;
    assert!(message.contains("a grid of [2, 1] ranks on rank 0") && message.contains("[1, 2]"), "{message}");
    Ok(())
}

#[test]
fn a_rank_that_does_not_see_the_folder_of_rank_0_is_named() -> Result<()> {
    let (folder, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let errors = fencepost::ranks(3).collect(|world| {
        let path = if world.rank() == 1 { other.path() } else { folder.path() };
        Ok(Snapshots::new(world, path).expect_err("rank 1 sees another folder").message().to_owned())
    })?;
    for error in errors {
        assert!(
            error.starts_with("rank 1: does not see the folder") && error.contains("absolute path"),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn items_that_became_invalid_are_refused_before_they_are_copied() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let error = fencepost::ranks(2).run(|world| {
        let mut snapshots = Snapshots::new(world, folder.path())?.every(1);
        let block = Block::new(world, [8])?;
        let mut u = vec![0.0; block.len()];
        snapshots.offer(1, || Items::new().block("u", &block, &mut u))?;
        snapshots.finish()?;
        snapshots.offer(2, || Items::new().block("u", &block, &mut u[..3]))
    });
    let message = error.expect_err("the storage is too short").message().to_owned();
    assert!(message.contains("has 3 elements, where its block stores 4"), "{message}");
    Ok(())
}

/// Edits the manifest, and writes the right checksum for the new text.
fn edit(folder: &Path, from: &str, to: &str) -> Result<()> {
    let path = folder.join("step-5/manifest.json");
    let text = fs::read_to_string(&path)?;
    let (_, body) = text.split_once("\"snapshot\": ").expect("a manifest");
    let body = body.replace(from, to);
    fs::write(
        &path,
        format!("{{\"crc32\": \"{:08x}\", \"snapshot\": {body}", crc32fast::hash(body.as_bytes())),
    )?;
    Ok(())
}

#[test]
fn snapshots_of_another_program_and_of_a_newer_release_are_refused() -> Result<()> {
    for (from, to, words) in [
        ("\"program\": \"snapshots\"", "\"program\": \"other\"", ["`other`", "`snapshots`"]),
        ("\"format\": 1", "\"format\": 2", ["format 2", "formats up to 1"]),
    ] {
        let folder = tempfile::tempdir()?;
        save(folder.path())?;
        edit(folder.path(), from, to)?;
        let message = refused(folder.path(), 2, |_, snapshots| snapshots.restore(Items::new()).map(drop))?;
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    Ok(())
}

#[test]
fn a_manifest_that_was_edited_to_contradict_itself_is_damaged() -> Result<()> {
    for (from, to) in [
        ("\"ranks\": 2", "\"ranks\": 18446744073709551615"),
        ("\"ranks\": 2", "\"ranks\": 0"),
        ("\"step\": 5", "\"step\": 6"),
        ("\"elements\": 3", "\"elements\": 4611686018427387904"),
        ("\"at\": 0", "\"at\": 1"),
        ("\"size\": 8", "\"size\": 0"),
        ("\"<f8\"", "\"<f4\""),
        ("\"<f8\"", "\"nonsense\""),
        ("\"name\": \"u\"", "\"name\": \"../u\""),
        ("\"name\": \"u\"", "\"name\": \"seeds\""),
        ("        4\n", "        5\n"),
        ("\"kind\": \"value\"", "\"kind\": \"thing\""),
    ] {
        let folder = tempfile::tempdir()?;
        save(folder.path())?;
        edit(folder.path(), from, to)?;
        let message = refused(folder.path(), 2, |_, snapshots| snapshots.restore(Items::new()).map(drop))?;
        assert!(message.contains("no snapshot in it is intact"), "{from} to {to}: {message}");
    }
    Ok(())
}
