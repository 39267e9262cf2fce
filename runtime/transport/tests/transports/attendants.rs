//! Attendants: they serve requests, also while their rank computes.

use crate::ends::*;
use fencepost_tests_support::random::Random;
use fencepost_transport::{
    Answers, Attendant, Cause, Channels, Endpoint, Frame, Header, Leave, Liveness, Lose, Loss, Lost, Pause,
    Port, SimConfig, Topology,
};
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The port of the answers.
const ANSWERS: Port = Port(5);

/// The kinds of requests. `REPLY` is answered with the same bytes. `PASS_ON` is answered with the
/// same bytes to the rank whose number is in `extra`. `MANY` is answered `extra` times, with as
/// many bytes as its word. On `PANIC`, the server panics.
const REPLY: u32 = 1;
const PASS_ON: u32 = 2;
const MANY: u32 = 3;
const PANIC: u32 = 4;

/// A server of requests. A test has a clone of `here`. From it the test reads the number of
/// requests, and whether the server was dropped.
struct Server {
    served: Vec<u64>,
    here: Arc<AtomicUsize>,
}

impl Attendant for Server {
    fn attend(&mut self, from: usize, header: Header, payload: &[u8], answers: &mut dyn Answers) {
        assert!(payload.is_empty() || payload.as_ptr().addr().is_multiple_of(16));
        self.here.fetch_add(1, Ordering::Relaxed);
        // Requests of a rank arrive in the order in which it sends them.
        self.served.resize(self.served.len().max(from + 1), 0);
        let number = &mut self.served[from];
        let answer = Header { word: header.word, kind: *number as u32, extra: header.extra };
        *number += 1;
        match header.kind {
            PASS_ON => answers.post(header.extra as usize, ANSWERS, answer, payload),
            MANY => {
                let bytes = vec![from as u8; header.word as usize];
                (0..header.extra).for_each(|_| answers.post(from, ANSWERS, answer, &bytes));
            }
            PANIC => std::panic::resume_unwind(Box::new("quietly")),
            _ => answers.post(from, ANSWERS, answer, payload),
        }
    }
}

fn serve(end: &mut Endpoint) -> Arc<AtomicUsize> {
    let here = Arc::new(AtomicUsize::new(0));
    end.attend(Box::new(Server { served: Vec::new(), here: here.clone() }));
    here
}

fn request(end: &mut Endpoint, to: usize, header: Header, payload: &[u8]) -> Result<(), Lost> {
    // SAFETY: the payload is copied, since the tests make requests only of ranks whose memory they
    // do not reach.
    let posted = unsafe { end.post(to, Port::SERVICE, Frame::of(header, payload)) };
    end.flush();
    posted
}

fn answer(end: &mut Endpoint, from: usize) -> Result<(Header, Vec<u8>), Lost> {
    take_on(end, from, ANSWERS)
}

/// Computes until `all` other ranks have finished. Does not call the endpoint.
fn compute_until(done: &AtomicUsize, all: usize) {
    while done.load(Ordering::Acquire) < all {
        spin_loop();
        thread::yield_now();
    }
}

/// Returns the other ranks whose memory this rank does not reach. These ranks serve the requests of
/// this rank.
fn far(end: &Endpoint) -> Vec<usize> {
    (0..end.size()).filter(|&peer| peer != end.rank() && !end.reaches(peer)).collect()
}

/// Returns the worlds of each transport in which some ranks do not reach the memory of others.
fn apart(size: usize) -> impl Iterator<Item = (String, Vec<Endpoint>)> {
    let is_apart = move |ends: &[Endpoint]| (0..size).any(|peer| !ends[0].reaches(peer));
    transports(size).filter(move |(_, ends)| is_apart(ends))
}

#[test]
fn a_rank_that_computes_answers_all_others_in_their_order() {
    for (name, ends) in apart(4) {
        let done = AtomicUsize::new(0);
        run(ends, |end| {
            let target = 2;
            if end.rank() == target {
                let here = serve(end);
                compute_until(&done, end.size() - 1);
                assert_eq!(here.load(Ordering::Relaxed), 60 * far(end).len(), "{name}");
                return;
            }
            if far(end).contains(&target) {
                for n in 0..30 {
                    request(
                        end,
                        target,
                        Header { word: n, kind: REPLY, extra: 7 },
                        &PATTERN[..n as usize * 9],
                    )
                    .unwrap();
                }
                for n in 0..60 {
                    if n >= 30 {
                        let header = Header { word: n, kind: REPLY, extra: 7 };
                        request(end, target, header, &PATTERN[..n as usize * 9]).unwrap();
                    }
                    let expected = Header { word: n, kind: n as u32, extra: 7 };
                    let answered = (expected, PATTERN[..n as usize * 9].to_vec());
                    assert_eq!(answer(end, target).unwrap(), answered, "{name}");
                }
            }
            done.fetch_add(1, Ordering::Release);
        });
    }
}

