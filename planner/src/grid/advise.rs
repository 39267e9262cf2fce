//! [`Advice`]: how many steps should follow one exchange of the halo.
//!
//! A deeper halo is exchanged less often, but each step except the last also computes cells of the
//! halo. [`cost`] predicts the time of the exchange from its compiled schedule, as for every other
//! superstep. The cells that all steps compute are counted. If steps are visited band by band, and
//! the data that a band needs for all steps fits in a cache, all steps together wait for memory
//! only once.
//!
//! **Source** C. Ding, Y. He, SC 2001, on exchanging a wider halo less often in codes that solve
//! PDEs. Different here: the time of an exchange is that of a compiled schedule, not a linear
//! function of the size of a message.

use super::{Block, Error, ErrorClass, Neighbour, Result};
use crate::collect::patterns;
use crate::compile::compile;
use crate::element::ElementType;
use crate::explain::cost;
use crate::ids::{Delta, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use crate::ir::schedule::Placement;
use crate::machine::{Caches, Machine};
use crate::options::Options;
use crate::units::Nanos;
use std::fmt;

/// The numbers of steps that are considered.
const CONSIDERED: [usize; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32];

/// The part of a core's cache that bands may occupy. Bands that occupied 0.8 of it were slower
/// (benches/log/stencils.md).
const FILLED: f64 = 0.6;

/// The part of the shared caches that fields may occupy. The rest is for other data of the program.
const SHARED: f64 = 0.8;

/// More than one step between two exchanges is advised only if a step then takes less than this
/// share of the time that it takes with one step for each exchange. The model is not precise enough
/// for smaller gains.
const GAIN: f64 = 0.98;

/// The cost of visiting a row, in addition to computing its cells.
const ROW: Nanos = Nanos(12.0);

/// The predicted cost of a step, for each number of steps between two exchanges: see
/// [`Block::advise`]. Its `Display` is a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice<const D: usize> {
    costs: Vec<Costs<D>>,
    cell: Nanos,
    /// The reason why no more steps are considered.
    end: String,
}

/// The costs of one exchange and of the steps up to the next one, on the slowest rank.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Costs<const D: usize> {
    steps: usize,
    exchange: Nanos,
    /// The number of cells that all steps compute together.
    cells: u64,
    /// The size of a band, in cells, with which the steps take the least time.
    bands: [usize; D],
    /// The overhead of visiting rows, in addition to computing their cells.
    rows: Nanos,
    /// The time for which cells wait for caches or memory.
    memory: Nanos,
}

impl<const D: usize> Costs<D> {
    /// Returns the predicted time of a step.
    fn step(&self, cell: Nanos) -> Nanos {
        let all = self.exchange.0 + self.cells as f64 * cell.0 + self.rows.0 + self.memory.0;
        Nanos(all / self.steps as f64)
    }
}

impl<const D: usize> Advice<D> {
    /// Returns the number of steps between two exchanges with which a step costs least. If several
    /// numbers cost the same, returns the smallest. Returns 1 if more steps save less than 2
    /// percent.
    pub fn steps(&self) -> usize {
        self.best().map_or(1, |costs| costs.steps)
    }

    /// Returns the number of cells of a band, for [`Tiles::bands`](super::Tiles::bands), with which
    /// [`steps`](Self::steps) steps cost least. It is `usize::MAX` in a dimension that is not cut.
    pub fn bands(&self) -> [usize; D] {
        self.best().map_or([usize::MAX; D], |costs| costs.bands)
    }

    /// Returns the predicted time of a step on the slowest rank, with `steps` steps for each
    /// exchange. Returns `None` for a number of steps that was not considered.
    pub fn predicted(&self, steps: usize) -> Option<Nanos> {
        self.costs.iter().find(|costs| costs.steps == steps).map(|costs| costs.step(self.cell))
    }

    fn best(&self) -> Option<&Costs<D>> {
        let step = |costs: &Costs<D>| costs.step(self.cell).0;
        let one = self.costs.first()?;
        let best =
            self.costs.iter().reduce(|best, costs| if step(costs) < step(best) { costs } else { best })?;
        Some(if step(best) < GAIN * step(one) { best } else { one })
    }
}

