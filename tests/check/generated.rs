//! Generated epochs. Each conflict that the reference interpreter finds is reported with both
//! lines, and no other conflict is reported.

use crate::ends::{are_processes, lowest};
use fencepost::prelude::*;
use fencepost::{Check, TransportKind, ranks};
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Delta, Id, OperationId, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Pattern, Site};
use fencepost_planner::table::Table;
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Conflicting, Epoch, conflicts, refused};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::sim;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of elements of each rank's part of each window.
pub(crate) const LEN: usize = 24;
/// The largest number of operations of an epoch. Each operation is called at a line of its own.
pub(crate) const MOST: usize = 12;
/// At most this number of conflicts on the elements of one rank is reported.
const TOLD: usize = 20;

/// An operation of an epoch, and the rank that calls it.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) rank: usize,
    pub(crate) operation: Operation,
}

impl Called {
    /// Returns the target of the operation.
    pub(crate) fn target(&self) -> Option<usize> {
        self.operation.target.map(|target| (self.rank as i64 + target.0) as usize)
    }
}

pub(crate) type Act = fn(&[Window<u64>; 2], &Called, u64) -> Result<()>;

/// The line before the first of [`LINES`].
pub(crate) const BEFORE: u32 = line!() + 3;
#[rustfmt::skip]
pub(crate) const LINES: [Act; MOST] = [
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
    |windows, called, seed| perform(windows, called, seed),
];

/// Returns the values for an operation.
fn values(seed: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|at| (seed * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).collect()
}

/// Calls the operation. The line of the caller counts as the line of the call.
#[track_caller]
fn perform(windows: &[Window<u64>; 2], called: &Called, seed: u64) -> Result<()> {
    let Operation { kind, window, remote, local, mode, .. } = &called.operation;
    let to = called.target();
    let own = &windows[window.index()];
    match (kind, local) {
        (Kind::Get, Local::Buffer) => own.fetch(to, remote).map(drop),
        (Kind::Get, Local::Section { window, datatype }) => {
            own.get(windows[window.index()].section(datatype.clone())).from(to, remote)
        }
        (Kind::Put, Local::Buffer) => {
            let values = values(seed, remote.size());
            match remote.as_run() {
                Some(run) => own.put(&values).mode(*mode).to(to, run.start as usize),
                None => own.put(&values).mode(*mode).to(to, remote),
            }
        }
        (Kind::Put, Local::Section { window, datatype }) => {
            own.put(windows[window.index()].section(datatype.clone())).mode(*mode).to(to, remote)
        }
        (Kind::Accumulate(op), Local::Buffer) => {
            own.accumulate(&values(seed, remote.size()), *op).to(to, remote)
        }
        (Kind::Accumulate(op), Local::Section { window, datatype }) => {
            own.accumulate(windows[window.index()].section(datatype.clone()), *op).to(to, remote)
        }
    }
}

/// Draws some elements of a part. If `size` is `Some`, draws this number of elements.
fn elements(dice: &mut Random, size: Option<usize>) -> Datatype {
    loop {
        let count = size.unwrap_or_else(|| 1 + dice.below(5));
        let at = dice.below(LEN);
        let made = match dice.below(4) {
            0 | 1 => Datatype::run(at..at + count),
            2 => Datatype::nest(at as i64, &[(count, 1 + dice.below(5) as i64)], 1).unwrap(),
            _ => Datatype::elements((0..count).map(|_| dice.below(LEN) as i64).collect::<Vec<_>>()).unwrap(),
        };
        if made.high() <= LEN as i64 && made.size() == count {
            return made;
        }
    }
}

pub(crate) fn called(dice: &mut Random, ranks: usize) -> Called {
    let (rank, target) = (dice.below(ranks), dice.below(ranks));
    let kind = dice.one_of(&[
        Kind::Put,
        Kind::Put,
        Kind::Get,
        Kind::Get,
        Kind::Accumulate(Op::Sum),
        Kind::Accumulate(Op::Sum),
        Kind::Accumulate(Op::Max),
        Kind::Accumulate(Op::Replace),
    ]);
    let remote = elements(dice, None);
    let local = match dice.below(3) {
        0 => Local::Section {
            window: WindowId::new(dice.below(2)),
            datatype: elements(dice, Some(remote.size())),
        },
        _ => Local::Buffer,
    };
    let target = Some(Delta::between(Rank::new(rank), Rank::new(target)));
    let (window, mode, site) = (WindowId::new(dice.below(2)), dice.one_of(&Mode::ALL), Site::default());
    Called { rank, operation: Operation { kind, window, target, remote, local, mode, site } }
}

