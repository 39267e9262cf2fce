//! The items that a rank sends in its worlds: frames, notifications, releases, and how it leaves.

use crate::fabric::carrier::{Carrier, Connection, Outgoing};
use crate::fabric::channel::Channel;
use crate::fabric::core::Core;
use crate::fabric::queue::{Due, cost};
use crate::stream::{Body, Item, ItemWriter, ReceiveBuffer};
use crate::{Cause, Header, Leave, Notification, Port};
use std::time::{Duration, Instant};

/// The maximum number of closed worlds that this rank remembers because it has not yet notified
/// other ranks that it has left them.
const CLOSED: usize = 64;

/// About how many bytes are copied in a nanosecond.
const COPIED_PER_NS: u64 = 8;

impl<C: Carrier> Core<C> {
    /// Posts a frame.
    pub(super) fn post(&mut self, number: u64, to: usize, port: Port, header: Header, payload: &[u8]) {
        // SAFETY: `may_stay` is `false`, so the payload is not lent.
        unsafe { self.post_any((number, to, port), header, payload, false) };
    }

    /// Posts a frame. Lends the payload to the carrier if it `may_stay` and the connection accepts
    /// it. Returns how many bytes of the payload were copied.
    ///
    /// # Safety
    /// If the payload `may_stay`, nobody writes it, and it stays at its address, until
    /// [`Carrier::lent`] reports that nothing is lent to `to`.
    pub(super) unsafe fn post_any(
        &mut self,
        (number, to, port): (u64, usize, Port),
        header: Header,
        payload: &[u8],
        may_stay: bool,
    ) -> usize {
        let me = self.me();
        let ranks = self.peers.len();
        let channel = self.channels.entry(number).or_insert_with(|| Channel::new(ranks));
        let peer = &mut self.peers[to];
        if to == me {
            let body = Body::of(payload, self.own.spare(payload.len()));
            let queue = channel.pairs[to].open(port);
            queue.outbound.posted += 1;
            queue.inbound.arrived = queue.outbound.posted;
            queue.inbound.frames.push_back((header, body));
            if port == Port::SERVICE {
                self.note_request(number, me);
                self.answer_requests();
            }
            return payload.len();
        }
        let pair = &mut channel.pairs[to];
        pair.outbound.elsewhere += u64::from(port != Port::FENCE);
        let fits = pair.open(port).outbound.post(payload.len());
        let mut copied = Ok(payload.len());
        if fits {
            channel.piggyback(number, to, &mut peer.out.bytes);
            ItemWriter(&mut peer.out.bytes, number).frame_head(port, header, payload.len());
            let lent = if may_stay {
                // SAFETY: the caller's promise.
                unsafe { peer.pass_lent(&mut self.carrier, payload) }
            } else {
                Ok(false)
            };
            copied = if !matches!(lent, Ok(false)) {
                lent.map(|_| 0)
            } else if peer.takes_in_place(payload.len()) {
                let held = self.hold_requests();
                let wrote = self.write(to, payload);
                self.resume_requests(held);
                wrote
            } else {
                peer.pack(&mut self.carrier, payload).map(|()| payload.len())
            };
        } else {
            let mut frame = std::mem::take(&mut peer.out.spare);
            frame.clear();
            frame.reserve_exact(cost(payload.len()) as usize);
            ItemWriter(&mut frame, number).frame(port, header, payload);
            let outbound = &mut channel.pairs[to].open(port).outbound;
            outbound.keep(frame);
            outbound.send_waiting(number, port, &mut peer.out.bytes, &mut peer.out.spare, false);
        }
        match &copied {
            Ok(_) => self.mark_dirty(to),
            Err(error) => self.write_failed(to, &error.to_string()),
        }
        self.answer_requests();
        copied.unwrap_or_default()
    }

