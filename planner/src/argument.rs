//! [`Argument`]: an argument of a superstep. It can show that ranks differ only by their position.

/// An argument of a superstep.
///
/// Compiling ahead evaluates the pattern once for each class of arguments instead of once for each
/// rank. For a user's own type, `impl Argument for Mine {}` is enough. The pattern is then
/// evaluated for each rank separately, and ranks with equal patterns still share one program.
pub trait Argument {
    /// Returns the class of this argument. Ranks with equal classes make equal patterns, with
    /// targets relative to each rank. `None` promises nothing.
    fn class(&self) -> Option<Vec<u64>> {
        None
    }

    /// Returns the extents of the grid of ranks, row-major, slowest first. If they are given, the
    /// plan's map of classes is small.
    fn shape(&self) -> Option<Vec<u32>> {
        None
    }

    /// Returns whether, since the last call of `observed`, a method of this argument has returned a
    /// result that distinguishes ranks of one class.
    fn observed(&self) -> bool {
        false
    }
}

/// The maximum number of parts of a list for which a class is computed. For longer lists it is
/// cheaper to compare the patterns themselves.
const PARTS_MAX: usize = 64;

macro_rules! by_value {
    ($($type:ty: |$value:ident| $bits:expr;)*) => {$(
        /// The class is the value.
        impl Argument for $type {
            fn class(&self) -> Option<Vec<u64>> {
                let $value = *self;
                Some(vec![$bits])
            }
        }
    )*};
}

by_value! {
    u8: |v| v.into();
    u16: |v| v.into();
    u32: |v| v.into();
    u64: |v| v;
    usize: |v| v as u64;
    i8: |v| v as u64;
    i16: |v| v as u64;
    i32: |v| v as u64;
    i64: |v| v as u64;
    isize: |v| v as u64;
    bool: |v| v.into();
    char: |v| v.into();
    f32: |v| v.to_bits().into();
    f64: |v| v.to_bits();
}

/// All ranks are in one class.
impl Argument for () {
    fn class(&self) -> Option<Vec<u64>> {
        Some(Vec::new())
    }
}

/// The class consists of the bytes, if the string is short.
impl Argument for String {
    fn class(&self) -> Option<Vec<u64>> {
        (self.len() <= PARTS_MAX).then(|| self.bytes().map(u64::from).collect())
    }
}

/// The class consists of the variant and the class of the content.
impl<T: Argument> Argument for Option<T> {
    fn class(&self) -> Option<Vec<u64>> {
        let mut key = vec![u64::from(self.is_some())];
        if let Some(value) = self {
            key.append(&mut value.class()?);
        }
        Some(key)
    }
    fn shape(&self) -> Option<Vec<u32>> {
        self.as_ref()?.shape()
    }
    fn observed(&self) -> bool {
        self.as_ref().is_some_and(T::observed)
    }
}

/// The class consists of the classes of the parts, if there are few parts.
impl<T: Argument> Argument for [T] {
    fn class(&self) -> Option<Vec<u64>> {
        if self.len() > PARTS_MAX {
            return None;
        }
        let mut key = vec![self.len() as u64];
        for part in self {
            add(&mut key, part)?;
        }
        (key.len() <= 4 * PARTS_MAX).then_some(key)
    }
    fn shape(&self) -> Option<Vec<u32>> {
        self.iter().find_map(T::shape)
    }
    fn observed(&self) -> bool {
        // Calls `observed` of every part, since each call resets that part.
        self.iter().fold(false, |any, part| part.observed() | any)
    }
}

/// Same as a slice of its parts.
impl<T: Argument> Argument for Vec<T> {
    fn class(&self) -> Option<Vec<u64>> {
        self.as_slice().class()
    }
    fn shape(&self) -> Option<Vec<u32>> {
        self.as_slice().shape()
    }
    fn observed(&self) -> bool {
        self.as_slice().observed()
    }
}

/// Same as a slice of its parts.
impl<T: Argument, const N: usize> Argument for [T; N] {
    fn class(&self) -> Option<Vec<u64>> {
        self.as_slice().class()
    }
    fn shape(&self) -> Option<Vec<u32>> {
        self.as_slice().shape()
    }
    fn observed(&self) -> bool {
        self.as_slice().observed()
    }
}

/// Same as the borrowed value.
impl<T: Argument + ?Sized> Argument for &T {
    fn class(&self) -> Option<Vec<u64>> {
        (**self).class()
    }
    fn shape(&self) -> Option<Vec<u32>> {
        (**self).shape()
    }
    fn observed(&self) -> bool {
        (**self).observed()
    }
}

/// Appends the class of a part to `key`. The length comes first, so that different lists of parts
/// have different keys.
fn add(key: &mut Vec<u64>, part: &impl Argument) -> Option<()> {
    let mut class = part.class()?;
    key.push(class.len() as u64);
    key.append(&mut class);
    Some(())
}

macro_rules! tuples {
    ($($part:ident $index:tt),+) => {
        /// The class consists of the classes of all parts.
        impl<$($part: Argument),+> Argument for ($($part,)+) {
            fn class(&self) -> Option<Vec<u64>> {
                let mut key = Vec::new();
                $(add(&mut key, &self.$index)?;)+
                Some(key)
            }
            fn shape(&self) -> Option<Vec<u32>> {
                None$(.or_else(|| self.$index.shape()))+
            }
            fn observed(&self) -> bool {
                // Calls `observed` of every part, since each call resets that part.
                false $(| self.$index.observed())+
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, E 3);
tuples!(A 0, B 1, C 2, E 3, F 4);
tuples!(A 0, B 1, C 2, E 3, F 4, G 5);
tuples!(A 0, B 1, C 2, E 3, F 4, G 5, H 6);
tuples!(A 0, B 1, C 2, E 3, F 4, G 5, H 6, I 7);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_unequal_values_apart() {
        assert_ne!((1u32, 2u32).class(), (2u32, 1u32).class());
        assert_ne!(vec![vec![1u8], vec![2, 3]].class(), vec![vec![1u8, 2], vec![3]].class());
        assert_ne!((None::<u8>, Some(0u8)).class(), (Some(0u8), None::<u8>).class());
        assert_ne!(0.0f64.class(), (-0.0f64).class());
        assert_ne!(
            (String::from("ab"), String::from("c")).class(),
            (String::from("a"), String::from("bc")).class()
        );
        assert_eq!((1i8, 'x', true, ()).class(), (1i8, 'x', true, ()).class());
    }

    #[test]
    fn one_part_without_a_class_leaves_the_whole_without() {
        struct Mine;
        impl Argument for Mine {}
        assert_eq!((1u8, Mine).class(), None);
        assert_eq!(vec![0usize; PARTS_MAX + 1].class(), None);
        assert_eq!("x".repeat(PARTS_MAX + 1).class(), None);
    }
}
