//! [`Row`]: the cells that a kernel computes, row by row, and the slices that it reads and writes.

use super::Block;
use std::cmp::Ordering;
use std::ops::Range;

/// Consecutive cells along the last dimension of a [`Block`]: the innermost loop of a kernel.
///
/// The methods of a row return slices of the block's local storage, each as long as the row: slices
/// of the row itself ([`of`](Self::of), [`of_mut`](Self::of_mut)), and slices of the cells at an
/// offset from it ([`up`](Self::up), [`down`](Self::down), [`left`](Self::left),
/// [`right`](Self::right), [`at`](Self::at)). A loop from 0 to [`len`](Self::len) over such slices
/// has no bounds checks left, so the compiler vectorises it.
///
/// ```
/// # use fencepost_planner::grid::Block;
/// # fn main() -> fencepost_planner::Result<()> {
/// # let block = Block::at(0, 1, [8, 8])?.halo(1)?;
/// # let (u, mut v) = (vec![1.0; block.len()], vec![0.0; block.len()]);
/// for row in block.rows_inside(1) {
///     let (up, down) = (row.up(&u), row.down(&u));
///     let (left, right) = (row.left(&u), row.right(&u));
///     let mean = row.of_mut(&mut v);
///     for j in 0..row.len() {
///         mean[j] = 0.25 * ((up[j] + down[j]) + (left[j] + right[j]));
///     }
/// }
/// # assert_eq!(v[block.index([3, 3])], 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Each method that takes the local storage of a field panics if the storage does not have exactly
/// the block's [`len`](Block::len) elements. Each method that reads at an offset panics if the
/// offset is larger than the halo is wide, or if it leads to a corner of the halo of a
/// [`star`](Block::star). The methods check this before they read anything.
///
/// # Cost
/// Nothing is allocated. A slice costs two comparisons more than indexing with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row<const D: usize> {
    /// The index of the first cell in local storage.
    at: usize,
    len: usize,
    strides: [usize; D],
    /// The width of the halo in each dimension.
    widths: [usize; D],
    /// The distance from the row up to which a kernel may read, in each dimension.
    reach: [usize; D],
    /// Whether a kernel may read only in one dimension at a time.
    star: bool,
    /// The number of elements of local storage.
    storage: usize,
}

impl<const D: usize> Row<D> {
    /// Returns the number of cells.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "no row is empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the position of the row's first cell, counted from the first own cell of the block.
    /// Cells in the halo before the own cells have negative positions.
    pub fn first(&self) -> [isize; D] {
        let mut rest = self.at;
        std::array::from_fn(|d| {
            let cell = rest / self.strides[d];
            rest %= self.strides[d];
            cell as isize - self.widths[d] as isize
        })
    }

