//! Operations of dynamic epochs, in the form in which another rank sends them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_runtime::fuzzing::operations(data);
});
