//! [`World::measure_machine`]: the machine model of the machine that a program runs on.

use crate::state::supersteps::{Known, Superstep};
use crate::state::window::Window;
use crate::state::world::World;
use crate::supersteps::prepare::{Prepared, adopt};
use fencepost_planner::Result;
use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::Sync;
use fencepost_planner::machine::Machine;
use fencepost_planner::probes::{Probe, fitted, probes};
use fencepost_planner::units::Nanos;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

static PROBE: Superstep = Superstep {
    name: "World::measure_machine",
    module: module_path!(),
    file: file!(),
    line: line!(),
    column: column!(),
    fences: false,
    opens: false,
    mode: None,
    sync: Sync::Fence,
    dynamic: None,
    known: Known::new(),
};

/// How long the exchanges of one measurement take together at least, and how many measurements there are of each: ranks that begin
/// are moved to other cores for some milliseconds, and the least of some is that of ranks that were left in peace.
const LONG: Duration = Duration::from_millis(2);
const TIMES: usize = 7;

impl World {
    /// Measure what communication costs between the ranks of this world, as it is now: with as many ranks to a core as it has, over
    /// the transport that it has. All ranks call it, and get the same figures.
    ///
    /// For [`Block::advise`](fencepost_planner::grid::Block::advise), and to compile for the machine at hand, by
    /// [`Compiled::with`](crate::Compiled::with). This world goes on with the model that it was given. Printed, the figures are a
    /// text for a file, which `FENCEPOST_MACHINE` and [`Ranks::machine`](crate::Ranks::machine) take: then `auto` goes by them
    /// too, and a program makes the same choices in each run, which it need not where it measures.
    ///
    /// Messages of 8 bytes, sections of 64 KiB and columns of 1,024 elements are exchanged by prepared supersteps, packed and, where
    /// memory is shared, copied straight; each with values that are new, which are read after it. A figure that no exchange
    /// of this world shows stays as this world's model has it: those of the network where all ranks share memory, all of them
    /// where there is one rank.
    ///
    /// ```
    /// use fencepost_planner::Machine;
    /// let measured = fencepost_runtime::ranks(2).collect(|world| world.measure_machine())?;
    /// assert_eq!(measured[0], measured[1]);
    /// assert_eq!(measured[0].to_string().parse::<Machine>()?, measured[0]);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence); `NO_MEM` where there is no memory for a window of 1 MiB.
    ///
    /// # Cost
    /// Some 20 ms for each of up to 9 exchanges, or ten times what the exchange takes where that is more.
    #[track_caller]
    pub fn measure_machine(&self) -> Result<Machine> {
        let core = self.core();
        let found = probes(self.size() as u32, self.placement(), &core.machine);
        let probes = core.handler.report(found)?;
        let elements = probes.iter().map(|probe| probe.receives().end).max().unwrap_or(0);
        let mut u = self.window::<u64>(elements)?;
        let measured = probes.into_iter().map(|probe| {
            let time = self.time(&probe, &mut u)?;
            Ok((probe, time))
        });
        Ok(fitted(&core.machine, &measured.collect::<Result<Vec<_>>>()?))
    }

    /// What the exchange takes on the slowest rank, at least.
    fn time(&self, probe: &Probe, u: &mut Window<u64>) -> Result<Nanos> {
        let mut exchange = adopt(&PROBE, self, [Arc::new(probe.schedule().clone())])?;
        let mut rounds = 1;
        while self.all_of(rounds, probe, u, Some(&mut exchange))? < LONG {
            rounds *= 2;
        }
        let mut least = |mut exchange: Option<&mut Prepared>| {
            let times = (0..TIMES).map(|_| self.all_of(rounds, probe, u, exchange.as_deref_mut()));
            times.reduce(|least, time| Ok(least?.min(time?))).unwrap_or(Ok(Duration::ZERO))
        };
        let exchanged = least(Some(&mut exchange))?.saturating_sub(least(None)?);
        Ok(Nanos(exchanged.as_nanos() as f64 / f64::from(rounds)))
    }

    /// What the slowest rank takes to write what is sent, exchange it, or not, and read what comes, this number of times.
    fn all_of(
        &self,
        rounds: u32,
        probe: &Probe,
        u: &mut Window<u64>,
        mut exchange: Option<&mut Prepared>,
    ) -> Result<Duration> {
        self.barrier()?;
        let clock = Instant::now();
        // One element of each cache line.
        let step = probe.stride().max(8);
        for round in 0..rounds {
            u[probe.sends()].iter_mut().step_by(step).for_each(|element| *element = round.into());
            if let Some(exchange) = &mut exchange {
                exchange.replay(&mut *u)?;
            }
            black_box(u[probe.receives()].iter().step_by(step).fold(0, |bits, element| bits ^ element));
        }
        let mut slowest = [clock.elapsed().as_nanos() as u64];
        self.allreduce(&mut slowest, Op::Max)?;
        Ok(Duration::from_nanos(slowest[0]))
    }
}
