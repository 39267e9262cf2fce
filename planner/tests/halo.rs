//! The 8-neighbour halo of 100,172 ranks, lowered by hand the packed way: verified, written, read and verified again.

use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::{Block, Neighbour};
use fencepost_planner::ids::{BufferId, Delta, Rank, RoundId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Patterns, Site};
use fencepost_planner::ir::schedule::{
    Buffer, Frame, Instruction, Part, Placement, Program, Routing, Schedule,
};
use fencepost_planner::plan::{from_bytes, to_bytes};
use fencepost_planner::verify;

const W: WindowId = WindowId(0);
const F64: ElementType = ElementType::scalar(Scalar::F64);

fn exchange(me: u32, block: &Block<2>) -> Pattern {
    let put = |n: Neighbour<2>| Operation {
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

/// One message to each neighbour, no two of them the same rank.
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
        placement: Placement::Apart,
    }
}

#[test]
fn a_halo_of_a_hundred_thousand_ranks_is_verified_and_fits_ten_kilobytes() {
    let ranks = 316 * 317;
    // Uneven, there are 36 classes of blocks; what goes down to a smaller block lands where it would in a larger one.
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
