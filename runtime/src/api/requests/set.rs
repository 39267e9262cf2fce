//! [`RequestSet`]: requests that are completed in any order.

use crate::api::refused::Refused;
use crate::api::requests::{Request, foreign};
use crate::messages::{self, Begun};
use crate::state::call::Call;
use crate::state::completion::Queue;
use crate::state::messages::status::Status;
use crate::state::world::{World, WorldCore};
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::Endpoint;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// Requests of one world that are completed in any order: any, all, or all that are complete.
///
/// Each has a place in the set, from 0, which [`push`](Self::push) returns, and which another request may have when it
/// was completed. Requests are completed in the order in which they became complete, so none is passed over.
///
/// A server that hands each client's next request to [`wait_some`](Self::wait_some) starves no client, since that
/// completes all that are complete:
///
/// ```
/// # fencepost_runtime::ranks(4).run(|world| {
/// if world.rank() > 0 {
///     for value in 0..10u64 {
///         world.send(0, 0, [value])?;
///     }
///     return Ok(());
/// }
/// let mut requests = world.requests();
/// for client in 1..world.size() {
///     requests.push(world.irecv::<u64>(client, 0)?)?;
/// }
/// let mut next = vec![0; world.size()];
/// while let Some(all) = requests.wait_some()? {
///     for came in all {
///         let client = came.status.source.unwrap();
///         assert_eq!(came.buffer, [next[client]]);
///         next[client] += 1;
///         if next[client] < 10 {
///             requests.push(world.irecv(client, 0)?)?;
///         }
///     }
/// }
/// assert_eq!(next, [0, 10, 10, 10]);
/// # Ok(()) }).unwrap();
/// ```
///
/// A set that is dropped drops its requests, which are completed first.
///
/// # Cost
/// A call looks at no request that is not complete, however many there are: who completes one adds it to the set's queue.
///
/// # Source
/// MPI 4.1, section 3.7.5 (multiple completions).
pub struct RequestSet<B> {
    world: Rc<WorldCore>,
    places: Vec<Option<Request<B>>>,
    /// Places that no request has.
    free: Vec<usize>,
    queue: Rc<Queue>,
    /// The places of requests that no one adds to the queue: it is looked whether they are ready.
    looked_at: Vec<usize>,
}

/// The error of a call that completes several requests, some of which have failed, with the [`Outcome`] of each.
pub type SomeFailed<B> = Refused<Vec<Outcome<B>>>;

/// A request of a set that was completed successfully.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Completed<B> {
    /// The place that the request had in its set.
    pub place: usize,
    /// The buffer.
    pub buffer: B,
    /// What was received; empty, where that is nothing.
    pub status: Status,
}

/// What became of one request of several, some of which have failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<B> {
    /// It was completed.
    Success(Completed<B>),
    /// It has failed.
    Failed {
        /// The place that the request had in its set.
        place: usize,
        /// The buffer.
        buffer: B,
        /// The error.
        error: Error,
    },
    /// It has neither failed nor was it completed, and is in the set.
    Pending {
        /// The place of the request.
        place: usize,
    },
}

impl<B> Outcome<B> {
    /// The place that the request has, or had, in its set.
    pub fn place(&self) -> usize {
        match self {
            Self::Success(completed) => completed.place,
            Self::Failed { place, .. } | Self::Pending { place } => *place,
        }
    }

    /// The class of the request's error: `None` for success, `PENDING` for a request that is in the set.
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            Self::Success(_) => None,
            Self::Failed { error, .. } => Some(error.class()),
            Self::Pending { .. } => Some(ErrorClass::Pending),
        }
    }
}

impl World {
    /// A set of requests of this world, which is empty.
    pub fn requests<B>(&self) -> RequestSet<B> {
        RequestSet {
            world: self.core().clone(),
            places: Vec::new(),
            free: Vec::new(),
            queue: Rc::default(),
            looked_at: Vec::new(),
        }
    }
}

