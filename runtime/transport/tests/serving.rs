//! The work of a fabric's thread while its rank computes. These tests have a file of their own,
//! since they measure the processor time of the process.

mod fabrics;
mod waits;

use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fabrics::job;
use fencepost_transport::{
    Answers, Attendant, Channels, Frame, Header, Leave, Liveness, Pause, Port, Settings, TcpEnd,
};
use rustix::time::{ClockId, clock_gettime};
use waits::poll;

/// Held by each test, so that only one test runs at a time, since the tests measure times.
static ALONE: Mutex<()> = Mutex::new(());

fn post(end: &mut TcpEnd, to: usize, payload: &[u8]) {
    // SAFETY: the payload is copied.
    unsafe { end.post(to, Port::FENCE, Frame::of(Header::default(), payload)) }.unwrap();
}

fn take(end: &mut TcpEnd, from: usize) {
    poll(end, from).unwrap();
    end.release(from, Port::FENCE);
}

/// Returns the processor time that this process has used.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_report_on_another_rank_keeps_no_thread_busy() {
    let _alone = ALONE.lock();
    let mut ranks = job(3, Settings::default());
    let (_, other) = ranks.split_at_mut(1);
    post(&mut other[0].1, 0, b"a connection");
    take(&mut ranks[0].1, 1);
    ranks[0].0.mark_failed(2, "rank 2 of the job was killed by signal 9 (SIGKILL)");
    let (_sender, nothing) = mpsc::channel::<()>();
    let before = used();
    let computes = Duration::from_millis(600);
    assert!(nothing.recv_timeout(computes).is_err(), "no rank does anything meanwhile");
    let used = used() - before;
    assert!(used < computes / 6, "a process without work takes {used:?} of {computes:?}");
    ranks.into_iter().for_each(|(_, mut end)| end.leave(Leave::Finished));
}

/// A rank posts more bytes than the socket takes at once, and then computes. There are sixteen
/// ranks for each core.
#[test]
fn what_a_socket_did_not_take_is_sent_while_its_rank_computes() {
    let _alone = ALONE.lock();
    let mut ranks = job(16 * thread::available_parallelism().map_or(1, usize::from), Settings::default());
    let (_, mut receiver) = ranks.remove(1);
    let (_, sender) = &mut ranks[0];
    let ((begin, begins), (end, ends)) = (mpsc::channel(), mpsc::channel());
    let long = vec![7; 4 << 20];
    let mut times = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            for messages in begins {
                (0..messages).for_each(|_| take(&mut receiver, 0));
                post(&mut receiver, 0, b"short");
                receiver.flush();
                end.send(()).unwrap();
            }
            receiver.leave(Leave::Finished);
        });
        for _ in 0..40 {
            // The rank waits, so the thread does not serve the sockets.
            post(sender, 1, b"short");
            begin.send(1).unwrap();
            take(sender, 1);
            ends.recv().unwrap();
            // The rank posts until the kernel takes no more, which may be after 36 MiB. The
            // receiver's thread reads at the same time. If that thread keeps up with the sender, no
            // bytes are left unsent, and the round tests nothing.
            let mut messages = 0;
            while !sender.holds_back() && messages < 64 {
                post(sender, 1, &long);
                sender.flush();
                messages += 1;
            }
            let (holds_back, posted) = (sender.holds_back(), Instant::now());
            begin.send(messages).unwrap();
            ends.recv().unwrap();
            if holds_back {
                times.push((posted.elapsed(), messages));
            }
            take(sender, 1);
            if times.len() == 9 {
                break;
            }
        }
        drop(begin);
    });
    let least = times.iter().min().expect("in one of 40 rounds a socket does not take 256 MiB at once");
    assert!(least.0 < Duration::from_millis(25), "{times:?}");
    ranks.into_iter().for_each(|(_, mut end)| end.leave(Leave::Finished));
}

/// The port of the answers.
const ANSWERS: Port = Port(2);

struct Replies;

impl Attendant for Replies {
    fn attend(&mut self, from: usize, header: Header, payload: &[u8], answers: &mut dyn Answers) {
        answers.post(from, ANSWERS, header, payload);
    }
}

/// Sends a request to `to`, and waits for the answer. Returns how long this takes.
fn ask(end: &mut TcpEnd, to: usize) -> Duration {
    let begun = Instant::now();
    // SAFETY: the payload is copied.
    unsafe { end.post(to, Port::SERVICE, Frame::of(Header::default(), b"a request")) }.unwrap();
    let mut pause = Pause::new();
    while end.poll(to, ANSWERS).unwrap().is_none() {
        end.idle(&mut pause);
    }
    end.release(to, ANSWERS);
    begun.elapsed()
}

/// The thread answers in place of its rank. The rank either computes for a long time, or polls all
/// the time and never waits.
#[test]
fn requests_are_answered_whatever_their_rank_does() {
    let _alone = ALONE.lock();
    for polls in [false, true] {
        let mut ranks = job(3, Settings::default());
        let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        let (_fabric, mut busy) = ranks.remove(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                busy.attend(Box::new(Replies));
                while !done.load(Ordering::Acquire) {
                    rounds.fetch_add(1, Ordering::Relaxed);
                    if polls {
                        // Rank 2 never sends anything. This poll does not look for the requests of
                        // rank 1.
                        assert!(busy.poll(2, ANSWERS).unwrap().is_none());
                        (0..1000).for_each(|_| spin_loop());
                    }
                }
                busy.leave(Leave::Finished);
            });
            let mut times: Vec<_> = (0..60).map(|_| ask(&mut ranks[0].1, 0)).collect();
            done.store(true, Ordering::Release);
            times.sort_unstable();
            assert!(times[30] < Duration::from_millis(50), "polls: {polls}, {times:?}");
        });
        assert!(rounds.into_inner() > 0, "the rank did nothing meanwhile");
        ranks.into_iter().for_each(|(_, mut end)| end.leave(Leave::Finished));
    }
}
