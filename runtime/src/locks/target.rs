//! [`Target`]: the part of one rank in a window with locks, and this rank's epoch on that part.
//!
//! The most common epoch is one put or accumulate of a small element, on memory that this rank
//! reaches and whose lock is free. [`Target::pass`] carries out such an epoch without a list,
//! regions or a note of its line. The general path handles all other epochs.

use crate::collect::datatypes::Named;
use crate::collect::log::LogWriter;
use crate::collect::ticket::Slot;
use crate::collect::visits::{Action, Code, Visits, place, record};
use crate::locks::state::hints::Hints;
use crate::locks::state::request::Request;
use crate::locks::state::visit::{List, Others, Part, visit_one};
use crate::locks::state::words::{Presence, Words, site_text};
use crate::locks::take::wake;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{Hold, Next, Record};
use std::cell::{Cell, RefCell};
use std::panic::Location;

/// One rank's part of the window.
pub(super) struct Target {
    pub(super) part: Part,
    pub(super) words: Words,
    /// The epoch of this rank on this part.
    pub(super) open: Opening,
    /// Writes the records of the epoch. The writer has no room while the records are
    /// [borrowed](Self::collected), or if calls are checked.
    writer: LogWriter<Record>,
    /// Whether each call is checked for conflicts.
    is_checked: bool,
    epoch: RefCell<Epoch>,
    /// The number of requests to the target's attendant so far.
    pub(super) asked: Cell<u64>,
    /// The numbers by which the target's attendant knows datatypes.
    pub(super) named: RefCell<Named>,
}

/// The operations that this rank has collected for one target.
#[derive(Default)]
pub(super) struct Epoch {
    pub(super) visits: Visits,
    /// The regions of the wide visits. The regions of the other visits are added when the visits
    /// are carried out.
    pub(super) regions: u32,
    /// The number of bytes that the visits return.
    pub(super) found: usize,
    /// The maximum number of bytes that are collected.
    most: Option<usize>,
}

/// An epoch that is open.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) kind: LockType,
    pub(super) site: &'static Location<'static>,
    /// Whether this rank holds all regions.
    pub(super) held: bool,
    /// Whether the epoch locks all parts of the window.
    pub(super) of_all: bool,
}

/// The open epoch, if there is one.
///
/// Each field has its own cell, since a processor stalls if it reads a value as a whole just after
/// it has written the parts of the value.
pub(super) struct Opening {
    site: Cell<Option<&'static Location<'static>>>,
    kind: Cell<LockType>,
    held: Cell<bool>,
    of_all: Cell<bool>,
}

impl Opening {
    fn new() -> Self {
        let no = || Cell::new(false);
        Self { site: Cell::new(None), kind: Cell::new(LockType::Shared), held: no(), of_all: no() }
    }

    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.site.get().is_none()
    }

    /// Returns whether this rank holds all regions.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.held.get()
    }

    pub(super) fn get(&self) -> Option<Open> {
        let (kind, held, of_all) = (self.kind.get(), self.held.get(), self.of_all.get());
        self.site.get().map(|site| Open { kind, site, held, of_all })
    }

    /// Opens an epoch. The epoch holds no regions at first.
    #[inline]
    pub(super) fn set(&self, kind: LockType, of_all: bool, site: &'static Location<'static>) {
        self.site.set(Some(site));
        self.kind.set(kind);
        self.of_all.set(of_all);
    }

    /// Records that the open epoch holds all regions.
    pub(super) fn hold(&self) {
        self.held.set(true);
    }

    #[inline]
    pub(super) fn end(&self) {
        self.site.set(None);
        self.held.set(false);
    }
}

impl Open {
    /// Returns a request for this epoch, without operations.
    pub(super) fn request(&self, regions: u32) -> Request {
        Request {
            hold: hold_of(self.kind),
            holds: false,
            ends: false,
            regions,
            records: Vec::new(),
            wide: Vec::new(),
            forms: Vec::new(),
            site: site_text(self.site),
            entering: Vec::new(),
        }
    }
}

#[inline]
pub(super) fn hold_of(kind: LockType) -> Hold {
    match kind {
        LockType::Shared => Hold::Shared,
        LockType::Exclusive => Hold::Exclusive,
    }
}

