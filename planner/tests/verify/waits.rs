//! Each of the waits W1 to W6 is removed from a good schedule. The verifier refuses the result by
//! name, and a run with the right seed goes wrong. No seed makes the good schedule go wrong.

use crate::support::{operation, patterns};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Delta, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Order, Patterns};
use fencepost_planner::ir::schedule::{Frame, Instruction, Schedule};
use fencepost_planner::verify::verify;

use crate::support::{interpreter, naive, random};

fn section(elements: std::ops::Range<usize>) -> Local {
    Local::Section { window: WindowId(0), datatype: Datatype::run(elements) }
}

fn epoch(ranks: Vec<Vec<fencepost_planner::ir::pattern::Operation>>) -> Patterns {
    patterns(&[ElementType::scalar(Scalar::F64)], Order::Canonical, ranks)
}

/// Returns patterns in which rank 0 puts its first elements to rank 1.
fn one_put() -> Patterns {
    epoch(vec![vec![operation(Kind::Put, 1, Datatype::run(4..6), section(0..2))], vec![]])
}

/// Returns patterns in which each of two ranks puts to the other.
fn exchange() -> Patterns {
    let put = |to| vec![operation(Kind::Put, to, Datatype::run(4..6), section(0..2))];
    epoch(vec![put(1), put(-1)])
}

/// Returns patterns in which each rank of a chain puts to the next.
fn chain() -> Patterns {
    let put = || vec![operation(Kind::Put, 1, Datatype::run(4..6), section(0..2))];
    epoch(vec![put(), put(), put(), vec![]])
}

fn without(mut schedule: Schedule, which: impl Fn(&Instruction) -> bool) -> Schedule {
    let before: usize = schedule.classes.values().map(|program| program.instructions.len()).sum();
    for program in schedule.classes.values_mut() {
        program.instructions.retain(|instruction| !which(instruction));
    }
    let after: usize = schedule.classes.values().map(|program| program.instructions.len()).sum();
    assert!(after < before, "nothing was taken away");
    schedule
}

/// Runs `schedule` four times in a row with this seed. Ranks run ahead as far as they can. Returns
/// the first mistake, if there is one.
fn goes_wrong(patterns: &Patterns, schedule: &Schedule, seed: u64) -> Option<String> {
    let windows: Vec<_> = patterns.windows.values().copied().collect();
    let world = random::world(&windows, patterns.class_of.len(), random::LEN, seed);
    interpreter::differs(patterns, schedule, &world, 4, seed).err()
}

#[track_caller]
fn refused(patterns: &Patterns, schedule: Schedule, name: &str) {
    let error = verify(patterns, schedule.clone()).map(|_| ()).unwrap_err();
    assert_eq!(error.name(), name, "{error}");
    let wrong = (0..1000).find_map(|seed| goes_wrong(patterns, &schedule, seed));
    assert!(wrong.is_some(), "{error}: and no seed shows it");
}

#[track_caller]
fn accepted(patterns: &Patterns, direct: bool) -> Schedule {
    let schedule = naive::lower(patterns, direct);
    verify(patterns, schedule.clone()).unwrap_or_else(|error| panic!("{error}"));
    for seed in 0..200 {
        assert_eq!(goes_wrong(patterns, &schedule, seed), None, "seed {seed}");
    }
    schedule
}

fn entry(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Await { frame: Frame::Entry, .. })
}

fn done(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Await { frame: Frame::Done, .. })
}

#[test]
fn w1_a_window_is_not_touched_before_its_rank_entered() {
    let patterns = one_put();
    let schedule = accepted(&patterns, true);
    refused(&patterns, without(schedule.clone(), entry), "BeforeEntry");
    // The same holds if both sides leave out the frame.
    let silent = without(schedule, |i| entry(i) || matches!(i, Instruction::Expose { .. }));
    refused(&patterns, silent, "BeforeEntry");
}

#[test]
fn w2_elements_are_not_written_before_they_were_read() {
    // Rank 1 sends the same elements that rank 0 overwrites by a put.
    let put = |to, remote, local| operation(Kind::Put, to, Datatype::run(remote), section(local));
    let patterns = epoch(vec![vec![put(1, 0..2, 0..2)], vec![put(-1, 4..6, 0..2)]]);
    let mut schedule = accepted(&patterns, false);
    let code = &mut schedule.classes[fencepost_planner::ids::ClassId(1)].instructions;
    // The instructions are Pack, Send, Await, Unpack and Release. The pack and the send move to the
    // end.
    code.rotate_left(2);
    refused(&patterns, schedule, "WrittenBeforeRead");

    // Rank 1 reads elements of rank 0 directly, and rank 2 puts to the same elements.
    let get = operation(Kind::Get, -1, Datatype::run(0..2), Local::Buffer);
    let patterns = epoch(vec![vec![], vec![get], vec![put(-2, 0..2, 0..2)]]);
    let mut schedule = accepted(&patterns, true);
    let code = &mut schedule.classes[fencepost_planner::ids::ClassId(0)].instructions;
    let wait = code.iter().position(done).expect("it waits for its reader");
    let wait = code.remove(wait);
    code.push(wait);
    refused(&patterns, schedule, "RacingCopy");
}

