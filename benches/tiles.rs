//! How fast is a program that exchanges halos only every few steps, and computes these steps band
//! by band? Is the choice of [`Block::advise`] the best one?
//!
//! The tiles are compared with plain threads that sweep step by step, and with a program tiled by
//! hand.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost::grid::Row;
use fencepost::prelude::*;
use fencepost::{Element, Machine, Nanos, TransportKind, ranks};
use fencepost_benches::contest::{short, wanted};
use fencepost_benches::limits::tiles::{Square, five};
use fencepost_benches::{Contest, Harness, ours};
use fencepost_examples_support::pin;
use std::hint::black_box;
use std::ops::{Add, Mul};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Puts the edges of each block into the halos of the blocks around it.
#[superstep]
fn exchange<T: Element, const D: usize>(u: &mut Window<T>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

/// A floating-point number.
trait Real: Element + Add<Output = Self> + Mul<Output = Self> + From<f32> {}
impl Real for f32 {}
impl Real for f64 {}

/// Computes a step of a row: a stencil of five points in a plane, of seven in space.
#[inline(always)]
fn relax<T: Real, const D: usize>(row: &Row<D>, now: &[T], next: &mut [T]) {
    let near = |d: usize, by: isize| row.at(now, std::array::from_fn(|e| if e == d { by } else { 0 }));
    let (up, down, left, right) = (near(D - 2, -1), near(D - 2, 1), near(D - 1, -1), near(D - 1, 1));
    let (here, next) = (row.of(now), row.of_mut(next));
    let (kept, flows) = (T::from(0.4), T::from(if D == 3 { 0.1 } else { 0.15 }));
    if D == 3 {
        let (front, back) = (near(0, -1), near(0, 1));
        for k in 0..row.len() {
            let around = (front[k] + back[k]) + (up[k] + down[k]) + (left[k] + right[k]);
            next[k] = kept * here[k] + flows * around;
        }
    } else {
        for j in 0..row.len() {
            next[j] = kept * here[j] + flows * ((up[j] + down[j]) + (left[j] + right[j]));
        }
    }
}

/// A square or a cube of cells, and the ranks among which it is divided.
#[derive(Clone)]
struct Question<const D: usize> {
    transport: TransportKind,
    ranks: usize,
    cells: usize,
}

impl<const D: usize> Question<D> {
    /// Returns the time of `steps` steps, with an exchange before every `group` steps.
    fn run<T: Real>(&self, group: usize, bands: [usize; D], steps: u64) -> Duration {
        let make = |world: &World| {
            let block = Block::new(world, [self.cells; D])?.halo(group)?;
            let prepared = exchange::prepare(world, &block)?;
            let (mut u, mut v) = (world.window::<T>(block.len())?, world.window::<T>(block.len())?);
            u.fill(T::from(1.0));
            v.fill(T::from(1.0));
            let tiles = block.tiles(group)?.bands(bands)?;
            Ok((tiles, prepared, u, v))
        };
        let groups = steps.div_ceil(group as u64);
        let taken = ours::team_over(self.transport.clone(), self.ranks, groups, make, |_, state, _| {
            let (tiles, exchange, u, v) = state;
            exchange.replay(u)?;
            for row in tiles.rows_inside(1) {
                let [now, next] = row.turn([&mut **u, &mut **v]);
                relax(&row, now, next);
            }
            if group % 2 == 1 {
                std::mem::swap(u, v);
            }
            Ok(())
        });
        taken.mul_f64(steps as f64 / (groups * group as u64) as f64)
    }

    /// Returns the time of a cell that is in cache, and the measured model of the machine.
    fn machine<T: Real>(&self) -> (Nanos, Machine) {
        const PASSES: usize = 200;
        let measured = ranks(self.ranks).transport(self.transport.clone()).collect(|world| {
            pin(world.rank());
            let rows: [usize; D] = std::array::from_fn(|d| if d + 1 == D { 512 } else { 4 });
            let block = Block::at(0, 1, rows)?.halo(1)?;
            let (u, mut v) = (vec![T::from(1.0); block.len()], vec![T::from(1.0); block.len()]);
            let mut pass = || {
                let clock = Instant::now();
                for _ in 0..PASSES {
                    block.rows().for_each(|row| relax(&row, &u, &mut v));
                    black_box(&mut v);
                }
                clock.elapsed().as_nanos() as f64
            };
            let fastest = (0..5).map(|_| pass()).fold(f64::INFINITY, f64::min);
            let mut cell = [fastest / (PASSES * block.extent().iter().product::<usize>()) as f64];
            world.allreduce(&mut cell, Op::Max)?;
            Ok((Nanos(cell[0]), world.measure_machine()?, world.placement()))
        });
        let (cell, machine, _) = measured.expect("the world goes on").swap_remove(0);
        (cell, machine)
    }
}

fn main() {
    let mut harness = Harness::from_arguments();
    visits(&mut harness);
    by_hand(&mut harness);
    let (short, mut choices) = (short(), Choices::default());
    let (squares, cubes): (&[usize], &[usize]) =
        if short { (&[64], &[32]) } else { (&[64, 256, 1024, 2048, 4096, 8192], &[32, 64, 128, 256, 384]) };
    let links = [
        ("local", TransportKind::Local),
        ("shm", TransportKind::ShmThreads),
        ("tcp", TransportKind::TcpThreads),
    ];
    for (link, transport) in links {
        for ranks in if short { vec![2] } else { vec![1, 2, 4, 8] } {
            for &cells in squares {
                let question = Question { transport: transport.clone(), ranks, cells };
                choices.ask::<f64, 2>(short, link, &question);
                choices.ask::<f32, 2>(short, link, &question);
            }
            for &cells in cubes {
                let question = Question { transport: transport.clone(), ranks, cells };
                choices.ask::<f64, 3>(short, link, &question);
                choices.ask::<f32, 3>(short, link, &question);
            }
        }
    }
    choices.print();
}

/// The number of cells that each measurement of the advice computes.
const WORK: f64 = 6e7;
/// The number of repetitions of each measurement.
const ROUNDS: usize = 3;

/// Returns the number of cells of a band in each dimension, as text.
fn shown<const D: usize>(bands: [usize; D]) -> String {
    let cells = |cells: usize| if cells == usize::MAX { "all".into() } else { cells.to_string() };
    bands.map(cells).join(" x ")
}

/// Times visits to all rows, without any computation.
fn visits(harness: &mut Harness) {
    for group in [1, 4, 16] {
        let title = format!("a visit of a row: 2048 rows, {group} steps");
        if !wanted(&title) {
            continue;
        }
        let block = Block::at(0, 1, [2048, 64]).and_then(|block| block.halo(group)).expect("a block");
        let tiles = block.tiles(group).expect("as many steps as cells");
        let in_pieces = tiles.clone().bands([1, 16]).expect("cells");
        let mut contest =
            Contest::new(title, tiles.rows().count()).side("whole rows", move |n| look(&tiles, n));
        harness.run(&mut contest);
        let mut contest = Contest::new("in pieces of 16 cells", in_pieces.rows().count())
            .side("pieces", move |n| look(&in_pieces, n));
        harness.run(&mut contest);
    }
}

/// Returns the time of visiting all rows `times` times.
fn look(tiles: &fencepost::grid::Tiles<2>, times: u64) -> Duration {
    let clock = Instant::now();
    for _ in 0..times {
        tiles.rows().for_each(|row| {
            black_box((row.range(), row.step()));
        });
    }
    clock.elapsed()
}

/// Compares tiles of Fencepost with threads that share a grid and sweep it step by step, and with a
/// program that is tiled by hand.
fn by_hand(harness: &mut Harness) {
    for cells in if short() { vec![64] } else { vec![1024, 2048, 4096] } {
        for threads in [1, 2] {
            for group in [8, 16] {
                let title = format!("by hand: {threads} threads, {cells} squared, {group} steps");
                if !wanted(&title) {
                    continue;
                }
                let swept = Rc::new(Square::shared(cells, threads));
                let cut = Rc::new(Square::cut(cells, threads, group));
                let steps = move |n: u64| n * group as u64;
                let mut contest = Contest::new(title, group)
                    .side("threads that sweep step by step", move |n| swept.sweep(steps(n)))
                    .side("threads, tiled by hand", move |n| cut.tile(steps(n)));
                for (name, transport) in [("local", TransportKind::Local), ("shm", TransportKind::ShmThreads)]
                {
                    contest = contest.side(format!("Block::tiles, {name}"), move |n| {
                        five_points(transport.clone(), threads, cells, group, n)
                    });
                }
                harness.run(&mut contest);
            }
        }
    }
}

/// Returns the time of `groups` groups of steps. The steps are those of [`Square`], computed by
/// tiles.
fn five_points(transport: TransportKind, ranks: usize, cells: usize, group: usize, groups: u64) -> Duration {
    let make = |world: &World| {
        let block = Block::new(world, [cells; 2])?.grid([ranks, 1])?.halo(group)?;
        let prepared = exchange::prepare(world, &block)?;
        let (u, v) = (world.window::<f64>(block.len())?, world.window::<f64>(block.len())?);
        Ok((block.tiles(group)?, prepared, u, v))
    };
    ours::team_over(transport, ranks, groups, make, |_, state, _| {
        let (tiles, exchange, u, v) = state;
        exchange.replay(u)?;
        for row in tiles.rows() {
            let [now, next] = row.turn([&mut **u, &mut **v]);
            let (up, down, left, right) = (row.up(now), row.down(now), row.left(now), row.right(now));
            let (here, next) = (row.of(now), row.of_mut(next));
            for j in 0..row.len() {
                next[j] = five([up[j], down[j], left[j], here[j], right[j]]);
            }
        }
        if group % 2 == 1 {
            std::mem::swap(u, v);
        }
        Ok(())
    })
}

/// The quality of the advice in each case: the time of a step with the advised tiles, as a ratio to
/// the best time, and as a ratio to the time of a step if every step has its own exchange.
#[derive(Default)]
struct Choices {
    cases: Vec<(String, f64, f64)>,
}

impl Choices {
    /// Times each number of steps with the bands that suit it, and the advised number of steps with
    /// the advised bands.
    fn ask<T: Real, const D: usize>(&mut self, short: bool, link: &str, question: &Question<D>) {
        let bits = 8 * size_of::<T>();
        let power = if D == 2 { "squared" } else { "cubed" };
        let title = format!("advice: {link}, {} ranks, {} {power}, f{bits}", question.ranks, question.cells);
        if !wanted(&title) {
            return;
        }
        let (cell, machine) = question.machine::<T>();
        let one = Block::at(0, question.ranks, [question.cells; D])
            .and_then(|block| block.halo(1))
            .expect("a block");
        let placement = match question.transport {
            TransportKind::TcpThreads => fencepost::Placement::Apart,
            _ => fencepost::Placement::Together,
        };
        let size = size_of::<T>();
        let advice = one.advise(cell, size, 2 * size, placement, &machine).expect("advice");
        let (steps, bands) = (advice.steps(), advice.bands());
        let mut sides = vec![(steps, bands)];
        for group in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32] {
            if one.clone().halo(group).is_err() {
                break;
            }
            sides.push((group, std::array::from_fn(|d| if d == 0 && group > 1 { 1 } else { usize::MAX })));
            if group > 1 {
                let cut = if D == 2 { 1024 } else { 16 };
                sides.push((group, std::array::from_fn(|d| [1, cut, usize::MAX][d])));
            }
        }
        // The advised tiles are timed once, even if they are also among the other sides.
        let advised = sides[0];
        let mut is_first = true;
        sides.retain(|side| std::mem::take(&mut is_first) || *side != advised);
        // The sides run one after another, in several rounds.
        let mut times = vec![Vec::new(); sides.len()];
        let cells = question.cells.pow(D as u32) as f64;
        for _ in 0..if short { 1 } else { ROUNDS } {
            for ((group, bands), times) in sides.iter().zip(&mut times) {
                let work = if short { 0.0 } else { WORK };
                let steps = (work / cells).max(2.0 * *group as f64) as u64;
                let taken = question.run::<T>(*group, *bands, steps);
                times.push(taken.as_nanos() as f64 / steps as f64);
            }
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let medians: Vec<f64> = times.iter_mut().map(median).collect();
        println!("\n{title}");
        for ((group, bands), time) in sides.iter().zip(&medians) {
            println!("  {:>12.1} us a step: {group:>2} steps, bands of {}", time / 1e3, shown(*bands));
        }
        println!("{advice}\n{machine}");
        let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let one = sides.iter().position(|(group, _)| *group == 1).map_or(f64::NAN, |side| medians[side]);
        self.cases.push((title, medians[0] / best, medians[0] / one));
    }

    fn print(&self) {
        let within = self.cases.iter().filter(|(_, of_best, _)| *of_best <= 1.15).count();
        println!("\nadvice within 15 percent of the best: {within} of {}", self.cases.len());
        for (title, of_best, of_one) in &self.cases {
            println!("  {of_best:.2} of the best, {of_one:.2} of one step to an exchange: {title}");
        }
    }
}
