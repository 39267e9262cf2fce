//! Posts and starts: some ranks access windows of others, and the remaining ranks make no call.
//!
//! Ranks communicate by frames, on two ports of the window. A post is a frame from the target to
//! each source, and describes the elements that the target exposes. When an access ends, the origin
//! sends a frame to each target. The frame contains the puts and accumulates with their elements,
//! or the reason why it contains none. The n-th post and the n-th access of a pair belong to each
//! other: the frames of a pair arrive in order on each port, and a rank ends its accesses to
//! another rank in the order of their starts.
//!
//! If a rank reaches the memory of its peer, the rank writes a post of the whole window, or an
//! access of at most two records, in the [`PairLines`](fencepost_transport::PairLines) of the pair,
//! and sends no frame. This requires that the peer already knows the source file of the call. Posts
//! and accesses have numbers, and a rank looks in the lines and in the frames for the number that
//! it expects. So the posts and accesses of a pair stay in order. The documentation of `PairLines`
//! explains why no line is written while another rank reads it. The explanation assumes that:
//!
//! - the origin sends access `n` after it has taken post `n - 1` (16);
//! - the target makes post `n - 1` after it has waited for access `n - 2`;
//! - the target writes post `n` only if the source did not drop access `n - 1`. An access that was
//!   not dropped ended after the source had taken post `n - 2`. After a dropped access, the target
//!   sends the post in a frame.
//!
//! The protocol:
//!
//! - M is the content of the window when it is posted. M stays in place. No rank writes M before
//!   `wait`, which applies the puts and accumulates that the sources have sent. An origin with gets
//!   first waits for the post, then reads M, and then sends its access. So once the frames of all
//!   sources have come, no source reads M any more, and no other wait is needed. If the origin does
//!   not reach the memory of the target, the target's attendant reads M and sends the elements,
//!   while the exposure is in the attendant's list.
//! - `wait` polls the access of each source. After all accesses have come, it checks whether they
//!   fit the exposure. If all fit, it applies them in ascending order of the sources, by the
//!   kernels of fences. It releases the accesses last. So an exposure is applied whole or not at
//!   all, and the resulting bits are the same on every machine.
//! - `complete` waits for all posts that it needs before it sends anything. So a target sees
//!   nothing of an access before the access ends.
//! - The target reads elements where the origin has collected them. The origin reuses that memory
//!   only after the target has released the frame. At most one access of a pair is queued, not
//!   counting dropped accesses, which have no elements.
//! - Both ranks detect an operation on elements that are not exposed. If the post has come when the
//!   origin completes the access, the origin sends the error in its frame. Otherwise the target
//!   finds the error by itself, and the origin finds the error when the post comes. The next
//!   `complete` of the pair waits for that post.
//!
//! When the world ends while a window is exposed, other ranks may be reading the window. `wait`
//! then ends the world for all ranks, so that no rank begins to read the window. It returns the
//! window when no rank reads the window any more.

mod access;
mod exposure;
mod frames;
mod gets;
pub(crate) mod state;

pub(crate) use access::{awaited_target, complete, drop_access, start};
pub(crate) use exposure::{awaited_source, post, test, wait};

use crate::check::exposures;
use crate::collect::lent::Lent;
use crate::collect::operation::Site;
use crate::posts::state::exchange::{Exchange, Ports, Post, Target};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::{
    COPIED, Cause, Channels, Endpoint, Frame, Header, Liveness, Loss, Lost, Port, Topology, Until,
};

impl WindowCore {
    /// Checks that the window may be posted or accessed: no operation on it waits for a fence, and
    /// calls on it are not compared with a plan.
    #[inline(always)]
    fn is_free(&self, what: &str, site: Site) -> Result<()> {
        self.world.alive()?;
        // An open window never has collected operations.
        let is_pending = !self.is_open() && self.is_pending();
        if !self.collecting.is_matching() && !is_pending && !self.world.windows.is_named_elsewhere(self.key) {
            return Ok(());
        }
        self.is_not_free(what, site)
    }

    #[cold]
    fn is_not_free(&self, what: &str, site: Site) -> Result<()> {
        let refuse = |why: String| Err(self.error(ErrorClass::RmaSync, why, site));
        if self.collecting.is_matching() {
            let why = format!(
                "window {} takes part in a prepared superstep that is running, and cannot be {what} in it: end the superstep first",
                self.key.window
            );
            return refuse(why);
        }
        refuse(format!(
            "operations on window {} wait for a fence of this rank, and the window cannot be {what} before: fence it first",
            self.key.window
        ))
    }
}

