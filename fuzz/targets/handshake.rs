//! Both sides of a handshake, first with arbitrary bytes, and then with a valid handshake that
//! these bytes modify. Neither side may accept a modified handshake.
#![no_main]

use fencepost_transport::fuzz;
use libfuzzer_sys::fuzz_target;

/// The first byte of the nonce of the valid handshake.
const NONCE: u8 = 40;

fuzz_target!(|data: &[u8]| {
    fuzz::handshake(data);
    for mut words in fuzz::spoken(NONCE) {
        // The first byte of a valid handshake belongs to the nonce, and is not modified.
        words[1..].iter_mut().zip(data).for_each(|(word, byte)| *word ^= byte);
        let changed = data.iter().take(words.len() - 1).any(|&byte| byte != 0);
        assert_eq!(
            fuzz::handshake(&words),
            !changed,
            "a side without the secret was accepted, or one with the secret was refused"
        );
    }
});
