//! The calls of a target: post, wait and test.

use crate::check::exposures;
use crate::collect::lent::Lent;
use crate::collect::operation::Site;
use crate::posts::frames::{Came, access_of, apply_short, frame_of, number, of_post, place};
use crate::posts::state::exchange::{Exchange, Line, Ports, Post, Posted, Source};
use crate::posts::{gets, send, waits_for_itself};
use crate::protocol::exchange::{untouched_by, wait as wait_for};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Bytes, Channels, Endpoint, Frame, Header, Liveness, Loss, Lost, Record, Topology};
use smallvec::SmallVec;
use std::rc::Rc;

/// Exposes a window to these ranks, which are in ascending order. Never waits.
pub(crate) fn post(window: &WindowCore, sources: &Rc<[usize]>, lent: Lent, site: Site) -> Result<()> {
    window.is_free("posted", site)?;
    let ports = window.ports(site)?;
    let world = &window.world;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.posts.exchange.borrow_mut();
    let posted = Posted { site, lent, sources: sources.clone() };
    let mut lost = gets::expose(window, endpoint, exchange, &posted);
    for &source in &**sources {
        let from = exchange.from.of(source);
        from.posts += 1;
        if source == world.rank {
            let post = Post { lent: posted.lent.clone(), line: Line::Own(site) };
            exchange.to.of(source).take(source, post);
        } else if lost.is_ok() && (world.checks.is_on() || !in_lines(endpoint, from, source, ports, &posted))
        {
            if let Some((head, bytes)) = exposures::frame_of(window, None) {
                lost = send(world, endpoint, (source, ports.posts), head, &bytes, &mut from.frames);
                if lost.is_err() {
                    break;
                }
            }
            let named = (!endpoint.reaches(source)).then_some(&mut from.lent);
            let post = (from.posts - 1, &posted.lent);
            let head = of_post(post, site, &mut from.told, named, &mut exchange.scratch);
            let (to, bytes) = ((source, ports.posts), &exchange.scratch);
            lost = send(world, endpoint, to, head, bytes, &mut from.frames);
        }
    }
    endpoint.flush();
    window.posts.posted.set(true);
    window.forget_part();
    exposures::posted(window, &posted.lent, site);
    exchange.posted = Some(posted);
    lost.map_err(|lost| {
        let call = Call { site, ..Call::named(0, "Window::post") };
        take_back(window, endpoint, exchange, &call, &lost)
    })
}

/// Writes a post into the lines of its pair.
///
/// Returns whether the post was written. If it was not, the caller posts a frame.
#[inline]
fn in_lines(
    endpoint: &mut Endpoint,
    from: &mut Source,
    source: usize,
    ports: Ports,
    posted: &Posted,
) -> bool {
    if from.dropped || !matches!(posted.lent, Lent::Whole) {
        return false;
    }
    let Some(file) = from.told.known(posted.site.file()) else { return false };
    let Some(lines) = from.lines.written(endpoint, source, ports.accesses) else { return false };
    // SAFETY: this rank writes the lines that it has made for the source. Let this be post `n`. If
    // there is a post `n - 2`, the source took it before it ended access `n - 1` (16).
    unsafe { lines.post(from.posts - 1, place(file, posted.site.line())) };
    endpoint.wake(source);
    true
}

