//! Compares files of a snapshot with its manifest.

use crate::cells::file_runs;
use crate::header;
use crate::manifest::{Box, Manifest, Saved};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The largest number of bytes that are read at a time for a checksum.
const CHUNK: usize = 1 << 20;

/// Checks that a file begins with the header of this array, and has the length of the header and
/// the array.
pub(crate) fn check_array(file: &File, saved: &Saved, shape: &[usize]) -> Result<(), String> {
    let header = header::bytes(&saved.element, shape);
    let mut found = vec![0; header.len()];
    let cells: usize = shape.iter().product();
    check_length(file, header.len() as u64 + (cells * saved.size) as u64)?;
    file.read_exact_at(&mut found, 0).map_err(|error| error.to_string())?;
    match found.iter().zip(&header).position(|(found, written)| found != written) {
        None => Ok(()),
        Some(at) => Err(format!("its header is not as it was written, from byte {at} on")),
    }
}

/// Compares the checksum of a box of cells with the checksum in the manifest.
pub(crate) fn check_box(file: &File, saved: &Saved, shape: &[usize], one: &Box) -> Result<(), String> {
    let data = header::bytes(&saved.element, shape).len() as u64;
    let mut hasher = crc32fast::Hasher::new();
    for (first, cells) in file_runs(shape, &one.origin, &one.extent) {
        let at = data + first * saved.size as u64;
        add(file, at, (cells * saved.size) as u64, &mut hasher).map_err(|error| error.to_string())?;
    }
    if hasher.finalize() == one.crc32 { Ok(()) } else { Err(mismatch_of_box(saved, shape, one)) }
}

/// Compares the checksum of bytes with the checksum in the manifest.
fn check_bytes(file: &File, at: u64, len: u64, crc32: u32) -> Result<(), String> {
    let mut hasher = crc32fast::Hasher::new();
    add(file, at, len, &mut hasher).map_err(|error| error.to_string())?;
    if hasher.finalize() == crc32 { Ok(()) } else { Err(mismatch(at, len)) }
}

fn add(file: &File, at: u64, len: u64, hasher: &mut crc32fast::Hasher) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK.min(len as usize)];
    let mut done = 0;
    while done < len {
        let now = (len - done).min(CHUNK as u64) as usize;
        file.read_exact_at(&mut bytes[..now], at + done)?;
        hasher.update(&bytes[..now]);
        done += now as u64;
    }
    Ok(())
}

/// Compares the file of a rank with the manifest. Returns a description of each difference.
pub(crate) fn wrong_in_file(path: &Path, manifest: &Manifest, rank: usize) -> Vec<String> {
    let opened = File::open(path).map_err(|error| error.to_string()).and_then(|file| {
        check_length(&file, manifest.length_of(rank))?;
        Ok(file)
    });
    let named = |why: String| format!("{}: {why}", path.display());
    match opened {
        Err(why) => vec![named(why)],
        Ok(file) => manifest
            .in_file(rank)
            .filter_map(|piece| check_bytes(&file, piece.at, piece.len, piece.crc32).err())
            .map(named)
            .collect(),
    }
}

/// Checks the length of a file.
fn check_length(file: &File, written: u64) -> Result<(), String> {
    let found = file.metadata().map_err(|error| error.to_string())?.len();
    if found == written {
        return Ok(());
    }
    Err(format!("it has {found} bytes, where {written} were written"))
}

fn mismatch(at: u64, len: u64) -> String {
    format!("the {len} bytes from byte {at} on are not those that were written: their checksum differs")
}

pub(crate) fn mismatch_of_box(saved: &Saved, shape: &[usize], one: &Box) -> String {
    let cell = file_runs(shape, &one.origin, &one.extent).next().map_or(0, |(first, _)| first);
    format!(
        "the box of {:?} cells that begins at cell {:?}, which is byte {}, is not as it was written: its checksum differs",
        one.extent,
        one.origin,
        header::bytes(&saved.element, shape).len() as u64 + cell * saved.size as u64
    )
}
