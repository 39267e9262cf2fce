//! The calls of `#[superstep]`: entering and leaving a superstep, and the claim that its pattern
//! makes.
//!
//! The pattern of a superstep is a claim about its calls. When a rank runs the superstep for the
//! first time, and each time under the checker, its calls are compared with the claim at each
//! fence, before anything moves.

use crate::fence;
use crate::protocol::call::handler_of;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::window_core::{Few, Held, held, with};
use crate::state::windows::Windows;
use crate::state::world::WorldCore;
use crate::supersteps::claim::Claim;
use crate::supersteps::state::Superstep;
use crate::supersteps::state::Supersteps;
use crate::supersteps::state::{Plans, Running, Special};
use crate::supersteps::uniform::Fnv;
use fencepost_planner::ir::pattern::{Mode, Sync};
use fencepost_planner::{Error, ErrorClass, Result};
use std::any::Any;
use std::fmt::Display;
use std::hash::{Hash as _, Hasher as _};
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

impl Superstep {
    /// Returns a hash of the superstep's name, which is the same on all ranks of one program.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        self.known().0
    }

    /// Returns the superstep's number among the supersteps that this process has entered.
    #[inline]
    pub(super) fn number(&self) -> usize {
        self.known().1
    }

    #[inline]
    fn known(&self) -> (u64, usize) {
        static NUMBERED: AtomicUsize = AtomicUsize::new(0);
        *self.known.0.get_or_init(|| {
            let mut hash = Fnv::default();
            (self.module, self.name).hash(&mut hash);
            // Relaxed: the number only has to differ between supersteps.
            (hash.finish(), NUMBERED.fetch_add(1, Ordering::Relaxed))
        })
    }
}

/// Begins a superstep.
///
/// # Errors
/// `RMA_SYNC` if operations wait for the fence of one of the windows: in that case every rank's
/// superstep fails.
#[track_caller]
pub fn enter<'w>(
    superstep: &'static Superstep,
    windows: impl Windows<'w>,
    uniform: u64,
    claim: Option<Claim<'_>>,
) -> Result<Scope> {
    let (hash, site) = (superstep.hash() ^ uniform, Location::caller());
    windows.shared(|windows| begin(superstep, windows, hash, site, claim))
}

fn begin(
    superstep: &'static Superstep,
    windows: &[&Rc<WindowCore>],
    hash: u64,
    site: &'static Location<'static>,
    claim: Option<Claim<'_>>,
) -> Result<Scope> {
    let Some(first) = windows.first() else {
        return Err(Error::new(ErrorClass::Intern, "a superstep without windows"));
    };
    let world = &first.world;
    let compared = claim.is_some() && world.supersteps.compares(superstep);
    // A loop, since the closure of an iterator is not inlined here.
    let mut is_hindered = false;
    for window in windows {
        is_hindered |= hinders(world, window);
    }
    let is_plain = !compared
        && !is_hindered
        && superstep.mode.is_none()
        && !superstep.opens
        && world.reach.is_all
        && world.supersteps.begun.get().is_none()
        && world.supersteps.bound.borrow().is_none();
    if !is_plain {
        return begin_specially(superstep, windows, hash, site, claim.filter(|_| compared));
    }
    world.calls.enter();
    Ok(push(superstep, windows, hash, site, None))
}

/// Returns whether this window keeps a superstep from beginning.
#[inline(always)]
fn hinders(world: &WorldCore, window: &WindowCore) -> bool {
    window.key.world != world.id || window.is_pending() || window.is_open()
}

