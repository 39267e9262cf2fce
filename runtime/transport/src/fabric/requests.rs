//! Requests: the frames of [`Port::SERVICE`]. They are read by a call of the rank or by the
//! fabric's thread, and the attendant of their world then serves them.
//!
//! An attendant may answer with any number of bytes, to any rank. So it is not called in the middle
//! of a read, or while a payload is being written. Requests that are read meanwhile wait in a list
//! until the read or the write has ended.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::PANICKED;
use crate::fabric::carrier::Carrier;
use crate::fabric::core::Core;
use crate::stream::ItemWriter;
use crate::{Answers, Attendant, Cause, Header, Port};

/// The answers of one world's attendant.
struct CoreAnswers<'a, C: Carrier> {
    core: &'a mut Core<C>,
    number: u64,
}

impl<C: Carrier> Answers for CoreAnswers<'_, C> {
    fn post(&mut self, to: usize, port: Port, header: Header, bytes: &[u8]) {
        let Self { core, number } = self;
        let Some(channel) = core.channels.get(number) else { return };
        let over = channel.ended.is_some() || channel.left.is_some();
        let Some(&to) = channel.members.get(to) else { return };
        let to = to as usize;
        if !over && !core.is_intra_node(to) && (to == core.me() || !core.is_gone(*number, to)) {
            core.post(*number, to, port, header, bytes);
        }
    }

    fn refuse(&mut self, from: usize, what: &str) {
        self.core.end(self.number, Cause { rank: from, what: format!("rank {from}: {what}") });
    }

    fn wake(&mut self, rank: usize) {
        let channel = self.core.channels.get(&self.number);
        if let Some(&rank) = channel.and_then(|channel| channel.members.get(rank)) {
            self.core.wake_there(rank as usize);
        }
    }
}

impl<C: Carrier> Core<C> {
    /// Lets this attendant serve a world, until its rank leaves.
    ///
    /// # Panics
    /// Panics if the world has an attendant.
    pub(super) fn attend(&mut self, number: u64, attendant: Box<dyn Attendant>) {
        let channel = self.channel(number);
        assert!(!channel.attended, "a world has one attendant");
        if channel.left.is_some() {
            return;
        }
        (channel.attended, channel.attendant) = (true, Some(attendant));
        self.requests.attended += 1;
        for from in 0..self.peers.len() {
            let Some(queue) = self.channel(number).pairs[from].queue(Port::SERVICE) else { continue };
            let come = queue.inbound.frames.len();
            self.requests.list.extend(std::iter::repeat_n((number, Some(from as u32)), come));
            self.grant_request(number, from);
        }
        self.answer_requests();
    }

    /// Ends the service of a world. Returns its attendant, which the caller drops without the lock.
    pub(super) fn dismiss(&mut self, number: u64) -> Option<Box<dyn Attendant>> {
        let channel = self.channels.get_mut(&number)?;
        self.requests.attended -= usize::from(std::mem::take(&mut channel.attended));
        channel.attendant.take()
    }

    /// Notes that a request of `from` has arrived.
    pub(super) fn note_request(&mut self, number: u64, from: usize) {
        if self.channels.get(&number).is_some_and(|channel| channel.attended) {
            self.requests.list.push_back((number, Some(from as u32)));
        }
    }

    /// Notes that a rank of this node has nudged the attendant of a world.
    pub(super) fn note_nudge(&mut self, number: u64) {
        if self.channels.get(&number).is_some_and(|channel| channel.attended)
            && self.requests.list.back() != Some(&(number, None))
        {
            self.requests.list.push_back((number, None));
        }
    }

    /// Nudges the attendant of `to`, a rank of this node.
    pub(super) fn nudge(&mut self, number: u64, to: usize) {
        let peer = &self.peers[to];
        if self.is_intra_node(to) && peer.died.is_none() && !peer.heard_goodbye {
            ItemWriter(&mut self.peers[to].out.bytes, number).nudge();
            self.send(to);
        }
    }

    /// Grants credit for the requests that `from` has reported, because an attendant takes all of
    /// them.
    pub(super) fn grant_request(&mut self, number: u64, from: usize) {
        if let Some(channel) = self.channels.get_mut(&number)
            && channel.attended
            && let Some(queue) = channel.pairs[from].queue_mut(Port::SERVICE)
            && queue.inbound.grant_wanted(number, Port::SERVICE, &mut self.peers[from].out.bytes)
        {
            self.mark_dirty(from);
        }
    }

    /// Makes requests wait. Returns whether they were already waiting.
    pub(super) fn hold_requests(&mut self) -> bool {
        std::mem::replace(&mut self.requests.held, true)
    }

    /// Undoes [`hold_requests`](Self::hold_requests).
    pub(super) fn resume_requests(&mut self, held: bool) {
        self.requests.held = held;
    }

    /// Lets attendants answer the requests that have arrived, and sends the answers.
    #[inline]
    pub(super) fn answer_requests(&mut self) {
        if !self.requests.list.is_empty() && !self.requests.held {
            self.answer_all_requests();
        }
    }

    #[cold]
    fn answer_all_requests(&mut self) {
        self.requests.held = true;
        while let Some((number, from)) = self.requests.list.pop_front() {
            self.answer_request(number, from);
        }
        self.requests.held = false;
        self.flush_dirty();
    }

    fn answer_request(&mut self, number: u64, from: Option<u32>) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        if channel.ended.is_some() || channel.left.is_some() {
            return;
        }
        let from = from.map(|from| (from as usize, channel.index_of(from as usize)));
        let Some(mut attendant) = channel.attendant.take() else { return };
        let attended = match from {
            None => {
                let mut answers = CoreAnswers { core: self, number };
                catch_unwind(AssertUnwindSafe(|| attendant.nudged(&mut answers)))
            }
            Some((from, rank)) => match rank.zip(self.take_frame(number, from, Port::SERVICE)) {
                None => Ok(()),
                Some((rank, (header, body))) => {
                    let mut answers = CoreAnswers { core: self, number };
                    let attend = || attendant.attend(rank, header, body.bytes(), &mut answers);
                    let attended = catch_unwind(AssertUnwindSafe(attend));
                    self.recycle(from, body);
                    attended
                }
            },
        };
        if attended.is_err() {
            let own = self.channels.get(&number).and_then(|channel| channel.index_of(self.me()));
            let rank = own.unwrap_or(0);
            return self.end(number, Cause { rank, what: format!("rank {rank}: {PANICKED}") });
        }
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.attendant = Some(attendant);
        }
    }
}
