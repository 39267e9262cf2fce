//! The requests of origins to the attendant of a part that they do not reach, and the answers, as
//! bytes.
//!
//! ```text
//! request  `Head`; the records; the bytes of wide operations; the line that opened the epoch; if
//!          conflicts are checked, the origin's `Entering`. A wide operation is its datatype
//!          ([perhaps as a number](crate::collect::datatypes)), the elements to compare with, and
//!          the operands
//! answer   `AnswerHead`; if conflicts are checked, the length (u32) of a `Learnt`, and the
//!          `Learnt`; the elements that the operations return; if conflicts are checked, the times
//!          that the operations have observed
//! ```

use crate::collect::datatypes::{Named, Numbered, Unread};
use crate::collect::visits::{Action, Code};
use crate::locks::state::visit::List;
use bytemuck::{CheckedBitPattern, NoUninit, Pod, Zeroable};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Hold, Record};

/// The epoch is exclusive.
const EXCLUSIVE: u8 = 1;
/// The request takes all regions, and holds them until the epoch ends.
const HOLDS: u8 = 2;
/// The epoch ends.
const ENDS: u8 = 4;
/// The origin waits, and asks which rank is in its way.
pub(crate) const HOLDER: u8 = 8;
/// Conflicts are checked.
const CHECKED: u8 = 16;

/// The head of a request.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Pod, Zeroable)]
struct Head {
    flags: u8,
    /// The number of bytes of [`Request::site`].
    site: u8,
    zero: u16,
    regions: u32,
    /// The number of records.
    records: u32,
    /// The number of bytes of wide operations.
    wide: u32,
}

/// The head of an answer.
#[repr(C)]
#[derive(Clone, Copy, NoUninit, CheckedBitPattern)]
struct AnswerHead {
    outcome: Outcome,
    zero: [u8; 3],
    /// The rank that is in the way, plus one.
    in_the_way: u32,
}

/// The maximum number of bytes of a request or an answer. A request or an answer with a single
/// element may be longer. An origin divides longer epochs.
pub(crate) const CHUNK: usize = 256 << 10;

/// The request of an origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) hold: Hold,
    pub(crate) holds: bool,
    pub(crate) ends: bool,
    /// The regions of the operations.
    pub(crate) regions: u32,
    pub(crate) records: Vec<Record>,
    /// The bytes of wide operations. At the origin, and after [`expand`](Self::expand), records
    /// contain the offsets of these bytes. In a request that was just read, the wide operations
    /// follow one another instead.
    pub(crate) wide: Vec<u8>,
    /// The length of each wide operation's datatype, at the origin.
    pub(crate) forms: Vec<usize>,
    /// The source line that opened the epoch.
    pub(crate) site: String,
    /// An [`Entering`](crate::check::state::entering::Entering), as bytes; empty if nothing is
    /// checked.
    pub(crate) entering: Vec<u8>,
}

/// Returns the records of wide operations.
pub(crate) fn wide_records(records: &[Record]) -> impl Iterator<Item = &Record> {
    records.iter().filter(|record| Code::of_head(record.head).is_wide())
}

/// A message that arrives on the port of attendants.
pub(crate) enum Asked {
    New(Request),
    Holder,
}

