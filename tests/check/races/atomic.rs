//! Accumulates of several ranks into one element.

use super::Case;
use super::How::{Defined, Refused, Runs};
use fencepost::prelude::*;

const TYPES: &str = "Values of another type than the window's elements.";

/// In one epoch of fences, ranks 0 and 2 each add 1 to four elements of rank 1. The elements of
/// rank 0 begin at `first[0]`, and those of rank 2 at `first[1]`. If `twice`, rank 0 makes both
/// calls.
fn sums(world: &World, first: [usize; 2], twice: bool) -> Result<()> {
    let mut u = world.window::<u64>(16)?;
    match world.rank() {
        0 => {
            u.accumulate([1; 4], Op::Sum).to(1, first[0])?;
            if twice {
                u.accumulate([1; 4], Op::Sum).to(1, first[1])?;
            }
        }
        2 if !twice => u.accumulate([1; 4], Op::Sum).to(1, first[1])?,
        _ => {}
    }
    u.fence()?;
    let meant = if world.rank() == 1 { 8 } else { 0 };
    assert_eq!(u.iter().sum::<u64>(), meant);
    Ok(())
}

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    ("001-atomic-customdatatype-remote-no", Runs(|world| {
        let mut u = world.window::<u64>(16)?;
        let every_third = Datatype::nest(1, &[(4, 3)], 2).unwrap();
        if matches!(world.rank(), 0 | 2) {
            u.accumulate([1; 8], Op::Sum).to(1, &every_third)?;
        }
        u.fence()
    })),
    ("002-atomic-customdatatype-remote-yes", Refused(TYPES)),
    ("003-atomic-disp-remote-yes", Defined("displacements are in elements", |world| sums(world, [0, 1], false))),
    ("004-atomic-disp-remote-no", Runs(|world| sums(world, [0, 4], false))),
    ("005-atomic-short-int-remote-yes", Refused(TYPES)),
    ("006-atomic-float-int-remote-yes", Refused(TYPES)),
    ("007-atomic-float-int-sameorigin-remote-yes", Refused(TYPES)),
    ("008-atomic-double-float-remote-yes", Refused(TYPES)),
    ("009-atomic-int-int-remote-no", Runs(|world| sums(world, [2, 2], false))),
    ("010-atomic-int-int-sameorigin-remote-no", Runs(|world| sums(world, [2, 2], true))),
];