/// Begins a superstep in the cases that [`begin`] does not cover. The superstep may be prepared, be
/// compared with its pattern, have a mode, or begin with a fence. A window or another superstep may
/// prevent it from beginning, or there may be ranks whose memory this rank does not reach.
fn begin_specially(
    superstep: &'static Superstep,
    windows: &[&Rc<WindowCore>],
    hash: u64,
    site: &'static Location<'static>,
    claim: Option<Claim<'_>>,
) -> Result<Scope> {
    let world = &windows[0].world;
    let call =
        || Call { hash, name: Some(superstep.name), asserted: Assertions::NONE, arguments: None, site };
    let matched = world.supersteps.bound.take();
    let is_apart = matched.as_ref().is_some_and(|matched| matched.sync() == Sync::Pscw);
    if is_apart {
        world.calls.enter_apart();
    } else {
        world.calls.enter();
    }
    let refused = match &matched {
        Some(matched) if is_apart => matched.admits(&call()).err(),
        _ if world.supersteps.begun.get().is_some() => world.admits(&call()).err(),
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(refuse_between(world, windows, refused));
    }
    if windows.iter().any(|window| hinders(world, window)) {
        return Err(refuse(world, windows, &call(), matched));
    }
    for window in windows {
        if window.peers.far {
            window.begins(site);
        }
        if superstep.opens {
            window.open();
        }
    }
    if let Some(matched) = &matched {
        match_calls(world, windows, &call(), &**matched)?;
    }
    let claim = claim
        .filter(|_| matched.is_none())
        .and_then(|claim| cores(windows, |windows| world.supersteps.claim(superstep, claim, windows, world)));
    let modes: Option<Few<Mode>> =
        superstep.mode.map(|mode| windows.iter().map(|window| prefer(window, mode)).collect());
    let is_special = modes.is_some() || claim.is_some() || matched.is_some();
    let special = is_special.then_some(Special { modes, claim, matched });
    Ok(push(superstep, windows, hash, site, special))
}

/// Adds a superstep to those that the rank is in.
#[inline(always)]
fn push(
    superstep: &'static Superstep,
    windows: &[&Rc<WindowCore>],
    hash: u64,
    site: &'static Location<'static>,
    special: Option<Special>,
) -> Scope {
    let world = &windows[0].world;
    let mut entered = world.supersteps.entered.borrow_mut();
    let first = entered.len();
    for window in windows {
        entered.push((*window).clone());
    }
    let mut running = world.supersteps.running.borrow_mut();
    let (depth, place) = running.push(superstep, hash, site, first);
    if special.is_some() {
        place.special = special;
    }
    Scope { world: world.clone(), depth, left: false }
}

/// Returns the error of a superstep that begins between the two halves of another superstep.
#[cold]
fn refuse_between(world: &WorldCore, windows: &[&Rc<WindowCore>], error: Error) -> Error {
    world.calls.leave();
    cores(windows, |windows| handler_of(world, windows).reported(error))
}

/// Returns the error of a superstep that cannot begin. Either operations wait for a fence, or the
/// windows are of several worlds. All ranks get an error.
#[cold]
fn refuse(
    world: &WorldCore,
    windows: &[&Rc<WindowCore>],
    call: &Call,
    matched: Option<Rc<dyn Plans>>,
) -> Error {
    let entered = held(windows.iter().copied());
    cores(windows, |windows| {
        let foreign = windows.iter().any(|window| window.key.world != world.id);
        let waiting = windows.iter().find(|window| window.is_pending());
        let open = windows.iter().find_map(|window| window.open_since());
        let error = match (waiting, open) {
            (_, Some(open)) if !foreign => {
                let message = format!(
                    "{open}: complete the access, or wait for the exposure, before the superstep begins"
                );
                windows.iter().for_each(|window| window.discard());
                call.error(world, ErrorClass::RmaSync, message)
            }
            (Some(waiting), _) if !foreign => {
                let message = format!(
                    "operations wait for the fence of window {}: fence it before the superstep begins",
                    waiting.key.window
                );
                windows.iter().for_each(|window| window.discard());
                call.error(world, ErrorClass::RmaSync, message)
            }
            _ => {
                let message = "the windows of a superstep are of one world: these are of several";
                call.error(world, ErrorClass::Win, message)
            }
        };
        let error = match matched {
            Some(matched) if !foreign => {
                matched.abandon(&entered, &error);
                error.ending_world()
            }
            _ => {
                world.calls.begin();
                fence::fail(world, windows, call, error)
            }
        };
        world.calls.leave();
        handler_of(world, windows).reported(error)
    })
}

