//! [`Peer`]: one other rank of the job, and the connection to it, if it exists.

use std::io;
use std::time::Instant;

use crate::fabric::carrier::{Carrier, Connection, Opening, Outgoing};
use crate::stream::ItemWriter;

/// The most bytes of items that wait for the next write; beyond, what is posted is written at once.
pub(crate) const PACKED: usize = 32 << 10;

/// One other rank of the job.
pub struct Peer<C: Carrier> {
    pub(crate) link: Option<Box<C::Connection>>,
    pub(crate) opening: C::Opening,
    /// It sends nothing more on this connection.
    pub(crate) heard_rest: bool,
    /// Bytes for that rank.
    pub(crate) out: Outgoing,
    /// How many of these bytes need no connection of their own: they say that this rank has left
    /// worlds as finished, or which had ended, or that a world has ended because of a death that
    /// the launcher reports to all.
    pub(crate) deferred: usize,
    /// The error with which it left a world, if it left none without an error since.
    pub(crate) failed: Option<String>,
    /// It has died, for this reason.
    pub(crate) died: Option<String>,
    /// Its launcher has reported that to all ranks.
    pub(crate) reported: bool,
    /// Its process is known to have ended.
    pub(crate) has_ended: bool,
    /// It is suspected to have died, for this reason; it is marked failed at this time, unless its
    /// launcher reports another.
    pub(crate) suspected: Option<(Instant, String)>,
    /// Its launcher has reported that it left all its worlds as finished, and ended.
    pub(crate) finished: bool,
    /// This rank knows that from the launcher only.
    pub(crate) untold: bool,
    /// It has sent a goodbye; it has succeeded, unless its launcher reports otherwise before this
    /// time.
    pub(crate) closing: Option<Instant>,
    /// A poll of this rank found nothing from it.
    pub(crate) awaited_by_us: bool,
    /// Something was written that is to be flushed.
    pub(crate) dirty: bool,
    pub(crate) said_goodbye: bool,
    pub(crate) heard_goodbye: bool,
    pub(crate) heard_farewell: bool,
    /// Something was received, or sent, since the times below.
    pub(crate) heard: bool,
    pub(crate) spoke: bool,
    pub(crate) heard_at: Instant,
    pub(crate) spoke_at: Instant,
}

impl<C: Carrier> Peer<C> {
    pub(super) fn new(opening: C::Opening, now: Instant) -> Self {
        Self {
            link: None,
            opening,
            heard_rest: false,
            out: Outgoing::default(),
            deferred: 0,
            failed: None,
            died: None,
            reported: false,
            has_ended: false,
            suspected: None,
            finished: false,
            untold: false,
            closing: None,
            awaited_by_us: false,
            dirty: false,
            said_goodbye: false,
            heard_goodbye: false,
            heard_farewell: false,
            heard: false,
            spoke: false,
            heard_at: now,
            spoke_at: now,
        }
    }

    /// Uses this connection from now on.
    pub(crate) fn open(&mut self, connection: C::Connection, now: Instant) {
        self.link = Some(Box::new(connection));
        (self.heard_at, self.spoke_at) = (now, now);
        (self.deferred, self.heard_rest) = (0, false);
    }

    /// Returns whether this rank has said that it sends nothing more on the connection.
    pub(crate) fn is_resting(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_resting())
    }

    /// Returns whether both sides have said so, and nothing is to be sent any more.
    pub(crate) fn has_rested(&self) -> bool {
        self.heard_rest && self.is_resting() && !self.unsent()
    }

    /// Returns whether nothing that is written for it arrives any more: it has died, cannot be
    /// reached, or has sent a goodbye.
    pub(crate) fn is_gone(&self) -> bool {
        self.died.is_some() || self.suspected.is_some() || self.heard_goodbye
    }

    /// Returns whether neither rank needs to hear that the other one is still there. Over a carrier
    /// without connections, a rank that has said goodbye still waits for the other one's.
    pub(super) fn has_parted(&self) -> bool {
        if C::IS_CONNECTIONLESS {
            self.said_goodbye && self.heard_goodbye
        } else {
            self.said_goodbye || self.heard_goodbye
        }
    }

    /// Returns whether there is no connection to it, nor one that is being established.
    pub(crate) fn is_apart(&self) -> bool {
        self.link.is_none() && !self.opening.is_under_way() && !self.opening.is_due_again()
    }

    /// Returns whether it is apart, and nothing was written or waits for credit (`waiting`) that
    /// needs a connection.
    pub(crate) fn needs_nothing(&self, waiting: bool) -> bool {
        self.is_apart() && !self.wants_connection() && !waiting
    }

    /// Returns whether something was written that needs a connection.
    pub(crate) fn wants_connection(&self) -> bool {
        self.out.bytes.len() > self.deferred
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        if let Some(link) = self.link.take() {
            link.close();
        }
        self.opening.abandon();
        (self.out, self.deferred, self.heard_rest) = (Outgoing::default(), 0, false);
    }

    /// Returns the error with which it left its last world before it ended by itself, in no world.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.failed.as_deref().filter(|_| self.heard_goodbye)
    }

    /// Returns whether anything is still to be passed on.
    pub(crate) fn unsent(&self) -> bool {
        match &self.link {
            Some(link) => link.is_behind(&self.out),
            None => self.out.sent < self.out.bytes.len(),
        }
    }

    /// Passes on as much as the connection takes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn flush(&mut self, carrier: &mut C) -> io::Result<()> {
        if let Some(link) = &mut self.link {
            self.spoke |= link.flush(carrier, &mut self.out)?;
        }
        Ok(())
    }

    /// Returns whether a payload of `bytes` bytes is better passed on from where it is than packed
    /// first.
    pub(super) fn takes_in_place(&self, bytes: usize) -> bool {
        bytes > PACKED / 4 && self.link.as_deref().is_some_and(|link| link.takes_in_place())
    }

    /// Packs a payload, and writes what waits if that is enough.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn pack(&mut self, carrier: &mut C, payload: &[u8]) -> io::Result<()> {
        self.out.bytes.extend_from_slice(payload);
        if self.out.bytes.len() - self.out.sent > PACKED { self.flush(carrier) } else { Ok(()) }
    }

    /// Passes on what waits and then as much of this payload as the connection takes; returns how
    /// many of its bytes were passed on.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn pass_in_place(&mut self, carrier: &mut C, payload: &[u8]) -> io::Result<usize> {
        let Some(link) = &mut self.link else { return Ok(0) };
        let (spoke, taken) = link.pass_in_place(carrier, &mut self.out, payload)?;
        self.spoke |= spoke;
        Ok(taken)
    }

    /// Passes on what waits, and lends this payload to the connection, if it takes that; returns
    /// whether it does.
    ///
    /// # Errors
    /// The connection has ended.
    ///
    /// # Safety
    /// As for [`Connection::pass_lent`].
    pub(super) unsafe fn pass_lent(&mut self, carrier: &mut C, payload: &[u8]) -> io::Result<bool> {
        let Some(link) = &mut self.link else { return Ok(false) };
        // SAFETY: the caller's promise.
        let lent = unsafe { link.pass_lent(carrier, &mut self.out, payload) }?;
        self.spoke |= lent;
        Ok(lent)
    }

    /// Writes an item that belongs to no world.
    pub(crate) fn write_item(&mut self, what: impl FnOnce(&mut ItemWriter<'_, Vec<u8>>)) {
        what(&mut ItemWriter(&mut self.out.bytes, 0));
    }
}
