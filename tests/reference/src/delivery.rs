//! Tries all orders of the small steps of programs of messages (24 to 27). Finds the results that
//! the programs can have, and the calls in which they can stop.
//!
//! A step is a call of a rank, the arrival of a message, or the arrival of the notification that a
//! buffered message was received. The steps may happen in every order that keeps the order of each
//! rank's calls and the order of messages from each rank to each other rank. Each state is visited
//! once.

use super::messages::{Completed, Completion, Envelope, MessageCall, Standard};
use fencepost_planner::element::ElementType;
use fencepost_planner::error::{Error, ErrorClass, Result};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::calls::SendMode;
use std::collections::{BTreeMap, BTreeSet};

/// The call that began a request or a message: its rank, and its position in the rank's program.
type Position = (usize, usize);

/// Looks for an order of steps that gives all results in `programs`, which has one program for each
/// rank.
///
/// Returns `None` if there is such an order. Otherwise returns the first result, by rank and
/// program order, that no order gives together with the results before it. Each rank has `buffer`
/// bytes for the messages of its buffered sends.
///
/// # Errors
/// `ErrorClass::Rank` for a send to a rank that does not exist. `ErrorClass::Arg` for a request
/// that the rank has not begun, or if there are too many orders to try.
///
/// # Cost
/// A search over the states that the programs can be in.
pub fn explains_messages(programs: &[Vec<MessageCall>], buffer: usize) -> Result<Option<(Rank, usize)>> {
    check(programs)?;
    let mut results = Vec::new();
    for (rank, program) in programs.iter().enumerate() {
        results.extend((0..program.len()).filter(|at| brings(&program[*at])).map(|at| (rank, at)));
    }
    let model = |known: usize| Model {
        programs,
        buffer,
        standard: None,
        known: results[..known].iter().copied().collect(),
    };
    if model(results.len()).ends()? {
        return Ok(None);
    }
    // Some order gives the first `right` results together, and no order gives the first `wrong`
    // results.
    let (mut right, mut wrong) = (0, results.len());
    while wrong - right > 1 {
        let middle = right.midpoint(wrong);
        if model(middle).ends()? {
            right = middle;
        } else {
            wrong = middle;
        }
    }
    Ok(results.get(wrong.wrapping_sub(1)).map(|&(rank, call)| (Rank::new(rank), call)))
}

/// Returns the ways in which `programs` can stop, whatever their results.
///
/// Each way lists the calls, by rank, that wait for something that can no longer happen. The list
/// is empty if all ranks have ended.
///
/// # Errors
/// Those of [`explains_messages`].
pub fn stops(
    programs: &[Vec<MessageCall>],
    buffer: usize,
    standard: Standard,
) -> Result<BTreeSet<Vec<(Rank, usize)>>> {
    check(programs)?;
    let model = Model { programs, buffer, standard: Some(standard), known: BTreeSet::new() };
    let mut all = BTreeSet::new();
    model.search(|state| {
        let waiting =
            |(rank, at): (usize, &usize)| programs[rank].get(*at).is_some().then_some((Rank::new(rank), *at));
        all.insert(state.at.iter().enumerate().filter_map(waiting).collect());
        false
    })?;
    Ok(all)
}

fn brings(call: &MessageCall) -> bool {
    match call {
        MessageCall::Send { sent, .. } => sent.is_some(),
        MessageCall::Complete { completed, .. } => completed.is_some(),
        MessageCall::Probe { found, .. } => found.is_some(),
        MessageCall::Receive { .. } | MessageCall::Cancel { .. } => false,
    }
}

