//! [`LockWindow`]: a window whose parts other ranks access without a call of the owner. Also the
//! epochs on such a window.

use crate::api::allocate::{window_of, zeroed};
use crate::api::locked::Locked;
use crate::api::refused::Refused;
use crate::check::announce;
use crate::kernel::element::Element;
use crate::locks::LockCore;
use crate::locks::state::hints::Hints;
use crate::locks::state::words::site_text;
use crate::state::call::{Call, codes};
use crate::state::handler::ErrorHandler;
use crate::state::window::Window;
use crate::state::window_core::WindowCore;
use crate::state::world::{World, WorldCore};
use fencepost_planner::ir::calls::LockType;
use fencepost_planner::{Error, ErrorClass, Result};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;

/// A window that ranks access under locks. A rank locks and accesses the part of another rank,
/// which computes meanwhile and makes no call for the access.
///
/// A lock opens an *epoch* on the part of one rank. The operations of the epoch are collected, and
/// carried out when the epoch ends or is flushed. An exclusive epoch is atomic as a whole. Under
/// shared locks each access to an element is atomic, for elements of any size. The order of two
/// epochs is not determined, so the last bits of sums of floats may differ.
///
/// A lock window does not deref to its part, since other ranks may access the part at any time. The
/// owner accesses its part in the epochs of [`local`](Self::local) and
/// [`local_mut`](Self::local_mut). A [`Window`] is changed over to locks, and back, by all ranks
/// together. After a rank has dropped its window, accesses of other ranks to that rank's part
/// return `RMA_SYNC`. So let all ranks meet before a rank drops its window, by
/// [`into_window`](Self::into_window) or a barrier.
///
/// ```
/// # use fencepost_planner::{element::Op, ir::calls::LockType};
/// # fencepost_runtime::ranks(4).run(|world| {
/// let u = world.lock_window::<u64>(1)?;
/// let lock = u.lock(0, LockType::Shared)?;
/// let number = lock.fetch_and(Op::Sum, 1, 0)?; // a number that no other rank has
/// lock.unlock()?;
/// assert!(number.take()?[0] < 4);
/// let u = u.into_window()?;
/// assert_eq!(u.iter().sum::<u64>(), if world.rank() == 0 { 4 } else { 0 });
/// # Ok(()) }).unwrap();
/// ```
///
/// # Source
/// MPI 4.1, section 12.5.3 (lock, unlock) and 12.5.4 (flush).
pub struct LockWindow<T: Element> {
    /// Requests hold weak references to the core.
    core: Rc<LockCore>,
    /// The window; `None` only while the window is being returned.
    window: Option<Window<T>>,
    /// The window that holds the words of the locks.
    words: Option<Window<u64>>,
}

/// A lock of one rank's part of a [`LockWindow`]: an epoch that ends with [`unlock`](Self::unlock)
/// or with a drop.
///
/// A lock derefs to [`Locked`], whose methods are the operations of the epoch.
///
/// A lock that is dropped is unlocked, and an error is then reported only to the window's [error
/// handler](LockWindow::on_error). If the thread panics, operations that were not carried out are
/// discarded.
///
/// If a lock is leaked, each operation collected since its last flush may or may not be carried
/// out. Until the window is dropped, other ranks wait for the regions that the lock holds.
#[must_use = "a lock that is dropped is unlocked at once"]
pub struct Lock<'w, T: Element> {
    locked: Locked<'w, T>,
    site: &'static Location<'static>,
}

/// A shared lock of every rank's part of a [`LockWindow`]. It opens one epoch on each part. All
/// epochs end with [`unlock`](Self::unlock) or with a drop, as for [`Lock`].
#[must_use = "a lock that is dropped is unlocked at once"]
pub struct LockAll<'w, T: Element> {
    window: &'w LockWindow<T>,
    site: &'static Location<'static>,
}

