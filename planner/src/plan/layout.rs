//! The frame of a plan file: a header, a table of sections, and the sections.
//!
//! ```text
//! magic 8 | version u32 | sections u32 | length of the file u64 | digest 32
//! per section: name 8 | offset u64 | length u64 | checksum u64
//! the sections, one after another, nothing between or behind
//! ```
//! All numbers are little-endian. A checksum is the first 8 bytes of a section's BLAKE3 hash. The
//! digest is the BLAKE3 hash of the version of schedules, and of the names, lengths and bytes of
//! all sections but the last two, `made for` and `made by`. So equal schedules have equal digests,
//! whichever release of the tool wrote them and whichever machine they are for. No byte of a file
//! can change unnoticed.

use super::Digest;
use crate::error::{Error, ErrorClass, Result};

/// The first bytes of a plan file. No text file begins with them, and transferring a plan as text
/// destroys them.
const MAGIC: [u8; 8] = *b"\x89FPLAN\r\n";
/// The version of the format. Version 1 did not record how a superstep synchronises. Version 2 did
/// not record what a plan was made for.
const VERSION: u32 = 3;
/// The version of the sections of the schedule. Version 3 of the format did not change these
/// sections, so a schedule has the same digest as in version 2.
const SCHEDULES: u32 = 2;
const HEADER: usize = 56;
const ENTRY: usize = 32;

/// The names of the sections, in order.
pub(super) const SECTIONS: [&str; 7] =
    ["schedule", "classes", "files", "datatype", "programs", "made for", "made by"];
/// The digest covers the first `OF_SCHEDULE` sections.
const OF_SCHEDULE: usize = 5;

/// One value for each section.
pub(super) type Sections<T> = [T; SECTIONS.len()];

/// Computes the digest of the sections.
pub(super) fn digest<T: AsRef<[u8]>>(sections: &Sections<T>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&SCHEDULES.to_le_bytes());
    for (name, section) in SECTIONS.iter().zip(sections).take(OF_SCHEDULE) {
        let section = section.as_ref();
        hasher.update(&tag(name)).update(&(section.len() as u64).to_le_bytes()).update(section);
    }
    Digest(*hasher.finalize().as_bytes())
}

/// Assembles the file from its sections.
pub(super) fn assemble(sections: &Sections<Vec<u8>>) -> Vec<u8> {
    let first = HEADER + ENTRY * SECTIONS.len();
    let length = first + sections.iter().map(Vec::len).sum::<usize>();
    let mut file = Vec::with_capacity(length);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&(SECTIONS.len() as u32).to_le_bytes());
    file.extend_from_slice(&(length as u64).to_le_bytes());
    file.extend_from_slice(&digest(sections).0);
    let mut offset = first;
    for (name, section) in SECTIONS.iter().zip(sections) {
        file.extend_from_slice(&tag(name));
        file.extend_from_slice(&(offset as u64).to_le_bytes());
        file.extend_from_slice(&(section.len() as u64).to_le_bytes());
        file.extend_from_slice(&checksum(section));
        offset += section.len();
    }
    sections.iter().for_each(|section| file.extend_from_slice(section));
    file
}

/// Splits a file after its first plan. The header of the plan contains the plan's length. If this
/// length is not valid, the first part is the whole file.
pub(super) fn split(file: &[u8]) -> (&[u8], &[u8]) {
    let says = if file.len() < HEADER { 0 } else { u64_at(file, 16) };
    let length = usize::try_from(says).ok().filter(|length| (HEADER..=file.len()).contains(length));
    file.split_at(length.unwrap_or(file.len()))
}

/// Returns the sections of a file and its digest, after checking both.
///
/// # Errors
/// FILE, with what was found and what to do next.
pub(super) fn open(file: &[u8]) -> Result<(Sections<&[u8]>, Digest)> {
    let bad = |what: String| Error::new(ErrorClass::File, what);
    let again = "compile the plan again";
    let truncated = |expected: u64| {
        let found = file.len();
        bad(format!("the plan file is truncated: {found} bytes of {expected}; copy it again, or {again}"))
    };
    let magic = &file[..file.len().min(MAGIC.len())];
    if magic != &MAGIC[..magic.len()] || magic.is_empty() {
        let found =
            if magic.is_empty() { "it is empty".into() } else { format!("it begins with {magic:02x?}") };
        return Err(bad(format!(
            "this is not a plan file: {found}, and a plan begins with {MAGIC:02x?}; give a file that `save` or `fencepost plan` wrote"
        )));
    }
    if file.len() < HEADER {
        return Err(truncated(HEADER as u64));
    }
    let version = u32_at(file, 8);
    if version != VERSION {
        let way_out =
            if version > VERSION { "update Fencepost, or compile the plan with this one" } else { again };
        return Err(bad(format!(
            "the plan file has format version {version}, this program reads {VERSION}: {way_out}"
        )));
    }
    let (count, length) = (u32_at(file, 12), u64_at(file, 16));
    if count as usize != SECTIONS.len() {
        let expected = SECTIONS.len();
        return Err(bad(format!(
            "the plan file is damaged: {count} sections where {expected} are expected; {again}"
        )));
    }
    if (file.len() as u64) < length {
        return Err(truncated(length));
    }
    if file.len() as u64 > length {
        let more = file.len() as u64 - length;
        return Err(bad(format!(
            "the plan file is damaged: {more} bytes behind its end at {length}; {again}"
        )));
    }
    let first = HEADER + ENTRY * SECTIONS.len();
    if file.len() < first {
        return Err(truncated(first as u64));
    }
    let mut sections = [&file[..0]; SECTIONS.len()];
    let mut end = first as u64;
    for (i, name) in SECTIONS.iter().enumerate() {
        let entry = &file[HEADER + ENTRY * i..][..ENTRY];
        let (offset, length) = (u64_at(entry, 8), u64_at(entry, 16));
        let section = offset.checked_add(length).filter(|&after| after <= file.len() as u64);
        let Some(after) = section.filter(|_| entry[..8] == tag(name) && offset == end) else {
            return Err(bad(format!(
                "the plan file is damaged: section {i} is `{}` of {length} bytes at {offset}, \
                 expected `{name}` at {end}, ending by {}; {again}",
                entry[..8].escape_ascii(),
                file.len()
            )));
        };
        // Both offsets are at most the file's length.
        sections[i] = &file[offset as usize..after as usize];
        if entry[24..] != checksum(sections[i]) {
            return Err(bad(format!(
                "the plan file is damaged: section `{name}` does not have the checksum it was written with; \
                 copy the file again, or {again}"
            )));
        }
        end = after;
    }
    if end != length {
        return Err(bad(format!("the plan file is damaged: its sections end at {end} of {length}; {again}")));
    }
    let digest = digest(&sections);
    if file[24..HEADER] != digest.0 {
        return Err(bad(format!(
            "the plan file was edited: it has digest {digest}, but names another; {again}"
        )));
    }
    Ok((sections, digest))
}

/// Returns a section's name as stored in the file: 8 bytes, padded with zeros.
fn tag(name: &str) -> [u8; 8] {
    let mut tag = [0; 8];
    tag[..name.len()].copy_from_slice(name.as_bytes());
    tag
}

fn checksum(section: &[u8]) -> [u8; 8] {
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&blake3::hash(section).as_bytes()[..8]);
    checksum
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
