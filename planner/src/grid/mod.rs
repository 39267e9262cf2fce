//! [`Block`]: one rank's part of an array that is spread over all ranks in a grid, and the
//! datatypes of its halo.
//!
//! A block's local storage is row-major, slowest dimension first. It consists of the block's own
//! cells and a halo of the same width on both sides of each dimension. At an edge of the global
//! array there is also a halo, which may hold boundary values. Rows end in padding if their length
//! would otherwise be a multiple of 512 elements.

mod advise;
mod balance;
mod class;
mod halo;
mod rows;
mod tiles;
#[cfg(feature = "ndarray")]
mod views;

pub use advise::Advice;
pub use halo::Neighbour;
pub use rows::Row;
pub use tiles::{Tiles, Visit};

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use std::cell::Cell;

/// The rank and the number of ranks of a world, for [`Block::new`].
pub trait RankPosition {
    /// Returns this rank's number, from 0.
    fn rank(&self) -> usize;
    /// Returns the number of ranks.
    fn size(&self) -> usize;
}

/// Rows are padded if their length is a multiple of this number of elements. With elements of 8
/// bytes, the length is then a multiple of 4096 bytes.
const UNLUCKY: usize = 512;
/// The number of elements of padding: one cache line of 8-byte elements.
const PADDING: usize = 8;

/// The maximum number of cells: more than any memory holds, and few enough that no arithmetic on
/// displacements overflows.
const CELLS_MAX: usize = isize::MAX as usize / 8;

/// One rank's block of a `D`-dimensional array (`D` is 1, 2 or 3) that is spread over all ranks.
///
/// The ranks form a grid, and are numbered in row-major order. A dimension of `n` cells over `p`
/// ranks is cut into `p` blocks. The first `n % p` blocks have one cell more than the others. All
/// ranks must build their blocks with the same options.
///
/// ```
/// # use fencepost_planner as fencepost;
/// use fencepost::grid::Block;
///
/// # fn main() -> fencepost_planner::Result<()> {
/// let block = Block::at(0, 4, [100, 100])?.halo(1)?;
/// assert_eq!(block.extent(), [50, 50]);
/// assert_eq!(block.shape(), [52, 52]);
/// assert_eq!(block.neighbours().map(|n| n.rank).collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
///
/// A program with conditions at the edges of the array, or with operations on single cells, asks
/// for the position of the block:
///
/// ```
/// # use fencepost_planner as fencepost;
/// # use fencepost::grid::Block;
/// # fn main() -> fencepost_planner::Result<()> {
/// // A channel: it wraps along its length, and its rows have a halo of two cells.
/// let block = Block::at(3, 4, [100, 40])?.grid([4, 1])?.halos([1, 2])?.periodic([true, false]);
/// assert_eq!((block.dims(), block.coords(), block.origin()), ([4, 1], [3, 0], [75, 0]));
/// assert_eq!(block.on_edge(0), (false, false)); // nothing ends there
/// assert_eq!(block.on_edge(1), (true, true));
/// assert_eq!(block.owner([10, 39]), Some(0));
/// assert_eq!(block.neighbour([1, 0]).map(|n| n.rank), Some(0)); // behind the last one
/// # Ok(())
/// # }
/// ```
///
/// A block is created without allocating. The block records whether a method was called whose
/// result may differ between ranks with equal datatypes (the rank, coordinates or origin). A clone
/// keeps its own record.
#[derive(Clone, Debug)]
pub struct Block<const D: usize> {
    rank: usize,
    ranks: usize,
    global: [usize; D],
    /// Ranks along each dimension.
    grid: [usize; D],
    /// The grid chosen without regard to the halo; `None` if the program gave a grid.
    default_grid: Option<[usize; D]>,
    coords: [usize; D],
    width: [usize; D],
    /// Whether the corners of the halo are not used: see [`Block::star`].
    star: bool,
    wraps: [bool; D],
    pads: bool,
    /// Whether a method was called whose result distinguishes ranks: see
    /// [`crate::argument::Argument::observed`].
    observed: Cell<bool>,
}

/// Blocks are equal when they are the same block of the same array, laid out the same way.
impl<const D: usize> PartialEq for Block<D> {
    fn eq(&self, other: &Self) -> bool {
        (self.rank, self.global, self.grid) == (other.rank, other.global, other.grid)
            && (self.width, self.star, self.wraps, self.pads)
                == (other.width, other.star, other.wraps, other.pads)
    }
}

impl<const D: usize> Eq for Block<D> {}

impl<const D: usize> Block<D> {
    /// Creates the block of the rank at `place`, of an array of `global` cells, without a halo.
    ///
    /// # Errors
    /// Same as [`at`](Self::at).
    #[doc(alias = "MPI_Cart_create")]
    pub fn new<P: RankPosition + ?Sized>(place: &P, global: [usize; D]) -> Result<Self> {
        Self::at(place.rank(), place.size(), global)
    }

