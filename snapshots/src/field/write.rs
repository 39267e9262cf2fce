//! Writes the cells of all ranks to a temporary file, which then replaces an older file.

use super::{BUFFER, DIRECT, check_len, failed};
use crate::cells::file_runs;
use crate::header;
use fencepost_planner::element::Op;
use fencepost_planner::grid::Block;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::{Element, World};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// See [`Field::save`](super::Field::save).
#[track_caller]
pub(super) fn save<T: Element, const D: usize>(
    world: &World,
    block: &Block<D>,
    cells: &[T],
    path: &Path,
) -> Result<()> {
    let site = Location::caller();
    let header = header::bytes(&header::descr::<T>(), &block.global());
    let whole = agree(world, check(world, block, cells, path, header.len()), site)?;

    let mut temporary = None;
    let created = match world.rank() {
        0 => Temporary::create(path, &header, whole.len).map(|created| temporary = Some(created)),
        _ => Ok(()),
    };
    // The name of rank 0's file and the description of its array. The other ranks compare the
    // description with their own.
    let mut text = temporary.as_ref().map_or(Vec::new(), |created: &Temporary| {
        format!("{}\n{}", created.name, whole.description).into_bytes()
    });
    world.broadcast_vec(0, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let written = created.and_then(|()| match text.split_once('\n') {
        // Rank 0 reports its own error.
        None => Ok(()),
        Some((_, theirs)) if theirs != whole.description => Err(Error::new(
            ErrorClass::Arg,
            format!(
                "rank 0 saves {theirs}, and rank {} saves {}: all ranks must save one array to one file",
                world.rank(),
                whole.description
            ),
        )),
        Some((name, _)) => {
            let file = open(&folder_of(path).join(name), whole.len, world.rank())?;
            let data = header.len() as u64;
            let written = write(&file, data, block, cells).and_then(|()| file.sync_all());
            written.map_err(|error| failed(path, "the field cannot be written", error))
        }
    });
    agree(world, written, site)?;
    agree(world, temporary.map_or(Ok(()), |temporary| temporary.publish(path)), site)
}

/// The file that all ranks write together.
struct Whole {
    /// The length of the file.
    len: u64,
    description: String,
}

/// Checks the arguments of one rank.
fn check<T: Element, const D: usize>(
    world: &World,
    block: &Block<D>,
    cells: &[T],
    path: &Path,
    header: usize,
) -> Result<Whole> {
    let (rank, ranks) = (world.rank(), world.size());
    if (block.rank(), block.ranks()) != (rank, ranks) {
        let message = format!(
            "the block is that of rank {} of {}, and this is rank {rank} of {ranks}: make it by `Block::new(world, ..)`",
            block.rank(),
            block.ranks()
        );
        return Err(Error::new(ErrorClass::Arg, message));
    }
    check_len(block, cells)?;
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        let message = format!("{}: it names a folder; give the path of a file", path.display());
        return Err(Error::new(ErrorClass::Arg, message));
    };
    let global = block.global();
    let bytes = global.iter().try_fold(size_of::<T>() as u64, |all, &cells| all.checked_mul(cells as u64));
    let len = bytes.and_then(|bytes| bytes.checked_add(header as u64)).filter(|&len| len <= i64::MAX as u64);
    let Some(len) = len else {
        let message = format!("an array of {global:?} cells is more than a file holds");
        return Err(Error::new(ErrorClass::Size, message));
    };
    let description = format!(
        "an array of {global:?} cells of '{}', cut into {:?} blocks, to {name:?}",
        header::descr::<T>(),
        block.dims()
    );
    Ok(Whole { len, description })
}

