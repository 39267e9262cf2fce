//! The calls of a target: post, wait and test.

use crate::collect::lent::Lent;
use crate::exchange::frames::{Came, access_of, number, of_post};
use crate::exchange::{Site, gets, send};
use crate::protocol::exchange::{untouched_by, wait as wait_for};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::exchange::{Exchange, Line, Ports, Post, Posted};
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Cause, Channels, Endpoint, Frame, Liveness, Loss, Lost, Topology};
use smallvec::SmallVec;
use std::rc::Rc;

/// Exposes a window to these ranks, ascending. Never waits.
pub(crate) fn post(window: &WindowCore, sources: &Rc<[usize]>, lent: Lent, site: Site) -> Result<()> {
    window.is_free("posted", site)?;
    let ports = window.ports(site)?;
    let world = &window.world;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.exchange.borrow_mut();
    let posted = Posted { site, lent, sources: sources.clone() };
    let mut lost = gets::expose(window, endpoint, exchange, &posted);
    for &source in &**sources {
        let from = exchange.from.entry(source).or_default();
        from.posts += 1;
        if source == world.rank {
            let post = Post { lent: posted.lent.clone(), line: Line::Own(site) };
            exchange.to.entry(source).or_default().take(source, post);
        } else if lost.is_ok() {
            let head = of_post(from.posts - 1, &posted.lent, site, &mut from.told, &mut exchange.scratch);
            let (to, bytes) = ((source, ports.posts), &exchange.scratch);
            lost = send(world, endpoint, to, head, bytes, &mut from.frames);
        }
    }
    endpoint.flush();
    window.posted.set(true);
    exchange.posted = Some(posted);
    lost.map_err(|lost| {
        let call = Call { site, ..Call::named(0, "Window::post") };
        take_back(window, endpoint, exchange, &call, &lost)
    })
}

/// Waits until the sources of the post have ended their accesses, and applies what they put and accumulated.
///
/// # Errors
/// As `Exposed::wait` says. The window is not posted any more.
pub(crate) fn wait(window: &WindowCore, call: &Call) -> Result<()> {
    let world = &window.world;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.exchange.borrow_mut();
    if let Err(error) = world.alive() {
        let lost = Lost { rank: world.rank, how: Loss::Ended(error.message().to_owned()) };
        take_back(window, endpoint, exchange, call, &lost);
        return Err(error);
    }
    let (ports, windows) = (window.ports(call.site)?, &[window][..]);
    let sources = exchange.posted.as_ref().map_or(0, |posted| posted.sources.len());
    exchange.frames.clear();
    for at in 0..sources {
        let source = exchange.posted.as_ref().map_or(0, |posted| posted.sources[at]);
        let watch = || Watch::new(world, call, windows, source, Awaited::One("accesses"));
        let frame = wait_for(endpoint, watch, |endpoint| next(exchange, endpoint, world, source, ports));
        match frame {
            Ok(frame) => exchange.frames.push(frame),
            Err(lost) => return Err(take_back(window, endpoint, exchange, call, &lost)),
        }
    }
    end(window, endpoint, exchange, ports, call)
}

/// Does what [`wait`] does if that would not wait; returns whether it did.
///
/// # Errors
/// As [`wait`].
pub(crate) fn test(window: &WindowCore, call: &Call) -> Result<bool> {
    let world = &window.world;
    if world.alive().is_err() {
        return wait(window, call).map(|()| true);
    }
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.exchange.borrow_mut();
    let ports = window.ports(call.site)?;
    let sources = exchange.posted.as_ref().map_or(0, |posted| posted.sources.len());
    exchange.frames.clear();
    for at in 0..sources {
        let source = exchange.posted.as_ref().map_or(0, |posted| posted.sources[at]);
        match next(exchange, endpoint, world, source, ports) {
            Ok(Some(frame)) => exchange.frames.push(frame),
            Ok(None) => {
                endpoint.flush();
                return Ok(false);
            }
            Err(lost) => return Err(take_back(window, endpoint, exchange, call, &lost)),
        }
    }
    end(window, endpoint, exchange, ports, call).map(|()| true)
}

