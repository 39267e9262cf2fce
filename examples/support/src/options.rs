//! The command-line options that the examples share.

#![expect(clippy::print_stdout, reason = "examples print where they continue")]

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Error, Machine, Options};
use fencepost_runtime::{Compiled, Process, Ranks, TransportKind, World, launch, process, ranks};
use fencepost_snapshots::{Items, Snapshots};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// The number of ranks, the transport, and the transfer mode.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// The number of ranks [default: that of the job that started this process, or 4]
    #[arg(short = 'n', long, value_name = "RANKS")]
    pub ranks: Option<NonZeroU32>,
    /// The transfer mode; `auto` chooses one by the machine model
    #[arg(long, default_value = "auto", value_parser = modes())]
    pub mode: Mode,
    /// The transport: `local` and `sim` run ranks as threads, `shm` and `tcp` as processes
    #[arg(long, env = "FENCEPOST_TRANSPORT", hide_env_values = true)]
    pub transport: Option<TransportKind>,
}

impl Job {
    /// Starts the job of processes, if the options ask for one. An example calls this first.
    pub fn start(&self) -> Result<(), Error> {
        if self.transport.is_none() {
            process()?;
        }
        launch(self.ranks(), &self.transport())
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        let of_job = || self.process().map_or(4, |process| process.ranks);
        self.ranks.map_or_else(of_job, |ranks| ranks.get() as usize)
    }

    /// Returns the builder of the world that the options describe.
    pub fn world(&self) -> Ranks {
        ranks(self.ranks()).transport(self.transport()).mode(self.mode)
    }

    /// Returns whether this process prints results, because it has rank 0 or all ranks.
    pub fn reports(&self) -> bool {
        self.process().is_none_or(|process| process.rank == 0)
    }

    /// Returns whether all ranks are threads of this process.
    pub fn is_one_process(&self) -> bool {
        self.process().is_none()
    }

    /// Returns which ranks of this job share memory, and the machine model by which the world of
    /// the job chooses modes. In a job of processes, all ranks must call this function.
    pub fn here(&self) -> Result<(Placement, Machine), Error> {
        Ok(self.world().collect(|world| Ok((world.placement(), *world.machine())))?.swap_remove(0))
    }

    /// Compiles the calls of `compiled` again, for the transfer mode of this job and for the
    /// placement and the machine that [`here`](Self::here) returns.
    pub fn compiled(
        &self,
        compiled: &Compiled,
        (placement, machine): &(Placement, Machine),
    ) -> Result<Compiled, Error> {
        compiled.with(*placement, machine, &Options { mode: self.mode, ..Options::default() })
    }

    fn transport(&self) -> TransportKind {
        // In a job of processes, the launcher chooses between `shm` and `tcp`. `Tcp` selects the
        // transport that the launcher has chosen.
        let of_job = || self.process().map_or(TransportKind::Local, |_| TransportKind::Tcp);
        self.transport.clone().unwrap_or_else(of_job)
    }

    /// Returns the rank of this process in a job of processes. An error is ignored here, since
    /// `start` reports it.
    fn process(&self) -> Option<Process> {
        process().ok().flatten()
    }
}

/// The folder of a program's snapshots, and how often they are taken.
#[derive(Args, Clone, Debug)]
pub struct Saving {
    /// The folder in which snapshots are taken, and from which the program continues
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub snapshots: Option<PathBuf>,
    /// The time from one snapshot to the next in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub every: Duration,
}

impl Saving {
    /// Opens the folder if one is given, and restores the last snapshot. Returns the step after
    /// which the program continues, or 0.
    pub fn begin<'w>(
        &self,
        world: &'w World,
        state: Items<'_>,
    ) -> Result<(Option<Snapshots<'w>>, u64), Error> {
        let Some(folder) = &self.snapshots else { return Ok((None, 0)) };
        let mut snapshots = Snapshots::new(world, folder)?.every(self.every);
        let restored = snapshots.restore(state)?;
        if let (0, Some(step)) = (world.rank(), restored) {
            println!("continued after step {step}");
        }
        Ok((Some(snapshots), restored.unwrap_or(0)))
    }
}

/// The input and the output of a simulation of terrain.
#[derive(Args, Clone, Debug)]
pub struct Terrain {
    /// The time to simulate in years [default: 100 steps of the longest round stable length]
    #[arg(long, value_parser = years)]
    pub years: Option<f64>,
    /// The elevations in metres: a NumPy .npy file of floats, or of integers of at most 32 bits
    /// [default: data/jacksboro-dem.npy]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/jacksboro-dem.npy"),
          hide_default_value = true)]
    pub input: PathBuf,
    /// The folder for the pictures and the resulting elevations
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, default_value = "out/hillslope")]
    pub out: PathBuf,
}

/// Returns the name of a mode on the command line.
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
    years.ok_or_else(|| "give a number of years, at least 0, such as 250000 or 2e6".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "give a number of seconds, such as 600 or 0.5".into())
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
    fn invalid_options_are_refused_with_what_is_allowed() {
        assert!(parse("--mode fastest").expect_err("no mode").contains("aggregated"));
        assert!(parse("--transport pigeon").expect_err("no transport").contains("`shm`"));
        assert!(parse("-n 0").expect_err("no ranks").contains("--ranks"));
        for years in ["many", "-1", "inf", "NaN"] {
            assert!(parse(&format!("--years={years}")).expect_err("no time").contains("2e6"), "{years}");
        }
    }
}