/// If any rank has an error, returns an error on all ranks. A rank that has an error returns that
/// error; the others return the error of the lowest rank that has an error.
#[track_caller]
fn agree<R>(world: &World, own: Result<R>, site: &'static Location<'static>) -> Result<R> {
    let rank = world.rank();
    let failed = world.allreduce_one(if own.is_err() { rank } else { world.size() }, Op::Min)?;
    if failed == world.size() {
        return own;
    }
    // The report is a byte for the class, followed by the message.
    let mut report = own.as_ref().err().map_or(Vec::new(), |error| {
        let class = ErrorClass::ALL.into_iter().position(|class| class == error.class());
        [&[class.unwrap_or_default() as u8], error.message().as_bytes()].concat()
    });
    world.broadcast_vec(failed, &mut report)?;
    let error = own.err().unwrap_or_else(|| {
        let class = report.first().and_then(|&class| ErrorClass::ALL.get(usize::from(class)).copied());
        let message = String::from_utf8_lossy(report.get(1..).unwrap_or_default());
        let message = format!("the field could not be saved: rank {failed}: {message}");
        Error::new(class.unwrap_or(ErrorClass::Io), message).secondary()
    });
    Err(error.on_rank(rank).at(site))
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is not complete yet, in the folder of the final file. The file is removed when this
/// value is dropped, unless the file was published.
struct Temporary {
    name: String,
    path: PathBuf,
    file: File,
}

impl Temporary {
    /// Creates the file that later replaces the file at `path`, and sets its header and its length.
    fn create(path: &Path, header: &[u8], len: u64) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // This name is unique even in a folder that hosts share, and short even if the name of the
        // final file is long.
        let name = format!(".writing-{}-{count}-{time:x}.npy", std::process::id());
        let temporary = folder_of(path).join(&name);
        let what = "the field cannot be written, since a file cannot be created in its folder";
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = file.map_err(|error| failed(path, what, error))?;
        let created = Self { name, path: temporary, file };
        let set = created.file.set_len(len).and_then(|()| created.file.write_all_at(header, 0));
        let what = format!("a file of {len} bytes cannot be written");
        set.map(|()| created).map_err(|error| failed(path, &what, error))
    }

    /// Renames the file to `path`.
    fn publish(self, path: &Path) -> Result<()> {
        let unwritten = |error| failed(path, "the complete file cannot be moved to this path", error);
        fs::rename(&self.path, path).map_err(unwritten)?;
        File::open(folder_of(path)).and_then(|folder| folder.sync_all()).map_err(unwritten)
    }
}

/// Removes the file, unless it was renamed.
impl Drop for Temporary {
    fn drop(&mut self) {
        // If the file cannot be removed, it is left behind.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the file that rank 0 has created.
fn open(path: &Path, len: u64, rank: usize) -> Result<File> {
    let hidden = || {
        let message = format!(
            "rank 0 has created {}, and rank {rank} does not see it: give all ranks one absolute path, \
             on a file system that their hosts share",
            path.display()
        );
        Error::new(ErrorClass::Io, message)
    };
    let file = OpenOptions::new().write(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => hidden(),
        _ => failed(path, "the field cannot be written", error),
    })?;
    let found = file.metadata().map_err(|error| failed(path, "the field cannot be written", error))?.len();
    if found == len { Ok(file) } else { Err(hidden()) }
}

/// Writes a block's own cells to the file of the whole array. The elements of the file begin at
/// offset `data`.
fn write<T: Element, const D: usize>(
    file: &File,
    data: u64,
    block: &Block<D>,
    cells: &[T],
) -> io::Result<()> {
    let (extent, widths, strides) = (block.extent(), block.widths(), block.strides());
    let row = extent[D - 1];
    // The first cells of this block's rows, in the order of the file.
    let mut rows = (0..extent[..D - 1].iter().product()).map(|number: usize| {
        let (mut rest, mut cell) = (number, widths[D - 1]);
        for d in (0..D - 1).rev() {
            cell += (widths[d] + rest % extent[d]) * strides[d];
            rest /= extent[d];
        }
        cell
    });
    let mut packed = Packed { file, at: 0, bytes: Vec::new() };
    for (first, len) in file_runs(&block.global(), &block.origin(), &extent) {
        packed.at = data + first * size_of::<T>() as u64;
        // The range in `cells` of the latest rows that are consecutive in memory as well as in the
        // file.
        let mut joined = 0..0;
        for cell in rows.by_ref().take(len / row) {
            if cell != joined.end {
                packed.add(bytemuck::cast_slice(&cells[joined]))?;
                joined = cell..cell;
            }
            joined.end += row;
        }
        let last: &[u8] = bytemuck::cast_slice(&cells[joined]);
        if packed.bytes.is_empty() {
            packed.write(last)?;
        } else {
            packed.add(last)?;
        }
        packed.flush()?;
    }
    Ok(())
}

/// A buffer of bytes that are consecutive in the file.
struct Packed<'a> {
    file: &'a File,
    /// The offset in the file at which `bytes` begin.
    at: u64,
    bytes: Vec<u8>,
}

impl Packed<'_> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= DIRECT || self.bytes.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= DIRECT {
            return self.write(bytes);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.write(&bytes)?;
        self.bytes = bytes;
        self.bytes.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
