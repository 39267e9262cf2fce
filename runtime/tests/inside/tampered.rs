//! Links on which a test changes frames: simulated links, and [`Tampered`], which changes the bytes
//! that two ranks send each other over sockets. Also [`ends`], which returns the results of the
//! ranks.

use crate::api::run::Ranks;
use crate::state::transport_kind::TransportKind;
use crate::state::world::World;
use fencepost_planner::{ErrorClass, Result};
use fencepost_tests_support::line::Line;
use fencepost_transport::{Header, InFlight, Route, SimConfig, Tamper};
use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

/// The error of a rank, or `None` if the rank succeeds.
pub(super) type End = Option<(ErrorClass, String)>;

/// Runs `program` on `N` ranks and returns the result of each. No rank may panic.
pub(super) fn ends<const N: usize>(world: &Ranks, program: impl Fn(&World) -> Result<()> + Sync) -> [End; N] {
    let ends = [(); N].map(|()| Mutex::new(None));
    let whole = world.run(|world| {
        let result = program(world);
        let error = result.as_ref().err().map(|error| (error.class(), error.to_string()));
        *ends[world.rank()].lock().expect("no panic") = error;
        result
    });
    if let Err(error) = whole {
        assert!(!error.message().contains("panicked"), "{error}");
    }
    ends.map(|end| end.into_inner().expect("no panic"))
}

/// Returns simulated links without delays, on which `tamper` changes each frame.
pub(super) fn simulated(
    tamper: impl Fn([usize; 2], &mut Header, &mut Vec<u8>) + Send + Sync + 'static,
) -> TransportKind {
    let frames = move |way: [usize; 2], item: InFlight<'_>| {
        if let InFlight::Frame(header, payload) = item {
            tamper(way, header, payload);
        }
    };
    TransportKind::Sim(SimConfig {
        max_delay: 0,
        tamper: Some(Tamper(Arc::new(frames))),
        ..SimConfig::default()
    })
}

/// A function that changes a frame on its way from one rank to the other.
///
/// If it returns a number, the connection breaks after that number of bytes of the frame.
pub(super) type ChangeFn = dyn Fn([usize; 2], &mut Header, &mut Vec<u8>) -> Option<usize> + Send + Sync;

/// For each of two ranks, the `Line` through which connections to that rank pass.
pub(super) struct Tampered([Line; 2]);

impl fmt::Debug for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tampered")
    }
}

/// The number of bytes that each of two ranks sends in the handshake.
const HANDSHAKE: usize = 112;
/// The number of bytes before a payload: the kind of item, and the kind, extra and port of the
/// frame (u32 each); the world, the word, one more word, and the length (u64 each).
const HEAD: usize = 48;
const FRAME: u32 = 1;

impl Tampered {
    /// Returns a transport for one world of two threads.
    pub(super) fn over(change: Arc<ChangeFn>) -> TransportKind {
        let line = |to: usize| {
            let change = change.clone();
            Line::new(move |source, sink, there| {
                let way = if there { [1 - to, to] } else { [to, 1 - to] };
                // An error is no fault here: a rank that fails closes its socket.
                let _ = hand_on(&source, &sink, way, &*change);
                let _ = (source.shutdown(Shutdown::Both), sink.shutdown(Shutdown::Both));
            })
        };
        TransportKind::TcpThreadsBy(Arc::new(Self([0, 1].map(line))))
    }
}

impl Route for Tampered {
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        Line::table(&self.0, rank, addresses)
    }
}

/// Forwards items until the stream ends.
fn hand_on(
    mut source: &TcpStream,
    mut sink: &TcpStream,
    way: [usize; 2],
    change: &ChangeFn,
) -> std::io::Result<()> {
    sink.set_nodelay(true)?;
    let mut handshake = [0; HANDSHAKE];
    // The two sides take turns in the handshake.
    for _ in 0..HANDSHAKE {
        let n = source.read(&mut handshake[..1])?;
        sink.write_all(&handshake[..n])?;
    }
    loop {
        let mut head = [0; HEAD];
        source.read_exact(&mut head)?;
        let short = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let mut header = Header { word: long(24), kind: short(4), extra: short(8) };
        let mut payload = vec![0; long(40) as usize];
        source.read_exact(&mut payload)?;
        let mut breaks = None;
        if short(0) == FRAME {
            breaks = change(way, &mut header, &mut payload);
            head[4..8].copy_from_slice(&header.kind.to_ne_bytes());
            head[8..12].copy_from_slice(&header.extra.to_ne_bytes());
            head[24..32].copy_from_slice(&header.word.to_ne_bytes());
            head[40..48].copy_from_slice(&(payload.len() as u64).to_ne_bytes());
        }
        let bytes = [&head[..], &payload].concat();
        sink.write_all(&bytes[..breaks.unwrap_or(bytes.len()).min(bytes.len())])?;
        if breaks.is_some() {
            return Ok(());
        }
    }
}
