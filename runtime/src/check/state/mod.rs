//! What a rank keeps to find conflicts, and how it finds them in that: of one rank, without any
//! protocol.

pub mod checks;
pub(crate) mod clock;
pub(crate) mod conflicts;
pub(crate) mod entering;
pub(crate) mod kinds;
pub(crate) mod learnt;
pub(crate) mod lists;
pub(crate) mod logs;
pub(crate) mod marks;
pub(crate) mod records;
pub(crate) mod sections;
pub(crate) mod touched;
