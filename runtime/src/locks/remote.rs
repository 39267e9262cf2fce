//! Epochs on parts that are not reached: their origin sends requests to the attendant of the
//! target.
//!
//! A short epoch takes one request and one answer. The request contains the locks, the operations
//! and the end of the epoch. A longer epoch is divided into requests. The first request takes all
//! regions, and the attendant holds them until the last request. An origin has one request at a
//! time on a part, and the attendant keeps only that request. So the memory of the attendant is
//! bounded. The attendant queues a request that has to wait, and answers after it has carried out
//! the request. Meanwhile the origin sends nothing, but after a long wait it asks which rank is in
//! its way.

use crate::collect::datatypes::Named;
use crate::collect::visits::{Action, Code, Visits};
use crate::locks::state::request::{CHUNK, Outcome, Request, read_answer};
use crate::locks::state::service::{Effects, Service};
use crate::locks::state::visit::List;
use crate::posts::state::ports::ports_of;
use crate::protocol::exchange::wait;
use crate::protocol::frames::{header, kind};
use crate::protocol::stall::{Awaited, LockQueue, Watch};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::{Error, ErrorClass, Result, State};
use fencepost_transport::{
    Answers, Attendant, Channels, Endpoint, Frame, Header, Leave, Liveness, Loss, Lost, Port, Record,
};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns the port on which attendants answer for a window.
///
/// # Errors
/// `NO_MEM` if the number of the window is so large that no port numbers are left for the window.
pub(crate) fn answers(window: u32) -> Result<Port> {
    ports_of(window).map(|[.., answers]| answers).ok_or_else(|| {
        let message = format!(
            "window {window} cannot be locked: there are no more ports in its world; split the world, and make the window in a part"
        );
        Error::new(ErrorClass::NoMem, message)
    })
}

/// A rank that sends requests to the attendant of another rank.
pub(super) struct Asking<'a> {
    pub(super) window: &'a WindowCore,
    pub(super) target: usize,
    pub(super) call: &'a Call,
    /// The port of answers.
    pub(super) port: Port,
    /// The number of requests so far.
    pub(super) asked: &'a Cell<u64>,
    /// The numbers of datatypes.
    pub(super) named: &'a RefCell<Named>,
}

/// The shortest time after which a rank that still waits asks again which rank is in its way.
const AGAIN: Duration = Duration::from_millis(500);

/// The queue of a lock in which an attendant waits on behalf of this rank.
#[derive(Default)]
struct Queue {
    /// The rank that was in the way at the last answer, if there was one.
    holder: Cell<Option<usize>>,
    /// The holder's wait number that this rank had sampled before the last question, if the last
    /// two answers named the same holder. Otherwise 0.
    found_since: Cell<u64>,
    /// The holder's wait number when this rank last sampled it. This rank wants to ask whether the
    /// holder still holds the lock during that wait.
    wanted: Cell<Option<u64>>,
    /// The holder's wait number to which the unanswered question refers, if there is such a
    /// question.
    asks: Cell<Option<u64>>,
    /// The time of the last question.
    asked_at: Cell<Option<Instant>>,
    /// The number of questions sent plus the number of answers released.
    asked: Cell<u64>,
    /// The attendant's description of the holder.
    text: RefCell<String>,
}

impl LockQueue for Queue {
    fn holder(&self) -> Option<usize> {
        self.holder.get()
    }

    fn since(&self, rank: usize) -> Option<String> {
        (self.holder.get() == Some(rank)).then(|| self.text.borrow().clone())
    }

    fn lasts(&self, number: u64) {
        let is_known = number != 0 && self.found_since.get() == number;
        let is_due = self.asked_at.get().is_none_or(|at| at.elapsed() >= AGAIN);
        if !is_known && is_due && self.asks.get().is_none() {
            self.wanted.set(Some(number));
        }
    }

    fn is_found_since(&self, number: u64) -> bool {
        self.found_since.get() == number
    }

    fn asked(&self) -> u64 {
        self.asked.get()
    }
}

impl Queue {
    /// Returns whether to ask now which rank is in the way.
    fn asks_now(&self) -> bool {
        let Some(number) = self.wanted.take() else { return false };
        self.asks.set(Some(number));
        self.asked_at.set(Some(Instant::now()));
        self.asked.set(self.asked.get() + 1);
        true
    }