impl Request {
    pub(crate) fn list(&self) -> List<'_> {
        List { records: &self.records, wide: &self.wide }
    }

    /// Writes the request, with the numbers that datatypes have at the target.
    pub(crate) fn write(&self, named: &mut Named, out: &mut Vec<u8>) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.hold == Hold::Exclusive, EXCLUSIVE)
            | flag(self.holds, HOLDS)
            | flag(self.ends, ENDS)
            | flag(!self.entering.is_empty(), CHECKED);
        let site = &self.site.as_bytes()[self.site.len().saturating_sub(usize::from(u8::MAX))..];
        out.clear();
        out.put(Head::default());
        out.put_all(&self.records);
        let wide = out.len();
        let mut rest = &self.wide[..];
        let mut begins = wide_records(&self.records).map(|record| record.value as usize).skip(1);
        let mut before = 0;
        for form in &self.forms {
            let end = begins.next().unwrap_or(self.wide.len());
            let (one, others) = rest.split_at(end - before);
            let (form, operands) = one.split_at(*form);
            named.write(form, out);
            out.extend_from_slice(operands);
            (rest, before) = (others, end);
        }
        let (records, wide) = (self.records.len() as u32, (out.len() - wide) as u32);
        let head = Head { flags, site: site.len() as u8, zero: 0, regions: self.regions, records, wide };
        out[..size_of::<Head>()].copy_from_slice(bytemuck::bytes_of(&head));
        out.extend_from_slice(site);
        out.extend_from_slice(&self.entering);
    }

    /// Replaces the numbers of datatypes by the datatypes that `numbered` has for the origin. The
    /// elements of datatypes have `size` bytes.
    ///
    /// # Errors
    /// A number is not known, or no correct origin writes this request. After an error, no part of
    /// the request may be used.
    pub(crate) fn expand(&mut self, numbered: &mut Numbered, size: usize) -> Result<(), Unread> {
        let (mut rest, mut wide) = (&self.wide[..], Vec::new());
        for record in self.records.iter_mut().filter(|record| Code::of_head(record.head).is_wide()) {
            let action = Code::of_head(record.head).action().ok_or(Unread::Invalid)?;
            let (form, elements) = numbered.read(&mut rest)?;
            let each = if action == Action::CompareAndSwap { 2 } else { usize::from(action.takes()) };
            let bytes = elements.checked_mul(size).and_then(|bytes| bytes.checked_mul(each));
            let (operands, others) =
                bytes.and_then(|bytes| rest.split_at_checked(bytes)).ok_or(Unread::Invalid)?;
            record.value = wide.len() as u64;
            wide.extend_from_slice(&form);
            wide.extend_from_slice(operands);
            rest = others;
        }
        if !rest.is_empty() {
            return Err(Unread::Invalid);
        }
        self.wide = wide;
        Ok(())
    }

    /// Writes a message that asks which rank is in the way of a waiting request.
    pub(crate) fn write_holder(out: &mut Vec<u8>) {
        out.clear();
        out.put(Head { flags: HOLDER, ..Head::default() });
    }
}

impl Asked {
    /// Reads a request. Returns `None` for bytes that no correct rank writes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let head: Head = bytes.take()?;
        let Head { flags, site, zero, regions, records, wide } = head;
        if flags == HOLDER {
            let is_bare = head == Head { flags, ..Head::default() } && bytes.is_empty();
            return is_bare.then_some(Self::Holder);
        }
        if flags & !(EXCLUSIVE | HOLDS | ENDS | CHECKED) != 0 || zero != 0 {
            return None;
        }
        let records = bytes.all(records as usize)?.collect();
        let (wide, site) = (bytes.bytes(wide)?.to_vec(), bytes.bytes(site)?);
        if bytes.is_empty() == (flags & CHECKED != 0) {
            return None;
        }
        Some(Self::New(Request {
            hold: if flags & EXCLUSIVE == 0 { Hold::Shared } else { Hold::Exclusive },
            holds: flags & HOLDS != 0,
            ends: flags & ENDS != 0,
            regions,
            records,
            wide,
            forms: Vec::new(),
            site: String::from_utf8_lossy(site).into_owned(),
            entering: bytes.0.to_vec(),
        }))
    }
}

/// The outcome of a request.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, NoUninit, CheckedBitPattern)]
pub(crate) enum Outcome {
    /// The request was carried out.
    Done = 0,
    /// The request waits for a lock.
    Waits = 1,
    /// The part was dropped: nothing was done.
    Dropped = 2,
    /// The request is not valid: nothing was done.
    Refused = 3,
    /// The part was dropped when its owner knew that the world was over: nothing was done.
    Over = 4,
    /// Another rank accesses the part, which only one rank may access: nothing was done.
    NotSole = 5,
    /// There is no memory for the elements that the request finds: nothing was done.
    NoMemory = 6,
    /// A datatype has a number that is not known: nothing was done.
    Missing = 7,
}

