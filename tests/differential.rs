//! Random programs, each on every transport, equal to the reference interpreter bit for bit.
//!
//! A program is drawn as raw numbers that are read modulo what is possible, so that every shrunk program is a program:
//! a failure prints the smallest one that still fails.

mod support;

use fencepost::transport::SimConfig;
use fencepost::{Mode, TransportKind};
use proptest::prelude::*;
use support::play::{Play, play};
use support::program::{RawProgram, raw_program};

fn agrees(raw: &RawProgram, transport: TransportKind, mode: Mode) -> Result<(), TestCaseError> {
    let program = raw.program();
    let expected = program.reference();
    let found = play(&program, &Play { transport: transport.clone(), mode })
        .map_err(|error| TestCaseError::fail(format!("{error:?}\n{program}")))?;
    prop_assert!(
        found == expected,
        "{transport:?}, {mode}: {}\n{program}",
        support::program::first_difference(&expected, &found)
    );
    Ok(())
}

fn cases() -> u32 {
    std::env::var("FENCEPOST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_500)
}

/// At least 10,000 epochs a run: 2,500 programs of four epochs each on average, each on both transports.
#[test]
fn every_program_does_what_the_reference_does() {
    let config = ProptestConfig {
        cases: cases(),
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let epochs = std::cell::Cell::new(0usize);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(raw_program(), any::<u64>()), |(raw, seed)| {
        epochs.set(epochs.get() + raw.epochs());
        agrees(&raw, TransportKind::Local, Mode::Auto)?;
        let sim = SimConfig { seed, ..SimConfig::default() };
        agrees(&raw, TransportKind::Sim(sim), Mode::ALL[(seed % 5) as usize])
    });
    println!("{} epochs, each on both transports", epochs.get());
    if let Err(error) = result {
        panic!("{error}");
    }
}
