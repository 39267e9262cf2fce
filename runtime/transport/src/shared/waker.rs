//! How a rank waits, and how other ranks wake it. A waiting rank spins, then yields, then sleeps.
//!
//! A rank that falls asleep and the rank that wakes it must not miss each other. The sleeper stores
//! an announcement, and then polls the awaited value once more. The other rank stores the awaited
//! value, and then reads the announcement. Each executes a sequentially consistent fence between
//! its store and its load. So at least one of them reads the store of the other. Ranks wake others
//! in each exchange and rarely sleep. So the sleeper executes both fences, if the kernel can
//! execute a fence in all threads of all processes that requested it. Then the waking rank only
//! loads one line that is rarely written. Otherwise the waking rank executes its own fence. It
//! takes a lock or makes a system call only if a rank sleeps.

use std::io;

use crate::shared::slice::{Heap, SharedSlice};
use crate::sync::{
    AtomicU32, LOOKS, Line, Ordering, Parker, SPINS, WakersFence, YIELDS, fence_everywhere, spin_loop,
    yield_now,
};

/// How long one wait has lasted. Created for each wait.
#[derive(Debug, Default)]
pub struct Pause {
    step: u32,
    /// Whether the rank may have slept in a step since the last call of `lasts`.
    pub(crate) long: bool,
    /// Whether the wait has let other threads run a few times since the last call of `is_due`.
    due: bool,
}

impl Pause {
    /// Begins a wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the rank may have slept in a step since the last call, or since the
    /// beginning of the wait. If so, the wait is a long one.
    #[inline]
    pub fn lasts(&mut self) -> bool {
        std::mem::take(&mut self.long)
    }

    /// Returns whether it is time to look for failures, because the wait may have taken long. This
    /// holds if `lasts` is set, or if the wait has let other threads run a few times since the last
    /// call.
    #[inline]
    pub fn is_due(&mut self, lasts: bool) -> bool {
        std::mem::take(&mut self.due) | lasts
    }

    /// Returns whether a poll of all connections is due, which takes longer.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn full_poll_due(&self) -> bool {
        self.step % FULL_POLL == FULL_POLL - 1
    }
}

/// A waiting rank polls the connection that it waits for. Once in this many polls, it polls all
/// connections.
#[cfg(not(loom))]
const FULL_POLL: u32 = 32;

/// How a rank waits before it sleeps: it spins, then it yields.
#[derive(Clone, Copy)]
pub(crate) struct Backoff {
    looks: u32,
    spins: u32,
}

impl Backoff {
    /// Returns the backoff of a rank on a machine on which `ranks` ranks run at once.
    pub(crate) fn of(ranks: usize) -> Self {
        let (looks, spins) = if oversubscribed(ranks) { (0, 0) } else { (LOOKS, SPINS) };
        Self { looks, spins }
    }

    /// Begins a wait. Calls `came` several times in a row until it returns `true`, and returns its
    /// last result. Calls `came` only once if ranks share cores, because the awaited rank may need
    /// this core.
    #[inline(always)]
    pub(crate) fn look_out(self, came: impl Fn() -> bool) -> bool {
        let mut left = self.looks;
        loop {
            if came() {
                return true;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            spin_loop();
        }
    }

    /// Spins or yields. Returns `false` without doing either if the rank should sleep in this step
    /// of the wait.
    #[inline]
    pub(crate) fn step(self, pause: &mut Pause) -> bool {
        if pause.step >= self.last() {
            return false;
        }
        if pause.step < self.spins {
            spin_loop()
        } else {
            yield_now();
            pause.due |= pause.step.is_multiple_of(YIELDS_DUE);
        }
        pause.step += 1;
        true
    }

    /// Returns whether the next step of this wait yields.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn yields_next(self, pause: &Pause) -> bool {
        (self.spins..self.last()).contains(&pause.step)
    }

    /// Makes a rank that slept yield a few times before it sleeps again.
    pub(crate) fn woken(self, pause: &mut Pause) {
        pause.step = self.last() - YIELDS_AFTER_WAKING;
    }

    fn last(self) -> u32 {
        self.spins + YIELDS
    }
}

const AWAKE: u32 = 0;
const ANNOUNCED: u32 = 1;

/// How many yields a woken rank tries before it sleeps again. The wake-up may be for the first of
/// several events.
const YIELDS_AFTER_WAKING: u32 = if YIELDS < 16 { YIELDS } else { 16 };

/// How many yields there are between two checks for failures. A yield may take some milliseconds if
/// other ranks compute.
const YIELDS_DUE: u32 = 16;

