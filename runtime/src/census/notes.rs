//! Notes of a reduced census. A note contains the items that a rank has for one other rank, and is
//! sent directly.
//!
//! Bytes that a rank has for all others go with the counts instead
//! ([`counts`](crate::census::state::counts)). A rank posts its notes before its first message of
//! the census. Each note is posted after the frames of operations for the same rank. When the
//! census is complete and all agree, a rank knows how many notes it lacks and looks for them in the
//! frames of all ranks. The rank knows which rank sends the last note, and that nothing else from
//! that rank comes before the note.

use crate::census::Exchange;
use crate::census::messages::{ALTERED, DIGEST, is_whole, payload, post, sign};
use crate::census::state::counts::Count;
use crate::census::state::items::Items;
use crate::protocol::exchange::wait;
use crate::protocol::frames::kind;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_transport::{Channels, Endpoint, Frame, Leave, Liveness, Loss, Lost, Port, Topology};

/// Each time that a rank has looked at all ranks this number of times, it asks the transport which
/// ranks have nothing in transit.
const LOOKS: u32 = 64;

/// [`Stall::what`](crate::Stall::what) of a wait for notes.
const NOTES: &str = "notes of a reduced census";

impl Exchange<'_> {
    /// Sends the notes of this rank for others, and counts them.
    pub(super) fn send_notes(&mut self, items: &mut Items) -> Result<()> {
        let world = self.world;
        let halving = world.census.halving();
        let (number, mut counts) = (items.number(), std::mem::take(&mut items.counts));
        counts.begin(halving);
        let mut message = std::mem::take(&mut items.message);
        let head = world.stamped(kind::NOTE);
        let sent = items.send_notes(|to, bytes| {
            message.clear();
            message.resize(DIGEST, 0);
            message.extend_from_slice(bytes);
            sign(number, head.word, head.extra, &mut message);
            counts.add(halving, to);
            post(world, self.endpoint, to, head, &mut message)
        });
        (items.message, items.counts) = (message, counts);
        sent.map_err(|lost| self.quit(&lost))
    }

    /// Waits for the notes for this rank, after the census is complete and all agree.
    pub(super) fn collect_notes(&mut self, items: &mut Items) -> Result<()> {
        let world = self.world;
        let Some(counter) = world.census.halving().counter() else { return Ok(()) };
        let mut expected = items.counts.own(world.census.halving());
        let mut silent: Vec<usize> = (0..world.size).filter(|&rank| rank != world.rank).collect();
        for from in items.noted() {
            let Ok(at) = silent.binary_search(&from) else { return Err(self.forged(from)) };
            let Some(left) = expected.without(silent.remove(at)) else { return Err(self.forged(counter)) };
            expected = left;
        }
        // The rank knows which ranks it waits for if one note is left, or if all remaining ranks
        // have a note for it.
        let is_known =
            |expected: Count, silent: &[usize]| expected.notes < 2 || expected.notes as usize >= silent.len();
        if !is_known(expected, &silent) {
            let first = usize::from(world.rank == 0);
            let any = || Watch::new(world, self.call, self.windows, first, Awaited::FromAny(NOTES)).of_all();
            let mut looks = 0u32;
            let found = wait(self.endpoint, any, |endpoint| {
                looks += 1;
                let (mut at, mut none) = (0, 0);
                while at < silent.len() && !is_known(expected, &silent) {
                    let (from, asks) = (silent[at], looks.is_multiple_of(LOOKS));
                    let announced = if asks { endpoint.announced(from) } else { 0 };
                    let looked = look(world, endpoint, items, from)?;
                    if looked != Looked::Note {
                        let other = looked == Looked::Other;
                        none += usize::from(other || asks && has_none(world, endpoint, announced, from));
                        at += 1;
                    } else if let Some(left) = expected.without(silent.remove(at)) {
                        expected = left;
                    }
                }
                if silent.len() - none < expected.notes as usize {
                    return Err(world.refuse(endpoint, counter, ALTERED));
                }
                Ok(is_known(expected, &silent).then_some(()))
            });
            found.map_err(|lost| self.quit(&lost))?;
        }
        if expected.notes == 1 {
            silent.retain(|&from| from == expected.from as usize);
        } else if expected.notes == 0 {
            silent.clear();
        }
        for from in silent {
            let last = || Watch::new(world, self.call, self.windows, from, Awaited::One(NOTES)).of_all();
            let found = wait(self.endpoint, last, |endpoint| {
                let announced = endpoint.announced(from);
                let looked = look(world, endpoint, items, from)?;
                if looked == Looked::Note {
                    return Ok(Some(()));
                } else if looked == Looked::Nothing && !has_none(world, endpoint, announced, from) {
                    return Ok(None);
                }
                let what = format!(
                    "it did not send the note that rank {counter} has counted, or that count was altered"
                );
                Err(world.refuse(endpoint, from, &what))
            });
            found.map_err(|lost| self.quit(&lost))?;
            expected = expected.without(from).unwrap_or(expected);
        }
        if expected == Count::default() { Ok(()) } else { Err(self.forged(counter)) }
    }
}

