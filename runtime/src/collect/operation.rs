//! The arguments of a call: sources, target regions, and the method chains that end in an
//! operation.
//!
//! `u.put(source).to(target, region)?` reads the same on a [`Window`](crate::Window), where it is
//! collected for the fence, and on a [`Recorder`](crate::supersteps::recorder::Recorder), where it
//! becomes part of a pattern. Both types implement [`Collect`].

use crate::kernel::element::Element;
use fencepost_planner::Result;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::{Kind, Mode};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::Location;

/// The line of a call.
pub(crate) type Site = &'static Location<'static>;

/// Identifies the window of a section, by the window's number in a world or in a recording. Only
/// windows and recorders make such keys.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowKey {
    /// The world or the recording; unique in the process.
    pub(crate) world: u64,
    /// The number of the window in that world or recording.
    pub(crate) window: u32,
}

/// Elements of a named window, as the source of a put or the destination of a get on another
/// window.
#[derive(Clone, Debug)]
pub struct WindowSection<T> {
    pub(crate) window: WindowKey,
    pub(crate) datatype: Datatype,
    element: PhantomData<fn(T)>,
}

impl<T: Element> WindowSection<T> {
    pub(crate) fn new(window: WindowKey, datatype: Datatype) -> Self {
        Self { window, datatype, element: PhantomData }
    }
}

/// The origin's side of a call.
#[doc(hidden)]
#[derive(Debug)]
pub enum SourceData<'a, T> {
    /// A slice. It is copied at the call, and can be reused at once.
    Slice(&'a [T]),
    /// These elements of a slice, in the order of the datatype. They are packed at the call, and
    /// the slice can be reused at once.
    Part(&'a [T], Datatype),
    /// A section of the window that the call is on (`None`) or of another window. It is read at the
    /// fence.
    Section(Option<WindowKey>, Cow<'a, Datatype>),
}

impl<'a, T: Element> SourceData<'a, T> {
    /// Returns the same source with the bytes of its slice.
    #[inline]
    pub(crate) fn bytes(self) -> SourceData<'a, u8> {
        match self {
            SourceData::Slice(values) => SourceData::Slice(bytemuck::cast_slice(values)),
            SourceData::Part(values, elements) => SourceData::Part(bytemuck::cast_slice(values), elements),
            SourceData::Section(window, elements) => SourceData::Section(window, elements),
        }
    }
}

/// The elements that a put or an accumulate may take.
///
/// Slices, arrays and vectors are copied at the call and may be reused at once. The same holds for
/// a pair of a slice and a range or [`Datatype`] that names elements of it: `u.put((&values,
/// &column))`. A range or a [`Datatype`] alone is a section of the window itself, and
/// `v.section(..)` is a section of another window. Sections are read when the fence is entered.
///
/// ```
/// # use fencepost_planner::datatype::Datatype;
/// # fencepost_runtime::ranks(1).run(|world| {
/// let mut u = world.window::<u32>(3)?;
/// let values = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/// let column = Datatype::nest(1, &[(3, 3)], 1)?; // of three rows of three
/// u.put((&values, &column)).to(0, 0)?;
/// u.fence()?;
/// assert_eq!(u[..], [2, 5, 8]);
/// # Ok(()) }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the source of a put of `{T}`",
    note = "a source is a slice, array or `Vec` of elements (`&values`, `[x]`), a pair of one and a range or `Datatype` that names elements of it, a range or `Datatype` (a section of the window itself), or `other.section(..)`"
)]
pub trait Source<T: Element> {
    /// Returns the elements of the source.
    #[doc(hidden)]
    fn data(&self) -> SourceData<'_, T>;

    /// Returns the value if the source is one small element whose value is already known. Then the
    /// value need not be in memory.
    #[doc(hidden)]
    #[inline]
    fn one(&self) -> Option<T> {
        None
    }

    /// Returns the element if the source is a section of one element of the window that the call is
    /// on, and this is known without further work.
    #[doc(hidden)]
    #[inline]
    fn element(&self) -> Option<usize> {
        None
    }

    /// Returns the window and the element if the source is a section of one element of a named
    /// window, and this is known without further work.
    #[doc(hidden)]
    #[inline]
    fn element_of(&self) -> Option<(WindowKey, usize)> {
        None
    }
}

