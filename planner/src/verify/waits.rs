//! Checks that no ranks wait for each other in a cycle.
//!
//! The awaits of a run match the sends of the same run, since in each run as many frames are
//! awaited from each channel as are sent on it. A `Reclaim` waits for an earlier run. So runs need
//! not be unrolled: if one run has no cycle, neither does any number of runs in a row.
//!
//! The check first considers classes. The graph of (rank, instruction) maps into the graph of
//! (class, instruction), so if the graph of classes has no cycle, the graph of ranks has no cycle
//! either. If the graph of classes has a cycle (for example, if a value is passed along a chain of
//! ranks of one class), the ranks decide: each runs as far as it can, until all have finished or
//! none can continue.

use super::error::VerifyError;
use super::facts::Facts;
use crate::ids::{ClassId, Delta, Id, Rank};
use crate::table::Table;
use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use std::collections::BTreeSet;

/// The channels between classes: the class of the sender, the delta to the receiver, and the class
/// of the receiver.
pub(super) type Links = BTreeSet<(ClassId, Delta, ClassId)>;

pub(super) fn check(
    facts: &Table<ClassId, Facts<'_>>,
    class_of: &[ClassId],
    links: &Links,
    arena: &Bump,
) -> Result<(), VerifyError> {
    if by_class(facts, links, arena) { Ok(()) } else { by_rank(facts, class_of) }
}

/// Returns whether the graph of classes has no cycle.
fn by_class(facts: &Table<ClassId, Facts<'_>>, links: &Links, arena: &Bump) -> bool {
    let mut first = Vec::with_capacity(facts.len());
    let mut nodes = 0;
    for class in facts.values() {
        first.push(nodes);
        nodes += class.program.instructions.len();
    }
    let mut edges: Vec<ArenaVec<'_, u32>> = (0..nodes).map(|_| ArenaVec::new_in(arena)).collect();
    let mut before = vec![0_u32; nodes];
    for (class, facts) in facts.iter() {
        for at in 1..facts.program.instructions.len() {
            let node = first[class.index()] + at;
            edges[node - 1].push(node as u32);
            before[node] += 1;
        }
    }
    for &(from, delta, to) in links {
        let Some(there) = facts[from].peers.get(&delta) else { continue };
        let Some(back) = facts[to].peers.get(&delta.back()) else { continue };
        for (sent, awaited) in there.sent.iter().zip(&back.awaited) {
            let node = first[to.index()] + awaited.instruction;
            edges[first[from.index()] + sent.instruction].push(node as u32);
            before[node] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..nodes).filter(|&node| before[node] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for &next in &edges[node] {
            before[next as usize] -= 1;
            if before[next as usize] == 0 {
                ready.push(next as usize);
            }
        }
    }
    done == nodes
}

/// A use of a channel by a rank.
enum ChannelUse {
    Send(usize),
    Await(usize),
}

/// Runs each rank as far as it can go.
fn by_rank(facts: &Table<ClassId, Facts<'_>>, class_of: &[ClassId]) -> Result<(), VerifyError> {
    let deltas: Table<ClassId, Vec<Delta>> =
        facts.values().map(|facts| facts.peers.keys().copied().collect()).collect();
    let steps: Table<ClassId, Vec<(usize, ChannelUse)>> = facts
        .values()
        .map(|facts| {
            let mut steps: Vec<(usize, ChannelUse)> = Vec::new();
            for (index, peer) in facts.peers.values().enumerate() {
                steps.extend(peer.sent.iter().map(|sent| (sent.instruction, ChannelUse::Send(index))));
                steps.extend(
                    peer.awaited.iter().map(|awaited| (awaited.instruction, ChannelUse::Await(index))),
                );
            }
            steps.sort_by_key(|(at, _)| *at);
            steps
        })
        .collect();
    // The frames in transit to each rank from each of its peers, and the position of each rank in
    // its steps.
    let mut channel: Vec<Vec<u32>> = class_of.iter().map(|class| vec![0; deltas[*class].len()]).collect();
    let mut next = vec![0; class_of.len()];
    let mut ready: Vec<usize> = (0..class_of.len()).collect();
    while let Some(rank) = ready.pop() {
        let class = class_of[rank];
        while let Some((_, step)) = steps[class].get(next[rank]) {
            match *step {
                ChannelUse::Send(index) => {
                    let delta = deltas[class][index];
                    let to = (rank as i64 + delta.0) as usize;
                    if let Ok(back) = deltas[class_of[to]].binary_search(&delta.back()) {
                        channel[to][back] += 1;
                        let waits = steps[class_of[to]].get(next[to]);
                        if to != rank && matches!(waits, Some((_, ChannelUse::Await(from))) if *from == back)
                        {
                            ready.push(to);
                        }
                    }
                }
                ChannelUse::Await(index) if channel[rank][index] == 0 => break,
                ChannelUse::Await(index) => channel[rank][index] -= 1,
            }
            next[rank] += 1;
        }
    }
    // Start with a rank that waits, and go from each rank to the rank that it waits for, until a
    // rank repeats.
    let waiting = |rank: usize| {
        let (at, step) = steps[class_of[rank]].get(next[rank])?;
        let (ChannelUse::Await(index) | ChannelUse::Send(index)) = step;
        Some((*at, (rank as i64 + deltas[class_of[rank]][*index].0) as usize))
    };
    let Some(first) = (0..class_of.len()).find(|&rank| waiting(rank).is_some()) else { return Ok(()) };
    let mut cycle = vec![first];
    while let Some((_, to)) = cycle.last().and_then(|&rank| waiting(rank)) {
        if let Some(start) = cycle.iter().position(|&rank| rank == to) {
            cycle.drain(..start);
            break;
        }
        cycle.push(to);
    }
    let first = cycle[0];
    let names: Vec<String> = cycle.iter().take(8).map(|&rank| Rank::new(rank).to_string()).collect();
    let what = format!("{} ranks wait for each other in a cycle: {}", cycle.len(), names.join(", "));
    let at = waiting(first).map(|(at, _)| at);
    Err(VerifyError::WaitCycle(facts[class_of[first]].finding(Rank::new(first), at, what)))
}
