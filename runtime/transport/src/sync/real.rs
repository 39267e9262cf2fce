//! The standard library's types, and the kernel's futex.

pub(crate) use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;
use std::time::Duration;

/// If every rank has a core, a wait begins with this number of polls, between which the rank only
/// spins. These polls take some microseconds, many times the latency of a notification. If a rank
/// shares its core nevertheless, it wastes at most this time.
pub(crate) const SPINS: u32 = 256;

/// If every rank has a core, a wait first reads only the awaited notification, this number of
/// times. That takes about as long as the difference between the times at which ranks reach a step.
/// After that, each iteration reads everything that may end the wait, which takes some 150
/// instructions. These instructions slow down a rank on the other thread of the same core, and can
/// delay the end of the wait by one iteration.
pub(crate) const LOOKS: u32 = 64;

/// After the polls of `SPINS`, a wait has this number of polls, between which the rank yields its
/// core. They take 50 microseconds or more. After them the rank sleeps.
pub(crate) const YIELDS: u32 = 256;

/// The number of slots of a queue's first ring, and the number of slots of its largest ring. Both
/// are powers of two.
pub(crate) const SLOTS: (usize, usize) = (16, 4096);

/// The longest time that a rank sleeps without a check, so that a long wait can be reported.
const SLEEP: Duration = Duration::from_secs(1);

/// The fence of a rank that wakes others, between the rank's store and its load of the others'
/// announcements. It keeps the compiler from reordering the two. If this process is registered with
/// the kernel for [`fence_everywhere`], that function keeps the processor from reordering them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakersFence {
    promised: bool,
}

impl WakersFence {
    /// Registers this process with the kernel, once.
    pub(crate) fn of_process() -> Self {
        use rustix::thread::{MembarrierCommand, membarrier};
        static PROMISED: OnceLock<bool> = OnceLock::new();
        let ask = || membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok();
        Self { promised: *PROMISED.get_or_init(ask) }
    }

    #[inline(always)]
    pub(crate) fn execute(self) {
        if self.promised { compiler_fence(Ordering::SeqCst) } else { fence(Ordering::SeqCst) }
    }
}

/// Executes a sequentially consistent fence in this thread, and in each thread of each registered
/// process before this returns. If the kernel refuses the call to this process only, a wake-up by
/// another process may be missed. In that case the sleep ends at its time limit.
pub(crate) fn fence_everywhere() {
    use rustix::thread::{MembarrierCommand, membarrier};
    fence(Ordering::SeqCst);
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
}

/// A place where one thread sleeps. Other threads wake it, also threads of other processes. The
/// kernel identifies the place by the address of the word that announces the sleep, so this type is
/// empty.
#[derive(Debug, Default)]
pub(crate) struct Parker(());

impl Parker {
    /// Declares that this thread is the next to sleep here.
    pub(crate) fn enrol(&self) {}

    /// Sleeps while `word` is `asleep`, until woken.
    pub(crate) fn park(&self, word: &AtomicU32, asleep: u32) {
        use rustix::thread::futex;
        let limit = futex::Timespec { tv_sec: SLEEP.as_secs() as i64, tv_nsec: 0 };
        // The result is ignored, because the caller polls again in any case. The flag `PRIVATE` is
        // not set, because other processes may wake the thread.
        let _ = futex::wait(word, futex::Flags::empty(), asleep, Some(&limit));
    }

    /// Wakes the thread that sleeps here.
    pub(crate) fn unpark(&self, word: &AtomicU32) {
        use rustix::thread::futex;
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// Locks `mutex`. No code panics while it holds one of these mutexes, so the value in a poisoned
/// mutex is sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that several threads access in turn. Accesses are closures, so that a model can check
/// each of them.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Reads through the pointer. The caller shows that nobody writes meanwhile.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes through the pointer. The caller shows that nobody else accesses the value meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value that shares no cache line with its neighbours. It takes two lines, because lines are
/// fetched in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line<T>(pub(crate) T);
