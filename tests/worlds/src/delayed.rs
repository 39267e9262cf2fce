//! [`Delayed`]: TCP between threads over links with a latency, which the kernel's loopback does not
//! have.
//!
//! Each rank is reached through a listener of its own. The listener passes on the bytes of both
//! directions after a fixed time. Bytes do not wait for earlier bytes, so a link has a latency, but
//! no bound on the number of bytes that it carries.

use fencepost::TransportKind;
use fencepost::transport::Route;
use fencepost_tests_support::line::Line;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Links of the same latency between up to some number of ranks, for one world at a time.
#[derive(Debug)]
pub struct Delayed {
    lines: Vec<Line>,
}

impl Delayed {
    /// Returns TCP between at most `size` threads, with this latency.
    ///
    /// Panics if there is no loopback.
    pub fn over(size: usize, latency: Duration) -> TransportKind {
        let line = |_| Line::new(move |source, sink, _| hand_on(source, sink, latency));
        TransportKind::TcpThreadsBy(Arc::new(Self { lines: (0..size).map(line).collect() }))
    }
}

impl Route for Delayed {
    fn table(&self, rank: usize, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        Line::table(&self.lines, rank, addresses)
    }
}

/// Writes the bytes of `source` to `sink`, each byte `latency` later, until one of the two sockets
/// ends.
fn hand_on(mut source: TcpStream, mut sink: TcpStream, latency: Duration) {
    let (travels, arrives) = mpsc::channel::<(Instant, Vec<u8>)>();
    let delivers = thread::spawn(move || {
        let _ = sink.set_nodelay(true);
        for (due, bytes) in arrives {
            while let Some(rest) = due.checked_duration_since(Instant::now()) {
                thread::park_timeout(rest); // this is the latency
            }
            if sink.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = sink.shutdown(Shutdown::Write);
    });
    let mut buffer = vec![0; 1 << 18];
    while let Ok(n @ 1..) = source.read(&mut buffer) {
        if travels.send((Instant::now() + latency, buffer[..n].to_vec())).is_err() {
            let _ = source.shutdown(Shutdown::Read);
            break;
        }
    }
    drop(travels);
    let _ = delivers.join();
}
