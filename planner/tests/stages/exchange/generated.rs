//! Random programs. The reference has the same results as `small_steps`, whatever the order of
//! turns.

use super::small_steps;
use fencepost_tests_reference::draw::Exchange;
use fencepost_tests_reference::{Outcome, exchange};
use fencepost_tests_support::random::Random;

const LEN: usize = 4;

#[test]
fn the_order_of_turns_does_not_show() {
    let (mut whole, mut failing, mut stalling, mut landing) = (0, 0, 0, 0);
    const PROGRAMS: u64 = 4000;
    for seed in 0..PROGRAMS {
        let Exchange { before, programs } = Exchange::draw(&mut Random::new(seed), LEN, true);
        let mut after = before.clone();
        let outcomes = exchange(&mut after, &programs).unwrap();
        for turns in 0..3 {
            let mut small = before.clone();
            let found = small_steps::run(&mut small, &programs, seed * 3 + turns);
            assert_eq!(found, outcomes, "seed {seed}, turns {turns}: {programs:#?}");
            assert_eq!(small, after, "seed {seed}, turns {turns}: {programs:#?}");
        }
        let all = || outcomes.iter().flatten();
        let stalls = all().any(|outcome| matches!(outcome, Outcome::Stalled(_)));
        let fails = all().any(|outcome| matches!(outcome, Outcome::Failed { .. }));
        stalling += u64::from(stalls);
        failing += u64::from(fails && !stalls);
        whole += u64::from(!fails && !stalls);
        let has = |outcome: &Outcome| matches!(outcome, Outcome::Got(bytes) if !bytes.is_empty());
        landing += u64::from(all().any(has));
    }
    let kinds = [whole, failing, stalling, landing];
    assert!(kinds.iter().all(|kind| *kind > PROGRAMS / 10), "of {PROGRAMS}: {kinds:?}");
}
