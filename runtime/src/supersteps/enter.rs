//! What `#[superstep]` calls: entering and leaving a superstep, and the claim that its pattern makes.
//!
//! The pattern of a superstep is a claim about its calls. The first time that a rank runs the superstep, and each time
//! under the checker, the calls made are compared with it at each fence, before anything moves.

use crate::fence;
use crate::protocol::call::handler_of;
use crate::state::call::Call;
use crate::state::supersteps::Plans;
use crate::state::supersteps::Running;
use crate::state::supersteps::Superstep;
use crate::state::supersteps::Supersteps;
use crate::state::window::WindowCore;
use crate::state::windows::{Held, Windows};
use crate::state::world::WorldCore;
use crate::supersteps::claim::Claim;
use crate::supersteps::matched::{self};
use crate::supersteps::uniform::Fnv;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

impl Superstep {
    /// A hash of its name, the same on all ranks of one program.
    pub(crate) fn hash(&self) -> u64 {
        let mut hash = Fnv::default();
        (self.module, self.name).hash(&mut hash);
        hash.finish()
    }
}

/// Begin a superstep.
///
/// # Errors
/// `RMA_SYNC` where operations wait for the fence of one of the windows: every rank's superstep fails then.
#[track_caller]
pub fn enter<'w>(
    superstep: &'static Superstep,
    windows: impl Windows<'w>,
    uniform: u64,
    claim: Option<Claim<'_>>,
) -> Result<Scope> {
    let call = Call::named(superstep.hash() ^ uniform, superstep.name);
    let held = windows.held();
    windows.with(|windows| {
        let Some(first) = windows.first() else {
            return Err(Error::new(ErrorClass::Intern, "a superstep without windows"));
        };
        let world = first.world.clone();
        world.calls.enter();
        let scope = begin(superstep, windows, held, &world, call, claim);
        if scope.is_err() {
            world.calls.leave();
        }
        handler_of(&world, windows).report(scope)
    })
}

fn begin(
    superstep: &'static Superstep,
    windows: &[&WindowCore],
    held: Held,
    world: &Rc<WorldCore>,
    call: Call,
    claim: Option<Claim<'_>>,
) -> Result<Scope> {
    let bound = world.supersteps.bound.take();
    if windows.iter().any(|window| window.key.world != world.id) {
        let message = "the windows of a superstep are of one world: these are of several";
        world.calls.begin();
        return Err(fence::fail(world, windows, &call, call.error(world, ErrorClass::Win, message)));
    }
    if let Some(waiting) = windows.iter().find(|window| window.is_pending()) {
        let message = format!(
            "operations wait for the fence of window {}: fence it before the superstep begins",
            waiting.key.window
        );
        let error = call.error(world, ErrorClass::RmaSync, message);
        windows.iter().for_each(|window| window.discard());
        if let Some(matched) = bound {
            matched.abandon(&held, &error);
            return Err(error.ending_world());
        }
        world.calls.begin();
        return Err(fence::fail(world, windows, &call, error));
    }
    windows.iter().filter(|window| window.apart).for_each(|window| window.begins(call.site));
    if superstep.opens {
        windows.iter().for_each(|window| window.open());
    }
    let claim = match &bound {
        Some(matched) => {
            if let Err(error) = matched.begin(windows, &call) {
                if error.class() == ErrorClass::Assert {
                    return Err(error); // all ranks have asserted it
                }
                matched.abandon(&held, &error);
                return Err(error.ending_world());
            }
            None
        }
        None => world.supersteps.claim(superstep, claim, windows, world),
    };
    let modes = superstep.mode.map(|mode| prefer(&held, [mode; 6]));
    let matched = bound.clone();
    let depth = world.supersteps.begin(Running {
        call,
        superstep,
        windows: held.clone(),
        claim,
        matched,
        next: 0,
        failed: false,
    });
    Ok(Scope {
        superstep,
        call,
        world: world.clone(),
        windows: held,
        modes,
        depth,
        bound,
        ended: Cell::new(false),
        left: false,
    })
}

impl Supersteps {
    fn begin(&self, running: Running) -> usize {
        let mut all = self.running.borrow_mut();
        all.push(running);
        all.len() - 1
    }

    fn end(&self, depth: usize) {
        self.running.borrow_mut().truncate(depth);
    }
}

/// A superstep being run.
#[must_use = "a superstep is left by `leave`"]
pub struct Scope {
    superstep: &'static Superstep,
    call: Call,
    world: Rc<WorldCore>,
    /// The windows that it was entered with.
    windows: Held,
    /// The modes that they preferred before, where the superstep has one of its own.
    modes: Option<[Mode; 6]>,
    depth: usize,
    /// Its plans, where it is prepared.
    bound: Option<Rc<dyn Plans>>,
    /// Whether its last fence is behind it.
    ended: Cell<bool>,
    left: bool,
}

