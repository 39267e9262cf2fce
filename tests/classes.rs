//! Each class of errors, with calls that return it. The table is part of the docs.
//! `FENCEPOST_BLESS=1 cargo test --test classes` writes it again. The test makes each call on each
//! transport of threads, in a new world of two ranks. On rank 0, the call must call the error
//! handler of its world once, and then return an error of the class.

use fencepost::prelude::*;
use fencepost::transport::SimConfig;
use fencepost::{Any, Assertions, Check, ErrorHandler, TransportKind, World, ranks};
use fencepost_tests_support::golden;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

/// The text that describes a call and its mistake in the docs, and the call.
type Row = (&'static str, fn(&World) -> Result<()>);

#[superstep]
fn shift(u: &mut Window<u32>, values: &[u32]) -> Result<()> {
    u.put(values).to((u.rank() + 1) % u.size(), 0)
}

#[superstep]
fn collide(u: &mut Window<u32>) -> Result<()> {
    u.put([1]).to(0, 0)
}

#[superstep]
fn fails(u: &mut Window<u32>) -> Result<()> {
    if u.rank() == 0 {
        return Err(Error::new(ErrorClass::Other, "of its own"));
    }
    u.put([1]).to(0, 0)
}

/// Returns a path for a plan file that only this rank of this process uses.
fn path(world: &World, name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("classes-{name}-{}-{}", std::process::id(), world.rank()))
}

