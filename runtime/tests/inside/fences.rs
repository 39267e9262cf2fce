//! Tests that take one of the waits W1 to W6 out of the fence of dynamic epochs, with a switch that
//! only tests of this package have.
//!
//! Such a fence runs over the links of `sim` with one seed after another, until the missing wait
//! shows as wrong bits or as an error. With the same seeds, the complete protocol succeeds.
//!
//! # The waits that are taken away
//!
//! Over [`Reach::Messages`], operations travel in frames before the notification, and each rank
//! applies them itself. There the waits are these. W1: a rank compares the words of notifications
//! and of frames. W2: a rank answers gets before it applies anything, including its own operations
//! on itself. W3: a rank leaves the fence only when its own gets have arrived. W4: notifications
//! alternate between two places (posted frames are copied, so outboxes need no wait). W5: no rank
//! publishes before it has all notifications of the previous exchange. W6: every fence is complete.
//!
//! Over [`Reach::Memory`], ranks execute the fence of `local` with the delays of `sim`. Gets read
//! the target's window, and operations are read from the origin's outbox, so W1 to W4 also concern
//! these accesses. A fence without a wait causes data races there on purpose. These races concern
//! only plain elements, and records in memory that both sets of outboxes have allocated in their
//! first epochs.

use crate::api::run::ranks;
use crate::kernel::waits::{Wait, take_away};
use crate::state::transport_kind::TransportKind;
use crate::state::window::Window;
use crate::state::world::World;
use crate::testing::support::{Dice, Reach, shown, stored};
use fencepost_planner::{ErrorClass, Result};
use fencepost_tests_support::cases::cases;
use fencepost_transport::{Leave, Liveness, Notify, Pause, SimConfig, SimEnd, Topology, sim};
use std::thread;

const RANKS: usize = 3;
const LEN: usize = 16;
const EPOCHS: usize = 24;
/// The number of epochs before a wait is taken away. After these epochs, the outboxes no longer
/// allocate memory.
const WHOLE: usize = 4;

/// Returns the value that rank `rank` puts to the right in epoch `epoch`.
fn sent(rank: usize, epoch: usize, at: usize) -> u64 {
    stored(rank, epoch, at) + 500
}

/// Executes one epoch. Returns a description of the elements if they are wrong.
///
/// Each rank gets elements 0 to 2 of the rank on its left. Each rank puts to elements 0, 1, 8, 9
/// and 10 of the rank on its right, and to its own element 2.
fn epoch(u: &mut Window<u64>, epoch: usize, dice: &mut Dice) -> Result<Option<String>> {
    let (me, left, right) = (u.rank(), (u.rank() + RANKS - 1) % RANKS, (u.rank() + 1) % RANKS);
    dice.linger();
    (0..LEN).for_each(|at| u[at] = stored(me, epoch, at));
    for at in [0, 1, 8, 9, 10] {
        u.put([sent(me, epoch, at)]).to(right, at)?;
    }
    u.put([sent(me, epoch, 2)]).to(me, 2)?;
    u.get(12..15).from(left, 0..3)?;
    dice.linger();
    u.fence()?;
    let expected: Vec<u64> = (0..LEN)
        .map(|at| match at {
            0 | 1 | 8..=10 => sent(left, epoch, at),
            2 => sent(me, epoch, at),
            12..=14 => stored(left, epoch, at - 12),
            _ => stored(me, epoch, at),
        })
        .collect();
    let wrong = u[..] != expected[..];
    Ok(wrong.then(|| format!("epoch {epoch}, rank {me}: {:?} is not {expected:?}", &u[..])))
}

/// Runs `program` on every rank, and returns the first fault that a rank describes, or the error
/// with which the world ends.
fn on_each(
    reach: Reach,
    config: SimConfig,
    program: impl Fn(&World) -> Result<Option<String>> + Sync,
) -> Result<(), String> {
    let said: Vec<Option<String>> = ranks(RANKS)
        .transport(TransportKind::Sim(config))
        .census(reach.census())
        .collect(program)
        .map_err(|error| error.to_string())?;
    said.into_iter().flatten().next().map_or(Ok(()), Err)
}

