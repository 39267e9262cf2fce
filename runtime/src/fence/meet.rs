//! Calls of all ranks that fence no window.

use super::{Fence, INLINE, fence_giving, straight};
use crate::census::Give;
use crate::check::send_times;
use crate::protocol::exchange::bytes_of;
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::census::Census;
use fencepost_transport::{Notify, Record};
use std::ops::Range;

/// The records that a rank sends to all other ranks in its notifications.
pub(crate) type Told = [Record; 2];

impl Fence<'_> {
    /// Returns the ranks to which this rank may have to send more than its flags. If the call
    /// fences no window and gives nothing, as in a barrier, there are no such ranks, and this
    /// function drafts the same notification for all. Otherwise these are all ranks.
    #[inline]
    pub(super) fn ranks_with_drafts(&mut self, flags: u32) -> Range<usize> {
        let (me, size) = (self.world.rank, self.world.size);
        if !(self.windows.is_empty() && self.gives.is_empty()) {
            return 0..size;
        }
        for to in (0..size).filter(|&to| to != me) {
            let notification = self.endpoint.draft(to);
            (notification.flags, notification.count, notification.address) = (flags, 0, 0);
            if let Some(told) = self.told {
                (notification.count, notification.address, notification.inline) = (1, INLINE, *told);
            }
        }
        0..0
    }
}

impl WorldCore {
    /// Returns whether notifications can carry the records that a rank sends to all others. The
    /// answer is the same on all ranks.
    pub(crate) fn tells(&self) -> bool {
        self.is_straight() && !self.supersteps.is_any_running()
    }

    /// Exchanges notifications in which each rank sends the same records to all others, or sends no
    /// records. Records may be sent only if notifications [can carry them](Self::tells).
    ///
    /// Calls `heard` for each other rank with the records of that rank. If that rank sent no
    /// records, `heard` gets the old contents of that rank's notification.
    pub(crate) fn tell(
        &self,
        call: &Call,
        mine: Option<&Told>,
        mut heard: impl FnMut(usize, &Told),
    ) -> Result<()> {
        self.admits(call)?;
        send_times(self, call)?;
        let endpoint = &mut *self.endpoint.borrow_mut();
        straight::tell(self, call, endpoint, mine)?;
        for from in (0..self.size).filter(|&from| from != self.rank) {
            if let Ok(Some(notification)) = endpoint.read(from) {
                heard(from, &notification.inline);
            }
        }
        Ok(())
    }

    /// Sends this rank's bytes to every rank, in one collective call. Returns what each rank has
    /// sent, indexed by `[from]`.
    pub(crate) fn meet(&self, call: &Call, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut all = self.meet_some(call, &[(None, mine)], |_| true)?;
        all[self.rank].extend_from_slice(mine);
        Ok(all)
    }

    /// Exchanges bytes between some ranks, in one collective call. `gives` has the bytes that this
    /// rank gives, with at most one entry for each rank. `sends` is true for the ranks that have
    /// something for this rank. Returns what each rank has sent to this rank, indexed by `[from]`.
    pub(crate) fn meet_some(
        &self,
        call: &Call,
        gives: &[Give<'_>],
        sends: impl Fn(usize) -> bool,
    ) -> Result<Vec<Vec<u8>>> {
        self.admits(call)?;
        send_times(self, call)?;
        let mut all = vec![Vec::new(); self.size];
        let endpoint = &mut *self.endpoint.borrow_mut();
        Fence { gives, ..Fence::new(self, &[], call, endpoint) }.run(None)?;
        if self.census.usual != Census::Direct {
            let given = self.each_given(&sends, |from, _, bytes| {
                all[from].extend_from_slice(bytes);
                true
            });
            return match given {
                Ok(()) => Ok(all),
                Err(from) => Err(self.lost(&self.refuse(endpoint, from, MISSING), call)),
            };
        }
        for from in (0..self.size).filter(|&from| from != self.rank && sends(from)) {
            // The frame was posted before the notification, which has been read, so the frame has
            // arrived.
            let frame = self.poll(endpoint, from).map_err(|lost| self.lost(&lost, call))?;
            let bytes = frame.map(|frame| bytes_of(self, endpoint, from, frame, kind::SETUP));
            let bytes = bytes.unwrap_or_else(|| Err(self.refuse(endpoint, from, MISSING)));
            all[from] = bytes.map_err(|lost| self.lost(&lost, call))?;
        }
        Ok(all)
    }

    /// Makes an exchange in which this rank gives these bytes to others. The world's census must
    /// not be direct.
    pub(crate) fn give(&self, call: &Call, gives: &[Give<'_>]) -> Result<()> {
        send_times(self, call)?;
        fence_giving(self, &[], call, None, gives)
    }

    /// Takes the bytes that other ranks have [given](Self::give) to this rank in the last exchange:
    /// one gift from each rank for which `gives` is true.
    ///
    /// Calls `take` for each gift, by rank, with the giver, whether the gift was for all, and its
    /// bytes. `take` returns whether the gift is the one that its giver had to send.
    ///
    /// # Errors
    /// Some rank gave something else, or nothing: the world ends.
    pub(crate) fn given(
        &self,
        call: &Call,
        gives: impl Fn(usize) -> bool,
        take: impl FnMut(usize, bool, &[u8]) -> bool,
    ) -> Result<()> {
        self.each_given(gives, take).map_err(|from| {
            let lost = self.refuse(&mut self.endpoint.borrow_mut(), from, MISSING);
            self.lost(&lost, call)
        })
    }

    /// Does the same as [`given`](Self::given), but the error is the rank that gave something else,
    /// or nothing.
    fn each_given(
        &self,
        gives: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, bool, &[u8]) -> bool,
    ) -> Result<(), usize> {
        let items = self.census.items.borrow();
        let missing = |ranks: Range<usize>| {
            ranks.filter(|&rank| rank != self.rank).find(|&rank| gives(rank)).map_or(Ok(()), Err)
        };
        let mut next = 0;
        for (from, to_all, bytes) in items.given(self.rank) {
            missing(next..from)?;
            if from < next || !gives(from) || !take(from, to_all, bytes) {
                return Err(from);
            }
            next = from + 1;
        }
        missing(next..self.size)
    }
}

/// The error text for a rank that takes part, but gives nothing or something else than this call
/// needs.
const MISSING: &str = "it did not send what this call needs";
