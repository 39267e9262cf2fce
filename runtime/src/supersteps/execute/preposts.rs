//! [`Prepost`]: a place where a payload may be put as it arrives, so that unpacking it has nothing
//! left to do.
//!
//! Offering a place pays if the payload is one long run of this rank's window. A payload may arrive
//! while this rank still sends, so the place is offered as early as possible. Some steps before the
//! frame is unpacked may read or write the place. The offer comes after the last of these steps
//! (W2), so no rank can notice that the payload arrives early. A program that exposes its windows
//! offers no place: the frames that it awaits may also be reports that other ranks are done with
//! the windows.

use crate::supersteps::execute::step::{Step, Where};
use fencepost_planner::ir::schedule::Frame;
use std::ops::Range;

/// The shortest run, in bytes, for which offering a place pays.
pub(super) const SHORTEST: usize = 16 << 10;

/// The maximum number of steps between an offer and its await. With this limit, the time of binding
/// is proportional to the number of steps.
const AHEAD: usize = 1 << 8;

/// A place for the payload of one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Prepost {
    /// The step before which the place is offered.
    pub(super) before: usize,
    pub(super) peer: usize,
    /// The number of earlier frames of the peer that are not released before that step.
    pub(super) ahead: u64,
    /// The window, and the bytes of this rank's part of it.
    pub(super) window: usize,
    pub(super) bytes: Range<usize>,
}

/// Returns the offers of these steps of `rank`, in the order in which they are made. `far` returns
/// whether the frames of a rank are copied.
pub(super) fn preposts(rank: usize, steps: &[Step], far: impl Fn(usize) -> bool) -> Vec<Prepost> {
    if steps.iter().any(|step| matches!(step, Step::Expose(_))) {
        return Vec::new();
    }
    let awaits = steps.iter().enumerate().filter_map(|(at, step)| match step {
        Step::Await(peer, Frame::Data { bytes }) if *bytes >= SHORTEST as u64 && far(*peer) => {
            prepost(rank, steps, at, *peer, *bytes)
        }
        _ => None,
    });
    let mut all: Vec<Prepost> = awaits.collect();
    all.sort_by_key(|offer| offer.before); // stable: keeps the order of the awaits
    all
}

/// Returns the offer for the frame that step `at` awaits.
fn prepost(rank: usize, steps: &[Step], at: usize, peer: usize, whole: u64) -> Option<Prepost> {
    let used = steps[at..].iter().take_while(|step| !matches!(step, Step::Release(other) if *other == peer));
    let mut unpacks = used
        .enumerate()
        .filter(|(_, step)| matches!(step, Step::Unpack { peer: other, .. } if *other == peer));
    let (Some((after, Step::Unpack { at: 0, to, op: None, element, .. })), None) =
        (unpacks.next(), unpacks.next())
    else {
        return None;
    };
    let (window, bytes) = run(rank, to, element.size as usize)?;
    if bytes.len() as u64 != whole {
        return None;
    }
    let unpack = at + after;
    let apart = |step: &Step| !touches(rank, step, window, &bytes);
    let before = unpack - steps[..unpack].iter().rev().take(AHEAD).take_while(|step| apart(step)).count();
    if before > at {
        return None;
    }
    let awaited = |step: &Step| matches!(step, Step::Await(other, _) if *other == peer);
    let released = |step: &Step| matches!(step, Step::Release(other) if *other == peer);
    // At most one frame of a peer is open at a time. So the first step from `before` on that awaits
    // or releases a frame of the peer shows whether a frame is open at step `before`.
    let open = steps[before..=at].iter().find(|step| awaited(step) || released(step)).is_some_and(released);
    let ahead = steps[before..at].iter().filter(|step| awaited(step)).count() as u64 + u64::from(open);
    Some(Prepost { before, peer, ahead, window, bytes })
}

/// Returns the window of a part, and the bytes that the part covers in this rank's part of that
/// window. `None` unless the part is a run of elements of this rank.
fn run(rank: usize, part: &Where, size: usize) -> Option<(usize, Range<usize>)> {
    let Where::Window(owner, window, datatype) = part else { return None };
    let run = datatype.as_run().filter(|_| *owner == rank)?;
    let at = |element: i64| usize::try_from(element).ok()?.checked_mul(size);
    Some((*window, at(run.start)?..at(run.end)?))
}

