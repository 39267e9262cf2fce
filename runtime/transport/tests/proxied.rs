//! Real sockets with a proxy between them. The proxy injects one fault at one byte, and the results
//! of all ranks are checked.
//!
//! - If a connection breaks, or if one of its directions falls silent, waiting ranks get an error
//!   that names a rank.
//! - If a byte is changed or bytes arrive twice on a sealed connection, the ranks get such an error
//!   as well. No wrong bytes are delivered.
//! - If bytes are late, the ranks wait for them.
//! - If a byte is changed on a connection without a seal, the only guarantees are that no rank
//!   panics, and that all ranks end when the connection ends.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "says how much was tried")]

mod proxy;
mod waits;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fencepost_tests_support::cases::every_case;
use fencepost_transport::auth::Secret;
use fencepost_transport::{
    Channels, Frame, Header, Leave, Liveness, Lost, Notify, Port, Settings, TcpEnd, TcpFabric, Topology,
    listen,
};
use proxy::{Harm, Plan, Proxy};
use waits::{poll, read, settled};

const SIZE: usize = 3;
const ROUNDS: u64 = 3;
static PATTERN: [u8; 700] = {
    let mut bytes = [0; 700];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i ^ (i >> 3)) as u8;
        i += 1;
    }
    bytes
};

fn payload(from: usize, to: usize, round: u64) -> &'static [u8] {
    &PATTERN[from..from + 8 + (100 * to + 200 * round as usize) % 600]
}

fn is(frame: &Frame, header: Header, payload: &[u8]) -> bool {
    // SAFETY: the frame was not released yet.
    let bytes = || unsafe { frame.bytes() };
    frame.header == header && frame.len == payload.len() && bytes() == payload
}

/// Runs rounds of frames and notifications among all ranks. Returns how many frames and
/// notifications were wrong.
fn program(end: &mut TcpEnd) -> Result<u32, Lost> {
    let (me, mut wrong) = (end.rank(), 0);
    for round in 1..=ROUNDS {
        let header = Header { word: round, kind: 1, extra: 7 };
        for to in 0..SIZE {
            let payload = payload(me, to, round);
            // SAFETY: the payload is never freed and never changes.
            unsafe { end.post(to, Port::FENCE, Frame::of(header, payload)) }?;
        }
        end.publish(round)?;
        for from in 0..SIZE {
            let notification = read(end, from)?;
            wrong += u32::from(notification.word != round);
            let frame = poll(end, from)?;
            wrong += u32::from(!is(&frame, header, payload(from, me, round)));
            end.release(from, Port::FENCE);
        }
        end.settle()?;
        for from in 0..SIZE {
            settled(end, from)?;
        }
    }
    Ok(wrong)
}

