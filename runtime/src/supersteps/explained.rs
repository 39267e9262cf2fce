//! [`Explained`]: an explanation of how the operations of a superstep travel, as values and not as
//! text.

use crate::supersteps::prepared::patterns_of;
use fencepost_planner::conflicts::{Conflict, conflicts};
use fencepost_planner::explain::{ExplainedPlan, Member, explain, explain_rank};
use fencepost_planner::ids::Id;
use fencepost_planner::machine::Machine;
use fencepost_planner::share::Share;
use std::fmt;

/// Explains how the operations of a compiled or prepared superstep travel, and why, epoch by epoch.
/// `Display` writes the explanation as text.
#[derive(Clone, PartialEq, Debug)]
pub struct Explained {
    /// How `name::load` obtained the plan from its source, as a line of text; empty for other
    /// plans.
    pub origin: String,
    /// The epochs, in program order.
    pub epochs: Vec<ExplainedEpoch>,
}

/// How the operations of one epoch travel.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedEpoch {
    /// Whether the plan was compiled again, because ranks that share memory in the plan exchange
    /// messages here.
    pub is_replanned: bool,
    /// The explained part of the plan: all of it, or the part of one rank.
    pub share: ExplainedShare,
    /// The operations that conflict, as far as this rank knows them.
    pub conflicts: Vec<Conflict>,
}

/// The part of a plan that a rank has.
#[derive(Clone, PartialEq, Debug)]
pub enum ExplainedShare {
    /// The operations of all ranks.
    Whole(ExplainedPlan),
    /// The operations of this rank only, since another rank has planned for all ranks.
    Rank {
        /// The name of the superstep.
        name: String,
        /// The number of ranks.
        ranks: usize,
        /// The rank.
        member: Member,
    },
}

impl ExplainedEpoch {
    /// Explains the part of a schedule that a rank has.
    pub(crate) fn of_share(share: &Share, machine: &Machine, is_replanned: bool) -> Self {
        let explained = if share.is_whole() {
            ExplainedShare::Whole(explain(share, machine))
        } else {
            let member = explain_rank(share, share.rank(), machine);
            ExplainedShare::Rank { name: share.name.clone(), ranks: share.class_of.len(), member }
        };
        Self { is_replanned, share: explained, conflicts: known_conflicts(share) }
    }
}

/// Returns the conflicts that a share contains completely: the conflicts on windows of its rank, or
/// all conflicts if the share is the whole schedule.
pub(crate) fn known_conflicts(share: &Share) -> Vec<Conflict> {
    let mut all = conflicts(&patterns_of(share));
    all.retain(|conflict| share.is_whole() || conflict.rank == share.rank().index());
    all
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        self.epochs.iter().try_for_each(|epoch| write!(f, "{epoch}"))
    }
}

impl fmt::Display for ExplainedEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_replanned {
            f.write_str(
                "the plan takes ranks to share memory that exchange messages here: compiled again for this world\n",
            )?;
        }
        match &self.share {
            ExplainedShare::Whole(all) => write!(f, "{all}")?,
            ExplainedShare::Rank { name, ranks, member } => {
                write!(f, "{name}: rank {} of {ranks}\n{member}", member.rank)?
            }
        }
        self.conflicts.iter().try_for_each(|conflict| writeln!(f, "conflict: {conflict}"))
    }
}