    /// Records an answer: `holder` was in the way when the attendant read the question.
    fn answered(&self, holder: Option<usize>, text: &[u8]) {
        *self.text.borrow_mut() = String::from_utf8_lossy(text).into_owned();
        let number = self.asks.take().unwrap_or_default();
        self.asked.set(self.asked.get() + 1);
        let is_same = self.holder.replace(holder) == holder;
        self.found_since.set(if is_same { number } else { 0 });
    }
}

/// The number of polls for an answer after which a waiting rank also looks for lost ranks.
const LOOKS: u32 = 64;

impl Asking<'_> {
    /// Sends a request, and waits for the answer. Appends the elements that were found to `found`.
    ///
    /// # Errors
    /// `RMA_SYNC` if the part was dropped; `PROC_FAILED` if a rank was lost, or the world has
    /// ended.
    pub(super) fn ask(&self, request: &Request, found: &mut Vec<u8>) -> Result<()> {
        let world = &*self.window.world;
        world.well(self.call)?;
        let mut in_the_way = None;
        let mut ask = || {
            let number = self.asked.get() + 1;
            self.asked.set(number);
            let mut bytes = Vec::new();
            request.write(&mut self.named.borrow_mut(), &mut bytes);
            let outcome = self.exchange(number, bytes, found, &mut in_the_way);
            if !matches!(outcome, Ok(Outcome::Done)) {
                // The target may not have read the datatype numbers that this request assigns.
                self.named.borrow_mut().begin_again();
            }
            outcome
        };
        let mut outcome = ask();
        if let Ok(Outcome::Missing) = outcome {
            outcome = ask();
        }
        match outcome.map_err(|lost| world.lost(&lost, self.call).leaving(State::Mixed))? {
            Outcome::Done => Ok(()),
            Outcome::Dropped => {
                // The owner may have dropped the part after it saw that a rank was lost.
                let lost = any_lost(world, &mut world.endpoint.borrow_mut());
                let dropped = || dropped(self.window, self.target, self.call);
                Err(lost.map_or_else(dropped, |lost| world.lost(&lost, self.call).leaving(State::Mixed)))
            }
            Outcome::Over => {
                let endpoint = &mut *world.endpoint.borrow_mut();
                let lost = await_loss(self.window, self.target, self.call, endpoint);
                Err(world.lost(&lost, self.call).leaving(State::Mixed))
            }
            Outcome::NotSole => Err(not_sole(self.window, self.target, in_the_way, self.call)),
            Outcome::NoMemory => {
                let message = format!(
                    "rank {} has no memory for what an epoch finds there: nothing was done",
                    self.target
                );
                Err(self.call.error(world, ErrorClass::NoMem, message))
            }
            Outcome::Waits | Outcome::Missing | Outcome::Refused => {
                let message = format!(
                    "rank {} has refused a request of this rank as one that no rank sends: nothing was done; a frame was altered on its way",
                    self.target
                );
                Err(self.call.error(world, ErrorClass::Intern, message))
            }
        }
    }

    /// Ends the world because the target has sent an answer that no attendant sends, and returns
    /// the error.
    #[cold]
    pub(super) fn refuse(&self, what: &str) -> Error {
        let world = &self.window.world;
        let lost = world.refuse(&mut world.endpoint.borrow_mut(), self.target, what);
        world.lost(&lost, self.call).leaving(State::Mixed)
    }

    fn post(&self, endpoint: &mut Endpoint, number: u64, bytes: &[u8]) -> Result<(), Lost> {
        let header = header(number, kind::LOCK, self.window.key.window);
        // SAFETY: the target does not reach this rank, so the bytes are copied.
        unsafe { endpoint.post_copy(self.target, Port::SERVICE, Frame::of(header, bytes)) }
    }

    fn exchange(
        &self,
        number: u64,
        mut bytes: Vec<u8>,
        found: &mut Vec<u8>,
        blamed: &mut Option<usize>,
    ) -> Result<Outcome, Lost> {
        let world = &*self.window.world;
        let port = self.port;
        let endpoint = &mut *world.endpoint.borrow_mut();
        self.post(endpoint, number, &bytes)?;
        let (windows, queue) = ([self.window], Queue::default());
        let watch = || Watch::new(world, self.call, &windows, self.target, Awaited::Lock(&queue));
        let mut looks = 0;
        wait(endpoint, watch, |endpoint| {
            while let Some(frame) = endpoint.poll(self.target, port)? {
                // SAFETY: the payload is readable until it is released, below.
                let payload = unsafe { frame.bytes() };
                let is_new = frame.header == header(number, kind::LOCKED, self.window.key.window);
                let answer = read_answer(payload).filter(|_| is_new);
                let outcome = answer.map(|(outcome, in_the_way, bytes)| {
                    if outcome == Outcome::Waits {
                        queue.answered(in_the_way, bytes);
                    }
                    if outcome == Outcome::Done {
                        found.extend_from_slice(bytes);
                    }
                    *blamed = in_the_way;
                    outcome
                });
                endpoint.release(self.target, port);
                match outcome {
                    None => {
                        let what = "it sent an invalid answer to an epoch of a lock";
                        return Err(world.refuse(endpoint, self.target, what));
                    }
                    Some(Outcome::Waits) => {}
                    Some(outcome) => return Ok(Some(outcome)),
                }
            }
            if queue.asks_now() {
                Request::write_holder(&mut bytes);
                self.post(endpoint, number, &bytes)?;
            }
            looks += 1;
            if looks <= LOOKS && world.is_quiet() {
                return Ok(None);
            }
            any_lost(world, endpoint).map_or(Ok(None), Err)
        })
    }
}

