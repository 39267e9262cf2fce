//! Tests that take one of the waits W1 to W6 out of compiled schedules, and run these schedules
//! with the real executor over the links of `sim`.
//!
//! The executor runs a damaged schedule with one seed after another, until the missing wait shows
//! as wrong bits or as an error. With the same seeds, the undamaged schedule has the results of the
//! reference. A wait is taken out of the bound program after its schedule was verified and agreed
//! on. Only tests of this package can bypass the verifier in this way.
//!
//! # The waits that are taken away
//!
//! If ranks only exchange messages, each rank touches only its own windows, and a payload is copied
//! when it is posted. There the waits are these:
//! - W1: a frame is taken for this epoch only if its word belongs to this epoch. Memory is not
//!   touched before its owner has entered, and this needs no wait, since only the owner unpacks
//!   into its memory;
//! - W2: a rank packs before it unpacks;
//! - W3: before a rank leaves, it unpacks and releases everything that was sent to it. The rank
//!   need not wait for readers to finish, since they read a copy;
//! - W4: a frame is read before it is released, since the next frame may take its place. Send
//!   buffers need no wait;
//! - W5: `Reclaim`. Without `Reclaim` the ranks of a chain run ahead without bound, but no bits are
//!   wrong;
//! - W6: a program leaves none of its frames to the next one.
//!
//! The other tests are about memory that other ranks touch. With [`Reach::Memory`], the same links
//! carry entries, dones and the words of frames, with the delays of `sim`. Payloads and windows are
//! read and written in place by threads of one process, as on `local`. Schedules without a wait
//! cause data races in this memory on purpose. These races concern only plain elements that are
//! never moved or freed.

