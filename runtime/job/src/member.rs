//! [`Member`]: the membership of a rank's process in its job; the counterpart of the launcher in
//! `start`.
//!
//! The process joins once, when the program first asks for a world. From then on a thread of the
//! member listens to the control channel, sends heartbeats, and applies the reports about other
//! ranks. When the launcher is gone, this thread ends the process.

use crate::channel::Channel;
use crate::children::VARIABLE;
use crate::control::{Ending, Message};
use crate::description::Description;
use crate::environment::{ExternalRank, RENDEZVOUS, external_rank, launchers, variable};
use crate::link::Link;
use crate::membership::{Connection, Membership};
use crate::over_mpi;
use crate::rendezvous::Rendezvous;
use crate::turns::timeout_until;
use fencepost_transport::{Endpoint, Segment};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The membership of this process in its job.
pub struct Member {
    job: Description,
    link: Link,
    /// The number of worlds of the whole job that this rank has created. The lock is held while a
    /// world is created. A thread that holds another lock never takes this one.
    worlds: Mutex<u32>,
    membership: Membership,
    /// The process that has joined. A copy of that process that `fork` has made is not a rank.
    process: Pid,
}

static MEMBER: OnceLock<Result<Option<Member>, String>> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

/// Runs when a rank's process exits normally. A rank that is in no world closes its transports in
/// order, and notifies the launcher. If a rank in a world exits, that is a failure: the other ranks
/// detect the failure or receive a report.
extern "C" fn close_at_exit() {
    let Some(Ok(Some(member))) = MEMBER.get() else { return };
    if member.process != getpid() {
        return;
    }
    match member.membership.last_error_outside_worlds() {
        Some(last_error) => {
            member.link.close(&member.job, last_error.as_deref());
            member.membership.send(&Message::Leaving);
        }
        None => member.link.abandon(),
    }
}

/// Returns the membership of this process, or `None` if it was not started as a rank. The first
/// call joins the job.
///
/// # Errors
/// The process was started as a rank and cannot join; the text gives the reason.
pub fn member() -> Result<Option<&'static Member>, String> {
    let Some(member) = MEMBER.get_or_init(join).as_ref().map_err(String::clone)? else { return Ok(None) };
    LISTENING.get_or_init(|| {
        // SAFETY: `atexit` is a function of the C library. It is called with a function that does
        // not unwind and that lives as long as the program.
        unsafe { libc::atexit(close_at_exit) };
        let Some(socket) = member.membership.socket() else { return };
        let listen = std::thread::Builder::new().name("fencepost control".into());
        if let Err(error) = listen.spawn(move || member.listen(socket)) {
            let why = format!("no thread for the control channel can be started: {error}");
            member.membership.set_connection(Connection::Failed(why));
        }
    });
    member.wait_until_connected()?;
    Ok(Some(member))
}

/// Returns the membership of this process if it has joined its job.
pub fn joined() -> Option<&'static Member> {
    MEMBER.get()?.as_ref().ok()?.as_ref()
}

/// Takes the control channel that this process inherited, if it was started as a rank. Called once.
///
/// # Errors
/// The environment names a channel that this process does not have. In that case the process must
/// not run alone, since each rank would run the whole program.
fn take_inherited_channel() -> Result<Option<OwnedFd>, String> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let value = value.to_string_lossy();
    let named = value.split_once(':').and_then(|(descriptor, inode)| {
        let (descriptor, inode): (RawFd, u64) = (descriptor.parse().ok()?, inode.parse().ok()?);
        (descriptor >= 0).then_some((descriptor, inode))
    });
    let Some((descriptor, inode)) = named else {
        return Err(format!("{VARIABLE} is `{value}`, which no launcher has set: unset it"));
    };
    open_channel(descriptor, inode).map(Some).ok_or_else(|| {
        format!(
            "{VARIABLE} names descriptor {descriptor}, the control channel of a rank, but this process has not inherited it. A \
             wrapper around the program must leave it open: with Python's subprocess, give `close_fds=False`. A program \
             that a rank starts, and that is no rank itself, runs with {VARIABLE} unset"
        )
    })
}

