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
use std::cell::RefCell;
use std::panic::Location;

/// What this rank has called for one target, and not carried out.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Called>,
    /// What this rank knew when it called them.
    known: Vec<Vec<u64>>,
    /// The version of its clock when it knew the last of that.
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
        if of.known.is_empty() || of.version != version {
            of.version = version;
            of.known.push(checks.clock.now(world.rank, world.size));
        }
        let (kind, number, known) = (kind_of(action), checks.next_operation(), of.known.len() - 1);
        let fetches = action.returns() && action != Action::Get;
        of.calls.push(Called { kind, elements, site: checks.site(site), number, known, fetches });
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
            self.watched[target].take();
        }
    }

    /// What this rank says of what it is about to carry out at `target`; nothing is kept of it.
    pub(super) fn entering(&self, target: usize) -> Entering {
        let Calls { calls, known, .. } = self.watched[target].take();
        let world = &self.data.world;
        let clock = &world.checks.clock;
        let (met, time) = (clock.met_at(), clock.end());
        Entering { time, met, knows: clock.now(world.rank, world.size), known, calls }
    }

    /// This rank holds locks of `target`, which it reaches, for what it has called there. Returns what it is about to carry out.
    ///
    /// # Errors
    /// `RMA_CONFLICT`: nothing may be carried out.
    pub(super) fn enter(&self, target: usize, kind: LockType, call: &Call) -> Result<Option<Entering>> {
        if !self.is_checked() {
            return Ok(None);
        }
        let mut entering = self.entering(target);
        let by = (self.me(), self.data.key.window, target);
        let learnt = match self.targets[target].words.logs() {
            Some(logs) => Learnt::of(&logs, hold_of(kind), &mut entering, by),
            None => {
                Learnt { knows: Vec::new(), findings: Findings { is_blind: true, ..Findings::default() } }
            }
        };
        self.learn(&learnt, call)?;
        Ok(Some(entering))
    }

    /// This rank, which reaches `target`, has carried this out there under a lock of this kind.
    pub(super) fn observe(&self, target: usize, kind: LockType, done: Option<&Entering>) {
        if kind == LockType::Shared
            && let Some((done, logs)) = done.zip(self.targets[target].words.logs())
        {
            self.data.world.checks.clock.hear(&logs.observed(self.me(), done));
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
        self.enter(self.me(), LockType::Shared, call).map(drop)
    }

    /// What an epoch has learnt at a part, before anything of it was carried out.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub(super) fn learn(&self, learnt: &Learnt, call: &Call) -> Result<()> {
        let world = &self.data.world;
        world.checks.clock.hear(&learnt.knows);
        if learnt.findings.is_blind {
            check::is_blind(world, self.data.key.window, Blind::Memory, call.site);
        }
        check::found(&self.data, &learnt.findings.conflicts, check::Under::Locks, call)
    }

    /// This rank is about to leave all regions of `target`, which it reaches and held.
    pub(super) fn leaving(&self, target: usize, open: Open) {
        if self.is_checked()
            && let Some(logs) = self.targets[target].words.logs()
        {
            logs.release(hold_of(open.kind), &self.entering(target).knows);
        }
    }
}
