//! Tests of the traces that ranks record. In these tests the clocks of hosts differ, a world has
//! only some of the ranks, or a program fails.

use crate::record::{ProfileTo, Recording, Records};
use crate::state::registry::{Registry, new_world};
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_planner::trace::{Clock, Frame, Trace, What};
use fencepost_transport::clock::shifted;
use fencepost_transport::{Leave, Topology};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Runs a program on ranks of these hosts, and returns the traces of all ranks. The clock of each
/// host is wrong by the value of `shift`.
fn traced(
    hosts: &[u32],
    shift: impl Fn(u32) -> u64 + Sync,
    folder: &Path,
    program: impl Fn(&World) -> Result<()> + Sync,
) -> Vec<Trace> {
    let kind = TransportKind::MixedThreads(hosts.to_vec());
    let (registry, id) = (Arc::new(Registry::default()), new_world());
    let records = Records { profile: ProfileTo::Nowhere, trace: Some(folder.to_path_buf()) };
    std::thread::scope(|scope| {
        for (endpoint, host) in kind.ends(hosts.len()).unwrap().into_iter().zip(hosts) {
            let (kind, registry, records, program, shift) = (&kind, &registry, &records, &program, &shift);
            scope.spawn(move || {
                shifted::set(shift(*host));
                let modes = (Mode::default(), None);
                let world = World::new(
                    (id, hosts.len()),
                    endpoint,
                    registry.clone(),
                    kind.clone(),
                    Machine::default(),
                    modes,
                );
                let recording = Recording::begin(&world, records, 1).unwrap().unwrap();
                program(&world).unwrap();
                let recorded = recording.end(&world, true);
                world.leave(Leave::Finished);
                recorded.write();
            });
        }
    });
    let trace = |rank: usize| {
        let text = std::fs::read_to_string(folder.join(format!("run1-rank{rank}.trace"))).unwrap();
        text.parse::<Trace>().unwrap()
    };
    (0..hosts.len()).map(trace).collect()
}

/// Puts elements into the next rank's part of a window 50 times. Does so in the world, and then in
/// a world of half the ranks.
fn puts(world: &World) -> Result<()> {
    let put = |world: &World| -> Result<()> {
        let mut u = world.window::<u64>(64)?;
        for round in 0..50 {
            u.put(&[round; 32][..]).to((world.rank() + 1) % world.size(), 0)?;
            u.fence()?;
        }
        Ok(())
    };
    put(world)?;
    let half = world.split(Some(world.rank() as u32 % 2), 0)?;
    half.as_ref().map_or(Ok(()), put)
}

#[test]
fn clocks_of_hosts_are_compared_however_wrong_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |host: u32| [0, 1 << 62, u64::MAX - (1 << 50)][host as usize];
    let traces = traced(&[0, 1, 0, 2], wrong, folder.path(), puts);
    let mut clocks: HashMap<u32, Clock> = HashMap::new();
    for trace in &traces {
        if let Some(clock) = Clock::of(&trace.clock) {
            clocks.insert(trace.host, clock);
        }
    }
    assert_eq!(clocks.len(), 3, "one clock for each host");
    let mut sent: HashMap<(u32, u32, Frame), f64> = HashMap::new();
    let (mut within, mut between) = (0, 0);
    for trace in &traces {
        for event in &trace.events {
            if let What::Sent { to, frame, .. } = event.what {
                let at = clocks[&trace.host].nanos(event.at);
                assert!(sent.insert((trace.rank, to, frame), at).is_none(), "{event:?}: twice");
            }
        }
    }
    for trace in &traces {
        assert_eq!(trace.lost, 0);
        let posted = trace.events.iter().fold((0, 0), |sum, event| match event.what {
            What::Sent { bytes, .. } => (sum.0 + 1, sum.1 + bytes),
            _ => sum,
        });
        assert_eq!(posted, trace.sent, "rank {}", trace.rank);
        for event in &trace.events {
            let What::Received { from, frame } = event.what else { continue };
            let began = sent[&(from, trace.rank, frame)];
            let took = clocks[&trace.host].nanos(event.at) - began;
            if traces[from as usize].host == trace.host {
                within += 1;
                assert!(took >= 0.0, "{event:?}: {took}");
            } else {
                between += 1;
                // Rank 0 compares clocks by round trips, and here even the quickest round trip may
                // take long.
                assert!((-5e6..1e10).contains(&took), "{event:?}: {took}");
            }
        }
    }
    assert!(within > 5 && between > 100, "{within} frames within hosts, {between} between them");
    let parts = traces[0].events.iter().filter_map(|event| match event.what {
        What::Sent { frame, .. } => Some(frame.world),
        _ => None,
    });
    assert_eq!(parts.collect::<std::collections::BTreeSet<_>>().len(), 2, "of all ranks, and of a part");
}

#[test]
fn a_trace_is_written_by_a_rank_whose_program_fails() {
    let folder = tempfile::tempdir().unwrap();
    let records = Records { profile: ProfileTo::Printed, trace: Some(folder.path().to_path_buf()) };
    let endpoint = TransportKind::Local.ends(1).unwrap().remove(0);
    assert_eq!(endpoint.rank(), 0);
    let modes = (Mode::default(), None);
    let world = World::new(
        (new_world(), 1),
        endpoint,
        Arc::default(),
        TransportKind::Local,
        Machine::default(),
        modes,
    );
    let recording = Recording::begin(&world, &records, 1).unwrap().unwrap();
    world.barrier().unwrap();
    recording.end(&world, false).write();
    let text = std::fs::read_to_string(folder.path().join("run1-rank0.trace")).unwrap();
    let trace: Trace = text.parse().unwrap();
    assert_eq!((trace.rank, trace.ranks, trace.clock.len()), (0, 1, 2));
    assert!(trace.calls.iter().any(|call| call.starts_with("World::barrier (")), "{:?}", trace.calls);
}
