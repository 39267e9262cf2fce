//! Frames of operations for fuzzers.

use crate::collect::operands::Exposed;
use crate::fence::remote::arrive::{take, take_early};
use crate::fence::remote::{answer, apply};
use crate::fence::state::remembered::Described;
use crate::fence::state::remembered::Remembered;
use crate::protocol::early;
use crate::protocol::exchange::wait;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use fencepost_transport::{Channels, Port};

/// Forgets all descriptions so far, as if no frame had ever come.
pub(crate) fn forget_all(window: &WindowCore) {
    *window.fence.remembered.borrow_mut() = Remembered::new(window.world.size);
    window.world.drop_early(0, window, u64::MAX);
}

/// Takes in a frame as if it came from rank 0: a frame that was sent early, or one that ends an
/// epoch. In the latter case applies the epoch to `memory`, which has the size of this window's
/// part. Returns how many bytes are kept, if the frame is valid.
pub(crate) fn trial(window: &WindowCore, early: bool, frame: &[u8], memory: &mut [u8]) -> Option<usize> {
    let (world, word) = (&window.world, 9 << 32);
    if early {
        let header = early::header(0, window.key.window);
        return world.fence.staged.borrow_mut().keep(0, header, frame).is_ok().then_some(0);
    }
    let taken = take(window, &[window], 0, frame).and_then(|()| take_early(world, window, 0, word, frame));
    if taken.is_some() {
        let endpoint = &mut world.endpoint.borrow_mut();
        let asked = window.fence.remembered.borrow().arrived[0].iter().any(|arrived| {
            let Described::Slot(slot) = arrived.described else { return false };
            !window.fence.remembered.borrow().got[0].slots[slot].1.gets.is_empty()
        });
        answer(world, endpoint, &[window], word).ok()?;
        if asked {
            // The gets seem to come from this rank itself: read the answer and drop it.
            let call = Call::fence(std::panic::Location::caller());
            let watch = || Watch::new(world, &call, &[], 0, Awaited::One("answers")).of_all();
            wait(endpoint, watch, |endpoint| world.poll(endpoint, 0)).ok()?;
            endpoint.release(0, Port::FENCE);
        }
        let in_place = |_| window.region.base().cast_const();
        apply(window, 0, memory.as_mut_ptr(), window.peers[0].len, Exposed::InPlace(&in_place));
    }
    let remembered = &mut *window.fence.remembered.borrow_mut();
    remembered.arrived[0].clear();
    remembered.awaited.clear();
    let kept = remembered.frame.capacity() + remembered.spare.iter().map(Vec::capacity).sum::<usize>();
    remembered.frame = Vec::new();
    taken.map(|()| kept)
}
