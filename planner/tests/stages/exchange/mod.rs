//! Programs of posts, starts and fences in the reference, by the paragraphs of `planner/README.md`.

mod exhaustive;
mod generated;
mod puzzles;
mod small_steps;

use crate::support::operation;
use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op, Scalar};
use fencepost_planner::ids::{Delta, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use fencepost_tests_reference::{Call, Lent, Outcome, World, exchange};
use std::collections::BTreeSet;

pub const W: WindowId = WindowId(0);
pub const V: WindowId = WindowId(1);

pub fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

pub fn got(values: &[i32]) -> Outcome {
    Outcome::Got(bytes(values))
}

pub fn failed(class: ErrorClass, rank: u32, call: usize) -> Outcome {
    Outcome::Failed { class, rank: Rank(rank), call }
}

pub fn stalled(on: &[u32]) -> Outcome {
    Outcome::Stalled(group(on))
}

pub fn group(ranks: &[u32]) -> BTreeSet<Rank> {
    ranks.iter().map(|rank| Rank(*rank)).collect()
}

/// Returns two windows of i32 on every rank. Element `i` of `W` is 100 times the rank plus `i`, and
/// `V` holds zeros.
pub fn world(ranks: usize, len: usize) -> World {
    let first = |rank: usize| (0..len).map(|at| (100 * rank + at) as i32).collect::<Vec<_>>();
    World {
        element: [ElementType::scalar(Scalar::I32); 2].into_iter().collect(),
        memory: (0..ranks)
            .map(|rank| [bytes(&first(rank)), bytes(&vec![0; len])].into_iter().collect())
            .collect(),
    }
}

pub fn ints(world: &World, rank: usize) -> Vec<i32> {
    world.memory[rank][W].chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
}

/// The calls of one rank on `W`. Each method returns the position of its call.
pub struct Program {
    rank: u32,
    pub calls: Vec<Call>,
}

impl Program {
    pub fn call(&mut self, call: Call) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub fn post(&mut self, sources: &[u32]) -> usize {
        self.lends(sources, Lent::Whole)
    }

    pub fn lends(&mut self, sources: &[u32], lent: Lent) -> usize {
        self.call(Call::Post { window: W, sources: group(sources), lent })
    }

    pub fn wait(&mut self) -> usize {
        self.call(Call::Wait { window: W })
    }

    pub fn start(&mut self, targets: &[u32]) -> usize {
        self.call(Call::Start { window: W, targets: group(targets) })
    }

    pub fn complete(&mut self, access: usize) -> usize {
        self.call(Call::Complete { access })
    }

    pub fn drop(&mut self, access: usize) -> usize {
        self.call(Call::Drop { access })
    }

    pub fn fence(&mut self) -> usize {
        self.call(Call::Fence { windows: BTreeSet::from([W]) })
    }

    pub fn store(&mut self, at: usize, value: i32) -> usize {
        self.call(Call::Store { window: W, elements: Datatype::run(at..at + 1), bytes: bytes(&[value]) })
    }

    pub fn load(&mut self, at: usize) -> usize {
        self.call(Call::Load { window: W, elements: Datatype::run(at..at + 1) })
    }

    fn operation(&self, kind: Kind, target: u32, at: usize, count: usize) -> Operation {
        let delta = i64::from(target) - i64::from(self.rank);
        operation(kind, delta, Datatype::run(at..at + count), Local::Buffer)
    }

    pub fn put(&mut self, access: usize, target: u32, at: usize, values: &[i32]) -> usize {
        let operation = self.operation(Kind::Put, target, at, values.len());
        self.call(Call::Access { access, operation, source: bytes(values) })
    }

    pub fn add(&mut self, access: usize, target: u32, at: usize, values: &[i32]) -> usize {
        let operation = self.operation(Kind::Accumulate(Op::Sum), target, at, values.len());
        self.call(Call::Access { access, operation, source: bytes(values) })
    }

    pub fn get(&mut self, access: usize, target: u32, at: usize, count: usize) -> usize {
        let operation = self.operation(Kind::Get, target, at, count);
        self.call(Call::Access { access, operation, source: Vec::new() })
    }

    /// Adds a put for the next fence.
    pub fn collect(&mut self, target: u32, at: usize, values: &[i32]) -> usize {
        let operation = self.operation(Kind::Put, target, at, values.len());
        self.call(Call::Collect { operation, source: bytes(values) })
    }
}

pub fn programs<const N: usize>() -> [Program; N] {
    std::array::from_fn(|rank| Program { rank: rank as u32, calls: Vec::new() })
}

/// Runs these programs, and checks that `small_steps` has the same results, whatever the order of
/// turns.
pub fn run(world: &mut World, programs: &[Program]) -> Vec<Vec<Outcome>> {
    let programs: Vec<Vec<Call>> = programs.iter().map(|program| program.calls.clone()).collect();
    let before = world.clone();
    let outcomes = exchange(world, &programs).unwrap();
    for seed in 0..20 {
        let mut again = before.clone();
        let small = small_steps::run(&mut again, &programs, seed);
        assert_eq!((&small, &again), (&outcomes, &*world), "seed {seed}");
    }
    outcomes
}

#[test]
fn paragraph_12_what_is_lent_is_read_as_it_was_posted_and_the_rest_is_kept() {
    let (mut w, mut ranks) = (world(2, 4), programs::<2>());
    let [a, b] = &mut ranks;
    a.store(1, 7);
    a.lends(&[1], Lent::Part(Datatype::run(1..3)));
    let kept = (a.store(0, 8), a.load(3));
    let lent = (a.store(1, 9), a.load(2));
    a.wait();
    let start = b.start(&[0]);
    let ticket = b.get(start, 0, 1, 2);
    b.complete(start);
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][kept.0], &all[0][kept.1]), (&Outcome::Done, &got(&[3])));
    assert_eq!(all[0][lent.0], failed(ErrorClass::RmaConflict, 0, lent.0));
    assert_eq!(all[0][lent.1], failed(ErrorClass::RmaConflict, 0, lent.1));
    assert_eq!(all[1][ticket], got(&[7, 2]));
    assert_eq!(ints(&w, 0), [8, 7, 2, 3]);
}

