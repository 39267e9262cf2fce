//! Numbers for datatypes. If a rank does not reach the sender's memory, the sender sends it each
//! datatype once in full, and afterwards only as a number.
//!
//! The sender assigns the numbers, 256 for each receiver and stream of frames. If the sender needs
//! another number, the datatype that was used least recently loses its number. The receiver keeps
//! the datatypes that it receives, in order. So both ranks always have the same list, and the
//! memory for one sender is bounded. An attendant reads requests, and may have refused an earlier
//! request without reading it. If the attendant does not know a number, it reports that, and the
//! sender begins again without any numbers. A rank reads all posts and accesses, each once and in
//! order, unless it ends the world or has dropped the window. So posts and accesses never contain
//! an unknown number.
//!
//! ```text
//! 0 form              a datatype, which gets no number
//! 1 number form       a datatype, which has this number from here on
//! 2 number            the datatype of this number
//! 3 number ..         the datatype of this number is forgotten; another of these forms follows
//! 4 ..                all datatypes are forgotten; another of these forms follows
//! ```

use fencepost_planner::datatype::Datatype;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of datatypes that have a number.
const NUMBERS: usize = 256;
/// The maximum number of bytes of the datatypes with numbers that a receiver keeps for a sender.
const KEPT: usize = 1 << 20;
/// The minimum number of bytes of a datatype with a number. The number itself takes two bytes.
const LEAST: usize = 8;
/// The maximum number of bytes of a datatype with a number.
const MOST: usize = KEPT / 4;

const PLAIN: u8 = 0;
const NEW: u8 = 1;
const KNOWN: u8 = 2;
const GONE: u8 = 3;
const ALL_GONE: u8 = 4;

/// The numbers that a sender has assigned.
#[derive(Default)]
pub(crate) struct Named {
    numbers: BTreeMap<Rc<[u8]>, u8>,
    /// The datatypes, by number.
    forms: Vec<Option<Used>>,
    bytes: usize,
    uses: u64,
    /// Whether the receiver must forget all numbers.
    begins_again: bool,
}

/// A datatype with a number: its wire form, and when it was used.
type Used = (Rc<[u8]>, u64);

/// The datatypes that a receiver keeps.
#[derive(Default)]
pub(crate) struct Numbered {
    /// The datatypes, by number.
    forms: Vec<Option<Read>>,
    bytes: usize,
}

/// A datatype that was read: its wire form, and how many elements it has.
pub(crate) type Read = (Arc<[u8]>, usize);

/// Why a datatype cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// The receiver does not know the number of the datatype.
    Missing,
    /// No correct rank writes these bytes.
    Invalid,
}

impl Named {
    /// Appends the datatype of this wire form: in full, or as its number.
    pub(crate) fn write(&mut self, form: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.begins_again) {
            out.push(ALL_GONE);
        }
        if !(LEAST..=MOST).contains(&form.len()) {
            out.push(PLAIN);
            return out.extend_from_slice(form);
        }
        self.uses += 1;
        if let Some(&number) = self.numbers.get(form) {
            if let Some((_, used)) = &mut self.forms[usize::from(number)] {
                *used = self.uses;
            }
            return out.extend_from_slice(&[KNOWN, number]);
        }
        while self.bytes + form.len() > KEPT
            && let Some(oldest) = self.oldest()
        {
            self.forget(oldest);
            out.extend_from_slice(&[GONE, oldest]);
        }
        let free = self.forms.iter().position(Option::is_none).or_else(|| {
            let len = self.forms.len();
            self.forms.push(None);
            (len < NUMBERS).then_some(len)
        });
        self.forms.truncate(NUMBERS);
        let number = free.map_or_else(|| self.oldest().unwrap_or_default(), |free| free as u8);
        self.forget(number);
        let kept: Rc<[u8]> = form.into();
        self.bytes += form.len();
        self.numbers.insert(kept.clone(), number);
        self.forms[usize::from(number)] = Some((kept, self.uses));
        out.extend_from_slice(&[NEW, number]);
        out.extend_from_slice(form);
    }

    /// Appends this datatype: in full, or as its number.
    pub(crate) fn write_datatype(&mut self, datatype: &Datatype, out: &mut Vec<u8>) {
        let mut form = Vec::new();
        datatype.encode(&mut form);
        self.write(&form, out);
    }

    /// Returns the number that was used least recently.
    fn oldest(&self) -> Option<u8> {
        let used = |(number, form): (usize, &Option<Used>)| Some((form.as_ref()?.1, number as u8));
        self.forms.iter().enumerate().filter_map(used).min().map(|(_, number)| number)
    }

    fn forget(&mut self, number: u8) {
        if let Some((form, _)) = self.forms[usize::from(number)].take() {
            self.bytes -= form.len();
            self.numbers.remove(&form);
        }
    }

    /// Begins again without numbers, since the receiver has not read what was written.
    pub(crate) fn begin_again(&mut self) {
        *self = Self { begins_again: true, ..Self::default() };
    }
}

