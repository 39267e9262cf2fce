//! [`RequestSet`]: requests that are completed in any order.

use crate::api::refused::Refused;
use crate::api::requests::{Request, foreign};
use crate::messages::state::completion::Queue;
use crate::messages::state::status::Status;
use crate::messages::{self, Begun};
use crate::state::call::Call;
use crate::state::world::{World, WorldCore};
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Endpoint, Lost};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

/// Requests of one world that are completed in any order. A call completes one request whose
/// operation is over, all such requests, or all requests of the set.
///
/// Each request has a place in the set, a number from 0 that [`push`](Self::push) returns. When a
/// request has been completed, its place may be given to another request. Requests are completed in
/// the order in which their operations ended, so no request is passed over.
///
/// A server that adds each client's next request to the set and calls
/// [`wait_some`](Self::wait_some) starves no client, since `wait_some` completes all requests that
/// are complete:
///
/// ```
/// # fencepost_runtime::ranks(4).run(|world| {
/// if world.rank() > 0 {
///     for value in 0..10u64 {
///         world.message(0, 0).send([value])?;
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
/// A set that is dropped completes its requests first, as [`wait_all`](Self::wait_all) does. If a
/// function of [`Request::map`](crate::Request::map) or the error handler panics, the call of the
/// set unwinds and all other requests stay in the set.
///
/// # Cost
/// A call does not look at requests that are not complete: the code that completes a request adds
/// it to the set's queue.
///
/// # Source
/// MPI 4.1, section 3.7.5 (multiple completions).
pub struct RequestSet<B> {
    world: Rc<WorldCore>,
    places: Vec<Option<Request<B>>>,
    /// Places without a request.
    free: Vec<usize>,
    queue: Rc<Queue>,
    /// The places of requests that only the set itself adds to the queue. The set checks whether
    /// these requests are ready.
    looked_at: Vec<usize>,
    /// The places that were moved from `looked_at` to the queue. Their requests may still have to
    /// be carried out.
    ready: Vec<usize>,
}

/// The error of a call that completes several requests, with the [`Outcome`] of each.
type SomeFailed<B> = Refused<Vec<Outcome<B>>>;

/// A request of a set that was completed successfully.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Completed<B> {
    /// The place that the request had in its set.
    pub place: usize,
    /// The buffer.
    pub buffer: B,
    /// The status of a receive; empty if nothing was received.
    pub status: Status,
}

/// The result of one of several requests, if some of them have failed.
///
/// ```
/// # use fencepost_runtime::Outcome;
/// # fencepost_runtime::ranks(1).run(|world| {
/// world.message(0, 0).send([1u8; 3])?;
/// world.message(0, 1).send([2u8])?;
/// let mut requests = world.requests();
/// requests.push(world.irecv_into(0, 0, vec![0u8])?)?; // there is no room for three elements
/// requests.push(world.irecv_into(0, 1, vec![0u8])?)?;
/// for outcome in requests.wait_all().unwrap_err().into_parts().0 {
///     match outcome {
///         Outcome::Success(completed) => assert_eq!(completed.buffer, [2]),
///         Outcome::Failed { place, error, .. } => assert_eq!(place, 0, "{error}"),
///         Outcome::Pending { place } => unreachable!("{place}"),
///         _ => {}
///     }
/// }
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<B> {
    /// The request was completed.
    Success(Completed<B>),
    /// The request has failed.
    Failed {
        /// The place that the request had in its set.
        place: usize,
        /// The buffer.
        buffer: B,
        /// The error.
        error: Error,
    },
    /// The request was not completed and has not failed. It is still in the set.
    Pending {
        /// The place of the request.
        place: usize,
    },
}

impl<B> Outcome<B> {
    /// Returns the place that the request has, or had, in its set.
    pub fn place(&self) -> usize {
        match self {
            Self::Success(completed) => completed.place,
            Self::Failed { place, .. } | Self::Pending { place } => *place,
        }
    }

    /// Returns the class of the request's error: `None` for success, `PENDING` for a request that
    /// is still in the set.
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            Self::Success(_) => None,
            Self::Failed { error, .. } => Some(error.class()),
            Self::Pending { .. } => Some(ErrorClass::Pending),
        }
    }
}

