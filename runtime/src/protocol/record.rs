//! Records calls and waits, if this rank has a recorder.

use crate::protocol::state::recorder::{ANY, Began};
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::explain::explain_rank;
use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use fencepost_transport::Channels;
use std::sync::Arc;

impl WorldCore {
    /// Begins to record a call. Returns `None` if nothing is recorded, or if the call is part of
    /// another call. The endpoint must not be borrowed.
    #[inline(always)]
    pub(crate) fn begin_record(&self, call: &Call) -> Option<Began> {
        if self.reports.recorder.get().is_none() { None } else { self.begin_recorded(call) }
    }

    #[cold]
    #[inline(never)]
    fn begin_recorded(&self, call: &Call) -> Option<Began> {
        let recorder = self.reports.recorder.get()?;
        let named;
        let call = if call.name.is_none() && self.supersteps.is_any_running() {
            named = self.supersteps.call(call);
            &named
        } else {
            call
        };
        recorder.begin(call.name, call.site, self.endpoint.borrow().meter().total())
    }

    /// Records the end of a call.
    #[inline(always)]
    pub(crate) fn end_record(&self, began: Option<Began>) {
        if let Some(began) = began {
            self.end_recorded(began, false);
        }
    }

    /// Records the end of a prepared run, or of its first half if the second half `follows`.
    #[inline(always)]
    pub(crate) fn end_run_record(&self, began: Option<Began>, follows: bool, share: &Arc<Verified<Share>>) {
        if self.reports.recorder.get().is_some() {
            self.end_recorded_run(began, follows, share);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_recorded_run(&self, began: Option<Began>, follows: bool, share: &Arc<Verified<Share>>) {
        let Some(recorder) = self.reports.recorder.get() else { return };
        if !follows {
            recorder.ran(share, |share| self.predicted(share));
        }
        if let Some(began) = began {
            self.end_recorded(began, follows);
        }
    }

    /// Returns the predicted time of this rank's share of a schedule.
    pub(crate) fn predicted(&self, share: &Share) -> f64 {
        explain_rank(share, share.rank(), &self.machine).terms.predicted().0
    }

    /// Records the end of a call, or of the first half of a run if the second half `follows`.
    pub(crate) fn end_half_record(&self, began: Option<Began>, follows: bool) {
        if let Some(began) = began {
            self.end_recorded(began, follows);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_recorded(&self, began: Began, follows: bool) {
        if let Some(recorder) = self.reports.recorder.get() {
            recorder.end(began, self.endpoint.borrow().meter().total(), follows);
        }
    }

    /// Records that a call has waited for `peer`, a rank of this world, or for any of several
    /// ranks.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_wait(&self, call: &Call, peer: Option<usize>, since: u64) {
        if let Some(recorder) = self.reports.recorder.get() {
            let rank = peer.map_or(ANY, |peer| self.stalls.borrow().waits.rank(peer) as u32);
            recorder.waited((call.name, call.site), rank, since);
        }
    }
}
