//! [`Messages`]: the messages that a rank has sent, received and kept in a world. This module
//! contains data and no protocol.
//!
//! Every message has a number: its index among the messages from its sender to its receiver. Both
//! ranks count these messages. Requests hold a [`Receive`] or a [`Sent`].

pub(crate) mod completion;
pub(crate) mod frames;
pub(crate) mod limits;
pub(crate) mod outbox;
pub(crate) mod posted;
pub(crate) mod receive;
pub(crate) mod sending;
pub(crate) mod status;

use crate::check::state::clock::OfJob;
use crate::collect::operation::Site;
use crate::kernel::waits::{Wait, without};
use crate::messages::state::frames::{Envelope, Near};
use crate::messages::state::limits::Limits;
use crate::messages::state::outbox::{Left, Outbox, chunk, chunks};
use crate::messages::state::posted::Posted;
use crate::messages::state::receive::Receive;
use crate::messages::state::sending::{Sending, Sent};
use fencepost_transport::{Bytes, Channels, Endpoint, Frame, Port, Topology, Until};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// The state that a rank of a world keeps for its messages.
#[derive(Default)]
pub(crate) struct MessagesState {
    /// The limits of messages that no receive has taken.
    pub(crate) limits: Cell<Limits>,
    /// The messages between this rank and others, from the first call on.
    pub(crate) all: OnceCell<Rc<RefCell<Messages>>>,
}

/// The messages of one rank in one world.
pub(crate) struct Messages {
    pub(crate) limits: Limits,
    /// The total cost of the messages that a rank may send to another rank before they are
    /// received.
    pub(crate) credit: usize,
    /// The state of the exchange with each rank, this one included.
    pub(crate) peers: Vec<Peer>,
    /// Messages that have arrived and that no receive has taken, in the order of their arrival.
    pub(crate) kept: VecDeque<Kept>,
    /// Receives that have taken nothing.
    pub(crate) posted: Posted,
    /// Receives whose elements are in transit, by sender and number of the message.
    pub(crate) landing: BTreeMap<(usize, u64), Rc<Receive>>,
    /// Sends whose receivers are to notify this rank when they have taken the message, by receiver
    /// and number of the message.
    pub(crate) sending: Sending,
    /// The elements of the sends in `sending`, if they were not sent with the message.
    pub(crate) outbox: Arc<Outbox>,
    /// The buffer of buffered sends.
    pub(crate) buffer: Option<Buffer>,
    /// Memory to reuse for later messages.
    pub(crate) spare: Vec<Bytes>,
    /// The rank that a receive from any rank checks first.
    pub(crate) next: usize,
    /// The number of polls of the port from other calls.
    pub(crate) looks: u32,
    /// The rank whose messages the waiting call takes without a posted receive.
    pub(crate) taking: Option<usize>,
    /// If conflicts are checked: the accesses that the sender of a message knew to be over, for
    /// each message that no receive has taken. The key is the sender and the number of the message.
    pub(crate) known: BTreeMap<(usize, u64), OfJob>,
}

/// The state of the exchange with one other rank.
#[derive(Default)]
pub(crate) struct Peer {
    /// The number of messages that were sent to the peer.
    pub(crate) sent: u64,
    /// The number of messages from the peer that have arrived.
    pub(crate) came: u64,
    /// The number of messages from the peer that are kept without their elements.
    pub(crate) apart: usize,
    /// The number of chunks of elements that this rank has requested from the peer and has not
    /// read.
    pub(crate) coming: u64,
    /// The cost of the messages to the peer for which the peer has not returned the credit.
    pub(crate) used: usize,
    /// The cost of the messages from the peer for which this rank has not returned the credit.
    pub(crate) unpaid: usize,
    /// The part of `unpaid` for messages that were taken.
    pub(crate) owed: usize,
    /// The number of frames that were posted to the peer on the port of messages.
    pub(crate) frames: u64,
    /// The messages that the peer may not have read, the oldest first.
    pub(crate) flying: VecDeque<Flying>,
}

/// A message that its receiver may not have read yet.
pub(crate) struct Flying {
    /// The number of the frame of the message.
    frame: u64,
    /// The payload of the frame, which the receiver reads in place.
    bytes: Bytes,
}

/// The buffer of buffered sends.
pub(crate) struct Buffer {
    /// The line that attached the buffer.
    pub(crate) site: Site,
    pub(crate) size: usize,
    /// The number of messages in the buffer. `used` is the number of their bytes.
    pub(crate) messages: usize,
    pub(crate) used: usize,
}

/// A message that has arrived and that no receive has taken.
pub(crate) struct Kept {
    pub(crate) from: usize,
    pub(crate) number: u64,
    pub(crate) envelope: Envelope,
    pub(crate) elements: Elements,
}

/// The elements of a message that has arrived.
pub(crate) enum Elements {
    /// The elements have arrived with the message.
    Here(Vec<u8>),
    /// The elements are in memory of the sender, and this rank reaches that memory.
    Near(Near),
    /// The sender has the elements, and this rank requests them. If the sender leaves, it sends all
    /// elements without a request. The bytes of this variant have arrived in that way.
    Far(Vec<u8>),
}

impl Messages {
    pub(crate) fn new(size: usize, limits: Limits) -> Self {
        Self {
            limits,
            credit: limits.unexpected / size,
            peers: (0..size).map(|_| Peer::default()).collect(),
            kept: VecDeque::new(),
            posted: Posted::default(),
            landing: BTreeMap::new(),
            sending: Sending::default(),
            outbox: Arc::default(),
            buffer: None,
            spare: Vec::new(),
            next: 0,
            looks: 0,
            taking: None,
            known: BTreeMap::new(),
        }
    }

