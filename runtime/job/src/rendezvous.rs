//! [`Rendezvous`]: how the ranks of an external launcher find each other at an address. Each rank
//! authenticates itself to rank 0 and reports the address at which it listens. Rank 0 sends the
//! table of all addresses to each rank.

use crate::channel::{Channel, ChannelError};
use crate::control::Message;
use crate::description::{Description, HostRanks, Reach};
use crate::environment::{ExternalRank, RENDEZVOUS, SECRET};
use crate::settings::Settings;
use crate::turns::timeout_until;
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

/// How long the ranks wait for each other.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the authentication of one rank may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time between two attempts to connect while rank 0 does not listen yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A rank of a job that an external launcher has started, and the address at which the ranks meet.
pub(crate) struct Rendezvous {
    pub(crate) job: Description,
    at: Vec<SocketAddr>,
    name: String,
}

impl Rendezvous {
    /// Prepares the rendezvous at the address `name` for the rank that an external launcher has
    /// assigned to this process.
    ///
    /// # Errors
    /// The variables are not sufficient to join, or not valid.
    pub(crate) fn new(external: &ExternalRank, name: String) -> Result<Self, String> {
        let &ExternalRank { launcher, rank, size, .. } = external;
        let path = crate::environment::variable(SECRET).ok_or_else(|| {
            format!(
                "{launcher} has started this process as rank {rank} of {size}, and {RENDEZVOUS} is set: set {SECRET} to a file of 32 random bytes that only you may read"
            )
        })?;
        let secret = read_secret(&path).map_err(|why| format!("{SECRET} is `{path}`: {why}"))?;
        let found = name.to_socket_addrs().map_err(|error| format!("{RENDEZVOUS} is `{name}`: {error}"))?;
        let at: Vec<SocketAddr> = found.collect();
        if at.is_empty() || at.iter().any(|at| at.ip().is_unspecified() || at.port() == 0) {
            return Err(format!(
                "{RENDEZVOUS} is `{name}`: give an address that the other ranks can connect to, and a port above 0"
            ));
        }
        let settings = Settings::from_environment()?;
        let job = job_of(&secret);
        let hosts = vec![HostRanks { host: 0, name: launcher.into(), ranks: size }];
        let bind = at[0].ip();
        let (sealed, limits) = (settings.sealed, settings.limits);
        let (reach, cores) = (Reach::Tcp, crate::pin::cores_of_launcher());
        let job = Description { job, secret, rank, size, reach, hosts, cores, bind, sealed, limits };
        Ok(Self { job, at, name })
    }

    fn identity(&self) -> Identity {
        let Description { secret, job, rank, size, sealed, .. } = self.job.clone();
        Identity { secret, job, rank, size, sealed }
    }

    /// Exchanges addresses with the other ranks, and returns the address of each rank. `listen`
    /// starts to listen at an address of this machine.
    ///
    /// # Errors
    /// Some ranks did not connect in time, or rank 0 did not accept this rank.
    pub(crate) fn exchange_addresses(
        &self,
        listen: impl FnOnce(IpAddr) -> Result<SocketAddr, String>,
    ) -> Result<Vec<SocketAddr>, String> {
        if self.job.rank == 0 { self.collect_addresses(listen) } else { self.ask_rank_0(listen) }
    }

    fn collect_addresses(
        &self,
        listen: impl FnOnce(IpAddr) -> Result<SocketAddr, String>,
    ) -> Result<Vec<SocketAddr>, String> {
        let failed =
            |error: io::Error| format!("rank 0 can't listen at {} ({RENDEZVOUS}): {error}", self.name);
        let listener = TcpListener::bind(&self.at[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let mut table: Vec<Option<SocketAddr>> = vec![None; self.job.size as usize];
        table[0] = Some(listen(listener.local_addr().map_err(failed)?.ip())?);
        let (sender, receiver) = mpsc::channel();
        let deadline = Instant::now() + LIMIT;
        let (mut handshakes, mut channels) = (Vec::new(), Vec::new());
        while table.iter().any(Option::is_none) {
            handshakes.retain(|handshake: &JoinHandle<()>| !handshake.is_finished());
            // At most `2 * ranks + 16` handshakes run at a time. Further connections wait in the
            // listener's queue.
            let room = handshakes.len() < 2 * table.len() + 16;
            let mut fds = room.then(|| PollFd::new(&listener, PollFlags::IN));
            let again = timeout_until(Some(Instant::now() + RETRY_INTERVAL));
            let _: rustix::io::Result<usize> = poll(fds.as_mut_slice(), again.as_ref());
            if room && let Ok((stream, _)) = listener.accept() {
                let (identity, sender) = (self.identity(), sender.clone());
                let handshake = move || {
                    // A connection that fails authentication is closed without an answer. If it
                    // came from a rank, the final error names that rank as missing.
                    if let Some(joined) = authenticate(stream, identity) {
                        let _: Result<(), mpsc::SendError<JoinedRank>> = sender.send(joined);
                    }
                };
                handshakes.push(std::thread::Builder::new().spawn(handshake).map_err(failed)?);
            }
            for (rank, address, channel) in receiver.try_iter() {
                table[rank as usize].get_or_insert(address);
                channels.push(channel);
            }
            if Instant::now() >= deadline {
                let missing = (0_u32..).zip(&table).filter(|(_, address)| address.is_none());
                let missing: Vec<String> = missing.map(|(rank, _)| rank.to_string()).collect();
                let missing = missing.join(", ");
                return Err(format!(
                    "ranks {missing} of {} did not connect to {} within {LIMIT:?}: start all ranks, with one secret",
                    table.len(),
                    self.name
                ));
            }
        }
        let table: Vec<SocketAddr> = table.into_iter().flatten().collect();
        for mut channel in channels {
            // If a rank is gone in the meantime, the ranks that need it notice that.
            let mut sent: Result<(), ChannelError> = channel.send(&Message::Table(table.clone()));
            while sent.is_ok() && channel.unsent() > 0 && Instant::now() < deadline {
                let mut fds = [PollFd::from_borrowed_fd(channel.sink(), PollFlags::OUT)];
                let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(deadline)).as_ref());
                sent = channel.flush();
            }
        }
        Ok(table)
    }