/// Runs all ranks, with the proxy between the two ranks of the plan.
fn world(settings: Settings, plan: &Arc<Plan>) -> Vec<Result<u32, Lost>> {
    let secret = Secret::new().unwrap();
    let fabrics: Vec<_> = (0..SIZE)
        .map(|rank| TcpFabric::new(listen(None).unwrap(), secret.clone(), [7; 16], rank, settings).unwrap())
        .collect();
    let addresses: Vec<_> = fabrics.iter().map(|fabric| fabric.address().unwrap()).collect();
    let mut proxies = Vec::new();
    let ends: Vec<_> = fabrics
        .into_iter()
        .enumerate()
        .map(|(rank, mut fabric)| {
            let mut table = addresses.clone();
            if plan.way.contains(&rank) {
                let to = plan.way[usize::from(plan.way[0] == rank)];
                proxies.push(Proxy::new(rank, to, addresses[to], plan.clone()));
                table[to] = proxies[proxies.len() - 1].address;
            }
            fabric.table(&table).unwrap();
            TcpEnd::of_job(&Arc::new(fabric), 0, rank, SIZE).unwrap()
        })
        .collect();
    thread::scope(|scope| {
        let rank = |mut end: TcpEnd| {
            let ended = program(&mut end);
            end.leave(match &ended {
                Ok(_) => Leave::Finished,
                Err(lost) => Leave::Failed(lost.to_string()),
            });
            ended
        };
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn settings(sealed: bool) -> Settings {
    Settings { sealed, ..Settings::default() }
}

/// Returns how many bytes are sent in each direction between ranks 0 and 1.
fn bytes(settings: Settings) -> [u64; 2] {
    let plan = Plan::new([0, 1], u64::MAX, Harm::Break);
    let ended = world(settings, &plan);
    assert!(ended.iter().all(|ended| *ended == Ok(0)), "{ended:?}");
    let passed = plan.passed.each_ref().map(|passed| passed.load(Ordering::SeqCst));
    assert!(passed.iter().all(|&bytes| bytes > 1000), "{passed:?}: not by the proxy");
    passed
}

#[derive(Default, Debug)]
struct Counts {
    runs: u32,
    happened: u32,
    told: u32,
    wrong: u32,
}

fn count(counts: &mut Counts, settings: Settings, plan: &Arc<Plan>) {
    let ended = world(settings, plan);
    let what = format!("{:?} from {:?} at byte {}", plan.harm, plan.way, plan.at);
    counts.runs += 1;
    counts.happened += u32::from(plan.happened.load(Ordering::SeqCst));
    counts.wrong += u32::from(ended.iter().any(|ended| matches!(ended, Ok(1..))));
    for (rank, ended) in ended.iter().enumerate() {
        if let Err(lost) = ended {
            assert!(lost.rank < SIZE && lost.rank != rank || plan.way.contains(&rank), "{what}: {ended:?}");
        }
    }
    if ended.iter().any(Result::is_err) {
        counts.told += 1;
        let named = |lost: &Lost| plan.way.contains(&lost.rank);
        assert!(ended.iter().flat_map(Result::as_ref).count() < SIZE);
        assert!(ended.iter().any(|ended| ended.as_ref().is_err_and(named)), "{what}: {ended:?}");
    }
}

/// The number of worlds that run at the same time. Worlds mostly wait.
const AT_ONCE: usize = 8;

/// Injects the fault at every `step`th byte of both directions. Unless every case is tested,
/// injects it at a third of these bytes.
fn everywhere(harm: Harm, settings: Settings, step: usize) -> Counts {
    let step = if every_case() { step } else { 3 * step };
    let lengths = bytes(settings);
    let places = |(way, length): ([usize; 2], u64)| (0..length).step_by(step).map(move |at| (way, at));
    let plans = Mutex::new([[0, 1], [1, 0]].into_iter().zip(lengths).flat_map(places));
    let counts = thread::scope(|scope| {
        let worker = || {
            let mut counts = Counts::default();
            let next = || plans.lock().unwrap().next();
            while let Some((way, at)) = next() {
                count(&mut counts, settings, &Plan::new(way, at, harm));
            }
            counts
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let each = workers.into_iter().map(|worker| worker.join().unwrap());
        each.fold(Counts::default(), |all, one| Counts {
            runs: all.runs + one.runs,
            happened: all.happened + one.happened,
            told: all.told + one.told,
            wrong: all.wrong + one.wrong,
        })
    });
    println!("{harm:?}, sealed {}, of {lengths:?} bytes: {counts:?}", settings.sealed);
    assert!(counts.happened * 10 > counts.runs * 7, "{counts:?}");
    counts
}

#[test]
fn a_connection_that_breaks_at_any_byte_is_an_error_that_names_a_rank() {
    let counts = everywhere(Harm::Break, settings(false), 23);
    assert!(counts.told * 2 > counts.happened && counts.wrong == 0, "{counts:?}");
}

#[test]
fn under_a_seal_a_byte_turned_anywhere_is_an_error_and_nothing_wrong_is_delivered() {
    let counts = everywhere(Harm::Corrupt, settings(true), 19);
    assert!(counts.told * 2 > counts.happened && counts.wrong == 0, "{counts:?}");
}

#[test]
fn under_a_seal_bytes_that_come_twice_are_an_error_and_nothing_wrong_is_delivered() {
    let counts = everywhere(Harm::Duplicate, settings(true), 43);
    assert!(counts.told * 2 > counts.happened && counts.wrong == 0, "{counts:?}");
}

#[test]
fn what_is_late_is_waited_for() {
    for sealed in [false, true] {
        let counts = everywhere(Harm::Delay, settings(sealed), 307);
        assert!(counts.told == 0 && counts.wrong == 0, "{counts:?}");
    }
}

#[test]
fn without_a_seal_a_byte_turned_anywhere_panics_nobody() {
    let counts = everywhere(Harm::CorruptThenBreak, settings(false), 61);
    assert!(counts.told > 0, "{counts:?}");
}

#[test]
fn a_direction_that_goes_silent_is_noticed_by_the_beats_that_do_not_come() {
    let patient = Duration::from_millis(600);
    let settings = Settings {
        beat: Duration::from_millis(100),
        limit: patient,
        handshake: patient,
        ..Settings::default()
    };
    let counts = everywhere(Harm::HalfOpen, settings, 227);
    assert!(counts.told * 2 > counts.happened && counts.wrong == 0, "{counts:?}");
}
