//! Are the limits with which Fencepost is compared as fast in Rust as in C?
//!
//! Build `limits.c` with `gcc -O3 -march=native -pthread`, and set its path:
//! `FENCEPOST_BENCH_LIMITS_C=./limits cargo bench -p fencepost-benches --bench limits`. The bench
//! then prints the figures of the C program next to its own. A limit that is slower than in C
//! flatters Fencepost, and the comparison does not count.

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use fencepost_benches::contest::wanted;
use fencepost_benches::draws::draw;
use fencepost_benches::limits::halo::{Face, Halo};
use fencepost_benches::limits::scatter::{Apply, Tables};
use fencepost_benches::limits::{flag_barrier, yield_barrier};
use fencepost_benches::{Contest, Harness};
use std::time::Duration;

/// A limit, and the position of its figure in the output of the C program.
struct Entry {
    name: String,
    contest: Contest,
    keys: Vec<String>,
}

fn entry(
    name: &str,
    operations: usize,
    keys: &[(&str, &str)],
    run: impl FnMut(u64) -> Duration + 'static,
) -> Entry {
    Entry {
        name: name.into(),
        contest: Contest::new(name, operations).side("Rust", run),
        keys: keys.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect(),
    }
}

/// Returns the limits to compare. As in the C program, all epochs use the same set of draws.
fn entries() -> Vec<Entry> {
    let tables = || Tables::new(draw(2, 1, 10_000));
    let mut all = vec![
        entry("flag barrier, 2 threads", 1, &[("case", "\"flag_barrier\"")], |n| flag_barrier(2, n)),
        entry("yielding barrier, 4 threads", 1, &[("case", "\"counter_barrier_yield\""), ("P", "4")], |n| {
            yield_barrier(4, n)
        }),
    ];
    let one = Tables::new(draw(2, 1, 1));
    all.push(entry(
        "8-byte store and barrier",
        1,
        &[("case", "\"store_rand_barrier\""), ("n", "1")],
        move |n| one.store(n),
    ));
    let (put, add) = (tables(), tables());
    all.push(entry(
        "log, exchange, apply; 10,000 stores",
        10_000,
        &[("case", "\"log_exchange_apply_rand\""), ("n", "10000")],
        move |n| put.log_exchange_apply(Apply::Store, n),
    ));
    all.push(entry(
        "log, exchange, apply; 10,000 f64 sums",
        10_000,
        &[("case", "\"acc_log_exchange_apply_rand\""), ("n", "10000")],
        move |n| add.log_exchange_apply(Apply::AddF64, n),
    ));
    for n in [512, 1024, 2048] {
        let (key, halo) = (n.to_string(), Halo::new(Face::row(n)));
        all.push(entry(
            &format!("row halo of {n}, direct"),
            1,
            &[("case", "\"halo_direct/rows/comm\""), ("n", &key)],
            move |n| halo.direct(n),
        ));
        let halo = Halo::new(Face::row(n));
        all.push(entry(
            &format!("row halo of {n}, packed"),
            1,
            &[("case", "\"halo_packed/rows/comm\""), ("n", &key)],
            move |n| halo.packed(n),
        ));
    }
    let halo = Halo::new(Face::column(1024));
    all.push(entry(
        "column halo of 1024, packed",
        1,
        &[("case", "\"halo_packed/cols/comm\""), ("n", "1024")],
        move |n| halo.packed(n),
    ));
    let halo = Halo::new(Face::plane(128));
    all.push(entry(
        "k-face of 128 cubed, packed",
        1,
        &[("case", "\"halo_packed/split_k/comm\""), ("n", "128")],
        move |n| halo.packed(n),
    ));
    all
}

/// Returns the figure of the C program in nanoseconds: the best repetition, and the median.
fn c_figure(lines: &str, keys: &[String]) -> Option<(f64, f64)> {
    let has = |line: &str, key: &str| {
        line.match_indices(key)
            .any(|(at, _)| matches!(line.as_bytes().get(at + key.len()), Some(b',' | b'}')))
    };
    let line = lines.lines().find(|line| keys.iter().all(|key| has(line, key)))?;
    let field = |name: &str| line.split(&format!("\"{name}\":")).nth(1)?.split([',', '}']).next();
    let unit = if field("unit")? == "\"us\"" { 1e3 } else { 1.0 };
    Some((unit * field("min")?.parse::<f64>().ok()?, unit * field("median")?.parse::<f64>().ok()?))
}

fn main() {
    let mut harness = Harness::from_arguments();
    let c_lines = std::env::var_os("FENCEPOST_BENCH_LIMITS_C").map(|program| {
        let output = std::process::Command::new(program).output().expect("the C program runs");
        String::from_utf8(output.stdout).expect("its figures are text")
    });
    for mut entry in entries().into_iter().filter(|entry| wanted(&entry.name)) {
        let Some(ours) = harness.run(&mut entry.contest).map(|figures| figures[0]) else { continue };
        if let Some((min, median)) = c_lines.as_ref().and_then(|lines| c_figure(lines, &entry.keys)) {
            println!("  {:<34} {median:>11.2} {min:>11.2}", "C");
            println!("  Rust to C: median {:.2}, best {:.2}", ours.median / median, ours.min / min);
        }
    }
}
