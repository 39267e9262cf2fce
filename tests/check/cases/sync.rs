//! Cases with a call between two operations. In some cases this call separates the operations.

use super::Case;
use fencepost::prelude::*;

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("101-fence-between-put-and-get-no", |world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?;
        }
        u.fence()?;
        let seen = if world.rank() == 1 { Some(u.fetch(2, 3)?) } else { None };
        u.fence()?;
        assert!(seen.map_or(Ok(vec![1]), |seen| seen.take())? == [1]);
        Ok(())
    }),
    ("102-barrier-between-two-puts-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?; // CONFLICT
        }
        world.barrier()?;
        if world.rank() == 1 {
            u.put([2]).to(2, 3)?; // CONFLICT
        }
        u.fence()
    }),
    ("103-collective-between-put-and-get-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?; // CONFLICT
        }
        let mut sums = vec![world.rank() as u64; 3000];
        world.allreduce(&mut sums, Op::Sum)?;
        if world.rank() == 1 {
            u.get(0..1).from(2, 3)?; // CONFLICT
        }
        u.fence()
    }),
    ("104-fence-of-another-window-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut v = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?; // CONFLICT
        }
        v.fence()?;
        if world.rank() == 1 {
            u.put([2]).to(2, 3)?; // CONFLICT
        }
        u.fence()
    }),
    ("105-two-windows-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut v = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put([1]).to(2, 3)?,
            1 => v.put([2]).to(2, 3)?,
            _ => (),
        }
        world.fence((&mut u, &mut v))
    }),
    ("106-second-of-two-windows-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut v = world.window::<u64>(16)?;
        u.put([1]).to(2, world.rank())?;
        match world.rank() {
            0 => v.put([1]).to(2, 3)?, // CONFLICT
            1 => v.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        world.fence((&mut u, &mut v))
    }),
    ("107-section-of-another-window-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut v = world.window::<u64>(16)?;
        match world.rank() {
            0 => u.put(v.section(2..4)).to(2, 3)?, // CONFLICT
            1 => v.put([2]).to(0, 3)?, // CONFLICT
            _ => (),
        }
        world.fence((&mut u, &mut v))
    }),
    ("108-only-in-the-third-epoch-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        for epoch in 0..4 {
            match world.rank() {
                0 => u.put([1]).to(2, epoch)?, // CONFLICT
                1 => u.put([2]).to(2, 4 - epoch)?, // CONFLICT
                _ => (),
            }
            u.fence()?;
        }
        Ok(())
    }),
    ("109-the-same-element-epoch-after-epoch-no", |world| {
        let mut u = world.window::<u64>(16)?;
        for epoch in 0..8 {
            if world.rank() == epoch % 4 {
                u.put([1]).to(2, 3)?;
            }
            u.fence()?;
        }
        Ok(())
    }),
    ("110-stores-before-the-fence-no", |world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            u.put([1]).to(2, 3)?;
        }
        u[3] = 7;
        u.fence()?;
        assert_eq!(u[3], if world.rank() == 2 { 1 } else { 7 });
        Ok(())
    }),
    ("111-fence-of-a-part-of-the-world-no", |world| {
        let half = world.split(Some(world.rank() as u32 % 2), 0)?.expect("every rank is in a part");
        let mut u = half.window::<u64>(16)?;
        if half.rank() == 0 {
            u.put([1]).to(1, 3)?;
        }
        u.fence()
    }),
    ("112-in-a-part-of-the-world-yes", |world| {
        let part = world.split(Some(0), 0)?.expect("every rank is in it");
        let mut u = part.window::<u64>(16)?;
        match part.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            1 => u.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
];