/// The elements that a put or an accumulate of an [`Access`](crate::Access) may take: all
/// [sources](Source) that are read at the call.
///
/// Sections are excluded, because the access does not hold the memory of its window.
/// [`Window::packed`](crate::Window::packed) names elements of the window that are read at the
/// call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the source of a put of `{T}` in an access",
    note = "an access reads its sources at the call: use a slice, array or `Vec` of elements, a pair of one and a range or `Datatype` that names elements of it, or `window.packed(..)`"
)]
pub trait SliceSource<T: Element>: Source<T> {}
impl<T: Element, V: AsRef<[T]>, D: Clone + Into<Datatype>> SliceSource<T> for (V, D) {}

/// Returns the value in a slice of one element, if the value is small enough for a register.
#[inline(always)]
fn only<T: Copy>(values: &[T]) -> Option<T> {
    match values {
        [value] if size_of::<T>() <= 8 => Some(*value),
        _ => None,
    }
}

macro_rules! slices {
    ($([$($count:ident)?] $ty:ty;)*) => {$(
        impl<T: Element $(, const $count: usize)?> SliceSource<T> for $ty {}
        impl<T: Element $(, const $count: usize)?> Source<T> for $ty {
            #[inline]
            fn data(&self) -> SourceData<'_, T> {
                SourceData::Slice(self.as_ref())
            }
            #[inline(always)]
            fn one(&self) -> Option<T> {
                only(self.as_ref())
            }
        }
    )*};
}
slices! {
    [] &[T];
    [] &mut [T];
    [] &Vec<T>;
    [] Vec<T>;
    [N] [T; N];
    [N] &[T; N];
}

impl<T: Element, V: AsRef<[T]>, D: Clone + Into<Datatype>> Source<T> for (V, D) {
    fn data(&self) -> SourceData<'_, T> {
        SourceData::Part(self.0.as_ref(), self.1.clone().into())
    }
}

/// A section of a window: the destination of a get, or the source of a put.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no elements of a window of `{T}`",
    label = "not a range, a datatype or a section",
    note = "give a range (`0..4`), a `Datatype`, or `v.section(..)` of another window; a single element of a slice is `u[..].get(i)` or `u[i]`"
)]
pub trait Section<T: Element> {
    /// Returns the window and the elements of the section. The window is `None` if the call is on
    /// that window.
    #[doc(hidden)]
    fn section(&self) -> (Option<WindowKey>, Datatype);

    /// Returns the element if the section is one element of the window that the call is on, and
    /// this is known without further work.
    #[doc(hidden)]
    #[inline]
    fn one(&self) -> Option<usize> {
        None
    }
}

macro_rules! sections {
    ($($ty:ty: $to:expr, $one:expr;)*) => {$(
        impl<T: Element> Section<T> for $ty {
            #[inline]
            fn one(&self) -> Option<usize> {
                let one: fn(&$ty) -> Option<usize> = $one;
                one(self)
            }

            fn section(&self) -> (Option<WindowKey>, Datatype) {
                let to: fn(&$ty) -> Datatype = $to;
                (None, to(self))
            }
        }
        impl<T: Element> Source<T> for $ty {
            fn data(&self) -> SourceData<'_, T> {
                let to: fn(&$ty) -> Datatype = $to;
                SourceData::Section(None, Cow::Owned(to(self)))
            }
            #[inline]
            fn element(&self) -> Option<usize> {
                let one: fn(&$ty) -> Option<usize> = $one;
                one(self)
            }
        }
    )*};
}
sections! {
    Range<usize>: |range| Datatype::run(range.clone()), |range| (range.end.wrapping_sub(range.start) == 1).then_some(range.start);
    Datatype: |datatype| datatype.clone(), |_| None;
    &Datatype: |datatype| (*datatype).clone(), |_| None;
}
impl<T: Element> Section<T> for WindowSection<T> {
    fn section(&self) -> (Option<WindowKey>, Datatype) {
        (Some(self.window), self.datatype.clone())
    }
}
impl<T: Element> Source<T> for WindowSection<T> {
    fn data(&self) -> SourceData<'_, T> {
        SourceData::Section(Some(self.window), Cow::Borrowed(&self.datatype))
    }

    #[inline]
    fn element_of(&self) -> Option<(WindowKey, usize)> {
        let run = self.datatype.as_run()?;
        (run.start >= 0 && run.end.wrapping_sub(run.start) == 1).then_some((self.window, run.start as usize))
    }
}

/// The elements of the target's window.
#[derive(Clone, Debug)]
pub enum TargetRegion {
    /// The elements from this displacement on. Their number is the number of elements at the
    /// origin.
    #[doc(hidden)]
    At(usize),
    /// The elements of this run.
    #[doc(hidden)]
    Run(Range<usize>),
    /// The elements of this datatype, in its order.
    #[doc(hidden)]
    Type(Datatype),
}

