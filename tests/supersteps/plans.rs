//! The arguments of a plan, and the possible content of a plan file, in whole programs.

use fencepost::prelude::*;
use fencepost::ranks;
use fencepost_tests_worlds::transports::{self, transports};

mod sections {
    use super::*;
    use fencepost::WindowSection;

    #[superstep]
    fn copy(u: &mut Window<u64>, v: &mut Window<u64>, from: &WindowSection<u64>) -> Result<()> {
        let to = (u.rank() + 1) % u.size();
        u.put(from.clone()).to(to, 4..8)?;
        v.get(4..8).from(to, 0..4)
    }

    #[superstep]
    fn land(u: &mut Window<u64>, into: &WindowSection<u64>) -> Result<()> {
        let from = (u.rank() + 1) % u.size();
        u.get(into.clone()).from(from, 4..8)
    }

    #[test]
    fn a_section_that_was_made_outside_a_superstep_is_refused_by_its_plan() {
        for transport in transports([0]) {
            let run = ranks(2).transport(transport).run(|world| {
                let me = world.rank() as u64;
                // The number of `v` in the world equals the position of `u` in the superstep.
                let mut v = world.window::<u64>(8)?;
                let mut u = world.window::<u64>(8)?;
                v.fill(100 + me);
                u.fill(200 + me);
                let section = v.section(0..4);
                for error in [
                    copy::prepare(world, &section).map(drop).unwrap_err(),
                    copy::compile(2, |_| Ok(section.clone())).map(drop).unwrap_err(),
                    land::prepare(world, &section).map(drop).unwrap_err(),
                    land::compile(2, |_| Ok(section.clone())).map(drop).unwrap_err(),
                ] {
                    let refused = error.class() == ErrorClass::Win
                        || error.class() == ErrorClass::Plan && error.to_string().contains("cannot prepare");
                    assert!(refused && error.to_string().contains("made outside this superstep"), "{error}");
                }
                // Without a plan, the section is like any other.
                copy(&mut u, &mut v, &section)?;
                assert_eq!(u[4..], [100 + (1 - me); 4]);
                assert_eq!(v[4..], [100 + (1 - me); 4]);
                Ok(())
            });
            run.unwrap();
        }
    }
}

mod wraps {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[superstep]
    fn shift(u: &mut Window<u64>, n: usize) -> Result<()> {
        let to = (u.rank() + 1) % u.size();
        u.put(0..n).to(to, n)
    }

    /// The number of supersteps that remain before the largest superstep number is reached.
    const BEFORE: u32 = 6;

    #[test]
    fn a_rank_may_be_one_superstep_ahead_where_their_numbers_end() {
        for transport in transports([0]) {
            // The number of the run that each rank has reached.
            let at: [AtomicU64; 4] = Default::default();
            let begun = ranks(4).transport(transport).beginning_at(u32::MAX - BEFORE, 0);
            let run = begun.run(|world| {
                let (me, left) = (world.rank() as u64, (world.rank() as u64 + 3) % 4);
                let mut u = world.window::<u64>(4)?;
                let mut planned = shift::prepare(world, 2)?;
                for time in 0..2 * u64::from(BEFORE) {
                    u[..2].fill(10 * time + me);
                    if time % 4 == me {
                        // The next rank enters this run and waits for this rank, which is one
                        // superstep behind.
                        let next = &at[(world.rank() + 1) % 4];
                        let waits = || next.load(Ordering::Acquire) < time;
                        while waits() {
                            std::thread::yield_now();
                        }
                        (0..50).for_each(|_| std::thread::yield_now());
                    }
                    at[world.rank()].store(time, Ordering::Release);
                    planned
                        .replay(&mut u)
                        .inspect_err(|_| at[world.rank()].store(u64::MAX, Ordering::Release))?;
                    assert_eq!(u[2..], [10 * time + left; 2], "run {time}");
                }
                at[world.rank()].store(u64::MAX, Ordering::Release);
                Ok(())
            });
            run.unwrap();
        }
    }

