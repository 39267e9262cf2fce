//! Chooses a route for every transfer: copied directly, or packed and sent aggressively, aggregated
//! or in pieces.
//!
//! ```text
//! l0: put w0 0..512 -> w0 600..1112        l0: direct put w0 0..512 -> w0 600..1112
//! l0: put w0 0+[99 by 9]x1 -> ..           l0: aggregated: put w0 0+[99 by 9]x1 -> ..
//! ```
//!
//! Direct copies are possible between ranks that share memory. They are used only if the order of
//! the copies cannot be observed. Each rank's program consists of *packs* < *own direct copies*
//! (puts before gets) < *landing* (unpacking, copies to itself). Other ranks copy into and out of
//! its windows at any time after its packs. Two accesses to one element *conflict* if one of them
//! is a write. A transfer is copied directly only if these rules order it before or after every
//! conflicting access of both ranks. The pass decides this as if every transfer that might be
//! direct were direct, so it packs some transfers that could be direct. A preference that cannot be
//! met is replaced by aggregation.
//!
//! **Requires** nothing.
//! **Ensures** that the messages of a link carry answers before everything else. Writes of one rank
//! to one element stay in program order, whichever messages they are in.
//! **Cost** proportional to the pairs of accesses of a class whose bounds overlap, for each class;
//! ranks x peers small steps if a transfer may be direct.
//! **Source** the shared-memory figures behind the choice by blocks are in
//! `benches/log/sections.md`.

use super::classes::{Classes, regrouped};
use crate::datatype::Datatype;
use crate::ids::{ClassId, Delta, LinkId, WindowId};
use crate::ir::messages::Messages;
use crate::ir::pattern::{Kind, Mode, Order};
use crate::ir::peers::{Peer, Peers, RankClass};
use crate::ir::routed::{Message, Route, Routed};
use crate::ir::transfers::{Transfer, Transfers};
use crate::machine::{Machine, SHORT};
use crate::options::Options;
use crate::table::Table;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// Over a network, a contiguous run of up to this many bytes is sent in one piece. Cutting the run
/// gains nothing, since neither end has anything to do for one piece while another is on its way.
const WHOLE: u64 = 2 << 20;

/// See the [module](self).
pub fn route<'p>(messages: Messages<'p>, machine: &Machine, options: &Options) -> Routed<'p> {
    let Messages(Transfers { patterns, placement, peers, links }) = messages;
    let judge =
        Judge { wishes: links.values().map(|link| wishes(link, machine, options)).collect(), links: &links };
    let unsafe_here: Table<ClassId, BTreeSet<(LinkEnd, usize)>> =
        peers.classes.values().map(|class| judge.clashes(class)).collect();
    let mut router = Router {
        judge: &judge,
        peers: &peers,
        unsafe_here: &unsafe_here,
        rows: Classes::default(),
        links: Table::new(),
        machine,
        options,
        ordered: patterns.order == Order::Canonical,
    };
    // If nothing between two ranks may be direct, the routes of a link do not depend on the ranks
    // at its ends.
    let neighbours_matter = peers.classes.values().any(|class| judge.any_direct(class));
    let regrouped = regrouped(&peers, neighbours_matter, |class, others| router.class(class, others));
    let links = router.links;
    Routed { patterns, placement, peers: regrouped, links }
}

/// A link as seen from a class: the peer, and whether the peer is the sender.
type LinkEnd = (Delta, bool);

