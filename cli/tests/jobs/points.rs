//! Kill points: a rank dies at a numbered point of a program that uses every feature, and every
//! other rank gets an error.

use crate::launched::{Ended, options, run_with};
use crate::rank::{say, size};
use fencepost::prelude::*;
use fencepost::{Check, Error, ErrorClass, ErrorHandler, Stall, TransportKind, World};
use fencepost_tests_support::side_by_side::side_by_side;
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of kill points. The program reaches the points of posts, locks and messages before
/// point 22, while other ranks still wait for the rank. The points of the checker are in a program
/// of their own.
const POINTS: usize = 40;
/// After these points no other rank waits for the rank that dies.
const MISSED: [usize; 2] = [23, 24];
/// Points at which no rank panics. At 31 and 32, the panic would first drop an access or a window,
/// which is another error. At the other points, the rank is in a call that waits, moves elements,
/// or reports a conflict. There the report of the wait, another thread, or the error handler ends
/// the process.
const CALM: [usize; 10] = [27, 28, 29, 31, 32, 33, 34, 35, 38, 39];
const RANKS: usize = 4;
const WAYS: [&str; 4] = ["kill", "stop", "exit", "panic"];

/// Which rank dies, at which point and how.
pub struct Fate<'a> {
    pub rank: usize,
    pub point: usize,
    pub how: &'a str,
}

pub fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

impl Fate<'_> {
    pub fn at(&self, rank: usize, point: usize) {
        if (rank, point) == (self.rank, self.point) {
            self.die();
        }
    }

    fn die(&self) {
        say(&format!("dies at {}", now()));
        match self.how {
            "kill" => kill_process(getpid(), Signal::KILL).expect("oneself"),
            "stop" => kill_process(getpid(), Signal::STOP).expect("oneself"),
            "exit" => std::process::exit(7),
            "leave" => std::process::exit(0),
            _ => panic!("the test asked for a panic"),
        }
    }
}

/// Points 25 to 29 and 32. A rank dies while it holds a lock of each kind, while it waits for a
/// lock of each kind, in a put under a lock, and when other ranks lock its part. The roles of the
/// other ranks depend on which rank may die.
fn locks(world: &World, fate: &Fate<'_>) -> Result<()> {
    const LEN: usize = 1 << 18;
    let (me, size) = (world.rank(), world.size());
    let [victim, holder, target] = [0, 1, 2].map(|after| (fate.rank + after) % size);
    let u = world.lock_window::<u64>(LEN)?;
    let add = |kind| {
        let lock = u.lock(target, kind)?;
        lock.accumulate([1], Op::Sum, 0)?;
        lock.unlock()
    };
    for (point, held, awaited) in
        [(25, LockType::Exclusive, LockType::Shared), (26, LockType::Shared, LockType::Exclusive)]
    {
        if me == victim {
            let lock = u.lock(target, held)?;
            lock.accumulate([1], Op::Sum, 0)?;
            lock.flush()?;
            world.barrier()?;
            fate.at(me, point);
            lock.unlock()?;
        } else {
            world.barrier()?;
            add(awaited)?;
        }
        world.barrier()?;
    }
    for (point, held, awaited) in
        [(27, LockType::Exclusive, LockType::Shared), (28, LockType::Shared, LockType::Exclusive)]
    {
        if me == holder {
            let lock = u.lock(target, held)?;
            lock.accumulate([1], Op::Sum, 0)?;
            lock.flush()?;
            world.barrier()?;
            if fate.point == point {
                world.barrier()?; // the rank that waits for the lock dies in its wait
            }
            lock.unlock()?;
        } else {
            world.barrier()?;
            add(awaited)?;
        }
        world.barrier()?;
    }
    let (in_put, elements) = (AtomicBool::new(false), vec![me as u64; LEN]);
    std::thread::scope(|scope| {
        if (me, fate.point) == (victim, 29) {
            scope.spawn(|| {
                while !in_put.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                fate.die();
            });
        }
        let lock = u.lock(target, LockType::Exclusive)?;
        lock.put(&elements, 0)?;
        in_put.store(me == victim, Ordering::Release);
        lock.unlock()
    })?;
    world.barrier()?;
    for _ in 0..20 {
        let lock = u.lock(victim, LockType::Exclusive)?;
        lock.put([me as u64; 100], 0)?;
        lock.flush()?;
        lock.unlock()?;
        fate.at(me, 32); // the other ranks lock its part
    }
    world.barrier()?;
    u.into_window()?;
    Ok(())
}

