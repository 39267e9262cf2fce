//! [`StateMachine`]: the state of a job, and what the launcher does when a rank reports or ends.
//!
//! The state machine is pure: it touches no process and reads no clock. It takes events and times,
//! and returns commands.

use crate::control::{Ending, Message};
use crate::description::Reach;
use crate::exit::{Exit, FAILED, NOT_RUN, STOPPED, TIMED_OUT};
use signal_hook::consts::{SIGTERM, SIGUSR1, SIGUSR2};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Describes the end of a program that never joined its job.
const NOT_JOINED: &str =
    "ended without joining the job: the program must start a world of Fencepost (`fencepost::run`)";

/// Describes the failure of a rank whose process ended inside a wrapper that continued.
pub(crate) const VANISHED: &str =
    "ended without leaving the job, inside the command that was started, which went on";

/// A command for the launcher to carry out on one rank, or on all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RankCommand {
    /// Send a message to all ranks that run.
    NotifyAll(Message),
    Signal(u32, i32),
    Kill(u32),
}

/// The state of one rank, as reported to the launcher.
#[derive(Default)]
struct RankState {
    joined: bool,
    /// The address at which the rank listens.
    address: Option<SocketAddr>,
    /// Why the rank could not join.
    join_error: Option<String>,
    /// Whether the rank is in a world.
    in_world: bool,
    /// How the rank left its last world.
    last_ending: Option<Ending>,
    /// Whether the rank's process ended without leaving the job, inside a wrapper that continued.
    vanished: bool,
    /// Whether the launcher killed the rank because it had not ended in time after a failure or a
    /// signal.
    killed: bool,
    exit: Option<Exit>,
    /// The time at which the launcher noticed that the rank had failed.
    failed_at: Option<Instant>,
}

impl RankState {
    /// Returns whether the rank's failure is primary. It is secondary if the rank itself reported
    /// that its failure follows from the failure of another rank, and has not entered a world
    /// since.
    fn is_primary(&self) -> bool {
        self.last_ending != Some(Ending::SecondaryFailure) || self.in_world
    }

    /// Returns whether the rank has ended on request, with its state saved.
    fn has_stopped(&self) -> bool {
        self.exit == Some(Exit::Code(STOPPED)) && self.last_ending == Some(Ending::Stopped) && !self.in_world
    }
}

/// A job from its start to the end of its last rank.
pub(crate) struct StateMachine {
    ranks: Vec<RankState>,
    reach: Reach,
    grace: Duration,
    /// The time at which the launcher kills the ranks that have not ended.
    kill_deadline: Option<Instant>,
    /// The time at which the job exceeds its time limit.
    timeout: Option<Instant>,
    timed_out: bool,
    /// Whether the next SIGTERM only asks the ranks to end after a snapshot.
    snapshot_on_term: bool,
    /// Whether a SIGTERM that asks for a snapshot has arrived.
    asked_to_stop: bool,
    /// The number of signals that end the job. A SIGTERM that asks for a snapshot does not count.
    signals: u32,
    /// The signals for the program's own use that were forwarded to the ranks.
    forwarded: Vec<i32>,
    table_sent: bool,
    /// How the rank with the first primary failure ended.
    first_failure: Option<String>,
    /// The secondary failures that are held back. The other ranks are notified of them after the
    /// first primary failure, or at the time `held_until`.
    held: Vec<(u32, String)>,
    held_until: Option<Instant>,
}

/// How long a secondary failure is held back if no primary one is known. A rank that panics may
/// take longer to end than a rank that notices the panic, and the errors of the other ranks should
/// name the cause.
const HOLD: Duration = Duration::from_secs(1);

/// The failure of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The rank that failed.
    pub rank: u32,
    /// How the rank ended, as in `was killed by signal 9 (SIGKILL)`.
    pub how: String,
    /// The exit code of the job if this failure determines it.
    pub code: u8,
    /// Whether this is a primary failure; a secondary failure follows from the failure of another
    /// rank.
    pub primary: bool,
}

/// Returns whether `signal` is for the program's own use (SIGUSR1, SIGUSR2): it is forwarded and
/// ends nothing.
pub(crate) fn is_user_signal(signal: i32) -> bool {
    [SIGUSR1, SIGUSR2].contains(&signal)
}