/// Returns which transfers of a link should be direct if memory is shared and the direct copy is
/// safe.
fn wishes(link: &[Transfer], machine: &Machine, options: &Options) -> Vec<bool> {
    // Assumes that the two ranks send each other equally many bytes.
    let machine =
        &machine.while_moving(2.0 * link.iter().map(|transfer| transfer.bytes() as f64).sum::<f64>());
    let gain = |transfer: &Transfer| {
        let (remote, local) = if transfer.is_answer() {
            (&transfer.source, &transfer.target)
        } else {
            (&transfer.target, &transfer.source)
        };
        let size = transfer.element.size;
        let packed = machine.pack(&transfer.source, size) + machine.unpack(&transfer.target, size);
        packed.0 - machine.copy(remote, local, size).0
    };
    let auto = |transfer: &Transfer| options.asked(transfer.asked) == Mode::Auto && gain(transfer) > 0.0;
    let total: f64 = link.iter().filter(|transfer| auto(transfer)).map(gain).sum();
    // If every transfer is direct, the entry and the done replace the message. Otherwise both
    // frames are additional, and the latency of one overlaps with the message in transit.
    let all = link.iter().all(|transfer| auto(transfer) || options.asked(transfer.asked) == Mode::Direct);
    let price = if all {
        let bytes: u64 = link.iter().map(Transfer::bytes).sum();
        // The gains already account for the bytes themselves.
        machine.entry_and_done().0 - machine.message(true, bytes.min(SHORT + 1)).0
    } else {
        machine.entry_and_done().0 - machine.shared.latency
    };
    let pays = total > price.max(0.0);
    link.iter()
        .map(|transfer| options.asked(transfer.asked) == Mode::Direct || pays && auto(transfer))
        .collect()
}

/// The part of a rank's program in which an access to its windows happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Another rank accesses the window, at any time after the packs.
    Others,
    /// This rank copies from its own window into another rank's.
    Stores,
    /// This rank copies from another rank's window into its own.
    Loads,
    /// This rank unpacks into its window, or copies to itself.
    Lands,
    /// This rank copies from its own window to itself.
    Own,
}

struct Access<'a> {
    window: WindowId,
    datatype: &'a Datatype,
    write: bool,
    part: Part,
    transfer: (LinkEnd, usize),
}

/// Decides which direct copies are safe.
struct Judge<'a> {
    links: &'a Table<LinkId, Vec<Transfer>>,
    wishes: Table<LinkId, Vec<bool>>,
}

impl Judge<'_> {
    fn wished(&self, peer: &Peer, link: LinkId, transfer: usize) -> bool {
        peer.delta == Delta::SELF || peer.shared && self.wishes[link][transfer]
    }

    /// Returns whether any transfer between this class and another rank should be direct.
    fn any_direct(&self, class: &RankClass) -> bool {
        class.peers.iter().filter(|peer| peer.shared && peer.delta != Delta::SELF).any(|peer| {
            [peer.sends, peer.receives].into_iter().flatten().any(|link| self.wishes[link].contains(&true))
        })
    }

    /// Returns the transfers that must not be direct because of other accesses to this rank's
    /// windows.
    fn clashes(&self, class: &RankClass) -> BTreeSet<(LinkEnd, usize)> {
        let mut clashes = BTreeSet::new();
        if class.own().is_none() && !self.any_direct(class) {
            return clashes;
        }
        let mut accesses = self.accesses(class);
        accesses.sort_by_key(|access| (access.window, access.datatype.low()));
        for (at, a) in accesses.iter().enumerate() {
            for b in accesses[at + 1..]
                .iter()
                .take_while(|b| b.window == a.window && b.datatype.low() < a.datatype.high())
            {
                let same = a.transfer == b.transfer && a.transfer.0.0 != Delta::SELF;
                if !same && (a.write || b.write) && unordered(a, b) && a.datatype.overlaps(b.datatype) {
                    clashes.extend([a.transfer, b.transfer]);
                }
            }
        }
        // If only some transfers of a rank to itself were direct, they would not keep the order of
        // the program.
        if clashes.iter().any(|((delta, _), _)| *delta == Delta::SELF)
            && let Some(own) = class.own()
        {
            clashes.extend((0..self.links[own].len()).map(|at| ((Delta::SELF, false), at)));
        }
        clashes
    }

    /// Returns all accesses to this rank's windows except the reads of its packs, which come before
    /// all other accesses.
    fn accesses(&self, class: &RankClass) -> Vec<Access<'_>> {
        let mut accesses = Vec::new();
        for peer in &class.peers {
            let own = peer.delta == Delta::SELF;
            let sends = peer.sends.map(|link| (link, false));
            let receives = if own { None } else { peer.receives.map(|link| (link, true)) };
            for (link, inward) in sends.into_iter().chain(receives) {
                for (at, transfer) in self.links[link].iter().enumerate() {
                    let (direct, answer) = (self.wished(peer, link, at), transfer.is_answer());
                    let source = |part| (&transfer.source, false, part);
                    let target = |part| (&transfer.target, true, part);
                    let touched = match (own, inward, direct, answer) {
                        (true, ..) => [Some(source(Part::Own)), Some(target(Part::Lands))],
                        (_, true, false, _) => [Some(target(Part::Lands)), None],
                        (_, true, true, true) => [Some(target(Part::Loads)), None],
                        (_, true, true, false) => [Some(target(Part::Others)), None],
                        (_, false, true, true) => [Some(source(Part::Others)), None],
                        (_, false, true, false) => [Some(source(Part::Stores)), None],
                        (_, false, false, _) => [None, None],
                    };
                    for (side, write, part) in touched.into_iter().flatten() {
                        if let Some((window, datatype)) = side.window() {
                            let transfer = ((peer.delta, inward), at);
                            accesses.push(Access { window, datatype, write, part, transfer });
                        }
                    }
                }
            }
        }
        accesses
    }
}

