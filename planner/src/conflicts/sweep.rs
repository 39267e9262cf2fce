//! [`pairs`]: finds all pairs of conflicting accesses, without comparing each access with every
//! other one.
//!
//! Accesses are sorted by their first elements. An access is compared only with accesses that begin
//! before it ends and whose kind conflicts with its own kind. So accumulates of one operator are
//! never compared with each other, even if many access the same element.

use super::rule::conflict;
use crate::datatype::Datatype;
use crate::ir::pattern::Kind;
use std::ops::{ControlFlow, Range};

/// An access to the elements of one window of one rank.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Access<'d, B> {
    /// The window.
    pub window: u32,
    /// The elements.
    pub elements: &'d Datatype,
    /// The kind of the access.
    pub kind: Kind,
    /// The operation that makes the access. Accesses of one operation do not conflict.
    pub by: B,
}

/// Calls `found` with each pair of conflicting accesses and the bounds of the elements that both
/// touch, until `found` breaks.
///
/// The pairs are sorted by their first access, and then by their second access. Accesses are sorted
/// by window, first element and operation.
///
/// # Cost
/// Sorts the accesses. Then visits the pairs of accesses of conflicting kinds in which one access
/// begins within the bounds of the other.
#[doc(hidden)]
pub fn pairs<'d, B: Copy + Ord>(
    accesses: &mut [Access<'d, B>],
    mut found: impl FnMut(&Access<'d, B>, &Access<'d, B>, Range<i64>) -> ControlFlow<()>,
) {
    accesses.sort_by_key(|access| (access.window, access.elements.low(), access.by));
    let accesses = &*accesses;
    // The positions of the accesses of each kind, ascending.
    let mut kinds: Vec<(Kind, Vec<usize>)> = Vec::new();
    for (at, access) in accesses.iter().enumerate() {
        match kinds.iter_mut().find(|(kind, _)| *kind == access.kind) {
            Some((_, places)) => places.push(at),
            None => kinds.push((access.kind, vec![at])),
        }
    }
    let mut meeting = Vec::new();
    for (at, a) in accesses.iter().enumerate() {
        meeting.clear();
        for (_, places) in kinds.iter().filter(|(kind, _)| conflict(a.kind, *kind)) {
            let after = &places[places.partition_point(|&place| place <= at)..];
            let meets = |b: &Access<'_, B>| b.window == a.window && b.elements.low() < a.elements.high();
            meeting.extend(after.iter().copied().take_while(|&place| meets(&accesses[place])));
        }
        meeting.sort_unstable();
        for b in meeting.iter().map(|&place| &accesses[place]).filter(|b| b.by != a.by) {
            if let Some(elements) = a.elements.overlap_bounds(b.elements)
                && found(a, b, elements).is_break()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Op;

    #[test]
    fn pairs_are_those_that_a_look_at_each_two_finds() {
        let kinds = [Kind::Get, Kind::Put, Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::Max)];
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let (mut some, mut none) = (0, 0);
        for _ in 0..3000 {
            let drawn: Vec<(u32, Datatype, Kind, u64)> = (0..draw(7))
                .map(|_| {
                    let at = draw(20) as i64;
                    let elements = match draw(3) {
                        0 => Datatype::nest(at, &[(1 + draw(4) as usize, 1 + draw(4) as i64)], 1).unwrap(),
                        1 => Datatype::elements([at, draw(20) as i64]).unwrap(),
                        _ => Datatype::nest(at, &[], 1 + draw(4) as usize).unwrap(),
                    };
                    (draw(2) as u32, elements, kinds[draw(4) as usize], draw(5))
                })
                .collect();
            let mut accesses: Vec<Access<'_, u64>> = drawn
                .iter()
                .map(|(window, elements, kind, by)| Access {
                    window: *window,
                    elements,
                    kind: *kind,
                    by: *by,
                })
                .collect();
            let mut found = Vec::new();
            pairs(&mut accesses, |a, b, elements| {
                found.push((a.by, b.by, elements));
                ControlFlow::Continue(())
            });
            let mut expected = Vec::new();
            for (i, a) in accesses.iter().enumerate() {
                for b in accesses[i + 1..].iter().filter(|b| b.window == a.window && b.by != a.by) {
                    let both: Vec<i64> = a
                        .elements
                        .element_iter()
                        .filter(|e| b.elements.element_iter().any(|f| f == *e))
                        .collect();
                    if let (true, Some(low)) = (conflict(a.kind, b.kind), both.iter().min()) {
                        expected.push((a.by, b.by, *low..1 + both.iter().max().expect("there is one")));
                    }
                }
            }
            assert_eq!(found, expected, "{drawn:?}");
            *(if found.is_empty() { &mut none } else { &mut some }) += 1;
        }
        assert!(some > 500 && none > 500, "{some} with conflicts, {none} without");
    }
}
