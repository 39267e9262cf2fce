//! The text of a conflict's report, and the files and errors in which the report appears.

use fencepost::prelude::*;
use fencepost::{Check, ranks};
use fencepost_tests_worlds::transports::transports;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Returns the class and the message of each rank's error, and the line before the first operation.
/// Rank 0 puts to rank 1, rank 1 accumulates into its own part, and rank 2 does nothing.
fn messages(check: Check, report: Option<&Path>) -> (Vec<(ErrorClass, String)>, u32) {
    let world = ranks(3).check(check);
    let world = match report {
        Some(file) => world.check_report(file),
        None => world,
    };
    let told = Mutex::new(vec![None; 3]);
    let before = line!() + 3;
    let run = world.run(|world| {
        let mut u = world.window::<u64>(8)?;
        match world.rank() {
            0 => u.put([5; 3]).to(1, 2)?,
            1 => u.accumulate([5; 3], Op::Max).to(1, 4)?,
            _ => (),
        }
        let error = u.fence().expect_err("they conflict");
        told.lock().expect("no panic")[world.rank()] = Some((error.class(), error.message().to_owned()));
        u.fence()
    });
    run.expect("the world goes on");
    let told = told.into_inner().expect("no panic").into_iter();
    (told.collect::<Option<Vec<_>>>().expect("all ranks have an error"), before)
}

#[test]
fn both_lines_are_quoted_with_ranks_window_elements_and_what_to_change() {
    let (told, before) = messages(Check::Conflicts, None);
    let classes: Vec<ErrorClass> = told.iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [ErrorClass::RmaConflict, ErrorClass::RmaConflict, ErrorClass::RmaSync]);
    let file = file!();
    let expected = format!(
        "two operations of this epoch conflict, and nothing was applied\n  element 4 of window 0 on rank 1:\n    written by rank 0 at {file}:{}: `0 => u.put([5; 3]).to(1, 2)?,`\n    accumulated into with MAX by rank 1 at {file}:{}: `1 => u.accumulate([5; 3], Op::Max).to(1, 4)?,`\n    unchecked, the lower rank's comes first, or of one rank the earlier: put a fence between the two",
        before + 1,
        before + 2
    );
    assert_eq!(told[0].1, expected);
    assert_eq!(told[1].1, expected);
    assert_eq!(told[2].1, format!("a conflict of other ranks: {expected}"));
}

#[test]
fn a_report_has_one_line_of_json_for_each_conflict() {
    let file = std::env::temp_dir().join(format!("fencepost-report-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let (_, before) = messages(Check::Conflicts, Some(&file));
    messages(Check::Conflicts, Some(&file));
    let text = std::fs::read_to_string(&file).expect("the report was written");
    let _ = std::fs::remove_file(&file);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], lines[1]);
    let start = format!(
        "{{\"window\":0,\"rank\":1,\"elements\":[4,5],\"between\":[{{\"rank\":0,\"kind\":\"write\",\"file\":\"{}\",\"line\":{},\"column\":",
        file!(),
        before + 1
    );
    assert!(text.starts_with(&start), "{text}");
    assert!(text.contains(&format!("\"kind\":\"MAX\",\"file\":\"{}\",\"line\":{}", file!(), before + 2)));
}

#[test]
fn pairs_of_the_same_lines_are_told_once_with_their_number() {
    let run = ranks(2).check(Check::Conflicts).run(|world| {
        let mut u = world.window::<u64>(80)?;
        for at in 0..15 {
            u.put([1]).to(0, 4 * at)?;
        }
        let error = u.fence().expect_err("they conflict");
        let text = error.message();
        assert_eq!(text.matches("of window 0 on rank 0").count(), 1, "{text}");
        assert!(text.starts_with("15 pairs of operations of this epoch conflict"), "{text}");
        assert!(text.contains("elements 0..57 of window 0 on rank 0, 15 times:"), "{text}");
        // At most twenty conflicts are reported.
        for at in 0..70 {
            u.put([1]).to(0, at)?;
        }
        let error = u.fence().expect_err("they conflict");
        assert!(error.message().starts_with("20 pairs of operations, or more,"), "{error}");
        Ok(())
    });
    run.expect("no panic");
}

