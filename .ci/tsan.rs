//! Wrappers that report the synchronisation of the standard library to the thread sanitizer. The
//! library is not instrumented, so the sanitizer does not see what the library's functions acquire
//! and release, unless these functions are inlined. `.ci/run` links each test with this file's
//! object and has the linker replace all calls of these functions by calls of the wrappers
//! (`--wrap`). Each wrapper calls the function, and reports its synchronisation at the address that
//! the inlined, instrumented paths use. No wrapper reports an order that the library does not
//! guarantee.
//!
//! `@PATH@` is a placeholder for the mangled name of the function with that path. `.ci/run` finds
//! the name in the installed library.
#![no_std]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function is one call of what it stands for, with its caller's promises"
)]

type Address = *const u8;

unsafe extern "C" {
    fn __tsan_acquire(address: Address);
    fn __tsan_release(address: Address);
    #[link_name = "__real___tsan_atomic64_fetch_sub"]
    fn fetch_sub(count: *mut u64, by: u64, order: i32) -> u64;
    #[link_name = "__real_mmap64"]
    fn map(address: Address, bytes: usize, protection: i32, flags: i32, file: i32, from: i64) -> Address;
    fn __errno_location() -> *mut i32;
}

unsafe extern "Rust" {
    #[link_name = "__real_@once::futex::Once::call@"]
    fn call(once: Address, poisoned_too: bool, first: &mut dyn FnMut(Address), site: Address);
    #[link_name = "__real_@mutex::futex::Mutex::lock_contended@"]
    fn lock(mutex: Address);
    #[link_name = "__real_@rwlock::futex::RwLock::read_contended@"]
    fn read(lock: Address);
    #[link_name = "__real_@rwlock::futex::RwLock::write_contended@"]
    fn write(lock: Address);
    #[link_name = "__real_@condvar::futex::Condvar::wait@"]
    fn wait(condvar: Address, mutex: Address);
    #[link_name = "__real_@condvar::futex::Condvar::wait_timeout@"]
    fn wait_timeout(condvar: Address, mutex: Address, seconds: u64, nanos: u32) -> bool;
    #[link_name = "__real_@barrier::Barrier::wait@"]
    fn meet(barrier: Address) -> bool;
    #[link_name = "__real_@scoped::ScopeData::decrement_num_running_threads@"]
    fn leave(scope: Address, panicked: bool);
}

/// The initialisation by the first caller happens before the returns of all other calls.
#[unsafe(export_name = "__wrap_@once::futex::Once::call@")]
unsafe fn call_seen(once: Address, poisoned_too: bool, first: &mut dyn FnMut(Address), site: Address) {
    let mut seen = |state: Address| {
        first(state);
        // SAFETY: any address can be released.
        unsafe { __tsan_release(once) };
    };
    call(once, poisoned_too, &mut seen, site);
    __tsan_acquire(once);
}

#[unsafe(export_name = "__wrap_@mutex::futex::Mutex::lock_contended@")]
unsafe fn lock_seen(mutex: Address) {
    lock(mutex);
    __tsan_acquire(mutex);
}

#[unsafe(export_name = "__wrap_@rwlock::futex::RwLock::read_contended@")]
unsafe fn read_seen(lock: Address) {
    read(lock);
    __tsan_acquire(lock);
}

#[unsafe(export_name = "__wrap_@rwlock::futex::RwLock::write_contended@")]
unsafe fn write_seen(lock: Address) {
    write(lock);
    __tsan_acquire(lock);
}

/// A wait unlocks the mutex, and locks it again.
#[unsafe(export_name = "__wrap_@condvar::futex::Condvar::wait@")]
unsafe fn wait_seen(condvar: Address, mutex: Address) {
    __tsan_release(mutex);
    wait(condvar, mutex);
    __tsan_acquire(mutex);
}

#[unsafe(export_name = "__wrap_@condvar::futex::Condvar::wait_timeout@")]
unsafe fn wait_timeout_seen(condvar: Address, mutex: Address, seconds: u64, nanos: u32) -> bool {
    __tsan_release(mutex);
    let woken = wait_timeout(condvar, mutex, seconds, nanos);
    __tsan_acquire(mutex);
    woken
}

/// Everything before a call happens before everything after the call on any other thread.
#[unsafe(export_name = "__wrap_@barrier::Barrier::wait@")]
unsafe fn meet_seen(barrier: Address) -> bool {
    __tsan_release(barrier);
    let leads = meet(barrier);
    __tsan_acquire(barrier);
    leads
}

/// A scope ends once its count of threads is zero. The count is one of the three words of a scope,
/// so all three are released.
#[unsafe(export_name = "__wrap_@scoped::ScopeData::decrement_num_running_threads@")]
unsafe fn leave_seen(scope: Address, panicked: bool) {
    for word in 0..3 {
        __tsan_release(scope.add(8 * word));
    }
    leave(scope, panicked);
}

/// The thread that drops the last `Arc` of a value acquires, by a fence, what the other threads
/// released. The sanitizer does not model fences, so here every thread that drops an `Arc` acquires
/// in its `fetch_sub`. No other `fetch_sub` of this repository has the order `Release`.
#[unsafe(export_name = "__wrap___tsan_atomic64_fetch_sub")]
unsafe extern "C" fn fetch_sub_seen(count: *mut u64, by: u64, order: i32) -> u64 {
    const RELEASE: i32 = 3;
    const BOTH: i32 = 4;
    fetch_sub(count, by, if order == RELEASE { BOTH } else { order })
}

/// The sanitizer keeps some addresses for its own memory. If a caller asks for one of them, the
/// sanitizer's `mmap` maps another address instead. If the caller accepts no other address, this
/// wrapper returns the error that the kernel returns for an address in use.
#[unsafe(export_name = "__wrap_mmap64")]
unsafe extern "C" fn map_there(
    address: Address,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    from: i64,
) -> Address {
    const FIXED_NOREPLACE: i32 = 0x10_0000;
    const EEXIST: i32 = 17;
    let programs = 0x1000..0x0200_0000_0000_usize;
    if flags & FIXED_NOREPLACE != 0 && !programs.contains(&(address as usize)) {
        *__errno_location() = EEXIST;
        return usize::MAX as Address;
    }
    map(address, bytes, protection, flags, file, from)
}