#[test]
fn requests_and_answers_of_more_bytes_than_there_is_credit_for_arrive() {
    static LARGE: [u8; 1 << 20] = [3; 1 << 20];
    for (name, ends) in apart(2) {
        let (len, times) = if name.contains("Sim") { (9000, 8) } else { (1 << 20, 20) };
        let done = AtomicUsize::new(0);
        run(ends, |end| {
            if end.rank() == 0 {
                serve(end);
                return compute_until(&done, 1);
            }
            request(end, 0, Header { word: len, kind: MANY, extra: times }, &[]).unwrap();
            for _ in 0..times {
                request(end, 0, header(len), &LARGE[..len as usize]).unwrap();
            }
            request(end, 0, Header { word: 30 << 10, kind: MANY, extra: 1 }, &[]).unwrap();
            for expected in [1, 3].into_iter().flat_map(|byte| std::iter::repeat_n(byte, times as usize)) {
                let (_, bytes) = answer(end, 0).unwrap();
                assert!(bytes.len() == len as usize && bytes.iter().all(|&b| b == expected), "{name}");
            }
            assert_eq!(answer(end, 0).unwrap().1.len(), 30 << 10);
            done.fetch_add(1, Ordering::Release);
        });
    }
}

#[test]
fn all_ranks_ask_and_answer_at_once_and_nothing_else_is_disturbed() {
    for (name, ends) in apart(4) {
        run(ends, |end| {
            let me = end.rank();
            serve(end);
            let targets = far(end);
            let mut answers = vec![0; end.size()];
            for round in 0..20_u64 {
                for &to in &targets {
                    let length = (round as usize * 37 + me) % 3000;
                    request(end, to, Header { word: round, kind: REPLY, extra: 0 }, &PATTERN[..length])
                        .unwrap();
                    post(end, to, header(round), piece(me, to, round as usize)).unwrap();
                }
                if round % 4 == 3 {
                    let notified = exchange(end, round).unwrap();
                    assert!(notified.iter().all(|notification| notification.word == round), "{name}");
                }
                for &from in &targets {
                    let expected = (header(round), piece(from, me, round as usize).to_vec());
                    assert_eq!(take(end, from).unwrap(), expected, "{name}");
                }
                for &from in targets.iter().filter(|_| round % 3 == 2) {
                    while answers[from] <= round {
                        let (header, bytes) = answer(end, from).unwrap();
                        assert_eq!(header.word, answers[from], "{name}");
                        assert_eq!(bytes.len(), (header.word as usize * 37 + me) % 3000, "{name}");
                        answers[from] += 1;
                    }
                }
            }
            exchange(end, 77).unwrap();
        });
    }
}

/// An attendant that stores the word of a request and wakes the rank whose number is in `extra`. It
/// keeps requests of another kind, and answers them when it is nudged.
struct Keeper {
    word: Arc<AtomicU64>,
    stored: Arc<Mutex<Instant>>,
    kept: Vec<(usize, Header)>,
}

const STORE: u32 = 5;
const KEEP: u32 = 6;

impl Attendant for Keeper {
    fn attend(&mut self, from: usize, header: Header, _: &[u8], answers: &mut dyn Answers) {
        match header.kind {
            STORE => {
                *self.stored.lock().unwrap() = Instant::now();
                self.word.store(header.word, Ordering::Release);
                answers.wake(header.extra as usize);
            }
            KEEP => self.kept.push((from, header)),
            _ => answers.post(from, ANSWERS, header, &[]),
        }
    }

    fn nudged(&mut self, answers: &mut dyn Answers) {
        self.kept.drain(..).for_each(|(from, header)| answers.post(from, ANSWERS, header, &[]));
    }
}

