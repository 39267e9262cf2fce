//! [`Member`]: the membership of a rank's process in its job; the counterpart of the launcher in `start`.
//!
//! The process joins once, when the program first asks for a world. From then on a thread of the member listens to the
//! control channel, sends heartbeats, and applies the reports about other ranks; when the launcher is gone, this thread
//! ends the process.

use crate::channel::{Channel, ChannelError};
use crate::children::{VARIABLE, timeout_until};
use crate::control::{Ending, Message};
use crate::description::Description;
use crate::link::Link;
use crate::rendezvous::Rendezvous;
use fencepost_transport::Endpoint;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

/// The membership of this process in its job.
pub struct Member {
    job: Description,
    link: Link,
    /// The control channel to the launcher; an external launcher has none.
    control: Option<Control>,
    /// The number of worlds of the whole job that this rank has created.
    worlds: Mutex<u32>,
    /// Which thread is in a `run`.
    active: Mutex<ActiveRuns>,
    /// The error with which the rank left its last world, if any.
    last_error: Mutex<Option<String>>,
    connection: Mutex<ConnectionState>,
    connection_changed: Condvar,
}

/// The calls of `run` in this process that have begun and not ended. Worlds of processes are paired by the order in
/// which each process enters them, and only one thread can keep that order.
#[derive(Default)]
struct ActiveRuns {
    /// The thread that is in a `run`, and how many nested calls it is in.
    thread: Option<(ThreadId, u32)>,
    /// Another thread has called `run` since.
    overlapped: bool,
}

/// The control channel.
struct Control {
    channel: Mutex<Channel>,
    /// A copy of the channel's socket, so that a thread can wait for it without holding the lock.
    socket: OwnedFd,
}

/// Whether this rank can reach the other ranks.
enum ConnectionState {
    /// The table of addresses has not arrived.
    Waiting,
    Connected,
    /// This rank can't connect, for this reason.
    Failed(String),
    /// Another rank ended before the table arrived, as described here.
    RankDied(String),
}

static MEMBER: OnceLock<Result<Option<Member>, String>> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    /// From the C library, which the standard library links: calls `handler` when the process exits normally.
    fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
}

/// Runs when a rank's process exits normally. A rank that is in no world closes its transports in order; the exit of
/// a rank in a world is a failure, which the other ranks detect.
extern "C" fn close_at_exit() {
    if let Some(Ok(Some(member))) = MEMBER.get()
        && lock(&member.active).thread.is_none()
    {
        member.link.close(&member.job, lock(&member.last_error).as_deref());
    }
}

/// Returns the membership of this process, or `None` if it was not started as a rank. The first call joins the job.
///
/// # Errors
/// The process was started as a rank and cannot join, for this reason.
pub fn member() -> Result<Option<&'static Member>, String> {
    let Some(member) = MEMBER.get_or_init(join).as_ref().map_err(String::clone)? else { return Ok(None) };
    LISTENING.get_or_init(|| {
        // SAFETY: a function of the C library, called with a function that does not unwind and lives as long as the
        // program.
        unsafe { atexit(close_at_exit) };
        let Some(control) = &member.control else { return };
        let listen = std::thread::Builder::new().name("fencepost control".into());
        if let Err(error) = listen.spawn(|| member.listen(control)) {
            *lock(&member.connection) =
                ConnectionState::Failed(format!("no thread for the control channel can be started: {error}"));
        }
    });
    member.wait_until_connected()?;
    Ok(Some(member))
}

/// Returns the membership of this process if it has joined its job.
pub fn joined() -> Option<&'static Member> {
    MEMBER.get()?.as_ref().ok()?.as_ref()
}

