//! The end of a world in which a rank is lost, or sends an invalid frame.

use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass};
use fencepost_transport::{Cause, Endpoint, Liveness, Loss, Lost};

impl WorldCore {
    /// The world ends for this rank, since `lost` can't come any more.
    pub(crate) fn lost(&self, lost: &Lost, call: &Call) -> Error {
        let host = self.host_of(lost.rank);
        let host = host.map_or(String::new(), |host| format!("; rank {} is on host {host}", lost.rank));
        let why = match &lost.how {
            Loss::Ended(_) => format!("{lost}{host}"),
            _ => format!("{lost}, and this rank waits for it{host}"),
        };
        self.die(|| format!("{lost}{host}"));
        let class = match &lost.how {
            Loss::Ended(_) => self.call_sites.ended().unwrap_or(ErrorClass::ProcFailed),
            _ => ErrorClass::ProcFailed,
        };
        call.error(self, class, why).ending_world()
    }

    /// This rank can't take part in a call that others are in, because of `error`: the world ends.
    #[cold]
    pub(crate) fn give_up(&self, endpoint: &mut Endpoint, error: Error) -> Error {
        if self.alive().is_ok() {
            let what = format!("rank {} could not take part in a call: {error}", self.rank);
            endpoint.end(Cause { rank: self.rank, what: what.clone() });
            self.ended(&what);
        }
        error.ending_world()
    }

    /// `from` sent an invalid frame, as `what` says: ends the world.
    #[cold]
    pub(crate) fn refuse(&self, endpoint: &mut Endpoint, from: usize, what: &str) -> Lost {
        self.call_sites.end(ErrorClass::ProcFailed);
        endpoint.end(Cause { rank: from, what: what.into() });
        Lost { rank: from, how: Loss::Ended(what.into()) }
    }

    /// `from` sent an invalid frame: ends the world.
    pub(crate) fn corrupt(&self, endpoint: &mut Endpoint, from: usize, call: &Call) -> Error {
        let what =
            format!("rank {from} sent a frame that does not belong to this epoch or is outside the window");
        endpoint.end(Cause { rank: from, what: what.clone() });
        self.die(|| what.clone());
        call.error(self, ErrorClass::ProcFailed, what).ending_world()
    }
}
