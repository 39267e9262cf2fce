//! [`Key`]: the secret with which ranks compare the calls that they are in. For each call, ranks
//! send one word instead of a description of the call.
//!
//! The word of an epoch or a prepared superstep represents its call, its schedule and its windows.
//! A rank may touch another rank's memory only because both have the same windows. So a program
//! must not be able to choose two lists of windows that have the same word. The word is therefore a
//! polynomial modulo the prime `2^61 - 1`, whose coefficients represent the call, the schedule and
//! the windows: `1 k^n + c1 k^(n-1) + .. + cn`. The polynomial is evaluated at a secret place `k`,
//! which is drawn for each `run`, or is derived from the job's secret and the rank's machine model.
//! The model is included because each rank plans the common work of all ranks by its own model. So
//! ranks with different models have different words. Two different lists of `n` coefficients have
//! the same word for at most `n` of all `2^61` values of `k`.
//!
//! A program can choose any number of coefficients. From the result of a call it can find out
//! whether the words of two ranks were equal. Each failed try excludes at most `n` values of `k`,
//! and is an error on all ranks. So after a million tries with ten windows each, the next try
//! succeeds with a probability of about `2^-58`. A program cannot read the key or a word, since no
//! value that safe code gets contains them. Keys and words travel over connections, and are in
//! memory that the ranks of a job share.
//!
//! The word does not cover everything: all values marked `#[uniform]` of one call are one
//! coefficient, a hash without a key ([`UniformHash`](crate::supersteps::uniform::UniformHash)). A
//! program that searches can find two values with the same hash. Ranks do not notice that these
//! values differ, but they still have the same schedule and the same windows.

#[cfg(not(loom))]
use fencepost_planner::machine::Machine;
#[cfg(not(loom))]
use fencepost_transport::auth::Secret;
use std::hash::{BuildHasher, RandomState};

/// A prime, the modulus of words.
const P: u64 = (1 << 61) - 1;

/// The maximum number of coefficients that are added at once.
const AT_ONCE: usize = 9;

/// The powers of the secret place at which the polynomials are evaluated, from the first power on.
#[derive(Clone, Copy)]
pub(crate) struct Key([u64; AT_ONCE]);

/// Draws a new key with [`drawn`](Key::drawn).
impl Default for Key {
    fn default() -> Self {
        Self::drawn()
    }
}

impl Key {
    /// Draws a new key: the standard library seeds its hashers from the system's source of
    /// randomness.
    pub(crate) fn drawn() -> Self {
        Self::of(RandomState::new().hash_one(P))
    }

