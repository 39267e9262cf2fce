//! [`share`]: memory shared by ranks that another launcher has started on one host. The lowest rank
//! creates the segment, and the others open it through `/proc`. No rank can reap the processes of
//! the other ranks, so each rank watches the processes of its host ([`Neighbours`]).

use crate::description::Limits;
use crate::turns::timeout_until;
use fencepost_transport::Segment;
use fencepost_transport::mpi::{Group, Session};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shares memory among the ranks of this host. All ranks of the host must call this function.
/// Returns the segment, or the reason why some rank can't use the segment. In the latter case no
/// rank uses the segment.
///
/// # Errors
/// MPI has failed.
pub(crate) fn share(session: &Session, ranks: &[u32]) -> Result<Result<Shared, String>, String> {
    let is_first = ranks[0] as usize == session.rank();
    let created = is_first.then(|| Segment::create(ranks.len()).map_err(|error| error.to_string()));
    let offer = |segment: &Segment| -> rustix::io::Result<String> {
        Ok(format!("{} {}", segment.fd().as_raw_fd(), fstat(segment.fd())?.st_ino))
    };
    let offer = match &created {
        Some(Ok(segment)) => offer(segment).map_err(|error| error.to_string()),
        Some(Err(why)) => Err(why.clone()),
        None => Ok(String::new()),
    };
    let given = match (&Process::this(), &offer) {
        (Ok(process), Ok(offer)) => format!("{process} {offer}"),
        (Err(why), _) | (_, Err(why)) => why.clone(),
    };
    let all = session.gather(Group::Host, given.as_bytes())?;
    let joined = joined(&all, ranks, created, session.rank() as u32);
    // A rank that can't use the segment sends the reason. In that case no rank of the host uses the
    // segment.
    let why = joined.as_ref().err().map_or("", String::as_str);
    let votes = session.gather(Group::Host, why.as_bytes())?;
    let against = ranks.iter().zip(votes).find(|(_, vote)| !vote.is_empty());
    Ok(match against {
        Some((rank, why)) => Err(format!("rank {rank}: {}", String::from_utf8_lossy(&why))),
        None => joined,
    })
}

/// Opens the processes of the other ranks of this host. All ranks of the host must call this
/// function. Returns `None` if a process can't be opened.
///
/// # Errors
/// MPI has failed.
pub(crate) fn neighbours(session: &Session, ranks: &[u32]) -> Result<Option<Neighbours>, String> {
    let given = Process::this().map_or_else(|why| why, |process| process.to_string());
    let all = session.gather(Group::Host, given.as_bytes())?;
    let texts = all.iter().map(|bytes| String::from_utf8_lossy(bytes).parse().ok());
    let processes = texts.collect::<Option<Vec<Process>>>();
    let me = session.rank() as u32;
    Ok(processes.and_then(|processes| Neighbours::open(&processes, ranks, me).ok()))
}

/// The segment of a host, and the processes of its ranks.
pub(crate) struct Shared {
    pub(crate) segment: Arc<Segment>,
    pub(crate) neighbours: Neighbours,
}

/// The processes of the other ranks of this host.
pub(crate) struct Neighbours {
    /// The ranks after this one, followed by the ranks before it.
    others: Vec<Neighbour>,
    /// Reports the processes that end, by their indices among the ranks of the host, in the order
    /// in which they end. The order matters: a launcher may kill all ranks as soon as it notices
    /// that one has ended, and then the error must name the rank that ended first.
    ends: OwnedFd,
}

/// Another rank of this host.
pub(crate) struct Neighbour {
    pub(crate) rank: u32,
    /// The rank's index among the ranks of the host.
    pub(crate) local: usize,
    pid: i32,
    /// The descriptor of the process. It is opened when the ranks join, since later there may be no
    /// descriptor left, and the rank would then wrongly count as ended.
    process: OwnedFd,
}

/// Opens the segment, and the processes that this rank may have to watch.
fn joined(
    all: &[Vec<u8>],
    ranks: &[u32],
    created: Option<Result<Segment, String>>,
    me: u32,
) -> Result<Shared, String> {
    let texts: Vec<_> = all.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
    let read = |text: &str| text.parse::<Process>().map_err(|()| text.to_owned());
    let processes = texts.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>()?;
    let segment = match created {
        Some(created) => Arc::new(created?),
        None => opened(processes[0], &texts[0])?,
    };
    Ok(Shared { segment, neighbours: Neighbours::open(&processes, ranks, me)? })
}

