//! [`Locked`]: the operations of an epoch of a lock.

use crate::collect::operation::{Source, SourceData, TargetRegion};
use crate::collect::ticket::{Slot, Ticket};
use crate::collect::visits::Action;
use crate::kernel::element::{Element, element_type};
use crate::kernel::pack;
use crate::locks::LockCore;
use crate::protocol::bounds::in_slice;
use fencepost_planner::element::Op;
use fencepost_planner::{ErrorClass, Result};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

/// The operations on the locked part of one rank.
///
/// Operations are collected in program order, and sources are copied at the call. Nothing is
/// visible to others before the epoch ends or is flushed, and tickets are empty until then.
pub struct Locked<'w, T: Element> {
    pub(super) core: &'w Rc<LockCore>,
    pub(super) target: usize,
    element: PhantomData<T>,
}

impl<'w, T: Element> Locked<'w, T> {
    pub(super) fn new(core: &'w Rc<LockCore>, target: usize) -> Self {
        Self { core, target, element: PhantomData }
    }

    /// Returns the rank whose part is locked.
    pub fn target(&self) -> usize {
        self.target
    }

    /// Puts elements into the part. `lock.put(&values, 3)?` puts them from displacement 3 on. The
    /// region may also be a range or a datatype.
    ///
    /// # Errors
    /// - `DISP` for elements outside the part, or outside the slice if the source is a part of a
    ///   slice.
    /// - `SIZE` for lengths that do not match.
    /// - `ARG` for a source that is a section of a window. Read the section by
    ///   [`LockWindow::local`](crate::LockWindow::local) or by a get instead.
    /// - `NO_MEM` if there is no memory to keep the elements.
    ///
    /// After an error the operation is not part of the epoch. The same holds for the other methods
    /// that collect an operation.
    #[track_caller]
    #[inline(always)]
    pub fn put<S: Source<T>>(&self, source: S, region: impl Into<TargetRegion>) -> Result<()> {
        self.send(Action::Put, source, region.into(), Location::caller())
    }

    /// Combines elements into the part.
    ///
    /// # Errors
    /// As [`put`](Self::put); also `OP` for an operator that the element type does not have.
    #[track_caller]
    #[inline(always)]
    pub fn accumulate<S: Source<T>>(&self, source: S, op: Op, region: impl Into<TargetRegion>) -> Result<()> {
        self.send(Action::Accumulate(op), source, region.into(), Location::caller())
    }

    /// Gets elements of the part. `region` is a range, a datatype, or the displacement of a single
    /// element.
    ///
    /// The get sees the results of earlier operations of this epoch.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[track_caller]
    pub fn get(&self, region: impl Into<TargetRegion>) -> Result<Ticket<T>> {
        let (data, site) = (&self.core.data, Location::caller());
        let remote = region.into().datatype(1);
        let got = data
            .check(self.target, &remote, site)
            .and_then(|()| self.core.visit(self.target, Action::Get, &remote, [&[], &[]], site));
        data.handler.report(got).map(|slot| Ticket::new(slot, remote.size(), site))
    }

    /// Combines elements into the part, and gets their previous values.
    ///
    /// With `Op::NoOp` the part stays unchanged, and only the number of elements of the source
    /// matters.
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    #[doc(alias = "MPI_Get_accumulate")]
    #[track_caller]
    pub fn get_accumulate<S: Source<T>>(
        &self,
        source: S,
        op: Op,
        region: impl Into<TargetRegion>,
    ) -> Result<Ticket<T>> {
        self.fetch(op, source, region.into(), Location::caller())
    }

    /// Combines a value into one element, and gets the element's previous value.
    ///
    /// `Op::NoOp` only reads the element, and ignores the value. A program can use it to wait for a
    /// flag that another rank raises by an accumulate: see [`Op::NoOp`].
    ///
    /// # Errors
    /// As [`accumulate`](Self::accumulate).
    #[doc(alias = "MPI_Fetch_and_op")]
    #[track_caller]
    #[inline]
    pub fn fetch_and(&self, op: Op, value: T, at: usize) -> Result<Ticket<T>> {
        self.fetch(op, [value], at.into(), Location::caller())
    }

    /// Replaces one element by `value` if the element has the bits of `expected`, and gets the
    /// element's previous value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[doc(alias = "MPI_Compare_and_swap")]
    #[track_caller]
    pub fn compare_and_swap(&self, expected: T, value: T, at: usize) -> Result<Ticket<T>> {
        let (data, site) = (&self.core.data, Location::caller());
        if size_of::<T>() <= 8 && at < self.core.len(self.target) {
            let operands = [expected, value].map(|value| bits_of(&[value]));
            let slot = self.core.fetch_one(self.target, Action::CompareAndSwap, at, &operands, site);
            return data.handler.report(slot).map(|slot| Ticket::new(slot, 1, site));
        }
        let operands = [bytemuck::bytes_of(&expected), bytemuck::bytes_of(&value)];
        let swapped = data
            .region(self.target, at.into(), 1, site)
            .and_then(|remote| self.core.visit(self.target, Action::CompareAndSwap, &remote, operands, site));
        data.handler.report(swapped).map(|slot| Ticket::new(slot, 1, site))
    }

