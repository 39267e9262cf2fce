//! [`Channel`]: what one rank knows of one world: what has come from each member, and what is to go to it.
//!
//! Frames leave when there is credit: so many bytes, granted by who gets them, counted from the beginning. A grant is
//! always at least a window beyond what was released, and more is granted when the getter looks for something of a
//! sender that has said how much it has: whoever waits takes all that it waits for, and whoever does not holds a window
//! a pair at most. Everything else travels at once, past frames that wait; what must not be seen before them carries their
//! number.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::stream::{Body, HEAD, Item, Pen, Place};
use crate::{Cause, Header, Leave, Letter, Loss, Lost};

/// Bytes of frames that may be on their way to one who does not look, for each pair of ranks.
pub(super) const WINDOW: u64 = 4 << 20;

/// What a frame counts, in bytes.
pub(super) fn cost(len: usize) -> u64 {
    (len + HEAD) as u64
}

/// One world, as one rank knows it.
pub(super) struct Channel {
    /// Its members, as ranks of the job; none before this rank enters it.
    pub(super) members: Vec<u32>,
    /// By rank of the job.
    pub(super) pairs: Vec<Pair>,
    /// Why it has ended.
    pub(super) ended: Option<Cause>,
    /// How I have left it.
    pub(super) left: Option<Leave>,
    /// My end of it was dropped: what still comes is of no use.
    pub(super) closed: bool,
    /// The superstep that I entered last.
    pub(super) word: u64,
    pub(super) exchange: u64,
}

/// What I know of one other rank.
#[derive(Default)]
pub(super) struct Pair {
    pub(super) inbound: Inbound,
    pub(super) outbound: Outbound,
}

/// When the sender of a frame should hear that it was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// As soon as this rank waits for anything: its credit runs out.
    Now,
    /// When this rank has waited a little: what it will say to it may come first.
    Soon,
    /// With what is said next.
    Later,
}

/// What has come from it.
#[derive(Default)]
pub(super) struct Inbound {
    pub(super) frames: VecDeque<(Header, Body)>,
    /// Places that are offered for payloads: by the number of the frame, and with what its head must say.
    places: VecDeque<(u64, Header, Place)>,
    /// How many frames have come.
    pub(super) arrived: u64,
    /// How many it has posted, as far as it said.
    posted: u64,
    /// The last two letters, by exchange, and how many frames lie before each.
    letters: [(Letter, u64); 2],
    written: u64,
    /// The exchange whose letter was read last.
    pub(super) read: u64,
    pub(super) settled: u64,
    /// The superstep that it entered last.
    pub(super) announced: u64,
    /// How it left, after how many frames.
    left: Option<(Leave, u64)>,
    /// Bytes of its frames that I have released.
    taken: u64,
    /// Bytes of frames that it may send.
    granted: u64,
    /// Bytes that it has said it would send.
    wanted: u64,
    /// How many of its frames I have released.
    releases: u64,
    /// Of those, how many it was told of.
    told: u64,
}

/// What goes to it.
#[derive(Default)]
pub(super) struct Outbound {
    /// How many frames were posted.
    pub(super) posted: u64,
    /// Bytes of frames that were posted.
    bytes: u64,
    /// Bytes of frames that have left.
    sent: u64,
    /// Bytes that may leave.
    granted: u64,
    /// Bytes that it was told of that would leave if they might.
    wanted: u64,
    /// Frames without credit.
    waiting: VecDeque<Vec<u8>>,
    /// How many of them it has released.
    pub(super) released: u64,
    /// The superstep that it was last told I entered.
    told: u64,
    /// Nothing went to it since it was last told of releases.
    silent: bool,
}

