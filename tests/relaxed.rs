//! Epochs in relaxed order: each element takes each of its operations exactly once, in some order, and nothing else.

mod support;

use fencepost::transport::SimConfig;
use fencepost::{Class, Machine, Mode, Op, Options, Order, Placement, Result, TransportKind, ranks};
use fencepost_planner::ids::OperationId;
use fencepost_planner::reference;
use proptest::prelude::*;
use std::sync::Arc;
use support::play::{Way, play};
use support::program::{Outcome, Program, RawProgram, raw_program};

fn allowed(program: &Program, found: &Outcome) -> std::result::Result<(), String> {
    let before = program.first();
    let after = reference::World {
        element: before.element.clone(),
        memory: found.memory.iter().map(|windows| windows.iter().cloned().collect()).collect(),
    };
    let landed: Vec<_> = found
        .tickets
        .iter()
        .map(|tickets| {
            tickets.iter().map(|((_, operation), bytes)| (OperationId(*operation), bytes.clone())).collect()
        })
        .collect();
    match reference::allows(&before, &program.law(0), &after, &landed) {
        Ok(None) => Ok(()),
        Ok(Some(difference)) => Err(format!("{difference:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn agrees(raw: &RawProgram, seed: u64) -> std::result::Result<(), TestCaseError> {
    let mut program = raw.program();
    program.epochs.truncate(1);
    let sim = TransportKind::Sim(SimConfig { seed, ..SimConfig::default() });
    let together = [TransportKind::Local, TransportKind::ShmThreads].map(|kind| (kind, Placement::Together));
    for (transport, placement) in together.into_iter().chain([(sim, Placement::Apart)]) {
        let patterns = fencepost_planner::ir::pattern::Patterns {
            order: Order::Relaxed,
            ..program.epochs[0].patterns(&program.windows)
        };
        let relaxed = |name: String| Way { name, order: Order::Relaxed, ..Way::default() };
        let mut ways = vec![
            relaxed("dynamic".into()),
            Way { asks: Some(Mode::ALL[seed as usize % 5]), ..relaxed("dynamic in a mode".into()) },
        ];
        for mode in Mode::ALL {
            let options = Options { mode, coalesce: seed >> 3 & 1 == 0, ..Options::default() };
            let schedule = fencepost_planner::compile(&patterns, placement, &Machine::default(), &options)
                .map_err(|error| TestCaseError::fail(format!("{mode}: {error}\n{program}")))?;
            ways.push(Way { prepared: vec![Some(Arc::new(schedule))], ..relaxed(mode.to_string()) });
        }
        let found = play(&program, &transport, &ways)
            .map_err(|error| TestCaseError::fail(format!("{transport:?}: {error:?}\n{program}")))?;
        for (way, found) in ways.iter().zip(&found) {
            if let Err(why) = allowed(&program, found) {
                return Err(TestCaseError::fail(format!("{transport:?}, {}: {why}\n{program}", way.name)));
            }
        }
    }
    Ok(())
}

#[test]
fn every_relaxed_epoch_leaves_what_the_reference_allows() {
    let config = ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(raw in raw_program(), seed in any::<u64>())| agrees(&raw, seed)?);
}

#[test]
fn ranks_that_differ_in_order_are_told_so_and_nothing_is_applied() -> Result<()> {
    let sim = TransportKind::Sim(SimConfig::default());
    for transport in [TransportKind::Local, TransportKind::ShmThreads, TransportKind::TcpThreads, sim] {
        ranks(3).transport(transport).run::<(), ()>(|world| {
            let mut u = world.window::<f64>(1)?;
            if world.rank() == 1 {
                world.set_order(Order::Relaxed);
            }
            u.accumulate([1.0], Op::Sum).to(0, 0)?;
            let error = u.fence().expect_err("rank 1 keeps no order");
            assert_eq!(error.class(), Class::RmaSync);
            assert!(error.to_string().contains("relaxed order"), "{error}");
            assert_eq!(u[0], 0.0);
            world.barrier()?;
            world.set_order(Order::Relaxed);
            u.accumulate([1.0], Op::Sum).to(0, 0)?;
            u.fence()?;
            assert_eq!(u[0], if world.rank() == 0 { 3.0 } else { 0.0 });
            Ok(())
        })?;
    }
    Ok(())
}