/// Matches the calls on `windows` with plans from here on.
#[cold]
fn match_calls(
    world: &WorldCore,
    windows: &[&Rc<WindowCore>],
    call: &Call,
    matched: &dyn Plans,
) -> Result<()> {
    let entered = held(windows.iter().copied());
    cores(windows, |windows| {
        let began = matched.begin(windows, call).map_err(|error| {
            if error.class() == ErrorClass::Assert {
                return error; // all ranks have asserted NOSUCCEED
            }
            matched.abandon(&entered, &error);
            error.ending_world()
        });
        if began.is_err() {
            world.calls.leave();
        }
        handler_of(world, windows).report(began)
    })
}

/// Passes these windows to `act` in the form in which a fence takes them.
fn cores<R>(windows: &[&Rc<WindowCore>], act: impl FnOnce(&[&WindowCore]) -> R) -> R {
    let all: Few<&WindowCore> = windows.iter().map(|window| &***window).collect();
    act(&all)
}

impl Supersteps {
    /// Calls `look` with the superstep at this depth.
    #[inline(always)]
    fn at<R>(&self, depth: usize, look: impl FnOnce(&mut Running) -> R) -> R {
        look(self.running.borrow_mut().at(depth))
    }
}

/// A superstep that is being run.
#[must_use = "a superstep is left by `leave`"]
pub struct Scope {
    world: Rc<WorldCore>,
    /// The depth of this superstep among the supersteps that the rank is in.
    depth: usize,
    left: bool,
}

impl Scope {
    /// Notes that the last fence of the body is done. An error from here on concerns only this
    /// rank.
    pub fn ended(&self) {
        self.world.supersteps.at(self.depth, |running| running.ended = true);
    }

    /// Ends the superstep, with a fence of all its windows if its body has no fence.
    ///
    /// If the body has failed, discards its collected operations. Takes part in the fence
    /// nevertheless, so that every rank gets an error.
    ///
    /// # Errors
    /// The error of the body, or of the fence.
    pub fn leave<'w, R, E>(self, windows: impl Windows<'w>, result: Result<R, E>) -> Result<R, E>
    where
        E: From<Error> + Display,
    {
        // If the user's `Display` panics here, the superstep ends as if its body had panicked.
        let failed = result.as_ref().err().map(|error| self.error(error.to_string()));
        let ended = windows.with(|windows| self.over(windows, failed));
        // The error of the body is returned unchanged. In that case the fence has notified the
        // other ranks, and its own error is not needed.
        let value = result?;
        ended?;
        Ok(value)
    }

    fn over(mut self, windows: &[&WindowCore], failed: Option<Error>) -> Result<()> {
        self.left = true;
        let own = failed.is_some();
        let ended = self.end(windows, failed);
        // The superstep is left before the handler sees the error, since the handler may panic.
        self.out();
        if own { ended } else { handler_of(&self.world, windows).report(ended) }
    }

    fn error(&self, message: impl Into<String>) -> Error {
        let call = self.world.supersteps.at(self.depth, |running| running.call());
        call.error(&self.world, ErrorClass::Other, message)
    }

    #[inline(always)]
    fn end(&self, windows: &[&WindowCore], failed: Option<Error>) -> Result<()> {
        let supersteps = &self.world.supersteps;
        let (call, superstep, ended, prepared) = supersteps.at(self.depth, |running| {
            (running.call(), running.superstep, running.ended, running.matched().is_some())
        });
        let fences = superstep.fences;
        if prepared {
            return self.end_prepared(windows, fences, &call, failed.map_or(Ok(()), Err));
        }
        if failed.is_none() && fences {
            return self.nothing_open(windows, &call);
        }
        if failed.is_some() {
            windows.iter().for_each(|window| window.discard());
            if ended || supersteps.failed() {
                return Ok(());
            }
        }
        self.world.calls.begin();
        fence::fence(&self.world, windows, &call, failed)
    }

    #[inline(never)]
    fn end_prepared(
        &self,
        windows: &[&WindowCore],
        fences: bool,
        call: &Call,
        result: Result<()>,
    ) -> Result<()> {
        match self.plans() {
            (Some(matched), entered) => matched.end(windows, &entered, fences, call, result),
            (None, _) => result,
        }
    }

    /// Returns the plans of the superstep, if it is prepared, and the windows with which it was
    /// entered.
    fn plans(&self) -> (Option<Rc<dyn Plans>>, Held) {
        let supersteps = &self.world.supersteps;
        let (matched, windows) =
            supersteps.at(self.depth, |running| (running.matched().cloned(), running.windows));
        (matched, held(&supersteps.entered.borrow()[windows..]))
    }

    /// Ends the settings that hold only during the superstep.
    #[inline(always)]
    fn out(&self) {
        let supersteps = &self.world.supersteps;
        let mut running = supersteps.running.borrow_mut();
        let own = running.at(self.depth);
        let windows = own.windows;
        // Most supersteps have no `special`, and nothing is moved.
        let special = if own.special.is_some() { own.special.take() } else { None };
        running.truncate(self.depth);
        drop(running);
        let mut entered = supersteps.entered.borrow_mut();
        if let Some(modes) = special.and_then(|special| special.modes) {
            entered[windows..].iter().zip(modes).for_each(|(window, mode)| _ = prefer(window, mode));
        }
        entered.truncate(windows);
        drop(entered);
        self.world.calls.leave();
    }

    /// Checks that a body with fences of its own leaves no operation that waits for a fence. Calls
    /// in helper functions are checked only here.
    fn nothing_open(&self, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let Some(waiting) = windows.iter().find(|window| window.is_pending()) else { return Ok(()) };
        let message = format!(
            "operations on window {} come after the last fence of the superstep: add a fence after them, or move them up",
            waiting.key.window
        );
        windows.iter().for_each(|window| window.discard());
        Err(call.error(&self.world, ErrorClass::RmaSync, message))
    }
}

