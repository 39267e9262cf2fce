//! The messages of a census, from rank to rank.

use crate::census::flags::{CHANGED, DIFFERS, EXPOSES, FAILED, FEW, LISTED, OF_ALL, READS, RUNS};
use crate::census::messages::{ALTERED, DIGEST, has_something, is_whole, payload, post, sign};
use crate::census::riding::are_riding;
use crate::census::state::items::Items;
use crate::census::state::roles::Leg;
use crate::census::{Exchange, Give, notes};
use crate::kernel::waits::{Wait, without};
use crate::protocol::exchange::wait;
use crate::protocol::frames::{census_of, header, kind};
use crate::protocol::stall::{Awaited, CENSUS, Watch, censuses_differ};
use fencepost_planner::Result;
use fencepost_planner::census::{Census, halvings, rounds};
use fencepost_transport::{Channels, Header, Notification, Notify, Port, Topology};

impl Exchange<'_> {
    /// Takes the census. `word` is the word of this exchange's notifications, and `mine` are this
    /// rank's flags. The census also carries the bytes that this rank `gives` to other ranks.
    ///
    /// Returns the items and the flags that concern all ranks. Returns no flags if some rank has
    /// failed or is in another call. In that case every rank finds this out.
    pub(crate) fn take_census(
        &mut self,
        mut items: Items,
        gives: &[Give<'_>],
        (word, mine): (u64, u32),
    ) -> Result<(Items, Option<u32>)> {
        let (world, me) = (self.world, self.world.rank);
        items.begin();
        for to in (0..world.size).filter(|&to| to != me) {
            let draft = self.endpoint.draft(to);
            if has_something(draft) {
                items.notify(me, to, draft);
            }
        }
        let few = items.len() < world.census.dense as usize;
        gives.iter().for_each(|(to, bytes)| items.give(me, *to, bytes));
        let reduced = world.census.taken.get() == Census::Reduced;
        let kind = if reduced { kind::COUNTS } else { kind::CENSUS };
        if reduced {
            self.send_notes(&mut items)?;
        }
        let message = std::mem::take(&mut items.message);
        let flags = mine | if few { FEW } else { 0 };
        let mut taking = Taking { word, kind, mine, flags, items, reduced, stray: None, message };
        self.take_legs(&mut taking)?;
        if reduced && taking.flags & (FAILED | DIFFERS) == 0 {
            self.collect_notes(&mut taking.items)?;
        }
        let Taking { flags, mut items, stray, message, .. } = taking;
        items.message = message;
        items.end();
        if flags & (FAILED | DIFFERS) != 0 {
            return Ok((items, None));
        }
        // The frame of `from` was not of this exchange, although all ranks are in this exchange.
        if let Some(from) = stray {
            return Err(self.forged(from));
        }
        if !self.windows.is_empty() {
            if let Err(from) = items.read_notifications(me) {
                return Err(self.forged(from));
            }
            let mut all = items.notifications();
            if let Some((from, _)) = all.find(|(from, theirs)| !self.may_send(*from, theirs, mine)) {
                return Err(self.forged(from));
            }
            if world.census.may_switch() {
                world.census.was_dense.set(flags & FEW == 0);
            }
        }
        Ok((items, Some(flags)))
    }

    /// Runs all legs of this rank in a census. A rank that is led sends to its leader and receives
    /// from it. A leader receives from the ranks that it leads, takes part in the rounds of the
    /// leaders, and sends to the ranks that it leads.
    fn take_legs(&mut self, taking: &mut Taking) -> Result<()> {
        let world = self.world;
        let halving = taking.reduced.then(|| world.census.halving());
        let roles = halving.map_or(&world.census.roles, |halving| &halving.roles);
        let leader = roles.leader();
        if leader != world.rank {
            self.send_leg(taking, Leg::ToLeader, leader)?;
            return self.receive_leg(taking, Leg::FromLeader, leader);
        }
        roles.led().try_for_each(|from| self.receive_leg(taking, Leg::ToLeader, from))?;
        let leaders = roles.leaders();
        for round in 0..halving.map_or(rounds(leaders), |_| halvings(leaders)) {
            let (to, from) = match halving {
                Some(halving) => (halving.partner(round), halving.partner(round)),
                None => roles.partners(round),
            };
            self.send_leg(taking, Leg::Round(round), to)?;
            self.receive_leg(taking, Leg::Round(round), from)?;
        }
        roles.led().try_for_each(|to| self.send_leg(taking, Leg::FromLeader, to))
    }

    /// Sends the items for `to` on this leg.
    fn send_leg(&mut self, taking: &mut Taking, leg: Leg, to: usize) -> Result<()> {
        let Taking { word, kind, flags, items, message, reduced, .. } = taking;
        message.clear();
        message.resize(DIGEST, 0);
        let halving = reduced.then(|| self.world.census.halving());
        items.pass(&self.world.census.roles, halving, leg, to, message);
        sign(items.number(), *word, *flags, message);
        post(self.world, self.endpoint, to, header(*word, *kind, *flags), message)
            .map_err(|lost| self.quit(&lost))
    }

    /// Waits for the message of `from` on this leg, and takes in its items.
    fn receive_leg(&mut self, taking: &mut Taking, leg: Leg, from: usize) -> Result<()> {
        let Taking { word, kind: own, mine, flags, items, stray, reduced, .. } = taking;
        let world = self.world;
        let awaited = if leg == Leg::ToLeader { Awaited::Led } else { Awaited::One(CENSUS) };
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
                // If a frame of an unexpected kind has the digest of this census, it is the awaited
                // message, whose kind was altered. That message will not arrive a second time.
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
        let halving = reduced.then(|| world.census.halving());
        let good = is_whole(items, &frame)
            && items.take(&world.census.roles, halving, leg, from, &payload(&frame)[DIGEST..]).is_some();
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

    /// Returns whether `from` may send this notification in a census in which all ranks agree.
    ///
    /// `from` must be in the same call as this rank, whose flags are `mine`. Only ranks that reach
    /// each other read each other's memory, and wait for such reads. Only such ranks put records
    /// into notifications. Records are applied without a check, because notifications with records
    /// come through shared memory only.
    fn may_send(&self, from: usize, theirs: &Notification, mine: u32) -> bool {
        let between = READS | EXPOSES | LISTED;
        let same = (theirs.flags ^ mine) & !(between | CHANGED) == 0 || without(Wait::Word);
        let of_messages = theirs.flags & between == 0 && !are_riding(theirs.address);
        same && (of_messages || self.endpoint.reaches(from))
    }

    /// Ends the world, because `from` sent something that no correct rank sends.
    #[cold]
    pub(crate) fn forged(&mut self, from: usize) -> fencepost_planner::Error {
        let lost = self.world.refuse(self.endpoint, from, ALTERED);
        self.quit(&lost)
    }
}

/// The state of one rank's census while it is taken.
struct Taking {
    word: u64,
    /// The kind of the messages of the census.
    kind: u32,
    /// This rank's own flags. `flags` also has the flags that concern all ranks, from each rank
    /// whose contribution has arrived.
    mine: u32,
    flags: u32,
    items: Items,
    /// Whether the census is reduced, and so adds up counts.
    reduced: bool,
    /// A rank that has sent a frame that belongs to no exchange.
    stray: Option<usize>,
    /// The buffer of the message to send.
    message: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::protocol::call::hash;
    use crate::state::call::{Call, codes};
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::{Error, ErrorClass};
    use fencepost_transport::{Liveness, Pause, SimConfig};
    use std::sync::Mutex;

    /// In a sparse census, rank 0 leads rank 1. Here rank 1 notifies the others and waits, like a
    /// rank with a direct census.
    #[test]
    fn a_rank_that_does_not_tell_its_speaker_is_told() {
        let transport = TransportKind::MixedThreads(vec![0, 0, 1]);
        let told = Mutex::new(Vec::new());
        let world = ranks(3).transport(transport).census(Census::Sparse);
        let ended = world.run(|world| {
            let error = if world.rank() == 1 {
                let (core, call) = (world.core(), Call::named(codes::BARRIER, "World::barrier"));
                core.calls.begin();
                let endpoint = &mut *core.endpoint.borrow_mut();
                endpoint.announce(core.calls.next_word(hash(core, &call, &[]) as u32));
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
                    // This rank posts a message, as a rank with a sparse census does.
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
