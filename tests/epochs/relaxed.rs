//! Epochs in relaxed order. Each operation is applied to its elements exactly once, in some order,
//! and nothing else changes the elements.

use fencepost::transport::SimConfig;
use fencepost::{
    Census, ErrorClass, Machine, Mode, Op, Options, Order, Placement, Result, TransportKind, Window, ranks,
    superstep,
};
use fencepost_planner::ids::OperationId;
use fencepost_tests_reference as reference;
use fencepost_tests_support::cases::cases;
use fencepost_tests_worlds::play::{Variant, play, world};
use fencepost_tests_worlds::program::{Outcome, Program, RawProgram, raw_program};
use fencepost_tests_worlds::transports::transports;
use proptest::prelude::*;
use std::sync::Arc;

/// Checks that the reference allows the result of a run. Failures name the run `name`. If a program
/// has more orders than the reference tries, the program is not checked, and another one is drawn.
fn allowed(program: &Program, found: &Outcome, name: &str) -> std::result::Result<(), TestCaseError> {
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
        Ok(Some(difference)) => Err(TestCaseError::fail(format!("{name}: {difference:?}\n{program}"))),
        Err(error) if error.class() == ErrorClass::Arg => Err(TestCaseError::reject(error.to_string())),
        Err(error) => Err(TestCaseError::fail(format!("{name}: {error}\n{program}"))),
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
        let relaxed = |name: String| Variant { name, order: Order::Relaxed, ..Variant::default() };
        let mut variants = vec![
            relaxed("dynamic".into()),
            Variant { asks: Some(Mode::ALL[seed as usize % 5]), ..relaxed("dynamic in a mode".into()) },
        ];
        for mode in Mode::ALL {
            let options = Options { mode, coalesce: seed >> 3 & 1 == 0, ..Options::default() };
            let schedule = fencepost_planner::compile(&patterns, placement, &Machine::default(), &options)
                .map_err(|error| TestCaseError::fail(format!("{mode}: {error}\n{program}")))?;
            variants.push(Variant { prepared: vec![Some(Arc::new(schedule))], ..relaxed(mode.to_string()) });
        }
        let world =
            world(program.ranks, &transport, Census::ALL[(seed >> 4) as usize % 3], seed >> 9 & 1 == 1);
        let found = play(&program, &world, &variants)
            .map_err(|error| TestCaseError::fail(format!("{transport:?}: {error:?}\n{program}")))?;
        for (variant, found) in variants.iter().zip(&found) {
            allowed(&program, found, &format!("{transport:?}, {}", variant.name))?;
        }
    }
    Ok(())
}

#[test]
fn every_relaxed_epoch_leaves_what_the_reference_allows() {
    let config = ProptestConfig {
        cases: cases(120, 1_000) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(raw in raw_program(), seed in any::<u64>())| agrees(&raw, seed)?);
}

