//! Turns every operation into a transfer between two ranks, and groups ranks by what they do and
//! what is done to them.
//!
//! ```text
//! c0: put w0 0..4 to +1 w0 8..12           l0: put w0 0..4 -> w0 8..12
//! c0: get +1 w0 0+[4 by -1]x1 to buffer    l1: get w0 0+[4 by -1]x1 -> op1 0..4
//! ```
//!
//! **Requires** patterns in which [`check`](crate::check::check) finds no error. **Ensures** that
//! operations without a target or without elements are gone. If both sides of a transfer are in
//! windows, the elements of its target ascend. A transfer can name only a range of a buffer, so a
//! transfer from or to a buffer keeps the order of elements that the call has. No element is the
//! destination of two gets of one rank: for each element, only the get that lands last is kept. The
//! transfers of a link begin with the answers, in the program order of the rank that issued the
//! gets. Puts and accumulates follow, in the program order of the rank that sends. **Cost** ranks x
//! peers small integer steps, and for each distinct pair of patterns the size of their datatypes.

use super::classes::Classes;
use super::cover::latest;
use super::neighbours::{Neighbour, Neighbours};
use crate::datatype::monotone;
use crate::ids::{ClassId, Delta, Id, LinkId, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Pattern, Patterns};
use crate::ir::peers::{Peer, Peers, RankClass};
use crate::ir::schedule::Placement;
use crate::ir::transfers::{Side, Transfer, Transfers};
use crate::table::Table;
use std::collections::BTreeMap;

/// See the [module](self).
pub fn normalise(patterns: &Patterns, placement: Placement) -> Transfers<'_> {
    let asked: Table<ClassId, Asked> =
        patterns.classes.values().map(|pattern| Asked::of(pattern, patterns)).collect();
    let neighbours = Neighbours::of(patterns);
    let mut links = Links { asked: &asked, keys: Classes::default(), links: Table::new(), ids: Vec::new() };
    let (mut rows, mut classes, mut row) = (Classes::default(), Table::new(), Vec::new());
    let class_of = (0..patterns.ranks())
        .map(|rank| {
            neighbours.write(Rank(rank), placement, &mut row);
            let (class, new) = rows.intern(&row);
            if new {
                classes.push(links.class(&row, patterns));
            }
            ClassId(class)
        })
        .collect();
    let Links { links, .. } = links;
    Transfers { patterns, placement, peers: Peers { classes, class_of }, links }
}

/// A pattern's transfers, by target.
struct Asked {
    /// The targets of operations that move something, ascending.
    targets: BTreeMap<Delta, Toward>,
}

/// A pattern's transfers with one target, in program order.
#[derive(Default)]
struct Toward {
    puts: Vec<Transfer>,
    gets: Vec<Transfer>,
    /// For each window of the target that is touched, the index after the highest element that is
    /// touched.
    reach: BTreeMap<WindowId, usize>,
}

impl Asked {
    fn of(pattern: &Pattern, patterns: &Patterns) -> Self {
        let mut targets: BTreeMap<Delta, Toward> = BTreeMap::new();
        let mut into: BTreeMap<WindowId, Vec<(Delta, Transfer)>> = BTreeMap::new();
        for (id, operation) in pattern.operations.iter() {
            let Some(target) = operation.target else { continue };
            if operation.remote.size() == 0 {
                continue;
            }
            let toward = targets.entry(target).or_default();
            let reach = toward.reach.entry(operation.window).or_default();
            *reach = (*reach).max(operation.remote.high() as usize);
            let transfer = transfer(id, operation, patterns);
            match (&transfer.target, operation.kind) {
                (Side::Window { window, .. }, Kind::Get) => {
                    into.entry(*window).or_default().push((target, transfer))
                }
                (Side::Operation { .. }, _) => toward.gets.push(transfer),
                _ => toward.puts.push(transfer),
            }
        }
        for landing in into.into_values() {
            let (from, landing): (Vec<Delta>, Vec<Transfer>) = landing.into_iter().unzip();
            let from: BTreeMap<OperationId, Delta> =
                landing.iter().map(|transfer| transfer.operations[0]).zip(from).collect();
            for transfer in latest(landing) {
                let target = from[&transfer.operations[0]];
                targets.entry(target).or_default().gets.push(transfer);
            }
        }
        for toward in targets.values_mut() {
            toward.gets.sort_by_key(|transfer| transfer.operations[0]);
        }
        Self { targets }
    }
}

