//! Operations of dynamic epochs, as they come from another rank.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_runtime::fuzzing::operations(data);
});
