//! Locks: a rank accesses the window of another rank, and the other rank makes no call.
//!
//! An epoch is collected ([`Epoch`]) and carried out when it ends: the rank takes the locks of the
//! regions that the epoch touches, in ascending order, visits the elements, and leaves the locks.
//! An epoch that is flushed takes all regions of its target at the first flush that carries
//! something out, and holds these regions until the epoch ends. So every exclusive epoch comes
//! either before or after all operations of the flushed epoch. After that flush, the epoch takes no
//! further lock. So ranks wait for each other in a circle only if a program makes them hold two
//! parts.
//!
//! Whether an epoch is held or collected depends only on its own calls, not on earlier epochs. An
//! epoch that is not flushed is collected. To hold such an epoch would take one more request if the
//! part is not reached (a test counts requests), and more locks if the part is reached. An epoch
//! that is flushed must be held from its first flush on. That flush takes the locks and carries out
//! the operations in one request. To request the locks earlier would take one more request, and
//! other ranks would only wait earlier. Long epochs are faster in pieces
//! (`benches/log/locks_and_posts.md` has the factors). The program divides an epoch by flushes. The
//! runtime does not divide an epoch, because a call that collects an operation never waits.
//!
//! Exclusive epochs, which are alone in their regions, visit elements as a fence does. Shared
//! epochs visit *atomic* elements (of 1, 2, 4 or 8 bytes) by atomic operations, and other elements
//! under a second lock of their region. The type of the elements determines the method, so all
//! ranks use the same method.
//!
//! A rank that acquires a lock sees all earlier writes under that lock. So in terms of the memory
//! model, an epoch that is over happens before everything that its origin does afterwards. By the
//! notifications of a fence or a barrier, the epoch also happens before everything that other ranks
//! do after that fence or barrier.

mod check;
mod remote;
pub(crate) mod state;
mod take;
mod target;

use crate::check::state::clock;
use crate::check::state::learnt::Learnt;
use crate::collect::ticket::Slot;
use crate::collect::visits::Action;
use crate::locks::state::HeldParts;
use crate::locks::state::request::Request;
use crate::locks::state::service::{Served, Service};
use crate::locks::state::visit::{Others, Part};
use crate::locks::state::words::{Layout, Words, site_text};
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::life::Opened;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use check::Watched;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::bytes::Reader;
use fencepost_transport::{Alarms, Hold, Liveness, Port};
use remote::{Asking, Attends, answers, divide};
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use take::At;
use target::{Epoch, Open, Target, hold_of};

/// The locks of a window, from the point of view of one rank.
pub(crate) struct LockCore {
    pub(crate) data: Rc<WindowCore>,
    targets: Vec<Target>,
    /// The port on which attendants answer.
    port: Port,
    /// A buffer for the elements that an epoch finds.
    found: Cell<Vec<u8>>,
    /// The calls that are checked for conflicts, by target; empty without a check.
    watched: Watched,
    /// The alarms of the world. The alarms are here so that the fast path finds them without
    /// another lookup.
    alarms: Alarms,
    /// The number of alarms when this rank last found that no alarm was about a rank of the world.
    heeded: Cell<u32>,
}

/// Attaches an attendant to this rank. The attendant serves requests of other ranks.
fn attend(world: &WorldCore) -> Arc<Service> {
    let service = Arc::new(Service::default());
    let attends = || Attends(service.clone());
    world.attendants.attach(&mut world.endpoint.borrow_mut(), kind::LOCK, attends);
    service
}

impl LockCore {
    /// Returns the number of words that the locks and the logs of a part of `len` elements take.
    pub(crate) fn words(data: &WindowCore, len: usize) -> usize {
        let checks = &data.world.checks;
        let logs = if checks.is_on() { checks.checking.borrow().memory / size_of::<u64>() } else { 0 };
        Layout::new(data.world.size, len, data.element, data.hints).words() + logs
    }

