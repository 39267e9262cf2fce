//! Snapshots of a program at its fences, and arrays of blocks in NumPy's files.
//!
//! | file | idea |
//! |---|---|
//! | `snapshots` | when a snapshot is taken, and the agreements of ranks |
//! | `agreement` | how ranks agree on errors |
//! | `items` | the list of a program's state |
//! | `pace` | how many offers an interval between snapshots has |
//! | `signals` | the signals that ask a program to end |
//! | `writer` | the thread that writes for a rank |
//! | `record`, `manifest` | the reports of ranks, and the contents of a snapshot |
//! | `folder` | the folder of snapshots, and its lock |
//! | `stores` | which ranks see the same folder, and which ranks store copies |
//! | `restore` | the latest snapshot that is intact |
//! | `compare` | whether files have the bytes that were written |
//! | `holders` | restores from files that other ranks see |
//! | `stored` | the contents of a folder, for the command |
//! | `field`, `header` | the field of a block as one `.npy` file |
//! | `cells` | where the cells of a block are, in local storage and in a file |

mod agreement;
mod cells;
mod compare;
mod field;
mod folder;
mod header;
mod holders;
mod items;
mod manifest;
mod pace;
mod record;
mod restore;
mod signals;
mod snapshots;
pub mod stored;
mod stores;
mod writer;

pub use field::Field;
#[doc(hidden)]
pub use items::Elements;
pub use items::Items;
#[doc(hidden)]
pub use manifest::Manifest;
#[doc(hidden)]
pub use pace::Every;
pub use snapshots::Snapshots;

/// The readers of bytes from files, for fuzzers.
#[cfg(any(test, fuzzing))]
pub mod fuzzing {
    pub use crate::header::fuzz as header;
    pub use crate::manifest::fuzz_manifest as manifest;
}