    /// Writes a payload from the sender's memory. Continues while bytes move in either direction.
    /// When none move, keeps trying for as long as copying the rest would take, and then copies the
    /// rest. Returns the number of bytes that were copied.
    pub(super) fn write(&mut self, to: usize, payload: &[u8]) -> std::io::Result<usize> {
        let mut rest = payload;
        let mut written = Vec::new();
        let mut moved = Instant::now();
        loop {
            let wrote = self.peers[to].pass_in_place(&mut self.carrier, rest)?;
            rest = &rest[wrote..];
            // Nothing else may be written in the middle of a payload, so items that a poll writes
            // are kept for later.
            if rest.is_empty() || self.peers[to].unsent() || self.peers[to].link.is_none() {
                break;
            }
            let before = self.heard;
            self.read_from(to);
            let peer = &mut self.peers[to];
            if !peer.out.bytes.is_empty() {
                std::mem::swap(&mut written, &mut peer.out.bytes);
            }
            if !written.is_empty() || peer.link.is_none() {
                break;
            }
            if wrote > 0 || self.heard != before {
                moved = Instant::now();
                continue;
            }
            // Measured by the clock, because on a shared core each attempt lasts until the other
            // threads give the core back.
            if moved.elapsed() > Duration::from_nanos(rest.len() as u64 / COPIED_PER_NS) {
                break;
            }
            std::thread::yield_now();
        }
        let out = &mut self.peers[to].out.bytes;
        out.extend_from_slice(rest);
        out.extend_from_slice(&written);
        Ok(rest.len())
    }

    /// Publishes an exchange: writes a notification to each member.
    pub(super) fn publish(&mut self, number: u64, notifications: &[Notification]) {
        let me = self.me();
        let Some(channel) = self.channels.get_mut(&number) else { return };
        channel.exchange += 1;
        for (i, notification) in notifications.iter().enumerate() {
            let to = channel.members[i] as usize;
            if self.intra_node.get(to).is_some_and(|&intra_node| intra_node) {
                continue;
            }
            let frames = channel.pairs[to].fence.outbound.posted;
            if to == me {
                // This notification cannot be too early, because the caller has read all
                // notifications of the previous exchange.
                let taken = channel.take(me, Item::Notification(*notification, frames));
                debug_assert!(taken.is_ok(), "a notification to this rank itself was refused");
                channel.pairs[me].inbound.read = channel.exchange;
                continue;
            }
            if self.peers[to].died.is_some() || self.peers[to].heard_goodbye || channel.has_left(to) {
                continue;
            }
            let out = &mut self.peers[to].out.bytes;
            channel.piggyback(number, to, out);
            ItemWriter(out, number).notification(notification, frames);
        }
        self.flush_members(number);
    }

