//! [`Receive`]: a receive that was begun, the room for its elements, and its outcome.

use crate::kernel;
use crate::kernel::element::{Element, element_type};
use crate::messages::state::completion::Completion;
use crate::messages::state::frames::{Envelope, Near};
use crate::messages::state::outbox::{chunk, chunks};
use crate::messages::state::status::Status;
use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Scalar};
use fencepost_transport::Lost;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::atomic::Ordering;

/// A receive that was begun.
pub(crate) struct Receive {
    /// The rank whose messages the receive takes, or `None` for any rank.
    pub(crate) source: Option<usize>,
    /// The tag of the messages that the receive takes, or `None` for any tag.
    pub(crate) tag: Option<u32>,
    pub(crate) element: ElementType,
    room: Room,
    /// The line that began the receive.
    pub(crate) site: &'static Location<'static>,
    pub(crate) stage: RefCell<Stage>,
    /// Whether the receive has taken a message that fits.
    has_begun: Cell<bool>,
    /// Whether the receive is complete.
    pub(crate) completion: Completion,
}

/// The progress of a receive.
pub(crate) enum Stage {
    /// The receive has taken nothing.
    Posted,
    /// The receive has taken a message, and the elements of the message are in transit.
    Landing(Landing),
    /// The receive is complete.
    Done(Outcome),
}

/// The outcome of a receive.
pub(crate) type Outcome = Result<Status, Failure>;

/// Why a receive has failed.
#[derive(Clone)]
pub(crate) enum Failure {
    /// The receive has taken a message that it could not receive.
    Wrong(ErrorClass, String),
    /// Nothing more can come for the receive.
    Lost(Lost),
}

/// The room for the elements of a message.
pub(crate) enum Room {
    /// These elements of a slice, which are filled in this order.
    Elements(*mut u8, Datatype),
    /// A list, which gets all elements of the message.
    List(*mut dyn List),
}

impl Room {
    /// Returns the address where `len` elements of `size` bytes land, if they land in one piece and
    /// there is room for them.
    ///
    /// # Safety
    /// As [`Receive::new`].
    #[inline]
    pub(crate) unsafe fn place(&self, len: usize, size: usize) -> Option<*mut u8> {
        match self {
            Self::Elements(base, elements) => {
                let run = elements.as_run().filter(|run| len <= (run.end - run.start) as usize)?;
                Some(base.wrapping_add(run.start as usize * size))
            }
            // SAFETY: the caller upholds the safety contract.
            Self::List(list) => unsafe { (**list).reserve(len) },
        }
    }

    /// Notes that the elements of a message have landed at this [place](Self::place).
    ///
    /// # Safety
    /// `len` elements were written there.
    #[inline]
    pub(crate) unsafe fn filled(&self, len: usize) {
        if let Self::List(list) = self {
            // SAFETY: the caller upholds the safety contract.
            unsafe { (**list).filled(len) };
        }
    }
}

/// A list of elements of some type.
pub(crate) trait List {
    /// Makes room for this number of elements in an empty list, and returns the address of the
    /// first one, if there is memory.
    fn reserve(&mut self, count: usize) -> Option<*mut u8>;

    /// Sets the length of the list to this number of elements.
    ///
    /// # Safety
    /// There is room for this number of elements, and all of them were written.
    unsafe fn filled(&mut self, count: usize);
}

impl<T: Element> List for Vec<T> {
    fn reserve(&mut self, count: usize) -> Option<*mut u8> {
        self.clear();
        self.try_reserve_exact(count).ok()?;
        Some(self.as_mut_ptr().cast())
    }

    unsafe fn filled(&mut self, count: usize) {
        // SAFETY: the caller upholds the safety contract, and any bits are an element.
        unsafe { self.set_len(count) }
    }
}

/// Returns the name of an element type.
fn words(element: ElementType) -> String {
    let name = |scalar: Scalar| format!("{scalar:?}").to_lowercase();
    match element.kind {
        ElementKind::Scalar(scalar) => name(scalar),
        ElementKind::ValueAt(value, index) => format!("ValueAt<{}, {}>", name(value), name(index)),
        ElementKind::Opaque => format!("plain data of {} bytes", element.size),
    }
}