impl TargetRegion {
    /// Returns the displacement, if the region can be one element.
    #[inline]
    fn one(&self) -> Option<usize> {
        match self {
            TargetRegion::At(at) => Some(*at),
            TargetRegion::Run(run) => (run.end.wrapping_sub(run.start) == 1).then_some(run.start),
            TargetRegion::Type(_) => None,
        }
    }

    /// Returns the region as a datatype, of `count` elements if the region itself does not give
    /// their number.
    #[doc(hidden)]
    pub fn datatype(self, count: usize) -> Datatype {
        match self {
            // The displacement is lowered if the end would overflow. The region is then still out
            // of range for every window.
            TargetRegion::At(at) => {
                let at = at.min(usize::MAX - count);
                Datatype::run(at..at + count)
            }
            TargetRegion::Run(run) => Datatype::run(run),
            TargetRegion::Type(datatype) => datatype,
        }
    }
}

impl From<usize> for TargetRegion {
    #[inline]
    fn from(at: usize) -> Self {
        TargetRegion::At(at)
    }
}
impl From<Range<usize>> for TargetRegion {
    #[inline]
    fn from(run: Range<usize>) -> Self {
        TargetRegion::Run(run)
    }
}
impl From<Datatype> for TargetRegion {
    fn from(datatype: Datatype) -> Self {
        TargetRegion::Type(datatype)
    }
}
impl From<&Datatype> for TargetRegion {
    fn from(datatype: &Datatype) -> Self {
        TargetRegion::Type(datatype.clone())
    }
}

/// A call without the elements of its origin.
#[doc(hidden)]
#[derive(Debug)]
pub struct Operation {
    pub(crate) kind: Kind,
    /// `None` is MPI's PROC_NULL.
    pub(crate) target: Option<usize>,
    pub(crate) region: TargetRegion,
    pub(crate) mode: Mode,
    pub(crate) site: Site,
}

/// A put or an accumulate of one element, without that element.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct One {
    pub(crate) kind: Kind,
    pub(crate) target: usize,
    pub(crate) at: usize,
    pub(crate) site: Site,
}

/// The destination of operations: a window's pending epoch, or a recorder's pattern.
pub trait Collect<T: Element> {
    /// Collects a put or an accumulate.
    #[doc(hidden)]
    fn send(&self, source: SourceData<'_, T>, operation: Operation) -> Result<()>;

    /// Collects a put or an accumulate of one element if the collector has a fast path for it and
    /// finds no error. Returns whether the operation was collected. If not, the call has no effect.
    #[doc(hidden)]
    #[inline]
    fn send_one(&self, value: T, one: One) -> bool {
        let _ = (value, one);
        false
    }

    /// Does the same as [`send_one`](Self::send_one) for the window's own element at `from`.
    #[doc(hidden)]
    #[inline]
    fn send_element(&self, from: usize, one: One) -> bool {
        let _ = (from, one);
        false
    }

    /// Does the same as [`send_one`](Self::send_one) for an element of this rank's part of a named
    /// window.
    #[doc(hidden)]
    #[inline]
    fn send_element_of(&self, from: (WindowKey, usize), one: One) -> bool {
        let _ = (from, one);
        false
    }

    /// Collects a get of one element into an element of the window itself if the collector has a
    /// fast path for it and finds no error. Returns whether the get was collected. If not, the call
    /// has no effect.
    #[doc(hidden)]
    #[inline]
    fn get_one(&self, into: usize, target: usize, at: usize) -> bool {
        let _ = (into, target, at);
        false
    }

    /// Collects a get into a section.
    #[doc(hidden)]
    fn get(&self, into: (Option<WindowKey>, Datatype), operation: Operation) -> Result<()>;
}

/// A put or an accumulate with its source. [`to`](Self::to) makes it an operation.
#[must_use = "a put does nothing until `.to(target, region)`"]
pub struct Put<'c, C, S> {
    collector: &'c C,
    kind: Kind,
    source: S,
    mode: Mode,
}

impl<'c, C, S> Put<'c, C, S> {
    #[inline]
    pub(crate) fn new(collector: &'c C, source: S) -> Self {
        Self { collector, kind: Kind::Put, source, mode: Mode::Auto }
    }

    #[inline]
    pub(crate) fn accumulate(collector: &'c C, source: S, op: Op) -> Self {
        Self { collector, kind: Kind::Accumulate(op), source, mode: Mode::Auto }
    }

