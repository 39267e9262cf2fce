//! [`World`]: a set of ranks that run one program, and what they do together.

use crate::census::state::counts::Halving;
use crate::census::state::items::Items;
use crate::census::state::staged::Staged;
use crate::census::state::stands::Stands;
use crate::check::state::checks::Checks;
use crate::collect::operation::WindowKey;
use crate::collect::pending::Streaks;
use crate::locks::state::service::Service;
use crate::messages::state::Messages;
use crate::messages::state::limits::Limits;
use crate::posts::state::lendings::Lendings;
use crate::protocol::state::explained::Explained;
use crate::protocol::state::stalls::Stalls;
use crate::protocol::state::traffic::EpochKind;
use crate::protocol::state::traffic::Traffic;
use crate::state::attendants::Attendants;
use crate::state::call_sites::CallSites;
use crate::state::calls::Calls;
use crate::state::handler::Handler;
use crate::state::key::Key;
use crate::state::registry::Registry;
use crate::state::transport_kind::TransportKind;
use crate::state::unfenced::Unfenced;
use crate::state::window::WindowCore;
use crate::supersteps::state::{InFlight, Supersteps};
use fencepost_planner::census::{Census, choose, dense, short};
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Mode, Order};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::{Error, ErrorClass, Result, grid};
use fencepost_transport::{Alarms, Cause, Channels, Endpoint, Leave, Liveness, Port, Topology};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A set of ranks that run one program. Every rank has its own; it is neither `Send` nor `Sync`.
pub struct World {
    pub(crate) core: Rc<WorldCore>,
    /// The values that collectives keep from one call to the next.
    pub(crate) collectives: OnceCell<Box<dyn Any>>,
}

/// A function that reads what has come for a rank while it waits for something else.
type Reads = fn(&WorldCore, &mut Endpoint);

