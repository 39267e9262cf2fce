//! Explores every order of events between two ranks that exchange frames, close their connection
//! and open it again, leave, and end.
//!
//! A state has both ranks and the items on the connection between them. A rank or its thread takes
//! each step under the rank's lock. In a step, a rank posts a frame, releases one, sends the
//! written items, reads an item, begins to close the connection, connects, leaves, or takes the
//! step of ending that [`Facts::next`] chooses. The model has no clock and no reports of a
//! launcher. From every state that can be reached, both ranks must be able to end. If they cannot,
//! a fabric waits forever or until an obituary, or a frame is lost for which the other rank's
//! program waits.

use std::collections::{BTreeMap, VecDeque};

use super::{Facts, Link, Next};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Item {
    Frame,
    Release,
    Left,
    Rest,
    Goodbye,
    Farewell,
}

/// The connection as one rank sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    None,
    Opening,
    Open,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    /// How many frames the rank's program still has to post, and how many frames it still awaits.
    posts: u8,
    awaits: u8,
    /// Frames that arrived and are not released.
    unreleased: u8,
    /// Releases that are not reported.
    unreported: u8,
    left: bool,
    /// Whether the rank's process has ended, so that nobody accepts a connection.
    ended: bool,
    side: Side,
    /// The items that are written but not passed to the socket yet, and the number of these items
    /// that need no connection of their own.
    out: Vec<Item>,
    deferred: usize,
    /// Once this rank has begun to close the connection: the number of items of `out` that it still
    /// sends on the connection.
    last: Option<usize>,
    /// The items on their way to this rank, and whether the other rank has closed the connection
    /// after them.
    coming: VecDeque<Item>,
    is_cut: bool,
    /// Whether the other rank closed the connection before it had read everything. Items on their
    /// way to this rank may then be lost.
    is_reset: bool,
    heard_rest: bool,
    heard_left: bool,
    said_goodbye: bool,
    heard_goodbye: bool,
    heard_farewell: bool,
    suspects: bool,
}

type State = [Rank; 2];

/// The rules by which ranks end. Tests turn some of them off.
#[derive(Clone, Copy)]
struct Rules {
    /// A launcher reports how each rank ends, so a rank does not connect only to report that it has
    /// finished.
    defers: bool,
    /// Items for a rank that cannot be reached are void.
    gives_up: bool,
    /// Before a rank ends, it sends what the other rank needs.
    sends_first: bool,
    /// Items that a rank writes after it has announced that it closes the connection wait for the
    /// next connection.
    keeps_the_rest: bool,
    /// A connection needs no consent of the other side, and is never closed.
    is_connectionless: bool,
    /// A rank without connections waits for the goodbye of the other rank.
    awaits_goodbye: bool,
}

const RULES: Rules = Rules {
    defers: true,
    gives_up: true,
    sends_first: true,
    keeps_the_rest: true,
    is_connectionless: false,
    awaits_goodbye: true,
};

impl Rank {
    fn new(posts: u8, awaits: u8) -> Self {
        Self {
            posts,
            awaits,
            unreleased: 0,
            unreported: 0,
            left: false,
            ended: false,
            side: Side::None,
            out: Vec::new(),
            deferred: 0,
            last: None,
            coming: VecDeque::new(),
            is_cut: false,
            is_reset: false,
            heard_rest: false,
            heard_left: false,
            said_goodbye: false,
            heard_goodbye: false,
            heard_farewell: false,
            suspects: false,
        }
    }

    fn wants_connection(&self) -> bool {
        self.out.len() > self.deferred
    }

    fn is_gone(&self) -> bool {
        self.suspects || self.heard_goodbye
    }

    fn has_unsent(&self) -> bool {
        self.last.unwrap_or(self.out.len()) > 0
    }

