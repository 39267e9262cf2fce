//! Errors of system calls, and the call `munmap`.

#[cfg(not(loom))]
use rustix::io::Errno;
use std::ffi::{c_int, c_void};
#[cfg(not(loom))]
use std::io;

/// Returns the error of a system call that failed, with the call's name. If the system does not
/// have the call or does not allow it, the error names what Fencepost needs.
#[cfg(not(loom))]
pub fn call_failed(call: &str, errno: Errno) -> io::Error {
    let is_refused = [Errno::PERM, Errno::NOSYS, Errno::INVAL].contains(&errno);
    io::Error::other(if is_refused {
        format!(
            "the system refuses the call {call} ({errno}): Fencepost needs Linux 5.10 or newer, and in a container a seccomp profile that allows {call}"
        )
    } else {
        format!("the call {call} failed: {errno}")
    })
}

/// Unmaps these bytes with the function of libc. MPI libraries replace that function to notice
/// memory that their networks must no longer use. If the call fails, the memory stays mapped.
///
/// # Safety
/// The bytes are whole pages of a mapping, and nobody uses them any more.
pub(crate) unsafe fn unmap(first: *mut c_void, len: usize) {
    unsafe extern "C" {
        fn munmap(first: *mut c_void, len: usize) -> c_int;
    }
    // SAFETY: the caller's promise.
    let _ = unsafe { munmap(first, len) };
}
