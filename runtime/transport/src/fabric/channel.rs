//! [`Channel`]: the state of one world on one rank. For each other member, it contains what has
//! arrived from that member and what is sent to that member.
//!
//! Frames of each port have a [`Queue`] of their own, which exists from the first frame until this
//! rank closes the port. The queue of [`Port::FENCE`] always exists. Frames are sent as far as
//! there is credit. Everything else is sent at once, and overtakes frames that wait. If an item
//! must not be seen before certain frames, the item carries the number of these frames. A
//! notification carries the number of frames of [`Port::FENCE`] only, since unread frames of
//! another port must not delay it. An announcement, and the report that a rank leaves, carry the
//! number of frames of all ports.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::fabric::queue::{CREDIT, PORT_CREDIT, Queue};
use crate::ports::ClosedPorts;
use crate::stream::{CLOSED, Item, ItemWriter};
use crate::{Attendant, Cause, Leave, Loss, Lost, Notification, Port};

/// The maximum number of ports that another rank may have opened to this rank at a time.
const PORTS: usize = 1 << 16;

/// The state of one world on one rank.
pub(super) struct Channel {
    /// The members of the world, as ranks of the job. Empty before this rank joins the world.
    pub(super) members: Vec<u32>,
    /// What this rank knows of each other rank, by rank of the job.
    pub(super) pairs: Vec<Pair>,
    /// The ports that this rank has closed.
    closed_ports: ClosedPorts,
    /// Whether the world has an attendant. If it has one, `attendant` is `None` only while the
    /// attendant serves a request.
    pub(super) attended: bool,
    pub(super) attendant: Option<Box<dyn Attendant>>,
    /// Why the world ended.
    pub(super) ended: Option<Cause>,
    /// How this rank left the world.
    pub(super) left: Option<Leave>,
    /// Whether this rank's end of the world was dropped. After that, everything that arrives is
    /// ignored.
    pub(super) closed: bool,
    /// The superstep that this rank entered last.
    pub(super) word: u64,
    pub(super) exchange: u64,
}

/// What this rank knows of one other rank.
pub(super) struct Pair {
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
    /// The frames of [`Port::FENCE`].
    pub(super) fence: Queue,
    /// The frames of all other ports.
    others: BTreeMap<Port, Queue>,
    /// The number of queues in `others` that the other rank has opened.
    opened_there: usize,
    /// The ports of queues in `others` that have releases to report, and closed ports on which
    /// something has arrived since they were closed.
    unreported: Vec<Port>,
}

/// What has arrived from one rank, other than frames.
#[derive(Default)]
pub(super) struct Inbound {
    /// The number of frames that have arrived on ports other than [`Port::FENCE`].
    elsewhere: u64,
    /// The number of frames that the rank has posted on all ports, as far as it has reported.
    posted: u64,
    /// The last two notifications, by exchange, each with the number of frames of [`Port::FENCE`]
    /// that precede it.
    notifications: [(Notification, u64); 2],
    written: u64,
    /// The exchange whose notification was read last.
    pub(super) read: u64,
    pub(super) settled: u64,
    /// The superstep that the rank entered last.
    pub(super) announced: u64,
    /// How the rank left.
    left: Option<Leave>,
}

/// What is sent to one rank, other than frames.
#[derive(Default)]
pub(super) struct Outbound {
    /// The number of frames that were posted on ports other than [`Port::FENCE`].
    pub(super) elsewhere: u64,
    /// The word of this rank's superstep, as last reported to the other rank.
    reported: u64,
    /// Whether nothing was sent to the rank since this rank last released a frame from it.
    pub(super) silent: bool,
}

