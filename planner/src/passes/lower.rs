//! Generates the programs: one for each class of ranks that do the same.
//!
//! ```text
//! c0: +1 sends l0 in round0,    c0: pack w0 0..1 to b0, send b0 to +1 round0,
//!     -1 receives l0                await -1 8 B, unpack -1 to w0 8..9, release -1
//! ```
//!
//! A program has these parts, in this order:
//! 1. Entries to the ranks that touch this rank's windows directly, after the packs of the elements
//!    that these ranks will overwrite (W2).
//! 2. Packs and sends, by round. If no frame flows back, a buffer's release is awaited before the
//!    buffer is packed (W4).
//! 3. Own direct copies, after each peer's entry has been awaited (W1): first stores to other
//!    ranks, then loads into this rank's windows. A done is sent to each peer after the last copy
//!    that touches the peer.
//! 4. Answers from all ranks to this rank's gets, and the copies within this rank.
//! 5. Puts and accumulates. If their order can be observed, they are applied origin by origin, and
//!    this rank is one of the origins. Otherwise they are applied in the order in which they are
//!    expected.
//! 6. Waits for the dones of the ranks that touched this rank's windows (W3).
//!
//! Each channel carries an entry, then data, then a done, and both ends have the frames in that
//! order. There is no cycle of waits: entries and sends await nothing but buffers of earlier runs,
//! copies await entries, landing awaits sends, and the end of the program awaits dones.
//!
//! **Requires** that answers come first in the frames of a link. **Ensures** that any two schedules
//! can run one after the other (W6), and that equal programs are stored once. **Cost** proportional
//! to the classes.

use crate::datatype::Datatype;
use crate::element::{ElementType, Op};
use crate::ids::{BufferId, ClassId, Delta, LinkId, OperationId, RoundId, WindowId};
use crate::intern::Interner;
use crate::ir::chunks::{Chunk, Cut};
use crate::ir::pattern::{Kind, Mode, Order};
use crate::ir::peers::{Peer, RankClass};
use crate::ir::placed::{Placed, Staging};
use crate::ir::rounds::RoundAssignment;
use crate::ir::schedule::{Buffer, Frame, Instruction, Program, Routing, Schedule};
use crate::ir::transfers::{Fold, Side, Transfer};
use crate::options::Options;
use crate::passes::route::order_shows;
use crate::table::Table;
use smallvec::SmallVec;

/// See the [module](self).
pub fn lower(placed: Placed<'_>, options: &Options) -> Schedule {
    let Placed { chunks, at, buffers, .. } = &placed;
    let patterns = chunks.cuts.patterns;
    let mut classes = Interner::default();
    let becomes: Table<ClassId, ClassId> = chunks
        .cuts
        .peers
        .classes
        .iter()
        .map(|(id, class)| {
            let rank = Lowering {
                placed: &placed,
                at,
                class,
                assignments: &chunks.assignments[id],
                buffers: &buffers[id],
            };
            classes.intern(rank.program(options))
        })
        .collect();
    Schedule {
        name: patterns.name.clone(),
        windows: patterns.windows.clone(),
        shape: patterns.shape.clone(),
        classes: classes.into_table(),
        class_of: chunks.cuts.peers.class_of.iter().map(|&class| becomes[class]).collect(),
        order: patterns.order,
        sync: patterns.sync,
        placement: chunks.cuts.placement,
    }
}

/// The placed frames, and the tables from which the program of one class is generated.
struct Lowering<'a> {
    placed: &'a Placed<'a>,
    at: &'a Table<LinkId, Vec<u64>>,
    class: &'a RankClass,
    assignments: &'a [RoundAssignment],
    buffers: &'a [Option<Staging>],
}

/// A frame to send, and its place in a link.
struct Sending<'a> {
    peer: usize,
    buffer: BufferId,
    round: RoundId,
    link: LinkId,
    frame: usize,
    packs: Vec<(&'a ElementType, Side, u64)>,
    folds: Vec<(&'a Transfer, &'a Fold, u64)>,
}

