//! [`Recorder`]: the times of a rank's calls, for its profile, and the rank's last events, for its
//! trace. All worlds of a rank's run share one recorder.

use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use fencepost_transport::{Count, FrameLog, Ring, clock, head};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;

/// The kinds of events in a ring.
pub(crate) const CALL: u8 = 1;
pub(crate) const WAIT: u8 = 2;
pub(crate) const SENT: u8 = 3;
pub(crate) const RECEIVED: u8 = 4;

/// The maximum number of events that a rank keeps, and the maximum for all ranks together. An event
/// takes 32 bytes.
const EVENTS: usize = 1 << 17;
const EVENTS_OF_ALL: usize = 1 << 24;

pub(crate) use fencepost_planner::profile::ANY;

/// The maximum number of schedules that are kept for a line. The line's time is predicted from
/// these schedules and the number of runs of each.
const SCHEDULES: usize = 64;

/// The recorded calls and events of one rank's run.
pub(crate) struct Recorder {
    entries: RefCell<Vec<Entry>>,
    /// The place of the entry that was found last.
    last: Cell<usize>,
    /// The place of the entry for the call that this rank is in, if there is one. Calls inside that
    /// call are recorded as part of it.
    current: Cell<Option<usize>>,
    /// Whether the current call has run a schedule.
    is_prepared: Cell<bool>,
    ring: Option<Arc<Ring>>,
    /// The frames and bytes that were posted in split-off worlds that no longer exist.
    of_parts: Cell<Count>,
}

/// The recorded data of the calls of one line. Times are in ticks.
pub(crate) struct Entry {
    /// The name of the call, as [`Call::name`](crate::state::call::Call), and its line.
    pub(crate) name: Option<&'static str>,
    pub(crate) site: &'static Location<'static>,
    pub(crate) runs: u64,
    pub(crate) most: u64,
    pub(crate) total: u64,
    /// The time of waits, for each awaited rank.
    pub(crate) waits: BTreeMap<u32, u64>,
    pub(crate) sent: Count,
    /// The time so far of a run that has begun and not ended.
    begun: u64,
    /// The number of runs that have run a schedule.
    pub(crate) prepared: u64,
    /// The predicted time of runs whose schedules are not kept.
    pub(crate) predicted: f64,
    /// The schedules, and how often each was run.
    pub(crate) schedules: Vec<(Arc<Verified<Share>>, u64)>,
}

/// A call that has begun.
#[derive(Clone, Copy)]
pub(crate) struct Began {
    at: u64,
    place: usize,
    /// The frames and bytes that the rank had posted before.
    sent: Count,
}

impl Recorder {
    /// Returns a recorder without events. If `traces` is set, the recorder has room for events.
    /// With more ranks, the recorder of each rank has less room.
    pub(crate) fn new(traces: bool, ranks: usize) -> Self {
        let events = 1 << EVENTS.min(EVENTS_OF_ALL / ranks.max(1)).max(1).ilog2();
        Self {
            entries: RefCell::default(),
            last: Cell::new(0),
            current: Cell::new(None),
            is_prepared: Cell::new(false),
            ring: traces.then(|| Arc::new(Ring::new(events))),
            of_parts: Cell::default(),
        }
    }

    /// Returns the log for the frames of a world, if they are recorded. `ranks` contains the number
    /// of each rank of that world among all ranks.
    pub(crate) fn frames(&self, world: u32, ranks: Vec<u32>) -> Option<FrameLog> {
        let ring = self.ring.clone()?;
        Some(FrameLog { ring, kinds: [SENT, RECEIVED], world, ranks })
    }

