//! Accesses and exposures as requests.

use crate::api::access::Access;
use crate::api::exposed::Exposed;
use crate::api::refused::Refused;
use crate::api::requests::{Completion, Other, Request};
use crate::kernel::element::Element;
use crate::messages::state::status::Status;
use crate::posts;
use crate::state::call::Call;
use crate::state::window::Window;
use fencepost_planner::Result;
use fencepost_transport::Endpoint;

impl<T: Element> Access<T> {
    /// Turns [`complete`](Self::complete) into a request. The request is complete when the posts
    /// that `complete` waits for have arrived.
    ///
    /// The access is carried out by the call that completes the request, or by an earlier call of
    /// the request's set that waits or tests for all requests. From then on, the tickets of the
    /// access hold their elements.
    ///
    /// Dropping the request completes the access. If the thread panics, dropping the request drops
    /// the access instead.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let (mut u, other) = (world.window::<u64>(1)?, 1 - world.rank());
    /// let (group, rank) = (world.group([other])?, world.rank() as u64);
    /// let access = u.start(&group)?;
    /// access.put([rank]).to(other, 0)?;
    /// let mut requests = world.requests();
    /// requests.push(access.icomplete().map(|()| None))?;
    /// requests.push(u.post(&group)?.iwait().map(Some))?;
    /// let all = requests.wait_all()?;
    /// u = all.into_iter().find_map(|completed| completed.buffer).unwrap();
    /// assert_eq!(u[..], [other as u64]);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn icomplete(self) -> Request<()> {
        let world = self.core().world.clone();
        Request::other(&world, Box::new(Completing { access: self, ended: None }))
    }
}

impl<T: Element, L: 'static> Exposed<T, L> {
    /// Turns [`wait`](Self::wait) into a request. The request is complete when all sources have
    /// ended their accesses.
    ///
    /// The puts and accumulates of the sources are applied by the call that completes the request,
    /// or by an earlier call of the request's set that waits or tests for all requests.
    pub fn iwait(self) -> Request<Window<T>> {
        let world = self.window().core().world.clone();
        Request::other(&world, Box::new(Waiting { exposed: self, ended: None }))
    }
}

struct Completing<T: Element> {
    access: Access<T>,
    /// The result, once the access was carried out.
    ended: Option<Result<()>>,
}

impl<T: Element> Other<()> for Completing<T> {
    fn awaits(&mut self, endpoint: &mut Endpoint) -> Option<(usize, &'static str)> {
        self.access.awaits(endpoint).map(|target| (target, "posts"))
    }

    fn carry_out(&mut self, call: &Call) {
        self.ended.get_or_insert_with(|| self.access.end(call));
    }

    fn finish(mut self: Box<Self>, call: &Call) -> Completion<()> {
        self.carry_out(call);
        match self.ended {
            Some(Err(error)) => Err(Refused::new((), error)),
            _ => Ok(((), Status::default())),
        }
    }

    fn words(&self) -> String {
        format!("an access to window {}", self.access.core().key.window)
    }
}

struct Waiting<T: Element, L> {
    exposed: Exposed<T, L>,
    /// The result, once the wait was carried out.
    ended: Option<Result<()>>,
}

impl<T: Element, L> Other<Window<T>> for Waiting<T, L> {
    fn awaits(&mut self, endpoint: &mut Endpoint) -> Option<(usize, &'static str)> {
        let source = posts::awaited_source(self.exposed.window().core(), endpoint);
        source.map(|source| (source, "accesses"))
    }

    fn carry_out(&mut self, call: &Call) {
        self.ended.get_or_insert_with(|| posts::wait(self.exposed.window().core(), call));
    }

    fn finish(mut self: Box<Self>, call: &Call) -> Completion<Window<T>> {
        self.carry_out(call);
        let window = self.exposed.into_window();
        match self.ended {
            Some(Err(error)) => Err(Refused::new(window, error)),
            _ => Ok((window, Status::default())),
        }
    }

    fn words(&self) -> String {
        format!("an exposure of window {}", self.exposed.window().core().key.window)
    }
}
