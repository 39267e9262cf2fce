//! [`Key`]: by which ranks compare what they are in without saying all of it.
//!
//! The word of an epoch or a prepared superstep stands for its call, its schedule and its windows. That two ranks have
//! the same windows is what makes it sound to touch another rank's memory, so a program must not be able to choose two
//! lists of windows with one word. The word is therefore a polynomial whose coefficients are what it stands for, modulo
//! the prime `2^61 - 1`, at a place that is drawn for each `run`, or follows from the job's secret: `1 k^n + c1 k^(n-1) +
//! .. + cn`. Two different lists of `n` coefficients have the same word at `n` places of all `2^61` at most.
//!
//! What a program can do: choose the coefficients, as many as it likes, and learn from the result of a call whether the
//! words of two ranks were equal. Each try that fails excludes `n` places at most, and is an error on all ranks; so after a
//! million tries with ten windows each the next one succeeds with a probability of about `2^-58`. What it cannot do:
//! read the key or a word, which are in no value that safe code gets; they travel over connections and lie in memory that
//! the ranks of a job share.
//!
//! What this does not cover: the values marked `#[uniform]` of one call are one coefficient, a hash without a key
//! ([`UniformHash`](crate::superstep::UniformHash)). A program that searches can find two values that pass for equal.
//! Then ranks do not notice that these values differ; they still have the same schedule and the same windows.

#[cfg(all(target_os = "linux", feature = "processes"))]
use crate::security::Secret;
use std::hash::{BuildHasher, RandomState};

/// A prime.
const P: u64 = (1 << 61) - 1;

/// The secret place at which words are taken.
#[derive(Clone, Copy)]
pub(crate) struct Key(u64);

/// As [`drawn`](Key::drawn).
impl Default for Key {
    fn default() -> Self {
        Self::drawn()
    }
}

impl Key {
    /// A new one: the standard library seeds its hashers from the system's source of randomness.
    pub(crate) fn drawn() -> Self {
        Self::of(RandomState::new().hash_one(P))
    }

    /// That of all ranks which hold this secret.
    #[cfg(all(target_os = "linux", feature = "processes"))]
    pub(crate) fn of_job(secret: &Secret) -> Self {
        let derived = blake3::derive_key("fencepost 1 words of epochs and windows", secret.as_bytes());
        Self::of(derived.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    fn of(bits: u64) -> Self {
        Self(1 + bits % (P - 1))
    }

    /// The word of one coefficient.
    #[inline]
    pub(crate) fn word(self, coefficient: u64) -> u64 {
        folded(self.0 + folded(coefficient))
    }

    /// The word of all that `word` stands for, and one more coefficient.
    #[inline]
    pub(crate) fn with(self, word: u64, coefficient: u64) -> u64 {
        let product = u128::from(word) * u128::from(self.0);
        // Both factors are below 2^61 + 8, so each half of the sum is below 2^62.
        folded((product as u64 & P) + (product >> 61) as u64 + folded(coefficient))
    }
}

/// The same modulo `P`, below 2^61 + 8.
#[inline]
fn folded(number: u64) -> u64 {
    (number & P) + (number >> 61)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(key: Key, coefficients: &[u64]) -> u64 {
        let (first, rest) = coefficients.split_first().expect("there is a call");
        rest.iter().fold(key.word(*first), |word, &coefficient| key.with(word, coefficient))
    }

    /// Modulo the prime, as the definition has it.
    fn defined(key: Key, coefficients: &[u64]) -> u64 {
        let (key, p) = (u128::from(key.0), u128::from(P));
        coefficients.iter().fold(1, |sum, &c| (sum * key + u128::from(c)) % p) as u64
    }

    #[test]
    fn a_word_is_the_polynomial_of_its_coefficients() {
        for key in [Key(1), Key(2), Key(P - 1), Key::of(u64::MAX), Key::drawn(), Key::drawn()] {
            for coefficients in
                [&[0][..], &[u64::MAX], &[0, 0], &[u64::MAX; 9], &[P, P - 1, 7], &[1, 2, 3, 4]]
            {
                assert_eq!(word(key, coefficients) % P, defined(key, coefficients), "{coefficients:?}");
            }
        }
    }

    #[test]
    fn lists_that_differ_in_length_order_or_a_value_have_other_words() {
        let lists: [&[u64]; 8] =
            [&[0], &[0, 0], &[0, 0, 0], &[5, 1, 2], &[5, 2, 1], &[5, 1], &[5, 2], &[5 ^ 1 << 40, 1]];
        for _ in 0..1000 {
            let key = Key::drawn();
            let words: std::collections::BTreeSet<u64> = lists.iter().map(|list| word(key, list)).collect();
            assert_eq!(words.len(), lists.len());
        }
    }

    /// For a fixed pair of lists the difference of the words takes all values: no choice of a pair is better than another.
    #[test]
    fn the_difference_of_two_words_depends_on_the_key() {
        const KEYS: u64 = 64_000;
        let mut buckets = [0u64; 64];
        for _ in 0..KEYS {
            let key = Key::drawn();
            let difference = word(key, &[7, 0]).wrapping_sub(word(key, &[9, 126_017]));
            buckets[(difference >> 54 & 63) as usize] += 1;
        }
        // Chi-squared of 63 degrees of freedom: beyond 150 once in 10^8.
        let expected = (KEYS / 64) as f64;
        let chi: f64 = buckets.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        assert!(chi < 150.0, "{chi}");
    }

    #[test]
    #[cfg(all(target_os = "linux", feature = "processes"))]
    fn ranks_of_one_job_have_one_key_and_those_of_others_have_others() {
        let key = |byte| Key::of_job(&Secret::from_bytes([byte; 32])).0;
        assert_eq!(key(1), key(1));
        assert_ne!(key(1), key(2));
        assert_ne!(Key::drawn().0, Key::drawn().0);
    }
}
