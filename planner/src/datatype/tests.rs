//! What all of a datatype's files promise together, against plain lists of elements.

use super::*;

/// Canonical form as it is defined: every run written out, then folded pass by pass.
fn plain(elements: &[i64]) -> Vec<Piece> {
    let mut list: Vec<Piece> = Vec::new();
    for &element in elements {
        match list.last_mut() {
            Some(last) if last.offset + last.run as i64 == element => last.run += 1,
            _ => list.push(Piece::contiguous(element, 1)),
        }
    }
    loop {
        let mut folded: Vec<Piece> = Vec::new();
        let mut i = 0;
        while i < list.len() {
            let same = |j: usize| list.get(j).is_some_and(|p| p.run == list[i].run && p.dims == list[i].dims);
            let mut end = i + 1;
            if same(i + 1) {
                let stride = list[i + 1].offset - list[i].offset;
                while same(end) && list[end].offset - list[end - 1].offset == stride {
                    end += 1;
                }
                let mut piece = list[i].clone();
                piece.dims.insert(0, Dim { count: end - i, stride });
                folded.push(piece);
            } else {
                folded.push(list[i].clone());
            }
            i = end;
        }
        if folded.len() == list.len() {
            return list;
        }
        list = folded;
    }
}

fn elements_of_nest(offset: i64, dims: &[(usize, i64)], run: usize) -> Vec<i64> {
    let mut starts = vec![offset];
    for &(count, stride) in dims {
        starts = starts.iter().flat_map(|s| (0..count as i64).map(move |i| s + i * stride)).collect();
    }
    starts.iter().flat_map(|&s| s..s + run as i64).collect()
}

#[test]
fn every_small_nest_is_what_writing_it_out_and_folding_gives() {
    let strides = -4..=9_i64;
    let mut seen = 0;
    for run in 1..=3 {
        for a in 1..=4 {
            for s in strides.clone() {
                for b in 1..=3 {
                    for t in strides.clone() {
                        let dims = [(a, s), (b, t)];
                        let nest = Datatype::nest(5, &dims, run);
                        let elements = elements_of_nest(5, &dims, run);
                        assert_eq!(nest.pieces(), plain(&elements), "{dims:?} x{run}");
                        assert_eq!(nest.element_iter().collect::<Vec<_>>(), elements);
                        seen += 1;
                    }
                }
            }
        }
    }
    assert_eq!(seen, 3 * 4 * 14 * 3 * 14);
}
