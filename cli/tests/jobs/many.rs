//! Kill points, stopped ranks and lost hosts in jobs of 64 ranks, in which each rank communicates
//! with few other ranks. Every surviving rank returns an error that names the lost rank.

use crate::launched::run_with;
use crate::points::{Fate, named, now};
use crate::rank::{say, size};
use crate::remote::lose_host;
use fencepost::prelude::*;
use fencepost::{TransportKind, World};
use fencepost_tests_support::side_by_side::side_by_side;
use rustix::process::Signal;
use std::process::ExitCode;
use std::time::Duration;

const RANKS: usize = 64;
/// The number of ranks of a host, and of a group with one leader in a census over connections.
const EACH: usize = 8;
const POINTS: usize = 12;
const HOSTS: [&str; RANKS / EACH] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// The time between heartbeats, and the silence after which a rank or a host counts as lost. 64
/// processes on two cores are slow, so the silence is long.
const QUICK: [(&str, &str); 2] = [("FENCEPOST_HEARTBEAT", "200ms"), ("FENCEPOST_SILENCE", "5s")];

/// A way to run the ranks: its name, the options of the launcher, and the census of the ranks
/// (`None` for the default).
struct Setup {
    name: &'static str,
    options: Vec<String>,
    census: Option<&'static str>,
}

/// Returns four ways to run the ranks: over shared memory with a notification to each rank, over
/// shared memory in log2 p rounds, over connections with one leader for eight ranks, and on eight
/// hosts.
fn setups() -> [Setup; 4] {
    let here =
        |transport: &str| ["-n", &RANKS.to_string(), "--transport", transport].map(str::to_owned).to_vec();
    [
        Setup { name: "shm", options: here("shm"), census: None },
        Setup { name: "shm, sparse", options: here("shm"), census: Some("sparse") },
        Setup { name: "tcp", options: here("tcp"), census: None },
        Setup { name: "hosts", options: hosts(), census: None },
    ]
}

/// Returns the options that start eight ranks on each of eight hosts. All hosts are this machine.
fn hosts() -> Vec<String> {
    let each: Vec<String> =
        HOSTS.iter().zip(2..).map(|(name, at)| format!("{name}=127.0.0.{at}:{EACH}")).collect();
    ["--hosts", &each.join(","), "--remote-command", "env FENCEPOST_TEST_HOST={host}"]
        .map(str::to_owned)
        .into()
}

/// The program of each rank. Rank `rank` dies at point `point`.
pub fn die(rank: usize, point: usize, how: &str) -> ExitCode {
    let fate = Fate { rank, point, how };
    let me = fencepost::process().expect("it joins").expect("a rank").rank;
    fate.at(me, 1);
    let ended = fencepost::ranks(size()).transport(TransportKind::Tcp).run(|world| each(world, &fate));
    if let Err(error) = ended {
        say(&format!("told at {} rank {me}: {error}", now()));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[superstep]
fn shift(u: &mut Window<u64>, next: usize) -> Result<()> {
    u.put(0..4).to(next, 4)?;
    Ok(())
}

fn each(world: &World, fate: &Fate<'_>) -> Result<()> {
    let (me, next) = (world.rank(), (world.rank() + 1) % world.size());
    let at = |point| fate.at(me, point);
    at(2);
    let mut u = world.window::<u64>(16)?;
    at(3);
    u.put([1]).to(next, 0)?;
    at(4);
    u.fence()?;
    at(5);
    world.allreduce(&mut [me as u64], Op::Sum)?;
    at(6);
    let part = world.split(Some((me / EACH) as u32), 0)?;
    at(7);
    if let Some(part) = &part {
        let mut v = part.window::<u64>(8)?;
        v.put([2]).to((part.rank() + 1) % part.size(), 0)?;
        at(8);
        v.fence()?;
    }
    let mut shift = shift::prepare(world, next)?;
    at(9);
    shift.replay(&mut u)?;
    at(10);
    for epoch in 0..10 {
        u.put([epoch]).to(next, 1)?;
        u.get(8..12).from(next, 0..4)?;
        u.fence()?;
        if epoch == 5 {
            at(11);
        }
    }
    at(12);
    world.barrier()
}

/// A rank dies at every point in every way, or at a sample of the points and ways. The victims are
/// a leader of a group, a rank that has a leader, the first rank and the last one.
pub fn deaths() {
    let ways = ["kill", "stop", "exit", "panic"];
    let setups = setups();
    let mut stops = Vec::new();
    for (at, setup) in setups.iter().enumerate() {
        let mut noticed = Vec::new();
        for (way, how) in ways.into_iter().enumerate() {
            for point in 1..=POINTS {
                for (turn, victim) in [0, EACH, 3 * EACH + 5, RANKS - 1].into_iter().enumerate() {
                    // The sample has a death in each setup, and a stop in two of the setups.
                    let sampled = [([0, 3, 0, 2][at], 3 * at + 2, at), (1, 3 * at + 3, 3 - at)];
                    let sampled = &sampled[..1 + at % 2];
                    if !crate::full() && !sampled.contains(&(way, point, turn)) {
                        continue;
                    }
                    if how == "stop" {
                        stops.push((setup, point, victim));
                    } else {
                        noticed.extend(one(setup, how, point, victim));
                    }
                }
            }
        }
        noticed.sort();
        let half = noticed.get(noticed.len() / 2).copied().expect("some are sampled");
        let last = noticed.last().copied().unwrap_or_default();
        println!(
            "  {}: {} survivors of {RANKS} ranks notified; half within {half:.1?}, all within {last:.1?}",
            setup.name,
            noticed.len()
        );
        assert!(half < Duration::from_secs(1), "{noticed:?}");
    }
    side_by_side(2, stops, |(setup, point, victim)| one(setup, "stop", point, victim));
}

fn one(setup: &Setup, how: &str, point: usize, victim: usize) -> Vec<Duration> {
    let what = format!("{}: rank {victim} of {RANKS} at point {point} by {how}", setup.name);
    let mut environment = Vec::new();
    environment.extend(setup.census.map(|census| ("FENCEPOST_CENSUS", census)));
    environment.extend(QUICK.into_iter().filter(|_| how == "stop"));
    let options: Vec<&str> = setup.options.iter().map(String::as_str).collect();
    let words = ["many", &victim.to_string(), &point.to_string(), how];
    let ended = run_with(&options, &words, &environment).end();
    let host = if setup.name == "hosts" { HOSTS[victim / EACH] } else { "localhost" };
    named(&what, &ended, victim, (how, point > 1), host, Some(RANKS))
}

/// One of eight hosts ends, or becomes silent. Its ranks end, and the ranks of all other hosts get
/// an error.
pub fn lost_hosts() {
    let options = hosts();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let all: Vec<(usize, Signal)> = if crate::full() {
        (0..HOSTS.len()).flat_map(|host| [(host, Signal::KILL), (host, Signal::STOP)]).collect()
    } else {
        vec![(0, Signal::KILL), (5, Signal::STOP)]
    };
    side_by_side(2, all, |(host, signal)| {
        let theirs = (HOSTS[host], host * EACH..(host + 1) * EACH);
        if signal == Signal::KILL {
            lose_host(&options, RANKS, theirs, signal, "on host", &[]);
        } else {
            lose_host(&options, RANKS, theirs, signal, "it sent no heartbeat for", &QUICK);
        }
    });
}
