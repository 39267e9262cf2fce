//! [`Running`]: a prepared superstep between its two halves.
//!
//! Other ranks touch the windows until the superstep is finished, so a `Running` owns them. Until
//! then this rank's program may use only the elements that are
//! [`Kept`](fencepost_planner::kept::Kept). The verifier has shown, for the schedule that runs,
//! which elements these are. If a `Running` is leaked, its windows are never moved or freed, so
//! leaking it is sound.

use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Held, held, with};
use crate::state::world::WorldCore;
use crate::supersteps::prepared::Ready;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::grid::{Block, Row};
use fencepost_planner::ids::{Id, WindowId};
use fencepost_planner::kept::Access;
use fencepost_planner::{Error, ErrorClass, Result};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::panic::Location;
use std::ptr::NonNull;
use std::rc::Rc;

/// A prepared superstep that this rank has begun and not finished: other ranks may be reading and
/// writing its windows.
///
/// `begin` of a prepared superstep takes its windows and returns a `Running`.
/// [`finish`](Self::finish) waits for the other ranks, and returns the windows. If the plan has
/// everything that the superstep needs, `begin` takes nothing else. If the superstep puts values or
/// uses tickets, its body must run. In that case `begin` takes all parameters of the superstep's
/// function and runs the body up to its last fence. Slices that were passed to `begin` may be used
/// again when it returns. The type is then `Running<W, Returns<R>>`, and
/// [`finish`](Running::finish) returns the value of the body together with the windows.
///
/// Between the two calls this rank may compute on its other data, and on the part of the windows
/// that it keeps: [`kept`](Self::kept), [`kept_mut`](Self::kept_mut) and [`inside`](Self::inside).
/// The calls of all ranks determine which elements a rank keeps (`planner/README.md`). The mode and
/// the transport make no difference.
///
/// ```
/// # use fencepost_planner::Result;
/// # use fencepost_runtime::{Running, Window};
/// # fn end(mut running: Running<Window<f64>>) -> Result<Window<f64>> {
/// running.kept_mut(8..16)?.fill(0.5); // what no call touches
/// let sum: f64 = running.kept(1..7)?.iter().sum(); // elements 0 and 7 are a halo
/// # assert!(sum >= 0.0);
/// running.finish()
/// # }
/// ```
///
/// With several windows, [`each`](Self::each) gives access to each of them. If the body does more
/// after its last fence than return an `Ok` of names and literals, `begin` runs the whole body and
/// waits for the other ranks. The rank keeps the same elements in that case.
///
/// # Errors
/// Until the superstep is finished, every other collective call of its world (a fence, a superstep,
/// a collective, a window, a split, another `begin`) returns `RMA_SYNC`, with the line of `begin`.
/// If a fence is refused in this way, the operations that waited for it are discarded. Operations
/// on other windows are collected, and other worlds may be used. A superstep that synchronises by
/// posts and starts (`#[superstep(sync = pscw)]`) is not a call of all ranks. Until it is finished,
/// only another run of the same plan is refused. Such a superstep may be begun before or after any
/// other superstep. Each rank may finish the supersteps that it has begun in any order, and the
/// order may differ between ranks.
///
/// If a `Running` is dropped, because of an error or a panic between the two calls, the world ends:
/// every other rank gets an error that names this rank and the line. Dropping does not wait for
/// other ranks. If a `Running` is leaked, the superstep is never finished: ranks that wait for this
/// rank get an error when this rank leaves, and the memory of the windows is not freed.
#[must_use = "other ranks wait until it is finished; dropping it ends the world"]
pub struct Running<W, R = ()> {
    // The run is dropped before `windows`, because dropping it takes back the parts of the windows
    // that other ranks were allowed to touch.
    run: Run,
    windows: W,
    value: R,
}

/// The value of a superstep's body, which [`Running::finish`] returns.
#[derive(Debug)]
pub struct Returns<R>(#[doc(hidden)] pub R);

impl<W, R> std::fmt::Debug for Running<W, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("superstep", &self.run.begun.call.name).finish_non_exhaustive()
    }
}

