//! [`Supersteps`]: which supersteps a rank is in, and what is known of them.

use crate::collect::ticket::Slot;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::windows::Held;
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Pattern};
use fencepost_planner::{Error, Result};
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;

/// The plans of a superstep that is prepared, epoch by epoch, as fences call them.
pub(crate) trait Plans {
    /// The body begins: its calls on `windows` are matched.
    fn begin(&self, windows: &[&WindowCore], call: &Call) -> Result<()>;

    /// The fence of an epoch: its plan is run, if all its calls were made.
    fn fence(&self, world: &WorldCore, fenced: &[&WindowCore], entered: &Held, call: &Call) -> Result<()>;

    /// The body has ended, after `fences` or with a fence of all its windows.
    fn end(
        &self,
        windows: &[&WindowCore],
        entered: &Held,
        fences: bool,
        call: &Call,
        result: Result<()>,
    ) -> Result<()>;

    /// The body has not come to its last fence, because of `error`: the world ends, unless it has.
    fn abandon(&self, entered: &Held, error: &Error);
}

/// The plan of one epoch, as calls on windows are matched with it.
pub(crate) trait Planned {
    /// The call must be the next one of the plan.
    fn call(
        &self,
        window: (&WindowCore, WindowId),
        asked: Asked<'_>,
        site: &'static Location<'static>,
    ) -> Result<()>;
}

/// A call of a body that is matched with a plan.
pub(crate) struct Asked<'a> {
    pub(crate) kind: Kind,
    pub(crate) target: Option<usize>,
    pub(crate) remote: Datatype,
    pub(crate) local: Local,
    pub(crate) slice: &'a [u8],
    pub(crate) landing: Option<Slot>,
}

/// What one fence ends: its windows, and the operations on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedEpoch {
    /// The windows that are fenced.
    pub windows: Vec<WindowId>,
    /// The calls, in program order.
    pub pattern: Pattern,
}

/// What is known of a superstep from its text.
#[derive(Debug)]
pub struct Superstep {
    /// The function's name.
    pub name: &'static str,
    /// Its module.
    pub module: &'static str,
    /// Its file, as the compiler names it.
    pub file: &'static str,
    /// The line of its name.
    pub line: u32,
    /// The column of its name.
    pub column: u32,
    /// Whether its body has fences of its own; otherwise it ends in one of all its windows.
    pub fences: bool,
    /// Whether its body begins with a fence that orders nothing, and is left out: NOSUCCEED of the fence before ends there.
    pub opens: bool,
    /// The mode that operations without one of their own prefer in it.
    pub mode: Option<Mode>,
    /// Why it cannot be compiled ahead, with the line; `None` where it can.
    pub dynamic: Option<&'static str>,
}

/// The supersteps that a rank of a world is in, and those it has been in.
#[derive(Default)]
pub(crate) struct Supersteps {
    pub(crate) running: RefCell<Vec<Running>>,
    /// The supersteps whose claim has been compared.
    pub(crate) compared: RefCell<Vec<*const Superstep>>,
    /// The plan of the next superstep that is entered, where it is prepared.
    pub(crate) bound: RefCell<Option<Rc<dyn Plans>>>,
    /// Whether each execution is compared, not only the first.
    pub(crate) check: Cell<bool>,
}

pub(crate) struct Running {
    pub(crate) call: Call,
    pub(crate) superstep: &'static Superstep,
    pub(crate) windows: Held,
    pub(crate) claim: Option<Rc<[RecordedEpoch]>>,
    /// Its plans, where it is prepared.
    pub(crate) matched: Option<Rc<dyn Plans>>,
    /// The next epoch of the claim.
    pub(crate) next: usize,
    /// Whether the last exchange failed that was made in it: every rank knows then.
    pub(crate) failed: bool,
}

impl Supersteps {
    /// Whether the rank is in a superstep.
    #[inline]
    pub(crate) fn is_any_running(&self) -> bool {
        !self.running.borrow().is_empty()
    }

    /// The call that a fence makes: the superstep around the fence decides its name and hash.
    pub(crate) fn call(&self, call: &Call) -> Call {
        match self.running.borrow().last() {
            Some(running) if call.name.is_none() => {
                Call { hash: running.call.hash ^ call.hash, name: running.call.name, ..*call }
            }
            _ => *call,
        }
    }

    /// Why the superstep around a fence cannot be compiled ahead.
    pub(crate) fn dynamic(&self) -> Option<&'static str> {
        self.running.borrow().last()?.superstep.dynamic
    }

    /// The plans of the superstep around a fence of `windows`, and the windows it was entered with: where it is prepared,
    /// and takes part with any of them.
    pub(crate) fn matched(&self, windows: &[&WindowCore]) -> Option<(Rc<dyn Plans>, Held)> {
        let running = self.running.borrow();
        let running = running.last()?;
        let matched = running.matched.as_ref()?;
        let takes_part =
            |window: &&WindowCore| running.windows.iter().flatten().any(|own| own.key == window.key);
        windows.iter().any(takes_part).then(|| (matched.clone(), running.windows.clone()))
    }

    /// Compare each execution with its pattern, or only the first.
    pub(crate) fn check(&self, each: bool) {
        self.check.set(each);
    }

    /// Whether each execution is compared.
    pub(crate) fn checks(&self) -> bool {
        self.check.get()
    }

    /// Whether the calls that are being made will be compared before anything moves.
    pub(crate) fn comparing(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.claim.is_some())
    }

    /// Keep whether an exchange failed, for the superstep that it was made in.
    pub(crate) fn fenced(&self, failed: bool) {
        if let Some(running) = self.running.borrow_mut().last_mut() {
            running.failed = failed;
        }
    }

    /// Whether the last exchange in the superstep around this failed.
    pub(crate) fn failed(&self) -> bool {
        self.running.borrow().last().is_some_and(|running| running.failed)
    }
}
