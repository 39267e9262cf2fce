//! [`Manifest`]: the description of a snapshot's contents. It is the file `manifest.json`, which is
//! written last.
//!
//! The whole file is JSON. It begins with a prefix of fixed length, which contains the checksum of
//! all following text:
//!
//! ```text
//! {"crc32": "0d4a1185", "snapshot": {
//!   "format": 1, ..
//! }}
//! ```

use crate::header::size_of_element;
use crate::items::is_file_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the format. It is increased when older releases could misread new snapshots.
pub(crate) const FORMAT: u32 = 1;
/// The longest manifest that is read, in bytes. It has room for some items of a million ranks.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

const BEFORE_SUM: &str = "{\"crc32\": \"";
const AFTER_SUM: &str = "\", \"snapshot\": ";
const AT_END: &str = "}\n";

/// The largest total size of all items. It is more than any file system can hold, and so small that
/// offsets do not overflow.
const ALL_MAX: u64 = i64::MAX as u64 / 2;

/// The description of a snapshot's contents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub(crate) format: u32,
    /// The release that has written the snapshot.
    pub(crate) release: String,
    pub(crate) program: String,
    pub(crate) step: u64,
    pub(crate) ranks: usize,
    /// The number of folders to which each rank's file was written, if each host has a folder.
    /// `None` if all ranks share one folder, in which each array is one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copies: Option<usize>,
    /// The time at which the last rank had written its part, in seconds since 1970 (UTC).
    pub(crate) taken: u64,
    pub(crate) items: Vec<Saved>,
}

/// An item of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) name: String,
    /// NumPy's name of the element type.
    pub(crate) element: String,
    /// The size of an element in bytes.
    pub(crate) size: usize,
    #[serde(flatten)]
    pub(crate) content: Content,
}

/// The places where the elements of an item are stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Content {
    /// In the file `NAME.npy`, which has the whole array. Each rank has written a box of the array.
    /// If each host has a folder, the boxes are in the files of the ranks instead.
    Block { shape: Vec<usize>, boxes: Vec<Box> },
    /// In the files of the ranks, one piece for each rank.
    Part { pieces: Vec<Piece> },
    /// Like `Part`, but the number of elements may change.
    List { pieces: Vec<Piece> },
    /// In the manifest itself, as the hexadecimal digits of the bytes of one element.
    Value { bytes: String },
}

/// The cells that a rank has written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Box {
    pub(crate) origin: Vec<usize>,
    pub(crate) extent: Vec<usize>,
    /// The position of the box in the rank's file, which has the cells in row-major order. `None`
    /// if they are in the file of the whole array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    /// The checksum of the cells in row-major order.
    pub(crate) crc32: u32,
}

/// The elements that a rank has written to its own file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Piece {
    /// The position of the first byte in the rank's file.
    pub(crate) at: u64,
    pub(crate) elements: usize,
    pub(crate) crc32: u32,
}

/// The part of an item that is in a rank's own file: a box of cells in row-major order. A piece is
/// a box of one dimension that begins at 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFile<'a> {
    pub(crate) origin: &'a [usize],
    pub(crate) extent: &'a [usize],
    /// The position of the first byte in the file. `len` is the number of bytes.
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) crc32: u32,
}

impl Saved {
    /// Returns the part of this item that is in the file of `rank`, if there is one.
    pub(crate) fn in_file(&self, rank: usize) -> Option<InFile<'_>> {
        let (origin, extent, at, crc32) = match &self.content {
            Content::Block { boxes, .. } => {
                let Box { origin, extent, at, crc32 } = &boxes[rank];
                (&origin[..], &extent[..], (*at)?, *crc32)
            }
            Content::Part { pieces } | Content::List { pieces } => {
                let Piece { at, elements, crc32 } = &pieces[rank];
                (&[0][..], std::slice::from_ref(elements), *at, *crc32)
            }
            Content::Value { .. } => return None,
        };
        let len = extent.iter().fold(self.size as u64, |len, &cells| len.saturating_mul(cells as u64));
        Some(InFile { origin, extent, at, len, crc32 })
    }
}

/// The reason why a manifest is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The manifest is damaged, so an older snapshot is used.
    Damaged(String),
    /// The manifest is intact but cannot be used here, so no snapshot of the folder is used.
    Foreign(String),
    /// The manifest cannot be read at the moment. It may be intact.
    Unreadable(String),
}

