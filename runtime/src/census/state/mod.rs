//! The data that a rank keeps for the census of an exchange, without the protocol.

pub(crate) mod aside;
pub(crate) mod counts;
pub(crate) mod items;
pub(crate) mod rides;
pub(crate) mod roles;
pub(crate) mod staged;

use crate::census::state::counts::Halving;
use crate::census::state::items::Items;
use crate::census::state::roles::Roles;
use fencepost_planner::census::{Census, choose, dense, short};
use fencepost_planner::machine::Machine;
use std::cell::{Cell, OnceCell, RefCell};

/// The state of the censuses of one rank. In a census, the ranks of a world find out which ranks
/// have entered an exchange, and for which other ranks each of them has something.
pub(crate) struct CensusState {
    /// The census that the program has chosen, for this world and the worlds that are split from
    /// it.
    pub(crate) chosen: Option<Census>,
    /// The chosen census, or the census of the machine model.
    pub(crate) usual: Census,
    /// The census of the exchange that this rank is in, or was in last.
    pub(crate) taken: Cell<Census>,
    /// If each rank has at least this number of targets, the machine model predicts that a reduced
    /// census is faster than a sparse census.
    pub(crate) dense: u32,
    /// Whether each rank had at least `dense` targets in the last fence.
    pub(crate) was_dense: Cell<bool>,
    /// The maximum length in bytes of a frame of operations that is piggybacked on a census.
    pub(crate) short: usize,
    /// The hosts of the ranks, and their leaders in a sparse census.
    pub(crate) roles: Roles,
    /// The positions of the ranks in a reduced census, computed for the first such census.
    halving: OnceCell<Halving>,
    /// The items of the last census.
    pub(crate) items: RefCell<Items>,
}

impl CensusState {
    pub(crate) fn new(roles: Roles, chosen: Option<Census>, machine: &Machine) -> Self {
        let usual = chosen.unwrap_or_else(|| choose(roles.places(), machine));
        Self {
            chosen,
            usual,
            taken: Cell::new(usual),
            dense: dense(roles.places(), machine),
            was_dense: Cell::new(false),
            short: short(roles.places(), machine),
            halving: OnceCell::new(),
            items: RefCell::default(),
            roles,
        }
    }

    /// Begins an exchange, and returns its census. The census is the same on all ranks, since all
    /// ranks received the same flags in the last fence in which they agreed.
    #[inline]
    pub(crate) fn take(&self) -> Census {
        let taken = if self.was_dense.get() { Census::Reduced } else { self.usual };
        self.taken.set(taken);
        taken
    }

    /// Returns whether the machine model may choose another census for the next exchange.
    pub(crate) fn may_switch(&self) -> bool {
        self.chosen.is_none() && self.usual == Census::Sparse
    }

    /// Returns the positions of the ranks in a reduced census.
    pub(crate) fn halving(&self) -> &Halving {
        self.halving.get_or_init(|| Halving::new(&self.roles))
    }
}
