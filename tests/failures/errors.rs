//! Bad input, and ranks that leave. Each case ends in a clear error with the error class of MPI. No
//! elements are lost, no rank hangs, and no wait ends by a timeout.

use fencepost::transport::{Fault, FaultKind, SimConfig};
use fencepost::{
    Census, Check, Error, ErrorClass, Op, Ranks, Result, State, TransportKind, Window, World, ranks,
    superstep,
};
use fencepost_tests_support::cases::cases;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;
use std::sync::Mutex;

fn worlds(size: usize) -> Vec<Ranks> {
    let each =
        |kind: TransportKind| Census::ALL.map(|census| ranks(size).transport(kind.clone()).census(census));
    transports([1, 2]).into_iter().flat_map(each).collect()
}

#[test]
fn an_error_that_one_rank_can_see_is_returned_by_the_call_which_is_no_part_of_the_epoch() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<f64>(4)?;
            let mut v = world.window::<u32>(2)?;
            let class = |result: Result<()>| result.expect_err("must be refused").class();
            assert_eq!(class(u.put([1.0]).to(1, 4)), ErrorClass::Disp);
            assert_eq!(class(u.put([1.0]).to(1, usize::MAX)), ErrorClass::Disp);
            assert_eq!(class(u.put(&[1.0, 2.0]).to(1, 3)), ErrorClass::Disp);
            assert_eq!(class(u.put([1.0]).to(2, 0)), ErrorClass::Rank);
            assert_eq!(class(u.put(&[1.0, 2.0]).to(1, 0..3)), ErrorClass::Size);
            assert_eq!(class(u.put(0..5).to(1, 0..5)), ErrorClass::Disp);
            assert_eq!(class(u.get(3..5).from(1, 0..2)), ErrorClass::Disp);
            assert_eq!(class(u.accumulate([1.0], Op::Bxor).to(1, 0)), ErrorClass::Op);
            assert_eq!(class(u.accumulate(&[1.0, 2.0], Op::MinLoc).to(1, 0)), ErrorClass::Op);
            assert_eq!(u.fetch(7, 0..1).expect_err("no rank 7").class(), ErrorClass::Rank);
            for at in [4, usize::MAX - 1, usize::MAX] {
                let error = u.fetch(1, at).expect_err("past the window");
                assert_eq!(error.class(), ErrorClass::Disp, "{error}");
                assert!(error.message().contains(&at.to_string()), "{error}");
                let mut buffer = [0.0; 2];
                let result = u.epoch(|epoch| epoch.fetch_into(1, at, &mut buffer));
                assert_eq!(class(result), ErrorClass::Disp);
                assert_eq!(u.fetch(None, at)?.len(), 1);
            }
            // An operation without a target, or on no elements, may name any position.
            u.put([1.0]).to(None, 99)?;
            u.put(&[] as &[f64]).to(1, 99..99)?;
            u.fence()?;
            assert_eq!(u[..], [0.0; 4]);
            v.put([3]).to(1 - world.rank(), 1)?;
            v.fence()?;
            assert_eq!(v[1], 3);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_ticket_holds_its_elements_once_and_from_its_fence_on() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u32>(4)?;
            u[1] = world.rank() as u32 + 7;
            let (ticket, none) = (u.fetch(1 - world.rank(), 1)?, u.fetch(1 - world.rank(), 1..1)?);
            let early = ticket.take().expect_err("before the fence");
            assert_eq!((early.class(), early.state()), (ErrorClass::RmaSync, State::Unchanged), "{early}");
            assert!(
                early.to_string().contains("after the fence") && early.to_string().contains("errors.rs"),
                "{early}"
            );
            u.fence()?;
            assert_eq!(ticket.take()?, [8 - world.rank() as u32]);
            assert_eq!(ticket.take().expect_err("a second time").class(), ErrorClass::Arg);
            assert_eq!((none.take()?, none.take()?), (Vec::new(), Vec::new()));
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_section_of_a_window_that_is_not_fenced_fails_the_fence_and_applies_nothing() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u8>(2)?;
            let v = world.window::<u8>(2)?;
            u.put([9]).to(1 - world.rank(), 0)?;
            if world.rank() == 0 {
                u.put(v.section(0..1)).to(1, 1)?;
            }
            let line = line!() - 2;
            let error = u.fence().expect_err("v is not fenced");
            if world.rank() == 0 {
                let own = error.site().map(|site| (site.file(), site.line()));
                assert_eq!(own, Some((file!(), line)), "the call that has the section is named");
            }
            assert_eq!((error.class(), error.state()), (ErrorClass::RmaSync, State::Unchanged), "{error}");
            assert_eq!(u[..], [0, 0]);
            // The world goes on, and the pending operations are dropped.
            u.put([5]).to(1 - world.rank(), 1)?;
            u.fence()?;
            assert_eq!(u[..], [0, 5]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn swapped_windows_on_one_rank_are_rma_sync_on_all_naming_both() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<i64>(1)?;
            let mut v = world.window::<i64>(1)?;
            if world.rank() == 1 {
                std::mem::swap(&mut u, &mut v);
            }
            u.put([1]).to((world.rank() + 1) % 3, 0)?;
            let error = u.fence().expect_err("one rank swapped");
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            assert!(error.message().contains("window 0") && error.message().contains("window 1"), "{error}");
            assert_eq!((u[0], v[0]), (0, 0));
            if world.rank() == 1 {
                std::mem::swap(&mut u, &mut v);
            }
            u.put([world.rank() as i64]).to((world.rank() + 1) % 3, 0)?;
            u.fence()?;
            assert_eq!(u[0], (world.rank() as i64 + 2) % 3);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn ranks_in_different_calls_get_errors_that_name_both() {
    for world in worlds(2) {
        let said = ends(&world, &[], |world| {
            let mut u = world.window::<u8>(1)?;
            if world.rank() == 0 { u.fence() } else { world.barrier() }
        });
        for outcome in &said {
            let (class, text) = outcome.as_ref().expect("both are told");
            assert_eq!(*class, ErrorClass::RmaSync);
            assert!(text.contains("fence") && text.contains("barrier"), "{text}");
        }
        let said = ends(&world, &[], |world| {
            if world.rank() == 0 { world.window::<u8>(1).map(drop) } else { world.window::<u16>(1).map(drop) }
        });
        assert!(said.iter().all(|outcome| matches!(outcome, Some((ErrorClass::Type, _)))), "{said:?}");
    }
}

fn leave_by_error(_: &World) -> Result<()> {
    Err(Error::new(ErrorClass::Other, "enough"))
}
fn leave_by_return(_: &World) -> Result<()> {
    Ok(())
}
fn leave_by_panic(_: &World) -> Result<()> {
    panic!("enough")
}

#[test]
fn a_rank_that_leaves_is_named_by_every_other_ranks_fence() {
    for world in worlds(4) {
        for (leave, panics) in [
            (leave_by_error as fn(&World) -> Result<()>, &[][..]),
            (leave_by_return, &[]),
            (leave_by_panic, &[2]),
        ] {
            for epochs in [0, 1, 2] {
                let said = ends(&world, panics, |world| {
                    let mut u = world.window::<u32>(1)?;
                    for _ in 0..epochs {
                        u.put([1]).to((world.rank() + 1) % 4, 0)?;
                        u.fence()?;
                    }
                    if world.rank() == 2 {
                        return leave(world);
                    }
                    u.accumulate([7], Op::Sum).to((world.rank() + 1) % 4, 0)?;
                    let before = u[0];
                    let error = u.fence().expect_err("rank 2 is gone");
                    assert_eq!(error.state(), State::Unchanged);
                    assert!(error.world_ended());
                    assert_eq!(u[0], before);
                    let again = u.fence().expect_err("the world has ended");
                    assert_eq!(again.class(), ErrorClass::ProcFailed);
                    Err(error)
                });
                for (rank, outcome) in said.iter().enumerate() {
                    if let Some((class, text)) = outcome
                        && (*class != ErrorClass::Other)
                    {
                        assert_eq!(*class, ErrorClass::ProcFailed, "rank {rank}: {text}");
                        assert!(text.contains("rank 2"), "rank {rank}: {text}");
                        assert_eq!(text.contains("panicked"), panics == [2], "rank {rank}: {text}");
                    }
                }
                let told =
                    said.iter().flatten().filter(|(class, _)| *class == ErrorClass::ProcFailed).count();
                assert_eq!(told, 3, "{said:?}");
            }
        }
    }
}

/// The epochs of both ranks fail, and one rank is lost while they exchange the reasons. The other
/// rank keeps its own error, and its world has ended.
#[test]
fn a_rank_that_is_lost_while_ranks_explain_themselves_ends_the_world() {
    for kind in [FaultKind::Drop, FaultKind::HalfOpen, FaultKind::Crash] {
        let mut lost = 0;
        for point in 0.. {
            let fault = Fault::new(1, point, kind);
            let config = SimConfig { seed: point, fault: Some(fault.clone()), ..SimConfig::default() };
            let seen = Mutex::new(false);
            ends(&ranks(2).transport(TransportKind::Sim(config)), &[], |world| {
                let mut u = world.window::<u64>(1)?;
                let own = u.epoch(|_| Err::<(), _>(Error::new(ErrorClass::Other, "enough")));
                let own = own.expect_err("both fail");
                let ended = world.rank() == 0 && own.class() == ErrorClass::Other && own.world_ended();
                if ended {
                    *seen.lock().unwrap() = true;
                    // The call fails at once, and sends no message to any rank.
                    let meter = world.meter();
                    for error in [world.barrier(), u.put([1]).to(0, 0)].map(Result::unwrap_err) {
                        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                        assert!(error.to_string().contains("rank 1"), "{error}");
                    }
                    assert_eq!(world.meter(), meter);
                }
                Err(own)
            });
            lost += u32::from(seen.into_inner().unwrap());
            if !fault.happened() {
                break;
            }
        }
        assert!(lost > 0, "{kind:?}: nobody was lost while explaining");
    }
}

/// The world ends in a call that uses no window. Afterwards its windows accept no operation,
/// neither puts nor gets.
#[test]
fn nothing_is_collected_once_the_world_has_ended_in_a_barrier_or_a_collective() {
    for world in worlds(2) {
        for collective in [false, true] {
            let ends = ends(&world, &[], |world| {
                let u = world.window::<u64>(8)?;
                let mut v = world.window::<u64>(8)?;
                v.put([1]).to(0, world.rank())?;
                v.fence()?;
                if world.rank() == 1 {
                    return Ok(());
                }
                let ended = if collective {
                    world.allreduce(&mut [1u64], Op::Sum).map(drop)
                } else {
                    world.barrier()
                };
                let why = ended.expect_err("rank 1 has left");
                assert!(why.message().contains("rank 1 has finished"), "{why}");
                let wide = [7; 4];
                for w in [&u, &v] {
                    for target in 0..2 {
                        let refused = [
                            ("put", w.put([7]).to(target, 0)),
                            ("accumulate", w.accumulate([7], Op::Sum).to(target, 0)),
                            ("wide put", w.put(&wide).to(target, 0..4)),
                            ("section", w.put(0..4).to(target, 0..4)),
                            ("get", w.get(0..1).from(target, 0)),
                            ("wide get", w.get(0..4).from(target, 0..4)),
                            ("fetch", w.fetch(target, 0).map(drop)),
                        ];
                        for (what, result) in refused {
                            let error = result.err().unwrap_or_else(|| panic!("{what} to {target} is Ok"));
                            assert_eq!(error.class(), ErrorClass::ProcFailed, "{what}: {error}");
                            assert!(error.message().contains("rank 1 has finished"), "{what}: {error}");
                        }
                    }
                }
                Ok(())
            });
            assert_eq!(ends, [None, None], "{world:?}");
        }
    }
}

#[test]
fn run_returns_the_error_of_the_rank_that_failed_by_itself() {
    for world in worlds(3) {
        let error = world
            .run(|world| {
                let mut u = world.window::<u8>(1)?;
                if world.rank() == 2 {
                    return Err(Error::new(ErrorClass::Other, "the reason"));
                }
                u.fence()
            })
            .expect_err("rank 2 failed");
        assert!(error.message().contains("the reason"), "{error}");
        assert_eq!(error.rank(), Some(2));
        let error = world.run(|world| if world.rank() == 1 { panic!("why") } else { world.barrier() });
        assert!(error.expect_err("rank 1 panicked").to_string().contains("rank 1 panicked: why"));
    }
}

#[test]
fn a_scoped_epoch_that_fails_is_left_by_all_with_nothing_applied() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u16>(2)?;
            let mut seen = [7; 2];
            let result = u.epoch(|epoch| {
                epoch.put([1]).to(1 - world.rank(), 0)?;
                epoch.fetch_into(1 - world.rank(), 0..2, &mut seen)?;
                if world.rank() == 0 { Err(Error::new(ErrorClass::Other, "changed my mind")) } else { Ok(()) }
            });
            let error = result.expect_err("rank 0 failed");
            assert!(error.to_string().contains("changed my mind"), "{error}");
            assert_eq!((seen, &u[..]), ([7; 2], &[0, 0][..]));
            let mut seen = [7; 2];
            u.epoch(|epoch| epoch.fetch_into(1 - world.rank(), 0..2, &mut seen))?;
            assert_eq!(seen, [0, 0]);
            Ok(())
        })?;
    }
    Ok(())
}

