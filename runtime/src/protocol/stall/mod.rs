//! [`Stall`]: the report of a wait that lasts; and the end of one that can never end.
//!
//! Nothing here is touched before a wait has come to where it may sleep. Then a [`Watch`] looks at the clock each time
//! that the rank wakes, which is once a second at least; after the time that was set it reports which rank waits for
//! which, and again at intervals that double. Whether ranks wait for one another in a cycle is decided in [`Waits`],
//! with the argument.

#[cfg(test)]
mod cycles;
mod elsewhere;
mod watch;

pub(crate) use elsewhere::elsewhere;
#[cfg(test)]
pub(crate) use watch::LEAVING;
pub(crate) use watch::{Awaited, LockQueue, SPOKEN, Watch, censuses_differ};
