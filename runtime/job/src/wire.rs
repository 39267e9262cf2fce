//! [`quicker`]: decides whether ranks that share no memory exchange bytes over TCP or over MPI, if
//! the user has chosen neither. Both are timed once.
//!
//! Rank 0 and the lowest rank that shares no memory with it send short and long messages back and
//! forth, over MPI and over a connection. Every rank then uses the faster of the two. The shortest
//! of several times counts, since other ranks spin in MPI meanwhile.

use fencepost_transport::auth::Secret;
use fencepost_transport::mpi::{Group, Session};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How bytes travel between ranks that share no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// TCP connections.
    Tcp,
    /// Messages of MPI.
    Mpi,
}

/// The lengths of the messages that are timed, in bytes.
const LENGTHS: [usize; 2] = [8, 64 << 10];

/// How often a message of each length is sent back and forth.
const ROUNDS: u32 = 16;

/// How long a rank waits for the other rank's connection, or for bytes from the other rank.
const LIMIT: Duration = Duration::from_secs(1);

/// The shortest round-trip time for each of [`LENGTHS`].
type Times = [Duration; LENGTHS.len()];

/// Returns the wire that is faster between rank 0 and the first rank that shares no memory with
/// rank 0. `first_of` has, for each rank, the lowest rank of its host. Every rank must call this
/// function, and gets the same result.
///
/// # Errors
/// MPI has failed.
pub(crate) fn quicker(
    session: &Session,
    first_of: &[u32],
    address: Option<IpAddr>,
    secret: &Secret,
) -> Result<Wire, String> {
    let Some(other) = first_of.iter().position(|first| *first != first_of[0]) else { return Ok(Wire::Tcp) };
    let rank = session.rank();
    // Only one connection is accepted, from a rank that knows the secret.
    let listener = address.filter(|_| rank == 0).and_then(|ip| TcpListener::bind((ip, 0)).ok());
    let mine = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let given = mine.map(|address| address.to_string()).unwrap_or_default();
    let all = session.gather(Group::All, given.as_bytes())?;
    let of_rank_0: Option<SocketAddr> = String::from_utf8_lossy(&all[0]).parse().ok();
    let chosen = if rank == 0 {
        let stream = listener.and_then(|listener| accept(&listener, secret));
        let tcp = stream.and_then(|stream| over_tcp(stream, true));
        choice(over_mpi(session, other, true)?, tcp)
    } else {
        if rank == other {
            let stream = of_rank_0.and_then(|address| connect(address, secret));
            // Rank 0 decides, and notices a missing connection by itself.
            let _: Option<Times> = stream.and_then(|stream| over_tcp(stream, false));
            over_mpi(session, 0, false)?;
        }
        Wire::Tcp
    };
    let all = session.gather(Group::All, &[u8::from(chosen == Wire::Mpi)])?;
    Ok(if all[0] == [1] { Wire::Mpi } else { Wire::Tcp })
}

/// Returns the faster wire, by the geometric mean of the times for all lengths.
fn choice(mpi: Times, tcp: Option<Times>) -> Wire {
    let product = |times: Times| times.iter().map(|time| time.as_secs_f64()).product::<f64>();
    if tcp.is_some_and(|tcp| product(tcp) <= product(mpi)) { Wire::Tcp } else { Wire::Mpi }
}

/// Returns the shortest round-trip times of messages to `other` over MPI.
///
/// # Errors
/// MPI has failed.
fn over_mpi(session: &Session, other: usize, begins: bool) -> Result<Times, String> {
    let mut times = [Duration::MAX; LENGTHS.len()];
    for (time, len) in times.iter_mut().zip(LENGTHS) {
        let mut bytes = vec![0; len];
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            if begins {
                session.send(other, &mut bytes)?;
            }
            session.receive(other, &mut bytes)?;
            if !begins {
                session.send(other, &mut bytes)?;
            }
            *time = begun.elapsed().min(*time);
        }
    }
    Ok(times)
}