/// A user may leak every value that the library returns.
#[test]
#[expect(clippy::forget_non_drop, reason = "what is leaked may come to own something")]
fn forgetting_any_value_is_sound_and_hangs_nobody() -> Result<()> {
    for world in worlds(2) {
        world.check(Check::Off).run(|world| {
            let peer = 1 - world.rank();
            let mut u = world.window::<u64>(8)?;
            std::mem::forget(u.put([1]));
            std::mem::forget(u.get(0..1));
            std::mem::forget(u.fetch(peer, 0..2)?);
            std::mem::forget(u.section(0..3));
            u.put([4]).to(peer, 1)?;
            u.fence()?;
            assert_eq!(u[1], 4);
            let v = world.window::<u64>(4)?;
            v.put([9]).to(peer, 0)?;
            std::mem::forget(v);
            u.put(&[5; 8]).to(peer, 0)?;
            std::mem::forget(u);
            let half = world.split(Some(0), 0)?;
            std::mem::forget(half);
            world.barrier()
        })?;
    }
    Ok(())
}

#[test]
fn dropped_windows_are_missed_at_the_fence_and_kept_for_those_who_read() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let u = world.window::<u64>(1)?;
            let mut v = world.window::<u64>(1)?;
            if world.rank() == 0 {
                drop(u);
                let error = v.fence().expect_err("rank 1 fences u");
                assert_eq!(error.class(), ErrorClass::RmaSync);
            } else {
                let mut u = u;
                assert_eq!(u.fence().expect_err("rank 0 dropped it").class(), ErrorClass::RmaSync);
            }
            v.put([1]).to(1 - world.rank(), 0)?;
            v.fence()?;
            assert_eq!(v[0], 1);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn unknown_environment_values_and_worlds_of_no_or_too_many_ranks_are_refused() {
    let crowd = ranks(usize::MAX).run(|_| Ok(())).unwrap_err();
    assert_eq!(crowd.class(), ErrorClass::Arg, "{crowd}");
    assert_eq!(ranks(0).run(|_| Ok(())).expect_err("no ranks").class(), ErrorClass::Arg);
    let error = "fast".parse::<fencepost::Mode>().expect_err("no such mode");
    assert!(error.message().contains("aggregated"), "{error}");
}

