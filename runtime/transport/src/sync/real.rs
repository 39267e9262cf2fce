//! The standard library's types, and the kernel's futex.

pub(crate) use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;
use std::time::Duration;

/// Polls between which a waiting rank only spins, where every rank has a core: some microseconds, many times the
/// latency of a notification. A rank that shares its core after all wastes no more than this.
pub(crate) const SPINS: u32 = 256;

/// Looks at one thing alone with which a wait begins, where every rank has a core: as long as most ranks of one step are apart.
/// A look at all that may keep a rank from going on takes some 150 instructions, which a rank that is a thread of the
/// same core lacks meanwhile, and the wait ends as late as one look takes.
pub(crate) const LOOKS: u32 = 64;

/// Polls between which a waiting rank yields its core, before it sleeps: 50 microseconds or more.
pub(crate) const YIELDS: u32 = 256;

/// Slots of a queue's first ring, and of its largest; powers of two.
pub(crate) const SLOTS: (usize, usize) = (16, 4096);

/// The longest time that a rank sleeps at once, so that a long wait can be reported.
const SLEEP: Duration = Duration::from_secs(1);

/// The fence of a rank that wakes others, between what it stored and its look at who sleeps: it keeps the compiler from
/// reordering the two, and leaves the processor to [`fence_everywhere`] where the kernel has promised that for this
/// process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakersFence {
    promised: bool,
}

impl WakersFence {
    /// Asks the kernel, once in each process.
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

/// A sequentially consistent fence in this thread, and, until this returns, in each thread of each process to which the
/// kernel has promised it. Where the kernel refuses that to this process only, another one's wake-up may be missed; then
/// the sleep ends by its time limit.
pub(crate) fn fence_everywhere() {
    use rustix::thread::{MembarrierCommand, membarrier};
    fence(Ordering::SeqCst);
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
}

/// Where one thread sleeps and other threads wake it, also threads of other processes: the kernel identifies it by the
/// address of the word that announces the sleep. Nothing is stored here.
#[derive(Debug, Default)]
pub(crate) struct Parker(());

impl Parker {
    /// Declares that this thread is the next to sleep here.
    pub(crate) fn enrol(&self) {}

    /// Sleeps while `word` is `asleep`, until woken.
    pub(crate) fn park(&self, word: &AtomicU32, asleep: u32) {
        use rustix::thread::futex;
        let limit = futex::Timespec { tv_sec: SLEEP.as_secs() as i64, tv_nsec: 0 };
        // The caller polls again for every result. Without `PRIVATE`: other processes may wake it.
        let _ = futex::wait(word, futex::Flags::empty(), asleep, Some(&limit));
    }

    /// Wakes the thread that sleeps here.
    pub(crate) fn unpark(&self, word: &AtomicU32) {
        use rustix::thread::futex;
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// Locks `mutex`. No code panics while it holds one of these mutexes, so the value in a poisoned one is sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that several threads access in turn; accesses are closures, so that a model can check each.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Reads through the pointer; the caller shows that nobody writes meanwhile.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes through the pointer; the caller shows that nobody else accesses it meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value that shares no cache line with its neighbours (two lines: they are fetched in pairs).
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line<T>(pub(crate) T);
