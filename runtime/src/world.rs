//! [`World`]: a set of ranks that run one program, and what they do together.

use crate::assertions::Assertions;
use crate::board::Board;
use crate::call::WindowKey;
use crate::collective::Collectives;
use crate::early::Staged;
use crate::element::{Element, element_type};
use crate::explain::Explained;
use crate::fence::{self, Call, header, kind};
use crate::handler::{self, ErrorHandler, Handler};
use crate::lane::Lane;
use crate::log::Pen;
use crate::pending::Pending;
use crate::region::Region;
use crate::registry::{Registry, new_world};
use crate::run::TransportKind;
use crate::stall::Stalls;
use crate::superstep::Supersteps;
use crate::transport::{Cause, Endpoint, Header, Leave, Loss, Lost, Number, Transport};
use crate::window::{Peer, Window, WindowCore};
use crate::wire::Wire;
use fencepost_planner::element::{ElementKind, ElementType};
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Mode, Order};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Class, Error, Result, grid};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A set of ranks that run one program. Every rank has its own; it is neither `Send` nor `Sync`.
pub struct World {
    core: Rc<WorldCore>,
    collectives: Collectives,
}

/// What this rank has moved in dynamic epochs so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Epochs that ended well.
    pub epochs: u64,
    /// Frames sent.
    pub messages: u64,
    /// Bytes sent in them.
    pub bytes: u64,
    /// Of those, bytes that describe operations.
    pub described: u64,
}

/// What is known of the operations of an epoch that was not prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochKind {
    /// Some rank's operations were not those of the last epoch that the same line ended there: they were described.
    /// Also where ranks reach each other's memory: operations are read where they lie then, and nobody remembers them.
    Dynamic,
    /// Every rank's operations were those of the last epoch that the same line ended: nothing was described.
    Replayed,
}

pub(crate) struct WorldCore {
    pub(crate) id: u64,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// Whether this rank reaches everybody's memory.
    pub(crate) reaches_all: bool,
    /// Who reaches whose memory, for the planner.
    pub(crate) placement: Placement,
    /// Whether all ranks are threads of this process that read one another's values.
    pub(crate) shares_all: bool,
    pub(crate) endpoint: RefCell<Endpoint>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) board: Arc<Board>,
    pub(crate) kind: TransportKind,
    /// Supersteps so far: the high half of every word.
    number: Cell<u32>,
    /// Collective calls that made something so far.
    made: Cell<u32>,
    /// Length and element type of this rank's part of each window that lives.
    windows: RefCell<BTreeMap<u32, (usize, ElementType)>>,
    /// Operations that came before their fence.
    pub(crate) staged: RefCell<Staged>,
    /// Why the world has ended.
    dead: RefCell<Option<String>>,
    /// The world that this one was split from.
    above: RefCell<Weak<WorldCore>>,
    /// Payloads that others may still read, by whom and as which frame.
    kept: RefCell<Vec<(usize, u64, Vec<u8>)>>,
    /// Frames posted to each rank by [`WorldCore::post_kept`] or counted by [`WorldCore::posted`].
    posts: RefCell<Vec<u64>>,
    /// Windows of the prepared superstep whose calls are being matched.
    pub(crate) matched: RefCell<Vec<(WindowKey, WindowId)>>,
    pub(crate) sequence: Cell<u64>,
    pub(crate) mode: Cell<Mode>,
    /// Whether order is kept in epochs from here on.
    pub(crate) order: Cell<Order>,
    /// Whether anything is planned; else every operation is a message of its own.
    pub(crate) plans: Cell<bool>,
    pub(crate) traffic: Cell<Traffic>,
    /// Whether, in the last epoch that was not prepared, some rank's operations were not those of last time.
    pub(crate) changed: Cell<bool>,
    /// The supersteps that this rank is in.
    pub(crate) supersteps: Supersteps,
    /// Whether what epochs do is kept to be explained.
    pub(crate) explains: Cell<bool>,
    pub(crate) explained: RefCell<Explained>,
    /// What is done about waits that last.
    pub(crate) stalls: RefCell<Stalls>,
    /// What is done with errors.
    pub(crate) handler: Handler,
}

