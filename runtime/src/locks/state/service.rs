//! [`Service`]: the parts of a rank that other ranks lock without reaching them. The attendant of
//! the rank serves these parts.
//!
//! On behalf of the origin of a request, the attendant takes the same locks as ranks that reach the
//! part. The attendant never waits. If a request has to wait, the service keeps it. There is at
//! most one such request for each origin and window. The request continues when a lock of the part
//! is left. If the attendant leaves the lock, it continues the request itself. If this rank leaves
//! the lock, this rank advances the request. If another rank of this host leaves the lock, that
//! rank wakes the attendant. An origin that waits for long asks which rank is in its way. That
//! question does not advance any request.

use crate::check::state::clock;
use crate::check::state::entering::Entering;
use crate::check::state::learnt::Learnt;
use crate::check::state::logs::Findings;
use crate::collect::datatypes::{Numbered, Unread};
use crate::collect::limits::most_answered;
use crate::locks::state::request::{Asked, Outcome, Request, answer};
use crate::locks::state::visit::{Others, Part};
use crate::locks::state::words::{Presence, Words};
use fencepost_transport::{FairLock, Hold, Next, Position};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes of the text about the rank that is in the way.
const TEXT_MAX: usize = 600;

/// The parts of one rank.
#[derive(Default)]
pub(crate) struct Service {
    parts: Mutex<Parts>,
    /// Whether a part was dropped when its rank knew that the world was over.
    is_over: AtomicBool,
}

/// The parts that are served, and the parts that were served before.
#[derive(Default)]
struct Parts {
    served: BTreeMap<u32, Served>,
    /// A bit for each window number: whether the part of that window was served and then dropped.
    dropped: Vec<u64>,
}

impl Parts {
    fn drop_part(&mut self, window: u32) -> Option<Served> {
        let served = self.served.remove(&window)?;
        let at = window as usize / 64;
        self.dropped.resize(self.dropped.len().max(at + 1), 0);
        self.dropped[at] |= 1 << (window % 64);
        Some(served)
    }

    /// Returns whether the part of this window was served and then dropped.
    fn was_dropped(&self, window: u32) -> bool {
        self.dropped.get(window as usize / 64).is_some_and(|bits| bits >> (window % 64) & 1 == 1)
    }
}

/// A part, and the requests of others for it.
pub(crate) struct Served {
    /// The rank that owns the part.
    rank: usize,
    part: Part,
    words: Words,
    jobs: Vec<Job>,
    /// The origins that hold all regions.
    held: BTreeMap<usize, Hold>,
    /// The state of each origin that has made a request.
    origins: BTreeMap<usize, Origin>,
}

/// The state of an origin.
#[derive(Default)]
struct Origin {
    /// The number of the origin's last request.
    asked: u64,
    /// The datatypes of the origin that have a number.
    numbered: Numbered,
}

// SAFETY: the pointers are those of a window that is not moved while the part is in the list, and
// the list is read under a lock. The memory of the window is accessed only as the locks of the part
// allow.
unsafe impl Send for Served {}

/// A request that is being carried out.
struct Job {
    from: usize,
    number: u64,
    request: Request,
    /// The origin's announcement of its operations, if conflicts are checked.
    entering: Option<Entering>,
    /// The number of bytes that the request finds.
    found: usize,
    /// Whether the job now takes second locks.
    second: bool,
    /// The regions whose locks the job still has to take. `position` is the position of the job in
    /// the queue of the first such region.
    left: u32,
    position: Option<Position>,
}

/// The effects of a request that was examined: the answers to send, and the ranks to wake. All
/// ranks to wake reach the part.
#[derive(Default)]
pub(crate) struct Effects {
    /// Whether the request is refused because no correct rank sends it. In that case this rank does
    /// not know on which port the origin waits for an answer.
    pub(crate) is_refused: bool,
    /// For each answer: the rank, the window, the number of the request, and the bytes of the
    /// answer.
    pub(crate) answers: Vec<(usize, u32, u64, Vec<u8>)>,
    pub(crate) wakes: Vec<usize>,
}

