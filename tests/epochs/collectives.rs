//! Collectives on every transport, compared with plain loops over the elements of every rank.

use fencepost::grid::Block;
use fencepost::transport::{Lose, SimConfig};
use fencepost::{
    Census, Element, Error, ErrorClass, Mode, Op, Order, Result, TransportKind, ValueAt, World, ranks,
};
use fencepost_tests_support::cases::{cases, every_case};
use fencepost_tests_worlds::ends::ends;
use fencepost_tests_worlds::transports::transports;

/// Returns each kind of transport between threads, with each census.
fn each() -> impl Iterator<Item = (TransportKind, Census)> {
    transports([7]).into_iter().flat_map(|transport| Census::ALL.map(|census| (transport.clone(), census)))
}

/// Returns a sample of the pairs of [`each`] for a slow test: each transport with one census.
/// Returns all pairs if every case is to be tried. Three tests with different values of `turn`
/// together try each transport with each census.
fn sampled(turn: usize) -> impl Iterator<Item = (TransportKind, Census)> {
    let censuses = Census::ALL.len();
    let is_sampled = move |at: usize| every_case() || at % censuses == (at / censuses + turn) % censuses;
    each().enumerate().filter(move |(at, _)| is_sampled(*at)).map(|(_, pair)| pair)
}

