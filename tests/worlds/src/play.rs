//! Plays a program through the public API.

use crate::halves;
use crate::program::{Epoch, Outcome, Program, first_bytes, slice_of};
use fencepost::__private::{Prepared, Superstep, adopt, enter};
use fencepost::{
    AnyWindow, Census, Datatype, Element, EpochKind, Machine, Mode, Order, Ranks, Ticket, TransportKind,
    ValueAt, Window, World,
};
use fencepost_planner::Verified;
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use fencepost_planner::ids::Id;
use fencepost_planner::ir::pattern::{Kind, Local, Operation, Sync};
use fencepost_planner::ir::schedule::Schedule;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A way to play a program.
#[derive(Default)]
pub struct Variant {
    /// The name to print if a test fails.
    pub name: String,
    /// The schedule of each prepared epoch. The list is empty if no epoch is prepared.
    pub prepared: Vec<Option<Arc<Verified<Schedule>>>>,
    /// Whether the second of two equal epochs must be replayed. This is so if every epoch is called
    /// twice in a row and ranks only exchange messages.
    pub replays: bool,
    /// The mode that windows prefer. If it is set, operations have the modes with which they were
    /// drawn, and puts into a window are called before any fences that leave out this window. If it
    /// is `None`, no mode is requested, and no put is called early.
    pub asks: Option<Mode>,
    /// Whether the epochs keep the canonical order.
    pub order: Order,
    /// Whether epochs of one window are scoped epochs, in which gets land in borrowed buffers.
    pub scoped: bool,
    /// One bit for each rank and prepared epoch of one or two windows: whether the epoch ends in
    /// two halves.
    pub halves: u64,
}

type Opaque = [u16; 3];
type Pair = ValueAt<f64, i64>;

/// A window of any of the element types.
pub(crate) enum Any {
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

impl AnyTicket {
    fn bytes(self) -> Option<Vec<u8>> {
        match self {
            AnyTicket::F64(t) => t.take().map(|e| bytes(&e)).ok(),
            AnyTicket::I32(t) => t.take().map(|e| bytes(&e)).ok(),
            AnyTicket::U8(t) => t.take().map(|e| bytes(&e)).ok(),
            AnyTicket::Pair(t) => t.take().map(|e| bytes(&e)).ok(),
            AnyTicket::F32(t) => t.take().map(|e| bytes(&e)).ok(),
            AnyTicket::Opaque(t) => t.take().map(|e| bytes(&e)).ok(),
        }
    }
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

    /// Runs the prepared epoch of this window in two halves.
    pub(crate) fn one(self, prepared: &mut Prepared) -> fencepost::Result<Self> {
        each!(self, w => halves::one(prepared, w).map(Into::into))
    }

