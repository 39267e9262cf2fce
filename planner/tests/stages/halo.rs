//! Halos through all stages: from blocks to patterns and to a schedule. The schedule is verified,
//! written to a plan file and read again. The compiler makes one schedule, and another one is
//! lowered by hand with packing. The plan of 100,172 ranks takes less than 10 KB.

use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::{Block, Neighbour};
use fencepost_planner::ids::{BufferId, Delta, Rank, RoundId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Patterns, Site};
use fencepost_planner::ir::schedule::{
    Buffer, Frame, Instruction, Part, Placement, Program, Routing, Schedule,
};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::{MadeFor, from_bytes, load, save_all, to_bytes};
use fencepost_planner::{Options, compile, verify};

const W: WindowId = WindowId(0);
const F64: ElementType = ElementType::scalar(Scalar::F64);

fn exchange<const D: usize>(me: u32, block: &Block<D>) -> Pattern {
    let put = |n: Neighbour<D>| Operation {
        kind: Kind::Put,
        window: W,
        target: Some(Delta::between(Rank(me), Rank(n.rank as u32))),
        remote: block.halo_of(&n),
        local: Local::Section { window: W, datatype: block.inner_edge(&n) },
        mode: Mode::Auto,
        site: Site { file: "examples/ahead.rs".into(), line: 12, column: 9 },
    };
    Pattern { operations: block.neighbours().map(put).collect() }
}

/// Returns a program with one message to each neighbour. All neighbours are different ranks.
fn program(block: &Block<2>, pattern: Pattern) -> Program {
    let mut program = Program {
        routes: pattern
            .operations
            .values()
            .map(|_| Some(Routing { mode: Mode::Aggregated, instead: false, round: RoundId(0) }))
            .collect(),
        pattern,
        least_len: [0].into_iter().collect(),
        buffers: Default::default(),
        instructions: Vec::new(),
    };
    let own = |datatype| Part::Window { owner: Delta::SELF, window: W, datatype };
    let mut least = 0;
    let mut applied = Vec::new();
    for (n, operation) in block.neighbours().zip(program.pattern.operations.values()) {
        let Some(peer) = operation.target else { unreachable!("every put goes to a neighbour") };
        let (inner, outer) = (block.inner_edge(&n), block.outer_edge(&n));
        least = least.max(inner.high()).max(outer.high());
        let bytes = 8 * inner.size() as u64;
        let buffer: BufferId = program.buffers.push(Buffer { peer, bytes, copies: 2 });
        program.instructions.extend([
            Instruction::Pack { from: own(inner), element: 8, buffer, at: 0 },
            Instruction::Send { buffer, at: 0, bytes, round: RoundId(0) },
        ]);
        applied.extend([
            Instruction::Await { peer, frame: Frame::Data { bytes: 8 * outer.size() as u64 } },
            Instruction::Unpack { peer, at: 0, to: own(outer), op: None, element: F64 },
            Instruction::Release { peer },
        ]);
    }
    program.instructions.extend(applied);
    program.least_len = [least as usize].into_iter().collect();
    program
}

fn lowered(patterns: &Patterns, block: impl Fn(u32) -> Block<2>) -> Schedule {
    let first = |class| patterns.class_of.iter().position(|&of| of == class).unwrap() as u32;
    let classes = patterns.classes.iter();
    Schedule {
        name: patterns.name.clone(),
        windows: patterns.windows.clone(),
        shape: patterns.shape.clone(),
        classes: classes.map(|(class, pattern)| program(&block(first(class)), pattern.clone())).collect(),
        class_of: patterns.class_of.clone(),
        order: patterns.order,
        sync: patterns.sync,
        placement: Placement::Apart,
    }
}

#[test]
fn a_halo_of_a_hundred_thousand_ranks_is_verified_and_fits_ten_kilobytes() {
    let ranks = 316 * 317;
    // The uneven grid has 30 classes of blocks. A message to a smaller block arrives at the same
    // position as a message to a larger one.
    for (global, classes) in [([316 * 64, 317 * 64], 9), ([316 * 64 + 100, 317 * 64 + 7], 30)] {
        let block = |rank| Block::at(rank as usize, ranks, global)?.grid([316, 317])?.halo(1);
        let record = |rank, block: &Block<2>| Ok((exchange(rank, block), false));
        let patterns =
            patterns("exchange", [F64].into_iter().collect(), ranks as u32, block, record).unwrap();
        assert_eq!(patterns.classes.len(), classes);
        let schedule = verify(&patterns, lowered(&patterns, |rank| block(rank).unwrap())).unwrap();

        let file = to_bytes(schedule.get()).unwrap();
        assert!(file.len() < 6_000, "{} bytes for {classes} classes", file.len());
        let plan = from_bytes(&file).unwrap();
        assert_eq!(&plan.schedule, schedule.get());
        verify(&patterns, plan.schedule).unwrap();
    }
}

