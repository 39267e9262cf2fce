//! The number of steps that should follow one exchange.

use fencepost_planner::grid::{Advice, Block};
use fencepost_planner::ir::schedule::Placement::{Apart, Hosts, Together};
use fencepost_planner::machine::{Caches, Link, Moving};
use fencepost_planner::units::Nanos;
use fencepost_planner::{ErrorClass, Machine};

/// Returns a machine on which messages cost `latency` and `per_byte`, and nothing else costs
/// anything.
fn machine(latency: f64, per_byte: f64) -> Machine {
    let link = Link { latency, overhead: 0.0, further: 0.0, payload: 0.0, per_byte };
    let moving = Moving {
        per_run: 0.0,
        listed: 0.0,
        pack: 0.0,
        unpack: 0.0,
        short: 1.0,
        long: 1.0,
        remote_run: 0.0,
        remote: per_byte,
        remote_rows: per_byte,
    };
    let caches = Caches { core: 1e30, host: 1e30, near: 0.0, memory: 0.0 };
    Machine { shared: link, network: link, moving, caches }
}

fn advised<const D: usize>(block: &Block<D>, cell: f64, machine: &Machine) -> Advice<D> {
    block.advise(Nanos(cell), 8, 16, Apart, machine).unwrap()
}

#[test]
fn deeper_halos_pay_by_latency_alone() {
    let block = Block::at(0, 4, [64, 64]).unwrap().halo(1).unwrap();
    // One exchange for k steps moves at least as many bytes as k exchanges for one step, since it
    // also moves the corners.
    assert_eq!(advised(&block, 0.0, &machine(0.0, 1.0)).steps(), 1);
    assert_eq!(advised(&block, 1.0, &machine(0.0, 1.0)).steps(), 1);
    assert_eq!(advised(&block, 1.0, &machine(1e9, 1.0)).steps(), 32);
    let by_latency: Vec<_> =
        (0..60).map(|n| advised(&block, 1.0, &machine(1.25_f64.powi(n), 0.1)).steps()).collect();
    assert!(by_latency.is_sorted(), "{by_latency:?}");
    assert_eq!((by_latency[0], by_latency[59]), (1, 32));
    let by_cell: Vec<_> =
        (0..60).map(|n| advised(&block, 1.25_f64.powi(n), &machine(1e4, 0.1)).steps()).collect();
    assert!(by_cell.is_sorted_by(|a, b| a >= b), "{by_cell:?}");
    assert!(by_cell[0] > 1 && by_cell[59] == 1);
}

#[test]
fn the_best_number_of_steps_is_the_one_of_the_formula() {
    // Two ranks exchange one side each, with one byte for each cell. Rows cost nothing. A step
    // costs `latency / k` plus the time of `(k - 1) / 2` cells. A cell takes a millisecond.
    let block = Block::at(1, 2, [20]).unwrap().halo(1).unwrap();
    for (latency, steps) in [(0.4, 1), (2.0, 2), (4.5, 3), (8.0, 4), (12.5, 5), (18.0, 6), (24.5, 7)] {
        let advice = block.advise(Nanos(1e6), 1, 2, Apart, &machine(latency * 1e6, 0.0)).unwrap();
        assert_eq!(advice.steps(), steps, "{advice}");
    }
}

#[test]
fn no_more_steps_are_considered_than_fit_the_block() {
    let dear = machine(1e9, 0.0);
    for (cells, width, most) in [(12, 1, 3), (15, 1, 3), (16, 1, 4), (16, 2, 2), (12, 3, 1), (400, 1, 32)] {
        let block = Block::at(2, 4, [cells]).unwrap().halo(width).unwrap();
        let advice = advised(&block, 1.0, &dear);
        assert_eq!(advice.steps(), most, "{advice}");
        assert_eq!(block.halo(width * most).unwrap().tiles(most).unwrap().steps(), most);
        let why = if most == 32 { "more than 32 steps are not considered" } else { "wider than" };
        assert!(advice.to_string().contains(why) || advice.to_string().contains("at most one block wide"));
    }
}

/// Compares the number of cells that the steps compute, on the rank that computes most, with the
/// number that the advice counts.
fn counted<const D: usize>(ranks: usize, block: impl Fn(usize) -> Block<D>) {
    let advice = block(0).advise(Nanos(1.0), 8, 16, Together, &machine(0.0, 0.0)).unwrap();
    assert_eq!(advice.steps(), 1);
    for steps in 1..=3 {
        let widths = block(0).widths().map(|width| steps * width);
        let all = |rank| {
            let block = block(rank).halos(widths).unwrap();
            block.tiles(steps).unwrap().rows().map(|row| row.len()).sum::<usize>()
        };
        let most = (0..ranks).map(all).max().unwrap();
        let line = advice.to_string().lines().nth(steps).unwrap().to_owned();
        let cells = most as f64 / steps as f64;
        assert!(line.contains(&format!(" {cells:.0}: ")), "{cells}: {line}");
    }
}

