//! Reads the text of a schedule in the form that the planner prints, together with its patterns.

use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{ClassId, Delta, Id, OperationId, RoundId, WindowId};
use fencepost_planner::ir::pattern::{Mode, Pattern, Patterns, Sync};
use fencepost_planner::ir::schedule::{
    Buffer, Frame, Instruction, Part, Placement, Program, Routing, Schedule,
};

/// Returns the schedule that `text` describes. Its windows, shape and order are those of
/// `patterns`.
pub fn schedule(text: &str, patterns: &Patterns, placement: Placement) -> Schedule {
    let mut schedule = Schedule {
        name: patterns.name.clone(),
        windows: patterns.windows.clone(),
        shape: patterns.shape.clone(),
        classes: Default::default(),
        class_of: Vec::new(),
        order: patterns.order,
        sync: Sync::Fence,
        placement,
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let read = match word {
            "schedule" | "peak" => Some(()),
            "sync" => (rest == "pscw").then(|| schedule.sync = Sync::Pscw),
            "class" => {
                schedule.classes.push(Program {
                    pattern: Pattern::default(),
                    routes: Default::default(),
                    least_len: Default::default(),
                    buffers: Default::default(),
                    instructions: Vec::new(),
                });
                Some(())
            }
            "ranks" => ranks(rest, &mut schedule.class_of),
            _ => {
                let windows = schedule.windows.clone();
                schedule.classes.values_mut().last().and_then(|program| one(word, rest, program, &windows))
            }
        };
        read.unwrap_or_else(|| panic!("{line:?} is not a line of a schedule"));
    }
    schedule
}

fn ranks(text: &str, class_of: &mut Vec<ClassId>) -> Option<()> {
    for word in text.split(' ') {
        match word.strip_prefix('x') {
            Some(times) => {
                class_of.extend(std::iter::repeat_n(*class_of.last()?, times.parse::<usize>().ok()? - 1))
            }
            None => class_of.push(id(word)?),
        }
    }
    Some(())
}

fn one(
    word: &str,
    rest: &str,
    program: &mut Program,
    windows: &fencepost_planner::table::Table<WindowId, ElementType>,
) -> Option<()> {
    let code = &mut program.instructions;
    match word {
        "needs" => {
            let words: Vec<&str> = rest.split(' ').collect();
            program.least_len = words
                .chunks(2)
                .map(|pair| pair.get(1)?.parse().ok())
                .collect::<Option<Vec<usize>>>()?
                .into_iter()
                .collect();
        }
        "buffer" => {
            // b0 to +1 24 B x2
            let words: Vec<&str> = rest.split(' ').collect();
            let [_, "to", peer, bytes, "B", copies] = words[..] else { return None };
            let (bytes, copies) = (bytes.parse().ok()?, copies.strip_prefix('x')?.parse().ok()?);
            program.buffers.push(Buffer { peer: delta(peer)?, bytes, copies });
        }
        "expose" => code.push(Instruction::Expose { peer: delta(rest)? }),
        "done" => code.push(Instruction::Done { peer: delta(rest)? }),
        "release" => code.push(Instruction::Release { peer: delta(rest)? }),
        "reclaim" => code.push(Instruction::Reclaim { buffer: id(rest)? }),
        "await" => {
            let (peer, frame) = rest.split_once(' ')?;
            let frame = match frame {
                "entry" => Frame::Entry,
                "done" => Frame::Done,
                data => Frame::Data { bytes: data.strip_suffix(" B")?.parse().ok()? },
            };
            code.push(Instruction::Await { peer: delta(peer)?, frame });
        }
        "pack" => {
            let (from, to) = rest.split_once(" -> ")?;
            let (from, element) = from.rsplit_once(" of ")?;
            let (buffer, at) = to.split_once(" at ")?;
            let element = element.strip_suffix(" B")?.parse().ok()?;
            code.push(Instruction::Pack {
                from: part(from)?,
                element,
                buffer: id(buffer)?,
                at: at.parse().ok()?,
            });
        }
        "combine" => {
            let (from, to) = rest.split_once(" -> ")?;
            let (to, op) = to.rsplit_once(" by ")?;
            let (to, element) = to.rsplit_once(" of ")?;
            let (buffer, to) = to.split_once(" at ")?;
            let (at, into) = to.split_once(" elements ")?;
            let read: Patterns = format!("superstep s\nwindow w0 {element}\nshape 1\n").parse().ok()?;
            code.push(Instruction::Combine {
                from: part(from)?,
                into: into.parse().ok()?,
                op: Op::ALL.into_iter().find(|known| known.to_string() == op)?,
                element: *read.windows.values().next()?,
                buffer: id(buffer)?,
                at: at.parse().ok()?,
            });
        }
        "send" => {
            let words: Vec<&str> = rest.split(' ').collect();
            let [buffer, "at", at, bytes, "B", round] = words[..] else { return None };
            let round = RoundId(round.strip_prefix("round")?.parse().ok()?);
            let (at, bytes) = (at.parse().ok()?, bytes.parse().ok()?);
            code.push(Instruction::Send { buffer: id(buffer)?, at, bytes, round });
        }
        "copy" => {
            let (from, to) = rest.split_once(" -> ")?;
            let (to, element, op) = target(to)?;
            code.push(Instruction::Copy { from: part(from)?, to, op, element });
        }
        "unpack" => {
            let (from, to) = rest.split_once(" -> ")?;
            let (peer, at) = from.split_once(" at ")?;
            let (to, element, op) = target(to)?;
            code.push(Instruction::Unpack { peer: delta(peer)?, at: at.parse().ok()?, to, op, element });
        }
        operation => {
            // The reader of patterns has read the operation itself.
            id::<OperationId>(operation)?;
            let call = rest.rsplit_once(": ")?.0;
            let mut text = String::from("superstep s\n");
            for (id, element) in windows.iter() {
                text += &format!("window {id} {element}\n");
            }
            let read: Patterns = format!("{text}shape 1\nclass c0\n{call}\nranks c0\n").parse().ok()?;
            program
                .pattern
                .operations
                .push(read.classes.values().next()?.operations.values().next()?.clone());
            program.routes.push(Some(Routing { mode: Mode::Aggregated, instead: false, round: RoundId(0) }));
        }
    }
    Some(())
}

