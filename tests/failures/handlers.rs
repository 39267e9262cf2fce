//! Error handlers: which handler gets which error, and how often. The calls return the error as
//! well.

use crate::stalls::Bomb;
use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Check, ErrorHandler, TransportKind, ranks};
use std::cell::{Cell, RefCell};
use std::process::Command;
use std::rc::Rc;

/// The errors that a handler got, as "handler: class".
#[derive(Clone, Default)]
struct Told(Rc<RefCell<Vec<String>>>);

impl Told {
    fn handler(&self, who: &'static str) -> ErrorHandler {
        let told = self.0.clone();
        ErrorHandler::call(move |error| told.borrow_mut().push(format!("{who}: {:?}", error.class())))
    }

    #[track_caller]
    fn said(&self, expected: &[&str]) {
        assert_eq!(self.0.take(), expected);
    }
}

fn transports() -> [TransportKind; 2] {
    [TransportKind::Local, TransportKind::Sim(SimConfig { seed: 7, ..SimConfig::default() })]
}

#[superstep]
fn shift(u: &mut Window<u32>, values: &[u32], by: usize) -> Result<()> {
    let next = (u.rank() + by) % u.size();
    u.put(values).to(next, 0)
}

#[superstep]
fn both(u: &mut Window<u32>, v: &mut Window<u32>, fails: bool) -> Result<()> {
    if fails {
        return Err(Error::new(ErrorClass::Other, "of its own"));
    }
    u.put(v.section(0..1)).to(0, 0)
}

