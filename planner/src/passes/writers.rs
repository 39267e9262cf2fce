//! The part of [`coalesce`](super::coalesce) that finds which writes to an element can be seen.
//!
//! The pass visits all writes to a rank from last to first, in canonical order. A write before a
//! put (or a REPLACE) of the same element cannot be seen, whichever rank issued the write, so the
//! write is not sent. Likewise, an answer to a get cannot be seen if a rank puts to the elements
//! where the answer arrives. In a relaxed epoch every order is valid, so the pass may use the
//! canonical order there, too.
//!
//! Afterwards the content of a link depends on the other ranks that write to its target, so ranks
//! are grouped again, by their class and the classes of their peers.

use super::classes::regrouped;
use super::cover::{Cover, any_overlap, survivors};
use crate::datatype::Datatype;
use crate::element::Op;
use crate::ids::{ClassId, LinkId, WindowId};
use crate::intern::Interner;
use crate::ir::pattern::Kind;
use crate::ir::peers::{Peers, RankClass};
use crate::ir::transfers::{Transfer, Transfers};
use crate::table::Table;
use std::collections::BTreeMap;

/// Keeps only those writes to each element that can be seen.
pub(super) fn one_writer(transfers: Transfers<'_>) -> Transfers<'_> {
    let Transfers { patterns, placement, peers, links } = transfers;
    let seen: Table<ClassId, Option<Vec<Vec<Transfer>>>> =
        peers.classes.values().map(|class| seen_of(class, &links)).collect();
    if seen.values().all(Option::is_none) {
        return Transfers { patterns, placement, peers, links };
    }
    // The links of this stage, each with the earlier link from which it was made.
    let mut variants: Interner<LinkId, (LinkId, Vec<Transfer>)> = Interner::default();
    // For each class and peer, the link with the remaining transfers from the peer to the class.
    let received: Table<ClassId, Vec<Option<LinkId>>> = peers
        .classes
        .iter()
        .map(|(id, class)| {
            let mut left = seen[id].clone().map(Vec::into_iter);
            let links = class.peers.iter().map(|peer| {
                let left = left.as_mut().and_then(Iterator::next);
                let link = peer.receives?;
                let left = left.unwrap_or_else(|| links[link].clone());
                (!left.is_empty()).then(|| variants.intern((link, left)))
            });
            links.collect()
        })
        .collect();
    let peers = grouped(&peers, &received);
    let links = variants.into_table().into_values().map(|(_, transfers)| transfers).collect();
    Transfers { patterns, placement, peers, links }
}

/// Returns the transfers to a rank of this class that can be seen, by peer, or `None` if all
/// transfers can be seen.
fn seen_of(class: &RankClass, links: &Table<LinkId, Vec<Transfer>>) -> Option<Vec<Vec<Transfer>>> {
    let incoming = |place: usize| class.peers[place].receives.map_or(&[][..], |link| &links[link]);
    let mut written: BTreeMap<WindowId, (bool, Vec<&Datatype>)> = BTreeMap::new();
    for transfer in (0..class.peers.len()).flat_map(incoming) {
        if let Some((window, datatype)) = transfer.target.window() {
            let (replaced, all) = written.entry(window).or_default();
            *replaced |= replaces(transfer);
            all.push(datatype);
        }
    }
    if !written.values().any(|(replaced, all)| *replaced && any_overlap(all)) {
        return None;
    }
    let mut covers: BTreeMap<WindowId, Cover> = BTreeMap::new();
    let mut seen = vec![Vec::new(); class.peers.len()];
    let mut changed = false;
    for answers in [false, true] {
        for place in (0..class.peers.len()).rev() {
            for transfer in incoming(place).iter().rev().filter(|transfer| transfer.is_answer() == answers) {
                let Some((window, _)) = transfer.target.window() else {
                    seen[place].push(transfer.clone());
                    continue;
                };
                let cover = covers.entry(window).or_default();
                let left = survivors(transfer.clone(), cover, replaces(transfer));
                changed |= left.as_slice() != std::slice::from_ref(transfer);
                seen[place].extend(left.into_iter().rev());
            }
        }
    }
    seen.iter_mut().for_each(|transfers| transfers.reverse());
    changed.then_some(seen)
}

/// Returns whether `transfer` hides everything that was written before it.
fn replaces(transfer: &Transfer) -> bool {
    matches!(transfer.kind, Kind::Put | Kind::Accumulate(Op::Replace))
}

/// Groups the ranks by the links on which they now send and receive.
fn grouped(peers: &Peers, received: &Table<ClassId, Vec<Option<LinkId>>>) -> Peers {
    let mut regrouped = regrouped(peers, true, |class, others| {
        let mut now = peers.classes[class].clone();
        for (place, peer) in now.peers.iter_mut().enumerate() {
            let other = ClassId(others[place]);
            peer.receives = received[class][place];
            peer.sends = peer.sends.and_then(|_| {
                let back = peers.classes[other].place(peer.delta.back())?;
                received[other][back]
            });
        }
        now
    });
    for class in regrouped.classes.values_mut() {
        class.peers.retain(|peer| peer.sends.is_some() || peer.receives.is_some());
    }
    regrouped
}
