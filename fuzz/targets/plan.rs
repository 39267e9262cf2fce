//! Plan files, and the sections of plan files without the checksums and the digest that protect
//! them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_planner::plan::fuzzing::plan(data);
});
