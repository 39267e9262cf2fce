//! Random programs on every transport. Each program is prepared in every mode, replayed, and run
//! dynamically in every mode. Its results always equal those of the reference interpreter bit for
//! bit.
//!
//! A program is drawn as raw numbers, which are read modulo the number of choices. So every shrunk
//! list of numbers is also a program, and a failure prints the smallest program that still fails.
//! Each epoch is run twice in a row with different values; the second run is a replay of the first.
//! Some ranks run a prepared epoch in two halves, and between the halves access the elements that
//! they keep. Some epochs are prepared with posts and starts. Ranks that exchange nothing in such
//! an epoch may leave it out.
//!
//! Every program runs on `local`, `shm` and `sim`. An eighth of them also runs on TCP, an eighth on
//! several hosts, an eighth on a stand-in for MPI, and an eighth on several hosts with this
//! stand-in. The seed determines how the ranks are distributed over the hosts: in rows of
//! consecutive ranks, of equal or of different lengths, or in any order.
//! `FENCEPOST_TEST_TRANSPORTS=all` runs every program on all transports, and
//! `FENCEPOST_TEST_TRANSPORTS=tcp,mixed` runs it on these two transports only. `FENCEPOST_CASES` is
//! the number of programs; `all` means 2,600.

use fencepost::transport::SimConfig;
use fencepost::{Census, Datatype, Machine, Mode, Options, Placement, TransportKind};
use fencepost_planner::ir::pattern::{Local, Patterns, Sync};
use fencepost_planner::units::Bytes;
use fencepost_tests_support::cases::cases;
use fencepost_tests_worlds::play::{Variant, play, world};
use fencepost_tests_worlds::program::{self, Epoch, Program, RawProgram, raw_program};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the variants in which to play `program` on one transport: dynamic in every mode,
/// prepared in every mode, and a mixture of prepared and dynamic epochs.
fn variants(
    program: &Program,
    placements: [Placement; 2],
    seed: u64,
    sim: bool,
) -> Result<Vec<Variant>, TestCaseError> {
    let mut variants =
        vec![Variant { name: "dynamic".into(), replays: sim && program.ranks > 1, ..Variant::default() }];
    variants.extend(Mode::ALL.map(|mode| Variant {
        name: format!("dynamic, {mode}"),
        asks: Some(mode),
        ..Variant::default()
    }));
    variants.push(Variant { name: "dynamic, scoped".into(), scoped: true, ..Variant::default() });
    let options = Mode::ALL.map(|mode| (placements[0], Options { mode, ..Options::default() }));
    // This variant has many small frames, and may leave out coalescing.
    let odd = Options {
        mode: Mode::ALL[(seed >> 8) as usize % 5],
        coalesce: seed >> 16 & 1 == 0,
        chunk: Some(Bytes(1 + (seed >> 20) % 40)),
        cap: None,
    };
    let halved = seed >> 17 & 1 == 0;
    for (number, (placement, options)) in options.into_iter().chain([(placements[1], odd)]).enumerate() {
        // The last variant mixes prepared and dynamic epochs.
        let mixed = number == Mode::ALL.len();
        let by_posts = seed.rotate_right(21 + number as u32) & 1 == 1;
        let sync = if by_posts { Sync::Pscw } else { Sync::Fence };
        let name = format!("{placement:?} {options:?}, mixed {mixed}, {sync:?}");
        let mut prepared = Vec::new();
        for (e, epoch) in program.epochs.iter().enumerate().step_by(2) {
            if mixed && seed >> (e % 64) & 1 == 0 {
                prepared.extend([None, None]);
                continue;
            }
            let patterns = Patterns { sync, ..epoch.patterns(&program.windows) };
            let compiled = |options: &Options| {
                fencepost_planner::compile(&patterns, placement, &Machine::default(), options)
                    .map_err(|error| TestCaseError::fail(format!("{name}: {error}\n{program}")))
            };
            let mut schedule = compiled(&options)?;
            if mixed && halved {
                // The schedule gets half the staging memory that it would use. So each buffer has
                // one copy, or more operations are copied directly.
                let cap = Some(Bytes(schedule.peak().0.div_ceil(2)));
                schedule = compiled(&Options { cap, ..options })?;
            }
            let schedule = Arc::new(schedule);
            prepared.extend([Some(schedule.clone()), Some(schedule)]);
        }
        let halves = seed.rotate_right(11 * number as u32);
        variants.push(Variant { name, prepared, halves, ..Variant::default() });
    }
    Ok(variants)
}

/// The names of the transports.
const NAMES: [&str; 7] = ["local", "shm", "sim", "tcp", "mixed", "mpi", "mixed-mpi"];

