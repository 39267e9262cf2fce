//! Frames through shared memory: a first in, first out queue of descriptors for each ordered pair
//! of ranks and each port.
//!
//! A queue is a ring of slots of one cache line each. The number in a slot identifies the frame in
//! the slot. The reader loads one line for a frame, and further lines for its payload unless the
//! payload is short enough to be copied into the slot. A sender that finds the ring full links a
//! larger ring behind the full one and continues in the larger ring. So posting never waits, and a
//! post becomes visible without help from any other rank. The reader moves to the next ring when it
//! has released all frames of the old one. The sender owns the rings. It frees the old ring after a
//! frame of the next ring was released, since the reader has moved on by then. A queue whose reader
//! keeps up stays in one ring and allocates nothing.
//!
//! The sender creates a queue in its own memory when it posts the first frame, and links the queue
//! into the *inbox* of the reader. An inbox is a list. Any rank can add a queue at the front, and
//! the reader takes the whole list. So the memory of a world of p ranks grows with the number of
//! pairs of ranks that exchange frames, and not with p squared. A reader that does not know the
//! queue of a sender yet looks into its own inbox. This costs one load if no queue was linked since
//! the last look.
//!
//! The sender frees a queue of a port that both ranks have closed. The reader marks the queue as
//! closed, and does not access it afterwards.

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;

use crate::ports::ClosedPorts;
use crate::shared::cell::NumberedCell;
use crate::shared::pair::PairLines;
use crate::shared::slice::{KeepAlive, Placement, SharedSlice};
use crate::shared::waker::Backoff;
use crate::sync::{AtomicBool, AtomicU64, Line, Ordering, SLOTS};
use crate::{Frame, Header, Port};

/// The longest payload in bytes that a slot has room for.
pub(crate) const SHORT: usize = crate::COPIED;

/// A frame, and its payload if that was copied.
#[repr(C)]
#[derive(Clone, Copy)]
struct Content {
    short: [u64; SHORT / 8],
    frame: Frame,
}

/// A slot of a ring. Its number is one more than the number of the frame in it. One [`Sender`]
/// writes it, and one [`Receiver`] reads it. The next write to the slot follows the Acquire load of
/// a count that the receiver stored with Release after its last look at the frame.
type Slot = NumberedCell<Content>;

/// The description of a ring for its reader. Frame `n` is in slot `(n - first) % slots`.
#[repr(C)]
struct RingHead {
    first: u64,
    /// The address of the slots. `slots` is their number.
    address: u64,
    slots: u64,
    /// The address of the next ring's head, or 0 while there is no next ring.
    next: AtomicU64,
}

/// The state that the two sides of a queue share, except the rings.
#[repr(C)]
struct QueueState {
    /// The number of frames that the reader has released.
    released: AtomicU64,
    /// The address of the first ring's head, or 0 while there is no ring.
    start: AtomicU64,
    /// The rank that sends.
    origin: u64,
    /// The port.
    port: u64,
    /// The address of the queue that was linked into the inbox before this one, or 0 for none.
    /// Written before this queue is linked, and not afterwards.
    before: AtomicU64,
    /// Whether the reader has closed the port. If so, the reader no longer accesses the queue or
    /// its frames.
    closed: AtomicBool,
    /// The address of the queue's [`PairLines`], or 0 while there are none.
    lines: AtomicU64,
}

/// The inboxes of the ranks of a world. An inbox is the address of the queue that was linked last,
/// or 0 while the inbox is empty.
pub(crate) type Inboxes = SharedSlice<Line<AtomicU64>>;

pub(crate) fn inboxes(size: usize, placement: &mut impl Placement) -> io::Result<Inboxes> {
    placement.place(size, || Line(AtomicU64::new(0)))
}

/// The sending or the receiving sides of a rank's queues, by port and other rank.
struct Queues<S> {
    size: usize,
    /// The queues of [`Port::FENCE`] and of [`Port::MESSAGES`], which are found by rank, without a
    /// search. A list is empty until it has a queue.
    direct: [Vec<Option<Box<S>>>; 2],
    /// The queues of all other ports.
    others: BTreeMap<(Port, usize), Box<S>>,
}

impl<S> Queues<S> {
    fn new(size: usize) -> Self {
        Self { size, direct: [Vec::new(), Vec::new()], others: BTreeMap::new() }
    }

    /// Returns the index in `direct` of the list of this port, or `None` for all other ports.
    #[inline(always)]
    fn direct(port: Port) -> Option<usize> {
        match port {
            Port::FENCE => Some(0),
            Port::MESSAGES => Some(1),
            _ => None,
        }
    }