/// Returns the epoch of these calls in the form that the reference uses. The calls of each rank
/// keep their order.
pub(crate) fn law(calls: &[Called], ranks: usize) -> Epoch {
    let mut epoch = Epoch::default();
    for rank in 0..ranks {
        let (mut operations, mut sources) = (Table::new(), BTreeMap::new());
        for (number, call) in calls.iter().enumerate().filter(|(_, call)| call.rank == rank) {
            let id = operations.push(call.operation.clone());
            if call.operation.local == Local::Buffer && call.operation.kind != Kind::Get {
                let values = values(number as u64, call.operation.remote.size());
                sources.insert(id, values.iter().flat_map(|value| value.to_ne_bytes()).collect());
            }
        }
        epoch.patterns.push(Pattern { operations });
        epoch.sources.push(sources);
    }
    epoch
}

/// Returns the index in `calls` of a rank's operation.
pub(crate) fn number(calls: &[Called], rank: Rank, operation: OperationId) -> usize {
    let own = calls.iter().enumerate().filter(|(_, call)| call.rank == rank.index());
    own.map(|(number, _)| number).nth(operation.index()).expect("the operation is one of the calls")
}

/// A conflict: the window, the rank that owns the elements, the range of the elements, and a pair
/// of rank and line for each of the two operations. The lower pair is first.
pub(crate) type Found = (u64, u64, [u64; 2], [(u64, u64); 2]);

/// The conflicts according to the reference: those that are reported at calls, and those at the
/// fence. `left` has `true` for each call that is not refused.
struct Meant {
    at_calls: Vec<Found>,
    at_the_fence: Vec<Found>,
    left: Vec<bool>,
}

impl Meant {
    fn of(calls: &[Called], ranks: usize) -> Self {
        let as_found = |found: &Conflicting, number: &dyn Fn(Rank, OperationId) -> usize| {
            let [a, b] = found.between.map(|(rank, operation)| {
                (rank.index() as u64, u64::from(BEFORE) + number(rank, operation) as u64)
            });
            let ends = [found.elements[0] as u64, *found.elements.last().expect("one at least") as u64 + 1];
            (found.window.index() as u64, found.rank.index() as u64, ends, [a.min(b), a.max(b)])
        };
        let (at_calls, mut left) = (refused(&law(calls, ranks)), vec![true; calls.len()]);
        let all = |rank, operation| number(calls, rank, operation);
        for Conflicting { between: [_, (rank, operation)], .. } in &at_calls {
            left[all(*rank, *operation)] = false;
        }
        let numbers: Vec<usize> = (0..calls.len()).filter(|at| left[*at]).collect();
        let others: Vec<Called> = numbers.iter().map(|at| calls[*at].clone()).collect();
        let of_others = |rank, operation| numbers[number(&others, rank, operation)];
        let mut at_calls: Vec<Found> = at_calls.iter().map(|found| as_found(found, &all)).collect();
        let at_the_fence = conflicts(&law(&others, ranks));
        let mut at_the_fence: Vec<Found> =
            at_the_fence.iter().map(|found| as_found(found, &of_others)).collect();
        at_calls.sort();
        at_the_fence.sort();
        Self { at_calls, at_the_fence, left }
    }
}

/// Returns the conflicts of these calls according to the reference.
pub(crate) fn expected(calls: &[Called], ranks: usize) -> Vec<Found> {
    let Meant { at_calls, at_the_fence, .. } = Meant::of(calls, ranks);
    [at_calls, at_the_fence].concat()
}

/// Returns the numbers that follow `word` in a line of a report.
fn after(line: &str, word: &str) -> Vec<u64> {
    let key = format!("\"{word}\":");
    let parts = line.split(&key[..]).skip(1);
    parts
        .map(|rest| {
            let digits = rest.trim_start_matches('[').split(|c: char| !c.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).expect("a number")
        })
        .collect()
}

