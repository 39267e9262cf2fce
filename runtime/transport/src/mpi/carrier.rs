//! [`OverMpi`]: carries the bytes of a fabric in messages of MPI.
//!
//! For each pair of ranks, the bytes of one direction are a stream. The stream is cut into messages
//! when it is handed over to MPI. MPI delivers the messages of a pair in the order in which they
//! were sent, so the receiver can join the messages again. Bytes that are written together, before
//! any of them is handed over, form one message. A long payload is a message of its own, which its
//! receiver takes in without a copy.
//!
//! - A rank hands over a frame only if it has credit ([`queue`](crate::fabric)), so the number of
//!   bytes that wait in MPI has the same bound as over TCP.
//! - Connections need no handshake. The first message opens them, in either direction.
//! - MPI moves long messages only while their sender calls MPI. So while the rank computes, the
//!   fabric's thread calls MPI in the rank's place. MPI has no call that waits for any message and
//!   that another thread can wake, so a waiting thread looks again and again, ever more rarely
//!   ([`Steps`]).
//! - A rank cannot see that another rank has ended, and must not call MPI_Finalize before all other
//!   ranks have received what they need. So each rank sends a goodbye to each other rank.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Lent;
use crate::fabric::carrier::{Arrivals, BIG, Carrier, Connection, Opening, Outgoing, ReadOutcome};
use crate::fabric::core::Core;
use crate::fabric::waker::EventWaker;
use crate::fabric::{Fabric, FabricEnd, Limits, Reports};
use crate::mpi::messages::{Message, Messages, Request, SHORT, Transfer};
use crate::mpi::session::Serialized;
use crate::stream::{Body, Decoder, Intake, KEPT};

/// One rank's end of a world over MPI.
pub type MpiEnd = FabricEnd<OverMpi>;

/// The connections of a process to the other ranks of its job, over MPI.
pub type MpiFabric = Fabric<OverMpi>;

/// A handle for a launcher's reports to a fabric over MPI.
pub type MpiReports = Reports<OverMpi>;

/// The longest message, in bytes. MPI counts bytes in 31 bits, and a rank that receives a message
/// shows no sign of life before all of it has arrived.
const LONGEST: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// The maximum number of messages whose memory a connection keeps.
const SPARE: usize = 16;

/// The sizes in bytes from which on a payload is a message of its own. The first applies to ranks
/// of this machine, and the second to all other ranks. An additional message takes much longer over
/// a network than over memory.
const APART: [usize; 2] = [16 << 10, 64 << 10];

/// The first and the longest time between two looks for arrivals, in microseconds.
const STEPS: [u32; 2] = [50, 1000];

/// The messages of a process.
pub struct OverMpi {
    messages: Box<dyn Messages>,
    steps: Arc<Steps>,
    /// The ranks to which something is being sent.
    sending: Vec<u32>,
    /// The uses of memory that was lent to connections that have ended since. Each use has the
    /// other rank, the request if MPI still has it, and how MPI uses the memory.
    lent: Vec<(usize, Option<Request>, Lent)>,
    /// Whether MPI is no longer called.
    ended: bool,
}

/// A wait in steps, each twice as long as the step before. MPI has no call that waits for any
/// message and that another thread can wake. An arrival makes the steps short again.
pub struct Steps {
    rank: Arc<EventWaker>,
    /// The next step, in microseconds.
    next: AtomicU32,
}

impl Steps {
    fn next(&self, limit: Duration) -> Duration {
        let next = self.next.load(Ordering::Relaxed);
        self.next.store((2 * next).min(STEPS[1]), Ordering::Relaxed);
        limit.min(Duration::from_micros(next.into()))
    }

    fn restart(&self) {
        self.next.store(STEPS[0], Ordering::Relaxed);
    }
}

impl Arrivals for Steps {
    type Found = ();

    fn wait(&self, limit: Duration, (): &mut ()) -> bool {
        self.rank.wait(self.next(limit));
        true
    }