/// A run of a superstep.
struct Run {
    world: Rc<WorldCore>,
    ready: Rc<Ready>,
    begun: Begun,
    windows: Held,
    finished: bool,
}

/// How a run was begun.
pub(super) struct Begun {
    pub(super) call: Call,
    /// Whether the run was already complete when it was begun.
    pub(super) over: bool,
}

impl Run {
    fn finish(&mut self) -> Result<()> {
        self.finished = true;
        if self.begun.over {
            self.ready.over();
            return Ok(());
        }
        let finished = with(&self.windows, |windows| self.ready.finish(windows, &self.begun.call));
        match &self.windows[..] {
            [window] => window.handler.report(finished),
            _ => self.world.handler.report(finished),
        }
    }

    /// Returns elements of a window for reading, if this rank keeps them.
    ///
    /// # Errors
    /// As [`keeps`](Self::keeps).
    fn read<'r, T: Element>(
        &'r self,
        (window, at): (&'r Window<T>, usize),
        elements: Range<usize>,
        site: &'static Location<'static>,
    ) -> Result<&'r [T]> {
        let first = self.first((window, at), &elements, false, site)?;
        // SAFETY: `first` has checked that the elements are in the window, and that no call writes
        // them. The verifier has shown that no instruction of any rank writes them while the
        // superstep runs (`keep`), and the superstep runs as long as `self` is borrowed. Any code
        // that writes elements of the window on this rank takes the window by `&mut`. Two windows
        // never overlap.
        Ok(unsafe { std::slice::from_raw_parts(first, elements.len()) })
    }

    /// Returns elements of a window for writing, if this rank keeps them.
    ///
    /// # Errors
    /// As [`keeps`](Self::keeps).
    fn write<'r, T: Element>(
        &'r self,
        (window, at): (&'r mut Window<T>, usize),
        elements: Range<usize>,
        site: &'static Location<'static>,
    ) -> Result<&'r mut [T]> {
        let first = self.first((window, at), &elements, true, site)?;
        // SAFETY: as in `read`. No instruction reads the elements either, and no other part of the
        // window is lent while the window is borrowed by `&mut`.
        Ok(unsafe { std::slice::from_raw_parts_mut(first, elements.len()) })
    }

    /// Returns the address of the first of these elements of a window, if this rank keeps them. If
    /// `elements` is empty, returns an arbitrary address.
    ///
    /// # Errors
    /// As [`keeps`](Self::keeps).
    fn first<T: Element>(
        &self,
        (window, at): (&Window<T>, usize),
        elements: &Range<usize>,
        writes: bool,
        site: &'static Location<'static>,
    ) -> Result<*mut T> {
        if elements.is_empty() {
            return Ok(NonNull::dangling().as_ptr());
        }
        let base = self.keeps((window, at), &Datatype::run(elements.clone()), writes, site)?;
        // SAFETY: `keeps` has checked that the window has these elements.
        Ok(unsafe { base.add(elements.start) })
    }

    /// Returns the address of the window's first element, if this rank keeps `elements`.
    ///
    /// # Errors
    /// `DISP` for elements that the window does not have; `RMA_CONFLICT` for elements that the
    /// superstep touches.
    fn keeps<T: Element>(
        &self,
        (window, at): (&Window<T>, usize),
        elements: &Datatype,
        writes: bool,
        site: &'static Location<'static>,
    ) -> Result<*mut T> {
        let core = window.core();
        let lent = core.check_own(None, elements, site).and_then(|()| {
            let Some(kept) = self.ready.kept() else {
                return Err(core.error(ErrorClass::Intern, "nothing is known of what is kept".into(), site));
            };
            match kept.conflict(WindowId::new(at), elements, writes) {
                None => Ok(window.data),
                Some(access) => Err(refused(core, access, elements, writes, site)),
            }
        });
        core.handler.report(lent)
    }
}

