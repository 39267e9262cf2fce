//! How ranks find each other that another launcher has started: each proves itself to rank 0 and says where it listens;
//! rank 0 tells all of them where everybody does.

use crate::channel::{Broken, Channel};
use crate::control::Message;
use crate::description::{Description, HostRanks, Reach};
use crate::environment::{RENDEZVOUS, SECRET, Told, told};
use crate::group::until;
use crate::settings::Settings;
use fencepost_transport::auth::{Identity, Opener, Opening, Secret, Taker, Taking, Verdict, random_bytes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long ranks wait for each other.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one of them may take to prove itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// From one try to the next, while rank 0 is not there yet.
const AGAIN: Duration = Duration::from_millis(50);

/// A place in a job of another launcher, and how the others are found.
pub(crate) struct Meeting {
    pub(crate) job: Description,
    at: Vec<SocketAddr>,
    name: String,
}

impl Meeting {
    /// As the environment says, if it says so.
    ///
    /// # Errors
    /// What a launcher has told is not enough to join, or can't be.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        // What is no text is shown as far as it is, and then refused by what it is compared with.
        let get = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let Some(Told { launcher, rank, size }) = told(get)? else { return Ok(None) };
        let needs = |variable: &str, what: &str| {
            get(variable).ok_or_else(|| {
                format!("{launcher} has started this as rank {rank} of {size}: set {variable} to {what}")
            })
        };
        let name = needs(RENDEZVOUS, "an address and port of rank 0's host, as in 10.0.0.1:7777")?;
        let path = needs(SECRET, "a file of 32 random bytes that only you may read")?;
        let secret = secret(&path).map_err(|why| format!("{SECRET} is {path}: {why}"))?;
        let found = name.to_socket_addrs().map_err(|error| format!("{RENDEZVOUS} is `{name}`: {error}"))?;
        let at: Vec<SocketAddr> = found.collect();
        if at.is_empty() || at.iter().any(|at| at.ip().is_unspecified() || at.port() == 0) {
            return Err(format!(
                "{RENDEZVOUS} is `{name}`: give an address that others can connect to, and its port"
            ));
        }
        let settings = Settings::from_environment()?;
        let mut job = [0; 16];
        let known = blake3::derive_key("fencepost 2026 the name of a job that has met", secret.as_bytes());
        job.copy_from_slice(&known[..16]);
        let hosts = vec![HostRanks { name: launcher.into(), ranks: size }];
        let bind = at[0].ip();
        let (sealed, limits) = (settings.sealed, settings.limits);
        let job = Description { job, secret, rank, size, reach: Reach::Tcp, hosts, bind, sealed, limits };
        Ok(Some(Self { job, at, name }))
    }

    fn identity(&self) -> Identity {
        let Description { secret, job, rank, size, sealed, .. } = self.job.clone();
        Identity { secret, job, rank, size, sealed }
    }

    /// Meet the others. `listen` begins to listen at an address of this machine; where each rank listens is given.
    ///
    /// # Errors
    /// Who did not come, or why this rank was not let in.
    pub(crate) fn meet(
        &self,
        listen: impl FnOnce(IpAddr) -> Result<SocketAddr, String>,
    ) -> Result<Vec<SocketAddr>, String> {
        if self.job.rank == 0 { self.host(listen) } else { self.visit(listen) }
    }

    fn host(
        &self,
        listen: impl FnOnce(IpAddr) -> Result<SocketAddr, String>,
    ) -> Result<Vec<SocketAddr>, String> {
        let here = |error: io::Error| format!("rank 0 can't listen at {} ({RENDEZVOUS}): {error}", self.name);
        let door = TcpListener::bind(&self.at[..]).map_err(here)?;
        door.set_nonblocking(true).map_err(here)?;
        let mut table: Vec<Option<SocketAddr>> = vec![None; self.job.size as usize];
        table[0] = Some(listen(door.local_addr().map_err(here)?.ip())?);
        let (tell, hear) = mpsc::channel();
        let deadline = Instant::now() + LIMIT;
        let (mut guests, mut channels) = (Vec::new(), Vec::new());
        while table.iter().any(Option::is_none) {
            guests.retain(|guest: &JoinHandle<()>| !guest.is_finished());
            // As many at once as there are ranks, and some strangers: others wait before the door.
            let room = guests.len() < 2 * table.len() + 16;
            let mut fds = room.then(|| PollFd::new(&door, PollFlags::IN));
            let again = until(Some(Instant::now() + AGAIN));
            let _: rustix::io::Result<usize> = poll(fds.as_mut_slice(), again.as_ref());
            if room && let Ok((stream, _)) = door.accept() {
                let (identity, tell) = (self.identity(), tell.clone());
                let guest = move || {
                    // A stranger is turned away without a word; a rank that is, is missed in the end.
                    if let Some(guest) = let_in(stream, identity) {
                        let _: Result<(), mpsc::SendError<Guest>> = tell.send(guest);
                    }
                };
                guests.push(std::thread::Builder::new().spawn(guest).map_err(here)?);
            }
            for (rank, address, channel) in hear.try_iter() {
                table[rank as usize].get_or_insert(address);
                channels.push(channel);
            }
            if Instant::now() >= deadline {
                let missing = (0_u32..).zip(&table).filter(|(_, address)| address.is_none());
                let missing: Vec<String> = missing.map(|(rank, _)| rank.to_string()).collect();
                let missing = missing.join(", ");
                return Err(format!(
                    "of {} ranks, {missing} did not come to {} within {LIMIT:?}",
                    table.len(),
                    self.name
                ));
            }
        }
        let table: Vec<SocketAddr> = table.into_iter().flatten().collect();
        for mut channel in channels {
            // One that is gone meanwhile is found dead when it is needed.
            let mut sent: Result<(), Broken> = channel.send(&Message::Table(table.clone()));
            while sent.is_ok() && channel.waiting() > 0 && Instant::now() < deadline {
                let mut fds = [PollFd::from_borrowed_fd(channel.sink(), PollFlags::OUT)];
                let _: rustix::io::Result<usize> = poll(&mut fds, until(Some(deadline)).as_ref());
                sent = channel.flush();
            }
        }
        Ok(table)
    }

    fn visit(
        &self,
        listen: impl FnOnce(IpAddr) -> Result<SocketAddr, String>,
    ) -> Result<Vec<SocketAddr>, String> {
        let there = |why: &dyn std::fmt::Display| format!("rank 0 at {} ({RENDEZVOUS}): {why}", self.name);
        let deadline = Instant::now() + LIMIT;
        let mut stream = loop {
            let mut refused = io::ErrorKind::TimedOut.into();
            let tried = self.at.iter().find_map(|at| {
                TcpStream::connect_timeout(at, HANDSHAKE).map_err(|error| refused = error).ok()
            });
            match tried {
                Some(stream) => break stream,
                None if Instant::now() >= deadline => return Err(there(&refused)),
                // It may not have been started yet, and nothing tells when it is.
                None => std::thread::sleep(AGAIN),
            }
        };
        let io = |error: io::Error| there(&error);
        let (mut opener, hello) = Opener::new(self.identity(), 0, random_bytes().map_err(io)?);
        stream.write_all(&hello).map_err(io)?;
        loop {
            let mut bytes = vec![0; opener.wants()];
            read_all(&mut stream, &mut bytes, deadline).map_err(io)?;
            match opener.take(&bytes).map_err(|refusal| there(&refusal))? {
                Opening::More => {}
                Opening::Say(words) => stream.write_all(&words).map_err(io)?,
                Opening::Done(_) => break,
            }
        }
        let address = listen(stream.local_addr().map_err(io)?.ip())?;
        let mut channel = Channel::over(stream.into());
        channel.send(&Message::Listening(address)).map_err(|why| there(&why))?;
        match next(&mut channel, deadline) {
            Some(Message::Table(table)) if table.len() == self.job.size as usize => Ok(table),
            _ => Err(there(&"it has not told where the others are: did all of them come?")),
        }
    }
}

