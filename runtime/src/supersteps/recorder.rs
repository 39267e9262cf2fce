//! [`Recorder`]: stands in a window's place where a superstep is described instead of run.

use crate::collect::operation::{
    Collect, Get, Put, Section, Source, SourceData, TargetRegion, WindowKey, WindowSection,
};
use crate::collect::ticket::{Slot, Ticket};
use crate::kernel::element::{Element, element_type};
use crate::state::bounds::{sizes, within};
use crate::state::supersteps::RecordedEpoch;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_planner::ids::{Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use fencepost_planner::table::Table;
use fencepost_planner::{Error, ErrorClass, Result};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number that the next recording has in the place of a world's: downwards, so that no world ever has one.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);

/// One rank's calls of one superstep, being recorded: its recorders share it.
#[derive(Debug)]
pub struct Recording {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The number that its sections have in the place of a world's: a section of a world, or of another recording, is
    /// not a section of this one.
    id: u64,
    rank: u32,
    ranks: u32,
    /// Of each window, the length on every rank, where known.
    lengths: Vec<Vec<usize>>,
    /// Whether anything was asked that tells ranks apart.
    observed: Cell<bool>,
    /// Operations since the last fence of their window.
    open: RefCell<Vec<Operation>>,
    epochs: RefCell<Vec<RecordedEpoch>>,
    /// How often a loop of the pattern has begun its body.
    turns: Cell<u32>,
    /// Operations and fences so far.
    calls: Cell<u32>,
}

/// How many turns the loops of one rank's pattern may make, all together.
pub const PATTERN_TURNS_MAX: u32 = 1 << 24;
/// How many operations and fences one rank's pattern may have.
pub const PATTERN_CALLS_MAX: u32 = 1 << 20;

impl Recording {
    /// The calls of rank `rank` of `ranks`, where windows' lengths are not known.
    pub fn new(rank: u32, ranks: u32) -> Self {
        Self::of(rank, ranks, Vec::new())
    }

    /// The calls of rank `rank` of `ranks`; `lengths` are those of each window on every rank.
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

    /// A recorder for the superstep's window number `index`.
    pub fn window<T: Element>(&self, index: usize) -> Recorder<T> {
        let calls = Calls { shared: self.shared.clone(), window: WindowId::new(index) };
        Recorder { calls, element: PhantomData }
    }

    /// Notes that something was asked that tells ranks apart, or may.
    pub fn observe(&self) {
        self.shared.observed.set(true);
    }

    /// The epochs, and whether anything was asked that tells ranks apart. A superstep without a fence ends in one of all
    /// its `windows`.
    ///
    /// # Errors
    /// `RMA_SYNC` where operations are left that no fence ends.
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

/// Count one more of what may be `most` at most; whether it may.
fn count(so_far: &Cell<u32>, most: u32) -> bool {
    let more = so_far.get() < most;
    so_far.set(so_far.get() + u32::from(more));
    more
}

impl Shared {
    /// One more operation or fence.
    fn call(&self, site: &'static Location<'static>) -> Result<()> {
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
        let ended: Vec<Operation> = ended;
        let operations: Table<_, _> = ended.into_iter().collect();
        self.epochs.borrow_mut().push(RecordedEpoch { windows, pattern: Pattern { operations } });
    }
}

/// What a superstep's pattern calls in the place of a [`Window`](crate::Window): calls become part of the pattern.
///
/// It has no elements. Where windows' lengths are not known, places are not checked against them.
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
    /// The rank whose calls are recorded.
    pub fn rank(&self) -> usize {
        self.calls.shared.observed.set(true);
        self.calls.shared.rank as usize
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.calls.shared.ranks as usize
    }

    /// How many elements this rank's part has.
    ///
    /// # Errors
    /// `ARG` where that is not known: ahead of time a superstep has no windows.
    #[track_caller]
    pub fn length(&self) -> Result<usize> {
        let (own, site) = (self.calls.shared.rank as usize, Location::caller());
        let length = self.calls.lengths().and_then(|lengths| lengths.get(own)).copied();
        self.calls.shared.observed.set(true);
        length.ok_or_else(|| self.unknown_length(site))
    }

    /// How many elements `rank`'s part has.
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

    fn unknown_length(&self, site: &'static Location<'static>) -> Error {
        let message = "where operations go depends on a window's length, which is not known ahead of time: pass the length as an argument of the superstep";
        Error::new(ErrorClass::Arg, message).on_rank(self.calls.shared.rank as usize).at(site)
    }

    /// As [`Window::section`](crate::Window::section).
    pub fn section(&self, elements: impl Into<Datatype>) -> WindowSection<T> {
        WindowSection::new(
            WindowKey { world: self.calls.shared.id, window: self.calls.window.0 },
            elements.into(),
        )
    }

    /// As [`Window::put`](crate::Window::put).
    pub fn put<S: Source<T>>(&self, source: S) -> Put<'_, Self, S> {
        Put::new(self, source)
    }

    /// As [`Window::accumulate`](crate::Window::accumulate).
    pub fn accumulate<S: Source<T>>(&self, source: S, op: Op) -> Put<'_, Self, S> {
        Put::accumulate(self, source, op)
    }

    /// As [`Window::get`](crate::Window::get).
    pub fn get<S: Section<T>>(&self, into: S) -> Get<'_, Self, S> {
        Get::new(self, into)
    }

    /// As [`Window::fetch`](crate::Window::fetch); the ticket is never filled.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn fetch(
        &self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<Ticket<T>> {
        let site = Location::caller();
        let remote = region.into().datatype(1);
        let ticket = Ticket::new(Slot::default(), remote.size(), site);
        self.calls.record(Kind::Get, target.into(), remote, Local::Buffer, Mode::Auto, site)?;
        Ok(ticket)
    }

    /// A fence of this window and of `others`: ends their epoch.
    ///
    /// # Errors
    /// `RMA_SYNC` for a section of a window that is not in the fence.
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

    /// A loop of the pattern begins its body. Counted, since what ends the loop in the body may be a check of elements,
    /// which a pattern does not have.
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

    /// Which window of the superstep it stands for.
    pub fn id(&self) -> WindowId {
        self.calls.window
    }
}