/// The elements of this rank's part, while this rank holds a shared lock of its part: see
/// [`LockWindow::local`].
pub struct LocalPart<'w, T: Element> {
    core: &'w LockCore,
    element: PhantomData<T>,
}

impl World {
    /// Makes a window for locks with `len` zeroed elements on this rank.
    ///
    /// Every rank calls this; lengths may differ.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    ///
    /// # Cost
    /// Twice the cost of [`window`](Self::window): the locks are words of a separate window. The
    /// locks take 64 bytes for each rank. For a part with 16 regions, the maximum, they take twice
    /// as much.
    #[track_caller]
    pub fn lock_window<T: Element>(&self, len: usize) -> Result<LockWindow<T>> {
        self.locks_in(len, Hints::new(), &Call::named(codes::LOCK_WINDOW, "World::lock_window"))
    }

    /// Makes a window like [`lock_window`](Self::lock_window), with hints: promises of the program
    /// about the window.
    ///
    /// # Errors
    /// As [`lock_window`](Self::lock_window); also `ARG` if ranks give different hints, or if a
    /// rank gives an impossible combination.
    #[track_caller]
    pub fn lock_window_with<T: Element>(&self, len: usize, hints: Hints) -> Result<LockWindow<T>> {
        self.locks_in(len, hints, &Call::named(codes::LOCK_WINDOW_WITH, "World::lock_window_with"))
    }

    fn locks_in<T: Element>(&self, len: usize, hints: Hints, call: &Call) -> Result<LockWindow<T>> {
        let handler = &self.core().handler;
        self.core().calls.begin();
        let window = zeroed(self.core(), len, hints, false, call).and_then(|window| {
            window.on_error(handler.get());
            Ok(locked(window, call)?)
        });
        handler.report(window)
    }
}

/// Makes the locks of a window, as a part of `call`.
///
/// # Errors
/// Some rank has no memory for the locks, or the world has ended. In the second case other ranks
/// may have made the locks, but no rank has accessed this rank's part.
fn locked<T: Element>(window: Window<T>, call: &Call) -> Result<LockWindow<T>, Refused<Window<T>>> {
    let data = window.core();
    let made = window_of::<u64>(&data.world, LockCore::words(data, window.len()), call)
        .and_then(|words| Ok((Rc::new(LockCore::new(data.clone(), words.core())?), words)));
    let (core, words) = match made {
        Ok(made) => made,
        Err(error) => return Err(Refused::new(window, error)),
    };
    let world = data.world.clone();
    // From here on, a drop of the lock window makes the attendant forget the window.
    let mut made = LockWindow { core, window: Some(window), words: Some(words) };
    // Each rank's attendant must serve the window before other ranks send requests to the
    // attendant.
    let met = if world.reach.is_all { Ok(()) } else { world.meet(call, &[]).map(drop) };
    match (met, made.window.take()) {
        (Err(error), Some(window)) => {
            drop(made); // nobody has accessed this rank's part, and nobody will
            Err(Refused::new(window, error))
        }
        (_, window) => {
            made.window = window;
            made.core.open_own();
            Ok(made)
        }
    }
}

/// Exchanges with all ranks the reasons that prevent `call`, and fails if any rank has a reason.
/// `mine` is this rank's reason.
pub(super) fn agree(world: &WorldCore, call: &Call, mine: Option<String>) -> Result<()> {
    let all = world.meet(call, mine.as_deref().unwrap_or_default().as_bytes())?;
    match all.iter().position(|why| !why.is_empty()) {
        None => Ok(()),
        Some(rank) => {
            let why = String::from_utf8_lossy(&all[rank]);
            Err(call.error(world, ErrorClass::RmaSync, format!("rank {rank} {why}")))
        }
    }
}