impl Sending<'_> {
    fn reads(&self) -> impl Iterator<Item = &Side> {
        self.packs.iter().map(|(_, side, _)| side).chain(self.folds.iter().map(|(_, fold, _)| &fold.source))
    }
}

impl<'a> Lowering<'a> {
    fn cut(&self, link: LinkId) -> &'a Cut {
        &self.placed.chunks.cuts.links[link]
    }

    fn sends(&self, peer: &Peer) -> Option<&'a Cut> {
        peer.sends.map(|link| self.cut(link))
    }

    fn receives(&self, peer: &Peer) -> Option<&'a Cut> {
        peer.receives.map(|link| self.cut(link))
    }

    fn others(&self) -> impl Iterator<Item = &'a Peer> + use<'a> {
        self.class.peers.iter().filter(|peer| peer.delta != Delta::SELF)
    }

    /// Returns whether the peer touches this rank's windows.
    fn touched_by(&self, peer: &Peer) -> bool {
        self.receives(peer).is_some_and(Cut::stores) || self.sends(peer).is_some_and(Cut::loads)
    }

    fn program(&self, options: &Options) -> Program {
        let patterns = self.placed.chunks.cuts.patterns;
        let mut buffers = Table::new();
        let mut ids = Vec::new();
        for (peer, staging) in self.class.peers.iter().zip(self.buffers) {
            ids.push(staging.map(|staging| {
                buffers.push(Buffer { peer: peer.delta, bytes: staging.bytes, copies: staging.copies })
            }));
        }
        let mut code = Vec::new();
        self.expose_and_send(&ids, &mut code);
        self.copy_direct(&mut code);
        self.land(&mut code);
        for peer in self.others().filter(|peer| self.touched_by(peer)) {
            code.push(Instruction::Await { peer: peer.delta, frame: Frame::Done });
        }
        let pattern = patterns.classes[self.class.pattern].clone();
        let routes = self.routes(pattern.operations.len(), options);
        let least_len = self.class.least_len.iter().copied().collect();
        Program { pattern, routes, least_len, buffers, instructions: code }
    }

    /// Generates parts 1 and 2.
    fn expose_and_send(&self, ids: &[Option<BufferId>], code: &mut Vec<Instruction>) {
        let mut sendings = self.sendings(ids);
        let read: Vec<&Side> = sendings.iter().flat_map(Sending::reads).collect();
        let overwritten = |peer: &Peer| {
            let stores = self.receives(peer).into_iter().flat_map(|cut| &cut.direct);
            stores
                .filter(|transfer| !transfer.is_answer())
                .any(|store| read.iter().any(|side| overlap(side, &store.target)))
        };
        let exposed: Vec<&Peer> = self.others().filter(|peer| self.touched_by(peer)).collect();
        let (late, early): (Vec<&Peer>, Vec<&Peer>) = exposed.into_iter().partition(|peer| overwritten(peer));
        let expose = |peer: &Peer| Instruction::Expose { peer: peer.delta };
        code.extend(early.into_iter().map(expose));
        let mut reclaimed = vec![false; self.class.peers.len()];
        if !late.is_empty() {
            for sending in &mut sendings {
                self.pack(sending, &mut reclaimed, code);
            }
            code.extend(late.into_iter().map(expose));
        }
        for sending in &mut sendings {
            self.pack(sending, &mut reclaimed, code);
            let at = self.at[sending.link][sending.frame];
            let bytes = self.cut(sending.link).frames[sending.frame].bytes;
            code.push(Instruction::Send { buffer: sending.buffer, at, bytes, round: sending.round });
        }
    }

    /// Returns the frames to send, by round.
    fn sendings(&self, ids: &[Option<BufferId>]) -> Vec<Sending<'a>> {
        let mut sendings = Vec::new();
        for (place, peer) in self.class.peers.iter().enumerate() {
            let (Some(link), Some(buffer)) = (peer.sends, ids[place]) else { continue };
            let cut = self.cut(link);
            let first = usize::from(!cut.direct.is_empty());
            for (index, frame) in cut.frames.iter().enumerate() {
                let round =
                    self.assignments[place].sends.get(first + frame.message).copied().unwrap_or_default();
                let starts = frame.at.iter().map(|at| self.at[link][index] + at);
                let folds = frame.transfers.iter().zip(starts.clone());
                let folds =
                    folds.flat_map(|(of, at)| of.folds.iter().map(move |fold| (of, fold, at))).collect();
                let packs = joined(frame.transfers.iter().zip(starts), |transfer| &transfer.source, |_| None);
                let packs =
                    packs.into_iter().map(|joined| (&joined.like.element, joined.side, joined.at)).collect();
                sendings.push(Sending { peer: place, buffer, round, link, frame: index, packs, folds });
            }
        }
        sendings.sort_by_key(|sending| sending.round);
        sendings
    }

    fn pack(&self, sending: &mut Sending<'_>, reclaimed: &mut [bool], code: &mut Vec<Instruction>) {
        let reclaim = self.buffers[sending.peer].is_some_and(|staging| staging.reclaim);
        if reclaim && !std::mem::replace(&mut reclaimed[sending.peer], true) {
            code.push(Instruction::Reclaim { buffer: sending.buffer });
        }
        for (element, side, at) in sending.packs.drain(..) {
            let from = side.part(Delta::SELF);
            code.push(Instruction::Pack { from, element: element.size, buffer: sending.buffer, at });
        }
        for (of, fold, at) in sending.folds.drain(..) {
            let Some(op) = op(of.kind) else { continue };
            let (from, into) = (fold.source.part(Delta::SELF), fold.into.clone());
            let (element, buffer) = (of.element, sending.buffer);
            code.push(Instruction::Combine { from, into, op, element, buffer, at });
        }
    }

    /// Generates part 3.
    fn copy_direct(&self, code: &mut Vec<Instruction>) {
        let mut peers: Vec<(RoundId, &Peer)> = Vec::new();
        for (peer, assignment) in self.class.peers.iter().zip(self.assignments) {
            let stores = self.sends(peer).is_some_and(Cut::stores);
            let loads = self.receives(peer).is_some_and(Cut::loads);
            if peer.delta != Delta::SELF && (stores || loads) {
                let round = if stores { &assignment.sends } else { &assignment.receives };
                peers.push((round.first().copied().unwrap_or_default(), peer));
            }
        }
        peers.sort_by_key(|(round, _)| *round);
        let mut awaited = vec![false; peers.len()];
        for loading in [false, true] {
            for (place, (_, peer)) in peers.iter().enumerate() {
                let loads = self.receives(peer).is_some_and(Cut::loads);
                let cut = if loading { self.receives(peer) } else { self.sends(peer) };
                let copies = cut
                    .into_iter()
                    .flat_map(|cut| &cut.direct)
                    .filter(|transfer| transfer.is_answer() == loading);
                let mut any = false;
                for transfer in copies {
                    if !std::mem::replace(&mut awaited[place], true) {
                        code.push(Instruction::Await { peer: peer.delta, frame: Frame::Entry });
                    }
                    let (from, to) =
                        if loading { (peer.delta, Delta::SELF) } else { (Delta::SELF, peer.delta) };
                    code.push(copy(transfer, from, to));
                    any = true;
                }
                if any && (loading || !loads) {
                    code.push(Instruction::Done { peer: peer.delta });
                }
            }
        }
    }

    /// Generates parts 4 and 5.
    fn land(&self, code: &mut Vec<Instruction>) {
        let mut peers: Vec<(RoundId, usize)> = (0..self.class.peers.len())
            .filter(|&place| self.receives(&self.class.peers[place]).is_some())
            .map(|place| (self.assignments[place].receives.first().copied().unwrap_or_default(), place))
            .collect();
        // Copies of this rank to itself wait for no other rank, so they come first if the order
        // permits that.
        let own = |place: usize| self.class.peers[place].delta != Delta::SELF;
        peers.sort_by_key(|&(round, place)| (own(place), round, place));
        let mut landing: Vec<Landing> =
            peers.iter().map(|&(_, place)| Landing { place, next: 0, open: false }).collect();
        for one in &mut landing {
            let peer = &self.class.peers[one.place];
            let Some(cut) = self.receives(peer) else { continue };
            self.copy_own(peer, cut, true, code);
            while let Some(frame) = cut.frames.get(one.next)
                && frame.transfers.first().is_some_and(Transfer::is_answer)
            {
                code.push(Instruction::Await { peer: peer.delta, frame: Frame::Data { bytes: frame.bytes } });
                unpack(peer.delta, frame, true, code);
                if frame.transfers.iter().all(Transfer::is_answer) {
                    code.push(Instruction::Release { peer: peer.delta });
                    one.next += 1;
                } else {
                    one.open = true;
                    break;
                }
            }
        }
        if self.by_origin() {
            landing.sort_by_key(|one| one.place);
        }
        for one in &mut landing {
            let peer = &self.class.peers[one.place];
            let Some(cut) = self.receives(peer) else { continue };
            self.copy_own(peer, cut, false, code);
            for frame in &cut.frames[one.next..] {
                if !std::mem::take(&mut one.open) {
                    code.push(Instruction::Await {
                        peer: peer.delta,
                        frame: Frame::Data { bytes: frame.bytes },
                    });
                }
                unpack(peer.delta, frame, false, code);
                code.push(Instruction::Release { peer: peer.delta });
            }
        }
    }

    fn copy_own(&self, peer: &Peer, cut: &Cut, answers: bool, code: &mut Vec<Instruction>) {
        if peer.delta == Delta::SELF {
            let copies = cut.direct.iter().filter(|transfer| transfer.is_answer() == answers);
            code.extend(copies.map(|transfer| copy(transfer, Delta::SELF, Delta::SELF)));
        }
    }

    /// Returns whether different origins write one element of this rank, in an order that can be
    /// observed.
    fn by_origin(&self) -> bool {
        if self.placed.chunks.cuts.patterns.order == Order::Relaxed {
            return false;
        }
        let mut writes: Vec<(Delta, &Transfer, WindowId, &Datatype)> = Vec::new();
        for peer in &self.class.peers {
            let Some(cut) = self.receives(peer) else { continue };
            let own = if peer.delta == Delta::SELF { &cut.direct[..] } else { &[] };
            for transfer in own.iter().chain(cut.frames.iter().flat_map(|frame| &frame.transfers)) {
                if let (false, Some((window, datatype))) = (transfer.is_answer(), transfer.target.window()) {
                    writes.push((peer.delta, transfer, window, datatype));
                }
            }
        }
        writes.sort_by_key(|&(delta, _, window, datatype)| (window, datatype.low(), delta));
        writes.iter().enumerate().any(|(at, a)| {
            writes[at + 1..]
                .iter()
                .take_while(|b| b.2 == a.2 && b.3.low() < a.3.high())
                .any(|b| a.0 != b.0 && order_shows(a.1.kind, b.1.kind, a.1) && a.3.overlaps(b.3))
        })
    }

    /// Returns the mode and the round of each operation.
    fn routes(&self, operations: usize, options: &Options) -> Table<OperationId, Option<Routing>> {
        let mut routes: Table<_, Option<Routing>> = std::iter::repeat_n(None, operations).collect();
        for (peer, assignment) in self.class.peers.iter().zip(self.assignments) {
            let own = peer.delta == Delta::SELF;
            let receives = if own { None } else { self.receives(peer) };
            for (cut, rounds, mine) in
                [(self.sends(peer), &assignment.sends, false), (receives, &assignment.receives, true)]
            {
                let Some(cut) = cut else { continue };
                let first = usize::from(!cut.direct.is_empty());
                let direct = cut.direct.iter().map(|transfer| (0, Mode::Direct, transfer));
                let framed = cut.frames.iter().flat_map(|frame| {
                    frame.transfers.iter().map(move |transfer| (first + frame.message, frame.mode, transfer))
                });
                for (message, mode, transfer) in direct.chain(framed) {
                    if !own && transfer.is_answer() != mine {
                        continue;
                    }
                    let wanted = options.asked(transfer.asked);
                    let instead = !own && wanted != Mode::Auto && wanted != mode;
                    let round = rounds.get(message).copied().unwrap_or_default();
                    for &operation in &transfer.operations {
                        routes[operation].get_or_insert(Routing { mode, instead, round });
                    }
                }
            }
        }
        routes
    }
}