/// Opens the segment of the rank that has sent this text.
fn opened(process: Process, text: &str) -> Result<Arc<Segment>, String> {
    let mut words = text.split_whitespace().skip(2);
    let (Some(fd), Some(inode)) = (words.next(), words.next()) else {
        return Err(format!("the first rank of the host offers no memory: {text}"));
    };
    let path = format!("/proc/{}/fd/{fd}", process.pid);
    let failed = |why: &dyn std::fmt::Display| format!("the memory at {path} can't be opened: {why}");
    let file = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| failed(&error))?;
    // In another process namespace, this process id may belong to another process.
    let is_it = fstat(&file).is_ok_and(|stat| stat.st_ino.to_string() == inode);
    if !is_it {
        return Err(failed(&"it is another file"));
    }
    Segment::join(file).map_err(|error| error.to_string())
}

/// A process, identified by its process id and by its start time, so that a reused process id is
/// noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    fn this() -> Result<Self, String> {
        let pid = getpid().as_raw_nonzero().get();
        let started = started(pid).ok_or("/proc does not show this process")?;
        Ok(Self { pid, started })
    }

    /// Returns a descriptor of the process, or `None` if the process has ended or can't be opened.
    fn open(self) -> Option<OwnedFd> {
        let process = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // The descriptor refers to the process that had the process id when the descriptor was
        // opened.
        (started(self.pid) == Some(self.started)).then_some(process)
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.pid, self.started)
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split_whitespace();
        let mut word = || words.next().ok_or(());
        let (pid, started) = (word()?.parse().map_err(drop)?, word()?.parse().map_err(drop)?);
        Ok(Self { pid, started })
    }
}

/// Returns when a process was started, in ticks since the machine was started: field 22 of its
/// state.
fn started(pid: i32) -> Option<u64> {
    field(pid, 22)?.parse().ok()
}

/// Returns whether a signal has stopped a process. A stop by a debugger does not count.
fn is_stopped(pid: i32) -> bool {
    field(pid, 3).as_deref() == Some("T")
}

/// Returns a field of a process's state, by its number in proc(5), which must be 3 or more.
fn field(pid: i32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 2, the name of the program in parentheses, may contain any characters.
    stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3).map(str::to_owned)
}

impl Shared {
    /// Returns memory for this rank alone.
    pub(crate) fn alone() -> Result<Self, String> {
        let segment = Segment::create(1).map_err(|error| error.to_string())?;
        Ok(Self { segment: Arc::new(segment), neighbours: Neighbours::new(Vec::new())? })
    }
}

impl Neighbours {
    /// Opens the processes of the other ranks among `ranks`.
    fn open(processes: &[Process], ranks: &[u32], me: u32) -> Result<Self, String> {
        let here = ranks.iter().position(|&rank| rank == me).ok_or("this rank is on another host")?;
        let other = |local: usize| {
            let (rank, pid) = (ranks[local], processes[local].pid);
            let opened = processes[local].open();
            let process = opened.ok_or_else(|| format!("the process of rank {rank} can't be watched"))?;
            Ok(Neighbour { rank, local, pid, process })
        };
        Self::new((here + 1..ranks.len()).chain(0..here).map(other).collect::<Result<_, String>>()?)
    }

    fn new(others: Vec<Neighbour>) -> Result<Self, String> {
        let ends = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(|ends| {
            let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            for other in &others {
                epoll::add(&ends, &other.process, epoll::EventData::new_u64(other.local as u64), once)?;
            }
            Ok(ends)
        });
        let ends = ends.map_err(|error| format!("the processes of this host can't be watched: {error}"))?;
        Ok(Self { others, ends })
    }

    /// Returns whether there are no other ranks on this host.
    pub(crate) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Watches the other ranks of this host until all of them have ended. Calls `ended` for each
    /// rank that has ended, with a text that describes how the rank ended, and with `false`. Calls
    /// `ended` for the rank a second time, with `true`, as soon as no rank between this rank and
    /// the ended rank runs any more. Kills the next running rank if that rank is stopped for longer
    /// than the silence limit, as a launcher kills a rank that sends no heartbeat.
    pub(crate) fn watch(self, limits: Limits, mut ended: impl FnMut(&Neighbour, &str, bool)) {
        let mut stop = Stop::default();
        let mut watched: VecDeque<(Neighbour, Option<String>)> =
            self.others.into_iter().map(|other| (other, None)).collect();
        let mut found: Vec<epoll::Event> = Vec::with_capacity(watched.len());
        while !watched.is_empty() {
            let began = Instant::now();
            let next = (!limits.silence.is_zero()).then(|| began + limits.heartbeat);
            found.clear();
            // An error means that a signal interrupted the wait, and `found` is empty.
            let timeout = timeout_until(next);
            let _: rustix::io::Result<usize> =
                epoll::wait(&self.ends, spare_capacity(&mut found), timeout.as_ref());
            for event in &found {
                let local = event.data.u64() as usize;
                let Some(at) = watched.iter().position(|(other, _)| other.local == local) else { continue };
                let (other, how) = &mut watched[at];
                let how = how.insert(format!("rank {} of the job has ended", other.rank));
                ended(other, how, false);
            }
            // Time in which this process itself was stopped does not count, since a job may be
            // stopped as a whole.
            let turn = began.elapsed().min(limits.heartbeat);
            if let Some((next, how @ None)) = watched.front_mut().filter(|_| !limits.silence.is_zero())
                && let Some(stopped) = stop.killed(next, turn, limits.silence)
            {
                // The killed rank runs no more, and is reported now: the launcher may kill other
                // ranks as soon as it notices the end.
                let how = how.insert(format!(
                    "rank {} of the job was stopped for {:.1} s and was killed",
                    next.rank,
                    stopped.as_secs_f64()
                ));
                ended(next, how, false);
            }
            while let Some((other, Some(how))) = watched.front() {
                ended(other, how, true);
                watched.pop_front();
                stop = Stop::default();
            }
        }
    }
}