    /// Returns the positions of the row at which there are own cells of the block. The range is
    /// empty if the row is in the halo. A sum over all cells of the array, such as a residual,
    /// counts only these positions, since other ranks compute the cells of the halo as well.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 2, [8, 8])?.halo(2)?; // the other one is below
    /// let rows: Vec<_> = block.tiles(2)?.rows().filter(|row| row.step() == 0).collect();
    /// assert_eq!((rows.len(), rows[3].own(), rows[4].own()), (5, 0..8, 0..0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn own(&self) -> Range<usize> {
        let first = self.first();
        let stored = |d: usize| if d == 0 { self.storage } else { self.strides[d - 1] } / self.strides[d];
        let extent = |d: usize| (stored(d) - 2 * self.widths[d]) as isize;
        if (0..D - 1).any(|d| first[d] < 0 || first[d] >= extent(d)) {
            return 0..0;
        }
        let (from, len) = (first[D - 1], self.len as isize);
        let cut = |position: isize| position.clamp(0, len) as usize;
        cut(-from)..cut(extent(D - 1) - from)
    }

    /// Returns the indices of the cells in local storage.
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + self.len
    }

    /// Returns the indices, in local storage, of the cells that are `offset` away from the row's
    /// cells.
    ///
    /// # Panics
    /// Same as [`at`](Self::at).
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn range_at(&self, offset: [isize; D]) -> Range<usize> {
        self.check(self.storage, offset);
        let first = self.first_at(offset);
        first..first + self.len
    }

    /// Returns the cells of the row.
    #[inline(always)]
    #[track_caller]
    pub fn of<'a, T>(&self, cells: &'a [T]) -> &'a [T] {
        self.at(cells, [0; D])
    }

    /// Returns the cells of the row, for writing.
    #[inline(always)]
    #[track_caller]
    pub fn of_mut<'a, T>(&self, cells: &'a mut [T]) -> &'a mut [T] {
        self.check(cells.len(), [0; D]);
        &mut cells[self.at..][..self.len]
    }

    /// Returns the cells that are `offset` away from the row's cells: element `j` of
    /// `at(u, [-1, 0])` is above cell `j` of the row.
    #[inline(always)]
    #[track_caller]
    pub fn at<'a, T>(&self, cells: &'a [T], offset: [isize; D]) -> &'a [T] {
        self.check(cells.len(), offset);
        &cells[self.first_at(offset)..][..self.len]
    }

    /// Returns one slice for each of several offsets, as [`at`](Self::at) does for one. This is for
    /// stencils of many points.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// # let block = Block::at(0, 1, [8, 8])?.halo(1)?;
    /// # let (u, mut v) = (vec![1.0; block.len()], vec![0.0; block.len()]);
    /// for row in block.rows_inside(1) {
    ///     let [a, b, c, d] = row.each(&u, [[-1, -1], [-1, 1], [1, -1], [1, 1]]);
    ///     let corners = row.of_mut(&mut v);
    ///     for j in 0..row.len() {
    ///         corners[j] = 0.25 * ((a[j] + b[j]) + (c[j] + d[j]));
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn each<'a, T, const N: usize>(&self, cells: &'a [T], offsets: [[isize; D]; N]) -> [&'a [T]; N] {
        // Uses one statement for each slice. If the slices were made in a loop, the compiler would
        // find out their length only after it has looked for checks in the kernel's loop. It would
        // then keep a check in the kernel's loop, and compute the last cells of each row one by
        // one. For `f32`, a sweep would take a tenth longer.
        let mut each: [&'a [T]; N] = const { [&[]; N] };
        macro_rules! cut {
            ($($n:literal)*) => { $(if $n < N { each[$n] = self.at(cells, offsets[$n]) })* };
        }
        cut!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        for n in 32..N {
            each[n] = self.at(cells, offsets[n]);
        }
        each
    }

    /// Returns the cells at offset -1 in the last dimension.
    #[inline(always)]
    #[track_caller]
    pub fn left<'a, T>(&self, cells: &'a [T]) -> &'a [T] {
        self.at(cells, step(D - 1, -1))
    }

    /// Returns the cells at offset 1 in the last dimension.
    #[inline(always)]
    #[track_caller]
    pub fn right<'a, T>(&self, cells: &'a [T]) -> &'a [T] {
        self.at(cells, step(D - 1, 1))
    }

    /// Returns the cells at offset -1 in the last dimension but one: the row before this one.
    #[inline(always)]
    #[track_caller]
    pub fn up<'a, T>(&self, cells: &'a [T]) -> &'a [T] {
        const { assert!(D >= 2, "a row of a block of one dimension has no row above it") };
        self.at(cells, step(D - 2, -1))
    }

    /// Returns the cells at offset 1 in the last dimension but one: the row after this one.
    #[inline(always)]
    #[track_caller]
    pub fn down<'a, T>(&self, cells: &'a [T]) -> &'a [T] {
        const { assert!(D >= 2, "a row of a block of one dimension has no row below it") };
        self.at(cells, step(D - 2, 1))
    }

    /// Creates an empty row of the block. A kernel may read up to `reach` away from it.
    pub(super) fn anywhere(block: &Block<D>, reach: [usize; D]) -> Self {
        let (strides, widths, star) = (block.strides(), block.width, block.star);
        Self { at: 0, len: 0, strides, widths, reach, star, storage: strides[0] * block.shape()[0] }
    }

    /// Returns the index of the cell that is `offset` away from the row's first cell.
    #[inline(always)]
    fn first_at(&self, offset: [isize; D]) -> usize {
        // Uses the constant 1 as the last stride, so that no offset in that dimension needs a
        // register.
        let shift = (0..D - 1).fold(offset[D - 1], |sum, d| sum + offset[d] * self.strides[d] as isize);
        self.at.wrapping_add_signed(shift)
    }

    /// Panics unless a field has as many elements as the block's storage and `offset` is within
    /// reach.
    #[inline(always)]
    #[track_caller]
    fn check(&self, storage: usize, offset: [isize; D]) {
        let near = (0..D).fold(true, |near, d| near & (offset[d].unsigned_abs() <= self.reach[d]));
        let aside = (0..D).filter(|&d| offset[d] != 0).count() > 1;
        if storage != self.storage {
            refuse_slice(storage, self.storage);
        }
        if !near || (aside && self.star) {
            refuse_offset(offset, self.reach, self.star);
        }
    }
}

