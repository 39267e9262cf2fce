//! Methods that keep, count and discard the operations that a window has collected for its next
//! fence.

use crate::collect::filling::RecordSources;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::{DatatypeSource, Outbox, touched};
use crate::collect::pending::Into as Landing;
use crate::kernel::waits::{Wait, without};
use crate::state::unfenced::Forgotten;
use crate::state::window_core::WindowCore;
use std::panic::Location;

impl WindowCore {
    /// Begins to fill the other set of outboxes after a fence at this line has succeeded. No rank
    /// reads the other set any more.
    pub(crate) fn next_set(&self, site: &'static Location<'static>) {
        self.lines.since.set(site);
        self.collecting.follow();
        if self.peers.far {
            self.watch();
            self.begins(site);
        }
        self.reopen();
        // Other ranks have finished reading the other set: they finished before they sent their
        // notifications of the fence that has just ended.
        self.fill(self.filling.set.get() ^ usize::from(!without(Wait::Reuse)));
        if self.peers.far {
            self.fence.remembered.borrow_mut().settled();
        }
    }

    /// Does the same as [`next_set`](Self::next_set) for an epoch that had only records, on a rank
    /// that reaches the memory of all ranks. No operation of such an epoch is pending.
    #[inline]
    pub(crate) fn next_set_plainly(&self, site: &'static Location<'static>) {
        self.lines.since.set(site);
        self.collecting.follow();
        self.reopen();
        self.fill_outboxes(self.filling.set.get() ^ usize::from(!without(Wait::Reuse)));
        self.checked.clear();
    }

    /// Allows the fast path for small operations of the epoch that begins here. If the line of the
    /// first operation is kept, only later operations take the fast path.
    #[inline]
    fn reopen(&self) {
        let named = self.lines.first.take().is_some();
        if named || !self.is_gate_open() {
            self.allow(true);
        }
    }

    /// Keeps the line of the first operation of an epoch if [each call is
    /// checked](crate::supersteps::state::Supersteps::checks). Called before that operation is
    /// collected without the fast path.
    #[inline]
    pub(crate) fn keep_first(&self, site: &'static Location<'static>) {
        if self.lines.first.get().is_none() && self.world.supersteps.checks() {
            self.lines.first.set(Some(site));
            if self.is_gate_open() {
                self.allow(true);
            }
        }
    }

    /// Notes that the new epoch begins at this line.
    pub(crate) fn begins(&self, site: &'static Location<'static>) {
        self.fence.history.borrow_mut().begins(std::ptr::from_ref(site).addr(), &self.world.machine);
        self.allow(self.is_short()); // other operations may be sent early now
    }

    /// Records the largest number of bytes that the ended epoch has sent to any one rank whose
    /// memory this rank does not reach. Single elements are not counted.
    fn watch(&self) {
        let remembered = self.fence.remembered.borrow();
        let sent = (0..self.world.size).filter(|&target| self.peers[target].base.is_null()).map(|target| {
            // SAFETY: only this rank touches the set that it has filled.
            let outbox = unsafe { &*self.region.outbox(self.filling.set.get(), target) };
            remembered.left[target].wide + outbox.bytes.len() as u64
        });
        self.fence.history.borrow_mut().ended(sent.max().unwrap_or(0), self.world.fence.described.get());
    }

    /// Notes whether NOSUCCEED was asserted for the epoch that begins. If so, its operations are
    /// refused.
    pub(crate) fn close(&self, closed: bool) {
        self.collecting.close(closed);
        self.allow(!closed);
    }

    /// If NOSUCCEED was asserted for the current epoch, ends that epoch.
    pub(crate) fn open(&self) {
        if self.collecting.follow() {
            // While calls are matched with a plan, no operation takes the fast path.
            self.allow(!self.collecting.is_matching());
        }
    }

    /// Discards the pending operations.
    pub(crate) fn discard(&self) {
        if self.world.alive().is_err() {
            // The world may have ended in a fence, and other ranks may still read the operations
            // that were collected for that fence. So the outboxes are not cleared. No other fence
            // follows.
            self.allow(false);
            return self.pending(|pending| pending.clear(&self.world.windows.streaks, self.filling.asking));
        }
        if self.lines.first.take().is_some() {
            self.allow(self.is_short());
        }
        self.filling.sources.set(RecordSources::None);
        // No rank reads the set that is being filled: its fence has not begun, or has failed on all
        // ranks.
        let made = |&target: &usize| self.region.made_outbox(self.filling.set.get(), target).is_some();
        (0..self.world.size).filter(made).for_each(|target| self.outbox(target, Outbox::clear));
        self.pending(|pending| pending.clear(&self.world.windows.streaks, self.filling.asking));
        self.notes.borrow_mut().clear();
        self.checked.clear();
        self.fence.remembered.borrow_mut().forget();
    }

    /// Returns the other windows that pending operations of this window name. Such an operation
    /// names a section of the other window, and waits for this window's fence.
    pub(crate) fn named_sections(&self) -> Vec<WindowKey> {
        let mut named = Vec::new();
        for target in 0..self.world.size {
            // SAFETY: only this rank touches the set that it is filling. Datatype operations are
            // counted at once.
            let outbox = unsafe { &*self.region.outbox(self.filling.set.get(), target) };
            named.extend(outbox.wide.iter().filter_map(|wide| match &wide.source {
                DatatypeSource::Section(key, ..) => Some(*key),
                _ => None,
            }));
        }
        named.extend(self.filling.pending.borrow().wide.iter().filter_map(|get| match &get.landing {
            Landing::Section(key, _) => Some(*key),
            _ => None,
        }));
        if let RecordSources::Of(key, _) = self.filling.sources.get() {
            named.push(key);
        }
        named.retain(|key| *key != self.key);
        named
    }

    /// Returns whether operations wait for this window's fence.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        let mut is_none = self.filling.getting.fills_none() && !self.peers.far;
        for path in self.fast_paths.iter() {
            is_none &= path.writer.fills_none();
        }
        !is_none && self.is_any_pending()
    }

    #[inline(never)]
    fn is_any_pending(&self) -> bool {
        // SAFETY: only this rank touches the set that it is filling.
        let records = |target| unsafe { &(*self.region.outbox(self.filling.set.get(), target)).records };
        !self.filling.getting.has_none(&self.filling.pending.borrow().gets)
            || self.peers.far && self.fence.remembered.borrow().has_left()
            || self
                .fast_paths
                .iter()
                .enumerate()
                .any(|(target, fast_path)| !fast_path.writer.has_none(records(target)))
    }

    /// Remembers the operations that wait for a fence when their window is dropped or its world is
    /// left. Does nothing after another error, since that error may be the reason why the window
    /// was not fenced.
    pub(crate) fn note_unfenced(&self) {
        let failed =
            !self.world.life.goes_on() || self.handler.has_reported() || self.world.handler.has_reported();
        if std::thread::panicking() || failed || !self.is_pending() {
            return;
        }
        let size = self.element.size as usize;
        let count = |outbox: &mut Outbox| touched(&outbox.records, size).count() + outbox.wide.len();
        let made = |&target: &usize| self.region.made_outbox(self.filling.set.get(), target).is_some();
        let sent: usize = (0..self.world.size).filter(made).map(|target| self.outbox(target, count)).sum();
        let got = self.pending(|pending| pending.gets.len());
        let at_least = self.fence.remembered.borrow().has_left();
        self.world.windows.unfenced.borrow().add(Forgotten {
            window: self.key.window,
            operations: sent + got + usize::from(at_least),
            at_least,
            first: self.lines.first.get(),
            since: self.lines.since.get(),
        });
    }
}
