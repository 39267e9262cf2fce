//! Messages between the process that starts a job, the hosts of the job and its ranks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_job::control::read_all(data);
});
