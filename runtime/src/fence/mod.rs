//! The fence of a dynamic epoch: one protocol for every transport.
//!
//! Every rank sends every other one letter, which says that it is in the fence (W1), of which superstep and windows, and
//! how much there is for it. Where values are shared, the reader takes operations from the sender's outbox; elsewhere
//! they travelled in frames before the letter, so a letter settles the count. Then, on each rank:
//!
//! 1. sections that are sources were read before the letter was sent, so they hold M whatever happens later (W2);
//! 2. when all letters are in and agree, gets read M: directly where memory is reached, else the target answers;
//! 3. when anybody read another's memory directly, all wait until all have finished reading (W2, W3);
//! 4. gets land, in program order;
//! 5. puts and accumulates are applied by origin rank, then program order, each rank to its own memory only (W3);
//! 6. outboxes and letters exist twice and are used in turn: a rank that fills a set again has seen the letter that each
//!    reader sent after it had finished with it (W4, W5).
//!
//! A rank that failed, or a word that differs, is seen by every rank, since every rank reads every letter: nothing is
//! applied anywhere, the ranks explain themselves to each other, and the world goes on.

mod apply;
mod call;
mod collected;
mod disagree;
mod gets;
mod sources;

pub(crate) use apply::{Apply, Items, apply};
pub(crate) use call::{Call, hash};

use crate::assertions::Assertions;
use crate::pending::Get;
use crate::transport::{Endpoint, Frame, Header, Lost, Transport};
use crate::waits::{Wait, without};
use crate::window::WindowCore;
use crate::wire;
use crate::world::WorldCore;
use fencepost_planner::{Class, Error, Result};
use sources::prepare;

/// This rank's superstep failed: nothing may be applied.
const FAILED: u32 = 1;
/// This rank reads memory of others directly.
const READS: u32 = 2;
/// This rank's operations are not those of last time.
const CHANGED: u32 = 4;

/// In a letter's address: its records ride in it. Otherwise the address is the number of frames that came before it.
const INLINE: usize = usize::MAX;

/// Frame kinds of this protocol.
pub(crate) mod kind {
    /// Operations for one window; `extra` is the window.
    pub(crate) const DATA: u32 = 1;
    /// Elements that were asked for.
    pub(crate) const REPLY: u32 = 2;
    /// Why a fence failed.
    pub(crate) const EXPLAIN: u32 = 3;
    /// Setting up windows and worlds.
    pub(crate) const SETUP: u32 = 4;
    /// Operations for one window that left before its fence; `extra` is the window.
    pub(crate) const EARLY: u32 = 5;
    /// Records for one window, which lie where the sender collected them; `extra` is the window.
    pub(crate) const LOG: u32 = 6;
    /// Compiled supersteps.
    pub(crate) const ENTRY: u32 = 8;
    /// Compiled supersteps.
    pub(crate) const PAYLOAD: u32 = 9;
    /// Compiled supersteps.
    pub(crate) const DONE: u32 = 10;
}

/// Look until there is something.
#[inline]
pub(crate) fn wait<R>(
    endpoint: &mut Endpoint,
    mut look: impl FnMut(&mut Endpoint) -> Result<Option<R>, Lost>,
) -> Result<R, Lost> {
    if let Some(found) = look(endpoint)? {
        return Ok(found);
    }
    let mut pause = crate::transport::Pause::new();
    loop {
        endpoint.idle(&mut pause);
        if let Some(found) = look(endpoint)? {
            return Ok(found);
        }
    }
}

/// End the epoch of `windows`. With `failed`, this rank takes part so that the others learn of it, and nothing is applied.
pub(crate) fn fence(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    world.alive()?;
    if without(Wait::Composition) && !windows.iter().any(|window| window.is_pending()) {
        return Ok(());
    }
    windows.iter().for_each(|window| window.count());
    let mut call = world.supersteps.call(call);
    if !windows.is_empty() {
        call = world.ordered(&call);
    }
    let call = &call;
    let failed = match failed {
        Some(error) => Some(error),
        None => {
            world.supersteps.compare(world, windows, call).and_then(|()| prepare(world, windows, call)).err()
        }
    };
    let mut fence = Fence { world, windows, call, endpoint: &mut world.endpoint.borrow_mut(), frames: 0 };
    let result = fence.run(failed);
    world.supersteps.fenced(result.is_err());
    match result {
        Ok(()) => windows.iter().for_each(|window| window.next_set()),
        Err(_) => windows.iter().for_each(|window| window.discard()),
    }
    result
}