#[test]
fn a_rank_that_waits_for_what_an_attendant_stores_is_woken_by_it() {
    const ROUNDS: u64 = 4;
    for waiter in [0, 1] {
        for (name, ends) in apart(3).filter(|(_, ends)| ends[0].reaches(waiter) || waiter == 0) {
            if far(&ends[0]).is_empty() {
                continue;
            }
            let (word, stored) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Instant::now())));
            let asks = *far(&ends[0]).last().unwrap();
            let done = AtomicUsize::new(0);
            let delays = run(ends, |end| {
                let me = end.rank();
                if me == 0 {
                    let (word, stored) = (word.clone(), stored.clone());
                    end.attend(Box::new(Keeper { word, stored, kept: Vec::new() }));
                }
                let mut late = Duration::ZERO;
                for round in 1..=ROUNDS {
                    if me == waiter {
                        post(end, asks, header(round), &[]).unwrap();
                        end.flush();
                        let mut pause = Pause::new();
                        while word.load(Ordering::Acquire) < round {
                            end.idle(&mut pause);
                        }
                        late += stored.lock().unwrap().elapsed();
                    } else if me == asks {
                        take(end, waiter).unwrap();
                        // These requests take so long that the other rank falls asleep.
                        for n in 0..100 {
                            request(end, 0, header(n), &[]).unwrap();
                            answer(end, 0).unwrap();
                        }
                        request(end, 0, Header { word: round, kind: STORE, extra: waiter as u32 }, &[])
                            .unwrap();
                    }
                }
                match me {
                    0 if waiter != 0 => compute_until(&done, 1),
                    _ if me == waiter => drop(done.fetch_add(1, Ordering::Release)),
                    _ => {}
                }
                late
            });
            // A rank that is not woken sleeps for a second.
            let late: Duration = delays.into_iter().sum();
            assert!(
                late < Duration::from_millis(500 * ROUNDS),
                "{name}: rank {waiter} was woken {late:?} late"
            );
        }
    }
}

#[test]
fn an_attendant_goes_on_when_a_rank_of_its_host_nudges_it() {
    for leaves in [false, true] {
        let done = AtomicUsize::new(0);
        run(hosts(&[0, 0, 1]), |end| match end.rank() {
            0 => {
                let (word, stored) = (Arc::default(), Arc::new(Mutex::new(Instant::now())));
                end.attend(Box::new(Keeper { word, stored, kept: Vec::new() }));
                compute_until(&done, 1);
            }
            1 => {
                for _ in 0..if leaves { 1 } else { 20 } {
                    take(end, 2).unwrap();
                    end.nudge(0);
                }
                if !leaves {
                    compute_until(&done, 1);
                }
            }
            _ => {
                for n in 0..if leaves { 1 } else { 20 } {
                    for (word, kind) in [(n, KEEP), (n + 100, REPLY)] {
                        request(end, 0, Header { word, kind, extra: 0 }, &[]).unwrap();
                    }
                    assert_eq!(answer(end, 0).unwrap().0.word, n + 100, "the first one is kept");
                    post(end, 1, header(n), &[]).unwrap();
                    end.flush();
                    assert_eq!(answer(end, 0).unwrap().0.word, n);
                }
                done.fetch_add(1, Ordering::Release);
            }
        });
    }
}

#[test]
fn an_attendant_posts_to_ranks_that_did_not_ask() {
    for (name, ends) in apart(3) {
        let done = AtomicUsize::new(0);
        run(ends, |end| {
            let target = 1;
            let all_far =
                end.host(0) != end.host(1) && end.host(1) != end.host(2) && end.host(2) != end.host(0);
            if end.rank() == target {
                serve(end);
                compute_until(&done, 2);
            } else if all_far {
                let other = 2 - end.rank();
                for n in 0..20 {
                    let pass = Header { word: n, kind: PASS_ON, extra: other as u32 };
                    request(end, target, pass, &PATTERN[..n as usize]).unwrap();
                }
                for n in 0..20 {
                    let (header, bytes) = answer(end, target).unwrap();
                    assert_eq!((header.word, bytes.len() as u64), (n, n), "{name}");
                }
            }
            done.fetch_add(1, Ordering::Release);
        });
    }
}

#[test]
fn requests_that_come_before_the_attendant_wait_for_it() {
    static LARGE: [u8; 1 << 20] = [3; 1 << 20];
    for (name, ends) in apart(2) {
        let len = if name.contains("Sim") { 9000 } else { 1 << 20 };
        let done = AtomicUsize::new(0);
        run(ends, |end| {
            if end.rank() == 0 {
                take(end, 1).unwrap(); // all requests are posted
                let here = serve(end);
                compute_until(&done, 1);
                assert_eq!(here.load(Ordering::Relaxed), 12, "{name}");
                return;
            }
            for n in 0..12 {
                request(end, 0, header(n), &LARGE[..len]).unwrap();
            }
            post(end, 0, header(0), &[]).unwrap();
            for n in 0..12 {
                let (header, bytes) = answer(end, 0).unwrap();
                assert_eq!((header.word, bytes.len()), (n, len), "{name}");
            }
            done.fetch_add(1, Ordering::Release);
        });
    }
}

