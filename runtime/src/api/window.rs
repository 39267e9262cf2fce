//! What a program calls on a [`Window`].

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
    /// Let operations that name no mode of their own prefer this one.
    ///
    /// What that means in an epoch that is not compiled depends on how a target is reached.
    ///
    /// Where ranks only exchange messages, an *aggressive* operation whose source is a slice leaves at the call, and
    /// *pipelined* ones leave in frames of about the chunk that the machine model gives, each as soon as it is full; the
    /// target stages them until its fence. What was collected before for the same target leaves with them, since order is
    /// kept; and a section, which is read at the fence, holds back all that is put after it. Everything else, gets too,
    /// leaves in one frame at the fence. *Auto* is pipelined where what followed the same line (of a fence, or a
    /// superstep's call) the last time was large enough and was not what had followed it before; else aggregated. *Direct*
    /// cannot be had, and is aggregated. While calls are compared with a superstep's pattern nothing leaves early.
    ///
    /// Where memory is shared nothing leaves at all, since the target reads what the origin has collected. A section that
    /// is a source is *direct* where the target is to read it in place: by *auto* where that saves more, by the machine
    /// model, than waiting for the reader costs. In every other mode it is copied as the fence is entered. A get of more
    /// than an element is copied straight to where it lands in *direct* and *auto*, and staged in every other mode. Where
    /// others read what an epoch writes, what is direct is staged by its reader.
    pub fn set_mode(&mut self, mode: Mode) {
        self.core.mode.set(mode);
        self.core.allow(self.core.is_short());
    }

    /// Sets what is done with an error of this window's calls before the call returns it; a window begins with the
    /// handler of the world that made it. Such calls are its puts, accumulates and gets, a superstep's included, and
    /// the fences and supersteps of this window alone; those of several windows are the world's
    /// ([`World::on_error`](crate::World::on_error)).
    ///
    /// # Source
    /// MPI 4.1, section 9.3 (MPI_WIN_SET_ERRHANDLER).
    #[doc(alias = "MPI_Win_set_errhandler")]
    pub fn on_error(&self, handler: ErrorHandler) {
        self.core.handler.set(handler);
    }

    /// These elements of this window, as the source of a put or the destination of a get of another window.
    pub fn section(&self, elements: impl Into<Datatype>) -> WindowSection<T> {
        WindowSection::new(self.core.key, elements.into())
    }

    /// Put `source` somewhere: `u.put(&values).to(target, region)?`.
    ///
    /// At the target the elements are replaced by the next fence. A slice is copied at once and may be reused; a
    /// section is read as the fence is entered.
    #[doc(alias = "MPI_Put")]
    #[inline]
    pub fn put<S: Source<T>>(&self, source: S) -> Put<'_, Self, S> {
        Put::new(self, source)
    }

    /// Combine `source` into elements of a target: `u.accumulate([1.0], Op::Sum).to(target, region)?`.
    ///
    /// All accumulates and puts of an epoch are applied by origin rank, then program order, so floating-point sums come
    /// out the same on every run, mode and transport.
    #[doc(alias = "MPI_Accumulate")]
    #[inline]
    pub fn accumulate<S: Source<T>>(&self, source: S, op: Op) -> Put<'_, Self, S> {
        Put::accumulate(self, source, op)
    }

    /// Get elements of a target into a section: `u.get(0..4).from(target, region)?`.
    ///
    /// It reads what the target holds as it enters the fence, and lands before any put of the epoch is applied. From a
    /// rank whose memory is not reached an epoch gets at most 256 times all of its window, and 16 MiB at least: more is
    /// `SIZE` at the fence.
    #[doc(alias = "MPI_Get")]
    #[inline]
    pub fn get<S: Section<T>>(&self, into: S) -> Get<'_, Self, S> {
        Get::new(self, into)
    }

    /// Get elements of a target into a ticket, which holds them after the fence: those of a range or a datatype, or the one
    /// at a displacement.
    ///
    /// # Errors
    /// As [`Put::to`]; `NO_MEM` for more elements than there is memory for, if the target is `None`; for a rank, the
    /// fence reports it.
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

    /// End the epoch of this window: every rank calls it, and when it returns, what was put, got and accumulated on
    /// the window since the last fence has happened everywhere that this rank can see.
    ///
    /// # Errors
    /// `RMA_SYNC` where ranks fence different windows or are in different supersteps (nothing is applied, and the world goes on);
    /// `NO_MEM` where there is no memory for what this rank puts or gets, and `RMA_SYNC` on the others then (the same); or where
    /// it has to stage what others put, and can't (the world has ended);
    /// `PROC_FAILED` where a rank has left or died (the world has ended). Operations that were pending are gone.
    ///
    /// # Cost
    /// Where all ranks share memory or are few, one exchange of a notification between each two, in shared memory a cache line;
    /// where they are many and exchange messages, log2 p rounds of one message for each rank, or for one rank of each group
    /// ([`Ranks::census`](crate::Ranks::census)). Besides, where there are operations for a rank whose memory is not reached,
    /// one or two messages for each window, and an answer for gets; and where memory is read in place, a wait for those who
    /// read it.
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

    /// A superstep calls this in the place of a fence that orders no operation.
    #[doc(hidden)]
    #[track_caller]
    pub fn orders_nothing(&mut self) -> Result<()> {
        fence::left_out(&[&*self.core], Location::caller());
        Ok(())
    }

    /// [`fence`](Self::fence), with what the program promises.
    ///
    /// # Errors
    /// `ASSERT` where an assertion is seen to be false: on the rank that sees it; the others get `RMA_SYNC`, and nothing is
    /// applied. Else as [`fence`](Self::fence).
    #[track_caller]
    pub fn fence_with(&mut self, assertions: Assertions) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.world.calls.begin();
        self.core.handler.report(fence::fence_with(&self.core.world, &[&*self.core], &call, assertions))
    }

    /// A scoped epoch: operations in it may borrow their buffers, and it ends in a fence of this window.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let mut u = world.window::<u32>(4)?;
    /// u[0] = world.rank() as u32 + 7;
    /// let mut seen = [0];
    /// u.epoch(|epoch| epoch.get_into(&mut seen).from((world.rank() + 1) % 2, 0))?;
    /// assert_eq!(seen[0], (world.rank() as u32 + 1) % 2 + 7);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The error that the closure returns (nothing is applied on any rank), or as [`fence`](Self::fence).
    #[track_caller]
    pub fn epoch<'env, R>(
        &'env mut self,
        operations: impl for<'scope> FnOnce(&'scope crate::api::scoped::Epoch<'scope, 'env, T>) -> Result<R>,
    ) -> Result<R> {
        let call = Call::fence(Location::caller());
        crate::api::scoped::run(self, &call, operations)
    }
}
