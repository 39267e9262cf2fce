//! A frame's bytes: the description of its operations, and their elements.

use crate::collect::limits::most_operations;
use crate::collect::outbox::{DatatypeOperation, DatatypeSource, Outbox};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};

/// The length of a frame's head, which precedes the description:
///
/// ```text
/// 0  slot, 1 whether it is remembered, 2 whether the elements of datatype operations were in the last frame, 4 records (u32), 8 bytes of description (u64)
/// 16 the epoch among the sender's (u32), 20 how many frames of it left early (u32)
/// ```
pub(crate) const HEAD: usize = 24;

/// A word of `gets` for a get of more than one element.
pub(crate) const FAR: u64 = u64::MAX;

/// The bit of an operation's code for elements that are a section of the sender's memory. The bytes
/// that otherwise locate the elements in the frame then hold the number of the window. The section
/// follows the elements of the target.
const EXPOSED: u8 = 1 << 7;

/// Operations without their elements.
#[derive(Default)]
pub(crate) struct Description {
    pub(crate) heads: Vec<u64>,
    pub(crate) wide: Vec<DatatypeOperation>,
    /// The elements that gets read: the displacement of one element, or [`FAR`] for the next of
    /// `far`.
    pub(crate) gets: Vec<u64>,
    pub(crate) far: Vec<Datatype>,
}

/// Begins a frame: makes room for its head, and appends the description of the outbox. The
/// description of `gets` gets must follow.
///
/// # Errors
/// `SIZE` for more operations than a frame can count. A fence refuses those before it sends
/// anything.
pub(crate) fn describe(frame: &mut Vec<u8>, outbox: &Outbox, gets: usize) -> Result<()> {
    describe_by(frame, outbox, gets, Datatype::encode)
}

/// Begins a frame as [`describe`] does; `write` encodes the elements of targets.
///
/// # Errors
/// As [`describe`].
#[inline]
pub(crate) fn describe_by(
    frame: &mut Vec<u8>,
    outbox: &Outbox,
    gets: usize,
    mut write: impl FnMut(&Datatype, &mut Vec<u8>),
) -> Result<()> {
    frame.clear();
    frame.extend_from_slice(&[0; HEAD]);
    for count in [outbox.records.len(), outbox.wide.len(), gets] {
        let counted = u32::try_from(count).ok().filter(|_| count <= most_operations());
        let too_many = || {
            Error::new(
                ErrorClass::Size,
                format!(
                    "an epoch has {count} operations for one rank, more than a frame can count: fence more often"
                ),
            )
        };
        frame.extend_from_slice(&counted.ok_or_else(too_many)?.to_le_bytes());
    }
    frame.extend_from_slice(&[0; 4]);
    words(frame, outbox.records.iter().map(|record| record.head));
    for wide in &outbox.wide {
        let (exposed, at, section) = match &wide.source {
            DatatypeSource::Bytes(at) => (0, *at as u64, None),
            DatatypeSource::Exposed(window, section) => (EXPOSED, u64::from(*window), Some(section)),
            DatatypeSource::Section(..) => {
                let message = "a section was neither read nor exposed before its frame was sent";
                return Err(Error::new(ErrorClass::Intern, message));
            }
        };
        frame.push(wide.code as u8 | exposed);
        frame.extend_from_slice(&at.to_le_bytes());
        write(&wide.remote, frame);
        if let Some(section) = section {
            section.encode(frame);
        }
    }
    Ok(())
}

/// Ends a frame: appends the elements and fills in the counts. The elements of datatype operations
/// are left out if they were `lent` in the frame before. Returns the length of the description in
/// bytes.
pub(crate) fn fill(frame: &mut Vec<u8>, outbox: &Outbox, lent: bool) -> usize {
    let described = frame.len() - HEAD;
    frame[4..8].copy_from_slice(&(outbox.records.len() as u32).to_le_bytes());
    frame[8..16].copy_from_slice(&(described as u64).to_le_bytes());
    words(frame, outbox.records.iter().map(|record| record.value));
    frame[2] = u8::from(lent);
    if !lent {
        frame.extend_from_slice(&outbox.bytes);
    }
    described
}

/// Appends words, with room made once.
pub(crate) fn words(frame: &mut Vec<u8>, words: impl ExactSizeIterator<Item = u64>) {
    let at = frame.len();
    frame.resize(at + 8 * words.len(), 0);
    for (bytes, word) in frame[at..].chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// The parts of a frame.
pub(crate) struct Parts<'a> {
    pub(crate) slot: usize,
    pub(crate) same: bool,
    pub(crate) lent: bool,
    pub(crate) records: usize,
    pub(crate) description: &'a [u8],
    pub(crate) values: &'a [u8],
}

pub(crate) fn parts(payload: &[u8]) -> Option<Parts<'_>> {
    let (head, rest) = payload.split_at_checked(HEAD)?;
    let records = u32::from_le_bytes(head[4..8].try_into().ok()?) as usize;
    let described = usize::try_from(u64::from_le_bytes(head[8..16].try_into().ok()?)).ok()?;
    let (description, values) = rest.split_at_checked(described)?;
    if head[1] > 1 || head[2] > 1 || head[3] != 0 {
        return None;
    }
    let (slot, same, lent) = (head[0] as usize, head[1] == 1, head[2] == 1);
    Some(Parts { slot, same, lent, records, description, values })
}

pub(crate) fn read_description(into: &mut Description, bytes: &[u8]) -> Option<()> {
    read_description_by(into, bytes, |bytes| Datatype::decode(bytes).ok())
}

/// Decodes a description; `read` decodes the elements of targets.
#[inline]
pub(crate) fn read_description_by(
    into: &mut Description,
    mut bytes: &[u8],
    mut read: impl FnMut(&mut &[u8]) -> Option<Datatype>,
) -> Option<()> {
    let number = |bytes: &mut &[u8]| -> Option<usize> {
        let (four, rest) = bytes.split_first_chunk::<4>()?;
        *bytes = rest;
        Some(u32::from_le_bytes(*four) as usize)
    };
    let (records, wide, gets) = (number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?);
    if number(&mut bytes)? != 0 {
        return None;
    }
    let (heads, mut bytes) = bytes.split_at_checked(records.checked_mul(8)?)?;
    into.heads.clear();
    into.heads.extend(
        heads.chunks_exact(8).map(|head| u64::from_le_bytes(head.try_into().expect("chunks of eight"))),
    );
    into.wide.clear();
    for _ in 0..wide {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        bytes = rest;
        let at = u64::from_le_bytes(head[1..9].try_into().ok()?);
        let remote = read(&mut bytes)?;
        let source = if head[0] & EXPOSED == 0 {
            DatatypeSource::Bytes(usize::try_from(at).ok()?)
        } else {
            DatatypeSource::Exposed(u32::try_from(at).ok()?, Datatype::decode(&mut bytes).ok()?)
        };
        into.wide.push(DatatypeOperation {
            code: u64::from(head[0] & !EXPOSED),
            remote,
            source,
            mode: Mode::Auto,
        });
    }
    let (gets, mut bytes) = bytes.split_at_checked(gets.checked_mul(8)?)?;
    into.gets.clear();
    into.gets
        .extend(gets.chunks_exact(8).map(|get| u64::from_le_bytes(get.try_into().expect("chunks of eight"))));
    into.far.clear();
    for _ in into.gets.iter().filter(|&&get| get == FAR) {
        into.far.push(Datatype::decode(&mut bytes).ok()?);
    }
    bytes.is_empty().then_some(())
}
