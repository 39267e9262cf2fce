//! The short path of the fence, for windows that have collected only records, between ranks that
//! all reach each other's memory.
//!
//! The effect is that of any other fence, with one loop over the ranks before the notifications are
//! sent and one loop afterwards. Nothing is got, exposed or listed, and no frame is posted. A
//! notification contains one or two records, or the address of more records. The records are of one
//! or two windows. Other ranks may send this rank anything. If they send only records in this form,
//! and no rank reads this rank's memory, the records are applied at once (W1: all notifications are
//! in). Otherwise, or if a notification has not come within a microsecond or two, the fence goes on
//! with [`conclude`](Fence::conclude), as every other fence does after the notifications.
//!
//! The whole path is compiled as one function for each kind of end, because two ranks that are
//! threads of one core pay for every instruction.

use crate::census::flags::{CHANGED, EXPOSES, FAILED, READS, RUNS};
use crate::census::riding::{self, MOST_WINDOWS, are_riding, riders};
use crate::collect::filling::RecordSources;
use crate::collect::limits::most_operations;
use crate::fence::sources::find;
use crate::fence::{Fence, Told};
use crate::kernel::waits::{Wait, without};
use crate::protocol::call::{hash, notification_word};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Order;
use fencepost_transport::{Endpoint, Liveness, Lost, Notify, Record};

