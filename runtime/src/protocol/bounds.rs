//! Checks of the elements that a call touches, and the errors of these checks. Windows and
//! recorders use these checks.

use crate::collect::operation::{TargetRegion, WindowKey};
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::{Error, ErrorClass, Result};
use std::panic::Location;

/// The reason why a call is refused: the class and the message. The window or recorder adds the
/// rank and the line.
pub(crate) type Refusal = (ErrorClass, String);

/// Checks that both sides of a call have the same number of elements.
pub(crate) fn sizes(given: usize, asked: usize) -> std::result::Result<(), Refusal> {
    if given == asked {
        return Ok(());
    }
    let message =
        format!("{given} elements at the origin and {asked} at the target: both sides must have as many");
    Err((ErrorClass::Size, message))
}

/// Checks that all of `remote` is in the part of rank `target`, which has `len` elements.
pub(crate) fn within(remote: &Datatype, target: usize, len: usize) -> std::result::Result<(), Refusal> {
    if !outside(remote, len) {
        return Ok(());
    }
    let message = format!(
        "elements {}..{} are not all in the window of rank {target}, which has {len} elements there{}",
        remote.low(),
        remote.high(),
        of_a_block(remote, len)
    );
    Err((ErrorClass::Disp, message))
}

/// Checks that all of `elements` is in a slice of `len` elements.
pub(crate) fn in_slice(elements: &Datatype, len: usize) -> std::result::Result<(), Refusal> {
    if !outside(elements, len) {
        return Ok(());
    }
    let message = format!(
        "elements {}..{} are not all in the slice of {len} elements",
        elements.low(),
        elements.high()
    );
    Err((ErrorClass::Disp, message))
}

/// Returns the advice for a window that may have been made for a block without its halo.
fn of_a_block(elements: &Datatype, len: usize) -> &'static str {
    let is_beyond_the_end = elements.low() >= 0 && elements.high() > len as i64;
    if is_beyond_the_end {
        ": a window for a block has `block.len()` elements, which counts its halo, and all ranks build their blocks with the same options"
    } else {
        ""
    }
}

fn outside(elements: &Datatype, len: usize) -> bool {
    !elements.is_empty() && (elements.low() < 0 || elements.high() > len as i64)
}

/// Returns the error message for a call that would collect an operation or fence while a window is
/// open.
pub(crate) fn still_open(open: &str) -> String {
    format!(
        "{open}: wait for its exposure, or complete the access, before operations are collected for its fence"
    )
}

impl WindowCore {
    /// Checks that operations may be collected for the window's fence: the window must not be open.
    ///
    /// # Errors
    /// `RMA_SYNC`, with the line that left the window open.
    pub(crate) fn may_collect(&self, site: &'static Location<'static>) -> Result<()> {
        match self.open_since() {
            None => Ok(()),
            Some(open) => Err(self.error(ErrorClass::RmaSync, still_open(&open), site)),
        }
    }

    /// Checks that `remote` can be touched at `target`.
    pub(crate) fn check(
        &self,
        target: usize,
        remote: &Datatype,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let Some(peer) = self.peers.get(target) else {
            return Err(self.error(
                ErrorClass::Rank,
                format!(
                    "target rank {target} is not one of the window's {} ranks (0 to {})",
                    self.peers.len(),
                    self.peers.len() - 1
                ),
                site,
            ));
        };
        within(remote, target, peer.len).map_err(|(class, message)| self.error(class, message, site))
    }

    /// Returns the elements of `target`'s window in `region`, which must be `count` elements.
    pub(crate) fn region(
        &self,
        target: usize,
        region: TargetRegion,
        count: usize,
        site: &'static Location<'static>,
    ) -> Result<Datatype> {
        if let (TargetRegion::At(at), Some(peer)) = (&region, self.peers.get(target))
            && count > 0
            && at.checked_add(count).is_none_or(|end| end > peer.len)
        {
            let len = peer.len;
            let message = format!(
                "{count} elements from {at} on are not all in the window of rank {target}, which has {len} elements there"
            );
            return Err(self.error(ErrorClass::Disp, message, site));
        }
        let remote = if count == 0 && matches!(region, TargetRegion::At(_)) {
            Datatype::empty()
        } else {
            region.datatype(count)
        };
        self.sizes(count, remote.size(), site)?;
        self.check(target, &remote, site)?;
        Ok(remote)
    }

    /// Checks that `section` is within this rank's part of `window`. The fence checks whether the
    /// window takes part.
    pub(crate) fn check_own(
        &self,
        window: Option<WindowKey>,
        section: &Datatype,
        site: &'static Location<'static>,
    ) -> Result<()> {
        let key = window.unwrap_or(self.key);
        if key.world != self.key.world {
            return Err(self.error(
                ErrorClass::Win,
                "a section of a window of another world cannot take part: use windows of one world".into(),
                site,
            ));
        }
        let own = |window: &Self| (window.peers[window.world.rank].len, window.element);
        let (len, element) = if key == self.key {
            own(self)
        } else {
            self.world.windows.names_sections();
            let other = self.world.windows.collecting(key);
            if let Some(open) = other.as_ref().and_then(|other| other.open_since()) {
                return Err(self.error(ErrorClass::RmaSync, still_open(&open), site));
            }
            other
                .map(|other| own(&other))
                .or_else(|| self.world.windows.own(key))
                .unwrap_or((0, self.element))
        };
        // The user's own `Section` or `Source` may name any window.
        if element != self.element {
            return Err(self.error(
                ErrorClass::Type,
                format!("the section is of a window of {element}, and this window has elements of {}: both must have one type", self.element),
                site,
            ));
        }
        if outside(section, len) {
            return Err(self.error(
                ErrorClass::Disp,
                format!(
                    "the section {}..{} is not all in this rank's window of {len} elements{}",
                    section.low(),
                    section.high(),
                    of_a_block(section, len)
                ),
                site,
            ));
        }
        Ok(())
    }

    /// Checks that both sides of a call have the same number of elements.
    pub(crate) fn sizes(&self, given: usize, asked: usize, site: &'static Location<'static>) -> Result<()> {
        sizes(given, asked).map_err(|(class, message)| self.error(class, message, site))
    }

    pub(crate) fn error(
        &self,
        class: ErrorClass,
        message: String,
        site: &'static Location<'static>,
    ) -> Error {
        Error::new(class, message).on_rank(self.world.rank).at(site)
    }
}