impl World {
    pub(crate) fn new(
        id: u64,
        endpoint: Endpoint,
        registry: Arc<Registry>,
        kind: TransportKind,
        mode: Mode,
    ) -> Self {
        let (rank, size) = (endpoint.rank(), endpoint.size());
        let reaches_all = (0..size).all(|peer| endpoint.reaches(peer));
        let shares_all = (0..size).all(|peer| endpoint.shares(peer));
        let waits = endpoint.waits().unwrap_or_else(|| registry.waits(size));
        let placement = crate::placement::of_hosts((0..size).map(|peer| endpoint.host(peer)));
        let core = WorldCore {
            id,
            rank,
            size,
            reaches_all,
            placement,
            shares_all,
            endpoint: RefCell::new(endpoint),
            board: registry.board(id, size),
            registry,
            kind,
            number: Cell::new(0),
            made: Cell::new(0),
            windows: RefCell::default(),
            staged: RefCell::new(Staged::new(size)),
            dead: RefCell::default(),
            above: RefCell::default(),
            kept: RefCell::default(),
            posts: RefCell::new(vec![0; size]),
            matched: RefCell::default(),
            sequence: Cell::new(0),
            mode: Cell::new(mode),
            order: Cell::default(),
            plans: Cell::new(true),
            traffic: Cell::default(),
            changed: Cell::new(true),
            supersteps: Supersteps::default(),
            explains: Cell::new(false),
            explained: RefCell::default(),
            stalls: RefCell::new(Stalls { settings: Arc::default(), waits }),
            handler: Handler::default(),
        };
        Self { core: Rc::new(core), collectives: Collectives::default() }
    }

    pub(crate) fn core(&self) -> &Rc<WorldCore> {
        &self.core
    }