use crate::api::run::ranks;
use crate::kernel::waits::{Wait, take_away};
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::transport_kind::TransportKind;
use crate::supersteps::execute::lead;
use crate::supersteps::prepared::agree;
use crate::testing::support::{Dice, Reach, shown, stored, with_a_byte};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{ClassId, Delta, Id, OperationId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::ir::schedule::{Frame, Instruction, Part, Placement, Schedule};
use fencepost_planner::table::Table;
use fencepost_planner::{ErrorClass, Machine, Options, Verified, compile, verify};
use fencepost_tests_reference as reference;
use fencepost_tests_reference::Epoch;
use fencepost_tests_support::cases::cases;
use fencepost_transport::Endpoint;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LEN: usize = 8;
const RUNS: usize = 30;

fn operation(kind: Kind, by: i64, remote: Range<usize>, local: Range<usize>, window: usize) -> Operation {
    Operation {
        kind,
        window: WindowId(0),
        target: Some(Delta(by)),
        remote: Datatype::run(remote),
        local: Local::Section { window: WindowId::new(window), datatype: Datatype::run(local) },
        mode: Mode::Auto,
        site: Site { file: "program.rs".into(), line: 7, column: 1 },
    }
}

fn put(by: i64, remote: Range<usize>, local: Range<usize>) -> Vec<Operation> {
    vec![operation(Kind::Put, by, remote, local, 0)]
}

fn epoch(windows: usize, ranks: Vec<Vec<Operation>>) -> Patterns {
    let pattern = |operations: Vec<Operation>| Pattern {
        operations: operations.into_iter().collect::<Table<OperationId, _>>(),
    };
    Patterns {
        name: "waits".into(),
        windows: (0..windows).map(|_| ElementType::scalar(Scalar::U64)).collect(),
        shape: vec![ranks.len() as u32],
        class_of: (0..ranks.len()).map(Id::new).collect(),
        classes: ranks.into_iter().map(pattern).collect(),
        order: Order::Canonical,
        sync: Sync::Fence,
    }
}

/// A compiled superstep, and the damaged schedule that is run instead, if there is one.
struct Superstep {
    patterns: Patterns,
    schedule: Arc<Verified<Schedule>>,
    damaged: Option<Schedule>,
}

impl Superstep {
    fn new(patterns: Patterns, reach: Reach) -> Self {
        let (placement, mode) = match reach {
            Reach::Messages | Reach::SparseMessages | Reach::ReducedMessages => {
                (Placement::Apart, Mode::Aggregated)
            }
            Reach::Memory | Reach::SparseMemory | Reach::ReducedMemory => (Placement::Together, Mode::Direct),
        };
        Self::with(patterns, placement, mode)
    }

    fn with(patterns: Patterns, placement: Placement, mode: Mode) -> Self {
        let options = Options { mode, ..Options::default() };
        let schedule = compile(&patterns, placement, &Machine::default(), &options).unwrap();
        Self { patterns, schedule: Arc::new(schedule), damaged: None }
    }

    /// Returns this superstep with a schedule that `damage` has changed. Checks that the verifier
    /// refuses that schedule with the error `name`.
    fn damaged(&self, name: &str, damage: impl Fn(usize, &mut Vec<Instruction>)) -> Self {
        let mut schedule = self.schedule.get().clone();
        for (rank, class) in schedule.class_of.clone().into_iter().enumerate() {
            if schedule.class_of[..rank].contains(&class) {
                continue; // all ranks of a class share one program
            }
            damage(rank, &mut schedule.classes[class].instructions);
        }
        assert!(schedule != *self.schedule.get(), "nothing was taken away");
        let refused = verify(&self.patterns, schedule.clone()).map(|_| ()).unwrap_err();
        assert_eq!(refused.name(), name, "{refused}");
        Self { patterns: self.patterns.clone(), schedule: self.schedule.clone(), damaged: Some(schedule) }
    }

    /// Returns the same superstep, synchronised by posts and starts.
    fn by_posts(&self) -> Self {
        let of = |schedule: &Schedule| Schedule { sync: Sync::Pscw, ..schedule.clone() };
        let patterns = Patterns { sync: Sync::Pscw, ..self.patterns.clone() };
        let schedule = Arc::new(verify(&patterns, of(self.schedule.get())).unwrap());
        Self { patterns, schedule, damaged: self.damaged.as_ref().map(of) }
    }

    /// Returns this superstep with a schedule that lacks the instructions that `which` selects.
    fn without(&self, name: &str, which: impl Fn(usize, &Instruction) -> bool) -> Self {
        self.damaged(name, |rank, code| code.retain(|instruction| !which(rank, instruction)))
    }
}

fn call() -> Call {
    Call::named(1, "waits")
}

/// Runs the supersteps in turn, thirty runs in all, and returns the largest number of runs by which
/// a rank was ahead of the next rank.
///
/// A seed determines all choices. Compares the elements of each rank after each superstep with the
/// result of the reference.
fn run(supersteps: &[&Superstep], reach: Reach, seed: u64) -> Result<usize, String> {
    let size = supersteps[0].patterns.class_of.len();
    let done: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
    let left: Vec<(Vec<Vec<u64>>, usize)> = ranks(size)
        .transport(reach.transport(seed))
        .collect(|world| {
            let (rank, mut dice) = (world.rank(), Dice::new(seed, world.rank()));
            let mut u = world.window::<u64>(LEN)?;
            let mut ready = Vec::new();
            for superstep in supersteps {
                let one = agree(world.core(), Ok(superstep.schedule.clone()), &call())?;
                superstep.damaged.iter().try_for_each(|damaged| one.damage(damaged))?;
                ready.push(one);
            }
            let (mut left, mut lead) = (Vec::new(), 0);
            for run in 0..RUNS {
                dice.linger();
                (0..LEN).for_each(|at| u[at] = stored(rank, run, at));
                dice.linger();
                ready[run % ready.len()].replay(&[&**u.core()], &call())?;
                left.push(u.to_vec());
                done[rank].store(run + 1, Ordering::SeqCst);
                let next = done.get(rank + 1).map_or(run, |next| next.load(Ordering::SeqCst));
                lead = lead.max((run + 1).saturating_sub(next));
            }
            world.barrier()?;
            Ok((left, lead))
        })
        .map_err(|error| error.to_string())?;
    for run in 0..RUNS {
        let patterns = &supersteps[run % supersteps.len()].patterns;
        let bytes = |rank| (0..LEN).flat_map(|at| stored(rank, run, at).to_ne_bytes()).collect::<Vec<u8>>();
        let mut world = reference::World {
            element: patterns.windows.clone(),
            memory: (0..size).map(|rank| [bytes(rank)].into_iter().collect()).collect(),
        };
        let epoch = Epoch {
            patterns: patterns.class_of.iter().map(|class| patterns.classes[*class].clone()).collect(),
            sources: vec![reference::Buffers::new(); size],
        };
        reference::run(&mut world, &epoch).unwrap();
        for (rank, (left, _)) in left.iter().enumerate() {
            let expected: Vec<u64> = world.memory[rank][WindowId(0)]
                .chunks_exact(8)
                .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
                .collect();
            if left[run] != expected {
                return Err(format!("run {run}, rank {rank}: {:?} is not {expected:?}", left[run]));
            }
        }
    }
    Ok(left.iter().map(|(_, lead)| *lead).max().unwrap_or(0))
}

/// Finds a seed with which `damaged` fails. With that seed and all seeds before it, `good` must
/// succeed. Checks this with fences, and with posts and starts.
#[track_caller]
fn caught(good: &Superstep, damaged: &Superstep, reach: Reach) -> String {
    let caught = |good: &Superstep, damaged: &Superstep| {
        shown(|seed| run(&[good], reach, seed).map(drop), |seed| run(&[damaged], reach, seed).map(drop))
    };
    let by_posts = caught(&good.by_posts(), &damaged.by_posts());
    let by_fences = caught(good, damaged);
    assert_eq!(by_posts.contains("is not"), by_fences.contains("is not"), "{by_posts} as {by_fences}");
    by_fences
}

fn entry(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Await { frame: Frame::Entry, .. })
}

