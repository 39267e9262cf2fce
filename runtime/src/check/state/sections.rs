//! [`Sections`]: the sections of the operations of an epoch, with their contents at the calls. The
//! sections are kept if stores into them and loads of them after the calls are checked
//! (planner/README.md, 37).

use fencepost_planner::ir::pattern::Kind;
use std::ops::Range;
use std::panic::Location;

/// Adjacent elements of the section of an operation.
pub(crate) struct Section {
    pub(crate) elements: Range<usize>,
    /// The kind of the operation's access to these elements.
    pub(crate) kind: Kind,
    pub(crate) site: &'static Location<'static>,
    /// The number of runs of elements that the rank had loaded before the call. These loads are in
    /// no conflict with the operation.
    pub(crate) loads: usize,
}

/// The sections of an epoch, in the order of the calls.
#[derive(Default)]
pub(crate) struct Sections {
    all: Vec<Section>,
    /// The elements of all sections at the calls, one section after the other.
    bytes: Vec<u8>,
}

impl Sections {
    pub(crate) fn add(&mut self, section: Section, bytes: &[u8]) {
        self.all.push(section);
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the sections, each with the bytes that its elements had at the call. An element has
    /// `size` bytes.
    pub(crate) fn each(&self, size: usize) -> impl Iterator<Item = (&Section, &[u8])> {
        let mut left = &self.bytes[..];
        self.all.iter().map(move |section| {
            let (bytes, rest) = left.split_at(section.elements.len() * size);
            left = rest;
            (section, bytes)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.bytes.clear();
    }
}
