//! Ranks that exchange bytes over TCP: processes anywhere, or threads of one process in tests.
//!
//! A process has one [`Fabric`]: a listener, and one connection to each other rank that it has something to say to, opened
//! when it is first needed and closed when it is not ([`room`]).
//! Both sides of a connection authenticate each other first ([`auth`](crate::auth)). Every world of the process is a
//! channel of these connections; a [`TcpEnd`] is one rank's end of one world.
//!
//! - Sockets never block. Every poll reads what has arrived from the rank that it is for, small items are packed into
//!   one write, large payloads are written from the sender's memory, and [`idle`](crate::Liveness::idle) waits for all
//!   sockets at once, and pays for those on which something happens ([`readiness`]).
//! - A thread of the fabric serves while the rank computes, and only then ([`fabric`]).
//! - Requests are answered by the thread that reads them ([`requests`]).
//! - Frames are sent as far as there is credit, for each pair and port ([`queue`]); everything else overtakes them
//!   ([`channel`]).
//! - Releases and announcements piggyback on other items; a rank that sends nothing reports releases now and then
//!   ([`UNREPORTED`](crate::UNREPORTED)), so that no sender waits for work of its receiver, and answers a rank that waits
//!   for it in which superstep it is.
//! - Memory of large messages is kept for the next ones: for each pair of ranks at most 32 MiB at either end of each
//!   direction, until the connection closes. A receiver that does not poll holds 16 MiB a pair at most,
//!   and 4 MiB more for each port that is in use besides that of fences.
//! - A rank that waits long asks the rank that it waits for; so ranks detect that they wait for one another
//!   ([`probes`]).
//! - A rank that leaves reports it in each world, and its fabric sends a goodbye at the end
//!   ([`ending`]). A connection that ends without one is a death; so is silence beyond a limit, as
//!   every rank sends heartbeats. Where a launcher reports how each rank ends, ranks that never had
//!   anything to say to each other do not connect to say that they have finished.

mod channel;
mod connect;
mod core;
mod end;
mod ending;
mod fabric;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod peer;
mod poll;
mod probes;
mod queue;
mod readiness;
mod requests;
mod room;
mod send;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

pub use end::TcpEnd;
pub use fabric::{Fabric, Reports};

use crate::auth::{Secret, random_bytes};

/// The time limits of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A rank that has sent nothing for this long sends a heartbeat.
    pub beat: Duration,
    /// A rank that was silent for this long is marked failed.
    pub limit: Duration,
    /// How long a rank that ended its connection without a goodbye is only suspected, until its launcher reports what
    /// became of it.
    pub obituary: Duration,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// The most incoming handshakes at a time; beyond, the oldest is dropped.
    pub half_open: usize,
    /// The most connections that a rank has open at a time, in a job of more than twice as many ranks.
    pub connections: usize,
    /// How long a connection is unused before it is closed, where a rank has more than a third of the most.
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

/// Opens a listener for a fabric: on this interface, or else for this machine only.
///
/// # Errors
/// The interface does not exist, or there is no socket.
pub fn listen(on: Option<IpAddr>) -> io::Result<TcpListener> {
    let on = on.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let listener = TcpListener::bind((on, 0))?;
    pace_nothing_within_machine(&listener, on);
    rustix::net::listen(&listener, 4096)?; // all ranks of a large job may connect at once
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Asks for a congestion control that paces nothing, where `address` is this machine's loopback. Accepted connections have what their
/// listener has asked for. Some systems have one by default that measures a link's rate and sends no faster (BBR): within a
/// machine there is no link, and what it measures is how rarely the ranks run. Connections work as well if the system allows no other.
fn pace_nothing_within_machine(socket: &impl AsFd, address: IpAddr) {
    if address.is_loopback() {
        let _: rustix::io::Result<()> = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
    }
}

/// Returns a world of `size` ranks in this process, which exchange messages over loopback: one end for each.
///
/// # Errors
/// There are not enough descriptors, or there is no loopback.
pub fn tcp(size: usize) -> io::Result<Vec<TcpEnd>> {
    tcp_with(size, Settings::default())
}

/// The same, with these settings.
///
/// # Errors
/// As [`tcp`].
pub fn tcp_with(size: usize, settings: Settings) -> io::Result<Vec<TcpEnd>> {
    tcp_by(size, settings, &Straight)
}

/// Where the ranks of a world connect to: for tests, which put something between them.
#[doc(hidden)]
pub trait Route: std::fmt::Debug + Send + Sync {
    /// Returns the addresses that `rank` connects to, by rank, given those that ranks listen on.
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr>;
}

/// Nothing is between them.
#[derive(Debug)]
struct Straight;

impl Route for Straight {
    fn table(&self, _: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        addresses.to_vec()
    }
}

/// [`tcp_with`], where ranks connect to the addresses of a route.
///
/// # Errors
/// As [`tcp`].
#[doc(hidden)]
pub fn tcp_by(size: usize, settings: Settings, route: &dyn Route) -> io::Result<Vec<TcpEnd>> {
    let (secret, job) = (Secret::new()?, random_bytes()?);
    let fabrics: Vec<_> = (0..size)
        .map(|rank| Fabric::new(listen(None)?, secret.clone(), job, rank, settings))
        .collect::<io::Result<_>>()?;
    let addresses: Vec<_> = fabrics.iter().map(Fabric::address).collect::<io::Result<_>>()?;
    fabrics
        .into_iter()
        .enumerate()
        .map(|(rank, mut fabric)| {
            fabric.table(&route.table(rank, &addresses))?;
            TcpEnd::of_job(&fabric.into(), 0, rank, size)
        })
        .collect()
}
