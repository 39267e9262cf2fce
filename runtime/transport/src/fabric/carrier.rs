//! [`Carrier`]: what carries bytes to other ranks, and theirs to this one.
//!
//! A fabric decides what is written for whom, and what that which arrives means. Its carrier moves
//! the bytes: for each pair of ranks and direction in the order in which they were written, each
//! once, as many at a time as it can. It reports how a connection ends ([`Core::connection_ended`],
//! [`Core::suspect`], [`Core::mark_failed`]), and knows nothing of worlds. It is called under the
//! lock of the core, and never waits there; where a thread waits without that lock is [`Arrivals`].

use std::io;
use std::time::{Duration, Instant};

use crate::Lent;
use crate::fabric::core::Core;
use crate::fabric::waker::EventWaker;
use crate::stream::{Decoder, Intake};

/// What carries the bytes of a fabric.
pub trait Carrier: Sized + Send + 'static {
    /// A connection to one other rank.
    type Connection: Connection<Self>;

    /// What opens a connection to one other rank.
    type Opening: Opening;

    /// Where a thread waits until something arrives.
    type Arrivals: Arrivals;

    /// Whether a connection needs nobody's consent. A rank then reads what any rank has sent, and
    /// says goodbye to each, because none could see that it has ended.
    const IS_CONNECTIONLESS: bool = false;

    /// Whether memory that was lent for a transfer may be in use after the call.
    const LENDS: bool = false;

    /// Takes in all that has arrived from any rank.
    fn serve_ready(core: &mut Core<Self>);

    /// Takes in what a wait has found.
    fn serve(core: &mut Core<Self>, found: &Found<Self>);

    /// Prepares for a thread that waits until something arrives from any rank.
    fn watch(core: &mut Core<Self>);

    /// Undoes [`watch`](Self::watch).
    fn unwatch(core: &mut Core<Self>);

    /// Opens a connection to `to`, unless there is one, one is being opened, or none can be opened.
    fn connect(core: &mut Core<Self>, to: usize);

    /// Lets go of the connection to `rank`, which is closed next.
    fn disconnect(core: &mut Core<Self>, rank: usize);

    /// Passes on what was written for `to`, to which there is a connection, as far as it takes that
    /// now.
    fn send(core: &mut Core<Self>, to: usize);

    /// Passes on a heartbeat, which is no reason to keep the connection.
    fn send_beat(core: &mut Core<Self>, to: usize);

    /// Counts a use of this connection.
    fn note_use(&mut self, connection: &mut Self::Connection);

    /// Finishes with the connection of `from`, which has ended, if both sides had agreed to that;
    /// returns whether they had.
    fn has_ended_by_agreement(core: &mut Core<Self>, from: usize) -> bool;

    /// Returns whether there are more ranks than this rank may have connections to.
    fn is_limited(core: &Core<Self>) -> bool;

    /// Does what is due by time. This process was stopped for the time `stopped`, if it was; where
    /// it shares its cores with many, `patience` is how many times as long anything may take.
    fn run_timers(core: &mut Core<Self>, now: Instant, stopped: Option<Duration>, patience: u32);

    /// Returns what of the memory that was lent for transfers to or from `rank` is still in use, as
    /// far as is known, after it has moved what can be moved now: [`Lent::ForGood`] if it is only
    /// read, which ends with the process of `rank`.
    fn lent(core: &mut Core<Self>, rank: usize) -> Lent {
        let _ = (core, rank);
        Lent::Nothing
    }

    /// Called when nothing is sent or received any more, by the thread that drops the fabric, which
    /// says by `in_order` that no rank has failed; or when a rank has failed and the others have had
    /// their [grace](crate::fabric::Limits::grace), by any thread.
    fn end(&mut self, in_order: bool) {
        let _ = in_order;
    }

    /// Returns whether the thread that drops the fabric does not wait for its end, and does not
    /// call [`end`](Self::end).
    fn ends_in_background(&self) -> bool {
        false
    }
}

/// What a wait for arrivals has found.
pub type Found<C> = <<C as Carrier>::Arrivals as Arrivals>::Found;

