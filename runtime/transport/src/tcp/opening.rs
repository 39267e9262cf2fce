//! Connections that are being opened: by this rank ([`Dial`]), or by another process
//! ([`Incoming`]).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::auth::{Opener, Session, Taker};
use crate::fabric::carrier;

/// The opening of a connection to one other rank.
pub struct Dial {
    pub(super) address: SocketAddr,
    pub(super) attempt: Option<Attempt>,
    /// Whether a connection to the peer is wanted as soon as there is room for it.
    pub(super) queued: bool,
    /// Whether this rank has accepted a connection that the peer opened. This rank uses that
    /// connection as soon as the verdict is written.
    pub(super) welcomed: bool,
    pub(super) tries: u32,
    pub(super) retry: Option<Instant>,
}

impl Dial {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, attempt: None, queued: false, welcomed: false, tries: 0, retry: None }
    }
}

impl carrier::Opening for Dial {
    fn is_under_way(&self) -> bool {
        self.attempt.is_some() || self.welcomed
    }

    fn is_due_again(&self) -> bool {
        self.retry.is_some()
    }

    fn abandon(&mut self) {
        (self.attempt, self.retry, self.queued) = (None, None, false);
    }
}

/// A connection that another process opens to this rank.
pub(super) struct Incoming {
    pub(super) stream: Arc<TcpStream>,
    pub(super) taker: Taker,
    pub(super) out: Vec<u8>,
    /// Whether the connection awaits room at the socket, and not bytes.
    pub(super) awaits_room: bool,
    pub(super) since: Instant,
    /// The rank that the other process has proven to be, until the verdict is known.
    pub(super) proven: Option<usize>,
    /// Set once the verdict is known. When `out` is written, the connection is used if there is a
    /// session. Otherwise it is closed.
    pub(super) decided: Option<Option<Session>>,
}

impl Incoming {
    /// Returns whether the other process has not yet proven to be a rank.
    pub(super) fn is_unknown(&self) -> bool {
        self.proven.is_none() && self.decided.is_none()
    }
}

/// A connection that is being opened.
pub(super) struct Attempt {
    pub(super) stream: Arc<TcpStream>,
    pub(super) opener: Opener,
    /// The bytes that the handshake still has to send.
    pub(super) out: Vec<u8>,
    /// Whether the connection awaits room at the socket, and not bytes.
    pub(super) awaits_room: bool,
    pub(super) since: Instant,
}

impl Attempt {
    /// Begins to open a connection.
    ///
    /// # Errors
    /// Fails if there is no socket, or no listener.
    pub(super) fn new(address: SocketAddr, opener: Opener, hello: Vec<u8>, now: Instant) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        pace_nothing_within_machine(&socket, address.ip());
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream: Arc::new(stream), opener, out: hello, awaits_room: true, since: now })
    }
}

/// Requests a congestion control without pacing, if `address` is this machine's loopback. Accepted
/// sockets inherit the listener's setting. The default of some systems is BBR, which measures the
/// rate of a link and sends no faster. Within a machine there is no link, and the rate that BBR
/// measures only reflects how often the ranks run. If the system does not allow this congestion
/// control, the connection uses the default.
pub(super) fn pace_nothing_within_machine(socket: &impl AsFd, address: IpAddr) {
    if address.is_loopback() {
        let _: rustix::io::Result<()> = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
    }
}

/// Writes as much of `out` as the socket takes.
///
/// # Errors
/// Fails if the connection has ended.
pub(super) fn write_some(stream: &TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    while !out.is_empty() {
        match (&*stream).write(out) {
            Ok(n) => drop(out.drain(..n)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads at most `wants` bytes, and at most 128. Returns an empty slice if no bytes have arrived.
///
/// # Errors
/// Fails if the connection has ended.
pub(super) fn read_some<'b>(
    stream: &TcpStream,
    buffer: &'b mut [u8; 128],
    wants: usize,
) -> io::Result<&'b [u8]> {
    let wants = wants.min(buffer.len());
    match (&*stream).read(&mut buffer[..wants]) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(n) => Ok(&buffer[..n]),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected
            ) =>
        {
            Ok(&[])
        }
        Err(error) => Err(error),
    }
}
