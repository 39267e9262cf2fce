//! [`probes`]: exchanges whose times determine the figures of a machine. [`fitted`]: the machine
//! that predicts those times.
//!
//! Each probe determines one figure of [`Machine`], or several figures whose proportions stay the
//! same. The rest of the probe's time depends on figures that other probes determine, so one
//! machine can predict the times of all probes. Figures are found one after another. A small part
//! of a probe's time depends on figures that are found later, so the whole search runs three times.
//! Figures that no probe determines, such as the network's if all ranks share memory, are left
//! unchanged.
//!
//! In all probes, ranks send to each other in both directions. If nothing flowed back, a sender
//! would run ahead, and the probe would time the rate of messages instead.
//!
//! **Source** A. Alexandrov et al., SPAA 1995, for the figures, and T. Hoefler et al., HPCC 2006,
//! for distinguishing `o` from `L` by several messages at one time. Unlike in these papers, the
//! figures are those of compiled schedules, including packing.

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
use crate::units::{self, Nanos};
use crate::verify::Verified;
use std::fmt;

/// The number of elements of a long section, of a section between hosts, and of a section of some
/// cache lines.
const SECTION: usize = 8192;
const FAR_SECTION: usize = 4 * SECTION;
const LINES: usize = 32;

/// The number of elements of a section that is so short that four such sections fit half of the
/// first cache.
const SHORT: usize = 512;

/// The rows of a plane of a field: their number, their length, the distance from one row to the
/// next, and the distance from a row to the row of the halo next to it, all in elements.
const ROWS: usize = 64;
const ROW: usize = 128;
const ROW_STRIDE: usize = 4904;
const HALO_ROW: usize = ROW + 2;

/// The number of elements of a list, a power of two.
const LISTED: usize = 1024;

/// The most elements of a section that does not fit the cache of a core.
const LONG_MAX: usize = 1 << 20;

/// The number of packets of a message, and the number of elements of each packet.
const PACKETS: usize = 5;
const PACKET: usize = 2048;

/// The number of messages that leave together.
const MANY: usize = 32;

/// The number of runs of one element, and the number of elements from each run to the next. This
/// distance is many cache lines, as in a column of a large field, and not a power of two.
const RUNS: usize = 512;
const STRIDE: usize = 264;

/// The smallest factor by which a measurement scales a figure. Without this limit, an operation
/// could seem to cost nothing.
const LEAST: f64 = 1.0 / 16.0;

/// The figure of a machine that a probe determines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    /// The cost of a message.
    Message,
    /// The cost of the second of two messages at one time.
    Second,
    /// The cost of each of several packets of a message.
    Packets,
    /// The cost of each further message if many are sent at one time between the same ranks.
    Further,
    /// The cost of the first lines of a message.
    Lines,
    /// The cost of a byte of a long message.
    Bytes,
    /// The cost of a byte of a longer message between hosts.
    FarBytes,
    /// How the cost of a byte changes if sections fit the first cache.
    ShortBytes,
    /// How the cost of a byte changes in sections of this number of elements, which do not fit the
    /// cache of a core.
    LongBytes(usize),
    /// The cost of each of many runs.
    Runs,
    /// The additional cost of each run of a list.
    Listed,
    /// The cost of a byte that is copied directly into the memory of another rank, or out of it.
    DirectBytes,
    /// The cost of a byte that is copied directly in rows, if received rows are next to these rows.
    DirectRows,
    /// The cost of each of many runs that are copied directly.
    DirectRuns,
}

/// An exchange of each rank with one or two other ranks, to be timed. Its elements have type `u64`
/// and are in one window.
#[derive(Clone, Debug)]
pub struct Probe {
    figure: Figure,
    /// Whether the exchange is between ranks that share memory.
    shared: bool,
    schedule: Verified<Schedule>,
}

impl Probe {
    /// Returns the exchange, compiled and verified.
    pub fn schedule(&self) -> &Verified<Schedule> {
        &self.schedule
    }

    /// Returns the number of elements of each rank's window.
    pub fn elements(&self) -> usize {
        2 * self.figure.elements()
    }

    /// Returns the distance from the index of each element that is sent to its index at the
    /// receiver.
    pub fn shift(&self) -> usize {
        self.figure.shift()
    }

    /// Returns one element of each cache line that the exchange reads, in ascending order.
    pub fn lines(&self) -> Vec<usize> {
        let messages = self.figure.messages();
        let all = (0..messages).flat_map(|at| {
            let moved = self.figure.moves(at);
            moved.element_iter().map(|element| element as usize).collect::<Vec<_>>()
        });
        let mut lines: Vec<usize> = all.collect();
        lines.sort_unstable();
        lines.dedup_by_key(|element| *element / 8);
        lines
    }