impl<T: Element> Window<T> {
    /// Changes the window over to locks, together with all ranks. The window keeps its elements.
    ///
    /// # Errors
    /// `RMA_SYNC` on all ranks if any rank has collected operations for the window's next fence, if
    /// any rank has an open access to the window, or if another rank is in another call. `NO_MEM`
    /// if some rank has no memory for the locks. `PROC_FAILED` if the world has ended. The error
    /// returns the window.
    #[track_caller]
    pub fn into_locked(self) -> Result<LockWindow<T>, Refused<Self>> {
        let call =
            Call::named(codes::INTO_LOCKED ^ u64::from(self.core().key.window) << 16, "Window::into_locked");
        let core = self.core().clone();
        core.world.calls.begin();
        let agreed = agree(&core.world, &call, core.still_open().map(str::to_owned));
        let locked = match agreed.and_then(|()| announce(&core.world, &call)) {
            Ok(()) => locked(self, &call),
            Err(error) => Err(Refused::new(self, error)),
        };
        locked.map_err(|refused| refused.reported(&core.handler))
    }
}

impl<T: Element> LockWindow<T> {
    /// Changes the window back to a [`Window`], together with all ranks. The window holds the
    /// results of the epochs of locks.
    ///
    /// # Errors
    /// `RMA_SYNC` on all ranks if any rank has a lock that is not unlocked (a leaked lock), or if
    /// another rank is in another call. `PROC_FAILED` if the world has ended. The error returns the
    /// window; after `PROC_FAILED` it can only be dropped.
    #[track_caller]
    pub fn into_window(mut self) -> Result<Window<T>, Refused<Self>> {
        let data = self.core.data.clone();
        let call =
            Call::named(codes::INTO_WINDOW ^ u64::from(data.key.window) << 16, "LockWindow::into_window");
        data.world.calls.begin();
        let agreed = agree(&data.world, &call, self.still_open()).and_then(|()| announce(&data.world, &call));
        if let Err(error) = data.handler.report(agreed) {
            return Err(Refused::new(self, error));
        }
        // All ranks have released their locks. Ranks that have returned from this call may use
        // their parts.
        data.begin_checks(call.site);
        Ok(self.window.take().expect("it is taken here only"))
    }

