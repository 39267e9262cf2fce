//! [`Cover`] records which elements of a window were visited. [`latest`] computes the parts of
//! several writes that no later write replaces.

use crate::datatype::{Datatype, MOST_RUNS, pairs};
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{Id, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Patterns};
use crate::ir::transfers::{Side, Transfer, Transfers};
use std::collections::BTreeMap;

/// A set of elements, as disjoint intervals.
#[derive(Default)]
pub(crate) struct Cover {
    /// Maps the first element of each interval to its end.
    intervals: BTreeMap<i64, i64>,
}

impl Cover {
    /// Returns the parts of `low..high` that are not in the set, highest first.
    pub(crate) fn gaps(&self, low: i64, high: i64) -> Vec<(i64, i64)> {
        let (mut gaps, mut end) = (Vec::new(), high);
        for (&a, &b) in self.intervals.range(..high).rev().take_while(|&(_, &b)| b > low) {
            if b < end {
                gaps.push((b, end));
            }
            end = end.min(a);
        }
        if low < end {
            gaps.push((low, end));
        }
        gaps
    }

    /// Adds `low..high`.
    pub(crate) fn add(&mut self, low: i64, high: i64) {
        if low >= high {
            return;
        }
        let (mut first, mut last) = (low, high);
        while let Some((&a, &b)) = self.intervals.range(..=last).next_back().filter(|&(_, &b)| b >= low) {
            (first, last) = (first.min(a), last.max(b));
            self.intervals.remove(&a);
        }
        self.intervals.insert(first, last);
    }
}

/// Returns true if two of `sets` share an element, or if one of them visits an element twice.
pub(crate) fn any_overlap(sets: &[&Datatype]) -> bool {
    let mut by_low: Vec<&Datatype> = sets.iter().copied().filter(|set| set.size() > 0).collect();
    by_low.sort_by_key(|set| set.low());
    if by_low.windows(2).all(|pair| pair[0].high() <= pair[1].low()) {
        return sets.iter().any(|set| set.overlaps_itself());
    }
    let runs = sets.iter().map(|set| set.run_count()).fold(0, usize::saturating_add);
    if runs > MOST_RUNS {
        return by_low.iter().enumerate().any(|(at, a)| {
            let near = by_low[at + 1..].iter().take_while(|b| b.low() < a.high());
            a.overlaps_itself() || near.into_iter().any(|b| a.overlaps(b))
        });
    }
    let mut cover = Cover::default();
    by_low.iter().flat_map(|set| set.run_iter()).any(|(low, run)| {
        let high = low + run as i64;
        let met = cover.gaps(low, high) != [(low, high)];
        cover.add(low, high);
        met
    })
}

/// Checks that overlapping gets that land in one rank's window have at most [`MOST_RUNS`] runs.
///
/// Overlapping operations are processed run by run, so the number of their runs must be limited.
///
/// # Errors
/// `NO_MEM`, which names the first rank that exceeds the limit.
pub(crate) fn landing_fits(patterns: &Patterns) -> Result<()> {
    for (class, pattern) in patterns.classes.iter() {
        let gets = pattern.operations.values().filter(|operation| operation.kind == Kind::Get);
        let landing = gets.filter(|operation| operation.target.is_some()).filter_map(|operation| {
            let Local::Section { window, datatype } = &operation.local else { return None };
            Some((*window, &operation.remote, datatype))
        });
        if let Some((window, runs)) = unwieldy(landing) {
            let rank = patterns.class_of.iter().position(|&of| of == class).unwrap_or(0);
            return Err(too_many("gets that land in", window, runs, Rank::new(rank), patterns));
        }
    }
    Ok(())
}

/// Checks that overlapping operations that arrive in one rank's window have at most [`MOST_RUNS`]
/// runs.
///
/// # Errors
/// `NO_MEM`, which names the first rank whose arriving operations exceed the limit.
pub(crate) fn arriving_fits(transfers: &Transfers<'_>) -> Result<()> {
    let Transfers { patterns, peers, links, .. } = transfers;
    for (id, class) in peers.classes.iter() {
        let incoming = class.peers.iter().filter_map(|peer| peer.receives).flat_map(|link| &links[link]);
        let buffer = Datatype::empty();
        let arriving = incoming.filter_map(|transfer| {
            let (window, target) = transfer.target.window()?;
            let source = transfer.source.window().map_or(&buffer, |(_, datatype)| datatype);
            Some((window, source, target))
        });
        if let Some((window, runs)) = unwieldy(arriving) {
            let rank = peers.class_of.iter().position(|&of| of == id).unwrap_or(0);
            return Err(too_many("operations on", window, runs, Rank::new(rank), patterns));
        }
    }
    Ok(())
}

