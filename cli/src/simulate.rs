//! `fencepost simulate`: simulates many steps of a plan, whose ranks need not exist.

use crate::plans::open;
use crate::progress::Progress;
use crate::trace::written;
use crate::{print, usage};
use clap::{Args, ValueHint};
use fencepost_planner::Error;
use fencepost_tool::documents::Content;
use fencepost_tool::files::{self, machine};
use fencepost_tool::simulation::{Question, text};
use fencepost_tool::trace::OfRun;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The options of `fencepost simulate`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Simulate {
    /// The number of steps
    #[arg(long, value_name = "STEPS", default_value = "100")]
    steps: u64,
    /// The work of a rank in each step, in nanoseconds or with a unit, such as 100us or 2ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = short_time)]
    work: Duration,
    /// The maximum deviation of a rank's work from --work, in percent; a rank deviates equally in
    /// all steps
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    uneven: f64,
    /// The largest random delay of a rank in a step, in percent of its work
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    noise: f64,
    /// The seed of all randomness; equal seeds give equal results
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Report the largest latency at which the run takes at most this many percent longer
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    tolerance: f64,
    /// The file of the machine model [default: that of the plan]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    machine: Option<PathBuf>,
    /// Write a picture of the steps to this file, as `fencepost trace` does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Write the steps to this file in GOAL, the input of the simulator LogGOPSim
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    goal: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file of the plan
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,
}

const AFTER: &str = "\
A step is work, and then a run of the superstep. Every rank follows its program: frames take their overhead, their bytes \
on the wire, and the latency. What determines the end is the longest path of work and frames; shortening anything else \
gains nothing.

A GOAL file has all steps, so give few of them. Its first lines have the commands that LogGOPSim is run by, and what sizes \
and tags mean. LogGOPSim has one latency, and charges a receiver for bytes, too; so its times may be longer.

Examples:
  fencepost simulate --work 100us --uneven 10 --noise 2 plans/exchange-64.plan
  fencepost simulate --steps 10 --work 100us --trace steps.json plans/exchange-64.plan
  fencepost simulate --steps 10 --work 100us --goal steps.goal plans/exchange-64.plan
  fencepost simulate --steps 100000 --machine cluster.txt plans/exchange-100172.plan";

fn percent(text: &str) -> Result<f64, String> {
    let part = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().map(|percent| percent / 100.0);
    part.ok()
        .filter(|part| (0.0..=100.0).contains(part))
        .ok_or_else(|| "give a percentage from 0 to 10000".into())
}

/// The maximum work of a step.
const WORK_MAX: Duration = Duration::from_secs(3600);

fn short_time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let unit = units.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, *nanos)));
    let (number, nanos) = unit.unwrap_or((text, 1.0));
    let time = number.trim().parse::<f64>().map(|number| number * nanos);
    time.ok()
        .filter(|nanos| (0.0..=WORK_MAX.as_nanos() as f64).contains(nanos))
        .map(|nanos| Duration::from_nanos(nanos.round() as u64))
        .ok_or_else(|| "give a time of at most an hour, such as 500ns, 100us, 2ms or 1s".into())
}

impl Simulate {
    /// Simulates, and prints the result.
    pub fn run(&self) -> ExitCode {
        let plan = open(&self.plan).and_then(|plan| match &self.machine {
            None => Ok(plan),
            Some(path) => {
                let machine = machine(path)?;
                plan.with(plan.placement(), &machine, &plan.made_for().options)
                    .map_err(|error| error.to_string())
            }
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => return usage(&why),
        };
        let Self { steps, work, uneven, noise, seed, tolerance, .. } = *self;
        let work = work.as_nanos() as u64;
        let progress = Progress::of(format!("simulating {} ranks", plan.ranks()));
        let question = Question { steps, work, uneven, noise, seed, tolerance };
        let answer = question.answer(&plan);
        let goal = self.goal.as_ref().map(|path| Ok((path, question.goal(&plan)?))).transpose();
        let traces = self.trace.as_ref().map(|_| question.traces(&plan)).transpose();
        drop(progress);
        match goal.map_err(|error: Error| error.message().to_owned()) {
            Ok(Some((path, file))) => {
                if let Err(why) = files::write(path, &file) {
                    return usage(&why);
                }
            }
            Ok(None) => {}
            Err(why) => return usage(&why),
        }
        match traces {
            Ok(Some(ranks)) => {
                let code = written(&[OfRun { number: 1, ranks }], self.trace.as_deref());
                if code != ExitCode::SUCCESS {
                    return code;
                }
            }
            Ok(None) => {}
            Err(error) => return usage(error.message()),
        }
        let document = match answer {
            Ok(document) => document,
            Err(error) => return usage(error.message()),
        };
        let text = if self.json { Content::Simulation(document).to_json() } else { text(&document) };
        print(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_percents_are_read_with_and_without_units() {
        assert_eq!(short_time("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(short_time("2.5 ms"), Ok(Duration::from_micros(2500)));
        assert_eq!(short_time("7"), Ok(Duration::from_nanos(7)));
        assert_eq!((percent("5"), percent("0.5%")), (Ok(0.05), Ok(0.005)));
        for text in ["", "-1us", "1h", "nan", "1e30s"] {
            assert!(short_time(text).is_err(), "{text}");
        }
        assert!(percent("many").is_err() && percent("-1").is_err());
    }
}