impl Channel {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            members: Vec::new(),
            pairs: (0..ranks).map(|_| Pair::new()).collect(),
            closed_ports: ClosedPorts::default(),
            attended: false,
            attendant: None,
            ended: None,
            left: None,
            closed: false,
            word: 0,
            exchange: 0,
        }
    }

    /// Takes in an item that arrived from `from`.
    ///
    /// # Errors
    /// The reason, if no correct rank would send the item now.
    pub(super) fn take(&mut self, from: usize, item: Item) -> Result<(), &'static str> {
        let pair = &mut self.pairs[from];
        let inbound = &mut pair.inbound;
        match item {
            Item::Frame(Port::FENCE, header, body) => {
                pair.fence.inbound.arrived += 1;
                if !self.closed {
                    pair.fence.inbound.frames.push_back((header, body));
                }
            }
            Item::Frame(port, header, body) => {
                inbound.elsewhere += 1;
                if self.closed {
                    return Ok(());
                }
                if self.closed_ports.contains(port) {
                    pair.note_unreported(port);
                    return Ok(());
                }
                let queue = &mut pair.opened(port)?.inbound;
                queue.arrived += 1;
                queue.frames.push_back((header, body));
            }
            Item::Notification(notification, frames) => {
                inbound.written += 1;
                inbound.posted = inbound.posted.max(frames);
                inbound.notifications[(inbound.written % 2) as usize] = (notification, frames);
                if inbound.written > inbound.read + 2 && !self.closed {
                    return Err(
                        "it sent a notification too early: it may be at most two exchanges ahead of the last one read",
                    );
                }
            }
            Item::Settle(exchange) => inbound.settled = exchange,
            Item::Release { port, frames, granted } => {
                if port == Port::FENCE && frames == CLOSED {
                    return Err("it closed the port of fences");
                }
                match pair.queue_mut(port) {
                    Some(queue) => queue.outbound.release(frames, granted)?,
                    None if self.closed_ports.contains(port) => {}
                    None => return Err("it released frames of a port that this rank has not used"),
                }
            }
            Item::Want { port, bytes } => {
                if self.closed_ports.contains(port) {
                    pair.note_unreported(port);
                } else if !self.closed {
                    pair.opened(port)?.inbound.want(bytes);
                }
            }
            Item::Announce { word, frames } => {
                inbound.announced = word;
                inbound.posted = inbound.posted.max(frames);
            }
            Item::Left { how, frames } => {
                if inbound.left.is_some() {
                    return Err("it left a world twice");
                }
                // Items arrive in order, and frames that waited for credit are sent before this
                // item. So all frames of the rank have arrived, unless the rank has dropped some
                // because this rank had left first.
                let arrived = pair.fence.inbound.arrived + inbound.elsewhere;
                if self.left.is_none() && !self.closed && frames != arrived {
                    return Err("it left a world after another number of frames than it has sent");
                }
                inbound.left = Some(how);
                pair.forget();
            }
            Item::End { rank, what } => {
                if rank as usize >= self.pairs.len() {
                    return Err("it ended a world because of a rank that does not exist");
                }
                self.ended.get_or_insert(Cause { rank: rank as usize, what });
            }
            // These items belong to no world.
            Item::Beat | Item::Goodbye | Item::Farewell | Item::Rest | Item::Nudge => {}
            Item::Ask | Item::Waits { .. } | Item::Probe { .. } | Item::Agree(_) => {}
        }
        Ok(())
    }

    /// Returns the notification of `from` for the exchange that this rank published last. Returns
    /// `None` until the notification and all frames of [`Port::FENCE`] before it have arrived.
    #[inline]
    pub(super) fn notification(&self, from: usize) -> Option<&Notification> {
        let Pair { inbound, fence, .. } = &self.pairs[from];
        let (notification, frames) = &inbound.notifications[(self.exchange % 2) as usize];
        let come = self.exchange != 0 && inbound.written >= self.exchange && fence.inbound.arrived >= *frames;
        come.then_some(notification)
    }

    /// Returns how `from` left, if it has reported that it left. Nothing more arrives from a rank
    /// after that.
    pub(super) fn gone(&self, from: usize) -> Option<Loss> {
        self.pairs[from].inbound.left.clone().map(Loss::Left)
    }

    /// Returns whether `from` has reported that it left.
    pub(super) fn has_left(&self, from: usize) -> bool {
        self.pairs[from].inbound.left.is_some()
    }

    /// Returns why the world is over for this rank, or `None` if it is not over. `rank` is this
    /// rank, as a rank of the world.
    pub(super) fn mine(&self, rank: usize) -> Option<Lost> {
        if let Some(Cause { rank, what }) = &self.ended {
            return Some(Lost { rank: *rank, how: Loss::Ended(what.clone()) });
        }
        self.left.clone().map(|how| Lost { rank, how: Loss::Left(how) })
    }

    /// Returns whether all frames that `from` has reported as posted have arrived, and the frames
    /// of [`Port::FENCE`] were released.
    pub(super) fn drained(&self, from: usize) -> bool {
        let pair = &self.pairs[from];
        pair.fence.inbound.frames.is_empty() && pair.arrived() >= pair.inbound.posted
    }

    /// Writes the items that piggyback on the next item to `to`: unreported releases, and the
    /// superstep of this rank if `to` does not know it yet.
    #[inline]
    pub(super) fn piggyback(&mut self, number: u64, to: usize, out: &mut Vec<u8>) {
        self.report_releases(number, to, out);
        let pair = &mut self.pairs[to];
        pair.outbound.silent = false;
        if pair.outbound.reported != self.word {
            pair.outbound.reported = self.word;
            ItemWriter(out, number).announce(self.word, pair.posted());
        }
    }

    /// Writes how many frames of `to` were released, for each port with releases that `to` does not
    /// know of.
    #[inline]
    pub(super) fn report_releases(&mut self, number: u64, to: usize, out: &mut Vec<u8>) {
        let pair = &mut self.pairs[to];
        pair.fence.inbound.report_releases(number, Port::FENCE, out);
        while let Some(port) = pair.unreported.pop() {
            if self.closed_ports.contains(port) {
                ItemWriter(out, number).release(port, CLOSED, u64::MAX);
            } else if let Some(queue) = pair.others.get_mut(&port) {
                queue.inbound.report_releases(number, port, out);
            }
        }
    }

    /// Returns the rank that a rank of the job has in this world.
    pub(super) fn index_of(&self, rank: usize) -> Option<usize> {
        let is_it = |member: Option<&u32>| member.is_some_and(|&member| member as usize == rank);
        // In a world of all ranks of the job, both numbers are equal.
        if is_it(self.members.get(rank)) {
            return Some(rank);
        }
        self.members.iter().position(|member| is_it(Some(member)))
    }

    /// Returns whether this rank has closed a port.
    pub(super) fn has_closed(&self, port: Port) -> bool {
        self.closed_ports.contains(port)
    }

    /// Closes `port` (never [`Port::FENCE`]) and discards what has arrived on it. The frames that
    /// this rank has posted are still sent. Returns the ranks to notify.
    pub(super) fn close_port(&mut self, port: Port) -> Vec<usize> {
        self.closed_ports.insert(port);
        let mut told = Vec::new();
        for (rank, pair) in self.pairs.iter_mut().enumerate() {
            let Some(queue) = pair.others.get(&port) else { continue };
            if queue.opened_there || queue.inbound.arrived > 0 {
                pair.note_unreported(port);
                told.push(rank);
            }
            pair.forget_if_sent(port);
        }
        told
    }
}

