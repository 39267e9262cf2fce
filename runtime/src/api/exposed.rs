//! [`Exposed`]: a window that some ranks may access until the owner has waited for their accesses.

use crate::api::group::Group;
use crate::api::refused::Refused;
use crate::collect::lent::{Lent, Part};
use crate::collect::operation::Site;
use crate::kernel::element::Element;
use crate::posts;
use crate::state::call::Call;
use crate::state::window::Window;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::{ErrorClass, Result};
use std::fmt;
use std::ops::{Deref, Range};
use std::panic::Location;
use std::sync::Arc;

/// Types that name the elements that an [`Exposed`] window exposes.
pub mod lends {
    /// The whole window.
    #[derive(Debug)]
    pub struct Whole(pub(super) ());
    /// Some elements of the window. The other elements can be borrowed meanwhile.
    #[derive(Debug)]
    pub struct Part(pub(super) std::sync::Arc<crate::collect::lent::Part>);
    /// The whole window, for gets only. The owner can read the window meanwhile.
    #[derive(Debug)]
    pub struct ReadOnly(pub(super) ());
}

/// A window that was posted to a group of ranks. These ranks are the sources of the exposure, and
/// may access the window until [`wait`](Self::wait) returns the window.
///
/// Gets of the sources read *M*, the contents of the window at the post. Nothing changes *M* before
/// the wait. The wait applies the puts and accumulates in ascending order of the sources, then in
/// program order, so the results are the same, to the bit, in every run and on every transport.
/// Gets are served while this rank does something else.
///
/// Dropping an exposure drops its window: the elements are lost, but gets of the sources still read
/// *M*. A leaked exposure is never waited for.
///
/// ```
/// # use fencepost_planner::element::Op;
/// # fencepost_runtime::ranks(3).run(|world| {
/// // Ranks 1 and 2 add to rank 0, and nobody else does anything.
/// let mut u = world.window::<f64>(2)?;
/// if world.rank() == 0 {
///     let exposed = u.post(&world.group([1, 2])?)?;
///     u = exposed.wait()?;
///     assert_eq!(u[..], [3.0, 0.0]);
/// } else {
///     let access = u.start(&world.group([0])?)?;
///     access.accumulate([world.rank() as f64], Op::Sum).to(0, 0)?;
///     access.complete()?;
/// }
/// # Ok(()) }).unwrap();
/// ```
///
/// # Source
/// MPI 4.1, section 12.5.2 (MPI_WIN_POST, MPI_WIN_WAIT, MPI_WIN_TEST).
#[must_use = "a posted window is lost unless its exposure is waited for"]
pub struct Exposed<T: Element, L = lends::Whole> {
    window: Window<T>,
    lends: L,
}

/// The result of [`Exposed::test`].
#[must_use = "the window is in it"]
pub enum Tested<T: Element, L = lends::Whole> {
    /// The exposure is over.
    Done(Window<T>),
    /// Some sources have not ended their accesses. The call had no effect.
    Open(Exposed<T, L>),
}

impl<T: Element> Window<T> {
    /// Exposes the window to the ranks `sources` until [`Exposed::wait`] returns the window. This
    /// call never waits.
    ///
    /// Each of these ranks starts one access to this rank for this post. The n-th
    /// [start](Self::start) on a source that names this rank is matched with the n-th post of this
    /// window that names the source. Either call may come first.
    ///
    /// # Errors
    /// `ARG` for a group of another world. `RMA_SYNC` if operations on the window wait for its
    /// fence, or if the window takes part in a prepared superstep that is running. `PROC_FAILED` if
    /// the world has ended. The error returns the window.
    ///
    /// # Cost
    /// One message without elements for each source.
    ///
    /// # Source
    /// MPI 4.1, section 12.5.2 (MPI_WIN_POST).
    #[doc(alias = "MPI_Win_post")]
    #[track_caller]
    pub fn post(self, sources: &Group) -> Result<Exposed<T>, Refused<Self>> {
        self.posted(sources, Ok((Lent::Whole, lends::Whole(()))), Location::caller())
    }