#[test]
fn paragraph_12_an_operation_that_does_not_fit_what_was_lent_is_an_error_on_both_sides() {
    let cases: [(Lent, bool, Option<ErrorClass>); 6] = [
        (Lent::Part(Datatype::run(1..3)), true, Some(ErrorClass::Disp)),
        (Lent::Part(Datatype::run(1..3)), false, Some(ErrorClass::Disp)),
        (Lent::Part(Datatype::elements([0, 1]).unwrap()), true, None),
        (Lent::Read, true, Some(ErrorClass::Assert)),
        (Lent::Read, false, None),
        (Lent::Whole, true, None),
    ];
    for (lent, puts, class) in cases {
        let (mut w, mut ranks) = (world(3, 4), programs::<3>());
        let [a, b, c] = &mut ranks;
        let post = a.lends(&[1, 2], lent.clone());
        let read = a.load(3);
        let wait = a.wait();
        let start = b.start(&[0]);
        let bad = if puts { b.put(start, 0, 0, &[5, 6]) } else { b.get(start, 0, 0, 2) };
        let complete = b.complete(start);
        let other = c.start(&[0]);
        let ticket = c.get(other, 0, 1, 1);
        let done = c.complete(other);
        let all = run(&mut w, &ranks);
        let both = |class| (failed(class, 1, bad), failed(class, 0, post));
        let (waits, completes) = class.map_or((Outcome::Done, Outcome::Done), both);
        assert_eq!((&all[0][wait], &all[1][complete]), (&waits, &completes), "{lent:?} {puts}");
        assert_eq!((&all[2][done], &all[2][ticket]), (&Outcome::Done, &got(&[1])));
        assert_eq!(ints(&w, 0)[..2], if puts && class.is_none() { [5, 6] } else { [0, 1] });
        assert_eq!(all[0][read] == got(&[3]), lent != Lent::Whole);
        if !puts {
            assert_eq!(all[1][bad], class.map_or(got(&[0, 1]), |class| failed(class, 0, post)));
        }
    }
}

