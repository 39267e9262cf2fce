//! Every schedule leaves what the reference interpreter leaves, whatever the options and in whatever order ranks run.

mod support {
    pub mod machine;
}

use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{ClassId, Delta, Id, OperationId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine as Model;
use fencepost_planner::reference::{self, Buffers, Epoch, World};
use fencepost_planner::table::Table;
use fencepost_planner::units::Bytes;
use fencepost_planner::{Options, compile};
use proptest::prelude::*;
use support::machine::Machine;

const LEN: usize = 12;

/// Elements of a window of [`LEN`]: `size` of them, in any order, some twice, some in a row.
fn datatype(size: usize) -> BoxedStrategy<Datatype> {
    prop_oneof![
        2 => (0..=LEN - size.min(LEN)).prop_map(move |first| Datatype::run(first..first + size)),
        1 => prop::collection::vec(0..LEN as i64, size).prop_map(Datatype::elements),
        1 => (0..3_i64, 1..3_i64, any::<bool>()).prop_map(move |(offset, stride, back)| {
            let (first, stride) = if back { (LEN as i64 - 1 - offset, -stride) } else { (offset, stride) };
            Datatype::elements((0..size as i64).map(|i| (first + i * stride).clamp(0, LEN as i64 - 1)))
        }),
    ]
    .boxed()
}

fn windows() -> Table<WindowId, ElementType> {
    [Scalar::F64, Scalar::F64, Scalar::I16].into_iter().map(ElementType::scalar).collect()
}

fn operation(rank: usize, ranks: usize) -> BoxedStrategy<Operation> {
    let window = prop_oneof![3 => Just(0), 1 => Just(1), 2 => Just(2)];
    (window, 0..6_usize, 0..10_u8, 0..=ranks, any::<prop::sample::Index>())
        .prop_flat_map(move |(window, size, kind, target, pick)| {
            let integer = window == 2;
            let kind = match kind {
                0..4 => Kind::Put,
                4..7 => Kind::Get,
                _ if integer => Kind::Accumulate([Op::Sum, Op::Replace, Op::Bxor, Op::Max][pick.index(4)]),
                _ => Kind::Accumulate([Op::Sum, Op::Prod, Op::Replace, Op::Min][pick.index(4)]),
            };
            let target = (target < ranks).then(|| Delta(target as i64 - rank as i64));
            let section = if integer { 2 } else { pick.index(2) as u32 };
            let local = prop_oneof![
                1 => Just(Local::Buffer),
                2 => datatype(size).prop_map(move |datatype| Local::Section { window: WindowId(section), datatype }),
            ];
            let mode = prop::sample::select(Mode::ALL.to_vec());
            (datatype(size), local, mode).prop_map(move |(remote, local, mode)| Operation {
                kind,
                window: WindowId(window),
                target,
                remote,
                local,
                mode,
                site: Site::default(),
            })
        })
        .boxed()
}

/// Each rank's operations; ranks with equal ones are one class.
fn patterns() -> BoxedStrategy<Patterns> {
    (1..5_usize, prop::bool::weighted(0.1))
        .prop_flat_map(|(ranks, relaxed)| {
            let each: Vec<_> =
                (0..ranks).map(|rank| prop::collection::vec(operation(rank, ranks), 0..5)).collect();
            (each, Just(relaxed))
        })
        .prop_map(|(each, relaxed)| by_class(each, if relaxed { Order::Relaxed } else { Order::Canonical }))
        .boxed()
}

fn by_class(each: Vec<Vec<Operation>>, order: Order) -> Patterns {
    let mut classes: Table<ClassId, Pattern> = Table::new();
    let class_of: Vec<ClassId> = each
        .into_iter()
        .map(|operations| {
            let pattern = Pattern { operations: operations.into_iter().collect() };
            let found = classes.iter().find(|(_, other)| **other == pattern).map(|(id, _)| id);
            found.unwrap_or_else(|| classes.push(pattern))
        })
        .collect();
    let shape = vec![class_of.len() as u32];
    Patterns { name: "test".into(), windows: windows(), shape, classes, class_of, order }
}

fn options() -> BoxedStrategy<(Placement, Options)> {
    let placement = prop_oneof![
        Just(Placement::Together),
        Just(Placement::Apart),
        Just(Placement::Hosts { ranks_each: 2 })
    ];
    let mode = prop::sample::select(Mode::ALL.to_vec());
    let bytes = prop_oneof![Just(None), (1..40_u64).prop_map(|bytes| Some(Bytes(bytes)))];
    (placement, mode, any::<bool>(), bytes.clone(), bytes)
        .prop_map(|(placement, mode, coalesce, chunk, cap)| {
            (placement, Options { mode, coalesce, chunk, cap })
        })
        .boxed()
}

/// Small values, so that integers collide and floating sums do not lose their order.
fn fill(seed: &mut u64, element: ElementType, count: usize) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *seed >> 40
    };
    (0..count)
        .flat_map(|_| match element.size {
            8 => ((next() % 1000) as f64 * 0.1 - 37.7).to_le_bytes().to_vec(),
            _ => (next() as i16).to_le_bytes().to_vec(),
        })
        .collect()
}

