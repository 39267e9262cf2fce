//! Misuse by safe code, on any rank. Each case ends in errors or values on every transport, and
//! never in a hang.

use fencepost::__private::{SourceData, WindowKey};
use fencepost::prelude::*;
use fencepost::{Assertions, Census, Check, Ranks, Section, Source, TransportKind, World, ranks};
use fencepost_tests_support::cases::every_case;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn worlds(size: usize) -> Vec<Ranks> {
    let each = |t: TransportKind| Census::ALL.map(|census| ranks(size).transport(t.clone()).census(census));
    transports([3, 4]).into_iter().flat_map(each).collect()
}

/// Returns each transport with one census, or with each census if every case is tried. Each value
/// of `turn` selects different pairs of a transport and a census.
fn sampled(size: usize, turn: usize) -> impl Iterator<Item = Ranks> {
    let censuses = Census::ALL.len();
    let is_sampled = move |at: usize| every_case() || at % censuses == (at / censuses + turn) % censuses;
    worlds(size).into_iter().enumerate().filter(move |(at, _)| is_sampled(*at)).map(|(_, world)| world)
}

/// Each rank shifts its elements to the right.
#[superstep]
fn shift(u: &mut Window<u64>, by: usize) -> Result<()> {
    let to = (u.rank() + by) % u.size();
    u.put(0..2).to(to, 2)
}

/// Each rank shifts its elements to the left, in another superstep.
#[superstep]
fn pull(u: &mut Window<u64>, by: usize) -> Result<()> {
    let from = (u.rank() + by) % u.size();
    u.get(0..2).from(from, 2)
}

/// A body whose calls are compared with its pattern one by one. The body may panic between its
/// calls.
#[superstep]
fn matched(u: &mut Window<u64>, v: &mut Window<u64>, values: &[u64], #[uniform] deed: u32) -> Result<()> {
    let to = (u.rank() + 1) % u.size();
    u.put(values).to(to, 6)?;
    if deed == 1 {
        panic!("half way");
    }
    v.put(values).to(to, 0)
}

type Do = fn(&World, &mut Window<u64>) -> Result<()>;

fn fence(_: &World, u: &mut Window<u64>) -> Result<()> {
    u.put([1]).to(0, 0)?;
    u.fence()
}
fn barrier(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.barrier()
}
fn window(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.window::<u8>(3).map(drop)
}
fn split(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.split(Some(0), 0).map(drop)
}
fn broadcast(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.broadcast(0, &mut [1u32; 4])
}
fn broadcast_wide(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.broadcast(0, &mut [1u64; 4])
}
fn gather(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.gather(0, &[1u8, 2]).map(drop)
}
fn gather_signed(world: &World, _: &mut Window<u64>) -> Result<()> {
    world.gather(0, &[1i8, 2]).map(drop)
}
fn plain(_: &World, u: &mut Window<u64>) -> Result<()> {
    shift(u, 1)
}
fn plain_get(_: &World, u: &mut Window<u64>) -> Result<()> {
    pull(u, 1)
}
fn preparing(world: &World, _: &mut Window<u64>) -> Result<()> {
    shift::prepare(world, 1).map(drop)
}
fn failing(_: &World, u: &mut Window<u64>) -> Result<()> {
    u.epoch(|_| Err(Error::new(ErrorClass::Other, "enough")))
}
fn early(_: &World, _: &mut Window<u64>) -> Result<()> {
    Ok(())
}

/// The calls. After each of them except `early`, the world can still be used.
const CALLS: [Do; 12] = [
    fence,
    barrier,
    window,
    split,
    broadcast,
    broadcast_wide,
    gather,
    gather_signed,
    plain,
    plain_get,
    preparing,
    failing,
];

