//! Bytes over TCP: carries the bytes of a [`Fabric`](crate::Fabric) between processes on one
//! machine or several.
//!
//! A process has a listener, and one connection to each other rank to which it has something to
//! send. A connection is opened when it is first needed, and closed when it is not used any more
//! ([`room`]). Both sides of a connection authenticate each other first ([`auth`](crate::auth)).
//! Sockets never block. Every poll reads what has arrived from the polled rank. Small items are
//! packed into one write, and large payloads are written from the sender's memory and read into
//! their final memory ([`connection`]). A waiting rank waits for all sockets at once, and pays only
//! for the sockets on which something happens ([`readiness`]).

mod connect;
mod connection;
mod opening;
mod readiness;
mod room;
mod sockets;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use crate::auth::{Identity, Secret, random_bytes};
use crate::fabric::Limits;
use crate::fabric::waker::EventWaker;
use crate::tcp::opening::{Dial, Incoming, pace_nothing_within_machine};
use crate::tcp::readiness::{Interest, Readiness, Source};
use crate::{Fabric, FabricEnd, fabric};

/// One rank's end of a world over TCP.
pub type TcpEnd = FabricEnd<Tcp>;

/// The connections of a process to the other ranks of its job, over TCP.
pub type TcpFabric = Fabric<Tcp>;

/// A handle for a launcher's reports to a fabric over TCP.
pub type TcpReports = fabric::Reports<Tcp>;

/// The sockets of a process.
pub struct Tcp {
    identity: Identity,
    settings: Settings,
    listener: TcpListener,
    readiness: Arc<Readiness>,
    /// The ranks whose connections are registered only before a thread waits. Empty if there are
    /// many connections.
    few: Vec<u32>,
    incoming: Vec<Incoming>,
    /// The queue of ranks to which a connection is to be opened as soon as there is room. Some of
    /// these ranks may have a connection by now.
    wanted: VecDeque<u32>,
    /// Whether connections are accepted. Not set while there is no room for a waiting connection.
    accepts: bool,
    /// The number of uses of connections so far.
    uses: u64,
}

/// The limits of a fabric over TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A rank that has sent nothing for this long sends a heartbeat.
    pub beat: Duration,
    /// A rank that was silent for this long is marked failed.
    pub limit: Duration,
    /// How long a rank is only suspected after its connection ended without a goodbye. In this time
    /// the launcher may report how the rank ended.
    pub obituary: Duration,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// The largest number of incoming handshakes at a time. Beyond this, the oldest handshake is
    /// dropped.
    pub half_open: usize,
    /// The largest number of connections that a rank has open at a time. The limit applies only to
    /// jobs of more than twice as many ranks.
    pub connections: usize,
    /// A connection that was unused for this long is closed, if the rank has more than a third of
    /// `connections` open.
    pub idle: Duration,
    /// Whether every record carries a tag. All ranks of a job must agree.
    pub sealed: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(1),
            limit: Duration::from_secs(10),
            obituary: Duration::ZERO,
            handshake: Duration::from_secs(10),
            half_open: 256,
            connections: 48,
            idle: Duration::from_secs(10),
            sealed: false,
        }
    }
}

impl TcpFabric {
    /// Creates the fabric of `rank`, to which other ranks connect through `listener`. See
    /// [`listen`].
    ///
    /// # Errors
    /// Fails if no descriptor is left.
    pub fn new(
        listener: TcpListener,
        secret: Secret,
        job: [u8; 16],
        rank: usize,
        settings: Settings,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let own = u32::try_from(rank).map_err(io::Error::other)?;
        let readiness = Arc::new(Readiness::new()?);
        let waker = Arc::new(EventWaker::new()?);
        readiness.add(&listener, Source::Listener, Interest::Bytes)?;
        readiness.add(&*waker, Source::Waker, Interest::Bytes)?;
        let tcp = Tcp {
            // Until the table of addresses is set, no handshake succeeds.
            identity: Identity { secret, job, rank: own, size: 0, sealed: settings.sealed },
            settings,
            listener,
            readiness: readiness.clone(),
            few: Vec::new(),
            incoming: Vec::new(),
            wanted: VecDeque::new(),
            accepts: true,
            uses: 0,
        };
        let Settings { beat, limit, obituary, .. } = settings;
        Self::over(tcp, readiness, waker, rank, Limits { beat, limit, obituary, grace: None })
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// Fails if the listener has no address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.shared().lock().carrier.listener.local_addr()
    }

    /// Sets the addresses of all ranks of the job, by rank. Called once, before the first world.
    /// Ranks with the same IP address count as ranks on one machine.
    ///
    /// # Errors
    /// Fails if the thread cannot be started, or if this rank has no address in the table.
    pub fn table(&mut self, addresses: &[SocketAddr]) -> io::Result<()> {
        let machine = |of: &SocketAddr| addresses.iter().position(|other| other.ip() == of.ip()).unwrap_or(0);
        let machines = addresses.iter().map(machine).collect();
        self.shared().lock().carrier.identity.size = addresses.len() as u32;
        self.start(addresses.iter().map(|address| Dial::new(*address)).collect(), machines)
    }
}

/// Opens a listener for a fabric, on the interface with this address. With `None`, only processes
/// of this machine can connect.
///
/// # Errors
/// Fails if the interface does not exist, or if there is no socket.
pub fn listen(on: Option<IpAddr>) -> io::Result<TcpListener> {
    let on = on.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let listener = TcpListener::bind((on, 0))?;
    pace_nothing_within_machine(&listener, on);
    rustix::net::listen(&listener, 4096)?; // all ranks of a large job may connect at once
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Creates a world of `size` ranks in this process that exchange messages over loopback, and
/// returns one end for each.
///
/// # Errors
/// Fails if there are not enough descriptors, or if there is no loopback.
pub fn tcp(size: usize) -> io::Result<Vec<TcpEnd>> {
    tcp_with(size, Settings::default())
}

/// Creates a world as [`tcp`] does, with these settings.
///
/// # Errors
/// As for [`tcp`].
pub fn tcp_with(size: usize, settings: Settings) -> io::Result<Vec<TcpEnd>> {
    tcp_by(size, settings, &Straight)
}

/// The addresses to which the ranks of a world connect. A test can use other addresses than those
/// of the listeners, to put a proxy between the ranks.
#[doc(hidden)]
pub trait Route: std::fmt::Debug + Send + Sync {
    /// Returns the addresses to which `rank` connects, by rank. `addresses` are those on which the
    /// ranks listen.
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr>;
}

/// A route on which ranks connect to one another without a proxy.
#[derive(Debug)]
struct Straight;

impl Route for Straight {
    fn table(&self, _: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        addresses.to_vec()
    }
}

/// Creates a world as [`tcp_with`] does. Its ranks connect to the addresses that `route` returns.
///
/// # Errors
/// As for [`tcp`].
#[doc(hidden)]
pub fn tcp_by(size: usize, settings: Settings, route: &dyn Route) -> io::Result<Vec<TcpEnd>> {
    let (secret, job) = (Secret::new()?, random_bytes()?);
    let fabrics: Vec<_> = (0..size)
        .map(|rank| TcpFabric::new(listen(None)?, secret.clone(), job, rank, settings))
        .collect::<io::Result<_>>()?;
    let addresses: Vec<_> = fabrics.iter().map(TcpFabric::address).collect::<io::Result<_>>()?;
    fabrics
        .into_iter()
        .enumerate()
        .map(|(rank, mut fabric)| {
            fabric.table(&route.table(rank, &addresses))?;
            TcpEnd::of_job(&fabric.into(), 0, rank, size)
        })
        .collect()
}