#[test]
fn each_error_is_reported_once_to_the_handler_of_the_call_that_found_it() {
    for transport in transports() {
        ranks(2)
            .transport(transport)
            .run(|world| {
                let told = Told::default();
                world.on_error(told.handler("world"));
                let mut u = world.window::<u32>(4)?;
                let mut v = world.window::<u32>(4)?;
                v.on_error(told.handler("v"));

                // Errors at the call, for each kind of call.
                assert_eq!(u.put([1]).to(2, 0).unwrap_err().class(), ErrorClass::Rank);
                told.said(&["world: Rank"]);
                assert!(v.put([1]).to(0, 4).is_err());
                assert!(v.put(&[1, 2]).to(0, 0..3).is_err());
                assert!(v.get(0..1).from(0, 9).is_err());
                assert!(v.fetch(3, 0).is_err());
                told.said(&["v: Disp", "v: Size", "v: Disp", "v: Rank"]);
                assert!(world.broadcast(7, &mut [1]).is_err());
                assert!(world.all_to_all::<u8>(&[]).is_err());
                told.said(&["world: Rank", "world: Size"]);
                u.put([1]).to(0, 0)?;
                u.fence()?;
                told.said(&[]);

                // Errors at a fence of one window, and at a fence of two windows.
                if world.rank() == 0 {
                    v.fence().unwrap_err()
                } else {
                    u.fence().unwrap_err()
                };
                told.said(if world.rank() == 0 { &["v: RmaSync"] } else { &["world: RmaSync"] });
                u.on_error(told.handler("u"));
                u.put(v.section(0..1)).to(0, 0)?;
                u.fence().unwrap_err();
                told.said(&["u: RmaSync"]);
                if world.rank() == 0 {
                    world.fence((&mut u, &mut v)).unwrap_err();
                } else {
                    world.barrier().unwrap_err();
                }
                told.said(&["world: RmaSync"]);

                // If a call in the body fails on a rank, only the handler of that rank is called at
                // once. The other ranks are notified in their superstep.
                let error = shift(&mut u, &vec![1; 4 + world.rank()], 1).unwrap_err();
                assert_eq!(error.class() == ErrorClass::Disp, world.rank() == 1, "{error}");
                told.said(if world.rank() == 1 { &["u: Disp"] } else { &["u: RmaSync"] });
                both(&mut u, &mut v, world.rank() == 0).unwrap_err();
                told.said(if world.rank() == 0 { &[] } else { &["world: RmaSync"] });

                // A scoped epoch returns the error of its closure.
                u.epoch(|epoch| epoch.put([1]).to(5, 0)).unwrap_err();
                told.said(&["u: Rank"]);
                let mut one = [0];
                u.epoch(|epoch| epoch.fetch_into(5, 0, &mut one)).unwrap_err();
                told.said(&["u: Rank"]);

                u.on_error(ErrorHandler::Return);
                assert!(u.put([1]).to(2, 0).is_err());
                told.said(&[]);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn windows_and_split_worlds_begin_with_the_handler_of_their_world() {
    ranks(3)
        .run(|world| {
            let told = Told::default();
            let before = world.window::<u8>(1)?;
            world.on_error(told.handler("first"));
            let after = world.window::<u8>(1)?;
            let Some(half) = world.split(Some(world.rank() as u32 / 2), 0)? else {
                panic!("all ranks have a colour");
            };
            world.on_error(told.handler("second"));
            let within = half.window::<u8>(1)?;
            for window in [&before, &after, &within] {
                assert!(window.put([1]).to(9, 0).is_err());
            }
            told.said(&["first: Rank", "first: Rank"]);
            assert!(half.broadcast(9, &mut [0]).is_err());
            assert!(world.broadcast(9, &mut [0]).is_err());
            told.said(&["first: Rank", "second: Rank"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn prepared_supersteps_report_errors_as_plain_ones_do() {
    for transport in transports() {
        ranks(2)
            .transport(transport)
            .run(|world| {
                let told = Told::default();
                world.on_error(told.handler("world"));
                let mut u = world.window::<u32>(4)?;
                u.on_error(told.handler("u"));
                shift::load(world, "/nowhere/at.all", &[1], 1).unwrap_err();
                told.said(&["world: Io"]);
                let mut prepared = shift::prepare(world, &[1], 1)?;
                prepared.run(&mut u, &[world.rank() as u32], 1)?;
                told.said(&[]);
                prepared.run(&mut u, &[1, 2], 1).unwrap_err();
                told.said(&["u: Plan"]);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_handler_may_set_another_and_may_panic() {
    ranks(1)
        .run(|world| {
            let world = Rc::new(world.split(Some(0), 0)?.unwrap());
            let told = Told::default();
            let (own, next) = (Rc::downgrade(&world), told.handler("next"));
            world.on_error(ErrorHandler::call(move |_| own.upgrade().unwrap().on_error(next.clone())));
            assert!(world.broadcast(1, &mut [0]).is_err());
            told.said(&[]);
            assert!(world.broadcast(1, &mut [0]).is_err());
            told.said(&["next: Rank"]);
            world.on_error(ErrorHandler::call(|_| panic!("told")));
            let panicked =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.broadcast(1, &mut [0])));
            assert!(panicked.is_err());
            world.on_error(ErrorHandler::Return);
            world.barrier()
        })
        .unwrap();
}

/// The test below runs this test in a process of its own. The error ends that process.
#[test]
#[expect(clippy::print_stdout, reason = "the next test reads it")]
fn in_a_process_of_its_own() {
    if std::env::var("FENCEPOST_TEST_ABORTS").is_err() {
        return;
    }
    ranks(2)
        .run(|world| {
            world.on_error(ErrorHandler::Abort);
            let u = world.window::<u32>(4)?;
            if world.rank() == 1 {
                u.put([1]).to(0, 4)?;
            }
            world.barrier()
        })
        .unwrap();
    println!("it went on");
}

#[test]
fn abort_prints_the_error_and_ends_the_process() {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "handlers::in_a_process_of_its_own", "--nocapture"])
        .env("FENCEPOST_TEST_ABORTS", "1")
        .output()
        .unwrap();
    let (said, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.contains("an error of rank 1 ends the process: DISP"), "{error}");
    assert!(error.contains("handlers.rs"), "{error}");
    assert!(!said.contains("it went on"), "{said}");
}

/// An error that cannot be formatted.
#[derive(Debug)]
struct Unshown;

impl From<Error> for Unshown {
    fn from(_: Error) -> Self {
        Self
    }
}

impl std::fmt::Display for Unshown {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::panic::resume_unwind(Box::new("planned"))
    }
}

#[superstep]
fn put_and_fail(u: &mut Window<u32>, fails: bool) -> std::result::Result<(), Unshown> {
    u.put(&[9]).to((u.rank() + 1) % u.size(), 0)?;
    if fails {
        return Err(Unshown);
    }
    Ok(())
}

#[test]
fn a_panicking_handler_or_display_leaves_nothing_running_and_applies_nothing() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for transport in transports() {
        ranks(2)
            .transport(transport)
            .run(|world| {
                let mut u = world.window::<u32>(2)?;
                // The error's own Display panics.
                let left = catch_unwind(AssertUnwindSafe(|| put_and_fail(&mut u, world.rank() == 0)));
                assert_eq!(left.is_err(), world.rank() == 0);
                assert!(left.is_err() || left.is_ok_and(|left| left.is_err()), "every rank learns of it");
                u.fence()?;
                assert_eq!(u[0], 0, "nothing is applied");
                // The handler panics when the superstep is left.
                u.on_error(ErrorHandler::call(|_| std::panic::resume_unwind(Box::new("planned"))));
                let left = catch_unwind(AssertUnwindSafe(|| put_and_fail(&mut u, world.rank() == 0)));
                assert!(left.is_err() || world.rank() == 0);
                drop(left);
                u.on_error(ErrorHandler::Return);
                u.put([3]).to(1 - world.rank(), 0)?;
                u.fence()?;
                assert_eq!(u[0], 3, "no superstep is running");
                Ok(())
            })
            .unwrap();
    }
}

/// Lines of several processes do not mix if each line is a single write. Each write to this socket
/// is a datagram of its own.
#[test]
#[cfg(unix)]
fn what_abort_prints_is_one_write() {
    use std::os::{fd::OwnedFd, unix::net::UnixDatagram};
    let (here, there) = UnixDatagram::pair().unwrap();
    here.set_nonblocking(true).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "handlers::in_a_process_of_its_own", "--nocapture"])
        .env("FENCEPOST_TEST_ABORTS", "1")
        .stdout(std::process::Stdio::null())
        .stderr(OwnedFd::from(there))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let mut writes = Vec::new();
    let mut bytes = [0; 1 << 14];
    while let Ok(count) = here.recv(&mut bytes) {
        writes.push(String::from_utf8_lossy(&bytes[..count]).into_owned());
    }
    let whole = |write: &&String| write.starts_with("fencepost: an error of rank") && write.ends_with("\n");
    assert_eq!(writes.iter().filter(whole).count(), writes.len(), "{writes:?}");
    assert!(!writes.is_empty());
}

#[test]
fn a_function_whose_panic_has_a_payload_that_panics_once_more_lets_no_conflict_pass() {
    for transport in transports() {
        let run = ranks(2).transport(transport).check(Check::Conflicts).run(|world| {
            let mut u = world.window::<usize>(4)?;
            if world.rank() == 1 {
                let first = Cell::new(true);
                u.on_error(ErrorHandler::pass_conflicts(move |_| {
                    if first.replace(false) {
                        std::panic::panic_any(Bomb);
                    }
                }));
            }
            u.put([world.rank() + 7]).to(1, 3)?;
            assert_eq!(u.fence().expect_err("both put there").class(), ErrorClass::RmaConflict);
            assert_eq!(u[..], [0; 4]);
            world.barrier()
        });
        run.unwrap();
    }
}
