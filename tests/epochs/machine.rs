//! One machine model, which is given once. All decisions of a world, and of everything that is
//! compiled, follow from this model.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Census, Compiled, Machine, Options, Order, Placement, Ranks, TransportKind, ranks};

#[superstep]
fn shift(u: &mut Window<f64>, to: usize) -> Result<()> {
    u.put(0..1000).to(to, 1000)
}

/// Returns a machine on which the network takes ten times as long.
fn slow() -> Machine {
    let mut machine = Machine::default();
    machine.network.latency *= 10.0;
    machine.network.overhead *= 10.0;
    machine.network.per_byte *= 10.0;
    machine
}

fn apart(size: usize) -> Ranks {
    ranks(size).transport(TransportKind::Sim(SimConfig { seed: 5, ..SimConfig::default() }))
}

mod compiled {
    use super::*;

    fn on(machine: &Machine, options: &Options) -> Compiled {
        let compiled = shift::compile(2, |rank| Ok(1 - rank)).expect("a superstep");
        compiled.with(Placement::Apart, machine, options).expect("a schedule")
    }

    fn again(compiled: &Compiled) -> [Compiled; 2] {
        [compiled.in_mode(Mode::Pipelined), compiled.in_order(Order::Relaxed)]
            .map(|again| again.expect("a schedule"))
    }

    #[test]
    fn predicted_is_for_the_machine_that_it_was_compiled_for() {
        let (fast, slow) = (on(&Machine::default(), &Options::default()), on(&slow(), &Options::default()));
        assert!(slow.predicted().0 > 5.0 * fast.predicted().0);
        assert!(fast.explain() != slow.explain(), "costs are told");
        for (fast, slow) in again(&fast).iter().zip(again(&slow)) {
            assert!(slow.predicted().0 > 5.0 * fast.predicted().0, "and stay");
        }
    }

    #[test]
    fn bound_is_for_the_machine_that_it_was_compiled_for() {
        let (fast, slow) = (on(&Machine::default(), &Options::default()), on(&slow(), &Options::default()));
        assert!(slow.bound().0 > 5.0 * fast.bound().0);
        for (fast, slow) in again(&fast).iter().zip(again(&slow)) {
            assert!(slow.bound().0 > 5.0 * fast.bound().0, "and stays");
        }
    }

    #[test]
    fn explain_is_for_the_machine_that_it_was_compiled_for() {
        let slow = on(&slow(), &Options::default());
        for compiled in [&slow].into_iter().chain(&again(&slow)) {
            let predicted = format!("predicted {:.2} us", compiled.predicted().0 / 1e3);
            assert!(
                compiled.explain().to_string().contains(&predicted),
                "{predicted} is not in\n{}",
                compiled.explain()
            );
        }
    }

    #[test]
    fn another_mode_or_order_keeps_all_other_options() {
        let default = Options::default();
        let options = Options { chunk: Some(fencepost_planner::units::Bytes(800)), ..default };
        let [few, many] = [&default, &options].map(|options| on(&slow(), options).in_mode(Mode::Pipelined));
        let [few, many] = [few, many].map(|compiled| compiled.expect("a schedule"));
        assert_ne!(few.schedules()[0].digest(), many.schedules()[0].digest(), "pieces of 800 bytes");
        let mode = Options { mode: Mode::Pipelined, ..options };
        assert_eq!(many.schedules(), on(&slow(), &mode).schedules());
        let relaxed = many.in_order(Order::Relaxed).expect("a schedule");
        assert_eq!(relaxed.in_order(Order::Canonical).expect("a schedule").schedules(), many.schedules());
    }
}

mod world {
    use super::*;

    #[test]
    fn a_prepared_superstep_is_planned_and_told_by_its_machine() -> Result<()> {
        let told = |world: Ranks| -> Result<Vec<[String; 2]>> {
            world.explain(true).collect(|world| {
                let mut u = world.window::<f64>(2000)?;
                let mut planned = shift::prepare(world, 1 - world.rank())?;
                planned.replay(&mut u)?;
                Ok([planned.explain().to_string(), world.explain_last()])
            })
        };
        let [fast, slow] = [told(apart(2))?, told(apart(2).machine(slow()))?];
        assert!(fast[0][0] != slow[0][0] && fast[0][1] != slow[0][1], "{fast:?}\n{slow:?}");
        let compiled = shift::compile(2, |rank| Ok(1 - rank))?;
        let compiled = compiled.with(Placement::Apart, &super::slow(), &Options::default())?;
        assert_eq!(compiled.explain().to_string(), slow[0][0]);
        Ok(())
    }

