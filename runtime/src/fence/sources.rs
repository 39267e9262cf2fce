//! The work of a rank before its notification. The rank checks the conditions that only it can
//! check, reads or exposes the sections that are sources, and lists the elements that it will read
//! in place.

use crate::collect::filling::RecordSources;
use crate::collect::limits::most_operations;
use crate::collect::operation::WindowKey;
use crate::collect::outbox::{DatatypeOperation, DatatypeSource, Outbox};
use crate::collect::pending::{Into as Landing, Pending};
use crate::fence::remote;
use crate::kernel;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::adaptive::{LISTED, Rendezvous, Section, lands_in_place, listing_pays};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Endpoint, Topology};

/// Checks the conditions that one rank can check by itself, and reads or exposes sections that are
/// sources. Returns whether all gets of this rank are listed for their targets. Listed gets may
/// land in their destinations at once.
pub(super) fn prepare(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<bool> {
    for (i, window) in windows.iter().enumerate() {
        if windows[..i].iter().any(|other| other.key == window.key) {
            return Err(call.error(world, ErrorClass::Win, "a window is named twice in one fence"));
        }
    }
    let endpoint = &*world.endpoint.borrow();
    let mut decided = None;
    for window in windows {
        let set = window.filling.set.get();
        let elements = sources_of_records(world, windows, window, call)?;
        for target in 0..world.size {
            let Some(outbox) = window.region.made_outbox(set, target) else { continue };
            if let Some(from) = elements {
                // SAFETY: only this rank touches the set of outboxes that it is filling. Each
                // displacement was checked at the call against this rank's part of that window.
                // This rank is fencing the window, and no other rank writes the part before this
                // rank's notification is out.
                unsafe { (*outbox).read_elements(from.region.base(), window.element.size as usize) };
            }
            // SAFETY: only this rank touches the set of outboxes that it is filling.
            let Outbox { records, sections, .. } = unsafe { &*outbox };
            let (records, sections) = (records.len(), *sections);
            if records > most_operations() {
                return Err(too_many(window, call, records, "puts and accumulates"));
            }
            if sections > 0 {
                let reached = target != world.rank && endpoint.reaches(target);
                let decided =
                    reached.then(|| *decided.get_or_insert_with(|| rendezvous(world, windows, endpoint)));
                // SAFETY: as above, and no other reference to the outbox is alive.
                read_sections(unsafe { &mut *outbox }, (windows, target), call, world, decided)?;
            }
        }
        let pending = &mut *window.filling.pending.borrow_mut();
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
            return Err(call.error(world, ErrorClass::NoMem, message));
        }
        if window.peers.apart && bytes > Some(remote::most_answered(0, 0)) {
            answerable(window, pending, call)?;
        }
    }
    Ok(list(world, windows, endpoint))
}

/// Returns the window whose elements are sources of records in `window`, if there are such records.
/// The caller reads the elements.
fn sources_of_records<'w>(
    world: &WorldCore,
    windows: &[&'w WindowCore],
    window: &'w WindowCore,
    call: &Call,
) -> Result<Option<&'w WindowCore>> {
    match window.filling.sources.take() {
        RecordSources::None => Ok(None),
        RecordSources::Own => Ok(Some(window)),
        RecordSources::Of(key, site) => {
            find(windows, key).map(Some).ok_or_else(|| call.not_in_fence(world, key, site))
        }
    }
}

/// Returns the error of an epoch with more operations than its frames or notifications can count.
#[cold]
fn too_many(window: &WindowCore, call: &Call, count: usize, what: &str) -> Error {
    let message = format!(
        "this epoch has {count} {what} on window {}, to one rank at least: at most {} can be counted, so fence more often",
        window.key.window,
        most_operations()
    );
    call.error(&window.world, ErrorClass::Size, message)
}

/// Makes room in the tickets of these gets for their elements, of `size` bytes each. Returns
/// whether there is enough memory.
fn tickets(pending: &Pending, size: usize) -> bool {
    pending.wide.iter().all(|get| match &get.landing {
        Landing::Ticket(slot) => slot.reserve(get.remote.size() * size),
        _ => true,
    })
}

/// Checks how many bytes this rank gets from each rank whose memory is not reached. Such a rank
/// answers only a limited number of bytes.
fn answerable(window: &WindowCore, pending: &Pending, call: &Call) -> Result<()> {
    let (world, size) = (&window.world, window.element.size as usize);
    let endpoint = world.endpoint.borrow();
    let mut asked = vec![0usize; world.size];
    pending.gets.iter().for_each(|get| asked[get.target()] += pending.count(get) * size);
    for (target, (peer, &bytes)) in window.peers.iter().zip(&asked).enumerate() {
        let most = remote::most_answered(peer.len, size);
        if bytes > most && target != world.rank && !endpoint.reaches(target) {
            let message = format!(
                "this epoch gets {bytes} bytes from rank {target}, whose memory is not reached: at most {most} are sent, 256 times all of its window"
            );
            return Err(call.error(world, ErrorClass::Size, message));
        }
    }
    Ok(())
}