    /// What collectives keep from one call to the next.
    pub(crate) fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    /// This rank, from 0.
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.rank
    }

    /// How many ranks there are.
    #[inline]
    pub fn size(&self) -> usize {
        self.core.size
    }

    /// Make a window: `len` zeroed elements on this rank. Every rank calls it; lengths may differ.
    ///
    /// # Errors
    /// `TYPE` where ranks ask for different element types, `SIZE` where there is no such memory on some rank; no rank has the window then.
    /// `RMA_SYNC` where another rank is in another call.
    ///
    /// # Source
    /// MPI 4.1, section 12.2.2 (MPI_WIN_ALLOCATE).
    #[track_caller]
    pub fn window<T: Element>(&self, len: usize) -> Result<Window<T>> {
        let call = Call { hash: 0, name: Some("World::window"), site: Location::caller() };
        let window = self.core.handler.tell(self.window_in(len, &call))?;
        window.on_error(self.core.handler.get());
        Ok(window)
    }

    /// Make a window as a part of `call`.
    pub(crate) fn window_in<T: Element>(&self, len: usize, call: &Call) -> Result<Window<T>> {
        let (core, site) = (&self.core, call.site);
        let element = element_type::<T>();
        // Both are the same on all ranks: what has come to be, and, for what may not, the superstep.
        let (number, attempt) = (core.made.get(), core.number.get().wrapping_add(1));
        let key = WindowKey { world: core.id, window: number };
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
        let memory = core.endpoint.borrow().memory();
        let region = match bytes {
            Some(bytes) => Region::new(bytes, core.size, &memory).map(Arc::new),
            None => Err(std::io::ErrorKind::OutOfMemory.into()),
        };
        let refusal = region.as_ref().err().map_or(String::new(), ToString::to_string);
        let base = region.as_ref().map_or(0, |region| region.base() as u64);
        let mut mine =
            Description { len: len as u64, element, made: region.is_ok(), base }.to_bytes().to_vec();
        mine.extend_from_slice(refusal.as_bytes());
        let region = region.ok();
        if let Some(region) = region.as_ref().filter(|_| core.shares_all) {
            core.registry.give((core.id, attempt), core.rank, core.size, region.clone());
        }
        let call = Call { hash: call.hash ^ 0x77 ^ u64::from(number) << 8, ..*call };
        // Known from here on: those who leave this call sooner may send it operations at once.
        core.windows.borrow_mut().insert(number, (len, element));
        let unmade = Unmade(core, number);
        let all =
            core.meet(&call, |_| mine.clone()).inspect_err(|_| core.registry.withdraw((core.id, attempt)))?;
        core.made.set(number + 1);
        let regions = core.registry.take((core.id, attempt));
        let mut peers = Vec::with_capacity(core.size);
        for (rank, bytes) in all.iter().enumerate() {
            let error =
                |class, message: String| Err(Error::new(class, message).on_rank(core.rank as u32).at(site));
            let Some((description, refusal)) = Description::from_bytes(bytes) else {
                return error(
                    Class::Intern,
                    format!("rank {rank} describes its part of a window in a way that is not ours"),
                );
            };
            if description.element != element {
                return error(
                    Class::Type,
                    format!(
                        "this rank's window has elements of {element} and rank {rank}'s of {}: all ranks must give one type",
                        description.element
                    ),
                );
            }
            if !description.made {
                return error(
                    Class::Size,
                    format!(
                        "rank {rank} asked for {} elements of {} bytes, and there is no such memory: {}",
                        description.len,
                        element.size,
                        String::from_utf8_lossy(refusal)
                    ),
                );
            }
            let region = regions.get(rank).cloned().flatten();
            if core.shares_all && region.is_none() {
                return error(Class::Intern, format!("rank {rank}'s part of the window was not handed over"));
            }
            let reached = rank == core.rank || core.endpoint.borrow().reaches(rank);
            let base = if reached { description.base as *mut u8 } else { std::ptr::null_mut() };
            peers.push(Peer { len: description.len as usize, region, base });
        }
        let Some(region) = region else { return Err(Error::new(Class::Intern, "a window without memory")) };
        std::mem::forget(unmade);
        Ok(Window::new(WindowCore {
            key,
            element,
            world: core.clone(),
            region,
            peers,
            set: Cell::new(0),
            pending: RefCell::new(Pending::default()),
            getting: Pen::default(),
            mode: Cell::new(core.mode.get()),
            apply: fence::apply::<T>,
            short: Cell::new(true),
            lanes: (0..core.size).map(|_| Lane::default()).collect(),
            closed: Cell::new(false),
            matching: RefCell::new(None),
            apart: !core.shares_all,
            wire: RefCell::new(Wire::new(core.size)),
            habit: RefCell::default(),
            notes: RefCell::default(),
            handler: Handler::default(),
        }))
    }

    /// End the epoch of several windows at once: `world.fence((&mut u, &mut v))?`.
    ///
    /// # Errors
    /// As [`Window::fence`].
    #[track_caller]
    pub fn fence<'w>(&self, windows: impl Windows<'w>) -> Result<()> {
        let call = Call::fence(Location::caller());
        windows.with(|windows| {
            handler::of(&self.core, windows).tell(fence::fence(&self.core, windows, &call, None))
        })
    }

    /// [`fence`](Self::fence), with what the program promises.
    ///
    /// # Errors
    /// As [`Window::fence_with`].
    #[track_caller]
    pub fn fence_with<'w>(&self, windows: impl Windows<'w>, assertions: Assertions) -> Result<()> {
        let call = Call::fence(Location::caller());
        windows.with(|windows| {
            handler::of(&self.core, windows).tell(fence::fence_with(&self.core, windows, &call, assertions))
        })
    }

    /// What is done with an error of this world's calls before the call returns it: nothing, unless set. Such calls are all
    /// on the world itself, and fences and supersteps of several windows; what is called on one window, its fences and
    /// supersteps among them, is that window's ([`Window::on_error`]). Each error is told once, to the handler of the call
    /// that found it, on the rank that returns it.
    ///
    /// It holds for this rank; others may do otherwise. Windows that are made and worlds that are split off from here on
    /// begin with it. A handler can't make an error undone, and can't call anything of the world, which it does not have.
    /// Errors of `run` itself, of compiling without a world, and of a program's own are nobody's here.
    ///
    /// # Cost
    /// Nothing, where there is no error.
    ///
    /// # Source
    /// MPI 4.1, section 9.3 (MPI_COMM_SET_ERRHANDLER), where errors are fatal unless set, and windows inherit nothing.
    pub fn on_error(&self, handler: ErrorHandler) {
        self.core.handler.set(handler);
    }

    /// Whether order is kept in the epochs that end, and the supersteps that are prepared, from here on. All ranks say
    /// the same: a fence or a `prepare` where they differ is `RMA_SYNC` on all.
    ///
    /// With [`Order::Relaxed`] each element takes each of its operations exactly once, in some order; schedules may use
    /// that, and what is not compiled keeps the canonical order, which is one of those allowed. A prepared superstep
    /// keeps the order that it was prepared for. A world begins with [`Order::Canonical`], or that of the one it was
    /// split from.
    pub fn set_order(&self, order: Order) {
        self.core.order.set(order);
    }

    /// Wait until every rank has come here.
    ///
    /// # Errors
    /// As [`Window::fence`].
    ///
    /// # Cost
    /// The empty fence: one letter between each two ranks, in one round. Trees would send fewer, in log2 p rounds or
    /// more, and no rank could see that another is in another call.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let call = Call { hash: 0xba, name: Some("World::barrier"), site: Location::caller() };
        self.core.handler.tell(fence::fence(&self.core, &[], &call, None))
    }

    /// Divide the world: ranks of one colour make a new world, ordered by key, then by rank here. `None` takes no part
    /// and gets none.
    ///
    /// # Errors
    /// `RMA_SYNC` where another rank is in another call.
    ///
    /// # Source
    /// MPI 4.1, section 7.4.2 (MPI_COMM_SPLIT).
    #[track_caller]
    pub fn split(&self, colour: Option<u32>, key: i64) -> Result<Option<World>> {
        let hash = 0x5b ^ u64::from(self.core.made.get()) << 8;
        let call = Call { hash, name: Some("World::split"), site: Location::caller() };
        self.core.handler.tell(self.split_in(colour, key, &call))
    }

    fn split_in(&self, colour: Option<u32>, key: i64, call: &Call) -> Result<Option<World>> {
        let core = &self.core;
        let (number, attempt) = (core.made.get(), core.number.get().wrapping_add(1));
        let mut mine = [0; 16];
        mine[..8].copy_from_slice(&colour.map_or(u64::MAX, u64::from).to_le_bytes());
        mine[8..].copy_from_slice(&key.to_le_bytes());
        let all = core.meet(call, |_| mine.to_vec())?;
        core.made.set(number + 1);
        let mut members: Vec<(i64, usize)> = Vec::new();
        for (rank, bytes) in all.iter().enumerate() {
            let Some((theirs, key)) = bytes.split_first_chunk::<8>() else { continue };
            if colour.is_some_and(|colour| u64::from_le_bytes(*theirs) == u64::from(colour)) {
                members.push((key.try_into().map(i64::from_le_bytes).unwrap_or_default(), rank));
            }
        }
        members.sort_unstable();
        let members: Vec<usize> = members.into_iter().map(|(_, rank)| rank).collect();
        // The first member lays the new world out, and the first on each host its part of it; they say where: as numbers
        // that the transport gave, or else in the registry.
        let mut founded = vec![FOUNDED_HERE];
        let first = |host: usize| {
            let endpoint = core.endpoint.borrow();
            members.iter().copied().find(|&member| endpoint.host(member) == host)
        };
        let host = core.endpoint.borrow().host(core.rank);
        let leads = members.first() == Some(&core.rank);
        if leads || members.contains(&core.rank) && first(host) == Some(core.rank) {
            match core.endpoint.borrow_mut().found(&members) {
                Ok(Some(Number { world, part })) => {
                    founded = [&[FOUNDED], &world.to_le_bytes()[..], &part.to_le_bytes()[..]].concat();
                }
                Ok(None) if !leads => {}
                Ok(None) => {
                    let ends = core.kind.ends(members.len())?;
                    core.registry.give_ends((core.id, attempt), members.iter().copied().zip(ends));
                }
                Err(error) => founded = [&[NOT_FOUNDED], error.to_string().as_bytes()].concat(),
            }
        }
        let all = core.meet(call, |_| founded.clone())?;
        let Some(index) = members.iter().position(|&rank| rank == core.rank) else { return Ok(None) };
        let refused = |&&member: &&usize| matches!(all[member].first(), Some(&NOT_FOUNDED) | None);
        if let Some(&founder) = members.iter().find(refused) {
            let why = String::from_utf8_lossy(all[founder].get(1..).unwrap_or_default()).into_owned();
            let message = format!("rank {founder} could not lay out a new world: {why}");
            return Err(call.error(core, Class::Size, message));
        }
        let number = |founder: usize| match all[founder].split_first() {
            Some((&FOUNDED, numbers)) => {
                let number = numbers.first_chunk().zip(numbers.last_chunk());
                let number = number.filter(|_| numbers.len() == 16).map(|(world, part)| Number {
                    world: u64::from_le_bytes(*world),
                    part: u64::from_le_bytes(*part),
                });
                let bug = || call.error(core, Class::Intern, "a new world's number is not one");
                number.map(Some).ok_or_else(bug)
            }
            _ => Ok(None),
        };
        let leader = first(host).unwrap_or(members[0]);
        let (id, endpoint) = match (number(members[0])?, number(leader)?) {
            (Some(Number { world, .. }), Some(Number { part, .. })) => {
                let number = Number { world, part };
                (new_world(), core.endpoint.borrow_mut().enter(number, &members, index)?)
            }
            _ => core.registry.take_end((core.id, attempt), core.rank).ok_or_else(|| {
                call.error(core, Class::Intern, "no end was laid out for this rank of a new world")
            })?,
        };
        let world = World::new(id, endpoint, core.registry.clone(), core.kind.clone(), core.mode.get());
        world.core.supersteps.check(core.supersteps.checks());
        world.core.plans.set(core.plans.get());
        world.core.explains.set(core.explains.get());
        world.on_error(core.handler.get());
        world.core.order.set(core.order.get());
        let Stalls { settings, waits } = &*core.stalls.borrow();
        *world.core.stalls.borrow_mut() = Stalls { settings: settings.clone(), waits: waits.of(&members) };
        *world.core.above.borrow_mut() = Rc::downgrade(core);
        Ok(Some(world))
    }

    /// What this rank has moved so far.
    pub fn traffic(&self) -> Traffic {
        self.core.traffic.get()
    }

    /// What the last epoch was that ended well and was not prepared: all ranks see the same. `Dynamic` before the first.
    pub fn last_epoch(&self) -> EpochKind {
        if self.core.changed.get() { EpochKind::Dynamic } else { EpochKind::Replayed }
    }

    /// What the last epoch that ended well on this rank did and why, in lines of text: dynamic, replayed or prepared; how
    /// many messages and bytes this rank sent, in how many rounds; what `auto` went by; and of each line what it put, got
    /// or accumulated. The words may change.
    ///
    /// It is kept where `FENCEPOST_EXPLAIN=on` ([`run`](crate::run)) or [`Ranks::explain`](crate::Ranks::explain) say so,
    /// and costs nothing else; then a small operation costs as much as a large one.
    ///
    /// ```
    /// let said: Vec<String> = fencepost_runtime::ranks(2).explain(true).run(|world| {
    ///     let mut u = world.window::<u8>(4)?;
    ///     u.put([1, 2]).to(1 - world.rank(), 0)?;
    ///     u.fence()?;
    ///     Ok(world.explain_last())
    /// })?;
    /// assert!(said[0].contains("1 x put, 2 elements"));
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    pub fn explain_last(&self) -> String {
        self.core.explain_last()
    }

    /// What the transport has sent for this rank so far, counted where it is handed over.
    pub fn meter(&self) -> crate::transport::Meter {
        self.core.endpoint.borrow().meter().clone()
    }

    pub(crate) fn leave(&self, how: Leave) {
        // Who has seen the world end may well say that all is well: the others learn why it ended all the same.
        let how = match (how, self.core.why_dead()) {
            (Leave::Finished, Some(why)) => Leave::Failed(why),
            (how, _) => how,
        };
        self.core.endpoint.borrow_mut().leave(how);
    }
}

