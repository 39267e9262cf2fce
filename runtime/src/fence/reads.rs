//! Finds which ranks read whose memory in a fence, and which writes have to wait for these reads.
//!
//! A rank reads windows of other ranks for its own gets. It also reads sections that other ranks
//! did not copy, but exposed to it. A rank that gets elements announces this in its notification
//! for the target. A rank that exposes a section announces this in its notification for the rank
//! that reads the section. A rank whose memory is read waits until its readers have settled (W3).
//! Only a rank itself writes its memory. So each rank can find out by itself whether it must also
//! wait before it writes (W2). The rank checks whether a get that lands in its memory, or a put of
//! another rank, touches an element that is read. Usually no get and no put does, and each element
//! is copied once, from its source to its destination. If some get or put does, the rank first
//! stages the elements that it reads from others, notifies the others that it has finished with
//! their memory, and waits for its readers. Each rank sends these notifications before it waits, so
//! ranks do not wait for each other in a cycle.

use crate::census::flags::{EXPOSES, READS};
use crate::census::messages::post;
use crate::census::riding::{are_riding, riders};
use crate::collect::description::{Description, FAR};
use crate::collect::outbox::{DATATYPE, DatatypeOperation, DatatypeSource, Head, PUT, touched};
use crate::collect::pending::Into as Landing;
use crate::fence::remote::{self, Came};
use crate::fence::{Fence, Notifications};
use crate::kernel;
use crate::kernel::waits::{Wait, without};
use crate::protocol::exchange::{untouched_by, wait};
use crate::protocol::frames::kind;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::{ErrorClass, Result, State};
use fencepost_transport::{Cause, Channels, Endpoint, Liveness, Loss, Lost, Notify, Port, Record, Topology};
use std::cell::Cell;

/// The number of comparisons after which a rank stops comparing, and waits for its readers before
/// it writes.
pub(super) const COMPARISONS: usize = 4096;

/// How this rank and other ranks read each other's memory in a fence.
#[derive(Clone, Copy, Default)]
pub(super) struct Reads {
    /// Whether this rank reads memory of others.
    pub(super) reads: bool,
    /// Whether others read memory of this rank.
    pub(super) read: bool,
    /// Whether others read elements that are written on this rank. If so, all reads must be over
    /// before anything is written.
    pub(super) first: bool,
}

/// Returns the address of `origin`'s part of the window with this number. The origin exposes a
/// section of that part.
pub(super) fn exposed_by(windows: &[&WindowCore], number: u32, origin: usize) -> *const u8 {
    let window = numbered(windows, number).expect("an exposed section's window is in its fence");
    window.peers[origin].base
}

fn numbered<'w>(windows: &[&'w WindowCore], number: u32) -> Option<&'w WindowCore> {
    windows.iter().find(|window| window.key.window == number).copied()
}