#[test]
fn w3_a_rank_does_not_leave_while_others_touch_its_windows() {
    let patterns = one_put();
    let schedule = accepted(&patterns, true);
    refused(&patterns, without(schedule, done), "LeftEarly");
    let schedule = accepted(&patterns, false);
    let unreleased = without(schedule.clone(), |i| matches!(i, Instruction::Release { .. }));
    refused(&patterns, unreleased, "LeftEarly");
    refused(&patterns, without(schedule, |i| matches!(i, Instruction::Unpack { .. })), "Dropped");
}

#[test]
fn w4_a_buffer_is_not_written_before_its_reader_released_it() {
    let patterns = exchange();
    let mut schedule = accepted(&patterns, false);
    for program in schedule.classes.values_mut() {
        program.buffers.values_mut().for_each(|buffer| buffer.copies = 1);
    }
    refused(&patterns, schedule, "BufferReused");

    let patterns = chain();
    let mut schedule = accepted(&patterns, false);
    for program in schedule.classes.values_mut() {
        // The buffer is reclaimed, but too late.
        program.instructions.sort_by_key(|i| matches!(i, Instruction::Reclaim { .. }));
    }
    // No run of this schedule goes wrong, since the late reclaim awaits this run's frame too. The
    // schedule is refused nevertheless.
    assert_eq!(verify(&patterns, schedule).map(|_| ()).unwrap_err().name(), "BufferReused");
}

#[test]
fn w4_one_copy_is_enough_where_the_reader_answers_after_it_released() {
    // Rank 0 sends. Rank 1 reads, releases, and only then sends, so its frame implies that the
    // buffer is free.
    let patterns = exchange();
    let mut schedule = accepted(&patterns, false);
    let second = &mut schedule.classes[fencepost_planner::ids::ClassId(1)];
    second.instructions.rotate_left(2);
    schedule.classes[fencepost_planner::ids::ClassId(0)]
        .buffers
        .values_mut()
        .for_each(|buffer| buffer.copies = 1);
    verify(&patterns, schedule.clone()).unwrap_or_else(|error| panic!("{error}"));
    // If rank 1 sends before it releases, as in the accepted schedule, its frame does not imply
    // this.
    let second = &mut schedule.classes[fencepost_planner::ids::ClassId(1)];
    second.instructions.rotate_right(2);
    refused(&patterns, schedule, "BufferReused");
}

#[test]
fn w5_a_shift_along_a_chain_does_not_run_ahead() {
    let patterns = chain();
    let schedule = accepted(&patterns, false);
    refused(&patterns, without(schedule, |i| matches!(i, Instruction::Reclaim { .. })), "RunsAhead");
}

#[test]
fn w5_frames_of_one_run_are_not_left_for_the_next() {
    let patterns = chain();
    let mut schedule = accepted(&patterns, false);
    let last = &mut schedule.classes[fencepost_planner::ids::ClassId(3)].instructions;
    last.push(Instruction::Await { peer: Delta(-1), frame: Frame::Done });
    refused(&patterns, schedule.clone(), "LeftEarly");
    let last = &mut schedule.classes[fencepost_planner::ids::ClassId(3)].instructions;
    last.pop();
    last.push(Instruction::Await { peer: Delta(-1), frame: Frame::Entry });
    last.push(Instruction::Done { peer: Delta(-1) });
    refused(&patterns, schedule, "WrongCount");
}

#[test]
fn w6_no_wait_is_left_to_the_superstep_before_or_after() {
    let patterns = one_put();
    let schedule = accepted(&patterns, true);
    // A wrong argument: "the peer entered the last run, so it will have entered this run".
    let begin = |i: &Instruction| entry(i) || matches!(i, Instruction::Expose { .. });
    refused(&patterns, without(schedule.clone(), begin), "BeforeEntry");
    // A wrong argument: "the peer's next entry will show that it has finished".
    let end = |i: &Instruction| done(i) || matches!(i, Instruction::Done { .. });
    refused(&patterns, without(schedule, end), "LeftEarly");
}