    /// Creates the block of rank `rank` of `ranks`, of an array of `global` cells, without a halo.
    /// Needs no world.
    ///
    /// The process grid is the one in which the largest block has the smallest surface, unless
    /// [`grid`](Self::grid) sets another. If a halo is wider than the smallest block of that grid,
    /// only grids are considered in which all blocks are at least as wide as the halo.
    ///
    /// # Errors
    /// RANK if `rank` is not one of `ranks`; DIMS if no grid gives each rank a cell.
    ///
    /// # Cost
    /// Compares the ways to write `ranks` as a product. This takes well below a microsecond for
    /// most numbers of ranks. For 3D blocks and a number of ranks with a hundred divisors, it takes
    /// some tens of microseconds. [`of`](Self::of) on an existing block avoids this cost.
    pub fn at(rank: usize, ranks: usize, global: [usize; D]) -> Result<Self> {
        const { assert!(D >= 1 && D <= 3, "a Block has 1, 2 or 3 dimensions") };
        if rank >= ranks {
            return Err(Error::new(
                ErrorClass::Rank,
                format!("there is no rank {rank} among {ranks}: ranks count from 0"),
            ));
        }
        let grid = u32::try_from(ranks).ok().and_then(|ranks| balance::balanced(ranks, global, [0; D]));
        let Some(grid) = grid else {
            return Err(Error::new(
                ErrorClass::Dims,
                format!(
                    "an array of {global:?} cells cannot be cut into {ranks} blocks that all have cells: \
                     use fewer ranks or a larger array"
                ),
            ));
        };
        Self {
            rank,
            ranks,
            global,
            grid,
            default_grid: Some(grid),
            coords: coords_of(rank, grid),
            width: [0; D],
            star: false,
            wraps: [false; D],
            pads: true,
            observed: Cell::new(false),
        }
        .checked()
    }

    /// Returns the block of rank `rank` of the same array, laid out the same way.
    ///
    /// This is cheaper than [`at`](Self::at), which searches for a process grid each time.
    ///
    /// # Errors
    /// RANK if there is no such rank.
    pub fn of(&self, rank: usize) -> Result<Self> {
        if rank >= self.ranks {
            return Err(Error::new(
                ErrorClass::Rank,
                format!("there is no rank {rank} among {}: ranks count from 0", self.ranks),
            ));
        }
        Ok(Self { rank, coords: coords_of(rank, self.grid), observed: Cell::new(false), ..self.clone() })
    }

    /// Sets a halo of `width` cells on both sides of each dimension, corners included. Use it for a
    /// kernel that reads up to `width` cells away in all dimensions at once: a square of 9 or a
    /// cube of 27 cells for a width of 1.
    ///
    /// If the program gave no [grid](Self::grid) and the halo does not fit the default grid,
    /// another grid is chosen, and ranks then own other cells. So set the halo before a window is
    /// created or filled, and give the grid if two blocks of one array differ in their halos.
    ///
    /// # Errors
    /// ARG if the halo is wider than the smallest block of the given grid. If no grid was given:
    /// ARG if no grid has blocks that are all at least as wide as the halo.
    pub fn halo(self, width: usize) -> Result<Self> {
        self.halos([width; D])
    }

    /// Sets a halo of `widths[d]` cells on both sides of dimension `d`.
    ///
    /// # Errors
    /// Same as [`halo`](Self::halo).
    pub fn halos(self, widths: [usize; D]) -> Result<Self> {
        self.widened(widths, false)
    }

    /// Sets the halo of a kernel that reads up to `width` cells away in one dimension at a time,
    /// such as the stencils of 5 points in 2D and 7 points in 3D for a width of 1. The corners of
    /// this halo are stored and never used: [`neighbours`](Self::neighbours) returns only the
    /// blocks behind [`faces`](Self::faces), and [`Row`] refuses an offset in two dimensions.
    ///
    /// # Errors
    /// Same as [`halo`](Self::halo).
    pub fn star(self, width: usize) -> Result<Self> {
        self.widened([width; D], true)
    }

    /// Sets the halo. If the program gave no grid and the halo does not fit the default grid,
    /// chooses another grid.
    fn widened(mut self, widths: [usize; D], star: bool) -> Result<Self> {
        (self.width, self.star) = (widths, star);
        if let Some(default) = self.default_grid {
            let fits = (0..D).all(|d| widths[d] <= self.global[d] / default[d]);
            let other = || balance::balanced(self.ranks as u32, self.global, widths);
            self.grid = if fits { default } else { other().unwrap_or(default) };
            self.coords = coords_of(self.rank, self.grid);
        }
        self.checked()
    }

