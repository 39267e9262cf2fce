//! [`Step`]: several steps of a computation between two exchanges of a wide halo.
//!
//! With a halo of `k` cells, the own cells after `k` steps depend on nothing but what the block stores after an exchange.
//! So `k` steps may follow one exchange, if each of them also computes the cells of the halo that a later step reads: all
//! but one layer in the first step, one layer less in each further step. Every cell is computed from the same values in the
//! same way as by its owner, so the results are the same bits.

use super::rows::{Row, Rows};
use super::{Block, Error, ErrorClass, Result};

/// One of several steps between two exchanges: see [`Block::steps`].
#[derive(Clone, Debug)]
pub struct Step<const D: usize> {
    block: Block<D>,
    /// The number of cells of the halo that this step computes, on each side behind which there is another block.
    rim: [usize; D],
    /// The distance from a cell within which this step may read, in each dimension.
    reach: [usize; D],
}

impl<const D: usize> Step<D> {
    /// Returns each row of the cells that this step computes, in ascending order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<D>> + use<D> {
        self.rows_inside(0)
    }

    /// As [`rows`](Self::rows), without the cells that are fewer than `margin` cells from an edge of the array.
    pub fn rows_inside(&self, margin: usize) -> impl ExactSizeIterator<Item = Row<D>> + use<D> {
        Rows::new(&self.block, self.block.cells_inside(margin, self.rim), self.reach)
    }
}

impl<const D: usize> Block<D> {
    /// Returns `steps` steps that need one exchange of the halo, before the first of them. Each may read as far as one
    /// `steps`th of the halo's width, and computes as many cells of the halo as the later ones read.
    ///
    /// ```
    /// # use fencepost_planner::grid::{Block, Row};
    /// # fn exchange(_: &mut [f64]) {}
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [100, 100])?.halo(3)?;
    /// let (mut u, mut v) = (vec![1.0; block.len()], vec![1.0; block.len()]);
    /// exchange(&mut u);
    /// exchange(&mut v); // its cells at the edge of the array
    /// for step in block.steps(3)? {
    ///     for row in step.rows_inside(1) {
    ///         let (left, right) = (row.left(&u), row.right(&u));
    ///         let mean = row.of_mut(&mut v);
    ///         for j in 0..row.len() {
    ///             mean[j] = 0.5 * (left[j] + right[j]);
    ///         }
    ///     }
    ///     std::mem::swap(&mut u, &mut v);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The halo must be exchanged with all neighbours, as [`halo`](Self::halo) has it: what two steps of a star read has
    /// corners. A dimension without a halo has nothing to exchange, and steps read nothing there. Where no step computes the
    /// cells at an edge of the array, later steps read them from both fields: exchange the halo of either once, at the
    /// start. To stop earlier, [`take`](Iterator::take) fewer steps.
    ///
    /// # Errors
    /// ARG if there are more steps than the halo is wide, or none; if the halo is that of a [`star`](Self::star), and there
    /// is more than one step.
    pub fn steps(&self, steps: usize) -> Result<impl ExactSizeIterator<Item = Step<D>> + use<D>> {
        let reach = self.reach_of(steps)?;
        // Which rows are inside depends on where the block is.
        self.observed.set(true);
        let block = self.clone();
        let step = move |step| Step {
            block: block.clone(),
            rim: reach.map(|reach| reach * (steps - 1 - step)),
            reach,
        };
        Ok((0..steps).map(step))
    }

    /// Returns how far each of `steps` steps between two exchanges may read.
    pub(super) fn reach_of(&self, steps: usize) -> Result<[usize; D]> {
        let narrow = self.width.iter().any(|&width| width > 0 && width < steps);
        if steps == 0 || narrow {
            return Err(Error::new(
                ErrorClass::Arg,
                format!(
                    "{steps} steps between exchanges of a halo of {:?} cells: at least 1 step, and at most as many as the \
                     halo is wide; give the block a wider halo",
                    self.width
                ),
            ));
        }
        if steps > 1 && self.star {
            return Err(Error::new(
                ErrorClass::Arg,
                format!(
                    "{steps} steps between exchanges of the halo of a star: they read its corners, which are not \
                     exchanged; give the block a `.halo({})`",
                    self.width[0]
                ),
            ));
        }
        Ok(self.width.map(|width| width / steps))
    }
}
