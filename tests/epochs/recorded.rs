//! Tests the rows of `Ranks::profile` for each kind of call. The sums of these rows equal the sums
//! of the meters.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Op, TransportKind, ranks};
use std::collections::BTreeMap;

/// Puts elements into the next rank's part.
#[superstep]
fn pass(u: &mut Window<f64>, next: usize) -> Result<()> {
    u.put(0..4).to(next, 4)
}

/// Puts elements in two epochs.
#[superstep]
fn twice(u: &mut Window<f64>, next: usize) -> Result<()> {
    u.put(0..1).to(next, 4)?;
    u.fence()?;
    u.put(1..2).to(next, 5)?;
    u.fence()
}

/// Puts values, so its body runs each time.
#[superstep]
fn values(u: &mut Window<f64>, next: usize, given: &[f64]) -> Result<()> {
    u.put(given).to(next, 0)
}

/// Runs supersteps, fences and collectives, also in a part of the world. Returns the numbers of
/// frames and bytes that this rank has posted.
fn program(world: &World) -> Result<[u64; 2]> {
    let next = (world.rank() + 1) % world.size();
    let mut u = world.window::<f64>(8)?;
    let mut exchange = pass::prepare(world, next)?;
    let mut double = twice::prepare(world, next)?;
    let mut given = values::prepare(world, next, &[1.0])?;
    for round in 0..10 {
        exchange.replay(&mut u)?;
        double.replay(&mut u)?;
        given.run(&mut u, next, &[f64::from(round)])?;
        u.put([1.0]).to(next, 0)?;
        u.fence()?;
        world.allreduce_one(1, Op::Sum)?;
    }
    for _ in 0..5 {
        u = exchange.begin(u)?.finish()?;
        u = double.begin(u)?.finish()?;
    }
    world.message(next, 3).send([1_u8; 3])?;
    world.recv::<u8>(None, 3)?;
    let part = world.split(Some(world.rank() as u32 / 2), 0)?;
    let posted = part.map_or(Ok(Default::default()), |part| {
        let mut v = part.window::<f64>(1)?;
        v.put([1.0]).to(0, 0)?;
        v.fence()?;
        drop(v);
        Ok::<_, Error>(part.meter().total())
    })?;
    drop(u);
    let own = world.meter().total();
    Ok([own.frames + posted.frames, own.bytes + posted.bytes])
}

/// Returns the number at `key` of a line of JSON.
fn number(line: &str, key: &str) -> Option<f64> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    rest.split([',', '}']).next()?.parse().ok()
}

#[test]
fn a_profile_has_each_call_with_its_runs_and_the_sums_of_the_meters() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, transport) in [
        ("sim", TransportKind::Sim(SimConfig { seed: 5, ..SimConfig::default() })),
        ("local", TransportKind::Local),
    ] {
        let file = folder.path().join(name);
        let posted = ranks(3).transport(transport).profile(Some(file.clone())).collect(program)?;
        let text = std::fs::read_to_string(&file).expect("a profile");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("\"ranks\":3") && lines[0].contains("\"missing\":[]"), "{}", lines[0]);
        for (at, key) in ["messages", "bytes"].into_iter().enumerate() {
            let sum: f64 = lines.iter().filter_map(|line| number(line, key)).sum();
            let all: u64 = posted.iter().map(|posted| posted[at]).sum();
            assert_eq!(sum as u64, all, "{key} over {name}:\n{text}");
        }
        let mut runs: BTreeMap<&str, Vec<(u64, bool)>> = BTreeMap::new();
        for line in &lines[1..] {
            let call =
                line.split_once("\"call\":\"").and_then(|(_, rest)| rest.split_once(" (")).map(|both| both.0);
            let entry = (number(line, "runs").expect("runs") as u64, line.contains("\"predicted\""));
            runs.entry(call.unwrap_or("another")).or_default().push(entry);
            let time = |key: &str| number(line, key).unwrap_or(0.0);
            assert!(time("mean") <= time("total") + 1.0, "{line}");
            let slowest = line.split_once("\"slowest\":{\"ns\":").and_then(|(_, rest)| rest.split_once(','));
            let slowest: f64 = slowest.expect("the slowest run").0.parse().expect("a number");
            assert!(slowest + 2.0 >= time("mean"), "no run is slower than the slowest: {line}");
        }
        let of = |call: &str| {
            let mut all: Vec<(u64, bool)> =
                runs[call].iter().copied().filter(|(runs, _)| *runs > 0).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of("superstep pass"), [(5, true), (10, true)], "in halves, and as a whole:\n{text}");
        assert_eq!(of("superstep twice"), [(5, true), (10, true)], "both epochs are one run:\n{text}");
        assert!(of("superstep values").contains(&(10, true)), "its body has run each time:\n{text}");
        assert_eq!(of("World::allreduce"), [(10, false)], "{text}");
    }
    Ok(())
}
