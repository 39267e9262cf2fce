//! Operations that are sent before their fence, to ranks whose memory the sender does not reach.
//!
//! These operations arrive among the frames of other fences, windows and schedules. So a rank looks
//! for frames only with `WorldCore::poll`, which stages these operations by window. The frame that
//! the sender posts at the fence contains how many early frames belong to the epoch. Early frames
//! of epochs that the sender has abandoned are dropped.

use crate::protocol::frames::kind;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::ErrorClass;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Loss, Lost, Port};

/// The low half of the word of an early frame.
///
/// If a single bit of a frame of another kind flips, the frame does not become a valid early frame.
/// So a frame that a rank waits for is never staged by mistake.
const MARK: u32 = 0x0ea1_1e57;

/// Returns the header of a frame that is sent before the next fence of `window`, by a rank that has
/// been in `number` supersteps.
pub(crate) fn header(number: u32, window: u32) -> Header {
    Header { word: u64::from(number) << 32 | u64::from(MARK), kind: kind::EARLY, extra: window }
}

impl WorldCore {
    /// Returns the oldest frame from `from` that was not released and is due now, as
    /// [`Channels::poll`] does.
    ///
    /// Meanwhile, early frames are staged, or dropped if their window was dropped.
    ///
    /// # Errors
    /// As [`Channels::poll`].
    #[inline(always)]
    pub(crate) fn poll(&self, endpoint: &mut Endpoint, from: usize) -> Result<Option<Frame>, Lost> {
        loop {
            match endpoint.poll(from, Port::FENCE)? {
                Some(frame) if frame.header.kind == kind::EARLY => self.stage(endpoint, from, frame)?,
                other => return Ok(other),
            }
        }
    }

    /// Stages the early frames that `from` has sent so far, while this rank waits for something
    /// that comes after them.
    ///
    /// Otherwise the transport would hold each of these frames separately, however many there are.
    ///
    /// # Errors
    /// If there is no memory for the frames.
    #[cold]
    pub(crate) fn stage_waiting(&self, endpoint: &mut Endpoint, from: usize) -> Result<(), Lost> {
        // An error of the transport is ignored here: the poll with which this rank waits reports
        // it.
        while let Ok(Some(frame)) = endpoint.poll(from, Port::FENCE)
            && frame.header.kind == kind::EARLY
        {
            self.stage(endpoint, from, frame)?;
        }
        Ok(())
    }

    #[cold]
    fn stage(&self, endpoint: &mut Endpoint, from: usize, frame: Frame) -> Result<(), Lost> {
        if frame.header.word as u32 != MARK {
            endpoint.release(from, Port::FENCE);
            return Err(self.refuse(endpoint, from, "it sent an early-data frame with an invalid marker"));
        }
        if self.windows.has(frame.header.extra) {
            // SAFETY: the frame is readable until it is released, below.
            let payload = unsafe { frame.bytes() };
            if self.fence.staged.borrow_mut().keep(from, frame.header, payload).is_err() {
                let what = format!(
                    "rank {} has no memory to keep {} bytes that rank {from} put before its fence",
                    self.rank, frame.len
                );
                endpoint.release(from, Port::FENCE);
                self.calls.sites.end(ErrorClass::NoMem);
                return Err(self.end_for(endpoint, Lost { rank: self.rank, how: Loss::Ended(what) }));
            }
        }
        endpoint.release(from, Port::FENCE);
        Ok(())
    }

    /// Drops the early frames that `from` sent for this window, after the fence of this word has
    /// failed.
    pub(crate) fn drop_early(&self, from: usize, window: &WindowCore, word: u64) {
        drop(self.fence.staged.borrow_mut().take(from, window.key.window, word));
    }
}
