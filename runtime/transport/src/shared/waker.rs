//! How a rank waits, and how it is woken: spin, then yield, then sleep.
//!
//! Who falls asleep and who wakes it must not miss one another. The sleeper announces itself, and looks once more at what
//! it waits for; the waker stores what the sleeper waits for, and then looks for the announcement. A sequentially
//! consistent fence on either side, between its store and its look, lets at least one see the other. The waker pays
//! that fence and one load of a line that is rarely written; it never pays a lock or a system call unless somebody sleeps.

use std::sync::OnceLock;

use crate::shared::slice::{Heap, Placed};
use crate::sync::{AtomicU32, Line, Ordering, Parker, SPINS, YIELDS, fence, spin_loop, yield_now};

/// How long one wait has lasted; made anew for each.
#[derive(Debug, Default)]
pub struct Pause {
    step: u32,
    /// Since it was last asked, a step was one of those that may sleep.
    long: bool,
}

impl Pause {
    /// The beginning of a wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a step since this was last asked, or since the beginning, was one of those that may sleep: the wait is a
    /// long one.
    #[inline]
    pub fn lasts(&mut self) -> bool {
        std::mem::take(&mut self.long)
    }

    /// Whether a look at what takes longer is due.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn rounds(&self) -> bool {
        self.step % ROUND == ROUND - 1
    }
}

/// Looks between which a waiting rank looks at all connections, not only the one it waits for.
#[cfg(not(loom))]
pub(crate) const ROUND: u32 = 32;

/// How a rank waits where it does the sleeping itself.
#[cfg(not(loom))]
pub(crate) struct Rhythm {
    /// Looks between which it only spins.
    pub(crate) spins: u32,
}

#[cfg(not(loom))]
impl Rhythm {
    /// Of a rank among so many on this machine.
    pub(crate) fn of(ranks: usize) -> Self {
        Self { spins: if crowded(ranks) { 0 } else { SPINS } }
    }

    /// The next step of a wait: which one of those that do not sleep, or none. One that slept yields a little before it
    /// sleeps again.
    #[inline]
    pub(crate) fn step(&self, pause: &mut Pause) -> Option<u32> {
        let last = self.spins + YIELDS;
        if pause.step < last {
            pause.step += 1;
            return Some(pause.step - 1);
        }
        pause.step = last - AFTER_WAKING;
        pause.long = true;
        None
    }
}

const AWAKE: u32 = 0;
const ANNOUNCED: u32 = 1;

/// Yields that a woken rank tries before it sleeps again: it may have been woken for the first of several things.
const AFTER_WAKING: u32 = if YIELDS < 16 { YIELDS } else { 16 };

/// Every rank's bell.
#[derive(Clone)]
pub(crate) struct Bells {
    bells: Placed<Line<Bell>>,
    /// Which of them each rank of this world has; a rank has one in all its worlds, since it waits in one at a time.
    of: std::sync::Arc<[u32]>,
    spins: u32,
}

#[repr(C)]
pub(crate) struct Bell {
    state: AtomicU32,
    parker: Parker,
}

impl Bell {
    pub(crate) fn new() -> Line<Self> {
        Line(Self { state: AtomicU32::new(AWAKE), parker: Parker::default() })
    }
}

impl Bells {
    /// Bells on this process's heap.
    pub(crate) fn new(size: usize) -> Self {
        Self::over(Heap::list(size, Bell::new), (0..size as u32).collect(), size)
    }

    /// Those of the ranks of one world, of `running` ranks that run at once.
    pub(crate) fn over(bells: Placed<Line<Bell>>, of: std::sync::Arc<[u32]>, running: usize) -> Self {
        Self { bells, of, spins: if crowded(running) { 0 } else { SPINS } }
    }

    /// Wake `ranks`, where they sleep, after something was stored that they may wait for.
    #[inline]
    pub(crate) fn ring(&self, ranks: impl IntoIterator<Item = usize>) {
        fence(Ordering::SeqCst); // pairs with the one in `rest`
        for rank in ranks {
            let bell = &self.bells[self.of[rank] as usize].0;
            if bell.state.load(Ordering::Relaxed) == ANNOUNCED {
                bell.wake();
            }
        }
    }

    /// Wake everybody but `rank`.
    #[inline]
    pub(crate) fn ring_others(&self, rank: usize) {
        self.ring((0..rank).chain(rank + 1..self.of.len()));
    }

    /// Whether the next step of a wait of `rank` sleeps, unless somebody rings before.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn sleeps_next(&self, rank: usize, pause: &Pause) -> bool {
        pause.step > self.spins + YIELDS
            && self.bells[self.of[rank] as usize].0.state.load(Ordering::Relaxed) == ANNOUNCED
    }

    /// One step of a wait of `rank`; the caller looks between any two.
    #[inline]
    pub(crate) fn rest(&self, rank: usize, pause: &mut Pause) {
        self.rest_unless(rank, pause, || false);
    }

    /// The same, but without sleeping while the rank is `busy`: while another look may show what nobody will ring for.
    #[inline]
    pub(crate) fn rest_unless(&self, rank: usize, pause: &mut Pause, busy: impl FnOnce() -> bool) {
        if pause.step < self.spins {
            pause.step += 1;
            spin_loop();
        } else if pause.step > self.spins + YIELDS && busy() {
            pause.long = true;
            yield_now();
        } else {
            self.bells[self.of[rank] as usize].0.rest(pause, self.spins);
        }
    }
}

impl Bell {
    #[cold]
    fn wake(&self) {
        if self.state.swap(AWAKE, Ordering::AcqRel) == ANNOUNCED {
            self.parker.unpark(&self.state);
        }
    }

    #[cold]
    fn rest(&self, pause: &mut Pause, spins: u32) {
        let last = spins + YIELDS;
        if pause.step < last {
            pause.step += 1;
            yield_now();
        } else if pause.step == last {
            pause.step += 1;
            pause.long = true;
            self.parker.enrol();
            self.state.store(ANNOUNCED, Ordering::Relaxed);
            fence(Ordering::SeqCst); // pairs with the one in `ring`; the caller now looks once more
        } else {
            if self.state.load(Ordering::Acquire) == ANNOUNCED {
                self.parker.park(&self.state, ANNOUNCED);
            }
            pause.step = last - AFTER_WAKING;
        }
    }
}

/// The first world of this process with more ranks than cores: its ranks, and the cores.
static CROWDED: OnceLock<(usize, usize)> = OnceLock::new();

fn crowded(size: usize) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let crowded = size > cores;
    if crowded {
        CROWDED.get_or_init(|| (size, cores));
    }
    crowded
}

/// Ranks and cores of the first world of this process that had more of the former, if there was one: ranks of such a
/// world yield instead of spinning. That is normal, and worth saying once.
pub fn more_ranks_than_cores() -> Option<(usize, usize)> {
    CROWDED.get().copied()
}