/// Returns the first window in which overlapping writes have more than [`MOST_RUNS`] runs, and the
/// number of these runs. The runs of sources and of targets count.
fn unwieldy<'d>(
    written: impl Iterator<Item = (WindowId, &'d Datatype, &'d Datatype)>,
) -> Option<(WindowId, usize)> {
    let mut windows: BTreeMap<WindowId, (usize, Vec<&Datatype>)> = BTreeMap::new();
    for (window, source, target) in written {
        let (runs, all) = windows.entry(window).or_default();
        *runs = runs.saturating_add(source.run_count()).saturating_add(target.run_count());
        all.push(target);
    }
    let mut many = windows.into_iter().filter(|(_, (runs, _))| *runs > MOST_RUNS);
    many.find(|(_, (_, all))| any_overlap(all)).map(|(window, (runs, _))| (window, runs))
}

fn too_many(what: &str, window: WindowId, runs: usize, rank: Rank, patterns: &Patterns) -> Error {
    let message = format!(
        "{what} window {window} of this rank overlap and have {runs} runs: overlapping operations of one epoch may have {MOST_RUNS} runs for one rank; name fewer elements twice, or divide the epoch"
    );
    Error::new(ErrorClass::NoMem, message).on_rank(rank.index()).in_superstep(&patterns.name)
}

/// Returns the parts of `transfers` that no later transfer replaces, in the same order. All
/// transfers store into one window, one after another.
///
/// # Cost
/// Proportional to the runs; next to nothing if no two of them overlap.
pub(crate) fn latest(transfers: Vec<Transfer>) -> Vec<Transfer> {
    let targets: Vec<&Datatype> = transfers
        .iter()
        .filter_map(|transfer| transfer.target.window())
        .map(|(_, datatype)| datatype)
        .collect();
    if !any_overlap(&targets) {
        return transfers;
    }
    let mut cover = Cover::default();
    let mut kept: Vec<Transfer> = transfers
        .into_iter()
        .rev()
        .flat_map(|transfer| survivors(transfer, &mut cover, true).into_iter().rev())
        .collect();
    kept.reverse();
    kept
}

/// The number of bytes that each additional transfer must save. A transfer can name only a range of
/// a buffer, so the elements of a buffer that remain may need many transfers.
const SAVED: usize = 64;

/// Returns the part of `transfer` whose target is not in `cover`. Then adds the target to `cover`
/// if the transfer `replaces` its elements.
pub(crate) fn survivors(transfer: Transfer, cover: &mut Cover, replaces: bool) -> Vec<Transfer> {
    let Some((window, target)) = transfer.target.window() else { return vec![transfer] };
    let source = match &transfer.source {
        Side::Window { datatype, .. } => datatype.clone(),
        Side::Operation { first, count, .. } => Datatype::run(*first..first + count),
    };
    let steps: Vec<(i64, i64, usize)> = pairs(&source, target).collect();
    let mut kept = Vec::new();
    for &(from, to, run) in steps.iter().rev() {
        let high = to + run as i64;
        for (low, high) in cover.gaps(to, high) {
            kept.push((from + (low - to), low, (high - low) as usize));
        }
        if replaces {
            cover.add(to, high);
        }
    }
    kept.reverse();
    if kept == steps {
        return vec![transfer];
    }
    // `check` refuses lists of more than `MOST_RUNS` runs that overlap.
    let runs = |list: &mut dyn Iterator<Item = (i64, usize)>| Datatype::runs(list).expect("a few runs");
    let side = |steps: &[(i64, i64, usize)]| Side::Window {
        window,
        datatype: runs(&mut steps.iter().map(|&(_, to, run)| (to, run))),
    };
    match &transfer.source {
        _ if kept.is_empty() => Vec::new(),
        Side::Window { window, .. } => {
            let datatype = runs(&mut kept.iter().map(|&(from, _, run)| (from, run)));
            vec![Transfer {
                source: Side::Window { window: *window, datatype },
                target: side(&kept),
                ..transfer
            }]
        }
        Side::Operation { operation, .. } => {
            let pieces = || kept.chunk_by(|a, b| a.0 + a.2 as i64 == b.0);
            let left: usize = kept.iter().map(|step| step.2).sum();
            let saved = (transfer.size() - left) * transfer.element.size as usize;
            if (pieces().count() - 1) * SAVED > saved {
                return vec![transfer];
            }
            let piece = |steps: &[(i64, i64, usize)]| {
                let count = steps.iter().map(|step| step.2).sum();
                let source = Side::Operation { operation: *operation, first: steps[0].0 as usize, count };
                Transfer { source, target: side(steps), ..transfer.clone() }
            };
            pieces().map(piece).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cover;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cover_gives_back_exactly_what_it_had_not(adds in prop::collection::vec((0_i64..40, 0_i64..12), 0..20)) {
            let mut cover = Cover::default();
            let mut plain = [false; 64];
            for (low, len) in adds {
                let new = cover.gaps(low, low + len);
                cover.add(low, low + len);
                let mut expected: Vec<i64> = (low..low + len).filter(|&e| !plain[e as usize]).collect();
                plain[low as usize..(low + len) as usize].fill(true);
                expected.reverse();
                prop_assert_eq!(new.into_iter().flat_map(|(a, b)| (a..b).rev()).collect::<Vec<_>>(), expected);
            }
        }
    }
}
