//! [`Interner`]: one id for each distinct value, by content.

use crate::ids::Id;
use crate::table::Table;
use indexmap::IndexSet;
use std::hash::Hash;
use std::marker::PhantomData;

/// Distinct values, each kept once. Ids are assigned in the order in which values first occur, so
/// the same calls return the same ids.
#[derive(Clone, Debug)]
pub struct Interner<I, T> {
    values: IndexSet<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T: Hash + Eq> Interner<I, T> {
    /// Returns the id of `value`. The id is new if no equal value was interned before.
    pub fn intern(&mut self, value: T) -> I {
        I::new(self.values.insert_full(value).0)
    }

    /// Does the same as [`Self::intern`], but clones the value if it is new.
    pub fn intern_ref(&mut self, value: &T) -> I
    where
        T: Clone,
    {
        self.values.get_index_of(value).map_or_else(|| self.intern(value.clone()), I::new)
    }

    /// Returns the values, by id.
    pub fn into_table(self) -> Table<I, T> {
        self.values.into_iter().collect()
    }
}

impl<I, T> Default for Interner<I, T> {
    fn default() -> Self {
        Self { values: IndexSet::default(), id: PhantomData }
    }
}

impl<I: Id, T> std::ops::Index<I> for Interner<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.values[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::Interner;
    use crate::datatype::Datatype;
    use crate::ids::DatatypeId;

    #[test]
    fn equal_values_have_one_id_and_ids_follow_first_meeting() {
        let mut interner = Interner::default();
        let column = Datatype::nest(3, &[(4, 10)], 1).unwrap();
        let first = interner.intern(Datatype::run(0..4));
        let second = interner.intern_ref(&column);
        assert_eq!((first, second), (DatatypeId(0), DatatypeId(1)));
        assert_eq!(interner.intern(Datatype::elements([3, 13, 23, 33]).unwrap()), second);
        assert_eq!(interner[second], column);
        assert_eq!(interner.into_table().len(), 2);
    }
}