impl Manifest {
    /// Returns the text of the file.
    pub(crate) fn to_text(&self) -> String {
        let body = serde_json::to_string_pretty(self).expect("names and numbers are valid JSON");
        let body = format!("{body}{AT_END}");
        with_sum(&body)
    }

    /// Reads the text of a file, and checks that the manifest is consistent.
    ///
    /// # Errors
    /// Fails if the text is damaged, or was written by a newer release.
    pub(crate) fn from_text(text: &str) -> Result<Self, Refused> {
        let damaged = |why: &str| Refused::Damaged(why.into());
        let rest = text.strip_prefix(BEFORE_SUM).ok_or_else(|| damaged("it does not begin as a manifest"))?;
        let (sum, body) = rest.split_once(AFTER_SUM).ok_or_else(|| damaged("its beginning is damaged"))?;
        if sum != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
            return Err(damaged("its checksum is not that of its text"));
        }
        let body = body.strip_suffix(AT_END).ok_or_else(|| damaged("it is cut off"))?;
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            release: String,
        }
        match serde_json::from_str::<Version>(body) {
            Ok(Version { format, release }) if format > FORMAT => {
                return Err(Refused::Foreign(format!(
                    "it was written by release {release} in format {format}, and this release reads formats up to {FORMAT}: use release {release} or newer"
                )));
            }
            Ok(_) => {}
            Err(error) => return Err(damaged(&error.to_string())),
        }
        let manifest: Self = serde_json::from_str(body).map_err(|error| damaged(&error.to_string()))?;
        manifest.check().map_err(Refused::Damaged)?;
        Ok(manifest)
    }

    /// Checks that the manifest is consistent, since a text with a correct checksum may have been
    /// edited.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranks = self.ranks;
        let (mut names, mut all) = (BTreeSet::new(), 0_u64);
        let mut ends: Vec<u64> = Vec::new();
        if self.copies == Some(0) {
            return Err("its files are in no folder".into());
        }
        for item in &self.items {
            let (name, size) = (&item.name, item.size as u64);
            if !is_file_name(name) || !names.insert(name) {
                return Err(format!("the item {name:?} has a name that is not allowed, or used twice"));
            }
            if size_of_element(&item.element) != Some(item.size) {
                return Err(format!("the elements of `{name}` are {:?} of {size} bytes", item.element));
            }
            let mut add = |elements: u64| {
                all = elements
                    .checked_mul(size)
                    .and_then(|bytes| all.checked_add(bytes))
                    .filter(|&all| all <= ALL_MAX)?;
                Some(())
            };
            let too_long = || format!("`{name}` is longer than any file");
            match &item.content {
                Content::Block { shape, boxes } => {
                    let cells = shape.iter().try_fold(1_u64, |all, &cells| all.checked_mul(cells as u64));
                    cells.and_then(&mut add).ok_or_else(too_long)?;
                    if boxes.len() != ranks || !is_whole(shape, boxes) {
                        return Err(format!(
                            "the boxes of `{name}` are not those of a grid of {ranks} ranks over an array of {shape:?} cells"
                        ));
                    }
                    if boxes.iter().any(|one| one.at.is_some() != self.copies.is_some()) {
                        return Err(format!(
                            "a box of `{name}` is not in the kind of file that its snapshot has"
                        ));
                    }
                }
                Content::Part { pieces } | Content::List { pieces } => {
                    if pieces.len() != ranks {
                        return Err(format!("`{name}` has {} pieces on {ranks} ranks", pieces.len()));
                    }
                    let elements = pieces.iter().try_for_each(|piece| add(piece.elements as u64));
                    elements.ok_or_else(too_long)?;
                }
                Content::Value { bytes } => {
                    add(1).ok_or_else(too_long)?;
                    if from_hex(bytes).is_none_or(|bytes| bytes.len() != item.size) {
                        return Err(format!("the value of `{name}` does not have {size} bytes"));
                    }
                    continue;
                }
            }
            // From here on, the item has a box or a piece for each rank.
            ends.resize(ranks, 0);
            for (rank, end) in ends.iter_mut().enumerate() {
                let Some(InFile { at, len, .. }) = item.in_file(rank) else { continue };
                if at != *end {
                    return Err(format!("a piece of `{name}` is not where the piece before it ends"));
                }
                let next = end.checked_add(len).filter(|&next| next <= i64::MAX as u64);
                *end = next.ok_or_else(|| format!("a piece of `{name}` is too long"))?;
            }
        }
        if ranks == 0 { Err("it has no ranks".into()) } else { Ok(()) }
    }

    /// Returns whether the ranks have files of their own.
    pub(crate) fn has_files(&self) -> bool {
        self.ranks > 0 && self.items.iter().any(|item| item.in_file(0).is_some())
    }

    /// Returns the parts of items that are in the file of a rank, in order.
    pub(crate) fn in_file(&self, rank: usize) -> impl Iterator<Item = InFile<'_>> {
        self.items.iter().filter_map(move |item| item.in_file(rank))
    }

    /// Returns the length of a rank's own file.
    pub(crate) fn length_of(&self, rank: usize) -> u64 {
        self.in_file(rank).map(|piece| piece.len).sum()
    }

    /// Returns the checksum of a rank's own file.
    pub(crate) fn sum_of(&self, rank: usize) -> u32 {
        let mut all = crc32fast::Hasher::new();
        for InFile { len, crc32, .. } in self.in_file(rank) {
            all.combine(&crc32fast::Hasher::new_with_initial_len(crc32, len));
        }
        all.finalize()
    }

    /// Returns the size of all items together, in bytes.
    pub fn bytes(&self) -> u64 {
        let of_item = |item: &Saved| {
            let elements: u64 = match &item.content {
                Content::Block { shape, .. } => shape.iter().map(|&cells| cells as u64).product(),
                Content::Part { pieces } | Content::List { pieces } => {
                    pieces.iter().map(|piece| piece.elements as u64).sum()
                }
                Content::Value { .. } => 1,
            };
            elements * item.size as u64
        };
        self.items.iter().map(of_item).sum()
    }
}

