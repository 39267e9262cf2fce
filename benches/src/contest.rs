//! [`Contest`]: several ways to do the same work, timed in turn, round by round.
//!
//! The speed of a shared machine can change by half from one second to the next. So sides are
//! interleaved: each round runs every side once, and the result is the ratio of medians over the
//! rounds. Criterion measures absolute figures, one side after another.

use criterion::{Criterion, Throughput};
use std::time::Duration;

/// A way to do the work: runs the given number of iterations and returns the time of the slowest
/// thread.
pub struct Side {
    name: String,
    run: Box<dyn FnMut(u64) -> Duration>,
}

/// A question about the cost of an operation, and the sides that answer it.
pub struct Contest {
    question: String,
    /// The number of operations in an iteration.
    operations: f64,
    /// For each side, the limit for the ratio of its time to the first side's, if there is a limit.
    budgets: Vec<Option<f64>>,
    sides: Vec<Side>,
}

/// How long an operation takes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The median of the rounds.
    pub median: f64,
    /// The best of the rounds.
    pub min: f64,
    /// The worst of the rounds.
    pub max: f64,
}

impl Contest {
    /// Creates a question about an operation that each iteration executes `operations` times.
    pub fn new(question: impl Into<String>, operations: usize) -> Self {
        let operations = operations as f64;
        Self { question: question.into(), operations, budgets: Vec::new(), sides: Vec::new() }
    }

    /// Adds a side. All later sides are compared with the first one.
    #[must_use]
    pub fn side(mut self, name: impl Into<String>, run: impl FnMut(u64) -> Duration + 'static) -> Self {
        self.sides.push(Side { name: name.into(), run: Box::new(run) });
        self.budgets.push(None);
        self
    }

    /// Adds a side that should take at most `budget` times as long as the first.
    #[must_use]
    pub fn held(
        self,
        name: impl Into<String>,
        budget: f64,
        run: impl FnMut(u64) -> Duration + 'static,
    ) -> Self {
        let mut contest = self.side(name, run);
        *contest.budgets.last_mut().expect("just pushed") = Some(budget);
        contest
    }

    /// Runs `rounds` rounds in which each side takes about `each`, prints a table, and returns the
    /// figures by side.
    pub fn run(&mut self, rounds: usize, each: Duration) -> Vec<Figure> {
        let iterations: Vec<u64> = self.sides.iter_mut().map(|side| side.calibrate(each)).collect();
        let mut times = vec![Vec::with_capacity(rounds); self.sides.len()];
        for round in 0..rounds {
            for turn in 0..self.sides.len() {
                // Each round begins with another side, so that no side always follows the same
                // side.
                let at = (turn + round) % self.sides.len();
                let taken = (self.sides[at].run)(iterations[at]).as_secs_f64() * 1e9;
                times[at].push(taken / (iterations[at] as f64 * self.operations));
            }
        }
        let figures: Vec<Figure> = times.iter_mut().map(|times| Figure::of(times)).collect();
        self.print(&figures);
        figures
    }

    #[expect(clippy::print_stdout, reason = "a bench prints its results")]
    fn print(&self, figures: &[Figure]) {
        println!("\n{}", self.question);
        println!(
            "  {:<34} {:>11} {:>11} {:>11} {:>7} {:>7}",
            "ns", "median", "min", "max", "ratio", "budget"
        );
        for ((side, figure), budget) in self.sides.iter().zip(figures).zip(&self.budgets) {
            let budget = budget.map_or(String::new(), |budget| format!("{budget:.2}"));
            let ratio = figure.median / figures[0].median;
            // If other programs use the machine, the best rounds are more meaningful than the
            // median ones.
            let best = figure.min / figures[0].min;
            let Figure { median, min, max } = figure;
            let name = &side.name;
            println!(
                "  {name:<34} {median:>11.2} {min:>11.2} {max:>11.2} {ratio:>7.2} {budget:>7} {best:>7.2}"
            );
        }
    }
}

impl Side {
    /// Returns the number of iterations that take about the time `each`.
    fn calibrate(&mut self, each: Duration) -> u64 {
        let mut iterations = 1;
        loop {
            let taken = (self.run)(iterations).min((self.run)(iterations));
            if taken * 2 >= each || iterations >= 1 << 26 {
                return iterations;
            }
            let grow = each.as_secs_f64() / taken.as_secs_f64().max(1e-9);
            iterations = (iterations as f64 * grow.clamp(2.0, 16.0)) as u64;
        }
    }
}