    /// Sets whether each dimension wraps around, so that its last block and its first are
    /// neighbours.
    #[must_use]
    pub fn periodic(mut self, wraps: [bool; D]) -> Self {
        self.wraps = wraps;
        self
    }

    /// Sets the process grid: `grid[d]` ranks along dimension `d`. Call this before `halo`, so that
    /// `halo` does not choose a grid.
    ///
    /// # Errors
    /// DIMS if the grid does not have this number of ranks, or leaves a rank without a cell; ARG if
    /// a halo that was set before is wider than the smallest block.
    pub fn grid(mut self, grid: [usize; D]) -> Result<Self> {
        let ranks = grid.iter().try_fold(1usize, |product, &ranks| product.checked_mul(ranks));
        if ranks != Some(self.ranks) {
            return Err(Error::new(
                ErrorClass::Dims,
                format!(
                    "a grid of {grid:?} ranks does not have {} ranks: the product of its extents must be the number of ranks",
                    self.ranks
                ),
            ));
        }
        (self.grid, self.default_grid) = (grid, None);
        self.coords = coords_of(self.rank, grid);
        self.checked()
    }

    /// Sets whether rows of an unlucky length are padded (by default they are).
    ///
    /// If rows have 8192 bytes, moving a column takes 7 times longer than with rows of 8208 bytes,
    /// because all cells of the column map to the same few sets of the cache. So rows of a multiple
    /// of 512 elements (4096 bytes of 8-byte elements) get 8 additional elements, which are never
    /// touched. One-dimensional blocks have no rows and are never padded.
    #[doc(hidden)]
    #[must_use]
    pub fn pad(mut self, pads: bool) -> Self {
        self.pads = pads;
        self
    }

    /// Checks the rules that hold for every block, whatever its options.
    fn checked(self) -> Result<Self> {
        let mut elements = 1usize;
        for d in 0..D {
            let (cells, ranks, width) = (self.global[d], self.grid[d], self.width[d]);
            let smallest = cells / ranks;
            if smallest == 0 {
                return Err(Error::new(
                    ErrorClass::Dims,
                    format!(
                        "{ranks} ranks along dimension {d} of {cells} cells: some would have none; \
                         give a `.grid(..)` with at most {cells} there, or use fewer ranks"
                    ),
                ));
            }
            if width > smallest {
                let way_out = if self.default_grid.is_none() {
                    "use a `.grid(..)` with fewer ranks in that dimension, or a narrower halo"
                } else {
                    "no other grid of ranks has room for it; use fewer ranks, or a narrower halo"
                };
                return Err(Error::new(
                    ErrorClass::Arg,
                    format!(
                        "a halo of {width} cells in dimension {d}, where {cells} cells over {ranks} ranks make blocks \
                         of as few as {smallest}: a halo is at most one block wide; {way_out}"
                    ),
                ));
            }
            // Uses the largest block of any rank, padded, so that all ranks reach the same result.
            let stored = smallest.saturating_add(width.saturating_mul(2)).saturating_add(1 + PADDING);
            let product = elements.checked_mul(stored);
            elements = match product {
                Some(product) if product <= CELLS_MAX => product,
                _ => {
                    let size = format!("an array of {:?} cells over {:?} ranks", self.global, self.grid);
                    return Err(Error::new(
                        ErrorClass::Size,
                        format!("{size}: a block has more cells than memory has"),
                    ));
                }
            };
        }
        Ok(self)
    }

    /// Returns the number of elements of local storage, halo and padding included: the length of
    /// the window.
    pub fn len(&self) -> usize {
        self.strides()[0] * self.shape()[0]
    }

    /// Returns `false`: every block has cells.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the number of cells of local storage along each dimension, with the halo but without
    /// padding.
    pub fn shape(&self) -> [usize; D] {
        self.shape_at(self.coords)
    }

    /// Returns the distance from one cell to the next along each dimension, in elements of local
    /// storage. The distance along the last dimension is 1.
    pub fn strides(&self) -> [usize; D] {
        self.strides_at(self.coords)
    }

    /// Returns the width of the halo in each dimension.
    #[doc(hidden)]
    pub fn widths(&self) -> [usize; D] {
        self.width
    }

    /// Returns the number of cells of the whole array along each dimension.
    pub fn global(&self) -> [usize; D] {
        self.global
    }

