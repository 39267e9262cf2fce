//! What moves between ranks: the one trait that every protocol of the runtime is written against.
//!
//! There are two ways to say something. *Letters* are an all-to-all exchange, one for each fence of the whole world: a
//! rank drafts a letter to every rank (itself too), publishes them together, and reads everybody else's. *Frames* are
//! first in, first out, for each ordered pair of ranks. Posting, looking and waiting are apart: nothing but
//! [`Transport::idle`] ever waits, so whoever waits decides what it looks at meanwhile.
//!
//! # Contract
//!
//! - What a rank posts before it publishes has come to whoever has read its letter of that exchange.
//! - What a rank has sent comes without more of its doing: it may compute, or wait in another world, until it ends.
//! - Letters are drafted twice over: a rank may publish the next exchange while others still read this one. It can't
//!   run further ahead, since it must have read every other rank's letter of an exchange before it publishes the next (W5).
//! - Memory that a letter or a frame leads to may be read once the letter or frame has come (W1), and belongs to its
//!   owner again once the reader has settled the exchange, or released the frame (W2, W4).
//! - What a rank sent before it left is still received; then every wait for more ends in [`Lost`], naming it.
//! - A rank that has left touches nobody's memory any more. What it owns that others may read stays as it is until
//!   they have released it: leaving lifts no obligation.
//!
//! # How to wait
//!
//! Look at all that one waits for; call `idle` if that was fruitless; look again. A look must lie between any two calls
//! of `idle` with the same [`Pause`]: it is that look which makes falling asleep safe.

#![cfg_attr(
    loom,
    expect(clippy::arc_with_non_send_sync, reason = "loom's cells are not Sync: loom checks instead")
)]

#[cfg(not(target_os = "linux"))]
compile_error!("Fencepost is tried on Linux, and built for nothing else");

#[cfg(not(loom))]
pub mod auth;
#[cfg_attr(loom, allow(dead_code, reason = "no model waits in this way"))]
pub mod deadlock;
mod endpoint;
#[cfg(not(loom))]
mod hybrid;
mod local;
mod memory;
mod meter;
#[cfg(all(loom, test))]
mod models;
mod shared;
#[cfg(not(loom))]
mod shm;
mod sim;
#[cfg_attr(loom, allow(dead_code, unused_imports, reason = "some of it only sockets say"))]
mod stream;
mod sync;
#[cfg(not(loom))]
mod tcp;

use std::{fmt, io};

pub use endpoint::Endpoint;
#[cfg(not(loom))]
pub use hybrid::{MixedEnd, mixed};
pub use local::{LocalEnd, local};
pub use memory::{Bytes, Done, Memory, Until};
pub use meter::{Count, Meter};
pub use shared::waker::{Pause, more_ranks_than_cores};
#[cfg(not(loom))]
pub use shm::{Segment, ShmEnd, shm};
#[cfg(feature = "testing")]
pub use sim::config::{Altered, Deed, Tamper};
pub use sim::config::{Lose, SimConfig};
pub use sim::fault::{Fault, Mishap};
pub use sim::{SimEnd, sim};
#[cfg(any(feature = "testing", fuzzing))]
#[doc(hidden)]
pub use stream::decode;
#[doc(hidden)]
#[cfg(not(loom))]
pub use tcp::fuzz;
#[cfg(not(loom))]
pub use tcp::{Fabric, Settings, TcpEnd, listen, tcp, tcp_with};

/// One record: a one-element operation in wire form.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Record {
    /// What is done, where, and by which line.
    pub head: u64,
    /// The operand's bits.
    pub value: u64,
}

/// What one rank tells another at a fence of the whole world: one cache line with its exchange's number.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Letter {
    /// A hash of the epoch's number, superstep and windows; [`Transport::publish`] writes it.
    pub word: u64,
    /// What else the fence has to say in one bit each.
    pub flags: u32,
    /// How many records.
    pub count: u32,
    /// Where what is counted lies, for one who reaches the sender's memory; else 0.
    pub address: usize,
    /// The first records.
    pub inline: [Record; 2],
}

/// What a frame says before its payload.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Header {
    /// The epoch's number (high half) and half of a hash of superstep, schedule and windows: every waiter compares it (W1).
    pub word: u64,
    /// What the frame is; the transports only count by it.
    pub kind: u32,
    /// One more number, for the protocol: for compiled supersteps the other half of the hash.
    pub extra: u32,
}

/// A frame that has come. The payload is readable until the frame is released, and no longer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// What it says.
    pub header: Header,
    /// Its first byte; where the sender's memory is not reached, it lies on a multiple of 16, or in the place that was
    /// [offered](Transport::offer).
    pub payload: *const u8,
    /// How many bytes.
    pub len: usize,
}