#[test]
fn any_two_different_calls_are_errors_on_both_and_the_world_goes_on() -> Result<()> {
    for size in [2, 3] {
        for world in sampled(size, 2 * size) {
            world.run(|world| {
                let mut u = world.window::<u64>(4)?;
                for a in 0..CALLS.len() {
                    for b in (0..CALLS.len()).filter(|&b| b != a) {
                        let mine = if world.rank() == 0 { a } else { b };
                        let error = CALLS[mine](world, &mut u).expect_err("the other is elsewhere");
                        assert!(!error.world_ended(), "{a} and {b}: {error}");
                        // The world can still be used, and the right elements arrive.
                        let mut v = world.window::<u64>(1)?;
                        v.put([world.rank() as u64 + 5]).to((world.rank() + 1) % size, 0)?;
                        world.fence((&mut u, &mut v))?;
                        assert_eq!(v[0], ((world.rank() + size - 1) % size) as u64 + 5);
                        assert_eq!(
                            world.allgather(&[world.rank()])?,
                            (0..size).map(|r| vec![r]).collect::<Vec<_>>()
                        );
                        let half = world.split(Some(0), 0)?.expect("a colour was given");
                        half.barrier()?;
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
#[expect(clippy::needless_range_loop, reason = "numbers past the calls are prepared runs")]
fn prepared_runs_against_everything_else_are_errors_on_all() {
    let calls = CALLS.len() + 2;
    for size in [2, 3] {
        for world in sampled(size, size) {
            for first in [0, 1] {
                for other in 0..calls {
                    let ends = ends(&world, &[], |world| {
                        let mut u = world.window::<u64>(4)?;
                        let mut a = shift::prepare(world, 1)?;
                        let mut b = pull::prepare(world, 1)?;
                        let mut go = |which: usize| match which {
                            0 => a.replay(&mut u),
                            1 => b.replay(&mut u),
                            _ => unreachable!(),
                        };
                        if world.rank() == 0 {
                            go(first)
                        } else if other == CALLS.len() {
                            go(1 - first)
                        } else if other == CALLS.len() + 1 {
                            Ok(())
                        } else {
                            CALLS[other](world, &mut u)
                        }
                    });
                    let least = if other == CALLS.len() + 1 { 1 } else { 2 };
                    let errors = ends.iter().flatten().count();
                    assert!(errors >= least, "{size} ranks, {first} against {other}: {ends:?}");
                }
            }
        }
    }
}

#[test]
fn three_ranks_in_three_calls_all_get_errors() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u64>(4)?;
            for shift in 0..CALLS.len() {
                let mine = (shift + [0, 1, 3][world.rank()]) % CALLS.len();
                CALLS[mine](world, &mut u).expect_err("the others are elsewhere");
            }
            world.barrier()
        })?;
        let early = world.run(|world| {
            let mut u = world.window::<u64>(4)?;
            [early as Do, window, plain][world.rank()](world, &mut u)
        });
        assert_eq!(early.expect_err("rank 0 left").class(), ErrorClass::ProcFailed);
    }
    Ok(())
}

/// A source and a destination that name a window from which they were not made.
struct Forged(WindowKey, Datatype);
impl Source<u64> for Forged {
    fn data(&self) -> SourceData<'_, u64> {
        SourceData::Section(Some(self.0), Cow::Borrowed(&self.1))
    }
}
impl Section<u64> for Forged {
    fn section(&self) -> (Option<WindowKey>, Datatype) {
        (Some(self.0), self.1.clone())
    }
}

#[test]
fn a_section_of_a_window_of_another_type_is_refused() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u64>(4)?;
            let mut bytes = world.window::<u8>(4)?;
            // Keys can be read from public values, and kept longer than their window.
            let SourceData::Section(Some(key), _) = bytes.section(0..4).data() else {
                panic!("a section has a key")
            };
            let peer = 1 - world.rank();
            assert_eq!(
                u.get(Forged(key, Datatype::run(0..4))).from(peer, 0..4).unwrap_err().class(),
                ErrorClass::Type
            );
            assert_eq!(
                u.put(Forged(key, Datatype::run(0..4))).to(peer, 0..4).unwrap_err().class(),
                ErrorClass::Type
            );
            let SourceData::Section(Some(none), _) = world.window::<u64>(4)?.section(0..4).data() else {
                panic!("a section has a key")
            };
            assert_eq!(
                u.get(Forged(none, Datatype::run(0..4))).from(peer, 0..4).unwrap_err().class(),
                ErrorClass::Disp
            );
            world.fence((&mut u, &mut bytes))
        })?;
    }
    Ok(())
}

#[test]
fn an_element_named_beyond_all_memory_is_an_error_on_all() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u64>(4)?;
            let peer = 1 - world.rank();
            // 2^61 elements of 8 bytes are 2^64 bytes.
            for count in [1usize << 61, 1 << 60] {
                let often = Datatype::run(0..1).repeat(count, 0).unwrap();
                for twice in [1, 2] {
                    for _ in 0..twice {
                        u.get(&often).from(peer, &often)?;
                    }
                    let error = u.fence().expect_err("nobody has such memory");
                    assert!(matches!(error.class(), ErrorClass::NoMem | ErrorClass::RmaSync), "{error}");
                }
                u.put(&often).to(peer, &often)?;
                let error = u.fence().expect_err("nobody has such memory");
                assert!(matches!(error.class(), ErrorClass::NoMem | ErrorClass::RmaSync), "{error}");
                assert_eq!(
                    u.fetch(None, &often).expect_err("nobody has such memory").class(),
                    ErrorClass::NoMem
                );
                if world.rank() == 0 {
                    drop(u.fetch(peer, &often)?);
                }
                u.fence().expect_err("rank 0 has no such memory");
            }
            assert_eq!(world.window::<u64>(usize::MAX).unwrap_err().class(), ErrorClass::NoMem);
            assert_eq!(world.window::<u64>(1 << 59).unwrap_err().class(), ErrorClass::NoMem);
            let mut none = world.window::<u64>(0)?;
            none.put(&[] as &[u64]).to(peer, 0)?;
            assert_eq!(none.put([1]).to(peer, 0).unwrap_err().class(), ErrorClass::Disp);
            world.fence((&mut u, &mut none))
        })?;
    }
    Ok(())
}

