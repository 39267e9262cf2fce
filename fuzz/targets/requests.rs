//! Requests of other ranks to an attendant: operations under locks, and the gets of accesses.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_runtime::fuzzing::requests(data);
});
