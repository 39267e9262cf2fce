//! Ranks that are not in step. They run as far ahead as their neighbours permit, are in different
//! supersteps, swap windows, leave early, or leak values. There are never wrong bits, no rank
//! hangs, and no rank runs ahead without bound.

use fencepost::grid::Block;
use fencepost::{
    ErrorClass, Machine, Mode, Options, Placement, Result, TransportKind, Window, World, ranks, superstep,
};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::{sim, transports};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Does some work, so that ranks are not in step. The amount of work depends on the rank and on the
/// step.
fn work(rank: usize, step: u64) {
    let much = Random::new(rank as u64 * 7919 + step / 50).once_in(4);
    let mut sum = 0;
    for i in 0..if much { 3000 } else { 30 } {
        sum = black_box(sum + i);
    }
}

const LAST: usize = 8;

/// Puts the first half to the right neighbour's second half. The last rank puts to nobody.
#[superstep(prepared = Shift)]
fn shift(u: &mut Window<u64>) -> Result<()> {
    let right = if u.rank() + 1 < u.size() { Some(u.rank() + 1) } else { None };
    u.put(0..LAST / 2).to(right, LAST / 2..LAST)?;
    Ok(())
}

/// Puts the first half to the left neighbour's second half.
#[superstep]
fn shift_left(u: &mut Window<u64>) -> Result<()> {
    let left = u.rank().checked_sub(1);
    u.put(0..LAST / 2).to(left, LAST / 2..LAST)?;
    Ok(())
}

/// Gets from the rank after the next rank.
#[superstep(prepared = Look)]
fn look(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    let other = (u.rank() + 2) % u.size();
    v.get(1..3).from(other, 0..2)?;
    u.put(v.section(0..1)).to((u.rank() + 1) % u.size(), LAST - 1)?;
    Ok(())
}

/// The number of runs that a rank may be ahead of a rank to which it sends only short messages.
/// Such messages are copied when they are posted, so the sender's buffers are free again at once.
const MESSAGES_AHEAD: u64 = 16;

/// Returns the elements that rank 0 sends in step `step`.
fn sent(step: u64) -> [u64; LAST / 2] {
    std::array::from_fn(|i| step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i as u64)
}

/// A chain. The elements that rank 0 sends in step k are at rank r after step k + r - 1, and have
/// passed through all ranks between.
///
/// Rank 0 receives nothing but releases, so only releases keep it from running ahead without bound.
/// Each rank publishes its step outside the library, so that the test can measure the lead while
/// ranks run. A rank that has finished step k has sent its elements in one of two ways. It packed
/// them into a buffer whose reader had released step `k-copies`, or it sent them after the reader
/// had released step `k-16`.
#[test]
fn a_shift_along_a_chain_runs_ahead_by_its_buffers_and_no_further() {
    const RANKS: usize = 5;
    const STEPS: u64 = 3000;
    for transport in transports([1, 2]) {
        for mode in Mode::ALL {
            let placement = match transport {
                TransportKind::Local | TransportKind::ShmThreads => Placement::Together,
                TransportKind::MixedThreads(_) => Placement::Hosts { ranks_each: 2 },
                _ => Placement::Apart,
            };
            let options = Options { mode, ..Options::default() };
            let compiled = shift::compile(RANKS, |_| Ok(())).unwrap();
            let compiled = compiled.with(placement, &Machine::default(), &options).unwrap();
            let buffers =
                compiled.schedules()[0].classes.values().flat_map(|program| program.buffers.values());
            let copies = u64::from(buffers.map(|buffer| buffer.copies).max().unwrap_or(0));
            let most = if placement == Placement::Together { copies } else { MESSAGES_AHEAD };
            let done: Vec<AtomicU64> = (0..RANKS).map(|_| AtomicU64::new(0)).collect();
            let leads: Vec<u64> = ranks(RANKS)
                .transport(transport.clone())
                .mode(mode)
                .collect(|world| {
                    let rank = world.rank();
                    let mut u = world.window::<u64>(LAST)?;
                    let mut shift = shift::prepare(world)?;
                    let mut lead = 0;
                    for step in 0..STEPS {
                        work(rank, step);
                        if rank == 0 {
                            u[..LAST / 2].copy_from_slice(&sent(step));
                        }
                        shift.replay(&mut u)?;
                        let here = rank as u64;
                        if rank > 0 {
                            let expected = (step + 1).checked_sub(here).map(sent).unwrap_or_default();
                            assert_eq!(u[LAST / 2..], expected, "rank {rank}, step {step}");
                            u.copy_within(LAST / 2.., 0);
                        }
                        done[rank].store(step + 1, Ordering::SeqCst);
                        if let Some(next) = done.get(rank + 1) {
                            lead = lead.max((step + 1).saturating_sub(next.load(Ordering::SeqCst)));
                        }
                    }
                    Ok(lead)
                })
                .unwrap();
            for (rank, &lead) in leads.iter().enumerate() {
                assert!(lead <= most + 1, "rank {rank} was {lead} ahead, with {copies} copies: {mode}");
            }
        }
    }
}

