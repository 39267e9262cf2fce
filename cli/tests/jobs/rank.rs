//! The programs of the ranks of the tested jobs.

use fencepost::prelude::*;
use fencepost::{Check, ErrorHandler, Machine, Stall, TransportKind, process};
use rustix::process::{Signal, getpid, getppid, kill_process};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the program that the arguments name, as one rank.
pub fn main(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["well"] => well(),
        ["code", rank, code] => exits(number(rank), number(code) as i32),
        ["placed"] => placed(),
        ["ask", ranks] => world(number(ranks), |_| Ok(())),
        ["enters", way] => super::plans::enters(way),
        ["spin"] => spin(),
        ["sleepy"] => sleepy(),
        ["crossed"] => crossed(),
        ["settings"] => fencepost::run(|world| world.barrier()),
        ["overlapping"] => overlapping(),
        ["ranks", ranks] => fencepost::ranks(number(ranks)).run(met),
        ["threads", ranks] => {
            fencepost::ranks(number(ranks)).transport(TransportKind::Local).check(Check::Off).run(met)
        }
        ["waits-for-rank-0", way] => fencepost::run(|world| waits_for_rank_0(world, way == "plainly")),
        ["unfenced"] => fencepost::ranks(2).run(unfenced),
        ["explained"] => fencepost::ranks(2).run(explained),
        ["machines"] => machines(),
        ["censuses"] => super::censuses::rank(),
        ["runs", count] => runs(number(count)),
        ["apart"] => apart(),
        ["aborts", rank] => aborts(number(rank)),
        ["panics", rank] => panics(number(rank)),
        ["never-joins", host] => never_joins(host),
        ["unjoined", file] => unjoined(file),
        ["dies-unjoined", file, wait] => dies_unjoined(file, number(wait)),
        ["flood", bytes, then] => flood(number(bytes), then),
        ["late"] => late(),
        ["terminal"] => super::surroundings::terminal(),
        ["input"] => super::surroundings::input(),
        ["cores"] => super::surroundings::cores(),
        ["errors"] => super::surroundings::errors(),
        ["until-signal"] => super::surroundings::until_signal(),
        ["pieces"] => super::surroundings::pieces(),
        ["window", bytes, touches] => super::surroundings::window(number(bytes), touches == "touch"),
        ["windows", count] => windows(number(count)),
        ["self-launched", ranks, transport] => self_launched(number(ranks), transport),
        ["small_puts"] => super::endure::small_puts(),
        ["endure", transport, epochs] => super::endure::rank(transport, number(epochs)),
        ["hillslope", ref words @ ..] => super::hillslope::with(words),
        ["sparse", ref words @ ..] => super::sparse::with(words),
        ["gives", len, runs] => super::mpi::gives(number(len), number(runs)),
        ["counted"] => super::mpi::counted(),
        ["busy", file] => super::mpi::busy(file),
        ["lends", how] => super::mpi::lends(how),
        ["noticed", wait] => super::noticed::rank(wait),
        ["fails", folder, fatal, how, snapshots] => {
            super::restarts::rank(folder, number(fatal), how, snapshots == "snapshots")
        }
        ["saves", folder, steps] => super::stores::rank(folder, number(steps)),
        ["stops", way] => super::restarts::rank_that_stops(way),
        ["on-term", then] => super::restarts::rank_on_term(then),
        ["many", rank, point, how] => return super::many::die(number(rank), number(point), how),
        ["die", rank, point, how] => return super::points::die(number(rank), number(point), how),
        _ => panic!("no such rank: {words:?}"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error {error}"));
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// Writes one line to standard output at once.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("a reader");
}

/// The number of ranks of the job.
pub fn size() -> usize {
    process().expect("it joins").expect("a rank").ranks
}

/// Runs `program` in a world of the job, and returns its value.
pub fn world<R: Send>(size: usize, program: impl Fn(&World) -> Result<R> + Sync) -> Result<R> {
    let mut values: Vec<R> = fencepost::ranks(size).transport(TransportKind::Tcp).collect(program)?;
    Ok(values.remove(0))
}

/// Each rank puts its number into the window of the next rank.
fn ring(world: &World, u: &mut Window<u64>) -> Result<u64> {
    u.put([world.rank() as u64]).to((world.rank() + 1) % world.size(), 0)?;
    u.fence()?;
    Ok(u[0])
}

fn well() -> Result<()> {
    let size = size();
    for _ in 0..2 {
        let before = world(size, |world| {
            let mut u = world.window::<u64>(1)?;
            let before = ring(world, &mut u)?;
            assert_eq!(before as usize, (world.rank() + world.size() - 1) % world.size());
            Ok(before)
        })?;
        say(&format!("before me {before}"));
    }
    Ok(())
}

/// Prints which ranks share memory, and how many have met.
fn placed() -> Result<()> {
    say(&format!("placed {:?}", process()?.expect("a rank").placement));
    fencepost::run(met)
}

/// Prints how many ranks have met.
fn met(world: &World) -> Result<()> {
    let mut ranks = [1u32];
    world.allreduce(&mut ranks, Op::Sum)?;
    say(&format!("met {}", ranks[0]));
    Ok(())
}

/// Fences in the world and in a part of it.
fn explained(world: &World) -> Result<()> {
    let part = world.split(Some(0), 0)?.expect("it takes part");
    let (mut u, mut v) = (world.window::<u64>(1)?, part.window::<u64>(1)?);
    for round in 0..3 {
        u.put([round]).to(1 - world.rank(), 0)?;
        u.fence()?;
    }
    v.put([1]).to(1 - world.rank(), 0)?;
    v.fence()
}

/// Drops a window that has an operation without a fence.
fn unfenced(world: &World) -> Result<()> {
    world.window::<u64>(1)?.put([7]).to(0, 0)
}

fn exits(rank: usize, code: i32) -> Result<()> {
    world(size(), |world| {
        let mut u = world.window::<u64>(1)?;
        ring(world, &mut u)?;
        if world.rank() == rank {
            if let Some(signal) = Signal::from_named_raw(code - 128) {
                kill_process(getpid(), signal).expect("oneself");
            }
            std::process::exit(code);
        }
        loop {
            ring(world, &mut u)?;
        }
    })
}

/// Each rank runs until it is ended. Once all ranks have met, each rank reports its process id and
/// the process id of its parent.
fn spin() -> Result<()> {
    world(size(), |world| {
        let mut u = world.window::<u64>(1)?;
        ring(world, &mut u)?;
        let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        say(&format!("spins {} {} {parent}", world.rank(), getpid().as_raw_nonzero()));
        loop {
            ring(world, &mut u)?;
        }
    })
}

/// Rank 1 stops itself in the middle. The job succeeds once the test continues rank 1.
fn sleepy() -> Result<()> {
    world(size(), |world| {
        let mut u = world.window::<u64>(1)?;
        for epoch in 0..100 {
            if (world.rank(), epoch) == (1, 50) {
                say(&format!("stops {}", getpid().as_raw_nonzero()));
                kill_process(getpid(), Signal::STOP).expect("oneself");
            }
            ring(world, &mut u)?;
        }
        say("done");
        Ok(())
    })
}

/// Ranks 0 and 1 enter the barriers of their two common worlds in opposite orders. Rank 2 is a
/// member of neither world.
fn crossed() -> Result<()> {
    fencepost::run(|world| {
        let pair = (world.rank() < 2).then_some(0);
        let (one, other) = (world.split(pair, 0)?, world.split(pair, 0)?);
        if let (Some(one), Some(other)) = (one, other) {
            let (first, second) = if world.rank() == 0 { (&one, &other) } else { (&other, &one) };
            first.barrier().and_then(|()| second.barrier())?;
        }
        say("well");
        Ok(())
    })
}

/// Calls `run` inside a `run`, by the same thread and by another thread, and calls `run` again
/// after both.
fn overlapping() -> Result<()> {
    let size = size();
    let report = |what: &str, result: Result<()>| match result {
        Ok(()) => say(&format!("{what} well")),
        Err(error) => say(&format!("{what} {error}")),
    };
    let nested = || world(size, |world| world.barrier());
    report("nested", world(size, |world| nested().and_then(|()| world.barrier())));
    let by_another = || {
        let another = std::thread::scope(|scope| scope.spawn(nested).join());
        report("inner", another.expect("it does not panic"));
    };
    report(
        "outer",
        world(size, |world| {
            by_another();
            world.barrier()
        }),
    );
    report("after", nested());
    Ok(())
}

/// Runs a world whose ranks have different machine models, in which each call is refused, and then
/// a world whose ranks have the same model.
fn machines() -> Result<()> {
    let rank = process()?.expect("a rank").rank;
    let of_latency = |latency: f64| {
        let mut machine = Machine::default();
        machine.network.latency = latency;
        fencepost::ranks(size()).transport(TransportKind::Tcp).machine(machine)
    };
    of_latency(rank as f64).run(|world| {
        let mut values = [1u64; 100];
        let errors = [
            world.barrier(),
            world.window::<u8>(1).map(drop),
            world.allreduce(&mut values, Op::Sum),
            world.split(Some(0), 0).map(drop),
            world.broadcast(0, &mut values),
        ];
        for error in errors.map(|result| result.expect_err("the models differ")) {
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("this rank `network.latency = {rank}`")), "{text}");
        }
        Ok(())
    })?;
    of_latency(7.0).run(|world| {
        let mut values = [1u64; 100];
        world.allreduce(&mut values, Op::Sum)?;
        assert_eq!(values, [world.size() as u64; 100]);
        Ok(())
    })?;
    say("done");
    Ok(())
}

