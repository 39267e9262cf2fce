//! [`Membership`]: the state of a rank's process in its job, which its threads share under one
//! lock.
//!
//! A thread holds the lock only inside the functions of this file. These functions never wait while
//! they hold the lock, and they call nothing that takes another lock: this file uses neither the
//! transports of the rank nor its [`Member`](crate::member::Member). So there is no lock order to
//! violate, and no thread waits for the launcher while another thread needs the state.

use crate::channel::{Channel, ChannelError};
use crate::control::{Ending, Message};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// See the [module](self).
pub(crate) struct Membership {
    state: Mutex<State>,
    connection_changed: Condvar,
    /// A copy of the control channel's socket, with which a thread can wait for messages without
    /// the lock; `None` under an external launcher.
    socket: Option<OwnedFd>,
}

struct State {
    /// The control channel to the launcher.
    channel: Option<Channel>,
    /// The calls of `run` that have begun and not ended.
    runs: Runs,
    /// The error with which the rank left its last world, if any.
    last_error: Option<String>,
    connection: Connection,
}

/// The calls of `run` in this process that have begun and not ended. Worlds of processes are paired
/// by the order in which each process enters them, and only one thread can keep that order.
#[derive(Default)]
struct Runs {
    /// The thread that is in a `run`, and the number of nested calls of `run` on that thread.
    thread: Option<(ThreadId, u32)>,
    /// Whether another thread has called `run` while that thread was in a `run`.
    overlapped: bool,
}

/// Whether this rank can reach the other ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Connection {
    /// The table of addresses has not arrived.
    Waiting,
    Connected,
    /// This rank can't connect, for this reason.
    Failed(String),
    /// Another rank ended before the table arrived. The text describes how it ended.
    RankDied(String),
}

impl Membership {
    /// Creates the membership of a rank that has joined; `channel` is `None` under an external
    /// launcher.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub(crate) fn new(channel: Option<Channel>, connection: Connection) -> io::Result<Self> {
        let socket = channel.as_ref().map(|channel| channel.source().try_clone_to_owned()).transpose()?;
        let state = State { channel, runs: Runs::default(), last_error: None, connection };
        Ok(Self { state: Mutex::new(state), connection_changed: Condvar::new(), socket })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the socket that becomes readable when a message from the launcher arrives.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Returns the next message from the launcher, if one has arrived.
    ///
    /// # Errors
    /// The launcher is gone, or it sent a malformed message.
    pub(crate) fn receive(&self) -> Result<Option<Message>, ChannelError> {
        self.lock().channel.as_mut().map_or(Ok(None), Channel::receive)
    }

    /// Sends a message to the launcher, and waits until the socket has accepted all of it.
    pub(crate) fn send(&self, message: &Message) {
        self.lock().send(message);
        self.await_sent();
    }

    /// Sends a heartbeat, unless earlier bytes to the launcher are not sent yet.
    ///
    /// # Errors
    /// The launcher is gone.
    pub(crate) fn send_heartbeat(&self) -> Result<(), ChannelError> {
        match &mut self.lock().channel {
            Some(channel) if channel.unsent() == 0 => channel.send(&Message::Heartbeat),
            Some(channel) => channel.flush(),
            None => Ok(()),
        }
    }

    /// Waits, without the lock, until the socket has accepted all bytes for the launcher.
    fn await_sent(&self) {
        let Some(socket) = &self.socket else { return };
        while self.lock().has_unsent() {
            let mut fds = [PollFd::new(socket, PollFlags::OUT)];
            let _: rustix::io::Result<usize> = poll(&mut fds, None);
        }
    }

    /// Enters a world on the thread `me`, and returns whether that is allowed. The result is
    /// `false` while another thread is in a world. Such a call also makes the world of the other
    /// thread unreliable ([`overlapped`](Self::overlapped)). The launcher is notified of the
    /// outermost world only.
    pub(crate) fn enter(&self, me: ThreadId) -> bool {
        let mut state = self.lock();
        match &mut state.runs.thread {
            None => state.runs.thread = Some((me, 1)),
            Some((thread, count)) if *thread == me => {
                *count += 1;
                return true;
            }
            Some(_) => {
                state.runs.overlapped = true;
                return false;
            }
        }
        // This happens under the lock, so that the launcher is notified in the order in which
        // threads enter and leave.
        state.send(&Message::Entered);
        drop(state);
        self.await_sent();
        true
    }

    /// Returns whether another thread has called `run` since the first thread entered its outermost
    /// world.
    pub(crate) fn overlapped(&self) -> bool {
        self.lock().runs.overlapped
    }

    /// Leaves the world that this thread has entered, with `error` if the program failed.
    pub(crate) fn leave(&self, ending: Ending, error: Option<String>) {
        let mut state = self.lock();
        state.last_error = error;
        if let Some((_, count)) = &mut state.runs.thread
            && *count > 1
        {
            *count -= 1;
            return;
        }
        state.runs = Runs::default();
        state.send(&Message::Left(ending));
        drop(state);
        self.await_sent();
    }

    /// Returns `None` while the rank is in a world. Otherwise returns the error with which the rank
    /// left its last world, if any.
    pub(crate) fn last_error_outside_worlds(&self) -> Option<Option<String>> {
        let state = self.lock();
        state.runs.thread.is_none().then(|| state.last_error.clone())
    }

    /// Waits until it is known whether this rank can reach the other ranks, and returns the answer.
    pub(crate) fn await_connection(&self) -> Connection {
        let waits = |state: &mut State| state.connection == Connection::Waiting;
        let state = self.connection_changed.wait_while(self.lock(), waits);
        state.unwrap_or_else(PoisonError::into_inner).connection.clone()
    }

    /// Sets whether this rank can reach the other ranks, unless it is already known.
    pub(crate) fn set_connection(&self, connection: Connection) {
        let mut state = self.lock();
        if state.connection == Connection::Waiting {
            state.connection = connection;
            drop(state);
            self.connection_changed.notify_all();
        }
    }
}

impl State {
    /// Sends a message, or as much of it as the socket accepts now.
    fn send(&mut self, message: &Message) {
        if let Some(channel) = &mut self.channel {
            // When the launcher is gone, the listening thread ends this process.
            let _: Result<(), ChannelError> = channel.send(message);
        }
    }

    /// Sends as much as the socket accepts now; returns whether bytes are left.
    fn has_unsent(&mut self) -> bool {
        let Some(channel) = &mut self.channel else { return false };
        channel.flush().is_ok() && channel.unsent() > 0
    }
}