/// The progress of landing the frames of one peer.
struct Landing {
    place: usize,
    next: usize,
    open: bool,
}

fn overlap(a: &Side, b: &Side) -> bool {
    match (a.window(), b.window()) {
        (Some((a_window, a)), Some((b_window, b))) => a_window == b_window && a.overlaps(b),
        _ => false,
    }
}

fn op(kind: Kind) -> Option<Op> {
    match kind {
        Kind::Accumulate(op) => Some(op),
        Kind::Put | Kind::Get => None,
    }
}

fn copy(transfer: &Transfer, from: Delta, to: Delta) -> Instruction {
    Instruction::Copy {
        from: transfer.source.part(from),
        to: transfer.target.part(to),
        op: op(transfer.kind),
        element: transfer.element,
    }
}

fn unpack(peer: Delta, frame: &Chunk, answers: bool, code: &mut Vec<Instruction>) {
    let members = frame.transfers.iter().zip(frame.at.iter().copied());
    let members = members.filter(|(transfer, _)| transfer.is_answer() == answers);
    for joined in joined(members, |transfer| &transfer.target, |transfer| Some(transfer.kind)) {
        code.push(Instruction::Unpack {
            peer,
            at: joined.at,
            to: joined.side.part(Delta::SELF),
            op: op(joined.like.kind),
            element: joined.like.element,
        });
    }
}