impl grid::Place for World {
    fn rank(&self) -> usize {
        self.core.rank
    }
    fn size(&self) -> usize {
        self.core.size
    }
}

/// What the first member of a new world says of it, in the first byte: it has this number;
const FOUNDED: u8 = 1;
/// it was laid out in this process;
const FOUNDED_HERE: u8 = 2;
/// it was not laid out, for this reason.
const NOT_FOUNDED: u8 = 0;

/// A window that has not come to be is forgotten.
struct Unmade<'w>(&'w WorldCore, u32);

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        self.0.forget_window(WindowKey { world: self.0.id, window: self.1 });
    }
}

/// What ranks tell each other of a new window.
struct Description {
    len: u64,
    element: ElementType,
    made: bool,
    /// Where its elements begin; 0 where they were not made.
    base: u64,
}

impl Description {
    fn to_bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.element.size.to_le_bytes());
        let (a, b) = match self.element.kind {
            ElementKind::Opaque => (0, 0),
            ElementKind::Scalar(scalar) => (1 + scalar as u8, 0),
            ElementKind::ValueAt(value, index) => (1 + value as u8, 1 + index as u8),
        };
        bytes[12..15].copy_from_slice(&[a, b, u8::from(self.made)]);
        bytes[16..].copy_from_slice(&self.base.to_le_bytes());
        bytes
    }

    /// A description, and what follows it: why the part was not made.
    fn from_bytes(bytes: &[u8]) -> Option<(Self, &[u8])> {
        use fencepost_planner::element::Scalar;
        let (bytes, refusal) = bytes.split_first_chunk::<24>()?;
        let kind = match (bytes[12], bytes[13]) {
            (0, 0) => ElementKind::Opaque,
            (value, 0) => ElementKind::Scalar(*Scalar::ALL.get(value as usize - 1)?),
            (0, _) => return None,
            (value, index) => ElementKind::ValueAt(
                *Scalar::ALL.get(value as usize - 1)?,
                *Scalar::ALL.get(index as usize - 1)?,
            ),
        };
        let description = Self {
            len: u64::from_le_bytes(bytes[..8].try_into().ok()?),
            element: ElementType { size: u32::from_le_bytes(bytes[8..12].try_into().ok()?), kind },
            made: bytes[14] == 1,
            base: u64::from_le_bytes(bytes[16..].try_into().ok()?),
        };
        Some((description, refusal))
    }
}

