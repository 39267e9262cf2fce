//! Tests of all files of datatypes together, against plain lists of elements.

use super::canonical::{REACH, is_canonical};
use super::*;
use crate::error::ErrorClass;
use fencepost_tests_support::random::Random;

/// Returns the canonical form by its definition: every run is written out, then folded pass by
/// pass.
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
            let mut piece = list[i].clone();
            if same(end) {
                let stride = list[end].offset - list[i].offset;
                while same(end) && list[end].offset - list[end - 1].offset == stride {
                    end += 1;
                }
                piece.dims.insert(0, Dim { count: end - i, stride });
            }
            folded.push(piece);
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

fn listed(datatype: &Datatype) -> Vec<i64> {
    datatype.element_iter().collect()
}

/// Layouts drawn at random, which are the same in every run.
struct Dice(Random);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    fn roll(&mut self, range: std::ops::Range<i64>) -> i64 {
        self.0.within(range)
    }

    fn count(&mut self, below: i64) -> usize {
        self.roll(0..below) as usize
    }

    /// Returns a description of `depth` levels, and the elements that it describes.
    fn layout(&mut self, depth: usize) -> (Datatype, Vec<i64>) {
        match self.roll(0..if depth == 0 { 4 } else { 9 }) {
            0 => {
                let low = self.count(20);
                let high = low + self.count(6);
                (Datatype::run(low..high), (low as i64..high as i64).collect())
            }
            1 => {
                let dims: Vec<(usize, i64)> =
                    (0..self.roll(1..4)).map(|_| (self.count(5), self.roll(-6..13))).collect();
                let (offset, run) = (self.roll(-9..20), self.count(4));
                (Datatype::nest(offset, &dims, run).unwrap(), elements_of_nest(offset, &dims, run))
            }
            2 => {
                let runs: Vec<(i64, usize)> =
                    (0..self.roll(0..8)).map(|_| (self.roll(-9..30), self.count(4))).collect();
                let elements = runs.iter().flat_map(|&(o, n)| o..o + n as i64).collect();
                (Datatype::runs(runs).unwrap(), elements)
            }
            3 => {
                let elements: Vec<i64> = (0..self.roll(0..9)).map(|_| self.roll(-3..12)).collect();
                (Datatype::elements(elements.iter().copied()).unwrap(), elements)
            }
            4 | 5 => {
                let parts: Vec<_> = (0..self.roll(0..4)).map(|_| self.layout(depth - 1)).collect();
                let elements = parts.iter().flat_map(|(_, elements)| elements.clone()).collect();
                (Datatype::sequence(parts.into_iter().map(|(datatype, _)| datatype)).unwrap(), elements)
            }
            6 => {
                let (datatype, elements) = self.layout(depth - 1);
                let (count, step) = (self.count(5), self.roll(-12..25));
                let elements =
                    (0..count as i64).flat_map(|i| elements.iter().map(move |e| e + i * step)).collect();
                (datatype.repeat(count, step).unwrap(), elements)
            }
            7 => {
                let (datatype, elements) = self.layout(depth - 1);
                let count = self.count(4);
                let extent = match (elements.iter().min(), elements.iter().max()) {
                    (Some(low), Some(high)) => high + 1 - low,
                    _ => 0,
                };
                let elements =
                    (0..count as i64).flat_map(|i| elements.iter().map(move |e| e + i * extent)).collect();
                (datatype.repeat(count, datatype.extent()).unwrap(), elements)
            }
            _ => {
                let (datatype, elements) = self.layout(depth - 1);
                let (first, count) = (self.count(12), self.count(40));
                let elements = elements.into_iter().skip(first).take(count).collect();
                (datatype.slice(first, count).unwrap(), elements)
            }
        }
    }

    /// Returns a layout that is not empty.
    fn some_layout(&mut self, depth: usize) -> (Datatype, Vec<i64>) {
        loop {
            let layout = self.layout(depth);
            if !layout.1.is_empty() {
                return layout;
            }
        }
    }
}

