//! The clock by which events are recorded: ticks that all processes of a machine share, and that
//! are cheap to read.

use std::sync::OnceLock;

/// Returns the time in ticks. The time is read after every earlier load has been executed. A tick
/// is a step of the processor's counter if the system keeps time by that counter, which implies
/// that the counters of all cores agree. Otherwise a tick is a nanosecond.
///
/// # Cost
/// 15 ns with the counter, and otherwise the time of reading the system's clock.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this architecture have the instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    ticks_before()
}

/// Returns the time in ticks. The time is read before other threads can see any later store, but
/// earlier loads may not have completed yet.
#[inline]
pub fn ticks_before() -> u64 {
    let ticks = if has_counter() { counter() } else { nanos() };
    #[cfg(any(test, feature = "testing"))]
    let ticks = ticks.wrapping_add(shifted::by());
    ticks
}

/// Returns the time in nanoseconds since an event that is the same for all processes of a machine.
pub fn nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time of one moment, in ticks and in nanoseconds. Reads both clocks several times,
/// and returns the reading that took the least time.
pub fn both() -> (u64, u64) {
    let read = || {
        let (before, at, after) = (nanos(), ticks(), nanos());
        (after - before, (at, before + (after - before) / 2))
    };
    (0..20).map(|_| read()).min().expect("some readings").1
}

#[inline]
fn has_counter() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(all(target_arch = "x86_64", not(miri)))
            && std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: all processors of this architecture have the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    nanos()
}

/// A clock of a thread that is wrong by a constant, as if the thread ran on another machine.
#[cfg(any(test, feature = "testing"))]
pub mod shifted {
    use std::cell::Cell;

    thread_local! {
        static BY: Cell<u64> = const { Cell::new(0) };
    }

    /// Shifts the clock of this thread.
    pub fn set(by: u64) {
        BY.set(by);
    }

    pub(super) fn by() -> u64 {
        BY.get()
    }
}