/// [`fence`], with what the program promises.
pub(crate) fn fence_with(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    assertions: Assertions,
) -> Result<()> {
    let call = Call { hash: call.hash ^ assertions.collective(), ..*call };
    let waiting = windows.iter().find(|window| window.is_pending());
    let failed = waiting.filter(|_| assertions.contains(Assertions::NOPRECEDE)).map(|window| {
        let message = format!(
            "NOPRECEDE was asserted, and operations wait for the fence of window {}: nothing was applied",
            window.key.window
        );
        call.error(world, Class::Assert, message)
    });
    fence(world, windows, &call, failed)?;
    if assertions.contains(Assertions::NOSUCCEED) {
        windows.iter().for_each(|window| window.close(true));
    }
    Ok(())
}

struct Fence<'a> {
    world: &'a WorldCore,
    windows: &'a [&'a WindowCore],
    call: &'a Call,
    endpoint: &'a mut Endpoint,
    /// Frames that were posted to each rank for this call already.
    frames: usize,
}

/// Come together for a call that fences no window; one frame was posted to each other rank for it.
pub(crate) fn meet(world: &WorldCore, call: &Call) -> Result<()> {
    Fence { world, windows: &[], call, endpoint: &mut world.endpoint.borrow_mut(), frames: 1 }.run(None)
}

/// The payload of the next frame from `from`, which must be of this kind.
pub(crate) fn take_bytes(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    kind: u32,
) -> Result<Vec<u8>, Lost> {
    let frame = wait(endpoint, |endpoint| world.poll(endpoint, from))?;
    bytes_of(world, endpoint, from, frame, kind)
}

/// The payload of this frame from `from`, which must be of this kind.
pub(crate) fn bytes_of(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    from: usize,
    frame: Frame,
    kind: u32,
) -> Result<Vec<u8>, Lost> {
    // SAFETY: readable until released, below.
    let bytes = unsafe { std::slice::from_raw_parts(frame.payload, frame.len) }.to_vec();
    let good = frame.header.kind == kind;
    endpoint.release(from);
    if good {
        Ok(bytes)
    } else {
        Err(world.refuse(endpoint, from, "it sent a frame of another kind than this call has"))
    }
}