/// A message that was taken, and whose elements come in chunks.
pub(crate) struct Landing {
    pub(crate) envelope: Envelope,
    area: Area,
    /// Whether the area is newly allocated memory to which nothing was written.
    is_fresh: bool,
    /// Whether the message was sent with its elements and was taken before all of them had come.
    pub(crate) is_early: bool,
    /// The number of chunks that have come.
    pub(crate) came: usize,
    /// The number of chunks that were requested.
    pub(crate) asked: usize,
    /// The elements that have come, if they do not land in one piece.
    gathered: Vec<u8>,
}

/// The part of the room in which the elements of one message land.
enum Area {
    Run(*mut u8),
    Scattered(*mut u8, Datatype),
}

impl Receive {
    /// Begins a receive into these elements of a slice, or into a list.
    ///
    /// # Safety
    /// The elements are in a slice of `T` that is valid for writes, or the list is a list of `T`.
    /// No other code accesses these elements or the list until the receive is done or was
    /// forgotten.
    pub(crate) unsafe fn new<T: Element>(
        source: Option<usize>,
        tag: Option<u32>,
        room: Room,
        site: &'static Location<'static>,
    ) -> Self {
        let (stage, has_begun) = (RefCell::new(Stage::Posted), Cell::new(false));
        let completion = Completion::default();
        Self { source, tag, element: element_type::<T>(), room, site, stage, has_begun, completion }
    }

    /// Returns whether the receive takes a message of rank `from` with this tag.
    #[inline]
    pub(crate) fn takes(&self, from: usize, tag: u32) -> bool {
        self.source.is_none_or(|source| source == from) && self.tag.is_none_or(|wanted| wanted == tag)
    }