impl<B> RequestSet<B> {
    /// Adds a request; returns its place.
    ///
    /// # Errors
    /// `ARG` for a request of another world, which is given back.
    #[track_caller]
    pub fn push(&mut self, request: Request<B>) -> Result<usize, Refused<Request<B>>> {
        if !Rc::ptr_eq(&self.world, &request.world) {
            let error = foreign(&self.world, &Call::named(0, "RequestSet::push"));
            return Err(Refused::new(request, self.world.handler.reported(error)));
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        if request.is_looked_at() {
            self.looked_at.push(place);
        }
        request.tell(&self.queue, place);
        self.places[place] = Some(request);
        Ok(place)
    }

    /// Returns the number of requests in the set: none of them was returned.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether there are no requests in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until a request is complete, and completes it: the one that became complete first. `None` where the set is empty.
    ///
    /// # Errors
    /// That of the request, with its place and its buffer. The other requests stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITANY).
    #[track_caller]
    pub fn wait_any(&mut self) -> Result<Option<Completed<B>>, Refused<(usize, B)>> {
        let call = Call::named(0, "RequestSet::wait_any");
        self.until(|set| set.queue.len() > 0, &call);
        self.any(&call)
    }

    /// Does what [`wait_any`](Self::wait_any) does if that would not wait; else returns `None`.
    ///
    /// # Errors
    /// As [`wait_any`](Self::wait_any).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTANY).
    #[track_caller]
    pub fn test_any(&mut self) -> Result<Option<Completed<B>>, Refused<(usize, B)>> {
        let call = Call::named(0, "RequestSet::test_any");
        self.look();
        self.any(&call)
    }

    /// Waits until a request is complete, and completes all that are, in the order in which they became complete. `None` where
    /// the set is empty.
    ///
    /// # Errors
    /// `IN_STATUS` where some of them have failed, with the [outcome](Outcome) of each. The other requests stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITSOME).
    #[track_caller]
    pub fn wait_some(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::wait_some");
        if self.is_empty() {
            return Ok(None);
        }
        self.until(|set| set.queue.len() > 0, &call);
        self.some(&call).map(Some)
    }

    /// Completes all requests that are complete, in the order in which they became so: perhaps none. `None` where the set is
    /// empty.
    ///
    /// # Errors
    /// As [`wait_some`](Self::wait_some).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTSOME).
    #[track_caller]
    pub fn test_some(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::test_some");
        if self.is_empty() {
            return Ok(None);
        }
        self.look();
        self.some(&call).map(Some)
    }

    /// Waits until all requests are complete, and completes them; returns them by their places.
    ///
    /// # Errors
    /// `IN_STATUS` where some have failed, with the [outcome](Outcome) of each, by their places. A request that fails since a rank
    /// has left or died ends the wait: those that are not complete by then are `PENDING`, and stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITALL).
    #[track_caller]
    pub fn wait_all(&mut self) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::wait_all");
        self.every(&call)
    }

    /// Does what [`wait_all`](Self::wait_all) does if that would not wait; else returns `None`, and nothing has happened.
    ///
    /// # Errors
    /// As [`wait_all`](Self::wait_all).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTALL).
    #[track_caller]
    pub fn test_all(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::test_all");
        self.look();
        if self.queue.len() < self.len() && !self.queue.has_lost() && self.world.goes_on() {
            return Ok(None);
        }
        self.every(&call).map(Some)
    }

    /// Cancels the request at a place, as [`Request::cancel`] does; returns its buffer if it was cancelled. `None` where that is
    /// not possible, or no request is there.
    pub fn cancel(&mut self, place: usize) -> Option<B> {
        let request = self.places.get_mut(place)?.take()?;
        match request.cancel() {
            Ok(buffer) => {
                self.free.push(place);
                Some(buffer)
            }
            Err(request) => {
                self.places[place] = Some(request);
                None
            }
        }
    }

    /// Goes on with all that was begun, without waiting.
    fn look(&mut self) {
        let world = self.world.clone();
        if self.is_empty() || !world.goes_on() {
            return;
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        messages::progress(&world, endpoint);
        self.look_at(endpoint);
        messages::flush(endpoint);
    }

    /// Adds the requests to the queue that are ready, of those that nobody else adds.
    fn look_at(&mut self, endpoint: &mut Endpoint) {
        let (places, queue) = (&mut self.places, &self.queue);
        self.looked_at.retain(|&place| {
            let ready = places[place].as_mut().is_some_and(|request| request.is_ready(endpoint));
            if ready {
                queue.push(place);
            }
            !ready
        });
    }

    /// Waits until something is so, which becomes so when requests become complete; or until the world has ended.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool, call: &Call) {
        self.look();
        let world = self.world.clone();
        if self.is_empty() || is_so(self) || !world.goes_on() {
            return;
        }
        if let (1, Some(only)) =
            (self.len(), self.places.iter().flatten().next().filter(|one| !one.is_looked_at()))
        {
            // Whom it waits for is known, so a wait-for cycle is found.
            drop(only.wait_until(&|| false, call));
            return;
        }
        // What is said of the requests, and whom they wait for, is made where it is said.
        if self.looked_at.is_empty() {
            let begun = || self.places.iter().flatten().filter_map(Request::begun);
            let about = || said(self.len(), begun());
            let ranks = || {
                let peers: Option<BTreeSet<usize>> = begun().map(|begun| begun.peer()).collect();
                let all = || (0..world.size).collect();
                Some(peers.unwrap_or_else(all).into_iter().collect())
            };
            return messages::wait_for_some(&world, (&about, &ranks), |_| is_so(self), call);
        }
        let (len, first) = (self.len(), self.places.iter().flatten().find_map(Request::begun));
        let about = || said(len, first.iter().cloned());
        let look = |endpoint: &mut Endpoint| {
            self.look_at(endpoint);
            is_so(self)
        };
        // Whom an access or an exposure waits for changes as others go on.
        messages::wait_for_some(&world, (&about, &|| None), look, call);
    }