/// Runs `count` consecutive worlds. Every thousandth world has a barrier.
fn runs(count: usize) -> Result<()> {
    let size = size();
    for number in 0..count {
        world(size, |world| if number % 1000 == 0 { world.barrier() } else { Ok(()) })?;
    }
    say("done");
    Ok(())
}

#[superstep]
fn hand_on(u: &mut Window<u64>) -> Result<()> {
    u.put([1]).to((u.rank() + 1) % u.size(), 0)
}

/// Rank 0 runs a prepared superstep, and the other ranks enter a barrier. Each rank reports the
/// line of the barrier, and its own error.
fn apart() -> Result<()> {
    world(size(), |world| {
        let mut u = world.window::<u64>(1)?;
        let mut prepared = hand_on::prepare(world)?;
        prepared.run(&mut u)?;
        let line = line!() + 1;
        let end = if world.rank() == 0 { prepared.run(&mut u) } else { world.barrier() };
        let error = end.expect_err("they are in different calls");
        say(&format!("rank {} at {line}: {error}", world.rank()));
        Ok(())
    })
}

/// All ranks have the handler `Abort`, with which an error ends the process. One rank causes an
/// error, and the other ranks wait for that rank.
fn aborts(rank: usize) -> Result<()> {
    world(size(), |world| {
        world.on_error(ErrorHandler::Abort);
        let u = world.window::<u64>(1)?;
        world.barrier()?;
        if world.rank() == rank {
            u.put([1]).to(0, 1)?;
        }
        world.barrier()
    })
}