impl<const D: usize> fmt::Display for Advice<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "steps  exchange + cells, each {} + rows + memory = sum, in us a step; cells of a band",
            self.cell
        )?;
        for costs in &self.costs {
            let share = |nanos: f64| nanos / 1e3 / costs.steps as f64;
            let cells = costs.cells as f64;
            let least = if self.best() == Some(costs) { "  least" } else { "" };
            let bands = costs.bands.map(|cells| match cells {
                usize::MAX => "all".into(),
                cells => cells.to_string(),
            });
            writeln!(
                f,
                "{:>5} {:>9.2} + {:>5.0}: {:>9.2} + {:>8.2} + {:>8.2} = {:>9.2}; {}{least}",
                costs.steps,
                share(costs.exchange.0),
                cells / costs.steps as f64,
                share(cells * self.cell.0),
                share(costs.rows.0),
                share(costs.memory.0),
                costs.step(self.cell).0 / 1e3,
                bands.join(" x "),
            )?;
        }
        write!(f, "{}", self.end)
    }
}

impl<const D: usize> Block<D> {
    /// Returns how many steps should follow one exchange, from 1 to 32, and in which bands they
    /// should be visited. With this number of steps and these bands, the model of the machine
    /// predicts the lowest cost of a step. The halo of this block is the halo for one step. For `k`
    /// steps, the halo has to be `k` times as wide.
    ///
    /// `cell` is the time to compute one cell when its fields are in a core's cache: measure it by
    /// computing the same few rows repeatedly. `exchanged` is the number of bytes of a cell that
    /// are exchanged. `fields` is the number of bytes of a cell that are read or written, in all
    /// fields together. `placement` describes which ranks share memory, as `World::placement`
    /// returns it.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # use fencepost_planner::ir::schedule::Placement;
    /// # use fencepost_planner::units::Nanos;
    /// # use fencepost_planner::Machine;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [64, 64])?.halo(1)?;
    /// let (exchanged, fields) = (8, 16); // one f64, and another one that takes turns with it
    /// let machine = Machine::default();
    /// let advice = block.advise(Nanos(1.0), exchanged, fields, Placement::Apart, &machine)?;
    /// println!("{advice}"); // for each number of steps: exchange, cells, memory, sum
    /// let block = block.halo(advice.steps())?;
    /// let tiles = block.tiles(advice.steps())?.bands(advice.bands())?;
    /// // one exchange before each group of steps
    /// # assert!(tiles.steps() > 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the program gave no grid, the halo for a number of steps may fit only another grid than
    /// the default grid. The time of these steps is then predicted for that other grid, which
    /// [`halo`](Self::halo) chooses, too.
    ///
    /// The answer is the same on all ranks that give the same numbers. If each rank measures its
    /// own `cell`, the ranks have to agree on one value first, such as the largest, because all
    /// ranks must choose halos of the same width.
    ///
    /// Fields that fit in a core's cache cost only the computation of their cells. So do fields
    /// that fit in the shared caches of a host, if these caches supply bytes as fast as cells are
    /// computed. Steps over other fields wait for caches or memory: once for each group of steps if
    /// the data of a band for all steps fits in a cache, otherwise once for each step. Two effects
    /// are not in the model: ranks wait for each other if their work differs from step to step, and
    /// ranks take turns if there are more ranks than cores. Both make exchanges more expensive, and
    /// deeper halos better, than predicted. If these effects matter, time a few numbers of steps.
    ///
    /// # Errors
    /// ARG if the block has no halo; if `cell` is negative or not finite; if `exchanged` or
    /// `fields` is 0 or more than 2^32 - 1; if `placement` has hosts of 0 ranks.
    ///
    /// # Cost
    /// Compiles an exchange for each number of steps: less than a millisecond each for a few ranks,
    /// about 0.1 s each for 100,000.
    pub fn advise(
        &self,
        cell: Nanos,
        exchanged: usize,
        fields: usize,
        placement: Placement,
        machine: &Machine,
    ) -> Result<Advice<D>> {
        let wrong = |what: String| Err(Error::new(ErrorClass::Arg, what));
        if self.width == [0; D] {
            return wrong("advice about a block without a halo, which exchanges nothing: give it the `.halo(..)` of one step".into());
        }
        if !(cell.0.is_finite() && cell.0 >= 0.0) {
            return wrong(format!(
                "a cell that takes {cell}: give a finite number of nanoseconds, 0 or more"
            ));
        }
        let size = |bytes: usize, of: &str| {
            u32::try_from(bytes).ok().filter(|&size| size > 0).ok_or_else(|| {
                Error::new(
                    ErrorClass::Arg,
                    format!(
                        "{bytes} bytes of each cell: give those of all fields that are {of}, 1 to {}",
                        u32::MAX
                    ),
                )
            })
        };
        let (exchanged, fields) = (size(exchanged, "exchanged")?, size(fields, "read or written")?);
        let mut costs = Vec::new();
        let mut end = format!("more than {} steps are not considered", CONSIDERED[CONSIDERED.len() - 1]);
        for steps in CONSIDERED {
            let deep = match self.deepened(steps) {
                Ok(deep) => deep,
                Err(error) => {
                    end = format!("no more: {}", error.message());
                    break;
                }
            };
            let exchange = deep.exchange(ElementType::opaque(exchanged), placement, machine)?;
            let (cells, rows) = deep.work(steps);
            let near = placement.ranks_of_a_host(self.ranks);
            let waits =
                Waits { steps, cells, rows, cell, fields: fields.into(), caches: &machine.caches, near };
            let (bands, rows, memory) = waits.least(&deep);
            costs.push(Costs { steps, exchange, cells, bands, rows, memory });
        }
        Ok(Advice { costs, cell, end })
    }

