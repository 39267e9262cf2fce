//! Programs as words. Operations, routes, buffers and instructions are stored once each, whichever
//! classes contain them, since the classes of a halo consist of the same few items.
//!
//! Each reference to a table is checked against the length of the table, so that no reader of a
//! loaded schedule can index past its end.

use super::words::{Reader, Uses, Writer};
use crate::element::{ElementKind, ElementType, Op, Scalar};
use crate::error::Result;
use crate::ids::{BufferId, ClassId, Delta, OperationId, RoundId};
use crate::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use crate::ir::schedule::{Buffer, Frame, Instruction, Part, Program, Routing};
use crate::table::Table;
use indexmap::IndexSet;

/// A value that has exactly one encoding.
pub(super) trait Wire: Sized {
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Result<Self>;
}

/// The encodings of distinct items, in order of appearance.
#[derive(Default)]
struct Pool(IndexSet<Vec<u8>>);

impl Pool {
    /// Appends to `list` the count of `items` and then the number of each item in this pool.
    fn list<'a, T: Wire + 'a>(
        &mut self,
        to: &mut Writer,
        list: &mut Writer,
        items: impl ExactSizeIterator<Item = &'a T>,
    ) {
        list.number(items.len());
        for item in items {
            item.write(to);
            list.number(self.0.insert_full(to.take()).0);
        }
    }

    fn write(self, to: &mut Writer) {
        to.number(self.0.len());
        self.0.iter().for_each(|words| to.bytes.extend_from_slice(words));
    }
}

/// Writes every program: first the distinct components, then each program as lists of references to
/// them.
pub(super) fn write(classes: &Table<ClassId, Program>, to: &mut Writer) {
    let mut pools: [Pool; 4] = Default::default();
    let mut lists = Writer::default();
    lists.number(classes.len());
    for program in classes.values() {
        let [operations, routes, buffers, instructions] = &mut pools;
        operations.list(to, &mut lists, program.pattern.operations.values());
        routes.list(to, &mut lists, program.routes.values());
        lists.number(program.least_len.len());
        program.least_len.values().for_each(|&len| lists.number(len));
        buffers.list(to, &mut lists, program.buffers.values());
        instructions.list(to, &mut lists, program.instructions.iter());
    }
    pools.into_iter().for_each(|pool| pool.write(to));
    to.bytes.append(&mut lists.bytes);
}

/// Reads every program, and checks its references.
pub(super) fn read(from: &mut Reader<'_>) -> Result<Table<ClassId, Program>> {
    let operations: Vec<Operation> = from.all(Wire::read)?;
    let routes: Vec<Option<Routing>> = from.all(Wire::read)?;
    let buffers: Vec<Buffer> = from.all(Wire::read)?;
    let instructions: Vec<(Instruction, Uses)> = from.all(|from| {
        from.uses = Uses::default();
        Ok((Instruction::read(from)?, from.uses))
    })?;
    from.all(|from| {
        let pattern = Pattern { operations: list(from, "operation", &operations)? };
        let routes: Table<OperationId, _> = list(from, "route", &routes)?;
        if routes.len() != pattern.operations.len() {
            let (routes, operations) = (routes.len(), pattern.operations.len());
            return Err(from.bad(format_args!("{routes} routes of {operations} operations")));
        }
        let least_len: Table<_, usize> = from.all(Reader::usize)?;
        if least_len.len() != from.known.windows {
            let (lengths, windows) = (least_len.len(), from.known.windows);
            return Err(from.bad(format_args!("{lengths} least lengths of {windows} windows")));
        }
        let buffers: Table<BufferId, Buffer> = list(from, "buffer", &buffers)?;
        let instructions = from.all(|from| {
            let (instruction, uses) = &instructions[from.index("instruction", instructions.len())?];
            if uses.operations > pattern.operations.len() || uses.buffers > buffers.len() {
                let (operations, buffers) = (pattern.operations.len(), buffers.len());
                return Err(from.bad(format_args!(
                    "{instruction:?} in a program of {operations} operations and {buffers} buffers"
                )));
            }
            Ok(instruction.clone())
        })?;
        Ok(Program { pattern, routes, least_len, buffers, instructions })
    })
}

/// Reads a list of references, and returns the items that they refer to.
fn list<T: Clone, C: FromIterator<T>>(from: &mut Reader<'_>, what: &str, items: &[T]) -> Result<C> {
    from.all(|from| Ok(items[from.index(what, items.len())?].clone()))
}