/// Checks the schedules that are compiled for every placement. They are verified, and unchanged
/// after they were written to a file and read again.
fn compiled(grid: [usize; 3], global: [usize; 3], width: usize, wraps: [bool; 3]) -> (usize, usize) {
    let ranks = grid.iter().product::<usize>();
    let block = |rank| Block::at(rank as usize, ranks, global)?.grid(grid)?.periodic(wraps).halo(width);
    let record = |rank, block: &Block<3>| Ok((exchange(rank, block), false));
    let patterns = patterns("exchange", [F64].into_iter().collect(), ranks as u32, block, record).unwrap();
    let mut programs = 0;
    for placement in [Placement::Apart, Placement::Together, Placement::Hosts { ranks_each: 3 }] {
        let schedule = compile(&patterns, placement, &Machine::default(), &Options::default()).unwrap();
        let schedule = verify(&patterns, Schedule::clone(&schedule)).unwrap();
        let plan = from_bytes(&to_bytes(schedule.get()).unwrap()).unwrap();
        assert_eq!(&plan.schedule, schedule.get());
        if placement == Placement::Apart {
            programs = schedule.classes.len();
        }
    }
    (patterns.classes.len(), programs)
}

#[test]
fn an_even_3d_halo_has_27_programs_however_many_ranks() {
    assert_eq!(compiled([4, 4, 4], [16, 16, 16], 1, [false; 3]), (27, 27));
    assert_eq!(compiled([5, 4, 6], [20, 20, 24], 2, [false; 3]), (27, 27));
    assert_eq!(compiled([3, 3, 3], [12, 12, 12], 4, [true; 3]), (27, 27));
}

#[test]
fn an_uneven_3d_halo_has_at_most_216_programs() {
    let (patterns, programs) = compiled([6, 6, 6], [21, 27, 33], 2, [false; 3]);
    assert!(patterns <= 216 && programs <= 216, "{patterns} patterns, {programs} programs");
}

#[test]
fn halos_around_few_ranks_are_compiled_for_every_grid_and_wrap() {
    for grid in [[1, 1, 1], [2, 1, 1], [1, 2, 3], [2, 2, 2], [1, 1, 4]] {
        for wraps in 0..8 {
            let wraps = [wraps & 1 != 0, wraps & 2 != 0, wraps & 4 != 0];
            compiled(grid, [5, 4, 7], 1, wraps);
        }
    }
}

#[test]
fn the_halo_of_a_hundred_thousand_ranks_is_compiled_into_less_than_ten_kilobytes() {
    let ranks = 316 * 317;
    for (global, classes) in [([316 * 64, 317 * 64], 9), ([4096, 4096], 30)] {
        let block = |rank| Block::at(rank as usize, ranks, global)?.grid([316, 317])?.halo(1);
        let record = |rank, block: &Block<2>| Ok((exchange(rank, block), false));
        let patterns =
            patterns("exchange", [F64].into_iter().collect(), ranks as u32, block, record).unwrap();
        for placement in [Placement::Apart, Placement::Together, Placement::Hosts { ranks_each: 48 }] {
            let schedule = compile(&patterns, placement, &Machine::default(), &Options::default()).unwrap();
            let schedule = verify(&patterns, Schedule::clone(&schedule)).unwrap();
            let file = to_bytes(schedule.get()).unwrap();
            let found = (file.len(), schedule.classes.len());
            assert!(found.0 < 10_000 && found.1 == classes, "{placement:?}: {found:?}");
        }
    }
}

/// This build reads a file that an earlier build wrote, and would write the same file. If the files
/// differ, the format has changed and needs a new version. `FENCEPOST_BLESS=1` writes the file
/// again.
#[test]
fn the_format_is_what_it_was() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/halo-6-ranks.plan");
    let block = |rank| Block::at(rank as usize, 6, [20, 31])?.halo(2);
    let record = |rank, block: &Block<2>| Ok((exchange(rank, block), false));
    let patterns = patterns("exchange", [F64].into_iter().collect(), 6, block, record).unwrap();
    let schedule = lowered(&patterns, |rank| block(rank).unwrap());
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
        let made_for = MadeFor::new(&Machine::default(), &Options::default());
        save_all([&schedule], &made_for, path).unwrap();
    }
    let plan = load(path).unwrap();
    assert_eq!(plan.schedule, schedule);
    assert_eq!(plan.digest, schedule.digest());
}
