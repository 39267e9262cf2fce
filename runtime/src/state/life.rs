//! [`Life`]: whether a world goes on. [`Opened`]: work that a rank has begun in the world and not
//! finished.
//!
//! A world does not know which kinds of work its rank may begin. A protocol that begins work adds
//! it to the list of opened work. From then on the world advances this work in every wait. If the
//! rank leaves before the work is finished, the world names the work in the error.

use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Alarms, Cause, Endpoint, Leave, Liveness};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Work that a rank has begun in a world, and may not have finished.
pub(crate) trait Opened {
    /// Advances the work, without waiting, while this rank waits for something else. The call that
    /// finishes the work reports errors.
    fn advance(&self, _world: &WorldCore, _endpoint: &mut Endpoint) {}

    /// Returns whether the work may go on while this rank waits for something else.
    fn may_advance(&self) -> bool {
        false
    }

    /// Returns whether the work goes on while this rank waits in another world.
    fn advances_elsewhere(&self) -> bool {
        false
    }

    /// Describes the unfinished part of the work, if other ranks wait for that part.
    fn unfinished(&self) -> Option<String>;

    /// Called when this rank leaves the world. Hands over the data that other ranks need
    /// afterwards.
    fn leave(&self, _endpoint: &mut Endpoint) {}
}

/// Worlds that one rank has split off, if they still exist.
pub(crate) type Parts = RefCell<Vec<Weak<WorldCore>>>;

/// Whether a world goes on, the work that its rank has begun, and the worlds that are related to
/// the world by splits.
pub(crate) struct Life {
    /// The reason why the world has ended.
    pub(crate) dead: RefCell<Option<Cause>>,
    /// The count of the failures that concern this rank. The next field has the number of these
    /// failures that are known to be failures of ranks of other worlds.
    pub(crate) alarms: Alarms,
    pub(crate) heeded: Cell<u32>,
    /// The worlds from which this world was split; the world of the whole program is first. Each of
    /// these worlds may have been dropped.
    pub(crate) above: RefCell<Vec<Weak<WorldCore>>>,
    /// All worlds that this rank has split off in this `run`, without the world of the `run`
    /// itself.
    pub(crate) parts: RefCell<Rc<Parts>>,
    /// The work that was begun and is not finished yet, in the order in which it was begun.
    opened: RefCell<Vec<Rc<dyn Opened>>>,
    /// Whether this rank has declared that it accesses memory of other ranks.
    touching: Cell<bool>,
}

impl Life {
    pub(crate) fn new(alarms: Alarms) -> Self {
        Self {
            dead: RefCell::default(),
            alarms,
            heeded: Cell::new(0),
            above: RefCell::default(),
            parts: RefCell::default(),
            opened: RefCell::default(),
            touching: Cell::new(false),
        }
    }

    /// Adds work that was begun, after all earlier work.
    pub(crate) fn open(&self, opened: Rc<dyn Opened>) {
        self.opened.borrow_mut().push(opened);
    }

    /// Removes finished work.
    pub(crate) fn close(&self, finished: &Rc<dyn Opened>) {
        self.opened.borrow_mut().retain(|opened| !Rc::ptr_eq(opened, finished));
    }

    /// Returns whether the world goes on.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.dead.borrow().is_none()
    }

    /// Returns whether this rank is in worlds that were split from others.
    #[inline]
    fn is_split(&self) -> bool {
        !self.parts.borrow().borrow().is_empty()
    }

    /// Declares that this rank begins to access memory of other ranks if `on` is set, and otherwise
    /// that it has stopped. Returns `None` if this rank had already declared the same. Otherwise
    /// returns whether this rank may access that memory.
    #[inline]
    pub(crate) fn touching(&self, endpoint: &mut Endpoint, on: bool) -> Option<bool> {
        (self.touching.get() != on).then(|| {
            let may = endpoint.touching(on);
            self.touching.set(on && may);
            may
        })
    }

    /// Returns why this world, or a world above it, has ended.
    fn why_dead(&self) -> Option<String> {
        let own = |life: &Self| life.dead.borrow().as_ref().map(|cause| cause.what.clone());
        let above = self.above.borrow();
        own(self).or_else(|| above.iter().rev().filter_map(Weak::upgrade).find_map(|above| own(&above.life)))
    }

    /// Returns whether work that was begun in this world goes on while the rank waits in another
    /// world.
    fn advances_elsewhere(&self) -> bool {
        self.opened.borrow().iter().any(|opened| opened.advances_elsewhere())
    }
}

