//! Ranks with several threads: one thread communicates, and the others compute.

use super::Case;
use super::How::{Refused, Runs};
use fencepost::prelude::*;
use std::sync::Mutex;
use std::thread::scope;

const SHARED: &str = "A window in another thread of its rank.";
const BORROWED: &str = "A store by another thread into what a get borrows.";

/// The threads of a rank compute a value, and then the rank puts it. After the fence, the threads
/// of the target read the value that has arrived.
fn between(world: &World, compute: fn(&mut [u64; 4]), read: fn(&[u64]) -> u64) -> Result<()> {
    let mut u = world.window::<u64>(16)?;
    let mut values = [0; 4];
    if world.rank() == 0 {
        compute(&mut values);
        u.put(values).to(1, 4)?;
    }
    u.fence()?;
    if world.rank() == 1 {
        assert_eq!(read(&u[4..8]), 4);
    }
    Ok(())
}

/// One thread computes all values.
fn one(values: &mut [u64; 4]) {
    scope(|threads| drop(threads.spawn(|| values.fill(1))));
}

/// Each thread computes its share of the values.
fn each(values: &mut [u64; 4]) {
    scope(|threads| {
        let (left, right) = values.split_at_mut(2);
        threads.spawn(|| left.fill(1));
        threads.spawn(|| right.fill(1));
    });
}

/// The threads compute one after another.
fn ordered(values: &mut [u64; 4]) {
    let values = Mutex::new(values);
    scope(|threads| {
        for at in 0..4 {
            let values = &values;
            threads.spawn(move || values.lock().expect("no thread panics")[at] += 1);
        }
    });
}

fn sum(values: &[u64]) -> u64 {
    scope(|threads| threads.spawn(|| values.iter().sum()).join().expect("it does not panic"))
}

fn sum_of_parts(values: &[u64]) -> u64 {
    scope(|threads| {
        let parts: Vec<_> = values.chunks(2).map(|part| threads.spawn(|| part.iter().sum::<u64>())).collect();
        parts.into_iter().map(|part| part.join().expect("it does not panic")).sum()
    })
}

fn sum_in_order(values: &[u64]) -> u64 {
    let total = Mutex::new(0);
    scope(|threads| {
        for value in values {
            let total = &total;
            threads.spawn(move || *total.lock().expect("no thread panics") += value);
        }
    });
    total.into_inner().expect("no thread panics")
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-hybrid-master-local-yes", Refused(BORROWED)),
    ("002-hybrid-master-local-no", Runs(|world| between(world, one, |values| values.iter().sum()))),
    ("003-hybrid-single-local-yes", Refused(BORROWED)),
    ("004-hybrid-single-local-no", Runs(|world| between(world, one, sum))),
    ("005-hybrid-ordered-local-no", Runs(|world| between(world, ordered, sum))),
    ("006-hybrid-for-local-yes", Refused(BORROWED)),
    ("007-hybrid-section-local-yes", Refused(BORROWED)),
    ("008-hybrid-section-local-no", Runs(|world| between(world, each, sum))),
    ("009-hybrid-task-local-yes", Refused(BORROWED)),
    ("010-hybrid-task-local-no", Runs(|world| between(world, |values| (0..2).for_each(|_| each(values)), sum))),
    ("011-hybrid-master-remote-yes", Refused(SHARED)),
    ("012-hybrid-master-remote-no", Runs(|world| between(world, |values| values.fill(1), sum))),
    ("013-hybrid-single-remote-yes", Refused(SHARED)),
    ("014-hybrid-single-remote-no", Runs(|world| between(world, |values| values.fill(1), sum_of_parts))),
    ("015-hybrid-task-remote-yes", Refused(SHARED)),
    ("016-hybrid-task-remote-no", Runs(|world| between(world, one, sum_of_parts))),
    ("017-hybrid-section-remote-yes", Refused(SHARED)),
    ("018-hybrid-section-remote-no", Runs(|world| between(world, each, sum_of_parts))),
    ("019-hybrid-ordered-remote-no", Runs(|world| between(world, ordered, sum_in_order))),
    ("020-hybrid-for-remote-yes", Refused(SHARED)),
    ("021-hybrid-section-barrier-origin-remote-yes", Refused(SHARED)),
    ("022-hybrid-section-sendrecv-origin-remote-yes", Refused(SHARED)),
];
