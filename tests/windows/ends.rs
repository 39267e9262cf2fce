//! The ends of windows: windows that are made from a vector, become a vector, are freed together,
//! or carry values.

use crate::{everywhere, refused};
use fencepost::prelude::*;
use fencepost::{TransportKind, ranks};
use std::cell::Cell;
use std::rc::Rc;

/// Returns whether the memory of a rank's windows is on the heap of the rank.
fn on_heap(kind: &TransportKind) -> bool {
    !matches!(
        kind,
        TransportKind::ShmThreads | TransportKind::MixedThreads(_) | TransportKind::MixedMpiThreads(_)
    )
}

#[test]
fn a_vector_is_a_window_and_back_without_a_copy_where_the_memory_allows() {
    everywhere(4, |world, kind| {
        let me = world.rank();
        let mut elements = Vec::with_capacity(1000 + me);
        elements.extend((0..700 + me).map(|at| (1000 * me + at) as u64));
        let (first, capacity) = (elements.as_ptr(), elements.capacity());
        let mut u = world.window_from(elements)?;
        assert_eq!((u.len(), u.len_of(3)), (700 + me, Some(703)));
        assert_eq!(std::ptr::eq(u.as_ptr(), first), on_heap(kind), "{kind:?}");
        u.put([7]).to((me + 1) % 4, 1)?;
        u.put(u.section(10..20)).to((me + 1) % 4, 690)?;
        let ticket = u.fetch((me + 2) % 4, 699)?;
        u.fence()?;
        assert_eq!(ticket.take()?, [1000 * ((me as u64 + 2) % 4) + 699]);
        let before = 1000 * ((me as u64 + 3) % 4);
        let elements = u.into_vec()?;
        assert_eq!((elements[0], elements[1]), (1000 * me as u64, 7));
        assert!(elements[690..700].iter().copied().eq(before + 10..before + 20), "{elements:?}");
        if on_heap(kind) {
            assert!(std::ptr::eq(elements.as_ptr(), first) && elements.capacity() == capacity, "{kind:?}");
        }
        world.barrier()
    });
}

#[test]
fn the_elements_of_any_window_become_a_vector() {
    everywhere(3, |world, _| {
        let mut u = world.window::<[u16; 3]>(5)?;
        u[4] = [1, 2, world.rank() as u16];
        let elements = u.into_vec()?;
        assert_eq!((elements.len(), elements[4]), (5, [1, 2, world.rank() as u16]));
        assert!(world.window::<u8>(0)?.into_vec()?.is_empty());
        assert!(world.window_from(Vec::<f64>::with_capacity(9))?.into_vec()?.is_empty());
        // A window can still become a vector after it was posted, locked and given back.
        let u = world.window_from(vec![1_i32; 6])?;
        let u = u.post(&world.group([])?)?.wait()?.into_locked()?;
        u.lock((world.rank() + 1) % 3, LockType::Exclusive)?.put([5], 2)?;
        assert_eq!(u.into_window()?.into_vec()?, [1, 1, 5, 1, 1, 1]);
        Ok(())
    });
}

/// The other ranks still have the window, and read it. Then all ranks make another window.
#[test]
fn a_window_that_became_a_vector_was_dropped_by_one_rank_only() {
    everywhere(3, |world, _| {
        let u = world.window_from(vec![world.rank() as u64; 4000])?;
        if world.rank() == 1 {
            let mut elements = u.into_vec()?;
            elements.fill(77);
            world.barrier()?;
            assert!(elements.iter().all(|element| *element == 77));
            drop(elements);
        } else {
            world.barrier()?;
            assert!(u.iter().all(|element| *element == world.rank() as u64));
        }
        let mut again = world.window_from(vec![5_u64; 4000])?;
        again.put([6]).to(1, world.rank())?;
        again.fence()?;
        assert_eq!(again[0], if world.rank() == 1 { 6 } else { 5 });
        Ok(())
    });
}

#[test]
fn what_is_open_is_in_the_way_of_a_vector_and_the_window_is_given_back() {
    everywhere(2, |world, _| {
        let me = world.rank();
        let u = world.window_from(vec![0_u32; 4])?;
        u.put([1]).to(1 - me, me)?;
        let (mut u, error) = u.into_vec().expect_err("a put waits for its fence").into_parts();
        refused(error, ErrorClass::RmaSync, &["collected operations", "fence it first"]);
        u.fence()?;
        assert_eq!(u[1 - me], 1);
        let access = u.start(&world.group([])?)?;
        let (u, error) = u.into_vec().expect_err("an access is open").into_parts();
        refused(error, ErrorClass::RmaSync, &["access", "complete it first"]);
        access.complete()?;
        // A section of the window is the source of a put on another window.
        let mut v = world.window::<u32>(4)?;
        v.put(u.section(0..1)).to(1 - me, 0)?;
        let (mut u, error) = u.into_vec().expect_err("it is a source").into_parts();
        refused(error, ErrorClass::RmaSync, &["collected operations"]);
        world.fence((&mut u, &mut v))?;
        assert_eq!(u.into_vec()?.len(), 4);
        Ok(())
    });
}

