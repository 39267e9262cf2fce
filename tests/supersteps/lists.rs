//! Supersteps over lists of windows. On every transport, they have the same results, bit for bit,
//! as one superstep for each window.

use fencepost::prelude::*;
use fencepost::{World, ranks};
use fencepost_tests_worlds::transports::transports;

/// More windows than a superstep may take as separate parameters.
const FIELDS: usize = 7;

#[superstep]
fn exchange(fields: &mut [Window<f64>; 7], block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        for field in fields.iter_mut() {
            field.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
        }
    }
    Ok(())
}

#[superstep]
fn of_one(field: &mut Window<f64>, block: &Block<2>) -> Result<()> {
    for n in block.neighbours() {
        field.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// Uses a list of windows, between other windows, in all possible ways.
#[superstep]
fn mixed(
    first: &mut Window<u64>,
    list: &mut [Window<u64>; 3],
    last: &mut Window<u64>,
    to: usize,
) -> Result<()> {
    let far = list.len() + 1;
    for (i, window) in list.iter_mut().enumerate() {
        if i != 1 {
            window.put(0..1).to(to, far + i)?;
        }
    }
    for each in list {
        each.accumulate(first.section(1..2), Op::Sum).to(to, 2)?;
    }
    list[1].put(last.section(0..2)).to(to, 4)?;
    first.put(list[2].section(0..1)).to(to, 3)?;
    last.put(0..1).to(to, far)
}

fn fields(world: &World, block: &Block<2>) -> Result<[Window<f64>; FIELDS]> {
    let mut fields = Vec::new();
    for number in 0..FIELDS {
        let mut field = world.window(block.len())?;
        block.fill(&mut field, |[i, j]| (100 * number + 10 * i + j) as f64);
        fields.push(field);
    }
    Ok(fields.try_into().unwrap_or_else(|_| panic!("seven")))
}

#[test]
fn a_list_of_windows_is_exchanged_as_its_windows_are() -> Result<()> {
    for transport in transports([3]) {
        ranks(4).transport(transport.clone()).run(|world| {
            let block = Block::new(world, [9, 8])?.halo(2)?.periodic([true; 2]);
            let mut expected = fields(world, &block)?;
            for field in &mut expected {
                of_one(field, &block)?;
            }
            let expected = expected.map(|field| field.to_vec());
            let same = |fields: &[Window<f64>; FIELDS], how: &str| {
                let found = fields.each_ref().map(|field| field.to_vec());
                assert!(found == expected, "{transport:?}, {how}");
            };
            let mut plain = fields(world, &block)?;
            exchange(&mut plain, &block)?;
            same(&plain, "called");
            let mut fenced = fields(world, &block)?;
            for field in &mut fenced {
                for n in block.neighbours() {
                    field.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
                }
            }
            world.fence(&mut fenced)?;
            same(&fenced, "without the attribute");
            let mut prepared = exchange::prepare(world, &block)?;
            let mut run = fields(world, &block)?;
            prepared.run(&mut run, &block)?;
            same(&run, "prepared");
            let mut replayed = fields(world, &block)?;
            prepared.replay(&mut replayed)?;
            same(&replayed, "replayed");
            let running = prepared.begin(fields(world, &block)?)?;
            same(&running.finish()?, "in two halves");
            Ok(())
        })?;
    }
    let compiled = exchange::compile(4, |rank| Block::at(rank, 4, [9, 8])?.halo(2))?;
    assert_eq!(compiled.patterns()[0].windows.len(), FIELDS);
    Ok(())
}

#[test]
fn a_list_stands_between_other_windows() -> Result<()> {
    for transport in transports([5]) {
        ranks(3).transport(transport.clone()).run(|world| {
            let (me, to) = (world.rank() as u64, (world.rank() + 1) % 3);
            let from = (me + 2) % 3;
            let window =
                |number: u64, rank: u64| (0..9).map(|i| 1000 * number + 100 * rank + i).collect::<Vec<u64>>();
            let made = |number: u64| -> Result<Window<u64>> {
                let mut made = world.window::<u64>(9)?;
                made.copy_from_slice(&window(number, me));
                Ok(made)
            };
            let of_all = || -> Result<_> { Ok((made(0)?, [made(1)?, made(2)?, made(3)?], made(4)?)) };
            let mut expected: Vec<Vec<u64>> = (0..5).map(|number| window(number, me)).collect();
            let theirs = |number: u64| window(number, from);
            (expected[1][4], expected[3][6]) = (theirs(1)[0], theirs(3)[0]);
            expected[1..4].iter_mut().for_each(|list| list[2] += theirs(0)[1]);
            expected[2][4..6].copy_from_slice(&theirs(4)[0..2]);
            expected[0][3] = theirs(3)[0];
            expected[4][4] = theirs(4)[0];
            let same = |first: &[u64], list: &[Window<u64>; 3], last: &[u64], how: &str| {
                let found = [first, &list[0], &list[1], &list[2], last];
                assert!(
                    found.iter().zip(&expected).all(|(found, expected)| *found == expected),
                    "{transport:?}, {how}: {found:?}"
                );
            };
            let (mut first, mut list, mut last) = of_all()?;
            mixed(&mut first, &mut list, &mut last, to)?;
            same(&first, &list, &last, "called");
            let mut prepared = mixed::prepare(world, to)?;
            let (mut first, mut list, mut last) = of_all()?;
            prepared.replay(&mut first, &mut list, &mut last)?;
            same(&first, &list, &last, "replayed");
            let (first, list, last) = of_all()?;
            let (first, list, last) = prepared.begin(first, list, last)?.finish()?;
            same(&first, &list, &last, "in two halves");
            Ok(())
        })?;
    }
    Ok(())
}
