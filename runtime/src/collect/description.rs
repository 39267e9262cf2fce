//! A frame's bytes: the description of its operations, and their elements.

use crate::collect::limits::most_operations;
use crate::collect::outbox::{DatatypeOperation, DatatypeSource, Outbox};
use crate::kernel::copies::count_copied;
use bytemuck::{CheckedBitPattern, NoUninit};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::bytes::{Reader, Writer};

/// The head of a frame, which precedes the description.
#[repr(C)]
#[derive(Clone, Copy, Default, NoUninit, CheckedBitPattern)]
pub(crate) struct FrameHead {
    /// The slot in which the receiver remembers the description.
    pub(crate) slot: u8,
    /// Whether the description is left out, because the receiver already has it in `slot`.
    pub(crate) same: bool,
    /// Whether the elements of datatype operations are in a separate frame. That frame is the
    /// preceding one, unless `follows` is set.
    pub(crate) lent: bool,
    /// Whether the separate frame with the elements of datatype operations follows the census.
    pub(crate) follows: bool,
    pub(crate) records: u32,
    /// The length of the description in bytes.
    pub(crate) described: u64,
    /// The number of the epoch, as the sender counts its epochs.
    pub(crate) epoch: u32,
    /// The number of frames of the epoch that were sent early.
    pub(crate) early: u32,
}

/// The length of a frame's head.
pub(crate) const HEAD: usize = size_of::<FrameHead>();

/// The value of a word of `gets` for a get of more than one element.
pub(crate) const FAR: u64 = u64::MAX;

/// The bit of an operation's code that is set if its elements are a section of the sender's memory.
/// With this bit, the number of the window replaces the place of the elements in the frame. The
/// datatype of the section follows the datatype of the target's elements.
const EXPOSED: u8 = 1 << 7;

/// Operations without their elements.
#[derive(Default)]
pub(crate) struct Description {
    pub(crate) heads: Vec<u64>,
    pub(crate) wide: Vec<DatatypeOperation>,
    /// The elements that gets read: the displacement of one element, or [`FAR`] for the next
    /// datatype of `far`.
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
        frame.put(counted.ok_or_else(too_many)?);
    }
    frame.put(0_u32);
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
        frame.put(at);
        write(&wide.remote, frame);
        if let Some(section) = section {
            section.encode(frame);
        }
    }
    Ok(())
}

/// Ends a frame: appends the elements and writes the head with the counts. If `head.lent` is set,
/// leaves out the elements of datatype operations, which are in a separate frame. Returns the
/// length of the description in bytes.
pub(crate) fn fill(frame: &mut Vec<u8>, outbox: &Outbox, head: FrameHead) -> usize {
    let described = frame.len() - HEAD;
    let head = FrameHead { records: outbox.records.len() as u32, described: described as u64, ..head };
    frame[..HEAD].copy_from_slice(bytemuck::bytes_of(&head));
    words(frame, outbox.records.iter().map(|record| record.value));
    if !head.lent {
        count_copied(outbox.bytes.len());
        frame.extend_from_slice(&outbox.bytes);
    }
    described
}

/// Appends words, after making room for all of them.
pub(crate) fn words(frame: &mut Vec<u8>, words: impl ExactSizeIterator<Item = u64>) {
    let at = frame.len();
    frame.resize(at + 8 * words.len(), 0);
    for (bytes, word) in frame[at..].chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// The parts of a frame.
pub(crate) struct Parts<'a> {
    pub(crate) head: FrameHead,
    pub(crate) description: &'a [u8],
    pub(crate) values: &'a [u8],
}

pub(crate) fn parts(payload: &[u8]) -> Option<Parts<'_>> {
    let mut payload = Reader(payload);
    let head: FrameHead = payload.take()?;
    let description = payload.bytes(head.described)?;
    (head.lent || !head.follows).then_some(Parts { head, description, values: payload.0 })
}

pub(crate) fn read_description(into: &mut Description, bytes: &[u8]) -> Option<()> {
    read_description_by(into, bytes, |bytes| Datatype::decode(bytes).ok())
}

/// Decodes a description; `read` decodes the elements of targets.
#[inline]
pub(crate) fn read_description_by(
    into: &mut Description,
    bytes: &[u8],
    mut read: impl FnMut(&mut &[u8]) -> Option<Datatype>,
) -> Option<()> {
    let mut bytes = Reader(bytes);
    let [records, wide, gets, zero] = bytes.take::<[u32; 4]>()?.map(|count| count as usize);
    if zero != 0 {
        return None;
    }
    into.heads.clear();
    into.heads.extend(bytes.all::<u64>(records)?);
    into.wide.clear();
    for _ in 0..wide {
        let (code, at): (u8, u64) = (bytes.take()?, bytes.take()?);
        let remote = read(&mut bytes.0)?;
        let source = if code & EXPOSED == 0 {
            DatatypeSource::Bytes(usize::try_from(at).ok()?)
        } else {
            DatatypeSource::Exposed(u32::try_from(at).ok()?, Datatype::decode(&mut bytes.0).ok()?)
        };
        let code = u64::from(code & !EXPOSED);
        into.wide.push(DatatypeOperation { code, remote, source, mode: Mode::Auto });
    }
    into.gets.clear();
    into.gets.extend(bytes.all::<u64>(gets)?);
    into.far.clear();
    for _ in into.gets.iter().filter(|&&get| get == FAR) {
        into.far.push(Datatype::decode(&mut bytes.0).ok()?);
    }
    bytes.is_empty().then_some(())
}
