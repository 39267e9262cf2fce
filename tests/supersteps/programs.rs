//! `#[superstep]` in whole programs: the functions that it makes, and their patterns, plans and
//! prepared forms.

use fencepost::prelude::*;
use fencepost::{__private::Recorder, Machine, Op, Options, Placement, State, World, ranks};
use fencepost_tests_worlds::transports::transports;

/// Fills this block's halo from the blocks around it.
#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Puts values of this rank to the rank `by` to the right.
#[superstep]
fn shift(u: &mut Window<u32>, values: &[u32], by: usize) -> Result<()> {
    let to = (u.rank() + by) % u.size();
    u.put(values).to(to, 0)
}

/// Sums the values of all ranks on every rank, in log2 steps. All ranks call the same number of
/// fences.
#[superstep]
fn all_sum(u: &mut Window<u64>, #[uniform] factor: u64) -> Result<u64> {
    let (rank, size) = (u.rank(), u.size());
    let mut distance = 1;
    while distance < size {
        let ticket = u.fetch((rank + distance) % size, 0)?;
        u.fence()?;
        u[0] += ticket.take()?[0];
        distance *= 2;
    }
    Ok(u[0] * factor)
}

#[superstep(prepared = Fill)]
fn fill<T: Element, const N: usize>(u: &mut Window<T>, value: &T) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put(&[*value; N]).to(right, 0)?;
    Ok(())
}

#[superstep]
fn swap_halves(u: &mut Window<i32>, v: &mut Window<i32>, half: usize) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put(v.section(0..half)).to(right, 0)?;
    v.get(half..2 * half).from(right, 0)?;
    Ok(())
}

fn cells(world: &World, block: &Block<2>) -> Result<Window<f64>> {
    let mut u = world.window::<f64>(block.len())?;
    u.iter_mut().enumerate().for_each(|(i, cell)| *cell = (world.rank() * 10_000 + i) as f64);
    Ok(u)
}