impl WorldCore {
    /// The word of the next superstep.
    #[inline]
    pub(crate) fn next_word(&self, hash: u32) -> u64 {
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        u64::from(number) << 32 | u64::from(hash)
    }

    /// A call that ends or prepares an epoch, in the order that holds now.
    pub(crate) fn ordered(&self, call: &Call) -> Call {
        match self.order.get() {
            Order::Canonical => *call,
            Order::Relaxed => Call { hash: call.hash ^ 0x3c6e_f372_fe94_f82b, ..*call },
        }
    }

    /// How many supersteps there were so far.
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    /// The next get's place among all of this rank.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.set(self.sequence.get() + 1);
        self.sequence.get()
    }

    /// Why this world, or one above it, has ended.
    fn why_dead(&self) -> Option<String> {
        let own = self.dead.borrow().clone();
        own.or_else(|| self.above.borrow().upgrade().and_then(|above| above.why_dead()))
    }

    /// Whether the world goes on.
    #[inline]
    pub(crate) fn alive(&self) -> Result<()> {
        match &*self.dead.borrow() {
            None => Ok(()),
            Some(why) => {
                Err(Error::new(Class::ProcFailed, why.clone()).on_rank(self.rank as u32).ending_world())
            }
        }
    }

    /// The world ends for this rank, since `lost` can't come any more.
    pub(crate) fn lost(&self, lost: &Lost, call: &Call) -> Error {
        let why = match &lost.how {
            Loss::Ended(_) => lost.to_string(),
            _ => format!("{lost}, and this rank waits for it"),
        };
        self.dead.borrow_mut().get_or_insert_with(|| lost.to_string());
        let class = match &lost.how {
            Loss::Ended(_) => self.board.ended().unwrap_or(Class::ProcFailed),
            _ => Class::ProcFailed,
        };
        call.error(self, class, why).ending_world()
    }

    /// The world was ended by this rank.
    pub(crate) fn ended(&self, why: &str) {
        self.dead.borrow_mut().get_or_insert_with(|| why.into());
    }

    /// What `from` sent can't be: the world ends because of it.
    #[cold]
    pub(crate) fn refuse(&self, endpoint: &mut Endpoint, from: usize, what: &str) -> Lost {
        self.board.end(Class::Intern);
        endpoint.end(Cause { rank: from, what: what.into() });
        Lost { rank: from, how: Loss::Ended(what.into()) }
    }

    /// What `from` sent can't be: the world ends.
    pub(crate) fn corrupt(&self, endpoint: &mut Endpoint, from: usize, call: &Call) -> Error {
        let what =
            format!("rank {from} sent a frame that does not belong to this epoch or lies outside the window");
        endpoint.end(Cause { rank: from, what: what.clone() });
        self.dead.borrow_mut().get_or_insert_with(|| what.clone());
        call.error(self, Class::Intern, what).ending_world()
    }

    /// Which window of the superstep whose calls are being matched this is.
    pub(crate) fn matching_window(&self, key: WindowKey) -> Option<WindowId> {
        self.matched.borrow().iter().find(|(other, _)| *other == key).map(|(_, id)| *id)
    }

    /// Whether this rank has the window, or is in the call that makes it.
    pub(crate) fn has_window(&self, window: u32) -> bool {
        self.windows.borrow().contains_key(&window)
    }

    /// Length and element type of this rank's part of a window that lives.
    pub(crate) fn own(&self, key: WindowKey) -> Option<(usize, ElementType)> {
        self.windows.borrow().get(&key.window).copied()
    }

    pub(crate) fn forget_window(&self, key: WindowKey) {
        self.windows.borrow_mut().remove(&key.window);
        self.staged.borrow_mut().forget(key.window);
    }

    pub(crate) fn count_sent(&self, bytes: usize, described: usize) {
        let traffic = self.traffic.get();
        self.traffic.set(Traffic {
            messages: traffic.messages + 1,
            bytes: traffic.bytes + bytes as u64,
            described: traffic.described + described as u64,
            ..traffic
        });
    }

    /// Post a payload that this rank keeps until it was read.
    pub(crate) fn post_kept(
        &self,
        endpoint: &mut Endpoint,
        to: usize,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<(), Lost> {
        let mut kept = self.kept.borrow_mut();
        if kept.len() > 64 {
            kept.retain(|(to, frame, _)| endpoint.released(*to) <= *frame);
        }
        // SAFETY: the bytes stay where they are, in `kept` or in the registry's attic, until `to` has released them.
        unsafe { endpoint.post(to, header, payload.as_ptr(), payload.len()) }?;
        let posts = &mut self.posts.borrow_mut()[to];
        if endpoint.shares(to) {
            kept.push((to, *posts, payload));
        }
        *posts += 1;
        Ok(())
    }

    /// Frames that were posted to `to` by others than [`post_kept`](Self::post_kept) count as well.
    pub(crate) fn posted(&self, to: usize) -> u64 {
        let posts = &mut self.posts.borrow_mut()[to];
        *posts += 1;
        *posts - 1
    }

    /// Every rank gives every rank some bytes, in one collective call: `[from]` what each gave to this one.
    pub(crate) fn meet(&self, call: &Call, give: impl Fn(usize) -> Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.alive()?;
        {
            let endpoint = &mut *self.endpoint.borrow_mut();
            for to in (0..self.size).filter(|&to| to != self.rank) {
                self.post_kept(endpoint, to, header(0, kind::SETUP, 0), give(to))
                    .map_err(|lost| self.lost(&lost, call))?;
            }
        }
        fence::meet(self, call)?;
        let endpoint = &mut *self.endpoint.borrow_mut();
        let mut all = Vec::with_capacity(self.size);
        for from in 0..self.size {
            if from == self.rank {
                all.push(give(from));
                continue;
            }
            // It was posted before the letter, which has been read, so it is here.
            let frame = self.poll(endpoint, from).map_err(|lost| self.lost(&lost, call))?;
            let bytes = frame.map(|frame| fence::bytes_of(self, endpoint, from, frame, kind::SETUP));
            let bytes = bytes
                .unwrap_or_else(|| Err(self.refuse(endpoint, from, "it has not sent what this call needs")));
            all.push(bytes.map_err(|lost| self.lost(&lost, call))?);
        }
        Ok(all)
    }
}