fn done(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Await { frame: Frame::Done, .. })
}

fn takes(instruction: &Instruction) -> bool {
    use Instruction::{Await, Release, Unpack};
    matches!(instruction, Await { frame: Frame::Data { .. }, .. } | Unpack { .. } | Release { .. })
}

/// Returns a pattern in which rank 0 puts to rank 1.
fn one_put() -> Patterns {
    epoch(1, vec![put(1, 4..6, 0..2), vec![]])
}

/// Returns a pattern in which each rank of a chain puts to the next.
fn chain() -> Patterns {
    epoch(1, vec![put(1, 4..6, 0..2), put(1, 4..6, 0..2), put(1, 4..6, 0..2), vec![]])
}

/// Returns a pattern in which each of two ranks puts to the other.
fn exchange() -> Patterns {
    epoch(1, vec![put(1, 4..6, 0..2), put(-1, 4..6, 0..2)])
}

#[test]
fn w1_memory_is_not_touched_before_its_rank_entered() {
    let good = Superstep::new(one_put(), Reach::Memory);
    caught(&good, &good.without("BeforeEntry", |_, i| entry(i)), Reach::Memory);
    // The fault also shows if both sides leave out the entry.
    let silent = |_, i: &Instruction| entry(i) || matches!(i, Instruction::Expose { .. });
    caught(&good, &good.without("BeforeEntry", silent), Reach::Memory);
}

/// Entries and dones have no payload.
#[test]
fn an_entry_or_a_done_that_has_a_byte_is_refused() {
    let by_fences = Superstep::new(one_put(), Reach::Memory);
    for superstep in [&by_fences, &by_fences.by_posts()] {
        for of in [kind::ENTRY, kind::DONE] {
            let run = ranks(2).transport(with_a_byte(of, Reach::Memory)).run(|world| {
                let u = world.window::<u64>(LEN)?;
                let ready = agree(world.core(), Ok(superstep.schedule.clone()), &call())?;
                ready.replay(&[&**u.core()], &call())?;
                world.barrier()
            });
            let error = run.expect_err("the frame is too long");
            assert_eq!(error.class(), ErrorClass::RmaSync, "{of}: {error}");
            let names = (0..2).all(|rank| error.message().contains(&format!("rank {rank}")));
            assert!(names, "{of}: {error}");
        }
    }
}

