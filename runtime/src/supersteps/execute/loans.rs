//! [`loans`]: payloads that a transport may send in place while the run goes on.
//!
//! These payloads are not copied when they are posted, so nothing in the run may write them
//! afterwards (W2). Neither a later step may do so, nor a rank to which this rank's windows are
//! exposed. When the run is over, all payloads are taken back.

use crate::supersteps::execute::preposts::{Prepost, SHORTEST};
use crate::supersteps::execute::step::Step;
use std::ops::Range;

/// The maximum number of steps that are checked after a send. With this limit, the time of binding
/// is proportional to the number of steps.
const AFTER: usize = 1 << 10;

/// Marks the payloads of `rank` that stay in place until the run is over. Returns, ascending, the
/// ranks for which a transport may use memory of the run. `reader` returns the rank that reads a
/// buffer, and `lends_to` returns whether payloads for a rank may stay.
pub(super) fn loans(
    rank: usize,
    steps: &mut [Step],
    preposts: &[Prepost],
    reader: impl Fn(usize) -> usize,
    lends_to: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let exposes = steps.iter().any(|step| matches!(step, Step::Expose(_)));
    let mut borrowers: Vec<usize> = preposts.iter().map(|prepost| prepost.peer).collect();
    let mut left = steps;
    while let Some((step, rest)) = left.split_first_mut() {
        let is_soon_over = rest.len() <= AFTER;
        match step {
            Step::Send { buffer, bytes, stays, .. } if *bytes >= SHORTEST => {
                *stays = is_soon_over
                    && lends_to(reader(*buffer))
                    && !rest.iter().any(|step| packs(step, *buffer));
                borrowers.extend(stays.then(|| reader(*buffer)));
            }
            Step::SendInPlace { window, first, buffer, bytes, stays } if *bytes >= SHORTEST && !exposes => {
                let place = *first..*first + *bytes;
                *stays = is_soon_over
                    && lends_to(reader(*buffer))
                    && !rest.iter().any(|step| writes(rank, step, *window, &place));
                borrowers.extend(stays.then(|| reader(*buffer)));
            }
            _ => {}
        }
        left = rest;
    }
    borrowers.retain(|&peer| lends_to(peer));
    borrowers.sort_unstable();
    borrowers.dedup();
    borrowers
}

/// Returns whether a step writes some of these bytes of this rank's window.
fn writes(rank: usize, step: &Step, window: usize, bytes: &Range<usize>) -> bool {
    match step {
        Step::Copy { to, element, .. } | Step::Unpack { to, element, .. } => {
            to.meets(element.size as usize, rank, window, bytes)
        }
        _ => false,
    }
}

/// Returns whether a step writes to this buffer.
fn packs(step: &Step, written: usize) -> bool {
    matches!(step, Step::Pack { buffer, .. } | Step::Combine { buffer, .. } if *buffer == written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supersteps::execute::step::Where;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::{ElementType, Scalar};

    /// The smallest number of eight-byte elements whose payload may stay in place.
    const LONG: usize = SHORTEST / 8;

    /// Returns a step that sends elements of window 0, beginning with element `first`, to the
    /// reader of `buffer`.
    fn sends(first: usize, buffer: usize) -> Step {
        Step::SendInPlace { window: 0, first: 8 * first, buffer, bytes: SHORTEST, stays: false }
    }

    fn unpacks(elements: Range<usize>) -> Step {
        let to = Where::Window(0, 0, Datatype::run(elements));
        Step::Unpack { peer: 1, at: 0, to, op: None, element: ElementType::scalar(Scalar::F64) }
    }

    fn packs(buffer: usize) -> Step {
        Step::Pack { from: Where::Local { start: 0, bytes: SHORTEST }, count: LONG, size: 8, buffer, at: 0 }
    }

    fn packed(buffer: usize) -> Step {
        Step::Send { buffer, at: 0, bytes: SHORTEST, stays: false }
    }

    /// Returns which of the sending steps leave their payload in place, and the ranks that read
    /// these payloads. Ranks below 3 may borrow, and the number of a buffer is the number of its
    /// reader.
    fn found(mut steps: Vec<Step>) -> (Vec<bool>, Vec<usize>) {
        let borrowers = loans(0, &mut steps, &[], |buffer| buffer, |peer| peer < 3);
        let stay = |step: &Step| match step {
            Step::Send { stays, .. } | Step::SendInPlace { stays, .. } => Some(*stays),
            _ => None,
        };
        (steps.iter().filter_map(stay).collect(), borrowers)
    }

    #[test]
    fn what_nobody_writes_afterwards_stays() {
        let steps = || vec![unpacks(0..LONG), sends(0, 2), unpacks(LONG..2 * LONG), packs(1), packed(1)];
        assert_eq!(found(steps()), (vec![true, true], vec![1, 2]));
        for overlapping in [unpacks(LONG - 1..LONG), unpacks(0..1)] {
            let mut steps = steps();
            steps.push(overlapping);
            assert_eq!(found(steps), (vec![false, true], vec![1]), "it is written while it would be sent");
        }
        let mut again = steps();
        again.extend([packs(1), packed(1)]);
        assert_eq!(found(again), (vec![true, false, true], vec![1, 2]), "the buffer is packed twice");
    }

    #[test]
    fn nothing_stays_that_others_may_write_or_that_is_short_or_is_for_a_rank_that_borrows_nothing() {
        let exposed = vec![sends(0, 2), Step::Expose(4), packs(1), packed(1)];
        assert_eq!(found(exposed), (vec![false, true], vec![1]), "only buffers are out of reach");
        let short = Step::Send { buffer: 1, at: 0, bytes: SHORTEST - 1, stays: false };
        assert_eq!(found(vec![short, sends(0, 3)]), (vec![false, false], vec![]));
        let mut long = vec![sends(0, 2)];
        long.extend((0..=AFTER).map(|_| Step::Release(1)));
        assert_eq!(found(long), (vec![false], vec![]), "nobody looks that far");
    }
}
