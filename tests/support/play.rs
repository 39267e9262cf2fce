//! Plays a program through the public API.

use super::program::{Outcome, Program, first_bytes, slice_of};
use fencepost::{AnyWindow, Datatype, Element, Mode, Ticket, TransportKind, ValueAt, Window, World};
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use fencepost_planner::ids::Id;
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use std::collections::BTreeMap;

/// How to play it.
pub struct Play {
    pub transport: TransportKind,
    pub mode: Mode,
}

type Opaque = [u16; 3];
type Pair = ValueAt<f64, i64>;

/// A window of whichever type.
enum Any {
    F64(Window<f64>),
    I32(Window<i32>),
    U8(Window<u8>),
    Pair(Window<Pair>),
    F32(Window<f32>),
    Opaque(Window<Opaque>),
}

macro_rules! each {
    ($any:expr, $w:ident => $body:expr) => {
        match $any {
            Any::F64($w) => $body,
            Any::I32($w) => $body,
            Any::U8($w) => $body,
            Any::Pair($w) => $body,
            Any::F32($w) => $body,
            Any::Opaque($w) => $body,
        }
    };
}

enum AnyTicket {
    F64(Ticket<f64>),
    I32(Ticket<i32>),
    U8(Ticket<u8>),
    Pair(Ticket<Pair>),
    F32(Ticket<f32>),
    Opaque(Ticket<Opaque>),
}

impl Any {
    fn new(world: &World, element: ElementType, len: usize) -> fencepost::Result<Self> {
        Ok(match element.kind {
            ElementKind::Scalar(Scalar::F64) => Any::F64(world.window(len)?),
            ElementKind::Scalar(Scalar::I32) => Any::I32(world.window(len)?),
            ElementKind::Scalar(Scalar::U8) => Any::U8(world.window(len)?),
            ElementKind::Scalar(Scalar::F32) => Any::F32(world.window(len)?),
            ElementKind::ValueAt(..) => Any::Pair(world.window(len)?),
            _ => Any::Opaque(world.window(len)?),
        })
    }
    fn erased(&mut self) -> &mut dyn AnyWindow {
        each!(self, w => w)
    }
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytemuck_collect(bytes)
}

fn bytemuck_collect<T: Element>(bytes: &[u8]) -> Vec<T> {
    let mut all = vec![bytemuck::Zeroable::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut all).copy_from_slice(bytes);
    all
}

fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(elements).to_vec()
}

/// Make one call; the ticket of a get that lands in one.
pub fn issue<T: Element>(
    window: &Window<T>,
    other: Option<fencepost::WindowSection<T>>,
    operation: &Operation,
    target: Option<usize>,
    slice: &[u8],
) -> fencepost::Result<Option<Ticket<T>>> {
    let remote: &Datatype = &operation.remote;
    // One element goes the short way too: as an array and a displacement.
    let one = remote.as_run().filter(|run| run.end - run.start == 1).map(|run| run.start as usize);
    match (operation.kind, other) {
        (Kind::Put, None) => match one {
            Some(at) => window.put([elements::<T>(slice)[0]]).mode(operation.mode).to(target, at)?,
            None => window.put(&elements::<T>(slice)).mode(operation.mode).to(target, remote)?,
        },
        (Kind::Put, Some(section)) => window.put(section).mode(operation.mode).to(target, remote)?,
        (Kind::Accumulate(op), None) => match one {
            Some(at) => window.accumulate([elements::<T>(slice)[0]], op).to(target, at)?,
            None => window.accumulate(&elements::<T>(slice), op).to(target, remote)?,
        },
        (Kind::Accumulate(op), Some(section)) => window.accumulate(section, op).to(target, remote)?,
        (Kind::Get, Some(section)) => window.get(section).from(target, remote)?,
        (Kind::Get, None) => return window.fetch(target, remote).map(Some),
    }
    Ok(None)
}

macro_rules! issue_any {
    ($windows:expr, $operation:expr, $target:expr, $slice:expr, $($variant:ident)*) => {{
        let window = &$windows[$operation.window.index()];
        match window {
            $(Any::$variant(w) => {
                let section = match &$operation.local {
                    Local::Buffer => None,
                    Local::Section { window, datatype } => match &$windows[window.index()] {
                        Any::$variant(other) => Some(other.section(datatype)),
                        _ => unreachable!("the generator pairs windows of one type"),
                    },
                };
                issue(w, section, $operation, $target, $slice)?.map(AnyTicket::$variant)
            })*
        }
    }};
}

/// Play `program`; what it left.
pub fn play(program: &Program, how: &Play) -> fencepost::Result<Outcome> {
    let ranks: Vec<(Vec<Vec<u8>>, BTreeMap<(usize, u32), Vec<u8>>)> = fencepost::ranks(program.ranks)
        .transport(how.transport.clone())
        .mode(how.mode)
        .run(|world| one(program, world))?;
    let (memory, tickets) = ranks.into_iter().unzip();
    Ok(Outcome { memory, tickets })
}

type Left = (Vec<Vec<u8>>, BTreeMap<(usize, u32), Vec<u8>>);

fn one(program: &Program, world: &World) -> fencepost::Result<Left> {
    let me = world.rank();
    let mut windows = Vec::new();
    for (w, element) in program.windows.iter().enumerate() {
        let mut window = Any::new(world, *element, program.lens[me][w])?;
        let first = first_bytes(me, w, *element, program.lens[me][w]);
        each!(&mut window, w => bytemuck::cast_slice_mut(w).copy_from_slice(&first));
        windows.push(window);
    }
    let mut brought = BTreeMap::new();
    for (e, epoch) in program.epochs.iter().enumerate() {
        let mut tickets = Vec::new();
        for (i, operation) in epoch.operations[me].iter().enumerate() {
            let target = operation.target.map(|delta| (me as i64 + delta.0) as usize);
            let slice =
                slice_of(e, me, i, program.windows[operation.window.index()], operation.remote.size());
            let ticket = issue_any!(windows, operation, target, &slice, F64 I32 U8 Pair F32 Opaque);
            if let Some(ticket) = ticket
                && target.is_some()
                && operation.remote.size() > 0
            {
                tickets.push((i as u32, ticket));
            }
        }
        let fenced: Vec<&mut dyn AnyWindow> = windows
            .iter_mut()
            .enumerate()
            .filter(|(w, _)| epoch.fenced.contains(w))
            .map(|(_, window)| window.erased())
            .collect();
        world.fence(fenced)?;
        for (i, ticket) in tickets {
            let landed = match ticket {
                AnyTicket::F64(t) => t.take().map(|e| bytes(&e)).ok(),
                AnyTicket::I32(t) => t.take().map(|e| bytes(&e)).ok(),
                AnyTicket::U8(t) => t.take().map(|e| bytes(&e)).ok(),
                AnyTicket::Pair(t) => t.take().map(|e| bytes(&e)).ok(),
                AnyTicket::F32(t) => t.take().map(|e| bytes(&e)).ok(),
                AnyTicket::Opaque(t) => t.take().map(|e| bytes(&e)).ok(),
            };
            brought.insert((e, i), landed.expect("a ticket is full after its fence"));
        }
    }
    let memory = windows.iter().map(|window| each!(window, w => bytes(&w[..]))).collect();
    Ok((memory, brought))
}