/// Runs a superstep on three ranks after one rank has swapped its windows, and checks the error of
/// each rank.
fn one_swaps(reach: Reach, sync: Sync, wait: Option<Wait>, seed: u64) -> Result<(), String> {
    let to = |rank: i64, by: i64, at| operation(Kind::Put, (rank + by) % 3 - rank, at..at + 2, 0..2, 1);
    let of = |rank| vec![to(rank, 1, 2), to(rank, 2, 4)];
    let superstep = Superstep::new(Patterns { sync, ..epoch(2, vec![of(0), of(1), of(2)]) }, reach);
    type Told = (Option<(ErrorClass, String)>, Vec<u64>);
    let told: Vec<Told> = ranks(3)
        .transport(reach.transport(seed))
        .collect(|world| {
            let mut dice = Dice::new(seed, world.rank());
            let (mut u, mut v) = (world.window::<u64>(LEN)?, world.window::<u64>(LEN)?);
            let ready = agree(world.core(), Ok(superstep.schedule.clone()), &call())?;
            take_away(wait);
            for _ in 0..3 {
                dice.linger();
                ready.replay(&[&**u.core(), &**v.core()], &call())?;
            }
            u.fill(7);
            v.fill(8);
            if world.rank() == 1 {
                std::mem::swap(&mut u, &mut v);
            }
            dice.linger();
            let result = ready.replay(&[&**u.core(), &**v.core()], &call());
            let elements = u.iter().chain(v.iter()).copied().collect();
            Ok((result.err().map(|error| (error.class(), error.to_string())), elements))
        })
        .map_err(|error| error.to_string())?;
    for (rank, (error, elements)) in told.into_iter().enumerate() {
        let Some((class, text)) = error else {
            return Err(format!("rank {rank} is told nothing: {elements:?}"));
        };
        let both = text.contains("of window 0, 1") && text.contains("of window 1, 0");
        if class != ErrorClass::RmaSync || !both {
            return Err(format!("rank {rank}: {text}"));
        }
    }
    Ok(())
}

#[test]
fn w1_a_frame_of_another_epoch_is_not_taken_for_one_of_this() {
    for sync in [Sync::Fence, Sync::Pscw] {
        for reach in [Reach::Messages, Reach::Memory] {
            let with = |wait, seed| one_swaps(reach, sync, wait, seed);
            let wrong = shown(|seed| with(None, seed), |seed| with(Some(Wait::Word), seed));
            assert!(wrong.contains("told nothing"), "{wrong}");
        }
    }
}

/// Returns a superstep in which rank 1 reads elements of rank 0 that rank 2 overwrites. Both ranks
/// access the memory of rank 0 directly.
///
/// The planner would pack the elements instead, but this schedule is sound.
fn read_and_overwritten_directly() -> Superstep {
    let get = vec![operation(Kind::Get, -1, 0..2, 4..6, 0)];
    let patterns = epoch(1, vec![vec![], get, put(-2, 0..2, 0..2)]);
    let packed = Superstep::new(patterns.clone(), Reach::Memory);
    let mut schedule = packed.schedule.get().clone();
    let part = |owner, elements| Part::Window {
        owner: Delta(owner),
        window: WindowId(0),
        datatype: Datatype::run(elements),
    };
    let (op, element) = (None, ElementType::scalar(Scalar::U64));
    let exposes = |by| {
        let peer = Delta(by);
        [Instruction::Expose { peer }, Instruction::Await { peer, frame: Frame::Done }]
    };
    let copies = |by, from, to| {
        let peer = Delta(by);
        vec![
            Instruction::Await { peer, frame: Frame::Entry },
            Instruction::Copy { from, to, op, element },
            Instruction::Done { peer },
        ]
    };
    let programs = [
        [exposes(1), exposes(2)].concat(),
        copies(-1, part(-1, 0..2), part(0, 4..6)),
        copies(-2, part(0, 0..2), part(-2, 0..2)),
    ];
    for (rank, instructions) in programs.into_iter().enumerate() {
        let program = &mut schedule.classes[schedule.class_of[rank]];
        (program.buffers, program.instructions) = (Table::new(), instructions);
    }
    let schedule = Arc::new(verify(&patterns, schedule).unwrap());
    Superstep { schedule, ..packed }
}