    /// Settles the exchange that was published last.
    pub(super) fn settle(&mut self, number: u64) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let exchange = channel.exchange;
        for i in 0..channel.members.len() {
            let Some(channel) = self.channels.get(&number) else { return };
            let to = channel.members[i] as usize;
            if !self.listens(channel, to) {
                continue;
            }
            let Some(channel) = self.channels.get_mut(&number) else { return };
            channel.piggyback(number, to, &mut self.peers[to].out.bytes);
            ItemWriter(&mut self.peers[to].out.bytes, number).settle(exchange);
        }
        let me = self.me();
        self.channel(number).pairs[me].inbound.settled = exchange;
        self.flush_members(number);
    }

    /// Ends the world. If the launcher reports the cause to all ranks, a rank without a connection
    /// is notified only when it connects. If it were notified at once, a death would make each of
    /// many ranks connect to every other rank.
    pub(super) fn end(&mut self, number: u64, cause: Cause) {
        let channel = self.channel(number);
        if channel.ended.is_some() {
            return;
        }
        channel.ended = Some(cause.clone());
        self.events += 1;
        self.alarms.raise();
        let known = self.is_reported(number);
        for to in self.members(number) {
            let Some(channel) = self.channels.get(&number) else { return };
            let peer = &mut self.peers[to];
            let apart = known && peer.needs_nothing(channel.pairs[to].has_waiting());
            ItemWriter(&mut peer.out.bytes, number).end(cause.rank as u32, &cause.what);
            if apart {
                peer.deferred = peer.out.bytes.len();
            }
        }
        self.flush_members(number);
    }

    /// Returns whether a rank without a connection need not be notified that this rank has
    /// finished. Such a rank finds out when it connects, or from the launcher.
    pub(super) fn defers(&self) -> bool {
        !self.limits.obituary.is_zero()
    }

    /// Returns whether this world has ended because of a death that the launcher reports to all
    /// ranks.
    fn is_reported(&self, number: u64) -> bool {
        let Some(Channel { ended: Some(cause), members, .. }) = self.channels.get(&number) else {
            return false;
        };
        let peer = members.get(cause.rank).and_then(|&rank| self.peers.get(rank as usize));
        self.defers() && peer.is_some_and(|peer| peer.reported)
    }

    /// Leaves a world. Before that, sends even the frames that wait for credit.
    pub(super) fn leave(&mut self, number: u64, how: &Leave) {
        if self.channel(number).left.is_some() {
            return;
        }
        self.channel(number).left = Some(how.clone());
        let ended = self.channel(number).ended.clone();
        // If the world has ended, the rank that ended it has notified all members, or the launcher
        // notifies them.
        let defers = self.defers() && (*how == Leave::Finished || ended.is_some());
        for i in 0..self.channel(number).members.len() {
            let Some(channel) = self.channels.get_mut(&number) else { return };
            let to = channel.members[i] as usize;
            let peer = &mut self.peers[to];
            let intra_node = self.intra_node.get(to).is_some_and(|&intra_node| intra_node);
            if to == self.me || intra_node || peer.died.is_some() || peer.heard_goodbye {
                continue;
            }
            let apart = defers && peer.needs_nothing(channel.pairs[to].has_waiting());
            // A member that has also left needs only the `left` item, after which it can forget the
            // world.
            if !channel.has_left(to) {
                channel.piggyback(number, to, &mut peer.out.bytes);
                for (port, queue) in channel.pairs[to].queues_mut() {
                    queue.outbound.send_waiting(number, port, &mut peer.out.bytes, &mut peer.out.spare, true);
                }
                // The member may be waiting for this rank, and may not know the cause yet from
                // another rank.
                if let Some(Cause { rank, what }) = &ended {
                    ItemWriter(&mut peer.out.bytes, number).end(*rank as u32, what);
                }
            }
            ItemWriter(&mut peer.out.bytes, number).left(how, channel.pairs[to].posted());
            if apart {
                peer.deferred = peer.out.bytes.len();
            }
        }
        self.flush_members(number);
    }

    /// Drops this rank's end of a world.
    pub(super) fn close(&mut self, number: u64) {
        let channel = self.channel(number);
        channel.closed = true;
        let queues = channel.pairs.iter_mut().flat_map(|pair| pair.queues_mut());
        queues.for_each(|(_, queue)| queue.inbound.clear());
        self.peers
            .iter_mut()
            .filter_map(|peer| peer.link.as_mut())
            .for_each(|link| link.decoder_mut().move_out(number, None));
        self.forget_if_over(number);
        if self.channels.values().filter(|channel| channel.closed).count() > CLOSED {
            self.tell_deferred();
        }
    }

    /// Connects to the ranks that do not know yet that this rank has left worlds, so that both
    /// sides can forget these worlds.
    fn tell_deferred(&mut self) {
        for to in 0..self.peers.len() {
            if std::mem::take(&mut self.peers[to].deferred) > 0 {
                self.send(to);
            }
        }
    }

    fn flush_members(&mut self, number: u64) {
        for i in 0..self.channels.get(&number).map_or(0, |channel| channel.members.len()) {
            let Some(channel) = self.channels.get(&number) else { return };
            let to = channel.members[i] as usize;
            if to != self.me() && !self.is_intra_node(to) && self.peers[to].unsent() {
                self.send(to);
            }
        }
    }

    /// Releases the oldest frame from `from` on this port. Returns whether there was one.
    pub(super) fn release(&mut self, number: u64, from: usize, port: Port) -> bool {
        let Some((_, body)) = self.take_frame(number, from, port) else { return false };
        self.recycle(from, body);
        true
    }

    /// Releases the oldest frame from `from` on this port and returns its payload. Does neither if
    /// the payload is in a receive buffer.
    pub(super) fn take_payload(&mut self, number: u64, from: usize, port: Port) -> Option<Body> {
        let queue = self.channels.get(&number)?.pairs[from].queue(port)?;
        queue.inbound.frames.front().filter(|(_, body)| body.is_own())?;
        self.take_frame(number, from, port).map(|(_, body)| body)
    }

    /// Keeps the memory of a frame from `from` for a later frame.
    pub(super) fn recycle(&mut self, from: usize, body: Body) {
        if from == self.me() {
            self.own.recycle(body);
        } else if let Some(link) = &mut self.peers[from].link {
            link.decoder_mut().recycle(body);
        }
    }

    /// Releases the oldest frame from `from` on this port, and returns it.
    pub(super) fn take_frame(&mut self, number: u64, from: usize, port: Port) -> Option<(Header, Body)> {
        let me = self.me();
        let pair = &mut self.channels.get_mut(&number)?.pairs[from];
        let mut silent = pair.outbound.silent;
        let queue = pair.queue_mut(port)?;
        let (header, body, due) = queue.inbound.release(&mut silent)?;
        if from == me {
            queue.outbound.release_own();
            return Some((header, body));
        }
        pair.outbound.silent = silent;
        pair.note_unreported(port);
        match due {
            Due::Now => self.report_releases(number, from),
            Due::Soon if !self.pending_releases.contains(&(number, from as u32)) => {
                self.pending_releases.push((number, from as u32));
            }
            Due::Soon | Due::Later => {}
        }
        Some((header, body))
    }

    /// Sends the frames on this port that waited for credit, as far as there is credit now.
    pub(super) fn send_waiting(&mut self, number: u64, to: usize, port: Port) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let closed = port != Port::FENCE && channel.has_closed(port);
        let pair = &mut channel.pairs[to];
        let Some(queue) = pair.queue_mut(port) else { return };
        if queue.outbound.has_waiting() {
            let Outgoing { bytes, spare, .. } = &mut self.peers[to].out;
            queue.outbound.send_waiting(number, port, bytes, spare, false);
            if closed {
                pair.forget_if_sent(port);
            }
        }
    }

    /// Closes a port: this rank does not use it any more.
    pub(super) fn close_port(&mut self, number: u64, port: Port) {
        for to in self.channel(number).close_port(port) {
            if to != self.me() {
                self.report_releases(number, to);
            }
        }
        self.flush_dirty();
    }

    /// Pre-posts a buffer for a payload that is still to arrive from `from`. Returns how many bytes
    /// of the payload had arrived already and were copied to the buffer.
    pub(super) fn prepost(
        &mut self,
        number: u64,
        from: usize,
        port: Port,
        ahead: u64,
        header: Header,
        buffer: ReceiveBuffer,
    ) -> usize {
        let mut moved = 0;
        if let Some(channel) = self.channels.get_mut(&number) {
            let adopt = |buffer| match &mut self.peers[from].link {
                Some(link) => {
                    let adopted = link.decoder_mut().adopt(number, port, header, buffer);
                    adopted.map(|bytes| moved = bytes).err()
                }
                None => Some(buffer),
            };
            channel.pairs[from].open(port).inbound.prepost(ahead, header, buffer, adopt);
        }
        moved
    }

    /// Cancels the buffers that were pre-posted for payloads from `from` on this port.
    pub(super) fn cancel(&mut self, number: u64, from: usize, port: Port) {
        if let Some(channel) = self.channels.get_mut(&number)
            && let Some(queue) = channel.pairs[from].queue_mut(port)
        {
            queue.inbound.cancel();
        }
        if let Some(link) = &mut self.peers[from].link {
            link.decoder_mut().move_out(number, Some(port));
        }
    }

    /// Reports releases to ranks that would not find out about them in any other way.
    pub(crate) fn send_pending_releases(&mut self) {
        while let Some((number, to)) = self.pending_releases.pop() {
            self.report_releases(number, to as usize);
        }
        self.flush_dirty();
    }

    /// Writes how many frames of `to` were released. The report is sent with the next write to
    /// `to`.
    pub(super) fn report_releases(&mut self, number: u64, to: usize) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        // A rank that has left sends nothing more. The receiver may have forgotten the world
        // already.
        if channel.left.is_none()
            && channel.pairs[to].has_unreported()
            && !channel.has_left(to)
            && self.peers[to].died.is_none()
        {
            channel.report_releases(number, to, &mut self.peers[to].out.bytes);
            self.mark_dirty(to);
        }
    }

    /// Reports all unreported releases.
    pub(super) fn send_all_releases(&mut self) {
        for number in self.numbers() {
            for to in self.members(number) {
                if self.peers[to].link.is_some() {
                    self.report_releases(number, to);
                }
            }
        }
        self.flush_dirty();
    }
}