    /// Returns the time that the exchange is predicted to take on this machine.
    pub fn predicted(&self, machine: &Machine) -> Nanos {
        cost(&self.schedule, machine).predicted
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.figure {
            Figure::Message => "8 bytes".into(),
            Figure::Second => "two messages of 8 bytes".into(),
            Figure::Packets => format!("{} KiB in {PACKETS} packets", PACKETS * PACKET * 8 / 1024),
            Figure::Further => format!("{MANY} messages of 8 bytes"),
            Figure::Lines => format!("{} bytes", LINES * 8),
            Figure::Bytes => format!("{} KiB", SECTION * 8 / 1024),
            Figure::FarBytes => format!("{} KiB", FAR_SECTION * 8 / 1024),
            Figure::ShortBytes => format!("{} KiB", SHORT * 8 / 1024),
            Figure::LongBytes(elements) => format!("{} KiB", elements * 8 / 1024),
            Figure::Runs => format!("{RUNS} runs of 8 bytes"),
            Figure::Listed => format!("a list of {LISTED} times 8 bytes"),
            Figure::DirectBytes => format!("{} KiB, copied directly", SECTION * 8 / 1024),
            Figure::DirectRows => format!("{ROWS} rows of {} bytes, copied directly", ROW * 8),
            Figure::DirectRuns => format!("{RUNS} runs of 8 bytes, copied directly"),
        };
        write!(f, "{what}, {}", if self.shared { "in shared memory" } else { "between hosts" })
    }
}

impl Figure {
    /// Returns the number of elements from the first one that is sent to the last.
    fn elements(self) -> usize {
        match self {
            Figure::Message => 1,
            Figure::Second => 2,
            Figure::Packets => PACKETS * PACKET,
            Figure::Further => MANY,
            Figure::Lines => LINES,
            Figure::Bytes | Figure::DirectBytes => SECTION,
            Figure::Listed => LISTED,
            Figure::DirectRows => ROWS * ROW_STRIDE,
            Figure::FarBytes => FAR_SECTION,
            Figure::ShortBytes => SHORT,
            Figure::LongBytes(elements) => elements,
            Figure::Runs | Figure::DirectRuns => RUNS * STRIDE,
        }
    }

    /// Returns the number of messages to each rank.
    fn messages(self) -> usize {
        match self {
            Figure::Second => 2,
            Figure::Further => MANY,
            _ => 1,
        }
    }

    /// Returns the distance from the index of each element that is sent to its index at the
    /// receiver. Columns are shifted by 1, as in a halo.
    fn shift(self) -> usize {
        match self {
            Figure::Runs | Figure::DirectRuns => 1,
            Figure::DirectRows => HALO_ROW,
            _ => self.elements(),
        }
    }

    /// Returns the elements that a message moves. `at` is the number of the message, from 0.
    fn moves(self, at: usize) -> Datatype {
        match self {
            Figure::Message | Figure::Second | Figure::Further => Datatype::run(at..at + 1),
            Figure::Packets => Datatype::run(0..PACKETS * PACKET),
            Figure::Lines => Datatype::run(0..LINES),
            Figure::Bytes | Figure::DirectBytes => Datatype::run(0..SECTION),
            // Triangular numbers modulo `LISTED` visit each element once, as `LISTED` is a power of
            // two.
            Figure::Listed => {
                Datatype::elements((0..LISTED).map(|i| i * (i + 1) / 2 % LISTED)).expect("few elements")
            }
            Figure::DirectRows => Datatype::nest(1, &[(ROWS, ROW_STRIDE as i64)], ROW).expect("few elements"),
            Figure::FarBytes => Datatype::run(0..FAR_SECTION),
            Figure::ShortBytes => Datatype::run(0..SHORT),
            Figure::LongBytes(elements) => Datatype::run(0..elements),
            Figure::Runs | Figure::DirectRuns => {
                Datatype::nest(0, &[(RUNS, STRIDE as i64)], 1).expect("few elements")
            }
        }
    }

    /// Returns the elements into which this message is received, before they are shifted. The
    /// elements of a list arrive in order.
    fn lands(self, at: usize) -> Datatype {
        if self == Figure::Listed { Datatype::run(0..LISTED) } else { self.moves(at) }
    }
}

