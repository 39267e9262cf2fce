//! Operations on many elements. If ranks do not reach each other's memory, such elements are sent
//! in frames of their own. The elements are sent from the window, and applied from the received
//! frame.

use fencepost::prelude::*;
use fencepost::{Census, ErrorClass, Op, TransportKind, ranks};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::transports;

const LEN: usize = 9000;

/// Lengths in elements of two bytes. Some are just below or above the least length of an operation
/// that has a frame of its own.
const LENGTHS: [usize; 6] = [3, 8191, 8192, 8193, 8500, LEN];

/// Draws the calls of a rank in one epoch from the rank's own `dice`, and makes them.
fn epoch(world: &World, dice: &mut Random, windows: &[&Window<u16>; 2]) -> Result<Vec<Ticket<u16>>> {
    let mut tickets = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let (window, target) = (windows[dice.below(2)], dice.below(world.size()));
        let len = dice.one_of(&LENGTHS);
        let [to, from] = [0, 1].map(|_| dice.below(LEN + 1 - len));
        let (remote, section) = (to..to + len, from..from + len);
        let slice: Vec<u16> = (0..len).map(|at| (at * 31 + to) as u16).collect();
        let apart = || Datatype::nest((from % 40) as i64, &[(4300, 2)], 1).unwrap();
        match dice.below(7) {
            0 => window.put(section).to(target, remote)?,
            1 => window.put(windows[0].section(section)).to(target, remote)?,
            2 => window.put(windows[1].section(apart())).to(target, 7..4307)?,
            3 => window.put(&slice).to(target, remote)?,
            4 => window.accumulate(&slice, Op::Sum).to(target, remote)?,
            5 => window.accumulate(section, Op::Bxor).to(target, remote)?,
            _ => tickets.push(window.fetch(target, remote)?),
        }
        if dice.once_in(3) {
            window.put([to as u16]).to(target, from)?;
        }
    }
    Ok(tickets)
}

/// Returns the windows of each rank at the end, and the elements that the rank has fetched.
fn play(transport: TransportKind, census: Census, seed: u64) -> Vec<(Vec<u16>, Vec<u16>, Vec<u16>)> {
    let run = ranks(3).transport(transport.clone()).census(census).collect(|world| {
        let (me, dice) = (world.rank(), &mut Random::new(seed * 8 + world.rank() as u64));
        let (mut u, mut v) = (world.window::<u16>(LEN)?, world.window::<u16>(LEN)?);
        u.iter_mut().zip(v.iter_mut()).enumerate().for_each(|(at, (u, v))| {
            (*u, *v) = ((at * 3 + me) as u16, (at * at + me) as u16);
        });
        let mut fetched = Vec::new();
        for round in 0..5 {
            if round == 3 {
                // All operations are dropped, since rank 1 is in another fence.
                let before = (u.to_vec(), v.to_vec());
                drop(epoch(world, dice, &[&u, &v])?);
                let failed = match me {
                    1 => v.fence(),
                    _ => world.fence((&mut u, &mut v)),
                };
                assert_eq!(failed.unwrap_err().class(), ErrorClass::RmaSync);
                assert!((u.to_vec(), v.to_vec()) == before, "nothing was applied");
                continue;
            }
            let tickets = epoch(world, dice, &[&u, &v])?;
            world.fence((&mut u, &mut v))?;
            for ticket in tickets {
                fetched.extend(ticket.take()?);
            }
        }
        Ok((u.to_vec(), v.to_vec(), fetched))
    });
    run.unwrap_or_else(|error| panic!("{transport:?}, {census:?}, {seed}: {error}"))
}

#[test]
fn long_elements_leave_the_same_bits_on_every_transport() {
    for seed in 0..cases(6, 60) {
        let expected = play(TransportKind::Local, Census::Direct, seed);
        for transport in transports([seed]) {
            for census in Census::ALL {
                let played = play(transport.clone(), census, seed);
                assert!(played == expected, "{transport:?}, {census:?}, seed {seed}");
            }
        }
    }
}