impl Fence<'_> {
    /// Returns whether this rank reads memory of others, and how others read its memory. Called
    /// when all notifications, and the frames before them, have arrived.
    pub(super) fn reads(&mut self, all: &Notifications) -> Reads {
        let reads = self.asks || all.flags & EXPOSES != 0;
        let read = self.exposes || all.flags & READS != 0;
        Reads { reads, read, first: read && self.meets(all) }
    }

    /// Returns whether others may read an element of this rank's memory that is written in this
    /// fence.
    fn meets(&mut self, all: &Notifications) -> bool {
        let me = self.world.rank;
        let writes = !all.quiet()
            || self.windows.iter().any(|window| {
                // SAFETY: this is this rank's own set, which was filled before its notification.
                let own = unsafe { &*window.region.outbox(window.filling.set.get(), me) };
                !own.is_empty() || !window.filling.pending.borrow().gets.is_empty()
            });
        if !writes {
            return false;
        }
        if all.unlisted {
            return true;
        }
        if !self.world.reach.shares_all {
            self.note_riders();
        }
        let left = Cell::new(COMPARISONS);
        self.is_any_read(|window, read| self.written(window, read, None, &left))
    }

    /// Returns whether some read of this rank's elements by another rank passes `test`. Tests only
    /// reads that this rank knows: of sections that it exposes, and of gets that arrived or are
    /// listed.
    pub(super) fn is_any_read(&self, test: impl Fn(&WindowCore, &Datatype) -> bool) -> bool {
        let me = self.world.rank;
        self.windows.iter().any(|window| {
            let set = window.filling.set.get();
            (0..self.world.size).any(|other| {
                // SAFETY: this is this rank's own set, which was filled before its notification.
                let own = unsafe { &*window.region.outbox(set, other) };
                let mut exposed = own.wide.iter().filter_map(|wide| match &wide.source {
                    DatatypeSource::Exposed(number, section) => {
                        Some((numbered(self.windows, *number)?, section))
                    }
                    _ => None,
                });
                if exposed.any(|(window, read)| test(window, read)) {
                    return true;
                }
                let Some(region) = &window.peers[other].region else {
                    let mut hit = false;
                    remote::each_arrived(window, other, |arrived| {
                        if let Came::Described(Description { gets, far, .. }) = arrived {
                            hit =
                                hit || gets.iter().filter(|&&get| get != FAR).any(|&get| {
                                    let read = Datatype::run(get as usize..get as usize + 1);
                                    test(window, &read)
                                }) || far.iter().any(|read| test(window, read));
                        }
                    });
                    return hit;
                };
                // SAFETY: the other rank filled this set before its notification, which this rank
                // has read. The other rank touches the set again only after it has read this rank's
                // next notification.
                let theirs = unsafe { &*region.outbox(set, me) };
                theirs.looks.iter().any(|read| test(window, read))
            })
        })
    }

    /// Returns whether a get, or an operation of an origin other than `except`, writes or may write
    /// some of the elements `read` of this rank's part of `window`. `left` is the number of
    /// comparisons that may still be made. Returns `true` if none is left.
    pub(super) fn written(
        &self,
        window: &WindowCore,
        read: &Datatype,
        except: Option<usize>,
        left: &Cell<usize>,
    ) -> bool {
        let me = self.world.rank;
        let meets = |write: &Datatype| {
            left.set(left.get().saturating_sub(1));
            left.get() == 0 || read.overlaps(write)
        };
        let lands = self.windows.iter().any(|other| {
            let pending = other.filling.pending.borrow();
            pending.gets.iter().any(|get| {
                let Some(wide) = get.wide() else {
                    return other.key == window.key
                        && get.lands_in().is_some_and(|at| meets(&Datatype::run(at..at + 1)));
                };
                match &pending.wide[wide].landing {
                    Landing::Section(key, section) => *key == window.key && meets(section),
                    _ => false,
                }
            })
        });
        lands
            || (0..self.world.size).filter(|&origin| Some(origin) != except).any(|origin| {
                let single = |head: u64| {
                    let (head, at) = (Head(head), Head(head).at() as i64);
                    head.code() != DATATYPE && read.low() <= at && at < read.high()
                };
                let size = window.element.size as usize;
                let some = |records: &[Record]| {
                    left.set(left.get().saturating_sub(records.len() / 8));
                    touched(records, size)
                        .any(|run| read.low() < run.end as i64 && (run.start as i64) < read.high())
                };
                let shared =
                    if origin == me { Some(&window.region) } else { window.peers[origin].region.as_ref() };
                let Some(region) = shared else {
                    let mut hit = false;
                    remote::each_arrived(window, origin, |arrived| {
                        hit = hit
                            || match arrived {
                                Came::Described(description) => {
                                    left.set(left.get().saturating_sub(description.heads.len() / 8));
                                    description.wide.iter().any(|wide| meets(&wide.remote))
                                        || description.heads.iter().any(|&head| single(head))
                                }
                                Came::Records(records) => some(records),
                                Came::Early => true,
                            };
                    });
                    return hit;
                };
                // SAFETY: the origin filled this set before its notification. The origin touches
                // the set again only after it has read this rank's next notification.
                let outbox = unsafe { &*region.outbox(window.filling.set.get(), me) };
                outbox.wide.iter().any(|wide| meets(&wide.remote)) || some(&outbox.records)
            })
    }

    /// Notes the operations in notifications of ranks whose memory is reached and whose values are
    /// not shared.
    pub(super) fn note_riders(&mut self) {
        let site = self.call.site;
        for (place, window) in self.windows.iter().enumerate() {
            let noted = &mut window.fence.remembered.borrow_mut().riders;
            noted.clear();
            for origin in (0..self.world.size).filter(|&origin| origin != self.world.rank) {
                if !self.endpoint.shares(origin)
                    && self.endpoint.reaches(origin)
                    && let Some(notification) = self.notification(origin)
                    && are_riding(notification.address)
                {
                    // SAFETY: the notification belongs to this exchange. Its records are in the
                    // notification, or at the address that the notification contains.
                    let records = unsafe { riders(notification, place) };
                    let elements = touched(records, window.element.size as usize).flatten();
                    let put = |at: usize| Record { head: Head::new(at as u64, PUT, site).0, value: 0 };
                    noted.extend(elements.map(|at| (origin, put(at))));
                }
            }
        }
    }

    /// Copies the sections that others exposed to this rank, in the order in which they will be
    /// applied.
    ///
    /// # Errors
    /// There is no memory for the copy. Then the world ends, since others may have finished with
    /// this fence already.
    pub(super) fn copy_exposed(&mut self) -> Result<Vec<u8>> {
        let (mut staged, mut bytes) = (self.world.fence.copied.take(), 0usize);
        staged.clear();
        self.each_exposed(|_, _, section, size| {
            bytes = bytes.saturating_add(section.size().saturating_mul(size));
        });
        if staged.try_reserve_exact(bytes).is_err() {
            let rank = self.world.rank;
            let what = format!(
                "rank {rank} has to copy {bytes} bytes that others put from sections before it writes what others read, and there is no memory for the copy (each rank may put {} times the window's size this way, and 16 MiB at least)",
                remote::MOST_TIMES
            );
            self.world.calls.sites.end(ErrorClass::NoMem);
            self.world.die_of(self.endpoint, Cause { rank, what: what.clone() });
            let error = self.call.error(self.world, ErrorClass::NoMem, what);
            return Err(error.ending_world().leaving(State::Mixed));
        }
        self.each_exposed(|number, origin, section, size| {
            let at = staged.len();
            staged.resize(at + section.size() * size, 0);
            // SAFETY: the origin has checked the section, and writes its memory only when this rank
            // has settled. The copy has room for the section's elements.
            unsafe {
                kernel::pack(
                    exposed_by(self.windows, number, origin),
                    section,
                    size,
                    staged[at..].as_mut_ptr(),
                )
            };
        });
        Ok(staged)
    }

    /// Calls `act` with every section that is exposed to this rank, in the order in which the
    /// sections will be applied. The arguments are the number of the section's window, the owner of
    /// the section, the section, and the size of its elements.
    fn each_exposed(&self, mut act: impl FnMut(u32, usize, &Datatype, usize)) {
        let me = self.world.rank;
        for window in self.windows {
            let size = window.element.size as usize;
            for origin in (0..self.world.size).filter(|&origin| origin != me) {
                let mut each = |wide: &[DatatypeOperation]| {
                    for DatatypeOperation { source, .. } in wide {
                        if let DatatypeSource::Exposed(number, section) = source {
                            act(*number, origin, section, size);
                        }
                    }
                };
                let Some(region) = &window.peers[origin].region else {
                    remote::each_arrived(window, origin, |arrived| {
                        if let Came::Described(description) = arrived {
                            each(&description.wide);
                        }
                    });
                    continue;
                };
                // SAFETY: the other rank filled this set before its notification, which this rank
                // has read.
                let outbox = unsafe { &*region.outbox(window.filling.set.get(), me) };
                if outbox.sections > 0 {
                    each(&outbox.wide);
                }
            }
        }
    }

    /// Begins to read memory of others, if there is anything to read.
    ///
    /// # Errors
    /// The world has ended: no rank waits for readers any more.
    pub(super) fn touch(&mut self, reads: Reads) -> Result<()> {
        if !reads.reads || self.world.life.touching(self.endpoint, true).unwrap_or(true) {
            return Ok(());
        }
        let rank = self.world.rank;
        let unsaid = || Lost { rank, how: Loss::Ended("no cause was reported".into()) };
        let lost = self.endpoint.lost(rank).unwrap_or_else(unsaid);
        Err(self.world.lost(&lost, self.call).leaving(State::Mixed))
    }

    /// Notifies others that this rank has finished reading, then waits until the readers of this
    /// rank's memory have finished. A reader that is lost does not read any more.
    pub(super) fn settle(&mut self, reads: Reads) -> Result<()> {
        if without(Wait::Leaving) {
            return Ok(());
        }
        let mut lost = None;
        if reads.reads {
            self.world.life.touching(self.endpoint, false);
            lost = if self.counted { self.tell_read() } else { self.endpoint.settle() }.err();
        }
        for other in (0..self.world.size).filter(|&other| reads.read && other != self.world.rank) {
            let asks = self.notification(other).is_some_and(|notification| notification.flags & READS != 0);
            if !asks && !self.exposes_to(other) {
                continue;
            }
            let awaited = Awaited::One("notes that it has read this rank's memory");
            let watch = || Watch::new(self.world, self.call, self.windows, other, awaited).of_all();
            let (world, counted) = (self.world, self.counted);
            let settled = wait(self.endpoint, watch, |endpoint| {
                if counted { take_read(world, endpoint, other) } else { endpoint.settled(other) }
                    .map(|settled| settled.then_some(()))
            });
            if let Err(gone) = settled {
                // The world has ended, but the other rank may still exist and go on reading. Either
                // the other rank has seen that the world ended, or this rank sees that the other
                // rank still touches memory.
                untouched_by(self.world, self.endpoint, self.windows, self.call, other);
                lost.get_or_insert(gone);
            }
        }
        match lost {
            Some(lost) => {
                let error = self.world.lost(&lost, self.call);
                Err(if reads.first { error } else { error.leaving(State::Mixed) })
            }
            None => Ok(()),
        }
    }

    /// Returns whether this rank exposes a section to `other`.
    pub(super) fn exposes_to(&self, other: usize) -> bool {
        self.windows.iter().any(|window| {
            // SAFETY: this is this rank's own set, which was filled before its notification.
            unsafe { &*window.region.outbox(window.filling.set.get(), other) }.sections > 0
        })
    }
}

