//! Indices and values, which are drawn before the clock starts. Several sets take turns, so that no
//! epoch repeats the previous one.

/// The number of elements of the tables that scattered operations go to (1 MiB).
pub const TABLE: usize = 1 << 17;

/// The changes that one rank makes in one epoch: `values[i]` goes to element `indices[i]`.
#[derive(Clone, Debug)]
pub struct Set {
    /// The indices of the elements in the table.
    pub indices: Vec<u32>,
    /// The values. Read as `f64`, they are numbers between 1 and 2.
    pub values: Vec<u64>,
}

/// Draws `sets` sets of `n` operations on distinct elements of a table, for each of `ranks` ranks:
/// `[rank][set]`.
pub fn draw(ranks: usize, sets: usize, n: usize) -> Vec<Vec<Set>> {
    assert!(n <= TABLE, "distinct elements");
    let mut state = 88_172_645_463_325_252;
    let set = |state: &mut u64| {
        let mut indices: Vec<u32> = (0..TABLE as u32).collect();
        for i in 0..n {
            indices.swap(i, i + (next(state) % (TABLE - i) as u64) as usize);
        }
        indices.truncate(n);
        // As bits of an `f64`: the exponent of 1.0, and a random fraction.
        let values = (0..n).map(|_| 0x3ff0_0000_0000_0000 | next(state) >> 12).collect();
        Set { indices, values }
    };
    (0..ranks).map(|_| (0..sets).map(|_| set(&mut state)).collect()).collect()
}

/// Returns the next number of xorshift64*, as in the C programs.
pub fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(2_685_821_657_736_338_717)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sets_differ_and_hold_distinct_elements_and_plain_numbers() {
        let draws = super::draw(2, 2, 1000);
        assert_ne!(draws[0][0].indices, draws[0][1].indices);
        assert_ne!(draws[0][0].indices, draws[1][0].indices);
        let mut sorted = draws[1][1].indices.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 1000);
        assert!(draws[0][0].values.iter().all(|&bits| (1.0..2.0).contains(&f64::from_bits(bits))));
    }
}