impl StateMachine {
    pub(crate) fn new(
        size: u32,
        reach: Reach,
        grace: Duration,
        timeout: Option<Instant>,
        snapshot_on_term: bool,
    ) -> Self {
        Self {
            ranks: (0..size).map(|_| RankState::default()).collect(),
            reach,
            grace,
            kill_deadline: None,
            timeout,
            timed_out: false,
            snapshot_on_term,
            asked_to_stop: false,
            signals: 0,
            forwarded: Vec::new(),
            table_sent: false,
            first_failure: None,
            held: Vec::new(),
            held_until: None,
        }
    }

    /// Handles a message from a rank.
    pub(crate) fn on_message(
        &mut self,
        rank: u32,
        message: Message,
        now: Instant,
        commands: &mut Vec<RankCommand>,
    ) {
        let Some(state) = self.ranks.get_mut(rank as usize) else { return };
        match message {
            Message::Joined(_) => state.joined = true,
            Message::JoinFailed(why) => state.join_error = Some(why),
            Message::Listening(address) => state.address = Some(address),
            Message::Entered => state.in_world = true,
            Message::Left(ending) => (state.in_world, state.last_ending) = (false, Some(ending)),
            Message::Vanished if !state.vanished && state.exit.is_none() => {
                state.vanished = true;
                return self.notify_of_end(rank, format!("rank {rank} of the job {VANISHED}"), now, commands);
            }
            _ => {}
        }
        self.send_table(commands);
    }

    fn send_table(&mut self, commands: &mut Vec<RankCommand>) {
        if self.reach == Reach::Shm || self.table_sent {
            return;
        }
        let table: Option<Vec<SocketAddr>> = self.ranks.iter().map(|state| state.address).collect();
        if let Some(table) = table {
            self.table_sent = true;
            commands.push(RankCommand::NotifyAll(Message::Table(table)));
        }
    }

    /// Handles the end of a rank's process. The other ranks are notified at once. If the rank
    /// failed, they have the grace period to end by themselves.
    pub(crate) fn on_exit(&mut self, rank: u32, exit: Exit, now: Instant, commands: &mut Vec<RankCommand>) {
        let Some(state) = self.ranks.get_mut(rank as usize) else { return };
        if state.exit.is_some() {
            return;
        }
        let how = exit.describe(rank);
        state.exit = Some(exit);
        // If the rank vanished earlier, the other ranks were notified then.
        if !state.vanished {
            self.notify_of_end(rank, how, now, commands);
        }
    }

    fn notify_of_end(&mut self, rank: u32, mut how: String, now: Instant, commands: &mut Vec<RankCommand>) {
        let failure = self.failure(rank);
        let mut failed = failure.is_some();
        if !failed && self.ranks[rank as usize].last_ending == Some(Ending::Failed) {
            // The rank's program has treated the error as a success. Ranks that wait for this rank
            // in that world receive the error all the same.
            (failed, how) = (true, format!("{how} after it had left its last world with an error"));
        }
        if let Some(failure) = failure {
            self.ranks[rank as usize].failed_at = Some(now);
            self.kill_deadline.get_or_insert(now + self.grace);
            match &self.first_failure {
                Some(first) if !failure.primary => how = format!("{how} after {first}"),
                None if failure.primary => self.first_failure = Some(how.clone()),
                None => {
                    self.held.push((rank, how));
                    self.held_until.get_or_insert(now + HOLD);
                    return;
                }
                Some(_) => {}
            }
        }
        commands.push(RankCommand::NotifyAll(Message::Died { rank, how, failed }));
        if self.first_failure.is_some() {
            self.notify_of_held(commands);
        }
    }

    /// Notifies all ranks of the secondary failures that were held back.
    fn notify_of_held(&mut self, commands: &mut Vec<RankCommand>) {
        self.held_until = None;
        let first = self.first_failure.as_ref().map_or(String::new(), |first| format!(" after {first}"));
        for (rank, how) in self.held.drain(..) {
            let how = how + &first;
            commands.push(RankCommand::NotifyAll(Message::Died { rank, how, failed: true }));
        }
    }

