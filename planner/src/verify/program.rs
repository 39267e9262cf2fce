//! Checks one program by itself: each instruction must be sound. Collects the traffic between this
//! rank and each peer.

use super::error::{Finding, VerifyError};
use super::facts::{Awaited, Facts, Folded, Packed, Peer, Sent};
use crate::datatype::Datatype;
use crate::element::ElementType;
use crate::ids::{BufferId, ClassId, Delta, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation};
use crate::ir::schedule::{Frame, Instruction, Part, Program};
use crate::table::Table;
use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use std::collections::BTreeMap;

/// The largest number of copies of a buffer that a plan may have.
const COPIES_MAX: u32 = 16;

/// The packs, combinations and sends of one buffer so far in a run.
#[derive(Default)]
struct Filled {
    /// The packed bytes. Maps the first byte of each pack to its end and its instruction.
    packs: BTreeMap<u64, (u64, usize)>,
    /// The values that are combined into packed bytes.
    folds: Vec<Folded>,
    /// The sent bytes. Maps the first byte of each send to its end.
    sends: BTreeMap<u64, u64>,
}

/// Runs `program` once by itself.
pub(super) fn facts<'s>(
    windows: &Table<WindowId, ElementType>,
    class: ClassId,
    rank: Rank,
    program: &'s Program,
    arena: &'s Bump,
) -> Result<Facts<'s>, VerifyError> {
    let mut walk = Walk {
        windows,
        rank,
        arena,
        filled: program.buffers.ids().map(|_| Filled::default()).collect(),
        open: BTreeMap::new(),
        facts: Facts {
            class,
            rank,
            program,
            packed: program.buffers.ids().map(|_| Packed::default()).collect(),
            peers: BTreeMap::new(),
            own: Vec::new(),
        },
    };
    walk.heads()?;
    for (at, instruction) in program.instructions.iter().enumerate() {
        walk.step(at, instruction)?;
    }
    walk.ends()?;
    Ok(walk.facts)
}

struct Walk<'w, 's> {
    windows: &'w Table<WindowId, ElementType>,
    rank: Rank,
    arena: &'s Bump,
    filled: Table<BufferId, Filled>,
    /// The open frame of each peer, as an index into the awaited frames.
    open: BTreeMap<Delta, usize>,
    facts: Facts<'s>,
}

type Check<T = ()> = Result<T, VerifyError>;

