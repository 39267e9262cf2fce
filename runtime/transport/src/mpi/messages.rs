//! [`Messages`]: the calls of MPI by which two ranks exchange messages, and [`Transfer`]: one
//! message in transfer, with its memory.

use crate::stream::Body;
use std::mem::{forget, take};

/// The minimum size of the memory for a message, in bytes.
pub(super) const SHORT: usize = 4 << 10;

/// The calls of MPI by which two ranks exchange messages. Messages from one rank to another arrive
/// in the order in which they were sent. None of these calls waits.
pub trait Messages: Send {
    /// Begins to send this message to `to`, with MPI_Isend.
    ///
    /// # Errors
    /// Fails if MPI fails.
    ///
    /// # Safety
    /// The bytes stay at their address, and nobody writes them, until the request is complete.
    unsafe fn send(&mut self, to: usize, bytes: &[u8]) -> Result<Request, String>;

    /// Takes the next message of `from`, or of any rank, if one has arrived, with MPI_Improbe.
    ///
    /// # Errors
    /// Fails if MPI fails.
    fn probe(&mut self, from: Option<usize>) -> Result<Option<Message>, String>;

    /// Begins to receive a message into `room`, which is as long as the message, with MPI_Imrecv.
    ///
    /// # Errors
    /// Fails if MPI fails.
    ///
    /// # Safety
    /// The room stays at its address, and nobody reads or writes it, until the request is complete.
    unsafe fn receive(&mut self, message: Message, room: &mut [u8]) -> Result<Request, String>;

    /// Returns whether a request is complete, with MPI_Test. The caller does not ask again about a
    /// complete request.
    ///
    /// # Errors
    /// Fails if MPI fails.
    fn is_complete(&mut self, request: &mut Request) -> Result<bool, String>;

    /// Ends the use of MPI. Called once nothing more is sent to this rank. `in_order` is true if no
    /// rank has failed.
    fn end(&mut self, in_order: bool);

    /// Returns `true` if nobody waits until the use of MPI has ended, for example because the ranks
    /// are threads of one process. In that case [`end`](Self::end) is not called.
    fn end_in_background(&self) -> bool {
        false
    }
}

/// The handle of a request of MPI that is not complete.
#[derive(Debug)]
pub struct Request(pub(crate) usize);

/// A message whose sender and length have arrived. Its bytes are received later.
#[derive(Debug)]
pub struct Message {
    pub(crate) from: usize,
    pub(crate) len: usize,
    pub(crate) handle: usize,
}

/// A message that is being sent or received, with its memory. MPI may use the memory until the
/// request is complete, so a transfer that is dropped before that leaks its memory.
pub(super) struct Transfer<M: Default> {
    /// `None` once the request is complete.
    request: Option<Request>,
    memory: M,
    /// Whether the memory belongs to someone else.
    is_in_place: bool,
}

impl Transfer<Vec<u8>> {
    /// Begins to send this message.
    ///
    /// # Errors
    /// Fails if MPI fails.
    pub(super) fn send(messages: &mut dyn Messages, to: usize, bytes: Vec<u8>) -> Result<Self, String> {
        // SAFETY: the bytes are on the heap, and are neither written nor freed before the request
        // is complete.
        let request = unsafe { messages.send(to, &bytes) }?;
        Ok(Self { request: Some(request), memory: bytes, is_in_place: false })
    }

    /// Begins to send this message from its own memory.
    ///
    /// # Errors
    /// Fails if MPI fails.
    ///
    /// # Safety
    /// The bytes stay at their address, and nobody writes them, until the transfer is complete,
    /// even if the transfer is dropped before.
    pub(super) unsafe fn send_in_place(
        messages: &mut dyn Messages,
        to: usize,
        bytes: &[u8],
    ) -> Result<Self, String> {
        // SAFETY: the caller's promise.
        let request = unsafe { messages.send(to, bytes) }?;
        Ok(Self { request: Some(request), memory: Vec::new(), is_in_place: true })
    }
}

impl Transfer<Body> {
    /// Begins to receive this message. If `memory` has a receive buffer of the message's length,
    /// receives into that buffer. Otherwise receives into the body's own memory, whose content is
    /// dropped.
    ///
    /// # Errors
    /// Fails if MPI fails.
    pub(super) fn receive(
        messages: &mut dyn Messages,
        message: Message,
        mut memory: Body,
    ) -> Result<Self, String> {
        let room = memory.whole_room(message.len, SHORT);
        // SAFETY: as above; a receive buffer stays until it is no longer lent.
        let request = unsafe { messages.receive(message, room) }?;
        let is_in_place = !memory.is_own();
        Ok(Self { request: Some(request), memory, is_in_place })
    }
}

impl<M: Default> Transfer<M> {
    /// Returns whether the transfer is complete.
    ///
    /// # Errors
    /// Fails if MPI fails.
    pub(super) fn is_complete(&mut self, messages: &mut dyn Messages) -> Result<bool, String> {
        if let Some(request) = &mut self.request {
            match messages.is_complete(request) {
                Ok(false) => return Ok(false),
                Ok(true) => self.request = None,
                // MPI no longer has the request, but may still use the memory, so the memory is
                // leaked.
                Err(why) => {
                    self.request = None;
                    forget(take(&mut self.memory));
                    return Err(why);
                }
            }
        }
        Ok(true)
    }

    /// Returns whether the transfer moves bytes to or from memory that belongs to someone else.
    pub(super) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// Gives up a transfer in place. Returns its request, unless MPI has failed.
    pub(super) fn give_up(mut self) -> Option<Request> {
        self.request.take()
    }

    /// Returns the memory of a transfer that is complete.
    pub(super) fn into_memory(mut self) -> M {
        if self.request.is_some() { M::default() } else { take(&mut self.memory) }
    }
}

impl<M: Default> Drop for Transfer<M> {
    fn drop(&mut self) {
        if self.request.is_some() {
            forget(take(&mut self.memory));
        }
    }
}
