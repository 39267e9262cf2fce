//! Accesses and exposures as requests.

use crate::api::access::Access;
use crate::api::exposed::Exposed;
use crate::api::refused::Refused;
use crate::api::requests::{Other, Request};
use crate::exchange;
use crate::kernel::element::Element;
use crate::state::call::Call;
use crate::state::window::Window;
use fencepost_planner::Result;
use fencepost_transport::Endpoint;

impl<T: Element> Access<T> {
    /// [`complete`](Self::complete) as a request: it is complete when the posts that it waits for have come. The access is carried
    /// out by the call that completes the request, and its tickets hold their elements from then on.
    ///
    /// A request that is dropped completes the access; its drop while its thread panics drops the access.
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
        Request::other(&world, Box::new(Completing(self)))
    }
}

impl<T: Element, L: 'static> Exposed<T, L> {
    /// [`wait`](Self::wait) as a request: it is complete when all sources have ended their accesses. What they put and
    /// accumulated is applied by the call that completes the request.
    pub fn iwait(self) -> Request<Window<T>> {
        let world = self.window().core().world.clone();
        Request::other(&world, Box::new(Waiting(self)))
    }
}

struct Completing<T: Element>(Access<T>);

impl<T: Element> Other<()> for Completing<T> {
    fn is_ready(&mut self, endpoint: &mut Endpoint) -> bool {
        self.0.may_end(endpoint)
    }

    fn finish(self: Box<Self>, call: &Call) -> Result<(), Refused<()>> {
        self.0.end(call).map_err(|error| Refused::new((), error))
    }

    fn words(&self) -> String {
        "an access".to_owned()
    }
}

struct Waiting<T: Element, L>(Exposed<T, L>);

impl<T: Element, L> Other<Window<T>> for Waiting<T, L> {
    fn is_ready(&mut self, endpoint: &mut Endpoint) -> bool {
        exchange::is_over(self.0.window().core(), endpoint)
    }

    fn finish(self: Box<Self>, call: &Call) -> Result<Window<T>, Refused<Window<T>>> {
        let waited = exchange::wait(self.0.window().core(), call);
        let window = self.0.into_window();
        match waited {
            Ok(()) => Ok(window),
            Err(error) => Err(Refused::new(window, error)),
        }
    }

    fn words(&self) -> String {
        "an exposure".to_owned()
    }
}