impl Wire for Operation {
    fn write(&self, to: &mut Writer) {
        match self.kind {
            Kind::Put => to.byte(0),
            Kind::Get => to.byte(1),
            Kind::Accumulate(op) => {
                to.byte(2);
                op.write(to);
            }
        }
        to.number(self.window.0);
        self.target.write(to);
        to.datatype(&self.remote);
        match &self.local {
            Local::Buffer => to.byte(0),
            Local::Section { window, datatype } => {
                to.byte(1);
                to.number(window.0);
                to.datatype(datatype);
            }
        }
        to.byte(self.mode as u8);
        to.file(&self.site.file);
        to.number(self.site.line);
        to.number(self.site.column);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let kind = match from.byte()? {
            0 => Kind::Put,
            1 => Kind::Get,
            2 => Kind::Accumulate(Op::read(from)?),
            code => return Err(from.unknown("a kind of operation", code, 3)),
        };
        Ok(Self {
            kind,
            window: from.id("window", from.known.windows)?,
            target: Option::read(from)?,
            remote: from.datatype()?,
            local: match from.flag()? {
                false => Local::Buffer,
                true => Local::Section {
                    window: from.id("window", from.known.windows)?,
                    datatype: from.datatype()?,
                },
            },
            mode: from.one_of("a mode", &Mode::ALL)?,
            site: Site { file: from.file()?, line: from.u32()?, column: from.u32()? },
        })
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Writer) {
        to.byte(self.is_some().into());
        if let Some(value) = self {
            value.write(to);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.flag()?.then(|| T::read(from)).transpose()
    }
}

impl Wire for Op {
    fn write(&self, to: &mut Writer) {
        to.byte(*self as u8);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.one_of("an operator", &Op::ALL)
    }
}

impl Wire for Scalar {
    fn write(&self, to: &mut Writer) {
        to.byte(*self as u8);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        from.one_of("a type", &Scalar::ALL)
    }
}

impl Wire for ElementType {
    fn write(&self, to: &mut Writer) {
        to.number(self.size);
        match self.kind {
            ElementKind::Scalar(scalar) => {
                to.byte(0);
                scalar.write(to);
            }
            ElementKind::ValueAt(value, index) => {
                to.byte(1);
                value.write(to);
                index.write(to);
            }
            ElementKind::Opaque => to.byte(2),
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let size = from.u32()?;
        let (kind, fits) = match from.byte()? {
            0 => {
                let scalar = Scalar::read(from)?;
                (ElementKind::Scalar(scalar), size == scalar.size())
            }
            1 => {
                let (value, index) = (Scalar::read(from)?, Scalar::read(from)?);
                (ElementKind::ValueAt(value, index), size == value.size() + index.size())
            }
            2 => (ElementKind::Opaque, size > 0),
            code => return Err(from.unknown("a kind of element", code, 3)),
        };
        if !fits {
            return Err(from.bad(format_args!("elements of {size} bytes that are {kind:?}")));
        }
        Ok(Self { size, kind })
    }
}

impl Wire for Delta {
    fn write(&self, to: &mut Writer) {
        to.signed(self.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let delta = from.signed()?;
        if delta.unsigned_abs() >= u64::from(from.known.ranks) {
            return Err(from.bad(format_args!("a peer {delta:+} ranks away, of {} ranks", from.known.ranks)));
        }
        Ok(Self(delta))
    }
}

impl Wire for Routing {
    fn write(&self, to: &mut Writer) {
        to.byte(self.mode as u8);
        to.byte(self.instead.into());
        to.number(self.round.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let mode = from.one_of("a mode", &Mode::ALL)?;
        if mode == Mode::Auto {
            return Err(from.bad("a route that was not decided"));
        }
        Ok(Self { mode, instead: from.flag()?, round: RoundId(from.u32()?) })
    }
}

impl Wire for Buffer {
    fn write(&self, to: &mut Writer) {
        self.peer.write(to);
        to.number(self.bytes);
        to.number(self.copies);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let buffer = Self { peer: Delta::read(from)?, bytes: from.usize()? as u64, copies: from.u32()? };
        if buffer.copies == 0 {
            return Err(from.bad("a buffer of no copies"));
        }
        Ok(buffer)
    }
}

impl Wire for Part {
    fn write(&self, to: &mut Writer) {
        match self {
            Part::Window { owner, window, datatype } => {
                to.byte(0);
                owner.write(to);
                to.number(window.0);
                to.datatype(datatype);
            }
            Part::Operation { operation, first, count } => {
                to.byte(1);
                to.number(operation.0);
                to.number(*first);
                to.number(*count);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        if !from.flag()? {
            return Ok(Part::Window {
                owner: Delta::read(from)?,
                window: from.id("window", from.known.windows)?,
                datatype: from.datatype()?,
            });
        }
        let operation = from.operation()?;
        let (first, count) = (from.usize()?, from.usize()?);
        // Neither number exceeds `isize::MAX`, so the sum does not overflow.
        if first + count > isize::MAX as usize {
            return Err(from.bad(format_args!("{count} elements from element {first} of an operation")));
        }
        Ok(Part::Operation { operation, first, count })
    }
}

impl Wire for Frame {
    fn write(&self, to: &mut Writer) {
        match self {
            Frame::Entry => to.byte(0),
            Frame::Data { bytes } => {
                to.byte(1);
                to.number(*bytes);
            }
            Frame::Done => to.byte(2),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(match from.byte()? {
            0 => Frame::Entry,
            1 => Frame::Data { bytes: from.usize()? as u64 },
            2 => Frame::Done,
            code => return Err(from.unknown("a kind of frame", code, 3)),
        })
    }
}

impl Wire for Instruction {
    fn write(&self, to: &mut Writer) {
        match self {
            Instruction::Expose { peer } => {
                to.byte(0);
                peer.write(to);
            }
            Instruction::Reclaim { buffer } => {
                to.byte(1);
                to.number(buffer.0);
            }
            Instruction::Pack { from, element, buffer, at } => {
                to.byte(2);
                from.write(to);
                to.number(*element);
                to.number(buffer.0);
                to.number(*at);
            }
            Instruction::Send { buffer, at, bytes, round } => {
                to.byte(3);
                to.number(buffer.0);
                to.number(*at);
                to.number(*bytes);
                to.number(round.0);
            }
            Instruction::Await { peer, frame } => {
                to.byte(4);
                peer.write(to);
                frame.write(to);
            }
            Instruction::Copy { from, to: target, op, element } => {
                to.byte(5);
                from.write(to);
                target.write(to);
                op.write(to);
                element.write(to);
            }
            Instruction::Unpack { peer, at, to: target, op, element } => {
                to.byte(6);
                peer.write(to);
                to.number(*at);
                target.write(to);
                op.write(to);
                element.write(to);
            }
            Instruction::Release { peer } => {
                to.byte(7);
                peer.write(to);
            }
            Instruction::Done { peer } => {
                to.byte(8);
                peer.write(to);
            }
            Instruction::Combine { from, into, op, element, buffer, at } => {
                to.byte(9);
                from.write(to);
                to.datatype(into);
                op.write(to);
                element.write(to);
                to.number(buffer.0);
                to.number(*at);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        Ok(match from.byte()? {
            0 => Instruction::Expose { peer: Delta::read(from)? },
            1 => Instruction::Reclaim { buffer: from.buffer()? },
            2 => Instruction::Pack {
                from: Part::read(from)?,
                element: from.u32()?,
                buffer: from.buffer()?,
                at: from.usize()? as u64,
            },
            3 => Instruction::Send {
                buffer: from.buffer()?,
                at: from.usize()? as u64,
                bytes: from.usize()? as u64,
                round: RoundId(from.u32()?),
            },
            4 => Instruction::Await { peer: Delta::read(from)?, frame: Frame::read(from)? },
            5 => Instruction::Copy {
                from: Part::read(from)?,
                to: Part::read(from)?,
                op: Option::read(from)?,
                element: ElementType::read(from)?,
            },
            6 => Instruction::Unpack {
                peer: Delta::read(from)?,
                at: from.usize()? as u64,
                to: Part::read(from)?,
                op: Option::read(from)?,
                element: ElementType::read(from)?,
            },
            7 => Instruction::Release { peer: Delta::read(from)? },
            8 => Instruction::Done { peer: Delta::read(from)? },
            9 => Instruction::Combine {
                from: Part::read(from)?,
                into: from.datatype()?,
                op: Op::read(from)?,
                element: ElementType::read(from)?,
                buffer: from.buffer()?,
                at: from.usize()? as u64,
            },
            code => return Err(from.unknown("an instruction", code, 10)),
        })
    }
}