/// Returns the loss of a rank that did not finish: that rank may have held the awaited lock.
fn any_lost(world: &WorldCore, endpoint: &mut Endpoint) -> Option<Lost> {
    let others = (0..world.size).filter(|&rank| rank != world.rank);
    let mut lost = others.filter_map(|rank| endpoint.lost(rank));
    lost.find(|lost| lost.how != Loss::Left(Leave::Finished))
}

/// Waits until this rank knows which rank was lost. The owner of the part already knew this when it
/// dropped the part.
#[cold]
pub(super) fn await_loss(window: &WindowCore, target: usize, call: &Call, endpoint: &mut Endpoint) -> Lost {
    let windows = [window];
    let watch =
        || Watch::new(&window.world, call, &windows, target, Awaited::One("reports of what was lost"));
    match wait(endpoint, watch, |endpoint| Ok(any_lost(&window.world, endpoint))) {
        Ok(lost) | Err(lost) => lost,
    }
}

/// Returns the error of an epoch on a part that its owner has dropped.
#[cold]
pub(super) fn dropped(window: &WindowCore, target: usize, call: &Call) -> Error {
    let message = format!(
        "rank {target} has dropped its part of window {}, so nothing was done there: let all ranks meet (a barrier, or `into_window`) before one drops the window",
        window.key.window
    );
    call.error(&window.world, ErrorClass::RmaSync, message)
}

/// Returns the error of an epoch on a part that another rank accesses, against the program's
/// promise that only one rank accesses the part.
#[cold]
pub(super) fn not_sole(window: &WindowCore, target: usize, sole: Option<usize>, call: &Call) -> Error {
    let sole = sole.map_or_else(|| "another rank".to_owned(), |rank| format!("rank {rank}"));
    let message = format!(
        "{sole} has accessed the part of rank {target} of window {}, which was made with the hint that each part has a sole origin: nothing was done; make the window without that hint",
        window.key.window
    );
    call.error(&window.world, ErrorClass::Assert, message)
}

/// The contents of a request: records, the bytes of wide operations, and the length of the datatype
/// of each wide operation.
type Piece = (Vec<Record>, Vec<u8>, Vec<usize>);