    #[test]
    fn operations_that_leave_early_belong_to_their_fence_where_superstep_numbers_end() {
        for transport in transports([0]) {
            let begun = ranks(2).transport(transport).beginning_at(u32::MAX - BEFORE, 0);
            let run = begun.mode(Mode::Aggressive).run(|world| {
                let mut u = world.window::<u64>(3)?;
                let peer = 1 - world.rank();
                for time in 0..2 * u64::from(BEFORE) {
                    for at in 0..3 {
                        u.put(&[3 * time + at as u64][..]).to(peer, at)?;
                    }
                    u.fence()?;
                    assert_eq!(u[..], [3 * time, 3 * time + 1, 3 * time + 2], "epoch {time}");
                }
                Ok(())
            });
            run.unwrap();
        }
    }

    #[test]
    fn a_world_makes_no_window_under_a_number_that_another_has_had() {
        for transport in transports([0]) {
            let begun = ranks(2).transport(transport).beginning_at(0, u32::MAX - 2);
            let run = begun.run(|world| {
                let mut last = world.window::<u64>(1)?;
                let part = world.split(Some(0), 0)?.expect("a part");
                for error in [
                    world.window::<u64>(1).map(drop).unwrap_err(),
                    world.split(Some(0), 0).map(drop).unwrap_err(),
                ] {
                    assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
                }
                // Everything else still works, and the part counts its own windows.
                let mut other = part.window::<u64>(1)?;
                last.put(&[7][..]).to(1 - world.rank(), 0)?;
                other.put(&[8][..]).to(1 - world.rank(), 0)?;
                last.fence()?;
                other.fence()?;
                assert_eq!((last[0], other[0]), (7, 8));
                Ok(())
            });
            run.unwrap();
        }
    }
}

mod elements {
    use super::*;

    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Position {
        x: f64,
        y: f64,
    }

    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    struct Count {
        of: u64,
        at: i64,
    }

    #[test]
    fn windows_of_two_types_of_one_size_are_refused_on_all_ranks() {
        for transport in transports([0]) {
            let run = ranks(2).transport(transport).run(|world| {
                let other = match world.rank() {
                    0 => world.window::<Position>(2).map(drop),
                    _ => world.window::<Count>(2).map(drop),
                };
                let error = other.unwrap_err();
                assert_eq!(error.class(), ErrorClass::Type, "{error}");
                for name in ["elements::Position", "elements::Count"] {
                    assert!(error.to_string().contains(name), "{error}");
                }
                let mut one = world.window::<Position>(1)?;
                one.put(&[Position { x: 1.0, y: 2.0 }][..]).to(1 - world.rank(), 0)?;
                one.fence()?;
                assert_eq!((one[0].x, one[0].y), (1.0, 2.0));
                Ok(())
            });
            run.unwrap();
        }
    }
}

mod memory {
    use super::*;

    #[superstep]
    fn often(u: &mut Window<u64>, elements: &Datatype) -> Result<()> {
        let to = (u.rank() + 1) % u.size();
        u.put(elements).to(to, elements)
    }

    /// The test runs itself again, in a process with little memory and time.
    #[test]
    fn a_put_of_more_than_any_memory_is_no_memory_however_it_is_made() {
        let name = "plans::memory::a_put_of_more_than_any_memory_is_no_memory_however_it_is_made";
        if std::env::var_os("FENCEPOST_TEST_BOUNDED").is_none() {
            let script = "ulimit -v 4194304; exec timeout 240 \"$0\" --exact \"$1\"";
            let mut child = std::process::Command::new("sh");
            child.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
            let output = child.env("FENCEPOST_TEST_BOUNDED", "1").output().unwrap();
            let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
            assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", output.status);
            return;
        }
        for elements in [Datatype::nest(0, &[(1 << 40, 0)], 1).unwrap(), Datatype::run(0..1 << 44)] {
            let compiled = often::compile(2, |_| Ok(elements.clone()));
            if let Err(error) = &compiled {
                assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
            }
            for transport in [fencepost::TransportKind::Local, transports::sim(0)] {
                let run = ranks(2).transport(transport).run(|world| {
                    let error = often::prepare(world, &elements).map(drop).unwrap_err();
                    assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
                    Ok(())
                });
                run.unwrap();
            }
        }
    }
}
