//! Posts and starts between fences: the combinations that work, and those that are refused.

use crate::meaning::{everywhere, window};
use fencepost::prelude::*;

/// The first puzzle of MPICH2's design notes. Ranks 0 and 1 put to each other for the fence, and
/// rank 2 puts to rank 3 by start and complete.
#[test]
fn an_exposure_between_two_fences_comes_before_what_the_second_applies() {
    everywhere(4, |world| {
        let mut u = window(world, 4)?;
        u.fence()?;
        match world.rank() {
            me @ (0 | 1) => {
                u.put([me as i32]).to(1 - me, 0)?;
                if me == 0 {
                    // By another reading of the notes' table, rank 0 also puts to rank 3.
                    u.accumulate([1000], Op::Sum).to(3, 1)?;
                }
            }
            2 => {
                let access = u.start(&world.group([3])?)?;
                access.put([7]).to(3, 1)?;
                access.complete()?;
            }
            _ => {
                u = u.post(&world.group([2])?)?.wait()?;
                assert_eq!(u[..], [300, 7, 302, 303]);
            }
        }
        u.fence()?;
        let expected = match world.rank() {
            0 => [1, 1, 2, 3],
            1 => [0, 101, 102, 103],
            2 => [200, 201, 202, 203],
            _ => [300, 1007, 302, 303],
        };
        assert_eq!(u[..], expected);
        Ok(())
    });
}

/// The second puzzle. Ranks 2 and 3 also put to each other for the fence, after a barrier.
#[test]
fn puts_for_one_fence_are_applied_in_it_whatever_came_between() {
    everywhere(4, |world| {
        let mut u = window(world, 1)?;
        u.fence()?;
        let me = world.rank();
        u.put([me as i32]).to(me ^ 1, 0)?;
        world.barrier()?;
        u.fence()?;
        assert_eq!(u[..], [(me ^ 1) as i32]);
        Ok(())
    });
}

#[test]
fn an_access_that_is_queued_stays_queued_across_a_fence() {
    everywhere(2, |world| {
        let mut u = window(world, 2)?;
        let other = world.group([1 - world.rank()])?;
        if world.rank() == 1 {
            let access = u.start(&other)?;
            access.put([5]).to(0, 1)?;
            access.complete()?;
            u.put([6]).to(0, 0)?;
        }
        u.fence()?;
        if world.rank() == 0 {
            assert_eq!(u[..], [6, 1]);
            u = u.post(&other)?.wait()?;
            assert_eq!(u[..], [6, 5]);
        }
        u.fence()
    });
}

#[test]
fn a_fence_of_an_open_window_is_refused_on_every_rank_and_is_used_up() {
    everywhere(3, |world| {
        let mut u = window(world, 2)?;
        let group = world.group([(world.rank() + 1) % 3])?;
        let access = if world.rank() == 1 { Some(u.start(&group)?) } else { None };
        if world.rank() == 0 {
            u.put([8]).to(2, 0)?;
        }
        let error = u.fence().expect_err("rank 1 has an access open");
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        let names = error.to_string();
        assert!(names.contains("rank 1") && names.contains("fences.rs"), "{error}");
        if let Some(access) = access {
            access.put([9]).to(2, 1)?;
            access.complete()?;
        }
        if world.rank() == 2 {
            u = u.post(&world.group([1])?)?.wait()?;
        }
        u.fence()?;
        let expected = if world.rank() == 2 {
            [200, 9]
        } else {
            [100 * world.rank() as i32, 100 * world.rank() as i32 + 1]
        };
        assert_eq!(u[..], expected);
        Ok(())
    });
}

#[test]
fn operations_for_a_fence_and_accesses_exclude_each_other() {
    everywhere(2, |world| {
        let (mut u, mut v) = (window(world, 2)?, window(world, 2)?);
        let other = world.group([1 - world.rank()])?;
        let to = 1 - world.rank();
        let refused = |error: Error| assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        u.put([1]).to(to, 0)?;
        refused(u.start(&other).expect_err("a put waits for the fence"));
        let (back, error) = u.post(&other).expect_err("a put waits for the fence").into_parts();
        (u, _) = (back, refused(error));
        u.fence()?;
        // An operation on another window also counts if it has a section of this window.
        v.put(u.section(0..1)).to(to, 0)?;
        refused(u.start(&other).expect_err("a section of it waits for the fence"));
        world.fence((&mut u, &mut v))?;
        v.get(u.section(0..1)).from(to, 1)?;
        refused(u.start(&other).expect_err("a get lands in it"));
        world.fence((&mut u, &mut v))?;
        let access = u.start(&other)?;
        refused(u.put([1]).to(to, 0).expect_err("an access is open"));
        refused(u.put([1, 2]).to(to, 0).expect_err("an access is open"));
        refused(u.put(0..1).to(to, 0).expect_err("an access is open"));
        refused(u.get(0..1).from(to, 0).expect_err("an access is open"));
        refused(u.fetch(to, 0).map(drop).expect_err("an access is open"));
        refused(v.put(u.section(0..1)).to(to, 0).expect_err("an access to it is open"));
        refused(v.get(u.section(0..1)).from(to, 0).expect_err("an access to it is open"));
        refused(u.start(&other).expect_err("the access before is open"));
        v.put([3]).to(to, 0)?;
        v.fence()?;
        assert_eq!(v[0], 3);
        let section = u.section(0..1);
        let exposed = u.post(&other)?;
        refused(v.put(section).to(to, 0).expect_err("the window is posted"));
        access.complete()?;
        u = exposed.wait()?;
        u.put([4]).to(to, 0)?;
        u.fence()?;
        assert_eq!(u[0], 4);
        Ok(())
    });
}

#[superstep]
fn give(u: &mut Window<i32>) -> Result<()> {
    u.put(0..1).to(1 - u.rank(), 1)
}

#[test]
fn a_superstep_of_an_open_window_is_refused_and_the_next_is_not() {
    everywhere(2, |world| {
        let mut u = window(world, 2)?;
        let other = world.group([1 - world.rank()])?;
        let access = u.start(&other)?;
        let error = give(&mut u).expect_err("an access is open");
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        let exposed = u.post(&other)?;
        access.put([9]).to(1 - world.rank(), 0)?;
        access.complete()?;
        u = exposed.wait()?;
        give(&mut u)?;
        assert_eq!(u[..], [9, 9]);
        let mut prepared = give::prepare(world)?;
        let exposed = u.post(&other)?;
        let access = exposed.start(&other)?;
        access.put([5]).to(1 - world.rank(), 0)?;
        access.complete()?;
        u = exposed.wait()?;
        prepared.replay(&mut u)?;
        assert_eq!(u[..], [5, 5]);
        Ok(())
    });
}
