//! The frames of posts and accesses.
//!
//! The high half of a header's word is the number of the post, or of the access, in its pair. The
//! low half contains the index of a source file among the files that the sender has announced, and
//! the error class of an access that failed. `extra` is the line in that file. A payload ends in
//! the names of the files that it announces.

use crate::collect::datatypes::{Named, Numbered, write_plain};
use crate::collect::description::{Description, FrameHead, describe_by, fill, parts, read_description_by};
use crate::collect::lent::Lent;
use crate::collect::operands::{Exposed, Items, Operands};
use crate::collect::operation::Site;
use crate::collect::outbox::{DatatypeOperation, DatatypeSource, Head, PUT, op_of};
use crate::fence::remote::check;
use crate::posts::state::batch::{Collected, misfit_record};
use crate::posts::state::exchange::{Line, Post, Told};
use crate::protocol::frames::{header, kind};
use crate::state::window_core::WindowCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Frame, Header, RECORDS, Record};

/// The lowest bit of the class in the low half of a word.
const CLASS: u32 = 24;
/// The mask of the lower bits, which contain the file.
const FILE: u32 = (1 << CLASS) - 1;
/// The error classes of failed accesses. The first is the class of a dropped access.
const CLASSES: [ErrorClass; 3] = [ErrorClass::RmaSync, ErrorClass::Disp, ErrorClass::Assert];

fn word(number: u64, file: u32, class: u32) -> u64 {
    number << 32 | u64::from(class << CLASS | file)
}

/// Returns the low 32 bits of the number of a post or an access. A header contains only these bits.
pub(super) fn number(header: &Header) -> u32 {
    (header.word >> 32) as u32
}

/// Returns the word for a post of a whole window in the lines of a pair. The word contains the
/// file, which the reader knows, and the line in that file.
#[inline]
pub(super) fn place(file: u32, line: u32) -> u64 {
    u64::from(file) << 32 | u64::from(line)
}

/// Returns the line of a post from a word that [`place`] has made.
#[inline]
pub(super) fn line_of_post(word: u64, told: &[String]) -> Option<Line> {
    told_line((word >> 32) as u32, word as u32, told)
}

/// Returns the word of an access for the lines of a pair, or `None` if the access needs a frame.
#[inline]
pub(super) fn short(batch: &Collected, told: &Told) -> Option<u64> {
    let records = batch.outbox.records.len();
    if records > RECORDS || !batch.outbox.wide.is_empty() {
        return None;
    }
    let (file, line) = match &batch.lines[..] {
        [] => (0, 0),
        [(_, site)] => (told.known(site.file())?, site.line()),
        _ => return None,
    };
    Some((records as u64) << (32 + CLASS) | place(file, line))
}

/// Builds a frame for an access that has come in the lines of a pair, from the word and the records
/// of the access.
#[inline]
pub(super) fn frame_of(number: u64, (word, records): (u64, *const Record)) -> Frame {
    let count = (word >> (32 + CLASS)) as usize;
    let head = header(self::word(number, (word >> 32) as u32 & FILE, 0), kind::RECORDS, word as u32);
    Frame { header: head, payload: records.cast(), len: count.min(RECORDS) * size_of::<Record>() }
}

/// Applies an access that has come in the lines of a pair. Does nothing and returns `false` if no
/// correct rank sends such an access.
///
/// # Safety
/// The records can be read, and no rank accesses the window.
#[inline]
pub(super) unsafe fn apply_short(
    window: &WindowCore,
    (word, records): (u64, *const Record),
    told: &[String],
) -> bool {
    let count = (word >> (32 + CLASS)) as usize;
    // SAFETY: the lines have room for `RECORDS` records, and the caller promises that they can be
    // read.
    let records = unsafe { std::slice::from_raw_parts(records, count.min(RECORDS)) };
    let is_told = count == 0 || ((word >> 32) as u32 & FILE) < told.len() as u32;
    if !are_good(window, records) || !is_told {
        return false;
    }
    let (base, len) = (window.region.base(), window.peers[window.world.rank].len);
    // SAFETY: the caller promises that no rank accesses the window, and all displacements and
    // operators were checked.
    unsafe { (window.filling.apply)(base, len, window.element, Items::Records(records), &Operands::none()) };
    true
}