impl Served {
    /// Returns a part to serve.
    ///
    /// # Safety
    /// This rank reaches the part, and the part is not moved until it is
    /// [forgotten](Service::forget). The words are those of the part.
    pub(crate) unsafe fn new(rank: usize, part: Part, words: Words) -> Self {
        Self { rank, part, words, jobs: Vec::new(), held: BTreeMap::new(), origins: BTreeMap::new() }
    }
}

impl Service {
    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves this part from here on.
    pub(crate) fn serve(&self, window: u32, served: Served) {
        self.lock().served.insert(window, served);
    }

    /// Stops serving the part. After this call, the attendant does not access the part. Returns the
    /// answers to waiting requests.
    pub(crate) fn forget(&self, window: u32, is_over: bool) -> Effects {
        let mut effects = Effects::default();
        let mut parts = self.lock();
        self.is_over.fetch_or(is_over, Ordering::Relaxed);
        if let Some(served) = parts.drop_part(window) {
            for job in served.jobs {
                effects.answers.push((job.from, window, job.number, answer(self.dropped(), None)));
            }
        }
        effects
    }

    /// Returns the answer for a part that is not served.
    fn dropped(&self) -> Outcome {
        if self.is_over.load(Ordering::Relaxed) { Outcome::Over } else { Outcome::Dropped }
    }

    /// Handles a request of `from`.
    pub(crate) fn ask(&self, from: usize, window: u32, number: u64, bytes: &[u8]) -> Effects {
        let mut effects = Effects::default();
        let mut reply = |outcome| effects.answers.push((from, window, number, answer(outcome, None)));
        let mut parts = self.lock();
        if !parts.served.contains_key(&window) && !parts.was_dropped(window) {
            effects.is_refused = true;
            return effects;
        }
        let Some(served) = parts.served.get_mut(&window) else {
            // A waiting request was answered when the part was dropped.
            if !matches!(Asked::read(bytes), Some(Asked::Holder)) {
                reply(self.dropped());
            }
            return effects;
        };
        match Asked::read(bytes) {
            None => reply(Outcome::Refused),
            Some(Asked::Holder) => served.report((from, number), window, &mut effects),
            Some(Asked::New(request)) => match served.job(from, number, request) {
                Err(Outcome::NotSole) => {
                    let reply = answer(Outcome::NotSole, served.words.sole_rank());
                    effects.answers.push((from, window, number, reply));
                }
                Err(outcome) => reply(outcome),
                Ok(job) => {
                    if !served.held.contains_key(&from) && !served.words.layout.is_sole {
                        served.words.note(from, Presence::Passing);
                    }
                    served.jobs.push(job);
                    served.advance(window, &mut effects);
                }
            },
        }
        effects
    }

    /// Continues waiting requests after a rank that reaches the parts has left a lock.
    pub(crate) fn advance(&self) -> Effects {
        let mut effects = Effects::default();
        self.lock().served.iter_mut().for_each(|(window, served)| served.advance(*window, &mut effects));
        effects
    }
}

impl Served {
    /// Returns a job for this request.
    ///
    /// # Errors
    /// The request is not valid, a datatype is not known, or another rank is the sole origin of the
    /// part.
    fn job(&mut self, from: usize, number: u64, mut request: Request) -> Result<Job, Outcome> {
        if !self.words.layout.has_rank(from) {
            return Err(Outcome::Refused);
        }
        let origin = self.origins.entry(from).or_default();
        // Each request is sent once, and the requests arrive in order.
        if number != origin.asked + 1 {
            return Err(Outcome::Refused);
        }
        origin.asked = number;
        if self.words.layout.is_sole && !self.words.is_of(from) {
            return Err(Outcome::NotSole);
        }
        let size = self.part.element.size as usize;
        request.expand(&mut origin.numbered, size).map_err(|unread| match unread {
            Unread::Missing => Outcome::Missing,
            Unread::Invalid => Outcome::Refused,
        })?;
        let job = self.admitted(from, number, request).ok_or(Outcome::Refused)?;
        // A datatype may name an element many times, so a request of a few bytes could find very
        // many elements.
        if job.found > most_answered(self.part.len, size) { Err(Outcome::NoMemory) } else { Ok(job) }
    }