/// Where a thread waits, without the lock of the core, until something arrives.
pub trait Arrivals: Send + Sync {
    /// What was found.
    type Found: Default + Send;

    /// Waits until something arrives, or the rank is woken, at most for this time; writes to
    /// `found` what has arrived, and returns whether that may be all.
    fn wait(&self, limit: Duration, found: &mut Self::Found) -> bool;

    /// Waits until something may have arrived, or `waker` wakes, at most for this time.
    fn wait_with(&self, waker: &EventWaker, limit: Duration);
}

/// What opens a connection to one other rank.
pub trait Opening: Send {
    /// Returns whether one of the two ranks opens a connection now.
    fn is_under_way(&self) -> bool;

    /// Returns whether a connection is to be tried again.
    fn is_due_again(&self) -> bool;

    /// Ends it.
    fn abandon(&mut self);
}

/// Bytes that were written for one rank.
#[derive(Default)]
pub struct Outgoing {
    /// Those before `sent` were passed on.
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
    /// Memory for a frame that has to wait.
    pub(crate) spare: Vec<u8>,
}

/// A connection to one other rank. All of its errors say that it has ended.
pub trait Connection<C>: Send {
    /// Receives what [`read`](Self::read) then takes in, as far as that needs the carrier.
    ///
    /// # Errors
    /// The connection has ended.
    fn receive(&mut self, carrier: &mut C) -> io::Result<()> {
        let _ = carrier;
        Ok(())
    }

    /// Takes in what has arrived; but where a long payload begins that has no receive buffer yet,
    /// stops before it, and the next call takes it in. `scratch` is memory for it.
    fn read(&mut self, scratch: &mut [u8], intake: &mut impl Intake) -> ReadOutcome;

    /// Passes on as much as it can now; returns whether that was anything.
    ///
    /// # Errors
    /// The connection has ended.
    fn flush(&mut self, carrier: &mut C, out: &mut Outgoing) -> io::Result<bool>;

    /// Returns whether a long payload is better passed on from where it is than written first.
    fn takes_in_place(&self) -> bool;

    /// Passes on what was written, and then as much of this payload as it can now; returns whether
    /// it passed on anything, and how many bytes of the payload.
    ///
    /// # Errors
    /// The connection has ended.
    fn pass_in_place(
        &mut self,
        carrier: &mut C,
        out: &mut Outgoing,
        payload: &[u8],
    ) -> io::Result<(bool, usize)>;

    /// Passes on what was written, and lends the payload, if that is worth it; returns whether it is.
    ///
    /// # Errors
    /// The connection has ended.
    ///
    /// # Safety
    /// Nobody writes the payload, which stays where it is, until [`Carrier::lent`] says otherwise.
    unsafe fn pass_lent(&mut self, carrier: &mut C, out: &mut Outgoing, payload: &[u8]) -> io::Result<bool> {
        let _ = (carrier, out, payload);
        Ok(false)
    }

    /// Returns whether anything is still to be passed on.
    fn is_behind(&self, out: &Outgoing) -> bool;

    /// Returns whether it could not pass on all that was written when it was asked last.
    fn awaits_room(&self) -> bool;

    /// Returns whether this rank has said that it sends nothing more on it.
    fn is_resting(&self) -> bool;

    /// Closes it.
    fn close(self);

    /// Returns what reads the items that arrive.
    fn decoder(&self) -> &Decoder;

    /// Returns it, to be changed.
    fn decoder_mut(&mut self) -> &mut Decoder;
}

/// The least that is missing of a payload, in bytes, for which a receiver may have a buffer.
pub(crate) const BIG: usize = 16 << 10;

/// The result of reading a connection.
pub enum ReadOutcome {
    /// Nothing was there.
    Nothing,
    /// Something was there; whether that was all, as far as this end can tell.
    Something {
        /// Whether it was all.
        all: bool,
    },
    /// The connection has ended, for this reason.
    Ended(String),
    /// No rank would send what arrived, for this reason.
    Malformed(String),
}
