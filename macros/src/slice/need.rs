//! The information that a round of slicing uses: the extent to which each name is needed.

use super::exits::ExitPosition;
use super::state::States;
use crate::chain::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// The extent to which a name is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// The number of its elements is needed.
    Shape,
    /// Its value is needed.
    Value,
}

/// The needs of the slice, and the meaning of the names.
#[derive(Clone, Copy)]
pub struct Known<'s> {
    pub scope: &'s Scope,
    /// The needs that the last round found.
    pub needs: &'s BTreeMap<String, Need>,
    /// The exits by error that stay.
    pub exits: &'s BTreeSet<ExitPosition>,
    /// The names that are lists of values, as far as syntax shows. Only their lengths matter.
    pub lists: &'s BTreeSet<String>,
    /// The bindings that determine which expressions may have another value when they are evaluated
    /// again.
    pub states: &'s States,
}

impl Known<'_> {
    /// Returns the extent to which a name is needed, or `None` if it is not needed.
    pub fn needed(&self, name: &syn::Ident) -> Option<Need> {
        self.needs.get(&name.to_string()).copied()
    }
}
