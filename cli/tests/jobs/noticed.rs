//! A rank that dies is noticed in every kind of wait, whichever ranks the wait is for. The tests
//! run each of [`WAITS`] while one rank computes.

use crate::full;
use crate::launched::{options, run};
use crate::rank::{say, size, world};
use fencepost::prelude::*;
use fencepost_tests_worlds::waits::{COMPUTES, FAILS, WAITS};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

/// Without `FENCEPOST_TEST_JOBS=full`, a run tries one in this number of waits on each transport.
const SAMPLE: usize = 8;

pub fn by_shm() {
    each_wait("shm", 0);
}

pub fn by_tcp() {
    each_wait("tcp", 3);
}

pub fn by_mixed() {
    each_wait("mixed", 6);
}

/// Checks each wait of the sample that begins at `first`: the errors of ranks 0 and 3 must name the
/// rank that died. Prints how long after the death the errors were returned. One rank computes
/// until the job is ended.
fn each_wait(transport: &str, first: usize) {
    let step = if full() { 1 } else { SAMPLE };
    for (name, _) in WAITS.iter().skip(if full() { 0 } else { first }).step_by(step) {
        let mut job = run(&options(transport, "4"), &["noticed", name]);
        let (mut died, mut noticed) = (None, Vec::new());
        while noticed.len() < 2 || died.is_none() {
            let line = job.line().unwrap_or_else(|| panic!("{transport}, {name}: only {noticed:?}"));
            let time = |text: &str| text.parse::<u64>().expect("a time");
            if let Some(at) = line.strip_prefix("dies ") {
                died = Some(time(at));
            } else if let Some((at, error)) =
                line.strip_prefix("noticed ").and_then(|rest| rest.split_once(' '))
            {
                let cause = format!("PROC_FAILED: rank {FAILS} died: ");
                assert!(error.starts_with(&cause), "{transport}, {name}: {error}");
                noticed.push(time(at));
            }
        }
        let died = died.unwrap_or_default();
        let after = noticed.iter().map(|at| format!("{:.1}", at.saturating_sub(died) as f64 / 1000.0));
        println!("{transport:5} {name:24} noticed after {} ms", after.collect::<Vec<_>>().join(" and "));
        job.kill(Signal::TERM);
        job.end();
    }
}

/// Returns the time in microseconds. All processes use the same clock.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// The program of one rank.
pub fn rank(wait: &str) -> Result<()> {
    let (_, wait) = WAITS.iter().find(|(name, _)| *name == wait).expect("a wait");
    world(size(), |world| {
        let meet = || {
            let met = world.barrier();
            match world.rank() {
                COMPUTES => loop {
                    rustix::event::poll(&mut [], None).expect("poll");
                },
                FAILS => {
                    met?;
                    say(&format!("dies {}", now()));
                    std::process::abort();
                }
                _ => met,
            }
        };
        let error = wait(world, &meet).expect_err("a rank has died");
        say(&format!("noticed {} {error}", now()));
        Ok(())
    })
}