/// Returns the probes to measure in a world of this number of ranks, in the order in which
/// [`fitted`] takes the times. All schedules are compiled for `machine`.
///
/// # Errors
/// Those of [`compile`]. None are expected.
pub fn probes(ranks: u32, placement: Placement, machine: &Machine) -> Result<Vec<Probe>> {
    use Figure::*;
    let each = match placement {
        Placement::Together => ranks,
        Placement::Apart => 1,
        Placement::Hosts { ranks_each } => (ranks_each as u32).min(ranks),
    };
    let mut all = Vec::new();
    // Two sections of this length and two buffers together are a quarter larger than the cache.
    let long = ((1.25 / 4.0 * machine.caches.core / 8.0) as usize).clamp(1, LONG_MAX);
    if each > 1 {
        all.push((Message, true));
        if each > 2 {
            all.push((Second, true));
        }
        all.extend(
            [Further, Lines, Bytes, ShortBytes, LongBytes(long), Runs, Listed].map(|figure| (figure, true)),
        );
        all.extend([DirectBytes, DirectRows, DirectRuns].map(|figure| (figure, true)));
    }
    if ranks > each {
        all.push((Message, false));
        all.push((if ranks > 2 * each { Second } else { Packets }, false));
        all.extend([Further, Lines, FarBytes].map(|figure| (figure, false)));
        if each == 1 {
            all.extend([ShortBytes, Runs, Listed].map(|figure| (figure, false)));
        }
    }
    let probe = |(figure, shared)| {
        let to = |rank: u32, at: usize| partner(rank, (ranks, each), shared, figure, at);
        let mode = match figure {
            DirectBytes | DirectRows | DirectRuns => Mode::Direct,
            Further => Mode::Aggressive,
            Packets => Mode::Pipelined,
            _ => Mode::Aggregated,
        };
        let chunk = (figure == Packets).then_some(units::Bytes((PACKET * 8) as u64));
        let options = Options { mode, coalesce: figure != Further, chunk, ..Options::default() };
        let schedule = compile(&patterns(ranks, figure, to), placement, machine, &options)?;
        Ok(Probe { figure, shared, schedule })
    };
    all.into_iter().map(probe).collect()
}

/// Returns the rank that receives a message of `rank`, in a world of `ranks` ranks with `each`
/// ranks on a host. The receiver is on the same host if `shared`, and otherwise on another host. In
/// [`Figure::Second`], each rank sends to the next rank and to the previous one. In all other
/// probes, the two ranks of a pair send to each other. The distance between them is half of the
/// ranks of their host or, between hosts, half of the hosts. If there are several hosts, the ranks
/// of a pair are therefore on different hosts, even where the placement assumes a host for each
/// rank.
fn partner(rank: u32, (ranks, each): (u32, u32), shared: bool, figure: Figure, at: usize) -> Option<u32> {
    let (host, place) = (rank / each, rank % each);
    let (index, number) = if shared {
        (place, each.min(ranks - host * each)) // the last host may have fewer
    } else {
        (host, ranks.div_ceil(each))
    };
    let half = number / 2;
    let other = match (figure, at) {
        (Figure::Second, 0) => (index + 1) % number,
        (Figure::Second, _) => (index + number - 1) % number,
        _ if index < half => index + half,
        _ if index < 2 * half => index - half,
        _ => index,
    };
    let other = if shared { host * each + other } else { other * each + place };
    (other != rank && other < ranks).then_some(other)
}

