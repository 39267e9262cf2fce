//! Programs of messages in the reference, by the paragraphs of `planner/README.md`.

mod generated;
mod texts;

use fencepost_planner::ErrorClass;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::calls::SendMode;
use fencepost_tests_reference::{
    Completed, Completion, Envelope, MessageCall, Standard, explains_messages, stops,
};
use std::collections::BTreeSet;

pub use Completion::{All, Any, Some as Several};
pub use SendMode::{Buffered, Ready, Standard as Plain, Synchronous};

pub const ANY: Envelope = Envelope { source: None, tag: None };

pub fn from(source: u32) -> Envelope {
    Envelope { source: Some(Rank(source)), tag: None }
}

pub fn tagged(source: u32, tag: u32) -> Envelope {
    Envelope { source: Some(Rank(source)), tag: Some(tag) }
}

pub fn bytes() -> ElementType {
    ElementType::scalar(Scalar::U8)
}

pub fn got(source: u32, tag: u32, bytes: &[u8]) -> Completed {
    Completed::Received { source: Rank(source), tag, bytes: bytes.to_vec() }
}

pub fn failed(source: u32, tag: u32, class: ErrorClass) -> Completed {
    Completed::Failed { source: Rank(source), tag, class }
}

/// The calls of one rank. Each method returns the position of its first call.
#[derive(Default)]
pub struct Program(pub Vec<MessageCall>);

impl Program {
    pub fn call(&mut self, call: MessageCall) -> usize {
        self.0.push(call);
        self.0.len() - 1
    }

    pub fn begin_send(&mut self, mode: SendMode, to: u32, tag: u32, bytes: &[u8]) -> usize {
        let (to, element) = (Rank(to), self::bytes());
        self.call(MessageCall::Send { mode, to, tag, element, bytes: bytes.to_vec(), sent: None })
    }

    pub fn begin_receive(&mut self, from: Envelope, room: usize) -> usize {
        self.call(MessageCall::Receive { from, element: bytes(), room })
    }

    pub fn wait(
        &mut self,
        count: Completion,
        requests: &[usize],
        completed: Option<&[(usize, Completed)]>,
    ) -> usize {
        self.complete(count, requests, true, completed)
    }

    pub fn test(
        &mut self,
        count: Completion,
        requests: &[usize],
        completed: Option<&[(usize, Completed)]>,
    ) -> usize {
        self.complete(count, requests, false, completed)
    }

    fn complete(
        &mut self,
        count: Completion,
        requests: &[usize],
        waits: bool,
        completed: Option<&[(usize, Completed)]>,
    ) -> usize {
        let completed = completed.map(<[_]>::to_vec);
        self.call(MessageCall::Complete { requests: requests.to_vec(), count, waits, completed })
    }

    /// Adds a blocking send.
    pub fn send(&mut self, mode: SendMode, to: u32, tag: u32, bytes: &[u8]) -> usize {
        let request = self.begin_send(mode, to, tag, bytes);
        self.wait(All, &[request], None);
        request
    }

    /// Adds a buffered send. `sent` is whether the send found room.
    pub fn buffered(&mut self, to: u32, bytes: &[u8], sent: bool) -> usize {
        let (to, element) = (Rank(to), self::bytes());
        let (mode, bytes) = (Buffered, bytes.to_vec());
        self.call(MessageCall::Send { mode, to, tag: 0, element, bytes, sent: Some(sent) })
    }

    /// Adds a blocking receive, and its result if that is known.
    pub fn receive(&mut self, from: Envelope, room: usize, completed: Option<Completed>) -> usize {
        let request = self.begin_receive(from, room);
        let completed = completed.map(|completed| [(request, completed)]);
        self.wait(All, &[request], completed.as_ref().map(|completed| &completed[..]));
        request
    }

    pub fn probe(&mut self, from: Envelope, waits: bool, found: Option<(u32, u32, usize)>) -> usize {
        let found = Some(found.map(|(source, tag, len)| (Rank(source), tag, len)));
        self.call(MessageCall::Probe { from, waits, found })
    }
}

pub fn programs<const N: usize>() -> [Program; N] {
    std::array::from_fn(|_| Program::default())
}

fn calls(programs: &[Program]) -> Vec<Vec<MessageCall>> {
    programs.iter().map(|program| program.0.clone()).collect()
}