/// One step of a script: a shift to the right or to the left, a get from the rank after the next
/// rank, or a swap of the windows. A shift or a get is prepared or dynamic.
#[derive(Clone, Copy, Debug)]
enum Step {
    Right { prepared: bool },
    Left { prepared: bool },
    Look { prepared: bool },
    Swap,
}

fn script(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut step = || {
        let prepared = random.below(3) > 0;
        match random.below(4) {
            0 => Step::Right { prepared },
            1 => Step::Left { prepared },
            2 => Step::Look { prepared },
            _ => Step::Swap,
        }
    };
    (0..steps).map(|_| step()).collect()
}

/// Computes the results of a script by plain loops. Returns `u` and `v` by rank.
fn by_hand(script: &[Step], ranks: usize) -> Vec<[[u64; LAST]; 2]> {
    let mut all: Vec<[[u64; LAST]; 2]> = (0..ranks).map(first).collect();
    for (number, step) in script.iter().enumerate() {
        let before = all.clone();
        for rank in 0..ranks {
            let half = LAST / 2;
            match step {
                Step::Right { .. } if rank > 0 => {
                    all[rank][0][half..].copy_from_slice(&before[rank - 1][0][..half]);
                }
                Step::Left { .. } if rank + 1 < ranks => {
                    all[rank][0][half..].copy_from_slice(&before[rank + 1][0][..half]);
                }
                Step::Look { .. } => {
                    all[rank][1][1..3].copy_from_slice(&before[(rank + 2) % ranks][1][..2]);
                    all[rank][0][LAST - 1] = before[(rank + ranks - 1) % ranks][1][0];
                }
                Step::Swap => all[rank].swap(0, 1),
                _ => {}
            }
            stir(&mut all[rank][0], number);
        }
    }
    all
}

fn first(rank: usize) -> [[u64; LAST]; 2] {
    [0, 1].map(|window| std::array::from_fn(|i| (rank * 100 + window * 10 + i) as u64))
}

/// Changes a window as every rank does between supersteps.
fn stir(u: &mut [u64], number: usize) {
    u[0] = u[0].wrapping_mul(31).wrapping_add(u[LAST - 1]) ^ number as u64;
    u[1] ^= u[LAST / 2];
}

