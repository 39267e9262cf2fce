//! [`WindowCore`]: the state of a window without its memory; and [`WindowTable`], the windows of a
//! world.

use crate::check::state::lists::Checked;
use crate::collect::fast_path::FastPath;
use crate::collect::filling::Filling;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::{DISPLACEMENTS, Outbox};
use crate::collect::pending::{Pending, RANKS, Streaks};
use crate::collect::region::{Region, let_go};
use crate::fence::state::FenceOfWindow;
use crate::locks::state::hints::Hints;
use crate::posts::state::PostsOfWindow;
use crate::posts::state::exchange::{Ports, Sent};
use crate::posts::state::ports;
use crate::protocol::state::explained::Note;
use crate::state::attributes::Attributes;
use crate::state::handler::Handler;
use crate::state::unfenced::Unfenced;
use crate::state::world::WorldCore;
use crate::supersteps::state::Planned;
use fencepost_planner::adaptive::Departure;
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Channels, Done, Until};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The state of a window without its memory.
pub struct WindowCore {
    pub(crate) key: WindowKey,
    pub(crate) element: ElementType,
    pub(crate) world: Rc<WorldCore>,
    /// This rank's region.
    pub(crate) region: Arc<Region>,
    pub(crate) peers: Peers,
    pub(crate) collecting: Collecting,
    pub(crate) filling: Filling,
    /// The fast paths of small operations, by target.
    pub(crate) fast_paths: Rc<[FastPath]>,
    pub(crate) fence: FenceOfWindow,
    /// The operations called since the last fence, if they are to be explained.
    pub(crate) notes: RefCell<Vec<Note>>,
    /// The calls since the last fence, if conflicts are checked.
    pub(crate) checked: Checked,
    /// Posts and accesses.
    pub(crate) posts: PostsOfWindow,
    /// The handler of errors.
    pub(crate) handler: Handler,
    /// The line that made the window or fenced it last, and the line of the first operation since
    /// then.
    pub(crate) lines: EpochLines,
    /// The promises and expectations of the program.
    pub(crate) hints: Hints,
    /// The values that the program keeps with the window.
    pub(crate) attributes: Attributes,
}

/// The parts of a window, by rank.
pub(crate) struct Peers {
    parts: Vec<Peer>,
    /// Whether operations for some ranks travel in frames.
    pub(crate) apart: bool,
    /// Whether there are ranks whose memory this rank does not reach. Operations for them may be
    /// sent early.
    pub(crate) far: bool,
}

/// The data that a rank has about another rank's part of a window.
pub struct Peer {
    pub(crate) len: usize,
    /// The region of that rank, if the ranks share values.
    pub(crate) region: Option<Arc<Region>>,
    /// The first element of the part, or null if this rank does not reach the part.
    pub(crate) base: *mut u8,
}

impl Peers {
    pub(crate) fn new(parts: Vec<Peer>, apart: bool, far: bool) -> Self {
        Self { parts, apart, far }
    }
}

impl Deref for Peers {
    type Target = [Peer];

    #[inline]
    fn deref(&self) -> &[Peer] {
        &self.parts
    }
}

/// How a window takes operations.
pub(crate) struct Collecting {
    stage: RefCell<Stage>,
    gate: Cell<Gate>,
    /// Whether each call is kept with its line, to be explained or checked. If so, no call takes
    /// the fast path.
    pub(crate) observed: Cell<bool>,
}

/// How a window treats an operation that is called.
enum Stage {
    /// The operation is collected for the next fence.
    Open,
    /// The operation is refused, because NOSUCCEED was asserted for this epoch.
    Closed,
    /// The operation is matched with the plan of the epoch. There is no plan if no further epoch of
    /// the superstep fences the window. `closed` is whether NOSUCCEED was asserted at the previous
    /// fence.
    Matching { plan: Option<(Rc<dyn Planned>, WindowId)>, closed: bool },
}

/// Whether small operations take the fast path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Shut,
    /// An access has shut the fast paths, which are opened again when they are needed.
    ShutByAccess,
}

impl Collecting {
    /// Begins to collect for the next fence. Afterwards the window must [open](WindowCore::allow)
    /// its fast paths.
    pub(crate) fn new(observed: bool) -> Self {
        Self { stage: RefCell::new(Stage::Open), gate: Cell::new(Gate::Open), observed: Cell::new(observed) }
    }