impl Fence<'_> {
    /// After a census, notifies each rank whose memory this rank has read that the reads are over.
    fn tell_read(&mut self) -> Result<(), Lost> {
        for to in (0..self.world.size).filter(|&to| to != self.world.rank) {
            let asked = self.endpoint.draft(to).flags & READS != 0;
            let exposed = self.notification(to).is_some_and(|theirs| theirs.flags & EXPOSES != 0);
            if self.endpoint.reaches(to) && (asked || exposed) {
                post(self.world, self.endpoint, to, self.world.stamped(kind::SETTLED), &mut Vec::new())?;
            }
        }
        Ok(())
    }
}

/// Returns whether `from` has notified this rank, after a census, that `from` has finished reading
/// this rank's memory.
fn take_read(world: &WorldCore, endpoint: &mut Endpoint, from: usize) -> Result<bool, Lost> {
    let Some(frame) = world.poll(endpoint, from)? else { return Ok(false) };
    let good = frame.header == world.stamped(kind::SETTLED) && frame.len == 0;
    endpoint.release(from, Port::FENCE);
    if good { Ok(true) } else { Err(world.refuse(endpoint, from, "it did not say that it has read")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::fence::prepare;
    use crate::protocol::call::{hash, notification_word};
    use crate::protocol::stall::LEAVING;
    use crate::protocol::state::stalls::Stall;
    use crate::state::call::Call;
    use crate::state::transport_kind::TransportKind;
    use std::panic::Location;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Barrier, Mutex};
    use std::time::Duration;

    #[test]
    fn a_wait_for_one_that_still_reads_is_reported_with_who_reads() {
        let (tell, told) = channel();
        let (tell, told) = (Arc::new(Mutex::new(tell)), Mutex::new(told));
        // The channel has no receiver after the other rank has seen the report.
        let say = move |stall: Option<&Stall>| drop(tell.lock().expect("no panic").send(stall.cloned()));
        let over = say.clone();
        let world = ranks(2).stall(Some(Duration::ZERO)).on_stall(move |stall| say(Some(stall)));
        let said: Vec<Option<Stall>> = world
            .collect(|world| {
                let (core, call) = (world.core(), Call::fence(Location::caller()));
                let mut u = world.window::<u8>(2)?;
                if world.rank() == 0 {
                    let fenced = u.fence();
                    over(None);
                    let error = fenced.expect_err("the world ends");
                    assert!(error.to_string().contains("enough"), "{error}");
                    return Ok(None);
                }
                // This rank announces that it reads the other's memory, ends the world, and
                // continues to read.
                u.get(0..1).from(0, 1)?;
                let windows = [&**u.core()];
                core.calls.begin();
                windows[0].count();
                let listed = prepare(core, &windows, &call)?;
                let endpoint = &mut *core.endpoint.borrow_mut();
                let hash = hash(core, &call, &windows);
                let word = core.calls.next_word(hash as u32);
                let mut fence = Fence { listed, ..Fence::new(core, &windows, &call, endpoint) };
                fence.publish(word, notification_word(word, hash), false)?;
                while endpoint.read(0).is_ok_and(|notification| notification.is_none()) {
                    std::thread::yield_now();
                }
                assert!(endpoint.touching(true));
                endpoint.end(Cause { rank: 1, what: "enough".into() });
                let told = told.lock().expect("no panic");
                let reads = |stall: &Option<Stall>| stall.as_ref().is_none_or(|stall| stall.what == LEAVING);
                let stall = told.iter().find(reads).flatten();
                endpoint.touching(false);
                windows[0].discard();
                Ok(stall)
            })
            .expect("no panic");
        let stall = said[1].as_ref().expect("it was said");
        assert_eq!((stall.rank, stall.awaited, stall.came, stall.expected), (0, 1, 0, 1), "{stall}");
        assert_eq!((stall.file, stall.number), (file!(), 2), "{stall}");
    }
    /// Rank 2 leaves without a notification for rank 0. Rank 0 cannot exclude that rank 1 has all
    /// notifications and reads the memory of rank 0.
    #[test]
    fn a_rank_that_misses_a_notification_returns_when_nobody_reads_its_memory() {
        for transport in [TransportKind::Local, TransportKind::ShmThreads] {
            let (tell, told) = channel();
            let (tell, told) = (Arc::new(Mutex::new(tell)), Mutex::new(told));
            let say = move |stall: Option<&Stall>| drop(tell.lock().expect("no panic").send(stall.cloned()));
            let over = say.clone();
            let world = ranks(3).transport(transport.clone()).stall(Some(Duration::ZERO));
            let (said, reads) = (Mutex::new(None), Barrier::new(2));
            // Two ranks fail, so the run fails.
            let _: Result<()> = world.on_stall(move |stall| say(Some(stall))).run(|world| {
                let core = world.core();
                let mut u = world.window::<u8>(2)?;
                match world.rank() {
                    0 => {
                        let fenced = u.fence();
                        over(None);
                        let lost = fenced.as_ref().expect_err("a notification is missing").to_string();
                        assert!(lost.contains("rank 2"), "{lost}");
                        fenced
                    }
                    1 => {
                        let endpoint = &mut *core.endpoint.borrow_mut();
                        assert!(endpoint.touching(true));
                        endpoint.publish(0).expect("the world goes on");
                        reads.wait();
                        let told = told.lock().expect("no panic");
                        // Either a report that rank 0 waits for rank 1 to stop reading its memory,
                        // or the news that rank 0 has returned.
                        let leaves =
                            |stall: &Option<Stall>| stall.as_ref().is_none_or(|stall| stall.what == LEAVING);
                        *said.lock().expect("no panic") = told.iter().find(leaves).flatten();
                        endpoint.touching(false);
                        Ok(())
                    }
                    _ => {
                        reads.wait(); // a world that has ended lets nobody begin to read
                        Err(fencepost_planner::Error::new(ErrorClass::Other, "gone"))
                    }
                }
            });
            let stall = said.into_inner().expect("no panic");
            let stall = stall
                .unwrap_or_else(|| panic!("{transport:?}: rank 0 returned while rank 1 read its memory"));
            assert_eq!((stall.rank, stall.awaited), (0, 1), "{transport:?}: {stall}");
        }
    }
}