/// Returns whether each record is one that a correct rank sends to this rank's part of the window.
#[inline]
fn are_good(window: &WindowCore, records: &[Record]) -> bool {
    let (len, element) = (window.peers[window.world.rank].len, window.element);
    let fits = |record: &Record| {
        let head = Head(record.head);
        let takes = || op_of(head.code()).is_some_and(|op| op.takes(element));
        head.at() < len && (head.code() == PUT || takes())
    };
    records.is_empty() || element.size <= 8 && records.iter().all(fits)
}

/// Builds the header of a post, and replaces `bytes` with its payload.
///
/// If the source does not reach this rank's memory, the datatype of an exposed part gets a number.
pub(super) fn of_post(
    (number, lent): (u64, &Lent),
    site: Site,
    told: &mut Told,
    named: Option<&mut Named>,
    bytes: &mut Vec<u8>,
) -> Header {
    bytes.clear();
    let (file, new) = told.tell(site.file());
    if new || !matches!(lent, Lent::Whole) {
        lent.encode(bytes, |part, bytes| match named {
            Some(named) => named.write_datatype(part, bytes),
            None => write_plain(part, bytes),
        });
        names(bytes, new.then_some(site.file()));
    }
    header(word(number, file, 0), kind::POST, site.line())
}

/// Reads a post. Returns `None` if the frame is not a post that a correct rank sends.
pub(super) fn post_of(
    frame: &Frame,
    len: usize,
    told: &mut Vec<String>,
    numbered: &mut Numbered,
) -> Option<Post> {
    if frame.header.kind != kind::POST {
        return None;
    }
    let mut bytes = Reader(payload(frame));
    let lent = if bytes.is_empty() {
        Lent::Whole
    } else {
        take_names(&mut bytes, told)?;
        Lent::decode(bytes.0, len, |bytes| numbered.datatype(bytes).ok())?
    };
    Some(Post { lent, line: line_of(&frame.header, told)? })
}

/// Builds the header of an access that has failed because it was dropped or because of an operation
/// at this line. Replaces `bytes` with the payload.
pub(super) fn of_failed(
    number: u64,
    class: ErrorClass,
    site: Site,
    told: &mut Told,
    bytes: &mut Vec<u8>,
) -> Header {
    bytes.clear();
    let (file, new) = told.tell(site.file());
    if new {
        names(bytes, Some(site.file()));
    }
    let class = CLASSES.iter().position(|known| *known == class).unwrap_or_default() as u32;
    header(word(number, file, class), kind::FAILED, site.line())
}

/// Builds the frame of an access that was completed. The payload of the frame is in the batch.
///
/// If the target does not reach this rank's memory, datatypes get numbers.
///
/// # Errors
/// `NO_MEM` if there is no memory for the payload.
pub(super) fn of_batch(
    batch: &mut Collected,
    told: &mut Told,
    named: Option<&mut Named>,
    scratch: &mut Vec<u8>,
) -> Result<Frame> {
    let Collected { number, outbox, lines, .. } = batch;
    let one = match &lines[..] {
        [] => Some((0, 0)),
        [(_, site)] => told.known(site.file()).map(|file| (file, site.line())),
        _ => None,
    };
    if let Some((file, line)) = one.filter(|_| outbox.wide.is_empty()) {
        let head = header(word(*number, file, 0), kind::RECORDS, line);
        return Ok(Frame::of(head, bytemuck::cast_slice(&outbox.records)));
    }
    let mut named = named;
    describe_by(scratch, outbox, 0, |remote, frame| match &mut named {
        Some(named) => named.write_datatype(remote, frame),
        None => write_plain(remote, frame),
    })?;
    fill(scratch, outbox, FrameHead { lent: true, ..FrameHead::default() });
    let described = scratch.len();
    scratch.put(lines.len() as u32);
    let mut new = Vec::new();
    for (count, site) in &*lines {
        let (file, is_new) = told.tell(site.file());
        new.extend(is_new.then_some(site.file()));
        scratch.put([*count, file, site.line()]);
    }
    names(scratch, new);
    scratch.put([outbox.bytes.len(), described].map(|len| len as u64));
    if !outbox.bytes.reserve(scratch.len()) {
        let message = format!("there is no memory for {} bytes that describe an access", scratch.len());
        return Err(fencepost_planner::Error::new(ErrorClass::NoMem, message));
    }
    outbox.bytes.append(scratch.len()).copy_from_slice(scratch);
    Ok(Frame::of(header(word(*number, 0, 0), kind::ACCESS, 0), &outbox.bytes))
}