    /// Makes the locks of the window `data`.
    ///
    /// The words of the locks are the elements of the window `words`. That window has the number of
    /// elements that [`words`](Self::words) returns. All elements must be zero, and no other code
    /// may use them.
    ///
    /// # Errors
    /// `NO_MEM` if the number of the window is so large that no port numbers are left for the
    /// window.
    pub(crate) fn new(data: Rc<WindowCore>, words: &WindowCore) -> Result<Self> {
        let port = answers(data.key.window)?;
        data.region.open();
        let is_checked = data.world.checks.is_on();
        let target = |rank: usize| {
            let len = data.peers[rank].len;
            let part = Part { base: data.peers[rank].base, len, element: data.element };
            let layout =
                Layout::new(data.world.size, len, data.element, data.hints).within(words.peers[rank].len);
            debug_assert_eq!(layout.words(), words.peers[rank].len);
            // SAFETY: the owner of this value keeps both windows, and no rank frees its part before
            // all ranks have dropped their parts.
            let words = unsafe { Words::new(words.peers[rank].base.cast(), layout) };
            Target::new(part, words, data.hints, is_checked)
        };
        let targets: Vec<Target> = (0..data.world.size).map(target).collect();
        if !data.world.reach.is_all {
            let service = data.world.locks.service.get_or_init(|| attend(&data.world));
            let Target { part, words, .. } = &targets[data.world.rank];
            // SAFETY: these are this rank's own part and words. They exist until this value is
            // dropped, and the drop first removes them from the service.
            service.serve(data.key.window, unsafe { Served::new(data.world.rank, *part, *words) });
        }
        let watched = targets.iter().filter(|_| is_checked).map(|_| RefCell::default()).collect();
        let (alarms, heeded) = (data.world.life.alarms.clone(), Cell::new(0));
        Ok(Self { data, targets, port, found: Cell::default(), watched, alarms, heeded })
    }

    pub(crate) fn error(
        &self,
        class: ErrorClass,
        message: String,
        site: &'static Location<'static>,
    ) -> Error {
        self.data.error(class, message, site)
    }

    fn me(&self) -> usize {
        self.data.world.rank
    }

    /// Opens an epoch at `target`. With `of_all`, the epoch belongs to a lock of all parts.
    #[inline]
    pub(crate) fn open(
        &self,
        target: usize,
        kind: LockType,
        of_all: bool,
        site: &'static Location<'static>,
    ) -> Result<()> {
        match self.targets.get(target) {
            Some(Target { open, .. }) if open.is_none() && self.data.world.life.goes_on() => {
                open.set(kind, of_all, site);
                Ok(())
            }
            _ => self.not_opened(target, site),
        }
    }

    /// Returns the error of an epoch that cannot be opened: the world has ended, there is no rank
    /// `target`, or this rank already has an open epoch at `target`.
    #[cold]
    #[inline(never)]
    fn not_opened(&self, target: usize, site: &'static Location<'static>) -> Result<()> {
        self.data.world.alive()?;
        let Some(at) = self.targets.get(target) else {
            return self.data.check(target, &Datatype::empty(), site);
        };
        let since = at.open.get().map_or_else(String::new, |open| site_text(open.site));
        let message = format!(
            "this rank has locked the part of rank {target} since {since}: a rank has one lock of a part at a time; unlock that one first"
        );
        Err(self.error(ErrorClass::RmaSync, message, site))
    }

    /// Returns the first target at which an epoch is open, and the line that opened it.
    pub(crate) fn first_open(&self) -> Option<(usize, &'static Location<'static>)> {
        let open = |(rank, target): (usize, &Target)| Some((rank, target.open.get()?.site));
        self.targets.iter().enumerate().find_map(open)
    }

    /// Returns whether this rank holds the part of `target` until it unlocks the part.
    pub(crate) fn holds(&self, target: usize) -> bool {
        self.targets[target].open.is_held()
    }

    /// Returns the number of elements at `target`.
    #[inline]
    pub(crate) fn len(&self, target: usize) -> usize {
        self.targets[target].part.len
    }

    /// Collects an operation on one element of at most eight bytes that returns nothing. Returns
    /// whether there was room for the operation.
    ///
    /// The element must be within the part of the target.
    #[inline]
    pub(crate) fn visit_one(
        &self,
        target: usize,
        action: Action,
        at: usize,
        operand: u64,
        site: &'static Location<'static>,
    ) -> bool {
        self.targets[target].push_quickly(action, at, operand)
            || self.visit_slowly(target, action, at, operand, site)
    }

    #[cold]
    #[inline(never)]
    fn visit_slowly(
        &self,
        target: usize,
        action: Action,
        at: usize,
        operand: u64,
        site: &'static Location<'static>,
    ) -> bool {
        let has_room = self.targets[target].push(action, at, operand);
        if has_room && self.is_checked() {
            self.watch_short(target, action, at, site);
        }
        has_room
    }

