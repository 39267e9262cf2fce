//! Generated programs. Some order of their epochs explains the values that they find and leave (18
//! to 21).

use fencepost::prelude::*;
use fencepost::{Lock, LockAll, Locked, TransportKind, ValueAt, World, ranks};
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Action, LockCall, explains};
use fencepost_tests_support::cases::cases;
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::transports::sim;

/// One call of a rank. A lock is named by its position among the locks of the rank.
#[derive(Clone, Debug)]
enum Step {
    Lock {
        window: usize,
        target: usize,
        kind: LockType,
    },
    LockAll {
        window: usize,
    },
    Act {
        lock: usize,
        target: usize,
        elements: Vec<i64>,
        action: Action,
        bytes: Vec<u8>,
    },
    Flush {
        lock: usize,
        target: usize,
        local: bool,
    },
    Unlock {
        lock: usize,
        drops: bool,
    },
    /// Reads elements of its own part.
    Local {
        window: usize,
        elements: Vec<i64>,
    },
    /// Reads elements of its own part, and then stores into them.
    LocalMut {
        window: usize,
        elements: Vec<i64>,
        bytes: Vec<u8>,
    },
    Meet,
}

/// The operations of a test on windows of one element type.
trait Kind: Element + Send + Sync {
    fn element() -> ElementType;
    fn value(dice: &mut Random) -> Self;
}

macro_rules! kinds {
    ($($ty:ty: $element:expr, |$dice:ident| $value:expr;)*) => {$(
        impl Kind for $ty {
            fn element() -> ElementType {
                $element
            }
            fn value($dice: &mut Random) -> Self {
                $value
            }
        }
    )*};
}
use fencepost_planner::element::{ElementKind, Scalar};
kinds! {
    i32: ElementType::scalar(Scalar::I32), |dice| dice.within(-3..4) as i32;
    u8: ElementType::scalar(Scalar::U8), |dice| dice.bits() as u8;
    f32: ElementType::scalar(Scalar::F32), |dice| dice.one_of(&[0.1, -0.0, 0.0, 1e30, 3.5, f32::NAN, -7.25]);
    i64: ElementType::scalar(Scalar::I64), |dice| dice.bits() as i64 >> dice.below(64);
    ValueAt<f64, i64>: ElementType { size: 16, kind: ElementKind::ValueAt(Scalar::F64, Scalar::I64) },
        |dice| ValueAt { value: dice.below(3) as f64, index: dice.within(-2..3) };
    [u8; 3]: ElementType::opaque(3), |dice| [dice.bits() as u8; 3];
}

fn bytes_of<T: Element>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn elements_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn act<T: Kind>(dice: &mut Random, lock: usize, target: usize, len: usize) -> Step {
    let count = 1 + dice.below(2);
    let elements: Vec<i64> = (0..count).map(|_| dice.below(len) as i64).collect();
    let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.takes(T::element())).collect();
    let op = dice.one_of(&ops);
    let mut values = || bytes_of(&(0..count).map(|_| T::value(dice)).collect::<Vec<T>>());
    let (given, expected) = (values(), values());
    let (action, bytes) = match dice.below(6) {
        0 => (Action::Put, given),
        1 => (Action::Get, Vec::new()),
        2 | 3 => (Action::Accumulate(op), given),
        4 => (Action::Fetch(if dice.once_in(3) { Op::NoOp } else { op }), given),
        // These operations have one element only.
        _ => {
            let size = size_of::<T>();
            let elements = elements[..1].to_vec();
            let action = Action::CompareAndSwap(expected[..size].to_vec());
            return Step::Act { lock, target, elements, action, bytes: given[..size].to_vec() };
        }
    };
    Step::Act { lock, target, elements, action, bytes }
}

