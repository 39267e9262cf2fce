//! [`Uniform`]: parameters that must be equal on all ranks. The superstep's word contains their
//! hash.

use std::hash::{Hash as _, Hasher as _};

/// The FNV-1a hasher. Its hashes are the same on every rank and in every run, which the standard
/// library's hashers do not promise.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// A hash of values that must be equal on all ranks.
#[derive(Default)]
pub struct UniformHash(Fnv);

impl UniformHash {
    /// Returns a hash of no values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    #[must_use]
    pub fn with<T: Uniform + ?Sized>(mut self, value: &T) -> Self {
        value.add_to(&mut self);
        self
    }

    /// Returns the hash of all values.
    pub fn word(self) -> u64 {
        self.0.finish()
    }
}

/// The types that a parameter marked `#[uniform]` can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be `#[uniform]`",
    label = "has no hash that all ranks could compare",
    note = "a uniform parameter is a number, `bool`, `char`, string, or an array, slice, `Vec`, `Option`, range or tuple of these; pass the part that decides about fences"
)]
pub trait Uniform {
    /// Adds the value to a hash.
    fn add_to(&self, hash: &mut UniformHash);
}

macro_rules! uniform {
    ($($ty:ty),*) => {$(
        impl Uniform for $ty {
            fn add_to(&self, hash: &mut UniformHash) {
                self.hash(&mut hash.0);
            }
        }
    )*};
}
uniform!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char, str, String, ());

impl Uniform for f32 {
    fn add_to(&self, hash: &mut UniformHash) {
        self.to_bits().add_to(hash);
    }
}
impl Uniform for f64 {
    fn add_to(&self, hash: &mut UniformHash) {
        self.to_bits().add_to(hash);
    }
}
impl<T: Uniform + ?Sized> Uniform for &T {
    fn add_to(&self, hash: &mut UniformHash) {
        (**self).add_to(hash);
    }
}
impl<T: Uniform> Uniform for [T] {
    fn add_to(&self, hash: &mut UniformHash) {
        self.len().add_to(hash);
        self.iter().for_each(|value| value.add_to(hash));
    }
}
impl<T: Uniform, const N: usize> Uniform for [T; N] {
    fn add_to(&self, hash: &mut UniformHash) {
        self.as_slice().add_to(hash);
    }
}
impl<T: Uniform> Uniform for Vec<T> {
    fn add_to(&self, hash: &mut UniformHash) {
        self.as_slice().add_to(hash);
    }
}
impl<T: Uniform> Uniform for Option<T> {
    fn add_to(&self, hash: &mut UniformHash) {
        self.is_some().add_to(hash);
        self.iter().for_each(|value| value.add_to(hash));
    }
}
impl<T: Uniform> Uniform for std::ops::Range<T> {
    fn add_to(&self, hash: &mut UniformHash) {
        self.start.add_to(hash);
        self.end.add_to(hash);
    }
}
impl<A: Uniform, B: Uniform> Uniform for (A, B) {
    fn add_to(&self, hash: &mut UniformHash) {
        self.0.add_to(hash);
        self.1.add_to(hash);
    }
}
impl<A: Uniform, B: Uniform, C: Uniform> Uniform for (A, B, C) {
    fn add_to(&self, hash: &mut UniformHash) {
        self.0.add_to(hash);
        self.1.add_to(hash);
        self.2.add_to(hash);
    }
}