    /// Returns the same block with the halo that `steps` steps need.
    fn deepened(&self, steps: usize) -> Result<Self> {
        // One step of a star needs no corners; several steps do.
        if steps == 1 { Ok(self.clone()) } else { self.clone().halos(self.width.map(|width| width * steps)) }
    }

    /// Returns the predicted time of an exchange of the halo.
    fn exchange(&self, element: ElementType, placement: Placement, machine: &Machine) -> Result<Nanos> {
        let window = WindowId(0);
        let put = |me: u32, block: &Self, n: Neighbour<D>| Operation {
            kind: Kind::Put,
            window,
            target: Some(Delta::between(Rank(me), Rank(n.rank as u32))),
            remote: block.halo_of(&n),
            local: Local::Section { window, datatype: block.inner_edge(&n) },
            mode: Mode::Auto,
            site: Site::default(),
        };
        let record = |me, block: &Self| {
            Ok((Pattern { operations: block.neighbours().map(|n| put(me, block, n)).collect() }, false))
        };
        let windows = [element].into_iter().collect();
        let patterns = patterns("halo", windows, self.ranks as u32, |rank| self.of(rank as usize), record)?;
        let schedule = compile(&patterns, placement, machine, &Options::default())?;
        Ok(cost(&schedule, machine).predicted)
    }

    /// Returns the largest number of cells that a rank computes in all of `steps` steps, and the
    /// number of rows of these cells.
    fn work(&self, steps: usize) -> (u64, u64) {
        // For each dimension separately: the number of own cells of a block, and the number of its
        // sides that have another block behind them.
        let kinds: [Vec<(usize, usize)>; D] = std::array::from_fn(|d| {
            let (ranks, each, more) =
                (self.grid[d], self.global[d] / self.grid[d], self.global[d] % self.grid[d]);
            let kind = |coord: usize| {
                let edges = usize::from(coord == 0) + usize::from(coord + 1 == ranks);
                (each + usize::from(coord < more), if self.wraps[d] { 2 } else { 2 - edges })
            };
            let mut kinds: Vec<_> = (0..ranks).map(kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        });
        let reach = self.width.map(|width| width / steps);
        let mut most = (0, 0);
        let number = kinds.iter().map(Vec::len).product::<usize>();
        for mut code in 0..number {
            let kind: [(usize, usize); D] = std::array::from_fn(|d| {
                let kind = kinds[d][code % kinds[d].len()];
                code /= kinds[d].len();
                kind
            });
            let boxes = |dims: usize, left: usize| -> u64 {
                (0..dims).map(|d| (kind[d].0 + kind[d].1 * reach[d] * left) as u64).product()
            };
            let all = |dims: usize| (0..steps).map(|left| boxes(dims, left)).sum();
            most = most.max((all(D), all(D - 1)));
        }
        most
    }
}

/// The values from which the waits of a group of steps are predicted. These waits are in addition
/// to the time that the cells of the group take.
struct Waits<'a> {
    steps: usize,
    /// The number of cells that all steps compute together.
    cells: u64,
    /// The number of rows of these cells.
    rows: u64,
    cell: Nanos,
    /// The number of bytes of a cell in all fields.
    fields: f64,
    caches: &'a Caches,
    /// The number of ranks of a host.
    near: usize,
}