#[test]
fn the_cells_are_those_that_steps_compute() {
    let at = |rank, ranks, global| Block::at(rank, ranks, global).unwrap();
    let at3 = |rank| Block::at(rank, 8, [13, 15, 17]).unwrap();
    counted(4, |rank| at(rank, 4, [40, 41]).star(1).unwrap());
    counted(6, |rank| at(rank, 6, [40, 41]).halo(2).unwrap());
    counted(6, |rank| at(rank, 6, [47, 41]).periodic([true; 2]).halo(1).unwrap());
    counted(5, |rank| Block::at(rank, 5, [38]).unwrap().halo(2).unwrap());
    counted(8, |rank| at3(rank).grid([2, 2, 2]).unwrap().halos([1, 0, 2]).unwrap());
}

#[test]
fn advice_is_the_same_on_all_ranks_and_displays_its_reasons() {
    let of = |rank| {
        let block = Block::at(rank, 6, [40, 31]).unwrap().star(1).unwrap();
        block.advise(Nanos(1.5), 16, 32, Hosts { ranks_each: 2 }, &Machine::default()).unwrap()
    };
    assert!((1..6).all(|rank| of(rank) == of(0)));
    let times: Vec<_> = (0..10).map(|steps| of(0).predicted(steps).map(|time| time.0.round())).collect();
    assert_eq!((times[0], times[1], times[8], times[9]), (None, Some(6933.0), Some(2589.0), None));
    let text = of(0).to_string();
    let expected = "\
steps  exchange + cells, each 1.5 ns + rows + memory = sum, in us a step; cells of a band
    1      6.43 +   224:      0.34 +     0.17 +     0.00 =      6.93; all x all
    2      5.42 +   240:      0.36 +     0.17 +     0.00 =      5.96; all x all
    3      3.76 +   256:      0.38 +     0.18 +     0.00 =      4.32; all x all
    4      2.94 +   282:      0.42 +     0.19 +     0.00 =      3.55; all x all
    5      2.45 +   310:      0.47 +     0.20 +     0.00 =      3.12; all x all
    6      2.13 +   339:      0.51 +     0.22 +     0.00 =      2.86; all x all
    7      1.91 +   369:      0.55 +     0.23 +     0.00 =      2.69; all x all
    8      1.75 +   400:      0.60 +     0.24 +     0.00 =      2.59; all x all
   10      1.53 +   468:      0.70 +     0.26 +     0.00 =      2.50; all x all  least
   12      1.40 +   540:      0.81 +     0.29 +     0.00 =      2.50; all x all
no more: a halo of 14 cells in dimension 0, where 40 cells over 3 ranks make blocks of as few as 13: a halo is at most \
one block wide; no other grid of ranks has room for it; use fewer ranks, or a narrower halo";
    assert_eq!(text, expected, "{text}");
}

/// Returns a machine on which only memory costs something. Shared caches supply 16 bytes in 0.24
/// ns.
fn memory(core: f64, host: f64) -> Machine {
    let caches = Caches { core, host, near: 0.015, memory: 1.0 };
    Machine { caches, ..machine(0.0, 0.0) }
}

#[test]
fn fields_that_the_caches_of_a_host_hold_are_swept_step_by_step() {
    let block = Block::at(0, 1, [100, 100]).unwrap().halo(1).unwrap();
    let fields = 102.0 * 102.0 * 16.0;
    let (core, host) = (fields / 0.6, fields / 0.8);
    for caches in [memory(core, 0.0), memory(core / 2.0, host)] {
        let advice = advised(&block, 1.0, &caches);
        assert_eq!((advice.steps(), advice.bands()), (1, [usize::MAX; 2]), "{advice}");
    }
    let advice = advised(&block, 1.0, &memory(core / 2.0, host - 1e3));
    assert!(advice.steps() > 1, "{advice}");
}

#[test]
fn bands_pay_in_shared_caches_that_are_slower_than_the_cells() {
    let block = Block::at(0, 1, [1000, 100]).unwrap().halo(1).unwrap();
    let advice = |cell| advised(&block, cell, &memory(200_000.0, 1e9));
    assert_eq!(advice(0.25).steps(), 1);
    let slower = advice(0.2);
    assert!(slower.steps() > 1 && slower.bands()[0] == 1, "{slower}");
    // A step waits for the shared caches, and visits 1000 rows, for 12 ns each.
    let time = slower.predicted(1).unwrap().0;
    assert!(((time - 12e3) / (1002.0 * 102.0 * 0.2_f64.hypot(0.24)) - 1.0).abs() < 0.05, "{time}");
}

