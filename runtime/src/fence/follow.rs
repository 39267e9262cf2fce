//! Long elements that are sent after the census.
//!
//! Between ranks that do not reach each other's memory, elements are sent in frames. If long
//! elements were sent before the notification, their target would have to keep them until it knows
//! that all ranks agree, and then copy them to its window. Therefore only a description of these
//! elements travels with the census, and announces how many bytes follow. When the census is
//! complete and all agree, the target pre-posts the place of the elements in its window as a
//! receive buffer, and the transport reads the elements into this buffer. This costs one more
//! latency and saves a copy, so only elements above a certain length are sent in this way
//! ([`follows_census`](fencepost_planner::adaptive::follows_census)).
//!
//! The target pre-posts a place only if the operation is a put to one run of elements, and if
//! nothing else in this fence reads or writes these elements. Otherwise the target keeps the
//! elements and applies them in order, like elements that came before the census.
//!
//! - W1: elements are sent, and places pre-posted, after the census. By then all ranks have entered
//!   the fence and agree. If a rank has failed or a word differs, every rank sees that: then no
//!   elements are sent, and none are awaited. Elements that arrive before the target has completed
//!   its census are kept in memory of the transport.
//! - W2: the elements of M in a pre-posted place are not read any more. No get reads them, and they
//!   are in no section that this rank has exposed or still has to send. This rank sends all its
//!   elements before it applies anything.
//! - W3: the target leaves when all announced elements have arrived. A post copies the bytes that
//!   it does not send at once. So when a rank leaves, its program may use the sources again.
//! - W4: for the same reason, a rank that has left may fill its outboxes again. A receive buffer is
//!   filled or cancelled before the fence ends.
//! - W5: frames of one rank arrive in order. So all elements of a fence come before the frames of
//!   the next exchange of the same sender. The header of the elements has the word of their
//!   exchange.
//! - W6: the target awaits each announced frame with its number of bytes, and refuses any other
//!   frame in its place. Nothing stays in the channel.
//!
//! If a rank is lost in between, the world ends. Windows into which elements were being read are
//! then in a mixed state.

use crate::collect::outbox::{DATATYPE, DatatypeSource, Head, PUT};
use crate::fence::notifications::Notifications;
use crate::fence::reads::COMPARISONS;
use crate::fence::state::remembered::{Described, Elements};
use crate::fence::{Fence, remote};
use crate::kernel::waits::{Wait, without};
use crate::protocol::exchange::wait;
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, Watch};
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::{Result, State};
use fencepost_transport::{Channels, Payload, Port};
use std::cell::Cell;
use std::ptr::slice_from_raw_parts_mut;

/// Elements that a rank has announced to this rank.
struct Announced<'w> {
    window: &'w WindowCore,
    from: usize,
    /// The number of bytes.
    len: usize,
    /// The pre-posted place in the window, if there is one.
    place: Option<*mut u8>,
}

impl<'a> Fence<'a> {
    /// Sends the elements that this rank has announced, and answers the gets of ranks that do not
    /// reach its memory. Then receives the elements that others have announced. Called when the
    /// census is complete, all agree, and all frames that came before the census have been read.
    ///
    /// A rank sends its elements and its answers before it waits. So if a note of the census was
    /// altered, its receiver finds another frame in place of the note.
    ///
    /// # Errors
    /// The world ends if a rank was lost, or sent a frame that is not the awaited one.
    pub(super) fn exchange_following(&mut self, word: u64, all: &Notifications) -> Result<()> {
        if self.world.reach.is_all {
            return Ok(());
        }
        let follows = |window: &&WindowCore| {
            let remembered = window.fence.remembered.borrow();
            !remembered.owed.is_empty() || !remembered.awaited.is_empty()
        };
        if !self.windows.iter().any(follows) {
            return self.answer(word);
        }
        let announced = self.announced(all);
        self.prepost(word, &announced);
        let exchanged = self
            .send_owed(word)
            .and_then(|()| self.answer(word))
            .and_then(|()| self.receive_announced(word, &announced));
        self.endpoint.flush();
        exchanged.map_err(|error| {
            let placed = announced.iter().filter(|elements| elements.place.is_some());
            placed.clone().for_each(|elements| self.endpoint.cancel(elements.from, Port::FENCE));
            if placed.count() > 0 { error.leaving(State::Mixed) } else { error }
        })
    }