#[test]
fn assertions_that_are_seen_to_be_false_are_errors_and_true_ones_change_nothing() -> Result<()> {
    use fencepost::Assertions;
    for world in worlds(2) {
        world.run(|world| {
            let peer = 1 - world.rank();
            let mut u = world.window::<u32>(2)?;
            u.fence_with(Assertions::NOPRECEDE | Assertions::NOSTORE)?;
            u.put([3]).to(peer, 0)?;
            u.fence_with(Assertions::NOSUCCEED | Assertions::NOPUT)?;
            assert_eq!(u[0], 3);
            let refused = u.put([4]).to(peer, 0).expect_err("NOSUCCEED was asserted");
            assert_eq!(refused.class(), ErrorClass::Assert, "{refused}");
            assert_eq!(u.get(0..1).from(peer, 0).expect_err("gets too").class(), ErrorClass::Assert);
            u.fence()?;
            if world.rank() == 0 {
                u.put([5]).to(peer, 1)?;
            }
            let error = u.fence_with(Assertions::NOPRECEDE).expect_err("rank 0 has a put pending");
            assert_eq!(
                error.class(),
                if world.rank() == 0 { ErrorClass::Assert } else { ErrorClass::RmaSync },
                "{error}"
            );
            assert_eq!(u[..], [3, 0]);
            // All ranks must make the same assertions.
            let assertions = if world.rank() == 0 { Assertions::NOPRECEDE } else { Assertions::NONE };
            let error = u.fence_with(assertions).expect_err("assertions that differ");
            assert_eq!(error.class(), ErrorClass::RmaSync);
            assert!(error.message().contains(" asserting NOPRECEDE"), "{error}");
            u.put([6]).to(peer, 1)?;
            u.fence()?;
            assert_eq!(u[..], [3, 6]);
            Ok(())
        })?;
    }
    Ok(())
}