    /// Returns whether NOSUCCEED was asserted for this epoch.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Closed | Stage::Matching { closed: true, .. })
    }

    /// Returns whether calls are matched with plans.
    #[inline]
    pub(crate) fn is_matching(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Matching { .. })
    }

    /// Returns the plan with which calls are matched, if there is one.
    pub(crate) fn plan(&self) -> Option<(Rc<dyn Planned>, WindowId)> {
        match &*self.stage.borrow() {
            Stage::Matching { plan, .. } => plan.clone(),
            Stage::Open | Stage::Closed => None,
        }
    }

    /// If NOSUCCEED was asserted for this epoch, ends the epoch and returns `true`.
    #[inline]
    pub(crate) fn follow(&self) -> bool {
        let was_closed = self.is_closed();
        if was_closed {
            self.close(false);
        }
        was_closed
    }

    /// Notes whether NOSUCCEED was asserted for the epoch that begins.
    pub(crate) fn close(&self, is_closed: bool) {
        match &mut *self.stage.borrow_mut() {
            Stage::Matching { closed, .. } => *closed = is_closed,
            stage => *stage = if is_closed { Stage::Closed } else { Stage::Open },
        }
    }

    /// Matches calls with this plan from here on.
    pub(crate) fn match_with(&self, plan: Option<(Rc<dyn Planned>, WindowId)>) {
        let closed = self.is_closed();
        self.stage.replace(Stage::Matching { plan, closed });
    }

    /// Stops matching calls.
    pub(crate) fn end_match(&self) {
        let stage = if self.is_closed() { Stage::Closed } else { Stage::Open };
        self.stage.replace(stage);
    }
}

/// The line that made a window or fenced it last, and the line of the first operation since then.
pub(crate) struct EpochLines {
    pub(crate) since: Cell<&'static Location<'static>>,
    /// Set if [the line is kept](WindowCore::keep_first).
    pub(crate) first: Cell<Option<&'static Location<'static>>>,
}

/// The windows of a world.
#[derive(Default)]
pub(crate) struct WindowTable {
    /// The length and element type of this rank's part of each window that exists.
    parts: RefCell<BTreeMap<u32, (usize, ElementType)>>,
    /// The windows for which operations are collected.
    collecting: RefCell<BTreeMap<u32, Weak<WindowCore>>>,
    /// Whether operations on one window may name sections of another.
    sections: Cell<bool>,
    /// The windows whose gets are being collected.
    pub(crate) streaks: Streaks,
    /// The operations that were collected and never fenced, in all worlds of this run.
    pub(crate) unfenced: RefCell<Rc<Unfenced>>,
}

impl WindowTable {
    /// Adds a window that this rank has, or is about to make.
    pub(crate) fn add(&self, window: u32, part: (usize, ElementType)) {
        self.parts.borrow_mut().insert(window, part);
    }

    /// Notes that operations are collected for this window until it is forgotten.
    pub(crate) fn collects(&self, window: &Rc<WindowCore>) {
        self.collecting.borrow_mut().insert(window.key.window, Rc::downgrade(window));
    }

    /// Notes that an operation on one window names a section of another.
    pub(crate) fn names_sections(&self) {
        self.sections.set(true);
    }

    /// Returns whether operations that wait for the fence of another window name sections of this
    /// window.
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

    /// Returns a window for which operations are collected.
    pub(crate) fn collecting(&self, key: WindowKey) -> Option<Rc<WindowCore>> {
        self.collecting.borrow().get(&key.window).and_then(Weak::upgrade)
    }

    /// Calls `act` with each window for which operations are collected, in the order of their
    /// numbers.
    pub(crate) fn each_collecting(&self, mut act: impl FnMut(&WindowCore)) {
        self.collecting.borrow().values().filter_map(Weak::upgrade).for_each(|window| act(&window));
    }

    /// Returns whether this rank has the window, or is in the call that makes it.
    pub(crate) fn has(&self, window: u32) -> bool {
        self.parts.borrow().contains_key(&window)
    }

    /// Returns the length and element type of this rank's part of a window that exists.
    pub(crate) fn own(&self, key: WindowKey) -> Option<(usize, ElementType)> {
        self.parts.borrow().get(&key.window).copied()
    }

