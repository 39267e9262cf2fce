//! Snapshots that cannot be written.

use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Offers this step, and waits until the snapshot is written.
fn offer(snapshots: &mut Snapshots<'_>, step: u64) -> Result<()> {
    let mut time = step;
    snapshots.offer(step, || Items::new().part("time", std::slice::from_mut(&mut time)))?;
    snapshots.finish()
}

#[test]
fn the_program_goes_on_when_a_snapshot_cannot_be_written_and_older_ones_are_left() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fencepost::ranks(3).run(|world| {
        let mut snapshots = Snapshots::new(world, folder.path())?.every(1);
        offer(&mut snapshots, 1)?;
        // A file where a folder should be.
        if world.rank() == 0 {
            fs::write(folder.path().join("writing-2"), "in the way")?;
        }
        world.barrier()?;
        offer(&mut snapshots, 2)?;
        if world.rank() == 0 {
            assert!(folder.path().join("step-1").is_dir() && !folder.path().join("step-2").exists());
        }
        // The file that is in the way stays. Only folders that an earlier job has left are removed.
        offer(&mut snapshots, 3)?;
        if world.rank() == 0 {
            assert!(folder.path().join("step-3").is_dir() && folder.path().join("writing-2").is_file());
            // The folder is removed while the program runs.
            fs::remove_dir_all(folder.path())?;
        }
        world.barrier()?;
        offer(&mut snapshots, 4)?;
        offer(&mut snapshots, 5)
    })
}

#[test]
fn with_must_succeed_all_ranks_get_an_error_that_names_the_file() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("writing-1"))?;
    let messages = fencepost::ranks(3).collect(|world| {
        let mut snapshots = Snapshots::new(world, folder.path())?.every(1).must_succeed();
        if world.rank() == 0 {
            fs::create_dir_all(folder.path().join("writing-1/rank-2.parts"))?;
        }
        world.barrier()?;
        let error = offer(&mut snapshots, 1).expect_err("a folder is in the way");
        assert_eq!(error.class(), ErrorClass::Io);
        offer(&mut snapshots, 2)?;
        Ok(error.message().to_owned())
    })?;
    for message in messages {
        let words = ["the snapshot of step 1 could not be written", "rank 2: ", "rank-2.parts"];
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_on_all_ranks() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("file");
    fs::write(&file, "")?;
    let messages = fencepost::ranks(2).collect(|world| {
        let error = Snapshots::new(world, file.join("snapshots")).expect_err("a file is in the way");
        Ok(error.message().to_owned())
    })?;
    assert!(messages.iter().all(|message| message.contains("file/snapshots")), "{messages:?}");
    Ok(())
}

/// The test runs itself again, in a process whose files may have at most 16 KiB. In step 2, the
/// state of a rank is larger than that.
#[test]
fn a_snapshot_for_which_there_is_no_room_leaves_older_ones_and_the_next_one_is_complete() -> Result<()> {
    if let Some(folder) = std::env::var_os("FENCEPOST_TEST_BOUNDED") {
        return fencepost::ranks(2).run(|world| {
            let mut snapshots = Snapshots::new(world, &folder)?.every(1);
            for step in 1..=3 {
                let mut state = vec![step; if step == 2 && world.rank() == 1 { 4096 } else { 16 }];
                snapshots.offer(step, || Items::new().part("state", &mut state))?;
                snapshots.finish()?;
            }
            Ok(())
        });
    }
    let folder = tempfile::tempdir()?;
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$0\" --exact \"$1\" --nocapture";
    let mut child = std::process::Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe()?);
    child
        .arg("failing::a_snapshot_for_which_there_is_no_room_leaves_older_ones_and_the_next_one_is_complete");
    let output = child.env("FENCEPOST_TEST_BOUNDED", folder.path()).output()?;
    let printed = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success() && printed.contains("1 passed"), "{}: {printed}", output.status);
    for words in ["the snapshot of step 2 could not be written: rank 1: ", "rank-1.parts: File too large"] {
        assert!(printed.contains(words), "{printed}");
    }
    fencepost::ranks(2).run(|world| {
        let mut state = Vec::new();
        let restored =
            Snapshots::new(world, folder.path())?.restore(Items::new().part("state", &mut state))?;
        assert_eq!((restored, &state[..]), (Some(3), &[3_u64; 16][..]));
        Ok(())
    })?;
    let mut names: Vec<_> = fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "step-1", "step-3"]);
    Ok(())
}

/// If the folder is copied in less than an interval, the copy restores one of the last two steps.
#[test]
fn a_copy_of_the_folder_while_snapshots_are_written_is_restored() -> Result<()> {
    const CELLS: [usize; 1] = [50_000];
    let folder = tempfile::tempdir()?;
    let latest = || -> Option<u64> {
        let entries = fs::read_dir(folder.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("step-")?.parse().ok()).max()
    };
    // The program goes on until enough copies were made in less than an interval.
    let is_enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            fencepost::ranks(2).run(|world| {
                let block = Block::new(world, CELLS)?;
                let mut u = vec![0_u64; block.len()];
                let mut snapshots = Snapshots::new(world, folder.path())?.every(1).must_succeed();
                for step in 0.. {
                    u.fill(step);
                    snapshots.offer(step, || Items::new().block("u", &block, &mut u))?;
                    snapshots.finish()?;
                    let ends = is_enough.load(Ordering::Acquire) && world.rank() == 0;
                    if world.allreduce_one(u32::from(ends), Op::Max)? == 1 {
                        break;
                    }
                }
                Ok(())
            })
        });
        let mut quick = 0;
        while quick < 20 && !run.is_finished() {
            let Some(before) = latest() else { continue };
            let copy = tempfile::tempdir()?;
            copy_all(folder.path(), copy.path());
            let after = latest().unwrap_or(before);
            if after > before + 1 {
                continue; // the copy took longer than an interval
            }
            let found = fencepost::ranks(1).collect(|world| {
                let block = Block::new(world, CELLS)?;
                let mut u = vec![u64::MAX; block.len()];
                let step =
                    Snapshots::new(world, copy.path())?.restore(Items::new().block("u", &block, &mut u))?;
                let step = step.expect("a snapshot was complete before the copy began");
                assert!(u.iter().all(|&cell| cell == step), "step {step}");
                Ok(step)
            });
            let found = found.inspect_err(|_| is_enough.store(true, Ordering::Release))?[0];
            assert!(found + 1 >= before && found <= after, "{found} of {before} to {after}");
            quick += 1;
        }
        is_enough.store(true, Ordering::Release);
        run.join().expect("no panic")
    })
}

/// Copies a folder as `cp -r` does: files that vanish meanwhile are left out.
fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            if fs::create_dir(&target).is_ok() {
                copy_all(&entry.path(), &target);
            }
        } else {
            let _ = fs::copy(entry.path(), &target);
        }
    }
}
