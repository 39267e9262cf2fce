//! How long does an epoch over TCP take, compared with a program that sends the same bytes over
//! sockets by hand?
//!
//! The two ranks are threads and communicate over loopback. The bench also counts the pages that an
//! epoch of a large message touches for the first time. Each such page costs the kernel a
//! microsecond or two.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::prelude::*;
use fencepost::{TransportKind, superstep};
use fencepost_benches::contest::{short, wanted};
use fencepost_benches::draws::{Set, TABLE, draw};
use fencepost_benches::limits::wire::Wire;
use fencepost_benches::{Contest, ours};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MEGABYTE: usize = 1 << 17;
type Draws = Arc<Vec<Vec<Set>>>;

/// Puts the first half of the window to the second half of the other rank's window.
#[superstep]
fn swap(u: &mut Window<u64>, len: usize, other: usize) -> Result<()> {
    u.put(0..len).to(other, len..2 * len)?;
    Ok(())
}

fn over<S>(
    iterations: u64,
    make: impl Fn(&World) -> Result<S> + Sync,
    epoch: impl Fn(&World, &mut S, usize) -> Result<()> + Sync,
) -> Duration {
    ours::team_over(TransportKind::TcpThreads, 2, iterations, make, epoch)
}

fn puts(draws: &Draws, iterations: u64) -> Duration {
    over(
        iterations,
        |world| world.window::<u64>(TABLE),
        |world, u: &mut Window<u64>, k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            for (&index, &value) in set.indices.iter().zip(&set.values) {
                u.put([value]).to(other, index as usize)?;
            }
            u.fence()
        },
    )
}

/// Gets elements. Each value is stored into a different element of the second half of the window,
/// behind the table.
fn gets(draws: &Draws, iterations: u64) -> Duration {
    over(
        iterations,
        |world| world.window::<u64>(2 * TABLE),
        |world, u: &mut Window<u64>, k| {
            let set = &draws[world.rank()][k % draws[0].len()];
            let other = 1 - world.rank();
            for (i, &index) in set.indices.iter().enumerate() {
                u.get(TABLE + i..TABLE + i + 1).from(other, index as usize)?;
            }
            u.fence()
        },
    )
}

fn swaps(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| {
        let swap = swap::prepare(world, words, 1 - world.rank())?;
        Ok((world.window::<u64>(2 * words)?, swap))
    };
    over(iterations, make, |_, (u, swap), _| swap.replay(u))
}

fn section(words: usize, iterations: u64) -> Duration {
    let make = |world: &World| world.window::<u64>(2 * words);
    over(iterations, make, |world, u, _| {
        u.put(0..words).to(1 - world.rank(), words..2 * words)?;
        u.fence()
    })
}

/// Returns the number of pages that this process has faulted in so far, or zero if they are not
/// counted.
fn faults() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process, in parentheses, may contain spaces. The count is the eighth field
    // after the name.
    let after = counts.rsplit(')').next().unwrap_or_default();
    after.split_whitespace().nth(7).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns the number of pages that an epoch faults in, as the mean over the later half of the
/// epochs. An epoch puts a section of `words` words, at a fence or prepared.
fn faults_an_epoch(words: usize, prepared: bool) -> f64 {
    const EPOCHS: usize = 40;
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let make = |world: &World| {
        let swap = swap::prepare(world, words, 1 - world.rank())?;
        Ok((world.window::<u64>(2 * words)?, swap))
    };
    over(EPOCHS as u64, make, |world, (u, swap), k| {
        if let Some(at) = [EPOCHS / 2, EPOCHS - 1].iter().position(|&at| world.rank() == 0 && at == k) {
            counts[at].store(faults(), Ordering::Relaxed);
        }
        if prepared {
            return swap.replay(u);
        }
        u.put(0..words).to(1 - world.rank(), words..2 * words)?;
        u.fence()
    });
    let [half, all] = counts.map(AtomicU64::into_inner);
    (all - half) as f64 / (EPOCHS / 2 - 1) as f64
}

fn main() {
    let draws = |n| Arc::new(draw(2, 8, n));
    let wire = |draws: &Draws| Wire::new((**draws).clone());
    let (one, many, some) = (draws(1), draws(10_000), draws(1000));
    let ours = |run: fn(&Draws, u64) -> Duration, draws: &Draws| {
        let draws = draws.clone();
        move |n| run(&draws, n)
    };
    let (small, log, request) = (wire(&one), wire(&many), wire(&some));
    let mut contests =
        vec![
            Contest::new("tcp: one 8-byte put and fence", 1)
                .side("64 bytes both ways at once", move |n| small.both(64, n))
                .held("Fencepost", 1.8, ours(puts, &one))
                .side("Fencepost, prepared", |n| swaps(1, n)),
            Contest::new("tcp: 10,000 scattered puts", 10_000)
                .side("wire and log", move |n| log.log(n))
                .held("Fencepost", 2.5, ours(puts, &many)),
            Contest::new("tcp: 1,000 scattered gets", 1000)
                .side("request and reply", move |n| request.request(n))
                .held("Fencepost", 3.0, ours(gets, &some)),
        ];
    for words in [MEGABYTE / 16, MEGABYTE, 8 * MEGABYTE] {
        let (both, stream) = (wire(&one), wire(&one));
        contests.push(
            Contest::new(format!("tcp: {} KiB to each other", words / 128), 1)
                .side("both ways, a stream", move |n| stream.stream(8 * words, n))
                .side("both ways, in step", move |n| both.both(8 * words, n))
                .held("Fencepost, prepared", 1.0 / 0.95, move |n| swaps(words, n))
                .side("Fencepost, at a fence", move |n| section(words, n)),
        );
    }
    fencepost_benches::main(contests);
    let question = "tcp: faults an epoch";
    if !short() && wanted(question) {
        println!("\n{question}");
        for words in [MEGABYTE, 8 * MEGABYTE] {
            let (dynamic, prepared) = (faults_an_epoch(words, false), faults_an_epoch(words, true));
            println!("  {} KiB to each other: {dynamic:.0} at a fence, {prepared:.0} prepared", words / 128);
        }
    }
}
