//! [`candidates`] compiles a plan in all modes, and [`measure`] times the compiled plans in a
//! world. Neither needs the program of the plan.

use crate::documents::{MeasurementRow, PredictionRow};
use crate::predict;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Pattern};
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::options::Options;
use fencepost_planner::units::Bytes;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::__private::{Prepared, Superstep, UntypedWindow, adopt, untyped};
use fencepost_runtime::{AnyWindow, Compiled, Window, World};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

static MEASURED: Superstep =
    Superstep::of_schedules("fencepost compare", module_path!(), (file!(), line!(), column!()));

/// The chunk sizes that are tried for pipelined messages, in addition to the chunk size of the
/// model.
const CHUNKS: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];

/// The least time that the runs of a candidate take in one turn.
const TURN: Duration = Duration::from_millis(5);
/// The fewest turns of each candidate.
const TURNS_MIN: usize = 4;
/// The most turns of each candidate.
const TURNS_MAX: usize = 1 << 16;

/// A plan in one mode.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The plan.
    pub plan: Compiled,
    /// The mode.
    pub mode: Mode,
    /// The chunk size of pipelined messages, unless it is the machine model's.
    pub chunk: Option<u64>,
}

/// Compiles the plan for this placement and machine in every mode, and pipelined with chunks of
/// several sizes. A mode is left out if its schedule equals that of an earlier mode, such as
/// `auto`.
///
/// # Errors
/// Those of [`Compiled::with`].
pub fn candidates(plan: &Compiled, placement: Placement, machine: &Machine) -> Result<Vec<Candidate>> {
    let modes = Mode::ALL.into_iter().map(|mode| (mode, None));
    let chunks = CHUNKS.into_iter().map(|chunk| (Mode::Pipelined, Some(chunk)));
    let mut met = BTreeSet::new();
    let mut all = Vec::new();
    for (mode, chunk) in modes.chain(chunks) {
        let options = Options { mode, chunk: chunk.map(Bytes), ..plan.made_for().options };
        let plan = plan.with(placement, machine, &options)?;
        if met.insert(plan.digest()) {
            all.push(Candidate { plan, mode, chunk });
        }
    }
    Ok(all)
}

/// Times the candidates of one plan in this world. Collective: every rank calls this function, and
/// gets the same rows. A row has the predicted and the measured time of one run on the slowest
/// rank.
///
/// Like a program, each run first writes one element in each cache line that is sent, and finally
/// reads one element in each cache line that arrived. The bytes of an element that is not a number
/// are all equal. Values that the program would pass to a call are zeros, and elements that a
/// ticket would hold are dropped. The candidates take turns until `time` is over. For each
/// candidate, the median of its turns is reported.
///
/// # Errors
/// `ARG` if the number of ranks of the world is not that of the plan. Otherwise the errors of
/// windows and of replays.
pub fn measure(
    world: &World,
    candidates: &[Candidate],
    transport: &str,
    time: Duration,
) -> Result<Vec<MeasurementRow>> {
    let Some(first) = candidates.first() else { return Ok(Vec::new()) };
    if first.plan.ranks() != world.size() {
        let message = format!("a plan of {} ranks, in a world of {}", first.plan.ranks(), world.size());
        return Err(Error::new(ErrorClass::Arg, message));
    }
    let mut windows = windows(world, candidates)?;
    let touched = touched(&first.plan, world.rank(), windows.len());
    let mut turns = Vec::with_capacity(candidates.len());
    for Candidate { plan, .. } in candidates {
        let schedules = plan.schedules().iter().map(|schedule| Arc::new(schedule.clone()));
        let prepared = adopt(&MEASURED, world, schedules)?.with_zeros();
        turns.push(Turns { prepared, runs: 1, times: Vec::new() });
    }
    for turns in &mut turns {
        let mut is_long = false;
        // One turn may take long because it was interrupted. So the number of runs is doubled until
        // two consecutive turns are long enough.
        while !is_long {
            let first = turns.slowest(world, &mut windows, &touched)?;
            is_long = first.min(turns.slowest(world, &mut windows, &touched)?) >= TURN;
            turns.runs *= if is_long { 1 } else { 2 };
        }
    }
    let mut spent = Duration::ZERO;
    for turn in 0..TURNS_MAX {
        for turns in &mut turns {
            let took = turns.slowest(world, &mut windows, &touched)?;
            turns.times.push(took.as_nanos() as f64 / turns.runs as f64);
            spent += took;
        }
        if turn + 1 >= TURNS_MIN && spent >= time {
            break;
        }
    }
    Ok(candidates.iter().zip(turns).map(|(candidate, turns)| turns.row(candidate, transport)).collect())
}