#[test]
fn ranks_that_differ_in_order_get_an_error_and_nothing_is_applied() -> Result<()> {
    for transport in transports([0]) {
        ranks(3).transport(transport).run(|world| {
            let mut u = world.window::<f64>(1)?;
            if world.rank() == 1 {
                world.set_order(Order::Relaxed);
            }
            u.accumulate([1.0], Op::Sum).to(0, 0)?;
            let error = u.fence().expect_err("rank 1 keeps no order");
            assert_eq!(error.class(), ErrorClass::RmaSync);
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

/// Every rank adds to the first element of rank 0.
#[superstep]
fn pour(u: &mut Window<f64>) -> Result<()> {
    u.accumulate(u.section(1..2), Op::Sum).to(0, 0)?;
    Ok(())
}

/// Lets three ranks add to the first element of rank 0 by `run`, and checks the sum.
fn poured(u: &mut Window<f64>, run: impl FnOnce(&mut Window<f64>) -> Result<()>) -> Result<()> {
    (u[0], u[1]) = (0.0, u.rank() as f64 + 1.0);
    run(u)?;
    assert_eq!(u[0], if u.rank() == 0 { 6.0 } else { 0.0 });
    Ok(())
}

#[test]
fn a_compiled_superstep_is_compiled_again_for_another_order_and_keeps_its_placement() -> Result<()> {
    let together = pour::compile(3, |_| Ok(()))?;
    for placement in [Placement::Together, Placement::Apart] {
        let kept = together.with(placement, &Machine::default(), &Options::default())?;
        let relaxed = kept.in_order(Order::Relaxed)?;
        let [one, other] = [&kept, &relaxed].map(|compiled| &compiled.schedules()[0]);
        assert_eq!((one.order, other.order), (Order::Canonical, Order::Relaxed));
        assert_eq!((one.placement, other.placement), (placement, placement));
        assert_eq!(relaxed.patterns()[0].order, Order::Relaxed);
        assert_ne!(one.digest(), other.digest());
        assert_eq!(relaxed.in_order(Order::Canonical)?.schedules(), kept.schedules());
    }
    Ok(())
}

#[test]
fn a_relaxed_plan_is_refused_where_order_is_kept_and_taken_where_it_is_not() -> Result<()> {
    let path = std::env::temp_dir().join(format!("fencepost-relaxed-{}.plan", std::process::id()));
    let sim = TransportKind::Sim(SimConfig::default());
    for (transport, placement) in [(TransportKind::Local, Placement::Together), (sim, Placement::Apart)] {
        let compiled = pour::compile(3, |_| Ok(()))?;
        let compiled = compiled.with(placement, &Machine::default(), &Options::default())?;
        compiled.in_order(Order::Relaxed)?.save(&path)?;
        let world = ranks(3).transport(transport);
        world.run(|world| {
            let mut u = world.window::<f64>(2)?;
            let error = pour::load(world, &path).expect_err("this world keeps order");
            assert_eq!(error.class(), ErrorClass::Plan, "{error}");
            assert!(error.to_string().contains("World::set_order"), "{error}");
            // One of the three ranks keeps the canonical order, so it refuses the plan for all
            // ranks.
            if world.rank() != 1 {
                world.set_order(Order::Relaxed);
            }
            let error = pour::load(world, &path).expect_err("rank 1 keeps order");
            assert_eq!(error.class(), ErrorClass::Plan, "{error}");
            assert!(world.rank() == 1 || error.to_string().contains("rank 1 refused"), "{error}");
            // No operation is lost.
            world.set_order(Order::Canonical);
            poured(&mut u, pour)?;
            world.set_order(Order::Relaxed);
            let mut loaded = pour::load(world, &path)?;
            poured(&mut u, |u| loaded.replay(u))?;
            // A prepared superstep keeps the order for which it was prepared, whatever order the
            // world has afterwards.
            world.set_order(Order::Canonical);
            poured(&mut u, |u| loaded.replay(u))?;
            world.barrier()
        })?;
        // The opposite case is accepted, since relaxed order allows the canonical order.
        compiled.save(&path)?;
        world.run(|world| {
            world.set_order(Order::Relaxed);
            let mut u = world.window::<f64>(2)?;
            let mut loaded = pour::load(world, &path)?;
            poured(&mut u, |u| loaded.replay(u))
        })?;
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn what_is_prepared_has_the_order_of_its_world() -> Result<()> {
    for order in [Order::Canonical, Order::Relaxed] {
        ranks(3).run(|world| {
            world.set_order(order);
            let mut u = world.window::<f64>(2)?;
            let mut prepared = pour::prepare(world)?;
            poured(&mut u, |u| prepared.replay(u))
        })?;
    }
    // If ranks have different orders, they get an error.
    ranks(3).run(|world| {
        if world.rank() == 2 {
            world.set_order(Order::Relaxed);
        }
        let error = pour::prepare(world).expect_err("rank 2 keeps no order");
        assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
        world.barrier()
    })
}