    /// Returns the outcome of the receive, if it is complete.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &*self.stage.borrow() {
            Stage::Done(outcome) => Some(outcome.clone()),
            Stage::Posted | Stage::Landing(_) => None,
        }
    }

    /// Returns whether the receive has taken a message whose elements are in transit.
    pub(crate) fn is_landing(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Landing(_))
    }

    /// Returns whether the receive has taken a message whose elements come without a request.
    pub(crate) fn lands_early(&self) -> bool {
        matches!(&*self.stage.borrow(), Stage::Landing(landing) if landing.is_early)
    }

    /// Returns whether the receive has taken nothing and can still take a message.
    pub(crate) fn is_posted(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Posted)
    }

    /// Returns whether the receive has taken a message that fits. If the receive fails afterwards,
    /// some of the elements may have landed.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Takes a message, and returns the place where its elements land. If the message does not fit,
    /// ends the receive with an error and returns `None`.
    pub(crate) fn take(&self, from: usize, envelope: Envelope, is_early: bool) -> Option<Landing> {
        match self.area(from, &envelope, is_early) {
            Ok(area) => {
                self.has_begun.set(true);
                let is_fresh = matches!(self.room, Room::List(_));
                Some(Landing {
                    envelope,
                    area,
                    is_fresh,
                    is_early: false,
                    came: 0,
                    asked: 0,
                    gathered: Vec::new(),
                })
            }
            Err(error) => {
                self.end(Err(Failure::Wrong(error.0, error.1)));
                None
            }
        }
    }

    /// Takes a message that has not arrived completely, if it fits and its elements land in one
    /// piece. Returns the place where they land.
    pub(crate) fn take_early(&self, from: usize, envelope: Envelope) -> Option<Landing> {
        let area = self.area(from, &envelope, false).ok().filter(|area| matches!(area, Area::Run(_)))?;
        self.has_begun.set(true);
        let is_fresh = matches!(self.room, Room::List(_));
        Some(Landing { envelope, area, is_fresh, is_early: true, came: 0, asked: 0, gathered: Vec::new() })
    }

    fn area(&self, from: usize, envelope: &Envelope, is_early: bool) -> Result<Area, (ErrorClass, String)> {
        let (len, tag) = (envelope.len(), envelope.tag);
        let about = || format!("the message of rank {from} with tag {tag}");
        if envelope.element != self.element {
            let (sent, own) = (words(envelope.element), words(self.element));
            let message = format!(
                "{} has elements of type {sent}, and this receive is for {own}: the message is lost; receive the type that is sent",
                about()
            );
            return Err((ErrorClass::Type, message));
        }
        let most = match &self.room {
            Room::Elements(_, elements) => elements.size(),
            Room::List(_) => usize::MAX,
        };
        if len > most {
            let message = format!(
                "{} has {len} elements, and there is room for {most}: the message is lost, and the room is as it was; give more room, or probe for the length first",
                about()
            );
            return Err((ErrorClass::Truncate, message));
        }
        if is_early {
            let message = format!(
                "{} was sent by a ready send, and no receive waited for it when it arrived: the message is lost; let the receive be called first, or use a standard send",
                about()
            );
            return Err((ErrorClass::Assert, message));
        }
        match &self.room {
            Room::Elements(base, elements) => {
                let part = if len == most { Ok(elements.clone()) } else { elements.slice(0, len) };
                let part = part.map_err(|error| (error.class(), error.message().to_owned()))?;
                Ok(match part.as_run() {
                    Some(run) => {
                        Area::Run(base.wrapping_add(run.start as usize * self.element.size as usize))
                    }
                    None => Area::Scattered(*base, part),
                })
            }
            // SAFETY: the caller of `new` guarantees that the list can be accessed.
            Room::List(list) => match unsafe { (**list).reserve(len) } {
                Some(first) => Ok(Area::Run(first)),
                None => {
                    let message = format!("there is no memory for {len} elements of {}: it is lost", about());
                    Err((ErrorClass::NoMem, message))
                }
            },
        }
    }

    /// Completes the receive: all elements of the message have landed.
    pub(crate) fn done(&self, from: usize, envelope: &Envelope) {
        let len = envelope.len();
        // SAFETY: all elements have landed.
        unsafe { self.room.filled(len) };
        let status = Status { source: Some(from), tag: Some(envelope.tag), len };
        self.end(Ok(status));
    }

    /// Fails the receive, because nothing more can come for it.
    pub(crate) fn lose(&self, lost: &Lost) {
        self.end(Err(Failure::Lost(lost.clone())));
    }

    /// Ends the receive before it takes a message. If `error` is given, the request of the receive
    /// fails with this class and message. Otherwise the caller owns the request and does not ask
    /// for its outcome.
    pub(crate) fn cancel(&self, error: Option<(ErrorClass, String)>) {
        match error {
            Some((class, message)) => self.end(Err(Failure::Wrong(class, message))),
            None => {
                let cancelled = Failure::Wrong(ErrorClass::Other, "it was cancelled".to_owned());
                *self.stage.borrow_mut() = Stage::Done(Err(cancelled));
                self.completion.cancel();
            }
        }
    }

    fn end(&self, outcome: Outcome) {
        let is_lost = matches!(outcome, Err(Failure::Lost(_)));
        *self.stage.borrow_mut() = Stage::Done(outcome);
        if is_lost { self.completion.lose() } else { self.completion.complete() }
    }
}

impl Landing {
    /// Copies all elements from `from` to the room.
    ///
    /// # Safety
    /// All bytes of the message are at `from`, outside of the room of the receive, and no code
    /// writes them. The room still exists.
    pub(crate) unsafe fn whole(&self, from: *const u8) {
        // SAFETY: the caller upholds the safety contract. The area was made from the room, and has
        // the message's number of elements.
        unsafe {
            match &self.area {
                Area::Run(to) => std::ptr::copy_nonoverlapping(from, *to, self.envelope.bytes),
                Area::Scattered(base, part) => {
                    kernel::unpack(from, *base, part, self.envelope.element.size as usize);
                }
            }
        }
    }

