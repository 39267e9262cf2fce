//! [`Body`]: the payload of a frame, in memory of its own or in a receive buffer that was
//! pre-posted for the frame.

use super::codec::STEP;
use std::fmt;

/// A payload. It is in memory of its own, which is aligned to 16 bytes, or in the receive buffer
/// that was pre-posted for it.
#[derive(Default)]
pub struct Body {
    /// The body's own memory, which is all initialised.
    pub(super) units: Vec<u128>,
    pub(super) len: usize,
    /// The receive buffer into which the payload is read instead, if there is one.
    pub(super) buffer: Option<ReceiveBuffer>,
}

/// Memory that a receiver pre-posts for a payload.
pub struct ReceiveBuffer {
    pub(super) to: *mut u8,
    pub(super) len: usize,
}

// SAFETY: the creator of a buffer promises that nobody else accesses its memory as long as the
// buffer is used, whichever thread uses it.
unsafe impl Send for ReceiveBuffer {}

impl ReceiveBuffer {
    /// Creates a buffer of these `len` bytes.
    ///
    /// # Safety
    /// `to` is valid for reads and writes of `len` bytes, all of them are initialised, and nobody
    /// else accesses them. This holds until the buffer is dropped, or until the body whose payload
    /// was read into it is dropped, recycled or moved out. For a buffer of a fence, this also holds
    /// as long as [`Channels::lent`](crate::Channels::lent) reports the buffer in use.
    pub(crate) unsafe fn new(to: *mut u8, len: usize) -> Self {
        Self { to, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.buffer.as_ref().map_or(self.units.as_ptr().cast(), |buffer| buffer.to)
    }

    /// Returns whether the payload is in memory of its own, and not in a receive buffer.
    pub(crate) fn is_own(&self) -> bool {
        self.buffer.is_none()
    }

    /// Returns the size of the body's own memory in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.units.capacity() * 16
    }

    /// Returns a body with a copy of `payload`, in the memory of `spare`.
    pub(crate) fn of(payload: &[u8], mut spare: Body) -> Self {
        spare.len = 0;
        spare.fill(&mut &*payload, payload.len());
        spare
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.buffer {
            // SAFETY: as `ReceiveBuffer::new` requires; no more bytes have arrived than the buffer
            // holds.
            Some(buffer) => unsafe { std::slice::from_raw_parts(buffer.to, self.len) },
            None => &bytemuck::cast_slice(&self.units)[..self.len],
        }
    }

    /// Moves the bytes that have arrived from the receive buffer to memory of the body's own.
    pub(crate) fn move_out(&mut self) {
        if self.buffer.is_some() {
            let mut own = Self { units: std::mem::take(&mut self.units), ..Self::default() };
            own.fill(&mut self.bytes(), self.len);
            *self = own;
        }
    }

    /// Returns memory for the next bytes of a payload of `whole` bytes.
    pub(super) fn room(&mut self, whole: usize) -> &mut [u8] {
        if let Some(buffer) = &mut self.buffer {
            // SAFETY: as `ReceiveBuffer::new` requires. The buffer's length is that of the whole
            // payload, and `self.len` bytes of it have arrived.
            return unsafe { std::slice::from_raw_parts_mut(buffer.to.add(self.len), buffer.len - self.len) };
        }
        let end = self.len + (whole - self.len).min(STEP);
        if self.units.len() * 16 < end {
            self.units.resize(end.div_ceil(16), 0);
        }
        let end = whole.min(self.units.len() * 16);
        &mut bytemuck::cast_slice_mut::<u128, u8>(&mut self.units)[self.len..end]
    }

    /// Returns memory for a payload of `len` bytes that arrives as a whole. This is the receive
    /// buffer if it has that length, and otherwise the body's own memory. If that memory has to
    /// grow, it grows to at least `least` bytes.
    pub(crate) fn whole_room(&mut self, len: usize, least: usize) -> &mut [u8] {
        self.buffer.take_if(|buffer| buffer.len != len);
        if let Some(buffer) = &mut self.buffer {
            self.len = len;
            // SAFETY: as `ReceiveBuffer::new` requires.
            return unsafe { std::slice::from_raw_parts_mut(buffer.to, len) };
        }
        if self.units.len() * 16 < len {
            self.units.resize(len.max(least).div_ceil(16), 0);
        }
        self.len = len;
        &mut bytemuck::cast_slice_mut::<u128, u8>(&mut self.units)[..len]
    }

    /// Moves bytes from the front of `from` to the payload, until it has `whole` bytes or `from` is
    /// empty.
    pub(super) fn fill(&mut self, from: &mut &[u8], whole: usize) {
        while self.len < whole && !from.is_empty() {
            let room = self.room(whole);
            let n = from.len().min(room.len());
            room[..n].copy_from_slice(&from[..n]);
            self.len += n;
            *from = &from[n..];
        }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}
