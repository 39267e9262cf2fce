//! [`elsewhere`]: in which call a rank is that is not in this one, for the error that says so.

use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_transport::{Endpoint, Liveness, Pause};
use std::time::{Duration, Instant};

/// How long a rank waits to learn the other's call. Each of the two wakes once a second at least, and the other rank writes its
/// call down when its wait has lasted for a second; nobody is woken for what is written in memory.
const PATIENCE: Duration = Duration::from_secs(5);

/// The call that `peer` is in, in words, where that is not `call` on `windows`: as the call-site table of this process has it, or as
/// `peer` writes down when its own wait lasts. This rank writes down its call as well, so two ranks that find each other
/// elsewhere both learn the other's. A rank that computes meanwhile writes nothing: then its call is not known.
#[cold]
pub(crate) fn elsewhere(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    windows: &[&WindowCore],
    call: &Call,
    peer: usize,
) -> String {
    if let Some(call) = world.call_sites.entered(peer) {
        return call;
    }
    let waits = world.stalls.borrow().waits.clone();
    waits.begin(world.rank, peer, &format!("{}, number {}", call.describe(windows), world.number()));
    let (since, mut pause) = (Instant::now(), Pause::new());
    let theirs = loop {
        world.notice(endpoint, None);
        // Where the entry is not here, its rank is asked.
        waits.number(peer);
        match waits.waiting(peer) {
            Some(waiting) => break Some(waiting.text),
            None if endpoint.lost(peer).is_some() || since.elapsed() > PATIENCE => break None,
            // Connections are served, and an answer wakes this rank.
            None => endpoint.idle(&mut pause),
        }
    };
    waits.end(world.rank);
    let at = endpoint.announced(peer) >> 32;
    theirs.unwrap_or_else(|| format!("another call, number {at}"))
}