    /// Returns the key of all ranks that hold this secret and plan for this machine.
    #[cfg(not(loom))]
    pub(crate) fn of_job(secret: &Secret, machine: &Machine) -> Self {
        let material = [secret.as_bytes(), machine.to_string().as_bytes()].concat();
        let derived = blake3::derive_key("fencepost 1 words of epochs and windows", &material);
        Self::of(derived.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    fn of(bits: u64) -> Self {
        Self::at(1 + bits % (P - 1))
    }

    fn at(place: u64) -> Self {
        let mut powers = [place; AT_ONCE];
        for i in 1..AT_ONCE {
            powers[i] = (u128::from(powers[i - 1]) * u128::from(place) % u128::from(P)) as u64;
        }
        Self(powers)
    }

    /// Returns the word of one coefficient.
    #[inline]
    pub(crate) fn word(self, coefficient: u64) -> u64 {
        folded(self.0[0] + folded(coefficient))
    }

    /// Returns the word of the coefficients `first`, `middle`, `last` and 0. Modulo `P`, the result
    /// is the same as if [`word`](Self::word) were called for the first coefficient and
    /// [`with`](Self::with) for each of the others. This function is faster, since up to eight
    /// products are added before they are folded once.
    #[inline(always)]
    pub(crate) fn word_of(self, first: u64, middle: impl ExactSizeIterator<Item = u32>, last: u64) -> u64 {
        let count = middle.len();
        if count + 3 > AT_ONCE {
            let first = self.word(first);
            let word = middle.fold(first, |word, coefficient| self.with(word, u64::from(coefficient)));
            return self.with(self.with(word, last), 0);
        }
        // 1 k^(count + 3) + first k^(count + 2) + .. + last k: two products below 2^122 + 2^65, the
        // others below 2^93.
        let power = |exponent: usize| u128::from(self.0[exponent - 1]);
        let first = u128::from(folded(first)) * power(count + 2);
        let begin = power(count + 3) + first + u128::from(folded(last)) * power(1);
        let sum = middle
            .enumerate()
            .fold(begin, |sum, (i, coefficient)| sum + u128::from(coefficient) * power(count + 1 - i));
        // Below 2^124, so the bits above 61 are below 2^63.
        folded((sum as u64 & P) + folded((sum >> 61) as u64))
    }

    /// Returns the word of the coefficients that `word` represents, followed by one more
    /// coefficient.
    #[inline]
    pub(crate) fn with(self, word: u64, coefficient: u64) -> u64 {
        let product = u128::from(word) * u128::from(self.0[0]);
        // Both factors are below 2^61 + 8, so each half of the sum is below 2^62.
        folded((product as u64 & P) + (product >> 61) as u64 + folded(coefficient))
    }
}

/// Returns a number below 2^61 + 8 that is equal to `number` modulo `P`.
#[inline]
fn folded(number: u64) -> u64 {
    (number & P) + (number >> 61)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::machine::Link;

    fn word(key: Key, coefficients: &[u64]) -> u64 {
        let (first, rest) = coefficients.split_first().expect("there is a call");
        rest.iter().fold(key.word(*first), |word, &coefficient| key.with(word, coefficient))
    }

    /// Returns the word modulo the prime, computed as in the definition.
    fn defined(key: Key, coefficients: &[u64]) -> u64 {
        let (key, p) = (u128::from(key.0[0]), u128::from(P));
        coefficients.iter().fold(1, |sum, &c| (sum * key + u128::from(c)) % p) as u64
    }

    #[test]
    fn a_word_is_the_polynomial_of_its_coefficients() {
        for key in [Key::at(1), Key::at(2), Key::at(P - 1), Key::of(u64::MAX), Key::drawn(), Key::drawn()] {
            for coefficients in
                [&[0][..], &[u64::MAX], &[0, 0], &[u64::MAX; 9], &[P, P - 1, 7], &[1, 2, 3, 4]]
            {
                assert_eq!(word(key, coefficients) % P, defined(key, coefficients), "{coefficients:?}");
            }
        }
    }

    #[test]
    fn coefficients_taken_at_once_have_the_word_of_one_after_the_other() {
        for key in [Key::at(1), Key::at(P - 1), Key::drawn(), Key::drawn()] {
            for count in 0..10 {
                for (first, middle, last) in
                    [(0, 0, 0), (u64::MAX, u32::MAX, u64::MAX), (P, 5, 1), (7, 1, 1 << 32)]
                {
                    let word = key.word_of(first, vec![middle; count].into_iter(), last);
                    assert!(word < (1 << 61) + 8);
                    let all = [&[first][..], &vec![u64::from(middle); count], &[last, 0]].concat();
                    assert_eq!(word % P, defined(key, &all), "{first} {middle} {last}, {count} times");
                }
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

    /// For a fixed pair of lists, the difference of the words takes all values. So a program gains
    /// nothing by choosing one pair rather than another.
    #[test]
    fn the_difference_of_two_words_depends_on_the_key() {
        const KEYS: u64 = 64_000;
        let mut buckets = [0u64; 64];
        for _ in 0..KEYS {
            let key = Key::drawn();
            let difference = word(key, &[7, 0]).wrapping_sub(word(key, &[9, 126_017]));
            buckets[(difference >> 54 & 63) as usize] += 1;
        }
        // Chi-squared with 63 degrees of freedom exceeds 150 once in 10^8 runs.
        let expected = (KEYS / 64) as f64;
        let chi: f64 = buckets.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        assert!(chi < 150.0, "{chi}");
    }

    #[test]
    fn ranks_of_one_job_and_machine_have_one_key_and_those_of_others_have_others() {
        let machine = Machine::default();
        let slower = Machine { network: Link { latency: 1e6, ..machine.network }, ..machine };
        let key = |byte, machine| Key::of_job(&Secret::from_bytes([byte; 32]), machine).0[0];
        assert_eq!(key(1, &machine), key(1, &machine));
        assert_ne!(key(1, &machine), key(2, &machine));
        assert_ne!(key(1, &machine), key(1, &slower));
        assert_ne!(Key::drawn().0[0], Key::drawn().0[0]);
    }
}
