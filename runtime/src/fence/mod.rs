//! The fence of a dynamic epoch: one protocol for every transport, with three ways to find out
//! which ranks have entered it.
//!
//! Every rank has a notification for every other rank. The notification states that its sender is
//! in the fence (W1). It also contains the superstep and the windows of the fence, and how much the
//! sender has for the receiver. With a direct census each notification is sent. With a sparse or
//! reduced census ([`census`](crate::census)), a notification travels only if it contains more than
//! "my rank is in this fence". Such a notification travels through ranks in between, or as a note
//! ([`notes`](crate::census::notes)). A rank that receives no notification from another rank knows
//! that the other rank has nothing for it. Short frames of operations are
//! [piggybacked](crate::census::state::rides) on notifications. If two ranks reach each other's
//! memory, records are in the notification itself, or at an address that the notification contains.
//! If they also share values, the reader takes other operations from the sender's outbox. Between
//! other ranks, operations travel in frames before the notification, and the notification contains
//! the number of frames. Long elements of these operations [follow] the census. If conflicts are
//! checked, an exchange of the calls comes first ([`check`]). A fence that has only records to send
//! takes the short path of [`straight`], which has the same effect. These are the steps of each
//! rank:
//!
//! 1. Some sections that are sources were read before the notification was sent, so later writes do
//!    not change the values that were read from M (W2). The others are *exposed* for a rendezvous:
//!    their target reads them in place.
//! 2. When the census is complete and all ranks agree, gets read M. A get reads M directly if
//!    memory is reached; otherwise the target answers.
//! 3. If others read elements that are written on this rank, this rank stages all elements that it
//!    reads from others. Then it waits until the readers of its memory have finished (W2, W3).
//! 4. Gets land, in program order.
//! 5. Puts and accumulates are applied by origin rank, then program order, each rank to its own
//!    memory only (W3).
//! 6. If others read only elements that are not written on this rank, this rank waits for the
//!    readers now (W3).
//! 7. Outboxes and notifications exist twice and are used in turn. Before a rank fills a set again,
//!    it completes a census that each reader of the set entered after its last read (W4, W5).
//!
//! # With a census by messages
//!
//! A rank sends its message of round k after the messages of all earlier rounds have come. A rank
//! that leads its host sends its first message after it has received the messages of all other
//! ranks of the host. When the leader has completed the rounds, it sends them the result. So a rank
//! that completes the census knows, through a chain of messages, that every rank had entered. The
//! effect is the same as if each rank had notified every other rank directly. Ranks of one host
//! pass messages to each other through the memory of that host.
//!
//! - W1: no memory is touched, and no frame applied, before the census is complete and all words
//!   were equal ([`census`](crate::census) explains why all ranks find out if the words were not
//!   equal). Frames that come earlier are set aside.
//! - W2: sections are read, and frames posted or added to the census, before the first message.
//! - W3: a rank that has read another rank's memory sends that rank a frame when it has finished.
//!   The rank whose memory is read knows, from the notifications and from the sections that it
//!   exposed, which ranks it waits for. A reader may have entered the next census by then. Its
//!   frames arrive in order, so the frame about the reads comes before the frames of that census.
//! - W4: an outbox is filled again after the census of the next exchange. Its readers entered that
//!   census after they had finished with the outbox.
//! - W5: for the same reason, all ranks have entered the next exchange before any rank enters the
//!   one after that. A rank sends each other rank at most one message of a census. So a channel
//!   contains at most one message that belongs to a later exchange than the awaited message.
//! - W6: each census sends and awaits all its messages, even the empty ones, and leaves none in a
//!   channel.
//!
//! In a reduced census the rounds count the notes that a rank is to expect, and the rank also waits
//! for these notes:
//!
//! - W1: the same. A note is interpreted when the census is complete and all words were equal. The
//!   sender of a note had entered this exchange, because the note carries the number of the
//!   exchange.
//! - W2, W3, W4: the same, since nothing is read or applied before all notes are here. If one rank
//!   reads another's memory, one of the two ranks has sent the other a note.
//! - W5: notes are posted before the first message, and notes of the next exchange come after all
//!   frames of this exchange. A rank that looks for notes takes only frames of this exchange, and
//!   leaves later frames.
//! - W6: the sum of counts is the number of notes posted, so each note is awaited by its target,
//!   and none is left in a channel.
//!
//! # What goes wrong
//!
//! After the census is complete, a rank in a later step may still end the world. Then no rank
//! begins to touch memory of others. A rank whose memory is already being touched still waits until
//! that access is over. Collected operations are left unchanged, since others may read them.
//!
//! If a rank has failed or a word differs, every rank sees that. Then nothing is applied anywhere,
//! the ranks send each other descriptions of their calls, and the world goes on. (In a census by
//! messages, each rank then first notifies every other rank, and the rest is the same as in a
//! direct census. Notes are dropped with the frames before them.) All ranks also see if some ranks
//! are in different [calls](crate::state::calls) of the world. Ranks that are behind return an
//! error, and ranks that are ahead take the census again ([`apart`]).
//!
//! A rank that cannot complete the census ends the world, and returns when no rank touches its
//! memory. Other ranks may have completed the census and may be reading that memory, or they may
//! wait for this rank and not for the lost rank.