/// Decides which of the sections that other ranks can read in place are exposed.
fn rendezvous(world: &WorldCore, windows: &[&WindowCore], endpoint: &Endpoint) -> Rendezvous {
    let sections = windows.iter().flat_map(|window| {
        let targets = (0..endpoint.size()).filter(|&to| to != endpoint.rank() && endpoint.reaches(to));
        targets.flat_map(|target| {
            // SAFETY: only this rank touches the set of outboxes that it is filling.
            let outbox = unsafe { &*window.region.outbox(window.filling.set.get(), target) };
            outbox.wide.iter().filter_map(|wide| section(wide, window))
        })
    });
    let decided = Rendezvous::of(sections, &world.machine);
    world.note_rendezvous(decided);
    decided
}

/// Returns the section that is the source of this operation on `window`, if the source is a
/// section.
fn section<'a>(wide: &'a DatatypeOperation, window: &WindowCore) -> Option<Section<'a>> {
    let DatatypeSource::Section(_, source, _) = &wide.source else { return None };
    Some(Section { mode: wide.mode, source, target: &wide.remote, size: window.element.size })
}

/// Copies sections into the outbox's arena, or exposes them in place, as `decided`. `decided` is
/// `None` if the target cannot read sections in place.
///
/// If only one section is for such a target, that section is sent from the window without a copy
/// here. The bytes exposed to one target have the same limit as gets from one rank, since the
/// target may have to stage all of them.
fn read_sections(
    outbox: &mut Outbox,
    (windows, target): (&[&WindowCore], usize),
    call: &Call,
    world: &WorldCore,
    decided: Option<Rendezvous>,
) -> Result<()> {
    let (mut exposed, mut exposed_bytes) = (0, 0usize);
    // If the target is reached, `decided` has a value.
    let sole = target != world.rank && decided.is_none() && outbox.wide.len() == 1;
    for index in 0..outbox.wide.len() {
        let wide = &outbox.wide[index];
        let DatatypeSource::Section(key, elements, site) = wide.source.clone() else { continue };
        let Some(source) = find(windows, key) else { return Err(call.not_in_fence(world, key, site)) };
        let (len, size) = (source.peers[world.rank].len, source.element.size as usize);
        let bytes = elements.size().saturating_mul(size);
        let all = remote::exposed(exposed_bytes, &elements, len, size);
        let exposes = |decided: Rendezvous| {
            section(wide, source).is_some_and(|section| decided.exposes(&section, &world.machine))
        };
        if let Some(all) = all
            && decided.is_some_and(exposes)
        {
            outbox.wide[index].source = DatatypeSource::Exposed(key.window, elements);
            (exposed, exposed_bytes) = (exposed + 1, all);
            continue;
        }
        let from = source.region.base();
        if sole && bytes >= remote::ALONE && elements.as_run().is_some() {
            outbox.leave_section(from.wrapping_add(elements.low() as usize * size), bytes);
            outbox.wide[index].source = DatatypeSource::Bytes(0);
            continue;
        }
        let Some((at, to)) = outbox.append(bytes) else {
            let message = format!(
                "this epoch puts {} elements of {size} bytes, and there is no memory for a copy of them",
                elements.size()
            );
            return Err(call.error(world, ErrorClass::NoMem, message));
        };
        // SAFETY: the section was checked against this rank's part of the window, which this rank
        // is fencing. No other rank writes the part before this rank's notification is out. The
        // room has the section's number of bytes.
        unsafe { kernel::pack(from, &elements, size, to.as_mut_ptr()) };
        outbox.wide[index].source = DatatypeSource::Bytes(at);
    }
    outbox.sections = exposed;
    Ok(())
}

/// Lists the elements of this rank's gets for the targets of the gets. Does so only if there are
/// few gets, all of them may be direct, and none reads this rank's own part. Returns whether the
/// elements were listed.
fn list(world: &WorldCore, windows: &[&WindowCore], endpoint: &Endpoint) -> bool {
    let count: usize = windows.iter().map(|window| window.filling.pending.borrow().gets.len()).sum();
    if count == 0 || count > LISTED {
        return false;
    }
    // `sent` is the number of bytes of the gets whose list is sent in frames. If `direct` is set,
    // the list is sent in any case.
    let (mut sent, mut direct) = (0, false);
    let straight = windows.iter().all(|window| {
        let pending = window.filling.pending.borrow();
        pending.gets.iter().all(|get| {
            let (target, elements) = (get.target(), pending.count(get));
            let mode = get.wide().map_or(window.asked(Mode::Auto), |wide| pending.wide[wide].mode);
            let read = endpoint.shares(target) || {
                sent += elements as u64 * u64::from(window.element.size);
                // Targets do not accept longer gets in such a list (`remote::most_answered`).
                endpoint.reaches(target) && elements <= window.peers[target].len
            };
            direct |= mode == Mode::Direct;
            get.lands_in().is_none() && read && lands_in_place(mode) && target != world.rank
        })
    });
    if !straight || sent > 0 && !direct && !listing_pays(sent, &world.machine) {
        return false;
    }
    for window in windows {
        let pending = window.filling.pending.borrow();
        for get in &*pending.gets {
            if endpoint.shares(get.target()) {
                // SAFETY: only this rank touches the set of outboxes that it is filling.
                let outbox =
                    unsafe { &mut *window.region.make_outbox(window.filling.set.get(), get.target()) };
                outbox.looks.push(pending.remote(get));
            }
        }
    }
    true
}

pub(super) fn find<'w>(windows: &[&'w WindowCore], key: WindowKey) -> Option<&'w WindowCore> {
    windows.iter().find(|window| window.key == key).copied()
}
