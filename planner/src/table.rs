//! [`Table`]: a vector indexed by one kind of id only.

use crate::ids::Id;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A vector whose rows are identified by `I`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Table<I, T> {
    rows: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> Table<I, T> {
    /// Creates an empty table.
    pub const fn new() -> Self {
        Self { rows: Vec::new(), id: PhantomData }
    }

    /// Adds a row. Its id is the number of rows before it.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::new(self.rows.len() - 1)
    }

    /// Returns the row, if there is one.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows, in the order of their ids.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }

    /// Returns the rows for modification, in the order of their ids.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.rows.iter_mut()
    }

    /// Returns the ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.rows.len()).map(I::new)
    }

    /// Returns the ids and rows.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(i, row)| (I::new(i), row))
    }

    /// Returns the rows.
    pub fn into_values(self) -> std::vec::IntoIter<T> {
        self.rows.into_iter()
    }
}

impl<I: Id, T> Default for Table<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for Table<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(rows: S) -> Self {
        Self { rows: rows.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I: Id + std::fmt::Debug, T: std::fmt::Debug> std::fmt::Debug for Table<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