/// Returns the first result that is not explained, if buffered sends have this much room.
pub fn unexplained(programs: &[Program], buffer: usize) -> Option<(usize, usize)> {
    let first = explains_messages(&calls(programs), buffer).unwrap();
    first.map(|(rank, call)| (rank.index(), call))
}

/// Returns the ways in which the programs can stop.
pub fn ways(programs: &[Program], standard: Standard) -> BTreeSet<Vec<(usize, usize)>> {
    let ways = stops(&calls(programs), 16, standard).unwrap();
    ways.into_iter().map(|way| way.into_iter().map(|(rank, call)| (rank.index(), call)).collect()).collect()
}

pub fn all_end() -> BTreeSet<Vec<(usize, usize)>> {
    BTreeSet::from([vec![]])
}

#[test]
fn paragraph_24_sends_to_nobody_and_foreign_requests_are_refused_by_rank_and_call() {
    let [mut a, mut b] = programs();
    a.send(Plain, 1, 0, &[1]);
    b.begin_send(Plain, 2, 0, &[1]);
    let error = explains_messages(&calls(&[a, b]), 0).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Rank);
    assert!(error.to_string().contains("call 0 of rank 1"), "{error}");
    for wrong in [
        MessageCall::Cancel { request: 0 },
        MessageCall::Complete { requests: vec![1], count: All, waits: true, completed: None },
        MessageCall::Complete { requests: vec![7], count: All, waits: false, completed: None },
    ] {
        let [mut a] = programs();
        a.begin_send(Plain, 0, 0, &[]);
        a.call(wrong);
        let error = explains_messages(&calls(&[a]), 0).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Arg, "{error}");
        assert!(error.to_string().contains("call 1 of rank 0"), "{error}");
    }
}

#[test]
fn paragraph_25_messages_of_a_pair_do_not_overtake() {
    for (first, second, right) in [(1, 2, true), (2, 1, false)] {
        let [mut a, mut b] = programs();
        a.send(Plain, 1, 5, &[1]);
        a.send(Plain, 1, 5, &[2]);
        b.receive(ANY, 1, Some(got(0, 5, &[first])));
        let last = b.receive(tagged(0, 5), 1, Some(got(0, 5, &[second])));
        let wrong = (!right).then_some((1, last - 1));
        assert_eq!(unexplained(&[a, b], 0), wrong);
    }
}

#[test]
fn paragraph_25_no_receive_is_passed_over() {
    for (one, other, right) in [(1, 2, true), (2, 1, false)] {
        let [mut a, mut b] = programs();
        a.send(Plain, 1, 5, &[1]);
        a.send(Plain, 1, 5, &[2]);
        let requests = [b.begin_receive(ANY, 1), b.begin_receive(ANY, 1)];
        b.wait(All, &requests[1..], Some(&[(requests[1], got(0, 5, &[other]))]));
        b.wait(All, &requests[..1], Some(&[(requests[0], got(0, 5, &[one]))]));
        assert_eq!(unexplained(&[a, b], 0).is_none(), right);
    }
}

#[test]
fn paragraph_25_only_what_comes_from_different_ranks_is_in_no_order() {
    for (first, second) in [(0, 1), (1, 0)] {
        let [mut a, mut b, mut c] = programs();
        a.send(Synchronous, 2, 0, &[0]);
        b.send(Synchronous, 2, 0, &[1]);
        c.receive(ANY, 1, Some(got(first, 0, &[first as u8])));
        c.receive(ANY, 1, Some(got(second, 0, &[second as u8])));
        assert_eq!(unexplained(&[a, b, c], 0), None);
    }
    // A rank knows that its message was received, and then sends another. That message comes after
    // the first one.
    for (first, right) in [(0, true), (1, false)] {
        let [mut a, mut b, mut c] = programs();
        a.send(Synchronous, 2, 0, &[0]);
        a.send(Plain, 1, 0, &[]);
        b.receive(from(0), 0, None);
        b.send(Plain, 2, 0, &[1]);
        c.receive(ANY, 1, Some(got(first, 0, &[first as u8])));
        c.receive(ANY, 1, None);
        assert_eq!(unexplained(&[a, b, c], 0).is_none(), right);
    }
}

