//! Messages between two ranks, outside all windows.
//!
//! A message is a frame on [`Port::MESSAGES`](fencepost_transport::Port::MESSAGES) of its world. So
//! the messages of a pair of ranks arrive in the order in which they were sent, and do not wait for
//! frames of other ports. A receiver begins to read the port in its first message call. From then
//! on it reads the port in every message call, and while it waits in any call of the world. It
//! passes each message to the first waiting [`Receive`](crate::messages::state::receive::Receive)
//! that matches the message, or keeps the message for a later receive.
//!
//! - A short message has its elements in the frame. The receiver gives each sender an equal part of
//!   the memory for kept messages (its *credit*), and returns the credit when the messages were
//!   taken. So this memory is bounded, and the receiver can always read the port.
//! - If a frame of such a message comes over a connection and has not arrived completely, a waiting
//!   receive takes the message when the head of the frame arrives. The elements are then read
//!   directly into their destination. All other elements that arrive in a frame are copied.
//! - If a message is longer, or there is no credit, only its envelope is sent. Its elements stay
//!   with the sender until a receive takes the message. Then a receiver that reaches the elements
//!   reads them in place, and reports when it has finished. Otherwise the receiver requests the
//!   elements from the sender's attendant, chunk by chunk, so the sender need not be in any call.
//!   If there is no credit, a standard send waits, and a buffered send leaves its elements in the
//!   buffer. No message waits behind another.
//! - A synchronous send is answered when its message was taken.
//! - Between processes of one host, elements of a window are read in place. Other elements are
//!   copied to memory that both processes reach, and the receiver reads them while they are copied.
//! - Elements are read in place while the sender waits. If the world ends meanwhile, the sender
//!   ends the world for all ranks, and continues when the receiver no longer reads the sender's
//!   memory.

mod arrive;
mod receive;
mod requests;
mod send;
pub(crate) mod state;
mod take;

pub(crate) use receive::{probe, receive};
pub(crate) use requests::{
    Begun, begin_receive, begin_send, cancel, complete, flush, give_up, outcome, progress, wait_for_other,
    wait_for_some,
};
pub(crate) use send::{Outgoing, attach, detach, send, send_and_receive};

use crate::messages::state::Messages;
use crate::state::call::Call;
use crate::state::life::Opened;
use crate::state::world::WorldCore;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::Endpoint;
use std::cell::RefCell;
use std::rc::Rc;

/// A rank that waits in a call other than a message call reads the port once in this number of
/// polls, if no send or receive was begun.
const RARELY: u32 = 64;

/// Returns the messages of this world. After the first call of this function, every wait of the
/// world reads messages that arrive.
fn messages(world: &WorldCore) -> &RefCell<Messages> {
    world.messages.all.get_or_init(|| {
        let all = Rc::new(RefCell::new(Messages::new(world.size, world.messages.limits.get())));
        world.life.open(Rc::new(Opening(all.clone())));
        all
    })
}

/// The messages of a world, as a state that the world advances in all its waits.
struct Opening(Rc<RefCell<Messages>>);

impl Opened for Opening {
    fn advance(&self, world: &WorldCore, endpoint: &mut Endpoint) {
        // If the borrow fails, a message call is waiting, and that call reads the port.
        if let Ok(mut messages) = self.0.try_borrow_mut() {
            read_in_waits(world, endpoint, &mut messages);
        }
    }

    /// Returns whether elements of messages that were taken are in transit. The attendants of the
    /// senders send these elements.
    fn may_advance(&self) -> bool {
        self.0.try_borrow().is_ok_and(|messages| !messages.landing.is_empty())
    }

    /// Returns whether receives that were begun may still get messages or elements.
    fn advances_elsewhere(&self) -> bool {
        let messages = self.0.try_borrow();
        messages.is_ok_and(|messages| !messages.posted.is_empty() || !messages.landing.is_empty())
    }

    fn unfinished(&self) -> Option<String> {
        // A request in which other ranks take part was leaked.
        let site = self.0.borrow().open_request()?;
        Some(format!("it has not completed a request that it began at {}:{}", site.file(), site.line()))
    }

    fn leave(&self, endpoint: &mut Endpoint) {
        if let Ok(mut messages) = self.0.try_borrow_mut() {
            messages.leave(endpoint);
        }
    }
}

/// Returns `rank`, if the world has a rank of this number.
///
/// # Errors
/// `RANK` if the world has no such rank.
fn rank_of(world: &WorldCore, rank: usize, call: &Call) -> Result<usize> {
    if rank < world.size {
        return Ok(rank);
    }
    let message =
        format!("rank {rank} is not one of the world's {} ranks (0 to {})", world.size, world.size - 1);
    Err(call.error(world, ErrorClass::Rank, message))
}

/// Reads the messages that have arrived while this rank waits in another call.
fn read_in_waits(world: &WorldCore, endpoint: &mut Endpoint, messages: &mut Messages) {
    messages.looks = messages.looks.wrapping_add(1);
    let reads_one = messages.taking.is_some() && world.size > 2;
    let begun = reads_one
        || !messages.posted.is_empty()
        || !messages.landing.is_empty()
        || !messages.sending.is_empty();
    if begun || messages.looks.is_multiple_of(RARELY) {
        // An error can be ignored here: it ends the world, or the call that waits for the message
        // finds it.
        let taking = messages.taking;
        drop(arrive::read_all_but(world, endpoint, messages, taking));
    }
}