#[test]
fn prepared_and_dynamic_supersteps_on_swapped_windows_follow_each_other() {
    const RANKS: usize = 4;
    for (seed, transport) in
        (0..12).flat_map(|seed| transports([1, 2]).into_iter().map(move |transport| (seed, transport)))
    {
        let script = script(seed, 120);
        let expected = by_hand(&script, RANKS);
        let found: Vec<[[u64; LAST]; 2]> = ranks(RANKS)
            .transport(transport.clone())
            .mode(Mode::ALL[seed as usize % 5])
            .collect(|world| {
                let (mut u, mut v) = (world.window::<u64>(LAST)?, world.window::<u64>(LAST)?);
                let [first_u, first_v] = first(world.rank());
                u.copy_from_slice(&first_u);
                v.copy_from_slice(&first_v);
                let (mut right, mut left) = (shift::prepare(world)?, shift_left::prepare(world)?);
                let mut looking = look::prepare(world)?;
                for (number, step) in script.iter().enumerate() {
                    work(world.rank(), number as u64 * 50);
                    match step {
                        Step::Right { prepared: true } => right.replay(&mut u)?,
                        Step::Right { prepared: false } => shift(&mut u)?,
                        Step::Left { prepared: true } => left.replay(&mut u)?,
                        Step::Left { prepared: false } => shift_left(&mut u)?,
                        Step::Look { prepared: true } => looking.replay(&mut u, &mut v)?,
                        Step::Look { prepared: false } => look(&mut u, &mut v)?,
                        // All ranks swap their windows, so the plans run on other windows than
                        // before.
                        Step::Swap => std::mem::swap(&mut u, &mut v),
                    }
                    stir(&mut u, number);
                }
                let copy = |window: &Window<u64>| std::array::from_fn(|i| window[i]);
                Ok([copy(&u), copy(&v)])
            })
            .unwrap();
        assert_eq!(found, expected, "seed {seed}, {transport:?}");
    }
}

/// Each of three ranks puts to the two other ranks, so no rank leaves the superstep before it has a
/// message from each of them.
#[superstep(prepared = Around)]
fn around(u: &mut Window<u64>, v: &mut Window<u64>) -> Result<()> {
    for by in 1..3 {
        u.put(v.section(0..2)).to((u.rank() + by) % u.size(), 2 * by..2 * by + 2)?;
    }
    Ok(())
}

/// All values that a rank of these tests uses.
struct All<'w> {
    world: &'w World,
    u: Window<u64>,
    v: Window<u64>,
    right: Shift,
    around: Around,
}

impl<'w> All<'w> {
    fn new(world: &'w World) -> Result<Self> {
        let (u, v) = (world.window(LAST)?, world.window(LAST)?);
        let (right, around) = (shift::prepare(world)?, around::prepare(world)?);
        Ok(Self { world, u, v, right, around })
    }
}

/// A name, the step of rank 1, the different step of all other ranks, and words that name both
/// calls.
type Differing =
    (&'static str, fn(&mut All<'_>) -> Result<()>, fn(&mut All<'_>) -> Result<()>, [&'static str; 2]);

const DIFFERENT: [Differing; 6] = [
    (
        "swapped windows, prepared",
        |all| all.around.replay(&mut all.v, &mut all.u),
        |all| all.around.replay(&mut all.u, &mut all.v),
        ["of window 0, 1", "of window 1, 0"],
    ),
    (
        "swapped windows, dynamic",
        |all| around(&mut all.v, &mut all.u),
        |all| around(&mut all.u, &mut all.v),
        ["of window 0, 1", "of window 1, 0"],
    ),
    (
        "two prepared supersteps",
        |all| all.right.replay(&mut all.v),
        |all| all.around.replay(&mut all.u, &mut all.v),
        ["of window 0, 1", "of window 1"],
    ),
    (
        "prepared and not",
        |all| all.around.replay(&mut all.u, &mut all.v),
        |all| around(&mut all.u, &mut all.v),
        ["superstep around", "the call at"],
    ),
    (
        "a fence and a prepared superstep",
        |all| all.u.fence(),
        |all| all.around.replay(&mut all.u, &mut all.v),
        ["of window 0, 1", "of window 0"],
    ),
    (
        "a prepared superstep and a barrier",
        |all| all.around.replay(&mut all.u, &mut all.v),
        |all| all.world.barrier(),
        ["superstep around", "tests/supersteps/unsynchronised.rs"],
    ),
];

