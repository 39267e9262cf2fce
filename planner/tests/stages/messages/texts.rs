//! The numbered examples of MPI's texts on messages and requests.

use super::*;

/// Returns two ranks that exchange a message. Each sends and receives once, in these orders.
fn exchange(orders: [[bool; 2]; 2], mode: SendMode) -> [Program; 2] {
    let mut both = programs::<2>();
    for (rank, order) in orders.into_iter().enumerate() {
        let other = 1 - rank as u32;
        for sends in order {
            if sends {
                both[rank].send(mode, other, 0, &[rank as u8]);
            } else {
                both[rank].receive(from(other), 1, None);
            }
        }
    }
    both
}

const SEND_FIRST: [bool; 2] = [true, false];
const RECEIVE_FIRST: [bool; 2] = [false, true];

#[test]
fn example_3_5_messages_that_do_not_overtake() {
    for (first, second, right) in [(1, 2, true), (2, 1, false)] {
        let [mut a, mut b] = programs();
        a.send(Buffered, 1, 3, &[1]);
        a.send(Buffered, 1, 3, &[2]);
        b.receive(from(0), 1, Some(got(0, 3, &[first])));
        b.receive(tagged(0, 3), 1, Some(got(0, 3, &[second])));
        assert_eq!(unexplained(&[a, b], 16).is_none(), right);
    }
}

#[test]
fn example_3_6_two_pairs_that_cross_end_and_are_received_in_the_opposite_order() {
    let [mut a, mut b] = programs();
    a.send(Buffered, 1, 1, &[1]);
    a.send(Synchronous, 1, 2, &[2]);
    b.receive(tagged(0, 2), 1, Some(got(0, 2, &[2])));
    b.receive(tagged(0, 1), 1, Some(got(0, 1, &[1])));
    let both = [a, b];
    assert_eq!(unexplained(&both, 16), None);
    assert_eq!(ways(&both, Standard::AtMatch), all_end());
}

#[test]
fn example_3_7_an_exchange_that_needs_no_buffers_ends() {
    for mode in [Plain, Synchronous] {
        let both = exchange([SEND_FIRST, RECEIVE_FIRST], mode);
        assert_eq!(ways(&both, Standard::AtMatch), all_end());
        assert_eq!(ways(&both, Standard::AtOnce), all_end());
    }
}

#[test]
fn example_3_8_two_receives_first_stop_in_any_mode() {
    for mode in [Plain, Synchronous, Buffered, Ready] {
        let both = exchange([RECEIVE_FIRST, RECEIVE_FIRST], mode);
        for standard in [Standard::AtMatch, Standard::AtOnce] {
            assert_eq!(ways(&both, standard), BTreeSet::from([vec![(0, 1), (1, 1)]]), "{mode:?}");
        }
    }
}

#[test]
fn example_3_9_two_sends_first_end_only_where_there_are_buffers() {
    let both = exchange([SEND_FIRST, SEND_FIRST], Plain);
    assert_eq!(ways(&both, Standard::AtOnce), all_end());
    assert_eq!(ways(&both, Standard::AtMatch), BTreeSet::from([vec![(0, 1), (1, 1)]]));
    let both = exchange([SEND_FIRST, SEND_FIRST], Buffered);
    assert_eq!(ways(&both, Standard::AtMatch), all_end());
}

#[test]
fn example_3_15_a_synchronous_send_ends_while_its_receive_is_not_waited_for() {
    let [mut a, mut b] = programs();
    a.send(Synchronous, 1, 0, &[1]);
    a.send(Plain, 1, 1, &[2]);
    let first = b.begin_receive(tagged(0, 0), 1);
    b.receive(tagged(0, 1), 1, Some(got(0, 1, &[2])));
    b.wait(All, &[first], Some(&[(first, got(0, 0, &[1]))]));
    let both = [a, b];
    assert_eq!(unexplained(&both, 0), None);
    assert_eq!(ways(&both, Standard::AtMatch), all_end());
}

/// In the text, each client of the server sends without end. Two rounds of two clients show which
/// client may be passed over.
#[test]
fn example_3_16_a_server_that_waits_for_any_may_starve_a_client_and_one_that_waits_for_some_may_not() {
    let clients = |server: Program| {
        let [mut a, mut b] = programs();
        for client in [&mut a, &mut b] {
            let begun = client.begin_send(Synchronous, 2, 0, &[1]);
            client.send(Synchronous, 2, 1, &[]);
            client.wait(All, &[begun], None);
            client.begin_send(Synchronous, 2, 0, &[2]);
        }
        unexplained(&[a, b, server], 0).is_none()
    };
    let first = |count, completed: &[(usize, Completed)]| {
        let mut server = Program::default();
        let mut requests = vec![server.begin_receive(tagged(0, 0), 1), server.begin_receive(tagged(1, 0), 1)];
        // When the server has received these two messages, both clients have sent their first
        // message.
        server.receive(tagged(0, 1), 0, None);
        server.receive(tagged(1, 1), 0, None);
        server.wait(count, &requests, Some(completed));
        if completed.len() == 1 {
            // The server receives again from the served client, and serves it again.
            requests[0] = server.begin_receive(tagged(0, 0), 1);
            server.wait(count, &requests, Some(&[(requests[0], got(0, 0, &[2]))]));
        }
        clients(server)
    };
    assert!(first(Any, &[(0, got(0, 0, &[1]))]), "client 1 may be passed over twice");
    assert!(!first(Several, &[(0, got(0, 0, &[1]))]));
    assert!(first(Several, &[(0, got(0, 0, &[1])), (1, got(1, 0, &[1]))]));
}
