//! The straight path of the fence: one window of which only records wait, and ranks that all reach each other's memory.
//!
//! It is the same fence, with one loop over the ranks before the notifications are sent, and it differs from it only there:
//! nothing is got, exposed or listed, and no frame is posted. Records ride in their notification, one or two; of more it
//! says where they lie. What other ranks have for this one may be anything, so what follows the notifications is
//! [`conclude`](Fence::conclude), as for every fence.

use crate::collect::limits::most_operations;
use crate::fence::{Fence, INLINE};
use crate::kernel::waits::{Wait, without};
use crate::protocol::call::{hash, notification_word};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::window::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::ir::pattern::Order;
use fencepost_transport::{Liveness, Notify};

/// Whether a fence of this window alone may go straight; its operations are not counted yet.
#[inline(always)]
fn is_straight(world: &WorldCore, window: &WindowCore, call: &Call) -> bool {
    world.is_straight
        && window.plain.get()
        && window.of_other.get().is_none()
        && window.key.world == world.id
        && world.order.get() == Order::Canonical
        && !world.explains.get()
        && !without(Wait::Composition)
        && window.getting.has_none(&window.pending.borrow().gets)
        && world.admits(call).is_ok()
}

/// The fence of this window, where it goes straight; `None` where it does not, and nothing has happened yet.
#[inline(always)]
pub(super) fn fence(world: &WorldCore, window: &WindowCore, call: &Call) -> Option<Result<()>> {
    if !is_straight(world, window, call) {
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
    let result = exchange(world, window, call)?;
    if inside {
        world.supersteps.fenced(result.is_err());
    }
    match result {
        Ok(()) => window.next_set(call.site),
        Err(_) => {
            window.discard();
            window.open();
        }
    }
    Some(result)
}

/// The exchange of a fence that [`is_straight`]. `None` where it is not after all, and nothing has happened yet.
#[inline(always)]
fn exchange(world: &WorldCore, window: &WindowCore, call: &Call) -> Option<Result<()>> {
    let (set, size) = (window.set.get(), window.element.size as usize);
    let elements = window.elements.take();
    for (target, fast_path) in window.fast_paths.iter().enumerate() {
        // The set being filled is touched by its owner only, and writers are on it alone.
        let Some(outbox) = window.region.made_outbox(set, target) else {
            fast_path.writer.leave();
            continue;
        };
        // SAFETY: as above.
        let outbox = unsafe { &mut *outbox };
        // SAFETY: as above.
        unsafe { fast_path.writer.lift(&mut outbox.records) };
        if elements {
            // SAFETY: as above; each displacement was checked at the call against this rank's part of the window, which this
            // rank is fencing, and nobody else writes it before this rank's notification is out.
            unsafe { outbox.read_elements(window.region.base(), size) };
        }
        let reached = outbox.records.len() <= 2 || world.shares_all || outbox.records.is_reached();
        if outbox.records.len() > most_operations() || !reached {
            window.elements.set(elements); // some may be read already, and are not read again
            return None;
        }
    }
    let (windows, endpoint) = (&[window][..], &mut *world.endpoint.borrow_mut());
    let guard = AbortOnUnwind("a fence");
    let result = Fence::new(world, windows, call, endpoint).straight(window);
    guard.over();
    Some(result)
}

impl Fence<'_> {
    #[inline(always)]
    fn straight(&mut self, window: &WindowCore) -> Result<()> {
        let world = self.world;
        let hash = hash(world, self.call, self.windows) ^ world.ran.get() & super::WORD;
        let word = world.next_word(hash as u32);
        let (notifications, flags) = (notification_word(word, hash), self.behind_it());
        for to in (0..world.size).filter(|&to| to != world.rank) {
            // SAFETY: the set being filled is touched by its owner only.
            let records = unsafe { &(&*window.region.outbox(window.set.get(), to)).records[..] };
            let notification = self.endpoint.draft(to);
            notification.flags = flags;
            notification.count = records.len() as u32;
            notification.address = INLINE;
            match records {
                [] => (),
                [one] => notification.inline[0] = *one,
                [one, two] => notification.inline = [*one, *two],
                more => notification.inline[0].value = more.as_ptr().expose_provenance() as u64,
            }
        }
        world.call_sites.enter(world.rank, self.call.site, [window.key.window].into_iter());
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
