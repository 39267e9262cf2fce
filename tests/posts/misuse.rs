//! Wrong arguments. Each causes an error of the right class at the call, and changes nothing.

use crate::meaning::{everywhere, window};
use fencepost::{Datatype, ErrorClass, Op, Result};

fn class<R>(result: Result<R>) -> ErrorClass {
    match result {
        Ok(_) => panic!("it is refused"),
        Err(error) => {
            assert!(error.site().is_some_and(|site| site.file() == file!()), "{error}");
            error.class()
        }
    }
}

#[test]
fn groups_are_sets_of_ranks_of_one_world() {
    everywhere(2, |world| {
        assert_eq!(world.group([1, 0, 1])?.ranks(), [0, 1]);
        assert_eq!(world.group([])?.ranks(), [0; 0]);
        assert_eq!(class(world.group([0, 2])), ErrorClass::Rank);
        assert_eq!(class(world.group([usize::MAX])), ErrorClass::Rank);
        let part = world.split(Some(0), 0)?.expect("both are in it");
        let foreign = part.group([0])?;
        let u = window(world, 1)?;
        assert_eq!(class(u.start(&foreign)), ErrorClass::Arg);
        let (u, error) = u.post(&foreign).expect_err("another world").into_parts();
        assert_eq!(error.class(), ErrorClass::Arg);
        let (u, error) = u.post_part(&world.group([0])?, 0..2).expect_err("one element").into_parts();
        assert_eq!(error.class(), ErrorClass::Disp);
        let (u, error) = u
            .post_part(&world.group([0])?, Datatype::nest(-1, &[], 1).unwrap())
            .expect_err("below")
            .into_parts();
        assert_eq!(error.class(), ErrorClass::Disp);
        // Empty groups wait for no rank.
        let none = world.group([])?;
        u.start(&none)?.complete()?;
        assert_eq!(u.post(&none)?.wait()?[..], [100 * world.rank() as i32]);
        Ok(())
    });
}

#[test]
fn operations_of_an_access_are_checked_at_the_call() {
    everywhere(3, |world| {
        let mut u = window(world, 4)?;
        let me = world.rank();
        let (to, other) = ((me + 1) % 3, (me + 2) % 3);
        let exposed = u.post(&world.group([other])?)?;
        let access = exposed.start(&world.group([to])?)?;
        assert_eq!(class(access.put([1]).to(3, 0)), ErrorClass::Rank);
        assert_eq!(class(access.put([1]).to(other, 0)), ErrorClass::RmaSync);
        assert_eq!(class(access.put(&[1, 2]).to(other, 0)), ErrorClass::RmaSync);
        assert_eq!(class(access.fetch(other, 0)), ErrorClass::RmaSync);
        assert_eq!(class(access.put([1]).to(to, 4)), ErrorClass::Disp);
        assert_eq!(class(access.put([1]).to(to, usize::MAX)), ErrorClass::Disp);
        assert_eq!(class(access.put(&[1, 2]).to(to, 3)), ErrorClass::Disp);
        assert_eq!(class(access.put(&[1, 2]).to(to, 0..3)), ErrorClass::Size);
        assert_eq!(class(access.put((&[1, 2], 1..3)).to(to, 0)), ErrorClass::Disp);
        assert_eq!(class(access.fetch(to, 2..5)), ErrorClass::Disp);
        assert_eq!(class(access.fetch(3, 0)), ErrorClass::Rank);
        assert_eq!(class(access.accumulate([1], Op::MinLoc).to(to, 0)), ErrorClass::Op);
        access.put([1]).to(None, 77)?;
        access.put(&[]).to(to, 1)?;
        assert_eq!(access.fetch(None, 1..3)?.take()?, [0, 0]);
        access.put([5]).to(to, 2)?;
        access.complete()?;
        u = exposed.wait()?;
        let mut expected = [0, 1, 2, 3].map(|at| 100 * me as i32 + at);
        expected[2] = 5;
        assert_eq!(u[..], expected);
        Ok(())
    });
}

#[test]
fn tickets_hold_nothing_before_complete() {
    everywhere(1, |world| {
        let own = world.group([0])?;
        let mut u = window(world, 4)?;
        u[1] = 6;
        let exposed = u.post(&own)?;
        let access = exposed.start(&own)?;
        let ticket = access.fetch(0, 1)?;
        access.put((&[4, 5, 6], 1..2)).to(0, 1)?;
        assert_eq!(class(ticket.take()), ErrorClass::RmaSync);
        access.complete()?;
        assert_eq!(ticket.take()?, [6]);
        u = exposed.wait()?;
        assert_eq!(u[1], 5);
        // The call of an access reads elements of the window itself.
        let access = u.start(&own)?;
        access.put(u.packed(Datatype::elements([1, 0]).unwrap())).to(0, 2)?;
        u[1] = 77;
        access.complete()?;
        assert_eq!(u.post(&own)?.wait()?[..], [0, 77, 5, 0]);
        Ok(())
    });
}