    /// Describes a lock that this rank has not unlocked, if there is one. Such a lock prevents
    /// calls that all ranks make together.
    pub(super) fn still_open(&self) -> Option<String> {
        let since = |(target, site)| {
            format!("has locked the part of rank {target} since {} and has not unlocked it", site_text(site))
        };
        self.core.first_open().map(since)
    }

    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.data().world.rank
    }

    /// Returns the number of ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.data().world.size
    }

    /// Returns the number of elements of this rank's part.
    #[inline]
    pub fn len(&self) -> usize {
        self.core.len(self.rank())
    }

    /// Returns whether this rank's part has no elements.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the handler for errors of this window's calls, as [`Window::on_error`] does.
    pub fn on_error(&self, handler: ErrorHandler) {
        self.data().handler.set(handler);
    }

    pub(super) fn data(&self) -> &WindowCore {
        &self.core.data
    }

    /// Locks the part of `target`, which may be this rank.
    ///
    /// The call does not wait, since the epoch is carried out later.
    ///
    /// # Errors
    /// `RANK` for a target out of range. `RMA_SYNC` if this rank has already locked that part, or
    /// is in a call of [`local`](Self::local) on it. `PROC_FAILED` if the world has ended.
    #[doc(alias = "MPI_Win_lock")]
    #[track_caller]
    #[inline]
    pub fn lock(&self, target: usize, kind: LockType) -> Result<Lock<'_, T>> {
        let site = Location::caller();
        self.data().handler.report(self.core.open(target, kind, false, site))?;
        Ok(Lock { locked: self.locked(target), site })
    }

    /// Takes a shared lock of the part of every rank, this one included.
    ///
    /// The call does not wait. The first flush that carries something out takes the locks of all
    /// parts, one after the other, and holds them.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); in that case no part is locked.
    #[doc(alias = "MPI_Win_lock_all")]
    #[track_caller]
    pub fn lock_all(&self) -> Result<LockAll<'_, T>> {
        let site = Location::caller();
        let call = Call::named(0, "LockWindow::lock_all");
        for target in 0..self.size() {
            if let Err(error) = self.core.open(target, LockType::Shared, true, site) {
                (0..target).for_each(|target| self.core.discard(target, &call));
                return Err(self.data().handler.reported(error));
            }
        }
        Ok(LockAll { window: self, site })
    }

    fn locked(&self, target: usize) -> Locked<'_, T> {
        Locked::new(&self.core, target)
    }

    /// Runs `read` on this rank's part under a shared lock, and returns the result of `read`.
    ///
    /// Elements are loaded one by one, and other ranks may access the part meanwhile.
    ///
    /// # Errors
    /// `RMA_SYNC` if this rank has locked its own part, or is in this call already. `PROC_FAILED`
    /// if a rank that holds the part has died, or the world has ended. Otherwise the error that
    /// `read` returns.
    #[track_caller]
    pub fn local<R>(&self, read: impl FnOnce(&LocalPart<'_, T>) -> Result<R>) -> Result<R> {
        let call = Call::named(0, "LockWindow::local");
        let part = LocalPart { core: &self.core, element: PhantomData };
        self.data().handler.report(self.core.owned(LockType::Shared, &call, |_| read(&part)))
    }

    /// Runs `write` on this rank's part under an exclusive lock, and returns the result of `write`.
    ///
    /// No other rank accesses the part meanwhile. What `write` stored is visible to each rank that
    /// locks the part later, even if `write` panics or returns an error.
    ///
    /// # Errors
    /// As [`local`](Self::local).
    #[track_caller]
    pub fn local_mut<R>(&self, write: impl FnOnce(&mut [T]) -> Result<R>) -> Result<R> {
        let call = Call::named(0, "LockWindow::local_mut");
        let len = self.len();
        let result = self.core.owned(LockType::Exclusive, &call, |base| {
            // SAFETY: these are this rank's elements, initialised and aligned, and this rank holds
            // exclusive locks of all regions. No other reference to them is made, since this rank
            // has one epoch of its own part at a time.
            write(unsafe { std::slice::from_raw_parts_mut(base.cast(), len) })
        });
        self.data().handler.report(result)
    }
}

impl<T: Element> Drop for LockWindow<T> {
    fn drop(&mut self) {
        let windows = (self.window.take(), self.words.take());
        if self.core.is_in_call() {
            // A window that is dropped inside a call of the world is never freed, as if it were
            // leaked.
            return std::mem::forget((self.core.clone(), windows));
        }
        self.core.close(&Call::named(0, "drop of a LockWindow"));
    }
}

impl<T: Element> Lock<'_, T> {
    /// Ends the epoch: carries out the operations collected since the last flush, and waits until
    /// they are done.
    ///
    /// The whole epoch is then visible to each rank that locks the part later, and tickets hold
    /// their elements.
    ///
    /// # Errors
    /// `RMA_SYNC` if the target has dropped its part (nothing was done there). `PROC_FAILED` if a
    /// rank died while it held the lock of the part, or if the world has ended. If a rank died, the
    /// part may have only some of the changes of that rank. The epoch is over in any case.
    ///
    /// # Cost
    /// If this rank reaches the target's memory, the target makes no call and there is no message.
    /// The cost is that of the operations, plus two atomic operations for each touched region, to
    /// take and to release its lock. A part has at most 16 regions.
    #[doc(alias = "MPI_Win_unlock")]
    #[track_caller]
    #[inline]
    pub fn unlock(self) -> Result<()> {
        let Locked { core, target, .. } = self.locked;
        std::mem::forget(self);
        if core.pass(target, true) {
            return Ok(());
        }
        core.finish(target, true, "Lock::unlock")
    }
}