impl World {
    /// Returns an empty set for requests of this world.
    pub fn requests<B>(&self) -> RequestSet<B> {
        RequestSet {
            world: self.core().clone(),
            places: Vec::new(),
            free: Vec::new(),
            queue: Rc::default(),
            looked_at: Vec::new(),
            ready: Vec::new(),
        }
    }
}

impl<B> RequestSet<B> {
    /// Adds a request, and returns its place.
    ///
    /// # Errors
    /// `ARG` for a request of another world. The error returns the request.
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

    /// Returns the number of requests in the set. These are the requests that were not returned
    /// yet.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns whether there are no requests in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until a request is complete, and completes the request that became complete first.
    ///
    /// Returns `None` if the set is empty.
    ///
    /// # Errors
    /// The error of the request, with its place and its buffer. The other requests stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITANY).
    #[doc(alias = "MPI_Waitany")]
    #[track_caller]
    pub fn wait_any(&mut self) -> Result<Option<Completed<B>>, Refused<(usize, B)>> {
        let call = Call::named(0, "RequestSet::wait_any");
        self.until(|set| set.queue.len() > 0, &call);
        self.any(&call)
    }

    /// Does the same as [`wait_any`](Self::wait_any) if `wait_any` would return at once. Otherwise
    /// no request is complete, and the call returns `Pending`.
    ///
    /// Returns `Ready(None)` if the set is empty. A get under a lock
    /// ([`Locked::rget`](crate::Locked::rget)) counts as complete in all tests of a set. The
    /// completion of such a get may wait for its lock. Before it completes the get, the set carries
    /// out the accesses and exposures that are ready.
    ///
    /// ```
    /// # use std::task::Poll;
    /// # fencepost_runtime::ranks(1).run(|world| {
    /// let mut requests = world.requests();
    /// assert_eq!(requests.test_any()?, Poll::Ready(None));
    /// requests.push(world.irecv::<u8>(0, 0)?)?;
    /// assert_eq!(requests.test_any()?, Poll::Pending);
    /// world.message(0, 0).send([7u8])?;
    /// let Poll::Ready(Some(completed)) = requests.test_any()? else { panic!("it has come") };
    /// assert_eq!(completed.buffer, [7]);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`wait_any`](Self::wait_any).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTANY).
    #[doc(alias = "MPI_Testany")]
    #[track_caller]
    #[expect(clippy::type_complexity, reason = "each of the three layers has one meaning")]
    pub fn test_any(&mut self) -> Result<Poll<Option<Completed<B>>>, Refused<(usize, B)>> {
        let call = Call::named(0, "RequestSet::test_any");
        if self.is_empty() {
            return Ok(Poll::Ready(None));
        }
        self.look();
        Ok(self.any(&call)?.map_or(Poll::Pending, |completed| Poll::Ready(Some(completed))))
    }

    /// Waits until a request is complete, and completes all complete requests, in the order in
    /// which they became complete.
    ///
    /// Returns `None` if the set is empty.
    ///
    /// # Errors
    /// `IN_STATUS` if some of these requests have failed, with the [outcome](Outcome) of each. The
    /// other requests stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITSOME).
    #[doc(alias = "MPI_Waitsome")]
    #[track_caller]
    pub fn wait_some(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::wait_some");
        if self.is_empty() {
            return Ok(None);
        }
        self.until(|set| set.queue.len() > 0, &call);
        self.some(&call).map(Some)
    }

    /// Completes all requests that are complete, possibly none, in the order in which they became
    /// complete.
    ///
    /// Returns `None` if the set is empty.
    ///
    /// # Errors
    /// As [`wait_some`](Self::wait_some).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTSOME).
    #[doc(alias = "MPI_Testsome")]
    #[track_caller]
    pub fn test_some(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::test_some");
        if self.is_empty() {
            return Ok(None);
        }
        self.look();
        self.some(&call).map(Some)
    }

