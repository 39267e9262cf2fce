//! Gets of accesses. An origin reads the elements in place if it reaches the memory of the target,
//! and otherwise requests them from the target's attendant.

use crate::collect::datatypes::{Unread, write_plain};
use crate::collect::limits::most_answered;
use crate::kernel;
use crate::posts::frames::number;
use crate::posts::state::batch::{Batch, Collected, Get};
use crate::posts::state::exchange::{Exchange, Ports, Posted, misfit};
use crate::posts::state::lendings::{Asked, Lending, Lendings, most};
use crate::protocol::exchange::wait;
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{
    Answers, Attendant, Channels, Endpoint, Frame, Header, Liveness, Loss, Lost, Port, Topology,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The attendant of this rank's exposures.
///
/// The attendant answers gets of ranks that do not reach this rank's memory, while this rank does
/// something else.
struct Service(Arc<Lendings>);

impl Attendant for Service {
    fn attend(&mut self, from: usize, asked: Header, payload: &[u8], answers: &mut dyn Answers) {
        let mut payload = Reader(payload);
        let elements = payload.take::<Asked>().filter(|elements| elements.window == asked.extra);
        let ports = elements.and_then(|elements| Some((elements, Ports::of(elements.window).ok()?)));
        let Some((elements, ports)) = ports else {
            return answers.refuse(from, "it asked for what an access gets, of a window that does not exist");
        };
        let elements = self.0.elements(from, number(&asked), elements, payload.0);
        let kind = if elements.is_ok() { kind::ANSWER } else { kind::FAILED };
        let head = header(asked.word, kind, asked.extra);
        let bytes = elements
            .unwrap_or_else(|unread| if unread == Unread::Missing { MISSING.to_vec() } else { Vec::new() });
        answers.post(from, ports.answers, head, &bytes);
    }
}

/// The payload of an answer that reports that a datatype has an unknown number.
const MISSING: [u8; 1] = [1];

/// Exposes the posted window to the attendant. From now on, the attendant reads the window for the
/// sources that do not reach this rank's memory.
pub(super) fn expose(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &Exchange,
    posted: &Posted,
) -> Result<(), Lost> {
    if !window.peers.far {
        return Ok(());
    }
    let world = &window.world;
    let far = |source: &&usize| **source != world.rank && !endpoint.reaches(**source);
    let number = |source: &usize| (*source, exchange.from.get(*source).map_or(0, |from| from.posts));
    let sources: Vec<(usize, u64)> = posted.sources.iter().filter(far).map(number).collect();
    if sources.is_empty() {
        return Ok(());
    }
    let shape = (window.element.size as usize, window.peers[world.rank].len);
    let lending = Lending::new(window.region.base(), shape, posted.lent.clone(), sources);
    // SAFETY: the window is posted, so its elements are not moved before its core is dropped, and
    // the drop first copies them. Only `wait` writes exposed elements, and `wait` takes the
    // exposure back first.
    unsafe { world.lendings.expose(window.key.window, lending) };
    world.attendants.attach(endpoint, kind::ASK, || Service(world.lendings.clone()));
    Ok(())
}

/// Ends the exposure. When this function returns, the attendant does not read the window.
pub(super) fn take_back(window: &WindowCore) {
    if window.peers.far {
        window.world.lendings.take_back(window.key.window);
    }
}

/// Fetches the elements that an access gets.
///
/// Elements that are not exposed are not read, and their tickets get an error. If there is no
/// memory for a get, or if the gets from a rank request too many bytes, `Ok` contains the first
/// such error. The error has no effect on other operations.
pub(super) fn fetch(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &Exchange,
    batches: &[Batch],
    call: &Call,
) -> Result<Option<(ErrorClass, String)>> {
    let (world, size) = (&window.world, window.element.size as usize);
    let all = || batches.iter().filter(|batch| !batch.gets.is_empty());
    if all().next().is_none() {
        return Ok(None);
    }
    let mut failed = None;
    let mut asked: BTreeMap<usize, usize> = BTreeMap::new();
    let mut good = |batch: &Collected, get: &&Get| {
        let Some((about, post)) =
            exchange.to.get(batch.target).and_then(|about| Some((about, about.come.front()?)))
        else {
            return false; // cannot happen: the post was waited for
        };
        if let Some(class) = post.lent.misfit(&get.remote, true) {
            get.slot.fail(class, misfit(class, batch.target, &post.line.words(&about.names), get.site));
            return false;
        }
        let bytes = get.remote.size().checked_mul(size);
        let peer = &window.peers[batch.target];
        let (all, most) = (asked.entry(batch.target).or_default(), most_answered(peer.len, size));
        *all = all.saturating_add(bytes.unwrap_or(usize::MAX));
        if *all > most && peer.base.is_null() {
            let message = format!(
                "an access gets {all} bytes from rank {}, whose memory is not reached: at most {most} are sent, 256 times all of its window",
                batch.target
            );
            get.slot.fail(ErrorClass::Size, message.clone());
            failed.get_or_insert((ErrorClass::Size, message));
            return false;
        }
        let room = bytes.is_some_and(|bytes| get.slot.reserve(bytes));
        if !room {
            let message =
                format!("there is no memory for {} elements that were asked for", get.remote.size());
            get.slot.fail(ErrorClass::NoMem, message.clone());
            failed.get_or_insert((ErrorClass::NoMem, message));
        }
        room
    };
    let gets: Vec<(usize, Vec<&Get>)> = all()
        .map(|batch| (batch.target, batch.gets.iter().filter(|get| good(batch, get)).collect()))
        .collect();
    let (near, far): (Vec<_>, Vec<_>) =
        gets.into_iter().partition(|(target, _)| !window.peers[*target].base.is_null());
    let reached: Vec<usize> = near.iter().map(|(target, _)| *target).collect();
    for (target, gets) in &far {
        let asked: Vec<&Get> = gets.clone();
        ask(window, endpoint, exchange, batches, *target, &asked, 0)
            .map_err(|lost| world.lost(&lost, call))?;
    }
    if !reached.is_empty() && !endpoint.touching(true) {
        let lost = endpoint.lost(world.rank);
        let lost = lost.unwrap_or(Lost { rank: world.rank, how: Loss::Ended("the world has ended".into()) });
        return Err(world.lost(&lost, call));
    }
    for (target, gets) in near {
        let base = window.peers[target].base;
        for get in gets {
            let bytes = get.remote.size() * size;
            // SAFETY: the elements were checked against the target's length at the call. The post
            // of this access has come and exposes them, so no rank writes them before the access is
            // sent. The slot has room.
            get.slot.fill_with(bytes, |to| unsafe { kernel::pack(base, &get.remote, size, to) });
        }
    }
    if !reached.is_empty() {
        endpoint.touching(false);
    }
    for (target, gets) in far {
        land(window, endpoint, exchange, batches, target, &gets, call)
            .map_err(|lost| world.lost(&lost, call))?;
    }
    Ok(failed)
}

/// Requests these elements from the attendant of `target`, starting with element `first`.
fn ask(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &Exchange,
    batches: &[Batch],
    target: usize,
    gets: &[&Get],
    first: usize,
) -> Result<(), Lost> {
    let count = (total(gets) - first).min(most(window.element.size as usize));
    if count == 0 {
        return Ok(());
    }
    let mut asked = Vec::new();
    asked.put(Asked { first: first as u64, window: window.key.window, count: count as u32 });
    let named = exchange.to.get(target).map(|about| &about.asked);
    for get in gets {
        match named {
            Some(named) => named.borrow_mut().write_datatype(&get.remote, &mut asked),
            None => write_plain(&get.remote, &mut asked),
        }
    }
    let head = header(access_number(batches, target) << 32, kind::ASK, window.key.window);
    window.world.reports.count_sent(asked.len(), asked.len());
    // SAFETY: the target does not reach this rank's memory, so the payload is copied.
    unsafe { endpoint.post(target, Port::SERVICE, Frame::of(head, &asked)) }?;
    endpoint.flush();
    Ok(())
}

/// Takes the answers of `target`, and requests the remaining elements, until all elements are in
/// their tickets.
fn land(
    window: &WindowCore,
    endpoint: &mut Endpoint,
    exchange: &Exchange,
    batches: &[Batch],
    target: usize,
    gets: &[&Get],
    call: &Call,
) -> Result<(), Lost> {
    let (world, size, all) = (&window.world, window.element.size as usize, total(gets));
    let Ok(Ports { answers, .. }) = Ports::of(window.key.window) else { return Ok(()) };
    let (windows, expected) = (&[window][..], access_number(batches, target) as u32);
    let (mut elements, mut is_again) = (Vec::new(), false);
    while elements.len() < all * size {
        let watch = || Watch::new(world, call, windows, target, Awaited::Answers);
        let frame = wait(endpoint, watch, |endpoint| endpoint.poll(target, answers))?;
        let count = (all - elements.len() / size).min(most(size));
        let good = frame.header.kind == kind::ANSWER
            && number(&frame.header) == expected
            && frame.len == count * size;
        if good {
            // SAFETY: the payload is readable until it is released, below.
            elements.extend_from_slice(unsafe { frame.bytes() });
        }
        // SAFETY: as above.
        let is_missing = frame.header.kind == kind::FAILED
            && number(&frame.header) == expected
            && frame.len == MISSING.len()
            && unsafe { frame.bytes() } == MISSING;
        endpoint.release(target, answers);
        if is_missing && !is_again {
            exchange.to.get(target).iter().for_each(|about| about.asked.borrow_mut().begin_again());
        } else if !good {
            return Err(world.refuse(endpoint, target, "it did not answer what an access gets"));
        }
        is_again = is_missing;
        ask(window, endpoint, exchange, batches, target, gets, elements.len() / size)?;
    }
    let mut rest = &elements[..];
    for get in gets {
        let (own, more) = rest.split_at(get.remote.size() * size);
        get.slot.fill(own);
        rest = more;
    }
    Ok(())
}

/// Returns the number of elements to get. The tickets have room for all of them.
fn total(gets: &[&Get]) -> usize {
    gets.iter().map(|get| get.remote.size()).sum()
}

fn access_number(batches: &[Batch], target: usize) -> u64 {
    batches.iter().find(|batch| batch.target == target).map_or(0, |batch| batch.number)
}