    /// Collects an operation on one element of at most eight bytes that returns the element found.
    /// A compare-and-swap has two operands.
    pub(crate) fn fetch_one(
        &self,
        target: usize,
        action: Action,
        at: usize,
        operands: &[u64],
        site: &'static Location<'static>,
    ) -> Result<Slot> {
        if self.is_checked() {
            self.watch(target, action, Datatype::run(at..at + 1), site);
        }
        let to = &self.targets[target];
        let has_room = operands.len() == 1 || to.makes_room(operands.len());
        if has_room && operands.iter().all(|&operand| to.push(action, at, operand)) {
            return Ok(to.lands());
        }
        Err(self.no_room(target, site))
    }

    /// Returns the error of an operation for which there is no room.
    #[cold]
    #[inline(never)]
    pub(crate) fn no_room(&self, target: usize, site: &'static Location<'static>) -> Error {
        self.error(ErrorClass::NoMem, self.targets[target].collected(|epoch| epoch.no_room(target)), site)
    }

    /// Collects an operation on these elements of the target. `operands` contains the elements to
    /// compare with, and then the operands.
    pub(crate) fn visit(
        &self,
        target: usize,
        action: Action,
        remote: &Datatype,
        operands: [&[u8]; 2],
        site: &'static Location<'static>,
    ) -> Result<Slot> {
        let at = &self.targets[target];
        let (slot, bytes) = (Slot::default(), remote.size().saturating_mul(at.part.element.size as usize));
        if remote.is_empty() {
            return Ok(slot);
        }
        at.collected(|epoch| {
            if action.returns() && !slot.reserve(bytes) {
                let message =
                    format!("there is no memory for {bytes} bytes of an operation on rank {target}");
                return Err(self.error(ErrorClass::NoMem, message, site));
            }
            if !Target::push_wide(epoch, action.carried_out(), remote, operands) {
                let message = epoch.no_room(target);
                return Err(self.error(ErrorClass::NoMem, message, site));
            }
            epoch.regions |= at.words.layout.regions(remote.low() as usize, remote.high() as usize);
            if self.is_checked() {
                self.watch(target, action, remote.clone(), site);
            }
            Ok(if action.returns() { epoch.lands(bytes, slot) } else { slot })
        })
    }

    /// See [`Target::pass`].
    pub(crate) fn pass(&self, target: usize, ends: bool) -> bool {
        // If conflicts are checked, the writer has no records, so this call returns `false`.
        self.is_quiet() && self.targets[target].pass(&self.data, target, ends)
    }

    /// Returns whether nothing has failed since this rank last looked.
    #[inline]
    fn is_quiet(&self) -> bool {
        let count = self.alarms.count();
        count == self.heeded.get() || self.is_quiet_at(count)
    }

    #[cold]
    #[inline(never)]
    fn is_quiet_at(&self, count: u32) -> bool {
        let heeded = self.data.world.is_quiet();
        if heeded {
            self.heeded.set(count);
        }
        heeded
    }