    /// Exposes only these elements of the window. Otherwise does the same as [`post`](Self::post).
    ///
    /// The rank keeps the other elements, and may [read](Exposed::kept) and
    /// [write](Exposed::kept_mut) them meanwhile. If a source requests an operation on the other
    /// elements, this rank and the source return `DISP`. An element that the datatype names several
    /// times is exposed once.
    ///
    /// # Errors
    /// As [`post`](Self::post). Also `DISP` for elements that the window does not have. Also
    /// `NO_MEM` if there is no memory for the list of exposed runs of elements, which takes 16
    /// bytes for each run.
    #[track_caller]
    pub fn post_part(
        self,
        sources: &Group,
        elements: impl Into<Datatype>,
    ) -> Result<Exposed<T, lends::Part>, Refused<Self>> {
        let (elements, site) = (elements.into(), Location::caller());
        let core = self.core();
        let part = core.check_own(None, &elements, site).and_then(|()| {
            let what = "there is no memory for the list of the runs of elements that are lent";
            Part::new(elements).map_err(|_| core.error(ErrorClass::NoMem, what.to_owned(), site))
        });
        let lent = part.map(Arc::new).map(|part| (Lent::Part(Arc::clone(&part)), lends::Part(part)));
        self.posted(sources, lent, site)
    }

    /// Exposes the window to gets only. Otherwise does the same as [`post`](Self::post).
    ///
    /// The exposure derefs to the window's elements, which no rank changes. If a source requests a
    /// put or an accumulate, this rank and the source return `ASSERT`.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    ///
    /// # Source
    /// MPI 4.1, section 12.5.5 (MPI_MODE_NOPUT).
    #[track_caller]
    pub fn post_read(self, sources: &Group) -> Result<Exposed<T, lends::ReadOnly>, Refused<Self>> {
        self.posted(sources, Ok((Lent::Read, lends::ReadOnly(()))), Location::caller())
    }

    fn posted<L>(
        self,
        sources: &Group,
        lent: Result<(Lent, L)>,
        site: Site,
    ) -> Result<Exposed<T, L>, Refused<Self>> {
        let core = self.core();
        let posted = sources.of(core, site).and_then(|ranks| {
            let (lent, lends) = lent?;
            posts::post(core, ranks, lent, site).map(|()| lends)
        });
        match core.handler.report(posted) {
            Ok(lends) => Ok(Exposed { window: self, lends }),
            Err(error) => Err(Refused::new(self, error)),
        }
    }
}

impl<T: Element, L> Exposed<T, L> {
    /// Waits until each source has completed or dropped its access, applies the puts and
    /// accumulates of all sources, and returns the window.
    ///
    /// The puts and accumulates are applied in ascending order of the sources, then in program
    /// order, then in typemap order.
    ///
    /// # Errors
    /// `RMA_SYNC` if a source has dropped its access. `DISP` if a source has requested elements
    /// that were not exposed. `ASSERT` if a source has put or accumulated into a window that was
    /// exposed to gets only. In these three cases the error names the lowest such source and its
    /// line, and nothing was applied. `PROC_FAILED` if a source has left or died, or the world has
    /// ended. The error returns the window, unchanged since its post.
    ///
    /// Also `RMA_SYNC` if this rank itself is a source and has not ended its access. No other rank
    /// can end that access, so the wait is refused at once, and the world ends.
    ///
    /// # Cost
    /// The wait for the slowest source. The call sends no message.
    ///
    /// # Source
    /// MPI 4.1, section 12.5.2 (MPI_WIN_WAIT).
    #[doc(alias = "MPI_Win_wait")]
    #[track_caller]
    pub fn wait(self) -> Result<Window<T>, Refused<Window<T>>> {
        let core = self.window.core();
        let waited = posts::wait(core, &Call::named(0, "Exposed::wait"));
        match core.handler.report(waited) {
            Ok(()) => Ok(self.window),
            Err(error) => Err(Refused::new(self.window, error)),
        }
    }