/// One side of transfers that follow each other in a frame.
struct Joined<'a> {
    like: &'a Transfer,
    side: Side,
    at: u64,
}

/// Returns one side of each transfer. Transfers that are adjacent in the frame and in one window
/// are joined. A frame is a sequence of elements, so the sender and the receiver may divide it at
/// different places.
fn joined<'a>(
    transfers: impl Iterator<Item = (&'a Transfer, u64)>,
    side: impl Fn(&'a Transfer) -> &'a Side,
    kind: impl Fn(&Transfer) -> Option<Kind>,
) -> Vec<Joined<'a>> {
    let members: SmallVec<[(&Transfer, u64); 4]> = transfers.collect();
    let follows = |a: &(&'a Transfer, u64), b: &(&'a Transfer, u64)| {
        a.1 + a.0.bytes() == b.1
            && a.0.element == b.0.element
            && kind(a.0) == kind(b.0)
            && match (side(a.0), side(b.0)) {
                (Side::Window { window: a, .. }, Side::Window { window: b, .. }) => a == b,
                (
                    Side::Operation { operation: a, first, count },
                    Side::Operation { operation: b, first: next, .. },
                ) => a == b && first + count == *next,
                _ => false,
            }
    };
    let mut all = Vec::new();
    for group in members.chunk_by(follows) {
        let whole = match side(group[0].0) {
            one if group.len() == 1 => Some(one.clone()),
            Side::Operation { operation, first, .. } => {
                let count = group.iter().map(|(transfer, _)| transfer.size()).sum();
                Some(Side::Operation { operation: *operation, first: *first, count })
            }
            Side::Window { window, .. } => {
                let datatypes = group.iter().filter_map(|(transfer, _)| side(transfer).window());
                Datatype::sequence(datatypes.map(|(_, datatype)| datatype.clone()))
                    .ok()
                    .map(|datatype| Side::Window { window: *window, datatype })
            }
        };
        match whole {
            Some(whole) => all.push(Joined { like: group[0].0, side: whole, at: group[0].1 }),
            None => all.extend(group.iter().map(|&(like, at)| Joined { like, side: side(like).clone(), at })),
        }
    }
    all
}
