//! Determines which blocks differ only by their position.

use super::Block;
use crate::argument::Argument;

impl<const D: usize> Argument for Block<D> {
    /// Returns everything on which the datatypes and the neighbours' deltas depend. For each
    /// dimension this is the number of cells and of ranks, the width of the halo, whether the block
    /// is the first or the last, and which blocks among this block and its two neighbours have the
    /// extra cell. The class also has whether the dimension wraps, whether rows are padded, and
    /// whether the halo is that of a star.
    fn class(&self) -> Option<Vec<u64>> {
        let mut key = Vec::with_capacity(3 * D);
        for d in 0..D {
            let (ranks, more, coord) = (self.grid[d], self.global[d] % self.grid[d], self.coords[d]);
            let (first, last) = (coord == 0, coord + 1 == ranks);
            let before = if first { ranks - 1 } else { coord - 1 };
            let after = if last { 0 } else { coord + 1 };
            let larger = [coord, before, after].map(|coord| coord < more);
            let facts = [first, last, larger[0], larger[1], larger[2], self.wraps[d], self.pads, self.star];
            let bits = facts.iter().fold(0, |bits, &fact| bits << 1 | u64::from(fact));
            // The number of ranks of a grid fits 32 bits.
            key.extend([self.global[d] as u64, self.width[d] as u64, (ranks as u64) << 32 | bits]);
        }
        Some(key)
    }

    fn shape(&self) -> Option<Vec<u32>> {
        self.grid.iter().map(|&ranks| u32::try_from(ranks).ok()).collect()
    }

    fn observed(&self) -> bool {
        self.observed.replace(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn classes<const D: usize>(ranks: usize, block: impl Fn(usize) -> Block<D>) -> usize {
        (0..ranks).map(|rank| block(rank).class()).collect::<HashSet<_>>().len()
    }

    #[test]
    fn an_even_grid_has_three_classes_a_dimension() {
        let even = |rank| Block::at(rank, 5 * 4 * 6, [50, 40, 60]).unwrap().grid([5, 4, 6]).unwrap();
        assert_eq!(classes(120, |rank| even(rank).halo(1).unwrap()), 27);
        assert_eq!(classes(120, |rank| even(rank).halo(2).unwrap().periodic([true; 3])), 27);
        assert_eq!(classes(316 * 317, |rank| Block::at(rank, 316 * 317, [316 * 64, 317 * 64]).unwrap()), 9);
        assert_eq!(classes(7, |rank| Block::at(rank, 7, [70]).unwrap()), 3);
    }

    #[test]
    fn blocks_whose_neighbours_or_datatypes_differ_are_of_different_classes() {
        let plain = || Block::at(4, 9, [30, 30]).unwrap();
        let blocks = [
            plain(),
            plain().halo(1).unwrap(),
            plain().star(1).unwrap(),
            plain().halo(2).unwrap(),
            plain().halo(1).unwrap().periodic([true; 2]),
            plain().star(1).unwrap().periodic([true; 2]),
            plain().halo(1).unwrap().pad(false),
        ];
        let classes: HashSet<_> = blocks.iter().map(|block| block.class().unwrap()).collect();
        assert_eq!(classes.len(), blocks.len());
    }

    #[test]
    fn an_uneven_grid_has_six_classes_a_dimension() {
        let uneven = |rank| Block::at(rank, 6 * 6 * 6, [33, 45, 51]).unwrap().grid([6, 6, 6]).unwrap();
        assert_eq!(classes(216, |rank| uneven(rank).halo(2).unwrap()), 216);
        let uneven = |rank| Block::at(rank, 9 * 8 * 8, [40, 45, 51]).unwrap().grid([9, 8, 8]).unwrap();
        assert_eq!(classes(576, |rank| uneven(rank).halo(2).unwrap()), 216);
    }

    #[test]
    fn what_tells_ranks_of_one_class_apart_is_noted_once() {
        let block = Block::at(3, 9, [9, 9]).unwrap().halo(1).unwrap();
        let _ = (block.len(), block.strides(), block.extent(), block.neighbours().count(), block.on_edge(0));
        let _ = (block.index([0, 0]), block.rows().count(), block.interior());
        assert!(!block.observed());
        let ask: [fn(&Block<2>); 6] = [
            |block| _ = block.rank(),
            |block| _ = block.coords(),
            |block| _ = block.origin(),
            |block| _ = block.owner([0, 0]),
            |block| drop(block.rows_inside(1)),
            |block| drop(block.tiles(1)),
        ];
        for ask in ask {
            ask(&block);
            assert!(block.observed());
            assert!(!block.observed());
        }
    }
}