/// Returns whether the order of a program's parts leaves these two accesses unordered.
fn unordered(a: &Access<'_>, b: &Access<'_>) -> bool {
    match (a.part, b.part) {
        (Part::Others, _) | (_, Part::Others) => true,
        // A rank's own copies read M, the memory before the epoch, so nothing may be unpacked
        // before these copies. Stores come before all unpacking.
        (Part::Own, other) | (other, Part::Own) => other != Part::Stores,
        _ => false,
    }
}

/// Chooses the routes, and creates the links of this stage.
struct Router<'a> {
    judge: &'a Judge<'a>,
    peers: &'a Peers,
    unsafe_here: &'a Table<ClassId, BTreeSet<(LinkEnd, usize)>>,
    rows: Classes,
    links: Table<LinkId, Route>,
    machine: &'a Machine,
    options: &'a Options,
    ordered: bool,
}

impl Router<'_> {
    /// Returns the class, with the links of this stage, of those ranks of `class` whose peers have
    /// the classes `others`. `others` is empty if the peers' classes make no difference.
    fn class(&mut self, class: ClassId, others: &[u32]) -> RankClass {
        let mut routed = self.peers.classes[class].clone();
        for (place, peer) in routed.peers.iter_mut().enumerate() {
            let other = others.get(place).map_or(class, |&other| ClassId(other));
            let before = *peer;
            if peer.delta == Delta::SELF {
                peer.sends =
                    before.sends.map(|link| self.link(link, &before, (class, (Delta::SELF, false)), None));
                peer.receives = peer.sends;
                continue;
            }
            let (here, there) = (peer.delta, peer.delta.back());
            peer.sends = before
                .sends
                .map(|link| self.link(link, &before, (class, (here, false)), Some((other, (there, true)))));
            peer.receives = before
                .receives
                .map(|link| self.link(link, &before, (other, (there, false)), Some((class, (here, true)))));
        }
        routed
    }

    /// Returns the link of this stage that is made from `link`. `from` and `to` describe the two
    /// ends of `link`: the class at this end, and the link as seen from this class.
    fn link(
        &mut self,
        link: LinkId,
        peer: &Peer,
        from: (ClassId, LinkEnd),
        to: Option<(ClassId, LinkEnd)>,
    ) -> LinkId {
        let own = peer.delta == Delta::SELF;
        let transfers = &self.judge.links[link];
        let direct: SmallVec<[bool; 16]> = (0..transfers.len())
            .map(|at| {
                self.judge.wished(peer, link, at)
                    && ![Some(from), to]
                        .into_iter()
                        .flatten()
                        .any(|(class, end)| self.unsafe_here[class].contains(&(end, at)))
            })
            .collect();
        let mut row: SmallVec<[u32; 4]> = smallvec![link.0, u32::from(own), u32::from(peer.shared)];
        row.extend(
            direct.chunks(32).map(|bits| bits.iter().fold(0, |word, &bit| word << 1 | u32::from(bit))),
        );
        let (id, new) = self.rows.intern(&row);
        if new {
            self.links.push(self.route(transfers, &direct, own, peer.shared));
        }
        LinkId(id)
    }

    fn route(&self, transfers: &[Transfer], direct: &[bool], own: bool, shared: bool) -> Route {
        let (mut copied, mut packed) = (Vec::new(), Vec::new());
        for (transfer, &direct) in transfers.iter().zip(direct) {
            if direct { copied.push(transfer.clone()) } else { packed.push(transfer.clone()) }
        }
        let automatic = || packed.iter().filter(|t| self.options.asked(t.asked) == Mode::Auto);
        let bytes: u64 = automatic().map(Transfer::bytes).sum();
        let whole =
            !shared && bytes <= WHOLE && packed.len() == 1 && automatic().all(Transfer::is_moved_as_it_is);
        let automatic =
            if !whole && self.machine.pieces_pay(shared, bytes) { Mode::Pipelined } else { Mode::Aggregated };
        let mode = |transfer: &Transfer| match self.options.asked(transfer.asked) {
            _ if own => Mode::Aggregated,
            Mode::Auto => automatic,
            Mode::Direct => Mode::Aggregated,
            mode => mode,
        };
        Route { direct: copied, messages: messages(packed, mode, self.ordered) }
    }
}

