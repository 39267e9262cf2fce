//! Runs the cases and the generated programs of the other tests with ranks that are processes. By
//! default the test runs a sample of them, and all of them with `FENCEPOST_CASES=all`.
//!
//! The test starts this program once more. The new process becomes a job of four processes. Each of
//! them runs only this test.

use crate::ends::are_processes;
#[cfg(target_arch = "x86_64")]
use crate::loads;
use crate::{generated, orders, planted, stores, table};
use fencepost::TransportKind;
use fencepost_tests_support::cases::cases as number_of;
use std::process::Command;

/// The variable that names the transport in the processes that the test starts.
const AS: &str = "FENCEPOST_TEST_CHECK_AS";

#[test]
fn as_the_ranks_of_a_job() {
    let Ok(transport) = std::env::var(AS) else { return };
    let transport: TransportKind = transport.parse().expect("a transport");
    assert!(are_processes(&transport));
    // All worlds of a rank belong to one job.
    let all = [transport.clone()];
    table::judged(&all);
    stores::judged(&transport);
    orders::judged(&transport);
    #[cfg(target_arch = "x86_64")]
    loads::judged(&transport);
    for number in 0..number_of(20, 1000) {
        generated::one_planted(number, Some(4), &all);
        planted::one_planted(number, true, Some(4), &all);
        planted::one_planted(number, false, Some(4), &all);
    }
}

fn job(transport: &str) {
    let reports = std::env::temp_dir().join(format!("fencepost-check-{}-{transport}", std::process::id()));
    std::fs::create_dir_all(&reports).expect("a folder for reports");
    let program = std::env::current_exe().expect("this program");
    let ended = Command::new(program)
        .args(["--exact", "processes::as_the_ranks_of_a_job", "--nocapture"])
        .env(AS, transport)
        .env(generated::REPORTS, &reports)
        .output()
        .expect("it starts");
    let _ = std::fs::remove_dir_all(&reports);
    let [out, err] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ended.status.success(), "{}\n{out}\n{err}", ended.status);
    // Four processes write to the same output at once, so their lines may be torn.
    assert_eq!(out.matches("1 passed; 0 failed").count(), 4, "{out}\n{err}");
}

#[test]
fn conflicts_are_found_among_processes_that_share_memory() {
    job("shm");
}

#[test]
fn conflicts_are_found_among_processes_that_only_exchange_messages() {
    job("tcp");
}