/// Takes `descriptor` if it is the socket with this inode and was inherited.
fn open_channel(descriptor: RawFd, inode: u64) -> Option<OwnedFd> {
    // SAFETY: the descriptor is used only to query whether it is open and which file it is, which
    // is allowed for any number.
    let candidate = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let flags = fcntl_getfd(candidate).ok()?;
    let is_it = rustix::fs::fstat(candidate).is_ok_and(|stat| stat.st_ino == inode);
    // A descriptor that is closed on exec was not inherited, but created by some part of this
    // process.
    if !is_it || flags.contains(FdFlags::CLOEXEC) {
        return None;
    }
    // SAFETY: this is the very socket that the launcher has left to this program, so nothing else
    // in the program owns it. It is taken only once, since it is closed on exec from here on, and
    // `join` runs once.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

fn join() -> Result<Option<Member>, String> {
    let Some(socket) = take_inherited_channel()? else { return join_external() };
    let mut channel = Channel::from_socket(socket);
    let taken = "another program has taken this rank's description of the job: a rank runs one program that uses Fencepost, once; start a job for each program";
    // The launcher sent the description, or a part of it, before it started this process. If
    // another program has taken the description, everything that arrives later is for that program.
    if !channel.peek_header().is_ok_and(|header| Message::is_job(&header)) {
        return Err(taken.into());
    }
    let job = loop {
        match channel.receive() {
            Ok(Some(Message::Job(job))) => break job,
            Ok(Some(_)) => return Err(taken.into()),
            Ok(None) if !channel.is_partial() => return Err(taken.into()),
            Ok(None) => {
                let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                let _: rustix::io::Result<usize> = poll(&mut fds, None);
            }
            Err(why) => return Err(format!("the control channel to the launcher failed: {why}")),
        }
    };
    fencepost_transport::set_cores(job.cores as usize);
    let memory = channel.take_descriptor().map(Segment::join).transpose();
    let joined = memory.map_err(|error| error.to_string()).and_then(|memory| Link::join(&job, memory, true));
    let joins = Message::Joined(crate::RELEASE.into());
    let sent = match &joined {
        // If a wrapper has started this process, the launcher knows only the wrapper. So this
        // process sends a descriptor of itself.
        Ok(_) => match pidfd_open(getpid(), PidfdFlags::empty()) {
            Ok(process) => {
                channel.send_with_descriptor(&joins, process.as_fd()).or_else(|_| channel.send(&joins))
            }
            Err(_) => channel.send(&joins),
        },
        Err(why) => channel.send(&Message::JoinFailed(why.clone())),
    };
    let (link, address) = joined?;
    let sent =
        sent.and_then(|()| address.map_or(Ok(()), |address| channel.send(&Message::Listening(address))));
    sent.map_err(|why| format!("the control channel to the launcher failed: {why}"))?;
    let connection = if address.is_some() { Connection::Waiting } else { Connection::Connected };
    Member::new(job, link, Some(channel), connection).map(Some)
}

/// Joins the job of an external launcher, if the environment describes one. The ranks of the job
/// meet at an address if one is given, and over the launcher's MPI otherwise. Returns `None` if
/// this process is alone: no external launcher has started it, or this process is the only rank
/// that a launcher has started.
fn join_external() -> Result<Option<Member>, String> {
    let address = variable(RENDEZVOUS);
    match (external_rank(variable)?, address) {
        (None, None) => Ok(None),
        // Without this error, each process would run the whole program alone.
        (None, Some(at)) => Err(format!(
            "{RENDEZVOUS} is `{at}`, but no variable gives this process a rank: start it with one of {}, or unset {RENDEZVOUS}",
            launchers()
        )),
        (Some(ExternalRank { size: 1, .. }), _) => Ok(None),
        (Some(external), Some(at)) => join_at(&Rendezvous::new(&external, at)?).map(Some),
        (Some(external), None) => {
            let (job, link, table) = over_mpi::meet(&external)?;
            link.connect(&table).map_err(|error| format!("the connections can't be started: {error}"))?;
            Member::new(job, link, None, Connection::Connected).map(Some)
        }
    }
}

fn join_at(rendezvous: &Rendezvous) -> Result<Member, String> {
    let mut job = rendezvous.job.clone();
    fencepost_transport::set_cores(job.cores as usize);
    let mut link = None;
    let table = rendezvous.exchange_addresses(|here| {
        job.bind = here;
        let (mine, address) = Link::join(&job, None, false)?;
        link = Some(mine);
        address.ok_or_else(|| "internal error: this rank does not listen".into())
    })?;
    let link = link.ok_or("internal error: this rank has not prepared its transports")?;
    link.connect(&table).map_err(|error| format!("the connections can't be started: {error}"))?;
    Member::new(job, link, None, Connection::Connected)
}

impl Member {
    fn new(
        job: Description,
        link: Link,
        control: Option<Channel>,
        connection: Connection,
    ) -> Result<Self, String> {
        let membership = Membership::new(control, connection).map_err(|error| error.to_string())?;
        Ok(Self { job, link, worlds: Mutex::new(0), membership, process: getpid() })
    }

    /// Returns the description of the job.
    pub fn job(&self) -> &Description {
        &self.job
    }

    /// Returns this rank's endpoint of the next world of the whole job.
    ///
    /// # Errors
    /// The transport can't join the world, or the shared memory has no room for another world.
    pub fn endpoint(&self) -> std::io::Result<Endpoint> {
        // Locked until the endpoint is created, so that worlds are created in order.
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        let world = *worlds;
        *worlds = world.wrapping_add(1);
        self.link.endpoint(&self.job, world)
    }

    /// Enters a world on the calling thread, and returns whether that is allowed. The result is
    /// `false` while another thread is in a world. Such a call also makes the world of the other
    /// thread unreliable ([`overlapped`](Self::overlapped)). The launcher is notified of the
    /// outermost world only.
    pub fn enter(&self) -> bool {
        self.membership.enter(std::thread::current().id())
    }

    /// Returns whether another thread has called `run` since the calling thread entered its
    /// outermost world.
    pub fn overlapped(&self) -> bool {
        self.membership.overlapped()
    }

    /// Leaves a world that the calling thread has entered, with `error` if the program failed.
    pub fn leave(&self, ending: Ending, error: Option<String>) {
        self.membership.leave(ending, error);
    }

    /// Notifies the launcher that this process is about to end only because another rank has
    /// failed. The process may be in a world, or may not have entered one yet.
    pub fn report_secondary_failure(&self) {
        self.membership.send(&Message::Left(Ending::SecondaryFailure));
    }

    /// Reports to the launcher that the program has taken a snapshot of `step` in `folder`. The
    /// launcher reports the last snapshot to the user. Without a launcher this does nothing.
    pub fn report_snapshot(&self, step: u64, folder: &Path) {
        let folder = folder.to_string_lossy().into_owned();
        self.membership.send(&Message::Snapshot { step, folder });
    }

    /// Waits until this rank can reach the other ranks.
    fn wait_until_connected(&self) -> Result<(), String> {
        match self.membership.await_connection() {
            Connection::Failed(why) => Err(why),
            Connection::RankDied(how) => {
                self.report_secondary_failure();
                Err(format!("another rank ended before all ranks had joined: {how}"))
            }
            Connection::Waiting | Connection::Connected => Ok(()),
        }
    }

    /// Runs the main loop of the listening thread.
    fn listen(&self, socket: BorrowedFd<'_>) {
        let every = self.job.limits.heartbeat;
        let mut next_beat = Instant::now() + every;
        loop {
            let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
            // If a signal interrupts `poll`, the loop checks the channel and waits again.
            let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(next_beat)).as_ref());
            let now = Instant::now();
            if now >= next_beat {
                next_beat = now + every;
                if self.membership.send_heartbeat().is_err() {
                    end_process();
                }
            }
            loop {
                match self.membership.receive() {
                    Ok(Some(message)) => self.handle_message(message),
                    Ok(None) => break,
                    Err(_) => end_process(),
                }
            }
        }
    }

    fn handle_message(&self, message: Message) {
        match message {
            Message::Table(addresses) if addresses.len() == self.job.size as usize => {
                self.membership.set_connection(match self.link.connect(&addresses) {
                    Ok(()) => Connection::Connected,
                    Err(error) => Connection::Failed(format!("the connections can't be started: {error}")),
                });
            }
            Message::Died { rank, how, failed } if rank < self.job.size => {
                if failed {
                    self.link.mark_failed(rank, &how);
                } else {
                    self.link.mark_finished(rank);
                }
                self.membership.set_connection(Connection::RankDied(how));
            }
            _ => {}
        }
    }
}

