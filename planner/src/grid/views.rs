//! A block's local storage as an array of `ndarray`.

use super::Block;
use super::rows::refuse_slice;
use ndarray::{ArrayView, ArrayViewMut, Dim, Dimension, IntoDimension, Ix, ShapeBuilder, StrideShape};

impl<const D: usize> Block<D>
where
    Dim<[Ix; D]>: Dimension,
    [Ix; D]: IntoDimension<Dim = Dim<[Ix; D]>>,
{
    /// Returns the local storage of a field as an array of `ndarray`, with the halo but without
    /// padding. Copies nothing. Needs the feature `ndarray`.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 1, [3, 4])?.halo(1)?;
    /// let u = vec![2.0; block.len()];
    /// let own = block.view(&u).slice_move(ndarray::s![1..-1, 1..-1]);
    /// assert_eq!((own.dim(), own.sum()), ((3, 4), 24.0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If `cells` does not have exactly [`len`](Self::len) elements.
    #[track_caller]
    pub fn view<'a, T>(&self, cells: &'a [T]) -> ArrayView<'a, T, Dim<[Ix; D]>> {
        self.check(cells.len());
        ArrayView::from_shape(self.layout(), cells).expect("the block's storage has all of its cells")
    }

    /// Returns the local storage as an array with mutable cells: see [`view`](Self::view).
    ///
    /// # Panics
    /// If `cells` does not have exactly [`len`](Self::len) elements.
    #[track_caller]
    pub fn view_mut<'a, T>(&self, cells: &'a mut [T]) -> ArrayViewMut<'a, T, Dim<[Ix; D]>> {
        self.check(cells.len());
        ArrayViewMut::from_shape(self.layout(), cells).expect("the block's storage has all of its cells")
    }

    fn layout(&self) -> StrideShape<Dim<[Ix; D]>> {
        self.shape().into_dimension().strides(self.strides().into_dimension())
    }

    #[track_caller]
    fn check(&self, elements: usize) {
        if elements != self.len() {
            refuse_slice(elements, self.len());
        }
    }
}
