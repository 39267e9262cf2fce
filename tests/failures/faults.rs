//! Causes every fault that can happen to a single item in transit. A fixed program has dynamic,
//! replayed and prepared epochs. The program is run with every kind of fault at every point at
//! which a rank sends something to another rank, with several seeds.
//!
//! No fault makes a rank wait forever. An epoch that succeeds has left the right elements. The
//! error of a failed epoch names a rank. The epoch has left the windows unchanged, or the error
//! reports that they are mixed. In mixed windows, each element is old or new. Nothing here depends
//! on time: a rank is given up after a number of polls.

use fencepost::transport::{Fault, FaultKind, SimConfig};
use fencepost::{Error, Machine, Op, Result, State, TransportKind, Window, World, ranks, superstep};
use fencepost_tests_support::cases::every_case;
use std::sync::Mutex;

const SIZE: usize = 3;
const EPOCHS: u64 = 3;
const LEN: usize = 300;
/// At most this number of items at the end of a rank's program may be lost unnoticed. These are the
/// items of the last barrier, and the items that release the frames before this barrier.
const TAIL: u64 = 12;

#[superstep]
fn turn(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    let (right, left) = ((u.rank() + 1) % u.size(), (u.rank() + u.size() - 1) % u.size());
    u.put(v.section(2..4)).to(right, 5..7)?;
    v.get(4..6).from(left, 2..4)?;
    Ok(())
}

/// The elements that all windows should hold.
#[derive(Clone)]
struct Model {
    u: Vec<Vec<u64>>,
    v: Vec<Vec<u64>>,
}

impl Model {
    fn new() -> Self {
        Self { u: vec![vec![0; LEN]; SIZE], v: vec![vec![0; 6]; SIZE] }
    }

    fn dynamic(&mut self, epoch: u64) {
        let old = self.clone();
        for rank in 0..SIZE {
            let (right, left) = ((rank + 1) % SIZE, (rank + 2) % SIZE);
            self.u[right][..4].fill(100 * epoch + rank as u64);
            self.u[left][8..].fill(1000 * epoch + rank as u64 + 1);
            self.u.iter_mut().for_each(|u| u[4] += rank as u64 + 1);
            self.v[rank][..2].copy_from_slice(&old.v[right][2..4]);
            self.v[right][2..4].fill(10 * epoch + rank as u64 + 1);
        }
    }

    fn turn(&mut self) {
        let old = self.clone();
        for rank in 0..SIZE {
            let (right, left) = ((rank + 1) % SIZE, (rank + 2) % SIZE);
            self.u[right][5..7].copy_from_slice(&old.v[rank][2..4]);
            self.v[rank][4..6].copy_from_slice(&old.v[left][2..4]);
        }
    }
}

/// Compares the windows after an epoch with the contents that the epoch may leave.
fn judge(u: &[u64], v: &[u64], old: &Model, new: &Model, rank: usize, result: &Result<()>) {
    let holds = |model: &Model| u == model.u[rank] && v == model.v[rank];
    match result {
        Ok(()) => assert!(holds(new), "rank {rank}: an epoch that succeeded left something else"),
        Err(error) if error.state() == State::Unchanged => {
            assert!(holds(old), "rank {rank}: changed, though it says unchanged: {error}");
        }
        Err(error) => {
            let (old_u, new_u) = (&old.u[rank], &new.u[rank]);
            let either = |now: &[u64], old: &[u64], new: &[u64]| {
                now.iter().zip(old.iter().zip(new)).all(|(now, (old, new))| now == old || now == new)
            };
            let puts =
                [0..4, 5..LEN].into_iter().all(|at| either(&u[at.clone()], &old_u[at.clone()], &new_u[at]));
            // Some terms of a sum may have arrived, and others not.
            let sum = (old_u[4]..=new_u[4]).contains(&u[4]);
            let v = either(v, &old.v[rank], &new.v[rank]);
            assert!(puts && sum && v, "rank {rank}: neither old nor new: {error}");
        }
    }
}