/// Panics because the length of the slice differs from that of the block's storage. This function
/// and the next one take numbers instead of a reference to the row. A row that is passed by
/// reference has to be in memory, which would cost some nanoseconds for each row.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn refuse_slice(given: usize, storage: usize) -> ! {
    panic!(
        "a slice of {given} elements for a block that is stored in {storage}: give the window of this block, or a slice \
         of `block.len()` elements"
    );
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_offset<const D: usize>(offset: [isize; D], reach: [usize; D], star: bool) -> ! {
    let (only, wider) = if star {
        (" in one dimension, since its halo is a star's", "`.halo(..)`")
    } else {
        ("", "wider halo")
    };
    panic!(
        "offset {offset:?} from a row of a block: at most {reach:?} cells away can be read{only}; give the block a {wider}"
    );
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_margin<const D: usize>(margin: usize, width: [usize; D]) -> ! {
    panic!(
        "a margin of {margin} cells with a halo of {width:?} cells: give a margin that is at most as wide as the halo, \
         since the core of the block has cells of a wider margin"
    );
}

/// Returns the offset of `by` cells along dimension `d`.
#[inline(always)]
fn step<const D: usize>(d: usize, by: isize) -> [isize; D] {
    std::array::from_fn(|other| if other == d { by } else { 0 })
}

impl<const D: usize> Block<D> {
    /// Returns each row of own cells, in ascending order.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// # let block = Block::at(0, 1, [8, 8])?.halo(1)?;
    /// # let mut u = vec![1.0; block.len()];
    /// for row in block.rows() {
    ///     row.of_mut(&mut u).fill(2.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<D>> + use<D> {
        Rows::new(self, self.extent().map(|cells| 0..cells as isize), self.width)
    }

    /// Returns the same as [`rows`](Self::rows), without the own cells that are fewer than `margin`
    /// cells from an edge of the array. A dimension that wraps has no edge.
    pub fn rows_inside(&self, margin: usize) -> impl ExactSizeIterator<Item = Row<D>> + use<D> {
        if margin > 0 {
            self.observed.set(true);
        }
        Rows::new(self, self.cells_inside(margin, [0; D]), self.width)
    }

    /// Returns each row of the own cells that a kernel computes from own cells alone, in ascending
    /// order. In each dimension, these cells are at least as far from the sides of the block as the
    /// halo is wide. They can be computed before the halo is exchanged.
    pub fn rows_core(&self) -> impl ExactSizeIterator<Item = Row<D>> + use<D> {
        Rows::new(self, self.core(), self.width)
    }

    /// Returns each row of the cells that are in [`rows_inside`](Self::rows_inside) and not in
    /// [`rows_core`](Self::rows_core), one side of the block after another. Compute these cells
    /// after the halo has been exchanged.
    ///
    /// ```
    /// # use fencepost_planner::grid::{Block, Row};
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [100, 80])?.halo(1)?;
    /// let cells = |rows: usize, row: Row<2>| rows + row.len();
    /// assert_eq!(block.rows_inside(1).fold(0, cells), 49 * 39);
    /// assert_eq!(block.rows_core().fold(0, cells), 48 * 38);
    /// assert_eq!(block.rows_rest(1).fold(0, cells), 49 * 39 - 48 * 38);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If `margin` is wider than the halo of a dimension that does not wrap.
    /// [`rows_core`](Self::rows_core) would then have cells that [`rows_inside`](Self::rows_inside)
    /// leaves out.
    #[track_caller]
    pub fn rows_rest(&self, margin: usize) -> impl Iterator<Item = Row<D>> + use<D> {
        if margin > 0 {
            self.observed.set(true);
        }
        if (0..D).any(|d| !self.wraps[d] && margin > self.width[d]) {
            refuse_margin(margin, self.width);
        }
        let (block, all, core) = (self.clone(), self.cells_inside(margin, [0; D]), self.core());
        let no_core = core.iter().any(|cells| cells.is_empty());
        // One box of cells for each side of the core. In dimensions before that of the side, the
        // box is as wide as the core. In dimensions after it, the box is as wide as all cells.
        (0..if no_core { 1 } else { 2 * D }).flat_map(move |side| {
            let side_of = side / 2;
            let cells = std::array::from_fn(|d| {
                let (all, core) = (all[d].clone(), core[d].clone());
                match d.cmp(&side_of) {
                    _ if no_core => all,
                    Ordering::Less => core,
                    Ordering::Equal if side % 2 == 0 => all.start..core.start,
                    Ordering::Equal => core.end..all.end,
                    Ordering::Greater => all,
                }
            });
            Rows::new(&block, cells, block.width)
        })
    }

    /// Returns the own cells that are at least as far from each side of the block as the halo is
    /// wide.
    fn core(&self) -> [Range<isize>; D] {
        let extent = self.extent();
        std::array::from_fn(|d| self.width[d] as isize..extent[d] as isize - self.width[d] as isize)
    }

    /// Returns the own cells, plus `rim` cells of the halo on each side that has another block
    /// behind it. Leaves out the cells that are fewer than `margin` cells from an edge of the
    /// array. Cells are counted from the first own cell.
    pub(super) fn cells_inside(&self, margin: usize, rim: [usize; D]) -> [Range<isize>; D] {
        let (extent, origin) = (self.extent(), self.origin_at());
        // A margin wider than the array leaves out the same cells as one that is as wide as the
        // array.
        let margin = |d: usize| margin.min(self.global[d]);
        std::array::from_fn(|d| {
            let rim = rim[d] as isize;
            let own = -rim..extent[d] as isize + rim;
            if self.wraps[d] {
                return own;
            }
            // Global indices margin..cells - margin, relative to this block.
            let first = margin(d) as isize - origin[d] as isize;
            let last = (self.global[d] - margin(d)) as isize - origin[d] as isize;
            own.start.max(first)..own.end.min(last)
        })
    }

    /// Sets each own cell to the result of `value` for its global index.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(3, 4, [100, 100])?.halo(1)?;
    /// let mut u = vec![0; block.len()];
    /// block.fill(&mut u, |[i, j]| 100 * i + j);
    /// assert_eq!(u[block.index([0, 0])], 5050);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If `cells` does not have exactly [`len`](Self::len) elements.
    #[track_caller]
    pub fn fill<T>(&self, cells: &mut [T], mut value: impl FnMut([usize; D]) -> T) {
        let origin = self.origin();
        for row in self.rows() {
            let first = row.first();
            let mut at: [usize; D] = std::array::from_fn(|d| origin[d].wrapping_add_signed(first[d]));
            for cell in row.of_mut(cells) {
                *cell = value(at);
                at[D - 1] += 1;
            }
        }
    }
}

