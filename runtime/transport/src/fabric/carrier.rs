//! [`Carrier`]: carries bytes between this rank and other ranks.
//!
//! A fabric decides which bytes are written for which rank, and interprets the bytes that arrive.
//! Its carrier moves the bytes. For each ordered pair of ranks, the carrier moves each byte once,
//! in the order in which the bytes were written. At each call it moves as many bytes as it can. The
//! carrier reports how a connection ends ([`Core::connection_ended`], [`Core::suspect`],
//! [`Core::mark_failed`]), and knows nothing of worlds. A carrier is called under the lock of the
//! core, and never waits under that lock. A thread that has to wait does so in [`Arrivals`],
//! without the lock.

use std::io;
use std::time::{Duration, Instant};

use crate::Lent;
use crate::fabric::core::Core;
use crate::fabric::waker::EventWaker;
use crate::stream::{Decoder, Intake};

/// A carrier of a fabric's bytes.
pub trait Carrier: Sized + Send + 'static {
    /// A connection to one other rank.
    type Connection: Connection<Self>;

    /// The state of opening a connection to one other rank.
    type Opening: Opening;

    /// The place where a thread waits until something arrives.
    type Arrivals: Arrivals;

    /// Whether a connection needs no consent of the other side. If so, a rank reads what any rank
    /// has sent. When the rank ends, it sends a goodbye to each other rank, because these ranks
    /// could not notice otherwise that it has ended.
    const IS_CONNECTIONLESS: bool = false;

    /// Whether memory that was lent for a transfer may still be in use after the call that has lent
    /// it.
    const LENDS: bool = false;

    /// Takes in all that has arrived from any rank.
    fn serve_ready(core: &mut Core<Self>);

    /// Takes in the arrivals that a wait has found.
    fn serve(core: &mut Core<Self>, found: &Found<Self>);

    /// Prepares for a thread that is going to wait until something arrives from any rank.
    fn watch(core: &mut Core<Self>);

    /// Undoes [`watch`](Self::watch).
    fn unwatch(core: &mut Core<Self>);

    /// Opens a connection to `to`. Does nothing if there is a connection, if a connection is being
    /// opened, or if none can be opened.
    fn connect(core: &mut Core<Self>, to: usize);

    /// Stops using the connection to `rank`. The caller closes the connection next.
    fn disconnect(core: &mut Core<Self>, rank: usize);

    /// Passes on what was written for `to`, as far as the connection takes it now. There is a
    /// connection to `to`.
    fn send(core: &mut Core<Self>, to: usize);

    /// Passes on a heartbeat. A heartbeat is no reason to keep the connection open.
    fn send_beat(core: &mut Core<Self>, to: usize);

    /// Counts a use of this connection.
    fn note_use(&mut self, connection: &mut Self::Connection);

    /// Called when the connection to `from` has ended. If both sides had agreed to end it, cleans
    /// up. Returns whether they had agreed.
    fn has_ended_by_agreement(core: &mut Core<Self>, from: usize) -> bool;

    /// Returns whether there are more ranks than this rank may have connections to.
    fn is_limited(core: &Core<Self>) -> bool;

    /// Does the work that is due at certain times. `stopped` is the time for which this process was
    /// stopped, if it was. If this process shares its cores with many others, anything may take
    /// `patience` times as long.
    fn run_timers(core: &mut Core<Self>, now: Instant, stopped: Option<Duration>, patience: u32);

    /// Returns whether memory that was lent for transfers to or from `rank` is still in use, as far
    /// as is known. First moves the bytes that can be moved now. If the memory in use is only read,
    /// returns [`Lent::ForGood`], which the caller uses only if the process of `rank` has ended.
    fn lent(core: &mut Core<Self>, rank: usize) -> Lent {
        let _ = (core, rank);
        Lent::Nothing
    }

    /// Called when nothing more is sent or received. `in_order` is true if the thread that drops
    /// the fabric calls this and no rank has failed. If a rank has failed and the other ranks have
    /// had their [grace](crate::fabric::Limits::grace), any thread may call this.
    fn end(&mut self, in_order: bool) {
        let _ = in_order;
    }

    /// Returns `true` if the thread that drops the fabric neither waits for the end of the fabric
    /// nor calls [`end`](Self::end).
    fn ends_in_background(&self) -> bool {
        false
    }
}

