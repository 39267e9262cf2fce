//! Functions that list, verify and prune the snapshots of a folder, for `fencepost snapshots`.

use crate::compare::{check_array, check_box, wrong_in_file};
use crate::folder::{self, Folder};
use crate::manifest::{Content, Manifest, Refused, file_of_block, file_of_rank};
use crate::restore::describe;
use std::fs::File;
use std::io;
use std::path::Path;

/// A snapshot of a folder.
#[derive(Debug)]
pub struct Stored {
    /// The step after which the snapshot was taken.
    pub step: u64,
    /// The manifest, or the reason why it cannot be used.
    pub manifest: Result<Manifest, String>,
}

/// Returns the snapshots of a folder, the latest first.
///
/// # Errors
/// Fails if the folder cannot be read.
#[track_caller]
pub fn list(path: &Path) -> io::Result<Vec<Stored>> {
    Ok(folder::steps(path)?
        .into_iter()
        .map(|step| {
            let manifest = folder::manifest(path, step).map_err(|refused| match refused {
                Refused::Damaged(why) | Refused::Foreign(why) | Refused::Unreadable(why) => why,
            });
            Stored { step, manifest }
        })
        .collect())
}

/// Checks that a folder is a folder of snapshots, or empty.
///
/// # Errors
/// Fails if the folder cannot be read. Also fails if the folder has files although no job has ever
/// used it for snapshots.
#[track_caller]
pub fn check(path: &Path) -> io::Result<()> {
    let is_used = folder::is_used(path) || !folder::steps(path)?.is_empty();
    if is_used || std::fs::read_dir(path)?.next().is_none() {
        return Ok(());
    }
    let why =
        "this is not a folder of snapshots: give the folder that the program passes to `Snapshots::new`";
    Err(io::Error::other(format!("{}: {why}", path.display())))
}

/// Compares all bytes of a snapshot with the checksums of its manifest. Returns a description of
/// each difference, with the file and the offset. In the folder of one host, files of ranks may be
/// missing.
pub fn verify(path: &Path, manifest: &Manifest) -> Vec<String> {
    let folder = folder::snapshot(path, manifest.step);
    let mut wrong = Vec::new();
    let mut note = |name: &str, checked: Result<(), String>| {
        wrong.extend(checked.err().map(|why| format!("{}: {why}", folder.join(name).display())));
    };
    for item in &manifest.items {
        let Content::Block { shape, boxes } = &item.content else { continue };
        if manifest.copies.is_some() {
            continue;
        }
        let name = file_of_block(&item.name);
        let file = File::open(folder.join(&name)).map_err(|error| error.to_string());
        match file.and_then(|file| check_array(&file, item, shape).map(|()| file)) {
            Err(why) => note(&name, Err(why)),
            Ok(file) => boxes.iter().for_each(|one| note(&name, check_box(&file, item, shape, one))),
        }
    }
    if manifest.has_files() {
        let files = (0..manifest.ranks).map(|rank| (rank, folder.join(file_of_rank(rank))));
        // If each host has a folder, a file that is missing here may be in the folder of another
        // host.
        let here = files.filter(|(_, path)| manifest.copies.is_none() || path.exists());
        wrong.extend(here.flat_map(|(rank, path)| wrong_in_file(&path, manifest, rank)));
    }
    wrong
}

/// Returns how many ranks have a file in this folder, if it is the folder of one host.
pub fn ranks_here(path: &Path, manifest: &Manifest) -> Option<usize> {
    manifest.copies?;
    let folder = folder::snapshot(path, manifest.step);
    Some((0..manifest.ranks).filter(|&rank| folder.join(file_of_rank(rank)).exists()).count())
}

/// Removes all snapshots but the latest `keep`.
///
/// # Errors
/// Fails if the folder does not exist, if a job uses it, or if a snapshot cannot be removed.
#[track_caller]
pub fn prune(path: &Path, keep: usize) -> io::Result<()> {
    folder::steps(path)?;
    let _held = Folder::take(path, "fencepost snapshots", "")?;
    folder::prune(path, &[], keep)
}

impl Manifest {
    /// Returns the program that has taken the snapshot.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the number of ranks that have taken the snapshot.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns when the snapshot was complete, in seconds since 1970 (UTC).
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the name and a description of each item.
    pub fn items(&self) -> impl Iterator<Item = (&str, String)> {
        self.items.iter().map(|item| (&item.name[..], describe(item)))
    }
}
