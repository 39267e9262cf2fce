//! How long does a step take that consists of work and a superstep? Is it longer than the sum of
//! both?
//!
//! Each rank works for 100 us, then exchanges. The work alone, the exchange alone, and both in turn
//! are measured in the same rounds. A step that takes longer than the sum has waited for work of
//! another rank.
//!
//! An exchange in two halves, with the work between them, is measured in the same way. The link has
//! a latency: it is simulated, or is TCP with a delay line. A step should then take as long as the
//! longer of work and exchange, and not as long as their sum.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{TransportKind, superstep};
use fencepost_benches::contest::{short, wanted};
use fencepost_benches::draws::next;
use fencepost_benches::{Contest, Harness, ours};
use fencepost_tests_worlds::delayed::Delayed;
use std::hint::black_box;
use std::time::{Duration, Instant};

const WORK: Duration = Duration::from_micros(100);

/// The time that a step may take in addition to its work, as a multiple of the time of an exchange.
const BUDGET: f64 = 1.2;

/// The time that bytes travel on the simulated link.
const LATENCY: Duration = Duration::from_micros(400);

/// The time that bytes travel on the delayed link of TCP. Compared with this time, several wake-ups
/// of the link's threads are short.
const TCP_LATENCY: Duration = Duration::from_millis(2);

/// The time that a step with an exchange in two halves may take, as a multiple of the longer of its
/// work and its exchange.
const HALVES: f64 = 1.1;

/// Puts the first half of the window to the second half of rank `to`'s window, if `to` is a rank.
#[superstep]
fn shift(u: &mut Window<u64>, len: usize, to: Option<usize>) -> Result<()> {
    u.put(0..len).to(to, len..2 * len)?;
    Ok(())
}

/// The pairs of ranks in which one rank puts to the other.
#[derive(Clone, Copy)]
enum Pattern {
    /// Each rank puts to the next one, and the last to the first. With two ranks, elements go both
    /// ways.
    Ring,
    /// Each rank puts to the next one, and the last rank puts nothing. So nothing flows back.
    Chain,
}

impl Pattern {
    fn target(self, world: &World) -> Option<usize> {
        let next = world.rank() + 1;
        match self {
            Pattern::Ring => Some(next % world.size()),
            Pattern::Chain => (next < world.size()).then_some(next),
        }
    }
}

/// Executes `turns` turns of a loop of arithmetic that nothing but a slower core can disturb.
fn work(turns: u64) {
    let mut state = 88_172_645_463_325_252;
    for _ in 0..turns {
        black_box(next(&mut state));
    }
}

/// Returns the number of turns that take [`WORK`] at the machine's current speed.
fn turns() -> u64 {
    let turns = 100_000;
    let once = |_| {
        let clock = Instant::now();
        work(turns);
        clock.elapsed()
    };
    let taken = (0..20).map(once).min().unwrap_or(WORK);
    (turns as f64 * WORK.as_secs_f64() / taken.as_secs_f64()) as u64
}

#[derive(Clone)]
struct Question {
    transport: TransportKind,
    ranks: usize,
    pattern: Pattern,
    words: usize,
}

impl Question {
    fn dynamic(&self, turns: u64, iterations: u64) -> Duration {
        let Self { transport, ranks, pattern, words } = self.clone();
        let make = |world: &World| Ok((world.window::<u64>(2 * words)?, pattern.target(world)));
        ours::team_over(transport, ranks, iterations, make, |_, (u, to), _| {
            work(turns);
            u.put(0..words).to(*to, words..2 * words)?;
            u.fence()
        })
    }

    fn prepared(&self, turns: u64, iterations: u64) -> Duration {
        let Self { transport, ranks, pattern, words } = self.clone();
        let make = |world: &World| {
            let shift = shift::prepare(world, words, pattern.target(world))?;
            Ok((world.window::<u64>(2 * words)?, shift))
        };
        ours::team_over(transport, ranks, iterations, make, |_, (u, shift), _| {
            work(turns);
            shift.replay(u)
        })
    }

    fn halves(&self, turns: u64, iterations: u64) -> Duration {
        let Self { transport, ranks, pattern, words } = self.clone();
        let make = |world: &World| {
            let shift = shift::prepare(world, words, pattern.target(world))?;
            Ok((Some(world.window::<u64>(2 * words)?), shift))
        };
        ours::team_over(transport, ranks, iterations, make, |_, (u, shift), _| {
            let Some(taken) = u.take() else { return Ok(()) };
            let running = shift.begin(taken)?;
            work(turns);
            *u = Some(running.finish()?);
            Ok(())
        })
    }