/// A rank that has proven itself, where it listens, and the way to it.
type Guest = (u32, SocketAddr, Channel);

/// What comes next, if it comes in time.
fn next(channel: &mut Channel, deadline: Instant) -> Option<Message> {
    while Instant::now() < deadline {
        if let Some(message) = channel.receive().ok()? {
            return Some(message);
        }
        let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
        let _: rustix::io::Result<usize> = poll(&mut fds, until(Some(deadline)).as_ref());
    }
    None
}

/// Fill `bytes` with what comes, all of it in time: one who says a byte now and then gains nothing.
fn read_all(stream: &mut TcpStream, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[at..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Let one in who proves that it is a rank of this job.
fn let_in(mut stream: TcpStream, identity: Identity) -> Option<Guest> {
    let deadline = Instant::now() + HANDSHAKE;
    stream.set_nonblocking(false).ok()?;
    stream.set_write_timeout(Some(HANDSHAKE)).ok()?;
    let mut taker = Taker::new(identity, random_bytes().ok()?);
    let rank = loop {
        let mut bytes = vec![0; taker.wants()];
        read_all(&mut stream, &mut bytes, deadline).ok()?;
        match taker.take(&bytes).ok()? {
            Taking::More => {}
            Taking::Say(words) => stream.write_all(&words).ok()?,
            Taking::Proven(rank) => break rank,
        }
    };
    let verdict = if taker.mismatch().is_some() { Verdict::Mismatch } else { Verdict::Welcome };
    stream.write_all(&taker.decide(verdict).0).ok()?;
    if matches!(verdict, Verdict::Mismatch) {
        return None;
    }
    let mut channel = Channel::over(stream.into());
    match next(&mut channel, deadline)? {
        Message::Listening(address) => Some((rank, address, channel)),
        _ => None,
    }
}

/// The secret in a file that is its owner's alone.
fn secret(path: &str) -> Result<Secret, String> {
    let text = |error: io::Error| error.to_string();
    // Opening a named pipe would wait for a writer; nothing is read before it is known to be a regular file.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|error| text(error.into()))?);
    let about = file.metadata().map_err(text)?;
    if !about.is_file() {
        return Err("it must be a regular file, and not a pipe, a device, a socket or a folder".into());
    }
    if about.mode() & 0o077 != 0 {
        return Err("it must be a file that nobody else may read (chmod 600)".into());
    }
    let mut bytes = Vec::new();
    file.take(4097).read_to_end(&mut bytes).map_err(text)?;
    if !(32..=4096).contains(&bytes.len()) {
        return Err("it must hold 32 random bytes at least, and 4096 at most".into());
    }
    Ok(Secret::from_bytes(blake3::derive_key("fencepost 2026 the secret of a job that meets", &bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_in_time_is_not_waited_for_however_it_has_begun() {
        let door = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut stranger = TcpStream::connect(door.local_addr().expect("its address")).expect("it listens");
        let (mut stream, _) = door.accept().expect("somebody is there");
        stranger.write_all(&[1, 2, 3]).expect("sent");
        let mut bytes = [0; 2];
        read_all(&mut stream, &mut bytes, Instant::now() + HANDSHAKE).expect("they have come");
        assert_eq!(bytes, [1, 2]);
        let soon = Instant::now() + Duration::from_millis(50);
        let refused = read_all(&mut stream, &mut bytes, soon).expect_err("one byte of two has come");
        assert!(matches!(refused.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{refused}");
        // Time that is over is over, though there is something.
        stranger.write_all(&[4, 5]).expect("sent");
        let refused = read_all(&mut stream, &mut bytes, soon).expect_err("too late");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(stranger);
    }
}