#[cold]
fn refused(
    core: &WindowCore,
    access: &Access,
    elements: &Datatype,
    writes: bool,
    site: &'static Location<'static>,
) -> Error {
    let does = if access.writes { "written" } else { "read" };
    let allowed = if writes {
        "`kept_mut` lends what no call reads or writes"
    } else {
        "`kept` lends what no call writes"
    };
    let message = format!(
        "{elements} of window {} is not kept: {} is {does} while the superstep runs, by the {} of rank {} at {}; until it is finished {allowed}",
        core.key.window, access.elements, access.kind, access.origin.0, access.site
    );
    core.error(ErrorClass::RmaConflict, message, site)
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.finished && !self.ready.give_up(&self.begun.call) {
            // Payloads may still arrive in the windows, so the windows are never freed.
            std::mem::forget(std::mem::take(&mut self.windows));
        }
    }
}

/// The windows that a superstep takes when it is begun: one window, a list of windows, or a tuple
/// of up to six windows or lists.
pub trait Taken: Sized {
    /// The type that gives access to each of the windows.
    type Lent<'r>
    where
        Self: 'r;

    #[doc(hidden)]
    fn held(&self) -> Held;

    #[doc(hidden)]
    fn lent<'r>(&'r mut self, run: &mut Borrowed<'r>) -> Self::Lent<'r>;
}

/// The run that gives access to its windows, and the number of the window that is next.
pub struct Borrowed<'r>(&'r Run, usize);

impl<'r> Borrowed<'r> {
    fn next<T: Element>(&mut self, window: &'r mut Window<T>) -> Lent<'r, T> {
        let at = self.1;
        self.1 += 1;
        Lent { run: self.0, window, at }
    }
}

impl<T: Element> Taken for Window<T> {
    type Lent<'r> = Lent<'r, T>;

    fn held(&self) -> Held {
        held([self.core()])
    }

    fn lent<'r>(&'r mut self, run: &mut Borrowed<'r>) -> Lent<'r, T> {
        run.next(self)
    }
}

impl<T: Element, const N: usize> Taken for [Window<T>; N] {
    type Lent<'r> = [Lent<'r, T>; N];

    fn held(&self) -> Held {
        held(self.each_ref().map(Window::core))
    }

    fn lent<'r>(&'r mut self, run: &mut Borrowed<'r>) -> Self::Lent<'r> {
        self.each_mut().map(|window| run.next(window))
    }
}

