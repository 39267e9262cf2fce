//! Cases with accumulates, and with operations that name an element more than once.

use super::Case;
use fencepost::prelude::*;

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("201-counter-of-all-ranks-no", |world| {
        let mut u = world.window::<u64>(1)?;
        for _ in 0..10 {
            u.accumulate([1], Op::Sum).to(0, 0)?;
        }
        u.fence()?;
        assert!(world.rank() > 0 || u[0] == 40);
        Ok(())
    }),
    ("202-counter-by-get-and-put-yes", |world| {
        let mut u = world.window::<u64>(1)?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            let seen = u.fetch(0, 0)?; // CONFLICT
            ended = u.put([1]).to(0, 0); // CONFLICT, at the call
            drop(seen);
        }
        u.fence()?;
        ended
    }),
    ("203-counter-fetched-while-it-counts-yes", |world| {
        let mut u = world.window::<u64>(1)?;
        match world.rank() {
            1 => u.accumulate([1], Op::Sum).to(0, 0)?, // CONFLICT
            3 => drop(u.fetch(0, 0)?), // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("204-operators-on-elements-of-their-own-no", |world| {
        let mut u = world.window::<u64>(16)?;
        for (at, op) in [Op::Sum, Op::Max, Op::Bxor].into_iter().enumerate() {
            u.accumulate([1], op).to(2, at)?;
        }
        u.fence()
    }),
    ("205-elements-twice-in-an-accumulate-no", |world| {
        let mut u = world.window::<u64>(16)?;
        u.accumulate([1; 4], Op::Sum).to(2, Datatype::elements([3, 5, 3, 3]).unwrap())?;
        u.fence()?;
        assert!(world.rank() != 2 || u[3] == 12);
        Ok(())
    }),
    ("206-put-that-overwrites-itself-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let put = || {
            u.put([1; 4]).to(2, Datatype::elements([3, 5, 3, 6]).unwrap()) // CONFLICT, at the call
        };
        let refused = if world.rank() == 1 { put() } else { Ok(()) };
        u.fence()?;
        refused
    }),
    ("207-get-that-overwrites-itself-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let get = || {
            u.get(Datatype::elements([3, 4, 3]).unwrap()).from(2, 0..3) // CONFLICT, at the call
        };
        let refused = if world.rank() == 1 { get() } else { Ok(()) };
        u.fence()?;
        refused
    }),
    ("208-least-and-where-no", |world| {
        let mut u = world.window::<ValueAt<f64, i64>>(2)?;
        let own = ValueAt { value: -(world.rank() as f64), index: world.rank() as i64 };
        u.accumulate([own], Op::MinLoc).to(0, 1)?;
        u.fence()?;
        assert!(world.rank() > 0 || u[1].index == 3);
        Ok(())
    }),
    ("209-sums-over-sources-that-all-read-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let right = (world.rank() + 1) % 4;
        u.accumulate(0..4, Op::Sum).to(right, 8)?;
        u.accumulate(2..6, Op::Sum).to(right, 10)?;
        u.fence()
    }),
    ("210-sum-into-what-is-a-source-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let right = (world.rank() + 1) % 4;
        u.accumulate(0..8, Op::Sum).to(right, 4)?; // CONFLICT
        u.fence()
    }),
];
