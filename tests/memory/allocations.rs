//! Counts the frames and the allocations of an unchanged superstep that has run before.
//!
//! Allocations are counted by this program's allocator, for each thread and so for each rank.
//! Frames are counted when the transport accepts them ([`World::meter`]). On `sim`, a rank's thread
//! also serves its ends of the links. The queue of a link still grows when the link holds more
//! bytes than ever before, which depends on the seed. So on `sim`, less than one allocation in ten
//! epochs is allowed. An allocation of the epoch itself would occur at least once an epoch.

use fencepost::grid::Block;
use fencepost::transport::{Count, Meter};
use fencepost::{
    Check, Datatype, EpochKind, Mode, Op, Placement, Result, TransportKind, Window, World, ranks, superstep,
};
use fencepost_tests_support::counting;
use fencepost_tests_worlds::transports::{sim, transports};

/// Kinds of frames, as the meter counts them.
const DATA: u32 = 1;
const REPLY: u32 = 2;
const ENTRY: u32 = 8;
pub const PAYLOAD: u32 = 9;
const DONE: u32 = 10;

/// Returns the number of allocations of this rank while `f` runs.
pub fn allocations(f: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = counting::allocations();
    f()?;
    Ok(counting::allocations() - before)
}

/// Returns the largest number of allocations that `epochs` repeated epochs may make.
pub fn allowed(transport: &TransportKind, epochs: u64) -> u64 {
    match transport {
        TransportKind::Local => 0,
        _ => epochs / 10,
    }
}

pub fn difference(before: &Meter, after: &Meter, kind: u32) -> Count {
    let (before, after) = (before.of(kind), after.of(kind));
    Count { frames: after.frames - before.frames, bytes: after.bytes - before.bytes }
}

#[test]
fn the_counter_counts() {
    let counted = allocations(|| {
        drop(std::hint::black_box(vec![1_u8; 100]));
        Ok(())
    });
    assert_eq!(counted.unwrap(), 1);
}

/// Every kind of operation that an epoch can contain, except gets with tickets: the caller
/// allocates tickets.
struct Everything {
    column: Datatype,
    scattered: Datatype,
    values: Vec<f64>,
}

impl Everything {
    fn new() -> Self {
        Self {
            column: Datatype::nest(1, &[(8, 8)], 1).unwrap(),
            scattered: Datatype::elements([5, 60, 2, 33, 34, 35, 7, 11]).unwrap(),
            values: (0..8).map(f64::from).collect(),
        }
    }

    fn call(&self, u: &Window<f64>, v: &Window<u32>, w: &Window<f64>, round: usize) -> Result<()> {
        let (rank, size) = (u.rank(), u.size());
        let right = (rank + 1) % size;
        for i in 0..40 {
            u.put([(round * i) as f64]).to(i % size, i)?;
            v.accumulate([i as u32], Op::Sum).to((i + rank) % size, i % 7)?;
        }
        u.put(&self.values).to(right, &self.column)?;
        u.put(&self.scattered).to(right, 48..56)?;
        u.accumulate(w.section(&self.column), Op::Max).to(right, &self.scattered)?;
        w.get(0..8).from(right, &self.scattered)?;
        w.get(u.section(16..17)).from(right, 3)?;
        w.get(20..21).from(rank, 3)?;
        v.put([1]).to(None, 0)?;
        Ok(())
    }
}

