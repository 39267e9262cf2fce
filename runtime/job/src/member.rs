//! [`Member`]: what the process of a rank is in its job: the other end of what `start` does.
//!
//! It joins once, when a world is first asked for. From then on a thread of its own listens to the control channel, gives
//! signs of life, and hands on what it hears of other ranks; when whoever started the job is gone, it ends the process.

use crate::channel::{Broken, Channel};
use crate::control::{Ending, Message};
use crate::description::Description;
use crate::group::{VARIABLE, until};
use crate::link::Link;
use crate::rendezvous::Meeting;
use fencepost_transport::Endpoint;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

/// This process's place in its job.
pub struct Member {
    job: Description,
    link: Link,
    /// To the starter, if there is one.
    control: Option<Control>,
    /// How many worlds of the whole job this rank has taken.
    worlds: Mutex<u32>,
    /// Which thread is in a `run`.
    running: Mutex<Running>,
    /// Why it left the last one, where that was with an error.
    failed: Mutex<Option<String>>,
    begun: Mutex<Begun>,
    news: Condvar,
}

/// The `run`s of this process that have begun and not ended. Worlds of processes are paired by the order in which each
/// process enters them, which only one thread can keep.
#[derive(Default)]
struct Running {
    /// The thread that is in one, and how many it is in, one in another.
    thread: Option<(ThreadId, u32)>,
    /// Another thread has called `run` since.
    overlapped: bool,
}

/// The control channel.
struct Control {
    channel: Mutex<Channel>,
    /// The same socket, to wait for it with nothing locked.
    socket: OwnedFd,
}

/// Whether the ranks know where the others are.
enum Begun {
    NotYet,
    Yes,
    /// This rank can't, as this says.
    Never(String),
    /// A rank ended before that, as this says.
    Bereft(String),
}

static MEMBER: OnceLock<Result<Option<Member>, String>> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    /// Of C's library, which the standard library stands on: call `last` when the process ends by itself.
    fn atexit(last: extern "C" fn()) -> std::ffi::c_int;
}

/// What a rank does when its process ends by itself: whoever is in no world says goodbye to the others. In the middle of
/// one, its end is a death.
extern "C" fn part() {
    if let Some(Ok(Some(member))) = MEMBER.get()
        && lock(&member.running).thread.is_none()
    {
        member.link.part(&member.job, lock(&member.failed).as_deref());
    }
}

/// What this process is in its job; none, where it was not started as a rank. The first call joins.
///
/// # Errors
/// It was started as a rank and cannot join: why.
pub fn member() -> Result<Option<&'static Member>, String> {
    let Some(member) = MEMBER.get_or_init(join).as_ref().map_err(String::clone)? else { return Ok(None) };
    LISTENING.get_or_init(|| {
        // SAFETY: C's own function, with a function that does not unwind and lives as long as the program.
        unsafe { atexit(part) };
        let Some(control) = &member.control else { return };
        let listen = std::thread::Builder::new().name("fencepost control".into());
        if let Err(error) = listen.spawn(|| member.listen(control)) {
            *lock(&member.begun) = Begun::Never(format!("it has no thread for its control channel: {error}"));
        }
    });
    member.begin()?;
    Ok(Some(member))
}

/// What this process is in its job, if it has joined one.
pub fn joined() -> Option<&'static Member> {
    MEMBER.get()?.as_ref().ok()?.as_ref()
}

