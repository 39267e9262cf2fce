//! [`Entering`]: the announcement of the operations that an origin is about to carry out under a
//! lock, if conflicts are checked. If the origin reaches the part, only the origin uses the
//! announcement. Otherwise the origin sends the announcement to the attendant of the target.

use crate::check::state::clock;
use crate::check::state::conflicts::{read_site, write_site};
use crate::check::state::kinds::{code, kind};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::{Kind, Site};
use fencepost_transport::bytes::{Reader, Writer};
use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;

/// Operations on one part, and the times that their origin knows to be over.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Entering {
    /// The time at which the operations end.
    pub(crate) time: u64,
    /// The time of the origin when all ranks of the world last met. Usually everything that the
    /// origin ended before that time is over for all ranks.
    pub(crate) met: u64,
    /// The times that the origin knows when the operations have ended.
    pub(crate) knows: Vec<u64>,
    /// The times that the origin knew when it called the operations. Each row has the times of all
    /// ranks; the row of the first operation is first.
    pub(crate) known: Vec<u64>,
    pub(crate) calls: Vec<Called>,
    /// The places of file names in the origin's log at the part, for the names that were used last.
    /// These places are not sent.
    pub(crate) files: RefCell<Places<Arc<str>>>,
}

/// The places of file names in a log, by keys that identify the names.
#[derive(Clone, Debug)]
pub(crate) struct Places<K>(Vec<(K, usize)>);

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> Places<K> {
    /// Returns the place of a name. If the name is not among the names that were used last, `make`
    /// searches for the name and returns its key and its place.
    #[inline]
    pub(crate) fn find(&mut self, is_it: impl Fn(&K) -> bool, make: impl FnOnce() -> (K, usize)) -> usize {
        match self.0.iter().find(|(known, _)| is_it(known)) {
            Some((_, place)) => *place,
            None => self.add(make()),
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, (name, place): (K, usize)) -> usize {
        const MOST: usize = 8;
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.push((name, place));
        place
    }
}

/// All values count as equal, since the places are not sent.
impl<K> PartialEq for Places<K> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<K> Eq for Places<K> {}

/// An operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Called {
    pub(crate) kind: Kind,
    pub(crate) elements: Datatype,
    pub(crate) site: Site,
    /// The number of the operation among the operations of its origin.
    pub(crate) number: usize,
    /// The row of [`Entering::known`] with the times that were known when the operation was called.
    pub(crate) known: usize,
    /// Whether the operation returns the elements that it finds. `false` for a get.
    pub(crate) fetches: bool,
}

/// An operation on one element that returns no elements.
#[derive(Clone, Copy)]
pub(crate) struct ShortCall {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
    pub(crate) site: &'static Location<'static>,
    /// The number of the operation among the operations of its origin.
    pub(crate) number: usize,
}

impl Entering {
    /// Returns the times that the origin knew when it called this operation.
    #[inline]
    pub(crate) fn known_at(&self, call: &Called) -> &[u64] {
        let ranks = self.knows.len();
        &self.known[call.known * ranks..][..ranks]
    }

    /// Returns the time of `rank` that the origin knew when it called the first operation. At later
    /// calls, the origin knew the same time or a later one.
    #[inline]
    pub(crate) fn known_first(&self, rank: usize) -> u64 {
        self.known.chunks_exact(self.knows.len()).map(|known| known[rank]).min().unwrap_or(u64::MAX)
    }

    /// Appends the encoded form to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put([self.time, self.met]);
        clock::write(&self.knows, out);
        out.put((self.known.len() / self.knows.len()) as u64);
        clock::write(&self.known, out);
        out.put(self.calls.len() as u64);
        for call in &self.calls {
            let kind = code(call.kind) | u64::from(call.fetches) << 8;
            out.put([kind, call.number as u64, call.known as u64]);
            write_site(out, &call.site.file, call.site.line, call.site.column);
            call.elements.encode(out);
        }
    }

    /// Reads the announcement of operations on a part of `len` elements, from a rank of a world of
    /// `ranks` ranks. Returns `None` if the bytes are not valid.
    pub(crate) fn read(ranks: usize, len: usize, bytes: &[u8]) -> Option<Self> {
        let bytes = &mut Reader(bytes);
        let [time, met] = bytes.take()?;
        let knows = clock::read(ranks, bytes)?;
        // Each item takes at least one byte. So if a number is too large, the read fails before
        // memory is allocated.
        let count = |bytes: &mut Reader<'_>| {
            let count: u64 = bytes.take()?;
            usize::try_from(count).ok().filter(|&count| count <= bytes.0.len())
        };
        let rows = count(bytes)?;
        let known = clock::read(rows.checked_mul(ranks)?, bytes)?;
        let calls = (0..count(bytes)?).map(|_| {
            let [head, number, at]: [u64; 3] = bytes.take()?;
            let (kind, fetches) = (kind(head & 0xff)?, head >> 8 & 1 == 1);
            let (number, at) = (number as usize, at as usize);
            let site = read_site(bytes)?;
            let elements = Datatype::decode(&mut bytes.0).ok()?;
            let fits = elements.low() >= 0 && elements.high() <= len as i64 && at < rows;
            (fits && !elements.is_empty()).then_some(Called {
                kind,
                elements,
                site,
                number,
                known: at,
                fetches,
            })
        });
        let calls = calls.collect::<Option<Vec<_>>>()?;
        let files = RefCell::default();
        bytes.is_empty().then_some(Self { time, met, knows, known, calls, files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Op;

    #[test]
    fn what_was_written_is_read_and_no_part_of_it_is() {
        let site = Site { file: "src/main.rs".into(), line: 7, column: 9 };
        let call = |kind, elements, known| Called {
            kind,
            elements,
            site: site.clone(),
            number: 3,
            known,
            fetches: kind == Kind::Accumulate(Op::NoOp),
        };
        let entering = Entering {
            time: 5,
            met: 4,
            knows: vec![1, 6],
            known: vec![0, 5, 1, 5],
            files: RefCell::default(),
            calls: vec![
                call(Kind::Put, Datatype::run(2..9), 0),
                call(Kind::Accumulate(Op::NoOp), Datatype::run(3..4), 0),
                call(Kind::Accumulate(Op::Max), Datatype::nest(1, &[(3, 4)], 2).unwrap(), 1),
            ],
        };
        let mut out = Vec::new();
        entering.write(&mut out);
        assert_eq!(Entering::read(2, 11, &out), Some(entering.clone()));
        assert_eq!(Entering::read(2, 10, &out), None, "past the end of the part");
        assert_eq!(Entering::read(3, 11, &out), None, "of another world");
        (0..out.len()).for_each(|len| assert_eq!(Entering::read(2, 11, &out[..len]), None));
        let wrong = Entering { known: vec![0, 5], ..entering };
        out.clear();
        wrong.write(&mut out);
        assert_eq!(Entering::read(2, 11, &out), None, "called when nothing is said to be known");
    }
}
