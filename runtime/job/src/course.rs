//! [`Course`]: how a job goes: what is done when a rank says something or ends. No process and no clock is touched here.

use crate::control::{Ending, Message};
use crate::description::Reach;
use crate::exit::{Exit, FAILED, NOT_RUN, TIMED_OUT};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What is to be done to a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Tell(u32, Message),
    Signal(u32, i32),
    Kill(u32),
}

/// One rank's course.
#[derive(Default)]
struct Part {
    joined: bool,
    address: Option<SocketAddr>,
    /// Why it could not join.
    refused: Option<String>,
    /// Whether it is in a world.
    inside: bool,
    /// How it left its last world.
    left: Option<Ending>,
    /// Whether it was killed for taking too long after a failure, or a signal.
    killed: bool,
    exit: Option<Exit>,
}

/// A job from its start to its end.
pub(crate) struct Course {
    parts: Vec<Part>,
    reach: Reach,
    grace: Duration,
    /// When those that are left are killed.
    last_call: Option<Instant>,
    /// When the job has taken too long.
    timeout: Option<Instant>,
    timed_out: bool,
    signals: u32,
    table_told: bool,
    /// How the first ended that failed by itself.
    first: Option<String>,
}

/// One rank that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Which.
    pub rank: u32,
    /// What became of it, as in `was killed by signal 9 (SIGKILL)`.
    pub how: String,
    /// The exit code that stands for it.
    pub code: u8,
    /// Whether it failed by itself, and not because another had.
    pub own: bool,
}

impl Course {
    pub(crate) fn new(size: u32, reach: Reach, grace: Duration, timeout: Option<Instant>) -> Self {
        Self {
            parts: (0..size).map(|_| Part::default()).collect(),
            reach,
            grace,
            last_call: None,
            timeout,
            timed_out: false,
            signals: 0,
            table_told: false,
            first: None,
        }
    }

    /// A rank has said something.
    pub(crate) fn said(&mut self, rank: u32, message: Message, orders: &mut Vec<Order>) {
        let Some(part) = self.parts.get_mut(rank as usize) else { return };
        match message {
            Message::Joined(_) => part.joined = true,
            Message::Refused(why) => part.refused = Some(why),
            Message::Listening(address) => part.address = Some(address),
            Message::Entered => part.inside = true,
            Message::Left(ending) => (part.inside, part.left) = (false, Some(ending)),
            _ => {}
        }
        self.tell_table(orders);
    }

    fn tell_table(&mut self, orders: &mut Vec<Order>) {
        if self.reach == Reach::Shm || self.table_told {
            return;
        }
        let table: Option<Vec<SocketAddr>> = self.parts.iter().map(|part| part.address).collect();
        if let Some(table) = table {
            self.table_told = true;
            let living = self.living();
            orders.extend(living.map(|rank| Order::Tell(rank, Message::Table(table.clone()))));
        }
    }

    /// A rank has ended: the others are told at once, and if it failed they have so long to end by themselves.
    pub(crate) fn exited(&mut self, rank: u32, exit: Exit, now: Instant, orders: &mut Vec<Order>) {
        let Some(part) = self.parts.get_mut(rank as usize) else { return };
        if part.exit.is_some() {
            return;
        }
        let mut how = exit.of(rank);
        part.exit = Some(exit);
        if let Some(failure) = self.failure(rank) {
            self.last_call.get_or_insert(now + self.grace);
            match &self.first {
                Some(first) if !failure.own => how = format!("{how} after {first}"),
                None if failure.own => self.first = Some(how.clone()),
                _ => {}
            }
        }
        orders.extend(self.living().map(|rest| Order::Tell(rest, Message::Died { rank, how: how.clone() })));
    }

    /// The starter was sent a signal: the ranks get it, too, and if one was sent before they are killed.
    pub(crate) fn signalled(&mut self, signal: i32, now: Instant, orders: &mut Vec<Order>) {
        if self.is_users(signal) {
            return orders.extend(self.living().map(|rank| Order::Signal(rank, signal)));
        }
        self.signals += 1;
        if self.signals > 1 {
            return self.kill_all(orders);
        }
        orders.extend(self.living().map(|rank| Order::Signal(rank, signal)));
        self.last_call.get_or_insert(now + self.grace);
    }

    /// Whether this signal is the user's own, and need not end anything.
    pub(crate) fn is_users(&self, signal: i32) -> bool {
        [10, 12].contains(&signal)
    }

    /// Until when what ranks wrote is to be handed on, once all have ended: who wanted the job to end does not wait for long.
    pub(crate) fn output_deadline(&self, now: Instant) -> Option<Instant> {
        if self.timed_out || self.signals > 0 { Some(now + self.grace) } else { self.timeout }
    }

