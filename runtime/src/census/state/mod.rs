//! What a rank keeps for the census of an exchange: data, no protocol.

pub(crate) mod aside;
pub(crate) mod counts;
pub(crate) mod items;
pub(crate) mod rides;
pub(crate) mod staged;
pub(crate) mod stands;