#[test]
fn a_prepared_superstep_leaves_what_the_plain_one_leaves() {
    for transport in transports([0]) {
        ranks(4)
            .transport(transport)
            .run(|world| {
                let block = Block::new(world, [12, 9])?.halo(1)?;
                let mut plain = cells(world, &block)?;
                exchange(&mut plain, &block)?;
                let mut again = cells(world, &block)?;
                let mut halo = exchange::prepare(world, &block)?;
                for _ in 0..3 {
                    halo.replay(&mut again)?;
                }
                assert_eq!(&plain[..], &again[..]);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_plan_compiled_without_a_world_is_loaded_into_one() {
    let path = std::env::temp_dir().join(format!("fencepost-superstep-{}.plan", std::process::id()));
    let compiled = exchange::compile(6, |rank| Block::at(rank, 6, [12, 9])?.halo(1)).unwrap();
    compiled.save(&path).unwrap();
    ranks(6)
        .run(|world| {
            let block = Block::new(world, [12, 9])?.halo(1)?;
            let mut plain = cells(world, &block)?;
            exchange(&mut plain, &block)?;
            let mut again = cells(world, &block)?;
            exchange::load(world, &path, &block)?.replay(&mut again)?;
            assert_eq!(&plain[..], &again[..]);

            let other = Block::new(world, [12, 10])?.halo(1)?;
            let refused = exchange::load(world, &path, &other).unwrap_err();
            assert_eq!(refused.class(), ErrorClass::Plan, "{refused}");
            Ok(())
        })
        .unwrap();
    std::fs::remove_file(path).unwrap();
}

/// Two epochs. The second one sends the elements that arrive in the first.
#[superstep]
fn hand_on(u: &mut Window<u32>, next: usize) -> Result<()> {
    u.put(0..2).to(next, 2)?;
    u.fence()?;
    u.put(2..4).to(next, 0)?;
    u.fence()
}

#[superstep]
fn hand_over(u: &mut Window<u32>, next: usize) -> Result<()> {
    u.put(0..2).to(next, 2)
}

#[test]
fn a_superstep_of_several_epochs_is_one_plan_file() {
    let path = std::env::temp_dir().join(format!("fencepost-epochs-{}.plan", std::process::id()));
    hand_on::compile(3, |rank| Ok((rank + 1) % 3)).unwrap().save(&path).unwrap();
    ranks(3)
        .run(|world| {
            let (rank, next) = (world.rank() as u32, (world.rank() + 1) % 3);
            let mut plain = world.window::<u32>(4)?;
            plain[..2].copy_from_slice(&[rank, 10 + rank]);
            hand_on(&mut plain, next)?;
            let mut again = world.window::<u32>(4)?;
            again[..2].copy_from_slice(&[rank, 10 + rank]);
            hand_on::load(world, &path, next)?.replay(&mut again)?;
            assert_eq!(&plain[..], &again[..]);
            assert_eq!(plain[0], (rank + 1) % 3, "twice one further is one back");

            let refused = hand_over::load(world, &path, next).unwrap_err();
            assert_eq!(refused.class(), ErrorClass::Plan, "{refused}");
            assert!(refused.to_string().contains("2 epochs"), "{refused}");
            Ok(())
        })
        .unwrap();
    std::fs::remove_file(path).unwrap();
}

/// Three sums into overlapping elements, and a put of every rank to the same element.
#[superstep]
fn crowd(sums: &mut Window<i32>, last: &mut Window<f64>, at: usize) -> Result<()> {
    let next = (sums.rank() + 1) % sums.size();
    sums.accumulate(0..40, Op::Sum).to(next, 40 + at)?;
    sums.accumulate(0..30, Op::Sum).to(next, 45)?;
    sums.accumulate(10..30, Op::Sum).to(next, 40)?;
    last.put(0..100).to(0, 100)
}

#[test]
fn elements_that_no_rank_can_see_are_not_sent() {
    for transport in transports([0]) {
        let sent: Vec<u64> = ranks(3)
            .transport(transport)
            .mode(Mode::Aggregated)
            .collect(|world| {
                let windows = || -> Result<_> {
                    let (mut sums, mut last) = (world.window::<i32>(90)?, world.window::<f64>(200)?);
                    sums.iter_mut().enumerate().for_each(|(i, e)| *e = (i * i + world.rank()) as i32);
                    last.iter_mut().enumerate().for_each(|(i, e)| *e = (i + 1000 * world.rank()) as f64);
                    Ok((sums, last))
                };
                let (mut sums, mut last) = windows()?;
                crowd(&mut sums, &mut last, 2)?;
                let (mut sums_again, mut last_again) = windows()?;
                let mut prepared = crowd::prepare(world, 2)?;
                world.barrier()?;
                let before = world.traffic().bytes;
                prepared.replay(&mut sums_again, &mut last_again)?;
                let sent = world.traffic().bytes - before;
                assert_eq!((&sums[..], &last[..]), (&sums_again[..], &last_again[..]));
                Ok(sent)
            })
            .unwrap();
        // The sums visit 42 elements, 90 times in total. Of the puts to rank 0, the put of rank 2
        // is the last.
        assert_eq!(sent, [42 * 4, 42 * 4, 42 * 4 + 800]);
    }
}

#[test]
fn a_superstep_with_values_takes_new_ones_each_time() {
    for transport in transports([0]) {
        ranks(3)
            .transport(transport)
            .run(|world| {
                let mut u = world.window::<u32>(2)?;
                let mut prepared = shift::prepare(world, &[0, 0], 1)?;
                for round in 0..4 {
                    prepared.run(&mut u, &[world.rank() as u32, round], 1)?;
                    assert_eq!(&u[..], [(world.rank() as u32 + 2) % 3, round]);
                }
                shift(&mut u, &[7, 8], 2)?;
                assert_eq!(&u[..], [7, 8]);
                Ok(())
            })
            .unwrap();
    }
}

/// Three epochs with values: two that fence `u` alone, and one that fences both windows.
#[superstep]
fn relay(
    u: &mut Window<u32>,
    v: &mut Window<u32>,
    world: &World,
    values: &[u32],
    #[uniform] rounds: usize,
) -> Result<u32> {
    let next = (u.rank() + 1) % u.size();
    let mut sum = 0;
    for round in 0..rounds {
        v.put([values[1] + round as u32]).to(next, round)?; // waits for the last fence
        let ticket = u.fetch(next, 0)?;
        u.put(&values[..1]).to(next, 2)?;
        u.fence()?;
        sum += ticket.take()?[0] + u[2];
    }
    u.accumulate(&[sum], Op::Sum).to(next, 1)?;
    world.fence((u, v))?;
    Ok(sum)
}

#[test]
fn a_body_with_fences_is_matched_epoch_by_epoch() {
    let path = std::env::temp_dir().join(format!("fencepost-relay-{}.plan", std::process::id()));
    let compiled = relay::compile(3, |_| Ok((vec![0; 2], 2))).unwrap();
    let apart = compiled.with(Placement::Apart, &Machine::default(), &Options::default()).unwrap();
    apart.save(&path).unwrap();
    for transport in transports([0]) {
        ranks(3)
            .transport(transport)
            .run(|world| {
                let window = || world.window::<u32>(4);
                let [mut plain, mut second] = [window()?, window()?];
                let [mut u, mut v] = [window()?, window()?];
                let mut prepared = relay::prepare(world, &[0, 0], 2)?;
                let mut loaded = relay::load(world, &path, &[0, 0], 2)?;
                for time in 0..4 {
                    let values = [10 * world.rank() as u32 + time, 100 + time];
                    let expected = relay(&mut plain, &mut second, world, &values, 2)?;
                    let halo = if time % 2 == 0 { &mut prepared } else { &mut loaded };
                    assert_eq!(halo.run(&mut u, &mut v, world, &values, 2)?, expected);
                    assert_eq!((&u[..], &v[..]), (&plain[..], &second[..]), "time {time}");
                }
                assert_eq!(v[..2], [103, 104]);
                Ok(())
            })
            .unwrap();
    }
    std::fs::remove_file(path).unwrap();
}

#[superstep]
fn in_two(u: &mut Window<u32>, values: &[u32], fails: bool) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(&values[..1]).to(next, 0)?;
    u.fence()?;
    if fails {
        return Err(Error::new(ErrorClass::Other, "half way"));
    }
    u.put(&values[1..]).to(next, 1)?;
    u.fence()
}

#[test]
fn a_body_that_leaves_the_plan_between_its_fences_is_an_error_on_all_ranks() {
    let half_way: fn(&mut Window<u32>, &mut in_two_prepared, bool) -> Result<()> =
        |u, prepared, odd| prepared.run(u, &[1, 2], odd);
    let too_long: fn(&mut Window<u32>, &mut in_two_prepared, bool) -> Result<()> =
        |u, prepared, odd| prepared.run(u, if odd { &[1, 2, 3] } else { &[1, 2] }, false);
    let panics: fn(&mut Window<u32>, &mut in_two_prepared, bool) -> Result<()> = |u, prepared, odd| {
        let run = || prepared.run(u, if odd { &[1] } else { &[1, 2] }, false);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        ran.unwrap_or_else(|_| Err(Error::new(ErrorClass::Other, "panicked")))
    };
    for (act, class) in
        [(half_way, ErrorClass::Other), (too_long, ErrorClass::Plan), (panics, ErrorClass::Plan)]
    {
        for transport in transports([0]) {
            let errors: Vec<Error> = ranks(3)
                .transport(transport)
                .collect(|world| {
                    let mut u = world.window::<u32>(3)?;
                    let mut prepared = in_two::prepare(world, &[0, 0], false)?;
                    prepared.run(&mut u, &[5, 6], false)?;
                    let mut ended = act(&mut u, &mut prepared, world.rank() == 1);
                    if world.rank() == 1 {
                        assert_eq!(u[0], 1, "the first epoch is over");
                    }
                    // A rank that did not wait for rank 1 in that run must wait in the next run.
                    while ended.is_ok() {
                        ended = prepared.run(&mut u, &[1, 2], false);
                    }
                    ended.map_or_else(Ok, |()| unreachable!("it was an error"))
                })
                .unwrap();
            assert_eq!(errors[1].class(), class, "{}", errors[1]);
            for error in [&errors[0], &errors[2]] {
                assert!(error.world_ended() && error.to_string().contains("rank 1"), "{error}");
            }
        }
    }
}

#[test]
fn leaving_the_plan_is_an_error_at_the_call() {
    let errors: Vec<String> = ranks(2)
        .collect(|world| {
            let mut u = world.window::<u32>(4)?;
            let mut prepared = shift::prepare(world, &[0, 0], 1)?;
            let error = prepared.run(&mut u, &[1, 2, 3], 1).unwrap_err();
            Ok(error.to_string())
        })
        .unwrap();
    assert!(errors.iter().any(|error| error.contains("programs.rs")), "{errors:?}");
}

#[test]
fn fences_stand_under_uniform_bounds() {
    for transport in transports([0]) {
        for size in [1, 2, 4, 8] {
            let sums: Vec<u64> = ranks(size)
                .transport(transport.clone())
                .collect(|world| {
                    let mut u = world.window::<u64>(1)?;
                    u[0] = world.rank() as u64 + 1;
                    all_sum(&mut u, 10)
                })
                .unwrap();
            assert_eq!(sums, vec![10 * (size * (size + 1) / 2) as u64; size]);
        }
    }
}

#[test]
fn ranks_that_break_a_uniform_promise_get_an_error() {
    let errors: Vec<ErrorClass> = ranks(2)
        .collect(|world| {
            let mut u = world.window::<u64>(1)?;
            Ok(all_sum(&mut u, world.rank() as u64).unwrap_err().class())
        })
        .unwrap();
    assert_eq!(errors, [ErrorClass::RmaSync; 2]);
}

#[test]
fn generic_supersteps_name_their_types_at_the_call() {
    let compiled = fill::compile::<f32, 3>(4, |_| Ok(0.0)).unwrap();
    assert_eq!(compiled.patterns().len(), 1);
    assert_eq!(compiled.patterns()[0].classes.len(), 2, "the last rank's right neighbour is the first");
    struct Keeps {
        fill: Fill<f32, 3>,
    }
    ranks(4)
        .run(|world| {
            let mut u = world.window::<f32>(3)?;
            let mut keeps = Keeps { fill: fill::prepare::<f32, 3>(world, &0.0)? };
            keeps.fill.run(&mut u, &(world.rank() as f32))?;
            assert_eq!(&u[..], [((world.rank() + 3) % 4) as f32; 3]);
            fill::<f32, 3>(&mut u, &0.5)?;
            assert_eq!(&u[..], [0.5; 3]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn several_windows_are_fenced_together() {
    ranks(2)
        .run(|world| {
            let mut u = world.window::<i32>(4)?;
            let mut v = world.window::<i32>(4)?;
            let mine = world.rank() as i32;
            v.copy_from_slice(&[10 + mine, 20 + mine, 0, 0]);
            swap_halves(&mut u, &mut v, 2)?;
            let other = 1 - mine;
            assert_eq!(&u[..], [10 + other, 20 + other, 0, 0]);
            assert_eq!(&v[..], [10 + mine, 20 + mine, 10 + other, 20 + other]);
            swap_halves::prepare(world, 2)?.replay(&mut u, &mut v)?;
            assert_eq!(&v[..], [10 + mine, 20 + mine, 10 + other, 20 + other]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_pattern_is_recorded_without_a_world() {
    let recording = fencepost::__private::Recording::new(1, 4);
    let u: Recorder<f64> = recording.window(0);
    let block = Block::at(1, 4, [8, 8]).unwrap().halo(1).unwrap();
    exchange::pattern(&u, &block).unwrap();
    let (epochs, _) = recording.finish(1, false).unwrap();
    assert_eq!(epochs.len(), 1);
    assert_eq!(epochs[0].pattern.operations.len(), block.neighbours().count());
}

#[superstep]
fn sometimes_fails(u: &mut Window<u32>, fails: bool) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put([1]).to(right, 0)?;
    if fails {
        return Err(Error::new(ErrorClass::Other, "not today"));
    }
    Ok(())
}

#[test]
fn an_error_on_one_rank_fails_every_rank_and_moves_nothing() {
    for transport in transports([0]) {
        let errors: Vec<String> = ranks(3)
            .transport(transport)
            .collect(|world| {
                let mut u = world.window::<u32>(1)?;
                let error = sometimes_fails(&mut u, world.rank() == 1).unwrap_err();
                assert_eq!(u[0], 0);
                // The world goes on.
                sometimes_fails(&mut u, false)?;
                assert_eq!(u[0], 1);
                Ok(error.to_string())
            })
            .unwrap();
        assert!(errors.iter().all(|error| error.contains("not today")), "{errors:?}");
    }
}

#[test]
fn operations_pending_at_entry_are_wrong_synchronisation() {
    let classes: Vec<ErrorClass> = ranks(2)
        .collect(|world| {
            let mut u = world.window::<u32>(1)?;
            if world.rank() == 0 {
                u.put([5]).to(1, 0)?;
            }
            let class = sometimes_fails(&mut u, false).unwrap_err().class();
            sometimes_fails(&mut u, false)?;
            assert_eq!(u[0], 1);
            Ok(class)
        })
        .unwrap();
    assert_eq!(classes[0], ErrorClass::RmaSync);
}

#[superstep]
fn panics(u: &mut Window<u32>, now: bool) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put([1]).to(right, 0)?;
    assert!(!now, "on purpose");
    Ok(())
}

#[test]
fn a_panic_that_is_caught_fails_the_superstep_on_every_rank() {
    ranks(2)
        .run(|world| {
            let mut u = world.window::<u32>(1)?;
            let now = world.rank() == 0;
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics(&mut u, now)));
            match caught {
                Ok(result) => assert!(result.unwrap_err().to_string().contains("panicked")),
                Err(_) => assert!(now),
            }
            panics(&mut u, false)?;
            assert_eq!(u[0], 1);
            Ok(())
        })
        .unwrap();
}

/// An error type of the program.
#[derive(Debug)]
enum Mine {
    Fencepost(Error),
    Other,
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Mine::Fencepost(error)
    }
}

impl std::fmt::Display for Mine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mine::Fencepost(error) => error.fmt(f),
            Mine::Other => f.write_str("other"),
        }
    }
}

#[superstep]
fn own_error(u: &mut Window<u32>, to: Option<usize>) -> std::result::Result<(), Mine> {
    if to == Some(usize::MAX) {
        return Err(Mine::Other);
    }
    u.put([3]).to(to, 0)?;
    Ok(())
}

#[test]
fn errors_may_be_of_the_users_own_type() {
    ranks(2)
        .run(|world| {
            let mut u = world.window::<u32>(1)?;
            let to = (world.rank() == 0).then_some(1);
            own_error(&mut u, to).map_err(|error| Error::new(ErrorClass::Other, error.to_string()))?;
            assert_eq!(u[0], 3 * world.rank() as u32);
            assert!(matches!(own_error(&mut u, Some(usize::MAX)), Err(Mine::Other)));
            assert!(matches!(own_error(&mut u, Some(7)), Err(Mine::Fencepost(_))));
            Ok(())
        })
        .unwrap();
    assert!(own_error::compile(2, |_| Ok(Some(0))).is_ok());
    assert!(own_error::compile(2, |_| Ok(Some(2))).is_err());
}

thread_local! {
    static CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns a different result for the same argument each time. The slice assumes that no function
/// does this.
fn fickle(rank: usize) -> usize {
    rank + CALLS.with(|calls| calls.replace(calls.get() + 1))
}

#[superstep]
fn fickle_places(u: &mut Window<u32>) -> Result<()> {
    u.put([3]).to(0, fickle(u.rank()))?;
    Ok(())
}

#[test]
fn calls_that_are_not_as_in_the_pattern_are_an_error_before_anything_moves() {
    ranks(1)
        .run(|world| {
            let mut u = world.window::<u32>(4)?;
            let error = fickle_places(&mut u).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Plan, "{error}");
            assert_eq!(&u[..], [0; 4]);
            Ok(())
        })
        .unwrap();
}

/// Two epochs, with a fence between them that orders nothing.
#[superstep]
fn two_epochs(u: &mut Window<u32>, v: &mut Window<u32>, world: &World) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put(0..1).to(right, 1)?;
    world.fence((&mut *u, &mut *v))?;
    u.fence()?;
    v.put(u.section(1..2)).to(right, 0)?;
    world.fence((u, v))?;
    Ok(())
}

#[test]
fn epochs_end_at_fences() {
    let compiled = two_epochs::compile(3, |_| Ok(())).unwrap();
    assert_eq!(compiled.patterns().len(), 2);
    ranks(3)
        .run(|world| {
            let mut u = world.window::<u32>(2)?;
            let mut v = world.window::<u32>(1)?;
            u[0] = world.rank() as u32;
            two_epochs(&mut u, &mut v, world)?;
            assert_eq!(v[0], (world.rank() as u32 + 1) % 3);
            v[0] = 9;
            two_epochs::prepare(world)?.replay(&mut u, &mut v)?;
            assert_eq!(v[0], (world.rank() as u32 + 1) % 3);
            Ok(())
        })
        .unwrap();
}

fn put_one(u: &mut Window<u32>) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put([1]).to(right, 0)
}

/// This superstep is dynamic: the calls of the helper are seen only when the helper runs.
#[superstep]
fn helped(u: &mut Window<u32>) -> Result<()> {
    u.fence()?;
    put_one(u)
}

#[superstep]
fn helped_and_fenced(mut u: &mut Window<u32>) -> Result<()> {
    put_one(u)?;
    u = &mut *u;
    u.fence()
}

#[test]
fn a_dynamic_superstep_runs_and_leaves_nothing_open() {
    ranks(2)
        .run(|world| {
            let mut u = world.window::<u32>(1)?;
            assert_eq!(helped(&mut u).unwrap_err().class(), ErrorClass::RmaSync);
            assert_eq!(u[0], 0);
            helped_and_fenced(&mut u)?;
            assert_eq!(u[0], 1);
            Ok(())
        })
        .unwrap();
}

/// Both neighbours put into the same two elements of a rank.
#[superstep]
fn clashing(u: &mut Window<f64>, left: Option<usize>, right: Option<usize>) -> Result<()> {
    u.put(0..4).to(right, 10)?;
    u.put(4..6).to(left, 12)?;
    Ok(())
}

#[test]
fn conflicts_that_compiling_sees_name_ranks_window_elements_and_both_lines() {
    let line = line!() - 7;
    let sides = |rank: usize| (rank.checked_sub(1), (rank < 5).then_some(rank + 1));
    let compiled = clashing::compile(6, |rank| Ok(sides(rank))).unwrap();
    let conflicts = compiled.conflicts();
    // The conflicts are on the ranks next to the ends of the row, and on the two ranks between
    // them.
    let of = |conflict: &fencepost::Conflict| (conflict.rank, conflict.ranks, conflict.elements.clone());
    let all: Vec<_> = conflicts.iter().map(of).collect();
    assert_eq!(all, [(1, 1, 12..14), (2, 2, 12..14), (4, 1, 12..14)]);
    let found = &conflicts[0];
    assert_eq!(found.between.clone().map(|touch| touch.origin), [0, 2]);
    assert_eq!(found.between.clone().map(|touch| touch.site.line), [line, line + 1]);
    let said = format!("conflict: {found}");
    assert!(said.contains("elements 12..14 of w0 on rank 1: put by op0 of rank 0 at "), "{said}");
    assert!(compiled.explain().to_string().contains(&said), "{}", compiled.explain());
    let prepared: Vec<_> = ranks(6)
        .collect(|world| {
            let (left, right) = sides(world.rank());
            let prepared = clashing::prepare(world, left, right)?;
            assert!(prepared.explain().to_string().contains("conflict: elements 12..14"));
            Ok(prepared.conflicts())
        })
        .unwrap();
    prepared.iter().for_each(|other| assert_eq!(*other, conflicts));
    assert!(
        exchange::compile(6, |rank| Block::at(rank, 6, [12, 9])?.halo(1)).unwrap().conflicts().is_empty()
    );
}

type Values = Vec<u32>;

/// The syntax does not show that the argument that is put contains values.
#[superstep]
fn aliased(u: &mut Window<u32>, values: &Values, by: usize) -> Result<()> {
    let to = (u.rank() + by) % u.size();
    u.put(values).to(to, 0)
}

#[test]
fn values_behind_an_alias_are_run_as_any_others_and_cannot_be_replayed() -> Result<()> {
    for transport in transports([0]) {
        ranks(3).transport(transport).run(|world| {
            let mut u = world.window::<u32>(2)?;
            let mut prepared = aliased::prepare(world, &vec![0, 0], 1)?;
            let error = prepared.replay(&mut u).expect_err("a plan has no values");
            assert_eq!(
                (error.class(), error.state(), error.world_ended()),
                (ErrorClass::Plan, State::Unchanged, false)
            );
            assert!(
                error.message().contains("programs.rs") && error.message().contains("call `run`"),
                "{error}"
            );
            let me = world.rank() as u32;
            prepared.run(&mut u, &vec![me, me + 7], 1)?;
            assert_eq!(u[..], [(me + 2) % 3, (me + 2) % 3 + 7]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts elements `column` of the values to the next rank, and accumulates values 1..3 there.
#[superstep]
fn columns(u: &mut Window<u32>, values: &[u32], column: &Datatype, next: usize) -> Result<()> {
    u.put((values, column)).to(next, 0)?;
    u.accumulate((values, 1..3), Op::Sum).to(next, 8)
}

#[test]
fn a_part_of_a_slice_is_put_as_if_it_were_packed_before() -> Result<()> {
    let parts = [
        Datatype::nest(1, &[(4, 3)], 1).unwrap(),
        Datatype::nest(11, &[(2, -6), (2, 3)], 1).unwrap(),
        Datatype::elements([7, 0, 7, 3]).unwrap(),
        Datatype::run(2..6),
    ];
    for transport in transports([0, 1]).into_iter().chain([fencepost::TransportKind::TcpThreads]) {
        ranks(3).transport(transport).run(|world| {
            let (me, next) = (world.rank() as u32, (world.rank() + 1) % 3);
            let of = |rank: u32| (0..17).map(|i| 100 * rank + i).collect::<Vec<u32>>();
            let (values, before) = (of(me), of((me + 2) % 3));
            let mut u = world.window::<u32>(10)?;
            for part in &parts {
                let packed: Vec<u32> = part.element_iter().map(|at| before[at as usize]).collect();
                let mut prepared = columns::prepare(world, &values, part, next)?;
                for way in 0..3 {
                    u.fill(1);
                    match way {
                        0 => {
                            u.put((values.clone(), part.clone())).to(next, 0)?;
                            u.accumulate((&values[..], 1..3), Op::Sum).to(next, 8)?;
                            u.put((&values, 16..17)).to(next, 5)?;
                            u.fence()?;
                            assert_eq!(u[5], before[16]);
                        }
                        1 => columns(&mut u, &values, part, next)?,
                        _ => prepared.run(&mut u, &values, part, next)?,
                    }
                    assert_eq!(u[..4], packed, "{part}, {way}");
                    assert_eq!(u[8..], [before[1] + 1, before[2] + 1], "{part}, {way}");
                }
            }
            let class = |result: Result<()>| result.expect_err("it is refused").class();
            assert_eq!(class(u.put((&values, 16..18)).to(next, 0)), ErrorClass::Disp);
            assert_eq!(
                class(u.put((&values, &Datatype::nest(0, &[(2, -1)], 1).unwrap())).to(next, 0)),
                ErrorClass::Disp
            );
            assert_eq!(class(u.put((&values, &parts[0])).to(next, 0..3)), ErrorClass::Size);
            let endless = Datatype::nest(0, &[(1 << 60, 0)], 1).unwrap();
            assert_eq!(class(u.put((&values, &endless)).to(next, 0)), ErrorClass::NoMem);
            u.fence()
        })?;
    }
    columns::compile(4, |rank| Ok((vec![0; 17], parts[0].clone(), (rank + 1) % 4)))?;
    Ok(())
}