mod apart;
mod apply;
mod asserted;
mod checked;
mod disagree;
mod follow;
mod gets;
mod meet;
mod notifications;
mod reads;
mod refused;
pub(crate) mod remote;
mod rides;
mod sources;
pub(crate) mod state;
mod straight;

pub(crate) use crate::census::state::items::INLINE;
pub(crate) use apply::apply_to;
pub(crate) use asserted::fence_with;
pub(crate) use checked::ordered;
pub(crate) use meet::Told;

use crate::census::flags::{CHANGED, EXPOSES, FAILED, LISTED, READS, RUNS};
use crate::census::state::items::Items;
use crate::census::{Exchange, Give};
use crate::check;
use crate::collect::limits::count_more;
use crate::kernel::waits::{Wait, without};
use crate::protocol::call::{hash, notification_word};
use crate::protocol::exchange::wait;
use crate::protocol::explain::Went;
use crate::protocol::frames::kind;
use crate::protocol::stall::{Awaited, Watch};
use crate::protocol::unwind::AbortOnUnwind;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use disagree::{Disagreement, differing};
use fencepost_planner::census::Census;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::{Endpoint, Liveness, Lost, Notify, Topology};
use notifications::Notifications;
use reads::Reads;
use refused::{left_open, refuse_foreign};
use sources::prepare;
use std::ops::Range;
use std::panic::Location;

/// The mask for digests that are mixed into the words of notifications. The words are below 2^61.
const WORD: u64 = (1 << 60) - 1;

/// Skips a fence of these windows, because the fence orders no operation. Afterwards the program
/// can access the windows, as after any fence.
#[inline]
pub(crate) fn left_out(windows: &[&WindowCore], site: &'static Location<'static>) {
    windows.iter().for_each(|window| check::begins(window, site));
}

/// Ends the epoch of `windows`. With `failed`, this rank takes part only so that the others see the
/// failure, and nothing is applied.
#[inline]
pub(crate) fn fence(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    let began = world.begin_record(call);
    let result = fence_unrecorded(world, windows, call, failed);
    world.end_record(began);
    result
}

#[inline(always)]
fn fence_unrecorded(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    if check::is_checked(world, windows) {
        return checked::fence_checked(world, windows, call, failed);
    }
    if let Err(error) = check::send_times(world, call) {
        discard(windows);
        return Err(error);
    }
    fence_unchecked(world, windows, call, failed)
}

/// Does the work of [`fence`] without a check for conflicts. Called if conflicts are not checked,
/// or after a check that found no conflict.
#[inline(always)]
fn fence_unchecked(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
) -> Result<()> {
    let straight = match windows {
        _ if failed.is_some() => None,
        [] => straight::fence_of_none(world, call),
        [window] => straight::fence_of_one(world, window, call),
        several => straight::fence_of_several(world, several, call),
    };
    if let Some(result) = straight {
        return result;
    }
    fence_giving(world, windows, call, failed, &[])
}

