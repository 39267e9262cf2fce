//! Random programs of requests, and their results.

use fencepost::{Any, Completed, Element, Error, ErrorClass, Outcome, Refused, Request, RequestSet, Result};
use fencepost::{Sources, Status, Tags, World};
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::ids::{Id as _, Rank};
use fencepost_planner::ir::calls::SendMode;
use fencepost_tests_reference as reference;
use fencepost_tests_reference::{Completion, Envelope, MessageCall};
use fencepost_tests_support::random::Random;
use fencepost_tests_worlds::messages::{BEFORE, as_before, received};
use std::collections::BTreeMap;
use std::task::Poll;

/// The number of bytes of each rank's buffer. Either all buffered sends of the rank fit together,
/// or one of them is too long for the buffer.
pub const BUFFER: usize = 16;

/// A call of a program. A request is named by the position of the call that begins it.
#[derive(Clone, Debug)]
pub enum Action {
    Send {
        mode: SendMode,
        to: usize,
        tag: u32,
        values: Vec<u8>,
        signed: bool,
    },
    Receive {
        from: Envelope,
        room: Option<usize>,
        signed: bool,
    },
    /// Cancels the request at this position.
    Cancel(usize),
    /// Completes only the request at this position.
    One {
        request: usize,
        waits: bool,
    },
    /// Completes some or all of the requests that are not complete.
    Set {
        count: Completion,
        waits: bool,
    },
    Probe {
        from: Envelope,
        waits: bool,
    },
}

/// The room of a receive that takes a message of any length.
const ANY_LENGTH: usize = 1 << 20;

/// Draws a program for each rank. The programs have messages and their receives, in any order, and
/// calls that complete these requests. Each program finally completes all requests.
pub fn draw(random: &mut Random) -> Vec<Vec<Action>> {
    use SendMode::*;
    let ranks = 2 + random.below(2);
    let mut programs: Vec<Vec<Action>> = vec![Vec::new(); ranks];
    for value in 0..2 + random.below(3) {
        let (from, to) = (random.below(ranks), random.below(ranks));
        let mode = random.one_of(&[Standard, Standard, Synchronous, Buffered, Ready]);
        let len = if mode == Buffered && random.once_in(5) { BUFFER + 1 } else { random.below(3) };
        let (tag, signed) = (random.below(2) as u32, random.once_in(8));
        let values = vec![value as u8 + 1; len];
        programs[from].push(Action::Send { mode, to, tag, values, signed });
        complete(random, &mut programs[from]);
        let source = (!random.once_in(3)).then(|| Rank::new(from));
        let from = Envelope { source, tag: (!random.once_in(3)).then_some(tag) };
        let room = if random.once_in(3) { None } else { Some(1 + usize::from(!random.once_in(6))) };
        if random.once_in(8) {
            programs[to].push(Action::Probe { from, waits: random.once_in(3) });
        }
        let at = random.below(programs[to].len() + 1);
        let receive = Action::Receive { from, room, signed: signed ^ random.once_in(12) };
        insert(&mut programs[to], at, receive);
        complete(random, &mut programs[to]);
    }
    for program in &mut programs {
        program.push(Action::Set { count: Completion::All, waits: true });
    }
    programs
}

/// Inserts a call. Adjusts the positions in later calls, so that they still name the same calls.
fn insert(program: &mut Vec<Action>, at: usize, action: Action) {
    for later in &mut program[at..] {
        if let Action::Cancel(request) | Action::One { request, .. } = later
            && *request >= at
        {
            *request += 1;
        }
    }
    program.insert(at, action);
}

/// Adds a call that may complete something.
fn complete(random: &mut Random, program: &mut Vec<Action>) {
    let begins = |action: &Action| matches!(action, Action::Send { .. } | Action::Receive { .. });
    let begun: Vec<usize> = (0..program.len()).filter(|&at| begins(&program[at])).collect();
    let Some(&last) = begun.last() else { return };
    let request = if random.once_in(2) { last } else { begun[random.below(begun.len())] };
    let waits = random.once_in(3);
    program.push(match random.below(6) {
        0 => Action::One { request, waits },
        1 if matches!(program[request], Action::Receive { .. }) => Action::Cancel(request),
        2 => Action::Set { count: Completion::Any, waits },
        3 => Action::Set { count: Completion::Some, waits },
        4 if !waits => Action::Set { count: Completion::All, waits },
        _ => return,
    });
}