    /// Copies all elements from `near` to the room, each piece as it becomes available. Meanwhile
    /// the sender may still be copying elements to `near`. Returns `false` if the sender has
    /// stopped before it has copied all elements.
    ///
    /// # Safety
    /// As for [`whole`](Self::whole), for the bytes that were copied.
    pub(crate) unsafe fn read_near(&self, near: Near, mut goes_on: impl FnMut() -> bool) -> bool {
        let (mut done, bytes) = (0, self.envelope.bytes);
        while !near.copied.is_null() && done < bytes {
            // SAFETY: the counter is in the memory of the elements, and every access to it is
            // atomic from its first use on.
            let there = bytes.min(unsafe { (*near.copied).load(Ordering::Acquire) } as usize);
            if there == done {
                if !goes_on() {
                    return false;
                }
                std::thread::yield_now();
                continue;
            }
            match &self.area {
                // SAFETY: the caller upholds the safety contract of `whole`.
                Area::Run(to) => unsafe {
                    std::ptr::copy_nonoverlapping(near.first.add(done), to.add(done), there - done);
                },
                Area::Scattered(..) if there < bytes => {}
                // SAFETY: the caller upholds the safety contract.
                Area::Scattered(..) => unsafe { self.whole(near.first) },
            }
            done = there;
        }
        if near.copied.is_null() {
            // SAFETY: the caller upholds the safety contract.
            unsafe { self.whole(near.first) };
        }
        true
    }

    /// Copies all elements, which have arrived at `from`, to the room. Does nothing if `from` is
    /// already their destination.
    ///
    /// # Safety
    /// As for [`whole`](Self::whole), if `from` is not the destination of the elements.
    pub(crate) unsafe fn arrived(&self, from: *const u8) {
        if !matches!(self.area, Area::Run(to) if std::ptr::eq(to, from)) {
            // SAFETY: the caller upholds the safety contract.
            unsafe { self.whole(from) };
        }
    }

    /// Returns the initialised memory where all elements may be written as they come, if they land
    /// in one piece.
    ///
    /// # Safety
    /// The room of the receive still exists, and nothing has been written to it.
    pub(crate) unsafe fn all(&self) -> Option<*mut [u8]> {
        let Area::Run(to) = self.area else { return None };
        if self.is_fresh {
            // SAFETY: the area has the number of bytes of the message, and no other code accesses
            // them.
            unsafe { to.write_bytes(0, self.envelope.bytes) };
        }
        Some(std::ptr::slice_from_raw_parts_mut(to, self.envelope.bytes))
    }

    /// Returns the initialised memory where a chunk may be written as it comes, or `None` if the
    /// elements of the message do not land in one piece.
    ///
    /// # Safety
    /// The room of the receive still exists, and nothing has been written to the place of this
    /// chunk.
    pub(crate) unsafe fn place(&self, at: usize) -> Option<*mut [u8]> {
        let Area::Run(to) = self.area else { return None };
        let part = chunk(at, self.envelope.bytes);
        let first = to.wrapping_add(part.start);
        if self.is_fresh {
            // SAFETY: the area has the number of bytes of the message, and no other code accesses
            // them.
            unsafe { first.write_bytes(0, part.len()) };
        }
        Some(std::ptr::slice_from_raw_parts_mut(first, part.len()))
    }

    /// Takes in the next chunk. Returns whether the chunk has the expected length.
    ///
    /// # Safety
    /// The room of the receive still exists. The bytes are not in the room, unless they are already
    /// at their [place](Self::place).
    pub(crate) unsafe fn chunk(&mut self, bytes: &[u8]) -> bool {
        let part = chunk(self.came, self.envelope.bytes);
        if part.len() != bytes.len() {
            return false;
        }
        self.came += 1;
        match &self.area {
            Area::Run(to) if std::ptr::eq(to.wrapping_add(part.start), bytes.as_ptr()) => {}
            // SAFETY: the area has the number of bytes of the message, and no other code accesses
            // them.
            Area::Run(to) => unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(part.start), bytes.len());
            },
            Area::Scattered(..) => {
                self.gathered.extend_from_slice(bytes);
                if self.is_whole() {
                    // SAFETY: the caller upholds the safety contract, and all bytes of the message
                    // are gathered.
                    unsafe { self.whole(self.gathered.as_ptr()) };
                }
            }
        }
        true
    }

    /// Returns the length of the next chunk.
    pub(crate) fn next_len(&self) -> usize {
        chunk(self.came, self.envelope.bytes).len()
    }

    /// Returns whether all chunks have come.
    pub(crate) fn is_whole(&self) -> bool {
        self.came == chunks(self.envelope.bytes)
    }
}