/// The frame of the access of `source`, if it has come.
fn next(
    exchange: &Exchange,
    endpoint: &mut Endpoint,
    world: &WorldCore,
    source: usize,
    ports: Ports,
) -> Result<Option<Frame>, Lost> {
    if source != world.rank {
        return endpoint.poll(source, ports.accesses);
    }
    let own = exchange.from.get(&source).and_then(|from| from.own.front());
    if own.is_none()
        && let Some(lost) = endpoint.lost(source)
    {
        return Err(lost);
    }
    Ok(own.map(|(header, bytes)| Frame { header: *header, payload: bytes.base(), len: bytes.len() }))
}

/// All accesses have come: judges them, applies them if all fit, and releases them.
fn end(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    ports: Ports,
    call: &Call,
) -> Result<()> {
    let world = &window.world;
    let Some(posted) = exchange.posted.take() else {
        return Err(window.error(
            ErrorClass::Intern,
            "a window that is not posted is waited for".into(),
            call.site,
        ));
    };
    let mut all: SmallVec<[Came; 4]> = SmallVec::new();
    let mut wrong = None;
    for (&source, frame) in posted.sources.iter().zip(&exchange.frames) {
        let from = exchange.from.entry(source).or_default();
        let came = access_of(window, frame, &mut from.names, &mut from.description)
            .filter(|_| number(&frame.header) == (from.posts - 1) as u32);
        let Some(came) = came else {
            let lost = world.refuse(endpoint, source, "it sent an access that no rank sends");
            exchange.posted = Some(posted);
            return Err(take_back(window, endpoint, exchange, call, &lost));
        };
        if wrong.is_none() {
            wrong = came
                .error(frame, &from.description, &posted.lent)
                .map(|(class, line)| refusal(window, class, source, &line.words(&from.names), call));
        }
        all.push(came);
    }
    gets::take_back(window);
    if wrong.is_none() {
        for ((&source, frame), came) in posted.sources.iter().zip(&exchange.frames).zip(&all) {
            let from = &exchange.from[&source];
            // SAFETY: the frame is not released yet, and the description is that of its source. All sources have ended
            // their accesses, and read M before that; this rank is in this call with its window.
            unsafe { came.apply(window, frame, &from.description) };
        }
    }
    for &source in &*posted.sources {
        if source == world.rank {
            drop(exchange.from.entry(source).or_default().own.pop_front());
        } else {
            endpoint.release(source, ports.accesses);
        }
    }
    endpoint.flush();
    window.posted.set(false);
    wrong.map_or(Ok(()), Err)
}

/// The error of an exposure one of whose sources has dropped its access, or asked for what is not lent.
fn refusal(window: &WindowCore, class: ErrorClass, source: usize, line: &str, call: &Call) -> Error {
    let why = match class {
        ErrorClass::RmaSync => "dropped the access that it had started, and did not complete it",
        ErrorClass::Assert => "puts or accumulates, and the window is lent to gets only",
        _ => "names elements that are not lent",
    };
    let place = if class == ErrorClass::RmaSync { "started at" } else { "by the operation at" };
    let message = format!(
        "rank {source} {why} ({place} {line}): nothing was applied, and window {} is as it was at its post",
        window.key.window
    );
    window.error(class, message, call.site)
}

/// The world has ended, or ends here: returns the error when nobody accesses the window any more.
#[cold]
fn take_back(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    call: &Call,
    lost: &Lost,
) -> Error {
    let world = &window.world;
    endpoint.end(Cause { rank: lost.rank, what: lost.to_string() });
    gets::take_back(window);
    let posted = exchange.posted.take();
    for &source in posted.iter().flat_map(|posted| &*posted.sources) {
        if source != world.rank && endpoint.reaches(source) {
            untouched_by(world, endpoint, &[window], call, source);
        }
    }
    window.posted.set(false);
    world.lost(lost, call)
}
