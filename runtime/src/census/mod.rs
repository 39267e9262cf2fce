//! The census of an exchange.

pub(crate) mod state;