/// Appends a datatype that gets no number.
pub(crate) fn write_plain(datatype: &Datatype, out: &mut Vec<u8>) {
    out.push(PLAIN);
    datatype.encode(out);
}

impl Numbered {
    /// Takes a datatype off the front of `bytes`.
    pub(crate) fn read(&mut self, bytes: &mut &[u8]) -> Result<Read, Unread> {
        loop {
            let tag = take(bytes)?;
            match tag {
                PLAIN => return form_of(bytes),
                NEW => {
                    let number = take(bytes)?;
                    let (form, elements) = form_of(bytes)?;
                    self.forget(number);
                    self.bytes += form.len();
                    if self.bytes > KEPT {
                        self.bytes -= form.len();
                        return Err(Unread::Invalid);
                    }
                    let at = usize::from(number);
                    self.forms.resize(self.forms.len().max(at + 1), None);
                    self.forms[at] = Some((form.clone(), elements));
                    return Ok((form, elements));
                }
                KNOWN => {
                    let known = self.forms.get(usize::from(take(bytes)?)).cloned().flatten();
                    return known.ok_or(Unread::Missing);
                }
                GONE => {
                    let number = take(bytes)?;
                    self.forget(number);
                }
                ALL_GONE => *self = Self::default(),
                _ => return Err(Unread::Invalid),
            }
        }
    }

    /// Takes a datatype off the front of `bytes`, and decodes it.
    pub(crate) fn datatype(&mut self, bytes: &mut &[u8]) -> Result<Datatype, Unread> {
        if let [PLAIN, rest @ ..] = *bytes {
            *bytes = rest;
            return Datatype::decode(bytes).map_err(|_| Unread::Invalid);
        }
        let (form, _) = self.read(bytes)?;
        Datatype::decode(&mut &form[..]).map_err(|_| Unread::Invalid)
    }

    fn forget(&mut self, number: u8) {
        if let Some((form, _)) = self.forms.get_mut(usize::from(number)).and_then(Option::take) {
            self.bytes -= form.len();
        }
    }
}

fn take(bytes: &mut &[u8]) -> Result<u8, Unread> {
    let (&first, rest) = bytes.split_first().ok_or(Unread::Invalid)?;
    *bytes = rest;
    Ok(first)
}

