//! Every schedule has the same results as the reference interpreter, for all options and in every
//! order in which ranks run.

use crate::support::{by_rank, interpreter, random};
use fencepost_planner::census::{self, Census, Places};
use fencepost_planner::conflicts::{Incoming, Touch, incoming};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::explain::{cost, cost_at_fence};
use fencepost_planner::grid::Block;
use fencepost_planner::ids::{ClassId, Delta, Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::table::Table;
use fencepost_planner::units::Bytes;
use fencepost_planner::verify::verify_expanded;
use fencepost_planner::{ErrorClass, Options, collect, compile, conflicts, explain};
use fencepost_tests_reference as reference;
use fencepost_tests_support::cases::cases;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LEN: usize = 12;

/// Draws `size` elements of a window of [`LEN`] in any order, some twice, and some in a row.
fn datatype(size: usize) -> BoxedStrategy<Datatype> {
    prop_oneof![
        2 => (0..=LEN - size.min(LEN)).prop_map(move |first| Datatype::run(first..first + size)),
        1 => prop::collection::vec(0..LEN as i64, size).prop_map(|list| Datatype::elements(list).unwrap()),
        1 => (0..3_i64, 1..3_i64, any::<bool>()).prop_map(move |(offset, stride, back)| {
            let (first, stride) = if back { (LEN as i64 - 1 - offset, -stride) } else { (offset, stride) };
            Datatype::elements((0..size as i64).map(|i| (first + i * stride).clamp(0, LEN as i64 - 1))).unwrap()
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

/// Draws the operations of each rank. Ranks with equal operations form one class.
pub(crate) fn patterns() -> BoxedStrategy<Patterns> {
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
    Patterns { name: "test".into(), windows: windows(), shape, classes, class_of, order, sync: Sync::Fence }
}

pub(crate) fn options() -> BoxedStrategy<(Placement, Options)> {
    let placement = prop_oneof![
        Just(Placement::Together),
        Just(Placement::Apart),
        Just(Placement::Hosts { ranks_each: 2 })
    ];
    let mode = prop::sample::select(Mode::ALL.to_vec());
    let bytes = prop_oneof![Just(None), (1..40_u64).prop_map(|bytes| Some(Bytes(bytes)))];
    let cap = prop_oneof![Just(None), (1..400_u64).prop_map(|bytes| Some(Bytes(bytes)))];
    (placement, mode, any::<bool>(), bytes, cap)
        .prop_map(|(placement, mode, coalesce, chunk, cap)| {
            (placement, Options { mode, coalesce, chunk, cap })
        })
        .boxed()
}

fn check(patterns: &Patterns, placement: Placement, options: &Options, seed: u64) {
    let schedule = match compile(patterns, placement, &Machine::default(), options) {
        Ok(schedule) => {
            assert!(options.cap.is_none_or(|cap| schedule.peak() <= cap));
            schedule
        }
        // The error states the least amount that is needed, and that amount is enough.
        Err(error) => {
            let cap = options.cap.expect("good patterns");
            assert_eq!(error.class(), ErrorClass::NoMem, "{error}");
            let needed = error.message().split(' ').nth(1).and_then(|word| word.parse().ok());
            let needed = Bytes(needed.expect("what is needed"));
            assert!(needed > cap && error.message().contains(&format!("{cap} are allowed")), "{error}");
            let enough = Options { cap: Some(needed), ..*options };
            compile(patterns, placement, &Machine::default(), &enough).expect("what was asked for is enough")
        }
    };
    let windows: Vec<ElementType> = patterns.windows.values().copied().collect();
    let world = random::world(&windows, patterns.class_of.len(), LEN, seed);
    if let Err(difference) = interpreter::differs(patterns, &schedule, &world, 4, seed) {
        panic!("{difference}\n{patterns}{}", schedule.get());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(1000, 3000) as u32, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_leaves_what_the_reference_leaves(
        patterns in patterns(), (placement, options) in options(), seed in any::<u64>(),
    ) {
        check(&patterns, placement, &options, seed);
    }
}

#[test]
fn epochs_of_every_element_type_keep_their_meaning_in_every_mode() {
    for seed in 0..cases(200, 600) {
        let patterns = random::epoch(seed);
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            let placement = [Placement::Together, Placement::Apart, Placement::Hosts { ranks_each: 2 }]
                [(seed as usize + at) % 3];
            check(
                &patterns,
                placement,
                &Options { mode, coalesce: seed % 4 > 0, ..Options::default() },
                seed,
            );
        }
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
    let schedule = compile(&patterns, Placement::Together, &Machine::default(), &Options::default())
        .expect("good patterns");
    let asked: Vec<Vec<usize>> = schedule
        .class_of
        .iter()
        .map(|&class| schedule.classes[class].least_len.values().copied().collect())
        .collect();
    assert_eq!(asked, [[0, 5, 0], [9, 0, 0]]);
    assert_eq!(schedule.classes.ids().map(ClassId::index).collect::<Vec<_>>(), [0, 1]);
}

/// Returns the patterns of a superstep that fills the halo of every block of a grid.
fn halo<const D: usize>(global: [usize; D], grid: [usize; D], wraps: [bool; D]) -> Patterns {
    let ranks = grid.iter().product::<usize>();
    let block = |rank: u32| Ok(Block::at(rank as usize, ranks, global)?.grid(grid)?.halo(1)?.periodic(wraps));
    collect::patterns(
        "halo",
        [ElementType::scalar(Scalar::F64)].into_iter().collect(),
        ranks as u32,
        block,
        |_, block: &Block<D>| {
            let put = |n: &fencepost_planner::grid::Neighbour<D>| Operation {
                kind: Kind::Put,
                window: WindowId(0),
                target: Some(Delta(n.rank as i64 - block.rank() as i64)),
                remote: block.halo_of(n),
                local: Local::Section { window: WindowId(0), datatype: block.inner_edge(n) },
                mode: Mode::Auto,
                site: Site::default(),
            };
            let operations = block.neighbours().map(|n| put(&n)).collect();
            Ok((Pattern { operations }, false))
        },
    )
    .expect("a halo")
}

#[test]
fn an_even_halo_in_three_dimensions_ends_in_27_programs_and_26_rounds() {
    for placement in [Placement::Together, Placement::Apart] {
        let patterns = halo([24, 24, 24], [4, 6, 4], [false; 3]);
        let schedule =
            compile(&patterns, placement, &Machine::default(), &Options::default()).expect("a halo");
        assert_eq!(schedule.classes.len(), 27);
        let rounds = schedule.classes.values().flat_map(|program| program.routes.values().flatten());
        assert!(rounds.map(|route| route.round.0).max() < Some(26));
    }
}

#[test]
fn verdicts_by_class_are_those_of_every_rank_by_itself() {
    for (global, grid) in [([13, 17], [4, 5]), ([9, 9], [3, 3]), ([8, 31], [1, 7])] {
        for wraps in [[false, false], [true, false], [true, true]] {
            let patterns = halo(global, grid, wraps);
            for mode in Mode::ALL {
                for placement in [Placement::Together, Placement::Apart, Placement::Hosts { ranks_each: 4 }] {
                    let options = Options { mode, ..Options::default() };
                    let schedule =
                        compile(&patterns, placement, &Machine::default(), &options).expect("a halo");
                    assert_eq!(verify_expanded(&patterns, &schedule), Ok(()));
                }
            }
        }
    }
}

#[test]
fn a_loop_of_puts_ends_in_the_instructions_of_one_put_with_a_datatype() {
    let put = |from: Datatype, to: Datatype| Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta(1)),
        remote: to,
        local: Local::Section { window: WindowId(0), datatype: from },
        mode: Mode::Auto,
        site: Site::default(),
    };
    let (from, to) = (Datatype::nest(1, &[(50, 3)], 1).unwrap(), Datatype::nest(400, &[(50, 7)], 1).unwrap());
    let single = |at: i64| at as usize..at as usize + 1;
    let loop_of_puts = from
        .element_iter()
        .zip(to.element_iter())
        .map(|(a, b)| put(Datatype::run(single(a)), Datatype::run(single(b))));
    let programs = [loop_of_puts.collect(), vec![put(from.clone(), to.clone())]].map(|operations| {
        let patterns = by_class(vec![operations, vec![]], Order::Canonical);
        let schedule = compile(&patterns, Placement::Apart, &Machine::default(), &Options::default());
        let classes = schedule.expect("good patterns").into_inner().classes;
        classes.into_values().map(|program| (program.buffers, program.instructions)).collect::<Vec<_>>()
    });
    assert_eq!(programs[0], programs[1]);
}

#[test]
fn invalid_operations_are_errors_that_name_operation_rank_and_line() {
    let good = Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta(1)),
        remote: Datatype::run(0..2),
        local: Local::Buffer,
        mode: Mode::Auto,
        site: Site { file: "heat.rs".into(), line: 7, column: 1 },
    };
    let section = |window, datatype| Local::Section { window: WindowId(window), datatype };
    let bad = [
        (ErrorClass::Rank, Operation { target: Some(Delta(2)), ..good.clone() }),
        (ErrorClass::Rank, Operation { target: Some(Delta(-1)), ..good.clone() }),
        (ErrorClass::Size, Operation { local: section(0, Datatype::run(0..3)), ..good.clone() }),
        (ErrorClass::Type, Operation { local: section(2, Datatype::run(0..2)), ..good.clone() }),
        (ErrorClass::Disp, Operation { remote: Datatype::nest(-1, &[], 2).unwrap(), ..good.clone() }),
        (ErrorClass::Win, Operation { window: WindowId(3), ..good.clone() }),
        (ErrorClass::Op, Operation { kind: Kind::Accumulate(Op::Bxor), ..good.clone() }),
    ];
    for (class, operation) in bad {
        let patterns = by_class(vec![vec![good.clone(), operation], vec![]], Order::Canonical);
        let error =
            compile(&patterns, Placement::Apart, &Machine::default(), &Options::default()).unwrap_err();
        assert_eq!((error.class(), error.rank()), (class, Some(0)), "{error}");
        assert!(error.message().contains("op1") && error.message().contains("heat.rs:7"), "{error}");
    }
}

#[test]
fn the_accesses_of_other_ranks_to_a_part_are_those_that_lead_to_it() {
    let text = "superstep s
window w0 i32
window w1 i32
shape 4
class c0
 put buffer -> +1 w0 0..4 at a.rs:1
 put buffer -> self w0 5..6 at a.rs:2
 get +1 w1 2..3 -> buffer at a.rs:3
class c1
 put buffer -> none w0 0..4 at b.rs:1
class c2
 accumulate SUM buffer -> -1 w0 7..8 at c.rs:1
 put buffer -> +1 w0 0..0 at c.rs:2
ranks c0 c1 c2 c1
";
    let patterns: Patterns = text.parse().expect("patterns");
    let accesses_to = |rank| -> Vec<String> {
        let written = |access: Incoming| {
            let Touch { origin, operation, kind, site } = access.touch;
            let (low, high) = (access.elements.low(), access.elements.high());
            format!("{kind} by op{operation} of {origin} at {site}: {:?} {low}..{high}", access.window)
        };
        incoming(&patterns, Rank::new(rank)).into_iter().map(written).collect()
    };
    assert_eq!(
        accesses_to(1),
        [
            "put by op0 of 0 at a.rs:1: w0 0..4",
            "get by op2 of 0 at a.rs:3: w1 2..3",
            "accumulate SUM by op0 of 2 at c.rs:1: w0 7..8",
        ]
    );
    assert!([0, 2, 3].into_iter().all(|rank| accesses_to(rank).is_empty()));
}

#[test]
fn conflicts_are_what_the_definition_says_and_name_both_lines() {
    let conflicts = |text: &str| {
        let header = "superstep s\nwindow w0 i32\nwindow w1 i32\nshape 3\n";
        let patterns: Patterns = format!("{header}{text}").parse().expect("patterns");
        conflicts(&patterns).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let two = |first: &str, second: &str| {
        conflicts(&format!(
            "class c0\n {first} at a.rs:1\nclass c1\n {second} at b.rs:2\nclass c2\nranks c0 c1 c2\n"
        ))
        .len()
    };
    assert_eq!(
        conflicts(
            "class c0\n put buffer -> +1 w0 0..4 at a.rs:1\nclass c1\n put w0 3..5 -> +1 w0 0..2 at b.rs:2\nclass c2\nranks c0 c1 c2\n"
        ),
        ["element 3 of w0 on rank 1: put by op0 of rank 0 at a.rs:1 and get by op0 of rank 1 at b.rs:2"],
    );
    for (first, second, clashes) in [
        ("put buffer -> +2 w0 0..4", "put buffer -> +1 w0 3..5", true),
        ("put buffer -> +2 w0 0..4", "put buffer -> +1 w0 4..6", false),
        ("put buffer -> +2 w0 0..4", "put buffer -> +1 w1 0..4", false),
        ("get +2 w0 0..4 -> buffer", "get +1 w0 0..4 -> buffer", false),
        ("get +2 w0 0..4 -> buffer", "accumulate SUM buffer -> +1 w0 0..4", true),
        ("accumulate SUM buffer -> +2 w0 0..4", "accumulate SUM buffer -> +1 w0 0..4", false),
        ("accumulate SUM buffer -> +2 w0 0..4", "accumulate MAX buffer -> +1 w0 0..4", true),
        ("put buffer -> +1 w0 0..4", "get +1 w0 0..4 -> w0 0..4", true),
        ("put w0 0..4 -> +1 w0 0..4", "put buffer -> none w0 0..4", false),
    ] {
        assert_eq!(two(first, second) > 0, clashes, "{first} and {second}");
    }
    assert_eq!(
        conflicts("class c0\n put buffer -> self w0 0..1\n put buffer -> self w0 0..1\nranks c0 x3\n"),
        [
            "element 0 of w0 on rank 0: put by op0 of rank 0 and put by op1 of rank 0; likewise on 2 other ranks"
        ],
    );
    // One put to every other element from 1 to 9, and another one to the elements 4 to 7.
    assert_eq!(
        conflicts(
            "class c0\n put buffer -> self w0 1+[5 by 2]x1\n put buffer -> self w0 4..8\nranks c0 x1\n"
        ),
        ["elements 5..8 of w0 on rank 0: put by op0 of rank 0 and put by op1 of rank 0"],
    );
    // A put that overwrites itself is found even if it is the only operation (paragraph 28), and so
    // is a get whose section overlaps itself.
    assert_eq!(
        conflicts(
            "class c0\n put buffer -> +1 w0 3+[4 by 0]x1 at a.rs:1\nclass c1\n get -1 w0 0..4 -> w1 2+[2 by 1]x2 at b.rs:2\nranks c0 c1\n"
        ),
        [
            "element 3 of w0 on rank 1: put twice by op0 of rank 0 at a.rs:1",
            "element 3 of w1 on rank 1: put twice by op0 of rank 1 at b.rs:2",
        ],
    );
    // An operation that reads an element twice, accumulates to it twice, or writes its own section
    // is not reported.
    for text in [
        "get self w0 0+[4 by 0]x1 -> w0 8..12",
        "put w0 0+[4 by 0]x1 -> self w0 8..12",
        "accumulate SUM buffer -> self w0 0+[4 by 0]x1",
        "put w0 8..12 -> self w0 10..14",
        "put buffer -> none w0 0+[4 by 0]x1",
    ] {
        assert!(conflicts(&format!("class c0\n {text}\nranks c0 x1\n")).is_empty(), "{text}");
    }
}

#[test]
fn conflicts_are_those_of_the_reference() {
    let (mut some, mut none, mut alone) = (0, 0, 0);
    for seed in 0..400 {
        let patterns = random::epoch(seed);
        let epoch = reference::Epoch { patterns: by_rank(&patterns), sources: Vec::new() };
        let law: BTreeSet<_> = reference::conflicts(&epoch)
            .into_iter()
            .map(|found| {
                let between = found.between.map(|(rank, operation)| (rank.index(), operation.index()));
                let ends = (found.elements[0], found.elements[found.elements.len() - 1] + 1);
                (found.rank.index(), found.window.index(), between, ends)
            })
            .collect();
        // One conflict represents the conflicts of all ranks that differ only in their position.
        let found: BTreeMap<_, usize> = conflicts(&patterns)
            .into_iter()
            .map(|found| {
                let between = found.between.map(|touch| (touch.origin, touch.operation));
                let ends = (found.elements.start, found.elements.end);
                ((found.rank, found.window, between, ends), found.ranks)
            })
            .collect();
        assert!(found.keys().all(|found| law.contains(found)), "{seed}: {found:?}, and the law has {law:?}");
        assert_eq!(found.values().sum::<usize>(), law.len(), "{seed}: {found:?}, and the law has {law:?}");
        *(if law.is_empty() { &mut none } else { &mut some }) += 1;
        alone += law.iter().filter(|(_, _, [a, b], _)| a == b).count();
    }
    assert!(some > 50 && none > 5, "{some} epochs with conflicts, {none} without");
    assert!(alone > 20, "{alone} operations overwrite themselves");
}

#[test]
fn explain_states_mode_round_cost_and_line_of_each_operation() {
    let text = "superstep exchange
window w0 f64
shape 2
class c0
  put w0 65536..131072 -> +1 w0 131072..196608 at heat.rs:7
  put w0 0+[64 by 9]x1 -> +1 w0 1+[64 by 9]x1 at heat.rs:8
  put buffer -> none w0 0..1 at heat.rs:9
  get +1 w0 600..700 -> buffer mode direct at heat.rs:10
class c1
  put w0 600..601 -> -1 w0 5..6
  put buffer -> self w0 600..601
ranks c0 c1
";
    let patterns: Patterns = text.parse().expect("patterns");
    let schedule = compile(&patterns, Placement::Together, &Machine::default(), &Options::default())
        .expect("good patterns");
    let text = explain(&schedule, &Machine::default()).to_string();
    let line = |what: &str| {
        text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {text}"))
    };
    assert!(line("heat.rs:7").contains("direct, round"), "{text}");
    assert!(line("heat.rs:8").contains("aggregated, round") && line("heat.rs:8").contains("pack"), "{text}");
    // Each line lists the costs of both ways, including all their frames. The way with the smaller
    // sum is taken.
    for (site, first) in [("heat.rs:7", "copy"), ("heat.rs:8", "pack")] {
        let (taken, other) = line(site).split_once(", against ").expect("two ways");
        let total = |terms: &str| -> f64 {
            let terms = &terms[terms.find("copy").or(terms.find("pack")).expect("terms")..];
            terms.split([' ', '(']).filter_map(|word| word.parse::<f64>().ok()).sum()
        };
        assert!(taken.contains(&format!("; {first}")) && total(taken) < total(other), "{text}");
        assert!(line(site).contains("entry and done") && line(site).contains("message"), "{text}");
    }
    assert!(text.contains("staging"), "{text}");
    assert!(line("heat.rs:9").contains("moves nothing"), "{text}");
    assert!(line("heat.rs:10").contains("another mode was asked for"), "{text}");
    assert!(line("predicted").contains("at least"), "{text}");
    assert!(line("not prepared").contains("a direct census"), "{text}");
    let mut other = schedule.get().clone();
    (other.sync, other.classes[ClassId(1)].instructions) = (Sync::Pscw, Vec::new());
    assert!(!text.contains("posts and starts"), "{text}");
    assert!(
        explain(&other, &Machine::default())
            .to_string()
            .contains("posts and starts between partners; 1 ranks need not")
    );
}

/// Returns the schedule of ranks that each put some elements to the next rank. `elements` holds the
/// number of elements of each rank. This number is also the position to which the rank puts them.
fn puts_to_the_next(elements: &[usize], placement: Placement, machine: &Machine) -> Schedule {
    let mut text = "superstep chain\nwindow w0 f64\nshape 1\n".to_owned();
    let mut kinds: Vec<usize> = elements.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    for (class, count) in kinds.iter().enumerate() {
        text += &format!("class c{class}\n");
        if *count > 0 {
            text += &format!("  put w0 0..{count} -> +1 w0 {count}..{}\n", 2 * count);
        }
    }
    text += "ranks";
    for count in elements {
        text += &format!(" c{}", kinds.binary_search(count).expect("one of them"));
    }
    let patterns: Patterns = (text + "\n").parse().expect("patterns");
    compile(&patterns, placement, machine, &Options::default()).expect("good patterns").get().clone()
}

#[test]
fn an_epoch_costs_at_a_fence_what_the_slowest_rank_takes() {
    let machine = Machine::default();
    let at_fence = |elements: &[usize]| {
        cost_at_fence(&puts_to_the_next(elements, Placement::Apart, &machine), &machine).0.0
    };
    // The cost is the same whichever rank is slow, and whatever the other ranks do.
    let slowest = at_fence(&[0, 1000, 0, 0, 0, 0]);
    for elements in
        [[1000, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1000, 0], [0, 1000, 0, 0, 10, 0], [10, 0, 0, 1000, 0, 0]]
    {
        let cost = at_fence(&elements);
        assert!((cost - slowest).abs() < 1e-6, "{elements:?}: {cost}, and {slowest} alone");
    }
    assert!(at_fence(&[0, 10, 0, 0, 0, 0]) < slowest);
}

#[test]
fn ranks_of_one_class_cost_more_where_their_peers_are_on_another_host() {
    let mut machine = Machine::default();
    machine.network.per_byte = 1000.0;
    let hosts = Placement::Hosts { ranks_each: 4 };
    // Ranks 1 to 6 make the same calls. The peers of rank 1 are on its own host. The peers of ranks
    // 3 and 4 include a rank on another host.
    let schedule = puts_to_the_next(&[1, 1, 1, 1, 1, 1, 1, 0], hosts, &machine);
    let least = 8.0 * machine.network.per_byte;
    let (prepared, at_fence) = (cost(&schedule, &machine), cost_at_fence(&schedule, &machine).0);
    assert!(prepared.predicted.0 >= least && at_fence.0 >= least, "{prepared:?}, {at_fence}");
    assert!([3, 4].contains(&prepared.slowest), "{prepared:?}");
    let together = puts_to_the_next(&[1, 1, 1, 1, 1, 1, 1, 0], Placement::Together, &machine);
    assert!(cost(&together, &machine).predicted.0 < least, "nothing crosses the network");
}

#[test]
fn at_a_fence_an_epoch_costs_its_census_besides() {
    let text = "superstep ring
window w0 f64
shape 1
class c0
  put w0 0..1 -> +1 w0 1..2
ranks ";
    for (ranks, placement, expected) in [
        (4, Placement::Apart, Census::Direct),
        (64, Placement::Apart, Census::Sparse),
        (1000, Placement::Apart, Census::Sparse),
        (256, Placement::Hosts { ranks_each: 32 }, Census::Sparse),
    ] {
        // The last rank has no next rank.
        let text = format!("{text}{}c1\n", "c0 ".repeat(ranks - 1)).replace("ranks c0", "class c1\nranks c0");
        let patterns: Patterns = text.parse().expect("patterns");
        let machine = Machine::default();
        let schedule = compile(&patterns, placement, &machine, &Options::default()).expect("good patterns");
        let prepared = cost(&schedule, &machine).predicted;
        let (at_fence, census) = cost_at_fence(&schedule, &machine);
        let places = Places::new(ranks as u32, placement);
        let more = census::cost(expected, &places, &machine) - machine.network.latency;
        assert_eq!(census, expected, "{ranks} ranks, {placement:?}");
        // With hosts, the slowest rank is one that receives from another host or sends to another
        // host.
        let other = if places.have_leaders() { machine.shared.payload } else { 0.0 };
        let beyond = at_fence.0 - prepared.0 - more;
        assert!((-1e-6..=other + 1e-6).contains(&beyond), "{ranks}: {at_fence} and {prepared}, {more}");
    }
}