/// Runs [`fence`] in a call that fences no window and gives bytes to others in a census.
pub(crate) fn fence_giving(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    failed: Option<Error>,
    gives: &[Give<'_>],
) -> Result<()> {
    if let Err(error) = world.admits(call) {
        if !error.world_ended() {
            windows.iter().for_each(|window| window.discard());
        }
        return Err(error);
    }
    if windows.iter().any(|window| window.key.world != world.id) {
        return refuse_foreign(world, windows, call, failed);
    }
    let failed = failed.or_else(|| left_open(world, windows, call));
    let inside = world.supersteps.is_any_running();
    let follows = inside && world.supersteps.follows();
    if follows && let Some((matched, entered)) = world.supersteps.matched(windows) {
        let call = world.supersteps.call(call);
        return match failed {
            Some(error) => {
                matched.abandon(&entered, &error);
                Err(error.ending_world())
            }
            None => matched.fence(world, windows, &entered, &call),
        };
    }
    if without(Wait::Composition) && !windows.iter().any(|window| window.is_pending()) {
        return Ok(());
    }
    windows.iter().for_each(|window| window.count());
    // Usually the call is used unchanged and not copied.
    let (named, ordered);
    let mut call = call;
    if inside && call.name.is_none() {
        named = world.supersteps.call(call);
        call = &named;
    }
    if !windows.is_empty() && world.choices.order.get() != Order::Canonical {
        ordered = world.ordered(call);
        call = &ordered;
    }
    let prepared = match failed {
        Some(error) => Err(error),
        None if follows => {
            world.supersteps.compare(world, windows, call).and_then(|()| prepare(world, windows, call))
        }
        None => prepare(world, windows, call),
    };
    let (listed, failed) = match prepared {
        Ok(listed) => (listed, None),
        Err(error) => (false, Some(error)),
    };
    let result = {
        let endpoint = &mut *world.endpoint.borrow_mut();
        Fence { listed, gives, ..Fence::new(world, windows, call, endpoint) }.run(failed)
    };
    if inside {
        world.supersteps.fenced(result.is_err());
    }
    if let Ok(reads) = &result {
        let Reads { reads, read, first } = *reads;
        world.note_fence(windows, call, &Went { reads, read, first, straight: listed && !first });
    }
    match result {
        Ok(_) => {
            windows.iter().for_each(|window| window.next_set(call.site));
            Ok(())
        }
        Err(error) => {
            discard(windows);
            Err(error)
        }
    }
}

/// Discards the operations that were collected for a fence that has failed on all ranks.
fn discard(windows: &[&WindowCore]) {
    windows.iter().for_each(|window| {
        window.discard();
        window.open();
    });
}

/// Takes part in the exchange of this call with an error, so that every rank sees the error.
/// Returns the error.
#[cold]
pub(crate) fn fail(world: &WorldCore, windows: &[&WindowCore], call: &Call, error: Error) -> Error {
    match fence(world, windows, call, Some(error)) {
        Err(error) => error,
        Ok(()) => {
            call.error(world, ErrorClass::Intern, "internal error: a fence that failed returned success")
        }
    }
}

/// Returns the bytes that this rank gives to `to` in frames. In a direct census these are all bytes
/// for `to`. In a reduced census these are only the bytes that are for no other rank. They are sent
/// as a note.
fn given<'g>(gives: &'g [Give<'g>], census: Census, to: usize) -> impl Iterator<Item = &'g [u8]> {
    let in_frames = move |give: &&Give<'_>| match census {
        Census::Direct => give.0.is_none_or(|target| target == to),
        Census::Sparse => false,
        Census::Reduced => give.0 == Some(to),
    };
    gives.iter().filter(in_frames).map(|give| give.1)
}

struct Fence<'a> {
    world: &'a WorldCore,
    windows: &'a [&'a WindowCore],
    call: &'a Call,
    endpoint: &'a mut Endpoint,
    /// The bytes that this rank gives to others, in a call that fences no window.
    gives: &'a [Give<'a>],
    /// The records in this rank's notifications, in a call that fences no window. All other ranks
    /// get the same records.
    told: Option<&'a Told>,
    /// The items that travel in the census of this exchange, if the exchange takes a census.
    items: Option<Items>,
    /// Whether the census has replaced the notifications, because it has shown that all ranks
    /// agree.
    counted: bool,
    /// Whether all gets of this rank are listed for their targets.
    listed: bool,
    /// Whether the gets of this rank read memory of others.
    asks: bool,
    /// Whether this rank exposes sections.
    exposes: bool,
}

impl<'a> Fence<'a> {
    fn new(
        world: &'a WorldCore,
        windows: &'a [&'a WindowCore],
        call: &'a Call,
        endpoint: &'a mut Endpoint,
    ) -> Self {
        Self {
            world,
            windows,
            call,
            endpoint,
            gives: &[],
            told: None,
            items: None,
            counted: false,
            listed: false,
            asks: false,
            exposes: false,
        }
    }
}