    fn facts(&self, rules: Rules) -> Facts {
        let link = match self.side {
            Side::None => Link::None,
            Side::Opening => Link::Opening,
            Side::Open if self.last.is_some() => Link::Resting,
            Side::Open => Link::Open,
        };
        Facts {
            link,
            is_gone: self.heard_goodbye || self.suspects && rules.gives_up,
            has_unsent: self.has_unsent(),
            wants_connection: rules.is_connectionless && !self.said_goodbye
                || self.wants_connection() && rules.sends_first,
            said_goodbye: self.said_goodbye,
            heard_farewell: self.heard_farewell,
            awaits_goodbye: rules.is_connectionless && rules.awaits_goodbye && !self.heard_goodbye,
        }
    }

    /// Closes the connection, and drops the items that were not sent.
    fn close(&mut self) {
        (self.side, self.last, self.heard_rest) = (Side::None, None, false);
        (self.out, self.deferred) = (Vec::new(), 0);
        (self.coming, self.is_cut, self.is_reset) = (VecDeque::new(), false, false);
    }
}

/// Closes the connection of rank `me`. The other rank still reads the items on their way to it, and
/// then the end of the connection.
fn close(state: &mut State, me: usize) {
    let (had_one, resets) = (state[me].side == Side::Open, !state[me].coming.is_empty());
    state[me].close();
    let other = &mut state[1 - me];
    if had_one && other.side == Side::Open {
        (other.is_cut, other.is_reset) = (true, resets);
    }
}

/// Closes the connection by agreement, if both ranks have announced that they close it. Items that
/// were written since these announcements are kept.
fn rest(state: &mut State, me: usize, rules: Rules) {
    let rank = &mut state[me];
    if rank.side == Side::Open && rank.heard_rest && rank.last == Some(0) {
        let kept = std::mem::take(&mut rank.out);
        close(state, me);
        state[me].out = if rules.keeps_the_rest { kept } else { Vec::new() };
    }
}

/// Sends the written items. Without a connection, begins to open one if the items need it.
fn send(state: &mut State, me: usize, rules: Rules) {
    let rank = &mut state[me];
    if rules.is_connectionless && !rank.is_gone() && (rank.wants_connection() || rank.left) {
        (rank.side, rank.deferred) = (Side::Open, 0);
    }
    if rank.side != Side::Open {
        if rank.side == Side::None && rank.wants_connection() && !rank.is_gone() {
            rank.side = Side::Opening;
        }
        return;
    }
    if rank.heard_rest && rank.last.is_none() {
        begin_rest(rank);
    }
    let end = rank.last.unwrap_or(rank.out.len());
    let sent: Vec<Item> = rank.out.drain(..end).collect();
    rank.last = rank.last.map(|_| 0);
    // Items to a rank that has closed its side are lost.
    if !rank.is_cut {
        state[1 - me].coming.extend(sent);
    }
    rest(state, me, rules);
}

fn begin_rest(rank: &mut Rank) {
    rank.out.push(Item::Rest);
    rank.last = Some(rank.out.len());
}

/// Reads the next item, or the end of the connection.
fn read(state: &mut State, me: usize, rules: Rules) {
    let rank = &mut state[me];
    if rules.is_connectionless {
        (rank.side, rank.deferred) = (Side::Open, 0);
    }
    let Some(item) = rank.coming.pop_front() else {
        if rank.heard_rest && rank.last == Some(0) {
            rest(state, me, rules);
        } else {
            let is_suspect = !rank.heard_goodbye;
            close(state, me);
            state[me].suspects |= is_suspect;
        }
        return;
    };
    match item {
        Item::Frame => rank.unreleased += 1,
        Item::Release => {}
        Item::Left => rank.heard_left = true,
        Item::Rest => {
            rank.heard_rest = true;
            send(state, me, rules);
        }
        Item::Goodbye => {
            rank.heard_goodbye = true;
            rank.out.push(Item::Farewell);
            send(state, me, rules);
        }
        Item::Farewell => rank.heard_farewell = true,
    }
}

/// Continues to open a connection, which the other rank may not accept yet.
fn open(state: &mut State, me: usize, rules: Rules) -> bool {
    let other = &state[1 - me];
    if other.ended {
        state[me].close();
        state[me].suspects = true;
        return true;
    }
    // The connection of the lower rank is used.
    let crossed = other.side == Side::Opening && me == 1;
    if other.side == Side::Open || crossed {
        return false;
    }
    for rank in &mut *state {
        (rank.side, rank.deferred, rank.heard_rest, rank.last) = (Side::Open, 0, false, None);
        (rank.coming, rank.is_cut, rank.is_reset) = (VecDeque::new(), false, false);
    }
    [me, 1 - me].into_iter().for_each(|rank| send(state, rank, rules));
    true
}

