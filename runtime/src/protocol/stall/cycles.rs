//! Tests of the search for wait-for cycles. They fill the wait-for table entry by entry.

use fencepost_transport::deadlock::{GONE, Waiting, Waits};

fn ranks(cycle: &[Waiting]) -> Vec<usize> {
    cycle.iter().map(|waiting| waiting.rank).collect()
}

#[test]
fn waits_make_a_cycle_only_once_each_has_seen_the_next() {
    let waits = Waits::new(3);
    let numbers: Vec<u64> =
        (0..3).map(|rank| waits.begin(rank, (rank + 1) % 3, &format!("call {rank}"))).collect();
    for rank in 0..3 {
        assert_eq!(waits.cycle(0), None, "{rank} ranks have seen");
        waits.see(rank, numbers[(rank + 1) % 3]);
    }
    for rank in 0..3 {
        let cycle = waits.cycle(rank).expect("a cycle");
        assert_eq!(ranks(&cycle), [0, 1, 2]);
        assert_eq!(cycle[1].text, "call 1");
    }
}

#[test]
fn a_wait_that_began_again_was_not_seen() {
    let waits = Waits::new(2);
    let (zero, one) = (waits.begin(0, 1, "a"), waits.begin(1, 0, "b"));
    waits.see(0, one);
    waits.see(1, zero);
    assert!(waits.cycle(0).is_some());
    let again = waits.begin(1, 0, "b");
    assert_eq!((waits.cycle(0), waits.cycle(1)), (None, None));
    waits.see(1, zero);
    assert_eq!(waits.cycle(0), None, "rank 0 has seen the former wait only");
    waits.see(0, again);
    assert!(waits.cycle(0).is_some());
    waits.end(0);
    assert_eq!((waits.cycle(0), waits.cycle(1)), (None, None));
}

#[test]
fn a_rank_that_waits_for_a_cycle_is_not_in_it() {
    let waits = Waits::new(3);
    let numbers: Vec<u64> = [1, 2, 1].iter().enumerate().map(|(r, &to)| waits.begin(r, to, "")).collect();
    for (rank, &to) in [1, 2, 1].iter().enumerate() {
        waits.see(rank, numbers[to]);
    }
    assert_eq!(waits.cycle(0), None);
    assert_eq!(ranks(&waits.cycle(2).expect("a cycle")), [1, 2]);
}

#[test]
fn ranks_of_a_part_are_known_by_their_rank_in_the_job() {
    let waits = Waits::new(4);
    let part = waits.of(&[3, 1]);
    assert!(waits.is_whole() && !part.is_whole());
    let (three, one) = (part.begin(0, 1, "x"), waits.begin(1, 3, "y"));
    part.see(0, one);
    waits.see(1, three);
    assert_eq!(ranks(&part.cycle(0).expect("a cycle")), [1, 3]);
    assert_eq!(ranks(&part.of(&[1]).cycle(0).expect("a cycle")), [1, 3]);
}

#[test]
fn a_rank_removes_its_wait_when_all_of_the_cycle_know_it() {
    let waits = Waits::new(2);
    let (zero, one) = (waits.begin(0, 1, "a"), waits.begin(1, 0, "b"));
    waits.see(0, one);
    waits.see(1, zero);
    let cycle = waits.cycle(0).expect("a cycle");
    assert!(!waits.agree(0, &cycle));
    assert!(waits.agree(1, &cycle));
    waits.end(1);
    assert!(waits.agree(0, &cycle));
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let waits = Waits::new(1);
    waits.begin(0, 0, &format!("a{}", "ä".repeat(384)));
    let text = waits.waiting(0).expect("it waits").text;
    assert_eq!(text, format!("a{}", "ä".repeat(383 / 2)));
}