pub(crate) struct WorldCore {
    pub(crate) id: u64,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// Whether this rank reaches the memory of all ranks.
    pub(crate) reaches_all: bool,
    /// Whether fences may take the short path if only records wait for them: this rank reaches the
    /// memory of all ranks, and notifies each rank.
    pub(crate) is_straight: bool,
    /// Whether some ranks reach each other's memory.
    pub(crate) reaches_some: bool,
    /// Which ranks reach whose memory, for the planner.
    pub(crate) placement: Placement,
    /// Whether all ranks are threads of this process that read one another's values.
    pub(crate) shares_all: bool,
    pub(crate) endpoint: RefCell<Endpoint>,
    pub(crate) registry: Arc<Registry>,
    /// The key by which ranks compare their calls.
    pub(crate) key: Key,
    pub(crate) call_sites: Arc<CallSites>,
    pub(crate) kind: TransportKind,
    /// The cost of communication, for all decisions of this world. It is the same on all ranks,
    /// since it is in the [`Key`].
    pub(crate) machine: Machine,
    /// The number of supersteps so far: the high half of every word.
    pub(crate) number: Cell<u32>,
    /// How ranks find out which ranks have entered an exchange, and which have something for whom.
    /// Chosen by the program, or by the machine model.
    pub(crate) census: Census,
    /// The census of the exchange that this rank is in, or was in last.
    pub(crate) taken: Cell<Census>,
    /// The number of targets of each rank from which on, by the model, a reduced census is over
    /// sooner than a sparse one; and whether each rank had that number in the last fence.
    pub(crate) dense: (u32, Cell<bool>),
    /// The most bytes of a frame of operations that is piggybacked on a census.
    pub(crate) short: usize,
    /// The positions of the ranks in a reduced census, after the first one.
    pub(crate) halving: OnceCell<Halving>,
    /// The census that the program has chosen, for this world and those split from it.
    pub(crate) chosen_census: Option<Census>,
    /// The hosts of the ranks, and their leaders in a sparse census.
    pub(crate) stands: Stands,
    /// The items of the last census.
    pub(crate) items: RefCell<Items>,
    /// Which collective call this rank is in.
    pub(crate) calls: Calls,
    /// A digest of the prepared supersteps that were run since the last exchange in which all ranks
    /// agreed.
    pub(crate) ran: Cell<u64>,
    /// The number of collective calls that made something so far.
    pub(crate) made: Cell<u32>,
    /// The length and element type of this rank's part of each window that exists.
    pub(crate) windows: RefCell<BTreeMap<u32, (usize, ElementType)>>,
    /// A buffer for copies of what others have exposed to this rank.
    pub(crate) copied: Cell<Vec<u8>>,
    /// The windows for which operations are collected.
    collecting: RefCell<BTreeMap<u32, Weak<WindowCore>>>,
    /// The windows that are posted to ranks which do not reach them.
    pub(crate) lendings: Arc<Lendings>,
    /// What serves the requests of other ranks.
    pub(crate) attendants: Attendants,
    /// Whether operations may name sections of other windows than theirs.
    sections: Cell<bool>,
    /// The number of parts of windows that this rank holds by locks which were flushed.
    pub(crate) held_parts: Cell<usize>,
    /// What serves this rank's parts of windows for locks, for ranks that do not reach them.
    pub(crate) lock_service: OnceCell<Arc<Service>>,
    /// The limits of messages that no receive has taken.
    pub(crate) limits: Cell<Limits>,
    /// The messages between this rank and others, from the first call on.
    pub(crate) messages: OnceCell<Box<RefCell<Messages>>>,
    /// Reads the messages that have come, in waits for something else.
    pub(crate) reads: Cell<Option<Reads>>,
    /// Operations that came before their fence.
    pub(crate) staged: RefCell<Staged>,
    /// The runs of plans that were begun and are not finished yet, in that order.
    pub(crate) in_flight: RefCell<Vec<Rc<dyn InFlight>>>,
    /// Whether this rank has declared that it accesses memory of other ranks.
    touching: Cell<bool>,
    /// The line that began the superstep of all ranks that is not finished yet. No other call of
    /// all ranks is admitted meanwhile.
    pub(crate) begun: Cell<Option<&'static Location<'static>>>,
    /// The reason why the world has ended.
    pub(crate) dead: RefCell<Option<Cause>>,
    /// Counts the failures that concern this rank. `heeded` is the count up to which none was a
    /// failure of a rank of this world.
    pub(crate) alarms: Alarms,
    pub(crate) heeded: Cell<u32>,
    /// The worlds from which this one was split, the one of the whole program first. Each of them
    /// may be dropped.
    pub(crate) above: RefCell<Vec<Weak<WorldCore>>>,
    /// All worlds that this rank has split off in this `run`, except the one with which it was
    /// entered.
    pub(crate) parts: RefCell<Rc<Parts>>,
    /// The operations that were collected and never fenced, in all worlds of this run.
    pub(crate) unfenced: RefCell<Rc<Unfenced>>,
    /// Payloads that others may still read, with the rank that reads each, and the number of its
    /// frame.
    pub(crate) kept: RefCell<Vec<(usize, u64, Vec<u8>)>>,
    /// The number of frames posted to each rank by [`WorldCore::post_kept`] or counted by
    /// [`WorldCore::posted`].
    pub(crate) posts: RefCell<Vec<u64>>,
    /// The windows of the prepared superstep whose calls are being matched.
    pub(crate) matched: RefCell<Vec<(WindowKey, WindowId)>>,
    /// The windows whose gets are being collected.
    pub(crate) streaks: Streaks,
    pub(crate) mode: Cell<Mode>,
    /// Whether order is kept in epochs from here on.
    pub(crate) order: Cell<Order>,
    /// Whether anything is planned; otherwise every operation is a message of its own.
    pub(crate) plans: Cell<bool>,
    pub(crate) traffic: Cell<Traffic>,
    /// Whether the operations of some rank in the last dynamic epoch were not, or may not have
    /// been, those of the epoch before.
    pub(crate) changed: Cell<bool>,
    /// Whether some rank described operations in that epoch, to a rank with which it exchanges
    /// messages.
    pub(crate) described: Cell<bool>,
    /// The supersteps that this rank is in.
    pub(crate) supersteps: Supersteps,
    /// Whether data about epochs is kept to explain them.
    pub(crate) explains: Cell<bool>,
    pub(crate) explained: RefCell<Explained>,
    /// The search for conflicts.
    pub(crate) checks: Checks,
    /// The treatment of waits that last.
    pub(crate) stalls: RefCell<Stalls>,
    /// The name of each rank's host, for messages; empty if all are on one.
    pub(crate) hosts: RefCell<Vec<Arc<str>>>,
    /// The handler of errors.
    pub(crate) handler: Handler,
}

