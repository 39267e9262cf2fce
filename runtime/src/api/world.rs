//! The methods of [`World`] for fences, barriers and settings, and the methods that describe a
//! world.

use crate::check;
use crate::fence;
use crate::protocol::call::handler_of;
use crate::state::assertions::Assertions;
use crate::state::call::{Call, codes};
use crate::state::handler::ErrorHandler;
use crate::state::windows::Windows;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use std::panic::Location;

impl World {
    /// Ends the epoch of several windows at once: `world.fence((&mut u, &mut v))?`.
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

    /// Called by the code of a superstep in place of a fence that orders no operation.
    #[doc(hidden)]
    #[track_caller]
    pub fn orders_nothing<'w>(&self, windows: impl Windows<'w>) -> Result<()> {
        let site = Location::caller();
        windows.with(|windows| fence::left_out(windows, site));
        Ok(())
    }

    /// Ends the epoch as [`fence`](Self::fence) does, with the program's assertions.
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

    /// Returns the machine model on which this world bases its decisions. `FENCEPOST_MACHINE` or
    /// [`Ranks::machine`](crate::Ranks::machine) sets the model. Without either setting, the model
    /// is [`Machine::default`]. All ranks have the same model.
    ///
    /// A program can use the model to predict how long a superstep takes in this world:
    /// `compiled.with(world.placement(), world.machine(), &options)`.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.core.machine
    }

    /// Sets the handler for errors of this world's calls. A call passes an error to the handler
    /// before it returns the error.
    ///
    /// By default, the call only returns the error. The handler is used for all calls on the world
    /// itself, and for fences and supersteps of several windows. Calls on one window, its fences
    /// and supersteps included, use the handler of that window
    /// ([`Window::on_error`](crate::Window::on_error)). Each error is passed to one handler only:
    /// the handler of the call that found the error, on the rank that returns the error.
    ///
    /// The handler holds for this rank; other ranks may set another one. Windows and worlds that
    /// are made after this call begin with this handler. A handler cannot undo an error. It has no
    /// access to the world, so it cannot call methods of the world. Errors of `run` itself, of
    /// compiling without a world, and of the program do not reach a handler.
    ///
    /// # Cost
    /// Nothing, unless there is an error.
    ///
    /// # Source
    /// MPI 4.1, section 9.3 (MPI_COMM_SET_ERRHANDLER). In MPI, errors are fatal by default, and
    /// windows do not inherit a handler.
    #[doc(alias = "MPI_Comm_set_errhandler")]
    pub fn on_error(&self, handler: ErrorHandler) {
        self.core.handler.set(handler);
    }

    /// Returns which ranks of this world share memory.
    ///
    /// [`Compiled::with`](crate::Compiled::with) compiles plans for this placement. The placement
    /// is the same on all ranks. A world that was split off has its own placement.
    ///
    /// Ranks in one group of the placement share memory. If the hosts have different numbers of
    /// successive ranks, more ranks may share memory than a [`Placement`] can express.
    ///
    /// ```
    /// # use fencepost_planner::ir::schedule::Placement;
    /// # use fencepost_runtime as fencepost;
    /// let of_threads: Vec<_> = fencepost::ranks(2).collect(|world| Ok(world.placement()))?;
    /// assert_eq!(of_threads, [Placement::Together; 2]);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    pub fn placement(&self) -> Placement {
        self.core.reach.placement
    }

    /// Sets whether order is kept in the epochs that end from now on, and in the supersteps that
    /// are prepared from now on.
    ///
    /// All ranks must set the same order: a fence or a `prepare` in which the orders differ returns
    /// `RMA_SYNC` on all ranks.
    ///
    /// With [`Order::Relaxed`], each element takes each of its operations exactly once, in some
    /// order. Schedules may use that freedom. Epochs that are not compiled keep the canonical
    /// order, which is one of the allowed orders. A prepared superstep keeps the order that it was
    /// prepared for. A world begins with [`Order::Canonical`], or with the order of the world that
    /// it was split from.
    ///
    /// ```
    /// # use fencepost_planner::ir::pattern::Order;
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// world.set_order(Order::Relaxed);
    /// // .. prepare a superstep whose sums may come in any order ..
    /// world.set_order(Order::Canonical);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn set_order(&self, order: Order) {
        self.core.choices.order.set(order);
    }

    /// Waits until every rank has called `barrier`.
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence).
    ///
    /// # Cost
    /// The cost of an empty fence: one round, in which each pair of ranks exchanges a notification.
    /// Many ranks that exchange messages take log2 p rounds instead. Each round has one message for
    /// each rank, or one for each group of ranks that share a machine
    /// ([`Ranks::census`](crate::Ranks::census)).
    #[doc(alias = "MPI_Barrier")]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let call = check::of_checked(&self.core, Call::named(codes::BARRIER, "World::barrier"));
        self.core.calls.begin();
        let met = fence::fence(&self.core, &[], &call, None);
        self.core.handler.report(met.and_then(|()| check::announce(&self.core, &call)))
    }

    /// Describes, in lines of text, what the last successful epoch of this rank did and why.
    ///
    /// The text contains whether the epoch was dynamic, replayed or prepared; how many messages and
    /// bytes this rank sent, in how many rounds; the basis for the choices of `auto`; and what each
    /// line of the program put, got or accumulated. If the ranks are threads and there are more of
    /// them than cores, the first text also reports this. The wording may change.
    ///
    /// The description is kept only with `FENCEPOST_EXPLAIN=on` ([`run`](crate::run())) or
    /// [`Ranks::explain`](crate::Ranks::explain); otherwise it costs nothing. While descriptions
    /// are kept, a small operation costs as much as a large one.
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