/// Points 30 and 31: between post and wait, and between start and complete.
fn posts(world: &World, fate: &Fate<'_>) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let u = world.window::<u64>(100)?;
    let exposed = u.post(&world.group([(me + size - 1) % size])?)?;
    fate.at(me, 30);
    let access = exposed.start(&world.group([(me + 1) % size])?)?;
    access.put(&[me as u64; 100]).to((me + 1) % size, 0)?;
    fate.at(me, 31);
    access.complete()?;
    exposed.wait()?;
    Ok(())
}

/// Points 33 to 36: in a receive, while a long message is sent, in a wait for any of several
/// receives, and with receives that were begun. At 33 and 35 no rank sends, so the rank dies while
/// it waits.
fn messages(world: &World, fate: &Fate<'_>) -> Result<()> {
    const LEN: usize = 1 << 18;
    let (me, victim) = (world.rank(), fate.rank);
    let others = || (0..world.size()).filter(|&rank| rank != victim);
    let peer = (victim + 1) % world.size();
    let sends = |point: u32| fate.point != point as usize;
    if me == victim {
        world.recv::<u8>(peer, 33)?;
    } else if me == peer && sends(33) {
        world.message(victim, 33).send([0u8])?;
    }
    world.barrier()?;
    let (sending, elements) = (AtomicBool::new(false), vec![me as u64; LEN]);
    std::thread::scope(|scope| {
        if (me, fate.point) == (victim, 34) {
            scope.spawn(|| {
                while !sending.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                fate.die();
            });
        }
        sending.store(me == victim, Ordering::Release);
        let to = |to| if me == victim { world.message(to, 34).send(&elements) } else { Ok(()) };
        others().try_for_each(to)
    })?;
    if me != victim {
        assert_eq!(world.recv::<u64>(victim, 34)?.0, [victim as u64; LEN]);
    }
    world.barrier()?;
    if me == victim {
        let mut receives = world.requests();
        for other in others() {
            receives.push(world.irecv::<u8>(other, 35)?)?;
        }
        while receives.wait_any()?.is_some() {}
    } else if sends(35) {
        world.message(victim, 35).send([0u8])?;
    }
    world.barrier()?;
    if me == victim {
        let mut receives = world.requests();
        for other in others() {
            receives.push(world.irecv::<u64>(other, 36)?)?;
        }
        fate.at(me, 36);
        receives.wait_all()?;
    } else {
        world.message(victim, 36).send(&elements)?;
    }
    world.barrier()
}

/// Points 37 to 40 of an epoch with a conflict: before the exchange that looks for conflicts, in
/// this exchange, in the handler of the rank that has found the conflict, and after the fence. At
/// 38, one rank does not enter the exchange, so the other ranks wait.
fn checked(world: &World, fate: &Fate<'_>) -> Result<()> {
    let (me, victim) = (world.rank(), fate.rank);
    let mut u = world.window::<u64>(4)?;
    u.put([me as u64]).to(victim, 0)?;
    fate.at(me, 37);
    if (me, fate.point) == ((victim + 1) % world.size(), 38) {
        world.recv::<u8>(victim, 38)?;
    }
    if (me, fate.point) == (victim, 39) {
        let how = fate.how.to_owned();
        let dies = move |_: &Error| Fate { rank: victim, point: 39, how: &how }.die();
        u.on_error(ErrorHandler::pass_conflicts(dies));
    }
    let fenced = u.fence().expect_err("all ranks put to one element");
    if fenced.class() != ErrorClass::RmaConflict {
        return Err(fenced);
    }
    fate.at(me, 40);
    world.barrier()
}

#[superstep]
fn shift(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..4).to(next, 4)?;
    Ok(())
}

