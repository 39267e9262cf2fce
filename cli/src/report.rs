//! `fencepost report`: writes plans and measured times as one page of HTML.

use crate::plans::open;
use crate::progress::Progress;
use crate::{fail, print, usage};
use clap::{Args, ValueHint};
use fencepost_tool::documents::MeasurementDocument;
use fencepost_tool::files;
use fencepost_tool::report::Report as Page;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `fencepost report`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Report {
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Files of plans, and documents of measured times, which end in .json
    #[arg(value_name = "PLAN or DOCUMENT", required = true, value_hint = ValueHint::FilePath)]
    subjects: Vec<PathBuf>,
}

const AFTER: &str = "\
The page shows who sends to whom, the rounds, the predicted time of each class of ranks by cause, the modes, and the \
lines of the source. It is one file, and needs no network.

Examples:
  fencepost report -o exchange.html plans/exchange-64.plan
  fencepost compare --json plans/exchange-4.plan >times.json
  fencepost report -o times.html plans/exchange-4.plan times.json";

impl Report {
    /// Writes the page.
    pub fn run(&self) -> ExitCode {
        let (mut plans, mut measured) = (Vec::new(), Vec::new());
        for subject in &self.subjects {
            let read = if subject.extension().is_some_and(|extension| extension == "json") {
                let named = |why: String| format!("{}: {why}", subject.display());
                let document = files::text(subject)
                    .and_then(|text| MeasurementDocument::from_json(&text).map_err(named));
                document.map(|document| measured.push(document))
            } else {
                open(subject).map(|plan| plans.push(plan))
            };
            if let Err(why) = read {
                return usage(&why);
            }
        }
        let progress = Progress::of("drawing");
        let page = Page::new(&plans, &measured).and_then(|page| page.to_html());
        drop(progress);
        let page = match page {
            Ok(page) => page,
            Err(why) => return fail(fencepost_job::FAILED, &why),
        };
        match &self.output {
            None => print(page.as_bytes()),
            Some(path) => match files::write(path, page.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => usage(&why),
            },
        }
    }
}