/// Returns whether a fence of these windows may take the short path. The operations of the windows
/// are not counted yet.
#[inline(always)]
fn are_straight(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> bool {
    world.is_straight()
        && windows.iter().all(|window| is_straight(world, window))
        && world.choices.order.get() == Order::Canonical
        && !world.reports.explains.get()
        && !without(Wait::Composition)
        && world.admits(call).is_ok()
}

#[inline(always)]
fn is_straight(world: &WorldCore, window: &WindowCore) -> bool {
    window.filling.plain.get()
        && window.key.world == world.id
        && (window.filling.getting.fills_none()
            || window.filling.getting.has_none(&window.filling.pending.borrow().gets))
}

/// Runs the fence of no window by the short path: a meeting of all ranks, outside of all
/// supersteps. Returns `None`, without any effect, if the fence cannot take that path.
#[inline(never)]
pub(super) fn fence_of_none(world: &WorldCore, call: &Call) -> Option<Result<()>> {
    if !world.tells() || without(Wait::Composition) || world.admits(call).is_err() {
        return None;
    }
    Some(tell(world, call, &mut world.endpoint.borrow_mut(), None))
}

/// Runs the fence of one window by the short path. Returns `None`, without any effect, if the fence
/// cannot take that path.
///
/// This is one function for all callers, and everything that it calls is inlined into it.
#[inline(never)]
pub(super) fn fence_of_one(world: &WorldCore, window: &WindowCore, call: &Call) -> Option<Result<()>> {
    fence(world, &[window], call)
}

/// Runs the fence of several windows by the short path. Returns `None`, without any effect, if the
/// fence cannot take that path.
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

/// Runs the fence of these windows.
#[inline(always)]
fn fence(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Option<Result<()>> {
    if !are_straight(world, windows, call) {
        return None;
    }
    let (inside, follows) = world.supersteps.around();
    if follows {
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
        Ok(()) => {
            for window in windows {
                window.next_set_plainly(call.site);
            }
        }
        Err(_) => super::discard(windows),
    }
    Some(result)
}

/// Calls `$function` with this rank's end of a transport. The function is compiled for each kind of
/// end whose ranks reach each other's memory.
macro_rules! with_end {
    ($endpoint:expr, $function:ident($($argument:expr),*)) => {
        match $endpoint {
            Endpoint::Local(end) => $function(end, $($argument),*),
            #[cfg(not(loom))]
            Endpoint::Shm(end) => $function(end, $($argument),*),
            end => $function(end, $($argument),*),
        }
    };
}

/// Makes the exchange of a fence that [`are_straight`] allows. Returns `None`, without any effect,
/// if the fence cannot take the short path after all.
#[inline(always)]
fn exchange(world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Option<Result<()>> {
    let endpoint = &mut *world.endpoint.borrow_mut();
    let guard = AbortOnUnwind("a fence");
    let entered = with_end!(&mut *endpoint, enter(world, windows, call));
    let result = match entered {
        None => None,
        Some(Ok(said)) if with_end!(&mut *endpoint, found_records_only(world, windows, &said)) => {
            Some(Ok(()))
        }
        Some(entered) => Some(go_on(&mut Fence::new(world, windows, call, endpoint), entered)),
    };
    guard.over();
    result
}

/// Sends every other rank the same records, or nothing, in an exchange that fences no window and
/// takes the short path. Afterwards the notifications of the others contain the records that they
/// have sent.
pub(super) fn tell(
    world: &WorldCore,
    call: &Call,
    endpoint: &mut Endpoint,
    mine: Option<&Told>,
) -> Result<()> {
    let guard = AbortOnUnwind("an exchange");
    let result = if without(Wait::Composition) || world.checks.is_on() {
        Fence { told: mine, ..Fence::new(world, &[], call, endpoint) }.run(None).map(drop)
    } else {
        match with_end!(&mut *endpoint, say(world, call, mine)) {
            Ok(said) if with_end!(&mut *endpoint, agree(world, &said)).is_some() => {
                world.fence.ran.set(0);
                Ok(())
            }
            said => go_on(&mut Fence { told: mine, ..Fence::new(world, &[], call, endpoint) }, said),
        }
    };
    guard.over();
    result
}

/// The notification that a rank has published for all others, and the word of the exchange.
struct Said {
    hash: u64,
    word: u64,
    notifications: u64,
    flags: u32,
}

/// Drafts the notifications and publishes them. Returns `None` if the fence cannot take the short
/// path. In that case records have only been counted, and the general path drafts all notifications
/// again.
#[inline(always)]
fn enter<E: Notify + Liveness>(
    end: &mut E,
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
) -> Option<Result<Said, Lost>> {
    let flags = world.behind_it();
    for to in 0..world.size {
        // Records of one window or two go into the notification.
        let (mut first, mut second) = ((0, &[][..]), None);
        for (place, window) in windows.iter().enumerate() {
            match records(world, windows, window, to)? {
                [] => (),
                records if first.1.is_empty() => first = (place, records),
                records if second.is_none() => second = Some((place, records)),
                _ if to == world.rank => (),
                _ => return None,
            }
        }
        if to != world.rank {
            let notification = end.draft(to);
            notification.flags = flags;
            match second {
                None => riding::of_one(notification, first.0, first.1),
                Some(second) => riding::of_two(notification, first, second),
            }
        }
    }
    for window in windows {
        window.filling.sources.set(RecordSources::None);
    }
    Some(publish(end, world, windows, call, flags))
}

/// Drafts the notifications of this rank for others, and publishes them.
#[inline(always)]
fn say<E: Notify + Liveness>(
    end: &mut E,
    world: &WorldCore,
    call: &Call,
    mine: Option<&Told>,
) -> Result<Said, Lost> {
    let flags = world.behind_it();
    for to in (0..world.size).filter(|&to| to != world.rank) {
        let notification = end.draft(to);
        notification.flags = flags;
        match mine {
            None => riding::of_one(notification, 0, &[]),
            Some(told) => riding::of_one(notification, 0, told),
        }
    }
    publish(end, world, &[], call, flags)
}

/// Publishes the drafted notifications.
#[inline(always)]
fn publish<E: Notify + Liveness>(
    end: &mut E,
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    flags: u32,
) -> Result<Said, Lost> {
    let hash = hash(world, call, windows) ^ world.fence.ran.get() & super::WORD;
    let word = world.calls.next_word(hash as u32);
    let notifications = notification_word(word, hash);
    world.calls.sites.enter(world.rank, call.site, windows.iter().map(|window| window.key.window));
    end.announce(word);
    end.publish(notifications)?;
    Ok(Said { hash, word, notifications, flags })
}

/// Reads the notifications of all others. Returns the flags of all, and the number of ranks that
/// have something for this rank. Returns `None` if ranks disagree, if a rank reads this rank's
/// memory, if a rank has anything but records in its notification for this rank, or if some
/// notification has not come yet.
#[inline(always)]
fn agree<E: Notify>(end: &mut E, world: &WorldCore, said: &Said) -> Option<(u32, usize)> {
    let (mut flags, mut senders) = (said.flags, 0);
    for from in (0..world.size).filter(|&from| from != world.rank) {
        let notification = end.await_briefly(from)?;
        let rides = notification.count == 0 || are_riding(notification.address);
        let apart = (notification.flags ^ said.flags) >> RUNS != 0 || notification.word != said.notifications;
        if !rides || apart || notification.flags & (FAILED | READS | EXPOSES) != 0 {
            return None;
        }
        flags |= notification.flags;
        senders += usize::from(notification.count != 0);
    }
    Some((flags, senders))
}

/// Reads the notifications of all others and, if they [agree], applies the records that are for
/// this rank. Returns whether the notifications agreed. If not, nothing was applied.
#[inline(always)]
fn found_records_only<E: Notify>(
    end: &mut E,
    world: &WorldCore,
    windows: &[&WindowCore],
    said: &Said,
) -> bool {
    let Some((flags, senders)) = agree(end, world, said) else { return false };
    let me = world.rank;
    world.fence.ran.set(0);
    world.fence.described.set(flags & CHANGED != 0);
    world.fence.changed.set(true); // as wherever memory is reached
    for (place, window) in windows.iter().enumerate() {
        let origins = if senders == 0 { me..me + 1 } else { 0..world.size };
        for origin in origins {
            let records = if origin == me {
                // SAFETY: only this rank touches the set of outboxes that it is filling, and it
                // does not touch the set while these records are used.
                unsafe { &(&*window.region.outbox(window.filling.set.get(), me)).records[..] }
            } else {
                match end.await_briefly(origin) {
                    // SAFETY: the notification belongs to this exchange. Its records are in the
                    // notification, or at the address that the notification contains.
                    Some(notification) if notification.count > 0 => unsafe { riders(notification, place) },
                    _ => continue,
                }
            };
            if !records.is_empty() {
                // SAFETY: this is this rank's own memory, in its own fence, and no rank reads it.
                // The origin of these records checked every displacement against this length.
                unsafe { window.apply_records(records) };
            }
        }
    }
    world.reports.count_epoch();
    true
}

/// Returns the records of this window for one rank, after reading the elements that are their
/// sources. Elements that were read before are not read again. Returns `None` if the records cannot
/// be read in place.
#[inline(always)]
fn records<'w>(
    world: &WorldCore,
    windows: &[&'w WindowCore],
    window: &'w WindowCore,
    to: usize,
) -> Option<&'w [Record]> {
    let writer = &window.fast_paths[to].writer;
    if writer.fills_none() {
        return Some(&[]); // and the log itself contains no records
    }
    // Only this rank touches the set of outboxes that it is filling, and all writers write to that
    // set.
    let Some(outbox) = window.region.made_outbox(window.filling.set.get(), to) else {
        writer.leave();
        return Some(&[]);
    };
    // SAFETY: as above.
    let outbox = unsafe { &mut *outbox };
    // SAFETY: as above.
    unsafe { writer.lift(&mut outbox.records) };
    if outbox.records.is_empty() {
        return Some(&[]);
    }
    let sources = match window.filling.sources.get() {
        RecordSources::None => None,
        RecordSources::Own => Some(window),
        // The fence refuses a section of a window that is not in the fence.
        RecordSources::Of(key, _) => Some(find(windows, key)?),
    };
    if let Some(from) = sources {
        // SAFETY: as above; each displacement was checked at the call against this rank's part of
        // that window. This rank is fencing the window, and no other rank writes the part before
        // this rank's notification is out.
        unsafe { outbox.read_elements(from.region.base(), window.element.size as usize) };
    }
    let ride = outbox.records.len() <= if windows.len() == 1 { 2 } else { 0 };
    let reached = ride || world.reach.shares_all || outbox.records.is_reached();
    (outbox.records.len() <= most_operations() && reached).then_some(&outbox.records[..])
}

/// Does the rest of the fence after this rank has [entered](enter) or failed to enter. Called if
/// this rank has not [found records only](found_records_only).
#[inline(never)]
fn go_on(fence: &mut Fence<'_>, entered: Result<Said, Lost>) -> Result<()> {
    let Said { hash, word, notifications, flags } = entered.map_err(|lost| fence.quit(&lost))?;
    let all = fence.read_notifications(notifications, flags)?;
    fence.conclude(hash, None, word, all).map(drop)
}

#[cfg(test)]
mod tests {
    use crate::api::run::ranks;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::Result;
    use fencepost_planner::element::Op;

    /// Each rank's fence takes the short path or not, depending on its collected operations. The
    /// ranks of one exchange take different paths.
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
                    // The rank whose turn it is gets elements that others write, or puts several
                    // elements at once.
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

    /// A fence has few or many records for none, one, two or three of its windows, also with
    /// sections of another window as sources. Some ranks do not take the short path, and read
    /// elements that the records change.
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

    /// The source is one element of another window, or of the same window by its name. Some epochs
    /// also put elements of the window itself, before or after the others.
    #[test]
    fn an_element_of_another_window_is_read_as_the_fence_is_entered() {
        for transport in [TransportKind::Local, TransportKind::ShmThreads] {
            let run = |world: &crate::World| -> Result<()> {
                let (me, other) = (world.rank(), 1 - world.rank());
                let (mut u, mut v) = (world.window::<u64>(8)?, world.window::<u64>(4)?);
                for epoch in 0..6_u64 {
                    u.fill(1);
                    v.fill(0);
                    let own_too = epoch % 3 == 1;
                    if own_too {
                        u.put(6..7).to(other, 5)?;
                    }
                    u.put(v.section(me..me + 1)).to(other, me)?;
                    u.accumulate(v.section(me..me + 1), Op::Sum).to(other, me..me + 1)?;
                    if epoch % 3 == 2 {
                        u.put(6..7).to(other, 5)?;
                    }
                    u.put(u.section(7..8)).to(me, 4)?;
                    let wrong = u.put(v.section(4..5)).to(other, 0).expect_err("it has four elements");
                    assert_eq!(wrong.class(), fencepost_planner::ErrorClass::Disp, "{wrong}");
                    let wrong = u.put(v.section(0..1)).to(other, 8).expect_err("it has eight elements");
                    assert_eq!(wrong.class(), fencepost_planner::ErrorClass::Disp, "{wrong}");
                    v[me] = 10 * epoch + me as u64;
                    (u[6], u[7]) = (100 + epoch, 200 + epoch);
                    world.fence((&mut u, &mut v))?;
                    assert_eq!(u[other], 2 * (10 * epoch + other as u64), "{transport:?}, epoch {epoch}");
                    let own = if epoch % 3 == 0 { 1 } else { 100 + epoch };
                    assert_eq!((u[4], u[5]), (200 + epoch, own), "{transport:?}, epoch {epoch}");
                }
                Ok(())
            };
            ranks(2).transport(transport.clone()).run(run).expect("no panic");
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