/// Takes one step of ending for rank `me`. If nothing is left to do for the other rank and `ends`
/// is set, the fabric ends. If `ends` is not set, the rank still has something to do for ranks that
/// are not in the model.
fn end(state: &mut State, me: usize, ends: bool, rules: Rules) {
    let mut next = state[me].facts(rules).next();
    if next == Next::SayGoodbye {
        state[me].said_goodbye = true;
        state[me].out.push(Item::Goodbye);
        send(state, me, rules);
        next = state[me].facts(rules).next();
    }
    match next {
        Next::Connect => send(state, me, rules),
        // If the number of connections is limited, each connection is closed when nothing is left
        // to do on it. The fabric ends when all are closed.
        Next::Nothing if rules.is_connectionless => state[me].ended = ends,
        Next::Nothing => {
            if ends || state[me].side == Side::Open {
                close(state, me);
            }
            state[me].ended = ends;
        }
        Next::SayGoodbye | Next::Wait => {}
    }
}

/// Returns each state to which one step leads, together with a description of that step.
fn steps(state: &State, rules: Rules) -> Vec<(String, State)> {
    let mut all = Vec::new();
    for me in 0..2 {
        let rank = &state[me];
        if rank.ended {
            continue;
        }
        let mut step = |what: &str, act: &dyn Fn(&mut State)| {
            let mut after = state.clone();
            act(&mut after);
            if after != *state {
                all.push((format!("rank {me} {what}"), after));
            }
        };
        if rank.posts > 0 && !rank.left {
            step("posts a frame", &|state| {
                state[me].posts -= 1;
                if !state[me].heard_goodbye {
                    state[me].out.push(Item::Frame);
                }
            });
        }
        if rank.unreleased > 0 && rank.awaits > 0 && !rank.left {
            step("takes a frame and releases it", &|state| {
                let rank = &mut state[me];
                (rank.unreleased, rank.awaits, rank.unreported) =
                    (rank.unreleased - 1, rank.awaits - 1, rank.unreported + 1);
            });
        }
        if rank.unreported > 0 && !rank.left && !rank.heard_left {
            step("reports a release", &|state| {
                state[me].unreported = 0;
                state[me].out.push(Item::Release);
            });
        }
        if rank.posts == 0 && rank.awaits == 0 && !rank.left {
            step("leaves as finished", &|state| {
                let rank = &mut state[me];
                rank.left = true;
                if rank.heard_goodbye {
                    return;
                }
                let is_apart = rules.defers && rank.side == Side::None && !rank.wants_connection();
                if !is_apart && !rank.heard_left && rank.unreported > 0 {
                    rank.unreported = 0;
                    rank.out.push(Item::Release);
                }
                rank.out.push(Item::Left);
                if is_apart {
                    rank.deferred = rank.out.len();
                }
            });
        }
        if rank.has_unsent() {
            step("sends", &|state| send(state, me, rules));
        }
        if rank.side == Side::Open && rank.last.is_none() && rank.out.is_empty() {
            let parts = rank.said_goodbye || rank.heard_goodbye;
            if !parts && !rules.is_connectionless {
                step("begins to close the connection", &|state| {
                    begin_rest(&mut state[me]);
                    send(state, me, rules);
                });
            }
        }
        let reads = rank.side == Side::Open || rules.is_connectionless;
        if reads && (!rank.coming.is_empty() || rank.is_cut) {
            step("reads", &|state| read(state, me, rules));
            if rank.is_reset {
                step("finds its connection broken", &|state| {
                    state[me].coming.clear();
                    read(state, me, rules);
                });
            }
        }
        if rank.side == Side::Opening {
            step("continues to connect", &|state| {
                open(state, me, rules);
            });
        }
        if rank.left {
            step("takes a turn of ending", &|state| end(state, me, true, rules));
            step("takes a turn of ending, and is not over", &|state| end(state, me, false, rules));
        }
    }
    all
}

