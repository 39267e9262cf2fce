//! Snapshots of a program at its fences, and fields of blocks in files of NumPy.
//!
//! | file | idea |
//! |---|---|
//! | `cells` | where the cells of a block are in its local storage, and in a file of the whole array |
//! | `field`, `header` | the field of a block as one `.npy` file |

mod cells;
mod field;
mod header;

pub use field::Field;

/// The readers of bytes from files, for fuzzers.
#[cfg(any(test, fuzzing))]
pub mod fuzzing {
    pub use crate::header::fuzz as header;
}