    fn wait_with(&self, waker: &EventWaker, limit: Duration) {
        waker.wait(self.next(limit));
    }
}

/// The opening of a connection. It takes no work: a connection is created when it is first needed.
pub struct Unopened;

impl Opening for Unopened {
    fn is_under_way(&self) -> bool {
        false
    }

    fn is_due_again(&self) -> bool {
        false
    }

    fn abandon(&mut self) {}
}

/// The messages to and from one other rank.
pub struct MpiConnection {
    rank: usize,
    /// The smallest payload, in bytes, that is a message of its own.
    apart: usize,
    /// The messages that are being sent, the oldest first.
    sending: VecDeque<Transfer<Vec<u8>>>,
    /// The messages that were found but are not being received yet.
    found: VecDeque<Message>,
    /// The messages that are being received, and the messages that have arrived. The first `read`
    /// bytes of the first message in `arrived` were taken in.
    receiving: VecDeque<Transfer<Body>>,
    arrived: VecDeque<Body>,
    read: usize,
    decoder: Decoder,
    /// Memory for short messages that arrive. The decoder keeps memory for long ones.
    short: Vec<Body>,
    /// Memory for messages to send.
    spare: Vec<Vec<u8>>,
}

impl MpiConnection {
    fn new(rank: usize, is_near: bool) -> Self {
        Self {
            rank,
            apart: APART[usize::from(!is_near)],
            sending: VecDeque::new(),
            found: VecDeque::new(),
            receiving: VecDeque::new(),
            arrived: VecDeque::new(),
            read: 0,
            decoder: Decoder::default(),
            short: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Returns whether some of the messages that were found are not taken in completely.
    fn has_more(&self) -> bool {
        !self.found.is_empty() || !self.receiving.is_empty() || !self.arrived.is_empty()
    }

    /// Keeps memory for the next message, unless enough is kept.
    fn keep(&mut self, mut memory: Vec<u8>) {
        memory.clear();
        let kept: usize = self.spare.iter().map(Vec::capacity).sum();
        if memory.capacity() > 0 && self.spare.len() < SPARE && kept + memory.capacity() <= KEPT {
            self.spare.push(memory);
        }
    }

    /// Returns memory for a message of this length: the smallest kept memory that has room, or
    /// otherwise the largest.
    fn memory(&mut self, len: usize) -> Vec<u8> {
        let fit = |memory: &Vec<u8>| (memory.capacity() < len, memory.capacity().abs_diff(len));
        let best = (0..self.spare.len()).min_by_key(|&at| fit(&self.spare[at]));
        best.map_or_else(|| Vec::with_capacity(len.max(SHORT)), |at| self.spare.swap_remove(at))
    }

    /// Returns memory for the bytes that are written next. Their number is not known yet, so this
    /// is the largest kept memory that long payloads do not need.
    fn memory_for_more(&mut self) -> Vec<u8> {
        let capacity = |at: &usize| self.spare[*at].capacity();
        let best = (0..self.spare.len()).filter(|at| capacity(at) < 2 * self.apart).max_by_key(capacity);
        best.map_or_else(|| Vec::with_capacity(SHORT), |at| self.spare.swap_remove(at))
    }

    /// Begins to send a message.
    fn begin(&mut self, messages: &mut dyn Messages, bytes: Vec<u8>) -> io::Result<()> {
        self.sending.push_back(Transfer::send(messages, self.rank, bytes).map_err(io::Error::other)?);
        Ok(())
    }

    /// Returns how MPI uses memory that was lent.
    fn lent(&self) -> Lent {
        if self.receiving.iter().any(Transfer::is_in_place) {
            Lent::InUse
        } else if self.sending.iter().any(Transfer::is_in_place) {
            Lent::ForGood
        } else {
            Lent::Nothing
        }
    }

    /// Keeps the memory of a message that was taken in.
    fn keep_short(&mut self, message: Body) {
        if message.capacity() >= self.apart {
            self.decoder.recycle(message);
        } else if message.is_own() && self.short.len() < SPARE {
            self.short.push(message);
        }
    }

    /// Lets MPI move the messages that are being sent.
    fn advance(&mut self, messages: &mut dyn Messages) -> Result<bool, String> {
        let mut moved = false;
        while let Some(first) = self.sending.front_mut() {
            if !first.is_complete(messages)? {
                break;
            }
            moved = true;
            let bytes = self.sending.pop_front().map(Transfer::into_memory);
            bytes.into_iter().for_each(|bytes| self.keep(bytes));
        }
        Ok(moved)
    }
}

impl Connection<OverMpi> for MpiConnection {
    fn receive(&mut self, carrier: &mut OverMpi) -> io::Result<()> {
        if carrier.ended {
            return Ok(());
        }
        let messages = &mut *carrier.messages;
        loop {
            while let Some(first) = self.receiving.front_mut() {
                if !first.is_complete(messages).map_err(io::Error::other)? {
                    return Ok(());
                }
                self.arrived.extend(self.receiving.pop_front().map(Transfer::into_memory));
            }
            // Usually there is only one message, and looking for a second one takes as long as
            // receiving the first one.
            if !self.arrived.is_empty() {
                return Ok(());
            }
            let found = match self.found.pop_front() {
                None => messages.probe(Some(self.rank)).map_err(io::Error::other)?,
                found => found,
            };
            let Some(message) = found else { return Ok(()) };
            carrier.steps.restart();
            let memory = if message.len < self.apart {
                self.short.pop().unwrap_or_default()
            } else {
                // The payload's head has been read, so everything that arrived before the payload
                // has been taken in.
                self.decoder.place(message.len).unwrap_or_else(|| self.decoder.spare(message.len))
            };
            self.receiving.push_back(Transfer::receive(messages, message, memory).map_err(io::Error::other)?);
        }
    }

    fn read(&mut self, _: &mut [u8], intake: &mut impl Intake) -> ReadOutcome {
        if self.arrived.is_empty() {
            return ReadOutcome::Nothing;
        }
        let half_here = self.decoder.lacks_buffer(0);
        while let Some(mut message) = self.arrived.pop_front() {
            if self.read == 0 && message.len() >= self.apart {
                match self.decoder.feed_whole(message, intake) {
                    None => continue,
                    Some(other) => message = other,
                }
            }
            match self.decoder.feed_until(&message.bytes()[self.read..], intake, BIG) {
                Err(malformed) => return ReadOutcome::Malformed(malformed.to_string()),
                Ok([]) => {
                    self.read = 0;
                    self.keep_short(message);
                }
                Ok(rest) => {
                    self.read = message.len() - rest.len();
                    self.arrived.push_front(message);
                }
            }
            let lacks_buffer = self.decoder.lacks_buffer(BIG);
            if lacks_buffer.is_some() && lacks_buffer != half_here {
                return ReadOutcome::Something { all: false };
            }
        }
        ReadOutcome::Something { all: false }
    }

    fn flush(&mut self, carrier: &mut OverMpi, out: &mut Outgoing) -> io::Result<bool> {
        if carrier.ended {
            return Ok(false);
        }
        let messages = &mut *carrier.messages;
        let mut moved = self.advance(messages).map_err(io::Error::other)?;
        if !out.bytes.is_empty() {
            moved = true;
            let memory = self.memory_for_more();
            let bytes = std::mem::replace(&mut out.bytes, memory);
            if bytes.len() <= LONGEST {
                self.begin(messages, bytes)?;
            } else {
                bytes.chunks(LONGEST).try_for_each(|piece| self.begin(messages, piece.to_vec()))?;
            }
            self.advance(messages).map_err(io::Error::other)?;
        }
        if out.spare.capacity() > KEPT {
            out.spare = Vec::new();
        }
        if !self.sending.is_empty() && !carrier.sending.contains(&(self.rank as u32)) {
            carrier.sending.push(self.rank as u32);
        }
        Ok(moved)
    }

    fn takes_in_place(&self) -> bool {
        true
    }

    fn pass_in_place(
        &mut self,
        carrier: &mut OverMpi,
        out: &mut Outgoing,
        payload: &[u8],
    ) -> io::Result<(bool, usize)> {
        if payload.len() < self.apart || carrier.ended {
            out.bytes.extend_from_slice(payload);
            let moved = out.bytes.len() > self.apart && self.flush(carrier, out)?;
            return Ok((moved, payload.len()));
        }
        self.flush(carrier, out)?;
        for piece in payload.chunks(LONGEST) {
            let mut memory = self.memory(piece.len());
            memory.extend_from_slice(piece);
            self.begin(&mut *carrier.messages, memory)?;
        }
        self.flush(carrier, out).map(|_| (true, payload.len()))
    }

    unsafe fn pass_lent(
        &mut self,
        carrier: &mut OverMpi,
        out: &mut Outgoing,
        payload: &[u8],
    ) -> io::Result<bool> {
        if payload.len() < self.apart || carrier.ended {
            return Ok(false);
        }
        self.flush(carrier, out)?;
        for piece in payload.chunks(LONGEST) {
            // SAFETY: the caller's promise.
            let transfer = unsafe { Transfer::send_in_place(&mut *carrier.messages, self.rank, piece) };
            self.sending.push_back(transfer.map_err(io::Error::other)?);
        }
        self.flush(carrier, out).map(|_| true)
    }

    fn is_behind(&self, out: &Outgoing) -> bool {
        !out.bytes.is_empty() || !self.sending.is_empty()
    }

    fn awaits_room(&self) -> bool {
        !self.sending.is_empty()
    }

    fn is_resting(&self) -> bool {
        false
    }

    fn close(self) {}

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }
}

impl Carrier for OverMpi {
    type Connection = MpiConnection;
    type Opening = Unopened;
    type Arrivals = Steps;