    /// Returns a job for a request that was read, if the request fits the part.
    fn admitted(&self, from: usize, number: u64, request: Request) -> Option<Job> {
        let layout = self.words.layout;
        let held = self.held.get(&from).copied();
        let fits = self.jobs.iter().all(|job| job.from != from)
            && request.regions & !layout.all() == 0
            && held.is_none_or(|hold| hold == request.hold && !request.holds);
        let found = request.list().fits(&self.part, request.regions, &layout).filter(|_| fits)?;
        let read = || Entering::read(self.words.ranks(), self.part.len, &request.entering);
        let entering = if request.entering.is_empty() { None } else { Some(read()?) };
        let left = match held {
            _ if layout.is_sole => 0,
            Some(_) => 0,
            None if request.holds => layout.all(),
            None => request.regions,
        };
        Some(Job { from, number, request, entering, found, second: false, left, position: None })
    }

    /// If the request of `from` waits, answers with the rank that is in its way.
    fn report(&self, (from, number): (usize, u64), window: u32, effects: &mut Effects) {
        let waits = self.jobs.iter().find(|job| job.from == from);
        let reply = match waits {
            Some(job) => {
                // Second locks are held for a moment only.
                let holder = self.words.holder(from).filter(|_| !job.second);
                let text = holder.zip(job.position).map(|(holder, at)| {
                    let lock = self.words.lock(job.left.trailing_zeros() as usize, job.second);
                    self.words.queue(holder, (from, lock, at))
                });
                let mut reply = answer(Outcome::Waits, holder);
                reply.extend(text.unwrap_or_default().bytes().take(TEXT_MAX));
                (job.number, reply)
            }
            // The request was lost: requests come in order, and a later question has come.
            None if self.origins.get(&from).is_none_or(|origin| origin.asked < number) => {
                (number, answer(Outcome::Refused, None))
            }
            None => return, // it was answered
        };
        effects.answers.push((from, window, reply.0, reply.1));
    }

    /// Advances all jobs without waiting.
    fn advance(&mut self, window: u32, effects: &mut Effects) {
        let mut jobs = std::mem::take(&mut self.jobs);
        let attendant = self.words.attendant();
        loop {
            while let Some(at) = jobs.iter_mut().position(|job| self.takes(job, effects)) {
                let job = jobs.remove(at);
                let (from, number) = (job.from, job.number);
                let reply = self.carry_out(job, window, effects);
                effects.answers.push((from, window, number, reply));
            }
            // If a job has left a lock, or entered a lock together with others, another job that
            // was examined before may now enter that lock.
            let wakes = effects.wakes.len();
            effects.wakes.retain(|&next| next != attendant);
            if effects.wakes.len() == wakes {
                break;
            }
        }
        self.jobs = jobs;
    }

    /// Takes locks for a job. Returns whether the job has all locks that it needs.
    fn takes(&self, job: &mut Job, effects: &mut Effects) -> bool {
        loop {
            let hold = if job.second { Hold::Exclusive } else { job.request.hold };
            while job.left != 0 {
                let lock: FairLock<'_> = self.words.lock(job.left.trailing_zeros() as usize, job.second);
                match job.position {
                    None => {
                        job.position = lock.take_nudged(hold, self.words.attendant()).err();
                        if job.position.is_some() && !self.held.contains_key(&job.from) {
                            self.words.note_waiting(job.from, hold, &job.request.site);
                        }
                    }
                    Some(position) => match lock.enter(position, hold) {
                        Some(Next(next)) => {
                            effects.wakes.extend(next);
                            job.position = None;
                            if !self.held.contains_key(&job.from) {
                                self.words.note(job.from, Presence::Passing);
                            }
                        }
                        None => return false,
                    },
                }
                if job.position.is_none() {
                    job.left &= job.left - 1;
                }
            }
            let takes_second = self.words.layout.takes_second(job.request.hold);
            if job.second || !takes_second || job.request.records.is_empty() {
                return true;
            }
            (job.second, job.left) = (true, job.request.regions);
        }
    }

