//! Arrays that are distributed over all ranks in blocks, gathered on one rank and scattered from
//! it.

use super::{lists, of_block};
use crate::check::order::Orders;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::world::World;
use fencepost_planner::collective::Operation;
use fencepost_planner::grid::Block;
use fencepost_planner::{ErrorClass, Result};

impl World {
    /// Gathers an array that is distributed over all ranks in blocks.
    ///
    /// `root` gets all cells of the array in row-major order, and the other ranks get `None`.
    /// `cells` is the local storage of this rank's `block`. The block's own cells are gathered, its
    /// halos are not.
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
    /// ARG if `block` is not this rank's block in this world. SIZE if the length of `cells` is not
    /// the number of elements that `block` stores. NO_MEM on each rank that has no memory for its
    /// own cells, and on the root alone if it has no memory for all cells. RMA_SYNC on all ranks if
    /// ranks give blocks of arrays of different sizes, or of different grids of ranks. Otherwise as
    /// [`World::broadcast`].
    ///
    /// # Cost
    /// The cost of [`World::gather`] of each block's own cells. The cells are copied once more on
    /// both sides.
    #[track_caller]
    pub fn gather_block<T: Element, const D: usize>(
        &self,
        root: usize,
        block: &Block<D>,
        cells: &[T],
    ) -> Result<Option<Vec<T>>> {
        let call = of_block::<T, D>("World::gather_block", 11, root, block);
        let mut own = Vec::new();
        let checked = self.check_root(root, &call).and_then(|()| self.check_block(block, cells.len(), &call));
        let checked = checked.and_then(|()| {
            own = room_for(self, block.extent().iter().product(), &call)?;
            block.rows().for_each(|row| own.extend_from_slice(row.of(cells)));
            Ok(())
        });
        self.collective(&call, Orders::To(root), checked, || {
            let parts = lists::exchange(self, &call, Operation::Gather { root: root as u32 }, |_| &own)?;
            if self.rank() != root {
                return Ok(None);
            }
            let number = block.global().iter().product();
            let mut all = room_for(self, number, &call)?;
            all.resize(number, T::zeroed());
            for (rank, part) in parts.iter().enumerate() {
                let mut rest = &part[..];
                for (first, len) in places(&block.of(rank)?) {
                    let (row, others) = rest.split_at(len);
                    all[first..][..len].copy_from_slice(row);
                    rest = others;
                }
            }
            Ok(Some(all))
        })
    }

    /// Scatters an array from one rank to the blocks of all ranks.
    ///
    /// `all` at `root` holds the cells of the whole array in row-major order. On each rank, the
    /// call writes the own cells of `block` into the local storage `cells`, and leaves halos
    /// unchanged. `all` is not read on other ranks, and may be empty there.
    ///
    /// # Errors
    /// ARG if `block` is not this rank's block in this world. SIZE if the length of `cells` is not
    /// the number of elements that `block` stores, or if the length of the root's `all` is not the
    /// number of cells of the array. NO_MEM if the root has no memory for a copy. RMA_SYNC on all
    /// ranks if ranks give blocks of arrays of different sizes, or of different grids of ranks.
    /// Otherwise as [`World::broadcast`].
    ///
    /// # Cost
    /// The cost of a [`World::all_to_all`] in which only the root has lists that are not empty. The
    /// root's lists are a copy of the array. The call takes several epochs if all blocks together
    /// have more than 4 MiB.
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
        let call = of_block::<T, D>("World::scatter_block", 12, root, block);
        let mut parts: Vec<Vec<T>> = Vec::new();
        let checked = self.check_root(root, &call).and_then(|()| self.check_block(block, cells.len(), &call));
        let checked = checked.and_then(|()| {
            if self.rank() != root {
                return Ok(());
            }
            if block.global().iter().try_fold(1, |all: usize, &cells| all.checked_mul(cells))
                != Some(all.len())
            {
                let (given, global) = (all.len(), block.global());
                let message = format!("{given} elements for an array of {global:?} cells: give all of them");
                return Err(call.error(self.core(), ErrorClass::Size, message));
            }
            for rank in 0..self.size() {
                let theirs = block.of(rank)?;
                let mut part = room_for(self, theirs.extent().iter().product(), &call)?;
                places(&theirs).for_each(|(first, len)| part.extend_from_slice(&all[first..][..len]));
                parts.push(part);
            }
            Ok(())
        });
        self.collective(&call, Orders::From(root), checked, || {
            let part = |to| parts.get(to).map_or(&[][..], |part: &Vec<T>| part);
            let found = lists::exchange(self, &call, Operation::AllToAll, part)?;
            let mut rest = &found[root][..];
            for row in block.rows() {
                let (own, others) = rest.split_at(row.len());
                row.of_mut(cells).copy_from_slice(own);
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

/// Returns the place in the whole array at which each of a block's own rows begins, and the length
/// of the row. The array is in row-major order.
fn places<const D: usize>(block: &Block<D>) -> impl Iterator<Item = (usize, usize)> {
    let (global, origin) = (block.global(), block.origin());
    block.rows().map(move |row| {
        let first = row.first();
        let at = (0..D).fold(0, |at, d| at * global[d] + origin[d].wrapping_add_signed(first[d]));
        (at, row.len())
    })
}

/// Returns a list with room for `cells` elements.
fn room_for<T>(world: &World, cells: usize, call: &Call) -> Result<Vec<T>> {
    let mut list = Vec::new();
    match list.try_reserve_exact(cells) {
        Ok(()) => Ok(list),
        Err(_) => {
            let message = format!("there is no memory for {cells} cells of the array");
            Err(call.error(world.core(), ErrorClass::NoMem, message))
        }
    }
}
