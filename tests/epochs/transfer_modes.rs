//! The effects of the modes in epochs that are not compiled, between ranks that only exchange
//! messages. The mode determines when operations leave, and changes only the traffic.

use fencepost::transport::SimConfig;
use fencepost::{
    Check, Error, ErrorClass, Mode, Op, Ranks, Result, TransportKind, Window, World, ranks, superstep,
};
use std::ffi::OsStr;

fn apart(size: usize, mode: Mode) -> Ranks {
    ranks(size).transport(TransportKind::Sim(SimConfig { seed: 7, ..SimConfig::default() })).mode(mode)
}

/// Returns worlds of three ranks: threads that reach each other's memory, threads that share memory
/// as processes would, and threads on two hosts. On two hosts, only ranks 0 and 2 reach each
/// other's memory.
fn together(mode: Mode) -> [Ranks; 3] {
    [TransportKind::Local, TransportKind::ShmThreads, TransportKind::MixedThreads(vec![0, 1, 0])]
        .map(|transport| ranks(3).transport(transport).mode(mode))
}

/// Returns the number of frames that this rank has sent in dynamic epochs so far.
fn frames(world: &World) -> u64 {
    world.traffic().messages
}

#[test]
fn an_aggressive_operation_leaves_at_its_call_and_is_not_seen_before_the_fence() -> Result<()> {
    apart(3, Mode::Auto).run(|world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % 3);
        let mut u = world.window::<u32>(4)?;
        let before = frames(world);
        for at in 0..4 {
            u.put([me as u32 + 10]).mode(Mode::Aggressive).to(next, at)?;
            assert_eq!(frames(world) - before, at as u64 + 1);
        }
        world.barrier()?;
        assert_eq!(u[..], [0; 4], "staged until the fence");
        u.fence()?;
        assert_eq!(u[..], [(me as u32 + 2) % 3 + 10; 4]);
        Ok(())
    })
}

#[test]
fn pipelined_operations_leave_by_the_chunk_and_aggregated_ones_at_the_fence() -> Result<()> {
    for (mode, least, most) in [(Mode::Pipelined, 3, 60), (Mode::Aggregated, 0, 0), (Mode::Auto, 0, 0)] {
        apart(2, mode).run(|world| {
            const N: usize = 20_000;
            let peer = 1 - world.rank();
            let mut u = world.window::<u64>(N)?;
            let before = frames(world);
            for at in 0..N {
                u.put([at as u64 + 3]).to(peer, at)?;
            }
            let early = frames(world) - before;
            assert!((least..=most).contains(&early), "{mode}: {early} frames before the fence");
            u.fence()?;
            assert!(u.iter().enumerate().all(|(at, value)| *value == at as u64 + 3));
            Ok(())
        })?;
    }
    Ok(())
}

/// Operations that differ from epoch to epoch leave in pieces, as soon as the rank knows that they
/// differ. Operations that repeat are replayed as a whole.
#[test]
fn auto_chooses_by_what_followed_the_same_line_before() -> Result<()> {
    for changes in [true, false] {
        let early = apart(2, Mode::Auto).collect(|world| {
            const N: usize = 9;
            const PART: usize = 1 << 16;
            let peer = 1 - world.rank();
            let mut u = world.window::<u8>(N * PART)?;
            let mut early = Vec::new();
            for step in 0..5 {
                let before = frames(world);
                let shift = if changes { step } else { 0 };
                for part in 0..N {
                    u.put(&[(part + step) as u8; PART]).to(peer, (part + shift) % N * PART)?;
                }
                early.push(frames(world) - before);
                u.fence()?;
                assert!((0..N).all(|part| u[(part + shift) % N * PART] == (part + step) as u8));
            }
            Ok(early)
        })?;
        for early in early {
            // The first epoch began when the window was made, and all later ones began at this
            // fence. So the fourth epoch is the first one that comes after two epochs that began
            // here.
            assert_eq!(early[..3], [0, 0, 0], "{early:?}");
            assert_eq!((early[3] > 1, early[4] > 1), (changes, changes), "{early:?}");
        }
    }
    Ok(())
}

