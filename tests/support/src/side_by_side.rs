//! [`side_by_side`], for cases that mostly wait until a time has passed.

use std::panic::resume_unwind;
use std::thread::scope;

/// Runs `one` on each case, up to `at_once` cases at the same time. Returns the results in the
/// order of the cases. If `one` panics, the panic continues when the other cases that are running
/// have ended.
pub fn side_by_side<C: Send, R: Send>(
    at_once: usize,
    cases: impl IntoIterator<Item = C>,
    one: impl Fn(C) -> R + Sync,
) -> Vec<R> {
    let (one, mut cases) = (&one, cases.into_iter());
    let mut results = Vec::new();
    loop {
        let before = results.len();
        scope(|scope| {
            let running: Vec<_> =
                cases.by_ref().take(at_once).map(|case| scope.spawn(move || one(case))).collect();
            let ended =
                running.into_iter().map(|case| case.join().unwrap_or_else(|panic| resume_unwind(panic)));
            results.extend(ended);
        });
        if results.len() == before {
            return results;
        }
    }
}
