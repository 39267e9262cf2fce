//! Models of the messages that a rank keeps. loom executes them in every order of steps, with a
//! bound on preemptions.
//!
//! The models execute the code of [`messages`] and of [`state`](crate::state) itself, over ends of
//! `local` that use loom's atomics. `park` has no time limit here, so a lost wake-up is a deadlock.
//! Run the models with `RUSTFLAGS="--cfg loom" cargo test -p fencepost-runtime --lib models::`.
//!
//! The waits of a sender and of an attendant are taken away in turn. loom must find each missing
//! wait, because elements are wrong or because a rank sleeps forever.

use crate::kernel::element::element_type;
use crate::kernel::waits::{Wait, take_away, without};
use crate::messages::state::completion::Queue;
use crate::messages::state::limits::Limits;
use crate::messages::state::outbox::Outbox;
use crate::messages::state::receive::Room;
use crate::messages::state::status::{Sources, Tags};
use crate::messages::{self, Outgoing};
use crate::protocol::state::stalls::Settings;
use crate::state::call::Call;
use crate::state::registry::Registry;
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::calls::SendMode;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_transport::explore::{model, rejected, without_fences};
use fencepost_transport::{Endpoint, Leave, local};
use loom::cell::UnsafeCell;
use loom::thread;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of elements that are sent together with their message. If there are more than
/// three, the sender copies the elements, and the receiver reads the copy in place.
const EAGER: usize = 4;
/// The number of elements of a message whose elements stay in place until the receiver has read
/// them.
const LONG: usize = EAGER + 1;

/// Runs each program on a rank of its own. Each rank is a thread.
fn ranks(programs: &[fn(&World)]) {
    let (registry, size) = (Arc::new(Registry::default()), programs.len());
    let run = move |end, registry: Arc<Registry>, program: fn(&World)| {
        let chosen = (Mode::default(), None);
        let world = World::new(
            (1, size),
            Endpoint::Local(end),
            registry,
            TransportKind::Local,
            Machine::default(),
            chosen,
        );
        // An endpoint leaves the world when it is dropped, and must not do so while a rejected
        // model unwinds.
        let world = ManuallyDrop::new(world);
        world.core().messages.limits.set(Limits { eager: Some(8 * EAGER), ..Limits::default() });
        let never = Settings { after: None, ..Settings::default() };
        world.core().stalls.borrow_mut().settings = Arc::new(never);
        program(&world);
        world.leave(Leave::Finished);
        drop(ManuallyDrop::into_inner(world));
    };
    let mut ends = local(size).into_iter();
    let first = ends.next().expect("a rank at least");
    let spawn = |(end, program): (_, &fn(&World))| {
        let (registry, program) = (registry.clone(), *program);
        thread::spawn(move || run(end, registry, program))
    };
    let others: Vec<_> = ends.zip(&programs[1..]).map(spawn).collect();
    run(first, registry.clone(), programs[0]);
    others.into_iter().for_each(|other| other.join().expect("a panic ends the model"));
}

fn outgoing(to: usize, tag: u32, elements: &[u64]) -> Outgoing<'_> {
    let bytes = bytemuck::cast_slice(elements);
    Outgoing { to, tag, element: element_type::<u64>(), bytes, mode: SendMode::Standard }
}

/// Sends elements, and overwrites them as soon as that is allowed.
fn send(world: &World, to: usize, tag: u32, mut elements: Vec<u64>) {
    let call = Call::named(0, "a send");
    messages::send(world.core(), &outgoing(to, tag, &elements), &call).expect("its receiver is here");
    elements.fill(99);
    std::mem::forget(elements); // without the wait, the receiver may read them late
}

/// Receives elements, and compares them with the expected ones.
fn receive<const LEN: usize>(world: &World, from: usize, tag: u32, expected: [u64; LEN]) {
    let mut elements = vec![0u64; LEN];
    let room = Room::Elements(elements.as_mut_ptr().cast(), Datatype::run(0..LEN));
    let (from, tag) = (Sources::Rank(from), Tags::Tag(tag));
    let call = Call::named(0, "a receive");
    // SAFETY: the elements exist until this returns.
    let status = unsafe { messages::receive::<u64>(world.core(), from, tag, room, &call) };
    match status {
        // If senders do not wait before they leave, the sender may have left before its send was
        // complete.
        Err(_) if without(Wait::Leaving) => {}
        status => {
            assert_eq!(status.expect("its sender has sent it").len, LEN);
            assert_eq!(elements, expected);
        }
    }
}

/// Sends and receives a short message and a long one.
fn inbox() {
    ranks(&[
        |world| {
            send(world, 1, 1, vec![1]);
            send(world, 1, 1, vec![2; LONG]);
        },
        |world| {
            receive(world, 0, 1, [1]);
            receive(world, 0, 1, [2; LONG]);
        },
    ]);
}

/// Sends and receives messages that are copied. Later messages use the memory of these copies
/// again.
fn memory() {
    ranks(&[
        |world| (1..=2).for_each(|value| send(world, 1, 1, vec![value; EAGER])),
        |world| (1..=2).for_each(|value| receive(world, 0, 1, [value; EAGER])),
    ]);
}

