//! Elements that a rank keeps while an epoch runs. The verifier accepts the kept elements of good
//! schedules, and refuses them if there is one element too many.

use super::good::good;
use crate::support::{by_rank, random};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Patterns};
use fencepost_planner::ir::schedule::{Instruction, Part, Schedule};
use fencepost_planner::kept::Kept;
use fencepost_planner::verify::{verify, verify_kept};
use std::collections::BTreeSet;

/// Elements of one rank's windows: those that are read, and those that are written.
#[derive(Default)]
struct Elements {
    read: BTreeSet<(WindowId, i64)>,
    written: BTreeSet<(WindowId, i64)>,
}

impl Elements {
    fn add(&mut self, window: WindowId, elements: &Datatype, writes: bool) {
        let set = if writes { &mut self.written } else { &mut self.read };
        set.extend(elements.element_iter().map(|element| (window, element)));
    }
}

/// Returns the elements that the calls of all ranks name, by rank.
fn named(patterns: &Patterns) -> Vec<Elements> {
    let mut all: Vec<Elements> = patterns.class_of.iter().map(|_| Elements::default()).collect();
    for (rank, pattern) in by_rank(patterns).iter().enumerate() {
        for call in pattern.operations.values() {
            let Some(Delta(to)) = call.target.filter(|_| !call.remote.is_empty()) else { continue };
            let is_get = call.kind == Kind::Get;
            all[(rank as i64 + to) as usize].add(call.window, &call.remote, !is_get);
            if let Local::Section { window, datatype } = &call.local {
                all[rank].add(*window, datatype, is_get);
            }
        }
    }
    all
}

/// Returns the elements that the instructions of all ranks touch, by rank.
fn touched(schedule: &Schedule) -> Vec<Elements> {
    let mut all: Vec<Elements> = schedule.class_of.iter().map(|_| Elements::default()).collect();
    for (rank, class) in schedule.class_of.iter().enumerate() {
        for instruction in &schedule.classes[*class].instructions {
            let (from, to) = match instruction {
                Instruction::Pack { from, .. } | Instruction::Combine { from, .. } => (Some(from), None),
                Instruction::Unpack { to, .. } => (None, Some(to)),
                Instruction::Copy { from, to, .. } => (Some(from), Some(to)),
                _ => (None, None),
            };
            for (part, writes) in [(from, false), (to, true)] {
                if let Some(Part::Window { owner: Delta(to), window, datatype }) = part {
                    all[(rank as i64 + to) as usize].add(*window, datatype, writes);
                }
            }
        }
    }
    all
}

/// Returns `kept` with one more kept element. If `only_written`, the element is marked as not
/// written, and otherwise as not touched.
fn wider(kept: &Kept, (window, element): (WindowId, i64), only_written: bool) -> Kept {
    let mut kept = kept.clone();
    for access in &mut kept.accesses {
        if access.window == window && (access.writes || !only_written) {
            let others = access.elements.element_iter().filter(|other| *other != element);
            access.elements = Datatype::elements(others.collect::<Vec<_>>()).unwrap();
        }
    }
    kept
}

#[test]
fn what_a_rank_keeps_is_what_no_call_names() {
    for (patterns, schedule) in good() {
        for (rank, named) in named(&patterns).iter().enumerate() {
            let kept = Kept::of(&schedule, Rank::new(rank));
            for (window, element) in
                patterns.windows.ids().flat_map(|w| (0..random::LEN + 4).map(move |e| (w, e)))
            {
                let keeps =
                    |writes| kept.conflict(window, &Datatype::run(element..element + 1), writes).is_none();
                let at = (window, element as i64);
                let (written, read) = (named.written.contains(&at), named.read.contains(&at));
                assert_eq!(
                    (keeps(false), keeps(true)),
                    (!written, !written && !read),
                    "{window} {element} of {rank}"
                );
            }
        }
    }
}

/// The verifier refuses to keep any element that an instruction touches. If later operations
/// replace all operations on an element, no instruction touches the element, so it may be kept.
#[test]
fn one_element_too_many_is_refused_by_name_at_every_element_of_every_schedule() {
    let (mut schedules, mut refused, mut untouched) = (0, 0, 0);
    for (index, (patterns, schedule)) in good().into_iter().enumerate().filter(|(index, _)| index % 4 == 0) {
        let (named, touched) = (named(&patterns), touched(&schedule));
        let schedule = verify(&patterns, schedule).expect("it is good");
        let mut some = false;
        for (rank, (named, touched)) in named.iter().zip(&touched).enumerate() {
            let kept = Kept::of(&schedule, Rank::new(rank));
            let place = |at: &(WindowId, i64)| format!("schedule {index}, rank {rank}, {} {}", at.0, at.1);
            verify_kept(&schedule, kept.clone()).unwrap_or_else(|error| panic!("schedule {index}: {error}"));
            let all: BTreeSet<_> = named.read.union(&named.written).copied().collect();
            for (only_written, at) in all.iter().flat_map(|at| [(false, at), (true, at)]) {
                if only_written && !named.written.contains(at) {
                    continue;
                }
                let verdict = verify_kept(&schedule, wider(&kept, *at, only_written));
                // An instruction may still read an element that is only marked as not written.
                let shows = touched.written.contains(at) || !only_written && touched.read.contains(at);
                match verdict {
                    Err(error) => {
                        assert!(shows && error.name() == "NotKept", "{}: {error}", place(at));
                        let says = format!("{} {} of {}", at.0, at.1, Rank::new(rank));
                        assert!(error.to_string().contains(&says), "{}: {error}", place(at));
                        (some, refused) = (true, refused + 1);
                    }
                    Ok(_) => {
                        assert!(!shows, "{}: accepted", place(at));
                        untouched += 1;
                    }
                }
            }
        }
        schedules += usize::from(some);
    }
    assert!(schedules >= 100 && refused > 5000, "{schedules} schedules, {refused} refused");
    assert!(untouched > 0 && untouched * 5 < refused, "{untouched} that no instruction touches");
}
