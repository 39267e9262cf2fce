//! [`Recorder`]: takes the place of a window when a superstep is recorded instead of run.

use crate::collect::operation::{
    Collect, Get, Operation, Put, Section, Site, Source, SourceData, TargetRegion, WindowKey, WindowSection,
};
use crate::collect::ticket::{Slot, Ticket};
use crate::kernel::element::{Element, element_type};
use crate::protocol::bounds::{sizes, within};
use crate::supersteps::state::RecordedEpoch;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{self, Kind, Local, Mode, Pattern};
use fencepost_planner::table::Table;
use fencepost_planner::{Error, ErrorClass, Result};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number that identifies the next recording, in place of a world's number. It counts down from
/// the maximum, and the numbers of worlds count up, so no world ever has the same number.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The calls of one rank in one superstep, while they are recorded. The recorders of all windows
/// share one recording.
#[derive(Debug)]
pub struct Recording {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The number that sections of this recording have in place of a world's number. It
    /// distinguishes these sections from those of a world or of another recording.
    id: u64,
    rank: u32,
    ranks: u32,
    /// The length of each window on every rank, if known.
    lengths: Vec<Vec<usize>>,
    /// Whether the pattern has made a query whose answer differs, or may differ, between ranks.
    observed: Cell<bool>,
    /// Operations since the last fence of their window.
    open: RefCell<Vec<pattern::Operation>>,
    epochs: RefCell<Vec<RecordedEpoch>>,
    /// The number of times that loops of the pattern have begun their bodies.
    turns: Cell<u32>,
    /// The number of operations and fences so far.
    calls: Cell<u32>,
}

/// The maximum number of turns of all loops of one rank's pattern together.
pub const PATTERN_TURNS_MAX: u32 = 1 << 24;
/// The maximum number of operations and fences of one rank's pattern.
pub const PATTERN_CALLS_MAX: u32 = 1 << 20;

impl Recording {
    /// Begins to record the calls of rank `rank` of `ranks`, without the lengths of windows.
    pub fn new(rank: u32, ranks: u32) -> Self {
        Self::of(rank, ranks, Vec::new())
    }

    /// Begins to record the calls of rank `rank` of `ranks`. `lengths` has the length of each
    /// window on every rank.
    pub fn of(rank: u32, ranks: u32, lengths: Vec<Vec<usize>>) -> Self {
        let shared = Shared {
            id: NEXT.fetch_sub(1, Ordering::Relaxed),
            rank,
            ranks,
            lengths,
            observed: Cell::new(false),
            open: RefCell::default(),
            epochs: RefCell::default(),
            turns: Cell::new(0),
            calls: Cell::new(0),
        };
        Self { shared: Rc::new(shared) }
    }

    /// Returns a recorder for the superstep's window number `index`.
    pub fn window<T: Element>(&self, index: usize) -> Recorder<T> {
        let calls = Calls { shared: self.shared.clone(), window: WindowId::new(index) };
        Recorder { calls, element: PhantomData }
    }

    /// Notes that the pattern has made a query whose answer differs, or may differ, between ranks.
    pub fn observe(&self) {
        self.shared.observed.set(true);
    }

    /// Returns the epochs, and whether the pattern has made a query whose answer differs, or may
    /// differ, between ranks.
    ///
    /// If the superstep has no `fences` of its own, it ends in a fence of all its `windows`.
    ///
    /// # Errors
    /// `RMA_SYNC` if operations are left that no fence ends.
    pub fn finish(self, windows: usize, fences: bool) -> Result<(Vec<RecordedEpoch>, bool)> {
        let shared = &self.shared;
        if !fences {
            shared.end((0..windows).map(WindowId::new).collect());
        }
        if let Some(left) = shared.open.borrow().first() {
            let message = format!("the operation at {} comes after the last fence of its window", left.site);
            return Err(Error::new(ErrorClass::RmaSync, message).on_rank(shared.rank as usize));
        }
        Ok((shared.epochs.take(), shared.observed.get()))
    }
}

/// Adds one to a count that is less than `most`. Returns whether it was less.
fn count(so_far: &Cell<u32>, most: u32) -> bool {
    let more = so_far.get() < most;
    so_far.set(so_far.get() + u32::from(more));
    more
}

impl Shared {
    /// Counts one more operation or fence.
    fn call(&self, site: Site) -> Result<()> {
        if count(&self.calls, PATTERN_CALLS_MAX) {
            return Ok(());
        }
        let message = format!(
            "the pattern has more than the {PATTERN_CALLS_MAX} operations and fences that it may have: let one datatype name many elements, or call the superstep without preparing it"
        );
        Err(Error::new(ErrorClass::Plan, message).on_rank(self.rank as usize).at(site))
    }

    fn end(&self, windows: Vec<WindowId>) {
        let (ended, open) =
            self.open.take().into_iter().partition(|operation| windows.contains(&operation.window));
        *self.open.borrow_mut() = open;
        let ended: Vec<pattern::Operation> = ended;
        let operations: Table<_, _> = ended.into_iter().collect();
        self.epochs.borrow_mut().push(RecordedEpoch { windows, pattern: Pattern { operations } });
    }
}