#[test]
fn a_body_that_panics_half_way_is_an_error_on_all_ranks_also_where_the_panic_is_caught() {
    for world in worlds(2) {
        for prepare in [false, true] {
            let ends = ends(&world, &[], |world| {
                let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
                let deed = 1;
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    if prepare {
                        let mut prepared = matched::prepare(world, &[1, 2], 0)?;
                        prepared.run(&mut u, &mut v, &[1, 2], deed)
                    } else {
                        matched(&mut u, &mut v, &[1, 2], deed)
                    }
                }));
                assert!(caught.is_err());
                assert_eq!((u[6], v[0]), (0, 0));
                // The superstep leaves nothing behind.
                u.put([9]).to(1 - world.rank(), 1)?;
                let fenced = u.fence();
                assert_eq!(fenced.is_ok(), !prepare, "{fenced:?}");
                assert_eq!(u[1], if prepare { 0 } else { 9 });
                fenced
            });
            assert!(ends.iter().all(|end| end.is_some() == prepare), "{ends:?}");
        }
    }
}

#[test]
fn a_scoped_epoch_that_panics_leaves_no_borrow_behind() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<u64>(2)?;
            let peer = 1 - world.rank();
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let mut short = vec![0; 2];
                u.epoch(|epoch| -> Result<()> {
                    epoch.fetch_into(peer, 0..2, &mut short)?;
                    epoch.put([4]).to(peer, 0)?;
                    // Collective calls are not part of the epoch.
                    world.barrier()?;
                    drop(world.window::<u8>(1)?);
                    panic!("out")
                })
            }));
            assert!(caught.is_err());
            u.fence()?;
            assert_eq!(u[..], [0, 0]);
            u.fence_with(Assertions::NOSUCCEED)?;
            let mut seen = [0];
            let refused = u.epoch(|epoch| epoch.fetch_into(peer, 0, &mut seen));
            assert!(refused.is_err());
            Ok(())
        })?;
    }
    Ok(())
}

/// A rank that has finished a fence ends the world while other ranks still read each other's memory
/// in that fence. A rank whose memory is read gets its error only after the reads. No reader sees
/// what this rank stores afterwards.
#[test]
fn a_world_that_is_ended_behind_a_fence_leaves_no_reader_behind() {
    const LEN: usize = 1 << 10;
    // The datatype repeats the same elements, so that there is enough time to end the world.
    let often = |first: usize| Datatype::run(first..first + LEN).repeat(1 << 13, 0).unwrap();
    for world in [TransportKind::Local, TransportKind::ShmThreads].map(|kind| ranks(3).transport(kind)) {
        for _ in 0..20 {
            ends(&world, &[], |world| {
                let mut u = world.window::<u64>(2 * LEN)?;
                let (mut a, mut b) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
                let mut prepared = matched::prepare(world, &[1, 2], 0)?;
                if world.rank() == 0 {
                    u.get(often(0)).mode(Mode::Direct).from(1, often(LEN))?;
                }
                let fenced = u.fence();
                match world.rank() {
                    0 => assert!(u[..LEN].iter().all(|&element| element == 0)),
                    1 => {
                        u.fill(7);
                        let put = u.put(&[7; 64]).to(0, 0);
                        assert_eq!(put.is_err(), fenced.is_err(), "nothing is collected any more");
                    }
                    _ => {
                        let run = prepared.run(&mut a, &mut b, &[1, 2, 3], 0);
                        run.expect_err("another call than planned");
                    }
                }
                fenced
            });
        }
    }
}

#[superstep]
fn across(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    u.put([1]).to(0, 0)?;
    v.put([1]).to(0, 0)
}