#[test]
fn an_unchanged_dynamic_epoch_does_not_allocate() {
    const EPOCHS: u64 = 400;
    for transport in transports([3]) {
        let counts: Vec<[u64; 3]> = ranks(3)
            .transport(transport.clone())
            .collect(|world| {
                let (mut u, mut v, mut w) = (world.window(64)?, world.window(7)?, world.window(64)?);
                let calls = Everything::new();
                let mut several = |epochs: u64| {
                    (0..epochs).try_for_each(|epoch| {
                        calls.call(&u, &v, &w, epoch as usize)?;
                        world.fence((&mut u, &mut v, &mut w))
                    })
                };
                several(EPOCHS)?;
                let several = allocations(|| several(EPOCHS))?;
                let mut single = |epochs: u64| {
                    (0..epochs).try_for_each(|_| {
                        u.put([1.0]).to(world.size() - 1, 2)?;
                        u.get(0..1).from(world.size() - 1, 2)?;
                        u.fence()
                    })
                };
                single(EPOCHS)?;
                let single = allocations(|| single(EPOCHS))?;
                let mut seen = [0.0; 4];
                let mut scoped = |epochs: u64| {
                    (0..epochs).try_for_each(|_| {
                        u.epoch(|epoch| epoch.fetch_into(0, 4..8, &mut seen))?;
                        world.barrier()
                    })
                };
                scoped(EPOCHS)?;
                let scoped = allocations(|| scoped(EPOCHS))?;
                Ok([several, single, scoped])
            })
            .unwrap();
        for counts in &counts {
            let allowed = allowed(&transport, EPOCHS);
            assert!(counts.iter().all(|count| *count <= allowed), "{transport:?}: {counts:?}");
        }
    }
}

/// The operations of the epochs of [`fresh`].
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fresh {
    /// Puts and sums of one element, and gets into sections and buffers.
    Small,
    /// Slices, parts of slices and sections, with columns and lists.
    Wide,
    /// The operations of `Wide`, but sections are read in place, and gets read elements that other
    /// operations write.
    Direct,
}

/// The calls of one rank in an epoch. Each epoch has the same number of calls, with different
/// positions and values.
struct Calls<'a> {
    world: &'a World,
    datatypes: &'a [[Datatype; 3]],
    values: &'a [f64],
    turn: usize,
}

impl Calls<'_> {
    fn call(&self, what: Fresh, u: &Window<f64>, v: &Window<f64>) -> Result<()> {
        let Calls { world, datatypes, values, turn } = *self;
        let (rank, size) = (world.rank(), world.size());
        let (right, at) = ((rank + 1) % size, 7 * turn % 40);
        let [column, list, part] = &datatypes[turn % datatypes.len()];
        match what {
            Fresh::Small => {
                for i in 0..30 {
                    u.put([(turn * i) as f64]).to(i % size, (at + i) % 64)?;
                    u.put(i..i + 1).to((i + 1) % size, (at + i) % 64)?;
                    v.accumulate([turn as f64], Op::Sum).to((i + rank) % size, (at + 3 * i) % 64)?;
                    v.get(i..i + 1).from((i + rank) % size, (at + i) % 64)?;
                }
            }
            Fresh::Wide => {
                u.put(&values[at..at + 8]).to(right, column)?;
                u.put((values, part)).to(right, at)?;
                u.put(list).to(right, at..at + 8)?;
                v.accumulate(u.section(column), Op::Max).to(right, list)?;
                v.get(at..at + 8).from(right, list)?;
                v.get(u.section(list)).from(right, column)?;
            }
            Fresh::Direct => {
                u.put(at..at + 16).to(right, at + 4)?;
                v.put(u.section(list)).to(right, column)?;
                v.get(at..at + 8).from(right, at + 2)?;
            }
        }
        Ok(())
    }
}

