//! Ranks that exchange bytes over TCP: processes anywhere, or threads of one process in tests.
//!
//! A process has one [`Fabric`]: a listener, and one connection to each other rank, opened when it is first needed. Who
//! connects and who is connected to prove themselves to each other first (`security`). Every world of the process is a
//! channel of these connections; a [`TcpEnd`] is one rank's end of one world.
//!
//! - Sockets never block. Every look reads what has come, small items are packed into one write, big payloads are
//!   written from where they lie, and [`idle`](crate::Transport::idle) waits for all sockets at once.
//! - A thread of the fabric serves while the rank computes, and only then ([`fabric`]).
//! - Frames leave as far as there is credit, a window for each pair; everything else goes past them ([`channel`]).
//! - Releases and announcements ride with what flows anyway.
//! - Who waits long asks whom it waits for; so ranks find out that they wait for one another ([`probes`]).
//! - A rank that leaves says so in each world, and its fabric says goodbye at the end. A connection that ends without
//!   is a death; so is silence beyond a limit, as everybody sends a beat now and then.

mod channel;
mod connect;
mod core;
mod end;
mod fabric;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod peer;
mod poll;
mod probes;
mod send;

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

pub use end::TcpEnd;
pub use fabric::Fabric;

use crate::auth::{Secret, chance};

/// How patient a fabric is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Who has sent nothing for so long sends a beat.
    pub beat: Duration,
    /// Who was not heard for so long has died.
    pub limit: Duration,
    /// Who ended its connection without a goodbye is given so long until somebody else says what became of it.
    pub obituary: Duration,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// Handshakes of others at most that are under way; beyond, the oldest is given up.
    pub half_open: usize,
    /// Whether every record carries a tag. All ranks of a job say the same.
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
            sealed: false,
        }
    }
}

/// Where a fabric is to be reached: on this interface, or else by this machine only.
///
/// # Errors
/// There is no such interface, or no socket.
pub fn listen(on: Option<IpAddr>) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((on.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0))?;
    rustix::net::listen(&listener, 4096)?; // all ranks of a big job may knock at once
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A world of `size` ranks in this process, which exchange messages over loopback: an end for each.
///
/// # Errors
/// There are not enough descriptors, or no loopback.
pub fn tcp(size: usize) -> io::Result<Vec<TcpEnd>> {
    tcp_with(size, Settings::default())
}

/// The same, with these settings.
///
/// # Errors
/// As [`tcp`].
pub fn tcp_with(size: usize, settings: Settings) -> io::Result<Vec<TcpEnd>> {
    let (secret, job) = (Secret::new()?, chance()?);
    let fabrics: Vec<_> = (0..size)
        .map(|rank| Fabric::new(listen(None)?, secret.clone(), job, rank, settings))
        .collect::<io::Result<_>>()?;
    let addresses: Vec<_> = fabrics.iter().map(Fabric::address).collect::<io::Result<_>>()?;
    fabrics
        .into_iter()
        .enumerate()
        .map(|(rank, mut fabric)| {
            fabric.table(&addresses)?;
            TcpEnd::of_job(&fabric.into(), 0, rank, size)
        })
        .collect()
}