#[test]
fn auto_keeps_single_elements_until_the_fence_whatever_their_number() -> Result<()> {
    let early = apart(2, Mode::Auto).collect(|world| {
        const N: usize = 20_000;
        let mut u = world.window::<u64>(N)?;
        let mut early = Vec::new();
        for step in 0..6 {
            let before = frames(world);
            for i in 0..N {
                u.put([(i ^ step) as u64]).to(1 - world.rank(), (i + step) % N)?;
            }
            early.push(frames(world) - before);
            u.fence()?;
            assert!((0..N).all(|i| u[(i + step) % N] == (i ^ step) as u64));
        }
        Ok(early)
    })?;
    assert_eq!(early, [[0; 6]; 2]);
    Ok(())
}

#[test]
fn a_section_holds_back_what_comes_after_it_and_order_is_kept() -> Result<()> {
    apart(2, Mode::Aggressive).run(|world| {
        let peer = 1 - world.rank();
        let mut u = world.window::<u32>(4)?;
        u[3] = 5;
        let before = frames(world);
        u.put([1]).to(peer, 0)?;
        assert_eq!(frames(world) - before, 1);
        u.put(u.section(3..4)).to(peer, 0..1)?;
        u.accumulate([2], Op::Sum).to(peer, 0)?;
        u.put([9, 8]).to(peer, 1..3)?;
        assert_eq!(frames(world) - before, 1, "the section is read at the fence");
        u[3] = 6;
        u.fence()?;
        assert_eq!(u[..], [8, 9, 8, 6]);
        Ok(())
    })
}

#[test]
fn operations_that_left_early_wait_for_the_fence_of_their_own_window() -> Result<()> {
    apart(3, Mode::Aggressive).run(|world| {
        let (me, next) = (world.rank() as u32, (world.rank() + 1) % 3);
        let from = (me + 2) % 3;
        let mut u = world.window::<u32>(2)?;
        let mut v = world.window::<u32>(2)?;
        for round in 0..5 {
            v.accumulate([round], Op::Sum).to(next, 0)?;
            u.put([round + me]).to(next, 0)?;
            let asked = u.fetch(next, 1)?;
            u.fence()?;
            assert_eq!((u[0], v[0]), (round + from, 0));
            assert_eq!(asked.take().ok(), Some(vec![0]));
            // Collective calls, new windows and other exchanges overtake staged operations.
            let mut w = world.window::<u16>(1)?;
            w.put([7]).to(next, 0)?;
            assert_eq!(world.allgather(&[me])?, [[0], [1], [2]]);
            w.fence()?;
            assert_eq!(w[0], 7);
        }
        world.fence((&mut u, &mut v))?;
        assert_eq!(v[..], [10, 0]);
        Ok(())
    })
}

#[test]
fn an_epoch_that_fails_or_is_given_up_leaves_nothing_behind() -> Result<()> {
    apart(3, Mode::Aggressive).run(|world| {
        let next = (world.rank() + 1) % 3;
        let mut u = world.window::<u32>(2)?;
        let mut v = world.window::<u32>(2)?;
        for bad in 0..3 {
            // An epoch fails on one rank. All ranks drop the operations that left early.
            let failed = u.epoch(|epoch| {
                epoch.put([100]).to(next, 0)?;
                if world.rank() == bad { Err(Error::new(ErrorClass::Other, "no")) } else { Ok(()) }
            });
            assert!(failed.is_err());
            u.fence()?;
            assert_eq!(u[..], [0, 0]);
            // Ranks fence different windows. A rank drops the operations on the window that it
            // fenced. It keeps those on the other window.
            u.put([1]).to(next, 0)?;
            v.put([2]).to(next, 0)?;
            let error = if world.rank() == bad { u.fence() } else { v.fence() }.expect_err("ranks differ");
            assert_eq!(error.class(), ErrorClass::RmaSync);
            world.fence((&mut u, &mut v))?;
            let from_bad = (bad + 1) % 3 == world.rank();
            assert_eq!((u[0], v[0]), if from_bad { (0, 2) } else { (1, 0) });
            (u[0], v[0]) = (0, 0);
            world.barrier()?;
        }
        Ok(())
    })
}

