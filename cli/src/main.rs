//! `fencepost`: starts programs as jobs of processes, on this machine or on several.
//!
//! What is deliberately absent: how a job runs, which is the runtime's. Here are the command line, host lists, and where
//! ranks go.

mod hosts;
mod run;

use clap::{CommandFactory, Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;

/// Start programs that use Fencepost as jobs of processes.
#[derive(Parser)]
#[command(name = "fencepost", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program as a job of several ranks, a process each
    Run(Box<run::Run>),
    /// The part of a job's starter that is on another host; started by `fencepost run`
    #[command(hide = true)]
    Host,
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of this command, or of one of its subcommands
    Man {
        /// Which subcommand
        subcommand: Option<String>,
    },
}

const EXAMPLES: &str = "Examples:
  fencepost run -n 8 ./heat2d                      8 processes here, by shared memory
  fencepost run --hosts a:4,b:4 ./heat2d           4 on each of two hosts, by TCP between them
  fencepost completions bash > ~/.local/share/bash-completion/completions/fencepost
  fencepost man run | man -l -";

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => run.run(),
        Command::Host => ExitCode::from(fencepost_job::host()),
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
        return usage(&format!("there is no subcommand `{name}`: there are `run`, `completions` and `man`"));
    };
    let mut text = Vec::new();
    match clap_mangen::Man::new(page).render(&mut text) {
        Ok(()) => print(&text),
        Err(error) => usage(&error.to_string()),
    }
}

/// Prints `text`; that nobody reads on is no failure.
fn print(text: &[u8]) -> ExitCode {
    match io::stdout().write_all(text).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => usage(&error.to_string()),
        _ => ExitCode::SUCCESS,
    }
}

/// One line that says what the command line asks in vain.
fn usage(why: &str) -> ExitCode {
    refused(fencepost_job::USAGE, why)
}

/// One line that says what can't be.
fn refused(code: u8, why: &str) -> ExitCode {
    // Nobody may be there to read it.
    let _: io::Result<()> = io::stderr().write_all(format!("fencepost: {why}\n").as_bytes());
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
