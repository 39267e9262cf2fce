//! Supersteps with `#[superstep(sync = pscw)]`. Only some ranks run these prepared supersteps.
//! Several runs are under way at once, and some runs fail.
//!
//! `tests/epochs/differential.rs` has random programs of this kind. In this file, several plans are
//! in flight.

#[path = "../../examples/heat2d.rs"]
#[expect(dead_code, reason = "its loop ends in fences")]
mod heat2d;

use fencepost::__private::{Known, Prepared, Superstep, Sync, adopt};
use fencepost::prelude::*;
use fencepost::{Machine, Options, Placement, Ranks, Running, Stall, TransportKind, World, ranks};
use fencepost_planner::Verified;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Delta, Id, OperationId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Order, Pattern, Patterns, Site};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::table::Table;
use fencepost_tests_reference as reference;
use fencepost_tests_reference::Epoch;
use fencepost_tests_support::random::Random;
use fencepost_tests_support::side_by_side::side_by_side;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn worlds(size: usize) -> Vec<Ranks> {
    transports([1, 2]).into_iter().map(|transport| ranks(size).transport(transport)).collect()
}

/// Each of the first `members` ranks puts its first element to the next of these ranks.
#[superstep(sync = pscw)]
fn ring(u: &mut Window<u64>, members: usize) -> Result<()> {
    let rank = u.rank();
    if rank < members {
        u.put(0..1).to((rank + 1) % members, 1..2)?;
    }
    Ok(())
}

/// Ranks 0 and 1 exchange their first elements.
#[superstep(sync = pscw)]
fn pair(u: &mut Window<u64>) -> Result<()> {
    let rank = u.rank();
    if rank < 2 {
        u.put(0..1).to(1 - rank, 1..2)?;
    }
    Ok(())
}

#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(0..1).to(next, 1..2)
}

#[test]
fn ranks_without_partners_need_not_run_and_may() -> Result<()> {
    for world in worlds(5) {
        for mode in Mode::ALL {
            world.clone().mode(mode).run(|world| {
                let rank = world.rank();
                let mut u = world.window::<u64>(3)?;
                let mut ring = ring::prepare(world, 3)?;
                for step in 0..9 {
                    u[0] = 100 * step + rank as u64;
                    if rank < 3 {
                        ring.replay(&mut u)?;
                        assert_eq!(u[1], 100 * step + (rank as u64 + 2) % 3);
                    } else if rank == 3 {
                        (0..step).try_for_each(|_| ring.replay(&mut u))?;
                    }
                    if step == 4 {
                        u.put([7]).to(0, 2)?;
                        u.fence()?;
                        assert_eq!(u[2], if rank == 0 { 7 } else { 0 });
                    }
                }
                let exchanges = world.meter().exchanges;
                if rank < 3 {
                    ring.run(&mut u, 3)?;
                    ring.begin(u)?.finish()?;
                }
                assert_eq!(world.meter().exchanges, exchanges);
                world.barrier()
            })?;
        }
    }
    Ok(())
}

#[test]
fn called_plainly_it_ends_in_a_fence_of_all_ranks() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u64>(2)?;
            u[0] = 5 + world.rank() as u64;
            let before = world.traffic();
            pair(&mut u)?;
            assert!(world.rank() == 2 || u[1] == 6 - world.rank() as u64);
            assert_eq!(world.traffic().epochs, before.epochs + 1);
            Ok(())
        })?;
    }
    Ok(())
}

/// A superstep with values and tickets runs its body. If there is nothing to call, the body need
/// not run.
#[superstep(sync = pscw)]
fn tickets(u: &mut Window<u64>, members: usize, value: u64) -> Result<Option<Ticket<u64>>> {
    let rank = u.rank();
    let mut ticket = None;
    if rank < members {
        let next = (rank + 1) % members;
        u.put([value]).to(next, 2)?;
        ticket = Some(u.fetch(next, 0..1)?);
    }
    Ok(ticket)
}