/// Executes epochs one after another. The first [`WHOLE`] epochs have all waits.
fn epochs(reach: Reach, wait: Option<Wait>, seed: u64) -> Result<(), String> {
    on_each(reach, reach.config(seed), |world| {
        let mut dice = Dice::new(seed, world.rank());
        let mut u = world.window::<u64>(LEN)?;
        let mut wrong = None;
        for number in 0..EPOCHS {
            take_away(wait.filter(|_| number >= WHOLE));
            // Only the first mismatch is kept. After a mismatch, the ranks continue together, so
            // that no rank reads the memory of a rank that has left.
            wrong = wrong.or(epoch(&mut u, number, &mut dice)?);
        }
        take_away(None);
        world.barrier()?;
        Ok(wrong)
    })
}

#[track_caller]
fn caught(reach: Reach, wait: Wait) -> String {
    let run = |wait, seed| epochs(reach, wait, seed);
    shown(|seed| run(None, seed), |seed| run(Some(wait), seed))
}

#[test]
fn fences_do_what_they_should() {
    for seed in 0..cases(25, 100) {
        for reach in Reach::ALL {
            assert_eq!(epochs(reach, None, seed), Ok(()), "{reach:?}, seed {seed}");
        }
    }
}

/// Fences one of two windows on three ranks, after one rank has swapped its two windows. Checks
/// that the error of each rank names both windows, and that no operation is applied.
fn one_swaps(reach: Reach, wait: Option<Wait>, seed: u64) -> Result<(), String> {
    on_each(reach, reach.config(seed), |world| {
        let (me, mut dice) = (world.rank(), Dice::new(seed, world.rank()));
        let (mut u, mut v) = (world.window::<u64>(LEN)?, world.window::<u64>(LEN)?);
        u.fill(1);
        v.fill(2);
        if me == 1 {
            std::mem::swap(&mut u, &mut v);
        }
        take_away(wait);
        u.put([3]).to((me + 1) % RANKS, 0)?;
        dice.linger();
        let told = u.fence();
        take_away(None);
        let untouched = u.iter().all(|&cell| cell == u[LEN - 1]) && v.iter().all(|&cell| cell == v[LEN - 1]);
        let named = |text: &str| text.contains("of window 0") && text.contains("of window 1");
        match told {
            Err(error) if error.class() == ErrorClass::RmaSync && named(error.message()) && untouched => {}
            told => return Ok(Some(format!("rank {me}: {told:?}, {:?}, {:?}", &u[..2], &v[..2]))),
        }
        // After the error, the world goes on.
        if me == 1 {
            std::mem::swap(&mut u, &mut v);
        }
        u.put([4]).to((me + 1) % RANKS, 0)?;
        u.fence()?;
        Ok((u[0] != 4).then(|| format!("rank {me}: {:?} after it", &u[..2])))
    })
}

#[test]
fn w1_a_notification_of_another_epoch_is_not_taken_for_one_of_this() {
    for reach in Reach::ALL {
        shown(|seed| one_swaps(reach, None, seed), |seed| one_swaps(reach, Some(Wait::Word), seed));
    }
}

#[test]
fn w1_memory_is_not_read_before_its_rank_entered() {
    for reach in Reach::MEMORY {
        let wrong = caught(reach, Wait::Entry);
        assert!(wrong.contains("is not"), "{reach:?}: {wrong}");
    }
}

#[test]
fn w2_elements_are_not_written_before_they_were_read() {
    for reach in Reach::ALL {
        let wrong = caught(reach, Wait::ReadsFirst);
        assert!(wrong.contains("is not"), "{reach:?}: {wrong}");
    }
}

#[test]
fn w3_a_rank_does_not_leave_before_all_have_read_from_it() {
    for reach in Reach::MEMORY {
        let wrong = caught(reach, Wait::Leaving);
        assert!(wrong.contains("is not"), "{reach:?}: {wrong}");
    }
}

#[test]
fn w3_a_rank_does_not_leave_before_its_gets_have_come() {
    for reach in Reach::MESSAGES {
        caught(reach, Wait::Landing);
    }
}

#[test]
fn w4_an_outbox_is_not_filled_before_its_readers_are_done() {
    for reach in Reach::MEMORY {
        let wrong = caught(reach, Wait::Reuse);
        assert!(wrong.contains("is not"), "{reach:?}: {wrong}");
    }
}

