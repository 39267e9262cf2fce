//! The table of all cases: what becomes of each, with the lines that are named, and by which way of
//! checking.

use crate::{buffers, cases, races};
use fencepost::TransportKind;
use fencepost_tests_support::cases::cases as number_of;
use fencepost_tests_worlds::transports::transports;

/// A row: the case, what becomes of it, and by which way of checking.
pub(crate) fn row(case: &str, becomes: &str, mode: &str) -> String {
    format!("{case:<66} {becomes:<60} {mode}\n")
}

/// Runs all cases of conflicts on these transports; returns their table.
///
/// # Panics
/// Panics if a case has another result than its entry.
pub(crate) fn judged(transports: &[TransportKind]) -> String {
    races::judged(transports) + &cases::judged(transports)
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is part of the result")]
fn each_case_becomes_what_is_said_of_it_on_every_transport() {
    // Local, shared memory, TCP, mixed hosts, and enough simulated links to bring each case to 100
    // runs.
    let transports = transports(0..number_of(3, 96));
    println!("{}{}", judged(&transports), buffers::judged());
}
