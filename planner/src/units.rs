//! Units as types: a sum of two kinds does not compile.

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty) $suffix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(pub $inner);

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self { Self(self.0 + other.0) }
        }
        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) { self.0 += other.0; }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self { all.fold(Self::default(), |a, b| a + b) }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!("{} ", $suffix), self.0)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
    };
}

unit! {
    /// A number of bytes.
    #[derive(Eq, Ord, Hash)]
    Bytes(u64) "B"
}
unit! {
    /// Nanoseconds, as the machine model predicts them.
    Nanos(f64) "ns"
}

impl std::ops::Mul<f64> for Nanos {
    type Output = Self;
    fn mul(self, by: f64) -> Self {
        Self(self.0 * by)
    }
}

impl Nanos {
    /// Returns the longer of two times.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}