fn transfer(id: OperationId, operation: &Operation, patterns: &Patterns) -> Transfer {
    let remote = Side::Window { window: operation.window, datatype: operation.remote.clone() };
    let local = match &operation.local {
        Local::Buffer => Side::Operation { operation: id, first: 0, count: operation.remote.size() },
        Local::Section { window, datatype } => Side::Window { window: *window, datatype: datatype.clone() },
    };
    let (source, target) = if operation.kind == Kind::Get { (remote, local) } else { (local, remote) };
    let (source, target) = ascending(source, target);
    let element = patterns.windows[operation.window];
    Transfer {
        kind: operation.kind,
        source,
        target,
        element,
        operations: vec![id],
        asked: operation.mode,
        folds: Vec::new(),
    }
}

/// Returns both sides. If both are in windows and the reordered datatypes can be built, both sides
/// are reordered so that the elements of the target ascend.
pub(super) fn ascending(source: Side, target: Side) -> (Side, Side) {
    if let (Some((from, origin)), Some((to, written))) = (source.window(), target.window())
        && written.as_run().is_none()
        && let Ok((origin, written)) = monotone(origin, written)
    {
        let side = |window, datatype| Side::Window { window, datatype };
        return (side(from, origin), side(to, written));
    }
    (source, target)
}

/// The links found so far.
struct Links<'a> {
    asked: &'a Table<ClassId, Asked>,
    keys: Classes,
    ids: Vec<Option<LinkId>>,
    links: Table<LinkId, Vec<Transfer>>,
}

impl Links<'_> {
    /// Returns the link from a rank with pattern `from` to a rank with pattern `to` at distance
    /// `delta`, or `None` if nothing is sent that way.
    fn link(&mut self, from: ClassId, to: ClassId, delta: Delta) -> Option<LinkId> {
        let (key, new) = self.keys.intern(&[from.0, to.0, delta.0 as u32, (delta.0 >> 32) as u32]);
        if new {
            let answers = self.asked[to].targets.get(&delta.back()).map_or(&[][..], |toward| &toward.gets);
            let puts = self.asked[from].targets.get(&delta).map_or(&[][..], |toward| &toward.puts);
            let all: Vec<Transfer> = answers.iter().chain(puts).cloned().collect();
            self.ids.push((!all.is_empty()).then(|| self.links.push(all)));
        }
        self.ids[key as usize]
    }

    /// Returns the class of a row that [`Neighbours::write`] wrote.
    fn class(&mut self, row: &[u32], patterns: &Patterns) -> RankClass {
        let (pattern, neighbours) = Neighbours::read(row);
        let mut least_len = vec![0; patterns.windows.len()];
        for operation in patterns.classes[pattern].operations.values() {
            if let (Some(_), Local::Section { window, datatype }) = (operation.target, &operation.local) {
                least_len[window.index()] = least_len[window.index()].max(datatype.high().max(0) as usize);
            }
        }
        let mut peers = Vec::with_capacity(row.len() / 4);
        for Neighbour { delta, pattern: other, shared } in neighbours {
            if let Some(toward) = self.asked[other].targets.get(&delta.back()) {
                for (window, &reach) in &toward.reach {
                    least_len[window.index()] = least_len[window.index()].max(reach);
                }
            }
            let sends = self.link(pattern, other, delta);
            let receives = self.link(other, pattern, delta.back());
            if sends.is_some() || receives.is_some() {
                peers.push(Peer { delta, shared, sends, receives });
            }
        }
        RankClass { pattern, peers, least_len }
    }
}
