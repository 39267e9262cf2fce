//! Messages between a job's starter, its hosts and its ranks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_job::control::read_all(data);
});
