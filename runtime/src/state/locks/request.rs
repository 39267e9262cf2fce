//! The requests of origins to the attendant of a part that they do not reach, and the answers, as
//! bytes.
//!
//! ```text
//! request  0 flags, 1 length of the line, 4 regions (u32), 8 records (u32), 12 bytes of wide operations (u32)
//!          16 the records, the bytes of wide operations, since which line the lock is held, and where conflicts are looked
//!          for what its origin says of the operations; a wide operation is its datatype,
//!          [perhaps by number](crate::state::datatypes), what it compares with, and its operands
//! answer   0 how it went, 4 the rank that is in the way, plus one (u32)
//!          8 where conflicts are looked for what is known and was found, after its length (u32); what was found
//! ```

use crate::collect::visits::{Action, Code};
use crate::state::datatypes::{Named, Numbered, Unread};
use crate::state::locks::visit::List;
use fencepost_transport::{Hold, Record};

/// The epoch is exclusive.
const EXCLUSIVE: u8 = 1;
/// All regions are to be taken, and held until the epoch ends.
const HOLDS: u8 = 2;
/// The epoch ends.
const ENDS: u8 = 4;
/// The origin waits, and asks which rank is in its way.
pub(crate) const HOLDER: u8 = 8;
/// Conflicts are looked for.
const CHECKED: u8 = 16;

const REQUEST: usize = 16;
const ANSWER: usize = 8;

/// The most bytes of a request or an answer, except for one element: an origin divides what is
/// longer.
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
    /// contain their offsets; as read, they follow one another.
    pub(crate) wide: Vec<u8>,
    /// The length of each wide operation's datatype, at the origin.
    pub(crate) forms: Vec<usize>,
    /// The line since which the lock is held.
    pub(crate) site: String,
    /// An [`Entering`](crate::state::locks::entering::Entering), as bytes; empty if nothing is
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
        out.extend_from_slice(&[flags, site.len() as u8, 0, 0]);
        for number in [self.regions, self.records.len() as u32, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for Record { head, value } in &self.records {
            out.extend_from_slice(&head.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
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
        let written = (out.len() - wide) as u32;
        out[12..REQUEST].copy_from_slice(&written.to_le_bytes());
        out.extend_from_slice(site);
        out.extend_from_slice(&self.entering);
    }

    /// Replaces the numbers of datatypes, of elements of `size` bytes, by the datatypes that the
    /// origin's numbers are known to mean.
    ///
    /// # Errors
    /// A number is not known, or no origin writes this. Then nothing of the request may be used.
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

    /// Writes the question which rank is in the way of a request that waits.
    pub(crate) fn write_holder(out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&[0; REQUEST]);
        out[0] = HOLDER;
    }
}

impl Asked {
    /// Reads a request. Returns `None` for what no rank writes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<REQUEST>()?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        if head[0] == HOLDER {
            return (head[1..].iter().all(|&byte| byte == 0) && rest.is_empty()).then_some(Self::Holder);
        }
        if head[0] & !(EXCLUSIVE | HOLDS | ENDS | CHECKED) != 0 || head[2..4] != [0, 0] {
            return None;
        }
        let (records, rest) = rest.split_at_checked(number(8).checked_mul(size_of::<Record>())?)?;
        let (wide, rest) = rest.split_at_checked(number(12))?;
        let (site, entering) = rest.split_at_checked(usize::from(head[1]))?;
        if entering.is_empty() == (head[0] & CHECKED != 0) {
            return None;
        }
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let records = records.chunks_exact(size_of::<Record>());
        Some(Self::New(Request {
            hold: if head[0] & EXCLUSIVE == 0 { Hold::Shared } else { Hold::Exclusive },
            holds: head[0] & HOLDS != 0,
            ends: head[0] & ENDS != 0,
            regions: number(4) as u32,
            records: records.map(|r| Record { head: word(&r[..8]), value: word(&r[8..]) }).collect(),
            wide: wide.to_vec(),
            forms: Vec::new(),
            site: String::from_utf8_lossy(site).into_owned(),
            entering: entering.to_vec(),
        }))
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It was carried out.
    Done = 0,
    /// It waits for a lock.
    Waits = 1,
    /// The part was dropped: nothing was done.
    Dropped = 2,
    /// The request is not valid: nothing was done.
    Refused = 3,
    /// The part was dropped when its owner knew that the world was over: nothing was done.
    Over = 4,
    /// Another rank accesses the part, which only one rank may access: nothing was done.
    NotSole = 5,
    /// There is no memory for the elements that it finds: nothing was done.
    NoMemory = 6,
    /// A datatype has a number that is not known: nothing was done.
    Missing = 7,
}

/// Returns the head of an answer.
pub(crate) fn answer(outcome: Outcome, in_the_way: Option<usize>) -> Vec<u8> {
    let rank = in_the_way.map_or(0, |rank| rank as u32 + 1);
    [&[outcome as u8, 0, 0, 0], &rank.to_le_bytes()[..]].concat()
}

/// Splits an answer into its parts. Returns `None` for what no attendant writes.
pub(crate) fn read_answer(bytes: &[u8]) -> Option<(Outcome, Option<usize>, &[u8])> {
    let (head, found) = bytes.split_first_chunk::<ANSWER>()?;
    let outcome = match head[0] {
        0 => Outcome::Done,
        1 => Outcome::Waits,
        2 => Outcome::Dropped,
        3 => Outcome::Refused,
        4 => Outcome::Over,
        5 => Outcome::NotSole,
        6 => Outcome::NoMemory,
        7 => Outcome::Missing,
        _ => return None,
    };
    let has_more = matches!(outcome, Outcome::Done | Outcome::Waits);
    if head[1..4] != [0; 3] || !found.is_empty() && !has_more {
        return None;
    }
    let rank = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    Some((outcome, rank.checked_sub(1).map(|rank| rank as usize), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::visits::{Visits, record};
    use fencepost_planner::datatype::Datatype;

    #[test]
    fn a_request_is_read_as_it_was_written_and_no_part_of_it_is() {
        let mut visits = Visits::default();
        let strided = Datatype::nest(3, &[(4, 7), (2, 100)], 2);
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
