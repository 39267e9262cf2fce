//! Operations that leave before their fence, to ranks whose memory is not reached.
//!
//! They come among the frames of other fences, windows and schedules, so whoever looks for a frame looks through
//! `WorldCore::poll`, which stages them by window. The frame that the sender posts at the fence says how many of them
//! belong to the epoch; those of epochs that it has given up are dropped.

use crate::fence::kind;
use crate::limits::earlier;
use crate::outbox::Outbox;
use crate::window::WindowCore;
use crate::wire;
use crate::world::WorldCore;
use fencepost_planner::Class;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_transport::{Cause, Endpoint, Frame, Header, Loss, Lost, Transport};
use std::collections::TryReserveError;

/// The low half of the word of what leaves early: no other frame says this by one bit that fell over, so none of those that a
/// rank waits for is staged instead.
const MARK: u32 = 0x0ea1_1e57;

/// The header of a frame that leaves before the next fence of `window`, from a rank that has been in `number` supersteps.
pub(crate) fn header(number: u32, window: u32) -> Header {
    Header { word: u64::from(number) << 32 | u64::from(MARK), kind: kind::EARLY, extra: window }
}

/// What came before its fence, by sender, in the order sent.
pub(crate) struct Staged {
    from: Vec<Vec<Early>>,
}

/// The frames that a rank sent early for one window between two of its supersteps. Each frame follows its length; they
/// share one allocation, since a rank may send a frame for every element that it puts.
struct Early {
    window: u32,
    /// Supersteps that the sender had been in when it sent them.
    number: u32,
    /// The epoch of the window at the sender, as the frames have it.
    generation: [u8; 4],
    frames: Vec<u8>,
}

/// The payloads of the frames in the bytes that [`Staged::take`] returns.
pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk()?;
        let (payload, rest) = rest.split_at_checked(usize::from_le_bytes(*len))?;
        bytes = rest;
        Some(payload)
    })
}

impl Early {
    /// Whether it was sent before the sender entered the fence of this word.
    fn before(&self, word: u64) -> bool {
        earlier(u64::from(self.number) << 32, word)
    }
}

impl Staged {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { from: (0..ranks).map(|_| Vec::new()).collect() }
    }

    /// What `from` sent early, in a frame of this header.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn keep(
        &mut self,
        from: usize,
        header: Header,
        payload: &[u8],
    ) -> Result<(), TryReserveError> {
        let (window, number) = (header.extra, (header.word >> 32) as u32);
        let generation = payload.get(16..20).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let all = &mut self.from[from];
        // Those of the sender's present superstep are the last ones.
        let present = all.iter().rev().take_while(|early| early.number == number);
        let at = match present
            .map(|early| (early.window, early.generation))
            .position(|other| other == (window, generation))
        {
            Some(behind) => all.len() - 1 - behind,
            None => {
                // The sender is in a later epoch of the window: what is here of an earlier one was given up, since the frame
                // of a fence that took it would have come first.
                all.retain(|early| early.window != window || early.generation == generation);
                all.push(Early { window, number, generation, frames: Vec::new() });
                all.len() - 1
            }
        };
        let frames = &mut all[at].frames;
        frames.try_reserve(size_of::<usize>() + payload.len())?;
        frames.extend_from_slice(&payload.len().to_le_bytes());
        frames.extend_from_slice(payload);
        Ok(())
    }

    /// What `from` sent for this window before the fence of this word, in the order sent; [`frames`] takes it apart.
    pub(crate) fn take(&mut self, from: usize, window: u32, word: u64) -> Vec<Vec<u8>> {
        let taken = self.from[from].extract_if(.., |early| early.window == window && early.before(word));
        taken.map(|early| early.frames).collect()
    }

    /// The window is gone.
    pub(crate) fn forget(&mut self, window: u32) {
        self.from.iter_mut().for_each(|all| all.retain(|early| early.window != window));
    }
}

impl WorldCore {
    /// The oldest frame from `from` that was not released and is due now, as [`Transport::poll`] has it: what left
    /// early is staged on the way, or dropped where its window is no more.
    ///
    /// # Errors
    /// As [`Transport::poll`].
    #[inline]
    pub(crate) fn poll(&self, endpoint: &mut Endpoint, from: usize) -> Result<Option<Frame>, Lost> {
        loop {
            match endpoint.poll(from)? {
                Some(frame) if frame.header.kind == kind::EARLY => self.stage(endpoint, from, frame)?,
                other => return Ok(other),
            }
        }
    }

