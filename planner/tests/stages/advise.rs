//! The number of steps that should follow one exchange.

use fencepost_planner::grid::{Advice, Block};
use fencepost_planner::ir::schedule::Placement::{Apart, Hosts, Together};
use fencepost_planner::machine::{Link, Moving};
use fencepost_planner::units::Nanos;
use fencepost_planner::{ErrorClass, Machine};

/// A machine on which messages cost what `latency` and `per_byte` say, and nothing else does.
fn machine(latency: f64, per_byte: f64) -> Machine {
    let link = Link { latency, overhead: 0.0, payload: 0.0, per_byte };
    let moving = Moving { per_run: 0.0, pack: 0.0, unpack: 0.0, remote_run: 0.0, remote: per_byte };
    Machine { shared: link, network: link, moving }
}

fn advised<const D: usize>(block: &Block<D>, cell: f64, machine: &Machine) -> Advice {
    block.advise(Nanos(cell), 8, Apart, machine).unwrap()
}

#[test]
fn deeper_halos_pay_by_latency_alone() {
    let block = Block::at(0, 4, [64, 64]).unwrap().halo(1).unwrap();
    // The bytes of k exchanges are no fewer in one, which has corners as well.
    assert_eq!(advised(&block, 0.0, &machine(0.0, 1.0)).steps(), 1);
    assert_eq!(advised(&block, 1.0, &machine(0.0, 1.0)).steps(), 1);
    assert_eq!(advised(&block, 1.0, &machine(1e9, 1.0)).steps(), 8);
    let by_latency: Vec<_> =
        (0..60).map(|n| advised(&block, 1.0, &machine(1.25_f64.powi(n), 0.1)).steps()).collect();
    assert!(by_latency.is_sorted(), "{by_latency:?}");
    assert_eq!((by_latency[0], by_latency[59]), (1, 8));
    let by_cell: Vec<_> =
        (0..60).map(|n| advised(&block, 1.25_f64.powi(n), &machine(1e4, 0.1)).steps()).collect();
    assert!(by_cell.is_sorted_by(|a, b| a >= b), "{by_cell:?}");
    assert!(by_cell[0] > 1 && by_cell[59] == 1);
}

#[test]
fn the_best_number_of_steps_is_the_one_of_the_formula() {
    // Two ranks, one side each, one byte a cell: latency / k, and (k - 1) / 2 cells a step.
    let block = Block::at(1, 2, [100]).unwrap().halo(1).unwrap();
    for (latency, steps) in [(0.4, 1), (2.0, 2), (4.5, 3), (8.0, 4), (12.5, 5), (18.0, 6), (24.5, 7)] {
        let advice = block.advise(Nanos(1.0), 1, Apart, &machine(latency, 0.0)).unwrap();
        assert_eq!(advice.steps(), steps, "{advice}");
    }
}

#[test]
fn no_more_steps_are_considered_than_fit_the_block() {
    let dear = machine(1e9, 0.0);
    for (cells, width, most) in [(12, 1, 3), (15, 1, 3), (16, 1, 4), (16, 2, 2), (12, 3, 1), (400, 1, 8)] {
        let block = Block::at(2, 4, [cells]).unwrap().halo(width).unwrap();
        let advice = advised(&block, 1.0, &dear);
        assert_eq!(advice.steps(), most, "{advice}");
        assert_eq!(block.halo(width * most).unwrap().steps(most).unwrap().len(), most);
        let why = if most == 8 { "more than 8 steps are not considered" } else { "wider than" };
        assert!(advice.to_string().contains(why) || advice.to_string().contains("at most one block wide"));
    }
}

/// The cells of the halo that the steps compute, on the rank that computes most, against those that the advice counts.
fn counted<const D: usize>(ranks: usize, block: impl Fn(usize) -> Block<D>) {
    // An exchange costs nothing here, so the sum of a line is its cells.
    let advice = block(0).advise(Nanos(1.0), 8, Together, &machine(0.0, 0.0)).unwrap();
    assert_eq!(advice.steps(), 1);
    for steps in 1..=3 {
        let widths = block(0).widths().map(|width| steps * width);
        let all = |rank| {
            let block = block(rank).halos(widths).unwrap();
            block.steps(steps).unwrap().flat_map(|step| step.rows()).map(|row| row.len()).sum::<usize>()
        };
        let most = (0..ranks).map(all).max().unwrap();
        let own = (0..ranks).map(|rank| block(rank).extent().iter().product::<usize>()).max().unwrap();
        let line = advice.to_string().lines().nth(steps).unwrap().to_owned();
        let rim = (most - steps * own) as f64 / steps as f64;
        assert!(line.contains(&format!(" {rim:.0}: ")), "{rim}: {line}");
    }
}