/// An access that has come.
pub(super) enum Came {
    /// Records, all from one line.
    Records(Line),
    /// An access that the source's [`Description`] describes. The fields are the length of the
    /// access's elements in bytes, the length of the description with its values, and the number of
    /// consecutive records of each line.
    Described(usize, usize, Vec<(u32, Line)>),
    /// A failed access: the class and the line of its error.
    Failed(ErrorClass, Line),
}

/// Reads an access to a window. Returns `None` for an access that no correct rank sends.
pub(super) fn access_of(
    window: &WindowCore,
    frame: &Frame,
    (told, numbered): (&mut Vec<String>, &mut Numbered),
    description: &mut Description,
) -> Option<Came> {
    let mut bytes = Reader(payload(frame));
    match frame.header.kind {
        kind::RECORDS => {
            let records = records(frame)?;
            let good = are_good(window, records);
            let line = if records.is_empty() { Line::Told(0, 0) } else { line_of(&frame.header, told)? };
            good.then_some(Came::Records(line))
        }
        kind::FAILED => {
            if !bytes.is_empty() {
                take_names(&mut bytes, told)?;
            }
            let class = *CLASSES.get((frame.header.word as u32 >> CLASS) as usize)?;
            bytes.is_empty().then_some(Came::Failed(class, line_of(&frame.header, told)?))
        }
        kind::ACCESS => {
            let [elements, described] = bytes.take_last::<[u64; 2]>()?;
            take_names(&mut bytes, told)?;
            let elements = bytes.bytes(elements)?.len();
            let about = bytes.bytes(described)?;
            let lines = bytes.take::<u32>()? as usize;
            let parts = parts(about)?;
            let records = parts.head.records as usize;
            read_description_by(description, parts.description, |bytes| numbered.datatype(bytes).ok())?;
            let exposes = |wide: &DatatypeOperation| !matches!(wide.source, DatatypeSource::Bytes(_));
            let whole = parts.head.lent
                && !parts.head.follows
                && !parts.head.same
                && parts.head.slot == 0
                && description.gets.is_empty()
                && !description.wide.iter().any(exposes);
            let exact = parts.values.len() == records.checked_mul(8)? && description.heads.len() == records;
            if !whole || !exact {
                return None;
            }
            if check(window, description, records)? != elements {
                return None;
            }
            let lines = bytes.all::<[u32; 3]>(lines)?;
            let lines = lines.map(|[count, file, line]| Some((count, told_line(file, line, told)?)));
            let lines = lines.collect::<Option<Vec<_>>>()?;
            let counted: u64 = lines.iter().map(|(count, _)| u64::from(*count)).sum();
            (bytes.is_empty() && counted == records as u64).then_some(Came::Described(
                elements,
                about.len(),
                lines,
            ))
        }
        _ => None,
    }
}

