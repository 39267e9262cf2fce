//! `fencepost trace`: the traces of a run as a picture.

use crate::progress::Progress;
use crate::{fail, usage};
use clap::{Args, ValueHint};
use fencepost_tool::trace::{OfRun, Summary, read, write};
use std::fs::File;
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

/// Writes the picture of these runs to a file or to standard output, and reports what it shows.
pub fn written(runs: &[OfRun], output: Option<&Path>) -> ExitCode {
    let progress = Progress::of("writing the picture");
    let result = match output {
        None => write(runs, &mut BufWriter::new(io::stdout().lock())),
        Some(path) => to_file(runs, path),
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
            "; {early} frames ended before they began, since clocks are compared to microseconds only"
        );
    }
    if lost > 0 {
        text += &format!("; {lost} earlier events were not kept");
    }
    fail(0, &text)
}

/// Writes to a new file, which then takes the place of `path`.
fn to_file(runs: &[OfRun], path: &Path) -> io::Result<Summary> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let written = File::create(&new).and_then(|file| {
        let summary = write(runs, &mut BufWriter::new(&file))?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        Ok(summary)
    });
    written.map_err(|error| {
        // An error means that there is no such file.
        let _: io::Result<()> = std::fs::remove_file(&new);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}
