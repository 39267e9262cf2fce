//! The frames of messages.

use crate::kernel::element::{code_of, kind_of_code};
use fencepost_planner::element::{ElementKind, ElementType};
use fencepost_transport::Header;
use std::sync::atomic::AtomicU64;

/// The kinds of these frames.
pub(crate) mod kind {
    /// A message: its envelope, and either its elements or their address.
    pub(crate) const MESSAGE: u32 = 22;
    /// A message was taken.
    pub(crate) const TAKEN: u32 = 23;
    /// The receiver of this frame may again send messages of this cost.
    pub(crate) const GRANT: u32 = 24;
    /// To an attendant: a request for elements of a message that was taken.
    pub(crate) const PULL: u32 = 25;
    /// Requested elements of a message.
    pub(crate) const ELEMENTS: u32 = 26;
    /// Elements of a message that a sender sends without a request when it leaves.
    pub(crate) const LEFT: u32 = 27;
    /// The accesses that the sender of the next message knows to be over. Sent before each message
    /// if conflicts are checked.
    pub(crate) const CLOCK: u32 = 28;
}

/// The facts about a message that its frame contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    pub(crate) tag: u32,
    pub(crate) element: ElementType,
    /// The number of bytes of the elements.
    pub(crate) bytes: usize,
    /// Whether the sender believes that a receive waits for the message.
    pub(crate) is_ready: bool,
    /// Whether the sender is to be notified when the message was taken.
    pub(crate) is_answered: bool,
    /// Whether the message comes without its elements.
    pub(crate) is_apart: bool,
}

/// Elements in memory of the sender. The receiver reaches this memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Near {
    pub(crate) first: *const u8,
    /// The number of bytes that the sender has copied so far. Null if all elements were there from
    /// the beginning.
    pub(crate) copied: *const AtomicU64,
}

impl Near {
    pub(crate) const NONE: Self = Self::all(std::ptr::null());

    /// Returns elements that are all there from the beginning.
    pub(crate) const fn all(first: *const u8) -> Self {
        Self { first, copied: std::ptr::null() }
    }
}

const READY: u64 = 1;
const ANSWERED: u64 = 2;
const APART: u64 = 4;

impl Envelope {
    /// Returns the number of elements of the message.
    pub(crate) fn len(&self) -> usize {
        self.bytes / self.element.size as usize
    }

    /// Returns the header of the frame of the message.
    pub(crate) fn header(&self) -> Header {
        let flags = [(self.is_ready, READY), (self.is_answered, ANSWERED), (self.is_apart, APART)];
        let flags: u64 = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
        let code = code_of(self.element.kind);
        let word = u64::from(self.element.size) | u64::from(code) << 32 | flags << 40;
        Header { word, kind: kind::MESSAGE, extra: self.tag }
    }

    /// Returns whether this is the header of a message that carries its elements, has elements of
    /// this type, and needs no answer.
    #[inline]
    pub(crate) fn is_plain(header: &Header, element: ElementType) -> bool {
        let (tag, bytes, is_ready, is_answered, is_apart) = (0, 0, false, false, false);
        let plain = Self { tag, element, bytes, is_ready, is_answered, is_apart }.header();
        header.kind == plain.kind && header.word & !(READY << 40) == plain.word
    }

    /// Returns the payload of the frame of a message that comes without its elements. The payload
    /// contains the number of bytes of the elements, and the address where the receiver reaches the
    /// elements.
    pub(crate) fn place(&self, near: Near) -> [u8; 24] {
        let Near { first, copied } = near;
        bytemuck::cast([self.bytes, first.expose_provenance(), copied.expose_provenance()].map(|n| n as u64))
    }

    /// Reads the envelope of a message from the header of its frame, which carries `bytes` bytes of
    /// elements. Returns `None` if the elements are not in the frame, or if no correct rank sends
    /// this header.
    pub(crate) fn of_head(header: &Header, bytes: usize) -> Option<Self> {
        Self::read(header, bytes).filter(|envelope| !envelope.is_apart && envelope.is_good())
    }

    /// Reads the envelope of a frame, and the address of elements that are not in the frame.
    /// Returns `None` for a frame that no correct rank sends.
    pub(crate) fn of(header: &Header, payload: &[u8]) -> Option<(Self, Near)> {
        let mut envelope = Self::read(header, payload.len())?;
        let mut near = Near::NONE;
        if envelope.is_apart {
            let [bytes, first, copied]: [u64; 3] = bytemuck::try_pod_read_unaligned(payload).ok()?;
            envelope.bytes = usize::try_from(bytes).ok()?;
            near.first = std::ptr::with_exposed_provenance(usize::try_from(first).ok()?);
            near.copied = std::ptr::with_exposed_provenance(usize::try_from(copied).ok()?);
        }
        envelope.is_good().then_some((envelope, near))
    }

