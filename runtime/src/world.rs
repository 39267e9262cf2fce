//! [`World`]: a set of ranks that run one program, and what they do together.

use crate::assertions::Assertions;
use crate::board::Board;
use crate::call::WindowKey;
use crate::calls::Calls;
use crate::collective::Collectives;
use crate::early::Staged;
use crate::explain::Explained;
use crate::fence::{self, Call, kind};
use crate::handler::{self, ErrorHandler, Handler};
use crate::key::Key;
use crate::registry::Registry;
use crate::run::TransportKind;
use crate::stall::Stalls;
use crate::superstep::Supersteps;
use crate::window::WindowCore;
use crate::windows::Windows;
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Mode, Order};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Class, Error, Result, grid};
use fencepost_transport::{Cause, Endpoint, Header, Leave, Loss, Lost, Transport};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Also in a world where some ranks reach each other's memory: what they do there is read where it lies, and nobody
    /// remembers it.
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
    /// Whether some ranks reach each other's memory.
    pub(crate) reaches_some: bool,
    /// Who reaches whose memory, for the planner.
    pub(crate) placement: Placement,
    /// Whether all ranks are threads of this process that read one another's values.
    pub(crate) shares_all: bool,
    pub(crate) endpoint: RefCell<Endpoint>,
    pub(crate) registry: Arc<Registry>,
    /// By which ranks compare what they are in.
    pub(crate) key: Key,
    pub(crate) board: Arc<Board>,
    pub(crate) kind: TransportKind,
    /// Supersteps so far: the high half of every word.
    number: Cell<u32>,
    /// Which collective call this rank is in.
    pub(crate) calls: Calls,
    /// A digest of the prepared supersteps that were run since the last exchange in which all ranks agreed.
    pub(crate) ran: Cell<u64>,
    /// Collective calls that made something so far.
    pub(crate) made: Cell<u32>,
    /// Length and element type of this rank's part of each window that lives.
    pub(crate) windows: RefCell<BTreeMap<u32, (usize, ElementType)>>,
    /// Those of them that operations are collected for.
    collecting: RefCell<BTreeMap<u32, Weak<WindowCore>>>,
    /// Operations that came before their fence.
    pub(crate) staged: RefCell<Staged>,
    /// Why the world has ended.
    dead: RefCell<Option<String>>,
    /// The world that this one was split from.
    pub(crate) above: RefCell<Weak<WorldCore>>,
    /// All worlds that this rank has split off in this `run`, the one that it was entered with excepted.
    pub(crate) parts: RefCell<Rc<Parts>>,
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
    /// Whether, in the last epoch that was not prepared, some rank's operations were not those of last time, or may not
    /// have been.
    pub(crate) changed: Cell<bool>,
    /// Whether some rank described operations then, to a rank that it exchanges messages with.
    pub(crate) described: Cell<bool>,
    /// The supersteps that this rank is in.
    pub(crate) supersteps: Supersteps,
    /// Whether what epochs do is kept to be explained.
    pub(crate) explains: Cell<bool>,
    pub(crate) explained: RefCell<Explained>,
    /// What is done about waits that last.
    pub(crate) stalls: RefCell<Stalls>,
    /// The name of each rank's host, for messages; none, where all are on one.
    pub(crate) hosts: RefCell<Vec<Arc<str>>>,
    /// What is done with errors.
    pub(crate) handler: Handler,
}

