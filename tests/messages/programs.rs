//! Random programs of blocking calls, and the messages that they receive.

use fencepost::{Any, Element, ErrorClass, Result, Sources, Status, Tags, World};
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Id as _, Rank};
use fencepost_planner::ir::calls::SendMode;
use fencepost_tests_reference::{Completed, Completion, Envelope, MessageCall};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::messages::{BEFORE, received};

/// The number of bytes of each rank's buffer. Either all buffered sends of the rank fit together,
/// or one of them is too long for the buffer.
pub const BUFFER: usize = 16;

#[derive(Clone, Debug)]
pub struct Outgoing {
    mode: SendMode,
    to: usize,
    tag: u32,
    values: Vec<u8>,
    signed: bool,
}

#[derive(Clone, Debug)]
pub struct Wanted {
    from: Envelope,
    room: usize,
    signed: bool,
}

/// A blocking call.
#[derive(Clone, Debug)]
pub enum Action {
    Send(Outgoing),
    Receive(Wanted),
    Exchange(Outgoing, Wanted),
    Probe { from: Envelope, waits: bool },
}

/// Draws a program for each rank. Receives are in the order of the sends. Then some calls are
/// added, and some change places.
pub fn draw(random: &mut Random) -> Vec<Vec<Action>> {
    let ranks = 2 + random.below(2);
    let mut programs = vec![Vec::new(); ranks];
    let mut value = 0;
    for _ in 0..2 + random.below(3) {
        let (from, to) = (random.below(ranks), random.below(ranks));
        let outgoing = outgoing(random, to, &mut value);
        let wanted = wanted(random, from, &outgoing);
        if from == to {
            programs[from].push(Action::Exchange(outgoing, wanted));
            continue;
        }
        if random.once_in(4) {
            let back = self::outgoing(random, from, &mut value);
            let other = self::wanted(random, to, &back);
            programs[from].push(Action::Exchange(outgoing, other));
            programs[to].push(Action::Exchange(back, wanted));
            continue;
        }
        programs[from].push(Action::Send(outgoing));
        if random.once_in(3) {
            programs[to].push(Action::Probe { from: wanted.from, waits: random.once_in(2) });
        }
        programs[to].push(Action::Receive(wanted));
    }
    if random.once_in(3) {
        let program = &mut programs[random.below(ranks)];
        let (a, b) = (random.below(program.len()), random.below(program.len()));
        if !program.is_empty() {
            program.swap(a, b);
        }
    }
    programs
}

fn outgoing(random: &mut Random, to: usize, value: &mut u8) -> Outgoing {
    use SendMode::*;
    let mode = random.one_of(&[Standard, Standard, Synchronous, Buffered, Ready]);
    *value += 1;
    let len = if mode == Buffered && random.once_in(5) { BUFFER + 1 } else { random.below(3) };
    Outgoing { mode, to, tag: random.below(2) as u32, values: vec![*value; len], signed: random.once_in(8) }
}

fn wanted(random: &mut Random, from: usize, outgoing: &Outgoing) -> Wanted {
    let source = (!random.once_in(3)).then(|| Rank::new(from));
    let tag = (!random.once_in(3)).then_some(outgoing.tag);
    let room = if random.once_in(6) { 1 } else { 2 };
    Wanted { from: Envelope { source, tag }, room, signed: outgoing.signed ^ random.once_in(12) }
}

fn element(signed: bool) -> ElementType {
    ElementType::scalar(if signed { Scalar::I8 } else { Scalar::U8 })
}

/// The calls of a program in the form of the reference.
#[derive(Default)]
pub struct Calls(pub Vec<MessageCall>);

impl Calls {
    /// Returns the calls of actions that were not run.
    pub fn of(actions: &[Action]) -> Vec<MessageCall> {
        let mut calls = Self::default();
        for action in actions {
            match action {
                Action::Send(outgoing) => calls.sent(outgoing, None),
                Action::Receive(wanted) => calls.received(wanted, None),
                Action::Exchange(outgoing, wanted) => calls.exchanged(outgoing, wanted, None),
                Action::Probe { from, waits } => {
                    calls.0.push(MessageCall::Probe { from: *from, waits: *waits, found: None });
                }
            }
        }
        calls.0
    }

    fn begin_send(&mut self, outgoing: &Outgoing, sent: Option<bool>) -> usize {
        let Outgoing { mode, to, tag, values, signed } = outgoing.clone();
        let (to, element) = (Rank::new(to), element(signed));
        let sent = sent.filter(|_| mode == SendMode::Buffered);
        self.0.push(MessageCall::Send { mode, to, tag, element, bytes: values, sent });
        self.0.len() - 1
    }

    fn begin_receive(&mut self, Wanted { from, room, signed }: &Wanted) -> usize {
        self.0.push(MessageCall::Receive { from: *from, element: element(*signed), room: *room });
        self.0.len() - 1
    }

