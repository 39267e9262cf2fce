//! The methods of [`Window`] for operations, fences and settings.

use crate::collect::operation::{Get, Put, Section, Source, TargetRegion, WindowSection};
use crate::collect::ticket::Ticket;
use crate::fence;
use crate::kernel::element::Element;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::handler::ErrorHandler;
use crate::state::window::Window;
use fencepost_planner::Result;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::Mode;
use std::panic::Location;

impl<T: Element> Window<T> {
    /// Sets the preferred mode of operations that do not name a mode.
    ///
    /// In an epoch that is not compiled, the effect of a mode depends on how a target is reached.
    ///
    /// If ranks only exchange messages:
    ///
    /// - An *aggressive* operation whose source is a slice is sent at the call.
    /// - *Pipelined* operations are sent in frames of about the chunk size of the machine model. A
    ///   frame is sent as soon as it is full. The target stages the operations until its fence.
    /// - In both cases, operations that were collected earlier for the same target are sent first,
    ///   since order is kept. A put of a section holds back all later puts, since the section is
    ///   read at the fence.
    /// - All other operations, gets included, are sent in one frame at the fence.
    /// - *Auto* considers the last two epochs that began at the same line (of a fence, or of a
    ///   superstep's call). An operation is pipelined if the operations of the second epoch were
    ///   large enough and differed from those of the first. Otherwise the operation is aggregated.
    /// - *Direct* is not available and is treated as aggregated.
    ///
    /// While calls are compared with a superstep's pattern, nothing is sent before the fence.
    ///
    /// If memory is shared, nothing is sent, since the target reads the operations from the memory
    /// in which the origin has collected them. A mode then has these effects:
    ///
    /// - A put of a section is *direct* if the target reads the section in place. *Auto* chooses
    ///   *direct* if the machine model predicts that reading in place saves more than the wait for
    ///   the reader costs. In every other mode the section is copied when the fence is entered.
    /// - A get of more than one element is copied directly to its destination in *direct* and
    ///   *auto*, and staged in every other mode.
    /// - If an epoch writes elements that other ranks read, the reader stages the elements that it
    ///   would otherwise read directly.
    pub fn set_mode(&mut self, mode: Mode) {
        self.core.fence.mode.set(mode);
        self.core.allow(self.core.is_short());
    }

    /// Sets the handler for errors of this window's calls. A call passes an error to the handler
    /// before it returns the error.
    ///
    /// A window begins with the handler of the world that made it. The handler is used for all
    /// puts, accumulates and gets on the window, also for those of a superstep. It is also used for
    /// fences and supersteps of this window alone. Fences and supersteps of several windows use the
    /// handler of the world ([`World::on_error`](crate::World::on_error)).
    ///
    /// # Source
    /// MPI 4.1, section 9.3 (MPI_WIN_SET_ERRHANDLER).
    #[doc(alias = "MPI_Win_set_errhandler")]
    pub fn on_error(&self, handler: ErrorHandler) {
        self.core.handler.set(handler);
    }

    /// Names elements of this window as the source of a put on another window, or as the
    /// destination of a get from another window.
    pub fn section(&self, elements: impl Into<Datatype>) -> WindowSection<T> {
        WindowSection::new(self.core.key, elements.into())
    }