/// The control channel that this process inherited, if it did. It is taken once.
fn inherited() -> Option<OwnedFd> {
    let value = std::env::var(VARIABLE).ok()?;
    let (descriptor, inode) = value.split_once(':')?;
    let (descriptor, inode): (RawFd, u64) = (descriptor.parse().ok()?, inode.parse().ok()?);
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it is only asked whether it is open, and which file it is, which is allowed of any number.
    let looked_at = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let flags = fcntl_getfd(looked_at).ok()?;
    let is_it = rustix::fs::fstat(looked_at).is_ok_and(|stat| stat.st_ino == inode);
    // What is closed on exec was not inherited: this process, or another part of it, has made it.
    if !is_it || flags.contains(FdFlags::CLOEXEC) {
        return None;
    }
    // SAFETY: it is the very socket that the starter has left to this program, so nothing else in it owns it; and it is
    // taken once, since it is closed on exec from here on, and `join` runs once.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

fn join() -> Result<Option<Member>, String> {
    let Some(socket) = inherited() else { return meet() };
    let mut channel = Channel::over(socket);
    let job = loop {
        match channel.receive() {
            Ok(Some(Message::Job(job))) => break job,
            Ok(Some(_)) => return Err("the starter said something before it said what the job is".into()),
            Ok(None) => {
                let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
                let _: rustix::io::Result<usize> = poll(&mut fds, None);
            }
            Err(why) => return Err(format!("the starter is gone: {why}")),
        }
    };
    let memory = channel.take_descriptor();
    let joined = Link::join(&job, memory, true).and_then(|(link, address)| {
        let socket = channel.source().try_clone_to_owned().map_err(|error| error.to_string())?;
        Ok((link, address, socket))
    });
    let said = match &joined {
        Ok(_) => channel.send(&Message::Joined(crate::RELEASE.into())),
        Err(why) => channel.send(&Message::Refused(why.clone())),
    };
    let (link, address, socket) = joined?;
    let said =
        said.and_then(|()| address.map_or(Ok(()), |address| channel.send(&Message::Listening(address))));
    said.map_err(|why| format!("the starter is gone: {why}"))?;
    let begun = if address.is_some() { Begun::NotYet } else { Begun::Yes };
    Ok(Some(Member {
        job,
        link,
        control: Some(Control { channel: Mutex::new(channel), socket }),
        worlds: Mutex::new(0),
        running: Mutex::default(),
        failed: Mutex::default(),
        begun: Mutex::new(begun),
        news: Condvar::new(),
    }))
}

/// Join a job that another launcher has started, if one has.
fn meet() -> Result<Option<Member>, String> {
    let Some(meeting) = Meeting::from_environment()? else { return Ok(None) };
    let mut job = meeting.job.clone();
    let mut link = None;
    let table = meeting.meet(|here| {
        job.bind = here;
        let (mine, address) = Link::join(&job, None, false)?;
        link = Some(mine);
        address.ok_or_else(|| "it listens nowhere".into())
    })?;
    let link = link.ok_or("it listens nowhere")?;
    link.table(&table).map_err(|error| format!("it has no connections: {error}"))?;
    Ok(Some(Member {
        job,
        link,
        control: None,
        worlds: Mutex::new(0),
        running: Mutex::default(),
        failed: Mutex::default(),
        begun: Mutex::new(Begun::Yes),
        news: Condvar::new(),
    }))
}

impl Member {
    /// The job.
    pub fn job(&self) -> &Description {
        &self.job
    }

    /// This rank's end of the next world of the whole job.
    ///
    /// # Errors
    /// It can't be entered, or there is no room.
    pub fn endpoint(&self) -> std::io::Result<Endpoint> {
        // Locked until it is taken: they are taken in order.
        let mut worlds = lock(&self.worlds);
        let world = *worlds;
        *worlds = world.wrapping_add(1);
        self.link.end(&self.job, world)
    }

    /// This thread enters a world. Returns whether it may: not while another thread is in one, whose world is not to be
    /// believed either from here on. The starter is told of the outermost world only.
    pub fn enter(&self) -> bool {
        let mut running = lock(&self.running);
        let me = std::thread::current().id();
        match &mut running.thread {
            None => running.thread = Some((me, 1)),
            Some((thread, count)) if *thread == me => {
                *count += 1;
                return true;
            }
            Some(_) => {
                running.overlapped = true;
                return false;
            }
        }
        drop(running);
        self.say(&Message::Entered);
        true
    }

    /// Whether another thread has called `run` since this one entered its outermost world.
    pub fn overlapped(&self) -> bool {
        lock(&self.running).overlapped
    }

    /// This thread leaves a world that it entered; with an error, if there is one.
    pub fn leave(&self, how: Ending, failed: Option<String>) {
        *lock(&self.failed) = failed;
        let mut running = lock(&self.running);
        if let Some((_, count)) = &mut running.thread
            && *count > 1
        {
            *count -= 1;
            return;
        }
        *running = Running::default();
        drop(running);
        self.say(&Message::Left(how));
    }

    /// Tell the starter that this process is about to end, and only because another rank has failed: in a world, or before
    /// it has entered one.
    pub fn tell_echo(&self) {
        self.say(&Message::Left(Ending::Echo));
    }

    fn say(&self, message: &Message) {
        let Some(control) = &self.control else { return };
        let mut channel = lock(&control.channel);
        // When the starter is gone, the thread that listens ends this process.
        let mut sent: Result<(), Broken> = channel.send(message);
        while sent.is_ok() && channel.waiting() > 0 {
            let mut fds = [PollFd::from_borrowed_fd(channel.sink(), PollFlags::OUT)];
            let _: rustix::io::Result<usize> = poll(&mut fds, None);
            sent = channel.flush();
        }
    }

    /// Wait until every rank knows where the others are.
    fn begin(&self) -> Result<(), String> {
        let waits = |begun: &mut Begun| matches!(begun, Begun::NotYet);
        let begun = self.news.wait_while(lock(&self.begun), waits).unwrap_or_else(PoisonError::into_inner);
        match &*begun {
            Begun::Never(why) => Err(why.clone()),
            Begun::Bereft(how) => {
                self.tell_echo();
                Err(format!("before the job had begun, {how}"))
            }
            Begun::NotYet | Begun::Yes => Ok(()),
        }
    }

    fn set_begun(&self, begun: Begun) {
        let mut now = lock(&self.begun);
        if matches!(*now, Begun::NotYet) {
            *now = begun;
            self.news.notify_all();
        }
    }

    /// The life of the thread that listens.
    fn listen(&self, control: &Control) {
        let every = self.job.limits.heartbeat;
        let mut next_beat = Instant::now() + every;
        loop {
            let mut fds = [PollFd::new(&control.socket, PollFlags::IN)];
            // Interrupted, it looks and waits again.
            let _: rustix::io::Result<usize> = poll(&mut fds, until(Some(next_beat)).as_ref());
            let now = Instant::now();
            let mut channel = lock(&control.channel);
            if now >= next_beat {
                next_beat = now + every;
                // A starter that takes nothing for a while has beats enough.
                let sent =
                    if channel.waiting() == 0 { channel.send(&Message::Beat) } else { channel.flush() };
                if sent.is_err() {
                    end(Signal::KILL);
                }
            }
            loop {
                let message = channel.receive();
                match message {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => break,
                    Err(_) => end(Signal::KILL),
                }
            }
        }
    }

    fn take(&self, message: Message) {
        match message {
            Message::Table(addresses) if addresses.len() == self.job.size as usize => {
                self.set_begun(match self.link.table(&addresses) {
                    Ok(()) => Begun::Yes,
                    Err(error) => Begun::Never(format!("it has no connections: {error}")),
                });
            }
            Message::Died { rank, how } if rank < self.job.size => {
                self.link.strike(rank, &how);
                self.set_begun(Begun::Bereft(how));
            }
            Message::Stop => end(Signal::TERM),
            _ => {}
        }
    }
}

/// End this process.
fn end(signal: Signal) {
    let _: rustix::io::Result<()> = kill_process(getpid(), signal);
}
