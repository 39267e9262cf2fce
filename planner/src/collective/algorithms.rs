//! The epochs of each algorithm of each collective.

use super::{Algorithm, Collective, Fold, Operation, Plan, SlotLen, Slots, Step, block, halves};
use crate::datatype::Datatype;
use crate::element::Op;
use crate::ids::{Delta, Rank, WindowId};
use crate::intern::Interner;
use crate::ir::pattern::{self, Kind, Local, Mode, Order, Pattern, Patterns, Site, Sync};
use std::collections::HashMap;
use std::ops::Range;

/// The only window of a plan.
const WINDOW: WindowId = WindowId(0);

pub(super) fn plan(what: &Collective, algorithm: Algorithm) -> Plan {
    let (ranks, len) = (what.ranks as usize, what.len);
    let slots = ranks.saturating_mul(len);
    let widest = len.div_ceil(ranks);
    // The window holds all elements, followed by a slot of one block for each rank.
    let blocks = len.saturating_add(widest.saturating_mul(ranks));
    let block_slot = |op, fold| {
        let len = SlotLen::BlockOf(len);
        Step::Combine(Slots { op, root: None, first: what.len, stride: widest, len, fold })
    };
    let (window, steps) = match (what.operation, algorithm) {
        (_, Algorithm::Direct)
        | (Operation::Gather { .. } | Operation::AllToAll, _)
        | (Operation::Allgather, Algorithm::Blocks) => {
            let all = epoch(what, |rank, calls| {
                for (to, from, at) in what.direct(rank) {
                    let into = at..at + from.len();
                    calls.put(to, from, into);
                }
            });
            let slots = what.direct_slots().map(Step::Combine);
            (what.direct_window(), [all].into_iter().chain(slots).collect())
        }
        (Operation::Broadcast { root }, Algorithm::Tree) => (len, binomial(what, root)),
        (Operation::Broadcast { root }, Algorithm::Blocks) => (len, {
            let deal = epoch(what, |rank, calls| {
                for to in others(what, rank).filter(|_| rank == root) {
                    let block = block(to, what.ranks, len);
                    calls.put(to, block.clone(), block);
                }
            });
            let all = epoch(what, |rank, calls| {
                for to in others(what, rank).filter(|&to| to != root) {
                    let block = block(rank, what.ranks, len);
                    calls.put(to, block.clone(), block);
                }
            });
            vec![deal, all]
        }),
        (Operation::Reduce { root, op }, Algorithm::Tree) => (len, up_the_tree(what, root, op)),
        (Operation::Reduce { root, op }, Algorithm::Blocks) => {
            let back = epoch(what, |rank, calls| {
                let block = block(rank, what.ranks, len);
                calls.put(root, len..len + block.len(), block);
            });
            (blocks, vec![into_blocks(what, widest), block_slot(op, Fold::Tree), back])
        }
        (Operation::Allreduce { op }, Algorithm::Tree) => (len, trade_halves(what, op)),
        (Operation::Allreduce { op }, Algorithm::Blocks) => {
            let back = epoch(what, |rank, calls| {
                let block = block(rank, what.ranks, len);
                for to in 0..what.ranks {
                    calls.put(to, len..len + block.len(), block.clone());
                }
            });
            (blocks, vec![into_blocks(what, widest), block_slot(op, Fold::Tree), back])
        }
        (Operation::Scan { op }, Algorithm::Tree) => {
            let doubled = |distance: u32| {
                epoch(what, |rank, calls| {
                    if let Some(to) = rank.checked_add(distance).filter(|&to| to < what.ranks) {
                        calls.accumulate(to, 0..len, op);
                    }
                })
            };
            (len, distances(what.ranks).map(doubled).collect())
        }
        (Operation::Scan { op }, Algorithm::Blocks) => {
            let back = epoch(what, |rank, calls| {
                let block = block(rank, what.ranks, len);
                for to in 0..what.ranks {
                    let slot = len + to as usize * widest;
                    calls.put(to, slot..slot + block.len(), block.clone());
                }
            });
            (blocks, vec![into_blocks(what, widest), block_slot(op, Fold::Prefixes), back])
        }
        (Operation::Allgather, Algorithm::Tree) => {
            let doubled = |distance: u32| {
                epoch(what, |rank, calls| {
                    let count = distance.min(what.ranks - distance) as usize * len;
                    let (to, at) = ((rank + what.ranks - distance) % what.ranks, distance as usize * len);
                    calls.put(to, 0..count, at..at + count);
                })
            };
            (slots, distances(what.ranks).map(doubled).collect())
        }
    };
    Plan { window, steps }
}

/// The calls of one rank in an epoch.
struct Calls {
    rank: u32,
    pattern: Pattern,
}

impl Calls {
    fn put(&mut self, to: u32, from: Range<usize>, into: Range<usize>) {
        self.call(Kind::Put, to, from, into);
    }

