//! A superstep in two halves has the same results, bit for bit, as in one piece, on every transport
//! and in every mode. `tests/epochs/differential.rs` has random supersteps.

use fencepost::prelude::*;
use fencepost::{Op, Ranks, Source, World, ranks};
use fencepost_tests_worlds::delayed::Delayed;
use fencepost_tests_worlds::transports::transports;
use std::time::Duration;

fn worlds(size: usize) -> Vec<Ranks> {
    transports([1, 2]).into_iter().map(|t| ranks(size).transport(t)).collect()
}

/// Returns a world over TCP whose links delay bytes, so that bytes are in transit while ranks
/// compute.
fn late(size: usize) -> Ranks {
    ranks(size).transport(Delayed::over(size, Duration::from_millis(1)))
}

#[superstep]
fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Returns the result of six steps of a stencil, with the exchange in one piece or in two halves.
fn smooth(world: &World, halves: bool, wraps: bool) -> Result<Vec<u64>> {
    let block = Block::new(world, [13, 17])?.halo(2)?.periodic([wraps, false]);
    let mut u = world.window::<f64>(block.len())?;
    let mut next = vec![0.0; block.len()];
    block.fill(&mut u, |[i, j]| ((i * 31 + j * 17) % 23) as f64);
    let mut exchange = exchange::prepare(world, &block)?;
    for _ in 0..6 {
        let mean = |[a, b, c, d, e]: [&[f64]; 5], next: &mut [f64]| {
            for j in 0..next.len() {
                next[j] = 0.25 * a[j] + 0.5 * (b[j] - c[j]) + 0.125 * (d[j] + e[j]);
            }
        };
        let offsets = [[0, 0], [-2, 0], [2, 0], [0, -2], [1, 1]];
        if halves {
            let running = exchange.begin(u)?;
            for row in running.inside(&block)? {
                mean(row.each(offsets), row.of_mut(&mut next));
            }
            u = running.finish()?;
            for row in block.rows_rest(2) {
                mean(row.each(&u, offsets), row.of_mut(&mut next));
            }
        } else {
            exchange.replay(&mut u)?;
            for row in block.rows_inside(2) {
                mean(row.each(&u, offsets), row.of_mut(&mut next));
            }
        }
        for row in block.rows_inside(2) {
            row.of_mut(&mut u).copy_from_slice(row.of(&next));
        }
    }
    Ok(u.iter().map(|cell| cell.to_bits()).collect())
}

#[test]
fn two_halves_leave_the_bits_of_one_piece() -> Result<()> {
    for size in [1, 2, 3, 4, 6] {
        for wraps in [false, true] {
            for mode in Mode::ALL {
                let whole = ranks(size).mode(mode).collect(|world| smooth(world, false, wraps))?;
                for world in worlds(size).into_iter().chain((mode == Mode::Auto).then(|| late(size))) {
                    let halves = world.mode(mode).collect(|world| smooth(world, true, wraps))?;
                    assert!(halves == whole, "{size} ranks, {mode}, wraps: {wraps}");
                }
            }
        }
    }
    Ok(())
}

/// Puts elements 0..4 of each rank to elements 4..8 of the next rank, and gets elements 8..10 of
/// the next rank into the rank's own elements 10..12.
#[superstep]
fn shift(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(0..4).to(next, 4..8)?;
    u.get(10..12).from(next, 8..10)
}

const PUT: u32 = line!() - 4;
const GET: u32 = line!() - 4;