impl Channel {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            members: Vec::new(),
            pairs: (0..ranks).map(|_| Pair::default()).collect(),
            ended: None,
            left: None,
            closed: false,
            word: 0,
            exchange: 0,
        }
    }

    /// Take in what came from `from`.
    ///
    /// # Errors
    /// It is nothing that a rank would send now, because of this.
    pub(super) fn take(&mut self, from: usize, item: Item) -> Result<(), &'static str> {
        let Pair { inbound, outbound } = &mut self.pairs[from];
        match item {
            Item::Frame(header, body) => {
                inbound.arrived += 1;
                if self.closed {
                    return Ok(());
                }
                inbound.frames.push_back((header, body));
            }
            Item::Letter(letter, frames) => {
                inbound.written += 1;
                inbound.posted = inbound.posted.max(frames);
                inbound.letters[(inbound.written % 2) as usize] = (letter, frames);
                if inbound.written > inbound.read + 2 && !self.closed {
                    return Err("it sent a letter too early");
                }
            }
            Item::Settle(exchange) => inbound.settled = exchange,
            Item::Release { frames, granted } => {
                if frames > outbound.posted || frames < outbound.released {
                    return Err("it released frames that it was not sent");
                }
                outbound.released = frames;
                outbound.granted = outbound.granted.max(granted);
            }
            Item::Want(bytes) => inbound.wanted = inbound.wanted.max(bytes),
            Item::Announce { word, frames } => {
                inbound.announced = word;
                inbound.posted = inbound.posted.max(frames);
            }
            Item::Left { how, frames } => {
                inbound.left.get_or_insert((how, frames));
                outbound.waiting.clear();
            }
            Item::End { rank, what } => {
                if rank as usize >= self.pairs.len() {
                    return Err("it ended a world because of a rank that there is not");
                }
                self.ended.get_or_insert(Cause { rank: rank as usize, what });
            }
            // These belong to no world.
            Item::Beat | Item::Goodbye | Item::Farewell => {}
            Item::Ask | Item::Waits { .. } | Item::Probe { .. } | Item::Agree(_) => {}
        }
        Ok(())
    }

    /// The letter of `from` of the exchange that I published last, if it and all before it have come.
    #[inline]
    pub(super) fn letter(&self, from: usize) -> Option<&Letter> {
        let inbound = &self.pairs[from].inbound;
        let (letter, frames) = &inbound.letters[(self.exchange % 2) as usize];
        let come = self.exchange != 0 && inbound.written >= self.exchange && inbound.arrived >= *frames;
        come.then_some(letter)
    }

    /// Why nothing more can come from `from`, so far as the world's members have said.
    pub(super) fn gone(&self, from: usize) -> Option<Loss> {
        let (how, frames) = self.pairs[from].inbound.left.as_ref()?;
        (self.pairs[from].inbound.arrived >= *frames).then(|| Loss::Left(how.clone()))
    }

    /// How `from` left, if it has said so.
    pub(super) fn leaving(&self, from: usize) -> Option<Loss> {
        self.pairs[from].inbound.left.as_ref().map(|(how, _)| Loss::Left(how.clone()))
    }

    /// Whether `from` has said that it left.
    pub(super) fn has_left(&self, from: usize) -> bool {
        self.pairs[from].inbound.left.is_some()
    }

    /// Why the world goes on no longer for me, `rank` of the job.
    pub(super) fn mine(&self, rank: usize) -> Option<Lost> {
        if let Some(Cause { rank, what }) = &self.ended {
            return Some(Lost { rank: *rank, how: Loss::Ended(what.clone()) });
        }
        self.left.clone().map(|how| Lost { rank, how: Loss::Left(how) })
    }

    /// Whether all that `from` posted, so far as it said, has come and was taken.
    pub(super) fn drained(&self, from: usize) -> bool {
        let inbound = &self.pairs[from].inbound;
        inbound.frames.is_empty() && inbound.arrived >= inbound.posted
    }

    /// Write the tidings that go before anything else to `to`.
    #[inline]
    pub(super) fn tidings(&mut self, number: u64, to: usize, out: &mut Vec<u8>) {
        let Pair { inbound, outbound } = &mut self.pairs[to];
        inbound.tell(number, out);
        outbound.silent = false;
        if outbound.told != self.word {
            outbound.told = self.word;
            Pen(out, number).announce(self.word, outbound.posted);
        }
    }
}

impl Inbound {
    /// The oldest frame is done with: gives its body, and when the sender should hear of it.
    pub(super) fn release(&mut self, outbound: &mut Outbound) -> Option<(Body, Due)> {
        let (_, body) = self.frames.pop_front()?;
        self.releases += 1;
        self.drop_places(self.releases);
        self.taken += cost(body.len());
        let silent = std::mem::replace(&mut outbound.silent, true);
        let due = if self.taken + WINDOW / 2 > self.limit() {
            Due::Now
        } else if silent {
            Due::Soon
        } else {
            Due::Later
        };
        Some((body, due))
    }

