//! Gets between ranks that only exchange messages: the target answers with elements of M.

use crate::collect::description::FAR;
use crate::fence::state::remembered::Described;
use crate::kernel;
use crate::protocol::exchange::wait;
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_transport::{Channels, Endpoint, Frame, Lost, Port, Topology};

/// Answers the gets of ranks that do not reach this rank's memory. The answers contain elements of
/// M.
pub(crate) fn answer(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    word: u64,
) -> Result<(), Lost> {
    for window in windows {
        let remembered = &mut *window.fence.remembered.borrow_mut();
        let size = window.element.size as usize;
        for to in 0..world.size {
            if endpoint.reaches(to) {
                continue; // that rank reads this memory directly
            }
            remembered.frame.clear();
            let mut asked = false;
            for arrived in &remembered.arrived[to] {
                let Described::Slot(slot) = arrived.described else { continue };
                let description = &remembered.got[to].slots[slot].1;
                let ones = description.gets.len() - description.far.len();
                let far = description.far.iter().map(Datatype::size).sum::<usize>();
                if remembered.frame.try_reserve((ones + far) * size).is_err() {
                    return Err(world.refuse(endpoint, to, "it asked for more than there is memory for"));
                }
                asked |= !description.gets.is_empty();
                let mut far = description.far.iter();
                for &get in &description.gets {
                    let at = remembered.frame.len();
                    if get != FAR {
                        // SAFETY: this is an element of this rank's window, checked when the get
                        // came. No operation writes to it yet.
                        let element = unsafe {
                            std::slice::from_raw_parts(window.region.base().add(get as usize * size), size)
                        };
                        remembered.frame.extend_from_slice(element);
                    } else if let Some(get) = far.next() {
                        remembered.frame.resize(at + get.size() * size, 0);
                        let to = remembered.frame[at..].as_mut_ptr();
                        // SAFETY: the get was checked against this rank's window when it came. This
                        // rank has not written to the window yet.
                        unsafe { kernel::pack(window.region.base(), get, size, to) };
                    }
                }
            }
            if asked {
                let head = header(word, kind::REPLY, window.key.window);
                // SAFETY: this rank and `to` do not share values, so the transport copies a payload
                // in heap memory.
                unsafe { endpoint.post(to, Port::FENCE, Frame::of(head, &remembered.frame)) }?;
                world.fence.posted(to);
                world.reports.count_sent(remembered.frame.len(), 0);
            }
        }
    }
    Ok(())
}

/// Stages the answers to this rank's gets.
pub(crate) fn take_answers(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    word: u64,
    call: &Call,
) -> Result<(), Lost> {
    for window in windows {
        let pending = &mut *window.filling.pending.borrow_mut();
        let size = window.element.size as usize;
        for from in (0..world.size).filter(|&from| from != world.rank) {
            if endpoint.reaches(from) || !pending.gets.iter().any(|get| get.target() == from) {
                continue;
            }
            let watch = || Watch::new(world, call, windows, from, Awaited::One("answers to gets")).of_all();
            let frame = wait(endpoint, watch, |endpoint| world.poll(endpoint, from))?;
            // SAFETY: the payload is readable until it is released, below.
            let mut payload = unsafe { frame.bytes() };
            let expected: usize = pending
                .gets
                .iter()
                .filter(|get| get.target() == from)
                .map(|get| pending.count(get) * size)
                .sum();
            let good =
                frame.header.kind == kind::REPLY && frame.header.word == word && payload.len() == expected;
            if good {
                let mut at = 0;
                for i in 0..pending.gets.len() {
                    let get = pending.gets[i];
                    let len = pending.count(&get) * size;
                    if get.target() == from {
                        pending.staged[at..at + len].copy_from_slice(&payload[..len]);
                        payload = &payload[len..];
                    }
                    at += len;
                }
            }
            endpoint.release(from, Port::FENCE);
            if !good {
                return Err(world.refuse(
                    endpoint,
                    from,
                    "it sent an answer that does not match the gets that it answers",
                ));
            }
        }
    }
    Ok(())
}