impl World {
    /// Makes a world that `takers` ranks of this process know by this number.
    pub(crate) fn new(
        (id, takers): (u64, usize),
        endpoint: Endpoint,
        registry: Arc<Registry>,
        kind: TransportKind,
        machine: Machine,
        (mode, chosen_census): (Mode, Option<Census>),
    ) -> Self {
        let (rank, size) = (endpoint.rank(), endpoint.size());
        let reaches_all = (0..size).all(|peer| endpoint.reaches(peer));
        let shares_all = (0..size).all(|peer| endpoint.shares(peer));
        let waits = endpoint.waits().unwrap_or_else(|| registry.waits(size));
        let hosts: Vec<usize> = (0..size).map(|peer| endpoint.host(peer)).collect();
        let machines: Vec<usize> = (0..size).map(|peer| endpoint.machine(peer)).collect();
        let placement = crate::state::placement::of_hosts(hosts.iter().copied());
        let stands = Stands::new(rank, hosts, &machines);
        let census = chosen_census.unwrap_or_else(|| choose(stands.places(), &machine));
        let core = WorldCore {
            id,
            rank,
            size,
            reaches_all,
            is_straight: reaches_all && census == Census::Direct,
            reaches_some: reaches_all || stands.places().memory,
            placement,
            shares_all,
            alarms: endpoint.alarms(),
            heeded: Cell::new(0),
            endpoint: RefCell::new(endpoint),
            call_sites: registry.call_sites(id, rank, size, takers),
            key: registry.key,
            registry,
            kind,
            machine,
            number: Cell::new(0),
            census,
            taken: Cell::new(census),
            short: short(stands.places(), &machine),
            dense: (dense(stands.places(), &machine), Cell::new(false)),
            halving: OnceCell::new(),
            chosen_census,
            stands,
            items: RefCell::default(),
            calls: Calls::default(),
            ran: Cell::new(0),
            made: Cell::new(0),
            windows: RefCell::default(),
            copied: Cell::default(),
            collecting: RefCell::default(),
            lendings: Arc::default(),
            attendants: Attendants::default(),
            sections: Cell::new(false),
            held_parts: Cell::new(0),
            lock_service: OnceCell::new(),
            limits: Cell::default(),
            messages: OnceCell::new(),
            reads: Cell::new(None),
            staged: RefCell::new(Staged::new(size)),
            in_flight: RefCell::default(),
            touching: Cell::default(),
            begun: Cell::default(),
            dead: RefCell::default(),
            above: RefCell::default(),
            parts: RefCell::default(),
            unfenced: RefCell::default(),
            kept: RefCell::default(),
            posts: RefCell::new(vec![0; size]),
            matched: RefCell::default(),
            streaks: Streaks::default(),
            mode: Cell::new(mode),
            order: Cell::default(),
            plans: Cell::new(true),
            traffic: Cell::default(),
            changed: Cell::new(true),
            described: Cell::new(true),
            supersteps: Supersteps::default(),
            explains: Cell::new(false),
            explained: RefCell::default(),
            checks: Checks::default(),
            stalls: RefCell::new(Stalls { settings: Arc::default(), waits }),
            hosts: RefCell::default(),
            handler: Handler::default(),
        };
        Self { core: Rc::new(core), collectives: OnceCell::new() }
    }

    pub(crate) fn core(&self) -> &Rc<WorldCore> {
        &self.core
    }

