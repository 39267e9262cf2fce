//! What the examples take on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Error, Machine, Options};
use fencepost_runtime::{Compiled, Process, Ranks, TransportKind, launch, process, ranks};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// How many ranks, how they reach each other, and the way that bytes take.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// How many ranks [default: those of the job that this was started in, or 4]
    #[arg(short = 'n', long, value_name = "RANKS")]
    pub ranks: Option<NonZeroU32>,
    /// The way that bytes take between ranks; `auto` chooses by the machine model
    #[arg(long, default_value = "auto", value_parser = modes())]
    pub mode: Mode,
    /// How ranks reach each other: threads by `local` or `sim`, processes by `shm` or `tcp`
    #[arg(long, env = "FENCEPOST_TRANSPORT", hide_env_values = true)]
    pub transport: Option<TransportKind>,
}

impl Job {
    /// Become the job of processes that was asked for, if one was: the first thing that an example does.
    pub fn start(&self) -> Result<(), Error> {
        if self.transport.is_none() {
            process()?;
        }
        launch(self.ranks(), &self.transport())
    }

    /// How many ranks.
    pub fn ranks(&self) -> usize {
        let of_job = || self.process().map_or(4, |process| process.ranks);
        self.ranks.map_or_else(of_job, |ranks| ranks.get() as usize)
    }

    /// The world that was asked for.
    pub fn world(&self) -> Ranks {
        ranks(self.ranks()).transport(self.transport()).mode(self.mode)
    }

    /// Whether this process tells the user how it went: that of rank 0.
    pub fn reports(&self) -> bool {
        self.process().is_none_or(|process| process.rank == 0)
    }

    /// The same calls, compiled for the ranks as they reach each other here, in the mode that was asked for.
    pub fn compiled(&self, compiled: &Compiled) -> Result<Compiled, Error> {
        let apart = matches!(self.transport(), TransportKind::Sim(_) | TransportKind::Tcp);
        let of_threads = if apart { Placement::Apart } else { Placement::Together };
        let placement = self.process().map_or(of_threads, |process| process.placement);
        compiled.with(placement, &Machine::default(), &Options { mode: self.mode, ..Options::default() })
    }

    fn transport(&self) -> TransportKind {
        // Which of the two a job of processes has is its launcher's word.
        let of_job = || self.process().map_or(TransportKind::Local, |_| TransportKind::Tcp);
        self.transport.clone().unwrap_or_else(of_job)
    }

    /// What this process is in a job; one that can't join says so when it starts.
    fn process(&self) -> Option<Process> {
        process().ok().flatten()
    }
}

/// Terrain in, pictures out.
#[derive(Args, Clone, Debug)]
pub struct Terrain {
    /// How many years pass [default: those of 100 steps of the largest stable length]
    #[arg(long, value_parser = years)]
    pub years: Option<f64>,
    /// The elevations: a NumPy .npy file of int16, float32 or float64, in metres
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/jacksboro-dem.npy"),
          hide_default_value = true)]
    pub input: PathBuf,
    /// The folder that pictures and the resulting elevations are written to
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, default_value = "out/hillslope")]
    pub out: PathBuf,
}

/// The name of a mode on the command line.
pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "auto",
        Mode::Aggressive => "aggressive",
        Mode::Aggregated => "aggregated",
        Mode::Pipelined => "pipelined",
        Mode::Direct => "direct",
    }
}

fn years(text: &str) -> Result<f64, String> {
    let years = text.parse().ok().filter(|&years: &f64| years.is_finite() && years >= 0.0);
    years.ok_or_else(|| "give a number of years from 0 on, such as 250000 or 2e6".into())
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(mode_name)).map(|name| {
        let mode = Mode::ALL.into_iter().find(|&mode| mode_name(mode) == name);
        mode.expect("the parser lets pass only names of modes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Both {
        #[command(flatten)]
        job: Job,
        #[command(flatten)]
        terrain: Terrain,
    }

    fn parse(line: &str) -> Result<Both, String> {
        let words = std::iter::once("example").chain(line.split_whitespace());
        Both::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn every_mode_has_a_name_that_is_read_back() {
        for mode in Mode::ALL {
            assert_eq!(parse(&format!("--mode {}", mode_name(mode))).expect("its name").job.mode, mode);
        }
    }

    #[test]
    fn the_defaults_are_four_ranks_auto_and_the_terrain_of_the_project() {
        let both = parse("").expect("nothing is required");
        assert_eq!((both.job.ranks(), both.job.mode, both.job.reports()), (4, Mode::Auto, true));
        assert!(both.terrain.input.is_file(), "{}", both.terrain.input.display());
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        assert!(parse("--mode fastest").expect_err("no mode").contains("aggregated"));
        assert!(parse("--transport pigeon").expect_err("no transport").contains("`shm`"));
        assert!(parse("-n 0").expect_err("no ranks").contains("--ranks"));
        for years in ["many", "-1", "inf", "NaN"] {
            assert!(parse(&format!("--years={years}")).expect_err("no time").contains("2e6"), "{years}");
        }
    }
}
