//! Snapshots are taken, damaged, refused and restored, and so are fields in files.

mod damaged;
mod failing;
mod fields;
mod numpy;
mod refused;
mod restored;
mod stores;