impl Waits<'_> {
    /// Returns the bands with which the steps wait least, with their times for rows and memory. If
    /// several bands wait equally long, returns the largest.
    fn least<const D: usize>(&self, block: &Block<D>) -> ([usize; D], Nanos, Nanos) {
        let lengths: &[usize] = if D == 1 { &LINES } else { &PIECES };
        let rows: &[usize] = if D == 3 { &ROWS } else { &[usize::MAX] };
        let cut = |length, rows| {
            std::array::from_fn(|d| match d {
                d if d + 1 == D => length,
                0 => 1,
                _ => rows,
            })
        };
        let all = lengths.iter().flat_map(|&length| rows.iter().map(move |&rows| cut(length, rows)));
        let cost = |bands: [usize; D]| {
            let (rows, memory) = self.of(block, bands);
            (bands, rows, memory)
        };
        let sum = |(_, rows, memory): &([usize; D], Nanos, Nanos)| rows.0 + memory.0;
        // If the block fits a cache, no order is better than steps that sweep the whole block.
        let swept = cost([usize::MAX; D]);
        all.map(cost).fold(swept, |best, costs| if sum(&costs) < sum(&best) { costs } else { best })
    }

    /// Returns the time to visit the rows with these bands, and the time to wait for memory in
    /// addition to computing the cells.
    fn of<const D: usize>(&self, block: &Block<D>, bands: [usize; D]) -> (Nanos, Nanos) {
        let stored: [f64; D] = std::array::from_fn(|d| {
            block.global[d].div_ceil(block.grid[d]) as f64 + 2.0 * block.width[d] as f64
        });
        let shifts = super::tiles::shifts(block.width.map(|width| width / self.steps));
        let ahead: [f64; D] = shifts.map(|shift| shift as f64 * (self.steps + 1) as f64);
        // The extent that the steps of a band read and write, and the factor by which loads grow
        // because a band reads cells of its neighbours again.
        let held = |d: usize| (bands[d] as f64 + ahead[d]).min(stored[d]);
        let again =
            |d: usize| if (bands[d] as f64) < stored[d] { 1.0 + ahead[d] / bands[d] as f64 } else { 1.0 };
        let all = stored.iter().product::<f64>() * self.fields;
        let window = (0..D).map(held).product::<f64>() * self.fields;
        let loaded = all * (1..D).map(again).product::<f64>();
        let (steps, caches) = (self.steps as f64, self.caches);
        let core = FILLED * caches.core;
        let host = (SHARED * caches.host / self.near as f64).max(core);
        // A step reads each plane again while it computes the planes around it. If a core's cache
        // does not hold all planes that a plane is computed from, they are loaded from the shared
        // caches each time. Half of the bytes belong to fields that are read.
        let reach = (block.width[0] / self.steps) as f64;
        let planes = (2.0 * reach + 1.0) * (1..D).map(held).product::<f64>() * self.fields;
        let reread = if planes <= core { 0.0 } else { all * steps * (1.0 + reach) };
        let (near, far) = if all <= core {
            (0.0, 0.0)
        } else if window <= core {
            // The data of a band is loaded once for all steps, from the shared caches or from
            // memory.
            if all <= host { (loaded, 0.0) } else { (0.0, loaded) }
        } else if all <= host {
            (reread.max(all * steps), 0.0)
        } else if window <= host {
            (reread.max(all * steps), loaded)
        } else {
            (reread, all * steps)
        };
        let pieces = (stored[D - 1] / bands[D - 1] as f64).max(1.0);
        let rows = self.rows as f64 * pieces * ROW.0;
        // Caches load the next cells while cells are computed. Loads from memory overlap in part
        // with loads from caches and with computation. Loads from shared caches overlap in part if
        // they take longer than the cells of a sweep.
        let cells = self.cells as f64 * self.cell.0;
        let near = near * caches.near;
        let hidden = all * steps * caches.near <= cells;
        let cached = if hidden { cells.max(near) } else { cells.hypot(near) };
        let all = cached.hypot(far * caches.memory);
        (Nanos(rows), Nanos(all - cells))
    }
}

/// The values that are tried: the lengths of a band of a one-dimensional block, the lengths of the
/// pieces of a row of other blocks, and the numbers of rows of a band of planes.
const LINES: [usize; 6] = [usize::MAX, 65_536, 16_384, 8192, 4096, 1024];
const PIECES: [usize; 5] = [usize::MAX, 4096, 2048, 1024, 512];
const ROWS: [usize; 7] = [usize::MAX, 128, 64, 32, 16, 8, 4];
