//! [`elsewhere`]: describes the call of another rank, for the error message if the two ranks are in
//! different calls.

use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_transport::{Endpoint, Liveness, Pause};
use std::time::{Duration, Instant};

/// The maximum time for which a rank waits to find out the other rank's call.
///
/// Each of the two ranks wakes at least once a second. The other rank writes down its call when its
/// wait has lasted for a second. The write does not wake this rank, which may therefore read the
/// call up to a second later.
const PATIENCE: Duration = Duration::from_secs(5);

/// Describes the call that `peer` is in. This rank is in another call: `call` on `windows`.
///
/// If the call-site table of this process contains the call of `peer`, the description comes from
/// that table. Otherwise the description is the text that `peer` writes down when its own wait
/// lasts. This rank writes down its own call as well, so that `peer` can describe that call. A rank
/// that computes and does not wait writes nothing, so its call is not known.
#[cold]
pub(crate) fn elsewhere(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    call: &Call,
    peer: usize,
) -> String {
    if let Some(call) = world.calls.sites.entered(peer) {
        return call;
    }
    let waits = world.stalls.borrow().waits.clone();
    waits.begin(
        world.rank,
        peer,
        &format!("{}, number {}", call.describe(windows), world.calls.supersteps()),
    );
    let (since, mut pause) = (Instant::now(), Pause::new());
    let theirs = loop {
        world.notice(endpoint, None);
        // If the entry of `peer` is in the memory of another process, `number` requests the entry
        // from `peer`.
        waits.number(peer);
        match waits.waiting(peer) {
            Some(waiting) => break Some(waiting.text),
            None if endpoint.lost(peer).is_some() || since.elapsed() > PATIENCE => break None,
            // Idling serves connections, and an answer wakes this rank.
            None => endpoint.idle(&mut pause),
        }
    };
    waits.end(world.rank);
    let at = endpoint.announced(peer) >> 32;
    theirs.unwrap_or_else(|| format!("another call, number {at}"))
}
