//! Cases with two operations of one epoch on the same element.

use super::Case;
use fencepost::prelude::*;

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-put-put-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            1 => u.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("002-put-get-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            1 => drop(u.fetch(2, 3)?), // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("003-get-get-no", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => drop(u.fetch(2, 0..4)?),
            1 => drop(u.fetch(2, 3)?),
            _ => (),
        }
        u.fence()
    }),
    ("004-put-accumulate-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.accumulate([1], Op::Sum).to(2, 3)?, // CONFLICT
            1 => u.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("005-get-accumulate-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.accumulate([1], Op::Sum).to(2, 3)?, // CONFLICT
            3 => u.get(9..10).from(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("006-accumulate-accumulate-no", |world| {
        let mut u = world.window::<u64>(16)?;
        u.accumulate([1, 1], Op::Sum).to(2, 3)?;
        u.fence()
    }),
    ("007-accumulate-another-operator-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.accumulate([1], Op::Sum).to(2, 3)?, // CONFLICT
            1 => u.accumulate([1], Op::Max).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("008-replace-replace-no", |world| {
        let mut u = world.window::<u64>(16)?;
        u.accumulate([1], Op::Replace).to(2, 3)?;
        u.fence()
    }),
    ("009-replace-put-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.accumulate([1], Op::Replace).to(2, 3)?, // CONFLICT
            1 => u.put([1]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("010-two-puts-of-one-rank-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?; // CONFLICT
            ended = u.put([2]).to(2, 3); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("011-put-then-get-of-one-rank-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?; // CONFLICT
            ended = u.fetch(2, 3).map(drop); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("012-get-then-put-of-one-rank-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            drop(u.fetch(2, 0..8)?); // CONFLICT
            ended = u.put([1]).to(2, 3); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("013-one-line-twice-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 0 {
            for value in [1, 2] {
                ended = u.put([value]).to(2, 3); // CONFLICT, at the call
            }
        }
        u.fence()?;
        ended
    }),
    ("014-one-line-of-all-ranks-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        u.put([world.rank() as u64]).to(2, 3)?; // CONFLICT
        u.fence()
    }),
    ("015-put-and-the-targets-own-put-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            2 => u.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("016-put-onto-a-source-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            2 => u.put(0..8).to(1, 8)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("017-put-onto-where-a-get-lands-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            2 => u.get(0..4).from(1, 8)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("018-get-of-where-a-get-lands-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => drop(u.fetch(2, 3)?), // CONFLICT
            2 => u.get(3..4).from(1, 8)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("019-two-gets-land-in-one-element-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            u.get(3..4).from(0, 8)?; // CONFLICT
            ended = u.get(2..4).from(2, 8); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("020-ranges-that-share-their-last-element-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1; 5]).to(2, 0)?, // CONFLICT
            1 => u.put([2; 5]).to(2, 4)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("021-ranges-next-to-each-other-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let rank = world.rank();
        u.put([1; 4]).to(2, 4 * rank)?;
        u.fence()
    }),
    ("022-row-and-column-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let column = Datatype::nest(2, &[(4, 4)], 1).unwrap();
        match world.rank() {
            0 => u.put([1; 4]).to(2, &column)?, // CONFLICT
            1 => u.put([2; 4]).to(2, 4..8)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("023-columns-of-one-matrix-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let column = Datatype::nest(world.rank() as i64, &[(4, 4)], 1).unwrap();
        u.put([1; 4]).to(2, &column)?;
        u.fence()
    }),
    ("024-scattered-elements-yes", |world| {
        let mut u = world.window::<u64>(64)?;
        let mine = match world.rank() {
            0 => [1, 20, 40, 3],
            1 => [60, 2, 40, 21],
            _ => return u.fence(),
        };
        let line = |_| u.put([7; 4]).to(3, Datatype::elements(mine).unwrap()); // CONFLICT
        line(())?;
        u.fence()
    }),
    ("025-a-second-operator-where-the-first-was-yes", |world| {
        let mut u = world.window::<u64>(5000)?;
        let mut ended = Ok(());
        if world.rank() == 3 {
            u.accumulate([1; 9], Op::Sum).to(2, 4000)?; // CONFLICT
            u.accumulate([1; 9], Op::Max).to(2, 4009)?;
            u.accumulate([1; 3], Op::Sum).to(2, 4001)?;
            ended = u.accumulate([1], Op::Max).to(2, 4008); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("026-a-second-operator-elsewhere-no", |world| {
        let mut u = world.window::<u64>(5000)?;
        for at in 0..40 {
            u.accumulate([1], [Op::Sum, Op::Max][at % 2]).to(2, 100 * at)?;
            u.accumulate([1], [Op::Sum, Op::Max][at % 2]).to(2, 100 * at)?;
        }
        u.fence()
    }),
    ("027-put-after-one-far-away-and-many-others-yes", |world| {
        let mut u = world.window::<u64>(5000)?;
        let mut ended = Ok(());
        if world.rank() == 1 {
            for at in 0..1000 {
                u.put([7]).to(2, 3 * at)?; // CONFLICT
            }
            ended = u.put([1; 2]).to(2, 1502); // CONFLICT, at the call
        }
        u.fence()?;
        ended
    }),
    ("028-section-of-another-window-yes", |world| {
        let (mut u, mut v) = (world.window::<u64>(16)?, world.window::<u64>(16)?);
        let mut ended = Ok(());
        if world.rank() == 1 {
            u.get(v.section(0..4)).from(2, 3)?; // CONFLICT
            ended = u.get(v.section(3..5)).from(2, 8); // CONFLICT, at the call
        }
        world.fence((&mut u, &mut v))?;
        ended
    }),
];