impl Pair {
    fn new() -> Self {
        Self {
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            fence: Queue::new(CREDIT),
            others: BTreeMap::new(),
            opened_there: 0,
            unreported: Vec::new(),
        }
    }

    /// Returns the queue of a port, if it is open.
    #[inline]
    pub(super) fn queue(&self, port: Port) -> Option<&Queue> {
        if port == Port::FENCE { Some(&self.fence) } else { self.others.get(&port) }
    }

    /// Returns the queue of a port, if it is open.
    #[inline]
    pub(super) fn queue_mut(&mut self, port: Port) -> Option<&mut Queue> {
        if port == Port::FENCE { Some(&mut self.fence) } else { self.others.get_mut(&port) }
    }

    /// Returns the queue of a port. This rank opens the port if it is not open.
    #[inline]
    pub(super) fn open(&mut self, port: Port) -> &mut Queue {
        if port == Port::FENCE {
            return &mut self.fence;
        }
        self.others.entry(port).or_insert_with(|| Queue::new(PORT_CREDIT))
    }

    /// Returns the queue of a port. The other rank opens the port if it is not open.
    ///
    /// # Errors
    /// Fails if that rank has opened too many ports.
    fn opened(&mut self, port: Port) -> Result<&mut Queue, &'static str> {
        if port == Port::FENCE {
            return Ok(&mut self.fence);
        }
        match self.others.entry(port) {
            Entry::Occupied(queue) => Ok(queue.into_mut()),
            Entry::Vacant(_) if self.opened_there == PORTS => Err(
                "it sent frames on too many ports that this rank has not closed: at most 65536 may be open",
            ),
            Entry::Vacant(vacant) => {
                self.opened_there += 1;
                let queue = vacant.insert(Queue::new(PORT_CREDIT));
                queue.opened_there = true;
                Ok(queue)
            }
        }
    }

    /// Returns all queues, with their ports.
    pub(super) fn queues_mut(&mut self) -> impl Iterator<Item = (Port, &mut Queue)> {
        let others = self.others.iter_mut().map(|(port, queue)| (*port, queue));
        std::iter::once((Port::FENCE, &mut self.fence)).chain(others)
    }

    /// Notes that releases on a port are to be reported to the other rank.
    #[inline]
    pub(super) fn note_unreported(&mut self, port: Port) {
        if port != Port::FENCE && !self.unreported.contains(&port) {
            self.unreported.push(port);
        }
    }

    /// Returns whether there are releases that the other rank does not know of.
    pub(super) fn has_unreported(&self) -> bool {
        self.fence.inbound.has_pending_release() || !self.unreported.is_empty()
    }

    /// Returns whether frames wait for credit.
    pub(super) fn has_waiting(&self) -> bool {
        self.fence.outbound.has_waiting() || self.others.values().any(|queue| queue.outbound.has_waiting())
    }

    /// Returns the number of frames that were posted on all ports.
    #[inline]
    pub(super) fn posted(&self) -> u64 {
        self.fence.outbound.posted + self.outbound.elsewhere
    }

    /// Returns the number of frames that have arrived on all ports.
    fn arrived(&self) -> u64 {
        self.fence.inbound.arrived + self.inbound.elsewhere
    }

    /// Drops all frames that wait for credit, because the other rank will read nothing more.
    pub(super) fn forget(&mut self) {
        self.queues_mut().for_each(|(_, queue)| queue.outbound.forget());
    }

    /// Removes the queue of a port that this rank has closed. If frames wait for credit, discards
    /// only what has arrived.
    pub(super) fn forget_if_sent(&mut self, port: Port) {
        let Some(queue) = self.others.get_mut(&port) else { return };
        if queue.outbound.has_waiting() {
            queue.inbound.frames.clear();
            return;
        }
        self.opened_there -= usize::from(queue.opened_there);
        self.others.remove(&port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;
    use crate::stream::Body;

    fn frame(port: u32) -> Item {
        Item::Frame(Port(port), Header::default(), Body::of(&[7; 20], Body::default()))
    }

    #[test]
    fn a_rank_that_opens_too_many_ports_is_refused_and_one_that_opens_them_in_turn_is_not() {
        let mut channel = Channel::new(2);
        for port in 1..=PORTS as u32 {
            assert_eq!(channel.take(1, frame(port)), Ok(()));
        }
        assert_eq!(channel.take(1, frame(5)), Ok(()), "it is open");
        let next = PORTS as u32 + 1;
        let why = channel.take(1, frame(next)).unwrap_err();
        assert!(why.contains(&PORTS.to_string()), "{why}");
        assert!(channel.take(1, Item::Want { port: Port(next), bytes: 1 }).is_err());
        assert_eq!(channel.take(0, frame(next)), Ok(()), "another rank has opened none");
        channel.pairs[1].open(Port(next)).outbound.post(1);
        assert_eq!(channel.take(1, frame(next)), Ok(()), "this rank has opened it");
        assert_eq!(channel.close_port(Port(9)), [1]);
        assert_eq!(channel.take(1, frame(9)), Ok(()), "it is dropped");
        assert_eq!(channel.take(1, frame(next + 1)), Ok(()));
        assert!(channel.take(1, frame(next + 2)).is_err());
    }

    #[test]
    fn nothing_is_kept_of_a_port_that_is_closed_and_its_sender_is_told() {
        let mut channel = Channel::new(2);
        for port in 2..2000 {
            assert_eq!(channel.take(1, frame(port)), Ok(()));
            assert!(channel.pairs[1].open(Port(port)).outbound.post(5));
            assert_eq!(channel.close_port(Port(port)), [1]);
            let mut out = Vec::new();
            channel.report_releases(0, 1, &mut out);
            let mut told = Vec::new();
            ItemWriter(&mut told, 0).release(Port(port), CLOSED, u64::MAX);
            assert_eq!(out, told);
            let pair = &channel.pairs[1];
            assert!(pair.others.is_empty() && pair.unreported.is_empty() && pair.opened_there == 0);
            let release = Item::Release { port: Port(port), frames: 1, granted: 0 };
            assert_eq!(channel.take(1, release), Ok(()), "of what this rank had posted");
        }
        assert_eq!(channel.gone(1), None);
        assert_eq!(channel.take(1, Item::Left { how: Leave::Finished, frames: 1998 }), Ok(()));
        assert_eq!(channel.gone(1), Some(Loss::Left(Leave::Finished)), "all frames have arrived");
    }

    #[test]
    fn a_rank_that_says_it_left_after_other_frames_than_it_sent_is_refused() {
        let left = |frames| Item::Left { how: Leave::Finished, frames };
        for frames in [0, 1, 3, u64::MAX] {
            let mut channel = Channel::new(2);
            assert_eq!((channel.take(1, frame(2)), channel.take(1, frame(0))), (Ok(()), Ok(())));
            assert!(channel.take(1, left(frames)).is_err(), "{frames} frames, and 2 have come");
        }
        let mut channel = Channel::new(2);
        assert_eq!(channel.take(1, left(0)), Ok(()));
        assert!(channel.take(1, left(0)).is_err(), "twice");
        // If this rank has left first, the other rank drops frames that waited for credit.
        let mut channel = Channel::new(2);
        channel.left = Some(Leave::Finished);
        assert_eq!(channel.take(1, left(7)), Ok(()));
    }

    #[test]
    fn releases_of_what_was_not_posted_are_refused() {
        let release = |port, frames| Item::Release { port: Port(port), frames, granted: 0 };
        let mut channel = Channel::new(2);
        channel.pairs[1].open(Port(2)).outbound.post(5);
        for (port, frames) in [(0, 1), (0, CLOSED), (2, 2), (3, 0), (3, CLOSED)] {
            assert!(channel.take(1, release(port, frames)).is_err(), "{frames} frames of port {port}");
        }
        assert_eq!(channel.take(1, release(2, 1)), Ok(()));
        assert!(channel.take(1, release(2, 0)).is_err(), "fewer than before");
        assert_eq!(channel.take(1, release(2, CLOSED)), Ok(()));
        assert!(channel.pairs[1].open(Port(2)).outbound.post(5));
        assert_eq!(channel.pairs[1].open(Port(2)).outbound.released(), 2);
    }

    #[test]
    fn a_notification_waits_for_frames_of_fences_only() {
        let mut channel = Channel::new(2);
        channel.exchange = 1;
        let notification = Notification { word: 8, ..Notification::default() };
        assert_eq!(channel.take(1, Item::Notification(notification, 1)), Ok(()));
        assert_eq!(channel.take(1, frame(2)), Ok(()));
        assert_eq!(channel.notification(1), None);
        assert_eq!(channel.take(1, frame(0)), Ok(()));
        assert_eq!(channel.notification(1), Some(&notification));
    }
}
