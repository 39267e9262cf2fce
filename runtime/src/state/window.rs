//! [`Window`]: one rank's part of a distributed array, and the calls on it.

use crate::check::state::lists::Checked;
use crate::collect::fast_path::FastPath;
use crate::collect::log::LogWriter;
use crate::collect::operands::Apply;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::{DISPLACEMENTS, Outbox};
use crate::collect::pending::{Asking, Get as One, Pending, RANKS};
use crate::collect::region::{Region, let_go};
use crate::fence::state::history::History;
use crate::fence::state::remembered::Remembered;
use crate::kernel::element::Element;
use crate::locks::state::hints::Hints;
use crate::posts::state::exchange::{Exchange, Ports, Sent};
use crate::posts::state::ports;
use crate::protocol::state::explained::Note;
use crate::state::attributes::Attributes;
use crate::state::handler::Handler;
use crate::state::world::WorldCore;
use crate::supersteps::state::Planned;
use fencepost_planner::Result;
use fencepost_planner::adaptive::Departure;
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::Mode;
use fencepost_transport::{Channels, Done, Until};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// One rank's part of a distributed array that other ranks put into, get from and accumulate into.
///
/// It derefs to a slice of the local part. Operations are collected, and happen at the next
/// [fence](Self::fence) of the window: until then neither the window nor its peers see them. A
/// window is neither `Send` nor `Sync`: pass the slice to threads.
///
/// # Source
/// MPI 4.1, section 12.2.1 (MPI_WIN_ALLOCATE); active target synchronisation only.
pub struct Window<T: Element> {
    /// The first field that keeps a window from other threads: the compiler's error names it.
    threads: PhantomData<dyn OtherThreadsTakeTheSliceOfAWindow>,
    /// The elements, as the program alone accesses them.
    pub(crate) data: *mut T,
    pub(crate) len: usize,
    /// The fast paths of small operations, by target.
    pub(crate) fast_paths: Rc<[FastPath]>,
    pub(crate) core: Rc<WindowCore>,
    element: PhantomData<T>,
}

/// The trait that the compiler's error names if a thread takes a window. Its name contains the way
/// out: `let cells = &mut u[..];` before the thread.
trait OtherThreadsTakeTheSliceOfAWindow {}

/// The state of a window without its memory.
pub struct WindowCore {
    pub(crate) key: WindowKey,
    pub(crate) element: ElementType,
    pub(crate) world: Rc<WorldCore>,
    /// This rank's region.
    pub(crate) region: Arc<Region>,
    /// Every rank's length, and the address of its part.
    pub(crate) peers: Vec<Peer>,
    /// Which of the two sets of outboxes is being filled.
    pub(crate) set: Cell<usize>,
    /// Whether elements of this window may be sources of records in it. They are read as the fence
    /// is entered.
    pub(crate) elements: Cell<bool>,
    /// The other window whose elements are the sources of records instead, if there are any, with
    /// the line of the first of them.
    pub(crate) of_other: Cell<Option<(WindowKey, &'static Location<'static>)>>,
    /// Whether only records wait for the fence: no operation on a datatype, and no get that is not
    /// on the fast path.
    pub(crate) plain: Cell<bool>,
    /// The most elements of one operation that travel among the records, for a rank whose memory is
    /// reached.
    pub(crate) few: usize,
    /// A buffer in which parts of slices are packed.
    pub(crate) packed: Cell<Vec<u8>>,
    /// Gets, and everything else that is not in an outbox.
    pub(crate) pending: RefCell<Pending>,
    /// The writer of the list of gets.
    pub(crate) getting: LogWriter<One>,
    /// This window, in the form in which `Streaks` records whose gets are collected.
    pub(crate) asking: Asking,
    /// The mode that operations without one of their own prefer.
    pub(crate) mode: Cell<Mode>,
    /// Applies records to a window of this element type.
    pub(crate) apply: Apply,
    /// Whether small operations take the fast path, which they do not while calls are matched with
    /// a plan. Read by [`is_short`](Self::is_short).
    pub(crate) short: Cell<bool>,
    /// Whether an access has shut the fast paths, which are opened again when they are needed.
    pub(crate) reopens: Cell<bool>,
    /// The fast paths, by target.
    pub(crate) fast_paths: Rc<[FastPath]>,
    /// Whether NOSUCCEED was asserted for this epoch.
    pub(crate) closed: Cell<bool>,
    /// The prepared superstep whose calls are being matched, and which of its windows this is.
    pub(crate) matching: RefCell<Option<(Rc<dyn Planned>, WindowId)>>,
    /// Whether there are ranks to which operations travel in frames.
    pub(crate) apart: bool,
    /// Whether there are ranks whose memory is not reached. Operations for them may be sent early.
    pub(crate) far: bool,
    /// What was sent to and received from ranks whose outboxes are not read in place.
    pub(crate) remembered: RefCell<Remembered>,
    /// The history of what was sent to them, by the line at which its epoch began.
    pub(crate) history: RefCell<History>,
    /// The operations called since the last fence, if they are to be explained.
    pub(crate) notes: RefCell<Vec<Note>>,
    /// The calls since the last fence, if conflicts are looked for.
    pub(crate) checked: Checked,
    /// Whether each call is kept with its line, to be explained or checked. Then none takes the
    /// fast path.
    pub(crate) observed: Cell<bool>,
    /// The handler of errors.
    pub(crate) handler: Handler,
    /// Whether the window is posted.
    pub(crate) posted: Cell<bool>,
    /// The number of accesses to it that are open.
    pub(crate) accesses: Cell<usize>,
    /// Posts and accesses.
    pub(crate) exchange: RefCell<Exchange>,
    /// The ports of posts and accesses; `None` for a window that is beyond the numbers that ports
    /// have.
    pub(crate) known_ports: Option<Ports>,
    /// The line that made the window, or fenced it last.
    pub(crate) since: Cell<&'static Location<'static>>,
    /// The line of the first operation since then, if [it is kept](Self::keep_first).
    pub(crate) first: Cell<Option<&'static Location<'static>>>,
    /// The promises and expectations of the program.
    pub(crate) hints: Hints,
    /// The values that the program keeps with the window.
    pub(crate) attributes: Attributes,
}

