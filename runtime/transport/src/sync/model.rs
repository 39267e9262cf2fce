//! Loom's types, with sizes that a model can explore. Rings have one slot and grow to two. A wait
//! has no polls except those that the handshake of sleeping needs.

use std::cell::Cell;
// Not loom's `Arc`, because its drop cannot run while a rejected model unwinds. Loom still checks
// the value inside.
pub(crate) use std::sync::Arc;

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
use loom::sync::Notify;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

pub(crate) const LOOKS: u32 = 0;
pub(crate) const SPINS: u32 = 0;
pub(crate) const YIELDS: u32 = 0;
pub(crate) const SLOTS: (usize, usize) = (1, 2);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic ends the model")
}

#[derive(Debug, Default)]
pub(crate) struct Line<T>(pub(crate) T);

/// The place where a thread parks. Loom's own `unpark` would also end any other call in which the
/// thread is blocked.
#[derive(Debug)]
pub(crate) struct Parker(Notify);

impl Default for Parker {
    fn default() -> Self {
        Self(Notify::new())
    }
}

impl Parker {
    pub(crate) fn enrol(&self) {}

    /// Waits without a time limit, so that a lost wake-up is a deadlock.
    pub(crate) fn park(&self, _: &AtomicU32, _: u32) {
        self.0.wait();
    }

    pub(crate) fn unpark(&self, _: &AtomicU32) {
        self.0.notify();
    }
}

thread_local! {
    /// Whether all fences are omitted. A model's threads share one thread of the system, so this
    /// value belongs to the model.
    static WITHOUT_FENCES: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn fence(order: Ordering) {
    if !WITHOUT_FENCES.get() {
        loom::sync::atomic::fence(order);
    }
}

/// The fence of a rank that wakes others. Loom has no fence for all threads, so each side executes
/// its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakersFence;

impl WakersFence {
    pub(crate) fn of_process() -> Self {
        Self
    }

    pub(crate) fn execute(self) {
        fence(Ordering::SeqCst);
    }
}

pub(crate) fn fence_everywhere() {
    fence(Ordering::SeqCst);
}

/// Executes models without fences.
pub fn without_fences<R>(run: impl FnOnce() -> R) -> R {
    WITHOUT_FENCES.set(true);
    let value = run();
    WITHOUT_FENCES.set(false);
    value
}