#[test]
fn w2_elements_are_not_written_before_they_were_read() {
    // Rank 1 sends elements that a put of rank 0 overwrites. In the damaged schedule, rank 1 packs
    // these elements after it has unpacked the put.
    let good = Superstep::new(epoch(1, vec![put(1, 0..2, 0..2), put(-1, 4..6, 0..2)]), Reach::Messages);
    let late = good.damaged("WrittenBeforeRead", |rank, code| {
        let sends = |i: &Instruction| matches!(i, Instruction::Pack { .. } | Instruction::Send { .. });
        code.sort_by_key(|i| rank == 1 && sends(i));
    });
    let wrong = caught(&good, &late, Reach::Messages);
    assert!(wrong.contains("is not"), "{wrong}");

    // Rank 1 reads elements of rank 0 directly, and rank 2 puts to the same elements. In the
    // damaged schedule, rank 0 awaits the done of rank 1 only after it has exposed the elements to
    // rank 2.
    let good = read_and_overwritten_directly();
    let late = good.damaged("RacingCopy", |rank, code| code.sort_by_key(|i| rank == 0 && done(i)));
    let wrong = caught(&good, &late, Reach::Memory);
    assert!(wrong.contains("is not"), "{wrong}");
}

#[test]
fn w3_a_rank_does_not_leave_while_others_touch_its_windows() {
    let good = Superstep::new(one_put(), Reach::Memory);
    caught(&good, &good.without("LeftEarly", |_, i| done(i)), Reach::Memory);
}

#[test]
fn w3_a_rank_does_not_leave_before_what_was_sent_to_it_is_applied_and_released() {
    let good = Superstep::new(one_put(), Reach::Messages);
    let wrong = caught(
        &good,
        &good.without("Dropped", |_, i| matches!(i, Instruction::Unpack { .. })),
        Reach::Messages,
    );
    assert!(wrong.contains("is not"), "{wrong}");
    let kept = good.without("LeftEarly", |_, i| matches!(i, Instruction::Release { .. }));
    let wrong = caught(&good, &kept, Reach::Messages);
    assert!(wrong.contains("RMA_SYNC"), "{wrong}");
}

#[test]
fn w4_a_buffer_is_not_written_before_its_reader_released_it() {
    // Payloads are read where they were packed, and each rank's entry is a frame of its own.
    let good = Superstep::with(exchange(), Placement::Together, Mode::Aggregated);
    let mut one = good.schedule.get().clone();
    for program in one.classes.values_mut() {
        program.buffers.values_mut().for_each(|buffer| buffer.copies = 1);
    }
    assert_eq!(verify(&good.patterns, one.clone()).map(drop).unwrap_err().name(), "BufferReused");
    let one = Superstep {
        damaged: Some(one),
        ..Superstep::with(exchange(), Placement::Together, Mode::Aggregated)
    };
    let wrong = caught(&good, &one, Reach::Memory);
    assert!(wrong.contains("is not"), "{wrong}");
}

#[test]
fn w4_a_frame_is_not_released_before_it_is_read() {
    let good = Superstep::new(one_put(), Reach::Messages);
    let early = good.damaged("NotOpen", |_, code| {
        let unpack = |i: &Instruction| matches!(i, Instruction::Unpack { .. });
        code.sort_by_key(unpack);
    });
    caught(&good, &early, Reach::Messages);
}