/// Returns whether the boxes form a grid that cuts an array of `shape` cells, so that each cell is
/// in exactly one box.
fn is_whole(shape: &[usize], boxes: &[Box]) -> bool {
    let dimensions = shape.len();
    if !(1..=3).contains(&dimensions)
        || boxes.iter().any(|one| one.origin.len() != dimensions || one.extent.len() != dimensions)
    {
        return false;
    }
    // The positions at which the grid cuts each dimension, which are the first cells of the boxes
    // and the ends of the dimension.
    let cuts: Vec<BTreeSet<usize>> = (0..dimensions)
        .map(|d| boxes.iter().map(|one| one.origin[d]).chain([0, shape[d]]).collect())
        .collect();
    let reaches_next = |one: &Box, d: usize| {
        let next = cuts[d].range(one.origin[d].saturating_add(1)..).next();
        one.extent[d] > 0 && next.is_some() && one.origin[d].checked_add(one.extent[d]) == next.copied()
    };
    let origins: BTreeSet<&[usize]> = boxes.iter().map(|one| &one.origin[..]).collect();
    let places = cuts.iter().try_fold(1, |all: usize, cuts| all.checked_mul(cuts.len() - 1));
    boxes.iter().all(|one| (0..dimensions).all(|d| reaches_next(one, d)))
        && origins.len() == boxes.len()
        && places == Some(boxes.len())
}

/// Returns the name of the file of an array.
pub(crate) fn file_of_block(name: &str) -> String {
    format!("{name}.npy")
}