fn panics(rank: usize) -> Result<()> {
    world(size(), |world| {
        world.barrier()?;
        if world.rank() == rank {
            panic!("the test asked for a panic");
        }
        world.barrier()
    })
}

/// The rank on this host kills itself before it joins. All other ranks join.
fn never_joins(host: &str) -> Result<()> {
    if std::env::var("FENCEPOST_TEST_HOST").is_ok_and(|here| here == host) {
        kill_process(getpid(), Signal::KILL).expect("oneself");
    }
    process()?;
    world(size(), |world| world.barrier())
}

/// The rank that creates the file joins. The other ranks never join.
fn unjoined(file: &str) -> Result<()> {
    if std::fs::File::create_new(file).is_ok() {
        return world(size(), |_| Ok(()));
    }
    loop {
        rustix::event::poll(&mut [], None).expect("poll");
    }
}

/// The rank that creates the file kills itself `wait` milliseconds later, before it has joined. All
/// other ranks join.
fn dies_unjoined(file: &str, wait: usize) -> Result<()> {
    let began = super::points::now();
    if std::fs::File::create_new(file).is_ok() {
        // This sleep awaits nothing. It makes the moment of the death differ from job to job.
        std::thread::sleep(Duration::from_millis(wait as u64));
        say(&format!("dies at {}", super::points::now()));
        kill_process(getpid(), Signal::KILL).expect("oneself");
    }
    let ended = fencepost::run(|world| world.barrier());
    if let Err(error) = &ended {
        say(&format!("told at {} since {began}: {error}", super::points::now()));
    }
    ended
}