#[test]
fn values_and_tickets_are_those_of_the_run_that_belongs_to_it() -> Result<()> {
    for world in worlds(4) {
        world.run(|world| {
            let rank = world.rank() as u64;
            let (mut u, mut v) = (world.window::<u64>(3)?, world.window::<u64>(3)?);
            (u[0], v[0]) = (10 + rank, 20 + rank);
            let mut first = tickets::prepare(world, 3, 0)?;
            let mut second = tickets::prepare(world, 3, 0)?;
            for step in 0..6 {
                if rank == 3 {
                    continue;
                }
                let (next, previous) = ((rank + 1) % 3, (rank + 2) % 3);
                let one = first.begin(u, 3, 1000 * step + rank)?;
                let other = second.begin(v, 3, 2000 * step + rank)?;
                let (of_other, of_one);
                if (rank + step).is_multiple_of(2) {
                    (v, of_other) = other.finish()?;
                    (u, of_one) = one.finish()?;
                } else {
                    (u, of_one) = one.finish()?;
                    (v, of_other) = other.finish()?;
                }
                assert_eq!((u[2], v[2]), (1000 * step + previous, 2000 * step + previous));
                assert_eq!(of_one.expect("a ticket").take()?, [10 + next]);
                assert_eq!(of_other.expect("a ticket").take()?, [20 + next]);
            }
            world.barrier()
        })?;
    }
    Ok(())
}

