//! Supersteps: how a rank enters one, how its pattern is recorded, compiled, prepared and executed.

pub(crate) mod claim;
pub(crate) mod compiled;
pub(crate) mod enter;
pub(crate) mod execute;
pub mod explained;
pub(crate) mod matched;
mod planning;
pub(crate) mod prepare;
pub(crate) mod prepared;
#[doc(hidden)]
pub mod recipe;
pub(crate) mod recorder;
pub(crate) mod running;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod uniform;
