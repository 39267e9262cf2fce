//! [`Tiles`]: several steps between two exchanges, whose rows are visited band by band.
//!
//! If each step sweeps the whole block, the block is loaded from memory once in every step.
//! [`Tiles`] computes the same rows of the same steps in another order. It visits a band of the
//! first step, then the band of the second step that begins one reach earlier, and so on to the
//! last step. Then it continues with the next band. The cells that one band reads and writes stay
//! in the cache while all steps pass over it, so the block is loaded from memory once for all
//! steps.
//!
//! **Why the order keeps every dependence.** Cell `i` of step `s` gets the place `i + s * shift` in
//! each dimension, where `shift` is at least the reach. A band is a box of places. From band to
//! band, the first dimension advances fastest. Within a band, the steps run one after another. To
//! compute cell `i`, step `s` reads cells within one reach of `i`, which step `s - 1` has written.
//! The place of such a cell is at most `i + (s - 1) * shift + reach`, so it is not beyond the place
//! of `i` in any dimension. The cell is therefore in this band, in which step `s - 1` ran before
//! step `s`, or in an earlier band. Step `s` also overwrites an older value of cell `i`. Only step
//! `s - 1` and earlier steps have read that value, to compute cells within one reach of `i`. The
//! same bound holds for the places of those cells. So the argument holds for any size of the bands,
//! and for two alternating fields as well as for more.
//!
//! The shift is the reach, but along rows it is rounded up to a multiple of [`ALIGNED`] cells.
//! Bands then cut rows at the boundaries of vectors, in all steps.
//!
//! **Source** M. Wolfe, "More iteration space tiling", SC 1989: skewed loops over space, tiled with
//! time. Different here: the bands of a rank need no synchronisation with other ranks, since the
//! halo is deep enough for all steps of a group. Also, a band is visited row by row, so that the
//! innermost loop is the user's own.

use super::rows::{Row, Rows};
use super::{Block, Error, ErrorClass, Result};
use std::ops::{Deref, Range};

/// A group of steps between two exchanges of a wide halo, visited band by band: see
/// [`Block::tiles`].
#[derive(Clone, Debug)]
pub struct Tiles<const D: usize> {
    block: Block<D>,
    /// The number of steps for which the halo is wide enough.
    most: usize,
    /// The number of steps of this group.
    steps: usize,
    /// The distance from a cell within which a step may read, in each dimension.
    reach: [usize; D],
    /// The number of cells of a band in each dimension.
    bands: [usize; D],
}

/// A row of one of the steps: see [`Tiles::rows`]. It derefs to [`Row`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visit<const D: usize> {
    row: Row<D>,
    step: usize,
}

impl<const D: usize> Tiles<D> {
    /// Sets the number of cells of a band in each dimension. The number for the last dimension cuts
    /// rows into pieces. If a dimension has fewer cells than the given number, a band has all cells
    /// of the dimension. With `usize::MAX` in each dimension, every step sweeps the block before
    /// the next step begins. [`Advice::bands`](super::Advice::bands) computes bands for the caches
    /// of a machine.
    ///
    /// # Errors
    /// ARG if a number is 0.
    pub fn bands(mut self, cells: [usize; D]) -> Result<Self> {
        if cells.contains(&0) {
            return Err(Error::new(
                ErrorClass::Arg,
                format!(
                    "bands of {cells:?} cells: at least 1 in each dimension; usize::MAX stands for all of them"
                ),
            ));
        }
        self.bands = cells;
        Ok(self)
    }

    /// Limits the group to its first `steps` steps, for the end of a computation.
    #[must_use]
    pub fn at_most(mut self, steps: usize) -> Self {
        self.steps = self.steps.min(steps);
        self
    }

    /// Returns the number of steps of the group.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the fields in their order after the group: each step has rotated them by one.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let tiles = Block::at(0, 1, [100])?.halo(3)?.tiles(3)?;
    /// assert_eq!(tiles.turn(["now", "next"]), ["next", "now"]);
    /// assert_eq!(tiles.at_most(2).turn(["now", "next"]), ["now", "next"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn turn<T, const N: usize>(&self, fields: [T; N]) -> [T; N] {
        turned(fields, self.steps)
    }

    /// Returns each row of the cells that the steps compute, band by band. A row is visited after
    /// the rows of the previous step from which it is computed.
    ///
    /// A loop may be left in the middle, since the iterator borrows nothing. The fields then hold
    /// rows of several steps. To finish the group, continue with the same iterator
    /// ([`by_ref`](Iterator::by_ref)). To discard it, begin again with fields that were saved
    /// before the group.
    pub fn rows(&self) -> impl Iterator<Item = Visit<D>> + use<D> {
        self.rows_inside(0)
    }

    /// Returns the same as [`rows`](Self::rows), without the cells that are fewer than `margin`
    /// cells from an edge of the array.
    pub fn rows_inside(&self, margin: usize) -> impl Iterator<Item = Visit<D>> + use<D> {
        Visits::new(self, margin)
    }
}