    /// A place for the payload of the frame that comes after so many that are not released, if it has this header. The
    /// next to be complete may be half here: then `adopt` takes the place, or gives it back.
    pub(super) fn offer(
        &mut self,
        ahead: u64,
        header: Header,
        place: Place,
        adopt: impl FnOnce(Place) -> Option<Place>,
    ) {
        let frame = self.releases + ahead;
        let place = match frame.cmp(&self.arrived) {
            Ordering::Less => None,
            Ordering::Equal => adopt(place),
            Ordering::Greater => Some(place),
        };
        if let Some(place) = place {
            let at = self.places.partition_point(|(other, ..)| *other < frame);
            self.places.insert(at, (frame, header, place));
        }
    }

    /// The place that is offered for the frame that comes now.
    pub(super) fn place(&mut self, header: Header, len: usize) -> Option<Place> {
        self.drop_places(self.arrived);
        let (frame, expected, place) = self.places.front()?;
        let fits = *frame == self.arrived && *expected == header && place.len() == len;
        if fits { self.places.pop_front().map(|(.., place)| place) } else { None }
    }

    #[inline]
    fn drop_places(&mut self, before: u64) {
        while self.places.front().is_some_and(|(frame, ..)| *frame < before) {
            self.places.pop_front();
        }
    }

    /// Places that were offered are not touched any more: what has come to them is moved out.
    pub(super) fn withdraw(&mut self) {
        self.places.clear();
        self.frames.iter_mut().for_each(|(_, body)| body.move_out());
    }

    fn limit(&self) -> u64 {
        self.granted.max(WINDOW)
    }

    /// Whether it is owed tidings of releases.
    pub(super) fn owes(&self) -> bool {
        self.told != self.releases
    }

    /// Write what was released, if it does not know.
    #[inline]
    pub(super) fn tell(&mut self, number: u64, out: &mut Vec<u8>) {
        if self.owes() {
            self.told = self.releases;
            self.granted = self.limit().max(self.taken + WINDOW);
            Pen(out, number).release(self.releases, self.granted);
        }
    }

    /// I look for something from it in vain: whether it has something for which it has no credit; if so, it gets it.
    #[inline]
    pub(super) fn solicit(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        if self.wanted <= self.limit() {
            return false;
        }
        self.granted = self.wanted;
        self.told = self.releases;
        Pen(out, number).release(self.releases, self.granted);
        true
    }
}

impl Outbound {
    /// A frame was posted: whether it may leave now.
    #[inline]
    pub(super) fn posts(&mut self, len: usize) -> bool {
        self.posted += 1;
        self.bytes += cost(len);
        let fits = self.waiting.is_empty() && self.bytes <= self.limit();
        if fits {
            self.sent = self.bytes;
        }
        fits
    }

    fn limit(&self) -> u64 {
        self.granted.max(WINDOW)
    }

    /// Keep a frame that may not leave.
    pub(super) fn keep(&mut self, frame: Vec<u8>) {
        self.waiting.push_back(frame);
    }

    /// Whether frames wait for credit.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Write the frames that may leave, or all; and how much more there is. Gives whether anything was written.
    pub(super) fn let_go(&mut self, number: u64, out: &mut Vec<u8>, all: bool) -> bool {
        let before = out.len();
        while let Some(frame) = self.waiting.front() {
            let sent = self.sent + frame.len() as u64;
            if !all && sent > self.limit() {
                break;
            }
            self.sent = sent;
            out.extend_from_slice(frame);
            self.waiting.pop_front();
        }
        if let Some(frame) = self.waiting.front()
            && self.wanted <= self.limit()
        {
            let least = self.sent + frame.len() as u64;
            self.wanted = self.bytes.min(self.limit().saturating_add(WINDOW)).max(least);
            Pen(out, number).want(self.wanted);
        }
        out.len() > before
    }

    /// It will read nothing more.
    pub(super) fn forget(&mut self) {
        self.waiting = VecDeque::new();
    }
}