/// If two worlds have different ranks, their windows do not even have the same parts.
#[test]
fn windows_of_different_worlds_are_not_fenced_together() {
    for ranks in worlds(3) {
        ranks
            .run(|world| {
                let Some(part) = world.split(Some(world.rank() as u32), 0)? else {
                    panic!("all have a colour")
                };
                let mut whole = world.window::<u64>(2)?;
                let mut own = part.window::<u64>(2)?;
                for misuse in 0..5 {
                    own.put([7]).to(0, 0)?;
                    whole.put([7]).to(0, 0)?;
                    let error = match misuse {
                        0 => world.fence(&mut own),
                        1 => world.fence((&mut own, &mut whole)),
                        2 => part.fence((&mut own, &mut whole)),
                        misuse => {
                            own.fence()?;
                            whole.fence()?;
                            own[0] = 0;
                            whole.fill(0);
                            if misuse == 3 {
                                across(&mut own, &mut whole)
                            } else {
                                across(&mut whole, &mut own)
                            }
                        }
                    };
                    let error = error.unwrap_err();
                    assert_eq!(error.class(), ErrorClass::Win, "{misuse}: {error}");
                    assert_eq!((own[0], whole[0]), (0, 0), "nothing is applied");
                    own.fence()?;
                    whole.fence()?;
                    assert_eq!(
                        (own[0], whole[0]),
                        (0, if misuse == 0 { 7 * u64::from(world.rank() == 0) } else { 0 })
                    );
                    whole.fill(0);
                }
                Ok(())
            })
            .unwrap();
    }
}

/// Reads elements of another rank.
#[superstep]
fn look(u: &mut Window<u64>, #[uniform] number: u64, from: usize) -> Result<()> {
    let _ = number;
    u.get(0..4).from(from, 4..8)
}

/// The hashes of these two numbers (FNV-1a of 64 bits) differ by the number of the second window. A
/// search of some seconds finds such a pair. The pair must not lead one rank to the memory of a
/// window that its owner does not fence.
#[test]
fn uniform_values_with_chosen_hashes_do_not_pass_one_window_for_another() -> Result<()> {
    const NUMBERS: [u64; 2] = [0x4d66_6586_03c6_e067, 0x11f1_ff38_cd18_5e7f];
    const BETWEEN: usize = 9469;
    for world in sampled(2, 0) {
        world.check(Check::Off).run(|world| {
            let me = world.rank();
            let mut u = world.window::<u64>(8)?;
            (1..BETWEEN).try_for_each(|_| world.window::<u8>(0).map(drop))?;
            let mut v = world.window::<u64>(8)?;
            u[4..].fill(10 + me as u64);
            v[4..].fill(20 + me as u64);
            world.barrier()?;
            let window = if me == 0 { &mut u } else { &mut v };
            let error = look(window, NUMBERS[me], 1 - me).expect_err("the ranks fence different windows");
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            assert!(error.to_string().contains(&format!("window {BETWEEN}")), "{error}");
            assert_eq!((&u[..4], &v[..4]), (&[0; 4][..], &[0; 4][..]), "nothing was read");
            look(&mut u, NUMBERS[0], 1 - me)?;
            assert_eq!(u[..4], [11 - me as u64; 4]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts in two windows.
#[superstep]
fn shift_both(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    let to = (u.rank() + 1) % u.size();
    u.put(0..2).to(to, 2)?;
    v.put(0..2).to(to, 2)
}

/// Makes one of the two windows of a superstep unfit for the superstep. Also gets a shorter window,
/// which may replace one of them.
type Spoil = fn(&mut Window<u64>, &mut Window<u64>, Window<u64>) -> Result<()>;

#[test]
fn a_window_that_a_prepared_superstep_cannot_take_is_named_by_its_number() {
    let cases: [(&str, Spoil); 3] = [
        ("window 4 has 3 elements on this rank, and the plan needs at least 4", |_, v, short| {
            *v = short;
            Ok(())
        }),
        ("operations wait for the fence of window 3", |_, v, _| v.put([1]).to(0, 0)),
        ("NOSUCCEED was asserted at the last fence of window 2", |u, _, _| {
            u.fence_with(Assertions::NOSUCCEED)
        }),
    ];
    for transport in transports([5]) {
        for (words, spoil) in cases {
            let run = ranks(2).transport(transport.clone()).run(|world| {
                // The number of a window is not its position among the windows of the superstep.
                let _before = (world.window::<u8>(1)?, world.window::<u8>(1)?);
                let (mut u, mut v, short) = (world.window(4)?, world.window(4)?, world.window(3)?);
                let mut prepared = shift_both::prepare(world)?;
                spoil(&mut u, &mut v, short)?;
                let refused = prepared.replay(&mut u, &mut v).expect_err("it does not fit");
                assert!(refused.message().contains(words), "{transport:?}: {refused}");
                Ok(())
            });
            run.unwrap_or_else(|error| panic!("{transport:?}: {error}"));
        }
    }
}
