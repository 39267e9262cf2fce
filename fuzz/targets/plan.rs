//! Plan files, and their sections behind the checksums and the digest.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_planner::plan::fuzzing::plan(data);
});