    /// Returns this rank, from 0.
    #[doc(alias = "MPI_Comm_rank")]
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.rank
    }

    /// Returns the number of ranks.
    #[doc(alias = "MPI_Comm_size")]
    #[inline]
    pub fn size(&self) -> usize {
        self.core.size
    }

    /// Returns the traffic of this rank so far.
    #[doc(hidden)]
    pub fn traffic(&self) -> Traffic {
        self.core.traffic.get()
    }

    /// Returns the kind of the last successful epoch that was not prepared, which is equal on all
    /// ranks. `Dynamic` before the first.
    #[doc(hidden)]
    pub fn last_epoch(&self) -> EpochKind {
        if self.core.changed.get() { EpochKind::Dynamic } else { EpochKind::Replayed }
    }

    /// Returns the counts of what the transport has sent for this rank so far, counted where it is
    /// handed over.
    pub fn meter(&self) -> fencepost_transport::Meter {
        self.core.endpoint.borrow().meter().clone()
    }

    /// Leaves this world, and all that were split from it, which the program may have forgotten,
    /// because the rank's program has ended.
    pub(crate) fn leave(&self, how: Leave) {
        let parts = self.core.parts.borrow().take();
        for part in parts.iter().filter_map(Weak::upgrade) {
            part.leave(how.clone());
        }
        self.core.leave(how);
    }
}

/// Worlds that one rank has split off, if they still exist.
pub(crate) type Parts = RefCell<Vec<Weak<WorldCore>>>;

impl grid::RankPosition for World {
    fn rank(&self) -> usize {
        self.core.rank
    }
    fn size(&self) -> usize {
        self.core.size
    }
}

impl WorldCore {
    /// Returns the word of the next superstep.
    #[inline]
    pub(crate) fn next_word(&self, hash: u32) -> u64 {
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        u64::from(number) << 32 | u64::from(hash)
    }

    /// Counts a dynamic epoch that has succeeded.
    #[inline]
    pub(crate) fn count_epoch(&self) {
        let traffic = self.traffic.get();
        self.traffic.set(Traffic { epochs: traffic.epochs + 1, ..traffic });
    }

    /// Begins an exchange. Returns its census, which is the same on all ranks: they received the
    /// same flags in the last fence in which all agreed.
    #[inline]
    pub(crate) fn take_census(&self) -> Census {
        let taken = if self.dense.1.get() { Census::Reduced } else { self.census };
        self.taken.set(taken);
        taken
    }

    /// Returns whether the next exchange may take another census than this one, since the machine
    /// model chooses.
    pub(crate) fn may_switch(&self) -> bool {
        self.chosen_census.is_none() && self.census == Census::Sparse
    }

    /// Returns the positions of the ranks in a reduced census.
    pub(crate) fn halving(&self) -> &Halving {
        self.halving.get_or_init(|| Halving::new(&self.stands))
    }

    /// Continues as if there had been these numbers of supersteps and windows, so that tests begin
    /// near the end of the numbers.
    pub(crate) fn begin_at(&self, supersteps: u32, made: u32) {
        self.number.set(supersteps);
        self.calls.begin_at(supersteps);
        self.made.set(made);
    }

    /// Returns the number of supersteps so far.
    pub(crate) fn number(&self) -> u32 {
        self.number.get()
    }

    fn leave(&self, how: Leave) {
        if let (Some(read), Ok(mut endpoint)) = (self.reads.get(), self.endpoint.try_borrow_mut()) {
            read(self, &mut endpoint); // what was taken is not sent once more
        }
        // A rank may return `Ok` after the world ended; the other ranks still receive the cause.
        let how = match (how, self.why_dead()) {
            (Leave::Finished, Some(why)) => Leave::Failed(why),
            (Leave::Finished, None) => match self.in_flight.borrow().first() {
                Some(begun) => {
                    let (file, line) = (begun.site().file(), begun.site().line());
                    Leave::Failed(format!("it has not finished the superstep that it began at {file}:{line}"))
                }
                None if self.open_request().is_some() => {
                    let site = self
                        .open_request()
                        .map_or(String::new(), |site| format!(" at {}:{}", site.file(), site.line()));
                    Leave::Failed(format!("it has not completed a request that it began{site}"))
                }
                None if self.held_parts.get() > 0 => {
                    Leave::Failed("it holds a part of a window by a lock that it has not unlocked".to_owned())
                }
                None => Leave::Finished,
            },
            (how, _) => how,
        };
        let endpoint = &mut *self.endpoint.borrow_mut();
        if let Some(messages) = self.messages.get() {
            messages.borrow_mut().leave(endpoint);
        }
        // A world that has ended for this rank ends for all, for the same cause.
        if let Some(cause) = self.dead.borrow().clone() {
            endpoint.end(cause);
        }
        endpoint.leave(how);
    }