/// Draws the steps of one rank between two meetings.
fn segment<T: Kind>(
    dice: &mut Random,
    steps: &mut Vec<Step>,
    locks: &mut usize,
    rank: usize,
    size: usize,
    windows: usize,
) {
    const LEN: usize = 3;
    let targets = size.min(2);
    match dice.below(8) {
        0 => {
            let window = dice.below(windows);
            let elements = vec![dice.below(LEN) as i64; 1 + dice.below(2)];
            steps.push(Step::Local { window, elements });
        }
        1 => {
            let (window, elements) = (dice.below(windows), vec![dice.below(LEN) as i64]);
            let bytes = bytes_of(&[T::value(dice)]);
            steps.push(Step::LocalMut { window, elements, bytes });
        }
        2 => {
            let lock = *locks;
            *locks += 1;
            steps.push(Step::LockAll { window: dice.below(windows) });
            for _ in 0..dice.below(4) {
                let target = dice.below(targets);
                match dice.below(3) {
                    0 => steps.push(Step::Flush { lock, target, local: dice.once_in(2) }),
                    _ => steps.push(act::<T>(dice, lock, target, LEN)),
                }
            }
            steps.push(Step::Unlock { lock, drops: dice.once_in(4) });
        }
        _ => {
            // Draws one lock, which may be flushed, or two locks without flushes. Ranks that hold
            // two parts may wait for each other in a cycle.
            let several = dice.once_in(3);
            let mut open: Vec<(usize, usize, usize)> = Vec::new();
            for _ in 0..1 + usize::from(several) {
                let (window, target) = (dice.below(windows), dice.below(targets));
                if open.iter().any(|&(_, w, t)| (w, t) == (window, target)) {
                    continue;
                }
                let kind = if dice.once_in(3) { LockType::Exclusive } else { LockType::Shared };
                open.push((*locks, window, target));
                *locks += 1;
                steps.push(Step::Lock { window, target, kind });
            }
            for _ in 0..dice.below(5) {
                let (lock, _, target) = dice.one_of(&open);
                if !several && dice.once_in(4) {
                    steps.push(Step::Flush { lock, target, local: dice.once_in(2) });
                } else {
                    steps.push(act::<T>(dice, lock, target, LEN));
                }
            }
            while !open.is_empty() {
                let (lock, ..) = open.swap_remove(dice.below(open.len()));
                steps.push(Step::Unlock { lock, drops: dice.once_in(4) });
            }
        }
    }
    let _ = rank;
}

fn programs<T: Kind>(dice: &mut Random, size: usize, windows: usize) -> Vec<Vec<Step>> {
    let mut programs = vec![Vec::new(); size];
    let mut locks = vec![0; size];
    for _ in 0..1 + dice.below(2) {
        for rank in 0..size {
            for _ in 0..dice.below(3) {
                segment::<T>(dice, &mut programs[rank], &mut locks[rank], rank, size, windows);
            }
        }
        if dice.once_in(3) {
            programs.iter_mut().for_each(|program| program.push(Step::Meet));
        }
    }
    programs
}