/// Takes the control channel that this process inherited, if it did. Called once.
fn take_inherited_channel() -> Option<OwnedFd> {
    let value = std::env::var(VARIABLE).ok()?;
    let (descriptor, inode) = value.split_once(':')?;
    let (descriptor, inode): (RawFd, u64) = (descriptor.parse().ok()?, inode.parse().ok()?);
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is used only to ask whether it is open and which file it is, which is allowed of any
    // number.
    let candidate = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let flags = fcntl_getfd(candidate).ok()?;
    let is_it = rustix::fs::fstat(candidate).is_ok_and(|stat| stat.st_ino == inode);
    // A descriptor that is closed on exec was not inherited: some part of this process has created it.
    if !is_it || flags.contains(FdFlags::CLOEXEC) {
        return None;
    }
    // SAFETY: this is the very socket that the launcher has left to this program, so nothing else in the program owns
    // it; and it is taken once, since it is closed on exec from here on, and `join` runs once.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

fn join() -> Result<Option<Member>, String> {
    let Some(socket) = take_inherited_channel() else { return join_by_rendezvous() };
    let mut channel = Channel::from_socket(socket);
    let job = loop {
        match channel.receive() {
            Ok(Some(Message::Job(job))) => break job,
            Ok(Some(_)) => {
                return Err("the launcher sent another message before the description of the job".into());
            }
            Ok(None) => {
                let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                let _: rustix::io::Result<usize> = poll(&mut fds, None);
            }
            Err(why) => return Err(format!("the control channel to the launcher failed: {why}")),
        }
    };
    let memory = channel.take_descriptor();
    let joined = Link::join(&job, memory, true).and_then(|(link, address)| {
        let socket = channel.source().try_clone_to_owned().map_err(|error| error.to_string())?;
        Ok((link, address, socket))
    });
    let sent = match &joined {
        Ok(_) => channel.send(&Message::Joined(crate::RELEASE.into())),
        Err(why) => channel.send(&Message::JoinFailed(why.clone())),
    };
    let (link, address, socket) = joined?;
    let sent =
        sent.and_then(|()| address.map_or(Ok(()), |address| channel.send(&Message::Listening(address))));
    sent.map_err(|why| format!("the control channel to the launcher failed: {why}"))?;
    let connection = if address.is_some() { ConnectionState::Waiting } else { ConnectionState::Connected };
    Ok(Some(Member {
        job,
        link,
        control: Some(Control { channel: Mutex::new(channel), socket }),
        worlds: Mutex::new(0),
        active: Mutex::default(),
        last_error: Mutex::default(),
        connection: Mutex::new(connection),
        connection_changed: Condvar::new(),
    }))
}

/// Joins the job of an external launcher, if the environment describes one.
fn join_by_rendezvous() -> Result<Option<Member>, String> {
    let Some(rendezvous) = Rendezvous::from_environment()? else { return Ok(None) };
    let mut job = rendezvous.job.clone();
    let mut link = None;
    let table = rendezvous.exchange_addresses(|here| {
        job.bind = here;
        let (mine, address) = Link::join(&job, None, false)?;
        link = Some(mine);
        address.ok_or_else(|| "internal error: this rank does not listen".into())
    })?;
    let link = link.ok_or("internal error: this rank has not prepared its transports")?;
    link.connect(&table).map_err(|error| format!("the connections can't be started: {error}"))?;
    Ok(Some(Member {
        job,
        link,
        control: None,
        worlds: Mutex::new(0),
        active: Mutex::default(),
        last_error: Mutex::default(),
        connection: Mutex::new(ConnectionState::Connected),
        connection_changed: Condvar::new(),
    }))
}

impl Member {
    /// The description of the job.
    pub fn job(&self) -> &Description {
        &self.job
    }

    /// Returns this rank's endpoint of the next world of the whole job.
    ///
    /// # Errors
    /// The transport can't join the world, or the shared memory has no room for another one.
    pub fn endpoint(&self) -> std::io::Result<Endpoint> {
        // Locked until the endpoint is created: worlds are created in order.
        let mut worlds = lock(&self.worlds);
        let world = *worlds;
        *worlds = world.wrapping_add(1);
        self.link.endpoint(&self.job, world)
    }

    /// The calling thread enters a world. Returns whether it may: `false` while another thread is in one; from then
    /// on the world of that other thread is unreliable, too ([`overlapped`](Self::overlapped)). The launcher is
    /// notified of the outermost world only.
    pub fn enter(&self) -> bool {
        let mut active = lock(&self.active);
        let me = std::thread::current().id();
        match &mut active.thread {
            None => active.thread = Some((me, 1)),
            Some((thread, count)) if *thread == me => {
                *count += 1;
                return true;
            }
            Some(_) => {
                active.overlapped = true;
                return false;
            }
        }
        drop(active);
        self.send(&Message::Entered);
        true
    }

    /// Returns whether another thread has called `run` since the calling thread entered its outermost world.
    pub fn overlapped(&self) -> bool {
        lock(&self.active).overlapped
    }

    /// The calling thread leaves a world that it entered, with `error` if the program failed.
    pub fn leave(&self, ending: Ending, error: Option<String>) {
        *lock(&self.last_error) = error;
        let mut active = lock(&self.active);
        if let Some((_, count)) = &mut active.thread
            && *count > 1
        {
            *count -= 1;
            return;
        }
        *active = ActiveRuns::default();
        drop(active);
        self.send(&Message::Left(ending));
    }

    /// Notifies the launcher that this process is about to end, in a world or before it has entered one, only because
    /// another rank has failed.
    pub fn report_secondary_failure(&self) {
        self.send(&Message::Left(Ending::SecondaryFailure));
    }

    fn send(&self, message: &Message) {
        let Some(control) = &self.control else { return };
        let mut channel = lock(&control.channel);
        // When the launcher is gone, the listening thread ends this process.
        let mut sent: Result<(), ChannelError> = channel.send(message);
        while sent.is_ok() && channel.unsent() > 0 {
            let mut fds = [PollFd::from_borrowed_fd(channel.sink(), PollFlags::OUT)];
            let _: rustix::io::Result<usize> = poll(&mut fds, None);
            sent = channel.flush();
        }
    }

    /// Waits until this rank can reach the other ranks.
    fn wait_until_connected(&self) -> Result<(), String> {
        let waits = |state: &mut ConnectionState| matches!(state, ConnectionState::Waiting);
        let state = self.connection_changed.wait_while(lock(&self.connection), waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match &*state {
            ConnectionState::Failed(why) => Err(why.clone()),
            ConnectionState::RankDied(how) => {
                self.report_secondary_failure();
                Err(format!("another rank ended before all ranks had joined: {how}"))
            }
            ConnectionState::Waiting | ConnectionState::Connected => Ok(()),
        }
    }

    fn set_connection(&self, state: ConnectionState) {
        let mut current = lock(&self.connection);
        if matches!(*current, ConnectionState::Waiting) {
            *current = state;
            self.connection_changed.notify_all();
        }
    }

    /// The main loop of the listening thread.
    fn listen(&self, control: &Control) {
        let every = self.job.limits.heartbeat;
        let mut next_beat = Instant::now() + every;
        loop {
            let mut fds = [PollFd::new(&control.socket, PollFlags::IN)];
            // When a signal interrupts `poll`, the loop checks the channel and waits again.
            let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(next_beat)).as_ref());
            let now = Instant::now();
            let mut channel = lock(&control.channel);
            if now >= next_beat {
                next_beat = now + every;
                // While unsent bytes are waiting for the launcher, no further heartbeat is queued.
                let sent =
                    if channel.unsent() == 0 { channel.send(&Message::Heartbeat) } else { channel.flush() };
                if sent.is_err() {
                    end_process(Signal::KILL);
                }
            }
            loop {
                let message = channel.receive();
                match message {
                    Ok(Some(message)) => self.handle_message(message),
                    Ok(None) => break,
                    Err(_) => end_process(Signal::KILL),
                }
            }
        }
    }

    fn handle_message(&self, message: Message) {
        match message {
            Message::Table(addresses) if addresses.len() == self.job.size as usize => {
                self.set_connection(match self.link.connect(&addresses) {
                    Ok(()) => ConnectionState::Connected,
                    Err(error) => {
                        ConnectionState::Failed(format!("the connections can't be started: {error}"))
                    }
                });
            }
            Message::Died { rank, how, failed } if rank < self.job.size => {
                if failed {
                    self.link.mark_failed(rank, &how);
                } else {
                    self.link.mark_finished(rank);
                }
                self.set_connection(ConnectionState::RankDied(how));
            }
            Message::Stop => end_process(Signal::TERM),
            _ => {}
        }
    }
}

/// Sends a signal to this process that ends it.
fn end_process(signal: Signal) {
    let _: rustix::io::Result<()> = kill_process(getpid(), signal);
}
