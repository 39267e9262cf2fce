//! A proxy between the sockets of two ranks. It injects one fault, at one byte of one direction.
//!
//! The bytes of each direction are counted over all connections between the two ranks, including
//! handshakes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The fault that the proxy injects at a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// Both directions of the connection end.
    Break,
    /// This byte, later bytes and the end of the stream do not arrive. The other direction
    /// continues.
    HalfOpen,
    /// This byte and all later ones are late.
    Delay,
    /// One bit of the byte is flipped.
    Corrupt,
    /// One bit of the byte is flipped, and the connection breaks after its sender has sent nothing
    /// for a while.
    CorruptThenBreak,
    /// This byte and the following bytes of the same read arrive twice.
    Duplicate,
}

/// One fault in the bytes from one rank to another.
pub struct Plan {
    pub way: [usize; 2],
    pub at: u64,
    pub harm: Harm,
    /// The numbers of bytes so far between this pair of ranks: from the lower to the higher rank,
    /// and from the higher to the lower.
    pub passed: [AtomicU64; 2],
    pub happened: AtomicBool,
}

impl Plan {
    pub fn new(way: [usize; 2], at: u64, harm: Harm) -> Arc<Self> {
        Arc::new(Self { way, at, harm, passed: Default::default(), happened: AtomicBool::new(false) })
    }
}

/// A proxy. It accepts the connections that `from` opens to `to`, in place of `target`.
pub struct Proxy {
    pub address: SocketAddr,
    closing: Arc<AtomicBool>,
    listens: Option<thread::JoinHandle<()>>,
}

impl Proxy {
    pub fn new(from: usize, to: usize, target: SocketAddr, plan: Arc<Plan>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let closing = Arc::new(AtomicBool::new(false));
        let seen = closing.clone();
        let listens = thread::spawn(move || {
            let (streams, mut pumps) = (Mutex::new(Vec::new()), Vec::new());
            while let Ok((near, _)) = listener.accept() {
                if seen.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(far) = TcpStream::connect(target) else { continue };
                for (source, sink, way) in [(&near, &far, [from, to]), (&far, &near, [to, from])] {
                    let (source, sink) = (source.try_clone().unwrap(), sink.try_clone().unwrap());
                    source.set_nodelay(true).unwrap();
                    let plan = plan.clone();
                    pumps.push(thread::spawn(move || pump(source, sink, way, &plan)));
                }
                streams.lock().unwrap().extend([near, far]);
            }
            for stream in streams.lock().unwrap().iter() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            pumps.into_iter().for_each(|pump| pump.join().unwrap());
        });
        Self { address, closing, listens: Some(listens) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address); // wakes its listener
        if let Some(listens) = self.listens.take() {
            let _ = listens.join();
        }
    }
}

/// Copies bytes until one of the two sockets ends.
fn pump(mut source: TcpStream, mut sink: TcpStream, way: [usize; 2], plan: &Plan) {
    let (mut buffer, mut breaks, mut swallows) = (vec![0; 1 << 14], false, false);
    let passed = &plan.passed[usize::from(way[0] > way[1])];
    let harmed = way == plan.way;
    let of_pair = harmed || way == [plan.way[1], plan.way[0]];
    loop {
        let n = match source.read(&mut buffer) {
            Ok(1..) if swallows => continue,
            Ok(n @ 1..) => n,
            Err(error) if breaks && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let _ = source.shutdown(Shutdown::Both);
                let _ = sink.shutdown(Shutdown::Both);
                return;
            }
            Ok(_) | Err(_) if swallows => return,
            Ok(_) | Err(_) => {
                let _ = sink.shutdown(Shutdown::Write);
                return;
            }
        };
        let bytes = &mut buffer[..n];
        let before = if of_pair { passed.fetch_add(n as u64, Ordering::SeqCst) } else { 0 };
        let here = harmed
            && (before..before + n as u64).contains(&plan.at)
            && !plan.happened.swap(true, Ordering::SeqCst);
        if !here {
            if sink.write_all(bytes).is_err() {
                let _ = source.shutdown(Shutdown::Read);
            }
            continue;
        }
        let at = (plan.at - before) as usize;
        match plan.harm {
            Harm::Break => {
                let _ = sink.write_all(&bytes[..at]);
                let _ = source.shutdown(Shutdown::Both);
                let _ = sink.shutdown(Shutdown::Both);
                return;
            }
            Harm::HalfOpen => {
                let _ = sink.write_all(&bytes[..at]);
                swallows = true;
            }
            Harm::Delay => {
                let _ = sink.write_all(&bytes[..at]);
                let until = Instant::now() + Duration::from_millis(20); // this is the delay
                while let Some(rest) = until.checked_duration_since(Instant::now()) {
                    thread::park_timeout(rest);
                }
                let _ = sink.write_all(&bytes[at..]);
            }
            Harm::Corrupt | Harm::CorruptThenBreak => {
                bytes[at] ^= 1 << (plan.at % 8);
                let _ = sink.write_all(bytes);
                if plan.harm == Harm::CorruptThenBreak {
                    breaks = true;
                    source.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                }
            }
            Harm::Duplicate => {
                let _ = sink.write_all(bytes);
                let _ = sink.write_all(&bytes[at..]);
            }
        }
    }
}