/// Looks for a state from which the two ranks cannot both end. Returns the steps that lead to such
/// a state, if there is one, and the number of states.
fn stuck(posts: [u8; 2], rules: Rules) -> (Option<Vec<String>>, usize) {
    let first = [Rank::new(posts[0], posts[1]), Rank::new(posts[1], posts[0])];
    let mut numbers = BTreeMap::from([(first.clone(), 0)]);
    let mut states = vec![first];
    // For each state, `found_by` has the state and the step from which it was found, and `before`
    // has all states that lead to it.
    let mut found_by: Vec<Option<(usize, String)>> = vec![None];
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut at = 0;
    while at < states.len() {
        for (what, after) in steps(&states[at].clone(), rules) {
            let number = *numbers.entry(after.clone()).or_insert_with(|| {
                states.push(after);
                found_by.push(Some((at, what)));
                before.push(Vec::new());
                states.len() - 1
            });
            before[number].push(at);
        }
        at += 1;
    }
    // Over a carrier without connections, nothing may be on its way to a rank that has ended.
    let is_quiet = |rank: &Rank| !rules.is_connectionless || rank.coming.is_empty();
    let mut can_end = vec![false; states.len()];
    let mut open: Vec<usize> =
        (0..states.len()).filter(|&at| states[at].iter().all(|rank| rank.ended && is_quiet(rank))).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut can_end[at], true) {
            open.extend(&before[at]);
        }
    }
    let trace = can_end.iter().position(|can| !can).map(|mut at| {
        let mut trace = vec![format!("{:#?}", states[at])];
        while let Some((from, what)) = &found_by[at] {
            trace.push(what.clone());
            at = *from;
        }
        trace.reverse();
        trace
    });
    (trace, states.len())
}

const EXCHANGES: [[u8; 2]; 5] = [[0, 0], [1, 0], [1, 1], [2, 0], [2, 1]];

#[test]
fn both_ranks_can_end_in_every_state_that_can_be_reached() {
    let mut explored = 0;
    for defers in [true, false] {
        for posts in EXCHANGES {
            let (trace, states) = stuck(posts, Rules { defers, ..RULES });
            assert!(trace.is_none(), "{posts:?}: {:#?}", trace.unwrap_or_default());
            explored += states;
        }
    }
    assert!(explored > 10_000, "{explored} states: does every step still happen?");
}

#[test]
fn without_connections_both_ranks_can_end_and_nothing_is_on_its_way_to_one_that_has() {
    let mut explored = 0;
    for defers in [true, false] {
        for posts in EXCHANGES {
            let (trace, states) = stuck(posts, Rules { defers, is_connectionless: true, ..RULES });
            assert!(trace.is_none(), "{posts:?}: {:#?}", trace.unwrap_or_default());
            explored += states;
        }
    }
    assert!(explored > 1000, "{explored} states: does every step still happen?");
}

#[test]
fn without_connections_a_rank_that_ends_before_the_other_says_goodbye_keeps_it_waiting() {
    let rules = Rules { is_connectionless: true, awaits_goodbye: false, ..RULES };
    assert!(stuck([1, 0], rules).0.is_some());
}

#[test]
fn a_rank_that_waits_for_one_that_cannot_be_reached_waits_for_ever() {
    let (trace, _) = stuck([2, 0], Rules { gives_up: false, ..RULES });
    let trace = trace.expect("the model does not notice that a rank waits for one that has ended");
    assert!(trace.iter().any(|step| step.ends_with("takes a turn of ending")), "{trace:#?}");
}

#[test]
fn a_rank_that_ends_before_it_has_sent_what_another_one_needs_loses_it() {
    assert!(stuck([1, 0], Rules { sends_first: false, ..RULES }).0.is_some());
}

#[test]
fn a_rank_that_drops_what_it_writes_while_a_connection_is_closed_loses_it() {
    assert!(stuck([1, 1], Rules { keeps_the_rest: false, ..RULES }).0.is_some());
}