    /// Returns the line that began a request that is not complete and in which others take part, if
    /// there is one: it was leaked.
    fn open_request(&self) -> Option<&'static Location<'static>> {
        self.messages.get().and_then(|messages| messages.borrow().open_request())
    }

    /// Advances everything that this rank has begun, while it waits for something else.
    #[inline]
    pub(crate) fn advance(&self, endpoint: &mut Endpoint) {
        self.in_flight.borrow().iter().for_each(|run| run.advance(endpoint));
        if let Some(read) = self.reads.get() {
            read(self, endpoint);
        }
        if self.is_split() {
            self.advance_others();
        }
    }

    /// Returns whether this rank is in worlds that were split from others.
    #[inline]
    fn is_split(&self) -> bool {
        !self.parts.borrow().borrow().is_empty()
    }

    /// Advances the receives that this rank has begun in other worlds than this one.
    #[cold]
    fn advance_others(&self) {
        self.any_other(|other| {
            if other.receives()
                && let (Some(read), Ok(mut endpoint)) = (other.reads.get(), other.endpoint.try_borrow_mut())
            {
                read(other, &mut endpoint);
            }
            false
        });
    }

    /// Returns whether this is so of any other world of this rank: the one from which all were
    /// split in the end, and those.
    fn any_other(&self, is_so: impl Fn(&WorldCore) -> bool) -> bool {
        let first = self.above.borrow().first().and_then(Weak::upgrade);
        let parts = self.parts.borrow().clone();
        let part = |at: usize| parts.borrow().get(at).map(Weak::upgrade);
        let parts = (0..).map_while(part).flatten();
        first.into_iter().chain(parts).any(|other| !std::ptr::eq(&raw const *other, self) && is_so(&other))
    }

    /// Returns whether receives that were begun may take something.
    fn receives(&self) -> bool {
        let messages = self.messages.get().map(|messages| messages.try_borrow());
        matches!(messages, Some(Ok(messages)) if !messages.posted.is_empty() || !messages.landing.is_empty())
    }

    /// Returns whether something that this rank has begun may go on while it waits for something
    /// else.
    pub(crate) fn may_advance(&self) -> bool {
        let receives_elsewhere = || self.is_split() && self.any_other(WorldCore::receives);
        self.in_flight.borrow().iter().any(|run| run.is_open()) || self.lands() || receives_elsewhere()
    }

    /// Returns whether elements of messages that were taken are in transit. The attendants of their
    /// senders send them.
    fn lands(&self) -> bool {
        let messages = self.messages.get().map(|messages| messages.try_borrow());
        matches!(messages, Some(Ok(messages)) if !messages.landing.is_empty())
    }

    /// Declares that this rank begins, or has ceased, to access memory of other ranks. Returns
    /// `None` if it has declared so already, and otherwise whether it may begin.
    #[inline]
    pub(crate) fn touching(&self, endpoint: &mut Endpoint, on: bool) -> Option<bool> {
        (self.touching.get() != on).then(|| {
            let may = endpoint.touching(on);
            self.touching.set(on && may);
            may
        })
    }

    /// Returns why this world, or one above it, has ended.
    fn why_dead(&self) -> Option<String> {
        let own = |world: &Self| world.dead.borrow().as_ref().map(|cause| cause.what.clone());
        let above = self.above.borrow();
        own(self).or_else(|| above.iter().rev().filter_map(Weak::upgrade).find_map(|above| own(&above)))
    }

    /// Checks that the world goes on. The error is the cause of its end.
    #[inline]
    pub(crate) fn alive(&self) -> Result<()> {
        match &*self.dead.borrow() {
            None => Ok(()),
            Some(cause) => Err(self.has_ended(cause)),
        }
    }