impl Drop for WorldCore {
    fn drop(&mut self) {
        // A world that is dropped because it has ended, or the one above it has, is not left in peace: those who wait for
        // this rank learn who is at fault.
        let how = match self.why_dead() {
            Some(why) => Leave::Failed(why),
            None if std::thread::panicking() => Leave::Panicked("its thread was unwound".into()),
            None => Leave::Finished,
        };
        let endpoint = self.endpoint.get_mut();
        endpoint.leave(how);
        for (to, frame, payload) in self.kept.get_mut().drain(..) {
            if endpoint.released(to) <= frame {
                self.registry.keep(payload);
            }
        }
    }
}

/// A window of any element type: what several windows that are fenced together have in common.
pub trait AnyWindow: sealed::Sealed {}
impl<T: Element> AnyWindow for Window<T> {}

mod sealed {
    use crate::element::Element;
    use crate::window::{Window, WindowCore};
    use std::rc::Rc;

    pub trait Sealed {
        fn core(&self) -> &Rc<WindowCore>;
    }
    impl<T: Element> Sealed for Window<T> {
        fn core(&self) -> &Rc<WindowCore> {
            Window::core(self)
        }
    }

    pub trait Fenced {
        fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R;
        /// The first six of them, kept alive.
        fn held(&self) -> Held;
    }

