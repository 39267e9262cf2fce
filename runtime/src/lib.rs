//! The runtime of Fencepost: worlds, windows, epochs, transports, and the executor of verified schedules.

pub mod call;
pub mod element;

pub use call::{Collect, Get, Given, Place, Put, Section, Source, WindowKey, WindowSection};
pub use element::{Element, ValueAt, element_type};
