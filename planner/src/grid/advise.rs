//! [`Advice`]: how many steps should follow one exchange of the halo.
//!
//! A deeper halo is exchanged less often, and each step but the last computes cells of the halo as well. The time of the
//! exchange is predicted by [`cost`], for the schedule that the halo would be compiled to, as for every other superstep; the
//! further cells are counted.
//!
//! **Source** C. Ding, Y. He, SC 2001, on exchanging a wider halo less often in codes that solve PDEs. Different here: the time of an
//! exchange is that of a compiled schedule, not a line through sizes of messages.

use super::{Block, Error, ErrorClass, Neighbour, Result};
use crate::collect::patterns;
use crate::compile::compile;
use crate::element::ElementType;
use crate::explain::cost;
use crate::ids::{Delta, Rank, WindowId};
use crate::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use crate::ir::schedule::Placement;
use crate::machine::Machine;
use crate::options::Options;
use crate::units::Nanos;
use std::fmt;

/// The largest number of steps that is considered.
const STEPS_MAX: usize = 8;

/// The cost of a step by the number of steps between two exchanges: see [`Block::advise`]. It displays as a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// By number of steps, from 1.
    costs: Vec<Costs>,
    cell: Nanos,
    /// The reason why no more steps are considered.
    end: String,
}

/// The costs of one exchange and of the steps up to the next one, on the slowest rank.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Costs {
    exchange: Nanos,
    /// The number of cells of the halo that all steps compute together.
    rim: u64,
}

impl Advice {
    /// Returns the number of steps for one exchange with which a step costs least; the smallest of those that are equal.
    pub fn steps(&self) -> usize {
        (1..=self.costs.len())
            .reduce(|best, steps| if self.time(steps) < self.time(best) { steps } else { best })
            .unwrap_or(1)
    }

    /// Returns the predicted time of a step above that of the own cells, with `steps` to an exchange: a share of the exchange,
    /// and of the cells of the halo. `None` for a number of steps that was not considered.
    pub fn predicted(&self, steps: usize) -> Option<Nanos> {
        (1..=self.costs.len()).contains(&steps).then(|| Nanos(self.time(steps)))
    }

    fn time(&self, steps: usize) -> f64 {
        let (exchange, rim) = self.shares(steps);
        exchange + rim * self.cell.0
    }

    fn shares(&self, steps: usize) -> (f64, f64) {
        let Costs { exchange, rim } = self.costs[steps - 1];
        (exchange.0 / steps as f64, rim as f64 / steps as f64)
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = self.steps();
        writeln!(f, "steps  exchange + halo cells, each {} = sum, in us a step", self.cell)?;
        for steps in 1..=self.costs.len() {
            let (exchange, rim) = self.shares(steps);
            let (work, sum) = (rim * self.cell.0 / 1e3, self.time(steps) / 1e3);
            let least = if steps == best { "  least" } else { "" };
            writeln!(f, "{steps:>5} {:>9.2} + {rim:>5.0}: {work:>9.2} = {sum:>9.2}{least}", exchange / 1e3)?;
        }
        write!(f, "{}", self.end)
    }
}

impl<const D: usize> Block<D> {
    /// Returns how many steps should follow one exchange, from 1 to 8: the number for which the model of the machine says that a
    /// step costs least. The halo of this block is that of one step; with `k` steps it has to be `k` times as wide.
    ///
    /// `cell` is what computing one cell takes, `bytes` how many bytes of a cell are exchanged (those of all fields together),
    /// `placement` which ranks share memory, as `World::placement` returns it.
    ///
    /// ```
    /// # use fencepost_planner::grid::Block;
    /// # use fencepost_planner::ir::schedule::Placement;
    /// # use fencepost_planner::units::Nanos;
    /// # use fencepost_planner::Machine;
    /// # fn main() -> fencepost_planner::Result<()> {
    /// let block = Block::at(0, 4, [64, 64])?.halo(1)?;
    /// let advice = block.advise(Nanos(1.0), 8, Placement::Apart, &Machine::default())?;
    /// println!("{advice}"); // for each number of steps: exchange, cells of the halo, sum
    /// let block = block.halo(advice.steps())?;
    /// for step in block.steps(advice.steps())? {
    ///     // one exchange was before this loop
    /// }
    /// # assert!(advice.steps() > 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The answer is the same on all ranks that give the same numbers. Where each rank measures its own `cell`, they have to
    /// agree on one first, such as the largest, for ranks with halos of different widths do not fit each other.
    ///
    /// The model knows what bytes and messages cost, not what else happens in a machine: that ranks wait for each other where their
    /// work differs from step to step, or that more ranks than cores take turns, which makes exchanges dearer and deeper halos better
    /// than it says; that the fields of a wider halo no longer fit the cache, which makes them worse.
    ///
    /// # Errors
    /// ARG if the block has no halo; if `cell` is negative or not finite; if `bytes` is 0 or more than 2^32 - 1; if `placement` has
    /// hosts of 0 ranks.
    ///
    /// # Cost
    /// Compiles an exchange for each number of steps: below a millisecond each for some ranks, some 0.1 s each for 100,000.
    pub fn advise(
        &self,
        cell: Nanos,
        bytes: usize,
        placement: Placement,
        machine: &Machine,
    ) -> Result<Advice> {
        let wrong = |what: String| Err(Error::new(ErrorClass::Arg, what));
        if self.width == [0; D] {
            return wrong("advice about a block without a halo, which exchanges nothing: give it the `.halo(..)` of one step".into());
        }
        if !(cell.0.is_finite() && cell.0 >= 0.0) {
            return wrong(format!(
                "a cell that takes {cell}: give a finite number of nanoseconds, 0 or more"
            ));
        }
        let Some(size) = u32::try_from(bytes).ok().filter(|&size| size > 0) else {
            return wrong(format!(
                "{bytes} bytes of each cell: give those of all fields that are exchanged, 1 to {}",
                u32::MAX
            ));
        };
        let mut costs = Vec::new();
        let mut end = format!("more than {STEPS_MAX} steps are not considered");
        for steps in 1..=STEPS_MAX {
            let deep = match self.deepened(steps) {
                Ok(deep) => deep,
                Err(error) => {
                    end = format!("no more: {}", error.message());
                    break;
                }
            };
            let exchange = deep.exchange(ElementType::opaque(size), placement, machine)?;
            costs.push(Costs { exchange, rim: deep.work(steps) - steps as u64 * deep.work(1) });
        }
        Ok(Advice { costs, cell, end })
    }

    /// Returns the same block with the halo that `steps` steps need.
    fn deepened(&self, steps: usize) -> Result<Self> {
        // One step of a star needs no corners; several do.
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

    /// Returns the largest number of cells that a rank computes in all of `steps` steps.
    fn work(&self, steps: usize) -> u64 {
        // Each dimension by itself: how many own cells a block has there, and behind how many of its sides is another block.
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
        let mut most = 0;
        let number = kinds.iter().map(Vec::len).product::<usize>();
        for mut code in 0..number {
            let kind: [(usize, usize); D] = std::array::from_fn(|d| {
                let kind = kinds[d][code % kinds[d].len()];
                code /= kinds[d].len();
                kind
            });
            let cells = |left: usize| -> u64 {
                (0..D).map(|d| (kind[d].0 + kind[d].1 * reach[d] * left) as u64).product()
            };
            most = most.max((0..steps).map(cells).sum());
        }
        most
    }
}
