//! What a rank and its windows keep for fences: data, no protocol.

pub(crate) mod history;
pub(crate) mod remembered;
