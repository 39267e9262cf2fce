//! Entry points for fuzzers that read plans: libFuzzer in `fuzz/`, and the tests below with
//! modified plans.

use super::layout::{self, SECTIONS};
use super::{Plan, file_of, from_bytes};
use crate::ids::{Id, Rank};
use crate::ir::pattern::Patterns;
use crate::ir::schedule::Schedule;
use crate::share::Share;
use crate::verify::{verify, verify_share};

/// Reads bytes that may be a plan file, and returns whether they are a plan.
///
/// If the first byte is not zero, the bytes after it are the sections of a file, each preceded by
/// its length in three bytes. A valid digest and valid checksums are then added, so that the fuzzer
/// reaches the code behind these checks. The bytes are either refused, or they are a plan. The
/// function checks that a plan is the same after it is written and read again, and that the
/// verifier reaches a verdict on the plan.
pub fn plan(data: &[u8]) -> bool {
    let Some((&kind, rest)) = data.split_first() else { return false };
    let file = if kind == 0 { rest.to_vec() } else { assembled(rest) };
    let Ok(plan) = from_bytes(&file) else { return false };
    let again = file_of(&plan.schedule, plan.made_for.as_ref()).and_then(|bytes| from_bytes(&bytes));
    let is_same = |again: Plan| again.schedule == plan.schedule && again.made_for == plan.made_for;
    assert!(again.is_ok_and(is_same), "a plan is not read as it was written");
    let Plan { schedule, digest, .. } = plan;
    assert_eq!(digest, schedule.digest());
    // Plans for a very large number of ranks are skipped, since verifying them takes long.
    if schedule.class_of.len() <= 4096 {
        drop(verify(&asked_by(&schedule), schedule));
    }
    true
}

/// Reads bytes that may be the share of a rank, and returns whether they are a share.
///
/// After the first byte, the input has 32 bytes of digest and 8 bytes of windows, followed by a
/// plan. The first byte selects the form of the plan, as in [`plan`]. The bytes are either refused,
/// or they are a share. The function checks that the verifier reaches a verdict on the share.
pub fn share(data: &[u8]) -> bool {
    let Some((&kind, rest)) = data.split_first() else { return false };
    let (head, rest) = rest.split_at(rest.len().min(40));
    let file = if kind == 0 { rest.to_vec() } else { assembled(rest) };
    let bytes = [head, &file].concat();
    let ranks = from_bytes(&file).map_or(1, |plan| plan.schedule.class_of.len());
    for rank in [0, 1, ranks - 1, ranks].map(Rank::new) {
        let Ok(share) = Share::from_bytes(&bytes, rank) else { continue };
        assert!(rank.index() < ranks && !share.is_whole() && share.rank() == rank);
        share.windows.ids().for_each(|window| _ = share.names_window(window));
        if ranks <= 4096 {
            drop(verify_share(share));
        }
    }
    Share::from_bytes(&bytes, Rank(0)).is_ok()
}

/// Assembles a file with valid checksums and a valid digest from sections, each preceded by its
/// length in three bytes.
fn assembled(mut rest: &[u8]) -> Vec<u8> {
    let mut sections: layout::Sections<Vec<u8>> = Default::default();
    for section in &mut sections {
        let Some((&[a, b, c], bytes)) = rest.split_first_chunk() else { break };
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        let bytes = bytes.split_at(len.min(bytes.len()));
        (*section, rest) = (bytes.0.to_vec(), bytes.1);
    }
    layout::assemble(&sections)
}

/// Returns the patterns that the programs claim to implement.
fn asked_by(schedule: &Schedule) -> Patterns {
    Patterns {
        name: schedule.name.clone(),
        windows: schedule.windows.clone(),
        shape: schedule.shape.clone(),
        classes: schedule.classes.values().map(|program| program.pattern.clone()).collect(),
        class_of: schedule.class_of.clone(),
        order: schedule.order,
        sync: schedule.sync,
    }
}

/// Converts a plan file to sections in the form that [`plan`] reads.
///
/// # Panics
/// Panics if `file` is not a plan file.
pub fn by_sections(file: &[u8]) -> Vec<u8> {
    let (sections, _) = layout::open(file).expect("a plan file");
    let mut data = vec![1];
    for section in sections.iter().take(SECTIONS.len()) {
        data.extend(&(section.len() as u32).to_le_bytes()[..3]);
        data.extend_from_slice(section);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Shares;
    use fencepost_tests_support::random::Random;

    #[test]
    fn changed_shares_are_refused_or_are_shares() {
        let file = include_bytes!("../../tests/golden/halo-6-ranks.plan");
        let whole = from_bytes(file).expect("a plan").schedule;
        let shares = Shares::of(&whole);
        for rank in 0..6 {
            let bytes = shares.bytes(Rank(rank)).expect("a share");
            let sections = by_sections(&bytes[40..]);
            let good = [&[1], &bytes[..40], &sections[1..]].concat();
            assert!(share(&good) && share(&[&[0], &bytes[..]].concat()));
            let (mut random, mut shares) = (Random::new(u64::from(rank)), 0);
            for _ in 0..1500 {
                let mut changed = good.clone();
                for _ in 0..1 + random.below(3) {
                    let at = 1 + random.below(changed.len() - 1);
                    match random.below(4) {
                        0 => changed[at] = random.bits() as u8,
                        1 => changed.truncate(at + 1),
                        2 => drop(changed.splice(at..at, [random.bits() as u8, 0, 255])),
                        _ => changed[at] ^= 1 << random.below(8),
                    }
                }
                shares += usize::from(share(&changed));
            }
            assert!((1..1500).contains(&shares), "{shares} are shares");
        }
    }

    #[test]
    fn changed_plans_are_refused_or_are_plans() {
        let file = include_bytes!("../../tests/golden/halo-6-ranks.plan");
        let whole = [&[0], &file[..]].concat();
        let sections = by_sections(file);
        assert!(plan(&whole) && plan(&sections));
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let sections = bit / 8 == 0; // if bit 0 is changed, the rest is not read as sections
            assert!(sections || !plan(&changed), "bit {bit}");
        }
        let mut plans = 0;
        for bit in 8..sections.len() * 8 {
            let mut changed = sections.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            plans += usize::from(plan(&changed));
        }
        assert!((100..sections.len() * 8).contains(&plans), "{plans}");
        let mut random = Random::new(1);
        let mut below = |bound: usize| random.below(bound);
        for _ in 0..5000 {
            let mut changed = if below(2) == 0 { whole.clone() } else { sections.clone() };
            for _ in 0..1 + below(4) {
                let at = below(changed.len());
                match below(4) {
                    0 => changed[at] = below(256) as u8,
                    1 => changed.truncate(at.max(1)),
                    2 => drop(changed.splice(at..at, [below(256) as u8, 0, 255])),
                    _ => changed[at] = changed[at].wrapping_add(1),
                }
            }
            plan(&changed);
        }
    }
}