/// Returns whether a program asks at some time which requests are complete. A request whose
/// elements are in transit is not complete.
pub fn asks(program: &[Action]) -> bool {
    program.iter().any(|action| match action {
        Action::One { waits, .. } => !waits,
        Action::Set { count, waits } => !waits || *count == Completion::Some,
        _ => false,
    })
}

fn element(signed: bool) -> ElementType {
    ElementType::scalar(if signed { Scalar::I8 } else { Scalar::U8 })
}

/// Returns whether some call completes or cancels only the request of this action. All other
/// requests are in a set.
fn is_alone(actions: &[Action], at: usize) -> bool {
    actions
        .iter()
        .any(|action| matches!(action, Action::Cancel(one) | Action::One { request: one, .. } if *one == at))
}

/// The calls of a rank in the form of the reference. `places` has the position of each action's
/// call in `all`.
#[derive(Default)]
struct Calls {
    all: Vec<MessageCall>,
    places: Vec<usize>,
    /// The requests that are not complete as far as this rank knows, by action.
    open: BTreeMap<usize, usize>,
}

impl Calls {
    fn begin(&mut self, at: usize, call: MessageCall, active: bool) {
        self.places.push(self.all.len());
        if active {
            self.open.insert(at, self.all.len());
        }
        self.all.push(call);
    }

    fn complete(
        &mut self,
        requests: Vec<usize>,
        (count, waits): (Completion, bool),
        completed: Option<Vec<(usize, reference::Completed)>>,
    ) {
        let completed = completed.map(|mut completed| {
            completed.sort_by_key(|(request, _)| *request);
            completed
        });
        self.all.push(MessageCall::Complete { requests, count, waits, completed });
    }
}

fn sends(action: &Action, sent: Option<bool>) -> MessageCall {
    let Action::Send { mode, to, tag, values, signed } = action.clone() else { unreachable!() };
    let (to, element) = (Rank::new(to), element(signed));
    let sent = sent.filter(|_| mode == SendMode::Buffered);
    MessageCall::Send { mode, to, tag, element, bytes: values, sent }
}

fn receives(action: &Action) -> MessageCall {
    let Action::Receive { from, room, signed } = action.clone() else { unreachable!() };
    MessageCall::Receive { from, element: element(signed), room: room.unwrap_or(ANY_LENGTH) }
}

/// Returns the calls of actions that were not run.
pub fn bare(actions: &[Action]) -> Vec<MessageCall> {
    let mut calls = Calls::default();
    for (at, action) in actions.iter().enumerate() {
        let some = |alone: bool| {
            let some = calls.open.iter().filter(|(at, _)| is_alone(actions, **at) == alone);
            some.map(|(_, call)| *call).collect::<Vec<_>>()
        };
        match action {
            Action::Send { .. } => calls.begin(at, sends(action, None), true),
            Action::Receive { .. } => calls.begin(at, receives(action), true),
            Action::Set { count, waits } => {
                let (requests, last) = (some(false), some(true));
                calls.places.push(calls.all.len());
                calls.complete(requests, (*count, *waits), None);
                if at + 1 == actions.len() {
                    last.iter().for_each(|&one| calls.complete(vec![one], (Completion::All, true), None));
                }
            }
            Action::One { request, waits } => {
                let requests = vec![calls.places[*request]];
                calls.places.push(calls.all.len());
                calls.complete(requests, (Completion::All, *waits), None);
            }
            Action::Cancel(request) => {
                let request = calls.places[*request];
                calls.places.push(calls.all.len());
                calls.all.push(MessageCall::Cancel { request });
            }
            Action::Probe { from, waits } => {
                calls.places.push(calls.all.len());
                calls.all.push(MessageCall::Probe { from: *from, waits: *waits, found: None });
            }
        }
    }
    calls.all
}

/// The value that a request of a program returns: the room of a receive, or the bytes that were
/// sent.
type Bytes = Vec<u8>;

