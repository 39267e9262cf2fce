//! The items that ranks send to one another as bytes, and their encoding.

use super::body::Body;
use crate::deadlock::cut;
use crate::{Header, Leave, Notification, Port};
use std::collections::VecDeque;
use std::fmt;

/// The head of an item, which comes before its body.
#[repr(C)]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct ItemHead {
    pub(super) tag: u32,
    pub(super) kind: u32,
    pub(super) extra: u32,
    pub(super) port: u32,
    pub(super) channel: u64,
    pub(super) word: u64,
    pub(super) more: u64,
    /// The length of the body.
    pub(super) len: u64,
}

/// The number of bytes before a body.
pub(crate) const HEAD: usize = size_of::<ItemHead>();

/// The body of a notification: the address, then the head and the value of each inline record.
pub(super) type Riding = [u64; 5];
pub(super) const NOTIFICATION: usize = size_of::<Riding>();

/// The longest payload that the decoder accepts.
pub(crate) const LONGEST: u64 = 1 << 40;

/// The longest text that the decoder accepts. The writer truncates longer texts.
pub(super) const TEXT: usize = 1 << 12;

/// The most bytes that are allocated for a payload before they arrive.
pub(super) const STEP: usize = 1 << 20;

/// The largest number of bodies that are kept for reuse.
pub(super) const SPARE: usize = 16;

/// The longest payload that counts as short. The memory of a long payload is not reused for a short
/// one.
pub(super) const SHORT: usize = 16 << 10;

/// The largest number of bytes that a connection keeps for bodies that it receives. The connection
/// keeps at most as many bytes for bodies that it sends. A rank that exchanges large messages needs
/// this memory again, and getting a fresh page takes longer than filling it.
pub(crate) const KEPT: usize = 32 << 20;

pub(super) const TAG_FRAME: u32 = 1;
pub(super) const TAG_NOTIFICATION: u32 = 2;
pub(super) const TAG_SETTLE: u32 = 3;
pub(super) const TAG_RELEASE: u32 = 4;
pub(super) const TAG_WANT: u32 = 5;
pub(super) const TAG_ANNOUNCE: u32 = 6;
pub(super) const TAG_LEFT: u32 = 7;
pub(super) const TAG_END: u32 = 8;
pub(super) const TAG_BEAT: u32 = 9;
pub(super) const TAG_GOODBYE: u32 = 10;
pub(super) const TAG_FAREWELL: u32 = 11;
pub(super) const TAG_ASK: u32 = 12;
pub(super) const TAG_WAITS: u32 = 13;
pub(super) const TAG_PROBE: u32 = 14;
pub(super) const TAG_AGREE: u32 = 15;
pub(super) const TAG_REST: u32 = 16;
pub(super) const TAG_NUDGE: u32 = 17;

/// The tags of items that belong to no world.
pub(super) const OF_NONE: std::ops::RangeInclusive<u32> = TAG_BEAT..=TAG_REST;

/// The longest list of waits that the decoder accepts, in bytes.
pub(crate) const PROBE: usize = 1 << 16;

/// The longest list of the ranks that a wait involves, in bytes.
pub(crate) const ABOUT: usize = 1 << 10;

/// A receiver that has closed a port reports this number of released frames. All frames then count
/// as released, including frames that have not arrived yet.
pub(crate) const CLOSED: u64 = u64::MAX;

/// An item. Its numbers of frames and bytes are counted for the ordered pair of ranks, from the
/// beginning of the world. If the item names a port, only frames of that port are counted.
#[derive(Debug, PartialEq)]
pub enum Item {
    Frame(Port, Header, Body),
    /// A notification, and the number of frames of [`Port::FENCE`] that were posted before it.
    Notification(Notification, u64),
    /// The exchange of this number is settled.
    Settle(u64),
    /// The receiver of the frames has released `frames` frames, or has [closed](CLOSED) the port.
    /// It allows `granted` bytes of frames to be sent.
    Release {
        port: Port,
        frames: u64,
        granted: u64,
    },
    /// The sender has frames to send, up to this number of bytes.
    Want {
        port: Port,
        bytes: u64,
    },
    /// The sender has entered the superstep of this word, after it had posted this number of frames
    /// on all ports.
    Announce {
        word: u64,
        frames: u64,
    },
    /// The sender has left, after it had posted this number of frames on all ports.
    Left {
        how: Leave,
        frames: u64,
    },
    /// The world has ended, and this rank is the cause.
    End {
        rank: u32,
        what: String,
    },
    /// A heartbeat.
    Beat,
    /// The sender has left all worlds, and sends nothing more except a farewell.
    Goodbye,
    /// All items before a goodbye have arrived.
    Farewell,
    /// Requests the wait in which the receiver is.
    Ask,
    /// The sender waits for rank `awaited` of the job. `number` is the number of its wait, or 0 if
    /// it does not wait.
    Waits {
        number: u64,
        awaited: u32,
        /// The encoded list of all ranks that the wait involves.
        about: Vec<u8>,
        text: String,
    },
    /// A list of waits. The rank of the last wait in the list has seen the receiver's wait with the
    /// number `seen`.
    Probe {
        seen: u64,
        list: Vec<u8>,
    },
    /// The sender knows that its wait with this number is in a cycle.
    Agree(u64),
    /// The sender sends nothing more on this connection.
    Rest,
    /// The receiver's attendant may continue with requests that it has kept.
    Nudge,
}

/// The reason why bytes are invalid: no correct rank sends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecodeError {
    Tag(u32),
    Reserved,
    Length(u64),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Tag(tag) => write!(f, "it sent an item of unknown kind {tag}"),
            DecodeError::Reserved => f.write_str("it sent an item with a field set that must be zero"),
            DecodeError::Length(len) => write!(f, "it sent an item with an invalid length of {len} bytes"),
        }
    }
}