/// Waits until the sources of the post have ended their accesses, and applies their puts and
/// accumulates.
///
/// # Errors
/// As `Exposed::wait`. The window is not posted any more.
pub(crate) fn wait(window: &WindowCore, call: &Call) -> Result<()> {
    let world = &window.world;
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.posts.exchange.borrow_mut();
    if let Err(error) = world.alive() {
        let lost = Lost { rank: world.rank, how: Loss::Ended(error.message().to_owned()) };
        take_back(window, endpoint, exchange, call, &lost);
        return Err(error);
    }
    let (ports, windows) = (window.ports(call.site)?, &[window][..]);
    if let Some(source) = sole(exchange, world)
        && !world.checks.is_on()
        && let Some(result) = wait_for_one(window, endpoint, exchange, (source, ports), call)
    {
        return result;
    }
    if let Some(lost) = unended(window, endpoint, exchange, call) {
        return Err(take_back(window, endpoint, exchange, call, &lost));
    }
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

/// If this rank is a source of its own post and has not ended its access, ends the world and
/// returns the reason.
fn unended(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    call: &Call,
) -> Option<Lost> {
    let me = window.world.rank;
    let posted = exchange.posted.as_ref().filter(|posted| posted.sources.contains(&me))?;
    let post = posted.site;
    if !exchange.from.of(me).own.is_empty() {
        return None;
    }
    let what = match exchange.to.get(me).and_then(|to| to.open) {
        Some(start) => {
            format!("before it has ended the access that it started at {}:{}", start.file(), start.line())
        }
        None => "and has started no access that belongs to the post".to_owned(),
    };
    let post = format_args!("posted at {}:{}, {what}", post.file(), post.line());
    Some(waits_for_itself(window, endpoint, call, post))
}

/// Returns the source of the post, if there is only one, it is another rank, and it may access the
/// whole window.
#[inline]
fn sole(exchange: &Exchange, world: &WorldCore) -> Option<usize> {
    match &exchange.posted {
        Some(Posted { lent: Lent::Whole, sources, .. }) => match **sources {
            [source] if source != world.rank => Some(source),
            _ => None,
        },
        _ => None,
    }
}

/// Does the same as [`wait`] for a post with one source, whose access is applied directly from the
/// lines of the pair.
///
/// If the access has come as a frame, returns `None` without any effect.
#[inline]
fn wait_for_one(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    (source, ports): (usize, Ports),
    call: &Call,
) -> Option<Result<()>> {
    let (world, windows) = (&window.world, &[window][..]);
    let watch = || Watch::new(world, call, windows, source, Awaited::One("accesses"));
    let from = exchange.from.of(source);
    let found = wait_for(endpoint, watch, |endpoint| next_of(endpoint, from, source, ports));
    let access = match found {
        Ok(Arrived::Short(access)) => access,
        Ok(Arrived::Frame(_)) => return None,
        Err(lost) => return Some(Err(take_back(window, endpoint, exchange, call, &lost))),
    };
    gets::take_back(window);
    let from = exchange.from.of(source);
    // SAFETY: the source writes these records again only after the next post. The source had read M
    // before it ended its access. This rank does not use its window during this call.
    if !unsafe { apply_short(window, access, &from.names) } {
        let lost = world.refuse(endpoint, source, "it sent an access that no rank sends");
        return Some(Err(take_back(window, endpoint, exchange, call, &lost)));
    }
    from.dropped = false;
    exchange.posted = None;
    window.posts.posted.set(false);
    Some(Ok(()))
}

/// Does the same as [`wait`] and returns `true`, if `wait` would return at once. Otherwise returns
/// `false`.
///
/// # Errors
/// As [`wait`].
pub(crate) fn test(window: &WindowCore, call: &Call) -> Result<bool> {
    let world = &window.world;
    if world.alive().is_err() {
        return wait(window, call).map(|()| true);
    }
    let endpoint = &mut *world.endpoint.borrow_mut();
    let exchange = &mut *window.posts.exchange.borrow_mut();
    let ports = window.ports(call.site)?;
    world.notice(endpoint, None);
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

/// Returns a source for whose access [`wait`] would wait, if there is one.
pub(crate) fn awaited_source(window: &WindowCore, endpoint: &mut Endpoint) -> Option<usize> {
    let world = &window.world;
    let (true, Ok(ports)) = (world.life.goes_on(), Ports::of(window.key.window)) else {
        return None;
    };
    let exchange = &mut *window.posts.exchange.borrow_mut();
    let sources = exchange.posted.as_ref().map_or(0, |posted| posted.sources.len());
    for at in 0..sources {
        let source = exchange.posted.as_ref().map_or(0, |posted| posted.sources[at]);
        match next(exchange, endpoint, world, source, ports) {
            Ok(Some(_)) => {}
            Ok(None) => return Some(source),
            Err(_) => return None,
        }
    }
    None
}

/// Returns the access of `source` as a frame, if it has come, and whether the frame must be
/// released.
///
/// If a frame of the checker precedes the access, takes in that frame first.
#[inline]
fn next(
    exchange: &mut Exchange,
    endpoint: &mut Endpoint,
    world: &WorldCore,
    source: usize,
    ports: Ports,
) -> Result<Option<(Frame, bool)>, Lost> {
    let Some((frame, is_frame)) = first(exchange, endpoint, world, source, ports)? else { return Ok(None) };
    let Some(taken) = exposures::take_in(world, &frame) else { return Ok(Some((frame, is_frame))) };
    release(exchange, endpoint, world, (source, is_frame), ports);
    exchange.from.of(source).calls = taken.map_err(|wrong| world.refuse(endpoint, source, wrong))?;
    first(exchange, endpoint, world, source, ports)
}

/// Releases the first access of `source`. `is_frame` is whether the access came in a frame of
/// another rank.
fn release(
    exchange: &mut Exchange,
    endpoint: &mut Endpoint,
    world: &WorldCore,
    (source, is_frame): (usize, bool),
    ports: Ports,
) {
    if source == world.rank {
        drop(exchange.from.of(source).own.pop_front());
    } else if is_frame {
        endpoint.release(source, ports.accesses);
    }
}

/// Returns the first access of `source` as a frame, if there is one, and whether the frame must be
/// released.
#[inline]
fn first(
    exchange: &mut Exchange,
    endpoint: &mut Endpoint,
    world: &WorldCore,
    source: usize,
    ports: Ports,
) -> Result<Option<(Frame, bool)>, Lost> {
    let from = exchange.from.of(source);
    if source != world.rank {
        let number = from.posts - 1;
        return Ok(match next_of(endpoint, from, source, ports)? {
            None => None,
            Some(Arrived::Short(access)) => Some((frame_of(number, access), false)),
            Some(Arrived::Frame(frame)) => Some((frame, true)),
        });
    }
    let own = from.own.front();
    if own.is_none()
        && let Some(lost) = endpoint.lost(source)
    {
        return Err(lost);
    }
    let frame =
        |header: &Header, bytes: &Bytes| Frame { header: *header, payload: bytes.base(), len: bytes.len() };
    Ok(own.map(|(header, bytes)| (frame(header, bytes), false)))
}

/// The form in which the access of another rank has come.
enum Arrived {
    /// The access is in the lines of the pair. Contains the word and the records of the access.
    Short((u64, *const Record)),
    Frame(Frame),
}

/// Returns the access of another rank, if it has come.
#[inline(always)]
fn next_of(
    endpoint: &mut Endpoint,
    from: &mut Source,
    source: usize,
    ports: Ports,
) -> Result<Option<Arrived>, Lost> {
    let number = from.posts - 1;
    let mut written = |endpoint: &mut Endpoint| {
        from.lines.read(endpoint, source, ports.accesses).and_then(|lines| lines.ended(number))
    };
    if let Some(access) = written(endpoint) {
        return Ok(Some(Arrived::Short(access)));
    }
    match endpoint.poll(source, ports.accesses) {
        Ok(None) => Ok(None),
        Ok(Some(frame)) if self::number(&frame.header) == number as u32 => Ok(Some(Arrived::Frame(frame))),
        // If the source has written the access in the lines, it did so before it posted a later
        // frame or left. So the access is visible now.
        other => match written(endpoint) {
            Some(access) => Ok(Some(Arrived::Short(access))),
            None => other.map(|frame| frame.map(Arrived::Frame)),
        },
    }
}

/// Ends an exposure whose accesses have all come. Checks the accesses, applies them if all fit, and
/// releases them.
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
    for (&source, (frame, _)) in posted.sources.iter().zip(&exchange.frames) {
        let from = exchange.from.of(source);
        let came = access_of(window, frame, (&mut from.names, &mut from.numbered), &mut from.description)
            .filter(|_| number(&frame.header) == (from.posts - 1) as u32);
        let Some(came) = came else {
            let lost = world.refuse(endpoint, source, "it sent an access that no rank sends");
            exchange.posted = Some(posted);
            return Err(take_back(window, endpoint, exchange, call, &lost));
        };
        from.dropped = matches!(came, Came::Failed(ErrorClass::RmaSync, _));
        if wrong.is_none() {
            wrong = came
                .error(frame, &from.description, &posted.lent)
                .map(|(class, line)| refusal(window, class, source, &line.words(&from.names), call));
        }
        all.push(came);
    }
    gets::take_back(window);
    if world.checks.is_on() {
        let calls = |source: &usize| (*source, std::mem::take(&mut exchange.from.of(*source).calls));
        let told: Vec<_> = posted.sources.iter().map(calls).collect();
        if wrong.is_none() {
            match exposures::judge(window, &told, call) {
                Ok(judged) => wrong = judged.err(),
                Err(source) => {
                    let lost = world.refuse(endpoint, source, "it told of calls that no rank makes");
                    exchange.posted = Some(posted);
                    return Err(take_back(window, endpoint, exchange, call, &lost));
                }
            }
        }
    }
    if wrong.is_none() {
        for ((&source, (frame, _)), came) in posted.sources.iter().zip(&exchange.frames).zip(&all) {
            let from = exchange.from.of(source);
            // SAFETY: the frame is not released yet, and the description is that of its source. Or
            // the access is in lines, which the source writes again only after the next post. All
            // sources had read M before they ended their accesses. This rank does not use its
            // window during this call.
            unsafe { came.apply(window, frame, &from.description) };
        }
    }
    for (at, &source) in posted.sources.iter().enumerate() {
        let is_frame = exchange.frames[at].1;
        release(exchange, endpoint, world, (source, is_frame), ports);
    }
    endpoint.flush();
    window.posts.posted.set(false);
    exposures::waited(window, call);
    wrong.map_or(Ok(()), Err)
}

/// Returns the error of an exposure for which a source has dropped its access, or has called an
/// operation that the exposure does not allow.
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

/// Ends the world if it has not ended yet. Waits until no rank accesses the window any more, and
/// returns the error.
#[cold]
fn take_back(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &mut Exchange,
    call: &Call,
    lost: &Lost,
) -> Error {
    let world = &window.world;
    let lost = &world.end_for(endpoint, lost.clone());
    gets::take_back(window);
    let posted = exchange.posted.take();
    for &source in posted.iter().flat_map(|posted| &*posted.sources) {
        if source != world.rank && endpoint.reaches(source) {
            untouched_by(world, endpoint, &[window], call, source);
        }
    }
    window.posts.posted.set(false);
    world.lost(lost, call)
}
