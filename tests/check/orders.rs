//! The order that collectives establish between epochs of locks. Without `mpi`, a collective orders
//! all calls before it and all calls after it. With `mpi`, it orders only the calls that MPI
//! guarantees to be ordered (planner/README.md, 32 and 37).

use crate::ends::{End, ends};
use fencepost::grid::Block;
use fencepost::prelude::*;
use fencepost::{Check, TransportKind};
use fencepost_tests_worlds::transports::transports;

/// A collective: its name, its call, and a function of two ranks. The function returns whether, in
/// MPI, the collective orders earlier calls of the first rank before later calls of the second
/// rank. If the collective has a root, the root is rank 2.
type Collective = (&'static str, fn(&World) -> Result<()>, fn(usize, usize) -> bool);

const ROOT: usize = 2;

const COLLECTIVES: [Collective; 15] = [
    ("barrier", World::barrier, |_, _| true),
    ("allreduce", |world| world.allreduce(&mut [1], Op::Sum), |_, _| true),
    ("allgather", |world| world.allgather(&[1]).map(drop), |_, _| true),
    ("all_to_all", |world| world.all_to_all(&vec![vec![1]; world.size()]).map(drop), |_, _| true),
    ("broadcast", |world| world.broadcast(ROOT, &mut [1]), |from, _| from == ROOT),
    ("broadcast of a long array", |world| world.broadcast(ROOT, &mut [1; 5000]), |from, _| from == ROOT),
    ("broadcast_vec", |world| world.broadcast_vec(ROOT, &mut vec![1; world.rank()]), |from, _| from == ROOT),
    ("scatter_block", scattered, |from, _| from == ROOT),
    ("reduce", |world| world.reduce(ROOT, &[1], Op::Sum).map(drop), |_, to| to == ROOT),
    ("reduce of a long array", |world| world.reduce(ROOT, &[1; 5000], Op::Sum).map(drop), |_, to| to == ROOT),
    ("gather", |world| world.gather(ROOT, &vec![1; 1 + world.rank()]).map(drop), |_, to| to == ROOT),
    ("gather_into", |world| world.gather_into(ROOT, &[1], &mut [0; 4]), |_, to| to == ROOT),
    ("gather_block", gathered, |_, to| to == ROOT),
    ("scan", |world| world.scan(&mut [1], Op::Sum), |from, to| from < to),
    ("collectives in a superstep, whose fence orders all", in_a_superstep, |_, _| true),
];

#[superstep]
fn step(u: &mut Window<u64>, world: &World) -> Result<()> {
    u.put([1]).to((world.rank() + 1) % world.size(), 0)?;
    world.reduce(ROOT, &[1], Op::Sum)?;
    world.scan(&mut [1], Op::Sum)
}

fn in_a_superstep(world: &World) -> Result<()> {
    step(&mut world.window(4)?, world)
}

fn scattered(world: &World) -> Result<()> {
    let block = Block::new(world, [8])?;
    world.scatter_block(ROOT, &block, &[7; 8], &mut vec![0; block.len()])
}

fn gathered(world: &World) -> Result<()> {
    let block = Block::new(world, [8])?;
    world.gather_block(ROOT, &block, &vec![7; block.len()]).map(drop)
}

/// Rank `from` puts into an element before the collective, and rank `to` puts into the same element
/// after the collective. Both use shared locks.
fn around(world: &World, collective: Collective, [from, to]: [usize; 2]) -> Result<()> {
    let u = world.lock_window::<u64>(4)?;
    let put = |by: usize| {
        if world.rank() != by {
            return Ok(());
        }
        let lock = u.lock(3, LockType::Shared)?;
        lock.put([1], 3)?;
        lock.unlock()
    };
    let ended = put(from).and(collective.1(world)).and(put(to));
    ended.and(u.into_window().map(drop).map_err(Into::into))
}

/// Checks all collectives on this transport.
pub(crate) fn judged(transport: &TransportKind) {
    for collective in COLLECTIVES {
        let (name, _, orders) = collective;
        for [from, to] in [[0, 1], [1, 0], [0, 2], [2, 0], [3, 1]] {
            for check in [Check::Conflicts, Check::Mpi] {
                let what = format!("{name} between ranks {from} and {to} with {check} on {transport:?}");
                let all = ends(transport, check, |world| around(world, collective, [from, to]));
                let all = all.unwrap_or_else(|error| panic!("{what}: {error}"));
                if check == Check::Conflicts || orders(from, to) {
                    assert!(all.iter().all(End::is_ok), "{what}: {all:?}");
                    continue;
                }
                for (rank, end) in all.iter().enumerate() {
                    let is_part = rank == 3 || rank == from || rank == to;
                    let class = if is_part { ErrorClass::RmaConflict } else { ErrorClass::RmaSync };
                    assert!(matches!(end, Err((found, _)) if *found == class), "{what}: {all:?}");
                }
            }
        }
    }
}

#[test]
fn with_mpi_a_collective_orders_no_more_than_it_does_in_mpi() {
    transports(0..2).iter().for_each(judged);
}

/// If ranks pass different roots, or a root that is not a rank, the error is the same as without a
/// check. All ranks continue after it.
#[test]
fn wrong_arguments_of_a_collective_are_errors_on_all_ranks_with_mpi_too() {
    for transport in transports(0..1) {
        for check in [Check::Off, Check::Mpi] {
            let all = ends(&transport, check, |world| {
                let me = world.rank();
                let classes = [
                    world.broadcast(usize::from(me == 1), &mut [1]).err(),
                    world.broadcast(if me == 1 { 9 } else { 0 }, &mut [1]).err(),
                    world.reduce(0, &[1.5], if me == 1 { Op::Band } else { Op::Sum }).err(),
                    world.gather_into(1, &[1], &mut vec![0; if me == 1 { 3 } else { 0 }]).err(),
                ]
                .map(|error| error.expect("a rank gave something else").class());
                let own = |class| if me == 1 { class } else { ErrorClass::RmaSync };
                let meant =
                    [ErrorClass::RmaSync, own(ErrorClass::Rank), own(ErrorClass::Op), own(ErrorClass::Size)];
                assert_eq!(classes, meant, "{check} on {transport:?}");
                let mut found = [me];
                world.broadcast(3, &mut found)?;
                assert_eq!(found, [3]);
                Ok(())
            });
            assert!(all.expect("the world goes on").iter().all(End::is_ok), "{check} on {transport:?}");
        }
    }
}