/// What a world that was laid out is known by to those who enter it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number {
    /// The world's number, by its first member.
    pub world: u64,
    /// That of the part of it whose ranks have one [`host`](Transport::host), by the first member there.
    pub part: u64,
}

/// How a rank leaves its world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Its closure returned a value.
    Finished,
    /// Its closure returned an error: this one.
    Failed(String),
    /// It panicked, saying this.
    Panicked(String),
}

/// Why the world ends, and through whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The rank that is at fault.
    pub rank: usize,
    /// What happened there.
    pub what: String,
}

/// What can't come any more, because of whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The rank that is at fault.
    pub rank: usize,
    /// What became of it.
    pub how: Loss,
}

/// What became of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It left.
    Left(Leave),
    /// The way to it was cut.
    Cut,
    /// It died without a word, as whoever watches it has found: so.
    Died(String),
    /// The world was ended because of it, saying this.
    Ended(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        match &self.how {
            Loss::Left(Leave::Finished) => write!(f, "rank {rank} has finished and left the world"),
            Loss::Left(Leave::Failed(why)) => write!(f, "rank {rank} left the world with an error: {why}"),
            Loss::Left(Leave::Panicked(why)) => write!(f, "rank {rank} panicked: {why}"),
            Loss::Died(how) => write!(f, "rank {rank} died: {how}"),
            Loss::Cut => write!(f, "rank {rank} was cut off"),
            Loss::Ended(why) => write!(f, "the world was ended because of rank {rank}: {why}"),
        }
    }
}

impl std::error::Error for Lost {}

/// One rank's end of a world; see the [module](self) for the contract.
pub trait Transport {
    /// This rank.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Whether the memory of `peer` can be touched from here: its windows, and the payloads that it posts, lie at the
    /// same addresses for both.
    fn reaches(&self, peer: usize) -> bool;

    /// Whether `peer` is a thread of this process, so that values of Rust types may be handed over by reference. Who
    /// shares with a rank reaches it, too.
    fn shares(&self, peer: usize) -> bool {
        self.reaches(peer)
    }

    /// Where `peer` is: ranks reach one another if they have the same number here. Without more, all do or nobody does.
    fn host(&self, peer: usize) -> usize {
        if self.reaches(peer) { 0 } else { peer }
    }

    /// Lay out a new world of these ranks of mine, in their order in it. The first of them does it, and the first of each
    /// [`host`](Self::host); they hand their numbers to the others, and each then calls [`enter`](Self::enter). `None`
    /// where worlds are laid out by whoever started the ranks, as threads of one process.
    ///
    /// # Errors
    /// There is no room for it.
    fn found(&mut self, members: &[usize]) -> io::Result<Option<Number>> {
        let _ = members;
        Ok(None)
    }

