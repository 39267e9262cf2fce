//! The stages of a schedule in the making, one type a file. See [`crate`] for the order.

pub mod class_map;
pub mod pattern;
pub mod schedule;