/// A prepared candidate, with the times of its turns.
struct Turns {
    prepared: Prepared,
    /// The number of runs in each turn.
    runs: u32,
    /// The time of a run in each turn, in nanoseconds.
    times: Vec<f64>,
}

impl Turns {
    /// Runs the candidate as often as one turn does, and returns the time of the slowest rank.
    fn slowest(
        &mut self,
        world: &World,
        windows: &mut [Box<dyn Typed>],
        touched: &[Touched],
    ) -> Result<Duration> {
        world.barrier()?;
        let clock = Instant::now();
        for run in 0..self.runs {
            for (window, touched) in windows.iter_mut().zip(touched) {
                window.write(&touched.sent, run);
            }
            match &mut *windows {
                // A list of windows needs an allocation, which would distort the time of a short
                // exchange.
                [window] => self.prepared.replay([window.as_any()])?,
                all => {
                    let all: Vec<&mut dyn AnyWindow> = all.iter_mut().map(|window| window.as_any()).collect();
                    self.prepared.replay(all)?;
                }
            }
            for (window, touched) in windows.iter().zip(touched) {
                window.read(&touched.came);
            }
        }
        let slowest = world.allreduce_one(clock.elapsed().as_nanos() as u64, Op::Max)?;
        Ok(Duration::from_nanos(slowest))
    }