    fn complete(&mut self, requests: Vec<usize>, completed: Option<Vec<(usize, Completed)>>) {
        self.0.push(MessageCall::Complete { requests, count: Completion::All, waits: true, completed });
    }

    fn sent(&mut self, outgoing: &Outgoing, sent: Option<bool>) {
        let request = self.begin_send(outgoing, sent);
        // A buffered send that found no room has not begun, so there is nothing to complete.
        let completed = if sent == Some(false) { vec![] } else { vec![(request, Completed::Sent)] };
        self.complete(vec![request], sent.map(|_| completed));
    }

    fn received(&mut self, wanted: &Wanted, completed: Option<Completed>) {
        let request = self.begin_receive(wanted);
        self.complete(vec![request], completed.map(|completed| vec![(request, completed)]));
    }

    fn exchanged(&mut self, outgoing: &Outgoing, wanted: &Wanted, completed: Option<Completed>) {
        let receive = self.begin_receive(wanted);
        let send = self.begin_send(&Outgoing { mode: SendMode::Standard, ..outgoing.clone() }, None);
        let completed = completed.map(|completed| vec![(receive, completed), (send, Completed::Sent)]);
        self.complete(vec![receive, send], completed);
    }
}

/// Runs the program of this rank. Returns its calls with their results.
pub fn play(world: &World, actions: &[Action]) -> Result<Vec<MessageCall>> {
    let mut calls = Calls::default();
    world.attach_buffer(BUFFER)?;
    for action in actions {
        match action {
            Action::Send(outgoing) => {
                let sent = send(world, outgoing)?;
                calls.sent(outgoing, Some(sent));
            }
            Action::Receive(wanted) => {
                let came = if wanted.signed {
                    receive::<i8>(world, None, wanted)
                } else {
                    receive::<u8>(world, None, wanted)
                };
                calls.received(wanted, Some(came?));
            }
            Action::Exchange(outgoing, wanted) => {
                let came = if wanted.signed {
                    receive::<i8>(world, Some(outgoing), wanted)
                } else {
                    receive::<u8>(world, Some(outgoing), wanted)
                };
                calls.exchanged(outgoing, wanted, Some(came?));
            }
            Action::Probe { from, waits } => {
                let (source, tag) = named(from);
                let found =
                    if *waits { Some(world.probe(source, tag)?) } else { world.try_probe(source, tag)? };
                let found = found
                    .map(|Status { source, tag, len, .. }| (Rank::new(source.unwrap()), tag.unwrap(), len));
                calls.0.push(MessageCall::Probe { from: *from, waits: *waits, found: Some(found) });
            }
        }
    }
    world.barrier()?;
    Ok(calls.0)
}

fn named(from: &Envelope) -> (Sources, Tags) {
    let source = from.source.map_or(Any.into(), |rank| Sources::Rank(rank.index()));
    (source, from.tag.map_or(Any.into(), Tags::Tag))
}

/// Sends a message. Returns whether it was sent.
fn send(world: &World, Outgoing { mode, to, tag, values, signed }: &Outgoing) -> Result<bool> {
    fn typed<T: Element>(world: &World, mode: SendMode, to: usize, tag: u32, values: &[T]) -> Result<()> {
        match mode {
            SendMode::Standard => world.message(to, tag).send(values),
            SendMode::Synchronous => world.message(to, tag).synchronous().send(values),
            SendMode::Buffered => world.message(to, tag).buffered().send(values),
            SendMode::Ready => world.message(to, tag).ready().send(values),
        }
    }
    let sent = if *signed {
        let values: Vec<i8> = values.iter().map(|&value| value as i8).collect();
        typed(world, *mode, *to, *tag, &values)
    } else {
        typed(world, *mode, *to, *tag, values)
    };
    match sent {
        Ok(()) => Ok(true),
        Err(error) if error.class() == ErrorClass::Buffer => Ok(false),
        Err(error) => Err(error),
    }
}

/// Receives a message, alone or in one call with a send. Returns the result.
fn receive<T: Element>(world: &World, outgoing: Option<&Outgoing>, wanted: &Wanted) -> Result<Completed> {
    let (source, tag) = named(&wanted.from);
    let mut room = vec![T::zeroed(); wanted.room];
    bytemuck::cast_slice_mut::<T, u8>(&mut room).fill(BEFORE);
    let result = match outgoing {
        None => world.recv_into(source, tag, &mut room),
        Some(Outgoing { to, tag: own, values, signed: false, .. }) => {
            world.sendrecv(*to, *own, values, source, tag, &mut room)
        }
        Some(Outgoing { to, tag: own, values, .. }) => {
            let values: Vec<i8> = values.iter().map(|&value| value as i8).collect();
            world.sendrecv(*to, *own, values, source, tag, &mut room)
        }
    };
    let room: &[u8] = bytemuck::cast_slice(&room);
    received(room, result)
}
