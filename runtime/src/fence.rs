//! The fence of a dynamic epoch: one protocol for every transport.
//!
//! Every rank sends every other one letter, which says that it is in the fence (W1), of which superstep and windows, and
//! how much there is for it. Where memory is reached, the reader takes operations from the sender's outbox; elsewhere
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

use crate::assertions::Assertions;
use crate::call::WindowKey;
use crate::element::Element;
use crate::outbox::{Head, Outbox, PUT, WIDE, Wide, WideSource, code_of, op_of};
use crate::pending::{Get, Into as Landing, ONE, Pending};
use crate::transport::{Endpoint, Frame, Header, Lost, Record, Transport};
use crate::waits::{Wait, without};
use crate::window::WindowCore;
use crate::wire;
use crate::world::{Traffic, WorldCore};
use crate::{element_type, kernel};
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Order};
use fencepost_planner::{Class, Error, Result};
use std::panic::Location;

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
    /// Compiled supersteps.
    pub(crate) const ENTRY: u32 = 8;
    /// Compiled supersteps.
    pub(crate) const PAYLOAD: u32 = 9;
    /// Compiled supersteps.
    pub(crate) const DONE: u32 = 10;
}

/// Which call ends the epoch: what its word hashes, and what messages name.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Of the superstep and its uniform arguments; 0 for a fence outside one.
    pub(crate) hash: u64,
    /// The superstep's name.
    pub(crate) name: Option<&'static str>,
    /// The user's line.
    pub(crate) site: &'static Location<'static>,
}

impl Call {
    pub(crate) fn fence(site: &'static Location<'static>) -> Self {
        Self { hash: 0, name: None, site }
    }

    pub(crate) fn describe(&self, windows: &[&WindowCore]) -> String {
        use std::fmt::Write;
        let mut text = match self.name {
            Some(name) => format!("superstep {name} ({}:{})", self.site.file(), self.site.line()),
            None => format!("a fence at {}:{}", self.site.file(), self.site.line()),
        };
        for (i, window) in windows.iter().enumerate() {
            let _ = write!(text, "{} {}", if i == 0 { " of window" } else { "," }, window.key.window);
        }
        text
    }
}

