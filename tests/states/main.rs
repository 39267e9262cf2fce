//! The effect of each call in each state of a window: the call does not compile, returns an error
//! of some class, or is allowed. The table is part of the docs. `FENCEPOST_BLESS=1 cargo test
//! --test states` writes the table again, and a person reads it. If the set of calls that compile
//! has changed, the test reports this, and a second run fills the table.
//!
//! A cell is a state and a call, as text. The compiler reports which of all cells it refuses. The
//! other cells are functions in a file, which the test also writes. They are run here, each in a
//! new world.

use fencepost::prelude::*;
use fencepost::{Check, TransportKind, World, ranks};
use fencepost_tests_support::golden;
use fencepost_tests_worlds::transports::transports;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The states: their names in the docs, and their code, in which `BODY` is the call.
const STATES: [(&str, &str); 12] = [
    ("nothing is open", "let mut u = world.window::<u32>(4)?; let a = (); BODY"),
    (
        "a put was collected for its fence",
        "let mut u = world.window::<u32>(4)?; u.put([1]).to(0, 0)?; let a = (); BODY",
    ),
    ("posted", "let mut u = world.window::<u32>(4)?.post(&world.group([])?)?; let a = (); BODY"),
    (
        "posted in part",
        "let mut u = world.window::<u32>(4)?.post_part(&world.group([])?, 0..2)?; let a = (); BODY",
    ),
    (
        "posted to gets only",
        "let mut u = world.window::<u32>(4)?.post_read(&world.group([])?)?; let a = (); BODY",
    ),
    (
        "an access to it is open",
        "let mut u = world.window::<u32>(4)?; let a = u.start(&world.group([0])?)?; BODY",
    ),
    (
        "posted, and an access to it is open",
        "let mut u = world.window::<u32>(4)?.post(&world.group([0])?)?; let a = u.start(&world.group([0])?)?; BODY",
    ),
    ("in a scoped epoch", "let mut u = world.window::<u32>(4)?; u.epoch(|a| { BODY })"),
    (
        "in a superstep that was begun",
        "let mut u = world.window::<u32>(4)?; let mut begun = shift::prepare(world)?; let a = begun.begin(u)?; BODY",
    ),
    ("for locks", "let mut u = world.lock_window::<u32>(4)?; let a = (); BODY"),
    (
        "its part is locked",
        "let mut u = world.lock_window::<u32>(4)?; let a = u.lock(0, LockType::Exclusive)?; BODY",
    ),
    ("inside `local_mut`", "let mut u = world.lock_window::<u32>(4)?; u.local_mut(|a| { BODY })"),
];

/// The calls. `u` is the window, or the value into which the state has turned the window. `a` is
/// the value that the state has opened.
const CALLS: [(&str, &str); 33] = [
    ("`u[0]`", "let _: u32 = u[0];"),
    ("`u[0] = 1`", "u[0] = 1;"),
    ("`u.put(..)`", "u.put([1]).to(0, 0)?;"),
    ("`u.fetch(..)`", "u.fetch(0, 0)?;"),
    ("`u.fence()`", "u.fence()?;"),
    ("`u.epoch(..)`", "u.epoch(|_| Ok(()))?;"),
    ("`u.epoch_between(..)`", "u.epoch_between(&world.group([])?, &world.group([])?, |_| Ok(()))?;"),
    ("`u.post(..)`", "u.post(&world.group([])?)?;"),
    ("`u.post_part(..)`", "u.post_part(&world.group([])?, 0..2)?;"),
    ("`u.post_read(..)`", "u.post_read(&world.group([])?)?;"),
    ("`u.start(..)`", "u.start(&world.group([0])?)?.complete()?;"),
    ("`u.wait()`", "u.wait()?;"),
    ("`u.test()`", "let _ = u.test()?;"),
    ("`u.kept(..)`", "u.kept(2..4)?;"),
    ("`u.kept_mut(..)`", "u.kept_mut(2..4)?;"),
    ("`superstep(&mut u)`", "shift(&mut u)?;"),
    ("`prepared.begin(u)`", "let mut other = shift::prepare(world)?; other.begin(u)?.finish()?;"),
    ("`u.into_locked()`", "u.into_locked()?;"),
    ("`u.into_window()`", "u.into_window()?;"),
    ("`u.lock(..)`", "u.lock(0, LockType::Shared)?.unlock()?;"),
    ("`u.lock_all()`", "u.lock_all()?.unlock()?;"),
    ("`u.local(..)`", "u.local(|part| part.get(0))?;"),
    ("`u.local_mut(..)`", "u.local_mut(|part| { part[0] = 1; Ok(()) })?;"),
    ("`u.into_vec()`", "u.into_vec()?;"),
    ("`u.set_attribute(..)`", "u.set_attribute(1);"),
    ("`u.free()`", "u.free()?;"),
    ("`drop(u)`", "drop(u);"),
    ("`a.put(..).to(..)`", "a.put([1]).to(0, 0)?;"),
    ("`a.put(.., 0)`", "a.put([1], 0)?;"),
    ("`a.complete()`", "a.complete()?;"),
    ("`a.flush()`", "a.flush()?;"),
    ("`a.unlock()`", "a.unlock()?;"),
    ("`a.finish()`", "a.finish()?;"),
];

/// The superstep that the cells use.
#[superstep]
fn shift(u: &mut Window<u32>) -> Result<()> {
    u.put([1]).to(0, 0)
}

const SHIFT: &str =
    "#[superstep]\nfn shift(u: &mut Window<u32>) -> Result<()> {\n    u.put([1]).to(0, 0)\n}\n";