    fn row(self, Candidate { plan, mode, chunk }: &Candidate, transport: &str) -> MeasurementRow {
        let half = |first: usize| median(self.times.iter().skip(first).step_by(2).copied().collect());
        let (all, one, other) = (median(self.times.clone()), half(0), half(1));
        let prediction = PredictionRow { ..predict::row(plan, "the model", *mode) };
        MeasurementRow {
            prediction,
            chunk: *chunk,
            transport: transport.into(),
            measured: all,
            noise: (one - other).abs() / all,
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A window of numbers, or of other elements.
trait Typed {
    /// Sets elements to a value.
    fn write(&mut self, elements: &[usize], value: u32);
    /// Reads elements.
    fn read(&self, elements: &[usize]);
    fn as_any(&mut self) -> &mut dyn AnyWindow;
}

macro_rules! typed {
    ($($name:ident $type:ty),*) => {
        $(impl Typed for Window<$type> {
            fn write(&mut self, elements: &[usize], value: u32) {
                elements.iter().for_each(|&element| self[element] = value as $type);
            }

            fn read(&self, elements: &[usize]) {
                for &element in elements {
                    black_box(self[element]);
                }
            }

            fn as_any(&mut self) -> &mut dyn AnyWindow {
                self
            }
        })*

        /// Makes a window of elements of this type.
        fn window(world: &World, element: ElementType, len: usize) -> Result<Box<dyn Typed>> {
            Ok(match element.kind {
                $(ElementKind::Scalar(Scalar::$name) => Box::new(world.window::<$type>(len)?),)*
                _ => {
                    let (window, size) = (untyped(world, element, len)?, element.size as usize);
                    Box::new(OfBytes { window, size })
                }
            })
        }
    };
}

/// A window of elements of `size` bytes.
struct OfBytes {
    window: UntypedWindow,
    size: usize,
}

impl Typed for OfBytes {
    fn write(&mut self, elements: &[usize], value: u32) {
        let (bytes, size) = (self.window.bytes_mut(), self.size);
        elements.iter().for_each(|at| bytes[at * size..(at + 1) * size].fill(value as u8));
    }

    fn read(&self, elements: &[usize]) {
        for at in elements {
            // Reading one byte of a cache line loads the whole line.
            for byte in self.window.bytes()[at * self.size..(at + 1) * self.size].iter().step_by(64) {
                black_box(*byte);
            }
        }
    }

    fn as_any(&mut self) -> &mut dyn AnyWindow {
        &mut self.window
    }
}
typed!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);

/// Makes the windows that the candidates need on this rank.
fn windows(world: &World, candidates: &[Candidate]) -> Result<Vec<Box<dyn Typed>>> {
    let schedules = || candidates.iter().flat_map(|candidate| candidate.plan.schedules());
    let Some(first) = schedules().next() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (window, element) in first.windows.iter() {
        let lens = schedules().map(|schedule| {
            let program = &schedule.classes[schedule.class_of[world.rank()]];
            program.least_len.get(window).copied().unwrap_or(0)
        });
        let len = lens.max().unwrap_or(0);
        all.push(self::window(world, *element, len)?);
    }
    Ok(all)
}

/// The elements of a window that a program would write before each run and read after it, reduced
/// to one element of each cache line.
#[derive(Default)]
struct Touched {
    sent: Vec<usize>,
    came: Vec<usize>,
}

/// Returns, for each window of a rank, the elements that a run sends and the elements that it
/// receives.
fn touched(plan: &Compiled, rank: usize, windows: usize) -> Vec<Touched> {
    // For each cache line, the first element that was found in it.
    let mut sets: Vec<[BTreeMap<usize, usize>; 2]> = (0..windows).map(|_| Default::default()).collect();
    for patterns in plan.patterns() {
        let size = |window: usize| patterns.windows.values().as_slice()[window].size as usize;
        let mut add = |window: usize, datatype: &Datatype, came: bool| {
            let line = (64 / size(window)).max(1);
            for element in datatype.element_iter() {
                let element = element as usize;
                sets[window][usize::from(came)].entry(element / line).or_insert(element);
            }
        };
        for (origin, class) in patterns.class_of.iter().enumerate() {
            let Pattern { operations } = &patterns.classes[*class];
            for operation in operations.values() {
                let target =
                    operation.target.and_then(|delta| delta.from(Rank(origin as u32), patterns.ranks()));
                let is_get = operation.kind == Kind::Get;
                if origin == rank && target.is_some() {
                    match &operation.local {
                        Local::Section { window, datatype } => add(window.index(), datatype, is_get),
                        Local::Buffer => {} // the elements are in a buffer of the executor
                    }
                }
                if target == Some(Rank(rank as u32)) {
                    add(operation.window.index(), &operation.remote, !is_get);
                }
            }
        }
    }
    let all = |[sent, came]: [BTreeMap<usize, usize>; 2]| Touched {
        sent: sent.into_values().collect(),
        came: came.into_values().collect(),
    };
    sets.into_iter().map(all).collect()
}

/// Returns the fastest row and its margin. The margin is the difference between its time and that
/// of the next row, as a fraction of its time. A caller should not trust a margin below the noise
/// of the rows.
#[must_use]
pub fn best(rows: &[MeasurementRow]) -> Option<(&MeasurementRow, f64)> {
    let mut sorted: Vec<&MeasurementRow> = rows.iter().collect();
    sorted.sort_by(|a, b| a.measured.total_cmp(&b.measured));
    let first = *sorted.first()?;
    let margin = sorted.get(1).map_or(0.0, |second| second.measured / first.measured - 1.0);
    Some((first, margin))
}