    fn read(header: &Header, bytes: usize) -> Option<Self> {
        let (size, flags) = (header.word as u32, header.word >> 40);
        let kind = kind_of_code((header.word >> 32) as u8)?;
        let is = |flag| flags & flag != 0;
        let envelope = Self {
            tag: header.extra,
            element: ElementType { size, kind },
            bytes,
            is_ready: is(READY),
            is_answered: is(ANSWERED),
            is_apart: is(APART),
        };
        (flags < 8).then_some(envelope)
    }

    /// Returns whether a correct rank sends such a message.
    fn is_good(&self) -> bool {
        let ElementType { size, kind } = self.element;
        let fits = match kind {
            ElementKind::Opaque => size > 0,
            ElementKind::Scalar(scalar) => size == scalar.size(),
            ElementKind::ValueAt(value, index) => size == value.size() + index.size(),
        };
        fits && (self.is_answered || !self.is_apart)
            && self.bytes <= isize::MAX as usize
            && self.bytes.is_multiple_of(size as usize)
    }
}

/// Returns the header of a frame that reports that message `number` was taken.
pub(crate) fn taken(number: u64) -> Header {
    Header { word: number, kind: kind::TAKEN, extra: 0 }
}

/// Returns the header of the frame that lets its receiver send messages of this cost again.
pub(crate) fn grant(cost: usize) -> Header {
    Header { word: cost as u64, kind: kind::GRANT, extra: 0 }
}

/// Returns the header of the frame with the accesses that the sender of the next message knows to
/// be over.
pub(crate) fn clock() -> Header {
    Header { word: 0, kind: kind::CLOCK, extra: 0 }
}

/// Returns the header of a request for a chunk of the elements of a message.
pub(crate) fn pull(number: u64, chunk: u32) -> Header {
    Header { word: number, kind: kind::PULL, extra: chunk }
}

/// Returns the header of a chunk of the elements of a message.
pub(crate) fn elements(number: u64, chunk: u32) -> Header {
    Header { word: number, kind: kind::ELEMENTS, extra: chunk }
}

/// Returns the header of a chunk of elements that is sent without a request, because the sender of
/// the message leaves.
pub(crate) fn left(number: u64, chunk: u32) -> Header {
    Header { word: number, kind: kind::LEFT, extra: chunk }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::element::Scalar;

    #[test]
    fn every_envelope_is_read_as_it_was_written_and_altered_ones_are_refused() {
        let scalars = Scalar::ALL;
        let pairs =
            scalars.iter().flat_map(|&v| scalars.map(|i| (ElementKind::ValueAt(v, i), v.size() + i.size())));
        let kinds = scalars.iter().map(|&scalar| (ElementKind::Scalar(scalar), scalar.size()));
        for (kind, size) in kinds.chain(pairs).chain([(ElementKind::Opaque, 24)]) {
            for flags in 0..8 {
                let is = |bit: u32| flags & bit != 0;
                let envelope = Envelope {
                    tag: u32::MAX,
                    element: ElementType { size, kind },
                    bytes: 3 * size as usize,
                    is_ready: is(1),
                    is_answered: is(2),
                    is_apart: is(4),
                };
                let header = envelope.header();
                let here = vec![0; envelope.bytes];
                let at = std::ptr::without_provenance::<u8>;
                let near = Near { first: at(1 << 20), copied: at(1 << 21).cast() };
                let apart = envelope.place(near);
                let payload = if envelope.is_apart { &apart[..] } else { &here[..] };
                let read = Envelope::of(&header, payload);
                if envelope.is_apart && !envelope.is_answered {
                    assert_eq!(read, None);
                    continue;
                }
                let near = if envelope.is_apart { near } else { Near::NONE };
                assert_eq!(read, Some((envelope, near)));
                if size > 1 || envelope.is_apart {
                    assert_eq!(Envelope::of(&header, &payload[1..]), None, "a byte is missing");
                }
                for wrong in [header.word | 1 << 43, header.word | 127 << 32, header.word & !0xffff_ffff] {
                    assert_eq!(Envelope::of(&Header { word: wrong, ..header }, payload), None);
                }
            }
        }
    }
}