pub(crate) fn found(line: &str) -> Found {
    let (windows, own, lines) = (after(line, "window"), after(line, "rank"), after(line, "line"));
    let ends = line.split("\"elements\":[").nth(1).and_then(|rest| rest.split(']').next()).expect("elements");
    let (start, end) = ends.split_once(',').expect("two");
    let ends = [start.parse().expect("a number"), end.parse().expect("a number")];
    let [a, b] = [(own[1], lines[0]), (own[2], lines[1])];
    (windows[0], own[0], ends, [a.min(b), a.max(b)])
}

/// The variable with the folder of reports, if ranks are processes of a job. The ranks append to
/// one file. The test that starts the ranks removes the file.
pub(crate) const REPORTS: &str = "FENCEPOST_TEST_CHECK_REPORTS";

/// Calls `run` with the path of a report. Returns its result and the text of the report.
pub(crate) fn after_reports<R>(run: impl FnOnce(&Path) -> R) -> (R, String) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::var_os(REPORTS);
    let report = match &folder {
        Some(folder) => Path::new(folder).join(number.to_string()),
        None => std::env::temp_dir().join(format!("fencepost-check-{}-{number}", std::process::id())),
    };
    let returned = run(&report);
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    if folder.is_none() {
        let _ = std::fs::remove_file(&report);
    }
    (returned, text)
}

/// Returns the lines of a report that describe conflicts. Leaves out the lines about accesses that
/// a rank does not observe.
pub(crate) fn conflict_lines(report: &str) -> impl Iterator<Item = &str> {
    report.lines().filter(|line| !line.contains("\"blind\""))
}

/// Runs the epochs one after another, and compares each with the reference. Returns the number of
/// epochs that had a conflict.
fn play(epochs: &[Vec<Called>], size: usize, transport: TransportKind) -> usize {
    let first = |rank: usize, window: usize| values(900 + (rank * 2 + window) as u64, LEN);
    let mut world = reference::World {
        element: [ElementType::scalar(Scalar::U64); 2].into_iter().collect(),
        memory: (0..size)
            .map(|rank| {
                let bytes = |window| first(rank, window).iter().flat_map(|v| v.to_ne_bytes()).collect();
                [bytes(0), bytes(1)].into_iter().collect()
            })
            .collect(),
    };
    let what = format!("{size} ranks on {transport:?}: {epochs:#?}");
    let (run, text) = after_reports(|report| {
        let asked = ranks(size).transport(transport.clone()).check(Check::Conflicts).check_report(report);
        asked.collect(|world| {
            let me = world.rank();
            let mut windows = [world.window::<u64>(LEN)?, world.window::<u64>(LEN)?];
            for (window, part) in windows.iter_mut().enumerate() {
                part.copy_from_slice(&first(me, window));
            }
            let mut ends = Vec::new();
            for calls in epochs {
                let mut refused = Vec::new();
                for (number, call) in calls.iter().enumerate().filter(|(_, call)| call.rank == me) {
                    match LINES[number](&windows, call, number as u64) {
                        Err(error) if error.class() == ErrorClass::RmaConflict => refused.push(number),
                        called => called?,
                    }
                }
                let [u, v] = &mut windows;
                let fenced = world.fence((u, v));
                let class = fenced.err().map(|error| error.class());
                ends.push((class, windows[0].to_vec(), windows[1].to_vec(), refused));
            }
            if are_processes(&transport) {
                world.barrier()?; // all conflicts are reported
            }
            Ok(ends)
        })
    });
    let ends = run.unwrap_or_else(|error| panic!("{error}\n{what}"));
    let (at_calls, at_fences): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.contains("\"refused\":true"));
    let mut told: Vec<Found> = at_fences.into_iter().map(found).collect();
    let (mut some, mut meant_at_calls) = (0, Vec::new());
    for (number, calls) in epochs.iter().enumerate() {
        let Meant { at_calls, at_the_fence: expected, left } = Meant::of(calls, size);
        some += usize::from(!at_calls.is_empty() || !expected.is_empty());
        meant_at_calls.extend(at_calls);
        // In the report, the conflicts of an epoch follow those of the previous epoch.
        let count: usize = (0..size as u64)
            .map(|rank| expected.iter().filter(|found| found.1 == rank).count().min(TOLD))
            .sum();
        assert!(told.len() >= count, "{} of {count} conflicts of epoch {number}\n{text}{what}", told.len());
        let mut these: Vec<Found> = told.drain(..count).collect();
        these.sort();
        if count == expected.len() {
            assert_eq!(these, expected, "epoch {number}\n{what}");
        } else {
            assert!(these.iter().all(|found| expected.contains(found)), "epoch {number}\n{what}");
        }
        let part: BTreeSet<u64> = these.iter().flat_map(|(_, owner, _, [a, b])| [*owner, a.0, b.0]).collect();
        if expected.is_empty() {
            // Refused calls have the same effect as operations without a target.
            let mut calls = calls.clone();
            for (call, _) in calls.iter_mut().zip(&left).filter(|(_, left)| !**left) {
                call.operation.target = None;
            }
            reference::run(&mut world, &law(&calls, size)).expect("operations fit");
        }
        for (rank, ends) in (lowest(&transport)..).zip(&ends) {
            let (class, u, v, refused) = &ends[number];
            let own = (0..calls.len()).filter(|at| calls[*at].rank == rank && !left[*at]);
            assert_eq!(*refused, own.collect::<Vec<_>>(), "rank {rank}, epoch {number}\n{what}");
            let meant = match (expected.is_empty(), part.contains(&(rank as u64))) {
                (true, _) => None,
                (false, true) => Some(ErrorClass::RmaConflict),
                (false, false) => Some(ErrorClass::RmaSync),
            };
            assert_eq!(*class, meant, "rank {rank}, epoch {number}\n{what}");
            for (window, found) in [u, v].into_iter().enumerate() {
                let bytes: Vec<u8> = found.iter().flat_map(|value| value.to_ne_bytes()).collect();
                assert_eq!(
                    bytes,
                    world.memory[rank][WindowId::new(window)],
                    "rank {rank}, epoch {number}\n{what}"
                );
            }
        }
    }
    assert!(told.is_empty(), "{told:?} are no conflicts\n{what}");
    let mut told: Vec<Found> = at_calls.into_iter().map(found).collect();
    told.sort();
    meant_at_calls.sort();
    assert_eq!(told, meant_at_calls, "{what}");
    some
}