/// The program of each rank.
pub fn die(rank: usize, point: usize, how: &str) -> ExitCode {
    let fate = Fate { rank, point, how };
    let size = size();
    let me = fencepost::process().expect("it joins").expect("a rank").rank;
    fate.at(me, 1);
    let (victim, kind) = (me == rank, how.to_owned());
    let waits = move |stall: &Stall| {
        let dies = match point {
            27 | 28 => stall.what == "turns at a lock",
            33 => stall.what == "messages" && stall.call.contains("with tag 33"),
            35 => stall.what == "completions",
            38 => stall.superstep == Some("a fence with FENCEPOST_CHECK=conflicts"),
            _ => false,
        };
        if victim && dies {
            Fate { rank, point, how: &kind }.die();
        }
    };
    let ranks = fencepost::ranks(size).stall(Some(Duration::ZERO)).on_stall(waits);
    let ranks = if point > 36 { ranks.check(Check::Conflicts) } else { ranks };
    let ended = ranks.transport(TransportKind::Tcp).run(|world| match point {
        37.. => checked(world, &fate),
        _ => everything(world, &fate),
    });
    if let Err(error) = ended {
        say(&format!("told at {} rank {me}: {error}", now()));
        return ExitCode::FAILURE;
    }
    fate.at(me, 24);
    say(&format!("well rank {me}"));
    ExitCode::SUCCESS
}

fn everything(world: &World, fate: &Fate<'_>) -> Result<()> {
    let (me, next) = (world.rank(), (world.rank() + 1) % world.size());
    let at = |point| fate.at(me, point);
    at(2);
    let mut u = world.window::<u64>(64)?;
    at(3);
    let mut v = world.window::<f64>(64)?;
    at(4);
    world.barrier()?;
    at(5);
    u.put([1]).to(next, 0)?;
    at(6);
    u.fence()?;
    at(7);
    u.accumulate([1], Op::Sum).to(next, 0)?;
    v.put(&[1.0; 64]).to(next, 0..64)?;
    v.put(0..32).mode(Mode::Direct).to(next, 32)?;
    at(8);
    world.fence((&mut u, &mut v))?;
    at(9);
    u.get(32..48).from(next, 0..16)?;
    at(10);
    u.fence()?;
    at(11);
    world.allreduce(&mut [me as u64], Op::Sum)?;
    at(12);
    world.gather(0, &[me as u64])?;
    at(13);
    let part = world.split(Some((me / 3) as u32), 0)?;
    at(14);
    if let Some(part) = &part {
        part.barrier()?;
        at(15);
        let mut w = part.window::<u64>(8)?;
        at(16);
        w.put([2]).to((part.rank() + 1) % part.size(), 0)?;
        w.fence()?;
        at(17);
    }
    drop(part);
    at(18);
    let mut shift = shift::prepare(world, next)?;
    at(19);
    shift.replay(&mut u)?;
    at(20);
    shift.replay(&mut u)?;
    drop(v);
    at(21);
    locks(world, fate)?;
    posts(world, fate)?;
    messages(world, fate)?;
    for epoch in 0..100 {
        u.put([epoch]).to(next, 1)?;
        u.put(8..24).mode(Mode::Direct).to(next, 32)?;
        u.fence()?;
        if epoch == 50 {
            at(22);
        }
    }
    world.barrier()?;
    at(23);
    Ok(())
}

/// Runs the points over shared memory.
pub fn by_shm() {
    all("shm");
}

/// Runs the points over connections.
pub fn by_tcp() {
    all("tcp");
}

/// Runs the points on two hosts of two ranks each.
pub fn by_mixed() {
    all("mixed");
}

/// The host of a rank.
fn host(transport: &str, rank: usize) -> &'static str {
    if transport == "mixed" { ["a", "b"][rank / 2] } else { "localhost" }
}

/// A rank stops at each point, on each transport. The other ranks can notice this only by its
/// silence.
pub fn stops() {
    let mut jobs = Vec::new();
    for transport in ["shm", "tcp", "mixed"] {
        for point in 1..=POINTS {
            let times = if crate::full() { 10 } else { usize::from(sampled(point, "stop")) };
            jobs.extend((0..times).map(|time| (transport, point, (point + time) % RANKS)));
        }
    }
    side_by_side(5, jobs, |(transport, point, victim)| one(transport, "stop", point, victim));
}

/// Runs every point with every way to die except a stop, ten times each. Without
/// `FENCEPOST_TEST_JOBS=full`, runs only a sample of the points, once each.
fn all(transport: &str) {
    let mut noticed = Vec::new();
    for how in WAYS.into_iter().filter(|&how| how != "stop") {
        for point in (1..=POINTS).filter(|point| how != "panic" || !CALM.contains(point)) {
            let times = if crate::full() { 10 } else { usize::from(sampled(point, how)) };
            for time in 0..times {
                noticed.extend(one(transport, how, point, (point + time) % RANKS));
            }
        }
    }
    report(transport, noticed);
}