/// The rows of a box of cells, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Rows<const D: usize> {
    next: Row<D>,
    /// The number of rows that are left.
    left: usize,
    /// The number of rows that are left in the plane of the next row, and the number of rows of
    /// each plane.
    in_plane: usize,
    plane: usize,
    /// The distance from the row after the last row of a plane to the first row of the next plane,
    /// in elements.
    skip: usize,
}

impl<const D: usize> Rows<D> {
    /// Returns the rows of a box of cells, which are counted from the first own cell. A kernel may
    /// read up to `reach` away from these rows.
    pub(super) fn new(block: &Block<D>, cells: [Range<isize>; D], reach: [usize; D]) -> Self {
        Self::of(Row::anywhere(block, reach), cells)
    }

    /// Does the same as [`new`](Self::new), but takes the block and the reach from a row of the
    /// block.
    #[inline]
    pub(super) fn of(row: Row<D>, cells: [Range<isize>; D]) -> Self {
        let Row { strides, widths, .. } = row;
        let extent: [usize; D] =
            std::array::from_fn(|d| usize::try_from(cells[d].end - cells[d].start).unwrap_or(0));
        let left = if extent[D - 1] == 0 { 0 } else { extent[..D - 1].iter().product() };
        let first = |d: usize| cells[d].start.saturating_add_unsigned(widths[d]) as usize;
        let at = if left == 0 { 0 } else { (0..D).map(|d| first(d) * strides[d]).sum() };
        let next = Row { at, len: extent[D - 1], ..row };
        let plane = if D >= 2 { extent[D - 2] } else { 1 };
        let skip = if D == 3 && left > 0 { strides[0] - plane * strides[1] } else { 0 };
        Self { next, left, in_plane: plane, plane, skip }
    }
}

impl<const D: usize> Iterator for Rows<D> {
    type Item = Row<D>;

    #[inline]
    fn next(&mut self) -> Option<Row<D>> {
        self.left = self.left.checked_sub(1)?;
        let row = self.next;
        if D >= 2 {
            self.next.at += row.strides[D - 2];
        }
        if D == 3 {
            self.in_plane -= 1;
            if self.in_plane == 0 {
                self.in_plane = self.plane;
                self.next.at += self.skip;
            }
        }
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<const D: usize> ExactSizeIterator for Rows<D> {}
