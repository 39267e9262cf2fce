//! [`World::measure_machine`]: the machine model of the machine that a program runs on.

use super::caches;
use crate::state::window::Window;
use crate::state::world::World;
use crate::supersteps::prepare::{Prepared, adopt};
use crate::supersteps::state::Superstep;
use fencepost_planner::Result;
use fencepost_planner::element::Op;
use fencepost_planner::machine::Machine;
use fencepost_planner::probes::{Probe, fitted, probes};
use fencepost_planner::units::Nanos;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

static PROBE: Superstep =
    Superstep::of_schedules("World::measure_machine", module_path!(), (file!(), line!(), column!()));

/// The exchanges of one loop take at least `LONG` together. All loops are timed at most `TIMES`
/// times. Times vary widely: at first, ranks may share a core for a tenth of a second while another
/// core is idle. The median is used, since it is the time that a program experiences.
const LONG: Duration = Duration::from_millis(2);
const TIMES: usize = 7;

/// The total time of all loops after which no loop is timed again.
const ENOUGH: Duration = Duration::from_millis(300);

impl World {
    /// Measures the costs of communication between the ranks of this world, and of memory.
    ///
    /// The figures hold for the transport of this world, and for its number of ranks for each core.
    /// All ranks call this, and get the same figures.
    ///
    /// Pass the result to [`Block::advise`](fencepost_planner::grid::Block::advise), or to
    /// [`Compiled::with`](crate::Compiled::with) to compile for the machine at hand. The call does
    /// not change the model of this world. When printed, the figures are the text of a file that
    /// `FENCEPOST_MACHINE` and [`Ranks::machine`](crate::Ranks::machine) accept. With such a file,
    /// `auto` follows the figures too, and a program makes the same choices in each run. A program
    /// that measures in each run may make different choices.
    ///
    /// Prepared supersteps exchange messages of 8 and 256 bytes, 32 messages at one time, columns
    /// of 512 elements, lists of 1024 elements, and planes of 64 rows. They also exchange sections
    /// of 4 and 64 KiB, sections of 256 KiB between hosts, sections that do not fit the cache of a
    /// core, and sections in several packets. Where memory is shared, some elements are also copied
    /// directly. Each exchange sends new values, which are read afterwards. The median time counts.
    /// A figure that no exchange of this world measures stays as in this world's model. If all
    /// ranks share memory, the figures of the network stay. If there is one rank, all figures stay.
    ///
    /// The sizes of the caches come from the system's files, for the host with the smallest caches.
    /// If there are no such files, the sizes stay as in this world's model. To measure the shared
    /// caches, all ranks sweep at the same time over fields of increasing size, from four times the
    /// cache of a core to twice the core's part of the shared caches. Other machines may use the
    /// shared caches as well. So the size of the shared caches is taken to be the size of the
    /// largest field whose sweep takes no more time per byte than sweeps of smaller fields.
    ///
    /// ```
    /// # mod fencepost {
    /// #     pub use {fencepost_planner::Machine, fencepost_runtime::ranks};
    /// # }
    /// use fencepost::Machine;
    /// let measured = fencepost::ranks(2).collect(|world| world.measure_machine())?;
    /// assert_eq!(measured[0], measured[1]);
    /// assert_eq!(measured[0].to_string().parse::<Machine>()?, measured[0]);
    /// # Ok::<(), fencepost_planner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence); also `NO_MEM` if there is no memory for the
    /// window.
    ///
    /// # Cost
    /// Some 30 ms for each of up to 17 exchanges. An exchange that takes long is run three times
    /// instead. Each run also has a barrier and an allreduce. Each rank compiles the exchanges, and
    /// has a window of 5 MiB. The measurement of memory takes some 150 ms, with fields of up to 128
    /// MiB.
    #[track_caller]
    pub fn measure_machine(&self) -> Result<Machine> {
        let (machine, _) = self.probed(TIMES, ENOUGH)?;
        Ok(machine)
    }

