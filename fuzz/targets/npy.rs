//! Files with grids, as the examples read them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_examples_support::npy::fuzz(data);
});
