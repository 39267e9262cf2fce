//! [`Access`]: operations on the windows of some ranks.

use crate::api::exposed::Exposed;
use crate::api::group::Group;
use crate::check::exposures;
use crate::collect::limits::most_operations;
use crate::collect::operation::{
    Collect, One, Operation, Put, Site, SliceSource, SourceData, TargetRegion, WindowKey,
};
use crate::collect::outbox::{DISPLACEMENTS, DatatypeOperation, DatatypeSource, Head, code_of};
use crate::collect::ticket::{Slot, Ticket};
use crate::kernel::element::{Element, element_type};
use crate::posts;
use crate::posts::state::batch::Collected;
use crate::posts::state::exchange::Opened;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::Endpoint;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

/// An access to the windows of some ranks, which [`complete`](Self::complete) carries out.
///
/// An access borrows none of the window's own elements: puts read their source at the call, and
/// gets store their elements in tickets. An access may overlap with exposures of this rank and with
/// accesses to other ranks. All of these may begin and end in any order.
///
/// An access that is dropped is not carried out. The wait of each of its targets fails with
/// `RMA_SYNC` and names the line of the access's start. The tickets of the access fail in the same
/// way. An access that is leaked stays open: its targets wait for it, and their waits are reported
/// as stalls.
///
/// # Source
/// MPI 4.1, section 12.5.2 (MPI_WIN_START, MPI_WIN_COMPLETE).
#[must_use = "an access that is dropped fails the waits of its targets: `complete` it"]
pub struct Access<T: Element> {
    core: Rc<WindowCore>,
    /// `None` once the access has ended.
    opened: RefCell<Option<Box<Opened>>>,
    element: PhantomData<fn(T)>,
}

impl<T: Element> Window<T> {
    /// Opens an access to the windows of the ranks `targets`. The call never waits.
    ///
    /// Each of these ranks [posts](Self::post) its window to this rank, before or after this call.
    /// The n-th start on this rank that names a target is matched with the n-th post of that target
    /// that names this rank.
    ///
    /// Until the access has ended, no operations can be collected for a fence of the window, and no
    /// other access to any of the access's targets can be started. Otherwise the result would
    /// depend on the order of two lines of the program.
    ///
    /// # Errors
    /// `ARG` for a group of another world. `RMA_SYNC` if operations on the window wait for its
    /// fence, if an access to one of these ranks is open, or if the window takes part in a prepared
    /// superstep that is running. `PROC_FAILED` if the world has ended.
    ///
    /// # Source
    /// MPI 4.1, section 12.5.2 (MPI_WIN_START).
    #[doc(alias = "MPI_Win_start")]
    #[track_caller]
    pub fn start(&self, targets: &Group) -> Result<Access<T>> {
        started(self, targets, Location::caller())
    }

    /// Names elements of this rank's part as a source that is read at the call:
    /// `access.put(u.packed(&column)).to(1, 0)?`.
    pub fn packed(&self, elements: impl Into<Datatype>) -> (&[T], Datatype) {
        (self, elements.into())
    }
}

impl<T: Element, L> Exposed<T, L> {
    /// Opens an access as [`Window::start`] does, while this rank's own part is exposed.
    ///
    /// # Errors
    /// As [`Window::start`].
    #[track_caller]
    pub fn start(&self, targets: &Group) -> Result<Access<T>> {
        started(self.window(), targets, Location::caller())
    }
}

pub(super) fn started<T: Element>(window: &Window<T>, targets: &Group, site: Site) -> Result<Access<T>> {
    let core = window.core();
    let opened = targets.of(core, site).and_then(|targets| posts::start(core, targets, site));
    let opened = RefCell::new(Some(core.handler.report(opened)?));
    Ok(Access { core: core.clone(), opened, element: PhantomData })
}

