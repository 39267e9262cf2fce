//! [`SimConfig`]: the delays and faults of simulated links.

use std::time::Duration;

use crate::sim::fault::Fault;
#[cfg(feature = "testing")]
use crate::sync::Arc;
#[cfg(feature = "testing")]
use crate::{Header, Notification};

/// The delays and faults of simulated links.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The seed of all delays and piece lengths.
    pub seed: u64,
    /// The largest number of polls after which bytes that have arrived become visible.
    pub max_delay: u32,
    /// The time for which bytes are in flight before they arrive.
    pub latency: Duration,
    /// Whether bytes arrive in pieces of random length. Otherwise they arrive all at once.
    pub short_reads: bool,
    /// The largest number of bytes in flight from one rank to another, at least 1.
    pub link_bytes: usize,
    /// The rank that is cut off, or `None`.
    #[doc(hidden)]
    pub lose: Option<Lose>,
    /// A fault of one item in flight.
    #[doc(hidden)]
    pub fault: Option<Fault>,
    /// Settings for tests.
    #[cfg(feature = "testing")]
    pub altered: Altered,
    /// The function with which a test changes frames and notifications in flight.
    #[cfg(feature = "testing")]
    pub tamper: Option<Tamper>,
}

/// An item in flight from one rank to another.
#[cfg(feature = "testing")]
#[derive(Debug)]
pub enum InFlight<'a> {
    /// A frame: its header and its payload.
    Frame(&'a mut Header, &'a mut Vec<u8>),
    /// A notification.
    Notification(&'a mut Notification),
}

/// A function that changes an item in flight.
#[cfg(feature = "testing")]
pub type TamperFn = dyn Fn([usize; 2], InFlight<'_>) + Send + Sync;

/// A function that is called with every frame and every notification, and with its sender and
/// receiver.
#[cfg(feature = "testing")]
#[derive(Clone)]
pub struct Tamper(pub Arc<TamperFn>);

#[cfg(feature = "testing")]
impl std::fmt::Debug for Tamper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tamper")
    }
}

/// Changes of the rules of the links. Only tests of the waits can make these changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Altered {
    /// Ranks read one another's memory. Payloads stay with their senders, and frames only refer to
    /// them.
    pub reach: bool,
    /// Without W4, notifications are kept in one set, instead of alternately in two.
    pub one_notification_set: bool,
    /// Without W5, a rank may publish before it has read the notifications of the previous
    /// exchange.
    pub unread: bool,
}

impl SimConfig {
    /// Returns the largest number of bytes in flight from one rank to another.
    pub(crate) fn room(&self) -> usize {
        self.link_bytes.max(1)
    }

    pub(crate) fn altered(&self) -> Altered {
        #[cfg(feature = "testing")]
        return self.altered;
        #[cfg(not(feature = "testing"))]
        Altered::default()
    }

    /// Applies the test's change to a frame on `way`, and returns the changed frame. Returns `None`
    /// if there is no change.
    #[cfg(feature = "testing")]
    pub(crate) fn tampered(
        &self,
        way: [usize; 2],
        mut header: Header,
        bytes: &[u8],
    ) -> Option<(Header, Vec<u8>)> {
        let Tamper(tamper) = self.tamper.as_ref()?;
        let mut bytes = bytes.to_vec();
        tamper(way, InFlight::Frame(&mut header, &mut bytes));
        Some((header, bytes))
    }

    /// Applies the test's change, if any, to a notification on `way`, and returns the notification.
    #[cfg(feature = "testing")]
    pub(crate) fn tampered_notification(
        &self,
        way: [usize; 2],
        mut notification: Notification,
    ) -> Notification {
        if let Some(Tamper(tamper)) = &self.tamper {
            tamper(way, InFlight::Notification(&mut notification));
        }
        notification
    }
}

/// Which rank is cut off, and when.
#[derive(Clone, Copy, Debug)]
pub struct Lose {
    /// The rank.
    pub rank: usize,
    /// The number of events after which the rank is cut off. An event is a frame that the rank
    /// posts, or an exchange that it publishes or settles.
    pub after: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            max_delay: 8,
            latency: Duration::ZERO,
            short_reads: true,
            link_bytes: 1 << 16,
            lose: None,
            fault: None,
            #[cfg(feature = "testing")]
            altered: Altered::default(),
            #[cfg(feature = "testing")]
            tamper: None,
        }
    }
}
