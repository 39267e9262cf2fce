//! Every operation becomes a transfer between two ranks, and ranks are grouped by what they do and what is done to them.
//!
//! ```text
//! c0: put w0 0..4 to +1 w0 8..12           l0: put w0 0..4 -> w0 8..12
//! c0: get +1 w0 0+[4 by -1]x1 to buffer    l1: get w0 0+[4 by -1]x1 -> op1 0..4
//! ```
//!
//! **Requires** patterns that [`check`](crate::compile::check) finds nothing wrong with.
//! **Ensures** operations without target or elements are gone; what is written ascends where the other side is a
//! window too (a buffer is only ever named by ranges, so there the order stays as written); no element is the
//! destination of two gets of one rank: the one that lands last is kept. A link's answers stand in the program order
//! of the rank that asked, then its puts and accumulates in that of the rank that sends.
//! **Cost** ranks x peers small integer steps, and for each distinct pair of patterns the size of their datatypes.

use super::classes::Classes;
use super::cover::latest;
use crate::datatype::try_monotone;
use crate::ids::{ClassId, Delta, Id, LinkId, OperationId, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Pattern, Patterns};
use crate::ir::peers::{Class, Peer, Peers};
use crate::ir::schedule::Placement;
use crate::ir::transfers::{Side, Transfer, Transfers};
use crate::table::Table;
use std::collections::BTreeMap;

/// See the [module](self).
pub fn normalise(patterns: &Patterns, placement: Placement) -> Transfers<'_> {
    let asked: Table<ClassId, Asked> =
        patterns.classes.values().map(|pattern| Asked::of(pattern, patterns)).collect();
    let origins = Origins::of(patterns, &asked);
    let mut links = Links { asked: &asked, keys: Classes::new(), links: Table::new(), ids: Vec::new() };
    let (mut rows, mut classes, mut row) = (Classes::new(), Table::new(), Vec::new());
    let class_of = (0..patterns.ranks())
        .map(|rank| {
            neighbourhood(patterns, placement, &asked, &origins, Rank(rank), &mut row);
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
    /// Targets of operations that move something, ascending.
    targets: BTreeMap<Delta, Toward>,
}

/// A pattern's transfers with one target, in program order.
#[derive(Default)]
struct Toward {
    puts: Vec<Transfer>,
    gets: Vec<Transfer>,
    /// For each window of the target that is touched, past its highest element touched.
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
    Transfer { kind: operation.kind, source, target, element, operations: vec![id], asked: operation.mode }
}

/// Both sides reordered so that the target ascends, where both are in windows and it can be written down.
pub(super) fn ascending(source: Side, target: Side) -> (Side, Side) {
    if let (Some((from, origin)), Some((to, written))) = (source.window(), target.window())
        && let Ok((origin, written)) = try_monotone(origin, written)
    {
        let side = |window, datatype| Side::Window { window, datatype };
        return (side(from, origin), side(to, written));
    }
    (source, target)
}

/// For each rank, who has operations on it, ascending.
struct Origins {
    starts: Vec<u32>,
    origins: Vec<u32>,
}

impl Origins {
    fn of(patterns: &Patterns, asked: &Table<ClassId, Asked>) -> Self {
        let targets: Vec<Vec<i64>> =
            asked.values().map(|asked| asked.targets.keys().map(|delta| delta.0).collect()).collect();
        let edges = || {
            patterns.class_of.iter().enumerate().flat_map(|(rank, class)| {
                targets[class.index()].iter().map(move |delta| (rank as u32, (rank as i64 + delta) as usize))
            })
        };
        let mut starts = vec![0_u32; patterns.class_of.len() + 1];
        for (_, target) in edges() {
            starts[target + 1] += 1;
        }
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut next = starts.clone();
        let mut origins = vec![0; starts[starts.len() - 1] as usize];
        for (origin, target) in edges() {
            origins[next[target] as usize] = origin;
            next[target] += 1;
        }
        Self { starts, origins }
    }

    fn on(&self, rank: Rank) -> &[u32] {
        &self.origins[self.starts[rank.index()] as usize..self.starts[rank.index() + 1] as usize]
    }
}

/// All that a rank's part of the stage follows from: its pattern, and for each peer its delta, pattern and reach.
fn neighbourhood(
    patterns: &Patterns,
    placement: Placement,
    asked: &Table<ClassId, Asked>,
    origins: &Origins,
    rank: Rank,
    row: &mut Vec<u32>,
) {
    let class = patterns.class_of[rank.index()];
    row.clear();
    row.push(class.0);
    let mut push = |delta: i64| {
        let peer = (i64::from(rank.0) + delta) as u32;
        let shared = placement.share(rank.0, peer);
        row.extend([
            delta as u32,
            (delta >> 32) as u32,
            patterns.class_of[peer as usize].0,
            u32::from(shared),
        ]);
    };
    let mut targets = asked[class].targets.keys().map(|delta| delta.0).peekable();
    for &origin in origins.on(rank) {
        let origin = i64::from(origin) - i64::from(rank.0);
        while let Some(target) = targets.next_if(|&target| target < origin) {
            push(target);
        }
        targets.next_if_eq(&origin);
        push(origin);
    }
    targets.for_each(push);
}

/// The links met so far.
struct Links<'a> {
    asked: &'a Table<ClassId, Asked>,
    keys: Classes,
    ids: Vec<Option<LinkId>>,
    links: Table<LinkId, Vec<Transfer>>,
}

impl Links<'_> {
    /// What goes from a rank with pattern `from` to one with pattern `to`, `delta` away.
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

    /// The class of a row that [`neighbourhood`] wrote.
    fn class(&mut self, row: &[u32], patterns: &Patterns) -> Class {
        let pattern = ClassId(row[0]);
        let mut least_len = vec![0; patterns.windows.len()];
        for operation in patterns.classes[pattern].operations.values() {
            if let (Some(_), Local::Section { window, datatype }) = (operation.target, &operation.local) {
                least_len[window.index()] = least_len[window.index()].max(datatype.high().max(0) as usize);
            }
        }
        let mut peers = Vec::with_capacity(row.len() / 4);
        for peer in row[1..].chunks_exact(4) {
            let delta = Delta((u64::from(peer[1]) << 32 | u64::from(peer[0])) as i64);
            let other = ClassId(peer[2]);
            if let Some(toward) = self.asked[other].targets.get(&delta.back()) {
                for (window, &reach) in &toward.reach {
                    least_len[window.index()] = least_len[window.index()].max(reach);
                }
            }
            let sends = self.link(pattern, other, delta);
            let receives = self.link(other, pattern, delta.back());
            if sends.is_some() || receives.is_some() {
                peers.push(Peer { delta, shared: peer[3] != 0, sends, receives });
            }
        }
        Class { pattern, peers, least_len }
    }
}