    /// Completes the first request that is complete. Where the world has ended, all are.
    fn any(&mut self, call: &Call) -> Result<Option<Completed<B>>, Refused<(usize, B)>> {
        let ended = || self.places.iter().position(Option::is_some).filter(|_| !self.world.goes_on());
        let Some(place) = self.queue.pop().or_else(ended) else { return Ok(None) };
        match self.finished(place, call) {
            Outcome::Success(completed) => Ok(Some(completed)),
            Outcome::Failed { place, buffer, error } => {
                Err(Refused::new((place, buffer), error).reported(&self.world.handler))
            }
            Outcome::Pending { .. } => Ok(None),
        }
    }

    /// Completes all requests that are complete. Where the world has ended, all are.
    fn some(&mut self, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let mut outcomes: Vec<Outcome<B>> = Vec::new();
        let complete = self.queue.take();
        if complete.is_empty() && !self.world.goes_on() {
            let all: Vec<usize> = (0..self.places.len()).filter(|&at| self.places[at].is_some()).collect();
            outcomes.extend(all.into_iter().map(|place| self.finished(place, call)));
        }
        outcomes.extend(complete.into_iter().map(|place| self.finished(place, call)));
        self.told(outcomes, call)
    }

    /// Waits for all, until a rank is lost, and completes all that are complete.
    fn every(&mut self, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        self.look();
        let mut lost = Vec::new();
        for place in 0..self.places.len() {
            let Some(request) = &self.places[place] else { continue };
            if self.queue.has_lost() || !self.world.goes_on() {
                break;
            }
            if request.is_looked_at() {
                continue;
            }
            let queue = self.queue.clone();
            if let Some(why) = request.wait_until(&|| queue.has_lost(), call) {
                lost.push((place, why));
            }
        }
        let ended = !self.world.goes_on();
        let mut complete = vec![false; self.places.len()];
        for place in self.queue.take() {
            complete[place] = true;
        }
        let stops = self.queue.has_lost();
        let mut outcomes = Vec::with_capacity(self.len());
        for (place, complete) in complete.into_iter().enumerate() {
            let Some(request) = &self.places[place] else { continue };
            if !complete && !ended && (stops || !request.is_looked_at()) {
                outcomes.push(Outcome::Pending { place });
                continue;
            }
            let why = lost.iter().position(|(at, _)| *at == place).map(|at| lost.swap_remove(at).1);
            outcomes.push(self.finished_with(place, why, call));
        }
        let places = &self.places;
        self.looked_at.retain(|&at| places[at].is_some());
        self.told(outcomes, call)
    }

    fn finished(&mut self, place: usize, call: &Call) -> Outcome<B> {
        self.finished_with(place, None, call)
    }

    /// Completes the request at a place, which is complete.
    fn finished_with(
        &mut self,
        place: usize,
        lost: Option<fencepost_transport::Lost>,
        call: &Call,
    ) -> Outcome<B> {
        let Some(request) = self.places[place].take() else { return Outcome::Pending { place } };
        self.free.push(place);
        match request.finished(lost, call) {
            Ok((buffer, status)) => Outcome::Success(Completed { place, buffer, status }),
            Err(refused) => {
                let (buffer, error) = refused.into_parts();
                Outcome::Failed { place, buffer, error }
            }
        }
    }

    /// The result of a call that has completed these.
    fn told(&self, outcomes: Vec<Outcome<B>>, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let failed = outcomes.iter().filter(|outcome| outcome.class().is_some()).count();
        if failed == 0 {
            let completed = outcomes.into_iter().filter_map(|outcome| match outcome {
                Outcome::Success(completed) => Some(completed),
                _ => None,
            });
            return Ok(completed.collect());
        }
        let first = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed { place, error, .. } => Some((place, error)),
            _ => None,
        });
        let first =
            first.map_or(String::new(), |(place, error)| format!("; the first, at place {place}: {error}"));
        let message = format!("{failed} of {} requests have failed or are pending{first}", outcomes.len());
        let error = call.error(&self.world, ErrorClass::InStatus, message);
        let error = if self.world.goes_on() { error } else { error.ending_world() };
        Err(Refused::new(outcomes, error).reported(&self.world.handler))
    }
}

/// The requests of a set in words, with a few of its messages.
fn said(len: usize, messages: impl Iterator<Item = Begun>) -> String {
    const MOST: usize = 3;
    let words: Vec<String> = messages.take(MOST).map(|begun| begun.words()).collect();
    let which = match words.len() {
        0 => "",
        known if known == len => ": ",
        _ => ", among them ",
    };
    format!(": {len} requests{which}{}", words.join("; "))
}

impl<B> fmt::Debug for RequestSet<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.places.iter().flatten()).finish()
    }
}