impl WorldCore {
    /// Leaves this world.
    pub(crate) fn leave(&self, how: Leave) {
        if let Ok(mut endpoint) = self.endpoint.try_borrow_mut() {
            self.advance_own(&mut endpoint); // so that messages that were taken are not sent again
        }
        // Even if this rank returns `Ok` after the world ended, the other ranks receive the cause.
        let unfinished = || self.life.opened.borrow().iter().find_map(|opened| opened.unfinished());
        let how = match (how, self.life.why_dead()) {
            (Leave::Finished, Some(why)) => Leave::Failed(why),
            (Leave::Finished, None) => unfinished().map_or(Leave::Finished, Leave::Failed),
            (how, _) => how,
        };
        self.leave_to(&mut self.endpoint.borrow_mut(), how);
    }

    /// Leaves a world that is dropped. If this world or a world above it has ended, ranks that wait
    /// for this rank receive the cause of that end. Without the cause, these ranks would assume
    /// that this rank has left successfully.
    pub(super) fn leave_dropped(&mut self) {
        let how = match self.life.why_dead() {
            Some(why) => Leave::Failed(why),
            None if std::thread::panicking() => Leave::Panicked("its thread was unwound".into()),
            None => Leave::Finished,
        };
        self.leave_to(&mut self.endpoint.borrow_mut(), how);
    }

    fn leave_to(&self, endpoint: &mut Endpoint, how: Leave) {
        self.life.opened.borrow().iter().for_each(|opened| opened.leave(endpoint));
        // A world that has ended for this rank ends for all, for the same cause.
        if let Some(cause) = self.life.dead.borrow().clone() {
            endpoint.end(cause);
        }
        endpoint.leave(how);
    }

    /// Advances all work that this rank has begun, while the rank waits for something else.
    #[inline]
    pub(crate) fn advance(&self, endpoint: &mut Endpoint) {
        self.advance_own(endpoint);
        if self.life.is_split() {
            self.advance_others();
        }
    }

    #[inline]
    fn advance_own(&self, endpoint: &mut Endpoint) {
        self.life.opened.borrow().iter().for_each(|opened| opened.advance(self, endpoint));
    }

    /// Advances the work that this rank has begun in other worlds.
    #[cold]
    fn advance_others(&self) {
        self.any_other(|other| {
            if let Ok(mut endpoint) = other.endpoint.try_borrow_mut() {
                let opened = other.life.opened.borrow();
                let advancing = opened.iter().filter(|opened| opened.advances_elsewhere());
                advancing.for_each(|opened| opened.advance(other, &mut endpoint));
            }
            false
        });
    }

    /// Returns whether `is_so` holds for any other world of this rank: the world at the root of all
    /// splits, or a world that was split from it.
    fn any_other(&self, is_so: impl Fn(&WorldCore) -> bool) -> bool {
        let first = self.life.above.borrow().first().and_then(Weak::upgrade);
        let parts = self.life.parts.borrow().clone();
        let part = |at: usize| parts.borrow().get(at).map(Weak::upgrade);
        let parts = (0..).map_while(part).flatten();
        first.into_iter().chain(parts).any(|other| !std::ptr::eq(&raw const *other, self) && is_so(&other))
    }

    /// Returns whether work that this rank has begun may go on while the rank waits for something
    /// else.
    pub(crate) fn may_advance(&self) -> bool {
        let elsewhere = || self.life.is_split() && self.any_other(|other| other.life.advances_elsewhere());
        self.life.opened.borrow().iter().any(|opened| opened.may_advance()) || elsewhere()
    }

    /// Checks that the world goes on. The error is the cause of its end.
    #[inline]
    pub(crate) fn alive(&self) -> Result<()> {
        match &*self.life.dead.borrow() {
            None => Ok(()),
            Some(cause) => Err(self.has_ended(cause)),
        }
    }

    #[cold]
    #[inline(never)]
    fn has_ended(&self, cause: &Cause) -> Error {
        let error = Error::new(ErrorClass::ProcFailed, cause.what.clone()).on_rank(self.rank);
        error.ending_world().passing_on(self.failed_rank(cause.rank, &cause.what))
    }

    /// Ends the world for this rank, unless it has already ended. From then on, the windows of the
    /// world collect nothing.
    #[cold]
    pub(crate) fn die(&self, cause: Cause) {
        self.life.dead.borrow_mut().get_or_insert(cause);
        self.life.alarms.raise(); // code that has already looked for failures looks again
        // From here on, `WorldCore::is_quiet` always returns `false`.
        self.life.heeded.set(self.life.alarms.count().wrapping_sub(1));
        self.windows.each_collecting(|window| window.shut());
    }
}