/// Sets the mode that `window` prefers, and returns the previous mode.
fn prefer(window: &WindowCore, mode: Mode) -> Mode {
    let before = window.fence.mode.replace(mode);
    window.allow(window.is_short());
    before
}

impl Drop for Scope {
    /// Discards the operations that a body had collected before it unwound. Every rank gets an
    /// error at its fence.
    fn drop(&mut self) {
        if !self.left {
            self.unwound();
        }
    }
}

impl Scope {
    #[cold]
    fn unwound(&self) {
        let error = self.error("the superstep's body panicked");
        let (matched, entered) = self.plans();
        match matched {
            Some(matched) => matched.abandon(&entered, &error),
            // Only the other ranks get the error: this rank is already unwinding.
            None => drop(with(&entered, |windows| self.end(windows, Some(error)))),
        }
        self.out();
    }
}

/// Converts a superstep's error to an [`Error`] of Fencepost.
pub fn error_of<E: Display + 'static>(error: E) -> Error {
    let mut error = Some(error);
    if let Some(ours) = (&mut error as &mut dyn Any).downcast_mut::<Option<Error>>()
        && let Some(ours) = ours.take()
    {
        return ours;
    }
    let message = error.map_or_else(String::new, |error| error.to_string());
    Error::new(ErrorClass::Other, message)
}

/// Returns the error of a recording that ends early, because the superstep returns an error at
/// `line`.
pub fn left(line: u32) -> Error {
    Error::new(ErrorClass::Other, format!("the superstep returns an error at line {line}"))
}

/// Returns an element whose value does not matter.
pub fn zero<T: bytemuck::Zeroable>() -> T {
    T::zeroed()
}

/// Returns one element for each index of the range. Their values do not matter.
///
/// # Panics
/// Panics if there is no memory for the elements. The range was not checked yet, and a failed
/// allocation would end the process.
#[track_caller]
pub fn zeros<T: bytemuck::Zeroable>(range: std::ops::Range<usize>) -> Vec<T> {
    let mut zeros = Vec::new();
    let room = zeros.try_reserve_exact(range.len());
    assert!(room.is_ok(), "no memory for the {} elements of the section {range:?}", range.len());
    zeros.extend(range.map(|_| T::zeroed()));
    zeros
}