#[test]
fn paragraph_25_what_does_not_fit_is_taken_and_told() {
    let cases = [
        (bytes(), 3, got(0, 9, &[1, 2]), true),
        (bytes(), 2, got(0, 9, &[1, 2]), true),
        (bytes(), 1, failed(0, 9, ErrorClass::Truncate), true),
        (bytes(), 1, got(0, 9, &[1]), false),
        (bytes(), 2, failed(0, 9, ErrorClass::Truncate), false),
        (ElementType::scalar(Scalar::U16), 2, failed(0, 9, ErrorClass::Type), true),
        (ElementType::scalar(Scalar::U16), 2, got(0, 9, &[1, 2]), false),
    ];
    for (element, room, completed, right) in cases {
        let [mut a, mut b] = programs();
        a.send(Plain, 1, 9, &[1, 2]);
        a.send(Plain, 1, 9, &[3]);
        let request = b.call(MessageCall::Receive { from: ANY, element, room });
        b.wait(All, &[request], Some(&[(request, completed)]));
        b.receive(ANY, 1, Some(got(0, 9, &[3])));
        assert_eq!(unexplained(&[a, b], 0).is_none(), right);
    }
}

#[test]
fn paragraph_25_a_probe_sees_what_is_kept_and_leaves_it() {
    for (found, taken, right) in [
        (Some((0, 7, 2)), 1, true),
        (Some((0, 8, 1)), 1, false),
        (Some((0, 7, 2)), 2, false),
        (None, 1, true),
    ] {
        let [mut a, mut b] = programs();
        a.send(Plain, 1, 7, &[1, 1]);
        a.send(Plain, 1, 8, &[2]);
        b.probe(from(0), false, found);
        b.receive(tagged(0, 6 + taken), 2, Some(got(0, 6 + taken, if taken == 1 { &[1, 1] } else { &[2] })));
        b.probe(ANY, true, Some((0, 8, 1)));
        assert_eq!(unexplained(&[a, b], 0).is_none(), right);
    }
}

#[test]
fn paragraph_26_a_synchronous_send_is_complete_when_it_was_taken() {
    for (mode, right) in [(Plain, true), (Synchronous, false), (Buffered, true), (Ready, true)] {
        let [mut a, mut b] = programs();
        let send = a.begin_send(mode, 1, 0, &[1]);
        a.test(All, &[send], Some(&[(send, Completed::Sent)]));
        a.send(Plain, 1, 1, &[]);
        b.receive(tagged(0, 1), 0, None);
        b.receive(tagged(0, 0), 1, None);
        assert_eq!(unexplained(&[a, b], 1).is_none(), right, "{mode:?}");
    }
}

#[test]
fn paragraph_26_a_buffered_send_may_count_against_the_buffer_until_it_was_received() {
    let sends = |second: bool, buffer: usize| {
        let [mut a, mut b] = programs();
        a.buffered(1, &[1, 2], true);
        a.buffered(1, &[1, 2], second);
        b.receive(ANY, 2, Some(got(0, 0, &[1, 2])));
        unexplained(&[a, b], buffer).is_none()
    };
    assert_eq!([sends(true, 1), sends(false, 1)], [false, false], "the first has no room");
    assert_eq!([sends(true, 2), sends(false, 2)], [true, true], "the first may count");
    assert_eq!([sends(true, 3), sends(false, 3)], [true, true], "the first may count");
    assert_eq!([sends(true, 4), sends(false, 4)], [true, false], "there is room for both");
}

#[test]
fn paragraph_26_a_buffered_send_need_not_count_against_the_buffer_while_its_message_is_on_its_way() {
    let [mut a, mut b, mut c] = programs();
    a.buffered(1, &[1, 2], true);
    a.buffered(1, &[1, 2], true);
    a.send(Plain, 2, 0, &[]);
    c.receive(from(0), 0, None);
    c.send(Plain, 1, 0, &[]);
    b.receive(from(2), 0, None);
    b.probe(from(0), false, None);
    assert_eq!(unexplained(&[a, b, c], 2), None);
}

#[test]
fn paragraph_26_a_rank_has_heard_what_was_received_before_it_hears_more_of_the_receiver() {
    for (direct, may_fail) in [(true, false), (false, true)] {
        let [mut a, mut b, mut c] = programs();
        a.buffered(1, &[1, 2], true);
        a.receive(ANY, 0, None);
        a.buffered(1, &[1, 2], false);
        b.receive(from(0), 2, Some(got(0, 0, &[1, 2])));
        if direct {
            b.send(Plain, 0, 0, &[]);
        } else {
            b.send(Plain, 2, 0, &[]);
            c.receive(from(1), 0, None);
            c.send(Plain, 0, 0, &[]);
        }
        assert_eq!(unexplained(&[a, b, c], 2).is_none(), may_fail, "direct: {direct}");
    }
}

