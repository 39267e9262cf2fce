//! [`Group`]: ranks of a world, which a post or a start names.

use crate::state::window_core::WindowCore;
use crate::state::world::World;
use fencepost_planner::{Error, ErrorClass, Result};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

/// Some ranks of a world: the sources of a [post](crate::Window::post), or the targets of a
/// [start](crate::Window::start).
///
/// A group is a set. It may be empty, and may contain the calling rank. A clone refers to the same
/// ranks.
#[derive(Clone, PartialEq, Eq)]
pub struct Group {
    world: u64,
    /// The ranks, ascending and without repetitions.
    ranks: Rc<[usize]>,
}

impl World {
    /// Returns the group of these ranks.
    ///
    /// Order and repetition do not matter, and no other rank has to make this call.
    ///
    /// # Errors
    /// `RANK` for a rank that the world does not have.
    ///
    /// # Source
    /// MPI 4.1, section 7.3.2 (MPI_GROUP_INCL).
    #[doc(alias = "MPI_Group_incl")]
    #[track_caller]
    pub fn group(&self, ranks: impl IntoIterator<Item = usize>) -> Result<Group> {
        let core = self.core();
        let mut all: Vec<usize> = ranks.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        match all.last() {
            Some(&last) if last >= core.size => {
                let message = format!(
                    "rank {last} is not one of the world's {} ranks (0 to {})",
                    core.size,
                    core.size - 1
                );
                let error = Error::new(ErrorClass::Rank, message).on_rank(core.rank).at(Location::caller());
                Err(core.handler.reported(error))
            }
            _ => Ok(Group { world: core.id, ranks: all.into() }),
        }
    }
}

impl Group {
    /// Returns the ranks, ascending.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Returns the ranks, after a check that `window` belongs to the world of the group.
    ///
    /// # Errors
    /// `ARG` for a window of another world.
    pub(crate) fn of(&self, window: &WindowCore, site: &'static Location<'static>) -> Result<&Rc<[usize]>> {
        if self.world == window.key.world {
            return Ok(&self.ranks);
        }
        let message = "the group is of another world than the window: make it with `group` of the world that made the window";
        Err(window.error(ErrorClass::Arg, message.into(), site))
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&*self.ranks).finish()
    }
}