#[test]
fn an_attendant_is_dropped_when_its_rank_leaves_and_who_asks_then_sees_that_it_left() {
    for (name, ends) in apart(2) {
        run(ends, |end| {
            if end.rank() == 0 {
                let here = serve(end);
                take(end, 1).unwrap(); // the requests are in transit, and arrive until the rank has left
                end.leave(Leave::Failed("no luck".into()));
                assert_eq!(Arc::strong_count(&here), 1, "{name}");
                return;
            }
            post(end, 0, header(0), &[]).unwrap();
            let (mut posted, mut pause) = (0, Pause::new());
            let lost = loop {
                match request(end, 0, header(posted), &PATTERN) {
                    Ok(()) => posted += 1,
                    Err(lost) => break lost,
                }
                if let Err(lost) = end.poll(0, Port(9)) {
                    break lost;
                }
                end.idle(&mut pause); // the steps of a wait open the connection
            };
            let expected = Lost { rank: 0, how: Loss::Left(Leave::Failed("no luck".into())) };
            assert_eq!(lost, expected, "{name}");
            let mut answers = 0;
            let lost = loop {
                match answer(end, 0) {
                    Ok((header, _)) => assert_eq!(header.word, answers, "{name}"),
                    Err(lost) => break lost,
                }
                answers += 1;
            };
            assert_eq!(lost, expected, "{name}");
            assert!(answers <= posted, "{name}");
        });
    }
}

#[test]
fn an_attendant_that_panics_ends_the_world_in_the_name_of_its_rank() {
    for (name, ends) in apart(3) {
        run(ends, |end| {
            let here = serve(end);
            if end.rank() == 2 && !end.reaches(0) {
                request(end, 0, Header { word: 0, kind: PANIC, extra: 0 }, &[]).unwrap();
            } else if end.rank() == 2 {
                end.end(Cause { rank: 0, what: "there are no requests to it".into() });
            }
            let lost = wait(end, |end| end.poll((end.rank() + 1) % 3, Port(9))).unwrap_err();
            assert!(matches!(&lost, Lost { rank: 0, how: Loss::Ended(_) }), "{name}: {lost}");
            end.leave(Leave::Finished);
            assert_eq!(Arc::strong_count(&here), 1, "{name}");
        });
    }
}

#[test]
fn a_world_has_one_attendant() {
    for (name, mut ends) in apart(2) {
        let end = &mut ends[0];
        let here = serve(end);
        assert!(catch_unwind(AssertUnwindSafe(|| serve(end))).is_err(), "{name}");
        assert_eq!(Arc::strong_count(&here), 2, "{name}: the first one stays");
    }
}

#[test]
fn where_memory_is_reached_an_attendant_has_nothing_to_do() {
    for mut ends in [threads(2), processes(2)] {
        let here = serve(&mut ends[0]);
        assert_eq!(Arc::strong_count(&here), 1);
    }
}

/// The attendant gets exactly the bytes of a request, and may get any bytes.
#[test]
fn requests_of_any_bytes_reach_the_attendant_as_bytes() {
    for (name, ends) in apart(2) {
        let done = AtomicUsize::new(0);
        run(ends, |end| {
            if end.rank() == 0 {
                serve(end);
                return compute_until(&done, 1);
            }
            let mut random = Random::new(5);
            for n in 0..200 {
                let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.bits() as u8).collect();
                let header = Header { word: random.bits(), kind: 5 + random.below(1000) as u32, extra: n };
                request(end, 0, header, &bytes).unwrap();
                let (answered, replied) = answer(end, 0).unwrap();
                assert_eq!((answered.word, answered.extra, &replied), (header.word, n, &bytes), "{name}");
            }
            done.fetch_add(1, Ordering::Release);
        });
    }
}

#[test]
fn a_rank_that_is_cut_off_while_it_serves_is_named() {
    for after in 0..24 {
        let lose = Some(Lose { rank: 0, after });
        let config = SimConfig { seed: after, lose, link_bytes: 200, ..SimConfig::default() };
        let done = AtomicUsize::new(0);
        run(simulated(2, config), |end| {
            if end.rank() == 0 {
                serve(end);
                return compute_until(&done, 1);
            }
            let ask = |end: &mut Endpoint, n| {
                request(end, 0, header(n), &PATTERN)?;
                answer(end, 0)
            };
            let lost = (0..30).find_map(|n| ask(end, n).err());
            assert_eq!(lost, Some(Lost { rank: 0, how: Loss::Cut }));
            done.fetch_add(1, Ordering::Release);
        });
    }
}
