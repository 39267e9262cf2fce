//! What a program calls on a [`World`].

use crate::fence;
use crate::protocol::call::handler_of;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::handler::ErrorHandler;
use crate::state::windows::Windows;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::ir::schedule::Placement;
use std::panic::Location;

impl World {
    /// End the epoch of several windows at once: `world.fence((&mut u, &mut v))?`.
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence).
    #[track_caller]
    pub fn fence<'w>(&self, windows: impl Windows<'w>) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.calls.begin();
        windows.with(|windows| {
            handler_of(&self.core, windows).report(fence::fence(&self.core, windows, &call, None))
        })
    }

    /// A superstep calls this in the place of a fence that orders no operation.
    #[doc(hidden)]
    #[track_caller]
    pub fn orders_nothing<'w>(&self, windows: impl Windows<'w>) -> Result<()> {
        let site = Location::caller();
        windows.with(|windows| fence::left_out(windows, site));
        Ok(())
    }

    /// [`fence`](Self::fence), with what the program promises.
    ///
    /// # Errors
    /// As [`Window::fence_with`](crate::Window::fence_with).
    #[track_caller]
    pub fn fence_with<'w>(&self, windows: impl Windows<'w>, assertions: Assertions) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.calls.begin();
        windows.with(|windows| {
            handler_of(&self.core, windows).report(fence::fence_with(&self.core, windows, &call, assertions))
        })
    }

    /// What is done with an error of this world's calls before the call returns it: nothing, unless set. Such calls are all
    /// on the world itself, and fences and supersteps of several windows; what is called on one window, its fences and
    /// supersteps among them, is that window's ([`Window::on_error`](crate::Window::on_error)). Each error is told once, to
    /// the handler of the call that found it, on the rank that returns it.
    ///
    /// It holds for this rank; others may do otherwise. Windows that are made and worlds that are split off from here on
    /// begin with it. A handler can't make an error undone, and can't call anything of the world, which it does not have.
    /// Errors of `run` itself, of compiling without a world, and of a program's own are nobody's here.
    ///
    /// # Cost
    /// Nothing, where there is no error.
    ///
    /// # Source
    /// MPI 4.1, section 9.3 (MPI_COMM_SET_ERRHANDLER), where errors are fatal unless set, and windows inherit nothing.
    #[doc(alias = "MPI_Comm_set_errhandler")]
    pub fn on_error(&self, handler: ErrorHandler) {
        self.core.handler.set(handler);
    }

    /// Which ranks of this world share memory: the placement that a plan for it is compiled for, by
    /// [`Compiled::with`](crate::Compiled::with). It is the same on all ranks; a world that was split off has its own.
    ///
    /// Ranks that it puts together do share memory. Where hosts do not hold equally many successive ranks, more ranks may
    /// share memory than a [`Placement`] can say.
    ///
    /// ```
    /// # use fencepost_planner::ir::schedule::Placement;
    /// # use fencepost_runtime as fencepost;
    /// let of_threads: Vec<_> = fencepost::ranks(2).collect(|world| Ok(world.placement()))?;
    /// assert_eq!(of_threads, [Placement::Together; 2]);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    pub fn placement(&self) -> Placement {
        self.core.placement
    }

    /// Whether order is kept in the epochs that end, and the supersteps that are prepared, from here on. All ranks say
    /// the same: a fence or a `prepare` where they differ is `RMA_SYNC` on all.
    ///
    /// With [`Order::Relaxed`] each element takes each of its operations exactly once, in some order; schedules may use
    /// that, and what is not compiled keeps the canonical order, which is one of those allowed. A prepared superstep
    /// keeps the order that it was prepared for. A world begins with [`Order::Canonical`], or that of the one it was
    /// split from.
    pub fn set_order(&self, order: Order) {
        self.core.order.set(order);
    }

    /// Wait until every rank has come here.
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence).
    ///
    /// # Cost
    /// The empty fence: one notification between each two ranks, in one round; or, from some number of ranks on where they
    /// exchange messages, log2 p rounds of one message for each, or of one for each group of ranks that share a machine ([`Ranks::census`](crate::Ranks::census)).
    #[doc(alias = "MPI_Barrier")]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let call = fence::check::of_checked(&self.core, Call::named(0xba, "World::barrier"));
        self.core.calls.begin();
        let met = fence::fence(&self.core, &[], &call, None);
        self.core.handler.report(met.and_then(|()| fence::check::tell(&self.core, &call)))
    }

    /// What the last successful epoch of this rank did and why, in lines of text: dynamic, replayed or prepared; how
    /// many messages and bytes this rank sent, in how many rounds; what `auto` went by; and of each line what it put, got
    /// or accumulated. The first time it also says where ranks that are threads are more than cores. The words may change.
    ///
    /// It is kept where `FENCEPOST_EXPLAIN=on` ([`run`](crate::run())) or [`Ranks::explain`](crate::Ranks::explain) say so,
    /// and costs nothing else; then a small operation costs as much as a large one.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// let said: Vec<String> = fencepost::ranks(2).explain(true).collect(|world| {
    ///     let mut u = world.window::<u8>(4)?;
    ///     u.put([1, 2]).to(1 - world.rank(), 0)?;
    ///     u.fence()?;
    ///     Ok(world.explain_last())
    /// })?;
    /// assert!(said[0].contains("1 x put, 2 elements"));
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    pub fn explain_last(&self) -> String {
        self.core.explain_last()
    }
}