/// Runs the program of this rank. Returns its calls with their results.
pub fn play(world: &World, actions: &[Action]) -> Result<Vec<MessageCall>> {
    let mut player =
        Player { actions, calls: Calls::default(), set: world.requests(), requests: BTreeMap::new() };
    world.attach_buffer(BUFFER)?;
    for (at, action) in actions.iter().enumerate() {
        match action {
            Action::Send { .. } => match begin_send(world, action) {
                Ok(request) => {
                    player.calls.begin(at, sends(action, Some(true)), true);
                    player.keep(at, request)?;
                }
                Err(error) if error.class() == ErrorClass::Buffer => {
                    player.calls.begin(at, sends(action, Some(false)), false);
                }
                Err(error) => return Err(error),
            },
            Action::Receive { .. } => {
                player.calls.begin(at, receives(action), true);
                player.keep(at, begin_receive(world, action)?)?;
            }
            Action::Set { count, waits } => player.complete(*count, *waits)?,
            Action::One { request, waits } => player.one(*request, *waits)?,
            Action::Cancel(request) => player.cancel(*request),
            Action::Probe { from, waits } => {
                let (source, tag) = named(from);
                let found =
                    if *waits { Some(world.probe(source, tag)?) } else { world.try_probe(source, tag)? };
                let found = found
                    .map(|Status { source, tag, len, .. }| (Rank::new(source.unwrap()), tag.unwrap(), len));
                player.calls.places.push(player.calls.all.len());
                player.calls.all.push(MessageCall::Probe { from: *from, waits: *waits, found: Some(found) });
            }
        }
    }
    assert!(player.set.is_empty() && player.requests.is_empty(), "{:?}", player.set);
    world.barrier()?;
    Ok(player.calls.all)
}

struct Player<'a> {
    actions: &'a [Action],
    calls: Calls,
    set: RequestSet<(usize, Bytes)>,
    /// Requests that are completed alone, by action. All others are in the set.
    requests: BTreeMap<usize, Request<(usize, Bytes)>>,
}

impl Player<'_> {
    /// Puts a request into the set, unless a later call completes or cancels only this request.
    fn keep(&mut self, at: usize, request: Request<Bytes>) -> Result<()> {
        let request = request.map(move |bytes| (at, bytes));
        if is_alone(self.actions, at) {
            self.requests.insert(at, request);
        } else {
            self.set.push(request)?;
        }
        Ok(())
    }

    /// Returns the result of the request of an action.
    fn became(
        &mut self,
        at: usize,
        bytes: &[u8],
        result: Result<Status, Error>,
    ) -> Result<(usize, reference::Completed)> {
        let call = self.calls.open.remove(&at).expect("it was begun, and is not complete");
        let completed = match &self.actions[at] {
            Action::Send { values, .. } => {
                assert_eq!((result?, bytes), (Status::default(), &values[..]));
                reference::Completed::Sent
            }
            Action::Receive { room, .. } => {
                if let (None, Ok(status)) = (room, &result) {
                    assert_eq!(bytes.len(), status.len, "more was returned than was received");
                }
                received(bytes, result)?
            }
            _ => unreachable!("only these begin requests"),
        };
        Ok((call, completed))
    }

    fn complete(&mut self, count: Completion, waits: bool) -> Result<()> {
        // The requests in the set. Other requests are completed one by one, after the last call.
        let requests: Vec<usize> = {
            let alone: Vec<usize> = self.requests.keys().copied().collect();
            let open = self.calls.open.iter().filter(|(at, _)| !alone.contains(at));
            open.map(|(_, call)| *call).collect()
        };
        let mut came = Vec::new();
        let mut some = |outcomes: Vec<Outcome<(usize, Bytes)>>| came.extend(outcomes);
        let all = |completed: Vec<Completed<_>>| completed.into_iter().map(Outcome::Success).collect();
        let failed = |refused: Refused<Vec<Outcome<_>>>| {
            let (outcomes, error) = refused.into_parts();
            if error.class() == ErrorClass::InStatus && !error.world_ended() {
                Ok(outcomes)
            } else {
                Err(error)
            }
        };
        match (count, waits) {
            (Completion::Any, _) => {
                let any = match waits {
                    true => self.set.wait_any(),
                    false => self.set.test_any().map(|tested| match tested {
                        Poll::Ready(completed) => completed,
                        Poll::Pending => None,
                    }),
                };
                match any {
                    Ok(completed) => some(all(completed.into_iter().collect())),
                    Err(refused) if refused.error().world_ended() => return Err(refused.into()),
                    Err(refused) => {
                        let ((place, buffer), error) = refused.into_parts();
                        let (at, bytes) = buffer;
                        let _ = place;
                        let told = self.became(at, &bytes, Err(error))?;
                        self.calls.places.push(self.calls.all.len());
                        self.calls.complete(requests, (count, waits), Some(vec![told]));
                        return Ok(());
                    }
                }
            }
            (Completion::Some, true) => {
                some(self.set.wait_some().map(|came| all(came.unwrap_or_default())).or_else(failed)?)
            }
            (Completion::Some, false) => {
                some(self.set.test_some().map(|came| all(came.unwrap_or_default())).or_else(failed)?)
            }
            (Completion::All, true) => some(self.set.wait_all().map(all).or_else(failed)?),
            (Completion::All, false) => {
                some(self.set.test_all().map(|came| all(came.unwrap_or_default())).or_else(failed)?)
            }
        }
        let mut told = Vec::new();
        for outcome in came {
            told.push(match outcome {
                Outcome::Success(Completed { buffer: (at, bytes), status, .. }) => {
                    self.became(at, &bytes, Ok(status))?
                }
                Outcome::Failed { buffer: (at, bytes), error, .. } => self.became(at, &bytes, Err(error))?,
                other => panic!("{other:?}: no rank is lost"),
            });
        }
        self.calls.places.push(self.calls.all.len());
        self.calls.complete(requests, (count, waits), Some(told));
        if self.calls.places.len() == self.actions.len() {
            for (at, request) in std::mem::take(&mut self.requests) {
                let call = self.calls.open[&at];
                let told = self.finish(request)?;
                self.calls.complete(vec![call], (Completion::All, true), Some(vec![told]));
            }
        }
        Ok(())
    }

    fn finish(&mut self, request: Request<(usize, Bytes)>) -> Result<(usize, reference::Completed)> {
        match request.wait() {
            Ok(((at, bytes), status)) => self.became(at, &bytes, Ok(status)),
            Err(refused) => {
                let ((at, bytes), error) = refused.into_parts();
                self.became(at, &bytes, Err(error))
            }
        }
    }

    fn one(&mut self, at: usize, waits: bool) -> Result<()> {
        let requests = vec![self.calls.places[at]];
        let told = match self.requests.remove(&at) {
            None => vec![],
            Some(mut request) => {
                if waits || request.test() {
                    vec![self.finish(request)?]
                } else {
                    self.requests.insert(at, request);
                    vec![]
                }
            }
        };
        self.calls.places.push(self.calls.all.len());
        self.calls.complete(requests, (Completion::All, waits), Some(told));
        Ok(())
    }

    fn cancel(&mut self, at: usize) {
        let request = self.calls.places[at];
        self.calls.places.push(self.calls.all.len());
        self.calls.all.push(MessageCall::Cancel { request });
        match self.requests.remove(&at).map(Request::cancel) {
            None => {}
            Some(Err(request)) => drop(self.requests.insert(at, request)),
            Some(Ok((_, bytes))) => {
                assert!(as_before(&bytes));
                self.calls.open.remove(&at);
                let told = vec![(request, reference::Completed::Cancelled)];
                self.calls.complete(vec![request], (Completion::All, false), Some(told));
            }
        }
    }
}

