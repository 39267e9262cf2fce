//! What a rank of TCP does with the items that another sends: notifications, frames, settles, releases, ends.
#![no_main]

use fencepost_transport::fuzz;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzz::frames(data);
});
