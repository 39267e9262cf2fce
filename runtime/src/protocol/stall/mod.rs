//! [`Stall`]: what is said of a wait that lasts; and what is done about one that can never end.
//!
//! Nothing here is touched before a wait has come to where it may sleep. Then a [`Watch`] looks at the clock each time that
//! the rank wakes, which is once a second at least; after the time that was set it says who waits for whom, and again at
//! intervals that double. Whether ranks wait for one another in a ring is in [`Waits`], with the argument.

mod elsewhere;
#[cfg(test)]
mod rings;
mod watch;

pub(crate) use elsewhere::elsewhere;
pub(crate) use watch::{Awaited, Watch};
