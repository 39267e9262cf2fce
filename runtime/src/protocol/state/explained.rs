//! The records of an epoch that are kept to explain it.

use crate::protocol::state::traffic::Traffic;
use fencepost_planner::adaptive::Rendezvous;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// The operations that one source line has called on a window since the window's last fence.
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
    /// Whether the number of ranks that share the cores was reported.
    pub(crate) cores: bool,
    /// The epochs so far of all worlds of the run, grouped by the text of their call. The groups
    /// are in the order of their first epochs.
    pub(crate) calls: Rc<RefCell<Vec<(String, Epochs)>>>,
}

/// The epochs that one call has ended.
#[derive(Default)]
pub(crate) struct Epochs {
    pub(crate) count: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) last: Option<Last>,
}

impl Explained {
    /// Adds an epoch that has ended, with the traffic up to its end.
    pub(crate) fn add(&mut self, call: String, now: Traffic, last: Last) {
        let calls = &mut *self.calls.borrow_mut();
        let place = calls.iter().position(|(known, _)| *known == call).unwrap_or_else(|| {
            calls.push((call, Epochs::default()));
            calls.len() - 1
        });
        let epochs = &mut calls[place].1;
        epochs.count += 1;
        epochs.messages += now.messages - self.before.messages;
        epochs.bytes += now.bytes - self.before.bytes;
        epochs.last = Some(last.clone());
        self.last = Some(last);
        self.before = now;
    }
}

#[derive(Clone)]
pub(crate) enum Last {
    Told(String),
    /// The explanation is formatted when it is requested.
    Prepared(String, Arc<Verified<Share>>),
}