/// Begins two receives and two sends of long messages, and completes them in the order in which
/// they become complete.
fn completion() {
    ranks(&[
        |world| {
            let (core, call) = (world.core(), Call::named(0, "a send"));
            let (queue, mut elements) = (Rc::<Queue>::default(), [vec![1; LONG], vec![2; LONG]]);
            for (tag, elements) in elements.iter().enumerate() {
                // SAFETY: the elements stay until the send is complete, unless a test takes that
                // wait away.
                let begun = unsafe { messages::begin_send(core, &outgoing(1, tag as u32, elements), &call) };
                begun.expect("its receiver is here").expect("a long one").completion().tell(&queue, tag);
            }
            for _ in 0..2 {
                let complete = next(world, &queue);
                elements[complete].fill(99);
            }
            std::mem::forget(elements);
        },
        |world| {
            let (core, call) = (world.core(), Call::named(0, "a receive"));
            let (queue, mut rooms) = (Rc::<Queue>::default(), [[0u64; LONG]; 2]);
            for (tag, room) in rooms.iter_mut().enumerate() {
                let room = Room::Elements(room.as_mut_ptr().cast(), Datatype::run(0..LONG));
                let wanted = (Sources::Rank(0), Tags::Tag(tag as u32), room);
                // SAFETY: the room exists until the receive is complete.
                let begun = unsafe { messages::begin_receive::<u64>(core, wanted, &call) };
                begun.expect("its sender is here").expect("from a rank").completion().tell(&queue, tag);
            }
            let order = [next(world, &queue), next(world, &queue)];
            assert_eq!((order, rooms), ([0, 1], [[1; LONG], [2; LONG]]));
        },
    ]);
}

/// Waits until a request of the queue is complete, and returns the request that was completed
/// first. A test can take away the wait for sends.
fn next(world: &World, queue: &Queue) -> usize {
    if without(Wait::Leaving) && world.rank() == 0 {
        return 0;
    }
    let call = Call::named(0, "a wait for any");
    messages::wait_for_some(world.core(), (&String::new, &|| None), |_| queue.len() > 0, &call);
    queue.pop().expect("one is complete")
}

/// Lets the attendant of a rank hand out the elements of a message while the world ends. If
/// `takes_back`, the rank takes the elements back before it writes them.
fn attendant(takes_back: bool) {
    // The elements are never freed: the test is about the order in which threads access them.
    let elements: &'static UnsafeCell<[u8; 8]> = Box::leak(Box::new(UnsafeCell::new([1; 8])));
    let outbox = Arc::new(Outbox::default());
    // SAFETY: the bytes exist, and are written only after they were removed from the outbox, unless
    // a test takes that wait away.
    elements.with(|bytes| unsafe { outbox.expose(1, 0, &*bytes) });
    let shows = outbox.clone();
    let attendant = thread::spawn(move || {
        shows.show(1, 0, 0, |shown| {
            if !shown.is_empty() {
                // SAFETY: no thread writes the bytes while they are shown. Otherwise loom reports
                // the write.
                elements.with(|bytes| assert_eq!(unsafe { *bytes }, [1; 8]));
            }
        });
    });
    if takes_back {
        outbox.remove(1, 0);
    }
    // SAFETY: no thread reads the bytes any more. Otherwise loom reports the read.
    elements.with_mut(|bytes| unsafe { *bytes = [99; 8] });
    attendant.join().expect("a panic ends the model");
}

#[test]
fn messages_are_received_whole_and_in_order_and_who_waits_is_woken() {
    model(1, inbox);
}

#[test]
fn w3_a_sender_that_does_not_wait_until_its_elements_were_read_is_caught() {
    let complaint = reject_without(Wait::Leaving, inbox);
    assert!(complaint.contains("left == right"), "{complaint}");
}

#[test]
fn without_the_fences_a_rank_sleeps_through_its_message() {
    let complaint = without_fences(|| rejected(2, inbox));
    assert!(complaint.contains("deadlock"), "{complaint}");
}

#[test]
fn memory_of_messages_is_used_again_when_they_were_read() {
    model(2, memory);
}

#[test]
fn w4_memory_of_a_message_that_was_not_read_is_caught() {
    let complaint = reject_without(Wait::Reuse, memory);
    assert!(complaint.contains("left == right"), "{complaint}");
}

#[test]
fn requests_are_completed_in_order_and_who_waits_for_any_is_woken() {
    model(1, completion);
}

#[test]
fn w3_a_request_that_is_returned_before_it_is_complete_is_caught() {
    let complaint = reject_without(Wait::Leaving, completion);
    assert!(complaint.contains("left == right"), "{complaint}");
}

#[test]
fn without_the_fences_a_rank_sleeps_through_its_completions() {
    let complaint = without_fences(|| rejected(2, completion));
    assert!(complaint.contains("deadlock"), "{complaint}");
}

#[test]
fn elements_that_were_taken_back_are_not_handed_out() {
    model(3, || attendant(true));
}

#[test]
fn elements_that_are_written_while_an_attendant_may_hand_them_out_are_caught() {
    let complaint = rejected(3, || attendant(false));
    assert!(complaint.contains("Causality violation"), "{complaint}");
}

/// Checks that loom rejects a model in which ranks omit a wait.
fn reject_without(wait: Wait, run: fn()) -> String {
    take_away(Some(wait));
    let complaint = rejected(2, run);
    take_away(None);
    complaint
}