    #[test]
    fn a_dynamic_epoch_copies_sections_that_are_dear_to_read_in_place() -> Result<()> {
        let mut dear = Machine::default();
        dear.moving.remote = 1.0;
        for (machine, in_place) in [(Machine::default(), true), (dear, false)] {
            let texts: Vec<String> = ranks(2).machine(machine).explain(true).collect(|world| {
                // A part of a world has the machine of that world.
                let part = world.split(Some(0), 0)?.expect("this rank takes part");
                let mut u = part.window::<f64>(400_000)?;
                u.put(0..200_000).to(1 - part.rank(), 200_000)?;
                u.fence()?;
                Ok(part.explain_last())
            })?;
            assert_eq!(texts[0].contains("direct: 1 sections"), in_place, "{}", texts[0]);
        }
        Ok(())
    }

    #[test]
    fn a_dynamic_epoch_predicts_pieces_by_its_machine() -> Result<()> {
        // Either frames cost nothing, or they cost so much that two are never better than one.
        for (overhead, pieces) in [(0.0, true), (1e9, false)] {
            let mut machine = Machine::default();
            (machine.network.overhead, machine.network.further) = (overhead, overhead);
            let texts: Vec<String> = apart(2).machine(machine).explain(true).collect(|world| {
                let mut u = world.window::<u64>(100_000)?;
                let values = vec![1u64; 50_000];
                for epoch in 0..5 {
                    u.put(&values[..40_000 + epoch]).to(1 - world.rank(), epoch)?;
                    u.fence()?;
                }
                Ok(world.explain_last())
            })?;
            assert_eq!(texts[0].contains("is pipelined in pieces"), pieces, "{}", texts[0]);
        }
        Ok(())
    }

    #[test]
    fn collectives_choose_their_algorithm_by_the_machine() -> Result<()> {
        let messages = |census: Census, latency: f64, per_byte: f64| -> Result<Vec<u64>> {
            let mut machine = Machine::default();
            (machine.network.latency, machine.network.per_byte) = (latency, per_byte);
            apart(8).machine(machine).census(census).collect(|world| {
                let mut values = vec![world.rank() as f64; 2000];
                world.allreduce(&mut values, Op::Sum)?;
                assert!(values.iter().all(|value| *value == 28.0));
                let before = world.traffic().messages;
                world.allreduce(&mut values, Op::Sum)?;
                Ok(world.traffic().messages - before)
            })
        };
        assert_eq!(
            messages(Census::Direct, 1e9, 0.0)?,
            [7; 8],
            "all elements to all, in the one exchange that there is anyway"
        );
        assert_eq!(messages(Census::Sparse, 1e9, 0.0)?, [0; 8], "all elements with the census");
        for census in Census::ALL {
            assert_eq!(messages(census, 0.0, 1e3)?, [14; 8], "each element twice, in blocks");
        }
        Ok(())
    }
}

mod measured {
    use super::*;
    use fencepost::Nanos;
    use fencepost::grid::Block;
    use fencepost_tests_worlds::transports::transports;
    use std::time::Duration;

    #[test]
    fn all_ranks_get_the_same_figures_over_every_transport() -> Result<()> {
        for transport in transports([3]) {
            for size in [1, 4] {
                if matches!(transport, TransportKind::MixedThreads(_)) && size == 1 {
                    continue;
                }
                let of_ranks = ranks(size).transport(transport.clone()).collect(|world| {
                    let measured = world.measure_machine()?;
                    // The world goes on.
                    let mut u = world.window::<u64>(1)?;
                    u.accumulate([1], Op::Sum).to(0, 0)?;
                    u.fence()?;
                    Ok((measured, world.placement(), u[0]))
                })?;
                let (machine, placement, count) = of_ranks[0];
                assert!(of_ranks.iter().all(|(other, ..)| *other == machine), "{transport:?}: {of_ranks:?}");
                assert_eq!(machine.to_string().parse::<Machine>()?, machine, "{transport:?}");
                assert_eq!(count, size as u64);
                let default = Machine::default();
                let (apart, together) = (placement == Placement::Apart, placement == Placement::Together);
                assert_eq!(
                    machine.network == default.network,
                    together || size == 1,
                    "{transport:?}, {size}: {machine}"
                );
                assert_eq!(
                    machine.shared == default.shared,
                    apart || size == 1,
                    "{transport:?}, {size}: {machine}"
                );
                assert_eq!(machine.moving == default.moving, size == 1, "{transport:?}, {size}: {machine}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_link_takes_no_less_than_its_latency_and_deep_halos_are_advised() -> Result<()> {
        let late = |latency| TransportKind::Sim(SimConfig { latency, ..SimConfig::default() });
        let latency = Duration::from_millis(2);
        let measured = ranks(2).transport(late(latency)).collect(|world| {
            let machine = world.measure_machine()?;
            let block = Block::new(world, [64, 64])?.halo(1)?;
            Ok((machine, block.advise(Nanos(1.0), 8, 16, world.placement(), &machine)?.steps()))
        })?;
        let (machine, steps) = measured[0];
        let message = machine.network.latency + 2.0 * machine.network.overhead;
        assert!(message > 0.9 * latency.as_nanos() as f64, "{machine}");
        assert!(steps >= 16, "{steps}: {machine}");
        Ok(())
    }
}