impl<T: Element> Access<T> {
    /// Puts `source` into elements of a target: `access.put(&values).to(target, region)?`.
    ///
    /// The source is read at the call.
    ///
    /// The target's `wait` replaces the elements of the target. [`Put::to`] returns `RMA_SYNC` for
    /// a target that the start did not name.
    #[inline]
    pub fn put<S: SliceSource<T>>(&self, source: S) -> Put<'_, Self, S> {
        Put::new(self, source)
    }

    /// Combines `source` into elements of a target: `access.accumulate([1.0], Op::Sum).to(target,
    /// region)?`.
    ///
    /// A `wait` applies the puts and accumulates in ascending order of their sources, then in
    /// program order. So floating-point sums have the same result in every run and transport.
    #[inline]
    pub fn accumulate<S: SliceSource<T>>(&self, source: S, op: Op) -> Put<'_, Self, S> {
        Put::accumulate(self, source, op)
    }

    /// Gets elements of a target into a ticket. `region` is a range, a datatype, or the
    /// displacement of a single element.
    ///
    /// Once [`complete`](Self::complete) has returned, the ticket holds the elements that the
    /// target's window held at its post.
    ///
    /// # Errors
    /// As [`Put::to`], and `RMA_SYNC` for a target that the start did not name.
    #[track_caller]
    pub fn fetch(
        &self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<Ticket<T>> {
        let fetched = self.fetched(target.into(), region.into(), Location::caller());
        self.core.handler.report(fetched)
    }

    /// Ends the access, and carries it out.
    ///
    /// When the call returns, the tickets of gets hold their elements. Puts and accumulates are
    /// applied when their targets wait.
    ///
    /// The call waits for the post of each target that the access gets from. For each other target,
    /// the call waits only until the previous post has come: the one before the post that this
    /// access matches. So at most one access is queued at a target.
    ///
    /// # Errors
    /// - `DISP` or `ASSERT`, with the line of the post, if an operation of the access was not
    ///   allowed by the post of its target. That target does not apply operations of any source.
    ///   The operations of the access on other targets are carried out. If the post has not come
    ///   yet, the next `complete` of an access to that target reports the error, and nevertheless
    ///   carries out its own access.
    /// - `NO_MEM` if there is no memory for the requested elements.
    /// - `SIZE` if the gets from a target whose memory is not reached exceed both 256 times the
    ///   size of the target's part and 16 MiB.
    /// - `PROC_FAILED` if an awaited target has left or died, or the world has ended.
    /// - `RMA_SYNC` if the call would wait for a post of this rank. No other rank can make that
    ///   post, so the call is refused at once, and the world ends.
    ///
    /// # Cost
    /// A message for each target, which contains the elements. If memory is reached, the target
    /// instead reads the elements from the memory in which they were collected, and gets read the
    /// target's memory in place. Otherwise gets take a message in each direction.
    ///
    /// # Source
    /// MPI 4.1, section 12.5.2 (MPI_WIN_COMPLETE).
    #[doc(alias = "MPI_Win_complete")]
    #[track_caller]
    pub fn complete(self) -> Result<()> {
        self.core.handler.report(self.end(&Call::named(0, "Access::complete")))
    }

    /// Ends the access as a part of `call`, which reports the error.
    pub(super) fn end(&self, call: &Call) -> Result<()> {
        let opened = self.opened.borrow_mut().take();
        opened.map_or(Ok(()), |opened| posts::complete(&self.core, opened, call))
    }

    /// Returns a rank that [`end`](Self::end) would wait for, or `None` if `end` would not wait.
    pub(super) fn awaits(&self, endpoint: &mut Endpoint) -> Option<usize> {
        let opened = self.opened.borrow();
        opened.as_ref().and_then(|opened| posts::awaited_target(&self.core, endpoint, opened))
    }

    pub(super) fn core(&self) -> &WindowCore {
        &self.core
    }

    pub(super) fn fetched(
        &self,
        target: Option<usize>,
        region: TargetRegion,
        site: Site,
    ) -> Result<Ticket<T>> {
        let core = &*self.core;
        core.world.alive()?;
        let remote = region.clone().datatype(1);
        let (slot, len) = (Slot::default(), remote.size());
        let Some(target) = target else {
            core.fill_unwritten(&slot, len, site)?;
            return Ok(Ticket::new(slot, len, site));
        };
        let remote = core.region(target, region, len, site)?;
        let opened = &mut *self.opened.borrow_mut();
        let batch = batch(opened, core, target, site)?;
        if len > 0 {
            exposures::may_call(core, batch, (Kind::Get, target, &remote), site)?;
            batch.get(remote, slot.clone(), site);
        }
        Ok(Ticket::new(slot, len, site))
    }

    fn sent(&self, source: SourceData<'_, u8>, operation: Operation) -> Result<()> {
        let (core, site) = (&*self.core, operation.site);
        let bytes = match source {
            SourceData::Slice(bytes) => bytes,
            SourceData::Part(bytes, elements) => {
                let packed = core.packed(bytes, &elements, site)?;
                let sent = self.sent(SourceData::Slice(&packed), operation);
                core.filling.packed.set(packed);
                return sent;
            }
            SourceData::Section(..) => {
                let message =
                    "an access reads no sections: give it a slice, or `packed` elements of a window";
                return Err(core.error(ErrorClass::Arg, message.into(), site));
            }
        };
        core.world.alive()?;
        let Operation { kind, target, region, .. } = operation;
        let Some(target) = target else { return Ok(()) };
        core.has_operator(kind, site)?;
        let count = bytes.len() / size_of::<T>();
        let remote = core.region(target, region, count, site)?;
        let opened = &mut *self.opened.borrow_mut();
        let batch = batch(opened, core, target, site)?;
        if count == 0 {
            return Ok(());
        }
        if batch.outbox.records.len() >= most_operations() {
            let message = format!(
                "an access has {} operations for rank {target}, more than a message can count: complete it first",
                most_operations()
            );
            return Err(core.error(ErrorClass::Size, message, site));
        }
        exposures::may_call(core, batch, (kind, target, &remote), site)?;
        let single =
            remote.as_run().filter(|run| count == 1 && bytes.len() <= 8 && run.start < DISPLACEMENTS as i64);
        if let Some(run) = single {
            batch.outbox.push(Head::new(run.start as u64, code_of(kind), site), bits(bytes));
        } else {
            let source = DatatypeSource::Bytes(batch.outbox.keep(bytes));
            let operation = DatatypeOperation { code: code_of(kind), remote, source, mode: Mode::Auto };
            batch.outbox.push_datatype(operation, site);
        }
        batch.line(site);
        Ok(())
    }
}