    #[inline(always)]
    fn get(&mut self, port: Port, rank: usize) -> Option<&mut S> {
        let side = match Self::direct(port) {
            Some(list) => self.direct[list].get_mut(rank)?.as_mut(),
            None => self.others.get_mut(&(port, rank)),
        };
        side.map(|side| &mut **side)
    }

    #[cold]
    fn insert(&mut self, port: Port, rank: usize, side: S) {
        let side = Box::new(side);
        match Self::direct(port) {
            Some(list) => {
                let list = &mut self.direct[list];
                list.resize_with(self.size, || None);
                list[rank] = Some(side);
            }
            None => drop(self.others.insert((port, rank), side)),
        }
    }

    /// Calls `call` for each queue of a port.
    fn for_each(&mut self, port: Port, mut call: impl FnMut(&mut S)) {
        match Self::direct(port) {
            Some(list) => self.direct[list].iter_mut().flatten().for_each(|side| call(side)),
            None => {
                let of_port = self.others.range_mut((port, 0)..=(port, usize::MAX));
                of_port.for_each(|(_, side)| call(side));
            }
        }
    }

    /// Removes the queues for which `keep` returns `false`.
    fn retain(&mut self, keep: impl Fn(&S) -> bool) {
        for side in self.direct.iter_mut().flatten() {
            side.take_if(|side| !keep(side));
        }
        self.others.retain(|_, side| keep(side));
    }

    /// Takes the queues of a port.
    fn take_port(&mut self, port: Port) -> Vec<Box<S>> {
        match Self::direct(port) {
            Some(list) => self.direct[list].iter_mut().filter_map(Option::take).collect(),
            None => {
                let of_port = self.others.range((port, 0)..=(port, usize::MAX)).map(|(place, _)| *place);
                let places: Vec<(Port, usize)> = of_port.collect();
                places.iter().filter_map(|place| self.others.remove(place)).collect()
            }
        }
    }

    /// Takes all queues.
    fn take(&mut self) -> impl Iterator<Item = Box<S>> + use<S> {
        let [fence, messages] = std::mem::take(&mut self.direct);
        let others = std::mem::take(&mut self.others).into_values();
        fence.into_iter().chain(messages).flatten().chain(others)
    }
}

/// The posting sides of a rank's queues.
pub(crate) struct Senders {
    rank: usize,
    inboxes: Inboxes,
    queues: Queues<Sender>,
}

impl Senders {
    /// Creates the posting sides of `rank`. A rank has one `Senders` in each world.
    pub(crate) fn new(rank: usize, inboxes: Inboxes) -> Self {
        Self { rank, queues: Queues::new(inboxes.len()), inboxes }
    }

    /// Returns the number of ranks.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.queues.size
    }

    /// Returns the posting side of the queue to `to`, and links the queue into that rank's inbox if
    /// it was not linked yet.
    ///
    /// # Errors
    /// Fails if there is no room for the queue.
    #[inline]
    pub(crate) fn open(
        &mut self,
        to: usize,
        port: Port,
        placement: &mut impl Placement,
    ) -> io::Result<&mut Sender> {
        if self.queues.get(port, to).is_none() {
            let sender = Sender::link(self.rank, port, &self.inboxes[to].0, placement)?;
            self.queues.insert(port, to, sender);
        }
        Ok(self.queues.get(port, to).expect("it was just made"))
    }

    /// Returns the lines that belong to the queue to `to` on this port, and creates the queue and
    /// the lines if they do not exist.
    ///
    /// # Errors
    /// Fails if there is no room.
    pub(crate) fn lines(
        &mut self,
        to: usize,
        port: Port,
        placement: &mut impl Placement,
    ) -> io::Result<NonNull<PairLines>> {
        let sender = self.open(to, port, placement)?;
        if sender.lines.is_none() {
            let lines = placement.place(1, PairLines::default)?;
            // Pairs with the load in `Receivers::lines`.
            sender.queue[0].0.lines.store(lines.address(), Ordering::Release);
            sender.lines = Some(lines);
        }
        Ok(NonNull::from(&sender.lines.as_ref().expect("they were just made")[0]))
    }

    /// Returns how many frames were posted to `to` on this port, and how many of these frames were
    /// released.
    #[inline]
    pub(crate) fn counts(&mut self, to: usize, port: Port) -> (u64, u64) {
        self.queues.get(port, to).map_or((0, 0), |sender| (sender.posted, sender.released()))
    }

    /// Returns whether the frame of this number to `to` was released.
    pub(crate) fn is_released(&mut self, to: usize, port: Port, frame: u64) -> bool {
        self.queues.get(port, to).is_none_or(|sender| sender.released() > frame)
    }

    /// Closes a port, and frees the queues that both ranks have closed.
    pub(crate) fn close(&mut self, port: Port) {
        self.queues.for_each(port, |sender| sender.closing = true);
        self.queues.retain(|sender| !(sender.closing && sender.is_closed()));
    }

    /// Returns the memory that readers may still read after this side was dropped.
    pub(crate) fn take_kept(&mut self) -> impl Iterator<Item = KeepAlive> {
        self.queues.take().flat_map(|sender| sender.into_kept())
    }
}