macro_rules! taken {
    ($($name:ident)*) => {
        #[expect(non_snake_case, reason = "the names of types are also those of values")]
        impl<$($name: Taken),*> Taken for ($($name,)*) {
            type Lent<'r>
                = ($($name::Lent<'r>,)*)
            where
                Self: 'r;

            fn held(&self) -> Held {
                let ($($name,)*) = self;
                let mut held = Held::new();
                $(held.extend($name.held());)*
                held
            }

            fn lent<'r>(&'r mut self, run: &mut Borrowed<'r>) -> Self::Lent<'r> {
                let ($($name,)*) = self;
                ($($name.lent(run),)*)
            }
        }
    };
}
taken!(A);
taken!(A B);
taken!(A B C);
taken!(A B C D);
taken!(A B C D E);
taken!(A B C D E F);

impl<W: Taken, R> Running<W, R> {
    /// Makes a running superstep after the plan of its last epoch was begun with these windows.
    pub(super) fn new(
        world: &Rc<WorldCore>,
        ready: &Rc<Ready>,
        begun: Begun,
        (windows, held): (W, Held),
        value: R,
    ) -> Self {
        let (world, ready) = (world.clone(), ready.clone());
        Self { run: Run { world, ready, begun, windows: held, finished: false }, windows, value }
    }

    /// Gives access to each window: `let (u, mut v) = running.each();`.
    pub fn each(&mut self) -> W::Lent<'_> {
        self.windows.lent(&mut Borrowed(&self.run, 0))
    }
}

impl<W: Taken> Running<W> {
    /// Waits until the superstep is over, and returns its windows. The windows have the same
    /// contents as after a [fence](Window::fence).
    ///
    /// # Errors
    /// As `replay` of the prepared superstep; in that case the windows are dropped.
    ///
    /// # Cost
    /// The rest of the superstep: the wait for the other ranks, and the copies of the elements that
    /// arrive here. `begin` has already executed this rank's packs and sends, and its direct copies
    /// to ranks that had begun when this rank began. `begin` executes these steps in the order of
    /// the schedule. It stops at the first buffer that is still being read by a receiver that is
    /// two supersteps behind. The steps after that buffer are left for `finish`.
    pub fn finish(self) -> Result<W> {
        let Self { mut run, windows, value: () } = self;
        run.finish().map(|()| windows)
    }
}

impl<W: Taken, R> Running<W, Returns<R>> {
    /// Does the same as [`Running::finish`], and also returns the value that the superstep
    /// returned. Tickets then have their elements.
    ///
    /// # Errors
    /// As [`Running::finish`].
    ///
    /// # Cost
    /// As [`Running::finish`], and a copy of the elements of tickets.
    pub fn finish(self) -> Result<(W, R)> {
        let Self { mut run, windows, value: Returns(value) } = self;
        run.finish().map(|()| (windows, value))
    }
}

impl<T: Element, R> Running<Window<T>, R> {
    /// Returns these elements of this rank's part for reading. No call of the superstep on any rank
    /// may write any of them.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if a call writes one of them, with the rank and line of the call. `DISP` past
    /// the end of the window.
    ///
    /// # Cost
    /// Depends on the calls that touch this rank's part: some tens of nanoseconds for the calls of
    /// a halo. If a call has a list of elements, such as [`Datatype::elements`], near the requested
    /// elements, each check sorts that list.
    #[track_caller]
    pub fn kept(&self, elements: Range<usize>) -> Result<&[T]> {
        self.run.read((&self.windows, 0), elements, Location::caller())
    }

    /// Returns these elements of this rank's part for writing. No call of the superstep on any rank
    /// may touch any of them.
    ///
    /// # Errors
    /// `RMA_CONFLICT` if a call reads or writes one of them, with the rank and line of the call.
    /// `DISP` past the end of the window.
    ///
    /// # Cost
    /// As [`kept`](Self::kept).
    #[track_caller]
    pub fn kept_mut(&mut self, elements: Range<usize>) -> Result<&mut [T]> {
        self.run.write((&mut self.windows, 0), elements, Location::caller())
    }

    /// Returns the rows of a block that a kernel may compute before the halo has arrived: the rows
    /// of [`Block::rows_core`]. The window must store the block.
    ///
    /// [`Block::rows_rest`] returns the other rows of the block.
    ///
    /// # Errors
    /// `SIZE` for a window that does not have the layout of the block. As for [`kept`](Self::kept),
    /// `RMA_CONFLICT` if a call of the superstep writes own cells of the block.
    ///
    /// # Cost
    /// As [`kept`](Self::kept), once for all rows.
    #[track_caller]
    pub fn inside<const D: usize>(
        &self,
        block: &Block<D>,
    ) -> Result<impl ExactSizeIterator<Item = KeptRow<'_, T, D>> + use<'_, T, R, D>> {
        inside(&self.run, (&self.windows, 0), block, Location::caller())
    }
}

/// One of several windows of a running superstep: see [`Running::each`].
pub struct Lent<'r, T: Element> {
    run: &'r Run,
    window: &'r mut Window<T>,
    at: usize,
}

impl<T: Element> std::fmt::Debug for Lent<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lent").field("window", &self.window.core().key.window).finish_non_exhaustive()
    }
}

impl<T: Element> Lent<'_, T> {
    /// Returns elements for reading, as [`Running::kept`] does.
    ///
    /// # Errors
    /// As [`Running::kept`].
    #[track_caller]
    pub fn kept(&self, elements: Range<usize>) -> Result<&[T]> {
        self.run.read((self.window, self.at), elements, Location::caller())
    }

    /// Returns elements for writing, as [`Running::kept_mut`] does.
    ///
    /// # Errors
    /// As [`Running::kept_mut`].
    #[track_caller]
    pub fn kept_mut(&mut self, elements: Range<usize>) -> Result<&mut [T]> {
        self.run.write((self.window, self.at), elements, Location::caller())
    }

    /// Returns rows of cells, as [`Running::inside`] does.
    ///
    /// # Errors
    /// As [`Running::inside`].
    #[track_caller]
    pub fn inside<const D: usize>(
        &self,
        block: &Block<D>,
    ) -> Result<impl ExactSizeIterator<Item = KeptRow<'_, T, D>> + use<'_, T, D>> {
        inside(self.run, (self.window, self.at), block, Location::caller())
    }
}

