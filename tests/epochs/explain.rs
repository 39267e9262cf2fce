//! `World::explain_last`: the decisions of the last epoch of any kind, and their reasons.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Mode, Op, Ranks, TransportKind, ranks};

fn told(ranks: Ranks, program: impl Fn(&World) -> Result<String> + Sync) -> Result<Vec<String>> {
    ranks.explain(true).collect(program)
}

fn apart() -> Ranks {
    ranks(2).transport(TransportKind::Sim(SimConfig { seed: 3, ..SimConfig::default() }))
}

/// Checks that the text contains all of these, on the same line or on different lines.
fn says(text: &str, all: &[&str]) {
    for one in all {
        assert!(text.contains(one), "`{one}` is not in\n{text}");
    }
}

#[test]
fn an_epoch_is_explained_by_its_lines_and_by_what_they_moved() -> Result<()> {
    let line = line!();
    let texts = told(ranks(3), |world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % 3);
        let mut u = world.window::<f64>(100)?;
        for at in 0..10 {
            u.put([at as f64]).to(next, at)?; // line + 6
        }
        u.accumulate(&[1.0; 4], Op::Sum).to(next, 20)?;
        u.accumulate(&[1.0; 4], Op::Sum).mode(Mode::Aggregated).to((me + 2) % 3, 20)?;
        u.get(50..51).from(next, 1)?;
        let _asked = u.fetch(next, 0..5)?;
        u.fence()?;
        Ok(world.explain_last())
    })?;
    for (rank, text) in texts.iter().enumerate() {
        let next = (rank + 1) % 3;
        let at = |below: u32| format!("explain.rs:{}: ", line + below);
        says(
            text,
            &[
                &format!("on rank {rank}: dynamic"),
                "sent: 0 messages, 0 bytes",
                &format!("{}10 x put, 10 elements of 8 bytes, auto with ranks {next} of window 0", at(5)),
                &format!("{}1 x accumulate SUM, 4 elements of 8 bytes, auto with ranks {next}", at(7)),
                &format!("{}1 x accumulate SUM, 4 elements of 8 bytes, aggregated", at(8)),
                &format!("{}1 x get with a section, 1 elements", at(9)),
                &format!("{}1 x get, 5 elements", at(10)),
            ],
        );
    }
    Ok(())
}

#[test]
fn direct_says_what_was_read_in_place_and_who_had_to_wait() -> Result<()> {
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        let run = |mode: Mode, into: usize| {
            told(ranks(2).transport(transport.clone()).mode(mode), move |world| {
                let mut u = world.window::<f64>(400_000)?;
                u.put(0..200_000).to(1 - world.rank(), into)?;
                u.fence()?;
                Ok(world.explain_last())
            })
        };
        for text in run(Mode::Direct, 200_000)?.iter().chain(&run(Mode::Auto, 200_000)?) {
            says(
                text,
                &["direct: 1 sections of 1600000 bytes", "a wait for the ranks that read this rank's memory"],
            );
        }
        says(&run(Mode::Auto, 200_000)?[0], &["auto: reading sections in place saves"]);
        for text in run(Mode::Direct, 100_000)? {
            says(&text, &["direct: 1 sections", "a wait for readers before anything was written"]);
        }
        for mode in [Mode::Aggressive, Mode::Aggregated, Mode::Pipelined] {
            let text = &run(mode, 200_000)?[0];
            assert!(!text.contains("direct:") && !text.contains("wait"), "{text}");
        }
        // A get of few bytes is copied directly if ranks share values, and staged otherwise.
        let get = |len: usize, written: bool| {
            told(ranks(2).transport(transport.clone()), move |world| {
                let mut u = world.window::<f64>(40_000)?;
                u.get(20_000..20_000 + len).from(1 - world.rank(), 0)?;
                if written {
                    u.put([1.0]).to(1 - world.rank(), 0)?;
                }
                u.fence()?;
                Ok(world.explain_last())
            })
        };
        says(&get(10_000, false)?[0], &["direct: gets were copied to their destination"]);
        says(&get(10_000, true)?[0], &["gets were staged", "before anything was written"]);
        let few = if matches!(transport, TransportKind::Local) { "direct: gets" } else { "gets were staged" };
        says(&get(10, false)?[0], &[few]);
    }
    Ok(())
}