/// Takes the place of a [`Window`](crate::Window) in a superstep's pattern: its calls become part
/// of the pattern.
///
/// A recorder has no elements. Target regions are checked against the lengths of windows only if
/// these lengths are known.
#[derive(Debug)]
pub struct Recorder<T> {
    calls: Calls,
    element: PhantomData<fn(T)>,
}

/// The calls on one window of a recording.
#[derive(Debug)]
struct Calls {
    shared: Rc<Shared>,
    window: WindowId,
}

impl<T: Element> Recorder<T> {
    /// Returns the rank whose calls are recorded.
    pub fn rank(&self) -> usize {
        self.calls.shared.observed.set(true);
        self.calls.shared.rank as usize
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.calls.shared.ranks as usize
    }

    /// Returns the number of elements of this rank's part.
    ///
    /// # Errors
    /// `ARG` if the length is not known: a superstep that is compiled ahead of time has no windows.
    #[track_caller]
    pub fn length(&self) -> Result<usize> {
        let (own, site) = (self.calls.shared.rank as usize, Location::caller());
        let length = self.calls.lengths().and_then(|lengths| lengths.get(own)).copied();
        self.calls.shared.observed.set(true);
        length.ok_or_else(|| self.unknown_length(site))
    }

    /// Returns the number of elements of `rank`'s part.
    ///
    /// # Errors
    /// As [`length`](Self::length).
    #[track_caller]
    pub fn length_of(&self, rank: usize) -> Result<Option<usize>> {
        self.calls.shared.observed.set(true);
        let site = Location::caller();
        let lengths = self.calls.lengths().ok_or_else(|| self.unknown_length(site))?;
        Ok(lengths.get(rank).copied())
    }

    fn unknown_length(&self, site: Site) -> Error {
        let message = "where operations go depends on a window's length, which is not known ahead of time: pass the length as an argument of the superstep";
        Error::new(ErrorClass::Arg, message).on_rank(self.calls.shared.rank as usize).at(site)
    }

    /// Names elements of this window, as [`Window::section`](crate::Window::section) does.
    pub fn section(&self, elements: impl Into<Datatype>) -> WindowSection<T> {
        WindowSection::new(
            WindowKey { world: self.calls.shared.id, window: self.calls.window.0 },
            elements.into(),
        )
    }

    /// Records a put, as [`Window::put`](crate::Window::put) collects one.
    pub fn put<S: Source<T>>(&self, source: S) -> Put<'_, Self, S> {
        Put::new(self, source)
    }

    /// Records an accumulate, as [`Window::accumulate`](crate::Window::accumulate) collects one.
    pub fn accumulate<S: Source<T>>(&self, source: S, op: Op) -> Put<'_, Self, S> {
        Put::accumulate(self, source, op)
    }

    /// Records a get, as [`Window::get`](crate::Window::get) collects one.
    pub fn get<S: Section<T>>(&self, into: S) -> Get<'_, Self, S> {
        Get::new(self, into)
    }

    /// Records a get into a ticket, as [`Window::fetch`](crate::Window::fetch) collects one; the
    /// ticket is never filled.
    ///
    /// # Errors
    /// As [`Window::fetch`](crate::Window::fetch).
    #[track_caller]
    pub fn fetch(
        &self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<Ticket<T>> {
        let site = Location::caller();
        let remote = region.into().datatype(1);
        let ticket = Ticket::new(Slot::default(), remote.size(), site);
        self.calls.record((Kind::Get, target.into(), remote), Local::Buffer, Mode::Auto, site)?;
        Ok(ticket)
    }

    /// Records a fence of this window and of `others`. The fence ends the epoch of these windows.
    ///
    /// # Errors
    /// `RMA_SYNC` if an operation of the epoch has a section of a window that is not in the fence.
    #[track_caller]
    pub fn fence_with_others(&self, others: &[WindowId]) -> Result<()> {
        let mut windows = vec![self.calls.window];
        windows.extend_from_slice(others);
        let open = self.calls.shared.open.borrow();
        let outside = open.iter().filter(|operation| windows.contains(&operation.window)).find(
            |operation| matches!(&operation.local, Local::Section { window, .. } if !windows.contains(window)),
        );
        if let Some(operation) = outside {
            let message = format!(
                "the section in the call at {} is of a window that is not in the fence",
                operation.site
            );
            return Err(Error::new(ErrorClass::RmaSync, message)
                .on_rank(self.calls.shared.rank as usize)
                .at(Location::caller()));
        }
        drop(open);
        self.calls.shared.call(Location::caller())?;
        self.calls.shared.end(windows);
        Ok(())
    }

    /// Counts one more turn of a loop of the pattern. The number of turns is limited, because the
    /// condition that ends the loop may depend on elements, which a pattern does not have.
    ///
    /// # Errors
    /// `PLAN` after [`PATTERN_TURNS_MAX`] turns of all loops together.
    #[doc(hidden)]
    #[track_caller]
    pub fn turn(&self) -> Result<()> {
        if count(&self.calls.shared.turns, PATTERN_TURNS_MAX) {
            return Ok(());
        }
        let message = format!(
            "the pattern's loops have not ended after {PATTERN_TURNS_MAX} turns, and a pattern may make no more: let what ends this loop follow from the arguments, or call the superstep without preparing it"
        );
        Err(Error::new(ErrorClass::Plan, message)
            .on_rank(self.calls.shared.rank as usize)
            .at(Location::caller()))
    }

    /// Returns which window of the superstep this recorder represents.
    pub fn id(&self) -> WindowId {
        self.calls.window
    }
}