#[test]
fn paragraph_13_the_nth_start_belongs_to_the_nth_post_of_its_pair_whatever_else_they_name() {
    let (mut w, mut ranks) = (world(3, 2), programs::<3>());
    let [a, b, c] = &mut ranks;
    // Rank a posts for b alone, for c alone, and for both. The second start of b and the second
    // start of c belong to the third post.
    let mut first = Vec::new();
    for (sources, value) in [(&[1][..], 10), (&[2], 20), (&[1, 2], 30)] {
        a.store(0, value);
        a.post(sources);
        a.wait();
        first.push(a.load(1));
    }
    let mut tickets = Vec::new();
    for rank in [b, c] {
        let mut of_rank = Vec::new();
        for value in [1, 2] {
            let start = rank.start(&[0]);
            of_rank.push(rank.get(start, 0, 0, 1));
            rank.add(start, 0, 1, &[value]);
            rank.complete(start);
        }
        tickets.push(of_rank);
    }
    let all = run(&mut w, &ranks);
    let found = |rank: usize| tickets[rank - 1].iter().map(|at| all[rank][*at].clone()).collect::<Vec<_>>();
    assert_eq!((found(1), found(2)), (vec![got(&[10]), got(&[30])], vec![got(&[20]), got(&[30])]));
    let loads: Vec<_> = first.iter().map(|at| all[0][*at].clone()).collect();
    assert_eq!(loads, [got(&[2]), got(&[3]), got(&[7])]);
}

#[test]
fn paragraph_13_groups_are_sets_that_may_be_empty_and_hold_the_rank_itself() {
    let (mut w, mut ranks) = (world(1, 2), programs::<1>());
    let [a] = &mut ranks;
    a.post(&[]);
    a.wait();
    let none = a.start(&[]);
    a.complete(none);
    a.post(&[0, 0]);
    let start = a.start(&[0]);
    let ticket = a.get(start, 0, 0, 2);
    a.put(start, 0, 0, &[5]);
    a.complete(start);
    a.wait();
    let all = run(&mut w, &ranks);
    assert!(all[0].iter().all(|outcome| matches!(outcome, Outcome::Done | Outcome::Got(_))), "{all:?}");
    assert_eq!((&all[0][ticket], ints(&w, 0)), (&got(&[0, 1]), vec![5, 1]));
}

#[test]
fn paragraph_13_two_accesses_may_be_open_if_they_have_no_target_in_common() {
    let (mut w, mut ranks) = (world(3, 1), programs::<3>());
    let [a, b, c] = &mut ranks;
    let one = a.start(&[1]);
    let two = a.start(&[2]);
    let third = a.start(&[0, 1]);
    a.put(two, 2, 0, &[22]);
    a.put(one, 1, 0, &[11]);
    let outside = a.put(one, 2, 0, &[33]);
    a.complete(two);
    a.complete(one);
    let again = a.complete(one);
    for rank in [b, c] {
        rank.post(&[0]);
        rank.wait();
    }
    let all = run(&mut w, &ranks);
    assert_eq!(all[0][third], failed(ErrorClass::RmaSync, 0, one));
    assert_eq!(all[0][outside], failed(ErrorClass::RmaSync, 0, outside));
    assert_eq!(all[0][again], failed(ErrorClass::RmaSync, 0, again));
    assert_eq!((ints(&w, 1), ints(&w, 2)), (vec![11], vec![22]));
}