    /// Waits until all requests are complete, completes them, and returns them in the order of
    /// their places.
    ///
    /// Accesses and exposures are carried out as soon as possible, in any order.
    ///
    /// # Errors
    /// `IN_STATUS` if some requests have failed, with the [outcome](Outcome) of each, in the order
    /// of their places. A request that fails because a rank has left or died ends the wait.
    /// Requests that are not complete by then are `PENDING`, and stay in the set.
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_WAITALL).
    #[doc(alias = "MPI_Waitall")]
    #[track_caller]
    pub fn wait_all(&mut self) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::wait_all");
        self.every(&call)
    }

    /// Does the same as [`wait_all`](Self::wait_all) if `wait_all` would return at once. Otherwise
    /// returns `None`, and all requests stay in the set.
    ///
    /// Even if it returns `None`, the call has carried out the accesses and exposures that were
    /// ready, since other ranks may wait for them.
    ///
    /// # Errors
    /// As [`wait_all`](Self::wait_all).
    ///
    /// # Source
    /// MPI 4.1, section 3.7.5 (MPI_TESTALL).
    #[doc(alias = "MPI_Testall")]
    #[track_caller]
    pub fn test_all(&mut self) -> Result<Option<Vec<Completed<B>>>, SomeFailed<B>> {
        let call = Call::named(0, "RequestSet::test_all");
        self.look();
        while !self.ready.is_empty() {
            self.carry_out(&call);
            self.look(); // an exposure to this rank is ready after its own access
        }
        if self.queue.len() < self.len() && !self.queue.has_lost() && self.world.life.goes_on() {
            return Ok(None);
        }
        self.every(&call).map(Some)
    }

    /// Cancels the request at a place, as [`Request::cancel`] does, and returns its buffer. Returns
    /// `None` if the request cannot be cancelled, or if there is no request at that place.
    pub fn cancel(&mut self, place: usize) -> Option<B> {
        let request = self.places.get_mut(place)?.take()?;
        // The place is freed before the cancellation, since a function of the program may unwind.
        self.free.push(place);
        match request.cancel() {
            Ok(buffer) => Some(buffer),
            Err(request) => {
                self.free.pop();
                self.places[place] = Some(request);
                None
            }
        }
    }

    /// Makes progress, without waiting, with all operations that were begun.
    fn look(&mut self) {
        let world = self.world.clone();
        if self.is_empty() || !world.life.goes_on() {
            return;
        }
        let endpoint = &mut *world.endpoint.borrow_mut();
        messages::progress(&world, endpoint);
        self.look_at(endpoint);
        messages::flush(endpoint);
    }

    /// Queues accesses and exposures that are ready.
    fn look_at(&mut self, endpoint: &mut Endpoint) {
        let Self { places, queue, looked_at, ready, .. } = self;
        looked_at.retain(|&place| {
            let is_ready = places[place].as_mut().is_some_and(|request| request.is_ready(endpoint));
            if is_ready {
                queue.push(place);
                ready.push(place);
            }
            !is_ready
        });
    }

    /// Queues one of the accesses and exposures if none of them is ready and all of them wait for
    /// calls of this rank. This rank makes no such call while it waits (planner/README.md, 16), so
    /// the queued request is refused when it is carried out. Returns whether a request was queued.
    fn look_for_own(&mut self, endpoint: &mut Endpoint) -> bool {
        let Self { places, queue, looked_at, ready, .. } = self;
        let mut awaits_itself =
            |place: &usize| places[*place].as_mut().is_some_and(|request| request.awaits_itself(endpoint));
        if looked_at.is_empty() || !ready.is_empty() || !looked_at.iter().all(&mut awaits_itself) {
            return false;
        }
        let place = looked_at.remove(0);
        queue.push(place);
        ready.push(place);
        true
    }

    /// Carries out accesses and exposures that are ready, but completes none of their requests. A
    /// call of the set carries them out first, since a get may wait for a lock that another rank
    /// releases only after these accesses and exposures.
    fn carry_out(&mut self, call: &Call) {
        for place in std::mem::take(&mut self.ready) {
            if let Some(request) = &mut self.places[place] {
                request.carry_out(call);
            }
        }
    }

    /// Waits until all requests are complete, a rank is lost, or the world has ended. If a request
    /// of this wait has lost a rank, returns the place of the request, and the loss.
    fn wait_for_all(&mut self, call: &Call) -> Option<(usize, Lost)> {
        let (world, queue) = (self.world.clone(), self.queue.clone());
        self.look();
        for place in 0..self.places.len() {
            loop {
                self.carry_out(call);
                if queue.has_lost() || !world.life.goes_on() {
                    return None;
                }
                let is_open = |request: &Request<B>| match request.is_looked_at() {
                    true => self.looked_at.contains(&place),
                    false => !request.is_complete(),
                };
                if !self.places[place].as_ref().is_some_and(is_open) {
                    break;
                }
                if self.look_for_own(&mut world.endpoint.borrow_mut()) {
                    continue;
                }
                let Some(mut request) = self.places[place].take() else { break };
                // This wait also ends when another request becomes ready, since other ranks may
                // wait for that request.
                let mut is_over = |endpoint: &mut Endpoint| {
                    self.look_at(endpoint);
                    queue.has_lost() || !self.ready.is_empty()
                };
                let lost = request.wait_or(&mut is_over, call);
                let is_other = request.is_looked_at();
                self.places[place] = Some(request);
                if lost.is_some() {
                    return lost.map(|lost| (place, lost));
                }
                if is_other {
                    self.look();
                }
            }
        }
        None
    }

    /// Waits until `is_so` returns true or the world has ended. `is_so` becomes true when requests
    /// become complete.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool, call: &Call) {
        self.look();
        let world = self.world.clone();
        if self.is_empty() || is_so(self) || !world.life.goes_on() {
            return;
        }
        if let (1, Some(only)) =
            (self.len(), self.places.iter().flatten().next().filter(|one| !one.is_looked_at()))
        {
            // The set has only this request. The rank that the request waits for is known, so a
            // cycle of waits can be detected.
            drop(only.wait_until(&mut |_| false, call));
            return;
        }
        // The description of the requests, and of the ranks that they wait for, is built only for a
        // report.
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
            if self.looked_at.len() == len {
                self.look_for_own(endpoint);
            }
            is_so(self)
        };
        // Other ranks make progress during this wait, so an access or an exposure may wait for one
        // rank first and for another rank later. So a report of this wait names no rank.
        messages::wait_for_some(&world, (&about, &|| None), look, call);
    }

    /// Completes the first request that is complete. If the world has ended, all requests count as
    /// complete.
    fn any(&mut self, call: &Call) -> Result<Option<Completed<B>>, Refused<(usize, B)>> {
        self.carry_out(call);
        let ended = || self.places.iter().position(Option::is_some).filter(|_| !self.world.life.goes_on());
        let Some(place) = self.queue.pop().or_else(ended) else { return Ok(None) };
        match self.finished(place, None, call) {
            Outcome::Success(completed) => Ok(Some(completed)),
            Outcome::Failed { place, buffer, error } => {
                Err(Refused::new((place, buffer), error).reported(&self.world.handler))
            }
            Outcome::Pending { .. } => Ok(None),
        }
    }

    /// Completes all requests that are complete. If the world has ended, all requests count as
    /// complete.
    fn some(&mut self, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        self.carry_out(call);
        let mut order = self.queue.take();
        if order.is_empty() && !self.world.life.goes_on() {
            order.extend((0..self.places.len()).filter(|&at| self.places[at].is_some()));
        }
        let outcomes = Vec::with_capacity(order.len());
        let mut batch = Batch { set: self, order, outcomes };
        for at in 0..batch.order.len() {
            batch.complete(batch.order[at], None, call);
        }
        batch.returned(call)
    }

    /// Waits until all requests are complete or a rank is lost, and completes all requests that are
    /// complete.
    fn every(&mut self, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let mut lost = self.wait_for_all(call);
        let ended = !self.world.life.goes_on();
        let order = self.queue.take();
        let mut complete = vec![ended; self.places.len()];
        order.iter().for_each(|&place| complete[place] = true);
        let outcomes = Vec::with_capacity(self.len());
        let mut batch = Batch { set: self, order, outcomes };
        for (place, complete) in complete.into_iter().enumerate() {
            if batch.set.places[place].is_none() {
                continue;
            }
            if complete {
                batch.complete(place, lost.take_if(|(at, _)| *at == place).map(|(_, why)| why), call);
            } else {
                batch.outcomes.push(Outcome::Pending { place });
            }
        }
        batch.returned(call)
    }

    /// Takes the request at `place` out of the set, and returns its outcome. The request must be
    /// complete.
    fn finished(&mut self, place: usize, lost: Option<Lost>, call: &Call) -> Outcome<B> {
        let Some(request) = self.places[place].take() else { return Outcome::Pending { place } };
        self.free.push(place);
        if request.is_looked_at() {
            self.looked_at.retain(|&at| at != place);
            self.ready.retain(|&at| at != place);
        }
        match request.finished(lost, call) {
            Ok((buffer, status)) => Outcome::Success(Completed { place, buffer, status }),
            Err(refused) => {
                let (buffer, error) = refused.into_parts();
                Outcome::Failed { place, buffer, error }
            }
        }
    }
}

