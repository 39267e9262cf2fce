//! [`SimConfig`]: how unpleasant simulated links are.

#[cfg(feature = "testing")]
use crate::Header;
use crate::sim::fault::Fault;
#[cfg(feature = "testing")]
use crate::sync::Arc;

/// How unpleasant the links are.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// What all delays and pieces follow from.
    pub seed: u64,
    /// Looks at most that bytes which have come are not yet seen.
    pub max_delay: u32,
    /// Whether bytes come in pieces of any length, or all at once.
    pub short_reads: bool,
    /// Bytes at most under way between two ranks, at least 1.
    pub link_bytes: usize,
    /// A rank that is cut off.
    pub lose: Option<Lose>,
    /// What happens to one item on its way.
    pub fault: Option<Fault>,
    /// What tests change.
    #[cfg(feature = "testing")]
    pub altered: Altered,
    /// What happens to frames on their way.
    #[cfg(feature = "testing")]
    pub tamper: Option<Tamper>,
}

/// What is done with a frame from one rank to another, its header and its payload.
#[cfg(feature = "testing")]
pub type Deed = dyn Fn([usize; 2], &mut Header, &mut Vec<u8>) + Send + Sync;

/// Called for every frame with its sender and its receiver.
#[cfg(feature = "testing")]
#[derive(Clone)]
pub struct Tamper(pub Arc<Deed>);

#[cfg(feature = "testing")]
impl std::fmt::Debug for Tamper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tamper")
    }
}

/// What tests of the waits change of the links; elsewhere nothing is changed, and there is no way to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Altered {
    /// Memory is reached: payloads lie with their senders, and frames only lead to them.
    pub reach: bool,
    /// W4: letters are kept in one place instead of two in turn.
    pub one_letter: bool,
    /// W5: a rank may publish without having read what came of the exchange before.
    pub unread: bool,
}

impl SimConfig {
    /// Bytes at most under way between two ranks.
    pub(crate) fn room(&self) -> usize {
        self.link_bytes.max(1)
    }

    pub(crate) fn altered(&self) -> Altered {
        #[cfg(feature = "testing")]
        return self.altered;
        #[cfg(not(feature = "testing"))]
        Altered::default()
    }

    /// A frame as it goes on its way.
    #[cfg(feature = "testing")]
    pub(crate) fn tampered(&self, way: [usize; 2], mut header: Header, bytes: &[u8]) -> (Header, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        if let Some(Tamper(tamper)) = &self.tamper {
            tamper(way, &mut header, &mut bytes);
        }
        (header, bytes)
    }
}

/// Who is cut off, and when.
#[derive(Clone, Copy, Debug)]
pub struct Lose {
    /// Which rank.
    pub rank: usize,
    /// After how many frames posted, exchanges published and settled, counted together.
    pub after: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            max_delay: 8,
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