#[test]
fn every_small_nest_equals_its_runs_written_out_and_folded() {
    let mut seen = 0;
    for run in 1..=3 {
        for a in 1..=4 {
            for s in -4..=9 {
                for b in 1..=3 {
                    for t in -4..=9 {
                        let dims = [(a, s), (b, t)];
                        let nest = Datatype::nest(5, &dims, run).unwrap();
                        let elements = elements_of_nest(5, &dims, run);
                        assert_eq!(nest.pieces(), plain(&elements), "{dims:?} x{run}");
                        assert_eq!(listed(&nest), elements);
                        seen += 1;
                    }
                }
            }
        }
    }
    for counts in 0..64_usize {
        let [a, b, c] = [counts % 4 + 1, counts / 4 % 4 + 1, counts / 16 + 1].map(|n| n.min(3));
        for (s, t, u) in (0..1000).map(|i| (i % 10 - 2, i / 10 % 10 - 2, i / 100 - 2)) {
            let dims = [(a, s), (b, t), (c, u)];
            let nest = Datatype::nest(0, &dims, 1).unwrap();
            assert_eq!(nest.pieces(), plain(&elements_of_nest(0, &dims, 1)), "{dims:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 3 * 4 * 14 * 3 * 14 + 64_000);
}

#[test]
fn five_descriptions_of_a_thousand_layouts_are_one_datatype_and_one_wire_form() {
    let mut dice = Dice::new(1);
    for _ in 0..1000 {
        let (described, elements) = dice.layout(3);
        let by_elements = Datatype::elements(elements.iter().copied()).unwrap();
        let mut cuts: Vec<usize> = (0..4).map(|_| dice.count(elements.len() as i64 + 1)).collect();
        cuts.extend([0, elements.len()]);
        cuts.sort_unstable();
        let by_sequence = Datatype::sequence(
            cuts.windows(2).map(|cut| Datatype::elements(elements[cut[0]..cut[1]].iter().copied()).unwrap()),
        )
        .unwrap();
        let by_slices =
            Datatype::sequence(cuts.windows(2).map(|cut| described.slice(cut[0], cut[1] - cut[0]).unwrap()))
                .unwrap();
        let by_runs = Datatype::runs(described.run_iter().flat_map(|(offset, run)| {
            let first = run / 2;
            [(offset, first), (offset + first as i64, run - first)]
        }))
        .unwrap();
        let by_shift = Datatype::elements(elements.iter().map(|e| e - 17)).unwrap().shift(17).unwrap();
        let by_text: Datatype = described.to_string().parse().unwrap();
        let mut wire = Vec::new();
        described.encode(&mut wire);
        for (way, other) in
            [by_elements, by_sequence, by_slices, by_runs, by_shift, by_text].into_iter().enumerate()
        {
            assert_eq!(described, other, "way {way} of {elements:?}");
            let mut bytes = Vec::new();
            other.encode(&mut bytes);
            assert_eq!(wire, bytes);
        }
        assert_eq!(described.pieces(), plain(&elements), "{elements:?}");
        assert!(is_canonical(described.pieces()));
        assert_eq!(described.size(), elements.len());
        assert_eq!(described.is_empty(), elements.is_empty());
        assert_eq!(described.low(), elements.iter().copied().min().unwrap_or(0));
        assert_eq!(described.high(), elements.iter().copied().max().map_or(0, |high| high + 1));
        assert_eq!(described.run_iter().count(), described.run_count());
    }
}

#[test]
fn a_sequence_of_small_nests_equals_its_runs_written_out_and_folded() {
    // There are few strides and counts, so that neighbouring parts join at every level.
    let mut dice = Dice::new(2);
    for _ in 0..60_000 {
        let parts: Vec<_> = (0..dice.roll(2..4))
            .map(|_| {
                let dims: Vec<(usize, i64)> =
                    (0..dice.roll(0..4)).map(|_| (dice.count(3) + 1, dice.roll(1..9))).collect();
                (dice.roll(0..12), dims, dice.count(2) + 1)
            })
            .collect();
        let elements: Vec<i64> =
            parts.iter().flat_map(|(offset, dims, run)| elements_of_nest(*offset, dims, *run)).collect();
        let sequence = Datatype::sequence(
            parts.iter().map(|(offset, dims, run)| Datatype::nest(*offset, dims, *run).unwrap()),
        )
        .unwrap();
        assert_eq!(sequence.pieces(), plain(&elements), "{parts:?}");
    }
}

#[test]
fn a_slice_is_that_part_of_the_typemap() {
    let mut dice = Dice::new(3);
    for _ in 0..3000 {
        let (datatype, elements) = dice.layout(2);
        let first = dice.count(elements.len() as i64 + 3);
        let count = dice.count(elements.len() as i64 + 3);
        let part: Vec<i64> = elements.into_iter().skip(first).take(count).collect();
        let slice = datatype.slice(first, count).unwrap();
        assert_eq!(slice.pieces(), plain(&part), "{first} {count} of {datatype}");
    }
}

#[test]
fn runs_from_an_element_on_are_the_rest_of_the_typemap() {
    let mut dice = Dice::new(5);
    for _ in 0..300 {
        let (datatype, elements) = dice.some_layout(3);
        for first in 0..=elements.len() + 1 {
            let (runs, before) = datatype.runs_from(first);
            let rest = runs.flat_map(|(at, run)| at..at + run as i64).skip(before);
            let expected = elements.get(first..).unwrap_or_default();
            assert!(rest.eq(expected.iter().copied()), "{datatype} from {first} on");
        }
    }
}

#[test]
fn touched_elements_are_those_of_the_typemap_and_ascend_each_once() {
    let mut dice = Dice::new(6);
    for _ in 0..1000 {
        let (datatype, mut elements) = dice.some_layout(3);
        elements.sort_unstable();
        elements.dedup();
        let ascending = datatype.ascending_runs().unwrap();
        let gaps = ascending.windows(2).all(|pair| pair[0].end < pair[1].start);
        assert!(gaps, "{datatype}: {ascending:?}");
        let all = ascending.into_iter().flatten();
        assert!(all.eq(elements.iter().copied()), "{datatype}");
        let mut touched: Vec<i64> =
            datatype.touched_runs().flat_map(|(at, run)| at..at + run as i64).collect();
        touched.sort_unstable();
        touched.dedup();
        assert_eq!(touched, elements, "{datatype}");
    }
}

#[test]
fn touched_elements_are_found_without_a_look_at_each_visit() {
    let often = |dims: &[(usize, i64)], run| Datatype::nest(3, dims, run).unwrap();
    let ascending = |datatype: Datatype| -> Vec<(i64, i64)> {
        datatype.ascending_runs().unwrap().into_iter().map(|run| (run.start, run.end)).collect()
    };
    assert_eq!(ascending(often(&[(1 << 40, 0)], 1)), [(3, 4)]);
    assert_eq!(
        ascending(often(&[(1 << 20, 0), (4, 2), (1 << 30, 0)], 1)),
        [3, 5, 7, 9].map(|at| (at, at + 1))
    );
    // 200 steps in each of eight dimensions: 200^8 visits.
    assert_eq!(ascending(often(&[(200, 1); 8], 1)), [(3, 3 + 8 * 199 + 1)]);
    assert_eq!(often(&[(200, -2); 8], 1).touched_runs().count(), 8 * 199 + 1);
    let many = Datatype::sequence(
        (0..2000).map(|at| Datatype::nest(at % 3, &[(1 << 30, 0), (1000, 7)], 1).unwrap()),
    )
    .unwrap();
    assert_eq!(many.touched_runs().count(), 1000);
    // There is not enough memory for all of these runs.
    let far = often(&[(3, 0), (1 << 40, 2)], 1);
    drop(far.touched_runs());
    assert!(far.ascending_runs().is_err());
}

#[test]
fn monotone_is_the_stable_permutation_that_sorts_the_target() {
    let mut dice = Dice::new(4);
    let mut symbolic = 0;
    for _ in 0..6000 {
        let (mut origin, mut from) = dice.some_layout(2);
        let (mut target, mut to) = dice.some_layout(2);
        if dice.roll(0..2) == 0 {
            let dims: Vec<(usize, i64)> = (0..3).map(|_| (dice.count(3) + 1, dice.roll(-9..10))).collect();
            to = elements_of_nest(0, &dims, 2);
            target = Datatype::nest(0, &dims, 2).unwrap();
            from = (3..3 + to.len() as i64).collect();
            origin = Datatype::run(3..3 + to.len());
        }
        let size = from.len().min(to.len());
        let mut both: Vec<(i64, i64)> = from.into_iter().zip(to).collect();
        both.sort_by_key(|&(_, target)| target);
        let (origin, target) = (origin.slice(0, size).unwrap(), target.slice(0, size).unwrap());
        let (a, b) = monotone(&origin, &target).unwrap();
        assert_eq!(listed(&a), both.iter().map(|p| p.0).collect::<Vec<_>>(), "{origin} -> {target}");
        assert_eq!(listed(&b), both.iter().map(|p| p.1).collect::<Vec<_>>(), "{origin} -> {target}");
        assert!(b.ascends());
        symbolic += usize::from(!target.ascends() && target.pieces().len() == 1 && b.pieces().len() == 1);
    }
    assert!(symbolic > 500, "{symbolic}");
}

#[test]
fn ascending_is_seen_exactly() {
    let mut dice = Dice::new(5);
    let mut seen = [0, 0];
    for _ in 0..6000 {
        let (datatype, elements) = dice.layout(1);
        let ascends = elements.windows(2).all(|pair| pair[0] <= pair[1]);
        assert_eq!(datatype.ascends(), ascends, "{datatype}");
        seen[usize::from(ascends)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 500), "{seen:?}");
}

#[test]
fn the_lowest_common_element_is_found_exactly_where_there_is_one() {
    let mut dice = Dice::new(6);
    let mut seen = [0, 0];
    for _ in 0..20_000 {
        let (a, in_a) = dice.layout(1);
        let (b, in_b) = dice.layout(1);
        let by = dice.roll(-20..20);
        let b = b.shift(by).unwrap();
        let common = in_b.iter().map(|e| e + by).filter(|e| in_a.contains(e)).min();
        assert_eq!(a.overlap(&b), common, "{a} and {b}");
        assert_eq!(b.overlap(&a), common, "{b} and {a}");
        assert_eq!(a.overlaps(&b), common.is_some());
        let highest =
            a.element_iter().filter(|element| b.element_iter().any(|other| other == *element)).max();
        let bounds = common.zip(highest).map(|(low, high)| low..high + 1);
        assert_eq!(a.overlap_bounds(&b), bounds, "{a} and {b}");
        seen[usize::from(common.is_some())] += 1;
    }
    assert!(seen.iter().all(|&n| n > 2000), "{seen:?}");
}

#[test]
fn an_element_visited_twice_is_seen_exactly() {
    let mut dice = Dice::new(7);
    let mut seen = [0, 0];
    for round in 0..20_000 {
        let (datatype, mut elements) = if round % 2 == 0 {
            dice.layout(1)
        } else {
            let dims: Vec<(usize, i64)> = (0..3).map(|_| (dice.count(4) + 1, dice.roll(-20..21))).collect();
            (Datatype::nest(0, &dims, 1).unwrap(), elements_of_nest(0, &dims, 1))
        };
        elements.sort_unstable();
        let mut twice = elements.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let (first, last) = (twice.next(), twice.next_back());
        assert_eq!(datatype.overlaps_itself(), first.is_some(), "{datatype}");
        let bounds = first.map(|first| first..last.unwrap_or(first) + 1);
        assert_eq!(datatype.self_overlap_bounds(), bounds, "{datatype}");
        seen[usize::from(first.is_some())] += 1;
    }
    let far = Datatype::nest(5, &[(1 << 40, 0)], 1).unwrap();
    assert_eq!(far.self_overlap_bounds(), Some(5..6), "it has too many runs to write them out");
    assert!(seen.iter().all(|&n| n > 2000), "{seen:?}");
}

#[test]
fn pairs_are_both_typemaps_in_step_in_the_longest_common_runs() {
    let mut dice = Dice::new(8);
    for _ in 0..3000 {
        let (a, in_a) = dice.layout(2);
        let (b, in_b) = dice.layout(2);
        let steps: Vec<_> = pairs(&a, &b).collect();
        let flat: Vec<(i64, i64)> =
            steps.iter().flat_map(|&(a, b, len)| (0..len as i64).map(move |i| (a + i, b + i))).collect();
        assert_eq!(flat, in_a.into_iter().zip(in_b).collect::<Vec<_>>());
        for pair in steps.windows(2) {
            let len = pair[0].2 as i64;
            assert!((pair[0].0 + len, pair[0].1 + len) != (pair[1].0, pair[1].1), "{a} {b} {pair:?}");
        }
    }
}

#[test]
fn decoding_returns_what_was_encoded_and_leaves_what_follows() {
    let mut dice = Dice::new(9);
    for _ in 0..2000 {
        let (datatype, _) = dice.layout(2);
        let mut wire = Vec::new();
        datatype.encode(&mut wire);
        wire.extend(b"rest");
        let mut rest = &wire[..];
        assert_eq!(Datatype::decode(&mut rest).unwrap(), datatype);
        assert_eq!(rest, b"rest");
    }
}

#[test]
fn damaged_wire_forms_are_errors_or_other_canonical_datatypes() {
    let mut dice = Dice::new(10);
    let mut read = [0, 0];
    for _ in 0..1000 {
        let (datatype, _) = dice.some_layout(2);
        let mut wire = Vec::new();
        datatype.encode(&mut wire);
        for end in 0..wire.len() {
            let error = Datatype::decode(&mut &wire[..end]).unwrap_err();
            assert_eq!(error.class(), ErrorClass::File);
        }
        for _ in 0..50 {
            let mut damaged = wire.clone();
            for _ in 0..dice.roll(1..3) {
                let at = dice.count(damaged.len() as i64);
                damaged[at] ^= 1 << dice.roll(0..8);
            }
            let mut rest = &damaged[..];
            let decoded = Datatype::decode(&mut rest);
            read[usize::from(decoded.is_ok())] += 1;
            if let Ok(other) = decoded {
                assert!(is_canonical(other.pieces()));
                // Each typemap has one byte string.
                let mut again = Vec::new();
                other.encode(&mut again);
                assert_eq!(again, damaged[..damaged.len() - rest.len()]);
                if other.size() < 10_000 {
                    assert_eq!(other.pieces(), plain(&listed(&other)));
                }
            }
        }
    }
    assert!(read.iter().all(|&n| n > 1000), "{read:?}");
}

#[test]
fn text_is_short_and_read_back() {
    for (datatype, text) in [
        (Datatype::run(3..7), "3..7"),
        (Datatype::nest(3, &[(8, 100), (2, 10)], 4).unwrap(), "3+[8 by 100][2 by 10]x4"),
        (Datatype::nest(-3, &[(2, -5)], 1).unwrap(), "-3+[2 by -5]x1"),
        (Datatype::runs([(-4, 2), (9, 1), (14, 1)]).unwrap(), "-4..-2, 9+[2 by 5]x1"),
        (Datatype::run(7..7), "none"),
    ] {
        assert_eq!(datatype.to_string(), text);
        assert_eq!(text.parse::<Datatype>().unwrap(), datatype);
    }
    assert_eq!("0..2, 2..5".parse::<Datatype>().unwrap(), Datatype::run(0..5));
    assert_eq!("4+[3 by 1]x1".parse::<Datatype>().unwrap(), Datatype::run(4..7));
    for text in [
        "",
        "3",
        "3..",
        "7..3",
        "3+x",
        "3+[2 by]x1",
        "3+[2 by 4]",
        "1..2,",
        "3+[-1 by 4]x1",
        "0..99999999999999999999",
    ] {
        let error = text.parse::<Datatype>().unwrap_err();
        assert_eq!(error.class(), ErrorClass::Type, "{text}");
    }
}

#[test]
fn zero_counts_are_the_one_empty_datatype() {
    for none in [
        Datatype::run(9..9),
        Datatype::nest(5, &[(0, 3), (2, 1)], 4).unwrap(),
        Datatype::nest(i64::MAX, &[(3, 3)], 0).unwrap(),
        Datatype::runs([(5, 0)]).unwrap(),
        Datatype::elements([0_i64; 0]).unwrap(),
        Datatype::sequence([Datatype::run(3..3)]).unwrap(),
        Datatype::run(0..4).repeat(0, 4).unwrap(),
        Datatype::run(0..4).repeat(0, i64::MIN).unwrap(),
        Datatype::empty().shift(i64::MAX).unwrap(),
        Datatype::run(2..5).slice(3, 9).unwrap(),
        Datatype::subarray(&[4, 4], &[4, 0], &[0, 4]).unwrap(),
    ] {
        assert_eq!(none, Datatype::empty());
        assert_eq!((none.size(), none.extent()), (0, 0));
    }
}

#[test]
fn a_part_that_has_no_short_form_is_an_error_before_it_is_written_out() {
    // Without the first element, the remaining ones form pairs with two alternating distances.
    // Neighbouring pairs differ, so they do not fold.
    let pairs = |n| Datatype::nest(0, &[(n, 100), (2, 30), (2, 7)], 1).unwrap();
    assert_eq!(pairs(1000).slice(1, 3998).unwrap().pieces().len(), 1999);
    let error = pairs(1 << 40).slice(1, 1 << 41).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Type);
    assert_eq!(pairs(1 << 40).slice(4, 1 << 41).unwrap().pieces().len(), 1);
}

#[test]
fn huge_nests_stay_nests() {
    let n = 1_usize << 40;
    let columns = Datatype::nest(7, &[(n, 1 << 12), (3, 5)], 2).unwrap();
    assert_eq!(columns.pieces().len(), 1);
    assert_eq!(columns.size(), 6 * n);
    // A slice that begins and ends within rows consists of the cut rows and the rest.
    let slice = columns.slice(1, 6 * n - 2).unwrap();
    assert_eq!(slice.size(), 6 * n - 2);
    assert!(slice.pieces().len() <= 5, "{slice}");
    // If rows of two elements are cut in the middle, their elements form new pairs.
    let rows = Datatype::nest(0, &[(n, 10), (2, 3)], 1).unwrap();
    assert_eq!(rows.slice(1, 2 * n - 2).unwrap().to_string(), format!("3+[{} by 10][2 by 7]x1", n - 1));
    let joined = Datatype::nest(0, &[(n, 10), (2, 8)], 2).unwrap();
    assert_eq!(joined.to_string(), format!("0..2, 8+[{} by 10]x4, {}..{}", n - 1, 10 * n - 2, 10 * n));
    assert_eq!(columns.overlap(&columns.shift(1 << 11).unwrap()), None);
    assert_eq!(columns.overlap(&columns.shift(1).unwrap()), Some(8));
    assert!(!columns.overlaps_itself());
    assert!(!Datatype::nest(0, &[(n, 3), (3, 2)], 1).unwrap().overlaps_itself());
    assert!(Datatype::nest(0, &[(n, 3), (4, 2)], 1).unwrap().overlaps_itself());
    let down = Datatype::nest(1 << 50, &[(5, 1), (1 << 30, -64)], 1).unwrap();
    let (origin, target) = monotone(&Datatype::run(0..5 << 30), &down).unwrap();
    assert_eq!(target.to_string(), format!("{}+[{} by 64]x5", (1_i64 << 50) - 64 * ((1 << 30) - 1), 1 << 30));
    assert_eq!(origin.to_string(), format!("{}+[{} by -1][5 by {}]x1", (1 << 30) - 1, 1 << 30, 1 << 30));
}

#[test]
fn what_exceeds_the_limits_is_an_error_of_class_type() {
    let n = 1_usize << 40;
    let high = Datatype::run(usize::MAX - 5..usize::MAX);
    assert_eq!((high.size(), high.high()), (5, REACH));
    let many = Datatype::nest(0, &[(n, 0)], 1).unwrap();
    for refused in [
        Datatype::nest(0, &[(n, 0), (n, 0)], 1),
        Datatype::nest(0, &[(usize::MAX, 0), (usize::MAX, 0), (usize::MAX, 0)], usize::MAX),
        Datatype::nest(i64::MAX, &[], 1),
        Datatype::nest(i64::MIN, &[], 1),
        Datatype::nest(0, &[(3, i64::MAX)], 1),
        Datatype::nest(0, &[(3, i64::MIN)], 1),
        Datatype::nest(0, &[(n, 9), (3, 3)], 1 << 62),
        // The next datatype has no short form.
        Datatype::nest(0, &[(n, 8), (3, 3)], 2),
        Datatype::runs([(REACH, 1)]),
        Datatype::runs([(-REACH - 1, 1)]),
        Datatype::runs([(0, 1 << 62), (0, 1 << 62), (0, 1 << 62)]),
        Datatype::elements([u64::MAX]),
        many.repeat(n, 1),
        Datatype::run(0..4).repeat(2, i64::MAX),
        Datatype::run(0..4).repeat(2, i64::MIN),
        Datatype::elements([0, 2, 7]).unwrap().repeat(usize::MAX, 0),
        Datatype::elements([0, 2, 7]).unwrap().repeat(n, 20),
        high.shift(1),
        high.shift(i64::MIN),
        high.shift(i64::MAX),
        Datatype::sequence([Datatype::run(0..1 << 62), Datatype::run(0..1 << 62)]),
        Datatype::subarray(&[usize::MAX, 2], &[0, 0], &[1, 1]),
    ] {
        assert_eq!(refused.unwrap_err().class(), ErrorClass::Type);
    }
    let whole = Datatype::sequence([high.clone(), Datatype::nest(-REACH, &[], 1).unwrap()]).unwrap();
    assert!(whole.overlap(&high).is_some());
    let mut wire = Vec::new();
    whole.encode(&mut wire);
    assert_eq!(Datatype::decode(&mut &wire[..]).unwrap(), whole);
}

#[test]
fn a_subarray_is_the_box_in_row_major_order() {
    assert_eq!(
        Datatype::subarray(&[8, 10], &[2, 3], &[4, 5]).unwrap(),
        Datatype::nest(23, &[(4, 10)], 5).unwrap()
    );
    assert_eq!(Datatype::subarray(&[8, 10], &[2, 0], &[4, 10]).unwrap(), Datatype::run(20..60));
    let face = Datatype::subarray(&[4, 5, 6], &[0, 0, 5], &[4, 5, 1]).unwrap();
    assert_eq!(face, Datatype::nest(5, &[(20, 6)], 1).unwrap());
    assert_eq!(Datatype::subarray(&[], &[], &[]).unwrap(), Datatype::run(0..1));
    for (shape, start, len) in [
        (&[4, 4][..], &[0, 2][..], &[4, 3][..]),
        (&[4, 4], &[5, 0], &[0, 1]),
        (&[4, 4], &[0], &[4, 4]),
        (&[4], &[usize::MAX], &[2]),
    ] {
        assert_eq!(Datatype::subarray(shape, start, len).unwrap_err().class(), ErrorClass::Type);
    }
}
