//! What the examples take on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use fencepost_planner::ir::pattern::Mode;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// How many ranks, and the way that bytes take.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// How many ranks to run as threads
    #[arg(short = 'n', long, value_name = "RANKS", default_value = "4")]
    pub ranks: NonZeroU32,
    /// The way that bytes take between ranks; `auto` chooses by the machine model
    #[arg(long, default_value = "auto", value_parser = modes())]
    pub mode: Mode,
}

impl Job {
    /// How many ranks, as the runtime counts them.
    pub fn ranks(&self) -> usize {
        self.ranks.get() as usize
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
        assert_eq!((both.job.ranks.get(), both.job.mode), (4, Mode::Auto));
        assert!(both.terrain.input.is_file(), "{}", both.terrain.input.display());
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        assert!(parse("--mode fastest").expect_err("no mode").contains("aggregated"));
        assert!(parse("-n 0").expect_err("no ranks").contains("--ranks"));
        for years in ["many", "-1", "inf", "NaN"] {
            assert!(parse(&format!("--years={years}")).expect_err("no time").contains("2e6"), "{years}");
        }
    }
}