/// Exchanges notifications and does nothing else. Each notification that a rank reads must be of
/// the exchange that the rank published last.
fn exchanges(one_set: bool, seed: u64) -> Result<(), String> {
    let mut config = Reach::Messages.config(seed);
    config.altered.one_notification_set = one_set;
    let exchange = |end: &mut SimEnd, dice: &mut Dice, number: u64| {
        end.publish(number).map_err(|lost| lost.to_string())?;
        dice.linger();
        for from in 0..RANKS {
            let mut pause = Pause::new();
            let word = loop {
                match end.read(from).map_err(|lost| lost.to_string())? {
                    Some(notification) => break notification.word,
                    None => end.idle(&mut pause),
                }
            };
            if word != number {
                return Err(format!("the notification of exchange {word} is read in exchange {number}"));
            }
        }
        Ok(())
    };
    let rank = |mut end: SimEnd| {
        let mut dice = Dice::new(seed, end.rank());
        let result = (1..=EPOCHS as u64).try_for_each(|number| exchange(&mut end, &mut dice, number));
        end.leave(Leave::Finished);
        result
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            sim(RANKS, config).into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // A report of a wrong value is more specific than the errors that other ranks get because the
    // reporting rank has left.
    let read = results.iter().find(|result| result.as_ref().is_err_and(|text| text.contains("is read in")));
    read.cloned().unwrap_or_else(|| results.into_iter().collect())
}

#[test]
fn w4_a_notification_does_not_take_the_place_of_one_that_may_not_have_been_read() {
    let wrong = shown(|seed| exchanges(false, seed), |seed| exchanges(true, seed));
    assert!(wrong.contains("is read in"), "{wrong}");
}

/// Executes fences and does nothing else. A rank that does not wait for notifications gets an error
/// from the ranks that it overtakes.
fn bare(reach: Reach, wait: Option<Wait>, seed: u64) -> Result<(), String> {
    let mut config = reach.config(seed);
    config.altered.unread = wait.is_some();
    on_each(reach, config, |world| {
        let mut dice = Dice::new(seed, world.rank());
        let mut u = world.window::<u64>(LEN)?;
        take_away(wait.filter(|_| world.rank() == 0));
        for _ in 0..EPOCHS {
            if world.rank() > 0 {
                dice.linger();
            }
            u.fence()?;
        }
        take_away(None);
        Ok(None)
    })
}

#[test]
fn w5_nobody_is_more_than_one_superstep_ahead() {
    for reach in Reach::ALL {
        let wrong = shown(|seed| bare(reach, None, seed), |seed| bare(reach, Some(Wait::Skew), seed));
        let told = [
            "a notification too early",
            " ahead, in ",
            "has finished and left the world",
            "belongs to no exchange",
        ];
        let told = told.iter().any(|text| wrong.contains(text));
        assert!(told, "{reach:?}: {wrong}");
    }
}

/// Executes fences. In every second fence only the first rank has operations. If W6 is taken away,
/// the other ranks omit such a fence, because "nothing happens" in it.
fn now_and_then(reach: Reach, wait: Option<Wait>, seed: u64) -> Result<(), String> {
    on_each(reach, reach.config(seed), |world| {
        let (me, mut dice) = (world.rank(), Dice::new(seed, world.rank()));
        let mut u = world.window::<u64>(LEN)?;
        let mut wrong = None;
        take_away(wait);
        for number in 0..EPOCHS {
            (0..LEN).for_each(|at| u[at] = stored(me, number, at));
            if me == 0 || number % 2 == 0 {
                u.put([sent(me, number, 0)]).to((me + 1) % RANKS, 0)?;
            }
            dice.linger();
            u.fence()?;
            let origin = (me + RANKS - 1) % RANKS;
            let put = origin == 0 || number % 2 == 0;
            let expected = if put { sent(origin, number, 0) } else { stored(me, number, 0) };
            if u[0] != expected {
                wrong.get_or_insert_with(|| format!("epoch {number}, rank {me}: {} is not {expected}", u[0]));
            }
        }
        Ok(wrong)
    })
}

#[test]
fn w6_no_fence_is_left_to_the_one_before() {
    for reach in Reach::ALL {
        let run = |wait, seed| now_and_then(reach, wait, seed);
        shown(|seed| run(None, seed), |seed| run(Some(Wait::Composition), seed));
    }
}