/// The parts of a call that do not depend on the type of elements.
impl Calls {
    fn lengths(&self) -> Option<&Vec<usize>> {
        self.shared.lengths.get(self.window.index())
    }

    fn record(
        &self,
        (kind, target, remote): (Kind, Option<usize>, Datatype),
        local: Local,
        mode: Mode,
        site: Site,
    ) -> Result<()> {
        let shared = &self.shared;
        shared.call(site)?;
        let error =
            |class, message: String| Err(Error::new(class, message).on_rank(shared.rank as usize).at(site));
        if let Some(target) = target {
            if target >= shared.ranks as usize {
                let message = format!(
                    "target rank {target} is not one of {} ranks (0 to {})",
                    shared.ranks,
                    shared.ranks - 1
                );
                return error(ErrorClass::Rank, message);
            }
            if let Some(&len) = self.lengths().and_then(|lengths| lengths.get(target)) {
                within(&remote, target, len).or_else(|(class, message)| error(class, message))?;
            }
        }
        let target = target.map(|target| Delta::between(Rank(shared.rank), Rank(target as u32)));
        let site = pattern::Site { file: Arc::from(site.file()), line: site.line(), column: site.column() };
        let operation = pattern::Operation { kind, window: self.window, target, remote, local, mode, site };
        shared.open.borrow_mut().push(operation);
        Ok(())
    }

    fn sizes(&self, given: usize, asked: usize, site: Site) -> Result<()> {
        let error = |(class, message)| Error::new(class, message).on_rank(self.shared.rank as usize).at(site);
        sizes(given, asked).map_err(error)
    }

    /// Returns a section of `window`, or of this recorder's window if `window` is `None`.
    ///
    /// # Errors
    /// `WIN` if `window` is not a window of this recording.
    fn section_of(&self, window: Option<WindowKey>, datatype: Datatype, site: Site) -> Result<Local> {
        let window = match window {
            None => self.window,
            Some(key) if key.world == self.shared.id => WindowId(key.window),
            Some(_) => {
                let message = "the section was made outside this superstep, whose plan has only sections that the superstep makes of its own windows: pass the elements as an argument, and make the section inside (`v.section(elements)`)";
                return Err(Error::new(ErrorClass::Win, message).on_rank(self.shared.rank as usize).at(site));
            }
        };
        Ok(Local::Section { window, datatype })
    }

    /// Records a put or an accumulate of elements of this type.
    fn sent(
        &self,
        element: ElementType,
        source: SourceData<'_, u8>,
        Operation { kind, target, region, mode, site }: Operation,
    ) -> Result<()> {
        if let Kind::Accumulate(op) = kind
            && !op.takes(element)
        {
            let message = op.undefined_for(element);
            return Err(Error::new(ErrorClass::Op, message).on_rank(self.shared.rank as usize).at(site));
        }
        let (local, count) = match source {
            SourceData::Slice(bytes) => (Local::Buffer, bytes.len() / element.size as usize),
            SourceData::Part(_, elements) => (Local::Buffer, elements.size()),
            SourceData::Section(window, datatype) => {
                let count = datatype.size();
                (self.section_of(window, datatype.into_owned(), site)?, count)
            }
        };
        let remote = region.datatype(count);
        self.sizes(count, remote.size(), site)?;
        self.record((kind, target, remote), local, mode, site)
    }

    /// Records a get into a section.
    fn got(
        &self,
        (window, datatype): (Option<WindowKey>, Datatype),
        Operation { kind, target, region, mode, site }: Operation,
    ) -> Result<()> {
        let remote = region.datatype(datatype.size());
        self.sizes(datatype.size(), remote.size(), site)?;
        let local = self.section_of(window, datatype, site)?;
        self.record((kind, target, remote), local, mode, site)
    }
}

impl<T: Element> Collect<T> for Recorder<T> {
    fn send(&self, source: SourceData<'_, T>, operation: Operation) -> Result<()> {
        self.calls.sent(element_type::<T>(), source.bytes(), operation)
    }

    fn get(&self, into: (Option<WindowKey>, Datatype), operation: Operation) -> Result<()> {
        self.calls.got(into, operation)
    }
}