impl World {
    /// `takers`: how many ranks of this process know the world by this number.
    pub(crate) fn new(
        (id, takers): (u64, usize),
        endpoint: Endpoint,
        registry: Arc<Registry>,
        kind: TransportKind,
        mode: Mode,
    ) -> Self {
        let (rank, size) = (endpoint.rank(), endpoint.size());
        let reaches_all = (0..size).all(|peer| endpoint.reaches(peer));
        let hosts: BTreeSet<usize> = (0..size).map(|peer| endpoint.host(peer)).collect();
        let shares_all = (0..size).all(|peer| endpoint.shares(peer));
        let waits = endpoint.waits().unwrap_or_else(|| registry.waits(size));
        let placement = crate::placement::of_hosts((0..size).map(|peer| endpoint.host(peer)));
        let core = WorldCore {
            id,
            rank,
            size,
            reaches_all,
            reaches_some: reaches_all || hosts.len() < size,
            placement,
            shares_all,
            endpoint: RefCell::new(endpoint),
            board: registry.board(id, size, takers),
            key: registry.key,
            registry,
            kind,
            number: Cell::new(0),
            calls: Calls::default(),
            ran: Cell::new(0),
            made: Cell::new(0),
            windows: RefCell::default(),
            collecting: RefCell::default(),
            staged: RefCell::new(Staged::new(size)),
            dead: RefCell::default(),
            above: RefCell::default(),
            parts: RefCell::default(),
            kept: RefCell::default(),
            posts: RefCell::new(vec![0; size]),
            matched: RefCell::default(),
            sequence: Cell::new(0),
            mode: Cell::new(mode),
            order: Cell::default(),
            plans: Cell::new(true),
            traffic: Cell::default(),
            changed: Cell::new(true),
            described: Cell::new(true),
            supersteps: Supersteps::default(),
            explains: Cell::new(false),
            explained: RefCell::default(),
            stalls: RefCell::new(Stalls { settings: Arc::default(), waits }),
            hosts: RefCell::default(),
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

    /// End the epoch of several windows at once: `world.fence((&mut u, &mut v))?`.
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence).
    #[track_caller]
    pub fn fence<'w>(&self, windows: impl Windows<'w>) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.calls.begin();
        windows.with(|windows| {
            handler::of(&self.core, windows).tell(fence::fence(&self.core, windows, &call, None))
        })
    }

    /// [`fence`](Self::fence), with what the program promises.
    ///
    /// # Errors
    /// As [`Window::fence_with`](crate::Window::fence_with).
    #[track_caller]
    pub fn fence_with<'w>(&self, windows: impl Windows<'w>, assertions: Assertions) -> Result<()> {
        let call = Call::fence(Location::caller());
        self.core.calls.begin();
        windows.with(|windows| {
            handler::of(&self.core, windows).tell(fence::fence_with(&self.core, windows, &call, assertions))
        })
    }

    /// What is done with an error of this world's calls before the call returns it: nothing, unless set. Such calls are all
    /// on the world itself, and fences and supersteps of several windows; what is called on one window, its fences and
    /// supersteps among them, is that window's ([`Window::on_error`](crate::Window::on_error)). Each error is told once, to
    /// the handler of the call that found it, on the rank that returns it.
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
    /// As [`Window::fence`](crate::Window::fence).
    ///
    /// # Cost
    /// The empty fence: one letter between each two ranks, in one round. Trees would send fewer, in log2 p rounds or
    /// more, and no rank could see that another is in another call.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let call = Call::named(0xba, "World::barrier");
        self.core.calls.begin();
        self.core.handler.tell(fence::fence(&self.core, &[], &call, None))
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
    pub fn meter(&self) -> fencepost_transport::Meter {
        self.core.endpoint.borrow().meter().clone()
    }

    /// The rank's program has ended: it leaves this world, and all that were split from it, which it may have forgotten.
    pub(crate) fn leave(&self, how: Leave) {
        let parts = self.core.parts.borrow().take();
        for part in parts.iter().filter_map(Weak::upgrade) {
            part.leave(how.clone());
        }
        self.core.leave(how);
    }
}

/// Worlds that one rank has split off, as far as they are there.
pub(crate) type Parts = RefCell<Vec<Weak<WorldCore>>>;

