//! [`Watch`]: one wait, watched from the moment when the rank may sleep.

use crate::kernel::contained::contained;
use crate::protocol::frames::census_of;
use crate::protocol::state::stalls::{Stall, Stalls};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::ErrorClass;
use fencepost_transport::deadlock::{GONE, OTHERS, Waiting};
use fencepost_transport::{Cause, Channels, Endpoint, Liveness, Loss, Lost, Notify, Port, clock};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// [`Stall::what`] of a wait for messages of a census.
pub(crate) const CENSUS: &str = "messages of a census";
/// [`Stall::what`] of a wait for [`Awaited::Leaving`].
pub(crate) const LEAVING: &str = "notes that it has finished with this rank's windows";

/// [`Stall::what`] of a wait for [`Awaited::Lock`].
const TURNS: &str = "turns at a lock";

/// The kind of a wait.
#[derive(Clone, Copy)]
pub(crate) enum Awaited<'a> {
    /// The notifications of all other ranks.
    Notifications,
    /// Something from one rank. The text is a plural noun that names it.
    One(&'static str),
    /// Something from any other rank. The text is a plural noun that names it.
    FromAny(&'static str),
    /// Something from any of several ranks. The text is a plural noun that names it. The function
    /// returns the ranks, if they are known.
    FromSome(&'static str, &'a dyn Fn() -> Option<Vec<usize>>),
    /// The message of a sparse census that a rank sends to the leader of its group before the rank
    /// waits for anything.
    Led,
    /// Frames of a program. The function returns the number that has come, and the number expected.
    Frames(&'a dyn Fn() -> (usize, usize)),
    /// Answers of one rank's attendant. The attendant answers even while the rank itself waits.
    Answers,
    /// The end of all accesses to this rank's windows, when the world has ended.
    Leaving,
    /// A turn at a lock.
    Lock(&'a dyn LockQueue),
}

/// The queue in which this rank waits for a lock.
pub(crate) trait LockQueue {
    /// Returns the rank that holds the lock that this rank waits for. Returns `None` if no rank is
    /// known to hold the lock, or if ranks hold such a lock only for a moment.
    fn holder(&self) -> Option<usize>;

    /// Describes a rank that holds the lock: the line at which it took the lock, and the ranks that
    /// are before this rank in the queue.
    fn since(&self, rank: usize) -> Option<String>;

    /// Called while the wait lasts. `number` is the number of the holder's wait when this rank last
    /// read it, or 0 if it is not known.
    fn lasts(&self, number: u64) {
        let _ = number;
    }

    /// Returns whether this rank has found the [`holder`](Self::holder) after it had read `number`,
    /// the number of the holder's wait. If so, the holder keeps the lock until that wait is over.
    fn is_found_since(&self, number: u64) -> bool {
        let _ = number;
        true // the holder is read from memory each time
    }

    /// Returns a count of the questions and releases that this rank has sent in this wait to find
    /// out which rank holds the lock. No other rank waits for them.
    fn asked(&self) -> u64 {
        0
    }
}

/// A wait for a rank.
pub(crate) struct Watch<'a> {
    pub(crate) world: &'a WorldCore,
    call: &'a Call,
    windows: &'a [&'a WindowCore],
    peer: usize,
    /// Whether this rank can go on only after `peer` does something.
    is_mutual: bool,
    awaited: Awaited<'a>,
    /// The number of the run, if the plan counts its runs. `None` if the world numbers the call.
    run: Option<u32>,
    /// Whether the wait is in an exchange of all ranks.
    of_all: bool,
    /// A function that returns more text for the description of the call.
    about: Option<&'a dyn Fn() -> String>,
    lasting: Option<Lasting>,
    /// Whether the function that receives stall reports has panicked.
    silenced: Cell<bool>,
    /// The time at which the wait began, if waits are recorded.
    since: Option<u64>,
}

/// The state of a wait that has lasted so long that the rank may sleep.
struct Lasting {
    stalls: Stalls,
    since: Instant,
    /// The duration at which the wait is next reported.
    next: Option<Duration>,
    /// The count [`sent`] when the wait was entered into the table. `None` if the wait is not in
    /// the table.
    shown: Option<u64>,
    /// Whether the awaited rank had entered the call of this rank before `read` was read.
    same_call: bool,
    /// The number of the awaited rank's wait, read before this rank last looked whether its own
    /// wait is over.
    read: u64,
    /// The other ranks of the wait in the table, each with a flag and a number. The flag is set if
    /// something that the other rank sends ends the wait. The number is that of the other rank's
    /// own wait, read together with `read`.
    others: Vec<(usize, bool, u64)>,
    /// The wait-for cycle or the knot that this rank is in.
    cycle: Option<Vec<Waiting>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        world: &'a WorldCore,
        call: &'a Call,
        windows: &'a [&'a WindowCore],
        peer: usize,
        awaited: Awaited<'a>,
    ) -> Self {
        let is_mutual = match awaited {
            Awaited::Leaving | Awaited::Answers | Awaited::Lock(_) => false,
            Awaited::FromAny(_) | Awaited::FromSome(..) => true,
            // True even if the peer is this rank: this rank may wait for an access to its own
            // window, and only this rank can end that access.
            Awaited::One(_) => true,
            _ => peer != world.rank,
        };
        let silenced = Cell::new(false);
        let since = world.reports.recorder.get().map(|_| clock::ticks());
        Self {
            world,
            call,
            windows,
            peer,
            is_mutual,
            awaited,
            run: None,
            of_all: false,
            about: None,
            lasting: None,
            silenced,
            since,
        }
    }

    /// Sets the number of the run that the wait is in, if the wait is in a run.
    #[inline]
    pub(crate) fn of_run(mut self, run: Option<u32>) -> Self {
        self.run = run;
        self
    }

    /// Marks the wait as part of an exchange of all ranks of the world.
    #[inline]
    pub(crate) fn of_all(mut self) -> Self {
        self.of_all = true;
        self
    }

    /// Returns the number of the exchange of all ranks that the wait is in.
    #[inline]
    pub(crate) fn exchange(&self) -> Option<u32> {
        self.of_all.then(|| self.world.calls.supersteps())
    }

    /// Adds to the description of the call.
    #[inline]
    pub(crate) fn about(mut self, about: &'a dyn Fn() -> String) -> Self {
        self.about = Some(about);
        self
    }

    /// Returns the number of the call.
    fn number(&self) -> u32 {
        self.run.unwrap_or_else(|| self.world.calls.supersteps())
    }

    /// Begins a new wait if another rank now holds the lock, and returns whether the wait is still
    /// the same.
    ///
    /// A holder sends nothing to this rank when it leaves the lock. As soon as it has left, the
    /// wait for that holder is over.
    fn follow(&mut self) -> bool {
        let Awaited::Lock(queue) = self.awaited else { return true };
        let holder = queue.holder();
        if self.is_mutual == holder.is_some() && holder.is_none_or(|holder| holder == self.peer) {
            return true;
        }
        self.is_mutual = holder.is_some();
        self.peer = holder.unwrap_or(self.peer);
        if let Some(lasting) = &mut self.lasting
            && lasting.shown.take().is_some()
        {
            lasting.stalls.waits.end(self.world.rank);
            (lasting.read, lasting.cycle) = (0, None);
            lasting.others.clear();
        }
        false
    }

    /// Returns whether this is a wait for a census.
    ///
    /// While this rank waits for a census, other ranks may take another census. This rank detects
    /// that even if long waits are not reported.
    fn is_of_a_census(&self) -> bool {
        matches!(self.awaited, Awaited::Notifications | Awaited::Led | Awaited::One(CENSUS))
    }

    /// Called when the rank may have slept, before it looks again for what it awaits.
    #[cold]
    pub(crate) fn woke(&mut self, endpoint: &mut Endpoint) {
        self.follow();
        let (rank, mut peer, number) = (self.world.rank, self.peer, self.number());
        let (call, windows, about) = (self.call, self.windows, self.about);
        let Some(lasting) = &mut self.lasting else {
            let stalls = self.world.stalls.borrow();
            if stalls.settings.watches() || self.is_of_a_census() {
                let (stalls, since) = (stalls.clone(), Instant::now());
                let next = stalls.settings.after;
                let (shown, same_call, read, others, cycle) = (None, false, 0, Vec::new(), None);
                let lasting = Lasting { stalls, since, next, shown, same_call, read, others, cycle };
                self.lasting = Some(lasting);
                self.woke(endpoint);
            }
            return;
        };
        if matches!(self.awaited, Awaited::Notifications) {
            // A report names the ranks whose notifications have not come. Over a stream,
            // notifications come only when this rank reads.
            (0..self.world.size).for_each(|from| drop(endpoint.read(from)));
            compare_census(self.world, endpoint);
        }
        let waited = lasting.since.elapsed();
        let Stalls { settings, waits } = &lasting.stalls;
        // A rank that may go on with something else may still send what another rank waits for.
        let mutual = self.is_mutual && !self.world.may_advance();
        if mutual
            && lasting.shown.is_none()
            && waited >= settings.shown_after()
            && let Some((awaited, others)) = ranks_of(self.world, peer, self.awaited)
        {
            let text = format!("{}, number {number}", described(call, windows, about));
            waits.begin_about(rank, awaited, &others, &text);
            (self.peer, peer) = (awaited, awaited);
            lasting.others = others.into_iter().map(|(other, ends)| (other, ends, 0)).collect();
            lasting.shown = Some(sent(endpoint, self.awaited));
            if matches!(self.awaited, Awaited::Led | Awaited::One(CENSUS)) {
                compare_census(self.world, endpoint);
            }
        }
        lasting.same_call = endpoint.announced(peer) == endpoint.announced(rank);
        // This rank first reads the other rank's entry. Only then does it check whether everything
        // that the other rank had sent before has come.
        lasting.read = if lasting.shown.is_some() { waits.number(peer) } else { 0 };
        if lasting.read != 0 && peer != rank && !endpoint.nothing_in_flight(peer) {
            lasting.read = 0;
        }
        for (other, _, read) in &mut lasting.others {
            *read = waits.number(*other);
            if *read != 0 && !endpoint.nothing_in_flight(*other) {
                *read = 0;
            }
        }
        if let Awaited::Lock(queue) = self.awaited {
            queue.lasts(lasting.read);
        }
        if lasting.next.is_some_and(|next| waited >= next) {
            lasting.next = settings.again(waited);
            // A wait that cannot end is reported only once: if no other rank can end this wait,
            // this rank finds and reports that after its next look.
            if lasting.cycle.is_none() && (peer != rank || lasting.shown.is_none()) {
                self.report(endpoint, waited);
            }
        }
    }

    /// Called when this rank has looked again and found nothing. Ends the world if the wait can
    /// never end, and if the settings request this.
    #[cold]
    pub(crate) fn missed(&mut self, endpoint: &mut Endpoint) {
        if !self.follow() {
            return;
        }
        let (rank, peer) = (self.world.rank, self.peer);
        let Some(lasting) = &mut self.lasting else { return };
        let Some(shown) = lasting.shown else { return };
        if matches!(self.awaited, Awaited::Led) && lasting.read != 0 && lasting.same_call {
            // The peer waits in this call, and has not sent the message that it should have sent
            // before.
            censuses_differ(self.world, endpoint, peer, "another one");
            return;
        }
        let Stalls { settings, waits } = &lasting.stalls;
        if !settings.watches() {
            return;
        }
        if sent(endpoint, self.awaited) != shown {
            // While this rank looked, it has sent something for which another rank may wait. So a
            // new wait begins.
            (lasting.shown, lasting.cycle) = (None, None);
            waits.end(rank);
            return;
        }
        let is_found = match self.awaited {
            Awaited::Lock(queue) => queue.is_found_since(lasting.read),
            _ => true,
        };
        // Nothing more comes from a rank that has left this world, once everything that it had sent
        // was found.
        let mut is_gone = |other: usize| other != rank && endpoint.poll(other, Port::MESSAGES).is_err();
        if lasting.read != 0 && is_found {
            waits.see(rank, lasting.read);
        } else if matches!(self.awaited, Awaited::FromAny(_) | Awaited::FromSome(..)) && is_gone(peer) {
            waits.see(rank, GONE);
        }
        for (at, (other, _, read)) in lasting.others.iter().enumerate() {
            match *read {
                0 if is_gone(*other) => waits.see_other(rank, at, GONE),
                0 => {}
                read => waits.see_other(rank, at, read),
            }
        }
        if lasting.cycle.is_none() {
            lasting.cycle = waits.cycle(rank).or_else(|| waits.knot(rank));
            if lasting.cycle.is_some() {
                let waited = lasting.since.elapsed();
                self.report(endpoint, waited);
                return self.missed(endpoint);
            }
            return;
        }
        let Some(cycle) = lasting.cycle.as_ref().filter(|_| settings.ends) else { return };
        if waits.agree(rank, cycle) {
            let what = words(cycle);
            self.world.calls.sites.end(ErrorClass::RmaSync);
            endpoint.end(Cause { rank: peer, what });
        }
    }

    /// Ends the world if the wait is for an exchange of all ranks, and another rank has left
    /// without coming to the exchange.
    ///
    /// No rank can then complete the exchange, even if this rank waits for a rank that has not
    /// left. Called after [`woke`](Self::woke).
    #[cold]
    pub(crate) fn find_left(&self, endpoint: &mut Endpoint) {
        if !self.is_of_a_census() {
            return;
        }
        let own = self.world.calls.supersteps();
        let others = (0..self.world.size).filter(|&from| from != self.world.rank && from != self.peer);
        for from in others {
            let lost = match self.awaited {
                // A rank may have sent its notification before it left.
                Awaited::Notifications => endpoint.read(from).err(),
                _ => endpoint
                    .left_at(from)
                    .filter(|&word| word == 0 || own.wrapping_sub((word >> 32) as u32) as i32 > 0)
                    .and_then(|_| endpoint.lost(from)),
            };
            if let Some(lost) = lost.filter(|lost| lost.rank == from && matches!(lost.how, Loss::Left(_))) {
                self.blame(endpoint, lost);
                return;
            }
        }
    }

    /// Ends the world because the wait can never end, and returns the reason. If this rank is in a
    /// cycle, the reason is the cycle and not `lost`: the lost rank may have left because it found
    /// the cycle sooner.
    #[cold]
    pub(crate) fn blame(&self, endpoint: &mut Endpoint, lost: Lost) -> Lost {
        let ends = self.lasting.as_ref().filter(|lasting| lasting.stalls.settings.ends);
        let Some(cycle) = ends.and_then(|lasting| lasting.cycle.as_deref()) else {
            return self.world.end_for(endpoint, lost);
        };
        let what = words(cycle);
        self.world.calls.sites.end(ErrorClass::RmaSync);
        self.world.end_for(endpoint, Lost { rank: self.peer, how: Loss::Ended(what) })
    }

    fn report(&self, endpoint: &mut Endpoint, waited: Duration) {
        let Some(lasting) = &self.lasting else { return };
        let (world, me, peer) = (self.world, self.world.rank, self.peer);
        let others = (0..world.size).filter(|&other| other != me);
        let mut missing = Vec::new();
        let (what, came, expected) = match self.awaited {
            Awaited::Notifications => {
                missing.extend(others.filter(|&from| !matches!(endpoint.read(from), Ok(Some(_)))));
                ("notifications", world.size - 1 - missing.len(), world.size - 1)
            }
            Awaited::One(what) => (what, 0, 1),
            Awaited::FromAny(what) => {
                missing.extend(others);
                (what, 0, 1)
            }
            Awaited::FromSome(what, ranks) => {
                missing.extend(ranks().into_iter().flatten().filter(|&rank| rank != me));
                (what, 0, 1)
            }
            Awaited::Led => (CENSUS, 0, 1),
            Awaited::Answers => ("answers", 0, 1),
            Awaited::Frames(counts) => {
                let (came, expected) = counts();
                ("frames", came, expected)
            }
            Awaited::Leaving => (LEAVING, 0, 1),
            Awaited::Lock(_) => (TURNS, 0, 1),
        };
        missing.truncate(16);
        let waits = &lasting.stalls.waits;
        let stall = Stall {
            rank: me,
            awaited: peer,
            host: world.reach.host_of(peer),
            size: world.size,
            rank_of_all: (!waits.is_whole()).then(|| waits.rank(me)),
            waited,
            superstep: self.call.name,
            number: self.number(),
            file: self.call.site.file(),
            line: self.call.site.line(),
            call: described(self.call, self.windows, self.about),
            what,
            expected,
            came,
            missing,
            peer: self.place(endpoint, waits.waiting(peer)),
            deadlock: lasting.cycle.as_deref().map(|cycle| told_once(cycle, waits.rank(me))),
        };
        let told = &lasting.stalls.settings.told;
        // A function that panics is not called again for this wait.
        if !self.silenced.get() && !self.world.calls.uncounted(|| contained(|| told(&stall))) {
            self.silenced.set(true);
        }
    }

    /// Describes where the awaited rank is, if that is known.
    fn place(&self, endpoint: &Endpoint, waiting: Option<Waiting>) -> String {
        let peer = self.peer;
        if let Awaited::Lock(queue) = self.awaited {
            let waiting = waiting.map_or(String::new(), |Waiting { awaited, text, .. }| {
                format!("; rank {peer} is itself waiting for rank {awaited} of the whole world, in {text}")
            });
            return match queue.since(peer) {
                Some(text) => format!("{text}{waiting}"),
                None => format!("a lock of the part of rank {peer}; no rank is known to hold it for long"),
            };
        }
        if peer == self.world.rank {
            return "no other rank can end this wait".to_owned();
        }
        if let Some(Waiting { awaited, text, .. }) = waiting {
            return format!("rank {peer} is itself waiting for rank {awaited} of the whole world, in {text}");
        }
        let (own, at) = (self.world.calls.supersteps(), (endpoint.announced(peer) >> 32) as u32);
        if at == 0 {
            return format!("nothing has been heard of rank {peer}");
        }
        let known = self.world.calls.sites.entered(peer);
        let call = known.map_or(String::new(), |call| format!(", {call}"));
        let word =
            if at == own && self.run.is_none() { "this number, too" } else { &format!("number {at} last") };
        format!("rank {peer} has entered {word}{call}")
    }
}