/// The wakers of all ranks.
#[derive(Clone)]
pub(crate) struct Wakers {
    wakers: SharedSlice<Line<Waker>>,
    /// The waker of each rank of this world. A rank has the same waker in all its worlds, since it
    /// waits in one world at a time.
    of: std::sync::Arc<[u32]>,
    backoff: Backoff,
    fence: WakersFence,
}

#[repr(C)]
pub(crate) struct Waker {
    state: AtomicU32,
    parker: Parker,
}

impl Waker {
    pub(crate) fn new() -> Line<Self> {
        Line(Self { state: AtomicU32::new(AWAKE), parker: Parker::default() })
    }
}

impl Wakers {
    /// Creates wakers on this process's heap.
    pub(crate) fn new(size: usize) -> Self {
        Self::over(Heap::list(size, Waker::new), (0..size as u32).collect(), size)
    }

    /// Returns the wakers of the ranks of one world. In the job, `running` ranks run at once.
    pub(crate) fn over(wakers: SharedSlice<Line<Waker>>, of: std::sync::Arc<[u32]>, running: usize) -> Self {
        Self { wakers, of, backoff: Backoff::of(running), fence: WakersFence::of_process() }
    }

    /// Returns the wakers of these ranks, for a new world that has only these ranks. A rank that
    /// sleeps in the new world is also woken for arrivals in this world, and the other way round.
    ///
    /// # Errors
    /// Fails if a member is not a rank of this world.
    pub(crate) fn part(&self, members: &[usize]) -> io::Result<Self> {
        let of: Option<_> = members.iter().map(|&member| self.of.get(member).copied()).collect();
        let of =
            of.ok_or_else(|| io::Error::other("every member of the new world must be a rank of this one"))?;
        Ok(Self { of, ..self.clone() })
    }

    /// Wakes those of `ranks` that sleep. Called after the caller has stored something for which
    /// they may wait.
    #[inline]
    pub(crate) fn wake(&self, ranks: impl IntoIterator<Item = usize>) {
        self.fence.execute(); // pairs with the fence in `sleep_step`
        for rank in ranks {
            let waker = &self.wakers[self.of[rank] as usize].0;
            if waker.state.load(Ordering::Relaxed) == ANNOUNCED {
                waker.wake();
            }
        }
    }

    /// Wakes every rank except `rank`.
    #[inline]
    pub(crate) fn wake_others(&self, rank: usize) {
        self.wake((0..rank).chain(rank + 1..self.of.len()));
    }

    /// Returns whether `rank` sleeps in the next step of its wait, unless another rank wakes it
    /// before.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn sleeps_next(&self, rank: usize, pause: &Pause) -> bool {
        pause.step > self.backoff.last()
            && self.wakers[self.of[rank] as usize].0.state.load(Ordering::Relaxed) == ANNOUNCED
    }

    /// Returns how a rank waits before it sleeps.
    #[inline]
    pub(crate) fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Takes one step of a wait of `rank`. The caller polls between two steps.
    #[inline]
    pub(crate) fn wait_step(&self, rank: usize, pause: &mut Pause) {
        self.wait_step_unless(rank, pause, || false);
    }

    /// Takes one step of a wait, but does not sleep while the rank is `busy`. Another poll may then
    /// find something for which no other rank wakes this rank.
    #[inline]
    pub(crate) fn wait_step_unless(&self, rank: usize, pause: &mut Pause, busy: impl FnOnce() -> bool) {
        if self.backoff.step(pause) {
            return;
        }
        if pause.step > self.backoff.last() && busy() {
            pause.long = true;
            yield_now();
        } else {
            self.wakers[self.of[rank] as usize].0.sleep_step(pause, self.backoff);
        }
    }
}

impl Waker {
    #[cold]
    fn wake(&self) {
        if self.state.swap(AWAKE, Ordering::AcqRel) == ANNOUNCED {
            self.parker.unpark(&self.state);
        }
    }

    #[cold]
    fn sleep_step(&self, pause: &mut Pause, backoff: Backoff) {
        if pause.step == backoff.last() {
            pause.step += 1;
            pause.long = true;
            self.parker.enrol();
            self.state.store(ANNOUNCED, Ordering::Relaxed);
            fence_everywhere(); // pairs with `wake`; the caller now polls once more
        } else {
            if self.state.load(Ordering::Acquire) == ANNOUNCED {
                self.parker.park(&self.state, ANNOUNCED);
                pause.long = true;
            }
            backoff.woken(pause);
        }
    }
}

/// Returns whether there are more ranks than cores. If so, a waiting rank yields without spinning
/// first.
fn oversubscribed(size: usize) -> bool {
    size > crate::cores::cores()
}