    fn leave(&self, regions: u32, hold: Hold, second: bool, effects: &mut Effects) {
        let mut left = regions;
        while left != 0 {
            let Next(next) = self.words.lock(left.trailing_zeros() as usize, second).leave(hold);
            effects.wakes.extend(next);
            left &= left - 1;
        }
    }

    /// Carries out a job that has its locks, and leaves the locks that the job does not keep.
    /// Returns the answer.
    fn carry_out(&mut self, job: Job, window: u32, effects: &mut Effects) -> Vec<u8> {
        let Job { from, request, mut entering, found, second, .. } = job;
        let mut reply = answer(Outcome::Done, None);
        let mut conflicts = false;
        if let Some(entering) = &mut entering {
            conflicts = self.check(from, request.hold, entering, window, &mut reply);
        }
        let mut keeps = request.holds && !request.ends;
        let others = Others::of(&self.words.layout, request.hold);
        if reply.try_reserve_exact(found).is_err() {
            reply = answer(Outcome::NoMemory, None);
            keeps = false;
        } else {
            if !conflicts {
                // SAFETY: the operations fit the part, and are in the regions that are held for
                // them. Shared epochs visit these regions together if elements are atomic.
                // Otherwise the second locks admit shared epochs one by one.
                unsafe { request.list().carry_out(&self.part, others, &mut reply) };
            }
            if let Some(done) = &entering {
                clock::write(&self.observed(from, request.hold, done), &mut reply);
            }
        }
        if second {
            self.leave(request.regions, Hold::Exclusive, true, effects);
        }
        let held = self.held.contains_key(&from);
        let all = self.words.layout.all();
        if self.words.layout.is_sole {
            // A part with a sole origin has no locks. `held` only records the state that the
            // requests of the origin announce.
            if keeps {
                self.held.insert(from, request.hold);
            } else if request.ends {
                self.held.remove(&from);
            }
        } else if keeps {
            self.held.insert(from, request.hold);
            self.words.note_holding(from, &request.site);
        } else if !held || request.ends {
            self.held.remove(&from);
            self.leave(
                if held || request.holds { all } else { request.regions },
                request.hold,
                false,
                effects,
            );
            self.words.note(from, Presence::Absent);
        }
        reply
    }
}

impl Served {
    /// Looks for conflicts of operations that are about to be carried out, and adds the findings
    /// for their origin to the answer. Returns whether there are conflicts. If there are conflicts,
    /// nothing is carried out.
    fn check(
        &self,
        from: usize,
        hold: Hold,
        entering: &mut Entering,
        window: u32,
        reply: &mut Vec<u8>,
    ) -> bool {
        let mut learnt = Learnt { knows: vec![0; self.words.ranks()], findings: Findings::default() };
        match self.words.logs() {
            Some(logs) => learnt = Learnt::of(&logs, hold, entering, (from, window, self.rank)),
            None => learnt.findings.is_blind = true,
        }
        let conflicts = !learnt.findings.conflicts.is_empty();
        learnt.write(reply);
        conflicts
    }