#[test]
fn ranks_without_an_entry_are_in_no_cycle_and_those_with_one_are_known_by_their_rank_in_the_job() {
    // Of five ranks, those with odd numbers have an entry.
    let waits = Waits::new(2).with_slots([None, Some(0), None, Some(1), None].into_iter());
    assert!(waits.is_whole());
    let (one, three) = (waits.begin(1, 3, "x"), waits.begin(3, 1, "y"));
    waits.see(1, three);
    waits.see(3, one);
    let part = waits.of(&[3, 4, 1]);
    for cycle in [waits.cycle(1), waits.cycle(3), part.cycle(0)] {
        assert_eq!(ranks(&cycle.expect("a cycle")), [1, 3]);
    }
    // Rank 3 waits for a rank without an entry. Whether that rank waits is not known.
    let again = waits.begin(3, 4, "y");
    waits.see(3, waits.number(4));
    waits.see(1, again);
    assert_eq!((waits.number(4), waits.cycle(1), waits.cycle(3)), (0, None, None));
    assert_eq!((waits.waiting(4), waits.cycle(4)), (None, None));
}

/// Begins a wait of each of three ranks for any other rank, and returns the numbers of the waits.
fn any_of_three(waits: &Waits) -> Vec<u64> {
    let begin = |rank: usize| {
        let others: Vec<usize> = (0..3).filter(|&other| other != rank).collect();
        waits.begin_about(rank, others[0], &[(others[1], true)], "")
    };
    (0..3).map(begin).collect()
}

#[test]
fn waits_for_any_make_a_knot_only_once_each_has_seen_all() {
    let waits = Waits::new(3);
    let numbers = any_of_three(&waits);
    for rank in 0..3 {
        let others: Vec<usize> = (0..3).filter(|&other| other != rank).collect();
        waits.see(rank, numbers[others[0]]);
        assert_eq!((waits.knot(0), waits.cycle(0)), (None, None), "rank {rank} has seen one other");
        waits.see_other(rank, 0, numbers[others[1]]);
    }
    for rank in 0..3 {
        assert_eq!(ranks(&waits.knot(rank).expect("a knot")), [0, 1, 2]);
        assert_eq!(waits.cycle(rank), None);
    }
    let again = waits.begin(2, 0, "");
    assert_eq!(waits.knot(0), None, "another wait of rank 2");
    waits.see(2, numbers[0]);
    waits.see_other(0, 0, again);
    waits.see_other(1, 0, again);
    assert_eq!(ranks(&waits.knot(1).expect("a knot")), [0, 1, 2]);
    waits.end(2);
    assert_eq!((waits.knot(0), waits.knot(1)), (None, None));
}

#[test]
fn a_rank_that_has_left_is_in_no_knot_and_keeps_nobody_waiting() {
    let waits = Waits::new(3);
    let numbers = any_of_three(&waits);
    waits.end(2);
    waits.see(0, numbers[1]);
    waits.see_other(0, 0, GONE);
    waits.see(1, numbers[0]);
    assert_eq!(waits.knot(0), None, "rank 1 does not know that rank 2 has left");
    waits.see_other(1, 0, GONE);
    assert_eq!(ranks(&waits.knot(0).expect("a knot")), [0, 1]);
}

#[test]
fn a_rank_that_may_answer_one_of_a_knot_has_seen_its_wait() {
    let waits = Waits::new(3);
    // Rank 0 waits for 1, 1 for 2, and 2 for 0. Rank 0 has begun to receive from 2.
    let zero = waits.begin_about(0, 1, &[(2, false)], "");
    let (one, two) = (waits.begin(1, 2, ""), waits.begin(2, 0, ""));
    waits.see(0, one);
    waits.see(1, two);
    waits.see(2, zero);
    assert_eq!((waits.knot(0), waits.cycle(1)), (None, None), "rank 0 may find what rank 2 has sent");
    waits.see_other(0, 0, two);
    assert_eq!(ranks(&waits.knot(1).expect("a knot")), [0, 1, 2]);
    // Rank 0 may also answer a rank outside the knot, which makes no difference.
    let other = Waits::new(3);
    let (zero, one) = (other.begin_about(0, 1, &[(2, false)], ""), other.begin(1, 0, ""));
    other.see(0, one);
    other.see(1, zero);
    assert_eq!(ranks(&other.knot(0).expect("a knot")), [0, 1]);
}