fn check(patterns: &Patterns, placement: Placement, options: &Options, mut seed: u64) {
    let element = windows();
    let pattern = |rank: usize| patterns.classes[patterns.class_of[rank]].clone();
    let ranks = patterns.class_of.len();
    let memory = |seed: &mut u64| {
        (0..ranks).map(|_| element.values().map(|&e| fill(seed, e, LEN)).collect()).collect()
    };
    let mut world = World { element: element.clone(), memory: memory(&mut seed) };
    let mut sources: Vec<Buffers> = vec![Buffers::new(); ranks];
    for (rank, sources) in sources.iter_mut().enumerate() {
        for (id, operation) in pattern(rank).operations.iter() {
            if operation.local == Local::Buffer && operation.kind != Kind::Get {
                sources.insert(id, fill(&mut seed, element[operation.window], operation.remote.size()));
            }
        }
    }
    let model = Model::default();
    let schedule = compile(patterns, placement, &model, options).expect("good patterns");
    let mut machine = Machine::new(&schedule, world.memory.clone(), &sources, seed);
    let epoch = Epoch { patterns: (0..ranks).map(pattern).collect(), sources: sources.clone() };
    if patterns.order == Order::Relaxed {
        machine.run(1);
        let after = World { element, memory: machine.memory.clone() };
        let buffers = only_buffers(&epoch, machine.landed());
        assert_eq!(reference::allows(&world, &epoch, &after, &buffers).expect("good patterns"), None);
        return;
    }
    const RUNS: u64 = 4;
    machine.run(RUNS);
    let mut landed = Vec::new();
    for _ in 0..RUNS {
        landed = reference::run(&mut world, &epoch).expect("good patterns");
    }
    assert_eq!(machine.memory, world.memory, "\n{patterns}\n{}", schedule.get());
    assert_eq!(only_buffers(&epoch, machine.landed()), only_buffers(&epoch, landed));
}

/// What landed in the buffers of gets that move something.
fn only_buffers(epoch: &Epoch, landed: Vec<Buffers>) -> Vec<Buffers> {
    let is_buffer = |rank: usize, id: OperationId| {
        let operation = &epoch.patterns[rank].operations[id];
        operation.local == Local::Buffer && operation.target.is_some() && operation.remote.size() > 0
    };
    let of = |(rank, buffers): (usize, Buffers)| {
        buffers.into_iter().filter(|(id, _)| is_buffer(rank, *id)).collect()
    };
    landed.into_iter().enumerate().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_leaves_what_the_reference_leaves(
        patterns in patterns(), (placement, options) in options(), seed in any::<u64>(),
    ) {
        check(&patterns, placement, &options, seed);
    }
}

#[test]
fn least_lengths_reach_what_others_touch() {
    let put = Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta(1)),
        remote: Datatype::run(4..9),
        local: Local::Section { window: WindowId(1), datatype: Datatype::run(0..5) },
        mode: Mode::Auto,
        site: Site::default(),
    };
    let patterns = by_class(vec![vec![put], vec![]], Order::Canonical);
    let schedule = compile(&patterns, Placement::Together, &Model::default(), &Options::default())
        .expect("good patterns");
    let asked: Vec<Vec<usize>> = schedule
        .class_of
        .iter()
        .map(|&class| schedule.classes[class].least_len.values().copied().collect())
        .collect();
    assert_eq!(asked, [[0, 5, 0], [9, 0, 0]]);
    assert_eq!(schedule.classes.ids().map(ClassId::index).collect::<Vec<_>>(), [0, 1]);
}