/// The requests that a call completes. If a function of the program unwinds meanwhile, that
/// function's request is lost, and all others are returned to the set as complete requests.
struct Batch<'s, B> {
    set: &'s mut RequestSet<B>,
    /// The places of the complete requests, in the order in which they became complete.
    order: VecDeque<usize>,
    outcomes: Vec<Outcome<B>>,
}

impl<B> Batch<'_, B> {
    fn complete(&mut self, place: usize, lost: Option<Lost>, call: &Call) {
        let outcome = self.set.finished(place, lost, call);
        self.outcomes.push(outcome);
    }

    /// Returns the result of a call that has completed these requests.
    fn returned(mut self, call: &Call) -> Result<Vec<Completed<B>>, SomeFailed<B>> {
        let outcomes = &self.outcomes;
        let failed = outcomes.iter().filter(|outcome| outcome.class().is_some()).count();
        if failed == 0 {
            let completed =
                std::mem::take(&mut self.outcomes).into_iter().filter_map(|outcome| match outcome {
                    Outcome::Success(completed) => Some(completed),
                    _ => None,
                });
            let completed = completed.collect();
            self.order.clear();
            return Ok(completed);
        }
        let first = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed { place, error, .. } => Some((place, error)),
            _ => None,
        });
        let own = |outcome: &Outcome<B>| matches!(outcome, Outcome::Failed { error, .. } if error.failed_rank().is_none());
        let passed_on =
            first.filter(|_| !outcomes.iter().any(own)).and_then(|(_, error)| error.failed_rank().cloned());
        let first =
            first.map_or(String::new(), |(place, error)| format!("; the first, at place {place}: {error}"));
        let message = format!("{failed} of {} requests have failed or are pending{first}", outcomes.len());
        let world = &self.set.world;
        let error = call.error(world, ErrorClass::InStatus, message).passing_on(passed_on);
        let error = if world.life.goes_on() { error } else { error.ending_world() };
        // The handler is a function of the program as well, and may unwind.
        let error = world.handler.reported(error);
        self.order.clear();
        Err(Refused::new(std::mem::take(&mut self.outcomes), error))
    }
}