/// Returns the [`NAMES`] of the transports on which a program of this seed runs.
fn runs_on(asked: Option<&str>, seed: u64) -> Vec<&'static str> {
    let some = |name: &&str| match *name {
        "tcp" => seed.is_multiple_of(8),
        "mixed" => seed % 8 == 4,
        "mpi" => seed % 8 == 2,
        "mixed-mpi" => seed % 8 == 6,
        _ => true,
    };
    match asked {
        None => NAMES.into_iter().filter(some).collect(),
        Some("all") => NAMES.into(),
        Some(list) => {
            let named = |name| NAMES.into_iter().find(|known| *known == name);
            let named = |name| {
                named(name)
                    .unwrap_or_else(|| panic!("`{name}` is not a transport: use one of {NAMES:?}, or `all`"))
            };
            list.split(',').map(named).collect()
        }
    }
}

/// Returns the host of each rank. Hosts have rows of consecutive ranks, of equal or of different
/// lengths, or ranks in any order.
fn hosts(ranks: usize, seed: u64) -> Vec<u32> {
    let drawn = |rank: usize| (seed >> (40 + 3 * rank)) as u32 % 8 % 3;
    let row = 1 + (seed >> 36) as usize % 4;
    let mut hosts: Vec<u32> = (0..ranks).map(drawn).collect();
    match (seed >> 32) % 3 {
        0 => (0..ranks).map(|rank| (rank / row) as u32).collect(),
        1 => {
            hosts.sort_unstable();
            hosts
        }
        _ => hosts,
    }
}

/// Returns the placement that the planner may assume: the longest rows of consecutive ranks such
/// that each row is on one host.
fn placement(hosts: &[u32]) -> Placement {
    let one = |row: &[u32]| row.iter().all(|host| *host == row[0]);
    let longest = (1..=hosts.len()).rev().find(|&row| hosts.chunks(row).all(one));
    match longest {
        Some(1) => Placement::Apart,
        Some(row) if row < hosts.len() => Placement::Hosts { ranks_each: row },
        _ => Placement::Together,
    }
}

/// Returns the transport of this name for a number of ranks, and the placements that the planner
/// may assume on it.
fn transport(name: &str, ranks: usize, seed: u64) -> (TransportKind, [Placement; 2]) {
    let apart = [Placement::Apart; 2];
    let others = [Placement::Apart, Placement::Hosts { ranks_each: 2 }];
    let together = [Placement::Together, others[seed as usize % 2]];
    match name {
        "local" => (TransportKind::Local, together),
        "shm" => (TransportKind::ShmThreads, together),
        "sim" => (TransportKind::Sim(SimConfig { seed, ..SimConfig::default() }), apart),
        "tcp" => (TransportKind::TcpThreads, apart),
        "mpi" => (TransportKind::MpiThreads, apart),
        _ => {
            let hosts = hosts(ranks, seed);
            let placed = placement(&hosts);
            let second = if seed >> 18 & 1 == 0 { placed } else { Placement::Apart };
            let kind = match name {
                "mixed" => TransportKind::MixedThreads(hosts),
                _ => TransportKind::MixedMpiThreads(hosts),
            };
            (kind, [placed, second])
        }
    }
}

/// The numbers of programs and of epochs, by transport.
type Counts = BTreeMap<&'static str, (usize, usize)>;

fn agrees(
    raw: &RawProgram,
    seed: u64,
    asked: Option<&str>,
    counts: &RefCell<Counts>,
) -> Result<(), TestCaseError> {
    let program = raw.program().repeated(2);
    let expected = program.reference();
    for name in runs_on(asked, seed) {
        let (transport, placements) = transport(name, program.ranks, seed);
        // An epoch whose elements are read in place is never replayed.
        let replays = match &transport {
            TransportKind::Sim(_) | TransportKind::TcpThreads | TransportKind::MpiThreads => true,
            TransportKind::MixedThreads(hosts) | TransportKind::MixedMpiThreads(hosts) => {
                (1..hosts.len()).all(|rank| !hosts[..rank].contains(&hosts[rank]))
            }
            _ => false,
        };
        let variants = variants(&program, placements, seed, replays)?;
        let census = Census::ALL[(seed >> 19) as usize % 3];
        let follows = seed >> 23 & 1 == 1;
        let found = play(&program, &world(program.ranks, &transport, census, follows), &variants)
            .map_err(|error| TestCaseError::fail(format!("{transport:?}, {census}: {error:?}\n{program}")))?;
        for (variant, found) in variants.iter().zip(&found) {
            prop_assert!(
                *found == expected,
                "{transport:?}, {census}, {}, elements follow: {follows}: {}\n{program}",
                variant.name,
                program::first_difference(&expected, found)
            );
        }
        let mut counts = counts.borrow_mut();
        let (programs, epochs) = counts.entry(name).or_default();
        (*programs, *epochs) = (*programs + 1, *epochs + raw.epochs());
    }
    Ok(())
}

/// The number of programs that are drawn by default, and in a full run.
const PROGRAMS: [u64; 2] = [120, 2_600];

