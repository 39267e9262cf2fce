//! [`Neighbourhood`]: a rank, and the programs of all ranks that it interacts with.

use super::error::Finding;
use super::facts::Facts;
use crate::ids::{Delta, Id, OperationId, Rank};

/// A rank and all ranks that it interacts with, by ascending delta. The rank may interact with
/// itself.
pub(super) struct Neighbourhood<'f, 's> {
    pub rank: Rank,
    pub own: &'f Facts<'s>,
    pub around: &'f [(Delta, &'f Facts<'s>)],
}

impl Neighbourhood<'_, '_> {
    /// Returns the facts of the rank at `delta`.
    pub fn at(&self, delta: Delta) -> &Facts<'_> {
        let found = self.around.binary_search_by_key(&delta, |(delta, _)| *delta);
        found.map_or(self.own, |place| self.around[place].1)
    }

    /// Returns the number of the rank at `delta`.
    pub fn number(&self, delta: Delta) -> Rank {
        Rank::new((self.rank.index() as i64 + delta.0) as usize)
    }

    /// Creates a finding about an instruction of the rank at `actor` and about an operation.
    pub fn finding(
        &self,
        actor: Delta,
        instruction: Option<usize>,
        operation: Option<(Delta, OperationId)>,
        what: String,
    ) -> Box<Finding> {
        let mut finding = self.at(actor).finding(self.number(actor), instruction, what);
        finding.operation = operation.map(|(origin, id)| {
            let site = self.at(origin).program.pattern.operations[id].site.clone();
            (self.number(origin), id, site)
        });
        finding
    }
}