impl Figure {
    fn of(times: &mut [f64]) -> Self {
        times.sort_by(f64::total_cmp);
        let (low, high) = ((times.len() - 1) / 2, times.len() / 2);
        let median = (times[low] + times[high]) / 2.0;
        Self { median, min: times[0], max: times[times.len() - 1] }
    }
}

/// Returns whether this is the short pass, which the tests execute. The short pass runs everything
/// once, without timing.
pub fn short() -> bool {
    std::env::var_os("FENCEPOST_BENCH_SHORT").is_some() || asked("--test")
}

fn asked(option: &str) -> bool {
    std::env::args().any(|word| word == option)
}

/// Returns whether the command line asks for this question. It does if one of its words is part of
/// the question, or if it names no question at all.
pub fn wanted(question: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| question.contains(&word))
}

/// Returns a number from the environment, or `otherwise`.
fn number<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

const HELP: &str = "\
cargo bench -p fencepost-benches [--bench NAME] [-- [--ratios | --absolute] [QUESTION]...]

Criterion measures each side by itself and writes its reports to target/criterion; then the sides of each question take
turns, and a table has their ratios. Both by default.
  --ratios    the interleaved rounds only
  --absolute  criterion only
  --test      each side once, nothing is measured; so does the variable FENCEPOST_BENCH_SHORT
  QUESTION    only questions that contain one of these words
FENCEPOST_BENCH_ROUNDS is the number of rounds (25), FENCEPOST_BENCH_MS the milliseconds of a side in each round (8).";

/// The measurements that the command line of a bench chooses.
pub struct Harness {
    short: bool,
    /// Criterion, unless the pass is short or the command line asks for ratios only.
    criterion: Option<Criterion>,
    /// The number of rounds and the time of a side in each round, unless the command line asks for
    /// absolute figures only.
    rounds: Option<(usize, Duration)>,
}

impl Harness {
    /// Reads the command line. `--help` prints the options and ends the process.
    #[expect(clippy::print_stdout, reason = "a bench prints its results")]
    pub fn from_arguments() -> Self {
        if asked("--help") {
            println!("{HELP}");
            std::process::exit(0);
        }
        let short = short();
        let criterion = || {
            let (warm_up, measured) = (Duration::from_millis(200), Duration::from_secs(1));
            let criterion = Criterion::default().sample_size(20).nresamples(10_000);
            criterion.warm_up_time(warm_up).measurement_time(measured)
        };
        let rounds = number("FENCEPOST_BENCH_ROUNDS", 25);
        let each = Duration::from_millis(number("FENCEPOST_BENCH_MS", 8));
        Self {
            short,
            criterion: (!short && !asked("--ratios")).then(criterion),
            rounds: (!asked("--absolute")).then_some((rounds, each)),
        }
    }

    /// Measures the sides of a contest. Returns the figures of the interleaved rounds, or `None` if
    /// there were no rounds.
    ///
    /// # Cost
    /// For each side, criterion takes about 2 s, and the rounds take 0.3 s.
    pub fn run(&mut self, contest: &mut Contest) -> Option<Vec<Figure>> {
        if self.short {
            for side in &mut contest.sides {
                (side.run)(1);
            }
            return None;
        }
        if let Some(criterion) = &mut self.criterion {
            let mut group = criterion.benchmark_group(&contest.question);
            if contest.operations > 1.0 {
                group.throughput(Throughput::Elements(contest.operations as u64));
            }
            for Side { name, run } in &mut contest.sides {
                group.bench_function(&*name, |bencher| bencher.iter_custom(&mut *run));
            }
            group.finish();
        }
        self.rounds.map(|(rounds, each)| contest.run(rounds, each))
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if let Some(criterion) = &self.criterion {
            criterion.final_summary();
        }
    }
}

/// Runs a bench: measures each contest whose question the command line asks for. See `--help`.
pub fn main(contests: Vec<Contest>) {
    let mut harness = Harness::from_arguments();
    for mut contest in contests.into_iter().filter(|contest| wanted(&contest.question)) {
        harness.run(&mut contest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_operation_and_compare_by_median() {
        let mut odd = 0;
        let mut contest = Contest::new("which?", 10)
            .side("steady", |iterations| Duration::from_nanos(1000 * iterations))
            .held("every third time slow", 2.0, move |iterations| {
                odd += 1;
                Duration::from_nanos(if odd % 3 == 0 { 9000 } else { 2000 } * iterations)
            });
        let figures = contest.run(9, Duration::from_micros(20));
        assert_eq!((figures[0].min, figures[0].median, figures[0].max), (100.0, 100.0, 100.0));
        assert_eq!((figures[1].min, figures[1].median, figures[1].max), (200.0, 200.0, 900.0));
    }
}