    /// Forgets a window that is dropped.
    pub(crate) fn forget(&self, key: WindowKey) {
        self.parts.borrow_mut().remove(&key.window);
        self.collecting.borrow_mut().remove(&key.window);
    }
}

/// The maximum number of windows of one fence for which nothing is allocated.
pub(crate) const FEW: usize = 6;

/// A list that allocates nothing for a few windows.
pub(crate) type Few<T> = SmallVec<[T; FEW]>;

/// Windows that are kept alive.
pub(crate) type Held = Few<Rc<WindowCore>>;

/// Returns a list that keeps these windows alive.
pub(crate) fn held<'w>(windows: impl IntoIterator<Item = &'w Rc<WindowCore>>) -> Held {
    windows.into_iter().cloned().collect()
}

/// Calls `act` with `windows` in the form in which a fence takes them.
pub(crate) fn with<R>(windows: &Held, act: impl FnOnce(&[&WindowCore]) -> Result<R>) -> Result<R> {
    if windows.is_empty() {
        return Err(Error::new(ErrorClass::Intern, "a superstep without windows"));
    }
    let all: Few<&WindowCore> = windows.iter().map(|window| &**window).collect();
    act(&all)
}

impl WindowCore {
    /// Sets whether small operations take the fast path. While an access is open, and after the
    /// world has ended, nothing is collected, and the fast path stays closed.
    pub(crate) fn allow(&self, short: bool) {
        let (accessed, alive) = (self.posts.accesses.get() > 0, self.world.life.goes_on());
        let short = short && !accessed && alive;
        self.collecting.gate.set(match (short, accessed) {
            (true, _) => Gate::Open,
            (false, true) => Gate::ShutByAccess,
            (false, false) => Gate::Shut,
        });
        if !short {
            self.checked.forget_last();
        }
        let holds_until_fence = self.holds_until_fence();
        // The first operation does not take the fast path if its line is kept.
        let short = short && (self.lines.first.get().is_some() || !self.world.supersteps.checks());
        let gets_are_short = short && !self.collecting.observed.get() && self.peers.len() <= RANKS;
        for (fast_path, peer) in self.fast_paths.iter().zip(&*self.peers) {
            // Neither operations that may be sent early nor observed operations take the fast path.
            let open =
                short && (holds_until_fence || !peer.base.is_null()) && !self.collecting.observed.get();
            let below = |open| if open { peer.len.min(DISPLACEMENTS as usize) } else { 0 };
            fast_path.lead(peer.base, below(open));
            fast_path.open_to_gets(below(gets_are_short));
        }
    }

    /// Forgets the elements of this rank's part. The rank's stores and loads are not checked from
    /// here on.
    #[inline]
    pub(crate) fn forget_part(&self) {
        self.checked.forget_part();
        self.region.open();
    }