    /// Sets the preferred mode of this operation.
    #[inline]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Collects the operation on these elements of the target's window. `None` as the target is
    /// MPI's PROC_NULL.
    ///
    /// # Errors
    /// After an error the operation is not part of the epoch:
    ///
    /// - `RANK` for a target out of range.
    /// - `DISP` for elements outside the target's window or the origin's slice.
    /// - `SIZE` for lengths that do not match.
    /// - `OP` for an operator that the element type does not have.
    /// - `NO_MEM` if there is no memory to pack a part of a slice.
    /// - If conflicts are checked ([`Ranks::check`](crate::Ranks::check)), `RMA_CONFLICT` for a put
    ///   that writes an element twice, and for an operation that conflicts with an earlier one of
    ///   this rank in this epoch or access.
    #[track_caller]
    #[inline(always)]
    pub fn to<T: Element>(
        self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<()>
    where
        C: Collect<T>,
        S: Source<T>,
    {
        let site = Location::caller();
        let Self { collector, kind, source, mode } = self;
        let (target, region) = (target.into(), region.into());
        let one = |target, at| One { kind, target, at, site };
        let at = match &region {
            TargetRegion::At(at) => *at,
            // Here the source and the range have one element each. The slow path finds errors on
            // both sides.
            TargetRegion::Run(run)
                if run.end.wrapping_sub(run.start) == 1
                    && let (Some(from), Some(to)) = (source.element(), target)
                    && mode == Mode::Auto
                    && collector.send_element(from, one(to, run.start)) =>
            {
                return Ok(());
            }
            _ => return slow_path(collector, source, Operation { kind, target, region, mode, site }),
        };
        // A region that is only a displacement owns nothing that has to be dropped. Without a drop,
        // a known value stays in registers. The slow path builds the region again.
        std::mem::forget(region);
        let slow = || Operation { kind, target, region: TargetRegion::At(at), mode, site };
        let Some(value) = source.one() else {
            if let (Some(from), Some(to)) = (source.element(), target)
                && mode == Mode::Auto
                && collector.send_element(from, one(to, at))
            {
                return Ok(());
            }
            return slow_path(collector, source, slow());
        };
        // An operation with a mode of its own may have to be sent at once.
        if let Some(to) = target
            && mode == Mode::Auto
            && collector.send_one(value, one(to, at))
        {
            return Ok(());
        }
        slow_path(collector, [value], slow())
    }
}

/// Collects a put or an accumulate that does not take the fast path. It is not inlined, to stay out
/// of the loops that contain the calls.
#[cold]
#[inline(never)]
fn slow_path<T: Element, C: Collect<T>, S: Source<T>>(
    collector: &C,
    source: S,
    operation: Operation,
) -> Result<()> {
    let Operation { kind, target, ref region, mode, site } = operation;
    if let (Some(from), Some(target)) = (source.element_of(), target)
        && mode == Mode::Auto
        && let Some(at) = region.one()
        && collector.send_element_of(from, One { kind, target, at, site })
    {
        return Ok(());
    }
    collector.send(source.data(), operation)
}

/// A get with its destination. [`from`](Self::from) makes it an operation.
#[must_use = "a get does nothing until `.from(target, region)`"]
pub struct Get<'c, C, S> {
    collector: &'c C,
    into: S,
    mode: Mode,
}

impl<'c, C, S> Get<'c, C, S> {
    #[inline]
    pub(crate) fn new(collector: &'c C, into: S) -> Self {
        Self { collector, into, mode: Mode::Auto }
    }

    /// Sets the preferred mode of this operation.
    #[inline]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Collects the get, from these elements of the target's window.
    ///
    /// # Errors
    /// As [`Put::to`].
    #[track_caller]
    #[inline(always)]
    pub fn from<T: Element>(
        self,
        target: impl Into<Option<usize>>,
        region: impl Into<TargetRegion>,
    ) -> Result<()>
    where
        C: Collect<T>,
        S: Section<T>,
    {
        let site = Location::caller();
        let Self { collector, into, mode } = self;
        let (target, region) = (target.into(), region.into());
        let slow = |region| Operation { kind: Kind::Get, target, region, mode, site };
        let TargetRegion::At(at) = region else {
            return slow_get(collector, into, slow(region));
        };
        // As in `Put::to`.
        std::mem::forget(region);
        if let (Some(one), Some(from)) = (into.one(), target)
            && collector.get_one(one, from, at)
        {
            return Ok(());
        }
        slow_get(collector, into, slow(TargetRegion::At(at)))
    }
}

/// Collects a get that does not take the fast path.
#[cold]
#[inline(never)]
fn slow_get<T: Element, C: Collect<T>, S: Section<T>>(
    collector: &C,
    into: S,
    operation: Operation,
) -> Result<()> {
    collector.get(into.section(), operation)
}