impl Drop for Watch<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(Lasting { shown: Some(_), stalls, .. }) = &self.lasting {
            stalls.waits.end(self.world.rank);
        }
        if let Some(since) = self.since {
            let is_for_any = matches!(self.awaited, Awaited::FromAny(_) | Awaited::FromSome(..));
            self.world.record_wait(self.call, (!is_for_any).then_some(self.peer), since);
        }
    }
}

/// Returns the ranks that the entry of a wait in the table contains: the rank that the wait is for,
/// and other ranks. Each other rank has a flag, which is set if something that the rank sends ends
/// the wait.
///
/// The other ranks are those that may end the wait. They also are those from which this rank has
/// begun to receive, since this rank may answer them. Returns `None` if these ranks are not known,
/// or are too many for an entry.
fn ranks_of(world: &WorldCore, peer: usize, awaited: Awaited<'_>) -> Option<(usize, Vec<(usize, bool)>)> {
    let all = || (0..world.size).filter(|&other| other != world.rank);
    let mut ends = match awaited {
        Awaited::FromAny(_) => all().collect(),
        Awaited::FromSome(_, ranks) => ranks()?,
        _ => vec![peer],
    };
    if ends.len() > 1 {
        // This rank sends nothing to itself while it waits.
        ends.retain(|&other| other != world.rank);
    }
    let first = *ends.first()?;
    let mut others: Vec<(usize, bool)> = ends.iter().skip(1).map(|&other| (other, true)).collect();
    let answered = match world.messages.all.get().map(|messages| messages.try_borrow()) {
        None => Vec::new(),
        Some(messages) => match messages.ok()?.posted.sources() {
            None => all().collect(),
            Some(sources) => sources,
        },
    };
    let is_new = |other: &usize| *other != world.rank && !ends.contains(other);
    others.extend(answered.into_iter().filter(is_new).map(|other| (other, false)));
    (others.len() <= OTHERS).then_some((first, others))
}

