//! Tests of how operations are collected: as records or as descriptions.

use super::*;
use crate::api::run::ranks;
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use fencepost_planner::element::Op;
use fencepost_planner::machine::Machine;

/// Returns the number of records and of datatype operations that wait for a rank.
fn collected(u: &Window<u64>, target: usize) -> (usize, usize) {
    u.core().outbox(target, |outbox| (outbox.records.len(), outbox.wide.len()))
}

#[test]
fn elements_next_to_each_other_are_a_run_where_the_target_reads_records_in_place() {
    use TransportKind::{Local, ShmThreads, TcpThreads};
    // The machine reads the memory of other ranks so fast that only few elements are worth copying.
    let mut near = Machine::default();
    near.moving.remote = 0.03;
    for (transport, reached) in [(Local, true), (ShmThreads, true), (TcpThreads, false)] {
        let run = |world: &World| {
            let mut u = world.window::<u64>(1000)?;
            let (few, other) = (u.core().filling.few, 1 - world.rank());
            assert!((20..150).contains(&few));
            for (i, element) in u[..200].iter_mut().enumerate() {
                *element = (1000 * (1 + world.rank()) + i) as u64;
            }
            let collects = |records, wide| {
                let expected = if reached { (records, wide) } else { (0, 0) };
                let found = if reached { collected(&u, other) } else { (0, 0) };
                assert_eq!(found, expected, "{transport:?}");
            };
            let all = 1 + few.div_ceil(2);
            u.put(1..1 + few).to(other, 300)?;
            collects(all, 0);
            u.put(Datatype::run(1..4)).to(other, 450..453)?;
            u.put(&u[5..8]).to(other, 453)?;
            u.accumulate(0..2, Op::Sum).to(other, 450)?;
            collects(all + 8, 0);
            u.put(0..3).mode(Mode::Aggregated).to(other, 600)?;
            collects(all + 11, 0);
            u.put(0..1 + few).to(other, 800)?;
            collects(all + 12, 1);
            u.put(Datatype::elements([2, 1, 0]).unwrap()).to(other, 603)?;
            u.put(0..3).to(other, Datatype::elements([608, 607, 606]).unwrap())?;
            collects(all + 14, 3);
            u.put(2..3).to(other, 700..701)?;
            u.accumulate(&u[3..5], Op::Sum).to(other, 700)?;
            collects(all + 17, 3);
            for wrong in [u.put(999..1001).to(other, 0), u.put(0..2).to(other, 999), u.put(0..2).to(2, 0)] {
                assert!(wrong.is_err());
            }
            assert!(u.put(0..2).to(other, 0..3).is_err());
            collects(all + 17, 3);
            u[1] += 7; // read as the fence is entered
            u.fence()?;
            let from = |i: usize| (1000 * (1 + other) + i) as u64 + if i == 1 { 7 } else { 0 };
            assert!((1..1 + few).all(|i| u[299 + i] == from(i)));
            assert_eq!(
                u[450..456],
                [from(1) + from(0), from(2) + from(1), from(3), from(5), from(6), from(7)]
            );
            assert!((0..=few).all(|i| u[800 + i] == from(i)));
            assert_eq!(u[600..606], [0, 1, 2, 2, 1, 0].map(from));
            assert_eq!(u[606..609], [2, 1, 0].map(from));
            assert_eq!(u[700..702], [from(2) + from(3), from(4)]);
            Ok(())
        };
        ranks(2).transport(transport.clone()).machine(near).run(run).expect("no panic");
    }
}

#[test]
fn sections_of_one_other_window_are_records_that_are_read_at_the_fence() {
    use TransportKind::{Local, ShmThreads, TcpThreads};
    for (transport, reached) in [(Local, true), (ShmThreads, true), (TcpThreads, false)] {
        let run = |world: &World| {
            let [mut u, mut v, mut w] = [(); 3].map(|()| world.window::<u64>(100).expect("memory"));
            let other = 1 - world.rank();
            let collects = |u: &Window<u64>, records, wide| {
                let expected = if reached { (records, wide) } else { (0, 0) };
                let found = if reached { collected(u, other) } else { (0, 0) };
                assert_eq!(found, expected, "{transport:?}");
            };
            for (window, of) in [(&mut u, 1), (&mut v, 2), (&mut w, 3)] {
                for (i, element) in window.iter_mut().enumerate() {
                    *element = (1000 * (10 * world.rank() + of) + i) as u64;
                }
            }
            u.put(v.section(5..6)).to(other, 50)?;
            u.put(v.section(10..13)).to(other, 51)?;
            u.accumulate(v.section(7..8), Op::Sum).to(other, 50)?;
            collects(&u, 1 + 3 + 1, 0);
            // If an epoch has sections of two other windows, the sections of the second window are
            // described.
            u.put(w.section(20..21)).to(other, 60)?;
            u.put(3..4).to(other, 61)?;
            collects(&u, 7, 2);
            for wrong in [v.section(99..101), v.section(100..101)] {
                assert!(u.put(wrong).to(other, 0).is_err());
            }
            assert!(u.put(v.section(0..1)).to(other, 100).is_err());
            collects(&u, 7, 2);
            v[11] += 7;
            u[3] += 7;
            world.fence((&mut u, &mut v, &mut w))?;
            let from = |of: usize, i: usize| (1000 * (10 * other + of) + i) as u64;
            assert_eq!(u[50..54], [from(2, 5) + from(2, 7), from(2, 10), from(2, 11) + 7, from(2, 12)]);
            assert_eq!(u[60..62], [from(3, 20), from(1, 3) + 7]);
            // The next epoch may use sections of `u` itself, and of another window than before.
            u.put(4..5).to(other, 70)?;
            u.put(w.section(8..9)).to(other, 71)?;
            collects(&u, 2, 1);
            world.fence((&mut u, &mut w))?;
            assert_eq!(u[70..72], [from(1, 4), from(3, 8)]);
            u.put(w.section(9..10)).to(other, 72)?;
            let error = u.fence().expect_err("w is not in the fence");
            assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
            world.barrier()?;
            u.put(w.section(9..10)).to(other, 72)?;
            world.fence((&mut u, &mut w))?;
            assert_eq!(u[72], from(3, 9));
            Ok(())
        };
        ranks(2).transport(transport.clone()).run(run).expect("no panic");
    }
}

