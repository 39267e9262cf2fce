//! Both sides of a handshake, with arbitrary bytes, and with a true handshake that these bytes
//! change. Neither side may accept a changed handshake.
#![no_main]

use fencepost_transport::fuzz;
use libfuzzer_sys::fuzz_target;

/// The first byte of the nonce of the true handshake.
const NONCE: u8 = 40;

fuzz_target!(|data: &[u8]| {
    fuzz::handshake(data);
    for mut words in fuzz::spoken(NONCE) {
        // The first byte of a true handshake is the nonce, and stays.
        words[1..].iter_mut().zip(data).for_each(|(word, byte)| *word ^= byte);
        let changed = data.iter().take(words.len() - 1).any(|&byte| byte != 0);
        assert_eq!(
            fuzz::handshake(&words),
            !changed,
            "a side without the secret was accepted, or one with the secret was refused"
        );
    }
});