    /// Returns whether the world goes on, without an error.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.dead.borrow().is_none()
    }

    #[cold]
    #[inline(never)]
    fn has_ended(&self, cause: &Cause) -> Error {
        let error = Error::new(ErrorClass::ProcFailed, cause.what.clone()).on_rank(self.rank);
        error.ending_world().passing_on(self.failed_rank(cause.rank, &cause.what))
    }

    /// Returns the name of a rank's host, if there are several.
    pub(crate) fn host_of(&self, rank: usize) -> Option<Arc<str>> {
        self.hosts.borrow().get(rank).cloned()
    }

    /// Ends the world for this rank, unless it has ended: its windows collect nothing from here on.
    #[cold]
    pub(crate) fn die(&self, cause: Cause) {
        self.dead.borrow_mut().get_or_insert(cause);
        self.alarms.raise(); // code that has looked before looks again
        self.heeded.set(self.alarms.count().wrapping_sub(1)); // the world is never quiet again
        for window in self.collecting.borrow().values().filter_map(Weak::upgrade) {
            window.shut();
        }
    }

    /// Notes that operations are collected for this window until it is forgotten.
    pub(crate) fn collects(&self, window: &Rc<WindowCore>) {
        self.collecting.borrow_mut().insert(window.key.window, Rc::downgrade(window));
    }

    /// Notes that an operation on one window names a section of another.
    pub(crate) fn names_sections(&self) {
        self.sections.set(true);
    }

    /// Returns whether operations on other windows that wait for their fence name sections of this
    /// one.
    #[inline]
    pub(crate) fn is_named_elsewhere(&self, key: WindowKey) -> bool {
        self.sections.get() && self.names(key)
    }

    #[cold]
    fn names(&self, key: WindowKey) -> bool {
        let mut some = false;
        let named = self.collecting.borrow().values().filter_map(Weak::upgrade).any(|window| {
            let named = window.named_sections();
            some |= !named.is_empty();
            named.contains(&key)
        });
        self.sections.set(named || some);
        named
    }

    /// Returns a window of this world for which operations are collected.
    pub(crate) fn collecting(&self, key: WindowKey) -> Option<Rc<WindowCore>> {
        self.collecting.borrow().get(&key.window).and_then(Weak::upgrade)
    }

    /// Calls `act` with each window for which operations are collected, by its number.
    pub(crate) fn each_collecting(&self, mut act: impl FnMut(&WindowCore)) {
        self.collecting.borrow().values().filter_map(Weak::upgrade).for_each(|window| act(&window));
    }

    /// Returns which window this is of the superstep whose calls are being matched.
    pub(crate) fn matching_window(&self, key: WindowKey) -> Option<WindowId> {
        self.matched.borrow().iter().find(|(other, _)| *other == key).map(|(_, id)| *id)
    }

    /// Returns whether this rank has the window, or is in the call that makes it.
    pub(crate) fn has_window(&self, window: u32) -> bool {
        self.windows.borrow().contains_key(&window)
    }

    /// Returns the length and element type of this rank's part of a window that exists.
    pub(crate) fn own(&self, key: WindowKey) -> Option<(usize, ElementType)> {
        self.windows.borrow().get(&key.window).copied()
    }

    pub(crate) fn forget_window(&self, key: WindowKey) {
        self.windows.borrow_mut().remove(&key.window);
        self.collecting.borrow_mut().remove(&key.window);
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

    /// Counts a frame that was posted to `to` by other code than [`post_kept`](Self::post_kept).
    /// Returns its number.
    pub(crate) fn posted(&self, to: usize) -> u64 {
        let posts = &mut self.posts.borrow_mut()[to];
        *posts += 1;
        *posts - 1
    }
}

impl Drop for WorldCore {
    fn drop(&mut self) {
        // A world that is dropped after it, or the one above it, has ended is not left as one that
        // succeeded: ranks that wait for this rank receive the cause.
        let how = match self.why_dead() {
            Some(why) => Leave::Failed(why),
            None if std::thread::panicking() => Leave::Panicked("its thread was unwound".into()),
            None => Leave::Finished,
        };
        let cause = self.dead.take();
        let endpoint = self.endpoint.get_mut();
        if let Some(messages) = self.messages.get_mut() {
            messages.get_mut().leave(endpoint);
        }
        if let Some(cause) = cause {
            endpoint.end(cause);
        }
        endpoint.leave(how);
        for (to, frame, payload) in self.kept.get_mut().drain(..) {
            if endpoint.released(to, Port::FENCE) <= frame {
                self.registry.keep(payload);
            }
        }
    }
}
