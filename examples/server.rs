//! A server of many clients that starves no client: example 3.17 of the MPI standard.
//!
//! Rank 0 is the server. It has a receive for the next question of each client, and `wait_some`
//! completes all receives for which a question has arrived. All other ranks are clients. Each
//! client first sends many questions at once, and then another question for each answer. When half
//! of all questions are answered, each client has got the same number of answers, even if one
//! client is faster than another. With receives from any rank, one client could have got all these
//! answers.
//!
//! `cargo run --release --example server -- -n 33`; `--transport shm` runs the ranks as processes

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use fencepost::prelude::*;
use fencepost_examples_support::clap::{self, Parser};
use fencepost_examples_support::options::Job;
use std::time::Instant;

/// Answer the questions of many clients
#[derive(Parser)]
#[command(after_help = "Example:\n  server -n 33 --questions 1000")]
struct Options {
    #[command(flatten)]
    job: Job,
    /// The number of questions of each client
    #[arg(long, default_value = "1000")]
    questions: u64,
}

/// The tags of messages.
const QUESTION: u32 = 0;
const ANSWER: u32 = 1;

/// Returns the number of questions that a client sends before it has an answer: half of its
/// questions, but at most 1000, because the server has to keep them.
fn ahead(questions: u64) -> u64 {
    (questions / 2).min(1000)
}

/// Returns the answer to a question: the number of steps from `number` to 1 by the rule of Collatz.
fn steps(number: u64) -> u64 {
    let next = |n: &u64| if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
    std::iter::successors(Some(number), |n| (*n > 1).then(|| next(n))).count() as u64 - 1
}

/// Returns question number `at` of a client.
fn question(client: usize, at: u64) -> u64 {
    1 + at * 64 + client as u64
}

/// Answers all questions. Returns, for each client, how many of its questions were answered at the
/// moment when half of all questions were answered.
fn serve(world: &World, questions: u64) -> Result<Vec<u64>> {
    let clients = world.size() - 1;
    let (mut served, mut half) = (vec![0; clients], None);
    let mut receives = world.requests();
    if questions > 0 {
        for client in 1..=clients {
            receives.push(world.irecv::<u64>(client, QUESTION)?)?;
        }
    }
    world.barrier()?; // from here on, each client has sent its first questions
    while let Some(all) = receives.wait_some()? {
        for came in all {
            let Some(client) = came.status.source else { continue };
            world.message(client, ANSWER).send([steps(came.buffer[0])])?;
            served[client - 1] += 1;
            if served[client - 1] < questions {
                receives.push(world.irecv(client, QUESTION)?)?;
            }
            if half.is_none() && served.iter().sum::<u64>() * 2 >= questions * clients as u64 {
                half = Some(served.clone());
            }
        }
    }
    Ok(half.unwrap_or(served))
}

/// Sends all questions of a client, and checks the answers.
fn ask(world: &World, questions: u64) -> Result<()> {
    let (client, ahead) = (world.rank(), ahead(questions));
    let asked = |at: u64| world.message(0, QUESTION).send([question(client, at)]);
    (0..ahead).try_for_each(asked)?;
    world.barrier()?;
    for at in 0..questions {
        if at + ahead < questions {
            asked(at + ahead)?;
        }
        let (answer, _) = world.recv::<u64>(0, ANSWER)?;
        assert_eq!(answer, [steps(question(client, at))], "question {at} of client {client}");
    }
    Ok(())
}

fn report(options: &Options) -> Result<()> {
    let questions = options.questions;
    let clock = Instant::now();
    let all = options.job.world().collect(|world| match world.rank() {
        0 => serve(world, questions),
        _ => ask(world, questions).map(|()| Vec::new()),
    })?;
    let taken = clock.elapsed().as_secs_f64();
    let Some(shares) = all.first().filter(|shares| options.job.reports() && !shares.is_empty()) else {
        return Ok(());
    };
    let mean = shares.iter().sum::<u64>() as f64 / shares.len() as f64;
    let of_mean = |share: Option<&u64>| 100.0 * share.map_or(1.0, |&share| share as f64 / mean.max(1.0));
    let (least, most) = (of_mean(shares.iter().min()), of_mean(shares.iter().max()));
    println!("{} clients with {questions} questions each: {taken:.3} s", shares.len());
    println!("when half was answered, the shares were {least:.1} to {most:.1} percent of their mean");
    if questions > 20 && questions == 2 * ahead(questions) {
        assert!(least > 90.0 && most < 110.0, "a client was starved: {shares:?}");
    }
    Ok(())
}

/// Runs the example with the options of the command line.
pub fn main() -> Result<()> {
    let options = Options::parse();
    options.job.start()?;
    report(&options)
}

/// Runs small cases as a test, one with 32 clients.
pub fn check() -> Result<()> {
    for (ranks, questions) in [("33", "200"), ("2", "50"), ("4", "0"), ("3", "1"), ("1", "10"), ("3", "5000")]
    {
        report(&Options::parse_from(["server", "-n", ranks, "--questions", questions]))?;
    }
    Ok(())
}
