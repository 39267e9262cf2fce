//! [`Attendants`]: the attendants that serve the requests of a world, by the kind of request.

use fencepost_transport::{Answers, Attendant, Channels, Endpoint, Header};
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// The attendants of one rank of a world. Each request goes to the attached attendant of its kind.
#[derive(Default)]
pub(crate) struct Attendants {
    attached: Cell<bool>,
    all: Arc<Mutex<Vec<OfKind>>>,
}

/// The kind of requests that an attendant serves, and the attendant.
type OfKind = (u32, Box<dyn Attendant>);

/// The attendant that the transport calls.
struct All(Arc<Mutex<Vec<OfKind>>>);

impl Attendant for All {
    fn attend(&mut self, from: usize, asked: Header, payload: &[u8], answers: &mut dyn Answers) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, attendant)) = all.iter_mut().find(|(kind, _)| *kind == asked.kind) {
            attendant.attend(from, asked, payload, answers);
        } else {
            answers.refuse(from, "it sent a request of a kind that no rank sends");
        }
    }

    fn nudged(&mut self, answers: &mut dyn Answers) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter_mut().for_each(|(_, attendant)| attendant.nudged(answers));
    }
}

impl Attendants {
    /// Attaches the attendant that `attendant` returns, unless this kind already has an attendant.
    /// From then on, the attached attendant serves all requests of this kind.
    pub(crate) fn attach<A: Attendant + 'static>(
        &self,
        endpoint: &mut Endpoint,
        kind: u32,
        attendant: impl FnOnce() -> A,
    ) {
        {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.iter().any(|(other, _)| *other == kind) {
                return;
            }
            all.push((kind, Box::new(attendant())));
        }
        if !self.attached.replace(true) {
            endpoint.attend(Box::new(All(self.all.clone())));
        }
    }
}
