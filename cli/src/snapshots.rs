//! `fencepost snapshots`: lists, verifies and prunes the snapshots in a folder.

use crate::plans::DIFFERS;
use crate::predict::aligned;
use crate::progress::Progress;
use crate::{count, fail, print, usage};
use clap::{Args, ValueHint};
use fencepost_snapshots::stored::{self, Stored};
use fencepost_tool::documents::{Content, SnapshotRow, SnapshotsDocument};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `fencepost snapshots`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Snapshots {
    /// Compare all bytes with their checksums
    #[arg(long)]
    verify: bool,
    /// First remove all snapshots but the latest COUNT
    #[arg(long, value_name = "COUNT", value_parser = count::<NonZeroUsize>)]
    keep: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The folder that the program has given to `Snapshots::new`, or that of one host
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

const AFTER: &str = "\
A program restores the latest snapshot that is intact. The exit code is 1 if a snapshot is not, as far as it was read: \
without --verify only manifests are.

If each host has a folder of its own, the state also has the number of ranks whose files are here. Those of other \
ranks are in the folders of other hosts.

Examples:
  fencepost snapshots out/snapshots
  fencepost snapshots --verify out/snapshots
  fencepost snapshots --keep 1 out/snapshots";

impl Snapshots {
    /// Prints a line for each snapshot.
    pub fn run(&self) -> ExitCode {
        if let Err(why) = stored::check(&self.folder) {
            return usage(&why.to_string());
        }
        if let Some(keep) = self.keep
            && let Err(error) = stored::prune(&self.folder, keep.get())
        {
            return usage(&error.to_string());
        }
        let all = match stored::list(&self.folder) {
            Ok(all) => all,
            Err(error) => return usage(&error.to_string()),
        };
        let progress = self.verify.then(|| Progress::of("verifying"));
        let snapshots = all.iter().map(|one| self.row(one)).collect();
        drop(progress);
        let document = SnapshotsDocument { snapshots };
        let errors: Vec<String> = document.snapshots.iter().flat_map(|row| row.errors.clone()).collect();
        let text = if self.json {
            Content::Snapshots(document).to_json()
        } else if document.snapshots.is_empty() {
            format!("{}: no snapshots\n", self.folder.display())
        } else {
            self.table(&document)
        };
        let printed = print(text.as_bytes());
        errors.iter().fold(printed, |_, why| fail(DIFFERS, why))
    }

    fn row(&self, Stored { step, manifest }: &Stored) -> SnapshotRow {
        match manifest {
            Ok(manifest) => SnapshotRow {
                step: *step,
                program: Some(manifest.program().into()),
                taken: Some(manifest.taken()),
                ranks: Some(manifest.ranks()),
                ranks_here: stored::ranks_here(&self.folder, manifest),
                bytes: Some(manifest.bytes()),
                items: manifest.items().map(|(name, what)| (name.into(), what)).collect(),
                errors: if self.verify { stored::verify(&self.folder, manifest) } else { Vec::new() },
            },
            Err(why) => SnapshotRow {
                step: *step,
                program: None,
                taken: None,
                ranks: None,
                ranks_here: None,
                bytes: None,
                items: Default::default(),
                errors: vec![why.clone()],
            },
        }
    }

    fn table(&self, document: &SnapshotsDocument) -> String {
        const HEAD: [&str; 7] = ["step", "taken", "program", "ranks", "bytes", "items", "state"];
        let row = |row: &SnapshotRow| {
            let known = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            let taken = row.taken.and_then(|taken| jiff::Timestamp::from_second(taken as i64).ok());
            let items: Vec<&str> = row.items.keys().map(String::as_str).collect();
            let state = match (row.errors.is_empty(), self.verify) {
                (false, _) => "not usable",
                (true, true) => "intact",
                (true, false) => "complete",
            };
            let here = row.ranks_here.map_or(String::new(), |here| format!(", {here} ranks here"));
            vec![
                row.step.to_string(),
                known(taken.map(|taken| taken.to_string())),
                known(row.program.clone()),
                known(row.ranks.map(|ranks| ranks.to_string())),
                known(row.bytes.map(|bytes| bytes.to_string())),
                known(Some(items.join(", ")).filter(|items| !items.is_empty())),
                format!("{state}{here}"),
            ]
        };
        let rows = document.snapshots.iter().map(row).collect();
        aligned(&HEAD.map(String::from), rows, &["taken", "program", "items", "state"])
    }
}
