//! Two threads with one TCP connection over loopback. They never block, and do only the necessary
//! work.

use super::team::{Words, team};
use crate::draws::{Set, TABLE};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A connection, and for each thread a table and the bytes that it sends and receives.
pub struct Wire {
    streams: [TcpStream; 2],
    tables: [Words; 2],
    draws: Vec<Vec<Set>>,
}

/// Sends all of `out` and fills `into`, alternating between the two as the socket permits.
fn exchange(mut stream: &TcpStream, mut out: &[u8], mut into: &mut [u8]) {
    while !out.is_empty() || !into.is_empty() {
        if !out.is_empty() {
            match stream.write(out) {
                Ok(n) => out = &out[n..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "loopback goes on"),
            }
        }
        if !into.is_empty() {
            match stream.read(into) {
                Ok(n) => into = &mut into[n..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "loopback goes on"),
            }
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

impl Wire {
    /// Connects two threads with these draws, `[thread][set]`.
    ///
    /// # Panics
    /// If the machine has no loopback.
    pub fn new(draws: Vec<Vec<Set>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("its address")).expect("loopback");
        let streams = [one, listener.accept().expect("the connection").0];
        for stream in &streams {
            // Reno does not pace what it sends. See the TCP transport of Fencepost, which also uses
            // Reno.
            let _: rustix::io::Result<()> = rustix::net::sockopt::set_tcp_congestion(stream, "reno");
            stream.set_nodelay(true).expect("a socket");
            stream.set_nonblocking(true).expect("a socket");
        }
        Self { streams, tables: [Words::new(TABLE), Words::new(TABLE)], draws }
    }

    /// Times an exchange of `bytes` bytes in both directions at once, in each iteration.
    pub fn both(&self, bytes: usize, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let (out, mut into) = (vec![1; bytes], vec![0; bytes]);
            (0..iterations).for_each(|_| exchange(&self.streams[beat.me], &out, &mut into));
        })
    }

    /// Times `bytes` bytes to the other thread and then the same number back, in each iteration.
    pub fn round_trip(&self, bytes: usize, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let (out, mut into, stream) = (vec![1; bytes], vec![0; bytes], &self.streams[beat.me]);
            for _ in 0..iterations {
                if beat.me == 0 {
                    exchange(stream, &out, &mut []);
                }
                exchange(stream, &[], &mut into);
                if beat.me == 1 {
                    exchange(stream, &out, &mut []);
                }
            }
        })
    }

    /// Times `bytes` bytes in both directions in each iteration. No thread waits for the other
    /// thread before it sends more, so this measures the bandwidth.
    pub fn stream(&self, bytes: usize, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let (out, mut into) = (vec![1; bytes], vec![0; bytes]);
            let (mut stream, all) = (&self.streams[beat.me], bytes * iterations as usize);
            let (mut sent, mut got) = (0, 0);
            while sent < all || got < all {
                if sent < all {
                    sent += stream.write(&out[..bytes.min(all - sent)]).unwrap_or_default();
                }
                if got < all {
                    let room = bytes.min(all - got);
                    got += stream.read(&mut into[..room]).unwrap_or_default();
                }
            }
        })
    }

    /// Logs each operation as index and value, and exchanges the logs. Then each thread applies the
    /// log of the other thread.
    pub fn log(&self, iterations: u64) -> Duration {
        team(2, iterations, |beat, iterations| {
            let table = self.tables[beat.me].start();
            let n = self.draws[0][0].indices.len();
            let (mut out, mut into) = (Vec::with_capacity(16 * n), vec![0; 16 * n]);
            for set in self.draws[beat.me].iter().cycle().take(iterations as usize) {
                out.clear();
                for (&index, &value) in set.indices.iter().zip(&set.values) {
                    out.extend_from_slice(&u64::from(index).to_le_bytes());
                    out.extend_from_slice(&value.to_le_bytes());
                }
                exchange(&self.streams[beat.me], &out, &mut into);
                let mut all = words(&into);
                while let (Some(index), Some(value)) = (all.next(), all.next()) {
                    // SAFETY: `draw` gives indices below TABLE, and this thread alone touches its
                    // table.
                    unsafe { table.add(index as usize).write(value) };
                }
            }
        })
    }

    /// Exchanges the indices of gets, then the values at these indices, and stores the values.
    pub fn request(&self, iterations: u64) -> Duration {
        let results = [Words::new(TABLE), Words::new(TABLE)];
        team(2, iterations, |beat, iterations| {
            let (table, result) = (self.tables[beat.me].start(), results[beat.me].start());
            let n = self.draws[0][0].indices.len();
            let (mut out, mut into) = (Vec::with_capacity(8 * n), vec![0; 8 * n]);
            for set in self.draws[beat.me].iter().cycle().take(iterations as usize) {
                out.clear();
                set.indices.iter().for_each(|&index| out.extend_from_slice(&u64::from(index).to_le_bytes()));
                exchange(&self.streams[beat.me], &out, &mut into);
                out.clear();
                // SAFETY: `draw` gives indices below TABLE, and this thread alone touches its
                // table.
                words(&into).for_each(|index| unsafe {
                    out.extend_from_slice(&table.add(index as usize).read().to_le_bytes());
                });
                exchange(&self.streams[beat.me], &out, &mut into);
                // SAFETY: there is one answer for each operation of a set, and a set has at most
                // TABLE operations.
                words(&into).enumerate().for_each(|(i, word)| unsafe { result.add(i).write(word) });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::draw;

    #[test]
    fn what_one_thread_draws_crosses_the_wire() {
        let draws = draw(2, 1, 100);
        let mut wire = Wire::new(draws.clone());
        wire.log(1);
        wire.request(1);
        wire.both(64, 1);
        wire.round_trip(64, 3);
        wire.stream(100_000, 3);
        for me in 0..2 {
            let mut expected = vec![0; TABLE];
            for (&index, &value) in draws[1 - me][0].indices.iter().zip(&draws[1 - me][0].values) {
                expected[index as usize] = value;
            }
            assert!(wire.tables[me].to_vec() == expected, "thread {me}");
        }
    }
}