fn check(programs: &[Vec<MessageCall>]) -> Result<()> {
    for (rank, program) in programs.iter().enumerate() {
        for (at, call) in program.iter().enumerate() {
            let wrong = |class, what: String| {
                Err(Error::new(class, format!("call {at} of rank {rank}: {what}")).on_rank(rank))
            };
            let begun = |request: &usize, receives: bool| match program[..at].get(*request) {
                Some(MessageCall::Receive { .. }) => true,
                Some(MessageCall::Send { .. }) => !receives,
                _ => false,
            };
            match call {
                MessageCall::Send { to, .. } if to.index() >= programs.len() => {
                    let ranks = programs.len();
                    return wrong(ErrorClass::Rank, format!("a send to {to:?} of {ranks} ranks"));
                }
                MessageCall::Cancel { request } if !begun(request, true) => {
                    return wrong(ErrorClass::Arg, format!("{request} is no receive that it began before"));
                }
                MessageCall::Complete { requests, .. } => {
                    if let Some(request) = requests.iter().find(|request| !begun(request, false)) {
                        return wrong(
                            ErrorClass::Arg,
                            format!("{request} is no request that it began before"),
                        );
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

struct Message<'a> {
    tag: u32,
    element: ElementType,
    bytes: &'a [u8],
    mode: SendMode,
}

struct Model<'a> {
    programs: &'a [Vec<MessageCall>],
    buffer: usize,
    /// The time at which standard sends are complete, or `None` if any time is possible.
    standard: Option<Standard>,
    /// The calls whose results must be reproduced.
    known: BTreeSet<Position>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct State {
    /// The next call of each rank.
    at: Vec<usize>,
    /// Messages that were sent and have not arrived, by sender and receiver, in order. An entry of
    /// a pair may also be a message in the opposite direction. Such an entry represents the
    /// notification that the message was received.
    flying: BTreeMap<(usize, usize), Vec<Position>>,
    /// By rank, messages that have arrived and that no receive has taken, in order of arrival.
    kept: Vec<Vec<Position>>,
    /// By rank, receives that wait for a message, in the order of their calls.
    posted: Vec<Vec<usize>>,
    /// The message that each receive has taken.
    taken: BTreeMap<Position, Position>,
    /// For each message that was taken, the number of messages that the receiver had sent to the
    /// sender before.
    answered: BTreeMap<Position, usize>,
    /// Messages of ready sends for which no receive waited.
    early: BTreeSet<Position>,
    /// Receives that were cancelled, and sends that found no room.
    void: BTreeSet<Position>,
    /// Requests that were completed.
    complete: BTreeSet<Position>,
}

impl State {
    fn is_matched(&self, message: Position) -> bool {
        self.taken.values().any(|taken| *taken == message)
    }
}

impl Model<'_> {
    /// Returns whether all ranks can end with the known results.
    fn ends(&self) -> Result<bool> {
        let ended = |state: &State| (0..self.programs.len()).all(|rank| self.next(state, rank).is_none());
        self.search(ended)
    }

    /// Searches the states that the programs can be in. Returns whether `wanted` accepts a state in
    /// which nothing more happens.
    fn search(&self, mut wanted: impl FnMut(&State) -> bool) -> Result<bool> {
        const STATES: usize = 1 << 17;
        let ranks = self.programs.len();
        let (kept, posted) = (vec![Vec::new(); ranks], vec![Vec::new(); ranks]);
        let first = State { at: vec![0; ranks], kept, posted, ..State::default() };
        let (mut seen, mut stack) = (BTreeSet::new(), vec![first]);
        while let Some(state) = stack.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            if seen.len() > STATES {
                let why = format!("more than {STATES} states: these programs have too many orders to try");
                return Err(Error::new(ErrorClass::Arg, why));
            }
            let next = self.steps(&state);
            // Messages that are still in transit when all ranks have ended do not matter.
            let over = (0..ranks).all(|rank| self.next(&state, rank).is_none());
            if (next.is_empty() || over) && wanted(&state) {
                return Ok(true);
            }
            if !over {
                stack.extend(next);
            }
        }
        Ok(false)
    }

    fn next(&self, state: &State, rank: usize) -> Option<&MessageCall> {
        self.programs[rank].get(state.at[rank])
    }

    fn message(&self, (rank, at): Position) -> Message<'_> {
        match &self.programs[rank][at] {
            MessageCall::Send { tag, element, bytes, mode, .. } => {
                Message { tag: *tag, element: *element, bytes, mode: *mode }
            }
            _ => unreachable!("only sends make messages"),
        }
    }

    /// Returns the envelope of a receive, or `None` if the call is not a receive.
    fn receive(&self, (rank, at): Position) -> Option<Envelope> {
        match &self.programs[rank][at] {
            MessageCall::Receive { from, .. } => Some(*from),
            _ => None,
        }
    }

    /// Returns the states that can follow `state`. States to which a call leads come last.
    fn steps(&self, state: &State) -> Vec<State> {
        let ranks = 0..self.programs.len();
        // A message that is sent early may arrive late, so no result is missed if sends come first.
        let sends = |rank: &usize| {
            let next = self.next(state, *rank);
            matches!(next, Some(MessageCall::Send { mode, .. }) if *mode != SendMode::Buffered)
        };
        if let Some(rank) = ranks.clone().find(sends) {
            return self.call(state, rank);
        }
        let mut all: Vec<State> = state.flying.keys().map(|pair| self.arrive(state, *pair)).collect();
        ranks.for_each(|rank| all.extend(self.call(state, rank)));
        all
    }

    /// Returns the state after the next message of a pair has arrived.
    fn arrive(&self, state: &State, pair: (usize, usize)) -> State {
        let (mut state, to) = (state.clone(), pair.1);
        let flying = state.flying.get_mut(&pair).expect("the pair has a message");
        let message = flying.remove(0);
        if flying.is_empty() {
            state.flying.remove(&pair);
        }
        if message.0 == to && pair.0 != to {
            return state; // the sender knows now that its message was received
        }
        let Message { tag, mode, .. } = self.message(message);
        let takes = |at: &usize| self.receive((to, *at)).is_some_and(|from| from.takes(message.0, tag));
        if let Some(place) = state.posted[to].iter().position(takes) {
            let receive = state.posted[to].remove(place);
            self.take(&mut state, (to, receive), message);
        } else {
            state.kept[to].push(message);
            if mode == SendMode::Ready {
                state.early.insert(message);
            }
        }
        state
    }

    /// Lets a receive take a message.
    fn take(&self, state: &mut State, receive: Position, message: Position) {
        state.answered.insert(message, self.sent(state, receive.0, message.0));
        state.taken.insert(receive, message);
    }

    /// Returns the number of messages that one rank has sent to another.
    fn sent(&self, state: &State, from: usize, to: usize) -> usize {
        let is_sent = |at: &usize| {
            let call = &self.programs[from][*at];
            matches!(call, MessageCall::Send { to: receiver, .. } if receiver.index() == to)
                && !state.void.contains(&(from, *at))
        };
        (0..state.at[from]).filter(is_sent).count()
    }

    /// Returns whether the sender of a message knows that the message was taken, because a message
    /// that the receiver sent afterwards has arrived.
    fn is_told(&self, state: &State, message: Position) -> bool {
        let MessageCall::Send { to, .. } = &self.programs[message.0][message.1] else { return false };
        let (from, to) = (message.0, to.index());
        // Notifications of received messages do not count.
        let flies = |all: &Vec<Position>| all.iter().filter(|message| message.0 == to).count();
        let flying = state.flying.get(&(to, from)).map_or(0, flies);
        let arrived = self.sent(state, to, from) - flying;
        state.answered.get(&message).is_some_and(|before| from == to || arrived > *before)
    }

    /// Returns the index of the first message that has arrived and that a receive with this
    /// envelope would take.
    fn waiting(&self, state: &State, rank: usize, envelope: Envelope) -> Option<usize> {
        state.kept[rank].iter().position(|message| envelope.takes(message.0, self.message(*message).tag))
    }

    /// Returns the states that can follow the next call of `rank`. There are none if the call must
    /// wait, or cannot have its known result.
    fn call(&self, state: &State, rank: usize) -> Vec<State> {
        let at = state.at[rank];
        let Some(call) = self.next(state, rank) else { return Vec::new() };
        let known = self.known.contains(&(rank, at));
        let mut next = state.clone();
        next.at[rank] += 1;
        match call {
            MessageCall::Send { mode, to, bytes, sent, .. } => {
                let mut send = next.clone();
                send.flying.entry((rank, to.index())).or_default().push((rank, at));
                if *mode != SendMode::Buffered {
                    return vec![send];
                }
                next.void.insert((rank, at));
                let succeeds = bytes.len() <= self.buffer && !(known && *sent == Some(false));
                let fails =
                    self.buffered(state, rank) + bytes.len() > self.buffer && !(known && *sent == Some(true));
                [(next, fails), (send, succeeds)]
                    .into_iter()
                    .filter(|(_, may)| *may)
                    .map(|(s, _)| s)
                    .collect()
            }
            MessageCall::Receive { from, .. } => {
                match self.waiting(state, rank, *from) {
                    Some(place) => {
                        let message = next.kept[rank].remove(place);
                        self.take(&mut next, (rank, at), message);
                    }
                    None => next.posted[rank].push(at),
                }
                vec![next]
            }
            MessageCall::Cancel { request } => {
                if let Some(place) = next.posted[rank].iter().position(|posted| posted == request) {
                    next.posted[rank].remove(place);
                    next.void.insert((rank, *request));
                }
                vec![next]
            }
            MessageCall::Complete { requests, count, waits, completed } => {
                let ask = Ask { state, rank, count: *count, waits: *waits };
                let active: BTreeSet<usize> =
                    requests.iter().copied().filter(|at| self.is_active(state, (rank, *at))).collect();
                let sets = match completed {
                    Some(told) if known => {
                        let right = |(at, what): &(usize, Completed)| {
                            active.contains(at) && self.completed(state, (rank, *at)).as_ref() == Some(what)
                        };
                        let all = told.iter().all(right);
                        let set: BTreeSet<usize> = told.iter().map(|(at, _)| *at).collect();
                        Some(set).filter(|set| all && set.len() == told.len()).into_iter().collect()
                    }
                    _ => subsets(&active),
                };
                let fits = sets.into_iter().filter(|set| self.fits(&ask, &active, set));
                let follows = fits.map(|set| {
                    let mut next = next.clone();
                    for place in set.into_iter().map(|at| (rank, at)) {
                        next.complete.insert(place);
                        let taken = state.taken.get(&place).filter(|message| message.0 != rank);
                        if let Some(&message) =
                            taken.filter(|at| self.message(**at).mode == SendMode::Buffered)
                        {
                            next.flying.entry((rank, message.0)).or_default().push(message);
                        }
                    }
                    next
                });
                follows.collect()
            }
            MessageCall::Probe { from, waits, found } => {
                let there = self.waiting(state, rank, *from).map(|place| {
                    let message = state.kept[rank][place];
                    let Message { tag, bytes, .. } = self.message(message);
                    (Rank::new(message.0), tag, bytes.len())
                });
                let right = !known || found.is_none_or(|found| found == there);
                if right && (there.is_some() || !waits) { vec![next] } else { Vec::new() }
            }
        }
    }

    /// Returns how many bytes of a rank's buffer may be in use. A buffered message uses its bytes
    /// until the rank is notified that the message was received.
    fn buffered(&self, state: &State, rank: usize) -> usize {
        let flying = state.flying.values().flatten();
        let kept = state.kept.iter().flatten();
        let taken = state.taken.iter().filter(|(at, _)| at.0 != rank && !state.complete.contains(at));
        let all = flying.chain(kept).chain(taken.map(|(_, message)| message));
        let messages = all.filter(|place| place.0 == rank).map(|place| self.message(*place));
        let buffered = messages.filter(|message| message.mode == SendMode::Buffered);
        buffered.map(|message| message.bytes.len()).sum()
    }

    /// Returns whether a request was begun and is not completed yet. A buffered send that found no
    /// room has no request.
    fn is_active(&self, state: &State, place: Position) -> bool {
        let receives = self.receive(place).is_some();
        !state.complete.contains(&place) && (receives || !state.void.contains(&place))
    }

    /// Returns whether a request can be complete, and whether its rank must already know that the
    /// request is complete.
    fn is_complete(&self, state: &State, place: Position) -> (bool, bool) {
        let both = |is| (is, is);
        match &self.programs[place.0][place.1] {
            MessageCall::Send { mode: SendMode::Synchronous, .. } => {
                (state.is_matched(place), self.is_told(state, place))
            }
            MessageCall::Send { mode: SendMode::Standard | SendMode::Ready, .. } => match self.standard {
                Some(Standard::AtOnce) => both(true),
                Some(Standard::AtMatch) => (state.is_matched(place), self.is_told(state, place)),
                None => (true, self.is_told(state, place)),
            },
            MessageCall::Send { mode: SendMode::Buffered, .. } => both(true),
            _ => both(state.taken.contains_key(&place) || state.void.contains(&place)),
        }
    }

    /// Returns the outcome of a request that is complete.
    fn completed(&self, state: &State, place: Position) -> Option<Completed> {
        let MessageCall::Receive { element, room, .. } = &self.programs[place.0][place.1] else {
            return Some(Completed::Sent);
        };
        if state.void.contains(&place) {
            return Some(Completed::Cancelled);
        }
        let from = *state.taken.get(&place)?;
        let (message, source) = (self.message(from), Rank::new(from.0));
        let wrong = if message.element != *element {
            Some(ErrorClass::Type)
        } else if message.bytes.len() > *room {
            Some(ErrorClass::Truncate)
        } else {
            state.early.contains(&from).then_some(ErrorClass::Assert)
        };
        let Message { tag, bytes, .. } = message;
        Some(match wrong {
            Some(class) => Completed::Failed { source, tag, class },
            None => Completed::Received { source, tag, bytes: bytes.to_vec() },
        })
    }

    /// Returns whether a call may complete exactly this set of the active requests.
    fn fits(&self, ask: &Ask<'_>, active: &BTreeSet<usize>, set: &BTreeSet<usize>) -> bool {
        let (mut can, mut are) = (BTreeSet::new(), BTreeSet::new());
        for &at in active {
            let (may, is) = self.is_complete(ask.state, (ask.rank, at));
            can.extend(may.then_some(at));
            are.extend(is.then_some(at));
        }
        if set.is_empty() {
            let enough = match ask.count {
                Completion::All => are == *active,
                Completion::Any | Completion::Some => !are.is_empty(),
            };
            return active.is_empty() || !ask.waits && !enough;
        }
        set.is_subset(&can)
            && match ask.count {
                Completion::All => set == active,
                Completion::Any => set.len() == 1,
                Completion::Some => are.is_subset(set),
            }
    }
}

/// A call that completes requests.
struct Ask<'a> {
    state: &'a State,
    rank: usize,
    count: Completion,
    waits: bool,
}

/// Returns all subsets of a few requests.
fn subsets(of: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
    of.iter().fold(vec![BTreeSet::new()], |all, at| {
        let with = all.iter().map(|set| set.iter().copied().chain([*at]).collect()).collect::<Vec<_>>();
        all.into_iter().chain(with).collect()
    })
}
