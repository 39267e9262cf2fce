//! [`contained`]: a call of a function of the program in the middle of a protocol.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function of the program in the middle of a protocol. If the function panics, the panic
/// hook reports the panic, and the panic ends here. Returns whether the function has returned
/// without a panic.
pub(crate) fn contained(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).map_err(drop_payload).is_ok()
}

/// Drops the payload of a panic. The destructor of the payload is the program's code as well. If
/// the destructor panics, the payload of that second panic is leaked.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}
