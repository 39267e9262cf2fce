//! What a rank keeps of waits and of epochs, to report them: data, no protocol.

pub(crate) mod explained;
pub(crate) mod stalls;
pub(crate) mod traffic;