    const IS_CONNECTIONLESS: bool = true;
    const LENDS: bool = true;

    fn serve_ready(core: &mut Core<Self>) {
        if core.carrier.ended {
            return;
        }
        // First takes in the messages that an earlier call has left. This lets a payload that is
        // found below get a receive buffer before the payload is taken in.
        for rank in 0..core.peers.len() {
            if core.peers[rank].link.as_ref().is_some_and(|link| link.has_more()) {
                core.read_from(rank);
            }
        }
        let mut moved = false;
        loop {
            match core.carrier.messages.probe(None) {
                Ok(None) => break,
                Ok(Some(message)) => {
                    moved = true;
                    let from = message.from;
                    Self::connect(core, from);
                    match &mut core.peers[from].link {
                        Some(link) => link.found.push_back(message),
                        // As far as this rank knows, that rank is gone, so its messages are
                        // dropped.
                        None => core.carrier.drop_message(message),
                    }
                    core.read_from(from);
                    // Takes in a long payload, whose head was in the message before it.
                    if core.peers[from].link.as_ref().is_some_and(|link| !link.found.is_empty()) {
                        core.read_from(from);
                    }
                }
                Err(why) => return core.fail_all(&why),
            }
        }
        for at in 0..core.carrier.sending.len() {
            let rank = core.carrier.sending[at] as usize;
            let before = core.peers[rank].unsent();
            core.send(rank);
            moved |= before && !core.peers[rank].unsent();
        }
        let is_sending =
            |rank: u32| core.peers[rank as usize].link.as_ref().is_some_and(|link| !link.sending.is_empty());
        core.carrier.sending.retain(|rank| is_sending(*rank));
        // MPI moves outgoing messages only in these calls.
        if moved || !core.carrier.sending.is_empty() {
            core.carrier.steps.restart();
        }
        core.test_lent();
        core.flush_dirty();
        core.send_pending_releases();
    }