#[test]
fn steps_are_as_many_and_bands_as_large_as_a_cache_holds() {
    // A row of both fields has 16 KiB, so one band of `k` steps takes `k + 2` times 16 KiB.
    let block = Block::at(0, 1, [1000, 1024 - 2]).unwrap().halo(1).unwrap();
    for rows in [4_u32, 6, 10, 18, 34] {
        let cache = f64::from(rows * 16 * 1024) * 1.02 / 0.6;
        let advice = advised(&block, 1e-3, &memory(cache, 0.0));
        let held = |steps: usize| {
            let along = |d: usize, cells: usize, shift: usize| {
                let stored = [1000, 1022][d] + 2 * steps;
                advice.bands()[d].saturating_add(cells).saturating_add(shift * (steps + 1)).min(stored)
            };
            16.0 * along(0, 0, 1) as f64 * along(1, 0, 8) as f64
        };
        assert!(advice.steps() > 1 && held(advice.steps()) <= 0.6 * cache, "{rows} rows: {advice}");
    }
    // If nothing fits a cache, computing one step after another is as good as any other order.
    let advice = advised(&block, 1e-3, &memory(100.0, 0.0));
    assert_eq!(advice.steps(), 1, "{advice}");
}

#[test]
fn planes_larger_than_a_cache_are_cut_into_bands_of_rows() {
    let block = Block::at(0, 1, [256; 3]).unwrap().halo(1).unwrap();
    let advice = advised(&block, 0.3, &memory(1_048_576.0, 4_194_304.0));
    let [planes, rows, cells] = advice.bands();
    assert!(planes == 1 && rows < 256 && cells == usize::MAX && advice.steps() > 1, "{advice}");
    let whole = advised(&block, 0.3, &memory(1e9, 1e9));
    assert_eq!((whole.steps(), whole.bands()[1]), (1, usize::MAX), "{whole}");
}

#[test]
fn bands_cut_planes_that_a_core_would_read_again_from_shared_caches() {
    let block = Block::at(0, 1, [64; 3]).unwrap().halo(1).unwrap();
    // The shared caches hold both fields. A plane of both fields together has 68 KiB. To compute
    // one plane, a step reads three.
    let rows = |core| advised(&block, 0.3, &memory(core, 1e8)).bands()[1];
    assert_eq!(rows(400_000.0), usize::MAX);
    assert!(rows(300_000.0) < 64, "{}", rows(300_000.0));
}

#[test]
fn ranks_of_a_host_have_a_part_each_of_the_cache_that_they_share() {
    let block = Block::at(0, 8, [2048, 2048]).unwrap().halo(1).unwrap();
    // The two fields of a rank have 8 MiB together. They fit if two ranks share the cache, but not
    // if eight do.
    let machine = memory(262_144.0, 40.0 * 1024.0 * 1024.0);
    let time =
        |placement| block.advise(Nanos(0.3), 8, 16, placement, &machine).unwrap().predicted(1).unwrap().0;
    assert!(time(Together) > 10.0 * time(Apart), "{} and {}", time(Together), time(Apart));
    let pairs = Hosts { ranks_each: 2 };
    assert_eq!(time(pairs), time(Apart));
}

#[test]
fn advice_is_refused_where_it_makes_no_sense() {
    let block = Block::at(0, 4, [64, 64]).unwrap();
    let machine = Machine::default();
    let refused = |block: &Block<2>, cell: f64, bytes, placement, says: &str| {
        let error = block.advise(Nanos(cell), bytes, 16, placement, &machine).unwrap_err();
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
    let error = block.advise(Nanos(1.0), 8, 0, Apart, &machine).unwrap_err();
    assert!(
        error.message().contains("0 bytes of each cell: give those of all fields that are read or written"),
        "{error}"
    );
    refused(&block, 1.0, 8, Hosts { ranks_each: 0 }, "hosts have 0 ranks each");
}

#[test]
fn blocks_of_more_than_any_memory_are_an_error_or_advice() {
    let machine = Machine::default();
    for (cells, width) in [(1 << 40, 1), (1 << 58, 1 << 50), (1 << 59, 1 << 56), (1 << 59, 1 << 59)] {
        for bytes in [1, u32::MAX as usize] {
            let Ok(block) = Block::at(1, 2, [cells]).and_then(|block| block.halo(width)) else { continue };
            let advice = block.advise(Nanos(1e-9), bytes, bytes, Apart, &machine);
            assert!(advice.as_ref().map_or(true, |advice| advice.steps() >= 1), "{advice:?}");
        }
    }
    let space = Block::at(5, 8, [1 << 20; 3]).and_then(|block| block.halo(1 << 16)).unwrap();
    assert!(space.advise(Nanos(1.0), 8, 16, Apart, &machine).map_or(true, |advice| advice.steps() >= 1));
}
