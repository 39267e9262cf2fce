//! Damage, one way at a time, at each place where it can be done, to many good schedules: each is refused by its name.

use crate::support::{Dice, intern, interpreter, naive, operation, patterns, random};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{ClassId, Delta, Id, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Order, Patterns};
use fencepost_planner::ir::schedule::{Frame, Instruction, Part, Placement, Program, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{from_bytes, to_bytes};
use fencepost_planner::units::Bytes;
use fencepost_planner::verify::{VerifyError, verify, verify_expanded};
use fencepost_planner::{Options, compile};

use Instruction::{Await, Combine, Copy, Done, Expose, Pack, Reclaim, Release, Send, Unpack};

/// A way to damage one instruction of one class, or nothing where it does not apply.
type Apply = fn(&mut Program, usize) -> Option<()>;

struct Damage {
    name: &'static str,
    /// The names that it may be refused by; the first is the usual one.
    refused: &'static [&'static str],
    /// Whether it may happen to change nothing: then it must be accepted only if it runs like the reference.
    harmless: bool,
    apply: Apply,
}

/// Schedules that are good, and what they were made of.
pub fn good() -> Vec<(Patterns, Schedule)> {
    let mut all = Vec::new();
    for (height, width) in [
        (vec![3], vec![2, 3]),
        (vec![2, 2], vec![2, 2]),
        (vec![1, 2, 1], vec![3, 2]),
        (vec![2; 3], vec![2; 3]),
    ] {
        for (corners, wrap) in [(false, false), (true, false), (true, true)] {
            let patterns = intern(random::halo(&height, &width, corners, wrap));
            all.extend([false, true].map(|direct| (patterns.clone(), naive::lower(&patterns, direct))));
        }
    }
    for seed in 0..160 {
        let patterns = random::epoch(seed);
        all.extend([false, true].map(|direct| (patterns.clone(), naive::lower(&patterns, direct))));
    }
    all.extend((1..12).flat_map(|count| [0, 2].map(|owner| watched(count, owner))).map(|patterns| {
        let schedule = naive::lower(&patterns, true);
        (patterns, schedule)
    }));
    all.extend((0..60).map(summed).map(|patterns| {
        let schedule = naive::lower(&patterns, true);
        (patterns, schedule)
    }));
    for (index, patterns) in
        all.iter().map(|(patterns, _)| patterns.clone()).collect::<Vec<_>>().into_iter().enumerate()
    {
        let (placement, options) = random::choices(index as u64);
        let schedule = random::compiled(&patterns, placement, &options, index as u64);
        all.push((patterns, schedule));
    }
    all
}

/// Rank 1 gets elements of `owner` that the third rank puts to.
fn watched(count: usize, owner: i64) -> Patterns {
    let elements = || Datatype::run(0..count);
    let get = operation(Kind::Get, owner - 1, elements(), Local::Buffer);
    let put = operation(Kind::Put, owner - (2 - owner), elements(), Local::Buffer);
    let (first, last) = if owner == 0 { (vec![], vec![put]) } else { (vec![put], vec![]) };
    patterns(&[ElementType::scalar(Scalar::F64)], Order::Canonical, vec![first, vec![get], last])
}

/// Two ranks accumulate into overlapping elements of a third, each more than once.
fn summed(seed: u64) -> Patterns {
    let mut dice = Dice::new(seed);
    let op = dice.pick(&[Op::Sum, Op::Max, Op::Bxor, Op::Land]);
    let mut several = |target: i64| {
        let one = |dice: &mut Dice| {
            let (from, to) = (dice.roll(20), dice.roll(12));
            let section = Local::Section { window: WindowId(0), datatype: Datatype::run(from..from + 12) };
            operation(Kind::Accumulate(op), target, Datatype::run(to..to + 12), section)
        };
        (0..2 + seed as usize % 3).map(|_| one(&mut dice)).collect::<Vec<_>>()
    };
    let all = vec![several(2), several(1), vec![]];
    patterns(&[ElementType::scalar(Scalar::I32)], Order::Canonical, all)
}