#[superstep]
fn shift(u: &mut Window<u32>) -> Result<()> {
    u.put(0..1).to((u.rank() + 1) % u.size(), 1)
}

/// The first fence of the body orders nothing, and is left out of the superstep.
#[superstep]
fn fence_and_shift(u: &mut Window<u32>) -> Result<()> {
    u.fence()?;
    u.put(0..1).to((u.rank() + 1) % u.size(), 1)?;
    u.fence()?;
    Ok(())
}

#[test]
fn nosucceed_holds_until_the_next_fence_however_it_is_called_and_ends() -> Result<()> {
    use fencepost::Assertions;
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u32>(2)?;
            let v = world.window::<u32>(1)?;
            let mut shifts = shift::prepare(world)?;
            let mut fenced = fence_and_shift::prepare(world)?;
            // A replay consists of operations and a fence.
            u.fence_with(Assertions::NOSUCCEED)?;
            let refused = shifts.replay(&mut u).expect_err("NOSUCCEED was asserted");
            assert_eq!(refused.class(), ErrorClass::Assert, "{refused}");
            assert!(u.put([1]).to(0, 0).is_err());
            u.fence()?;
            shifts.replay(&mut u)?;
            // A fence at the beginning of a superstep ends the assertion, even if this fence is
            // left out.
            for prepared in [false, true] {
                u.fence_with(Assertions::NOSUCCEED)?;
                if prepared {
                    fenced.replay(&mut u)?
                } else {
                    fence_and_shift(&mut u)?
                }
                u.put([1]).to(0, 0)?;
                u.fence()?;
            }
            // A superstep that is refused because another superstep has begun does not end the
            // assertion.
            let w = world.window::<u32>(2)?;
            u.fence_with(Assertions::NOSUCCEED)?;
            let running = shifts.begin(w)?;
            let refused = fenced.replay(&mut u).expect_err("a superstep is begun");
            assert_eq!(refused.class(), ErrorClass::RmaSync, "{refused}");
            running.finish()?;
            let refused = u.put([1]).to(0, 0).expect_err("NOSUCCEED was asserted");
            assert_eq!(refused.class(), ErrorClass::Assert, "{refused}");
            u.fence()?;
            // A fence that fails does end the assertion.
            u.fence_with(Assertions::NOSUCCEED)?;
            let assertions = if world.rank() == 0 { Assertions::NOPRECEDE } else { Assertions::NONE };
            u.fence_with(assertions).expect_err("assertions that differ");
            u.put([1]).to(0, 0)?;
            u.fence()?;
            drop(v);
            // A fence that fails because a window is of another world ends the assertion on all
            // ranks.
            let part = world.split(Some(0), 0)?.expect("all are members");
            let mut other = part.window::<u32>(1)?;
            u.fence_with(Assertions::NOSUCCEED)?;
            let fenced = if world.rank() == 0 { world.fence((&mut u, &mut other)) } else { u.fence() };
            fenced.expect_err("rank 0 fences a window of another world");
            shifts.replay(&mut u)?;
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_false_noprecede_on_a_rank_that_then_leaves_is_rma_sync_for_the_others() {
    use fencepost::Assertions;
    for _ in 0..cases(25, 100) {
        for world in worlds(4) {
            let ends = ends(&world, &[], |world| {
                let mut u = world.window::<u32>(4)?;
                if world.rank() == 2 {
                    u.put([5]).to(0, 1)?;
                }
                u.fence_with(Assertions::NOPRECEDE)
            });
            let classes: Vec<_> = ends.into_iter().map(|end| end.map(|(class, _)| class)).collect();
            let others = Some(ErrorClass::RmaSync);
            assert_eq!(classes, [others, others, Some(ErrorClass::Assert), others]);
        }
    }
}

/// If one rank cannot run a prepared superstep, the world ends for all ranks. Some of them may
/// already be in the superstep.
#[test]
fn a_rank_that_fails_before_or_in_a_prepared_superstep_ends_the_world_for_all() {
    type Act = fn(&World, &mut Window<u32>) -> Result<()>;
    let acts: [Act; 4] = [
        |world, u| {
            let mut prepared = shift::prepare(world)?;
            if world.rank() == 1 {
                u.put([1]).to(0, 0)?; // the put waits for a fence
            }
            prepared.replay(u)
        },
        |world, u| {
            let mut short = world.window::<u32>(1 + usize::from(world.rank() == 0))?;
            let _ = u;
            shift::prepare(world)?.replay(&mut short)
        },
        |world, u| {
            let mut prepared = valued::prepare(world, &[1], false)?;
            prepared.run(u, &[1], world.rank() == 1)
        },
        |world, u| {
            let mut prepared = scoped::prepare(world, false)?;
            let panics = world.rank() == 1;
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| prepared.run(u, panics)));
            ran.unwrap_or_else(|_| Err(Error::new(ErrorClass::Other, "panicked")))
        },
    ];
    for act in acts {
        for world in worlds(3) {
            let ends = ends(&world, &[], |world| {
                let mut u = world.window::<u32>(2)?;
                // A rank that needs nothing from the failing rank may have finished.
                let result = act(world, &mut u);
                assert!(result.is_err() || world.rank() != 1, "{result:?}");
                assert!(world.barrier().is_err(), "the world has ended");
                u.fence()
            });
            assert!(ends.iter().all(Option::is_some), "{ends:?}");
        }
    }
}

