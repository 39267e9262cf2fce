//! Operations under locks as requests.

use crate::api::locked::Locked;
use crate::api::refused::Refused;
use crate::api::requests::{Completion, Held, Other, Request};
use crate::collect::operation::{Source, TargetRegion};
use crate::collect::ticket::Ticket;
use crate::kernel::element::Element;
use crate::locks::LockCore;
use crate::messages::state::status::Status;
use crate::state::call::Call;
use fencepost_planner::element::Op;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::Endpoint;
use std::rc::{Rc, Weak};

impl<T: Element> Locked<'_, T> {
    /// Puts like [`put`](Self::put), and returns a request.
    ///
    /// The request is complete at once, since the source was copied. The target may not have the
    /// elements yet.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    ///
    /// # Source
    /// MPI 4.1, section 12.3.5 (MPI_RPUT).
    #[doc(alias = "MPI_Rput")]
    #[track_caller]
    pub fn rput<S: Source<T>>(&self, source: S, region: impl Into<TargetRegion>) -> Result<Request<()>> {
        self.put(source, region)?;
        Ok(Request::new(&self.core.data.world, None, Held::Here(())))
    }

    /// Accumulates as [`accumulate`](Self::accumulate) does, and returns a request.
    ///
    /// The request is complete at once, since the source was copied.
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    ///
    /// # Source
    /// MPI 4.1, section 12.3.5 (MPI_RACCUMULATE).
    #[doc(alias = "MPI_Raccumulate")]
    #[track_caller]
    pub fn raccumulate<S: Source<T>>(
        &self,
        source: S,
        op: Op,
        region: impl Into<TargetRegion>,
    ) -> Result<Request<()>> {
        self.accumulate(source, op, region)?;
        Ok(Request::new(&self.core.data.world, None, Held::Here(())))
    }

    /// Gets as [`get`](Self::get) does, through a request that returns the elements.
    ///
    /// The call that completes the request flushes the epoch, unless the epoch was flushed or has
    /// ended since the get. So that call may wait for the lock. A set may complete the request at
    /// any time, so a call of the set may wait for the lock as well.
    ///
    /// ```
    /// # use fencepost_planner::{element::Op, ir::calls::LockType};
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let u = world.lock_window::<u64>(1)?;
    /// let lock = u.lock(0, LockType::Shared)?;
    /// lock.raccumulate([1], Op::Sum, 0)?.wait()?;
    /// let (count, _) = lock.rget(0)?.wait()?;
    /// assert!((1..=2).contains(&count[0]));
    /// lock.unlock()?;
    /// world.barrier()?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get). The errors of [`flush`](Self::flush) are errors of the request. The
    /// request also fails with `RMA_SYNC` if the epoch has failed, or if the window was given up
    /// before the get was carried out. After an error of the request the list is empty.
    ///
    /// # Source
    /// MPI 4.1, section 12.3.5 (MPI_RGET).
    #[doc(alias = "MPI_Rget")]
    #[track_caller]
    pub fn rget(&self, region: impl Into<TargetRegion>) -> Result<Request<Vec<T>>> {
        let ticket = self.get(region)?;
        let got = Getting { core: Rc::downgrade(self.core), target: self.target, ticket };
        Ok(Request::other(&self.core.data.world, Box::new(got)))
    }
}

struct Getting<T> {
    core: Weak<LockCore>,
    target: usize,
    ticket: Ticket<T>,
}

impl<T: Element> Other<Vec<T>> for Getting<T> {
    fn awaits(&mut self, _: &mut Endpoint) -> Option<(usize, &'static str)> {
        None
    }

    fn carry_out(&mut self, _: &Call) {
        // Only `finish` carries out the get, because no other rank waits for the gets of an origin,
        // and the flush may wait for a lock.
    }

    fn finish(self: Box<Self>, call: &Call) -> Completion<Vec<T>> {
        let error = match self.ticket.take() {
            Ok(elements) => return Ok((elements, Status::default())),
            Err(error) => error,
        };
        let Some(core) = self.core.upgrade().filter(|_| error.class() == ErrorClass::RmaSync) else {
            return Err(Refused::new(Vec::new(), error));
        };
        let flushed = core.carry_out(self.target, false, call);
        let got = flushed.and_then(|()| self.ticket.take());
        got.map(|elements| (elements, Status::default())).map_err(|error| Refused::new(Vec::new(), error))
    }

    fn words(&self) -> String {
        format!("a get from rank {} under a lock", self.target)
    }
}