    fn serve(core: &mut Core<Self>, (): &()) {
        Self::serve_ready(core);
    }

    fn watch(_: &mut Core<Self>) {}

    fn unwatch(_: &mut Core<Self>) {}

    fn connect(core: &mut Core<Self>, to: usize) {
        if to != core.me() && core.peers[to].link.is_none() && !core.peers[to].is_gone() {
            let is_near = core.is_on_this_machine(to);
            core.peers[to].open(MpiConnection::new(to, is_near), Instant::now());
            core.events += 1;
            core.send(to);
        }
    }

    fn disconnect(core: &mut Core<Self>, rank: usize) {
        let Some(link) = core.peers[rank].link.as_mut() else { return };
        let sends = link.sending.drain(..).filter(Transfer::is_in_place).map(Transfer::give_up);
        let receives = link.receiving.drain(..).filter(Transfer::is_in_place).map(Transfer::give_up);
        let sends = sends.map(|request| (rank, request, Lent::ForGood));
        let receives = receives.map(|request| (rank, request, Lent::InUse));
        core.carrier.lent.extend(sends.chain(receives));
    }

    fn lent(core: &mut Core<Self>, rank: usize) -> Lent {
        if core.peers[rank].link.is_some() {
            core.read_from(rank);
            core.send(rank);
        }
        core.test_lent();
        let before = core.carrier.lent.iter().filter(|(of, ..)| *of == rank).map(|(.., how)| *how).max();
        let now = core.peers[rank].link.as_ref().map(|link| link.lent());
        before.max(now).unwrap_or(Lent::Nothing)
    }

