//! [`Clock`]: the times that a rank knows to be over before its next calls. The clock serves the
//! search for conflicts between epochs that no fence ends (planner/README.md, 32).
//!
//! The clock is a vector clock (Fidge, Mattern) of all ranks of the job. Exchanges of all ranks of
//! the job reduce the data that ranks send for the clock. A *time* of a rank has the number of the
//! last such exchange in its high bits. Its low bits count the operations or epochs that the rank
//! has ended since. After an exchange every rank knows, without further data, that all times with
//! smaller exchange numbers are over. The times of all ranks of the job are sent in exchanges of a
//! world that was split off, and with messages, posts and accesses. The locks of a part keep the
//! times of the ranks of the part's world.

use fencepost_transport::bytes::{Reader, Writer};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// The times of all ranks of the job, as far as a rank knows them.
#[derive(Default)]
struct Times {
    /// The number of the last exchange of all ranks of the job.
    exchange: Cell<u32>,
    /// The number of operations or epochs that this rank has ended since the last exchange of all
    /// ranks of the job.
    ended: Cell<u32>,
    /// The times of other ranks that this rank has received, by rank of the job. Empty if it has
    /// received none yet.
    heard: RefCell<Vec<u64>>,
    /// A number that changes whenever this rank receives a later time.
    version: Cell<u64>,
}

/// A world that was split off.
struct Part {
    /// The rank in the job of each rank of the split-off world.
    ranks: Vec<usize>,
    /// The number of ranks of the job.
    job: usize,
}

/// The clock of a rank in a world: the times of all ranks of the job, as far as the rank knows
/// them.
#[derive(Default)]
pub(crate) struct Clock {
    times: OnceCell<Rc<Times>>,
    /// `None` for the world of all ranks of the job.
    part: OnceCell<Part>,
    /// This rank's time at the last exchange of this world.
    met: Cell<u64>,
    /// Whether exchanges order nothing for now.
    ignores_exchanges: Cell<bool>,
}

/// Returns the first time after the exchange with this number.
pub(crate) fn after_exchange(number: u32) -> u64 {
    u64::from(number) << 32
}

/// Raises each time of `into` to the time that `more` has for the same rank, if that time is later.
pub(crate) fn merge(into: &mut [u64], more: &[u64]) {
    into.iter_mut().zip(more).for_each(|(time, more)| *time = (*time).max(*more));
}

impl Times {
    fn time(&self) -> u64 {
        after_exchange(self.exchange.get()) | u64::from(self.ended.get())
    }

    /// Returns the times of all `ranks` of the job. This rank is `me`.
    fn now(&self, me: usize, ranks: usize) -> Vec<u64> {
        let mut all = vec![after_exchange(self.exchange.get()); ranks];
        merge(&mut all, &self.heard.borrow());
        all[me] = self.time();
        all
    }

    /// Adds these times of ranks of the job to the known times.
    fn hear(&self, ranks: usize, times: impl Iterator<Item = (usize, u64)>) {
        let heard = &mut *self.heard.borrow_mut();
        heard.resize(ranks.max(heard.len()), 0);
        for (rank, time) in times {
            if time > heard[rank] {
                heard[rank] = time;
                self.version.set(self.version.get() + 1);
            }
        }
    }
}

impl Clock {
    #[inline]
    fn times(&self) -> &Times {
        self.times.get_or_init(Rc::default)
    }

    /// Makes this the clock of a world that was split off, before the clock is used. `from` is the
    /// clock of the world before the split, which has `ranks` ranks. `members` are the ranks of the
    /// new world, as numbered in the world before the split.
    pub(crate) fn split_off(&self, from: &Clock, ranks: usize, members: &[usize]) {
        from.times();
        let part = match from.part.get() {
            None => Part { ranks: members.to_vec(), job: ranks },
            Some(Part { ranks, job }) => {
                Part { ranks: members.iter().map(|&member| ranks[member]).collect(), job: *job }
            }
        };
        let shared = from.times.get().cloned().is_some_and(|times| self.times.set(times).is_ok());
        let is_new = self.part.set(part).is_ok();
        assert!(shared && is_new, "a clock that is not used yet");
    }

    /// Returns whether exchanges of this world order only the times that are sent in them, because
    /// this world was split off.
    pub(crate) fn has_to_tell(&self) -> bool {
        self.part.get().is_some() && !self.ignores_exchanges.get()
    }

    /// Notes that all ranks of this world have met in an exchange of this number. In the world of
    /// the job, everything that the ranks ended before the exchange is over.
    pub(crate) fn met(&self, number: u32) {
        if self.ignores_exchanges.get() {
            return;
        }
        let times = self.times();
        if self.part.get().is_none() && times.exchange.replace(number) != number {
            times.ended.set(0);
            times.version.set(times.version.get() + 1);
        }
        self.met.set(times.time());
    }

    /// Runs `call`. All ranks make this call, but it does not order everything that they have
    /// ended. The exchanges of the call are not counted.
    pub(crate) fn ignoring_exchanges<R>(&self, call: impl FnOnce() -> R) -> R {
        let before = self.ignores_exchanges.replace(true);
        let result = call();
        self.ignores_exchanges.set(before);
        result
    }

    /// Returns this rank's time at the last ordering exchange of this world. Usually everything
    /// that this rank ended before that time is over for all ranks of the world.
    pub(crate) fn met_at(&self) -> u64 {
        self.met.get()
    }

    /// Ends an operation or an epoch of this rank, and returns its time. Everything that the rank
    /// has ended has an earlier time than the rank's current time.
    pub(crate) fn end(&self) -> u64 {
        let times = self.times();
        let time = times.time();
        times.ended.set(times.ended.get().saturating_add(1));
        time
    }

