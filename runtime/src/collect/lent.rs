//! [`Lent`]: which elements of a window a post exposes, and to which operations.

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

/// The elements that a post exposes, and to which operations.
#[derive(Clone, Debug)]
pub(crate) enum Lent {
    /// The whole window.
    Whole,
    /// The whole window, to gets only.
    Read,
    /// These elements.
    Part(Arc<Part>),
}

/// Some elements of a window.
#[derive(Debug)]
pub(crate) struct Part {
    elements: Datatype,
    /// The same elements in ascending order, each once: runs that neither overlap nor touch.
    runs: Vec<Range<i64>>,
}

impl Part {
    /// Returns the part with the elements of a datatype, which must be within the window.
    ///
    /// # Errors
    /// There is no memory for the runs.
    pub(crate) fn new(elements: Datatype) -> Result<Self, TryReserveError> {
        let runs = elements.ascending_runs()?;
        Ok(Self { elements, runs })
    }

    /// Returns the elements in ascending order, each once.
    pub(crate) fn runs(&self) -> &[Range<i64>] {
        &self.runs
    }

    /// Returns the first run that ends after `at`.
    fn after(&self, at: i64) -> Option<&Range<i64>> {
        self.runs.get(self.runs.partition_point(|run| run.end <= at))
    }

    /// Returns whether all of `run` is in the part.
    fn has(&self, run: &Range<i64>) -> bool {
        run.is_empty()
            || self.after(run.start).is_some_and(|own| own.start <= run.start && run.end <= own.end)
    }

    /// Returns whether some of `run` is in the part.
    pub(crate) fn meets(&self, run: &Range<i64>) -> bool {
        !run.is_empty() && self.after(run.start).is_some_and(|own| own.start < run.end)
    }
}

impl Lent {
    /// Returns the error class of an operation on these elements, if the post does not expose them
    /// to such an operation. The operation is a get if `reads` is set, and otherwise a put.
    pub(crate) fn misfit(&self, elements: &Datatype, reads: bool) -> Option<ErrorClass> {
        self.misfit_of(elements.touched_runs().map(|(at, len)| at..at + len as i64), reads)
    }

    /// Returns the error class of an operation on these runs, if the post does not expose them to
    /// such an operation. The operation is a get if `reads` is set, and otherwise a put.
    pub(crate) fn misfit_of(
        &self,
        mut runs: impl Iterator<Item = Range<i64>>,
        reads: bool,
    ) -> Option<ErrorClass> {
        match self {
            Self::Whole => None,
            Self::Read => (!reads).then_some(ErrorClass::Assert),
            Self::Part(part) => runs.any(|run| !part.has(&run)).then_some(ErrorClass::Disp),
        }
    }

    /// Encodes the exposed elements; `write` encodes the datatype of a part.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, write: impl FnOnce(&Datatype, &mut Vec<u8>)) {
        match self {
            Self::Whole => out.push(0),
            Self::Read => out.push(1),
            Self::Part(part) => {
                out.push(2);
                write(&part.elements, out);
            }
        }
    }

    /// Decodes the exposed elements of a window of `len` elements. `read` takes the datatype of a
    /// part off the front of the bytes. Returns `None` if no correct rank sends these bytes.
    pub(crate) fn decode(
        bytes: &[u8],
        len: usize,
        read: impl FnOnce(&mut &[u8]) -> Option<Datatype>,
    ) -> Option<Self> {
        match bytes.split_first()? {
            (0, []) => Some(Self::Whole),
            (1, []) => Some(Self::Read),
            (2, mut rest) => {
                let elements = read(&mut rest)?;
                let inside = elements.low() >= 0 && elements.high() <= len as i64;
                if !(rest.is_empty() && inside) {
                    return None;
                }
                Part::new(elements).ok().map(|part| Self::Part(Arc::new(part)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_what_its_elements_have_in_any_order() {
        let elements = [5, 1, 2, 2, 9, 6];
        let part = Part::new(Datatype::elements(elements).unwrap()).unwrap();
        assert_eq!(part.runs, [1..3, 5..7, 9..10]);
        for from in 0..11_i64 {
            for to in from..11 {
                let has = |at: i64| elements.contains(&at);
                assert_eq!(part.has(&(from..to)), (from..to).all(has), "{from}..{to}");
                assert_eq!(part.meets(&(from..to)), (from..to).any(has), "{from}..{to}");
            }
        }
    }

    #[test]
    fn what_is_lent_is_read_as_it_was_written_and_nothing_else_is() {
        let part = || Lent::Part(Arc::new(Part::new(Datatype::elements([3, 1]).unwrap()).unwrap()));
        let read = |bytes: &mut &[u8]| Datatype::decode(bytes).ok();
        for lent in [Lent::Whole, Lent::Read, part()] {
            let mut bytes = Vec::new();
            lent.encode(&mut bytes, Datatype::encode);
            let again = Lent::decode(&bytes, 4, read).expect("it was written so");
            assert_eq!(format!("{again:?}"), format!("{lent:?}"));
            bytes.push(0);
            assert!(Lent::decode(&bytes, 4, read).is_none(), "{lent:?}");
        }
        let mut bytes = Vec::new();
        part().encode(&mut bytes, Datatype::encode);
        assert!(Lent::decode(&bytes, 3, read).is_none() && Lent::decode(&[3], 4, read).is_none());
        assert!(Lent::decode(&[], 4, read).is_none());
    }

    #[test]
    fn gets_of_what_is_read_only_fit_and_nothing_else_does() {
        let one = Datatype::run(1..2);
        let part = Lent::Part(Arc::new(Part::new(Datatype::run(0..1)).unwrap()));
        assert_eq!(Lent::Read.misfit(&one, true), None);
        assert_eq!(Lent::Read.misfit(&one, false), Some(ErrorClass::Assert));
        assert_eq!(part.misfit(&one, true), Some(ErrorClass::Disp));
        assert_eq!(part.misfit(&Datatype::run(0..1), false), None);
        assert_eq!(Lent::Whole.misfit(&one, false), None);
    }
}
