//! What a folder of snapshots has, for `fencepost snapshots`: lists, verifies and prunes.

use crate::folder::{self, Folder};
use crate::manifest::{Content, Manifest, Refused, file_of_block, file_of_rank};
use crate::restore::{check_array, check_box, check_bytes, check_length, describe};
use std::fs::File;
use std::io;
use std::path::Path;

/// A snapshot of a folder.
#[derive(Debug)]
pub struct Stored {
    /// The step after which it was taken.
    pub step: u64,
    /// Its manifest, or why it cannot be used.
    pub manifest: Result<Manifest, String>,
}

/// Returns the snapshots of a folder, the latest first.
///
/// # Errors
/// The folder cannot be read.
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

/// Compares all bytes of a snapshot with the checksums of its manifest. Returns what is wrong, each
/// with the file and the offset.
pub fn verify(path: &Path, manifest: &Manifest) -> Vec<String> {
    let folder = folder::snapshot(path, manifest.step);
    let mut wrong = Vec::new();
    let mut note = |name: &str, checked: Result<(), String>| {
        wrong.extend(checked.err().map(|why| format!("{}: {why}", folder.join(name).display())));
    };
    let open = |name: &str| File::open(folder.join(name)).map_err(|error| error.to_string());
    for item in &manifest.items {
        let Content::Block { shape, boxes } = &item.content else { continue };
        let name = file_of_block(&item.name);
        match open(&name).and_then(|file| check_array(&file, item, shape).map(|()| file)) {
            Err(why) => note(&name, Err(why)),
            Ok(file) => boxes.iter().for_each(|one| note(&name, check_box(&file, item, shape, one))),
        }
    }
    for rank in 0..if manifest.has_pieces() { manifest.ranks } else { 0 } {
        let name = file_of_rank(rank);
        let length = manifest.length_of(rank);
        match open(&name).and_then(|file| check_length(&file, length).map(|()| file)) {
            Err(why) => note(&name, Err(why)),
            Ok(file) => {
                for item in &manifest.items {
                    let (Content::Part { pieces } | Content::List { pieces }) = &item.content else {
                        continue;
                    };
                    let piece = &pieces[rank];
                    let len = (piece.elements * item.size) as u64;
                    note(&name, check_bytes(&file, piece.at, len, piece.crc32));
                }
            }
        }
    }
    wrong
}

/// Removes all snapshots but the latest `keep`.
///
/// # Errors
/// There is no folder, a job uses it, or a snapshot cannot be removed.
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

    /// Returns the number of ranks that have taken it.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns when it was complete, in seconds since 1970 (UTC).
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the name and a description of each item.
    pub fn items(&self) -> impl Iterator<Item = (&str, String)> {
        self.items.iter().map(|item| (&item.name[..], describe(item)))
    }
}