/// A buffer that items are written to.
pub(crate) trait Out {
    fn put(&mut self, bytes: &[u8]);
}

impl Out for VecDeque<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }
}

impl Out for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A writer of items of one channel.
pub(crate) struct ItemWriter<'a, O>(pub(crate) &'a mut O, pub(crate) u64);

impl<O: Out> ItemWriter<'_, O> {
    /// Writes a frame.
    pub(crate) fn frame(&mut self, port: Port, header: Header, payload: &[u8]) {
        self.frame_head(port, header, payload.len());
        self.0.put(payload);
    }

    /// Writes all of a frame except its payload, which must follow.
    pub(crate) fn frame_head(&mut self, port: Port, header: Header, len: usize) {
        self.head_of(TAG_FRAME, port, header, 0, len);
    }

    /// Writes a notification that follows `frames` frames of [`Port::FENCE`].
    pub(crate) fn notification(&mut self, notification: &Notification, frames: u64) {
        let header = Header { word: notification.word, kind: notification.flags, extra: notification.count };
        self.head(TAG_NOTIFICATION, header, frames, NOTIFICATION);
        let [first, second] = notification.inline;
        let body: Riding = [notification.address as u64, first.head, first.value, second.head, second.value];
        self.0.put(bytemuck::bytes_of(&body));
    }

    /// Writes that an exchange is settled.
    pub(crate) fn settle(&mut self, exchange: u64) {
        self.bare(TAG_SETTLE, exchange, 0);
    }

    /// Writes how many frames have been released, and how many bytes may be sent.
    pub(crate) fn release(&mut self, port: Port, frames: u64, granted: u64) {
        self.head_of(TAG_RELEASE, port, Header { word: frames, ..Header::default() }, granted, 0);
    }

    /// Writes how many bytes this rank has to send.
    pub(crate) fn want(&mut self, port: Port, bytes: u64) {
        self.head_of(TAG_WANT, port, Header { word: bytes, ..Header::default() }, 0, 0);
    }

    /// Writes the superstep that this rank has entered, and the number of frames that it has posted
    /// to the receiver so far.
    pub(crate) fn announce(&mut self, word: u64, frames: u64) {
        self.bare(TAG_ANNOUNCE, word, frames);
    }

    /// Writes how this rank has left, and the number of frames that it has posted to the receiver.
    pub(crate) fn left(&mut self, how: &Leave, frames: u64) {
        let (kind, text) = match how {
            Leave::Finished => (0, ""),
            Leave::Failed(why) => (1, cut(why, TEXT)),
            Leave::Panicked(why) => (2, cut(why, TEXT)),
        };
        self.head(TAG_LEFT, Header { kind, ..Header::default() }, frames, text.len());
        self.0.put(text.as_bytes());
    }

    /// Writes that the world has ended, and why.
    pub(crate) fn end(&mut self, rank: u32, what: &str) {
        let what = cut(what, TEXT);
        self.head(TAG_END, Header { extra: rank, ..Header::default() }, 0, what.len());
        self.0.put(what.as_bytes());
    }

    /// Writes a heartbeat.
    pub(crate) fn beat(&mut self) {
        self.bare(TAG_BEAT, 0, 0);
    }

    /// Writes that nothing follows.
    pub(crate) fn goodbye(&mut self) {
        self.bare(TAG_GOODBYE, 0, 0);
    }

    /// Writes that all items before a goodbye have arrived.
    pub(crate) fn farewell(&mut self) {
        self.bare(TAG_FAREWELL, 0, 0);
    }

    /// Writes a request for the wait in which the receiver is.
    pub(crate) fn ask(&mut self) {
        self.bare(TAG_ASK, 0, 0);
    }

    /// Writes the number of this rank's wait, the rank of the job that it awaits, the encoded ranks
    /// that the wait involves, and a text.
    pub(crate) fn waits(&mut self, number: u64, awaited: u32, about: &[u8], text: &str) {
        let text = cut(text, TEXT);
        let (header, len) = (Header { word: number, extra: awaited, ..Header::default() }, about.len());
        self.head(TAG_WAITS, header, len as u64, len + text.len());
        self.0.put(about);
        self.0.put(text.as_bytes());
    }

    /// Writes a list of waits. `seen` is as for [`Item::Probe`].
    pub(crate) fn probe(&mut self, seen: u64, list: &[u8]) {
        self.head(TAG_PROBE, Header { word: seen, ..Header::default() }, 0, list.len());
        self.0.put(list);
    }

    /// Writes the number of this rank's wait that is known to be in a cycle.
    pub(crate) fn agree(&mut self, number: u64) {
        self.bare(TAG_AGREE, number, 0);
    }

    /// Writes that nothing follows on this connection.
    pub(crate) fn rest(&mut self) {
        self.bare(TAG_REST, 0, 0);
    }

    /// Writes that the receiver's attendant may continue.
    pub(crate) fn nudge(&mut self) {
        self.bare(TAG_NUDGE, 0, 0);
    }

    fn bare(&mut self, tag: u32, word: u64, more: u64) {
        self.head(tag, Header { word, ..Header::default() }, more, 0);
    }

    fn head(&mut self, tag: u32, header: Header, more: u64, len: usize) {
        self.head_of(tag, Port(0), header, more, len);
    }

    #[inline]
    fn head_of(&mut self, tag: u32, Port(port): Port, header: Header, more: u64, len: usize) {
        let (channel, len, Header { word, kind, extra }) = (self.1, len as u64, header);
        self.0.put(bytemuck::bytes_of(&ItemHead { tag, kind, extra, port, channel, word, more, len }));
    }
}