#[superstep]
fn valued(u: &mut Window<u32>, values: &[u32], fails: bool) -> Result<()> {
    u.put(values).to((u.rank() + 1) % u.size(), 1)?;
    if fails {
        return Err(Error::new(ErrorClass::Other, "of its own"));
    }
    Ok(())
}

#[superstep]
fn scoped(u: &mut Window<u32>, panics: bool) -> Result<()> {
    u.put(&[7]).to((u.rank() + 1) % u.size(), 1)?;
    if panics {
        std::panic::resume_unwind(Box::new("planned"));
    }
    Ok(())
}

/// One rank asks for a window of a size near the end of the range. The call is refused on all
/// ranks, and allocates nothing.
#[test]
fn no_size_of_a_window_is_too_large_to_be_refused() -> Result<()> {
    const MOST: usize = isize::MAX as usize;
    for world in worlds(3) {
        world.run(|world| {
            for len in [MOST, MOST - 1, MOST - 64, MOST / 2 + 2, MOST + 1, usize::MAX] {
                let mine = if world.rank() == 1 { len } else { 1 };
                let error = world.window::<u8>(mine).map(drop).expect_err("there is no such memory");
                assert_eq!(error.class(), ErrorClass::NoMem, "{len}: {error}");
                assert!(error.to_string().contains("rank 1") && !error.world_ended(), "{len}: {error}");
                let error = world.window::<u64>(mine).map(drop).expect_err("there is no such memory");
                assert_eq!(error.class(), ErrorClass::NoMem, "{len}: {error}");
            }
            let mut u = world.window::<u8>(1)?;
            u.put([1]).to((world.rank() + 1) % 3, 0)?;
            u.fence()?;
            assert_eq!(u[0], 1);
            Ok(())
        })?;
    }
    Ok(())
}