#[test]
fn ranks_in_different_supersteps_get_errors_that_name_both() {
    const RANKS: usize = 3;
    let reached = [
        TransportKind::Local,
        TransportKind::Local,
        TransportKind::ShmThreads,
        TransportKind::MixedThreads(vec![0, 0, 1, 1]),
    ];
    let seeds = (0..8).map(sim).chain(reached);
    for (transport, (what, of_one, of_others, both)) in
        seeds.flat_map(|transport| DIFFERENT.map(|differing| (transport.clone(), differing)))
    {
        let told = ends(&ranks(RANKS).transport(transport.clone()), &[], |world| {
            let mut all = All::new(world)?;
            // Some steps succeed, so that ranks are not in step when they come to the step that
            // fails.
            for step in 0..4 {
                all.u.fill((10 * world.rank()) as u64 + step);
                all.v.fill((10 * world.rank()) as u64 + step);
                work(world.rank(), step * 50);
                all.around.replay(&mut all.u, &mut all.v)?;
            }
            let rank = world.rank() as u64;
            all.u.fill(100 + rank);
            all.v.fill(200 + rank);
            let result = if rank == 1 { of_one(&mut all) } else { of_others(&mut all) };
            // Each element has a value with which some rank has just filled a window. No element is
            // torn.
            for window in [&all.u, &all.v] {
                let known = |cell: &u64| (100..103).contains(cell) || (200..203).contains(cell);
                assert!(window.iter().all(known), "{what}: {:?}", &window[..]);
            }
            result.and_then(|()| world.barrier())
        });
        for error in told {
            let (class, error) = error.expect("every rank is told");
            assert_eq!(class, ErrorClass::RmaSync, "{what} on {transport:?}: {error}");
            let named = both.iter().all(|one| error.contains(one));
            assert!(named, "{what} on {transport:?}: {error}: names {both:?}");
        }
    }
}

/// In a chain only releases flow back. So when a rank swaps its windows, the ranks before it may be
/// several steps ahead, but no further than their buffers allow. All ranks finally get an error,
/// and no element arrives in the wrong window.
#[test]
fn a_rank_of_a_chain_that_swaps_its_windows_is_an_error_on_all_ranks() {
    const RANKS: usize = 5;
    const SWAP: u64 = 20;
    for seed in 0..24 {
        let swapper = 1 + seed as usize % (RANKS - 1);
        for (transport, most) in [(sim(seed), MESSAGES_AHEAD), (TransportKind::Local, 2)] {
            let gone_on: Vec<AtomicU64> = (0..RANKS).map(|_| AtomicU64::new(0)).collect();
            let told = ends(&ranks(RANKS).transport(transport.clone()), &[], |world| {
                let rank = world.rank();
                let mut shift = shift::prepare(world)?;
                let (mut u, mut v) = (world.window::<u64>(LAST)?, world.window::<u64>(LAST)?);
                v.fill(u64::MAX);
                let mut result = Ok(());
                for step in 0..SWAP + 200 {
                    work(rank, step * 7 + seed);
                    u[..LAST / 2].fill(rank as u64 * 1000 + step);
                    let (swaps, before) = (rank == swapper && step == SWAP, u[LAST / 2..].to_vec());
                    result = shift.replay(if swaps { &mut v } else { &mut u });
                    let arrived = [rank.saturating_sub(1) as u64 * 1000 + step; LAST / 2];
                    let is = if rank == 0 { [0; LAST / 2] } else { arrived };
                    let fine = u[LAST / 2..] == is || (result.is_err() || swaps) && u[LAST / 2..] == before;
                    assert!(fine, "rank {rank}, step {step}: {:?}", &u[..]);
                    if result.is_err() {
                        break;
                    }
                    gone_on[rank].store(step, Ordering::SeqCst);
                }
                assert!(v.iter().all(|&cell| cell == u64::MAX), "rank {rank}: {:?}", &v[..]);
                result
            });
            for (rank, error) in told.into_iter().enumerate() {
                let (class, error) =
                    error.unwrap_or_else(|| panic!("rank {rank} was told nothing: {transport:?}"));
                assert_eq!(class, ErrorClass::RmaSync, "{transport:?}: {error}");
                let both = ["of window 0", "of window 1"];
                assert!(both.iter().all(|one| error.contains(one)), "{transport:?}: {error}");
                let ahead = gone_on[rank].load(Ordering::SeqCst).saturating_sub(SWAP);
                assert!(ahead <= most * RANKS as u64, "rank {rank} went on {ahead} steps");
            }
        }
    }
}

