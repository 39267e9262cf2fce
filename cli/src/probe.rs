//! `fencepost probe`: measures a machine model of this machine.

use crate::{count, fail, print, usage};
use clap::Args;
use fencepost_job::{Reach, Start};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::units::Nanos;
use fencepost_planner::{Machine, Result};
use fencepost_runtime::{TransportKind, World};
use fencepost_tool::documents::{Content, ExchangeDocument, ProbeDocument};
use rustix::system::uname;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

/// The options of `fencepost probe`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Probe {
    /// The number of ranks; each is a process that is pinned to a core
    #[arg(short = 'n', long, visible_alias = "np", value_name = "RANKS", default_value = "2", value_parser = count::<NonZeroU32>)]
    ranks: NonZeroU32,
    /// How ranks communicate: shm or tcp
    #[arg(long, value_name = "TRANSPORT", default_value = "shm", value_parser = crate::run::reach)]
    transport: Reach,
    /// How long to time exchanges; the median time of each is used
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = fencepost_job::duration)]
    time: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Prints a machine model, which FENCEPOST_MACHINE, `fencepost run --machine` and recipes accept. Comments state where it \
was measured and, for each exchange, the measured and the predicted time. Run nothing else meanwhile.

To measure several hosts, run the probe as a job; --transport and -n are then those of `run`:
  fencepost run --pin --hosts a:2,b:2 fencepost probe --time 10s >cluster.txt

Examples:
  fencepost probe -n 2 --transport tcp --time 10s >machine.txt
  fencepost run -n 2 --transport tcp --machine machine.txt ./heat2d";

/// An exchange gets a mark if its measured time and its predicted time differ by more than this
/// factor, in either direction.
const NEAR: f64 = 1.1;

/// The mark of an exchange that the model does not predict.
const FAR: &str = "  (they differ by more than 10 percent)";

/// An exchange: its name, its measured time and its predicted time.
type Row = (String, [Nanos; 2]);

impl Probe {
    /// Starts a job that measures the machine. In a rank of that job, measures the machine and
    /// prints the model.
    pub fn run(&self) -> ExitCode {
        let job = match fencepost_runtime::process() {
            Ok(job) => job,
            Err(error) => return usage(error.message()),
        };
        let Some(process) = job else {
            return match Start::this_program(self.ranks.get(), self.transport) {
                Ok(start) => ExitCode::from(Start { pin: true, ..start }.run()),
                Err(error) => usage(&error.to_string()),
            };
        };
        // In a rank of a job, `Tcp` selects the transport of the job, whatever the environment
        // sets.
        let world = fencepost_runtime::ranks(process.ranks).transport(TransportKind::Tcp);
        match world.collect(|world| self.measure(world)) {
            Ok(texts) => {
                let (text, is_far) = texts.into_iter().find(|(text, _)| !text.is_empty()).unwrap_or_default();
                let printed = print(text.as_bytes());
                if is_far {
                    // The model is printed nevertheless, and the warning does not change the exit
                    // code.
                    fail(
                        0,
                        "warning: the model does not predict every exchange: the machine was busy, or is unlike the model; the comments mark them",
                    );
                }
                printed
            }
            Err(error) => fail(fencepost_job::FAILED, &error.to_string()),
        }
    }

    /// Measures. Returns the text that this rank prints, and whether the model fails to predict an
    /// exchange.
    fn measure(&self, world: &World) -> Result<(String, bool)> {
        let core = rustix::thread::sched_getcpu() as u64;
        let (machine, rows) = world.measure_machine_for(self.time)?;
        let cores = world.gather(0, &[core])?;
        let Some(cores) = cores else { return Ok(Default::default()) };
        let cores: Vec<String> = cores.iter().flatten().map(u64::to_string).collect();
        let place = place(world, &cores);
        let is_far = rows.iter().any(is_far);
        if !self.json {
            return Ok((written(&place, &machine, &rows), is_far));
        }
        let exchanges = rows.into_iter().map(|(name, [measured, predicted])| ExchangeDocument {
            name,
            measured: measured.0,
            predicted: predicted.0,
        });
        let document = ProbeDocument::new(&place, &machine, exchanges.collect());
        Ok((Content::Probe(document).to_json(), is_far))
    }
}

/// Describes where the model was measured.
fn place(world: &World, cores: &[String]) -> String {
    let host = uname();
    let transport = match world.placement() {
        Placement::Together => "shared memory".to_owned(),
        Placement::Apart => "connections".to_owned(),
        Placement::Hosts { ranks_each } => {
            format!("shared memory of {ranks_each} ranks and connections")
        }
    };
    format!(
        "{}, {:.0}; {} ranks on cores {}, over {transport}",
        host.nodename().to_string_lossy(),
        jiff::Timestamp::now(),
        world.size(),
        cores.join(", ")
    )
}

/// Returns whether the model does not predict the time of this exchange.
fn is_far((_, [measured, predicted]): &Row) -> bool {
    !(1.0 / NEAR..=NEAR).contains(&(measured.0 / predicted.0))
}

fn written(place: &str, machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!(
        "# Measured by `fencepost probe` on {place}.\n# Times in nanoseconds, cache sizes in bytes.\n"
    );
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    // Writing to a `String` cannot fail.
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        let _: std::fmt::Result = writeln!(text, "{arguments}");
    };
    for row @ (name, [measured, predicted]) in rows {
        let far = if is_far(row) { FAR } else { "" };
        line(format_args!(
            "# {name:widest$}  measured {:>9.0}  predicted {:>9.0}{far}",
            measured.0, predicted.0
        ));
    }
    if rows.is_empty() {
        line(format_args!("# One rank exchanges nothing: only the caches are measured."));
    }
    text + &machine.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_a_model_and_marks_what_the_model_does_not_predict() {
        let rows = [
            ("near".to_owned(), [Nanos(100.0), Nanos(105.0)]),
            ("far".to_owned(), [Nanos(100.0), Nanos(120.0)]),
        ];
        let text = written("here", &Machine::default(), &rows);
        assert_eq!(text.parse::<Machine>().unwrap(), Machine::default());
        assert_eq!(text.matches("differ").count(), 1, "{text}");
    }
}
