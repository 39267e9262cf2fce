//! The data that a rank keeps to find conflicts, and the search in this data. All of it concerns
//! one rank, without any protocol.

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