impl Fence<'_> {
    fn run(&mut self, failed: Option<Error>) -> Result<()> {
        let word = self.world.next_word(hash(self.call, self.windows));
        let flags = self.publish(word, failed.is_some())?;
        if without(Wait::Entry) {
            self.get(word, 0)?;
        }
        let all = self.read_letters(word, flags)?;
        if all.disagreement != Disagreement::No {
            return Err(self.explain(word, failed, &all));
        }
        if self.windows.is_empty() {
            return Ok(());
        }
        self.world.changed.set(self.world.reaches_all || all.flags & CHANGED != 0);
        if !all.quiet {
            self.receive(word)?;
        }
        let gets = self.windows.iter().any(|window| !window.pending.borrow().gets.is_empty());
        if (gets || all.flags & READS != 0 || !self.world.reaches_all) && !without(Wait::Entry) {
            self.get(word, all.flags)?;
        }
        self.apply(&all);
        Ok(())
    }

    /// Send frames and letters. Gives this rank's flags.
    fn publish(&mut self, word: u64, failed: bool) -> Result<u32> {
        let me = self.world.rank;
        let mut flags = if failed { FAILED } else { 0 };
        if !failed {
            for window in self.windows {
                let pending = window.pending.borrow();
                let elsewhere =
                    |get: &Get| get.target as usize != me && self.endpoint.reaches(get.target as usize);
                if pending.gets.iter().any(elsewhere) {
                    flags |= READS;
                }
            }
        }
        for to in 0..self.world.size {
            if to == me {
                continue;
            }
            if !failed && !self.endpoint.shares(to) && !self.in_letter(to) {
                let mut frames = 0;
                for window in self.windows {
                    let sent = wire::send(self.world, self.endpoint, window, to, word, self.call)?;
                    frames += u32::from(sent.frames);
                    if sent.changed {
                        flags |= CHANGED;
                    }
                }
                let letter = self.endpoint.letter(to);
                letter.count = frames;
                letter.address = self.frames + frames as usize;
            }
        }
        for to in 0..self.world.size {
            if to == me {
                continue;
            }
            let here = self.endpoint.shares(to) || self.in_letter(to);
            let letter = self.endpoint.letter(to);
            letter.flags = flags;
            if failed || here {
                letter.count = 0;
                letter.address = self.frames;
                if !failed {
                    for (i, window) in self.windows.iter().enumerate() {
                        // SAFETY: the set being filled is touched by its owner only.
                        let outbox = unsafe { &*window.region.outbox(window.set.get(), to) };
                        letter.count += outbox.records.len() as u32;
                        // One window with one or two plain records: they ride in the letter.
                        if self.windows.len() == 1
                            && i == 0
                            && outbox.records.len() <= 2
                            && outbox.wide.is_empty()
                        {
                            letter.inline[..outbox.records.len()].copy_from_slice(&outbox.records);
                            letter.address = INLINE;
                        }
                    }
                }
            }
        }
        self.world.board.enter(self.world.rank, self.call.site, self.windows);
        self.endpoint.announce(word);
        self.endpoint.publish(word).map_err(|lost| self.world.lost(&lost, self.call))?;
        Ok(flags)
    }

    /// Whether all that there is for `to` is a plain record or two of one window, which the letter holds. Gets are read
    /// directly there.
    fn in_letter(&self, to: usize) -> bool {
        let [window] = self.windows else { return false };
        // SAFETY: the set being filled is touched by its owner only.
        let outbox = unsafe { &*window.region.outbox(window.set.get(), to) };
        outbox.records.len() <= 2 && outbox.wide.is_empty() && self.endpoint.reaches(to)
    }

    /// Whether what there is from `from` rides in its letter.
    fn rides(&mut self, from: usize) -> bool {
        let letter = self.endpoint.read(from);
        matches!(letter, Ok(Some(letter)) if letter.address == INLINE)
    }

    /// Wait for everybody's letter.
    fn read_letters(&mut self, word: u64, mine: u32) -> Result<Letters> {
        let mut all = Letters { flags: mine, quiet: true, disagreement: Disagreement::No };
        if mine & FAILED != 0 {
            all.disagreement = Disagreement::Failed;
        }
        for from in 0..self.world.size {
            let (seen, flags, count) = wait(self.endpoint, |endpoint| {
                let letter = endpoint.read(from)?.map(|letter| (letter.word, letter.flags, letter.count));
                Ok(if without(Wait::Skew) { letter.or(Some((word, 0, 0))) } else { letter })
            })
            .map_err(|lost| self.world.lost(&lost, self.call))?;
            if from == self.world.rank {
                continue; // one reads one's own letter too: the transport counts them
            }
            all.flags |= flags;
            all.quiet &= count == 0;
            if seen != word && !without(Wait::Word) {
                all.disagreement = Disagreement::Words;
            } else if flags & FAILED != 0 && !matches!(all.disagreement, Disagreement::Words) {
                all.disagreement = Disagreement::Failed;
            }
        }
        Ok(all)
    }

    /// Take in the frames that came before the letters.
    fn receive(&mut self, word: u64) -> Result<()> {
        for from in 0..self.world.size {
            if from == self.world.rank || self.endpoint.shares(from) || self.rides(from) {
                continue;
            }
            let count = self.endpoint.read(from).ok().flatten().map_or(0, |letter| letter.count);
            if count as usize > self.windows.len() {
                return Err(self.world.corrupt(self.endpoint, from, self.call));
            }
            for _ in 0..count {
                wire::receive(self.world, self.endpoint, self.windows, from, word, self.call)?;
            }
        }
        Ok(())
    }

    /// Wait until every rank has read what it wanted. A rank that is lost reads no more.
    fn settle(&mut self) -> Result<()> {
        let mut lost = self.endpoint.settle().err();
        for from in 0..self.world.size {
            if from == self.world.rank {
                continue;
            }
            if let Err(gone) = wait(self.endpoint, |endpoint| Ok(endpoint.settled(from)?.then_some(()))) {
                lost.get_or_insert(gone);
            }
        }
        match lost {
            Some(lost) => Err(self.world.lost(&lost, self.call)),
            None => Ok(()),
        }
    }
}

/// What all letters say together.
struct Letters {
    flags: u32,
    /// Nobody sent this rank anything.
    quiet: bool,
    disagreement: Disagreement,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Disagreement {
    No,
    Failed,
    Words,
}

/// A frame header of this protocol.
pub(crate) fn header(word: u64, kind: u32, extra: u32) -> Header {
    Header { word, kind, extra }
}