impl grid::Place for World {
    fn rank(&self) -> usize {
        self.core.rank
    }
    fn size(&self) -> usize {
        self.core.size
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

    /// The number of the window or of the split that `call` is about to make: the same on all ranks.
    ///
    /// # Errors
    /// `NO_MEM` where the world has made as many as there are numbers. Every rank gets it, and none has met another.
    pub(crate) fn next_made(&self, call: &Call) -> Result<u32> {
        let number = self.made.get();
        if number < u32::MAX {
            return Ok(number);
        }
        let message = format!(
            "this world has made {number} windows and splits, and a world makes no more: split the world, and make the window in a part"
        );
        Err(call.error(self, Class::NoMem, message))
    }

    /// A call that ends or prepares an epoch, in the order that holds now.
    pub(crate) fn ordered(&self, call: &Call) -> Call {
        match self.order.get() {
            Order::Canonical => *call,
            Order::Relaxed => Call { hash: call.hash ^ 0x3c6e_f372_fe94_f82b, ..*call },
        }
    }

    /// Let so many supersteps and windows have been before the first: tests begin near the end of the numbers.
    pub(crate) fn begin_at(&self, supersteps: u32, made: u32) {
        self.number.set(supersteps);
        self.calls.begin_at(supersteps);
        self.made.set(made);
    }

    /// The header of a frame of this kind that belongs to the last exchange.
    pub(crate) fn stamped(&self, kind: u32) -> Header {
        fence::header(u64::from(self.number.get()) << 32, kind, 0)
    }

    /// Whether a frame of this header was sent for the last exchange.
    pub(crate) fn is_of_this_exchange(&self, header: &Header) -> bool {
        (header.word >> 32) as u32 == self.number.get()
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

    fn leave(&self, how: Leave) {
        // Who has seen the world end may well say that all is well: the others learn why it ended all the same.
        let how = match (how, self.why_dead()) {
            (Leave::Finished, Some(why)) => Leave::Failed(why),
            (how, _) => how,
        };
        self.endpoint.borrow_mut().leave(how);
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

    /// The name of a rank's host, where they have several.
    pub(crate) fn host_of(&self, rank: usize) -> Option<Arc<str>> {
        self.hosts.borrow().get(rank).cloned()
    }

    /// The world ends for this rank, since `lost` can't come any more.
    pub(crate) fn lost(&self, lost: &Lost, call: &Call) -> Error {
        let host = self.host_of(lost.rank);
        let host = host.map_or(String::new(), |host| format!("; rank {} is on host {host}", lost.rank));
        let why = match &lost.how {
            Loss::Ended(_) => format!("{lost}{host}"),
            _ => format!("{lost}, and this rank waits for it{host}"),
        };
        self.die(|| format!("{lost}{host}"));
        let class = match &lost.how {
            Loss::Ended(_) => self.board.ended().unwrap_or(Class::ProcFailed),
            _ => Class::ProcFailed,
        };
        call.error(self, class, why).ending_world()
    }

    /// The world was ended by this rank.
    pub(crate) fn ended(&self, why: &str) {
        self.die(|| why.into());
    }

    /// The world has ended for this rank, unless it had: its windows collect nothing from here on.
    #[cold]
    fn die(&self, why: impl FnOnce() -> String) {
        self.dead.borrow_mut().get_or_insert_with(why);
        for window in self.collecting.borrow().values().filter_map(Weak::upgrade) {
            window.shut();
        }
    }

    /// Operations are collected for this window until it is forgotten.
    pub(crate) fn collects(&self, window: &Rc<WindowCore>) {
        self.collecting.borrow_mut().insert(window.key.window, Rc::downgrade(window));
    }

    /// This rank can't take part in a call that others are in, because of `error`: the world ends.
    #[cold]
    pub(crate) fn give_up(&self, endpoint: &mut Endpoint, error: Error) -> Error {
        if self.alive().is_ok() {
            let what = format!("rank {} could not take part in a call: {error}", self.rank);
            endpoint.end(Cause { rank: self.rank, what: what.clone() });
            self.ended(&what);
        }
        error.ending_world()
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
        self.die(|| what.clone());
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
        fence::meet(self, call, &give)?;
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
