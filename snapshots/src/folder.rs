//! [`Folder`]: the folder of a program's snapshots. Only one job at a time holds it.
//!
//! ```text
//! out/snapshots/
//!     lock             the job that holds the folder, by a lock of the system
//!     step-40/         a snapshot
//!         manifest.json    written last
//!         heights.npy      the array of an item that is a block
//!         rank-0.parts     what else rank 0 has saved
//!     writing-50/      becomes step-50 when all of it is on the disk
//!     removing-30/     was step-30
//! ```
//!
//! If each host has a folder of its own, there are no files of arrays. Instead, `rank-0.parts` also
//! has the cells of rank 0. Each folder has the files of the host's ranks, and copies of files of
//! other ranks.

use crate::agreement::print;
use crate::manifest::{BYTES_MAX, Manifest, Refused};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const MANIFEST: &str = "manifest.json";
const LOCK: &str = "lock";
const STEP: &str = "step-";
const WRITING: &str = "writing-";
const REMOVING: &str = "removing-";

/// The longest text that describes the holder of a folder, in bytes.
const HOLDER_MAX: u64 = 4096;

/// A folder that this process holds. The lock is released when this value is dropped, or when the
/// process ends for any reason.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Takes the folder at `path`, and creates it if it does not exist. Removes unfinished
    /// snapshots of an interrupted job.
    ///
    /// # Errors
    /// Fails if another job holds the folder, or if the folder cannot be written.
    pub(crate) fn take(path: &Path, program: &str, token: &str) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(|error| named(path, error))?;
        let name = path.join(LOCK);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name)
            .map_err(|error| named(&name, error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _: io::Result<usize> = (&mut lock).take(HOLDER_MAX).read_to_string(&mut holder);
                let holder = holder.lines().next().filter(|line| !line.is_empty()).unwrap_or("another job");
                return Err(io::Error::other(format!(
                    "{}: {holder} holds this folder: wait until it has ended, or use another folder",
                    path.display()
                )));
            }
            // The file system has no locks, so nothing prevents two jobs from using one folder.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) => {}
            Err(error) => return Err(named(&name, error.into())),
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let holder = format!("{program} (process {} on host {host})\n{token}\n", std::process::id());
        // Sync, since ranks on other hosts read this text next.
        lock.set_len(0)
            .and_then(|()| lock.write_all(holder.as_bytes()))
            .and_then(|()| lock.sync_all())
            .map_err(|error| named(&name, error))?;
        let folder = Self { path: path.into(), _lock: lock };
        for entry in fs::read_dir(path).map_err(|error| named(path, error))? {
            let entry = entry.map_err(|error| named(path, error))?;
            let name = entry.file_name();
            let is_left = [WRITING, REMOVING].iter().any(|prefix| step_of(&name, prefix).is_some());
            if is_left && let Err(error) = fs::remove_dir_all(entry.path()) {
                // This job can continue: the folder is not a snapshot, and a later job can remove
                // it.
                print(&format!(
                    "a folder that an earlier job has left cannot be removed: {}",
                    named(&entry.path(), error)
                ));
            }
        }
        Ok(folder)
    }

    /// Writes the manifest to the folder to which all ranks have written, and gives the folder the
    /// name of a snapshot.
    ///
    /// # Errors
    /// Fails if a file or folder cannot be written. Older snapshots are then unchanged.
    pub(crate) fn publish(&self, manifest: &Manifest) -> io::Result<()> {
        let (from, to) = (writing(&self.path, manifest.step), snapshot(&self.path, manifest.step));
        let name = from.join(MANIFEST);
        let mut file = File::create(&name).map_err(|error| named(&name, error))?;
        file.write_all(manifest.to_text().as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| named(&name, error))?;
        sync_folder(&from)?;
        if to.exists() {
            remove(&self.path, manifest.step)?;
        }
        fs::rename(&from, &to).map_err(|error| named(&from, error))?;
        sync_folder(&self.path)
    }
}

/// Returns whether any job has ever taken this folder.
pub(crate) fn is_used(folder: &Path) -> bool {
    folder.join(LOCK).is_file()
}