    /// Measures as [`measure_machine`](Self::measure_machine) does, but for the given time. Also
    /// returns the name of each exchange, the time that it took, and the time that the measured
    /// model predicts for it.
    ///
    /// # Errors
    /// As [`measure_machine`](Self::measure_machine).
    #[doc(hidden)]
    #[track_caller]
    pub fn measure_machine_for(&self, time: Duration) -> Result<(Machine, Vec<Probed>)> {
        self.probed(usize::MAX, time)
    }

    /// Times each exchange up to `times` times, until all of them together have taken `enough`.
    #[track_caller]
    fn probed(&self, times: usize, enough: Duration) -> Result<(Machine, Vec<Probed>)> {
        let core = self.core();
        let caches = caches::measured(self, &core.machine.caches)?;
        let before = Machine { caches, ..core.machine };
        let found = probes(self.size() as u32, self.placement(), &before);
        let probes = core.handler.report(found)?;
        let elements = probes.iter().map(Probe::elements).max().unwrap_or(0);
        let mut u = self.window::<u64>(elements)?;
        let mut timed = Vec::with_capacity(probes.len());
        for probe in probes {
            timed.push(Timed::of(probe, self, &mut u)?);
        }
        let mut spent = Duration::ZERO;
        for _ in 0..times {
            for timed in &mut timed {
                spent += timed.again(self, &mut u)?;
            }
            if spent > enough || timed.is_empty() {
                break;
            }
        }
        let measured = timed.into_iter().map(|timed| {
            let took = timed.took();
            (timed.probe, took)
        });
        let measured = measured.collect::<Vec<_>>();
        let machine = fitted(&before, &measured);
        let named = |(probe, took): &(Probe, Nanos)| (probe.to_string(), [*took, probe.predicted(&machine)]);
        Ok((machine, measured.iter().map(named).collect()))
    }
}

/// The name of an exchange, the time that it took, and the time that the measured model predicts.
pub type Probed = (String, [Nanos; 2]);

/// A probe, and the times of its loop so far.
struct Timed {
    probe: Probe,
    exchange: Prepared,
    /// The number of exchanges in each loop.
    rounds: u32,
    times: Vec<Duration>,
    /// The index of one element in each cache line that is sent.
    lines: Vec<usize>,
}

impl Timed {
    /// Prepares the exchange of a probe, and finds how many exchanges take at least [`LONG`]
    /// together.
    #[track_caller]
    fn of(probe: Probe, world: &World, u: &mut Window<u64>) -> Result<Self> {
        let exchange = adopt(&PROBE, world, [Arc::new(probe.schedule().clone())])?;
        let lines = probe.lines();
        let mut timed = Self { probe, exchange, rounds: 1, times: Vec::new(), lines };
        // One loop may take long because it was interrupted. So the number of exchanges is accepted
        // only if two loops in a row take long enough.
        while timed.slowest(world, u)?.min(timed.slowest(world, u)?) < LONG {
            timed.rounds *= 2;
        }
        Ok(timed)
    }

    /// Times the loop once more, and returns the time that it took.
    #[track_caller]
    fn again(&mut self, world: &World, u: &mut Window<u64>) -> Result<Duration> {
        let took = self.slowest(world, u)?;
        self.times.push(took);
        Ok(took)
    }

    /// Returns the median time of one exchange on the slowest rank.
    fn took(&self) -> Nanos {
        let mut times = self.times.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Nanos(median.as_nanos() as f64 / f64::from(self.rounds))
    }

    /// Returns how long the slowest rank takes to do this `rounds` times: write elements, exchange
    /// them, and read the elements that have arrived. Cache lines move between cores at each of
    /// these steps.
    #[track_caller]
    fn slowest(&mut self, world: &World, u: &mut Window<u64>) -> Result<Duration> {
        world.barrier()?;
        let clock = Instant::now();
        let shift = self.probe.shift();
        for round in 0..self.rounds {
            self.lines.iter().for_each(|&element| u[element] = round.into());
            self.exchange.replay(&mut *u)?;
            black_box(self.lines.iter().fold(0, |bits, &element| bits ^ u[shift + element]));
        }
        let mut slowest = [clock.elapsed().as_nanos() as u64];
        world.allreduce(&mut slowest, Op::Max)?;
        Ok(Duration::from_nanos(slowest[0]))
    }
}