/// The low half of the word: superstep and windows.
pub(crate) fn hash(call: &Call, windows: &[&WindowCore]) -> u32 {
    let mut hash = call.hash ^ 0x9e37_79b9_7f4a_7c15;
    for window in windows {
        hash = (hash ^ u64::from(window.key.window)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash as u32
}

/// Operations as they reach their target.
pub(crate) enum Items<'a> {
    /// Heads and values side by side.
    Records(&'a [Record]),
    /// Heads remembered, values fresh.
    Split(&'a [u64], &'a [u8]),
}

/// Applies operations to a window of one element type.
pub(crate) type Apply = unsafe fn(*mut u8, usize, Items<'_>, &[Wide], &[u8]);

/// Apply `items` to the window of `len` elements at `base`, in order.
///
/// # Safety
/// `base` is the memory of `len` elements of `T` that nobody else touches now; every displacement lies in it.
pub(crate) unsafe fn apply<T: Element>(
    base: *mut u8,
    len: usize,
    items: Items<'_>,
    wide: &[Wide],
    bytes: &[u8],
) {
    let one = |head: Head, value: u64| {
        let code = head.code();
        if code == WIDE {
            // SAFETY: passed on.
            unsafe { apply_wide(base, element_type::<T>(), &wide[head.at()], bytes) };
            return;
        }
        let at = head.at();
        if at >= len || size_of::<T>() > 8 {
            debug_assert!(false, "a record outside its window");
            return;
        }
        // SAFETY: `at < len`.
        let to = unsafe { base.add(at * size_of::<T>()) };
        match op_of(code) {
            // SAFETY: `to` is one element; the first bytes of the value are its bytes.
            None => unsafe {
                std::ptr::copy_nonoverlapping(std::ptr::from_ref(&value).cast(), to, size_of::<T>())
            },
            // SAFETY: as above, and the operator was checked at the call or on arrival.
            Some(op) => unsafe { kernel::combine_one(op, element_type::<T>(), to, value) },
        }
    };
    match items {
        Items::Records(mut records) => {
            let sum = code_of(Kind::Accumulate(Op::Sum));
            while let Some(first) = records.first() {
                let code = Head(first.head).code();
                // Long runs of one kind are the rule: what it is is asked once.
                let done = if size_of::<T>() > 8 {
                    0
                } else if code == PUT {
                    alike::<T>(base, len, records, PUT, |to, value| {
                        // SAFETY: `to` is one element; the first bytes of the value are its bytes.
                        unsafe { move_one(std::ptr::from_ref(&value).cast(), to, size_of::<T>()) }
                    })
                } else if code == sum {
                    alike::<T>(base, len, records, sum, |to, value| {
                        // SAFETY: as above, and the operator was checked at the call or on arrival.
                        unsafe { kernel::combine_one(Op::Sum, element_type::<T>(), to, value) }
                    })
                } else {
                    0
                };
                if done == 0 {
                    one(Head(first.head), first.value);
                }
                records = &records[done.max(1)..];
            }
        }
        Items::Split(heads, values) => {
            heads.iter().zip(values.chunks_exact(8)).for_each(|(&head, value)| {
                one(Head(head), u64::from_ne_bytes(value.try_into().expect("chunks of eight")));
            });
        }
    }
}

/// Hands each record at the front that has this code and lies in the window to `act`, with its place; gives their number.
#[inline(always)]
fn alike<T>(base: *mut u8, len: usize, records: &[Record], code: u64, act: impl Fn(*mut u8, u64)) -> usize {
    let mine = |record: &&Record| Head(record.head).code() == code && Head(record.head).at() < len;
    let mut done = 0;
    for record in records.iter().take_while(mine) {
        act(base.wrapping_add(Head(record.head).at() * size_of::<T>()), record.value);
        done += 1;
    }
    done
}

/// # Safety
/// As [`apply`]; the source is `Bytes` and in `bytes`.
unsafe fn apply_wide(
    base: *mut u8,
    element: fencepost_planner::element::ElementType,
    wide: &Wide,
    bytes: &[u8],
) {
    let WideSource::Bytes(at) = wide.source else {
        debug_assert!(false, "sections were read before the letter was sent");
        return;
    };
    let from = bytes[at..at + wide.remote.size() * element.size as usize].as_ptr();
    match op_of(wide.code) {
        // SAFETY: the datatype lies in the window, and `from` has as many elements.
        None => unsafe { kernel::unpack(from, base, &wide.remote, element.size as usize) },
        // SAFETY: as above.
        Some(op) => unsafe { kernel::combine(op, element, base, &wide.remote, from) },
    }
}

/// Move one element.
///
/// # Safety
/// `from` and `to` are one element of `size` bytes each.
#[inline]
unsafe fn move_one(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        if size == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, size);
        }
    }
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
    let mut call = world.supersteps.call(call);
    if !windows.is_empty() {
        call = world.ordered(&call);
    }
    let call = &call;
    if without(Wait::Composition) && !windows.iter().any(|window| window.is_pending()) {
        return Ok(());
    }
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

/// What one rank can see is wrong; and sections that are sources are read.
fn prepare(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
    for (i, window) in windows.iter().enumerate() {
        if window.key.world != world.id {
            return Err(call.error(world, Class::Win, "a window of another world cannot be fenced here"));
        }
        if windows[..i].iter().any(|other| other.key == window.key) {
            return Err(call.error(world, Class::Win, "a window is named twice in one fence"));
        }
    }
    for window in windows {
        let set = window.set.get();
        for target in 0..world.size {
            // SAFETY: the set being filled is touched by its owner only.
            let outbox = unsafe { &mut *window.region.outbox(set, target) };
            if outbox.sections > 0 {
                read_sections(outbox, windows, call, world)?;
            }
        }
        for request in &window.pending.borrow().wide {
            if let Landing::Section(key, _) = &request.landing {
                find(windows, *key).ok_or_else(|| call.not_in_fence(world, *key, request.site))?;
            }
        }
        let pending = &mut *window.pending.borrow_mut();
        let size = window.element.size as usize;
        let bytes = pending.gets.iter().try_fold(0usize, |sum, get| {
            pending.count(get).checked_mul(size).and_then(|bytes| sum.checked_add(bytes))
        });
        pending.staged.clear();
        if bytes.is_none_or(|bytes| pending.staged.try_reserve(bytes).is_err()) {
            return Err(call.error(world, Class::Size, "there is no memory for all that this epoch gets"));
        }
        if window.apart && bytes > Some(wire::most_answered(0, 0)) {
            answerable(window, pending, call)?;
        }
    }
    Ok(())
}

/// Whether ranks whose memory is not reached will answer all that is asked of them.
fn answerable(window: &WindowCore, pending: &Pending, call: &Call) -> Result<()> {
    let (world, size) = (&window.world, window.element.size as usize);
    let mut asked = vec![0usize; world.size];
    pending.gets.iter().for_each(|get| asked[get.target as usize] += pending.count(get) * size);
    for (target, (peer, &bytes)) in window.peers.iter().zip(&asked).enumerate() {
        let most = wire::most_answered(peer.len, size);
        if bytes > most && peer.region.is_none() && target != world.rank {
            let message = format!(
                "this epoch gets {bytes} bytes from rank {target}, whose memory is not reached: at most {most} are sent, 256 times all of its window"
            );
            return Err(call.error(world, Class::Size, message));
        }
    }
    Ok(())
}

fn read_sections(outbox: &mut Outbox, windows: &[&WindowCore], call: &Call, world: &WorldCore) -> Result<()> {
    for index in 0..outbox.wide.len() {
        let WideSource::Section(key, section) = outbox.wide[index].source.clone() else { continue };
        let Some(source) = find(windows, key) else { return Err(call.not_in_fence(world, key, call.site)) };
        let size = source.element.size as usize;
        let at = section
            .size()
            .checked_mul(size)
            .filter(|&bytes| outbox.bytes.try_reserve(bytes.saturating_add(8)).is_ok())
            .map(|bytes| outbox.room(bytes))
            .ok_or_else(|| {
                call.error(world, Class::Size, "there is no memory for all that this epoch puts")
            })?;
        // SAFETY: the section was checked against this rank's part of the window, which this rank is fencing; nobody
        // else writes it before this rank's letter is out.
        unsafe { kernel::pack(source.region.base(), &section, size, outbox.bytes[at..].as_mut_ptr()) };
        outbox.wide[index].source = WideSource::Bytes(at);
    }
    outbox.sections = 0;
    Ok(())
}

fn find<'w>(windows: &[&'w WindowCore], key: WindowKey) -> Option<&'w WindowCore> {
    windows.iter().find(|window| window.key == key).copied()
}

