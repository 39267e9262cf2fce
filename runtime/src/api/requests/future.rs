//! A [`Request`] as a future.

use crate::api::refused::Refused;
use crate::api::requests::Request;
use crate::messages::state::status::Status;
use crate::state::call::Call;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A request is a future that returns the result of [`wait`](Request::wait) (feature `async`). Any
/// executor may run the request, on the thread of the request's world.
///
/// Each poll makes progress with all operations that the rank has begun. Between calls of the rank
/// there is no progress. So a poll of a request that is not complete wakes the request's task at
/// once. The executor then does not sleep, and polls the request again after its other tasks.
///
/// # Panics
/// Panics if a request that was completed is polled again.
impl<B> Future for Request<B> {
    type Output = Result<(B, Status), Refused<B>>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(this.operation.is_some(), "a request that was completed was polled");
        if !this.test() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let whole =
            Self { world: this.world.clone(), operation: this.operation.take(), is_scoped: this.is_scoped };
        let world = this.world.clone();
        let call = Call::named(0, "Request::poll");
        Poll::Ready(whole.completed(&call).map_err(|refused| refused.reported(&world.handler)))
    }
}

/// The buffer of a request is moved, and never pinned.
impl<B> Unpin for Request<B> {}