/// Reads `w0 8..12 of f64 by SUM`.
fn target(text: &str) -> Option<(Part, ElementType, Option<Op>)> {
    let (text, op) = match text.split_once(" by ") {
        // A nest contains a "by" too, but before the element type.
        _ if !text.rsplit_once(" of ")?.1.contains(" by ") => (text, None),
        _ => {
            let (text, op) = text.rsplit_once(" by ")?;
            (text, Some(Op::ALL.into_iter().find(|known| known.to_string() == op)?))
        }
    };
    let (part_text, element) = text.rsplit_once(" of ")?;
    let read: Patterns = format!("superstep s\nwindow w0 {element}\nshape 1\n").parse().ok()?;
    Some((part(part_text)?, *read.windows.values().next()?, op))
}

/// Reads `w0 8..12`, `+1 w0 8..12` or `op1 0..4`.
fn part(text: &str) -> Option<Part> {
    let (first, rest) = text.split_once(' ')?;
    if let Some(operation) = id::<OperationId>(first) {
        let (first, end) = rest.split_once("..")?;
        let (first, end): (usize, usize) = (first.parse().ok()?, end.parse().ok()?);
        return Some(Part::Operation { operation, first, count: end - first });
    }
    if let Some(window) = id::<WindowId>(first) {
        return Some(Part::Window { owner: Delta::SELF, window, datatype: rest.parse().ok()? });
    }
    let (window, rest) = rest.split_once(' ')?;
    Some(Part::Window { owner: delta(first)?, window: id(window)?, datatype: rest.parse().ok()? })
}

fn delta(text: &str) -> Option<Delta> {
    if text == "self" { Some(Delta::SELF) } else { text.parse().ok().map(Delta) }
}

/// Reads an id in its printed form.
fn id<I: Id + std::fmt::Display>(text: &str) -> Option<I> {
    let digits = text.find(|c: char| c.is_ascii_digit())?;
    let id = I::new(text[digits..].parse::<u32>().ok()? as usize);
    (id.to_string() == text).then_some(id)
}
