//! A few words can describe any number of elements. These tests check that the cost of processing
//! such a description is bounded. Each test runs in a process of its own, which may use 3 GiB and
//! some minutes.

use crate::support::intern;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{ClassId, Delta, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::ir::schedule::{Instruction, Part, Placement, Program, Schedule};
use fencepost_planner::table::Table;
use fencepost_planner::verify::verify;
use fencepost_planner::{ErrorClass, Machine, Options, compile};
use std::process::Command;

const ELEMENT: ElementType = ElementType::scalar(Scalar::U64);

/// Runs `body`, which is the whole test `name`, in a process with little memory and time.
fn bounded(name: &str, body: impl FnOnce()) {
    if std::env::var_os("FENCEPOST_TEST_BOUNDED").is_some() {
        return body();
    }
    let script = "ulimit -v 3145728; exec timeout 240 \"$0\" --exact \"$1\"";
    let mut child = Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(format!("verify::bounds::{name}"));
    let output = child.env("FENCEPOST_TEST_BOUNDED", "1").output().unwrap();
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", output.status);
}

/// Returns typemaps that a few words describe, and that overlap themselves.
fn huge() -> [Datatype; 4] {
    [
        Datatype::nest(0, &[(1 << 40, 0)], 1).unwrap(),
        Datatype::nest(0, &[(1 << 40, 1)], 2).unwrap(),
        Datatype::nest(0, &[(1 << 20, 1)], 1 << 20).unwrap(),
        Datatype::nest(0, &[(1 << 30, 7), (1 << 30, 5), (1 << 2, 3)], 1).unwrap(),
    ]
}

fn operation(kind: Kind, target: i64, local: Local, remote: Datatype) -> Operation {
    let (window, mode, site) = (WindowId(1), Mode::Auto, Site::default());
    Operation { kind, window, target: Some(Delta(target)), remote, local, mode, site }
}

/// Returns the patterns of two ranks that each put to the other or to themselves.
fn patterns(of: impl Fn(i64) -> Vec<Operation>) -> Patterns {
    let pattern = |target| Pattern { operations: of(target).into_iter().collect() };
    intern(Patterns {
        name: "bounds".into(),
        windows: [ELEMENT; 2].into_iter().collect(),
        shape: vec![2],
        classes: [1, -1].map(pattern).into_iter().collect(),
        class_of: vec![ClassId(0), ClassId(1)],
        order: Order::Canonical,
        sync: Sync::Fence,
    })
}

#[test]
fn a_schedule_of_too_many_runs_is_not_gone_through() {
    bounded("a_schedule_of_too_many_runs_is_not_gone_through", || {
        for huge in huge() {
            let local = Local::Section { window: WindowId(0), datatype: huge.clone() };
            let patterns = patterns(|_| vec![operation(Kind::Put, 0, local.clone(), huge.clone())]);
            let part = |window| Part::Window { owner: Delta::SELF, window, datatype: huge.clone() };
            let (from, to) = (part(WindowId(0)), part(WindowId(1)));
            let program = Program {
                pattern: patterns.classes[ClassId(0)].clone(),
                routes: [None].into_iter().collect(),
                least_len: [1 << 62, 1 << 62].into_iter().collect(),
                buffers: Table::new(),
                instructions: vec![Instruction::Copy { from, to, op: None, element: ELEMENT }],
            };
            let schedule = Schedule {
                name: String::new(),
                windows: patterns.windows.clone(),
                shape: vec![2],
                classes: [program].into_iter().collect(),
                class_of: patterns.class_of.clone(),
                order: Order::Canonical,
                sync: Sync::Fence,
                placement: Placement::Together,
            };
            let error = verify(&patterns, schedule).unwrap_err();
            assert_eq!(error.name(), "TooMuch", "{error}");
        }
    });
}

#[test]
fn overlapping_operations_of_too_many_runs_are_no_memory() {
    bounded("overlapping_operations_of_too_many_runs_are_no_memory", || {
        for huge in huge() {
            for kind in [Kind::Put, Kind::Get, Kind::Accumulate(Op::Sum)] {
                // For overlapping typemaps with few runs, the verifier takes the longest time that
                // is permitted, so only one kind of operation is tested with these typemaps.
                if huge.run_count() <= 1 << 20 && kind != Kind::Put {
                    continue;
                }
                let section = Local::Section { window: WindowId(0), datatype: huge.clone() };
                let long = huge.run_count() <= 1 << 20;
                for local in [section, Local::Buffer].into_iter().take(if long { 1 } else { 2 }) {
                    let asked = |target| vec![operation(kind, target, local.clone(), huge.clone())];
                    let patterns = patterns(asked);
                    for placement in
                        [Placement::Together, Placement::Apart].into_iter().skip(usize::from(long))
                    {
                        let compiled =
                            compile(&patterns, placement, &Machine::default(), &Options::default());
                        // Some gets into a buffer compile, because elements in a buffer cannot
                        // overlap others.
                        if let Err(error) = compiled {
                            assert_eq!(
                                error.class(),
                                ErrorClass::NoMem,
                                "{kind}, {local:?}, {placement:?}: {error}"
                            );
                        } else {
                            assert!(
                                kind == Kind::Get && local == Local::Buffer,
                                "{kind}, {local:?}, {placement:?}"
                            );
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn runs_that_lie_over_each_other_compile_in_time() {
    bounded("runs_that_lie_over_each_other_compile_in_time", || {
        let n = 1 << 17;
        let [two, three] = [2, 3].map(|stride| Datatype::nest(0, &[(n, stride)], 1).unwrap());
        let local = |datatype: &Datatype| Local::Section { window: WindowId(0), datatype: datatype.clone() };
        let both = [&two, &three];
        let patterns = patterns(|to| {
            both.iter().map(|set| operation(Kind::Put, to, local(set), (*set).clone())).collect()
        });
        compile(&patterns, Placement::Together, &Machine::default(), &Options::default()).unwrap();
    });
}