    /// Runs the prepared epoch of these two windows in two halves.
    pub(crate) fn two(self, other: Self, prepared: &mut Prepared) -> fencepost::Result<(Self, Self)> {
        each!(self, w => each!(other, v => {
            halves::two(prepared, (w, v)).map(|(w, v)| (w.into(), v.into()))
        }))
    }
}

macro_rules! any {
    ($($variant:ident $element:ty),*) => {
        $(impl From<Window<$element>> for Any {
            fn from(window: Window<$element>) -> Self {
                Any::$variant(window)
            }
        })*
    };
}
any!(F64 f64, I32 i32, U8 u8, Pair Pair, F32 f32, Opaque Opaque);

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

/// Makes one call. Returns the ticket if the call is a get with a ticket.
pub fn issue<T: Element>(
    window: &Window<T>,
    other: Option<fencepost::WindowSection<T>>,
    operation: &Operation,
    target: Option<usize>,
    slice: &[u8],
) -> fencepost::Result<Option<Ticket<T>>> {
    let remote: &Datatype = &operation.remote;
    // A single element is passed as an array and a displacement, which take the fast path.
    let one = remote.as_run().filter(|run| run.end - run.start == 1).map(|run| run.start as usize);
    match (operation.kind, other) {
        (Kind::Put, None) => match one {
            Some(at) => window.put([elements::<T>(slice)[0]]).mode(operation.mode).to(target, at)?,
            None => window.put(&elements::<T>(slice)).mode(operation.mode).to(target, remote)?,
        },
        (Kind::Put, Some(section)) => window.put(section).mode(operation.mode).to(target, remote)?,
        (Kind::Accumulate(op), None) => match one {
            Some(at) => {
                window.accumulate([elements::<T>(slice)[0]], op).mode(operation.mode).to(target, at)?
            }
            None => window.accumulate(&elements::<T>(slice), op).mode(operation.mode).to(target, remote)?,
        },
        (Kind::Accumulate(op), Some(section)) => {
            window.accumulate(section, op).mode(operation.mode).to(target, remote)?
        }
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

/// Returns a world. If `follows`, and if ranks do not reach each other's memory, the elements of
/// operations on more than one element are sent after the census.
pub fn world(ranks: usize, transport: &TransportKind, census: Census, follows: bool) -> Ranks {
    let mut machine = Machine::default();
    if follows {
        machine.moving.pack = 1e6;
    }
    fencepost::ranks(ranks).transport(transport.clone()).census(census).machine(machine)
}

/// Plays `program` in this world, in one variant after another. Returns the results of each
/// variant.
pub fn play(program: &Program, world: &Ranks, variants: &[Variant]) -> fencepost::Result<Vec<Outcome>> {
    let ranks: Vec<Vec<Left>> = world.collect(|world| {
        let mut windows = windows(program, world)?;
        variants.iter().map(|variant| one(program, world, &mut windows, variant)).collect()
    })?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for left in ranks {
        outcomes.resize_with(variants.len(), Outcome::default);
        for (outcome, (memory, tickets)) in outcomes.iter_mut().zip(left) {
            outcome.memory.push(memory);
            outcome.tickets.push(tickets);
        }
    }
    Ok(outcomes)
}

type Left = (Vec<Vec<u8>>, BTreeMap<(usize, u32), Vec<u8>>);

fn windows(program: &Program, world: &World) -> fencepost::Result<Vec<Any>> {
    let lens = program.windows.iter().zip(&program.lens[world.rank()]);
    lens.map(|(element, len)| Any::new(world, *element, *len)).collect()
}

static SUPERSTEP: Superstep =
    Superstep::of_schedules("random", "differential", (file!(), line!(), column!()));

fn one(
    program: &Program,
    world: &World,
    windows: &mut Vec<Any>,
    variant: &Variant,
) -> fencepost::Result<Left> {
    let me = world.rank();
    for (w, window) in windows.iter_mut().enumerate() {
        let first = first_bytes(me, w, program.windows[w], program.lens[me][w]);
        each!(window, w => bytemuck::cast_slice_mut(w).copy_from_slice(&first));
        each!(window, w => w.set_mode(variant.asks.unwrap_or_default()));
    }
    world.set_order(variant.order);
    let mut brought = BTreeMap::new();
    let mut called = BTreeSet::new();
    let mut prepared: Vec<Option<Prepared>> = Vec::new();
    for e in 0..program.epochs.len() {
        // Consecutive equal schedules are one prepared superstep, which is run again.
        let schedule = variant.prepared.get(e).and_then(Option::as_ref);
        let before = e.checked_sub(1).and_then(|before| variant.prepared.get(before)?.as_ref());
        match (schedule, before) {
            (None, _) => prepared.push(None),
            (Some(schedule), Some(before)) if Arc::ptr_eq(schedule, before) => {
                let again = prepared[e - 1].take();
                prepared.push(again);
            }
            (Some(schedule), _) => prepared.push(Some(adopt(&SUPERSTEP, world, [schedule.clone()])?)),
        }
        let epoch = &program.epochs[e];
        let bit = (e * program.ranks + me) as u32 % u64::BITS;
        // A rank without partners need not run a superstep that synchronises by posts and starts.
        let needs_not = |schedule: &Arc<Verified<Schedule>>| {
            let program = &schedule.classes[schedule.class_of[me]];
            schedule.sync == Sync::Pscw && program.instructions.is_empty()
        };
        if schedule.is_some_and(needs_not) && variant.halves.rotate_left(7) >> bit & 1 == 1 {
            continue;
        }
        let halves = variant.halves >> bit & 1 == 1 && matches!(epoch.fenced.len(), 1 | 2);
        let scope = match &mut prepared[e] {
            Some(prepared) => {
                let bound = if halves {
                    prepared.bind_half(fenced(windows, epoch))?
                } else {
                    prepared.bind(fenced(windows, epoch))?
                };
                let scope = enter(&SUPERSTEP, fenced(windows, epoch), 0, None)?;
                Some((bound, scope))
            }
            None => None,
        };
        let calls = calls(program, e, me, windows.len(), variant, &mut called);
        if let ([w], true) = (&epoch.fenced[..], variant.scoped) {
            let landed = each!(&mut windows[*w], w => scoped(w, &calls))?;
            brought.extend(landed.into_iter().map(|(i, bytes)| ((e, i), bytes)));
            continue;
        }
        let tickets = make(windows, &calls)?;
        match scope {
            Some((_bound, scope)) => {
                let exchanges = world.meter().exchanges;
                scope.leave(fenced(windows, epoch), Ok::<(), fencepost::Error>(()))?;
                if let Some(prepared) = prepared[e].as_mut().filter(|_| halves) {
                    halves::end(prepared, windows, &epoch.fenced)?;
                }
                assert_eq!(world.meter().exchanges, exchanges, "a prepared epoch exchanges no notifications");
            }
            None => {
                world.fence(fenced(windows, epoch))?;
                if variant.replays && e % 2 == 1 {
                    assert_eq!(world.last_epoch(), EpochKind::Replayed, "epoch {e} is as the one before");
                }
            }
        }
        for (i, ticket) in tickets {
            brought.insert((e, i), ticket.bytes().expect("a ticket is full after its fence"));
        }
    }
    let memory = windows.iter().map(|window| each!(window, w => bytes(&w[..]))).collect();
    Ok((memory, brought))
}

fn fenced<'w>(windows: &'w mut [Any], epoch: &Epoch) -> Vec<&'w mut dyn AnyWindow> {
    let windows = windows.iter_mut().enumerate().filter(|(w, _)| epoch.fenced.contains(w));
    windows.map(|(_, window)| window.erased()).collect()
}

/// A call: the index of its operation in the epoch, the operation, its target, and its source.
struct Call<'p> {
    index: u32,
    operation: Cow<'p, Operation>,
    target: Option<usize>,
    slice: Vec<u8>,
}

