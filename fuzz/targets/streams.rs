//! A rank over TCP accepts any items that another rank may send: notifications, frames, settles,
//! releases, ends.
#![no_main]

use fencepost_transport::fuzz;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzz::frames(data);
});
