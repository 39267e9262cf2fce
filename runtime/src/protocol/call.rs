//! The parts of a call that other ranks see: its description, its hash, its errors, and the handler
//! that sees the errors.

use crate::collect::operation::WindowKey;
use crate::posts::state::ports::ports_of;
use crate::state::assertions::Assertions;
use crate::state::call::Call;
use crate::state::handler::Handler;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::Port;
use std::panic::Location;

impl Call {
    /// Returns whether the name of the call is the name of a superstep, and not of a function of
    /// this library.
    pub(crate) fn is_superstep(&self) -> bool {
        self.name.is_some_and(|name| !name.contains("::") && !name.contains(' '))
    }

    pub(crate) fn describe(&self, windows: &[&WindowCore]) -> String {
        use std::fmt::Write;
        let mut text = match self.name {
            Some(name) if self.is_superstep() => {
                format!("superstep {name} ({}:{})", self.site.file(), self.site.line())
            }
            Some(name) => format!("{name} ({}:{})", self.site.file(), self.site.line()),
            None => format!("a fence at {}:{}", self.site.file(), self.site.line()),
        };
        for (i, window) in windows.iter().enumerate() {
            let _ = write!(text, "{} {}", if i == 0 { " of window" } else { "," }, window.key.window);
        }
        if self.asserted != Assertions::NONE {
            let _ = write!(text, " asserting {}", self.asserted);
        }
        if let Some(arguments) = self.arguments {
            let _ = write!(text, " with {arguments}");
        }
        text
    }

    pub(crate) fn error(&self, world: &WorldCore, class: ErrorClass, message: impl Into<String>) -> Error {
        let error = Error::new(class, message).on_rank(world.rank).at(self.site);
        match self.name {
            Some(name) if self.is_superstep() => error.in_superstep(name),
            _ => error,
        }
    }

    pub(crate) fn not_in_fence(
        &self,
        world: &WorldCore,
        key: WindowKey,
        site: &'static Location<'static>,
    ) -> Error {
        let message = format!(
            "window {} has a section in this epoch but is not in its fence: fence all of them together, `world.fence((&mut u, &mut v))?`",
            key.window
        );
        Error::new(ErrorClass::RmaSync, message).on_rank(world.rank).at(site)
    }
}

impl WorldCore {
    /// Returns the number of the window or of the split that `call` is about to make. The number is
    /// the same on all ranks.
    ///
    /// # Errors
    /// `NO_MEM` if the world has used all numbers. Every rank gets this error, before any exchange.
    pub(crate) fn next_made(&self, call: &Call) -> Result<u32> {
        let number = self.calls.made.get();
        if number < u32::MAX {
            return Ok(number);
        }
        let message = format!(
            "this world has made {number} windows and splits, and a world makes no more: split the world, and make the window in a part"
        );
        Err(call.error(self, ErrorClass::NoMem, message))
    }

    /// Returns the port for the object that `call` is about to make. The port is the same on all
    /// ranks.
    ///
    /// # Errors
    /// `NO_MEM` if the world has used all ports. Every rank gets this error, before any exchange.
    pub(crate) fn next_port(&self, call: &Call) -> Result<Port> {
        let number = self.calls.made.get();
        ports_of(number).map(|[port, ..]| port).ok_or_else(|| {
            let message = format!(
                "this world has made {number} windows, splits and plans of posts and starts, and there are no more ports: split the world, and prepare the superstep in a part"
            );
            call.error(self, ErrorClass::NoMem, message)
        })
    }

    /// Checks that `call`, a call of all ranks, may be made. It may not be made after the world has
    /// ended, or between the two halves of a superstep.
    ///
    /// # Errors
    /// `PROC_FAILED`, or `RMA_SYNC` with the line of the first half.
    #[inline(always)]
    pub(crate) fn admits(&self, call: &Call) -> Result<()> {
        self.alive()?;
        match self.supersteps.begun.get() {
            None => Ok(()),
            Some(begun) => Err(self.refuse_between(call, begun)),
        }
    }

    #[cold]
    fn refuse_between(&self, call: &Call, begun: &Location<'_>) -> Error {
        let message = format!(
            "the superstep that was begun at {}:{} is not finished: until then no other call of all ranks of its world may be made",
            begun.file(),
            begun.line()
        );
        call.error(self, ErrorClass::RmaSync, message)
    }

    /// Returns a copy of `call` whose hash includes the current order. `call` ends or prepares an
    /// epoch.
    pub(crate) fn ordered(&self, call: &Call) -> Call {
        match self.choices.order.get() {
            Order::Canonical => *call,
            Order::Relaxed => Call { hash: call.hash ^ 0x3c6e_f372_fe94_f82b, ..*call },
        }
    }
}

/// Returns the hash of a superstep and its windows.
///
/// Ranks that meet in a call compare the whole hash. In notifications, the epoch's number is mixed
/// into the hash ([`notification_word`]). Frames contain the number separately.
#[inline(always)]
pub(crate) fn hash(world: &WorldCore, call: &Call, windows: &[&WindowCore]) -> u64 {
    let windows = windows.iter().map(|window| window.key.window);
    world.calls.key.word_of(call.hash, windows, world.calls.position())
}

/// Returns the word in the notifications of an epoch. `word` contains the number of the epoch.
///
/// If the hashes of two epochs are equal, their words differ exactly if the epochs' numbers differ.
/// For this purpose the last coefficient of [`hash`] is 0, and the number takes its place.
pub(crate) fn notification_word(word: u64, hash: u64) -> u64 {
    hash + (word >> 32)
}

/// Returns the handler that sees the errors of a fence or a superstep of these windows. For a
/// single window this is the window's handler, otherwise the world's.
pub(crate) fn handler_of<'a>(world: &'a WorldCore, windows: &[&'a WindowCore]) -> &'a Handler {
    match windows {
        [window] => &window.handler,
        _ => &world.handler,
    }
}
