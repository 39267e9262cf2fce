//! What a rank and its windows keep for posts and accesses: data, no protocol.

pub(crate) mod batch;
pub(crate) mod by_rank;
pub(crate) mod exchange;
pub(crate) mod lendings;
pub(crate) mod lines;
pub(crate) mod ports;