    fn accumulate(&mut self, to: u32, elements: Range<usize>, op: Op) {
        self.call(Kind::Accumulate(op), to, elements.clone(), elements);
    }

    fn call(&mut self, kind: Kind, to: u32, from: Range<usize>, into: Range<usize>) {
        if from.is_empty() {
            return;
        }
        self.pattern.operations.push(pattern::Operation {
            kind,
            window: WINDOW,
            target: Some(Delta::between(Rank(self.rank), Rank(to))),
            remote: Datatype::run(into),
            local: Local::Section { window: WINDOW, datatype: Datatype::run(from) },
            mode: Mode::Auto,
            site: Site::default(),
        });
    }
}

/// Builds an epoch from the calls of each rank.
fn epoch(what: &Collective, calls: impl Fn(u32, &mut Calls)) -> Step {
    let mut classes = Interner::default();
    let class_of = (0..what.ranks).map(|rank| {
        let mut made = Calls { rank, pattern: Pattern::default() };
        calls(rank, &mut made);
        classes.intern(made.pattern)
    });
    let class_of = class_of.collect();
    Step::Epoch(Patterns {
        name: "collective".into(),
        windows: [what.element].into_iter().collect(),
        shape: vec![what.ranks],
        classes: classes.into_table(),
        class_of,
        order: Order::Canonical,
        sync: Sync::Fence,
    })
}

fn others(what: &Collective, rank: u32) -> impl Iterator<Item = u32> + use<> {
    (0..what.ranks).filter(move |&other| other != rank)
}

/// Returns 1, 2, 4, ... below the number of ranks.
fn distances(ranks: u32) -> impl Iterator<Item = u32> {
    (0..31).map(|power| 1 << power).take_while(move |&distance| distance < ranks)
}

/// Builds the epoch in which each rank `r` puts block `b` of its elements to slot `r` on rank `b`,
/// for every `b`.
fn into_blocks(what: &Collective, widest: usize) -> Step {
    epoch(what, |rank, calls| {
        let slot = what.len + rank as usize * widest;
        for to in 0..what.ranks {
            let block = block(to, what.ranks, what.len);
            calls.put(to, block.clone(), slot..slot + block.len());
        }
    })
}

/// Builds the steps of a binomial tree. Ranks are counted from the root. In each step, every rank
/// that has the elements puts them to a rank that does not have them yet.
fn binomial(what: &Collective, root: u32) -> Vec<Step> {
    let ranks = what.ranks;
    let doubled = |have: u32| {
        epoch(what, |rank, calls| {
            let place = (rank + ranks - root) % ranks;
            if place < have && place + have < ranks {
                calls.put((rank + have) % ranks, 0..what.len, 0..what.len);
            }
        })
    };
    distances(ranks).map(doubled).collect()
}

/// Builds the steps in which results are combined up the tree. If the root is in a range, the root
/// holds the result of the range. Otherwise the first rank of the range holds it. If the root is in
/// the right half, the result of the left half is combined into the result of the right half. This
/// order changes the result only for REPLACE. In that case the right half already holds the result
/// of REPLACE, so nothing is sent.
fn up_the_tree(what: &Collective, root: u32, op: Op) -> Vec<Step> {
    let holder = |low: u32, high: u32| if (low..high).contains(&root) { root } else { low };
    let up = |ranges: Vec<[u32; 3]>| {
        let moves: HashMap<u32, u32> = ranges
            .into_iter()
            .filter_map(|[low, middle, high]| {
                let (left, right) = (holder(low, middle), holder(middle, high));
                let to_right = right == root;
                (!to_right || op != Op::Replace).then_some(if to_right {
                    (left, right)
                } else {
                    (right, left)
                })
            })
            .collect();
        epoch(what, |rank, calls| {
            if let Some(&to) = moves.get(&rank) {
                calls.accumulate(to, 0..what.len, op);
            }
        })
    };
    halves(what.ranks).into_iter().map(up).collect()
}

/// Builds the steps in which halves exchange results. In each range, every rank receives the result
/// of the other half, and combines it with the result of its own half. If the left half has one
/// more rank, the last rank of the right half sends to two ranks.
fn trade_halves(what: &Collective, op: Op) -> Vec<Step> {
    let trade = |ranges: Vec<[u32; 3]>| {
        let mut moves: Vec<Vec<u32>> = vec![Vec::new(); what.ranks as usize];
        for [low, middle, high] in ranges {
            let mut to = |from: u32, to: u32| moves[from as usize].push(to);
            for i in 0..high - middle {
                to(middle + i, low + i);
                // As in `up_the_tree`: for REPLACE, the right half already holds the result.
                if op != Op::Replace {
                    to(low + i, middle + i);
                }
            }
            if middle - low > high - middle {
                to(high - 1, middle - 1);
            }
        }
        epoch(what, |rank, calls| {
            moves[rank as usize].iter().for_each(|&to| calls.accumulate(to, 0..what.len, op));
        })
    };
    halves(what.ranks).into_iter().map(trade).collect()
}
