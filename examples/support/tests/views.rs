//! A view of a block's storage as an array of `ndarray` has the same cells as access by index,
//! whether or not the block is padded. A slice of another length is refused.

use fencepost::grid::Block;
use ndarray::s;

#[test]
fn a_view_has_each_cell_where_the_block_has_it() {
    for (cells, width) in [([5, 7], 2), ([3, 510], 1), ([4, 4], 0)] {
        let block = Block::at(0, 1, cells).unwrap().halo(width).unwrap();
        let mut u: Vec<usize> = (0..block.len()).collect();
        let view = block.view(&u);
        assert_eq!(view.shape(), block.shape());
        for i in 0..cells[0] {
            for j in 0..cells[1] {
                assert_eq!(view[[i + width, j + width]], block.index([i, j]));
            }
        }
        block.view_mut(&mut u).slice_mut(s![width, ..]).fill(9);
        assert!(block.rows().next().unwrap().of(&u).iter().all(|&cell| cell == 9));
    }
    let space = Block::at(0, 1, [2, 3, 4]).unwrap().halo(1).unwrap();
    let u: Vec<usize> = (0..space.len()).collect();
    assert_eq!(space.view(&u)[[2, 3, 4]], space.index([1, 2, 3]));
    let line = Block::at(0, 1, [512]).unwrap();
    assert_eq!(line.view(&[1_u8; 512]).len(), 512);
}

#[test]
#[should_panic(expected = "a slice of 17 elements for a block that is stored in 16")]
fn a_view_of_something_else_is_refused() {
    Block::at(0, 1, [2, 2]).unwrap().halo(1).unwrap().view(&[0; 17]);
}
