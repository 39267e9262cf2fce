//! What a rank does by itself before its notification: it sees what is wrong, reads the sections that are sources or decides to
//! lend them, and lists what it will read in place.

use crate::collect::limits::most_operations;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::{Outbox, Wide, WideSource};
use crate::collect::pending::{Into as Landing, ONE, Pending};
use crate::fence::remote;
use crate::kernel;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::machine::Machine;
use fencepost_planner::units::Nanos;
use fencepost_planner::{Class, Error, Result};
use fencepost_transport::{Endpoint, Topology};

/// More gets than this an epoch are not listed one by one.
const LISTED: usize = 64;

/// What one rank can see is wrong; sections that are sources are read, or lent. Gives whether all that this rank gets is
/// listed for those it is got from, so that it may land where it is read.
pub(super) fn prepare(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<bool> {
    for (i, window) in windows.iter().enumerate() {
        if windows[..i].iter().any(|other| other.key == window.key) {
            return Err(call.error(world, Class::Win, "a window is named twice in one fence"));
        }
    }
    let endpoint = &*world.endpoint.borrow();
    let mut lend = None;
    for window in windows {
        let set = window.set.get();
        for target in 0..world.size {
            // SAFETY: the set being filled is touched by its owner only.
            let outbox = unsafe { &mut *window.region.outbox(set, target) };
            if outbox.records.len() > most_operations() {
                return Err(too_many(window, call, outbox.records.len(), "puts and accumulates"));
            }
            if outbox.sections > 0 {
                let shared = target != world.rank && endpoint.shares(target);
                let lend =
                    shared.then(|| *lend.get_or_insert_with(|| lending_pays(world, windows, endpoint)));
                read_sections(outbox, windows, call, world, lend)?;
            }
        }
        let pending = &mut *window.pending.borrow_mut();
        pending.ask(world.size);
        pending.staged.clear();
        if pending.gets.is_empty() {
            continue;
        }
        if pending.gets.len() > most_operations() {
            return Err(too_many(window, call, pending.gets.len(), "gets"));
        }
        for get in &pending.wide {
            if let Landing::Section(key, _) = &get.landing {
                find(windows, *key).ok_or_else(|| call.not_in_fence(world, *key, get.site))?;
            }
        }
        let size = window.element.size as usize;
        let bytes = pending.elements().and_then(|elements| elements.checked_mul(size));
        if bytes.is_none_or(|bytes| pending.staged.try_reserve(bytes).is_err() || !tickets(pending, size)) {
            let bytes =
                bytes.map_or("more bytes than can be counted".into(), |bytes| format!("{bytes} bytes"));
            let message = format!("this epoch gets {bytes}, and there is no memory for them");
            return Err(call.error(world, Class::NoMem, message));
        }
        if window.apart && bytes > Some(remote::most_answered(0, 0)) {
            answerable(window, pending, call)?;
        }
    }
    Ok(list(world, windows, endpoint))
}

/// More operations of one epoch than can be counted where they travel.
#[cold]
fn too_many(window: &WindowCore, call: &Call, count: usize, what: &str) -> Error {
    let message = format!(
        "this epoch has {count} {what} on window {}, to one rank at least: at most {} can be told, so fence more often",
        window.key.window,
        most_operations()
    );
    call.error(&window.world, Class::Size, message)
}

/// Make room in tickets for what they get, elements of `size` bytes; whether there is.
fn tickets(pending: &Pending, size: usize) -> bool {
    pending.wide.iter().all(|get| match &get.landing {
        Landing::Ticket(slot) => slot.reserve(get.remote.size() * size),
        _ => true,
    })
}

/// Whether ranks whose memory is not reached will answer all that is asked of them.
fn answerable(window: &WindowCore, pending: &Pending, call: &Call) -> Result<()> {
    let (world, size) = (&window.world, window.element.size as usize);
    let endpoint = world.endpoint.borrow();
    let mut asked = vec![0usize; world.size];
    pending.gets.iter().for_each(|get| asked[get.target as usize] += pending.count(get) * size);
    for (target, (peer, &bytes)) in window.peers.iter().zip(&asked).enumerate() {
        let most = remote::most_answered(peer.len, size);
        if bytes > most && target != world.rank && !endpoint.reaches(target) {
            let message = format!(
                "this epoch gets {bytes} bytes from rank {target}, whose memory is not reached: at most {most} are sent, 256 times all of its window"
            );
            return Err(call.error(world, Class::Size, message));
        }
    }
    Ok(())
}

/// Whether lending the sections that ask for no mode saves more than waiting for their readers costs.
fn lending_pays(world: &WorldCore, windows: &[&WindowCore], endpoint: &Endpoint) -> bool {
    let machine = Machine::default();
    let mut saved = None;
    for window in windows {
        for target in (0..endpoint.size()).filter(|&to| to != endpoint.rank() && endpoint.shares(to)) {
            // SAFETY: the set being filled is touched by its owner only.
            let outbox = unsafe { &*window.region.outbox(window.set.get(), target) };
            for wide in &outbox.wide {
                if let Some(gain) = gain(wide, window, &machine) {
                    *saved.get_or_insert(Nanos(0.0)) += Nanos(gain.0.max(0.0));
                }
            }
        }
    }
    world.note_saved(saved);
    saved.is_some_and(|saved| saved.0 > machine.entry_and_done().0)
}

/// What lending this operation's section saves, where `auto` may.
fn gain(wide: &Wide, window: &WindowCore, machine: &Machine) -> Option<Nanos> {
    let WideSource::Section(_, section, _) = &wide.source else { return None };
    let saved = machine.saved_by_copying(section, &wide.remote, window.element.size);
    (wide.mode == Mode::Auto).then_some(saved)
}

/// Read the sections that are to go into the outbox's arena; the others are left, and lent. `lend` is whether those that
/// ask for no mode are lent where that saves anything; `None` where nothing can be. To one target as much is lent as may be
/// got from one, since it may have to stage all of it.
fn read_sections(
    outbox: &mut Outbox,
    windows: &[&WindowCore],
    call: &Call,
    world: &WorldCore,
    lend: Option<bool>,
) -> Result<()> {
    let machine = Machine::default();
    let (mut lent, mut lent_bytes) = (0, 0usize);
    for index in 0..outbox.wide.len() {
        let wide = &outbox.wide[index];
        let WideSource::Section(key, section, site) = wide.source.clone() else { continue };
        let Some(source) = find(windows, key) else { return Err(call.not_in_fence(world, key, site)) };
        // What names elements again and again may be more than there is memory for where it has to be staged.
        let (len, size) = (source.peers[world.rank].len, source.element.size as usize);
        let bytes = section.size().saturating_mul(size);
        let small =
            section.size() <= len && lent_bytes.saturating_add(bytes) <= remote::most_answered(len, size);
        let wanted = |pays: bool| wide.mode == Mode::Direct || pays && gain(wide, source, &machine).is_some();
        if small && lend.is_some_and(wanted) {
            lent += 1;
            lent_bytes += bytes;
            continue;
        }
        if outbox.bytes.try_reserve(bytes.saturating_add(8)).is_err() {
            let message = format!(
                "this epoch puts {} elements of {size} bytes, and there is no memory for a copy of them",
                section.size()
            );
            return Err(call.error(world, Class::NoMem, message));
        }
        let at = outbox.room(bytes);
        // SAFETY: the section was checked against this rank's part of the window, which this rank is fencing; nobody
        // else writes it before this rank's notification is out.
        unsafe { kernel::pack(source.region.base(), &section, size, outbox.bytes[at..].as_mut_ptr()) };
        outbox.wide[index].source = WideSource::Bytes(at);
    }
    outbox.sections = lent;
    Ok(())
}

/// Tell those that this rank gets from which elements, if it is a few gets that may be direct, none of them from itself.
fn list(world: &WorldCore, windows: &[&WindowCore], endpoint: &Endpoint) -> bool {
    let count: usize = windows.iter().map(|window| window.pending.borrow().gets.len()).sum();
    if count == 0 || count > LISTED {
        return false;
    }
    let straight = windows.iter().all(|window| {
        let pending = window.pending.borrow();
        pending.gets.iter().all(|get| {
            let target = get.target as usize;
            get.wide != ONE
                && matches!(pending.wide[get.wide as usize].mode, Mode::Auto | Mode::Direct)
                && target != world.rank
                && endpoint.shares(target)
        })
    });
    if straight {
        for window in windows {
            let pending = window.pending.borrow();
            for get in &*pending.gets {
                // SAFETY: the set being filled is touched by its owner only.
                let outbox = unsafe { &mut *window.region.outbox(window.set.get(), get.target as usize) };
                outbox.looks.push(pending.wide[get.wide as usize].remote.clone());
            }
        }
    }
    straight
}

pub(super) fn find<'w>(windows: &[&'w WindowCore], key: WindowKey) -> Option<&'w WindowCore> {
    windows.iter().find(|window| window.key == key).copied()
}