    /// Returns whether small operations take the fast path. After an access, the first caller opens
    /// the fast path again, so a window that is only posted and accessed never pays for opening it.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        match self.collecting.gate.get() {
            Gate::Open => true,
            Gate::Shut => false,
            Gate::ShutByAccess => self.opens_again(),
        }
    }

    #[cold]
    fn opens_again(&self) -> bool {
        if self.posts.accesses.get() == 0 {
            self.allow(!self.collecting.is_closed() && !self.collecting.is_matching());
        }
        self.is_gate_open()
    }

    /// Returns whether the fast paths are open, without opening them.
    #[inline]
    pub(crate) fn is_gate_open(&self) -> bool {
        self.collecting.gate.get() == Gate::Open
    }

    /// Closes the fast path, because an access was opened.
    #[inline]
    pub(crate) fn shut_for_access(&self) {
        if self.collecting.gate.get() != Gate::ShutByAccess {
            self.allow(false);
        }
    }

    /// Returns whether operations that do not request a mode stay on this rank until the fence.
    pub(crate) fn holds_until_fence(&self) -> bool {
        self.departure(Mode::Auto) == Departure::Held
    }

    /// Returns when an operation that requests `mode` is sent to a rank whose memory this rank does
    /// not reach.
    pub(crate) fn departure(&self, mode: Mode) -> Departure {
        Departure::of(self.asked(mode), self.fence.history.borrow().predicted())
    }

    /// Returns the effective mode of an operation that requests `mode`.
    pub(crate) fn asked(&self, mode: Mode) -> Mode {
        match mode {
            _ if !self.world.choices.plans.get() => Mode::Aggressive,
            Mode::Auto => self.fence.mode.get(),
            mode => mode,
        }
    }

    /// Stops collecting because the world has ended, even in the middle of a call.
    #[cold]
    pub(crate) fn shut(&self) {
        self.collecting.gate.set(Gate::Shut);
        self.checked.forget_last();
        for (fast_path, peer) in self.fast_paths.iter().zip(&*self.peers) {
            fast_path.lead(peer.base, 0);
            fast_path.open_to_gets(0);
        }
    }

    /// Returns the ports of posts and accesses.
    ///
    /// # Errors
    /// As [`Ports::of`].
    #[inline]
    pub(crate) fn ports(&self, site: &'static Location<'static>) -> Result<Ports> {
        match self.posts.known_ports {
            Some(ports) => Ok(ports),
            None => self.ports_of(site),
        }
    }

    #[cold]
    #[inline(never)]
    fn ports_of(&self, site: &'static Location<'static>) -> Result<Ports> {
        Ports::of(self.key.window).map_err(|error| error.on_rank(self.world.rank).at(site))
    }

    /// Returns whether the window is posted, or an access to it is open.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.posts.posted.get() || self.posts.accesses.get() > 0
    }

    /// Returns a text about the post or start that has left the window open, if the window is open.
    #[inline]
    pub(crate) fn open_since(&self) -> Option<String> {
        if self.is_open() { self.opened_at() } else { None }
    }

    /// Returns a text about collected operations or an open access that prevent a call from taking
    /// the window, if there are any.
    pub(crate) fn still_open(&self) -> Option<&'static str> {
        if self.is_pending() || self.world.windows.is_named_elsewhere(self.key) {
            return Some("has collected operations on the window for its next fence: fence it first");
        }
        (self.posts.accesses.get() > 0).then_some("has an access to the window open: complete it first")
    }

    #[cold]
    fn opened_at(&self) -> Option<String> {
        let exchange = self.posts.exchange.borrow();
        let post = exchange.posted.as_ref().map(|posted| ("posted", posted.site));
        let start = || exchange.open.first().map(|(_, site)| ("being accessed", *site));
        let (what, site) = post.or_else(start)?;
        let (file, line, window) = (site.file(), site.line(), self.key.window);
        Some(format!("window {window} is {what} since {file}:{line}"))
    }

    /// Begins to fill the outboxes of `set`, which no rank reads. The operations that were
    /// collected before must have been [counted](Self::count).
    pub(crate) fn fill(&self, set: usize) {
        self.fill_outboxes(set);
        self.filling.plain.set(true);
        self.checked.clear();
        let pending = &mut *self.filling.pending.borrow_mut();
        pending.clear(&self.world.windows.streaks, self.filling.asking);
        // SAFETY: the gets belong to the same window as the writer, and are touched only while the
        // writer is lifted.
        unsafe { self.filling.getting.lower(&pending.gets) };
    }

    /// Does the same as [`fill`](Self::fill), but only for the operations in outboxes.
    #[inline]
    pub(crate) fn fill_outboxes(&self, set: usize) {
        self.filling.set.set(set);
        for (target, fast_path) in self.fast_paths.iter().enumerate() {
            // SAFETY: the outboxes of a set live as long as the region. While a rank fills a set,
            // only that rank touches it.
            unsafe {
                match self.region.made_outbox(set, target) {
                    Some(outbox) => {
                        (*outbox).clear();
                        fast_path.writer.lower(&(*outbox).records);
                    }
                    None => fast_path.writer.lower(&(*self.region.outbox(set, target)).records),
                }
            }
        }
    }

    /// Counts the collected operations, so that the outboxes of the set being filled may be read.
    /// No operation takes the fast path until the next set is filled.
    pub(crate) fn count(&self) {
        for (target, fast_path) in self.fast_paths.iter().enumerate() {
            match self.region.made_outbox(self.filling.set.get(), target) {
                // SAFETY: only this rank touches the set that it is filling, and its writers write
                // only there.
                Some(outbox) => unsafe { fast_path.writer.lift(&mut (*outbox).records) },
                None => fast_path.writer.leave(),
            }
        }
        // SAFETY: the writer writes only to these gets.
        unsafe { self.filling.getting.lift(&mut self.filling.pending.borrow_mut().gets) };
    }

    /// Runs `act` on the outbox for `target`, after all operations collected so far were counted.
    pub(crate) fn outbox<R>(&self, target: usize, act: impl FnOnce(&mut Outbox) -> R) -> R {
        let writer = &self.fast_paths[target].writer;
        if self.region.made_outbox(self.filling.set.get(), target).is_none() {
            writer.leave();
        }
        // SAFETY: only this rank touches the set that it is filling. While the writer is lifted,
        // this rank touches the set only by this reference.
        let outbox = unsafe { &mut *self.region.make_outbox(self.filling.set.get(), target) };
        // SAFETY: writers write only to the set that is being filled.
        unsafe { writer.lift(&mut outbox.records) };
        let result = act(outbox);
        // SAFETY: as in `fill`.
        unsafe { writer.lower(&outbox.records) };
        result
    }

    /// Runs `act` on the gets that were collected so far, after all of them were counted.
    pub(crate) fn pending<R>(&self, act: impl FnOnce(&mut Pending) -> R) -> R {
        self.filling.plain.set(false);
        let pending = &mut *self.filling.pending.borrow_mut();
        // SAFETY: the writer writes only to these gets.
        unsafe { self.filling.getting.lift(&mut pending.gets) };
        let result = act(pending);
        // SAFETY: as in `fill`.
        unsafe { self.filling.getting.lower(&pending.gets) };
        result
    }
}

