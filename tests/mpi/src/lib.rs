//! A stand-in for a library of MPI: what ranks call to meet, with the binary interface of MPICH. A
//! [`Server`] in the test takes the place of the launcher. So tests need no MPI, and may put ranks
//! on hosts that are made up.
//!
//! A rank connects to the server by a socket whose path is in [`SERVER`], and sends its number,
//! which the variable `PMI_RANK` has. The server answers with the number of ranks. From then on
//! each call that gathers is a request, which is answered once all ranks of the group have made it.

mod library;

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

/// The variable with the path of the server's socket.
pub const SERVER: &str = "FENCEPOST_TEST_MPI";

/// Returns the path of the library, for `FENCEPOST_MPI`; the calling test is built in the same
/// folder.
///
/// # Errors
/// The path of this program is not known.
pub fn library() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("libfencepost_tests_mpi.so"))
}

/// The meeting point of the ranks of a job.
pub struct Server {
    path: PathBuf,
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
    /// Waits for as many ranks as there are `hosts`: those with the same number are on one host.
    /// `path` is a new file.
    ///
    /// # Errors
    /// The socket can't be created.
    pub fn start(path: &Path, hosts: &[u32]) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let hosts: Arc<[u32]> = hosts.into();
        let all = Arc::new(Group::new(hosts.len()));
        let on = |host: u32| hosts.iter().filter(move |other| **other == host).count();
        // One group for each rank, the same for those of one host.
        let mut groups: Vec<Arc<Group>> = Vec::new();
        for (rank, &host) in hosts.iter().enumerate() {
            let first = hosts.iter().position(|other| *other == host).unwrap_or(rank);
            groups.push(if first < rank {
                Arc::clone(&groups[first])
            } else {
                Arc::new(Group::new(on(host)))
            });
        }
        std::thread::spawn(move || {
            // It ends with the test: every rank has been accepted, or none comes any more.
            for stream in listener.incoming().take(hosts.len()) {
                let (all, groups, hosts) = (Arc::clone(&all), groups.clone(), Arc::clone(&hosts));
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &all, &groups, &hosts)));
            }
        });
        Ok(Self { path: path.into() })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have removed the folder that it was in.
        let _: io::Result<()> = std::fs::remove_file(&self.path);
    }
}

/// Serves a rank until it closes its connection.
fn serve(mut stream: UnixStream, all: &Group, groups: &[Arc<Group>], hosts: &[u32]) -> io::Result<()> {
    let rank = number(&mut stream)?;
    let place = hosts[..rank].iter().filter(|host| **host == hosts[rank]).count();
    let here = hosts.iter().filter(|host| **host == hosts[rank]).count();
    send(&mut stream, hosts.len())?;
    send(&mut stream, here)?;
    loop {
        let (of_host, len) = (number(&mut stream)? == 1, number(&mut stream)?);
        let mut part = vec![0; len];
        stream.read_exact(&mut part)?;
        let all = if of_host { groups[rank].gather(place, part) } else { all.gather(rank, part) };
        stream.write_all(&all)?;
    }
}

fn number(stream: &mut UnixStream) -> io::Result<usize> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(usize::from_le_bytes(bytes))
}

fn send(stream: &mut UnixStream, number: usize) -> io::Result<()> {
    stream.write_all(&number.to_le_bytes())
}