    /// Returns the times that are over because operations of rank `from` have found accumulates of
    /// other ranks. Called after these operations were carried out. The answer already contains the
    /// times that the check has found.
    fn observed(&self, from: usize, hold: Hold, done: &Entering) -> Vec<u64> {
        let logs = self.words.logs().filter(|_| hold == Hold::Shared);
        let mut over = logs.map_or_else(Vec::new, |logs| logs.observed(from, done));
        over.resize(self.words.ranks(), 0);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::datatypes::Named;
    use crate::collect::visits::{Action, Visits, record};
    use crate::locks::state::hints::Hints;
    use crate::locks::state::request::{read_answer, wide_records};
    use crate::locks::state::words::Layout;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::{ElementType, Op, Scalar};
    use fencepost_tests_support::random::Random;
    use fencepost_transport::Record;
    use std::cell::RefCell;

    const LEN: usize = 2000;
    const I64: ElementType = ElementType::scalar(Scalar::I64);

    /// The service of rank 1 of four, for window 5. The memory of the window is followed by
    /// elements that are not in the window.
    struct Fixture {
        service: Service,
        words: Words,
        memory: Vec<i64>,
        _words: Vec<u64>,
        /// The number of the last request of each origin.
        asked: RefCell<[u64; 5]>,
    }

    impl Fixture {
        /// Makes this request, with the next number of its origin. A question about a request has
        /// the number of that request.
        fn ask(&self, from: usize, bytes: &[u8]) -> Effects {
            let number = &mut self.asked.borrow_mut()[from];
            *number += u64::from(!matches!(Asked::read(bytes), Some(Asked::Holder)));
            self.service.ask(from, 5, *number, bytes)
        }
    }

    fn fixture() -> Fixture {
        let (mut memory, layout) = (vec![0_i64; LEN + 8], Layout::new(4, LEN, I64, Hints::new()));
        let mut all = vec![0_u64; layout.words()];
        // SAFETY: the memory has the layout's number of words, and the `Fixture` keeps the memory.
        let words = unsafe { Words::new(all.as_mut_ptr(), layout) };
        let service = Service::default();
        let part = Part { base: memory.as_mut_ptr().cast(), len: LEN, element: I64 };
        // SAFETY: the value keeps the memory longer than the service.
        service.serve(5, unsafe { Served::new(1, part, words) });
        Fixture { service, words, memory, _words: all, asked: RefCell::default() }
    }

    /// Returns the length of the datatype of each wide operation.
    fn forms(records: &[Record], wide: &[u8]) -> Vec<usize> {
        let length = |record: &Record| {
            let rest = &wide[record.value as usize..];
            let mut after = rest;
            drop(Datatype::decode(&mut after));
            rest.len() - after.len()
        };
        wide_records(records).map(length).collect()
    }

    fn request(hold: Hold, holds: bool, ends: bool, fill: impl FnOnce(&mut Visits)) -> Vec<u8> {
        let (mut visits, mut bytes) = (Visits::default(), Vec::new());
        fill(&mut visits);
        let Visits { records, wide, .. } = visits;
        let records = records.to_vec();
        let forms = forms(&records, &wide);
        let regions = Layout::new(4, LEN, I64, Hints::new()).all();
        let (site, entering) = ("a.rs:1".into(), Vec::new());
        Request { hold, holds, ends, regions, records, wide, forms, site, entering }
            .write(&mut Named::default(), &mut bytes);
        bytes
    }

    fn add(at: usize, value: i64) -> impl Fn(&mut Visits) {
        move |visits| visits.records.push(record(Action::Fetch(Op::Sum), at, value as u64))
    }

    /// Returns the ranks that were answered, each with its outcome and the first element that it
    /// found.
    fn answered(effects: &Effects) -> Vec<(usize, Outcome, Option<i64>)> {
        let each = effects.answers.iter().map(|(to, window, _, bytes)| {
            assert_eq!(*window, 5);
            let (outcome, _, found) = read_answer(bytes).expect("an answer");
            (*to, outcome, found.first_chunk().map(|bytes| i64::from_ne_bytes(*bytes)))
        });
        each.collect()
    }

    /// Returns the ranks that wait, each with the rank in its way.
    fn answers_of(effects: &Effects) -> Vec<(usize, Option<usize>)> {
        let each = effects.answers.iter().map(|(to, .., bytes)| {
            let (outcome, in_the_way, _) = read_answer(bytes).expect("an answer");
            assert_eq!(outcome, Outcome::Waits);
            (*to, in_the_way)
        });
        each.collect()
    }

    #[test]
    fn requests_wait_for_exclusive_holders_and_go_on_when_they_leave() {
        let fixture = fixture();
        let ask = |from, bytes: &[u8]| answered(&fixture.ask(from, bytes));
        let shared = request(Hold::Shared, false, true, add(7, 5));
        assert_eq!(ask(0, &shared), [(0, Outcome::Done, Some(0))]);
        // Rank 1 itself holds the first region.
        assert_eq!(fixture.words.lock(0, false).take(Hold::Exclusive, 1), Ok(()));
        assert_eq!(ask(2, &shared), []);
        let mut holder = Vec::new();
        Request::write_holder(&mut holder);
        assert_eq!(ask(2, &holder), [(2, Outcome::Waits, None)]);
        assert_eq!(ask(2, &shared)[0], (2, Outcome::Refused, None), "one at a time");
        let holding = request(Hold::Exclusive, true, false, add(7, 1));
        assert_eq!(ask(3, &holding), []);
        // Four is the number of the attendant.
        assert_eq!(fixture.words.lock(0, false).leave(Hold::Exclusive), Next(Some(4)));
        let effects = answered(&fixture.service.advance());
        assert_eq!(effects, [(2, Outcome::Done, Some(5)), (3, Outcome::Done, Some(10))]);
        assert_eq!(ask(2, &holder), [], "it was answered");
        // Rank 3 holds all regions until it ends.
        assert_eq!(fixture.words.held_since(3).as_deref(), Some("a.rs:1"));
        assert_eq!(ask(0, &shared), []);
        assert_eq!(answers_of(&fixture.ask(0, &holder)), [(0, Some(3))]);
        assert_eq!(ask(3, &holding), [(3, Outcome::Refused, None)], "it holds them");
        assert_eq!(ask(3, &request(Hold::Shared, false, true, add(7, 1)))[0].1, Outcome::Refused);
        assert_eq!(
            ask(3, &request(Hold::Exclusive, false, false, add(7, 1)))[0],
            (3, Outcome::Done, Some(11))
        );
        let ended = ask(3, &request(Hold::Exclusive, false, true, |_| ()));
        assert_eq!(ended, [(3, Outcome::Done, None), (0, Outcome::Done, Some(12))]);
        assert_eq!(fixture.words.held_since(3), None);
        assert_eq!(fixture.memory[7], 17);
        assert_eq!(fixture.words.lock(0, false).take(Hold::Exclusive, 1), Ok(()), "nobody is left there");
        assert_eq!(ask(2, &shared), []);
        assert_eq!(answered(&fixture.service.forget(5, false)), [(2, Outcome::Dropped, None)]);
        assert_eq!(ask(0, &shared), [(0, Outcome::Dropped, None)]);
        assert_eq!(ask(0, &holder), []);
        assert_eq!(answered(&fixture.service.forget(5, true)), []);
        assert_eq!(ask(0, &shared), [(0, Outcome::Over, None)]);
    }

    #[test]
    fn a_lock_that_one_request_enters_together_with_an_earlier_one_is_entered_by_both() {
        let fixture = fixture();
        let all = fixture.words.layout.all();
        assert!(all.count_ones() >= 3, "the test needs three regions");
        let of = |regions: u32| {
            let site = String::new();
            let (records, wide) = (Vec::new(), Vec::new());
            let entering = Vec::new();
            let request = Request {
                hold: Hold::Shared,
                holds: false,
                ends: true,
                regions,
                records,
                wide,
                forms: Vec::new(),
                site,
                entering,
            };
            let mut bytes = Vec::new();
            request.write(&mut Named::default(), &mut bytes);
            bytes
        };
        for region in 0..3 {
            assert_eq!(fixture.words.lock(region, false).take(Hold::Exclusive, 1), Ok(()));
        }
        // Rank 2 waits at region 0, and then comes after rank 3 at region 1.
        assert_eq!(answered(&fixture.ask(2, &of(0b011))), []);
        assert_eq!(answered(&fixture.ask(3, &of(0b110))), []);
        for region in 0..2 {
            assert_eq!(fixture.words.lock(region, false).leave(Hold::Exclusive), Next(Some(4)));
        }
        // Rank 3 lets rank 2 in at region 1, and waits at region 2.
        assert_eq!(answered(&fixture.service.advance()), [(2, Outcome::Done, None)]);
        assert_eq!(fixture.words.lock(2, false).leave(Hold::Exclusive), Next(Some(4)));
        assert_eq!(answered(&fixture.service.advance()), [(3, Outcome::Done, None)]);
    }

    #[test]
    fn requests_that_no_origin_makes_are_refused_and_change_nothing() {
        let fixture = fixture();
        let wide = |remote: Datatype, operands: Vec<u8>| {
            move |visits: &mut Visits| assert!(visits.push_wide(Action::Put, &remote, [&[], &operands]))
        };
        let outside = LEN + 2;
        let bad = [
            request(Hold::Shared, false, true, add(LEN, 1)),
            request(Hold::Shared, false, true, add(usize::MAX >> 8, 1)),
            request(Hold::Shared, false, true, |v| {
                v.records.push(record(Action::Accumulate(Op::MinLoc), 0, 1));
            }),
            request(Hold::Exclusive, false, true, wide(Datatype::run(LEN - 1..LEN + 1), vec![1; 16])),
            request(Hold::Exclusive, false, true, wide(Datatype::elements([-1]).unwrap(), vec![1; 8])),
            request(Hold::Exclusive, false, true, wide(Datatype::run(0..2), vec![1; 15])),
            request(Hold::Exclusive, true, false, wide(Datatype::run(outside..outside + 1), vec![1; 8])),
        ];
        for (i, bytes) in bad.iter().enumerate() {
            let effects = fixture.ask(0, bytes);
            assert_eq!(answered(&effects), [(0, Outcome::Refused, None)], "{i}");
        }
        let good = request(Hold::Shared, false, true, add(3, 0));
        assert_eq!(answered(&fixture.ask(4, &good)), [(4, Outcome::Refused, None)], "no rank 4");
        assert!(fixture.memory.iter().all(|value| *value == 0));
        assert_eq!(fixture.words.lock(0, false).take(Hold::Exclusive, 1), Ok(()), "no lock was taken");
    }

    #[test]
    fn garbled_requests_touch_nothing_outside_the_window() {
        let mut dice = Random::new(11);
        for _ in 0..20_000 {
            let fixture = fixture();
            let mut bytes = request(
                dice.one_of(&[Hold::Shared, Hold::Exclusive]),
                dice.once_in(2),
                dice.once_in(2),
                |v| {
                    let at = dice.below(LEN);
                    v.records.push(record(Action::CompareAndSwap, at, 0));
                    v.records.push(record(Action::CompareAndSwap, at, 1));
                    assert!(v.push_wide(
                        Action::Put,
                        &Datatype::nest(3, &[(4, 7)], 2).unwrap(),
                        [&[], &[9; 64]]
                    ));
                    v.records.push(record(Action::Put, dice.below(LEN), 1));
                },
            );
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(bytes.len());
                bytes[at] = dice.bits() as u8;
            }
            if dice.once_in(4) {
                bytes.truncate(dice.below(bytes.len()));
            }
            drop(fixture.ask(dice.below(4), &bytes));
            assert!(fixture.memory[LEN..].iter().all(|value| *value == 0));
        }
    }
}