/// Ends the world if another rank has sent this rank a message of a census that this rank does not
/// take. Such a rank does not send the messages that this rank waits for.
fn compare_census(world: &WorldCore, endpoint: &mut Endpoint) {
    if world.census.may_switch() {
        return; // the message may be of the next exchange
    }
    let other = |from: usize| {
        let frame = endpoint.poll(from, Port::FENCE).ok().flatten()?;
        let census = census_of(frame.header.kind).filter(|census| *census != world.census.usual)?;
        Some((from, census.to_string()))
    };
    if let Some((from, theirs)) = (0..world.size).filter(|&from| from != world.rank).find_map(other) {
        censuses_differ(world, endpoint, from, &theirs);
    }
}

/// Ends the world because this rank and another rank take different censuses, and returns the
/// reason.
///
/// Each of the two ranks waits for messages that the other does not send.
#[cold]
pub(crate) fn censuses_differ(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    other: usize,
    theirs: &str,
) -> Lost {
    let what = format!(
        "the census of rank {} is {}, and that of rank {other} is {theirs}: give all ranks one FENCEPOST_CENSUS and one machine model",
        world.rank,
        world.census.taken.get()
    );
    world.calls.sites.end(ErrorClass::RmaSync);
    endpoint.end(Cause { rank: other, what: what.clone() });
    Lost { rank: other, how: Loss::Ended(what) }
}