/// Divides `packed` into messages.
fn messages(packed: Vec<Transfer>, mode: impl Fn(&Transfer) -> Mode, ordered: bool) -> Vec<Message> {
    let answers = packed.iter().filter(|transfer| transfer.is_answer()).count();
    let modes: Vec<Mode> = packed.iter().map(mode).collect();
    let (first, later) = modes.split_at(answers);
    // If everything is sent in one mode other than aggressive, one message carries answers and puts
    // together.
    if modes.windows(2).all(|pair| pair[0] == pair[1])
        && modes.first().is_some_and(|&mode| mode != Mode::Aggressive)
    {
        return vec![Message { mode: modes[0], transfers: packed }];
    }
    let mut groups = group(first, 0);
    let puts = group(later, answers);
    if ordered && out_of_order(&packed, &puts) {
        groups.push((Mode::Aggregated, (answers..packed.len()).collect()));
    } else {
        groups.extend(puts);
    }
    let message = |(mode, members): (Mode, Vec<usize>)| Message {
        mode,
        transfers: members.into_iter().map(|at| packed[at].clone()).collect(),
    };
    groups.into_iter().map(message).collect()
}

/// Groups transfers by mode. `from` is the number of the first transfer. Each aggressive transfer
/// forms a group of its own and leaves first.
fn group(modes: &[Mode], from: usize) -> Vec<(Mode, Vec<usize>)> {
    let of = |wanted: Mode| {
        modes.iter().enumerate().filter(move |&(_, &mode)| mode == wanted).map(move |(at, _)| from + at)
    };
    let mut groups: Vec<_> = of(Mode::Aggressive).map(|at| (Mode::Aggressive, vec![at])).collect();
    for mode in [Mode::Aggregated, Mode::Pipelined] {
        groups.push((mode, of(mode).collect()));
    }
    groups.retain(|(_, members)| !members.is_empty());
    groups
}

/// Returns whether two writes to one element would leave in another order than that of the program,
/// although their order can be observed.
fn out_of_order(packed: &[Transfer], groups: &[(Mode, Vec<usize>)]) -> bool {
    let mut left: Vec<(usize, usize)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, (_, members))| members.iter().map(move |&at| (at, group)))
        .collect();
    left.sort_unstable();
    // If the groups ascend in program order, nothing is out of order. This is the common case,
    // which needs no comparison of transfers.
    if left.windows(2).all(|pair| pair[0].1 <= pair[1].1) {
        return false;
    }
    left.iter().enumerate().any(|(place, &(a, group))| {
        left[place + 1..].iter().any(|&(b, later)| {
            later < group && {
                let (a, b) = (&packed[a], &packed[b]);
                order_shows(a.kind, b.kind, a) && touch(a, b)
            }
        })
    })
}

fn touch(a: &Transfer, b: &Transfer) -> bool {
    match (a.target.window(), b.target.window()) {
        (Some((a_window, a)), Some((b_window, b))) => a_window == b_window && a.overlaps(b),
        _ => false,
    }
}

/// Returns whether the order of two writes to one element can be seen. `like` provides the element
/// type.
pub(super) fn order_shows(a: Kind, b: Kind, like: &Transfer) -> bool {
    match (a, b) {
        (Kind::Accumulate(a), Kind::Accumulate(b)) => a != b || a.order_shows(like.element),
        _ => true,
    }
}