/// Ends this process as SIGKILL does: nothing of the program runs any more.
fn end_process() -> ! {
    let _: rustix::io::Result<()> = kill_process(getpid(), Signal::KILL);
    // The first process of a PID namespace gets no signal from inside. SAFETY: `_exit` runs no code
    // of this process.
    unsafe { libc::_exit(128 + libc::SIGKILL) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{HostRanks, Limits, Reach};
    use fencepost_transport::auth::Secret;
    use rustix::net::SendFlags;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A time limit that only a deadlock reaches.
    const DEADLOCKED: Duration = Duration::from_secs(20);

    /// Returns rank 0 of three, which has joined over TCP and waits for the table of addresses, and
    /// the launcher's end of its control channel. Both live as long as the process, since a rank
    /// whose channel is closed ends its process.
    fn joined() -> (&'static Member, &'static mut Channel) {
        let (launcher, socket) = Channel::pair().expect("a pair");
        let job = Description {
            job: [1; 16],
            secret: Secret::new().expect("chance"),
            rank: 0,
            size: 3,
            reach: Reach::Tcp,
            hosts: vec![HostRanks { host: 0, name: "localhost".into(), ranks: 3 }],
            cores: 1,
            bind: [127, 0, 0, 1].into(),
            sealed: false,
            limits: Limits { heartbeat: Duration::from_secs(3600), silence: Duration::ZERO },
        };
        let (link, _) = Link::join(&job, None, true).expect("a listener");
        let channel = Channel::from_socket(socket);
        let member = Member::new(job, link, Some(channel), Connection::Waiting).expect("a descriptor");
        let (member, launcher) = (&*Box::leak(Box::new(member)), Box::leak(Box::new(launcher)));
        std::thread::spawn(|| member.listen(member.membership.socket().expect("a launcher")));
        (member, launcher)
    }

    fn died(rank: u32) -> Message {
        Message::Died { rank, how: format!("rank {rank} of the job was killed"), failed: true }
    }

    /// Waits for the next message to the launcher.
    fn next(launcher: &mut Channel) -> Message {
        loop {
            if let Some(message) = launcher.receive().expect("it is open") {
                return message;
            }
            let mut fds = [PollFd::from_borrowed_fd(launcher.source(), PollFlags::IN)];
            let limit = timeout_until(Some(Instant::now() + DEADLOCKED));
            assert_eq!(poll(&mut fds, limit.as_ref()), Ok(1), "the rank sends nothing: a deadlock");
        }
    }

    /// The listening thread handles many deaths at a time. Meanwhile another thread fails to
    /// connect, and reports that.
    #[test]
    fn deaths_are_handled_while_another_thread_reports_that_it_cannot_join() {
        let (member, launcher) = joined();
        let deaths: Vec<u8> = (0..200).flat_map(|_| died(1).to_frame()).collect();
        let (sender, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for () in asked {
                assert!(member.wait_until_connected().is_err(), "rank 1 has died");
            }
        });
        for _ in 0..200 {
            sender.send(()).expect("it runs");
            launcher.send_frame(&deaths).expect("sent");
            assert_eq!(next(launcher), Message::Left(Ending::SecondaryFailure));
        }
    }

    /// The socket to the launcher is full, so a thread that enters a world waits until the launcher
    /// reads from it.
    #[test]
    fn a_death_is_handled_while_another_thread_waits_for_the_launcher() {
        let (member, launcher) = joined();
        let socket = member.membership.socket().expect("a launcher");
        let heartbeat = Message::Heartbeat.to_frame();
        while rustix::net::send(socket, &heartbeat, SendFlags::DONTWAIT).is_ok_and(|n| n == heartbeat.len()) {
        }
        let (sender, left) = mpsc::channel();
        std::thread::spawn(move || {
            assert!(member.enter());
            sender.send(())
        });
        while member.membership.last_error_outside_worlds().is_some() {
            std::thread::yield_now();
        }
        launcher.send(&died(1)).expect("sent");
        let began = Instant::now();
        while member.membership.await_connection() == Connection::Waiting {
            assert!(began.elapsed() < DEADLOCKED, "the death is not handled");
        }
        assert!(left.try_recv().is_err(), "the launcher has not read");
        while next(launcher) != Message::Entered {}
        assert_eq!(left.recv_timeout(DEADLOCKED), Ok(()));
    }
}
