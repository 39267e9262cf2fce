//! Those of the standard library, and the kernel's futex.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;
use std::time::Duration;

/// Looks between which a waiting rank only spins, where every rank has a core: some microseconds, many
/// times what a letter takes. A rank whose core is not its own after all wastes no more.
pub(crate) const SPINS: u32 = 256;

/// Looks between which a waiting rank yields its core, before it sleeps: 50 microseconds or more.
pub(crate) const YIELDS: u32 = 256;

/// Slots of a queue's first ring, and of its largest; powers of two.
pub(crate) const SLOTS: (usize, usize) = (16, 4096);

/// How long a rank sleeps at a time, so that a wait that lasts can be reported.
const SLEEP: Duration = Duration::from_secs(1);

/// Where one thread sleeps and others wake it, who may be of other processes: the kernel knows it by the address of the
/// word that says that it sleeps. Nothing is stored here.
#[derive(Debug, Default)]
pub(crate) struct Parker(());

impl Parker {
    /// The next to sleep here is this thread.
    pub(crate) fn enrol(&self) {}

    /// Sleep while `word` is `asleep`, until woken.
    pub(crate) fn park(&self, word: &AtomicU32, asleep: u32) {
        use rustix::thread::futex;
        let limit = futex::Timespec { tv_sec: SLEEP.as_secs() as i64, tv_nsec: 0 };
        // Whatever ends it, the caller looks again. Without `PRIVATE`: other processes may wake it.
        let _ = futex::wait(word, futex::Flags::empty(), asleep, Some(&limit));
    }

    /// Wake who sleeps here.
    pub(crate) fn unpark(&self, word: &AtomicU32) {
        use rustix::thread::futex;
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// What `mutex` guards. No code panics while it holds one of ours, so what a poisoned one guards is sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that several threads touch in turn; accesses are closures, so that a model can check each.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Read through the pointer; the caller shows that nobody writes meanwhile.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Write through the pointer; the caller shows that nobody else touches it meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// A value that shares no cache line with its neighbours (two lines: they are fetched in pairs).
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line<T>(pub(crate) T);
