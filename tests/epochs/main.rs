//! Epochs: their results on every transport and in every mode, their explanations, and the
//! decisions about how operations travel.

mod census;
mod collectives;
mod differential;
mod exhaustive;
mod explain;
mod hosts;
mod long;
mod machine;
mod recorded;
mod relaxed;
mod scoped;
mod transfer_modes;