#[test]
fn the_cells_of_the_halo_are_those_that_steps_compute() {
    let at = |rank, ranks, global| Block::at(rank, ranks, global).unwrap();
    counted(4, |rank| at(rank, 4, [40, 41]).star(1).unwrap());
    counted(6, |rank| at(rank, 6, [40, 41]).halo(2).unwrap());
    counted(6, |rank| at(rank, 6, [47, 41]).wrap().halo(1).unwrap());
    counted(5, |rank| Block::at(rank, 5, [38]).unwrap().halo(2).unwrap());
    counted(8, |rank| Block::at(rank, 8, [13, 15, 17]).unwrap().halos([1, 0, 2]).unwrap());
}

#[test]
fn advice_is_the_same_on_all_ranks_and_displays_its_reasons() {
    let of = |rank| {
        let block = Block::at(rank, 6, [40, 31]).unwrap().star(1).unwrap();
        block.advise(Nanos(1.5), 16, Hosts { ranks_each: 2 }, &Machine::default()).unwrap()
    };
    assert!((1..6).all(|rank| of(rank) == of(0)));
    let times: Vec<_> = (0..10).map(|steps| of(0).predicted(steps).map(|time| time.0.round())).collect();
    assert_eq!((times[0], times[1], times[8], times[9]), (None, Some(6429.0), Some(2013.0), None));
    let text = of(0).to_string();
    let expected = "\
steps  exchange + halo cells, each 1.5 ns = sum, in us a step
    1      6.43 +     0:      0.00 =      6.43
    2      5.42 +    16:      0.02 =      5.45
    3      3.76 +    32:      0.05 =      3.81
    4      2.94 +    58:      0.09 =      3.03
    5      2.45 +    86:      0.13 =      2.58
    6      2.13 +   115:      0.17 =      2.31
    7      1.91 +   145:      0.22 =      2.13
    8      1.75 +   176:      0.26 =      2.01  least
more than 8 steps are not considered";
    assert_eq!(text, expected, "{text}");
}

#[test]
fn advice_is_refused_where_it_makes_no_sense() {
    let block = Block::at(0, 4, [64, 64]).unwrap();
    let machine = Machine::default();
    let refused = |block: &Block<2>, cell: f64, bytes, placement, says: &str| {
        let error = block.advise(Nanos(cell), bytes, placement, &machine).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Arg, "{error}");
        assert!(error.message().contains(says), "{error}");
    };
    refused(&block, 1.0, 8, Apart, "a block without a halo");
    let block = block.halo(1).unwrap();
    refused(&block, -1.0, 8, Apart, "-1 ns: give a finite number of nanoseconds, 0 or more");
    refused(&block, f64::NAN, 8, Apart, "finite");
    refused(&block, f64::INFINITY, 8, Apart, "finite");
    refused(&block, 1.0, 0, Apart, "0 bytes of each cell");
    refused(&block, 1.0, 1 << 32, Apart, "1 to 4294967295");
    refused(&block, 1.0, 8, Hosts { ranks_each: 0 }, "hosts have 0 ranks each");
}

#[test]
fn blocks_of_more_than_any_memory_are_an_error_or_advice() {
    let machine = Machine::default();
    for (cells, width) in [(1 << 40, 1), (1 << 58, 1 << 50), (1 << 59, 1 << 56), (1 << 59, 1 << 59)] {
        for bytes in [1, u32::MAX as usize] {
            let Ok(block) = Block::at(1, 2, [cells]).and_then(|block| block.halo(width)) else { continue };
            let advice = block.advise(Nanos(1e-9), bytes, Apart, &machine);
            assert!(advice.as_ref().map_or(true, |advice| advice.steps() >= 1), "{advice:?}");
        }
    }
    let space = Block::at(5, 8, [1 << 20; 3]).and_then(|block| block.halo(1 << 16)).unwrap();
    assert!(space.advise(Nanos(1.0), 8, Apart, &machine).map_or(true, |advice| advice.steps() >= 1));
}