#[test]
fn a_dynamic_epoch_that_is_another_each_time_does_not_allocate_after_its_third_turn() {
    const EPOCHS: usize = 400;
    let values: Vec<f64> = (0..64).map(f64::from).collect();
    for transport in transports([3]) {
        // A list that arrives in a frame takes one allocation, for pieces that the description of
        // the frame shares. So lists are tested on `local` only.
        let lists = matches!(transport, TransportKind::Local);
        let datatypes: Vec<[Datatype; 3]> = (0..8)
            .map(|i| {
                let list = [5, 60, 2, 33, 34, 35, 7, 11].map(|at| (at + 5 * i) % 64);
                let list = if lists {
                    Datatype::elements(list).unwrap()
                } else {
                    Datatype::nest(56 + i, &[(8, -6)], 1).unwrap()
                };
                [Datatype::nest(i, &[(8, 7)], 1).unwrap(), list, Datatype::nest(i, &[(4, 9)], 2).unwrap()]
            })
            .collect();
        // Operations that travel in frames are never direct.
        let reached = matches!(transport, TransportKind::Local | TransportKind::ShmThreads);
        let all = [Fresh::Small, Fresh::Wide, Fresh::Direct];
        for what in all.into_iter().filter(|what| reached || *what != Fresh::Direct) {
            let counts: Vec<u64> = ranks(4)
                .transport(transport.clone())
                .collect(|world| {
                    let (mut u, mut v) = (world.window(64)?, world.window(64)?);
                    if what == Fresh::Direct {
                        u.set_mode(Mode::Direct);
                        v.set_mode(Mode::Direct);
                    }
                    let (mut turn, mut seen) = (0, [0.0; 8]);
                    let mut some = |epochs: usize| {
                        (0..epochs).try_for_each(|_| {
                            turn += 1;
                            let fresh = Calls { world, datatypes: &datatypes, values: &values, turn };
                            fresh.call(what, &u, &v)?;
                            world.fence((&mut u, &mut v))?;
                            let other = (world.rank() + turn) % 4;
                            u.epoch(|epoch| {
                                let (one, more) = seen.split_at_mut(1);
                                epoch.fetch_into(other, turn % 64, one)?;
                                epoch.fetch_into(other, turn % 57, more)
                            })
                        })
                    };
                    some(3)?;
                    allocations(|| some(EPOCHS))
                })
                .unwrap();
            // The largest number of bytes in a link depends on when the peers read. An allocation
            // of the epoch itself would occur in each epoch.
            let allowed = if reached { allowed(&transport, EPOCHS as u64) } else { EPOCHS as u64 / 2 };
            assert!(counts.iter().all(|count| *count <= allowed), "{what:?} on {transport:?}: {counts:?}");
        }
    }
}

#[test]
fn a_replayed_epoch_sends_values_and_no_descriptions() {
    ranks(3)
        .transport(sim(5))
        .run(|world| {
            let mut u = world.window::<u64>(32)?;
            let rank = world.rank();
            let others: Vec<usize> = (0..3).filter(|&other| other != rank).collect();
            let mut sent = Vec::new();
            for round in 0..5 {
                let (before, described) = (world.meter(), world.traffic().described);
                for i in 0..10 {
                    u.put([i * round]).to(others[i as usize % 2], i as usize)?;
                }
                u.put(&[round; 6]).to(others[0], 20..26)?;
                u.get(30..32).from((rank + 1) % 3, 10..12)?;
                u.fence()?;
                let after = world.meter();
                assert_eq!(after.exchanges, before.exchanges + 1, "one synchronisation of the world");
                sent.push([DATA, REPLY].map(|kind| difference(&before, &after, kind)));
                let first = round == 0;
                assert_eq!(world.traffic().described == described, !first);
                let kind = if first { EpochKind::Dynamic } else { EpochKind::Replayed };
                assert_eq!(world.last_epoch(), kind, "rank {rank}, round {round}");
            }
            // One frame to each of two ranks, each with a header of 24 bytes. Together they have
            // eight bytes for each of 11 calls that put, and six elements of one put.
            let data = Count { frames: 2, bytes: 2 * 24 + 11 * 8 + 6 * 8 };
            assert!(sent[0][0].bytes > data.bytes + 11 * 8, "the first describes: {sent:?}");
            for sent in &sent[1..] {
                // The answer to one get of two elements.
                assert_eq!(sent[..], [data, Count { frames: 1, bytes: 16 }]);
            }
            Ok(())
        })
        .unwrap();
}

/// The calls of rank 0 in addition to the calls of all ranks.
type Extra = fn(&Window<u32>) -> Result<()>;

fn to_rank_2(u: &Window<u32>) -> Result<()> {
    u.put([7]).to(2, 5)
}

