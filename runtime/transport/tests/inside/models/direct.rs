//! Models of a direct census over the notification board. Each rank notifies each other rank, and
//! reads the notifications of all other ranks. A lost, duplicated or early notification is
//! reported, since its word has the number of its census.

use std::mem::ManuallyDrop;

use loom::thread;

use super::{model, rejected};
use crate::{Cause, Liveness, LocalEnd, Notify, Topology, local};

/// The fault of the notifications that rank 0 publishes for census 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    Lost,
    Doubled,
    /// The notification of census 1 arrives before that of census 0.
    Early,
}

/// The reason why a rank stops.
type Told = String;

/// Takes part in census `number`. Publishes no, one or two words, depending on the fault, and reads
/// the words of all other ranks after each published word. If `compares` is set, a rank that reads
/// a word of another census ends the world.
fn census(end: &mut LocalEnd, number: u64, fault: Fault, compares: bool) -> Result<(), Told> {
    let words: &[u64] = match (end.rank(), number, fault) {
        (0, 0, Fault::Lost) => &[],
        (0, 0, Fault::Doubled) => &[0, 0],
        (0, 0, Fault::Early) => &[1, 0],
        (_, 0, _) => &[0],
        _ => &[1],
    };
    // If there is a fault, it is in the notifications of rank 0, and only the other ranks compare
    // words.
    let (me, size) = (end.rank(), end.size());
    let finds = me != 0 || fault == Fault::None;
    for &word in words {
        end.publish(word).map_err(|lost| lost.to_string())?;
        for from in (0..size).filter(|&from| from != me) {
            let word = read(end, from, fault)?;
            if finds && compares && word != number {
                let what = format!("rank {from} has sent a message of census {word} in census {number}");
                end.end(Cause { rank: from, what: what.clone() });
                return Err(what);
            }
            assert!(!finds || word == number, "what was said in another census is believed");
        }
    }
    Ok(())
}

/// Returns the word of the notification of `from`. If the notification is lost, the rank gives up
/// after a few polls, as it would after a transport's time limit.
fn read(end: &mut LocalEnd, from: usize, fault: Fault) -> Result<u64, Told> {
    let mut looks = 0;
    loop {
        if let Some(notification) = end.read(from).map_err(|lost| lost.to_string())? {
            return Ok(notification.word);
        }
        looks += 1;
        if fault == Fault::Lost && looks > 2 {
            return Err(format!("rank {from} is silent"));
        }
        thread::yield_now();
    }
}

/// Runs two censuses with this fault. Returns the result of each rank.
fn censuses(size: usize, fault: Fault, compares: bool) -> Vec<Result<(), Told>> {
    let run = move |mut end: ManuallyDrop<LocalEnd>| {
        let result = (0..2).try_for_each(|number| census(&mut end, number, fault, compares));
        (result, end)
    };
    // `ManuallyDrop`, because a dropped end leaves its world, which is not possible while a
    // rejected model unwinds.
    let mut ends = local(size).into_iter().map(ManuallyDrop::new);
    let first = ends.next().expect("a rank at least");
    let others: Vec<_> = ends.map(|end| thread::spawn(move || run(end))).collect();
    let mut all = vec![run(first)];
    all.extend(others.into_iter().map(|other| other.join().expect("a panic ends the model")));
    let leave = |(result, end)| {
        drop(ManuallyDrop::into_inner(end));
        result
    };
    all.into_iter().map(leave).collect()
}

#[test]
fn two_direct_censuses_without_a_fault_are_complete() {
    for (size, preemptions) in [(2, 3), (3, 0)] {
        model(preemptions, move || {
            let results = censuses(size, Fault::None, true);
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        });
    }
}

#[test]
fn a_doubled_notification_or_an_early_one_is_told() {
    for fault in [Fault::Doubled, Fault::Early] {
        for (size, preemptions) in [(2, 2), (3, 0)] {
            model(preemptions, move || {
                let results = censuses(size, fault, true);
                let told: Vec<&Told> =
                    results[1..].iter().filter_map(|result| result.as_ref().err()).collect();
                assert!(!told.is_empty(), "{fault:?}: nobody is told");
                let names = |told: &&Told| told.contains("rank 0 has sent") || told.contains("left");
                assert!(told.iter().all(names), "{fault:?}: {results:?}");
            });
        }
    }
}

#[test]
fn a_notification_of_another_census_that_is_believed_is_caught() {
    for fault in [Fault::Doubled, Fault::Early] {
        let complaint = rejected(2, move || drop(censuses(2, fault, false)));
        assert!(complaint.contains("what was said in another census is believed"), "{fault:?}: {complaint}");
    }
}

#[test]
fn no_direct_census_is_complete_where_a_notification_of_it_was_lost() {
    for (size, preemptions) in [(2, 2), (3, 0)] {
        model(preemptions, move || {
            let results = censuses(size, Fault::Lost, true);
            for told in &results[1..] {
                let told = told.as_ref().expect_err("rank 0 did not notify it");
                assert!(told.contains("rank 0 ") || told.contains("left"), "{told}");
            }
        });
    }
}