/// Each rank of a chain makes its step and leaves before the next rank begins. The test tries each
/// way in which a rank can give up its values.
#[test]
fn what_a_rank_sent_arrives_after_it_has_gone() {
    const RANKS: usize = 4;
    type LetGo = fn(Window<u64>, Shift);
    let ways: [(&str, LetGo); 4] = [
        ("drops both", |u, shift| drop((u, shift))),
        ("drops the window first", |u, shift| {
            drop(u);
            drop(shift);
        }),
        ("forgets both", |u, shift| std::mem::forget((u, shift))),
        ("forgets the plan", |u, shift| {
            std::mem::forget(shift);
            drop(u);
        }),
    ];
    for (transport, (what, let_go)) in
        transports([1, 2]).into_iter().flat_map(|transport| ways.map(|way| (transport.clone(), way)))
    {
        for mode in [Mode::Aggregated, Mode::Auto, Mode::Direct] {
            let gone = AtomicU64::new(0);
            let seen: Vec<u64> = ranks(RANKS)
                .transport(transport.clone())
                .mode(mode)
                .collect(|world| {
                    let rank = world.rank();
                    let mut u = world.window::<u64>(LAST)?;
                    let mut shift = shift::prepare(world)?;
                    // With packing, each rank waits, outside the library, until the ranks before it
                    // have given up all values.
                    while mode == Mode::Aggregated && gone.load(Ordering::SeqCst) < rank as u64 {
                        std::thread::yield_now();
                    }
                    u[..LAST / 2].fill(rank as u64 + 1000);
                    shift.replay(&mut u)?;
                    let seen = u[LAST - 1];
                    let_go(u, shift);
                    gone.fetch_add(1, Ordering::SeqCst);
                    Ok(seen)
                })
                .unwrap_or_else(|error| panic!("{what}, {mode}, {transport:?}: {error}"));
            let expected = [0, 1000, 1001, 1002];
            assert_eq!(seen, expected, "{what}, {mode}, {transport:?}");
        }
    }
}

/// Leaks that `tests/failures` does not test. Compiled, prepared and loaded values are leaked, and
/// the world continues.
#[test]
fn forgetting_what_was_prepared_leaves_the_world_usable() {
    for transport in transports([1, 2]) {
        ranks(3)
            .transport(transport)
            .run(|world| {
                let block = Block::new(world, [8, 6])?.halo(1)?;
                let mut u = world.window::<f64>(block.len())?;
                u.fill(world.rank() as f64 + 1.0);
                for _ in 0..5 {
                    let mut halo = exchange::prepare(world, &block)?;
                    halo.replay(&mut u)?;
                    std::mem::forget(halo);
                    std::mem::forget(exchange::compile(3, |rank| Block::at(rank, 3, [8, 6])?.halo(1))?);
                }
                let (mut v, mut w) = (world.window::<u64>(LAST)?, world.window::<u64>(LAST)?);
                let mut looking = look::prepare(world)?;
                looking.replay(&mut v, &mut w)?;
                // Plans have run on the window that is leaked here. The next window has another
                // number, and the plan accepts it.
                std::mem::forget(w);
                let mut w = world.window::<u64>(LAST)?;
                w.fill(world.rank() as u64 + 7);
                looking.replay(&mut v, &mut w)?;
                assert_eq!(w[1], ((world.rank() + 2) % 3) as u64 + 7);
                assert_eq!(v[LAST - 1], ((world.rank() + 2) % 3) as u64 + 7);
                let part = world.split(Some((world.rank() % 2) as u32), 0)?;
                if let Some(part) = part {
                    let mut x = part.window::<u64>(LAST)?;
                    shift::prepare(&part)?.replay(&mut x)?;
                    std::mem::forget(x);
                    std::mem::forget(part);
                }
                world.barrier()
            })
            .unwrap();
    }
}

/// Fills this block's halo from the blocks around it.
#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}
