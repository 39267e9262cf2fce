//! [`Staged`]: operations that came before their fence.

use crate::collect::description::FrameHead;
use crate::collect::limits::earlier;
use fencepost_transport::Header;
use fencepost_transport::bytes::{Reader, Writer};
use std::collections::TryReserveError;

/// The operations that came before their fence, by sender, in the order sent.
pub(crate) struct Staged {
    from: Vec<Vec<Early>>,
}

/// The frames that a rank sent early for one window between two of its supersteps. The length of
/// each frame precedes the frame. All frames share one allocation, since a rank may send a frame
/// for every element that it puts.
struct Early {
    window: u32,
    /// The number of supersteps that the sender had entered when it sent the frames.
    number: u32,
    /// The epoch of the window at the sender.
    generation: u32,
    frames: Vec<u8>,
}

/// Returns the payloads of the frames in the bytes that [`Staged::take`] returns.
pub(crate) fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut bytes = Reader(bytes);
    std::iter::from_fn(move || bytes.counted())
}

impl Early {
    /// Returns whether the sender sent the frames before it entered the fence whose notifications
    /// have this word.
    fn before(&self, word: u64) -> bool {
        earlier(u64::from(self.number) << 32, word)
    }
}

impl Staged {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { from: (0..ranks).map(|_| Vec::new()).collect() }
    }

    /// Keeps the operations that `from` sent early, in a frame with this header.
    ///
    /// # Errors
    /// There is no memory for the frame.
    pub(crate) fn keep(
        &mut self,
        from: usize,
        header: Header,
        payload: &[u8],
    ) -> Result<(), TryReserveError> {
        let (window, number) = (header.extra, (header.word >> 32) as u32);
        let generation = Reader(payload).take::<FrameHead>().map_or(0, |head| head.epoch);
        let all = &mut self.from[from];
        // The frames of the sender's present superstep are the last ones.
        let present = all.iter().rev().take_while(|early| early.number == number);
        let at = match present
            .map(|early| (early.window, early.generation))
            .position(|other| other == (window, generation))
        {
            Some(behind) => all.len() - 1 - behind,
            None => {
                // The sender is in another epoch of the window. If frames of an earlier epoch are
                // still here, the sender has discarded that epoch. If it had fenced the epoch, the
                // frame of the fence would have come first, and the fence would have taken the
                // earlier frames.
                all.retain(|early| early.window != window || early.generation == generation);
                all.push(Early { window, number, generation, frames: Vec::new() });
                all.len() - 1
            }
        };
        let frames = &mut all[at].frames;
        frames.try_reserve(size_of::<u64>() + payload.len())?;
        frames.put_counted(payload);
        Ok(())
    }

    /// Takes the frames that `from` sent for this window before `from` entered the fence whose
    /// notifications have this word, in the order sent. [`frames`] reads the result.
    pub(crate) fn take(&mut self, from: usize, window: u32, word: u64) -> Vec<Vec<u8>> {
        let taken = self.from[from].extract_if(.., |early| early.window == window && early.before(word));
        taken.map(|early| early.frames).collect()
    }

    /// Forgets the frames of a window that no longer exists.
    pub(crate) fn forget(&mut self, window: u32) {
        self.from.iter_mut().for_each(|all| all.retain(|early| early.window != window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::early::header;

    #[test]
    fn what_its_sender_gave_up_is_dropped_when_more_comes_for_the_same_window() {
        let mut staged = Staged::new(1);
        let payload = |epoch: u32, fill: u8| {
            let head = FrameHead { slot: fill, epoch, ..FrameHead::default() };
            bytemuck::bytes_of(&head).to_vec()
        };
        for epoch in 0..100 {
            // Window 7 is in a new epoch each time, and window 8 stays in one epoch.
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
