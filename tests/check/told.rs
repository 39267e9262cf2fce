//! Each kind of report in its printed form, for the docs.
//! `FENCEPOST_BLESS=1 cargo test --test check told` writes the page again.

use fencepost::prelude::*;
use fencepost::{Assertions, Check, ranks};
use fencepost_tests_support::golden;
use fencepost_tests_worlds::ends::ends;
use std::fmt::Write as _;
use std::time::Duration;

/// The subject of a report of rank 0, the name of its program, the program, and the check.
type Report = (&'static str, &'static str, fn(&World) -> Result<()>, Check);

const REPORTS: [Report; 5] = [
    (
        "Operations of two ranks conflict. The fence of every rank returns this error, and nothing was applied",
        "two_ranks",
        two_ranks,
        Check::Conflicts,
    ),
    (
        "Two operations of one rank conflict. The later call returns this error, and no other rank is notified",
        "one_rank",
        one_rank,
        Check::Conflicts,
    ),
    (
        "A rank stores into its part while another rank puts into that part, which has a meaning here but none in MPI. The fence of both ranks returns this error",
        "store",
        store,
        Check::Mpi,
    ),
    (
        "Only a buffer keeps two ranks from waiting for each other. With `Ranks::end_deadlocks`, both sends return this error; otherwise the deadlock is only reported",
        "saved_by_a_buffer",
        saved_by_a_buffer,
        Check::Mpi,
    ),
    (
        "A rank has made an assertion that is not true. The fence of that rank returns this error, and nothing was applied",
        "untrue",
        untrue,
        Check::Conflicts,
    ),
];

fn two_ranks(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(8)?;
    match world.rank() {
        0 => u.put([5; 3]).to(1, 2)?,
        _ => u.accumulate([5; 3], Op::Max).to(1, 4)?,
    }
    u.fence()
}

fn one_rank(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(8)?;
    u.put([1; 3]).to(1, 2)?;
    u.get(u.section(0..2)).from(1, 4)?;
    u.fence()
}

fn store(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(8)?;
    u.fence()?;
    match world.rank() {
        0 => u.put([7]).to(1, 5)?,
        _ => u[0] = 1,
    }
    u.fence()
}

fn saved_by_a_buffer(world: &World) -> Result<()> {
    let other = 1 - world.rank();
    world.message(other, 3).send([world.rank()])?;
    world.recv::<usize>(other, 3).map(drop)
}

fn untrue(world: &World) -> Result<()> {
    let mut u = world.window::<u64>(8)?;
    u.fence_with(Assertions::NOPUT)?;
    if world.rank() == 1 {
        u.put([1]).to(0, 2)?;
    }
    u.fence()
}

/// Returns the text of a program of this file.
fn source(name: &str) -> String {
    let start = format!("fn {name}(world: &World)");
    let lines = include_str!("told.rs").lines().skip_while(|line| !line.starts_with(&start));
    let all: Vec<&str> = lines.take_while(|line| *line != "}").collect();
    assert!(!all.is_empty(), "there is no program {name}");
    all.join("\n") + "\n}"
}

/// Returns the report that rank 0 gets.
fn told(program: fn(&World) -> Result<()>, check: Check) -> String {
    let world = ranks(2).check(check).stall(Some(Duration::ZERO)).end_deadlocks(true).on_stall(|_| ());
    let ends = ends(&world, &[], program);
    ends[0].as_ref().expect("rank 0 is told").1.clone()
}

#[test]
fn the_docs_show_each_kind_of_report_as_it_is_printed() {
    let mut page = String::new();
    for (what, name, program, check) in REPORTS {
        let (source, told) = (source(name), told(program, check));
        let _ = write!(page, "{what} (`{check}`):\n\n```text\n{source}\n```\n\n```text\n{told}\n```\n\n");
    }
    golden::compare(env!("CARGO_MANIFEST_DIR"), "src/reports.md", &format!("{}\n", page.trim_end()));
}
