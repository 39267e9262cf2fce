//! Answers about datatypes, each computed once.

use crate::datatype::Datatype;
use crate::ids::DatatypeId;
use crate::intern::Interner;
use std::collections::BTreeMap;
use std::ops::Index;

/// Datatypes by content, and the answers that have been computed for them.
#[derive(Default)]
pub(super) struct Memo {
    known: Interner<DatatypeId, Datatype>,
    overlaps: BTreeMap<(DatatypeId, DatatypeId), bool>,
    repeats: BTreeMap<DatatypeId, bool>,
}

impl Memo {
    pub fn intern(&mut self, datatype: &Datatype) -> DatatypeId {
        self.known.intern_ref(datatype)
    }

    /// Returns whether datatypes `a` and `b` have an element in common.
    pub fn overlap(&mut self, a: DatatypeId, b: DatatypeId) -> bool {
        let key = (a.min(b), a.max(b));
        *self.overlaps.entry(key).or_insert_with(|| self.known[a].overlaps(&self.known[b]))
    }

    /// Returns whether `datatype` visits an element twice.
    pub fn repeats(&mut self, datatype: DatatypeId) -> bool {
        *self.repeats.entry(datatype).or_insert_with(|| self.known[datatype].overlaps_itself())
    }
}

impl Index<DatatypeId> for Memo {
    type Output = Datatype;
    fn index(&self, id: DatatypeId) -> &Datatype {
        &self.known[id]
    }
}