enum Held<'w, T: Element> {
    One(Lock<'w, T>),
    All(LockAll<'w, T>),
}

impl<T: Element> Held<'_, T> {
    fn on<R>(&self, target: usize, act: impl FnOnce(&Locked<'_, T>) -> Result<R>) -> Result<R> {
        match self {
            Held::One(lock) => act(lock),
            Held::All(all) => act(&all.on(target)?),
        }
    }
}

/// The values that each step found, and the parts of a rank at the end.
type Results = (Vec<Vec<u8>>, Vec<Vec<u8>>);

/// Plays the steps of this rank.
fn play<T: Kind>(world: &World, windows: usize, first: &reference::World, steps: &[Step]) -> Result<Results> {
    let mut made = Vec::new();
    for window in 0..windows {
        let bytes = &first.memory[world.rank()][WindowId::new(window)];
        let mut u = world.window::<T>(bytes.len() / size_of::<T>())?;
        u.copy_from_slice(&elements_of::<T>(bytes));
        made.push(u.into_locked()?);
    }
    let mut found = vec![Vec::new(); steps.len()];
    {
        let mut held: Vec<Option<Held<'_, T>>> = Vec::new();
        let mut tickets: Vec<(usize, usize, Ticket<T>)> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let datatype = |elements: &[i64]| Datatype::elements(elements.to_vec()).unwrap();
            match step {
                Step::Lock { window, target, kind } => {
                    held.push(Some(Held::One(made[*window].lock(*target, *kind)?)))
                }
                Step::LockAll { window } => held.push(Some(Held::All(made[*window].lock_all()?))),
                Step::Act { lock, target, elements, action, bytes } => {
                    let values = elements_of::<T>(bytes);
                    let one = elements[0] as usize;
                    let ticket = held[*lock].as_ref().unwrap().on(*target, |on| {
                        let single = elements.len() == 1;
                        Ok(match action {
                            Action::Put if single => on.put([values[0]], one).map(|()| None)?,
                            Action::Put => on.put(&values, datatype(elements)).map(|()| None)?,
                            Action::Get => Some(on.get(datatype(elements))?),
                            Action::Accumulate(op) if single => {
                                on.accumulate([values[0]], *op, one).map(|()| None)?
                            }
                            Action::Accumulate(op) => {
                                on.accumulate(&values, *op, datatype(elements)).map(|()| None)?
                            }
                            Action::Fetch(op) if single => Some(on.fetch_and(*op, values[0], one)?),
                            Action::Fetch(op) => Some(on.get_accumulate(&values, *op, datatype(elements))?),
                            Action::CompareAndSwap(expected) => {
                                Some(on.compare_and_swap(elements_of::<T>(expected)[0], values[0], one)?)
                            }
                        })
                    })?;
                    tickets.extend(ticket.map(|ticket| (at, *lock, ticket)));
                }
                Step::Flush { lock, target, local } => {
                    held[*lock]
                        .as_ref()
                        .unwrap()
                        .on(*target, |on| if *local { on.flush_local() } else { on.flush() })?;
                }
                Step::Unlock { lock, drops } => {
                    match held[*lock].take().unwrap() {
                        Held::One(lock) if !drops => lock.unlock()?,
                        Held::All(all) if !drops => all.unlock()?,
                        other => drop(other),
                    }
                    for (at, of, ticket) in &tickets {
                        if of == lock {
                            found[*at] = bytes_of(&ticket.take()?);
                        }
                    }
                }
                Step::Local { window, elements } => {
                    found[at] = made[*window].local(|part| {
                        let each = elements.iter().map(|&at| part.get(at as usize));
                        Ok(bytes_of(&each.collect::<Result<Vec<T>>>()?))
                    })?;
                }
                Step::LocalMut { window, elements, bytes } => {
                    found[at] = made[*window].local_mut(|part| {
                        let mut seen = Vec::new();
                        for (&at, value) in elements.iter().zip(elements_of::<T>(bytes)) {
                            seen.push(std::mem::replace(&mut part[at as usize], value));
                        }
                        Ok(bytes_of(&seen))
                    })?;
                }
                Step::Meet => world.barrier()?,
            }
        }
    }
    let mut last = Vec::new();
    for u in made {
        last.push(bytes_of(&u.into_window()?));
    }
    Ok((found, last))
}

/// Returns the same calls in the form of the reference.
fn calls(steps: &[Step], found: &[Vec<u8>], rank: usize, size: usize) -> Vec<LockCall> {
    let mut calls: Vec<LockCall> = Vec::new();
    // For each lock and each target: the position in `calls` of the call that locks the target.
    let mut locks: Vec<Vec<Option<usize>>> = Vec::new();
    let lock = |calls: &mut Vec<LockCall>, window: usize, target: usize, kind: LockType| {
        calls.push(LockCall::Lock { window: WindowId::new(window), target: Rank::new(target), kind });
        calls.len() - 1
    };
    let visit = |calls: &mut Vec<LockCall>,
                 lock,
                 elements: &[i64],
                 action: Action,
                 bytes: Vec<u8>,
                 found: Vec<u8>| {
        calls.push(LockCall::Act {
            lock,
            elements: Datatype::elements(elements.to_vec()).unwrap(),
            action,
            bytes,
            found,
        });
    };
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Lock { window, target, kind } => {
                let call = lock(&mut calls, *window, *target, *kind);
                locks.push((0..size).map(|rank| (rank == *target).then_some(call)).collect());
            }
            Step::LockAll { window } => {
                let each = (0..size).map(|target| Some(lock(&mut calls, *window, target, LockType::Shared)));
                locks.push(each.collect());
            }
            Step::Act { lock, target, elements, action, bytes } => {
                let call = locks[*lock][*target].unwrap();
                visit(&mut calls, call, elements, action.clone(), bytes.clone(), found[at].clone());
            }
            Step::Flush { local: true, .. } => {}
            Step::Flush { lock, target, .. } => {
                calls.push(LockCall::Flush { lock: locks[*lock][*target].unwrap() })
            }
            Step::Unlock { lock, .. } => {
                calls.extend(locks[*lock].iter().flatten().map(|&lock| LockCall::Unlock { lock }));
            }
            Step::Local { window, elements } => {
                let lock = lock(&mut calls, *window, rank, LockType::Shared);
                visit(&mut calls, lock, elements, Action::Get, Vec::new(), found[at].clone());
                calls.push(LockCall::Unlock { lock });
            }
            Step::LocalMut { window, elements, bytes } => {
                let lock = lock(&mut calls, *window, rank, LockType::Exclusive);
                visit(&mut calls, lock, elements, Action::Get, Vec::new(), found[at].clone());
                visit(&mut calls, lock, elements, Action::Put, bytes.clone(), Vec::new());
                calls.push(LockCall::Unlock { lock });
            }
            Step::Meet => calls.push(LockCall::Meet),
        }
    }
    calls
}