/// The data that a rank has of another's part of a window.
pub struct Peer {
    pub(crate) len: usize,
    /// Its region, if values are shared.
    pub(crate) region: Option<Arc<Region>>,
    /// Its first element, if that is reached; otherwise null.
    pub(crate) base: *mut u8,
}

impl<T: Element> Window<T> {
    pub(crate) fn new(core: Rc<WindowCore>) -> Self {
        let len = core.peers[core.world.rank].len;
        let (data, fast_paths) = (core.region.lent().cast(), core.fast_paths.clone());
        Self { threads: PhantomData, data, len, fast_paths, core, element: PhantomData }
    }

    pub(crate) fn core(&self) -> &Rc<WindowCore> {
        &self.core
    }

    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.world.rank
    }

    /// Returns the number of ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.core.world.size
    }

    /// Returns the number of elements of this rank's part.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether this rank's part has no elements.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives up the operations that this rank has collected for the next fence: nobody sees them,
    /// and tickets of gets stay empty.
    ///
    /// A rank that drops a window with such operations reports them when its program returns
    /// success, unless a call on the window or the world has returned an error before. With a
    /// [check](crate::Ranks::check), which debug builds have, `run` returns `RMA_SYNC` instead,
    /// with the line of the first operation.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let mut u = world.window::<u64>(1)?;
    /// u.put([7]).to(1 - world.rank(), 0)?;
    /// u.discard();
    /// u.fence()?;
    /// assert_eq!(u[0], 0);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn discard(&mut self) {
        self.core.discard();
    }

    /// Returns the number of elements of `rank`'s part; `None` if there is no such rank.
    ///
    /// ```
    /// # fencepost_runtime::ranks(3).run(|world| {
    /// let u = world.window::<f32>(10 * world.rank())?;
    /// assert_eq!((u.len_of(2), u.len_of(3)), (Some(20), None));
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn len_of(&self, rank: usize) -> Option<usize> {
        self.core.peers.get(rank).map(|peer| peer.len)
    }
}

impl WindowCore {
    /// Sets whether small operations take the fast path. Nothing is collected while an access is
    /// open, or after the world has ended.
    pub(crate) fn allow(&self, short: bool) {
        self.reopens.set(self.accesses.get() > 0);
        let short = short && self.accesses.get() == 0 && self.world.alive().is_ok();
        self.short.set(short);
        if !short {
            self.checked.forget_last();
        }
        let holds_until_fence = self.holds_until_fence();
        // The first operation does not take the fast path if its line is kept.
        let short = short && (self.first.get().is_some() || !self.world.supersteps.checks());
        let gets_are_short = short && !self.observed.get() && self.peers.len() <= RANKS;
        for (fast_path, peer) in self.fast_paths.iter().zip(&self.peers) {
            // Operations that may be sent early do not take the fast path, nor do observed ones.
            let open = short && (holds_until_fence || !peer.base.is_null()) && !self.observed.get();
            let below = |open| if open { peer.len.min(DISPLACEMENTS as usize) } else { 0 };
            fast_path.lead(peer.base, below(open));
            fast_path.open_to_gets(below(gets_are_short));
        }
    }

