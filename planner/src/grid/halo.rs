//! A block's neighbours, and the cells that are sent to and received from each.

use super::Block;
use crate::datatype::Datatype;

/// A block next to another, over a face, an edge or a corner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Neighbour<const D: usize> {
    /// The rank that owns the block. If a dimension of few ranks wraps around, a rank may be a
    /// neighbour on several sides, or its own neighbour.
    pub rank: usize,
    /// The direction of the neighbour: -1, 0 or 1 in each dimension.
    pub offset: [i8; D],
}

impl<const D: usize> Neighbour<D> {
    /// Returns whether the neighbour is behind a face: next to this block in one dimension only.
    pub(super) fn is_face(&self) -> bool {
        self.offset.iter().filter(|&&step| step != 0).count() == 1
    }
}

/// The part of a block at the side to which an offset points, in one dimension.
#[derive(Clone, Copy)]
enum Side {
    /// Own cells, as deep as the halo is wide.
    Inner,
    /// The halo.
    Outer,
}

impl<const D: usize> Block<D> {
    /// Returns every block next to this one, over faces, edges and corners, in ascending order of
    /// direction. With the halo of a [`star`](Self::star), returns only the blocks over faces. If
    /// nothing wraps, the ranks ascend too.
    #[doc(alias = "MPI_Cart_shift")]
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour<D>> + '_ {
        (0..3usize.pow(D as u32)).filter_map(|code| {
            let mut rest = code;
            let mut offset = [0; D];
            for step in offset.iter_mut().rev() {
                *step = (rest % 3) as i8 - 1;
                rest /= 3;
            }
            self.neighbour(offset).filter(|n| !self.star || n.is_face())
        })
    }

    /// Returns the blocks behind this one's faces, which are enough for a stencil without
    /// diagonals.
    pub fn faces(&self) -> impl Iterator<Item = Neighbour<D>> + '_ {
        self.neighbours().filter(Neighbour::is_face)
    }

    /// Returns the block next to this one in the direction `offset`. Only the signs of the parts of
    /// `offset` count. Returns `None` beyond an edge of the array, and if all parts of `offset` are
    /// 0.
    pub fn neighbour(&self, offset: [i8; D]) -> Option<Neighbour<D>> {
        let offset = offset.map(i8::signum);
        if offset == [0; D] {
            return None;
        }
        for (d, &step) in offset.iter().enumerate() {
            let (low, high) = self.on_edge(d);
            if (low && step < 0) || (high && step > 0) {
                return None;
            }
        }
        let coords = self.coords_towards(offset);
        let rank = (0..D).fold(0, |rank, d| rank * self.grid[d] + coords[d]);
        Some(Neighbour { rank, offset })
    }

    /// Returns this block's own cells that `n` needs in its halo.
    pub fn inner_edge(&self, n: &Neighbour<D>) -> Datatype {
        self.part(self.coords, n.offset, Side::Inner)
    }

    /// Returns the destination of [`inner_edge`](Self::inner_edge): the cells of `n`'s halo towards
    /// this block, in `n`'s local storage. Source and destination have the same number of cells, in
    /// the same order.
    pub fn halo_of(&self, n: &Neighbour<D>) -> Datatype {
        self.part(self.coords_towards(n.offset), n.offset.map(|step| -step), Side::Outer)
    }

    /// Returns this block's halo cells towards `n`.
    pub fn outer_edge(&self, n: &Neighbour<D>) -> Datatype {
        self.part(self.coords, n.offset, Side::Outer)
    }

    /// Returns the source of [`outer_edge`](Self::outer_edge): `n`'s own cells next to this block,
    /// in `n`'s local storage. Source and destination have the same number of cells, in the same
    /// order.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [100, 80])?.halo(1)?;
    /// for n in block.faces() {
    ///     // As `u.get(block.outer_edge(&n)).from(n.rank, block.inner_edge_of(&n))?` in an epoch.
    ///     assert_eq!(block.outer_edge(&n).size(), block.inner_edge_of(&n).size());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn inner_edge_of(&self, n: &Neighbour<D>) -> Datatype {
        self.part(self.coords_towards(n.offset), n.offset.map(|step| -step), Side::Inner)
    }

    /// Returns the coordinates of the block that is next to this block in the direction `offset`,
    /// wrapped around the end of the grid if necessary.
    pub(super) fn coords_towards(&self, offset: [i8; D]) -> [usize; D] {
        std::array::from_fn(|d| match offset[d] {
            0 => self.coords[d],
            1.. => (self.coords[d] + 1) % self.grid[d],
            _ => (self.coords[d] + self.grid[d] - 1) % self.grid[d],
        })
    }

    /// Returns the part in the direction of `offset`, in the storage of the rank at `coords`.
    fn part(&self, coords: [usize; D], offset: [i8; D], side: Side) -> Datatype {
        let extent = self.extent_at(coords);
        let first = std::array::from_fn(|d| match (offset[d], side) {
            (0, _) => self.width[d],
            (1.., Side::Inner) => extent[d],
            (1.., Side::Outer) => self.width[d] + extent[d],
            (_, Side::Inner) => self.width[d],
            (_, Side::Outer) => 0,
        });
        let count = std::array::from_fn(|d| if offset[d] == 0 { extent[d] } else { self.width[d] });
        self.cells_at(coords, first, count)
    }
}