    /// Up to six windows.
    pub type Held = [Option<Rc<WindowCore>>; 6];
}
use sealed::Fenced;
pub(crate) use sealed::Held;

/// Windows that are fenced together: `&mut u`, `(&mut u, &mut v)` and so on to six, or a list of `&mut dyn AnyWindow`.
pub trait Windows<'w>: Fenced {}

impl<T: Element> Fenced for &mut Window<T> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        f(&[&**self.core()])
    }
    fn held(&self) -> Held {
        let mut held = Held::default();
        held[0] = Some(self.core().clone());
        held
    }
}
impl<'w, T: Element> Windows<'w> for &'w mut Window<T> {}

impl Fenced for Vec<&mut dyn AnyWindow> {
    fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
        let cores: Vec<&WindowCore> = self.iter().map(|window| &**window.core()).collect();
        f(&cores)
    }
    fn held(&self) -> Held {
        let mut held = Held::default();
        held.iter_mut().zip(self).for_each(|(held, window)| *held = Some(window.core().clone()));
        held
    }
}
impl<'w> Windows<'w> for Vec<&'w mut dyn AnyWindow> {}

macro_rules! windows {
    ($($name:ident)*) => {
        #[expect(non_snake_case, reason = "type names name values too")]
        impl<$($name: Element),*> Fenced for ($(&mut Window<$name>,)*) {
            fn with<R>(self, f: impl FnOnce(&[&WindowCore]) -> R) -> R {
                let ($($name,)*) = self;
                f(&[$(&**$name.core()),*])
            }
            fn held(&self) -> Held {
                let ($($name,)*) = self;
                let mut held = Held::default();
                let mut next = held.iter_mut();
                $(if let Some(held) = next.next() { *held = Some($name.core().clone()); })*
                held
            }
        }
        impl<'w, $($name: Element),*> Windows<'w> for ($(&'w mut Window<$name>,)*) {}
    };
}
windows!(A);
windows!(A B);
windows!(A B C);
windows!(A B C D);
windows!(A B C D E);
windows!(A B C D E F);
