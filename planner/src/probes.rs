//! [`probes`]: exchanges whose times tell what a machine costs, and [`fitted`]: the machine that predicts those times.
//!
//! Each probe is there for one figure of [`Machine`] or some that stay in proportion, and is otherwise made of figures that earlier
//! probes tell: so there is a machine that predicts all of them, and finding it takes one pass. What no probe tells, such as what
//! messages cost where all ranks share memory, stays as it was.
//!
//! **Source** A. Alexandrov et al., SPAA 1995, for the figures, and T. Hoefler et al., HPCC 2006, for telling `o` from `L` by
//! several messages at one time. Different here: the figures are those of compiled schedules, packing and all.

use crate::Result;
use crate::compile::compile;
use crate::datatype::Datatype;
use crate::element::{ElementType, Scalar};
use crate::explain::cost;
use crate::ids::{Delta, Rank, WindowId};
use crate::intern::Interner;
use crate::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use crate::ir::schedule::{Placement, Schedule};
use crate::machine::{Link, Machine};
use crate::options::Options;
use crate::units::Nanos;
use crate::verify::Verified;
use std::ops::Range;

/// The number of elements of a long section.
const SECTION: usize = 8192;

/// The number of runs of one element, and of elements from each to the next: cache lines apart, and no power of two.
const RUNS: usize = 1024;
const STRIDE: usize = 56;

/// The least share of a figure that a measurement leaves of it: less would say that something costs nothing.
const LEAST: f64 = 1.0 / 16.0;

/// What a probe tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tells {
    /// What a message costs.
    Message,
    /// What the second of two messages at one time costs.
    Second,
    /// What a byte of a long message costs.
    Bytes,
    /// What each of many runs costs.
    Runs,
    /// What a byte costs that is copied straight into the memory of another rank, or out of it.
    DirectBytes,
    /// What each of many runs costs that are copied so.
    DirectRuns,
}

/// An exchange to be timed: of every rank with ranks at a distance, of elements of type `u64` of one window.
#[derive(Clone, Debug)]
pub struct Probe {
    tells: Tells,
    /// Between ranks that share memory.
    shared: bool,
    schedule: Verified<Schedule>,
}

impl Probe {
    /// Returns the exchange, compiled and verified.
    pub fn schedule(&self) -> &Verified<Schedule> {
        &self.schedule
    }

    /// Returns the elements of the window of each rank that the exchange reads; those after them come.
    pub fn sends(&self) -> Range<usize> {
        0..self.tells.elements()
    }

    /// Returns the elements of the window of each rank that may come.
    pub fn receives(&self) -> Range<usize> {
        self.tells.elements()..2 * self.tells.elements()
    }

    /// Returns how far from each other the elements are that are sent, in elements.
    pub fn stride(&self) -> usize {
        if matches!(self.tells, Tells::Runs | Tells::DirectRuns) { STRIDE } else { 1 }
    }
}

impl Tells {
    /// The elements from the first that is sent to the last.
    fn elements(self) -> usize {
        match self {
            Tells::Message => 1,
            Tells::Second => 2,
            Tells::Bytes | Tells::DirectBytes => SECTION,
            Tells::Runs | Tells::DirectRuns => RUNS * STRIDE,
        }
    }

    /// What each message moves: `at` is 0 for the first, 1 for the second one.
    fn moves(self, at: usize) -> Datatype {
        match self {
            Tells::Message | Tells::Second => Datatype::run(at..at + 1),
            Tells::Bytes | Tells::DirectBytes => Datatype::run(0..SECTION),
            Tells::Runs | Tells::DirectRuns => Datatype::nest(0, &[(RUNS, STRIDE as i64)], 1),
        }
    }
}

