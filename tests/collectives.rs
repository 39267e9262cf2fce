//! Collectives on every transport, against plain loops over what every rank gives.

use fencepost::transport::SimConfig;
use fencepost::{Class, Op, Result, TransportKind, ValueAt, ranks};

fn transports() -> [TransportKind; 3] {
    let sim = TransportKind::Sim(SimConfig { seed: 7, ..SimConfig::default() });
    [TransportKind::Local, sim, TransportKind::TcpThreads]
}

#[test]
fn every_collective_gives_what_its_name_says() -> Result<()> {
    for transport in transports() {
        for size in [1, 2, 3, 5, 8] {
            ranks(size).transport(transport.clone()).run::<(), ()>(|world| {
                let me = world.rank();
                for root in 0..size {
                    let mut given = if me == root { [root as i32 + 5, 7] } else { [0, 0] };
                    world.broadcast(root, &mut given)?;
                    assert_eq!(given, [root as i32 + 5, 7]);
                    let sum = world.reduce(root, &[me as u64, 1], Op::Sum)?;
                    assert_eq!(sum, (me == root).then(|| vec![(size * (size - 1) / 2) as u64, size as u64]));
                    let all = world.gather(root, &vec![me as u8; me])?;
                    assert_eq!(all, (me == root).then(|| (0..size).map(|r| vec![r as u8; r]).collect()));
                }
                let mut best = [ValueAt { value: (me as f64 - 1.0).abs(), index: me as i64 }];
                world.allreduce(&mut best, Op::MinLoc)?;
                assert_eq!(best[0].index, if size == 1 { 0 } else { 1 });
                let mut prefix = [me as i64 + 1];
                world.scan(&mut prefix, Op::Prod)?;
                assert_eq!(prefix[0], (1..=me as i64 + 1).product::<i64>());
                assert_eq!(
                    world.allgather(&[me as u16])?,
                    (0..size).map(|r| vec![r as u16]).collect::<Vec<_>>()
                );
                let lists: Vec<Vec<u32>> = (0..size).map(|to| vec![me as u32; to]).collect();
                let got = world.all_to_all(&lists)?;
                assert_eq!(got, (0..size).map(|from| vec![from as u32; me]).collect::<Vec<_>>());
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// 0.1 + 0.2 + 0.3 depends on the order: every rank and transport must take the same tree.
#[test]
fn floating_sums_have_the_same_bits_on_every_rank_and_transport() -> Result<()> {
    for size in 1..=9 {
        let mut seen: Vec<u64> = Vec::new();
        for transport in transports() {
            let bits: Vec<u64> = ranks(size).transport(transport).run(|world| {
                let mut x = [0.1 * (world.rank() as f64 + 1.0).powi(3)];
                world.allreduce(&mut x, Op::Sum)?;
                Ok(x[0].to_bits())
            })?;
            seen.extend(bits);
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{size} ranks: {seen:x?}");
    }
    Ok(())
}

#[test]
fn different_roots_are_different_calls() {
    let error =
        ranks(2).run::<(), ()>(|world| world.broadcast(world.rank(), &mut [0u8])).expect_err("two roots");
    assert_eq!(error.class(), Class::RmaSync, "{error}");
    let error =
        ranks(2).run::<(), ()>(|world| world.allreduce(&mut [0.5], Op::Band)).expect_err("no bits in floats");
    assert_eq!(error.class(), Class::Op, "{error}");
}

#[test]
fn a_divided_world_goes_on_by_itself() -> Result<()> {
    for transport in transports() {
        let sums: Vec<i64> = ranks(5).transport(transport).run(|world| {
            let colour = (world.rank() != 4).then_some(world.rank() as u32 % 2);
            let Some(half) = world.split(colour, -(world.rank() as i64))? else { return Ok(-1) };
            let mut u = half.window::<i64>(2)?;
            // Keys are negative ranks, so the order is turned round.
            assert_eq!(half.rank(), 1 - world.rank() / 2);
            u.put([world.rank() as i64]).to((half.rank() + 1) % half.size(), 1)?;
            u.fence()?;
            let mut sum = [u[1]];
            half.allreduce(&mut sum, Op::Sum)?;
            Ok(sum[0])
        })?;
        assert_eq!(sums, [2, 4, 2, 4, -1]);
    }
    Ok(())
}