/// Returns the head of an answer.
pub(crate) fn answer(outcome: Outcome, in_the_way: Option<usize>) -> Vec<u8> {
    let in_the_way = in_the_way.map_or(0, |rank| rank as u32 + 1);
    bytemuck::bytes_of(&AnswerHead { outcome, zero: [0; 3], in_the_way }).to_vec()
}

/// Splits an answer into its parts. Returns `None` for bytes that no correct attendant writes.
pub(crate) fn read_answer(bytes: &[u8]) -> Option<(Outcome, Option<usize>, &[u8])> {
    let mut bytes = Reader(bytes);
    let AnswerHead { outcome, zero, in_the_way } = bytes.take()?;
    let has_more = matches!(outcome, Outcome::Done | Outcome::Waits);
    if zero != [0; 3] || !bytes.is_empty() && !has_more {
        return None;
    }
    Some((outcome, in_the_way.checked_sub(1).map(|rank| rank as usize), bytes.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::visits::{Visits, record};
    use fencepost_planner::datatype::Datatype;

    #[test]
    fn a_request_is_read_as_it_was_written_and_no_part_of_it_is() {
        let mut visits = Visits::default();
        let strided = Datatype::nest(3, &[(4, 7), (2, 100)], 2).unwrap();
        visits.records.push(record(Action::Put, 5, u64::MAX));
        for action in [Action::Put, Action::Get, Action::CompareAndSwap, Action::Put] {
            let operand = [7; 32];
            let expected = if action == Action::CompareAndSwap { &[6; 32][..] } else { &[] };
            assert!(visits.push_wide(
                action,
                &strided,
                [expected, if action.takes() { &operand } else { &[] }]
            ));
        }
        let mut form = Vec::new();
        strided.encode(&mut form);
        let mut request = Request {
            hold: Hold::Exclusive,
            holds: true,
            ends: false,
            regions: 0x8001,
            records: visits.records.to_vec(),
            wide: visits.wide.clone(),
            forms: vec![form.len(); 4],
            site: "src/main.rs:7".to_owned(),
            entering: vec![4; 5],
        };
        let (mut bytes, mut again, mut named, mut numbered) = Default::default();
        request.write(&mut named, &mut bytes);
        request.write(&mut named, &mut again);
        let forms = std::mem::take(&mut request.forms);
        assert_eq!(bytes.len() - again.len(), form.len(), "its datatype travels once");
        for bytes in [&bytes, &again] {
            let Some(Asked::New(mut read)) = Asked::read(bytes) else { panic!("a request") };
            assert_eq!(read.expand(&mut numbered, 2), Ok(()));
            assert_eq!(read, request);
        }
        let Some(Asked::New(mut read)) = Asked::read(&again) else { panic!("a request") };
        assert_eq!(read.expand(&mut Numbered::default(), 2), Err(Unread::Missing));
        let Some(Asked::New(mut read)) = Asked::read(&again) else { panic!("a request") };
        assert_eq!(read.expand(&mut numbered, 4), Err(Unread::Invalid), "there are fewer operands");
        assert_eq!(forms.len(), 4);
        let unchecked = bytes.len() - request.entering.len();
        for len in 0..=unchecked {
            assert!(Asked::read(&bytes[..len]).is_none(), "{len} bytes");
        }
        Request::write_holder(&mut bytes);
        assert!(matches!(Asked::read(&bytes), Some(Asked::Holder)));
        let bytes = answer(Outcome::Waits, Some(3));
        assert_eq!(read_answer(&bytes), Some((Outcome::Waits, Some(3), &[][..])));
        assert_eq!(read_answer(&bytes[1..]), None);
    }
}
