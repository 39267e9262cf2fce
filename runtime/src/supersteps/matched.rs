//! [`Matched`]: a body whose calls are matched, one by one, with the plans of its epochs.
//!
//! The calls on a window must be the recorded calls of the next epoch that a fence of the window
//! ends. A fence in the body runs the plan of its epoch. A body without a fence has its only fence
//! at its end.

use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Held, with};
use crate::state::world::WorldCore;
use crate::supersteps::prepared::Ready;
use crate::supersteps::state::{Planned, Plans};
use fencepost_planner::ids::{Id, WindowId};
use fencepost_planner::ir::pattern::Sync;
use fencepost_planner::{Error, ErrorClass, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The plans of a prepared superstep, and the progress of its body.
pub(crate) struct Matched {
    /// Each plan, with the windows of its fence.
    epochs: Vec<(Rc<Ready>, Vec<WindowId>)>,
    /// The epoch that the next fence ends.
    next: Cell<usize>,
    /// Whether the last fence only checks that the calls of its epoch were made. The epoch is then
    /// begun later.
    leaves_last: Cell<bool>,
    /// The call of the last fence, if that fence has not run its epoch, which is begun later.
    left: Cell<Option<Call>>,
    /// The first conflict of an epoch of this run with an earlier store of this rank.
    found: RefCell<Option<Error>>,
}

impl Matched {
    pub(crate) fn of(epochs: Vec<(Rc<Ready>, Vec<WindowId>)>) -> Self {
        let (next, leaves_last, left) = (Cell::new(0), Cell::new(false), Cell::new(None));
        Self { epochs, next, leaves_last, left, found: RefCell::default() }
    }

    pub(crate) fn epochs(&self) -> impl Iterator<Item = &Rc<Ready>> {
        self.epochs.iter().map(|(ready, _)| ready)
    }

    /// Returns how the plans synchronise. All plans of one superstep synchronise in the same way.
    pub(crate) fn sync(&self) -> Sync {
        self.epochs.first().map_or(Sync::Fence, |(ready, _)| ready.sync)
    }

    /// Begins again with the first epoch. If `leaves_last` is set, the fence of the last epoch does
    /// not run the epoch, which is begun later. Otherwise that fence runs the epoch.
    pub(crate) fn rewind(&self, leaves_last: bool) {
        self.next.set(0);
        self.leaves_last.set(leaves_last);
        self.left.set(None);
        self.found.take();
    }

    /// Takes the call of the last fence, if that fence has not run its epoch.
    pub(crate) fn left(&self) -> Option<Call> {
        self.left.take()
    }

    /// From here on, matches calls on `window` with the next epoch that fences this window.
    fn turn(&self, window: &WindowCore, id: WindowId) {
        let next = self.epochs.iter().skip(self.next.get()).find(|(_, fenced)| fenced.contains(&id));
        window.collecting.match_with(next.map(|(ready, _)| (ready.clone() as Rc<dyn Planned>, id)));
    }

    /// Stops matching calls.
    fn leave(&self, entered: &Held) {
        for window in entered.iter() {
            window.world.supersteps.matching.borrow_mut().retain(|(key, _)| *key != window.key);
            window.collecting.end_match();
            window.allow(!window.collecting.is_closed());
        }
    }
}

impl Plans for Matched {
    fn sync(&self) -> Sync {
        self.sync()
    }

    fn admits(&self, call: &Call) -> Result<()> {
        self.epochs().try_for_each(|ready| ready.admits(call))
    }

    /// Begins the body: its calls on `windows` are matched.
    fn begin(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        self.epochs().try_for_each(|ready| ready.begin(windows, call))?;
        for (i, window) in windows.iter().enumerate() {
            window.world.supersteps.matching.borrow_mut().push((window.key, WindowId::new(i)));
            window.allow(false);
            self.turn(window, WindowId::new(i));
        }
        Ok(())
    }

    /// Fences an epoch. Checks that all calls of the epoch were made, and runs its plan, or leaves
    /// the plan to be begun later.
    fn fence(&self, world: &WorldCore, fenced: &[&WindowCore], entered: &Held, call: &Call) -> Result<()> {
        let Some((ready, planned)) = self.epochs.get(self.next.get()) else {
            let message =
                format!("the plan has {} epochs, and this fence ends another one", self.epochs.len());
            return Err(call.error(world, ErrorClass::Plan, message));
        };
        let place = |window: &WindowCore| {
            let mut all = entered.iter();
            all.position(|entered| entered.key == window.key).map(WindowId::new)
        };
        let as_planned = |window: &&WindowCore| place(window).is_some_and(|id| planned.contains(&id));
        if fenced.len() != planned.len() || !fenced.iter().all(as_planned) {
            let given: Vec<_> = fenced.iter().map(|window| place(window)).collect();
            let message = format!(
                "this fence is of windows {given:?} of the superstep, counted from 0, but in the plan it is of {planned:?}"
            );
            return Err(call.error(world, ErrorClass::Plan, message));
        }
        let is_last = self.next.get() + 1 == self.epochs.len();
        if is_last && self.leaves_last.get() {
            with(entered, |windows| ready.made(windows, call))?;
            self.left.set(Some(*call));
        } else {
            with(entered, |windows| ready.end(windows, call))?;
            let found = with(entered, |windows| Ok(ready.ran(windows, call)))?;
            let before = self.found.take();
            *self.found.borrow_mut() = before.or(found);
        }
        self.next.set(self.next.get() + 1);
        for window in fenced {
            if ready.sync == Sync::Fence {
                window.collecting.follow();
            }
            if let Some(id) = place(window) {
                self.turn(window, id);
            }
        }
        Ok(())
    }

    /// Ends the body. `entered` contains the windows with which the body began. The body may have
    /// moved other windows into their places.
    fn end(
        &self,
        windows: &[&WindowCore],
        entered: &Held,
        fences: bool,
        call: &Call,
        result: Result<()>,
    ) -> Result<()> {
        let Some(first) = entered.first() else { return result };
        let world = &*first.world;
        let ended = result.and_then(|()| {
            let same = windows.iter().map(|window| window.key).eq(entered.iter().map(|window| window.key));
            if !same {
                let message = "the body moved other windows into the places of those that it began with";
                return Err(call.error(world, ErrorClass::Win, message));
            }
            if !fences {
                return self.fence(world, windows, entered, call);
            }
            if self.next.get() == self.epochs.len() {
                return Ok(());
            }
            let (made, planned) = (self.next.get(), self.epochs.len());
            let message = format!("the body made {made} fences, and the plan has {planned} epochs");
            Err(call.error(world, ErrorClass::Plan, message))
        });
        match &ended {
            Ok(()) => self.leave(entered),
            Err(error) => self.abandon(entered, error),
        }
        // A conflict is returned only after all epochs were run, so that other ranks need not wait.
        ended.and(self.found.take().map_or(Ok(()), Err))
    }

    /// Gives up a body that has not reached its last fence, because of `error`. Ends the world,
    /// unless it has already ended.
    fn abandon(&self, entered: &Held, error: &Error) {
        self.leave(entered);
        if let Some((ready, _)) = self.epochs.get(self.next.get()) {
            ready.abandon(error);
        }
    }
}
