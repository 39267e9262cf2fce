//! What is handed to a plan, and what a plan file may hold, in whole programs.

#[path = "support/transports.rs"]
mod transports;

use fencepost::prelude::*;
use fencepost::ranks;
use transports::transports;

mod sections {
    use super::*;
    use fencepost::WindowSection;

    #[superstep]
    fn copy(u: &mut Window<u64>, v: &mut Window<u64>, from: &WindowSection<u64>) -> Result<()> {
        let to = (u.rank() + 1) % u.size();
        u.put(from.clone()).to(to, 4..8)?;
        v.get(4..8).from(to, 0..4)
    }

    #[superstep]
    fn land(u: &mut Window<u64>, into: &WindowSection<u64>) -> Result<()> {
        let from = (u.rank() + 1) % u.size();
        u.get(into.clone()).from(from, 4..8)
    }

    #[test]
    fn a_section_that_was_made_outside_a_superstep_is_refused_by_its_plan() {
        for transport in transports([0]) {
            let run = ranks(2).transport(transport).run(|world| {
                let me = world.rank() as u64;
                // The number of `v` in the world is the place of `u` in the superstep.
                let mut v = world.window::<u64>(8)?;
                let mut u = world.window::<u64>(8)?;
                v.fill(100 + me);
                u.fill(200 + me);
                let section = v.section(0..4);
                for error in [
                    copy::prepare(world, &section).map(drop).unwrap_err(),
                    copy::compile(2, |_| Ok(section.clone())).map(drop).unwrap_err(),
                    land::prepare(world, &section).map(drop).unwrap_err(),
                    land::compile(2, |_| Ok(section.clone())).map(drop).unwrap_err(),
                ] {
                    let refused = error.class() == Class::Win
                        || error.class() == Class::Plan && error.to_string().contains("cannot prepare");
                    assert!(refused && error.to_string().contains("made outside this superstep"), "{error}");
                }
                // Without a plan the section is one like any other.
                copy(&mut u, &mut v, &section)?;
                assert_eq!(u[4..], [100 + (1 - me); 4]);
                assert_eq!(v[4..], [100 + (1 - me); 4]);
                Ok(())
            });
            let _: Vec<()> = run.unwrap();
        }
    }
}