impl Came {
    /// If this access makes an exposure of `lent` fail, returns the class and the line of the
    /// error.
    pub(super) fn error(
        &self,
        frame: &Frame,
        description: &Description,
        lent: &Lent,
    ) -> Option<(ErrorClass, Line)> {
        match self {
            Self::Failed(class, line) => Some((*class, *line)),
            _ if matches!(lent, Lent::Whole) => None,
            Self::Records(line) => {
                let mut records = records(frame).unwrap_or_default().iter();
                let class = records.find_map(|record| misfit_record(lent, Head(record.head), &[]))?;
                Some((class, *line))
            }
            Self::Described(_, _, lines) => {
                let mut heads = description.heads.iter();
                let mut each = lines.iter().flat_map(|(count, line)| (0..*count).map(move |_| line));
                heads.find_map(|&head| {
                    let line = *each.next()?;
                    Some((misfit_record(lent, Head(head), &description.wide)?, line))
                })
            }
        }
    }

    /// Applies this access, which fits the exposure, to this rank's part of the window.
    ///
    /// # Safety
    /// This access has come with `frame`, which was not released, and with `description`. No rank
    /// accesses the window.
    pub(super) unsafe fn apply(&self, window: &WindowCore, frame: &Frame, description: &Description) {
        let (items, operands) = match self {
            Self::Failed(..) => return,
            Self::Records(_) => (Items::Records(records(frame).unwrap_or_default()), Operands::none()),
            Self::Described(elements, described, _) => {
                let (elements, rest) = payload(frame).split_at(*elements);
                let values = parts(&rest[..*described]).map_or(&[][..], |parts| parts.values);
                let operands =
                    Operands { wide: &description.wide, bytes: elements, exposed: Exposed::Nothing };
                (Items::Split(&description.heads, values), operands)
            }
        };
        let (base, len) = (window.region.base(), window.peers[window.world.rank].len);
        // SAFETY: the caller promises that no rank accesses the window. `access_of` has checked
        // every displacement and operator.
        unsafe { (window.filling.apply)(base, len, window.element, items, &operands) };
    }
}

/// Returns the bytes of a frame that was polled and not released.
fn payload(frame: &Frame) -> &[u8] {
    // SAFETY: the payload is readable until the frame is released, and callers drop the slice
    // before that.
    unsafe { frame.bytes() }
}

/// Returns the records of a frame, or `None` if the frame contains anything else.
fn records(frame: &Frame) -> Option<&[Record]> {
    if frame.len == 0 {
        return Some(&[]);
    }
    let first = frame.payload.cast::<Record>();
    if !first.is_aligned() || !frame.len.is_multiple_of(size_of::<Record>()) {
        return None;
    }
    // SAFETY: as in `payload`. The payload consists of whole, aligned records, and any bits are a
    // valid record.
    Some(unsafe { std::slice::from_raw_parts(first, frame.len / size_of::<Record>()) })
}

/// Returns the line that a header names.
fn line_of(header: &Header, told: &[String]) -> Option<Line> {
    told_line(header.word as u32 & FILE, header.extra, told)
}

/// Returns a line of a file that the sender has announced.
fn told_line(file: u32, line: u32, told: &[String]) -> Option<Line> {
    ((file as usize) < told.len()).then_some(Line::Told(file, line))
}

/// Appends names of files: the bytes of all names, the length of each name, and the number of
/// names.
fn names(bytes: &mut Vec<u8>, files: impl IntoIterator<Item = &'static str>) {
    let mut lens = Vec::new();
    for file in files {
        bytes.extend_from_slice(file.as_bytes());
        lens.push(file.len() as u32);
    }
    lens.push(lens.len() as u32);
    bytes.put_all(&lens);
}

/// Removes the names of files from the end of a payload, and appends them to the names that were
/// announced before.
fn take_names(bytes: &mut Reader<'_>, told: &mut Vec<String>) -> Option<()> {
    let count: u32 = bytes.take_last()?;
    let lens = (0..count).map(|_| bytes.take_last::<u32>()).collect::<Option<Vec<_>>>()?;
    let mut names = Vec::new();
    for len in lens {
        names.push(String::from_utf8(bytes.last_bytes(len)?.to_vec()).ok()?);
    }
    told.extend(names.into_iter().rev());
    Some(())
}