    /// Returns the number of ranks along each dimension.
    #[doc(alias = "MPI_Dims_create")]
    pub fn dims(&self) -> [usize; D] {
        self.grid
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the number of own cells along each dimension.
    pub fn extent(&self) -> [usize; D] {
        self.extent_at(self.coords)
    }

    /// Returns the global index of the first own cell.
    pub fn origin(&self) -> [usize; D] {
        self.observed.set(true);
        self.origin_at()
    }

    /// Returns the coordinates of this rank in the grid.
    #[doc(alias = "MPI_Cart_coords")]
    pub fn coords(&self) -> [usize; D] {
        self.observed.set(true);
        self.coords
    }

    /// Returns the rank that owns this block.
    pub fn rank(&self) -> usize {
        self.observed.set(true);
        self.rank
    }

    /// Returns the rank that owns the cell of global index `cell`, or `None` outside the array.
    pub fn owner(&self, cell: [usize; D]) -> Option<usize> {
        self.observed.set(true);
        let mut rank = 0;
        for (d, &at) in cell.iter().enumerate() {
            if at >= self.global[d] {
                return None;
            }
            let (each, more) = (self.global[d] / self.grid[d], self.global[d] % self.grid[d]);
            let large = more * (each + 1);
            let coord = if at < large { at / (each + 1) } else { more + (at - large) / each };
            rank = rank * self.grid[d] + coord;
        }
        Some(rank)
    }

    /// Returns whether this block is at the low edge of the array in dimension `d`, and whether it
    /// is at the high edge. Returns `(false, false)` in a dimension that wraps.
    ///
    /// # Panics
    /// If there is no dimension `d`.
    #[track_caller]
    pub fn on_edge(&self, d: usize) -> (bool, bool) {
        let edge = !self.wraps[d];
        (edge && self.coords[d] == 0, edge && self.coords[d] + 1 == self.grid[d])
    }

    /// Returns the index in local storage of own cell `cell`. `cell` is counted from the first own
    /// cell.
    ///
    /// # Panics
    /// If the block has no such cell.
    #[inline]
    #[track_caller]
    pub fn index(&self, cell: [usize; D]) -> usize {
        let (extent, strides) = (self.extent(), self.strides());
        assert!((0..D).all(|d| cell[d] < extent[d]), "own cell {cell:?} of a block of {extent:?} cells");
        (0..D).map(|d| (cell[d] + self.width[d]) * strides[d]).sum()
    }

    /// Returns all own cells, row by row.
    #[doc(hidden)]
    pub fn interior(&self) -> Datatype {
        self.cells_at(self.coords, self.width, self.extent())
    }

    /// Returns the global index of the first own cell without setting `observed`.
    fn origin_at(&self) -> [usize; D] {
        std::array::from_fn(|d| {
            let (each, more) = (self.global[d] / self.grid[d], self.global[d] % self.grid[d]);
            self.coords[d] * each + self.coords[d].min(more)
        })
    }

    /// Returns the number of own cells of the rank at `coords`.
    fn extent_at(&self, coords: [usize; D]) -> [usize; D] {
        std::array::from_fn(|d| {
            self.global[d] / self.grid[d] + usize::from(coords[d] < self.global[d] % self.grid[d])
        })
    }

    fn shape_at(&self, coords: [usize; D]) -> [usize; D] {
        let extent = self.extent_at(coords);
        std::array::from_fn(|d| extent[d] + 2 * self.width[d])
    }

    fn strides_at(&self, coords: [usize; D]) -> [usize; D] {
        let shape = self.shape_at(coords);
        let mut strides = [1; D];
        for d in (0..D - 1).rev() {
            strides[d] = strides[d + 1] * if d + 2 == D { self.row_len(shape[d + 1]) } else { shape[d + 1] };
        }
        strides
    }

    /// Returns a row's length with its padding.
    fn row_len(&self, cells: usize) -> usize {
        if self.pads && cells.is_multiple_of(UNLUCKY) { cells + PADDING } else { cells }
    }

    /// Returns a box of cells as a datatype of the local storage of the rank at `coords`. The box
    /// begins at `first` and has `count` cells in each dimension. `first` is counted from the start
    /// of the storage, where the halo begins.
    fn cells_at(&self, coords: [usize; D], first: [usize; D], count: [usize; D]) -> Datatype {
        let strides = self.strides_at(coords);
        let offset: usize = (0..D).map(|d| first[d] * strides[d]).sum();
        let dims: [(usize, i64); D] = std::array::from_fn(|d| (count[d], strides[d] as i64));
        // `checked` limits a block to far fewer cells than a datatype may have elements.
        Datatype::nest(offset as i64, &dims[..D - 1], count[D - 1]).expect("a block's cells")
    }
}

/// Returns the coordinates of `rank` in a row-major grid.
fn coords_of<const D: usize>(rank: usize, grid: [usize; D]) -> [usize; D] {
    let mut rest = rank;
    let mut coords = [0; D];
    for d in (0..D).rev() {
        coords[d] = rest % grid[d];
        rest /= grid[d];
    }
    coords
}
