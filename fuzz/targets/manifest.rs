//! The manifests of snapshots.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_snapshots::fuzzing::manifest(data);
});
