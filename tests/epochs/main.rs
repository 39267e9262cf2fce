//! Epochs: what they leave, on every transport and in every mode, how they are explained, and what
//! decides how they travel.

mod census;
mod collectives;
mod differential;
mod exhaustive;
mod explain;
mod hosts;
mod long;
mod machine;
mod relaxed;
mod scoped;
mod transfer_modes;