    /// Puts `source` into elements of a target: `u.put(&values).to(target, region)?`.
    ///
    /// The next fence replaces the elements at the target. A slice is copied at once and may be
    /// reused. A section is read when the fence is entered.
    #[doc(alias = "MPI_Put")]
    #[inline]
    pub fn put<S: Source<T>>(&self, source: S) -> Put<'_, Self, S> {
        Put::new(self, source)
    }

    /// Combines `source` into elements of a target: `u.accumulate([1.0], Op::Sum).to(target,
    /// region)?`.
    ///
    /// All accumulates and puts of an epoch are applied in the order of their origin ranks, then in
    /// program order. So floating-point sums have the same result in every run, in every mode and
    /// on every transport.
    #[doc(alias = "MPI_Accumulate")]
    #[inline]
    pub fn accumulate<S: Source<T>>(&self, source: S, op: Op) -> Put<'_, Self, S> {
        Put::accumulate(self, source, op)
    }

    /// Gets elements of a target into a section: `u.get(0..4).from(target, region)?`.
    ///
    /// The get reads the values that the elements have when the target enters the fence. They are
    /// stored in the section before any put of the epoch is applied. If this rank does not reach
    /// the target's memory, it may get at most 256 times the size of the target's part in one
    /// epoch, or 16 MiB if that is more. Beyond that the fence returns `SIZE`.
    #[doc(alias = "MPI_Get")]
    #[inline]
    pub fn get<S: Section<T>>(&self, into: S) -> Get<'_, Self, S> {
        Get::new(self, into)
    }

    /// Gets elements of a target into a ticket, which holds the elements after the fence.
    ///
    /// `region` is a range, a datatype, or the displacement of a single element.
    ///
    /// # Errors
    /// As [`Put::to`]. Also `NO_MEM` if the target is `None` and there is no memory for the
    /// elements. If the target is a rank, the fence reports that there is no memory.
    #[track_caller]
    pub fn fetch(
        &self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<Ticket<T>> {
        let site = Location::caller();
        let fetched = self.core.fetched(target.into(), region.into(), site);
        self.core.handler.report(fetched).map(|(slot, len)| Ticket::new(slot, len, site))
    }

    /// Ends the epoch of this window.
    ///
    /// Every rank calls this. When the call returns, the puts, gets and accumulates on the window
    /// since the last fence have happened in every part that this rank can see.
    ///
    /// # Errors
    /// After each of these errors, pending operations are discarded:
    ///
    /// - `RMA_SYNC` if ranks fence different windows or are in different supersteps. Nothing is
    ///   applied, and the world goes on.
    /// - `NO_MEM` if there is no memory for the elements that this rank puts or gets. The other
    ///   ranks then get `RMA_SYNC`. Nothing is applied, and the world goes on.
    /// - `NO_MEM` if this rank has to stage elements that others put, and has no memory for them.
    ///   The world has ended.
    /// - `PROC_FAILED` if a rank has left or died. The world has ended.
    ///
    /// # Cost
    /// If all ranks share memory, or there are few ranks, each pair of ranks exchanges one
    /// notification. In shared memory a notification is a cache line. Many ranks that exchange
    /// messages take log2 p rounds. Each round has one message for each rank, or one for each group
    /// of ranks ([`Ranks::census`](crate::Ranks::census)). Operations for a rank whose memory is
    /// not reached take one or two more messages for each window, and gets also take an answer. If
    /// memory is read in place, the fence also waits for the ranks that read it.
    ///
    /// # Source
    /// MPI 4.1, section 12.5.1 (MPI_WIN_FENCE).
    #[doc(alias = "MPI_Win_fence")]
    #[track_caller]
    pub fn fence(&mut self) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.world.calls.begin();
        self.core.handler.report(fence::fence(&self.core.world, &[&*self.core], &call, None))
    }

    /// Called by the code of a superstep in place of a fence that orders no operation.
    #[doc(hidden)]
    #[track_caller]
    pub fn orders_nothing(&mut self) -> Result<()> {
        fence::left_out(&[&*self.core], Location::caller());
        Ok(())
    }

    /// Ends the epoch as [`fence`](Self::fence) does, with the program's assertions.
    ///
    /// # Errors
    /// `ASSERT` on the rank that finds an assertion to be false. The others get `RMA_SYNC`, and
    /// nothing is applied. Otherwise as [`fence`](Self::fence).
    #[track_caller]
    pub fn fence_with(&mut self, assertions: Assertions) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.world.calls.begin();
        self.core.handler.report(fence::fence_with(&self.core.world, &[&*self.core], &call, assertions))
    }

    /// Runs a scoped epoch, which ends in a fence of this window. The operations of a scoped epoch
    /// may borrow their buffers.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let mut u = world.window::<u32>(4)?;
    /// u[0] = world.rank() as u32 + 7;
    /// let mut seen = [0];
    /// u.epoch(|epoch| epoch.fetch_into((world.rank() + 1) % 2, 0, &mut seen))?;
    /// assert_eq!(seen[0], (world.rank() as u32 + 1) % 2 + 7);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The error that the closure returns. In that case nothing is applied on any rank. Otherwise
    /// as [`fence`](Self::fence).
    #[track_caller]
    pub fn epoch<'env, R>(
        &'env mut self,
        operations: impl for<'scope> FnOnce(&'scope crate::api::scoped::Epoch<'scope, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        let call = Call::fence(Location::caller());
        crate::api::scoped::run(self, &call, operations)
    }
}