/// The reading sides of a rank's queues.
pub(crate) struct Receivers {
    rank: usize,
    inboxes: Inboxes,
    /// The queues that were found in the inbox.
    queues: Queues<Receiver>,
    /// The ports that this rank has closed.
    closed: ClosedPorts,
}

impl Receivers {
    /// Creates the reading sides of `rank`. A rank has one `Receivers` in each world.
    pub(crate) fn new(rank: usize, inboxes: Inboxes) -> Self {
        Self { rank, queues: Queues::new(inboxes.len()), closed: ClosedPorts::default(), inboxes }
    }

    /// Returns the oldest frame from `from` on this port that was not released, if it has arrived.
    #[inline]
    pub(crate) fn peek(&mut self, from: usize, port: Port) -> Option<Frame> {
        match self.queues.get(port, from) {
            Some(receiver) => receiver.peek(),
            None => self.peek_new(from, port),
        }
    }

    /// Polls for the next frame of this origin and port, as often as `backoff` allows. Does nothing
    /// if the queue is not known yet. Does not look in the next ring of the queue.
    #[inline]
    pub(crate) fn look_out(&mut self, from: usize, port: Port, backoff: Backoff) {
        if let Some(receiver) = self.queues.get(port, from)
            && !receiver.open
            && let Some(slot) = receiver.slot()
        {
            let next = receiver.released + 1;
            _ = backoff.look_out(|| slot.has(next));
        }
    }

    /// The slow path of `peek`, for a queue that is not known yet: looks into the inbox first.
    #[cold]
    fn peek_new(&mut self, from: usize, port: Port) -> Option<Frame> {
        self.look();
        self.queues.get(port, from)?.peek()
    }

    /// Returns the lines that belong to the queue of `from` on this port, if they exist.
    pub(crate) fn lines(&mut self, from: usize, port: Port) -> Option<NonNull<PairLines>> {
        if self.queues.get(port, from).is_none() {
            self.look();
        }
        // Pairs with the store in `Senders::lines`.
        let lines = self.queues.get(port, from)?.state().lines.load(Ordering::Acquire);
        NonNull::new(lines as *mut PairLines)
    }

    /// Releases the frame that `peek` returned. Returns whether there was one.
    #[inline]
    pub(crate) fn release(&mut self, from: usize, port: Port) -> bool {
        self.queues.get(port, from).is_some_and(Receiver::release)
    }

    /// Closes a port. Its frames are no longer read, and all frames posted so far count as
    /// released.
    pub(crate) fn close(&mut self, port: Port) {
        self.look();
        self.closed.insert(port);
        self.queues.take_port(port).into_iter().for_each(|receiver| receiver.close());
    }

    /// Finds the queues that were linked since this rank looked last.
    fn look(&mut self) {
        let inbox = &self.inboxes[self.rank].0;
        if inbox.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut at = inbox.swap(0, Ordering::Acquire); // pairs with the exchange in `link`
        while let Some(queue) = NonNull::new(at as *mut QueueState) {
            // SAFETY: the sender of a linked queue frees it only after this rank has closed it. The
            // memory of a dropped sender is kept until this side is dropped as well.
            let state = unsafe { queue.as_ref() };
            let (origin, port) = (state.origin as usize, Port(state.port as u32));
            at = state.before.load(Ordering::Relaxed); // written before the queue was linked
            let receiver = Receiver::new(queue);
            if self.closed.contains(port) {
                receiver.close(); // its sender may free the queue now, and `before` was read above
            } else {
                self.queues.insert(port, origin, receiver);
            }
        }
    }
}

/// A ring, and its memory.
struct Ring {
    head: SharedSlice<RingHead>,
    slots: SharedSlice<Slot>,
}

/// The posting side of a queue.
pub(crate) struct Sender {
    queue: SharedSlice<Line<QueueState>>,
    ring: Option<Ring>,
    /// Rings that the reader may still read, each with the number of the first frame of the next
    /// ring.
    old: Vec<(Ring, u64)>,
    posted: u64,
    /// The queue's `released` as last seen.
    released: u64,
    /// Whether this rank has closed the port.
    closing: bool,
    /// The lines that bypass the rings, or `None` until they are requested.
    lines: Option<SharedSlice<PairLines>>,
}