    /// Returns the place of the entry for calls of this name and line.
    fn place(&self, name: Option<&'static str>, site: &'static Location<'static>) -> usize {
        let entries = &mut *self.entries.borrow_mut();
        let is_same = |entry: &Entry| {
            std::ptr::eq(entry.site, site)
                && entry.name.map(|name| (name.as_ptr(), name.len()))
                    == name.map(|name| (name.as_ptr(), name.len()))
        };
        // Calls mostly repeat in the order in which they first came. So the search begins with the
        // entry after the one that was found last.
        let (count, next) = (entries.len(), self.last.get() + 1);
        let found = (next..next + count).map(|at| at % count).find(|at| is_same(&entries[*at]));
        let place = found.unwrap_or_else(|| {
            entries.push(Entry {
                name,
                site,
                runs: 0,
                most: 0,
                total: 0,
                waits: BTreeMap::new(),
                sent: Count::default(),
                begun: 0,
                prepared: 0,
                predicted: 0.0,
                schedules: Vec::new(),
            });
            count
        });
        self.last.set(place);
        place
    }

    /// Begins a call, unless this rank is already in one.
    pub(crate) fn begin(
        &self,
        name: Option<&'static str>,
        site: &'static Location<'static>,
        sent: Count,
    ) -> Option<Began> {
        if self.current.get().is_some() {
            return None;
        }
        let place = self.place(name, site);
        self.current.set(Some(place));
        self.is_prepared.set(false);
        Some(Began { at: clock::ticks(), place, sent })
    }

    /// Records that the superstep that this rank is in has run a schedule. `predicted` returns the
    /// predicted time of one run of a schedule.
    pub(crate) fn ran(&self, share: &Arc<Verified<Share>>, predicted: impl FnOnce(&Verified<Share>) -> f64) {
        let Some(place) = self.current.get() else { return };
        let entry = &mut self.entries.borrow_mut()[place];
        self.is_prepared.set(true);
        if let Some((_, runs)) = entry.schedules.iter_mut().find(|(known, _)| Arc::ptr_eq(known, share)) {
            *runs += 1;
            return;
        }
        if entry.schedules.len() == SCHEDULES {
            let (share, runs) = entry.schedules.remove(0);
            entry.predicted += predicted(&share) * runs as f64;
        }
        entry.schedules.push((share.clone(), 1));
    }

    /// Ends a call, or the first half of a run if the second half `follows`.
    pub(crate) fn end(&self, began: Began, sent: Count, follows: bool) {
        self.current.set(None);
        let Began { at, place, sent: before } = began;
        let took = clock::ticks().saturating_sub(at);
        if let Some(ring) = &self.ring {
            ring.write([at, head(CALL, 0, place as u32), took, 0]);
        }
        let entry = &mut self.entries.borrow_mut()[place];
        entry.total += took;
        entry.sent.frames += sent.frames - before.frames;
        entry.sent.bytes += sent.bytes - before.bytes;
        if follows {
            entry.begun += took;
            return;
        }
        entry.runs += 1;
        entry.most = entry.most.max(took + std::mem::take(&mut entry.begun));
        entry.prepared += u64::from(self.is_prepared.get());
    }

    /// Records a wait of a call. `rank` is the number of the awaited rank among all ranks, or
    /// [`ANY`].
    pub(crate) fn waited(
        &self,
        (name, site): (Option<&'static str>, &'static Location<'static>),
        rank: u32,
        since: u64,
    ) {
        let took = clock::ticks().saturating_sub(since);
        if let Some(ring) = &self.ring {
            ring.write([since, head(WAIT, 0, rank), took, 0]);
        }
        let place = self.current.get().unwrap_or_else(|| self.place(name, site));
        *self.entries.borrow_mut()[place].waits.entry(rank).or_default() += took;
    }

    /// Adds the frames and bytes that were posted in a split-off world, which now ends.
    pub(crate) fn add_part(&self, sent: Count) {
        let Count { frames, bytes } = self.of_parts.get();
        self.of_parts.set(Count { frames: frames + sent.frames, bytes: bytes + sent.bytes });
    }

    /// Returns the frames and bytes that were posted in split-off worlds that no longer exist.
    pub(crate) fn of_parts(&self) -> Count {
        self.of_parts.get()
    }

    /// Returns the calls of each line.
    pub(crate) fn entries(&self) -> std::cell::Ref<'_, Vec<Entry>> {
        self.entries.borrow()
    }

    /// Returns the last events, if they are kept.
    pub(crate) fn ring(&self) -> Option<&Ring> {
        self.ring.as_deref()
    }
}
