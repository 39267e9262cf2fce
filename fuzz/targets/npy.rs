//! The headers of NumPy's files, from which fields and snapshots are read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_snapshots::fuzzing::header(data);
});
