//! [`Stall`](crate::protocol::state::stalls::Stall): the report of a wait that lasts. This module
//! also ends the world of a wait that can never end.
//!
//! A wait does not use this module before its rank may sleep. From then on a [`Watch`] looks at the
//! clock each time that the rank wakes, which is at least once a second. After the time that was
//! set, the watch reports which rank waits for which, and repeats the report at intervals that
//! double. [`Waits`](fencepost_transport::deadlock::Waits) decides whether ranks wait for one
//! another in a cycle. Its documentation shows that the decision is correct.

#[cfg(test)]
mod cycles;
mod elsewhere;
mod watch;

pub(crate) use elsewhere::elsewhere;
#[cfg(test)]
pub(crate) use watch::LEAVING;
pub(crate) use watch::{Awaited, CENSUS, LockQueue, Watch, censuses_differ};
