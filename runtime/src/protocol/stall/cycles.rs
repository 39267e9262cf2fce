//! Wait-for cycles, entry by entry.

use fencepost_transport::deadlock::{Waiting, Waits};

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
    // Of five ranks, those with odd numbers are here.
    let waits = Waits::new(2).with_slots([None, Some(0), None, Some(1), None].into_iter());
    assert!(waits.is_whole());
    let (one, three) = (waits.begin(1, 3, "x"), waits.begin(3, 1, "y"));
    waits.see(1, three);
    waits.see(3, one);
    let part = waits.of(&[3, 4, 1]);
    for cycle in [waits.cycle(1), waits.cycle(3), part.cycle(0)] {
        assert_eq!(ranks(&cycle.expect("a cycle")), [1, 3]);
    }
    // Rank 3 waits for a rank without an entry: whether that one waits is not known.
    let again = waits.begin(3, 4, "y");
    waits.see(3, waits.number(4));
    waits.see(1, again);
    assert_eq!((waits.number(4), waits.cycle(1), waits.cycle(3)), (0, None, None));
    assert_eq!((waits.waiting(4), waits.cycle(4)), (None, None));
}
