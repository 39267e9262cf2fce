//! The table of all cases: the result of each case, the lines that the report names, and the mode
//! of the check.

use crate::{buffers, cases, races};
use fencepost::TransportKind;
use fencepost_tests_support::cases::cases as number_of;
use fencepost_tests_worlds::transports::transports;

/// Returns a row: the case, its result, and the mode of the check.
pub(crate) fn row(case: &str, becomes: &str, mode: &str) -> String {
    format!("{case:<66} {becomes:<60} {mode}\n")
}

/// Runs all cases of conflicts on these transports. Returns their table.
///
/// # Panics
/// Panics if the result of a case differs from its entry.
pub(crate) fn judged(transports: &[TransportKind]) -> String {
    races::judged(transports) + &cases::judged(transports)
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is part of the result")]
fn each_case_becomes_what_is_said_of_it_on_every_transport() {
    // The transports are local, shared memory, TCP, mixed hosts, and enough simulated links that
    // each case runs 100 times.
    let transports = transports(0..number_of(1, 96));
    println!("{}{}", judged(&transports), buffers::judged());
}