fn inside<'r, T: Element, const D: usize>(
    run: &Run,
    (window, at): (&'r Window<T>, usize),
    block: &Block<D>,
    site: &'static Location<'static>,
) -> Result<impl ExactSizeIterator<Item = KeptRow<'r, T, D>> + use<'r, T, D>> {
    if block.len() != window.len() {
        let message = format!(
            "a window of {} elements for a block that is stored in {}: give the block that the window was made for",
            window.len(),
            block.len()
        );
        let core = window.core();
        return core.handler.report(Err(core.error(ErrorClass::Size, message, site)));
    }
    let cells: *const T = run.keeps((window, at), &block.interior(), false, site)?;
    Ok(block.rows_core().map(move |row| KeptRow { row, cells, window: PhantomData }))
}

/// A [`Row`] of a block in a window of a running superstep. Its methods return the cells of the
/// row, and the cells around it, as slices of one length.
///
/// A `KeptRow` dereferences to the [`Row`]: `row.of_mut(&mut next)` returns the same cells of
/// another field.
///
/// # Panics
/// As [`Row`]: for an offset that is longer than the width of the halo, or for an offset that a
/// [`star`](Block::star) does not have.
#[derive(Clone, Copy, Debug)]
pub struct KeptRow<'r, T, const D: usize> {
    row: Row<D>,
    cells: *const T,
    window: PhantomData<&'r [T]>,
}

impl<T, const D: usize> Deref for KeptRow<'_, T, D> {
    type Target = Row<D>;

    #[inline(always)]
    fn deref(&self) -> &Row<D> {
        &self.row
    }
}

impl<'r, T: Element, const D: usize> KeptRow<'r, T, D> {
    /// Returns the cells of the row.
    #[inline(always)]
    #[track_caller]
    pub fn of(&self) -> &'r [T] {
        self.at([0; D])
    }

    /// Returns the cells at `offset` from the cells of the row.
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, offset: [isize; D]) -> &'r [T] {
        let cells = self.row.range_at(offset);
        // SAFETY: within the width of the halo, a row of the core reads only own cells of its
        // block, and `range_at` refuses greater offsets. `inside` has checked that all these cells
        // are in the window and are lent for reading while the window is borrowed.
        unsafe { std::slice::from_raw_parts(self.cells.add(cells.start), cells.len()) }
    }

    /// Returns the cells at each of these offsets from the cells of the row.
    #[inline(always)]
    #[track_caller]
    pub fn each<const N: usize>(&self, offsets: [[isize; D]; N]) -> [&'r [T]; N] {
        let mut each: [&[T]; N] = [&[]; N];
        for n in 0..N {
            each[n] = self.at(offsets[n]);
        }
        each
    }

    /// Returns the cells before the cells of the row in the last dimension: offset -1.
    #[inline(always)]
    #[track_caller]
    pub fn left(&self) -> &'r [T] {
        self.at(step(D - 1, -1))
    }

    /// Returns the cells after the cells of the row in the last dimension: offset 1.
    #[inline(always)]
    #[track_caller]
    pub fn right(&self) -> &'r [T] {
        self.at(step(D - 1, 1))
    }

    /// Returns the row before this one in the second to last dimension: offset -1.
    #[inline(always)]
    #[track_caller]
    pub fn up(&self) -> &'r [T] {
        const { assert!(D >= 2, "a row of a block of one dimension has no row above it") };
        self.at(step(D - 2, -1))
    }

    /// Returns the row after this one in the second to last dimension: offset 1.
    #[inline(always)]
    #[track_caller]
    pub fn down(&self) -> &'r [T] {
        const { assert!(D >= 2, "a row of a block of one dimension has no row below it") };
        self.at(step(D - 2, 1))
    }
}

/// Returns the offset of `by` cells along dimension `d`.
#[inline(always)]
fn step<const D: usize>(d: usize, by: isize) -> [isize; D] {
    std::array::from_fn(|other| if other == d { by } else { 0 })
}