#[test]
fn paragraph_26_a_ready_send_for_which_no_receive_waits_is_told() {
    for (waits, completed, right) in [
        (true, got(0, 0, &[1]), true),
        (true, failed(0, 0, ErrorClass::Assert), false),
        (false, failed(0, 0, ErrorClass::Assert), true),
        (false, got(0, 0, &[1]), false),
    ] {
        let [mut a, mut b] = programs();
        a.receive(from(1), 0, None);
        a.send(Ready, 1, 0, &[1]);
        a.send(Plain, 1, 1, &[]);
        let mut request = 0;
        if waits {
            request = b.begin_receive(tagged(0, 0), 1);
        }
        b.send(Plain, 0, 0, &[]);
        b.receive(tagged(0, 1), 0, None);
        if !waits {
            request = b.begin_receive(tagged(0, 0), 1);
        }
        b.wait(All, &[request], Some(&[(request, completed)]));
        assert_eq!(unexplained(&[a, b], 0).is_none(), right);
    }
}

#[test]
fn paragraph_27_any_completes_one_some_all_that_are_complete_and_all_waits_for_all() {
    let sent = |at| (at, Completed::Sent);
    let run = |count, completed: &[(usize, Completed)], waits: bool| {
        let [mut a, mut b] = programs();
        // Both messages have been taken when rank 0 receives the message of rank 1.
        let sends = [a.begin_send(Synchronous, 1, 0, &[1]), a.begin_send(Synchronous, 1, 1, &[2])];
        let never = a.begin_receive(tagged(1, 9), 0);
        a.receive(tagged(1, 0), 0, None);
        a.complete(count, &[sends[0], sends[1], never], waits, Some(completed));
        b.receive(tagged(0, 0), 1, None);
        b.receive(tagged(0, 1), 1, None);
        b.send(Plain, 0, 0, &[]);
        unexplained(&[a, b], 0).is_none()
    };
    for waits in [true, false] {
        assert!(run(Any, &[sent(0)], waits) && run(Any, &[sent(1)], waits));
        assert!(!run(Any, &[sent(0), sent(1)], waits) && !run(Any, &[], waits));
        assert!(run(Several, &[sent(0), sent(1)], waits));
        assert!(!run(Several, &[sent(0)], waits) && !run(Several, &[], waits));
        assert!(!run(All, &[sent(0), sent(1)], waits));
    }
    assert!(run(All, &[], false) && !run(All, &[], true));
}

#[test]
fn paragraph_27_a_call_without_active_requests_returns_at_once() {
    for (count, waits) in [(All, true), (Any, true), (Several, true), (Any, false)] {
        let [mut a] = programs();
        let send = a.begin_send(Plain, 0, 0, &[1]);
        a.receive(ANY, 1, Some(got(0, 0, &[1])));
        a.wait(All, &[send], Some(&[(send, Completed::Sent)]));
        a.complete(count, &[send], waits, Some(&[]));
        a.complete(count, &[], waits, Some(&[]));
        assert_eq!(unexplained(&[a], 0), None);
    }
}

#[test]
fn paragraph_27_a_cancelled_receive_takes_nothing() {
    for (late, completed, taken, right) in [
        (true, Completed::Cancelled, 1, true),
        (true, got(0, 0, &[1]), 2, false),
        (false, got(0, 0, &[1]), 2, true),
        (false, Completed::Cancelled, 1, false),
    ] {
        let [mut a, mut b] = programs();
        if late {
            a.receive(from(1), 0, None);
        }
        a.send(Synchronous, 1, 0, &[1]);
        a.send(Plain, 1, 0, &[2]);
        if !late {
            a.send(Plain, 1, 1, &[]);
        }
        let request = b.begin_receive(tagged(0, 0), 1);
        if !late {
            b.receive(tagged(0, 1), 0, None);
        }
        b.call(MessageCall::Cancel { request });
        if late {
            b.send(Plain, 0, 0, &[]);
        }
        b.wait(All, &[request], Some(&[(request, completed)]));
        b.receive(tagged(0, 0), 1, Some(got(0, 0, &[taken])));
        assert_eq!(unexplained(&[a, b], 0).is_none(), right);
    }
}