impl<'s> Walk<'_, 's> {
    fn at(&self, instruction: usize, what: impl Into<String>) -> Box<Finding> {
        self.facts.finding(self.rank, Some(instruction), what.into())
    }

    fn peer(&mut self, peer: Delta) -> &mut Peer<'s> {
        self.facts.peers.entry(peer).or_insert_with(|| Peer::new(self.arena))
    }

    /// Checks everything in a program except its instructions.
    fn heads(&mut self) -> Check {
        let program = self.facts.program;
        let whole = |what: String| VerifyError::Malformed(self.facts.finding(self.rank, None, what));
        if program.routes.len() != program.pattern.operations.len() {
            let (routes, operations) = (program.routes.len(), program.pattern.operations.len());
            return Err(whole(format!("{routes} routes for {operations} operations")));
        }
        if program.least_len.len() != self.windows.len() {
            let (lengths, windows) = (program.least_len.len(), self.windows.len());
            return Err(whole(format!("{lengths} least lengths for {windows} windows")));
        }
        if let Some((id, buffer)) =
            program.buffers.iter().find(|(_, b)| !(1..=COPIES_MAX).contains(&b.copies))
        {
            return Err(whole(format!("{} copies of {id}", buffer.copies)));
        }
        for (id, operation) in program.pattern.operations.iter() {
            if let Some(target) = operation.target
                && operation.remote.size() > 0
            {
                self.peer(target).operations.push(id);
            }
        }
        Ok(())
    }

    fn step(&mut self, at: usize, instruction: &'s Instruction) -> Check {
        match instruction {
            Instruction::Expose { peer } => {
                if self.peer(*peer).expose.replace(at).is_some() {
                    return Err(VerifyError::Doubled(
                        self.at(at, format!("exposed to {peer} twice in one run")),
                    ));
                }
                self.sends(at, *peer, Frame::Entry);
            }
            Instruction::Done { peer } => {
                if self.peer(*peer).done_out.replace(at).is_some() {
                    return Err(VerifyError::Doubled(
                        self.at(at, format!("done with {peer} twice in one run")),
                    ));
                }
                if self.peer(*peer).entry_in.is_none() {
                    let what = format!("done with {peer}, whose entry was not awaited");
                    return Err(VerifyError::BeforeEntry(self.at(at, what)));
                }
                self.sends(at, *peer, Frame::Done);
            }
            Instruction::Reclaim { buffer } => {
                self.buffer(at, *buffer)?;
                let filled = &self.filled[*buffer];
                self.facts.packed[*buffer].reclaim.get_or_insert(at);
                if !(filled.packs.is_empty() && filled.sends.is_empty()) {
                    let what = format!("reclaims {buffer} after it was written in this run");
                    return Err(VerifyError::BufferReused(self.at(at, what)));
                }
            }
            Instruction::Pack { from, element, buffer, at: byte } => {
                self.own_part(at, from, *element, false)?;
                let end = self.within_buffer(at, *buffer, *byte, bytes(from.len(), *element))?;
                self.pack(at, *buffer, *byte, end)?;
                self.facts.own.push(at);
            }
            Instruction::Combine { from, into, op, element, buffer, at: byte } => {
                self.typed(at, from, *element)?;
                self.own_part(at, from, element.size, false)?;
                self.operator(at, Some(*op), *element)?;
                if op.order_shows(*element) {
                    let what = format!("combines {element:?} by {op} before they travel, where order shows");
                    return Err(VerifyError::WrongOperator(self.at(at, what)));
                }
                if from.len() != into.size() {
                    let what = format!("{} elements into {}", from.len(), into.size());
                    return Err(VerifyError::Malformed(self.at(at, what)));
                }
                self.fold(at, *buffer, *byte, into, element.size)?;
                self.facts.own.push(at);
            }
            Instruction::Send { buffer, at: byte, bytes, .. } => {
                let end = self.within_buffer(at, *buffer, *byte, Some(*bytes))?;
                self.send(at, *buffer, *byte, end)?;
            }
            Instruction::Await { peer, frame } => self.await_frame(at, *peer, *frame)?,
            Instruction::Copy { from, to, op, element } => self.copy(at, from, to, *op, *element)?,
            Instruction::Unpack { peer, at: byte, to, op, element } => {
                self.typed(at, to, *element)?;
                self.operator(at, *op, *element)?;
                self.own_part(at, to, element.size, true)?;
                let Some(&open) = self.open.get(peer) else {
                    return Err(VerifyError::NotOpen(self.at(at, format!("no frame of {peer} is open"))));
                };
                let awaited = &mut self.peer(*peer).awaited[open];
                let Frame::Data { bytes: size } = awaited.frame else {
                    unreachable!("only data frames open")
                };
                awaited.unpacks.push(at);
                let end = bytes(to.len(), element.size).and_then(|bytes| byte.checked_add(bytes));
                if end.is_none_or(|end| end > size) {
                    let what = format!("bytes from {byte} to {end:?} of a frame of {size}");
                    return Err(VerifyError::OutOfBounds(self.at(at, what)));
                }
                self.facts.own.push(at);
            }
            Instruction::Release { peer } => {
                let Some(open) = self.open.remove(peer) else {
                    return Err(VerifyError::NotOpen(self.at(at, format!("no frame of {peer} is open"))));
                };
                self.peer(*peer).awaited[open].released = at;
            }
        }
        Ok(())
    }

    fn sends(&mut self, instruction: usize, peer: Delta, frame: Frame) {
        let (packs, folds) = (ArenaVec::new_in(self.arena), ArenaVec::new_in(self.arena));
        let sent = Sent { instruction, frame, at: 0, packs, folds, buffer: BufferId(0) };
        self.peer(peer).sent.push(sent);
    }

    fn await_frame(&mut self, at: usize, peer: Delta, frame: Frame) -> Check {
        if self.open.contains_key(&peer) && matches!(frame, Frame::Data { .. }) {
            return Err(VerifyError::NotOpen(self.at(at, format!("a frame of {peer} is still open"))));
        }
        let unpacks = ArenaVec::new_in(self.arena);
        let known = self.peer(peer);
        let twice = match frame {
            Frame::Entry => known.entry_in.replace(at).is_some(),
            Frame::Done => known.done_in.replace(at).is_some(),
            Frame::Data { .. } => false,
        };
        let exposed = known.expose.is_some();
        known.awaited.push(Awaited { instruction: at, frame, unpacks, released: at });
        let index = known.awaited.len() - 1;
        if twice {
            return Err(VerifyError::Doubled(
                self.at(at, format!("{frame:?} of {peer} awaited twice in one run")),
            ));
        }
        if frame == Frame::Done && !exposed {
            let what = format!("awaits the done of {peer} before this rank is exposed to {peer}");
            return Err(VerifyError::LeftEarly(self.at(at, what)));
        }
        if matches!(frame, Frame::Data { .. }) {
            self.open.insert(peer, index);
        }
        Ok(())
    }

    fn copy(
        &mut self,
        at: usize,
        from: &'s Part,
        to: &'s Part,
        op: Option<crate::element::Op>,
        element: ElementType,
    ) -> Check {
        if from.len() != to.len() {
            let what = format!("{} elements into {}", from.len(), to.len());
            return Err(VerifyError::Malformed(self.at(at, what)));
        }
        self.typed(at, from, element)?;
        self.typed(at, to, element)?;
        self.operator(at, op, element)?;
        let (source, target) = (owner(from), owner(to));
        if source == Delta::SELF {
            self.own_part(at, from, element.size, false)?;
        }
        if target == Delta::SELF {
            self.own_part(at, to, element.size, true)?;
        }
        let far = match (source, target) {
            (Delta::SELF, Delta::SELF) => None,
            (far, Delta::SELF) | (Delta::SELF, far) => Some(far),
            _ => {
                let what = format!("copies from {source} to {target}, neither of them its own");
                return Err(VerifyError::Malformed(self.at(at, what)));
            }
        };
        if let Some(far) = far {
            let peer = self.peer(far);
            peer.copies.push(at);
            if peer.entry_in.is_none() {
                let what = format!("touches a window of {far}, whose entry was not awaited");
                return Err(VerifyError::BeforeEntry(self.at(at, what)));
            }
            if peer.done_out.is_some() {
                let what = format!("touches a window of {far} after sending it a done");
                return Err(VerifyError::AfterDone(self.at(at, what)));
            }
        }
        self.facts.own.push(at);
        Ok(())
    }

    fn ends(&self) -> Check {
        if let Some((peer, open)) = self.open.iter().next() {
            let at = self.facts.peers[peer].awaited[*open].instruction;
            return Err(VerifyError::LeftEarly(
                self.at(at, format!("the frame of {peer} is never released")),
            ));
        }
        for (peer, known) in &self.facts.peers {
            if let Some(expose) = known.expose
                && known.done_in.is_none()
            {
                let what = format!("leaves without having awaited that {peer} is done with its windows");
                return Err(VerifyError::LeftEarly(self.at(expose, what)));
            }
            if let Some(entry) = known.entry_in
                && known.done_out.is_none()
            {
                let what = format!("never notifies {peer} that it is done with the windows of {peer}");
                return Err(VerifyError::LeftEarly(self.at(entry, what)));
            }
        }
        Ok(())
    }

    /// Checks that the part belongs to this rank, exists, holds elements of this size, and may be
    /// read or written.
    fn own_part(&self, at: usize, part: &Part, element: u32, write: bool) -> Check {
        let program = self.facts.program;
        match part {
            Part::Window { owner, window, datatype } => {
                if *owner != Delta::SELF {
                    return Err(VerifyError::Malformed(
                        self.at(at, format!("names a window of {owner} as its own")),
                    ));
                }
                let Some(kind) = self.windows.get(*window) else {
                    return Err(VerifyError::Malformed(self.at(at, format!("no window {window}"))));
                };
                if kind.size != element {
                    let what = format!("elements of {element} bytes in {window}, which holds {kind:?}");
                    return Err(VerifyError::Malformed(self.at(at, what)));
                }
                within(datatype, program.least_len[*window])
                    .map_err(|what| VerifyError::OutOfBounds(self.at(at, format!("{window}: {what}"))))
            }
            Part::Operation { operation: id, first, count } => {
                let Some(operation) = program.pattern.operations.get(*id) else {
                    return Err(VerifyError::Malformed(self.at(at, format!("no operation {id}"))));
                };
                if operation.local != Local::Buffer || (operation.kind == Kind::Get) != write {
                    let what =
                        format!("{id} has no buffer to {} here", if write { "land in" } else { "read from" });
                    return Err(VerifyError::Malformed(self.at(at, what)));
                }
                if self.windows.get(operation.window).is_none_or(|kind| kind.size != element) {
                    let what = format!("elements of {element} bytes for {id}");
                    return Err(VerifyError::Malformed(self.at(at, what)));
                }
                if first.checked_add(*count).is_none_or(|end| end > operation.remote.size()) {
                    let what =
                        format!("elements {first} and on, {count} of them, of {} of {id}", size(operation));
                    return Err(VerifyError::OutOfBounds(self.at(at, what)));
                }
                Ok(())
            }
        }
    }

    /// Checks that the part holds elements of the given type.
    fn typed(&self, at: usize, part: &Part, element: ElementType) -> Check {
        let window = match part {
            Part::Window { window, .. } => Some(*window),
            Part::Operation { operation, .. } => {
                self.facts.program.pattern.operations.get(*operation).map(|operation| operation.window)
            }
        };
        match window.and_then(|window| self.windows.get(window)) {
            Some(kind) if *kind == element => Ok(()),
            kind => Err(VerifyError::Malformed(self.at(at, format!("{element:?}, but it holds {kind:?}")))),
        }
    }

    fn operator(&self, at: usize, op: Option<crate::element::Op>, element: ElementType) -> Check {
        match op {
            Some(op) if !op.takes(element) => {
                Err(VerifyError::WrongOperator(self.at(at, format!("{op} is not defined for {element:?}"))))
            }
            _ => Ok(()),
        }
    }

    fn buffer(&self, at: usize, buffer: BufferId) -> Check<&crate::ir::schedule::Buffer> {
        let found = self.facts.program.buffers.get(buffer);
        found.ok_or_else(|| VerifyError::Malformed(self.at(at, format!("no buffer {buffer}"))))
    }

    /// Returns the end of the `bytes` bytes that begin at `byte`, if that end is inside the buffer.
    fn within_buffer(&self, at: usize, buffer: BufferId, byte: u64, bytes: Option<u64>) -> Check<u64> {
        let size = self.buffer(at, buffer)?.bytes;
        match bytes.and_then(|bytes| byte.checked_add(bytes)) {
            Some(end) if end <= size => Ok(end),
            _ => {
                let what = format!("{bytes:?} bytes from byte {byte} of {buffer}, which has {size}");
                Err(VerifyError::OutOfBounds(self.at(at, what)))
            }
        }
    }

    fn pack(&mut self, at: usize, buffer: BufferId, byte: u64, end: u64) -> Check {
        if byte == end {
            return Ok(());
        }
        if meets(&self.filled[buffer].sends, byte, end, |end| *end) {
            let what = format!("writes bytes of {buffer} that were sent in this run");
            return Err(VerifyError::BufferReused(self.at(at, what)));
        }
        if meets(&self.filled[buffer].packs, byte, end, |pack| pack.0) {
            return Err(VerifyError::Doubled(self.at(at, format!("packs over packed bytes of {buffer}"))));
        }
        self.filled[buffer].packs.insert(byte, (end, at));
        let packed = &mut self.facts.packed[buffer];
        (packed.bytes, packed.things) = (packed.bytes + (end - byte), packed.things + 1);
        packed.first.get_or_insert(at);
        Ok(())
    }

    /// Checks that all bytes into which values are combined are packed, in elements of `size`
    /// bytes, and that none of these bytes is sent yet.
    fn fold(&mut self, at: usize, buffer: BufferId, byte: u64, into: &Datatype, size: u32) -> Check {
        if into.is_empty() {
            return Ok(());
        }
        let place =
            |element: i64| u64::try_from(element).ok()?.checked_mul(u64::from(size))?.checked_add(byte);
        let (Some(low), Some(high)) = (place(into.low()), place(into.high())) else {
            let what = format!("elements from {} on, of {buffer} from byte {byte} on", into.low());
            return Err(VerifyError::OutOfBounds(self.at(at, what)));
        };
        self.within_buffer(at, buffer, low, Some(high - low))?;
        let filled = &self.filled[buffer];
        if meets(&filled.sends, low, high, |end| *end) {
            let what = format!("combines into bytes of {buffer} that were sent in this run");
            return Err(VerifyError::BufferReused(self.at(at, what)));
        }
        let mut from = low;
        let before = filled.packs.range(..low).next_back();
        for (&start, &(end, pack)) in before.into_iter().chain(filled.packs.range(low..high)) {
            if start > from || end <= from {
                continue;
            }
            let packed = match &self.facts.program.instructions[pack] {
                Instruction::Pack { element, .. } => *element,
                _ => 0,
            };
            if packed != size || !(from - start).is_multiple_of(u64::from(size)) {
                let what = format!("combines elements of {size} bytes into packed ones of {packed}");
                return Err(VerifyError::WrongPlace(self.at(at, what)));
            }
            from = end.min(high);
        }
        if from < high {
            let what = format!("combines into byte {from} of {buffer}, which was not packed");
            return Err(VerifyError::UninitialisedBytes(self.at(at, what)));
        }
        self.filled[buffer].folds.push(Folded { low, high, instruction: at });
        Ok(())
    }

    fn send(&mut self, at: usize, buffer: BufferId, byte: u64, end: u64) -> Check {
        if byte < end && meets(&self.filled[buffer].sends, byte, end, |end| *end) {
            return Err(VerifyError::Doubled(
                self.at(at, format!("sends bytes of {buffer} twice in one run")),
            ));
        }
        self.facts.packed[buffer].things += 1;
        let filled = &mut self.filled[buffer];
        if byte < end {
            filled.sends.insert(byte, end);
        }
        let before = filled.packs.range(..byte).next_back().filter(|(_, (to, _))| *to > byte);
        let packs = before.into_iter().chain(filled.packs.range(byte..end));
        let packs = packs.map(|(from, (to, pack))| (*from, *to, *pack));
        let packs = ArenaVec::from_iter_in(packs, self.arena);
        let folds = filled.folds.iter().filter(|fold| fold.low < end && fold.high > byte).copied();
        let folds = ArenaVec::from_iter_in(folds, self.arena);
        if folds.iter().any(|fold| fold.low < byte || fold.high > end) {
            let what = format!("sends only a part of the elements that are combined in {buffer}");
            return Err(VerifyError::Malformed(self.at(at, what)));
        }
        let frame = Frame::Data { bytes: end - byte };
        let peer = self.facts.program.buffers[buffer].peer;
        let known = self.peer(peer);
        if known.buffers.last() != Some(&buffer) {
            known.buffers.push(buffer);
        }
        known.sent.push(Sent { instruction: at, frame, at: byte, packs, folds, buffer });
        Ok(())
    }
}

/// Returns whether `byte..end` overlaps one of the disjoint intervals.
fn meets<T>(intervals: &BTreeMap<u64, T>, byte: u64, end: u64, past: impl Fn(&T) -> u64) -> bool {
    intervals.range(..end).next_back().is_some_and(|(_, interval)| past(interval) > byte)
}

fn bytes(elements: usize, size: u32) -> Option<u64> {
    u64::try_from(elements).ok()?.checked_mul(u64::from(size))
}

fn size(operation: &Operation) -> usize {
    operation.remote.size()
}

/// Returns the owner of the part's elements.
pub(super) fn owner(part: &Part) -> Delta {
    match part {
        Part::Window { owner, .. } => *owner,
        Part::Operation { .. } => Delta::SELF,
    }
}

/// Checks that every element of `datatype` is one of the first `len`.
pub(super) fn within(datatype: &Datatype, len: usize) -> Result<(), String> {
    let fits = datatype.low() >= 0 && usize::try_from(datatype.high()).is_ok_and(|high| high <= len);
    if datatype.size() == 0 || fits {
        return Ok(());
    }
    Err(format!("elements from {} to {}, of {len}", datatype.low(), datatype.high()))
}