    fn alone(&self, turns: u64, iterations: u64) -> Duration {
        ours::team_over(
            self.transport.clone(),
            self.ranks,
            iterations,
            |_| Ok(()),
            |world, (), k| {
                work(turns);
                // Ranks that share a core work one after another. Because of the barrier, the time
                // includes the work of all ranks.
                if k as u64 + 1 == iterations { world.barrier() } else { Ok(()) }
            },
        )
    }
}

fn main() {
    let (mut harness, turns) = (Harness::from_arguments(), if short() { 1 } else { turns() });
    let transports = [
        ("local", TransportKind::Local),
        ("shm", TransportKind::ShmThreads),
        ("tcp", TransportKind::TcpThreads),
    ];
    for (name, transport) in transports {
        for (ranks, words) in [(2, 1), (4, 1), (2, 8 << 10), (2, 128 << 10)] {
            for (shape, pattern) in [("ring", Pattern::Ring), ("chain", Pattern::Chain)] {
                let title = format!("{name}: {ranks} ranks, a {shape}, {} bytes", 8 * words);
                if !wanted(&title) {
                    continue;
                }
                let question = || Question { transport: transport.clone(), ranks, pattern, words };
                let (a, b, c, d, e) = (question(), question(), question(), question(), question());
                let mut contest = Contest::new(title, 1)
                    .side("100 us of work", move |n| a.alone(turns, n))
                    .side("exchange, dynamic", move |n| b.dynamic(0, n))
                    .side("work and exchange, dynamic", move |n| c.dynamic(turns, n))
                    .side("exchange, prepared", move |n| d.prepared(0, n))
                    .side("work and exchange, prepared", move |n| e.prepared(turns, n));
                let Some(figures) = harness.run(&mut contest) else { continue };
                for (way, at) in [("dynamic", 1), ("prepared", 3)] {
                    let (work, exchange, step) =
                        (figures[0].median, figures[at].median, figures[at + 1].median);
                    println!(
                        "  {way}: {:.2} of work and exchange, {:.2} of the limit",
                        step / (work + exchange),
                        step / (work + BUDGET * exchange)
                    );
                }
            }
        }
    }
    halves(&mut harness, turns);
}

/// Measures exchanges in two halves over a link, with work between the halves that takes half, all
/// or twice the latency of the link.
fn halves(harness: &mut Harness, turns: u64) {
    let sim = || {
        TransportKind::Sim(SimConfig {
            max_delay: 0,
            short_reads: false,
            link_bytes: 1 << 20,
            latency: LATENCY,
            ..SimConfig::default()
        })
    };
    let rows = [(1, 2), (1, 4), (1, 8), (8 << 10, 4)];
    halves_over(harness, turns, ("a simulated link", LATENCY), sim, &rows);
    let tcp = || Delayed::over(2, TCP_LATENCY);
    let rows = [(1, 10), (1, 20), (1, 40), (8 << 10, 20), (128 << 10, 20)];
    halves_over(harness, turns, ("tcp, a link", TCP_LATENCY), tcp, &rows);
}

/// Measures exchanges in two halves over `link`. Each row has the number of words of a message, and
/// the work as a multiple of [`WORK`].
fn halves_over(
    harness: &mut Harness,
    turns: u64,
    (name, latency): (&str, Duration),
    link: impl Fn() -> TransportKind,
    rows: &[(usize, u64)],
) {
    for &(words, spells) in rows {
        let work = spells as f64 * WORK.as_secs_f64() * 1e6;
        let title = format!("{name} of {latency:?}: 2 ranks, {} bytes, {work:.0} us of work", 8 * words);
        if !wanted(&title) {
            continue;
        }
        let transport = link();
        let question = || Question { transport: transport.clone(), ranks: 2, pattern: Pattern::Ring, words };
        let (a, b, c, d) = (question(), question(), question(), question());
        let mut contest = Contest::new(title, 1)
            .side("work", move |n| a.alone(spells * turns, n))
            .side("exchange", move |n| b.prepared(0, n))
            .side("work, then exchange", move |n| c.prepared(spells * turns, n))
            .side("work between the halves", move |n| d.halves(spells * turns, n));
        let Some(figures) = harness.run(&mut contest) else { continue };
        let [work, exchange, step, halves] = [0, 1, 2, 3].map(|side| figures[side].median);
        println!(
            "  in turn: {:.2} of work and exchange; in two halves: {:.2} of the longer, limit {HALVES}",
            step / (work + exchange),
            halves / work.max(exchange)
        );
    }
}