/// The result of looking for a note of a rank: the kind of the first frame that was found.
#[derive(PartialEq, Eq)]
enum Looked {
    Note,
    Nothing,
    /// The frame belongs to a later exchange or to no exchange, or the rank has left.
    Other,
}

/// Returns whether nothing of `from` is in transit, as far as the transport knows. The caller found
/// nothing after `from` had announced the exchange `announced`. If `announced` is a later exchange
/// than this one, `from` had already posted its notes of this exchange.
fn has_none(world: &WorldCore, endpoint: &mut Endpoint, announced: u64, from: usize) -> bool {
    let later = ((announced >> 32) as u32).wrapping_sub(world.calls.supersteps()) as i32 > 0;
    later && endpoint.drained(from)
}

/// Looks for a note of `from`. Sets aside the frames of operations that come before the note.
fn look(world: &WorldCore, endpoint: &mut Endpoint, items: &mut Items, from: usize) -> Result<Looked, Lost> {
    loop {
        let frame = match world.poll(endpoint, from) {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(Looked::Nothing),
            // A rank that has nothing for this rank may have left since.
            Err(Lost { how: Loss::Left(Leave::Finished), .. }) => return Ok(Looked::Other),
            Err(lost) => return Err(lost),
        };
        match frame.header.kind {
            _ if !world.is_of_this_exchange(&frame.header) => return Ok(Looked::Other),
            kind::NOTE => {
                take(world, endpoint, items, from, &frame)?;
                return Ok(Looked::Note);
            }
            kind::DATA | kind::LOG | kind::ELEMENTS => set_aside(endpoint, items, from, frame),
            _ => return Ok(Looked::Other),
        }
    }
}

/// Sets a frame of operations aside until the census has ended, and releases it.
pub(super) fn set_aside(endpoint: &mut Endpoint, items: &mut Items, from: usize, frame: Frame) {
    // If the sender's memory is reached, the frame does not change until the fence after the next,
    // even if it is released.
    let in_place = frame.header.kind != kind::DATA && endpoint.reaches(from);
    items.aside.add(from, frame, payload(&frame), in_place);
    endpoint.release(from, Port::FENCE);
}

/// Takes in a note of this exchange, and releases it.
///
/// # Errors
/// The world ends if no correct rank sends such a note.
pub(super) fn take(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    items: &mut Items,
    from: usize,
    frame: &Frame,
) -> Result<(), Lost> {
    let good = world.is_of_this_exchange(&frame.header) && is_whole(items, frame);
    if good {
        items.give(from, Some(world.rank), &payload(frame)[DIGEST..]);
    }
    endpoint.release(from, Port::FENCE);
    if good { Ok(()) } else { Err(world.refuse(endpoint, from, ALTERED)) }
}