/// A full run plays at least 10,000 epochs: 2,600 programs of four epochs each on average.
#[test]
#[expect(clippy::print_stdout, reason = "the number of epochs is part of the result")]
fn every_program_does_what_the_reference_does() {
    let programs = cases(PROGRAMS[0], PROGRAMS[1]);
    let config = ProptestConfig {
        cases: programs as u32,
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let asked = std::env::var("FENCEPOST_TEST_TRANSPORTS").ok();
    let epochs = std::cell::Cell::new(0usize);
    let counts = RefCell::default();
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(raw_program(), any::<u64>()), |(raw, seed)| {
        epochs.set(epochs.get() + raw.epochs());
        agrees(&raw, seed, asked.as_deref(), &counts)
    });
    println!("{} epochs, dynamic, replayed and prepared in every mode:", epochs.get());
    for (name, (programs, epochs)) in counts.into_inner() {
        println!("  {name}: {epochs} epochs of {programs} programs");
    }
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(programs < PROGRAMS[1] || epochs.get() >= 10_000, "{} epochs", epochs.get());
}

/// Seeds draw every kind of placement. The planner never assumes that ranks share memory if they do
/// not.
#[test]
fn hosts_are_even_uneven_and_mixed_up() {
    let (mut even, mut uneven, mut mixed_up) = (0, 0, 0);
    for seed in 0..4_000_u64 {
        let hosts = hosts(5, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let placed = placement(&hosts);
        for (a, host) in hosts.iter().enumerate() {
            for (b, other) in hosts.iter().enumerate() {
                assert!(!placed.share(a as u32, b as u32) || host == other, "{hosts:?}: {placed:?}");
            }
        }
        match (hosts.is_sorted(), placed) {
            (true, Placement::Apart) => uneven += 1,
            (true, _) => even += 1,
            (false, _) => mixed_up += 1,
        }
    }
    assert!([even, uneven, mixed_up].iter().all(|&count| count > 400), "{even}, {uneven}, {mixed_up}");
}

/// Returns the same program with each element replaced by a run of `times` elements.
fn magnified(mut program: Program, times: usize) -> Program {
    let long = |datatype: &Datatype| {
        Datatype::runs(datatype.run_iter().map(|(at, len)| (at * times as i64, len * times))).unwrap()
    };
    program.lens.iter_mut().flatten().for_each(|len| *len *= times);
    let operations = program.epochs.iter_mut().flat_map(|epoch| epoch.operations.iter_mut().flatten());
    for operation in operations {
        operation.remote = long(&operation.remote);
        if let Local::Section { datatype, .. } = &mut operation.local {
            *datatype = long(datatype);
        }
    }
    program
}

/// Payloads of many packets. Some payloads are one run of a window, and are sent from the window or
/// received into it.
#[test]
fn programs_of_long_runs_do_by_messages_what_the_reference_does() {
    const TIMES: usize = 2048; // an element of eight bytes becomes 16 KiB
    let config = ProptestConfig {
        cases: (cases(PROGRAMS[0], PROGRAMS[1]) as u32 / 100).max(3),
        max_shrink_iters: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(raw_program(), 1u64..60), |(raw, seed)| {
        let small = raw.program();
        let program = magnified(raw.program(), TIMES);
        let expected = program.reference();
        let chunk = Some(Bytes(seed << 10));
        let odd = Options { mode: Mode::ALL[seed as usize % 5], coalesce: seed % 3 > 0, chunk, cap: None };
        let pairs: Vec<u32> = (0..program.ranks as u32).map(|rank| rank / 2).collect();
        let hosts = Placement::Hosts { ranks_each: 2 };
        for (transport, placement) in [
            (TransportKind::TcpThreads, Placement::Apart),
            (TransportKind::MixedThreads(pairs.clone()), hosts),
            (TransportKind::MpiThreads, Placement::Apart),
            (TransportKind::MixedMpiThreads(pairs), hosts),
        ] {
            let prepared = |name: &str, options: &Options| {
                let compiled = |epoch: &Epoch| {
                    let patterns = epoch.patterns(&program.windows);
                    fencepost_planner::compile(&patterns, placement, &Machine::default(), options)
                        .map(|schedule| Some(Arc::new(schedule)))
                        .map_err(|error| TestCaseError::fail(format!("{error}\n{small}")))
                };
                let prepared = program.epochs.iter().map(compiled).collect::<Result<_, _>>()?;
                let halves = seed | seed << 7 | seed << 19;
                Ok::<_, TestCaseError>(Variant { name: name.into(), prepared, halves, ..Variant::default() })
            };
            let variants = [
                Variant { name: "dynamic".into(), ..Variant::default() },
                prepared("prepared", &Options::default())?,
                prepared("prepared in an odd way", &odd)?,
            ];
            let census = Census::ALL[seed as usize / 5 % 3];
            let world = world(program.ranks, &transport, census, seed as usize / 15 % 2 == 1);
            let found = play(&program, &world, &variants)
                .map_err(|error| TestCaseError::fail(format!("{transport:?}: {error:?}\n{small}")))?;
            for (variant, found) in variants.iter().zip(&found) {
                prop_assert!(*found == expected, "{transport:?}, {}, {odd:?}\n{small}", variant.name);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