/// What of a call does not depend on the type of elements.
impl Calls {
    fn lengths(&self) -> Option<&Vec<usize>> {
        self.shared.lengths.get(self.window.index())
    }

    fn record(
        &self,
        kind: Kind,
        target: Option<usize>,
        remote: Datatype,
        local: Local,
        mode: Mode,
        site: &'static Location<'static>,
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
        let site = Site { file: Arc::from(site.file()), line: site.line(), column: site.column() };
        let operation = Operation { kind, window: self.window, target, remote, local, mode, site };
        shared.open.borrow_mut().push(operation);
        Ok(())
    }

    fn sizes(&self, given: usize, asked: usize, site: &'static Location<'static>) -> Result<()> {
        let error = |(class, message)| Error::new(class, message).on_rank(self.shared.rank as usize).at(site);
        sizes(given, asked).map_err(error)
    }

    /// A section of this recorder's window, or of another's of the same recording.
    ///
    /// # Errors
    /// `WIN` for a section of any other window: it has no place among those of the superstep.
    fn section_of(
        &self,
        window: Option<WindowKey>,
        datatype: Datatype,
        site: &'static Location<'static>,
    ) -> Result<Local> {
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

    /// A put or an accumulate of such elements.
    #[expect(clippy::too_many_arguments, reason = "one call, taken apart by the caller")]
    fn sent(
        &self,
        kind: Kind,
        element: ElementType,
        source: SourceData<'_, u8>,
        target: Option<usize>,
        region: TargetRegion,
        mode: Mode,
        site: &'static Location<'static>,
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
        self.record(kind, target, remote, local, mode, site)
    }

    /// A get into a section.
    fn got(
        &self,
        into: (Option<WindowKey>, Datatype),
        target: Option<usize>,
        region: TargetRegion,
        mode: Mode,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let (window, datatype) = into;
        let remote = region.datatype(datatype.size());
        self.sizes(datatype.size(), remote.size(), site)?;
        let local = self.section_of(window, datatype, site)?;
        self.record(Kind::Get, target, remote, local, mode, site)
    }
}

impl<T: Element> Collect<T> for Recorder<T> {
    fn send(
        &self,
        kind: Kind,
        source: SourceData<'_, T>,
        target: Option<usize>,
        region: TargetRegion,
        mode: Mode,
        site: &'static Location<'static>,
    ) -> Result<()> {
        self.calls.sent(kind, element_type::<T>(), source.bytes(), target, region, mode, site)
    }

    fn get(
        &self,
        into: (Option<WindowKey>, Datatype),
        target: Option<usize>,
        region: TargetRegion,
        mode: Mode,
        site: &'static Location<'static>,
    ) -> Result<()> {
        self.calls.got(into, target, region, mode, site)
    }
}