/// Ends the world and returns the reason. Called when this rank is about to wait for a call that it
/// must make itself, and cannot make while it waits (16).
///
/// If the world has already ended, returns the reason for its end.
#[cold]
fn waits_for_itself(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    call: &Call,
    what: std::fmt::Arguments<'_>,
) -> Lost {
    let world = &window.world;
    let rank = world.rank;
    if let Some(lost) = endpoint.lost(rank) {
        return lost;
    }
    let call = call.describe(&[window]);
    let what = format!("deadlock: rank {rank} waits for rank {rank} in {call}, {what}");
    world.calls.sites.end(ErrorClass::RmaSync);
    endpoint.end(Cause { rank, what: what.clone() });
    Lost { rank, how: Loss::Ended(what) }
}

/// Posts a frame with a copy of these bytes.
///
/// It is not an error here if rank `to` has left, since a rank that waits for `to` is notified of
/// that.
fn send(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    (to, port): (usize, Port),
    header: Header,
    bytes: &[u8],
    frames: &mut u64,
) -> Result<(), Lost> {
    let kept = if bytes.len() <= COPIED || !endpoint.reaches(to) {
        None
    } else {
        let kept = endpoint.memory().any(bytes.len()).map_err(|error| {
            let (rank, bytes) = (world.rank, bytes.len());
            let what = format!("rank {rank} has no memory for {bytes} bytes of a frame: {error}");
            Lost { rank, how: Loss::Ended(what) }
        })?;
        // SAFETY: `kept` has `bytes.len()` bytes, and no other rank knows their address yet.
        unsafe { kept.base().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(kept)
    };
    let payload = kept.as_ref().map_or(bytes.as_ptr(), |kept| kept.base().cast_const());
    // SAFETY: if rank `to` reads the payload in place, the payload does not change until the frame
    // is released. `keep` below ensures that.
    let posted = unsafe { endpoint.post_copy(to, port, Frame { header, payload, len: bytes.len() }) };
    match posted {
        Ok(()) => {
            if let Some(kept) = kept {
                endpoint.keep(vec![kept], Until::Released { to, port, frame: *frames });
            }
            *frames += 1;
            Ok(())
        }
        Err(Lost { how: Loss::Left(_), .. }) => Ok(()),
        Err(lost) => Err(lost),
    }
}

/// Takes in the posts of `rank` that have come in frames, if this rank has started an access to
/// `rank` and has not yet taken in the post of that access.
///
/// For example, a post comes in a frame if it exposes only a part of a window, or exposes the
/// window to gets only. It is not an error here if `rank` has left, since this function does not
/// wait.
fn look_early(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    rank: usize,
    ports: Ports,
) -> Result<(), Lost> {
    let to = exchange.to.get_mut(rank).filter(|to| to.posts < to.starts && rank != window.world.rank);
    let looked = to.map_or(Ok(()), |to| take_frames(window, endpoint, rank, to, ports));
    looked.or_else(|lost| if matches!(lost.how, Loss::Left(_)) { Ok(()) } else { Err(lost) })
}

/// Takes in the posts of `target` that have come in lines and in frames.
#[inline]
fn look(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    target: usize,
    about: &mut Target,
    ports: Ports,
) -> Result<(), Lost> {
    take_lines(endpoint, target, about, ports, u64::MAX);
    let taken = take_frames(window, endpoint, target, about, ports);
    if taken.is_err() {
        // Lines that the target wrote before it left are visible now.
        take_lines(endpoint, target, about, ports, u64::MAX);
    }
    taken
}

/// Takes in the posts of `target` that have come in lines and directly follow those already taken,
/// until `until` posts have been taken.
#[inline(always)]
fn take_lines(endpoint: &mut Endpoint, target: usize, about: &mut Target, ports: Ports, until: u64) {
    while about.posts < until {
        let lines = about.lines.read(endpoint, target, ports.accesses);
        let Some(word) = lines.and_then(|lines| lines.posted(about.posts)) else { return };
        let Some(line) = frames::line_of_post(word, &about.names) else { return };
        about.take(target, Post { lent: Lent::Whole, line });
    }
}

/// Takes in the posts of `target` that have come in frames, and the posts in lines that precede one
/// of these frames.
fn take_frames(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    target: usize,
    about: &mut Target,
    ports: Ports,
) -> Result<(), Lost> {
    while let Some(frame) = endpoint.poll(target, ports.posts)? {
        if let Some(taken) = exposures::take_in(&window.world, &frame) {
            endpoint.release(target, ports.posts);
            taken.map_err(|wrong| window.world.refuse(endpoint, target, wrong))?;
            continue;
        }
        if frames::number(&frame.header) != about.posts as u32 {
            // The target wrote the lines of earlier posts before it posted this frame.
            take_lines(endpoint, target, about, ports, u64::MAX);
        }
        let expected = frames::number(&frame.header) == about.posts as u32;
        let len = window.peers[target].len;
        let post = frames::post_of(&frame, len, &mut about.names, &mut about.lent).filter(|_| expected);
        endpoint.release(target, ports.posts);
        let Some(post) = post else {
            return Err(window.world.refuse(endpoint, target, "it sent a post that no rank sends"));
        };
        about.take(target, post);
    }
    Ok(())
}
