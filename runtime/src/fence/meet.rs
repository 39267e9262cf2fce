//! Calls of all ranks that fence no window.

use super::{Fence, fence_giving};
use crate::protocol::exchange::bytes_of;
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::census::Census;

/// Bytes for one other rank, or for all.
pub(crate) type Give<'a> = (Option<usize>, &'a [u8]);

impl WorldCore {
    /// Every rank sends every rank its bytes, in one collective call; returns what each rank has sent, `[from]`.
    pub(crate) fn meet(&self, call: &Call, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.admits(call)?;
        let mut all = vec![Vec::new(); self.size];
        all[self.rank].extend_from_slice(mine);
        let endpoint = &mut *self.endpoint.borrow_mut();
        Fence { gives: &[(None, mine)], ..Fence::new(self, &[], call, endpoint) }.run(None)?;
        if self.census == Census::Sparse {
            let mut missing = vec![true; self.size];
            missing[self.rank] = false;
            for (from, bytes) in self.items.borrow().given(self.rank, true) {
                missing[from] = false;
                all[from].extend_from_slice(bytes);
            }
            if let Some(from) = missing.iter().position(|&missing| missing) {
                let lost = self.refuse(endpoint, from, MISSING);
                return Err(self.lost(&lost, call));
            }
            return Ok(all);
        }
        for from in (0..self.size).filter(|&from| from != self.rank) {
            // It was posted before the notification, which has been read, so it is here.
            let frame = self.poll(endpoint, from).map_err(|lost| self.lost(&lost, call))?;
            let bytes = frame.map(|frame| bytes_of(self, endpoint, from, frame, kind::SETUP));
            let bytes = bytes.unwrap_or_else(|| Err(self.refuse(endpoint, from, MISSING)));
            all[from] = bytes.map_err(|lost| self.lost(&lost, call))?;
        }
        Ok(all)
    }

    /// In a world whose census is sparse: an exchange in which this rank gives others these bytes.
    pub(crate) fn give(&self, call: &Call, gives: &[Give<'_>]) -> Result<()> {
        fence_giving(self, &[], call, None, gives)
    }

    /// What other ranks have [given](Self::give) to this one in the last exchange, `expected` of them. `take` is called with
    /// each, in no order: who gave it, whether it was for all, and its bytes; and returns whether it is what that rank had to
    /// give.
    ///
    /// # Errors
    /// Some rank gave something else: the world ends.
    pub(crate) fn given(
        &self,
        call: &Call,
        expected: usize,
        mut take: impl FnMut(usize, bool, &[u8]) -> bool,
    ) -> Result<()> {
        let items = self.items.borrow();
        let (mut count, mut wrong) = (0, None);
        for to_all in [false, true] {
            for (from, bytes) in items.given(self.rank, to_all) {
                count += 1;
                wrong = wrong.or((!take(from, to_all, bytes)).then_some(from));
            }
        }
        let Some(from) = wrong.or((count != expected).then_some(self.rank)) else { return Ok(()) };
        let lost = self.refuse(&mut self.endpoint.borrow_mut(), from, MISSING);
        Err(self.lost(&lost, call))
    }
}

/// What is wrong with a rank that takes part, and does not give what all ranks give.
const MISSING: &str = "it did not send what this call needs";