impl Drop for WindowCore {
    fn drop(&mut self) {
        self.let_go_of_frames();
        if !self.peers.apart {
            return; // regions are reference-counted
        }
        // Reach is mutual: the ranks whose memory this rank reaches, itself included, also reach
        // the memory of this rank.
        let mut reached = self.peers.iter().map(|peer| peer.base).filter(|base| !base.is_null());
        let Some(first) = reached.next() else { return };
        let reaching = 1 + reached.count();
        let region = std::mem::replace(&mut self.region, Arc::new(Region::none()));
        let done: Done = if region.is_adopted() {
            Box::new(|| true) // nobody else has reached it
        } else {
            // SAFETY: this rank reaches the part, and drops the window only here. This rank keeps
            // the memory of its part as long as `let_go` requires, or never frees it.
            unsafe { let_go(region.base(), first, reaching) }
        };
        if let Some(memory) = Arc::into_inner(region).map(Region::into_memory) {
            match self.world.endpoint.try_borrow_mut() {
                Ok(mut endpoint) => endpoint.keep(memory, Until::Done(done)),
                Err(_) => std::mem::forget(memory), // dropped in a transport call: kept for good
            }
        }
    }
}

impl WindowCore {
    /// Ends the posts and accesses of the window: closes their ports, and keeps the memory that
    /// others may still read.
    fn let_go_of_frames(&mut self) {
        let exchange = std::mem::take(self.posts.exchange.get_mut());
        // Requests for exposed elements are answered until the world is over.
        let is_served = exchange.posted.is_some() && self.peers.far;
        if is_served {
            self.world.lendings.copy(self.key.window);
        } else if self.peers.far {
            self.world.lendings.forget(self.key.window);
        }
        let Ok(ports) = Ports::of(self.key.window) else { return };
        let Ok(mut endpoint) = self.world.endpoint.try_borrow_mut() else {
            // The window is dropped inside a call of the transport. The memory is never freed.
            return std::mem::forget(exchange);
        };
        for (to, mut target) in exchange.to.into_iter() {
            for Sent { batch, frame, .. } in target.sent.drain(..) {
                if let (Some(mut batch), Some(frame)) = (batch, frame) {
                    let memory = [batch.outbox.records.take_memory(), batch.outbox.bytes.take_memory()];
                    let until = Until::Released { to, port: ports.accesses, frame };
                    endpoint.keep(memory.into_iter().flatten().collect(), until);
                }
            }
        }
        ports::close(self.key.window, is_served.then_some(ports.answers), &mut endpoint);
    }
}