impl Target {
    pub(super) fn new(part: Part, words: Words, hints: Hints, is_checked: bool) -> Self {
        let mut epoch = Epoch { most: hints.memory, ..Epoch::default() };
        epoch.clear();
        let (open, epoch) = (Opening::new(), RefCell::new(epoch));
        Self {
            part,
            words,
            open,
            writer: LogWriter::default(),
            is_checked,
            epoch,
            asked: Cell::new(0),
            named: RefCell::default(),
        }
    }

    /// Collects an operation on one element of at most eight bytes of the part. Returns whether
    /// there was room for the operation.
    ///
    /// If there is no room, this call has no effect.
    #[inline]
    pub(super) fn push(&self, action: Action, at: usize, operand: u64) -> bool {
        self.push_quickly(action, at, operand) || self.push_slow(record(action, at, operand))
    }

    /// Does the same as `push` if there is already room and calls are not checked. Otherwise
    /// returns `false` without any effect.
    #[inline(always)]
    pub(super) fn push_quickly(&self, action: Action, at: usize, operand: u64) -> bool {
        self.writer.write(record(action, at, operand))
    }

    #[cold]
    #[inline(never)]
    fn push_slow(&self, record: Record) -> bool {
        if !self.is_checked {
            return self.makes_room(1) && self.writer.write(record);
        }
        self.collected(|epoch| {
            let has_room = epoch.visits.records.reserve(1);
            if has_room {
                epoch.visits.records.push(record);
            }
            has_room
        })
    }

    /// Makes room for `more` records, and returns whether there is room.
    pub(super) fn makes_room(&self, more: usize) -> bool {
        self.collected(|epoch| epoch.visits.records.reserve(more))
    }

    /// Collects an operation on the elements of `remote`. `operands` contains the elements to
    /// compare with, and then the operands. Returns whether there was room for the operation.
    ///
    /// If there is no room, this call has no effect.
    pub(super) fn push_wide(
        epoch: &mut Epoch,
        action: Action,
        remote: &Datatype,
        operands: [&[u8]; 2],
    ) -> bool {
        let Visits { records, wide, .. } = &mut epoch.visits;
        let (before, wide_before) = (records.len(), wide.len());
        if !records.reserve(1) || !epoch.visits.push_wide(action, remote, operands) {
            return false;
        }
        let Some(most) = epoch.most else { return true };
        let Visits { records, wide, .. } = &mut epoch.visits;
        let fits = size_of_val(&records[..]) + wide.len() <= most;
        if !fits {
            records.truncate(before);
            wide.truncate(wide_before);
        }
        records.limit(most.saturating_sub(wide.len()));
        fits
    }

    /// Records that the last operation returns an element, and returns the slot that will receive
    /// the element.
    pub(super) fn lands(&self) -> Slot {
        self.epoch.borrow_mut().lands(self.part.element.size as usize, Slot::default())
    }

    /// Calls `act` with the operations that were collected.
    #[inline]
    pub(super) fn collected<R>(&self, act: impl FnOnce(&mut Epoch) -> R) -> R {
        let epoch = &mut *self.epoch.borrow_mut();
        // SAFETY: the only call of `lower` is the one below, which passes the same records.
        unsafe { self.writer.lift(&mut epoch.visits.records) };
        let done = act(epoch);
        if !self.is_checked {
            // SAFETY: the memory of the records does not move until the records are changed, and
            // they are changed only while they are borrowed here.
            unsafe { self.writer.lower(&epoch.visits.records) };
        }
        done
    }