/// Returns what to measure in a world of this number of ranks, in the order in which [`fitted`] takes the times. All schedules are
/// compiled for `machine`.
///
/// # Errors
/// Those of [`compile`]; there should be none.
pub fn probes(ranks: u32, placement: Placement, machine: &Machine) -> Result<Vec<Probe>> {
    use Tells::*;
    let each = match placement {
        Placement::Together => ranks,
        Placement::Apart => 1,
        Placement::Hosts { ranks_each } => (ranks_each as u32).min(ranks),
    };
    let mut all = Vec::new();
    if each > 1 {
        all.push((Message, true));
        if each > 2 {
            all.push((Second, true));
        }
        all.extend([Bytes, Runs, DirectBytes, DirectRuns].map(|tells| (tells, true)));
    }
    if ranks > each {
        all.push((Message, false));
        if ranks > 2 * each {
            all.push((Second, false));
        }
        all.push((Bytes, false));
        if each == 1 {
            all.push((Runs, false));
        }
    }
    let probe = |(tells, shared)| {
        // Around the ranks of a host, of which the last may have fewer, or around hosts.
        let to = |rank: u32, by: i64| {
            let (first, step, ranks) = if shared {
                let first = rank - rank % each;
                (first, 1, each.min(ranks - first))
            } else {
                (0, i64::from(each), ranks)
            };
            first + (i64::from(rank - first) + by * step).rem_euclid(i64::from(ranks)) as u32
        };
        let to = |rank, by| {
            Some(to(rank, by)).filter(|&other| other != rank && placement.share(rank, other) == shared)
        };
        let mode = if matches!(tells, DirectBytes | DirectRuns) { Mode::Direct } else { Mode::Aggregated };
        let options = Options { mode, ..Options::default() };
        let schedule = compile(&patterns(ranks, tells, to), placement, machine, &options)?;
        Ok(Probe { tells, shared, schedule })
    };
    all.into_iter().map(probe).collect()
}

/// What each rank puts: to the rank after it, and of [`Tells::Second`] to the one before it as well.
fn patterns(ranks: u32, tells: Tells, to: impl Fn(u32, i64) -> Option<u32>) -> Patterns {
    let window = WindowId(0);
    let mut classes = Interner::default();
    let class_of = (0..ranks).map(|rank| {
        let put = |(at, by): (usize, i64)| {
            let moved = tells.moves(at);
            to(rank, by).map(|other| Operation {
                kind: Kind::Put,
                window,
                target: Some(Delta::between(Rank(rank), Rank(other))),
                remote: moved.shift(tells.elements() as i64),
                local: Local::Section { window, datatype: moved },
                mode: Mode::Auto,
                site: Site::default(),
            })
        };
        let both = [(0, 1), (1, -1)];
        let directions = &both[..if tells == Tells::Second { 2 } else { 1 }];
        classes.intern(Pattern { operations: directions.iter().copied().filter_map(put).collect() })
    });
    let class_of = class_of.collect();
    Patterns {
        name: "probe".into(),
        windows: [ElementType::scalar(Scalar::U64)].into_iter().collect(),
        shape: vec![ranks],
        classes: classes.into_table(),
        class_of,
        order: Order::Canonical,
        sync: Sync::Fence,
    }
}

/// Returns the machine that predicts that each of these probes takes its time, and is `machine` in all that they do not tell. Where
/// times contradict one another, a figure keeps a sixteenth of what it was.
pub fn fitted(machine: &Machine, measured: &[(Probe, Nanos)]) -> Machine {
    let mut machine = *machine;
    let near = measured.iter().any(|(probe, _)| probe.shared);
    for (probe, time) in measured {
        let shared = probe.shared;
        let told = |machine: &Machine| predicted(probe, machine);
        let first =
            measured.iter().find(|(other, _)| other.tells == Tells::Message && other.shared == shared);
        match (probe.tells, first) {
            (Tells::Second, Some((message, first))) => {
                let more = |machine: &Machine| told(machine) - predicted(message, machine);
                let second = (time.0 - first.0).min((1.0 - LEAST) * first.0);
                scale(&mut machine, more, second, |machine| {
                    let link = link(machine, shared);
                    vec![&mut link.overhead, &mut link.payload]
                });
                let alone = |machine: &Machine| predicted(message, machine);
                scale(&mut machine, alone, first.0, |machine| vec![&mut link(machine, shared).latency]);
            }
            (tells, _) => scale(&mut machine, told, time.0, |machine| figures(machine, tells, shared, near)),
        }
    }
    machine
}