#[test]
fn runs_have_elements_of_every_size() -> Result<()> {
    fn check<const N: usize>(transport: &TransportKind) -> Result<()>
    where
        [u8; N]: Element,
    {
        ranks(2).transport(transport.clone()).run(|world| {
            let (me, other) = (world.rank(), 1 - world.rank());
            let mut u = world.window::<[u8; N]>(64)?;
            for count in 1..9 {
                for (i, element) in u[..32].iter_mut().enumerate() {
                    *element = [(100 * me + i * N + count) as u8; N];
                }
                let values = u[10..10 + count].to_vec();
                u.put(1..1 + count).to(other, 32)?;
                u.put(&values).to(other, 48)?;
                u.fence()?;
                for i in 0..count {
                    let from = |at: usize| [(100 * other + at * N + count) as u8; N];
                    assert_eq!((u[32 + i], u[48 + i]), (from(1 + i), from(10 + i)), "{N} bytes");
                }
            }
            Ok(())
        })
    }
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        check::<1>(&transport)?;
        check::<3>(&transport)?;
        check::<8>(&transport)?;
        check::<16>(&transport)?;
        check::<24>(&transport)?;
    }
    Ok(())
}

/// Where memory is reached, sections that are exposed are read in the order of their descriptions.
#[test]
fn a_run_before_an_exposed_section_is_described_before_it() {
    for transport in [TransportKind::Local, TransportKind::ShmThreads] {
        let run = |world: &World| {
            let mut u = world.window::<u64>(9000)?;
            let other = 1 - world.rank();
            for epoch in 0..3 {
                u[..4000].iter_mut().enumerate().for_each(|(i, element)| *element = (epoch * i) as u64);
                let values = [epoch as u64 + 7; 40];
                u.put(&values).to(other, 8000)?;
                u.put(0..4000).mode(Mode::Direct).to(other, 4000)?;
                u.put(&values[..20]).to(other, 4000)?;
                u.accumulate(1..2, Op::Sum).to(other, 8000)?;
                u.fence()?;
                assert!((20..4000).all(|i| u[4000 + i] == (epoch * i) as u64));
                assert!(u[4000..4020].iter().chain(&u[8001..8040]).all(|&element| element == values[0]));
                assert_eq!(u[8000], values[0] + epoch as u64);
            }
            Ok(())
        };
        ranks(2).transport(transport).run(run).expect("no panic");
    }
}

/// Random bits choose one of two windows and one of three destination elements for each get. In
/// every third epoch, one window is first fenced alone.
#[test]
fn gets_of_several_windows_land_in_program_order() {
    let run = |world: &World| -> Result<()> {
        let (me, size) = (world.rank(), world.size());
        let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
        let of = |window: usize, rank: usize| (100 * (1 + window) + rank) as u64;
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for epoch in 0..200 {
            (u[7], v[7]) = (of(0, me), of(1, me));
            let mut expected = [0; 3];
            u[..3].fill(0);
            bits = bits.rotate_left(7).wrapping_mul(0xd134_2543_de82_ef95) + 1;
            if epoch % 3 == 0 {
                // The get of `v` stays collected while `u` is fenced, and happens before the later
                // gets of `u`.
                v.get(u.section(0..1)).from(me, 7)?;
                u.get(1..2).from((me + 1) % size, 7)?;
                u.fence()?;
                (expected[0], expected[1]) = (of(1, me), of(0, (me + 1) % size));
            }
            for i in 0..epoch % 7 {
                let (window, lands, target) =
                    ((bits >> i & 1) as usize, (bits >> (10 + 2 * i) & 3) as usize % 3, (epoch + i) % size);
                expected[lands] = of(window, target);
                match window {
                    0 if i % 2 == 0 => u.get(lands..lands + 1).from(target, 7)?,
                    // A get of more than one element does not take the fast path.
                    0 => {
                        u.get(lands..lands + 2).from(target, 6)?;
                        (expected[lands], expected[(lands + 1).min(2)]) = (0, of(0, target));
                        if lands == 2 {
                            expected[2] = 0;
                        }
                    }
                    _ => v.get(u.section(lands..lands + 1)).from(target, 7)?,
                }
            }
            world.fence((&mut u, &mut v))?;
            assert_eq!(u[..3], expected, "epoch {epoch}");
        }
        Ok(())
    };
    ranks(3).run(run).expect("no panic");
}