/// Returns the calls that return a class.
fn rows(class: ErrorClass) -> Vec<Row> {
    match class {
        ErrorClass::Win => vec![
            ("`World::fence` of a window of another world", |world| {
                let other = world.split(Some(0), 0)?.expect("it has a colour");
                let (mut u, mut v) = (world.window::<u32>(1)?, other.window::<u32>(1)?);
                world.fence((&mut u, &mut v))
            }),
            ("a superstep that is called with a window of another world", |world| {
                let other = world.split(Some(0), 0)?.expect("it has a colour");
                let mut prepared = shift::prepare(world, &[1])?;
                prepared.run(&mut other.window::<u32>(1)?, &[1])
            }),
        ],
        ErrorClass::Size => vec![
            ("`put` of two elements to a region of three", |world| {
                world.window::<u32>(4)?.put(&[1, 2]).to(0, 0..3)
            }),
            ("`World::all_to_all` with another number of lists than ranks", |world| {
                world.all_to_all::<u8>(&[]).map(drop)
            }),
            ("`World::allgather_into` with room for another number of elements", |world| {
                world.allgather_into(&[1, 2], &mut [0; 3])
            }),
        ],
        ErrorClass::Disp => vec![
            ("`put` beyond the end of the target's part", |world| world.window::<u32>(4)?.put([1]).to(0, 4)),
            ("`get` from beyond it", |world| world.window::<u32>(4)?.get(0..2).from(1, 3..5)),
            ("`fetch` from beyond it", |world| world.window::<u32>(4)?.fetch(1, 9).map(drop)),
            ("`Locked::put` beyond it", |world| {
                let u = world.lock_window::<u32>(4)?;
                let lock = u.lock(0, LockType::Shared)?;
                lock.put([1], 4)
            }),
            ("`Message::send` of elements that the slice does not have", |world| {
                world.message(0, 0).send((&[1, 2], 1..3))
            }),
            ("`Exposed::kept` of elements beyond the end", |world| {
                let exposed = world.window::<u32>(4)?.post_part(&world.group([])?, 0..2)?;
                let wrong = exposed.kept(3..5).map(drop);
                exposed.wait()?;
                wrong
            }),
        ],
        ErrorClass::Assert => vec![
            ("`Window::fence_with` `NOPRECEDE` where an operation was collected", |world| {
                let mut u = world.window::<u32>(4)?;
                u.put([1]).to(world.rank(), 0)?;
                u.fence_with(Assertions::NOPRECEDE)
            }),
            ("`Exposed::wait` where an origin puts to what was lent by `post_read`", |world| {
                let u = world.window::<u32>(4)?;
                if world.rank() == 0 {
                    u.post_read(&world.group([1])?)?.wait()?;
                } else {
                    let access = u.start(&world.group([0])?)?;
                    access.put([1]).to(0, 0)?;
                    access.complete()?;
                }
                Ok(())
            }),
            ("a receive of a message that was `Message::ready` and came before it", |world| {
                if world.rank() == 0 {
                    world.recv::<u8>(1, 1)?;
                    world.recv::<u8>(1, 0).map(drop)
                } else {
                    world.message(0, 0).ready().send([1_u8])?;
                    world.message(0, 1).send([1_u8])
                }
            }),
        ],
        ErrorClass::RmaSync => vec![
            ("`Window::fence` where another rank is in `World::barrier`", |world| {
                let mut u = world.window::<u32>(4)?;
                if world.rank() == 0 { u.fence() } else { world.barrier() }
            }),
            ("`Window::fence` while an access is open", |world| {
                let mut u = world.window::<u32>(4)?;
                let access = u.start(&world.group([])?)?;
                let wrong = u.fence();
                access.complete()?;
                wrong
            }),
            ("`Window::post` with an operation collected for a fence", |world| {
                let u = world.window::<u32>(4)?;
                u.put([1]).to(0, 0)?;
                u.post(&world.group([])?).map(drop).map_err(Error::from)
            }),
            ("`LockWindow::lock` of a target that this rank has locked", |world| {
                let u = world.lock_window::<u32>(4)?;
                let _held = u.lock(0, LockType::Shared)?;
                u.lock(0, LockType::Shared).map(drop)
            }),
            ("`Ticket::take` before the end of its epoch", |world| {
                let mut u = world.window::<u32>(4)?;
                let taken = u.fetch(0, 0)?.take().map(drop);
                u.discard();
                taken
            }),
        ],
        ErrorClass::RmaConflict => vec![
            ("`Window::fence` where two puts meet, with `Check::Conflicts`", |world| {
                let mut u = world.window::<u32>(4)?;
                u.put([1]).to(0, 0)?;
                u.fence()
            }),
            ("`prepare` of a superstep in which two puts meet, with the same", |world| {
                collide::prepare(world).map(drop)
            }),
            ("`Running::kept` of elements that are put to", |world| {
                let running = shift::prepare(world, &[1])?.begin(world.window::<u32>(4)?, &[1])?;
                let wrong = running.kept(0..1).map(drop);
                running.finish()?;
                wrong
            }),
            ("`Exposed::kept` of elements that are lent", |world| {
                let exposed = world.window::<u32>(4)?.post_part(&world.group([])?, 0..2)?;
                let wrong = exposed.kept(1..3).map(drop);
                exposed.wait()?;
                wrong
            }),
        ],
        ErrorClass::Rank => vec![
            ("`put` to a rank that the world does not have", |world| {
                world.window::<u32>(4)?.put([1]).to(2, 0)
            }),
            ("`World::broadcast` from such a rank", |world| world.broadcast(2, &mut [0])),
            ("`World::group` with such a rank", |world| world.group([0, 2]).map(drop)),
            ("`LockWindow::lock` of such a rank", |world| {
                world.lock_window::<u32>(1)?.lock(2, LockType::Shared).map(drop)
            }),
            ("`Message::send` to such a rank", |world| world.message(2, 0).send([1])),
            ("`World::recv` from such a rank", |world| world.recv::<u8>(2, 0).map(drop)),
        ],
        ErrorClass::Op => vec![
            ("`accumulate` with an operator that the element type does not have", |world| {
                world.window::<f64>(4)?.accumulate([1.0], Op::Band).to(0, 0)
            }),
            ("`World::allreduce` with such an operator", |world| world.allreduce(&mut [1.0], Op::Bxor)),
            ("`Locked::fetch_and` with such an operator", |world| {
                let u = world.lock_window::<f64>(4)?;
                let lock = u.lock(0, LockType::Shared)?;
                lock.fetch_and(Op::Bor, 1.0, 0).map(drop)
            }),
        ],
        ErrorClass::Type => vec![
            ("`World::window` with another element type on another rank", |world| {
                if world.rank() == 0 {
                    world.window::<u32>(1).map(drop)
                } else {
                    world.window::<f32>(1).map(drop)
                }
            }),
            ("`World::recv` of elements of another type than were sent", |world| {
                world.message(world.rank(), 0).send([1_u32])?;
                world.recv::<f32>(world.rank(), 0).map(drop)
            }),
            ("`Datatype::nest` with more elements than can be counted", |_| {
                Datatype::nest(0, &[(usize::MAX, 1), (usize::MAX, 1)], 1).map(drop)
            }),
        ],
        ErrorClass::Arg => vec![
            ("`Window::start` with a group of another world", |world| {
                let other = world.split(Some(0), 0)?.expect("it has a colour");
                world.window::<u32>(4)?.start(&other.group([0])?).map(drop)
            }),
            ("`Block::tiles` with more steps than the halo is wide", |world| {
                Block::new(world, [8, 8])?.halo(1)?.tiles(2).map(drop)
            }),
            ("`run` of no ranks", |_| ranks(0).run(|_| Ok(()))),
        ],
        ErrorClass::Truncate => {
            vec![("`World::recv_into` where the message has more elements than there is room for", |world| {
                world.message(world.rank(), 0).send([1_u8, 2])?;
                world.recv_into(Any, Any, &mut [0_u8]).map(drop)
            })]
        }
        ErrorClass::Buffer => vec![
            ("a `Message::buffered` send without a buffer", |world| world.message(0, 0).buffered().send([1])),
            ("a `Message::buffered` send of more than there is room for", |world| {
                world.attach_buffer(4)?;
                world.message(0, 0).buffered().send([1_u64])
            }),
            ("`World::attach_buffer` where one is attached", |world| {
                world.attach_buffer(4)?;
                world.attach_buffer(4)
            }),
            ("`World::detach_buffer` where none is", |world| world.detach_buffer().map(drop)),
        ],
        ErrorClass::InStatus => {
            vec![(
                "`RequestSet::wait_all` where a message has more elements than its request has room for",
                |world| {
                    let mut requests = world.requests();
                    requests.push(world.irecv_into(world.rank(), 0, vec![0_u8])?)?;
                    world.message(world.rank(), 0).send([1_u8, 2])?;
                    Ok(requests.wait_all().map(drop)?)
                },
            )]
        }
        ErrorClass::NoMem => vec![
            ("`World::window` with more elements than there is memory for", |world| {
                world.window::<u64>(1 << 58).map(drop)
            }),
            ("`Window::fetch` of such a number, from no rank", |world| {
                world.window::<u64>(1)?.fetch(None, 0..1 << 58).map(drop)
            }),
        ],
        ErrorClass::Dims => vec![("`Block::grid` of another number of ranks than the world has", |world| {
            Block::new(world, [8, 8])?.grid([3, 3]).map(drop)
        })],
        ErrorClass::Io => vec![("`load` of a plan from a file that is not there", |world| {
            collide::load(world, "no/such.plan").map(drop)
        })],
        ErrorClass::File => vec![("`load` of a plan from a file that is not a plan", |world| {
            let path = path(world, "not-a-plan");
            std::fs::write(&path, "not a plan")?;
            let wrong = collide::load(world, &path).map(drop);
            std::fs::remove_file(&path)?;
            wrong
        })],
        ErrorClass::Plan => vec![("`load` of a plan for another number of ranks", |world| {
            let path = path(world, "for-three");
            shift::compile(3, |_| Ok(vec![1]))?.save(&path)?;
            let wrong = shift::load(world, &path, &[1]).map(drop);
            std::fs::remove_file(&path)?;
            wrong
        })],
        ErrorClass::ProcFailed => vec![("`World::barrier` after another rank has left", |world| {
            if world.rank() == 0 { world.barrier() } else { Ok(()) }
        })],
        ErrorClass::Other => vec![("a superstep whose body returns an error of its own", |world| {
            fails(&mut world.window::<u32>(1)?)
        })],
        // `Intern` is for bugs of Fencepost, so no call of a program returns it. `Outcome::class`
        // returns `Pending` for a request that is not complete.
        _ => Vec::new(),
    }
}

