//! The order that fetches establish between epochs of locks: with flags, with a program's own
//! locks, and with `Op::NoOp` (planner/README.md, 32). Also the order that calls establish in
//! worlds that were split off.

use crate::races::{over, under};
use crate::unfenced::{End, everywhere, silent};
use fencepost::Locked;
use fencepost::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of the line of this file that ends with the mark.
fn line(mark: &str) -> u32 {
    let text = include_str!("fetches.rs");
    text.lines().position(|line| line.ends_with(&format!("// {mark}"))).expect("a line") as u32 + 1
}

/// Checks that every rank gets an error that names the lines with these marks.
fn found(marks: [&str; 2], program: impl Fn(&World) -> Result<()> + Sync) {
    let lines = marks.map(line);
    everywhere(program, |what, ends| {
        for end in ends {
            let Err((class, text)) = end else { panic!("a rank learns of nothing: {what}") };
            let named = lines.iter().all(|line| text.contains(&format!("fetches.rs:{line}")));
            let is_meant = matches!(class, ErrorClass::RmaConflict | ErrorClass::RmaSync);
            assert!(is_meant && named, "{lines:?} {what}");
        }
    });
}

/// Fetches an element of the locked part until it has this value. `way` selects the call that
/// fetches.
fn wait_for(lock: &Locked<'_, u64>, at: usize, value: u64, way: usize) -> Result<()> {
    loop {
        let found = match way {
            0 => lock.fetch_and(Op::NoOp, 0, at)?,
            1 => lock.fetch_and(Op::Sum, 0, at)?,
            _ => lock.compare_and_swap(u64::MAX, 0, at)?,
        };
        lock.flush()?;
        if found.take()? == [value] {
            return Ok(());
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_flag_orders_what_was_flushed_before_it_was_raised() {
    for way in 0..3 {
        silent(|world| {
            let u = world.lock_window::<u64>(4)?;
            let ended = match world.rank() {
                0 => under(&u, LockType::Shared, |lock| {
                    lock.put([7, 8], 2..4)?;
                    lock.flush()?;
                    match way {
                        2 => lock.accumulate([1], Op::Replace, 0),
                        _ => lock.accumulate([1], Op::Sum, 0),
                    }
                }),
                2 => under(&u, LockType::Shared, |lock| {
                    wait_for(lock, 0, 1, way)?;
                    let values = lock.get(2..4)?;
                    lock.flush()?;
                    assert_eq!(values.take()?, [7, 8]);
                    lock.put([9], 2)
                }),
                _ => Ok(()),
            };
            over(u, ended)
        });
    }
}

#[test]
fn a_flag_does_not_order_what_was_not_flushed_before_it_was_raised() {
    found(["UNFLUSHED", "SEEN"], |world| {
        let u = world.lock_window::<u64>(4)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| {
                lock.put([7], 2)?; // UNFLUSHED
                lock.accumulate([1], Op::Sum, 0)
            }),
            2 => under(&u, LockType::Shared, |lock| {
                wait_for(lock, 0, 1, 0)?;
                drop(lock.get(2)?); // SEEN
                Ok(())
            }),
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn a_fetch_orders_nothing_by_accumulates_into_other_elements_nor_by_other_fetches_that_only_read() {
    for updates in [true, false] {
        found(["PUT", "GET"], |world| {
            let u = world.lock_window::<u64>(4)?;
            let ended = match world.rank() {
                0 => under(&u, LockType::Shared, |lock| {
                    lock.put([7], 2)?; // PUT
                    lock.flush()?;
                    if updates {
                        return lock.accumulate([1], Op::Sum, 1);
                    }
                    lock.fetch_and(Op::NoOp, 1, 0).map(drop)
                }),
                2 => under(&u, LockType::Shared, |lock| {
                    drop(lock.fetch_and(Op::NoOp, 0, 0)?);
                    lock.flush()?;
                    drop(lock.get(2)?); // GET
                    Ok(())
                }),
                _ => Ok(()),
            };
            over(u, ended)
        });
    }
}

#[test]
fn a_lock_of_the_programs_own_orders_what_it_guards() {
    // A rank that fails may hold the lock for which the others wait.
    let has_failed = AtomicBool::new(false);
    silent(|world| guarded(world, &has_failed).inspect_err(|_| has_failed.store(true, Ordering::Relaxed)));
}

fn guarded(world: &World, has_failed: &AtomicBool) -> Result<()> {
    let u = world.lock_window::<u64>(2)?;
    let all = u.lock_all()?;
    let part = all.on(1)?;
    let mine = 1 + world.rank() as u64;
    for _ in 0..5 {
        loop {
            let found = part.compare_and_swap(0, mine, 0)?;
            part.flush()?;
            if found.take()? == [0] {
                break;
            }
            if has_failed.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorClass::Other, "another rank has failed"));
            }
            std::thread::yield_now();
        }
        let count = part.get(1)?;
        part.flush()?;
        part.put([count.take()?[0] + 1], 1)?;
        part.flush()?;
        drop(part.compare_and_swap(mine, 0, 0)?);
        part.flush()?;
    }
    all.unlock()?;
    let u = u.into_window()?;
    assert!(world.rank() != 1 || u[..] == [0, 20]);
    Ok(())
}

#[test]
fn flags_order_in_a_row_on_parts_of_different_ranks() {
    silent(|world| {
        let u = world.lock_window::<u64>(2)?;
        let all = u.lock_all()?;
        let ended = match world.rank() {
            0 => {
                all.on(3)?.put([7], 1)?;
                all.flush()?;
                all.on(1)?.accumulate([1], Op::Sum, 0)?;
                all.flush()
            }
            2 => wait_for(&all.on(1)?, 0, 1, 0).and_then(|()| {
                all.on(0)?.accumulate([1], Op::Sum, 0)?;
                all.flush()
            }),
            1 => wait_for(&all.on(0)?, 0, 1, 0).and_then(|()| {
                all.on(3)?.put([8], 1)?;
                all.flush()
            }),
            _ => Ok(()),
        };
        all.unlock()?;
        over(u, ended)
    });
}

/// Rank 2 receives a message that follows rank 0's put, between two calls of one epoch. Afterwards
/// rank 2 accesses the same elements.
#[test]
fn what_a_rank_learns_within_an_epoch_is_known_in_the_next_one() {
    silent(|world| {
        let u = world.lock_window::<u64>(8)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3)).and(world.message(2, 0).send([1_u8])),
            2 => under(&u, LockType::Shared, |lock| {
                lock.put([1], 5)?;
                world.recv::<u8>(0, 0)?;
                lock.put([1], 6)?;
                lock.flush()?;
                lock.put([1], 3)
            }),
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn a_fetch_that_changes_nothing_conflicts_with_puts_only() {
    type Act = fn(&Locked<'_, u64>) -> Result<()>;
    let silent_with: [Act; 5] = [
        |lock| lock.accumulate([1], Op::Sum, 3),
        |lock| lock.compare_and_swap(0, 1, 3).map(drop),
        |lock| lock.get(3).map(drop),
        |lock| lock.fetch_and(Op::Max, 1, 3).map(drop),
        |lock| lock.get_accumulate([1; 2], Op::NoOp, 2..4).map(drop),
    ];
    for act in silent_with {
        silent(|world| {
            let u = world.lock_window::<u64>(4)?;
            let ended = match world.rank() {
                0 => under(&u, LockType::Shared, act),
                2 => under(&u, LockType::Shared, |lock| lock.fetch_and(Op::NoOp, 9, 3).map(drop)),
                _ => Ok(()),
            };
            over(u, ended)
        });
    }
    found(["WRITTEN", "READ"], |world| {
        let u = world.lock_window::<u64>(4)?;
        let ended = match world.rank() {
            0 => under(&u, LockType::Shared, |lock| lock.put([1], 3)), // WRITTEN
            2 => under(&u, LockType::Shared, |lock| lock.fetch_and(Op::NoOp, 9, 3).map(drop)), // READ
            _ => Ok(()),
        };
        over(u, ended)
    });
}

#[test]
fn a_get_of_an_element_that_is_accumulated_into_is_told_of_the_fetch_that_may() {
    let told = |end: &End| matches!(end, Err((_, text)) if text.contains("`Op::NoOp`"));
    everywhere(
        |world| {
            let u = world.lock_window::<u64>(4)?;
            let ended = match world.rank() {
                0 => under(&u, LockType::Shared, |lock| lock.accumulate([1], Op::Sum, 3)),
                2 => under(&u, LockType::Shared, |lock| lock.get(3).map(drop)),
                _ => Ok(()),
            };
            over(u, ended)
        },
        |what, ends| assert!(ends.iter().all(told), "{what}"),
    );
}

#[test]
fn the_barrier_of_a_world_that_was_split_off_orders_what_was_over_before_it() {
    silent(|world| {
        let u = world.lock_window::<u64>(4)?;
        // `all` has the ranks of `world` in reverse order. `two` has two of these ranks.
        let all = world.split(Some(0), -(world.rank() as i64))?.expect("a colour");
        let two = all.split(Some((world.rank() / 2) as u32), 0)?.expect("a colour");
        let mut v = two.window::<u64>(1)?;
        let put = |rank: usize| {
            if world.rank() != rank {
                return Ok(());
            }
            under(&u, LockType::Shared, |lock| lock.put([1], 3))
        };
        put(0)?;
        all.barrier()?;
        put(2)?;
        two.barrier()?;
        put(3)?;
        all.allreduce(&mut [1], Op::Sum)?;
        put(1)?;
        v.fence()?;
        put(0)?;
        drop((v, two, all));
        over(u, Ok(()))
    });
}

#[test]
fn the_barrier_of_a_world_that_was_split_off_does_not_order_ranks_that_are_not_in_it() {
    found(["OUTSIDE", "INSIDE"], |world| {
        let u = world.lock_window::<u64>(4)?;
        let two = world.split(Some((world.rank() / 2) as u32), 0)?.expect("a colour");
        let mut ended = Ok(());
        if world.rank() == 0 {
            ended = under(&u, LockType::Shared, |lock| lock.put([1], 3)); // OUTSIDE
        }
        two.barrier()?;
        if world.rank() == 2 {
            ended = under(&u, LockType::Shared, |lock| lock.put([1], 3)); // INSIDE
        }
        drop(two);
        over(u, ended)
    });
}

#[test]
fn windows_of_a_world_that_was_split_off_are_ordered_by_the_whole_world_and_by_messages_in_it() {
    silent(|world| {
        let part = world.split(Some(0), -(world.rank() as i64))?.expect("a colour");
        // Rank 1 of the part is rank 2 of the world.
        let u = part.lock_window::<u64>(4)?;
        let put = || under(&u, LockType::Shared, |lock| lock.put([1], 3));
        match world.rank() {
            0 => put().and(world.message(3, 0).send([1_u8]))?,
            3 => world.recv::<u8>(0, 0).and_then(|_| put())?,
            _ => {}
        }
        world.barrier()?;
        if world.rank() == 2 {
            put()?;
        }
        let ended = part.barrier();
        over(u, ended)
    });
}
