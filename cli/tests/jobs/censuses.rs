//! Ranks of one world that take different censuses, chosen by their programs or their environments.

use crate::launched::{options, run_with};
use crate::rank::{say, size};
use fencepost::prelude::*;
use fencepost::{Census, TransportKind, process};
use fencepost_tests_support::side_by_side::side_by_side;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time that a world may take to end, on a machine that does something else as well.
const LIMIT: Duration = Duration::from_secs(10);

/// Every rank of each world returns an error, also if stalls are not reported. The error names two
/// ranks with different censuses, and the variable to set. In a world of nine ranks over TCP, and
/// in a world on two hosts, some ranks take part in a census only through other ranks.
pub fn differ() {
    let jobs = [
        ("shm", "3", "10s"),
        ("tcp", "3", "off"),
        ("tcp", "9", "10s"),
        ("tcp", "9", "off"),
        ("mixed", "4", "off"),
    ];
    side_by_side(jobs.len(), jobs, |(transport, ranks, stalls)| {
        let options = [&options(transport, ranks)[..], &["--timeout", "90s"]].concat();
        let ended = run_with(&options, &["censuses"], &[("FENCEPOST_STALL", stalls)]).end();
        ended.expect(0);
        let (mut worlds, mut slowest) = (BTreeMap::<&str, usize>::new(), Duration::ZERO);
        for line in ended.out.lines() {
            let [world, micros, text] = line.splitn(3, '|').collect::<Vec<_>>()[..] else {
                panic!("{transport}: {line}")
            };
            *worlds.entry(world).or_default() += 1;
            let named = text.contains("the census of rank ") && text.contains(", and that of rank ");
            assert!(named && text.contains("give all ranks one FENCEPOST_CENSUS"), "{transport}: {line}");
            slowest = slowest.max(Duration::from_micros(micros.parse().expect("a number")));
        }
        let ranks = ranks.parse::<usize>().expect("a number");
        assert!(worlds.len() == 18 && worlds.values().all(|&errors| errors == ranks), "{worlds:?}");
        println!(
            "  {transport}, {ranks} ranks, {} worlds: the last rank was told after {slowest:.1?}",
            worlds.len()
        );
        assert!(slowest < LIMIT, "{transport}: {slowest:?}");
    });
}

/// Runs consecutive worlds. In each world, one rank takes another census than the other ranks.
/// Prints how the first call of each world ended.
pub fn rank() -> Result<()> {
    let (rank, size) = (process()?.expect("a rank").rank as usize, size());
    let mut turn = 0;
    for most in Census::ALL {
        for odd in Census::ALL.into_iter().filter(|odd| *odd != most) {
            for who in [0, size / 2, size - 1] {
                // There are four kinds of first call, which the worlds use in turn.
                turn += 1;
                let census = if rank == who { odd } else { most };
                let world = fencepost::ranks(size).transport(TransportKind::Tcp).census(census);
                let began = Instant::now();
                let ended = world.run(|world| match turn % 4 {
                    0 => world.barrier(),
                    1 => world.window::<u8>(1).map(drop),
                    2 => world.allreduce(&mut [1_u64], Op::Sum),
                    _ => world.split(Some(0), 0).map(drop),
                });
                let text = ended.map_or_else(|error| error.to_string(), |()| "no error".into());
                let micros = began.elapsed().as_micros();
                say(&format!("{turn}: rank {who} {odd}, others {most}|{micros}|{}", text.replace('\n', " ")));
            }
        }
    }
    Ok(())
}