/// Returns whether the call is made on a world or a window, which have handlers. An error that a
/// body returns is not an error of a call, so no handler gets it.
fn has_handler(what: &str) -> bool {
    !["`Block::", "`Datatype::", "`Ticket::", "`run`", "a superstep whose body"]
        .iter()
        .any(|of| what.starts_with(of))
}

/// Returns the result of the call on rank 0, and the errors that the handler of its world got.
fn outcome(transport: &TransportKind, call: fn(&World) -> Result<()>) -> (Result<()>, Vec<ErrorClass>) {
    let told = ranks(2).transport(transport.clone()).check(Check::Conflicts).collect(|world| {
        let told = Rc::new(RefCell::new(Vec::new()));
        let tells = told.clone();
        world.on_error(ErrorHandler::call(move |error| tells.borrow_mut().push(error.class())));
        let result = call(world);
        Ok((result, told.take()))
    });
    told.expect("each rank returns what it got").swap_remove(0)
}

#[test]
fn each_class_is_returned_by_the_calls_that_the_docs_name() {
    let transports =
        [TransportKind::Local, TransportKind::Sim(SimConfig { seed: 3, ..SimConfig::default() })];
    let mut wrong = Vec::new();
    let mut table = String::from("| class | calls that return it |\n|---|---|\n");
    for class in ErrorClass::ALL {
        let rows = rows(class);
        assert_eq!(rows.is_empty(), [ErrorClass::Intern, ErrorClass::Pending].contains(&class), "{class}");
        for (what, call) in &rows {
            for transport in &transports {
                let (result, told) = outcome(transport, *call);
                let found = result.err();
                let told = told.iter().filter(|told| **told == class).count();
                if found.as_ref().map(Error::class) != Some(class) || told != usize::from(has_handler(what)) {
                    wrong.push(format!(
                        "{class}: {what}: {found:?}, of which the handler was told {told} times"
                    ));
                }
            }
        }
        let calls: Vec<&str> = rows.iter().map(|(what, _)| *what).collect();
        let none = match class {
            ErrorClass::Pending => "no call; `Outcome::class` of a request that is still in its set",
            _ => {
                "a bug of Fencepost, or a request that was altered on its way; no call of a program is known that returns it"
            }
        };
        let calls = if calls.is_empty() { none.to_owned() } else { calls.join("; ") };
        let _ = writeln!(table, "| `{class}` | {calls} |");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    golden::compare(env!("CARGO_MANIFEST_DIR"), "src/classes.md", &table);
}