fn named(from: &Envelope) -> (Sources, Tags) {
    let source = from.source.map_or(Any.into(), |rank| Sources::Rank(rank.index()));
    (source, from.tag.map_or(Any.into(), Tags::Tag))
}

fn begin_send(world: &World, action: &Action) -> Result<Request<Bytes>> {
    fn typed<T: Element>(
        world: &World,
        mode: SendMode,
        to: usize,
        tag: u32,
        values: Vec<T>,
    ) -> Result<Request<Bytes>> {
        let request = match mode {
            SendMode::Standard => world.message(to, tag).isend(values)?,
            SendMode::Synchronous => world.message(to, tag).synchronous().isend(values)?,
            SendMode::Buffered => world.message(to, tag).buffered().isend(values)?,
            SendMode::Ready => world.message(to, tag).ready().isend(values)?,
        };
        Ok(request.map(|values| bytemuck::cast_slice(&values).to_vec()))
    }
    let Action::Send { mode, to, tag, values, signed } = action else { unreachable!() };
    if *signed {
        let values: Vec<i8> = values.iter().map(|&value| value as i8).collect();
        typed(world, *mode, *to, *tag, values)
    } else {
        typed(world, *mode, *to, *tag, values.clone())
    }
}

fn begin_receive(world: &World, action: &Action) -> Result<Request<Bytes>> {
    fn typed<T: Element>(world: &World, from: &Envelope, room: Option<usize>) -> Result<Request<Bytes>> {
        let (source, tag) = named(from);
        let request = match room {
            None => world.irecv::<T>(source, tag)?,
            Some(len) => {
                let mut room = vec![T::zeroed(); len];
                bytemuck::cast_slice_mut::<T, u8>(&mut room).fill(BEFORE);
                world.irecv_into(source, tag, room)?
            }
        };
        Ok(request.map(|values| bytemuck::cast_slice(&values).to_vec()))
    }
    let Action::Receive { from, room, signed } = action else { unreachable!() };
    if *signed { typed::<i8>(world, from, *room) } else { typed::<u8>(world, from, *room) }
}