#[test]
fn a_changed_pattern_is_noticed_on_every_rank() {
    // Each line is a different pattern of rank 0. Every pattern is tried after every other pattern.
    let patterns: [(&str, Extra); 9] = [
        ("nothing more", |_| Ok(())),
        ("rank 2 gains a sender", to_rank_2),
        ("another element", |u| u.put([7]).to(2, 6)),
        ("another target", |u| u.put([7]).to(3, 5)),
        ("an operator", |u| u.accumulate([7], Op::Sum).to(2, 5)),
        ("another operator", |u| u.accumulate([7], Op::Max).to(2, 5)),
        ("twice", |u| to_rank_2(u).and_then(|()| to_rank_2(u))),
        ("a datatype", |u| u.put(&[7, 8]).to(2, Datatype::elements([4, 2]).unwrap())),
        ("a get", |u| u.get(0..1).from(2, 5)),
    ];
    // On the last transport no epoch is replayed, because rank 0 reaches the memory of rank 2.
    let hosts = |hosts: [u32; 4]| TransportKind::MixedThreads(hosts.into());
    for (transport, tells) in [(sim(9), true), (hosts([0, 1, 2, 3]), true), (hosts([0, 1, 0, 1]), false)] {
        let kind = |same: bool| if same && tells { EpochKind::Replayed } else { EpochKind::Dynamic };
        ranks(4)
            .transport(transport)
            .run(|world| {
                let mut u = world.window::<u32>(8)?;
                // Fences that are called at different source lines have different histories. All
                // fences here are called at one line, so that they share one history.
                let mut epoch = |extra: Extra, values: u32| {
                    u.put([values]).to((world.rank() + 1) % 4, 0)?;
                    if world.rank() == 0 {
                        extra(&u)?;
                    }
                    u.fence()
                };
                for (before, first) in patterns {
                    for (after, second) in patterns {
                        for round in 0..2 {
                            epoch(first, round)?;
                        }
                        assert_eq!(world.last_epoch(), kind(true), "{before}, twice");
                        epoch(second, 7)?;
                        let (rank, kind) = (world.rank(), kind(before == after));
                        assert_eq!(world.last_epoch(), kind, "rank {rank}: {after} after {before}");
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

#[superstep]
fn mixed(u: &mut Window<f64>, v: &mut Window<f64>, values: &[f64]) -> Result<()> {
    let right = (u.rank() + 1) % u.size();
    u.put(values).to(right, 0)?;
    u.accumulate(v.section(0..2), Op::Sum).to(right, 6..8)?;
    v.get(4..6).from(right, 2..4)?;
    u.put(&[values[0]]).to(right, 5)?;
    Ok(())
}

/// Returns the frames that one rank's program sends: entries, data and dones.
fn planned(schedule: &fencepost_planner::ir::schedule::Schedule, rank: usize) -> [Count; 3] {
    use fencepost_planner::ir::schedule::Instruction;
    let mut counts = [Count::default(); 3];
    for instruction in &schedule.classes[schedule.class_of[rank]].instructions {
        let (which, bytes) = match instruction {
            Instruction::Expose { .. } => (0, 0),
            Instruction::Send { bytes, .. } => (1, *bytes),
            Instruction::Done { .. } => (2, 0),
            _ => continue,
        };
        counts[which].frames += 1;
        counts[which].bytes += bytes;
    }
    counts
}

#[test]
fn a_section_that_is_reached_is_read_in_place_and_in_no_frame() {
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        ranks(2)
            .transport(transport.clone())
            .run(|world| {
                const N: usize = 1 << 16;
                let mut u = world.window::<u64>(2 * N)?;
                for round in 0..4 {
                    u[..N].fill(2 * round + world.rank() as u64);
                    let before = world.meter();
                    u.put(0..N).to(1 - world.rank(), N)?;
                    u.fence()?;
                    let after = world.meter();
                    assert!(u[N..].iter().all(|&value| value == 2 * round + 1 - world.rank() as u64));
                    let sent = after.total().bytes - before.total().bytes;
                    assert!(sent <= 128, "{transport:?}, round {round}: {sent} bytes of frames");
                    assert_eq!(after.settles - before.settles, 1, "its readers say when they have read it");
                    u.get(N..2 * N).from(1 - world.rank(), 0)?;
                    u.fence()?;
                    let sent = world.meter().total().bytes - after.total().bytes;
                    assert!(sent <= 128, "{transport:?}, round {round}: {sent} bytes of frames for a get");
                }
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_prepared_superstep_sends_its_data_frames_and_nothing_else() {
    let together = [TransportKind::Local, TransportKind::ShmThreads].map(|kind| (kind, Placement::Together));
    for (transport, placement) in together.into_iter().chain([(sim(1), Placement::Apart)]) {
        let compiled = exchange::compile(6, |rank| Block::at(rank, 6, [12, 9])?.halo(1)).unwrap();
        let compiled = compiled.with(placement, &Default::default(), &Default::default()).unwrap();
        ranks(6)
            .transport(transport)
            .run(|world| {
                let block = Block::new(world, [12, 9])?.halo(1)?;
                let mut u = world.window::<f64>(block.len())?;
                let mut halo = exchange::prepare(world, &block)?;
                let planned = planned(&compiled.schedules()[0], world.rank());
                assert!(planned[1].frames > 0 || planned[0].frames > 0, "it moves something");
                let start = world.meter();
                for round in 1..=5 {
                    halo.replay(&mut u)?;
                    let now = world.meter();
                    for (kind, planned) in [ENTRY, PAYLOAD, DONE].into_iter().zip(planned) {
                        let expected = Count { frames: round * planned.frames, bytes: round * planned.bytes };
                        assert_eq!(difference(&start, &now, kind), expected, "frames of kind {kind}");
                    }
                    let all: u64 = planned.iter().map(|count| count.frames).sum();
                    assert_eq!(now.total().frames - start.total().frames, round * all, "no other frames");
                    assert_eq!(
                        (now.exchanges, now.settles),
                        (start.exchanges, start.settles),
                        "no notifications"
                    );
                }
                Ok(())
            })
            .unwrap();
    }
}

fn prepared_halo(world: &World, runs: u64) -> Result<u64> {
    let block = Block::new(world, [12, 9])?.halo(1)?;
    let mut u = world.window::<f64>(block.len())?;
    let mut halo = exchange::prepare(world, &block)?;
    let mut some = |runs| (0..runs).try_for_each(|_| halo.replay(&mut u));
    some(runs)?;
    allocations(|| some(runs))
}

/// Exchanges rows that a transport may send and receive in place. Returns the allocations of the
/// repeated runs.
fn prepared_long(world: &World, runs: u64) -> Result<u64> {
    let block = Block::new(world, [world.size(), 1 << 14])?.halos([1, 0])?;
    let mut u = world.window::<f64>(block.len())?;
    let mut halo = exchange::prepare(world, &block)?;
    let mut some = |runs| (0..runs).try_for_each(|_| halo.replay(&mut u));
    some(runs)?;
    allocations(|| some(runs))
}

fn prepared_halves(world: &World, runs: u64) -> Result<u64> {
    let block = Block::new(world, [12, 9])?.halo(1)?;
    let mut u = Some(world.window::<f64>(block.len())?);
    let mut halo = exchange::prepare(world, &block)?;
    let own = block.index([1, 1]);
    let mut some = |runs| {
        (0..runs).try_for_each(|_| {
            let Some(taken) = u.take() else { return Ok(()) };
            let mut running = halo.begin(taken)?;
            for row in running.inside(&block)? {
                std::hint::black_box(row.up());
            }
            std::hint::black_box(running.kept(own..own + 1)?);
            std::hint::black_box(running.kept_mut(own..own)?);
            u = Some(running.finish()?);
            Ok(())
        })
    };
    some(runs)?;
    let counted = allocations(|| some(runs));
    assert!(u.is_some());
    counted
}

fn prepared_calls(world: &World, runs: u64) -> Result<u64> {
    let (mut u, mut v) = (world.window::<f64>(8)?, world.window::<f64>(8)?);
    let mut values = [1.0, 2.0, 3.0];
    let mut prepared = mixed::prepare(world, &values)?;
    let mut some = |runs| {
        (0..runs).try_for_each(|_| {
            values[0] += 1.0;
            prepared.run(&mut u, &mut v, &values)
        })
    };
    some(runs)?;
    allocations(|| some(runs))
}

/// A superstep that is not prepared is compared with its pattern in its first epoch only.
#[test]
fn a_superstep_that_is_not_prepared_does_not_allocate_without_the_checker() {
    const EPOCHS: u64 = 400;
    for transport in transports([4]) {
        let counts: Vec<u64> = ranks(4)
            .transport(transport.clone())
            .check(Check::Off)
            .collect(|world| {
                let block = Block::new(world, [12, 9])?.halo(1)?;
                let mut u = world.window::<f64>(block.len())?;
                let (mut v, mut w) = (world.window::<f64>(8)?, world.window::<f64>(8)?);
                let mut some = |epochs| {
                    (0..epochs).try_for_each(|_| {
                        exchange(&mut u, &block)?;
                        mixed(&mut v, &mut w, &[1.0, 2.0, 3.0])
                    })
                };
                some(EPOCHS)?;
                allocations(|| some(EPOCHS))
            })
            .unwrap();
        let allowed = allowed(&transport, EPOCHS);
        assert!(counts.iter().all(|count| *count <= allowed), "{transport:?}: {counts:?}");
    }
}

#[test]
fn a_prepared_superstep_does_not_allocate() {
    const RUNS: u64 = 400;
    for transport in transports([2]) {
        for (what, program) in [
            ("replayed", prepared_halo as fn(&World, u64) -> Result<u64>),
            ("replayed with long rows", prepared_long),
            ("begun and finished", prepared_halves),
            ("matched", prepared_calls),
        ] {
            let counts: Vec<u64> =
                ranks(4).transport(transport.clone()).collect(|world| program(world, RUNS)).unwrap();
            let allowed = allowed(&transport, RUNS);
            assert!(counts.iter().all(|count| *count <= allowed), "{what} on {transport:?}: {counts:?}");
        }
    }
}

type Collective = fn(&World, &mut [f64], &mut [f64]) -> Result<()>;

/// A repeated call of a collective takes one exchange and the frames of its plan, and nothing else.
/// It allocates nothing.
#[test]
fn a_collective_that_was_called_before_plans_and_allocates_nothing() {
    const CALLS: u64 = 200;
    let collectives: [(&str, Collective); 7] = [
        ("broadcast", |world, mine, _| world.broadcast(1, mine)),
        ("allreduce", |world, mine, _| world.allreduce(mine, Op::Max)),
        ("a sum", |world, mine, _| world.allreduce(mine, Op::Sum)),
        ("scan", |world, mine, _| world.scan(mine, Op::Min)),
        ("gather_into", |world, mine, all| world.gather_into(2, mine, all)),
        ("allgather_into", |world, mine, all| world.allgather_into(mine, all)),
        ("all_to_all_into", |world, mine, all| {
            let (given, all) = all.split_at_mut(mine.len() / 4 * 4);
            world.all_to_all_into(given, &mut all[..given.len()])
        }),
    ];
    for transport in [TransportKind::Local, sim(6)] {
        let shares = matches!(transport, TransportKind::Local);
        for len in [1, 20, 4000] {
            ranks(4)
                .transport(transport.clone())
                .run(|world| {
                    let (mut mine, mut all) = (vec![world.rank() as f64; len], vec![0.0; 4 * len]);
                    for (what, collective) in collectives {
                        let mut some =
                            |calls: u64| (0..calls).try_for_each(|_| collective(world, &mut mine, &mut all));
                        some(CALLS)?;
                        let before = world.meter();
                        some(1)?;
                        let once = world.meter();
                        let counted = allocations(|| some(CALLS))?;
                        let after = world.meter();
                        let allowed = allowed(&transport, CALLS);
                        assert!(counted <= allowed, "{what} of {len} on {transport:?}: {counted}");
                        // If ranks reach each other's memory, blocks are combined and exposed
                        // between two exchanges.
                        let exchanges = once.exchanges - before.exchanges;
                        let in_blocks = matches!(what, "allreduce" | "a sum") && len == 4000;
                        assert_eq!(exchanges, 1 + u64::from(in_blocks && shares), "{what} of {len}");
                        assert_eq!(after.exchanges - once.exchanges, CALLS * exchanges, "{what} of {len}");
                        for kind in [DATA, REPLY, ENTRY, PAYLOAD, DONE] {
                            let (one, all) =
                                (difference(&before, &once, kind), difference(&once, &after, kind));
                            let expected = Count { frames: CALLS * one.frames, bytes: CALLS * one.bytes };
                            assert_eq!(all, expected, "{what} of {len}, frames of kind {kind}");
                        }
                        let all = after.total().frames - once.total().frames;
                        assert_eq!(
                            all,
                            CALLS * (once.total().frames - before.total().frames),
                            "{what} of {len}"
                        );
                    }
                    Ok(())
                })
                .unwrap();
        }
    }
}