/// Returns whether the sample contains this point. For each way to die, the sample has every eighth
/// point, and these points differ from way to way. For the first way, it also has all points from
/// 25 on.
fn sampled(point: usize, how: &str) -> bool {
    let way = WAYS.iter().position(|&way| way == how).unwrap_or_default();
    (point + 2 * way).is_multiple_of(8) || way == 0 && point > 24
}

/// Runs one job. Returns how long each survivor took to notice the death, or an empty list if this
/// time depends on a limit.
fn one(transport: &str, how: &str, point: usize, victim: usize) -> Vec<Duration> {
    let what = format!("{transport}: rank {victim} at point {point} by {how}");
    // The silence matters only for a rank that has stopped.
    let quick = [("FENCEPOST_HEARTBEAT", "50ms"), ("FENCEPOST_SILENCE", "2s")];
    let quick = if how == "stop" { &quick[..] } else { &[] };
    let words = ["die", &victim.to_string(), &point.to_string(), how];
    let ended = run_with(&options(transport, &RANKS.to_string()), &words, quick).end();
    let inside = (2..=23).contains(&point) || point > 24;
    let all = (!MISSED.contains(&point)).then_some(RANKS);
    let noticed = named(&what, &ended, victim, (how, inside), host(transport, victim), all);
    if how == "stop" { Vec::new() } else { noticed }
}

/// Checks that the launcher and every survivor name the victim, its host and how it died. `inside`
/// states whether the victim died inside a world. If `all` is a number of ranks, checks that each
/// of these ranks except the victim reports the death. Returns how long each survivor took to
/// notice the death.
pub fn named(
    what: &str,
    ended: &Ended,
    victim: usize,
    (how, inside): (&str, bool),
    host: &str,
    all: Option<usize>,
) -> Vec<Duration> {
    let (code, named) = match how {
        "kill" => (137, "killed by signal 9 (SIGKILL)"),
        "stop" => (137, "sent no heartbeat"),
        "exit" => (7, "exited with code 7"),
        _ if inside => (101, "panicked"),
        _ => (101, "exited with code 101"),
    };
    assert_eq!(ended.code, Some(code), "{what}: {ended:#?}");
    let told: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("told at")).collect();
    let by_victim = |line: &str| line.split_whitespace().nth(4) == Some(&format!("{victim}:"));
    let survivors: Vec<&&str> = told.iter().filter(|line| !by_victim(line)).collect();
    if let Some(ranks) = all {
        assert_eq!(survivors.len(), ranks - 1, "{what}: {ended:#?}");
    }
    for line in &survivors {
        assert!(
            line.contains(&format!("rank {victim} ")) && line.contains(named),
            "{what}: {line}: {ended:#?}"
        );
        let told_where = line.contains(&format!("rank {victim} is on host {host}"));
        assert_eq!(told_where, host != "localhost", "{what}: {line}: {ended:#?}");
    }
    assert!(ended.err.contains(&format!("rank {victim} on host {host}")), "{what}: {ended:#?}");
    let time = |line: &str| line.split_whitespace().nth(2).and_then(|time| time.parse::<i64>().ok());
    let died = ended.out.lines().find(|line| line.starts_with("dies at")).and_then(time);
    let died = died.unwrap_or_else(|| panic!("{what}: the rank does not report when it dies: {ended:#?}"));
    let later = |line: &&&str| time(line).map(|told| Duration::from_nanos((told - died).max(0) as u64));
    survivors.iter().filter_map(later).collect()
}

fn report(transport: &str, mut noticed: Vec<Duration>) {
    noticed.sort();
    let at = |share: f64| noticed.get(((noticed.len() as f64 * share) as usize).min(noticed.len() - 1));
    println!(
        "  {transport}: {} survivors notified; half within {:.1?}, 99 of 100 within {:.1?}, all within {:.1?}",
        noticed.len(),
        at(0.5).copied().unwrap_or_default(),
        at(0.99).copied().unwrap_or_default(),
        at(1.0).copied().unwrap_or_default()
    );
    // Some reports may be late if many processes share a core.
    assert!(at(0.5).is_some_and(|half| *half < Duration::from_millis(100)), "{noticed:?}");
}