/// Returns the puts of each rank; `to` returns their targets.
fn patterns(ranks: u32, figure: Figure, to: impl Fn(u32, usize) -> Option<u32>) -> Patterns {
    let window = WindowId(0);
    let mut classes = Interner::default();
    let class_of = (0..ranks).map(|rank| {
        let put = |at| {
            to(rank, at).map(|other| Operation {
                kind: Kind::Put,
                window,
                target: Some(Delta::between(Rank(rank), Rank(other))),
                remote: figure.lands(at).shift(figure.shift() as i64).expect("few elements"),
                local: Local::Section { window, datatype: figure.moves(at) },
                mode: Mode::Auto,
                site: Site::default(),
            })
        };
        let messages = figure.messages();
        classes.intern(Pattern { operations: (0..messages).filter_map(put).collect() })
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

/// Returns the machine that predicts the measured time of each of these probes. All figures that
/// the probes do not determine are those of `machine`. If times contradict one another, a figure
/// keeps a sixteenth of its previous value. If all figures that a probe determines are 0, the
/// search starts from those of [`Machine::default`]. If no ranks share memory, the time per byte is
/// divided between the network and moving in the same ratio as before.
pub fn fitted(machine: &Machine, measured: &[(Probe, Nanos)]) -> Machine {
    let mut machine = *machine;
    (0..3).for_each(|_| fit(&mut machine, measured));
    machine
}

fn fit(machine: &mut Machine, measured: &[(Probe, Nanos)]) {
    let near = measured.iter().any(|(probe, _)| probe.shared);
    for (probe, time) in measured {
        let shared = probe.shared;
        let told = |machine: &Machine| probe.predicted(machine).0;
        let first =
            measured.iter().find(|(other, _)| other.figure == Figure::Message && other.shared == shared);
        match (probe.figure, first) {
            (Figure::Second | Figure::Packets, Some((message, first))) => {
                let more = |machine: &Machine| told(machine) - message.predicted(machine).0;
                scale(machine, more, time.0 - first.0, |machine| {
                    let link = link(machine, shared);
                    vec![&mut link.overhead]
                });
                // The overhead is paid at both ends of a message. The limit leaves a part of the
                // time to the latency.
                let most = (1.0 - LEAST) / 2.0 * first.0;
                let overhead = &mut link(machine, shared).overhead;
                *overhead = overhead.min(most);
                let alone = |machine: &Machine| message.predicted(machine).0;
                scale(machine, alone, first.0, |machine| vec![&mut link(machine, shared).latency]);
            }
            (figure, _) => scale(machine, told, time.0, |machine| figures(machine, figure, shared, near)),
        }
    }
}

/// Returns the figures that a probe determines. `shared` is whether the probe is between ranks that
/// share memory, and `near` is whether any probe is between such ranks.
fn figures(machine: &mut Machine, figure: Figure, shared: bool, near: bool) -> Vec<&mut f64> {
    let bytes_move = shared || !near;
    match figure {
        Figure::Message | Figure::Second | Figure::Packets => {
            let link = link(machine, shared);
            vec![&mut link.latency, &mut link.overhead]
        }
        Figure::Further => vec![&mut link(machine, shared).further],
        Figure::Lines => vec![&mut link(machine, shared).payload],
        Figure::ShortBytes => vec![&mut machine.moving.short],
        Figure::LongBytes(_) => vec![&mut machine.moving.long],
        Figure::Bytes | Figure::FarBytes if bytes_move => {
            let Machine { shared: near, network, moving, caches: _ } = machine;
            let link = if shared { near } else { network };
            vec![&mut link.per_byte, &mut moving.pack, &mut moving.unpack]
        }
        Figure::Bytes | Figure::FarBytes => vec![&mut machine.network.per_byte],
        Figure::Runs => vec![&mut machine.moving.per_run],
        Figure::Listed => vec![&mut machine.moving.listed],
        Figure::DirectBytes => vec![&mut machine.moving.remote],
        Figure::DirectRows => vec![&mut machine.moving.remote_rows],
        Figure::DirectRuns => vec![&mut machine.moving.remote_run],
    }
}

fn link(machine: &mut Machine, shared: bool) -> &mut Link {
    if shared { &mut machine.shared } else { &mut machine.network }
}

/// Scales `figures` until the predicted time, which depends on them linearly, is `time`.
fn scale(
    machine: &mut Machine,
    told: impl Fn(&Machine) -> f64,
    time: f64,
    figures: impl Fn(&mut Machine) -> Vec<&mut f64>,
) {
    let mut without = *machine;
    figures(&mut without).into_iter().for_each(|figure| *figure = 0.0);
    if without == *machine {
        let mut default = Machine::default();
        figures(machine)
            .into_iter()
            .zip(figures(&mut default))
            .for_each(|(figure, default)| *figure = if *default > 0.0 { *default } else { 1.0 });
    }
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

    /// Machines on which, as on the default one, memory adds no cost for each byte of a message.
    fn machines() -> impl Strategy<Value = Machine> {
        let link = |at: f64, bytes: f64| {
            let times = prop::array::uniform3(0.3_f64..3.0);
            times.prop_map(move |[latency, overhead, per_byte]| Link {
                latency: at * latency,
                overhead: at / 2.0 * overhead,
                further: at / 3.0 * overhead,
                payload: at / 2.0 * overhead,
                per_byte: bytes * per_byte,
            })
        };
        let moving = prop::array::uniform9(0.3_f64..3.0).prop_map(|[a, b, c, d, e, f, g, h, i]| Moving {
            short: i,
            long: f,
            listed: g,
            remote_rows: 0.2 * h,
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
            ..Machine::default()
        })
    }

    /// Numbers of ranks with placements. The last host may have fewer ranks than the others.
    fn worlds() -> impl Strategy<Value = (u32, Placement)> {
        (
            1_u32..12,
            prop_oneof![
                Just(Placement::Together),
                Just(Placement::Apart),
                (1_usize..5).prop_map(|ranks_each| Placement::Hosts { ranks_each }),
            ],
        )
    }

    #[test]
    fn probes_go_both_ways_and_between_the_ranks_that_they_are_of() {
        let of_hosts = (1..5).map(|ranks_each| Placement::Hosts { ranks_each });
        for placement in [Placement::Together, Placement::Apart].into_iter().chain(of_hosts) {
            for ranks in 1..12 {
                let probes = probes(ranks, placement, &Machine::default()).unwrap();
                let (mut shared, mut apart) = (false, false);
                for probe in &probes {
                    let to = |rank: u32| {
                        let program = &probe.schedule.classes[probe.schedule.class_of[rank as usize]];
                        let targets = program.pattern.operations.values().filter_map(|put| put.target);
                        targets
                            .filter_map(|delta| delta.from(Rank(rank), ranks))
                            .map(|other| other.0)
                            .collect::<Vec<_>>()
                    };
                    for rank in 0..ranks {
                        for other in to(rank) {
                            assert_eq!(placement.share(rank, other), probe.shared, "{placement:?}, {ranks}");
                            assert!(to(other).contains(&rank), "{placement:?}, {ranks}: {rank} to {other}");
                        }
                    }
                    assert!((0..ranks).any(|rank| !to(rank).is_empty()));
                    *(if probe.shared { &mut shared } else { &mut apart }) = true;
                }
                let pairs = || (0..ranks).flat_map(|a| (0..a).map(move |b| (a, b)));
                assert_eq!(shared, pairs().any(|(a, b)| placement.share(a, b)), "{placement:?}, {ranks}");
                assert_eq!(apart, pairs().any(|(a, b)| !placement.share(a, b)), "{placement:?}, {ranks}");
            }
        }
    }

    #[test]
    fn a_figure_that_the_default_machine_has_not_is_found() {
        let mut machine = Machine::default();
        machine.network.payload = 500.0;
        let measured: Vec<_> = probes(4, Placement::Apart, &Machine::default())
            .unwrap()
            .into_iter()
            .map(|probe| (probe.clone(), probe.predicted(&machine)))
            .collect();
        let found = fitted(&Machine::default(), &measured);
        assert!((found.network.payload / 500.0 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn figures_of_nothing_are_found() {
        let link = Link { latency: 0.0, overhead: 0.0, further: 0.0, payload: 0.0, per_byte: 0.0 };
        let moving = Moving {
            per_run: 0.0,
            listed: 0.0,
            pack: 0.0,
            unpack: 0.0,
            short: 0.0,
            long: 0.0,
            remote_run: 0.0,
            remote: 0.0,
            remote_rows: 0.0,
        };
        let nothing = Machine { shared: link, network: link, moving, ..Machine::default() };
        for placement in [Placement::Together, Placement::Apart] {
            let probes = probes(4, placement, &nothing).unwrap();
            let time = |probe: Probe| {
                let time = probe.predicted(&Machine::default());
                (probe, time)
            };
            let measured: Vec<_> = probes.into_iter().map(time).collect();
            let found = fitted(&nothing, &measured);
            for (probe, time) in &measured {
                let ratio = probe.predicted(&found).0 / time.0;
                assert!((ratio - 1.0).abs() < 0.01, "{probe}: {ratio}\n{found}");
            }
        }
    }

    proptest! {
        /// [`fitted`] finds a machine that predicts the times of any machine.
        #[test]
        fn what_is_fitted_predicts_what_was_measured(
            (ranks, placement) in worlds(),
            machine in machines(),
            before in machines(),
        ) {
            let measured: Vec<_> = probes(ranks, placement, &before).unwrap().into_iter().map(|probe| {
                let time = probe.predicted(&machine);
                (probe, time)
            }).collect();
            let found = fitted(&before, &measured);
            // If moving takes too little of the time per byte between hosts, no factor for moving
            // makes short sections as fast as measured.
            let is_least = found.moving.short <= LEAST * before.moving.short;
            for (probe, time) in &measured {
                let found = probe.predicted(&found).0;
                let is_limited = probe.figure == Figure::ShortBytes && !probe.shared && is_least;
                let is_as_measured = (found / time.0 - 1.0).abs() < 0.01 || is_limited && found > time.0;
                prop_assert!(is_as_measured, "{probe}: {found} for {time}");
            }
        }
    }
}