impl<'w, T: Element> Deref for Lock<'w, T> {
    type Target = Locked<'w, T>;

    fn deref(&self) -> &Locked<'w, T> {
        &self.locked
    }
}

impl<T: Element> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        let call = Call { site: self.site, ..Call::named(0, "drop of a lock") };
        drop_epochs(self.locked.core, [self.locked.target].into_iter(), &call);
    }
}

impl<T: Element> LockAll<'_, T> {
    /// Returns the operations on the part of `target`.
    ///
    /// # Errors
    /// `RANK` for a target out of range.
    #[track_caller]
    pub fn on(&self, target: usize) -> Result<Locked<'_, T>> {
        let data = self.window.data();
        let none = fencepost_planner::datatype::Datatype::empty();
        data.handler.report(data.check(target, &none, Location::caller()))?;
        Ok(self.window.locked(target))
    }

    /// Flushes every part, as [`Locked::flush`] does.
    ///
    /// # Errors
    /// The first error that [`Locked::flush`] finds; the other parts are flushed nevertheless.
    #[doc(alias = "MPI_Win_flush_all")]
    #[track_caller]
    pub fn flush(&self) -> Result<()> {
        let call = Call::named(0, "LockAll::flush");
        let window = self.window;
        let flushes = (0..window.size()).map(|target| window.core.carry_out(target, false, &call));
        window.data().handler.report(first_error(flushes))
    }

    /// Ends the epoch of each part, as [`Lock::unlock`] does.
    ///
    /// # Errors
    /// The first error that [`Lock::unlock`] finds; the epochs of the other parts are ended
    /// nevertheless.
    #[doc(alias = "MPI_Win_unlock_all")]
    #[track_caller]
    pub fn unlock(self) -> Result<()> {
        let call = Call::named(0, "LockAll::unlock");
        let window = self.window;
        std::mem::forget(self);
        let ends = held_first(&window.core).map(|target| window.core.carry_out(target, true, &call));
        window.data().handler.report(first_error(ends))
    }
}

/// Returns all targets. Targets whose locks this rank already holds come first, so that it releases
/// these locks before it waits for others.
fn held_first(core: &LockCore) -> impl Iterator<Item = usize> {
    let held = (0..core.data.world.size).filter(|&target| core.holds(target));
    held.chain((0..core.data.world.size).filter(|&target| !core.holds(target)))
}

/// Ends the epochs of a lock that is dropped. All epochs end before the handler is called with
/// their errors, since the handler may panic.
fn drop_epochs(core: &LockCore, targets: impl Iterator<Item = usize>, call: &Call) {
    if core.is_in_call() {
        return; // nothing can be sent: as if the lock were leaked
    }
    if std::thread::panicking() {
        return targets.for_each(|target| core.discard(target, call));
    }
    let errors: Vec<Error> = targets.filter_map(|target| core.carry_out(target, true, call).err()).collect();
    errors.into_iter().for_each(|error| drop(core.data.handler.reported(error)));
}

/// Computes all results, and returns the first error.
fn first_error(results: impl Iterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for result in results {
        first = first.and(result);
    }
    first
}

impl<T: Element> Drop for LockAll<'_, T> {
    fn drop(&mut self) {
        let (core, call) =
            (&self.window.core, Call { site: self.site, ..Call::named(0, "drop of a lock of all parts") });
        drop_epochs(core, held_first(core), &call);
    }
}

impl<T: Element> LocalPart<'_, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.core.len(self.core.data.world.rank)
    }

    /// Returns whether there are no elements.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the present value of the element at `at`.
    ///
    /// # Errors
    /// `DISP` for an element outside the part. `PROC_FAILED` if a rank died while it changed the
    /// element, or the world has ended.
    #[track_caller]
    pub fn get(&self, at: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.core.load(at, &Call::named(0, "LocalPart::get"), bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }
}