impl<const D: usize> Visit<D> {
    /// Returns the number of the step in its group, from 0.
    #[inline(always)]
    pub fn step(&self) -> usize {
        self.step
    }

    /// Returns the fields in their order in this step. `fields` has their order in the first step:
    /// `[now, next]` for two fields that alternate, `[before, now, next]` for three levels of time.
    #[inline(always)]
    pub fn turn<T, const N: usize>(&self, fields: [T; N]) -> [T; N] {
        turned(fields, self.step)
    }
}

impl<const D: usize> Deref for Visit<D> {
    type Target = Row<D>;

    #[inline(always)]
    fn deref(&self) -> &Row<D> {
        &self.row
    }
}

/// Moves the first field to the end, `times` times.
#[inline(always)]
fn turned<T, const N: usize>(mut fields: [T; N], times: usize) -> [T; N] {
    match (N, times % N.max(1)) {
        (_, 0) => {}
        (2, _) => fields.swap(0, 1),
        (_, times) => fields.rotate_left(times),
    }
    fields
}

/// The rows of all bands.
struct Visits<const D: usize> {
    /// A row without cells, with the values that all rows share.
    row: Row<D>,
    /// The rows that are left in the current band and step.
    rows: Rows<D>,
    step: usize,
    cells: StepCells<D>,
    steps: usize,
    /// The number of cells of a band.
    bands: [isize; D],
    /// The first place of the current band, and the range of all places.
    band: [isize; D],
    places: [Range<isize>; D],
}

/// The cells that each step computes.
struct StepCells<const D: usize> {
    /// The last step for which the halo is wide enough. It computes own cells only.
    last: isize,
    reach: [isize; D],
    /// The distance by which the place of a cell advances with each step.
    shift: [isize; D],
    /// The own cells along each dimension.
    extent: [isize; D],
    /// The cells that steps may compute: own cells and cells of the halo that are at least the
    /// margin away from the edges of the array.
    within: [Range<isize>; D],
}

impl<const D: usize> StepCells<D> {
    /// Returns the cells of a step along one dimension, counted from the first own cell.
    #[inline]
    fn of(&self, step: usize, d: usize) -> Range<isize> {
        let rim = self.reach[d] * (self.last - step as isize);
        self.within[d].start.max(-rim)..self.within[d].end.min(self.extent[d] + rim)
    }

    /// Returns the distance from a cell of a step to its place, along one dimension.
    #[inline]
    fn shifted(&self, step: usize, d: usize) -> isize {
        self.shift[d] * step as isize
    }
}

impl<const D: usize> Visits<D> {
    fn new(tiles: &Tiles<D>, margin: usize) -> Self {
        let Tiles { block, most, steps, reach, bands } = tiles;
        let signed = |cells: [usize; D]| cells.map(|cells| isize::try_from(cells).unwrap_or(isize::MAX));
        let cells = StepCells {
            last: *most as isize - 1,
            reach: signed(*reach),
            shift: signed(shifts(*reach)),
            extent: signed(block.extent()),
            within: block.cells_inside(margin, block.width),
        };
        // The first step has the lowest place of all, and the last step the highest.
        let last = steps.saturating_sub(1);
        let places: [_; D] =
            std::array::from_fn(|d| cells.of(0, d).start..cells.of(last, d).end + cells.shifted(last, d));
        let is_empty = *steps == 0 || places.iter().any(|places| places.is_empty());
        let bands = signed(*bands);
        let row = Row::anywhere(block, *reach);
        let mut visits = Self {
            row,
            rows: Rows::of(row, std::array::from_fn(|_| 0..0)),
            step: 0,
            cells,
            steps: if is_empty { 0 } else { *steps },
            bands: std::array::from_fn(|d| {
                bands[d].min(places[d].end.saturating_sub(places[d].start).max(1))
            }),
            band: std::array::from_fn(|d| places[d].start),
            places,
        };
        if visits.steps > 0 {
            visits.rows = visits.rows_here();
        }
        visits
    }