/// Ranks leave a failed fence one after another. Frames that a rank sends after it has left belong
/// to the next epoch.
#[test]
fn operations_that_leave_after_a_failed_fence_are_not_dropped_with_it() -> Result<()> {
    for seed in 0..20 {
        let sim = TransportKind::Sim(SimConfig { seed, ..SimConfig::default() });
        ranks(4).transport(sim).mode(Mode::Aggressive).run(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % 4);
            let mut u = world.window::<u32>(2)?;
            for round in 0..20 {
                let failed = u.epoch(|epoch| {
                    epoch.put([1000]).to(next, 1)?;
                    if me == round % 4 { Err(Error::new(ErrorClass::Other, "no")) } else { Ok(()) }
                });
                assert!(failed.is_err());
                u.accumulate([1], Op::Sum).to(next, 0)?;
                u.accumulate([1], Op::Sum).to((me + 2) % 4, 0)?;
                u.fence()?;
                assert_eq!(u[..], [2 * (round as u32 + 1), 0]);
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_window_that_is_dropped_takes_with_it_what_was_sent_for_it() -> Result<()> {
    apart(2, Mode::Aggressive).check(Check::Off).run(|world| {
        let peer = 1 - world.rank();
        for round in 0..4 {
            let u = world.window::<u32>(1)?;
            let mut v = world.window::<u32>(1)?;
            if world.rank() == round % 2 {
                drop(u);
            } else {
                (0..3).try_for_each(|_| u.put([9]).to(peer, 0))?;
            }
            v.put([round as u32]).to(peer, 0)?;
            v.fence()?;
            assert_eq!(v[0], round as u32);
        }
        Ok(())
    })
}

#[test]
fn without_plans_every_operation_is_a_message() -> Result<()> {
    apart(2, Mode::Aggregated).plan(false).run(|world| {
        let peer = 1 - world.rank();
        let mut u = world.window::<u8>(5)?;
        let before = frames(world);
        for at in 0..5 {
            u.put([1]).mode(Mode::Pipelined).to(peer, at)?;
        }
        assert_eq!(frames(world) - before, 5);
        u.fence()?;
        assert_eq!(u[..], [1; 5]);
        Ok(())
    })
}

#[test]
fn where_memory_is_reached_nothing_leaves_whatever_is_asked() -> Result<()> {
    for mode in Mode::ALL {
        ranks(2).mode(mode).run(|world| {
            let mut u = world.window::<u8>(5)?;
            u.put([1]).to(1 - world.rank(), 3)?;
            u.put([4, 5]).mode(Mode::Aggressive).to(1 - world.rank(), 0..2)?;
            u.fence()?;
            assert_eq!(u[..], [4, 5, 0, 1, 0]);
            assert_eq!(frames(world), 0);
            Ok(())
        })?;
    }
    Ok(())
}

/// Makes two puts of adjoining elements to the right neighbour, and two gets.
#[superstep]
fn abutting(u: &mut Window<u32>) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put(0..1).to(right, 2)?;
    u.put(1..2).to(right, 3)?;
    u.get(4..5).from(right, 0)?;
    u.get(5..6).from(right, 1)?;
    Ok(())
}

#[test]
fn without_planning_each_operation_of_a_prepared_superstep_is_a_frame_of_its_own() -> Result<()> {
    for mode in Mode::ALL {
        let joined = if mode == Mode::Aggressive { 4 } else { 2 };
        for (plan, expected) in [(true, joined), (false, 4)] {
            apart(3, mode).plan(plan).run(|world| {
                let me = world.rank() as u32;
                let mut u = world.window::<u32>(6)?;
                (u[0], u[1]) = (10 * me, 10 * me + 1);
                let mut prepared = abutting::prepare(world)?;
                for _ in 0..3 {
                    let before = frames(world);
                    prepared.replay(&mut u)?;
                    assert_eq!(frames(world) - before, expected, "{mode}, plan {plan}");
                    let (left, right) = (10 * ((me + 2) % 3), 10 * ((me + 1) % 3));
                    assert_eq!(u[..], [10 * me, 10 * me + 1, left, left + 1, right, right + 1]);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Each rank changes its window as soon as it has left the fence. A reader that was still reading
/// would see the change.
#[test]
fn lent_sections_are_read_before_their_owner_leaves() -> Result<()> {
    const N: usize = 1 << 17;
    for world in [Mode::Auto, Mode::Direct].into_iter().flat_map(together) {
        world.run(|world| {
            let (me, next, before) = (world.rank(), (world.rank() + 1) % 3, (world.rank() + 2) % 3);
            let mut u = world.window::<u64>(2 * N)?;
            let mut back = vec![0; N];
            for round in 0..20 {
                u[..N].fill((round * 3 + me) as u64);
                u.epoch(|epoch| {
                    epoch.put(0..N).to(next, N)?;
                    epoch.fetch_into(next, 0, &mut back)
                })?;
                u[..N].fill(u64::MAX);
                assert!(u[N..].iter().all(|value| *value == (round * 3 + before) as u64));
                assert!(back.iter().all(|value| *value == (round * 3 + next) as u64));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Each rank overwrites the section that another rank reads from it. No rank may write before all
/// have read.
#[test]
fn ranks_that_trade_places_in_place_read_before_they_write() -> Result<()> {
    const N: usize = 10_000;
    for (mode, world) in Mode::ALL.into_iter().flat_map(|mode| together(mode).map(|world| (mode, world))) {
        world.run(|world| {
            let (me, next) = (world.rank(), (world.rank() + 1) % 3);
            let mut u = world.window::<u32>(N)?;
            let mut v = world.window::<u32>(N)?;
            u.fill(me as u32);
            v.fill(10 + me as u32);
            for round in 1..20 {
                let by = |steps: usize| ((me + 3 * 20 - steps) % 3) as u32;
                u.put(u.section(0..N)).to(next, 0)?;
                v.get(0..N).from(next, 0..N)?;
                world.fence((&mut u, &mut v))?;
                assert!(u.iter().all(|value| *value == by(round)), "{mode}, round {round}");
                assert!(v.iter().all(|value| *value == 10 + by(60 - round)), "{mode}, round {round}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Sections are read in place, and values are copied. Both are applied in the order of the calls.
/// This must hold for each kind of write to the memory that other ranks read: by a piggybacked
/// value, a record, a described operation or another section.
#[test]
fn what_is_lent_and_what_is_copied_keep_their_order_and_the_values_before_the_fence() -> Result<()> {
    const N: usize = 6;
    for world in together(Mode::Direct) {
        world.run(|world| {
            let (me, next, before) = (world.rank(), (world.rank() + 1) % 3, (world.rank() + 2) % 3);
            let old = |rank: usize, at: usize| (100 * rank + at) as u64;
            let (mut u, mut v) = (world.window::<u64>(N)?, world.window::<u64>(N)?);
            for case in 0..6 {
                (0..N).for_each(|at| (u[at], v[at]) = (old(me, at), old(me, at) + 50));
                let mut expected: Vec<u64> = (0..N).map(|at| old(me, at)).collect();
                u.put(0..3).to(next, 1)?;
                (0..3).for_each(|at| expected[1 + at] = old(before, at));
                match case {
                    0 => {}
                    1 => {
                        u.put([7]).to(next, 2)?;
                        expected[2] = 7;
                    }
                    2 => {
                        u.accumulate(&[1; 4], Op::Sum).to(next, 0)?;
                        (0..4).for_each(|at| expected[at] += 1);
                    }
                    3 => {
                        u.put(v.section(2..5)).to(next, 2)?;
                        (0..3).for_each(|at| expected[2 + at] = old(before, 2 + at) + 50);
                    }
                    4 => {
                        u.accumulate(2..6, Op::Sum).to(next, 0)?;
                        (0..4).for_each(|at| expected[at] += old(before, 2 + at));
                    }
                    // Only the previous rank writes the section that others read.
                    _ if me == 0 => (0..40).try_for_each(|_| u.put([8]).to(next, 0))?,
                    _ if before == 0 => expected[0] = 8,
                    _ => {}
                }
                world.fence((&mut u, &mut v))?;
                assert_eq!(u[..], expected[..], "case {case}, rank {me}");
            }
            // Here only a value is written to rank 0, into an element that other ranks read.
            u.fill(me as u64);
            match me {
                0 => u.put(0..3).to(1, 0)?,
                2 => u.put([9]).to(0, 1)?,
                _ => {}
            }
            u.fence()?;
            let expected = [[0, 9, 0], [0; 3], [2; 3]][me];
            assert_eq!(u[..3], expected, "rank {me}");
            Ok(())
        })?;
    }
    Ok(())
}

/// If a call has too many values for a frame, the copy that the call made is kept until the values
/// are applied. The test tries several windows, other operations in between, repeated and changed
/// calls, and an epoch after a failed fence.
#[test]
fn many_values_are_read_where_the_call_has_copied_them() -> Result<()> {
    const N: usize = 1000;
    for world in together(Mode::Auto) {
        world.run(|world| {
            let (me, next, before) = (world.rank(), (world.rank() + 1) % 3, (world.rank() + 2) % 3);
            let (mut u, mut v) = (world.window::<u64>(N)?, world.window::<u8>(8 * N)?);
            let mut left_out = world.window::<u64>(1)?;
            for round in 0..12 {
                let given = |rank: usize, at: usize| (rank + 3 * round + 100 * at) as u64;
                let mut values: Vec<u64> = (0..N).map(|at| given(me, at)).collect();
                u.fill(1);
                v.fill(1);
                let len = if round % 3 == 2 { 10 } else { N };
                u.put([5]).to(next, 3)?;
                u.put(&values[..len]).to(next, 0)?;
                u.accumulate(&values[..len], Op::Sum).to(next, N - len)?;
                if round % 2 == 0 {
                    v.put(vec![round as u8; 8 * N - 1]).to(next, 1)?;
                }
                values.fill(0);
                if round == 5 {
                    if me == 1 {
                        u.put(left_out.section(0..1)).to(next, 0)?;
                    }
                    world.fence((&mut u, &mut v)).expect_err("rank 1 fails");
                    assert!(u.iter().all(|&value| value == 1) && v.iter().all(|&value| value == 1));
                    continue;
                }
                world.fence((&mut u, &mut v))?;
                let mut expected = vec![1; N];
                expected[3] = 5;
                (0..len).for_each(|at| expected[at] = given(before, at));
                (0..len).for_each(|at| expected[N - len + at] += given(before, at));
                assert!(u[..] == expected[..], "round {round}, rank {me}");
                let byte = if round % 2 == 0 { round as u8 } else { 1 };
                assert!(v[0] == 1 && v[1..].iter().all(|&value| value == byte), "round {round}, rank {me}");
            }
            left_out.fence()
        })?;
    }
    Ok(())
}

/// This is not a test by itself. The next two tests run it in processes with different
/// environments.
#[test]
#[expect(clippy::print_stdout, reason = "the next test reads it")]
fn in_an_environment() {
    let result = fencepost::collect(|world| {
        let mut u = world.window::<u8>(2)?;
        let to = (world.rank() + 1) % world.size();
        u.put([1]).to(to, 0)?;
        u.put([1]).to(to, 1)?;
        u.fence()?;
        // Then a prepared superstep is run.
        let mut v = world.window::<u32>(6)?;
        let dynamic = frames(world);
        abutting::prepare(world)?.replay(&mut v)?;
        Ok(dynamic * 100 + frames(world) - dynamic)
    });
    match result {
        Ok(frames) => println!("\nframes {frames:?}"),
        Err(error) => println!("\nerror {error}"),
    }
}

#[test]
fn run_reads_its_environment_strictly() {
    let said = |plan: &str| {
        let program = std::env::current_exe().unwrap();
        let output = std::process::Command::new(program)
            .args(["--exact", "transfer_modes::in_an_environment", "--nocapture"])
            .envs([("FENCEPOST_RANKS", "2"), ("FENCEPOST_TRANSPORT", "sim"), ("FENCEPOST_PLAN", plan)])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(said("on").contains("frames [101, 101]"), "{}", said("on"));
    // The last line contains the counts.
    assert!(said("off").contains("frames [304, 304]"), "{}", said("off"));
    for other in ["OFF", "", "0"] {
        let said = said(other);
        assert!(said.contains("error") && said.contains("`on` or `off`"), "{said}");
    }
}

#[test]
fn every_variable_is_understood_or_refused_by_its_name() {
    use std::os::unix::ffi::OsStrExt;
    let (unknown, no_text) = (OsStr::new("perhaps"), OsStr::from_bytes(b"o\xffn"));
    let names = ["RANKS", "TRANSPORT", "MODE", "CHECK", "PLAN", "EXPLAIN", "STALL", "DEADLOCK"];
    for (name, value) in names.iter().flat_map(|name| [(name, unknown), (name, no_text)]) {
        let name = format!("FENCEPOST_{name}");
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "transfer_modes::in_an_environment", "--nocapture"])
            .envs([("FENCEPOST_RANKS", "2"), ("FENCEPOST_TRANSPORT", "sim"), ("FENCEPOST_PLAN", "on")])
            .env(&name, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("error ARG") && said.contains(&name), "{name}={value:?}: {said}");
    }
}

/// Buffers that are staged for gets of single elements belong to one epoch. The next epoch may have
/// gets that are copied directly.
#[test]
fn gets_of_single_elements_leave_nothing_to_the_epoch_after_them() -> Result<()> {
    ranks(2).run(|world| {
        let (me, peer) = (world.rank() as u64, 1 - world.rank());
        let mut u = world.window::<u64>(16)?;
        (0..16).for_each(|at| u[at] = 100 * me + at as u64);
        u.get(0..1).from(peer, 9)?;
        u.fence()?;
        assert_eq!(u[0], 100 * peer as u64 + 9);
        u.get(4..8).from(peer, 8)?;
        u.fence()?;
        assert_eq!(u[4..8], [8, 9, 10, 11].map(|at| 100 * peer as u64 + at));
        assert_eq!(u[0], 100 * peer as u64 + 9);
        Ok(())
    })
}

#[superstep(mode = aggressive)]
fn early(u: &mut Window<u32>, values: &[u32; 2]) -> Result<()> {
    let to = (u.rank() + 1) % u.size();
    u.put(values).to(to, 0)?;
    u.put(values).mode(Mode::Aggregated).to(to, 2)
}

#[superstep]
fn late(u: &mut Window<u32>, values: &[u32; 2]) -> Result<()> {
    u.put(values).to((u.rank() + 1) % u.size(), 0)
}

/// The mode of the attribute takes precedence over the mode of the window. The mode of the call
/// takes precedence over both.
#[test]
fn a_mode_is_forced_by_the_attribute_for_its_superstep_only() -> Result<()> {
    let compiled = early::compile(2, |_| Ok([0; 2]))?;
    let modes = |compiled: &fencepost::Compiled| -> Vec<Mode> {
        let patterns = compiled.patterns()[0].classes.values();
        patterns.flat_map(|pattern| pattern.operations.values().map(|operation| operation.mode)).collect()
    };
    assert_eq!(modes(&compiled)[..2], [Mode::Aggressive, Mode::Aggregated]);
    assert!(compiled.explain().to_string().contains("aggressive"), "{}", compiled.explain());
    assert_eq!(modes(&late::compile(2, |_| Ok([0; 2]))?)[0], Mode::Auto);
    // In the first run on each rank, calls are compared with the pattern, and nothing leaves early.
    apart(2, Mode::Aggregated).check(Check::Off).explain(true).run(|world| {
        let mut u = world.window::<u32>(4)?;
        u.set_mode(Mode::Pipelined);
        early(&mut u, &[1, 2])?;
        let before = world.traffic().messages;
        early(&mut u, &[1, 2])?;
        let said = world.explain_last();
        assert!(said.contains("early: 1 message had left"), "{said}");
        assert!(said.contains("aggressive") && said.contains("aggregated"), "{said}");
        assert_eq!(world.traffic().messages - before, 2);
        late(&mut u, &[3, 4])?;
        let said = world.explain_last();
        assert!(said.contains("pipelined") && !said.contains("aggressive"), "{said}");
        assert_eq!(u[..], [3, 4, 1, 2]);
        Ok(())
    })
}