/// The reading side of a queue.
struct Receiver {
    queue: NonNull<QueueState>,
    ring: Option<NonNull<RingHead>>,
    released: u64,
    /// Whether the frame that follows the released frames has arrived.
    open: bool,
}

// SAFETY: the sender owns the queue and the ring and keeps them alive (see the top of this file).
// They are bound to no thread.
unsafe impl Send for Receiver {}

impl Sender {
    /// Creates a queue of `origin` and this port, links it into this inbox, and returns its posting
    /// side.
    fn link(
        origin: usize,
        Port(port): Port,
        inbox: &AtomicU64,
        placement: &mut impl Placement,
    ) -> io::Result<Self> {
        let zero = || AtomicU64::new(0);
        let (origin, port, closed) = (origin as u64, port.into(), AtomicBool::new(false));
        let mut state = Some(QueueState {
            released: zero(),
            start: zero(),
            origin,
            port,
            before: zero(),
            closed,
            lines: zero(),
        });
        let queue = placement.place(1, || Line(state.take().expect("one is placed")))?;
        let mut last = inbox.load(Ordering::Relaxed);
        loop {
            queue[0].0.before.store(last, Ordering::Relaxed);
            // Release: pairs with the exchange in `look`. Later exchanges of other ranks continue
            // the release sequence of this exchange.
            match inbox.compare_exchange(last, queue.address(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => last = other,
            }
        }
        let (old, lines) = (Vec::new(), None);
        Ok(Self { queue, ring: None, old, posted: 0, released: 0, closing: false, lines })
    }

    /// Posts a frame. Never waits.
    ///
    /// # Errors
    /// Fails if there is no room for a larger ring. The frame was not posted then.
    #[inline]
    pub(crate) fn post(&mut self, frame: Frame, placement: &mut impl Placement) -> io::Result<()> {
        // SAFETY: nothing is copied.
        unsafe { self.put(frame, 0, placement) }
    }

    /// Posts a frame with a [short](SHORT) payload, which is copied.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    ///
    /// # Safety
    /// The payload can be read.
    #[inline]
    pub(crate) unsafe fn post_copy(
        &mut self,
        frame: Frame,
        placement: &mut impl Placement,
    ) -> io::Result<()> {
        assert!(frame.len <= SHORT, "longer than a slot has room for");
        // SAFETY: the room is long enough, and the caller promises that the payload can be read.
        unsafe { self.put(frame, frame.len, placement) }
    }

    /// Puts a frame into the next slot, with a copy of the first `copied` bytes of its payload.
    ///
    /// # Safety
    /// These bytes can be read, and there is room for them.
    #[inline(always)]
    unsafe fn put(&mut self, frame: Frame, copied: usize, placement: &mut impl Placement) -> io::Result<()> {
        if !self.has_room() {
            self.grow(placement)?;
        }
        let ring = self.ring.as_ref().expect("`grow` has made one");
        let slot = ring.slot(self.posted);
        // SAFETY: only this sender writes the slot. The slot is new, or its last frame was released
        // (see `Slot`). The caller promises the rest.
        unsafe {
            slot.write(|content| {
                (*content).frame = frame;
                if copied > 0 {
                    let short = (&raw mut (*content).short).cast();
                    frame.payload.copy_to_nonoverlapping(short, copied);
                    (*content).frame.payload = short;
                }
            });
        }
        self.posted += 1;
        slot.publish(self.posted);
        Ok(())
    }

    /// Returns the number of frames that were released, in total.
    #[inline]
    fn released(&mut self) -> u64 {
        if self.released < self.posted {
            // Pairs with the store in `release`.
            self.released = self.queue[0].0.released.load(Ordering::Acquire);
            if self.released < self.posted && self.is_closed() {
                self.released = self.posted;
            }
        }
        self.released
    }

    /// Returns whether the reader has closed the port.
    #[inline]
    fn is_closed(&self) -> bool {
        self.queue[0].0.closed.load(Ordering::Acquire) // pairs with the store in `close`
    }

    /// Returns the memory that the reader may still read after this side was dropped.
    fn into_kept(self) -> impl Iterator<Item = KeepAlive> {
        let rings = self.old.into_iter().map(|(ring, _)| ring).chain(self.ring);
        let rings = rings.flat_map(|ring| [ring.head.into_kept(), ring.slots.into_kept()]);
        rings.chain([self.queue.into_kept()]).chain(self.lines.map(SharedSlice::into_kept))
    }

    /// Returns whether the slot of the next frame is free: it was never used, or its last frame was
    /// released.
    #[inline]
    fn has_room(&mut self) -> bool {
        let Some(ring) = &self.ring else { return false };
        let (first, slots) = (ring.head[0].first, ring.slots.len() as u64);
        let last = self.posted.wrapping_sub(slots);
        self.posted - first < slots || self.released > last || self.released() > last
    }

    #[cold]
    fn grow(&mut self, placement: &mut impl Placement) -> io::Result<()> {
        let slots = self.ring.as_ref().map_or(SLOTS.0, |ring| SLOTS.1.min(2 * ring.slots.len()));
        let empty = Frame { header: Header::default(), payload: std::ptr::null(), len: 0 };
        let content = Content { short: [0; SHORT / 8], frame: empty };
        let slots = placement.place(slots, || Slot::new(content))?;
        let head = placement.place(1, || RingHead {
            first: self.posted,
            address: slots.address(),
            slots: slots.len() as u64,
            next: AtomicU64::new(0),
        })?;
        let address = head.address();
        let old = self.ring.replace(Ring { head, slots });
        let link = old.as_ref().map_or(&self.queue[0].0.start, |ring| &ring.head[0].next);
        link.store(address, Ordering::Release); // pairs with the load in `has_come_beyond`
        let released = self.released();
        self.old.retain(|(_, next)| released <= *next);
        self.old.extend(old.map(|ring| (ring, self.posted)));
        Ok(())
    }
}

impl Ring {
    #[inline]
    fn slot(&self, frame: u64) -> &Slot {
        &self.slots[(frame - self.head[0].first) as usize & (self.slots.len() - 1)]
    }
}

impl Receiver {
    /// Creates the reading side of a queue. A queue has one reading side.
    fn new(queue: NonNull<QueueState>) -> Self {
        Self { queue, ring: None, released: 0, open: false }
    }