impl Call<'_> {
    /// Returns whether the call gets elements that the reference also reports.
    fn brings(&self) -> bool {
        self.operation.kind == Kind::Get
            && self.operation.local == Local::Buffer
            && self.target.is_some()
            && self.operation.remote.size() > 0
    }
}

/// Returns this rank's calls of epoch `e`, and calls of later epochs that may be made before the
/// fence of epoch `e`.
fn calls<'p>(
    program: &'p Program,
    e: usize,
    me: usize,
    windows: usize,
    variant: &Variant,
    called: &mut BTreeSet<(usize, usize)>,
) -> Vec<Call<'p>> {
    let mut all: Vec<(usize, usize)> = (0..program.epochs[e].operations[me].len()).map(|i| (e, i)).collect();
    if variant.asks.is_some() {
        for w in 0..windows {
            let open = program.epochs[e..].iter().take_while(|epoch| !epoch.fenced.contains(&w)).count();
            // Gets are not moved: they land in program order, whichever windows they are from.
            if let Some(later) = program.epochs.get(e + open) {
                let puts = later.operations[me].iter().enumerate();
                let puts = puts.filter(|(_, o)| o.window.index() == w && o.kind != Kind::Get);
                all.extend(puts.filter(|_| open > 0).map(|(i, _)| (e + open, i)));
            }
        }
    }
    let called = all.into_iter().filter(|call| called.insert(*call));
    let call = |(e, i): (usize, usize)| {
        let drawn = &program.epochs[e].operations[me][i];
        let operation = match variant.asks {
            Some(_) => Cow::Borrowed(drawn),
            None => Cow::Owned(Operation { mode: Mode::Auto, ..drawn.clone() }),
        };
        let target = drawn.target.map(|delta| (me as i64 + delta.0) as usize);
        let slice = slice_of(e, me, i, program.windows[drawn.window.index()], drawn.remote.size());
        Call { index: i as u32, operation, target, slice }
    };
    called.map(call).collect()
}

/// Makes these calls. Returns the tickets of the gets.
fn make(windows: &[Any], calls: &[Call]) -> fencepost::Result<Vec<(u32, AnyTicket)>> {
    let mut tickets = Vec::new();
    for call in calls {
        let operation = &*call.operation;
        let ticket = issue_any!(windows, operation, call.target, &call.slice, F64 I32 U8 Pair F32 Opaque);
        tickets.extend(ticket.filter(|_| call.brings()).map(|ticket| (call.index, ticket)));
    }
    Ok(tickets)
}

/// Makes these calls in a scoped epoch of this window, and ends the epoch. Returns the elements
/// that the gets brought.
fn scoped<T: Element>(window: &mut Window<T>, calls: &[Call]) -> fencepost::Result<Vec<(u32, Vec<u8>)>> {
    let empty = |call: &Call| elements::<T>(&vec![0; 2 * call.operation.remote.size() * size_of::<T>()]);
    let mut buffers: Vec<Vec<T>> = calls.iter().map(empty).collect();
    // Every second get lands in the first half of its buffer. The other gets land in every second
    // element of their buffers, in descending order.
    let part = |call: &Call| match (call.operation.remote.size(), call.index % 2) {
        (count, 1) if count > 0 => Datatype::nest(2 * count as i64 - 1, &[(count, -2)], 1).unwrap(),
        (count, _) => Datatype::run(0..count),
    };
    window.epoch(|epoch| {
        for (call, buffer) in calls.iter().zip(&mut buffers) {
            let operation = &*call.operation;
            match &operation.local {
                Local::Buffer if operation.kind == Kind::Get => {
                    epoch.fetch_into(call.target, &operation.remote, (buffer, part(call)))?;
                }
                Local::Buffer => drop(issue(epoch, None, operation, call.target, &call.slice)?),
                Local::Section { datatype, .. } => {
                    issue(epoch, Some(epoch.section(datatype)), operation, call.target, &call.slice)?;
                }
            }
        }
        Ok(())
    })?;
    let got = calls.iter().zip(buffers).filter(|(call, _)| call.brings());
    let landed = got.map(|(call, buffer)| {
        let mut landed = Vec::new();
        part(call).element_iter().for_each(|at| landed.push(buffer[at as usize]));
        let written = bytes(&buffer).iter().filter(|byte| **byte != 0).count();
        let taken = bytes(&landed);
        assert_eq!(taken.iter().filter(|byte| **byte != 0).count(), written, "the other elements stay zero");
        (call.index, taken)
    });
    Ok(landed.collect())
}
