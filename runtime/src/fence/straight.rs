//! The straight path of the fence: windows of which only records wait, and ranks that all reach each other's memory.
//!
//! It is the same fence, with one loop over the ranks before the notifications are sent, and it differs from it only there:
//! nothing is got, exposed or listed, and no frame is posted. Records ride in their notification, one or two; of more it
//! says where they lie. They are of one window or of two. What other ranks have for this one may be anything, so what follows
//! the notifications is [`conclude`](Fence::conclude), as for every fence.

use crate::collect::limits::most_operations;
use crate::fence::Fence;
use crate::fence::riding::{self, MOST_WINDOWS};
use crate::fence::sources::find;
use crate::kernel::waits::{Wait, without};
use crate::protocol::call::{hash, notification_word};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Order;
use fencepost_transport::{Liveness, Notify, Record};

/// Whether a fence of these windows may go straight; their operations are not counted yet.
#[inline(always)]
fn are_straight(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> bool {
    world.is_straight
        && windows.iter().all(|window| is_straight(world, window))
        && world.order.get() == Order::Canonical
        && !world.explains.get()
        && !without(Wait::Composition)
        && world.admits(call).is_ok()
}

#[inline(always)]
fn is_straight(world: &WorldCore, window: &WindowCore) -> bool {
    window.plain.get()
        && window.key.world == world.id
        && window.getting.has_none(&window.pending.borrow().gets)
}

/// The fence of several windows, where it goes straight; `None` where it does not, and nothing has happened yet.
#[inline(never)]
pub(super) fn fence_of_several(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
) -> Option<Result<()>> {
    let twice = |i: usize| windows[..i].iter().any(|other| other.key == windows[i].key);
    if windows.len() > MOST_WINDOWS || (1..windows.len()).any(twice) {
        return None;
    }
    fence(world, windows, call)
}

/// The fence of these windows, where it goes straight; `None` where it does not, and nothing has happened yet.
#[inline(always)]
pub(super) fn fence(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Option<Result<()>> {
    if !are_straight(world, windows, call) {
        return None;
    }
    let inside = world.supersteps.is_any_running();
    if inside && world.supersteps.follows() {
        return None;
    }
    let named;
    let mut call = call;
    if inside && call.name.is_none() {
        named = world.supersteps.call(call);
        call = &named;
    }
    let result = exchange(world, windows, call)?;
    if inside {
        world.supersteps.fenced(result.is_err());
    }
    match result {
        Ok(()) => windows.iter().for_each(|window| window.next_set(call.site)),
        Err(_) => super::discard(windows),
    }
    Some(result)
}

/// The exchange of a fence that [`are_straight`] allows. `None` where it does not go straight after all, and nothing has
/// happened yet.
#[inline(always)]
fn exchange(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Option<Result<()>> {
    for window in windows {
        if !read_sources(world, windows, window) {
            return None;
        }
    }
    let several = |to: usize| windows.iter().filter(|window| !records(window, to).is_empty()).count() > 2;
    if windows.len() > 2 && (0..world.size).filter(|&to| to != world.rank).any(several) {
        return None;
    }
    for window in windows {
        window.elements.set(false);
        window.of_other.set(None);
    }
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a fence");
    let result = Fence::new(world, windows, call, endpoint).straight();
    guard.over();
    Some(result)
}

/// Reads the elements that are sources of records of this window; those that were read before are not read again. Returns
/// whether its records can be read where they are.
#[inline(always)]
fn read_sources(world: &WorldCore, windows: &[&WindowCore], window: &WindowCore) -> bool {
    let (set, size) = (window.set.get(), window.element.size as usize);
    let sources = match window.of_other.get() {
        // The fence refuses a section of a window that is not in it.
        Some((key, _)) => match find(windows, key) {
            Some(other) => Some(other),
            None => return false,
        },
        None => window.elements.get().then_some(window),
    };
    window.fast_paths.iter().enumerate().all(|(target, fast_path)| {
        // The set being filled is touched by its owner only, and writers are on it alone.
        let Some(outbox) = window.region.made_outbox(set, target) else {
            fast_path.writer.leave();
            return true;
        };
        // SAFETY: as above.
        let outbox = unsafe { &mut *outbox };
        // SAFETY: as above.
        unsafe { fast_path.writer.lift(&mut outbox.records) };
        if let Some(from) = sources {
            // SAFETY: as above; each displacement was checked at the call against this rank's part of that window, which this
            // rank is fencing, and nobody else writes it before this rank's notification is out.
            unsafe { outbox.read_elements(from.region.base(), size) };
        }
        let ride = outbox.records.len() <= if windows.len() == 1 { 2 } else { 0 };
        let reached = ride || world.shares_all || outbox.records.is_reached();
        outbox.records.len() <= most_operations() && reached
    })
}

/// The records of this window that are for this rank.
#[inline(always)]
fn records(window: &WindowCore, to: usize) -> &[Record] {
    // SAFETY: the set being filled is touched by its owner only, and not while these are used.
    unsafe { &(&*window.region.outbox(window.set.get(), to)).records[..] }
}

impl Fence<'_> {
    #[inline(always)]
    fn straight(&mut self) -> Result<()> {
        let (world, windows) = (self.world, self.windows);
        let hash = hash(world, self.call, windows) ^ world.ran.get() & super::WORD;
        let word = world.next_word(hash as u32);
        let (notifications, flags) = (notification_word(word, hash), self.behind_it());
        for to in (0..world.size).filter(|&to| to != world.rank) {
            let notification = self.endpoint.draft(to);
            notification.flags = flags;
            if let [window] = windows {
                riding::of_one(notification, 0, records(window, to));
                continue;
            }
            let all = windows.iter().enumerate().map(|(place, window)| (place, records(window, to)));
            let mut some = all.filter(|(_, records)| !records.is_empty());
            match (some.next(), some.next()) {
                (Some(first), Some(second)) => riding::of_two(notification, first, second),
                (Some((place, records)), None) => riding::of_one(notification, place, records),
                _ => riding::of_one(notification, 0, &[]),
            }
        }
        world.call_sites.enter(world.rank, self.call.site, windows.iter().map(|window| window.key.window));
        self.endpoint.announce(word);
        self.endpoint.publish(notifications).map_err(|lost| self.quit(&lost))?;
        let all = self.read_notifications(notifications, flags)?;
        self.conclude(hash, None, word, all).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use crate::api::run::ranks;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::Result;
    use fencepost_planner::element::Op;

    /// Each rank's fence goes straight or not, by what it has collected; the ranks of one exchange go different ways.
    #[test]
    fn ranks_that_go_straight_and_ranks_that_do_not_meet() {
        for transport in [TransportKind::Local, TransportKind::ShmThreads] {
            let run = |world: &crate::World| -> Result<()> {
                let (me, size) = (world.rank(), world.size());
                let (mut u, v) = (world.window::<u64>(64)?, world.window::<u64>(4)?);
                for epoch in 0..40 {
                    u.fill(1 + me as u64);
                    world.barrier()?;
                    for count in 0..epoch % 5 {
                        for to in 0..size {
                            u.put([(100 * me + count) as u64]).to(to, 8 * me + count)?;
                        }
                    }
                    u.accumulate(3..4, Op::Sum).to((me + 1) % size, 60)?;
                    // The rank whose turn it is reads what others write, or puts more than records.
                    let turns = epoch % 7 == me;
                    if turns && epoch % 2 == 0 {
                        u.get(40..44).from((me + 1) % size, 0..4)?;
                    } else if turns {
                        u.put(30..34).to((me + 1) % size, 50..54)?;
                    }
                    u.fence()?;
                    for from in 0..size {
                        for count in 0..5 {
                            let put = count < epoch % 5;
                            let expected = if put { 100 * from + count } else { 1 + me };
                            assert_eq!(u[8 * from + count], expected as u64, "{transport:?}, epoch {epoch}");
                        }
                    }
                    assert_eq!(u[60] as usize, 1 + me + 1 + (me + size - 1) % size);
                    if turns && epoch % 2 == 0 {
                        assert_eq!(u[40..44], [1 + ((me + 1) % size) as u64; 4]);
                    }
                    world.barrier()?;
                }
                drop(v);
                Ok(())
            };
            ranks(3).transport(transport.clone()).run(run).expect("no panic");
        }
    }

    /// Records of none, one, two or three of the windows of a fence, few or many, and with sections of another window for
    /// sources; some ranks do not go straight, and read what the records change.
    #[test]
    fn records_of_several_windows_are_applied_to_their_own() {
        for transport in [TransportKind::Local, TransportKind::ShmThreads] {
            let run = |world: &crate::World| -> Result<()> {
                let (me, size) = (world.rank(), world.size());
                let (mut u, mut v, mut w) =
                    (world.window::<u64>(64)?, world.window::<u16>(64)?, world.window::<u64>(64)?);
                for epoch in 0..96 {
                    let (touched, count, next) = (epoch % 8, 1 + epoch / 8 % 3, (me + 1) % size);
                    let is_touched = |window: usize| touched >> window & 1 == 1;
                    u.fill(1 + me as u64);
                    v.fill(1 + me as u16);
                    w.fill(1 + me as u64);
                    for (i, to) in (0..count).flat_map(|i| (0..size).map(move |to| (i, to))) {
                        let (at, value) = (8 * me + i, (100 * (1 + me) + i) as u64);
                        is_touched(0).then(|| u.put([value]).to(to, at)).transpose()?;
                        is_touched(1).then(|| v.put([value as u16]).to(to, at)).transpose()?;
                        is_touched(2).then(|| w.put([value]).to(to, at)).transpose()?;
                    }
                    let borrows = epoch % 5 == 0;
                    if borrows {
                        u.put(w.section(8..8 + count)).to(next, 40)?;
                    }
                    let gets = epoch % 7 == me;
                    if gets {
                        w.get(48..48 + count).from(next, 8 * me)?;
                    }
                    world.fence((&mut u, &mut v, &mut w))?;
                    for (i, from) in (0..3).flat_map(|i| (0..size).map(move |from| (i, from))) {
                        let (at, value) = (8 * from + i, (100 * (1 + from) + i) as u64);
                        let found = [u[at], u64::from(v[at]), w[at]];
                        for (window, found) in found.into_iter().enumerate() {
                            let put = is_touched(window) && i < count;
                            let expected = if put { value } else { 1 + me as u64 };
                            assert_eq!(found, expected, "{transport:?}, epoch {epoch}, window {window}");
                        }
                    }
                    let before = 1 + (me + size - 1) % size;
                    let lent = if borrows { before } else { 1 + me };
                    assert_eq!(u[40..40 + count], [lent as u64; 3][..count], "{transport:?}, epoch {epoch}");
                    let got = if gets { 1 + next } else { 1 + me };
                    assert_eq!(w[48..48 + count], [got as u64; 3][..count], "{transport:?}, epoch {epoch}");
                }
                Ok(())
            };
            ranks(3).transport(transport.clone()).run(run).expect("no panic");
        }
    }

    #[test]
    fn a_section_of_a_window_that_is_not_fenced_is_refused() {
        let run = |world: &crate::World| -> Result<()> {
            let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
            let w = world.window::<u64>(8)?;
            u.put(w.section(0..2)).to(1 - world.rank(), 0)?;
            let error = world.fence((&mut u, &mut v)).expect_err("the section's window is not in it");
            assert_eq!(error.class(), fencepost_planner::ErrorClass::RmaSync, "{error}");
            world.fence((&mut u, &mut v))?;
            assert_eq!(u[..2], [0, 0]);
            Ok(())
        };
        ranks(2).run(run).expect("no panic");
    }

    #[test]
    fn what_goes_straight_is_compared_and_dropped_where_ranks_disagree() {
        for transport in [TransportKind::Local, TransportKind::ShmThreads] {
            let run = |world: &crate::World| -> Result<()> {
                let (me, other) = (world.rank(), 1 - world.rank());
                let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(8)?);
                for _ in 0..3 {
                    let w = if me == 0 { &mut u } else { &mut v };
                    (0..5).try_for_each(|at| w.put([7]).to(other, at))?;
                    assert!(w.fence().is_err(), "they fence different windows");
                    (0..5).try_for_each(|at| u.put([8]).to(other, at))?;
                    u.fence()?;
                    v.fence()?;
                    assert_eq!((u[..5].to_vec(), v[..].to_vec()), (vec![8; 5], vec![0; 8]), "{transport:?}");
                    u.fill(0);
                    world.barrier()?;
                }
                Ok(())
            };
            ranks(2).transport(transport.clone()).run(run).expect("no panic");
        }
    }
}
