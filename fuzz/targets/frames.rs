//! A stream of frames and notifications in pieces, in the form in which a transport reads it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fencepost_transport::decode(data);
});