/// Plays a generated program. Returns whether the search for an order was completed.
fn one<T: Kind>(kind: &TransportKind, seed: u64) -> bool {
    let mut dice = Random::new(seed);
    let (size, windows) = (2 + dice.below(3), 1 + dice.below(2));
    let part = |dice: &mut Random| bytes_of(&[(); 3].map(|()| T::value(dice)));
    let memory = (0..size).map(|_| (0..windows).map(|_| part(&mut dice)).collect()).collect();
    let before = reference::World { element: (0..windows).map(|_| T::element()).collect(), memory };
    let programs = programs::<T>(&mut dice, size, windows);
    let results = ranks(size)
        .transport(kind.clone())
        .collect(|world| play::<T>(world, windows, &before, &programs[world.rank()]));
    let results = results.unwrap_or_else(|error| panic!("{kind:?}, seed {seed}: {error}\n{programs:#?}"));
    let mut after = before.clone();
    let mut told = Vec::new();
    for (rank, (found, last)) in results.into_iter().enumerate() {
        told.push(calls(&programs[rank], &found, rank, size));
        after.memory[rank] = last.into_iter().collect();
    }
    match explains(&before, &told, &after) {
        Ok(None) => true,
        Ok(Some(unexplained)) => {
            panic!("{kind:?}, seed {seed}: {unexplained:?}\n{told:#?}\nbefore {before:?}\nafter {after:?}")
        }
        Err(error) if error.class() == ErrorClass::Arg => false,
        Err(error) => panic!("{kind:?}, seed {seed}: {error}"),
    }
}

fn every(kind: &TransportKind, seeds: u64) {
    let mut explained = 0;
    for seed in 0..seeds {
        explained += u64::from(match seed % 6 {
            0 => one::<i32>(kind, seed),
            1 => one::<u8>(kind, seed),
            2 => one::<f32>(kind, seed),
            3 => one::<i64>(kind, seed),
            4 => one::<ValueAt<f64, i64>>(kind, seed),
            _ => one::<[u8; 3]>(kind, seed),
        });
    }
    assert!(explained * 100 > seeds * 97, "{explained} of {seeds} were few enough to be searched");
}

#[test]
fn programs_on_threads_are_explained() {
    every(&TransportKind::Local, cases(600, 10_000));
}

#[test]
fn programs_in_a_segment_are_explained() {
    every(&TransportKind::ShmThreads, cases(100, 1000));
}

#[test]
fn programs_by_simulated_messages_are_explained() {
    for seed in 0..4 {
        every(&sim(seed), cases(60, 2500));
    }
}

#[test]
fn programs_by_tcp_are_explained() {
    every(&TransportKind::TcpThreads, cases(60, 1000));
}

#[test]
fn programs_on_several_hosts_are_explained() {
    every(&TransportKind::MixedThreads(vec![0, 0, 1]), cases(60, 1000));
}
