//! The process grid that a [`Block`](super::Block) uses when none is given.

use smallvec::SmallVec;

/// Returns the grid of `ranks` ranks over an array of `global` cells for which the largest block
/// has the smallest surface towards other ranks. Considers only grids in which each block has a
/// cell and is at least as wide as the halo. The halo has the widths `widths`. Returns `None` if
/// there is no such grid.
///
/// Like MPI_Dims_create, but takes the array's own extents into account. Of several grids with the
/// same surface, this is the one with more ranks in the earlier, slower dimensions, so that
/// exchanged cells are in long runs.
pub(super) fn balanced<const D: usize>(
    ranks: u32,
    global: [usize; D],
    widths: [usize; D],
) -> Option<[usize; D]> {
    let cells: f64 = global.iter().map(|&n| n as f64).product();
    let face = global.map(|n| cells / n as f64 / f64::from(ranks));
    let most = std::array::from_fn(|d| global[d] / widths[d].max(1));
    let mut search =
        Search { divisors: divisors(ranks), global, most, face, grid: [1; D], least: u64::MAX, best: None };
    search.ideal_first(ranks);
    search.from(0, ranks);
    search.best
}

struct Search<const D: usize> {
    divisors: SmallVec<[u32; 64]>,
    global: [usize; D],
    /// The largest number of ranks along each dimension.
    most: [usize; D],
    /// The cells of a face of dimension `d`, divided by the ranks along `d`, if everything divides
    /// evenly. With `n` ranks along `d`, a face has at least `n` times this number of cells.
    face: [f64; D],
    grid: [usize; D],
    least: u64,
    best: Option<[usize; D]>,
}

impl<const D: usize> Search<D> {
    /// Tries the grid whose blocks are nearest to cubes, dimension by dimension, so that most other
    /// grids can be rejected early.
    fn ideal_first(&mut self, ranks: u32) {
        let mut left = ranks;
        for dimension in 0..D {
            let rest = D - dimension;
            let cells: f64 = self.global[dimension..].iter().map(|&n| n as f64).product();
            let side = (cells / f64::from(left)).powf(1.0 / rest as f64);
            let ideal = self.global[dimension] as f64 / side;
            let far = |ranks: u32| (f64::from(ranks) / ideal).max(ideal / f64::from(ranks));
            let fitting = self.divisors.iter().copied().filter(|&here| left.is_multiple_of(here));
            let here = fitting.min_by(|&a, &b| far(a).total_cmp(&far(b))).unwrap_or(1);
            self.grid[dimension] = if rest == 1 { left } else { here } as usize;
            left /= here;
        }
        if (0..D).all(|d| self.grid[d] <= self.most[d]) {
            self.weigh();
        }
    }

    /// Tries every way to spread `left` ranks over the dimensions from `dimension` on.
    fn from(&mut self, dimension: usize, left: u32) {
        if dimension + 1 == D {
            self.grid[dimension] = left as usize;
            self.weigh();
            return;
        }
        for i in 0..self.divisors.len() {
            let here = self.divisors[i];
            self.grid[dimension] = here as usize;
            if here as usize <= self.most[dimension]
                && left.is_multiple_of(here)
                && !self.is_hopeless(dimension, left / here)
            {
                self.from(dimension + 1, left / here);
            }
        }
    }

    /// Returns whether the surface must exceed that of the best grid, no matter how the remaining
    /// `left` ranks are spread over the dimensions after this one. This bound is far cheaper to
    /// compute than the surface itself.
    fn is_hopeless(&self, dimension: usize, left: u32) -> bool {
        let face = |d: usize, ranks: usize| faces(ranks) as f64 * self.face[d] * ranks as f64;
        let known: f64 = (0..=dimension).map(|d| face(d, self.grid[d])).sum();
        let rest = match self.face[dimension + 1..] {
            [] => 0.0,
            [_] => face(D - 1, left as usize),
            // The weighted sum of two factors of `left` is least where both terms are equal. Blocks
            // in a dimension of one or two ranks have fewer than two faces, but ranks times faces
            // is at least 2 (ranks - 1) in every dimension.
            [a, b, ..] => (4.0 * (a * b * f64::from(left)).sqrt() - 2.0 * (a + b)).max(0.0),
        };
        let bound = known + rest;
        // The margin is for rounding: grids that are equally good must be compared exactly.
        bound > self.least as f64 * (1.0 + 1e-9)
    }

