//! Shares of plans, in the form in which the rank that plans for all sends them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_planner::plan::fuzzing::share(data);
});