    /// Forgets the elements that this rank had. Its stores and loads from here on are not looked
    /// at.
    #[inline]
    pub(crate) fn forget_part(&self) {
        self.checked.forget_part();
        self.region.open();
    }

    /// Returns whether small operations take the fast path. After an access the first caller opens
    /// it again, so a window that is only posted and accessed does not pay for that.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.short.get() || self.reopens.get() && self.opens_again()
    }

    #[cold]
    fn opens_again(&self) -> bool {
        if self.accesses.get() == 0 {
            self.allow(!self.closed.get() && self.matching.borrow().is_none());
        }
        self.short.get()
    }

    /// Closes the fast path, because an access was opened.
    #[inline]
    pub(crate) fn shut_for_access(&self) {
        if !self.reopens.get() || self.short.get() {
            self.allow(false);
        }
    }

    /// Returns whether operations that request no mode of their own stay here until the fence.
    pub(crate) fn holds_until_fence(&self) -> bool {
        self.departure(Mode::Auto) == Departure::Held
    }

    /// Returns when an operation that requests `mode` is sent to a rank whose memory is not
    /// reached.
    pub(crate) fn departure(&self, mode: Mode) -> Departure {
        Departure::of(self.asked(mode), self.history.borrow().predicted())
    }

    /// Returns the mode that an operation which requests `mode` is to have.
    pub(crate) fn asked(&self, mode: Mode) -> Mode {
        match mode {
            _ if !self.world.plans.get() => Mode::Aggressive,
            Mode::Auto => self.mode.get(),
            mode => mode,
        }
    }

    /// Stops collecting, because the world has ended, whatever this rank is in the middle of.
    #[cold]
    pub(crate) fn shut(&self) {
        self.short.set(false);
        self.checked.forget_last();
        for (fast_path, peer) in self.fast_paths.iter().zip(&self.peers) {
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
        match self.known_ports {
            Some(ports) => Ok(ports),
            None => self.ports_of(site),
        }
    }

    #[cold]
    #[inline(never)]
    fn ports_of(&self, site: &'static Location<'static>) -> Result<Ports> {
        Ports::of(self.key.window).map_err(|error| error.on_rank(self.world.rank).at(site))
    }

    /// Returns whether the window is posted, or an access to it open.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.posted.get() || self.accesses.get() > 0
    }

    /// Returns a text about the post or start that has left the window open, if one has.
    #[inline]
    pub(crate) fn open_since(&self) -> Option<String> {
        if self.is_open() { self.opened_at() } else { None }
    }

    /// Returns a text about what this rank has left open that is in the way of a call that takes
    /// the window.
    pub(crate) fn still_open(&self) -> Option<&'static str> {
        if self.is_pending() || self.world.is_named_elsewhere(self.key) {
            return Some("has collected operations on the window for its next fence: fence it first");
        }
        (self.accesses.get() > 0).then_some("has an access to the window open: complete it first")
    }

    #[cold]
    fn opened_at(&self) -> Option<String> {
        let exchange = self.exchange.borrow();
        let post = exchange.posted.as_ref().map(|posted| ("posted", posted.site));
        let start = || exchange.open.first().map(|(_, site)| ("being accessed", *site));
        let (what, site) = post.or_else(start)?;
        let (file, line, window) = (site.file(), site.line(), self.key.window);
        Some(format!("window {window} is {what} since {file}:{line}"))
    }

    /// Begins to fill the outboxes of `set`, which nobody reads. What was collected before was
    /// [counted](Self::count).
    pub(crate) fn fill(&self, set: usize) {
        self.fill_outboxes(set);
        self.plain.set(true);
        self.checked.clear();
        let pending = &mut *self.pending.borrow_mut();
        pending.clear(&self.world.streaks, self.asking);
        // SAFETY: these gets are in this very object, and touched only while the writer is lifted.
        unsafe { self.getting.lower(&pending.gets) };
    }

    /// Does the same as [`fill`](Self::fill), except for what waits in no outbox.
    #[inline]
    pub(crate) fn fill_outboxes(&self, set: usize) {
        self.set.set(set);
        for (target, fast_path) in self.fast_paths.iter().enumerate() {
            // SAFETY: a set's outboxes live as long as the region, and while it is filled its owner
            // alone touches it.
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

    /// Counts what was collected, so that the outboxes of the set being filled may be read. Nothing
    /// takes the fast path until the next set is filled.
    pub(crate) fn count(&self) {
        for (target, fast_path) in self.fast_paths.iter().enumerate() {
            match self.region.made_outbox(self.set.get(), target) {
                // SAFETY: only its owner touches the set being filled, and writers are on it alone.
                Some(outbox) => unsafe { fast_path.writer.lift(&mut (*outbox).records) },
                None => fast_path.writer.leave(),
            }
        }
        // SAFETY: the writer is on these gets alone.
        unsafe { self.getting.lift(&mut self.pending.borrow_mut().gets) };
    }

    /// Runs `act` on the outbox for `target`, with all that was collected so far counted.
    pub(crate) fn outbox<R>(&self, target: usize, act: impl FnOnce(&mut Outbox) -> R) -> R {
        let writer = &self.fast_paths[target].writer;
        if self.region.made_outbox(self.set.get(), target).is_none() {
            writer.leave();
        }
        // SAFETY: only its owner touches the set being filled, and while the writer is lifted only
        // by this reference.
        let outbox = unsafe { &mut *self.region.make_outbox(self.set.get(), target) };
        // SAFETY: writers are on the set being filled alone.
        unsafe { writer.lift(&mut outbox.records) };
        let result = act(outbox);
        // SAFETY: as in `fill`.
        unsafe { writer.lower(&outbox.records) };
        result
    }

    /// Runs `act` on the gets that were collected so far, with all of them counted.
    pub(crate) fn pending<R>(&self, act: impl FnOnce(&mut Pending) -> R) -> R {
        self.plain.set(false);
        let pending = &mut *self.pending.borrow_mut();
        // SAFETY: the writer is on these gets alone.
        unsafe { self.getting.lift(&mut pending.gets) };
        let result = act(pending);
        // SAFETY: as in `fill`.
        unsafe { self.getting.lower(&pending.gets) };
        result
    }
}

impl<T: Element> Deref for Window<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements of the region, initialised (zeroed, any bit pattern valid),
        // aligned; others touch them only while this rank is inside a call that has the window by
        // `&mut`, or a superstep that was begun has it by value (W1). If they are mapped twice
        // (`Region::lent`) this is so of both mappings, and the compiler knows of neither that
        // nothing else has its address.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Element> DerefMut for Window<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` is the only way to this rank's elements.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl Drop for WindowCore {
    fn drop(&mut self) {
        self.let_go_of_frames();
        if !self.apart {
            return; // regions are counted by reference
        }
        // Reach is mutual: the ranks whose memory this rank reaches, itself included, are those
        // that reach its own.
        let mut reached = self.peers.iter().map(|peer| peer.base).filter(|base| !base.is_null());
        let Some(first) = reached.next() else { return };
        let reaching = 1 + reached.count();
        let region = std::mem::replace(&mut self.region, Arc::new(Region::none()));
        let done: Done = if region.is_adopted() {
            Box::new(|| true) // nobody else has reached it
        } else {
            // SAFETY: the part is reached, this rank drops the window only here, and keeps its part
            // as the function requires, or for good.
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
    /// Ends the posts and accesses of the window: closes their ports, and keeps what others may
    /// still read.
    fn let_go_of_frames(&mut self) {
        let exchange = std::mem::take(self.exchange.get_mut());
        // Requests for what was exposed are answered until the world is over.
        let is_served = exchange.posted.is_some() && self.far;
        if is_served {
            self.world.lendings.copy(self.key.window);
        } else if self.far {
            self.world.lendings.forget(self.key.window);
        }
        let Ok(ports) = Ports::of(self.key.window) else { return };
        let Ok(mut endpoint) = self.world.endpoint.try_borrow_mut() else {
            // Dropped inside a call of the transport: kept for good.
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

impl<T: Element> Drop for Window<T> {
    fn drop(&mut self) {
        self.core.note_unfenced();
        self.core.world.forget_window(self.core.key);
        self.core.attributes.drop_all();
    }
}

impl<T: Element + std::fmt::Debug> std::fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