/// Returns these bytes, at most eight, as the value of a record.
#[inline(always)]
fn bits(bytes: &[u8]) -> u64 {
    let mut bits = [0u8; 8];
    bits[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(bits)
}

/// Returns the operations that are collected for `target`.
fn batch<'o>(
    opened: &'o mut Option<Box<Opened>>,
    core: &WindowCore,
    target: usize,
    site: Site,
) -> Result<&'o mut Collected> {
    opened.as_mut().and_then(|opened| opened.batch(target)).ok_or_else(|| {
        let message = format!("rank {target} is not one of the targets that the start of this access named");
        core.error(ErrorClass::RmaSync, message, site)
    })
}

impl<T: Element> Collect<T> for Access<T> {
    fn send(&self, source: SourceData<'_, T>, operation: Operation) -> Result<()> {
        self.core.handler.report(self.sent(source.bytes(), operation))
    }

    #[inline]
    fn send_one(&self, value: T, One { kind, target, at, site }: One) -> bool {
        let takes = match kind {
            Kind::Put => true,
            Kind::Accumulate(op) => op.takes(element_type::<T>()),
            Kind::Get => false,
        };
        let opened = &mut *self.opened.borrow_mut();
        let Some(batch) = opened.as_mut().and_then(|opened| opened.batch(target)) else { return false };
        let below = self.core.peers[target].len.min(DISPLACEMENTS as usize);
        let open = self.core.world.alive().is_ok()
            && !self.core.world.checks.is_on()
            && batch.outbox.records.len() < most_operations();
        if size_of::<T>() > 8 || !takes || at >= below || !open {
            return false;
        }
        batch.outbox.push(Head::new(at as u64, code_of(kind), site), bits(bytemuck::bytes_of(&value)));
        batch.line(site);
        true
    }

    fn get(&self, _: (Option<WindowKey>, Datatype), operation: Operation) -> Result<()> {
        let message = "an access gets into tickets only: `fetch`";
        Err(self.core.error(ErrorClass::Arg, message.into(), operation.site))
    }
}

impl<T: Element> Access<T> {
    /// Ends the access, if it is open, without carrying it out.
    pub(super) fn give_up(&self) {
        let opened = self.opened.borrow_mut().take();
        if let Some(mut opened) = opened {
            posts::drop_access(&self.core, &mut opened);
        }
    }
}

impl<T: Element> Drop for Access<T> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<T: Element> fmt::Debug for Access<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opened = self.opened.borrow();
        let targets = opened.iter().flat_map(|opened| &opened.batches).map(|batch| batch.target);
        f.debug_struct("Access").field("targets", &targets.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