    /// Stage what `from` has sent early so far, while this rank waits for something that comes after it: the transport
    /// would hold each of these frames by itself, however many there are.
    ///
    /// # Errors
    /// There is no memory for it.
    #[cold]
    pub(crate) fn stage_waiting(&self, endpoint: &mut Endpoint, from: usize) -> Result<(), Lost> {
        // An error of the transport is for the look that this rank waits with.
        while let Ok(Some(frame)) = endpoint.poll(from)
            && frame.header.kind == kind::EARLY
        {
            self.stage(endpoint, from, frame)?;
        }
        Ok(())
    }

    #[cold]
    fn stage(&self, endpoint: &mut Endpoint, from: usize, frame: Frame) -> Result<(), Lost> {
        if frame.header.word as u32 != MARK {
            endpoint.release(from);
            return Err(self.refuse(endpoint, from, "it sent a frame that is none of its kind"));
        }
        if self.has_window(frame.header.extra) {
            // SAFETY: a frame is readable until it is released, below.
            let payload = unsafe { std::slice::from_raw_parts(frame.payload, frame.len) };
            if self.staged.borrow_mut().keep(from, frame.header, payload).is_err() {
                let what = format!(
                    "there is no memory to keep {} bytes that rank {from} put before its fence",
                    frame.len
                );
                endpoint.release(from);
                self.board.end(Class::NoMem);
                endpoint.end(Cause { rank: self.rank, what: what.clone() });
                return Err(Lost { rank: self.rank, how: Loss::Ended(what) });
            }
        }
        endpoint.release(from);
        Ok(())
    }

    /// The fence of this word has failed: what `from` sent for this window before it is dropped.
    pub(crate) fn drop_early(&self, from: usize, window: &WindowCore, word: u64) {
        drop(self.staged.borrow_mut().take(from, window.key.window, word));
    }
}

impl WindowCore {
    /// Whether operations that ask for no mode of their own stay here until the fence.
    pub(crate) fn stays(&self) -> bool {
        match self.asked(Mode::Auto) {
            Mode::Aggressive | Mode::Pipelined => false,
            Mode::Auto => self.habit.borrow().chunk().is_none(),
            Mode::Aggregated | Mode::Direct => true,
        }
    }

    /// The mode that an operation which asks for `mode` is to have.
    pub(crate) fn asked(&self, mode: Mode) -> Mode {
        match mode {
            _ if !self.world.plans.get() => Mode::Aggressive,
            Mode::Auto => self.mode.get(),
            mode => mode,
        }
    }

    /// An operation was collected for `target`: let it leave with all before it, where its mode wants that and no
    /// section before it has still to be read.
    pub(crate) fn hurry(&self, target: usize, mode: Mode) {
        let world = &self.world;
        if !self.apart || target == world.rank {
            return;
        }
        let (mode, watched) = (self.asked(mode), self.habit.borrow().chunk());
        let leaves = match mode {
            Mode::Aggressive | Mode::Pipelined => true,
            Mode::Auto => watched.is_some(),
            Mode::Aggregated | Mode::Direct => false,
        };
        if !leaves {
            return;
        }
        let chunk = watched.filter(|_| mode == Mode::Auto);
        self.outbox(target, |outbox| self.hurry_all(target, mode, chunk, outbox));
    }

    fn hurry_all(&self, target: usize, mode: Mode, chunk: Option<u64>, outbox: &mut Outbox) {
        let world = &self.world;
        if outbox.is_empty() || outbox.sections > 0 || world.supersteps.comparing() {
            return;
        }
        if mode != Mode::Aggressive {
            let bytes = outbox.bytes();
            let all = self.wire.borrow().left[target].bytes + bytes;
            if bytes < chunk.unwrap_or_else(|| Machine::default().chunk(false, all)) {
                return;
            }
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        if !endpoint.reaches(target) && wire::send_early(world, endpoint, self, target, outbox).is_ok() {
            outbox.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_sender_gave_up_is_dropped_when_more_comes_for_the_same_window() {
        let mut staged = Staged::new(1);
        let payload = |generation: u32, fill: u8| {
            let mut payload = [fill; 24];
            payload[16..20].copy_from_slice(&generation.to_le_bytes());
            payload
        };
        for epoch in 0..100 {
            // Two windows; the epochs of the second go on.
            staged.keep(0, header(epoch, 7), &payload(epoch, 1)).expect("there is memory");
            staged.keep(0, header(epoch, 7), &payload(epoch, 2)).expect("there is memory");
            staged.keep(0, header(epoch, 8), &payload(0, 3)).expect("there is memory");
        }
        let word = 1000 << 32;
        let taken = staged.take(0, 7, word);
        let fills: Vec<u8> = taken.iter().flat_map(|bytes| frames(bytes).map(|frame| frame[0])).collect();
        assert_eq!(fills, [1, 2], "those of the last epoch alone");
        assert_eq!(staged.take(0, 8, word).iter().flat_map(|bytes| frames(bytes)).count(), 100);
    }
}