/// Returns the name of a rank's own file.
pub(crate) fn file_of_rank(rank: usize) -> String {
    format!("rank-{rank}.parts")
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of a text of hexadecimal digits, or `None` for any other text.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Puts the checksum before the body of a manifest.
fn with_sum(body: &str) -> String {
    format!("{BEFORE_SUM}{:08x}{AFTER_SUM}{body}", crc32fast::hash(body.as_bytes()))
}

/// For fuzzers: reads bytes that may be a manifest, or its body without the checksum. If they are a
/// manifest, checks that it is written and read back unchanged. Returns whether the bytes are a
/// manifest.
#[cfg(any(test, fuzzing))]
pub fn fuzz_manifest(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(manifest) = Manifest::from_text(text).or_else(|_| Manifest::from_text(&with_sum(text))) else {
        return false;
    };
    assert_eq!(Manifest::from_text(&manifest.to_text()).as_ref(), Ok(&manifest));
    // These calls must not panic, even if the manifest has extreme numbers.
    let last = manifest.ranks.checked_sub(1).filter(|_| manifest.has_files());
    let _ = (manifest.bytes(), last.map(|last| (manifest.length_of(last), manifest.sum_of(last))));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_tests_support::golden;

    /// Returns the manifest of a snapshot in one folder, or in two folders of hosts.
    fn example(copies: Option<usize>) -> Manifest {
        let own = if copies.is_some() { 48 } else { 0 };
        let boxed = |rank: usize| Box {
            origin: vec![2 * rank, 0],
            extent: vec![2, 3],
            at: copies.map(|_| 0),
            crc32: rank as u32,
        };
        let piece = |at: u64, elements: usize| Piece { at, elements, crc32: 7 };
        let item = |name: &str, element: &str, size: usize, content: Content| Saved {
            name: name.into(),
            element: element.into(),
            size,
            content,
        };
        Manifest {
            format: FORMAT,
            release: "0.1.0".into(),
            program: "heat".into(),
            step: 40,
            ranks: 2,
            copies,
            taken: 1_796_000_000,
            items: vec![
                item("heat", "<f8", 8, Content::Block { shape: vec![4, 3], boxes: vec![boxed(0), boxed(1)] }),
                item("seeds", "<u4", 4, Content::Part { pieces: vec![piece(own, 2), piece(own, 3)] }),
                item(
                    "queue",
                    "|V24",
                    24,
                    Content::List { pieces: vec![piece(own + 8, 0), piece(own + 12, 5)] },
                ),
                item("time", "<f4", 4, Content::Value { bytes: "0000803f".into() }),
            ],
        }
    }

    /// If the golden file changes, the format has changed. Later releases must still read files of
    /// the old format.
    #[test]
    fn the_text_of_a_manifest_is_as_documented_and_is_read_back() {
        for (copies, name, own) in [(None, "manifest.json", 0), (Some(2), "manifest-of-host.json", 48)] {
            let manifest = example(copies);
            let text = manifest.to_text();
            golden::compare(env!("CARGO_MANIFEST_DIR"), &format!("tests/golden/{name}"), &text);
            assert_eq!(Manifest::from_text(&text), Ok(manifest.clone()));
            assert_eq!((manifest.length_of(0), manifest.length_of(1)), (own + 8, own + 12 + 120));
            assert_eq!(manifest.bytes(), 96 + 20 + 120 + 4);
        }
    }

    #[test]
    fn boxes_in_files_of_ranks_follow_each_other_and_need_a_number_of_copies() {
        for (copies, at, why) in [
            (None, Some(0), "kind of file"),
            (Some(2), None, "kind of file"),
            (Some(2), Some(8), "is not where the piece before it ends"),
            (Some(0), Some(0), "no folder"),
        ] {
            let mut manifest = Manifest { copies, ..example(Some(2)) };
            if let Content::Block { boxes, .. } = &mut manifest.items[0].content {
                boxes[1].at = at;
            }
            let error = manifest.check().expect_err("it contradicts itself");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_checksum_of_a_file_is_that_of_its_pieces_together() {
        let mut manifest = example(Some(2));
        let bytes: Vec<u8> = (0..manifest.length_of(1)).map(|byte| byte as u8).collect();
        let places: Vec<_> =
            manifest.in_file(1).map(|piece| piece.at as usize..(piece.at + piece.len) as usize).collect();
        let mut sums = places.iter().map(|place| crc32fast::hash(&bytes[place.clone()]));
        for item in &mut manifest.items {
            match &mut item.content {
                Content::Block { boxes, .. } => boxes[1].crc32 = sums.next().expect("a sum"),
                Content::Part { pieces } | Content::List { pieces } => {
                    pieces[1].crc32 = sums.next().expect("a sum");
                }
                Content::Value { .. } => {}
            }
        }
        assert_eq!(manifest.sum_of(1), crc32fast::hash(&bytes));
    }

    #[test]
    fn no_change_of_a_body_with_its_checksum_leads_to_a_panic() {
        for copies in [None, Some(2)] {
            let text = example(copies).to_text();
            let (_, body) = text.split_once(AFTER_SUM).expect("a manifest");
            assert!(fuzz_manifest(body.as_bytes()));
            for at in 0..body.len() {
                fuzz_manifest(&body.as_bytes()[..at]);
                for byte in [b'0', b'9', b'-', b'"', b'[', b'}', 0xff] {
                    let mut changed = body.as_bytes().to_vec();
                    changed[at] = byte;
                    fuzz_manifest(&changed);
                }
            }
        }
    }
}
