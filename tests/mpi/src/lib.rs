//! A stand-in for an MPI library, with the calls by which ranks meet and exchange messages, and the
//! binary interface of MPICH. A [`Server`] in the test takes the place of the launcher. So the
//! tests need no MPI, and may assign ranks to imaginary hosts.
//!
//! A rank connects to the server by a socket whose path is in the variable [`SERVER`]. It sends the
//! server its rank, which is in the variable `PMI_RANK`. The server answers with the number of
//! ranks. From then on, each call that gathers is a request, which the server answers once all
//! ranks of the group have made it. Messages wait at the server until their receiver polls for
//! them.

mod library;

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

/// The variable with the path of the server's socket.
pub const SERVER: &str = "FENCEPOST_TEST_MPI";

/// The variable with the thread level that the library grants, as a number. If it is not set, the
/// level is MPI_THREAD_SERIALIZED.
pub const LEVEL: &str = "FENCEPOST_TEST_MPI_LEVEL";

/// The variable with the number of milliseconds that the library takes to begin to send a message.
/// If it is not set, there is no delay.
pub const DELAY: &str = "FENCEPOST_TEST_MPI_DELAY";

/// A request of a rank to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    GatherAll,
    GatherHost,
    Send,
    Probe,
    IsTaken,
}

/// A message for which its receiver has not polled yet.
struct Sent {
    from: usize,
    bytes: Vec<u8>,
    /// For a long message, its number among the long messages of its sender, counted from 1.
    number: usize,
}

/// The messages to one rank, and the numbers of the long messages of this rank that were taken.
#[derive(Default)]
struct Messages {
    inbox: Mutex<VecDeque<Sent>>,
    taken: Mutex<BTreeSet<usize>>,
    /// The number of messages that this rank has sent.
    sent: AtomicUsize,
}

/// Returns the path of the library, for `FENCEPOST_MPI`. The library is built into the folder of
/// the calling test.
///
/// # Errors
/// If the path of this program is not known.
pub fn library() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("libfencepost_tests_mpi.so"))
}

/// The meeting point of the ranks of a job.
pub struct Server {
    path: PathBuf,
    messages: Arc<[Messages]>,
}

/// The ranks that gather together.
struct Group {
    parts: Mutex<Vec<Vec<u8>>>,
    barrier: Barrier,
}

impl Group {
    fn new(ranks: usize) -> Self {
        Self { parts: Mutex::new(vec![Vec::new(); ranks]), barrier: Barrier::new(ranks) }
    }

    /// Returns the parts of all ranks of the group, one after another.
    fn gather(&self, place: usize, part: Vec<u8>) -> Vec<u8> {
        let parts = || self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts()[place] = part;
        self.barrier.wait();
        let all = parts().concat();
        self.barrier.wait();
        all
    }
}

impl Server {
    /// Starts a server that waits for one rank for each entry of `hosts`. Ranks with equal entries
    /// are on one host. The socket is created at `path`.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn start(path: &Path, hosts: &[u32]) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let hosts: Arc<[u32]> = hosts.into();
        let all = Arc::new(Group::new(hosts.len()));
        let on = |host: u32| hosts.iter().filter(move |other| **other == host).count();
        // The group of each rank. The ranks of one host share a group.
        let mut groups: Vec<Arc<Group>> = Vec::new();
        for (rank, &host) in hosts.iter().enumerate() {
            let first = hosts.iter().position(|other| *other == host).unwrap_or(rank);
            groups.push(if first < rank {
                Arc::clone(&groups[first])
            } else {
                Arc::new(Group::new(on(host)))
            });
        }
        let messages: Arc<[Messages]> = hosts.iter().map(|_| Messages::default()).collect();
        let all_messages = Arc::clone(&messages);
        std::thread::spawn(move || {
            // The thread ends when every rank has been accepted, or when the test ends.
            for stream in listener.incoming().take(hosts.len()) {
                let (all, groups, hosts) = (Arc::clone(&all), groups.clone(), Arc::clone(&hosts));
                let messages = Arc::clone(&messages);
                std::thread::spawn(move || {
                    stream.and_then(|stream| serve(stream, &all, &groups, &hosts, &messages))
                });
            }
        });
        Ok(Self { path: path.into(), messages: all_messages })
    }

    /// Returns the number of messages that the ranks have sent.
    pub fn messages(&self) -> usize {
        self.messages.iter().map(|messages| messages.sent.load(Ordering::Relaxed)).sum()
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have removed the folder of the socket.
        let _: io::Result<()> = std::fs::remove_file(&self.path);
    }
}

/// Serves a rank until it closes its connection.
fn serve(
    mut stream: UnixStream,
    all: &Group,
    groups: &[Arc<Group>],
    hosts: &[u32],
    messages: &[Messages],
) -> io::Result<()> {
    let rank = number(&mut stream)?;
    let place = hosts[..rank].iter().filter(|host| **host == hosts[rank]).count();
    let here = hosts.iter().filter(|host| **host == hosts[rank]).count();
    send(&mut stream, hosts.len())?;
    send(&mut stream, here)?;
    let inbox = |of: usize| messages[of].inbox.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = |of: usize| messages[of].taken.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let call = number(&mut stream)?;
        if call == Call::Probe as usize {
            let from = number(&mut stream)?;
            let mut inbox = inbox(rank);
            let at = inbox.iter().position(|message| from == 0 || message.from == from - 1);
            let found = at.and_then(|at| inbox.remove(at));
            drop(inbox);
            let Some(Sent { from, bytes, number }) = found else {
                send(&mut stream, 0)?;
                continue;
            };
            taken(from).insert(number);
            send(&mut stream, from + 1)?;
            send(&mut stream, bytes.len())?;
            stream.write_all(&bytes)?;
        } else if call == Call::Send as usize {
            let to = number(&mut stream)?;
            let bytes = part(&mut stream)?;
            let number = number(&mut stream)?;
            messages[rank].sent.fetch_add(1, Ordering::Relaxed);
            inbox(to).push_back(Sent { from: rank, bytes, number });
        } else if call == Call::IsTaken as usize {
            let asked = number(&mut stream)?;
            let is_taken = taken(rank).contains(&asked);
            send(&mut stream, usize::from(is_taken))?;
        } else {
            let part = part(&mut stream)?;
            let of_host = call == Call::GatherHost as usize;
            let all = if of_host { groups[rank].gather(place, part) } else { all.gather(rank, part) };
            stream.write_all(&all)?;
        }
    }
}

/// Reads the length of a part, and then its bytes.
fn part(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut part = vec![0; number(stream)?];
    stream.read_exact(&mut part)?;
    Ok(part)
}

fn number(stream: &mut UnixStream) -> io::Result<usize> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(usize::from_le_bytes(bytes))
}

fn send(stream: &mut UnixStream, number: usize) -> io::Result<()> {
    stream.write_all(&number.to_le_bytes())
}
