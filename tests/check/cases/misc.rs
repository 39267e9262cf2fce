//! Cases with other calls: scoped epochs, supersteps, datatypes, and operations without a target.

use super::Case;
use fencepost::Order;
use fencepost::prelude::*;

#[superstep]
fn shifts(u: &mut Window<u64>, by: usize) -> Result<()> {
    let (me, size) = (u.rank(), u.size());
    u.put(0..4).to((me + 1) % size, 4)?;
    u.put(0..4).to((me + by) % size, 8)?;
    Ok(())
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("301-scoped-get-and-put-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        let mut buffer = [0; 4];
        u.epoch(|epoch| match epoch.rank() {
            0 => epoch.fetch_into(2, 0..4, &mut buffer), // CONFLICT
            1 => epoch.put([1]).to(2, 3), // CONFLICT
            _ => Ok(()),
        })
    }),
    ("302-no-target-no", |world| {
        let mut u = world.window::<u64>(16)?;
        u.put([1]).to(None, 3)?;
        u.put([2]).to(if world.rank() == 0 { Some(2) } else { None }, 3)?;
        u.fence()
    }),
    ("303-no-elements-no", |world| {
        let mut u = world.window::<u64>(16)?;
        u.put([]).to(2, 3)?;
        drop(u.fetch(2, 3..3)?);
        if world.rank() == 0 {
            u.put([2]).to(2, 3)?;
        }
        u.fence()
    }),
    ("304-superstep-no", |world| {
        let mut u = world.window::<u64>(16)?;
        (0..3).try_for_each(|_| shifts(&mut u, 2))
    }),
    ("305-relaxed-order-yes", |world| {
        let mut u = world.window::<u64>(16)?;
        world.set_order(Order::Relaxed);
        match world.rank() {
            0 => u.put([1]).to(2, 3)?, // CONFLICT
            1 => u.put([2]).to(2, 3)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("306-refused-calls-are-no-part-no", |world| {
        let mut u = world.window::<u64>(16)?;
        if world.rank() == 0 {
            assert!(u.put([1; 2]).to(2, 15).is_err());
        }
        if world.rank() == 1 {
            u.put([1]).to(2, 15)?;
        }
        u.fence()
    }),
    ("307-what-was-collected-for-a-failed-fence-no", |world| {
        let mut u = world.window::<u64>(16)?;
        let v = world.window::<u64>(16)?;
        u.put(v.section(0..1)).to(2, 3)?;
        // The section belongs to a window that is not fenced, so the fence fails.
        if u.fence().is_ok() {
            return Ok(());
        }
        u.put([2]).to(2, world.rank())?;
        u.fence()
    }),
    ("308-large-elements-yes", |world| {
        let mut u = world.window::<[u8; 24]>(16)?;
        match world.rank() {
            0 => u.put([[1; 24]; 3]).to(2, 3)?, // CONFLICT
            1 => drop(u.fetch(2, 5..7)?), // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("309-early-departure-yes", |world| {
        let mut u = world.window::<u64>(9000)?;
        match world.rank() {
            0 => u.put([1; 9000]).mode(Mode::Aggressive).to(2, 0)?, // CONFLICT
            1 => u.put([2; 3000]).mode(Mode::Pipelined).to(2, 6000)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
    ("310-exposed-source-yes", |world| {
        let mut u = world.window::<u64>(9000)?;
        match world.rank() {
            0 => u.put(0..9000).mode(Mode::Direct).to(2, 0)?, // CONFLICT
            1 => u.put([2]).to(0, 8999)?, // CONFLICT
            _ => (),
        }
        u.fence()
    }),
];