impl Scope {
    /// The last fence of the body is done: what fails from here on fails on this rank only.
    pub fn ended(&self) {
        self.ended.set(true);
    }

    /// End the superstep: with the fence of all its windows, if its body has none of its own. One that failed discards
    /// what it collected, and takes part in the fence so that every rank learns of it.
    ///
    /// # Errors
    /// The error of the body, or of the fence.
    pub fn leave<'w, R, E>(mut self, windows: impl Windows<'w>, result: Result<R, E>) -> Result<R, E>
    where
        E: From<Error> + Display,
    {
        // Where this unwinds, so has the body.
        let failed = result
            .as_ref()
            .err()
            .map(|error| self.call.error(&self.world, ErrorClass::Other, error.to_string()));
        self.left = true;
        let ended = windows.with(|windows| {
            let own = failed.is_some();
            let ended = self.end(windows, failed);
            // Before the handler sees the error: it may panic.
            self.out();
            if own { ended } else { handler_of(&self.world, windows).report(ended) }
        });
        // A body's own error is returned as it is: what the fence says of it is for the others.
        let value = result?;
        ended?;
        Ok(value)
    }

    fn end(&self, windows: &[&WindowCore], failed: Option<Error>) -> Result<()> {
        if let Some(matched) = &self.bound {
            let fences = self.superstep.fences;
            return matched.end(windows, &self.windows, fences, &self.call, failed.map_or(Ok(()), Err));
        }
        if failed.is_none() && self.superstep.fences {
            return self.nothing_open(windows);
        }
        if failed.is_some() {
            windows.iter().for_each(|window| window.discard());
            if self.ended.get() || self.world.supersteps.failed() {
                return Ok(());
            }
        }
        self.world.calls.begin();
        fence::fence(&self.world, windows, &self.call, failed)
    }
}

/// Let `windows` prefer these modes; those that they preferred before.
fn prefer(windows: &Held, mut modes: [Mode; 6]) -> [Mode; 6] {
    for (window, mode) in windows.iter().flatten().zip(&mut modes) {
        *mode = window.mode.replace(*mode);
        window.allow(window.short.get());
    }
    modes
}

impl Scope {
    /// Ends what held for the superstep only.
    fn out(&self) {
        self.world.supersteps.end(self.depth);
        self.world.calls.leave();
        if let Some(modes) = self.modes {
            prefer(&self.windows, modes);
        }
    }

    /// A body with fences of its own leaves nothing that waits for one: calls in helpers are seen here only.
    fn nothing_open(&self, windows: &[&WindowCore]) -> Result<()> {
        let Some(waiting) = windows.iter().find(|window| window.is_pending()) else { return Ok(()) };
        let message = format!(
            "operations on window {} come after the last fence of the superstep: add a fence after them, or move them up",
            waiting.key.window
        );
        windows.iter().for_each(|window| window.discard());
        Err(self.call.error(&self.world, ErrorClass::RmaSync, message))
    }
}

impl Drop for Scope {
    /// The body has unwound: what it collected is gone, and every rank learns of it at its fence.
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let error = self.call.error(&self.world, ErrorClass::Other, "the superstep's body panicked");
        match &self.bound {
            Some(matched) => matched.abandon(&self.windows, &error),
            // The error is for the others: this rank is unwinding already.
            None => drop(matched::with(&self.windows, |windows| self.end(windows, Some(error)))),
        }
        self.out();
    }
}

/// A fence that orders nothing, and is left out.
///
/// # Errors
/// Never.
pub fn orders_nothing() -> Result<()> {
    Ok(())
}

/// A superstep's error as an [`Error`] of Fencepost.
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

/// The error of a superstep that returns one at `line`, where its pattern is recorded.
pub fn left(line: u32) -> Error {
    Error::new(ErrorClass::Other, format!("the superstep returns an error at line {line}"))
}

/// An element whose value does not matter.
pub fn zero<T: bytemuck::Zeroable>() -> T {
    T::zeroed()
}

/// As many elements as the range has, whose values do not matter.
///
/// # Panics
/// Where there is no memory for them: the range was not checked yet, and a failed allocation would end the process.
pub fn zeros<T: bytemuck::Zeroable>(range: std::ops::Range<usize>) -> Vec<T> {
    let mut zeros = Vec::new();
    let room = zeros.try_reserve_exact(range.len());
    assert!(room.is_ok(), "no memory for the {} elements of the section {range:?}", range.len());
    zeros.extend(range.map(|_| T::zeroed()));
    zeros
}
