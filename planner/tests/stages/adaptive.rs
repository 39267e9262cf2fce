//! Golden tests of the decisions of dynamic epochs, for a grid of inputs, on three machines.
//!
//! With `FENCEPOST_BLESS=1` in the environment the files are written again. Read the difference
//! before keeping it.

use fencepost_planner::adaptive::{
    Departure, Observed, Rendezvous, Section, follows_census, lands_in_place, listing_pays, predict,
    run_bytes,
};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::{Link, Machine, Moving};
use std::fmt::Write;

/// Returns three machines. The first is the default machine. On the second, copying from the memory
/// of other ranks is as fast as copying from a cache that no other rank writes. The third is like
/// the second, but the network has ten times the latency and overhead, and copying from others
/// takes six times as long.
fn machines() -> [(&'static str, Machine); 3] {
    let default = Machine::default();
    let near = Machine { moving: Moving { remote: 0.03, remote_rows: 0.03, ..default.moving }, ..default };
    let Machine { network, moving, .. } = near;
    let network = Link {
        latency: 10.0 * network.latency,
        overhead: 10.0 * network.overhead,
        further: 10.0 * network.further,
        ..network
    };
    let [remote, remote_rows, remote_run] =
        [moving.remote, moving.remote_rows, moving.remote_run].map(|figure| 6.0 * figure);
    let moving = Moving { remote, remote_rows, remote_run, ..moving };
    [("default", default), ("near", near), ("slow", Machine { network, moving, ..default })]
}

fn golden(name: &str, made: &str) {
    let path = format!("{}/tests/golden/adaptive-{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        std::fs::write(&path, made).expect("a writable file");
    }
    let expected = std::fs::read_to_string(&path).expect("a golden file");
    assert!(made == expected, "{path}:\nexpected\n{expected}\nmade\n{made}");
}

#[test]
fn what_auto_does_before_the_fence_follows_what_it_observed() {
    let mut made = String::new();
    for (name, machine) in machines() {
        for (epochs, changed) in [(1, true), (2, false), (2, true)] {
            for most in [0, 4 << 10, 64 << 10, 1 << 20, 64 << 20, u64::MAX] {
                let departure = predict(&Observed { epochs, most, changed }, &machine);
                let repeats = if changed { "changes" } else { "repeats" };
                writeln!(made, "{name}: {epochs} epochs, {most} bytes, {repeats}: {departure:?}").unwrap();
            }
        }
    }
    golden("predict", &made);
}

#[test]
fn when_operations_leave_follows_their_mode_and_what_is_collected() {
    let mut made = String::new();
    for (name, machine) in machines() {
        for mode in Mode::ALL {
            for predicted in [Departure::Held, Departure::Eager { chunk: 1 << 16 }] {
                let departure = Departure::of(mode, predicted);
                write!(made, "{name}: {mode}, predicted {predicted:?}: {departure:?}, due").unwrap();
                for (collected, all) in [(8, 8), (1 << 13, 1 << 13), (1 << 17, 1 << 17), (1 << 17, 1 << 30)] {
                    let due = departure.is_due(collected, all, &machine);
                    write!(made, " {collected}/{all}: {}", if due { "yes" } else { "no" }).unwrap();
                }
                made.push('\n');
            }
        }
    }
    golden("departure", &made);
}

/// Returns a section of `runs` runs of `run` elements each.
fn rows(runs: usize, run: usize) -> Datatype {
    Datatype::nest(0, &[(runs, 2 * run as i64)], run).unwrap()
}

#[test]
fn which_sections_are_read_in_place_follows_their_runs_and_all_of_them_together() {
    let mut made = String::new();
    let row = rows(1, 1 << 14);
    for (name, machine) in machines() {
        for (runs, run) in [(1, 1), (1, 64), (1, 1 << 10), (1, 1 << 14), (64, 1), (64, 64), (1 << 14, 1)] {
            let source = rows(runs, run);
            let target = Datatype::run(0..source.size());
            for mode in [Mode::Auto, Mode::Direct, Mode::Aggregated] {
                let section = Section { mode, source: &source, target: &target, size: 8 };
                let long = Section { mode: Mode::Auto, source: &row, target: &row, size: 8 };
                let (alone, with) =
                    (Rendezvous::of([section], &machine), Rendezvous::of([section, long], &machine));
                let how = |decision: Rendezvous| {
                    let saved = decision.saved.map_or("nothing".into(), |saved| format!("{:.0} ns", saved.0));
                    let exposed = if decision.exposes(&section, &machine) { "exposed" } else { "copied" };
                    format!("{exposed}, saves {saved} of {:.0} ns", decision.price.0)
                };
                writeln!(
                    made,
                    "{name}: {runs} x {run} x 8 bytes, {mode}: {}; with a long one: {}",
                    how(alone),
                    how(with)
                )
                .unwrap();
            }
        }
    }
    let in_place = Mode::ALL.into_iter().filter(|&mode| lands_in_place(mode)).map(|mode| mode.to_string());
    writeln!(made, "gets that land in place: {}", in_place.collect::<Vec<_>>().join(", ")).unwrap();
    golden("rendezvous", &made);
}

#[test]
fn a_list_of_gets_is_sent_where_it_costs_less_than_a_copy_more() {
    let mut machine = Machine::default();
    machine.shared.payload = 0.0;
    (machine.shared.latency, machine.shared.overhead, machine.moving.pack) = (100.0, 50.0, 0.5);
    assert_eq!(
        [0, 1600, 1601, 1 << 30].map(|bytes| listing_pays(bytes, &machine)),
        [false, false, true, true]
    );
}

#[test]
fn elements_follow_the_census_where_a_copy_costs_more_than_a_latency() {
    let mut machine = Machine::default();
    (machine.network.latency, machine.network.overhead, machine.moving.pack) = (300.0, 100.0, 2.0);
    assert_eq!([0, 1000, 1001].map(|bytes| follows_census(bytes, &machine)), [false, false, true]);
}

#[test]
fn how_many_bytes_travel_among_the_records_follows_what_copies_and_a_wait_cost() {
    // On this machine a copy saves 0.24 ns a byte. On the default machine it saves almost nothing.
    let moving = Moving { remote: 0.03, remote_rows: 0.03, ..Machine::default().moving };
    let default = Machine { moving, ..Machine::default() };
    let with = |latency, pack| Machine {
        shared: Link { latency, ..default.shared },
        moving: Moving { pack, ..default.moving },
        ..default
    };
    assert_eq!(run_bytes(&default), 875);
    // On the first of these machines, a wait costs twice as much. On the second, a copy does.
    assert_eq!(run_bytes(&with(300.0, 0.10)), 1750);
    assert_eq!(run_bytes(&with(90.0, 0.34)), 438);
    // A copy counts as at least 0.01 ns a byte, so that the number of bytes stays limited.
    assert_eq!(run_bytes(&with(90.0, -0.2)), 21_000);
    assert_eq!(run_bytes(&Machine::default()), 21_000);
}