/// How long the next rank has been stopped.
#[derive(Default)]
struct Stop(Duration);

impl Stop {
    /// Kills a rank that has been stopped for longer than `limit`. Returns how long the rank had
    /// been stopped, if it was killed.
    fn killed(&mut self, rank: &Neighbour, turn: Duration, limit: Duration) -> Option<Duration> {
        self.0 = if is_stopped(rank.pid) { self.0 + turn } else { Duration::ZERO };
        // An error means that the rank has ended, which its descriptor reports.
        (self.0 >= limit && pidfd_send_signal(&rank.process, Signal::KILL).is_ok()).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn a_process_is_recognised_by_its_number_and_its_start() {
        let process = Process::this().expect("this process");
        assert_eq!(process.to_string().parse(), Ok(process));
        assert!(process.open().is_some());
        assert!(Process { started: process.started + 1, ..process }.open().is_none(), "it was started later");
        assert!("no numbers".parse::<Process>().is_err());
    }

    #[test]
    fn memory_is_opened_through_the_process_that_offers_it() {
        let segment = Segment::create(2).expect("memory");
        let process = Process::this().expect("this process");
        let offer = |inode: u64| format!("{process} {} {inode}", segment.fd().as_raw_fd());
        let inode = fstat(segment.fd()).expect("a file").st_ino;
        let refused = opened(process, &offer(inode + 1)).err().expect("another file");
        assert!(refused.contains("another file"), "{refused}");
        // The segment's addresses are already in use in this process, and joining reports that.
        let refused = opened(process, &offer(inode)).err().expect("the addresses are in use");
        assert!(refused.contains("the same address"), "{refused}");
    }

    #[test]
    fn the_end_of_a_process_is_marked_and_one_that_is_stopped_is_killed() {
        let limits = Limits { heartbeat: Duration::from_millis(10), silence: Duration::from_millis(30) };
        for stops in [false, true] {
            the_end_is_marked(limits, stops);
        }
    }

    #[test]
    fn ends_are_reported_in_the_order_in_which_processes_end() {
        let (mut children, others): (Vec<_>, Vec<_>) = (1..=3).map(neighbour).unzip();
        let neighbours = Neighbours::new(others).expect("descriptors");
        for place in [2, 3, 1] {
            let child = &mut children[place - 1];
            drop(child.stdin.take());
            child.wait().expect("it has ended");
        }
        let limits = Limits { heartbeat: Duration::from_millis(10), silence: Duration::ZERO };
        let mut order = Vec::new();
        neighbours.watch(limits, |other, _, is_next| order.extend((!is_next).then_some(other.local)));
        assert_eq!(order, [2, 3, 1]);
    }

    /// Starts a process that ends when its input ends. Returns the process as the rank with this
    /// number and index.
    fn neighbour(local: usize) -> (Child, Neighbour) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let pid = child.id() as i32;
        let process = Process { pid, started: started(pid).expect("it runs") };
        let process = process.open().expect("a descriptor");
        (child, Neighbour { rank: local as u32, local, pid, process })
    }

    fn the_end_is_marked(limits: Limits, stops: bool) {
        let segment = Arc::new(Segment::create(2).expect("memory"));
        let (mut child, other) = neighbour(1);
        let neighbours = Neighbours::new(vec![other]).expect("a descriptor");
        let marked = Arc::clone(&segment);
        let watcher = std::thread::spawn(move || {
            neighbours.watch(limits, |other, how, is_next| {
                assert!(!is_next || marked.mark_failed(other.local, how), "{how}");
            });
        });
        if stops {
            rustix::process::kill_process(Pid::from_child(&child), Signal::STOP).expect("it runs");
        } else {
            drop(child.stdin.take());
        }
        watcher.join().expect("it ends with the process");
        let status = child.wait().expect("it has ended");
        assert_eq!(status.code().is_none(), stops, "{status}");
        assert!(!segment.mark_failed(1, "again"), "it is marked already");
    }
}