/// A rank that is part of a conflict but had another error before returns that earlier error.
#[test]
fn a_rank_that_failed_before_returns_its_own_error() {
    let run = ranks(3).check(Check::Conflicts).run(|world| {
        let mut u = world.window::<u64>(8)?;
        let v = world.window::<u64>(8)?;
        match world.rank() {
            0 => u.put(v.section(0..1)).to(1, 0)?,
            _ => u.put([1]).to(2, 3)?,
        }
        let error = u.fence().expect_err("it fails");
        let (class, text) = (error.class(), error.message());
        match world.rank() {
            0 => assert!(class == ErrorClass::RmaSync && text.contains("not in its fence"), "{error}"),
            _ => assert!(class == ErrorClass::RmaConflict, "{error}"),
        }
        u.fence()
    });
    run.expect("the world goes on");
}

#[test]
fn a_call_that_conflicts_with_one_before_it_is_told_with_both_lines_and_is_no_part_of_the_epoch() {
    for check in [Check::Conflicts, Check::Mpi] {
        let line = line!() + 5;
        let run = ranks(2).check(check).run(|world| {
            let mut u = world.window::<u64>(8)?;
            u.fence()?;
            if world.rank() == 0 {
                u.put([1; 3]).to(1, 2)?;
                let error = u.accumulate([5; 2], Op::Sum).to(1, 4).expect_err("they conflict");
                let expected = format!(
                    "the operation conflicts with one before it of this epoch, and is no part of it\n  element 4 of window 0 on rank 1:\n    written by rank 0 at {file}:{line}: `u.put([1; 3]).to(1, 2)?;`\n    accumulated into with SUM by rank 0 at {file}:{}: `let error = u.accumulate([5; 2], Op::Sum).to(1, 4).expect_err(\"they conflict\");`\n    unchecked, the lower rank's comes first, or of one rank the earlier: put a fence between the two",
                    line + 1,
                    file = file!()
                );
                assert_eq!((error.class(), error.message()), (ErrorClass::RmaConflict, &expected[..]));
                u.put([7]).to(1, 5)?;
            }
            u.fence()?;
            assert!(world.rank() == 0 || u[..] == [0, 0, 1, 1, 1, 7, 0, 0]);
            Ok(())
        });
        run.expect("the world goes on");
    }
}

#[test]
fn a_call_that_conflicts_in_a_section_of_another_window_is_told_with_both_lines() {
    for check in [Check::Conflicts, Check::Mpi] {
        let line = line!() + 8;
        let run = ranks(2).check(check).run(|world| {
            let (mut u, mut v, mut w) = (world.window::<u64>(8)?, world.window(8)?, world.window(8)?);
            v.copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
            w.fill(20);
            world.fence((&mut u, &mut v, &mut w))?;
            let (me, other) = (world.rank(), 1 - world.rank());
            #[rustfmt::skip]
            u.put(v.section(0..3)).to(other, 0)?;
            v.put([9]).to(me, 3)?;
            // Each call and an earlier call touch the same element, and one of them writes it.
            let refused = [
                v.put([9]).to(me, 2).expect_err("a source is written"),
                w.get(v.section(1..3)).from(other, 0).expect_err("a get lands in a source"),
                w.put(v.section(3..4)).to(other, 0).expect_err("a source is written"),
                u.accumulate(v.section(2..5), Op::Sum).to(other, 5).expect_err("a source is written"),
            ];
            let text = |error: &Error| error.message().to_owned();
            for (place, (error, before)) in refused.iter().zip([0, 0, 1, 1]).enumerate() {
                assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
                assert!(text(error).contains("of window 1 on rank"), "{error}");
                for line in [line + before, line + 4 + place as u32] {
                    assert!(text(error).contains(&format!("{}:{line}: `", file!())), "{line}: {error}");
                }
            }
            // These operations conflict with no operation of the epoch.
            w.put(v.section(4..5)).to(other, 0)?;
            u.get(v.section(5..6)).from(other, 7)?;
            world.fence((&mut u, &mut v, &mut w))?;
            assert_eq!((&u[..], v[3], v[5], w[0]), (&[1, 2, 3, 0, 0, 0, 0, 0][..], 9, 0, 5));
            Ok(())
        });
        run.expect("the world goes on");
    }
}

