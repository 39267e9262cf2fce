//! [`Tampered`]: TCP between two ranks, where a test changes frames in the sockets' bytes, as it
//! can on the links of `sim`.

use crate::state::transport_kind::TransportKind;
use fencepost_tests_support::line::Line;
use fencepost_transport::{Header, Route};
use std::fmt;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

/// A function that changes a frame on its way from one rank to the other.
///
/// If it returns a number, the connection breaks after that number of bytes of the frame.
pub(super) type ChangeFn = dyn Fn([usize; 2], &mut Header, &mut Vec<u8>) -> Option<usize> + Send + Sync;

/// The connections that lead to each of two ranks.
pub(super) struct Tampered([Line; 2]);

impl fmt::Debug for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tampered")
    }
}

/// The number of bytes in each direction by which two ranks authenticate each other.
const HANDSHAKE: usize = 112;
/// The number of bytes before a payload: the kind of item, kind, extra, port (u32 each), world,
/// word, one more, length (u64 each).
const HEAD: usize = 48;
const FRAME: u32 = 1;

impl Tampered {
    /// Returns a transport for one world of two threads.
    pub(super) fn over(change: Arc<ChangeFn>) -> TransportKind {
        let line = |to: usize| {
            let change = change.clone();
            Line::new(move |source, sink, there| {
                let way = if there { [1 - to, to] } else { [to, 1 - to] };
                // A rank that fails closes its socket.
                let _ = hand_on(&source, &sink, way, &*change);
                let _ = (source.shutdown(Shutdown::Both), sink.shutdown(Shutdown::Both));
            })
        };
        TransportKind::TcpThreadsBy(Arc::new(Self([0, 1].map(line))))
    }
}

impl Route for Tampered {
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let each = addresses.iter().zip(&self.0).enumerate();
        each.map(|(to, (address, line))| {
            line.leads_to(*address);
            if to == rank { *address } else { line.address }
        })
        .collect()
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
