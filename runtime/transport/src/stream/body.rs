//! [`Body`]: what a frame carries, read to memory of its own or to where its receiver wants it.

use super::codec::STEP;
use std::fmt;

/// A payload, on a multiple of 16, or in the place that was offered for it.
#[derive(Default)]
pub(crate) struct Body {
    /// Room, all of it initialised.
    pub(super) units: Vec<u128>,
    pub(super) len: usize,
    /// It is read to there instead.
    pub(super) place: Option<Place>,
}

/// Memory that somebody offers for a payload.
pub(crate) struct Place {
    pub(super) to: *mut u8,
    pub(super) len: usize,
}

// SAFETY: who makes a place promises that nobody else touches that memory meanwhile, in whichever thread this is used.
unsafe impl Send for Place {}

impl Place {
    /// # Safety
    /// `to` is valid for reads and writes of `len` bytes, all of them initialised, and nobody else touches them, until
    /// the place, or the body that was read to it, is dropped, recycled, or moved out of it.
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
        self.place.as_ref().map_or(self.units.as_ptr().cast(), |place| place.to)
    }

    /// What a payload that did not travel would be.
    pub(crate) fn of(payload: &[u8], mut spare: Body) -> Self {
        spare.len = 0;
        spare.fill(&mut &*payload, payload.len());
        spare
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.place {
            // SAFETY: as `Place::new` says; no more has come than there is room for.
            Some(place) => unsafe { std::slice::from_raw_parts(place.to, self.len) },
            None => &bytemuck::cast_slice(&self.units)[..self.len],
        }
    }

    /// Move what has come out of the place that was offered for it.
    pub(crate) fn move_out(&mut self) {
        if self.place.is_some() {
            let mut own = Self { units: std::mem::take(&mut self.units), ..Self::default() };
            own.fill(&mut self.bytes(), self.len);
            *self = own;
        }
    }

    /// Room for the next bytes of a payload of `whole`.
    pub(super) fn room(&mut self, whole: usize) -> &mut [u8] {
        if let Some(place) = &mut self.place {
            // SAFETY: as `Place::new` says; its length is that of the whole, of which so much has come.
            return unsafe { std::slice::from_raw_parts_mut(place.to.add(self.len), place.len - self.len) };
        }
        let end = self.len + (whole - self.len).min(STEP);
        if self.units.len() * 16 < end {
            self.units.resize(end.div_ceil(16), 0);
        }
        let end = whole.min(self.units.len() * 16);
        &mut bytemuck::cast_slice_mut::<u128, u8>(&mut self.units)[self.len..end]
    }

    /// Take bytes from the front of `from` until there are `whole`.
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