    /// When [`expire`](Self::expire) has something to do at the earliest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.last_call, self.timeout].into_iter().flatten().min()
    }

    /// Time has passed.
    pub(crate) fn expire(&mut self, now: Instant, orders: &mut Vec<Order>) {
        if self.last_call.is_some_and(|then| then <= now) {
            self.last_call = None;
            self.kill_all(orders);
        }
        if self.timeout.is_some_and(|then| then <= now) {
            self.timeout = None;
            self.timed_out = true;
            self.last_call = Some(self.last_call.map_or(now + self.grace, |then| then.min(now + self.grace)));
            orders.extend(self.living().map(|rank| Order::Signal(rank, 15)));
        }
    }

    fn kill_all(&mut self, orders: &mut Vec<Order>) {
        let living: Vec<u32> = self.living().collect();
        for rank in living {
            self.parts[rank as usize].killed = true;
            orders.push(Order::Kill(rank));
        }
    }

    fn living(&self) -> impl Iterator<Item = u32> + use<'_> {
        (0_u32..).zip(&self.parts).filter(|(_, part)| part.exit.is_none()).map(|(rank, _)| rank)
    }

    /// Living ranks that have not joined though another has: how many, and the first; nothing while none has.
    pub(crate) fn absent(&self) -> Option<(usize, Option<u32>)> {
        let joined = |rank: &u32| self.parts[*rank as usize].joined;
        self.parts.iter().any(|part| part.joined).then(|| {
            let absent = || self.living().filter(|rank| !joined(rank));
            (absent().count(), absent().next())
        })
    }

    /// Whether every rank has ended.
    pub(crate) fn over(&self) -> bool {
        self.living().next().is_none()
    }

    /// Whether it took longer than it was given.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// What a rank failed of, if it has ended and failed.
    fn failure(&self, rank: u32) -> Option<Failure> {
        let part = &self.parts[rank as usize];
        let exit = part.exit.as_ref()?;
        let (how, code) = match (&part.refused, exit) {
            (_, Exit::NotStarted { .. } | Exit::Lost(_)) => (exit.to_string(), exit.code()),
            (Some(why), _) => (format!("could not join the job: {why}"), FAILED),
            (None, Exit::Code(0)) if !part.joined => {
                ("ended without joining the job: is its program one of Fencepost's?".into(), NOT_RUN)
            }
            (None, Exit::Code(0)) if part.inside => ("exited with code 0 in the middle of a world".into(), 1),
            (None, Exit::Code(0)) => return None,
            (None, exit) => (exit.to_string(), exit.code()),
        };
        let own = !part.killed && (part.left != Some(Ending::Echo) || part.inside);
        Some(Failure { rank, how, code, own })
    }

    /// All failures by rank.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        (0..self.parts.len() as u32).filter_map(|rank| self.failure(rank)).collect()
    }

    /// The job's exit code: that of the lowest rank that failed by itself; if none did, of the lowest that failed.
    pub(crate) fn code(&self) -> u8 {
        if self.timed_out {
            return TIMED_OUT;
        }
        let failures = self.failures();
        failures.iter().find(|failure| failure.own).or(failures.first()).map_or(0, |failure| failure.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    struct Job {
        course: Course,
        now: Instant,
    }

    impl Job {
        fn of(size: u32, reach: Reach) -> Self {
            let now = Instant::now();
            Self { course: Course::new(size, reach, GRACE, Some(now + 10 * GRACE)), now }
        }

        /// A job whose ranks have all joined and entered a world.
        fn running(size: u32) -> Self {
            let mut job = Self::of(size, Reach::Shm);
            for rank in 0..size {
                job.said(rank, Message::Joined("0".into()));
                job.said(rank, Message::Entered);
            }
            job
        }

        fn said(&mut self, rank: u32, message: Message) -> Vec<Order> {
            let mut orders = Vec::new();
            self.course.said(rank, message, &mut orders);
            orders
        }

        fn exited(&mut self, rank: u32, exit: Exit) -> Vec<Order> {
            let mut orders = Vec::new();
            self.course.exited(rank, exit, self.now, &mut orders);
            orders
        }

        fn later(&mut self, by: Duration) -> Vec<Order> {
            self.now += by;
            let mut orders = Vec::new();
            self.course.expire(self.now, &mut orders);
            orders
        }
    }

    fn died(to: u32, rank: u32, how: &str) -> Order {
        Order::Tell(to, Message::Died { rank, how: format!("rank {rank} of the job {how}") })
    }

    #[test]
    fn the_table_is_told_once_when_the_last_rank_listens() {
        let mut job = Job::of(2, Reach::Tcp);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert!(job.said(1, Message::Listening(at(2))).is_empty());
        let table = Message::Table(vec![at(1), at(2)]);
        let told = [Order::Tell(0, table.clone()), Order::Tell(1, table)];
        assert_eq!(job.said(0, Message::Listening(at(1))), told);
        assert!(job.said(0, Message::Listening(at(3))).is_empty());
    }

    #[test]
    fn who_has_not_joined_is_absent_once_somebody_has() {
        let mut job = Job::of(3, Reach::Tcp);
        assert_eq!(job.course.absent(), None);
        job.said(1, Message::Joined("0".into()));
        assert_eq!(job.course.absent(), Some((2, Some(0))));
        job.exited(0, Exit::Code(1));
        assert_eq!(job.course.absent(), Some((1, Some(2))));
        job.said(2, Message::Joined("0".into()));
        assert_eq!(job.course.absent(), Some((0, None)));
    }

    #[test]
    fn a_death_is_told_to_the_living_and_gives_them_a_while() {
        let mut job = Job::running(3);
        assert_eq!(
            job.exited(1, Exit::Signal(9)),
            [died(0, 1, "was killed by signal 9 (SIGKILL)"), died(2, 1, "was killed by signal 9 (SIGKILL)")]
        );
        assert!(job.exited(1, Exit::Code(0)).is_empty(), "nobody dies twice");
        assert!(job.later(GRACE - Duration::from_nanos(1)).is_empty());
        job.said(0, Message::Left(Ending::Echo));
        let echo = "exited with code 1 after rank 1 of the job was killed by signal 9 (SIGKILL)";
        assert_eq!(job.exited(0, Exit::Code(1)), [died(2, 0, echo)]);
        assert_eq!(job.later(Duration::from_nanos(1)), [Order::Kill(2)]);
        job.exited(2, Exit::Signal(9));
        assert!(job.course.over());
        assert_eq!(job.course.code(), 137, "rank 0 only echoed it, rank 2 was killed for it");
        let own: Vec<bool> = job.course.failures().iter().map(|failure| failure.own).collect();
        assert_eq!(own, [false, true, false]);
    }

    #[test]
    fn ranks_that_end_well_end_the_job_well_and_nobody_is_killed() {
        let mut job = Job::running(2);
        job.said(0, Message::Left(Ending::Finished));
        assert_eq!(job.exited(0, Exit::Code(0)), [died(1, 0, "exited with code 0")]);
        assert!(job.later(5 * GRACE).is_empty());
        job.said(1, Message::Left(Ending::Finished));
        job.exited(1, Exit::Code(0));
        assert_eq!((job.course.over(), job.course.code()), (true, 0));
    }

    #[test]
    fn the_lowest_rank_that_failed_by_itself_gives_the_code() {
        let mut job = Job::running(3);
        job.said(0, Message::Left(Ending::Echo));
        job.exited(0, Exit::Code(1));
        job.exited(2, Exit::Code(3));
        job.exited(1, Exit::Code(4));
        assert_eq!(job.course.code(), 4);
        let mut job = Job::running(2);
        for rank in [1, 0] {
            job.said(rank, Message::Left(Ending::Echo));
            job.exited(rank, Exit::Code(7 + rank as u8));
        }
        assert_eq!(job.course.code(), 7, "where all are echoes the lowest of them does");
    }

    #[test]
    fn who_could_not_begin_because_another_had_died_is_an_echo() {
        let mut job = Job::of(2, Reach::Tcp);
        job.said(0, Message::Joined("0".into()));
        job.exited(1, Exit::Signal(9));
        job.said(0, Message::Left(Ending::Echo));
        job.exited(0, Exit::Code(1));
        assert_eq!(job.course.code(), 137);
        let own: Vec<bool> = job.course.failures().iter().map(|failure| failure.own).collect();
        assert_eq!(own, [false, true]);
    }

    #[test]
    fn an_end_in_the_middle_of_a_world_is_a_failure_even_with_code_0() {
        let mut job = Job::running(2);
        job.exited(1, Exit::Code(0));
        assert_eq!(job.course.failures()[0].how, "exited with code 0 in the middle of a world");
        assert_eq!(job.later(GRACE), [Order::Kill(0)]);
    }

    #[test]
    fn a_program_that_never_joins_is_not_ours() {
        let mut job = Job::of(2, Reach::Tcp);
        job.exited(0, Exit::Code(0));
        job.exited(1, Exit::Code(0));
        assert_eq!(job.course.code(), NOT_RUN);
        let mut job = Job::of(1, Reach::Tcp);
        job.exited(0, Exit::Code(USAGE));
        assert_eq!(job.course.code(), USAGE, "it has its own reasons");
        let mut job = Job::of(1, Reach::Tcp);
        job.said(0, Message::Refused("no memory".into()));
        job.exited(0, Exit::Code(1));
        assert_eq!(job.course.code(), FAILED);
        assert_eq!(job.course.failures()[0].how, "could not join the job: no memory");
    }
    use crate::exit::USAGE;

    #[test]
    fn a_signal_is_handed_on_and_a_second_one_kills() {
        let mut job = Job::running(2);
        let mut orders = Vec::new();
        job.course.signalled(2, job.now, &mut orders);
        assert_eq!(orders, [Order::Signal(0, 2), Order::Signal(1, 2)]);
        orders.clear();
        job.exited(0, Exit::Signal(2));
        job.course.signalled(2, job.now, &mut orders);
        assert_eq!(orders, [Order::Kill(1)]);
        job.exited(1, Exit::Signal(9));
        assert_eq!(job.course.code(), 130);
    }

    #[test]
    fn a_job_that_takes_too_long_is_asked_to_end_then_killed() {
        let mut job = Job::running(1);
        assert_eq!(job.later(10 * GRACE), [Order::Signal(0, 15)]);
        assert_eq!(job.later(GRACE), [Order::Kill(0)]);
        job.exited(0, Exit::Signal(9));
        assert_eq!((job.course.timed_out(), job.course.code()), (true, TIMED_OUT));
    }
}