/// Writes `bytes` bytes in lines. Then it succeeds, or rank 0 ends the launcher.
fn flood(bytes: usize, then: &str) -> Result<()> {
    let rank = world(size(), |world| Ok(world.rank()))?;
    let line = "x".repeat(1023);
    (0..bytes / 1024).for_each(|_| say(&line));
    if then == "well" {
        return Ok(());
    }
    if rank == 0 {
        kill_process(getppid().expect("a launcher"), Signal::TERM).expect("it is there");
    }
    spin()
}

/// Rank 2 stops itself before a fence, and the other ranks report that they wait for rank 2. The
/// job succeeds once the test continues rank 2.
fn late() -> Result<()> {
    let report = |stall: &Stall| say(&format!("stall {stall}"));
    let ranks = fencepost::ranks(size()).transport(TransportKind::Tcp).stall(Some(Duration::ZERO));
    ranks.on_stall(report).run(|world| {
        let mut u = world.window::<u64>(1)?;
        ring(world, &mut u)?;
        if world.rank() == 2 {
            say(&format!("stops {}", getpid().as_raw_nonzero()));
            kill_process(getpid(), Signal::STOP).expect("oneself");
        }
        ring(world, &mut u)?;
        say("done");
        Ok(())
    })?;
    Ok(())
}

fn windows(count: usize) -> Result<()> {
    world(size(), |world| {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(world.window::<u64>(16)?);
        }
        for window in &mut all {
            ring(world, window)?;
        }
        let descriptors = std::fs::read_dir("/proc/self/fd")?.count();
        say(&format!("descriptors {descriptors}"));
        Ok(())
    })
}

fn self_launched(ranks: usize, transport: &str) -> Result<()> {
    let values: Vec<usize> = fencepost::ranks(ranks).transport(transport.parse()?).collect(|world| {
        let mut u = world.window::<u64>(1)?;
        ring(world, &mut u)?;
        Ok(world.rank())
    })?;
    say(&format!("values {values:?}"));
    Ok(())
}

/// Puts an element to each rank.
#[superstep]
fn to_all(u: &mut Window<f64>, ranks: usize) -> Result<()> {
    for rank in 0..ranks {
        u.put(0..1).to(rank, 1)?;
    }
    Ok(())
}

/// Rank 1 waits for a message that rank 0 never sends, either in a receive alone or in the middle
/// of a superstep.
fn waits_for_rank_0(world: &World, plainly: bool) -> Result<()> {
    if plainly {
        return if world.rank() == 1 { world.recv::<u8>(0, 7).map(drop) } else { Ok(()) };
    }
    let u = world.window::<f64>(2)?;
    let mut exchange = to_all::prepare(world, world.size())?;
    let running = exchange.begin(u)?;
    if world.rank() == 1 {
        world.recv::<u8>(0, 7)?;
    }
    running.finish().map(drop)
}