/// If a rank forgets a part of its world, it leaves the part when its program ends. A rank that
/// keeps a part in a reference cycle does so, too.
#[test]
fn a_part_that_a_rank_has_forgotten_is_left_when_its_program_ends() {
    // The worlds run in another thread. Otherwise the test would hang if a wait did not end.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let ended = worlds(3).into_iter().map(|world| {
            world.run(|world| {
                let part = world.split(Some(0), 0)?.expect("all are members");
                let within = part.split(Some(0), 0)?.expect("all are members");
                match world.rank() {
                    0 => {
                        // The part from which `within` was split is dropped.
                        drop(part);
                        std::mem::forget(within);
                    }
                    1 => {
                        let part = std::rc::Rc::new(part);
                        let own = part.clone();
                        part.on_error(fencepost::ErrorHandler::call(move |_| assert_eq!(own.size(), 3)));
                        let error = within.barrier().expect_err("rank 0 has left");
                        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                        assert!(error.to_string().contains("rank 0"), "{error}");
                    }
                    _ => {
                        let error = within.barrier().expect_err("rank 0 or 1 has left");
                        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                        let error = part.barrier().expect_err("rank 0 and 1 have left");
                        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
                    }
                }
                Ok(())
            })
        });
        tell.send(ended.collect::<Result<Vec<_>>>()).expect("the test listens");
    });
    told.recv_timeout(std::time::Duration::from_secs(60))
        .expect("every wait ends")
        .expect("every world ends without an error");
}