    fn weigh(&mut self) {
        if self.is_hopeless(D - 1, 1) || self.grid[D - 1] > self.most[D - 1] {
            return;
        }
        let surface = surface(self.global, self.grid);
        if self.best.is_none_or(|grid| surface < self.least || (surface == self.least && self.grid > grid)) {
            (self.least, self.best) = (surface, Some(self.grid));
        }
    }
}

/// Returns the number of faces of a block that have other ranks behind them, along a dimension of
/// `ranks` ranks.
fn faces(ranks: usize) -> u64 {
    (ranks as u64 - 1).min(2)
}

/// Returns the number of cells of the largest block's faces that have other ranks behind them: two
/// faces in each dimension, one face in a dimension of two ranks, none in a dimension of one rank.
fn surface<const D: usize>(global: [usize; D], grid: [usize; D]) -> u64 {
    let extent: [u64; D] = std::array::from_fn(|d| global[d].div_ceil(grid[d]) as u64);
    let mut sum = 0u64;
    for (d, &ranks) in grid.iter().enumerate() {
        let face = (0..D).filter(|&other| other != d).map(|other| extent[other]);
        sum = sum.saturating_add(face.fold(faces(ranks), u64::saturating_mul));
    }
    sum
}

/// Returns every divisor of `n`, in no particular order, from its primes.
fn divisors(n: u32) -> SmallVec<[u32; 64]> {
    let mut all = SmallVec::from_slice(&[1]);
    let mut left = n;
    let mut prime = 2;
    while left > 1 {
        if u64::from(prime) * u64::from(prime) > u64::from(left) {
            prime = left;
        }
        let before = all.len();
        let mut power = 1;
        while left.is_multiple_of(prime) {
            left /= prime;
            power *= prime;
            for i in 0..before {
                all.push(all[i] * power);
            }
        }
        prime += 1 + prime % 2;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_those_that_divide() {
        for n in 1..2000u32 {
            let mut found = divisors(n).to_vec();
            found.sort_unstable();
            assert_eq!(found, (1..=n).filter(|d| n % d == 0).collect::<Vec<_>>());
        }
        assert_eq!(divisors(u32::MAX).len(), 32);
    }

    #[test]
    fn the_balanced_grid_has_the_least_surface_of_all_that_fit() {
        for ranks in 1..=60u32 {
            for (global, widths) in [
                ([8, 8, 8], [0, 0, 0]),
                ([5, 60, 7], [1, 0, 1]),
                ([1, 1, 60], [0, 0, 0]),
                ([30, 4, 9], [2, 1, 4]),
                ([60, 60, 60], [20, 1, 0]),
                ([14, 37, 60], [4, 4, 4]),
            ] {
                let mut least = None;
                for a in 1..=ranks as usize {
                    for b in 1..=ranks as usize {
                        let c = ranks as usize / (a * b).min(ranks as usize);
                        let fits = (0..3).all(|d| global[d] / [a, b, c][d] >= widths[d].max(1));
                        if a * b * c == ranks as usize && fits {
                            let s = surface(global, [a, b, c]);
                            least = Some(least.map_or(s, |least: u64| least.min(s)));
                        }
                    }
                }
                assert_eq!(balanced(ranks, global, widths).map(|grid| surface(global, grid)), least);
            }
        }
    }

    #[test]
    fn square_arrays_are_cut_as_mpi_dims_create_cuts_them() {
        let square = |ranks| balanced(ranks, [4096, 4096], [0, 0]).unwrap();
        assert_eq!(square(1), [1, 1]);
        assert_eq!(square(2), [2, 1]);
        assert_eq!(square(4), [2, 2]);
        assert_eq!(square(6), [3, 2]);
        assert_eq!(square(7), [7, 1]);
        assert_eq!(square(8), [4, 2]);
        assert_eq!(square(16), [4, 4]);
        assert_eq!(balanced(8, [64, 64, 64], [0; 3]), Some([2, 2, 2]));
        assert_eq!(balanced(100_172, [316 * 64, 317 * 64], [0; 2]), Some([316, 317]));
        assert_eq!(balanced(7, [6, 6], [0; 2]), None);
    }
}
