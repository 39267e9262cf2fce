//! Detection of conflicts between epochs of locks, if conflicts are checked (planner/README.md, 32
//! to 34).
//!
//! Each operation is kept with its source line, and with this rank's vector clock at the call.
//! After the locks of an epoch were taken, and before the epoch is carried out, its operations are
//! compared with the [logs](crate::check::state::logs) of the part. The rank or the attendant that
//! reaches the logs makes the comparison.

use crate::check;
use crate::check::state::checks::{Blind, Checks};
use crate::check::state::entering::{Called, Entering, Places, ShortCall};
use crate::check::state::learnt::Learnt;
use crate::check::state::logs::Findings;
use crate::collect::visits::Action;
use crate::locks::LockCore;
use crate::locks::state::visit::{Others, visit_one};
use crate::locks::target::{Open, Target, hold_of};
use crate::state::call::Call;
use fencepost_planner::Result;
use fencepost_planner::conflicts::access_to_compare_and_swap;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::ir::pattern::Kind;
use fencepost_transport::Hold;
use std::cell::{RefCell, RefMut};
use std::panic::Location;

/// The calls of this rank for one target that are not carried out yet.
#[derive(Default)]
pub(super) struct Calls {
    entering: Entering,
    /// The version of this rank's clock when the last entry was added to `entering.known`. That
    /// entry is kept for reuse when there are no calls.
    version: u64,
    /// The only call, if it is short. A short call is not in the list of calls.
    short: Option<ShortCall>,
    /// The positions of file names in the log, by the lines of short calls.
    files: Places<&'static Location<'static>>,
}

impl Calls {
    /// Moves the short call to the list of calls.
    fn spread(&mut self, checks: &Checks) {
        if let Some(ShortCall { kind, at, site, number }) = self.short.take() {
            let (elements, site) = (Datatype::run(at..at + 1), checks.site(site));
            self.entering.calls.push(Called { kind, elements, site, number, known: 0, fetches: false });
        }
    }
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
    /// Returns whether conflicts are checked.
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
        of.spread(checks);
        let Entering { known, calls, .. } = &mut of.entering;
        let is_known = !known.is_empty() && of.version == version;
        if calls.is_empty() {
            // No call refers to the times in `known` any more. The last times are kept for this
            // call if the clock still has their version.
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

    /// Keeps a call on one element of `target` that returns nothing.
    pub(super) fn watch_short(
        &self,
        target: usize,
        action: Action,
        at: usize,
        site: &'static Location<'static>,
    ) {
        let (world, mut of) = (&self.data.world, self.watched[target].borrow_mut());
        let clock = &world.checks.clock;
        let Calls { entering: Entering { known, calls, .. }, version, short, .. } = &mut *of;
        let is_first = short.is_none() && calls.is_empty();
        if is_first && known.len() == world.size && *version == clock.version() {
            known[world.rank] = clock.time();
            let (kind, number) = (kind_of(action), world.checks.next_operation());
            *short = Some(ShortCall { kind, at, site, number });
            return;
        }
        drop(of);
        self.watch(target, action, Datatype::run(at..at + 1), site);
    }

    /// Carries out the operations collected for `target` on a fast path. Returns whether they were
    /// carried out.
    ///
    /// The fast path is for one short call under shared locks that this rank holds. The comparison
    /// with the logs must find no conflict, and no times that are new to this rank's clock.
    /// Otherwise nothing is carried out.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_checked(&self, target: usize) -> bool {
        let (at, me, clock) = (&self.targets[target], self.me(), &self.data.world.checks.clock);
        let Target { part, words, open, .. } = at;
        let Calls { entering, version, short, files } = &mut *self.watched[target].borrow_mut();
        let (Some(call), Some(logs)) = (&*short, words.logs()) else { return false };
        let is_held = open.get().is_some_and(|open| open.held && open.kind == LockType::Shared);
        let is_short = is_held && words.are_reached() && words.layout.is_atomic;
        if !is_short || *version != clock.version() || !self.is_quiet() {
            return false;
        }
        let made = || (call.site, logs.keep(me, call.site.file()));
        let name = files.find(|known| std::ptr::eq(*known, call.site), made);
        (entering.met, entering.time) = (clock.met_at(), clock.end());
        let passes = logs.meet_short(me, entering, call, name, clock.time());
        if passes {
            at.collected(|epoch| {
                for record in &epoch.visits.records[..] {
                    // SAFETY: the operation was checked against the length of the part at its call,
                    // and this rank holds all regions.
                    unsafe { visit_one(part, record, Others::of(&words.layout, Hold::Shared)) };
                }
                epoch.clear();
            });
            *short = None;
        }
        passes
    }

    /// Checks that a call may write these elements of the part of `target`, if conflicts are
    /// checked.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if the call would overwrite itself.
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

    /// Forgets the calls that were not carried out.
    pub(super) fn forget_calls(&self, target: usize) {
        if self.is_checked() {
            let of = &mut *self.watched[target].borrow_mut();
            of.short = None;
            of.entering.calls.clear();
        }
    }

    /// Returns the announcement of the operations that this rank is about to carry out at `target`.
    pub(super) fn entering(&self, target: usize) -> RefMut<'_, Entering> {
        let mut of = self.watched[target].borrow_mut();
        let world = &self.data.world;
        of.spread(&world.checks);
        let Calls { entering, version, .. } = &mut *of;
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

    /// Compares the calls of this rank at `target` with the logs. This rank must reach `target` and
    /// hold the locks of the epoch.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if there are conflicts. Then nothing may be carried out.
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

    /// Merges times of other ranks into this rank's clock. These times are over, because fetches of
    /// this rank at `target` have found accumulates of those ranks.
    ///
    /// This rank must reach `target`, and must have carried out its calls there under a lock of the
    /// kind `kind`.
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

    /// Checks the read of an element of this rank's own part, while this rank and others hold the
    /// part.
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

    /// Takes in the results of a check at a part, before anything of the epoch was carried out.
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

    /// Publishes this rank's times in the logs, before this rank leaves all regions of `target`.
    /// This rank must reach `target` and hold these regions.
    pub(super) fn leaving(&self, target: usize, open: Open) {
        if self.is_checked()
            && let Some(logs) = self.targets[target].words.logs()
        {
            logs.release(hold_of(open.kind), self.me(), &self.entering(target).knows);
        }
    }
}
