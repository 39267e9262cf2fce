//! Damages to schedules, one at a time.

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op};
use fencepost_planner::ids::{Delta, WindowId};
use fencepost_planner::ir::schedule::{Frame, Instruction, Part, Program};

use Instruction::{Await, Combine, Copy, Done, Expose, Pack, Reclaim, Release, Send, Unpack};

/// Damages one instruction of one class. Returns `None` if the damage does not apply.
pub type Apply = fn(&mut Program, usize) -> Option<()>;

pub struct Damage {
    pub name: &'static str,
    /// The names of the errors with which the damaged schedule may be refused. The first name is
    /// the usual one.
    pub refused: &'static [&'static str],
    /// Whether the damage may have no effect. Then the schedule may be accepted, but only if it
    /// runs like the reference.
    pub harmless: bool,
    pub apply: Apply,
}

/// Returns whether the instruction copies from or to a window of another rank.
pub fn foreign(instruction: &Instruction) -> bool {
    let far = |part: &Part| matches!(part, Part::Window { owner, .. } if *owner != Delta::SELF);
    matches!(instruction, Copy { from, to, .. } if far(from) || far(to))
}

fn shift(part: &mut Part) -> Option<()> {
    if let Part::Window { datatype, .. } = part {
        *datatype = datatype.shift(1).unwrap();
        return Some(());
    }
    None
}

/// Removes the instruction if it satisfies `which`.
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

/// All damages.
pub const DAMAGES: &[Damage] = &[
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
                *into = into.shift(if into.low() > 0 { -1 } else { 1 }).unwrap();
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
            // Dones stay behind the copies, and entries stay before the dones.
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
        name: "a buffer not reclaimed (W5)",
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
        name: "no entry sent to a peer",
        refused: &["LeftEarly"],
        harmless: false,
        apply: |program, at| drop_if(program, at, |i| matches!(i, Expose { .. })),
    },
    Damage {
        name: "no done sent to a peer",
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
        name: "a movement that no operation asked for",
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
