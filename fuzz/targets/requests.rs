//! Requests of other ranks to an attendant: operations under locks, and gets between a start and a
//! complete.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_runtime::fuzzing::requests(data);
});