#[test]
fn paragraph_14_a_get_reads_the_post_and_not_what_the_same_access_puts() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let [a, b] = &mut ranks;
    a.post(&[1]);
    a.wait();
    let start = b.start(&[0]);
    b.put(start, 0, 0, &[5]);
    let ticket = b.get(start, 0, 0, 1);
    b.complete(start);
    let all = run(&mut w, &ranks);
    assert_eq!((&all[1][ticket], ints(&w, 0)), (&got(&[0]), vec![5]));
}

#[test]
fn paragraph_15_origins_ascend_then_program_order_floats_included() {
    let mut w = world(3, 1);
    w.element[W] = ElementType::scalar(Scalar::F32);
    w.memory[0][W] = 0.0_f32.to_ne_bytes().to_vec();
    let mut ranks = programs::<3>();
    ranks[0].post(&[0, 1, 2]);
    let mut exact = 0.0_f32;
    for (rank, values) in [(0, [1e8_f32, 1.0]), (1, [-1e8, 0.1]), (2, [3.0, 1e-3])] {
        let start = ranks[rank].start(&[0]);
        for value in values {
            exact += value;
            let source = value.to_ne_bytes().to_vec();
            let operation = ranks[rank].operation(Kind::Accumulate(Op::Sum), 0, 0, 1);
            ranks[rank].call(Call::Access { access: start, operation, source });
        }
        ranks[rank].complete(start);
    }
    ranks[0].wait();
    run(&mut w, &ranks);
    assert_eq!(w.memory[0][W], exact.to_ne_bytes());
    assert_ne!(exact, 4.101, "the order shows");
}

#[test]
fn paragraph_15_a_dropped_access_fails_its_targets_waits_and_nothing_else() {
    let (mut w, mut ranks) = (world(4, 1), programs::<4>());
    let [a, b, c, d] = &mut ranks;
    let dropped = a.start(&[1, 2]);
    a.put(dropped, 1, 0, &[5]);
    let ticket = a.get(dropped, 2, 0, 1);
    let at = a.drop(dropped);
    let next = a.start(&[1, 2]);
    a.put(next, 1, 0, &[6]);
    a.complete(next);
    let other = d.start(&[1]);
    d.put(other, 1, 0, &[7]);
    let done = d.complete(other);
    b.post(&[0, 3]);
    let wait = b.wait();
    let load = b.load(0);
    b.post(&[0]);
    b.wait();
    c.post(&[0]);
    let waits = c.wait();
    c.post(&[0]);
    c.wait();
    let all = run(&mut w, &ranks);
    assert_eq!(all[1][wait], failed(ErrorClass::RmaSync, 0, dropped));
    assert_eq!(all[2][waits], failed(ErrorClass::RmaSync, 0, dropped));
    assert_eq!((&all[3][done], &all[1][load]), (&Outcome::Done, &got(&[100])));
    assert_eq!(all[0][ticket], failed(ErrorClass::RmaSync, 0, at));
    assert_eq!(ints(&w, 1), [6]);
}

#[test]
fn paragraph_16_an_origin_is_one_access_ahead_of_the_posts_unless_it_gets() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let mut completes = Vec::new();
    for value in [5, 6] {
        let start = ranks[0].start(&[1]);
        ranks[0].put(start, 1, 0, &[value]);
        completes.push(ranks[0].complete(start));
    }
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][completes[0]], &all[0][completes[1]]), (&Outcome::Done, &stalled(&[1])));
    ranks[1].load(0);
    ranks[1].post(&[0]);
    ranks[1].wait();
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][completes[1]], ints(&w, 1)), (&Outcome::Done, vec![5]));

    let mut ranks = programs::<2>();
    let start = ranks[0].start(&[1]);
    let ticket = ranks[0].get(start, 1, 0, 1);
    let complete = ranks[0].complete(start);
    let after = ranks[0].load(0);
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][complete], &all[0][after]), (&stalled(&[1]), &Outcome::NotReached));
    assert_eq!(all[0][ticket], failed(ErrorClass::RmaSync, 0, start));
}

