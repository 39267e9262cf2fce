//! The records of an epoch that are kept to explain it.

use crate::state::traffic::Traffic;
use fencepost_planner::adaptive::Rendezvous;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;

/// The operations that a line has asked of a window since its last fence.
pub(crate) struct Note {
    pub(crate) site: &'static Location<'static>,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    pub(crate) section: bool,
    pub(crate) operations: u64,
    pub(crate) elements: u64,
    pub(crate) targets: BTreeSet<usize>,
}

/// The data that a rank of a world keeps for [`World::explain_last`](crate::World::explain_last).
#[derive(Default)]
pub(crate) struct Explained {
    pub(crate) last: Option<Last>,
    /// The traffic up to the end of the last epoch.
    pub(crate) before: Traffic,
    /// The decisions about the sections of the epoch that is being ended.
    pub(crate) rendezvous: Rendezvous,
    /// Whether it was said how many ranks share a core.
    pub(crate) cores: bool,
}

pub(crate) enum Last {
    Told(String),
    /// Formatted when it is asked for.
    Prepared(String, Arc<Verified<Share>>),
}
