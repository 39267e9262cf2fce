//! Interning: one id for each distinct datatype, by content.

use super::form::Datatype;
use crate::ids::Id;
use crate::table::Table;
use std::collections::HashMap;

/// A datatype, by the order in which distinct ones were first met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DatatypeId(pub u32);

impl Id for DatatypeId {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("an id fits 32 bits: inputs are bounded before ids are made"))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for DatatypeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "d{}", self.0)
    }
}

/// Distinct datatypes, each kept once. Ids follow the order of first meeting, so the same calls give the same ids.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    datatypes: Table<DatatypeId, Datatype>,
    /// Looked up by key only, never iterated: its order does not matter.
    ids: HashMap<Datatype, DatatypeId>,
}

impl Interner {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of `datatype`, a new one if no equal one was met before.
    pub fn intern(&mut self, datatype: &Datatype) -> DatatypeId {
        if let Some(&id) = self.ids.get(datatype) {
            return id;
        }
        let id = self.datatypes.push(datatype.clone());
        self.ids.insert(datatype.clone(), id);
        id
    }

    /// The datatypes, by id.
    #[must_use]
    pub fn datatypes(&self) -> &Table<DatatypeId, Datatype> {
        &self.datatypes
    }

    /// The datatypes, by id, for keeping.
    #[must_use]
    pub fn into_datatypes(self) -> Table<DatatypeId, Datatype> {
        self.datatypes
    }
}

impl std::ops::Index<DatatypeId> for Interner {
    type Output = Datatype;
    fn index(&self, id: DatatypeId) -> &Datatype {
        &self.datatypes[id]
    }
}
