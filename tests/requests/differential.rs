//! Random programs on every transport. The reference explains the results of the programs.

use crate::programs::{Action, BUFFER, asks, bare, draw, play};
use fencepost::ranks;
use fencepost_tests_reference::{Completed, MessageCall, Standard, explains_messages, stops};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::of_program;
use std::collections::BTreeSet;

/// The number of programs that are drawn by default, and in a full run.
const PROGRAMS: [u64; 2] = [400, 10_000];

/// Draws a program that ends whether or not messages are buffered. If `buffers`, it is enough that
/// the program ends if all messages are buffered.
fn that_ends(random: &mut Random, buffers: bool) -> Vec<Vec<Action>> {
    loop {
        let drawn = draw(random);
        if !buffers && drawn.iter().any(|program| asks(program)) {
            continue;
        }
        let bare: Vec<Vec<MessageCall>> = drawn.iter().map(|actions| bare(actions)).collect();
        let only_ends =
            |standard| stops(&bare, BUFFER, standard).is_ok_and(|ways| ways == BTreeSet::from([Vec::new()]));
        if only_ends(Standard::AtOnce) && (buffers || only_ends(Standard::AtMatch)) {
            return drawn;
        }
    }
}

#[test]
fn what_every_program_of_requests_brings_is_explained_by_the_reference() {
    let (mut completed, mut failed, mut cancelled, mut none) = (0, 0, 0, 0);
    let programs = cases(PROGRAMS[0], PROGRAMS[1]);
    for seed in 0..programs {
        let random = &mut Random::new(seed);
        // The ranks have room to buffer messages, or no room.
        let buffers = !random.once_in(3);
        let drawn = that_ends(random, buffers);
        let (eager, unexpected) =
            if buffers { (1 << 14, 1 << 24) } else { random.one_of(&[(0, 1 << 24), (1 << 14, 150)]) };
        for transport in of_program(seed, drawn.len()) {
            let about = || format!("seed {seed}, {transport:?}, {eager}, {unexpected}: {drawn:#?}");
            let world = ranks(drawn.len()).transport(transport.clone()).end_deadlocks(true);
            let world = world.eager(eager).unexpected(unexpected);
            let played = world.collect(|world| play(world, &drawn[world.rank()]));
            let played = played.unwrap_or_else(|error| panic!("{error}: {}", about()));
            let explained = explains_messages(&played, BUFFER).unwrap();
            assert_eq!(explained, None, "{played:#?}, {}", about());
            for call in played.iter().flatten() {
                let MessageCall::Complete { completed: Some(all), requests, .. } = call else { continue };
                none += u64::from(all.is_empty() && !requests.is_empty());
                for (_, one) in all {
                    completed += 1;
                    failed += u64::from(matches!(one, Completed::Failed { .. }));
                    cancelled += u64::from(matches!(one, Completed::Cancelled));
                }
            }
        }
    }
    assert!(
        completed > 8 * programs && failed > programs / 8 && cancelled > programs / 16 && none > programs / 8,
        "{completed}, {failed}, {cancelled}, {none}"
    );
}
