//! Calls that wait, on an end of any transport.

#![allow(dead_code, reason = "each test program calls some of them")]

use fencepost_transport::{Channels, Frame, Liveness, Lost, Notification, Notify, Pause, Port};

pub fn wait<E: Liveness, T>(
    end: &mut E,
    mut look: impl FnMut(&mut E) -> Result<Option<T>, Lost>,
) -> Result<T, Lost> {
    let mut pause = Pause::new();
    loop {
        if let Some(found) = look(end)? {
            return Ok(found);
        }
        end.idle(&mut pause);
    }
}

pub fn read<E: Liveness + Notify>(end: &mut E, from: usize) -> Result<Notification, Lost> {
    wait(end, |end| Ok(end.read(from)?.copied()))
}

pub fn settled<E: Liveness + Notify>(end: &mut E, from: usize) -> Result<(), Lost> {
    wait(end, |end| Ok(end.settled(from)?.then_some(())))
}

pub fn poll_on<E: Liveness + Channels>(end: &mut E, from: usize, port: Port) -> Result<Frame, Lost> {
    wait(end, |end| end.poll(from, port))
}

pub fn poll<E: Liveness + Channels>(end: &mut E, from: usize) -> Result<Frame, Lost> {
    poll_on(end, from, Port::FENCE)
}

pub fn released<E: Liveness + Channels>(end: &mut E, to: usize, frames: u64) {
    wait(end, |end| Ok((end.released(to, Port::FENCE) >= frames).then_some(()))).unwrap();
}

/// Returns the payload of a frame that was not released.
pub fn bytes(frame: &Frame) -> &[u8] {
    // SAFETY: the frame was not released, and payloads in these tests live until their frames are
    // released.
    unsafe { frame.bytes() }
}
