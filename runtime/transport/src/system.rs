//! What Fencepost needs of the system that it runs on.

use rustix::io::Errno;
use std::io;

/// Returns the error of a system call that failed, with the call's name. Where the system does not
/// have the call or does not allow it, the error says what Fencepost needs.
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
