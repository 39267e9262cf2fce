//! Calls of all ranks that fence no window.

use super::Fence;
use crate::protocol::exchange::bytes_of;
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::Result;

impl WorldCore {
    /// Every rank sends every rank some bytes, in one collective call; returns what each rank has sent to this one,
    /// `[from]`.
    pub(crate) fn meet(&self, call: &Call, give: impl Fn(usize) -> Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.admits(call)?;
        let endpoint = &mut *self.endpoint.borrow_mut();
        Fence { gives: Some(&give), ..Fence::new(self, &[], call, endpoint) }.run(None)?;
        let mut all = Vec::with_capacity(self.size);
        for from in 0..self.size {
            if from == self.rank {
                all.push(give(from));
                continue;
            }
            // It was posted before the notification, which has been read, so it is here.
            let frame = self.poll(endpoint, from).map_err(|lost| self.lost(&lost, call))?;
            let bytes = frame.map(|frame| bytes_of(self, endpoint, from, frame, kind::SETUP));
            let bytes = bytes.unwrap_or_else(|| {
                Err(self.refuse(endpoint, from, "it did not send the frame that this call needs"))
            });
            all.push(bytes.map_err(|lost| self.lost(&lost, call))?);
        }
        Ok(all)
    }
}
