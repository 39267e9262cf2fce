//! Schedules as text.

use super::ranks;
use crate::ids::Delta;
use crate::ir::pattern::Sync;
use crate::ir::schedule::{Frame, Instruction, Part, Program, Schedule};
use std::fmt::{self, Formatter};

impl fmt::Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Part::Window { owner, window, datatype } => {
                if *owner != Delta::SELF {
                    write!(f, "{owner} ")?;
                }
                write!(f, "{window} {datatype}")
            }
            Part::Operation { operation, first, count } => {
                write!(f, "{operation} {first}..{}", first + count)
            }
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Entry => f.write_str("entry"),
            Frame::Data { bytes } => write!(f, "{bytes} B"),
            Frame::Done => f.write_str("done"),
        }
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Instruction::Expose { peer } => write!(f, "expose {peer}"),
            Instruction::Reclaim { buffer } => write!(f, "reclaim {buffer}"),
            Instruction::Pack { from, element, buffer, at } => {
                write!(f, "pack {from} of {element} B -> {buffer} at {at}")
            }
            Instruction::Combine { from, into, op, element, buffer, at } => {
                write!(f, "combine {from} -> {buffer} at {at} elements {into} of {element} by {op}")
            }
            Instruction::Send { buffer, at, bytes, round } => {
                write!(f, "send {buffer} at {at} {bytes} B {round}")
            }
            Instruction::Await { peer, frame } => write!(f, "await {peer} {frame}"),
            Instruction::Copy { from, to, op, element } => {
                write!(f, "copy {from} -> {to} of {element}")?;
                op.map_or(Ok(()), |op| write!(f, " by {op}"))
            }
            Instruction::Unpack { peer, at, to, op, element } => {
                write!(f, "unpack {peer} at {at} -> {to} of {element}")?;
                op.map_or(Ok(()), |op| write!(f, " by {op}"))
            }
            Instruction::Release { peer } => write!(f, "release {peer}"),
            Instruction::Done { peer } => write!(f, "done {peer}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (id, operation) in self.pattern.operations.iter() {
            write!(f, "  {id} {operation}")?;
            match self.routes.get(id).copied().flatten() {
                Some(route) => {
                    let instead = if route.instead { " instead" } else { "" };
                    writeln!(f, ": {}{instead} {}", super::mode(route.mode), route.round)?;
                }
                None => writeln!(f, ": moves nothing")?,
            }
        }
        write!(f, "  needs")?;
        self.least_len.iter().try_for_each(|(window, len)| write!(f, " {window} {len}"))?;
        writeln!(f)?;
        for (id, buffer) in self.buffers.iter() {
            writeln!(f, "  buffer {id} to {} {} B x{}", buffer.peer, buffer.bytes, buffer.copies)?;
        }
        self.instructions.iter().try_for_each(|instruction| writeln!(f, "  {instruction}"))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule {}", self.name)?;
        if self.sync == Sync::Pscw {
            writeln!(f, "sync pscw")?;
        }
        for (id, program) in self.classes.iter() {
            write!(f, "class {id}\n{program}")?;
        }
        ranks(f, &self.class_of)?;
        writeln!(f, "peak {}", self.peak())
    }
}