/// Returns whether a step reads or writes some of these bytes of this rank's window. This is a
/// cheap test with false positives.
fn touches(rank: usize, step: &Step, window: usize, bytes: &Range<usize>) -> bool {
    let meets = |part: &Where, size: usize| part.meets(size, rank, window, bytes);
    match step {
        Step::Pack { from, size, .. } => meets(from, *size),
        Step::Combine { from, element, .. } => meets(from, element.size as usize),
        Step::SendInPlace { window: other, first, bytes: sent, .. } => {
            *other == window && *first < bytes.end && bytes.start < first + sent
        }
        Step::Copy { from, to, element, .. } => {
            meets(from, element.size as usize) || meets(to, element.size as usize)
        }
        Step::Unpack { to, element, .. } => meets(to, element.size as usize),
        Step::Expose(_)
        | Step::Reclaim(_)
        | Step::Send { .. }
        | Step::Await(..)
        | Step::Release(_)
        | Step::Done(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::{ElementType, Op, Scalar};

    const LONG: usize = SHORTEST / 8;
    const DOUBLE: ElementType = ElementType::scalar(Scalar::F64);

    /// Returns elements of rank 0's window 0.
    fn part(elements: Range<usize>) -> Where {
        Where::Window(0, 0, Datatype::run(elements))
    }

    fn awaits(peer: usize) -> Step {
        Step::Await(peer, Frame::Data { bytes: SHORTEST as u64 })
    }

    fn unpack(peer: usize, at: usize, to: Where, op: Option<Op>) -> Step {
        Step::Unpack { peer, at, to, op, element: DOUBLE }
    }

    fn sends(first: usize) -> Step {
        Step::SendInPlace { window: 0, first, buffer: 0, bytes: SHORTEST, stays: false }
    }

    /// Returns the offers of these steps; peers from 3 on share memory.
    fn found(steps: &[Step]) -> Vec<(usize, usize, u64)> {
        let preposts = preposts(0, steps, |peer| peer < 3);
        preposts.into_iter().map(|prepost| (prepost.before, prepost.peer, prepost.ahead)).collect()
    }

    #[test]
    fn a_place_is_offered_before_all_that_does_not_touch_it() {
        let frame = |first: usize| {
            [sends(first), awaits(1), unpack(1, 0, part(LONG..2 * LONG), None), Step::Release(1)]
        };
        assert_eq!(found(&frame(0)), [(0, 1, 0)]);
        assert_eq!(found(&frame(2 * SHORTEST)), [(0, 1, 0)]);
        for overlapping in [1, SHORTEST, 2 * SHORTEST - 1] {
            assert_eq!(found(&frame(overlapping)), [(1, 1, 0)], "what is sent in place is read first");
        }
        let prepost = &preposts(0, &frame(0), |_| true)[0];
        assert_eq!((prepost.window, prepost.bytes.clone()), (0, SHORTEST..2 * SHORTEST));
    }

    #[test]
    fn nothing_is_offered_for_what_is_not_all_of_one_long_run_of_a_far_ranks_frame() {
        let whole = || part(0..LONG);
        let frame = |steps: Vec<Step>| {
            let mut all = vec![awaits(1)];
            all.extend(steps);
            all.push(Step::Release(1));
            found(&all)
        };
        assert_eq!(frame(vec![unpack(1, 0, whole(), None)]).len(), 1);
        assert_eq!(frame(vec![unpack(1, 0, whole(), Some(Op::Sum))]), []);
        assert_eq!(frame(vec![unpack(1, 0, part(0..LONG - 1), None)]), []);
        assert_eq!(frame(vec![unpack(1, 8, whole(), None)]), []);
        assert_eq!(frame(vec![unpack(1, 0, whole(), None), unpack(1, 0, whole(), None)]), []);
        assert_eq!(frame(vec![unpack(1, 0, Where::Local { start: 0, bytes: SHORTEST }, None)]), []);
        let scattered = Datatype::nest(0, &[(LONG, 2)], 1).unwrap();
        assert_eq!(frame(vec![unpack(1, 0, Where::Window(0, 0, scattered), None)]), []);
        assert_eq!(frame(vec![]), []);
        let near = [awaits(3), unpack(3, 0, whole(), None), Step::Release(3)];
        assert_eq!(found(&near), []);
        let exposed = [Step::Expose(3), awaits(1), unpack(1, 0, whole(), None), Step::Release(1)];
        assert_eq!(found(&exposed), [], "others may still read there");
        let short = [
            Step::Await(1, Frame::Data { bytes: SHORTEST as u64 - 8 }),
            unpack(1, 0, part(0..LONG - 1), None),
            Step::Release(1),
        ];
        assert_eq!(found(&short), []);
    }

    #[test]
    fn what_is_written_between_an_await_and_its_unpacking_is_not_overtaken() {
        let other = unpack(2, 0, part(0..1), None);
        let steps = [awaits(2), awaits(1), other, unpack(1, 0, part(0..LONG), None), Step::Release(1)];
        assert_eq!(found(&steps), []);
    }

    #[test]
    fn frames_before_it_are_counted_from_where_the_place_is_offered() {
        let piece =
            |i: usize| [awaits(1), unpack(1, 0, part(i * LONG..(i + 1) * LONG), None), Step::Release(1)];
        let steps: Vec<Step> = (0..3).flat_map(piece).collect();
        assert_eq!(found(&steps), [(0, 1, 0), (0, 1, 1), (0, 1, 2)]);
        // A send reads the place of the last frame after the first frame was unpacked, and before
        // it is released.
        let mut steps = steps;
        steps.insert(2, sends(2 * SHORTEST));
        assert_eq!(found(&steps), [(0, 1, 0), (0, 1, 1), (3, 1, 2)]);
        let mut steps: Vec<Step> = (0..2).flat_map(piece).collect();
        steps.insert(3, sends(SHORTEST));
        assert_eq!(found(&steps), [(0, 1, 0), (4, 1, 0)]);
    }
}
