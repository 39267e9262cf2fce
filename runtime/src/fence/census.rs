//! The census of an exchange: what notifications say, in log2 p rounds of one message for each rank; or, where some ranks
//! share memory and not all, in rounds of their hosts, whose first ranks speak for the others, before and after which those
//! others tell their speaker and are told.
//!
//! A message has the sender's word and flags in its header, where the flags that [concern all](super::OF_ALL)
//! are those of every rank that the sender has heard of. A rank that receives another word than its own, or another number
//! of calls, tells so from then on. The way from any rank to any other goes through ranks each of which compares what it
//! receives with its own; so if two ranks of the world are in different calls, all ranks learn that some are, and then
//! exchange notifications, by which each learns which. A rank that has completed the census has heard of every rank, by
//! messages that were each sent after the one before had come: every rank was in the exchange.
//!
//! The digest of a message has the number of its census, which is the same on all ranks since they exchange in turn. So a message that
//! is of another census, because one was lost, doubled or early, is not taken for one of this.
//!
//! Frames of operations go to their targets directly, and are posted before the first message. So they may come sooner than
//! the census that says how many there are, and then be set aside; or later, and be waited for.

use crate::fence::riding::are_riding;
use crate::fence::spoken::{ALTERED, DIGEST, has_something, is_whole, payload, post, sign};
use crate::fence::{CHANGED, DIFFERS, EXPOSES, FAILED, FEW, Fence, Notifications, OF_ALL, READS, RUNS};
use crate::fence::{LISTED, notes};
use crate::kernel::waits::{Wait, without};
use crate::protocol::exchange::wait;
use crate::protocol::frames::{census_of, header, kind};
use crate::protocol::stall::{Awaited, SPOKEN, Watch, censuses_differ};
use crate::state::census::Items;
use crate::state::stands::Leg;
use crate::state::world::WorldCore;
use fencepost_planner::Result;
use fencepost_planner::census::{Census, halvings, rounds};
use fencepost_transport::{Channels, Endpoint, Header, Lost, Notification, Notify, Port, Topology};