#[test]
fn every_collective_returns_what_its_name_states() -> Result<()> {
    for (transport, census) in each() {
        for size in [1, 2, 3, 5, 9] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
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
                assert_eq!(world.allreduce_one(me as u32 + 1, Op::Max)?, size as u32);
                for root in 0..size {
                    let mut list = if me == root { vec![root as u16; 3 * root] } else { vec![9] };
                    world.broadcast_vec(root, &mut list)?;
                    assert_eq!(list, vec![root as u16; 3 * root]);
                }
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

#[test]
fn an_array_in_blocks_is_gathered_and_scattered() -> Result<()> {
    fn there_and_back<const D: usize>(world: &World, root: usize, block: &Block<D>) -> Result<()> {
        let expected: Vec<u64> =
            (0..block.global().iter().product::<usize>() as u64).map(|i| 7 * i + 1).collect();
        let mut cells = vec![0; block.len()];
        let all = if world.rank() == root { &expected[..] } else { &[] };
        world.scatter_block(root, block, all, &mut cells)?;
        let mut filled = vec![0; block.len()]; // the halo is unchanged
        let global = block.global();
        block.fill(&mut filled, |cell| expected[(0..D).fold(0, |at, d| at * global[d] + cell[d])]);
        let own: Vec<_> = block.rows().flat_map(|row| row.range()).collect();
        assert!(
            (0..cells.len()).all(|i| cells[i] == if own.contains(&i) { filled[i] } else { 0 }),
            "{block:?}"
        );
        let back = world.gather_block(root, block, &cells)?;
        assert_eq!(back, (world.rank() == root).then_some(expected));
        Ok(())
    }
    for (transport, census) in sampled(0) {
        for size in [1, 2, 5, 6] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                for root in [0, size - 1] {
                    there_and_back(world, root, &Block::new(world, [23])?.halo(2)?)?;
                    there_and_back(
                        world,
                        root,
                        &Block::new(world, [11, 9])?.halos([1, 0])?.periodic([true; 2]),
                    )?;
                    there_and_back(world, root, &Block::new(world, [6, 5, 7])?.star(1)?)?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn a_block_that_is_not_of_its_rank_or_its_storage_is_refused() -> Result<()> {
    for transport in transports([7]) {
        let refused =
            |class, words: &str, call: &(dyn Fn(&World, &Block<1>) -> Result<()> + Sync)| -> Result<()> {
                let errors = ranks(2).transport(transport.clone()).collect(|world| {
                    let block = Block::new(world, [10])?.halo(1)?;
                    let error = call(world, &block).expect_err(words);
                    world.barrier()?; // the world goes on
                    Ok((error.class(), error.message().to_owned()))
                })?;
                // If ranks cut an array differently, all ranks get an error. Any other mistake is
                // an error only on the rank that made it.
                let is_told = |(found, text): &(ErrorClass, String)| *found == class && text.contains(words);
                assert!(errors.iter().any(is_told), "{words}: {errors:?}");
                let all = class != ErrorClass::RmaSync || errors.iter().all(is_told);
                assert!(all, "{words}: {errors:?}");
                Ok(())
            };
        refused(ErrorClass::Arg, "not the one of rank", &|world, block| {
            world.gather_block(0, &block.of(0)?, &vec![0u8; block.len()]).map(drop)
        })?;
        refused(ErrorClass::Size, "its halo included", &|world, block| {
            world.scatter_block(0, block, &[0u8; 10], &mut vec![0; block.len() - 1])
        })?;
        refused(ErrorClass::Size, "give all of them", &|world, block| {
            world.scatter_block(1, block, &[0u8; 9], &mut vec![0; block.len()])
        })?;
        refused(ErrorClass::RmaSync, "[4, 4] cells over [1, 2] ranks", &|world, _| {
            // All ranks have the same number of cells, but the array is cut in different
            // directions.
            let block = Block::new(world, [4, 4])?.grid(if world.rank() == 0 { [2, 1] } else { [1, 2] })?;
            world.gather_block(0, &block, &[0u8; 8]).map(drop)
        })?;
        refused(ErrorClass::RmaSync, "[10] cells over [2] ranks, elements of u8", &|world, block| {
            let block = if world.rank() == 0 { block.clone() } else { Block::new(world, [12])? };
            world.gather_block(0, &block, &vec![0u8; block.len()]).map(drop)
        })?;
    }
    Ok(())
}

/// The value of 0.1 + 0.2 + 0.3 depends on the order of the additions, so every rank and transport
/// must use the same tree.
#[test]
fn floating_sums_have_the_same_bits_on_every_rank_and_transport() -> Result<()> {
    for size in 1..=9 {
        let mut seen: Vec<u64> = Vec::new();
        for (transport, census) in each() {
            let bits: Vec<u64> = ranks(size).transport(transport).census(census).collect(|world| {
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
    let error = ranks(2).run(|world| world.broadcast(world.rank(), &mut [0u8])).expect_err("two roots");
    assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
    let error = ranks(2).run(|world| world.allreduce(&mut [0.5], Op::Band)).expect_err("no bits in floats");
    assert_eq!(error.class(), ErrorClass::Op, "{error}");
}

#[test]
fn a_divided_world_goes_on_by_itself() -> Result<()> {
    for (transport, census) in each() {
        let sums: Vec<i64> = ranks(5).transport(transport).census(census).collect(|world| {
            let colour = (world.rank() != 4).then_some(world.rank() as u32 % 2);
            let Some(half) = world.split(colour, -(world.rank() as i64))? else { return Ok(-1) };
            let mut u = half.window::<i64>(2)?;
            // The keys are negative ranks, so the order is reversed.
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

/// An element type, with the elements that each rank contributes, and with the operators as plain
/// code.
trait Number: Element + PartialEq + std::fmt::Debug {
    fn given(rank: usize, i: usize) -> Self;
    fn combine(op: Op, a: Self, b: Self) -> Option<Self>;
    /// Returns the bits of the value, for comparisons.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn given(rank: usize, i: usize) -> Self {
                ((rank * 7 + i * 3) % 11) as $type
            }
            fn combine(op: Op, a: Self, b: Self) -> Option<Self> {
                Some(match op {
                    Op::Sum => a.wrapping_add(b),
                    Op::Prod => a.wrapping_mul(b),
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                    Op::Band => a & b,
                    Op::Bor => a | b,
                    Op::Bxor => a ^ b,
                    Op::Land => (a != 0 && b != 0) as $type,
                    Op::Lor => (a != 0 || b != 0) as $type,
                    Op::Lxor => ((a != 0) != (b != 0)) as $type,
                    Op::Replace => b,
                    Op::MinLoc | Op::MaxLoc | Op::NoOp => return None,
                })
            }
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
integers!(u8 i64);

impl Number for f64 {
    fn given(rank: usize, i: usize) -> Self {
        0.1 * (rank as f64 + 1.0).powi(3) - i as f64 * 1e-3
    }
    fn combine(op: Op, a: Self, b: Self) -> Option<Self> {
        Some(match op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::Replace => b,
            _ => return None,
        })
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Number for ValueAt<f32, i32> {
    fn given(rank: usize, i: usize) -> Self {
        ValueAt { value: ((rank + i) % 4) as f32, index: rank as i32 }
    }
    fn combine(op: Op, a: Self, b: Self) -> Option<Self> {
        let (first, second) = if a.index <= b.index { (a, b) } else { (b, a) };
        Some(match op {
            Op::MinLoc => {
                if second.value < first.value {
                    second
                } else {
                    first
                }
            }
            Op::MaxLoc => {
                if second.value > first.value {
                    second
                } else {
                    first
                }
            }
            Op::Replace => b,
            _ => return None,
        })
    }
    fn bits(self) -> u64 {
        u64::from(self.value.to_bits()) << 32 | u64::from(self.index as u32)
    }
}

fn given<T: Number>(rank: usize, len: usize) -> Vec<T> {
    (0..len).map(|i| T::given(rank, i)).collect()
}

fn combine<T: Number>(op: Op, into: &mut [T], from: &[T]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a = T::combine(op, *a, *b).unwrap());
}

/// Combines the parts in the balanced tree that defines reductions. The results of all reductions
/// must have the same bits.
fn tree<T: Number>(parts: &[Vec<T>], op: Op) -> Vec<T> {
    match parts {
        [one] => one.clone(),
        many => {
            let (left, right) = many.split_at(many.len().div_ceil(2));
            let mut left = tree(left, op);
            combine(op, &mut left, &tree(right, op));
            left
        }
    }
}

fn bits<T: Number>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|element| element.bits()).collect()
}

/// Compares every collective of arrays of this length with plain loops.
fn against_loops<T: Number>(world: &World, len: usize, roots: &[usize]) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let parts: Vec<Vec<T>> = (0..size).map(|rank| given(rank, len)).collect();
    let mine = &parts[me];
    let what =
        |name: &str| format!("{name}: rank {me} of {size}, {len} elements of {}", std::any::type_name::<T>());
    let ops = || Op::ALL.into_iter().filter(|&op| T::combine(op, T::given(0, 0), T::given(0, 0)).is_some());
    let plain = parts.concat();
    for &root in roots {
        let mut elements = mine.clone();
        world.broadcast(root, &mut elements)?;
        assert_eq!(bits(&elements), bits(&parts[root]), "{}", what("broadcast"));
        let mut all = if me == root { vec![T::zeroed(); size * len] } else { Vec::new() };
        world.gather_into(root, mine, &mut all)?;
        assert_eq!(bits(&all), bits(if me == root { &plain } else { &[] }), "{}", what("gather_into"));
        let all = world.gather(root, mine)?;
        assert_eq!(
            all.map(|all| bits(&all.concat())),
            (me == root).then(|| bits(&plain)),
            "{}",
            what("gather")
        );
        // To save time, all operators are tried with the first root only.
        for op in ops().filter(|&op| root == roots[0] || matches!(op, Op::Sum | Op::Replace)) {
            let sum = world.reduce(root, mine, op)?;
            let expected = (me == root).then(|| bits(&tree(&parts, op)));
            assert_eq!(sum.map(|sum| bits(&sum)), expected, "{} {op} to {root}", what("reduce"));
        }
    }
    for op in ops() {
        let mut elements = mine.clone();
        world.allreduce(&mut elements, op)?;
        assert_eq!(bits(&elements), bits(&tree(&parts, op)), "{} {op}", what("allreduce"));
        let mut elements = mine.clone();
        world.scan(&mut elements, op)?;
        let mut expected = parts[0].clone();
        parts[1..].iter().take(me).for_each(|part| combine(op, &mut expected, part));
        assert_eq!(bits(&elements), bits(&expected), "{} {op}", what("scan"));
    }
    let mut all = vec![T::zeroed(); size * len];
    world.allgather_into(mine, &mut all)?;
    assert_eq!(bits(&all), bits(&plain), "{}", what("allgather_into"));
    assert_eq!(
        world.allgather(mine)?.iter().map(|part| bits(part)).collect::<Vec<_>>(),
        parts.iter().map(|part| bits(part)).collect::<Vec<_>>(),
        "{}",
        what("allgather")
    );
    // Rank a sends to rank b the elements that [`given`] returns for the number a + 2 b.
    let lists: Vec<Vec<T>> = (0..size).map(|to| given(me + 2 * to, len)).collect();
    let expected: Vec<T> = (0..size).flat_map(|from| given(from + 2 * me, len)).collect();
    world.all_to_all_into(&lists.concat(), &mut all)?;
    assert_eq!(bits(&all), bits(&expected), "{}", what("all_to_all_into"));
    assert_eq!(bits(&world.all_to_all(&lists)?.concat()), bits(&expected), "{}", what("all_to_all"));
    Ok(())
}

/// Returns the sizes of the worlds that are tried.
fn sizes() -> &'static [usize] {
    if every_case() { &[1, 2, 3, 4, 5, 6, 7, 8, 9] } else { &[1, 2, 9] }
}

#[test]
fn short_arrays_of_every_type_and_operator_match_plain_loops_for_every_size_and_root() -> Result<()> {
    for (transport, census) in sampled(1) {
        for &size in sizes() {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                let roots: Vec<usize> = (0..size).collect();
                for len in [0, 1, 5] {
                    against_loops::<f64>(world, len, &roots)?;
                    against_loops::<u8>(world, len, &roots)?;
                    against_loops::<i64>(world, len, &roots[size - 1..])?;
                    against_loops::<ValueAt<f32, i32>>(world, len, &roots[size / 2..=size / 2])?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Lengths of arrays that are so long that each algorithm of each collective is used. A test below
/// checks this.
const LONG: [usize; 3] = [60, 503, 3001];
/// The longest length. It is tried only with 2 to 4 ranks that reach each other's memory.
const LONGEST: usize = 150_001;

#[test]
fn long_arrays_match_plain_loops_for_every_size_and_root() -> Result<()> {
    for (transport, census) in sampled(0) {
        for &size in sizes() {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                let roots: Vec<usize> = (0..size).collect();
                against_loops::<f64>(world, LONG[0], &roots)?;
                against_loops::<f64>(world, LONG[1], &roots[size / 2..=size / 2])?;
                against_loops::<f64>(world, LONG[2], &roots[size - 1..])?;
                against_loops::<u8>(world, 6011, &roots[..1])
            })?;
        }
    }
    for size in [2, 3, 4] {
        ranks(size).run(|world| against_loops::<f64>(world, LONGEST, &[size - 1]))?;
    }
    Ok(())
}

/// The arrays have more bytes than ranks expose to each other. So plans move these arrays, even in
/// shared memory.
#[test]
fn what_is_too_long_to_be_shown_is_planned() -> Result<()> {
    const LEN: usize = (8 << 20) + 1;
    ranks(3).run(|world| {
        let (me, part) = (world.rank(), |rank: usize| -> Vec<u8> { given(rank, LEN) });
        let mut elements = part(me);
        world.broadcast(1, &mut elements)?;
        assert!(elements == part(1));
        world.allreduce(&mut elements, Op::Bxor)?;
        assert!(elements == part(1), "of three equal ones");
        let mut all = vec![0; 3 * LEN];
        world.allgather_into(&part(me), &mut all)?;
        assert!((0..3).all(|rank| all[rank * LEN..][..LEN] == part(rank)));
        Ok(())
    })
}

/// A rank that is ahead exposes the elements of the next call while other ranks still read the
/// elements of the previous call.
#[test]
fn what_is_shown_stays_as_it_is_until_all_have_read_it() -> Result<()> {
    const LENS: [usize; 4] = [4, 60, 1500, 70_000];
    for (transport, census) in sampled(2) {
        for size in [2, 5] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                let me = world.rank();
                for turn in 0..cases(60, 600) as usize {
                    // All ranks draw the same calls.
                    let draw = (turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    let (len, root) = (LENS[draw % 4], draw / 4 % size);
                    let value = |rank: usize| (turn * size + rank) as u64;
                    let sum = |ranks: std::ops::Range<usize>| ranks.map(value).sum::<u64>();
                    let mut elements = vec![value(me); len];
                    let expected = match draw / 64 % 5 {
                        0 | 1 => world.broadcast(root, &mut elements).map(|()| value(root))?,
                        2 | 3 => world.allreduce(&mut elements, Op::Sum).map(|()| sum(0..size))?,
                        _ => world.scan(&mut elements, Op::Sum).map(|()| sum(0..me + 1))?,
                    };
                    assert!(elements.iter().all(|one| *one == expected), "turn {turn}, rank {me}");
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn the_lengths_that_are_tested_take_every_way() {
    use fencepost_planner::collective::{Algorithm, Collective, Delivery, Operation};
    let (root, element) =
        (0, fencepost_planner::element::ElementType::scalar(fencepost_planner::element::Scalar::F64));
    let operations = [
        Operation::Broadcast { root },
        Operation::Reduce { root, op: Op::Sum },
        Operation::Allreduce { op: Op::Sum },
        Operation::Scan { op: Op::Sum },
        Operation::Scan { op: Op::Max },
        Operation::Gather { root },
        Operation::Allgather,
        Operation::AllToAll,
    ];
    for (share, algorithms) in [(true, &Algorithm::ALL[..]), (false, &Algorithm::ALL[..2])] {
        for operation in operations {
            let what = |ranks, len| Collective { operation, ranks, len, element };
            let delivery = |ranks, len| what(ranks, len).delivery(&Default::default(), share, Census::Direct);
            let lens = || [0, 1, 5].into_iter().chain(LONG);
            let mut taken: Vec<(u32, usize)> =
                sizes().iter().flat_map(|&ranks| lens().map(move |len| (ranks as u32, len))).collect();
            if share {
                taken.extend((2..=4).map(|ranks| (ranks, LONGEST)));
            }
            let deliveries: Vec<Delivery> = taken.iter().map(|&(ranks, len)| delivery(ranks, len)).collect();
            assert!(deliveries.contains(&Delivery::Ride), "{operation:?} rides, sharing memory: {share}");
            let direct = Delivery::InPlace(Algorithm::Direct);
            assert_eq!(deliveries.contains(&direct), share, "{operation:?} in place");
            let in_blocks = matches!(operation, Operation::Allreduce { .. }) && share;
            assert_eq!(
                deliveries.contains(&Delivery::InPlace(Algorithm::Blocks)),
                in_blocks,
                "{operation:?} in blocks"
            );
            // Lists of equal lengths, and arrays that are too long to be exposed, are moved by
            // plans of these algorithms.
            let algorithm = |&(ranks, len): &(u32, usize)| {
                what(ranks, len).algorithm(&Default::default(), share, Census::Direct)
            };
            let planned: Vec<Algorithm> = taken.iter().map(algorithm).collect();
            for algorithm in algorithms.iter().filter(|algorithm| what(2, 1).has(**algorithm)) {
                assert!(planned.contains(algorithm), "{operation:?}, {algorithm:?}, sharing memory: {share}");
                let is_taken = deliveries.contains(&Delivery::Plan(*algorithm));
                assert!(share || is_taken, "{operation:?} by plan, {algorithm:?}");
            }
        }
    }
}

#[test]
fn no_mode_no_plan_and_no_order_changes_a_bit() -> Result<()> {
    for (transport, census) in sampled(1) {
        for mode in Mode::ALL {
            for plan in [true, false] {
                ranks(5).transport(transport.clone()).census(census).mode(mode).plan(plan).run(|world| {
                    world.set_order(if plan { Order::Canonical } else { Order::Relaxed });
                    for len in [3, 700, 5000] {
                        against_loops::<f64>(world, len, &[3])?;
                    }
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn lists_of_every_length_arrive_unchanged() -> Result<()> {
    // The number of elements that rank a has for rank b.
    let lengths: [fn(usize, usize) -> usize; 6] = [
        |a, b| (a * 5 + b * 3) % 7,
        |a, b| if a == 1 && b == 0 { 5000 } else { 0 },
        |a, _| a * 100,
        |a, b| if a == b { 900 } else { 31 },
        |_, b| 100 + b,
        |a, _| if a == 0 { 31 } else { 30 },
    ];
    let value = |from: usize, to: usize, i: usize| (from * 1_000_003 + to * 10_007 + i) as u64;
    for (transport, census) in each() {
        for size in [1, 2, 3, 5] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                let me = world.rank();
                let list = |from: usize, to: usize, len: usize| -> Vec<u64> {
                    (0..len).map(|i| value(from, to, i)).collect()
                };
                for length in lengths {
                    let lists: Vec<Vec<u64>> = (0..size).map(|to| list(me, to, length(me, to))).collect();
                    let expected: Vec<Vec<u64>> =
                        (0..size).map(|from| list(from, me, length(from, me))).collect();
                    assert_eq!(world.all_to_all(&lists)?, expected);
                    let all: Vec<Vec<u64>> = (0..size).map(|from| list(from, 0, length(from, 0))).collect();
                    assert_eq!(world.allgather(&lists[0])?, all);
                    assert_eq!(world.gather(size - 1, &lists[0])?, (me == size - 1).then_some(all));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Lists of different lengths are sent in pieces through slots of bounded memory.
#[test]
fn a_long_list_among_short_ones_goes_in_pieces() -> Result<()> {
    ranks(3).run(|world| {
        let me = world.rank();
        let mine: Vec<u32> = (0..if me == 1 { 2_000_003 } else { me }).map(|i| i as u32 ^ 0x55).collect();
        let all = world.allgather(&mine)?;
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2_000_003, 2]);
        assert!(all[1].iter().enumerate().all(|(i, value)| *value == i as u32 ^ 0x55));
        Ok(())
    })
}

/// All collectives of one element type share windows of the world, which grow. Plans are kept,
/// dropped, and made again.
#[test]
fn more_different_calls_than_are_kept_go_round_twice() -> Result<()> {
    for (transport, census) in sampled(2) {
        ranks(3).transport(transport).census(census).run(|world| {
            for _ in 0..2 {
                for len in (0..100).map(|k| 4000 - 37 * k) {
                    let mut sum = given::<i64>(world.rank(), len);
                    world.allreduce(&mut sum, Op::Sum)?;
                    assert_eq!(
                        sum,
                        tree(&(0..3).map(|rank| given::<i64>(rank, len)).collect::<Vec<_>>(), Op::Sum)
                    );
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_collective_leaves_pending_operations_pending() -> Result<()> {
    for (transport, census) in each() {
        for len in [1, 5000] {
            ranks(3).transport(transport.clone()).census(census).run(|world| {
                let mut u = world.window::<f64>(2)?;
                u.put([7.0]).to((world.rank() + 1) % 3, 1)?;
                against_loops::<f64>(world, len, &[1])?;
                assert_eq!(u[..], [0.0, 0.0]);
                u.fence()?;
                assert_eq!(u[..], [0.0, 7.0]);
                Ok(())
            })?;
        }
    }
    Ok(())
}

type Collective = (&'static str, fn(&World, usize) -> Result<()>);

/// Collectives that each differ from the others in one respect. Each checks that a failed call
/// leaves its elements unchanged.
const DIFFERENT: [Collective; 12] = {
    fn in_place(elements: usize, call: impl FnOnce(&mut [u32]) -> Result<()>) -> Result<()> {
        let mut mine = vec![3; elements];
        call(&mut mine).inspect_err(|_| assert_eq!(mine, vec![3; elements]))
    }
    [
        ("broadcast from 0", |world, len| in_place(len, |mine| world.broadcast(0, mine))),
        ("broadcast from 1", |world, len| in_place(len, |mine| world.broadcast(1, mine))),
        ("a longer broadcast", |world, len| in_place(len + 1, |mine| world.broadcast(0, mine))),
        ("a broadcast of bytes", |world, len| world.broadcast(0, &mut vec![3u8; len])),
        ("reduce to 0", |world, len| world.reduce(0, &vec![1u32; len], Op::Sum).map(drop)),
        ("reduce to 1", |world, len| world.reduce(1, &vec![1u32; len], Op::Sum).map(drop)),
        ("a sum", |world, len| in_place(len, |mine| world.allreduce(mine, Op::Sum))),
        ("a product", |world, len| in_place(len, |mine| world.allreduce(mine, Op::Prod))),
        ("a scan", |world, len| in_place(len, |mine| world.scan(mine, Op::Sum))),
        ("gather_into", |world, len| {
            let mut all = vec![9u32; len * world.size()];
            let copy = all.clone();
            world.gather_into(0, &vec![1; len], &mut all).inspect_err(|_| assert_eq!(all, copy))
        }),
        ("allgather", |world, len| world.allgather(&vec![1u32; len]).map(drop)),
        ("barrier", |world, _| world.barrier()),
    ]
};

#[test]
fn ranks_in_different_collectives_all_learn_it_at_the_call_and_the_world_goes_on() -> Result<()> {
    for (transport, census) in sampled(0) {
        for (size, len) in [(2, 1), (2, 4000), (3, 1000)] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                // In the first pass there are no plans. In the second pass each collective has its
                // plan.
                for warm in [false, true] {
                    for (a, b) in (0..DIFFERENT.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                        let mine = DIFFERENT[if world.rank() == size - 1 { a } else { b }];
                        let error = mine.1(world, len).expect_err(mine.0);
                        assert_eq!(error.class(), ErrorClass::RmaSync, "{}: {error}", mine.0);
                        assert!(!error.world_ended(), "{}: {error}", mine.0);
                    }
                    for (what, call) in DIFFERENT.iter().filter(|_| !warm) {
                        call(world, len).map_err(|error| error.in_superstep(*what))?;
                    }
                }
                against_loops::<f64>(world, len, &[0])
            })?;
        }
    }
    Ok(())
}

/// One rank is in a collective, and the other ranks fence a window. The other ranks must not
/// mistake the notification of that rank for a record of their window.
#[test]
fn a_rank_in_a_short_collective_and_one_in_a_fence_learn_it_at_the_call() -> Result<()> {
    for (transport, census) in each() {
        for size in [2, 3, 9] {
            ranks(size).transport(transport.clone()).census(census).run(|world| {
                let (me, mut u) = (world.rank(), world.window::<u64>(2)?);
                for turn in 0..6 {
                    u.fill(1);
                    let error = if me == turn % size {
                        world.allreduce(&mut [u64::MAX; 4], Op::Max).expect_err("others fence a window")
                    } else {
                        (0..turn).try_for_each(|i| u.put([7]).to((me + 1) % size, i % 2))?;
                        u.fence().expect_err("one is in another call")
                    };
                    assert_eq!(error.class(), ErrorClass::RmaSync, "{error}");
                    let mut sum = [me as u64, 1];
                    world.allreduce(&mut sum, Op::Sum)?;
                    assert_eq!(sum, [(size * (size - 1) / 2) as u64, size as u64]);
                    u.fence()?;
                    assert_eq!(u[..], [1, 1], "nothing was applied");
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn what_one_rank_can_see_is_an_error_at_the_call() -> Result<()> {
    ranks(2).run(|world| {
        let class = |result: Result<()>| result.expect_err("it is refused").class();
        assert_eq!(class(world.broadcast(2, &mut [0u8])), ErrorClass::Rank);
        assert_eq!(class(world.reduce(9, &[0u8], Op::Sum).map(drop)), ErrorClass::Rank);
        assert_eq!(class(world.reduce(0, &[[0u8; 3]], Op::Sum).map(drop)), ErrorClass::Op);
        assert_eq!(class(world.scan(&mut [0.5], Op::Bxor)), ErrorClass::Op);
        assert_eq!(class(world.allreduce(&mut [1u32], Op::MinLoc)), ErrorClass::Op);
        assert_eq!(class(world.allreduce(&mut [1u32], Op::NoOp)), ErrorClass::Op);
        assert_eq!(class(world.window::<u32>(4)?.accumulate([1], Op::NoOp).to(1, 0)), ErrorClass::Op);
        assert_eq!(class(world.all_to_all(&[vec![1u8]]).map(drop)), ErrorClass::Size);
        assert_eq!(class(world.all_to_all_into(&[1u8; 3], &mut [0; 3])), ErrorClass::Size);
        assert_eq!(class(world.all_to_all_into(&[1u8; 4], &mut [0; 2])), ErrorClass::Size);
        assert_eq!(class(world.allgather_into(&[1u8; 4], &mut [0; 7])), ErrorClass::Size);
        assert_eq!(class(world.gather_into(world.rank(), &[1u8; 4], &mut [0; 9])), ErrorClass::Size);
        // No rank has taken part in any of these calls.
        world.barrier()
    })
}

#[test]
fn a_rank_that_leaves_is_named_by_all_who_wait_for_it() -> Result<()> {
    for (transport, census) in sampled(1) {
        for size in [2, 3, 5] {
            for len in [1, 3000] {
                for (what, call) in DIFFERENT {
                    let ends = ends(&ranks(size).transport(transport.clone()).census(census), &[], |world| {
                        call(world, len)?;
                        if world.rank() == 1 {
                            return Err(Error::new(ErrorClass::Other, "enough"));
                        }
                        Err(call(world, len).expect_err("rank 1 has left"))
                    });
                    for (rank, end) in ends.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
                        let (class, text) = end.unwrap_or_else(|| panic!("{what}: rank {rank} was not told"));
                        assert_eq!(class, ErrorClass::ProcFailed, "{what}: {text}");
                        assert!(text.contains("rank 1"), "{what}: {text}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// One rank leaves as soon as it has the window. Another rank may notice this while it waits for
/// the parts of the other ranks. A rank that already has all parts does not notice it.
#[test]
fn ranks_make_a_window_or_are_told_who_has_left() {
    for (transport, census) in sampled(2) {
        for _ in 0..cases(30, 500) {
            let ends = ends(&ranks(5).transport(transport.clone()).census(census), &[], |world| {
                drop(world.window::<u64>(1)?);
                if world.rank() == 1 { Err(Error::new(ErrorClass::Other, "enough")) } else { world.barrier() }
            });
            for (rank, end) in ends.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
                let (class, text) = end.unwrap_or_else(|| panic!("rank {rank} was not told"));
                assert_eq!(class, ErrorClass::ProcFailed, "{text}");
                assert!(text.contains("rank 1"), "{text}");
            }
        }
    }
}

/// Rank 1 is cut off at every possible event. Each other rank ends with the right elements, or with
/// unchanged elements and an error that another rank caused.
#[test]
fn a_rank_that_is_cut_off_half_way_leaves_no_rank_hanging_and_no_wrong_elements() {
    for len in [2, 3000] {
        for (after, census) in (0..60).flat_map(|after| Census::ALL.map(|census| (after, census))) {
            let lose = Some(Lose { rank: 1, after });
            let config = SimConfig { seed: after, lose, ..SimConfig::default() };
            let world = ranks(3).transport(TransportKind::Sim(config)).census(census);
            let ends = ends(&world, &[], |world| {
                let me = world.rank();
                for _ in 0..4 {
                    let mut sum = given::<i64>(me, len);
                    let result = world.allreduce(&mut sum, Op::Sum);
                    let parts: Vec<Vec<i64>> = (0..3).map(|rank| given(rank, len)).collect();
                    let expected = if result.is_ok() { tree(&parts, Op::Sum) } else { parts[me].clone() };
                    assert_eq!(sum, expected, "rank {me}, cut off after {after}");
                    result?;
                    let mut from = given::<i64>(me, len);
                    let result = world.broadcast(2, &mut from);
                    assert_eq!(from, if result.is_ok() { &parts[2] } else { &parts[me] }[..]);
                    result?;
                }
                Ok(())
            });
            for (class, text) in ends.into_iter().flatten() {
                assert_eq!(class, ErrorClass::ProcFailed, "cut off after {after}: {text}");
            }
        }
    }
}