/// Returns the transports on which program `number` runs.
pub(crate) fn on(number: u64, size: usize) -> Vec<TransportKind> {
    let mut all = vec![TransportKind::Local, sim(number)];
    match number % 8 {
        0 => all.push(TransportKind::TcpThreads),
        1 => all.push(TransportKind::ShmThreads),
        2 => all.push(TransportKind::MixedThreads((0..size as u32).map(|rank| rank / 2).collect())),
        _ => (),
    }
    all
}

#[test]
fn the_conflicts_of_any_epochs_are_those_of_the_reference() {
    let (mut some, mut all) = (0, 0);
    for number in 0..cases(60, 1000) {
        let mut dice = Random::new(number);
        let size = 1 + dice.below(5);
        let epochs: Vec<Vec<Called>> =
            (0..3).map(|_| (0..1 + dice.below(MOST)).map(|_| called(&mut dice, size)).collect()).collect();
        for transport in on(number, size) {
            some += play(&epochs, size, transport);
            all += epochs.len();
        }
    }
    assert!(some * 4 > all && some < all, "{some} of {all} epochs have a conflict");
}

/// Plays three epochs: one without a conflict, one with one conflict, and one without. `number` is
/// the seed of the epochs. They have `size` ranks, or a random number of ranks if `size` is `None`.
pub(crate) fn one_planted(number: u64, size: Option<usize>, transports: &[TransportKind]) {
    let mut dice = Random::new(1 << 32 | number);
    let drawn = 2 + dice.below(4);
    let size = size.unwrap_or(drawn);
    let mut clean: Vec<Called> = Vec::new();
    for _ in 0..40 {
        if clean.len() < MOST - 1 {
            clean.push(called(&mut dice, size));
            if !expected(&clean, size).is_empty() {
                clean.pop();
            }
        }
    }
    let planted = (0..10_000).find_map(|_| {
        let mut planted = clean.clone();
        planted.insert(dice.below(clean.len() + 1), called(&mut dice, size));
        (expected(&planted, size).len() == 1).then_some(planted)
    });
    let planted = planted.expect("some operation conflicts with one other");
    let on = if transports.is_empty() { on(number, size) } else { transports.to_vec() };
    for transport in on {
        let epochs = [clean.clone(), planted.clone(), clean.clone()];
        assert_eq!(play(&epochs, size, transport), 1);
    }
}

#[test]
fn one_planted_conflict_is_found_with_both_lines_and_without_it_all_is_silent() {
    (0..cases(60, 1000)).for_each(|number| one_planted(number, None, &[]));
}