#[test]
fn messages_are_counted_since_the_last_epoch_and_a_replay_is_called_one() -> Result<()> {
    told(apart(), |world| {
        let peer = 1 - world.rank();
        let mut u = world.window::<u32>(8)?;
        let mut texts = Vec::new();
        for round in 0..3 {
            u.put(&[round; 4]).to(peer, 2)?;
            u.fence()?;
            texts.push(world.explain_last());
        }
        says(&texts[0], &[": dynamic", "sent: 1 message", "auto: window 0 is aggregated"]);
        says(&texts[2], &[": replayed", "sent: 1 message", " 0 of them descriptions"]);
        u.put([9]).mode(Mode::Aggressive).to(peer, 0)?;
        u.fence()?;
        says(&world.explain_last(), &["sent: 2 messages", "early: 1 message", "aggressive with"]);
        Ok(String::new())
    })?;
    Ok(())
}

#[superstep]
fn shift(u: &mut Window<i64>, to: usize) -> Result<()> {
    u.put(0..2).to(to, 4)?;
    Ok(())
}

#[test]
fn a_prepared_superstep_is_explained_by_its_plan() -> Result<()> {
    for ranks in [ranks(2), apart()] {
        let texts = told(ranks, |world| {
            let mut u = world.window::<i64>(8)?;
            let mut shift = shift::prepare(world, 1 - world.rank())?;
            shift.replay(&mut u)?;
            Ok(world.explain_last())
        })?;
        says(
            &texts[0],
            &["superstep shift", ": prepared", "sends 1 message, 16 bytes, in 1 round", "explain.rs"],
        );
    }
    Ok(())
}

#[test]
fn more_ranks_than_cores_are_told_once() -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (size, told_once) in [(cores + 1, true), (cores, false)] {
        told(ranks(size), |world| {
            let mut u = world.window::<u8>(1)?;
            for time in 0..2 {
                u.fence()?;
                let said = world.explain_last().contains(&format!("cores: {size} ranks share {cores}"));
                assert_eq!(said, told_once && time == 0);
            }
            Ok(String::new())
        })?;
    }
    Ok(())
}

fn helper(u: &mut Window<i64>) -> Result<()> {
    u.put([1]).to(0, 0)
}

#[superstep]
fn helped(u: &mut Window<i64>) -> Result<()> {
    helper(u)
}

#[test]
fn a_superstep_that_cannot_be_compiled_says_which_line_made_it_so() -> Result<()> {
    let texts = told(ranks(2), |world| {
        let mut u = world.window::<i64>(1)?;
        helped(&mut u)?;
        Ok(world.explain_last())
    })?;
    says(
        &texts[0],
        &["superstep helped", ": dynamic", "not compiled ahead: line", "`helper(u)` hands the window"],
    );
    let texts = told(ranks(2), |world| {
        let mut u = world.window::<i64>(6)?;
        shift(&mut u, 0)?;
        Ok(world.explain_last())
    })?;
    assert!(!texts[0].contains("not compiled ahead"), "{}", texts[0]);
    Ok(())
}

#[test]
fn nothing_is_kept_unless_asked_for_and_the_explanation_says_so() -> Result<()> {
    ranks(1).run(|world| {
        world.window::<u8>(1)?.fence()?;
        says(&world.explain_last(), &["FENCEPOST_EXPLAIN=on"]);
        Ok(())
    })?;
    told(ranks(1), |world| {
        says(&world.explain_last(), &["no epoch has ended"]);
        Ok(String::new())
    })?;
    Ok(())
}
