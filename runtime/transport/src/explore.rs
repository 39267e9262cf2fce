//! Functions that execute models in every order of steps, for this package and packages that use
//! it.

use std::sync::Once;

pub use crate::sync::without_fences;

/// Makes panics print their messages without backtraces, whatever the value of `RUST_BACKTRACE`.
/// Making a backtrace takes more than the 32 KiB of stack that loom gives a thread. A thread that
/// overflows its stack keeps the lock that every later backtrace waits for.
#[expect(clippy::print_stderr, reason = "a test says why it failed")]
fn print_messages_only() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
}

/// Executes a model in every order of steps that has at most `preemptions` switches away from a
/// thread that could continue.
pub fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    print_messages_only();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(run);
}

/// Checks that loom rejects a model, and returns its message.
pub fn rejected(preemptions: usize, run: impl Fn() + Sync + Send + 'static) -> String {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model(preemptions, run)));
    let panic = checked.expect_err("loom accepts a protocol without one of its waits");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|message| (*message).to_owned()))
        .unwrap_or_default()
}
