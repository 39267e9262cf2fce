//! [`Sending`]: the sends of a rank that the receivers of their messages have to answer.

use crate::messages::state::completion::Completion;
use fencepost_transport::Lost;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::rc::Rc;

/// A send that the receiver of its message has to answer.
pub(crate) struct Sent {
    pub(crate) to: usize,
    pub(crate) tag: u32,
    pub(crate) number: u64,
    /// The number of bytes that the message takes in the buffer of buffered sends.
    pub(crate) buffered: Option<usize>,
    /// Whether the send waits only because the check does not let it use a buffer. With a buffer
    /// the send would be complete before its message is taken.
    pub(crate) needs_buffer: bool,
    /// The line that began the send.
    pub(crate) site: &'static Location<'static>,
    /// Whether the send is over, because its message was taken or because the send has failed.
    pub(crate) completion: Completion,
    /// The reason why the send has failed, if it has failed.
    pub(crate) lost: RefCell<Option<Lost>>,
}

/// Sends by their receivers and numbers.
#[derive(Default)]
pub(crate) struct Sending {
    all: BTreeMap<(usize, u64), Rc<Sent>>,
    /// The number of sends that wait only because of a check. Their messages have been sent, and
    /// count against the memory in which their receivers keep messages.
    saved: usize,
}

impl Sending {
    pub(crate) fn insert(&mut self, sent: &Rc<Sent>) {
        self.saved += usize::from(sent.needs_buffer);
        self.all.insert((sent.to, sent.number), sent.clone());
    }

    pub(crate) fn remove(&mut self, to: usize, number: u64) -> Option<Rc<Sent>> {
        let sent = self.all.remove(&(to, number))?;
        self.saved -= usize::from(sent.needs_buffer);
        Some(sent)
    }

    /// Takes the sends to rank `to`, except buffered sends.
    pub(crate) fn take_unbuffered(&mut self, to: usize) -> Vec<Rc<Sent>> {
        let wanted = self.all.range((to, 0)..=(to, u64::MAX)).filter(|(_, sent)| sent.buffered.is_none());
        let numbers: Vec<u64> = wanted.map(|((_, number), _)| *number).collect();
        numbers.into_iter().filter_map(|number| self.remove(to, number)).collect()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Sent> {
        self.all.values().map(|sent| &**sent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of sends that would also wait without the check.
    pub(crate) fn unsaved(&self) -> usize {
        self.all.len() - self.saved
    }
}