    /// Does the same as [`wait`](Self::wait) if `wait` would return at once. Otherwise does
    /// nothing.
    ///
    /// ```
    /// # use fencepost_runtime::Tested;
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let (other, u) = (1 - world.rank(), world.window::<u64>(1)?);
    /// let group = world.group([other])?;
    /// let access = u.start(&group)?;
    /// access.put([7]).to(other, 0)?;
    /// let mut exposed = u.post(&group)?;
    /// access.complete()?;
    /// let u = loop {
    ///     match exposed.test()? {
    ///         Tested::Done(window) => break window,
    ///         Tested::Open(open) => exposed = open, // .. compute a little
    ///     }
    /// };
    /// assert_eq!(u[0], 7);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    ///
    /// # Source
    /// MPI 4.1, section 12.5.2 (MPI_WIN_TEST).
    #[doc(alias = "MPI_Win_test")]
    #[track_caller]
    pub fn test(self) -> Result<Tested<T, L>, Refused<Window<T>>> {
        let core = self.window.core();
        let tested = posts::test(core, &Call::named(0, "Exposed::test"));
        match core.handler.report(tested) {
            Ok(true) => Ok(Tested::Done(self.window)),
            Ok(false) => Ok(Tested::Open(self)),
            Err(error) => Err(Refused::new(self.window, error)),
        }
    }

    /// Returns the number of elements of this rank's part, exposed or not.
    pub fn len(&self) -> usize {
        self.window.len()
    }

    /// Returns whether this rank's part has no elements.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    pub(super) fn into_window(self) -> Window<T> {
        self.window
    }

    pub(crate) fn window(&self) -> &Window<T> {
        &self.window
    }
}

impl<T: Element> Exposed<T, lends::Part> {
    /// Returns elements that are not exposed.
    ///
    /// # Errors
    /// `DISP` for elements that the window does not have, and `RMA_CONFLICT` for elements that are
    /// exposed.
    #[track_caller]
    pub fn kept(&self, elements: Range<usize>) -> Result<&[T]> {
        self.keeps(&elements, Location::caller())?;
        // SAFETY: the elements are in the window and not exposed, so no other rank accesses them
        // before the wait, which takes `self`.
        Ok(unsafe { std::slice::from_raw_parts(self.window.data.add(elements.start), elements.len()) })
    }

    /// Returns elements that are not exposed, for writing.
    ///
    /// # Errors
    /// As [`kept`](Self::kept).
    #[track_caller]
    pub fn kept_mut(&mut self, elements: Range<usize>) -> Result<&mut [T]> {
        self.keeps(&elements, Location::caller())?;
        // SAFETY: as in `kept`. In addition, `&mut self` is the only access to the elements.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.window.data.add(elements.start), elements.len()) })
    }

    fn keeps(&self, elements: &Range<usize>, site: Site) -> Result<()> {
        let core = self.window.core();
        let len = self.window.len();
        let refuse = |class, why: &str| {
            let message = format!(
                "elements {}..{} {why}, and this rank's window has {len} elements",
                elements.start, elements.end
            );
            core.handler.report(Err(core.error(class, message, site)))
        };
        if elements.start > elements.end || elements.end > len {
            return refuse(ErrorClass::Disp, "are not all in the window");
        }
        if self.lends.0.meets(&(elements.start as i64..elements.end as i64)) {
            return refuse(
                ErrorClass::RmaConflict,
                "are lent in part: wait for the exposure, or keep only what was not posted",
            );
        }
        Ok(())
    }
}

impl<T: Element> Deref for Exposed<T, lends::ReadOnly> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.window // no rank writes the window before the wait, which takes `self`
    }
}

impl<T: Element, L> fmt::Debug for Exposed<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposed").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Element, L> fmt::Debug for Tested<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done(_) => "Done(..)",
            Self::Open(_) => "Open(..)",
        })
    }
}