    /// Counts a frame that was posted to `to`, and keeps its payload until it has been read.
    pub(crate) fn count_frame(&mut self, to: usize, bytes: Option<Bytes>) {
        let peer = &mut self.peers[to];
        if let Some(bytes) = bytes {
            peer.flying.push_back(Flying { frame: peer.frames, bytes });
        }
        peer.frames += 1;
    }

    /// Takes back the memory of messages that `to` has read.
    pub(crate) fn reclaim(&mut self, to: usize, endpoint: &mut Endpoint) {
        /// The maximum number of pieces of memory that are kept for later messages, and the maximum
        /// number of bytes of each piece.
        const SPARE: (usize, usize) = (16, 1 << 16);
        if self.peers[to].flying.is_empty() {
            return;
        }
        let released = endpoint.released(to, Port::MESSAGES);
        while let Some(flying) = self.peers[to].flying.front()
            && (flying.frame < released || without(Wait::Reuse))
        {
            let Some(Flying { bytes, .. }) = self.peers[to].flying.pop_front() else { return };
            if self.spare.len() < SPARE.0 && bytes.len() <= SPARE.1 {
                self.spare.push(bytes);
            }
        }
    }

    /// Frees the room of a message in the buffer of buffered sends.
    pub(crate) fn free(&mut self, buffered: Option<usize>) {
        if let (Some(bytes), Some(buffer)) = (buffered, &mut self.buffer) {
            buffer.used -= bytes;
            buffer.messages -= 1;
        }
    }

    /// Returns the index of the first kept message that a receive with this source and tag takes.
    #[inline]
    pub(crate) fn first(&self, source: Option<usize>, tag: Option<u32>) -> Option<usize> {
        let takes = |kept: &Kept| {
            source.is_none_or(|source| source == kept.from) && tag.is_none_or(|tag| tag == kept.envelope.tag)
        };
        self.kept.iter().position(takes)
    }

    /// Keeps a message that no receive has taken.
    pub(crate) fn keep(&mut self, message: Kept) {
        self.peers[message.from].apart += usize::from(message.envelope.is_apart);
        self.kept.push_back(message);
    }

    /// Removes the message at this place from those that are kept.
    pub(crate) fn take_kept(&mut self, at: usize) -> Option<Kept> {
        let message = self.kept.remove(at)?;
        self.peers[message.from].apart -= usize::from(message.envelope.is_apart);
        Some(message)
    }

    /// Forgets a receive of this rank that has ended without a message, or without all elements of
    /// the message that it took.
    pub(crate) fn forget(&mut self, receive: &Rc<Receive>, endpoint: &mut Endpoint) {
        self.posted.remove(receive);
        self.landing.retain(|(from, _), landing| {
            let is_other = !Rc::ptr_eq(landing, receive);
            if !is_other {
                [Port::ELEMENTS, Port::MESSAGES].iter().for_each(|port| endpoint.cancel(*from, *port));
            }
            is_other
        });
    }

    /// Takes the receives whose elements are in transit from rank `from`. Afterwards no elements
    /// land in them.
    pub(crate) fn take_landing(&mut self, from: usize, endpoint: &mut Endpoint) -> Vec<Rc<Receive>> {
        [Port::ELEMENTS, Port::MESSAGES].iter().for_each(|port| endpoint.cancel(from, *port));
        let numbers: Vec<(usize, u64)> =
            self.landing.range((from, 0)..=(from, u64::MAX)).map(|(number, _)| *number).collect();
        numbers.iter().filter_map(|number| self.landing.remove(number)).collect()
    }

    /// Takes the sends to rank `to`, except buffered sends.
    pub(crate) fn take_unbuffered(&mut self, to: usize) -> Vec<Rc<Sent>> {
        self.sending.take_unbuffered(to)
    }

    /// Returns the line of an incomplete request for which another rank waits, if there is such a
    /// request.
    pub(crate) fn open_request(&self) -> Option<Site> {
        let sent = self.sending.values().find(|sent| sent.buffered.is_none()).map(|sent| sent.site);
        let asked = || self.landing.values().find(|receive| !receive.lands_early());
        sent.or_else(|| asked().map(|receive| receive.site))
    }

    /// Passes on the messages of buffered sends, so that their receivers get them after this rank
    /// has left.
    pub(crate) fn leave(&mut self, endpoint: &mut Endpoint) {
        for (to, peer) in self.peers.iter_mut().enumerate() {
            let Some(last) = peer.flying.back() else { continue };
            let until = Until::Released { to, port: Port::MESSAGES, frame: last.frame };
            let bytes = peer.flying.drain(..).map(|flying| flying.bytes).collect();
            endpoint.keep(bytes, until);
        }
        for Left { to, number, bytes, len, asked } in self.outbox.take_owned() {
            if endpoint.reaches(to) {
                endpoint.keep(vec![bytes], Until::Done(Box::new(|| false)));
                continue;
            }
            // SAFETY: the bytes were written when they were sent.
            let all = unsafe { std::slice::from_raw_parts(bytes.base(), len) };
            // The attendant has sent the chunks that were requested.
            for at in asked..chunks(all.len()) {
                let part = &all[chunk(at, all.len())];
                let header = frames::left(number, at as u32);
                // SAFETY: the receiver does not reach this rank, so the bytes are copied.
                let posted = unsafe { endpoint.post(to, Port::ELEMENTS, Frame::of(header, part)) };
                if posted.is_err() {
                    break; // the receiver reads nothing more
                }
            }
        }
    }
}