/// The figures that a probe tells, between ranks that share memory or not, where any ranks do or not.
fn figures(machine: &mut Machine, tells: Tells, shared: bool, near: bool) -> Vec<&mut f64> {
    let bytes_move = shared || !near;
    match tells {
        Tells::Message | Tells::Second => {
            let link = link(machine, shared);
            vec![&mut link.latency, &mut link.overhead, &mut link.payload]
        }
        Tells::Bytes if bytes_move => {
            let Machine { shared: near, network, moving } = machine;
            let link = if shared { near } else { network };
            vec![&mut link.per_byte, &mut moving.pack, &mut moving.unpack]
        }
        Tells::Bytes => vec![&mut machine.network.per_byte],
        Tells::Runs => vec![&mut machine.moving.per_run],
        Tells::DirectBytes => vec![&mut machine.moving.remote],
        Tells::DirectRuns => vec![&mut machine.moving.remote_run],
    }
}

fn link(machine: &mut Machine, shared: bool) -> &mut Link {
    if shared { &mut machine.shared } else { &mut machine.network }
}

fn predicted(probe: &Probe, machine: &Machine) -> f64 {
    cost(&probe.schedule, machine).predicted.0
}

/// Scales figures, on which what is `told` depends as a line does, until it is `time`.
fn scale(
    machine: &mut Machine,
    told: impl Fn(&Machine) -> f64,
    time: f64,
    figures: impl Fn(&mut Machine) -> Vec<&mut f64>,
) {
    let mut without = *machine;
    figures(&mut without).into_iter().for_each(|figure| *figure = 0.0);
    let (rest, whole) = (told(&without), told(machine));
    if whole > rest {
        let share = ((time - rest) / (whole - rest)).max(LEAST);
        figures(machine).into_iter().for_each(|figure| *figure *= share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Moving;
    use proptest::prelude::*;

    /// Machines in which memory is moved where it is packed, as in the default one.
    fn machines() -> impl Strategy<Value = Machine> {
        let link = |at: f64, bytes: f64| {
            let times = prop::array::uniform3(0.5_f64..2.0);
            times.prop_map(move |[latency, overhead, per_byte]| Link {
                latency: at * latency,
                overhead: at / 2.0 * overhead,
                payload: at / 2.0 * overhead,
                per_byte: bytes * per_byte,
            })
        };
        let moving = prop::array::uniform5(0.5_f64..2.0).prop_map(|[a, b, c, d, e]| Moving {
            per_run: a,
            pack: 0.1 * b,
            unpack: 0.1 * c,
            remote_run: 10.0 * d,
            remote: 0.2 * e,
        });
        (link(100.0, 0.0), link(3000.0, 0.1), moving).prop_map(|(shared, network, moving)| Machine {
            shared,
            network,
            moving,
        })
    }

    /// Numbers of ranks, of which each host has equally many.
    fn worlds() -> impl Strategy<Value = (u32, Placement)> {
        let hosts = (1_u32..4, 1_u32..4);
        prop_oneof![
            (1_u32..9).prop_map(|ranks| (ranks, Placement::Together)),
            (1_u32..9).prop_map(|ranks| (ranks, Placement::Apart)),
            hosts.prop_map(|(hosts, each)| (hosts * each, Placement::Hosts { ranks_each: each as usize })),
        ]
    }

    proptest! {
        /// Whatever machine the times are of, the one that is found predicts them.
        #[test]
        fn what_is_fitted_predicts_what_was_measured(
            (ranks, placement) in worlds(),
            machine in machines(),
            before in machines(),
        ) {
            let measured: Vec<_> = probes(ranks, placement, &before).unwrap().into_iter().map(|probe| {
                let time = Nanos(predicted(&probe, &machine));
                (probe, time)
            }).collect();
            let found = fitted(&before, &measured);
            for (probe, time) in &measured {
                let found = predicted(probe, &found);
                prop_assert!((found / time.0 - 1.0).abs() < 0.02, "{probe:?}: {found} for {time}");
            }
        }
    }
}