#[test]
fn a_vector_that_is_no_window_is_given_back() {
    everywhere(2, |world, _| {
        let elements = vec![world.rank() as u32; 3];
        let (elements, error) = match world.rank() {
            0 => world.window_from(elements).expect_err("the other has another type").into_parts(),
            _ => {
                let floats = vec![1.0_f32; 3];
                let (floats, error) = world.window_from(floats).expect_err("another type").into_parts();
                assert_eq!(floats, [1.0; 3]);
                (elements, error)
            }
        };
        refused(error, ErrorClass::Type, &["all ranks must ask for one type"]);
        assert_eq!(elements, [world.rank() as u32; 3]);
        assert_eq!(world.window_from(elements)?[..], [world.rank() as u32; 3]);
        Ok(())
    });
}

#[test]
fn windows_are_freed_together_and_only_with_nothing_open() {
    everywhere(3, |world, _| {
        let me = world.rank();
        let u = world.window::<u32>(2)?;
        if me == 1 {
            u.put([9]).to(2, 0)?;
        }
        let (mut u, error) = u.free().expect_err("rank 1 has called a put").into_parts();
        refused(error, ErrorClass::RmaSync, &["rank 1 has collected operations", "fence it first"]);
        u.fence()?;
        assert_eq!(u[0], if me == 2 { 9 } else { 0 }, "it was given back with what was collected");
        let access = if me == 2 { Some(u.start(&world.group([])?)?) } else { None };
        let (u, error) = u.free().expect_err("rank 2 has an access open").into_parts();
        refused(error, ErrorClass::RmaSync, &["rank 2 has an access to the window open"]);
        access.map_or(Ok(()), |access| access.complete())?;
        u.free()?;

        let w = world.lock_window::<u32>(1)?;
        if me == 0 {
            std::mem::forget(w.lock(1, LockType::Shared)?);
        }
        let (w, error) = w.free().expect_err("rank 0 has not unlocked").into_parts();
        refused(error, ErrorClass::RmaSync, &["rank 0 has locked the part of rank 1", "ends.rs"]);
        drop(w);
        world.lock_window::<u32>(1)?.free()?;
        Ok(())
    });
}

#[test]
fn a_free_that_meets_another_call_is_refused_on_both_ranks() {
    everywhere(2, |world, _| {
        let u = world.window::<u8>(1)?;
        if world.rank() == 0 {
            let (u, error) = u.free().expect_err("rank 1 is in a barrier").into_parts();
            refused(error, ErrorClass::RmaSync, &[]);
            return u.free().map_err(Error::from);
        }
        refused(world.barrier().expect_err("rank 0 frees a window"), ErrorClass::RmaSync, &[]);
        u.free().map_err(Error::from)
    });
}

#[test]
fn a_window_of_a_world_that_has_ended_is_given_back() {
    for kind in fencepost_tests_worlds::transports::transports([4]) {
        let ended = ranks(2).transport(kind.clone()).run(|world| {
            let u = world.window_from(vec![world.rank() as u64; 100])?;
            if world.rank() == 1 {
                return Err(Error::new(ErrorClass::Other, "enough"));
            }
            let (u, error) = u.free().expect_err("rank 1 has left").into_parts();
            assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
            let (vec, again) =
                world.window_from(vec![3_u8; 50]).expect_err("the world has ended").into_parts();
            assert_eq!((vec, again.class()), (vec![3; 50], ErrorClass::ProcFailed));
            assert_eq!(u.into_vec()?, [0; 100], "a rank's own elements are its own");
            Err(error)
        });
        assert!(ended.is_err(), "{kind:?}");
    }
}

/// A value that counts its drops.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn values_stay_with_a_window_whatever_becomes_of_it() {
    everywhere(2, |world, _| {
        let drops = Rc::new(Cell::new(0));
        let u = world.window::<u32>(2)?;
        assert!(u.attribute::<Counted>().is_none());
        assert!(u.set_attribute(Counted(drops.clone())).is_none());
        assert!(u.set_attribute(5_u8).is_none() && u.set_attribute("name").is_none());
        assert_eq!(u.set_attribute(6_u8).as_deref(), Some(&5), "one value of a type");
        let mut exposed = u.post_part(&world.group([])?, 0..1)?;
        exposed.kept_mut(1..2)?[0] = 3;
        let u = exposed.wait()?.into_locked()?;
        assert_eq!(u.attribute::<&str>().as_deref(), Some(&"name"));
        u.set_attribute(7_u16);
        let u = u.into_window()?;
        assert_eq!(
            (u.attribute::<u8>().as_deref(), u.take_attribute::<u16>().as_deref()),
            (Some(&6), Some(&7))
        );
        assert!(u.attribute::<u16>().is_none());
        assert_eq!(drops.get(), 0);
        let held = u.attribute::<Counted>();
        u.free()?;
        assert_eq!(drops.get(), 0, "the program has it still");
        drop(held);
        assert_eq!(drops.get(), 1);
        Ok(())
    });
}

/// The drop of a value uses the world to which its window belonged.
#[test]
fn the_drop_of_a_value_may_do_anything() {
    struct Uses(Rc<Window<u32>>);
    impl Drop for Uses {
        fn drop(&mut self) {
            assert_eq!(self.0[0], 4);
            self.0.put([1]).to(0, 0).expect("another window");
        }
    }
    everywhere(1, |world, _| {
        let mut other = world.window::<u32>(1)?;
        other[0] = 4;
        let other = Rc::new(other);
        let u = world.window::<u8>(1)?;
        u.set_attribute(Uses(other.clone()));
        drop(u);
        let mut other = Rc::into_inner(other).expect("the value is gone");
        other.fence()?;
        assert_eq!(other[0], 1);
        Ok(())
    });
}
