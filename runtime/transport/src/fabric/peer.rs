//! [`Peer`]: one other rank of the job, and the connection to it, if it exists.

use std::io;
use std::time::Instant;

use crate::fabric::carrier::{Carrier, Connection, Opening, Outgoing};
use crate::stream::ItemWriter;

/// The maximum number of bytes of items that wait for the next write. If there are more, they are
/// written at once.
pub(crate) const PACKED: usize = 32 << 10;

/// One other rank of the job.
pub struct Peer<C: Carrier> {
    pub(crate) link: Option<Box<C::Connection>>,
    pub(crate) opening: C::Opening,
    /// Whether that rank has announced that it sends nothing more on this connection.
    pub(crate) heard_rest: bool,
    /// Bytes for that rank.
    pub(crate) out: Outgoing,
    /// How many of these bytes need no connection of their own. Such bytes report that this rank
    /// has left worlds as finished, that it has left worlds after their end, or that a world has
    /// ended because of a death that the launcher reports to all ranks.
    pub(crate) deferred: usize,
    /// The error with which that rank left a world, unless it has since left a world without an
    /// error.
    pub(crate) failed: Option<String>,
    /// Why that rank died, if it has died.
    pub(crate) died: Option<String>,
    /// Whether its launcher has reported its death to all ranks.
    pub(crate) reported: bool,
    /// Whether its process is known to have ended.
    pub(crate) has_ended: bool,
    /// Why that rank is suspected to have died, and the time at which it is marked failed for this
    /// reason, unless its launcher has reported another reason before that time.
    pub(crate) suspected: Option<(Instant, String)>,
    /// Whether its launcher has reported that this peer left all its worlds as finished, and ended.
    pub(crate) finished: bool,
    /// Whether this rank knows only from the launcher that the peer has finished.
    pub(crate) untold: bool,
    /// Once the peer has sent a goodbye: the time until which its launcher may report how it ended.
    /// Without a report, the peer counts as successful.
    pub(crate) closing: Option<Instant>,
    /// Whether a poll of this rank found nothing from the peer.
    pub(crate) awaited_by_us: bool,
    /// Whether something was written that is to be flushed.
    pub(crate) dirty: bool,
    pub(crate) said_goodbye: bool,
    pub(crate) heard_goodbye: bool,
    pub(crate) heard_farewell: bool,
    /// Whether something was received since `heard_at`. The next field records whether something
    /// was sent since `spoke_at`.
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

    /// Returns whether this rank has announced that it sends nothing more on the connection.
    pub(crate) fn is_resting(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_resting())
    }

    /// Returns whether both sides have announced that they send nothing more, and nothing is left
    /// to send.
    pub(crate) fn has_rested(&self) -> bool {
        self.heard_rest && self.is_resting() && !self.unsent()
    }

    /// Returns whether bytes for the peer can no longer arrive, because the peer has died, cannot
    /// be reached, or has sent a goodbye.
    pub(crate) fn is_gone(&self) -> bool {
        self.died.is_some() || self.suspected.is_some() || self.heard_goodbye
    }

    /// Returns whether neither rank needs signs of life from the other. Over a carrier without
    /// connections, a rank that has sent a goodbye still waits for the goodbye of the other rank.
    pub(super) fn has_parted(&self) -> bool {
        if C::IS_CONNECTIONLESS {
            self.said_goodbye && self.heard_goodbye
        } else {
            self.said_goodbye || self.heard_goodbye
        }
    }

    /// Returns whether there is no connection to the peer, and none is being established.
    pub(crate) fn is_apart(&self) -> bool {
        self.link.is_none() && !self.opening.is_under_way() && !self.opening.is_due_again()
    }

    /// Returns whether there is no connection to the peer, and none is needed: no bytes were
    /// written that need one, and no frames wait for credit (`waiting`).
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

    /// Returns the error with which the peer left its last world, if the peer then ended by itself,
    /// outside of all worlds.
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
    /// Fails if the connection has ended.
    pub(crate) fn flush(&mut self, carrier: &mut C) -> io::Result<()> {
        if let Some(link) = &mut self.link {
            self.spoke |= link.flush(carrier, &mut self.out)?;
        }
        Ok(())
    }

    /// Returns whether it is better to pass on a payload of `bytes` bytes from its own memory than
    /// to pack it first.
    pub(super) fn takes_in_place(&self, bytes: usize) -> bool {
        bytes > PACKED / 4 && self.link.as_deref().is_some_and(|link| link.takes_in_place())
    }

    /// Packs a payload. Then writes all bytes that wait, if there are more than [`PACKED`].
    ///
    /// # Errors
    /// Fails if the connection has ended.
    pub(super) fn pack(&mut self, carrier: &mut C, payload: &[u8]) -> io::Result<()> {
        self.out.bytes.extend_from_slice(payload);
        if self.out.bytes.len() - self.out.sent > PACKED { self.flush(carrier) } else { Ok(()) }
    }

    /// Passes on the bytes that wait, and then as much of this payload as the connection takes.
    /// Returns how many bytes of the payload were passed on.
    ///
    /// # Errors
    /// Fails if the connection has ended.
    pub(super) fn pass_in_place(&mut self, carrier: &mut C, payload: &[u8]) -> io::Result<usize> {
        let Some(link) = &mut self.link else { return Ok(0) };
        let (spoke, taken) = link.pass_in_place(carrier, &mut self.out, payload)?;
        self.spoke |= spoke;
        Ok(taken)
    }

    /// Passes on the bytes that wait, and lends this payload to the connection if the connection
    /// accepts it. Returns whether the connection has accepted the payload.
    ///
    /// # Errors
    /// Fails if the connection has ended.
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