/// Returns the shortest round-trip times over a connection, or `None` if a message does not arrive
/// in time.
fn over_tcp(mut stream: TcpStream, begins: bool) -> Option<Times> {
    let mut times = [Duration::MAX; LENGTHS.len()];
    for (time, len) in times.iter_mut().zip(LENGTHS) {
        let mut bytes = vec![0; len];
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            if begins {
                send(&mut stream, &bytes)?;
            }
            receive(&mut stream, &mut bytes)?;
            if !begins {
                send(&mut stream, &bytes)?;
            }
            *time = begun.elapsed().min(*time);
        }
    }
    Some(times)
}

/// Returns the bytes with which a rank proves that it belongs to the job.
fn proof(secret: &Secret) -> [u8; 32] {
    blake3::derive_key("fencepost 1 connection that is timed", secret.as_bytes())
}

fn connect(address: SocketAddr, secret: &Secret) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).ok()?;
    prepare(&stream)?;
    send(&mut stream, &proof(secret))?;
    Some(stream)
}

/// Accepts the connection of a rank of this job.
fn accept(listener: &TcpListener, secret: &Secret) -> Option<TcpStream> {
    listener.set_nonblocking(true).ok()?;
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let Ok((mut stream, _)) = listener.accept() else {
            std::thread::yield_now();
            continue;
        };
        let mut shown = [0; 32];
        if prepare(&stream).and_then(|()| receive(&mut stream, &mut shown)).is_some()
            && shown == proof(secret)
        {
            return Some(stream);
        }
    }
    None
}

/// Makes reads and writes nonblocking: a rank polls, as the transports do.
fn prepare(stream: &TcpStream) -> Option<()> {
    stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).ok()
}

fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> Option<()> {
    let begun = Instant::now();
    while !bytes.is_empty() {
        bytes = &bytes[moved(stream.write(bytes), begun)?..];
    }
    Some(())
}

fn receive(stream: &mut TcpStream, mut room: &mut [u8]) -> Option<()> {
    let begun = Instant::now();
    while !room.is_empty() {
        let came = moved(stream.read(room), begun)?;
        room = &mut room[came..];
    }
    Some(())
}

/// Returns the number of bytes that were moved, or `None` if the connection has ended.
fn moved(result: std::io::Result<usize>, begun: Instant) -> Option<usize> {
    match result {
        Ok(0) => None,
        Ok(moved) => Some(moved),
        Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < LIMIT => {
            std::thread::yield_now();
            Some(0)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quicker_for_short_and_long_messages_together_is_chosen() {
        let times = |short, long| [short, long].map(Duration::from_micros);
        for (mpi, tcp, chosen) in [
            (times(1, 10), Some(times(10, 20)), Wire::Mpi),
            (times(30, 60), Some(times(10, 20)), Wire::Tcp),
            (times(10, 20), Some(times(10, 20)), Wire::Tcp),
            (times(1, 50), Some(times(10, 20)), Wire::Mpi),
            (times(9, 50), Some(times(10, 20)), Wire::Tcp),
            (times(1_000, 1_000), None, Wire::Mpi),
        ] {
            assert_eq!(choice(mpi, tcp), chosen, "{mpi:?}, {tcp:?}");
        }
    }

    #[test]
    fn a_connection_is_timed_by_ranks_that_know_the_secret_and_by_no_others() {
        let (secret, other) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::scope(|scope| {
            let timed = scope.spawn(|| accept(&listener, &secret).and_then(|stream| over_tcp(stream, true)));
            let stranger = connect(address, &other).expect("it listens");
            let stream = connect(address, &secret).expect("it listens");
            assert!(over_tcp(stranger, false).is_none());
            assert!(over_tcp(stream, false).is_some());
            let times = timed.join().expect("no panic").expect("all have arrived");
            assert!(times.iter().all(|time| *time > Duration::ZERO && *time < LIMIT), "{times:?}");
        });
    }
}
