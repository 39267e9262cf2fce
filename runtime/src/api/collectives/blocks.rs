//! Arrays that are spread over all ranks in blocks, gathered on one rank and scattered from it.

use super::{collective, lists};
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::collective::Operation;
use fencepost_planner::grid::Block;
use fencepost_planner::{ErrorClass, Result};

impl World {
    /// Gathers an array that is spread over all ranks in blocks: `root` gets all of its cells, row-major, and the others `None`.
    /// `cells` is the local storage of this rank's `block`, of which its own cells are taken; halos are not.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// # use fencepost_planner::grid::Block;
    /// # fencepost::ranks(2).run(|world| {
    /// let block = Block::new(world, [4, 3])?.halo(1)?;
    /// let mut u = world.window::<f64>(block.len())?;
    /// block.fill(&mut u, |[i, j]| (10 * i + j) as f64);
    /// if let Some(all) = world.gather_block(0, &block, &u)? {
    ///     assert_eq!(all, [0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0, 30.0, 31.0, 32.0]);
    /// }
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// ARG if `block` is not this rank's block in this world. SIZE if `cells` has not as many elements as `block` stores. RMA_SYNC
    /// if ranks give arrays of different sizes, and on the root if other blocks than its own cut the array differently. Else as
    /// [`World::broadcast`].
    ///
    /// # Cost
    /// That of [`World::gather`] of each block's own cells, which are copied once more on both sides.
    #[track_caller]
    pub fn gather_block<T: Element, const D: usize>(
        &self,
        root: usize,
        block: &Block<D>,
        cells: &[T],
    ) -> Result<Option<Vec<T>>> {
        let call = collective::<T>("World::gather_block", 11, None, root, block.global().iter().product());
        let checked = self.check_root(root, &call).and_then(|()| self.check_block(block, cells.len(), &call));
        self.collective(&call, checked, || {
            let own: Vec<T> = block.rows().flat_map(|row| row.of(cells)).copied().collect();
            let parts = lists::exchange(self, &call, Operation::Gather { root: root as u32 }, |_| &own)?;
            if self.rank() != root {
                return Ok(None);
            }
            let cells = block.global().iter().product();
            let mut all = Vec::new();
            if all.try_reserve_exact(cells).is_err() {
                let message = format!("there is no memory for the {cells} cells of the array");
                return Err(call.error(self.core(), ErrorClass::NoMem, message));
            }
            all.resize(cells, T::zeroed());
            for (rank, part) in parts.iter().enumerate() {
                let theirs = block.of(rank)?;
                if part.len() != theirs.extent().iter().product() {
                    let message = format!(
                        "rank {rank} has a block of {} cells, where the root's would have it own {:?}: all ranks must build their blocks with the same options",
                        part.len(),
                        theirs.extent()
                    );
                    return Err(call.error(self.core(), ErrorClass::RmaSync, message));
                }
                let mut rest = &part[..];
                for (first, len) in places(&theirs) {
                    let (row, others) = rest.split_at(len);
                    all[first..][..len].copy_from_slice(row);
                    rest = others;
                }
            }
            Ok(Some(all))
        })
    }

    /// Scatters an array from one rank: the own cells of each rank's `block`, in its local storage `cells`, become those that `root`
    /// gives in `all`, which are those of the whole array, row-major. Halos are left as they are. What ranks other than `root`
    /// give as `all` is not read, and may be empty.
    ///
    /// # Errors
    /// ARG if `block` is not this rank's block in this world. SIZE if `cells` has not as many elements as `block` stores, or if
    /// the root's `all` has not as many as the array has cells. RMA_SYNC if ranks give arrays of different sizes, or blocks that
    /// cut them differently. Else as [`World::broadcast`].
    ///
    /// # Cost
    /// That of [`World::all_to_all`] of lists that are empty but for the root's, which are a copy of the array.
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    #[track_caller]
    pub fn scatter_block<T: Element, const D: usize>(
        &self,
        root: usize,
        block: &Block<D>,
        all: &[T],
        cells: &mut [T],
    ) -> Result<()> {
        let number = block.global().iter().product();
        let call = collective::<T>("World::scatter_block", 12, None, root, number);
        let is_root = self.rank() == root;
        let checked = self.check_root(root, &call).and_then(|()| self.check_block(block, cells.len(), &call));
        let checked = checked.and_then(|()| {
            if is_root && all.len() != number {
                let message = format!(
                    "{} elements for an array of {:?} cells: give all of them",
                    all.len(),
                    block.global()
                );
                return Err(call.error(self.core(), ErrorClass::Size, message));
            }
            Ok(())
        });
        self.collective(&call, checked, || {
            let part = |rank| -> Result<Vec<T>> {
                Ok(places(&block.of(rank)?).flat_map(|(first, len)| &all[first..][..len]).copied().collect())
            };
            let parts: Vec<Vec<T>> =
                if is_root { (0..self.size()).map(part).collect::<Result<_>>()? } else { Vec::new() };
            let operation = Operation::AllToAll;
            let found = lists::exchange(self, &call, operation, |to| parts.get(to).map_or(&[], |part| &part[..]))?;
            let own = &found[root];
            if own.len() != block.extent().iter().product() {
                let message = format!(
                    "the root's block has {} cells for this rank, which owns {:?}: all ranks must build their blocks with the same options",
                    own.len(),
                    block.extent()
                );
                return Err(call.error(self.core(), ErrorClass::RmaSync, message));
            }
            let mut rest = &own[..];
            for row in block.rows() {
                let (cells_of_row, others) = rest.split_at(row.len());
                row.of_mut(cells).copy_from_slice(cells_of_row);
                rest = others;
            }
            Ok(())
        })
    }

    fn check_block<const D: usize>(&self, block: &Block<D>, cells: usize, call: &Call) -> Result<()> {
        let wrong = |class, message| Err(call.error(self.core(), class, message));
        if block.ranks() != self.size() || block.of(self.rank())? != *block {
            return wrong(
                ErrorClass::Arg,
                format!(
                    "a block that is not the one of rank {} of {}: make it by `Block::new` of this world",
                    self.rank(),
                    self.size()
                ),
            );
        }
        if cells != block.len() {
            return wrong(
                ErrorClass::Size,
                format!(
                    "{cells} elements for a block that stores {}, its halo included: give all of its local storage, of `block.len()` elements",
                    block.len()
                ),
            );
        }
        Ok(())
    }
}

/// Returns where a block's own rows begin in the whole array, row-major, and how long they are.
fn places<const D: usize>(block: &Block<D>) -> impl Iterator<Item = (usize, usize)> {
    let (global, origin) = (block.global(), block.origin());
    block.rows().map(move |row| {
        let first = row.first();
        let at = (0..D).fold(0, |at, d| at * global[d] + origin[d].wrapping_add_signed(first[d]));
        (at, row.len())
    })
}