fn foreign(instruction: &Instruction) -> bool {
    let far = |part: &Part| matches!(part, Part::Window { owner, .. } if *owner != Delta::SELF);
    matches!(instruction, Copy { from, to, .. } if far(from) || far(to))
}

fn shift(part: &mut Part) -> Option<()> {
    if let Part::Window { datatype, .. } = part {
        *datatype = datatype.shift(1);
        return Some(());
    }
    None
}

/// Take the instruction out, if it is one of those.
fn drop_if(program: &mut Program, at: usize, which: fn(&Instruction) -> bool) -> Option<()> {
    which(&program.instructions[at]).then(|| {
        program.instructions.remove(at);
    })
}

fn double_if(program: &mut Program, at: usize, which: fn(&Instruction) -> bool) -> Option<()> {
    which(&program.instructions[at]).then(|| {
        let again = program.instructions[at].clone();
        program.instructions.insert(at, again);
    })
}

fn other(op: Option<Op>, element: ElementType) -> Option<Option<Op>> {
    match (op, element.kind) {
        (_, ElementKind::Opaque) => None,
        (Some(Op::Sum), ElementKind::Scalar(_)) => Some(Some(Op::Prod)),
        (_, ElementKind::Scalar(_)) => Some(Some(Op::Sum)),
        (Some(Op::MinLoc), ElementKind::ValueAt(..)) => Some(Some(Op::MaxLoc)),
        (_, ElementKind::ValueAt(..)) => Some(Some(Op::MinLoc)),
    }
}