/// Takes a wire form off the front of `bytes`.
fn form_of(bytes: &mut &[u8]) -> Result<Read, Unread> {
    let before = *bytes;
    let elements = Datatype::decode(bytes).map_err(|_| Unread::Invalid)?.size();
    Ok((before[..before.len() - bytes.len()].into(), elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_tests_support::random::Random;

    /// Returns the form of `len` elements without any order.
    fn irregular(seed: u64, len: usize) -> Vec<u8> {
        let mut dice = Random::new(seed);
        let mut form = Vec::new();
        let elements: Vec<i64> = (0..len).map(|at| (100 * at + dice.below(90)) as i64).collect();
        Datatype::elements(elements).unwrap().encode(&mut form);
        form
    }

    /// Writes `form`, checks that reading returns the same form, and returns the number of bytes
    /// written.
    fn passed(named: &mut Named, numbered: &mut Numbered, form: &[u8]) -> usize {
        let mut bytes = Vec::new();
        named.write(form, &mut bytes);
        let mut rest = &bytes[..];
        let (read, elements) = numbered.read(&mut rest).expect("both know the same");
        assert!(rest.is_empty() && *read == *form);
        assert_eq!(elements, Datatype::decode(&mut &form[..]).expect("a datatype").size());
        assert_eq!(named.bytes, numbered.bytes);
        assert!(named.bytes <= KEPT && named.forms.len() <= NUMBERS);
        bytes.len()
    }

    #[test]
    fn a_datatype_travels_once() {
        let (mut named, mut numbered) = Default::default();
        for seed in 0..NUMBERS as u64 {
            let form = irregular(seed, 50);
            assert_eq!(passed(&mut named, &mut numbered, &form), form.len() + 2);
        }
        for seed in (0..NUMBERS as u64).rev() {
            assert_eq!(passed(&mut named, &mut numbered, &irregular(seed, 50)), 2);
        }
        // A short datatype has no number. A further datatype takes the number of the datatype that
        // was used least recently, which is the last datatype here.
        let mut short = Vec::new();
        Datatype::run(3..5).encode(&mut short);
        (0..2).for_each(|_| assert_eq!(passed(&mut named, &mut numbered, &short), short.len() + 1));
        let more = irregular(999, 50);
        assert_eq!(passed(&mut named, &mut numbered, &more), more.len() + 2);
        assert_eq!(passed(&mut named, &mut numbered, &more), 2);
        assert_eq!(passed(&mut named, &mut numbered, &irregular(254, 50)), 2);
        let evicted = irregular(255, 50);
        assert_eq!(passed(&mut named, &mut numbered, &evicted), evicted.len() + 2);
    }

    #[test]
    fn both_ends_know_the_same_whatever_is_used_and_keep_a_bounded_amount() {
        let mut dice = Random::new(3);
        let (mut named, mut numbered) = Default::default();
        let forms: Vec<Vec<u8>> = (0..400)
            .map(|seed| irregular(seed, 1 + dice.below(if seed % 40 == 0 { 200_000 } else { 2000 })))
            .collect();
        assert!(forms.iter().any(|form| form.len() > MOST), "some are too long for a number");
        let mut saved = 0;
        for _ in 0..4000 {
            let form = &forms[dice.below(400).min(dice.below(400))];
            saved += usize::from(passed(&mut named, &mut numbered, form) == 2);
        }
        assert!(saved > 400, "{saved}");
    }

    #[test]
    fn a_number_that_is_not_known_is_missing_until_the_sender_begins_again() {
        let (mut named, mut numbered) = <(Named, Numbered)>::default();
        let forms = [irregular(1, 9), irregular(2, 9)];
        forms.iter().for_each(|form| assert!(passed(&mut named, &mut numbered, form) > 2));
        numbered = Numbered::default();
        let mut bytes = Vec::new();
        named.write(&forms[1], &mut bytes);
        assert_eq!(numbered.read(&mut &bytes[..]).err(), Some(Unread::Missing));
        passed(&mut Named::default(), &mut numbered, &irregular(7, 20));
        named.begin_again();
        assert_eq!(passed(&mut named, &mut numbered, &forms[1]), forms[1].len() + 3);
        assert_eq!(passed(&mut named, &mut numbered, &forms[1]), 2);
    }

    #[test]
    fn what_no_sender_writes_is_refused_and_bounded() {
        let mut numbered = Numbered::default();
        let mut dice = Random::new(5);
        let form = irregular(1, 30);
        for bytes in [&[][..], &[1], &[2], &[5], &[3], &[4], &[1, 7], &[0, 255], &[3, 1, 3]] {
            assert_eq!(numbered.read(&mut &bytes[..]).err(), Some(Unread::Invalid), "{bytes:?}");
        }
        assert_eq!(numbered.read(&mut &[2, 9][..]).err(), Some(Unread::Missing));
        for _ in 0..3000 {
            let mut bytes = [&[dice.below(6) as u8, dice.bits() as u8], &form[..]].concat();
            let at = dice.below(bytes.len());
            bytes[at] = dice.bits() as u8;
            drop(numbered.read(&mut &bytes[..]));
        }
        // More datatypes than are kept, each under another number.
        let large = irregular(2, 60_000);
        assert!(large.len() > KEPT / 16);
        let refused = (0..=255).any(|number| {
            let bytes = [&[NEW, number], &large[..]].concat();
            let read = numbered.read(&mut &bytes[..]);
            assert!(numbered.bytes <= KEPT);
            read.is_err()
        });
        assert!(refused);
    }
}