impl Fence<'_> {
    /// Takes the census; `word` is what notifications of this exchange have, and `mine` are this rank's flags. `None` where
    /// some rank has failed or is in something else: every rank has learnt that then.
    pub(super) fn census(&mut self, word: u64, mine: u32) -> Result<Option<Notifications>> {
        let (world, me, size) = (self.world, self.world.rank, self.world.size);
        let mut items = self.items.take().unwrap_or_else(|| world.items.take());
        items.begin();
        for to in (0..size).filter(|&to| to != me) {
            let draft = self.endpoint.draft(to);
            if has_something(draft) {
                items.notify(me, to, draft);
            }
        }
        let few = items.len() < world.dense.0 as usize;
        self.gives.iter().for_each(|(to, bytes)| items.give(me, *to, bytes));
        let reduced = world.taken.get() == Census::Reduced;
        let kind = if reduced { kind::COUNTS } else { kind::CENSUS };
        if reduced {
            self.send_notes(&mut items)?;
        }
        let message = std::mem::take(&mut items.message);
        let flags = mine | if few { FEW } else { 0 };
        let mut talk = Talk { word, kind, mine, flags, items, reduced, stray: None, message };
        self.talk(&mut talk)?;
        if reduced && talk.flags & (FAILED | DIFFERS) == 0 {
            self.collect_notes(&mut talk.items)?;
        }
        let Talk { flags, mut items, stray, message, .. } = talk;
        items.message = message;
        items.end();
        if flags & (FAILED | DIFFERS) != 0 {
            self.items = Some(items);
            return Ok(None);
        }
        // It was not of this exchange, and all are in it.
        if let Some(from) = stray {
            return Err(self.forged(from));
        }
        let mut all = Notifications { flags: mine | flags & CHANGED, ..Notifications::default() };
        if !self.windows.is_empty() {
            if let Err(from) = items.read_notifications(me) {
                return Err(self.forged(from));
            }
            let mut said = items.notifications();
            if let Some((from, _)) = said.find(|(from, said)| !self.may_say(*from, said, mine)) {
                return Err(self.forged(from));
            }
            for (from, notification) in items.notifications() {
                all.add(from, notification.flags, notification.count);
            }
            if world.may_switch() {
                world.dense.1.set(flags & FEW == 0);
            }
        }
        self.items = Some(items);
        self.counted = true;
        Ok(Some(all))
    }

    /// All legs of a census: to the rank that speaks for this one, and from it; or in rounds of those that speak.
    fn talk(&mut self, talk: &mut Talk) -> Result<()> {
        let world = self.world;
        let halving = talk.reduced.then(|| world.halving());
        let stands = halving.map_or(&world.stands, |halving| &halving.stands);
        let speaker = stands.speaker();
        if speaker != world.rank {
            self.tell(talk, Leg::ToSpeaker, speaker)?;
            return self.hear(talk, Leg::FromSpeaker, speaker);
        }
        stands.spoken_for().try_for_each(|from| self.hear(talk, Leg::ToSpeaker, from))?;
        let speakers = stands.speakers();
        for round in 0..halving.map_or(rounds(speakers), |_| halvings(speakers)) {
            let (to, from) = match halving {
                Some(halving) => (halving.partner(round), halving.partner(round)),
                None => stands.partners(round),
            };
            self.tell(talk, Leg::Round(round), to)?;
            self.hear(talk, Leg::Round(round), from)?;
        }
        stands.spoken_for().try_for_each(|to| self.tell(talk, Leg::FromSpeaker, to))
    }

    /// Sends what there is for `to` on this leg.
    fn tell(&mut self, talk: &mut Talk, leg: Leg, to: usize) -> Result<()> {
        let Talk { word, kind, flags, items, message, reduced, .. } = talk;
        message.clear();
        message.resize(DIGEST, 0);
        let halving = reduced.then(|| self.world.halving());
        items.pass(&self.world.stands, halving, leg, to, message);
        sign(items.number(), *word, *flags, message);
        post(self.world, self.endpoint, to, header(*word, *kind, *flags), message)
            .map_err(|lost| self.quit(&lost))
    }

    /// Waits for what `from` sends on this leg, and takes it in.
    fn hear(&mut self, talk: &mut Talk, leg: Leg, from: usize) -> Result<()> {
        let Talk { word, kind: own, mine, flags, items, stray, reduced, .. } = talk;
        let world = self.world;
        let awaited = if leg == Leg::ToSpeaker { Awaited::Spoken } else { Awaited::One(SPOKEN) };
        let watch = || Watch::new(world, self.call, self.windows, from, awaited).of_all();
        let came = wait(self.endpoint, watch, |endpoint| {
            while let Some(frame) = world.poll(endpoint, from)? {
                let of_epoch = matches!(frame.header.kind, kind::DATA | kind::LOG | kind::ELEMENTS);
                if frame.header.kind == *own {
                    return Ok(Some(Some(frame)));
                } else if *reduced && frame.header.kind == kind::NOTE {
                    notes::take(world, endpoint, items, from, &frame)?;
                    continue;
                } else if let Some(theirs) = census_of(frame.header.kind) {
                    return Err(censuses_differ(world, endpoint, from, &theirs.to_string()));
                }
                // One that another kind was written on: what is awaited does not come any more.
                let odd = !(of_epoch && world.is_of_this_exchange(&frame.header));
                let lost = odd && is_whole(items, &frame);
                if of_epoch {
                    notes::set_aside(endpoint, items, from, frame);
                } else {
                    *stray = Some(from);
                    endpoint.release(from, Port::FENCE);
                }
                if lost {
                    return Err(world.refuse(endpoint, from, ALTERED));
                }
            }
            Ok(without(Wait::Skew).then_some(None))
        });
        let Some(frame) = came.map_err(|lost| self.quit(&lost))? else { return Ok(()) };
        let Header { word: theirs, extra, .. } = frame.header;
        let halving = reduced.then(|| world.halving());
        let good = is_whole(items, &frame)
            && items.take(&world.stands, halving, leg, from, &payload(&frame)[DIGEST..]).is_some();
        self.endpoint.release(from, Port::FENCE);
        if !good {
            return Err(self.forged(from));
        }
        *flags |= extra & OF_ALL;
        if (theirs != *word || (extra ^ *mine) >> RUNS != 0) && !without(Wait::Word) {
            *flags |= DIFFERS;
        }
        Ok(())
    }

    /// Whether `from` may say this in a census in which all ranks agree. It is of the same calls as this rank, whose flags are
    /// `mine`; only ranks that reach each other read each other's memory, and would be waited for; and only their records ride,
    /// which are applied as they are. What such ranks say has come through shared memory all the way.
    fn may_say(&self, from: usize, said: &Notification, mine: u32) -> bool {
        let between = READS | EXPOSES | LISTED;
        let same = (said.flags ^ mine) & !(between | CHANGED) == 0 || without(Wait::Word);
        let of_messages = said.flags & between == 0 && !are_riding(said.address);
        same && (of_messages || self.endpoint.reaches(from))
    }

    /// What `from` sent is not what a rank sends: the world ends.
    #[cold]
    pub(super) fn forged(&mut self, from: usize) -> fencepost_planner::Error {
        let lost = self.world.refuse(self.endpoint, from, ALTERED);
        self.quit(&lost)
    }

    /// After a census: tells those whose memory this rank has read that it has done with it.
    pub(super) fn tell_read(&mut self) -> Result<(), Lost> {
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

/// After a census: whether `from` has told that it has read what it reads of this rank's memory.
pub(super) fn take_read(world: &WorldCore, endpoint: &mut Endpoint, from: usize) -> Result<bool, Lost> {
    let Some(frame) = world.poll(endpoint, from)? else { return Ok(false) };
    let good = frame.header == world.stamped(kind::SETTLED) && frame.len == 0;
    endpoint.release(from, Port::FENCE);
    if good { Ok(true) } else { Err(world.refuse(endpoint, from, "it did not say that it has read")) }
}

/// One rank's census while it is taken.
struct Talk {
    word: u64,
    /// The kind of its messages.
    kind: u32,
    /// This rank's own flags, and with those that concern all of every rank that it has heard of.
    mine: u32,
    flags: u32,
    items: Items,
    /// Whether it adds up counts.
    reduced: bool,
    /// A rank that has sent a frame of no exchange.
    stray: Option<usize>,
    /// Room for what is sent.
    message: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::protocol::call::hash;
    use crate::state::call::Call;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::{Error, ErrorClass};
    use fencepost_transport::{Liveness, Pause, SimConfig};
    use std::sync::Mutex;

    /// Rank 1, of which rank 0 would speak, notifies the others and waits, as one whose census is direct.
    #[test]
    fn a_rank_that_does_not_tell_its_speaker_is_told() {
        let transport = TransportKind::MixedThreads(vec![0, 0, 1]);
        let told = Mutex::new(Vec::new());
        let world = ranks(3).transport(transport).census(Census::Sparse);
        let ended = world.run(|world| {
            let error = if world.rank() == 1 {
                let (core, call) = (world.core(), Call::named(0xba, "World::barrier"));
                core.calls.begin();
                let endpoint = &mut *core.endpoint.borrow_mut();
                endpoint.announce(core.next_word(hash(core, &call, &[]) as u32));
                endpoint.publish(5).expect("the world goes on");
                let watch = || Watch::new(core, &call, &[], 0, Awaited::Notifications);
                let lost = wait(endpoint, watch, |endpoint| endpoint.read(0).map(|read| read.map(drop)));
                core.lost(&lost.expect_err("rank 0 does not notify"), &call)
            } else {
                world.barrier().expect_err("rank 1 does not tell rank 0 anything")
            };
            told.lock().expect("no panic").push((error.class(), error.message().to_owned()));
            Err(error)
        });
        assert!(ended.is_err());
        let told = told.into_inner().expect("no panic");
        assert_eq!(told.len(), 3);
        for (class, text) in told {
            let names = text.contains("FENCEPOST_CENSUS") && text.contains("that of rank 1 is another one");
            assert!(class == ErrorClass::RmaSync && names, "{text}");
        }
    }

    #[test]
    fn ranks_that_take_other_censuses_are_told() {
        let all = [TransportKind::Local, TransportKind::ShmThreads, TransportKind::TcpThreads];
        for transport in all.into_iter().chain([TransportKind::Sim(SimConfig::default())]) {
            let told = Mutex::new(Vec::new());
            let world = ranks(3).transport(transport).census(Census::Direct);
            let ended = world.run(|world| {
                let error = if world.rank() == 1 {
                    // As one does whose census is sparse.
                    let core = world.core();
                    let endpoint = &mut *core.endpoint.borrow_mut();
                    let head = header(5 << 32, kind::CENSUS, 0);
                    post(core, endpoint, 2, head, &mut Vec::new()).expect("the world goes on");
                    let mut pause = Pause::new();
                    loop {
                        if let Err(lost) = endpoint.poll(0, Port::FENCE) {
                            break Error::new(ErrorClass::RmaSync, lost.to_string());
                        }
                        endpoint.idle(&mut pause);
                    }
                } else {
                    world.barrier().expect_err("rank 1 does not notify")
                };
                told.lock().expect("no panic").push((error.class(), error.message().to_owned()));
                Err(error)
            });
            assert!(ended.is_err());
            for (class, text) in told.into_inner().expect("no panic") {
                assert_eq!(class, ErrorClass::RmaSync, "{text}");
                assert!(text.contains("FENCEPOST_CENSUS") && text.contains("rank 1"), "{text}");
            }
        }
    }
}