impl<B> Drop for Batch<'_, B> {
    fn drop(&mut self) {
        let set = &mut *self.set;
        for outcome in self.outcomes.drain(..) {
            let (place, over) = match outcome {
                Outcome::Success(Completed { place, buffer, status }) => (place, Ok((buffer, status))),
                Outcome::Failed { place, buffer, error } => (place, Err(Refused::new(buffer, error))),
                Outcome::Pending { .. } => continue,
            };
            set.free.retain(|&free| free != place);
            set.places[place] = Some(Request::over(&set.world, over));
        }
        for place in self.order.drain(..).rev() {
            if set.places[place].is_some() {
                set.queue.push_first(place);
            }
        }
    }
}

impl<B> Drop for RequestSet<B> {
    fn drop(&mut self) {
        if std::thread::panicking() || self.is_empty() {
            return;
        }
        // Requests that belong to a scope are dropped first, since their scope completes them.
        self.places.iter_mut().for_each(|place| drop(place.take_if(|request| request.is_scoped)));
        let mut call = Call::named(0, "drop of a set of requests");
        if let Some(begun) = self.places.iter().flatten().find_map(Request::begun) {
            call.site = begun.site();
        }
        drop(self.wait_for_all(&call));
        // Requests that wait for lost ranks fail first. After that, the other requests fail without
        // waiting.
        while let Some(place) = self.queue.pop() {
            drop(self.places[place].take());
        }
    }
}

/// Describes the requests of a set: their number, and a few messages among them.
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