/// A rank that waits in one run makes progress with its other runs. So does a rank in a fence, a
/// collective or a replay.
#[test]
fn halves_end_in_another_order_on_each_rank() -> Result<()> {
    for world in worlds(4) {
        for mode in Mode::ALL {
            world.clone().mode(mode).run(|world| {
                let rank = world.rank();
                let window = || world.window::<u64>(4000);
                let (mut u, mut v, mut w, mut x) = (window()?, window()?, window()?, window()?);
                let mut plans =
                    [long::prepare(world, 4)?, long::prepare(world, 4)?, long::prepare(world, 3)?];
                let mut all = long_fence::prepare(world)?;
                for step in 0..8 {
                    for window in [&mut u, &mut v, &mut w, &mut x] {
                        window[..1000].fill(10 * step + rank as u64);
                    }
                    let [one, two, three] = &mut plans;
                    let (one, two) = (one.begin(u)?, two.begin(v)?);
                    let three = if rank < 3 { Ok(three.begin(w)?) } else { Err(w) };
                    let come = |of: &[u64], members: usize| {
                        let previous = (rank + members - 1) % members;
                        assert!(of[1000..2000].iter().all(|&e| e == 10 * step + previous as u64), "{mode}");
                        assert!(of[2000..].iter().all(|&e| e == 0));
                    };
                    // Each rank makes its calls between the halves, in an order that depends on
                    // `turn`.
                    let turn = (rank as u64 + step) % 4;
                    let end = |three: std::result::Result<Running<Window<u64>>, Window<u64>>| match three {
                        Ok(running) => running.finish().inspect(|w| come(w, 3)),
                        Err(w) => Ok(w),
                    };
                    if turn == 0 {
                        (u, v, w) = (one.finish()?, two.finish()?, end(three)?);
                        x.fence()?;
                        all.replay(&mut x)?;
                    } else if turn == 1 {
                        x.fence()?;
                        (w, v) = (end(three)?, two.finish()?);
                        all.replay(&mut x)?;
                        u = one.finish()?;
                    } else if turn == 2 {
                        v = two.finish()?;
                        x.fence()?;
                        let running = all.begin(x)?;
                        (w, u) = (end(three)?, one.finish()?);
                        x = running.finish()?;
                    } else {
                        x.fence()?;
                        all.replay(&mut x)?;
                        (u, w, v) = (one.finish()?, end(three)?, two.finish()?);
                    }
                    come(&u, 4);
                    come(&v, 4);
                    come(&x, 4);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Does the same as `ring` with a thousand elements, so that each mode has a different schedule.
#[superstep(sync = pscw)]
fn long(u: &mut Window<u64>, members: usize) -> Result<()> {
    let rank = u.rank();
    if rank < members {
        u.put(0..1000).to((rank + 1) % members, 1000..2000)?;
    }
    Ok(())
}

#[superstep]
fn long_fence(u: &mut Window<u64>) -> Result<()> {
    u.put(0..1000).to((u.rank() + 1) % u.size(), 1000..2000)
}

const LEN: usize = 8;
const ELEMENT: ElementType = ElementType::scalar(Scalar::U64);

static SUPERSTEP: Superstep = Superstep {
    name: "drawn",
    module: "pscw",
    file: file!(),
    line: line!(),
    column: column!(),
    fences: false,
    opens: false,
    mode: None,
    sync: Sync::Pscw,
    dynamic: None,
    known: Known::new(),
};

/// Draws a few operations of a few ranks on one window.
fn drawn(random: &mut Random, size: usize) -> Patterns {
    let run = |random: &mut Random, len: usize| {
        let first = random.below(LEN - len + 1);
        Datatype::from(first..first + len)
    };
    let rank = |random: &mut Random, rank: usize| {
        let members = random.below(3);
        let operation = |random: &mut Random| {
            let len = 1 + random.below(3);
            let (remote, local) = (run(random, len), run(random, len));
            Operation {
                kind: random.one_of(&[Kind::Put, Kind::Get, Kind::Accumulate(Op::Sum)]),
                window: WindowId(0),
                target: (!random.once_in(6)).then(|| Delta(random.below(size) as i64 - rank as i64)),
                remote,
                local: Local::Section { window: WindowId(0), datatype: local },
                mode: Mode::Auto,
                site: Site::default(),
            }
        };
        let operations: Table<OperationId, Operation> = (0..members).map(|_| operation(random)).collect();
        Pattern { operations: if random.once_in(2) { operations } else { Table::new() } }
    };
    Patterns {
        name: "drawn".into(),
        windows: [ELEMENT].into_iter().collect(),
        shape: vec![size as u32],
        classes: (0..size).map(|at| rank(random, at)).collect(),
        class_of: (0..size).map(Id::new).collect(),
        order: Order::Canonical,
        sync: Sync::Pscw,
    }
}

fn compiled(random: &mut Random, patterns: &Patterns, placement: Placement) -> Arc<Verified<Schedule>> {
    let options = Options { mode: random.one_of(&Mode::ALL), ..Options::default() };
    let schedule = fencepost_planner::compile(patterns, placement, &Machine::default(), &options);
    Arc::new(schedule.expect("good patterns"))
}

/// Returns the value that a rank stores before its run.
fn stored(rank: usize, run: usize, at: usize) -> u64 {
    (1000 * run + 100 * rank + at) as u64
}

/// A run: its plan, and its window.
type Run = (usize, usize);

const PLANS: usize = 5;
const WINDOWS: usize = 4;
const RUNS: usize = 40;

fn moves(schedule: &Schedule, rank: usize) -> bool {
    !schedule.classes[schedule.class_of[rank]].instructions.is_empty()
}

/// Ends the run at position `at` of `flying`. Copies the elements of the run's window into `left`.
fn end(
    flying: &mut Vec<(usize, Run, Running<Window<u64>>)>,
    at: usize,
    windows: &mut [Option<Window<u64>>],
    left: &mut [Option<Vec<u64>>],
) -> Result<()> {
    let (run, (_, window), running) = flying.remove(at);
    let ended = running.finish()?;
    left[run] = Some(ended.to_vec());
    windows[window] = Some(ended);
    Ok(())
}

/// Returns the elements that each run of a rank leaves in its window. Each run is made in two
/// halves, made in one piece, or left out.
fn fly(
    world: &World,
    schedules: &[Arc<Verified<Schedule>>],
    runs: &[Run],
    seed: u64,
) -> Result<Vec<Option<Vec<u64>>>> {
    let rank = world.rank();
    let mut random = Random::new(seed ^ (1 + rank as u64) << 40);
    let windows: Result<Vec<_>> = (0..WINDOWS).map(|_| world.window::<u64>(LEN).map(Some)).collect();
    let (mut windows, mut fenced) = (windows?, world.window::<u64>(1)?);
    let plans: Result<Vec<Prepared>> =
        schedules.iter().map(|schedule| adopt(&SUPERSTEP, world, [schedule.clone()])).collect();
    let (mut plans, mut flying, mut left) = (plans?, Vec::new(), vec![None; runs.len()]);
    for (run, &(plan, window)) in runs.iter().enumerate() {
        if run % 13 == 12 {
            fenced.fence()?;
        }
        if !moves(&schedules[plan], rank) && random.once_in(2) {
            continue;
        }
        while let Some(at) = flying.iter().position(|(_, (p, w), _)| *p == plan || *w == window) {
            end(&mut flying, at, &mut windows, &mut left)?;
        }
        let mut given = windows[window].take().expect("it is in no run");
        if moves(&schedules[plan], rank) {
            (0..LEN / 2).for_each(|at| given[at] = stored(rank, run, at));
        }
        if random.once_in(3) {
            plans[plan].replay(&mut given)?;
            left[run] = Some(given.to_vec());
            windows[window] = Some(given);
        } else {
            flying.push((run, (plan, window), plans[plan].begin(given)?));
        }
        if !flying.is_empty() && random.once_in(3) {
            let at = random.below(flying.len());
            end(&mut flying, at, &mut windows, &mut left)?;
        }
    }
    while !flying.is_empty() {
        let at = random.below(flying.len());
        end(&mut flying, at, &mut windows, &mut left)?;
    }
    Ok(left)
}

#[test]
fn several_plans_in_flight_leave_what_the_reference_leaves_run_by_run() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let size = 2 + random.below(4);
        let patterns: Vec<Patterns> = (0..PLANS).map(|_| drawn(&mut random, size)).collect();
        let runs: Vec<Run> = (0..RUNS).map(|_| (random.below(PLANS), random.below(WINDOWS))).collect();
        for transport in transports([seed]) {
            let apart = !matches!(transport, TransportKind::Local | TransportKind::ShmThreads);
            let placement = if apart { Placement::Apart } else { Placement::Together };
            let schedules: Vec<_> =
                patterns.iter().map(|patterns| compiled(&mut random, patterns, placement)).collect();
            let left = ranks(size)
                .transport(transport.clone())
                .collect(|world| fly(world, &schedules, &runs, seed))
                .unwrap_or_else(|error| panic!("{transport:?}, seed {seed}: {error}"));
            let mut memory = vec![vec![vec![0u64; LEN]; WINDOWS]; size];
            for (run, &(plan, window)) in runs.iter().enumerate() {
                for (rank, memory) in memory.iter_mut().enumerate() {
                    if moves(&schedules[plan], rank) {
                        (0..LEN / 2).for_each(|at| memory[window][at] = stored(rank, run, at));
                    }
                }
                let bytes = |of: &Vec<u64>| of.iter().flat_map(|e| e.to_ne_bytes()).collect::<Vec<u8>>();
                let mut world = reference::World {
                    element: [ELEMENT].into_iter().collect(),
                    memory: memory.iter().map(|of| [bytes(&of[window])].into_iter().collect()).collect(),
                };
                let patterns = &patterns[plan];
                let epoch = Epoch {
                    patterns: patterns.classes.values().cloned().collect(),
                    sources: vec![reference::Buffers::new(); size],
                };
                reference::run(&mut world, &epoch).expect("a good epoch");
                for (rank, memory) in memory.iter_mut().enumerate() {
                    let bytes = world.memory[rank][WindowId(0)].chunks_exact(8);
                    let after = bytes.map(|e| u64::from_ne_bytes(e.try_into().expect("eight bytes")));
                    memory[window] = after.collect();
                    if let Some(left) = &left[rank][run] {
                        assert_eq!(
                            left, &memory[window],
                            "{transport:?}, seed {seed}, run {run}, rank {rank}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_plan_is_in_one_run_at_a_time_and_calls_of_all_ranks_go_on() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let (mut u, mut v, w) = (world.window::<u64>(2)?, world.window::<u64>(2)?, world.window(2)?);
            u[0] = 3;
            let mut pair = pair::prepare(world)?;
            let running = pair.begin(u)?;
            let line = line!() - 1;
            for error in [
                pair.begin(w).map(drop).expect_err("it is begun"),
                pair.replay(&mut v).expect_err("it is begun"),
                pair.run(&mut v).expect_err("it is begun"),
            ] {
                let told = error.message().contains(&format!("{}:{line}", file!()));
                assert!(error.class() == ErrorClass::RmaSync && !error.world_ended() && told, "{error}");
            }
            // The rank uses a window, a part of the world, a plan, a fence and a collective.
            let mut x = world.window::<u64>(2)?;
            let half = world.split(Some(world.rank() as u32), 0)?.expect("a colour was given");
            let mut again = pair::prepare(world)?;
            again.replay(&mut x)?;
            v.put([9]).to(1 - world.rank(), 1)?;
            v.fence()?;
            half.barrier()?;
            let u = running.finish()?;
            assert_eq!((u[1], v[1]), (3, 9));
            pair.begin(u)?.finish()?;
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn plans_come_and_go() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u64>(2)?;
            for step in 0..100 {
                let mut pair = pair::prepare(world)?;
                u[0] = step;
                if world.rank() < 2 {
                    (0..step % 4).try_for_each(|_| pair.replay(&mut u))?;
                    assert!(step % 4 == 0 || u[1] == step);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn other_windows_than_those_of_the_partner_are_refused_on_both() {
    for world in worlds(3) {
        for mode in [Mode::Auto, Mode::Direct] {
            let ends = ends(&world.clone().mode(mode), &[], |world| {
                let (mut u, mut v) = (world.window::<u64>(2)?, world.window::<u64>(2)?);
                let mut pair = pair::prepare(world)?;
                match world.rank() {
                    0 => pair.replay(&mut u)?,
                    1 => pair.replay(&mut v)?,
                    _ => {}
                }
                world.barrier()
            });
            for (rank, end) in ends.iter().enumerate() {
                let (class, text) = end.as_ref().expect("the world ends");
                let says = rank == 2 || text.contains("superstep pair") && text.contains("equally often");
                let first = *class == ErrorClass::RmaSync && (says || text.contains(" is in "));
                assert!(first && text.contains("rank"), "{mode}, rank {rank}: {class:?}: {text}");
            }
            let found = ends.iter().flatten().any(|(_, text)| text.contains("of window 1"));
            assert!(found, "{ends:?}");
        }
    }
}

#[test]
fn a_rank_that_leaves_or_drops_its_half_is_named_with_its_line() {
    type Leave = fn(Running<Window<u64>>) -> Result<()>;
    let leave: [Leave; 3] = [
        |running| drop_it(running),
        |_running| Err(Error::new(ErrorClass::Other, "of its own")),
        |running| {
            std::mem::forget(running);
            Ok(())
        },
    ];
    for world in worlds(3) {
        for leave in leave {
            let line = Mutex::new(0);
            let ends = ends(&world, &[], |world| {
                let u = world.window::<u64>(3000)?;
                let mut long = long::prepare(world, 3)?;
                if world.rank() == 1 {
                    let running = long.begin(u)?;
                    *line.lock().expect("no panic") = line!() - 1;
                    return leave(running);
                }
                long.begin(u)?.finish()?;
                world.barrier()
            });
            let line = line.into_inner().expect("no panic");
            for (rank, end) in ends.iter().enumerate().filter(|(rank, _)| *rank != 1) {
                let (_, text) = end.as_ref().expect("rank 1 has left");
                let told = text.contains(&format!("{}:{line}", file!())) || text.contains("of its own");
                assert!(text.contains("rank 1") && told, "rank {rank}: {text}");
            }
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as the other ways to leave")]
fn drop_it(running: Running<Window<u64>>) -> Result<()> {
    drop(running);
    Ok(())
}

#[test]
fn a_partner_that_does_not_call_is_a_stall_with_both_lines() -> Result<()> {
    for world in worlds(2) {
        let (tell, told) = channel::<Stall>();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let world = world.stall(Some(Duration::ZERO)).on_stall(move |stall| {
            // The receiver is gone once rank 1 has received the report.
            let _ = tell.lock().expect("no panic").send(stall.clone());
        });
        let said = world.collect(|world| {
            let mut u = world.window::<u64>(2)?;
            let mut pair = pair::prepare(world)?;
            pair.replay(&mut u)?;
            world.barrier()?;
            let line = line!() + 7;
            let told = (world.rank() == 1).then(|| {
                let told = told.lock().expect("no panic");
                // The first replay may have waited too.
                let second = |stall: &Stall| stall.rank == 0 && stall.line == line;
                told.iter().find(second)
            });
            pair.replay(&mut u)?;
            Ok(told.flatten())
        })?;
        let stall = said[1].as_ref().expect("it was said");
        assert_eq!((stall.file, stall.superstep, stall.awaited), (file!(), Some("pair"), 1), "{stall}");
        assert!(stall.peer.contains("rank 1") && stall.deadlock.is_none(), "{stall}");
    }
    Ok(())
}

#[test]
fn ranks_that_run_two_plans_in_other_orders_are_told_both() {
    side_by_side(usize::MAX, worlds(2), |world| {
        let world = world.stall(Some(Duration::ZERO)).on_stall(|_| {}).end_deadlocks(true);
        let ends = ends(&world, &[], |world| {
            let mut u = world.window::<u64>(2)?;
            let (mut one, mut two) = (pair::prepare(world)?, ring::prepare(world, 2)?);
            if world.rank() == 0 {
                one.replay(&mut u)?;
                two.replay(&mut u)
            } else {
                two.replay(&mut u)?;
                one.replay(&mut u)
            }
        });
        for end in &ends {
            let (class, text) = end.as_ref().expect("nobody can go on");
            let both = text.contains("in superstep pair") && text.contains("in superstep ring");
            assert!(*class == ErrorClass::RmaSync && text.contains("deadlock") && both, "{text}");
        }
    });
}

#[superstep]
fn pair_by_fence(u: &mut Window<u64>) -> Result<()> {
    let rank = u.rank();
    if rank < 2 {
        u.put(0..1).to(1 - rank, 1..2)?;
    }
    Ok(())
}

#[test]
fn a_plan_file_says_how_it_synchronises() -> Result<()> {
    let path = |name: &str| std::env::temp_dir().join(format!("fencepost-{}-{name}", std::process::id()));
    let (posts, fence) = (path("posts.plan"), path("fence.plan"));
    let of_posts = pair::compile(3, |_| Ok(()))?;
    let of_fence = pair_by_fence::compile(3, |_| Ok(()))?;
    assert!(of_posts.explain().to_string().contains("1 ranks need not run it"), "{}", of_posts.explain());
    assert!(!of_fence.explain().to_string().contains("need not run"));
    of_posts.save(&posts)?;
    of_fence.save(&fence)?;
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        ranks(3).transport(transport).run(|world| {
            let mut u = world.window::<u64>(2)?;
            u[0] = 4;
            let mut loaded = pair::load(world, &posts)?;
            if world.rank() < 2 {
                loaded.replay(&mut u)?;
                assert_eq!(u[1], 4);
            }
            for error in [
                pair::load(world, &fence).map(drop).expect_err("another synchronisation"),
                pair_by_fence::load(world, &posts).map(drop).expect_err("another synchronisation"),
            ] {
                let told =
                    error.message().contains("posts and starts") && error.message().contains("a fence");
                assert!(error.class() == ErrorClass::Plan && told, "{error}");
            }
            world.barrier()
        })?;
    }
    std::fs::remove_file(posts).and(std::fs::remove_file(fence)).expect("they are there");
    Ok(())
}

/// The same exchange as in `heat2d`.
#[superstep(sync = pscw)]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Returns the bits of all cells after some steps. The exchange uses fences, or posts and starts if
/// `by_posts`.
fn cooled(world: &World, by_posts: bool) -> Result<Vec<u64>> {
    let block = Block::new(world, [96, 96])?.halo(1)?;
    let (mut u, mut v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
    block.fill(&mut u, |[i, j]| ((i * 7 + j * 3) % 512) as f64);
    let mut prepared = exchange::prepare(world, &block)?;
    for _ in 0..100 {
        if by_posts {
            prepared.replay(&mut u)?;
        } else {
            heat2d::exchange(&mut u, &block)?;
        }
        block.rows_inside(1).for_each(|row| heat2d::relax(&row, [&mut u, &mut v]));
        std::mem::swap(&mut u, &mut v);
    }
    Ok(block.rows().flat_map(|row| row.of(&u).to_vec()).map(f64::to_bits).collect())
}

#[test]
fn heat2d_has_the_same_bits_by_posts_and_starts() -> Result<()> {
    for size in [1, 2, 4, 6] {
        let fences = ranks(size).collect(|world| cooled(world, false))?;
        for world in worlds(size) {
            assert!(world.collect(|world| cooled(world, true))? == fences, "{size} ranks");
        }
    }
    Ok(())
}

/// The superstep can only be dynamic. Its plain function runs, and ends in a fence.
#[superstep(sync = pscw)]
fn follows_data(u: &mut Window<u64>) -> Result<()> {
    let to = u[0] as usize;
    u.put([7]).to(to, 1)
}

#[test]
fn one_that_is_dynamic_ends_in_a_fence() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u64>(2)?;
            u[0] = (world.rank() as u64 + 1) % 3;
            follows_data(&mut u)?;
            assert_eq!(u[1], 7);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_begun_fence_superstep_and_runs_of_posts_go_on_together() -> Result<()> {
    for world in worlds(3) {
        for mode in Mode::ALL {
            world.clone().mode(mode).run(|world| {
                let (mut u, mut v) = (world.window::<u64>(2)?, world.window::<u64>(3000)?);
                let (mut shift, mut long) = (shift::prepare(world)?, long::prepare(world, 2)?);
                for step in 0..6 {
                    u[0] = step;
                    v[..1000].fill(step);
                    let running = shift.begin(u)?;
                    if world.rank() < 2 {
                        long.replay(&mut v)?;
                        assert_eq!(v[1000..2000], [step; 1000]);
                    }
                    assert_eq!(world.barrier().expect_err("of all ranks").class(), ErrorClass::RmaSync);
                    u = running.finish()?;
                    assert_eq!(u[1], step);
                }
                world.barrier()
            })?;
        }
    }
    Ok(())
}
