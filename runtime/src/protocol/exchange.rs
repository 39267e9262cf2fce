//! Waits for other ranks, and takes the frames that they sent.

use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Liveness, Lost, Pause, Port, Topology};

/// Waits until `look` finds something.
///
/// Ends the world if `look` can never find anything, or if a rank has failed. Even then, `look`
/// first finds everything that has already arrived.
#[inline]
pub(crate) fn wait<'w, R>(
    endpoint: &mut Endpoint,
    watch: impl FnOnce() -> Watch<'w>,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Lost> {
    match look(endpoint) {
        Ok(Some(found)) => return Ok(found),
        Ok(None) => {}
        Err(lost) => return Err(watch().world.end_for(endpoint, lost)),
    }
    let (mut pause, mut watch) = (Pause::new(), watch());
    loop {
        endpoint.idle(&mut pause);
        let lasts = pause.lasts();
        if lasts {
            watch.woke(endpoint);
            watch.find_left(endpoint);
        }
        if pause.is_due(lasts) {
            watch.world.notice(endpoint, watch.exchange());
        }
        watch.world.advance(endpoint);
        if let Some(found) = look(endpoint).map_err(|lost| watch.blame(endpoint, lost))? {
            return Ok(found);
        }
        if lasts {
            watch.missed(endpoint);
        }
    }
}

/// Waits, after the world has ended, until `peer` no longer touches this rank's windows.
pub(crate) fn untouched_by(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    call: &Call,
    peer: usize,
) {
    let mut pause = Pause::new();
    let mut watch = Watch::new(world, call, windows, peer, Awaited::Leaving);
    while endpoint.is_touching(peer) {
        endpoint.idle(&mut pause);
        if pause.lasts() {
            watch.woke(endpoint);
        }
    }
}

/// Waits for the next frame from `from`, which must be of this kind, and returns its payload.
pub(crate) fn take_bytes(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    kind: u32,
    call: &Call,
) -> Result<Vec<u8>, Lost> {
    let frame = wait(
        endpoint,
        || Watch::new(world, call, &[], from, Awaited::One("frames")).of_all(),
        |endpoint| world.poll(endpoint, from),
    )?;
    bytes_of(world, endpoint, from, frame, kind)
}

/// Returns the payload of this frame from `from`, which must be of this kind.
pub(crate) fn bytes_of(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    frame: Frame,
    kind: u32,
) -> Result<Vec<u8>, Lost> {
    // SAFETY: the payload is readable until it is released, below.
    let bytes = unsafe { frame.bytes() }.to_vec();
    let good = frame.header.kind == kind && world.is_of_this_exchange(&frame.header);
    endpoint.release(from, Port::FENCE);
    if good {
        Ok(bytes)
    } else {
        Err(world.refuse(endpoint, from, "it sent a frame of a kind that this call does not expect"))
    }
}

impl WorldCore {
    /// Returns the header of a frame of this kind that belongs to the last exchange.
    pub(crate) fn stamped(&self, kind: u32) -> Header {
        crate::protocol::frames::header(u64::from(self.calls.supersteps()) << 32, kind, 0)
    }

    /// Returns whether a frame with this header was sent for the last exchange.
    pub(crate) fn is_of_this_exchange(&self, header: &Header) -> bool {
        (header.word >> 32) as u32 == self.calls.supersteps()
    }

    /// Posts a payload, and keeps the payload until it was read.
    pub(crate) fn post_kept(
        &self,
        endpoint: &mut Endpoint,
        to: usize,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<(), Lost> {
        let mut kept = self.fence.kept.borrow_mut();
        if kept.len() > 64 {
            kept.retain(|(to, frame, _)| endpoint.released(*to, Port::FENCE) <= *frame);
        }
        // SAFETY: the bytes are not moved or freed until `to` has released them: `kept` or the
        // registry's keep-alive list has them.
        unsafe { endpoint.post(to, Port::FENCE, Frame::of(header, &payload)) }?;
        let number = self.fence.posted(to);
        if endpoint.shares(to) {
            kept.push((to, number, payload));
        }
        Ok(())
    }
}
