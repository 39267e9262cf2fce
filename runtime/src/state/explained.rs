//! What is kept of an epoch to explain it.

use crate::state::traffic::Traffic;
use fencepost_planner::adaptive::Rendezvous;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::verify::Verified;
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;

/// What a line has asked of a window since its last fence.
pub(crate) struct Note {
    pub(crate) site: &'static Location<'static>,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    pub(crate) section: bool,
    pub(crate) operations: u64,
    pub(crate) elements: u64,
    pub(crate) targets: BTreeSet<usize>,
}

/// What a rank of a world keeps for [`World::explain_last`](crate::World::explain_last).
#[derive(Default)]
pub(crate) struct Explained {
    pub(crate) last: Option<Last>,
    /// What had been sent when the last epoch ended.
    pub(crate) before: Traffic,
    /// What was decided about the sections of the epoch that is being ended.
    pub(crate) rendezvous: Rendezvous,
    /// Whether it was said how many ranks share a core.
    pub(crate) cores: bool,
}

pub(crate) enum Last {
    Told(String),
    /// Formatted when it is asked for.
    Prepared(String, Arc<Verified<Schedule>>),
}