/// Divides the collected operations, in order, into requests of about [`CHUNK`] bytes. The elements
/// that each request finds also take at most about [`CHUNK`] bytes.
///
/// `size` is the size of an element.
pub(super) fn divide(visits: &Visits, size: usize) -> Vec<Piece> {
    let list = List { records: &visits.records, wide: &visits.wide };
    let mut parts: Vec<Piece> = vec![Default::default()];
    let mut found = 0;
    let mut add = |records: &[Record], wide: &[u8], form: Option<usize>, finds: usize| {
        let (last_records, last_wide, _) = parts.last_mut().expect("there is one");
        let bytes = size_of_val(records) + wide.len();
        let filled = size_of_val(&last_records[..]) + last_wide.len();
        if !last_records.is_empty() && (filled + bytes > CHUNK || found + finds > CHUNK) {
            parts.push(Default::default());
            found = 0;
        }
        let (last_records, last_wide, forms) = parts.last_mut().expect("there is one");
        forms.extend(form);
        let moved = |record: &Record| match Code::of_head(record.head).is_wide() {
            true => Record { value: last_wide.len() as u64, ..*record },
            false => *record,
        };
        last_records.extend(records.iter().map(moved));
        last_wide.extend_from_slice(wide);
        found += finds;
    };
    let mut records = &visits.records[..];
    while let Some((first, rest)) = records.split_first() {
        let code = Code::of_head(first.head);
        let action = code.action().expect("this rank has collected it");
        let finds = if action.returns() { size } else { 0 };
        if !code.is_wide() {
            let taken = if action == Action::CompareAndSwap { 2 } else { 1 };
            add(&records[..taken], &[], None, finds);
            records = &records[taken..];
            continue;
        }
        records = rest;
        let wide = list.wide(first.value, action, size).expect("this rank has collected it");
        let (most, all) = ((CHUNK / size).max(1), wide.remote.size());
        let cut = |at: usize| Some((wide.remote.slice(at, most).ok()?, at..(at + most).min(all)));
        let cuts: Option<Vec<_>> = (0..all).step_by(most).map(cut).collect();
        // If some part of the operation has no short form, the operation is sent whole.
        for (part, places) in cuts.unwrap_or_else(|| vec![(wide.remote.clone(), 0..all)]) {
            let of = |bytes| <[u8]>::get(bytes, places.start * size..places.end * size).unwrap_or_default();
            let mut bytes = Vec::new();
            part.encode(&mut bytes);
            let form = bytes.len();
            bytes.extend_from_slice(of(wide.expected));
            bytes.extend_from_slice(of(wide.operands));
            add(std::slice::from_ref(first), &bytes, Some(form), finds * places.len());
        }
    }
    if parts[0].0.is_empty() {
        parts.clear();
    }
    parts
}

/// The attendant of a rank.
pub(super) struct Attends(pub(super) Arc<Service>);

impl Attendant for Attends {
    fn attend(&mut self, from: usize, header: Header, payload: &[u8], out: &mut dyn Answers) {
        let effects = self.0.ask(from, header.extra, header.word, payload);
        if effects.is_refused {
            out.refuse(from, "it sent a request to lock a part of a window that does not exist");
        }
        send(effects, out);
    }

    fn nudged(&mut self, out: &mut dyn Answers) {
        send(self.0.advance(), out);
    }
}

/// Sends answers of an attendant, and wakes ranks.
fn send(effects: Effects, out: &mut dyn Answers) {
    for (to, window, number, bytes) in effects.answers {
        if let Ok(port) = answers(window) {
            out.post(to, port, answer_header(number, window), &bytes);
        }
    }
    effects.wakes.into_iter().for_each(|rank| out.wake(rank));
}

impl WorldCore {
    /// Sends answers of this rank's own attendant, and wakes ranks of this host.
    pub(super) fn send_answers(&self, effects: Effects) {
        let endpoint = &mut *self.endpoint.borrow_mut();
        for (to, window, number, bytes) in effects.answers {
            let Ok(port) = answers(window) else { continue };
            // SAFETY: the origin does not reach this rank, so the bytes are copied.
            let posted =
                unsafe { endpoint.post_copy(to, port, Frame::of(answer_header(number, window), &bytes)) };
            drop(posted); // an origin that has left needs no answer
        }
        effects.wakes.into_iter().filter(|&rank| rank != self.rank).for_each(|rank| endpoint.wake(rank));
        endpoint.flush();
    }
}

/// Returns the header of an answer.
pub(super) fn answer_header(number: u64, window: u32) -> Header {
    header(number, kind::LOCKED, window)
}