#[test]
fn a_section_of_an_operation_that_was_discarded_is_in_no_conflict() {
    let run = ranks(2).check(Check::Conflicts).run(|world| {
        let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
        let (me, other) = (world.rank(), 1 - world.rank());
        u.put(v.section(0..3)).to(other, 0)?;
        let error = u.fence().expect_err("v is not in this fence");
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        v.put([9]).to(me, 2)?;
        u.put(v.section(3..5)).to(other, 0)?;
        u.get(v.section(4..6)).from(other, 6).expect_err("a get lands in a source");
        // Only the fence finds the conflict below, because `v` is fenced after its section was
        // named.
        world.fence((&mut u, &mut v))?;
        assert_eq!(v[2], 9);
        u.put(v.section(0..1)).to(other, 0)?;
        v.fence()?;
        v.put([1]).to(me, 0)?;
        let error = world.fence((&mut u, &mut v)).expect_err("they conflict");
        assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
        // A put to a window that no longer exists conflicts with nothing.
        u.put(v.section(0..1)).to(other, 0)?;
        drop(u);
        v.put([7]).to(me, 0)?;
        v.fence()?;
        assert_eq!(v[0], 7);
        Ok(())
    });
    run.expect("the world goes on");
}

/// The variable with the path of a report, in the process that is started.
const AT: &str = "FENCEPOST_TEST_CHECK_REPORT_AT";

/// Finds conflicts in two fences of each world, and in calls.
#[test]
#[expect(clippy::print_stderr, reason = "the process that started this one reads what it prints")]
fn conflicts_where_the_report_is_not_written() {
    let Some(at) = std::env::var_os(AT).map(PathBuf::from) else { return };
    for transport in transports([4]) {
        eprintln!("world of {transport:?}");
        let run = ranks(2).transport(transport).check(Check::Conflicts).check_report(&at).run(|world| {
            let mut u = world.window::<u64>(8)?;
            for _ in 0..2 {
                u.put([world.rank() as u64]).to(0, 3)?;
                let error = u.fence().expect_err("both put");
                assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
                u.put([1]).to(1, 3)?;
                let error = u.put([1, 2]).to(1, 2).expect_err("they conflict");
                assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
                u = {
                    drop(u);
                    world.window(8)?
                };
            }
            world.barrier()
        });
        run.expect("the world goes on");
    }
}

/// Returns the text that is printed if a report cannot be written at `path`.
fn printed(path: &Path) -> String {
    let program = std::env::current_exe().expect("this program");
    let ended = Command::new(program)
        .args(["--exact", "reports::conflicts_where_the_report_is_not_written", "--nocapture"])
        .env(AT, path)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{}: {text}", ended.status);
    text
}

#[test]
fn a_report_that_cannot_be_written_is_no_hang_and_is_printed_once_with_path_and_reason() {
    let folder = std::env::temp_dir().join(format!("fencepost-reports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().expect("it starts").success());
    std::os::unix::fs::symlink(at("pipe"), at("link")).expect("a link");
    std::os::unix::fs::symlink("/dev/full", at("full")).expect("a link");
    let irregular = "it is not a regular file";
    for (path, why) in [
        (at("pipe"), irregular),
        (at("link"), irregular),
        (at("full"), irregular),
        (PathBuf::from("/dev/full"), irregular),
        (folder.clone(), irregular),
        (at("missing/report"), "No such file or directory"),
    ] {
        let text = printed(&path);
        let worlds: Vec<&str> = text.split("world of ").skip(1).collect();
        assert_eq!(worlds.len(), transports([4]).len(), "{text}");
        for world in worlds {
            let told = format!("cannot write conflicts to {}: {why}", path.display());
            assert_eq!(world.matches(&told).count(), 1, "{told}: {text}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
