//! Hillslope diffusion on one processor, in plain loops: dz/dt = k (d2z/dx2 + d2z/dy2).
//!
//! Soil creeps downhill in proportion to the slope, so ridges wear down and hollows fill over time.
//! The method has explicit steps, central differences and double precision. Cells on the boundary
//! keep their heights.

use multiversion::multiversion;

/// The diffusivity of the soil, and the spacing of the cells.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// The diffusivity in square metres a year.
    pub diffusivity: f64,
    /// The distance between two rows in metres.
    pub north_south: f64,
    /// The distance between two columns in metres.
    pub east_west: f64,
}

/// The soil and the cells of the Jacksboro model.
pub const JACKSBORO: Slope = Slope { diffusivity: 0.01, north_south: 92.6, east_west: 74.4 };

/// The number of steps, their length in years, and the factors of the second differences in each
/// step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Steps {
    pub count: u64,
    pub years: f64,
    pub north_south: f64,
    pub east_west: f64,
}

impl Slope {
    /// Returns the longest stable step: 1 / (2 k (1/dy2 + 1/dx2)) years. Longer steps make ripples
    /// grow.
    pub fn stability_bound(&self) -> f64 {
        0.5 / (self.diffusivity * (self.north_south.powi(-2) + self.east_west.powi(-2)))
    }

    /// Returns the longest stable step whose length in years is 1, 2 or 5 times a power of ten.
    pub fn round_step(&self) -> f64 {
        let bound = self.stability_bound();
        let unit = 10_f64.powf(bound.log10().floor());
        [5.0, 2.0, 1.0]
            .map(|times| times * unit)
            .into_iter()
            .find(|&step| step <= bound)
            .unwrap_or(unit / 2.0)
    }

    /// Divides `years` into as few steps of equal length as possible. No step is longer than the
    /// round step.
    pub fn steps(&self, years: f64) -> Steps {
        let count = (years / self.round_step()).ceil();
        let step = if count > 0.0 { years / count } else { 0.0 };
        let share = |spacing: f64| step * self.diffusivity / (spacing * spacing);
        Steps {
            count: count as u64,
            years: step,
            north_south: share(self.north_south),
            east_west: share(self.east_west),
        }
    }
}

impl Steps {
    /// Returns the height of a cell after a step, from the heights of the cell and its four
    /// neighbours. The result depends only on these five values, and the order of evaluation is
    /// fixed. So every rank that computes the cell gets the same bits.
    #[inline(always)]
    pub fn cell(&self, here: f64, north: f64, south: f64, west: f64, east: f64) -> f64 {
        let down = (north - here) + (south - here);
        let across = (west - here) + (east - here);
        here + (self.north_south * down + self.east_west * across)
    }

    /// Runs all steps over a grid of `rows` by `columns` cells. Both numbers must be at least 2.
    pub fn run(&self, heights: &mut Vec<f64>, rows: usize, columns: usize) {
        let mut next = heights.clone();
        for _ in 0..self.count {
            for row in 1..rows - 1 {
                let at = |row: usize| &heights[row * columns..][..columns];
                self::row(self, [at(row - 1), at(row), at(row + 1)], &mut next[row * columns..][..columns]);
            }
            std::mem::swap(heights, &mut next);
        }
    }

    /// Does the same as [`run`](Self::run), with `group` steps in one pass over the grid: row `r`
    /// of one step, then row `r - 1` of the next step, and so on. So the rows that these steps read
    /// and write stay in a cache.
    pub fn run_tiled(&self, heights: &mut Vec<f64>, rows: usize, columns: usize, group: usize) {
        let mut next = heights.clone();
        let mut left = self.count as usize;
        while left > 0 {
            let steps = group.min(left);
            for front in 1..rows + steps {
                for step in 0..steps {
                    let Some(row) = front.checked_sub(step).filter(|row| (1..rows - 1).contains(row)) else {
                        continue;
                    };
                    let (from, to) =
                        if step % 2 == 0 { (&*heights, &mut next) } else { (&next, &mut *heights) };
                    let at = |row: usize| &from[row * columns..][..columns];
                    self::row(self, [at(row - 1), at(row), at(row + 1)], &mut to[row * columns..][..columns]);
                }
            }
            if steps % 2 == 1 {
                std::mem::swap(heights, &mut next);
            }
            left -= steps;
        }
    }
}

/// Computes the cells of one row except the first and the last, with the widest vectors that the
/// processor has. The cells depend on the row itself and on the rows north and south of it. The
/// function is a plain loop over slices of equal length, which the compiler can vectorise.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
pub fn row(steps: &Steps, [north, here, south]: [&[f64]; 3], next: &mut [f64]) {
    let inside = here.len() - 2;
    let (west, east) = (&here[..inside], &here[2..][..inside]);
    let (north, here, south) = (&north[1..][..inside], &here[1..][..inside], &south[1..][..inside]);
    let next = &mut next[1..][..inside];
    for j in 0..inside {
        next[j] = steps.cell(here[j], north[j], south[j], west[j], east[j]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_step_is_round_and_stable() {
        assert_eq!(JACKSBORO.round_step(), 100_000.0);
        assert!(JACKSBORO.round_step() < JACKSBORO.stability_bound());
        let steps = JACKSBORO.steps(10_000_000.0);
        assert_eq!((steps.count, steps.years), (100, 100_000.0));
    }

    #[test]
    fn steps_are_never_longer_than_the_round_one_and_make_the_years() {
        for years in [0.0, 1.0, 99_999.0, 100_001.0, 12_345_678.0] {
            let steps = JACKSBORO.steps(years);
            assert!(steps.years <= JACKSBORO.round_step());
            assert!((steps.count as f64 * steps.years - years).abs() <= 1e-9 * years);
        }
    }

    #[test]
    fn steps_of_a_group_have_the_bits_of_steps_that_sweep_one_by_one() {
        let (rows, columns) = (9, 13);
        let start: Vec<f64> = (0..rows * columns).map(|at| (at as f64 * 1.7).sin()).collect();
        let steps = JACKSBORO.steps(1.1e6);
        let mut known = start.clone();
        steps.run(&mut known, rows, columns);
        for group in [1, 2, 3, 4, 11, 20] {
            let mut heights = start.clone();
            steps.run_tiled(&mut heights, rows, columns, group);
            assert_eq!(heights, known, "{group} steps to a pass");
        }
    }

    #[test]
    fn a_plane_is_unchanged_and_a_peak_spreads_without_gaining_height() {
        let plane: Vec<f64> = (0..20).map(|i| f64::from(i / 5) * 8.0 + f64::from(i % 5) * 2.0).collect();
        let mut heights = plane.clone();
        JACKSBORO.steps(1e6).run(&mut heights, 4, 5);
        assert_eq!(heights, plane);
        let mut peak = vec![0.0; 81];
        peak[40] = 1.0;
        JACKSBORO.steps(1e5).run(&mut peak, 9, 9);
        assert!((peak.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(peak.iter().all(|&height| (0.0..1.0).contains(&height)));
    }
}
