//! `fencepost`: starts programs as jobs of processes, on this machine or on several, and makes,
//! checks and shows their plans.
//!
//! The crates `fencepost-job` and `fencepost-tool` run jobs and compare plans. This crate has only
//! the command line, the lists of hosts, and the assignment of ranks to hosts.

mod cargo;
mod compare;
mod forms;
mod hosts;
mod mpi;
mod plans;
mod predict;
mod probe;
mod progress;
mod report;
mod run;
mod simulate;
mod snapshots;
mod trace;
mod variables;

use clap::{CommandFactory, Parser, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// Start programs that use Fencepost as jobs of processes, and make, check and show their plans.
#[derive(Parser)]
#[command(name = "fencepost", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program as a job of several ranks, each a process
    Run(Box<run::Run>),
    /// Start and watch the ranks of one host; `fencepost run` starts this on other hosts
    #[command(hide = true)]
    Host,
    /// Write the plans for the recipes in a folder, or check the plans
    Plan(plans::Plan),
    /// Print what a plan does: operations, targets, modes and rounds
    Show(plans::Show),
    /// Print why each operation of a plan travels as it does, and what it costs
    Explain(plans::Show),
    /// Verify that plans do what their calls ask for
    Verify(plans::Verify),
    /// Compare two plans: exit code 1 if they differ
    Diff(plans::Diff),
    /// Print predicted times over ranks, values, placements, machines and modes
    Predict(Box<predict::Predict>),
    /// Simulate many steps of a plan, with uneven work and noise: which ranks wait, and for what
    Simulate(simulate::Simulate),
    /// Measure a plan here in all modes, next to what is predicted
    Compare(Box<compare::Compare>),
    /// Write plans and measured times as one page of HTML
    Report(report::Report),
    /// Draw the traces of a run: who did what when, and who waited for whom
    Trace(trace::Trace),
    /// List, verify and prune the snapshots of a program
    Snapshots(snapshots::Snapshots),
    /// Measure what communication costs here, and print it as a machine model
    Probe(probe::Probe),
    /// List the environment variables that programs and this command read, with their values
    Env,
    /// Show the MPI library that ranks use when mpirun, mpiexec or srun starts them
    Mpi,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of this command, or of one of its subcommands
    Man {
        /// The subcommand, such as run or plan [default: the page of fencepost itself]
        subcommand: Option<String>,
    },
}

const EXAMPLES: &str = "Examples:
  fencepost run -n 8 ./heat2d                8 processes on this machine, over shared memory
  fencepost run --hosts a:4,b:4 ./heat2d     4 processes on each of two hosts, over TCP between them
  fencepost plan --check ./heat2d            are the plans in plans/ those of the program?
  srun -n 8 ./heat2d                         8 processes that Slurm starts: they meet over its MPI
  fencepost completions bash > ~/.local/share/bash-completion/completions/fencepost
  fencepost man run | man -l -";

fn main() -> ExitCode {
    let mut whole = Cli::command();
    whole.build();
    let words: Vec<_> = std::env::args_os().collect();
    let words = match whole.find_subcommand("run") {
        Some(run) => forms::normalised(words, run),
        None => words,
    };
    match Cli::parse_from(words).command {
        Command::Run(run) => run.run(),
        Command::Host => ExitCode::from(fencepost_job::host()),
        Command::Plan(plan) => plan.run(),
        Command::Show(show) => show.show(),
        Command::Explain(show) => show.explain(),
        Command::Verify(verify) => verify.run(),
        Command::Diff(diff) => diff.run(),
        Command::Predict(predict) => predict.run(),
        Command::Probe(probe) => probe.run(),
        Command::Simulate(simulate) => simulate.run(),
        Command::Compare(compare) => compare.run(),
        Command::Report(report) => report.run(),
        Command::Trace(trace) => trace.run(),
        Command::Snapshots(snapshots) => snapshots.run(),
        Command::Env => print(variables::listed(&std::env::vars_os().collect::<Vec<_>>()).as_bytes()),
        Command::Mpi => {
            let named = std::env::var_os("FENCEPOST_MPI").map(PathBuf::from);
            let (text, is_found) = mpi::listed(named.as_deref());
            let printed = print(text.as_bytes());
            if is_found { printed } else { ExitCode::FAILURE }
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fencepost", &mut text);
            print(&text)
        }
        Command::Man { subcommand } => man(subcommand.as_deref()),
    }
}

fn man(subcommand: Option<&str>) -> ExitCode {
    let mut command = Cli::command();
    command.build();
    let page = match subcommand {
        None => Some(command),
        Some(name) => command.find_subcommand(name).cloned(),
    };
    let Some(page) = page else {
        let name = subcommand.unwrap_or_default();
        return usage(&format!("there is no subcommand `{name}`: `fencepost --help` lists them"));
    };
    let mut text = Vec::new();
    match clap_mangen::Man::new(page).render(&mut text) {
        Ok(()) => print(&text),
        Err(error) => usage(&error.to_string()),
    }
}

/// Reads a whole number of 1 or more.
fn count<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "give a whole number, 1 or more".into())
}

/// Prints `text`. A reader that closes the output early is not an error.
fn print(text: &[u8]) -> ExitCode {
    match io::stdout().write_all(text).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => usage(&error.to_string()),
        _ => ExitCode::SUCCESS,
    }
}

/// Reports an error of the command line, in one line.
fn usage(why: &str) -> ExitCode {
    fail(fencepost_job::USAGE, why)
}

/// Reports an error in one line, and returns its exit code.
fn fail(code: u8, why: &str) -> ExitCode {
    // An error means that standard error has no reader.
    let _: io::Result<()> = io::stderr().write_all(format!("fencepost: {why}\n").as_bytes());
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