#[test]
fn paragraph_16_a_leaked_access_a_missing_start_and_oneself_are_stalls_that_name_the_rank() {
    let (mut w, mut ranks) = (world(3, 1), programs::<3>());
    let [a, b, c] = &mut ranks;
    let leaked = a.start(&[1]);
    a.put(leaked, 1, 0, &[5]);
    let again = a.start(&[1]);
    b.post(&[0, 2]);
    let wait = b.wait();
    let own = c.start(&[2]);
    let ticket = c.get(own, 2, 0, 1);
    let complete = c.complete(own);
    let all = run(&mut w, &ranks);
    assert_eq!(all[0][again], failed(ErrorClass::RmaSync, 0, leaked));
    assert_eq!((&all[1][wait], &all[2][complete]), (&stalled(&[0, 2]), &stalled(&[2])));
    assert_eq!(all[2][ticket], failed(ErrorClass::RmaSync, 2, own));
    assert_eq!(ints(&w, 1), [100]);
}

#[test]
fn paragraph_17_an_exposure_between_fences_is_in_the_second_ones_m_and_a_queued_access_crosses_it() {
    let (mut w, mut ranks) = (world(2, 2), programs::<2>());
    let [a, b] = &mut ranks;
    a.fence();
    b.fence();
    let start = a.start(&[1]);
    a.put(start, 1, 0, &[5]);
    a.complete(start);
    b.post(&[0]);
    b.wait();
    let queued = a.start(&[1]);
    a.put(queued, 1, 1, &[6]);
    a.complete(queued);
    let from = a.operation(Kind::Get, 1, 0, 2);
    let ticket = a.call(Call::Collect { operation: from, source: Vec::new() });
    a.fence();
    b.fence();
    b.post(&[0]);
    b.wait();
    let all = run(&mut w, &ranks);
    assert_eq!((&all[0][ticket], ints(&w, 1)), (&got(&[5, 101]), vec![5, 6]));
}

#[test]
fn paragraph_17_mixing_in_one_epoch_is_refused_and_a_fence_of_what_is_open_fails_everywhere() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let [a, b] = &mut ranks;
    let collected = a.collect(1, 0, &[5]);
    let refused = (a.start(&[1]), a.post(&[1]));
    let fence = a.fence();
    let good = b.fence();
    let start = a.start(&[1]);
    let mixed = a.collect(1, 0, &[6]);
    let bad = a.fence();
    let lost = b.collect(0, 0, &[9]);
    let seen = b.fence();
    a.complete(start);
    let last = a.fence();
    b.post(&[0]);
    b.wait();
    b.fence();
    let all = run(&mut w, &ranks);
    assert_eq!(all[0][refused.0], failed(ErrorClass::RmaSync, 0, collected));
    assert_eq!(all[0][refused.1], failed(ErrorClass::RmaSync, 0, collected));
    assert_eq!((&all[0][fence], &all[1][good]), (&Outcome::Done, &Outcome::Done));
    assert_eq!(all[0][mixed], failed(ErrorClass::RmaSync, 0, start));
    assert_eq!((&all[0][bad], &all[1][lost]), (&failed(ErrorClass::RmaSync, 0, start), &Outcome::Done));
    assert_eq!((&all[1][seen], &all[0][last]), (&failed(ErrorClass::RmaSync, 0, start), &Outcome::Done));
    assert_eq!((ints(&w, 0), ints(&w, 1)), (vec![0], vec![5]));
}