fn program(world: &World) -> Result<()> {
    let rank = world.rank();
    let (right, left) = ((rank + 1) % SIZE, (rank + 2) % SIZE);
    let (mut u, mut v) = (world.window::<u64>(LEN)?, world.window::<u64>(6)?);
    let mut prepared = turn::prepare(world)?;
    let mut model = Model::new();
    for epoch in 0..EPOCHS {
        let old = model.clone();
        model.dynamic(epoch);
        u.put(&[100 * epoch + rank as u64; 4]).to(right, 0..4)?;
        u.put(&[1000 * epoch + rank as u64 + 1; LEN - 8]).to(left, 8..LEN)?;
        (0..SIZE).try_for_each(|to| u.accumulate([rank as u64 + 1], Op::Sum).to(to, 4))?;
        v.get(0..2).from(right, 2..4)?;
        v.put(&[10 * epoch + rank as u64 + 1; 2]).to(right, 2..4)?;
        let result = world.fence((&mut u, &mut v));
        judge(&u, &v, &old, &model, rank, &result);
        result?;
        let old = model.clone();
        model.turn();
        let result = prepared.replay(&mut u, &mut v);
        judge(&u, &v, &old, &model, rank, &result);
        result?;
    }
    world.barrier()
}

/// The content of an error.
#[derive(Debug)]
struct Said {
    rank: Option<usize>,
    state: State,
    text: String,
}

impl Said {
    fn new(error: &Error) -> Self {
        Self { rank: error.rank(), state: error.state(), text: error.to_string() }
    }
}

/// Returns the error of each rank's program, by rank.
fn outcomes(config: SimConfig) -> Vec<Option<Said>> {
    let said = Mutex::new(Vec::new());
    let mut machine = Machine::default();
    if !config.seed.is_multiple_of(10) {
        // This makes the long put of each epoch follow the census.
        machine.moving.pack = 80.0;
    }
    let ended = ranks(SIZE).transport(TransportKind::Sim(config)).machine(machine).run(|world| {
        let result = program(world);
        let failed = result.as_ref().err().map(Said::new);
        said.lock().unwrap().push((world.rank(), failed));
        result
    });
    let mut said = said.into_inner().unwrap();
    assert_eq!(said.len(), SIZE, "a rank panicked: {ended:?}");
    said.sort_by_key(|(rank, _)| *rank);
    said.into_iter().map(|(_, failed)| failed).collect()
}

/// The number of runs, of runs in which a rank got an error, and of errors that report mixed
/// windows.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    points: u64,
    runs: u64,
    told: u64,
    mixed: u64,
}

fn every_point(kind: FaultKind) -> Counts {
    let mut counts = Counts::default();
    // One seed for each rank, unless every case is tried.
    let each = (0..3).flat_map(|seed| (0..SIZE).map(move |rank| (seed, rank)));
    for (seed, rank) in each.filter(|(seed, rank)| every_case() || *seed == *rank as u64 % 3) {
        let mut unnoticed = Vec::new();
        for point in 0.. {
            let fault = Fault::new(rank, point, kind);
            let config = SimConfig {
                seed: seed + 10 * point,
                fault: Some(fault.clone()),
                link_bytes: if seed == 0 { 1 << 16 } else { 500 },
                ..SimConfig::default()
            };
            let what = format!("{kind:?} of item {point} of rank {rank}, seed {}", config.seed);
            let said = outcomes(config);
            if !fault.happened() {
                assert!(
                    said.iter().all(Option::is_none),
                    "{what}: no fault happened, but ranks returned {said:?}"
                );
                unnoticed.retain(|&at| at + TAIL < point);
                let loud = kind == FaultKind::Delay;
                assert!(loud || unnoticed.is_empty(), "{what}: no rank returned an error at {unnoticed:?}");
                counts.points = counts.points.max(point);
                break;
            }
            counts.runs += 1;
            let errors: Vec<&Said> = said.iter().flatten().collect();
            if errors.is_empty() {
                unnoticed.push(point);
                continue;
            }
            assert_ne!(kind, FaultKind::Delay, "{what}: late is not lost: {errors:?}");
            counts.told += 1;
            counts.mixed += errors.iter().filter(|error| error.state == State::Mixed).count() as u64;
            assert!(errors.iter().all(|error| error.rank.is_some()), "{what}: {errors:?}");
            let faulty = format!("rank {rank}");
            assert!(errors.iter().any(|error| error.text.contains(&faulty)), "{what}: {errors:?}");
            // A rank that has finished may have succeeded, but a rank in the middle of the program
            // may not.
            if said.iter().any(Option::is_none) {
                unnoticed.push(point);
            }
        }
    }
    counts
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many points and runs there were")]
fn any_one_fault_at_any_point_ends_in_errors_that_name_a_rank_or_in_the_right_bits() {
    for kind in FaultKind::ALL {
        let counts = every_point(kind);
        println!("{kind:?}: {counts:?}");
        assert!(counts.points > 40, "the program says less than it should");
        assert!(kind == FaultKind::Delay || counts.told * 4 > counts.runs * 3, "{kind:?}: {counts:?}");
    }
}