#[test]
fn values_of_a_world_that_has_ended_say_so_and_give_back_what_they_have() {
    for transport in crate::meaning::transports(2) {
        let ended = fencepost::ranks(2).transport(transport.clone()).run(|world| {
            let u = window(world, 1)?;
            let other = world.group([1 - world.rank()])?;
            if world.rank() == 1 {
                return Err(fencepost::Error::new(ErrorClass::Other, "enough"));
            }
            let (u, error) = u.post(&other)?.wait().expect_err("rank 1 has left").into_parts();
            assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
            assert_eq!(u[..], [0]);
            let access = u.start(&other).expect_err("the world has ended");
            assert_eq!(access.class(), ErrorClass::ProcFailed);
            let (u, error) = u.post(&other).expect_err("the world has ended").into_parts();
            assert_eq!(error.class(), ErrorClass::ProcFailed);
            assert_eq!(u[..], [0]);
            Err(error)
        });
        assert!(ended.is_err(), "{transport:?}");
    }
}

/// Returns datatypes that name a few elements 2^40 times. Element 1 is one of them.
fn often() -> [Datatype; 3] {
    let nest = |offset, dims: &[(usize, i64)]| Datatype::nest(offset, dims, 1).unwrap();
    [
        nest(1, &[(1 << 40, 0)]),
        nest(1, &[(1 << 20, 0), (2, 2), (1 << 20, 0)]),
        nest(1, &[(1 << 38, 0), (2, 2), (2, -1)]),
    ]
}

#[test]
fn a_part_that_names_an_element_2_to_the_40_times_lends_it() {
    everywhere(2, |world| {
        let mut u = window(world, 8)?;
        let (me, other) = (world.rank(), 1 - world.rank());
        let group = world.group([other])?;
        for part in often() {
            let access = u.start(&group)?;
            let ticket = access.fetch(other, 1)?;
            access.put([7]).to(other, 1)?;
            let exposed = u.post_part(&group, &part)?;
            assert_eq!(exposed.kept(5..8)?, [5, 6, 7].map(|at| 100 * me as i32 + at));
            assert_eq!(class(exposed.kept(1..2)), ErrorClass::RmaConflict);
            access.complete()?;
            assert_eq!(ticket.take()?, [100 * other as i32 + 1]);
            u = exposed.wait()?;
            assert_eq!(u[1], 7);
            u[1] = 100 * me as i32 + 1;
        }
        Ok(())
    });
}

#[test]
fn an_access_that_names_an_element_2_to_the_40_times_has_no_memory_for_it_whatever_is_lent() {
    everywhere(2, |world| {
        let mut u = window(world, 8)?;
        let (me, other) = (world.rank(), 1 - world.rank());
        let group = world.group([other])?;
        for many in often() {
            for lends in 0..4 {
                let access = u.start(&group)?;
                let ticket = access.fetch(other, &many)?;
                assert_eq!(
                    class(access.put((&[1, 2, 3, 4, 5, 6, 7, 8][..], &many)).to(other, &many)),
                    ErrorClass::NoMem
                );
                assert_eq!(class(access.put(u.packed(&many)).to(other, &many)), ErrorClass::NoMem);
                let (completed, waited) = match lends {
                    0 => {
                        let exposed = u.post(&group)?;
                        (access.complete(), exposed.wait())
                    }
                    1 => {
                        let exposed = u.post_read(&group)?;
                        (access.complete(), exposed.wait())
                    }
                    lent => {
                        let part = if lent == 2 { Datatype::run(0..4) } else { many.clone() };
                        let exposed = u.post_part(&group, part)?;
                        (access.complete(), exposed.wait())
                    }
                };
                let refused = completed.expect_err("there is no memory for it").class();
                assert!(matches!(refused, ErrorClass::NoMem | ErrorClass::Size), "{lends}: {refused}");
                assert_eq!(class(ticket.take()), refused);
                u = waited?;
                assert_eq!(u[1], 100 * me as i32 + 1);
            }
            // Elements that are not exposed are found before any elements are sent.
            let access = u.start(&group)?;
            let ticket = access.fetch(other, &many)?;
            let exposed = u.post_part(&group, 4..8)?;
            assert_eq!(access.complete().expect_err("it is not lent").class(), ErrorClass::Disp);
            assert_eq!(class(ticket.take()), ErrorClass::Disp);
            let (back, error) = exposed.wait().expect_err("it is not lent").into_parts();
            assert_eq!(error.class(), ErrorClass::Disp);
            u = back;
        }
        Ok(())
    });
}

/// An attendant needs several answers for one element that is named many times. Each answer
/// continues where the previous answer ended.
#[test]
fn an_element_that_is_got_many_times_comes_in_many_answers() {
    everywhere(2, |world| {
        let mut u = window(world, 4)?;
        let other = 1 - world.rank();
        let group = world.group([other])?;
        let (base, times) = (100 * other as i32, 200_001);
        let access = u.start(&group)?;
        let three = access.fetch(other, Datatype::nest(0, &[(times, 0), (3, 1)], 1).unwrap())?;
        let one = access.fetch(other, Datatype::nest(3, &[(times, 0)], 1).unwrap())?;
        let exposed = u.post(&group)?;
        access.complete()?;
        assert!(three.take()?.chunks_exact(3).all(|each| each == [base, base + 1, base + 2]));
        let one = one.take()?;
        assert!(one.len() == times && one.iter().all(|element| *element == base + 3));
        u = exposed.wait()?;
        drop(u);
        Ok(())
    });
}