type Cell = (usize, usize);

#[expect(unused, clippy::all, reason = "a cell is a state and a call, and nothing else")]
mod cells {
    use super::{Cell, LockType, Result, World, shift};
    include!("cells.in");
}

fn all_cells() -> impl Iterator<Item = Cell> {
    (0..CALLS.len()).flat_map(|call| (0..STATES.len()).map(move |state| (state, call)))
}

/// Returns a cell as a function of one line.
fn function((state, call): Cell) -> String {
    let body = format!("{} Ok(())", CALLS[call].1);
    let code = STATES[state].1.replace("BODY", &body);
    format!("fn s{state}_c{call}(world: &World) -> Result<()> {{ {code} }}\n")
}

/// Returns the cells that the compiler refuses. The compiler checks types before moves and borrows,
/// so it runs again without the cells that it has refused.
fn refused() -> BTreeSet<Cell> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (project, target) = (folder.join("states"), folder.parent().expect("it is in the target folder"));
    let root = env!("CARGO_MANIFEST_DIR");
    let manifest = format!(
        "[package]\nname = \"states\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nfencepost = {{ path = {root:?} }}\n[lib]\npath = \"cells.rs\"\n"
    );
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("Cargo.toml"), manifest).unwrap();
    fs::copy(Path::new(root).join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let mut refused = BTreeSet::new();
    loop {
        let head = format!("#![allow(warnings)]\nuse fencepost::World;\nuse fencepost::prelude::*;\n{SHIFT}");
        let cells: Vec<Cell> = all_cells().filter(|cell| !refused.contains(cell)).collect();
        let functions: String = cells.iter().copied().map(function).collect();
        fs::write(project.join("cells.rs"), format!("{head}{functions}")).unwrap();
        let output = Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet", "--message-format=short"])
            .current_dir(&project)
            .env("CARGO_TARGET_DIR", target) // the crates that macros use are already built there
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            return refused;
        }
        let first = head.lines().count() + 1;
        let lines =
            errors.lines().filter_map(|line| line.strip_prefix("cells.rs:")?.split(':').next()?.parse().ok());
        let before = refused.len();
        refused.extend(lines.map(|line: usize| cells[line.checked_sub(first).expect("the error of a cell")]));
        assert!(refused.len() > before, "no cell is to blame for:\n{errors}");
    }
}

/// No call of a cell waits for anything. So a call that takes longer than this would never return.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Runs a cell without the checker. Returns a text: `yes` if the call succeeds, the class if the
/// call fails, and otherwise that the call waits.
fn outcome(transport: &TransportKind, run: fn(&World) -> Result<()>) -> String {
    let (done, ended) = channel();
    let world = ranks(1).transport(transport.clone()).check(Check::Off);
    // If the call waits, the thread and its world are left running.
    std::thread::spawn(move || done.send(world.run(run)));
    match ended.recv_timeout(FOR_EVER) {
        Ok(Ok(())) => "yes".to_owned(),
        Ok(Err(error)) => format!("`{}`", error.class()),
        Err(_) => "waits for ever".to_owned(),
    }
}

#[test]
fn the_compiler_refuses_the_same_cells_as_before() {
    let refused = refused();
    let compile: Vec<Cell> = all_cells().filter(|cell| !refused.contains(cell)).collect();
    let mut file = String::from("// The cells that compile. Written by the test, which compares it.\n");
    compile.iter().copied().for_each(|cell| file.push_str(&function(cell)));
    file.push_str("pub const CELLS: &[(Cell, fn(&World) -> Result<()>)] = &[\n");
    for (state, call) in compile {
        let _ = writeln!(file, "    (({state}, {call}), s{state}_c{call}),");
    }
    file.push_str("];\n");
    golden::compare(env!("CARGO_MANIFEST_DIR"), "tests/states/cells.in", &file);
}

#[test]
fn the_table_of_the_docs_says_what_each_call_does_in_each_state() {
    let mut outcomes = vec![vec!["–".to_owned(); STATES.len()]; CALLS.len()];
    for ((state, call), run) in cells::CELLS {
        let of_one = transports([1]).into_iter().map(|transport| match transport {
            TransportKind::MixedThreads(_) => TransportKind::MixedThreads(vec![0]),
            other => other,
        });
        let each: BTreeSet<String> = of_one.map(|transport| outcome(&transport, *run)).collect();
        outcomes[*call][*state] = each.into_iter().collect::<Vec<_>>().join(" or ");
    }
    let mut table = String::from(
        "What a call does depends on the state of the window. `u` is the window, or the value that replaces the window in this state. `a` is the\nvalue of what is open: an access, a scoped epoch, a lock, or a superstep that was begun. In the table, \"yes\" is a call that is allowed, an\nerror has its class, and a dash is a call that does not compile. The states are:\n\n",
    );
    for (at, (state, _)) in STATES.iter().enumerate() {
        let _ = writeln!(table, "{}. {state}", at + 1);
    }
    table.push_str("\n| call |");
    (1..=STATES.len()).for_each(|at| table.push_str(&format!(" {at} |")));
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(STATES.len()));
    for ((call, _), outcomes) in CALLS.iter().zip(&outcomes) {
        let _ = write!(table, "\n| {call} | {} |", outcomes.join(" | "));
    }
    table.push('\n');
    io::stdout().write_all(table.as_bytes()).unwrap();
    golden::compare(env!("CARGO_MANIFEST_DIR"), "src/states.md", &table);
}
