//! What a round of slicing knows: how much of each name is needed.

use super::exits::ExitPosition;
use super::state::States;
use crate::chain::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// How much of a name is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// How many elements it has.
    Shape,
    /// Its value.
    Value,
}

/// What is needed, and what the names stand for.
#[derive(Clone, Copy)]
pub struct Known<'s> {
    pub scope: &'s Scope,
    /// What is needed, as found by the last round.
    pub needs: &'s BTreeMap<String, Need>,
    /// The exits by error that stay.
    pub exits: &'s BTreeSet<ExitPosition>,
    /// Names that are lists of values, as far as syntax shows: only how many there are matters.
    pub lists: &'s BTreeSet<String>,
    /// What may be another value the next time.
    pub states: &'s States,
}

impl Known<'_> {
    /// How much of a name is needed.
    pub fn needed(&self, name: &syn::Ident) -> Option<Need> {
        self.needs.get(&name.to_string()).copied()
    }
}