    /// Returns the times that this rank, `me`, knows for all `ranks` ranks of this world. An
    /// operation or epoch of a rank is over if its time is earlier than the returned time of that
    /// rank.
    pub(crate) fn now(&self, me: usize, ranks: usize) -> Vec<u64> {
        let Some(part) = self.part.get() else { return self.times().now(me, ranks) };
        let all = self.times().now(part.ranks[me], part.job);
        part.ranks.iter().map(|&rank| all[rank]).collect()
    }

    /// Returns this rank's time. Everything that this rank has ended has an earlier time.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.times().time()
    }

    /// Adds these times of all ranks of this world to the known times. This rank is `me`.
    pub(crate) fn hear(&self, me: usize, times: &[u64]) {
        let times = times.iter().copied().enumerate().map(|(rank, time)| if rank == me { 0 } else { time });
        match self.part.get() {
            None => self.times().hear(times.len(), times.enumerate()),
            Some(part) => self.times().hear(part.job, part.ranks.iter().copied().zip(times)),
        }
    }

    /// Appends the times of all ranks of the job, as far as this rank knows them. This rank is `me`
    /// in this world, which has `ranks` ranks.
    pub(crate) fn write_all(&self, me: usize, ranks: usize, out: &mut Vec<u8>) {
        let (me, ranks) = self.part.get().map_or((me, ranks), |part| (part.ranks[me], part.job));
        write(&self.times().now(me, ranks), out);
    }

    /// Reads the times that a rank of this world has [written](Self::write_all), and advances
    /// `bytes` past them. This world has `ranks` ranks.
    pub(crate) fn read_all(&self, ranks: usize, bytes: &mut Reader<'_>) -> Option<OfJob> {
        read(self.part.get().map_or(ranks, |part| part.job), bytes).map(OfJob)
    }

    /// Adds these times to the known times.
    pub(crate) fn hear_all(&self, OfJob(times): &OfJob) {
        self.times().hear(times.len(), times.iter().copied().enumerate());
    }

    /// Returns a number that changes when this rank receives a later time.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.times().version.get()
    }
}

/// Times of all ranks of the job.
pub(crate) struct OfJob(Vec<u64>);

/// Appends times to `out`.
pub(crate) fn write(times: &[u64], out: &mut Vec<u8>) {
    out.put_all(times);
}

/// Reads the times of all `ranks` at the front of `bytes`, and advances `bytes` past them.
pub(crate) fn read(ranks: usize, bytes: &mut Reader<'_>) -> Option<Vec<u64>> {
    Some(bytes.all(ranks)?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ended_is_over_for_who_heard_of_it_or_met_since() {
        let [a, b, c] = [(); 3].map(|()| Clock::default());
        [&a, &b, &c].iter().for_each(|clock| clock.met(7));
        let ended = a.end();
        let knows = |clock: &Clock, me| clock.now(me, 3)[0] > ended;
        assert!(knows(&a, 0) && !knows(&b, 1));
        let version = b.version();
        b.hear(1, &a.now(0, 3));
        assert!(knows(&b, 1) && !knows(&c, 2) && b.version() != version);
        c.hear(2, &b.now(1, 3));
        assert!(knows(&c, 2));
        let later = a.end();
        assert!(later > ended && b.now(1, 3)[0] <= later);
        assert!(a.met_at() <= ended);
        b.met(8);
        assert!(b.now(1, 3)[0] > later && b.now(1, 3)[2] > c.end());
    }

    #[test]
    fn an_exchange_that_is_ignored_orders_nothing() {
        let [a, b] = [(); 2].map(|()| Clock::default());
        let ended = a.end();
        [&a, &b].iter().for_each(|clock| clock.ignoring_exchanges(|| clock.met(7)));
        assert!(b.now(1, 2)[0] <= ended);
        [&a, &b].iter().for_each(|clock| clock.met(8));
        assert!(b.now(1, 2)[0] > ended);
    }

    #[test]
    fn what_is_heard_in_a_world_that_was_split_off_is_known_in_all_worlds() {
        // A world of ranks 3 and 1 of four, in this order, and a world of rank 3 alone.
        let [job, other] = [(); 2].map(|()| Clock::default());
        [&job, &other].iter().for_each(|clock| clock.met(7));
        let [part, of_other, alone] = [(); 3].map(|()| Clock::default());
        part.split_off(&job, 4, &[3, 1]);
        of_other.split_off(&other, 4, &[3, 1]);
        alone.split_off(&part, 2, &[0]);
        let ended = other.end();
        assert!(job.now(3, 4)[1] <= ended);
        let bytes = &mut Vec::new();
        of_other.write_all(1, 2, bytes);
        part.met(9);
        assert!(part.has_to_tell() && !job.has_to_tell() && job.now(3, 4)[1] <= ended);
        part.hear_all(&part.read_all(2, &mut Reader(bytes)).expect("times of four ranks"));
        assert!(job.now(3, 4)[1] > ended && part.now(0, 2)[1] > ended);
        assert_eq!(alone.now(0, 1), [job.now(3, 4)[3]]);
        assert!(part.read_all(2, &mut Reader(&bytes[1..])).is_none());
        let later = other.end();
        part.hear(0, &[0, later + 1]);
        assert!(job.now(3, 4)[1] > later);
    }

    #[test]
    fn times_are_read_as_they_were_written() {
        let mut out = Vec::new();
        write(&[1, u64::MAX], &mut out);
        out.push(9);
        let mut bytes = Reader(&out);
        assert_eq!((read(2, &mut bytes), bytes.0), (Some(vec![1, u64::MAX]), &[9][..]));
        assert_eq!(read(3, &mut Reader(&out)), None);
    }
}
