//! `fencepost trace`: draws the traces of a run as a picture.

use crate::progress::Progress;
use crate::{fail, usage};
use clap::{Args, ValueHint};
use fencepost_tool::files;
use fencepost_tool::trace::{OfRun, Summary, read, write};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The options of `fencepost trace`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Trace {
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Show only this run of the program, counted from 1
    #[arg(long, value_name = "NUMBER")]
    run: Option<u32>,
    /// Leave out ranks that have no trace
    #[arg(long)]
    partial: bool,
    /// The folder that FENCEPOST_TRACE named
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

const AFTER: &str = "\
The picture is in the trace-event format: open it in https://ui.perfetto.dev or https://speedscope.app. Each rank is a \
process, its calls and waits are slices, and frames are arrows between ranks.

Examples:
  FENCEPOST_TRACE=traces fencepost run -n 4 ./heat2d
  fencepost trace -o heat.json traces";

impl Trace {
    /// Writes the picture.
    pub fn run(&self) -> ExitCode {
        let progress = Progress::of("reading traces");
        let runs = match read(&self.folder, self.run, self.partial) {
            Ok(runs) => runs,
            Err(why) => return usage(&why),
        };
        drop(progress);
        written(&runs, self.output.as_deref())
    }
}

/// Writes the picture of these runs to a file or to standard output, and reports its contents.
pub fn written(runs: &[OfRun], output: Option<&Path>) -> ExitCode {
    let progress = Progress::of("writing the picture");
    let result = match output {
        None => write(runs, &mut BufWriter::new(io::stdout().lock())),
        Some(path) => {
            let mut picture = Vec::new();
            write(runs, &mut picture).and_then(|summary| {
                files::write(path, &picture).map_err(io::Error::other)?;
                Ok(summary)
            })
        }
    };
    drop(progress);
    let summary = match result {
        Ok(summary) => summary,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => return usage(&error.to_string()),
    };
    let Summary { ranks, calls, waits, frames, early, lost } = summary;
    let mut text = format!("{ranks} ranks, {calls} calls, {waits} waits, {frames} frames");
    if early > 0 {
        text += &format!(
            "; {early} of them seem to arrive before they were sent, because clocks of hosts are known only to microseconds"
        );
    }
    if lost > 0 {
        text += &format!("; {lost} earlier events were not kept");
    }
    fail(0, &text)
}
