//! [`Routed`]: every transfer with its route.

use crate::ir::pattern::Mode;
use crate::ir::stage::Stage;
use crate::ir::transfers::Transfer;

/// All transfers with their routes. In this stage, links that have different routes are different
/// links.
pub type Routed<'p> = Stage<'p, Route>;

/// The routes of the transfers of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Transfers that their origin copies from source to target, without a buffer.
    pub direct: Vec<Transfer>,
    /// Transfers that are packed, sent and unpacked. They are in the order of sending, none is
    /// empty, and answers come first.
    pub messages: Vec<Message>,
}

/// Some of the transfers of a link, which travel together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Aggressive, aggregated or pipelined.
    pub mode: Mode,
    /// The transfers that the message carries, in order; answers first.
    pub transfers: Vec<Transfer>,
}

impl Route {
    /// Returns the number of rounds that the link takes: one for each message, and one for all
    /// direct copies.
    pub fn rounds(&self) -> usize {
        self.messages.len() + usize::from(!self.direct.is_empty())
    }

    /// Returns all transfers and their modes, in the order of the rounds that they take.
    pub fn transfers(&self) -> impl Iterator<Item = (usize, Mode, &Transfer)> {
        let later = usize::from(!self.direct.is_empty());
        let direct = self.direct.iter().map(|transfer| (0, Mode::Direct, transfer));
        direct.chain(self.messages.iter().enumerate().flat_map(move |(index, message)| {
            message.transfers.iter().map(move |transfer| (index + later, message.mode, transfer))
        }))
    }

    /// Returns whether the sender copies into the receiver's windows.
    pub fn stores(&self) -> bool {
        self.direct.iter().any(|transfer| !transfer.is_answer())
    }

    /// Returns whether the receiver copies out of the sender's windows.
    pub fn loads(&self) -> bool {
        self.direct.iter().any(Transfer::is_answer)
    }
}