#[test]
fn fences_of_different_windows_fail_and_each_names_the_other_rank() {
    let (mut w, mut ranks) = (world(2, 1), programs::<2>());
    let put = ranks[0].collect(1, 0, &[5]);
    let one = ranks[0].fence();
    let other = ranks[1].call(Call::Fence { windows: BTreeSet::from([V]) });
    let all = run(&mut w, &ranks);
    assert_eq!(all[0][put], Outcome::Done);
    assert_eq!(all[0][one], failed(ErrorClass::RmaSync, 1, other));
    assert_eq!(all[1][other], failed(ErrorClass::RmaSync, 0, one));
    assert_eq!(ints(&w, 1), [100]);
}

#[test]
fn wrong_arguments_are_refused_at_the_call_and_change_nothing() {
    let run_of = Datatype::run;
    let (mut w, mut ranks) = (world(2, 2), programs::<2>());
    let [a, b] = &mut ranks;
    let far = BTreeSet::from([Rank(2)]);
    let u = WindowId(7);
    let wrong = [
        (Call::Post { window: W, sources: far.clone(), lent: Lent::Whole }, ErrorClass::Rank),
        (Call::Post { window: u, sources: group(&[1]), lent: Lent::Whole }, ErrorClass::Win),
        (Call::Post { window: W, sources: group(&[1]), lent: Lent::Part(run_of(1..3)) }, ErrorClass::Disp),
        (Call::Start { window: W, targets: far }, ErrorClass::Rank),
        (Call::Start { window: u, targets: group(&[1]) }, ErrorClass::Win),
        (Call::Wait { window: W }, ErrorClass::RmaSync),
        (Call::Complete { access: 0 }, ErrorClass::RmaSync),
        (Call::Drop { access: 0 }, ErrorClass::RmaSync),
        (Call::Store { window: W, elements: run_of(1..3), bytes: bytes(&[1, 2]) }, ErrorClass::Disp),
        (Call::Store { window: W, elements: run_of(1..2), bytes: bytes(&[1, 2]) }, ErrorClass::Size),
        (Call::Load { window: u, elements: run_of(1..2) }, ErrorClass::Win),
    ];
    for (call, _) in &wrong {
        a.call(call.clone());
    }
    let start = a.start(&[1]);
    let mut operations = Vec::new();
    let mut bad = |a: &mut Program, class, change: &dyn Fn(&mut Operation), source: &[i32]| {
        let mut operation = a.operation(Kind::Put, 1, 0, 1);
        change(&mut operation);
        operations.push((a.call(Call::Access { access: start, operation, source: bytes(source) }), class));
    };
    bad(a, ErrorClass::Rank, &|o| o.target = Some(Delta(2)), &[1]);
    bad(a, ErrorClass::Win, &|o| o.window = V, &[1]);
    bad(a, ErrorClass::Disp, &|o| o.remote = run_of(2..3), &[1]);
    bad(a, ErrorClass::Size, &|_| (), &[1, 2]);
    bad(a, ErrorClass::Op, &|o| o.kind = Kind::Accumulate(Op::MinLoc), &[1]);
    bad(
        a,
        ErrorClass::Arg,
        &|o| {
            o.kind = Kind::Get;
            o.local = Local::Section { window: V, datatype: Datatype::run(0..1) };
        },
        &[],
    );
    let packed = Local::Section { window: W, datatype: Datatype::run(1..2) };
    let mut good = a.operation(Kind::Put, 1, 0, 1);
    good.local = packed;
    a.call(Call::Access { access: start, operation: good, source: Vec::new() });
    a.store(1, 77);
    a.complete(start);
    b.post(&[0]);
    b.wait();
    let all = run(&mut w, &ranks);
    for (at, (call, class)) in wrong.iter().enumerate() {
        assert_eq!(all[0][at], failed(*class, 0, at), "{call:?}");
    }
    for (at, class) in operations {
        assert_eq!(all[0][at], failed(class, 0, at));
    }
    assert_eq!((ints(&w, 0), ints(&w, 1)), (vec![0, 77], vec![1, 101]));
    assert!(exchange(&mut w, &[]).is_err_and(|error| error.class() == ErrorClass::Size));
}