    fn send(core: &mut Core<Self>, to: usize) {
        let is_lent =
            |core: &Core<Self>| core.peers[to].link.as_ref().is_some_and(|link| link.lent() != Lent::Nothing);
        let before = is_lent(core);
        if let Err(error) = core.peers[to].flush(&mut core.carrier) {
            core.write_failed(to, &error.to_string());
        }
        // The rank may be waiting until nothing is lent.
        core.events += u64::from(before && !is_lent(core));
    }

    fn send_beat(core: &mut Core<Self>, to: usize) {
        Self::send(core, to);
    }

    fn note_use(&mut self, _: &mut MpiConnection) {}

    fn has_ended_by_agreement(_: &mut Core<Self>, _: usize) -> bool {
        false
    }

    fn is_limited(_: &Core<Self>) -> bool {
        false
    }

    fn run_timers(_: &mut Core<Self>, _: Instant, _: Option<Duration>, _: u32) {}

    fn end(&mut self, in_order: bool) {
        self.ended = true;
        self.messages.end(in_order);
    }

    fn ends_in_background(&self) -> bool {
        self.messages.end_in_background()
    }
}

impl OverMpi {
    /// Receives a message that is not needed.
    fn drop_message(&mut self, message: Message) {
        // An error is ignored, and so is a message that has not arrived yet: its memory is leaked.
        let received = Transfer::receive(&mut *self.messages, message, Body::default());
        if let Ok(mut transfer) = received {
            let _: Result<bool, String> = transfer.is_complete(&mut *self.messages);
        }
    }
}

impl Core<OverMpi> {
    /// Forgets the complete requests of connections that have ended.
    fn test_lent(&mut self) {
        let OverMpi { messages, lent, ended, .. } = &mut self.carrier;
        if *ended || lent.is_empty() {
            return;
        }
        let before = lent.len();
        lent.retain_mut(|(_, request, _)| {
            let complete = request.as_mut().map(|request| messages.is_complete(request));
            if let Some(Err(_)) = complete {
                *request = None; // MPI no longer has the request, but may use the memory
            }
            complete != Some(Ok(true))
        });
        self.events += u64::from(lent.len() < before); // the rank may be waiting for that
    }