    /// Carries out the collected operations, and waits until they are done. Tickets then hold their
    /// elements.
    ///
    /// In a shared epoch, the operations so far happen before all later calls of this rank. An
    /// exclusive epoch happens as a whole when it ends. After the first flush that carries
    /// something out, an epoch holds the whole part, so exclusive epochs of other ranks wait until
    /// that epoch ends. A flush without collected operations does nothing, and takes no lock.
    ///
    /// # Errors
    /// As [`Lock::unlock`](crate::Lock::unlock). After an error, the collected operations are
    /// discarded. After `RMA_SYNC`, the epoch continues.
    #[doc(alias = "MPI_Win_flush")]
    #[track_caller]
    #[inline]
    pub fn flush(&self) -> Result<()> {
        if self.core.pass(self.target, false) {
            return Ok(());
        }
        self.core.finish(self.target, false, "Locked::flush")
    }

    /// Waits until the tickets of this epoch hold their elements.
    ///
    /// The call promises no order of operations, although this implementation does the same as
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    #[doc(alias = "MPI_Win_flush_local")]
    #[track_caller]
    pub fn flush_local(&self) -> Result<()> {
        self.core.finish(self.target, false, "Locked::flush_local")
    }

    /// Collects an operation that has a source and returns no elements.
    #[inline(always)]
    fn send<S: Source<T>>(
        &self,
        action: Action,
        source: S,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<()> {
        if let Some((value, at)) = self.one(action, &source, &region) {
            return match self.core.visit_one(self.target, action, at, value, site) {
                true => Ok(()),
                false => self.core.data.handler.report(Err(self.core.no_room(self.target, site))),
            };
        }
        let sent = self.send_wide(action, source.data(), region, site);
        sent.map(drop)
    }

    /// Collects an operation that has a source and returns the previous elements.
    #[inline]
    fn fetch<S: Source<T>>(
        &self,
        op: Op,
        source: S,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<Ticket<T>> {
        let action = Action::Fetch(op);
        if let Some((value, at)) = self.one(action, &source, &region) {
            let slot = self.core.fetch_one(self.target, action, at, &[value], site);
            return self.core.data.handler.report(slot).map(|slot| Ticket::new(slot, 1, site));
        }
        let sent = self.send_wide(action, source.data(), region, site);
        sent.map(|(slot, len)| Ticket::new(slot, len, site))
    }

    /// Returns the bits and the displacement of an operation on one small element. Returns `None`
    /// for any other operation, and for an operation with an error.
    #[inline(always)]
    fn one<S: Source<T>>(&self, action: Action, source: &S, region: &TargetRegion) -> Option<(u64, usize)> {
        let takes = match action {
            Action::Accumulate(op) | Action::Fetch(op) => op.takes(element_type::<T>()),
            _ => true,
        };
        match (source.one(), region) {
            (Some(value), &TargetRegion::At(at)) if takes && at < self.core.len(self.target) => {
                Some((bits_of(&[value]), at))
            }
            _ => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn send_wide(
        &self,
        action: Action,
        source: SourceData<'_, T>,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<(Slot, usize)> {
        self.core.data.handler.report(self.sent(action, source, region, site))
    }

    fn sent(
        &self,
        action: Action,
        source: SourceData<'_, T>,
        region: TargetRegion,
        site: &'static Location<'static>,
    ) -> Result<(Slot, usize)> {
        let data = &self.core.data;
        let undefined = match action {
            Action::Accumulate(op) if !op.takes(data.element) => Some(op),
            Action::Fetch(op) if !op.may_fetch(data.element) => Some(op),
            _ => None,
        };
        if let Some(op) = undefined {
            let message = op.undefined_for(data.element);
            return Err(data.error(ErrorClass::Op, message, site));
        }
        let size = size_of::<T>();
        let mut packed = Vec::new();
        let bytes = match source.bytes() {
            SourceData::Slice(bytes) => bytes,
            SourceData::Part(bytes, elements) => {
                in_slice(&elements, bytes.len() / size)
                    .map_err(|(class, message)| data.error(class, message, site))?;
                let len = elements.size().checked_mul(size);
                let Some(len) = len.filter(|&len| packed.try_reserve_exact(len).is_ok()) else {
                    let message = format!("there is no memory to pack {} elements", elements.size());
                    return Err(data.error(ErrorClass::NoMem, message, site));
                };
                packed.resize(len, 0);
                // SAFETY: the elements are all in the slice, and there is room for them.
                unsafe { pack(bytes.as_ptr(), &elements, size, packed.as_mut_ptr()) };
                &packed
            }
            SourceData::Section(..) => {
                let message = "a section of a window cannot be a source under a lock, since others may change it: give a slice";
                return Err(data.error(ErrorClass::Arg, message.into(), site));
            }
        };
        let count = bytes.len() / size;
        let remote = data.region(self.target, region, count, site)?;
        self.core.may_write(action, self.target, &remote, site)?;
        let given = if action == Action::Fetch(Op::NoOp) { &[] } else { bytes };
        Ok((self.core.visit(self.target, action, &remote, [&[], given], site)?, count))
    }
}

/// Returns the bits of an element, in the first bytes of a word.
#[inline(always)]
fn bits_of<T: Element>(value: &[T; 1]) -> u64 {
    let mut bits = [0; 8];
    bits[..size_of::<T>()].copy_from_slice(bytemuck::cast_slice(value));
    u64::from_ne_bytes(bits)
}