    /// My end of the world that [`found`](Self::found) gave this number to: that of the world by its first member, that of
    /// my part by the first member on my host. I am `members[index]`. Once for each world.
    ///
    /// # Errors
    /// The number is none that was given out, or there is no room.
    fn enter(&mut self, number: Number, members: &[usize], index: usize) -> io::Result<Endpoint> {
        let _ = (number, members, index);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where what others are to read in place should lie.
    fn memory(&self) -> Memory {
        Memory::heap()
    }

    /// I need this memory no more, but ranks of this world may still read it `until` then: give it back at a later call,
    /// or when the world is over. It was allocated from [`memory`](Self::memory).
    fn keep(&mut self, memory: Vec<Bytes>, until: Until) {
        drop((memory, until)); // who does not reach it has it copied
    }

    /// The draft of my letter to `to` for the next exchange. It holds what was last written there: write every field.
    fn letter(&mut self, to: usize) -> &mut Letter;

    /// Send all drafts, each with this word. Any word will do, the same one twice, too.
    ///
    /// # Errors
    /// The world was ended, or I left it, or was cut off.
    ///
    /// # Panics
    /// If another rank's letter of the exchange before was not read (W5).
    fn publish(&mut self, word: u64) -> Result<(), Lost>;

    /// The letter of `from` of the exchange that I published last, once it has come; it may be read again until the
    /// next is published. Before the first exchange there are no letters.
    ///
    /// # Errors
    /// The letter has not come and can't: `from` left, or the world was ended.
    fn read(&mut self, from: usize) -> Result<Option<&Letter>, Lost>;

    /// The second half of the same exchange, where it needs one: tell everybody that I have done with their memory.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    fn settle(&mut self) -> Result<(), Lost>;

    /// Whether `from` has settled the exchange that I published last.
    ///
    /// # Errors
    /// It has not and can't: `from` left, or the world was ended. One that left touches nothing any more.
    fn settled(&mut self, from: usize) -> Result<bool, Lost>;

    /// Post a frame; never blocks.
    ///
    /// # Errors
    /// The world was ended, or I or `to` left it: the frame was not posted.
    ///
    /// # Safety
    /// `payload` is valid for reads of `len` bytes. Where [`shares(to)`](Self::shares), and where it lies in
    /// [`memory`](Self::memory) of this end and [`reaches(to)`](Self::reaches), it is not copied, and must stay valid and
    /// unchanged until [`released(to)`](Self::released) counts this frame, whatever happens meanwhile.
    unsafe fn post(&mut self, to: usize, header: Header, payload: *const u8, len: usize) -> Result<(), Lost>;

    /// The oldest frame from `from` that I have not released, if it has come.
    ///
    /// # Errors
    /// There is none, and there can't come one: `from` left, or the world was ended.
    fn poll(&mut self, from: usize) -> Result<Option<Frame>, Lost>;

    /// The payload of the frame from `from` that comes after `ahead` others which I have not released may be put here as
    /// it comes, if it has this header and is `len` bytes long; [`poll`](Self::poll) then gives it here. A transport need
    /// not: it has always done so before the frame is polled, or does not any more.
    ///
    /// # Safety
    /// `to` is valid for reads and writes of `len` initialised bytes until that frame is released, and nobody else touches
    /// them until it is polled; or until places of `from` are [withdrawn](Self::withdraw), or this end is dropped.
    unsafe fn offer(&mut self, from: usize, ahead: u64, header: Header, to: *mut u8, len: usize) {
        let _ = (from, ahead, header, to, len);
    }

    /// Places that I have offered for frames from `from` are not touched any more; what has come to them is copied.
    fn withdraw(&mut self, from: usize) {
        let _ = from;
    }

    /// I have done with the frame that [`poll`](Self::poll) gave me from `from`.
    ///
    /// # Panics
    /// If there is none.
    fn release(&mut self, from: usize);

    /// How many of the frames that I posted to `to` it has released, ever; all of them, once it has left.
    fn released(&mut self, to: usize) -> u64;

    /// What keeps `peer` from sending me anything more, if something does; what it sent before may still be here.
    fn lost(&mut self, peer: usize) -> Option<Lost>;

    /// One step of waiting after a fruitless look: spin, then yield, then sleep in the kernel until something that may
    /// concern this rank happens (and at least once a second, so that the caller can report a stall).
    fn idle(&mut self, pause: &mut Pause);

    /// I leave for good: how, and why. Later calls give [`Lost`], or nothing. Dropping an end leaves, too, as a failure.
    fn leave(&mut self, how: Leave);

    /// End the world for all ranks; the first cause is the one that everybody sees.
    fn end(&mut self, cause: Cause);

    /// I enter the superstep of this word: whoever waits for me in vain can see that I am elsewhere. Nobody is woken for
    /// it: who sleeps sees it when it looks again, within a second.
    fn announce(&mut self, word: u64);

    /// The word of the superstep that `peer` entered last; 0 before the first.
    fn announced(&self, peer: usize) -> u64;

    /// Whether all that `from` has posted so far has come and was taken, as far as can be told from here.
    fn drained(&mut self, from: usize) -> bool;

    /// Whether a look finds all that `from` had sent me before the wait that I have just read it is in: nothing of that is
    /// still on its way. False where that can't be told.
    fn quiet(&mut self, from: usize) -> bool {
        let _ = from;
        false
    }

    /// Whom each rank of the job waits for, where that is not told by threads to one another. This end is of one of its
    /// first worlds: those that all ranks are in.
    #[doc(hidden)]
    fn waits(&self) -> Option<deadlock::Waits> {
        None
    }

    /// I begin, or have ended, to touch memory of others. Gives whether I may begin: not once the world was ended.
    fn touching(&mut self, on: bool) -> bool;

    /// Whether `peer` may be touching memory of others. Once the world was ended and this is false, it stays false.
    fn is_touching(&self, peer: usize) -> bool;

    /// What this rank has sent so far.
    fn meter(&self) -> &Meter;
}

/// How an end that is dropped before it leaves does leave.
fn dropped() -> Leave {
    if std::thread::panicking() {
        Leave::Panicked("its thread was unwound".into())
    } else {
        Leave::Failed("its end of the world was dropped".into())
    }
}