    /// Handles a signal to the launcher: forwards the first signal to the ranks, and kills the
    /// ranks at a second signal. If SIGTERM asks for a snapshot, the first SIGTERM does not count:
    /// the ranks take the time that they need.
    pub(crate) fn on_signal(&mut self, signal: i32, now: Instant, commands: &mut Vec<RankCommand>) {
        if is_user_signal(signal) {
            self.forwarded.push(signal);
            return commands.extend(self.running().map(|rank| RankCommand::Signal(rank, signal)));
        }
        if signal == SIGTERM && self.signals == 0 && std::mem::take(&mut self.snapshot_on_term) {
            self.asked_to_stop = true;
            self.forwarded.push(signal);
            return commands.extend(self.running().map(|rank| RankCommand::Signal(rank, signal)));
        }
        self.signals += 1;
        if self.signals > 1 {
            return self.kill_all(commands);
        }
        commands.extend(self.running().map(|rank| RankCommand::Signal(rank, signal)));
        self.kill_deadline.get_or_insert(now + self.grace);
    }

    /// Returns the time until which the launcher writes the ranks' remaining output after all ranks
    /// have ended. After a timeout or a signal, only the grace period is left: a user who ended the
    /// job should not wait for a reader that has stopped.
    pub(crate) fn output_deadline(&self, now: Instant) -> Option<Instant> {
        let is_ended = self.timed_out || self.asked_to_stop || self.signals > 0;
        if is_ended { Some(now + self.grace) } else { self.timeout }
    }

    /// Extends all time limits by `time`, which has just passed and does not count.
    pub(crate) fn pass_over(&mut self, time: Duration) {
        let deadlines = [&mut self.kill_deadline, &mut self.timeout, &mut self.held_until];
        for deadline in deadlines.into_iter().flatten() {
            *deadline += time;
        }
    }