    /// Carries out the collected operation on a fast path, and ends the epoch if `ends` is set.
    /// Returns whether the operation was carried out.
    ///
    /// The fast path is for one put or accumulate of a small element, on memory that this rank
    /// reaches and whose lock is free. Otherwise the call has no effect. `target` is the rank whose
    /// part this is.
    #[inline(always)]
    pub(super) fn pass(&self, window: &WindowCore, target: usize, ends: bool) -> bool {
        let Self { part, words, open, writer, epoch, .. } = self;
        // SAFETY: only `collected` changes the epoch, and no function that is called here calls
        // `collected`.
        let Ok(epoch) = (unsafe { epoch.try_borrow_unguarded() }) else { return false };
        let (records, kind) = (&epoch.visits.records, open.kind.get());
        let Some(record) = writer.only(records) else { return false };
        if !words.are_reached()
            || !words.layout.is_atomic
            || open.is_none()
            || open.is_held() == ends
            || !Code::of_head(record.head).is_silent()
        {
            return false;
        }
        let others = Others::of(&words.layout, hold_of(kind));
        if open.is_held() {
            // SAFETY: the operation was checked against the length of the part at its call, and
            // this rank holds all regions.
            unsafe { visit_one(part, record, others) };
            writer.rewind(records);
            return true;
        }
        let (me, hold) = (window.world.rank, hold_of(kind));
        if words.layout.is_sole {
            let passes = words.is_of(me) && words.is_open();
            if passes {
                // SAFETY: as above, and no other rank accesses the part.
                unsafe { visit_one(part, record, Others::Nobody) };
                writer.rewind(records);
                open.end();
            }
            return passes;
        }
        let lock = words.lock(words.layout.region(place(record)), false);
        words.note(me, Presence::Passing);
        if !lock.take_free(hold) {
            words.note(me, Presence::Absent);
            return false;
        }
        let passes = words.is_open(); // the owner may have given up and taken its window back
        if passes {
            // SAFETY: as above, and this rank has the lock of the region.
            unsafe { visit_one(part, record, others) };
            writer.rewind(records);
            open.end();
        }
        if let Next(Some(next)) = lock.leave(hold) {
            wake(window, target, words, next);
        }
        words.note(me, Presence::Absent);
        passes
    }
}

impl Epoch {
    pub(super) fn list(&self) -> List<'_> {
        List { records: &self.visits.records, wide: &self.visits.wide }
    }

    pub(super) fn lands(&mut self, bytes: usize, slot: Slot) -> Slot {
        self.found += bytes;
        self.visits.landings.push((slot.clone(), bytes));
        slot
    }

    /// Fills tickets with the elements that were found.
    pub(super) fn land(&mut self, found: &[u8], window: &WindowCore, call: &Call) -> Result<()> {
        if found.len() != self.found {
            let message = format!("{} bytes were found where {} were asked for", found.len(), self.found);
            return Err(call.error(&window.world, ErrorClass::Intern, message));
        }
        let mut from = 0;
        for (slot, len) in self.visits.landings.drain(..) {
            slot.fill(&found[from..from + len]);
            from += len;
        }
        Ok(())
    }

    /// Returns the message for an operation that takes more memory than is available, or than the
    /// hints allow.
    #[cold]
    pub(super) fn no_room(&self, rank: usize) -> String {
        let most = match self.most {
            None => "there is no memory for it".to_owned(),
            Some(most) => format!("the window was made for at most {most} bytes of operations on one rank"),
        };
        format!(
            "an operation on the part of rank {rank} cannot be collected: {most}; flush the epoch first, or unlock"
        )
    }

    pub(super) fn clear(&mut self) {
        self.visits.clear();
        (self.regions, self.found) = (0, 0);
        if let Some(most) = self.most {
            self.visits.records.limit(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::locks::state::words::Layout;

    #[test]
    fn an_epoch_of_one_put_does_not_pass_into_a_part_that_its_owner_has_not_opened_or_has_dropped() {
        let run = ranks(1).run(|world| {
            let elements = world.window::<u64>(4)?;
            let core = &**elements.core();
            let layout = Layout::new(1, 4, core.element, Hints::default());
            let notes = world.window::<u64>(layout.words())?;
            // SAFETY: `notes` is a window with the layout's number of words, all zero. The window
            // outlives `words`, and no other code accesses it.
            let words = unsafe { Words::new(notes.core().region.base().cast(), layout) };
            let part = Part { base: core.region.base(), len: 4, element: core.element };
            let target = Target::new(part, words, Hints::default(), false);
            for kind in [LockType::Shared, LockType::Exclusive] {
                target.open.set(kind, false, Location::caller());
                target.push(Action::Put, 1, 7);
                assert!(!target.pass(core, 0, true), "it is not open yet");
                words.open();
                words.close(false);
                assert!(!target.pass(core, 0, true), "it is dropped");
                assert_eq!(elements[..], [0; 4]);
                assert_eq!(words.presence(0), Presence::Absent);
                target.collected(|epoch| assert_eq!(epoch.visits.records.len(), 1, "it is not carried out"));
                words.open();
                assert!(target.pass(core, 0, true), "the lock of the region was left");
                // SAFETY: the element is in the window, and no other code accesses it.
                assert_eq!(unsafe { core.region.base().cast::<u64>().add(1).replace(0) }, 7);
                words.close(false);
            }
            Ok(())
        });
        run.unwrap();
    }
}