    /// Returns the elements that others have announced to this rank, in the order of windows.
    fn announced(&mut self, all: &Notifications) -> Vec<Announced<'a>> {
        if !self.world.reach.shares_all {
            self.note_riders();
        }
        let left = Cell::new(COMPARISONS);
        let mut announced = Vec::new();
        for &window in self.windows {
            let awaited = std::mem::take(&mut window.fence.remembered.borrow_mut().awaited);
            for &from in &awaited {
                let remembered = window.fence.remembered.borrow();
                let elements = remembered.arrived[from].last().and_then(|arrived| arrived.lent.as_ref());
                let len = elements.map_or(0, Elements::len);
                let place = self.place(window, from, all, &left);
                announced.push(Announced { window, from, len, place });
            }
            window.fence.remembered.borrow_mut().awaited = awaited;
        }
        announced
    }

    /// Returns the address in the window where this rank may pre-post the announced elements of
    /// `from`. Returns `None` if something else in this fence reads or writes at that place.
    fn place(
        &self,
        window: &WindowCore,
        from: usize,
        all: &Notifications,
        left: &Cell<usize>,
    ) -> Option<*mut u8> {
        let remembered = window.fence.remembered.borrow();
        let [arrived] = &remembered.arrived[from][..] else { return None };
        let Described::Slot(slot) = arrived.described else { return None };
        let description = &remembered.got[from].slots[slot].1;
        let ([head], [put]) = (&description.heads[..], &description.wide[..]) else { return None };
        let is_whole = matches!(put.source, DatatypeSource::Bytes(0)) && description.gets.is_empty();
        if Head(*head).code() != DATATYPE || put.code != PUT || !is_whole || all.unlisted {
            return None;
        }
        let first = put.remote.as_run()?.start as usize * window.element.size as usize;
        let place = window.region.base().wrapping_add(first);
        let len = put.remote.size() * window.element.size as usize;
        let is_used = self.endpoint.lends_to(from)
            || self.sends_from(place, len)
            || self.is_read(window, &put.remote, left)
            || self.written(window, &put.remote, Some(from), left);
        (!is_used || without(Wait::ReadsFirst)).then_some(place)
    }

    /// Returns whether this rank still has to send some of these `len` bytes.
    fn sends_from(&self, first: *const u8, len: usize) -> bool {
        self.windows.iter().any(|window| {
            window.fence.remembered.borrow().owed.iter().any(|&to| {
                // SAFETY: only this rank touches the set of outboxes that it is filling, and this
                // rank has written nothing in this fence so far.
                let sent = unsafe { (*window.region.outbox(window.filling.set.get(), to)).elements() };
                sent.as_ptr() < first.wrapping_add(len) && first < sent.as_ptr().wrapping_add(sent.len())
            })
        })
    }

    /// Returns whether a rank reads some of these elements of `window` in this fence.
    fn is_read(&self, window: &WindowCore, place: &Datatype, left: &Cell<usize>) -> bool {
        let me = self.world.rank;
        let by_itself = |window: &WindowCore| window.filling.pending.borrow().asks(me);
        self.windows.iter().any(|window| by_itself(window))
            || self.is_any_read(|other, read| {
                left.set(left.get().saturating_sub(1));
                left.get() == 0 || other.key == window.key && read.overlaps(place)
            })
    }

    /// Pre-posts the places of announced elements.
    fn prepost(&mut self, word: u64, announced: &[Announced<'_>]) {
        for (i, &Announced { window, from, len, place }) in announced.iter().enumerate() {
            let Some(place) = place else { continue };
            let ahead = announced[..i].iter().filter(|elements| elements.from == from).count() as u64;
            let head = header(word, kind::FOLLOWING, window.key.window);
            // SAFETY: the operation was checked when it came, so the place is in this rank's part,
            // which is fenced. Nobody reads or writes there in this fence. The frame is released,
            // or the buffer cancelled, before the fence ends.
            unsafe {
                self.endpoint.prepost(from, Port::FENCE, ahead, head, slice_from_raw_parts_mut(place, len));
            }
        }
    }

    /// Sends the elements that this rank has announced. Begins with the next higher rank, so that
    /// not all ranks send to the same rank first.
    fn send_owed(&mut self, word: u64) -> Result<()> {
        let (me, size) = (self.world.rank, self.world.size);
        for &window in self.windows {
            let mut owed = std::mem::take(&mut window.fence.remembered.borrow_mut().owed);
            owed.sort_by_key(|to| (to + size - me) % size);
            let head = header(word, kind::FOLLOWING, window.key.window);
            for &to in &owed {
                // SAFETY: only this rank touches the set of outboxes that it is filling. No rank
                // writes the section before this rank has sent everything: a place that contains a
                // part of the section was not pre-posted. The transport copies what it does not
                // send at once.
                unsafe {
                    let outbox = &*window.region.outbox(window.filling.set.get(), to);
                    let elements = outbox.elements();
                    remote::post(self.world, self.endpoint, to, head, elements, self.call)?;
                    self.world.reports.count_sent(elements.len(), 0);
                }
            }
            owed.clear();
            window.fence.remembered.borrow_mut().owed = owed;
        }
        Ok(())
    }

    /// Receives the elements that others have announced.
    fn receive_announced(&mut self, word: u64, announced: &[Announced<'_>]) -> Result<()> {
        for &Announced { window, from, len, place } in announced {
            let world = self.world;
            let what = Awaited::One("elements that follow the census");
            let watch = || Watch::new(world, self.call, self.windows, from, what).of_all();
            let frame = wait(self.endpoint, watch, |endpoint| world.poll(endpoint, from))
                .map_err(|lost| world.lost(&lost, self.call))?;
            let good = frame.header == header(word, kind::FOLLOWING, window.key.window) && frame.len == len;
            let elements = if place.is_some_and(|place| std::ptr::eq(place, frame.payload)) {
                self.endpoint.release(from, Port::FENCE);
                Elements::InWindow
            } else if let Some(payload) = self.endpoint.take(from, Port::FENCE) {
                Elements::Payload(payload)
            } else {
                // SAFETY: the frame is not released yet.
                let payload = Payload::copy_of(unsafe { frame.bytes() });
                self.endpoint.release(from, Port::FENCE);
                Elements::Payload(payload)
            };
            let remembered = &mut *window.fence.remembered.borrow_mut();
            match remembered.arrived[from].last_mut() {
                Some(arrived) if good => arrived.lent = Some(elements),
                _ => return Err(world.corrupt(self.endpoint, from, self.call)),
            }
        }
        for window in self.windows {
            window.fence.remembered.borrow_mut().awaited.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::fence::prepare;
    use crate::kernel::copies::take_copied;
    use crate::kernel::waits::take_away;
    use crate::protocol::call::hash;
    use crate::state::call::Call;
    use crate::state::transport_kind::TransportKind;
    use crate::state::window::Window;
    use crate::state::world::World;
    use fencepost_planner::element::Op;
    use fencepost_planner::{Error, ErrorClass};
    use fencepost_transport::SimConfig;
    use std::ops::Range;
    use std::panic::Location;

    /// A number of elements that is large enough for the elements to follow the census.
    const LONG: usize = 1 << 15;

    fn sent(rank: usize, at: usize) -> u64 {
        (rank as u64 + 1) << 32 | at as u64
    }

    /// Runs an epoch of two ranks over TCP in which each rank puts elements `from` of its part to
    /// elements `to` of the other rank's part, and calls `also`. Returns the parts, and how many
    /// bytes both ranks copied: between calls and windows, and in the transport.
    fn exchanged(
        len: usize,
        (from, to): (Range<usize>, Range<usize>),
        also: impl Fn(&World, &mut Window<u64>) -> Result<()> + Sync,
    ) -> (Vec<Vec<u64>>, [u64; 2]) {
        let parts = ranks(2).transport(TransportKind::TcpThreads).collect(|world| {
            let (me, other) = (world.rank(), 1 - world.rank());
            let mut u = world.window::<u64>(len)?;
            u.fence()?;
            u.iter_mut().enumerate().for_each(|(at, element)| *element = sent(me, at));
            let before = world.meter().copied;
            take_copied();
            u.put(u.section(from.clone())).to(other, to.clone())?;
            also(world, &mut u)?;
            u.fence()?;
            let copied = [take_copied() as u64, world.meter().copied - before];
            take_away(None);
            Ok((u.to_vec(), copied))
        });
        let parts = parts.expect("no rank fails");
        let copied = [0, 1].map(|i| parts.iter().map(|(_, copied)| copied[i]).sum());
        (parts.into_iter().map(|(part, _)| part).collect(), copied)
    }

    fn nothing(_: &World, _: &mut Window<u64>) -> Result<()> {
        Ok(())
    }

    /// A long section is copied at most once. Its sender copies the bytes that the socket does not
    /// take at once. Its receiver copies the few bytes that come before the receive buffer is
    /// posted.
    #[test]
    fn a_long_section_is_read_to_its_place() {
        const LITTLE: u64 = 64 << 10;
        for len in [LONG, 1 << 18, 1 << 20] {
            let (parts, copied) = exchanged(2 * len, (0..len, len..2 * len), nothing);
            for (me, part) in parts.iter().enumerate() {
                let right = |at: usize| if at < len { sent(me, at) } else { sent(1 - me, at - len) };
                assert!(part.iter().enumerate().all(|(at, element)| *element == right(at)), "{len}");
            }
            let sent = 2 * 8 * len as u64;
            assert!(copied[0] == 0 && copied[1] <= sent + LITTLE, "{copied:?} of {sent} bytes");
        }
    }

    /// Elements that follow the census are applied from a copy if something else reads or writes
    /// their place: the section that is sent to the other rank, a get of either rank, or another
    /// operation.
    #[test]
    fn elements_whose_place_is_used_otherwise_are_applied_in_order() {
        let (low, high) = (0..LONG, LONG..2 * LONG);
        let check = |name: &str, (from, to): (Range<usize>, Range<usize>), also: Also, right: Right| {
            let (parts, copied) = exchanged(2 * LONG, (from.clone(), to.clone()), also);
            for (me, part) in parts.iter().enumerate() {
                let put = |at: usize| match to.contains(&at) {
                    true => sent(1 - me, at - to.start + from.start),
                    false => sent(me, at),
                };
                for (at, element) in part.iter().enumerate() {
                    let right = right(me, at).unwrap_or_else(|| put(at));
                    assert_eq!(*element, right, "{name}, rank {me}, element {at}");
                }
            }
            assert!(copied[0] >= 2 * 8 * LONG as u64, "{name}: nothing was copied");
        };
        type Also = fn(&World, &mut Window<u64>) -> Result<()>;
        type Right = fn(usize, usize) -> Option<u64>;
        let plain: Right = |_, _| None;
        check("the place is sent", (low.clone(), low.clone()), nothing, plain);
        check("the place is sent in part", (low.clone(), LONG - 1..2 * LONG - 1), nothing, plain);
        let get: Also = |world, u| u.get(0..1).from(1 - world.rank(), LONG..LONG + 1);
        let got: Right = |me, at| (at == 0).then(|| sent(1 - me, LONG));
        check("a get of the other rank", (low.clone(), high.clone()), get, got);
        let get: Also = |world, u| u.get(0..1).from(world.rank(), LONG..LONG + 1);
        let got: Right = |me, at| (at == 0).then(|| sent(me, LONG));
        check("a get of the rank itself", (low.clone(), high.clone()), get, got);
        let get: Also = |world, u| u.get(LONG..LONG + 2).from(1 - world.rank(), 0..2);
        // Gets land before puts are applied.
        check("a get that lands there", (low.clone(), high.clone()), get, plain);
        let put: Also = |world, u| u.put([7]).to(world.rank(), 2 * LONG - 1);
        let put_right: Right = |me, at| (me == 1 && at == 2 * LONG - 1).then_some(7);
        check("a put of the rank itself", (low.clone(), high.clone()), put, put_right);
        let sum: Also = |world, u| u.accumulate([7], Op::Sum).to(1 - world.rank(), LONG);
        let summed: Right = |me, at| (at == LONG).then(|| sent(1 - me, 0) + 7);
        check("an operation of the same rank", (low, high), sum, summed);
    }

    /// Rank 0 is a call ahead. So it describes its put to an exchange that fails, and once more.
    #[test]
    fn elements_are_sent_once_if_they_are_described_again() {
        let parts = ranks(2).transport(TransportKind::TcpThreads).collect(|world| {
            let mut u = world.window::<u64>(LONG)?;
            if world.rank() == 0 {
                world.core().calls.begin();
                u.put(&vec![9; LONG]).to(1, 0..LONG)?;
            } else {
                let error = u.fence().expect_err("this rank is behind");
                assert!(!error.world_ended(), "{error}");
            }
            u.fence()?;
            assert!(world.rank() == 0 || u.iter().all(|element| *element == 9));
            u.put(&vec![8; LONG]).to(1 - world.rank(), 0..LONG)?;
            u.fence()?;
            Ok(u.to_vec())
        });
        assert!(parts.expect("the world goes on")[1].iter().all(|element| *element == 8));
    }

    /// Without W2, elements that a rank still has to send are overwritten by elements that it
    /// receives.
    #[test]
    fn a_place_that_is_still_sent_must_not_be_written() {
        let len = 1 << 19;
        let take: fn(&World, &mut Window<u64>) -> Result<()> = |_, _| {
            take_away(Some(Wait::ReadsFirst));
            Ok(())
        };
        let is_wrong = |_| {
            let (parts, _) = exchanged(len, (0..len, 0..len), take);
            let wrong = |(me, part): (usize, &Vec<u64>)| {
                part.iter().enumerate().any(|(at, element)| *element != sent(1 - me, at))
            };
            parts.iter().enumerate().any(wrong)
        };
        assert!((0..50).any(is_wrong), "the wait is not needed");
    }

    /// The mistake of a rank that does not send elements as it announced them.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Wrong {
        Lost,
        Early,
        Doubled,
        Cut,
        Long,
        Other,
    }

    /// Runs a fence in which rank 1 makes this mistake. Returns whether the error of rank 0 reports
    /// the end of the world, and the text of the error.
    fn sends_wrongly(transport: TransportKind, wrong: Wrong) -> (bool, String) {
        let said = std::sync::Mutex::new(None);
        // Rank 0 fails, and so does the run.
        let run: Result<()> = ranks(2).transport(transport).run(|world| {
            let (core, call) = (world.core(), Call::fence(Location::caller()));
            let mut u = world.window::<u64>(LONG)?;
            if world.rank() == 0 {
                let fenced = u.fence();
                let changed = u.iter().any(|element| *element != 0);
                let unchanged = fenced.as_ref().is_err_and(|error| error.state() == State::Unchanged);
                assert!(!(unchanged && changed), "{wrong:?}: {fenced:?}");
                let ended = fenced.and_then(|()| u.fence());
                *said.lock().expect("no panic") =
                    ended.as_ref().err().map(|error| (error.world_ended(), error.to_string()));
                return ended;
            }
            let elements = vec![9_u64; LONG];
            u.put(&elements).to(0, 0..LONG)?;
            let windows = [&**u.core()];
            core.calls.begin();
            windows[0].count();
            let listed = prepare(core, &windows, &call)?;
            let hash = hash(core, &call, &windows);
            let mut endpoint = core.endpoint.borrow_mut();
            let mut fence = Fence { listed, ..Fence::new(core, &windows, &call, &mut endpoint) };
            let word = core.calls.next_word(hash as u32);
            let head = header(word, kind::FOLLOWING, windows[0].key.window);
            let bytes: &[u8] = bytemuck::cast_slice(&elements);
            let more = [bytes, &[1]].concat();
            // SAFETY: the payload is copied.
            let post = |fence: &mut Fence<'_>, head, bytes: &[u8]| unsafe {
                remote::post(core, fence.endpoint, 0, head, bytes, &call)
            };
            if wrong == Wrong::Early {
                post(&mut fence, head, bytes)?;
            }
            let notifications = crate::protocol::call::notification_word(word, hash);
            let flags = fence.publish(word, notifications, false)?;
            fence.read_notifications(notifications, flags)?;
            match wrong {
                Wrong::Lost => return Err(Error::new(ErrorClass::Other, "it gave up")),
                Wrong::Early => {}
                Wrong::Doubled => [bytes; 2].iter().try_for_each(|bytes| post(&mut fence, head, bytes))?,
                Wrong::Cut => post(&mut fence, head, &bytes[8..])?,
                Wrong::Long => post(&mut fence, head, &more)?,
                Wrong::Other => post(&mut fence, header(word, kind::DATA, head.extra), bytes)?,
            }
            drop(endpoint);
            windows[0].discard();
            // Rank 0 ends the world.
            world.barrier()
        });
        assert!(run.is_err(), "{wrong:?}");
        said.into_inner().expect("no panic").unwrap_or_else(|| panic!("{wrong:?}: rank 0 saw no error"))
    }

    #[test]
    fn elements_that_are_lost_early_doubled_cut_or_others_end_the_world() {
        use Wrong::{Cut, Doubled, Early, Long, Lost, Other};
        for transport in [TransportKind::TcpThreads, TransportKind::Sim(SimConfig::default())] {
            for wrong in [Lost, Early, Doubled, Cut, Long, Other] {
                let (ended, text) = sends_wrongly(transport.clone(), wrong);
                assert!(ended && text.contains("rank 1"), "{transport:?}, {wrong:?}: {text}");
            }
        }
    }
}