/// Describes a call, followed by the text of `about`.
fn described(call: &Call, windows: &[&WindowCore], about: Option<&dyn Fn() -> String>) -> String {
    let about = about.map_or_else(String::new, |about| about());
    call.describe(windows) + &about
}

/// Returns a count of everything sent so far by this endpoint for which another rank may wait.
fn sent(endpoint: &Endpoint, awaited: Awaited<'_>) -> u64 {
    let meter = endpoint.meter();
    let asked = if let Awaited::Lock(queue) = awaited { queue.asked() } else { 0 };
    meter.total().frames + meter.exchanges + meter.settles + meter.releases - asked
}

/// Describes a cycle or a knot for the report of rank `me`. Only the report of the lowest rank
/// names all waits.
fn told_once(cycle: &[Waiting], me: usize) -> String {
    let mut ranks: Vec<usize> = cycle.iter().map(|waiting| waiting.rank).collect();
    ranks.sort_unstable();
    match ranks[0] {
        first if first == me => format!("{}; with FENCEPOST_DEADLOCK=end this is an error", words(cycle)),
        first => {
            let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
            format!("deadlock of ranks {}: see the report of rank {first}", ranks.join(", "))
        }
    }
}

/// Describes a cycle or a knot.
fn words(cycle: &[Waiting]) -> String {
    let one = |waiting: &Waiting| {
        let about = waiting.about().filter(|about| about.ends && about.seen != GONE);
        let ranks: Vec<String> = about.map(|about| about.rank.to_string()).collect();
        let ranks = match &ranks[..] {
            [] | [_] => format!("rank {}", ranks.first().unwrap_or(&waiting.awaited.to_string())),
            _ => format!("any of ranks {}", ranks.join(", ")),
        };
        format!("rank {} waits for {ranks} in {}", waiting.rank, waiting.text)
    };
    let each: Vec<String> = cycle.iter().map(one).collect();
    format!("deadlock: {}", each.join("; "))
}
