//! [`Recorded`]: the report of a rank about an item of a snapshot. The manifest is made from the
//! reports of all ranks.

use crate::items::{Item, Items, Shape};
use crate::manifest::{Box, Content, FORMAT, Manifest, Piece, Saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The report of a rank about one item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) name: String,
    /// NumPy's name of the element type.
    pub(crate) element: String,
    /// The size of an element in bytes.
    pub(crate) size: usize,
    pub(crate) shape: Shape,
    /// The checksum of the bytes that the rank has written.
    pub(crate) crc32: u32,
    /// The bytes of a value, in hexadecimal digits.
    pub(crate) value: Option<String>,
}

/// Describes the properties of an item that must be the same on all ranks.
impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The length of a part may differ between ranks.
        match &self.shape {
            Shape::Part { .. } => write!(f, "`{}`, a part of {}", self.name, self.element),
            shape @ Shape::Block { grid, .. } => {
                write!(f, "`{}`, {shape} of {} on a grid of {grid:?} ranks", self.name, self.element)
            }
            shape => write!(f, "`{}`, {shape} of {}", self.name, self.element),
        }
    }
}

/// The report of a rank about its part of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The step that the rank has offered, or 0 if nothing is written yet.
    pub(crate) step: u64,
    pub(crate) items: Vec<Recorded>,
    /// For each copy of another rank's file that this rank has written: the other rank, and the
    /// checksum of the copy.
    pub(crate) copies: Vec<(usize, u32)>,
    /// The time at which the rank had finished writing, in seconds since 1970 (UTC).
    pub(crate) taken: u64,
    /// How long the rank was delayed by copying its state. `wrote` is how long its thread wrote.
    pub(crate) held: Duration,
    pub(crate) wrote: Duration,
}

impl Report {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("names and numbers are valid JSON")
    }
}

fn from_bytes(bytes: &[u8], rank: usize) -> Result<Report, String> {
    serde_json::from_slice(bytes)
        .map_err(|error| format!("internal error: the report of rank {rank} is damaged: {error}"))
}

/// Returns the report of items that are not written yet.
pub(crate) fn described(items: &Items<'_>) -> Vec<u8> {
    Report { items: items.all().iter().map(Recorded::of).collect(), ..Report::default() }.to_bytes()
}

/// Reads the reports of all ranks, and checks that they describe the same items.
///
/// # Errors
/// Fails if two ranks differ. The message names the step or the item of both ranks.
pub(crate) fn all(reports: &[Vec<u8>]) -> Result<Vec<Report>, String> {
    let reports: Vec<Report> =
        reports.iter().enumerate().map(|(rank, bytes)| from_bytes(bytes, rank)).collect::<Result<_, _>>()?;
    let Some(first) = reports.first() else { return Ok(reports) };
    for (rank, report) in reports.iter().enumerate() {
        if report.step != first.step {
            return Err(format!(
                "ranks offer different steps: rank 0 step {}, and rank {rank} step {}; all ranks offer the same step at the same time",
                first.step, report.step
            ));
        }
        for at in 0..first.items.len().max(report.items.len()) {
            let [ours, theirs] = [first, report].map(|report| report.items.get(at).map(ToString::to_string));
            if ours != theirs {
                let [ours, theirs] = [ours, theirs].map(|item| item.unwrap_or_else(|| "nothing".into()));
                return Err(format!(
                    "ranks list different items: item {at} is {ours} on rank 0 and {theirs} on rank {rank}; all ranks list the same items in the same order"
                ));
            }
        }
    }
    Ok(reports)
}

impl Manifest {
    /// Makes the manifest of a snapshot from the reports of all ranks. All reports describe the
    /// same items. The result is the same on all ranks. With `copies`, blocks are in the files of
    /// the ranks, and not in files of whole arrays.
    ///
    /// # Errors
    /// Fails if the reports contradict each other.
    pub(crate) fn assemble(
        program: String,
        step: u64,
        copies: Option<usize>,
        reports: &[Report],
    ) -> Result<Self, String> {
        let mut ends = vec![0; reports.len()];
        let items: Result<Vec<Saved>, String> = (0..reports.first().map_or(0, |first| first.items.len()))
            .map(|at| {
                let of_ranks = || reports.iter().map(|report| &report.items[at]);
                let first = &reports[0].items[at];
                let at = |item: &Recorded, end: &mut u64| {
                    let begin = *end;
                    *end += item.shape.elements() as u64 * item.size as u64;
                    begin
                };
                let mut pieces = || {
                    let piece = |(item, end): (&Recorded, &mut u64)| {
                        let elements = item.shape.elements();
                        Piece { at: at(item, end), elements, crc32: item.crc32 }
                    };
                    of_ranks().zip(&mut ends).map(piece).collect()
                };
                let content = match &first.shape {
                    Shape::Block { global, .. } => Content::Block {
                        shape: global.clone(),
                        boxes: of_ranks()
                            .zip(&mut ends)
                            .filter_map(|(item, end)| item.as_box(copies.map(|_| at(item, end))))
                            .collect(),
                    },
                    Shape::Part { .. } => Content::Part { pieces: pieces() },
                    Shape::List { .. } => Content::List { pieces: pieces() },
                    Shape::Value => {
                        if let Some(rank) = of_ranks().position(|item| item.value != first.value) {
                            return Err(format!(
                                "the value `{}` differs between rank 0 and rank {rank}: a value is the same on all ranks; list what differs as a part",
                                first.name
                            ));
                        }
                        Content::Value { bytes: first.value.clone().unwrap_or_default() }
                    }
                };
                let Recorded { name, element, size, .. } = first.clone();
                Ok(Saved { name, element, size, content })
            })
            .collect();
        let manifest = Self {
            format: FORMAT,
            release: env!("CARGO_PKG_VERSION").into(),
            program,
            step,
            ranks: reports.len(),
            copies,
            taken: reports.iter().map(|report| report.taken).max().unwrap_or_default(),
            items: items?,
        };
        manifest.check()?;
        for (writer, report) in reports.iter().enumerate() {
            if let Some((rank, _)) = report.copies.iter().find(|(rank, sum)| manifest.sum_of(*rank) != *sum) {
                return Err(format!(
                    "rank {writer} has written a copy of the file of rank {rank} that differs from it: their checksums differ"
                ));
            }
        }
        Ok(manifest)
    }
}

impl Recorded {
    /// Describes an item that is not written yet.
    pub(crate) fn of(item: &Item<'_>) -> Self {
        Self {
            name: item.name.into(),
            element: item.element.clone(),
            size: item.size,
            shape: item.shape.clone(),
            crc32: 0,
            value: None,
        }
    }

    fn as_box(&self, at: Option<u64>) -> Option<Box> {
        let Shape::Block { origin, extent, .. } = &self.shape else { return None };
        Some(Box { origin: origin.clone(), extent: extent.clone(), at, crc32: self.crc32 })
    }
}