    fn ask_rank_0(
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
                // Rank 0 may not have started yet, and no event reports when it does.
                None => std::thread::sleep(RETRY_INTERVAL),
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
        let mut channel = Channel::from_socket(stream.into());
        channel.send(&Message::Listening(address)).map_err(|why| there(&why))?;
        match next_message(&mut channel, deadline) {
            Some(Message::Table(table)) if table.len() == self.job.size as usize => Ok(table),
            _ => Err(there(
                &"it did not send the addresses of the other ranks in time: have all ranks been started?",
            )),
        }
    }
}

/// Returns the identifier of the job that has this secret.
pub(crate) fn job_of(secret: &Secret) -> [u8; 16] {
    let mut job = [0; 16];
    let known = blake3::derive_key("fencepost 2026 the name of a job that has met", secret.as_bytes());
    job.copy_from_slice(&known[..16]);
    job
}

/// A rank that has authenticated itself, the address at which it listens, and the connection to it.
type JoinedRank = (u32, SocketAddr, Channel);

/// Returns the next message, if it arrives before the deadline.
fn next_message(channel: &mut Channel, deadline: Instant) -> Option<Message> {
    while Instant::now() < deadline {
        if let Some(message) = channel.receive().ok()? {
            return Some(message);
        }
        let mut fds = [PollFd::from_borrowed_fd(channel.source(), PollFlags::IN)];
        let _: rustix::io::Result<usize> = poll(&mut fds, timeout_until(Some(deadline)).as_ref());
    }
    None
}

/// Fills `bytes` before the deadline. The deadline is for all bytes together, so a peer cannot
/// extend it by sending single bytes.
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

/// Authenticates the peer of a connection as a rank of this job.
fn authenticate(mut stream: TcpStream, identity: Identity) -> Option<JoinedRank> {
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
    let mut channel = Channel::from_socket(stream.into());
    match next_message(&mut channel, deadline)? {
        Message::Listening(address) => Some((rank, address, channel)),
        _ => None,
    }
}

/// Reads the secret from a file that only its owner may read.
fn read_secret(path: &str) -> Result<Secret, String> {
    let text = |error: io::Error| error.to_string();
    // Without NONBLOCK, opening a named pipe would wait for a writer. Nothing is read before the
    // file is known to be regular.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty()).map_err(|error| text(error.into()))?);
    let about = file.metadata().map_err(text)?;
    if !about.is_file() {
        return Err("it must be a regular file, and not a pipe, a device, a socket or a folder".into());
    }
    if about.mode() & 0o077 != 0 {
        return Err("only its owner may have access to it: run chmod 600 on it".into());
    }
    let mut bytes = Vec::new();
    file.take(4097).read_to_end(&mut bytes).map_err(text)?;
    if !(32..=4096).contains(&bytes.len()) {
        return Err("it must hold at least 32 random bytes, and at most 4096".into());
    }
    Ok(Secret::from_bytes(blake3::derive_key("fencepost 2026 the secret of a job that meets", &bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_arrive_after_the_deadline_are_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut stranger =
            TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
        let (mut stream, _) = listener.accept().expect("a connection");
        stranger.write_all(&[1, 2, 3]).expect("sent");
        let mut bytes = [0; 2];
        read_all(&mut stream, &mut bytes, Instant::now() + HANDSHAKE).expect("both bytes have arrived");
        assert_eq!(bytes, [1, 2]);
        let soon = Instant::now() + Duration::from_millis(50);
        let refused = read_all(&mut stream, &mut bytes, soon).expect_err("one byte of two has arrived");
        assert!(matches!(refused.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{refused}");
        // After the deadline even bytes that have arrived are not read.
        stranger.write_all(&[4, 5]).expect("sent");
        let refused = read_all(&mut stream, &mut bytes, soon).expect_err("too late");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(stranger);
    }
}
