//! Gets read the requested elements from M (planner/README.md, 1 and 4), and land when no rank
//! reads M any more.

use crate::collect::pending::{Get, Into as Landing, Pending};
use crate::fence::Fence;
use crate::fence::apply::move_one;
use crate::fence::remote;
use crate::fence::sources::find;
use crate::kernel;
use crate::kernel::waits::{Wait, without};
use crate::state::window_core::WindowCore;
use fencepost_planner::Result;
use fencepost_transport::Topology;

impl Fence<'_> {
    /// Answers the gets of ranks that do not reach this rank's memory. The answers contain elements
    /// of M.
    pub(super) fn answer(&mut self, word: u64) -> Result<()> {
        self.apply_too_early();
        remote::answer(self.world, self.endpoint, self.windows, word)
            .map_err(|lost| self.world.lost(&lost, self.call))
    }

    /// Applies this rank's own operations on itself, if a test has disabled the wait for reads.
    fn apply_too_early(&self) {
        if without(Wait::ReadsFirst) {
            self.windows.iter().for_each(|window| self.apply_from(window, self.world.rank, None));
        }
    }

    /// Reads the elements of this rank's gets from M, and stages them.
    pub(super) fn stage(&mut self, word: u64) -> Result<()> {
        let me = self.world.rank;
        if self.world.reach.is_all {
            self.apply_too_early();
        }
        for window in self.windows {
            let pending = &mut *window.filling.pending.borrow_mut();
            let size = window.element.size as usize;
            if size == 8 && self.windows.len() == 1 && self.world.reach.is_all && pending.wide.is_empty() {
                let fast_paths = &*window.fast_paths;
                pending.read_words(|target, at| {
                    let memory = fast_paths[target].memory().cast::<u64>();
                    // SAFETY: the element was checked against the target's length at the call. The
                    // target is in this fence, and nothing is written to its window before all
                    // ranks have settled. Elements of eight bytes may be unaligned.
                    unsafe { memory.add(at).read_unaligned() }
                });
                continue;
            }
            let mut staged = std::mem::take(&mut pending.staged);
            staged.clear();
            staged.resize(pending.elements().unwrap_or_default() * size, 0);
            let mut at = 0;
            for get in &*pending.gets {
                let (target, to) = (get.target(), at);
                at += pending.count(get) * size;
                if target != me && !self.endpoint.reaches(target) {
                    continue;
                }
                let base = window.peers[target].base;
                let to = staged[to..at].as_mut_ptr();
                // SAFETY: the requested elements were checked against the target's length. The
                // target is in this fence, and nothing is written to its window before all ranks
                // have settled. `to` has room for the same number of elements.
                unsafe {
                    if let Some(wide) = get.wide() {
                        kernel::pack(base, &pending.wide[wide].remote, size, to);
                    } else {
                        move_one(base.add(get.at() * size), to, size);
                    }
                }
            }
            pending.staged = staged;
        }
        if without(Wait::Landing) {
            return Ok(());
        }
        remote::take_answers(self.world, self.endpoint, self.windows, word, self.call)
            .map_err(|lost| self.world.lost(&lost, self.call))
    }

    /// Lands gets in program order. Each window's list of gets is in program order, and the numbers
    /// of the streaks order the gets of different windows.
    ///
    /// `staged` is whether the gets were staged. If not, each get is read in place, and other ranks
    /// read only elements of this rank that no operation writes.
    pub(super) fn land(&self, staged: bool) {
        if let [window] = self.windows {
            let pending = window.filling.pending.borrow();
            if pending.is_read {
                for (to, word) in pending.words(window.region.base()) {
                    // SAFETY: there are two cases. Either the element is in this rank's part, as
                    // was checked at the call, and all reads of M are done (settle). Or the element
                    // is borrowed: it has eight bytes, and the scoped epoch holds the borrow until
                    // after this fence.
                    unsafe { to.write_unaligned(word) };
                }
                return;
            }
            let mut at = 0;
            for get in &*pending.gets {
                at = self.land_one(window, &pending, get, staged, at);
            }
            return;
        }
        // For each window: the next streak, the next get, and the place where the elements of that
        // get are staged.
        let mut heads: [(usize, usize, usize); 16] = Default::default();
        let mut more;
        let heads: &mut [(usize, usize, usize)] = if self.windows.len() <= 16 {
            &mut heads[..self.windows.len()]
        } else {
            more = vec![Default::default(); self.windows.len()];
            &mut more
        };
        loop {
            let next =
                self.windows.iter().zip(&*heads).enumerate().filter_map(|(w, (window, &(streak, ..)))| {
                    Some((window.filling.pending.borrow().streak(streak)?, w))
                });
            let Some(((_, end), w)) = next.min() else { break };
            let pending = self.windows[w].filling.pending.borrow();
            let (streak, next, at) = &mut heads[w];
            for get in &pending.gets[*next..end] {
                *at = self.land_one(self.windows[w], &pending, get, staged, *at);
            }
            (*streak, *next) = (*streak + 1, end);
        }
    }

    /// Lands the get that is staged at `at`, or reads it in place. Returns where the next get is
    /// staged.
    fn land_one(&self, window: &WindowCore, pending: &Pending, get: &Get, staged: bool, at: usize) -> usize {
        let size = window.element.size as usize;
        let end = at + pending.count(get) * size;
        if !staged {
            self.land_straight(window, pending, get);
            return end;
        }
        let bytes = &pending.staged[at..end];
        let Some(wide) = get.wide() else {
            // SAFETY: the element was checked against this rank's part at the call; the rest as
            // below.
            unsafe { move_one(bytes.as_ptr(), get.landing(window.region.base(), size), size) };
            return end;
        };
        match &pending.wide[wide].landing {
            Landing::Ticket(slot) => slot.fill(bytes),
            Landing::Section(key, section) => {
                let into = find(self.windows, *key).expect("checked as the fence was entered");
                // SAFETY: the section was checked against this rank's part. All reads of M are done
                // (settle), and only this rank writes its memory.
                unsafe { kernel::unpack(bytes.as_ptr(), into.region.base(), section, size) };
            }
            // SAFETY: the scoped epoch holds the borrow of the buffer until after this fence. The
            // elements were checked against the buffer's length, and their number is the number of
            // elements of the get.
            Landing::Borrowed(to, elements) => unsafe { kernel::unpack(bytes.as_ptr(), *to, elements, size) },
        }
        end
    }

    /// Copies the requested elements of a get from the target's memory to the place where they
    /// land.
    fn land_straight(&self, window: &WindowCore, pending: &Pending, get: &Get) {
        let size = window.element.size as usize;
        let from = window.peers[get.target()].base;
        let Some(wide) = get.wide().map(|wide| &pending.wide[wide]) else {
            // SAFETY: the requested elements were checked against the target's length; the target
            // writes none of them before this rank has settled; the rest as below.
            unsafe {
                move_one(from.add(get.at() * size), get.landing(window.region.base(), size), size);
            }
            return;
        };
        match &wide.landing {
            Landing::Ticket(slot) => slot.fill_with(wide.remote.size() * size, |to| {
                // SAFETY: the requested elements were checked against the target's length. The
                // target writes none of them before this rank has settled. `to` has room for the
                // same number of elements.
                unsafe { kernel::pack(from, &wide.remote, size, to) }
            }),
            Landing::Section(key, section) => {
                let into = find(self.windows, *key).expect("checked as the fence was entered");
                // SAFETY: as above. The section was checked against this rank's part, and no rank
                // reads the elements of the section that are written here (`Reads::first`).
                unsafe { kernel::copy(from, &wide.remote, into.region.base(), section, size) };
            }
            // SAFETY: as above; the scoped epoch holds the borrow of the buffer until after this
            // fence; the elements were checked against the buffer's length.
            Landing::Borrowed(to, elements) => unsafe {
                kernel::copy(from, &wide.remote, *to, elements, size)
            },
        }
    }
}