impl Fence<'_> {
    /// Runs the fence. Returns how this rank and other ranks read each other's memory.
    fn run(&mut self, failed: Option<Error>) -> Result<Reads> {
        let guard = AbortOnUnwind("a fence");
        let result = self.exchange(failed);
        guard.over();
        if result.is_ok() && self.world.checks.is_on() {
            self.world.checks.clock.met(self.world.calls.supersteps());
        }
        if let Some(items) = self.items.take() {
            self.world.census.items.replace(items);
        }
        result
    }

    fn exchange(&mut self, failed: Option<Error>) -> Result<Reads> {
        // The hash includes the prepared runs since the last agreement: on a mismatch, frames of
        // these runs may still be in the channels.
        let hash = hash(self.world, self.call, self.windows) ^ self.world.fence.ran.get() & WORD;
        let (word, all) = self.exchange_notifications(hash, failed.is_some())?;
        self.conclude(hash, failed, word, all)
    }

    /// Carries out the steps after the notifications, whose contents are `all`.
    #[inline(always)]
    fn conclude(
        &mut self,
        hash: u64,
        failed: Option<Error>,
        mut word: u64,
        mut all: Notifications,
    ) -> Result<Reads> {
        if all.disagreement != Disagreement::No {
            (word, all) = self.disagreed(hash, failed, (word, all))?;
        }
        self.world.fence.ran.set(0);
        let aside = self.items.as_mut().and_then(|items| {
            items.aside.order();
            items.aside.first()
        });
        if self.windows.is_empty() {
            // No rank has anything to send in this exchange.
            return aside.map_or(Ok(Reads::default()), |from| Err(self.exchange_of().forged(from)));
        }
        self.world.fence.described.set(all.flags & CHANGED != 0);
        self.world.fence.changed.set(self.world.reach.is_some || all.flags & CHANGED != 0);
        let gets = self.windows.iter().any(|window| !window.filling.pending.borrow().gets.is_empty());
        // The frames must arrive before this rank can decide which writes have to wait for readers.
        let everybody = aside.is_some() || !self.world.reach.is_all;
        let senders = if everybody { 0..self.world.size } else { all.senders.clone() };
        let received = if all.quiet() && aside.is_none() { Ok(()) } else { self.receive(word, senders) };
        let reads = self.reads(&all);
        if !gets && !reads.reads && !reads.read && self.world.reach.is_all {
            received?;
            self.apply(&all, None);
            return Ok(reads);
        }
        let staged = gets && (!self.listed || reads.first || without(Wait::Entry));
        let copied = received
            .and_then(|()| self.exchange_following(word, &all))
            .and_then(|()| self.touch(reads))
            .and_then(|()| self.take_in(word, staged, reads));
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                // Others may still read this rank's memory.
                let _: Result<()> = self.settle(reads);
                return Err(error);
            }
        };
        if reads.first {
            self.settle(reads)?;
        }
        if gets {
            self.land(staged);
        }
        self.apply(&all, copied.as_deref());
        if let Some(copied) = copied {
            self.world.fence.copied.set(copied);
        }
        if !reads.first {
            self.settle(reads)?;
        }
        Ok(reads)
    }

    /// Sends a notification to every rank, and waits for the notifications of all ranks. Returns
    /// the word of the exchange and the contents of all notifications.
    #[inline(always)]
    fn exchange_notifications(&mut self, hash: u64, failed: bool) -> Result<(u64, Notifications)> {
        let word = self.world.calls.next_word(hash as u32);
        let notifications = notification_word(word, hash);
        let census = self.world.census.take();
        let flags = self.publish(word, notifications, failed)?;
        if without(Wait::Entry) {
            self.stage(word)?;
        }
        if census != Census::Direct {
            if let Some(all) = self.census(notifications, flags)? {
                return Ok((word, all));
            }
            // All ranks know that something is wrong. Each rank notifies every other rank of its
            // call.
            self.endpoint.publish(notifications).map_err(|lost| self.quit(&lost))?;
        }
        Ok((word, self.read_notifications(notifications, flags)?))
    }

    /// Reads the elements that have to be read before anything is written. Returns a copy of the
    /// exposed sections if some of them have to be read first.
    fn take_in(&mut self, word: u64, staged: bool, reads: Reads) -> Result<Option<Vec<u8>>> {
        if staged && !without(Wait::Entry) {
            self.stage(word)?;
        }
        if reads.first { self.copy_exposed().map(Some) } else { Ok(None) }
    }

    /// Returns the [`Exchange`] that takes the census of this fence.
    fn exchange_of(&mut self) -> Exchange<'_> {
        Exchange { world: self.world, windows: self.windows, call: self.call, endpoint: self.endpoint }
    }

    /// Does the same as [`Exchange::quit`].
    #[cold]
    fn quit(&mut self, lost: &Lost) -> Error {
        self.exchange_of().quit(lost)
    }

    /// Takes the census. `word` is the word of this exchange's notifications, and `mine` are this
    /// rank's flags. Returns `None` if some rank has failed or is in another call; then every rank
    /// knows that.
    fn census(&mut self, word: u64, mine: u32) -> Result<Option<Notifications>> {
        let items = self.items.take().unwrap_or_else(|| self.world.census.items.take());
        let gives = self.gives;
        let (items, flags) = self.exchange_of().take_census(items, gives, (word, mine))?;
        let items = self.items.insert(items);
        let Some(flags) = flags else { return Ok(None) };
        let mut all = Notifications { flags: mine | flags & CHANGED, ..Notifications::default() };
        if !self.windows.is_empty() {
            for (from, notification) in items.notifications() {
                all.add(from, notification.flags, notification.count);
            }
        }
        self.counted = true;
        Ok(Some(all))
    }

    /// Sends frames and notifications. Returns this rank's flags.
    #[inline(always)]
    fn publish(&mut self, word: u64, notifications: u64, failed: bool) -> Result<u32> {
        let me = self.world.rank;
        let direct = self.world.census.taken.get() == Census::Direct;
        let mut flags = self.behind_it() | if failed { FAILED } else { 0 };
        if !direct {
            self.begin_rides();
        }
        let others = self.ranks_with_drafts(flags).filter(|&to| to != me);
        for to in others.clone() {
            if direct {
                self.give_in_frames(to)?;
            }
            if !failed && !self.endpoint.shares(to) && !self.in_notification(to) {
                flags |= self.send_frames(word, to)?;
            }
        }
        for to in others {
            self.draft(to, flags, failed);
        }
        let numbers = self.windows.iter().map(|window| window.key.window);
        self.world.calls.sites.enter(me, self.call.site, numbers);
        self.endpoint.announce(word);
        if direct {
            self.endpoint.publish(notifications).map_err(|lost| self.quit(&lost))?;
        }
        Ok(flags)
    }

    /// Sends the bytes that this rank gives to `to` in frames.
    #[inline(always)]
    fn give_in_frames(&mut self, to: usize) -> Result<()> {
        let (gives, census) = (self.gives, self.world.census.taken.get());
        for bytes in given(gives, census, to) {
            self.world
                .post_kept(self.endpoint, to, self.world.stamped(kind::SETUP), bytes.to_vec())
                .map_err(|lost| self.quit(&lost))?;
        }
        Ok(())
    }

    /// Sends, in frames, the operations that the windows have for `to`, and writes the number of
    /// frames into the notification for `to`. Returns the flag `CHANGED` if the frames differ from
    /// those of the last epoch that ended at this source line.
    #[inline(always)]
    fn send_frames(&mut self, word: u64, to: usize) -> Result<u32> {
        let (mut frames, mut posted, mut changed) = (0, 0, 0);
        for window in self.windows {
            let sent = remote::send(self.world, self.endpoint, window, to, word, self.listed, self.call)
                .map_err(|error| self.world.give_up(self.endpoint, error))?;
            (frames, posted) = (frames + sent.frames, posted + sent.posted);
            if sent.changed {
                changed = CHANGED;
            }
        }
        let given = given(self.gives, self.world.census.taken.get(), to).count();
        let notification = self.endpoint.draft(to);
        notification.count = frames;
        notification.address = given + posted as usize;
        Ok(changed)
    }

    /// Writes the notification for `to`: its flags, and its contents other than the number of
    /// frames.
    #[inline(always)]
    fn draft(&mut self, to: usize, mut flags: u32, failed: bool) {
        if !failed && self.endpoint.reaches(to) {
            if self.windows.iter().any(|window| window.filling.pending.borrow().asks(to)) {
                flags |= READS | if self.listed { LISTED } else { 0 };
                self.asks = true;
            }
            if self.exposes_to(to) {
                flags |= EXPOSES;
                self.exposes = true;
            }
        }
        let here = self.endpoint.shares(to) || self.in_notification(to);
        let given = given(self.gives, self.world.census.taken.get(), to).count();
        let notification = self.endpoint.draft(to);
        notification.flags = flags;
        if failed || here {
            notification.count = 0;
            notification.address = given;
        }
        if failed || !here {
            return;
        }
        for window in self.windows {
            // SAFETY: only this rank touches the set of outboxes that it is filling.
            let outbox = unsafe { &*window.region.outbox(window.filling.set.get(), to) };
            notification.count = count_more(notification.count, outbox.records.len());
            // One window with one or two plain records: the notification contains them.
            if self.windows.len() == 1 && outbox.records.len() <= 2 && outbox.wide.is_empty() {
                notification.inline[..outbox.records.len()].copy_from_slice(&outbox.records);
                notification.address = INLINE;
            }
        }
    }

    /// Waits for the notifications of all ranks.
    #[inline(always)]
    fn read_notifications(&mut self, word: u64, mine: u32) -> Result<Notifications> {
        let mut all = Notifications { flags: mine, ..Notifications::default() };
        if mine & FAILED != 0 {
            all.disagreement = Disagreement::Failed;
        }
        for from in (0..self.world.size).filter(|&from| from != self.world.rank) {
            if self.endpoint.reaches(from) {
                let _ = self.endpoint.await_briefly(from);
            }
            let watch =
                || Watch::new(self.world, self.call, self.windows, from, Awaited::Notifications).of_all();
            let (seen, flags, count) = wait(self.endpoint, watch, |endpoint| {
                let notification = endpoint
                    .read(from)?
                    .map(|notification| (notification.word, notification.flags, notification.count));
                if notification.is_none() && !self.world.reach.is_all && !endpoint.reaches(from) {
                    self.world.stage_waiting(endpoint, from)?;
                }
                Ok(if without(Wait::Skew) { notification.or(Some((word, 0, 0))) } else { notification })
            })
            .map_err(|lost| self.quit(&lost))?;
            if (flags ^ mine) >> RUNS != 0 && !without(Wait::Word) {
                all.disagreement = all.disagreement.max(differing(flags, mine));
            }
            all.add(from, flags, count);
            if seen != word && !without(Wait::Word) {
                all.disagreement = all.disagreement.max(Disagreement::Words);
            } else if flags & FAILED != 0 {
                all.disagreement = all.disagreement.max(Disagreement::Failed);
            }
        }
        Ok(all)
    }

    /// Receives the frames of these ranks that came before the notifications.
    fn receive(&mut self, word: u64, senders: Range<usize>) -> Result<()> {
        for from in senders.filter(|&from| from != self.world.rank) {
            let frames = !self.endpoint.shares(from) && !self.rides(from);
            let notification = if frames { self.notification(from) } else { None };
            let (count, flags) =
                notification.map_or((0, 0), |notification| (notification.count, notification.flags));
            let exposes = flags & EXPOSES != 0 && self.endpoint.reaches(from);
            // Each window has one frame, and one more if elements travel in a separate frame.
            if count as usize > 2 * self.windows.len() {
                return Err(self.world.corrupt(self.endpoint, from, self.call));
            }
            let frames = remote::Frames { world: self.world, windows: self.windows, from, word, exposes };
            for _ in self.take_ridden(&frames, count)?..count {
                if let Some(items) = &mut self.items
                    && let Some(taken) = items.aside.take(from, |frame| frames.take_in(self.endpoint, frame))
                {
                    taken.ok_or_else(|| self.world.corrupt(self.endpoint, from, self.call))?;
                    continue;
                }
                frames.receive(self.endpoint, self.call)?;
            }
            let lent =
                || self.windows.iter().any(|window| window.fence.remembered.borrow().has_elements(from));
            let more = self.items.as_ref().and_then(|items| items.aside.first()) == Some(from);
            if more || count > 0 && lent() {
                // The rank has sent more frames than it counted, or elements without operations.
                return Err(self.world.corrupt(self.endpoint, from, self.call));
            }
        }
        Ok(())
    }
}