    /// Returns the time at which the job exceeds its time limit.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// Returns the earliest time at which [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.kill_deadline, self.timeout, self.held_until].into_iter().flatten().min()
    }

    /// Applies the deadlines that have passed.
    pub(crate) fn expire(&mut self, now: Instant, commands: &mut Vec<RankCommand>) {
        if self.held_until.is_some_and(|then| then <= now) {
            self.notify_of_held(commands);
        }
        if self.kill_deadline.is_some_and(|then| then <= now) {
            self.kill_deadline = None;
            self.kill_all(commands);
        }
        if self.timeout.is_some_and(|then| then <= now) {
            self.timeout = None;
            self.timed_out = true;
            self.kill_deadline =
                Some(self.kill_deadline.map_or(now + self.grace, |then| then.min(now + self.grace)));
            commands.extend(self.running().map(|rank| RankCommand::Signal(rank, SIGTERM)));
        }
    }

    fn kill_all(&mut self, commands: &mut Vec<RankCommand>) {
        let running: Vec<u32> = self.running().collect();
        for rank in running {
            self.ranks[rank as usize].killed = true;
            commands.push(RankCommand::Kill(rank));
        }
    }

    fn running(&self) -> impl Iterator<Item = u32> + use<'_> {
        (0_u32..).zip(&self.ranks).filter(|(_, state)| state.exit.is_none()).map(|(rank, _)| rank)
    }

    /// Returns the number of running ranks that have not joined, and the first of them. Returns
    /// `None` while no rank has joined.
    pub(crate) fn not_joined(&self) -> Option<(usize, Option<u32>)> {
        let joined = |rank: u32| self.ranks[rank as usize].joined;
        self.ranks.iter().any(|state| state.joined).then(|| {
            let missing = || self.running().filter(|&rank| !joined(rank));
            (missing().count(), missing().next())
        })
    }

    /// Returns whether every rank has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.running().next().is_none()
    }

    /// Returns whether the job exceeded its time limit.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// Returns how a rank failed, or `None` if it still runs or has succeeded.
    fn failure(&self, rank: u32) -> Option<Failure> {
        let state = &self.ranks[rank as usize];
        let Some(exit) = &state.exit else {
            let primary = state.is_primary();
            return state.vanished.then(|| Failure { rank, how: VANISHED.into(), code: 1, primary });
        };
        let (how, code) = match (&state.join_error, exit) {
            (None, exit) if state.vanished && (state.killed || *exit == Exit::Code(0)) => {
                (VANISHED.into(), 1)
            }
            (_, Exit::NotStarted { .. } | Exit::Lost(_)) => (exit.to_string(), exit.code()),
            (Some(why), _) => (format!("could not join the job: {why}"), FAILED),
            (None, Exit::Code(0)) if !state.joined => (NOT_JOINED.into(), NOT_RUN),
            (None, Exit::Code(0)) if state.in_world => {
                ("exited with code 0 while it was in a world".into(), 1)
            }
            (None, Exit::Code(0)) => return None,
            (None, _) if state.has_stopped() => return None,
            (None, exit) => (exit.to_string(), exit.code()),
        };
        let primary = (state.vanished || !state.killed) && state.is_primary();
        Some(Failure { rank, how, code, primary })
    }

    /// Returns all failures, by rank.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        (0..self.ranks.len() as u32).filter_map(|rank| self.failure(rank)).collect()
    }

    /// Returns the failure for which the job may be started again: the earliest primary failure,
    /// unless the program, the user or the time limit has caused it. In the first attempt at a job,
    /// the rank must have joined.
    pub(crate) fn retryable_failure(&self, is_first_attempt: bool) -> Option<Failure> {
        let has_stopped = |state: &RankState| state.last_ending == Some(Ending::Stopped);
        if self.timed_out || self.signals > 0 || self.ranks.iter().any(has_stopped) {
            return None;
        }
        let is_retryable = |failure: &Failure| self.is_retryable(failure.rank, is_first_attempt);
        // If several failures are noticed at the same time, the retryable failure may have caused
        // the others.
        let order = |failure: &Failure| (self.ranks[failure.rank as usize].failed_at, !is_retryable(failure));
        let primary = self.failures().into_iter().filter(|failure| failure.primary);
        primary.min_by_key(order).filter(is_retryable)
    }

    fn is_retryable(&self, rank: u32, is_first_attempt: bool) -> bool {
        let state = &self.ranks[rank as usize];
        let of_user = |signal: u8| self.forwarded.contains(&i32::from(signal));
        if is_first_attempt && !state.joined {
            return false;
        }
        match &state.exit {
            Some(Exit::Lost(_)) => true,
            _ if state.join_error.is_some() => false,
            _ if state.vanished => self.forwarded.is_empty(),
            Some(Exit::Silent(_)) => true,
            Some(Exit::Signal(signal)) => !of_user(*signal),
            // A shell around the program exits with this code if a signal has killed the program.
            Some(Exit::Code(code @ 129..=192)) => state.in_world && !of_user(code - 128),
            _ => false,
        }
    }

    /// Returns whether the ranks were asked to save their state and to end.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked_to_stop || self.forwarded.contains(&SIGUSR1)
    }

    /// Returns whether a rank was lost with its host.
    pub(crate) fn is_lost(&self, rank: u32) -> bool {
        matches!(self.ranks[rank as usize].exit, Some(Exit::Lost(_)))
    }

    /// Returns whether the job has ended on request: some rank has stopped, and none has failed.
    pub(crate) fn has_stopped(&self) -> bool {
        self.code() == STOPPED && self.failures().is_empty()
    }

    /// Returns the job's exit code: the code of the lowest rank with a primary failure. Without a
    /// primary failure, it is the code of the lowest rank that failed. Without any failure, it is
    /// [`STOPPED`] if a rank has stopped.
    pub(crate) fn code(&self) -> u8 {
        if self.timed_out {
            return TIMED_OUT;
        }
        let failures = self.failures();
        let failure = failures.iter().find(|failure| failure.primary).or(failures.first());
        let stopped = || if self.ranks.iter().any(RankState::has_stopped) { STOPPED } else { 0 };
        failure.map_or_else(stopped, |failure| failure.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::USAGE;

    const GRACE: Duration = Duration::from_secs(5);

    struct Job {
        state_machine: StateMachine,
        now: Instant,
    }

    impl Job {
        fn of(size: u32, reach: Reach) -> Self {
            let now = Instant::now();
            Self { state_machine: StateMachine::new(size, reach, GRACE, Some(now + 10 * GRACE), false), now }
        }

        /// Returns a job whose ranks have all joined and entered a world.
        fn running(size: u32) -> Self {
            let mut job = Self::of(size, Reach::Shm);
            for rank in 0..size {
                job.on_message(rank, Message::Joined("0".into()));
                job.on_message(rank, Message::Entered);
            }
            job
        }

        fn on_message(&mut self, rank: u32, message: Message) -> Vec<RankCommand> {
            let mut commands = Vec::new();
            self.state_machine.on_message(rank, message, self.now, &mut commands);
            commands
        }

        fn on_exit(&mut self, rank: u32, exit: Exit) -> Vec<RankCommand> {
            let mut commands = Vec::new();
            self.state_machine.on_exit(rank, exit, self.now, &mut commands);
            commands
        }

        fn later(&mut self, by: Duration) -> Vec<RankCommand> {
            self.now += by;
            let mut commands = Vec::new();
            self.state_machine.expire(self.now, &mut commands);
            commands
        }
    }

    fn died(rank: u32, how: &str) -> RankCommand {
        let failed = how != "exited with code 0";
        RankCommand::NotifyAll(Message::Died { rank, how: format!("rank {rank} of the job {how}"), failed })
    }

    #[test]
    fn the_table_is_sent_once_when_the_last_rank_listens() {
        let mut job = Job::of(2, Reach::Tcp);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert!(job.on_message(1, Message::Listening(at(2))).is_empty());
        let table = Message::Table(vec![at(1), at(2)]);
        let sent = [RankCommand::NotifyAll(table)];
        assert_eq!(job.on_message(0, Message::Listening(at(1))), sent);
        assert!(job.on_message(0, Message::Listening(at(3))).is_empty());
    }

    #[test]
    fn a_rank_that_vanishes_inside_a_wrapper_is_reported_once_and_fails_whatever_the_wrapper_does() {
        for exit in [Exit::Code(0), Exit::Code(137), Exit::Signal(9)] {
            let mut job = Job::running(2);
            assert_eq!(job.on_message(1, Message::Vanished), [died(1, VANISHED)]);
            assert!(job.on_message(1, Message::Vanished).is_empty());
            assert_eq!(job.later(GRACE), [RankCommand::Kill(0), RankCommand::Kill(1)]);
            assert!(job.on_exit(1, exit).is_empty());
            let failures = job.state_machine.failures();
            assert!(
                matches!(&failures[..], [Failure { rank: 1, how, code: 1, primary: true }] if how == VANISHED)
            );
        }
    }

    #[test]
    fn a_rank_whose_program_takes_its_error_for_a_success_has_not_finished() {
        let mut job = Job::running(2);
        job.on_message(1, Message::Left(Ending::Failed));
        let how = "exited with code 0 after it had left its last world with an error";
        assert_eq!(job.on_exit(1, Exit::Code(0)), [died(1, how)]);
        assert!(job.state_machine.failures().is_empty(), "the program decides how its rank ends");
    }

    #[test]
    fn ranks_that_have_not_joined_are_counted_once_another_has() {
        let mut job = Job::of(3, Reach::Tcp);
        assert_eq!(job.state_machine.not_joined(), None);
        job.on_message(1, Message::Joined("0".into()));
        assert_eq!(job.state_machine.not_joined(), Some((2, Some(0))));
        job.on_exit(0, Exit::Code(1));
        assert_eq!(job.state_machine.not_joined(), Some((1, Some(2))));
        job.on_message(2, Message::Joined("0".into()));
        assert_eq!(job.state_machine.not_joined(), Some((0, None)));
    }

    #[test]
    fn a_death_is_reported_to_the_others_and_starts_their_grace_period() {
        let mut job = Job::running(3);
        assert_eq!(job.on_exit(1, Exit::Signal(9)), [died(1, "was killed by signal 9 (SIGKILL)")]);
        assert!(job.on_exit(1, Exit::Code(0)).is_empty(), "a rank ends once");
        assert!(job.later(GRACE - Duration::from_nanos(1)).is_empty());
        job.on_message(0, Message::Left(Ending::SecondaryFailure));
        let secondary = "exited with code 1 after rank 1 of the job was killed by signal 9 (SIGKILL)";
        assert_eq!(job.on_exit(0, Exit::Code(1)), [died(0, secondary)]);
        assert_eq!(job.later(Duration::from_nanos(1)), [RankCommand::Kill(2)]);
        job.on_exit(2, Exit::Signal(9));
        assert!(job.state_machine.is_over());
        assert_eq!(
            job.state_machine.code(),
            137,
            "the failure of rank 0 is secondary, and rank 2 was killed because of it"
        );
        let primary: Vec<bool> = job.state_machine.failures().iter().map(|failure| failure.primary).collect();
        assert_eq!(primary, [false, true, false]);
    }

    #[test]
    fn a_job_succeeds_when_all_ranks_do_and_no_rank_is_killed() {
        let mut job = Job::running(2);
        job.on_message(0, Message::Left(Ending::Finished));
        assert_eq!(job.on_exit(0, Exit::Code(0)), [died(0, "exited with code 0")]);
        assert!(job.later(5 * GRACE).is_empty());
        job.on_message(1, Message::Left(Ending::Finished));
        job.on_exit(1, Exit::Code(0));
        assert_eq!((job.state_machine.is_over(), job.state_machine.code()), (true, 0));
    }

    #[test]
    fn the_exit_code_is_that_of_the_lowest_rank_with_a_primary_failure() {
        let mut job = Job::running(3);
        job.on_message(0, Message::Left(Ending::SecondaryFailure));
        job.on_exit(0, Exit::Code(1));
        job.on_exit(2, Exit::Code(3));
        job.on_exit(1, Exit::Code(4));
        assert_eq!(job.state_machine.code(), 4);
        let mut job = Job::running(2);
        for rank in [1, 0] {
            job.on_message(rank, Message::Left(Ending::SecondaryFailure));
            job.on_exit(rank, Exit::Code(7 + rank as u8));
        }
        assert_eq!(job.state_machine.code(), 7, "where all failures are secondary, the lowest rank counts");
    }

    #[test]
    fn ranks_are_notified_of_a_secondary_failure_after_its_cause() {
        let ends = |job: &mut Job| {
            job.on_message(0, Message::Left(Ending::SecondaryFailure));
            job.on_exit(0, Exit::Code(1))
        };
        let mut job = Job::running(3);
        assert!(ends(&mut job).is_empty());
        let secondary = "exited with code 1 after rank 1 of the job exited with code 101";
        assert_eq!(job.on_exit(1, Exit::Code(101)), [died(1, "exited with code 101"), died(0, secondary)]);
        assert!(job.later(HOLD).is_empty());

        let mut job = Job::running(3);
        assert!(ends(&mut job).is_empty());
        assert_eq!(job.later(HOLD), [died(0, "exited with code 1")], "the cause is not known in time");
        assert!(job.later(HOLD).is_empty());
    }

    #[test]
    fn a_rank_that_could_not_join_because_another_had_died_failed_secondarily() {
        let mut job = Job::of(2, Reach::Tcp);
        job.on_message(0, Message::Joined("0".into()));
        job.on_exit(1, Exit::Signal(9));
        job.on_message(0, Message::Left(Ending::SecondaryFailure));
        job.on_exit(0, Exit::Code(1));
        assert_eq!(job.state_machine.code(), 137);
        let primary: Vec<bool> = job.state_machine.failures().iter().map(|failure| failure.primary).collect();
        assert_eq!(primary, [false, true]);
    }

    #[test]
    fn an_end_in_the_middle_of_a_world_is_a_failure_even_with_code_0() {
        let mut job = Job::running(2);
        job.on_exit(1, Exit::Code(0));
        assert_eq!(job.state_machine.failures()[0].how, "exited with code 0 while it was in a world");
        assert_eq!(job.later(GRACE), [RankCommand::Kill(0)]);
    }

    #[test]
    fn a_program_that_never_joins_is_reported_as_not_run() {
        let mut job = Job::of(2, Reach::Tcp);
        job.on_exit(0, Exit::Code(0));
        job.on_exit(1, Exit::Code(0));
        assert_eq!(job.state_machine.code(), NOT_RUN);
        let mut job = Job::of(1, Reach::Tcp);
        job.on_exit(0, Exit::Code(USAGE));
        assert_eq!(job.state_machine.code(), USAGE, "the program has an exit code of its own");
        let mut job = Job::of(1, Reach::Tcp);
        job.on_message(0, Message::JoinFailed("no memory".into()));
        job.on_exit(0, Exit::Code(1));
        assert_eq!(job.state_machine.code(), FAILED);
        assert_eq!(job.state_machine.failures()[0].how, "could not join the job: no memory");
    }

    #[test]
    fn a_signal_is_forwarded_and_a_second_one_kills() {
        let mut job = Job::running(2);
        let mut commands = Vec::new();
        job.state_machine.on_signal(2, job.now, &mut commands);
        assert_eq!(commands, [RankCommand::Signal(0, 2), RankCommand::Signal(1, 2)]);
        commands.clear();
        job.on_exit(0, Exit::Signal(2));
        job.state_machine.on_signal(2, job.now, &mut commands);
        assert_eq!(commands, [RankCommand::Kill(1)]);
        job.on_exit(1, Exit::Signal(9));
        assert_eq!(job.state_machine.code(), 130);
    }

    #[test]
    fn a_rank_that_stopped_has_ended_in_order_and_code_75_alone_is_a_failure() {
        let mut job = Job::running(2);
        job.on_message(0, Message::Left(Ending::Stopped));
        let how = "rank 0 of the job exited with code 75".to_owned();
        let died = RankCommand::NotifyAll(Message::Died { rank: 0, how, failed: false });
        assert_eq!(job.on_exit(0, Exit::Code(STOPPED)), [died]);
        assert!(job.later(5 * GRACE).is_empty(), "the other ranks have the time that they need");
        job.on_message(1, Message::Left(Ending::Finished));
        job.on_exit(1, Exit::Code(0));
        assert_eq!((job.state_machine.code(), job.state_machine.has_stopped()), (STOPPED, true));

        for ending in [Some(Ending::Finished), Some(Ending::Failed), None] {
            let mut job = Job::running(1);
            ending.map(|ending| job.on_message(0, Message::Left(ending)));
            job.on_exit(0, Exit::Code(STOPPED));
            assert_eq!((job.state_machine.code(), job.state_machine.has_stopped()), (STOPPED, false));
            assert_eq!(job.state_machine.failures()[0].how, "exited with code 75");
        }
        let mut job = Job::running(2);
        job.on_message(0, Message::Left(Ending::Stopped));
        job.on_exit(0, Exit::Code(STOPPED));
        job.on_exit(1, Exit::Code(3));
        assert_eq!((job.state_machine.code(), job.state_machine.has_stopped()), (3, false));
    }

    /// Returns whether a job of two ranks may be started again after this has happened to rank 1.
    fn is_retryable(happens: impl FnOnce(&mut Job)) -> bool {
        let mut job = Job::running(2);
        happens(&mut job);
        job.on_message(0, Message::Left(Ending::SecondaryFailure));
        job.on_exit(0, Exit::Code(1));
        let failure = job.state_machine.retryable_failure(true);
        assert!(failure.as_ref().is_none_or(|failure| failure.rank == 1), "{failure:?}");
        failure.is_some()
    }

    #[test]
    fn failures_that_the_program_has_not_caused_are_retryable() {
        for exit in [
            Exit::Signal(9),
            Exit::Signal(11),
            Exit::Silent(GRACE),
            Exit::Lost("the connection".into()),
            Exit::Code(137), // of a shell
        ] {
            assert!(is_retryable(|job| drop(job.on_exit(1, exit.clone()))), "{exit}");
        }
        let vanishes = |job: &mut Job| {
            job.on_message(1, Message::Vanished);
            job.on_exit(1, Exit::Code(0));
        };
        assert!(is_retryable(vanishes));
        let not_started = Exit::NotStarted { code: NOT_RUN, why: "no".into() };
        for exit in [Exit::Code(1), Exit::Code(101), Exit::Code(STOPPED), not_started] {
            assert!(!is_retryable(|job| drop(job.on_exit(1, exit.clone()))), "{exit}");
        }
        let exits_outside = |job: &mut Job| {
            job.on_message(1, Message::Left(Ending::Failed));
            job.on_exit(1, Exit::Code(137));
        };
        assert!(!is_retryable(exits_outside), "the code is the program's own");
    }

    #[test]
    fn a_request_is_remembered_after_a_failure_that_is_retryable() {
        for (signal, on_term) in [(SIGUSR1, false), (SIGTERM, true)] {
            let mut job = Job::running(2);
            job.state_machine.snapshot_on_term = on_term;
            assert!(!job.state_machine.was_asked());
            job.state_machine.on_signal(signal, job.now, &mut Vec::new());
            job.on_exit(1, Exit::Signal(9));
            let failure = job.state_machine.retryable_failure(true);
            assert!(failure.is_some() && job.state_machine.was_asked(), "{signal}");
        }
    }

    #[test]
    fn failures_that_the_user_has_caused_are_not_retryable() {
        let after = |signal: i32, exit: Exit| {
            is_retryable(|job| {
                job.state_machine.on_signal(signal, job.now, &mut Vec::new());
                job.on_exit(1, exit);
            })
        };
        assert!(!after(SIGTERM, Exit::Signal(15)) && !after(SIGTERM, Exit::Signal(11)));
        assert!(!after(SIGUSR1, Exit::Signal(SIGUSR1 as u8)), "it has no handler");
        assert!(!after(SIGUSR1, Exit::Code(128 + SIGUSR1 as u8)), "it has none in a shell");
        assert!(after(SIGUSR1, Exit::Signal(SIGUSR2 as u8)) && after(SIGUSR1, Exit::Signal(9)));
        let times_out = |job: &mut Job| {
            job.later(10 * GRACE);
            job.on_exit(1, Exit::Signal(15));
        };
        assert!(!is_retryable(times_out));
        let stops = |job: &mut Job| {
            job.on_message(1, Message::Left(Ending::Stopped));
            job.on_exit(1, Exit::Signal(9));
        };
        assert!(!is_retryable(stops), "the job was asked to end");
    }

    #[test]
    fn the_first_failure_decides_and_a_retryable_one_among_those_of_one_time() {
        let (death, panic) = ((1, Exit::Signal(9)), (0, Exit::Code(101)));
        let decides = |(first, second): (&(u32, Exit), &(u32, Exit)), between: Duration| {
            let mut job = Job::running(2);
            job.on_exit(first.0, first.1.clone());
            job.now += between;
            job.on_exit(second.0, second.1.clone());
            job.state_machine.retryable_failure(true).map(|failure| failure.rank)
        };
        let later = Duration::from_nanos(1);
        assert_eq!(decides((&death, &panic), later), Some(1));
        assert_eq!(decides((&panic, &death), later), None);
        assert_eq!(decides((&panic, &death), Duration::ZERO), Some(1));
    }

    #[test]
    fn in_the_first_attempt_only_failures_of_ranks_that_had_joined_are_retryable() {
        for exit in [Exit::Lost("no route".into()), Exit::Signal(9)] {
            let mut job = Job::of(1, Reach::Tcp);
            job.on_exit(0, exit);
            assert_eq!(job.state_machine.retryable_failure(true), None);
            assert!(job.state_machine.retryable_failure(false).is_some());
        }
        let mut job = Job::of(1, Reach::Tcp);
        job.on_message(0, Message::JoinFailed("no memory".into()));
        job.on_exit(0, Exit::Code(1));
        assert_eq!(job.state_machine.retryable_failure(false), None);
    }

    #[test]
    fn the_first_sigterm_that_asks_for_a_snapshot_sets_no_deadline() {
        let mut job = Job::of(1, Reach::Shm);
        job.state_machine.snapshot_on_term = true;
        let mut signal = |signal, now| {
            let mut commands = Vec::new();
            job.state_machine.on_signal(signal, now, &mut commands);
            (commands, job.state_machine.kill_deadline)
        };
        let now = Instant::now();
        assert_eq!(signal(SIGTERM, now), (vec![RankCommand::Signal(0, SIGTERM)], None));
        assert_eq!(signal(SIGTERM, now), (vec![RankCommand::Signal(0, SIGTERM)], Some(now + GRACE)));
        assert_eq!(signal(SIGTERM, now).0, [RankCommand::Kill(0)]);
        job.on_exit(0, Exit::Signal(15));
        assert_eq!(job.state_machine.retryable_failure(false), None);
    }

    #[test]
    fn a_job_over_its_time_limit_is_terminated_then_killed() {
        let mut job = Job::running(1);
        assert_eq!(job.later(10 * GRACE), [RankCommand::Signal(0, 15)]);
        assert_eq!(job.later(GRACE), [RankCommand::Kill(0)]);
        job.on_exit(0, Exit::Signal(9));
        assert_eq!((job.state_machine.timed_out(), job.state_machine.code()), (true, TIMED_OUT));
    }
}
