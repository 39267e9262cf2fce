//! Conflicts between epochs of locks, where they are looked for (planner/README.md, 32 to 34).
//!
//! Each operation is kept with its line, and with what this rank knew to be over when it called it. When an epoch is carried
//! out, its locks are held: it is then compared with the [logs](crate::state::locks::logs) of the part, by the rank or the
//! attendant that reaches them, before anything is done.

use crate::collect::visits::Action;
use crate::fence::check;
use crate::locks::LockCore;
use crate::locks::target::{Open, hold_of};
use crate::state::call::Call;
use crate::state::check::Blind;
use crate::state::locks::entering::{Called, Entering};
use crate::state::locks::learnt::Learnt;
use crate::state::locks::logs::Findings;
use fencepost_planner::Result;
use fencepost_planner::conflicts::access_to_compare_and_swap;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Kind;
use fencepost_planner::reference::LockType;
use std::cell::{RefCell, RefMut};
use std::panic::Location;

/// What this rank has called for one target, and not carried out.
#[derive(Default)]
pub(super) struct Calls {
    entering: Entering,
    /// The version of its clock when it knew what it knew last. That is kept where nothing is
    /// called, to be used again.
    version: u64,
}

/// The calls of a window, by target.
pub(super) type Watched = Vec<RefCell<Calls>>;

fn kind_of(action: Action) -> Kind {
    match action {
        Action::Put => Kind::Put,
        Action::Get => Kind::Get,
        Action::Accumulate(op) | Action::Fetch(op) => Kind::Accumulate(op),
        Action::CompareAndSwap => access_to_compare_and_swap(),
    }
}

impl LockCore {
    /// Whether conflicts are looked for.
    #[inline(always)]
    pub(super) fn is_checked(&self) -> bool {
        cfg!(feature = "check") && !self.watched.is_empty()
    }

    /// Keeps a call on these elements of `target`.
    #[cold]
    pub(super) fn watch(
        &self,
        target: usize,
        action: Action,
        elements: Datatype,
        site: &'static Location<'static>,
    ) {
        if elements.is_empty() {
            return;
        }
        let (world, of) = (&self.data.world, &mut *self.watched[target].borrow_mut());
        let (checks, version) = (&world.checks, world.checks.clock.version());
        let Entering { known, calls, .. } = &mut of.entering;
        let is_known = !known.is_empty() && of.version == version;
        if calls.is_empty() {
            // What was known last is all that the version says.
            known.drain(..if is_known { known.len() - world.size } else { known.len() });
        }
        if !is_known {
            of.version = version;
            known.extend(checks.clock.now(world.rank, world.size));
        } else if calls.is_empty() {
            known[world.rank] = checks.clock.time();
        }
        let (kind, number) = (kind_of(action), checks.next_operation());
        let (known, fetches) = (known.len() / world.size - 1, action.returns() && action != Action::Get);
        calls.push(Called { kind, elements, site: checks.site(site), number, known, fetches });
    }

    /// Whether a call may write these elements of the part of `target`, where conflicts are looked
    /// for.
    ///
    /// # Errors
    /// `RMA_CONFLICT`, if it would overwrite itself.
    pub(crate) fn may_write(
        &self,
        action: Action,
        target: usize,
        elements: &Datatype,
        site: &'static Location<'static>,
    ) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let written = (kind_of(action), target, elements);
        check::writes_once(&self.data, written, None, check::Under::Locks, site)
    }

    /// Forgets what was called and not carried out.
    pub(super) fn forget_calls(&self, target: usize) {
        if self.is_checked() {
            self.watched[target].borrow_mut().entering.calls.clear();
        }
    }

    /// What this rank says of what it is about to carry out at `target`.
    pub(super) fn entering(&self, target: usize) -> RefMut<'_, Entering> {
        let mut of = self.watched[target].borrow_mut();
        let Calls { entering, version } = &mut *of;
        let world = &self.data.world;
        let clock = &world.checks.clock;
        (entering.met, entering.time) = (clock.met_at(), clock.end());
        let Entering { known, knows, .. } = entering;
        knows.clear();
        if *version == clock.version() && known.len() >= world.size {
            knows.extend_from_slice(&known[known.len() - world.size..]);
            knows[world.rank] = clock.time();
        } else {
            knows.extend(clock.now(world.rank, world.size));
        }
        RefMut::map(of, |of| &mut of.entering)
    }

    /// This rank holds locks of `target`, which it reaches, for what it has called there.
    ///
    /// # Errors
    /// `RMA_CONFLICT`: nothing may be carried out.
    pub(super) fn enter(&self, target: usize, kind: LockType, call: &Call) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let mut entering = self.entering(target);
        let by = (self.me(), self.data.key.window, target);
        let (findings, knows_more) = match self.targets[target].words.logs() {
            Some(logs) => logs.meet(hold_of(kind), &mut entering, by),
            None => (Findings { is_blind: true, ..Findings::default() }, false),
        };
        if knows_more {
            self.data.world.checks.clock.hear(self.me(), &entering.knows);
        }
        drop(entering);
        self.tell(&findings, call)
    }

    /// This rank, which reaches `target`, has carried out there what it has called, under a lock of this kind.
    pub(super) fn observe(&self, target: usize, kind: LockType) {
        if !self.is_checked() || kind != LockType::Shared {
            return;
        }
        let done = &self.watched[target].borrow().entering;
        if done.calls.iter().any(|call| call.fetches)
            && let Some(logs) = self.targets[target].words.logs()
        {
            self.data.world.checks.clock.hear(self.me(), &logs.observed(self.me(), done));
        }
    }

    /// This rank reads an element of its own part, which it holds together with others.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub(super) fn enter_load(&self, remote: &Datatype, call: &Call) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        self.watch(self.me(), Action::Get, remote.clone(), call.site);
        let entered = self.enter(self.me(), LockType::Shared, call);
        self.forget_calls(self.me());
        entered
    }

    /// What an epoch has learnt at a part, before anything of it was carried out.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub(super) fn learn(&self, learnt: &Learnt, call: &Call) -> Result<()> {
        self.data.world.checks.clock.hear(self.me(), &learnt.knows);
        self.tell(&learnt.findings, call)
    }

    fn tell(&self, findings: &Findings, call: &Call) -> Result<()> {
        if findings.is_blind {
            check::is_blind(&self.data.world, self.data.key.window, Blind::Memory, call.site);
        }
        check::found(&self.data, &findings.conflicts, check::Under::Locks, call)
    }

    /// This rank is about to leave all regions of `target`, which it reaches and held.
    pub(super) fn leaving(&self, target: usize, open: Open) {
        if self.is_checked()
            && let Some(logs) = self.targets[target].words.logs()
        {
            logs.release(hold_of(open.kind), self.me(), &self.entering(target).knows);
        }
    }
}