#[test]
fn w5_a_shift_along_a_chain_does_not_run_ahead() {
    let runs_ahead = |superstep: &Superstep| {
        superstep.without("RunsAhead", |_, i| matches!(i, Instruction::Reclaim { .. }))
    };
    // With messages only, no bit can be wrong. The fault shows in an unbounded lead.
    let good = Superstep::new(chain(), Reach::Messages);
    let most = lead(16);
    let bounded = |superstep: &Superstep, seed| match run(&[superstep], Reach::Messages, seed)? {
        lead if lead <= most + 1 => Ok(()),
        lead => Err(format!("a lead of {lead} where {most} is the most")),
    };
    let ahead = runs_ahead(&good);
    for (good, ahead) in [(good.by_posts(), ahead.by_posts()), (good, ahead)] {
        let wrong = shown(|seed| bounded(&good, seed), |seed| bounded(&ahead, seed));
        assert!(wrong.contains("a lead"), "{wrong}");
    }

    let good = Superstep::with(chain(), Placement::Together, Mode::Aggregated);
    let wrong = caught(&good, &runs_ahead(&good), Reach::Memory);
    assert!(wrong.contains("is not"), "{wrong}");
}

#[test]
fn w5_a_rank_is_ahead_of_one_that_makes_no_call_without_waiting_for_it() {
    let good = Superstep::new(one_put(), Reach::Messages);
    let (done, most, clock) = (AtomicUsize::new(0), lead(16), Instant::now());
    let ended = ranks(2).transport(Reach::Messages.transport(1)).collect(|world| {
        let u = world.window::<u64>(LEN)?;
        let one = agree(world.core(), Ok(good.schedule.clone()), &call())?;
        while world.rank() == 1 && done.load(Ordering::SeqCst) < most {
            assert!(clock.elapsed() < Duration::from_secs(60), "rank 0 waits for a rank that works");
            std::thread::yield_now();
        }
        for run in 0..2 * most {
            one.replay(&[&**u.core()], &call())?;
            if world.rank() == 0 {
                done.store(run + 1, Ordering::SeqCst);
            }
        }
        Ok(())
    });
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn over_tcp_a_run_leaves_nothing_unsent() {
    for patterns in [one_put(), exchange()] {
        let good = Superstep::new(patterns, Reach::Messages);
        let held = ranks(2).transport(TransportKind::TcpThreads).collect(|world| {
            let u = world.window::<u64>(LEN)?;
            let one = agree(world.core(), Ok(good.schedule.clone()), &call())?;
            let mut held = 0;
            for _ in 0..RUNS {
                one.replay(&[&**u.core()], &call())?;
                let endpoint = world.core().endpoint.borrow();
                let Endpoint::Tcp(end) = &*endpoint else { panic!("another transport") };
                held += usize::from(end.holds_back());
            }
            Ok(held)
        });
        assert_eq!(held.map_err(|error| error.to_string()), Ok(vec![0, 0]), "runs that held something back");
    }
}

#[test]
fn w6_no_wait_is_left_to_the_superstep_before_or_after() {
    let good = Superstep::new(one_put(), Reach::Memory);
    // Leaves out entries. The wrong argument for this is: "The rank has entered the last superstep,
    // so it will have entered this one."
    let begin = |_, i: &Instruction| entry(i) || matches!(i, Instruction::Expose { .. });
    // Leaves out dones. The wrong argument for this is: "The rank's next entry will show that it is
    // done."
    let end = |_, i: &Instruction| done(i) || matches!(i, Instruction::Done { .. });
    let other = Superstep::new(epoch(1, vec![put(1, 2..4, 0..2), vec![]]), Reach::Memory);
    for damaged in [good.without("BeforeEntry", begin), good.without("LeftEarly", end)] {
        let in_turn =
            |one: &Superstep, other: &Superstep, seed| run(&[one, other], Reach::Memory, seed).map(drop);
        let wrong = shown(|seed| in_turn(&good, &other, seed), |seed| in_turn(&damaged, &other, seed));
        assert!(wrong.contains("is not"), "{wrong}");
        let (good, damaged, other) = (good.by_posts(), damaged.by_posts(), other.by_posts());
        let wrong = shown(|seed| in_turn(&good, &other, seed), |seed| in_turn(&damaged, &other, seed));
        assert!(wrong.contains("is not"), "{wrong}");
    }
}

#[test]
fn w6_no_frame_is_left_to_the_superstep_after() {
    // Takes no frames. The wrong argument for this is: "The next superstep awaits frames of the
    // same rank anyway."
    let good = Superstep::new(one_put(), Reach::Messages);
    let other = Superstep::new(epoch(1, vec![put(1, 2..4, 0..2), vec![]]), Reach::Messages);
    let left = good.without("WrongCount", |_, i| takes(i));
    let in_turn =
        |one: &Superstep, other: &Superstep, seed| run(&[one, other], Reach::Messages, seed).map(drop);
    // With posts and starts, the plan has a port of its own, and the frames that are left on that
    // port obstruct nothing. Only the missing elements show the fault.
    let by_posts = (good.by_posts(), left.by_posts(), other.by_posts(), "is not");
    for (good, left, other, told) in [by_posts, (good, left, other, "RMA_SYNC")] {
        let wrong = shown(|seed| in_turn(&good, &other, seed), |seed| in_turn(&left, &other, seed));
        assert!(wrong.contains(told), "{wrong}");
    }
}

/// Runs the undamaged schedules of the tests above, and more schedules, over both kinds of links.
#[test]
fn whole_schedules_do_what_the_reference_does() {
    let everywhere = || {
        let each = |rank: i64| {
            [-1, 1]
                .into_iter()
                .filter(|by| (0..3).contains(&(rank + by)))
                .flat_map(|by| put(by, if by < 0 { 4..6 } else { 6..8 }, 0..2))
                .chain((rank > 0).then(|| operation(Kind::Get, -1, 0..1, 2..3, 0)))
                .collect()
        };
        epoch(1, vec![each(0), each(1), each(2)])
    };
    for seed in 0..cases(8, 30) {
        for mode in Mode::ALL {
            for (reach, placement) in
                [(Reach::Messages, Placement::Apart), (Reach::Memory, Placement::Together)]
            {
                let all = [one_put(), exchange()].map(|patterns| Superstep::with(patterns, placement, mode));
                assert_eq!(
                    run(&[&all[0], &all[1]], reach, seed).map(drop),
                    Ok(()),
                    "{mode}, {reach:?}, seed {seed}"
                );
                let mixed = [all[0].by_posts(), all[1].by_posts()];
                assert_eq!(
                    run(&[&mixed[0], &all[1], &mixed[1]], reach, seed).map(drop),
                    Ok(()),
                    "{mode}, {reach:?}, seed {seed}"
                );
                let wide = Superstep::with(everywhere(), placement, mode);
                for wide in [wide.by_posts(), wide] {
                    assert_eq!(
                        run(&[&wide], reach, seed).map(drop),
                        Ok(()),
                        "{mode}, {reach:?}, seed {seed}"
                    );
                }
            }
        }
    }
}

/// Checks that the schedules contain the instructions that the tests above take out: direct copies
/// if memory is reached, and packed copies otherwise.
#[test]
fn the_schedules_are_of_the_kind_that_is_said() {
    let copies = |superstep: &Superstep| {
        superstep.schedule.classes[ClassId(0)]
            .instructions
            .iter()
            .any(|i| matches!(i, Instruction::Copy { .. }))
    };
    assert!(copies(&Superstep::new(one_put(), Reach::Memory)));
    assert!(!copies(&Superstep::with(one_put(), Placement::Together, Mode::Aggregated)));
    assert!(!copies(&Superstep::new(one_put(), Reach::Messages)));
}

#[test]
fn the_model_takes_as_short_what_every_transport_copies() {
    assert_eq!(fencepost_planner::machine::SHORT, fencepost_transport::COPIED as u64);
}