    /// [Carries out](Self::carry_out) the collected operations, on behalf of the call `name`, and
    /// reports an error to the window's handler.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn finish(&self, target: usize, ends: bool, name: &'static str) -> Result<()> {
        if self.is_checked() && !ends && self.pass_checked(target) {
            return Ok(());
        }
        self.data.handler.report(self.carry_out(target, ends, &Call::named(0, name)))
    }

    /// Carries out the operations collected for `target`. With `ends`, the epoch is over
    /// afterwards, even after an error.
    #[inline]
    pub(crate) fn carry_out(&self, target: usize, ends: bool, call: &Call) -> Result<()> {
        let at = &self.targets[target];
        let Some(open) = at.open.get() else { return Ok(()) };
        at.collected(|epoch| self.carry_out_of(target, epoch, open, ends, call))
    }

    fn carry_out_of(
        &self,
        target: usize,
        epoch: &mut Epoch,
        open: Open,
        ends: bool,
        call: &Call,
    ) -> Result<()> {
        let Target { words, open: now, .. } = &self.targets[target];
        let (is_empty, is_near) = (epoch.visits.is_empty(), words.are_reached());
        let held = match (ends, is_empty) {
            // Without operations there is nothing to hold.
            (false, true) => return Ok(()),
            // A request to an attendant states itself whether to hold the regions.
            (false, false) if !open.held && (is_near || open.of_all) => self.hold(target, open, call),
            _ => Ok(open.held),
        };
        epoch.regions |= epoch.list().narrow_regions(&words.layout);
        let done = held.and_then(|held| match (is_empty, is_near) {
            (true, true) => Ok(()),
            (false, true) => self.visit_held(target, epoch, open.kind, held, call),
            (_, false) => self.ask(target, epoch, Open { held, ..open }, ends, call),
        });
        let held = now.is_held();
        if ends && is_near && held {
            self.leaving(target, open);
            let at = At { window: &self.data, target, words, call };
            at.leave_all(hold_of(open.kind));
        }
        if ends && held {
            let held = self.held_parts();
            held.0.set(held.0.get() - 1);
        }
        if ends {
            now.end();
        }
        epoch.clear();
        self.forget_calls(target);
        done
    }

    /// Counts one more part that this rank holds until the epoch ends.
    fn holds_more(&self) {
        let held = self.held_parts();
        held.0.set(held.0.get() + 1);
    }

    /// Returns the number of parts that this rank holds, which the world reports if the rank
    /// leaves.
    fn held_parts(&self) -> &HeldParts {
        let world = &self.data.world;
        world.locks.held.get_or_init(|| {
            let held = Rc::new(HeldParts::default());
            world.life.open(held.clone());
            held
        })
    }

    /// Requests that the attendant of `target` carries out the collected operations, and fills
    /// tickets with the elements in the answers.
    fn ask(&self, target: usize, epoch: &mut Epoch, open: Open, ends: bool, call: &Call) -> Result<()> {
        let asking = self.asking(target, call);
        let parts = divide(&epoch.visits, self.data.element.size as usize);
        let holds = !open.held && (!ends || parts.len() > 1);
        let last = parts.len().saturating_sub(1);
        let mut found = self.found.take();
        found.clear();
        let mut request = open.request(epoch.regions);
        let mut done = Ok(());
        let mut held = open.held;
        for (i, (records, wide, forms)) in parts.into_iter().enumerate() {
            request =
                Request { records, wide, forms, holds: holds && i == 0, ends: ends && i == last, ..request };
            // The first request contains all calls, for the checker.
            done = done
                .and_then(|()| self.ask_checked(&asking, &mut request, &mut found, |holds| held |= holds));
        }
        if ends && held && (epoch.visits.is_empty() || done.is_err()) {
            let (records, wide, forms) = Default::default();
            let mut end = Request { holds: false, ends, records, wide, forms, ..request };
            done = done.and(self.ask_checked(&asking, &mut end, &mut Vec::new(), |_| ()));
        }
        if done.is_ok() && found.len() != epoch.found {
            done = Err(asking
                .refuse("it answered an epoch of a lock with more or fewer bytes than it was asked for"));
        }
        done = done.and_then(|()| epoch.land(&found, &self.data, call));
        self.found.set(found);
        if held && !open.held {
            self.targets[target].open.hold();
            self.holds_more();
        }
        done
    }

    /// Sends a request, and handles the conflicts in its answer if there is a check.
    ///
    /// Calls `holds` with `true` if all regions are held from now on, otherwise with `false`. Does
    /// so even if the answer has conflicts.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if there are conflicts. Then nothing of the request was carried out.
    /// Otherwise as [`Asking::ask`].
    fn ask_checked(
        &self,
        asking: &Asking<'_>,
        request: &mut Request,
        found: &mut Vec<u8>,
        holds: impl FnOnce(bool),
    ) -> Result<()> {
        if !self.is_checked() {
            asking.ask(request, found)?;
            holds(request.holds);
            return Ok(());
        }
        request.entering.clear();
        self.entering(asking.target).write(&mut request.entering);
        self.forget_calls(asking.target);
        let mut answer = Vec::new();
        asking.ask(request, &mut answer)?;
        holds(request.holds);
        let mut rest = Reader(&answer);
        let Some(learnt) = Learnt::read(self.data.world.size, &mut rest) else {
            return Err(asking.refuse("it did not answer an epoch of a lock with what conflicts"));
        };
        self.learn(&learnt, asking.call)?;
        // The answer ends with the times that the fetches of the request have observed.
        let ranks = self.data.world.size;
        let times = rest.last_bytes(8 * ranks);
        found.extend_from_slice(rest.0);
        let observed = times.and_then(|times| clock::read(ranks, &mut Reader(times)));
        let Some(observed) = observed else {
            return Err(asking.refuse("it did not answer an epoch of a lock with what is over"));
        };
        self.data.world.checks.clock.hear(self.me(), &observed);
        Ok(())
    }

    fn asking<'a>(&'a self, target: usize, call: &'a Call) -> Asking<'a> {
        let Target { asked, named, .. } = &self.targets[target];
        Asking { window: &self.data, target, call, port: self.port, asked, named }
    }

    /// Takes all regions of the part of `target`, for its open epoch.
    ///
    /// A shared epoch at all parts takes the regions of all parts, in ascending order. If the epoch
    /// took each part only when that part is flushed, two such epochs, and two exclusive epochs in
    /// the queues between them, could wait for each other in a circle.
    fn hold(&self, target: usize, open: Open, call: &Call) -> Result<bool> {
        // No rank waits for parts with a sole origin, and this rank must not access the parts of
        // other origins.
        let is_of_all = open.of_all && !self.targets[target].words.layout.is_sole;
        let targets = if is_of_all { 0..self.targets.len() } else { target..target + 1 };
        for each in targets {
            let Target { words, open: now, .. } = &self.targets[each];
            // This rank may already hold the part, if an earlier flush was refused at another part.
            if self.holds(each) {
                continue;
            }
            let taken = if words.are_reached() {
                let at = At { window: &self.data, target: each, words, call };
                at.take_all(hold_of(open.kind), open.site)
            } else {
                let request = Request { holds: true, ..open.request(0) };
                self.asking(each, call).ask(&request, &mut Vec::new())
            };
            match taken {
                Ok(()) => {
                    now.hold();
                    self.holds_more();
                }
                // A part other than `target` may have been dropped.
                Err(error) if each != target && error.class() == ErrorClass::RmaSync => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Visits the elements, and fills tickets.
    ///
    /// Unless all regions of the part are `held`, takes the regions of the visits, and leaves them
    /// afterwards.
    fn visit_held(
        &self,
        target: usize,
        epoch: &mut Epoch,
        kind: LockType,
        held: bool,
        call: &Call,
    ) -> Result<()> {
        let Target { part, words, .. } = &self.targets[target];
        let (at, hold) = (At { window: &self.data, target, words, call }, hold_of(kind));
        let mut found = if epoch.found == 0 { Vec::new() } else { self.found.take() };
        found.clear();
        if found.try_reserve(epoch.found).is_err() {
            let message = format!("there is no memory for {} bytes that an epoch finds", epoch.found);
            return Err(self.error(ErrorClass::NoMem, message, call.site));
        }
        if held {
            self.data.world.well(call)?;
        } else {
            at.begin(epoch.regions, hold)?;
        }
        let done = self.enter(target, kind, call).and_then(|()| {
            self.visit_all(&at, part, kind, epoch, &mut found)?;
            self.observe(target, kind);
            Ok(())
        });
        if !held {
            at.end(epoch.regions, hold);
        }
        if epoch.found == 0 {
            return done;
        }
        let done = done.and_then(|()| epoch.land(&found, &self.data, call));
        self.found.set(found);
        done
    }

    /// Visits the elements, in regions that this rank holds.
    fn visit_all(
        &self,
        at: &At<'_>,
        part: &Part,
        kind: LockType,
        epoch: &Epoch,
        found: &mut Vec<u8>,
    ) -> Result<()> {
        let list = epoch.list();
        debug_assert_eq!(
            list.fits(part, epoch.regions, &at.words.layout),
            Some(epoch.found),
            "each call was checked"
        );
        let (hold, layout) = (hold_of(kind), at.words.layout);
        let is_second = layout.takes_second(hold);
        if is_second {
            at.take(epoch.regions, Hold::Exclusive, true)?;
        }
        // SAFETY: each call was checked against the length of the part, which is reached. An
        // exclusive epoch is alone in its regions. A shared epoch that holds the second locks is
        // also alone, and so is an epoch of the only origin. All other epochs are shared, and
        // several may visit the part at the same time. These epochs all access elements in the same
        // way, which the window determines.
        unsafe { list.carry_out(part, Others::of(&layout, hold), found) };
        if is_second {
            at.leave(epoch.regions, Hold::Exclusive, true);
        }
        Ok(())
    }

    /// Discards the operations collected for `target`, and ends the epoch.
    pub(crate) fn discard(&self, target: usize, call: &Call) {
        self.targets[target].collected(Epoch::clear);
        self.forget_calls(target);
        let _ = self.carry_out(target, true, call); // nothing is left that could fail
    }

    /// Opens this rank's part to the ranks that reach the part.
    pub(crate) fn open_own(&self) {
        self.targets[self.me()].words.open();
        self.wake_others();
    }

    /// Returns whether a call of the world is running a function of the program on this rank.
    pub(crate) fn is_in_call(&self) -> bool {
        self.data.world.endpoint.try_borrow_mut().is_err()
    }

    /// Ends all open epochs without carrying anything out. Called when this rank drops the window
    /// or begins to use it without locks.
    ///
    /// If this rank's part was not opened, no other rank accesses the part afterwards.
    pub(crate) fn close(&self, call: &Call) {
        for (target, at) in self.targets.iter().enumerate() {
            let site = at.open.get().map_or(call.site, |open| open.site);
            self.discard(target, &Call { site, ..*call });
        }
        let world = &self.data.world;
        // Ranks that find the part dropped report the same reason as this rank.
        let is_over = world.alive().is_err();
        self.targets[self.me()].words.close(is_over);
        if let Some(service) = world.locks.service.get() {
            world.send_answers(service.forget(self.data.key.window, is_over));
        }
        self.wake_others();
    }

    /// Wakes the ranks that may wait at this rank's part.
    fn wake_others(&self) {
        let (world, me) = (&self.data.world, self.me());
        let endpoint = &mut *world.endpoint.borrow_mut();
        (0..world.size).filter(|&rank| rank != me).for_each(|rank| endpoint.wake(rank));
    }

    /// Calls `act` with the first element of this rank's part, while this rank holds all regions.
    pub(crate) fn owned<R>(
        &self,
        kind: LockType,
        call: &Call,
        act: impl FnOnce(*mut u8) -> Result<R>,
    ) -> Result<R> {
        /// Leaves the part, even if the function panics.
        struct Leave<'a>(&'a LockCore, Open, At<'a>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                let Self(core, open, at) = self;
                core.leaving(at.target, *open);
                at.leave_all(hold_of(open.kind));
                core.targets[at.target].open.end();
            }
        }
        let me = self.me();
        self.open(me, kind, false, call.site)?;
        let Target { part, words, open, .. } = &self.targets[me];
        let (at, hold) = (At { window: &self.data, target: me, words, call }, hold_of(kind));
        at.take_all(hold, call.site).inspect_err(|_| open.end())?;
        let _leave = Leave(self, Open { kind, site: call.site, held: true, of_all: false }, at);
        self.enter(me, kind, call)?;
        act(part.base)
    }

    /// Reads an element of this rank's part into `into`, while this rank and others hold the part.
    pub(crate) fn load(&self, at: usize, call: &Call, into: &mut [u8]) -> Result<()> {
        let me = self.me();
        let Target { part, words, .. } = &self.targets[me];
        let remote = self.data.region(me, at.into(), 1, call.site)?;
        self.enter_load(&remote, call)?;
        let size = part.element.size as usize;
        let from = part.base.wrapping_add(at * size);
        if words.layout.is_atomic {
            // SAFETY: this is an element of this rank, and no other rank has exclusive access,
            // since this rank holds the part.
            let bits = unsafe { crate::kernel::atomic::load_one(part.element, from) };
            into.copy_from_slice(&bits.to_ne_bytes()[..size]);
            return Ok(());
        }
        if !words.layout.takes_second(Hold::Shared) {
            // SAFETY: as above. Other ranks also access the element piece by piece.
            unsafe { crate::kernel::atomic::load_bytes(from, into) };
            return Ok(());
        }
        let (at, regions) =
            (At { window: &self.data, target: me, words, call }, words.layout.regions(at, at + 1));
        at.take(regions, Hold::Exclusive, true)?;
        // SAFETY: as above, and a rank that visits elements of the region holds the region's second
        // lock.
        into.copy_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
        at.leave(regions, Hold::Exclusive, true);
        Ok(())
    }
}

impl Opened for HeldParts {
    fn unfinished(&self) -> Option<String> {
        (self.0.get() > 0)
            .then(|| "it holds a part of a window by a lock that it has not unlocked".to_owned())
    }
}