    /// Returns the rows of the current band and step.
    #[inline]
    fn rows_here(&self) -> Rows<D> {
        let cells = std::array::from_fn(|d| {
            let (all, band) = (self.cells.of(self.step, d), self.band[d] - self.cells.shifted(self.step, d));
            all.start.max(band)..all.end.min(band + self.bands[d])
        });
        Rows::of(self.row, cells)
    }

    /// Advances to the next step of the band, or to the first step of the next band. Returns
    /// `false` if the last band is complete.
    #[inline]
    fn advance(&mut self) -> bool {
        self.step += 1;
        if self.step < self.steps {
            return true;
        }
        self.step = 0;
        for d in 0..D {
            self.band[d] += self.bands[d];
            if self.band[d] < self.places[d].end {
                return self.steps > 0;
            }
            self.band[d] = self.places[d].start;
        }
        self.steps = 0;
        false
    }
}

impl<const D: usize> Iterator for Visits<D> {
    type Item = Visit<D>;

    #[inline]
    fn next(&mut self) -> Option<Visit<D>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Visit { row, step: self.step });
            }
            if self.steps == 0 || !self.advance() {
                return None;
            }
            self.rows = self.rows_here();
        }
    }
}

impl<const D: usize> Block<D> {
    /// Returns a group of `steps` steps that need one exchange of the halo, before the first step.
    /// Each step may read as far as the halo's width divided by `steps`, and also computes the
    /// cells of the halo that later steps read. The steps are visited band by band, so a grid
    /// larger than the caches is read from memory once for all steps. The results are equal, bit
    /// for bit, to those of steps that each sweep the whole block.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn exchange(_: &mut [f64]) {}
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [100, 100])?.halo(4)?;
    /// let (mut u, mut v) = (vec![1.0; block.len()], vec![1.0; block.len()]);
    /// exchange(&mut v); // its cells at the edge of the array
    /// let mut left = 10;
    /// while left > 0 {
    ///     let tiles = block.tiles(4)?.at_most(left);
    ///     exchange(&mut u);
    ///     for row in tiles.rows_inside(1) {
    ///         let [now, next] = row.turn([&mut u, &mut v]);
    ///         let (left, right) = (row.left(now), row.right(now));
    ///         for (j, mean) in row.of_mut(next).iter_mut().enumerate() {
    ///             *mean = 0.5 * (left[j] + right[j]);
    ///         }
    ///     }
    ///     [u, v] = tiles.turn([u, v]);
    ///     left -= tiles.steps();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The halo must be exchanged with all neighbours, as with [`halo`](Self::halo), because two
    /// steps of a star together read corners. A dimension without a halo has nothing to exchange,
    /// and steps read nothing there. If no step computes the cells at an edge of the array, later
    /// steps read these cells from both fields. In this case, exchange the halo of each field once
    /// at the start.
    ///
    /// A step may overwrite only cells that the previous step has read, as when two fields
    /// alternate. Other fields may be read if no step writes them. The default bands are single
    /// rows in 2D, single planes in 3D, and pieces of 4096 cells in 1D. [`bands`](Tiles::bands)
    /// sets others.
    ///
    /// # Errors
    /// ARG if `steps` is 0 or more than the width of the halo. Also ARG if `steps` is more than 1
    /// and the halo is that of a [`star`](Self::star).
    ///
    /// # Cost
    /// Some nanoseconds for each row. Nothing is allocated.
    pub fn tiles(&self, steps: usize) -> Result<Tiles<D>> {
        let reach = self.reach_of(steps)?;
        // The rows that [`Tiles::rows_inside`] returns depend on the position of the block.
        self.observed.set(true);
        let bands = match D {
            1 => [PIECE; D],
            _ => std::array::from_fn(|d| if d == 0 { 1 } else { usize::MAX }),
        };
        Ok(Tiles { block: self.clone(), most: steps, steps, reach, bands })
    }

    /// Returns the distance up to which each of `steps` steps between two exchanges may read.
    fn reach_of(&self, steps: usize) -> Result<[usize; D]> {
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

/// The number of cells of a band of a one-dimensional block.
const PIECE: usize = 4096;

/// Shifts along rows are multiples of this number of cells: a cache line of `f64`.
const ALIGNED: usize = 8;

/// Returns the distance by which the place of a cell advances with each step, for steps of this
/// reach.
pub(super) fn shifts<const D: usize>(mut reach: [usize; D]) -> [usize; D] {
    reach[D - 1] = reach[D - 1].next_multiple_of(ALIGNED);
    reach
}