    /// Ends the connections to all ranks, because MPI has failed.
    fn fail_all(&mut self, why: &str) {
        for rank in 0..self.peers.len() {
            if self.peers[rank].link.is_some() {
                self.connection_ended(rank, format!("MPI has failed: {why}"));
            }
        }
    }
}

impl MpiFabric {
    /// Creates the fabric of this rank over the messages of its MPI. `machines` has the lowest rank
    /// on the machine of each rank. MPI is finalised when the fabric is dropped.
    ///
    /// # Errors
    /// Fails if no descriptor is left, or if no thread can be started.
    pub fn over_mpi(messages: Serialized, machines: Vec<usize>, limits: Limits) -> io::Result<Self> {
        let me = messages.rank();
        Self::over_messages(Box::new(messages), me, machines, limits)
    }

    /// Creates the fabric of rank `me` over these messages. `machines` has the lowest rank on the
    /// machine of each rank.
    ///
    /// # Errors
    /// Fails if no descriptor is left, or if no thread can be started.
    pub(crate) fn over_messages(
        messages: Box<dyn Messages>,
        me: usize,
        machines: Vec<usize>,
        limits: Limits,
    ) -> io::Result<Self> {
        let rank = Arc::new(EventWaker::new()?);
        let steps = Arc::new(Steps { rank: rank.clone(), next: AtomicU32::new(STEPS[0]) });
        let carrier =
            OverMpi { messages, steps: steps.clone(), sending: Vec::new(), lent: Vec::new(), ended: false };
        let mut fabric = Self::over(carrier, steps, rank, me, limits)?;
        fabric.start(machines.iter().map(|_| Unopened).collect(), machines)?;
        Ok(fabric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::messages::Request;
    use crate::mpi::stand_in::fabrics;
    use crate::{Channels, Frame, Header, Leave, Liveness, Pause, Port, Topology};
    use std::sync::Mutex;

    /// The smallest payload, in bytes, that is a message of its own between the ranks of these
    /// tests.
    const NEAR: usize = APART[0];

    /// Records the lengths of messages to rank 1, and the addresses at which messages of rank 0 are
    /// received.
    struct Noted(Box<dyn Messages>, Arc<Notes>);

    #[derive(Default)]
    struct Notes {
        sent: Mutex<Vec<usize>>,
        rooms: Mutex<Vec<usize>>,
    }

    impl Messages for Noted {
        unsafe fn send(&mut self, to: usize, bytes: &[u8]) -> Result<Request, String> {
            self.1.sent.lock().expect("no panic").extend((to == 1).then_some(bytes.len()));
            // SAFETY: the caller's promise.
            unsafe { self.0.send(to, bytes) }
        }

        fn probe(&mut self, from: Option<usize>) -> Result<Option<Message>, String> {
            self.0.probe(from)
        }

        unsafe fn receive(&mut self, message: Message, room: &mut [u8]) -> Result<Request, String> {
            if message.from == 0 {
                self.1.rooms.lock().expect("no panic").push(room.as_ptr().addr());
            }
            // SAFETY: the caller's promise.
            unsafe { self.0.receive(message, room) }
        }

        fn is_complete(&mut self, request: &mut Request) -> Result<bool, String> {
            self.0.is_complete(request)
        }

        fn end(&mut self, in_order: bool) {
            self.0.end(in_order);
        }

        fn end_in_background(&self) -> bool {
            self.0.end_in_background()
        }
    }

    /// Returns two ranks with this limit of silence.
    fn two(limit: Duration) -> [(Arc<MpiFabric>, MpiEnd); 2] {
        two_noted(limit, &Arc::default())
    }

    /// Returns two ranks with this limit of silence, and records their messages in `notes`.
    fn two_noted(limit: Duration, notes: &Arc<Notes>) -> [(Arc<MpiFabric>, MpiEnd); 2] {
        let limits = Limits { beat: limit / 10, limit, ..Limits::default() };
        let noted = |messages| -> Box<dyn Messages> { Box::new(Noted(messages, notes.clone())) };
        let mut fabrics = fabrics(2, limits, noted).expect("threads").into_iter().map(Arc::new);
        [0, 1].map(|rank| {
            let fabric = fabrics.next().expect("two ranks");
            let end = MpiEnd::of_job(&fabric, 0, rank, 2).expect("the first world");
            (fabric, end)
        })
    }

    fn post(end: &mut MpiEnd, payload: &[u8]) {
        let to = 1 - end.rank();
        // SAFETY: the payload is copied.
        unsafe { end.post(to, Port::FENCE, Frame::of(Header::default(), payload)) }
            .expect("the world goes on");
        end.flush();
    }

    fn take(end: &mut MpiEnd) -> Vec<u8> {
        let (from, mut pause) = (1 - end.rank(), Pause::new());
        loop {
            if let Some(frame) = end.poll(from, Port::FENCE).expect("the world goes on") {
                // SAFETY: the frame is not released yet.
                let payload = unsafe { frame.bytes() }.to_vec();
                end.release(from, Port::FENCE);
                return payload;
            }
            end.idle(&mut pause);
        }
    }

    #[test]
    fn a_frame_is_one_message_and_a_long_payload_is_one_of_its_own() {
        let notes: Arc<Notes> = Arc::default();
        let [(_first, mut one), (_second, mut two)] = two_noted(Duration::from_secs(60), &notes);
        for len in [8, NEAR - 1, NEAR, 3 * NEAR + 5, LONGEST, LONGEST + 1] {
            let payload: Vec<u8> = (0..len).map(|at| (at * 31 % 251) as u8).collect();
            notes.sent.lock().expect("no panic").clear();
            post(&mut one, &payload);
            assert!(take(&mut two) == payload);
            let sent = notes.sent.lock().expect("no panic");
            let apart = if len < NEAR { 0 } else { len.div_ceil(LONGEST) };
            assert_eq!(sent.len(), 1 + apart, "{len}: {sent:?}");
        }
    }

    /// Returns two ranks that have a connection.
    fn two_connected(notes: &Arc<Notes>) -> [(Arc<MpiFabric>, MpiEnd); 2] {
        let mut both = two_noted(Duration::from_secs(60), notes);
        let [(_, one), (_, two)] = &mut both;
        post(one, &[1]);
        assert_eq!(take(two), [1]);
        both
    }

    /// Posts a payload that is sent from its own memory.
    fn post_in_place(end: &mut MpiEnd, payload: &'static [u8]) {
        let to = 1 - end.rank();
        // SAFETY: the payload never changes, and is never freed.
        unsafe { end.post_in_place(to, Port::FENCE, Frame::of(Header::default(), payload)) }
            .expect("the world goes on");
        end.flush();
    }

    /// Waits until nothing is lent to the other rank.
    fn is_given_back(end: &mut MpiEnd) {
        let (peer, mut pause) = (1 - end.rank(), Pause::new());
        while end.lent(peer) != Lent::Nothing {
            end.idle(&mut pause);
        }
    }

    #[test]
    fn a_long_payload_is_lent_until_it_has_arrived() {
        let [(_first, mut one), (second, mut two)] = two_connected(&Arc::default());
        assert!(one.lends_to(1) && !one.lends_to(0));
        for len in [8, NEAR - 1, NEAR, LONGEST + 1] {
            let payload: &[u8] = vec![len as u8; len].leak();
            let receiver = second.shared().lock();
            post_in_place(&mut one, payload);
            let lent = if len < NEAR { Lent::Nothing } else { Lent::InUse };
            assert_eq!(one.lent(1), lent, "{len} bytes");
            drop(receiver);
            assert!(take(&mut two) == payload);
            is_given_back(&mut one);
        }
    }

    #[test]
    fn what_is_lent_to_a_process_that_has_ended_is_given_for_good() {
        let [(first, mut one), (second, _two)] = two_connected(&Arc::default());
        let receiver = second.shared().lock();
        post_in_place(&mut one, vec![1; NEAR].leak());
        first.shared().lock().mark_failed(1, "it is silent".into());
        assert_eq!(one.lent(1), Lent::InUse, "it may still read");
        first.reports().mark_ended(1, "it was killed");
        assert_eq!(one.lent(1), Lent::ForGood);
        drop(receiver);
    }

    #[test]
    fn a_long_payload_of_a_fence_is_received_where_it_belongs() {
        for len in [NEAR, LONGEST] {
            let notes = Arc::default();
            let [(_first, mut one), (_second, mut two)] = two_connected(&notes);
            let mut place = vec![0; len];
            // SAFETY: nobody else uses the buffer before the frame is released.
            unsafe { two.prepost(0, Port::FENCE, 0, Header::default(), &raw mut place[..]) };
            post(&mut one, &vec![7; len]);
            let mut pause = Pause::new();
            let frame = loop {
                match two.poll(0, Port::FENCE).expect("the world goes on") {
                    Some(frame) => break frame,
                    None => two.idle(&mut pause),
                }
            };
            assert_eq!((frame.payload, frame.len), (place.as_ptr(), len));
            let is_received_there = notes.rooms.lock().expect("no panic").contains(&place.as_ptr().addr());
            assert!(is_received_there, "MPI has written it elsewhere, and it was copied");
            two.release(0, Port::FENCE);
            two.cancel(0, Port::FENCE);
            is_given_back(&mut two);
            assert!(place == vec![7; len]);
        }
    }

    #[test]
    fn a_buffer_that_is_cancelled_while_its_payload_arrives_is_lent_until_that_has_arrived() {
        let [(first, mut one), (second, mut two)] = two_connected(&Arc::default());
        let mut place = vec![0; LONGEST];
        // SAFETY: nobody else uses the buffer while anything is lent.
        unsafe { two.prepost(0, Port::FENCE, 0, Header::default(), &raw mut place[..]) };
        let receiver = second.shared().lock();
        post(&mut one, &vec![7; LONGEST]);
        // A message does not move while its sender makes no calls.
        let sender = first.shared().lock();
        drop(receiver);
        while two.lent(0) == Lent::Nothing {
            assert!(two.poll(0, Port::FENCE).expect("the world goes on").is_none());
        }
        two.cancel(0, Port::FENCE);
        assert_eq!(two.lent(0), Lent::InUse, "it still arrives there");
        drop(sender);
        is_given_back(&mut two);
        place.fill(1);
        assert!(take(&mut two) == vec![7; LONGEST], "it has memory of its own");
    }

    #[test]
    fn a_rank_that_has_ended_counts_one_that_computes_as_alive() {
        let limit = Duration::from_millis(300);
        let [(first, mut one), (second, mut two)] = two(limit);
        post(&mut one, &[1]);
        assert_eq!(take(&mut two), [1]);
        let both = [first.shared().clone(), second.shared().clone()];
        one.leave(Leave::Finished);
        drop((one, first));
        // Rank 1 receives the goodbye of rank 0, and answers with a farewell.
        while !both[0].lock().peers[1].heard_farewell {
            OverMpi::serve_ready(&mut both[1].lock());
        }
        // As far as the timers know, rank 1 computes for three times as long as the limit.
        let begun = Instant::now();
        for tenths in 1..=9 {
            for shared in &both {
                let mut core = shared.lock();
                core.run_timers(begun + tenths * limit / 3);
                OverMpi::serve_ready(&mut core);
            }
        }
        assert!(both.iter().all(|shared| !shared.lock().has_failures()), "it waits for a goodbye");
        two.leave(Leave::Finished);
    }

    #[test]
    fn a_payload_longer_than_a_message_arrives_whole() {
        let [(_first, mut one), (_second, mut two)] = two(Duration::from_secs(10));
        let payload: Vec<u8> = (0..3 * LONGEST + LONGEST / 2).map(|at| (at / 7) as u8).collect();
        post(&mut one, &payload);
        let came = std::thread::spawn(move || (take(&mut two), two.leave(Leave::Finished)));
        assert!(came.join().expect("no panic").0 == payload);
        one.leave(Leave::Finished);
    }
}