const DAMAGES: &[Damage] = &[
    Damage {
        name: "a movement dropped",
        refused: &["Dropped"],
        harmless: true,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Unpack { .. } | Copy { .. })),
    },
    Damage {
        name: "a movement doubled",
        refused: &["Doubled"],
        harmless: false,
        apply: |program, at| double_if(program, at, |i| matches!(i, Unpack { .. } | Copy { .. })),
    },
    Damage {
        name: "a target shifted",
        refused: &["WrongPlace", "OutOfBounds", "Unasked", "RacingCopy", "WrittenBeforeRead", "Dropped"],
        harmless: true,
        apply: |program, at| match &mut program.instructions[at] {
            Unpack { to, .. } | Copy { to, .. } => shift(to),
            _ => None,
        },
    },
    Damage {
        name: "a source shifted",
        refused: &["WrongPlace", "OutOfBounds", "Unasked", "RacingCopy", "WrittenBeforeRead", "Dropped"],
        harmless: true,
        apply: |program, at| match &mut program.instructions[at] {
            Pack { from, .. } | Copy { from, .. } => shift(from),
            _ => None,
        },
    },
    Damage {
        name: "the bytes of two movements swapped",
        refused: &["WrongPlace", "Unasked", "WrongOrder", "WrongOperator"],
        harmless: true,
        apply: |program, at| {
            let (left, right) = program.instructions.split_at_mut_checked(at + 1)?;
            let one = left.last_mut()?;
            let mut within = right.iter_mut().take_while(|i| !matches!(i, Send { .. } | Release { .. }));
            within.find_map(|two| match (&mut *one, two) {
                (Unpack { peer, at, to, element, .. }, Unpack { peer: p, at: a, to: t, element: e, .. }) => {
                    (peer == p && element == e && to.len() == t.len()).then(|| std::mem::swap(at, a))
                }
                (Pack { from, element, buffer, at }, Pack { from: f, element: e, buffer: b, at: a }) => {
                    (buffer == b && element == e && from.len() == f.len()).then(|| std::mem::swap(at, a))
                }
                _ => None,
            })
        },
    },
    Damage {
        name: "another operator",
        refused: &["WrongOperator"],
        harmless: true,
        apply: |program, at| match &mut program.instructions[at] {
            Unpack { op, element, .. } | Copy { op, element, .. } => {
                *op = other(*op, *element)?;
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "combined by another operator before it travels",
        refused: &["WrongOperator"],
        harmless: false,
        apply: |program, at| match &mut program.instructions[at] {
            Combine { op, element, .. } => {
                *op = other(Some(*op), *element)??;
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "a term not combined",
        refused: &["Dropped"],
        harmless: true,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Combine { .. })),
    },
    Damage {
        name: "a term combined twice",
        refused: &["Doubled"],
        harmless: false,
        apply: |program, at| double_if(program, at, |i| matches!(i, Combine { .. })),
    },
    Damage {
        name: "a term combined into another element",
        refused: &["WrongPlace", "UninitialisedBytes", "OutOfBounds", "Malformed", "Dropped"],
        harmless: true,
        apply: |program, at| match &mut program.instructions[at] {
            Combine { into, .. } => {
                *into = into.shift(if into.low() > 0 { -1 } else { 1 });
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "another term combined",
        refused: &["WrongPlace", "OutOfBounds", "Dropped"],
        harmless: true,
        apply: |program, at| match &mut program.instructions[at] {
            Combine { from, .. } => shift(from),
            _ => None,
        },
    },
    Damage {
        name: "a term combined before anything is packed",
        refused: &["UninitialisedBytes"],
        harmless: false,
        apply: |program, at| {
            matches!(program.instructions[at], Combine { .. }).then(|| {
                let fold = program.instructions.remove(at);
                program.instructions.insert(0, fold);
            })
        },
    },
    Damage {
        name: "a term combined after its frame was sent (W4)",
        refused: &["BufferReused"],
        harmless: false,
        apply: |program, at| {
            let Combine { buffer, .. } = &program.instructions[at] else { return None };
            let buffer = *buffer;
            let sends = |i: &Instruction| matches!(i, Send { buffer: b, .. } if *b == buffer);
            let send = program.instructions.iter().rposition(sends)?;
            let fold = program.instructions.remove(at);
            program.instructions.insert(send, fold);
            Some(())
        },
    },
    Damage {
        name: "two movements in the other order",
        refused: &["WrongOrder"],
        harmless: true,
        apply: |program, at| {
            let next = program.instructions.get(at + 1)?;
            (matches!(program.instructions[at], Unpack { .. }) && matches!(next, Unpack { .. }))
                .then(|| program.instructions.swap(at, at + 1))
        },
    },
    Damage {
        name: "a frame awaited that is longer",
        refused: &["WrongCount"],
        harmless: false,
        apply: |program, at| match &mut program.instructions[at] {
            Await { frame: Frame::Data { bytes }, .. } => {
                *bytes += 8;
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "a data frame not awaited",
        refused: &["NotOpen"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Await { frame: Frame::Data { .. }, .. })),
    },
    Damage {
        name: "an entry not awaited (W1)",
        refused: &["BeforeEntry"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Await { frame: Frame::Entry, .. })),
    },
    Damage {
        name: "a done not awaited (W3)",
        refused: &["LeftEarly"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Await { frame: Frame::Done, .. })),
    },
    Damage {
        name: "two frames sent in the other order",
        refused: &["FrameMismatch"],
        harmless: false,
        apply: |program, at| {
            let buffers = &program.buffers;
            let to = |i: &Instruction| match i {
                Send { buffer, .. } => Some((buffers[*buffer].peer, 0)),
                Expose { peer } => Some((*peer, 1)),
                Done { peer } => Some((*peer, 2)),
                _ => None,
            };
            let (peer, kind) = to(&program.instructions[at])?;
            let next = |i: &Instruction| to(i).is_some_and(|(other, k)| other == peer && k != kind);
            let later = at + program.instructions[at..].iter().position(next)?;
            // Dones stay behind the copies, and entries before the dones.
            if kind == 2 || kind == 1 && to(&program.instructions[later])?.1 == 2 {
                return None;
            }
            let first = program.instructions.remove(at);
            program.instructions.insert(later, first);
            Some(())
        },
    },
    Damage {
        name: "a frame not sent",
        refused: &["WrongCount", "FrameMismatch"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Send { .. })),
    },
    Damage {
        name: "a frame sent twice",
        refused: &["Doubled"],
        harmless: false,
        apply: |program, at| double_if(program, at, |i| matches!(i, Send { .. })),
    },
    Damage {
        name: "bytes not packed",
        refused: &["UninitialisedBytes"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Pack { .. })),
    },
    Damage {
        name: "bytes packed twice",
        refused: &["Doubled"],
        harmless: false,
        apply: |program, at| double_if(program, at, |i| matches!(i, Pack { .. })),
    },
    Damage {
        name: "bytes packed after they were sent (W4)",
        refused: &["BufferReused", "UninitialisedBytes"],
        harmless: false,
        apply: |program, at| {
            let Pack { buffer, .. } = &program.instructions[at] else { return None };
            let buffer = *buffer;
            let sends = |i: &Instruction| matches!(i, Send { buffer: b, .. } if *b == buffer);
            let send = program.instructions.iter().rposition(sends)?;
            let pack = program.instructions.remove(at);
            program.instructions.insert(send, pack);
            Some(())
        },
    },
    Damage {
        name: "one copy of a buffer where two are used in turn (W4)",
        refused: &["BufferReused"],
        harmless: true,
        apply: |program, at| {
            let Pack { buffer, .. } = &program.instructions[at] else { return None };
            let copies = &mut program.buffers[*buffer].copies;
            (*copies == 2).then(|| *copies = 1)
        },
    },
    Damage {
        name: "a buffer not asked back (W5)",
        refused: &["RunsAhead", "BufferReused"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Reclaim { .. })),
    },
    Damage {
        name: "a frame not released (W3)",
        refused: &["LeftEarly", "NotOpen"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Release { .. })),
    },
    Damage {
        name: "a frame read after its release",
        refused: &["NotOpen"],
        harmless: false,
        apply: |program, at| {
            let Unpack { peer, .. } = &program.instructions[at] else { return None };
            let peer = *peer;
            let releases = |i: &Instruction| matches!(i, Release { peer: p } if *p == peer);
            let release = at + program.instructions[at..].iter().position(releases)?;
            let unpack = program.instructions.remove(at);
            program.instructions.insert(release, unpack);
            Some(())
        },
    },
    Damage {
        name: "a peer not told that it may enter",
        refused: &["LeftEarly"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Expose { .. })),
    },
    Damage {
        name: "a peer not told that this rank is done",
        refused: &["LeftEarly"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Done { .. })),
    },
    Damage {
        name: "a direct copy before the entry (W1)",
        refused: &["BeforeEntry"],
        harmless: false,
        apply: |program, at| {
            foreign(&program.instructions[at]).then(|| {
                let copy = program.instructions.remove(at);
                program.instructions.insert(0, copy);
            })
        },
    },
    Damage {
        name: "a direct copy after the done (W1)",
        refused: &["AfterDone"],
        harmless: false,
        apply: |program, at| {
            foreign(&program.instructions[at]).then(|| {
                let copy = program.instructions.remove(at);
                program.instructions.push(copy);
            })
        },
    },
    Damage {
        name: "a racing direct copy: what a peer may touch is touched meanwhile (W2)",
        refused: &["RacingCopy"],
        harmless: true,
        apply: |program, at| {
            matches!(program.instructions[at], Await { frame: Frame::Done, .. }).then(|| {
                let wait = program.instructions.remove(at);
                program.instructions.push(wait);
            })
        },
    },
    Damage {
        name: "windows read after they were written (W2)",
        refused: &["WrittenBeforeRead", "WaitCycle", "RacingCopy", "FrameMismatch"],
        harmless: true,
        apply: |program, at| {
            if at > 0 {
                return None;
            }
            let leaves =
                |i: &Instruction| matches!(i, Pack { .. } | Combine { .. } | Send { .. } | Reclaim { .. });
            let (last, first): (Vec<_>, Vec<_>) = program.instructions.drain(..).partition(leaves);
            program.instructions = first.into_iter().chain(last).collect();
            (!program.buffers.is_empty()).then_some(())
        },
    },
    Damage {
        name: "elements outside the window",
        refused: &["OutOfBounds"],
        harmless: true,
        apply: |program, at| {
            (at == 0).then_some(())?;
            let len = program.least_len.values_mut().find(|len| **len > 0)?;
            *len -= 1;
            Some(())
        },
    },
    Damage {
        name: "bytes outside the frame",
        refused: &["OutOfBounds"],
        harmless: false,
        apply: |program, at| match &mut program.instructions[at] {
            Unpack { at, .. } => {
                *at += 1 << 40;
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "a buffer too short",
        refused: &["OutOfBounds"],
        harmless: false,
        apply: |program, at| {
            let Send { buffer, .. } = &program.instructions[at] else { return None };
            program.buffers[*buffer].bytes -= 1;
            Some(())
        },
    },
    Damage {
        name: "a movement that nobody asked for",
        refused: &["Unasked", "OutOfBounds", "Doubled"],
        harmless: true,
        apply: |program, at| {
            let len = *program.least_len.get(WindowId(0))?;
            (at == 0 && len >= 2).then_some(())?;
            let Some(Unpack { element, .. } | Copy { element, .. }) = program.instructions.iter().find(
                |i| matches!(i, Unpack { to, .. } | Copy { to, .. } if matches!(to, Part::Window { window, .. } if window.0 == 0)),
            ) else {
                return None;
            };
            let part = |at: usize| Part::Window {
                owner: Delta::SELF,
                window: WindowId(0),
                datatype: Datatype::run(at..at + 1),
            };
            let copy = Copy { from: part(0), to: part(len - 1), op: None, element: *element };
            program.instructions.push(copy);
            Some(())
        },
    },
    Damage {
        name: "elements of another size",
        refused: &["Malformed"],
        harmless: false,
        apply: |program, at| match &mut program.instructions[at] {
            Pack { element, .. } => {
                *element += 1;
                Some(())
            }
            Unpack { element, .. } | Copy { element, .. } => {
                *element = ElementType::opaque(element.size + 1);
                Some(())
            }
            _ => None,
        },
    },
    Damage {
        name: "another call",
        refused: &["Foreign"],
        harmless: false,
        apply: |program, at| {
            (at == 0).then_some(())?;
            program.pattern.operations.values_mut().next()?.site.line += 1;
            Some(())
        },
    },
];

#[test]
fn each_damage_is_refused_by_name_at_every_place_of_every_schedule() {
    let good = good();
    let (mut dice, mut otherwise) = (Dice::new(3), Vec::new());
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
                            runs_like_the_reference(patterns, &damaged, dice.next(), &place);
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

/// Of puts of several ranks to the same elements one is sent: any but the last is refused, whichever rank it is of.
#[test]
fn another_writer_than_the_last_is_refused() {
    let put = |target: i64, first: usize| {
        let section = Local::Section { window: WindowId(0), datatype: Datatype::run(0..20) };
        operation(Kind::Put, target, Datatype::run(first..first + 20), section)
    };
    let mut dice = Dice::new(5);
    let mut refused = 0;
    for _ in 0..40 {
        let window = [ElementType::scalar(Scalar::F64)];
        let order = if dice.chance(4) { Order::Relaxed } else { Order::Canonical };
        let rank =
            |rank: i64, dice: &mut Dice| vec![put(2 - rank, dice.roll(6)), put(2 - rank, dice.roll(6))];
        let asked = intern(patterns(&window, order, (0..5).map(|r| rank(r, &mut dice)).collect()));
        // The schedule of another order of ranks, or without the last of them, said to be of this one.
        let mut other = asked.clone();
        for pattern in other.classes.values_mut() {
            if dice.chance(2) {
                let id = pattern.operations.ids().nth(dice.roll(2)).unwrap();
                pattern.operations[id].target = None;
            }
        }
        let (placement, options) = random::choices(dice.next());
        let mut schedule = random::compiled(&other, placement, &options, 1);
        if schedule.class_of != asked.class_of {
            continue;
        }
        for (class, pattern) in asked.classes.iter() {
            schedule.classes[class].pattern = pattern.clone();
        }
        match verify(&asked, schedule.clone()) {
            Ok(_) => runs_like_the_reference(&asked, &schedule, dice.next(), "another writer"),
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
fn ranks_that_all_await_before_they_send_wait_in_a_circle() {
    let mut circles = 0;
    let packed = |schedule: &Schedule| {
        !schedule.classes.values().any(|p| p.instructions.iter().any(|i| matches!(i, Done { .. })))
    };
    for (patterns, mut schedule) in good().into_iter().filter(|(_, schedule)| packed(schedule)) {
        let mut sends = 0;
        for program in schedule.classes.values_mut() {
            let (last, first): (Vec<_>, Vec<_>) =
                program.instructions.drain(..).partition(|i| matches!(i, Send { .. }));
            sends += last.len();
            program.instructions = first.into_iter().chain(last).collect();
        }
        match (verify(&patterns, schedule.clone()), verify_expanded(&patterns, &schedule)) {
            (Ok(_), Ok(())) => runs_like_the_reference(&patterns, &schedule, 1, "no circle"),
            (Err(a), Err(b)) => {
                assert_eq!((a.name(), b.name()), ("WaitCycle", "WaitCycle"), "{a}; {b}");
                circles += 1;
            }
            (a, b) => panic!("{sends} sends: {a:?} by class, {b:?} expanded"),
        }
    }
    assert!(circles >= 20, "{circles}");
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

/// Any two instructions of any programs exchanged, moved or lost: what is accepted runs like the reference.
#[test]
fn what_is_accepted_is_good_whatever_was_done_to_it() {
    let mut dice = Dice::new(11);
    let (mut accepted, mut refused) = (0, 0);
    for (patterns, schedule) in good() {
        for _ in 0..40 {
            let mut damaged = schedule.clone();
            for _ in 0..1 + dice.roll(2) {
                let class = ClassId::new(dice.roll(damaged.classes.len()));
                let code = &mut damaged.classes[class].instructions;
                if code.len() < 2 {
                    continue;
                }
                let (from, to) = (dice.roll(code.len()), dice.roll(code.len()));
                match dice.roll(4) {
                    0 => code.swap(from, to),
                    1 => {
                        let moved = code.remove(from);
                        code.insert(to.min(code.len()), moved);
                    }
                    2 if dice.chance(4) => {
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
                runs_like_the_reference(&patterns, &damaged, dice.next(), "shuffled");
            } else {
                refused += 1;
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Rows of two pairs, which pair up in another way once the first element is gone.
fn rows() -> Patterns {
    let rows = || Datatype::nest(0, &[(1 << 21, 100), (2, 30), (2, 7)], 1);
    let section = Local::Section { window: WindowId(0), datatype: rows() };
    let put = operation(Kind::Put, 1, rows(), section);
    patterns(&[ElementType::scalar(Scalar::F64)], Order::Canonical, vec![vec![put], vec![]])
}

#[test]
fn a_plan_that_cuts_where_parts_have_no_short_form_is_refused() {
    let patterns = rows();
    let mut schedule = naive::lower(&patterns, false);
    let unpack = |program: &Program| program.instructions.iter().position(|i| matches!(i, Unpack { .. }));
    let mut classes = (0..schedule.classes.len()).map(ClassId::new);
    let (class, at) = classes.find_map(|class| Some((class, unpack(&schedule.classes[class])?))).unwrap();
    let code = &mut schedule.classes[class].instructions;
    // The first element by itself, and all others after it.
    let mut both = [code[at].clone(), code[at].clone()];
    for (half, unpack) in both.iter_mut().enumerate() {
        let Unpack { at, to: Part::Window { datatype, .. }, .. } = unpack else { unreachable!() };
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
    let sent: Vec<u64> =
        sends.filter_map(|i| if let Send { bytes, .. } = i { Some(*bytes) } else { None }).collect();
    assert_eq!(sent, [64 << 20]);
}