/// Removes the files of the snapshot of `step`, if there are any. `is_published` is set if the
/// snapshot was published in this folder, but could not be written to another folder.
pub(crate) fn discard(folder: &Path, step: u64, is_published: bool) {
    // Files that cannot be removed now are removed by the next job.
    let _: io::Result<()> =
        if is_published { remove(folder, step) } else { fs::remove_dir_all(writing(folder, step)) };
}

/// Returns whether a rank of this job has taken the folder at `path` with the token `token`.
pub(crate) fn is_taken_with(path: &Path, token: &str) -> bool {
    let mut holder = String::new();
    let read = File::open(path.join(LOCK)).and_then(|file| file.take(HOLDER_MAX).read_to_string(&mut holder));
    read.is_ok() && holder.lines().nth(1) == Some(token)
}

/// Returns the folder in which the snapshot of `step` is written.
pub(crate) fn writing(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("{WRITING}{step}"))
}

/// Returns the folder of the snapshot of `step`.
pub(crate) fn snapshot(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("{STEP}{step}"))
}

/// Returns the step in the name of a folder that begins with `prefix`. Other names, such as
/// `step-007` or `step-+7`, have no step.
fn step_of(name: &OsStr, prefix: &str) -> Option<u64> {
    let number = name.to_str()?.strip_prefix(prefix)?;
    number.parse().ok().filter(|step: &u64| step.to_string() == number)
}

/// Returns the steps that have snapshots, the latest first. A folder without a manifest is not a
/// snapshot.
///
/// # Errors
/// Fails if the folder cannot be read.
pub(crate) fn steps(folder: &Path) -> io::Result<Vec<u64>> {
    let mut steps = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| named(folder, error))? {
        let entry = entry.map_err(|error| named(folder, error))?;
        if let Some(step) = step_of(&entry.file_name(), STEP)
            && entry.path().join(MANIFEST).exists()
        {
            steps.push(step);
        }
    }
    steps.sort_unstable_by(|a, b| b.cmp(a));
    Ok(steps)
}

/// Reads the manifest of the snapshot of `step`.
///
/// # Errors
/// Fails if the file can't be read, is damaged, or is of a newer release. The reason names the
/// file.
pub(crate) fn manifest(folder: &Path, step: u64) -> Result<Manifest, Refused> {
    let path = snapshot(folder, step).join(MANIFEST);
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData => Refused::Damaged(named(&error)),
        _ => Refused::Unreadable(named(&error)),
    })?;
    let manifest = Manifest::from_text(&text).map_err(|refused| match refused {
        Refused::Damaged(why) => Refused::Damaged(named(&why)),
        Refused::Foreign(why) | Refused::Unreadable(why) => Refused::Foreign(named(&why)),
    })?;
    if manifest.step != step {
        return Err(Refused::Damaged(named(&format!("it is the manifest of step {}", manifest.step))));
    }
    Ok(manifest)
}

/// Removes the `damaged` snapshots, and all but the latest `keep` of the other snapshots.
///
/// # Errors
/// Fails if a snapshot can't be removed.
pub(crate) fn prune(folder: &Path, damaged: &[u64], keep: usize) -> io::Result<()> {
    let (others, mut old): (Vec<u64>, Vec<u64>) =
        steps(folder)?.into_iter().partition(|step| !damaged.contains(step));
    old.extend(others.into_iter().skip(keep));
    old.into_iter().try_for_each(|step| remove(folder, step))
}

/// Removes a snapshot. The folder is renamed first, so that a folder with the name of a snapshot is
/// never incomplete.
fn remove(folder: &Path, step: u64) -> io::Result<()> {
    let (from, to) = (snapshot(folder, step), folder.join(format!("{REMOVING}{step}")));
    fs::rename(&from, &to).map_err(|error| named(&from, error))?;
    fs::remove_dir_all(&to).map_err(|error| named(&to, error))
}

/// Writes the entries of a folder to the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| named(path, error))
}

/// Adds the path to an error.
pub(crate) fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns the seconds since 1970 (UTC).
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