impl Call {
    pub(crate) fn error(&self, world: &WorldCore, class: Class, message: impl Into<String>) -> Error {
        let error = Error::new(class, message).on_rank(world.rank as u32).at(self.site);
        match self.name {
            Some(name) => error.in_superstep(name),
            None => error,
        }
    }

    fn not_in_fence(&self, world: &WorldCore, key: WindowKey, site: &'static Location<'static>) -> Error {
        let message = format!(
            "window {} has a section in this epoch but is not in its fence: fence all of them together, `world.fence((&mut u, &mut v))?`",
            key.window
        );
        Error::new(Class::RmaSync, message).on_rank(world.rank as u32).at(site)
    }
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
            if !failed && !self.endpoint.reaches(to) {
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
            let reaches = self.endpoint.reaches(to);
            let letter = self.endpoint.letter(to);
            letter.flags = flags;
            if failed || reaches {
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
            if from == self.world.rank || self.endpoint.reaches(from) {
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

    /// Read what was asked for from M, wait until nobody reads any more, and land it.
    fn get(&mut self, word: u64, flags: u32) -> Result<()> {
        let me = self.world.rank;
        if without(Wait::ReadsFirst) {
            self.windows.iter().for_each(|window| self.apply_from(window, me));
        }
        wire::answer(self.world, self.endpoint, self.windows, word)
            .map_err(|lost| self.world.lost(&lost, self.call))?;
        for window in self.windows {
            let pending = &mut *window.pending.borrow_mut();
            let size = window.element.size as usize;
            pending.words.clear();
            if size == 8 && self.windows.len() == 1 && self.world.reaches_all && pending.wide.is_empty() {
                let read = |get: &Get| {
                    let memory = window.lanes[get.target as usize].memory.get().cast::<u64>();
                    // SAFETY: checked against the target's length at the call; the target is in this fence and nothing
                    // is written to its window before all have settled; elements of eight bytes may be unaligned.
                    unsafe { memory.add(get.at as usize).read_unaligned() }
                };
                pending.words.extend(pending.gets.iter().map(read));
                continue;
            }
            let mut staged = std::mem::take(&mut pending.staged);
            let bytes = pending.gets.iter().map(|get| pending.count(get) * size).sum();
            staged.clear();
            staged.resize(bytes, 0);
            let mut at = 0;
            for get in &pending.gets {
                let (target, to) = (get.target as usize, at);
                at += pending.count(get) * size;
                if target != me && !self.endpoint.reaches(target) {
                    continue;
                }
                let region =
                    window.peers[target].region.as_ref().expect("a region is known where memory is reached");
                let to = staged[to..at].as_mut_ptr();
                // SAFETY: what is asked for was checked against the target's length; the target is in this fence and
                // nothing is written to its window before all have settled; `to` has room for as many elements.
                unsafe {
                    if get.wide != ONE {
                        kernel::pack(region.base(), &pending.wide[get.wide as usize].remote, size, to);
                    } else {
                        move_one(region.base().add(get.at as usize * size), to, size);
                    }
                }
            }
            pending.staged = staged;
        }
        if !without(Wait::Landing) {
            wire::take_answers(self.world, self.endpoint, self.windows, word)
                .map_err(|lost| self.world.lost(&lost, self.call))?;
        }
        if flags & READS != 0 && !without(Wait::Leaving) {
            self.settle()?;
        }
        self.land();
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

    /// Land gets in program order: that of each window, and across windows by their places among all gets.
    fn land(&self) {
        if let [window] = self.windows {
            let pending = window.pending.borrow();
            if !pending.words.is_empty() {
                let base = window.region.base().cast::<u64>();
                for (get, word) in pending.gets.iter().zip(&pending.words) {
                    // SAFETY: checked against this rank's part at the call; all reads of M are done (settle).
                    unsafe { base.add(get.into as usize).write_unaligned(*word) };
                }
                return;
            }
            let mut at = 0;
            for get in &pending.gets {
                at = self.land_one(window, &pending, get, at);
            }
            return;
        }
        // By window: the next get, and where its elements are staged.
        let mut heads: [(usize, usize); 16] = [(0, 0); 16];
        let mut more;
        let heads: &mut [(usize, usize)] = if self.windows.len() <= 16 {
            &mut heads[..self.windows.len()]
        } else {
            more = vec![(0, 0); self.windows.len()];
            &mut more
        };
        loop {
            let next =
                self.windows.iter().zip(&*heads).enumerate().filter_map(|(w, (window, &(next, _)))| {
                    Some((window.pending.borrow().gets.get(next)?.sequence, w))
                });
            let Some((_, w)) = next.min() else { break };
            let pending = self.windows[w].pending.borrow();
            let (next, at) = heads[w];
            heads[w] = (next + 1, self.land_one(self.windows[w], &pending, &pending.gets[next], at));
        }
    }

    /// Land what is staged at `at`; where what follows is staged.
    fn land_one(&self, window: &WindowCore, pending: &Pending, get: &Get, at: usize) -> usize {
        let size = window.element.size as usize;
        let end = at + pending.count(get) * size;
        let bytes = &pending.staged[at..end];
        if get.wide == ONE {
            // SAFETY: checked against this rank's part at the call; the rest as below.
            unsafe { move_one(bytes.as_ptr(), window.region.base().add(get.into as usize * size), size) };
            return end;
        }
        match &pending.wide[get.wide as usize].landing {
            Landing::Ticket(slot) => slot.fill(bytes),
            Landing::Section(key, section) => {
                let into = find(self.windows, *key).expect("checked as the fence was entered");
                // SAFETY: the section was checked against this rank's part; all reads of M are done (settle), and only
                // this rank writes its memory.
                unsafe { kernel::unpack(bytes.as_ptr(), into.region.base(), section, size) };
            }
            // SAFETY: the scoped epoch holds the borrow of as many bytes until after this fence.
            Landing::Borrowed(to) => unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), *to, bytes.len())
            },
        }
        end
    }

    /// Apply puts and accumulates, origins ascending.
    fn apply(&mut self, all: &Letters) {
        let me = self.world.rank;
        for window in self.windows {
            let (base, len) = (window.region.base(), window.peers[me].len);
            for origin in 0..self.world.size {
                if origin == me || self.endpoint.reaches(origin) {
                    if origin != me {
                        if all.quiet {
                            continue;
                        }
                        if let Ok(Some(letter)) = self.endpoint.read(origin) {
                            if letter.count == 0 {
                                continue;
                            }
                            if letter.address == INLINE {
                                let inline = letter.inline;
                                let items = Items::Records(&inline[..(letter.count as usize).min(2)]);
                                // SAFETY: this rank's own memory, in its own fence, all reads done.
                                unsafe { (window.apply)(base, len, items, &[], &[]) };
                                continue;
                            }
                        }
                    }
                    self.apply_from(window, origin);
                } else {
                    wire::apply(window, origin, base, len);
                }
            }
        }
        self.world
            .traffic
            .set(Traffic { epochs: self.world.traffic.get().epochs + 1, ..self.world.traffic.get() });
    }

    /// Apply what lies in the outbox of `origin`, whose memory is reached.
    #[inline]
    fn apply_from(&self, window: &WindowCore, origin: usize) {
        let me = self.world.rank;
        let (base, len, set) = (window.region.base(), window.peers[me].len, window.set.get());
        let region = if origin == me {
            &window.region
        } else {
            window.peers[origin].region.as_ref().expect("a region is known where memory is reached")
        };
        // SAFETY: the origin filled this set before its letter and will not touch it before its fence after the next,
        // which waits for this rank's next letter.
        let outbox = unsafe { &*region.outbox(set, me) };
        if !outbox.is_empty() {
            let items = Items::Records(&outbox.records);
            // SAFETY: this rank's own memory, in its own fence, all reads done; the origin checked every displacement
            // against this length.
            unsafe { (window.apply)(base, len, items, &outbox.wide, &outbox.bytes) };
        }
    }

    /// All ranks have seen that something is wrong: tell each other what, and give the error.
    fn explain(&mut self, word: u64, failed: Option<Error>, all: &Letters) -> Error {
        let me = self.world.rank;
        let words = matches!(all.disagreement, Disagreement::Words);
        let mut own = self.call.describe(self.windows);
        if self.world.order.get() == Order::Relaxed && !self.windows.is_empty() {
            own.push_str(" in relaxed order");
        }
        let mine = match &failed {
            Some(error) => format!("{own} failed with: {error}"),
            None => own.clone(),
        };
        let mut others = Vec::new();
        let speaks = |flags: u32| words || flags & FAILED != 0;
        let exchange = (|| {
            if words || failed.is_some() {
                for to in (0..self.world.size).filter(|&to| to != me) {
                    self.world.post_kept(
                        self.endpoint,
                        to,
                        header(0, kind::EXPLAIN, 0),
                        mine.clone().into_bytes(),
                    )?;
                }
            }
            for from in (0..self.world.size).filter(|&from| from != me) {
                let (flags, frames) =
                    self.endpoint.read(from)?.map_or((0, 0), |letter| (letter.flags, letter.address));
                if frames != INLINE {
                    wire::discard(self.world, self.endpoint, from, frames)?;
                }
                if speaks(flags) {
                    let text =
                        String::from_utf8_lossy(&take_bytes(self.world, self.endpoint, from, kind::EXPLAIN)?)
                            .into_owned();
                    others.push((from, flags & FAILED != 0, text));
                }
                if !words && !self.endpoint.reaches(from) {
                    // What left early for these windows has come before the letter: look, and drop it.
                    self.world.poll(self.endpoint, from)?;
                    self.windows.iter().for_each(|window| self.world.drop_early(from, window, word));
                }
            }
            Ok(())
        })();
        if let Err(lost) = exchange {
            return failed.unwrap_or_else(|| self.world.lost(&lost, self.call));
        }
        if let Some(error) = failed {
            return error;
        }
        if let Some((rank, _, text)) = others.iter().find(|(_, failed, _)| *failed) {
            return self.call.error(
                self.world,
                Class::RmaSync,
                format!("rank {rank} did not complete this epoch: {text}; nothing was applied"),
            );
        }
        let (rank, _, text) =
            others.iter().find(|(_, _, text)| *text != own).or(others.first()).cloned().unwrap_or_default();
        self.call.error(
            self.world,
            Class::RmaSync,
            format!("this rank is in {own}, but rank {rank} is in {text}: all ranks must fence the same windows, in the same superstep, with the same uniform arguments; nothing was applied"),
        )
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

impl WindowCore {
    /// After a fence that went through: fill the other set, which nobody reads any more.
    fn next_set(&self) {
        self.closed.set(false);
        let set = self.set.get() ^ usize::from(!without(Wait::Reuse));
        self.turn(set, true);
        for target in 0..self.world.size {
            // SAFETY: readers of this set finished before they sent the letters of the fence that has just ended.
            unsafe { &mut *self.region.outbox(set, target) }.clear();
        }
        self.pending.borrow_mut().clear();
        if self.apart {
            self.wire.borrow_mut().settled();
        }
    }

    /// Whether NOSUCCEED was asserted for the epoch that begins: its operations are refused.
    fn close(&self, closed: bool) {
        self.closed.set(closed);
        self.turn(self.set.get(), !closed);
    }

    /// Forget what is pending.
    pub(crate) fn discard(&self) {
        for target in 0..self.world.size {
            // SAFETY: after a fence that failed on all ranks, or before one: nobody reads the set being filled.
            unsafe { &mut *self.region.outbox(self.set.get(), target) }.clear();
        }
        self.pending.borrow_mut().clear();
        self.wire.borrow_mut().forget();
    }

    /// Whether operations wait for this window's fence.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.borrow().gets.is_empty()
            || self.wire.borrow().has_left()
            // SAFETY: the set being filled is touched by its owner only.
            || (0..self.world.size).any(|target| !unsafe { &*self.region.outbox(self.set.get(), target) }.is_empty())
    }
}

/// A frame header of this protocol.
pub(crate) fn header(word: u64, kind: u32, extra: u32) -> Header {
    Header { word, kind, extra }
}
