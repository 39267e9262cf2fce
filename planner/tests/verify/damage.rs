//! Damage to many good schedules, one kind at a time, at each possible position. The verifier
//! refuses each damaged schedule by the right name.

use super::damages::{DAMAGES, foreign};
use super::good::good;
use crate::support::{intern, interpreter, naive, operation, patterns, random};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{ClassId, Delta, Id, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Order, Patterns, Sync};
use fencepost_planner::ir::schedule::{Instruction, Part, Placement, Program, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{from_bytes, to_bytes};
use fencepost_planner::units::Bytes;
use fencepost_planner::verify::{VerifyError, verify, verify_expanded};
use fencepost_planner::{Options, compile};
use fencepost_tests_support::random::Random;

#[test]
fn each_damage_is_refused_by_name_at_every_place_of_every_schedule() {
    let good = good();
    let (mut dice, mut otherwise) = (Random::new(3), Vec::new());
    for damage in DAMAGES {
        let (mut schedules, mut refused, mut by_first_name, mut accepted) = (0, 0, 0, 0);
        for (index, (patterns, schedule)) in good.iter().enumerate() {
            let mut hurt = false;
            for class in 0..schedule.classes.len() {
                for at in 0..schedule.classes[ClassId::new(class)].instructions.len() {
                    let mut damaged = schedule.clone();
                    if (damage.apply)(&mut damaged.classes[ClassId::new(class)], at).is_none() {
                        continue;
                    }
                    let place = format!("{}: schedule {index}, c{class}, instruction {at}", damage.name);
                    match verify(patterns, damaged.clone()) {
                        Err(error) => {
                            if !damage.refused.contains(&error.name()) {
                                otherwise.push(format!("{place}: {error}"));
                            }
                            (hurt, refused) = (true, refused + 1);
                            by_first_name += usize::from(error.name() == damage.refused[0]);
                        }
                        Ok(_) => {
                            assert!(damage.harmless, "{place}: accepted");
                            accepted += 1;
                            runs_like_the_reference(patterns, &damaged, dice.bits(), &place);
                        }
                    }
                }
            }
            schedules += usize::from(hurt);
        }
        let count = format!(
            "{}: {refused} refused, {by_first_name} by the first name, {accepted} harmless, {schedules} schedules",
            damage.name
        );
        if schedules < 20 || by_first_name * 2 <= refused {
            otherwise.push(count);
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
    assert!(DAMAGES.len() >= 15);
}

/// If several ranks put to the same elements, one put is sent. A schedule that sends any put but
/// the last is refused, whichever rank calls the put.
#[test]
fn another_writer_than_the_last_is_refused() {
    let put = |target: i64, first: usize| {
        let section = Local::Section { window: WindowId(0), datatype: Datatype::run(0..20) };
        operation(Kind::Put, target, Datatype::run(first..first + 20), section)
    };
    let mut dice = Random::new(5);
    let mut refused = 0;
    for _ in 0..40 {
        let window = [ElementType::scalar(Scalar::F64)];
        let order = if dice.once_in(4) { Order::Relaxed } else { Order::Canonical };
        let rank =
            |rank: i64, dice: &mut Random| vec![put(2 - rank, dice.below(6)), put(2 - rank, dice.below(6))];
        let asked = intern(patterns(&window, order, (0..5).map(|r| rank(r, &mut dice)).collect()));
        // A schedule that was compiled for patterns without some of the puts is presented as the
        // schedule of `asked`.
        let mut other = asked.clone();
        for pattern in other.classes.values_mut() {
            if dice.once_in(2) {
                let id = pattern.operations.ids().nth(dice.below(2)).unwrap();
                pattern.operations[id].target = None;
            }
        }
        let (placement, options) = random::choices(dice.bits());
        let mut schedule = random::compiled(&other, placement, &options, 1);
        if schedule.class_of != asked.class_of {
            continue;
        }
        for (class, pattern) in asked.classes.iter() {
            schedule.classes[class].pattern = pattern.clone();
        }
        match verify(&asked, schedule.clone()) {
            Ok(_) => runs_like_the_reference(&asked, &schedule, dice.bits(), "another writer"),
            Err(error) => {
                assert!(["WrongPlace", "Dropped", "WrongOrder"].contains(&error.name()), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused >= 20, "{refused}");
}

fn runs_like_the_reference(patterns: &Patterns, schedule: &Schedule, seed: u64, place: &str) {
    let windows: Vec<_> = patterns.windows.values().copied().collect();
    let least = schedule.classes.values().flat_map(|program| program.least_len.values().copied()).max();
    let len = least.unwrap_or(0).max(random::LEN);
    let world = random::world(&windows, patterns.class_of.len(), len, seed);
    for turn in 0..2 {
        interpreter::differs(patterns, schedule, &world, 3, seed + turn)
            .unwrap_or_else(|error| panic!("{place}: accepted, but {error}"));
    }
}

#[test]
fn ranks_that_all_await_before_they_send_wait_in_a_cycle() {
    let mut cycles = 0;
    let packed = |schedule: &Schedule| {
        !schedule
            .classes
            .values()
            .any(|p| p.instructions.iter().any(|i| matches!(i, Instruction::Done { .. })))
    };
    for (patterns, mut schedule) in good().into_iter().filter(|(_, schedule)| packed(schedule)) {
        let mut sends = 0;
        for program in schedule.classes.values_mut() {
            let (last, first): (Vec<_>, Vec<_>) =
                program.instructions.drain(..).partition(|i| matches!(i, Instruction::Send { .. }));
            sends += last.len();
            program.instructions = first.into_iter().chain(last).collect();
        }
        match (verify(&patterns, schedule.clone()), verify_expanded(&patterns, &schedule)) {
            (Ok(_), Ok(())) => runs_like_the_reference(&patterns, &schedule, 1, "no cycle"),
            (Err(a), Err(b)) => {
                assert_eq!((a.name(), b.name()), ("WaitCycle", "WaitCycle"), "{a}; {b}");
                cycles += 1;
            }
            (a, b) => panic!("{sends} sends: {a:?} by class, {b:?} expanded"),
        }
    }
    assert!(cycles >= 20, "{cycles}");
}

#[test]
fn direct_copies_out_of_reach_are_refused() {
    let mut refused = 0;
    for (patterns, mut schedule) in good() {
        schedule.placement = Placement::Apart;
        let direct = schedule.classes.values().any(|program| program.instructions.iter().any(foreign));
        let verdict = verify(&patterns, schedule).map(|_| ());
        assert_eq!(verdict.err().map(|error| error.name()), direct.then_some("OutOfReach"));
        refused += usize::from(direct);
    }
    assert!(refused >= 20);
}

#[test]
fn schedules_of_other_worlds_are_refused() {
    let (patterns, schedule) = good().swap_remove(0);
    let name = |schedule: Schedule| verify(&patterns, schedule).map(|_| ()).unwrap_err().name();
    let mut other = schedule.clone();
    other.class_of.pop();
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    other.class_of[0] = ClassId(900);
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    other.windows[WindowId(0)] = ElementType::opaque(8);
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    other.order = Order::Relaxed;
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    other.sync = Sync::Pscw;
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    let unused = other.classes[ClassId(0)].clone();
    other.classes.push(unused);
    assert_eq!(name(other), "Foreign");
    let mut other = schedule.clone();
    other.classes[ClassId(0)].buffers.values_mut().for_each(|buffer| buffer.copies = 0);
    assert_eq!(name(other), "Malformed");
    let mut other = schedule;
    other.classes[ClassId(0)].buffers.values_mut().for_each(|buffer| buffer.peer = Delta(i64::MAX));
    assert_eq!(name(other), "OutOfBounds");
}

/// Any two instructions of any programs are exchanged, moved or lost. If the schedule is still
/// accepted, it runs like the reference.
#[test]
fn what_is_accepted_is_good_whatever_was_done_to_it() {
    let mut dice = Random::new(11);
    let (mut accepted, mut refused) = (0, 0);
    for (patterns, schedule) in good() {
        for _ in 0..40 {
            let mut damaged = schedule.clone();
            for _ in 0..1 + dice.below(2) {
                let class = ClassId::new(dice.below(damaged.classes.len()));
                let code = &mut damaged.classes[class].instructions;
                if code.len() < 2 {
                    continue;
                }
                let (from, to) = (dice.below(code.len()), dice.below(code.len()));
                match dice.below(4) {
                    0 => code.swap(from, to),
                    1 => {
                        let moved = code.remove(from);
                        code.insert(to.min(code.len()), moved);
                    }
                    2 if dice.once_in(4) => {
                        code.remove(from);
                    }
                    _ => {
                        let near = (from + 1).min(code.len() - 1);
                        code.swap(from, near);
                    }
                }
            }
            let verdict = verify(&patterns, damaged.clone());
            let expanded = verify_expanded(&patterns, &damaged);
            assert_eq!(verdict.is_ok(), expanded.is_ok(), "{verdict:?} by class, {expanded:?} expanded");
            if verdict.is_ok() {
                accepted += 1;
                runs_like_the_reference(&patterns, &damaged, dice.bits(), "shuffled");
            } else {
                refused += 1;
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Returns rows of two pairs. If the first element is removed, the elements pair up in another way.
fn rows() -> Patterns {
    let rows = || Datatype::nest(0, &[(1 << 21, 100), (2, 30), (2, 7)], 1).unwrap();
    let section = Local::Section { window: WindowId(0), datatype: rows() };
    let put = operation(Kind::Put, 1, rows(), section);
    patterns(&[ElementType::scalar(Scalar::F64)], Order::Canonical, vec![vec![put], vec![]])
}

#[test]
fn a_plan_that_cuts_where_parts_have_no_short_form_is_refused() {
    let patterns = rows();
    let mut schedule = naive::lower(&patterns, false);
    let unpack =
        |program: &Program| program.instructions.iter().position(|i| matches!(i, Instruction::Unpack { .. }));
    let mut classes = (0..schedule.classes.len()).map(ClassId::new);
    let (class, at) = classes.find_map(|class| Some((class, unpack(&schedule.classes[class])?))).unwrap();
    let code = &mut schedule.classes[class].instructions;
    // One unpack for the first element, and one for all others.
    let mut both = [code[at].clone(), code[at].clone()];
    for (half, unpack) in both.iter_mut().enumerate() {
        let Instruction::Unpack { at, to: Part::Window { datatype, .. }, .. } = unpack else {
            unreachable!()
        };
        *at += 8 * half as u64;
        *datatype = if half == 0 { Datatype::run(0..1) } else { Datatype::run(1..datatype.size()) };
    }
    code.splice(at..=at, both);
    let plan = from_bytes(&to_bytes(&schedule).unwrap()).unwrap();
    let refused = verify(&patterns, plan.schedule).unwrap_err();
    assert!(
        matches!(refused, VerifyError::Malformed(_)) && refused.to_string().contains("pieces"),
        "{refused}"
    );
}

#[test]
fn what_has_no_short_form_in_parts_is_not_cut() {
    // The second chunk would begin with the second element of a row.
    let chunk = Some(Bytes((24 << 20) + 8));
    let options = Options { mode: Mode::Pipelined, chunk, ..Options::default() };
    let schedule = compile(&rows(), Placement::Apart, &Machine::default(), &options).unwrap();
    let sends = schedule.classes.values().flat_map(|program| &program.instructions);
    let sent: Vec<u64> = sends
        .filter_map(|i| if let Instruction::Send { bytes, .. } = i { Some(*bytes) } else { None })
        .collect();
    assert_eq!(sent, [64 << 20]);
}