#[test]
fn what_no_call_writes_is_lent_and_what_one_touches_is_refused_with_its_line() -> Result<()> {
    for world in worlds(3) {
        for mode in Mode::ALL {
            world.clone().mode(mode).run(|world| {
                let mut u = world.window::<u64>(16)?;
                let rank = world.rank() as u64;
                (0..16).for_each(|i| u[i] = 100 * rank + i as u64);
                let mut shift = shift::prepare(world)?;
                for step in 1..4u64 {
                    let before: Vec<u64> = u.to_vec();
                    let mut running = shift.begin(u)?;
                    for (elements, line) in
                        [(4..5, PUT), (0..16, PUT), (7..10, PUT), (11..16, GET), (3..12, PUT)]
                    {
                        let error = running.kept(elements.clone()).expect_err("a call writes some of them");
                        assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
                        assert_eq!(error.site().map(|site| site.line()), Some(line!() - 2));
                        let called = format!("{}:{line}", file!());
                        assert!(error.message().contains(&called), "{elements:?}: {error}");
                    }
                    for (elements, line) in
                        [(0..1, PUT), (3..4, PUT), (8..9, GET), (9..10, GET), (10..11, GET)]
                    {
                        let error =
                            running.kept_mut(elements.clone()).expect_err("a call touches some of them");
                        let called = format!("{}:{line}", file!());
                        assert!(error.message().contains(&called), "{elements:?}: {error}");
                        let reads = !(10..12).contains(&elements.start);
                        assert_eq!(error.message().contains("is read"), reads, "{error}");
                    }
                    for beyond in [12..17, 16..17, 12..usize::MAX, usize::MAX - 1..usize::MAX] {
                        let error = running.kept(beyond.clone()).expect_err("past the end");
                        assert_eq!(error.class(), ErrorClass::Disp, "{error}");
                        let error = running.kept_mut(beyond).expect_err("past the end");
                        assert_eq!(error.class(), ErrorClass::Disp, "{error}");
                    }
                    assert_eq!(running.kept(0..4)?, &before[0..4]);
                    assert_eq!(running.kept(8..10)?, &before[8..10]);
                    assert_eq!(running.kept(12..16)?, &before[12..16]);
                    assert!(running.kept(6..6)?.is_empty());
                    assert!(running.kept(usize::MAX..usize::MAX)?.is_empty());
                    running.kept_mut(12..16)?.iter_mut().for_each(|element| *element += step);
                    assert_eq!(running.kept(12..13)?, [before[12] + step]);
                    u = running.finish()?;
                    for i in 0..16 {
                        let (previous, next) = ((rank + 2) % 3, (rank + 1) % 3);
                        let expected = match i {
                            4..8 => 100 * previous + i - 4,
                            10..12 => 100 * next + i - 2,
                            12..16 => before[i as usize] + step,
                            _ => before[i as usize],
                        };
                        assert_eq!(u[i as usize], expected, "element {i} of rank {rank}");
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Puts the first two elements of `v` of each rank into `u` of the next rank.
#[superstep]
fn across(u: &mut Window<f32>, v: &mut Window<f32>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(v.section(0..2)).to(next, 2..4)
}

#[test]
fn of_several_windows_each_is_lent() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let (mut u, mut v) = (world.window::<f32>(6)?, world.window::<f32>(4)?);
            (u[1], v[1]) = (1.0, 2.0 + world.rank() as f32);
            let mut across = across::prepare(world)?;
            let mut running = across.begin(u, v)?;
            let (mut first, mut second) = running.each();
            let error = first.kept(1..3).expect_err("v is put there");
            assert!(error.class() == ErrorClass::RmaConflict && error.message().contains("2..4"), "{error}");
            assert_eq!(second.kept(0..4)?, [0.0, 2.0 + world.rank() as f32, 0.0, 0.0]);
            let error = second.kept_mut(1..2).expect_err("it is read");
            assert!(error.message().contains("is read"), "{error}");
            // Both supersteps are under way at once.
            let (read, written) = (second.kept(1..2)?, first.kept_mut(4..5)?);
            written.copy_from_slice(read);
            (u, v) = running.finish()?;
            assert_eq!(u[..], [0.0, 1.0, 0.0, 3.0 - world.rank() as f32, 2.0 + world.rank() as f32, 0.0]);
            v.copy_from_slice(&[0.5; 4]);
            // Some runs are replays, and the others are made in two halves.
            across.replay(&mut u, &mut v)?;
            let (u, _) = across.begin(u, v)?.finish()?;
            assert_eq!(u[2..4], [0.5; 2]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Runs two epochs. The second epoch puts the elements that arrived in the first.
#[superstep]
fn twice(u: &mut Window<u8>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    u.put(0..1).to(next, 1)?;
    u.fence()?;
    u.put(1..2).to(next, 2)?;
    u.fence()?;
    Ok(())
}

#[test]
fn of_several_epochs_the_last_is_begun() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u8>(4)?;
            u[0] = world.rank() as u8 + 1;
            let running = twice::prepare(world)?.begin(u)?;
            let (own, previous) = (world.rank() as u8 + 1, (world.rank() as u8 + 2) % 3 + 1);
            assert_eq!(running.kept(0..2)?, [own, previous]);
            let u = running.finish()?;
            assert_eq!(u[..], [own, previous, (world.rank() as u8 + 1) % 3 + 1, 0]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Uses everything that a plan does not contain: values, parts of slices, results, and tickets.
#[superstep]
fn tell(u: &mut Window<f64>, values: &[f64], by: usize) -> Result<(Ticket<f64>, f64)> {
    let to = (u.rank() + by) % u.size();
    u[0] += 0.5;
    u.put(values).to(to, 4)?;
    u.accumulate([0.25, u[0]], Op::Sum).to(to, 1)?;
    u.put((values, Datatype::elements([2, 0])?)).to(to, 10)?;
    let ticket = u.fetch(to, 7..10)?;
    Ok((ticket, u[0]))
}

/// Does the same as the superstep above, in a body with fences. The last fence ends the body.
#[superstep]
fn tell_twice(u: &mut Window<f64>, values: &[f64]) -> Result<Ticket<f64>> {
    let to = (u.rank() + 1) % u.size();
    u.put(values).to(to, 4)?;
    u.fence()?;
    let doubled = [2.0 * u[4], 2.0 * u[5], 2.0 * u[6]];
    u.put(&doubled).to(to, 7)?;
    let ticket = u.fetch(to, 4..5)?;
    u.fence()?;
    Ok(ticket)
}

/// A superstep whose body continues after its fence.
#[superstep]
fn ask(u: &mut Window<f64>, from: usize) -> Result<f64> {
    let ticket = u.fetch(from, 0)?;
    u.fence()?;
    u[11] = ticket.take()?[0];
    Ok(u[11] + u[0])
}

/// Returns each rank's tickets, results and window after some steps, in one piece or in two halves.
fn told(world: &World, halves: bool, leaves: bool) -> Result<Vec<Vec<u64>>> {
    let rank = world.rank();
    let mut u = world.window::<f64>(12)?;
    u.iter_mut().enumerate().for_each(|(i, element)| *element = (100 * rank + i) as f64);
    let by = world.size() - 1;
    let mut values = [0.5 + rank as f64, 2.5, -1.0];
    let mut tell = tell::prepare(world, &values, by)?;
    let mut twice = tell_twice::prepare(world, &values)?;
    let mut ask = ask::prepare(world, by)?;
    let mut all = Vec::new();
    for step in 0..3 {
        // Some ranks may run the superstep in halves while others run it in one piece.
        let halves = halves && (!leaves || (rank + step).is_multiple_of(2));
        let results = if halves {
            let running = tell.begin(u, &values, by)?;
            // The caller may now overwrite the values that were put, and use the elements that no
            // call touches.
            values.fill(f64::NAN);
            let own = running.kept(0..1)?[0];
            let (v, (ticket, result)) = running.finish()?;
            assert_eq!(own, result);
            values = [v[4] + 1.0, v[5], v[6]];
            let running = twice.begin(v, &values)?;
            let error = running.kept(6..8).expect_err("it is put there in the second epoch");
            assert!(error.class() == ErrorClass::RmaConflict && error.message().contains("7..10"), "{error}");
            let epochs_before: Vec<f64> = running.kept(4..7)?.to_vec();
            let (v, second) = running.finish()?;
            assert_eq!(v[4..7], epochs_before);
            let running = ask.begin(v, by)?;
            let (v, asked) = running.finish()?;
            u = v;
            [ticket.take()?, second.take()?, vec![result, asked]]
        } else {
            let (ticket, result) = tell.run(&mut u, &values, by)?;
            values = [u[4] + 1.0, u[5], u[6]];
            let second = twice.run(&mut u, &values)?;
            let asked = ask.run(&mut u, by)?;
            [ticket.take()?, second.take()?, vec![result, asked]]
        };
        all.extend(results.into_iter().chain([u.to_vec(), values.to_vec()]));
    }
    Ok(all.into_iter().map(|values| values.into_iter().map(f64::to_bits).collect()).collect())
}

#[test]
fn values_and_tickets_and_results_are_those_of_one_piece() -> Result<()> {
    for size in [1, 2, 3, 4] {
        for mode in Mode::ALL {
            let whole = ranks(size).mode(mode).collect(|world| told(world, false, false))?;
            for world in worlds(size) {
                for leaves in [false, true] {
                    let halves = world.clone().mode(mode).collect(|world| told(world, true, leaves))?;
                    assert!(halves == whole, "{size} ranks, {mode}, leaves {leaves}: {halves:?}");
                }
            }
        }
    }
    Ok(())
}

/// The second half fills tickets with the elements that the target had at the first half.
#[test]
fn a_ticket_has_its_elements_when_the_superstep_is_finished() -> Result<()> {
    #[superstep]
    fn fetch(u: &mut Window<u16>, slot: &std::cell::RefCell<Option<Ticket<u16>>>) -> Result<()> {
        let next = (u.rank() + 1) % u.size();
        let ticket = u.fetch(next, 0..2)?;
        slot.replace(Some(ticket));
        Ok(())
    }
    for world in worlds(3) {
        world.run(|world| {
            let mut u = world.window::<u16>(2)?;
            u.fill(world.rank() as u16 + 1);
            let slot = std::cell::RefCell::default();
            let running = fetch::prepare(world, &slot)?.begin(u, &slot)?;
            let ticket = slot.take().expect("the body has run");
            let early = ticket.take().expect_err("it has not arrived");
            assert_eq!(early.class(), ErrorClass::RmaSync, "{early}");
            running.finish()?;
            assert_eq!(ticket.take()?, [(world.rank() as u16 + 1) % 3 + 1; 2]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts values into `v`, which has another element type than `u`. The program defines the error
/// type.
#[superstep]
fn generic<T: Element, const N: usize>(
    u: &mut Window<T>,
    mut given: Vec<T>,
    v: &mut Window<u8>,
    #[uniform] twice: bool,
) -> std::result::Result<Vec<T>, Box<dyn std::error::Error>> {
    given.extend_from_within(..);
    if given.len() > 4 {
        return Err("too many".into());
    }
    let next = (u.rank() + 1) % u.size();
    u.put(&[T::zeroed(); N]).to(next, 0)?;
    v.put(vec![9u8; 2]).to(next, usize::from(twice))?;
    Ok(given)
}

#[test]
fn generic_supersteps_of_several_windows_are_split_too() -> Result<()> {
    for world in worlds(3) {
        world.run(|world| {
            let (mut u, mut v) = (world.window::<i32>(3)?, world.window::<u8>(3)?);
            u.fill(5);
            let mut prepared = generic::prepare::<i32, 2>(world, vec![1], true)?;
            for _ in 0..2 {
                let begun = prepared.begin(u, vec![1, 2], v, true);
                let mut running = begun.map_err(|error| Error::new(ErrorClass::Other, error.to_string()))?;
                let (mut first, second) = running.each();
                first.kept_mut(2..3)?[0] += 1;
                assert_eq!(second.kept(0..1)?, [0]);
                let given;
                ((u, v), given) = running.finish()?;
                assert_eq!(given, [1, 2, 1, 2]);
                assert_eq!((&u[..2], &v[..]), (&[0, 0][..], &[0, 9, 9][..]));
            }
            assert_eq!(u[2], 7);
            Ok(())
        })?;
    }
    Ok(())
}

#[superstep]
fn wrong_way(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.faces() {
        u.put(block.halo_of(&n)).to(n.rank, block.inner_edge(&n))?;
    }
    Ok(())
}

#[test]
fn rows_are_refused_of_another_block_and_of_a_superstep_that_writes_own_cells() -> Result<()> {
    for world in worlds(4) {
        world.run(|world| {
            let block = Block::new(world, [8, 8])?.halo(1)?;
            let larger = Block::new(world, [10, 8])?.halo(1)?;
            let u = world.window::<f64>(block.len())?;
            let mut exchange = exchange::prepare(world, &block)?;
            let running = exchange.begin(u)?;
            let error = running.inside(&larger).map(|_| ()).expect_err("another block");
            assert_eq!(error.class(), ErrorClass::Size, "{error}");
            assert!(error.message().contains(&larger.len().to_string()), "{error}");
            assert_eq!(running.inside(&block)?.map(|row| row.of().len()).sum::<usize>(), 4);
            let u = running.finish()?;
            let running = wrong_way::prepare(world, &block)?.begin(u)?;
            let error = running.inside(&block).map(|_| ()).expect_err("own cells are written");
            assert_eq!(error.class(), ErrorClass::RmaConflict, "{error}");
            assert!(error.message().contains(file!()), "{error}");
            running.finish().map(drop)
        })?;
    }
    Ok(())
}

/// Puts the lower half of rank 0 to the upper half of rank 1.
#[superstep]
fn hand_on(u: &mut Window<u64>) -> Result<()> {
    u.put(0..4096).to((u.rank() == 0).then_some(1), 4096..8192)
}

/// Each of two ranks puts its lower half to the upper half of the other rank.
#[superstep]
fn swap(u: &mut Window<u64>) -> Result<()> {
    u.put(0..4096).to(1 - u.rank(), 4096..8192)
}

/// One rank computes between the halves until it is notified that the other rank has finished.
fn computes_until_the_other_is_through(
    worlds: Vec<Ranks>,
    begin: impl Fn(&World, Window<u64>, &dyn Fn()) -> Result<Window<u64>> + Sync,
) -> Result<()> {
    for world in worlds {
        let (tell, told) = std::sync::mpsc::sync_channel::<()>(1);
        let told = std::sync::Mutex::new(told);
        world.run(|world| {
            let mut u = world.window::<u64>(8192)?;
            u.fill(world.rank() as u64 + 7);
            let compute = || {
                let told = told.lock().expect("no panic").recv_timeout(Duration::from_secs(60));
                told.expect("the other rank needs nothing more of this one");
            };
            let u = begin(world, u, &compute)?;
            if world.rank() == 1 {
                assert!(u[4096..].iter().all(|&element| element == 7));
                tell.send(()).expect("rank 0 listens");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// With packing, everything for which other ranks wait has left at the end of the first half. It
/// arrives without further calls.
#[test]
fn a_rank_that_computes_between_the_halves_keeps_nobody_waiting() -> Result<()> {
    for mode in [Mode::Aggressive, Mode::Aggregated, Mode::Pipelined] {
        let worlds = worlds(2).into_iter().chain([late(2)]).map(|world| world.mode(mode)).collect();
        computes_until_the_other_is_through(worlds, |world, u, compute| {
            let mut swap = swap::prepare(world)?;
            let running = swap.begin(u)?;
            if world.rank() == 0 {
                compute();
            }
            running.finish()
        })?;
    }
    Ok(())
}

/// If ranks reach each other's memory, copies to a rank that has already begun are also made in the
/// first half.
#[test]
fn copies_to_a_rank_that_has_begun_are_made_in_the_first_half() -> Result<()> {
    let worlds = worlds(2).into_iter().map(|world| world.mode(Mode::Direct)).collect();
    let begun = std::sync::Barrier::new(2);
    computes_until_the_other_is_through(worlds, |world, u, compute| {
        let mut hand_on = hand_on::prepare(world)?;
        if world.rank() == 1 {
            let running = hand_on.begin(u)?;
            begun.wait();
            return running.finish();
        }
        begun.wait();
        let running = hand_on.begin(u)?;
        compute();
        running.finish()
    })
}

/// Puts a source of any type.
#[superstep]
fn any_source<S: Source<f64>>(u: &mut Window<f64>, source: S, to: usize) -> Result<()> {
    u.put(source).to(to, 4..6)
}

/// Puts the result of a function. The result may be of any type.
#[superstep]
fn made(u: &mut Window<f64>, to: usize) -> Result<()> {
    u.put(&doubled(to)).to(to, 4..6)
}

fn doubled(to: usize) -> Vec<f64> {
    vec![2.0 * to as f64; 2]
}

/// The caller may choose whether a source is a section or values. Like `run`, `begin` accepts both.
#[test]
fn whatever_the_source_is_a_superstep_is_split() -> Result<()> {
    for world in worlds(2) {
        world.run(|world| {
            let mut u = world.window::<f64>(10)?;
            (0..10).for_each(|element| u[element] = element as f64);
            let other = 1 - world.rank();
            let values = vec![0.5, 1.5, 2.5];
            u = any_source::prepare(world, &values[..2], other)?.begin(u, &values[..2], other)?.finish()?;
            assert_eq!(u[4..6], [0.5, 1.5]);
            u = any_source::prepare(world, vec![3.5; 2], other)?.begin(u, vec![3.5; 2], other)?.finish()?;
            assert_eq!(u[4..6], [3.5; 2]);
            let picked = || (&values, Datatype::elements([2, 0]).unwrap());
            u = any_source::prepare(world, picked(), other)?.begin(u, picked(), other)?.finish()?;
            assert_eq!(u[4..6], [2.5, 0.5]);
            // The source is a section, which other ranks read. So between the halves the rank may
            // only read it.
            let mut sections = any_source::prepare(world, 0..2, other)?;
            for _ in 0..2 {
                let mut running = sections.begin(u, 0..2, other)?;
                assert_eq!(running.kept(0..2)?, [0.0, 1.0]);
                running.kept_mut(0..2).expect_err("it is read");
                u = running.finish()?;
                assert_eq!(u[4..6], [0.0, 1.0]);
                sections.replay(&mut u)?;
            }
            u = made::prepare(world, other)?.begin(u, other)?.finish()?;
            assert_eq!(u[4..6], [2.0 * world.rank() as f64; 2]);
            Ok(())
        })?;
    }
    Ok(())
}