    fn state(&self) -> &QueueState {
        // SAFETY: the memory of a dropped sender is kept until this side is dropped as well.
        unsafe { self.queue.as_ref() }
    }

    /// Returns the oldest frame that was not released, if it has arrived.
    #[inline]
    fn peek(&mut self) -> Option<Frame> {
        if !self.open {
            self.open = self.has_come() || self.has_come_beyond();
        }
        let slot = self.slot().filter(|_| self.open)?;
        // SAFETY: the frame has arrived, and the sender writes the slot only after the frame was
        // released (see `Slot`).
        Some(unsafe { slot.read(|content| (*content).frame) })
    }

    /// Releases the frame that `peek` returned. Returns whether there was one.
    #[inline]
    fn release(&mut self) -> bool {
        let open = std::mem::replace(&mut self.open, false);
        if open {
            self.released += 1;
            // Pairs with the loads of the sender.
            self.state().released.store(self.released, Ordering::Release);
        }
        open
    }

    /// Closes the queue. Its sender may free it at once.
    fn close(self) {
        self.state().closed.store(true, Ordering::Release); // pairs with the load in `is_closed`
    }

    /// Returns the slot of the next frame in the reader's current ring.
    #[inline]
    fn slot(&self) -> Option<&Slot> {
        // SAFETY: the sender frees a ring only after a frame of the next ring was released, and
        // this side has moved on before that. The memory of a dropped sender is kept until this
        // side is dropped as well.
        let head = unsafe { self.ring?.as_ref() };
        let at = (self.released - head.first) & (head.slots - 1);
        // SAFETY: the ring has `slots` slots at this address as long as its head exists.
        Some(unsafe { &*(head.address as *const Slot).add(at as usize) })
    }

    #[inline]
    fn has_come(&self) -> bool {
        self.slot().is_some_and(|slot| slot.has(self.released + 1))
    }

    /// Called when the next frame is not in this ring. Moves to the next ring if that ring starts
    /// with the frame. Returns whether the frame has arrived.
    fn has_come_beyond(&mut self) -> bool {
        let link = match self.ring {
            // SAFETY: as in `slot`.
            Some(head) => unsafe { &(*head.as_ptr()).next },
            None => &self.state().start,
        };
        let next = link.load(Ordering::Acquire) as *mut RingHead; // pairs with `grow`
        let Some(next) = NonNull::new(next) else { return false };
        // SAFETY: the sender has linked the ring, and frees it only after the previous ring.
        if unsafe { next.as_ref() }.first == self.released {
            self.ring = Some(next);
        }
        self.has_come()
    }
}