/// The arrivals that a wait has found.
pub type Found<C> = <<C as Carrier>::Arrivals as Arrivals>::Found;

/// The place where a thread waits, without the lock of the core, until something arrives.
pub trait Arrivals: Send + Sync {
    /// The arrivals that a wait has found.
    type Found: Default + Send;

    /// Waits for at most `limit` until something arrives or the rank is woken. Writes the arrivals
    /// to `found`, and returns whether `found` may contain all arrivals.
    fn wait(&self, limit: Duration, found: &mut Self::Found) -> bool;

    /// Waits for at most `limit` until something may have arrived or `waker` is woken.
    fn wait_with(&self, waker: &EventWaker, limit: Duration);
}

/// The state of opening a connection to one other rank.
pub trait Opening: Send {
    /// Returns whether one of the two ranks is opening a connection.
    fn is_under_way(&self) -> bool;

    /// Returns whether this rank should try again to open a connection.
    fn is_due_again(&self) -> bool;

    /// Gives up opening a connection.
    fn abandon(&mut self);
}

/// Bytes that were written for one rank.
#[derive(Default)]
pub struct Outgoing {
    /// The bytes. The bytes before index `sent` were passed on.
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: usize,
    /// Memory for a frame that has to wait.
    pub(crate) spare: Vec<u8>,
}

/// A connection to one other rank. Every error of a connection means that the connection has ended.
pub trait Connection<C>: Send {
    /// If receiving needs the carrier, receives the bytes that [`read`](Self::read) takes in
    /// afterwards.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    fn receive(&mut self, carrier: &mut C) -> io::Result<()> {
        let _ = carrier;
        Ok(())
    }

    /// Takes in what has arrived. Stops before a long payload that has no receive buffer yet. The
    /// next call takes that payload in. `scratch` is memory to read into.
    fn read(&mut self, scratch: &mut [u8], intake: &mut impl Intake) -> ReadOutcome;

    /// Passes on as much as the connection takes now. Returns whether anything was passed on.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    fn flush(&mut self, carrier: &mut C, out: &mut Outgoing) -> io::Result<bool>;

    /// Returns whether it is better to pass on a long payload from its own memory than to copy it
    /// to the outgoing bytes first.
    fn takes_in_place(&self) -> bool;

    /// Passes on what was written, and then as much of this payload as the connection takes now.
    /// Returns whether anything was passed on, and how many bytes of the payload were passed on.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    fn pass_in_place(
        &mut self,
        carrier: &mut C,
        out: &mut Outgoing,
        payload: &[u8],
    ) -> io::Result<(bool, usize)>;

    /// Passes on what was written, and lends the payload to the connection if that is worth it.
    /// Returns whether the payload was lent.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    ///
    /// # Safety
    /// Nobody writes the payload, and it stays at its address, until [`Carrier::lent`] reports that
    /// it is no longer in use.
    unsafe fn pass_lent(&mut self, carrier: &mut C, out: &mut Outgoing, payload: &[u8]) -> io::Result<bool> {
        let _ = (carrier, out, payload);
        Ok(false)
    }

    /// Returns whether anything is still to be passed on.
    fn is_behind(&self, out: &Outgoing) -> bool;

    /// Returns whether the connection did not take all that the last call was to pass on.
    fn awaits_room(&self) -> bool;

    /// Returns whether this rank has announced that it sends nothing more on this connection.
    fn is_resting(&self) -> bool;

    /// Closes the connection.
    fn close(self);

    /// Returns the decoder of the items that arrive.
    fn decoder(&self) -> &Decoder;

    /// Returns the decoder, to change it.
    fn decoder_mut(&mut self) -> &mut Decoder;
}

/// A receiver may pre-post a buffer for a payload that is arriving only if at least this many bytes
/// of the payload are missing.
pub(crate) const BIG: usize = 16 << 10;

/// The result of reading a connection.
pub enum ReadOutcome {
    /// Nothing was there.
    Nothing,
    /// Something was there.
    Something {
        /// Whether everything that was there has been read, as far as this end can know.
        all: bool,
    },
    /// The connection has ended. The text is the reason.
    Ended(String),
    /// Bytes have arrived that no correct rank would have sent. The text is the reason.
    Malformed(String),
}
